//! Queries of the graph. The order of answers does not depend on the order of the files.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::outline::{Gap, Offered, Outline, number};
use super::{Edge, File, FoundBy, Graph, Target};
use provost_base::limits::{CALLERS_MAX, GRAPH_CANDIDATES_MAX};
use provost_base::{RepoPath, SymbolPath, symbol_as_path};

/// The size of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Files that the graph holds.
    pub files: usize,
    /// Symbols, each path of a file once.
    pub symbols: usize,
    /// Pairs of caller and callee, those with unknown callees included.
    pub edges: usize,
    /// Files that could not be read whole.
    pub broken: usize,
    /// About how many bytes the whole graph takes.
    pub bytes: usize,
}

/// A file that was not read whole.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NotWhole {
    /// The file.
    pub file: RepoPath,
    /// The reasons, in a few words each.
    pub why: Box<[&'static str]>,
}

/// The answer to a request for a symbol by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LookupResult {
    /// These symbols, by their full paths.
    Found(Vec<SymbolPath>),
    /// The graph does not have this file.
    NoSuchFile,
    /// The file is there, without such a symbol; these others may be meant.
    NoSuchSymbol(Vec<SymbolPath>),
    /// The file was not read to its end, and no symbol of this name was found before.
    Unread,
}

/// The file part of a callee that was not found, in wit's notation.
const UNKNOWN: &str = "?";

impl Graph {
    /// How much there is.
    pub fn size(&self) -> Size {
        let mut size = Size { files: self.files.by_path.len(), edges: self.edges, ..Size::default() };
        for file in self.files.slots.iter().flatten() {
            size.symbols += file.outline.nodes.len();
            size.broken += usize::from(file.outline.unread != Gap::Nothing);
            let keys = file.keys.len() * 2 * size_of::<std::sync::Arc<str>>();
            size.bytes += file.outline.weight() + file.edges.len() * size_of::<Edge>() + keys;
        }
        size
    }

    /// Files that were not read whole, and from which calls may be missing that have to do with symbols of these names of
    /// some files: what they call, and what calls them. How many there are, and the first of them.
    pub fn gaps(&self, of: &BTreeSet<RepoPath>, names: &BTreeSet<&str>) -> (usize, Option<RepoPath>) {
        let asked: BTreeSet<u32> = of.iter().filter_map(|path| self.files.at(path.as_str())).collect();
        let is_gap = |number: u32, file: &File| {
            // A call may use another name for an imported symbol.
            let imports = || file.links.iter().flatten().any(|it| asked.contains(it));
            asked.contains(&number) || file.outline.may_lack(names) || imports()
        };
        let unread = self.files.unread.iter().filter_map(|number| Some((*number, self.files.get(*number)?)));
        let gaps: Vec<&RepoPath> =
            unread.filter(|(number, file)| is_gap(*number, file)).map(|(_, file)| &file.path).collect();
        (gaps.len(), gaps.into_iter().min().cloned())
    }

    /// The files that were not read whole, in order, with the reasons for each. Those that a program has written are none of them.
    pub fn not_whole(&self) -> Vec<NotWhole> {
        let files = self.files.unread.iter().filter_map(|number| self.files.get(*number));
        let not_whole = |file: &File| NotWhole { file: file.path.clone(), why: file.outline.reasons.clone() };
        let mut found: Vec<NotWhole> = files.map(not_whole).collect();
        found.sort();
        found
    }

    /// Whether it has this file.
    pub fn has(&self, path: &RepoPath) -> bool {
        self.files.by_path.contains_key(path)
    }

