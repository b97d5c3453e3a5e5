//! From a command to its outcome: scope, then policy, then the rule.
//!
//! A command that waited for approval and was granted takes the path of an allowed one, and is judged once more.

use super::command::{AnswerApproval, Answered, Collected, EffectSettled, Recorded, Settled};
use super::progress::Ending;
use super::task::Repeat;
use super::{
    Answer, Call, Change, Command, Decision, Delegated, Denial, Door, EventKind, Facts, Failure, Judge,
    MailKind, Outbox, Outcome, Parked, Principal, Refusal, Reply, State, Task, TaskState, Terms, Verdict,
    Word, approval::Question,
};
use crate::base::{RuleId, Timestamp};

pub(super) fn decide(
    state: &State,
    judge: &dyn Judge,
    mut call: Call<'_>,
    command: Command,
    out: &mut Outbox,
) -> Result<Answer<Reply>, Refusal> {
    if !call.who.may(command.scope()) {
        return Err(Refusal::OutOfScope { needs: command.scope() });
    }
    state.tokens.admit(call.who, call.now)?;
    if call.who.door() == Door::Devit && !matches!(command, Command::Register(_)) {
        state.agents.admit(call.who.agent(), &state.settings)?;
    }
    // A person at the terminal is the root of authority; policy has a say over agents that approve, whose names
    // tokens keep, and over what changes the user's files. Whether a host's dialog counts is for the rule that asked.
    let by_person =
        matches!(command, Command::AnswerApproval(_) | Command::MintToken(_) | Command::ApplyFiles(_));
    let judged = command.judged() && !(by_person && (call.who.is_person() || call.who.is_host_dialog()));
    if !judged {
        return dispatch(state, judge, &call, &command, out).map(Answer::Done);
    }
    if let Some(answer) = state.before_policy(&mut call, &command, out)? {
        return Ok(answer);
    }
    match judge.decide(call.who, &command, &call.facts) {
        Decision::Allow { rule, terms } => {
            if let Some(reason) = state.over_limits(call.now, call.who, &rule, &terms, out) {
                return Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)));
            }
            allowed(state, judge, &call, &command, rule, terms, out).map(Answer::Done)
        }
        Decision::Deny { rule, reason } => {
            Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)))
        }
        // An answer that waited for an answer would never end, and a token is asked for by somebody who waits for it.
        Decision::NeedApproval { rule, reason, .. }
            if matches!(command, Command::AnswerApproval(_) | Command::MintToken(_)) =>
        {
            Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)))
        }
        Decision::NeedApproval { rule, reason, terms, wait, by } => {
            if let Command::ApplyFiles(verb) = &command
                && let Some(answer) = state.asked_to_apply_before(&call, verb, out)
            {
                return answer;
            }
            if let Command::AskPermission(verb) = &command
                && let Some(answer) = state.asked_permission_before(&call, verb, out)
            {
                return Ok(answer);
            }
            if let Some(reason) = state.over_limits(call.now, call.who, &rule, &terms, out) {
                return Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)));
            }
            state.tasks.room_for(&call.who.share(), &state.settings)?;
            let wait = wait.min(state.settings.approval_wait_max);
            let expires_at = call.now.after(command.patience().map_or(wait, |it| it.min(wait)));
            let question = Question { rule, reason, terms, expires_at, by, policy: judge.version() };
            state.park(call.now, call.who, command, call.facts, question, out).map(Answer::Parked)
        }
    }
}

/// Runs a judged command that policy has let through, under the terms policy gave it.
fn allowed(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    command: &Command,
    rule: RuleId,
    terms: Terms,
    out: &mut Outbox,
) -> Result<Reply, Refusal> {
    match command {
        Command::Delegate(verb) => {
            let task = state.tasks.draft(call.now, call.who, verb, &call.facts, rule, terms);
            start(state, judge, call.now, task, out).map(Reply::Delegated)
        }
        Command::TakeScreenshot(verb) => {
            let task = state.draft_capture(call.now, call.who, verb, rule, terms);
            state.order_capture(call.now, call.who, task, judge.version(), out).map(Reply::Captured)
        }
        Command::AskPermission(verb) => Ok(Reply::Permitted(state.permit_tool(verb, rule, None, out))),
        _ => dispatch(state, judge, call, command, out),
    }
}

