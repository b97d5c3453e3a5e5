//! The results of a command that are announced: events, as the log keeps them.

use serde::{Deserialize, Serialize};

use super::command::SayWord;
use super::host::{HOST_REMOVED, says_removed};
use super::post::Post;
use super::{
    ApplyEvent, Approver, ContractStatus, CrewEvent, Failure, Finding, IntentStatus, JobEvent, JudgedRequest,
    MergeEvent, Passkey, PermissionEvent, Proof, QueueEvent, ReservationKind, Scopes, SignedWord, Status,
    Switch, TalkEvent, Usage, Verdict,
};
use provost_base::{
    AgentId, ApprovalId, ContractId, Digest, EffectId, EventSeq, Fence, HostId, IntentId, Json, MailSeq,
    PostSeq, RepoPath, RuleId, Slug, SymbolPath, TaskId, Timestamp, TraceContext,
};

/// One entry of the log: the agent, the time and the change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the log. Numbers are dense.
    pub seq: EventSeq,
    /// When the engine decided it.
    pub at: Timestamp,
    /// The agent that caused it; `provost` for actions of the daemon itself.
    pub actor: AgentId,
    /// The change that happened, with its particulars.
    pub kind: EventKind,
    /// The host whose daemon has decided it; without other hosts, the host of the only daemon.
    #[serde(default, skip_serializing_if = "HostId::is_alone")]
    pub host: HostId,
}

