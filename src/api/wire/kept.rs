//! The changes of a task that the daemon has kept, read from the notes of the task.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// What a task's run has changed in its private copy, and what has become of that.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// `kept`, `partly_taken_in`, `taken_in`; `merged`, where the branch with the run's commit was merged by the daemon;
    /// `discarded`; `removed` by the daemon, since they were too old.
    pub state: String,
    /// How many changed files were kept.
    pub files: u32,
    /// Lines that are new in them.
    pub added: u64,
    /// Lines that are gone from them.
    pub removed: u64,
    /// How many of the files are written into the workspace.
    pub taken: u32,
    /// The branch into which they were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// The commands that show, write and discard them; none once they are gone.
    pub next: Vec<String>,
}

impl Changes {
    /// Whether they can be shown and written.
    pub fn are_there(&self) -> bool {
        !self.next.is_empty()
    }

    /// Whether a person has yet to take them in, or to discard them.
    pub fn wait(&self) -> bool {
        self.are_there() && !matches!(self.state.as_str(), "taken_in" | "merged")
    }

    /// Where they stand, in a few words.
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
    /// Lines that are new in it.
    pub added: u64,
    /// Lines that are gone from it.
    pub removed: u64,
}

/// What was kept of a task's changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangesKept {
    /// The named files; if there are any, at least one of them can be applied.
    pub files: Vec<ChangedLines>,
    /// Files that are not named.
    pub more: u64,
    /// Whether they can be applied.
    pub can_apply: bool,
    /// Files that were not kept, each with the reason.
    pub left_out: Vec<String>,
}

impl ChangesKept {
    /// The files in a few words, each name as it is shown.
    pub fn names(&self, shown: impl Fn(&str) -> String) -> String {
        const NAMED_MAX: usize = 8;
        let named: Vec<String> = self.files.iter().take(NAMED_MAX).map(|it| shown(&it.path)).collect();
        let more = (self.files.len() - named.len()) as u64 + self.more;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

impl Task {
    /// The changes that the daemon has kept. The newest note that speaks of them says which; in a task that
    /// was taken back, other notes follow it.
    pub fn changes_kept(&self) -> ChangesKept {
        // With the id quoted where a shell needs that; an earlier version has not quoted it.
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

    /// Whether it failed for another reason than a "no": a denial is no failure.
    pub fn has_failed(&self) -> bool {
        self.state == "failed" && !self.failed_by(&["policy_denied", "approval_denied"])
    }

    fn failed_by(&self, kinds: &[&str]) -> bool {
        self.failure.as_ref().is_some_and(|it| kinds.iter().any(|kind| it.get(kind).is_some()))
    }

    /// Whether its run may still go on although it is over, as of one that was taken back.
    pub fn may_still_run(&self) -> bool {
        let ended = |it: &Value| it["run_ended"].is_string() || it["exit_reason"].is_string();
        self.worker_kind == "cli"
            && !self.failed_by(&["policy_denied", "approval_denied", "approval_timeout"])
            && !self.notes.iter().any(|it| it.metadata.as_ref().is_some_and(ended))
    }
}
