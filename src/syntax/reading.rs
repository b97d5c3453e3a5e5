//! A reading: all facts about one file, and queries by name.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use super::generated::is_generated;
use super::generated_heads;
use super::locals::{self, Locals};
use super::walk::Walk;
use super::{
    Call, Export, Exported, Given, Import, Imported, ImportedName, Kind, Language, NoSignature,
    ParseDeadline, Receiver, Signature, Symbol, Trouble,
};
use provost_base::limits::{SOURCE_BYTES_MAX, SOURCE_READ_MS_MAX};

/// All facts that were found about one file.
#[derive(Debug)]
pub struct Reading {
    /// The language it was read as.
    pub language: Language,
    /// The symbols that the file defines, in the order in which definitions begin.
    pub symbols: Vec<Symbol>,
    /// The calls in the file, in order.
    pub calls: Vec<Call>,
    /// The imports of the file, in order.
    pub imports: Vec<Import>,
    /// The exports of the file, in order.
    pub exports: Vec<Export>,
    /// The types of callbacks' parameters, in no order.
    pub given: Vec<Given>,
    /// The reasons why the reading is incomplete; empty if it is complete.
    pub trouble: Vec<Trouble>,
    /// The symbols' numbers, sorted by path and then by position.
    by_path: Vec<u32>,
    /// The symbols' numbers, sorted by name.
    by_name: Vec<u32>,
    /// Further names of symbols: the inner name of `f = function g() {}`.
    aliases: Vec<(Box<str>, u32)>,
    /// Names that functions import for themselves: the function, the import and the position among its names. Sorted by
    /// function and name.
    inner_imports: Vec<(u32, u32, u32)>,
    /// Declarations of several symbols each: `int a, b`.
    pub(super) together: Vec<Together>,
    /// Names within the parts that do not parse; `None` if there are too many.
    lost: Option<BTreeSet<Box<str>>>,
}

/// The parts of a file that may be missing from its reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread<'a> {
    /// Nothing is missing from it.
    Nothing,
    /// Facts about these names may be missing: they stand within a part that does not parse.
    Beside(&'a BTreeSet<Box<str>>),
    /// Anything may be missing: the file was not read to its end.
    Anything,
}

/// The callers for which a reading is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    /// All callers: it depends only on the bytes.
    Always,
    /// All callers for a while: a less busy machine might have got further.
    ForAWhile,
    /// Only this caller: its time was up, or it was cancelled.
    ForNobodyElse,
}

/// The findings of a walk, before they are ordered for queries.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) symbols: Vec<Symbol>,
    pub(super) calls: Vec<Call>,
    pub(super) imports: Vec<Import>,
    pub(super) exports: Vec<Export>,
    pub(super) given: Vec<Given>,
    pub(super) trouble: Vec<Trouble>,
    pub(super) aliases: Vec<(Box<str>, u32)>,
    pub(super) lost: BTreeSet<Box<str>>,
    pub(super) lost_too_many: bool,
    pub(super) locals: Locals,
    pub(super) together: Vec<Together>,
}

/// A declaration of several symbols, which share its beginning: the type of `int a, b`.
#[derive(Debug)]
pub(super) struct Together {
    /// The symbols' numbers, in order. The first one begins where the declaration begins.
    pub(super) symbols: Box<[u32]>,
    /// The offset at which the shared part ends.
    pub(super) shared_to: u32,
}

/// Reads a file's bytes. The same bytes give the same reading, unless time is up.
pub fn read(language: Language, bytes: &[u8], patience: &ParseDeadline<'_>) -> Reading {
    let language = language.of_bytes(bytes);
    let mut facts = Facts::default();
    if bytes.len() > SOURCE_BYTES_MAX {
        facts.trouble.push(Trouble::TooLarge { bytes: bytes.len() as u64 });
        return Reading::of(language, facts);
    }
    if is_generated(language.says_generated(), bytes) || generated_heads::is_generated(language, bytes) {
        facts.trouble.push(Trouble::Generated);
        return Reading::of(language, facts);
    }
    let limit = Limit::new(patience);
    let (shown, macros) = language.masked(bytes).unzip();
    let shown: &[u8] = shown.as_deref().unwrap_or(bytes);
    match language.with_parser(|parser| parse_as_shown(parser, language, shown, &limit)) {
        Ok(tree) => {
            if let Err(wrong) = std::str::from_utf8(bytes) {
                facts.trouble.push(Trouble::NotUtf8 { first: offset(wrong.valid_up_to()) });
            }
            facts = Walk::new(language, bytes, &limit, facts, macros.unwrap_or_default()).over(&tree);
        }
        Err(trouble) => facts.trouble.push(trouble),
    }
    Reading::of(language, facts)
}

