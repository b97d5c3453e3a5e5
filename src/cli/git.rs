//! `provost git`: hooks that check commits and pushes against contracts and locks, and tell other agents of an
//! agent's commits.
//!
//! Promises: an existing hook stays, and runs first; `uninstall` reverts `install`; a check ends within its deadline,
//! and reports if it was impossible. The jail protects hooks from workers, so only the user installs them.

mod agent;
mod changes;
mod checker;
mod hooks;
mod install;
mod merge;
mod run;

use clap::{Args, Subcommand};

use super::{CliError, RepoContext};

pub(super) use agent::{Tellers, tellers};
pub(super) use checker::{Checker, say_violations};
pub(super) use install::{install, standings, status, uninstall};

/// `provost git`.
#[derive(Subcommand, Debug)]
pub(super) enum Git {
    /// Install the hooks: pre-commit, prepare-commit-msg, post-commit and pre-push
    #[command(after_help = "Examples:\n  provost git install\n  provost git install --shared")]
    Install(Install),
    /// Remove the hooks, and restore the earlier ones
    #[command(after_help = "Example:\n  provost git uninstall")]
    Uninstall,
    /// Show the installed hooks
    #[command(after_help = "Examples:\n  provost git status\n  provost git status --json")]
    Status,
    /// Run a hook; the installed hooks call this
    #[command(subcommand, hide = true)]
    Run(run::Run),
}

/// `provost git install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// Install the hooks even if core.hooksPath leads to a folder that other repositories use
    #[arg(long)]
    shared: bool,
}

/// Says what does not work without git, and the next step; `None` where git is found outside of the repository.
pub(super) fn without_git(here: &RepoContext) -> Option<String> {
    let own = [here.places.root.as_path(), here.places.worktree.as_path()];
    let found = provost_system::find_program_outside("git", &own);
    found.is_none().then(|| {
        "git is not on the PATH: no commit ends a lease, and runs in work trees, `provost merge` and git's hooks do not work; \
         install git, then: provost down && provost up"
            .to_owned()
    })
}

pub(super) fn git(asked: Git, json: bool) -> Result<u8, CliError> {
    match asked {
        Git::Install(it) => install::install(&RepoContext::find(json)?, it.shared),
        Git::Uninstall => install::uninstall(&RepoContext::find(json)?),
        Git::Status => install::status(&RepoContext::find(json)?),
        Git::Run(it) => run::run(&it),
    }
}
