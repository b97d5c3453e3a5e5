//! Every verb Provost understands, in one table.

mod about;
mod apply;
mod capture;
mod coordinate;
mod crew;
mod job;
mod permission;
mod post;
mod record;
mod switch;
mod token;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Failure, Handoff, Mail, Report, Scope, TaskState, Verdict, Watched};
use crate::base::{AgentId, ApprovalId, Digest, EffectId, JobId, Json, MailSeq, TaskId, Timestamp, Ttl};

pub use apply::{AppliedTold, ApplyBegun, ApplyEnded, ApplyFiles, EndApply, TellApplied};
pub use capture::{BeginCapture, CaptureBegun, CaptureEnded, EndCapture, Shot};
pub use coordinate::{
    AcquireLock, AgentNamed, AnswerContract, Conflict, ContractAnswered, ContractProposed, ContractWithdrawn,
    ContractsFollowed, DeclareIntent, Declared, FollowContracts, FollowLocks, FreshSpans, HasLeft,
    IntendedFile, IntentUpdated, IntentsRefreshed, Known, Leave, LeaveQueue, LockReleased, Locked,
    LocksFollowed, LocksReaped, NameAgent, ProposeContract, QueueLeft, ReapLocks, RefreshIntents,
    ReleaseLock, Rival, SymbolFacts, UpdateIntent, Warning, WithdrawContract,
};
pub use crew::{
    AnswerTransfer, AppointLead, AssignmentMade, AssignmentMoved, BeatCrew, ChangedFile, ClaimFile,
    CrewBeaten, CrewJoined, CrewLeft, FileClaimed, FileLocked, FileReleased, FilesSeen, JoinCrew,
    LeadAppointed, LeaveCrew, LockFile, MakeAssignment, MemberMoved, MoveAssignment, MoveMember, NoteTaken,
    NotesTaken, OfferTransfer, ReleaseFile, SeeFiles, SeenFile, SettledFile, TakeNote, TakeNotes,
    TransferAnswered, TransferOffered,
};
pub use job::{
    CancelJob, EndJob, FeedbackNoted, JobCancelled, JobEnded, JobMoved, JobOpened, KeepResult, MoveJob,
    NoteFeedback, OpenJob, ResultKept,
};
pub use permission::{AskPermission, PermissionWithdrawn, Permitted, WithdrawPermission};
pub use post::{
    AddressAgent, AgentAddressed, BeginLog, LogBegun, Publish, Published, Republish, Republished,
};
pub use record::{Record, Recorded};
pub use switch::{SwitchWorker, WorkerSwitched};
pub use token::{MintToken, RevokeTokens, TokenMinted, TokensRevoked, WhichTokens};

/// A typed request. The engine takes any `V: Verb` and answers with `V::Reply`.
pub trait Verb: Into<Command> {
    /// What a caller gets when the verb was carried out.
    type Reply: TryFrom<Reply>;
}

/// What a commit of a verb waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Durability {
    /// Nothing: it only touches memory.
    Unstored,
    /// The kernel: survives a crash or kill -9 of the daemon.
    Commit,
    /// The disk: survives loss of power.
    Durable,
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident => $reply:ident, needs $scope:ident, $durability:ident $(, $judged:ident)?;)*) => {
        /// Any verb, as it waits in a queue or for an approval.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Command { $($(#[$doc])* $verb($verb),)* }

        /// Any reply.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Reply { $(
            #[doc = concat!("Answer to [`", stringify!($verb), "`].")]
            $reply($reply),
        )* }

        impl Command {
            /// The right a caller must hold, whatever policy says.
            pub fn scope(&self) -> Scope {
                match self { $(Command::$verb(_) => Scope::$scope,)* }
            }

            /// The verb's name, as rules and the log write it.
            pub fn name(&self) -> &'static str {
                match self { $(Command::$verb(_) => stringify!($verb),)* }
            }

            /// Whether policy has a say. The others are decided by scope alone.
            pub fn judged(&self) -> bool {
                match self { $(Command::$verb(_) => verbs!(@judged $($judged)?),)* }
            }

            /// What the answer must wait for.
            pub fn durability(&self) -> Durability {
                match self { $(Command::$verb(_) => Durability::$durability,)* }
            }
        }

        $(
            impl From<$verb> for Command {
                fn from(verb: $verb) -> Command { Command::$verb(verb) }
            }
            impl TryFrom<Reply> for $reply {
                type Error = Reply;
                fn try_from(reply: Reply) -> Result<Self, Reply> {
                    match reply { Reply::$reply(it) => Ok(it), other => Err(other) }
                }
            }
            impl Verb for $verb { type Reply = $reply; }
        )*
    };
    (@judged judged) => { true };
    (@judged) => { false };
}

