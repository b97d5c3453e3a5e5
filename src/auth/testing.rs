//! Callers for tests, without the proof that a door would have asked for.
//!
//! Not part of the product's promises; no module of the product may use it, which the layers test checks.

use crate::base::{AgentId, SessionId};
use crate::domain::{Door, Principal, Proof, Scope, Scopes};

/// A caller of this name, with these rights.
///
/// # Panics
/// When the name is not a valid id.
pub fn caller(agent: &str, door: Door, scopes: &[Scope], proof: Proof) -> Principal {
    let session = SessionId::parse(agent).expect("tests use valid names");
    let agent = AgentId::parse(agent).expect("tests use valid names");
    Principal::establish(agent, session, door, Scopes::of(scopes), proof)
}
