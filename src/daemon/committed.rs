//! Gives leases back when the work is committed: the daemon looks at the commit of each work tree in which agents hold what
//! they write, and where that is another one, asks git which of their files are as committed.
//!
//! The daemon needs no git hook for this, and does not care which program commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Daemon;
use super::broker::{as_committed, in_commit};
use provost_base::limits::WIT_WORKTREES_MAX;
use provost_base::{RepoPath, Timestamp};
use provost_config::{Places, WorkTree};
use provost_domain::command::FreeCommitted;
use provost_domain::view::WrittenLeases;
use provost_domain::{Lock, Principal, Refusal};
use provost_service::{Provost, commit_of};
use provost_system as system;

/// How often work trees are looked at in which leases are held.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How far the time of a file may lag behind the clock, in milliseconds.
const TICK_MS: i64 = 20;

impl Daemon {
    /// Gives leases of committed work back from now on.
    pub(super) fn give_back_committed(&mut self) {
        let (provost, system) = (self.provost.clone(), self.system.clone());
        self.doors.spawn(give_back(provost, system, self.start.places.clone(), self.stop.clone()));
    }
}

/// Until the daemon stops: gives back what is committed.
async fn give_back(provost: Provost, system: Principal, places: Places, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Err(why) = look(&provost, &system, &places).await {
            tracing::debug!(%why, "leases of committed work are looked at again");
        }
    }
}

async fn look(provost: &Provost, system: &Principal, places: &Places) -> Result<(), Refusal> {
    let mut by_tree: BTreeMap<Box<str>, Vec<Arc<Lock>>> = BTreeMap::new();
    for lock in provost.view(WrittenLeases).await? {
        let tree = lock.writing.as_ref().map(|it| it.tree.clone()).unwrap_or_default();
        by_tree.entry(tree).or_default().push(lock);
    }
    for (tree, locks) in by_tree {
        let places = places.clone();
        let found = tokio::task::spawn_blocking(move || committed(&places, tree, &locks)).await;
        if let Some(verb) = found.ok().flatten() {
            let freed = provost.submit(system, verb).await?;
            tracing::info!(count = freed.count, "leases of committed work are free");
        }
    }
    Ok(())
}

/// The files of leases that are as committed, if the work tree is at another commit than when they were taken.
fn committed(places: &Places, tree: Box<str>, locks: &[Arc<Lock>]) -> Option<FreeCommitted> {
    let commit = commit_of(Path::new(&*tree))?;
    let mut files = Vec::new();
    // Those that are not there, by the commit at which they were taken.
    let mut absent: BTreeMap<&str, Vec<RepoPath>> = BTreeMap::new();
    for lock in locks {
        let taken_at = lock.writing.as_ref().and_then(|it| it.commit.as_deref());
        let Some(taken_at) = taken_at.filter(|it| *it != &*commit) else { continue };
        let file = lock.at.file().clone();
        match Path::new(&*tree).join(file.as_str()).symlink_metadata() {
            Ok(meta) if is_written(&meta, lock) => files.push(file),
            Ok(_) => {}
            Err(_) => absent.entry(taken_at).or_default().push(file),
        }
    }
    if files.is_empty() && absent.is_empty() {
        return None;
    }
    let work_trees = places.work_trees(WIT_WORKTREES_MAX);
    let work_tree = work_trees.into_iter().find(|it| it.top.to_string_lossy() == *tree)?;
    let found = deleted(&work_tree, absent).and_then(|deleted| {
        files.extend(deleted);
        files.sort();
        files.dedup();
        as_committed(&work_tree, &files)
    });
    match found {
        Ok(files) if files.is_empty() => None,
        Ok(files) => Some(FreeCommitted { tree, commit, files }),
        Err(why) => {
            tracing::debug!(why, "git does not say what is committed");
            None
        }
    }
}

/// Those of the absent files that were there when their leases were taken. The others are still to be made.
fn deleted(tree: &WorkTree, absent: BTreeMap<&str, Vec<RepoPath>>) -> Result<Vec<RepoPath>, String> {
    let mut deleted = Vec::new();
    for (taken_at, files) in absent {
        deleted.extend(in_commit(tree, taken_at, &files)?);
    }
    Ok(deleted)
}

/// Whether a file has changed since the grant of its lease. A write that its host's person has still to allow is no work that
/// another agent's commit could end.
fn is_written(meta: &std::fs::Metadata, lock: &Lock) -> bool {
    let changed = system::changed_at(meta).ok().and_then(|it| {
        it.duration_since(std::time::UNIX_EPOCH).ok().and_then(|it| i64::try_from(it.as_millis()).ok())
    });
    // Times of files lag behind the clock by a tick.
    changed.is_some_and(|it| Timestamp(it.saturating_add(TICK_MS)) >= lock.acquired_at)
}
