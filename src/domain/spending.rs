//! The usage of runs, as the daemon has counted it in the answers of models' services, and the budgets that limit it.
//!
//! ```text
//!   [below] --warned--> [warned] --a share is used--> [a person is asked] --yes--> [goes on] --used up--> [stopped]
//!                                                            \--no---------------------------------------> [stopped]
//! ```
//! Every call counts for its task and all tasks above it, for its agent and the agents above it, for its day and for the repository.
//! Workers' own reports do not count. The daemon checks the sums between two calls; it never cuts off a call that is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::approval::Question;
use super::budget::{Budget, BudgetPer, Counted, Limit, SpendingSettings};
use super::command::{CallsNoted, GoOn, GoesOn, NoteCalls};
use super::judged::{Judged, Permit, QuestionKind, Redeemed};
use super::{
    Action, Answer, Approver, Call, Change, Command, EventKind, Failure, Grant, Judge, Outbox, Outcome,
    Parked, Principal, Refusal, Reply, Risk, State, Task, Tasks, Terms, view::View,
};
use provost_base::limits::{BUDGET_MODELS_MAX, MODEL_LEN_MAX};
use provost_base::{AgentId, ApprovalId, Digest, Json, RuleId, TaskId, Timestamp, Ttl};

/// A day in milliseconds. Days are those of UTC.
const DAY_MS: i64 = 86_400_000;
/// The longest time in which a person may say whether it goes on.
const ASKED_FOR: Ttl = Ttl::minutes(24 * 60);
/// The name under which models are summed when there are too many.
pub const OTHER_MODELS: &str = "(others)";
/// The highest number of tasks counted above one: those that its asker works on.
const ABOVE_MAX: usize = 64;

/// The key of a sum.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpentKey {
    /// A task and all tasks below it.
    Task(Box<str>),
    /// An agent and all agents below it.
    Agent(AgentId),
    /// A day.
    Day,
    /// The repository.
    Repository,
}

impl fmt::Display for SpentKey {
    /// Writes the text under which tables keep the key; different keys have different texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpentKey::Task(id) => write!(f, "task {id}"),
            SpentKey::Agent(id) => write!(f, "agent {id}"),
            SpentKey::Day => f.write_str("day"),
            SpentKey::Repository => f.write_str("repository"),
        }
    }
}

/// A person's answer about a budget that was nearly used up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BudgetWord {
    /// The budget that the answer was about; another budget needs a new answer.
    pub limit: Limit,
    /// Whether the work goes on.
    pub goes_on: bool,
    /// The approval that the person answered.
    pub approval: ApprovalId,
}

/// A sum, with the answers of people about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spent {
    /// The key of the sum.
    pub key: SpentKey,
    /// The day of a daily sum: days since 1970, in UTC; `None` for other sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<i64>,
    /// Tokens, by model.
    pub models: BTreeMap<Box<str>, Counted>,
    /// Budgets that a warning was given for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<Limit>,
    /// The answers of people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<BudgetWord>,
}

impl Spent {
    fn new(key: SpentKey, day: Option<i64>) -> Self {
        Self { key, day, models: BTreeMap::new(), warned: Vec::new(), words: Vec::new() }
    }

    fn add(&mut self, model: &str, more: &Counted) {
        let has_room = self.models.contains_key(model) || self.models.len() < BUDGET_MODELS_MAX;
        let name = if has_room { model } else { OTHER_MODELS };
        self.models.entry(name.into()).or_default().add(more);
    }

    /// Returns how much of a limit is used, and a model without a price, if there is one.
    fn used(&self, limit: Limit, settings: &SpendingSettings) -> (u64, Option<&str>) {
        let (mut sum, mut unpriced) = (0_u64, None);
        for (model, it) in &self.models {
            let part = match limit {
                Limit::Tokens(_) => Some(it.tokens()),
                Limit::MicroUsd(_) => settings.cost(model, it),
            };
            match part {
                Some(part) => sum = sum.saturating_add(part),
                None => unpriced = unpriced.or(Some(&**model)),
            }
        }
        (sum, unpriced)
    }
}

/// All sums that budgets can be compared with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spending(BTreeMap<SpentKey, Arc<Spent>>);