    /// The files that it has, in order.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.files.by_path.keys()
    }

    /// The callers of a symbol, or of a symbol inside of it, from outside of it; for a constructor, those
    /// that make instances. The file `?` stands for what was not found: who calls something of that name. One
    /// more than [`CALLERS_MAX`] at most, which shows that there are more.
    pub fn callers(&self, of: &SymbolPath) -> Vec<SymbolPath> {
        self.callers_found(of).into_iter().map(|(caller, _)| caller).collect()
    }

    /// The same, each with how it was found that it calls the symbol.
    pub fn callers_found(&self, of: &SymbolPath) -> Vec<(SymbolPath, FoundBy)> {
        if of.file().as_str() == UNKNOWN {
            let found = self.unresolved_callers(of.symbol());
            return found.into_iter().map(|caller| (caller, FoundBy::Rules)).collect();
        }
        let Some((number, file)) = self.file(of.file()) else { return Vec::new() };
        let (asked, mut inside) = self.meant(file, of.symbol());
        for node in &asked {
            let it = &file.outline.nodes[*node as usize];
            // A caller that makes an instance runs the constructor.
            if it.kind == provost_syntax::Kind::Constructor {
                inside.extend(it.parent);
            }
        }
        let is_inner =
            |from: u32, caller: u32| from == number && inside.contains(&caller) && !asked.contains(&caller);
        let mut found: BTreeMap<SymbolPath, FoundBy> = BTreeMap::new();
        let dependants = self.dependants.get(&number).into_iter().flatten().copied();
        for from in dependants.chain([number]) {
            let Some(file) = self.files.get(from) else { continue };
            for edge in &file.edges {
                let meets = matches!(edge.target, Target::Symbol { file, node }
                    if file == number && (asked.contains(&node) || inside.contains(&node)));
                if meets
                    && !is_inner(from, edge.caller)
                    && let Some(caller) = name(file, edge.caller)
                {
                    let known = found.entry(caller).or_insert(edge.found);
                    *known = edge.found.min(*known);
                }
            }
        }
        found.into_iter().take(CALLERS_MAX + 1).collect()
    }

    /// The symbols that a symbol, or one inside of it, calls, in the order of first calls. What was
    /// not found is `?:name`.
    pub fn callees(&self, of: &SymbolPath) -> Vec<SymbolPath> {
        self.callees_found(of).into_iter().map(|(callee, _)| callee).collect()
    }

    /// The same, each with how it was found.
    pub fn callees_found(&self, of: &SymbolPath) -> Vec<(SymbolPath, FoundBy)> {
        let Some((_, file)) = self.file(of.file()) else { return Vec::new() };
        let (asked, inside) = self.meant(file, of.symbol());
        let mut places: BTreeMap<SymbolPath, usize> = BTreeMap::new();
        let mut found: Vec<(SymbolPath, FoundBy)> = Vec::new();
        let of_them =
            file.edges.iter().filter(|it| asked.contains(&it.caller) || inside.contains(&it.caller));
        for edge in of_them {
            let Some(callee) = self.target(file, edge.target) else { continue };
            match places.get(&callee) {
                Some(at) => found[*at].1 = edge.found.min(found[*at].1),
                None if found.len() > CALLERS_MAX => break,
                None => {
                    places.insert(callee.clone(), found.len());
                    found.push((callee, edge.found));
                }
            }
        }
        found
    }

    /// The symbols that some symbols of a file, or ones inside of them, call, in the order of first calls, each with how it was found.
    /// Each is asked for by its full path, with a number by which the answer names it.
    pub fn callees_of(&self, path: &RepoPath, symbols: &[(u32, &str)]) -> Vec<(u32, SymbolPath, FoundBy)> {
        let Some((_, file)) = self.file(path) else { return Vec::new() };
        let mut asked: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, symbol) in symbols {
            let Some(node) = file.outline.node(symbol) else { continue };
            asked.entry(node).or_insert(*number);
        }
        // A symbol that was asked for itself takes precedence over a symbol around it.
        let outer: Vec<(u32, u32)> = asked.iter().map(|(node, number)| (*node, *number)).collect();
        for (node, number) in outer {
            for inner in file.outline.inside(node) {
                asked.entry(inner).or_insert(number);
            }
        }
        let mut places: BTreeMap<(u32, SymbolPath), usize> = BTreeMap::new();
        let mut calls: Vec<(u32, SymbolPath, FoundBy)> = Vec::new();
        for edge in &file.edges {
            let Some(number) = asked.get(&edge.caller).copied() else { continue };
            let Some(callee) = self.target(file, edge.target) else { continue };
            match places.entry((number, callee.clone())) {
                Entry::Occupied(at) => {
                    let known = &mut calls[*at.get()].2;
                    *known = edge.found.min(*known);
                }
                Entry::Vacant(_) if calls.len() > CALLERS_MAX => break,
                Entry::Vacant(free) => {
                    free.insert(calls.len());
                    calls.push((number, callee, edge.found));
                }
            }
        }
        calls
    }

    /// The files that a file imports, as far as they are known.
    pub fn imports(&self, path: &RepoPath) -> Vec<&RepoPath> {
        let linked = self.file(path).into_iter().flat_map(|(_, file)| {
            // Where files are found by what they define, it imports those that it has to do with.
            let by_name = if file.outline.rules().by_path.is_some() { &*file.deps } else { &[] };
            file.links.iter().flatten().chain(by_name)
        });
        linked.filter_map(|it| Some(&self.files.get(*it)?.path)).collect()
    }

    /// The callers of a symbol of this name that was not found.
    pub fn unresolved_callers(&self, callee: &str) -> Vec<SymbolPath> {
        let mut found = BTreeSet::new();
        for file in self.files.slots.iter().flatten() {
            for edge in &file.edges {
                if matches!(edge.target, Target::Unknown(word) if file.outline.word(word) == callee) {
                    found.extend(name(file, edge.caller));
                }
            }
        }
        found.into_iter().take(CALLERS_MAX + 1).collect()
    }

    /// The symbols of a file that a request means.
    pub fn asked(&self, of: &SymbolPath) -> LookupResult {
        if of.file().as_str() == UNKNOWN {
            return LookupResult::Found(vec![of.clone()]);
        }
        let Some((_, file)) = self.file(of.file()) else { return LookupResult::NoSuchFile };
        if of.symbol().is_empty() {
            return LookupResult::Found(vec![of.clone()]);
        }
        let found = file.outline.called_or_spelt(of.symbol());
        let found: Vec<SymbolPath> = found.into_iter().filter_map(|node| name(file, node)).collect();
        if found.is_empty() && file.outline.unread == Gap::Anything {
            LookupResult::Unread
        } else if found.is_empty() {
            let plain = symbol_as_path(of.symbol());
            LookupResult::NoSuchSymbol(self.alike(file, plain.as_deref().unwrap_or(of.symbol())))
        } else {
            LookupResult::Found(found)
        }
    }

    /// Symbols of this name, in any file, as people write it. One more than [`GRAPH_CANDIDATES_MAX`] at most, which shows that there are
    /// more.
    pub fn named(&self, asked: &str) -> Vec<SymbolPath> {
        let found = self.named_so(asked);
        match symbol_as_path(asked).filter(|_| found.is_empty()) {
            Some(plain) => self.named_so(&plain),
            None => found,
        }
    }

    fn named_so(&self, asked: &str) -> Vec<SymbolPath> {
        let files = self.files.by_path.values().filter_map(|number| self.files.get(*number));
        let found =
            files.flat_map(|file| file.outline.called(asked).into_iter().filter_map(|node| name(file, node)));
        found.take(GRAPH_CANDIDATES_MAX + 1).collect()
    }

    /// Every edge, as text. For tests and for those who compare.
    pub fn edges(&self) -> BTreeSet<(String, String)> {
        let mut edges = BTreeSet::new();
        for file in self.files.slots.iter().flatten() {
            for edge in &file.edges {
                if let (Some(caller), Some(callee)) =
                    (name(file, edge.caller), self.target(file, edge.target))
                {
                    edges.insert((caller.to_string(), callee.to_string()));
                }
            }
        }
        edges
    }

    /// Names of a file that are nearly the same, or have something of each other in them, whatever the case; then the
    /// same name elsewhere.
    fn alike(&self, file: &File, asked: &str) -> Vec<SymbolPath> {
        let last = asked.rsplit('.').next().unwrap_or(asked).to_lowercase();
        let alike = |node: &u32| {
            let name = file.outline.word(file.outline.nodes[*node as usize].name).to_lowercase();
            let one_in_the_other = name.contains(&last) || last.contains(&*name);
            !last.is_empty() && (one_in_the_other || are_near(&name, &last))
        };
        let all = 0..u32::try_from(file.outline.nodes.len()).unwrap_or(u32::MAX);
        let here = all.filter(alike).filter_map(|node| name(file, node));
        let mut found: Vec<SymbolPath> = here.take(GRAPH_CANDIDATES_MAX).collect();
        found.extend(self.named(asked));
        found.truncate(GRAPH_CANDIDATES_MAX);
        found
    }

    fn file(&self, path: &RepoPath) -> Option<(u32, &File)> {
        let number = self.files.at(path.as_str())?;
        Some((number, self.files.get(number)?))
    }

    /// The symbols that a name means, and those inside of them; for the empty name all are inside.
    fn meant(&self, file: &File, asked: &str) -> (BTreeSet<u32>, BTreeSet<u32>) {
        if asked.is_empty() {
            let all = 0..u32::try_from(file.outline.nodes.len()).unwrap_or(u32::MAX);
            return (BTreeSet::new(), all.collect());
        }
        let found: BTreeSet<u32> = file.outline.called_or_spelt(asked).into_iter().collect();
        let inside = found.iter().flat_map(|node| file.outline.inside(*node)).collect();
        (found, inside)
    }

    fn target(&self, from: &File, target: Target) -> Option<SymbolPath> {
        match target {
            Target::Symbol { file, node } => name(self.files.get(file)?, node),
            Target::Unknown(word) => {
                SymbolPath::parse(&format!("{UNKNOWN}:{}", from.outline.word(word))).ok()
            }
        }
    }
}

