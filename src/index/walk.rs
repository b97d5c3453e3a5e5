//! Lists the files beneath the root that git would not ignore, without hidden files.
//!
//! It follows no symbolic link, and opens only directories and `.gitignore`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::fs::Dir;

use super::read::{Stamp, text};
use provost_base::limits::{IGNORE_BYTES_MAX, INDEX_DEPTH_MAX, INDEX_ENTRIES_MAX, SEEN_FILES_MAX};
use provost_base::{IgnoreRules, RepoPath};
use provost_graph::is_settings;
use provost_syntax::language_of;

/// Folders that are never of interest, even where no `.gitignore` names them.
const SKIPPED: [&str; 2] = ["node_modules", "__pycache__"];

/// The files and folders at or below a folder.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) files: BTreeMap<RepoPath, Stamp>,
    /// Files of any kind, as far as there is room for them.
    pub(super) all: BTreeMap<RepoPath, Stamp>,
    pub(super) folders: BTreeSet<RepoPath>,
    /// Why something may be missing.
    pub(super) missing: Option<&'static str>,
}

/// Whether a file is read at all.
pub(super) fn is_of_interest(path: &str) -> bool {
    language_of(path).is_some() || is_settings(path)
}

/// How far to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The entries of a folder, and everything below folders that are new.
    One,
    /// Everything below the folder.
    All,
}

/// A look around, from one folder down.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Dir,
    /// How many files may be found.
    pub(super) files_max: usize,
    /// Told of each folder before it is listed.
    pub(super) enter: &'a mut dyn FnMut(&RepoPath),
    pub(super) stop: &'a AtomicBool,
}

/// The patterns of `.gitignore` files, from the root down.
#[derive(Clone, Default)]
struct Rules(IgnoreRules);

impl Rules {
    /// Adds what a file says about what is below a folder.
    fn add(&mut self, root: &Dir, file: &str, folder: &str) {
        let Some(text) = text(root, file, IGNORE_BYTES_MAX) else { return };
        self.0.add(&text, folder);
    }

    fn ignore(&self, path: &str, is_folder: bool) -> bool {
        self.0.ignores(path, is_folder)
    }

    /// All that hold in a folder.
    fn of(root: &Dir, folder: &RepoPath) -> Self {
        let mut rules = Self::default();
        rules.add(root, ".git/info/exclude", "");
        let folder = folder.as_str();
        let ends = folder.match_indices('/').map(|(slash, _)| slash);
        for end in [0].into_iter().chain(ends).chain((!folder.is_empty()).then_some(folder.len())) {
            rules.enter(root, &folder[..end]);
        }
        rules
    }

    fn enter(&mut self, root: &Dir, folder: &str) {
        self.add(root, &below(folder, ".gitignore"), folder);
    }
}

/// Whether git would ignore a file of the repository.
pub(super) fn is_ignored(root: &Dir, path: &RepoPath) -> bool {
    let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
    RepoPath::parse(folder).is_ok_and(|folder| Rules::of(root, &folder).ignore(path.as_str(), false))
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || SKIPPED.contains(&name)
}

impl Walk<'_> {
    /// Looks at a folder; at folders in it if they are not known, or if everything is asked for.
    pub(super) fn look(&mut self, folder: &RepoPath, depth: Depth, known: &BTreeSet<RepoPath>) -> Listing {
        let mut found = Listing::default();
        let mut entries_left = INDEX_ENTRIES_MAX;
        let mut waiting = vec![(folder.clone(), Rules::of(self.root, folder), true)];
        while let Some((folder, rules, is_top)) = waiting.pop() {
            if self.stop.load(Ordering::Relaxed) {
                found.missing = Some("it was stopped");
                return found;
            }
            (self.enter)(&folder);
            let folders = self.list(&folder, &rules, &mut found, &mut entries_left);
            for inner in folders.into_iter().rev() {
                found.folders.insert(inner.clone());
                if depth == Depth::One && is_top && known.contains(&inner) {
                    continue;
                }
                if inner.as_str().matches('/').count() >= INDEX_DEPTH_MAX {
                    found.missing = Some("some folders are nested too deep");
                    continue;
                }
                let mut rules = rules.clone();
                rules.enter(self.root, inner.as_str());
                waiting.push((inner, rules, false));
            }
        }
        found
    }

    /// Notes the files of a folder; answers with the folders in it.
    fn list(
        &self,
        folder: &RepoPath,
        rules: &Rules,
        found: &mut Listing,
        entries_left: &mut usize,
    ) -> BTreeSet<RepoPath> {
        let mut folders = BTreeSet::new();
        let name = if folder.is_root() { "." } else { folder.as_str() };
        // Gone by now, or not for us.
        let Ok(entries) = self.root.open_dir(name).and_then(|it| it.entries()) else { return folders };
        for entry in entries.flatten() {
            let Some(left) = entries_left.checked_sub(1) else {
                found.missing = Some("there are too many files, of whatever kind");
                return folders;
            };
            *entries_left = left;
            let name = entry.file_name();
            let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
            if is_hidden(name) || !(kind.is_dir() || kind.is_file()) {
                continue;
            }
            let Ok(path) = RepoPath::parse(&below(folder.as_str(), name)) else { continue };
            // A name with a backslash in it would be another path.
            if !path.as_str().ends_with(name) || rules.ignore(path.as_str(), kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                folders.insert(path);
                continue;
            }
            let interesting = is_of_interest(name);
            if interesting && found.files.len() >= self.files_max {
                found.missing = Some("there are more source files than the configuration allows");
            } else if let Ok(meta) = entry.metadata()
                && meta.is_file()
            {
                let stamp = Stamp::of(&meta);
                if found.all.len() < SEEN_FILES_MAX {
                    found.all.insert(path.clone(), stamp);
                }
                if interesting {
                    found.files.insert(path, stamp);
                }
            }
        }
        folders
    }
}
