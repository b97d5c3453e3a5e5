//! The known state of files, so that no content is read twice, and no old state replaces a newer one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use super::Index;
use super::read::{Content, Stamp, content, stamp};
use super::walk::{is_hidden, is_ignored, is_of_interest};
use provost_base::RepoPath;
use provost_base::limits::{SETTINGS_BYTES_MAX, SOURCE_BYTES_MAX};
use provost_graph::{Full, Outline, is_settings};
use provost_syntax::{ParseDeadline, Reading, language_of};

/// The files that the index has.
#[derive(Default)]
pub(super) struct IndexedFiles {
    files: BTreeMap<RepoPath, Version>,
    /// Folders that are scanned.
    pub(super) folders: BTreeSet<RepoPath>,
    tickets: u64,
    /// The ticket of the thread that has last found a file missing.
    last_gone: u64,
    /// The reason why the last file did not fit.
    pub(super) full: Option<Full>,
}

/// The content of a file that the index has.
#[derive(Clone, Debug)]
struct Version {
    /// The stamp of the content; `None` if the thread of a request has read the file, or if the file was too young.
    stamp: Option<Stamp>,
    /// The ticket of the thread that has read it.
    ticket: u64,
    /// The reading that was taken in, for recognising it.
    reading: Weak<Reading>,
}

impl IndexedFiles {
    /// Returns a number for a thread that begins to read. A thread with a higher number sees a state that is at least as new.
    pub(super) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    pub(super) fn is_listed(&self, path: &RepoPath) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn is_current(&self, path: &RepoPath, stamp: Stamp) -> bool {
        self.files.get(path).is_some_and(|it| it.stamp == Some(stamp))
    }

    /// Checks whether the index has the content that was read so, by its stamp, or by the reading of a file that is too young for one.
    pub(super) fn has_content(&self, path: &RepoPath, stamp: Stamp, reading: &Weak<Reading>) -> bool {
        self.files.get(path).is_some_and(|it| match it.stamp {
            Some(known) => known == stamp,
            // The cache may have forgotten the reading since.
            None => it.reading.ptr_eq(reading) || it.reading.strong_count() == 0,
        })
    }

    /// Checks whether the index has this very reading of a file.
    pub(super) fn is_of(&self, path: &RepoPath, reading: &Arc<Reading>) -> bool {
        self.files.get(path).is_some_and(|it| std::ptr::eq(it.reading.as_ptr(), Arc::as_ptr(reading)))
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the files of a folder, or all below it.
    pub(super) fn files_in(&self, folder: &RepoPath, all: bool) -> Vec<RepoPath> {
        let (from, to) = bounds(folder);
        let found = self
            .files
            .range::<str, _>((from.as_ref().map(String::as_str), to.as_ref().map(String::as_str)))
            .map(|(path, _)| path);
        found.filter(|path| all || is_directly_in(path, folder)).cloned().collect()
    }

    /// Returns the folders of a folder, or all below it.
    pub(super) fn folders_in(&self, folder: &RepoPath, all: bool) -> BTreeSet<RepoPath> {
        let (from, to) = bounds(folder);
        let found = self
            .folders
            .range::<str, _>((from.as_ref().map(String::as_str), to.as_ref().map(String::as_str)));
        found.filter(|path| !path.is_root() && (all || is_directly_in(path, folder))).cloned().collect()
    }

    fn looks_at(&self, path: &RepoPath) -> bool {
        let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        self.folders.contains(folder) && !is_hidden(name)
    }
}

/// Returns the bounds between which all paths below a folder sort: `0` comes next after `/`.
pub(super) fn bounds(folder: &RepoPath) -> (Bound<String>, Bound<String>) {
    match folder.as_str() {
        "" => (Bound::Unbounded, Bound::Unbounded),
        folder => (Bound::Excluded(format!("{folder}/")), Bound::Excluded(format!("{folder}0"))),
    }
}

pub(super) fn is_directly_in(path: &RepoPath, folder: &RepoPath) -> bool {
    let before = if folder.is_root() { 0 } else { folder.as_str().len() + 1 };
    path.as_str().get(before..).is_some_and(|rest| !rest.contains('/'))
}

impl Index {
    /// Reads a file again if it has changed. Returns whether the index has changed.
    pub(super) fn catch_up(&self, path: &RepoPath) -> bool {
        if !is_of_interest(path.as_str()) {
            return false;
        }
        let ticket = self.known(IndexedFiles::ticket);
        let found = stamp(&self.0.root, path).ok().flatten();
        let Some(found) = found else { return self.put(path, ticket, None, None) == Put::Changed };
        if self.known(|known| known.is_current(path, found)) {
            return false;
        }
        let listed = !self.0.on || self.known(|known| known.is_listed(path));
        // A request may ask about a new file before the system has reported it.
        if !listed && (!self.known(|known| known.looks_at(path)) || is_ignored(&self.0.root, path)) {
            return false;
        }
        self.read(path)
    }

