//! Delegations as a judged verb: the facts that policy gets, and the task that a permission, an approval
//! or a denial makes.

use super::command::Command;
use super::judged::{Judged, Permit, QuestionKind, Runs};
use super::progress::Ending;
use super::task::Repeat;
use super::{
    Action, Answer, Call, Delegate, Delegated, Denial, Facts, Failure, Git, Judge, Network, Outbox, Parked,
    Principal, Refusal, Reply, Risk, State, Task, TaskState, Terms, Tier, WorkerKind,
};
use provost_base::{Digest, Json, RuleId, TaskId, Timestamp};

impl Judged for Delegate {
    fn action(&self) -> Action {
        Action::Delegate
    }

    fn work(&self) -> Option<&Delegate> {
        Some(self)
    }

    /// Settles repeats, workers that accept no tasks, and working directories outside of the workspace.
    fn settled(
        &self,
        state: &State,
        call: &mut Call<'_>,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        if let Repeat::Same(task) = state.tasks.repeat(call.who, self, call.past.as_ref())? {
            return Ok(Some(as_it_stands(&task)));
        }
        state.takes_on(self)?;
        state.asker_has_no_need_of(call.who, &self.worker)?;
        state.can_be_placed(call, self)?;
        if self.errand.as_ref().is_some_and(|it| state.jobs.has_ended(&it.job)) {
            return Err(Refusal::TaskFinished);
        }
        call.facts = state.facts_of(self, std::mem::take(&mut call.facts))?;
        call.facts.running = state.tasks.asked_from(&call.who.share());
        call.facts.depth = state.tasks.depth_below(call.who);
        self.can_have_its_work_tree(&call.facts)?;
        self.can_begin_again(&call.facts)?;
        if let Some(why) = call.facts.continue_refused.clone() {
            return Err(Refusal::SessionCannot { why });
        }
        let Some(reason) = call.facts.directory_refused.clone() else { return Ok(None) };
        let failure = Failure::Sandbox { why: reason.clone() };
        let rule = RuleId::parse("sandbox").expect("a constant that is a valid id");
        self.denied(state, call, &rule, &failure, out);
        Ok(Some(Answer::Denied(Denial { task: Some(self.task.clone()), rule, reason, failure })))
    }

    fn permitted(
        &self,
        state: &State,
        judge: &dyn Judge,
        call: &Call<'_>,
        permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        let task = self.draft(state, call.now, call.who, &call.facts, permit);
        start(state, call.now, task, judge.version(), out).map(Reply::Delegated)
    }

    fn task(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn tool(&self) -> Box<str> {
        self.tool.name.clone()
    }

    fn shown(&self) -> Json {
        Delegate::shown(self)
    }

    fn kind(&self) -> QuestionKind {
        QuestionKind::Work
    }

    /// Returns the risk. DevIt 1.6: central files and long test runs are `medium`. Provost adds `high` for everything that leaves the jail.
    fn risk(&self, facts: &Facts) -> Risk {
        let central = |path: &str| path.contains("main.rs") || path.contains("lib.rs");
        let outside = facts.network != Network::None
            || !facts.secrets.is_empty()
            || facts.git == Git::Write
            || facts.worker_kind != Some(WorkerKind::Cli);
        match &*self.tool.name {
            "devit_patch_apply" if self.tool.path.as_deref().is_some_and(central) => Risk::Medium,
            "devit_test_run" if self.tool.timeout_s.is_some_and(|it| it > 60) => Risk::Medium,
            "devit_delegate" if outside => Risk::High,
            _ => Risk::Low,
        }
    }

    /// Records the task that the command would have made as failed.
    fn denied(&self, state: &State, call: &Call<'_>, rule: &RuleId, why: &Failure, out: &mut Outbox) {
        let permit = Permit { rule: rule.clone(), terms: Terms::default() };
        let task = self.draft(state, call.now, call.who, &call.facts, permit);
        let summary = match why {
            Failure::Sandbox { why } => format!("Task refused: {why}"),
            _ => format!("Task denied by policy (tool: {})", self.tool.name),
        };
        state.finish(call.now, &task, Ending::failed(summary, why.clone()), out);
    }
}

