//! The life of a task after its dispatch: handed over, reported on, cancelled, timed out, finished.

use std::path::Path;
use std::sync::Arc;

use super::command::{
    AckTask, Acked, BeginRun, Begun, CancelTask, Cancelled, EndRun, Ended, ReportTask, Reported, Status,
};
use super::hook::Words;
use super::session::SEEN_TOLD;
use super::task::AGAIN_AFTER;
use super::{
    Change, Effect, EventKind, Failure, MailKind, Outbox, Principal, Proof, Refusal, Report, Scope, State,
    Task, TaskNote, TaskState, Usage, WorkerKind,
};
use provost_base::limits::{BESIDE_MAX, MODEL_LEN_MAX, SUMMARY_LEN_MAX};
use provost_base::{AgentId, Json, TaskId, Timestamp, Ttl};

/// The addition to the user's name where the process that has cancelled a task may be a model's.
const PLACE_OF_AGENTS: &str = ", where an agent has spoken";

/// The time after its own limit in which a jailed run may report its end, before the core ends it.
pub(super) const RUN_GRACE: Ttl = Ttl::minutes(1);

/// The end of a task.
pub(super) struct Ending {
    pub(super) status: Status,
    pub(super) said: Box<str>,
    /// The agent that reports it; `None` for the daemon.
    pub(super) from: Option<AgentId>,
    pub(super) report: Report,
    pub(super) failure: Option<Failure>,
    pub(super) message: Option<Box<str>>,
}

impl Ending {
    /// Returns the end of a task that the daemon gives up.
    pub(super) fn failed(summary: String, failure: Failure) -> Self {
        let report = Report { summary: clip(&summary), ..Report::default() };
        Self {
            status: Status::Failed,
            said: "failed".into(),
            from: None,
            report,
            failure: Some(failure),
            message: None,
        }
    }
}

