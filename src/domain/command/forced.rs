//! Verbs by which a person ends what agents hold or have announced: one thing, or everything of one agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Content, Intent};
use provost_base::{AgentId, Fence, IntentId, RepoPath};

/// End another agent's intent: it is abandoned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndIntent {
    /// The intent to end.
    pub id: IntentId,
}

/// The intent is abandoned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentEnded {
    /// The intent as it is now.
    pub intent: Arc<Intent>,
}

/// Free a file that any agent has claimed or locked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FreeClaim {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content at this moment.
    pub content: Content,
    /// Free the file only if the claim still is this grant.
    pub fence: Option<Fence>,
}

/// The file is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimFreed {
    /// Whether an agent had the file until now.
    pub released: bool,
}

/// Take from an agent everything that it holds, waits for and has announced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseAgent {
    /// The agent that loses everything.
    pub agent: AgentId,
    /// The contents of its claimed files at this moment, as far as they are known.
    pub contents: BTreeMap<RepoPath, Content>,
}

/// The agent holds nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentReleased {
    /// Locks that were released.
    pub locks: usize,
    /// Places in queues that were given up.
    pub waits: usize,
    /// Files that were freed.
    pub claims: usize,
    /// Intents that were abandoned.
    pub intents: usize,
}
