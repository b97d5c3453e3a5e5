//! Settings for addresses, origins and names of pages.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::value::{Context, Value, quoted, text, words};
use provost_base::{At, Door};

/// An origin of pages: scheme, host and port, as browsers write it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WebOrigin(String);

/// Checks whether a text is the name of a host in lower case.
fn is_name(host: &str) -> bool {
    let is_label = |it: &str| {
        let plain = it.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        !it.is_empty() && plain && !it.starts_with('-') && !it.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

/// Checks whether browsers resolve a name to this machine without asking a server.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

impl WebOrigin {
    /// Reads an origin. Plain HTTP is only for names of this machine, since browsers give other such pages no
    /// passkeys. An IP address is refused, since no passkey can belong to one.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}"));
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("is no origin; write \"https://host.example\"");
        };
        let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
        if !is_name(host) {
            return wrong(
                "has no host in lower case, or something behind it; write scheme, host and port alone",
            );
        }
        if host.rsplit('.').next().is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit())) {
            return wrong("is an address; browsers have passkeys for names alone, such as provost.localhost");
        }
        let usual = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return wrong("begins with neither http:// nor https://"),
        };
        if scheme == "http" && !is_local(host) {
            return wrong(
                "is plain HTTP; browsers have passkeys there for localhost and names below it alone",
            );
        }
        match port.map(str::parse::<u16>) {
            None => {}
            Some(Ok(number)) if number != 0 && number != usual && port == Some(&*number.to_string()) => {}
            _ => return wrong("has a port that browsers do not write like that"),
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the origin, as browsers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns its host, to which passkeys belong.
    pub fn host(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.split_once(':').map_or(rest, |(host, _)| host)
    }
}

impl Value for WebOrigin {
    const NAME: &'static str = "origin";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// A name of this machine under which browsers ask for the page.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageName(String);

impl PageName {
    /// Reads a name. Browsers resolve `localhost` and the names below it to this machine; the owner of any other name
    /// could point it here, from anywhere.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !is_name(text) || !is_local(text) {
            return Err(format!("{text:?} is neither \"localhost\" nor a name below it in lower case"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the names where no setting names others.
    pub(super) fn usual() -> Vec<Self> {
        ["provost.localhost", "localhost"].map(|it| Self(it.to_owned())).into()
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for PageName {
    const NAME: &'static str = "name of this machine";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// An address of the page outside of this machine; HTTPS only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PublicOrigin(WebOrigin);

impl PublicOrigin {
    /// Reads an address. It is compared literally, so no part of it may be a wildcard.
    ///
    /// # Errors
    /// The mistake in the text, and the right form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}"));
        let Some(rest) = text.strip_prefix("https://") else {
            return wrong("does not begin with https://; browsers have no passkeys elsewhere without it");
        };
        if rest.contains('*') {
            return wrong("has a wildcard; write each address in full");
        }
        if rest.contains(['/', '?', '#']) {
            return wrong(
                "has something behind the host; write https:// and the host alone, without a stroke at the end",
            );
        }
        if rest.contains('@') {
            return wrong("has a user in it; write https:// and the host alone");
        }
        let origin = WebOrigin::parse(text)?;
        if is_local(origin.host()) {
            return wrong("is this machine; its names are in `names`");
        }
        if !origin.host().contains('.') {
            return wrong(
                "is a single word; a passkey belongs to a name with a dot, such as host.example.ts.net",
            );
        }
        Ok(Self(origin))
    }

    /// Returns the origin, as browsers write it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns its host, to which passkeys belong.
    pub fn host(&self) -> &str {
        self.0.host()
    }
}

impl Value for PublicOrigin {
    const NAME: &'static str = "origin";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
    fn print(&self) -> Option<String> {
        self.0.print()
    }
}

/// The socket through which a proxy connects: the path of a Unix socket, or a name alone, in the folder of the daemon's sockets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProxySocket(PathBuf);

impl ProxySocket {
    /// Reads a path. A port is refused: any process on this machine could connect to it.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}"));
        if text.trim().is_empty() || text.contains('\0') {
            return wrong("is no path of a socket");
        }
        let last = text.rsplit(['/', ':']).next().unwrap_or_default();
        let is_port = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        if text.contains("://") || is_port {
            return wrong(
                "is no path; a proxy comes in by a Unix socket and never by a port, at which every user could connect",
            );
        }
        let path = match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return wrong("begins with `~`, and HOME is not set"),
            (None, _) => PathBuf::from(text),
        };
        if path.file_name().is_none() {
            return wrong("is no path of a socket");
        }
        if !path.is_absolute() && text.contains('/') {
            return wrong("is neither an absolute path nor a name alone");
        }
        let is_a_doors =
            |door: &Door| matches!(door.row().at, At::Socket) && text == format!("{}.sock", door.name());
        if Door::ALL.iter().any(is_a_doors) {
            return wrong("is the socket of another door");
        }
        Ok(Self(path))
    }

    /// Returns the socket where no setting names another.
    pub(super) fn usual() -> Self {
        Self("web.sock".into())
    }

    /// Returns the path, where `folder` is the folder of the daemon's sockets.
    pub fn within(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }

    /// Checks whether it is in the folder of the daemon's sockets, which no other user but root can enter.
    pub fn is_among_sockets(&self) -> bool {
        !self.0.is_absolute()
    }
}

impl Value for ProxySocket {
    const NAME: &'static str = "path";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        Self::parse(text(value)?, context.home.as_deref())
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0.to_string_lossy()))
    }
}

impl Value for SocketAddr {
    const NAME: &'static str = "address";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text = text(value)?;
        text.parse()
            .map_err(|_| format!("{text:?} is not an address with a port, such as \"127.0.0.1:4730\""))
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

words! {
    /// The readers that may open the page at the names of this machine.
    WebRead {
        /// Any browser of the user.
        Open = "open",
        /// A browser in which a passkey has signed in.
        Passkey = "passkey",
    }
}