fn start(
    state: &State,
    judge: &dyn Judge,
    now: Timestamp,
    task: Task,
    out: &mut Outbox,
) -> Result<Delegated, Refusal> {
    state.tasks.dispatch(now, task, &state.settings, judge.version(), &state.mail, out)
}

/// Runs a command that needs no more permission.
// tidy: long because it has an arm for every verb
fn dispatch(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    command: &Command,
    out: &mut Outbox,
) -> Result<Reply, Refusal> {
    let (now, who, past) = (call.now, call.who, call.past.as_ref());
    match command {
        Command::Register(it) => {
            for task in state.mail.clear_recurring(now, who.agent(), &state.agents, out) {
                state.not_collected(now, &task, out);
            }
            state.agents.register(now, who, it, &state.settings, out).map(Reply::Registered)
        }
        Command::CollectMail(it) => {
            let mail = state.mail.collect(now, who, it, &state.agents, out);
            let waiting = state.tasks.asked_by(who.agent()) > 0;
            Ok(Reply::Collected(Collected { mail, waiting }))
        }
        Command::SettleMail(it) => {
            let arrived = state.mail.settle(who, it, out)?;
            if let Some(MailKind::Work { task, .. }) = arrived.as_ref().map(|mail| &mail.kind) {
                state.assigned(now, who, task, out);
            }
            Ok(Reply::Settled(Settled))
        }
        Command::Delegate(it) => Err(Refusal::WorkerBroken {
            worker: it.worker.clone(),
            why: "a delegation is only carried out after policy was asked".into(),
        }),
        Command::ReportTask(it) => state.report(now, who, it, past, out).map(Reply::Reported),
        Command::AckTask(it) => state.ack(who, it, past, out).map(Reply::Acked),
        Command::CancelTask(it) => state.cancel(now, who, it, past, out).map(Reply::Cancelled),
        Command::AnswerApproval(it) => answer(state, judge, call, it, out).map(Reply::Answered),
        Command::TakeScreenshot(_) => Err(Refusal::busy("a picture is only taken after policy was asked")),
        Command::AskPermission(_) => Err(Refusal::busy("a permission is only given after policy was asked")),
        Command::WithdrawPermission(it) => {
            Ok(Reply::PermissionWithdrawn(state.withdraw_permission(who, it, out)))
        }
        Command::BeginCapture(it) => state.begin_capture(now, judge, it, out).map(Reply::CaptureBegun),
        Command::EndCapture(it) => Ok(Reply::CaptureEnded(state.end_capture(now, it, out))),
        Command::BeginRun(it) => state.begin_run(now, it, out).map(Reply::Begun),
        Command::NoteFiles(it) => state.note_files(now, it, past, out).map(Reply::FilesNoted),
        Command::EndRun(it) => Ok(Reply::Ended(state.end_run(now, it, past, out))),
        Command::SettleEffect(it) => {
            out.put(Change::DropEffect(it.effect));
            Ok(Reply::EffectSettled(EffectSettled))
        }
        Command::NameAgent(_)
        | Command::AcquireLock(_)
        | Command::ReleaseLock(_)
        | Command::LeaveQueue(_)
        | Command::Leave(_)
        | Command::ReapLocks(_)
        | Command::FollowLocks(_)
        | Command::DeclareIntent(_)
        | Command::UpdateIntent(_)
        | Command::RefreshIntents(_)
        | Command::ProposeContract(_)
        | Command::AnswerContract(_)
        | Command::WithdrawContract(_)
        | Command::FollowContracts(_)
        | Command::Publish(_)
        | Command::Republish(_)
        | Command::AddressAgent(_)
        | Command::BeginLog(_) => coordinate(state, call, command, out),
        Command::JoinCrew(_)
        | Command::LeaveCrew(_)
        | Command::BeatCrew(_)
        | Command::MoveMember(_)
        | Command::AppointLead(_)
        | Command::ClaimFile(_)
        | Command::ReleaseFile(_)
        | Command::LockFile(_)
        | Command::MakeAssignment(_)
        | Command::MoveAssignment(_)
        | Command::OfferTransfer(_)
        | Command::AnswerTransfer(_)
        | Command::TakeNote(_)
        | Command::TakeNotes(_)
        | Command::SeeFiles(_) => in_crew(state, call, command, out),
        Command::OpenJob(it) => {
            state.switches.takes_on(&it.worker)?;
            state.open_job(now, who, it, out).map(Reply::JobOpened)
        }
        Command::MoveJob(it) => state.move_job(now, it, out).map(Reply::JobMoved),
        Command::EndJob(it) => state.end_job(now, it, out).map(Reply::JobEnded),
        Command::KeepResult(it) => state.keep_result(it, out).map(Reply::ResultKept),
        Command::CancelJob(it) => state.cancel_job(now, who, it, out).map(Reply::JobCancelled),
        Command::NoteFeedback(it) => state.note_feedback(it, out).map(Reply::FeedbackNoted),
        Command::SwitchWorker(it) => state.switch_worker(who, it, out).map(Reply::WorkerSwitched),
        Command::ApplyFiles(it) => Ok(Reply::ApplyBegun(state.begin_apply(it, out))),
        Command::TellApplied(it) => Ok(Reply::AppliedTold(state.tell_applied(now, it, out))),
        Command::EndApply(it) => Ok(Reply::ApplyEnded(state.end_apply(it, out))),
        Command::MintToken(it) => state.mint_token(now, who, it, out).map(Reply::TokenMinted),
        Command::RevokeTokens(it) => state.revoke_tokens(who, it, out).map(Reply::TokensRevoked),
        Command::Record(it) => {
            let (what, subject, details) = (it.what.clone(), it.subject.clone(), it.details.clone());
            out.say(EventKind::Recorded { what, subject, details });
            Ok(Reply::Recorded(Recorded))
        }
    }
}