/// A change to the sums.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendChange {
    /// A new or changed sum.
    Put(Arc<Spent>),
    /// A sum that no budget needs any more.
    Drop(SpentKey),
    /// Calls of a run; the store adds them up, and memory does not have them.
    Calls {
        /// The task that made the calls.
        task: TaskId,
        /// The worker of that task.
        worker: AgentId,
        /// The time of the calls.
        at: Timestamp,
        /// The model that answered.
        model: Box<str>,
        /// The usage of the calls.
        counted: Counted,
    },
}

impl Spending {
    pub(super) fn apply(&mut self, change: &SpendChange) {
        match change {
            SpendChange::Put(it) => drop(self.0.insert(it.key.clone(), it.clone())),
            SpendChange::Drop(key) => drop(self.0.remove(key)),
            SpendChange::Calls { .. } => {}
        }
    }

    /// Returns the sum of this day, or the one without a day.
    fn of(&self, key: &SpentKey, day: Option<i64>) -> Option<&Arc<Spent>> {
        self.0.get(key).filter(|it| it.day == day)
    }

    /// Returns all sums.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Spent>> {
        self.0.values()
    }
}

/// Returns the day of a moment, in days since 1970, in UTC.
fn day_of(now: Timestamp) -> i64 {
    now.0.div_euclid(DAY_MS)
}

/// Returns the day of a sum with this key, if it is a daily one.
fn day_for(key: &SpentKey, now: Timestamp) -> Option<i64> {
    matches!(key, SpentKey::Agent(_) | SpentKey::Day).then(|| day_of(now))
}

/// The tasks above a task, and their agents, for which its usage counts as well.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Above {
    /// The tasks at the top, or the jobs.
    pub tops: BTreeSet<Box<str>>,
    /// All agents in between.
    pub agents: BTreeSet<AgentId>,
}

impl Tasks {
    /// Returns the tasks above a new delegation by this caller: those that it works on, under any name, and all above them.
    pub(super) fn above(&self, who: &Principal, job: Option<&str>) -> Option<Box<Above>> {
        let mut above = Above::default();
        above.tops.extend(job.map(|it| format!("job {it}").into()));
        for task in self.worked_on(who).take(ABOVE_MAX) {
            above.agents.insert(task.order.worker.clone());
            match &task.above {
                Some(it) => {
                    above.tops.extend(it.tops.iter().cloned());
                    above.agents.extend(it.agents.iter().cloned());
                }
                None => drop(above.tops.insert(task.id().as_str().into())),
            }
        }
        (above != Above::default()).then(|| Box::new(above))
    }
}

impl Task {
    /// Checks whether the task's calls count for this task or job.
    fn is_below(&self, top: &str) -> bool {
        match self.above.as_deref().filter(|it| !it.tops.is_empty()) {
            Some(above) => above.tops.contains(top),
            None => self.id().as_str() == top,
        }
    }

    /// Returns the keys under which the task's calls are summed.
    fn spent_keys(&self) -> Vec<SpentKey> {
        let above = self.above.as_deref();
        let mut agents: BTreeSet<AgentId> = above.map(|it| it.agents.clone()).unwrap_or_default();
        agents.insert(self.order.worker.clone());
        let own = || BTreeSet::from([self.id().as_str().into()]);
        let tops = above.map(|it| it.tops.clone()).filter(|it| !it.is_empty()).unwrap_or_else(own);
        let keys = tops.into_iter().map(SpentKey::Task).chain(agents.into_iter().map(SpentKey::Agent));
        keys.chain([SpentKey::Day, SpentKey::Repository]).collect()
    }
}

/// The decision about the next call of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MayCall {
    /// The call may be made.
    Yes,
    /// The call may not be made, for this reason.
    No(Box<str>),
    /// A person has to be asked first.
    Ask(Box<GoOn>),
}

/// Asks whether the next call of a task's run may be made. A deferred call is answered by a later request, which counts nothing.
#[derive(Clone, Debug)]
pub struct NextCall {
    /// The task of the run.
    pub task: TaskId,
    /// Whether the call is answered later.
    pub is_deferred: bool,
}

impl View for NextCall {
    type Out = MayCall;

    fn look(self, now: Timestamp, state: &State) -> MayCall {
        let Some(task) = state.tasks.get(&self.task) else {
            return MayCall::No("the task is over".into());
        };
        state.next_call(now, task, self.is_deferred)
    }
}

