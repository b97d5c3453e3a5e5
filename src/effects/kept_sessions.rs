//! Homes of agents' sessions, which stay after a run so that a later one can go on with the session. Blocking.
//!
//! Beside the folder of private copies is another one, with a folder for each session, named after the session's first task. Its
//! `home` is the home of every run in the session. The files in it are the agent's and not trusted: the daemon reads none of them.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use provost_base::TaskId;
use provost_base::limits::{CHANGESETS_KEPT_DAYS, SESSIONS_KEPT_MAX};
use provost_domain::artifact::shelf;
use provost_jail::{ResolvedPath, find_place};
use provost_system::{self as system, Ages};
use provost_workspace::copy::remove;

/// The extension of the folder of sessions.
const SESSIONS: &str = "sessions";
/// The file that records the state from which a run's copy was made.
const BASE: &str = "base.json";
/// The extension of the file with the ages of sessions.
const AGES: &str = "session-ages";
/// The file whose age is that of the session's last use.
const USED: &str = "used";

/// All kept sessions, and the set of those that a run uses now.
#[derive(Clone)]
pub(super) struct KeptSessions {
    folder: PathBuf,
    busy: Arc<Mutex<HashSet<TaskId>>>,
    tidying: Arc<Mutex<()>>,
}

/// A session that a run uses. When it is dropped, another run can go on with the session.
pub(super) struct SessionLease {
    kept: KeptSessions,
    /// The first task of the session.
    pub(super) of: TaskId,
    /// The home of the run.
    pub(super) home: ResolvedPath,
}

impl KeptSessions {
    pub(super) fn beside(copies: &Path) -> Self {
        Self { folder: copies.with_extension(SESSIONS), busy: Arc::default(), tidying: Arc::default() }
    }

    fn place(&self, of: &TaskId) -> PathBuf {
        self.folder.join(shelf(of))
    }

    /// Begins a session with this task as its first.
    pub(super) fn begin(&self, of: &TaskId) -> Result<SessionLease, String> {
        let made = |error: io::Error| format!("a home for its session cannot be made: {error}");
        let place = self.place(of);
        if place.exists() {
            remove(&place).map_err(made)?;
        }
        system::make_private_folders(&place.join("home")).map_err(made)?;
        self.take(of)
    }

    /// Goes on with the session of this first task.
    pub(super) fn go_on(&self, of: &TaskId) -> Result<SessionLease, String> {
        if !self.place(of).join("home").is_dir() {
            return Err(format!(
                "the home of its session, which began with task {of}, is not kept any more; delegate the work again, without --continue"
            ));
        }
        self.take(of)
    }

    fn take(&self, of: &TaskId) -> Result<SessionLease, String> {
        let home = self.place(of).join("home");
        // An agent that removed its home's permissions has shut the next run out of it.
        let opened = open_to_owner(&home).map_err(|error| error.to_string());
        let home = opened.and_then(|()| find_place(&home).map_err(|error| error.to_string()));
        let home = home.map_err(|error| {
            format!(
                "the home of its session cannot be used: {error}; delegate the work again, without --continue"
            )
        })?;
        if !self.busy().insert(of.clone()) {
            return Err(format!("another run is in the session that began with task {of}; wait for its end"));
        }
        Ok(SessionLease { kept: self.clone(), of: of.clone(), home })
    }

    /// Returns the file that records the state from which the copy of a session's run was made.
    pub(super) fn base_of(&self, of: &TaskId) -> PathBuf {
        self.place(of).join(BASE)
    }

    /// Removes sessions that are too old, and the oldest of too many; never one that a run uses.
    pub(super) fn tidy(&self) {
        let _one_at_a_time = self.tidying.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let listed = listed.filter(|path| path.is_dir());
        let used = |path: &Path| {
            let modified =
                fs::metadata(path.join(USED)).or_else(|_| fs::metadata(path)).and_then(|it| it.modified());
            modified.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let busy: HashSet<PathBuf> = self.busy().iter().map(|of| self.place(of)).collect();
        let mut kept: Vec<(SystemTime, PathBuf)> =
            listed.filter(|it| !busy.contains(it)).map(|path| (used(&path), path)).collect();
        // A session that is used again is another one here, and young.
        let name = |(used, path): &(SystemTime, PathBuf)| -> Box<str> {
            let used = used.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
            format!("{} {used}", path.file_name().unwrap_or_default().to_string_lossy()).into()
        };
        // A clock that is set ahead makes no session old.
        let ages = Ages::look(self.folder.with_extension(AGES), kept.iter().map(name));
        if let Err(err) = ages.keep() {
            tracing::warn!(%err, "the ages of the homes of sessions cannot be saved");
        }
        kept.sort_by_cached_key(|it| (ages.of(&name(it)), std::cmp::Reverse(it.0)));
        let most = Duration::from_secs(CHANGESETS_KEPT_DAYS * 24 * 60 * 60);
        let is_old = |it: &(SystemTime, PathBuf)| ages.of(&name(it)) >= most;
        let gone = kept.iter().enumerate().filter(|(number, it)| *number >= SESSIONS_KEPT_MAX || is_old(it));
        for (_, (_, path)) in gone {
            if let Err(err) = remove(path) {
                tracing::warn!(%err, path = %path.display(), "the home of an old session was not removed");
            }
        }
    }

    fn busy(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        // Inserting and removing leave it valid at every moment.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores the owner's permissions of a home, which its agent may have removed. No agent reaches the folder that holds the home.
#[cfg(unix)]
fn open_to_owner(home: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    const OWNER: u32 = 0o700;
    let found = fs::symlink_metadata(home)?;
    let mode = found.permissions().mode();
    if found.is_dir() && mode & OWNER != OWNER {
        fs::set_permissions(home, fs::Permissions::from_mode(mode | OWNER))?;
    }
    Ok(())
}

/// Does nothing: no session is kept here.
#[cfg(not(unix))]
fn open_to_owner(_home: &Path) -> io::Result<()> {
    Ok(())
}

impl SessionLease {
    /// Returns the file that records the state from which the copy of the session's run was made.
    pub(super) fn base(&self) -> PathBuf {
        self.kept.base_of(&self.of)
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        // Before others may tidy it: its last use made it young.
        if let Err(err) = fs::write(self.kept.place(&self.of).join(USED), "") {
            tracing::warn!(%err, "when a session was last used is not written down");
        }
        self.kept.busy().remove(&self.of);
        self.kept.tidy();
    }
}
