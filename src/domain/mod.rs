//! Provost's rules, as one deterministic state machine.
//!
//! Nothing here reads a clock, a file, a socket or a random source. [`Core::apply`] is given the time, the
//! caller, a command and the facts about it; it answers, and writes what must be stored, announced and done
//! into an [`Outbox`]. The same inputs give the same outputs, always. Deciding borrows the state immutably, so
//! a refusal cannot have changed anything.
#![forbid(unsafe_code)]

mod ability;
mod apply;
mod approval;
pub mod artifact;
mod assignment;
mod attempts;
mod budget;
mod changes;
mod claim;
pub mod command;
mod conflict;
mod contract;
mod counters;
mod crew;
mod decide;
mod delegation;
mod effect;
mod event;
mod event_kinds;
mod event_text;
mod failure;
mod files;
mod forced;
mod grants;
mod handoff;
mod hook;
mod host;
mod host_names;
mod inside;
mod intent;
mod job;
mod judge;
mod judged;
mod judged_request;
mod lock;
mod log_entry;
mod mail;
mod merge;
mod note;
mod origin;
mod outbox;
mod outgoing;
mod owing;
mod passkey;
mod permission;
mod pool;
pub mod post;
mod principal;
mod progress;
mod push;
mod queue;
mod quota;
mod refusal;
mod row;
mod screenshot;
mod session;
mod settings;
pub mod shell_line;
mod spending;
mod switch;
mod taking;
mod talk;
mod tally;
mod task;
mod timeline;
mod token;
mod tool_call;
mod travel;
mod turns;
mod usage;
mod user;
mod version;
pub mod view;
mod work_machine;

use std::collections::BTreeSet;
use std::sync::Arc;

use provost_base::{AgentId, ApprovalId, DaemonId, HostId, RuleId, SymbolPath, TaskId, Timestamp, Ttl};

