//! Finds the symbols that a branch changes, and their calls: from git's objects, never from a work tree. Blocking.
//!
//! The graph covers a whole tree, and is updated by the differences from one tree to the next. If a repository has
//! more source files than the bound, the graph has only the files that the branches change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use provost_base::limits::{MERGE_FILES_MAX, MERGE_SOURCES_MAX};
use provost_base::{RepoPath, SymbolPath};
use provost_graph::{Graph, Outline};
use provost_syntax::{Cache, Call, ParseDeadline, Reading, Receiver, Version, language_of, touched};
use provost_workspace::GitError;
use provost_workspace::git_objects::{Objects, TreeChange, TreeFile};

/// The bytes of a source file, and their parsed form.
type Read = (Vec<u8>, Arc<Reading>);

/// The way in which a symbol no longer fits its callers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    /// The symbol is removed or renamed.
    Gone,
    /// The symbol has another signature.
    Changed(Box<str>),
}

/// The changes of one side since its common commit with the other.
#[derive(Clone, Default, Debug)]
pub(super) struct SideFacts {
    /// The changed files.
    pub(super) changes: Vec<TreeChange>,
    /// The symbols that are new, changed or gone, by file.
    pub(super) touched: BTreeMap<String, BTreeSet<Box<str>>>,
    /// The symbols that no longer fit their callers.
    pub(super) broken: BTreeMap<(String, Box<str>), Broken>,
    /// The calls from symbols that this side has changed: caller and callee. A change around an old call may rely
    /// on the callee as much as a new call does.
    pub(super) calls: BTreeSet<(SymbolPath, SymbolPath)>,
    /// The calls outside of all symbols, by file, for the files that this side has changed outside of all symbols.
    pub(super) at_top: BTreeMap<String, CallsAtTop>,
}

/// The calls of a file outside of all symbols: made when it is loaded, or run as a script.
#[derive(Clone, Default, Debug)]
pub(super) struct CallsAtTop {
    /// The called names that the file does not define itself.
    pub(super) names: BTreeSet<Box<str>>,
    /// The files that it imports.
    pub(super) imports: BTreeSet<String>,
}

/// Reads sides one by one.
pub(super) struct Study<'a> {
    objects: &'a Objects,
    cache: &'a Cache,
    graph: Graph,
    /// The commit whose tree the graph shows.
    at: Option<String>,
    /// Whether all source files are in the graph.
    pub(super) is_whole: bool,
}

fn is_source(path: &str, file: Option<&TreeFile>) -> bool {
    file.is_some_and(TreeFile::is_regular) && language_of(path).is_some()
}

impl<'a> Study<'a> {
    pub(super) fn new(objects: &'a Objects, cache: &'a Cache) -> Self {
        Self { objects, cache, graph: Graph::default(), at: None, is_whole: true }
    }

    /// Returns the changes between two commits.
    pub(super) fn side(&mut self, base: &str, tip: &str) -> Result<SideFacts, GitError> {
        let changes = self.objects.changes(base, tip)?;
        if changes.len() > MERGE_FILES_MAX {
            let why = format!("it changes {} files, and {MERGE_FILES_MAX} are looked at", changes.len());
            return Err(GitError::Failed { what: "diff-tree".into(), why });
        }
        let of =
            |it: &TreeChange| is_source(&it.path, it.old.as_ref()) || is_source(&it.path, it.new.as_ref());
        let sources: Vec<&TreeChange> = changes.iter().filter(|it| of(it)).collect();
        let old = self.read(sources.iter().map(|it| (&*it.path, it.old.as_ref())))?;
        let new = self.read(sources.iter().map(|it| (&*it.path, it.new.as_ref())))?;
        let mut facts = SideFacts::default();
        for ((it, old), new) in sources.iter().zip(&old).zip(&new) {
            let mut touched = touched_in(old.as_ref(), new.as_ref());
            if touched.remove("")
                && let Some((_, reading)) = new
            {
                facts.at_top.insert(
                    it.path.clone(),
                    CallsAtTop { names: called_at_top(reading), ..CallsAtTop::default() },
                );
            }
            broken_in(&it.path, old.as_ref(), new.as_ref(), &mut facts.broken);
            if !touched.is_empty() {
                facts.touched.insert(it.path.clone(), touched);
            }
        }
        self.go_to(tip)?;
        facts.calls = self.calls_of(&facts.touched);
        for (file, calls) in &mut facts.at_top {
            let Some(path) = RepoPath::as_is(file) else { continue };
            calls.imports = self.graph.imports(&path).into_iter().map(ToString::to_string).collect();
        }
        facts.changes = changes;
        Ok(facts)
    }

    fn calls_of(&self, touched: &BTreeMap<String, BTreeSet<Box<str>>>) -> BTreeSet<(SymbolPath, SymbolPath)> {
        let mut found = BTreeSet::new();
        for (file, symbols) in touched {
            let Some(path) = RepoPath::as_is(file) else { continue };
            for symbol in symbols {
                let Ok(caller) = SymbolPath::of(path.clone(), symbol) else { continue };
                let callees = self.graph.callees(&caller).into_iter();
                let known = callees.filter(|it| it.file().as_str() != "?" && *it != caller);
                found.extend(known.map(|it| (caller.clone(), it)));
            }
        }
        found
    }