impl State {
    /// Records the usage of calls. `past` is the task if it is finished already.
    pub(super) fn note_calls(
        &self,
        now: Timestamp,
        verb: &NoteCalls,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<CallsNoted, Refusal> {
        let live = self.tasks.get(&verb.task);
        let task = live.or(past).ok_or(Refusal::TaskNotFound)?;
        let worker = task.order.worker.clone();
        let named = |model: &str| -> Box<str> { model[..model.floor_char_boundary(MODEL_LEN_MAX)].into() };
        for (model, counted) in &verb.calls {
            let (task, worker, model) = (verb.task.clone(), worker.clone(), named(model));
            let counted = *counted;
            out.put(Change::Spend(SpendChange::Calls { task, worker, at: now, model, counted }));
        }
        // A finished task has no sum of its own any more, unless other tasks below it go on.
        let is_needed = |key: &SpentKey| live.is_some() || self.is_spent_for(key, None);
        for key in task.spent_keys().into_iter().filter(is_needed) {
            let day = day_for(&key, now);
            let known = self.spending.of(&key, day).map(|it| Spent::clone(it));
            let mut spent = known.unwrap_or_else(|| Spent::new(key, day));
            verb.calls.iter().for_each(|(model, counted)| spent.add(&named(model), counted));
            self.warn(&mut spent, task, out);
            out.put(Change::Spend(SpendChange::Put(Arc::new(spent))));
        }
        Ok(CallsNoted)
    }

    /// Checks whether a sum with this key is needed: an unfinished task, other than this one, counts for it.
    fn is_spent_for(&self, key: &SpentKey, but: Option<&TaskId>) -> bool {
        let SpentKey::Task(top) = key else { return true };
        self.tasks.iter().any(|it| Some(it.id()) != but && it.is_below(top))
    }

    /// Ends the sums that were only for a task that is over, and withdraws the questions about them.
    pub(super) fn end_spending(&self, task: &Task, out: &mut Outbox) {
        for key in task.spent_keys() {
            if self.spending.0.contains_key(&key) && !self.is_spent_for(&key, Some(task.id())) {
                self.end_questions(&key, out);
                out.put(Change::Spend(SpendChange::Drop(key)));
            }
        }
    }

    fn end_questions(&self, key: &SpentKey, out: &mut Outbox) {
        let is_about = |it: &&Arc<Parked>| matches!(&it.command, Command::GoOn(verb) if verb.key == *key);
        for parked in self.approvals.iter().filter(is_about) {
            out.append_event(EventKind::ApprovalExpired { approval: parked.id });
            self.drop_approval(parked.id, out);
        }
    }

    /// Returns the budgets that a sum is compared with.
    fn budgets_for<'a>(&'a self, key: &'a SpentKey) -> impl Iterator<Item = &'a Budget> {
        self.settings.spending.budgets.iter().filter(move |it| match (key, it.per) {
            (SpentKey::Agent(agent), BudgetPer::Agent) => {
                it.agent.as_ref().is_none_or(|wanted| wanted == agent)
            }
            (SpentKey::Task(_), BudgetPer::Task)
            | (SpentKey::Day, BudgetPer::Day)
            | (SpentKey::Repository, BudgetPer::Repository) => true,
            _ => false,
        })
    }

    /// Warns once about each budget whose share for a warning is used.
    fn warn(&self, spent: &mut Spent, task: &Task, out: &mut Outbox) {
        for budget in self.budgets_for(&spent.key.clone()) {
            let (used, _) = spent.used(budget.limit, &self.settings.spending);
            if !reaches(used, budget.limit, budget.warn_at) || spent.warned.contains(&budget.limit) {
                continue;
            }
            // Budgets that change again and again must not leave an endless trace.
            if spent.warned.len() >= WORDS_MAX {
                spent.warned.remove(0);
            }
            spent.warned.push(budget.limit);
            let details = json!({
                "task": task.id().as_str(), "used": budget.limit.text(used), "of": budget.limit.text(budget.limit.most()),
            });
            out.append_event(EventKind::Recorded {
                what: "budget.warned".into(),
                subject: spent.key.to_string().into(),
                details: Json::from_value(&details),
            });
        }
    }

    fn next_call(&self, now: Timestamp, task: &Task, is_deferred: bool) -> MayCall {
        let mut ask = None;
        for key in task.spent_keys() {
            let day = day_for(&key, now);
            let nothing = Spent::new(key.clone(), day);
            let spent = self.spending.of(&key, day).map_or(&nothing, |it| it);
            for budget in self.budgets_for(&key) {
                if is_deferred {
                    return MayCall::No(
                        format!(
                            "a call that is answered later cannot be counted, and {} has a budget",
                            in_words(&key)
                        )
                        .into(),
                    );
                }
                match self.stands(spent, budget, task) {
                    MayCall::Yes => {}
                    MayCall::No(why) => return MayCall::No(why),
                    MayCall::Ask(it) => ask = ask.or(Some(it)),
                }
            }
        }
        ask.map_or(MayCall::Yes, MayCall::Ask)
    }

    /// Returns whether a sum still leaves room in a budget.
    fn stands(&self, spent: &Spent, budget: &Budget, task: &Task) -> MayCall {
        let (limit, whose) = (budget.limit, in_words(&spent.key));
        let (used, unpriced) = spent.used(limit, &self.settings.spending);
        if let Some(model) = unpriced {
            let model = if model.is_empty() { "a model that its service does not name" } else { model };
            return MayCall::No(
                format!("the budget in USD of {whose} cannot be kept: {model} has no price; add a [[price]] for it, or give the budget in tokens").into(),
            );
        }
        let of = || format!("{} of the {} that {whose} may use", limit.text(used), limit.text(limit.most()));
        if used >= limit.most() {
            return MayCall::No(
                format!("the budget is used up: {}; a larger one is set in [[budget]]", of()).into(),
            );
        }
        match spent.words.iter().rev().find(|it| it.limit == limit) {
            Some(word) if !word.goes_on => MayCall::No(
                format!("a person does not want it to go on (approval {}): {} are used", word.approval, of())
                    .into(),
            ),
            None if reaches(used, limit, budget.ask_at) => MayCall::Ask(Box::new(GoOn {
                key: spent.key.clone(),
                per: budget.per,
                limit,
                used,
                day: spent.day,
                task: task.id().clone(),
            })),
            _ => MayCall::Yes,
        }
    }
}

/// The number of people's answers, and of warnings, that are kept for one sum.
const WORDS_MAX: usize = 16;

/// Checks whether so many percent of a limit are used.
fn reaches(used: u64, limit: Limit, percent: u8) -> bool {
    u128::from(used) * 100 >= u128::from(limit.most()) * u128::from(percent)
}

fn in_words(key: &SpentKey) -> String {
    match key {
        SpentKey::Task(id) => match id.strip_prefix("job ") {
            Some(job) => format!("job {job}"),
            None => format!("task {id} with all that it delegates"),
        },
        SpentKey::Agent(id) => format!("agent {id} on one day"),
        SpentKey::Day => "one day".into(),
        SpentKey::Repository => "the repository".into(),
    }
}

impl GoOn {
    fn why(&self) -> String {
        let (used, of) = (self.limit.text(self.used), self.limit.text(self.limit.most()));
        format!("{used} of the {of} that {} may use are used; the next call waits", in_words(&self.key))
    }
}

impl Judged for GoOn {
    fn action(&self) -> Action {
        Action::Permission
    }

