//! What a process has taken, and gives back when it ends: `provost mcp` names itself with each request.
//!
//! Locks end with a process in the core, also over a restart of the daemon. Claims and intents are noted here, in memory: what
//! was taken before a restart ends as ever, with its time or with its agent's silence.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts as Head;

use super::{Own, wire};
use crate::auth::peer::process_of_ours;
use crate::base::limits::{CLAIMS_PER_AGENT_MAX, INTENTS_PER_AGENT_MAX};
use crate::base::{Fence, IntentId, RepoPath};
use crate::domain::view::ClaimsOf;
use crate::domain::{IntentStatus, Principal, ProcessMark};
use crate::system::process_began;

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The process that a request is made for, if it says so and it is there.
pub(super) struct Tied(pub(super) Option<ProcessMark>);

impl<S: Send + Sync> FromRequestParts<S> for Tied {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Head, _: &S) -> Result<Self, Infallible> {
        let named = parts.headers.get(wire::PROCESS_HEADER).and_then(|it| it.to_str().ok()?.parse().ok());
        Ok(Self(named.and_then(process_of_ours)))
    }
}

/// Something that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// A claim, by its grant.
    Claim(RepoPath, Fence),
    /// An announced change.
    Intent(IntentId),
}

/// A process, and what it has taken for whom.
type Tying = (ProcessMark, Vec<(Principal, Taken)>);

/// All of it, by process.
#[derive(Default)]
pub(super) struct Ties(Mutex<HashMap<u32, Tying>>);

impl Ties {
    fn all(&self) -> MutexGuard<'_, HashMap<u32, Tying>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// Notes what a process has taken.
    pub(super) fn tie(&self, tied: &Tied, who: &Principal, taken: Taken) {
        let Some(mark) = tied.0 else { return };
        let is_first = {
            let mut all = self.0.ties.all();
            let is_first = all.get(&mark.pid).is_none_or(|it| it.0 != mark);
            if is_first {
                all.insert(mark.pid, (mark, Vec::new()));
            }
            if let Some((_, list)) = all.get_mut(&mark.pid) {
                list.retain(|(_, it)| *it != taken);
                if list.len() >= CLAIMS_PER_AGENT_MAX + INTENTS_PER_AGENT_MAX {
                    list.remove(0);
                }
                list.push((who.clone(), taken));
            }
            is_first
        };
        if is_first {
            tokio::spawn(self.clone().look_on(mark));
        }
    }

    /// Waits for a process to end, and gives back what it has taken.
    async fn look_on(self, mark: ProcessMark) {
        // A look that fails, as it does where descriptors are few, says nothing of the process.
        while process_began(mark.pid).map_or(true, |began| began == Some(mark.started)) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let taken = {
            let mut all = self.0.ties.all();
            if all.get(&mark.pid).is_none_or(|it| it.0 != mark) {
                return;
            }
            all.remove(&mark.pid).map(|it| it.1).unwrap_or_default()
        };
        let count = taken.len();
        for (who, taken) in taken {
            self.give_back(&who, taken).await;
        }
        tracing::info!(pid = mark.pid, count, "claims and intents of a process that ended are given back");
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
            Taken::Intent(id) => provost.update_intent(who, id, IntentStatus::Abandoned).await.map(drop),
        };
        if let Err(why) = given {
            tracing::debug!(%why, "what a process had taken was not given back");
        }
    }
}
