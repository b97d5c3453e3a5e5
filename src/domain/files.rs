//! Changes of files during a task: the scan report, and the files that the asking agent watches.
//!
//! Work that was done in the jail is used outside of it. The scan report names the files that a run has left and
//! that run later, by themselves or in a build; a task with such findings, or one that could not be compared, is
//! *tainted*. The report says where to look and is not a verdict: it includes changes by people in that time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::command::{EndRun, FilesNoted, NoteFiles, Status};
use super::hook::Words;
use super::{Change, Effect, EventKind, MailKind, Outbox, Refusal, Report, State, Task, TaskState};
use provost_base::{Json, Timestamp};

/// The kind of change of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// The file did not exist before, or not as this kind of file.
    New,
    /// The file's content differs.
    Changed,
    /// The file had another name.
    Renamed,
    /// The file does not exist any more.
    Removed,
}

impl FileChange {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            FileChange::New => "new",
            FileChange::Changed => "changed",
            FileChange::Renamed => "renamed",
            FileChange::Removed => "removed",
        }
    }
}

/// The reason why a file matters after the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Hooks and configuration of git, and unfinished operations that git would take up again.
    Git,
    /// Settings of editors, shells, agents and the like that run later.
    Setting,
    /// A path that the configuration, or git's, names.
    Protected,
    /// A file that runs with its owner's rights.
    Setuid,
    /// A local socket: a program of the user may connect to it, or listens there.
    Socket,
    /// A symbolic link that leads out of the workspace.
    Link,
    /// Instructions for agents, in words.
    Instructions,
    /// A file that a build server runs.
    Ci,
    /// A file that a build runs.
    Build,
    /// A file that says which packages a build fetches.
    Lock,
    /// A file that may be executed.
    Executable,
}

impl FindingKind {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::Git => "git",
            FindingKind::Setting => "setting",
            FindingKind::Protected => "protected",
            FindingKind::Setuid => "setuid",
            FindingKind::Socket => "socket",
            FindingKind::Link => "link",
            FindingKind::Instructions => "instructions",
            FindingKind::Ci => "ci",
            FindingKind::Build => "build",
            FindingKind::Lock => "lock",
            FindingKind::Executable => "executable",
        }
    }
}

/// A file that a run has left and that runs later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The path, relative to the workspace.
    pub path: Box<str>,
    /// The reason why the file matters.
    pub kind: FindingKind,
    /// The kind of change.
    pub change: FileChange,
}

/// The report on the files that a run has left and that run later.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanReport {
    /// Files that run later, the gravest first; a bounded number.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more: u32,
    /// The reason why the comparison is incomplete; files that were not compared may contain anything.
    pub unknown: Option<Box<str>>,
}

impl ScanReport {
    /// Returns the report of a run that could not be compared at all.
    pub fn unknown(why: &str) -> Self {
        Self { unknown: Some(why.into()), ..Self::default() }
    }

    /// Checks whether a person should look before running anything in the workspace.
    pub fn is_tainted(&self) -> bool {
        !self.findings.is_empty() || self.unknown.is_some()
    }
}

/// A file that matched a watch pattern and changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WatchedFile {
    /// The path, relative to the task's working directory.
    pub path: Box<str>,
    /// The kind of change since the task began.
    pub change: FileChange,
    /// The earlier name of the file, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<str>>,
}

/// The changes to the files that a delegation wanted watched.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Changes since the beginning of the task; a bounded number.
    pub files: Vec<WatchedFile>,
    /// Changed files that are not listed.
    pub more: u32,
    /// The reason why some changes may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Box<str>>,
}

impl Watched {
    /// Returns how many files have changed.
    fn count(&self) -> usize {
        self.files.len() + self.more as usize
    }

    fn value(&self) -> Value {
        json!(self)
    }
}

impl Task {
    /// Returns whether the run has left files that a person should look at; `None` if it was not compared.
    pub fn tainted(&self) -> Option<bool> {
        self.handoff.as_ref().map(ScanReport::is_tainted)
    }

    /// Begins to watch files, if the worker gets the task only now.
    pub(super) fn watch_from_now_on(&self, out: &mut Outbox) {
        if matches!(self.state, TaskState::Queued { .. }) && !self.order.watch_patterns.is_empty() {
            out.owe(Effect::WatchFiles { task: self.id().clone() });
        }
    }

    /// Adds the known facts about the task's files to the metadata of a report.
    pub(super) fn with_files(&self, metadata: Option<Json>) -> Option<Json> {
        if self.handoff.is_none() && self.watched.is_none() {
            return metadata;
        }
        let mut block = metadata.map_or_else(|| json!({}), |it| it.value());
        if let Some(members) = block.as_object_mut() {
            if let Some(handoff) = &self.handoff {
                members.insert("tainted".into(), handoff.is_tainted().into());
                if handoff.is_tainted() {
                    members.insert("handoff".into(), json!(handoff));
                }
            }
            members.extend(self.watched.as_ref().map(|it| ("files_changed".to_owned(), it.value())));
        }
        Some(Json::from_value(&block))
    }
}

/// The metadata's member with the time at which a run ended after its task was over.
const RUN_ENDED: &str = "run_ended";

