//! Queries of the call graph: those of people, who write names freely, and those for a lock or an intent on a symbol.
//! They use the present content of files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Provost;
use super::code::{Base, Source};
use provost_base::limits::CALLERS_MAX;
use provost_base::{RepoPath, SymbolPath, names_no_file};
use provost_graph::{FoundBy, LookupResult, NotWhole};
use provost_index::{Index, State};
use provost_syntax::{Edge, Reading, Target, language_of};

/// How long an answer waits for the first reading of the repository, so that it does not have to be incomplete.
const READING_WAIT: Duration = Duration::from_millis(250);

/// The direction of a query: along calls or against them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallDirection {
    /// Against them: to the symbols that call it.
    Callers,
    /// Along them: to the symbols that it calls.
    Callees,
}

/// The reason why a query has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphError {
    /// The text is no symbol's name.
    Malformed(String),
    /// The file is not known: it does not exist, is ignored, or has not been read yet.
    NoSuchFile(SymbolPath),
    /// No symbol has this name; these might be meant.
    NoSuchSymbol(Vec<SymbolPath>),
    /// The file of this symbol was not read to its end, so what it defines is not known.
    Unread(SymbolPath),
    /// Several symbols have this name; one more than [`GRAPH_CANDIDATES_MAX`](provost_base::limits::GRAPH_CANDIDATES_MAX) if there are more.
    Several(Vec<SymbolPath>),
    /// The daemon is shutting down.
    Ending,
}

/// A symbol as it was asked for, the symbol at the other end of a call, and how that was found.
pub(super) type Call = (SymbolPath, SymbolPath, FoundBy);

/// The answer to a query: one step along calls or against them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calls {
    /// The symbols that the query meant, by their full paths.
    pub of: Vec<SymbolPath>,
    /// The symbols at the other ends of the calls.
    pub symbols: Vec<SymbolPath>,
    /// The symbols among them that were matched by name alone.
    pub guessed: Vec<SymbolPath>,
    /// The symbols among them that a `.scip` index alone tells of.
    pub indexed: Vec<SymbolPath>,
    /// How complete the index is now.
    pub state: State,
}

impl Provost {
    /// Returns the callers or the callees of a symbol, one step away. The symbol is `file:Path`, or a name that only one file has.
    ///
    /// # Errors
    /// [`GraphError`].
    pub async fn calls(&self, symbol: &str, way: CallDirection) -> Result<Calls, GraphError> {
        let (index, symbol) = (self.index().clone(), symbol.to_owned());
        // The index checks the file, and reads it if it has changed.
        let done = tokio::task::spawn_blocking(move || calls(&index, &symbol, way)).await;
        done.unwrap_or(Err(GraphError::Ending))
    }

    /// Returns the callers of a symbol in a file that was just read: those in that file come from the reading,
    /// those in others from the index. The symbol has its full path. Each comes with how it was found.
    pub(super) async fn callers_of(
        &self,
        base: &Base,
        source: &Source,
        of: &SymbolPath,
    ) -> Vec<(SymbolPath, FoundBy)> {
        let (ours, source, of) = (base.is(self.base()), source.clone(), of.clone());
        self.with_index(&source.clone(), move |index| callers_of(index, ours, &source, &of)).await
    }

    /// Returns the callers of a symbol that was not found in the repository; its path names the file `?`.
    pub(super) fn callers_of_unknown(&self, of: &SymbolPath) -> Vec<SymbolPath> {
        if *of.file() == nowhere() { self.index().callers(of) } else { Vec::new() }
    }

    /// Returns the calls of symbols in a file that was just read, in the order of first calls: pairs of the symbol
    /// as the caller named it, and its callee, with how it was found. `?:name` is a callee that was not found.
    pub(super) async fn calls_from(&self, base: &Base, source: &Source, symbols: &[Box<str>]) -> Vec<Call> {
        let (ours, source, symbols) = (base.is(self.base()), source.clone(), symbols.to_vec());
        self.with_index(&source.clone(), move |index| calls_from(index, ours, &source, &symbols)).await
    }

