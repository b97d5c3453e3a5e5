//! The agents that were refused a write and advised to wait, each with its file: a lock that such an agent takes
//! there afterwards ends with the commit of the file, as the lease would that an accepted write takes.
//!
//! This is kept in memory: after a restart such a lock ends after its time, with its session, or when its holder gives it back.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::guard::{Guarded, Obstacle};
use provost_base::limits::ADVISED_MAX;
use provost_base::{AgentId, RepoPath};

/// The agents that were refused, each with the file; only the newest are kept.
#[derive(Default)]
pub(super) struct Advised(Mutex<VecDeque<(AgentId, RepoPath)>>);

impl Advised {
    fn all(&self) -> MutexGuard<'_, VecDeque<(AgentId, RepoPath)>> {
        // A list is consistent between any two of its operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the agent and the file of a refused write.
    pub(super) fn note(&self, agent: &AgentId, guarded: &Guarded) {
        // A check in the name of no agent has no agent that could wait.
        if *agent == provost_domain::unknown() {
            return;
        }
        let mut all = self.all();
        for it in &guarded.blocked {
            let Obstacle::Lock(lock) = &it.by else { continue };
            let place = (agent.clone(), lock.it.at.file().clone());
            all.retain(|it| *it != place);
            all.push_back(place);
        }
        let more = all.len().saturating_sub(ADVISED_MAX);
        all.drain(..more);
    }

    /// Returns whether this agent was refused a write in this file.
    pub(super) fn is_about(&self, agent: &AgentId, file: &RepoPath) -> bool {
        self.all().iter().any(|it| it.0 == *agent && it.1 == *file)
    }

    /// Forgets the advice: the agent holds now what it was advised to wait for.
    pub(super) fn is_followed(&self, agent: &AgentId, file: &RepoPath) {
        self.all().retain(|it| it.0 != *agent || it.1 != *file);
    }
}
