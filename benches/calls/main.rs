//! How many of a project's calls the graph has right, held against what an indexer says: `scripts/measure-calls` runs it.
//!
//! Arguments: the folder of the project, its index, the beginning of the paths of callers that count, and a file for the mistakes.
//! It prints a row of `docs/languages.md`. The indexer tells of each name what it stands for; a call is one if the reading says so.
//! A constructor is its class here, since indexers name the one or the other. An answer is judged where the indexer tells of its name
//! within the caller, be it of something outside of the project: some indexers leave names out that they do not understand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use provost::base::{RepoPath, SymbolPath};
use provost::graph::{
    Document, FoundBy, Graph, Occurrence, Outline, ScipIndex, Unit, is_settings, read_scip,
};
use provost::syntax::{ParseDeadline, Reading, language_of, read};

/// Caller and callee.
type Pair = (String, String);

/// A file that the index has.
struct Indexed<'a> {
    path: RepoPath,
    bytes: Vec<u8>,
    /// Where its lines begin.
    lines: Vec<usize>,
    reading: Reading,
    document: &'a Document<'a>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let [folder, index, rest @ ..] = arguments.as_slice() else {
        return Err("say a folder, an index, and the beginning of the paths that count".into());
    };
    let (folder, from) = (Path::new(folder), rest.first().map_or("", String::as_str));
    let bytes = std::fs::read(index)?;
    let index = read_scip(&bytes)?;
    let files = indexed(folder, &index);
    let defined = defined(&files);
    let truth: BTreeSet<Pair> = files
        .iter()
        .flat_map(|file| told(file, &defined))
        .filter(|(caller, _)| caller.starts_with(from))
        .collect();
    let spoken: BTreeSet<Pair> = files.iter().flat_map(spoken).collect();
    let mut answered = answered(folder, &files, &defined, from)?;
    let told_of = |pair: &Pair| truth.contains(pair) || called_by(pair).iter().any(|it| spoken.contains(it));
    let unjudged = answered.keys().filter(|pair| !told_of(pair)).count();
    answered.retain(|pair, _| told_of(pair));
    let right = |all: &[&Pair]| all.iter().filter(|it| truth.contains(**it)).count();
    let all: Vec<&Pair> = answered.keys().collect();
    let sure: Vec<&Pair> =
        answered.iter().filter(|(_, by)| **by != FoundBy::Guess).map(|(pair, _)| pair).collect();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let row = format!(
        "| {name} | {} | {} | {} | {unjudged} | {:.2} | {:.2} | {:.2} |\n",
        index.tool,
        truth.len(),
        all.len(),
        share(right(&all), all.len()),
        share(right(&all), truth.len()),
        share(right(&sure), sure.len())
    );
    if let Some(file) = rest.get(1) {
        let wrong = answered.iter().filter(|(pair, _)| !truth.contains(*pair));
        let wrong = wrong.map(|((caller, callee), by)| format!("wrong {by:?} {caller} -> {callee}\n"));
        let missing = truth.iter().filter(|pair| !answered.contains_key(*pair));
        let missing = missing.map(|(caller, callee)| format!("missing {caller} -> {callee}\n"));
        std::fs::write(file, wrong.chain(missing).collect::<String>())?;
    }
    Ok(std::io::Write::write_all(&mut std::io::stdout(), row.as_bytes())?)
}

/// Under which words a caller may call something: its name, or the one of languages that make things by a method.
fn called_by((caller, callee): &Pair) -> Vec<Pair> {
    let path = callee.rsplit_once(':').map_or("", |(_, path)| path);
    let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
    [name, "new"].map(|word| (caller.clone(), word.to_owned())).into()
}

