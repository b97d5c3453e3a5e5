//! The types for browsers that are signed in to the page.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Challenge;

/// A browser that is signed in, or an invitation that waits for one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WebSession {
    /// The id for ending it: the beginning of the digest of its secret.
    pub id: String,
    /// `passkey`: a person's; `invited`: sees states only; `invitation`: a link that was not opened.
    pub reader: String,
    /// The name of the passkey that has signed in.
    pub passkey: Option<String>,
    /// The page: scheme, host and port.
    pub origin: String,
    /// When it began.
    pub began_at: String,
    /// When it was last used.
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
    /// The id of the session to end.
    pub id: Option<String>,
    /// Whether to end all sessions and invitations.
    pub all: bool,
}

/// `POST /invite-reader`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InviteReader {
    /// How long the link, and the session of the browser that opens it, are valid; a day by default, seven days at most.
    pub ttl_s: Option<u64>,
    /// The public page for the link; the first one by default.
    pub origin: Option<String>,
}

/// Answer to [`InviteReader`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The link, shown this once. It is valid for one browser. Its secret follows `#`, which browsers send to no server.
    pub link: String,
    /// The invitation.
    pub session: WebSession,
}

/// The challenge for a browser that signs in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignIn {
    /// The challenge, over the verb `open-web-session`, with the passkeys of the page's host; their names are left out.
    pub challenge: Challenge,
    /// The arguments whose digest is signed: `origin`, `session` (the digest of the secret that the browser gets) and `until`.
    pub arguments: Value,
    /// The id of the daemon, for which the signature is made.
    pub daemon: String,
}
