//! The `.scip` files at the root: a compiler's findings take precedence over our own.
//!
//! They name the places where symbols are defined and used, by line and column. Both are mapped to symbols and calls of our own
//! readings, so that an edge has the same ends from either source. They count for files that have not been written since, and in which
//! the names stand where the index says. A language's indexer writes one file, so there may be several.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::read::{Content, Stamp, content, stamp};
use super::{Index, Scip};
use provost_base::RepoPath;
use provost_base::limits::{
    SCIP_BYTES_MAX, SCIP_CALL_BYTES_MAX, SCIP_COLUMN_MAX, SCIP_FILES_MAX, SCIP_NAMES_MAX,
    SCIP_ROOT_ENTRIES_MAX, SCIP_TOOL_CHARS_MAX, SOURCE_BYTES_MAX,
};
use provost_graph::{Document, Occurrence, ScipIndex, Told, ToldCall, Unit, read_scip};
use provost_syntax::{ParseDeadline, Reading, language_of};

/// The ending of the files' names.
const ENDING: &str = ".scip";
/// The beginning of what is said about a file that cannot be used.
pub(super) const COMPLAINS: &str = "the index ";

/// A symbol's name in the index, after the path of the file for names that count in one file alone.
type Named<'a> = (&'a str, &'a str);

/// What the names of an index stand for.
#[derive(Default)]
struct Definitions<'a> {
    /// The files and paths of symbols.
    symbols: BTreeMap<Named<'a>, (RepoPath, Box<str>)>,
    /// Names that stand for another one: the text that defines them is a use of the other, as in `module.exports = { find }` and
    /// `const { find } = require("./store")`.
    stand_for: BTreeMap<Named<'a>, Named<'a>>,
}

impl<'a> Definitions<'a> {
    /// Adds the names that a file defines. `stop` ends it early.
    fn add(&mut self, file: &Believed<'a>, stop: &AtomicBool) {
        let document = file.document;
        let uses = document.occurrences.iter().filter(|it| !it.defines);
        // Of several names at one place, one that counts in all files takes precedence.
        let (locals, others): (Vec<_>, Vec<_>) = uses.partition(|it| is_local(it.symbol));
        let used: BTreeMap<_, _> = locals.into_iter().chain(others).map(|it| (place(it), it)).collect();
        let mut defines: Vec<_> = document.occurrences.iter().filter(|it| it.defines).collect();
        defines.sort_by_key(|it| place(it));
        let mut symbols = Symbols::of(&file.reading);
        for it in defines {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let Some((at, name)) = file.name(it) else { continue };
            let named = named(document, it);
            if let Some(symbol) = symbols.defined(at, name) {
                self.symbols.entry(named).or_insert_with(|| (file.path.clone(), symbol.into()));
            } else if let Some(other) = used.get(&place(it)).filter(|it| file.name(it).is_some()) {
                self.stand_for.entry(named).or_insert(self::named(document, other));
            }
        }
    }

    /// Returns the file and the path of the symbol that a name stands for.
    fn of(&self, mut named: Named<'a>) -> Option<&(RepoPath, Box<str>)> {
        for _ in 0..SCIP_NAMES_MAX {
            let found = self.symbols.get(&named);
            if found.is_some() {
                return found;
            }
            named = *self.stand_for.get(&named)?;
        }
        None
    }
}

/// The symbols of a file by name, and where the first definition of each stands.
struct Symbols<'r> {
    reading: &'r Reading,
    named: BTreeMap<&'r str, Vec<usize>>,
    first: BTreeMap<usize, u32>,
}

impl<'r> Symbols<'r> {
    fn of(reading: &'r Reading) -> Self {
        let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, symbol) in reading.symbols.iter().enumerate() {
            named.entry(symbol.name()).or_default().push(at);
        }
        Self { reading, named, first: BTreeMap::new() }
    }

    /// Returns the path of the symbol that a name defines: the innermost around it with this name. A name further behind in the symbol
    /// is another thing, as a variable of a function that has the function's name. So the definitions are asked for in their order.
    fn defined(&mut self, at: u32, name: &str) -> Option<&'r str> {
        let symbol = |it: &usize| &self.reading.symbols[*it];
        let around = self.named.get(name)?.iter().copied().filter(|it| symbol(it).range.contains(&at));
        let found = around.min_by_key(|it| symbol(it).range.len())?;
        let first = *self.first.entry(found).or_insert(at);
        (first == at).then(|| &*self.reading.symbols[found].path)
    }
}

