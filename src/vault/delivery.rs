//! How a secret reaches a worker, checked.

use std::fmt;

use serde::{Deserialize, Serialize};

use provost_base::limits::PATH_LEN_MAX;
use provost_base::{Authority, BadAuthority, Digest, Host, RepoPath};
use provost_domain::Credentials;

/// A mistake in a delivery.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDelivery {
    /// Not `https://host/path`.
    #[error("the upstream must be like \"https://api.example\" or \"https://api.example:8443/v2\"")]
    Upstream,
    /// The host or port of the upstream cannot be read.
    #[error("the upstream's host {0}")]
    Host(#[from] BadAuthority),
    /// `http://` to somewhere else.
    #[error(
        "an upstream without TLS can only be a loopback address; every machine on the way could read the secret"
    )]
    NoTls,
    /// Not the name of a header that carries a key.
    #[error("`{0}` is not a header that a key travels in")]
    Header(String),
    /// Something other than printable ASCII stands in the prefix.
    #[error("the header's prefix must be printable ASCII")]
    Prefix,
    /// Not the name of a variable.
    #[error("`{0}` is not the name of a variable")]
    Variable(String),
    /// Without both variables, the worker's program could neither find the proxy nor authenticate at it.
    #[error(
        "name the variables in which the worker's program looks for the base URL (`--base-url-in`) and for its key \
         (`--token-in`)"
    )]
    NoVariable,
    /// A path that is not below the home.
    #[error("the file must be a path below the worker's home")]
    Path,
    /// The authority is no certificate in PEM form.
    #[error("the authority must be a certificate in PEM form")]
    Authority,
}

/// How a worker gets a secret, if one does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Delivery {
    /// The daemon adds it to requests for one host.
    Proxy(ByProxy),
    /// A copy lies in the worker's home.
    File {
        /// Where, relative to the home.
        path: RepoPath,
    },
    /// A variable holds it.
    Env {
        /// The variable's name: letters, digits and `_`, at most 128 of them, not beginning with a digit.
        variable: String,
    },
    /// No worker gets it: the daemon itself sends notices with it.
    Daemon,
}

/// A secret that is added to requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByProxy {
    /// Scheme, host, port and base path of the requests.
    pub upstream: Upstream,
    /// The header that carries it there.
    pub header: String,
    /// The text before it in the header.
    pub prefix: String,
    /// Variables that tell the worker where to send requests.
    pub base_url: Vec<String>,
    /// Variables that hold the token of the run, in the place of the secret.
    pub token: Vec<String>,
    /// The authority that the upstream's certificate is from, as PEM, when it is not a public one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

impl Delivery {
    /// How far it lets the secret go.
    pub fn credentials(&self) -> Credentials {
        match self {
            // It does not even leave the daemon by a proxy.
            Delivery::Proxy(_) | Delivery::Daemon => Credentials::Proxy,
            Delivery::File { .. } => Credentials::File,
            Delivery::Env { .. } => Credentials::Env,
        }
    }

    /// The digest that a permission is bound to: a secret that is given otherwise is another one.
    pub fn digest(&self) -> Digest {
        // Our own type always encodes.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Checks everything that its types leave open.
    ///
    /// # Errors
    /// [`BadDelivery`] says what is wrong.
    pub fn check(&self) -> Result<(), BadDelivery> {
        match self {
            Delivery::Proxy(it) => it.check(),
            Delivery::File { path } if path.is_root() => Err(BadDelivery::Path),
            Delivery::File { .. } | Delivery::Daemon => Ok(()),
            Delivery::Env { variable } => check_variable(variable),
        }
    }
}

/// Headers that say where a message goes or where it ends; a key in one of them would be something else.
const NO_KEY: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
];

impl ByProxy {
    fn check(&self) -> Result<(), BadDelivery> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let named = !self.header.is_empty() && self.header.bytes().all(token);
        if !named || self.header.len() > 64 || NO_KEY.contains(&self.header.to_ascii_lowercase().as_str()) {
            return Err(BadDelivery::Header(self.header.clone()));
        }
        if !self.prefix.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) || self.prefix.len() > 64 {
            return Err(BadDelivery::Prefix);
        }
        if self.base_url.is_empty() || self.token.is_empty() {
            return Err(BadDelivery::NoVariable);
        }
        let pem = |text: &String| text.contains("-----BEGIN CERTIFICATE-----");
        if !self.authority.as_ref().is_none_or(pem) {
            return Err(BadDelivery::Authority);
        }
        self.base_url.iter().chain(&self.token).try_for_each(|name| check_variable(name))
    }
}

fn check_variable(name: &str) -> Result<(), BadDelivery> {
    let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let begins = name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    match letters && begins && name.len() <= 128 {
        true => Ok(()),
        false => Err(BadDelivery::Variable(name.into())),
    }
}

/// Where requests with a key go: scheme, host, port, and what stands before every path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Upstream {
    tls: bool,
    authority: Authority,
    base: String,
}

impl Upstream {
    /// Reads `https://host[:port][/base]`, or `http://` to a loopback address.
    ///
    /// # Errors
    /// [`BadDelivery`] for everything else.
    pub fn parse(text: &str) -> Result<Self, BadDelivery> {
        let (tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(BadDelivery::Upstream),
        };
        let (host, base) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let authority = Authority::parse_or(host, if tls { 443 } else { 80 })?;
        let base = base.trim_end_matches('/');
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
        let climbs = base.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
        if !base.bytes().all(plain) || climbs || base.len() > PATH_LEN_MAX {
            return Err(BadDelivery::Upstream);
        }
        let loopback = matches!(authority.host, Host::Address(address) if address.is_loopback());
        match tls || loopback {
            true => Ok(Self { tls, authority, base: base.into() }),
            false => Err(BadDelivery::NoTls),
        }
    }

    /// Whether it is spoken to over TLS.
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// The host and port to connect to; the port is 443 or 80 where the URL names none.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The part that precedes every path, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.base)
    }
}

impl TryFrom<String> for Upstream {
    type Error = BadDelivery;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Upstream> for String {
    fn from(upstream: Upstream) -> Self {
        upstream.to_string()
    }
}