/// Runs a verb by which agents coordinate their edits.
fn coordinate(state: &State, call: &Call<'_>, command: &Command, out: &mut Outbox) -> Result<Reply, Refusal> {
    let (now, who) = (call.now, call.who);
    match command {
        Command::NameAgent(it) => state.agents.name(now, who, it, out).map(Reply::AgentNamed),
        Command::AcquireLock(it) => state.acquire(now, who, it, out).map(Reply::Locked),
        Command::ReleaseLock(it) => state.release(now, who, it, out).map(Reply::LockReleased),
        Command::LeaveQueue(it) => state.leave_queue(who, it, out).map(Reply::QueueLeft),
        Command::Leave(it) => Ok(Reply::HasLeft(state.leave(now, who, it, out))),
        Command::ReapLocks(it) => Ok(Reply::LocksReaped(state.reap(it, out))),
        Command::FollowLocks(it) => Ok(Reply::LocksFollowed(state.follow_locks(it, out))),
        Command::DeclareIntent(it) => state.declare(now, who, it, out).map(Reply::Declared),
        Command::UpdateIntent(it) => state.update_intent(now, who, it, out).map(Reply::IntentUpdated),
        Command::RefreshIntents(it) => Ok(Reply::IntentsRefreshed(state.refresh_intents(it, out))),
        Command::ProposeContract(it) => {
            state.propose_contract(now, who, it, out).map(Reply::ContractProposed)
        }
        Command::AnswerContract(it) => state.answer_contract(now, who, it, out).map(Reply::ContractAnswered),
        Command::WithdrawContract(it) => state.withdraw_contract(who, it, out).map(Reply::ContractWithdrawn),
        Command::FollowContracts(it) => Ok(Reply::ContractsFollowed(state.follow_contracts(it, out))),
        Command::Publish(it) => state.publish(now, who, it, out).map(Reply::Published),
        Command::Republish(it) => Ok(Reply::Republished(state.republish(now, it, out))),
        Command::AddressAgent(it) => state.address_agent(now, who, it, out).map(Reply::AgentAddressed),
        Command::BeginLog(_) => Ok(Reply::LogBegun(state.begin_log(out))),
        other => Err(Refusal::busy(other.name())),
    }
}

