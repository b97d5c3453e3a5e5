//! The address of a web server that the daemon itself sends something to.

use core::fmt;

use super::authority::{Authority, BadAuthority, Host};
use super::limits::NOTICE_URL_BYTES_MAX;

/// Why a text is no address to send to. Quotes nothing of it, since an address may be a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWebAddress {
    /// Neither `https://` nor `http://`.
    #[error("must begin with https:// (or http:// to a loopback address)")]
    Scheme,
    /// The host or the port cannot be read.
    #[error("its host {0}")]
    Host(#[from] BadAuthority),
    /// `http://` to somewhere else.
    #[error("without TLS it can only be a loopback address, such as http://127.0.0.1:8080; write https://")]
    NoTls,
    /// Blanks, control characters, quotes, letters outside of ASCII, or a fragment.
    #[error(
        "its path may have the characters of an address alone; write others as %20 and the like, and no `#`"
    )]
    Path,
    /// More than [`NOTICE_URL_BYTES_MAX`] bytes.
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
    /// [`BadWebAddress`] says what is wrong.
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
        let loopback = matches!(authority.host, Host::Address(address) if address.is_loopback());
        if !tls && !loopback {
            return Err(BadWebAddress::NoTls);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { tls, authority, target: format!("{slash}{target}").into() })
    }

    /// Whether it is spoken to over TLS.
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// The host and the port; the port is 443 or 80 where the address names none.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Path and query, with the slash at the beginning.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The value of the header `host`.
    pub fn host_header(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        match self.authority.port == usual {
            true => self.authority.host.to_string(),
            false => self.authority.to_string(),
        }
    }

    /// Scheme, host and port: what of it is no secret.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.host_header())
    }
}

/// Without the path, which is a secret at many services.
impl fmt::Debug for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.origin())
    }
}
