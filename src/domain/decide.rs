//! Decides a command: scope, then policy if the verb's row says so, then the rule.
//!
//! A granted command is judged again. Then, as its row says, it runs at once, or is kept as a grant that its asker
//! redeems with the same request.

use super::approval::Question;
use super::command::{AnswerApproval, Answered};
use super::judged::{Judged, Permit, Turn};
use super::{
    Action, Answer, Call, Command, Decision, Denial, Door, EventKind, Facts, Failure, Judge, JudgedRequest,
    Outbox, Outcome, Parked, Principal, Refusal, Reply, State, Task, Terms, Verdict,
};
use crate::progress::Ending;
use provost_base::{RuleId, Timestamp, Ttl};

pub(super) fn decide(
    state: &State,
    judge: &dyn Judge,
    call: Call<'_>,
    command: &Command,
    out: &mut Outbox,
) -> Result<Answer<Reply>, Refusal> {
    if !call.who.may(command.scope()) {
        return Err(Refusal::OutOfScope { needs: command.scope() });
    }
    state.role_allows(call.who, command)?;
    let narrowed = state.within_role(call.who);
    let call = Call { who: &narrowed, ..call };
    state.tokens.admit(call.who, call.now)?;
    if call.who.door() == Door::Devit && !matches!(command, Command::Register(_)) {
        state.agents.admit(call.who.agent(), &state.settings)?;
    }
    command.decide(state, judge, call, out)
}

/// Decides a verb that is subject to policy.
pub(super) fn by_policy(
    state: &State,
    judge: &dyn Judge,
    mut call: Call<'_>,
    command: &Command,
    verb: &dyn Judged,
    out: &mut Outbox,
) -> Result<Answer<Reply>, Refusal> {
    // A person at the terminal is the root of authority. Policy rules on agents that approve, whose names tokens
    // keep, and on changes to the user's files. Whether a host's dialog counts is decided by the rule that asked.
    if (call.who.is_person() || call.who.is_host_dialog())
        && let Some(done) = verb.by_person(state, judge, &call, out)
    {
        return done.map(Answer::Done);
    }
    call.facts.now = call.wall;
    if let Some(answer) = verb.settled(state, &mut call, out)? {
        return Ok(answer);
    }
    let no = |rule, reason, judged, out: &mut Outbox| {
        Ok(Answer::Denied(deny(state, judge, &call, (command, judged), verb, rule, reason, out)))
    };
    let (decision, judged) = asked_of_rules(judge, &call, command, verb);
    match decision {
        Decision::Allow { rule, terms } => {
            if let Some(reason) = state.over_what_is_allowed(&call, verb, (&rule, &terms), out) {
                return no(rule, reason, None, out);
            }
            let mark = out.mark();
            let done = verb.permitted(state, judge, &call, Permit { rule, terms }, out)?;
            if let Some(judged) = &judged {
                out.put_judged(mark, judged);
            }
            Ok(Answer::Done(done))
        }
        Decision::Deny { rule, reason } => no(rule, reason, judged, out),
        Decision::NeedApproval { rule, reason, terms, wait, again, by } => {
            match verb.turn() {
                // An answer that waits for an answer would never end, and the caller that has a token made waits for the token.
                Turn::NeverWaits => return no(rule, reason, None, out),
                Turn::Redeemed(it) => {
                    let (asker, question) = (call.who.agent(), it.question());
                    if let Some(grant) = state.grants.get(call.now, asker, question) {
                        return it.redeem(state, &call, grant, out);
                    }
                    if let Some(waiting) = state.approvals.of_question(asker, question) {
                        return Ok(Answer::Parked(waiting.id));
                    }
                }
                Turn::Runs(_) => {}
            }
            if let Some(reason) = state.over_what_is_allowed(&call, verb, (&rule, &terms), out) {
                return no(rule, reason, None, out);
            }
            state.tasks.room_for(&call.who.share(), &state.settings)?;
            let wait: Ttl = wait.min(state.settings.approval_wait_max);
            // An asker with a time limit of its own is gone by then, and no longer asks.
            let (wait, again) = match verb.patience() {
                Some(patience) => (patience.min(wait), 0),
                None => (wait, again),
            };
            let policy = judge.version();
            let question = Question { command, verb, rule, reason, terms, wait, again, by, policy };
            state.park(call.now, call.who, call.facts, question, out).map(Answer::Parked)
        }
    }
}

/// Returns the rules' decision, with the consent that a person brings along; and the rules' input, if they alone have decided.
fn asked_of_rules(
    judge: &dyn Judge,
    call: &Call<'_>,
    command: &Command,
    verb: &dyn Judged,
) -> (Decision, Option<Box<JudgedRequest>>) {
    match judge.decide(call.who, command, &call.facts) {
        Decision::NeedApproval { rule, terms, .. } if verb.brings_a_yes(call.who) => {
            (Decision::Allow { rule, terms }, None)
        }
        // Without a working directory that any rules allow, other rules cannot be asked.
        decision if call.facts.directory_refused.is_some() => (decision, None),
        decision => (decision, JudgedRequest::of(call.who, command, &call.facts)),
    }
}

