//! Messages to browsers by their push services, by hand: RFC 8030, 8291 and 8292.
//!
//! A push service learns that this daemon has something for this browser, when, and until when; not what. The
//! address of a browser comes from the browser, so that it is checked before each message: a push service of the
//! list, over TLS, at a public address. Anything else would be a request that a stranger has written.

mod message;
mod seal;
mod vapid;

use std::borrow::Cow;
use std::net::IpAddr;

use super::super::engine_handle::now as wall;
use provost_base::{Destination, Host, Timestamp, WebAddress};
use provost_domain::{OutgoingNotice, PushSubscription};
use provost_egress::{Outward, OutwardAnswer, post, system_resolver};
use provost_vault::Vault;
pub use seal::{Agreed, Recipient, seal, seal_with};
pub use vapid::ServerKey;

/// The port of every push service that is not added by the configuration.
const PORT: u16 = 443;

/// Push services of browsers: of Chrome and what is made of it, of Safari, Firefox and Edge. A dot at the beginning
/// stands for any name before it.
const SERVICES: [&str; 4] =
    ["fcm.googleapis.com", ".push.apple.com", ".push.services.mozilla.com", ".notify.windows.com"];

/// Messages to browsers, as the configuration has them.
#[derive(Clone)]
pub struct PushSending {
    /// Who push services can turn to; a sentence where there is none.
    pub subject: Result<String, String>,
    /// Push services beside the usual ones.
    pub hosts: Vec<Destination>,
    /// The authority of those, as PEM, where it is not a public one; a sentence where its file cannot be read.
    pub authority: Result<Option<String>, String>,
}

impl Default for PushSending {
    fn default() -> Self {
        Self { subject: Err(NO_SUBJECT.into()), hosts: Vec::new(), authority: Ok(None) }
    }
}

/// Said where no setting names a subject.
pub const NO_SUBJECT: &str = "push services want to know whom they can turn to: set `subject` in [push], such as \
    \"mailto:you@example.org\", and then: provost daemon reload";

/// Where a message goes.
pub(super) struct Service {
    to: WebAddress,
    at: Option<IpAddr>,
    authority: Option<String>,
}

impl PushSending {
    /// Whether messages may go to an address.
    ///
    /// # Errors
    /// Why none may, in words that quote the host alone.
    pub fn check(&self, endpoint: &str) -> Result<(), String> {
        self.service(endpoint).map(drop)
    }

    /// The push service of an address, if messages may go there.
    ///
    /// # Errors
    /// Why none may, in words that quote the host alone.
    pub(super) fn service(&self, endpoint: &str) -> Result<Service, String> {
        let to = WebAddress::parse(endpoint).map_err(|why| format!("the browser's address {why}"))?;
        if !to.tls() {
            return Err("the browser's address does not begin with https://".into());
        }
        let Host::Name(name) = &to.authority().host else {
            return Err("the browser's address has no name of a host; push services have names".into());
        };
        if let Some(added) = self.hosts.iter().find(|it| it.authority == *to.authority()) {
            let (at, authority) = (added.at, self.authority.clone()?);
            return Ok(Service { to, at, authority });
        }
        let is_one = |it: &str| match it.starts_with('.') {
            true => name.ends_with(it) && name.len() > it.len(),
            false => **name == *it,
        };
        if to.authority().port == PORT && SERVICES.into_iter().any(is_one) {
            return Ok(Service { to, at: None, authority: None });
        }
        Err(format!(
            "{} is no push service that is known; if it is one, add it to `hosts` in [push], and then: \
             provost daemon reload",
            to.authority()
        ))
    }
}

/// Why a message was not sent.
pub(super) enum Unsent {
    /// It may be sent later.
    Later(String),
    /// This browser gets none any more, until it is subscribed again.
    Never(&'static str),
}

/// Said of browsers that were subscribed with a key that is gone.
const OTHER_KEY: &str = "it was subscribed with another key of the daemon than the present one";

/// Sends one notice to one browser.
pub(super) async fn send(
    to: &PushSubscription,
    sending: &PushSending,
    vault: &Vault,
    (notice, waiting, now): (&OutgoingNotice, usize, Timestamp),
) -> Result<OutwardAnswer, Unsent> {
    let service = sending.service(&to.endpoint).map_err(Unsent::Later)?;
    let subject = sending.subject.clone().map_err(Unsent::Later)?;
    let vault = vault.clone();
    let read = tokio::task::spawn_blocking(move || ServerKey::of(&vault)).await;
    let key = read.unwrap_or_else(|_| Err("its key could not be read".into())).map_err(Unsent::Later)?;
    if key.public() != *to.server_key {
        return Err(Unsent::Never(OTHER_KEY));
    }
    let recipient = Recipient::read(&to.p256dh, &to.auth).map_err(Unsent::Later)?;
    let message = message::of(notice, &to.origin, waiting, now);
    let body = seal(&recipient, message.text.as_bytes()).map_err(Unsent::Later)?;
    let authorization = key.authorization(&service.to.origin(), &subject, wall()).map_err(Unsent::Later)?;
    let headers = [
        ("content-type", "application/octet-stream".to_owned()),
        ("content-encoding", "aes128gcm".to_owned()),
        ("ttl", message.ttl_s.to_string()),
        ("urgency", message.urgency.to_owned()),
        ("topic", message.topic),
        ("authorization", authorization),
    ];
    let headers = headers.map(|(name, value)| (Cow::Borrowed(name), value)).to_vec();
    let Service { to, at, authority } = service;
    post(Outward { to, at, authority, headers, body }, system_resolver()).await.map_err(Unsent::Later)
}