    /// Budgets ask by themselves: no rule applies to them.
    fn settled(
        &self,
        state: &State,
        call: &mut Call<'_>,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        let spent = state.spending.of(&self.key, self.day);
        if spent.is_some_and(|it| it.words.iter().any(|word| word.limit == self.limit)) {
            // The question was answered at the same moment.
            return Ok(Some(Answer::Done(Reply::GoesOn(GoesOn))));
        }
        if let Some(waiting) = state.approvals.of_question(call.who.agent(), self.question()) {
            return Ok(Some(Answer::Parked(waiting.id)));
        }
        let question = Question {
            command: &Command::GoOn(self.clone()),
            verb: self,
            rule: RuleId::parse("budget").expect("a constant that is a valid id"),
            reason: self.why().into(),
            terms: Terms::default(),
            wait: ASKED_FOR.min(state.settings.approval_wait_max),
            again: 0,
            by: vec![Approver::PasskeyIfEnrolled],
            policy: Digest::default(),
        };
        state.park(call.now, call.who, call.facts.clone(), question, out).map(|id| Some(Answer::Parked(id)))
    }

    /// This is never reached: [`Judged::settled`] has always asked before.
    fn permitted(
        &self,
        _state: &State,
        _judge: &dyn Judge,
        _call: &Call<'_>,
        _permit: Permit,
        _out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        Ok(Reply::GoesOn(GoesOn))
    }