#[expect(clippy::too_many_arguments, reason = "one call that puts together all that a denial tells")]
fn deny(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    (command, judged): (&Command, Option<Box<JudgedRequest>>),
    verb: &dyn Judged,
    rule: RuleId,
    reason: Box<str>,
    out: &mut Outbox,
) -> Denial {
    let tool = verb.denied_tool();
    out.append_event(EventKind::Denied {
        verb: command.name().into(),
        task: verb.task().cloned(),
        tool: Some(tool.clone()),
        rule: rule.clone(),
        reason: reason.clone(),
        policy: judge.version(),
        judged,
    });
    let failure = Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool };
    verb.denied(state, call, &rule, &failure, out);
    Denial { task: verb.task().cloned(), rule, reason, failure }
}

impl Judged for AnswerApproval {
    fn action(&self) -> Action {
        Action::Approve
    }

    fn by_person(
        &self,
        state: &State,
        judge: &dyn Judge,
        call: &Call<'_>,
        out: &mut Outbox,
    ) -> Option<Result<Reply, Refusal>> {
        Some(answer(state, judge, call, self, out).map(Reply::Answered))
    }

    fn permitted(
        &self,
        state: &State,
        judge: &dyn Judge,
        call: &Call<'_>,
        _permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        answer(state, judge, call, self, out).map(Reply::Answered)
    }

    fn tool(&self) -> Box<str> {
        "AnswerApproval".into()
    }
}

/// Carries out an approver's decision.
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
        out.append_event(EventKind::GrantFailed { approval: parked.id, why: why.clone() });
        state.give_up_parked(call.now, &parked, why, failure.clone(), out);
    }
    Ok(Answered { task, failed: failed.map(|(why, _)| why) })
}

/// Checks a grant once more: the rules may have become stricter since the question was asked, and the worker's
/// program may have changed.
fn grant(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    parked: &Parked,
    out: &mut Outbox,
) -> Result<(), (Box<str>, Failure)> {
    let refused = |refusal: Refusal| denied(parked, &parked.rule, refusal.to_string().into());
    let Some(verb) = parked.command.judged() else { return Err(refused(Refusal::TaskNotFound)) };
    match verb.turn() {
        Turn::Redeemed(it) => {
            if !verb.needs_no_rule() {
                still_allowed(state, judge, call, parked, parked.facts.clone())?;
            }
            it.keep(state, call.now, parked, Outcome::Granted, out);
            Ok(())
        }
        Turn::Runs(it) => {
            let waiting = parked.task().and_then(|task| state.tasks.get(task));
            let mut task = Task::clone(waiting.ok_or_else(|| refused(Refusal::TaskNotFound))?);
            let facts = it.facts_now(state, parked).map_err(refused)?;
            if facts != parked.facts {
                return Err(refused(Refusal::ApprovalChanged));
            }
            task.terms = task.terms.within(&still_allowed(state, judge, call, parked, facts)?);
            task.travel.iter_mut().for_each(|it| it.granted_by = Some(call.who.clone()));
            let mark = out.mark();
            // The facts are about the machine where the question was asked.
            out.owes_at(parked.daemon);
            let ran = it.run_granted(state, call.now, parked, task, judge.version(), out);
            out.owes_at(state.here);
            ran.map_err(|refusal| {
                out.rewind(mark);
                refused(refusal)
            })
        }
        // No rule can have asked about such a verb.
        Turn::NeverWaits => Err(refused(Refusal::ApprovalNotFound(parked.id))),
    }
}

/// Returns the terms under which the present rules still allow a granted command.
fn still_allowed(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    parked: &Parked,
    facts: Facts,
) -> Result<Terms, (Box<str>, Failure)> {
    match judge.decide(&parked.who, &parked.command, &Facts { now: call.wall, ..facts }) {
        Decision::Deny { rule, reason } => Err(denied(parked, &rule, reason)),
        Decision::NeedApproval { rule, by, .. } if !state.admits(&by, call.who) => {
            let refusal = Refusal::ApprovalNotYours { rule };
            Err(denied(parked, &parked.rule, refusal.to_string().into()))
        }
        Decision::NeedApproval { terms, .. } | Decision::Allow { terms, .. } => Ok(terms),
    }
}

fn denied(parked: &Parked, rule: &RuleId, reason: Box<str>) -> (Box<str>, Failure) {
    let failure = Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool: parked.tool() };
    (reason, failure)
}

impl State {
    /// Returns why a request that a rule lets through is over what the rule or the worker's entry allows.
    fn over_what_is_allowed(
        &self,
        call: &Call<'_>,
        verb: &dyn Judged,
        (rule, terms): (&RuleId, &Terms),
        out: &mut Outbox,
    ) -> Option<Box<str>> {
        let attempts = verb.work().and_then(|it| self.over_attempts(it, rule, terms));
        attempts.or_else(|| self.over_limits(call.now, call.who, rule, terms, out))
    }

    /// Checks the rate and concurrency limits that came with the permission.
    pub(super) fn over_limits(
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

    /// Gives up a parked command: its task fails, and its asker is told.
    pub(super) fn give_up_parked(
        &self,
        now: Timestamp,
        parked: &Parked,
        why: &str,
        failure: Failure,
        out: &mut Outbox,
    ) {
        if let Some(Turn::Redeemed(it)) = parked.command.judged().map(|verb| verb.turn()) {
            let outcome = it.outcome_of(parked, why, failure);
            return it.keep(self, now, parked, outcome, out);
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
