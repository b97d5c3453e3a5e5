//! Turns proof into rights.
//!
//! These are the only functions that make a [`Principal`]. Each has the proof that it needs in its name or
//! its arguments, so that a review can see a call without that proof. Only [`super::names`] calls those that
//! need little proof, for which a name has to be free.

use std::sync::LazyLock;

use provost_base::{AGENT, AgentId, SessionId, TaskId, look_of};
pub use provost_base::{DASHBOARD, PAGE};
use provost_domain::post::slug_of_branch;
use provost_domain::{Door, Principal, Proof, Scope, Scopes, Token, provost};
use provost_passkey::Asserted;

/// The rights of an agent with a key of its own, beyond delegating and working.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Proved by the secret that all clients share.
    Shared,
    /// Proved by a key of its own.
    Own,
    /// Proved by a key of its own, made for an approver.
    Approver,
}

/// Checks whether no client may claim a name, in any spelling: it is one of the daemon's, its pages' or the people's at the
/// terminal. An agent of such a name would be in no list of agents, or would shut a page out with a token.
pub fn is_reserved(agent: &AgentId) -> bool {
    /// Compared by their look: `pr0vost` is read as `provost`.
    static OWN: LazyLock<Vec<String>> = LazyLock::new(|| {
        let names = ["provost", "orchestrator", "human", "host", "system"];
        names.into_iter().chain(Door::pages()).map(look_of).collect()
    });
    let name = agent.as_str().to_lowercase();
    // Nor with characters beside it that are not ASCII.
    let plain = slug_of_branch(&name);
    let is_people = |before: &str| look_of(before) == look_of("user");
    let people = name.trim_start().split_once(':').is_some_and(|(before, _)| is_people(before));
    people || plain.is_some_and(|it| OWN.contains(&look_of(it.as_str())))
}

/// Checks whether a page speaks at its own door under its own name, which names only that page there.
pub(super) fn is_page(agent: &AgentId, door: Door) -> bool {
    door.row().page == Some(agent.as_str())
}

/// Returns a DevIt client whose frame verified. The shared secret never approves.
pub(super) fn devit(agent: AgentId, standing: Standing) -> Principal {
    let (proof, scopes) = match standing {
        Standing::Shared => (Proof::SharedKey, Scopes::of(AGENT)),
        Standing::Own => (Proof::OwnKey, Scopes::of(AGENT)),
        Standing::Approver => {
            let approver = [Scope::Read, Scope::Join, Scope::Coordinate, Scope::Approve];
            (Proof::OwnKey, Scopes::of(&approver))
        }
    };
    Principal::establish(agent.clone(), session_of(&agent), Door::Devit, scopes, proof)
}

/// Returns a process of this user on the own API, under the user's name. At a terminal it is a person, who may approve.
pub fn user(name: AgentId, terminal: bool) -> Principal {
    let mut scopes = AGENT.to_vec();
    scopes.push(Scope::Operate);
    if terminal {
        scopes.push(Scope::Approve);
    }
    let proof = if terminal { Proof::Terminal } else { Proof::PeerUid };
    Principal::establish(name.clone(), session_of(&name), Door::Own, Scopes::of(&scopes), proof)
}

/// Returns the person at the desktop, proved by a click on a notice. They may answer approvals, and nothing else.
pub fn desktop(name: AgentId) -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Approve]);
    Principal::establish(name.clone(), session_of(&name), Door::Own, scopes, Proof::Desktop)
}

/// Returns the person whose passkey has signed exactly this request, with rights for this one submit alone. The
/// signature is the proof, not the process that carries it.
pub fn passkey(name: AgentId, _signed: &Asserted) -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Operate, Scope::Approve]);
    Principal::establish(name.clone(), session_of(&name), Door::Own, scopes, Proof::Passkey)
}

/// Returns the person whose passkey has signed exactly this verb, with rights for its execution alone. They are the
/// user's rights, as for a person at a terminal, without the right to answer approvals.
pub fn passkey_verb(name: AgentId, _signed: &Asserted) -> Principal {
    let scopes: Vec<Scope> = AGENT.iter().copied().chain([Scope::Operate]).collect();
    Principal::establish(name.clone(), session_of(&name), Door::Own, Scopes::of(&scopes), Proof::Passkey)
}

/// Returns the person at an agent's host, by the host's word. They may answer the requests of this agent if a rule
/// accepts that word, and nothing else.
pub fn host_dialog(agent: &Principal) -> Principal {
    let (agent, door) = (agent.agent().clone(), agent.door());
    let scopes = Scopes::of(&[Scope::Read, Scope::Approve]);
    Principal::establish(agent.clone(), session_of(&agent), door, scopes, Proof::HostDialog)
}

/// Returns a process of this user that speaks under a name without proof, with the rights that the door's row gives
/// to such names; `None` if it gives no rights.
pub(super) fn by_name(agent: AgentId, door: Door) -> Option<Principal> {
    let scopes = Scopes::of(door.row().unproved?);
    Some(Principal::establish(agent.clone(), session_of(&agent), door, scopes, Proof::PeerUid))
}

/// Returns the rights of a token whose maker names none.
pub fn usual_token_scopes() -> Scopes {
    Scopes::of(&[Scope::Read, Scope::Join, Scope::Coordinate])
}

/// Returns the bearer of a token: the agent that it was minted for, with the token's rights.
pub(super) fn bearer(token: &Token, door: Door) -> Principal {
    let agent = token.agent.clone();
    Principal::establish(agent.clone(), session_of(&agent), door, token.scopes, Proof::Token)
        .sharing(token.share.clone())
}

/// Returns a jailed worker at the door of its run. It works and coordinates; it delegates nothing, answers no
/// approval and captures nothing. Its session is its task, the only one in which it has a say.
pub fn worker(agent: AgentId, task: &TaskId) -> Principal {
    let scopes = Scopes::of(&[Scope::Join, Scope::Coordinate, Scope::Work]);
    let session = SessionId::parse(task.as_str()).expect("both kinds of id accept the same text");
    Principal::establish(agent, session, Door::Worker, scopes, Proof::Jailed)
}

/// Returns a jailed agent in whose name the daemon puts permission requests to the rules. No door gives it out,
/// since it may also delegate.
pub fn jailed_asker(agent: AgentId, task: &TaskId) -> Principal {
    let session = SessionId::parse(task.as_str()).expect("both kinds of id accept the same text");
    Principal::establish(agent, session, Door::Worker, Scopes::of(&[Scope::Delegate]), Proof::Jailed)
}

/// Returns the daemon itself: for effects that report back, and for the daemon's own records.
pub fn system() -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Coordinate, Scope::Operate, Scope::Host]);
    Principal::establish(provost(), session_of(&provost()), Door::Internal, scopes, Proof::Internal)
}

/// Returns the session of an agent at a door without sessions of its own: the agent's name.
fn session_of(agent: &AgentId) -> SessionId {
    SessionId::parse(agent.as_str()).expect("both kinds of id accept the same text")
}
