//! New, changed and removed files of any kind, for the parts of the daemon that report them.
//!
//! Files that exist when the daemon starts are not reported. It ignores hidden files and those that git ignores, and
//! opens no file.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::Index;
use super::indexed_files::{bounds, is_directly_in};
use super::read::Stamp;
use provost_base::RepoPath;
use provost_base::limits::SEEN_FILES_MAX;

/// The kind of change of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// The file is new.
    Created,
    /// The file was written, or replaced by another file.
    Changed,
    /// The file is gone.
    Deleted,
}

/// A file that was made, changed or removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenFileChange {
    /// The file, relative to the root.
    pub path: RepoPath,
    /// The kind of change.
    pub way: ChangeKind,
}

/// A file that was renamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The path before.
    pub from: RepoPath,
    /// The path now.
    pub to: RepoPath,
}

/// The existing files, as they were at the last scan.
#[derive(Default)]
pub(super) struct Files {
    there: BTreeMap<RepoPath, Stamp>,
    /// Files that have vanished since the moves were last reported.
    gone: Vec<(RepoPath, Stamp)>,
    /// Files that have vanished before that: a scan can lie between both halves of a rename.
    gone_before: Vec<(RepoPath, Stamp)>,
    /// Files that have appeared, or were replaced, since the moves were last reported.
    come: Vec<(RepoPath, Stamp)>,
}

impl Files {
    /// Returns the files that were renamed since the last call.
    fn take_moves(&mut self) -> Vec<Moved> {
        let come = std::mem::take(&mut self.come);
        let gone = std::mem::take(&mut self.gone);
        let before = std::mem::replace(&mut self.gone_before, gone);
        let mut moves = Vec::new();
        if come.is_empty() {
            return moves;
        }
        let mut lost: BTreeMap<u64, (RepoPath, Stamp)> = BTreeMap::new();
        for (path, stamp) in before.into_iter().chain(self.gone_before.iter().cloned()) {
            lost.insert(stamp.inode(), (path, stamp));
        }
        for (to, stamp) in come {
            if let Some((from, _)) = lost.remove(&stamp.inode()).filter(|(_, it)| stamp.is_renamed(it)) {
                moves.push(Moved { from, to });
            }
        }
        moves
    }

    fn in_folder(&self, folder: &RepoPath, all: bool) -> Vec<RepoPath> {
        let (from, to) = bounds(folder);
        let range = (from.as_ref().map(String::as_str), to.as_ref().map(String::as_str));
        let found = self.there.range::<str, _>(range).map(|(path, _)| path);
        found.filter(|path| all || is_directly_in(path, folder)).cloned().collect()
    }

    /// Takes over the result of a scan, and returns the changes that it shows.
    fn take_over(
        &mut self,
        folder: &RepoPath,
        all: bool,
        gone: &[RepoPath],
        found: BTreeMap<RepoPath, Stamp>,
        whole: bool,
    ) -> Vec<SeenFileChange> {
        let mut sights = Vec::new();
        let mut lost: Vec<RepoPath> = gone.iter().flat_map(|it| self.in_folder(it, true)).collect();
        // After a scan that was cut short, the missing files are unknown.
        if whole {
            lost.extend(self.in_folder(folder, all));
        }
        for path in lost {
            if !found.contains_key(&path)
                && let Some(stamp) = self.there.remove(&path)
            {
                self.gone.push((path.clone(), stamp));
                sights.push(SeenFileChange { path, way: ChangeKind::Deleted });
            }
        }
        for (path, stamp) in found {
            let way = match self.there.get(&path) {
                Some(before) if *before == stamp => continue,
                Some(_) => ChangeKind::Changed,
                None if self.there.len() >= SEEN_FILES_MAX => continue,
                None => ChangeKind::Created,
            };
            self.there.insert(path.clone(), stamp);
            self.come.push((path.clone(), stamp));
            sights.push(SeenFileChange { path, way });
        }
        sights
    }
}

impl Index {
    /// Takes over the scan of a folder, and reports the changes of its files. The first scan reports nothing.
    pub(super) fn see(
        &self,
        folder: &RepoPath,
        all: bool,
        gone: &[RepoPath],
        found: BTreeMap<RepoPath, Stamp>,
        whole: bool,
    ) {
        let is_first = self.lock_progress().looks == 0;
        let mut files = self.0.files.lock().unwrap_or_else(PoisonError::into_inner);
        let sights = files.take_over(folder, all, gone, found, whole);
        drop(files);
        if !is_first && !sights.is_empty() {
            // There may be no receiver.
            let _ = self.0.seen.send(sights.into());
        }
    }

    /// Reports the files that were renamed since the last call, once all folders with changes have been scanned. Files that
    /// exist when the daemon starts have not been renamed.
    pub(super) fn tell_moves(&self) {
        let is_first = self.lock_progress().looks == 0;
        let moves = self.0.files.lock().unwrap_or_else(PoisonError::into_inner).take_moves();
        if !is_first && !moves.is_empty() {
            // There may be no listener.
            let _ = self.0.moved.send(moves.into());
        }
    }
}
