//! Edits, held against a second finding of the definition around them that knows no grammar: by the first words
//! and the indentation of formatted lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provost::base::encloses;
use provost::syntax::{Language, ParseDeadline, Reading, Version, read, touched};

use crate::support::source::project_root;

fn reading(language: Language, text: &str) -> Reading {
    read(language, text.as_bytes(), &ParseDeadline::endless())
}

fn touches(language: Language, old: &str, new: &str) -> Vec<String> {
    touches_as_read((&reading(language, old), old), (&reading(language, new), new))
}

fn touches_as_read((before, old): (&Reading, &str), (after, new): (&Reading, &str)) -> Vec<String> {
    let old = Version { reading: before, bytes: old.as_bytes() };
    let new = Version { reading: after, bytes: new.as_bytes() };
    touched(old, new).into_iter().map(String::from).collect()
}

pub(super) fn files_below(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files_below(&path, end, found);
        } else if path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

pub(super) fn word(text: &str) -> String {
    text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
}

/// A type or a trait as it is written, without what it is made with.
fn bare(text: &str) -> String {
    let text = text.trim().trim_start_matches('&').trim_start_matches("mut ").trim_start_matches("dyn ");
    let path = text.split(['<', '{', ' ']).next().unwrap_or(text);
    path.rsplit("::").next().unwrap_or(path).trim_end_matches(',').to_owned()
}

