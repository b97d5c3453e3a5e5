//! What another source, as the index of a compiler, knows of the calls in a file, and what it replaces of what was found here.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::folder_of;
use super::outline::Outline;
use super::{Edge, FoundBy, Graph, Target};
use provost_base::RepoPath;

/// A call that another source knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ToldCall {
    /// The path of the calling symbol.
    pub caller: Box<str>,
    /// The name at the call.
    pub name: Box<str>,
    /// The file of the called symbol.
    pub file: RepoPath,
    /// The path of the called symbol there.
    pub callee: Box<str>,
}

/// The facts of another source about the calls in a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Told {
    /// The calls to symbols of the repository.
    pub calls: BTreeSet<ToldCall>,
    /// The pairs of a calling symbol's path and a name for which `calls` has the target of each call of that name.
    pub settled: BTreeSet<(Box<str>, Box<str>)>,
}

/// The facts of other sources, by the file of the calling symbol.
#[derive(Default, Debug)]
pub(super) struct AllTold {
    files: BTreeMap<RepoPath, Told>,
    /// The files of the calling symbols, by the file of the called one.
    into: BTreeMap<RepoPath, BTreeSet<RepoPath>>,
}

impl AllTold {
    pub(super) fn of(&self, path: &RepoPath) -> Option<&Told> {
        self.files.get(path)
    }

    /// Returns the files in which a call of a symbol of this file is told of.
    pub(super) fn callers_in(&self, path: &RepoPath) -> impl Iterator<Item = &RepoPath> {
        self.into.get(path).into_iter().flatten()
    }

    /// Replaces the facts about a file; returns whether they have changed.
    fn set(&mut self, path: &RepoPath, told: Option<Told>) -> bool {
        if self.files.get(path) == told.as_ref() {
            return false;
        }
        for call in self.files.remove(path).into_iter().flat_map(|it| it.calls) {
            if let Some(callers) = self.into.get_mut(&call.file) {
                callers.remove(path);
                if callers.is_empty() {
                    self.into.remove(&call.file);
                }
            }
        }
        if let Some(told) = told {
            for call in &told.calls {
                self.into.entry(call.file.clone()).or_default().insert(path.clone());
            }
            self.files.insert(path.clone(), told);
        }
        true
    }
}

