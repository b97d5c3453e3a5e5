//! The difference that the approver of an apply sees, up to the length that a person reads.

use std::time::{Duration, Instant};

use super::change_plan::Plan;
use super::diff::{self, Budget};
use super::file::Found;
use provost_base::RepoPath;
use provost_base::limits::{APPROVAL_DIFF_BYTES_MAX, DIFF_MS_MAX};

/// Differences of one apply, in git's form, up to a bound.
pub struct ApprovalDiff {
    text: String,
    until: Instant,
    /// Files whose difference did not fit.
    more: usize,
}

impl Default for ApprovalDiff {
    fn default() -> Self {
        let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
        Self { text: String::new(), until, more: 0 }
    }
}

impl ApprovalDiff {
    /// Adds a file. `kept` is its new content if the plan does not contain it.
    pub fn add(&mut self, path: &RepoPath, found: Option<&Found>, plan: &Plan, kept: Option<&[u8]>) {
        let left = APPROVAL_DIFF_BYTES_MAX.saturating_sub(self.text.len());
        if left == 0 || Instant::now() > self.until {
            self.more += 1;
            return;
        }
        let old = found.map(|it| it.bytes.as_slice());
        let (new, mode) = match plan {
            Plan::Same => return,
            Plan::Gone => (None, None),
            Plan::Says { bytes, mode } => (Some(kept.unwrap_or(bytes)), *mode),
        };
        let mode = found.and_then(|it| it.mode).or(mode);
        let budget = Budget { until: self.until, bytes: left };
        let text = diff::unified(path.as_str(), mode, old, new, budget);
        let text = match plan {
            Plan::Says { mode: new_mode, .. } => {
                diff::with_mode(text, (found.and_then(|it| it.mode), *new_mode), old.is_some() && old == new)
            }
            Plan::Same | Plan::Gone => text,
        };
        match text.len() <= left {
            true => self.text.push_str(&text),
            false => self.more += 1,
        }
    }

    /// Notes that a file that was added is not written after all.
    pub fn withhold(&mut self, path: &RepoPath) {
        let line = format!("{path} is not written: what belongs to its change cannot be.\n");
        match self.text.len() + line.len() <= APPROVAL_DIFF_BYTES_MAX {
            true => self.text.push_str(&line),
            false => self.more += 1,
        }
    }

    /// Returns the whole text, with a note about the files that were left out.
    pub fn done(mut self) -> Box<str> {
        if self.more > 0 {
            self.text.push_str(&format!(
                "The differences of {} more files are too long to be shown.\n",
                self.more
            ));
        }
        self.text.into()
    }
}