/// The kind of change. It has names and numbers only: goals and outputs appear as digests and lengths; only
/// messages between agents are kept whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// An agent has registered. DevIt REGISTER.
    AgentRegistered {
        /// The version that the agent announced, if it did.
        version: Option<Box<str>>,
        /// Capabilities that the agent announced; not trusted.
        caps: Vec<Box<str>>,
        /// The process id as announced.
        pid: Option<u64>,
    },
    /// An agent that was not known any more gave a sign of life.
    AgentRevived,
    /// A delegation was accepted: policy allowed it, or was not asked.
    TaskDelegated {
        /// The id of the new task.
        task: TaskId,
        /// The worker that should do it.
        worker: AgentId,
        /// The tool that policy was asked about.
        tool: Box<str>,
        /// The rule that allowed it.
        rule: RuleId,
        /// The digest of the rules in force.
        policy: Digest,
        /// The digest of the request.
        request: Digest,
        /// The directory that the task works in.
        working_dir: Option<Box<str>>,
        /// The approval of the delegation, if it needed one.
        approval: Option<ApprovalId>,
        /// The rules' input, if they alone have decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<Box<JudgedRequest>>,
        /// The trace within which it was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<Box<TraceContext>>,
    },
    /// Policy denied a command.
    Denied {
        /// The name of the verb, as in the table of verbs.
        verb: Box<str>,
        /// The task that it would have made.
        task: Option<TaskId>,
        /// The tool that policy was asked about; `None` for verbs without one.
        tool: Option<Box<str>>,
        /// The rule that denied.
        rule: RuleId,
        /// The rule's reason, for callers.
        reason: Box<str>,
        /// The digest of the rules in force.
        policy: Digest,
        /// The rules' input, if they alone have decided, without a count of earlier uses.
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
    /// A task runs in a directory where other tasks run.
    TaskBeside {
        /// A task that runs in that directory.
        task: TaskId,
        /// The other tasks that run there.
        others: Vec<TaskId>,
    },
    /// A run has left a file that runs later, or could not be compared.
    TaskTainted {
        /// The task whose run it was.
        task: TaskId,
        /// Files that run later; the first few.
        findings: Vec<Finding>,
        /// Findings that are not listed.
        more: u32,
        /// The reason why the comparison is incomplete.
        unknown: Option<Box<str>>,
    },
    /// Files that a delegation wanted watched have changed.
    FilesChanged {
        /// The task of that delegation.
        task: TaskId,
        /// The number of files that have changed since the task began.
        count: u32,
    },
    /// A picture of the screen was taken.
    ScreenCaptured {
        /// The task whose result is the picture.
        task: TaskId,
        /// The digest of the picture's file.
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
        /// The digest of the report.
        report: Digest,
    },
    /// A task has come to its end.
    TaskFinished {
        /// The task that has ended.
        task: TaskId,
        /// Whether it was completed, failed or cancelled.
        status: Status,
        /// The reason for the failure, if it failed.
        failure: Option<Failure>,
        /// The digest of the report.
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
    /// The changes of a task's run in its private copy are forgotten for good.
    ChangesDiscarded {
        /// The task of that run.
        task: TaskId,
        /// The number of the run's files that were kept.
        files: u32,
    },
    /// The commit with the changes of a task's run is in a branch of the user.
    ChangesMerged {
        /// The task of that run.
        task: TaskId,
        /// The branch into which the commit was merged.
        into: Box<str>,
    },
    /// A notification hook will not run: too many are owed.
    HookDropped {
        /// The task whose end the hook should have reported.
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
        /// The task that the message is about, if any.
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
        /// The number of messages that were given up.
        count: u32,
        /// The reason, in words for people.
        why: Box<str>,
    },
    /// A command waits for approval.
    ApprovalAsked {
        /// The number of the approval.
        approval: ApprovalId,
        /// The name of the verb, as in the table of verbs.
        verb: Box<str>,
        /// The task that the command would make.
        task: Option<TaskId>,
        /// The rule that asks.
        rule: RuleId,
        /// The digest of the rules in force.
        policy: Digest,
        /// The digest of what is shown to the approver.
        shown: Digest,
        /// The end of the time in which an answer counts.
        expires_at: Timestamp,
        /// The rules' input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<Box<JudgedRequest>>,
        /// The approvers that the rule admits, for the check of an answer that another host gave while the asking daemon did not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by: Vec<Approver>,
    },
    /// An approver has answered.
    ApprovalAnswered {
        /// The approval that was answered.
        approval: ApprovalId,
        /// Whether the command was granted or denied.
        verdict: Verdict,
        /// The approver's proof (`passkey`, `weak-human`, `desktop`, `host-dialog`, `key`).
        proof: Box<str>,
        /// The word that the passkey has signed, if the proof is a passkey.
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
        /// The task that the command would make.
        task: Option<TaskId>,
        /// The digest of what is shown to the approver; the same as before.
        shown: Digest,
        /// The number of times that it has been asked again so far.
        asked: u32,
        /// The number of times that it will still be asked again.
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
        /// The purpose of the lock in the agent's words, by which the event is found.
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
    /// An agent no longer waits for a lock, and does not have it.
    LockWaitEnded {
        /// The symbol that it waited for.
        symbol: SymbolPath,
        /// The agent that waited.
        agent: AgentId,
    },
    /// An agent was refused a wait for a lock, since a circle of agents would wait for each other.
    LockWaitRefused {
        /// The symbol that it wanted to wait for.
        symbol: SymbolPath,
        /// The agents in the circle, beginning with the refused one; the first few of many.
        circle: Vec<AgentId>,
    },
    /// An intent was declared.
    IntentDeclared {
        /// The id of the new intent.
        intent: IntentId,
        /// The files that will change; the first few.
        files: Vec<RepoPath>,
        /// The number of conflicts that its owner was told about.
        conflicts: u32,
    },
    /// The status of an intent has changed.
    IntentMoved {
        /// The intent whose status has changed.
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
        /// The digest of the signature.
        signature: Digest,
    },
    /// A contract was answered, replaced or taken back.
    ContractMoved {
        /// The contract whose status has changed.
        contract: ContractId,
        /// The symbol that it is about.
        symbol: SymbolPath,
        /// The status that it has now.
        to: ContractStatus,
    },
    /// Reservations of two agents through different doors are in the same place; the actor's is the later one.
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
    /// A message between agents. Only the journal keeps its text.
    Published {
        /// The message's number, over all inboxes.
        n: PostSeq,
        /// The message, with its whole text.
        post: Post,
        /// The proof of the sender's name in the message; `None` if the sender only claims it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Proof>,
        /// The question that the message answers, if a program of a task's agent waits for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<PostSeq>,
    },
    /// A message that was kept for an agent is in its inbox now.
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
    /// An event of the crew.
    Crew(CrewEvent),
    /// A token is valid from now on.
    TokenMinted {
        /// The agent that its bearer acts as.
        agent: AgentId,
        /// The token's public id.
        token: Box<str>,
        /// The rights of its bearer.
        scopes: Scopes,
        /// The time after which it is not valid.
        expires_at: Timestamp,
    },
    /// A token is no longer valid.
    TokenEnded {
        /// The agent that its bearer acted as.
        agent: AgentId,
        /// The token's public id.
        token: Box<str>,
        /// The reason for its end, in a word.
        why: Box<str>,
    },
    /// An event of an editor's job.
    Job(JobEvent),
    /// A step of an apply: files that are written for an agent.
    Apply(ApplyEvent),
    /// An event about branches that wait to be merged.
    Merge(MergeEvent),
    /// An event about tools of hosts.
    Permission(PermissionEvent),
    /// A step of a conversation with a task's agent.
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
        /// The word that a known passkey has signed for it, if one has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vouched: Option<Box<SignedWord>>,
    },
    /// A passkey no longer counts.
    PasskeyRevoked {
        /// The credential's id, base64url.
        id: Box<str>,
        /// Its name for people.
        name: Box<str>,
        /// The word that a passkey has signed for this, unless a person did it at a terminal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<Box<SignedWord>>,
    },
    /// All passkeys were given up, and none counts for a while.
    PasskeysReset {
        /// The number of passkeys before the reset.
        revoked: u32,
        /// The time from which passkeys count again.
        until: Timestamp,
    },
    /// A browser gets notices from now on, through its push service.
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
    /// A browser no longer gets notices.
    PushRemoved {
        /// The id of the subscription.
        id: Box<str>,
        /// Its name for people.
        name: Box<str>,
        /// The reason, in words.
        why: Box<str>,
    },
    /// A person has signed a verb with a passkey; the verb's own events follow, unless it is refused.
    WordSaid(Box<SayWord>),
    /// Something that happened outside the core.
    Recorded {
        /// The kind of occurrence: `daemon.started`, `key.added`, `policy.loaded`, ...
        what: Box<str>,
        /// An ident or a file that the event is about.
        subject: Box<str>,
        /// Particulars, without secrets.
        details: Json,
    },
}

impl EventKind {
    /// Checks whether the event has text that may be as long as its writer likes.
    pub fn may_be_large(&self) -> bool {
        matches!(self, EventKind::Published { .. } | EventKind::Crew(_) | EventKind::Recorded { .. })
    }

    /// Returns the kind's name, as it is stored and as filters name it.
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
            EventKind::Recorded { what, details, .. } if says_removed(what, details) => HOST_REMOVED,
            EventKind::Recorded { .. } => "recorded",
        }
    }

    /// Returns the task that the event is about, for readers that follow one task.
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
