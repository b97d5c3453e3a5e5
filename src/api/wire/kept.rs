//! The changes of a task that the daemon has kept, read from the notes of the task.

use serde_json::Value;

use super::Task;

/// What was kept of a task's changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangesKept {
    /// The files, of which at least one can be applied if there are any.
    pub files: Vec<String>,
    /// Whether they can be applied.
    pub can_apply: bool,
    /// Files that were not kept, each with the reason.
    pub left_out: Vec<String>,
}

impl ChangesKept {
    /// The files in a few words.
    pub fn names(&self) -> String {
        const NAMED_MAX: usize = 8;
        let named: Vec<&str> = self.files.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = self.files.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

impl Task {
    /// The changes that the daemon has kept. The newest note that speaks of them says which; in a task that
    /// was taken back, other notes follow it.
    pub fn changes_kept(&self) -> ChangesKept {
        let apply = format!("provost apply {}", self.id);
        let said = self.notes.iter().rev().filter_map(|note| note.details.as_ref());
        let about = |it: &&Value| it["apply"] == *apply || it["left_out"].is_array();
        let Some(details) = said.into_iter().find(about) else { return ChangesKept::default() };
        let texts = |it: &Value| it.as_array().into_iter().flatten().cloned().collect::<Vec<_>>();
        let text = |it: &Value| it.as_str().map(str::to_owned);
        ChangesKept {
            files: texts(&details["artifacts"]).iter().filter_map(|it| text(&it["path"])).collect(),
            can_apply: details["apply"] == *apply,
            left_out: texts(&details["left_out"]).iter().filter_map(text).collect(),
        }
    }

    /// Whether its run may still go on although it is over, as of one that was taken back.
    pub fn may_still_run(&self) -> bool {
        let ended = |it: &Value| it["run_ended"].is_string() || it["exit_reason"].is_string();
        self.worker_kind == "cli" && !self.notes.iter().any(|it| it.metadata.as_ref().is_some_and(ended))
    }
}
