//! The address that a worker may connect to: a host and a port, in one spelling only.
//!
//! The same text can mean one host to a check and another to a resolver: a zero byte, a full stop at the end, an
//! address as one number, an IPv4 address inside an IPv6 one. So there is one spelling, everything else is an
//! error, and comparisons and connections take the parsed form.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr as _;

use serde::{Deserialize, Serialize};

/// The longest name of a host, in bytes; the domain name system allows no longer ones.
const NAME_LEN_MAX: usize = 253;
/// The longest part of a name, in bytes.
const LABEL_LEN_MAX: usize = 63;

/// The reason why a text does not name a host and a port. Safe to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAuthority {
    /// The port is missing or invalid.
    #[error("must end with a port, as in \"name:443\"")]
    Port,
    /// A name and a password before the host.
    #[error("must not carry a user or a password")]
    UserInfo,
    /// Letters outside of ASCII, zero bytes, spaces, underscores.
    #[error("may have ASCII letters, digits, hyphens and full stops only")]
    Letters,
    /// An empty or too long part, or a full stop at the end.
    #[error("must be parts of 1 to {LABEL_LEN_MAX} bytes between full stops, without one at the end")]
    Labels,
    /// Numbers that some programs take for an address.
    #[error("looks like an address; write it as four decimal numbers, or in square brackets")]
    Number,
    /// An IPv6 address that stands for an IPv4 one.
    #[error("is an IPv4 address in another spelling; write the IPv4 address")]
    Mapped,
    /// The part after `=` in a destination is not an address, or the part before it not a name.
    #[error("must name one address after \"=\", and a name before it")]
    Pin,
}

/// The host part of an address: a name that still has to be resolved, or an IP address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hostname {
    /// A name in lower case, which still has to be resolved.
    Name(Box<str>),
    /// An IPv4 or IPv6 address that is used as it is, without a resolver.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Authority {
    /// A name or an IP address, in its one spelling.
    pub host: Hostname,
    /// The port; never 0.
    pub port: u16,
}

impl Authority {
    /// Reads `host:port`.
    ///
    /// # Errors
    /// [`BadAuthority`] for every other spelling.
    pub fn parse(text: &str) -> Result<Self, BadAuthority> {
        Self::read(text, None)
    }

    /// Reads `host` or `host:port`.
    ///
    /// # Errors
    /// [`BadAuthority`] for every other spelling.
    pub fn parse_or(text: &str, port: u16) -> Result<Self, BadAuthority> {
        Self::read(text, Some(port))
    }

    fn read(text: &str, default: Option<u16>) -> Result<Self, BadAuthority> {
        if text.contains('@') {
            return Err(BadAuthority::UserInfo);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').ok_or(BadAuthority::Letters)?;
            let port = match after {
                "" => default.ok_or(BadAuthority::Port)?,
                after => port(after.strip_prefix(':').ok_or(BadAuthority::Port)?)?,
            };
            return Ok(Self { host: Hostname::Address(ipv6(inside)?), port });
        }
        let (host, port) = match (text.rsplit_once(':'), default) {
            (Some((host, digits)), _) => (host, port(digits)?),
            (None, Some(default)) => (text, default),
            (None, None) => return Err(BadAuthority::Port),
        };
        Ok(Self { host: name_or_ipv4(host)?, port })
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hostname::Name(name) => f.write_str(name),
            Hostname::Address(IpAddr::V4(it)) => it.fmt(f),
            Hostname::Address(IpAddr::V6(it)) => write!(f, "[{it}]"),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn port(digits: &str) -> Result<u16, BadAuthority> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|port| plain && *port != 0).ok_or(BadAuthority::Port)
}

fn ipv6(text: &str) -> Result<IpAddr, BadAuthority> {
    let address = Ipv6Addr::from_str(text).map_err(|_| BadAuthority::Number)?;
    let first = address.segments();
    let compatible = first[..6] == [0; 6] && !address.is_loopback() && !address.is_unspecified();
    match address.to_ipv4_mapped().is_some() || compatible {
        true => Err(BadAuthority::Mapped),
        false => Ok(IpAddr::V6(address)),
    }
}

