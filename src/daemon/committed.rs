//! Returns leases when the work is committed: the daemon checks the commit of each work tree in which agents hold leases by
//! writing, and if the commit has changed, asks git which of their files are as committed.
//!
//! The daemon needs no git hook for this, and any program may commit.

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
use provost_service::{Provost, commit_of, git_dir_of, nested_repository};
use provost_system as system;

/// How often work trees with leases are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How far the time of a file may be behind the clock, in milliseconds.
const TICK_MS: i64 = 20;

impl Daemon {
    /// Begins to return leases of committed work.
    pub(super) fn give_back_committed(&mut self) {
        let (provost, system) = (self.provost.clone(), self.system.clone());
        self.doors.spawn(give_back(provost, system, self.start.places.clone(), self.stop.clone()));
    }
}

/// Returns the leases of committed work until the daemon stops.
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
        let tree = lock.ends_with_commit().map(|it| it.0.into()).unwrap_or_default();
        by_tree.entry(tree).or_default().push(lock);
    }
    for (tree, locks) in by_tree {
        let places = places.clone();
        let found = tokio::task::spawn_blocking(move || committed(&places, &tree, locks)).await;
        for verb in found.unwrap_or_default() {
            let freed = provost.submit(system, verb).await?;
            tracing::info!(count = freed.count, "leases of committed work are free");
        }
    }
    Ok(())
}

/// Returns the committed files of a work tree, and of the repositories in it, such as submodules: each has a commit of its own.
fn committed(places: &Places, tree: &str, locks: Vec<Arc<Lock>>) -> Vec<FreeCommitted> {
    let top = Path::new(tree);
    let mut by_repository: BTreeMap<Option<RepoPath>, Vec<Arc<Lock>>> = BTreeMap::new();
    for lock in locks {
        by_repository.entry(nested_repository(top, lock.at.file())).or_default().push(lock);
    }
    let found = by_repository.iter().filter_map(|(nested, locks)| {
        let Some(nested) = nested else {
            let work_tree = || {
                let all = places.work_trees(WIT_WORKTREES_MAX);
                all.into_iter().find(|it| it.top == top)
            };
            return committed_in(top, work_tree, "", locks);
        };
        let top = top.join(nested.as_str());
        let work_tree = || Some(WorkTree { git_dir: git_dir_of(&top)?, top: top.clone() });
        committed_in(&top, work_tree, &format!("{nested}/"), locks)
    });
    let verb = |(commit, files)| FreeCommitted { tree: tree.into(), commit, files };
    found.map(verb).collect()
}

/// Returns the files of locks that are as committed in a repository, if its commit has changed since they were taken; and that
/// commit. The files are named with the repository's folder before them.
fn committed_in(
    top: &Path,
    work_tree: impl FnOnce() -> Option<WorkTree>,
    folder: &str,
    locks: &[Arc<Lock>],
) -> Option<(Box<str>, Vec<RepoPath>)> {
    let commit = commit_of(top)?;
    let mut files = Vec::new();
    // The files that do not exist, by the commit at which their locks were taken.
    let mut absent: BTreeMap<&str, Vec<RepoPath>> = BTreeMap::new();
    for lock in locks {
        let taken_at = lock.ends_with_commit().and_then(|it| it.1);
        let Some(taken_at) = taken_at.filter(|it| *it != &*commit) else { continue };
        let Some(file) = lock.at.file().as_str().strip_prefix(folder) else { continue };
        let Ok(file) = RepoPath::parse(file) else { continue };
        match top.join(file.as_str()).symlink_metadata() {
            Ok(meta) if is_written(&meta, lock) => files.push(file),
            Ok(_) => {}
            Err(_) => absent.entry(taken_at).or_default().push(file),
        }
    }
    if files.is_empty() && absent.is_empty() {
        return None;
    }
    let work_tree = work_tree()?;
    let found = deleted(&work_tree, absent).and_then(|deleted| {
        files.extend(deleted);
        files.sort();
        files.dedup();
        as_committed(&work_tree, &files)
    });
    match found {
        Ok(files) if files.is_empty() => None,
        Ok(files) => {
            let whole = |it: &RepoPath| RepoPath::parse(&format!("{folder}{it}")).ok();
            Some((commit, files.iter().filter_map(whole).collect()))
        }
        Err(why) => {
            tracing::debug!(why, "git does not say what is committed");
            None
        }
    }
}

/// Returns those of the missing files that existed when their leases were taken. The others have not been made yet.
fn deleted(tree: &WorkTree, absent: BTreeMap<&str, Vec<RepoPath>>) -> Result<Vec<RepoPath>, String> {
    let mut deleted = Vec::new();
    for (taken_at, files) in absent {
        deleted.extend(in_commit(tree, taken_at, &files)?);
    }
    Ok(deleted)
}

/// Checks whether a file has changed since the grant of its lease. A write that the person at its host has not allowed yet is no
/// work that another agent's commit could end.
fn is_written(meta: &std::fs::Metadata, lock: &Lock) -> bool {
    let changed = system::changed_at(meta).ok().and_then(|it| {
        it.duration_since(std::time::UNIX_EPOCH).ok().and_then(|it| i64::try_from(it.as_millis()).ok())
    });
    // Times of files are behind the clock by up to a tick.
    changed.is_some_and(|it| Timestamp(it.saturating_add(TICK_MS)) >= lock.acquired_at)
}
