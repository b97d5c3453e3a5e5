//! The types for tokens. Only the answer to `POST /mint-token` contains a token itself, once.

use serde::{Deserialize, Serialize};

/// `POST /mint-token`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MintToken {
    /// The agent that the token is for; a name of the daemon's or of a person's is refused.
    pub agent: String,
    /// Its rights: `read`, `join`, `coordinate`, `delegate`, `work`; the first three when absent.
    pub scopes: Option<Vec<String>>,
    /// How long it is valid, in seconds; a day when absent, a week at most.
    pub ttl_s: Option<u64>,
}

/// Answer to [`MintToken`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minted {
    /// The token, shown this once.
    pub secret: String,
    /// The description of the token, which the daemon keeps.
    pub token: Token,
}

/// A token without its secret. An element of the answer to `GET /tokens`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Token {
    /// The id that identifies it in `POST /revoke-tokens`.
    pub id: String,
    /// The agent that the token is for.
    pub agent: String,
    /// The rights that it gives, in the words of `MintToken::scopes`.
    pub scopes: Vec<String>,
    /// When it was made.
    pub minted_at: String,
    /// The agent or the person that requested it.
    pub minted_by: String,
    /// When it expires.
    pub expires_at: String,
}

/// `POST /revoke-tokens`: revokes one by its id, or all of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RevokeTokens {
    /// The id of the token to revoke; not together with `agent`.
    pub id: Option<String>,
    /// The agent whose tokens are all revoked; not together with `id`.
    pub agent: Option<String>,
}