/// The facts about a file that count now: a symbol that a source names may have gone since. The numbers are those of calling symbols.
#[derive(Default)]
struct Facts<'a> {
    edges: BTreeSet<(u32, Target)>,
    /// What contains the called symbols, as the class of a constructor.
    around: BTreeSet<(u32, Target)>,
    /// The names of the called symbols.
    names: BTreeSet<(u32, &'a str)>,
    /// The names of called symbols that the rules have found, too.
    agreed: BTreeSet<(u32, &'a str)>,
    /// The names whose calls are all known.
    settled: BTreeSet<(u32, &'a str)>,
    /// Called symbols that other files may define, too, for another system: the folder of the module, and the path; without a folder in
    /// languages that declare a symbol in one file and define it in others.
    others: BTreeSet<(u32, Option<&'a str>, &'a str)>,
}

impl Graph {
    /// Takes in the facts of another source about the calls in one file. `None` forgets them.
    pub fn tell(&mut self, path: &RepoPath, told: Option<Told>) {
        if self.told.set(path, told) {
            self.unresolved.extend(self.files.at(path.as_str()));
        }
    }

    /// Returns the number of files about which another source tells.
    pub fn files_told(&self) -> usize {
        self.told.files.len()
    }

    /// Returns the files about which another source tells.
    pub fn told_files(&self) -> Vec<RepoPath> {
        self.told.files.keys().cloned().collect()
    }

    /// Adds the facts of another source about a file. They replace guesses of the same name, and where each call of a name is known, what
    /// the rules have found and calls without a known target. Nothing is replaced where the rules have found one of them, too: what is
    /// beside it is there on purpose, as the code behind a declaration.
    pub(super) fn add_told(&self, number: u32, told: &Told, edges: &mut Vec<Edge>, deps: &mut Vec<u32>) {
        let Some(outline) = self.files.outline(number) else { return };
        let facts = self.facts_of((number, outline), told, edges, deps);
        edges.retain(|edge| self.stays(edge, outline, &facts));
        let known: BTreeSet<(u32, Target)> = edges.iter().map(|it| (it.caller, it.target)).collect();
        let new = facts.edges.into_iter().filter(|it| !known.contains(it));
        edges.extend(new.map(|(caller, target)| Edge { caller, target, found: FoundBy::Index }));
    }

    /// Checks whether an edge that was found here stays beside the facts.
    fn stays(&self, edge: &Edge, outline: &Outline, facts: &Facts<'_>) -> bool {
        let at = (edge.caller, edge.target);
        let (file, node) = match edge.target {
            Target::Unknown(word) => return !facts.settled.contains(&(edge.caller, outline.word(word))),
            Target::Symbol { file, node } => (file, node),
        };
        let (Some(there), Some(path)) = (self.files.outline(file), self.files.path(file)) else {
            return true;
        };
        let key = (edge.caller, there.word(there.nodes[node as usize].name));
        if facts.edges.contains(&at) {
            // A guess is added as a fact.
            return edge.found != FoundBy::Guess;
        }
        let within = defined_within(there, path);
        let is_another = within.is_some_and(|it| facts.others.contains(&(edge.caller, it, there.path(node))));
        if facts.around.contains(&at) || facts.agreed.contains(&key) || is_another {
            return true;
        }
        !facts.names.contains(&key) || edge.found != FoundBy::Guess && !facts.settled.contains(&key)
    }

    fn facts_of<'a>(
        &'a self,
        (number, outline): (u32, &'a Outline),
        told: &'a Told,
        edges: &[Edge],
        deps: &mut Vec<u32>,
    ) -> Facts<'a> {
        let by_rules = edges.iter().filter(|it| it.found == FoundBy::Rules);
        let by_rules: BTreeSet<(u32, Target)> = by_rules.map(|it| (it.caller, it.target)).collect();
        let (mut facts, mut gone) = (Facts::default(), BTreeSet::new());
        for call in &told.calls {
            let Some(caller) = outline.node(&call.caller) else { continue };
            let file = self.files.at(call.file.as_str());
            if let Some(file) = file.filter(|it| *it != number)
                && let Err(at) = deps.binary_search(&file)
            {
                deps.insert(at, file);
            }
            let there = file.and_then(|it| Some((it, self.files.outline(it)?)));
            let Some((file, there, node)) =
                there.and_then(|(file, it)| Some((file, it, it.node(&call.callee)?)))
            else {
                gone.insert((caller, &*call.name));
                continue;
            };
            let (edge, name) =
                ((caller, Target::Symbol { file, node }), there.word(there.nodes[node as usize].name));
            let around =
                there.nodes[node as usize].parent.map(|node| (caller, Target::Symbol { file, node }));
            // The name at the call is that of the class for a constructor.
            let names = [(caller, name), (caller, &*call.name)];
            facts.names.extend(names);
            if by_rules.contains(&edge) || around.is_some_and(|it| by_rules.contains(&it)) {
                facts.agreed.extend(names);
            }
            facts.around.extend(around);
            if let Some(within) = defined_within(there, call.file.as_str()) {
                facts.others.insert((caller, within, there.path(node)));
            }
            facts.edges.insert(edge);
        }
        let settled = told.settled.iter().filter_map(|(caller, name)| Some((outline.node(caller)?, &**name)));
        facts.settled.extend(settled.filter(|it| !gone.contains(it)));
        facts
    }
}

/// Returns where other files may define a file's symbols, too: a folder, or anywhere (`None`); no answer in languages in which they may not.
fn defined_within<'a>(of: &Outline, path: &'a str) -> Option<Option<&'a str>> {
    match () {
        () if of.rules().folder_is_module => Some(Some(folder_of(path))),
        () if of.rules().follows.is_some() => Some(None),
        () => None,
    }
}
