//! The caller of a command: its name, its proof and its rights.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::lock::ProcessMark;
use super::origin::CallOrigin;
use super::post::owned_slug;
use provost_base::{AgentId, Door, Scope, Scopes, SessionId, Slug, TaskId};

/// The way in which a caller proved its identity, from weak to strong within each door.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The secret that all clients of a door share; the process belongs to the same user.
    SharedKey,
    /// A key that belongs to this agent alone; the process belongs to the same user.
    OwnKey,
    /// The kernel says that it is a process of this user.
    PeerUid,
    /// A process of this user at a terminal that is not below any agent: a person, as far as that shows it (`weak-human`).
    Terminal,
    /// A click on a notice, by a name that no other process can guess, on the user's session bus: a person,
    /// as far as that shows it.
    Desktop,
    /// The daemon itself.
    Internal,
    /// A token that was minted for this agent.
    Token,
    /// A door that is reached from one jail and from nowhere else.
    Jailed,
    /// The word of the agent's host that a person has answered a dialog. A process that can speak as the agent can
    /// claim that too, so this proves something only if a rule is content with it.
    HostDialog,
    /// A passkey's signature over exactly this request, through any process: a person, as far as the page that showed the
    /// request and the authenticator can be trusted.
    Passkey,
}

/// An authenticated caller. Only `auth` can make one, so that a value of this type is proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Principal {
    agent: AgentId,
    session: SessionId,
    door: Door,
    scopes: Scopes,
    proof: Proof,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Box<CallOrigin>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<Box<Share>>,
}

/// The unit by which shared resources are divided: each has its own share. A name without proof is no such unit,
/// since an agent can use any number of names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// A proved name.
    Name(Slug),
    /// All callers from one tree of processes.
    Process(ProcessMark),
    /// All callers from processes without a terminal above them; a process can make itself look like that at will.
    Detached,
    /// All other callers at one door.
    Door(Door),
}

impl fmt::Display for Share {
    /// Writes the text under which tables keep a share; different shares have different texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Name(name) => write!(f, "name {name}"),
            Share::Process(ProcessMark { pid, started }) => write!(f, "process {pid} since {started}"),
            Share::Detached => f.write_str("detached"),
            Share::Door(door) => write!(f, "door {}", door.name()),
        }
    }
}

impl Principal {
    /// Makes a principal. Reserved for `auth` and for the store when it reads one from disk; the layers test keeps others away.
    pub fn establish(agent: AgentId, session: SessionId, door: Door, scopes: Scopes, proof: Proof) -> Self {
        Self { agent, session, door, scopes, proof, origin: None, share: None }
    }

    /// Returns the principal with the place among processes that it speaks from.
    pub fn coming_from(self, origin: Option<CallOrigin>) -> Self {
        Self { origin: origin.map(Box::new), ..self }
    }

    /// Returns the principal with this share, which came with its proof.
    pub fn sharing(self, share: Option<Share>) -> Self {
        Self { share: share.map(Box::new), ..self }
    }

    /// Returns the principal with those of its rights that `keeps` admits.
    pub(super) fn within(self, keeps: impl Fn(Scope) -> bool) -> Self {
        let kept: Vec<Scope> =
            Scope::ALL.into_iter().filter(|it| self.scopes.has(*it) && keeps(*it)).collect();
        Self { scopes: Scopes::of(&kept), ..self }
    }

    /// Returns the place among processes that it speaks from, as far as known.
    pub(super) fn origin(&self) -> Option<&CallOrigin> {
        self.origin.as_deref()
    }

    /// Returns the share to which the caller counts.
    pub fn share(&self) -> Share {
        if let Some(share) = &self.share {
            return Share::clone(share);
        }
        match (self.proof, self.origin()) {
            (Proof::PeerUid | Proof::SharedKey | Proof::HostDialog, Some(origin)) if origin.is_told() => {
                origin.tree().map_or(Share::Detached, Share::Process)
            }
            (Proof::PeerUid | Proof::SharedKey | Proof::HostDialog, Some(_)) => Share::Door(self.door),
            // A caller whose place could not be seen gets no share of its own.
            (Proof::PeerUid | Proof::SharedKey | Proof::HostDialog, None) => Share::Detached,
            _ => Share::Name(owned_slug(self.agent.as_str())),
        }
    }

    /// Returns the name that this caller acts under.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Returns the session that this call belongs to.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the door at which the call came in.
    pub fn door(&self) -> Door {
        self.door
    }

    /// Returns the caller's proof.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Checks whether the caller holds a scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.has(scope)
    }

    /// Checks whether this is a jailed worker that works on this task; its session is that task.
    pub fn works_inside_on(&self, task: &TaskId) -> bool {
        self.proof == Proof::Jailed && self.session.as_str() == task.as_str()
    }

    /// Checks whether this is the answer of the person at the agent's host, as far as that host can be trusted.
    pub fn is_host_dialog(&self) -> bool {
        self.proof == Proof::HostDialog
    }

    /// Checks whether the caller's name is unproved, and the caller is not the user.
    pub fn has_free_name(&self) -> bool {
        matches!(self.proof, Proof::PeerUid | Proof::SharedKey) && !self.may(Scope::Operate)
    }

    /// Checks whether an agent has spoken where the call comes from, or may have: the caller may be a model that
    /// has left out its name.
    pub fn is_of_agents(&self) -> bool {
        let outside = !self.is_person() && self.proof != Proof::Internal;
        outside && self.origin().is_none_or(CallOrigin::is_of_agents)
    }

    /// Checks whether the caller may act as the operator on others' things. A model that has left out its name may
    /// not: it is a process of the user, but speaks for an agent.
    pub fn operates(&self) -> bool {
        self.may(Scope::Operate) && !self.is_of_agents()
    }

    /// Checks whether this is a person: at a terminal as far as the kernel can tell, at the desktop, or by a passkey.
    pub fn is_person(&self) -> bool {
        matches!(self.proof, Proof::Terminal | Proof::Desktop | Proof::Passkey)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.agent, self.door.name())
    }
}
