//! One run, from its place in the queue to its result on record.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tracing::Instrument;

use super::acp::{self, Ways};
use super::agent_run::{CollectionPlan, in_its_place, is_resumed};
use super::conversation::{Conversation, RunConversation};
use super::line::LineSlot;
use super::mcp;
use super::needs::Needed;
use super::network;
use super::prepare::{Prepared, Speech, jail_refused, limit, prepare, worker_failed};
use super::result::{
    End, Outcome, Output, TaskRun, changes_of, in_part, outcome, with_artifacts, with_work_tree,
};
use super::scan_report::{Before, Compared};
use super::shared_checkout::CheckoutLease;
use super::shell::shell_profile;
use super::spending::TaskMeter;
use super::tree_turns::TreeTurn;
use super::work_tree_run::{By, TreeOutcome};
use super::worker::{RunControl, Workers};
use provost_base::{EffectId, TaskId, Timestamp};
use provost_domain::command::{BeginRun, EndRun, NoteFiles, Record, ResumeRun};
use provost_domain::{Changeset, Failure, Refusal, ScanReport, Task, Tier, Watched};
use provost_egress::{Open, Outlets};
use provost_jail::{
    ExitReason, Handed, Limits, LiveOutput, Profile, Running, Stream, conversation, launch_with,
};

/// How long the output of a run that is over is kept for its followers before other outputs may replace it.
const OUTPUT_KEPT: Duration = Duration::from_secs(60);

/// A run with a pending effect; it starts once.
pub(super) struct Once {
    pub(super) workers: Arc<Workers>,
    pub(super) effect: EffectId,
    pub(super) task: TaskId,
    pub(super) order: Arc<RunControl>,
}

/// The places that a run holds while it runs.
#[derive(Default)]
struct Places {
    /// The reason why the run never gets its worker's needs.
    never: Option<Failure>,
    /// Whether the state of the needs is unknown, so that the run does not begin.
    is_over: bool,
    /// The copy of the run's job, if the run works in that.
    copy: Option<Result<CheckoutLease, Failure>>,
    _tree: Option<TreeTurn>,
    _place: Option<LineSlot>,
}

/// The outcome of a place to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The place was used, or is not needed any more.
    Taken,
    /// The worker was switched off, or its pool has become full, at the last moment: the run waits once more.
    Again,
}

/// The parameters with which a run was prepared.
struct As {
    tier: Tier,
    model: Option<String>,
    limits: Limits,
}

/// The results of a run that is over.
pub(super) struct Over {
    pub(super) end: End,
    pub(super) output: Output,
    prepared: Option<As>,
    started: Option<Timestamp>,
    processes_reached: bool,
    /// Whether the agent closed the connection in the middle of the conversation.
    was_left: bool,
    /// The changes that were kept; `None` if none were to be kept.
    pub(super) harvest: Option<Changeset>,
    /// The outcome of the changes in the run's work tree.
    pub(super) tree: Option<TreeOutcome>,
}

impl Over {
    fn not_started(failure: Failure) -> Self {
        Self::of(End::NotStarted(failure), None)
    }

    pub(super) fn of(end: End, started: Option<Timestamp>) -> Self {
        let output = Output::default();
        let (processes_reached, was_left) = (false, false);
        Self { end, output, prepared: None, started, processes_reached, was_left, harvest: None, tree: None }
    }
}

impl Once {
    /// Carries out the run in every case; afterwards no process of it is left.
    pub(super) async fn carry_out(self) {
        let span = tracing::info_span!("run", task = %self.task, effect = %self.effect);
        self.wait_and_run().instrument(span).await;
        self.workers.done(&self.task, &self.order);
    }