/// The names that an index tells something about, each with the symbols that it stands in. A name that counts in one file alone and is
/// not defined there tells nothing: scip-typescript has such ones for the members of an object that another file exports.
fn spoken(file: &Indexed<'_>) -> Vec<Pair> {
    let mut found = Vec::new();
    let defines = file.document.occurrences.iter().filter(|it| it.defines);
    let defined: BTreeSet<&str> = defines.map(|it| it.symbol).collect();
    let tells = |it: &&Occurrence<'_>| !it.symbol.starts_with("local ") || defined.contains(it.symbol);
    for it in file.document.occurrences.iter().filter(|it| !it.defines).filter(tells) {
        let Some((at, name)) = text(file, it) else { continue };
        for caller in file.reading.symbols.iter().filter(|it| it.range.contains(&at)) {
            found.push((format!("{}:{}", file.path.as_str(), caller.path), name.clone()));
        }
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "there are few calls")]
fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() { files_below(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

fn indexed<'a>(folder: &Path, index: &'a ScipIndex<'a>) -> Vec<Indexed<'a>> {
    let one = |document: &'a Document<'a>| {
        let (path, language) = (RepoPath::parse(document.path).ok()?, language_of(document.path)?);
        let bytes = std::fs::read(folder.join(document.path)).ok()?;
        let reading = read(language, &bytes, &ParseDeadline::endless());
        let ends = bytes.iter().enumerate().filter(|(_, it)| **it == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Some(Indexed { path, bytes, lines, reading, document })
    };
    index.documents.iter().filter_map(one).collect()
}

/// The byte and the text of a name.
fn text(file: &Indexed<'_>, it: &Occurrence<'_>) -> Option<(u32, String)> {
    let start = *file.lines.get(it.line as usize)?;
    let line = std::str::from_utf8(file.bytes[start..].split(|it| *it == b'\n').next()?).ok()?;
    let (from, to) =
        (column(line, it.start, file.document.unit)?, column(line, it.end?, file.document.unit)?);
    Some((u32::try_from(start + from).ok()?, line.get(from..to)?.to_owned()))
}

fn column(line: &str, column: u32, unit: Unit) -> Option<usize> {
    let column = usize::try_from(column).ok()?;
    let width = |it: char| match unit {
        Unit::Bytes => it.len_utf8(),
        Unit::Utf16 => it.len_utf16(),
        Unit::Points => 1,
    };
    let mut passed = 0;
    for (at, it) in line.char_indices() {
        if passed >= column {
            return (passed == column).then_some(at);
        }
        passed += width(it);
    }
    (passed == column).then_some(line.len())
}

fn without_constructor(path: &str) -> String {
    let ends = [".constructor", ".__init__", ".__construct", ".initialize", ".init"];
    ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path).to_owned()
}

/// What a name of an index stands for: a symbol, or another name.
enum Defined<'a> {
    Symbol(String),
    Name(Named<'a>),
}

/// A name, after the path of the file for those that count in one file alone.
type Named<'a> = (&'a str, &'a str);

fn named<'a>(file: &Indexed<'a>, it: &Occurrence<'a>) -> Named<'a> {
    (if it.symbol.starts_with("local ") { file.document.path } else { "" }, it.symbol)
}

/// Where the names of an index are defined. A text that defines one name and uses another one stands for that: `exports = { find }`.
fn defined<'a>(files: &[Indexed<'a>]) -> BTreeMap<Named<'a>, Defined<'a>> {
    let mut found = BTreeMap::new();
    for file in files {
        let place = |it: &Occurrence<'_>| (it.line, it.start, it.end);
        let uses = file.document.occurrences.iter().filter(|it| !it.defines);
        let uses: BTreeMap<_, _> = uses.map(|it| (place(it), named(file, it))).collect();
        let mut defines: Vec<_> = file.document.occurrences.iter().filter(|it| it.defines).collect();
        defines.sort_by_key(|it| place(it));
        // A name further behind in a symbol is another thing that has the symbol's name.
        let mut first = BTreeMap::new();
        for it in defines {
            let Some((at, name)) = text(file, it) else { continue };
            let around = file.reading.symbols.iter().enumerate();
            let around = around.filter(|(_, it)| it.range.contains(&at) && it.name() == name);
            let symbol = around.min_by_key(|(_, it)| it.range.len());
            if let Some((_, symbol)) = symbol.filter(|(number, _)| *first.entry(*number).or_insert(at) == at)
            {
                let symbol = format!("{}:{}", file.path.as_str(), without_constructor(&symbol.path));
                found.entry(named(file, it)).or_insert(Defined::Symbol(symbol));
            } else if let Some(other) = uses.get(&place(it)) {
                found.entry(named(file, it)).or_insert(Defined::Name(*other));
            }
        }
    }
    found
}

