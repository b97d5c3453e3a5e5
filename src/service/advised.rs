//! Where agents were refused a write and advised to wait: a lock that one takes there afterwards ends with the commit of the
//! file, as the lease would that the write takes when it is not refused.
//!
//! It is kept in memory: after a restart such a lock ends with its time, its session, or when it is given back.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::guard::{Guarded, Obstacle};
use provost_base::limits::ADVISED_MAX;
use provost_base::{AgentId, RepoPath};

/// Who was refused, in which file; the newest are kept.
#[derive(Default)]
pub(super) struct Advised(Mutex<VecDeque<(AgentId, RepoPath)>>);

impl Advised {
    fn all(&self) -> MutexGuard<'_, VecDeque<(AgentId, RepoPath)>> {
        // A list is whole between any two of its operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a refusal names.
    pub(super) fn note(&self, agent: &AgentId, guarded: &Guarded) {
        // Who looks in no agent's name waits for nothing.
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

    /// Whether an agent was refused a write in a file.
    pub(super) fn is_about(&self, agent: &AgentId, file: &RepoPath) -> bool {
        self.all().iter().any(|it| it.0 == *agent && it.1 == *file)
    }

    /// The agent has got what it was advised to wait for.
    pub(super) fn is_followed(&self, agent: &AgentId, file: &RepoPath) {
        self.all().retain(|it| it.0 != *agent || it.1 != *file);
    }
}