    async fn wait_and_run(&self) {
        let (workers, order) = (&self.workers, &self.order);
        loop {
            let places = tokio::select! {
                biased;
                // A run that has not begun stays owed, for the next start.
                () = workers.handle.shutdown.cancelled() => return,
                () = order.stop.cancelled() => return workers.handle.settle(self.effect).await,
                places = self.places() => places,
            };
            let Ok(found) = workers.handle.look(&self.task).await else { return };
            match found {
                Some((task, tier)) if task.state.is_queued() || is_resumed(&task) => {
                    if places.is_over {
                        return;
                    }
                    if let Some(failure) = places.never {
                        let profile = profile_of(workers, &task);
                        return report(workers, self.effect, task, profile, Over::not_started(failure)).await;
                    }
                    if self.run(task, tier, places.copy).await == Turn::Taken {
                        return;
                    }
                }
                // The task has ended meanwhile: cancelled, or waited too long.
                _ => return workers.handle.settle(self.effect).await,
            }
        }
    }

    /// Waits for the places that the run needs, the scarcest first, so that a run that waits for one keeps no
    /// other run from starting: its job's copy, then a place in the line.
    async fn places(&self) -> Places {
        let workers = &self.workers;
        let Ok(Some((task, _))) = workers.handle.look(&self.task).await else {
            return Places::default();
        };
        let worker = &task.order.worker;
        loop {
            workers.handle.until_it_begins(worker).await;
            match self.have_needs(&task).await {
                Needed::Held => {}
                Needed::Never(failure) => return Places { never: Some(failure), ..Places::default() },
                Needed::Over => return Places { is_over: true, ..Places::default() },
            }
            let copy = match task.order.errand.as_ref().and_then(|errand| errand.copy.as_ref()) {
                Some(job) => Some(workers.copies.lend(job).await),
                None => None,
            };
            let tree = match workers.tree_turn(&task).await {
                Ok(tree) => tree,
                Err(failure) => return Places { never: Some(failure), ..Places::default() },
            };
            let place = workers.line.place(workers.turn(&task).await).await;
            let places = Places { copy, _tree: tree, _place: Some(place), ..Places::default() };
            // While the run waited for a place, its worker may have been switched off, and its needs have a lease.
            if !workers.handle.has_place_in_pool(worker).await {
                drop(places);
                workers.handle.until_its_pool_has_place(worker).await;
                continue;
            }
            if workers.handle.begins(worker).await && self.still_has_needs(&task).await {
                return places;
            }
        }
    }

    async fn run(
        &self,
        task: Arc<Task>,
        tier: Option<Tier>,
        lent: Option<Result<CheckoutLease, Failure>>,
    ) -> Turn {
        let workers = &self.workers;
        let Some((profile, tier)) = (workers.profiles)(&task.order.worker).zip(tier) else {
            let why = format!("worker {} is not in the configuration any more", task.order.worker);
            let bare = profile_of(workers, &task);
            let over = Over::not_started(worker_failed(why));
            report(workers, self.effect, task, bare, over).await;
            return Turn::Taken;
        };
        let (place, its_task, its_profile) = (workers.place.clone(), task.clone(), profile.clone());
        let work = move || {
            let (lent, profile) = (lent.transpose()?, in_its_place(&its_task, its_profile)?);
            let prepared = prepare(&place, &its_task, &profile, tier, lent)?;
            Ok((profile, prepared))
        };
        let prepared: Result<Result<_, Failure>, _> = tokio::task::spawn_blocking(work).await;
        match prepared {
            Ok(Ok((profile, prepared))) => return self.begin(task, profile, prepared).await,
            Ok(Err(failure)) => {
                tracing::warn!(reason = failure.reason(), "worker not started");
                report(workers, self.effect, task, profile, Over::not_started(failure)).await;
            }
            Err(err) if err.is_panic() => {
                let failure = jail_refused("its jail could not be planned; the daemon's log has the cause");
                report(workers, self.effect, task, profile, Over::not_started(failure)).await;
            }
            // The runtime is shutting down: the run stays owed.
            Err(_) => {}
        }
        Turn::Taken
    }