/// Returns the name of the definition that a line of Rust begins.
fn begun_in_rust(line: &str) -> Option<String> {
    let mut rest = line.trim_start();
    loop {
        let shorter =
            ["pub ", "async ", "unsafe ", "extern \"C\" "].iter().find_map(|it| rest.strip_prefix(it));
        let shorter = shorter.or_else(|| rest.strip_prefix("pub(")?.split_once(") ").map(|it| it.1));
        match shorter.or_else(|| rest.strip_prefix("const ").filter(|it| it.starts_with("fn "))) {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    // An attribute of several lines belongs to what is below it.
    if rest.starts_with("use ") || rest.starts_with("#[") || rest.starts_with("#![") {
        return Some("use".into());
    }
    if let Some(named) = rest.strip_prefix("macro_rules! ") {
        return Some(format!("{}!", word(named)));
    }
    // What is in a macro goes by its own name alone.
    if (rest.ends_with("! {") || rest.ends_with("!(")) && !rest.starts_with("macro_rules") {
        return Some(String::new());
    }
    for start in ["fn ", "struct ", "enum ", "union ", "trait ", "mod ", "const ", "static mut ", "static "] {
        if let Some(named) = rest.strip_prefix(start) {
            return Some(word(named)).filter(|name| !name.is_empty());
        }
    }
    let of = rest.strip_prefix("impl").filter(|it| it.starts_with([' ', '<']))?;
    // Past the parameters of the `impl` itself.
    let mut depth = 0;
    let end = of.char_indices().find(|(at, it)| {
        match it {
            '<' => depth += 1,
            '>' if !of[..*at].ends_with('-') => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let of = if of.starts_with('<') { of.get(end?.0 + 1..)? } else { of };
    match of.split_once(" for ") {
        Some((implemented, of)) => {
            let arguments =
                implemented.trim().split_once('<').map_or(String::new(), |it| format!("<{}", it.1));
            Some(format!(
                "{}.{}{}",
                bare(of),
                bare(implemented),
                arguments.replace(", ", ",").replace('.', "_")
            ))
        }
        None => Some(bare(of)),
    }
}

/// The definition around a line, by the lines above that begin one and are less indented.
fn around_in_rust(lines: &[&str], at: usize) -> String {
    let mut names = Vec::new();
    let mut bound = indent(lines[at]) + usize::from(begun_in_rust(lines[at]).is_some());
    for line in lines[..=at].iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < bound
            && let Some(name) = begun_in_rust(line)
        {
            names.push(name);
            bound = indent(line);
        }
    }
    names.retain(|name| !name.is_empty());
    names.reverse();
    // What is in a macro is none of its own.
    if let Some(at) = names.iter().position(|name| name.ends_with('!')) {
        names.truncate(at + 1);
    }
    names.join(".").trim_end_matches('!').to_owned()
}

/// Whether a line is one whose definition can be told by looking at it.
pub(super) fn is_plain(line: &str) -> bool {
    let text = line.trim();
    let starts = ["//", "/*", "*", "#", ")", "]", "}", "where", "use ", "pub use ", "{", "|"];
    text.len() > 3 && !starts.iter().any(|it| text.starts_with(it)) && !text.ends_with('\\')
}

/// Edits one line, and asks what that touches.
pub(super) fn edited(language: Language, lines: &[&str], at: usize) -> Vec<String> {
    let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
    changed[at] = format!("{} // edited", changed[at]);
    touches(language, &lines.join("\n"), &changed.join("\n"))
}

/// Of so many lines one is edited.
const SAMPLED_OF: u64 = 48;

/// Whether a line is one of the sample. The file and the line alone say it, so that a change of other lines makes no other sample.
fn is_sampled(path: &str, line: &str) -> bool {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = path.bytes().chain(line.bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
    (hash >> 32).is_multiple_of(SAMPLED_OF)
}

#[test]
fn five_hundred_edits_of_this_project_touch_the_definition_that_is_around_them() {
    let (mut files, root) = (Vec::new(), project_root());
    files_below(&root.join("src"), ".rs", &mut files);
    let (mut checked, mut wrong) = (0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        // What stands in a text of several lines looks like code and is none.
        if text.len() > 8_000 || text.contains("r#\"") || text.contains("\"\\\n") {
            continue;
        }
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let lines: Vec<&str> = text.split('\n').collect();
        for at in (0..lines.len()).filter(|at| is_plain(lines[*at]) && is_sampled(&path, lines[*at])) {
            let expected = around_in_rust(&lines, at);
            // A constant within a function is none that others know.
            let last = expected.rsplit('.').next().unwrap_or_default();
            let is_inner = expected.contains('.') && last.chars().all(|it| it.is_uppercase() || it == '_');
            if expected.is_empty() || is_inner || last == "use" || indent(lines[at]) == 0 {
                continue;
            }
            checked += 1;
            let found = edited(Language::Rust, &lines, at);
            let is_it = |found: &String| *found == expected || encloses(&expected, found);
            if found.len() != 1 || !is_it(&found[0]) {
                wrong.push(format!("{path}:{}: {expected} and {found:?}: {}", at + 1, lines[at]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked >= 500, "{checked}");
}

/// Returns the name of the definition that a line of Go at the left edge begins.
fn begun_in_go(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix("type ") {
        return Some(word(rest)).filter(|name| !name.is_empty());
    }
    let rest = line.strip_prefix("func ")?;
    match rest.strip_prefix('(') {
        Some(method) => {
            let (receiver, name) = method.split_once(") ")?;
            let of = receiver.rsplit(' ').next()?.trim_start_matches('*');
            Some(format!("{}.{}", word(of), word(name)))
        }
        None => Some(word(rest)),
    }
}

#[test]
fn five_hundred_edits_of_go_touch_the_definition_that_is_around_them() {
    let mut files = Vec::new();
    files_below(&project_root().join("tests/it/code/questions/go"), ".go", &mut files);
    let mut checked = 0;
    // Each line, at several places of the file: with so many lines before it.
    for before in 0..12 {
        for file in &files {
            let text = format!("{}{}", "// …\n".repeat(before), std::fs::read_to_string(file).unwrap());
            let lines: Vec<&str> = text.split('\n').collect();
            for at in 0..lines.len() {
                let begun = lines[..=at]
                    .iter()
                    .enumerate()
                    .rev()
                    .find(|(_, line)| indent(line) == 0 && is_plain(line));
                let Some((from, expected)) = begun.and_then(|(from, line)| Some((from, begun_in_go(line)?)))
                else {
                    continue;
                };
                let in_body = at == from || (indent(lines[at]) > 0 && lines[from].ends_with('{'));
                if !is_plain(lines[at]) || !in_body || expected.is_empty() {
                    continue;
                }
                checked += 1;
                let found = edited(Language::Go, &lines, at);
                let is_it = |found: &String| *found == expected || encloses(&expected, found);
                assert!(
                    found.len() == 1 && is_it(&found[0]),
                    "{}:{}: {expected} and {found:?}",
                    file.display(),
                    at + 1
                );
            }
        }
    }
    assert!(checked >= 500, "{checked}");
}

/// The innermost symbol around a place.
fn innermost(reading: &Reading, at: usize) -> String {
    let around =
        reading.symbols.iter().filter(|it| (it.range.start as usize..it.range.end as usize).contains(&at));
    around.min_by_key(|it| it.range.len()).map_or_else(String::new, |it| it.path.to_string())
}

fn fixtures() -> Vec<(Language, String)> {
    let mut found = Vec::new();
    for (language, folder, end) in [
        (Language::TypeScript, "code/questions/ts", ".ts"),
        (Language::Tsx, "code/questions/ts", ".ts"),
        (Language::JavaScript, "vectors/wit/fixture/src", ".jsx"),
        (Language::Python, "code/questions/py", ".py"),
        (Language::Rust, "code/questions/rust", ".rs.fixture"),
        (Language::Swift, "code/questions/swift", ".swift"),
        (Language::Go, "code/questions/go", ".go"),
        (Language::Ruby, "code/questions/ruby", ".rb"),
        (Language::Php, "code/questions/php", ".php"),
        (Language::Java, "code/questions/java", ".java"),
        (Language::CSharp, "code/questions/csharp", ".cs"),
        (Language::Kotlin, "code/questions/kotlin", ".kt"),
        (Language::C, "code/questions/c", ".c"),
        (Language::CHeader, "code/questions/c", ".h"),
        (Language::Cpp, "code/questions/cpp", ".cpp"),
        (Language::CHeader, "code/questions/cpp", ".h"),
    ] {
        let mut files = Vec::new();
        files_below(&project_root().join("tests/it").join(folder), end, &mut files);
        found.extend(files.iter().map(|file| (language, std::fs::read_to_string(file).unwrap())));
    }
    found
}

/// Cut off anywhere, a file still has what was whole before the cut, or says that it cannot tell.
#[test]
fn a_file_that_is_cut_off_at_every_tenth_byte_has_what_is_before_the_cut_or_says_that_it_does_not_parse() {
    for (language, text) in fixtures() {
        for text in [text.clone(), text.replace('\n', "\r\n"), text.replace("    ", "\t")] {
            let whole = reading(language, &text);
            assert!(whole.is_whole(), "{:?}", whole.trouble);
            for cut in (0..text.len()).step_by(10).filter(|at| text.is_char_boundary(*at)) {
                let half = reading(language, &text[..cut]);
                // What is cut off is touched, under its name: the symbol at the cut, or, between two members of it, the members behind.
                let (expected, found) =
                    (innermost(&whole, cut), touches_as_read((&whole, &text), (&half, &text[..cut])));
                let is_touched =
                    |it: &String| *it == expected || encloses(it, &expected) || encloses(&expected, it);
                assert!(
                    expected.is_empty() || found.iter().any(is_touched),
                    "{expected} and {found:?} at {cut} of:\n{text}"
                );
                for symbol in
                    whole.symbols.iter().filter(|it| it.range.end as usize <= cut && it.kind.is_callable())
                {
                    let found = half.find(&symbol.path);
                    let is_unsure =
                        half.contract(&symbol.path) == Err(provost::syntax::NoSignature::Unparsable);
                    assert!(!found.is_empty() || is_unsure, "{} at {cut} of:\n{text}", symbol.path);
                }
            }
        }
    }
}

/// Whether nothing but a comma and parts of a list lies between symbols, which one declaration declares then.
fn are_declared_together((whole, text): (&Reading, &str), names: &[String]) -> bool {
    let find = |name: &String| whole.find(name).first().map(|it| it.range.clone());
    let Some(mut ranges) = names.iter().map(find).collect::<Option<Vec<_>>>() else { return false };
    ranges.sort_by_key(|it| (it.start, it.end));
    !ranges.is_empty()
        && ranges.windows(2).all(|pair| {
            let between = text.get(pair[0].end as usize..pair[1].start as usize).unwrap_or(",");
            between.contains(',') && !between.contains([';', '}'])
        })
}

/// A symbol that is being written keeps its name while it does not parse.
#[test]
fn the_symbol_that_is_being_edited_is_the_one_that_is_touched_while_it_does_not_parse() {
    let mut broken: BTreeMap<Language, usize> = BTreeMap::new();
    for (language, text) in fixtures() {
        let whole = reading(language, &text);
        for at in (0..text.len()).step_by(10).filter(|at| text.is_char_boundary(*at)) {
            let edited = format!("{} ((( {}", &text[..at], &text[at..]);
            let after = reading(language, &edited);
            if after.is_whole() {
                continue;
            }
            *broken.entry(language).or_default() += 1;
            let (expected, found) =
                (innermost(&whole, at), touches_as_read((&whole, &text), (&after, &edited)));
            // Between two symbols on lines of their own, the one below has its comments.
            // What one declaration declares is touched together.
            let are_one = found.len() == 1 || are_declared_together((&whole, &text), &found);
            let is_one_of = are_one && found.contains(&expected);
            let is_within = are_one && found.iter().all(|it| encloses(&expected, it));
            let is_it = found == [expected.clone()] || is_one_of || is_within;
            assert!(is_it, "{expected} and {found:?} at {at} of:\n{text}");
        }
    }
    assert_eq!(broken.len(), 15, "{broken:?}");
    assert!(broken.values().all(|it| *it >= 50), "{broken:?}");
}
