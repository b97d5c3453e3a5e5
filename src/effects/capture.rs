//! Carries out [`Effect::Capture`](provost_domain::Effect): takes pictures of the screen, one after the other.
//!
//! ```text
//!   [owed] --its turn--> rules asked again --yes--> [taken] --> on record
//!     |  |                    \\--no--> failed         \\--no agent waits any more--> thrown away
//!     |  +-- taken back: settled
//!     +-- daemon stops or dies: lost, told at the next start; a picture that no agent expects is never taken
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::capture_backend::StoredScreenshot;
use super::capture_config::CaptureConfig;
use super::engine_handle::EngineHandle;
use super::prepare::worker_failed;
use provost_base::{EffectId, RuleId, TaskId};
use provost_domain::command::{BeginCapture, EndCapture, Shot};
use provost_domain::{Failure, Principal, Refusal};

/// State that all pictures share.
pub(super) struct Captures {
    handle: EngineHandle,
    capture_config: watch::Receiver<Arc<CaptureConfig>>,
    turn: Semaphore,
    known: Mutex<HashMap<TaskId, CancellationToken>>,
}

/// One picture to take, whose effect is pending.
struct Once {
    captures: Arc<Captures>,
    effect: EffectId,
    task: TaskId,
    asker: Principal,
    stop: CancellationToken,
}

impl Captures {
    pub(super) fn new(
        handle: EngineHandle,
        capture_config: watch::Receiver<Arc<CaptureConfig>>,
    ) -> Arc<Self> {
        Arc::new(Self { handle, capture_config, turn: Semaphore::new(1), known: Mutex::default() })
    }

    /// Removes the leftovers of an earlier daemon. Runs before the first picture.
    pub(super) async fn sweep(&self) {
        let capture_config = self.capture_config.borrow().clone();
        // Only a shutdown of the runtime cancels it, and then no picture is taken either.
        let _swept = tokio::task::spawn_blocking(move || capture_config.sweep()).await;
    }

    /// Ends a picture that is owed from before this daemon's start: tells the agent that asked for it that there is no picture.
    pub(super) fn lost(self: &Arc<Self>, effect: EffectId, task: TaskId) {
        let handle = self.handle.clone();
        self.handle.tracker.spawn(async move {
            let end = Shot::Failed(Failure::Lost);
            handle.tell(EndCapture { effect, task, end }).await.ok();
        });
    }

    /// Begins to take a picture that is owed.
    pub(super) fn take(self: &Arc<Self>, effect: EffectId, task: TaskId, asker: Principal) {
        let stop = CancellationToken::new();
        self.known().insert(task.clone(), stop.clone());
        let span = tracing::info_span!("capture", %task, %effect);
        let once = Once { captures: self.clone(), effect, task, asker, stop };
        self.handle.tracker.spawn(once.carry_out().instrument(span));
    }

    /// Stops the taking of a task's picture; `false` if none is being taken.
    pub(super) fn stop(&self, task: &TaskId) -> bool {
        let known = self.known().get(task).cloned();
        known.inspect(CancellationToken::cancel).is_some()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, CancellationToken>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Once {
    async fn carry_out(self) {
        self.wait_and_take().await;
        self.captures.known().remove(&self.task);
    }

    async fn wait_and_take(&self) {
        let handle = &self.captures.handle;
        let _turn = tokio::select! {
            biased;
            // The next start reports the picture lost.
            () = handle.shutdown.cancelled() => return,
            () = self.stop.cancelled() => return handle.settle(self.effect).await,
            turn = self.captures.turn.acquire() => turn,
        };
        let (effect, task, asker) = (self.effect, self.task.clone(), self.asker.clone());
        match handle.tell(BeginCapture { effect, task, asker }).await {
            Ok(_) => self.take().await,
            Err(refusal @ (Refusal::Denied { .. } | Refusal::SwitchedOff { .. })) => {
                self.end(Shot::Failed(denied(refusal))).await;
            }
            Err(Refusal::TaskFinished | Refusal::TaskCannot { .. }) => handle.settle(self.effect).await,
            // The core takes no more commands; the next start reports the picture lost.
            Err(refusal) => tracing::debug!(%refusal, task = %self.task, "picture not begun"),
        }
    }

    async fn take(&self) {
        match self.snap().await {
            Ok(taken) => {
                let picture = taken.picture().clone();
                tracing::info!(path = %picture.path, bytes = picture.bytes, "picture taken");
                if !self.end(Shot::Taken(picture)).await {
                    let _thrown_away = tokio::task::spawn_blocking(move || taken.discard()).await;
                }
            }
            Err(failure) => {
                tracing::warn!(?failure, "no picture");
                self.end(Shot::Failed(failure)).await;
            }
        }
    }

    /// Takes the picture on a blocking thread. Dropping the other end of the pipe ends the program.
    async fn snap(&self) -> Result<StoredScreenshot, Failure> {
        let capture_config = self.captures.capture_config.borrow().clone();
        let (stopped, stop) = std::io::pipe()
            .map_err(|err| worker_failed(format!("the system has no resources left: {err}")))?;
        let mut work = std::pin::pin!(tokio::task::spawn_blocking(move || capture_config.snap(&stopped)));
        let shutdown = &self.captures.handle.shutdown;
        let done = tokio::select! {
            done = work.as_mut() => done,
            () = async { tokio::select! { () = self.stop.cancelled() => {}, () = shutdown.cancelled() => {} } } => {
                drop(stop);
                work.await
            }
        };
        match done {
            Ok(Err(_)) if shutdown.is_cancelled() => Err(Failure::Lost),
            Ok(done) => done,
            Err(_) => Err(worker_failed("the picture could not be taken; the daemon's log has the cause")),
        }
    }

    /// Reports the end of the picture. Returns `false` when no agent waits for it any more.
    async fn end(&self, end: Shot) -> bool {
        let (effect, task) = (self.effect, self.task.clone());
        self.captures.handle.tell(EndCapture { effect, task, end }).await.is_ok_and(|ended| ended.heard)
    }
}

/// Returns the failure of a picture whose permission has been withdrawn.
fn denied(refusal: Refusal) -> Failure {
    let (rule, reason) = match refusal {
        Refusal::Denied { rule, reason } => (rule, reason),
        other => {
            (RuleId::parse("configuration").expect("a constant that is a valid id"), other.to_string().into())
        }
    };
    Failure::PolicyDenied { rule, reason, tool: "screenshot".into() }
}
