//! Delegated work, from acceptance to its end.
//!
//! ```text
//!              granted            collected            reported
//!  [awaiting] --------> [queued] ----------> [assigned] -------+
//!      |                  |  ^                   |  |          v
//!      |                  |  +-- not delivered --+  |      [running] <-+ progress
//!      | denied, expired  | started in the jail     |          |  |----+
//!      |                  +-------------------------|----------+
//!      v                  v cancelled, kept too long v         v
//!  [finished: completed | failed | cancelled] <----------------+
//! ```
//! A task that waits for others is *waiting* before it is queued; see [`super::queue`]. A finished task leaves
//! memory; the store keeps it. Only its worker moves a task; only its asker (or the operator) cancels it. DevIt
//! 1.5, DELEGATE and NOTIFY.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Delegate, Status};
use super::post::owned_slug;
use super::turns::Round;
use super::{
    Above, Directory, Door, Facts, Failure, Network, Principal, Refusal, ScanReport, Settings, Share,
    TaskChanges, Terms, Watched, WorkerKind,
};
use provost_base::limits::{NOTES_MAX, TASKS_LIVE_MAX};
use provost_base::{AgentId, ApprovalId, DaemonId, Digest, HostId, Json, RuleId, TaskId, Timestamp, Ttl};

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its delegation waits for approval.
    Awaiting {
        /// The approval that it waits for.
        approval: ApprovalId,
    },
    /// Allowed, and waits until other tasks have succeeded.
    Waiting,
    /// An attempt has failed, and the next one waits for its time.
    Retrying {
        /// When that begins.
        at: Timestamp,
    },
    /// Allowed, and not yet with its worker.
    Queued {
        /// When a worker that stays away loses it.
        until: Timestamp,
    },
    /// Handed to a polling worker that has not said anything yet.
    Assigned {
        /// When the worker collected it.
        since: Timestamp,
        /// When it fails without a sign of life.
        lease_until: Timestamp,
        /// Whether it was handed over a second time.
        again: bool,
    },
    /// The worker is at work.
    Running {
        /// When the run began, or the worker first reported it.
        since: Timestamp,
        /// When it fails: without a sign of life (polling), or in any case (in the jail).
        lease_until: Timestamp,
    },
    /// Nothing more will happen to the task.
    Finished {
        /// Completed, failed or cancelled.
        status: Status,
        /// When the task ended.
        at: Timestamp,
    },
}

impl TaskState {
    /// Whether nothing more will happen.
    pub fn is_finished(self) -> bool {
        matches!(self, TaskState::Finished { .. })
    }

    /// Whether it is allowed, and not yet with its worker.
    pub fn is_queued(self) -> bool {
        matches!(self, TaskState::Queued { .. })
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Awaiting { .. } => "waiting for approval",
            TaskState::Waiting => "waiting for other tasks",
            TaskState::Retrying { .. } => "waiting for its next attempt",
            TaskState::Queued { .. } => "queued",
            TaskState::Assigned { .. } => "assigned",
            TaskState::Running { .. } => "running",
            TaskState::Finished { status, .. } => status.as_str(),
        }
    }

    /// The status of these states, as DevIt's clients see it.
    pub fn status(self) -> Status {
        match self {
            TaskState::Awaiting { .. }
            | TaskState::Waiting
            | TaskState::Retrying { .. }
            | TaskState::Queued { .. }
            | TaskState::Assigned { .. } => Status::Pending,
            TaskState::Running { .. } => Status::InProgress,
            TaskState::Finished { status, .. } => status,
        }
    }

    pub(super) fn deadline(self) -> Option<Timestamp> {
        match self {
            TaskState::Awaiting { .. } | TaskState::Waiting | TaskState::Finished { .. } => None,
            TaskState::Queued { until } => Some(until),
            TaskState::Retrying { at } => Some(at),
            TaskState::Assigned { since, lease_until, again: false } => {
                Some(since.after(AGAIN_AFTER).min(lease_until))
            }
            TaskState::Assigned { lease_until, .. } | TaskState::Running { lease_until, .. } => {
                Some(lease_until)
            }
        }
    }
}