/// A place in a file; files are shorter than 4 GiB, which [`SOURCE_BYTES_MAX`] sees to.
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Parses a text; if it has errors, and a further masked text has none, returns the tree of that one.
fn parse_as_shown(
    parser: &mut Parser,
    language: Language,
    shown: &[u8],
    limit: &Limit<'_>,
) -> Result<Tree, Trouble> {
    let tree = parse(parser, shown, limit)?;
    let further = if tree.root_node().has_error() { language.masked_further(shown) } else { None };
    match further.map(|further| parse(parser, &further, limit)) {
        Some(Ok(second)) if !second.root_node().has_error() => Ok(second),
        // The same bytes may be whole for a caller with more time.
        Some(Err(Trouble::TooSlow)) => Err(Trouble::TooSlow),
        _ => Ok(tree),
    }
}

pub(super) fn parse(parser: &mut Parser, bytes: &[u8], limit: &Limit<'_>) -> Result<Tree, Trouble> {
    let mut trouble = None;
    let mut progress = |_: &ParseState| {
        trouble = limit.reached();
        if trouble.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree =
        parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
    // A parse that was stopped would otherwise be gone on with.
    parser.reset();
    tree.ok_or(trouble.unwrap_or(Trouble::TooHard))
}

/// The limit at which reading stops: the one for all files, or the end of the caller's patience.
pub(super) struct Limit<'a> {
    end: Instant,
    patience: &'a ParseDeadline<'a>,
}

impl<'a> Limit<'a> {
    pub(super) fn new(patience: &'a ParseDeadline<'a>) -> Self {
        Self { end: Instant::now() + Duration::from_millis(SOURCE_READ_MS_MAX), patience }
    }

    /// Why to stop, if it is time.
    pub(super) fn reached(&self) -> Option<Trouble> {
        if self.patience.is_over() {
            Some(Trouble::TooSlow)
        } else {
            (Instant::now() >= self.end).then_some(Trouble::TooHard)
        }
    }
}

impl Reading {
    fn of(language: Language, facts: Facts) -> Self {
        let Facts { mut symbols, mut calls, mut imports, mut exports, .. } = facts;
        let Facts { mut trouble, mut aliases, lost, lost_too_many, locals, mut together, mut given, .. } =
            facts;
        // They have grown by doubling, and are kept for long.
        symbols.shrink_to_fit();
        calls.shrink_to_fit();
        imports.shrink_to_fit();
        exports.shrink_to_fit();
        trouble.shrink_to_fit();
        aliases.shrink_to_fit();
        together.shrink_to_fit();
        given.shrink_to_fit();
        let sorted = |key: fn(&Symbol) -> &str| {
            let mut all: Vec<(&str, u32)> = symbols.iter().map(key).zip(0..).collect();
            all.sort_unstable();
            all.into_iter().map(|(_, at)| at).collect::<Vec<u32>>()
        };
        let (by_path, by_name) = (sorted(|symbol| &symbol.path), sorted(Symbol::name));
        let lost = (!lost_too_many).then_some(lost);
        let inner_imports = inner_imports(&imports);
        let mut reading = Self {
            language,
            symbols,
            calls,
            imports,
            exports,
            given,
            trouble,
            by_path,
            by_name,
            aliases,
            inner_imports,
            together,
            lost,
        };
        locals::settle(&mut reading, locals);
        reading
    }

    /// The symbols of this name: whole paths first; then whatever ends with it, where code goes before
    /// declarations; then names by which it is exported. Several definitions of one path, and several
    /// paths, are all named.
    pub fn find(&self, name: &str) -> Vec<&Symbol> {
        self.numbers_of(name).into_iter().map(|at| &self.symbols[at as usize]).collect()
    }

