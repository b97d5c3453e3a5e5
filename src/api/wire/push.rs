//! The types for browsers that get notices through their push services. Bytes are base64url without padding, as
//! browsers' `toJSON` writes them.

use serde::{Deserialize, Serialize};

use super::NoticeAttempt;

/// Answer to `GET /push`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Push {
    /// All subscribed browsers, the oldest first.
    pub browsers: Vec<PushBrowser>,
    /// The most browsers that there may be.
    pub most: usize,
    /// The reason why none can get notices.
    pub problem: Option<String>,
}

/// A browser that gets notices. Its address is its own secret, and is never shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushBrowser {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Scheme, host and port of its push service.
    pub host: String,
    /// The page at which it was subscribed.
    pub origin: String,
    /// When it was subscribed.
    pub added_at: String,
    /// The number of owed notices.
    pub owed: usize,
    /// When the oldest of these was made.
    pub owed_since: Option<String>,
    /// The last attempt since the daemon's start.
    pub last: Option<NoticeAttempt>,
}

/// Answer to `POST /begin-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushKey {
    /// The daemon's public key, with which a browser subscribes: an uncompressed point of P-256.
    pub key: String,
}

/// `POST /offer-push`: a browser's data about its subscription.
// No `Debug`: it holds secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferPush {
    /// The address at which its push service accepts messages for it.
    pub endpoint: String,
    /// Its public key.
    pub p256dh: String,
    /// The authentication secret that it shares.
    pub auth: String,
    /// The daemon's key with which it subscribed.
    pub key: String,
    /// The page at which it was subscribed.
    pub origin: String,
}

/// Answer to [`OfferPush`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushOffered {
    /// SHA-256 of the offer as canonical JSON, hexadecimal: a passkey signs it. A page computes it itself, and compares.
    pub offer: String,
    /// How long it can be signed, in milliseconds.
    pub good_ms: u64,
}

/// The arguments of the verb `subscribe-push`, which only a passkey's signature carries out: the browser of this offer gets notices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribePush {
    /// The browser's name for people.
    pub name: String,
    /// The digest of the offer.
    pub offer: String,
}

/// `POST /remove-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovePush {
    /// The id of the browser, or its name if only one browser has it.
    pub id: String,
}

/// Answer to [`RemovePush`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushGone {
    /// The id of the browser.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// `POST /snooze-push`: a browser wants the notice of an approval once more, later.
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoozePush {
    /// The address at which its push service accepts messages for it; only this browser and the daemon know it.
    pub endpoint: String,
    /// The number of the approval.
    pub approval: u64,
}

/// Answer to [`SnoozePush`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushSnoozed {
    /// When the notice comes, if the approval still waits then.
    pub until: String,
}

/// `POST /test-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestPush {
    /// The id of the browser, or its name if only one browser has it.
    pub id: String,
}

/// Answer to [`TestPush`], if its push service has accepted the sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushTested {
    /// The id of the browser.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The push service's answer, as text.
    pub says: String,
}
