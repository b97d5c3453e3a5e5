//! Counts for observers of the daemon from outside, once they are requested: commands by door, verb and outcome,
//! batches, ends of tasks, calls to models and the answers of the store.
//!
//! Counting is an addition to a number in memory, on the thread that has the outcome. Before counts are requested, none of this exists.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::measures::Durations;
use provost_base::AgentId;
use provost_base::limits::{OBSERVED_WORKERS_MAX, TELEMETRY_SAMPLES_MAX};
use provost_domain::{
    Answer, Change, Counted, Door, Gone, Refusal, RefusalKind, SpendChange, SpendingSettings, Status,
    TaskState, VerbName,
};
use provost_store::{Begun, HostState, ServerAt};

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// It waits for approval.
    Parked,
    /// A rule or the configuration forbids it.
    Denied,
    /// It was refused because of its content.
    Refused,
    /// The queue, or its caller's share, had no room for it.
    Full,
    /// The store or the system could not serve it.
    Unavailable,
    /// Its caller went away before the answer.
    Left,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Parked, Self::Denied, Self::Refused, Self::Full, Self::Unavailable, Self::Left];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Parked => "parked",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Left => "left",
        }
    }

    /// Returns whether the command was carried out; `None` if that is open.
    pub fn is_done(self) -> Option<bool> {
        match self {
            Self::Done => Some(true),
            Self::Parked | Self::Left => None,
            Self::Denied | Self::Refused | Self::Full | Self::Unavailable => Some(false),
        }
    }

    fn of<R>(answer: &Result<Answer<R>, Refusal>) -> Self {
        match answer {
            Ok(Answer::Done(_)) => Self::Done,
            Ok(Answer::Parked(_)) => Self::Parked,
            Ok(Answer::Denied(_)) => Self::Denied,
            Err(refusal) => Self::of_refusal(refusal),
        }
    }

    fn of_refusal(refusal: &Refusal) -> Self {
        match refusal.kind() {
            RefusalKind::Forbidden => Self::Denied,
            RefusalKind::Full => Self::Full,
            RefusalKind::Unready => Self::Unavailable,
            RefusalKind::Rights
            | RefusalKind::Name
            | RefusalKind::Size
            | RefusalKind::Exists
            | RefusalKind::HeldElsewhere
            | RefusalKind::Delegation
            | RefusalKind::Coordination
            | RefusalKind::Crew
            | RefusalKind::Token => Self::Refused,
        }
    }
}

/// The way in which a task has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskEnd {
    /// Its work is done.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskEnd {
    /// All ends.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The later finding about a commit whose answer was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The batch is stored.
    Stored,
    /// The batch is not stored.
    NotStored,
    /// It can no longer be found out.
    Never,
}

impl Found {
    /// All findings.
    pub const ALL: [Self; 3] = [Self::Stored, Self::NotStored, Self::Never];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::NotStored => "not_stored",
            Self::Never => "never",
        }
    }
}

/// The states of hosts, with their words.
pub const HOST_STATES: [(HostState, &str); 5] = [
    (HostState::Waiting, "waiting"),
    (HostState::Live, "live"),
    (HostState::Draining, "draining"),
    (HostState::Down, "down"),
    (HostState::Removed, "removed"),
];

/// The usage of a worker's runs since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorkerUse {
    /// Calls to models and their tokens, as the proxy has counted them.
    pub counted: Counted,
    /// The cost of those that have a price, in millionths of a US dollar.
    pub microusd: u64,
    /// Calls of models without a price.
    pub unpriced_calls: u64,
    /// Bytes from the worker to the hosts that it may reach.
    pub sent: u64,
    /// Bytes that came back.
    pub received: u64,
    /// Connections that were refused.
    pub refused: u64,
}

