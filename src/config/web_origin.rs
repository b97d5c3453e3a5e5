//! Origins and names of pages, as settings.

use toml::de::DeValue;

use super::value::{Context, Value, quoted, text};

/// An origin of pages: scheme, host and port, as browsers write it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WebOrigin(String);

/// Whether a text is a name of a host in lower case.
fn is_name(host: &str) -> bool {
    let is_label = |it: &str| {
        let plain = it.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        !it.is_empty() && plain && !it.starts_with('-') && !it.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

/// Whether browsers lead a name to this machine without asking elsewhere.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

impl WebOrigin {
    /// Reads an origin. Plain HTTP is for names of this machine alone: elsewhere browsers give such pages no passkeys. An
    /// address is no name that a passkey could belong to.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// The origin, as browsers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its host, to which passkeys belong.
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

/// A name of this machine by which browsers ask for the page.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageName(String);

impl PageName {
    /// Reads a name. Browsers lead `localhost` and the names below it to this machine; another name may be led here by its
    /// owner, from anywhere.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !is_name(text) || !is_local(text) {
            return Err(format!("{text:?} is neither \"localhost\" nor a name below it in lower case"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The names where no setting says others.
    pub(super) fn usual() -> Vec<Self> {
        ["provost.localhost", "localhost"].map(|it| Self(it.to_owned())).into()
    }

    /// The name.
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
