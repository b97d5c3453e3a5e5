//! Turns proof into rights.
//!
//! These are the only functions that make a [`Principal`]. Each has the proof that it needs in its name or
//! its arguments, so that a review can see a call without that proof. Only [`super::names`] calls those that
//! need little proof, for which a name has to be free.

use std::sync::LazyLock;

use provost_base::{AGENT, AgentId, SessionId, TaskId, look_of};
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

/// The name as which the page for people reads.
pub const PAGE: &str = "web-page";

/// The name as which a page of the Agent Protocol acts that names no agent.
pub const DASHBOARD: &str = "dashboard";

/// Names that no client may claim, in any spelling: the daemon's own and its pages', and those of people at the terminal. An
/// agent of such a name would stand in no list of agents, or shut a page out by a token.
pub fn is_reserved(agent: &AgentId) -> bool {
    /// What they look like: `pr0vost` is read as `provost`.
    static OWN: LazyLock<[String; 7]> = LazyLock::new(|| {
        ["provost", "orchestrator", "human", "host", "system", PAGE, DASHBOARD].map(look_of)
    });
    let name = agent.as_str().to_lowercase();
    // Nor with anything beside it that is not of ASCII.
    let plain = slug_of_branch(&name);
    let is_people = |before: &str| look_of(before) == look_of("user");
    let people = name.trim_start().split_once(':').is_some_and(|(before, _)| is_people(before));
    people || plain.is_some_and(|it| OWN.contains(&look_of(it.as_str())))
}

/// Whether a page speaks at its own door under its own name, which is nothing but that page there.
pub(super) fn is_page(agent: &AgentId, door: Door) -> bool {
    matches!((door, agent.as_str()), (Door::Web, PAGE) | (Door::AgentProtocol, DASHBOARD))
}

/// A DevIt client whose frame verified. The shared secret never approves.
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

/// A process of this user on the own API, under the user's name. At a terminal it is a person, who may approve.
pub fn user(name: AgentId, terminal: bool) -> Principal {
    let mut scopes = AGENT.to_vec();
    scopes.push(Scope::Operate);
    if terminal {
        scopes.push(Scope::Approve);
    }
    let proof = if terminal { Proof::Terminal } else { Proof::PeerUid };
    Principal::establish(name.clone(), session_of(&name), Door::Own, Scopes::of(&scopes), proof)
}

/// The person whose desktop it is, by a click on a notice: to answer approvals, and for nothing else.
pub fn desktop(name: AgentId) -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Approve]);
    Principal::establish(name.clone(), session_of(&name), Door::Own, scopes, Proof::Desktop)
}

/// The person whose passkey has signed exactly this request: for this one submit, and for nothing else. The signature is the
/// proof, and not the process that carries it.
pub fn passkey(name: AgentId, _signed: &Asserted) -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Operate, Scope::Approve]);
    Principal::establish(name.clone(), session_of(&name), Door::Own, scopes, Proof::Passkey)
}

/// The person whose passkey has signed exactly this verb: for what is carried out of it, and for nothing else. The rights are those
/// of the user, as for a person at a terminal, but for answering.
pub fn passkey_verb(name: AgentId, _signed: &Asserted) -> Principal {
    let scopes: Vec<Scope> = AGENT.iter().copied().chain([Scope::Operate]).collect();
    Principal::establish(name.clone(), session_of(&name), Door::Own, Scopes::of(&scopes), Proof::Passkey)
}

/// The person at an agent's host, as the host says: to answer what this agent has asked for, where a rule
/// believes that, and for nothing else.
pub fn host_dialog(agent: &Principal) -> Principal {
    let (agent, door) = (agent.agent().clone(), agent.door());
    let scopes = Scopes::of(&[Scope::Read, Scope::Approve]);
    Principal::establish(agent.clone(), session_of(&agent), door, scopes, Proof::HostDialog)
}

/// A process of this user that speaks under a name without proof of it, with the rights that the door's row
/// gives to such names; `None` where it gives none.
pub(super) fn by_name(agent: AgentId, door: Door) -> Option<Principal> {
    let scopes = Scopes::of(door.row().unproved?);
    Some(Principal::establish(agent.clone(), session_of(&agent), door, scopes, Proof::PeerUid))
}

/// The rights of a token whose maker names none.
pub fn usual_token_scopes() -> Scopes {
    Scopes::of(&[Scope::Read, Scope::Join, Scope::Coordinate])
}

/// The bearer of a token: the agent that it was minted for, with what it is good for.
pub(super) fn bearer(token: &Token, door: Door) -> Principal {
    let agent = token.agent.clone();
    Principal::establish(agent.clone(), session_of(&agent), door, token.scopes, Proof::Token)
        .sharing(token.share.clone())
}

/// A jailed worker at the door that was made for its run. It works and coordinates; it hands nothing on, answers
/// no approval and captures nothing. Its session is its task, which is the only one that it has a say in.
pub fn worker(agent: AgentId, task: &TaskId) -> Principal {
    let scopes = Scopes::of(&[Scope::Join, Scope::Coordinate, Scope::Work]);
    let session = SessionId::parse(task.as_str()).expect("both kinds of id accept the same text");
    Principal::establish(agent, session, Door::Worker, scopes, Proof::Jailed)
}

/// A jailed agent whose permission requests the daemon puts to the rules in its name. No door gives it out, since it may also
/// delegate.
pub fn jailed_asker(agent: AgentId, task: &TaskId) -> Principal {
    let session = SessionId::parse(task.as_str()).expect("both kinds of id accept the same text");
    Principal::establish(agent, session, Door::Worker, Scopes::of(&[Scope::Delegate]), Proof::Jailed)
}

/// The daemon itself: effects that report back, and what the daemon puts on record.
pub fn system() -> Principal {
    let scopes = Scopes::of(&[Scope::Read, Scope::Coordinate, Scope::Operate, Scope::Host]);
    Principal::establish(provost(), session_of(&provost()), Door::Internal, scopes, Proof::Internal)
}

/// On doors without sessions of their own an agent's presence is its name.
fn session_of(agent: &AgentId) -> SessionId {
    SessionId::parse(agent.as_str()).expect("both kinds of id accept the same text")
}
