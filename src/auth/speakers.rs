//! Processes that have spoken as agents, and those above them in their sessions: what runs below one of them was started by a
//! model, as far as anyone can tell, and is no person.
//!
//! Each is kept with the time at which it began, so that its number does not come to mean another one. Nothing is kept over
//! a restart of the daemon; hosts call again before a model has its next turn.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::line::Line;
use crate::base::limits::SPEAKERS_MAX;
use crate::domain::{CallOrigin, ProcessMark};
use crate::system::process_began;

/// The processes.
#[derive(Default)]
pub(super) struct Speakers(Mutex<HashMap<u32, ProcessMark>>);

impl Speakers {
    /// Keeps them in mind. When there is no room, those that have ended are forgotten, and then nobody: what cannot be kept
    /// in mind would be taken for a person.
    pub(super) fn note(&self, processes: impl Iterator<Item = ProcessMark> + Clone) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if processes.clone().all(|it| known.get(&it.pid) == Some(&it)) {
            return;
        }
        if known.len() >= SPEAKERS_MAX {
            known.retain(|_, mark| is_running(mark));
        }
        known.extend(processes.map(|it| (it.pid, it)));
    }

    /// Where a process calls from: what was started below a session in which an agent has spoken is of that one's tree.
    pub(super) fn origin(&self, line: &Line) -> Option<CallOrigin> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spoken = line.sessions_up_to(|it| known.get(&it.pid) == Some(it));
        CallOrigin::new(line.sessions().to_vec(), spoken)
    }

    /// The numbers of those that still run.
    pub(super) fn running(&self) -> Vec<i32> {
        let known: Vec<ProcessMark> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect();
        known.iter().filter(|it| is_running(it)).filter_map(|it| i32::try_from(it.pid).ok()).collect()
    }
}

/// Whether a process still runs, of whatever user: a session may be led by a login program. `None` when the system does not
/// say.
pub fn runs(mark: &ProcessMark) -> Option<bool> {
    process_began(mark.pid).ok().map(|began| began == Some(mark.started))
}

/// One that could not be looked at is taken to run: what is forgotten would be taken for a person.
fn is_running(mark: &ProcessMark) -> bool {
    runs(mark) != Some(false)
}
