//! The call graph across the files of a repository.
//!
//! The caller adds files as [`Outline`]s, one at a time and in any order. The graph follows imports from file to
//! file; a call that it cannot follow is `?:name`, as in wit. Promises: the same files give the same graph in any
//! order; the cost of a change depends on its dependants, never on the whole; the graph opens no file.
//! A guess (the one method of its name) is an edge that says so ([`FoundBy`]) and counts like any other, since a superfluous warning costs less than a
//! missing one. `index` reads the files, and notices their changes.
#![forbid(unsafe_code)]

mod bases;
mod given;
mod guesses;
mod instances;
mod interned_names;
mod keyed_files;
mod lang;
mod modules;
mod outline;
mod queries;
mod resolve;
mod scip;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keyed_files::{Fingerprints, Key, KeyedFiles};
pub use lang::is_settings;
use lang::{Settings, rules_at};
use modules::keys_of;
pub use outline::Outline;
use provost_base::RepoPath;
use provost_base::limits::{GRAPH_BYTES_MAX, GRAPH_FILES_MAX};
pub use queries::{LookupResult, NotWhole, Size};
use resolve::{Resolved, Resolver};
pub use scip::{Document, Index as ScipIndex, NoIndex, Occurrence, Unit, read as read_scip};
pub use told::{Told, ToldCall};

/// The call graph of a repository.
#[derive(Default, Debug)]
pub struct Graph {
    files: Files,
    settings: Settings,
    /// Files that have imported a module, by the module's key.
    waiting: BTreeMap<Arc<str>, BTreeSet<u32>>,
    /// Files whose edges depend on another file's exports.
    dependants: BTreeMap<u32, BTreeSet<u32>>,
    /// Files whose edges depend on which files define or extend a symbol, by its key.
    asking: KeyedFiles,
    /// Files whose imports have to be followed again, and files whose calls have to be.
    unlinked: BTreeSet<u32>,
    unresolved: BTreeSet<u32>,
    /// Edges from other sources, by the file of the calling symbol.
    told: told::AllTold,
    edges: usize,
    bytes: usize,
}

/// Files by number and by path.
#[derive(Default, Debug)]
struct Files {
    slots: Vec<Option<File>>,
    free: Vec<u32>,
    by_path: BTreeMap<RepoPath, u32>,
    /// Files that were not read whole.
    unread: BTreeSet<u32>,
    /// The files of languages in which a folder is one module, by folder.
    by_folder: BTreeMap<Box<str>, BTreeSet<u32>>,
    /// Files that extend a type of another file, by the name of the type; and, in languages in which files know names without
    /// importing them, the defining files, by the language's key for the name.
    adding: KeyedFiles,
    keys: Fingerprints,
}

#[derive(Debug)]
struct File {
    path: RepoPath,
    outline: Arc<Outline>,
    /// The files of its modules, in the order of the outline's specs.
    links: Box<[Option<u32>]>,
    keys: Vec<Arc<str>>,
    edges: Vec<Edge>,
    deps: Vec<u32>,
    /// The keys by which its edges depend on other files' definitions and extensions.
    asked: Box<[Key]>,
}

/// A call of one symbol by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Edge {
    caller: u32,
    target: Target,
    found: FoundBy,
}

/// The way in which the target of a call was found. If there are two ways, the surer one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FoundBy {
    /// By the language's own rules for scopes, imports and written types.
    Rules,
    /// By a `.scip` index.
    Index,
    /// By its name alone, or as one of several possible targets.
    Guess,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Target {
    Symbol {
        file: u32,
        node: u32,
    },
    /// A name of the caller's file.
    Unknown(interned_names::NameId),
}

/// The reason why a file was not taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Full {
    /// The graph has [`GRAPH_FILES_MAX`] files already.
    #[error("more than {GRAPH_FILES_MAX} source files")]
    Files,
    /// The files take [`GRAPH_BYTES_MAX`] already.
    #[error("more than {} MiB of names and calls", GRAPH_BYTES_MAX >> 20)]
    Bytes,
}

