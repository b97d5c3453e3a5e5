//! Lists the files beneath the root that git would not ignore, without hidden files.
//!
//! It follows no symbolic link, and opens only directories and `.gitignore`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::fs::Dir;

use super::read::{Stamp, text};
use provost_base::limits::{IGNORE_BYTES_MAX, INDEX_DEPTH_MAX, INDEX_ENTRIES_MAX, SEEN_FILES_MAX};
use provost_base::{IgnoreRules, RepoPath};
use provost_graph::is_settings;
use provost_syntax::language_of;
use provost_system::open_folder;
use provost_system::walk::{Bound, Bounds, Entry, Folder, Kind, Name, Step, Unread, Visitor, walk};

/// Names of folders that are never of interest, even if no `.gitignore` names them.
const SKIPPED: [&str; 2] = ["node_modules", "__pycache__"];

/// The files and folders at or below a folder.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) files: BTreeMap<RepoPath, Stamp>,
    /// Files of any kind, as far as there is room for them.
    pub(super) all: BTreeMap<RepoPath, Stamp>,
    pub(super) folders: BTreeSet<RepoPath>,
    /// The reason why something may be missing.
    pub(super) missing: Option<&'static str>,
}

/// Checks whether a file is read at all.
pub(super) fn is_of_interest(path: &str) -> bool {
    language_of(path).is_some() || is_settings(path)
}

/// How deep a scan goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The entries of a folder, and everything below new folders.
    One,
    /// Everything below the folder.
    All,
}

/// A scan from one folder down.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Dir,
    /// The most files that may be found.
    pub(super) files_max: usize,
    /// Called with each folder before it is listed.
    pub(super) enter: &'a mut dyn FnMut(&RepoPath),
    pub(super) stop: &'a AtomicBool,
}

/// The patterns of `.gitignore` files, from the root down.
#[derive(Clone, Default)]
struct Rules(IgnoreRules);

impl Rules {
    /// Adds the rules of a file for the paths below a folder.
    fn add(&mut self, root: &Dir, file: &str, folder: &str) {
        let Some(text) = text(root, file, IGNORE_BYTES_MAX) else { return };
        self.0.add(&text, folder);
    }

    fn ignore(&self, path: &str, is_folder: bool) -> bool {
        self.0.ignores(path, is_folder)
    }

    /// Returns all rules for a folder.
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

/// Checks whether git would ignore a file of the repository.
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
    /// Scans a folder; folders in it too if they are unknown, or if everything is asked for.
    pub(super) fn look(&mut self, folder: &RepoPath, depth: Depth, known: &BTreeSet<RepoPath>) -> Listing {
        let here = Here { rules: Rules::of(self.root, folder), is_top: true };
        let passed_over = (depth == Depth::One).then_some(known);
        (self.enter)(folder);
        let top = open_at(self.root, folder);
        let mut looking = Looking { walk: self, passed_over, found: Listing::default() };
        // The folder is gone by now, or we may not open it.
        let Ok(top) = top else { return looking.found };
        // The bound counts levels from the root, even if a walk begins at another folder.
        let bounds = Bounds { entries: INDEX_ENTRIES_MAX, depth: INDEX_DEPTH_MAX + 1, until: None };
        if let Err(Stopped) = walk(&mut looking, (top, OsStr::new(folder.as_str())), here, bounds) {
            looking.found.missing = Some("it was stopped");
        }
        looking.found
    }
}

/// Opens a folder step by step and through no link.
fn open_at(root: &Dir, folder: &RepoPath) -> io::Result<Dir> {
    let names = folder.as_str().split('/').filter(|it| !it.is_empty());
    names.into_iter().try_fold(root.open_dir(".")?, |dir, name| open_folder(&dir, OsStr::new(name)))
}

/// The state of the scan in a folder.
struct Here {
    rules: Rules,
    is_top: bool,
}

/// Stops the walk, since the index has to end.
struct Stopped;

struct Looking<'a, 'b> {
    walk: &'a mut Walk<'b>,
    /// Folders in the top folder that are known already.
    passed_over: Option<&'a BTreeSet<RepoPath>>,
    found: Listing,
}

impl Visitor for Looking<'_, '_> {
    type Here = Here;
    type Stop = Stopped;

    /// Visits files first, so that files of deeper folders are left out if there are too many.
    fn folder(&mut self, _: Folder<'_>, names: &mut Vec<Name>, _: &mut Here) -> Result<(), Stopped> {
        names.sort_by(|a, b| match (a.kind == Kind::Folder, b.kind == Kind::Folder) {
            (true, true) => a.name.cmp(&b.name),
            (a, b) => a.cmp(&b),
        });
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, here: &mut Here) -> Result<Step<Here>, Stopped> {
        let (Some(path), Some(name)) = (at.text(), at.name().to_str()) else { return Ok(Step::Over) };
        if is_hidden(name) || !matches!(at.kind(), Kind::Folder | Kind::File) {
            return Ok(Step::Over);
        }
        // A name with a backslash in it would mean another path.
        let Some(path) = RepoPath::as_is(path) else { return Ok(Step::Over) };
        let is_folder = at.kind() == Kind::Folder;
        if here.rules.ignore(path.as_str(), is_folder) {
            return Ok(Step::Over);
        }
        if is_folder {
            return self.go_into(at, path, here);
        }
        self.file(at, path, is_of_interest(name));
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), Stopped> {
        match why {
            Unread::Beyond(Bound::Entries) => {
                self.found.missing = Some("there are too many files, counting all kinds");
            }
            Unread::Beyond(Bound::Depth | Bound::Time) => self.found.missing = Some(TOO_DEEP),
            // We may not open the folder.
            Unread::Failed(_) => {}
        }
        Ok(())
    }
}

/// The reason why folders were not scanned.
const TOO_DEEP: &str = "some folders are nested too deep";

impl Looking<'_, '_> {
    fn go_into(&mut self, at: Entry<'_>, path: RepoPath, here: &Here) -> Result<Step<Here>, Stopped> {
        if self.walk.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        self.found.folders.insert(path.clone());
        if here.is_top && self.passed_over.is_some_and(|known| known.contains(&path)) {
            return Ok(Step::Over);
        }
        if path.as_str().matches('/').count() >= INDEX_DEPTH_MAX {
            self.found.missing = Some(TOO_DEEP);
            return Ok(Step::Over);
        }
        let mut rules = here.rules.clone();
        rules.enter(self.walk.root, path.as_str());
        (self.walk.enter)(&path);
        // The folder is gone by now, or we may not open it.
        let Ok(dir) = at.open() else { return Ok(Step::Over) };
        Ok(Step::Into(dir, Here { rules, is_top: false }))
    }

    fn file(&mut self, at: Entry<'_>, path: RepoPath, interesting: bool) {
        let found = &mut self.found;
        if interesting && found.files.len() >= self.walk.files_max {
            found.missing = Some("there are more source files than the configuration allows");
        } else if let Ok(meta) = at.metadata()
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
}