/// A task that was handed over is handed over once more after this long without word of it.
pub(super) const AGAIN_AFTER: Ttl = Ttl::minutes(1);

/// A report of a worker, or of the daemon, about a task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The result in words for people; its length is bounded.
    pub summary: Box<str>,
    /// Results in a form that programs read.
    pub details: Option<Json>,
    /// Logs, metrics and the like.
    pub evidence: Option<Json>,
    /// Scheduling, model and exit data. DevIt 1.10.
    pub metadata: Option<Json>,
    /// Original size in bytes of an output that was cut.
    pub original_size: Option<u64>,
    /// The message as it came, relayed to the letter.
    pub relay: Option<Json>,
}

impl Report {
    /// Rough size in bytes, for bounds.
    pub fn bytes(&self) -> usize {
        let parts = [&self.details, &self.evidence, &self.metadata, &self.relay];
        self.summary.len()
            + parts.iter().filter_map(|it| it.as_ref()).map(|it| it.as_str().len()).sum::<usize>()
    }

    /// Digest for the log, which does not hold the text.
    pub fn digest(&self) -> Digest {
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}

/// One entry of a task's history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskNote {
    /// When it was received.
    pub at: Timestamp,
    /// The agent that said it.
    pub from: AgentId,
    /// The status word as said.
    pub said: Box<str>,
    /// The report; never with the relayed message.
    pub report: Report,
    /// Why the task failed, when the daemon says so.
    pub failure: Option<Failure>,
    /// The message it came in.
    pub message: Option<Box<str>>,
}