/// All counts.
pub struct Observed {
    /// The numbers of commands, by verb, then by door, then by outcome.
    commands: Box<[AtomicU64]>,
    /// The times from the call to the answer, by door.
    command_times: Box<[Durations]>,
    /// The numbers of commands in a commit.
    pub batches: Durations,
    /// The waits for the turn at a shared store.
    pub turns: Durations,
    /// The times for which entries of other hosts were folded.
    pub folds: Durations,
    /// The times from a task's acceptance to its end, by the kind of end.
    tasks: [Durations; TaskEnd::ALL.len()],
    /// The number of times that the store has refused or failed.
    store_errors: AtomicU64,
    unknown: [AtomicU64; Found::ALL.len()],
    hosts: [AtomicU64; HOST_STATES.len()],
    used: Mutex<BTreeMap<Box<str>, WorkerUse>>,
    began: Instant,
    /// When the store last answered, in milliseconds since `began`.
    answered: AtomicU64,
    /// Whether other daemons write to the store, too.
    shared: AtomicBool,
    log_head: AtomicU64,
    /// The last entry of the shared log at the last turn.
    log_end: AtomicU64,
    /// The timeline of the database's server; zero before the first turn.
    timeline: AtomicU64,
    /// The number of hosts that this daemon has found dead.
    buried: AtomicU64,
    /// Requests to a collector: for each signal, those that the collector accepted and the others.
    exported: [[AtomicU64; 2]; Signal::ALL.len()],
    spans_dropped: AtomicU64,
    /// One in this many commands is sampled; zero means none.
    sampled: AtomicU64,
    commands_seen: AtomicU64,
    samples: Mutex<Vec<Sample>>,
}

/// A kind of data that is sent to a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

impl Signal {
    /// Both signals.
    pub const ALL: [Self; 2] = [Self::Traces, Self::Metrics];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

/// A command in the sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The verb.
    pub verb: VerbName,
    /// The door at which it came.
    pub door: Door,
    /// The outcome of the command.
    pub outcome: Outcome,
    /// When it was answered.
    pub answered: Instant,
    /// The time from the call to the answer.
    pub took: Duration,
}

impl Default for Observed {
    fn default() -> Self {
        let cells = VerbName::ALL.len() * Door::ALL.len() * Outcome::ALL.len();
        let alone = HOST_STATES.map(|(state, _)| AtomicU64::new(u64::from(state == HostState::Live)));
        Self {
            commands: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            command_times: Door::ALL.iter().map(|_| Durations::default()).collect(),
            batches: Durations::default(),
            turns: Durations::default(),
            folds: Durations::default(),
            tasks: std::array::from_fn(|_| Durations::default()),
            store_errors: AtomicU64::new(0),
            unknown: Default::default(),
            hosts: alone,
            used: Mutex::default(),
            began: Instant::now(),
            answered: AtomicU64::new(0),
            shared: AtomicBool::new(false),
            log_head: AtomicU64::new(0),
            log_end: AtomicU64::new(0),
            timeline: AtomicU64::new(0),
            buried: AtomicU64::new(0),
            exported: Default::default(),
            spans_dropped: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            commands_seen: AtomicU64::new(0),
            samples: Mutex::default(),
        }
    }
}

/// Returns the place of a count of commands.
fn cell(verb: VerbName, door: Door, outcome: Outcome) -> usize {
    (verb as usize * Door::ALL.len() + door as usize) * Outcome::ALL.len() + outcome as usize
}

/// The name under which workers are counted when there are too many.
const OTHERS: &str = "(others)";

impl Observed {
    /// Returns the counts of commands: verb, door, outcome and number, without those that did not occur.
    pub fn commands(&self) -> Vec<(VerbName, Door, Outcome, u64)> {
        let mut found = Vec::new();
        for verb in VerbName::ALL {
            for door in Door::ALL {
                for outcome in Outcome::ALL {
                    let count = self.commands[cell(*verb, *door, outcome)].load(Ordering::Relaxed);
                    if count > 0 {
                        found.push((*verb, *door, outcome, count));
                    }
                }
            }
        }
        found
    }

    /// Returns the times of commands of a door, from the call to the answer.
    pub fn command_times(&self, door: Door) -> &Durations {
        &self.command_times[door as usize]
    }

    /// Returns the times of tasks with this kind of end.
    pub fn tasks(&self, end: TaskEnd) -> &Durations {
        &self.tasks[end as usize]
    }