    /// [`find`](Self::find), as numbers in [`symbols`](Self::symbols).
    pub fn numbers_of(&self, name: &str) -> Vec<u32> {
        let whole: Vec<u32> = self.at_path(name).collect();
        if !whole.is_empty() || name.is_empty() {
            return whole;
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let mut found: Vec<u32> = self.numbers(name).collect();
        if found.is_empty() {
            found = self.numbers(last).filter(|at| self.symbols[*at as usize].answers_to(name)).collect();
        }
        if found.iter().any(|at| !self.symbols[*at as usize].declared) {
            found.retain(|at| !self.symbols[*at as usize].declared);
        }
        if found.is_empty() {
            found = self.numbers(&format!("[{name}]")).collect();
        }
        if found.is_empty() {
            found = self.otherwise_called(name);
        }
        found
    }

    /// The signatures that callers of a name rely on: of a function that is overloaded its overloads, of a
    /// getter and setter both, of a class its bases and its constructor, of a type its body.
    ///
    /// # Errors
    /// [`NoSignature`] says why there is none.
    pub fn contract(&self, name: &str) -> Result<Signature, NoSignature> {
        let found = self.numbers_of(name);
        let Some(first) = found.first() else {
            return Err(if self.may_be_lost(name) { NoSignature::Unparsable } else { NoSignature::Missing });
        };
        let path = &self.symbols[*first as usize].path;
        let mut paths: Vec<&Box<str>> = found.iter().map(|at| &self.symbols[*at as usize].path).collect();
        paths.dedup();
        if paths.iter().any(|other| *other != path) {
            paths.sort();
            paths.dedup();
            return Err(NoSignature::Ambiguous(paths.into_iter().cloned().collect()));
        }
        let mut parts: Vec<&Symbol> = self.without_code_of_overloads(found.iter().copied());
        for class in found.iter().filter(|at| self.symbols[**at as usize].kind == Kind::Class) {
            let made =
                self.children(*class).filter(|at| self.symbols[*at as usize].kind == Kind::Constructor);
            parts.extend(self.without_code_of_overloads(made));
        }
        if parts.iter().any(|part| part.unparsable) {
            return Err(NoSignature::Unparsable);
        }
        // A declaration with the same signature as its definition is left out.
        let defines = |part: &Symbol| {
            let same = |it: &&&Symbol| !it.declared && it.signature == part.signature;
            part.declared && parts.iter().find(same).is_some()
        };
        let said = parts.iter().filter(|part| !defines(part));
        Signature::joined(said.filter_map(|part| part.signature.as_ref())).ok_or(NoSignature::Undeclared)
    }

    /// Where a name is defined, in order; several ranges if it is defined several times.
    pub fn ranges(&self, name: &str) -> Vec<Range<u32>> {
        self.find(name).into_iter().map(|symbol| symbol.range.clone()).collect()
    }

    /// The symbols directly within one.
    pub fn children(&self, of: u32) -> impl Iterator<Item = u32> + '_ {
        // They begin within it, and symbols are in the order in which they begin.
        let end = self.symbols.get(of as usize).map_or(0, |symbol| symbol.range.end);
        (of.saturating_add(1)..offset(self.symbols.len()))
            .take_while(move |at| self.symbols[*at as usize].range.start < end)
            .filter(move |at| self.symbols[*at as usize].parent == Some(of))
    }

    /// Whether a symbol is another one or lies within it, by containment.
    pub fn is_within(&self, inner: u32, outer: u32) -> bool {
        let mut around = Some(inner);
        while let Some(at) = around {
            if at == outer {
                return true;
            }
            around = self.symbols.get(at as usize).and_then(|symbol| symbol.parent);
        }
        false
    }

    /// Whether everything was read.
    pub fn is_whole(&self) -> bool {
        self.trouble.is_empty()
    }