/// A piece of delegated work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The delegation as it was requested.
    pub order: Delegate,
    /// The agent that asked for the work.
    pub asked_by: AgentId,
    /// With whom its asker shares, where that was found out.
    #[serde(default)]
    pub asked_from: Option<Share>,
    /// With whom the agent shares that works on it, if one has said so.
    #[serde(default)]
    pub worked_from: Option<Share>,
    /// The door through which the request came.
    pub asked_via: Door,
    /// Digest of the request.
    pub request: Digest,
    /// How its worker gets it.
    pub kind: WorkerKind,
    /// The state of the task.
    pub state: TaskState,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When anything last happened.
    pub updated_at: Timestamp,
    /// The rule that allowed (or denied) it.
    pub rule: RuleId,
    /// The limits it runs under.
    pub terms: Terms,
    /// Where it works, as resolved when it was accepted.
    pub directory: Option<Directory>,
    /// The worker's executable, as hashed when it was accepted.
    pub program: Option<Digest>,
    /// The network that its worker has.
    pub network: Network,
    /// How many delegations lie above it.
    pub depth: u32,
    /// How many attempts have failed that were followed by another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried: u32,
    /// The tasks that it still waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<TaskId>,
    /// The tasks above it, for which what it uses counts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Box<Above>>,
    /// The approval it went through.
    pub approval: Option<ApprovalId>,
    /// The model that did the work.
    pub model_used: Option<Box<str>>,
    /// Whether the daemon itself does it: a picture of the screen.
    #[serde(default)]
    pub capture: bool,
    /// Tasks that ran in its directory while it did.
    #[serde(default)]
    pub beside: Vec<TaskId>,
    /// The files of its run that run later; `None` when no comparison was made.
    #[serde(default)]
    pub handoff: Option<ScanReport>,
    /// The changes of the files that its asker wanted watched.
    #[serde(default)]
    pub watched: Option<Watched>,
    /// The changes of its run in its private copy, and their fate; `None` if none are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<TaskChanges>,
    /// Its agent's session and what was said in it; `None` until there is either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talk: Option<Box<super::Talk>>,
    /// The daemon that starts its worker, or runs it.
    #[serde(default, skip_serializing_if = "DaemonId::is_alone")]
    pub daemon: DaemonId,
    /// The facts that it carries along if it may run on another host than its asker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub travel: Option<Box<super::Travel>>,
    /// Why it failed, when the daemon says so.
    pub failure: Option<Failure>,
    /// The reports about it: the first one and the newest ones.
    pub notes: Vec<TaskNote>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Task {
    /// The id that the asker has chosen.
    pub fn id(&self) -> &TaskId {
        &self.order.task
    }

    /// The share of the agent that asked for it.
    pub(super) fn share(&self) -> Share {
        let by_name = || Share::Name(owned_slug(self.asked_by.as_str()));
        self.asked_from.clone().unwrap_or_else(by_name)
    }

    /// How long a polling worker may be silent.
    pub(super) fn lease(&self, settings: &Settings) -> Ttl {
        self.order.timeout.max(settings.lease_min)
    }

    /// A lease's end, cut to the longest run that the task's terms allow.
    pub(super) fn within_terms(&self, since: Timestamp, until: Timestamp) -> Timestamp {
        self.terms.timeout.map_or(until, |most| until.min(since.after(most)))
    }

    /// Whether its terms give a task that runs since then no more time.
    pub(super) fn over_time(&self, since: Timestamp, now: Timestamp) -> bool {
        self.terms.timeout.is_some_and(|most| since.after(most) <= now)
    }

    /// The agents that hear of its progress, or (with `last`) of its end.
    pub(super) fn listeners(&self, last: bool) -> Vec<AgentId> {
        let asker = (self.asked_via == Door::Devit).then_some(&self.asked_by);
        let mut listeners: Vec<AgentId> = self.order.return_to.iter().cloned().collect();
        if listeners.is_empty() || last {
            listeners.extend(asker.cloned());
        }
        listeners.dedup();
        listeners
    }

    /// The host whose place it takes; `None` for one that is on no host now, or is not started by its daemon.
    fn takes_place_at(&self) -> Option<HostId> {
        let is_there = matches!(self.state, TaskState::Queued { .. } | TaskState::Running { .. });
        (is_there && self.kind == WorkerKind::Cli).then_some(self.daemon.host).filter(|it| !it.is_alone())
    }

    pub(super) fn with_note(mut self, note: TaskNote) -> Self {
        if self.notes.len() >= NOTES_MAX {
            self.notes.remove(1);
        }
        self.updated_at = note.at;
        self.notes.push(note);
        self
    }
}

/// All tasks that are not finished.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tasks {
    live: BTreeMap<TaskId, Arc<Task>>,
    due: BTreeSet<(Timestamp, TaskId)>,
    by_asker: BTreeMap<AgentId, u32>,
    by_share: BTreeMap<Share, u32>,
    by_worker: BTreeMap<AgentId, BTreeSet<TaskId>>,
    /// Those that an agent has said it works on, by the share of that agent.
    by_hand: BTreeMap<Share, BTreeSet<TaskId>>,
    /// Which tasks wait for one.
    waiting: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// Those that wait for a host that takes them.
    open: BTreeSet<TaskId>,
    /// The askers of these, in turn.
    round: Round,
    /// How many each host has taken that have not ended.
    at_host: BTreeMap<HostId, u32>,
}

/// The effect of an earlier request with the same id on a new one.
pub(super) enum Repeat {
    /// The id is free.
    New,
    /// The request came before, and gets the same answer.
    Same(Arc<Task>),
}

impl Tasks {
    /// DevIt: the same request may be repeated, another one may not take its id.
    pub(super) fn repeat(
        &self,
        who: &Principal,
        verb: &Delegate,
        past: Option<&Arc<Task>>,
    ) -> Result<Repeat, Refusal> {
        let Some(task) = self.live.get(&verb.task).or(past) else { return Ok(Repeat::New) };
        if task.asked_by == *who.agent() && task.request == verb.digest() {
            return Ok(Repeat::Same(task.clone()));
        }
        Err(Refusal::TaskExists)
    }

