//! What is asked of Windows for a jail, one subject per file, each call behind a safe function.

mod job;
mod process;
mod text;
mod token;

pub(super) use job::{Job, Limit};
pub(super) use process::{Process, Started, inheritable, spawn};
pub(super) use text::make_folder;
pub(super) use token::WriteRestricted;

/// The exit code of a process that was ended, as a shell has it.
pub(super) const KILLED: u32 = 137;
