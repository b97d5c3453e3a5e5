//! Releases the holds of a process or an MCP session at its end. `provost mcp` names its own process with each
//! request, and the MCP door over HTTP names the session.
//!
//! The core itself ends the locks of a process, also after a restart of the daemon. This module keeps claims,
//! intents, and the locks of sessions in memory: those from before a restart end after their time, or when their
//! agent falls silent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::header::HeaderMap;

use super::Own;
use provost_api::wire;
use provost_auth::peer::process_of_ours;
use provost_auth::runs;
use provost_base::limits::{CLAIMS_PER_AGENT_MAX, INTENTS_PER_AGENT_MAX, LOCKS_PER_AGENT_MAX};
use provost_base::{Fence, IntentId, RepoPath};
use provost_domain::command::ReleaseLock;
use provost_domain::view::ClaimsOf;
use provost_domain::{IntentStatus, Principal, ProcessMark};

/// The interval between checks of a process.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The most holds of a process or session that are remembered; the oldest is dropped.
const TIED_MAX: usize = CLAIMS_PER_AGENT_MAX + INTENTS_PER_AGENT_MAX + LOCKS_PER_AGENT_MAX;

/// The process or the session whose end releases what a request takes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum End {
    Process(ProcessMark),
    Session(Arc<str>),
}

/// The process or session for which a request is made, if the request names one that exists.
pub(super) struct Tied(Option<End>);

impl Tied {
    /// Reads the process from the headers of a request. The headers cannot name a session, since a caller could
    /// then end another one's.
    pub(super) fn of_process(headers: &HeaderMap) -> Self {
        let said = headers.get(wire::PROCESS_HEADER).and_then(|it| it.to_str().ok());
        Self(said.and_then(|it| process_of_ours(it.parse().ok()?)).map(End::Process))
    }

    /// Ties to the session that a door of this process names.
    pub(super) fn of_session(session: Option<Arc<str>>) -> Self {
        Self(session.map(End::Session))
    }

    /// Returns the process, if it is one.
    pub(super) fn process(&self) -> Option<ProcessMark> {
        if let Some(End::Process(mark)) = &self.0 { Some(*mark) } else { None }
    }

    /// Returns whether it is a session.
    pub(super) fn is_session(&self) -> bool {
        matches!(self.0, Some(End::Session(_)))
    }
}

/// A hold that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// A claim, by its fence.
    Claim(RepoPath, Fence),
    /// An intent, by its id.
    Intent(IntentId),
    /// A lock, by its fence.
    Lock(Fence),
}

/// All holds, by the process or session that they end with, with their agents.
#[derive(Default)]
pub(super) struct Ties(Mutex<HashMap<End, Vec<(Principal, Taken)>>>);

impl Ties {
    fn all(&self) -> MutexGuard<'_, HashMap<End, Vec<(Principal, Taken)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// Forgets a hold: it no longer ends with a process or session in this list.
    pub(super) fn untie(&self, taken: &Taken) {
        self.0.ties.all().values_mut().for_each(|list| list.retain(|(_, it)| it != taken));
    }

    /// Remembers a hold; an earlier tie of the same hold is replaced.
    pub(super) fn tie(&self, tied: &Tied, who: &Principal, taken: Taken) {
        let Some(end) = &tied.0 else { return };
        let is_first = {
            let mut all = self.0.ties.all();
            all.values_mut().for_each(|list| list.retain(|(_, it)| *it != taken));
            let is_first = !all.contains_key(end);
            let list = all.entry(end.clone()).or_default();
            if list.len() >= TIED_MAX {
                list.remove(0);
            }
            list.push((who.clone(), taken));
            is_first
        };
        if let End::Process(mark) = end
            && is_first
        {
            tokio::spawn(self.clone().look_on(*mark));
        }
    }

    /// Waits for a process to end, and releases its holds.
    async fn look_on(self, mark: ProcessMark) {
        // A failed check, as when descriptors are scarce, proves nothing about the process.
        while runs(&mark) != Some(false) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let count = self.end(&End::Process(mark)).await;
        tracing::info!(pid = mark.pid, count, "claims and intents of a process that ended are given back");
    }

    /// Releases the holds of the session that a request names.
    pub(super) async fn end_session(&self, tied: &Tied) -> usize {
        match &tied.0 {
            Some(end @ End::Session(_)) => self.end(end).await,
            _ => 0,
        }
    }

    async fn end(&self, end: &End) -> usize {
        let taken = self.0.ties.all().remove(end).unwrap_or_default();
        let count = taken.len();
        for (who, taken) in taken {
            self.give_back(&who, taken).await;
        }
        count
    }

    /// Releases a hold; one that no longer exists, or is another grant, is left alone.
    async fn give_back(&self, who: &Principal, taken: Taken) {
        let provost = &self.0.provost;
        let given = match taken {
            Taken::Claim(file, fence) => {
                let held = provost.view(ClaimsOf(who.agent().clone())).await.unwrap_or_default();
                match held.iter().any(|it| it.file == file && it.fence == fence) {
                    true => provost.release_claim(who, file).await.map(drop),
                    false => Ok(()),
                }
            }
            Taken::Lock(fence) => {
                // The lock is found by its fence, since its file may have been renamed.
                let held = provost.locks(Some(who.agent().clone()), Vec::new()).await;
                let held = held.map(|it| it.0).unwrap_or_default();
                match held.iter().find(|it| it.it.fence == fence) {
                    Some(lock) => {
                        let (at, fence) = (lock.it.at.clone(), Some(fence));
                        provost.submit(who, ReleaseLock { at, fence, force: false }).await.map(drop)
                    }
                    None => Ok(()),
                }
            }
            Taken::Intent(id) => provost.update_intent(who, id, IntentStatus::Abandoned).await.map(drop),
        };
        if let Err(why) = given {
            tracing::debug!(%why, "what a process had taken was not given back");
        }
    }
}
