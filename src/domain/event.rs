//! The results of a command that are announced: events, as the log keeps them.

use serde::{Deserialize, Serialize};

use super::command::SayWord;
use super::post::Post;
use super::{
    ApplyEvent, Approver, ContractStatus, CrewEvent, Failure, Finding, IntentStatus, JobEvent, JudgedRequest,
    MergeEvent, Passkey, PermissionEvent, Proof, QueueEvent, ReservationKind, Scopes, SignedWord, Status,
    Switch, TalkEvent, Usage, Verdict,
};
use provost_base::{
    AgentId, ApprovalId, ContractId, Digest, EffectId, EventSeq, Fence, HostId, IntentId, Json, MailSeq,
    PostSeq, RepoPath, RuleId, Slug, SymbolPath, TaskId, Timestamp,
};

/// One entry of the log: the agent, the time and the change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the log. Numbers are dense.
    pub seq: EventSeq,
    /// When the engine decided it.
    pub at: Timestamp,
    /// The agent that caused it; `provost` for what the daemon did by itself.
    pub actor: AgentId,
    /// The change that happened, with its particulars.
    pub kind: EventKind,
    /// The host whose daemon has decided it; that of a daemon which writes alone where there are no others.
    #[serde(default, skip_serializing_if = "HostId::is_alone")]
    pub host: HostId,
}

