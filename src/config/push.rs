//! The types of the settings about messages to browsers.

use toml::de::DeValue;

use super::notify::NotifyKind;
use super::table::PushSettings;
use super::value::{Context, Value, lists, quoted, text};
use provost_base::{Authority, Destination, Hostname, WebAddress};

/// A push service that the configuration adds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct PushHost(pub Destination);

lists! { PushHost => "list of hosts" }

impl PushHost {
    /// Reads `host`, `host:port` or `host:port=ADDRESS`. The host is a name, since its certificate has to name it.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("{text:?} {why}");
        let (name, at) = text.split_once('=').map_or((text, None), |(name, at)| (name, Some(at)));
        let authority = Authority::parse_or(name, 443).map_err(|why| wrong(&why))?;
        if matches!(authority.host, Hostname::Address(_)) {
            return Err(wrong(
                &"is an address; write the name that its certificate has, and the address behind \"=\"",
            ));
        }
        let whole = at.map_or_else(|| authority.to_string(), |at| format!("{authority}={at}"));
        Destination::parse(&whole).map(Self).map_err(|why| wrong(&why))
    }
}

impl Value for PushHost {
    const NAME: &'static str = "host";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0.to_string()))
    }
}

/// The contact that push services can turn to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct PushSubject(String);

impl PushSubject {
    /// Reads a `mailto:` or `https://` address. Apple's service refuses addresses of this machine, such as `@localhost`.
    ///
    /// # Errors
    /// The mistake in the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}"));
        let host = match (text.strip_prefix("mailto:"), text.strip_prefix("https://")) {
            (Some(mail), _) => match mail.split_once('@') {
                Some((name, host)) if is_mail_name(name) => format!("https://{host}"),
                _ => return wrong("is no mail address; write \"mailto:you@example.org\""),
            },
            (None, Some(_)) => text.to_owned(),
            _ => return wrong("begins with neither mailto: nor https://"),
        };
        let address = WebAddress::parse(&host).map_err(|why| format!("{text:?}: {why}"))?;
        let Hostname::Name(name) = &address.authority().host else {
            return wrong("names an address; push services want a name that the world knows");
        };
        if !name.contains('.') || &**name == "localhost" || name.ends_with(".localhost") {
            return wrong("names this machine; push services want a name that the world knows");
        }
        if text.starts_with("mailto:")
            && address.host_header() != host["https://".len()..].to_ascii_lowercase()
        {
            return wrong("is no mail address; write \"mailto:you@example.org\"");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the address as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_mail_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&it);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

impl Value for PushSubject {
    const NAME: &'static str = "address";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?)
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

impl PushSettings {
    pub(super) fn usual_kinds() -> Vec<NotifyKind> {
        use NotifyKind::{Answered, Approval, Failed, Passkey, Tainted};
        vec![Approval, Answered, Failed, Tainted, Passkey]
    }
}
