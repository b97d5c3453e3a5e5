//! Verbs about tokens: proof for requests that carry no signature.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Scopes, Token};
use provost_base::{AgentId, Digest, Ttl};

/// Mint a token, whose bearer acts as an agent. Only its maker and its bearer have the token itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MintToken {
    /// The digest of the token; the core never has the token itself.
    pub digest: Digest,
    /// The agent that its bearer acts as.
    pub agent: AgentId,
    /// The rights of its bearer, at most those of its maker.
    pub scopes: Scopes,
    /// The time for which the token is valid, from now.
    pub ttl: Ttl,
}

/// The token is valid from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenMinted {
    /// The daemon's record of the token.
    pub token: Arc<Token>,
}

/// End tokens before their time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevokeTokens {
    /// The tokens to end: one by its id, or all of an agent.
    pub which: WhichTokens,
}

/// A choice of tokens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichTokens {
    /// The token with this id.
    Id(Box<str>),
    /// All tokens of this agent.
    Of(AgentId),
}

/// The tokens are no longer valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokensRevoked {
    /// The tokens that were ended.
    pub tokens: Vec<Arc<Token>>,
}