/// What happened. Names and numbers only: goals and outputs appear as digests and lengths; messages between agents
/// alone are kept here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// An agent has registered. DevIt REGISTER.
    AgentRegistered {
        /// The version that the agent announced, if it did.
        version: Option<Box<str>>,
        /// Capabilities that the agent announced; not trusted.
        caps: Vec<Box<str>>,
        /// Process id as announced.
        pid: Option<u64>,
    },
    /// An agent that was not known any more gave a sign of life.
    AgentRevived,
    /// A delegation was accepted: policy allowed it, or was not asked.
    TaskDelegated {
        /// The id of the new task.
        task: TaskId,
        /// The worker that is to do it.
        worker: AgentId,
        /// The tool that policy was asked about.
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
        /// What the rules were asked, where they alone have decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<Box<JudgedRequest>>,
    },
    /// Policy denied a command.
    Denied {
        /// Name of the verb, as in the table of verbs.
        verb: Box<str>,
        /// The task that it would have made.
        task: Option<TaskId>,
        /// The tool that policy was asked about; `None` for verbs without one.
        tool: Option<Box<str>>,
        /// The rule that denied.
        rule: RuleId,
        /// The rule's reason, for callers.
        reason: Box<str>,
        /// Digest of the rules in force.
        policy: Digest,
        /// What the rules were asked, where they alone have decided it, and no count of what went before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<Box<JudgedRequest>>,
    },
    /// A polling worker was handed its task.
    TaskAssigned {
        /// The task that was handed over.
        task: TaskId,
        /// The worker that has it now.
        worker: AgentId,
    },
    /// A confined worker process began.
    TaskStarted {
        /// The task that the process works on.
        task: TaskId,
    },
    /// A task runs in a directory where others run.
    TaskBeside {
        /// A task that runs in that directory.
        task: TaskId,
        /// The tasks that run there beside it.
        others: Vec<TaskId>,
    },
    /// A run has left something that runs later, or could not be compared.
    TaskTainted {
        /// The task whose run it was.
        task: TaskId,
        /// Files that run later; the first few.
        findings: Vec<Finding>,
        /// Findings that are not listed.
        more: u32,
        /// Why the comparison is incomplete.
        unknown: Option<Box<str>>,
    },
    /// Files that a delegation wanted watched have changed.
    FilesChanged {
        /// The task of that delegation.
        task: TaskId,
        /// How many have changed since the task began.
        count: u32,
    },
    /// A picture of the screen was taken.
    ScreenCaptured {
        /// The task that the picture is the result of.
        task: TaskId,
        /// Digest of the picture's file.
        picture: Digest,
        /// The size of that file, in bytes.
        bytes: u64,
    },
    /// A task's state was reported.
    TaskMoved {
        /// The task that was reported on.
        task: TaskId,
        /// The status that the core derives from the word.
        to: Status,
        /// The status word, as the worker wrote it.
        said: Box<str>,
        /// Digest of the report.
        report: Digest,
    },
    /// A task has come to its end.
    TaskFinished {
        /// The task that has ended.
        task: TaskId,
        /// Whether it was completed, failed or cancelled.
        status: Status,
        /// Why it failed, when it did.
        failure: Option<Failure>,
        /// Digest of the report.
        report: Digest,
        /// Tokens and cost, as the worker reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
    },
    /// An agent has seen a task's notification.
    TaskAcked {
        /// The task of that notification.
        task: TaskId,
    },
    /// The changes that a task's run has made in its private copy are forgotten for good.
    ChangesDiscarded {
        /// The task of that run.
        task: TaskId,
        /// How many files were kept of it.
        files: u32,
    },
    /// The commit with the changes that a task's run has made is in a branch of the user's.
    ChangesMerged {
        /// The task of that run.
        task: TaskId,
        /// The branch into which it was merged.
        into: Box<str>,
    },
    /// A notification hook will not run: too many are owed.
    HookDropped {
        /// The task that it was to report.
        task: TaskId,
        /// The effect that is not owed any more.
        effect: EffectId,
    },
    /// A message was queued.
    MailQueued {
        /// The message's number, over all queues.
        mail: MailSeq,
        /// The agent in whose queue it is.
        to: AgentId,
        /// The kind of message, in one word.
        what: Box<str>,
        /// The task that it is about, if any.
        task: Option<TaskId>,
    },
    /// A message has reached its recipient.
    MailDelivered {
        /// The message's number, over all queues.
        mail: MailSeq,
        /// The agent that has collected it.
        to: AgentId,
    },
    /// Messages were given up: too old, too many, or superseded.
    MailDropped {
        /// The agent in whose queue they were.
        to: AgentId,
        /// How many messages were given up.
        count: u32,
        /// The reason, in words for people.
        why: Box<str>,
    },
    /// A command waits for approval.
    ApprovalAsked {
        /// The number of the approval.
        approval: ApprovalId,
        /// Name of the verb, as in the table of verbs.
        verb: Box<str>,
        /// The task that it would make.
        task: Option<TaskId>,
        /// The rule that asks.
        rule: RuleId,
        /// Digest of the rules in force.
        policy: Digest,
        /// Digest of what is shown to the approver.
        shown: Digest,
        /// The end of the time in which an answer counts.
        expires_at: Timestamp,
        /// What the rules were asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<Box<JudgedRequest>>,
        /// The approvers that the rule admits, by which an answer of another host is checked that came while the asked one did not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by: Vec<Approver>,
    },
    /// An approver has answered.
    ApprovalAnswered {
        /// The approval that was answered.
        approval: ApprovalId,
        /// Whether the command was granted or denied.
        verdict: Verdict,
        /// By what proof (`passkey`, `weak-human`, `desktop`, `host-dialog`, `key`).
        proof: Box<str>,
        /// What the passkey has signed, where the proof is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedWord>>,
    },
    /// No approver has answered in time.
    ApprovalExpired {
        /// The approval that has expired.
        approval: ApprovalId,
    },
    /// No approver has answered in time, and the question is asked again.
    ApprovalAskedAgain {
        /// The approval that goes on waiting.
        approval: ApprovalId,
        /// The task that it would make.
        task: Option<TaskId>,
        /// Digest of what is shown to the approver; the same as before.
        shown: Digest,
        /// How often it was asked again so far.
        asked: u32,
        /// How often it is going to be asked again.
        left: u32,
        /// The end of the time in which an answer counts.
        expires_at: Timestamp,
    },
    /// A granted command could not be carried out any more.
    GrantFailed {
        /// The approval that was granted.
        approval: ApprovalId,
        /// The refusal of the command, in words.
        why: Box<str>,
    },
    /// An agent has got a name for people.
    AgentNamed {
        /// The agent's number, counted from 1.
        number: u64,
    },
    /// A lock was granted or refreshed.
    LockAcquired {
        /// The symbol that the lock is on.
        symbol: SymbolPath,
        /// The number of the grant; a refresh keeps it.
        fence: Fence,
        /// The end of the lease.
        until: Timestamp,
        /// Whether the agent had the lock before.
        refreshed: bool,
        /// What its agent says that it is for, so that it is found by these words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Box<str>>,
    },
    /// A lock is free again.
    LockFreed {
        /// The symbol that is free.
        symbol: SymbolPath,
        /// The agent that had the lock.
        holder: AgentId,
        /// The grant that is over.
        fence: Fence,
        /// The reason, in words for people.
        why: Box<str>,
    },
    /// An agent waits for a lock.
    LockAwaited {
        /// The symbol that it waits for.
        symbol: SymbolPath,
        /// The agent that has the lock, or waits for it already.
        by: AgentId,
    },
    /// An agent waits for a lock no longer, and does not have it.
    LockWaitEnded {
        /// The symbol that it waited for.
        symbol: SymbolPath,
        /// The agent that waited.
        agent: AgentId,
    },
    /// An agent was not let wait for a lock, since a circle of agents would wait for each other.
    LockWaitRefused {
        /// The symbol that it wanted to wait for.
        symbol: SymbolPath,
        /// The agents in the circle, the one that was refused first; the first few of many.
        circle: Vec<AgentId>,
    },
    /// An intent was declared.
    IntentDeclared {
        /// The id of the new intent.
        intent: IntentId,
        /// The files that will change; the first few.
        files: Vec<RepoPath>,
        /// How many conflicts its owner was told about.
        conflicts: u32,
    },
    /// An intent goes on, or has ended.
    IntentMoved {
        /// The intent that was moved.
        intent: IntentId,
        /// The agent that declared it.
        owner: AgentId,
        /// The status that it has now.
        to: IntentStatus,
    },
    /// A contract was offered.
    ContractProposed {
        /// The id of the new contract.
        contract: ContractId,
        /// The symbol that it is about.
        symbol: SymbolPath,
        /// Digest of the signature.
        signature: Digest,
    },
    /// A contract was answered, replaced or taken back.
    ContractMoved {
        /// The contract that was moved.
        contract: ContractId,
        /// The symbol that it is about.
        symbol: SymbolPath,
        /// The status that it has now.
        to: ContractStatus,
    },
    /// What two agents have through different doors is in the same place; the actor came later.
    StakesMet {
        /// The file in which they meet.
        file: RepoPath,
        /// The form in which the actor has the place.
        kind: ReservationKind,
        /// The agent that has the place already.
        by: AgentId,
        /// The form in which the other agent has the place.
        with: ReservationKind,
        /// The place or the purpose, as the other agent wrote it.
        asked: Box<str>,
    },
    /// A message between agents. The journal is the only place that keeps its text.
    Published {
        /// The message's number, over all inboxes.
        n: PostSeq,
        /// The message, with its whole text.
        post: Post,
        /// By what its sender has proven the name in it; `None` where it only says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Proof>,
        /// The question of a task's agent that it answers, where the agent's program waits for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<PostSeq>,
    },
    /// A message that was kept for an agent is in its inbox.
    PostDelivered {
        /// The message's number in that inbox.
        n: PostSeq,
        /// The number with which it was published.
        of: PostSeq,
        /// The inbox that it is in now.
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
        /// The agent as which its bearer speaks.
        agent: AgentId,
        /// The token's public id.
        token: Box<str>,
        /// The rights of its bearer.
        scopes: Scopes,
        /// The moment from which it is good no more.
        expires_at: Timestamp,
    },
    /// A token is good no more.
    TokenEnded {
        /// The agent as which its bearer spoke.
        agent: AgentId,
        /// The token's public id.
        token: Box<str>,
        /// How it has ended, in a word.
        why: Box<str>,
    },
    /// Something that happened to what an editor has asked for.
    Job(JobEvent),
    /// Files were written for an agent.
    Apply(ApplyEvent),
    /// Something happened with branches that are to be merged.
    Merge(MergeEvent),
    /// Something happened with tools of hosts.
    Permission(PermissionEvent),
    /// A step of what is said to the agent of a task.
    Talk(TalkEvent),
    /// A step of a task that waits its turn.
    Queue(QueueEvent),
    /// A worker was switched off, held back, or switched on.
    WorkerSwitched {
        /// The worker that was switched.
        worker: AgentId,
        /// The state of its switch now.
        to: Switch,
        /// The command that did it.
        command: Box<str>,
    },
    /// A passkey counts from now on.
    PasskeyAdded {
        /// The passkey, with its public key.
        passkey: Box<Passkey>,
        /// What a known passkey has signed for it, if one has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vouched: Option<Box<SignedWord>>,
    },
    /// A passkey counts no more.
    PasskeyRevoked {
        /// The credential's id, base64url.
        id: Box<str>,
        /// Its name for people.
        name: Box<str>,
        /// What a passkey has signed for that, unless a person said it at a terminal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedWord>>,
    },
    /// All passkeys were given up, and none counts for a while.
    PasskeysReset {
        /// How many there were.
        revoked: u32,
        /// From when passkeys count again.
        until: Timestamp,
    },
    /// A browser is told from now on, by its push service.
    PushAdded {
        /// The id of the subscription.
        id: Box<str>,
        /// Its name for people.
        name: Box<str>,
        /// Scheme, host and port of its push service.
        host: Box<str>,
        /// The page at which it was subscribed.
        origin: Box<str>,
    },
    /// A browser gets no more notices.
    PushRemoved {
        /// The id of the subscription.
        id: Box<str>,
        /// Its name for people.
        name: Box<str>,
        /// Why, in words.
        why: Box<str>,
    },
    /// A person has signed a verb with a passkey; what it does follows, unless it is refused.
    WordSaid(Box<SayWord>),
    /// Something that happened outside the core.
    Recorded {
        /// The kind of occurrence: `daemon.started`, `key.added`, `policy.loaded`, ...
        what: Box<str>,
        /// An ident or a file that it is about.
        subject: Box<str>,
        /// Particulars, without secrets.
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
            EventKind::ChangesDiscarded { .. } => "changes_discarded",
            EventKind::ChangesMerged { .. } => "changes_merged",
            EventKind::HookDropped { .. } => "hook_dropped",
            EventKind::MailQueued { .. } => "mail_queued",
            EventKind::MailDelivered { .. } => "mail_delivered",
            EventKind::MailDropped { .. } => "mail_dropped",
            EventKind::ApprovalAsked { .. } => "approval_asked",
            EventKind::ApprovalAnswered { .. } => "approval_answered",
            EventKind::ApprovalExpired { .. } => "approval_expired",
            EventKind::ApprovalAskedAgain { .. } => "approval_asked_again",
            EventKind::GrantFailed { .. } => "grant_failed",
            EventKind::AgentNamed { .. } => "agent_named",
            EventKind::LockAcquired { .. } => "lock_acquired",
            EventKind::LockFreed { .. } => "lock_freed",
            EventKind::LockAwaited { .. } => "lock_awaited",
            EventKind::LockWaitEnded { .. } => "lock_wait_ended",
            EventKind::LockWaitRefused { .. } => "lock_wait_refused",
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
            EventKind::Merge(event) => event.name(),
            EventKind::Permission(event) => event.name(),
            EventKind::Talk(event) => event.name(),
            EventKind::Queue(event) => event.name(),
            EventKind::TokenMinted { .. } => "token_minted",
            EventKind::TokenEnded { .. } => "token_ended",
            EventKind::WorkerSwitched { .. } => "worker_switched",
            EventKind::PasskeyAdded { .. } => "passkey_added",
            EventKind::PasskeyRevoked { .. } => "passkey_revoked",
            EventKind::PasskeysReset { .. } => "passkeys_reset",
            EventKind::PushAdded { .. } => "push_added",
            EventKind::PushRemoved { .. } => "push_removed",
            EventKind::WordSaid(_) => "word_said",
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
            | EventKind::ChangesDiscarded { task, .. }
            | EventKind::ChangesMerged { task, .. }
            | EventKind::HookDropped { task, .. } => Some(task),
            EventKind::Denied { task, .. }
            | EventKind::MailQueued { task, .. }
            | EventKind::ApprovalAsked { task, .. }
            | EventKind::ApprovalAskedAgain { task, .. } => task.as_ref(),
            EventKind::Talk(event) => Some(event.task()),
            EventKind::Queue(event) => Some(event.task()),
            _ => None,
        }
    }
}