    /// Queries the index: at once if it has this very reading, otherwise on a blocking thread, since it must follow
    /// imports first.
    async fn with_index<T: Send + 'static>(
        &self,
        source: &Source,
        ask: impl FnOnce(&Index) -> Vec<T> + Send + 'static,
    ) -> Vec<T> {
        let Some(reading) = source.reading() else { return Vec::new() };
        let index = self.index().clone();
        if index.is_ready(&source.path, reading) {
            return ask(&index);
        }
        // The result is empty when the daemon ends.
        tokio::task::spawn_blocking(move || ask(&index)).await.unwrap_or_default()
    }

    /// Returns why callers and callees of these symbols may be missing: the repository is still being read, or some of its files could
    /// not be read whole. Without symbols, all symbols of the files count. Waits a moment for a daemon that has just started.
    pub(super) async fn graph_gaps(&self, sources: &[Source], symbols: &[Box<str>]) -> Vec<Box<str>> {
        let sources: Vec<Source> =
            sources.iter().filter(|it| language_of(it.path.as_str()).is_some()).cloned().collect();
        if sources.is_empty() {
            return Vec::new();
        }
        let index = self.index().clone();
        // Files that are still being read after that are reported as missing.
        let _late = tokio::time::timeout(READING_WAIT, index.until_read()).await;
        if let ([source], [_, ..]) = (&sources[..], symbols)
            && source.reading().is_some_and(|it| index.is_ready(&source.path, it))
        {
            return gaps(&index, &sources, symbols);
        }
        let symbols = symbols.to_vec();
        tokio::task::spawn_blocking(move || gaps(&index, &sources, &symbols)).await.unwrap_or_default()
    }

    /// Returns the callers of some symbols of a file, in any file: the symbol as asked for, and its
    /// caller. Without symbols, returns the callers in other files of anything in the file.
    pub(super) async fn callers_of_all(
        &self,
        base: &Base,
        source: &Source,
        symbols: &[Box<str>],
    ) -> Vec<Call> {
        if symbols.is_empty() {
            return self.of_whole(source, CallDirection::Callers).await;
        }
        let Some(reading) = source.reading() else { return Vec::new() };
        let mut found = Vec::new();
        for asked in symbols {
            let Ok(named) = SymbolPath::of(source.path.clone(), asked) else { continue };
            let paths: BTreeSet<&str> = reading.find(asked).into_iter().map(|symbol| &*symbol.path).collect();
            for path in paths {
                let Ok(full) = SymbolPath::of(source.path.clone(), path) else { continue };
                let callers = self.callers_of(base, source, &full).await;
                found.extend(callers.into_iter().map(|(caller, by)| (named.clone(), caller, by)));
            }
        }
        found
    }

    /// Returns the callers or callees of a whole file in other files, as far as the index knows them.
    pub(super) async fn of_whole(&self, source: &Source, way: CallDirection) -> Vec<Call> {
        let Ok(whole) = SymbolPath::of(source.path.clone(), "") else { return Vec::new() };
        let (index, asked) = (self.index().clone(), whole.clone());
        let ends = tokio::task::spawn_blocking(move || match way {
            CallDirection::Callers => index.callers_found(&asked),
            CallDirection::Callees => index.callees_found(&asked),
        });
        let ends = ends.await.unwrap_or_default().into_iter();
        ends.filter(|it| it.0.file() != whole.file()).map(|(it, by)| (whole.clone(), it, by)).collect()
    }

    /// Returns how much of the repository has been read, and the files that were not read whole.
    ///
    /// # Errors
    /// [`GraphError::Ending`].
    pub async fn graph_state(&self) -> Result<(State, Vec<NotWhole>), GraphError> {
        let index = self.index().clone();
        let asked = tokio::task::spawn_blocking(move || (index.state(), index.not_whole()));
        asked.await.map_err(|_| GraphError::Ending)
    }
}

