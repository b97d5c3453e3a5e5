//! Queries, answered from memory.

mod apply;
mod at_work;
mod crew;
mod foreign;
mod gauges;
mod job;
mod mail;
mod merge;
mod outgoing;
mod passkey;
mod post;
mod push;
mod switch;
mod traces;
mod user;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    AutoSetting, Contract, ContractStatus, Door, Intent, IntentStatus, Lock, Mail, Parked, RegisteredAgent,
    State, Task, Token, Waiter, WorkerSetting,
};
use provost_base::{AgentId, ApprovalId, Digest, HostId, RepoPath, TaskId, Timestamp};

pub use apply::{AppliesUnderWay, InTheWay, TaskOfApply};
pub use at_work::{AtWork, AtWorkOut, FirstOf};
pub use crew::{
    ClaimsOf, ClaimsOn, Collisions, ConflictAhead, CrewCounts, CrewCountsOut, CrewSnapshot, HeldFiles,
    OneAssignment, OneClaim, OneFile, OneHandoff, OneMember, SomeHandoffs, WholeCrew,
};
pub use foreign::{Foreign, ForeignAgent, OneForeign, ShowsForeign};
pub use gauges::{Crowd, Gauges, GaugesOut};
pub use job::{JobsOf, OneJob, SameJob, StepsOf, UnfinishedJobs};
pub use mail::MailOf;
pub use merge::AllMerges;
pub use outgoing::{OwedNotice, OwedNoticeOut, OwedNotices, OwedTo};
pub use passkey::{AgentsAtWork, AllPasskeys, AllPasskeysOut};
pub use post::{Inboxes, NamedReservations, OpenQuestions, Overlaps, PresentMeetings, Roster, SeenFiles};
pub use push::{AllPush, OnePush};
pub use switch::{AllSwitches, OneSwitch};
pub use traces::TracesOfTasks;
pub use user::{AllUsers, AllUsersOut};
pub use waits::{AllWaits, AllWaitsOut};

/// A query. The engine answers it between two batches.
pub trait View: Send + 'static {
    /// The type of the answer.
    type Out: Send + 'static;

    /// Reads the answer from the state.
    fn look(self, now: Timestamp, state: &State) -> Self::Out;
}

/// The query for all unfinished tasks, oldest first, with the totals of the finished ones.
#[derive(Clone, Copy, Debug)]
pub struct LiveTasks;

/// Answer to [`LiveTasks`].
#[derive(Clone, Debug)]
pub struct LiveTasksOut {
    /// Unfinished tasks, oldest first.
    pub tasks: Vec<Arc<Task>>,
    /// The number of tasks completed or cancelled since the beginning.
    pub completed: u64,
    /// The number of tasks failed since the beginning.
    pub failed: u64,
}

impl View for LiveTasks {
    type Out = LiveTasksOut;

    fn look(self, _now: Timestamp, state: &State) -> LiveTasksOut {
        let mut tasks: Vec<_> = state.tasks.iter().cloned().collect();
        tasks.sort_by(|a, b| (a.created_at, a.id()).cmp(&(b.created_at, b.id())));
        LiveTasksOut { tasks, completed: state.counters.completed, failed: state.counters.failed }
    }
}

/// The query for the numbers of tasks. Its cost does not depend on these numbers.
#[derive(Clone, Copy, Debug)]
pub struct TaskCounts;

/// Answer to [`TaskCounts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskCountsOut {
    /// The number of unfinished tasks.
    pub live: usize,
    /// The number of tasks completed or cancelled since the beginning.
    pub completed: u64,
    /// The number of tasks failed since the beginning.
    pub failed: u64,
}

impl View for TaskCounts {
    type Out = TaskCountsOut;

    fn look(self, _now: Timestamp, state: &State) -> TaskCountsOut {
        let (completed, failed) = (state.counters.completed, state.counters.failed);
        TaskCountsOut { live: state.tasks.len(), completed, failed }
    }
}

/// The query for the task with this id, if it is not finished.
#[derive(Clone, Debug)]
pub struct LiveTask(pub TaskId);

impl View for LiveTask {
    type Out = Option<Arc<Task>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.tasks.get(&self.0).cloned()
    }
}

/// The query for all commands that wait for approval, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Waiting;

impl View for Waiting {
    type Out = Vec<Arc<Parked>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.approvals.iter().cloned().collect()
    }
}

/// The query for the settings of a worker.
#[derive(Clone, Debug)]
pub struct OneWorkerSetting(pub AgentId);

impl View for OneWorkerSetting {
    type Out = Option<WorkerSetting>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.settings.workers.get(&self.0).cloned()
    }
}

/// The query for the number of notification hooks that are owed.
#[derive(Clone, Copy, Debug)]
pub struct HooksOwed;

impl View for HooksOwed {
    type Out = usize;

    fn look(self, _now: Timestamp, state: &State) -> usize {
        state.hooks.len()
    }
}

/// The query for the waiting command with this number, if it exists.
#[derive(Clone, Copy, Debug)]
pub struct WaitingOne(pub ApprovalId);

