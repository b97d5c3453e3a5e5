//! Versions of a file in conflict: their authors, and their places.
//!
//! A watch sees that a file has changed and not which agent did it, so the change counts as its owner's. The daemon
//! accepts another agent's report of the change soon afterwards; until then it keeps the file's earlier content.

use serde::{Deserialize, Serialize};

use super::{Claim, Content, Hold, Standing, State};
use provost_base::{AgentId, Digest, RepoPath, Timestamp, Ttl};

/// The content of a file before changes that no agent has reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Earlier {
    /// The content before the first of these changes.
    pub content: Content,
    /// When the first of these changes was seen.
    pub at: Timestamp,
}

/// One version of a file in conflict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Version {
    /// The agent whose version it is.
    pub agent: AgentId,
    /// The content of the version.
    pub content: Content,
    /// The place of its copy; `None` if the file was too large, or the daemon did not see it in time.
    pub kept: Option<KeptVersion>,
}

/// A copy of a version, from which it can be restored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptVersion {
    /// The path of the copy.
    pub path: RepoPath,
    /// The digest of the whole copy, since other processes can write there.
    pub digest: Digest,
    /// The file's permissions, on systems that have them.
    pub mode: Option<u32>,
}

/// The facts about a conflict that a change of a file would make: its owner, and the owner's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// The agent that has claimed the file.
    pub owner: AgentId,
    /// Contents of the file that count as the owner's, oldest first; one, or two within the detection window.
    pub contents: Vec<Content>,
}

impl Claim {
    /// Returns the file's content before the change that an agent reports at this moment.
    fn before(&self, now: Timestamp, window: Ttl) -> Content {
        self.earlier.filter(|it| it.at.after(window) >= now).map_or(self.content, |it| it.content)
    }

    /// Returns the earlier content of the file, after one more change was seen.
    pub(super) fn earlier_after(&self, now: Timestamp, window: Ttl) -> Option<Earlier> {
        let running = self.earlier.filter(|it| it.at.after(window) >= now);
        running.or(Some(Earlier { content: self.content, at: now }))
    }
}

impl State {
    /// Returns the conflict that a change by this agent, or (with `None`) by an unknown one, would make, if any.
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

    /// Checks whether an agent can be excluded as the author of a change.
    pub(super) fn is_away(&self, id: &AgentId) -> bool {
        self.crew.get(id).is_none_or(|it| it.standing == Standing::Offline)
    }
}
