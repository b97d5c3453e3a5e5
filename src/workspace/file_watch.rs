//! Watched files of a delegation: their earlier state, their present state, and the difference. Blocking.
//!
//! It compares two scans of the directory, so it need not notice every single change. A report compares with the
//! beginning: it leaves out a file that was made and removed again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::integrity_scan::{Stamp, is_placeholder, open_place, survey_bounds};
use super::path_text::shown;
use provost_base::WatchPatterns;
use provost_base::limits::{
    SURVEY_DEPTH_MAX, SURVEY_ENTRIES_MAX, SURVEY_MS_MAX, WATCH_DIRS_MAX, WATCH_FILES_MAX, WATCH_LISTED_MAX,
};
use provost_domain::{FileChange, Watched, WatchedFile};
use provost_jail::{PLACEHOLDER_MTIME, ResolvedPath};
use provost_system::walk::{Bound, Entry, Folder, Name, Step, Unopened, Unread, Visitor, walk};

/// Folders of git and of daemons, whose changes are no work.
const PASSED_OVER: [&str; 6] = [".git", ".wit", ".devit", ".git-paw", ".agent-protocol", ".provost"];

/// The watched directory, and the patterns of the files.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The working directory of the task.
    pub place: ResolvedPath,
    /// The files to report, from that directory.
    pub patterns: WatchPatterns,
}

/// The state of a file, by which a change is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileState {
    stamp: Stamp,
    /// The time of the last write. A renamed file keeps it; a new file in the same inode has another.
    written: (i64, i64),
    size: i64,
}

/// The matching files of one moment.
#[derive(Clone, Debug, Default)]
pub struct WatchedFiles {
    files: BTreeMap<Vec<u8>, FileState>,
    /// Directories for hints about changes, up to the bound.
    pub directories: Vec<Vec<u8>>,
    /// The reason why the list of files is incomplete.
    incomplete: Option<String>,
    /// The duration of the scan.
    pub took: Duration,
}

impl Watch {
    /// Scans all files. Never fails: the result names the reason if files could not be read.
    pub fn look(&self) -> WatchedFiles {
        let began = Instant::now();
        let mut looking = Looking { patterns: &self.patterns, look: WatchedFiles::default() };
        let done = open_place(&self.place).map_err(failed).and_then(|top| {
            let top = Dir::from_std_file(File::from(top));
            walk(&mut looking, (top, OsStr::new("")), (), survey_bounds(SURVEY_ENTRIES_MAX))
        });
        let mut look = looking.look;
        look.incomplete = done.err();
        look.took = began.elapsed();
        look
    }
}

fn failed(error: io::Error) -> String {
    format!("the directory could not be looked at: {error}")
}

struct Looking<'a> {
    patterns: &'a WatchPatterns,
    look: WatchedFiles,
}

impl Visitor for Looking<'_> {
    type Here = ();
    type Stop = String;

    fn folder(&mut self, folder: Folder<'_>, names: &mut Vec<Name>, _here: &mut ()) -> Result<(), String> {
        names.retain(|it| !PASSED_OVER.iter().any(|passed| it.name == *passed));
        if self.look.directories.len() <= WATCH_DIRS_MAX {
            self.look.directories.push(folder.path().as_bytes().to_vec());
        }
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, String> {
        let Ok(stat) = at.stat() else { return Ok(Step::Over) };
        if stat.st_mtime == PLACEHOLDER_MTIME && is_placeholder(at.dir, at.name(), &stat) {
            return Ok(Step::Over);
        }
        let path = at.path().as_bytes();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => match at.open() {
                Ok(inner) => return Ok(Step::Into(inner, ())),
                Err(Unopened::Gone(_) | Unopened::Shut(_)) => {}
                Err(Unopened::Failed(error)) => return Err(failed(error)),
            },
            FileType::RegularFile | FileType::Symlink if self.is_meant(path) => {
                if self.look.files.len() >= WATCH_FILES_MAX {
                    return Err(format!("more than {WATCH_FILES_MAX} files match"));
                }
                let written = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(i64::MAX));
                let known = FileState { stamp: Stamp::of(&stat), written, size: stat.st_size };
                self.look.files.insert(path.to_vec(), known);
            }
            _ => {}
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), String> {
        Err(match why {
            Unread::Beyond(Bound::Entries) => format!("it has more than {SURVEY_ENTRIES_MAX} entries"),
            Unread::Beyond(Bound::Depth) => format!("it is nested deeper than {SURVEY_DEPTH_MAX}"),
            Unread::Beyond(Bound::Time) => format!("looking at it took longer than {SURVEY_MS_MAX} ms"),
            Unread::Failed(error) => failed(error),
        })
    }
}

impl Looking<'_> {
    fn is_meant(&self, path: &[u8]) -> bool {
        self.patterns.matches(&String::from_utf8_lossy(path))
    }
}

/// Returns the changes of files between two scans.
pub fn changes(before: &WatchedFiles, after: &WatchedFiles) -> Watched {
    let incomplete = before.incomplete.as_ref().or(after.incomplete.as_ref());
    let mut gone: BTreeMap<&Vec<u8>, &FileState> = match incomplete {
        // Files that an unfinished scan did not reach are not gone.
        Some(_) => BTreeMap::new(),
        None => before.files.iter().filter(|(path, _)| !after.files.contains_key(*path)).collect(),
    };
    let mut files = Vec::new();
    for (path, known) in &after.files {
        let change = match before.files.get(path) {
            Some(old) if old.stamp == known.stamp => continue,
            Some(_) => FileChange::Changed,
            None => FileChange::New,
        };
        let is_it = |old: &FileState| {
            (old.stamp.inode, old.written, old.size) == (known.stamp.inode, known.written, known.size)
        };
        let from =
            gone.iter().find(|(_, old)| change == FileChange::New && is_it(old)).map(|(path, _)| *path);
        if let Some(from) = from {
            gone.remove(from);
        }
        let change = if from.is_some() { FileChange::Renamed } else { change };
        files.push(WatchedFile { path: shown(path).into(), change, from: from.map(|it| shown(it).into()) });
    }
    let removed =
        |path: &&Vec<u8>| WatchedFile { path: shown(path).into(), change: FileChange::Removed, from: None };
    files.extend(gone.keys().map(removed));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    listed(files, 0, incomplete.map(|why| format!("some changes may be missing: {why}").into()))
}

/// Shortens the changes to the number of files that are listed.
pub fn listed(mut files: Vec<WatchedFile>, more: u32, incomplete: Option<Box<str>>) -> Watched {
    let left_out = u32::try_from(files.len().saturating_sub(WATCH_LISTED_MAX)).unwrap_or(u32::MAX);
    files.truncate(WATCH_LISTED_MAX);
    Watched { files, more: more.saturating_add(left_out), incomplete }
}

impl WatchedFiles {
    /// Makes the result of a scan that saw nothing.
    pub fn failed(why: &str) -> Self {
        Self { incomplete: Some(why.into()), ..Self::default() }
    }
}