impl Files {
    fn get(&self, file: u32) -> Option<&File> {
        self.slots.get(file as usize)?.as_ref()
    }

    fn get_mut(&mut self, file: u32) -> Option<&mut File> {
        self.slots.get_mut(file as usize)?.as_mut()
    }

    fn outline(&self, file: u32) -> Option<&Outline> {
        self.get(file).map(|file| &*file.outline)
    }

    fn path(&self, file: u32) -> Option<&str> {
        self.get(file).map(|file| file.path.as_str())
    }

    fn link(&self, file: u32, spec: u32) -> Option<u32> {
        self.get(file)?.links.get(spec as usize).copied().flatten()
    }

    fn at(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    fn add(&mut self, file: File) -> u32 {
        let path = file.path.clone();
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("there are fewer files than limits allow")
        });
        if let Some(folder) = folder_as_module(&path) {
            self.by_folder.entry(folder.into()).or_default().insert(number);
        }
        self.notes_gap(number, &file.outline);
        self.slots[number as usize] = Some(file);
        self.by_path.insert(path, number);
        number
    }

    fn notes_gap(&mut self, number: u32, outline: &Outline) {
        if outline.unread == outline::Gap::Nothing {
            self.unread.remove(&number);
        } else {
            self.unread.insert(number);
        }
    }

    /// The files of a folder, in the order of their names, where folders are modules.
    fn in_folder(&self, folder: &str) -> Vec<u32> {
        let mut found: Vec<u32> = self.by_folder.get(folder).into_iter().flatten().copied().collect();
        found.sort_by_key(|file| self.path(*file));
        found
    }

    /// Notes, or forgets, under which keys a file defines or adds something.
    fn adds(&mut self, number: u32, keys: &BTreeSet<Box<str>>, is_there: bool) {
        for name in keys {
            let key = self.keys.of(name);
            if is_there {
                self.adding.insert(key, number);
            } else {
                self.adding.remove(key, number);
            }
        }
    }
}

/// Under which keys a file defines or adds something for others.
fn added_keys(path: &RepoPath, outline: &Outline) -> BTreeSet<Box<str>> {
    match outline.rules().keys {
        Some(keys) => keys(path.as_str(), outline),
        None => outline.adds(),
    }
}

/// The folder of a file, where it is one module with the others there.
fn folder_as_module(path: &RepoPath) -> Option<&str> {
    let rules = rules_at(path.as_str())?;
    rules.folder_is_module.then(|| modules::folder_of(path.as_str()))
}

impl Graph {
    /// Takes a file in, or what has become of it.
    ///
    /// # Errors
    /// [`Full`] when no more fits; what was known of the file before is forgotten.
    pub fn put(&mut self, path: &RepoPath, outline: Arc<Outline>) -> Result<(), Full> {
        let known = self.files.at(path.as_str());
        let before = known.and_then(|it| self.files.outline(it)).map_or(0, Outline::weight);
        let full = if known.is_none() && self.files.by_path.len() >= GRAPH_FILES_MAX {
            Some(Full::Files)
        } else {
            (self.bytes - before + outline.weight() > GRAPH_BYTES_MAX).then_some(Full::Bytes)
        };
        if let Some(full) = full {
            self.remove(path);
            return Err(full);
        }
        self.bytes = self.bytes - before + outline.weight();
        match known {
            Some(number) => self.replace(number, outline),
            None => self.add(path, outline),
        }
        Ok(())
    }

    /// Whether it has a file just as it is.
    pub fn holds(&self, path: &RepoPath, outline: &Outline) -> bool {
        let known = self.files.at(path.as_str()).and_then(|it| self.files.outline(it));
        known.is_some_and(|known| *known == *outline)
    }

