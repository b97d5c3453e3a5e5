//! Carrying out [`Effect::SpawnWorker`] and [`Effect::StopWorker`].
//!
//! ```text
//!   [owed] --a place is free--> [prepared] --start on record--> [running] --> result on record
//!     |  |                          |                               |
//!     |  +-- daemon stops: stays owed, runs after the next start    +-- daemon stops or dies: lost
//!     +-- task is over meanwhile: settled                           +-- stopped: killed, then settled
//! ```
//! A start that is on record is never repeated: after a crash the task is reported lost.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::copy::remove_leftovers;
use super::prepare::Place;
use super::run::{Once, lost};
use crate::base::{AgentId, EffectId, TaskId, Timestamp};
use crate::domain::command::SettleEffect;
use crate::domain::view::View;
use crate::domain::{Answer, Effect, Owed, Principal, Refusal, State, Task, Tier, Verb};
use crate::engine::{Clock, Engine, SystemClock};
use crate::jail::{Grounds, OutputBoard, Profile, Root, Supervisor};

/// Between two tries of a command that the core could not take at the moment.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(2);
/// How long results are offered to a core that does not take them while the daemon stops. Then the effect stays
/// owed as started, and the next start reports it.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// Finds a worker of the configuration as it is now.
pub type Profiles = Arc<dyn Fn(&AgentId) -> Option<Arc<Profile>> + Send + Sync>;

/// What running workers takes.
pub struct Parts {
    /// Where results go.
    pub engine: Engine,
    /// The daemon's own hand; it needs [`crate::domain::Scope::Host`].
    pub host: Principal,
    /// The workers of the configuration.
    pub profiles: Profiles,
    /// The workspace.
    pub root: Root,
    /// What no worker is ever shown.
    pub grounds: Grounds,
    /// Folder for the private copies of workers with `copy = true`; ours alone, emptied at start. It lies outside
    /// of the daemon's other folders, since a worker is shown a part of it.
    pub copies: PathBuf,
    /// How jails are started.
    pub supervisor: Supervisor,
    /// Where output can be followed.
    pub outputs: OutputBoard,
    /// Workers that may run at once; at least one. The others wait.
    pub concurrent: usize,
}

/// Runs workers until it is told to stop.
pub struct Workers {
    hands: Arc<Hands>,
}

/// What every run shares.
pub(super) struct Hands {
    pub(super) engine: Engine,
    pub(super) host: Principal,
    pub(super) profiles: Profiles,
    pub(super) place: Arc<Place>,
    pub(super) supervisor: Supervisor,
    pub(super) outputs: OutputBoard,
    pub(super) free: Semaphore,
    pub(super) shutdown: CancellationToken,
    known: Mutex<HashMap<TaskId, Arc<Order>>>,
    tracker: TaskTracker,
}

/// The switch of one task's run.
#[derive(Default)]
pub(super) struct Order {
    pub(super) stop: CancellationToken,
    pub(super) reason: OnceLock<Box<str>>,
    over: CancellationToken,
}

impl Workers {
    /// Takes up what is owed from before, then carries out what comes. Called within a runtime.
    pub fn start(
        parts: Parts,
        effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
        owed: Vec<Owed>,
    ) -> Self {
        let place = Place { root: parts.root, grounds: parts.grounds, copies: parts.copies };
        let hands = Arc::new(Hands {
            engine: parts.engine,
            host: parts.host,
            profiles: parts.profiles,
            place: Arc::new(place),
            supervisor: parts.supervisor,
            outputs: parts.outputs,
            free: Semaphore::new(parts.concurrent.max(1)),
            shutdown: CancellationToken::new(),
            known: Mutex::default(),
            tracker: TaskTracker::new(),
        });
        hands.tracker.spawn(hands.clone().work(effects, owed));
        Self { hands }
    }

    /// Ends every run and reports it lost; what has not begun stays owed. Returns when no worker is left. The
    /// engine has to go on until then.
    pub async fn stop(self) {
        self.hands.shutdown.cancel();
        self.hands.tracker.close();
        self.hands.tracker.wait().await;
    }
}

impl Hands {
    async fn work(
        self: Arc<Self>,
        mut effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
        owed: Vec<Owed>,
    ) {
        let place = self.place.clone();
        // Only a shutdown of the runtime cancels it, and then nothing is copied either.
        let _swept = tokio::task::spawn_blocking(move || remove_leftovers(&place.copies)).await;
        for Owed { id, effect, started } in owed {
            match effect {
                Effect::SpawnWorker { task } if started => {
                    self.tracker.spawn(lost(self.clone(), id, task));
                }
                effect => self.take_up(id, effect),
            }
        }
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                next = effects.recv() => match next {
                    Some((id, effect)) => self.take_up(id, effect),
                    None => return,
                },
            }
        }
    }

    /// Effects come in commit order, so that the order to stop a task finds the one to start it.
    fn take_up(self: &Arc<Self>, id: EffectId, effect: Effect) {
        match effect {
            Effect::SpawnWorker { task } => {
                let order = Arc::new(Order::default());
                self.known().insert(task.clone(), order.clone());
                let once = Once { hands: self.clone(), effect: id, task, order };
                self.tracker.spawn(once.carry_out());
            }
            Effect::StopWorker { task, reason } => {
                let order = self.known().get(&task).cloned();
                self.tracker.spawn(self.clone().end(id, order, reason));
            }
        }
    }

    async fn end(self: Arc<Self>, id: EffectId, order: Option<Arc<Order>>, reason: Box<str>) {
        if let Some(order) = order {
            // The first reason counts.
            let _later = order.reason.set(reason);
            order.stop.cancel();
            order.over.cancelled().await;
        }
        self.settle(id).await;
    }

    /// A run needs nothing more of us.
    pub(super) fn done(&self, task: &TaskId, order: &Arc<Order>) {
        let mut known = self.known();
        if known.get(task).is_some_and(|it| Arc::ptr_eq(it, order)) {
            known.remove(task);
        }
        order.over.cancel();
    }

    pub(super) async fn settle(&self, effect: EffectId) {
        self.tell(SettleEffect { effect }).await.ok();
    }

    /// Hands a verb to the core until it takes it, so that no result is lost while this process lives.
    ///
    /// # Errors
    /// What the core answers, other than that it cannot take anything at the moment; that, too, when the daemon
    /// is stopping and [`LAST_TRIES`] is over.
    pub(super) async fn tell<V: Verb + Clone>(&self, verb: V) -> Result<V::Reply, Refusal> {
        let answer = self.persist(|| self.engine.submit(&self.host, verb.clone())).await;
        match answer {
            Ok(Answer::Done(reply)) => Ok(reply),
            // The host's verbs are not judged.
            Ok(Answer::Parked(_) | Answer::Denied(_)) => Err(Refusal::busy("policy was asked")),
            Err(refusal) => {
                tracing::warn!(%refusal, "an effect's word was not taken");
                Err(refusal)
            }
        }
    }

    /// The task as it stands, with the tier that its worker gets; `None` when it is finished.
    pub(super) async fn look(&self, task: &TaskId) -> Result<Option<(Arc<Task>, Option<Tier>)>, Refusal> {
        self.persist(|| self.engine.view(TaskAndTier(task.clone()))).await
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

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, Arc<Order>>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("running", &self.hands.known().len()).finish()
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
