//! The calls to Windows that a jail needs, one subject for each file, each call behind a safe function.

mod job;
mod process;
mod text;
mod token;

pub(super) use job::{Job, Limit};
pub(super) use process::{Process, Started, inheritable, spawn};
pub(super) use text::make_folder;
pub(super) use token::WriteRestricted;

/// The exit code of a process that was killed, as a shell reports it.
pub(super) const KILLED: u32 = 137;
