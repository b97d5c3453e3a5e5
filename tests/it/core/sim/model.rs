//! The expectations of every step, kept apart from the core and fed with its answers.

use super::*;

impl Model {
    pub(super) fn owes(&mut self, id: EffectId, effect: &Effect, said: &Outcome, out: &Outbox) {
        assert!(self.owed.insert(id, (effect.clone(), false)).is_none(), "effects have numbers of their own");
        let task = match effect {
            Effect::SpawnWorker { task } => task,
            Effect::Capture { task, .. } => task,
            Effect::StopWorker { .. }
            | Effect::WatchFiles { .. }
            | Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::RunJob { .. }
            | Effect::DropChanges { .. }
            | Effect::RunMerges { .. }
            | Effect::WriteFiles { .. } => return,
        };
        assert!(
            !matches!(said, Ok(Some(Answer::Denied(_) | Answer::Parked(_)))),
            "a no that starts a worker"
        );
        assert!(self.spawned.insert(task.clone()), "{task} is started twice");
        let started = out.changes.iter().find_map(|change| match change {
            Change::PutTask(it) if it.id() == task => Some(it),
            _ => None,
        });
        let started = started.expect("a start belongs to a task");
        assert!(matches!(started.state, TaskState::Queued { .. }) && started.kind == WorkerKind::Cli);
        let what = if started.capture { started.id().as_str() } else { &*started.order.goal };
        let asks = what.starts_with("ask");
        let granted = started.approval.is_some()
            && out.events.iter().any(|event| {
                matches!(event.kind, EventKind::ApprovalAnswered { verdict: Verdict::Granted, .. })
            });
        let granted = granted || (self.is_released(task) && self.granted.contains(task));
        assert_eq!(asks, granted, "{task} was started without the word it needs");
        assert!(!what.starts_with("never"));
    }

    /// Whether a task has waited for others until now.
    fn is_released(&self, task: &TaskId) -> bool {
        self.folded.tasks.get(task).is_some_and(|it| it.state == TaskState::Waiting)
    }

    pub(super) fn answered(&mut self, who: &Principal, verb: &AnswerApproval, now: Timestamp) {
        let parked = self.folded.approvals.get(verb.approval).expect("only what waits is answered");
        assert!(parked.who.agent() != who.agent() || who.is_person(), "answered by its asker");
        assert!(parked.expires_at > now && who.may(Scope::Approve));
        assert!(who.is_person() || *who.agent() == named("boss"), "{who} is no approver");
        assert!(who.is_person() || !parked.rule.as_str().contains("human"));
        assert!(verb.shown.is_none_or(|shown| shown == parked.shown));
        if verb.verdict == Verdict::Granted {
            self.granted.extend(parked.task().cloned());
        }
    }

    pub(super) fn follow(&mut self, change: &Change, by: Option<(&Principal, &Command)>, now: Timestamp) {
        match change {
            Change::PutTask(task) => {
                assert!(!self.finished.contains_key(task.id()), "a finished task came back");
                self.may_move(task, by, false);
            }
            Change::FinishTask(task) => {
                self.may_move(task, by, true);
                assert_eq!(task.state, TaskState::Finished { status: task.state.status(), at: now });
                let earlier = self.finished.insert(task.id().clone(), task.clone());
                assert!(earlier.is_none(), "{} finished twice", task.id());
            }
            Change::PutUses(uses) if uses.rule.as_str() == "screenshot.taken" => {
                assert!(uses.at.len() <= PICTURES as usize, "more pictures than the rate allows");
            }
            Change::DropApproval(id) => assert!(self.settled.insert(*id), "{id} was settled twice"),
            Change::StartEffect(id) => {
                let owed = self.owed.get_mut(id).expect("only what is owed is started");
                assert!(!std::mem::replace(&mut owed.1, true), "{id} was started twice");
            }
            Change::DropEffect(id) => drop(self.owed.remove(id)),
            Change::DropMail(_, seq) => drop(self.carried.remove(seq)),
            _ => {}
        }
        if change.is_stored() {
            self.folded.apply(change);
        }
    }

    /// Checks that the caller may have moved a task to its state.
    pub(super) fn may_move(&self, task: &Task, by: Option<(&Principal, &Command)>, last: bool) {
        let old = self.folded.tasks.get(task.id());
        let Some((who, command)) = by else {
            return assert!(old.is_some(), "time made a task");
        };
        // One that it has waited for has ended in this step, and is over by now.
        let is_over = |it: &TaskId| self.finished.contains_key(it);
        if let Some(old) = old
            && old.waits.iter().any(is_over)
        {
            let is_shorter =
                task.waits.len() < old.waits.len() && task.waits.iter().all(|it| old.waits.contains(it));
            let never = matches!(task.failure, Some(Failure::NotBegun { .. }));
            return assert!(if last { never } else { is_shorter }, "{old:?} to {task:?}");
        }
        let is_worker = *who.agent() == task.order.worker && task.kind == WorkerKind::Polling;
        let is_asker = *who.agent() == task.asked_by;
        let right = match command {
            Command::Delegate(verb) => old.is_none() && is_asker && verb.task == *task.id(),
            Command::ReportTask(verb) => is_worker || (last && is_asker && verb.status == Status::Cancelled),
            Command::SettleMail(_) => is_worker && !last,
            Command::CancelTask(_) => last && (is_asker || who.may(Scope::Operate)),
            Command::AnswerApproval(_) => {
                old.is_some_and(|old| matches!(old.state, TaskState::Awaiting { .. }))
            }
            Command::TakeScreenshot(verb) => old.is_none() && is_asker && verb.task == *task.id(),
            Command::BeginCapture(_) => who.may(Scope::Host) && !last && task.capture,
            Command::EndCapture(_) => who.may(Scope::Host) && last && task.capture,
            Command::BeginRun(_) => who.may(Scope::Host) && !last,
            Command::NoteFiles(_) => who.may(Scope::Host) && !last,
            Command::EndRun(_) => who.may(Scope::Host) && last,
            Command::Register(_) => is_worker && last,
            _ => false,
        };
        assert!(right, "{who} moved {} by {} to {:?}", task.id(), command.name(), task.state);
        if let Some(old) = old {
            assert_eq!((&old.order, &old.asked_by, old.depth), (&task.order, &task.asked_by, task.depth));
        }
    }

    pub(super) fn within_rate(
        &mut self,
        who: &Principal,
        verb: &Delegate,
        answer: &Answer<Reply>,
        now: Timestamp,
        out: &Outbox,
    ) {
        let word = match verb.goal.split(' ').next() {
            Some("rated") => "rated",
            Some("ask-rated") => "ask-rated",
            _ => return,
        };
        if matches!(answer, Answer::Denied(_)) || out.events.is_empty() {
            return;
        }
        let uses = self.rated.entry((who.share(), word)).or_default();
        uses.push(now);
        uses.retain(|at| now < at.after(RATE_WINDOW));
        assert!(uses.len() <= RATED as usize, "{who} used {word} more often than it allows");
    }
}
