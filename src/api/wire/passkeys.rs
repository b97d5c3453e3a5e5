//! Passkeys as they travel: what is to be signed, what was signed, and the list. Bytes are base64url without padding, as
//! browsers' `toJSON` writes them.

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
    /// Everything that a page shows of it, as one canonical JSON text: its title, risk and end, and the blocks to draw.
    pub view: String,
    /// SHA-256 of that text, hexadecimal. A page computes it itself.
    pub view_digest: String,
    /// The core's digest of what waits.
    pub shown: String,
    /// Of an apply, the symbols that it touches, as the files are now, and who else holds them. It is not signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
}

/// A place that an apply touches.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Touch {
    /// `file:Path`, or the file, where no symbol of it can be named.
    pub at: String,
    /// An agent other than the asker that holds it, or is about to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// `lock`, `claim`, `lease` or `intent`; absent where there is no holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// What the holder says that it does, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// `POST /word-challenge`: an answer to an approval, the revocation of a passkey, or a verb of the own API.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WordChallenge {
    /// The approval that is answered.
    pub approval: Option<u64>,
    /// Yes or no to it.
    pub grant: Option<bool>,
    /// The note for its asker.
    pub note: Option<String>,
    /// The digest of the view that the page shows; another one is refused.
    pub view: Option<String>,
    /// The passkey that is to count no more, by its id.
    pub revoke: Option<String>,
    /// The verb, by the path of the own API: `cancel-task`, `say-to-task`, `unlock`, `revoke-tokens`, `switch-worker`, `end-web-session`,
    /// `subscribe-push`, `remove-push`, `apply-task`, `undo`, `discard-task`, `delegate`, `end-wait`, `message-agents`,
    /// `answer-question`.
    pub verb: Option<String>,
    /// Its arguments: the body of that path. `unlock` with `force` has a `reason` beside them, and so has `end-wait`; `delegate` has
    /// the rules' answer as it was shown as `rules`; `apply-task` and `undo` have `seen`. `subscribe-push`, `message-agents` and
    /// `answer-question` have no path of their own: nothing but a signature has a browser told, or speaks for the person there.
    pub arguments: Option<Value>,
}

/// What a passkey is to sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Challenge {
    /// By which the signature is handed in, once.
    pub nonce: String,
    /// The text that says what is signed. A page makes it itself of what it shows, and compares.
    pub transcript: String,
    /// SHA-256 of the text: `challenge` for the browser.
    pub challenge: String,
    /// For how long it is good, in milliseconds.
    pub good_ms: u64,
    /// The passkeys that may sign; of the page's own name, all are offered to the browser.
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
    /// How a browser reaches it.
    pub transports: Vec<String>,
}

/// What a browser brings from `navigator.credentials.get()`.
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
    /// What the browser brings.
    pub assertion: Assertion,
}

/// Answer to [`SignedWord`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WordDone {
    /// The approval that was answered, if one was.
    pub approval: Option<u64>,
    /// Its task.
    pub task: Option<String>,
    /// Why a granted command was not carried out after all.
    pub failed: Option<String>,
    /// The passkey that was revoked, if one was.
    pub revoked: Option<String>,
    /// The verb that was carried out, if it was one.
    pub verb: Option<String>,
    /// What came of the verb, in a sentence, where there is more to say than that it is done.
    pub said: Option<String>,
}

/// Answer to `GET /passkeys`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Passkeys {
    /// All of them, revoked ones last.
    pub passkeys: Vec<Passkey>,
    /// Whether a person has enrolled one, as `passkey-if-enrolled` sees it.
    pub enrolled: bool,
    /// Whether the list is root's.
    pub of_root: bool,
    /// Until when none counts after a reset.
    pub waits_until: Option<String>,
    /// By how much the clock went on further than the daemon has run since then, in seconds, where that is much: the wait is counted in time
    /// that the daemon runs.
    pub leapt_s: Option<u64>,
    /// Why the list cannot be used, so that none counts.
    pub problem: Option<String>,
    /// The id of this daemon, which signatures are for.
    pub daemon: String,
    /// The pages that may ask for a passkey.
    pub origins: Vec<String>,
    /// The new one for which a known one is to sign at this page or another.
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
    /// The digest of all these, which is signed. Both pages compute it themselves, and show its beginning.
    pub enrol: String,
    /// What a known passkey is to sign. It is not used up by a signature that does not count.
    pub challenge: Challenge,
}

/// `POST /hold-passkey`: instead of [`ConfirmPasskey`], where the known passkeys are of another page.
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
    /// The digest that is to be signed.
    pub enrol: String,
    /// For how long it waits, in seconds.
    pub good_s: u64,
    /// The pages at which a known passkey can sign for it.
    pub pages: Vec<String>,
}

/// `POST /vouch-passkey`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VouchPasskey {
    /// The nonce of the challenge of the passkey that waits.
    pub nonce: String,
    /// The signature of a known one.
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
    /// The model of the authenticator, as it says; nothing proves it.
    pub aaguid: String,
    /// How it came to be known: `code`, `vouched`, `root`.
    pub source: String,
    /// When it was put on record here.
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
    /// Make one although an agent may be at work, which could take the code.
    pub even_so: bool,
}

/// Answer to [`PasskeyCode`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyCodeMade {
    /// The code, shown this once.
    pub code: String,
    /// For how long it is good, in seconds.
    pub good_s: u64,
    /// Whether a known passkey has to sign for the new one.
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

/// Answer to [`BeginPasskey`]: what `navigator.credentials.create()` takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewPasskey {
    /// By which the new passkey is handed in, once.
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

/// `POST /finish-passkey`. The answer is the challenge that the new passkey signs, and a known one with it if there is one.
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
    /// From when passkeys count again.
    pub waits_until: String,
}
