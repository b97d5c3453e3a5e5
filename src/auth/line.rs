//! A process and its ancestors, as they were at the time of the check.

#[cfg(target_os = "linux")]
use std::collections::HashSet;

use provost_base::limits::ANCESTORS_MAX;
use provost_domain::{ProcessMark, ProcessSession};

/// A process, its parent, and so on; empty if the process has ended or cannot be looked at. The first process of
/// the system is an ancestor of all others, and is left out.
#[derive(Clone, Default, Debug)]
pub struct Line {
    processes: Vec<(ProcessMark, usize)>,
    sessions: Vec<ProcessSession>,
    last: Option<i32>,
}

impl Line {
    /// Returns a line without any known process.
    pub const fn new() -> Self {
        Self { processes: Vec::new(), sessions: Vec::new(), last: None }
    }

    /// Checks whether no process is known.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Checks whether there is room for a further ancestor.
    pub(super) fn has_room(&self) -> bool {
        self.processes.len() < ANCESTORS_MAX
    }

    /// Adds the next ancestor: the number of its session, and whether a terminal controls it.
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

    /// Returns the processes of the process's own session, up to its leader. Above the leader is another program,
    /// which may have started others. But if no terminal controls the session, its program made it in passing, and
    /// its ancestors count up to the leader of the next session that a terminal does control.
    pub(super) fn up_to_terminal(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        let last = self.sessions.iter().position(|it| it.terminal).unwrap_or(0);
        self.processes.iter().filter(move |it| it.1 <= last).map(|it| it.0)
    }

    /// Returns the processes of the process's own session, up to its leader.
    pub(super) fn in_session(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        self.processes.iter().filter(|it| it.1 == 0).map(|it| it.0)
    }

    /// Returns all known processes, the process itself first.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessMark> + Clone {
        self.processes.iter().map(|it| it.0)
    }

    /// Returns the number of sessions at or below the topmost one with a process for which `is_known` holds.
    pub(super) fn sessions_up_to(&self, is_known: impl Fn(&ProcessMark) -> bool) -> usize {
        let mut known = self.processes.iter().rev().filter(|it| is_known(&it.0));
        known.next().map_or(0, |it| it.1 + 1)
    }

    /// Checks whether the line contains a process with one of these numbers.
    #[cfg(target_os = "linux")]
    pub(super) fn has_one_of(&self, pids: &HashSet<i32>) -> bool {
        self.processes.iter().any(|it| i32::try_from(it.0.pid).is_ok_and(|pid| pids.contains(&pid)))
    }

    /// Returns the sessions of the line, innermost first.
    pub(super) fn sessions(&self) -> &[ProcessSession] {
        &self.sessions
    }
}