pub use ability::{Abilities, AbleWorker, HOST_ABLE, HostAbility};
pub use apply::{AppliedFile, ApplyChange, ApplyEvent, ApplyFile, Written};
pub use approval::{Again, Approvals, Parked, Verdict, approvers_now, approvers_text};
pub use artifact::{Artifact, Changeset, CollectedArtifact, StoredChangeset};
pub use assignment::{Assignment, AssignmentState, Assignments};
pub use attempts::Retries;
pub use budget::{Budget, BudgetPer, Counted, Limit, Price, SpendingSettings};
pub use changes::{ChangesState, Taking, TaskChanges};
pub use claim::{Claim, Claims, Content, Hold};
use command::Delegated;
pub use command::{
    Command, Delegate, Durability, JobContext, JudgedVerb, Reply, Status, Tool, Verb, VerbName,
};
pub use conflict::{Meeting, Overlap, Part, Reservation, ReservationKind, Reservations, Title};
pub use contract::{Contract, ContractStatus, Contracts};
pub use counters::Counters;
pub use crew::{
    Crew, CrewChange, CrewEvent, CrewRefusal, Elected, Member, Note, Origin, Role, Seen, Standing,
};
pub use effect::{Effect, Owed};
pub use event::{Event, EventKind};
pub use event_kinds::event_kinds;
pub use failure::Failure;
pub use files::{FileChange, Finding, FindingKind, ScanReport, Watched, WatchedFile};
pub use grants::{Grant, GrantChange, Grants, Outcome};
pub use handoff::{Handoff, HandoffState, Handoffs};
pub use hook::{Hooks, Notice};
pub use host::{Gone, HOST_DOWN, HOST_REMOVED};
pub use host_names::HostNames;
pub use intent::{Intent, IntentFile, IntentStatus, Intents};
pub use job::{
    Job, JobChange, JobEvent, JobKind, JobResult, JobState, Jobs, Phase, PhaseName, PhaseState, Phases,
    StepOf,
};
pub use judge::{
    Action, Approver, Credentials, Decision, Directory, Facts, Git, Judge, Network, Rate, SecretUse, Terms,
    Tier, WorkerKind,
};
pub use judged_request::{JudgedRequest, JudgedWork};
pub use lock::{
    AwaitedNeed, AwaitedNeeds, Lock, LockWait, Locks, NeedsWait, ProcessMark, RefusedCircle, RefusedCircles,
    Units, UntilCommit, Waiter, Writer, Writing,
};
pub use log_entry::{AnsweredAway, LogEntry, PastEvent};
pub use mail::{Mail, MailKind, Mailboxes, Risk};
pub use merge::{MergeEntry, MergeEvent, MergePasses, MergeState, Merges};
pub use origin::{CallOrigin, ProcessSession};
pub use outbox::Outbox;
pub use outgoing::{
    ApprovalFacts, NoticeAbout, NoticeKind, NoticeTarget, NoticeWords, Outgoing, OutgoingNotice, TaskFacts,
};
pub use owing::{Deed, Owing};
pub use passkey::{KnownPasskey, Passkey, PasskeyChange, PasskeyStanding, Passkeys, SOURCE_ROOT, SignedWord};
pub use permission::PermissionEvent;
pub use pool::{IdlestInPool, PoolHasPlace, PoolOf, PoolSetting};
pub use post::{BrokerState, Post, PostChange, PostSettings};
pub use principal::{Principal, Proof, Share};
pub use provost_base::{Door, Scope, Scopes};
pub use push::{PushChange, PushSetting, PushSubscription, PushSubscriptions, push_address, push_id};
pub use queue::{Placement, Priority, QueueEvent};
pub use quota::{Quota, Uses};
pub use refusal::{Refusal, RefusalKind};
pub use row::{Change, ChangeClass};
pub use screenshot::Picture;
pub use session::{ALIVE_FOR, Agents, Nick, RegisteredAgent, SeenAt};
pub use settings::{Auto, AutoSetting, CrewSetting, Settings, WorkerSetting};
pub use spending::{
    Above, BudgetStanding, BudgetWord, MayCall, NextCall, OTHER_MODELS, SpendChange, Spending, SpendingNow,
    Spent, SpentKey,
};
pub use switch::{Switch, Switched, Switches};
pub use taking::NextOpen;
pub use talk::{AgentSession, Continued, Saying, SayingState, Talk, TalkEvent};
pub use task::{Report, Task, TaskNote, TaskState, Tasks};
pub use timeline::{BEAT, DOOR_OPENED, Topic, WATCHER};
pub use token::{TOKEN_SCOPES, Token, Tokens};
pub use tool_call::{
    ToolCall, ToolCommand, ToolFacts, ToolPath, folders_of, is_machinery, is_of_processes, is_stream,
    runs_later, takes_patch,
};
pub use travel::{HasOthers, HereIs, MightTravel, OnlyWorks, Travel, WorkersElsewhere};
pub use turns::{PlaceInLine, Turn, TurnNo, Turns};
pub use usage::Usage;
pub use user::{USER_CHANGED, User, UserRole, Users};
pub use version::{Ahead, Earlier, KeptVersion, Version};
pub use work_machine::NEVER_WORK;

/// The interval at which the core removes old mail and other records that have aged.
const SWEEP_EVERY: Ttl = Ttl::minutes(1);

/// Returns the name under which a change appears in the log when no agent has reported it.
pub fn unknown() -> AgentId {
    AgentId::parse(note::UNKNOWN).expect("a constant that is a valid id")
}

/// Returns the name under which the daemon itself appears in the log.
pub fn provost() -> AgentId {
    AgentId::parse("provost").expect("a constant that is a valid id")
}

/// The outcome of a command that was not refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<R> {
    /// The command was carried out, with this reply.
    Done(R),
    /// The command waits for an approver, under this number.
    Parked(ApprovalId),
    /// Policy denied the command, and that is on record: the task that it would have made has failed, and its asker has mail.
    Denied(Denial),
}

