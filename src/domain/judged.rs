//! The traits of judged verbs. All of these take one path ([`super::decide`]), which calls their methods.

use super::{
    Action, Answer, Call, Delegate, Facts, Failure, Grant, Judge, Outbox, Outcome, Parked, Principal,
    Refusal, Reply, Risk, State, Task, Terms, grants,
};
use provost_base::{Digest, Json, RuleId, TaskId, Timestamp, Ttl};

/// The behaviour of a granted command, as its row in the table of verbs says.
pub(super) enum Turn<'a> {
    /// It runs as soon as it is granted.
    Runs(&'a dyn Runs),
    /// Its asker asks again, and what came of the question is redeemed by that.
    Redeemed(&'a dyn Redeemed),
    /// There is none: a rule can only allow or deny it.
    NeverWaits,
}

/// A verb whose row says what a granted command does.
pub(super) trait HasTurn {
    /// The behaviour that the row names.
    fn turn(&self) -> Turn<'_>;
}

/// The permission under which a command is carried out.
pub(super) struct Permit {
    /// The rule that has allowed it.
    pub(super) rule: RuleId,
    /// The limits that the permission came with.
    pub(super) terms: Terms,
}

/// A verb that policy has a say over.
pub(super) trait Judged: HasTurn {
    /// The action that rules name for it.
    fn action(&self) -> Action;

    /// The work that rules look at, where it is a delegation.
    fn work(&self) -> Option<&Delegate> {
        None
    }

    /// Whether rules have no say over it, also when it is granted.
    fn needs_no_rule(&self) -> bool {
        false
    }

    /// The answer to a request that needs no policy, such as a repeat; `None` where policy has to be asked.
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

    /// Carries it out for a person, where a person needs no rule for it.
    fn by_person(
        &self,
        _state: &State,
        _judge: &dyn Judge,
        _call: &Call<'_>,
        _out: &mut Outbox,
    ) -> Option<Result<Reply, Refusal>> {
        None
    }

    /// Whether the caller brings the yes of a person along, so that a rule that asks for one has it.
    fn brings_a_yes(&self, _who: &Principal) -> bool {
        false
    }

    /// Carries it out after a rule has allowed it.
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

    /// The task that it makes.
    fn task(&self) -> Option<&TaskId> {
        None
    }

    /// The name of the request for approvers: DevIt's tool, or the verb.
    fn tool(&self) -> Box<str>;

    /// The name of the request in the asker's denial.
    fn denied_tool(&self) -> Box<str> {
        self.tool()
    }

    /// The details that an approver is shown.
    fn shown(&self) -> Json {
        Json::null()
    }

    /// The kind of question, which decides whose room it takes among those that wait.
    fn kind(&self) -> QuestionKind {
        QuestionKind::Work
    }

    /// How much is at stake.
    fn risk(&self, _facts: &Facts) -> Risk {
        Risk::High
    }

    /// How long its caller waits at most, where that is known.
    fn patience(&self) -> Option<Ttl> {
        None
    }

    /// Puts on record what a "no" leaves.
    fn denied(&self, _state: &State, _call: &Call<'_>, _rule: &RuleId, _why: &Failure, _out: &mut Outbox) {}
}

/// A judged verb that runs as soon as it is granted, as a task.
pub(super) trait Runs {
    /// The task, before anything is decided about its state.
    fn draft(&self, state: &State, now: Timestamp, who: &Principal, facts: &Facts, permit: Permit) -> Task;

    /// The facts as they are by now.
    ///
    /// # Errors
    /// A [`Refusal`] where the worker cannot do it any more.
    fn facts_now(&self, state: &State, parked: &Parked) -> Result<Facts, Refusal>;

    /// Lets the task begin that was granted.
    ///
    /// # Errors
    /// A [`Refusal`]; what `out` has got by then is taken back.
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

/// A judged verb that its asker asks again.
pub(super) trait Redeemed {
    /// The digest by which a repeat of the question is recognised.
    fn question(&self) -> Digest;

    /// Answers an asker who asks again.
    ///
    /// # Errors
    /// A [`Refusal`], where that is how this verb says "no".
    fn redeem(
        &self,
        state: &State,
        call: &Call<'_>,
        grant: &Grant,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal>;

    /// The outcome that is kept after a denial.
    fn outcome_of(&self, parked: &Parked, why: &str, failure: Failure) -> Outcome;

    /// Keeps what came of the question: usually for its asker, who comes back for it.
    fn keep(&self, _state: &State, now: Timestamp, parked: &Parked, outcome: Outcome, out: &mut Outbox) {
        grants::keep(now, parked.who.agent().clone(), self.question(), parked, outcome, out);
    }
}

/// Kinds of questions. Each has room of its own among those that wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Work, and pictures.
    Work,
    /// Use of tools of hosts.
    Permission,
    /// Files that are to be written.
    Apply,
    /// A budget that is nearly used up.
    Budget,
}