    /// A task as policy and facts leave it, before anything is decided about its state.
    pub(super) fn draft(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &Delegate,
        facts: &Facts,
        rule: RuleId,
        terms: Terms,
    ) -> Task {
        Task {
            order: verb.clone(),
            asked_by: who.agent().clone(),
            asked_from: Some(who.share()),
            worked_from: None,
            asked_via: who.door(),
            request: verb.digest(),
            kind: facts.worker_kind.unwrap_or(WorkerKind::Polling),
            state: TaskState::Queued { until: now },
            created_at: now,
            updated_at: now,
            rule,
            terms,
            directory: facts.directory.clone(),
            program: facts.program,
            network: facts.network.clone(),
            depth: facts.depth,
            tried: 0,
            waits: self.waits_of(verb),
            above: self.above(who, verb.errand.as_ref().map(|it| &*it.job)),
            approval: None,
            model_used: None,
            capture: false,
            beside: Vec::new(),
            handoff: None,
            watched: None,
            changes: None,
            talk: None,
            daemon: DaemonId::default(),
            travel: None,
            failure: None,
            notes: Vec::new(),
        }
    }

    /// The tasks that a delegation still waits for. Those of its tasks that have ended have succeeded.
    fn waits_of(&self, verb: &Delegate) -> Vec<TaskId> {
        let waits: Vec<TaskId> =
            verb.after().iter().filter(|it| self.live.contains_key(*it)).cloned().collect();
        if verb.begins_after_any() && waits.len() < verb.after().len() { Vec::new() } else { waits }
    }

    /// Whether one more unfinished task may be there, at all and for this asker.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Quota`] says which bound was reached.
    pub(super) fn room_for(&self, asker: &Share, settings: &Settings) -> Result<(), Refusal> {
        if self.live.len() >= TASKS_LIVE_MAX {
            return Err(Refusal::busy("too many unfinished tasks; wait for some to end or cancel them"));
        }
        if self.asked_from(asker) >= settings.tasks_per_agent {
            return Err(Refusal::quota(
                "as many tasks as one agent may have unfinished, under all names of its processes",
                settings.tasks_per_agent,
                "wait for some to end, or cancel them",
            ));
        }
        Ok(())
    }

    /// The tasks that wait for a host that takes them, by id.
    pub(super) fn open(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.open.iter().filter_map(|id| self.live.get(id))
    }

    /// How many tasks of workers that daemons start are on a host: queued there, or running.
    pub(super) fn under_way_at(&self, host: HostId) -> u32 {
        self.at_host.get(&host).copied().unwrap_or(0)
    }

    /// The tasks that wait for this one.
    pub(super) fn waiting_for(&self, task: &TaskId) -> Vec<TaskId> {
        self.waiting.get(task).into_iter().flatten().cloned().collect()
    }

    /// Unfinished tasks an agent has asked for.
    pub fn asked_by(&self, agent: &AgentId) -> u32 {
        self.by_asker.get(agent).copied().unwrap_or(0)
    }

    /// Unfinished tasks of all that share.
    pub(super) fn asked_from(&self, share: &Share) -> u32 {
        self.by_share.get(share).copied().unwrap_or(0)
    }

    /// Returns the depth of a new delegation by this agent: one below the deepest task that it works on, under any of its
    /// names. Tasks that the agent itself has asked for do not count.
    pub(super) fn depth_below(&self, who: &Principal) -> u32 {
        self.worked_on(who).map(|task| task.depth.saturating_add(1)).max().unwrap_or(0)
    }

    /// The tasks that a caller works on, under any of its names; one may come twice.
    pub(super) fn worked_on<'a>(&'a self, who: &'a Principal) -> impl Iterator<Item = &'a Arc<Task>> {
        let share = who.share();
        let in_hand = self.by_hand.get(&share).into_iter().flatten().filter_map(|id| self.live.get(id));
        self.of_worker(who.agent()).chain(in_hand.filter(move |task| task.share() != share))
    }