    /// Updates the graph to the tree of another commit.
    fn go_to(&mut self, commit: &str) -> Result<(), GitError> {
        let changes = match &self.at {
            Some(at) if at == commit => return Ok(()),
            Some(at) => self.objects.changes(at, commit)?,
            None => self.all_of(commit)?,
        };
        let sources: Vec<&TreeChange> = changes.iter().filter(|it| language_of(&it.path).is_some()).collect();
        let read = self.read(sources.iter().map(|it| (&*it.path, it.new.as_ref())))?;
        for (it, read) in sources.iter().zip(read) {
            let Some(path) = RepoPath::as_is(&it.path) else { continue };
            match read {
                // If the graph has no room for all files, some calls are missed.
                Some((_, reading)) => {
                    self.is_whole &= self.graph.put(&path, Arc::new(Outline::of(&reading))).is_ok();
                }
                None => self.graph.remove(&path),
            }
        }
        let settings: Vec<&TreeChange> =
            changes.iter().filter(|it| provost_graph::is_settings(&it.path)).collect();
        let objects: Vec<&str> = settings.iter().filter_map(|it| Some(&*it.new.as_ref()?.object)).collect();
        let mut contents = self.objects.contents(&objects)?.into_iter();
        for it in settings {
            let content = it.new.as_ref().and_then(|_| contents.next().flatten());
            let text = content.and_then(|it| String::from_utf8(it).ok());
            if let Some(path) = RepoPath::as_is(&it.path) {
                self.graph.set_settings(&path, text.as_deref());
            }
        }
        while !self.graph.settle(1_000) {}
        self.at = Some(commit.to_owned());
        Ok(())
    }

    /// Returns all files of a tree, as changes to an empty tree; empty if there are too many.
    fn all_of(&mut self, commit: &str) -> Result<Vec<TreeChange>, GitError> {
        let files = self.objects.files(commit)?;
        let sources = files.iter().filter(|(path, file)| is_source(path, Some(*file))).count();
        if sources > MERGE_SOURCES_MAX {
            self.is_whole = false;
            return Ok(Vec::new());
        }
        let change = |(path, new): (String, TreeFile)| TreeChange { path, old: None, new: Some(new) };
        Ok(files.into_iter().map(change).collect())
    }

    fn read<'f>(
        &self,
        files: impl Iterator<Item = (&'f str, Option<&'f TreeFile>)>,
    ) -> Result<Vec<Option<Read>>, GitError> {
        let files: Vec<_> = files.map(|(path, file)| (path, file.filter(|it| it.is_regular()))).collect();
        let objects: Vec<&str> = files.iter().filter_map(|(_, file)| Some(&*(*file)?.object)).collect();
        let mut contents = self.objects.contents(&objects)?.into_iter();
        let patience = ParseDeadline { until: None, cancelled: None };
        let one = |(path, file): &(&str, Option<&TreeFile>)| {
            (*file)?;
            let content = contents.next().flatten()?;
            let reading = self.cache.read(language_of(path)?, &content, &patience);
            Some((content, reading))
        };
        Ok(files.iter().map(one).collect())
    }
}

fn version((bytes, reading): &Read) -> Version<'_> {
    Version { reading, bytes }
}

/// Returns the names that a file calls outside of all symbols, and does not define itself.
fn called_at_top(reading: &Reading) -> BTreeSet<Box<str>> {
    let is_named = |it: &&Call| matches!(it.callee.receiver, Receiver::None | Receiver::Path(_));
    let at_top = reading.calls.iter().filter(|it| it.caller.is_none()).filter(is_named);
    let names = at_top.map(|it| Box::from(&*it.callee.name));
    names.filter(|it| reading.find(it).is_empty()).collect()
}

/// Returns the symbols that differ; an empty name stands for a file that is new, or differs outside of all symbols.
fn touched_in(old: Option<&Read>, new: Option<&Read>) -> BTreeSet<Box<str>> {
    let all = |it: &Read| it.1.symbols.iter().map(|it| it.path.clone()).collect::<Vec<_>>();
    let is_whole = |it: &Read| it.1.is_whole();
    let found = match (old, new) {
        (Some(old), Some(new)) => {
            let mut found = touched(version(old), version(new));
            // In a file that cannot be read whole, each symbol may have changed.
            if found.iter().any(|it| it.is_empty()) && !(is_whole(old) && is_whole(new)) {
                found.extend(all(old).into_iter().chain(all(new)));
            }
            found
        }
        (Some(only), None) => all(only),
        (None, Some(only)) => all(only).into_iter().chain(["".into()]).collect(),
        (None, None) => Vec::new(),
    };
    found.into_iter().collect()
}

fn broken_in(
    path: &str,
    old: Option<&Read>,
    new: Option<&Read>,
    broken: &mut BTreeMap<(String, Box<str>), Broken>,
) {
    let Some((_, old)) = old else { return };
    for symbol in &old.symbols {
        let how = match new {
            None => Some(Broken::Gone),
            Some((_, new)) if new.find(&symbol.path).is_empty() => {
                // If the file cannot be read whole, the symbol may still be there.
                new.is_whole().then_some(Broken::Gone)
            }
            Some((_, new)) => match (old.contract(&symbol.path), new.contract(&symbol.path)) {
                (Ok(before), Ok(after)) if before.canon != after.canon => Some(Broken::Changed(after.text)),
                _ => None,
            },
        };
        if let Some(how) = how {
            broken.insert((path.to_owned(), symbol.path.clone()), how);
        }
    }
}
