//! `provost git`: hooks that hold commits and pushes to contracts and locks, and tell commits of agents to the others.
//!
//! Promises: a hook that was there stays, and has the first word; what `install` did, `uninstall` takes back; a check
//! ends within its deadline, and says when it was not made. Hooks are protected from workers, so that only the user
//! puts them there.

mod agent;
mod changes;
mod checker;
mod hooks;
mod install;
mod merge;
mod run;

use clap::{Args, Subcommand};

use super::{Complaint, Here};

pub(super) use agent::{Tellers, tellers};
pub(super) use checker::{Checker, say_violations};
pub(super) use install::{install, standings, status, uninstall};

/// `provost git`.
#[derive(Subcommand, Debug)]
pub(super) enum Git {
    /// Put the hooks in place: pre-commit, prepare-commit-msg, post-commit and pre-push
    #[command(after_help = "Examples:\n  provost git install\n  provost git install --shared")]
    Install(Install),
    /// Take them away, and put back what was there before
    #[command(after_help = "Example:\n  provost git uninstall")]
    Uninstall,
    /// Show which are in place
    #[command(after_help = "Examples:\n  provost git status\n  provost git status --json")]
    Status,
    /// What the hooks call
    #[command(subcommand, hide = true)]
    Run(run::Run),
}

/// `provost git install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// Also where core.hooksPath leads to a folder that other repositories use
    #[arg(long)]
    shared: bool,
}

pub(super) fn git(asked: Git, json: bool) -> Result<u8, Complaint> {
    match asked {
        Git::Install(it) => install::install(&Here::find(json)?, it.shared),
        Git::Uninstall => install::uninstall(&Here::find(json)?),
        Git::Status => install::status(&Here::find(json)?),
        Git::Run(it) => run::run(&it),
    }
}
