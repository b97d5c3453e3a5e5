//! Origins of pages, as a setting.

use toml::de::DeValue;

use super::value::{Context, Value, quoted, text};

/// An origin of pages: scheme, host and port, as browsers write it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WebOrigin(String);

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
        let is_label = |it: &str| {
            let plain = it.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
            !it.is_empty() && plain && !it.starts_with('-') && !it.ends_with('-')
        };
        if host.len() > 253 || !host.split('.').all(is_label) {
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
        let is_local = host == "localhost" || host.ends_with(".localhost");
        if scheme == "http" && !is_local {
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
