//! Habits that keep the sources readable, and documents that cannot lie. Each check has a test that it bites.

use std::fs;

use provost::config::{print_doors, print_markdown, print_toml};

use crate::support::source::{Source, files, project_root, sources};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 600;
/// Directly above a function, or directly below a file's header; a reason has to follow.
const LONG: &str = "// tidy: long because ";
/// On the line itself or the one above; a reason has to follow.
const PATH: &str = "tidy: path because ";

fn all(check: impl Fn(&Source) -> Vec<String>, folders: &[&str]) {
    let found: Vec<String> =
        folders.iter().flat_map(|folder| sources(folder)).flat_map(|s| check(&s)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

fn count(check: impl Fn(&Source) -> Vec<String>, text: &str) -> usize {
    check(&Source::new("src/engine/follower.rs", text)).len()
}

// Headers.

fn header(source: &Source) -> Vec<String> {
    let said =
        source.text.strip_prefix("//! ").is_some_and(|rest| rest.lines().next().is_some_and(|l| l.len() > 9));
    if said {
        vec![]
    } else {
        vec![format!("{}: begins without a `//!` line that says what it is", source.path)]
    }
}

#[test]
fn every_file_begins_with_what_it_is() {
    all(header, &["src", "tests"]);
}

#[test]
fn a_file_without_a_header_is_caught() {
    assert_eq!(count(header, "use std::fmt;\n"), 1);
    assert_eq!(count(header, "//!\nuse std::fmt;\n"), 1);
    assert_eq!(count(header, "//! The feed of events.\n"), 0);
}

// Size.

fn size(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let excused = |line: Option<&&str>| {
        line.is_some_and(|line| line.trim().strip_prefix(LONG).is_some_and(|reason| reason.len() > 9))
    };
    let below_header = lines.iter().find(|line| !line.starts_with("//!"));
    let mut found = Vec::new();
    if lines.len() > FILE_LINES_MAX && !excused(below_header) {
        found.push(format!("{}: {} lines; split it by subject, or say why not", source.path, lines.len()));
    }
    for (name, from, to) in functions(&source.tokens()) {
        let long = to - from + 1;
        if long > FUNCTION_LINES_MAX && !excused(from.checked_sub(2).and_then(|above| lines.get(above))) {
            found.push(format!(
                "{}:{from}: fn {name} has {long} lines; split it, or say why not",
                source.path
            ));
        }
    }
    found
}

/// Every function with a body: its name, the line of its `fn` and the line of its last brace.
fn functions<'a>(tokens: &[(usize, &'a str)]) -> Vec<(&'a str, usize, usize)> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [(line, "fn"), (_, name)] = pair else { continue };
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            continue;
        }
        let (mut braces, mut brackets) = (0_i32, 0_i32);
        for (end, token) in &tokens[at + 2..] {
            match *token {
                "(" | "[" => brackets += 1,
                ")" | "]" => brackets -= 1,
                ";" if braces == 0 && brackets == 0 => break,
                "{" => braces += 1,
                "}" => {
                    braces -= 1;
                    if braces == 0 {
                        found.push((*name, *line, *end));
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn functions_fit_a_screen_and_files_a_subject() {
    all(size, &["src"]);
}

#[test]
fn a_long_function_or_file_is_caught_unless_it_says_why() {
    let body = "    work();\n".repeat(FUNCTION_LINES_MAX - 1);
    assert_eq!(count(size, &format!("fn long() {{\n{body}}}\n")), 1);
    assert_eq!(
        count(size, &format!("fn fits() {{\n{}}}\n", "    work();\n".repeat(FUNCTION_LINES_MAX - 2))),
        0
    );
    assert_eq!(
        count(
            size,
            &format!("trait T {{ fn none(&self, a: [u8; 4]); }}\nfn long(a: [u8; 3]) {{\n{body}}}\n")
        ),
        1
    );
    assert_eq!(count(size, &format!("{LONG}it is one table of verbs\nfn long() {{\n{body}}}\n")), 0);
    assert_eq!(count(size, &format!("{LONG}\nfn long() {{\n{body}}}\n")), 1, "an excuse without a reason");
    let file = "const A: u8 = 1;\n".repeat(FILE_LINES_MAX + 1);
    assert_eq!(count(size, &file), 1);
    assert_eq!(count(size, &format!("//! Header.\n{LONG}it is one table\n{file}")), 0);
}

// Leftovers.

const LEFT_IN_CODE: &[(&str, &str)] = &[
    ("todo!", "is unfinished"),
    ("unimplemented!", "is unfinished"),
    ("dbg!", "is a trace of debugging"),
    ("#[allow(", "hides a warning for ever; use #[expect(.., reason = \"..\")]"),
    ("#![allow(", "hides warnings for ever; use #[expect(.., reason = \"..\")]"),
    ("#[ignore", "is a test that nobody runs"),
    ("fn test_", "says twice that it is a test; name the promise"),
];
const LEFT_IN_COMMENTS: &[&str] = &["TODO", "FIXME", "XXX", "for now", "For now"];

fn leftovers(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut report = |line: usize, what: &str| found.push(format!("{}:{}: {what}", source.path, line + 1));
    for (i, line) in source.code.lines().enumerate() {
        for (word, why) in LEFT_IN_CODE.iter().filter(|(word, _)| line.contains(word)) {
            report(i, &format!("`{word}` {why}"));
        }
        if source.path.starts_with("src/") && line.contains(".unwrap()") {
            report(i, "`.unwrap()` says nothing when it fails; `expect` names our invariant");
        }
    }
    for (i, line) in source.comments.lines().enumerate() {
        for word in LEFT_IN_COMMENTS.iter().filter(|word| line.contains(**word)) {
            report(i, &format!("`{word}` is a plan and not a reason"));
        }
    }
    found
}

#[test]
fn nothing_unfinished_is_left_behind() {
    all(leftovers, &["src", "tests", "benches"]);
}

#[test]
fn a_leftover_is_caught() {
    for text in [
        "fn f() { todo!() }",
        "fn f() { unimplemented!() }",
        "fn f() { dbg!(1); }",
        "#[allow(dead_code)]\nfn f() {}",
        "#[test]\n#[ignore]\nfn f() {}",
        "#[test]\n#[ignore = \"slow\"]\nfn child_f() {}",
        "#[test]\nfn test_feed() {}",
        "fn f() { x.unwrap(); }",
        "// TODO later",
        "/// FIXME",
        "// XXX",
        "// Good enough for now.",
    ] {
        assert_eq!(count(leftovers, text), 1, "{text}");
    }
    assert_eq!(count(leftovers, "fn f() { x.unwrap_or(\"TODO dbg!\"); x.expect(\"ours\"); }"), 0);
    assert_eq!(leftovers(&Source::new("tests/it/feed.rs", "fn f() { x.unwrap(); }")).len(), 0);
}

// Time.

/// On the line itself or the one above; a reason has to follow.
const SLEEPS: &str = "tidy: sleeps because ";
/// So many of the tests may let time pass, each with its reason.
const SLEEPS_MAX: usize = 20;

/// The lines of a test on which it sleeps, each with whether it says why.
fn sleeps(source: &Source) -> Vec<(usize, bool)> {
    let lines: Vec<&str> = source.text.lines().collect();
    let says = |line: usize| {
        line.checked_sub(1)
            .and_then(|line| lines.get(line))
            .and_then(|line| line.split_once(SLEEPS))
            .is_some_and(|(_, reason)| reason.trim().len() > 9)
    };
    let tokens = source.tokens();
    let found = tokens
        .windows(2)
        .filter(|pair| ["sleep", "sleep_until", "park_timeout"].contains(&pair[0].1) && pair[1].1 == "(");
    found.map(|pair| pair[0].0).map(|line| (line, says(line) || says(line - 1))).collect()
}

/// The longest step of a helper that looks for a condition again and again, in milliseconds.
const STEP_MS_MAX: u64 = 20;

/// Whether a line of a helper sleeps for one step.
fn is_step(line: &str) -> bool {
    let ms =
        line.split_once("from_millis(").and_then(|(_, rest)| rest.split(')').next()?.parse::<u64>().ok());
    line.contains("sleep(STEP)") || ms.is_some_and(|ms| ms <= STEP_MS_MAX)
}

#[test]
fn no_test_sleeps_to_let_time_pass() {
    let (mut found, mut excused) = (Vec::new(), 0);
    for source in sources("tests/it") {
        let is_support = source.path.starts_with("tests/it/support/");
        for (line, says_why) in sleeps(&source) {
            // Helpers wait for conditions in steps.
            let is_step = is_support && source.text.lines().nth(line - 1).is_some_and(is_step);
            excused += usize::from(says_why && !is_support);
            if !says_why && !is_step {
                found.push(format!(
                    "{}:{line}: wait for a condition (support/waits.rs), or move a clock",
                    source.path
                ));
            }
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    assert!(excused <= SLEEPS_MAX, "{excused} tests sleep, each for a reason; find another way for one");
}

#[test]
fn a_test_that_sleeps_is_caught_unless_it_says_why() {
    let unexcused = |text: &str| {
        let source = Source::new("tests/it/core/mail.rs", text);
        sleeps(&source).into_iter().filter(|(_, says_why)| !says_why).count()
    };
    assert_eq!(unexcused("fn f() { std::thread::sleep(A); }"), 1);
    assert_eq!(unexcused("async fn f() { tokio::time::sleep(A).await; sleep_until(B).await; }"), 2);
    assert_eq!(unexcused(&format!("// {SLEEPS}it is a slow peer\nsleep(A);")), 0);
    assert_eq!(unexcused(&format!("// {SLEEPS}\nsleep(A);")), 1, "an excuse without a reason");
    assert_eq!(unexcused(&format!("// {SLEEPS}it is a slow peer\nf();\nsleep(A);")), 1, "far away");
    assert_eq!(unexcused("let goal = \"sleep(1)\"; // sleep(1)\nfn sleeps() {}"), 0);
    assert!(
        is_step("std::thread::sleep(Duration::from_millis(20));")
            && is_step("tokio::time::sleep(STEP).await;")
    );
    assert!(!is_step("std::thread::sleep(Duration::from_millis(300));") && !is_step("sleep(rest);"));
}

// Borrowed helpers.

/// Where a test borrows from another one, or support from a test.
fn sideways(source: &Source) -> Vec<String> {
    let tokens = source.tokens();
    let paths = tokens.windows(3).filter(|path| path[0].1 == "crate" && path[1].1 == "::");
    paths
        .filter(|path| path[2].1 != "support")
        .map(|path| format!("{}:{}: what two files share belongs to support/", source.path, path[0].0))
        .collect()
}

#[test]
fn no_test_borrows_from_another_one() {
    all(sideways, &["tests/it"]);
}

#[test]
fn a_test_that_borrows_from_another_one_is_caught() {
    assert_eq!(count(sideways, "use crate::core::engine::Gate;"), 1);
    assert_eq!(count(sideways, "use crate::{core, support};"), 1);
    assert_eq!(count(sideways, "fn f() { crate::cli::adapt::start(); }"), 1);
    assert_eq!(count(sideways, "use crate::support::World; use super::asked; pub(crate) fn f() {}"), 0);
}

// Names of files.

fn file_name(source: &Source) -> Vec<String> {
    let stem = source.path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
    let kind = ["util", "utils", "helper", "helpers", "manager", "types", "misc", "common"];
    if kind.contains(&stem) { vec![format!("{}: name it after its subject", source.path)] } else { vec![] }
}

#[test]
fn files_are_named_after_their_subject() {
    all(file_name, &["src", "tests"]);
}

#[test]
fn a_file_named_after_a_kind_is_caught() {
    for name in ["utils", "helpers", "manager", "types", "misc"] {
        assert_eq!(file_name(&Source::new(&format!("src/engine/{name}.rs"), "")).len(), 1, "{name}");
    }
}

// Unsafe code.

/// Folders that cannot forbid unsafe code because one file below them needs it; they deny it elsewhere.
const UNSAFE_BELOW: &[(&str, &str)] = &[
    ("src/auth/mod.rs", "peer.rs asks the kernel about a peer with one documented call"),
    ("src/jail/mod.rs", "the child's steps are system calls"),
    ("src/system/mod.rs", "Windows has no safe words for users and processes, the C library none for memory"),
];

fn safe(source: &Source) -> Vec<String> {
    let is_folder = source.path.starts_with("src/") && source.path.ends_with("/mod.rs");
    let empty = source.code.trim().is_empty();
    if !is_folder || empty || source.path.starts_with("src/jail/child/") {
        return vec![];
    }
    let excused = UNSAFE_BELOW.iter().any(|(path, _)| *path == source.path);
    let denies = source.code.contains("#![deny(unsafe_code)]") && excused;
    if denies || source.code.contains("#![forbid(unsafe_code)]") {
        return vec![];
    }
    vec![format!("{}: lacks #![forbid(unsafe_code)]", source.path)]
}

#[test]
fn every_folder_forbids_unsafe_code() {
    all(safe, &["src"]);
}

#[test]
fn a_folder_that_allows_unsafe_code_is_caught() {
    let check = |path, text| safe(&Source::new(path, text)).len();
    assert_eq!(check("src/engine/mod.rs", "//! Order.\nmod feed;"), 1);
    assert_eq!(check("src/engine/mod.rs", "//! Order.\n#![deny(unsafe_code)]\nmod feed;"), 1);
    assert_eq!(check("src/engine/mod.rs", "//! Order.\n// #![forbid(unsafe_code)]\nmod feed;"), 1);
    assert_eq!(check("src/engine/mod.rs", "//! Order.\n#![forbid(unsafe_code)]\nmod feed;"), 0);
    assert_eq!(check("src/auth/mod.rs", "//! Proof.\n#![deny(unsafe_code)]\nmod peer;"), 0);
    assert_eq!(check("src/jail/child/mod.rs", "//! The child.\nmod linux;"), 0);
}

// Refusals.

/// Functions that answer a refusal, or a kind of refusals, and have one answer for all that they do not name.
/// What is left over may be handed on: to the kind of the refusal, or to the conversion that answers all of
/// them.
fn wordless(source: &Source) -> Vec<String> {
    let tokens = source.tokens();
    let lines: Vec<&str> = source.text.lines().collect();
    let says = |from: usize| {
        let head = lines[from - 1..].iter().take(4).map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let first = head.split_once('(').map_or("", |(_, rest)| rest.trim_start());
        let takes = ["refusal: Refusal", "refusal: &Refusal", "kind: RefusalKind"];
        takes.iter().any(|it| first.starts_with(it)) || head.contains("-> RefusalKind {")
    };
    let any = |line: &str| {
        let arm = line.trim_start().split_once(" =>");
        arm.is_some_and(|(name, answer)| {
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            is_name
                && !["true", "false"].contains(&name)
                && !answer.contains(".kind()")
                && !answer.contains(".into()")
        })
    };
    let found = functions(&tokens).into_iter().filter(|(_, from, _)| says(*from));
    let found = found.filter(|(_, from, to)| lines[from - 1..*to].iter().any(|line| any(line)));
    found
        .map(|(name, from, _)| format!("{}:{from}: fn {name} has no word for some refusals", source.path))
        .collect()
}

#[test]
fn every_door_has_a_word_for_every_refusal() {
    all(wordless, &["src/protocols", "src/mcp", "src/domain"]);
}

#[test]
fn a_door_without_words_is_caught() {
    let with = |arm: &str| {
        format!("fn from(refusal: Refusal) -> Self {{\n    match refusal {{\n        {arm}\n    }}\n}}\n")
    };
    assert_eq!(count(wordless, &with("_ => Self::busy(),")), 1);
    assert_eq!(count(wordless, &with("other => Self::busy(),")), 1);
    assert_eq!(count(wordless, &with("Refusal::TaskExists => Self::busy(),")), 0);
    assert_eq!(count(wordless, &with("other => Self::of_kind(other.kind()),")), 0);
    let kinds = |head: &str, arm: &str| format!("{head} {{\n    match kind {{\n        {arm}\n    }}\n}}\n");
    for head in ["fn word(kind: RefusalKind) -> u16", "fn kind(&self) -> RefusalKind"] {
        assert_eq!(count(wordless, &kinds(head, "_ => 503,")), 1, "{head}");
        assert_eq!(count(wordless, &kinds(head, "RefusalKind::Crew => 503,")), 0, "{head}");
    }
}

// The project speaks of itself alone.

/// Written apart, so that this file does not contain them.
const ELSEWHERE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("DESIGN", ".md"),
    concat!("decisions", ".md"),
    concat!("lessons", ".md"),
    concat!("sketches", "/"),
    concat!("seeds", "/"),
    concat!("the br", "ief"),
    concat!("acceptance ", "criteri"),
    concat!("AI-", "generated"),
    concat!("as an ", "AI"),
    concat!("the assis", "tant"),
    concat!("worktree ", "of the helper"),
    concat!("Co-Authored", "-By"),
];

fn elsewhere(path: &str, text: &str) -> Vec<String> {
    let excuse = |line: &str| line.split_once(PATH).is_some_and(|(_, reason)| reason.trim().len() > 9);
    let mut above = "";
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if !excuse(line) && !excuse(above) {
            // Rules protect the system's folders, the superuser's home among them.
            let is_rule = path.starts_with("policy/") || path.starts_with("tests/it/core/policy/");
            let words =
                ELSEWHERE.iter().filter(|word| line.contains(**word) && !(is_rule && **word == ELSEWHERE[1]));
            found.extend(words.map(|word| format!("{path}:{}: `{word}` is no part of the project", i + 1)));
        }
        above = line;
    }
    found
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let root = project_root();
    let spoken = |path: &String| !path.starts_with("tests/it/vectors/") && path != "Cargo.lock";
    let texts = files(&root, &root).into_iter().filter(spoken);
    let found: Vec<String> = texts
        .filter_map(|path| Some((fs::read_to_string(root.join(&path)).ok()?, path)))
        .flat_map(|(text, path)| elsewhere(&path, &text))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn a_word_about_elsewhere_is_caught() {
    for word in ELSEWHERE {
        assert_eq!(elsewhere("README.md", &format!("see {word} for more")).len(), 1, "{word}");
    }
    let excused = format!("// {PATH}a jail must hide the superuser's home\nlet p = \"{}\";", ELSEWHERE[1]);
    assert_eq!(elsewhere("src/jail/plan.rs", &excused).len(), 0);
    assert_eq!(elsewhere("src/jail/plan.rs", "let p = \"/workspace/x\";").len(), 0);
}

// Printed documents.

/// Where a document differs from what the table prints; with `UPDATE` set it is written instead.
fn differs(path: &str, printed: &str, update: bool) -> Option<String> {
    let file = project_root().join(path);
    if update {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, printed).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    first_difference(&kept, printed).map(|what| format!("{path} {what}; run the tests once with UPDATE=1"))
}

fn first_difference(kept: &str, printed: &str) -> Option<String> {
    if kept == printed {
        return None;
    }
    let line = kept.lines().zip(printed.lines()).take_while(|(a, b)| a == b).count();
    Some(format!("differs from the table of settings from line {}", line + 1))
}

#[test]
fn the_configuration_documents_are_what_the_table_prints() {
    let update = std::env::var_os("UPDATE").is_some();
    assert_eq!(differs("config/provost.toml", &print_toml(), update), None);
    assert_eq!(differs("docs/configuration.md", &print_markdown(), update), None);
    assert_eq!(differs("docs/doors.md", &print_doors(), update), None);
    let later = provost::base::later::print_markdown();
    assert_eq!(differs("docs/settings-that-run-later.md", &later, update), None);
    assert_eq!(differs("docs/protocols/own.md", &provost::api::print_markdown(), update), None);
    let rules = with_conditions(
        &fs::read_to_string(project_root().join("policy/README.md")).unwrap(),
        &provost::policy::print_conditions(),
    );
    assert_eq!(differs("policy/README.md", &rules, update), None);
}

/// A document in which the printed conditions stand between their two marks.
fn with_conditions(document: &str, printed: &str) -> String {
    let (before, rest) = document.split_once("<!-- printed from src/policy/condition.rs -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of what is printed -->").unwrap();
    format!(
        "{before}<!-- printed from src/policy/condition.rs -->\n{printed}<!-- end of what is printed -->{after}"
    )
}

#[test]
fn a_document_that_was_edited_by_hand_is_caught() {
    let printed = print_markdown();
    assert_eq!(first_difference(&printed, &printed), None);
    let edited = printed.replacen("devit.window", "devit.windows", 1) + "\n";
    assert!(first_difference(&edited, &printed).is_some());
    assert!(first_difference("", &printed).is_some());
}

/// The modules that a profile of nextest runs, as paths below `tests/it` without their endings.
fn modules_of(profile: &str) -> Vec<String> {
    let settings = fs::read_to_string(project_root().join(".config/nextest.toml")).unwrap();
    let of_it = settings.split(&format!("[profile.{profile}]")).nth(1).unwrap();
    let of_it = of_it.split("[profile.").next().unwrap();
    let groups = of_it.split("/^").skip(1).map(|it| it.split_once("::(").unwrap());
    groups
        .flat_map(|(folder, names)| {
            let names = names.split(')').next().unwrap().split('|');
            names.map(move |name| format!("{}/{name}", folder.replace("::", "/")))
        })
        .collect()
}

#[test]
fn the_suite_with_another_postgresql_has_all_tests_that_start_one() {
    let modules = modules_of("postgres");
    let of_module = |path: &str, module: &String| {
        path == format!("tests/it/{module}.rs") || path.starts_with(&format!("tests/it/{module}/"))
    };
    for source in sources("tests/it").iter().filter(|it| !it.path.starts_with("tests/it/support/")) {
        let starts =
            source.text.contains("support::postgres::") || source.text.contains("support::machines::");
        let listed = modules.iter().any(|it| of_module(&source.path, it));
        assert!(
            listed || !starts || source.path.ends_with("gates/tidy.rs"),
            "{} is not in the suite",
            source.path
        );
    }
    for module in &modules {
        let exists = sources("tests/it").iter().any(|it| of_module(&it.path, module));
        assert!(exists, "{module} is no module of the tests");
    }
}

#[test]
fn the_fast_tests_exist_and_start_no_daemon() {
    let modules = modules_of("fast");
    assert!(modules.len() > 20, "{modules:?}");
    let all = sources("tests/it");
    for module in modules {
        let is_of_it = |source: &&Source| {
            let inner = source.path.strip_prefix("tests/it/").unwrap();
            inner == format!("{module}.rs") || inner.starts_with(&format!("{module}/"))
        };
        let mut of_it = all.iter().filter(is_of_it).peekable();
        assert!(of_it.peek().is_some(), "{module} is no module of the tests");
        for source in of_it {
            let world = source.tokens().into_iter().find(|(_, token)| *token == "World");
            assert!(world.is_none(), "{}: {world:?} starts a daemon", source.path);
        }
    }
}