    /// Begins the run. Its start goes on record first, so that no crash can make it happen twice.
    async fn begin(&self, task: Arc<Task>, profile: Arc<Profile>, prepared: Prepared) -> Turn {
        let workers = &self.workers;
        if workers.handle.shutdown.is_cancelled() {
            return Turn::Taken;
        }
        let until = workers.handle.engine.now().after(prepared.limit);
        if let Err(refusal) = self.put_start_on_record(is_resumed(&task), until).await {
            if matches!(refusal, Refusal::WorkerBroken { .. } | Refusal::NotPlaced { .. }) {
                tokio::task::spawn_blocking(move || drop(prepared));
                return Turn::Again;
            }
            // The task is over, or the core takes no more commands and the start stays owed.
            workers.settle_if_over(&self.task, self.effect).await;
            return Turn::Taken;
        }
        let Some((mut prepared, noted)) = self.note_what_is_there(prepared).await else { return Turn::Taken };
        let directory = prepared.plan.writable().first().cloned();
        let watching = match directory {
            Some(directory) => workers.watchers.begin(&task, directory).await,
            None => None,
        };
        let mut door = prepared.door.take();
        let outlets = prepared.outlets.take();
        let socket = door.as_mut().and_then(|door| door.socket.take());
        let handed = Handed { door: socket, input: prepared.input.take(), ..Handed::default() };
        let told = match noted {
            Ok(()) => self.record_secrets(prepared.secrets.take()).await,
            Err(failure) => Err(failure),
        };
        let mut over = match told {
            Ok(()) => self.watch(&task, &prepared, handed, outlets).await,
            Err(failure) => Over::not_started(failure),
        };
        // The worker's last messages at its door come before its end.
        if let Some(door) = door {
            door.close().await;
        }
        let watched = match watching {
            Some(watching) => Some(watching.end().await),
            None => None,
        };
        if over.was_left && self.leaves_it_to_another(&mut prepared).await {
            return Turn::Again;
        }
        self.compare(prepared.before.take(), watched, &mut over).await;
        let (mut prepared, over) = self.keep(&task, &profile, prepared, over).await;
        self.share(&task, &over).await;
        if let Some(session) = prepared.session.take() {
            // A follow-up may come as soon as the end is reported.
            prepared.private.step_aside();
            tokio::task::spawn_blocking(move || drop(session)).await.ok();
        }
        report(workers, self.effect, task, profile, over).await;
        // Removing a copy takes as long as making it did.
        tokio::task::spawn_blocking(move || drop(prepared));
        Turn::Taken
    }

    /// Puts the start or the resumption of a run on record.
    async fn put_start_on_record(&self, is_resumed: bool, until: Timestamp) -> Result<(), Refusal> {
        let (handle, task) = (&self.workers.handle, self.task.clone());
        match is_resumed {
            true => handle.tell(ResumeRun { task, until }).await.map(drop),
            false => handle.tell(BeginRun { effect: self.effect, task, until }).await.map(drop),
        }
    }

    /// Compares the workspace with its state before the run, and puts the differences on record.
    async fn compare(&self, before: Option<Before>, watched: Option<Watched>, over: &mut Over) {
        if matches!(over.end, End::NotStarted(_)) {
            return before.into_iter().for_each(Before::finish);
        }
        let compare = move || {
            // A run without a scan before it had a copy, from which nothing reaches the user.
            let compared = before.as_ref().map_or_else(Compared::default, Before::compare);
            (compared, before)
        };
        let unknown = |_| {
            let report = ScanReport::unknown("the comparison failed; the daemon's log has the cause");
            (Compared { report, made: None }, None)
        };
        let (compared, before) = tokio::task::spawn_blocking(compare).await.unwrap_or_else(unknown);
        note_report(&self.workers, &self.task, compared.report, watched).await;
        before.into_iter().for_each(Before::finish);
        let is_stopped = matches!(over.end, End::Stopped(_) | End::Lost(_));
        if let Some(made) = compared.made.filter(|_| !is_stopped) {
            over.end = End::RepositoryMade(made.into());
        }
    }