impl View for WaitingOne {
    type Out = Option<Arc<Parked>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.approvals.get(self.0).cloned()
    }
}

/// The query for all agents that are known through any door, by name, each once.
#[derive(Clone, Copy, Debug)]
pub struct KnownAgents;

/// One row of the answer to [`KnownAgents`].
#[derive(Clone, Debug)]
pub struct KnownAgent {
    /// The name of the agent.
    pub id: AgentId,
    /// The record of the agent, if it has registered or has a name for people.
    pub agent: Option<Arc<RegisteredAgent>>,
    /// The doors that it uses: those by which it has come since the daemon started, and those that have a record of it.
    pub doors: BTreeSet<Door>,
    /// The time of its last sign of life.
    pub last_seen: Option<Timestamp>,
    /// Whether that was within [`super::ALIVE_FOR`].
    pub alive: bool,
    /// The host of that sign of life; `None` if a daemon writes alone.
    pub host: Option<HostId>,
    /// Whether that host is another one than this daemon's.
    pub elsewhere: bool,
    /// The number of messages that wait for it.
    pub mail: usize,
    /// The number of unfinished tasks that it asked for.
    pub asked: u32,
}

impl View for KnownAgents {
    type Out = Vec<KnownAgent>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        let mut all: BTreeMap<&AgentId, BTreeSet<Door>> = BTreeMap::new();
        for agent in state.agents.iter() {
            let doors = all.entry(&agent.id).or_default();
            doors.extend(agent.has_registered().then_some(Door::Devit));
            doors.extend(agent.nick.is_some().then_some(Door::Wit));
        }
        for member in state.crew.iter() {
            all.entry(&member.id).or_default().insert(Door::AgentProtocol);
        }
        // All spellings of a name are one agent there; its name at the other doors is the plain one.
        let letters: Vec<AgentId> = state.broker.iter().map(|it| AgentId::from(&it.slug)).collect();
        for id in &letters {
            all.entry(id).or_default().insert(Door::Broker);
        }
        for id in state.agents.seen_anywhere() {
            all.entry(id).or_default();
        }
        for visitor in state.agents.visitors() {
            let doors = state.agents.doors_of(visitor);
            if doors.iter().any(|it| !matches!(it, Door::Internal)) {
                all.entry(visitor).or_default().extend(doors);
            }
        }
        let row = |(id, doors): (&AgentId, BTreeSet<Door>)| KnownAgent {
            id: id.clone(),
            agent: state.agents.get(id).cloned(),
            doors,
            last_seen: state.agents.last_seen(id),
            alive: state.agents.is_alive(id, now),
            host: state.agents.at(id).map(|it| it.daemon.host),
            elsewhere: state.agents.at(id).is_some_and(|it| !state.is_here(it.daemon)),
            mail: state.mail.waiting(id),
            asked: state.tasks.asked_by(id),
        };
        all.into_iter().map(row).collect()
    }
}

/// The query for process ids from the kernel under which agents have registered: a person's terminal is not below these.
#[derive(Clone, Copy, Debug)]
pub struct AgentPids;

impl View for AgentPids {
    type Out = Vec<u32>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.agents.iter().filter_map(|agent| agent.peer_pid).collect()
    }
}

/// The query for the message with a task's last word, if it waits for an agent.
#[derive(Clone, Debug)]
pub struct LastWord {
    /// The agent whose queue may have it.
    pub to: AgentId,
    /// The task that the word is about.
    pub task: TaskId,
}

impl View for LastWord {
    type Out = Option<Arc<Mail>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.mail.last_word(&self.to, &self.task).cloned()
    }
}

/// The query whether an agent has mail that no connection is carrying.
#[derive(Clone, Debug)]
pub struct HasMail(pub AgentId);

impl View for HasMail {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.mail.waiting(&self.0) > 0
    }
}

/// The query for live locks, in the order of their first grants.
#[derive(Clone, Debug, Default)]
pub struct LiveLocks {
    /// The agent whose locks are listed; `None` for all agents.
    pub holder: Option<AgentId>,
    /// The files whose locks are listed; empty for all files.
    pub files: Vec<RepoPath>,
}

/// A thing that an agent has, with the agent's name for people.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// The thing that the agent has.
    pub it: T,
    /// The name of the agent that has it.
    pub name: Option<Box<str>>,
}

fn named<T>(state: &State, agent: &AgentId, it: T) -> Named<T> {
    let name = state.agents.get(agent).and_then(|agent| agent.nick.as_ref()).map(|nick| nick.name.clone());
    Named { it, name }
}

impl View for LiveLocks {
    /// The locks, and the moment of the answer.
    type Out = (Vec<Named<Arc<Lock>>>, Timestamp);

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        let wanted = |lock: &&Arc<Lock>| {
            !lock.lapsed
                && lock.expires_at > now
                && self.holder.as_ref().is_none_or(|it| *it == lock.holder)
                && (self.files.is_empty() || self.files.contains(lock.at.file()))
        };
        let locks = state.locks.iter().filter(wanted);
        (locks.map(|lock| named(state, &lock.holder, lock.clone())).collect(), now)
    }
}