/// A "no" by policy or by the sandbox, which unlike a [`Refusal`] leaves a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The task that failed before it began.
    pub task: Option<TaskId>,
    /// The rule; `sandbox` when the working directory was the reason.
    pub rule: RuleId,
    /// The reason, in words for the caller.
    pub reason: Box<str>,
    /// The reason, for programs.
    pub failure: Failure,
}

/// Everything that Provost knows except history. The state in memory is a fold of committed [`Change`]s.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Agents that have registered or been named, and their signs of life.
    pub agents: Agents,
    /// Tasks that are not finished; finished ones are in the store.
    pub tasks: Tasks,
    /// Commands that wait for approval.
    pub approvals: Approvals,
    /// Messages in the queues of agents.
    pub mail: Mailboxes,
    /// Uses of rate-limited rules.
    pub quota: Quota,
    /// Hooks that are owed.
    pub hooks: Hooks,
    /// Notices that are owed to addresses elsewhere.
    pub outgoing: Outgoing,
    /// Jobs and applies that are owed.
    pub owing: Owing,
    /// Outcomes of questions, until their askers come back.
    pub grants: Grants,
    /// Files that applies have lately written.
    pub written: Written,
    /// Locks on symbols, held and lapsed, and the agents that wait for them.
    pub locks: Locks,
    /// Circles of waiting that were refused lately. In memory only.
    pub circles: RefusedCircles,
    /// Changes that agents have announced.
    pub intents: Intents,
    /// Agreements on signatures, offered and in force.
    pub contracts: Contracts,
    /// All reservations, of the broker's and the coordinating doors alike, in the form in which they are compared.
    pub stakes: Reservations,
    /// Messages between agents, without what they say.
    pub broker: BrokerState,
    /// Agents that have announced themselves to work together.
    pub crew: Crew,
    /// Files that members of the crew work on.
    pub claims: Claims,
    /// Work that members request from each other.
    pub assignments: Assignments,
    /// Work that members hand over to each other.
    pub handoffs: Handoffs,
    /// Records of tokens, by their digests.
    pub tokens: Tokens,
    /// Passkeys on record.
    pub passkeys: Passkeys,
    /// Browsers that are told by their push services.
    pub push: PushSubscriptions,
    /// Jobs: the requests of editors, until they are forgotten.
    pub jobs: Jobs,
    /// Branches that wait to be merged.
    pub merges: Merges,
    /// The usage of runs, as far as budgets may need it.
    pub spending: Spending,
    /// Workers that a command has switched off.
    pub switches: Switches,
    /// The rights of the hosts' users.
    pub users: Users,
    /// The abilities of the hosts that take part.
    pub abilities: Abilities,
    /// The last numbers and totals.
    pub counters: Counters,
    /// The settings from the configuration.
    pub settings: Settings,
    /// This daemon: the one that decides. Each daemon has its own value.
    pub here: DaemonId,
    /// Whether this host takes no new tasks. Each daemon has its own value.
    drains: bool,
    /// The hosts that were removed.
    removed: BTreeSet<HostId>,
    /// Whether this host has joined only to carry out tasks. Each daemon has its own value.
    works_only: bool,
    swept_at: Timestamp,
    /// The time of the first command or deadline after the last start; signs of life before it were not seen.
    awake_since: Option<Timestamp>,
}

impl State {
    /// Returns the state before anything happened.
    pub fn new(settings: Settings) -> Self {
        Self {
            agents: Agents::default(),
            tasks: Tasks::default(),
            approvals: Approvals::default(),
            mail: Mailboxes::default(),
            quota: Quota::default(),
            hooks: Hooks::default(),
            outgoing: Outgoing::default(),
            owing: Owing::default(),
            grants: Grants::default(),
            written: Written::default(),
            locks: Locks::default(),
            circles: RefusedCircles::default(),
            intents: Intents::default(),
            contracts: Contracts::default(),
            stakes: Reservations::default(),
            broker: BrokerState::default(),
            crew: Crew::default(),
            claims: Claims::default(),
            assignments: Assignments::default(),
            handoffs: Handoffs::default(),
            tokens: Tokens::default(),
            passkeys: Passkeys::default(),
            push: PushSubscriptions::default(),
            jobs: Jobs::default(),
            merges: Merges::default(),
            spending: Spending::default(),
            switches: Switches::default(),
            users: Users::default(),
            abilities: Abilities::default(),
            counters: Counters::default(),
            settings,
            here: DaemonId::default(),
            drains: false,
            removed: BTreeSet::new(),
            works_only: false,
            swept_at: Timestamp::default(),
            awake_since: None,
        }
    }

