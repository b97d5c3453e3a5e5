//! What is read of a project's sources, and whether an edit touches what a person would say it does: `scripts/measure-sources` runs it.
//!
//! Arguments: the folder of the project, the name of a language as in `provost graph languages`, and a file for the edits on which
//! the two findings differ. It prints a row of `docs/languages.md`.

mod naive;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use provost::base::RepoPath;
use provost::graph::{Graph, Outline, is_settings};
use provost::syntax::{Language, ParseDeadline, Reading, Version, language_of, read, touched};

/// Edits of one project.
const EDITS: usize = 500;
/// The most lines that are looked at to find them: of most lines, a look does not tell the definition.
const TRIES_MAX: usize = 100_000;
/// Longer files are edited nowhere, since each edit reads the file twice.
const EDITED_BYTES_MAX: usize = 100_000;

/// A file of the language.
struct Source {
    path: String,
    text: Vec<u8>,
    reading: Reading,
}

/// How many edits there were, by what they touch.
#[derive(Default)]
struct Edits {
    /// What the other finding says.
    same: usize,
    /// Something around that: what has no name that others know belongs to what is around it.
    further_out: usize,
    /// The whole file, which does not parse.
    whole_file: usize,
    /// The others, each with its place.
    other: Vec<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let [folder, language, rest @ ..] = arguments.as_slice() else {
        return Err("say a folder and a language".into());
    };
    let folder = Path::new(folder);
    let mut paths = Vec::new();
    files_below(folder, &mut paths)?;
    paths.sort();
    let is_of = |it: Language| it.name().eq_ignore_ascii_case(language);
    if !Language::all().any(is_of) {
        return Err(format!("there is no language {language}").into());
    }
    let begun = Instant::now();
    let (mut graph, mut sources) = (Graph::default(), Vec::new());
    for path in paths {
        let Some(name) = path.strip_prefix(folder)?.to_str() else { continue };
        let Ok(repo_path) = RepoPath::parse(name) else { continue };
        if is_settings(name) {
            graph.set_settings(&repo_path, std::fs::read_to_string(&path).ok().as_deref());
        }
        // A header belongs to the language of the project.
        let is_header = |it| it == Language::CHeader && matches!(&**language, "C" | "C++");
        let Some(of) = language_of(name).filter(|it| is_of(*it) || is_header(*it)) else { continue };
        let text = std::fs::read(&path)?;
        let reading = read(of, &text, &ParseDeadline::endless());
        graph.put(&repo_path, Outline::of(&reading).into())?;
        sources.push(Source { path: name.to_owned(), text, reading });
    }
    let read_in = begun.elapsed();
    let begun = Instant::now();
    while !graph.settle(64) {}
    let followed_in = begun.elapsed();
    let edits = edits(&sources);
    let row = format!(
        "{}{:.1} s | {:.1} s | {} | {} | {} | {} |\n",
        counts(folder, language, &sources),
        read_in.as_secs_f64(),
        followed_in.as_secs_f64(),
        edits.same,
        edits.further_out,
        edits.whole_file,
        edits.other.len(),
    );
    if let Some(file) = rest.first() {
        std::fs::write(file, edits.other.concat())?;
    }
    Ok(std::io::Write::write_all(&mut std::io::stdout(), row.as_bytes())?)
}

/// The beginning of the row: what there is, and what was not read whole.
fn counts(folder: &Path, language: &str, sources: &[Source]) -> String {
    let lines: usize = sources.iter().map(|it| it.text.iter().filter(|it| **it == b'\n').count()).sum();
    let bytes: usize = sources.iter().map(|it| it.text.len()).sum();
    let symbols: usize = sources.iter().map(|it| it.reading.symbols.len()).sum();
    let mut troubles: BTreeMap<String, usize> = BTreeMap::new();
    for trouble in sources.iter().flat_map(|it| &it.reading.trouble) {
        let shown = format!("{trouble:?}");
        let name = shown.split([' ', '{']).next().unwrap_or_default();
        *troubles.entry(name.to_owned()).or_default() += 1;
    }
    let troubles: Vec<String> = troubles.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let troubles = if troubles.is_empty() { "none".to_owned() } else { troubles.join(", ") };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut row = String::new();
    let _never_fails = write!(
        row,
        "| {name} ({language}) | {} | {lines} | {:.1} MB | {symbols} | {troubles} | ",
        sources.len(),
        bytes as f64 / 1e6
    );
    row
}

fn edits(sources: &[Source]) -> Edits {
    let (mut edits, mut number) = (Edits::default(), 7_usize);
    let texts: Vec<(&Source, &str)> = sources
        .iter()
        .filter_map(|it| Some((it, std::str::from_utf8(&it.text).ok()?)))
        .filter(|(it, text)| text.len() <= EDITED_BYTES_MAX && !it.reading.symbols.is_empty())
        .filter(|(it, text)| !naive::is_hard_to_look_at(it.reading.language, text))
        .collect();
    let mut done = 0;
    for _ in 0..TRIES_MAX {
        if done == EDITS || texts.is_empty() {
            break;
        }
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (source, text) = texts[(number >> 33) % texts.len()];
        let lines: Vec<&str> = text.split('\n').collect();
        let at = (number >> 20) % lines.len();
        let around = naive::around(source.reading.language, &lines, at);
        if around.is_empty() {
            continue;
        }
        done += 1;
        edits.judge(source, text, &lines, at, &around);
    }
    edits
}

impl Edits {
    /// Puts a comment behind a line, and compares what that touches with the names around the line, the innermost first.
    fn judge(&mut self, source: &Source, text: &str, lines: &[&str], at: usize, around: &[String]) {
        let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let comment = naive::comment(source.reading.language);
        let (line, end) = changed[at].strip_suffix('\r').map_or((&*changed[at], ""), |line| (line, "\r"));
        changed[at] = format!("{line} {comment} edited{end}");
        let changed = changed.join("\n");
        let after = read(source.reading.language, changed.as_bytes(), &ParseDeadline::endless());
        let old = Version { reading: &source.reading, bytes: text.as_bytes() };
        let found = touched(old, Version { reading: &after, bytes: changed.as_bytes() });
        let has = |name: &String| found.len() == 1 && found[0].split('.').any(|part| part == name);
        match () {
            () if has(&around[0]) => self.same += 1,
            () if around[1..].iter().any(has) => self.further_out += 1,
            () if *found == ["".into()] && !(source.reading.is_whole() && after.is_whole()) => {
                self.whole_file += 1
            }
            () => {
                let place =
                    format!("{}:{}: {around:?} and {found:?}: {}\n", source.path, at + 1, lines[at].trim());
                self.other.push(place);
            }
        }
    }
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
