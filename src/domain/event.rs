//! The results of a command: events to announce, rows to store, effects to carry out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::post::{Post, PostChange};
use super::{
    Agent, ApplyChange, ApplyEvent, Contract, ContractStatus, Counters, CrewChange, CrewEvent, Door, Failure,
    Finding, GrantChange, Intent, IntentStatus, JobChange, JobEvent, Lock, Mail, Notice, Parked,
    PermissionEvent, Principal, Scopes, StakeKind, Status, Switch, Switched, Task, Token, Usage, Uses,
    Verdict, Waiter,
};
use crate::base::{
    AgentId, ApprovalId, ContractId, Digest, EffectId, EventSeq, Fence, IntentId, Json, MailSeq, PostSeq,
    RepoPath, RuleId, Slug, SymbolPath, TaskId, Ticket, Timestamp,
};

/// One entry of the log: who did what, when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Its place; dense.
    pub seq: EventSeq,
    /// When.
    pub at: Timestamp,
    /// Who; `provost` for what the daemon did by itself.
    pub actor: AgentId,
    /// What.
    pub kind: EventKind,
}

/// What happened. Names and numbers only: goals and outputs appear as digests and lengths; messages between agents
/// alone are kept here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// An agent registered.
    AgentRegistered {
        /// Version announced.
        version: Option<Box<str>>,
        /// Capabilities announced.
        caps: Vec<Box<str>>,
        /// Process id as announced.
        pid: Option<u64>,
    },
    /// An agent that was not known any more gave a sign of life.
    AgentRevived,
    /// Policy said yes, or was not asked.
    TaskDelegated {
        /// Which.
        task: TaskId,
        /// To whom.
        worker: AgentId,
        /// What policy was asked about.
        tool: Box<str>,
        /// The rule that allowed it.
        rule: RuleId,
        /// Digest of the rules in force.
        policy: Digest,
        /// Digest of the request.
        request: Digest,
        /// Directory it works in.
        working_dir: Option<Box<str>>,
        /// The approval it went through, if it did.
        approval: Option<ApprovalId>,
    },
    /// Policy said no.
    Denied {
        /// The verb.
        verb: Box<str>,
        /// The task it would have made.
        task: Option<TaskId>,
        /// What policy was asked about.
        tool: Option<Box<str>>,
        /// The rule that denied.
        rule: RuleId,
        /// Its reason.
        reason: Box<str>,
        /// Digest of the rules in force.
        policy: Digest,
    },
    /// A polling worker was handed its task.
    TaskAssigned {
        /// Which.
        task: TaskId,
        /// To whom.
        worker: AgentId,
    },
    /// A confined worker process began.
    TaskStarted {
        /// Which.
        task: TaskId,
    },
    /// A task runs in a directory where others run.
    TaskBeside {
        /// Which.
        task: TaskId,
        /// The others.
        others: Vec<TaskId>,
    },
    /// A run has left something that runs later, or could not be compared.
    TaskTainted {
        /// Whose.
        task: TaskId,
        /// What; bounded.
        findings: Vec<Finding>,
        /// Findings that are not listed.
        more: u32,
        /// Why the comparison is incomplete.
        unknown: Option<Box<str>>,
    },
    /// Files that a delegation wanted watched have changed.
    FilesChanged {
        /// Of this task.
        task: TaskId,
        /// How many, since it began.
        count: u32,
    },
    /// A picture of the screen was taken.
    ScreenCaptured {
        /// For which task.
        task: TaskId,
        /// Digest of the picture.
        picture: Digest,
        /// Its size.
        bytes: u64,
    },
    /// A task's state was reported.
    TaskMoved {
        /// Which.
        task: TaskId,
        /// To what.
        to: Status,
        /// The word that was used.
        said: Box<str>,
        /// Digest of the report.
        report: Digest,
    },
    /// A task ended.
    TaskFinished {
        /// Which.
        task: TaskId,
        /// How.
        status: Status,
        /// Why it failed, when it did.
        failure: Option<Failure>,
        /// Digest of the report.
        report: Digest,
        /// What its worker says that it has used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
    },
    /// Someone saw a task's notification.
    TaskAcked {
        /// Which.
        task: TaskId,
    },
    /// A notification hook will not run: too many are owed.
    HookDropped {
        /// What it was to tell of.
        task: TaskId,
        /// The effect that is not owed any more.
        effect: EffectId,
    },
    /// A message was queued.
    MailQueued {
        /// Its number.
        mail: MailSeq,
        /// For whom.
        to: AgentId,
        /// What kind.
        what: Box<str>,
        /// About which task.
        task: Option<TaskId>,
    },
    /// A message arrived.
    MailDelivered {
        /// Its number.
        mail: MailSeq,
        /// To whom.
        to: AgentId,
    },
    /// Messages were given up: too old, too many, or superseded.
    MailDropped {
        /// Whose.
        to: AgentId,
        /// How many.
        count: u32,
        /// Why.
        why: Box<str>,
    },
    /// A command waits for someone's word.
    ApprovalAsked {
        /// Which.
        approval: ApprovalId,
        /// The verb.
        verb: Box<str>,
        /// The task it would make.
        task: Option<TaskId>,
        /// The rule that asks.
        rule: RuleId,
        /// Digest of the rules in force.
        policy: Digest,
        /// Digest of what is shown to the approver.
        shown: Digest,
        /// Until when.
        expires_at: Timestamp,
    },
    /// Someone answered.
    ApprovalAnswered {
        /// Which.
        approval: ApprovalId,
        /// How.
        verdict: Verdict,
        /// By what proof (`weak-human`, `desktop`, `host-dialog`, `key`).
        proof: Box<str>,
    },
    /// Nobody answered in time.
    ApprovalExpired {
        /// Which.
        approval: ApprovalId,
    },
    /// A granted command could not be carried out any more.
    GrantFailed {
        /// Which.
        approval: ApprovalId,
        /// Why.
        why: Box<str>,
    },
    /// An agent goes by a name.
    AgentNamed {
        /// Its number.
        number: u64,
    },
    /// A lock was granted or refreshed.
    LockAcquired {
        /// On what.
        symbol: SymbolPath,
        /// The grant.
        fence: Fence,
        /// Until when.
        until: Timestamp,
        /// Whether it had it before.
        refreshed: bool,
    },
    /// A lock is free again.
    LockFreed {
        /// On what.
        symbol: SymbolPath,
        /// Whose it was.
        holder: AgentId,
        /// The grant that is over.
        fence: Fence,
        /// Why.
        why: Box<str>,
    },
    /// An agent waits for a lock.
    LockAwaited {
        /// On what.
        symbol: SymbolPath,
        /// Who has it, or waits for it already.
        by: AgentId,
    },
    /// An agent waits for a lock no longer, and does not have it.
    LockWaitEnded {
        /// On what.
        symbol: SymbolPath,
        /// Who.
        agent: AgentId,
    },
    /// An intent was declared.
    IntentDeclared {
        /// Which.
        intent: IntentId,
        /// In which files; the first few.
        files: Vec<RepoPath>,
        /// How many conflicts its owner was told of.
        conflicts: u32,
    },
    /// An intent goes on, or has ended.
    IntentMoved {
        /// Which.
        intent: IntentId,
        /// Whose.
        owner: AgentId,
        /// To what.
        to: IntentStatus,
    },
    /// A contract was offered.
    ContractProposed {
        /// Which.
        contract: ContractId,
        /// On what.
        symbol: SymbolPath,
        /// Digest of the signature.
        signature: Digest,
    },
    /// A contract was answered, replaced or taken back.
    ContractMoved {
        /// Which.
        contract: ContractId,
        /// On what.
        symbol: SymbolPath,
        /// To what.
        to: ContractStatus,
    },
    /// What two agents have through different doors is in the same place; the actor came later.
    StakesMet {
        /// Where.
        file: RepoPath,
        /// How the actor has it.
        kind: StakeKind,
        /// Whose is the other.
        by: AgentId,
        /// How they have it.
        with: StakeKind,
        /// The place, or what for, in their words.
        asked: Box<str>,
    },
    /// A message between agents. This is where it is kept: all of it.
    Published {
        /// Its number.
        n: PostSeq,
        /// The message.
        post: Post,
    },
    /// A message that was kept for an agent is in its inbox.
    PostDelivered {
        /// Its number there.
        n: PostSeq,
        /// The number with which it was published.
        of: PostSeq,
        /// In whose.
        to: Slug,
    },
    /// The audit log of messages starts again.
    PostLogBegun {
        /// The last number that is not in it.
        after: PostSeq,
    },
    /// Something that happened in the crew.
    Crew(CrewEvent),
    /// A token is good from now on.
    TokenMinted {
        /// Who speaks with it.
        agent: AgentId,
        /// Its id.
        token: Box<str>,
        /// What it is good for.
        scopes: Scopes,
        /// Until when.
        expires_at: Timestamp,
    },
    /// A token is good no more.
    TokenEnded {
        /// Whose it was.
        agent: AgentId,
        /// Its id.
        token: Box<str>,
        /// Why.
        why: Box<str>,
    },
    /// Something that happened to what an editor has asked for.
    Job(JobEvent),
    /// Files were written for an agent.
    Apply(ApplyEvent),
    /// Something happened with tools of hosts.
    Permission(PermissionEvent),
    /// A worker was switched off, held back, or switched on.
    WorkerSwitched {
        /// Which.
        worker: AgentId,
        /// How it stands now.
        to: Switch,
        /// The command that did it.
        command: Box<str>,
    },
    /// Something that happened outside the core.
    Recorded {
        /// What kind of thing.
        what: Box<str>,
        /// About what.
        subject: Box<str>,
        /// Details.
        details: Json,
    },
}

