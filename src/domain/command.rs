//! Every verb of Provost: its request, its answer, and, in `table`, its rule.

mod about;
mod apply;
mod capture;
mod coordinate;
mod crew;
mod forced;
mod job;
mod merge;
mod passkey;
mod permission;
mod post;
mod push;
mod record;
mod spend;
mod switch;
mod table;
mod talk;
mod token;
mod user;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Change, Continued, Directory, Failure, Mail, Outbox, Placement, Report, ScanReport, SignedWord,
    TaskChanges, TaskState, Verdict, Watched,
};
use provost_base::{
    AgentId, ApprovalId, Digest, EffectId, JobId, Json, MailSeq, TaskId, Timestamp, TraceContext, Ttl,
};

pub use apply::*;
pub use capture::*;
pub use coordinate::*;
pub use crew::*;
pub use forced::*;
pub use job::*;
pub use merge::*;
pub use passkey::*;
pub use permission::*;
pub use post::*;
pub use push::*;
pub use record::*;
pub use spend::*;
pub use switch::*;
pub use table::{Command, Durability, JudgedVerb, Reply, Verb, VerbName};
pub use talk::*;
pub use token::*;
pub use user::*;

/// Make an agent known, with its version and capabilities. DevIt REGISTER.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Register {
    /// Capabilities announced; recorded, not trusted.
    pub caps: Vec<Box<str>>,
    /// The process id that the client claims.
    pub pid: Option<u64>,
    /// The process id from the kernel.
    pub peer_pid: Option<u32>,
    /// The version that the agent announces; an empty one counts as absent.
    pub version: Option<Box<str>>,
}

/// The answer: the caller is known now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The versions that would be accepted; empty means any.
    pub expected: Vec<Box<str>>,
}

/// Collect mail: DevIt HEARTBEAT (`alive`) and POLL (not `alive`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CollectMail {
    /// Whether this also is a sign of life.
    pub alive: bool,
}

/// The next message, marked as on its way until [`SettleMail`] reports its delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collected {
    /// The oldest message that no other connection is carrying; `None` if the queue has none.
    pub mail: Option<Arc<Mail>>,
    /// Whether the caller has unfinished delegations, so that an empty answer is worth delaying.
    pub waiting: bool,
}

/// The outcome of a message's delivery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettleMail {
    /// The number of the message in the caller's own queue.
    pub seq: MailSeq,
    /// Whether the message arrived; otherwise it waits for the next collection.
    pub delivered: bool,
}

/// The queue is up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled;

/// The members of `payload.task` that DevIt's own policy examines.
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

/// Hand work to a worker. DevIt DELEGATE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delegate {
    /// Chosen by the caller; repeats of the same request are answered alike.
    pub task: TaskId,
    /// The work, in words; a command line for the built-in `shell` worker.
    pub goal: Box<str>,
    /// The worker that should do it.
    pub worker: AgentId,
    /// The agent that gets mail about the task; `None` for the caller.
    pub return_to: Option<AgentId>,
    /// The tool that policy is asked about.
    pub tool: Tool,
    /// The time limit of the work; the door sets a default.
    pub timeout: Ttl,
    /// The model that the caller asks for; `None` leaves the choice to the worker.
    pub model: Option<Box<str>>,
    /// Free data for the worker.
    pub context: Option<Json>,
    /// File patterns the caller wants watched; kept and shown.
    pub watch_patterns: Vec<Box<str>>,
    /// The directory to work in, as the caller wrote it; the facts have the resolved one.
    pub working_dir: Option<Box<str>>,
    /// The response format that the caller asks for (`default`, `compact`).
    pub format: Option<Box<str>>,
    /// The request as it came; a polling worker gets it unchanged.
    pub payload: Json,
    /// The job that the delegation is a part of, if an editor asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<Box<JobContext>>,
    /// The branch in whose work tree the worker works, and on which its changes are committed. Empty until the
    /// service has chosen a name; `None` for work in the workspace or in a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<Box<str>>,
    /// The session of the same worker's earlier task with which it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Box<Continued>>,
    /// When and where the task begins; `None` if the caller asks for nothing special.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Box<Placement>>,
    /// The trace within which it was asked for; see [`Delegate::digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceContext>>,
}

