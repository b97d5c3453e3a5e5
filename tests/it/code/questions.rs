//! Questions about callees, with the answers that a person has read from the source. A line `//?` or `#?`
//! above a function names all that it calls within the repository: direct, aliased, passed on, through
//! instances, namespaces, relative imports, in circles and dynamically, among names that several classes and
//! the language itself have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use provost::base::RepoPath;
use provost::graph::{Graph, Outline, is_settings};
use provost::syntax::{Kind, ParseDeadline, language_of, read};

/// The answers to all questions of one folder, counted.
#[derive(Default, Debug)]
struct Score {
    questions: usize,
    right: usize,
    /// Edges that are answered and are none.
    wrong: Vec<String>,
    /// Edges that are missing from the answers.
    missing: Vec<String>,
}

fn files_below(folder: &Path, top: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, top, found);
        } else {
            // Under their own names, manifests and sources would be taken for those of this workspace.
            let name = path.strip_prefix(top).unwrap().to_str().unwrap();
            let name = name.strip_suffix(".fixture").unwrap_or(name).to_owned();
            found.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The files of one folder of questions, by path.
pub(super) fn files_of(folder: &str) -> BTreeMap<String, String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/code/questions").join(folder);
    let mut files = BTreeMap::new();
    files_below(&top, &top, &mut files);
    files
}

fn ask(folder: &str) -> Score {
    let files = files_of(folder);
    let mut graph = Graph::default();
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (settings, files): (BTreeMap<String, String>, BTreeMap<String, String>) =
        files.into_iter().partition(|(name, _)| is_settings(name));
    for (name, text) in &settings {
        graph.set_settings(&RepoPath::parse(name).unwrap(), Some(text));
    }
    for (name, text) in &files {
        let reading = read(language_of(name).unwrap(), text.as_bytes(), &ParseDeadline::endless());
        assert!(reading.is_whole(), "{name}: {:?}", reading.trouble);
        graph.put(&RepoPath::parse(name).unwrap(), Outline::of(&reading).into()).unwrap();
        for (marker, at) in markers(text) {
            let next = reading.symbols.iter().find(|it| it.range.start >= at && it.kind != Kind::Class);
            let caller = format!("{name}:{}", next.unwrap().path);
            expected.insert(caller, marker.split_whitespace().map(Into::into).collect());
        }
    }
    while !graph.settle(8) {}
    let mut answered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (caller, callee) in graph.edges().into_iter().filter(|(_, callee)| !callee.starts_with("?:")) {
        answered.entry(caller).or_default().insert(callee);
    }
    let mut score = Score { questions: expected.len(), ..Score::default() };
    for (caller, callees) in &expected {
        let answer = answered.remove(caller).unwrap_or_default();
        score.right += callees.intersection(&answer).count();
        score.wrong.extend(answer.difference(callees).map(|it| format!("{caller} -> {it}")));
        score.missing.extend(callees.difference(&answer).map(|it| format!("{caller} -> {it}")));
    }
    score
}

/// The text of each marker and the byte behind it.
fn markers(text: &str) -> Vec<(&str, u32)> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        at += u32::try_from(line.len()).unwrap();
        let bare = line.trim();
        if let Some(marker) = bare.strip_prefix("//?").or_else(|| bare.strip_prefix("#?")) {
            found.push((marker, at));
        }
    }
    found
}

fn assert_precise(folder: &str) -> usize {
    let score = ask(folder);
    let (right, wrong, missing) = (score.right, score.wrong.len(), score.missing.len());
    let of_100 = |all: usize| right * 100 / all.max(1);
    assert!(of_100(right + wrong) >= 95 && of_100(right + missing) >= 80, "{score:#?}");
    score.questions
}

#[test]
fn eighty_questions_about_callees_are_answered_with_few_mistakes() {
    let asked: usize = ["ts", "py", "shadows_ts", "shadows_py", "rust", "go", "ruby", "php", "c", "cpp"]
        .map(assert_precise)
        .iter()
        .sum();
    assert!(asked >= 200, "{asked}");
}

/// Of names that mean something else where they are called than at the top of the file, no edge may be wrong:
/// what is ambiguous is not answered.
#[test]
fn no_edge_is_drawn_by_a_name_that_means_something_else_where_it_is_called() {
    let mut asked = 0;
    for folder in ["shadows_ts", "shadows_py"] {
        let score = ask(folder);
        assert!(score.wrong.is_empty() && score.missing.is_empty(), "{folder}: {score:#?}");
        asked += score.questions;
    }
    assert!(asked >= 80, "{asked}");
}

#[test]
fn questions_about_java_are_answered_with_few_mistakes() {
    let asked = assert_precise("java");
    assert!(asked >= 50, "{asked}");
}

#[test]
fn questions_about_c_sharp_are_answered_with_few_mistakes() {
    let asked = assert_precise("csharp");
    assert!(asked >= 35, "{asked}");
}

#[test]
fn questions_about_kotlin_and_java_beside_it_are_answered_with_few_mistakes() {
    let asked = assert_precise("kotlin");
    assert!(asked >= 40, "{asked}");
}

#[test]
fn questions_about_swift_are_answered_with_few_mistakes() {
    let asked = assert_precise("swift");
    assert!(asked >= 40, "{asked}");
}
