//! Releases what a process or an MCP session has taken when it ends. `provost mcp` names its own process with
//! each request, and the MCP door over HTTP names the session.
//!
//! The core ends the locks of a process by itself, also over a restart of the daemon. This module keeps
//! claims, intents, and the locks of sessions in memory: what was taken before a restart ends with its time,
//! or when its agent falls silent.

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

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What one process or session has taken that is kept in mind; the oldest gives way.
const TIED_MAX: usize = CLAIMS_PER_AGENT_MAX + INTENTS_PER_AGENT_MAX + LOCKS_PER_AGENT_MAX;

/// The process or the session whose end releases what a request takes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum End {
    Process(ProcessMark),
    Session(Arc<str>),
}

/// The process or the session that a request is made for, if it says so and it is there.
pub(super) struct Tied(Option<End>);

impl Tied {
    /// The process that the headers of a request name. Those of a connection name no session: a caller that could name one
    /// could end another one's.
    pub(super) fn of_process(headers: &HeaderMap) -> Self {
        let said = headers.get(wire::PROCESS_HEADER).and_then(|it| it.to_str().ok());
        Self(said.and_then(|it| process_of_ours(it.parse().ok()?)).map(End::Process))
    }

    /// The session that a door of this process names.
    pub(super) fn of_session(session: Option<Arc<str>>) -> Self {
        Self(session.map(End::Session))
    }

    /// The process, where it is one.
    pub(super) fn process(&self) -> Option<ProcessMark> {
        if let Some(End::Process(mark)) = &self.0 { Some(*mark) } else { None }
    }

    /// Whether it is a session.
    pub(super) fn is_session(&self) -> bool {
        matches!(self.0, Some(End::Session(_)))
    }
}

/// Something that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// A claim, by its grant.
    Claim(RepoPath, Fence),
    /// An announced change, by its id.
    Intent(IntentId),
    /// A lock, by its grant.
    Lock(Fence),
}

/// All of it, by what it ends with, and for whom it was taken.
#[derive(Default)]
pub(super) struct Ties(Mutex<HashMap<End, Vec<(Principal, Taken)>>>);

impl Ties {
    fn all(&self) -> MutexGuard<'_, HashMap<End, Vec<(Principal, Taken)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// What was taken is tied to nothing that is noted here any more.
    pub(super) fn untie(&self, taken: &Taken) {
        self.0.ties.all().values_mut().for_each(|list| list.retain(|(_, it)| it != taken));
    }

    /// Notes what was taken; where it was tied to something else before, it is no longer.
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

    /// Waits for a process to end, and gives back what it has taken.
    async fn look_on(self, mark: ProcessMark) {
        // A look that fails, as it does where descriptors are few, says nothing of the process.
        while runs(&mark) != Some(false) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let count = self.end(&End::Process(mark)).await;
        tracing::info!(pid = mark.pid, count, "claims and intents of a process that ended are given back");
    }

    /// Gives back what was taken in the session that a request names.
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

    /// What is not there any more, or not the same, stays as it is.
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
                // Found by its grant: its file may have another name by now.
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