/// The symbol that a name stands for.
fn meant<'d, 'a>(defined: &'d BTreeMap<Named<'a>, Defined<'a>>, mut named: Named<'a>) -> Option<&'d String> {
    for _ in 0..8 {
        match defined.get(&named)? {
            Defined::Symbol(symbol) => return Some(symbol),
            Defined::Name(other) => named = *other,
        }
    }
    None
}

/// The calls of a file, by what the index says of their names.
fn told<'a>(file: &Indexed<'a>, defined: &BTreeMap<Named<'a>, Defined<'a>>) -> BTreeSet<Pair> {
    let mut calls: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
    for call in &file.reading.calls {
        if let Some(caller) = call.caller {
            calls.entry(&*call.callee.name).or_default().push((call.at, caller));
        }
    }
    calls.values_mut().for_each(|places| places.sort_unstable());
    let mut found = BTreeSet::new();
    for it in file.document.occurrences.iter().filter(|it| !it.defines) {
        let Some(callee) = meant(defined, named(file, it)) else { continue };
        let Some((at, name)) = text(file, it) else { continue };
        let Some(places) = calls.get(name.as_str()) else { continue };
        let before = places.partition_point(|(begin, _)| *begin <= at);
        let Some((_, caller)) = before.checked_sub(1).map(|last| places[last]) else { continue };
        let caller = &file.reading.symbols[caller as usize];
        if caller.range.contains(&at) {
            found.insert((format!("{}:{}", file.path.as_str(), caller.path), callee.clone()));
        }
    }
    found
}

/// The calls that the graph has, of what the index knows.
fn answered(
    folder: &Path,
    files: &[Indexed<'_>],
    defined: &BTreeMap<Named<'_>, Defined<'_>>,
    from: &str,
) -> Result<BTreeMap<Pair, FoundBy>, Box<dyn std::error::Error>> {
    let (mut graph, mut paths) = (Graph::default(), Vec::new());
    files_below(folder, &mut paths)?;
    for path in paths {
        let Some(name) = path.strip_prefix(folder)?.to_str() else { continue };
        let Ok(repo_path) = RepoPath::parse(name) else { continue };
        if is_settings(name) {
            graph.set_settings(&repo_path, std::fs::read_to_string(&path).ok().as_deref());
        } else if let Some(language) = language_of(name) {
            let reading = read(language, &std::fs::read(&path)?, &ParseDeadline::endless());
            graph.put(&repo_path, Outline::of(&reading).into())?;
        }
    }
    while !graph.settle(64) {}
    let symbols = defined.values().filter_map(|it| match it {
        Defined::Symbol(symbol) => Some(symbol.as_str()),
        Defined::Name(_) => None,
    });
    let known: BTreeSet<&str> = symbols.collect();
    let edges = graph.edges();
    let mut found: BTreeMap<Pair, FoundBy> = BTreeMap::new();
    for file in files.iter().filter(|it| it.path.as_str().starts_with(from)) {
        let symbols: BTreeSet<&str> = file.reading.symbols.iter().map(|it| &*it.path).collect();
        for symbol in symbols {
            let caller = SymbolPath::of(file.path.clone(), symbol)?;
            for (callee, by) in graph.callees_found(&caller) {
                // Those of what is inside of it are asked for by themselves.
                let (callee, folded) = (callee.to_string(), without_constructor(&callee.to_string()));
                if edges.contains(&(caller.to_string(), callee)) && known.contains(folded.as_str()) {
                    let before = found.entry((caller.to_string(), folded)).or_insert(by);
                    *before = by.min(*before);
                }
            }
        }
    }
    Ok(found)
}
