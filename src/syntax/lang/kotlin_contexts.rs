//! Contexts of Kotlin: `context(users: UserService, _: Logger)`, and `context(Logger)` of an earlier version of the language.
//! Callers provide them without naming them, so their types are a part of a contract and their names are none. The grammar is shown
//! an annotation in place of each, so they are read from the file itself.

use tree_sitter::Node;

use super::super::canon::Scribe;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::children::{child_of, children_of};
use super::kotlin::Kind;

/// A value that the callers of a function provide: its name, which may be missing, and its type without blanks and comments.
pub(super) struct Provided {
    name: String,
    typed: String,
}

/// Returns the values that a declaration takes from the contexts of its callers, in order.
pub(super) fn of(walk: &Walk<'_>, node: Node<'_>) -> Vec<Provided> {
    let Some(modifiers) = child_of(walk, node, &[Kind::Modifiers]) else { return Vec::new() };
    let mut found = Vec::new();
    for annotation in children_of(walk, modifiers, Kind::Annotation) {
        let text = walk.text(annotation);
        let inside = text.strip_prefix("context(").and_then(|it| it.strip_suffix(')'));
        found.extend(inside.into_iter().flat_map(|inside| split(&without_comments(inside))));
    }
    found
}

/// Writes the types into a signature; the names are for people.
pub(super) fn write(scribe: &mut Scribe<'_>, all: &[Provided]) {
    for (nth, provided) in all.iter().enumerate() {
        scribe.word(if nth == 0 { "context(" } else { ", " });
        if !provided.name.is_empty() {
            scribe.remark(&format!("{}: ", provided.name));
        }
        scribe.word(&provided.typed);
    }
    scribe.word(if all.is_empty() { "" } else { ") " });
}

/// Makes the names known in the code of a declaration.
pub(super) fn known_within(walk: &mut Walk<'_>, node: Node<'_>) {
    let scope = offset(node.start_byte())..offset(node.end_byte());
    for provided in of(walk, node).into_iter().filter(|it| !matches!(&*it.name, "" | "_")) {
        let path = provided.typed.split('<').next().unwrap_or_default().trim_end_matches('?');
        let is_path =
            !path.is_empty() && path.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '.'));
        let seen = if is_path { walk.of_path(path.to_owned(), node) } else { Seen::Unknown };
        walk.local(&provided.name, scope.clone(), seen, true);
    }
}

fn without_comments(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        plain.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") { "\n" } else { "*/" };
        rest = rest[at + 2..].split_once(end).map_or("", |it| it.1);
        plain.push(' ');
    }
    plain + rest
}

/// Splits what stands between the brackets of a context at its commas.
fn split(inside: &str) -> Vec<Provided> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    let mut before = ' ';
    for (at, it) in inside.char_indices() {
        match it {
            '(' | '<' | '[' => depth += 1,
            // The angle of an arrow is no bracket.
            ')' | ']' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        before = it;
    }
    parts.push(&inside[from..]);
    let provided = |part: &str| {
        let named = part
            .split_once(':')
            .filter(|(name, _)| name.trim().chars().all(|it| it.is_alphanumeric() || it == '_' || it == '`'));
        let (name, typed) = named.unwrap_or(("", part));
        let words: Vec<&str> = typed.split_whitespace().collect();
        Provided { name: name.trim().trim_matches('`').to_owned(), typed: words.join(" ") }
    };
    parts.into_iter().map(provided).filter(|it| !it.typed.is_empty()).collect()
}