    /// Reads a file. Returns whether that changes anything.
    pub(super) fn read(&self, path: &RepoPath) -> bool {
        let ticket = self.known(IndexedFiles::ticket);
        if is_settings(path.as_str()) {
            return self.read_settings(path, ticket);
        }
        match self.read_source(path, ticket) {
            Put::Changed => true,
            Put::Same => false,
            // Another thread has found the file missing meanwhile. If the file comes back, the system reports that.
            Put::TooLate => self.read_source(path, self.known(IndexedFiles::ticket)) == Put::Changed,
        }
    }

    fn read_source(&self, path: &RepoPath, ticket: u64) -> Put {
        let Some(language) = language_of(path.as_str()) else { return Put::Same };
        match content(&self.0.root, path, SOURCE_BYTES_MAX) {
            Ok(Content::Bytes(bytes, stamp)) => {
                let patience =
                    ParseDeadline { cancelled: Some(&self.0.bell.stop), ..ParseDeadline::default() };
                let reading = self.0.cache.read(language, &bytes, &patience);
                self.put(path, ticket, stamp.grown(), Some(Found::of(&reading)))
            }
            // The file is known, without any symbol.
            Ok(Content::TooLarge(stamp)) => {
                let reading = provost_syntax::read(language, &[], &ParseDeadline::endless());
                self.put(
                    path,
                    ticket,
                    Some(stamp),
                    Some(Found { outline: Arc::new(Outline::too_long(&reading)), reading: Weak::new() }),
                )
            }
            Ok(Content::Nothing) | Err(_) => self.put(path, ticket, None, None),
        }
    }

    /// Forgets a file that is of no interest any more.
    pub(super) fn forget(&self, path: &RepoPath) {
        let ticket = self.known(IndexedFiles::ticket);
        self.put(path, ticket, None, None);
    }

    fn read_settings(&self, path: &RepoPath, ticket: u64) -> bool {
        let (text, stamp) = match content(&self.0.root, path, SETTINGS_BYTES_MAX) {
            Ok(Content::Bytes(bytes, stamp)) => (String::from_utf8(bytes).ok(), Some(stamp)),
            Ok(Content::TooLarge(stamp)) => (None, Some(stamp)),
            Ok(Content::Nothing) | Err(_) => (None, None),
        };
        self.known(|known| {
            let newer = known.files.get(path).is_none_or(|it| it.ticket < ticket);
            if newer {
                match stamp {
                    Some(found) => {
                        known.files.insert(
                            path.clone(),
                            Version { stamp: found.grown(), ticket, reading: Weak::new() },
                        );
                    }
                    None => {
                        known.files.remove(path);
                    }
                }
                self.graph(|graph| graph.set_settings(path, text.as_deref()));
            }
            newer
        })
    }

    /// Takes a file in, or forgets it.
    pub(super) fn put(
        &self,
        path: &RepoPath,
        ticket: u64,
        stamp: Option<Stamp>,
        found: Option<Found>,
    ) -> Put {
        // The lock is held while the graph changes, so that both agree.
        self.known(|known| {
            let before = known.files.get(path).map(|it| it.ticket);
            if before.is_some_and(|it| it > ticket) {
                return Put::Same;
            }
            let Some(Found { outline, reading }) = found else {
                known.last_gone = ticket.max(known.last_gone);
                known.files.remove(path);
                self.graph(|graph| match is_settings(path.as_str()) {
                    true => graph.set_settings(path, None),
                    false => graph.remove(path),
                });
                return if before.is_some() { Put::Changed } else { Put::Same };
            };
            if before.is_none() && ticket < known.last_gone {
                return Put::TooLate;
            }
            known.files.insert(path.clone(), Version { stamp, ticket, reading });
            self.graph(|graph| {
                if graph.holds(path, &outline) {
                    return Put::Same;
                }
                // Edges from other sources were about the file's earlier content.
                graph.tell(path, None);
                known.full = graph.put(path, outline).err().or(known.full);
                Put::Changed
            })
        })
    }
}

/// The facts of a file that is taken in.
pub(super) struct Found {
    outline: Arc<Outline>,
    reading: Weak<Reading>,
}

impl Found {
    pub(super) fn of(reading: &Arc<Reading>) -> Self {
        Self { outline: Arc::new(Outline::of(reading)), reading: Arc::downgrade(reading) }
    }
}

/// The result of taking in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Put {
    /// The graph has changed.
    Changed,
    /// The graph had this state already, or a newer one.
    Same,
    /// A file was found missing since, maybe this one.
    TooLate,
}