fn calls(index: &Index, symbol: &str, way: CallDirection) -> Result<Calls, GraphError> {
    let of = meant(index, symbol)?;
    let mut found: Vec<(SymbolPath, FoundBy)> = Vec::new();
    for one in &of {
        found.extend(match way {
            CallDirection::Callers => index.callers_found(one),
            CallDirection::Callees => index.callees_found(one),
        });
    }
    let mut surest: BTreeMap<SymbolPath, FoundBy> = BTreeMap::new();
    for (symbol, by) in &found {
        let known = surest.entry(symbol.clone()).or_insert(*by);
        *known = (*known).min(*by);
    }
    let mut symbols: Vec<SymbolPath> = found.into_iter().map(|(symbol, _)| symbol).collect();
    if of.len() > 1 {
        let mut seen = BTreeSet::new();
        symbols.retain(|it| seen.insert(it.clone()));
    }
    symbols.truncate(CALLERS_MAX);
    let found_by = |by: FoundBy| symbols.iter().filter(|it| surest.get(*it) == Some(&by)).cloned().collect();
    let (guessed, indexed) = (found_by(FoundBy::Guess), found_by(FoundBy::Index));
    let mut state = index.state();
    if let Some(why) = gaps_beside(index, &of) {
        state.complete = false;
        state.missing.push(why);
    }
    Ok(Calls { of, symbols, guessed, indexed, state })
}

fn meant(index: &Index, symbol: &str) -> Result<Vec<SymbolPath>, GraphError> {
    if names_no_file(symbol) {
        let found = index.named(symbol);
        return match found.len() {
            0 => Err(GraphError::NoSuchSymbol(Vec::new())),
            1 => Ok(found),
            _ => Err(GraphError::Several(found)),
        };
    }
    let symbol =
        SymbolPath::parse(symbol).map_err(|err| GraphError::Malformed(format!("{symbol}: {err}")))?;
    index.touch(symbol.file());
    match index.asked(&symbol) {
        LookupResult::Found(found) => Ok(found),
        LookupResult::NoSuchFile => Err(GraphError::NoSuchFile(symbol)),
        LookupResult::NoSuchSymbol(alike) => Err(GraphError::NoSuchSymbol(alike)),
        LookupResult::Unread => Err(GraphError::Unread(symbol)),
    }
}

fn callers_of(index: &Index, ours: bool, source: &Source, of: &SymbolPath) -> Vec<(SymbolPath, FoundBy)> {
    let Some(reading) = source.reading() else { return Vec::new() };
    let known = ours && index.fresh(&source.path, reading);
    let mut callers = index.callers_found(of);
    if !known {
        // For another checkout, or for a file that is not followed, the index has other content than was read.
        callers.retain(|(caller, _)| *caller.file() != source.path);
        callers.splice(0..0, callers_here(reading, of).into_iter().map(|it| (it, FoundBy::Rules)));
    }
    callers.retain(|(caller, _)| caller != of);
    callers
}

/// Returns why callers and callees of these symbols may be missing.
fn gaps(index: &Index, sources: &[Source], symbols: &[Box<str>]) -> Vec<Box<str>> {
    let is_reading = index.is_reading();
    let missing = index.missing();
    let why: Option<Box<str>> = match () {
        () if is_reading => Some("the call graph is still being read".into()),
        () if missing.is_empty() => None,
        () => Some(format!("the call graph is not whole: {}", missing.join("; ")).into()),
    };
    why.into_iter().chain(not_whole(index, sources, symbols)).collect()
}

/// Names the files that could not be read whole, if calls from them may be missing in this answer.
fn not_whole(index: &Index, sources: &[Source], symbols: &[Box<str>]) -> Option<Box<str>> {
    let files = sources.iter().map(|it| it.path.clone()).collect();
    let last = |path: &str| -> Box<str> { path.rsplit('.').next().unwrap_or(path).into() };
    let mut names: BTreeSet<Box<str>> = symbols.iter().map(|it| last(it)).collect();
    for reading in sources.iter().filter_map(Source::reading) {
        match symbols.is_empty() {
            true => names.extend(reading.symbols.iter().map(|it| it.name().into())),
            false => {
                let meant = symbols.iter().flat_map(|symbol| reading.find(symbol));
                names.extend(meant.map(|it| it.name().into()));
            }
        }
    }
    gaps_in_words(index.gaps(&files, &names.iter().map(|it| &**it).collect())).map(Into::into)
}