    /// Applies a change: the only place where state changes, for commands and for loading alike.
    pub fn apply(&mut self, change: &Change) {
        self.stakes.follow(change);
        match change {
            Change::PutTask(task) => self.tasks.put(task.clone()),
            Change::FinishTask(task) => self.tasks.remove(task.id()),
            // The store has the history.
            Change::AmendTask(_) => {}
            Change::PutAgent(agent) => self.agents.put(agent.clone()),
            Change::Beat(agent, at) => self.agents.seen(agent, *at),
            Change::CameBy(agent, door) => self.agents.came_by(agent, *door),
            Change::At(agent, at) => self.agents.is_at(agent, *at),
            Change::DropAgent(agent) => self.agents.forget(agent),
            Change::PutMail(mail) => self.mail.put(mail.clone()),
            Change::DropMail(agent, seq) => self.mail.remove(agent, *seq),
            Change::CarryMail(agent, seq, carried) => self.mail.carry(agent, *seq, *carried),
            Change::PutApproval(parked) => self.approvals.put(parked.clone()),
            Change::DropApproval(id) => self.approvals.remove(*id),
            Change::Grant(change) => self.grants.apply(change),
            Change::Apply(change) => self.written.apply(change),
            Change::PutUses(uses) => self.quota.put(uses),
            Change::PutLock(lock) => self.locks.put(lock.clone()),
            Change::DropLock(at) => self.locks.remove(at),
            Change::PutWaiter(waiter) => self.locks.put_waiter(waiter.clone()),
            Change::DropWaiter(ticket) => self.locks.remove_waiter(*ticket),
            Change::RefuseCircle(it) => self.circles.put(it.clone()),
            Change::PutIntent(intent) => self.intents.put(intent.clone()),
            Change::DropIntent(id) => self.intents.remove(id),
            Change::PutContract(contract) => self.contracts.put(contract.clone()),
            Change::DropContract(id) => self.contracts.remove(id),
            Change::Post(change) => change.apply(&mut self.broker),
            Change::Crew(change) => self.apply_to_crew(change),
            Change::PutToken(token) => self.tokens.put(token.clone()),
            Change::DropToken(digest) => self.tokens.remove(digest),
            Change::Passkey(change) => self.passkeys.apply(change),
            Change::Push(change) => self.push.apply(change),
            Change::Job(change) => self.jobs.apply(change),
            Change::PutMerge(entry) => self.merges.put(entry.clone()),
            Change::DropMerge(number) => self.merges.remove(*number),
            Change::Spend(change) => self.spending.apply(change),
            Change::Switch(worker, to) => self.switches.put(worker, to.as_ref()),
            Change::PutUser(user) => self.users.put(user.clone()),
            Change::DropUser(host) => self.users.remove(*host),
            Change::OweHook(id, notice) => self.hooks.put(*id, notice.clone()),
            Change::OweNotice(id, notice) => self.outgoing.put(*id, notice.clone()),
            Change::OweDeed(id, deed, of) => self.owing.put(*id, deed.clone(), of.clone()),
            Change::DropEffect(id) => {
                self.hooks.remove(*id);
                self.outgoing.remove(*id);
                self.owing.remove(*id);
            }
            Change::PutAbility(it) => self.abilities.put(it.clone()),
            Change::DropAbility(host) => self.abilities.remove(*host),
            // Everything else that ends with the host has changes of its own.
            Change::HostDown(daemon, _) => self.abilities.end(*daemon),
            Change::StartEffect(_) => {}
            Change::Count(counters) => self.counters = *counters,
        }
    }

