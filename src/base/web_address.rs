//! The address of a web server to which the daemon itself sends something.

use core::fmt;

use super::authority::{Authority, BadAuthority, Hostname};
use super::limits::NOTICE_URL_BYTES_MAX;

/// The reason why a text is not such an address. It quotes none of the text, since an address may be a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWebAddress {
    /// It has neither `https://` nor `http://`.
    #[error("must begin with https:// (or http:// to a loopback address)")]
    Scheme,
    /// The host or the port cannot be read.
    #[error("its host {0}")]
    Host(#[from] BadAuthority),
    /// It is `http://` to a host other than this machine.
    #[error("without TLS it can only be a loopback address, such as http://127.0.0.1:8080; write https://")]
    NoTls,
    /// It has blanks, control characters, quotes, letters outside of ASCII, or a fragment.
    #[error(
        "its path may have the characters of an address alone; write others as %20 and the like, and no `#`"
    )]
    Path,
    /// It has more than [`NOTICE_URL_BYTES_MAX`] bytes.
    #[error("is longer than {NOTICE_URL_BYTES_MAX} bytes")]
    TooLong,
}

/// `https://host[:port]/path?query`, or `http://` to a loopback address.
#[derive(Clone, PartialEq, Eq)]
pub struct WebAddress {
    tls: bool,
    authority: Authority,
    target: Box<str>,
}

impl WebAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// [`BadWebAddress`] names the mistake.
    pub fn parse(text: &str) -> Result<Self, BadWebAddress> {
        if text.len() > NOTICE_URL_BYTES_MAX {
            return Err(BadWebAddress::TooLong);
        }
        let (tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(BadWebAddress::Scheme),
        };
        let (host, target) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
        let authority = Authority::parse_or(host, if tls { 443 } else { 80 })?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:@?".contains(&b);
        if !target.bytes().all(plain) {
            return Err(BadWebAddress::Path);
        }
        let loopback = matches!(authority.host, Hostname::Address(address) if address.is_loopback());
        if !tls && !loopback {
            return Err(BadWebAddress::NoTls);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { tls, authority, target: format!("{slash}{target}").into() })
    }

    /// Checks whether it uses TLS.
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// Returns the host and the port; the port is 443 or 80 if the address names none.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns path and query, with the slash at the beginning.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the value of the header `host`.
    pub fn host_header(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        match self.authority.port == usual {
            true => self.authority.host.to_string(),
            false => self.authority.to_string(),
        }
    }

    /// Returns scheme, host and port: the part that is not secret.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.host_header())
    }
}

/// Writes it without the path, which is a secret at many services.
impl fmt::Debug for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.origin())
    }
}
