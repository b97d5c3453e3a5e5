//! Rights: families of verbs that a caller may ask for.

use serde::{Deserialize, Serialize};

/// A right to a family of verbs. Every verb needs exactly one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u16)]
pub enum Scope {
    /// May see tasks, approvals and events.
    Read = 1,
    /// May be known: register, beat, collect mail.
    Join = 2,
    /// May use locks, claims, intents and acknowledgements.
    Coordinate = 4,
    /// May delegate work to a worker, and cancel it.
    Delegate = 8,
    /// May report on work that was delegated to the caller.
    Work = 16,
    /// May grant or deny commands that wait for an approver.
    Approve = 32,
    /// May look after the daemon: keys, policy, and the tasks of all agents.
    Operate = 64,
    /// Verbs of the daemon itself, by which its effects report; no client has this right.
    Host = 128,
    /// May have files written into the workspace without further consent. A person gives this right with a token;
    /// no proof of a name includes it.
    Apply = 256,
}

impl Scope {
    /// All scopes, in the order of their bits.
    pub const ALL: [Scope; 9] = [
        Scope::Read,
        Scope::Join,
        Scope::Coordinate,
        Scope::Delegate,
        Scope::Work,
        Scope::Approve,
        Scope::Operate,
        Scope::Host,
        Scope::Apply,
    ];

    /// Returns the word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Join => "join",
            Scope::Coordinate => "coordinate",
            Scope::Delegate => "delegate",
            Scope::Work => "work",
            Scope::Approve => "approve",
            Scope::Operate => "operate",
            Scope::Host => "host",
            Scope::Apply => "apply",
        }
    }
}

/// A set of [`Scope`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(u16);

impl Scopes {
    /// Returns the set of the listed scopes.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |all, scope| all | *scope as u16))
    }

    /// Returns the first of these that is not among `others`.
    pub fn beyond(self, others: Scopes) -> Option<Scope> {
        self.iter().find(|scope| !others.has(*scope))
    }

    /// Returns the scopes that are set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    /// Checks whether `scope` is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope as u16 != 0
    }
}