fn name_or_ipv4(text: &str) -> Result<Hostname, BadAuthority> {
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.') {
        return Err(BadAuthority::Letters);
    }
    let labels = || text.split('.');
    let fits = |label: &str| (1..=LABEL_LEN_MAX).contains(&label.len());
    if text.len() > NAME_LEN_MAX || !labels().all(fits) {
        return Err(BadAuthority::Labels);
    }
    if labels().any(|label| label.starts_with('-') || label.ends_with('-')) {
        return Err(BadAuthority::Labels);
    }
    // Resolvers take `127.1`, `2130706433` and `0x7f.1` for addresses. Text that ends with a number is one.
    let last = labels().next_back().unwrap_or_default().to_ascii_lowercase();
    let number = last.bytes().all(|b| b.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if number || hexadecimal {
        let address = Ipv4Addr::from_str(text).map_err(|_| BadAuthority::Number)?;
        return Ok(Hostname::Address(IpAddr::V4(address)));
    }
    Ok(Hostname::Name(text.to_ascii_lowercase().into()))
}

/// A destination that a worker may be allowed to reach, as written in the configuration: `name:port`,
/// `address:port`, or `name:port=address`.
///
/// A name leads to public addresses only. An address counts as written, even a private one; with `=` the name is
/// not resolved at all, and stands for that one address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Destination {
    /// The host and port that a worker asks for.
    pub authority: Authority,
    /// The address to connect to for this host; `None` lets the proxy resolve the name.
    pub at: Option<IpAddr>,
}

impl Destination {
    /// Reads `host:port` or `host:port=address`.
    ///
    /// # Errors
    /// [`BadAuthority`] for every other spelling.
    pub fn parse(text: &str) -> Result<Self, BadAuthority> {
        let Some((authority, at)) = text.split_once('=') else {
            return Ok(Self { authority: Authority::parse(text)?, at: None });
        };
        let authority = Authority::parse(authority)?;
        let Hostname::Address(at) = Authority::parse_or(at, authority.port)?.host else {
            return Err(BadAuthority::Pin);
        };
        // The port is given once, before the sign.
        match (&authority.host, Destination::has_port(text)) {
            (Hostname::Name(_), false) => Ok(Self { authority, at: Some(at) }),
            _ => Err(BadAuthority::Pin),
        }
    }

    fn has_port(text: &str) -> bool {
        let at = text.rsplit('=').next().unwrap_or_default();
        at.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
    }

    /// Returns the loopback address that it names, if any.
    pub fn loopback(&self) -> Option<IpAddr> {
        let named = match self.authority.host {
            Hostname::Address(address) => Some(address),
            Hostname::Name(_) => self.at,
        };
        named.filter(|address| address.is_loopback() || address.is_unspecified())
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.authority.fmt(f)?;
        self.at.map_or(Ok(()), |at| write!(f, "={}", Hostname::Address(at)))
    }
}

impl TryFrom<String> for Destination {
    type Error = BadAuthority;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Destination> for String {
    fn from(destination: Destination) -> Self {
        destination.to_string()
    }
}

/// Checks whether an address belongs to a host on the Internet: not to this machine, its network, a group of
/// machines, or a form that wraps one of those.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_ipv4(address),
        IpAddr::V6(address) => is_public_ipv6(address),
    }
}

fn is_public_ipv4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b) {
        // This host, private networks, loopback; multicast and reserved addresses.
        (0 | 10 | 127 | 224.., _) => true,
        // Carriers' networks, link-local and private ones.
        (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168) => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        (192, 0) => c == 0 || c == 2,
        (192, 88) => c == 99,
        (198, 18..=19) => true,
        (198, 51) => c == 100,
        (203, 0) => c == 113,
        _ => false,
    };
    !special
}

/// Checks for the space in use, without documentation and without forms that wrap IPv4 addresses (Teredo, 6to4).
fn is_public_ipv6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let global = first & 0xe000 == 0x2000;
    let special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        || first == 0x2002
        || (first == 0x3fff && second < 0x1000);
    global && !special
}