/// Checks whether a name counts in one file alone.
fn is_local(symbol: &str) -> bool {
    symbol.starts_with("local ")
}

fn named<'a>(document: &Document<'a>, it: &Occurrence<'a>) -> Named<'a> {
    (if is_local(it.symbol) { document.path } else { "" }, it.symbol)
}

fn place(it: &Occurrence<'_>) -> (u32, u32, Option<u32>) {
    (it.line, it.start, it.end)
}

/// A file that has not changed since the index was made, so that the index is right about it.
struct Believed<'a> {
    path: RepoPath,
    stamp: Stamp,
    bytes: Vec<u8>,
    reading: Arc<Reading>,
    document: &'a Document<'a>,
    /// The offset of the first byte of each line.
    lines: Vec<usize>,
}

/// The files at the root when they were last taken in, with their stamps.
pub(super) type Seen = BTreeMap<RepoPath, Stamp>;

/// The facts of all indexes, by file, with the content that was compared.
type AllTold = BTreeMap<RepoPath, (Stamp, Weak<Reading>, Told)>;

impl Index {
    /// Takes the indexes in, if one of them has changed since the last time. Parts that cannot be used are named.
    pub(super) fn look_at_scip(&self, seen: &mut Seen) {
        let found = self.named_scip();
        if found == *seen {
            return;
        }
        self.progress(|it| {
            it.scip = None;
            it.missing.retain(|why| !why.starts_with(COMPLAINS));
        });
        let (mut all, mut used) = (AllTold::new(), Scip::default());
        for path in found.keys().take(SCIP_FILES_MAX) {
            match content(&self.0.root, path, SCIP_BYTES_MAX) {
                Ok(Content::Bytes(bytes, made)) => match read_scip(&bytes) {
                    Ok(index) => self.believe(&index, made, (&mut all, &mut used)),
                    Err(err) => self.complain(path.as_str(), &err.to_string()),
                },
                Ok(Content::TooLarge(_)) => {
                    self.complain(path.as_str(), &format!("it is larger than {} MiB", SCIP_BYTES_MAX >> 20));
                }
                Ok(Content::Nothing) => {}
                Err(err) => self.complain(path.as_str(), &err.to_string()),
            }
        }
        if let Some(path) = found.keys().nth(SCIP_FILES_MAX) {
            self.complain(path.as_str(), &format!("there are more than {SCIP_FILES_MAX}"));
        }
        if !used.tool.is_empty() {
            used.files = all.len();
            used.edges = all.values().map(|(_, _, told)| told.calls.len()).sum();
            tracing::info!(
                tool = used.tool,
                files = used.files,
                outdated = used.outdated,
                "indexes of compilers are used"
            );
            self.progress(|it| it.scip = Some(used));
        }
        // Until here the facts of before count.
        let before = self.graph(|graph| graph.told_files());
        for path in before.iter().filter(|it| !all.contains_key(*it)) {
            self.graph(|graph| graph.tell(path, None));
        }
        for (path, (stamp, reading, told)) in all {
            // The lock is held while the graph changes, so that no facts are told about a content that has gone meanwhile.
            self.known(|known| {
                if known.has_content(&path, stamp, &reading) {
                    self.graph(|graph| graph.tell(&path, Some(told)));
                }
            });
        }
        *seen = found;
    }

