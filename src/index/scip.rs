//! The `.scip` files at the root: a compiler's findings take precedence over our own.
//!
//! They name the places where symbols are defined and used, by line and column. Both are mapped to symbols and calls of our own
//! readings, so that an edge has the same ends from either source. They count for files that have not been written since, and in which
//! the names stand where the index says. A language's indexer writes one file, so there may be several.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::read::{Content, Stamp, content, stamp};
use super::{Index, Scip};
use provost_base::RepoPath;
use provost_base::limits::{SCIP_BYTES_MAX, SCIP_FILES_MAX, SOURCE_BYTES_MAX};
use provost_graph::{Document, Occurrence, ScipIndex, Told, Unit, read_scip};
use provost_syntax::{ParseDeadline, Reading, language_of};

/// The ending of the files' names.
const ENDING: &str = ".scip";
/// The beginning of what is said about a file that cannot be used.
pub(super) const COMPLAINS: &str = "the index ";

/// The places of definitions, by the symbols' names in the index.
type Definitions<'a> = BTreeMap<&'a str, (RepoPath, Box<str>)>;

/// A file that has not changed since the index was made, so that the index is right about it.
struct Believed<'a> {
    path: RepoPath,
    bytes: Vec<u8>,
    reading: Arc<Reading>,
    document: &'a Document<'a>,
    /// The offset of the first byte of each line.
    lines: Vec<usize>,
}

/// The files at the root when they were last taken in, with their stamps.
pub(super) type Seen = BTreeMap<RepoPath, Stamp>;

impl Index {
    /// Takes the indexes in, if one of them has changed since the last time. Parts that cannot be used are named.
    pub(super) fn look_at_scip(&self, seen: &mut Seen) {
        let mut found: Seen = self.named_scip().into_iter().collect();
        if found == *seen {
            return;
        }
        self.graph(provost_graph::Graph::forget_told);
        self.progress(|it| {
            it.scip = None;
            it.missing.retain(|why| !why.starts_with(COMPLAINS));
        });
        while found.len() > SCIP_FILES_MAX {
            let left_out = found.pop_last().map(|(path, _)| path);
            self.complain(left_out.as_ref(), &format!("there are more than {SCIP_FILES_MAX}"));
        }
        for path in found.keys() {
            match content(&self.0.root, path, SCIP_BYTES_MAX) {
                Ok(Content::Bytes(bytes, made)) => match read_scip(&bytes) {
                    Ok(index) => self.believe(&index, path, made),
                    Err(err) => self.complain(Some(path), &err.to_string()),
                },
                Ok(Content::TooLarge(_)) => {
                    self.complain(Some(path), &format!("it is larger than {} MiB", SCIP_BYTES_MAX >> 20));
                }
                Ok(Content::Nothing) => {}
                Err(err) => self.complain(Some(path), &err.to_string()),
            }
        }
        *seen = found;
    }

    /// Returns the indexes at the root, with their stamps.
    fn named_scip(&self) -> Vec<(RepoPath, Stamp)> {
        let entries = self.0.root.entries().into_iter().flatten().flatten();
        let named =
            entries.filter_map(|it| it.file_name().into_string().ok()).filter(|it| it.ends_with(ENDING));
        let paths = named.filter_map(|it| RepoPath::parse(&it).ok());
        paths.filter_map(|path| Some((path.clone(), stamp(&self.0.root, &path).ok()??))).collect()
    }

    fn complain(&self, path: Option<&RepoPath>, why: &str) {
        let name = path.map_or(ENDING, |it| it.as_str());
        let text = format!("{COMPLAINS}{name} is not used: {why}");
        tracing::warn!("{text}");
        self.progress(|it| it.missing.push(text));
    }

    fn believe(&self, index: &ScipIndex<'_>, name: &RepoPath, made: Stamp) {
        let (mut definitions, mut defined, mut current) = (Definitions::new(), BTreeSet::new(), Vec::new());
        for document in &index.documents {
            let defines = document.occurrences.iter().filter(|it| it.defines);
            defined.extend(defines.clone().map(|it| it.symbol));
            let Some(file) = self.believed(document, made) else { continue };
            for it in defines {
                if let Some(symbol) = file.defined(it) {
                    definitions.entry(it.symbol).or_insert((file.path.clone(), symbol));
                }
            }
            // The file is read again in a moment, mostly from the cache, so that not all are held at once.
            current.push(document);
        }
        let (mut edges, mut files) = (0, 0);
        for document in &current {
            let Some(file) = self.believed(document, made) else { continue };
            let told = file.calls(&definitions, &defined);
            edges += told.edges.len();
            files += 1;
            self.graph(|graph| graph.tell(&file.path, Some(told)));
        }
        let outdated = index.documents.len() - files;
        let tool = if index.tool.is_empty() { "an unnamed program".to_owned() } else { index.tool.clone() };
        tracing::info!(tool, files, outdated, edges, "{name} is used");
        self.progress(|it| {
            let scip = it.scip.get_or_insert_with(Scip::default);
            let separator = if scip.tool.is_empty() { "" } else { ", " };
            scip.tool = format!("{}{separator}{tool}", scip.tool);
            (scip.files, scip.outdated, scip.edges) =
                (scip.files + files, scip.outdated + outdated, scip.edges + edges);
        });
    }