    /// The parts of the file that may be missing.
    pub fn unread(&self) -> Unread<'_> {
        let beside_errors =
            self.trouble.iter().all(|it| matches!(it, Trouble::ParseErrors { .. } | Trouble::NotUtf8 { .. }));
        match &self.lost {
            _ if self.trouble.is_empty() => Unread::Nothing,
            // It was left out on purpose, and is no gap in what people write.
            _ if self.trouble == [Trouble::Generated] => Unread::Nothing,
            Some(names) if beside_errors => Unread::Beside(names),
            _ => Unread::Anything,
        }
    }

    /// Whether reading the same bytes again would say the same; at another time it may.
    pub(super) fn holds(&self) -> Holds {
        match () {
            () if self.trouble.contains(&Trouble::TooSlow) => Holds::ForNobodyElse,
            () if self.trouble.contains(&Trouble::TooHard) => Holds::ForAWhile,
            () => Holds::Always,
        }
    }

    /// How many bytes of memory it takes, with what the allocator adds to each piece.
    pub fn weight(&self) -> usize {
        let text = |text: &str| piece(text.len());
        let symbols = self.symbols.iter().map(|symbol| {
            let bases: usize = symbol.bases.iter().map(|base| text(base)).sum();
            let signed = symbol.signature.as_ref().map_or(0, |it| text(&it.text) + text(&it.canon));
            let of = match &symbol.instance {
                Some(Receiver::Instance(class)) => text(class),
                _ => 0,
            };
            text(&symbol.path) + signed + bases + of + piece(size_of_val(&*symbol.bases))
        });
        let calls = self.calls.iter().map(|call| {
            let before = match &call.callee.receiver {
                Receiver::Path(path) | Receiver::Within(path) | Receiver::Instance(path) => text(path),
                _ => 0,
            };
            // Each of the calls of a name has its part of it.
            let name = &call.callee.name;
            piece(2 * size_of::<usize>() + name.len()) / Arc::strong_count(name) + before
        });
        let taken = |what: &Imported| match what {
            Imported::Name(name) => text(name),
            _ => 0,
        };
        let imports = self.imports.iter().map(|import| {
            let names = import.names.iter();
            let names = names.map(|it| taken(&it.imported) + it.local.as_deref().map_or(0, text));
            text(&import.from)
                + piece(import.names.capacity() * size_of::<ImportedName>())
                + names.sum::<usize>()
        });
        let exports = self.exports.iter().map(|export| {
            let what = match &export.what {
                Exported::Local(local) => text(local),
                Exported::Passed { imported, .. } => taken(imported),
            };
            text(&export.name) + what
        });
        // A tree's pieces are half full at the least.
        let given = self.given.iter().map(|it| text(&it.class));
        let lost = self.lost.iter().flatten().map(|name| text(name) + 2 * size_of::<Box<str>>());
        let aliases = self.aliases.iter().map(|(alias, _)| text(alias));
        let lists = [
            size_of_val(&*self.symbols),
            size_of_val(&*self.calls),
            size_of_val(&*self.imports),
            size_of_val(&*self.exports),
            size_of_val(&*self.given),
            size_of_val(&*self.trouble),
            size_of_val(&*self.by_path),
            size_of_val(&*self.by_name),
            size_of_val(&*self.aliases),
            size_of_val(&*self.inner_imports),
            size_of_val(&*self.together),
        ];
        let together = self.together.iter().map(|it| piece(size_of_val(&*it.symbols)));
        let within = symbols.chain(calls).chain(imports).chain(exports).chain(lost).chain(aliases);
        piece(size_of::<Self>())
            + lists.map(piece).iter().sum::<usize>()
            + within.chain(together).chain(given).sum::<usize>()
    }

    /// Symbols of this own name, in order.
    pub(super) fn numbers(&self, name: &str) -> impl Iterator<Item = u32> + '_ {
        equal(&self.by_name, |at| self.symbols[at as usize].name().cmp(name))
    }

    /// Symbols of this path, in order.
    pub(super) fn at_path(&self, path: &str) -> impl Iterator<Item = u32> + '_ {
        equal(&self.by_path, |at| (*self.symbols[at as usize].path).cmp(path))
    }

    /// The first symbol of a name within what has a path.
    pub(super) fn first_within(&self, path: &str, name: &str) -> Option<u32> {
        equal(&self.by_path, |at| compare(&self.symbols[at as usize].path, path, name)).next()
    }

    /// The last import of this name by a function for itself.
    pub(super) fn imported_within(&self, function: u32, name: &str) -> Option<u32> {
        let key = |it: &(u32, u32, u32)| (it.0, local_name(&self.imports, it));
        let end = self.inner_imports.partition_point(|it| key(it) <= (function, name));
        let last = self.inner_imports.get(end.checked_sub(1)?)?;
        (key(last) == (function, name)).then_some(last.1)
    }

    /// The symbol whose code has this name for itself.
    pub(super) fn alias(&self, name: &str) -> Option<u32> {
        self.aliases.iter().find(|(alias, _)| **alias == *name).map(|(_, at)| *at)
    }

    fn otherwise_called(&self, name: &str) -> Vec<u32> {
        if let Some(at) = self.alias(name) {
            return vec![at];
        }
        let local =
            self.exports.iter().find(|export| *export.name == *name).and_then(|export| match &export.what {
                Exported::Local(local) => Some(&**local),
                Exported::Passed { .. } => None,
            });
        local.map_or(Vec::new(), |local| self.at_path(local).collect())
    }

    fn may_be_lost(&self, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or(name);
        let broken = self.trouble.iter().any(|trouble| matches!(trouble, Trouble::ParseErrors { .. }));
        // A setter is made by the name of what it sets.
        let set = last.trim_end_matches('=');
        let lost = self.lost.as_ref().is_none_or(|lost| lost.contains(last) || lost.contains(set));
        // A symbol that has lost its class may have turned up outside of the class.
        broken && (lost || self.numbers(last).next().is_some())
    }

    fn without_code_of_overloads(&self, found: impl Iterator<Item = u32>) -> Vec<&Symbol> {
        let mut parts: Vec<&Symbol> = found.map(|at| &self.symbols[at as usize]).collect();
        if parts.iter().any(|part| part.overload) {
            parts.retain(|part| part.overload || !part.kind.is_callable());
        }
        parts
    }
}