impl Runs for Delegate {
    fn draft(&self, state: &State, now: Timestamp, who: &Principal, facts: &Facts, permit: Permit) -> Task {
        let task = state.tasks.draft(now, who, self, facts, permit.rule, permit.terms);
        Task { travel: state.travel_of(who, self, facts), ..task }
    }

    fn facts_now(&self, state: &State, parked: &Parked) -> Result<Facts, Refusal> {
        state.facts_of_parked(self, parked)
    }

    fn run_granted(
        &self,
        state: &State,
        now: Timestamp,
        _parked: &Parked,
        task: Task,
        policy: Digest,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        start(state, now, task, policy, out).map(drop)
    }
}

/// The reason why a host that is being drained begins no task.
const DRAINS: &str = "this host is being drained and takes no new tasks; ask on another machine";

fn start(
    state: &State,
    now: Timestamp,
    task: Task,
    policy: Digest,
    out: &mut Outbox,
) -> Result<Delegated, Refusal> {
    let goes_on =
        |it: &Task| it.travel.is_some() && (it.order.waits_for_host() || state.others().next().is_some());
    if state.drains && task.kind == WorkerKind::Cli && state.is_here(out.owner()) && !goes_on(&task) {
        return Err(Refusal::Unavailable { why: DRAINS.into() });
    }
    state.dispatch(now, task, policy, out)
}

impl Command {
    /// Returns the work that rules look at, if the command is a delegation.
    pub fn work(&self) -> Option<&Delegate> {
        self.judged()?.work()
    }

    /// Returns the action that rules name for it; `None` if policy does not apply.
    pub fn action(&self) -> Option<Action> {
        Some(self.judged()?.action())
    }
}

impl Delegate {
    /// Refuses further attempts for a worker that starts by itself, since the daemon cannot start it again.
    fn can_begin_again(&self, facts: &Facts) -> Result<(), Refusal> {
        if self.retries().is_none_or(|it| it == 0) || facts.worker_kind == Some(WorkerKind::Cli) {
            return Ok(());
        }
        Err(super::queue::refused(format!(
            "{} starts by itself, so the daemon cannot begin its work again; leave `retries` out, or name a worker that the daemon starts",
            self.worker
        )))
    }

    /// Checks that the worker's jail keeps it from writing `.git`: only then may its run work in a work tree of the repository.
    fn can_have_its_work_tree(&self, facts: &Facts) -> Result<(), Refusal> {
        if self.work_tree.is_none() {
            return Ok(());
        }
        let refused = |why: &str| Err(Refusal::NoWorkTree { why: why.into() });
        if facts.worker_kind != Some(WorkerKind::Cli) {
            return refused(
                "its worker starts by itself, and works where it likes; name a worker that the daemon starts",
            );
        }
        if facts.tier != Some(Tier::Ns) {
            return refused(
                "its worker's jail cannot keep it from writing `.git`; give the worker tier \"ns\", or let it work in a copy",
            );
        }
        match &facts.work_tree_refused {
            Some(why) => refused(why),
            None => Ok(()),
        }
    }
}

/// Returns the answer for a repeated request, which is that of the first one.
fn as_it_stands(task: &Task) -> Answer<Reply> {
    match (&task.state, &task.failure) {
        (TaskState::Awaiting { approval }, _) => Answer::Parked(*approval),
        (
            TaskState::Finished { .. },
            Some(failure @ (Failure::PolicyDenied { reason, .. } | Failure::Sandbox { why: reason })),
        ) => {
            let (task, rule) = (Some(task.id().clone()), task.rule.clone());
            Answer::Denied(Denial { task, rule, reason: reason.clone(), failure: failure.clone() })
        }
        (state, _) => Answer::Done(Reply::Delegated(Delegated { task: task.id().clone(), state: *state })),
    }
}