    /// Returns when [`Core::tick`] next has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.works_only {
            return None; // Full hosts end everything that runs out.
        }
        let posts = &self.broker;
        let nothing_ages = self.mail.is_empty()
            && self.quota.is_empty()
            && posts.is_empty()
            && self.tokens.is_empty()
            && self.jobs.is_empty();
        let sweep = (!nothing_ages).then(|| self.swept_at.after(SWEEP_EVERY));
        let first = self.tasks.next_deadline().into_iter().chain(self.approvals.next_deadline());
        let standoff = self.broker.next_deadline(self.settings.posts.window);
        let first = first.chain(self.passkeys_count_at());
        first.chain(sweep).chain(self.next_lapse()).chain(standoff).chain(self.next_silence()).min()
    }

    /// Returns when a lock or an intent next lapses, or an agent has waited long enough for one.
    fn next_lapse(&self) -> Option<Timestamp> {
        self.locks.next_deadline().into_iter().chain(self.intents.next_deadline()).min()
    }
}

/// A command on its way in, with its caller, facts and time.
#[derive(Clone, PartialEq, Debug)]
pub struct Call<'a> {
    /// The time of the command, by the engine's clock, which measures everything.
    pub now: Timestamp,
    /// The time of the system's clock, for rules that name hours of the day.
    pub wall: Timestamp,
    /// The principal that submits the command.
    pub who: &'a Principal,
    /// The facts that the service found before the submit.
    pub facts: Facts,
    /// The finished task whose id the command names; `None` if there is no such task; see [`Command::names_task`].
    pub past: Option<Arc<Task>>,
    /// The finished tasks among those that a delegation waits for; see [`Command::waits_for`].
    pub earlier: Vec<Arc<Task>>,
}

/// The rules over the state.
pub struct Core {
    state: State,
    judge: Box<dyn Judge>,
}

impl Core {
    /// Returns a core that continues from `state`.
    pub fn new(state: State, judge: Box<dyn Judge>) -> Self {
        Self { state, judge }
    }

    /// Returns the state, for reading.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Continues from another state, after the store has been read again. The switches stay: memory is newer there.
    pub fn restore(&mut self, state: State) {
        let switches = std::mem::take(&mut self.state.switches);
        self.state = State { switches, here: self.state.here, ..state };
    }

    /// Puts other rules in force from the next command on.
    pub fn set_judge(&mut self, judge: Box<dyn Judge>) {
        self.judge = judge;
    }

    /// Takes over another configuration from the next command on. The code owners come from the repository and stay.
    pub fn set_settings(&mut self, mut settings: Settings) {
        settings.posts.code_owners = std::mem::take(&mut self.state.settings.posts.code_owners);
        self.state.settings = settings;
    }

    /// Takes over the repository's statement of who owns which files.
    pub fn set_code_owners(&mut self, owners: Vec<post::Owner>) {
        self.state.settings.posts.code_owners = owners;
    }

