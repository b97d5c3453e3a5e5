//! Shared by all effects: the way back to the core, and the switch that ends them all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::{AgentId, EffectId, TaskId, Timestamp};
use crate::domain::command::SettleEffect;
use crate::domain::view::{OneSwitch, View};
use crate::domain::{EventKind, Principal, Refusal, State, Switch, Task, Tier, Verb};
use crate::engine::{Clock, Engine, SystemClock};

/// Between two tries of a command that the core could not take at the moment.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(2);
/// How long results are offered to a core that does not take them while the daemon stops. Then the effect stays
/// owed as started, and the next start reports it.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// Where hands report. Cheap to clone.
#[derive(Clone)]
pub(super) struct Desk {
    /// Where results go.
    pub(super) engine: Engine,
    /// The daemon's own hand.
    pub(super) host: Principal,
    /// Ends everything that is being carried out.
    pub(super) shutdown: CancellationToken,
    /// Everything that is being carried out.
    pub(super) tracker: TaskTracker,
}

impl Desk {
    pub(super) fn new(engine: Engine, host: Principal) -> Self {
        Self { engine, host, shutdown: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// An effect needs nothing more.
    pub(super) async fn settle(&self, effect: EffectId) {
        self.tell(SettleEffect { effect }).await.ok();
    }

    /// Hands a verb to the core until it takes it, so that no result is lost while this process lives.
    ///
    /// # Errors
    /// What the core answers, other than that it cannot take anything at the moment; that, too, when the daemon
    /// is stopping and [`LAST_TRIES`] is over.
    pub(super) async fn tell<V: Verb + Clone>(&self, verb: V) -> Result<V::Reply, Refusal> {
        let reply = self.persist(|| self.engine.submit(&self.host, verb.clone())).await;
        reply.inspect_err(|refusal| tracing::warn!(%refusal, "an effect's word was not taken"))
    }

    /// The task as it stands, with the tier that its worker gets; `None` when it is finished.
    pub(super) async fn look(&self, task: &TaskId) -> Result<Option<(Arc<Task>, Option<Tier>)>, Refusal> {
        self.persist(|| self.engine.view(TaskAndTier(task.clone()))).await
    }

    /// Whether a worker begins what it has taken on; a core that does not answer is asked once more when it is told
    /// of the start.
    pub(super) async fn begins(&self, worker: &AgentId) -> bool {
        let switch = self.persist(|| self.engine.view(OneSwitch(worker.clone()))).await;
        switch.unwrap_or_default() == Switch::On
    }

    /// Waits until it does.
    pub(super) async fn until_it_begins(&self, worker: &AgentId) {
        while !self.begins(worker).await {
            let mut events = self.engine.subscribe();
            // It may have been switched between the question and the subscription.
            if self.begins(worker).await {
                return;
            }
            loop {
                match events.recv().await {
                    Ok(event) => match &event.kind {
                        EventKind::WorkerSwitched { worker: switched, .. } if switched == worker => break,
                        _ => {}
                    },
                    Err(RecvError::Lagged(_)) => break,
                    // The engine has stopped, and nothing begins any more.
                    Err(RecvError::Closed) => return std::future::pending().await,
                }
            }
        }
    }

    /// Anything else that memory knows.
    pub(super) async fn look_at<V: View + Clone>(&self, view: V) -> Result<V::Out, Refusal> {
        self.persist(|| self.engine.view(view.clone())).await
    }

    async fn persist<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        let mut pause = AGAIN_FIRST;
        let mut last = None;
        loop {
            let refusal = match ask().await {
                Err(refusal @ (Refusal::Busy { .. } | Refusal::Unavailable { .. })) => refusal,
                answer => return answer,
            };
            if self.shutdown.is_cancelled() {
                let until = *last.get_or_insert_with(|| tokio::time::Instant::now() + LAST_TRIES);
                if tokio::time::Instant::now() >= until {
                    return Err(refusal);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN_LAST);
        }
    }
}

/// The time, for what a run tells about itself.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// One unfinished task, and how the configuration wants its worker confined.
struct TaskAndTier(TaskId);

impl View for TaskAndTier {
    type Out = Option<(Arc<Task>, Option<Tier>)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let task = state.tasks.get(&self.0)?.clone();
        let tier = state.settings.workers.get(&task.order.worker).map(|setting| setting.tier);
        Some((task, tier))
    }
}