    fn add(&mut self, path: &RepoPath, outline: Arc<Outline>) {
        let links = vec![None; outline.specs.len()].into();
        let (keys, edges, deps, asked) = (Vec::new(), Vec::new(), Vec::new(), Box::default());
        let adds = added_keys(path, &outline);
        let number = self.files.add(File { path: path.clone(), outline, links, keys, edges, deps, asked });
        self.unlinked.insert(number);
        self.files.adds(number, &adds, true);
        self.look_again_at(&adds);
        self.wake(path.as_str());
        let told = self.told.callers_in(path).filter_map(|caller| self.files.at(caller.as_str()));
        self.unresolved.extend(told);
    }

    /// Files that have asked for these keys look again.
    fn look_again_at<'k>(&mut self, keys: impl IntoIterator<Item = &'k Box<str>>) {
        for name in keys {
            self.unresolved.extend(self.asking.under(self.files.keys.of(name)));
        }
    }

    fn replace(&mut self, number: u32, outline: Arc<Outline>) {
        let Some(file) = self.files.get_mut(number) else { return };
        let adds = [added_keys(&file.path, &file.outline), added_keys(&file.path, &outline)];
        let same = file.outline.shows_the_same(&outline);
        if *file.outline == *outline {
            return;
        }
        if !same {
            file.links = vec![None; outline.specs.len()].into();
        }
        file.outline = outline.clone();
        // Their numbers are of the old one's words.
        self.edges -= file.edges.len();
        file.edges.clear();
        self.files.notes_gap(number, &outline);
        if same {
            self.unresolved.insert(number);
        } else {
            self.unlinked.insert(number);
            self.forget_edges_into(number);
            let [before, now] = adds;
            self.files.adds(number, &before, false);
            self.files.adds(number, &now, true);
            // Also for what it had under a key before: something else may be there under the same one.
            self.look_again_at(before.union(&now));
        }
    }

    /// Forgets a file, and looks again at the files that depend on it.
    pub fn remove(&mut self, path: &RepoPath) {
        let Some(number) = self.files.by_path.remove(path) else { return };
        self.forget_edges_into(number);
        let Some(file) = self.files.slots[number as usize].take() else { return };
        self.files.free.push(number);
        self.files.unread.remove(&number);
        self.bytes -= file.outline.weight();
        self.edges -= file.edges.len();
        for key in &file.keys {
            self.unsubscribe(key, number);
        }
        self.let_go(number, &file.deps);
        file.asked.iter().for_each(|key| self.asking.remove(*key, number));
        if let Some(folder) = folder_as_module(path)
            && let Some(all) = self.files.by_folder.get_mut(folder)
        {
            all.remove(&number);
        }
        let adds = added_keys(path, &file.outline);
        self.files.adds(number, &adds, false);
        self.look_again_at(&adds);
        self.dependants.remove(&number);
        self.unlinked.remove(&number);
        self.unresolved.remove(&number);
        self.wake(path.as_str());
    }

    /// Takes in what a file of settings says (one for which [`is_settings`] holds), or that it is gone.
    pub fn set_settings(&mut self, path: &RepoPath, text: Option<&str>) {
        if self.settings.set(path.as_str(), text) {
            let all = self.files.by_path.values().copied();
            let reads = |outline: &Outline| (outline.rules().is_settings)(path.as_str());
            let readers = all.filter(|it| self.files.outline(*it).is_some_and(reads));
            self.unlinked.extend(readers.collect::<Vec<_>>());
        }
    }

    /// Edges that lead into a file point to symbols by number, so files with such edges are looked at again.
    fn forget_edges_into(&mut self, number: u32) {
        for dependant in self.dependants.get(&number).cloned().unwrap_or_default() {
            if let Some(file) = self.files.get_mut(dependant) {
                let before = file.edges.len();
                file.edges
                    .retain(|edge| !matches!(edge.target, Target::Symbol { file, .. } if file == number));
                self.edges -= before - file.edges.len();
                self.unresolved.insert(dependant);
            }
        }
    }

    /// Files that have looked for what comes or goes look again.
    fn wake(&mut self, path: &str) {
        let rules = rules_at(path);
        for key in keys_of(path) {
            self.unlinked.extend(self.waiting.get(&*key).into_iter().flatten());
            // A module may be a member of its package, and importers of the package may have looked for it.
            let package = rules.and_then(|rules| (rules.package_of)(&key, &self.files));
            let users = package.and_then(|package| self.dependants.get(&package));
            self.unresolved.extend(users.into_iter().flatten());
        }
    }

    fn unsubscribe(&mut self, key: &Arc<str>, number: u32) {
        if let Some(all) = self.waiting.get_mut(key) {
            all.remove(&number);
            if all.is_empty() {
                self.waiting.remove(key);
            }
        }
    }

    fn let_go(&mut self, number: u32, deps: &[u32]) {
        for dep in deps {
            if let Some(all) = self.dependants.get_mut(dep) {
                all.remove(&number);
            }
        }
    }

    /// Whether everything that came in has been followed.
    pub fn is_settled(&self) -> bool {
        self.unlinked.is_empty() && self.unresolved.is_empty()
    }

    /// Follows the imports and calls of at most so many files that are to be looked at; whether all were.
    pub fn settle(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if let Some(number) = self.unlinked.pop_first() {
                self.link(number);
            } else if let Some(number) = self.unresolved.pop_first() {
                self.resolve(number);
            } else {
                break;
            }
        }
        self.is_settled()
    }

    fn link(&mut self, number: u32) {
        let Some(file) = self.files.get(number) else { return };
        let (rules, path) = (file.outline.rules(), file.path.as_str());
        let mut keys = BTreeSet::new();
        let links: Box<[Option<u32>]> = file
            .outline
            .specs
            .iter()
            .map(|spec| {
                let tries = (rules.tries)(file.outline.word(*spec), path, &self.files, &self.settings);
                keys.extend(tries.keys);
                tries
                    .paths
                    .iter()
                    .find_map(|path| self.files.at(path))
                    .filter(|found| *found != number || rules.names_itself)
            })
            .collect();
        let keys: Vec<Arc<str>> = keys.iter().map(|key| self.key(key)).collect();
        let Some(file) = self.files.get_mut(number) else { return };
        let differs = file.links != links;
        file.links = links;
        let before = std::mem::replace(&mut file.keys, keys.clone());
        for key in before.iter().filter(|key| keys.binary_search(key).is_err()) {
            self.unsubscribe(key, number);
        }
        for key in keys {
            self.waiting.entry(key).or_default().insert(number);
        }
        self.unresolved.insert(number);
        if differs {
            // The names that it passes on from other files have changed.
            self.unresolved.extend(self.dependants.get(&number).into_iter().flatten());
        }
    }

    /// The one copy of a key.
    fn key(&self, key: &str) -> Arc<str> {
        self.waiting.get_key_value(key).map_or_else(|| Arc::from(key), |(known, _)| known.clone())
    }

    fn resolve(&mut self, number: u32) {
        let Some(file) = self.files.get(number) else { return };
        let Resolved { mut edges, mut deps, asked } = Resolver::new(&self.files, number, &file.outline).run();
        if let Some(told) = self.told.of(&file.path) {
            self.add_told(number, told, &mut edges, &mut deps);
        }
        let asked: Box<[Key]> = asked.iter().map(|key| self.files.keys.of(key)).collect();
        let Some(file) = self.files.get_mut(number) else { return };
        self.edges = self.edges - file.edges.len() + edges.len();
        edges.shrink_to_fit();
        file.edges = edges;
        file.asked.iter().for_each(|key| self.asking.remove(*key, number));
        asked.iter().for_each(|key| self.asking.insert(*key, number));
        file.asked = asked;
        let before = std::mem::replace(&mut file.deps, deps.clone());
        let gone: Vec<u32> = before.into_iter().filter(|dep| deps.binary_search(dep).is_err()).collect();
        self.let_go(number, &gone);
        for dep in deps {
            self.dependants.entry(dep).or_default().insert(number);
        }
    }
}
