//! An `index.scip` at the root: a compiler's findings take precedence over guesses by name.
//!
//! It names the places where symbols are defined and used, by line and column. Both are mapped to symbols and calls of our own
//! readings, so that an edge has the same ends from either source. It counts for files that have not been written
//! since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::read::{Content, Stamp, content, stamp};
use super::{Index, Scip};
use provost_base::RepoPath;
use provost_base::limits::{SCIP_BYTES_MAX, SOURCE_BYTES_MAX};
use provost_graph::{Document, ImportedEdge, Occurrence, ScipIndex, Unit, read_scip};
use provost_syntax::{ParseDeadline, Reading, language_of};

/// The name of the file at the root.
pub(super) const NAME: &str = "index.scip";

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

impl Index {
    /// Takes the index in, if it has changed since the last time. Parts that cannot be used are named.
    pub(super) fn look_at_scip(&self, seen: &mut Option<Stamp>) {
        let Ok(path) = RepoPath::parse(NAME) else { return };
        let found = stamp(&self.0.root, &path).ok().flatten();
        if found == *seen {
            return;
        }
        *seen = found;
        self.graph(provost_graph::Graph::forget_told);
        self.progress(|it| {
            it.scip = None;
            it.missing.retain(|why| !why.starts_with(NAME));
        });
        if found.is_none() {
            return;
        }
        let complaint = match content(&self.0.root, &path, SCIP_BYTES_MAX) {
            Ok(Content::Bytes(bytes, stamp)) => match read_scip(&bytes) {
                Ok(index) => return self.believe(&index, stamp),
                Err(err) => err.to_string(),
            },
            Ok(Content::TooLarge(_)) => format!("it is larger than {} MiB", SCIP_BYTES_MAX >> 20),
            Ok(Content::Nothing) => return,
            Err(err) => err.to_string(),
        };
        tracing::warn!("{NAME} is not used: {complaint}");
        self.progress(|it| it.missing.push(format!("{NAME} is not used: {complaint}")));
    }

    fn believe(&self, index: &ScipIndex<'_>, made: Stamp) {
        let (mut definitions, mut current) = (Definitions::new(), Vec::new());
        for document in &index.documents {
            let Some(file) = self.believed(document, made) else { continue };
            for it in document.occurrences.iter().filter(|it| it.defines) {
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
            let told = file.calls(&definitions);
            edges += told.len();
            files += 1;
            self.graph(|graph| graph.tell(&file.path, Some(told)));
        }
        let outdated = index.documents.len() - files;
        let tool = if index.tool.is_empty() { "an unnamed program".to_owned() } else { index.tool.clone() };
        tracing::info!(tool, files, outdated, edges, "{NAME} is used");
        self.progress(|it| it.scip = Some(Scip { tool, files, outdated, edges }));
    }

    /// Returns a file that the index has and that was not written since.
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
                Some(Believed { path, bytes, reading, document, lines })
            }
            _ => None,
        }
    }
}

impl Believed<'_> {
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

    /// Returns the calls of symbols with known definitions.
    fn calls(&self, definitions: &Definitions<'_>) -> Vec<ImportedEdge> {
        let mut calls: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
        for call in &self.reading.calls {
            let Some(caller) = call.caller else { continue };
            calls.entry(&*call.callee.name).or_default().push((call.at, caller));
        }
        calls.values_mut().for_each(|places| places.sort_unstable());
        let mut told = BTreeSet::new();
        for it in self.document.occurrences.iter().filter(|it| !it.defines) {
            let Some((path, symbol)) = definitions.get(it.symbol) else { continue };
            let Some((at, name)) = self.text(it) else { continue };
            let Some(places) = calls.get(name) else { continue };
            // The name of a call stands at or behind the call's beginning.
            let before = places.partition_point(|(begin, _)| *begin <= at);
            let Some((_, caller)) = before.checked_sub(1).map(|last| places[last]) else { continue };
            let caller = &self.reading.symbols[caller as usize];
            if caller.range.contains(&at) {
                told.insert((caller.path.clone(), path.clone(), symbol.clone()));
            }
        }
        told.into_iter().collect()
    }
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
