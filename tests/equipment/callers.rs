//! Callers for tests, without the proof that a door would demand.
//!
//! Not part of the product's promises; no module of the product may use it, which the layers test checks.

use provost_base::{AgentId, SessionId};
use provost_domain::{CallOrigin, Door, Principal, ProcessMark, ProcessSession, Proof, Scope, Scopes};

/// A caller of this name, with these rights, from a tree of processes of its own.
///
/// # Panics
/// When the name is not a valid id.
pub fn caller(agent: &str, door: Door, scopes: &[Scope], proof: Proof) -> Principal {
    let session = SessionId::parse(agent).expect("tests use valid names");
    let agent = AgentId::parse(agent).expect("tests use valid names");
    let tree = agent.as_str().bytes().fold(2, |all: u32, it| all.wrapping_mul(31).wrapping_add(it.into()));
    from_tree(Principal::establish(agent, session, door, Scopes::of(scopes), proof), tree)
}

/// The same from a tree of processes with this number; callers of other names come from others.
pub fn from_tree(who: Principal, tree: u32) -> Principal {
    let top = ProcessMark { pid: tree, started: 1 };
    who.coming_from(CallOrigin::new(vec![ProcessSession { top, terminal: true }], 1))
}
