//! The findings of a search through a command, and the bounds of its cost.
//!
//! Scripts call each other without end, texts double, and lines of a megabyte stand within each other. A search that
//! costs more than its bounds gives up, and the command then counts as one that may write any file.

use std::collections::HashSet;
use std::path::{Component, Path};
use std::time::Instant;

use super::Written;
use provost_base::limits::{
    SHELL_ASKING_COST, SHELL_COST_MAX, SHELL_DEPTH_MAX, SHELL_FOUND_MAX, SHELL_LINES_MAX,
    SHELL_SCRIPT_COST_MAX,
};

/// The findings.
pub(super) struct Found {
    all: HashSet<Written>,
    until: Instant,
    lines: usize,
    depth: usize,
    cost: usize,
    gave_up: bool,
}

impl Found {
    pub(super) fn until(until: Instant) -> Self {
        Self { all: HashSet::new(), until, lines: 0, depth: 0, cost: 0, gave_up: false }
    }

    pub(super) fn push(&mut self, written: Written) {
        if matches!(&written, Written::Path(path) if is_device(path)) {
            return;
        }
        self.all.insert(written);
        self.gave_up |= self.all.len() > SHELL_FOUND_MAX;
    }

    pub(super) fn extend(&mut self, written: impl IntoIterator<Item = Written>) {
        written.into_iter().for_each(|it| self.push(it));
    }

    /// Records that other writes cannot be found.
    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Checks whether so many more bytes may be read; if not, the search gives up.
    pub(super) fn affords(&mut self, bytes: usize) -> bool {
        self.cost = self.cost.saturating_add(bytes);
        self.gave_up |= self.cost > SHELL_COST_MAX || Instant::now() > self.until;
        !self.gave_up
    }

    /// Returns the deadline for asking another program, if one may be asked.
    pub(super) fn may_ask(&mut self) -> Option<Instant> {
        self.affords(SHELL_ASKING_COST).then_some(self.until)
    }

    /// Counts one more line, and checks whether it may be read.
    pub(super) fn reads(&mut self, line: &str) -> bool {
        self.lines += 1;
        self.gave_up |= self.lines > SHELL_LINES_MAX;
        self.affords(line.len())
    }

    /// Searches one level deeper.
    pub(super) fn deeper(&mut self, search: impl FnOnce(&mut Self)) {
        if self.depth >= SHELL_DEPTH_MAX {
            return self.give_up();
        }
        self.depth += 1;
        search(self);
        self.depth -= 1;
    }

    /// Searches within a script that a command starts: if the script costs too much, the findings up to then count. Scripts
    /// of projects are longer than lines, and an agent that starts one does not see how much reading it would cost.
    pub(super) fn as_far_as_it_goes(&mut self, search: impl FnOnce(&mut Self)) {
        let (gave_up, cost, lines, depth) = (self.gave_up, self.cost, self.lines, self.depth);
        self.cost = cost.max(SHELL_COST_MAX - SHELL_SCRIPT_COST_MAX);
        let begun = self.cost;
        self.deeper(search);
        let spent = (self.cost - begun).min(SHELL_SCRIPT_COST_MAX);
        (self.cost, self.lines, self.depth) = (cost + spent, lines, depth);
        self.gave_up = gave_up || Instant::now() > self.until;
    }

    /// Returns the writes that a search finds, without adding them here.
    pub(super) fn apart(&mut self, search: impl FnOnce(&mut Self)) -> HashSet<Written> {
        let before = std::mem::take(&mut self.all);
        self.deeper(search);
        std::mem::replace(&mut self.all, before)
    }

    pub(super) fn written(self) -> Vec<Written> {
        match self.gave_up {
            true => vec![Written::Anything],
            false => self.all.into_iter().collect(),
        }
    }
}

/// Checks whether a path is one of the system's devices, such as `/dev/null`, and so no file that an agent can hold.
fn is_device(path: &Path) -> bool {
    // These folders have files of shared memory.
    const OF_FILES: [&str; 2] = ["shm", "mqueue"];
    let Ok(below) = path.strip_prefix("/dev") else { return false };
    let mut parts = below.components();
    let is_plain = parts.clone().all(|it| matches!(it, Component::Normal(_)));
    is_plain && parts.next().is_some_and(|it| !OF_FILES.iter().any(|name| it.as_os_str() == *name))
}