/// The query for all waits for locks, longest first.
#[derive(Clone, Copy, Debug)]
pub struct LockWaiters;

impl View for LockWaiters {
    type Out = Vec<Arc<Waiter>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.locks.waiters().cloned().collect()
    }
}

/// The query for intents: active ones first, each group oldest first.
#[derive(Clone, Debug, Default)]
pub struct SomeIntents {
    /// The agent whose intents are listed; `None` for all agents.
    pub agent: Option<AgentId>,
    /// The file whose intents are listed, in its one spelling or as their owners wrote it.
    pub file: Option<Box<str>>,
    /// The status that the intents must have; `None` for all live ones.
    pub status: Option<IntentStatus>,
}

impl View for SomeIntents {
    type Out = Vec<Named<Arc<Intent>>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let wanted = |intent: &&Arc<Intent>| {
            self.status.map_or(intent.status.is_live(), |it| it == intent.status)
                && self.agent.as_ref().is_none_or(|it| *it == intent.agent)
                && self.file.as_ref().is_none_or(|file| {
                    intent.files.iter().any(|it| it.path.as_str() == &**file || it.asked == *file)
                })
        };
        let mut found: Vec<_> = state.intents.iter().filter(wanted).collect();
        found.sort_by_key(|intent| (intent.status, intent.place));
        found.into_iter().map(|intent| named(state, &intent.agent, intent.clone())).collect()
    }
}

/// The query for live intents on these files.
#[derive(Clone, Debug)]
pub struct IntentsOn(pub Vec<RepoPath>);

impl View for IntentsOn {
    type Out = Vec<Arc<Intent>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let mut found: BTreeMap<_, _> = BTreeMap::new();
        for intent in self.0.iter().flat_map(|file| state.intents.live_on(file)) {
            found.entry(intent.place).or_insert_with(|| intent.clone());
        }
        found.into_values().collect()
    }
}

/// The query for contracts, oldest first.
#[derive(Clone, Debug, Default)]
pub struct SomeContracts {
    /// The symbol whose contracts are listed, as `file:symbol` in its one spelling or as their proposers wrote it.
    pub symbol: Option<Box<str>>,
    /// The status that the contracts must have.
    pub status: Option<ContractStatus>,
}

impl View for SomeContracts {
    type Out = Vec<Arc<Contract>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let wanted = |contract: &&Arc<Contract>| {
            self.status.is_none_or(|it| it == contract.status)
                && self
                    .symbol
                    .as_ref()
                    .is_none_or(|it| contract.asked == *it || *contract.at.to_string() == **it)
        };
        state.contracts.iter().filter(wanted).cloned().collect()
    }
}

/// The query for contracts in force on symbols of these files, each file with its own, oldest first.
#[derive(Clone, Debug)]
pub struct ContractsOn(pub Vec<RepoPath>);

impl View for ContractsOn {
    type Out = Vec<Vec<Arc<Contract>>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        self.0.iter().map(|file| state.contracts.in_force_on(file).cloned().collect()).collect()
    }
}

/// The query for the configured effect of a write on its agent's locks.
#[derive(Clone, Copy, Debug)]
pub struct AutoNow;

impl View for AutoNow {
    type Out = AutoSetting;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.settings.auto
    }
}

/// The query for the host of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct OwnHost;

impl View for OwnHost {
    type Out = HostId;

    fn look(self, _now: Timestamp, state: &State) -> HostId {
        state.here.host
    }
}

/// The query for leases that were taken by writing, and for locks that end with a commit as these do.
#[derive(Clone, Copy, Debug)]
pub struct WrittenLeases;

impl View for WrittenLeases {
    type Out = Vec<Arc<Lock>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        // Another host's work tree may have the same path.
        let written =
            |it: &&Arc<Lock>| !it.lapsed && it.ends_with_commit().is_some() && state.is_here(it.daemon);
        state.locks.iter().filter(written).cloned().collect()
    }
}

/// The query for locks that end with a process, with that process.
#[derive(Clone, Copy, Debug)]
pub struct BoundLocks;

impl View for BoundLocks {
    type Out = Vec<Arc<Lock>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        // This host cannot look at another host's processes.
        let bound = |it: &&Arc<Lock>| !it.lapsed && it.process.is_some() && state.is_here(it.daemon);
        state.locks.iter().filter(bound).cloned().collect()
    }
}

/// The query for the token with this digest, if it is valid now.
#[derive(Clone, Copy, Debug)]
pub struct GoodToken(pub Digest);

impl View for GoodToken {
    type Out = Option<Arc<Token>>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.tokens.good(&self.0, now).cloned()
    }
}

/// The query for every token that is valid now, by agent.
#[derive(Clone, Copy, Debug)]
pub struct GoodTokens;

impl View for GoodTokens {
    type Out = Vec<Arc<Token>>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.tokens.iter().filter(|token| token.is_good(now)).cloned().collect()
    }
}
