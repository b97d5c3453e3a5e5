//! A process and those above it, as they were when it was looked at.

use crate::base::limits::ANCESTORS_MAX;
use crate::domain::{ProcessMark, ProcessSession};

/// A process, the one that has started it, and so on; nothing where it has ended or cannot be looked at. The first process of
/// the system is everybody's, and is left out.
#[derive(Clone, Default, Debug)]
pub struct Line {
    processes: Vec<(ProcessMark, usize)>,
    sessions: Vec<ProcessSession>,
    last: Option<i32>,
}

impl Line {
    /// Nothing.
    pub const fn new() -> Self {
        Self { processes: Vec::new(), sessions: Vec::new(), last: None }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Whether there is room for a further process above.
    pub(super) fn has_room(&self) -> bool {
        self.processes.len() < ANCESTORS_MAX
    }

    /// One more process above: the number of its session, and whether a terminal controls it.
    pub(super) fn rises(&mut self, mark: ProcessMark, session: i32, terminal: bool) {
        if self.last.replace(session) == Some(session)
            && let Some(it) = self.sessions.last_mut()
        {
            *it = ProcessSession { top: mark, terminal: it.terminal || terminal };
        } else {
            self.sessions.push(ProcessSession { top: mark, terminal });
        }
        self.processes.push((mark, self.sessions.len() - 1));
    }

    /// Those of the process's own session, up to its leader. Above it is another program's, which may have started others.
    pub(super) fn in_session(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        self.processes.iter().filter(|it| it.1 == 0).map(|it| it.0)
    }

    /// How many sessions lie at or below the topmost one of which a process is known so.
    pub(super) fn sessions_up_to(&self, is_known: impl Fn(&ProcessMark) -> bool) -> usize {
        let mut known = self.processes.iter().rev().filter(|it| is_known(&it.0));
        known.next().map_or(0, |it| it.1 + 1)
    }

    /// Its sessions, innermost first.
    pub(super) fn sessions(&self) -> &[ProcessSession] {
        &self.sessions
    }
}