/// Returns a summary of bounded length, cut between characters.
pub(super) fn clip(text: &str) -> Box<str> {
    let mut end = text.len().min(SUMMARY_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

impl State {
    /// Moves a task to its end, tells all agents that wait for it, and clears its messages from queues.
    pub(super) fn finish(&self, now: Timestamp, task: &Task, ending: Ending, out: &mut Outbox) {
        let Ending { status, said, from, report, failure, message } = ending;
        let (task, mut report) = task.talked_out(report, out);
        let task = &task;
        report.metadata = task.with_attempt(task.with_files(report.metadata));
        out.append_event(EventKind::TaskFinished {
            task: task.id().clone(),
            status,
            failure: failure.clone(),
            report: report.digest(),
            usage: Usage::of_metadata(report.metadata.as_ref()).map(Box::new),
        });
        for listener in task.listeners(true) {
            let word = MailKind::Word {
                task: task.id().clone(),
                from: from.clone(),
                worker: task.order.worker.clone(),
                goal: task.order.goal.clone(),
                said: said.clone(),
                last: true,
                report: report.clone(),
                failure: failure.clone(),
                return_to: task.order.return_to.clone(),
            };
            self.mail.post(now, &listener, word, out);
        }
        let words = Words { said: &said, last: true, report: &report, failure: failure.as_ref() };
        self.owe_hook(now, task, &words, out);
        self.mail.withdraw_work(&task.order.worker, task.id(), out);
        self.free_locks_of(task, out);
        self.drop_questions_of(task.id(), out);
        out.count_finished(status == Status::Failed);
        let from = from.unwrap_or_else(super::provost);
        let note = TaskNote { at: now, from, said, report: kept(report), failure: failure.clone(), message };
        let mut task = task.clone().with_note(note);
        task.state = TaskState::Finished { status, at: now };
        task.failure = failure;
        self.end_spending(&task, out);
        out.put(Change::FinishTask(Arc::new(task)));
    }

    /// Takes a report on a task. Only its worker may move it; its asker cancels it by reporting `cancelled`. DevIt
    /// NOTIFY.
    pub(super) fn report(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReportTask,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<Reported, Refusal> {
        if who.proof() == Proof::Jailed {
            return self.report_from_inside(now, who, verb, past, out);
        }
        let task = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        // A jailed worker has reported above. Its task ends with its run, and no report from elsewhere moves it.
        if task.kind == WorkerKind::Cli || task.order.worker != *who.agent() {
            if verb.status == Status::Cancelled && task.asked_by == *who.agent() {
                let (task, reason) = (verb.task.clone(), clip(&verb.report.summary));
                let cancelled = self.cancel(now, who, &CancelTask { task, reason }, past, out)?;
                return Ok(Reported { state: cancelled.state });
            }
            return Err(Refusal::TaskNotYours { owner: task.order.worker.clone() });
        }
        // A frame that comes a second time is answered as the first one was, and changes nothing.
        if verb.message.is_some() && task.notes.iter().any(|note| note.message == verb.message) {
            return Ok(Reported { state: task.state });
        }
        match task.state {
            TaskState::Finished { .. } => return Err(Refusal::TaskFinished),
            from @ (TaskState::Awaiting { .. } | TaskState::Waiting | TaskState::Retrying { .. }) => {
                return Err(Refusal::TaskCannot { from });
            }
            _ => {}
        }
        let said: Box<str> = verb.report.relay.as_ref().map_or_else(
            || verb.status.as_str().into(),
            |relay| {
                relay.value().get("status").and_then(|it| it.as_str()).unwrap_or(verb.status.as_str()).into()
            },
        );
        let (said, mut report) = (clip(&said), verb.report.clone());
        report.summary = clip(&report.summary);
        let task = &with_models(task, &report);
        if matches!(verb.status, Status::Completed | Status::Failed | Status::Cancelled) {
            let (from, message) = (Some(who.agent().clone()), verb.message.clone());
            let ending = Ending { status: verb.status, said, from, report, failure: None, message };
            self.finish(now, task, ending, out);
            return Ok(Reported { state: TaskState::Finished { status: verb.status, at: now } });
        }
        Ok(Reported { state: self.progress(now, who, verb, task, (said, report), out) })
    }

    fn progress(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReportTask,
        task: &Arc<Task>,
        (said, report): (Box<str>, Report),
        out: &mut Outbox,
    ) -> TaskState {
        self.announce_progress(now, who, verb.status, task, (&said, &report), out);
        self.mail.withdraw_work(&task.order.worker, task.id(), out);
        task.watch_from_now_on(out);
        let since = task.state.since().unwrap_or(now);
        let lease_until = task.within_terms(since, now.after(task.lease(&self.settings)));
        let state = match verb.status {
            Status::Pending => TaskState::Assigned { since, lease_until, again: true },
            _ => TaskState::Running { since, lease_until },
        };
        let note = TaskNote {
            at: now,
            from: who.agent().clone(),
            said,
            report: kept(report),
            failure: None,
            message: verb.message.clone(),
        };
        let mut task = (**task).clone().with_note(note);
        task.state = state;
        task.worked_from = Some(who.share());
        out.put(Change::PutTask(Arc::new(task)));
        state
    }

    /// Puts progress on record, and tells all agents that wait for the task.
    pub(super) fn announce_progress(
        &self,
        now: Timestamp,
        who: &Principal,
        to: Status,
        task: &Task,
        (said, report): (&str, &Report),
        out: &mut Outbox,
    ) {
        let (id, digest) = (task.id().clone(), report.digest());
        out.append_event(EventKind::TaskMoved { task: id, to, said: said.into(), report: digest });
        for listener in task.listeners(false) {
            let word = MailKind::Word {
                task: task.id().clone(),
                from: Some(who.agent().clone()),
                worker: task.order.worker.clone(),
                goal: task.order.goal.clone(),
                said: said.into(),
                last: false,
                report: report.clone(),
                failure: None,
                return_to: task.order.return_to.clone(),
            };
            self.mail.post(now, &listener, word, out);
        }
        self.owe_hook(now, task, &Words { said, last: false, report, failure: None }, out);
    }

    /// Records that a polling worker has its task in hand.
    pub(super) fn assigned(&self, now: Timestamp, who: &Principal, task: &TaskId, out: &mut Outbox) {
        let Some(task) = self.tasks.get(task) else { return };
        let state = match task.state {
            TaskState::Queued { .. } => {
                task.watch_from_now_on(out);
                out.append_event(EventKind::TaskAssigned {
                    task: task.id().clone(),
                    worker: task.order.worker.clone(),
                });
                let lease_until = task.within_terms(now, now.after(task.lease(&self.settings)));
                TaskState::Assigned { since: now, lease_until, again: false }
            }
            _ => return,
        };
        let mut task = (**task).clone();
        (task.state, task.updated_at) = (state, now);
        task.worked_from = Some(who.share());
        out.put(Change::PutTask(Arc::new(task)));
    }

    /// Acknowledges a task for an agent that it concerns. Its worker may not, since the notification was the
    /// worker's word.
    pub(super) fn ack(
        &self,
        who: &Principal,
        verb: &AckTask,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<Acked, Refusal> {
        let task = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        let concerned = task.asked_by == *who.agent() || task.order.return_to.as_ref() == Some(who.agent());
        let is_worker = task.order.worker == *who.agent();
        if (!concerned || is_worker) && !who.is_person() {
            return Err(Refusal::TaskNotYours { owner: task.asked_by.clone() });
        }
        out.append_event(EventKind::TaskAcked { task: verb.task.clone() });
        Ok(Acked { released: self.signal_hooks(&verb.task, out) })
    }

    /// Cancels a task in any state.
    pub(super) fn cancel(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &CancelTask,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<Cancelled, Refusal> {
        let task = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        // Any process of the user may stop a run, as with a signal; if the process may be a model's, the task records that.
        if task.asked_by != *who.agent() && !who.may(Scope::Operate) {
            return Err(Refusal::TaskNotYours { owner: task.asked_by.clone() });
        }
        match task.state {
            state @ TaskState::Finished { status: Status::Cancelled, .. } => return Ok(Cancelled { state }),
            TaskState::Finished { .. } => return Err(Refusal::TaskFinished),
            TaskState::Awaiting { approval } => self.drop_approval(approval, out),
            // Its worker has not heard of it.
            TaskState::Waiting | TaskState::Retrying { .. } => {}
            TaskState::Queued { .. } if task.is_open() => {}
            TaskState::Running { .. } | TaskState::Queued { .. } if task.kind == WorkerKind::Cli => {
                out.owe_at(
                    task.daemon,
                    Effect::StopWorker { task: verb.task.clone(), reason: verb.reason.clone() },
                );
            }
            _ => self.call_off(now, task, "cancelled", &verb.reason, out),
        }
        let place = if who.may(Scope::Operate) && who.is_of_agents() { PLACE_OF_AGENTS } else { "" };
        let summary = format!("Cancelled by {}{place}: {}", who.agent(), verb.reason);
        let ending = Ending {
            status: Status::Cancelled,
            said: "cancelled".into(),
            from: None,
            report: Report { summary: clip(&summary), ..Report::default() },
            failure: None,
            message: None,
        };
        self.finish(now, task, ending, out);
        Ok(Cancelled { state: TaskState::Finished { status: Status::Cancelled, at: now } })
    }

    /// Tells a polling worker that its asker does not wait for the task any more.
    ///
    /// DevIt 1.7: workers understand NOTIFY `cancelled` and `timeout` addressed to them.
    fn call_off(&self, now: Timestamp, task: &Task, said: &str, why: &str, out: &mut Outbox) {
        // A message that is on its way at this moment has most probably arrived.
        let away = !self.mail.is_handing_over(&task.order.worker, task.id());
        if matches!(task.state, TaskState::Queued { .. }) && away {
            return;
        }
        let word = MailKind::Word {
            task: task.id().clone(),
            from: None,
            worker: task.order.worker.clone(),
            goal: task.order.goal.clone(),
            said: said.into(),
            last: true,
            report: Report { summary: clip(why), ..Report::default() },
            failure: None,
            return_to: None,
        };
        self.mail.post(now, &task.order.worker, word, out);
    }

    pub(super) fn begin_run(
        &self,
        now: Timestamp,
        verb: &BeginRun,
        out: &mut Outbox,
    ) -> Result<Begun, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let TaskState::Queued { .. } = task.state else {
            return Err(Refusal::TaskCannot { from: task.state });
        };
        if task.travel.is_some() && !self.is_here(task.daemon) {
            return Err(Refusal::TaskCannot { from: task.state });
        }
        self.switches.begins(&task.order.worker)?;
        self.has_place_in_pool(&task.order.worker)?;
        let mut task = (**task).clone();
        task.state = TaskState::Running { since: now, lease_until: verb.until.after(RUN_GRACE) };
        task.updated_at = now;
        task.daemon = self.here;
        out.append_event(EventKind::TaskStarted { task: verb.task.clone() });
        out.put(Change::StartEffect(verb.effect));
        task.beside = self.tell_neighbours(&task, out);
        self.keep_needs(&task, verb.until.after(RUN_GRACE), out);
        out.put(Change::PutTask(Arc::new(task)));
        Ok(Begun)
    }

    /// Records, for a task that begins and for those that already run in its directory, that they may see each
    /// other's half-done work.
    fn tell_neighbours(&self, task: &Task, out: &mut Outbox) -> Vec<TaskId> {
        let neighbours: Vec<&Arc<Task>> =
            self.tasks.iter().filter(|it| self.share_a_directory(it, task)).take(BESIDE_MAX).collect();
        for neighbour in &neighbours {
            out.append_event(EventKind::TaskBeside {
                task: neighbour.id().clone(),
                others: vec![task.id().clone()],
            });
            if neighbour.beside.len() < BESIDE_MAX {
                let mut neighbour = Task::clone(neighbour);
                neighbour.beside.push(task.id().clone());
                out.put(Change::PutTask(Arc::new(neighbour)));
            }
        }
        let others: Vec<TaskId> = neighbours.iter().map(|it| it.id().clone()).collect();
        if !others.is_empty() {
            out.append_event(EventKind::TaskBeside { task: task.id().clone(), others: others.clone() });
        }
        others
    }

    /// Checks whether a running task and another one work on the same files: one's directory is, or lies in, the other's.
    fn share_a_directory(&self, running: &Task, task: &Task) -> bool {
        let in_place = |it: &Task| {
            let copies = self.settings.workers.get(&it.order.worker).is_some_and(|worker| worker.copy);
            it.kind == WorkerKind::Cli && !copies && it.order.work_tree.is_none()
        };
        let (Some(one), Some(other)) = (&running.directory, &task.directory) else { return false };
        let (one, other) = (Path::new(&*one.absolute), Path::new(&*other.absolute));
        running.id() != task.id()
            && running.daemon.host == task.daemon.host
            && matches!(running.state, TaskState::Running { .. })
            && in_place(running)
            && in_place(task)
            && (one.starts_with(other) || other.starts_with(one))
    }

    pub(super) fn end_run(
        &self,
        now: Timestamp,
        verb: &EndRun,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Ended {
        out.put(Change::DropEffect(verb.effect));
        if let Some(task) = self.tasks.get(&verb.task) {
            if self.tries_again(now, task, verb, out) {
                return Ended;
            }
            let mut report = verb.report.clone();
            report.summary = clip(&report.summary);
            report.metadata = with_neighbours(report.metadata, &task.beside);
            let ending = Ending {
                status: verb.status,
                said: verb.status.as_str().into(),
                from: Some(task.order.worker.clone()),
                report,
                failure: verb.failure.clone(),
                message: None,
            };
            let (model_used, changes) = (verb.model_used.clone(), verb.changes.clone());
            let task = Task { model_used, changes, ..(**task).clone() };
            self.finish(now, &task, ending, out);
        } else if let Some(task) = past {
            self.end_late(now, task, verb, out);
        }
        Ended
    }

    /// Handles a task's deadline: the task is handed over again, its lease is extended, or it is given up.
    pub(super) fn overdue(&self, now: Timestamp, task: &Arc<Task>, out: &mut Outbox) {
        let (worker, id) = (&task.order.worker, task.id());
        if let TaskState::Retrying { .. } = task.state {
            return self.try_again(now, task, out);
        }
        if let Some(renewed) = self.renewed(now, task) {
            let mut task = (**task).clone();
            task.state = renewed;
            if let TaskState::Assigned { again: true, .. } = renewed {
                let work = MailKind::Work { task: id.clone(), payload: task.order.payload.clone() };
                // The worker may have taken the first message and lost it; two in its queue would be work done twice.
                self.mail.withdraw_work(worker, id, out);
                self.mail.post(now, worker, work, out);
            }
            out.put(Change::PutTask(Arc::new(task)));
            return;
        }
        let ending = match task.state {
            TaskState::Queued { .. } if task.capture => super::screenshot::out_of_time(task),
            TaskState::Queued { .. } => away(now, task),
            TaskState::Running { since, .. } if task.kind == WorkerKind::Cli => {
                let reason = "the run did not end in time".into();
                // The effect is owed to the daemon that runs the worker; this one may be another host's.
                out.owe_at(task.daemon, Effect::StopWorker { task: id.clone(), reason });
                let timeout_s = now.since_ms(since) / 1000;
                Ending::failed(
                    format!("Task timed out after {timeout_s}s"),
                    Failure::RunTimeout { timeout_s },
                )
            }
            state if task.over_time(state.since().unwrap_or(now), now) => {
                let timeout_s = state.since().map_or(0, |since| now.since_ms(since)) / 1000;
                let summary = format!("Task timed out after {timeout_s}s");
                self.call_off(now, task, "timeout", &summary, out);
                Ending::failed(summary, Failure::RunTimeout { timeout_s })
            }
            _ => {
                let timeout_s = task.lease(&self.settings).as_seconds();
                let summary = format!("Task lease expired after {timeout_s}s without completion");
                self.call_off(now, task, "timeout", &summary, out);
                Ending::failed(summary, Failure::LeaseTimeout { timeout_s, worker: worker.clone() })
            }
        };
        self.finish(now, task, ending, out);
    }

    /// Handles work that was given up before its worker saw it; its task cannot begin any more.
    pub(super) fn not_collected(&self, now: Timestamp, task: &TaskId, out: &mut Outbox) {
        if let Some(task) = self.tasks.get(task)
            && matches!(task.state, TaskState::Queued { .. })
        {
            self.finish(now, task, away(now, task), out);
        }
    }

    /// Returns the state in which a polled task goes on, if its worker is still present or has not been asked twice.
    fn renewed(&self, now: Timestamp, task: &Task) -> Option<TaskState> {
        if task.kind == WorkerKind::Cli {
            return None;
        }
        let since = task.state.since()?;
        if task.over_time(since, now) {
            return None;
        }
        // No worker could give a sign of life while the daemon was away.
        let seen = self.agents.last_seen(&task.order.worker).or(self.awake_since);
        // Signs of life of a worker at another host are published only now and then.
        let elsewhere = self.agents.at(&task.order.worker).is_some_and(|it| it.daemon.host != self.here.host);
        let seen = seen.map(|seen| if elsewhere { seen.after(SEEN_TOLD) } else { seen });
        let renew = |lease: Timestamp| {
            let until = seen.map_or(lease, |seen| lease.max(seen.after(task.lease(&self.settings))));
            let until = task.within_terms(since, until);
            (now < until).then_some(until)
        };
        match task.state {
            TaskState::Assigned { since, lease_until, again: false } if since.after(AGAIN_AFTER) <= now => {
                let lease_until = renew(lease_until)?;
                Some(TaskState::Assigned { since, lease_until, again: true })
            }
            TaskState::Assigned { since, lease_until, again } => {
                Some(TaskState::Assigned { since, lease_until: renew(lease_until)?, again })
            }
            TaskState::Running { since, lease_until } => {
                Some(TaskState::Running { since, lease_until: renew(lease_until)? })
            }
            _ => None,
        }
    }
}

impl TaskState {
    fn since(self) -> Option<Timestamp> {
        match self {
            TaskState::Assigned { since, .. } | TaskState::Running { since, .. } => Some(since),
            _ => None,
        }
    }
}

/// Returns the end of a task whose worker has not come for it.
fn away(now: Timestamp, task: &Task) -> Ending {
    let (worker, kept_s) = (task.order.worker.clone(), now.since_ms(task.updated_at) / 1000);
    let summary = format!("Worker {worker} did not come for the task within {kept_s}s");
    Ending::failed(summary, Failure::WorkerAway { kept_s, worker })
}

/// Adds to a result the tasks that ran in the same directory, since it may have traces of them.
fn with_neighbours(metadata: Option<Json>, beside: &[TaskId]) -> Option<Json> {
    if beside.is_empty() {
        return metadata;
    }
    let mut block = metadata.map_or_else(|| serde_json::json!({}), |it| it.value());
    if let Some(members) = block.as_object_mut() {
        let names = beside.iter().map(|it| it.as_str().into()).collect();
        members.insert("shared_directory_with".into(), serde_json::Value::Array(names));
    }
    Some(Json::from_value(&block))
}

/// Adds to a task what its worker reports about models. DevIt 1.5, NOTIFY.
fn with_models(task: &Arc<Task>, report: &Report) -> Arc<Task> {
    let Some(metadata) = report.metadata.as_ref().map(Json::value) else { return task.clone() };
    let named = |key: &str| {
        let name = metadata.get(key)?.as_str()?.trim();
        (!name.is_empty() && name.len() <= MODEL_LEN_MAX).then(|| name.into())
    };
    let mut task = Task::clone(task);
    task.order.model = task.order.model.or_else(|| named("model_requested"));
    task.model_used = named("model_used").or(task.model_used);
    Arc::new(task)
}

/// Returns the report without the message as it came, since its parts are kept already.
fn kept(report: Report) -> Report {
    Report { relay: None, ..report }
}
