//! The traits of judged verbs. All judged verbs take one path ([`super::decide`]), which calls their methods.

use super::{
    Action, Answer, Call, Delegate, Facts, Failure, Grant, Judge, Outbox, Outcome, Parked, Principal,
    Refusal, Reply, Risk, State, Task, Terms, grants,
};
use provost_base::{Digest, Json, RuleId, TaskId, Timestamp, Ttl};

/// The next step of a granted command, by its row in the table of verbs.
pub(super) enum Turn<'a> {
    /// It runs as soon as it is granted.
    Runs(&'a dyn Runs),
    /// Its asker asks again, and gets the outcome of the question then.
    Redeemed(&'a dyn Redeemed),
    /// It never waits for approval: a rule can only allow or deny it.
    NeverWaits,
}

/// A verb whose row says what happens to a granted command.
pub(super) trait HasTurn {
    /// Returns the behaviour that the row names.
    fn turn(&self) -> Turn<'_>;
}

/// The permission under which a command is carried out.
pub(super) struct Permit {
    /// The rule that has allowed it.
    pub(super) rule: RuleId,
    /// The limits that the permission came with.
    pub(super) terms: Terms,
}

/// A verb that is subject to policy.
pub(super) trait Judged: HasTurn {
    /// Returns the action that rules name for the verb.
    fn action(&self) -> Action;

    /// Returns the work that rules look at, if the verb is a delegation.
    fn work(&self) -> Option<&Delegate> {
        None
    }

    /// Checks whether no rule applies to the verb, even when it is granted.
    fn needs_no_rule(&self) -> bool {
        false
    }

    /// Returns the answer to a request that needs no policy, such as a repeat; `None` if policy has to be asked.
    /// Completes the facts on the way.
    ///
    /// # Errors
    /// A [`Refusal`] that needs no rule.
    fn settled(
        &self,
        _state: &State,
        _call: &mut Call<'_>,
        _out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        Ok(None)
    }

    /// Carries the verb out for a person, if a person needs no rule for it.
    fn by_person(
        &self,
        _state: &State,
        _judge: &dyn Judge,
        _call: &Call<'_>,
        _out: &mut Outbox,
    ) -> Option<Result<Reply, Refusal>> {
        None
    }

    /// Checks whether the caller brings a person's consent along, so that a rule that asks for one has it.
    fn brings_a_yes(&self, _who: &Principal) -> bool {
        false
    }

    /// Carries the verb out after a rule has allowed it.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    fn permitted(
        &self,
        state: &State,
        judge: &dyn Judge,
        call: &Call<'_>,
        permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal>;

    /// Returns the task that the verb makes.
    fn task(&self) -> Option<&TaskId> {
        None
    }

    /// Returns the name of the request for approvers: DevIt's tool, or the verb.
    fn tool(&self) -> Box<str>;

    /// Returns the name of the request in the denial that the asker gets.
    fn denied_tool(&self) -> Box<str> {
        self.tool()
    }

    /// Returns the details that an approver is shown.
    fn shown(&self) -> Json {
        Json::null()
    }

    /// Returns the kind of the question; each kind has its own limit of waiting questions.
    fn kind(&self) -> QuestionKind {
        QuestionKind::Work
    }

    /// Returns the risk of the verb.
    fn risk(&self, _facts: &Facts) -> Risk {
        Risk::High
    }

    /// Returns how long the verb's caller waits at most, if that is known.
    fn patience(&self) -> Option<Ttl> {
        None
    }

    /// Records the consequences of a denial.
    fn denied(&self, _state: &State, _call: &Call<'_>, _rule: &RuleId, _why: &Failure, _out: &mut Outbox) {}
}

/// A judged verb that runs as soon as it is granted, as a task.
pub(super) trait Runs {
    /// Returns the task, before its state is decided.
    fn draft(&self, state: &State, now: Timestamp, who: &Principal, facts: &Facts, permit: Permit) -> Task;

    /// Returns the present facts.
    ///
    /// # Errors
    /// A [`Refusal`] if the worker cannot do it any more.
    fn facts_now(&self, state: &State, parked: &Parked) -> Result<Facts, Refusal>;

    /// Lets the granted task begin.
    ///
    /// # Errors
    /// A [`Refusal`]; then the additions to `out` are taken back.
    fn run_granted(
        &self,
        state: &State,
        now: Timestamp,
        parked: &Parked,
        task: Task,
        policy: Digest,
        out: &mut Outbox,
    ) -> Result<(), Refusal>;
}

/// A judged verb whose asker asks again after the answer.
pub(super) trait Redeemed {
    /// Returns the digest by which a repeat of the question is recognised.
    fn question(&self) -> Digest;

    /// Answers an asker that asks again.
    ///
    /// # Errors
    /// A [`Refusal`], if this verb answers a denial with one.
    fn redeem(
        &self,
        state: &State,
        call: &Call<'_>,
        grant: &Grant,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal>;

    /// Returns the outcome that is kept after a denial.
    fn outcome_of(&self, parked: &Parked, why: &str, failure: Failure) -> Outcome;

    /// Keeps the outcome of the question, usually for its asker, who comes back for it.
    fn keep(&self, _state: &State, now: Timestamp, parked: &Parked, outcome: Outcome, out: &mut Outbox) {
        grants::keep(now, parked.who.agent().clone(), self.question(), parked, outcome, out);
    }
}

/// Kinds of questions. Each has a limit of its own for waiting ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Delegations, and pictures of the screen.
    Work,
    /// Use of tools of hosts.
    Permission,
    /// Files that an apply would write.
    Apply,
    /// A budget that is nearly used up.
    Budget,
}
