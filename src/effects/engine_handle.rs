//! The state that all effects share: the engine, to which results go, and the token that ends all effects.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use provost_base::{AgentId, EffectId, TaskId, Timestamp};
use provost_domain::command::SettleEffect;
use provost_domain::view::{OneSwitch, View};
use provost_domain::{
    Event, EventKind, PoolHasPlace, Principal, QueueEvent, Refusal, State, Switch, Task, Tier, Verb,
};
use provost_engine::{Clock, Engine, SystemClock};

/// Longer than any daemon lives: the wait of a worker that is switched off has no deadline.
pub(super) const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The way of every effect back to the core. Cheap to clone.
#[derive(Clone)]
pub(super) struct EngineHandle {
    /// The engine, to which results go as commands.
    pub(super) engine: Engine,
    /// The principal of the daemon itself, which reports results.
    pub(super) system: Principal,
    /// Cancels everything that is being carried out.
    pub(super) shutdown: CancellationToken,
    /// Tracks everything that is being carried out.
    pub(super) tracker: TaskTracker,
}

impl EngineHandle {
    pub(super) fn new(engine: Engine, system: Principal) -> Self {
        Self { engine, system, shutdown: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// Settles an effect: it needs nothing more.
    pub(super) async fn settle(&self, effect: EffectId) {
        self.tell(SettleEffect { effect }).await.ok();
    }

    /// Hands a verb to the core until it takes it, so that no result is lost while this process lives.
    ///
    /// # Errors
    /// As for [`Engine::insist`]. Then the effect stays owed, and the next start takes it up.
    pub(super) async fn tell<V: Verb + Clone>(&self, verb: V) -> Result<V::Reply, Refusal> {
        let reply = self.persist(|| self.engine.submit(&self.system, verb.clone())).await;
        reply.inspect_err(|refusal| tracing::warn!(%refusal, "an effect's word was not taken"))
    }

    /// Returns the task and the tier of the task's worker; `None` if the task is finished.
    pub(super) async fn look(&self, task: &TaskId) -> Result<Option<(Arc<Task>, Option<Tier>)>, Refusal> {
        self.persist(|| self.engine.view(TaskAndTier(task.clone()))).await
    }

    /// Checks whether a worker is switched on and may begin its task. True if the core does not answer: it decides
    /// when the start is reported.
    pub(super) async fn begins(&self, worker: &AgentId) -> bool {
        let switch = self.persist(|| self.engine.view(OneSwitch(worker.clone()))).await;
        switch.unwrap_or_default() == Switch::On
    }

    /// Waits until the worker may begin.
    pub(super) async fn until_it_begins(&self, worker: &AgentId) {
        let switched = |event: &Event| matches!(&event.kind, EventKind::WorkerSwitched { worker: it, .. } if it == worker);
        let begins = || async { Ok(self.begins(worker).await.then_some(())) };
        let switched_on = self.engine.wait_for(Instant::now() + FOR_EVER, switched, begins).await;
        if !matches!(switched_on, Ok(Some(()))) {
            // The engine has stopped, and nothing begins any more.
            std::future::pending::<()>().await;
        }
    }

    /// Checks whether the worker's pool has a place; tasks of other hosts may have all of them.
    pub(super) async fn has_place_in_pool(&self, worker: &AgentId) -> bool {
        self.look_at(PoolHasPlace(worker.clone())).await.unwrap_or(true)
    }

    /// Waits until the worker's pool has a place.
    pub(super) async fn until_its_pool_has_place(&self, worker: &AgentId) {
        let ended = |event: &Event| {
            matches!(
                &event.kind,
                EventKind::TaskFinished { .. } | EventKind::Queue(QueueEvent::AttemptFailed { .. })
            )
        };
        let has_place = || async { Ok(self.look_at(PoolHasPlace(worker.clone())).await?.then_some(())) };
        if !matches!(self.engine.wait_for(Instant::now() + FOR_EVER, ended, has_place).await, Ok(Some(()))) {
            // The engine has stopped, and nothing begins any more.
            std::future::pending::<()>().await;
        }
    }

    /// Returns any other view of the core's memory.
    pub(super) async fn look_at<V: View + Clone>(&self, view: V) -> Result<V::Out, Refusal> {
        self.persist(|| self.engine.view(view.clone())).await
    }

    /// Repeats a request until the core takes it.
    pub(super) async fn persist<T, F>(&self, ask: impl FnMut() -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        self.engine.insist(Some(&self.shutdown), ask).await
    }
}

/// Returns the current time, for the spans and notes of a run.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// The view of an unfinished task and the tier of its worker.
struct TaskAndTier(TaskId);

impl View for TaskAndTier {
    type Out = Option<(Arc<Task>, Option<Tier>)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let task = state.tasks.get(&self.0)?.clone();
        let tier = state.settings.workers.get(&task.order.worker).map(|setting| setting.tier);
        Some((task, tier))
    }
}
