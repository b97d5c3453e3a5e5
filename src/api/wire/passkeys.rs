//! The types for passkeys: challenges, signatures, and the list. Bytes are base64url without padding, as browsers'
//! `toJSON` writes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /approval`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApprovalQuery {
    /// The number of the approval.
    pub id: u64,
}

/// Answer to [`ApprovalQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApprovalView {
    /// The whole content that a page shows for it, as one canonical JSON text: its title, risk and end, and the blocks to draw.
    pub view: String,
    /// SHA-256 of that text, hexadecimal. A page computes it itself.
    pub view_digest: String,
    /// The core's digest of the waiting command.
    pub shown: String,
    /// For an apply, the symbols that it touches in the present files, with the other agents that hold them. This is not signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
}

/// A place that an apply touches.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Touch {
    /// `file:Path`; only the file if no symbol of it can be named.
    pub at: String,
    /// An agent other than the asker that holds it, or is about to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// `lock`, `claim`, `lease` or `intent`; absent if there is no holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// The holder's own description of its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// `POST /word-challenge`: an answer to an approval, the revocation of a passkey, or a verb of the own API.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WordChallenge {
    /// The approval to answer.
    pub approval: Option<u64>,
    /// Whether the person grants it.
    pub grant: Option<bool>,
    /// The note for its asker.
    pub note: Option<String>,
    /// The digest of the view that the page shows; the daemon refuses another one.
    pub view: Option<String>,
    /// The id of the passkey to revoke.
    pub revoke: Option<String>,
    /// The verb, by the path of the own API: `cancel-task`, `say-to-task`, `unlock`, `revoke-tokens`, `switch-worker`, `end-web-session`,
    /// `subscribe-push`, `remove-push`, `apply-task`, `undo`, `discard-task`, `delegate`, `end-wait`, `message-agents`,
    /// `answer-question`.
    pub verb: Option<String>,
    /// Its arguments: the body of that path. `unlock` with `force` and `end-wait` add a `reason`; `delegate` adds, as `rules`, the rules'
    /// answer that the person was shown; `apply-task` and `undo` have `seen`. `subscribe-push`, `message-agents` and `answer-question`
    /// have no path of their own: only a signature lets a browser get notices, or speaks for the person there.
    pub arguments: Option<Value>,
}

/// The text that a passkey signs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Challenge {
    /// The nonce with which the signature is sent, once.
    pub nonce: String,
    /// The text that says what is signed. A page makes it itself from its content, and compares.
    pub transcript: String,
    /// SHA-256 of the text: `challenge` for the browser.
    pub challenge: String,
    /// How long it is valid, in milliseconds.
    pub good_ms: u64,
    /// The passkeys that may sign; those of the page's own domain are offered to the browser.
    pub allow: Vec<AllowedPasskey>,
}

/// A passkey that may sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllowedPasskey {
    /// The credential's id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The domain that it was made for.
    pub rp_id: String,
    /// The transports by which a browser reaches it.
    pub transports: Vec<String>,
}

/// The result of `navigator.credentials.get()` in a browser.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assertion {
    /// The credential's id.
    pub credential: String,
    /// `response.clientDataJSON`.
    pub client_data: String,
    /// `response.authenticatorData`.
    pub authenticator_data: String,
    /// `response.signature`.
    pub signature: String,
}

/// `POST /signed-word`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedWord {
    /// The nonce of the challenge. It is used up by this request, whether the signature is good or not.
    pub nonce: String,
    /// The browser's result.
    pub assertion: Assertion,
}

/// Answer to [`SignedWord`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WordDone {
    /// The approval that was answered, if one was.
    pub approval: Option<u64>,
    /// Its task.
    pub task: Option<String>,
    /// The reason why a granted command was not carried out after all.
    pub failed: Option<String>,
    /// The passkey that was revoked, if one was.
    pub revoked: Option<String>,
    /// The verb that was carried out, if any.
    pub verb: Option<String>,
    /// The outcome of the verb, as a sentence, if it says more than that the verb is done.
    pub said: Option<String>,
}

/// Answer to `GET /passkeys`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Passkeys {
    /// All passkeys, revoked ones last.
    pub passkeys: Vec<Passkey>,
    /// Whether a person has enrolled a passkey, in the sense of `passkey-if-enrolled`.
    pub enrolled: bool,
    /// Whether the list belongs to root.
    pub of_root: bool,
    /// Until when no passkey counts after a reset.
    pub waits_until: Option<String>,
    /// How much further the clock went on since then than the daemon has run, in seconds, if that is much: the wait
    /// counts only time in which the daemon runs.
    pub leapt_s: Option<u64>,
    /// The reason why the list cannot be used, so that no passkey counts.
    pub problem: Option<String>,
    /// The id of this daemon, for which signatures are made.
    pub daemon: String,
    /// The pages that may ask for a passkey.
    pub origins: Vec<String>,
    /// The new passkey that waits for the signature of a known one, at this page or another.
    #[serde(default)]
    pub waiting: Option<WaitingPasskey>,
}

