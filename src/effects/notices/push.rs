//! Messages to browsers by their push services, without a library: RFC 8030, 8291 and 8292.
//!
//! A push service learns that this daemon has a message for this browser, when, and until when; not its content. The
//! browser itself names the address, so the daemon checks it before each message: a push service of the
//! list, over TLS, at a public address. Any other address would let a stranger direct the daemon's requests.

mod message;
mod seal;
mod vapid;

use std::borrow::Cow;
use std::net::IpAddr;

use super::super::engine_handle::now as wall;
use provost_base::{Destination, Hostname, Timestamp, WebAddress};
use provost_domain::{OutgoingNotice, PushSubscription};
use provost_egress::{Outward, OutwardAnswer, post, system_resolver};
use provost_vault::Vault;
pub use seal::{Agreed, Recipient, seal, seal_with};
pub use vapid::ServerKey;

/// The port of the usual push services; the configuration may name others.
const PORT: u16 = 443;

/// The push services of browsers: Chrome and its derivatives, Safari, Firefox and Edge. A dot at the beginning
/// stands for any name before it.
const SERVICES: [&str; 4] =
    ["fcm.googleapis.com", ".push.apple.com", ".push.services.mozilla.com", ".notify.windows.com"];

/// Messages to browsers, as the configuration has them.
#[derive(Clone)]
pub struct PushSending {
    /// The contact for push services, or a sentence that says why it is missing.
    pub subject: Result<String, String>,
    /// Push services in addition to the usual ones.
    pub hosts: Vec<Destination>,
    /// The authority of those services, as PEM, if it is not a public one; a sentence if its file cannot be read.
    pub authority: Result<Option<String>, String>,
}

impl Default for PushSending {
    fn default() -> Self {
        Self { subject: Err(NO_SUBJECT.into()), hosts: Vec::new(), authority: Ok(None) }
    }
}

/// The sentence for a configuration that names no subject.
pub const NO_SUBJECT: &str = "push services want to know whom they can turn to: set `subject` in [push], such as \
    \"mailto:you@example.org\", and then: provost daemon reload";

/// The destination of a message.
pub(super) struct Service {
    to: WebAddress,
    at: Option<IpAddr>,
    authority: Option<String>,
}

impl PushSending {
    /// Checks whether messages may go to an address.
    ///
    /// # Errors
    /// The reason why no message may go there, in words that quote the host alone.
    pub fn check(&self, endpoint: &str) -> Result<(), String> {
        self.service(endpoint).map(drop)
    }

    /// Returns the push service of an address, if messages may go there.
    ///
    /// # Errors
    /// The reason why no message may go there, in words that quote the host alone.
    pub(super) fn service(&self, endpoint: &str) -> Result<Service, String> {
        let to = WebAddress::parse(endpoint).map_err(|why| format!("the browser's address {why}"))?;
        if !to.tls() {
            return Err("the browser's address does not begin with https://".into());
        }
        let Hostname::Name(name) = &to.authority().host else {
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

/// The reason why a message was not sent.
pub(super) enum Unsent {
    /// The message may be sent later.
    Later(String),
    /// The browser gets no more messages until it subscribes again.
    Never(&'static str),
}

/// The sentence for browsers that subscribed with a key that is gone.
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