impl Delegate {
    /// Returns an order with these members and no others.
    pub fn of(task: TaskId, goal: Box<str>, worker: AgentId, timeout: Ttl) -> Self {
        Self {
            task,
            goal,
            worker,
            return_to: None,
            tool: Tool::default(),
            timeout,
            model: None,
            context: None,
            watch_patterns: Vec::new(),
            working_dir: None,
            format: None,
            payload: Json::null(),
            errand: None,
            work_tree: None,
            continues: None,
            placement: None,
            trace: None,
        }
    }
}

/// The job that a delegation is a part of. Its worker is told, and an approver approves it with the rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobContext {
    /// The id of the editor's job.
    pub job: Box<str>,
    /// The method of the job, as its protocol calls it: `code.review`.
    pub method: Box<str>,
    /// The job's phase: `generate`.
    pub phase: Box<str>,
    /// The JSON Schema that the worker's answer has to satisfy.
    pub schema: Option<Json>,
    /// Whether the changes in its private copy are kept as artifacts.
    pub harvest: bool,
    /// The job in whose private copy the worker works: one copy for all runs that name that job, until it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<JobId>,
    /// A command that runs instead of the worker's own command, in the same jail, but without network, secrets and
    /// goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<Box<str>>>,
    /// The commit whose files the worker gets, in a copy of their own; `None` for those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Box<str>>,
}

/// A new delegation has a zero byte in the member of this name. Safe to show to the client that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} contains a zero byte, which no program can be given")]
pub struct ZeroByte(&'static str);

impl Delegate {
    /// Returns the delegation if a program can be given its texts, as an argument or a variable.
    ///
    /// # Errors
    /// [`ZeroByte`] names the first text for which this is not so.
    pub fn checked(self) -> Result<Self, ZeroByte> {
        let has_one = |text: &Option<Box<str>>| text.as_ref().is_some_and(|it| it.contains('\0'));
        let members = [
            ("goal", self.goal.contains('\0')),
            ("model", has_one(&self.model)),
            ("format", has_one(&self.format)),
        ];
        match members.into_iter().find(|(_, has_one)| *has_one) {
            Some((member, _)) => Err(ZeroByte(member)),
            None => Ok(self),
        }
    }

    /// Returns the digest of the whole request: an approver approves it, and a repeat is recognised by it. A program that
    /// tries again does so within another span, so the trace has no part in the digest.
    pub fn digest(&self) -> Digest {
        if self.trace.is_some() {
            return Self { trace: None, ..self.clone() }.digest();
        }
        // Provost's own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Returns the command that runs instead of the worker's own command, if the order names one.
    pub fn command(&self) -> Option<&[Box<str>]> {
        self.errand.as_ref()?.command.as_deref()
    }

    /// Returns the details that an approver is shown beside the goal: the request as it came, the job, the branch,
    /// the earlier task, and when it begins.
    pub fn shown(&self) -> Json {
        let is_plain = self.errand.is_none() && self.work_tree.is_none() && self.continues.is_none();
        if is_plain && self.placement.is_none() {
            return self.payload.clone();
        }
        let mut members = match self.payload.value() {
            serde_json::Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        if let Some(errand) = &self.errand {
            members.insert("errand".into(), serde_json::to_value(errand).unwrap_or_default());
        }
        if let Some(branch) = &self.work_tree {
            members.insert("worktree".into(), serde_json::Value::from(&**branch));
        }
        if let Some(continued) = &self.continues {
            members.insert("continues".into(), serde_json::Value::from(continued.task.as_str()));
        }
        if let Some(placement) = &self.placement {
            members.insert("queue".into(), serde_json::to_value(placement).unwrap_or_default());
        }
        Json::from_value(&members.into())
    }
}

/// The answer: the delegation was accepted, or is a repeat of one that was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delegated {
    /// The id that the caller has chosen.
    pub task: TaskId,
    /// The state of the task now; for a repeat, that of the task that exists already.
    pub state: TaskState,
}

/// Report on the caller's task. DevIt NOTIFY.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportTask {
    /// The task that the report is about.
    pub task: TaskId,
    /// The status that the worker reports.
    pub status: Status,
    /// The report, in words and data.
    pub report: Report,
    /// The id of the message with the report, by which a repeat is recognised.
    pub message: Option<Box<str>>,
}

/// Status words of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Known, not begun.
    Pending,
    /// Under way, including `progress`, `blocked` and words without a definition.
    InProgress,
    /// Ended, with the requested result.
    Completed,
    /// Ended, without the requested result.
    Failed,
    /// Given up on request.
    Cancelled,
}

