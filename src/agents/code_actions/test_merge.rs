//! Compares an existing file of tests with an agent's new version, so that no test is lost. A6s 6.7.
//!
//! It finds declarations by their keywords, without knowing the language: rather too many than too few, so that in doubt
//! a test counts as lost. This module does no input or output.

use std::collections::BTreeSet;

/// The outcome for a file of tests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MergedTests {
    /// The new text, which contains all old tests.
    Whole(String),
    /// The names of tests that the new text lacks, and behind which it cannot be put.
    Lost(Vec<String>),
}

/// Puts new tests into a file that has some: returns the new text if it contains all old tests, or else
/// both texts, one after the other.
pub fn keep_tests(old: &str, new: &str) -> MergedTests {
    if has_everything(old, new) {
        return MergedTests::Whole(with_end(new));
    }
    let (there, comes) = (declared(old), declared(new));
    if there.is_disjoint(&comes)
        && !comes.is_empty()
        && let Some(rest) = without_what_is_there(old, new)
    {
        // The gap is as large as the file's other gaps.
        let between = if old.contains("\n\n\n") { "\n\n\n" } else { "\n\n" };
        return MergedTests::Whole([old.trim_end(), between, &with_end(&rest)].concat());
    }
    let lost: Vec<String> = there.difference(&comes).cloned().collect();
    MergedTests::Lost(if lost.is_empty() { vec!["lines that are no test of their own".into()] } else { lost })
}

/// Returns the declarations of the old text that the new text lacks.
pub fn lost_tests(old: &str, new: &str) -> Vec<String> {
    if has_everything(old, new) {
        return Vec::new();
    }
    let (there, comes) = (declared(old), declared(new));
    there.difference(&comes).cloned().collect()
}

/// Checks whether the new text has all old declarations; if there were none, whether it has all old lines in their order.
fn has_everything(old: &str, new: &str) -> bool {
    let there = declared(old);
    if !there.is_empty() && there.is_subset(&declared(new)) {
        return true;
    }
    let mut lines = new.lines().map(str::trim);
    old.lines().map(str::trim).filter(|line| !line.is_empty()).all(|wanted| lines.any(|line| line == wanted))
}

fn with_end(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// Returns the new text without the beginning that the old text has as well; `None` if it brings in further names,
/// which most languages want at the beginning of a file.
fn without_what_is_there(old: &str, new: &str) -> Option<String> {
    let there: BTreeSet<&str> = old.lines().map(str::trim).collect();
    let begins = |line: &&str| line.trim().is_empty() || there.contains(line.trim());
    let rest: Vec<&str> = new.lines().skip_while(begins).collect();
    rest.iter().all(|line| there.contains(line.trim()) || !brings_in(line)).then(|| rest.join("\n"))
}

/// Checks whether a line brings names into a file.
fn brings_in(line: &str) -> bool {
    const WORDS: [&str; 12] = [
        "import",
        "from",
        "use",
        "using",
        "package",
        "#include",
        "require",
        "require_relative",
        "module",
        "namespace",
        "extern",
        "open",
    ];
    let first = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    WORDS.contains(&first) || line.contains("require(")
}

/// Keywords before a declared name.
const BEFORE_NAMES: [&str; 14] = [
    "def",
    "func",
    "fn",
    "fun",
    "function",
    "sub",
    "class",
    "struct",
    "void",
    "proc",
    "deftest",
    "defun",
    "ert-deftest",
    "testset",
];

/// Words before a test that is named by a text.
const BEFORE_TEXTS: [&str; 9] =
    ["it", "test", "describe", "context", "specify", "scenario", "feature", "testcase", "suite"];

/// Returns the declarations of a text: functions, classes, and tests that are named by a text.
fn declared(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !is_comment(line)).flat_map(declared_in).collect()
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let attribute = line.starts_with("#[") || line.starts_with("#include");
    ["//", "#", "--", ";", "* ", "/*", "%"].iter().any(|begin| line.starts_with(begin)) && !attribute
}

fn declared_in(line: &str) -> Vec<String> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(begin) = line[at..].find(part_of_word).map(|it| at + it) {
        let long = line[begin..].find(|c: char| !part_of_word(c) && c != '-').unwrap_or(line.len() - begin);
        let word = &line[begin..begin + long];
        at = begin + long;
        let word = word.trim_end_matches('-').to_lowercase();
        if BEFORE_NAMES.contains(&word.as_str()) {
            found.extend(name(&line[at..]));
        } else if BEFORE_TEXTS.contains(&word.as_str()) {
            found.extend(called(&line[at..]));
        }
    }
    found
}

/// Returns the name that follows, behind a receiver in parentheses if there is one.
fn name(rest: &str) -> Option<String> {
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1.trim_start(),
        None => rest,
    };
    if rest.starts_with(['`', '"']) {
        return quoted(rest);
    }
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || "_-!?.:".contains(*c)).collect();
    let name = name.trim_end_matches([':', '.', '-']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the text that follows: in parentheses or not, and behind `.only` and similar words.
fn called(rest: &str) -> Option<String> {
    let rest = match rest.strip_prefix('.') {
        Some(more) => more.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
        None => rest,
    };
    quoted(rest.trim_start_matches([' ', '(']))
}

fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let (inner, _) = text[1..].split_once(quote)?;
    (!inner.is_empty()).then(|| inner.to_owned())
}