fn local_name<'i>(imports: &'i [Import], it: &(u32, u32, u32)) -> &'i str {
    imports[it.1 as usize].names[it.2 as usize].local.as_deref().unwrap_or_default()
}

/// The imports within functions, in order.
fn inner_imports(imports: &[Import]) -> Vec<(u32, u32, u32)> {
    let mut found = Vec::new();
    for (number, import) in (0..).zip(imports) {
        let Some(within) = import.within else { continue };
        let named = (0..).zip(&import.names).filter(|(_, name)| name.local.is_some());
        found.extend(named.map(|(name, _)| (within, number, name)));
    }
    found.sort_by(|a, b| (a.0, local_name(imports, a), a.1).cmp(&(b.0, local_name(imports, b), b.1)));
    found.shrink_to_fit();
    found
}

/// The memory that the allocator takes for a piece of so many bytes: a word more, in steps of two words, and
/// four words at least.
fn piece(bytes: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    if bytes == 0 { 0 } else { (bytes + WORD).next_multiple_of(2 * WORD).max(4 * WORD) }
}

/// A path beside the one of a name within another path, without putting that one together.
fn compare(path: &str, before: &str, name: &str) -> Ordering {
    let (path, before) = (path.as_bytes(), before.as_bytes());
    match path.get(..before.len()) {
        Some(start) => {
            let rest = &path[before.len()..];
            start.cmp(before).then_with(|| match rest.split_first() {
                Some((dot, rest)) => dot.cmp(&b'.').then_with(|| rest.cmp(name.as_bytes())),
                None => Ordering::Less,
            })
        }
        // It is shorter than what it would have to begin with.
        None => path.cmp(before),
    }
}

/// All numbers that compare equal, of numbers in that order.
fn equal(sorted: &[u32], compare: impl Fn(u32) -> std::cmp::Ordering) -> impl Iterator<Item = u32> + '_ {
    let from = sorted.partition_point(|at| compare(*at).is_lt());
    let many = sorted[from..].partition_point(|at| compare(*at).is_eq());
    sorted[from..from + many].iter().copied()
}
