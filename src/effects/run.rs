//! One run, from its place in the queue to its result on record.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::prepare::{Prepared, jail_refused, limit, prepare, worker_failed};
use super::result::{End, Outcome, Output, Run, outcome};
use super::shell::shell_profile;
use super::worker::{Hands, Order, now};
use crate::base::{EffectId, TaskId, Timestamp};
use crate::domain::command::{BeginRun, EndRun};
use crate::domain::{Failure, Task, TaskState, Tier};
use crate::jail::{ExitReason, LiveOutput, Profile, Running, Stream, launch};

/// How long output can still be read after the end of its run, by those who follow it.
const OUTPUT_KEPT: Duration = Duration::from_secs(60);

/// One owed start.
pub(super) struct Once {
    pub(super) hands: Arc<Hands>,
    pub(super) effect: EffectId,
    pub(super) task: TaskId,
    pub(super) order: Arc<Order>,
}

/// What is known of a run when it is over.
struct Over {
    end: End,
    output: Output,
    prepared: Option<(Tier, Option<String>)>,
    started: Option<Timestamp>,
}

impl Over {
    fn not_started(failure: Failure) -> Self {
        Self { end: End::NotStarted(failure), output: Output::default(), prepared: None, started: None }
    }
}

/// A run that an earlier daemon began and nobody saw end.
pub(super) async fn lost(hands: Arc<Hands>, effect: EffectId, task: TaskId) {
    let Ok(found) = hands.look(&task).await else { return };
    let Some((found, _)) = found else { return hands.settle(effect).await };
    let started = match found.state {
        TaskState::Running { since, .. } => Some(since),
        _ => None,
    };
    let profile = profile_of(&hands, &found);
    let over = Over { end: End::Lost("daemon ended"), output: Output::default(), prepared: None, started };
    report(&hands, effect, found, profile, over).await;
}

impl Once {
    /// Carries it out, whatever comes; afterwards nothing of it runs.
    pub(super) async fn carry_out(self) {
        let span = tracing::info_span!("run", task = %self.task, effect = %self.effect);
        self.wait_and_run().instrument(span).await;
        self.hands.done(&self.task, &self.order);
    }

    async fn wait_and_run(&self) {
        let (hands, order) = (&self.hands, &self.order);
        let _place = tokio::select! {
            biased;
            // What has not begun stays owed, for the next start.
            () = hands.shutdown.cancelled() => return,
            () = order.stop.cancelled() => return hands.settle(self.effect).await,
            place = hands.free.acquire() => place,
        };
        let Ok(found) = hands.look(&self.task).await else { return };
        match found {
            Some((task, tier)) if matches!(task.state, TaskState::Queued { .. }) => {
                self.run(task, tier).await
            }
            // Finished meanwhile: cancelled, or kept too long.
            _ => hands.settle(self.effect).await,
        }
    }

    async fn run(&self, task: Arc<Task>, tier: Option<Tier>) {
        let hands = &self.hands;
        let Some((profile, tier)) = (hands.profiles)(&task.order.worker).zip(tier) else {
            let why = format!("worker {} is not in the configuration any more", task.order.worker);
            let bare = profile_of(hands, &task);
            let over = Over::not_started(worker_failed(why));
            return report(hands, self.effect, task, bare, over).await;
        };
        let (place, its_task, its_profile) = (hands.place.clone(), task.clone(), profile.clone());
        let prepared =
            tokio::task::spawn_blocking(move || prepare(&place, &its_task, &its_profile, tier)).await;
        match prepared {
            Ok(Ok(prepared)) => self.begin(task, profile, prepared).await,
            Ok(Err(failure)) => {
                tracing::warn!(reason = failure.reason(), "worker not started");
                report(hands, self.effect, task, profile, Over::not_started(failure)).await;
            }
            Err(err) if err.is_panic() => {
                let failure = jail_refused("its jail could not be planned; the daemon's log has the cause");
                report(hands, self.effect, task, profile, Over::not_started(failure)).await;
            }
            // The runtime is shutting down: it stays owed.
            Err(_) => {}
        }
    }

    /// The start goes on record first, so that no crash can make it happen twice.
    async fn begin(&self, task: Arc<Task>, profile: Arc<Profile>, prepared: Prepared) {
        let hands = &self.hands;
        if hands.shutdown.is_cancelled() {
            return;
        }
        let until = now().after(prepared.limit);
        let begin = BeginRun { effect: self.effect, task: self.task.clone(), until };
        if hands.tell(begin).await.is_err() {
            // The task is over, or the core takes nothing any more and the start stays owed.
            return hands.settle_if_over(&self.task, self.effect).await;
        }
        let over = self.watch(&prepared).await;
        report(hands, self.effect, task, profile, over).await;
        // Removing a copy takes as long as making it did.
        tokio::task::spawn_blocking(move || drop(prepared));
    }

