//! Git's index around a shell command of a host: the session's agent holds it from before the command until after it.
//!
//! The session's lock is bound to the host's process, and marked by its reason. A file for each running command records that it needs
//! the index: the last of them releases it. Only Claude Code's hooks hold it: Codex reports nothing after a command that it has refused
//! or left behind, and Cursor does not tell which of several commands has ended. Their commands wait until the index is free, and are
//! refused, as Claude Code's are, if another agent has it longer. For commits of others, git's own hooks hold it.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::afterwards;
use super::call::HookInput;
use super::run::{self, Run};
use super::waits::within;
use crate::git_index::{self, INDEX, Index, MOMENT_MS};
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_base::{AgentId, Digest};
use provost_client::{Client, ClientError};
use provost_system as system;

/// The longest time that a command waits for it.
const WAIT: Duration = Duration::from_secs(3);

/// The reason that others read; it tells a command's lock from one that the agent has asked for itself.
const REASON: &str = "a git command of its session";

/// Checks whether a folder is in this work tree.
pub(super) fn is_here(here: &RepoContext, folder: &Path) -> bool {
    let real = |path: &Path| provost_system::real_path(path).unwrap_or_else(|_| path.to_owned());
    let (folder, tree) = (real(folder), real(&here.places.worktree));
    // For another work tree inside this one, the nearest `.git` is not at this tree's top.
    let top = folder.ancestors().find(|it| it.join(".git").exists());
    folder.starts_with(&tree) && top.is_none_or(|it| it == tree)
}

/// Takes the index for the session; returns the holder if that is another agent. Without a daemon no agent has it.
pub(super) fn take(
    asked: &Run,
    here: &RepoContext,
    told: &HookInput,
    until: Instant,
) -> Result<Option<String>, CliError> {
    let agent = run::agent(asked, told, here)?;
    let under_way = UnderWay::of(here, &agent);
    // The command is recorded before the index is taken: then a command that ends now does not release it.
    under_way.begin(told);
    let client = here.speaking(agent)?;
    let pid = run::host_process(asked, told);
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(1);
    let taken = within(here, until, async {
        match git_index::take(here, &client, pid, (REASON, &[]), wait_ms).await {
            Err(ClientError::NotRunning(_)) => Ok(Index::Ours),
            Ok(Index::Ours) => {
                renew(here, &client).await?;
                Ok(Index::Ours)
            }
            taken => Ok(taken?),
        }
    });
    if !matches!(taken, Ok(Index::Taken | Index::Ours)) {
        under_way.end(told);
    }
    let taken = taken?;
    Ok(match taken {
        Index::Taken | Index::Ours => None,
        Index::Held(who) => Some(refused(&who)),
    })
}

/// Waits until no other agent has the index, and returns the holder if that takes too long: for a host that does not
/// report the end of a command.
pub(super) fn wait(
    asked: &Run,
    here: &RepoContext,
    told: &HookInput,
    until: Instant,
) -> Result<Option<String>, CliError> {
    let client = here.speaking(run::agent(asked, told, here)?)?;
    let pid = run::host_process(asked, told);
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(1);
    within(here, until, async {
        match git_index::take(here, &client, pid, (REASON, &[]), wait_ms).await {
            Ok(Index::Taken) => {
                git_index::give_back(here, &client, None).await;
                Ok(None)
            }
            Ok(Index::Ours) | Err(ClientError::NotRunning(_)) => Ok(None),
            Ok(Index::Held(who)) => Ok(Some(refused(&who))),
            Err(error) => Err(error.into()),
        }
    })
}

fn refused(who: &str) -> String {
    format!(
        "Not run: {who}. What you stage, stash or commit now would mix with that agent's. Wait for it (lock_acquire with symbol \
         {INDEX} and wait_s, then lock_release), or work on something else and commit later."
    )
}

/// Returns the lock on this work tree's index that the session has for its commands.
async fn held(here: &RepoContext, client: &Client) -> Result<Option<wire::Lock>, ClientError> {
    let mine = wire::Whose { mine: true, ..wire::Whose::default() };
    let name = git_index::name(here);
    let its = |it: &wire::Lock| it.symbol == name && it.reason.as_deref() == Some(REASON);
    Ok(client.locks(&mine).await?.locks.into_iter().find(its))
}

/// Renews the lock for a command that begins while another one has it, so that this one has its whole time, too.
async fn renew(here: &RepoContext, client: &Client) -> Result<(), ClientError> {
    if held(here, client).await?.is_some() {
        let request = wire::TakeLock {
            symbol: INDEX.into(),
            ttl_ms: Some(MOMENT_MS),
            at_least: true,
            reason: Some(REASON.into()),
            worktree: here.linked_worktree(),
            ..wire::TakeLock::default()
        };
        client.lock(&request).await?;
    }
    Ok(())
}

/// Releases the lock of the session's commands once none of them needs it, but no lock that the agent has asked for itself.
pub(super) fn give_back(here: &RepoContext, agent: &AgentId, told: &HookInput, until: Instant) {
    let under_way = UnderWay::of(here, agent);
    if !under_way.end(told) || under_way.is_any() {
        return;
    }
    let Ok(client) = here.speaking(agent.clone()) else { return };
    let _late = within(here, until, async {
        if let Some(lock) = held(here, &client).await? {
            git_index::give_back(here, &client, Some(lock.fence)).await;
            // A command that began in the meantime has relied on the lock, so it is taken again.
            if under_way.is_any() {
                let _another_has_it = git_index::take(here, &client, lock.pid, (REASON, &[]), 1).await;
            }
        }
        Ok(())
    });
}

/// The running commands of a session that write a work tree's index: a file for each.
struct UnderWay(PathBuf);

impl UnderWay {
    fn of(here: &RepoContext, agent: &AgentId) -> Self {
        let whose = format!("{} {agent}", here.places.worktree.display());
        Self(here.places.runtime.join("index").join(Digest::of(whose.as_bytes()).short()))
    }

    fn file(&self, told: &HookInput) -> PathBuf {
        self.0.join(Digest::of(afterwards::call(told).to_string().as_bytes()).short())
    }

    /// Records that a command begins. Where its file cannot be written, the session keeps the index until its time is up.
    fn begin(&self, told: &HookInput) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = self.file(told);
        // A new file is as old as the command.
        let _not_there = fs::remove_file(&file);
        let _unknown = system::make_private_folders(&self.0)
            .and_then(|()| system::private_file(&mut options).open(file).map(drop));
    }

    /// Records that a command has ended, or does not begin; returns whether it was recorded.
    fn end(&self, told: &HookInput) -> bool {
        fs::remove_file(self.file(told)).is_ok()
    }

    /// Checks whether a recorded command is left. If the host has not reported the end of a command, its file expires with its lease.
    fn is_any(&self) -> bool {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let is_old = |it: &fs::DirEntry| {
            let begun = it.metadata().and_then(|it| it.modified()).ok();
            begun
                .and_then(|it| SystemTime::now().duration_since(it).ok())
                .is_some_and(|it| it > Duration::from_millis(MOMENT_MS))
        };
        let (old, new): (Vec<_>, Vec<_>) = files.partition(is_old);
        for file in old {
            let _not_there = fs::remove_file(file.path());
        }
        !new.is_empty()
    }
}
