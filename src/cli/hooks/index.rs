//! Git's index around a shell command of a host: the session's agent holds it from before the command until after it.
//!
//! What the session has taken so is bound to the host's process, and marked by its reason. This is done for Claude Code alone: Codex
//! says nothing after a command that it has refused or left behind, and Cursor does not say which of several has ended. Commits of
//! others are held by git's own hooks.

use std::path::Path;
use std::time::{Duration, Instant};

use super::call::Told;
use super::run::{self, Run, within};
use crate::git_index::{self, INDEX, Index};
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_base::AgentId;

/// How long a command waits for it, at most.
const WAIT: Duration = Duration::from_secs(3);

/// What others read as the reason; by it, what a command has taken is told from what its agent has asked for.
const REASON: &str = "a git command of its session";

/// Whether a folder is in this work tree.
pub(super) fn is_here(here: &RepoContext, folder: &Path) -> bool {
    let real = |path: &Path| provost_system::real_path(path).unwrap_or_else(|_| path.to_owned());
    let (folder, tree) = (real(folder), real(&here.places.worktree));
    // Of another work tree that lies in this one, this is not the top.
    let top = folder.ancestors().find(|it| it.join(".git").exists());
    folder.starts_with(&tree) && top.is_none_or(|it| it == tree)
}

/// Takes it for the session; says who has it if that is another agent. Without a daemon no agent has it.
pub(super) fn take(
    asked: &Run,
    here: &RepoContext,
    told: &Told,
    until: Instant,
) -> Result<Option<String>, CliError> {
    let agent = run::agent(asked, told, here)?;
    let client = here.client().speaking_as(Some(agent));
    let pid = run::host_process(asked, told);
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(1);
    let taken = within(until, async {
        match git_index::take(here, &client, pid, (REASON, &[]), wait_ms).await {
            Err(provost_client::ClientError::NotRunning(_)) => Ok(Index::Ours),
            taken => Ok(taken?),
        }
    })?;
    Ok(match taken {
        Index::Taken | Index::Ours => None,
        Index::Held(who) => Some(format!(
            "Not run: {who}. What you stage, stash or commit now would mix with that agent's. Wait for it (lock_acquire with symbol \
             {INDEX} and wait_s, then lock_release), or work on something else and commit later."
        )),
    })
}

/// Gives back what a command has taken, and nothing that the agent has asked for itself.
pub(super) fn give_back(here: &RepoContext, agent: &AgentId, until: Instant) {
    let client = here.client().speaking_as(Some(agent.clone()));
    let _late = within(until, async {
        let mine = wire::Whose { mine: true, ..wire::Whose::default() };
        let locks = client.locks(&mine).await?.locks;
        let its = |it: &&wire::Lock| it.symbol.starts_with(INDEX) && it.reason.as_deref() == Some(REASON);
        if let Some(lock) = locks.iter().find(its) {
            git_index::give_back(here, &client, Some(lock.fence)).await;
        }
        Ok(())
    });
}
