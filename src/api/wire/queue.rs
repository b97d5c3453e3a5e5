//! The tasks for which a task waits, as text.

use super::Task;

/// The most tasks that a sentence names.
const NAMED_MAX: usize = 3;

impl Task {
    /// Returns the tasks that it waits for, in a few words; `None` if there are none. Control characters in ids are not replaced here.
    pub fn waits_in_words(&self) -> Option<String> {
        let all = &self.waits_for_tasks;
        if all.is_empty() {
            return None;
        }
        let named = all.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let noun = if all.len() == 1 { "task" } else { "tasks" };
        Some(match all.len().saturating_sub(NAMED_MAX) {
            0 => format!("waits for {noun} {named}"),
            more => format!("waits for {noun} {named} and {more} more"),
        })
    }
}