    /// Returns the indexes at the root, with their stamps; one more than are read, if there are more.
    fn named_scip(&self) -> Seen {
        let entries = self.0.root.entries().into_iter().flatten().flatten().take(SCIP_ROOT_ENTRIES_MAX);
        let named =
            entries.filter_map(|it| it.file_name().into_string().ok()).filter(|it| it.ends_with(ENDING));
        let paths: BTreeSet<RepoPath> = named.filter_map(|it| RepoPath::parse(&it).ok()).collect();
        let stamped = paths.into_iter().filter_map(|path| {
            let stamp = stamp(&self.0.root, &path).ok()??;
            Some((path, stamp))
        });
        stamped.take(SCIP_FILES_MAX + 1).collect()
    }

    fn complain(&self, name: &str, why: &str) {
        let text = format!("{COMPLAINS}{name} is not used: {why}");
        tracing::warn!("{text}");
        self.progress(|it| it.missing.push(text));
    }

    /// Adds what an index tells to the facts of all.
    fn believe(&self, index: &ScipIndex<'_>, made: Stamp, (all, used): (&mut AllTold, &mut Scip)) {
        let (mut definitions, mut current, mut paths) = (Definitions::default(), Vec::new(), BTreeSet::new());
        for document in &index.documents {
            if document.occurrences.is_empty() || !paths.insert(document.path) {
                continue;
            }
            let Some(file) = self.believed(document, made) else {
                used.outdated += 1;
                continue;
            };
            definitions.add(&file, &self.0.bell.stop);
            // The file is read again in a moment, mostly from the cache, so that not all are held at once.
            current.push(document);
        }
        for document in &current {
            let Some(file) = self.believed(document, made) else { continue };
            let Told { calls, settled } = file.calls(&definitions);
            let content = || (file.stamp, Arc::downgrade(&file.reading), Told::default());
            let (_, _, told) = all.entry(file.path.clone()).or_insert_with(content);
            told.calls.extend(calls);
            told.settled.extend(settled);
        }
        let tool: String = index.tool.chars().take(SCIP_TOOL_CHARS_MAX).collect();
        let tool = if tool.is_empty() { "an unnamed program" } else { &*tool };
        used.tool = if used.tool.is_empty() { tool.to_owned() } else { format!("{}, {tool}", used.tool) };
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
                let file = Believed { path, stamp, bytes, reading, document, lines };
                file.is_as_indexed(&self.0.bell.stop).then_some(file)
            }
            _ => None,
        }
    }
}

impl<'a> Believed<'a> {
    /// Checks whether names stand at the places of the index: the time of a file can be set. Some symbols have another name in an index
    /// than in the text, as constructors, so most must agree. The name of a local symbol is not in the index, but the same at all its
    /// places. The name of a whole file or package is not looked at: in the text it is a path.
    fn is_as_indexed(&self, stop: &AtomicBool) -> bool {
        let places = self.document.occurrences.iter().filter(|it| it.end.is_some_and(|end| end > it.start));
        let (mut agree, mut all, mut locals) = (0_usize, 0_usize, BTreeMap::new());
        for it in places.filter(|it| !it.symbol.ends_with('/')) {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let name = self.text(it).map(|(_, name)| name);
            let agrees = match locals.get(it.symbol) {
                Some(before) => name.is_some() && *before == name,
                None if is_local(it.symbol) => {
                    locals.insert(it.symbol, name);
                    continue;
                }
                None => name.is_some_and(|name| it.symbol.contains(name)),
            };
            all += 1;
            agree += usize::from(agrees);
        }
        agree * 2 >= all
    }

    /// Returns the offset of a name, and the name, which the symbol has in the index, too.
    fn name(&self, it: &Occurrence<'_>) -> Option<(u32, &str)> {
        self.text(it).filter(|(_, name)| is_local(it.symbol) || it.symbol.contains(name))
    }

