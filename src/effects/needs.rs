//! A worker's needs: the resources of its entry, which a task holds before it takes a place of `limits.workers`.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::prepare::limit;
use super::run::Once;
use provost_base::Ttl;
use provost_domain::command::{NeedsTaken, Rival, TakeNeeds};
use provost_domain::{Event, EventKind, Failure, NeedsWait, Refusal, Task};

/// How long preparing a run may take while it holds its needs.
const PREPARED_WITHIN: Ttl = Ttl::minutes(10);

/// The state of a task's needs.
pub(super) enum Needed {
    /// The task holds all its needs, or its worker needs nothing.
    Held,
    /// The task has waited for too long, or the machine never has enough of a resource.
    Never(Failure),
    /// The task is over, or the engine has stopped.
    Over,
}

impl Once {
    /// Waits until the task holds its worker's needs, for as long as the worker's entry says.
    pub(super) async fn have_needs(&self, task: &Task) -> Needed {
        let handle = &self.workers.handle;
        let Some((verb, wait)) = self.needs_of(task).await else { return Needed::Held };
        let lacks: Mutex<Option<(Box<str>, Rival)>> = Mutex::new(None);
        let take = async || match handle.tell(verb.clone()).await? {
            NeedsTaken::Held => Ok(Some(())),
            NeedsTaken::Waits { wanted, by } => {
                *lacks.lock().unwrap_or_else(PoisonError::into_inner) = Some((wanted, *by));
                Ok(None)
            }
        };
        match handle.engine.wait_for(Instant::now() + wait.as_duration(), frees, take).await {
            Ok(Some(())) => Needed::Held,
            Ok(None) => {
                let lacks = lacks.into_inner().unwrap_or_else(PoisonError::into_inner);
                Needed::Never(waited_in_vain(wait, lacks))
            }
            Err(Refusal::TaskFinished | Refusal::Unavailable { .. } | Refusal::Stopping) => Needed::Over,
            // A run never begins without its needs.
            Err(refusal) => {
                let why = format!("it cannot get what it needs: {refusal}").into();
                Needed::Never(Failure::WorkerFailed { why })
            }
        }
    }
}

impl Once {
    /// Checks whether the task still holds its needs, for as long as its run may take.
    pub(super) async fn still_has_needs(&self, task: &Task) -> bool {
        match self.needs_of(task).await {
            Some((verb, _)) => matches!(self.workers.handle.tell(verb).await, Ok(NeedsTaken::Held)),
            None => true,
        }
    }

    /// Returns the request for the needs, and how long to wait; `None` for a worker that needs nothing.
    async fn needs_of(&self, task: &Task) -> Option<(TakeNeeds, Ttl)> {
        let worker = &task.order.worker;
        let wait = self.workers.handle.look_at(NeedsWait(worker.clone())).await.ok().flatten()?;
        let profile = (self.workers.profiles)(worker)?;
        let lasts = u64::from(limit(&profile, task).as_millis()) + u64::from(PREPARED_WITHIN.as_millis());
        let lasts = Ttl::from_millis(lasts).unwrap_or(Ttl::minutes(7 * 24 * 60));
        Some((TakeNeeds { task: self.task.clone(), lasts }, wait))
    }
}

/// Checks whether a resource, or a place in its queue, has become free.
fn frees(event: &Event) -> bool {
    match &event.kind {
        EventKind::LockFreed { symbol, .. } | EventKind::LockWaitEnded { symbol, .. } => symbol.is_resource(),
        _ => false,
    }
}

fn waited_in_vain(wait: Ttl, lacks: Option<(Box<str>, Rival)>) -> Failure {
    let waited = format!("it has waited {} seconds for", wait.as_seconds());
    let why = match lacks {
        Some((wanted, it)) => {
            let has = if it.fence.is_some() { "has" } else { "waits before it for" };
            format!("{waited} {wanted}: {} {has} {} until {}", it.by, it.asked, it.until)
        }
        None => format!("{waited} what it needs"),
    };
    Failure::WorkerFailed { why: why.into() }
}
