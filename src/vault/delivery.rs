//! The ways in which a secret reaches a worker, with their checks.

use std::fmt;

use serde::{Deserialize, Serialize};

use provost_base::limits::PATH_LEN_MAX;
use provost_base::{Authority, BadAuthority, Digest, Hostname, RepoPath};
use provost_domain::Credentials;

/// A mistake in a delivery.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDelivery {
    /// The upstream is not `https://host/path`.
    #[error("the upstream must be like \"https://api.example\" or \"https://api.example:8443/v2\"")]
    Upstream,
    /// The host or port of the upstream cannot be read.
    #[error("the upstream's host {0}")]
    Host(#[from] BadAuthority),
    /// The upstream is `http://` to another address than loopback.
    #[error(
        "an upstream without TLS can only be a loopback address; every machine on the way could read the secret"
    )]
    NoTls,
    /// The text is not the name of a header that can carry a key.
    #[error("`{0}` is not a header that a key travels in")]
    Header(String),
    /// The prefix contains other characters than printable ASCII.
    #[error("the header's prefix must be printable ASCII")]
    Prefix,
    /// The text is not the name of a variable.
    #[error("`{0}` is not the name of a variable")]
    Variable(String),
    /// Without both variables, the worker's program could neither find the proxy nor authenticate at it.
    #[error(
        "name the variables in which the worker's program looks for the base URL (`--base-url-in`) and for its key \
         (`--token-in`)"
    )]
    NoVariable,
    /// The path is not below the home.
    #[error("the file must be a path below the worker's home")]
    Path,
    /// The authority is not a certificate in PEM form.
    #[error("the authority must be a certificate in PEM form")]
    Authority,
}

/// The way in which a worker gets a secret, if one does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Delivery {
    /// The daemon adds it to requests for one host.
    Proxy(ByProxy),
    /// A copy is in the worker's home.
    File {
        /// The path, relative to the home.
        path: RepoPath,
    },
    /// A variable contains it.
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
    /// The header that carries the secret.
    pub header: String,
    /// The text before the secret in the header.
    pub prefix: String,
    /// The variables that tell the worker the base URL of requests.
    pub base_url: Vec<String>,
    /// The variables that hold the token of the run, in place of the secret.
    pub token: Vec<String>,
    /// The authority of the upstream's certificate, as PEM, if it is not a public one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

impl Delivery {
    /// Returns how far the delivery lets the secret go.
    pub fn credentials(&self) -> Credentials {
        match self {
            // The secret does not leave the daemon, not even by a proxy.
            Delivery::Proxy(_) | Delivery::Daemon => Credentials::Proxy,
            Delivery::File { .. } => Credentials::File,
            Delivery::Env { .. } => Credentials::Env,
        }
    }

    /// Returns the digest to which a permission is bound: the same secret with another delivery needs another permission.
    pub fn digest(&self) -> Digest {
        // Provost's own type can always be encoded.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Checks everything that its types do not ensure.
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

/// Headers that direct or frame a message; a key in one of them would have another effect.
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

/// The destination of requests with a key: scheme, host, port, and the path before every path.
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
    /// [`BadDelivery`] for any other text.
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
        let loopback = matches!(authority.host, Hostname::Address(address) if address.is_loopback());
        match tls || loopback {
            true => Ok(Self { tls, authority, base: base.into() }),
            false => Err(BadDelivery::NoTls),
        }
    }

    /// Returns whether connections use TLS.
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// Returns the host and port to connect to; the port is 443 or 80 if the URL names none.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the part before every path, without a slash at the end.
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
