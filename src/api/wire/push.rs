//! Browsers that are told by their push services, as they travel. Bytes are base64url without padding, as browsers' `toJSON` writes
//! them.

use serde::{Deserialize, Serialize};

use super::NoticeAttempt;

/// Answer to `GET /push`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Push {
    /// All of them, the oldest first.
    pub browsers: Vec<PushBrowser>,
    /// How many there may be.
    pub most: usize,
    /// Why none can be told, if none can.
    pub problem: Option<String>,
}

/// A browser that is told. Its address is its own secret, and is shown to no one.
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
    /// When it was.
    pub added_at: String,
    /// How many notices it is owed.
    pub owed: usize,
    /// When the oldest of these was made.
    pub owed_since: Option<String>,
    /// How the last attempt went, since the daemon's start.
    pub last: Option<NoticeAttempt>,
}

/// Answer to `POST /begin-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushKey {
    /// The daemon's public key, with which a browser subscribes: an uncompressed point of P-256.
    pub key: String,
}

/// `POST /offer-push`: what a browser has said of its subscription.
// No `Debug`: it holds secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferPush {
    /// Where its push service takes messages for it.
    pub endpoint: String,
    /// Its public key.
    pub p256dh: String,
    /// The secret that it shares.
    pub auth: String,
    /// The daemon's key that it was subscribed with.
    pub key: String,
    /// The page at which it was subscribed.
    pub origin: String,
}

/// Answer to [`OfferPush`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushOffered {
    /// SHA-256 of the offer as canonical JSON, hexadecimal: what a passkey signs. A page computes it itself, and compares.
    pub offer: String,
    /// For how long it can be signed, in milliseconds.
    pub good_ms: u64,
}

/// What a passkey signs as the verb `subscribe-push`, and nothing else takes: the browser of this offer is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribePush {
    /// The browser's name for people.
    pub name: String,
    /// The offer, by its digest.
    pub offer: String,
}

/// `POST /remove-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovePush {
    /// The id of the browser, or its name where only one has it.
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

/// `POST /snooze-push`: a browser that is told wants to hear of a question later once more.
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoozePush {
    /// Where its push service takes messages for it, which nothing but this browser and the daemon knows.
    pub endpoint: String,
    /// The number of the approval.
    pub approval: u64,
}

/// Answer to [`SnoozePush`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushSnoozed {
    /// When it is told, if the approval waits until then.
    pub until: String,
}

/// `POST /test-push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestPush {
    /// The id of the browser, or its name where only one has it.
    pub id: String,
}

/// Answer to [`TestPush`], where its push service has taken the sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushTested {
    /// The id of the browser.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What its push service has answered, in words.
    pub says: String,
}