    /// Checks scope, then policy, then the rule of a command. Every command passes here.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed and `out` is as it was.
    pub fn apply(
        &mut self,
        call: Call<'_>,
        command: Command,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal> {
        self.state.awake_since.get_or_insert(call.now);
        let durability = command.durability();
        let command = self.state.under_own_name(call.who, command)?;
        let (here, before) = (self.state.here, out.changes.len());
        out.begin(self.state.counters, (call.now, call.who.agent().clone()), here);
        let (agent, door) = (call.who.agent().clone(), call.who.door());
        let (now, gives_back, is_free) = (call.now, command.gives_back(), call.who.has_free_name());
        let decided = decide::decide(&self.state, &*self.judge, call, &command, out);
        match decided.and_then(|it| self.state.must_be_work_here(out).map(|()| it)) {
            Ok(answer) => {
                self.state.owe_notices(now, out);
                // A caller that gives back something that it does not have was not here for that.
                let is_here = !gives_back || out.wrote();
                self.state.note_home(now, &agent, is_free, out);
                if is_here && !self.state.agents.doors_of(&agent).contains(&door) {
                    out.put(Change::CameBy(agent, door));
                }
                let durability = if out.wrote() { durability.max(Durability::Commit) } else { durability };
                out.finish(durability).iter().for_each(|change| self.state.apply(change));
                self.follow_ends(now, before, out);
                Ok(answer)
            }
            Err(refusal) => {
                out.undo();
                Err(refusal)
            }
        }
    }

    /// Notes that an agent was refused a wait for a lock, since a circle would begin; other refusals are not noted.
    /// This is a step of its own because a refused command itself leaves no record.
    pub fn note_circle(
        &mut self,
        now: Timestamp,
        who: &AgentId,
        wanted: &SymbolPath,
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        let Refusal::WouldDeadlock { circle, .. } = refusal else { return };
        out.begin(self.state.counters, (now, who.clone()), self.state.here);
        self.state.note_circle(now, wanted, circle, out);
        let durability = if out.wrote() { Durability::Commit } else { Durability::Unstored };
        out.finish(durability).iter().for_each(|change| self.state.apply(change));
    }

    /// Ends everything whose time is over. The engine calls this when [`State::next_deadline`] has come.
    pub fn tick(&mut self, now: Timestamp, out: &mut Outbox) {
        self.state.awake_since.get_or_insert(now);
        self.lapse(now, out);
        // A parked command that is due may be gone by its turn: the end of one task ends those that wait for it.
        for parked in self.state.approvals.due(now) {
            if self.state.approvals.get(parked.id).is_none() {
                continue;
            }
            self.by_itself(now, out, |state, out| state.time_over(now, &parked, out));
        }
        for task in self.state.tasks.due(now) {
            let Some(task) = self.state.tasks.get(task.id()).cloned() else { continue };
            self.by_itself(now, out, |state, out| state.overdue(now, &task, out));
        }
        if self.state.passkeys_count_at().is_some_and(|at| at <= now) {
            self.by_itself(now, out, |state, out| state.end_passkey_wait(out));
        }
        if self.state.broker.next_deadline(self.state.settings.posts.window).is_some_and(|at| at <= now) {
            self.by_itself(now, out, |state, out| state.decide_standoffs(now, out));
        }
        for member in self.state.fallen_silent(now) {
            self.by_itself(now, out, |state, out| state.fall_silent(&member, out));
        }
        if self.state.swept_at.after(SWEEP_EVERY) <= now {
            self.by_itself(now, out, |state, out| {
                state.mail.expire(now, state.settings.mail_keep, out);
                state.quota.expire(now, out);
                state.agents.expire_strangers(now, |it| state.holds_something(it), out);
                state.sweep_posts(now, out);
                state.tokens.expire(now, out);
                state.jobs.expire(now, out);
            });
            self.state.swept_at = now;
        }
    }

    /// Ends locks and intents whose time is up. The engine calls this before it applies commands, so that no lease lasts
    /// longer than its time for lack of a command; [`Core::tick`] comes after them, since they may be signs of life.
    pub fn lapse(&mut self, now: Timestamp, out: &mut Outbox) {
        if !self.state.works_only && self.state.next_lapse().is_some_and(|at| at <= now) {
            self.by_itself(now, out, |state, out| {
                state.lapse_locks(now, out);
                state.lapse_intents(now, out);
            });
        }
    }

    /// Runs one step of the daemon itself. Each step sees the effects of the one before, filled queues included.
    fn by_itself(&mut self, now: Timestamp, out: &mut Outbox, step: impl FnOnce(&State, &mut Outbox)) {
        let before = out.changes.len();
        self.step(now, out, step);
        self.follow_ends(now, before, out);
    }

    fn step(&mut self, now: Timestamp, out: &mut Outbox, step: impl FnOnce(&State, &mut Outbox)) {
        out.begin(self.state.counters, (now, provost()), self.state.here);
        step(&self.state, out);
        self.state.keep_to_work(out);
        self.state.owe_notices(now, out);
        out.finish(Durability::Commit).iter().for_each(|change| self.state.apply(change));
    }
}