impl EventKind {
    /// Whether there is text in it that is as long as its writer likes.
    pub fn may_be_large(&self) -> bool {
        matches!(self, EventKind::Published { .. } | EventKind::Crew(_) | EventKind::Recorded { .. })
    }

    /// The kind's name as stored and filtered by.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::AgentRegistered { .. } => "agent_registered",
            EventKind::AgentRevived => "agent_revived",
            EventKind::TaskDelegated { .. } => "task_delegated",
            EventKind::Denied { .. } => "denied",
            EventKind::TaskAssigned { .. } => "task_assigned",
            EventKind::TaskStarted { .. } => "task_started",
            EventKind::TaskBeside { .. } => "task_beside",
            EventKind::TaskTainted { .. } => "task_tainted",
            EventKind::FilesChanged { .. } => "files_changed",
            EventKind::ScreenCaptured { .. } => "screen_captured",
            EventKind::TaskMoved { .. } => "task_moved",
            EventKind::TaskFinished { .. } => "task_finished",
            EventKind::TaskAcked { .. } => "task_acked",
            EventKind::HookDropped { .. } => "hook_dropped",
            EventKind::MailQueued { .. } => "mail_queued",
            EventKind::MailDelivered { .. } => "mail_delivered",
            EventKind::MailDropped { .. } => "mail_dropped",
            EventKind::ApprovalAsked { .. } => "approval_asked",
            EventKind::ApprovalAnswered { .. } => "approval_answered",
            EventKind::ApprovalExpired { .. } => "approval_expired",
            EventKind::GrantFailed { .. } => "grant_failed",
            EventKind::AgentNamed { .. } => "agent_named",
            EventKind::LockAcquired { .. } => "lock_acquired",
            EventKind::LockFreed { .. } => "lock_freed",
            EventKind::LockAwaited { .. } => "lock_awaited",
            EventKind::LockWaitEnded { .. } => "lock_wait_ended",
            EventKind::IntentDeclared { .. } => "intent_declared",
            EventKind::IntentMoved { .. } => "intent_moved",
            EventKind::ContractProposed { .. } => "contract_proposed",
            EventKind::ContractMoved { .. } => "contract_moved",
            EventKind::StakesMet { .. } => "stakes_met",
            EventKind::Published { .. } => "published",
            EventKind::PostDelivered { .. } => "post_delivered",
            EventKind::PostLogBegun { .. } => "post_log_begun",
            EventKind::Crew(event) => event.name(),
            EventKind::Job(event) => event.name(),
            EventKind::Apply(event) => event.name(),
            EventKind::Permission(event) => event.name(),
            EventKind::TokenMinted { .. } => "token_minted",
            EventKind::TokenEnded { .. } => "token_ended",
            EventKind::WorkerSwitched { .. } => "worker_switched",
            EventKind::Recorded { .. } => "recorded",
        }
    }

    /// The task this is about, for those who follow one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            EventKind::TaskDelegated { task, .. }
            | EventKind::TaskAssigned { task, .. }
            | EventKind::TaskStarted { task }
            | EventKind::TaskBeside { task, .. }
            | EventKind::TaskTainted { task, .. }
            | EventKind::FilesChanged { task, .. }
            | EventKind::ScreenCaptured { task, .. }
            | EventKind::TaskMoved { task, .. }
            | EventKind::TaskFinished { task, .. }
            | EventKind::TaskAcked { task }
            | EventKind::HookDropped { task, .. } => Some(task),
            EventKind::Denied { task, .. }
            | EventKind::MailQueued { task, .. }
            | EventKind::ApprovalAsked { task, .. } => task.as_ref(),
            _ => None,
        }
    }
}

