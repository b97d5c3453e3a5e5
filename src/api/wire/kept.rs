//! The changes of a task that the daemon has kept, read from the notes of the task.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// The changes that a task's run has made in its private copy, and their state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// `kept`, `partly_taken_in`, `taken_in`; `merged`, if the daemon merged the branch with the run's commit;
    /// `discarded`; `removed` by the daemon because of their age.
    pub state: String,
    /// The number of changed files that were kept.
    pub files: u32,
    /// The number of added lines in them.
    pub added: u64,
    /// The number of removed lines in them.
    pub removed: u64,
    /// The number of files that were written into the workspace.
    pub taken: u32,
    /// The branch into which the changes were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// The commands that show, write and discard the changes; empty once they are gone.
    pub next: Vec<String>,
}

impl Changes {
    /// Returns whether the changes can be shown and written.
    pub fn are_there(&self) -> bool {
        !self.next.is_empty()
    }

    /// Returns whether a person has yet to take the changes in, or to discard them.
    pub fn wait(&self) -> bool {
        self.are_there() && !matches!(self.state.as_str(), "taken_in" | "merged")
    }

    /// Returns the state of the changes, in a few words.
    pub fn in_words(&self) -> String {
        let files = |count: u32| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        match self.state.as_str() {
            "kept" => format!("{} to take in", files(self.files)),
            "partly_taken_in" => format!("{} of {} taken in", self.taken, files(self.files)),
            "taken_in" => format!("{} taken in", files(self.files)),
            "merged" => {
                let into = self.merged_into.as_deref().unwrap_or("a branch");
                format!("{} merged into {into}", files(self.files))
            }
            "discarded" if self.taken > 0 => {
                format!("changes discarded; {} taken in before", files(self.taken))
            }
            "discarded" => "changes discarded".into(),
            _ => "changes removed".into(),
        }
    }
}

/// A changed file of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangedLines {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// `file`, `test`, `delete`, `binary`.
    pub kind: String,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
}

/// The changes of a task that were kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangesKept {
    /// The named files; if there are any, at least one of them can be applied.
    pub files: Vec<ChangedLines>,
    /// The number of files that are not named.
    pub more: u64,
    /// Whether the changes can be applied.
    pub can_apply: bool,
    /// Files that were not kept, each with the reason.
    pub left_out: Vec<String>,
}

impl ChangesKept {
    /// Returns the names of the files, joined; `shown` makes each name safe to show.
    pub fn names(&self, shown: impl Fn(&str) -> String) -> String {
        const NAMED_MAX: usize = 8;
        let named: Vec<String> = self.files.iter().take(NAMED_MAX).map(|it| shown(&it.path)).collect();
        let more = (self.files.len() - named.len()) as u64 + self.more;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

impl Task {
    /// Returns the changes that the daemon has kept, according to the newest note with commands for them; in a task
    /// that was cancelled, other notes follow it.
    pub fn changes_kept(&self) -> ChangesKept {
        // The id is quoted if a shell needs that; an earlier version did not quote it.
        let is_apply =
            |it: &Value| it.as_str().is_some_and(|it| it.starts_with("provost ") && it.contains("apply "));
        let said = self.notes.iter().rev().filter_map(|note| note.details.as_ref());
        let about = |it: &&Value| is_apply(&it["apply"]) || it["left_out"].is_array();
        let Some(details) = said.into_iter().find(about) else { return ChangesKept::default() };
        let texts = |it: &Value| it.as_array().into_iter().flatten().cloned().collect::<Vec<_>>();
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let file = |it: &Value| {
            let kind = text(&it["type"]).unwrap_or_default();
            let number = |it: &Value| it.as_u64().unwrap_or_default();
            let (added, removed) = (number(&it["added"]), number(&it["removed"]));
            Some(ChangedLines { path: text(&it["path"])?, kind, added, removed })
        };
        ChangesKept {
            files: texts(&details["artifacts"]).iter().filter_map(file).collect(),
            more: details["more_artifacts"].as_u64().unwrap_or_default(),
            can_apply: is_apply(&details["apply"]) && self.changes.as_ref().is_none_or(Changes::are_there),
            left_out: texts(&details["left_out"]).iter().filter_map(text).collect(),
        }
    }

    /// Returns whether it failed for another reason than a denial.
    pub fn has_failed(&self) -> bool {
        self.state == "failed" && !self.failed_by(&["policy_denied", "approval_denied"])
    }

    fn failed_by(&self, kinds: &[&str]) -> bool {
        self.failure.as_ref().is_some_and(|it| kinds.iter().any(|kind| it.get(kind).is_some()))
    }

    /// Returns whether its run may still go on although the task is over, as after a cancellation.
    pub fn may_still_run(&self) -> bool {
        let ended = |it: &Value| it["run_ended"].is_string() || it["exit_reason"].is_string();
        self.worker_kind == "cli"
            && !self.failed_by(&["policy_denied", "approval_denied", "approval_timeout"])
            && !self.notes.iter().any(|it| it.metadata.as_ref().is_some_and(ended))
    }
}