/// The metadata's member about the changes of a run: how to write them into the work tree, their files, and the
/// changes that were not kept.
const APPLY: &str = "apply";
const LEFT_OUT: &str = "left_out";
const KEPT: [&str; 3] = [APPLY, "artifacts", LEFT_OUT];

impl State {
    /// Records the findings about a task's files. The task may be over by then: a cancelled worker has left files,
    /// too.
    pub(super) fn note_files(
        &self,
        now: Timestamp,
        verb: &NoteFiles,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<FilesNoted, Refusal> {
        let found = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        let mut task = Task::clone(found);
        task.updated_at = now;
        if let Some(watched) = &verb.watched
            && task.watched.as_ref() != Some(watched)
        {
            let count = u32::try_from(watched.count()).unwrap_or(u32::MAX);
            out.append_event(EventKind::FilesChanged { task: verb.task.clone(), count });
            task.watched = Some(watched.clone());
        }
        if let Some(handoff) = &verb.handoff {
            if handoff.is_tainted() {
                out.append_event(EventKind::TaskTainted {
                    task: verb.task.clone(),
                    findings: handoff.findings.clone(),
                    more: handoff.more,
                    unknown: handoff.unknown.clone(),
                });
            }
            task.handoff = Some(handoff.clone());
        }
        match task.state {
            TaskState::Finished { status, .. } => self.amend(now, task, status, verb, out),
            _ => {
                if let Some(progress) = progress(verb) {
                    self.tell(now, &task, "progress", false, progress, out);
                }
                out.put(Change::PutTask(Arc::new(task)));
            }
        }
        Ok(FilesNoted)
    }

    /// Completes a finished task's record, and reports a taint to the agents that had its last word.
    fn amend(&self, now: Timestamp, mut task: Task, status: Status, verb: &NoteFiles, out: &mut Outbox) {
        let said = task.notes.last_mut().and_then(|note| note.report.metadata.take());
        let complete = task.with_files(said);
        if let Some(note) = task.notes.last_mut() {
            note.report.metadata.clone_from(&complete);
        }
        if verb.handoff.as_ref().is_some_and(ScanReport::is_tainted) {
            let summary = "Its worker has left files that run later; see metadata.handoff".into();
            let report = Report { summary, metadata: complete, ..Report::default() };
            self.tell(now, &task, status.as_str(), true, report, out);
        }
        out.put(Change::AmendTask(Arc::new(task)));
    }

    /// Records the end of a run whose task was over before: cancelled, or out of time. Its changes until then are
    /// kept, and the agents that had the task's last word hear where.
    pub(super) fn end_late(&self, now: Timestamp, task: &Arc<Task>, ended: &EndRun, out: &mut Outbox) {
        let TaskState::Finished { status, .. } = task.state else { return };
        let members = |it: &Option<Json>| match it.as_ref().map(Json::value) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let mut task = Task::clone(task);
        let Some(note) = task.notes.last_mut() else { return };
        let mut metadata = members(&note.report.metadata);
        if metadata.contains_key(RUN_ENDED) {
            return;
        }
        metadata.insert(RUN_ENDED.into(), now.rfc3339().into());
        note.report.metadata = Some(Json::from_value(&metadata.into()));
        task.changes.clone_from(&ended.changes);
        let mut details = members(&note.report.details);
        let said = members(&ended.report.details).into_iter().filter(|it| KEPT.contains(&it.0.as_str()));
        details.extend(said);
        let is_news = details.contains_key(APPLY) || details.contains_key(LEFT_OUT);
        note.report.details = (!details.is_empty()).then(|| Json::from_value(&details.into()));
        let report = Report {
            summary: "What it had changed by then is kept; see details".into(),
            details: note.report.details.clone(),
            metadata: note.report.metadata.clone(),
            ..Report::default()
        };
        task.updated_at = now;
        // The runner of an editor's job is told in another way.
        if is_news && task.order.errand.is_none() {
            self.tell(now, &task, status.as_str(), true, report, out);
        }
        out.put(Change::AmendTask(Arc::new(task)));
    }

    /// Sends a word of the daemon to the agents that wait for a task, and to the hook.
    fn tell(&self, now: Timestamp, task: &Task, said: &str, last: bool, report: Report, out: &mut Outbox) {
        self.owe_hook(now, task, &Words { said, last, report: &report, failure: None }, out);
        for listener in task.listeners(last) {
            let word = MailKind::Word {
                task: task.id().clone(),
                from: None,
                worker: task.order.worker.clone(),
                goal: task.order.goal.clone(),
                said: said.into(),
                last,
                report: report.clone(),
                failure: None,
                return_to: task.order.return_to.clone(),
            };
            self.mail.post(now, &listener, word, out);
        }
    }
}

/// Returns the news of watched files, in words and as data.
fn progress(verb: &NoteFiles) -> Option<Report> {
    let news = verb.news.as_ref()?;
    let named: Vec<&str> = news.files.iter().take(3).map(|it| &*it.path).collect();
    let rest = match news.count() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let summary = format!("Files changed: {}{rest}", named.join(", "));
    let details = json!({ "files_changed": news.value() });
    Some(Report {
        summary: super::progress::clip(&summary),
        details: Some(Json::from_value(&details)),
        ..Report::default()
    })
}