/// A row to write. Memory and store apply the same changes in the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A task that is not finished: kept in memory and in the store.
    PutTask(Arc<Task>),
    /// A task that has just finished: leaves memory, stays in the store as history.
    FinishTask(Arc<Task>),
    /// More is known of a finished task; its place in history stays.
    AmendTask(Arc<Task>),
    /// A known agent.
    PutAgent(Arc<Agent>),
    /// A sign of life. Memory only.
    Beat(AgentId, Timestamp),
    /// An agent has come by a door. Memory only.
    CameBy(AgentId, Door),
    /// An agent nobody needs to remember.
    DropAgent(AgentId),
    /// A queued message.
    PutMail(Arc<Mail>),
    /// A message that arrived or was given up.
    DropMail(AgentId, MailSeq),
    /// A message is on its way (or, with `false`, came back). Memory only.
    CarryMail(AgentId, MailSeq, bool),
    /// A command that waits for someone's word.
    PutApproval(Arc<Parked>),
    /// An approval that is settled.
    DropApproval(ApprovalId),
    /// What came of a question, for an asker who has not come back yet, or has. Memory only.
    Grant(GrantChange),
    /// What memory alone knows of applies.
    Apply(ApplyChange),
    /// Uses of a rate-limited rule.
    PutUses(Uses),
    /// A lock on a symbol, held or lapsed.
    PutLock(Arc<Lock>),
    /// A lock that is free.
    DropLock(SymbolPath),
    /// An agent waits for a lock. Memory only.
    PutWaiter(Arc<Waiter>),
    /// An agent waits for a lock no longer. Memory only.
    DropWaiter(Ticket),
    /// An announced change.
    PutIntent(Arc<Intent>),
    /// An announced change that is forgotten.
    DropIntent(IntentId),
    /// A contract.
    PutContract(Arc<Contract>),
    /// A contract that is forgotten.
    DropContract(ContractId),
    /// What a message between agents leaves behind.
    Post(PostChange),
    /// A row of what a crew works by.
    Crew(CrewChange),
    /// A token.
    PutToken(Arc<Token>),
    /// A token that is good no more.
    DropToken(Digest),
    /// A row of a job.
    Job(JobChange),
    /// A worker that begins nothing, or (with `None`) does. Memory only.
    Switch(AgentId, Option<Switched>),
    /// A notification hook is owed, by its effect of that number. Memory only; the effect itself is stored.
    OweHook(EffectId, Arc<Notice>),
    /// An effect is being carried out; after a crash it is not tried again.
    StartEffect(EffectId),
    /// An effect needs nothing more.
    DropEffect(EffectId),
    /// The last number handed out, of each kind, and what was counted.
    Count(Counters),
}

