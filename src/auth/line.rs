//! A process and its ancestors, as they were at the time of the check.

#[cfg(target_os = "linux")]
use std::collections::HashSet;

use provost_base::limits::ANCESTORS_MAX;
use provost_domain::{ProcessMark, ProcessSession};

/// A process, the one that has started it, and so on; nothing where it has ended or cannot be looked at. The
/// first process of the system is an ancestor of all others, and is left out.
#[derive(Clone, Default, Debug)]
pub struct Line {
    processes: Vec<(ProcessMark, usize)>,
    sessions: Vec<ProcessSession>,
    last: Option<i32>,
}

impl Line {
    /// A line without any known process.
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

    /// Those of the process's own session, up to its leader. Above it is another program's, which may have
    /// started others: but where no terminal controls the session, its program has made it of itself in
    /// passing, and what started it counts up to the leader of the next session that a terminal does control.
    pub(super) fn up_to_terminal(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        let last = self.sessions.iter().position(|it| it.terminal).unwrap_or(0);
        self.processes.iter().filter(move |it| it.1 <= last).map(|it| it.0)
    }

    /// Those of the process's own session, up to its leader.
    pub(super) fn in_session(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        self.processes.iter().filter(|it| it.1 == 0).map(|it| it.0)
    }

    /// All that are known, the process itself first.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        self.processes.iter().map(|it| it.0)
    }

    /// How many sessions lie at or below the topmost one with a process for which `is_known` holds.
    pub(super) fn sessions_up_to(&self, is_known: impl Fn(&ProcessMark) -> bool) -> usize {
        let mut known = self.processes.iter().rev().filter(|it| is_known(&it.0));
        known.next().map_or(0, |it| it.1 + 1)
    }

    /// Whether a process with one of these numbers is in it.
    #[cfg(target_os = "linux")]
    pub(super) fn has_one_of(&self, pids: &HashSet<i32>) -> bool {
        self.processes.iter().any(|it| i32::try_from(it.0.pid).is_ok_and(|pid| pids.contains(&pid)))
    }

    /// The sessions of the line, innermost first.
    pub(super) fn sessions(&self) -> &[ProcessSession] {
        &self.sessions
    }
}