/// Runs a verb of the crew.
fn in_crew(state: &State, call: &Call<'_>, command: &Command, out: &mut Outbox) -> Result<Reply, Refusal> {
    let (now, who) = (call.now, call.who);
    match command {
        Command::JoinCrew(it) => state.join_crew(now, who, it, out).map(Reply::CrewJoined),
        Command::LeaveCrew(it) => Ok(Reply::CrewLeft(state.leave_crew(who, it, out))),
        Command::BeatCrew(it) => state.beat_crew(now, who, it, out).map(Reply::CrewBeaten),
        Command::MoveMember(it) => state.move_member(now, who, it, out).map(Reply::MemberMoved),
        Command::AppointLead(it) => state.appoint_lead(who, it, out).map(Reply::LeadAppointed),
        Command::ClaimFile(it) => state.claim_file(now, who, it, out).map(Reply::FileClaimed),
        Command::ReleaseFile(it) => Ok(Reply::FileReleased(state.release_file(now, who, it, out))),
        Command::LockFile(it) => state.lock_file(now, who, it, out).map(Reply::FileLocked),
        Command::MakeAssignment(it) => state.make_assignment(now, who, it, out).map(Reply::AssignmentMade),
        Command::MoveAssignment(it) => state.move_assignment(now, who, it, out).map(Reply::AssignmentMoved),
        Command::OfferTransfer(it) => state.offer_transfer(now, who, it, out).map(Reply::TransferOffered),
        Command::AnswerTransfer(it) => Ok(Reply::TransferAnswered(state.answer_transfer(now, who, it, out))),
        Command::TakeNote(it) => state.take_note(now, who, it, out).map(Reply::NoteTaken),
        Command::TakeNotes(it) => state.take_notes(it, out).map(Reply::NotesTaken),
        Command::SeeFiles(it) => Ok(Reply::FilesSeen(state.see_files(now, it, out))),
        other => Err(Refusal::busy(other.name())),
    }
}

/// Carries out what an approver decided. A granted command takes the path of an allowed one.
fn answer(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    verb: &AnswerApproval,
    out: &mut Outbox,
) -> Result<Answered, Refusal> {
    let parked = state.answered(call.now, call.who, verb, out)?;
    let task = parked.task().cloned();
    if verb.verdict == Verdict::Denied {
        let failure = Failure::ApprovalDenied {
            approval: parked.id,
            approver: call.who.agent().clone(),
            note: verb.note.clone(),
            tool: parked.tool(),
        };
        let why = verb.note.as_deref().unwrap_or_default();
        state.give_up_parked(call.now, &parked, why, failure, out);
        return Ok(Answered { task, failed: None });
    }
    let failed = grant(state, judge, call, &parked, out).err();
    if let Some((why, failure)) = &failed {
        out.say(EventKind::GrantFailed { approval: parked.id, why: why.clone() });
        state.give_up_parked(call.now, &parked, why, failure.clone(), out);
    }
    Ok(Answered { task, failed: failed.map(|(why, _)| why) })
}