/// Names the files that could not be read whole, if calls from or to these symbols may be missing therefore.
fn gaps_beside(index: &Index, of: &[SymbolPath]) -> Option<String> {
    let files = of.iter().map(|it| it.file().clone()).collect();
    let names = of.iter().map(|it| it.symbol().rsplit('.').next().unwrap_or_default()).collect();
    gaps_in_words(index.gaps(&files, &names))
}

fn gaps_in_words((count, first): (usize, Option<RepoPath>)) -> Option<String> {
    let first = first?;
    Some(match count {
        1 => format!("{first} was not read whole"),
        _ => format!("{count} files were not read whole, such as {first}"),
    })
}

/// Returns the warning that only some of the callers and callees were examined.
pub(super) fn cut() -> Box<str> {
    format!("only the first {CALLERS_MAX} callers and callees were examined").into()
}

fn calls_from(index: &Index, ours: bool, source: &Source, symbols: &[Box<str>]) -> Vec<Call> {
    let Some(reading) = source.reading() else { return Vec::new() };
    if !ours || !index.fresh(&source.path, reading) {
        return calls_here(source, reading, symbols);
    }
    let mut found = Vec::new();
    for (number, symbol) in (0u32..).zip(symbols) {
        match symbol.is_empty() {
            true => found.extend(reading.symbols.iter().map(|it| (number, &*it.path))),
            false => found.extend(reading.find(symbol).into_iter().map(|it| (number, &*it.path))),
        }
    }
    let asked =
        |number: u32| SymbolPath::of(source.path.clone(), symbols.get(usize::try_from(number).ok()?)?).ok();
    let calls = index.callees_of(&source.path, &found);
    calls.into_iter().filter_map(|(number, callee, by)| Some((asked(number)?, callee, by))).collect()
}

/// Returns the symbols of a file that call a symbol of the same file.
fn callers_here(reading: &Reading, at: &SymbolPath) -> Vec<SymbolPath> {
    let is_it = |target: &Target<'_>| match target {
        Target::Here(number) => {
            reading.symbols.get(*number as usize).is_some_and(|it| *it.path == *at.symbol())
        }
        Target::Elsewhere(_) => false,
    };
    let callers = reading.edges().into_iter().filter(|edge| is_it(&edge.target));
    let caller = |edge: Edge<'_>| reading.symbols.get(edge.caller as usize);
    let mut found: Vec<SymbolPath> = Vec::new();
    for symbol in callers.filter_map(caller).filter(|it| *it.path != *at.symbol()) {
        if let Ok(caller) = SymbolPath::of(at.file().clone(), &symbol.path)
            && !found.contains(&caller)
        {
            found.push(caller);
        }
    }
    found
}

/// Returns the calls of symbols in a file, as far as the file alone tells, in the order of first calls: pairs of
/// the symbol as it was asked for, and its callee.
fn calls_here(source: &Source, reading: &Reading, symbols: &[Box<str>]) -> Vec<Call> {
    let mut asked: BTreeMap<u32, &str> = BTreeMap::new();
    for symbol in symbols {
        let all = 0..u32::try_from(reading.symbols.len()).unwrap_or(u32::MAX);
        let meant = if symbol.is_empty() { all.collect() } else { reading.numbers_of(symbol) };
        for number in meant {
            asked.entry(number).or_insert(symbol);
        }
    }
    let callee = |target: Target<'_>| match target {
        Target::Here(number) => {
            let path = &reading.symbols.get(number as usize)?.path;
            SymbolPath::of(source.path.clone(), path).ok()
        }
        Target::Elsewhere(name) => SymbolPath::of(nowhere(), name).ok(),
    };
    let call = |edge: Edge<'_>| {
        let asked = SymbolPath::of(source.path.clone(), asked.get(&edge.caller)?).ok()?;
        Some((asked, callee(edge.target)?, FoundBy::Rules))
    };
    reading.edges().into_iter().filter_map(call).take(CALLERS_MAX + 1).collect()
}

/// Returns the file that stands for an unknown place: wit writes `?:name`.
fn nowhere() -> RepoPath {
    RepoPath::parse("?").expect("a constant that is a valid path")
}
