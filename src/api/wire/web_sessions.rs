//! Browsers that are signed in to the page, as they travel.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Challenge;

/// A browser that is signed in, or an invitation that waits for one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WebSession {
    /// By which it is ended: the beginning of the digest of its secret.
    pub id: String,
    /// `passkey`: a person's; `invited`: one that sees states alone; `invitation`: a link that was not opened.
    pub reader: String,
    /// The name of the passkey that has signed in.
    pub passkey: Option<String>,
    /// The page: scheme, host and port.
    pub origin: String,
    /// When it began.
    pub began_at: String,
    /// When it was used last.
    pub used_at: String,
    /// When it ends, if it is not used again.
    pub ends_at: String,
    /// When it ends at the latest.
    pub until: String,
}

/// `POST /end-web-session`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndWebSession {
    /// The one of this id.
    pub id: Option<String>,
    /// All of them, and every invitation.
    pub all: bool,
}

/// `POST /invite-reader`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InviteReader {
    /// For how long the link, and the browser that opens it, are good; a day by default, seven at the most.
    pub ttl_s: Option<u64>,
    /// At which public page; by default at the first one.
    pub origin: Option<String>,
}

/// Answer to [`InviteReader`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The link, shown this once. It is good for one browser. Its secret is behind `#`, which browsers send to no server.
    pub link: String,
    /// The invitation.
    pub session: WebSession,
}

/// What a browser that signs in is to have signed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignIn {
    /// The challenge, over the verb `open-web-session`, with the passkeys of the page's host; their names are left out.
    pub challenge: Challenge,
    /// The arguments whose digest is signed: `origin`, `session` (the digest of the secret that the browser gets) and `until`.
    pub arguments: Value,
    /// The id of the daemon, which the signature is for.
    pub daemon: String,
}
