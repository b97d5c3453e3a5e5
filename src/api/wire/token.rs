//! Tokens as they travel. The token itself does so once.

use serde::{Deserialize, Serialize};

/// `POST /mint-token`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MintToken {
    /// Whose.
    pub agent: String,
    /// What for: `read`, `join`, `coordinate`, `delegate`, `work`; the first three when absent.
    pub scopes: Option<Vec<String>>,
    /// For how long, in seconds; a day when absent, a week at most.
    pub ttl_s: Option<u64>,
}

/// Answer to [`MintToken`].
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minted {
    /// The token, shown this once.
    pub secret: String,
    /// What is kept of it.
    pub token: Token,
}

/// A token, without itself. An element of the answer to `GET /tokens`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Token {
    /// What it goes by.
    pub id: String,
    /// Whose.
    pub agent: String,
    /// What for.
    pub scopes: Vec<String>,
    /// Since when.
    pub minted_at: String,
    /// By whom.
    pub minted_by: String,
    /// Until when.
    pub expires_at: String,
}

/// `POST /revoke-tokens`: one by its id, or all of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RevokeTokens {
    /// The one.
    pub id: Option<String>,
    /// The agent.
    pub agent: Option<String>,
}