/// The grant is checked once more: rules may have become stricter since the question was asked, and the worker
/// may have become another one.
fn grant(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    parked: &Parked,
    out: &mut Outbox,
) -> Result<(), (Box<str>, Failure)> {
    let denied = |rule: &RuleId, reason: Box<str>| {
        let failure =
            Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool: parked.tool() };
        (reason, failure)
    };
    let refused = |refusal: Refusal| denied(&parked.rule, refusal.to_string().into());
    if let Command::ApplyFiles(_) | Command::AskPermission(_) = &parked.command {
        return match judge.decide(
            &parked.who,
            &parked.command,
            &Facts { now: call.wall, ..parked.facts.clone() },
        ) {
            Decision::Deny { rule, reason } => Err(denied(&rule, reason)),
            Decision::NeedApproval { rule, by, .. } if !by.iter().any(|by| by.admits(call.who)) => {
                Err(refused(Refusal::ApprovalNotYours { rule }))
            }
            Decision::NeedApproval { .. } | Decision::Allow { .. } => {
                match &parked.command {
                    Command::ApplyFiles(verb) => {
                        state.permit(call.now, parked.who.agent(), verb, Word::Granted, out);
                    }
                    Command::AskPermission(verb) => {
                        state.keep_outcome(call.now, parked, verb, Outcome::Granted, out);
                    }
                    _ => {}
                }
                Ok(())
            }
        };
    }
    let waiting = parked.task().and_then(|task| state.tasks.get(task));
    let mut task = Task::clone(waiting.ok_or_else(|| refused(Refusal::TaskNotFound))?);
    let facts = match task.capture {
        true => parked.facts.clone(),
        false => state.settings.facts_of(&task.order, parked.facts.clone()).map_err(refused)?,
    };
    if facts != parked.facts {
        return Err(refused(Refusal::ApprovalChanged));
    }
    match judge.decide(&parked.who, &parked.command, &Facts { now: call.wall, ..facts }) {
        Decision::Deny { rule, reason } => return Err(denied(&rule, reason)),
        Decision::NeedApproval { rule, by, .. } if !by.iter().any(|by| by.admits(call.who)) => {
            return Err(refused(Refusal::ApprovalNotYours { rule }));
        }
        Decision::NeedApproval { terms, .. } | Decision::Allow { terms, .. } => {
            task.terms = task.terms.within(&terms);
        }
    }
    let mark = out.mark();
    let started = match task.capture {
        true => state.grant_capture(call.now, parked, task, judge.version(), out),
        false => start(state, judge, call.now, task, out).map(|_| ()),
    };
    started.map_err(|refusal| {
        out.rewind(mark);
        refused(refusal)
    })
}

impl State {
    /// What is settled before policy is asked: repeats, switched-off capabilities, broken workers, and a
    /// working directory outside the workspace. Completes the facts on the way.
    fn before_policy(
        &self,
        call: &mut Call<'_>,
        command: &Command,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        call.facts.now = call.wall;
        let verb = match command {
            Command::Delegate(verb) => verb,
            Command::TakeScreenshot(verb) => return self.before_screenshot(call, verb, out),
            _ => return Ok(None),
        };
        if let Repeat::Same(task) = self.tasks.repeat(call.who, verb, call.past.as_ref())? {
            return Ok(Some(same_answer(&task)));
        }
        self.takes_on(verb)?;
        if verb.errand.as_ref().is_some_and(|it| self.jobs.has_ended(&it.job)) {
            return Err(Refusal::TaskFinished);
        }
        call.facts = self.settings.facts_of(verb, std::mem::take(&mut call.facts))?;
        call.facts.running = self.tasks.asked_from(&call.who.share());
        call.facts.depth = self.tasks.depth_below(call.who);
        let Some(why) = call.facts.directory_refused.clone() else { return Ok(None) };
        let failure = Failure::Sandbox { why: why.clone() };
        let rule = RuleId::parse("sandbox").expect("a constant that is a valid id");
        Ok(Some(Answer::Denied(self.record_denial(call, command, rule, why, failure, out))))
    }

    /// Rate and concurrency limits that came with the permission.
    fn over_limits(
        &self,
        now: Timestamp,
        who: &Principal,
        rule: &RuleId,
        terms: &Terms,
        out: &mut Outbox,
    ) -> Option<Box<str>> {
        let share = who.share();
        if let Some(most) = terms.concurrent
            && self.tasks.running_under(&share, rule) >= most
        {
            return Some(
                format!("{most} tasks of {}, or of other names of its processes, are unfinished, which is as many as rule {rule} allows", who.agent())
                    .into(),
            );
        }
        let seconds = self.quota.spend(now, rule, &share, terms.rate?, out).err()?;
        Some(format!("rule {rule} has been used as often as it allows; again in {seconds}s").into())
    }