    /// Writes the state before the run to the disk before the worker starts, so that a later daemon can find the run's repositories.
    /// `None` when the runtime is shutting down: the run is lost then, without having begun.
    async fn note_what_is_there(&self, mut prepared: Prepared) -> Option<(Prepared, Result<(), Failure>)> {
        let (place, task) = (self.workers.place.clone(), self.task.clone());
        let work = move || {
            let before = prepared.before.as_mut();
            let noted = before.map_or(Ok(()), |before| before.leave_a_trace(&place.copies, &task));
            let noted = noted.map_err(|err| {
                let why = "the state of its directory could not be recorded";
                jail_refused(format!(
                    "{why}, so nothing would tell what it makes there if the daemon is killed: {err}"
                ))
            });
            (prepared, noted)
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Writes an agent's changes and answer to the disk before its end is on record.
    async fn keep(
        &self,
        task: &Arc<Task>,
        profile: &Arc<Profile>,
        prepared: Prepared,
        over: Over,
    ) -> (Prepared, Over) {
        // Changes are kept however the run has ended: its asker judges them.
        let has_run = !matches!(over.end, End::NotStarted(_));
        let Some(yields) = CollectionPlan::of(task, profile).filter(|_| has_run) else {
            return (prepared, over);
        };
        let (keep, room) = (self.workers.keep.clone(), (self.workers.room)());
        let (withhold, ended) = (self.workers.withhold.clone(), self.workers.handle.engine.now());
        let (its_task, its_profile) = (task.clone(), profile.clone());
        let work = move || {
            let kept = yields.keep(&prepared.private, &over.output, (&keep, room));
            // The commit comes after the changes are on the disk: a start that finds no commit makes it again.
            let tree = prepared.private.tree().zip(kept.as_ref().ok()).map(|(tree, changes)| {
                let unfinished = read_off(&its_task, &its_profile, &over, ended).unfinished();
                tree.commit(changes, &By::of(&its_task, unfinished.as_deref()), &withhold)
            });
            (prepared, Over { tree, ..over }, kept)
        };
        let (prepared, over, kept) = match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let over = match kept {
            Ok(harvest) => Over { harvest: Some(harvest), ..over },
            Err(why) => {
                let why = format!("its changes are lost: {why}");
                match over.end {
                    End::Code(0) | End::Told(_) => Over { end: End::Untold(why.into()), ..over },
                    // Such a run has a reason of its own already.
                    _ => {
                        let left_out = vec![why.into()];
                        let harvest = Changeset { left_out, incomplete: true, ..Changeset::default() };
                        Over { harvest: Some(harvest), ..over }
                    }
                }
            }
        };
        (prepared, over)
    }

    /// Puts the secrets of a run on record before the worker has them.
    async fn record_secrets(&self, given: Option<Record>) -> Result<(), Failure> {
        let Some(given) = given else { return Ok(()) };
        let told = self.workers.handle.tell(given).await;
        told.map(drop)
            .map_err(|refusal| jail_refused(format!("its secrets could not be put on record: {refusal}")))
    }

    async fn watch(
        &self,
        task: &Task,
        prepared: &Prepared,
        mut handed: Handed,
        outlets: Option<Outlets>,
    ) -> Over {
        let (workers, is_resumed) = (&self.workers, is_resumed(task));
        let live = match workers.outputs.get(&self.task).filter(|_| is_resumed) {
            Some(before) => before.reopened(),
            None => LiveOutput::new(prepared.plan.limits().output_bytes),
        };
        workers.outputs.add((self.task.clone(), task.attempt()), live.clone());
        if is_resumed {
            let line = json!({ "provost": "resumed", "why": "its process, or the daemon, had ended in the middle of a turn" });
            live.push(Stream::Out, format!("{line}\n").as_bytes());
        }
        let limits = prepared.plan.limits().clone();
        let prepared_as = Some(As { tier: prepared.tier, model: prepared.model.clone(), limits });
        let started = workers.handle.engine.now();
        let launched = match talk_with(prepared, &mut handed, &live, Ways::of(workers, &self.task)) {
            Ok(talk) => {
                let supervisor = prepared.supervisor(&workers.supervisor);
                let launched = launch_with(&supervisor, &prepared.plan, handed, live.clone());
                launched.await.map(|running| (running, talk)).map_err(jail_refused)
            }
            Err(error) => Err(jail_refused(format!("no way to speak to it: {error}"))),
        };
        let over = match launched {
            Err(failure) => {
                tracing::warn!(?failure, "worker not started");
                live.finish();
                Over { prepared: prepared_as, ..Over::not_started(failure) }
            }
            Ok((mut running, talk)) => {
                tracing::info!(layers = ?running.layers(), "worker started");
                let meter = TaskMeter::new(workers.handle.clone(), self.task.clone());
                let way = outlets.map(|it| it.metered(Arc::new(meter)).open(running.take_outlets()));
                let whose = prepared.call.as_ref().map_or("", Speech::whose);
                let (end, processes_reached, was_left) = self.follow(running, talk, whose).await;
                self.close(way).await;
                tracing::info!(?end, "worker ended");
                let output = Output {
                    stdout: live.text(Stream::Out),
                    stderr: live.text(Stream::Err),
                    stdout_dropped: live.dropped(Stream::Out),
                    stderr_dropped: live.dropped(Stream::Err),
                };
                let over = Over::of(end, Some(started));
                Over { output, prepared: prepared_as, processes_reached, was_left, ..over }
            }
        };
        let (outputs, task) = (workers.outputs.clone(), self.task.clone());
        // The shutdown does not wait for this: the board ends with the process. A run that is not over keeps its entry.
        tokio::spawn(async move {
            tokio::time::sleep(OUTPUT_KEPT).await;
            if live.is_finished() {
                outputs.retire(&task, &live);
            }
        });
        over
    }

    /// Closes the network access, and puts its use on record.
    async fn close(&self, way: Option<Open>) {
        let Some(way) = way else { return };
        network::put_on_record(&self.workers.handle, &self.task, &way.close().await).await;
    }

    /// Waits for the end, and ends the worker when that is ordered. No process of the worker is left afterwards.
    async fn follow(
        &self,
        mut running: Running,
        talk: Option<Conversation>,
        whose: &'static str,
    ) -> (End, bool, bool) {
        let mut talking = RunConversation::about(talk, whose);
        let early = tokio::select! {
            biased;
            () = talking.over() => None,
            _ = running.wait() => None,
            () = self.order.stop.cancelled() => Some(self.stopped()),
            () = self.workers.handle.shutdown.cancelled() => Some(End::Lost("daemon stopped")),
        };
        match early {
            Some(End::Stopped(_)) => running.ask_to_end(),
            Some(_) => running.stop(),
            None => talking.settle(&mut running).await,
        }
        let exit = running.wait().await;
        let early_is_none = early.is_none();
        let end = match (exit.reason, early) {
            // The process had ended before the order reached it.
            (ExitReason::Code(code), _) => End::Code(code),
            (ExitReason::TimedOut, _) => End::TimedOut,
            (_, Some(early)) => early,
            (ExitReason::Signal(signal), None) => End::Signal(signal),
            (ExitReason::OverMemory, None) => End::OverMemory,
            (ExitReason::OverSpace(space), None) => End::OverSpace(space),
            (ExitReason::ProtectionLost, None) => End::ProtectionLost,
            (ExitReason::RepositoryMade, None) => End::RepositoryMade(Box::default()),
            (ExitReason::SupervisorLost | ExitReason::Cancelled, None) => End::SupervisorLost,
        };
        let was_left = early_is_none && talking.was_left();
        (talking.weigh(end), exit.processes_reached, was_left)
    }
}

impl Workers {
    /// Waits for the task's turn in its work tree, if it works in one.
    pub(super) async fn tree_turn(&self, task: &Task) -> Result<Option<TreeTurn>, Failure> {
        match (&task.order.work_tree, &self.place.trees) {
            (Some(branch), Some(trees)) => self.tree_turns.wait(trees, branch).await.map(Some),
            _ => Ok(None),
        }
    }

    async fn settle_if_over(&self, task: &TaskId, effect: EffectId) {
        if let Ok(None) = self.handle.look(task).await {
            self.handle.settle(effect).await;
        }
    }
}

/// Begins a conversation with a worker that the daemon speaks with.
fn talk_with(
    prepared: &Prepared,
    handed: &mut Handed,
    live: &LiveOutput,
    ways: Ways,
) -> std::io::Result<Option<Conversation>> {
    let Some(call) = prepared.call.clone() else { return Ok(None) };
    let (ours, theirs) = conversation()?;
    handed.stdio = Some(theirs);
    Ok(Some(match call {
        Speech::Mcp(call) => Box::pin(mcp::converse(ours, call)),
        Speech::Acp(errand) => Box::pin(acp::converse(ours, errand, live.clone(), ways)),
    }))
}

/// Returns the task's worker; for one that is not configured any more, a stand-in with its name.
pub(super) fn profile_of(workers: &Workers, task: &Task) -> Arc<Profile> {
    let worker = &task.order.worker;
    (workers.profiles)(worker).unwrap_or_else(|| Arc::new(Profile { id: worker.clone(), ..shell_profile() }))
}

/// Puts the report of a run on record before its end, so that an agent that gets the end gets the report, too.
pub(super) async fn note_report(
    workers: &Workers,
    task: &TaskId,
    handoff: ScanReport,
    watched: Option<Watched>,
) {
    if handoff.is_tainted() {
        tracing::warn!(%task, findings = handoff.findings.len(), unknown = ?handoff.unknown, "tainted");
    }
    let verb = NoteFiles { task: task.clone(), handoff: Some(handoff), watched, news: None };
    if let Err(refusal) = workers.handle.tell(verb).await {
        tracing::error!(%refusal, "a scan report is not on record");
    }
}

/// Reads the result of a run and puts it on record.
pub(super) async fn report(
    workers: &Workers,
    effect: EffectId,
    task: Arc<Task>,
    profile: Arc<Profile>,
    over: Over,
) {
    let id = task.id().clone();
    let (its_task, its_profile) = (task.clone(), profile.clone());
    let ended = workers.handle.engine.now();
    let changes = over.harvest.as_ref().and_then(changes_of);
    let read = tokio::task::spawn_blocking(move || read_off(&its_task, &its_profile, &over, ended)).await;
    let Outcome { status, report, failure, model_used } = match read {
        Ok(outcome) => outcome,
        // An output that cannot be read must not keep a task from ending.
        Err(err) if err.is_panic() => {
            let failure = worker_failed("its output could not be read; the daemon's log has the cause");
            read_off(&task, &profile, &Over::not_started(failure), ended)
        }
        // The runtime is shutting down; the effect stays owed.
        Err(_) => return,
    };
    let end = EndRun { effect, task: id, status, report, failure, model_used, changes };
    if let Err(refusal) = workers.handle.tell(end).await {
        tracing::error!(%refusal, "a result is not on record; the next start reports the task lost");
    }
}

fn read_off(task: &Task, profile: &Profile, over: &Over, ended: Timestamp) -> Outcome {
    let prepared = over.prepared.as_ref();
    let run = TaskRun {
        task,
        profile,
        tier: prepared.map(|it| it.tier),
        model: prepared.and_then(|it| it.model.as_deref()),
        started: over.started,
        ended,
        limit: limit(profile, task),
        limits: prepared.map(|it| &it.limits),
        processes_reached: over.processes_reached,
    };
    let outcome = outcome(&run, &over.end, &over.output);
    let outcome = match &over.tree {
        Some(tree) => with_work_tree(outcome, tree),
        None => outcome,
    };
    match &over.harvest {
        // An editor's job reports by itself that a part was kept.
        Some(harvest) if harvest.incomplete && task.order.errand.is_none() => {
            in_part(with_artifacts(outcome, harvest, task.id()), harvest)
        }
        Some(harvest) => with_artifacts(outcome, harvest, task.id()),
        None => outcome,
    }
}