    async fn watch(&self, prepared: &Prepared) -> Over {
        let hands = &self.hands;
        let live = LiveOutput::new(prepared.plan.limits().output_bytes);
        hands.outputs.add(self.task.clone(), live.clone());
        let prepared_as = Some((prepared.tier, prepared.model.clone()));
        let started = now();
        let launched = launch(&hands.supervisor, &prepared.plan, None, live.clone()).await;
        let over = match launched {
            Err(error) => {
                tracing::warn!(%error, "worker not started");
                live.finish();
                Over { prepared: prepared_as, ..Over::not_started(jail_refused(error)) }
            }
            Ok(running) => {
                tracing::info!(layers = ?running.layers(), "worker started");
                let end = self.follow(running).await;
                tracing::info!(?end, "worker ended");
                let output = Output {
                    stdout: live.text(Stream::Out),
                    stderr: live.text(Stream::Err),
                    stdout_dropped: live.dropped(Stream::Out),
                };
                Over { end, output, prepared: prepared_as, started: Some(started) }
            }
        };
        let (outputs, task) = (hands.outputs.clone(), self.task.clone());
        // Not waited for at shutdown: the board goes with the process.
        tokio::spawn(async move {
            tokio::time::sleep(OUTPUT_KEPT).await;
            outputs.remove(&task);
        });
        over
    }

    /// Waits for the end and brings it about when it is wanted. Nothing of the worker is left afterwards.
    async fn follow(&self, mut running: Running) -> End {
        let early = tokio::select! {
            biased;
            _ = running.wait() => None,
            () = self.order.stop.cancelled() => {
                Some(End::Stopped(self.order.reason.get().cloned().unwrap_or_default()))
            }
            () = self.hands.shutdown.cancelled() => Some(End::Lost("daemon stopped")),
        };
        if early.is_some() {
            running.stop();
        }
        match (running.wait().await.reason, early) {
            // It had ended before the order reached it.
            (ExitReason::Code(code), _) => End::Code(code),
            (ExitReason::TimedOut, _) => End::TimedOut,
            (_, Some(early)) => early,
            (ExitReason::Signal(signal), None) => End::Signal(signal),
            (ExitReason::OverMemory, None) => End::OverMemory,
            (ExitReason::ProtectionLost, None) => End::ProtectionLost,
            (ExitReason::SupervisorLost | ExitReason::Cancelled, None) => End::SupervisorLost,
        }
    }
}

impl Hands {
    async fn settle_if_over(&self, task: &TaskId, effect: EffectId) {
        if let Ok(None) = self.look(task).await {
            self.settle(effect).await;
        }
    }
}

/// The task's worker; for one that is not configured any more, enough of it to speak of it.
fn profile_of(hands: &Hands, task: &Task) -> Arc<Profile> {
    let worker = &task.order.worker;
    (hands.profiles)(worker).unwrap_or_else(|| Arc::new(Profile { id: worker.clone(), ..shell_profile() }))
}

/// Reads the result off what is known and puts it on record.
async fn report(hands: &Hands, effect: EffectId, task: Arc<Task>, profile: Arc<Profile>, over: Over) {
    let id = task.id().clone();
    let (its_task, its_profile) = (task.clone(), profile.clone());
    let read = tokio::task::spawn_blocking(move || read_off(&its_task, &its_profile, &over)).await;
    let Outcome { status, report, failure, model_used } = match read {
        Ok(outcome) => outcome,
        // No output may keep a task from ending.
        Err(err) if err.is_panic() => {
            let failure = worker_failed("its output could not be read; the daemon's log has the cause");
            read_off(&task, &profile, &Over::not_started(failure))
        }
        // The runtime is shutting down; the effect stays owed.
        Err(_) => return,
    };
    let end = EndRun { effect, task: id, status, report, failure, model_used };
    if let Err(refusal) = hands.tell(end).await {
        tracing::error!(%refusal, "a result is not on record; the next start reports the task lost");
    }
}

fn read_off(task: &Task, profile: &Profile, over: &Over) -> Outcome {
    let (tier, model) =
        over.prepared.as_ref().map_or((None, None), |(tier, model)| (Some(*tier), model.as_deref()));
    let (started, ended, limit) = (over.started, now(), limit(profile, task));
    outcome(&Run { task, profile, tier, model, started, ended, limit }, &over.end, &over.output)
}