    /// Returns how often the store has refused or failed.
    pub fn store_errors(&self) -> u64 {
        self.store_errors.load(Ordering::Relaxed)
    }

    /// Returns how many commits lost their answer, by the later finding.
    pub fn unknown(&self, found: Found) -> u64 {
        self.unknown[found as usize].load(Ordering::Relaxed)
    }

    /// Returns how many hosts the store knows, by the place of their state in [`HOST_STATES`].
    pub fn hosts(&self) -> [u64; HOST_STATES.len()] {
        std::array::from_fn(|at| self.hosts[at].load(Ordering::Relaxed))
    }

    /// Returns the usage of each worker's runs. The number of workers that are distinguished has a bound.
    pub fn used(&self) -> Vec<(Box<str>, WorkerUse)> {
        self.uses().iter().map(|(worker, it)| (worker.clone(), it.clone())).collect()
    }

    /// Returns the time since the store last answered.
    pub fn store_silent_for(&self) -> Duration {
        let answered = Duration::from_millis(self.answered.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(answered)
    }

    /// Returns the last entry of the shared log that this daemon has; `None` if it shares none.
    pub fn log_head(&self) -> Option<u64> {
        self.shared.load(Ordering::Relaxed).then(|| self.log_head.load(Ordering::Relaxed))
    }

    /// Returns how many entries of the shared log this daemon did not have yet, of those that its last turn has seen.
    pub fn log_behind(&self) -> u64 {
        self.log_end.load(Ordering::Relaxed).saturating_sub(self.log_head.load(Ordering::Relaxed))
    }

    /// Returns the timeline of the server to which the shared store was last connected; `None` before the first turn.
    pub fn timeline(&self) -> Option<u64> {
        Some(self.timeline.load(Ordering::Relaxed)).filter(|it| *it > 0)
    }

    /// Returns how many hosts this daemon has found dead.
    pub fn buried(&self) -> u64 {
        self.buried.load(Ordering::Relaxed)
    }

    /// Counts the network traffic of a worker's run.
    pub fn network(&self, worker: &AgentId, sent: u64, received: u64, refused: u64) {
        self.used_by(worker, |it| {
            it.sent = it.sent.saturating_add(sent);
            it.received = it.received.saturating_add(received);
            it.refused = it.refused.saturating_add(refused);
        });
    }

    /// Samples one in `one_in` commands from now on; zero samples none.
    pub fn sample(&self, one_in: u32) {
        self.sampled.store(u64::from(one_in), Ordering::Relaxed);
    }

    /// Returns the samples since the last call.
    pub fn take_samples(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a request to a collector that has ended.
    pub fn exported(&self, signal: Signal, taken: bool) {
        self.exported[signal as usize][usize::from(!taken)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests to a collector it has accepted, and how many it has not.
    pub fn exports(&self, signal: Signal) -> (u64, u64) {
        let [taken, others] = &self.exported[signal as usize];
        (taken.load(Ordering::Relaxed), others.load(Ordering::Relaxed))
    }

    /// Counts spans that were not sent.
    pub fn dropped(&self, spans: u64) {
        self.spans_dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Returns how many spans were not sent.
    pub fn spans_dropped(&self) -> u64 {
        self.spans_dropped.load(Ordering::Relaxed)
    }

    /// Samples a command that was just answered, if it is its turn.
    fn seen(&self, verb: VerbName, door: Door, outcome: Outcome, took: Duration) {
        let one_in = self.sampled.load(Ordering::Relaxed);
        if one_in == 0 || !self.commands_seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in) {
            return;
        }
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() < TELEMETRY_SAMPLES_MAX {
            samples.push(Sample { verb, door, outcome, answered: Instant::now(), took });
        }
    }

    /// Counts a repeated status that a door has taken in.
    pub(crate) fn repeated(&self, door: Door) {
        self.count(VerbName::Republish, door, Outcome::Done);
    }

    /// Counts a stored batch of so many commands.
    pub(crate) fn committed(&self, commands: u32) {
        self.batches.note_us(u64::from(commands));
        self.store_answers();
    }

    /// Notes that the store has just answered.
    pub(crate) fn store_answers(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(now, Ordering::Relaxed);
    }

    /// Counts an error of the store.
    pub(crate) fn store_failed(&self) {
        self.store_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the later finding about a commit without an answer.
    pub(crate) fn found(&self, found: Found) {
        self.unknown[found as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a turn at a shared store, with the hosts that the store knows, and its server.
    pub(crate) fn took_turn(&self, took: Duration, begun: &Begun, server: Option<&ServerAt>) {
        self.shared.store(true, Ordering::Relaxed);
        self.log_end.store(begun.log_end.0, Ordering::Relaxed);
        server.into_iter().for_each(|it| self.timeline.store(it.timeline, Ordering::Relaxed));
        self.turns.note(took);
        self.store_answers();
        for (at, (state, _)) in HOST_STATES.iter().enumerate() {
            let count = begun.hosts.iter().filter(|it| it.state == *state).count() as u64;
            self.hosts[at].store(count, Ordering::Relaxed);
        }
    }

    /// Notes that this daemon has the shared log up to this entry.
    pub(crate) fn has_log_to(&self, entry: u64) {
        self.log_head.store(entry, Ordering::Relaxed);
    }

    /// Counts the changes that this daemon has committed.
    pub(crate) fn follow(&self, changes: &[Change], prices: &SpendingSettings) {
        for change in changes {
            match change {
                Change::FinishTask(task) => {
                    let TaskState::Finished { status, at } = task.state else { continue };
                    let end = match status {
                        Status::Completed => TaskEnd::Completed,
                        Status::Cancelled => TaskEnd::Cancelled,
                        Status::Failed | Status::Pending | Status::InProgress => TaskEnd::Failed,
                    };
                    self.tasks(end).note(Duration::from_millis(at.since_ms(task.created_at)));
                }
                Change::Spend(SpendChange::Calls { worker, model, counted, .. }) => {
                    let cost = prices.cost(model, counted);
                    self.used_by(worker, |it| {
                        it.counted.add(counted);
                        it.microusd = it.microusd.saturating_add(cost.unwrap_or(0));
                        it.unpriced_calls += if cost.is_none() { counted.calls } else { 0 };
                    });
                }
                Change::HostDown(_, Gone::Silent) => {
                    self.buried.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
    }

    fn count(&self, verb: VerbName, door: Door, outcome: Outcome) {
        self.commands[cell(verb, door, outcome)].fetch_add(1, Ordering::Relaxed);
    }

    fn uses(&self) -> MutexGuard<'_, BTreeMap<Box<str>, WorkerUse>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used_by(&self, worker: &AgentId, add: impl FnOnce(&mut WorkerUse)) {
        let mut uses = self.uses();
        let has_room = uses.len() < OBSERVED_WORKERS_MAX || uses.contains_key(worker.as_str());
        add(uses.entry(if has_room { worker.as_str() } else { OTHERS }.into()).or_default());
    }
}

/// A command on its way, which is counted when it is answered, or when its caller goes away.
pub(crate) struct Watch<'a>(Option<Watched<'a>>);

struct Watched<'a> {
    observed: &'a Observed,
    door: Door,
    verb: VerbName,
    began: Instant,
}

impl<'a> Watch<'a> {
    pub(crate) fn of(observed: Option<&'a Observed>, door: Door, verb: VerbName) -> Self {
        Self(observed.map(|observed| Watched { observed, door, verb, began: Instant::now() }))
    }

    /// Counts an answered command.
    pub(crate) fn answered<R>(mut self, answer: &Result<Answer<R>, Refusal>) {
        self.end(Outcome::of(answer));
    }

    /// Counts an answered command whose reply its caller does not need.
    pub(crate) fn told(mut self, answer: &Result<(), Refusal>) {
        self.end(answer.as_ref().err().map_or(Outcome::Done, Outcome::of_refusal));
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(it) = self.0.take() {
            let took = it.began.elapsed();
            it.observed.count(it.verb, it.door, outcome);
            it.observed.command_times(it.door).note(took);
            it.observed.seen(it.verb, it.door, outcome, took);
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Left);
    }
}
