//! Git's index around a shell command of a host: the session's agent holds it from before the command until after it.
//!
//! What the session has taken so is bound to the host's process, and marked by its reason. A file for each command under way says
//! that it needs the index: the last of them gives it back. Claude Code alone holds it: Codex says nothing after a command that it
//! has refused or left behind, and Cursor does not say which of several has ended. Their commands wait until it is free, and are
//! refused as Claude Code's are if another agent has it longer. Commits of others are held by git's own hooks.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::afterwards;
use super::call::Told;
use super::run::{self, Run};
use super::waits::within;
use crate::git_index::{self, INDEX, Index, MOMENT_MS};
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_base::{AgentId, Digest};
use provost_client::{Client, ClientError};
use provost_system as system;

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
    let under_way = UnderWay::of(here, &agent);
    // Before it is taken: a command that ends now gives back nothing that this one needs.
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

/// Waits until no other agent has it, and says who has it if that takes too long: for a host that does not say when a command has
/// ended.
pub(super) fn wait(
    asked: &Run,
    here: &RepoContext,
    told: &Told,
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

/// What the session has of this work tree's index for its commands.
async fn held(here: &RepoContext, client: &Client) -> Result<Option<wire::Lock>, ClientError> {
    let mine = wire::Whose { mine: true, ..wire::Whose::default() };
    let name = git_index::name(here);
    let its = |it: &wire::Lock| it.symbol == name && it.reason.as_deref() == Some(REASON);
    Ok(client.locks(&mine).await?.locks.into_iter().find(its))
}

/// A command that begins while another one has it: it has its whole time, too.
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

/// Gives back what a command has taken once no other one of the session needs it, and nothing that the agent has asked for itself.
pub(super) fn give_back(here: &RepoContext, agent: &AgentId, told: &Told, until: Instant) {
    let under_way = UnderWay::of(here, agent);
    if !under_way.end(told) || under_way.is_any() {
        return;
    }
    let Ok(client) = here.speaking(agent.clone()) else { return };
    let _late = within(here, until, async {
        if let Some(lock) = held(here, &client).await? {
            git_index::give_back(here, &client, Some(lock.fence)).await;
            // One that has begun meanwhile has found it its own.
            if under_way.is_any() {
                let _another_has_it = git_index::take(here, &client, lock.pid, (REASON, &[]), 1).await;
            }
        }
        Ok(())
    });
}

/// The commands of a session that are under way in a work tree and write its index: a file for each.
struct UnderWay(PathBuf);

impl UnderWay {
    fn of(here: &RepoContext, agent: &AgentId) -> Self {
        let whose = format!("{} {agent}", here.places.worktree.display());
        Self(here.places.runtime.join("index").join(Digest::of(whose.as_bytes()).short()))
    }

    fn file(&self, told: &Told) -> PathBuf {
        self.0.join(Digest::of(afterwards::call(told).to_string().as_bytes()).short())
    }

    /// A command begins. Where its file cannot be written, the index is the session's until its time is up.
    fn begin(&self, told: &Told) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = self.file(told);
        // Written again, it is as old as the command.
        let _not_there = fs::remove_file(&file);
        let _unknown = system::make_private_folders(&self.0)
            .and_then(|()| system::private_file(&mut options).open(file).map(drop));
    }

    /// A command has ended, or does not begin; whether it was one of these.
    fn end(&self, told: &Told) -> bool {
        fs::remove_file(self.file(told)).is_ok()
    }

    /// Whether there is one left. Of a command whose end the host has not told, the file goes with the time of its lease.
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
