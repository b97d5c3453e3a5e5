//! Every `match` on a refusal, or on a kind of refusals, has an answer for each: an arm for what is left over hands the refusal on.
//! `tidy` asks more of the functions that make a door's answers.

use crate::support::source::{Source, sources};

/// Files in which a `match` adds something to an answer that each refusal has already, with what it adds.
const ADDS: [(&str, &str); 1] =
    [("src/protocols/own/map/coordinate.rs", "data for programs, and the next step")];

/// An arm of a `match`: its first and last line, its pattern without the guard, and its answer.
struct Arm<'a> {
    lines: (usize, usize),
    pattern: Vec<&'a str>,
    answer: Vec<&'a str>,
}

/// The position behind a part of the tokens that ends at depth 0, where `ends` says so or the bracket around it closes.
fn end_of(tokens: &[(usize, &str)], from: usize, ends: impl Fn(usize) -> bool) -> usize {
    let mut depth = 0;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        match *token {
            ")" | "]" | "}" if depth == 0 => return at,
            _ if depth == 0 && ends(at) => return at,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The arms behind the bracket that opens a `match`.
fn arms<'a>(tokens: &[(usize, &'a str)], open: usize) -> Vec<Arm<'a>> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|it| it.1 == text);
    let words = |from: usize, to: usize| tokens[from..to].iter().map(|it| it.1).collect::<Vec<_>>();
    let (mut found, mut at) = (Vec::new(), open + 1);
    while at < tokens.len() && !is(at, "}") {
        let arrow = end_of(tokens, at, |at| is(at, "=") && is(at + 1, ">"));
        if !is(arrow, "=") {
            break;
        }
        let mut end = end_of(tokens, arrow + 2, |at| is(at, ","));
        if is(arrow + 2, "{") {
            let behind = end_of(tokens, arrow + 3, |_| false) + 1;
            // A block is the whole answer, unless a method is called on it.
            end = if is(behind, ".") || is(behind, "?") { end } else { behind };
        }
        let pattern = words(at, arrow).into_iter().take_while(|it| *it != "if").collect();
        let lines = (tokens[at].0, tokens[end.min(tokens.len() - 1)].0);
        found.push(Arm { lines, pattern, answer: words(arrow + 2, end.max(arrow + 2)) });
        at = if is(end, ",") { end + 1 } else { end };
    }
    found
}

/// Whether a pattern names variants of the type of refusals or of their kinds.
fn names_refusals(pattern: &[&str]) -> bool {
    let of = pattern.iter().position(|it| ["Refusal", "RefusalKind"].contains(it));
    let before = |at: usize| {
        pattern[..at].iter().all(|it| ["|", "&", "Err", "(", "@", "ref"].contains(it) || is_name(it))
    };
    of.is_some_and(|at| pattern.get(at + 1) == Some(&"::") && before(at))
}

fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The name that a pattern gives to each value that no other arm has taken; `_` where it gives none.
fn left_over<'a>(pattern: &[&'a str]) -> Option<&'a str> {
    let name = match pattern {
        [name] | ["Err", "(", name, ")"] => *name,
        _ => return None,
    };
    (is_name(name) && !["true", "false"].contains(&name)).then_some(name)
}

fn careless(source: &Source) -> Vec<String> {
    let tokens = source.tokens();
    let mut found = Vec::new();
    for from in (0..tokens.len()).filter(|at| tokens[*at].1 == "match") {
        let open = end_of(&tokens, from + 1, |at| tokens[at].1 == "{");
        let arms = arms(&tokens, open);
        if !arms.iter().any(|arm| names_refusals(&arm.pattern)) {
            continue;
        }
        let in_text = |(from, to): (usize, usize), name: &str| {
            let mut lines = source.text.lines().skip(from - 1).take(to + 1 - from);
            lines.any(|line| line.contains(&format!("{{{name}}}")))
        };
        let drops = |arm: &&Arm<'_>| {
            left_over(&arm.pattern)
                .is_some_and(|name| name == "_" || !(arm.answer.contains(&name) || in_text(arm.lines, name)))
        };
        found.extend(arms.iter().filter(drops).map(|arm| {
            format!("{}:{}: an arm drops refusals that have no other one", source.path, arm.lines.0)
        }));
    }
    found
}

#[test]
fn no_match_on_a_refusal_drops_what_is_left_over() {
    let all = sources("src");
    let (adds, others): (Vec<&Source>, Vec<&Source>) =
        all.iter().partition(|it| ADDS.iter().any(|(path, _)| *path == it.path));
    let found: Vec<String> = others.into_iter().flat_map(careless).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    let gone = adds.iter().filter(|it| careless(it).is_empty()).map(|it| &it.path).collect::<Vec<_>>();
    assert!(gone.is_empty() && adds.len() == ADDS.len(), "these need no exception any more: {gone:?}");
}

#[test]
fn an_arm_that_drops_refusals_is_caught() {
    let count = |arms: &str| {
        careless(&Source::new(
            "src/a/b.rs",
            &format!("fn f() {{\n    let a = match ask() {{\n{arms}\n    }};\n}}\n"),
        ))
        .len()
    };
    let first =
        "Refusal::LockConflict(rival) | Refusal::WouldDeadlock { rival, .. } => {\n    say(rival)?\n}\n";
    assert_eq!(count(&format!("{first} _ => refusal.into(),")), 1);
    assert_eq!(count(&format!("{first} other => Self::busy(),")), 1);
    assert_eq!(count(&format!("{first} other => other.into(),")), 0);
    assert_eq!(count(&format!("{first} Refusal::TaskExists => Self::busy(),")), 0);
    assert_eq!(count("RefusalKind::Full => 503, _ => 400,"), 1);
    assert_eq!(count("Ok(_) => {} Err(Refusal::MailNotFound) => {} Err(_) => {}"), 1);
    assert_eq!(
        count("Ok(_) => {} Err(refusal @ Refusal::MailNotFound) => {} Err(refusal) => return Err(refusal),"),
        0
    );
    assert_eq!(count("Err(Refusal::MailNotFound) => {} Err(refusal) => Err(format!(\"no: {refusal}\")),"), 0);
    // A match on something else, whose answers are refusals.
    assert_eq!(count("Some(it) => Ok(it), _ => Err(Refusal::LockNotFound),"), 0);
}
