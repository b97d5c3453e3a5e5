//! The peer of a named pipe, by the token of its process.
//!
//! The pipe's descriptor admits only this user; this module checks it again. A process with a restricted
//! token, or in an app container, counts as jailed, regardless of its user: workers in a jail have a door of
//! their own.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::os::windows::io::AsHandle;

use super::Rejected;
use super::line::Line;
use provost_system::{Process, Token, process_behind};

/// The process that connected.
#[derive(Debug)]
pub struct PeerId {
    /// Its number; it means this process only as long as the process lives.
    pub pid: i32,
    same_user: bool,
    confined: bool,
    process: Process,
}

impl PeerId {
    /// Asks the kernel which process connected this pipe.
    ///
    /// # Errors
    /// [`Rejected::Gone`] if the process has ended or cannot be seen from here.
    pub fn of(pipe: &impl AsHandle) -> Result<Self, Rejected> {
        let gone = |_| Rejected::Gone;
        let number = process_behind(pipe.as_handle()).map_err(gone)?;
        // Held before it is looked at, so that its number cannot come to mean another process meanwhile.
        let process = Process::hold(number);
        let token = Token::of_process(number).map_err(gone)?;
        let us = Token::of_this_process().and_then(|token| token.user()).map_err(gone)?;
        let them = token.user().map_err(gone)?;
        // An unknown confinement counts as confined.
        let confined = token.is_confined().unwrap_or(true);
        let pid = i32::try_from(number).map_err(|_| Rejected::Gone)?;
        Ok(Self { pid, same_user: us == them, confined, process })
    }

    /// Checks that the peer runs as this user. Users have no numbers here; the check compares it with the daemon's own user.
    ///
    /// # Errors
    /// [`Rejected::OtherUser`].
    pub fn check_same_user(&self, _our_uid: u32) -> Result<(), Rejected> {
        if self.same_user { Ok(()) } else { Err(Rejected::OtherUser) }
    }

    /// Checks that the peer is not confined.
    ///
    /// # Errors
    /// [`Rejected::Jailed`].
    pub fn check_not_jailed(&self) -> Result<(), Rejected> {
        if self.confined { Err(Rejected::Jailed) } else { Ok(()) }
    }

    /// Refuses: no worker has a door of its own here, since none is confined.
    ///
    /// # Errors
    /// [`Rejected::NotJailed`].
    pub fn check_jailed(&self) -> Result<(), Rejected> {
        Err(Rejected::NotJailed)
    }

    /// Accepts every peer: ancestors are not looked at here, and their absence is no reason to refuse.
    ///
    /// # Errors
    /// None on this system, since it looks at nothing.
    pub fn check_seen(&self) -> Result<(), Rejected> {
        Ok(())
    }

    /// Returns `false`: any program, even a hidden one, can have a console, so a console proves no person.
    /// Approvals are answered with an approver's key here.
    pub fn is_at_terminal_outside(&self, _agents: &HashSet<i32>) -> bool {
        false
    }

    /// Returns an empty line: ancestors are not known here, where no terminal proves a person either.
    pub fn line(&self) -> &Line {
        static NOTHING: Line = Line::new();
        &NOTHING
    }

    /// Returns `None`: the process that started the peer is not known here.
    pub fn parent(&self) -> Option<i32> {
        None
    }

    /// Checks whether the process still runs.
    pub fn is_alive(&self) -> bool {
        !self.process.has_ended(std::time::Duration::ZERO)
    }
}

/// Returns an empty line, since ancestors are not known here.
pub fn line_of(_pid: i32) -> Line {
    Line::new()
}

/// Returns `None`: on this system, nothing ends with a process.
pub fn process_of_ours(_pid: u32) -> Option<provost_domain::ProcessMark> {
    None
}