    fn deny(
        &self,
        call: &Call<'_>,
        command: &Command,
        rule: RuleId,
        reason: Box<str>,
        judge: &dyn Judge,
        out: &mut Outbox,
    ) -> Denial {
        let tool: Box<str> = match command {
            Command::Delegate(verb) => verb.tool.name.clone(),
            other => other.name().into(),
        };
        out.say(EventKind::Denied {
            verb: command.name().into(),
            task: command.names_task().cloned(),
            tool: Some(tool.clone()),
            rule: rule.clone(),
            reason: reason.clone(),
            policy: judge.version(),
        });
        let failure = Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool };
        self.record_denial(call, command, rule, reason, failure, out)
    }

    fn record_denial(
        &self,
        call: &Call<'_>,
        command: &Command,
        rule: RuleId,
        reason: Box<str>,
        failure: Failure,
        out: &mut Outbox,
    ) -> Denial {
        if let Command::Delegate(verb) = command {
            let task =
                self.tasks.draft(call.now, call.who, verb, &call.facts, rule.clone(), Terms::default());
            let summary = match &failure {
                Failure::Sandbox { why } => format!("Task refused: {why}"),
                _ => format!("Task denied by policy (tool: {})", verb.tool.name),
            };
            self.finish(call.now, &task, Ending::failed(summary, failure.clone()), out);
        }
        Denial { task: command.names_task().cloned(), rule, reason, failure }
    }

    /// A parked command will not be carried out: its task fails, its asker is told.
    pub(super) fn give_up_parked(
        &self,
        now: Timestamp,
        parked: &Parked,
        why: &str,
        failure: Failure,
        out: &mut Outbox,
    ) {
        if let Command::ApplyFiles(verb) = &parked.command {
            let why = match why {
                "" => format!("approval {} was denied", parked.id),
                why => format!("approval {}: {why}", parked.id),
            };
            let word = Word::Denied { rule: parked.rule.clone(), why: why.into() };
            self.permit(now, parked.who.agent(), verb, word, out);
            return;
        }
        if let Command::AskPermission(verb) = &parked.command {
            return self.keep_outcome(now, parked, verb, Outcome::Denied(why.into(), failure), out);
        }
        let Some(task) = parked.task().and_then(|task| self.tasks.get(task)) else { return };
        let summary = match (&failure, why) {
            (Failure::ApprovalDenied { .. }, "") => {
                format!("Approval denied for task {} (tool: {})", task.id(), parked.tool())
            }
            (Failure::ApprovalDenied { .. }, note) => {
                format!("Approval denied for task {}: {note}", task.id())
            }
            (_, why) => format!("{why} for task {} (tool: {})", task.id(), parked.tool()),
        };
        self.finish(now, task, Ending::failed(summary, failure), out);
    }
}

/// A repeated request gets the answer that the first one got.
fn same_answer(task: &Task) -> Answer<Reply> {
    match (&task.state, &task.failure) {
        (TaskState::Awaiting { approval }, _) => Answer::Parked(*approval),
        (
            TaskState::Finished { .. },
            Some(failure @ (Failure::PolicyDenied { .. } | Failure::Sandbox { .. })),
        ) => {
            let reason = match failure {
                Failure::PolicyDenied { reason, .. } => reason.clone(),
                Failure::Sandbox { why } => why.clone(),
                _ => Box::default(),
            };
            let (task, rule, failure) = (Some(task.id().clone()), task.rule.clone(), failure.clone());
            Answer::Denied(Denial { task, rule, reason, failure })
        }
        (state, _) => Answer::Done(Reply::Delegated(Delegated { task: task.id().clone(), state: *state })),
    }
}