verbs! {
    /// Make oneself known, with a version check.
    Register       => Registered, needs Join,       Commit;
    /// Take the next message of one's queue.
    CollectMail    => Collected,  needs Join,       Unstored;
    /// Say whether a collected message arrived.
    SettleMail     => Settled,    needs Join,       Commit;
    /// Hand work to a worker.
    Delegate       => Delegated,  needs Delegate,   Durable, judged;
    /// Say how work is going.
    ReportTask     => Reported,   needs Work,       Durable;
    /// Acknowledge having seen a notification.
    AckTask        => Acked,      needs Coordinate, Commit;
    /// Take work back.
    CancelTask     => Cancelled,  needs Delegate,   Durable;
    /// Grant or deny a parked command.
    AnswerApproval => Answered,   needs Approve,    Durable, judged;
    /// Capture the screen.
    TakeScreenshot => Captured,   needs Delegate,   Durable, judged;
    /// Use a tool of one's own host.
    AskPermission  => Permitted,  needs Delegate,   Durable, judged;
    /// Take back a question about a tool of one's own host.
    WithdrawPermission => PermissionWithdrawn, needs Delegate, Commit;
    /// Go by a name for people.
    NameAgent      => AgentNamed, needs Join,       Commit;
    /// Take or refresh a lock on a symbol.
    AcquireLock    => Locked,     needs Coordinate, Commit;
    /// Give a lock up.
    ReleaseLock    => LockReleased, needs Coordinate, Commit;
    /// Wait for a lock no longer.
    LeaveQueue     => QueueLeft,  needs Coordinate, Commit;
    /// End a session: hold nothing any more.
    Leave          => HasLeft,    needs Coordinate, Commit;
    /// Free locks whose holders are gone.
    ReapLocks      => LocksReaped, needs Host,      Commit;
    /// Let locks follow files that were renamed.
    FollowLocks    => LocksFollowed, needs Host,    Commit;
    /// Announce a change.
    DeclareIntent  => Declared,   needs Coordinate, Commit;
    /// Say how an announced change goes on.
    UpdateIntent   => IntentUpdated, needs Coordinate, Commit;
    /// Follow symbols that have moved within their files.
    RefreshIntents => IntentsRefreshed, needs Host, Commit;
    /// Offer a contract on a signature.
    ProposeContract => ContractProposed, needs Coordinate, Durable;
    /// Accept or reject a contract.
    AnswerContract => ContractAnswered, needs Coordinate, Durable;
    /// Take a contract back.
    WithdrawContract => ContractWithdrawn, needs Coordinate, Durable;
    /// Let contracts follow files that were renamed.
    FollowContracts => ContractsFollowed, needs Host, Durable;
    /// Publish a message to other agents.
    Publish        => Published,  needs Coordinate, Commit;
    /// Publish a message once more that is in force already.
    Republish      => Republished, needs Coordinate, Commit;
    /// Give an agent an inbox before it has said anything.
    AddressAgent   => AgentAddressed, needs Coordinate, Commit;
    /// Begin the audit log of messages anew.
    BeginLog       => LogBegun,   needs Operate,    Commit;
    /// Announce oneself to the crew.
    JoinCrew       => CrewJoined, needs Join,       Commit;
    /// Leave the crew.
    LeaveCrew      => CrewLeft,   needs Join,       Commit;
    /// Say that one is still there.
    BeatCrew       => CrewBeaten, needs Join,       Commit;
    /// Say what one is at.
    MoveMember     => MemberMoved, needs Join,      Commit;
    /// Name the lead of the crew.
    AppointLead    => LeadAppointed, needs Operate, Commit;
    /// Ask for a file.
    ClaimFile      => FileClaimed, needs Coordinate, Commit;
    /// Give a file back.
    ReleaseFile    => FileReleased, needs Coordinate, Commit;
    /// Lock a file, or give it free.
    LockFile       => FileLocked, needs Coordinate, Commit;
    /// Want something done by one of the crew.
    MakeAssignment => AssignmentMade, needs Coordinate, Commit;
    /// Say how an assignment goes on.
    MoveAssignment => AssignmentMoved, needs Coordinate, Commit;
    /// Hand work over to one of the crew.
    OfferTransfer  => TransferOffered, needs Coordinate, Commit;
    /// Go on with work that was handed over, or do not.
    AnswerTransfer => TransferAnswered, needs Coordinate, Commit;
    /// Put something on the timeline.
    TakeNote       => NoteTaken,  needs Coordinate, Commit;
    /// Put what another daemon has kept on the timeline.
    TakeNotes      => NotesTaken, needs Operate,    Commit;
    /// Say which files have changed.
    SeeFiles       => FilesSeen,  needs Host,       Commit;
    /// Ask for something that takes a while.
    OpenJob        => JobOpened,  needs Delegate,   Durable;
    /// Say how far a job is.
    MoveJob        => JobMoved,   needs Host,       Commit;
    /// Say how a job has ended.
    EndJob         => JobEnded,   needs Host,       Durable;
    /// Say what a job had brought about that was over before its last run was.
    KeepResult     => ResultKept, needs Host,       Durable;
    /// Take a job back.
    CancelJob      => JobCancelled, needs Delegate, Durable;
    /// Say what one thinks of a job's outcome.
    NoteFeedback   => FeedbackNoted, needs Delegate, Commit;
    /// Have a worker begin nothing, or begin again.
    SwitchWorker   => WorkerSwitched, needs Delegate, Durable;
    /// Write files in the workspace.
    ApplyFiles     => ApplyBegun, needs Delegate,   Durable, judged;
    /// Say which files were written.
    TellApplied    => AppliedTold, needs Host,      Commit;
    /// Say how the writing of files has ended.
    EndApply       => ApplyEnded, needs Host,       Durable;
    /// Let whoever shows a token speak as an agent.
    MintToken      => TokenMinted, needs Join,      Durable, judged;
    /// End tokens.
    RevokeTokens   => TokensRevoked, needs Join,    Durable;
    /// A worker process was confined and is about to run.
    BeginRun       => Begun,      needs Host,       Durable;
    /// What was found out about the files of a task.
    NoteFiles      => FilesNoted, needs Host,       Commit;
    /// A picture of the screen is about to be taken.
    BeginCapture   => CaptureBegun, needs Host,     Commit;
    /// A picture of the screen was taken, or was not.
    EndCapture     => CaptureEnded, needs Host,     Durable;
    /// A worker process is gone, with what it left.
    EndRun         => Ended,      needs Host,       Durable;
    /// An owed effect needs nothing more.
    SettleEffect   => EffectSettled, needs Host,    Commit;
    /// Put something that happened outside the core on record.
    Record         => Recorded,   needs Operate,    Durable;
}