    /// Unfinished tasks of a client, and of those that share with it, under a rule.
    pub(super) fn running_under(&self, share: &Share, rule: &RuleId) -> u32 {
        let count = self.live.values().filter(|task| task.rule == *rule && task.share() == *share).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// A task that is not finished.
    pub fn get(&self, task: &TaskId) -> Option<&Arc<Task>> {
        self.live.get(task)
    }

    /// Unfinished tasks of a worker.
    pub(super) fn of_worker<'a>(&'a self, worker: &AgentId) -> impl Iterator<Item = &'a Arc<Task>> + use<'a> {
        self.by_worker.get(worker).into_iter().flatten().filter_map(|id| self.live.get(id))
    }

    /// How many tasks are not finished.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether each task is finished.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Every unfinished task, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.live.values()
    }

    /// Tasks whose deadline has come.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Arc<Task>> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.live.get(id)).cloned().collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// When the asker of an open task had its last turn.
    pub(super) fn last_turn(&self, asker: &Share) -> u64 {
        self.round.last_turn(asker)
    }

    pub(super) fn put(&mut self, task: Arc<Task>) {
        // Before the earlier state is removed, so that an asker whose only open task is put again keeps its turn.
        if task.is_open() {
            self.round.join(task.share());
        } else if self.open.contains(task.id()) && task.takes_place_at().is_some() {
            self.round.had_turn(&task.share());
        }
        self.remove(task.id());
        if let Some(at) = task.state.deadline() {
            self.due.insert((at, task.id().clone()));
        }
        *self.by_asker.entry(task.asked_by.clone()).or_default() += 1;
        *self.by_share.entry(task.share()).or_default() += 1;
        self.by_worker.entry(task.order.worker.clone()).or_default().insert(task.id().clone());
        if let Some(share) = &task.worked_from {
            self.by_hand.entry(share.clone()).or_default().insert(task.id().clone());
        }
        for earlier in &task.waits {
            self.waiting.entry(earlier.clone()).or_default().insert(task.id().clone());
        }
        if task.is_open() {
            self.open.insert(task.id().clone());
        }
        if let Some(host) = task.takes_place_at() {
            *self.at_host.entry(host).or_default() += 1;
        }
        self.live.insert(task.id().clone(), task);
    }

    pub(super) fn remove(&mut self, id: &TaskId) {
        let Some(task) = self.live.remove(id) else { return };
        if let Some(at) = task.state.deadline() {
            self.due.remove(&(at, id.clone()));
        }
        if self.open.remove(id) {
            self.round.leave(&task.share());
        }
        if let Some(host) = task.takes_place_at()
            && let Some(count) = self.at_host.get_mut(&host)
        {
            *count -= 1;
            if *count == 0 {
                self.at_host.remove(&host);
            }
        }
        for earlier in &task.waits {
            if let Some(tasks) = self.waiting.get_mut(earlier) {
                tasks.remove(id);
                if tasks.is_empty() {
                    self.waiting.remove(earlier);
                }
            }
        }
        if let Some(count) = self.by_asker.get_mut(&task.asked_by) {
            *count -= 1;
            if *count == 0 {
                self.by_asker.remove(&task.asked_by);
            }
        }
        if let Some(count) = self.by_share.get_mut(&task.share()) {
            *count -= 1;
            if *count == 0 {
                self.by_share.remove(&task.share());
            }
        }
        let is_empty = |tasks: &mut BTreeSet<TaskId>| tasks.remove(id) && tasks.is_empty();
        if self.by_worker.get_mut(&task.order.worker).is_some_and(is_empty) {
            self.by_worker.remove(&task.order.worker);
        }
        if let Some(share) = &task.worked_from
            && self.by_hand.get_mut(share).is_some_and(is_empty)
        {
            self.by_hand.remove(share);
        }
    }
}