impl Status {
    /// Returns the word for it, which is also DevIt's.
    pub fn as_str(self) -> &'static str {
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
    /// The state of the task now.
    pub state: TaskState,
}

/// DevIt NOTIFY with `status = "ack"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AckTask {
    /// The task whose notification was seen.
    pub task: TaskId,
}

/// The acknowledgement is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acked {
    /// The number of notification hooks that this releases; zero if none waits.
    pub released: usize,
}

/// Take a task back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelTask {
    /// The task to cancel.
    pub task: TaskId,
    /// The reason, for the worker and the log.
    pub reason: Box<str>,
}

/// The task is cancelled; a running worker is being stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancelled {
    /// The state of the task now.
    pub state: TaskState,
}

/// Grant or deny a parked command. DevIt APPROVAL_DECISION.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerApproval {
    /// The approval that is answered.
    pub approval: ApprovalId,
    /// Whether the approver grants the command or denies it.
    pub verdict: Verdict,
    /// The reason, for the asker.
    pub note: Option<Box<str>>,
    /// The digest of the request as the approver was shown it, if the approver sends it; a mismatch is refused.
    pub shown: Option<Digest>,
    /// The word that a passkey has signed, if the approver answers with one; `shown` is set then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Box<SignedWord>>,
}

/// The approval is settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The task that the approval was about.
    pub task: Option<TaskId>,
    /// The reason why a granted command was not carried out after all.
    pub failed: Option<Box<str>>,
}

/// Capture the screen. DevIt SCREENSHOT.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeScreenshot {
    /// The id, chosen by the caller as for a delegation: the picture is a task that the daemon itself does.
    pub task: TaskId,
}

/// The capture was ordered, or an approved one is handed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// The task that has the result; not the caller's own id if a picture is handed over that was approved before.
    pub task: TaskId,
    /// The state of that task.
    pub state: TaskState,
}

/// A confined worker process is ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginRun {
    /// The owed effect that this run carries out.
    pub effect: EffectId,
    /// The task that the worker works on.
    pub task: TaskId,
    /// The end of the time in which the worker may run.
    pub until: Timestamp,
}

/// The answer: the run may go on. It is a refusal if the run may not, because the task was cancelled meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun;

/// Take an open task for this host, or say why the host cannot do it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeTask {
    /// The open task.
    pub task: TaskId,
    /// The directory in this host's clone in which the worker would work.
    pub directory: Option<Directory>,
    /// The worker's executable on this host, as hashed now.
    pub program: Option<Digest>,
    /// The reason why this host cannot do the task, in words for people.
    pub cannot: Option<Box<str>>,
}

/// The outcome is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskTaken {
    /// Whether the task is this host's now.
    pub is_taken: bool,
}

/// Report the files that a run has left, or changes to the files that a delegation wanted watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteFiles {
    /// The task of the run, which may be over.
    pub task: TaskId,
    /// The files that the run has left and that run later; `None` if the command is about watched files.
    pub handoff: Option<ScanReport>,
    /// Watched files that have changed since the task began.
    pub watched: Option<Watched>,
    /// The changes among them that the agents waiting for the task have not heard of.
    pub news: Option<Watched>,
}

/// The findings are on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilesNoted;

/// Report that a worker process has ended, or could not be started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndRun {
    /// The owed effect that this settles.
    pub effect: EffectId,
    /// The task that the worker worked on.
    pub task: TaskId,
    /// Completed, failed or cancelled.
    pub status: Status,
    /// The worker's answer and its output, as far as they exist.
    pub report: Report,
    /// The reason for the failure, if the daemon or the jail gives one.
    pub failure: Option<Failure>,
    /// The model that did the work.
    pub model_used: Option<Box<str>>,
    /// The changes that are kept; `None` for a run without a private copy, and for a run that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<TaskChanges>,
}

/// The result is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended;

/// Report that an effect needs no further work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettleEffect {
    /// The effect that is no longer owed.
    pub effect: EffectId,
}

impl SettleEffect {
    pub(super) fn settle(&self, out: &mut Outbox) -> EffectSettled {
        out.put(Change::DropEffect(self.effect));
        EffectSettled
    }
}

/// The effect is no longer owed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectSettled;
