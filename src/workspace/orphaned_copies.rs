//! Keeps the private copies of runs whose daemon was killed. Blocking.
//!
//! Only the killed daemon had the record of the original files, so the whole copy is kept, for as long as other
//! changes of runs, and the report of the task names its place. Beside the folder of copies is another one with a
//! file for each copy in use, from the run's start to its end; the file holds the id of the run's task. If such a
//! file exists at a start of the daemon, its run's daemon was killed.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::copy::{Copied, remove};
use provost_base::TaskId;
use provost_base::limits::{CHANGESETS_KEPT_DAYS, REMAINS_KEPT_MAX};
use provost_system::{self as system, Ages};

/// The extension of the folder of such files.
const MARKS: &str = "runs";
/// The extension of the file that records the ages of kept copies.
const AGES: &str = "ages";
/// The prefix of the names of kept copies.
const KEPT: &str = "left-by-";

/// The mark that says, while it is held, whose run works in a copy.
#[derive(Debug)]
pub struct Mark(PathBuf);

impl Mark {
    /// Puts a mark beside a copy.
    pub fn beside(copy: &Path, task: &TaskId) -> io::Result<Self> {
        let (copies, name) = copy.parent().zip(copy.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let marks = copies.with_extension(MARKS);
        system::make_private_folders(&marks)?;
        let mark = Self(marks.join(name));
        fs::write(&mark.0, task.as_str())?;
        Ok(mark)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_file(&self.0) {
            tracing::warn!(%err, "a mark beside a worker's copy was not removed");
        }
    }
}

/// Renames the copies of runs whose daemon was killed, and removes all others. Called at the start of a daemon.
pub fn sort(copies: &Path) {
    for mark in listed(&copies.with_extension(MARKS)) {
        let copy = mark.file_name().map(|name| copies.join(name)).unwrap_or_default();
        let task = fs::read_to_string(&mark).ok().and_then(|text| TaskId::parse(&text).ok());
        if let Some(task) = task.filter(|_| copy.is_dir())
            && let Err(err) = fs::rename(&copy, place_of(copies, &task))
        {
            tracing::warn!(%err, %task, "what a run has left is not kept");
        }
        throw_away(&mark);
    }
    let is_kept = |path: &PathBuf| {
        path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(KEPT.as_bytes()))
    };
    let (kept, others): (Vec<PathBuf>, Vec<PathBuf>) = listed(copies).into_iter().partition(is_kept);
    others.iter().for_each(|path| throw_away(path));
    let mut kept: Vec<(SystemTime, PathBuf)> = kept.into_iter().map(|path| (changed(&path), path)).collect();
    kept.sort_by_key(|it| std::cmp::Reverse(it.0));
    if kept.is_empty() {
        return;
    }
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into();
    let ages = Ages::look(copies.with_extension(AGES), kept.iter().map(|(_, path)| name_of(path)));
    if let Err(err) = ages.keep() {
        tracing::warn!(%err, "how old the copies of lost runs are cannot be written down");
    }
    let most = Duration::from_secs(CHANGESETS_KEPT_DAYS * 24 * 60 * 60);
    let is_old = |path: &Path| ages.of(&name_of(path)) >= most;
    let gone = kept.iter().enumerate().filter(|(number, it)| *number >= REMAINS_KEPT_MAX || is_old(&it.1));
    gone.for_each(|(_, (_, path))| throw_away(path));
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Returns the kept copy of a run whose daemon was killed, if it is there.
pub fn of(copies: &Path, task: &TaskId) -> Option<PathBuf> {
    Some(place_of(copies, task)).filter(|it| it.is_dir())
}

/// Leaves the copy of a run whose agent has died, for a run that goes on in it.
///
/// # Errors
/// The system's error; the copy is removed then.
pub fn leave(copies: &Path, copied: Copied, task: &TaskId) -> io::Result<()> {
    fs::rename(copied.path(), place_of(copies, task))?;
    // The copy is at the new place now, so dropping this must not remove it.
    copied.leave();
    Ok(())
}

fn place_of(copies: &Path, task: &TaskId) -> PathBuf {
    copies.join(format!("{KEPT}{}", provost_domain::artifact::shelf(task)))
}

/// Returns the time of a copy's last change, renaming included.
fn changed(path: &Path) -> SystemTime {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let seconds = fs::symlink_metadata(path).map(|it| it.ctime()).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }
    #[cfg(not(unix))]
    fs::symlink_metadata(path).and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn throw_away(path: &Path) {
    let removed = match fs::symlink_metadata(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return,
        Ok(found) if found.is_dir() => remove(path),
        _ => fs::remove_file(path),
    };
    if let Err(err) = removed {
        tracing::warn!(%err, path = %path.display(), "a worker's copy was not removed");
    }
}