impl Outline {
    /// What a name stands for when people use it, also in the spelling of a language: `Store::get`, `Store#get`.
    fn called_or_spelt(&self, name: &str) -> Vec<u32> {
        let found = self.called(name);
        match symbol_as_path(name).filter(|_| found.is_empty()) {
            Some(plain) => self.called(&plain),
            None => found,
        }
    }

    /// What a name stands for when people use it: a whole path, else the end of one, where code goes before
    /// declarations, else a name under which it is exported.
    fn called(&self, name: &str) -> Vec<u32> {
        if let Some(node) = self.node(name) {
            return vec![node];
        }
        let end = format!(".{name}");
        let is_it = |node: &&u32| self.path(**node).ends_with(&end);
        let all: Vec<u32> = (0..number(self.nodes.len())).collect();
        let mut found: Vec<u32> = all.iter().filter(is_it).copied().collect();
        if found.iter().any(|node| !self.nodes[*node as usize].declared) {
            found.retain(|node| !self.nodes[*node as usize].declared);
        }
        if found.is_empty() {
            let offers = self.exports.iter().filter(|offer| self.word(offer.name) == name);
            found.extend(offers.filter_map(|offer| match offer.what {
                Offered::Local(local) => self.node(self.word(local)),
                Offered::Passed { .. } => None,
            }));
        }
        found
    }
}

/// Whether two words differ by so little that one may be a slip of the other: two letters at most, a third of all.
fn are_near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let most = 2.min(a.len().max(b.len()) / 3);
    // The classic table of edit distances; only its current row is kept.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()] <= most
}

/// A symbol as others name it; none for names with control characters, which no request can have.
fn name(file: &File, node: u32) -> Option<SymbolPath> {
    SymbolPath::of(file.path.clone(), file.outline.path(node)).ok()
}