/// DevIt REGISTER.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Register {
    /// Capabilities announced; recorded, not trusted.
    pub caps: Vec<Box<str>>,
    /// Process id as the client says.
    pub pid: Option<u64>,
    /// Process id as the kernel says.
    pub peer_pid: Option<u32>,
    /// Version announced; an empty one counts as absent.
    pub version: Option<Box<str>>,
}

/// The caller is known now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    /// Versions that would be accepted; empty means any.
    pub expected: Vec<Box<str>>,
}

/// DevIt HEARTBEAT (`alive`) and POLL (not).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CollectMail {
    /// Whether this also is a sign of life.
    pub alive: bool,
}

/// The next message, marked as on its way until [`SettleMail`] says how it went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collected {
    /// The oldest message that nobody else is carrying.
    pub mail: Option<Arc<Mail>>,
    /// Whether the caller has unfinished delegations, so that an empty answer is worth delaying.
    pub waiting: bool,
}

/// How the delivery of a message went.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettleMail {
    /// Which message of the caller's own queue.
    pub seq: MailSeq,
    /// Whether it arrived; otherwise it waits for the next collection.
    pub delivered: bool,
}

/// The queue is up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled;

/// What DevIt's own policy looks at in `payload.task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// `task.action`; real clients always say `devit_delegate`.
    pub name: Box<str>,
    /// `task.path`, normalised by spelling.
    pub path: Option<Box<str>>,
    /// `task.command`.
    pub command: Option<Box<str>>,
    /// `task.max_bytes`.
    pub max_bytes: Option<u64>,
    /// `task.timeout_secs`.
    pub timeout_s: Option<u64>,
}

/// Work to be done by someone else. DevIt DELEGATE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delegate {
    /// Chosen by the caller; repeats of the same request are answered alike.
    pub task: TaskId,
    /// What is to be done, in words; a command line for the built-in `shell` worker.
    pub goal: Box<str>,
    /// Who is to do it.
    pub worker: AgentId,
    /// Who hears of it, when not the caller.
    pub return_to: Option<AgentId>,
    /// The tool that policy is asked about.
    pub tool: Tool,
    /// How long it may take; defaulted at the door.
    pub timeout: Ttl,
    /// Model asked for.
    pub model: Option<Box<str>>,
    /// Free data for the worker.
    pub context: Option<Json>,
    /// File patterns the caller wants watched; kept and shown.
    pub watch_patterns: Vec<Box<str>>,
    /// Where to work, as the caller wrote it; what it resolved to is in the facts.
    pub working_dir: Option<Box<str>>,
    /// Response format asked for (`default`, `compact`).
    pub format: Option<Box<str>>,
    /// The request as it came, relayed to a polling worker to the letter.
    pub payload: Json,
    /// What it is a part of, where an editor's job asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<Box<Errand>>,
}