/// A new passkey that has signed for itself at its own page, and waits for the signature of a known one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WaitingPasskey {
    /// The credential's id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The domain that it was made for.
    pub rp_id: String,
    /// Its public key, as a JSON Web Key.
    pub key: Value,
    /// The digest of these members, which is signed. Both pages compute it themselves, and show its beginning.
    pub enrol: String,
    /// The challenge for a known passkey. An invalid signature does not use it up.
    pub challenge: Challenge,
}

/// `POST /hold-passkey`: instead of [`ConfirmPasskey`], if the known passkeys belong to another page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HoldPasskey {
    /// The nonce of the challenge.
    pub nonce: String,
    /// The new passkey's signature.
    pub own: Assertion,
}

/// Answer to [`HoldPasskey`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PasskeyHeld {
    /// The digest to sign.
    pub enrol: String,
    /// How long it waits, in seconds.
    pub good_s: u64,
    /// The pages at which a known passkey can sign for it.
    pub pages: Vec<String>,
}

/// `POST /vouch-passkey`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VouchPasskey {
    /// The nonce of the waiting passkey's challenge.
    pub nonce: String,
    /// The signature of a known passkey.
    pub assertion: Assertion,
}

/// One passkey.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential's id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The domain that it was made for.
    pub rp_id: String,
    /// `ES256`, `Ed25519` or `RS256`.
    pub algorithm: String,
    /// Its public key's fingerprint, RFC 7638: the same in root's list, and in a check of the journal.
    pub fingerprint: String,
    /// Its public key, as a JSON Web Key.
    pub key: Value,
    /// Whether its manager can sync it to other devices.
    pub synced: bool,
    /// The model of the authenticator, by its own unproven statement.
    pub aaguid: String,
    /// The way in which it was enrolled: `code`, `vouched`, `root`.
    pub source: String,
    /// When it was recorded here.
    pub added_at: Option<String>,
    /// When it was last used here.
    pub used_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// Its counter when it was last used here; 0 for those that have none.
    pub counter: u32,
}

/// `POST /passkey-code`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PasskeyCode {
    /// Whether to make one although an agent may be at work, which could take the code.
    pub even_so: bool,
}

/// Answer to [`PasskeyCode`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyCodeMade {
    /// The code, shown this once.
    pub code: String,
    /// How long it is valid, in seconds.
    pub good_s: u64,
    /// Whether a known passkey must sign for the new one.
    pub vouch: bool,
    /// The pages at which a passkey can be made.
    pub origins: Vec<String>,
}

/// `POST /begin-passkey`.
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginPasskey {
    /// The code.
    pub code: String,
    /// The new passkey's name for people.
    pub name: String,
    /// The page's origin.
    pub origin: String,
}

/// Answer to [`BeginPasskey`]: the options for `navigator.credentials.create()`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewPasskey {
    /// The nonce with which the new passkey is sent, once.
    pub nonce: String,
    /// `challenge`.
    pub challenge: String,
    /// `rp.id`.
    pub rp_id: String,
    /// `user.id`.
    pub user_id: String,
    /// `user.name`.
    pub user_name: String,
    /// The algorithms of `pubKeyCredParams`.
    pub algorithms: Vec<i64>,
    /// The passkeys of `excludeCredentials`.
    pub exclude: Vec<AllowedPasskey>,
}

/// `POST /finish-passkey`. The answer is the challenge that the new passkey signs, and also a known one if there is one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FinishPasskey {
    /// The nonce of [`NewPasskey`].
    pub nonce: String,
    /// `response.clientDataJSON`.
    pub client_data: String,
    /// `response.attestationObject`.
    pub attestation_object: String,
    /// `response.getTransports()`.
    #[serde(default)]
    pub transports: Vec<String>,
}

/// `POST /confirm-passkey`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConfirmPasskey {
    /// The nonce of the challenge.
    pub nonce: String,
    /// The new passkey's signature.
    pub own: Assertion,
    /// The signature of a known passkey over the same challenge; needed if there is one.
    #[serde(default)]
    pub vouch: Option<Assertion>,
}

/// `POST /revoke-passkey`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevokePasskey {
    /// The passkey, by its id or its name.
    pub passkey: String,
}

/// Answer to `POST /reset-passkeys`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PasskeysReset {
    /// When passkeys begin to count again.
    pub waits_until: String,
}