    fn needs_no_rule(&self) -> bool {
        true
    }

    fn tool(&self) -> Box<str> {
        "budget".into()
    }

    fn shown(&self) -> Json {
        Json::from_value(&json!({
            "budget": in_words(&self.key),
            "used": self.limit.text(self.used),
            "of": self.limit.text(self.limit.most()),
            "task": self.task.as_str(),
        }))
    }

    fn kind(&self) -> QuestionKind {
        QuestionKind::Budget
    }

    fn risk(&self, _facts: &super::Facts) -> Risk {
        Risk::Medium
    }
}

impl Redeemed for GoOn {
    /// Returns the digest of the question. The amount used by then and the waiting task do not matter.
    fn question(&self) -> Digest {
        let asked = (&self.key, self.per, self.limit, self.day);
        Digest::of(serde_json::to_string(&asked).unwrap_or_default().as_bytes())
    }

    fn redeem(
        &self,
        _state: &State,
        _call: &Call<'_>,
        grant: &Grant,
        _out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal> {
        Err(grant.for_something_else())
    }

    fn outcome_of(&self, _parked: &Parked, why: &str, failure: Failure) -> Outcome {
        Outcome::Denied(why.into(), failure)
    }

    /// Keeps a person's answer with the sum, for all tasks that wait and over a restart. Silence is not an answer.
    fn keep(&self, state: &State, _now: Timestamp, parked: &Parked, outcome: Outcome, out: &mut Outbox) {
        let goes_on = match outcome {
            Outcome::Granted => true,
            Outcome::Denied(_, Failure::ApprovalDenied { .. }) => false,
            Outcome::Denied(..) | Outcome::Made(_) => return,
        };
        // The sum that it was about may be gone.
        let Some(spent) = state.spending.of(&self.key, self.day) else { return };
        let mut spent = Spent::clone(spent);
        if spent.words.len() >= WORDS_MAX {
            spent.words.remove(0);
        }
        spent.words.push(BudgetWord { limit: self.limit, goes_on, approval: parked.id });
        out.put(Change::Spend(SpendChange::Put(Arc::new(spent))));
    }
}

/// The query for the settings about money.
#[derive(Clone, Copy, Debug)]
pub struct SpendingNow;

impl View for SpendingNow {
    type Out = (SpendingSettings, Vec<BudgetStanding>);

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        let of_today = |it: &&Arc<Spent>| it.day == day_for(&it.key, now);
        let sums = state.spending.iter().filter(of_today);
        let standings = sums.flat_map(|spent| {
            state.budgets_for(&spent.key).map(|budget| state.standing(spent, budget)).collect::<Vec<_>>()
        });
        (state.settings.spending.clone(), standings.collect())
    }
}

/// The state of a budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetStanding {
    /// The key of the sum.
    pub key: SpentKey,
    /// The amount that may be used.
    pub limit: Limit,
    /// The amount that is used, in the limit's unit.
    pub used: u64,
    /// The state: `open`, `asked`, `goes_on`, `stopped` or `unpriced`.
    pub state: &'static str,
}

impl State {
    fn standing(&self, spent: &Spent, budget: &Budget) -> BudgetStanding {
        let (used, unpriced) = spent.used(budget.limit, &self.settings.spending);
        let word = spent.words.iter().rev().find(|it| it.limit == budget.limit);
        let state = match word {
            _ if unpriced.is_some() => "unpriced",
            _ if used >= budget.limit.most() => "stopped",
            Some(BudgetWord { goes_on: false, .. }) => "stopped",
            Some(_) => "goes_on",
            None if reaches(used, budget.limit, budget.ask_at) => "asked",
            None => "open",
        };
        BudgetStanding { key: spent.key.clone(), limit: budget.limit, used, state }
    }
}
