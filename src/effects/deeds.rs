//! Deeds that crates above this one carry out: editors' jobs, applies that an earlier daemon has left, merges, and the removal of
//! discarded changes.
//!
//! The wiring gives a hand for each of them. This module offers an effect to its hand until the core takes the result, so that a
//! deed is owed, tried again and taken up after a crash like every other effect.

use std::pin::Pin;

use super::engine_handle::EngineHandle;
use provost_base::{AgentId, ApplyId, EffectId, Fence, JobId, TaskId};
use provost_domain::{Principal, Refusal};

/// The work of a hand. After [`Refusal::Busy`] and [`Refusal::Unavailable`] it is called again.
pub type Undertaking = Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>>;

/// The hands for deeds, one for each kind.
pub struct DeedHands {
    /// Begins a job, or goes on with one whose runs have not begun; ends one whose runs had begun before the daemon started.
    /// Returns as soon as the job is under way.
    pub jobs: Box<dyn Fn(JobId, bool) -> Undertaking + Send + Sync>,
    /// Finds out how far an apply of an earlier daemon came, and puts its end on record.
    pub applies: Box<dyn Fn(ApplyId, AgentId) -> Undertaking + Send + Sync>,
    /// Removes the changes of a run from the disk.
    pub discards: Box<dyn Fn(TaskId) -> Undertaking + Send + Sync>,
    /// Merges entries of the queue, as the user who asked for it.
    pub merges: Box<dyn Fn(Vec<Fence>, Principal) -> Undertaking + Send + Sync>,
}

impl DeedHands {
    /// Has a job that is owed carried out.
    pub(super) async fn take_up_job(&self, handle: &EngineHandle, job: JobId, started: bool) {
        if let Err(refusal) = handle.persist(|| (self.jobs)(job.clone(), started)).await {
            tracing::error!(%refusal, %job, "a job is not carried out; it stays owed");
        }
    }

    /// Has the changes of a run removed, and settles the effect.
    pub(super) async fn drop_changes(&self, handle: &EngineHandle, effect: EffectId, task: TaskId) {
        match handle.persist(|| (self.discards)(task.clone())).await {
            Ok(()) => handle.settle(effect).await,
            Err(refusal) => {
                tracing::error!(%refusal, %task, "discarded changes are still on the disk; the next start removes them");
            }
        }
    }

    /// Has a run of the queue of merges carried out, and settles the effect.
    pub(super) async fn run_merges(
        &self,
        handle: &EngineHandle,
        effect: EffectId,
        (numbers, asker): (Vec<Fence>, Principal),
    ) {
        match handle.persist(|| (self.merges)(numbers.clone(), asker.clone())).await {
            Ok(()) => handle.settle(effect).await,
            Err(refusal) => {
                tracing::warn!(%refusal, "a run of the queue of merges has not ended; it stays owed")
            }
        }
    }

    /// Has an apply of an earlier daemon settled.
    pub(super) async fn settle_apply(&self, handle: &EngineHandle, apply: ApplyId, by: AgentId) {
        if let Err(refusal) = handle.persist(|| (self.applies)(apply, by.clone())).await {
            tracing::error!(%refusal, %apply, "an apply that was broken off is not settled; it stays owed");
        }
    }
}
