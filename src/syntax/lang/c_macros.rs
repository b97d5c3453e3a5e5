//! Macros of C: constants, functions, and those that define functions. To the grammar, a macro's replacement is a text; a part
//! of it that looks like a call counts as one.

use tree_sitter::Node;

use super::super::walk::{Found, Walk};
use super::super::{Form, Kind as Sort, Receiver};
use super::c::{start_of, whole};
use super::c_grammar::{Field, Kind};

/// Words before a bracket that form no call.
const WORDS: &[&str] = &[
    "if",
    "while",
    "for",
    "switch",
    "return",
    "sizeof",
    "defined",
    "catch",
    "alignof",
    "decltype",
    "typeof",
    "__attribute__",
    "static_cast",
    "reinterpret_cast",
    "const_cast",
    "dynamic_cast",
    "__typeof__",
    "__declspec",
    "noexcept",
    "alignas",
    "_Pragma",
];

/// `#define`.
pub(super) fn definition(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let start = start_of(walk, node);
    walk.attributes_end(start);
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let text = walk.text(name).into_owned();
    let value = walk.field(node, Field::Value as u8);
    // With which a header says that it was taken in.
    let is_guard = value.is_none()
        && kind == Kind::Define
        && Kind::of(walk.kind_above(0)) == Some(Kind::IfDef)
        && node
            .parent()
            .and_then(|it| walk.field(it, Field::Name as u8))
            .is_some_and(|it| walk.text(it) == text);
    if is_guard {
        return;
    }
    let range = whole(walk, node);
    let Some(parameters) = walk.field(node, Field::Parameters as u8) else {
        walk.symbol(Found::new(&text, Sort::Variable, range));
        return;
    };
    let mut cursor = parameters.walk();
    let own: Vec<String> =
        parameters.named_children(&mut cursor).map(|it| walk.text(it).into_owned()).collect();
    let signature = walk.sign(parameters.byte_range().len(), |scribe| {
        scribe.node(parameters);
    });
    let at = walk.symbol(Found { signature, ..Found::new(&text, Sort::Function, range) });
    walk.open(at);
    if let Some(value) = value {
        calls(walk, value, &own);
    }
}

/// What looks like a call in the text of a macro.
fn calls(walk: &mut Walk<'_>, value: Node<'_>, own: &[String]) {
    let text = walk.text(value).into_owned();
    let bytes = text.as_bytes();
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'"' || bytes[at] == b'\'' {
            let quote = bytes[at];
            at += 1;
            while at < bytes.len() && bytes[at] != quote {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
            continue;
        }
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let from = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let (Some(word), Some(before), Some(behind)) = (text.get(from..at), text.get(..from), text.get(at..))
        else {
            return;
        };
        let is_called = behind.trim_start_matches([' ', '\t']).starts_with('(');
        let before = before.trim_end();
        let is_part = before.ends_with("##") || behind.trim_start().starts_with("##");
        let is_name = word.starts_with(|it: char| it.is_alphabetic() || it == '_');
        if !is_called || is_part || !is_name || WORDS.contains(&word) || own.iter().any(|it| it == word) {
            continue;
        }
        let is_member = before.ends_with('.') || before.ends_with("->") || before.ends_with("::");
        let receiver = if is_member { Receiver::Other } else { Receiver::None };
        walk.call(value, word, receiver, Form::Plain);
    }
}

/// The path and the name of a function that a macro defines: `Suite.Name` of `TEST(Suite, Name) { … }`, `open` of
/// `SYSCALL_DEFINE3(open, …) { … }`, `adds two` of `TEST_CASE("adds two") { … }`.
pub(super) fn defined_by(walk: &Walk<'_>, node: Node<'_>) -> Option<(String, String)> {
    let end = walk.field(node, Field::Body as u8)?.start_byte();
    let text = String::from_utf8_lossy(walk.source.get(node.start_byte()..end)?).into_owned();
    let (name, rest) = text.split_once('(')?;
    let name = name.trim();
    if !is_macro_name(name) || walk.owner_kind() == Some(Sort::Class) {
        return None;
    }
    // A comment may stand before the body.
    let mut closing = rest.char_indices().scan(1_usize, |depth, (at, it)| match it {
        '(' => {
            *depth += 1;
            Some((at, *depth))
        }
        ')' => {
            *depth = depth.checked_sub(1)?;
            Some((at, *depth))
        }
        _ => Some((at, *depth)),
    });
    let inside = rest.get(..closing.find(|(_, depth)| *depth == 0)?.0)?;
    let owner = walk.scope.owner.map(|owner| format!("{}.", walk.facts.symbols[owner as usize].path));
    let before = owner.unwrap_or_default();
    if let Some(text) = inside.trim_start().strip_prefix('"') {
        // In a path, a dot tells one name from the next.
        let name = text.split_once('"')?.0.replace('.', "_");
        return Some((format!("{before}{name}"), name));
    }
    let mut arguments = inside.split(',').map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_name =
        |it: &String| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let first = arguments.next().filter(is_name)?;
    let second = arguments.next().filter(is_name).filter(|_| name.contains("TEST"));
    Some(match second {
        Some(second) => (format!("{before}{first}.{second}"), second),
        None => (format!("{before}{first}"), first),
    })
}

/// Whether a word is written as macros are.
pub(super) fn is_macro_name(word: &str) -> bool {
    word.len() > 1
        && word.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_')
        && word.bytes().any(|it| it.is_ascii_uppercase())
}
