//! Versions of a file in conflict: their authors, and their places.
//!
//! A watch sees that a file has changed and not which agent did it, so the change counts as its owner's. The daemon
//! accepts another agent's report of the change soon afterwards; until then it keeps the file's earlier content.

use serde::{Deserialize, Serialize};

use super::{Claim, Content, Hold, Standing, State};
use crate::base::{AgentId, Digest, RepoPath, Timestamp, Ttl};

/// What a file said before changes that nobody has owned up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Earlier {
    /// What.
    pub content: Content,
    /// When the first of them was seen.
    pub at: Timestamp,
}

/// One version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Version {
    /// Whose.
    pub agent: AgentId,
    /// What it says.
    pub content: Content,
    /// Where it is; nowhere if it was too large, or nobody has seen it in time.
    pub kept: Option<KeptVersion>,
}

/// A version that can be had again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptVersion {
    /// Where.
    pub path: RepoPath,
    /// Of all of it, since others can write there.
    pub digest: Digest,
    /// Who could do what with the file, where systems know that.
    pub mode: Option<u32>,
}

/// What would be in conflict, had a file been changed by another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// Whose file it is.
    pub owner: AgentId,
    /// What is its owner's of what the file has said, oldest first.
    pub contents: Vec<Content>,
}

impl Claim {
    /// The file's content before the change that an agent reports at this moment.
    fn before(&self, now: Timestamp, window: Ttl) -> Content {
        self.earlier.filter(|it| it.at.after(window) >= now).map_or(self.content, |it| it.content)
    }

    /// The same, after one more change was seen.
    pub(super) fn earlier_after(&self, now: Timestamp, window: Ttl) -> Option<Earlier> {
        let running = self.earlier.filter(|it| it.at.after(window) >= now);
        running.or(Some(Earlier { content: self.content, at: now }))
    }
}

impl State {
    /// Whether a change by this one, or by nobody knows whom, would be a conflict.
    pub(super) fn ahead(&self, now: Timestamp, file: &RepoPath, by: Option<&AgentId>) -> Option<Ahead> {
        let claim = self.claims.get(file)?;
        let (Hold::Claimed { owner, .. } | Hold::Locked { owner, .. }) = &claim.held else { return None };
        let mut contents = match by {
            Some(by) if by == owner => return None,
            Some(_) => vec![claim.before(now, self.settings.crew.detection_window), claim.content],
            // The change counts as the present owner's.
            None if !self.is_away(owner) => return None,
            None => vec![claim.content],
        };
        contents.dedup();
        Some(Ahead { owner: owner.clone(), contents })
    }

    /// Whether an agent can be excluded as the author of a change.
    pub(super) fn is_away(&self, id: &AgentId) -> bool {
        self.crew.get(id).is_none_or(|it| it.standing == Standing::Offline)
    }
}