    /// Returns a file that the index has, that was not written since, and in which the names stand where the index says.
    fn believed<'a>(&self, document: &'a Document<'a>, made: Stamp) -> Option<Believed<'a>> {
        if self.0.bell.stop.load(Ordering::Relaxed) {
            return None;
        }
        let path = RepoPath::parse(document.path).ok()?;
        let language = language_of(path.as_str())?;
        if !self.known(|known| known.is_listed(&path)) {
            return None;
        }
        match content(&self.0.root, &path, SOURCE_BYTES_MAX).ok()? {
            Content::Bytes(bytes, stamp) if stamp.written <= made.written => {
                let reading = self.0.cache.read(language, &bytes, &ParseDeadline::endless());
                let lines =
                    [0].into_iter().chain(memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1)).collect();
                let file = Believed { path, bytes, reading, document, lines };
                file.is_as_indexed().then_some(file)
            }
            _ => None,
        }
    }
}

impl Believed<'_> {
    /// Checks whether names stand at the places of the index: the time of a file can be set. Some symbols have another name in an index
    /// than in the text, as constructors and whole modules, so most must agree.
    fn is_as_indexed(&self) -> bool {
        let places = self.document.occurrences.iter().filter(|it| it.end.is_some_and(|end| end > it.start));
        let (mut agree, mut all) = (0_usize, 0_usize);
        for it in places {
            all += 1;
            agree += usize::from(self.text(it).is_some_and(|(_, name)| it.symbol.contains(name)));
        }
        agree * 2 >= all
    }

    /// Returns the offset of a name, and the name.
    fn text(&self, it: &Occurrence<'_>) -> Option<(u32, &str)> {
        let start_of_line = *self.lines.get(usize::try_from(it.line).ok()?)?;
        let rest = &self.bytes[start_of_line..];
        let text = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let text = std::str::from_utf8(text).ok()?;
        let (from, to) =
            (column(text, it.start, self.document.unit)?, column(text, it.end?, self.document.unit)?);
        Some((u32::try_from(start_of_line + from).ok()?, text.get(from..to)?))
    }

    /// Returns the symbol that a name defines: the innermost around it with this name.
    fn defined(&self, it: &Occurrence<'_>) -> Option<Box<str>> {
        let (at, name) = self.text(it)?;
        let around = self.reading.symbols.iter().filter(|symbol| symbol.range.contains(&at));
        let found = around.filter(|symbol| symbol.name() == name).min_by_key(|symbol| symbol.range.len());
        found.map(|symbol| symbol.path.clone())
    }

    /// Returns the calls of symbols with known definitions, and the names of which the index tells every call. `defined` are all symbols
    /// that the index defines; the others are outside of the repository.
    fn calls(&self, definitions: &Definitions<'_>, defined: &BTreeSet<&str>) -> Told {
        let mut calls: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
        for call in &self.reading.calls {
            let Some(caller) = call.caller else { continue };
            let place = Place { at: call.at, caller, is_told: false };
            calls.entry(&*call.callee.name).or_default().push(place);
        }
        calls.values_mut().for_each(|places| places.sort_unstable_by_key(|it| it.at));
        let mut edges = BTreeSet::new();
        for it in self.document.occurrences.iter().filter(|it| !it.defines) {
            let Some((at, name)) = self.text(it) else { continue };
            let Some(places) = calls.get_mut(name) else { continue };
            // The name of a call stands at or behind the call's beginning.
            let before = places.partition_point(|place| place.at <= at);
            let Some(place) = before.checked_sub(1).map(|last| &mut places[last]) else { continue };
            let caller = &self.reading.symbols[place.caller as usize];
            if !caller.range.contains(&at) {
                continue;
            }
            let found = definitions.get(it.symbol);
            // A symbol in a file that has changed since is somewhere in the repository.
            place.is_told |= found.is_some() || !defined.contains(it.symbol);
            if let Some((path, symbol)) = found {
                edges.insert((caller.path.clone(), path.clone(), symbol.clone()));
            }
        }
        let mut settled: BTreeMap<(u32, &str), bool> = BTreeMap::new();
        for (name, places) in &calls {
            for place in places {
                *settled.entry((place.caller, name)).or_insert(true) &= place.is_told;
            }
        }
        let settled = settled.into_iter().filter(|(_, is_settled)| *is_settled);
        let path = |caller: u32| self.reading.symbols[caller as usize].path.clone();
        let settled = settled.map(|((caller, name), _)| (path(caller), name.into())).collect();
        Told { edges: edges.into_iter().collect(), settled }
    }
}

/// A call in a file.
struct Place {
    at: u32,
    /// The number of the calling symbol in the reading.
    caller: u32,
    /// Whether the index tells what is called here.
    is_told: bool,
}

/// Returns the byte offset of a column.
fn column(line: &str, column: u32, unit: Unit) -> Option<usize> {
    let column = usize::try_from(column).ok()?;
    let width = |c: char| match unit {
        Unit::Bytes => c.len_utf8(),
        Unit::Utf16 => c.len_utf16(),
        Unit::Points => 1,
    };
    let mut passed = 0;
    for (at, c) in line.char_indices() {
        if passed >= column {
            return (passed == column).then_some(at);
        }
        passed += width(c);
    }
    (passed == column).then_some(line.len())
}