/// What a delegation is a part of. Its worker is told, and an approver approves it with the rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The job.
    pub job: Box<str>,
    /// What the job is about, as its protocol calls it: `code.review`.
    pub method: Box<str>,
    /// Which of the job's phases: `generate`.
    pub phase: Box<str>,
    /// The JSON Schema that the worker's answer has to satisfy.
    pub schema: Option<Json>,
    /// Whether what it changes in its private copy is kept as artifacts.
    pub harvest: bool,
    /// The job in whose private copy it works: one copy for all runs that name it, until that job is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<JobId>,
    /// What is run instead of the worker's own command, in the same jail, but without network, secrets and goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<Box<str>>>,
}

impl Delegate {
    /// Digest of everything asked for: what an approver approves, and how a repeat is recognised.
    pub fn digest(&self) -> Digest {
        // Our own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// What is run instead of the worker's own command.
    pub fn command(&self) -> Option<&[Box<str>]> {
        self.errand.as_ref()?.command.as_deref()
    }

    /// What an approver is shown beside the goal: the request as it came, and what it is a part of.
    pub fn shown(&self) -> Json {
        let Some(errand) = &self.errand else { return self.payload.clone() };
        let mut members = match self.payload.value() {
            serde_json::Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        members.insert("errand".into(), serde_json::to_value(errand).unwrap_or_default());
        Json::from_value(&members.into())
    }
}

/// The task exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delegated {
    /// Its id.
    pub task: TaskId,
    /// Where it stands.
    pub state: TaskState,
}

/// What a worker says about its task. DevIt NOTIFY.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportTask {
    /// Which task.
    pub task: TaskId,
    /// Where the worker sees it.
    pub status: Status,
    /// What it has to say.
    pub report: Report,
    /// The message this came in, so that a repeat is recognised.
    pub message: Option<Box<str>>,
}

/// Status words of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Known, not begun.
    Pending,
    /// Under way, including `progress`, `blocked` and words nobody has defined.
    InProgress,
    /// Done.
    Completed,
    /// Not done.
    Failed,
    /// Given up on request.
    Cancelled,
}

impl Status {
    /// The word for it, which is also DevIt's.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// The report is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    /// Where the task stands now.
    pub state: TaskState,
}

/// DevIt NOTIFY with `status = "ack"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AckTask {
    /// Which task's notification was seen.
    pub task: TaskId,
}

/// The acknowledgement is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acked {
    /// How many notification hooks that releases; zero when none waits.
    pub released: usize,
}

/// Take a task back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelTask {
    /// Which.
    pub task: TaskId,
    /// Why, for the worker and the log.
    pub reason: Box<str>,
}

/// The task is cancelled; a running worker is being stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancelled {
    /// Where the task stands now.
    pub state: TaskState,
}

/// DevIt APPROVAL_DECISION.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerApproval {
    /// Which.
    pub approval: ApprovalId,
    /// Yes or no.
    pub verdict: Verdict,
    /// Why, for the asker.
    pub note: Option<Box<str>>,
    /// Digest of what the approver was shown, when the approver says; a mismatch is refused.
    pub shown: Option<Digest>,
}

/// The approval is settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The task it was about.
    pub task: Option<TaskId>,
    /// Why a granted command was not carried out after all.
    pub failed: Option<Box<str>>,
}

/// Capture the screen. DevIt SCREENSHOT.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeScreenshot {
    /// Chosen by the caller, as for a delegation: the picture is a task that the daemon itself does.
    pub task: TaskId,
}

/// The capture was ordered, or an approved one is handed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Where its result will be; not the caller's own id when a picture is handed over that was approved before.
    pub task: TaskId,
    /// Where it stands.
    pub state: TaskState,
}

/// A confined worker process is ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginRun {
    /// The owed effect this carries out.
    pub effect: EffectId,
    /// Its task.
    pub task: TaskId,
    /// Until when it may run.
    pub until: Timestamp,
}

/// Go on, or do not: the task may have been cancelled meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun;

/// What a run has left, or what became of the files that a delegation wanted watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteFiles {
    /// Its task, which may be over.
    pub task: TaskId,
    /// What a run has left that runs later.
    pub handoff: Option<Handoff>,
    /// Watched files that have changed since the task began.
    pub watched: Option<Watched>,
    /// Those of them that those who wait for the task have not heard of.
    pub news: Option<Watched>,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilesNoted;

/// A worker process has ended, or could not be started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndRun {
    /// The owed effect this settles.
    pub effect: EffectId,
    /// Its task.
    pub task: TaskId,
    /// Completed, failed or cancelled.
    pub status: Status,
    /// What it left.
    pub report: Report,
    /// Why it failed, when the daemon or the jail says so.
    pub failure: Option<Failure>,
    /// The model that did the work.
    pub model_used: Option<Box<str>>,
}

/// The result is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended;

/// An effect needs nothing more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettleEffect {
    /// Which.
    pub effect: EffectId,
}

/// It is no longer owed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectSettled;