    /// Returns the offset of a name, and its text.
    fn text(&self, it: &Occurrence<'_>) -> Option<(u32, &str)> {
        let end = it.end.filter(|end| *end <= SCIP_COLUMN_MAX)?;
        let start_of_line = *self.lines.get(usize::try_from(it.line).ok()?)?;
        let rest = &self.bytes[start_of_line..];
        // A character has at most four bytes.
        let rest = &rest[..rest.len().min(4 * SCIP_COLUMN_MAX as usize)];
        let text = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(wrong) => std::str::from_utf8(&text[..wrong.valid_up_to()]).ok()?,
        };
        let (from, to) =
            (column(text, it.start, self.document.unit)?, column(text, end, self.document.unit)?);
        Some((u32::try_from(start_of_line + from).ok()?, text.get(from..to)?))
    }

    /// Returns the calls of symbols with known definitions, and the names whose calls are all among them.
    fn calls(&self, definitions: &Definitions<'a>) -> Told {
        let mut places: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
        for call in &self.reading.calls {
            let Some(caller) = call.caller else { continue };
            let all = places.entry(&*call.callee.name).or_default();
            all.push(Place { at: call.at, caller, calls: 1, told: 0, is_first_told: false });
        }
        for all in places.values_mut() {
            all.sort_unstable_by_key(|it| it.at);
            all.dedup_by(|it, before| {
                let is_one_chain = it.at == before.at;
                before.calls += u32::from(is_one_chain);
                is_one_chain
            });
        }
        let mut told = Told::default();
        for it in self.document.occurrences.iter().filter(|it| !it.defines) {
            let Some((file, callee)) = definitions.of(named(self.document, it)) else { continue };
            let Some((at, name)) = self.name(it) else { continue };
            let Some(all) = places.get_mut(name) else { continue };
            // The name of a call stands at or behind the call's beginning.
            let before = all.partition_point(|place| place.at <= at);
            let Some(place) = before.checked_sub(1).map(|last| &mut all[last]) else { continue };
            let caller = &self.reading.symbols[place.caller as usize];
            let is_first = self.is_first(name, (place.at, at));
            if caller.range.contains(&at) && (is_first || self.is_called(at as usize + name.len())) {
                place.told += 1;
                place.is_first_told |= is_first;
                let (caller, name) = (caller.path.clone(), name.into());
                told.calls.insert(ToldCall { caller, name, file: file.clone(), callee: callee.clone() });
            }
        }
        let mut settled: BTreeMap<(&str, &str), bool> = BTreeMap::new();
        for (name, all) in &places {
            for place in all {
                // Two symbols may have one path, as in code for two systems.
                let caller = &*self.reading.symbols[place.caller as usize].path;
                *settled.entry((caller, name)).or_insert(true) &=
                    place.is_first_told && place.told >= place.calls;
            }
        }
        let settled = settled.into_iter().filter(|(_, is_settled)| *is_settled);
        told.settled = settled.map(|((caller, name), _)| (caller.into(), name.into())).collect();
        told
    }

    /// Checks whether what stands behind a name looks like a call of it: the name may be the second one of a chain.
    fn is_called(&self, behind: usize) -> bool {
        let rest = &self.bytes[behind..self.bytes.len().min(behind + SCIP_CALL_BYTES_MAX as usize)];
        rest.trim_ascii_start().first().is_some_and(|it| b"(!<:?{`".contains(it))
    }

    /// Checks whether a name at an offset is the first one behind the beginning of a call: any other is not that of the call itself.
    fn is_first(&self, name: &str, (begins, at): (u32, u32)) -> bool {
        if at - begins > SCIP_CALL_BYTES_MAX {
            return false;
        }
        let between = &self.bytes[begins as usize..at as usize];
        let is_in_word = |byte: Option<&u8>| {
            byte.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_' || !it.is_ascii())
        };
        memchr::memmem::find_iter(between, name.as_bytes()).all(|found| {
            let behind = found + name.len();
            is_in_word(found.checked_sub(1).and_then(|it| between.get(it)))
                || is_in_word(self.bytes.get(begins as usize + behind))
        })
    }
}

/// The calls of a name that begin at one place: several in a chain like `a.b(1).b(2)`.
struct Place {
    at: u32,
    /// The number of the calling symbol in the reading.
    caller: u32,
    calls: u32,
    /// The number of calls whose target the index knows, in the repository.
    told: u32,
    /// Whether the first one is among them.
    is_first_told: bool,
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