/// Something owed to the outside world: stored with the change that caused it, carried out after the commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Start a worker of the configuration in the jail. At most once.
    SpawnWorker {
        /// For this task.
        task: TaskId,
    },
    /// End a worker that runs. At least once.
    StopWorker {
        /// Of this task.
        task: TaskId,
        /// Why, for its result.
        reason: Box<str>,
    },
    /// Run the notification hook. At least once, each time with the same number of the effect.
    RunHook {
        /// What it is told.
        notice: Arc<Notice>,
    },
    /// Release the hooks of a task that were owed before. At least once.
    SignalAck {
        /// Which task.
        task: TaskId,
    },
    /// Watch files while a collecting worker has a task. Goes on after a crash.
    WatchFiles {
        /// For this task.
        task: TaskId,
    },
    /// Take a picture of the screen. At most once, and not after a restart: nobody expects it then.
    Capture {
        /// For this task.
        task: TaskId,
        /// Who asked, so that the rules can be asked once more.
        asker: Principal,
    },
}

/// An owed effect as the store remembers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owed {
    /// Its number.
    pub id: EffectId,
    /// What is owed.
    pub effect: Effect,
    /// Whether a daemon had begun to carry it out.
    pub started: bool,
}

impl Owed {
    /// What memory knows of it, for a start.
    pub fn in_memory(&self) -> Option<Change> {
        match &self.effect {
            Effect::RunHook { notice } => Some(Change::OweHook(self.id, notice.clone())),
            _ => None,
        }
    }
}
