//! Macros of Rust: to the grammar, the text between their brackets is no tree. Parts of it that look like calls and items
//! count as such.

use tree_sitter::Node;

use super::super::notes::ToCome;
use super::super::walk::{Found, Walk};
use super::super::{Form, Kind as Sort, Receiver};
use super::rust::{Field, Kind, along};
use super::rust_types as types;

/// Macros of the language and its library.
const BUILT_IN: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "column",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "env",
    "eprint",
    "eprintln",
    "file",
    "format",
    "format_args",
    "include",
    "include_bytes",
    "include_str",
    "line",
    "matches",
    "module_path",
    "option_env",
    "panic",
    "print",
    "println",
    "stringify",
    "thread_local",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

/// The most names in a chain that are followed back.
const CHAIN_MAX: usize = 16;

pub(super) fn invocation(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let Some(path) = walk.field(node, Field::Macro as u8).and_then(|it| types::path_of(walk, it)) else {
        return;
    };
    if !BUILT_IN.contains(&path.as_str()) {
        along(walk, node, &path);
    }
}

/// Finds calls, and outside of functions items, between the brackets of a macro.
pub(super) fn tokens(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(symbol) = walk.notes.bodies.remove(&node.id()) {
        walk.open(Some(symbol));
    }
    let in_items = walk.scope.functions == 0;
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.children(&mut cursor).collect();
    for (at, it) in all.iter().enumerate() {
        match Kind::at(walk, *it) {
            Some(Kind::TokenTree) if opens(walk, *it, b'(') => call(walk, &all[..at]),
            Some(Kind::Identifier) if in_items && at > 0 => item(walk, &all, at),
            _ => {}
        }
    }
}

fn opens(walk: &Walk<'_>, tree: Node<'_>, with: u8) -> bool {
    walk.source.get(tree.start_byte()) == Some(&with)
}

fn is_name(walk: &Walk<'_>, node: Node<'_>) -> bool {
    matches!(Kind::at(walk, node), Some(Kind::Identifier | Kind::SelfName | Kind::Super | Kind::Crate))
}

/// `f(…)`, `a::f(…)`, `a.f(…)`, by the tokens before the bracket.
fn call(walk: &mut Walk<'_>, before: &[Node<'_>]) {
    let Some((name, rest)) = before.split_last() else { return };
    if name.kind() == "!" {
        let named = rest.last().filter(|it| Kind::at(walk, **it) == Some(Kind::Identifier));
        let text = named.map(|it| walk.text(*it).into_owned());
        if let Some((text, at)) = text.zip(named).filter(|(text, _)| !BUILT_IN.contains(&text.as_str())) {
            walk.call(*at, &text, Receiver::None, Form::Plain);
        }
        return;
    }
    if Kind::at(walk, *name) != Some(Kind::Identifier) {
        return;
    }
    // The cases of an enumeration are as often compared with there as they are made.
    if walk.text(*name).starts_with(char::is_uppercase) {
        return;
    }
    let mark = rest.last().map_or("", |it| it.kind());
    if matches!(mark, "fn" | "struct" | "enum" | "union" | "macro_rules") {
        return;
    }
    if mark == "." {
        let receiver = chain(walk, rest, ".").map_or(Receiver::Other, |names| Receiver::Path(names.into()));
        let text = walk.text(*name).into_owned();
        walk.call(*name, &text, receiver, Form::Plain);
    } else if mark == "::" {
        let Some(names) = chain(walk, rest, "::") else { return };
        let first = names.split('.').next().unwrap_or_default();
        let names = match (first, types::self_type(walk)) {
            ("Self", Some(of)) => names.replacen("Self", &of, 1),
            _ => names,
        };
        let path = format!("{names}.{}", walk.text(*name));
        along(walk, *name, &path);
    } else {
        let text = walk.text(*name).into_owned();
        walk.call(*name, &text, Receiver::None, Form::Plain);
    }
}

/// The names before a mark, with dots between them, if they are nothing but names.
fn chain(walk: &Walk<'_>, before: &[Node<'_>], mark: &str) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = before;
    for _ in 0..CHAIN_MAX {
        let (last, behind) = rest.split_last()?;
        if last.kind() != mark {
            // Another mark before the names makes them a part of something else.
            let joins = matches!(last.kind(), "." | "::" | "?");
            return if joins || names.is_empty() { None } else { Some(reversed(names)) };
        }
        let (name, behind) = behind.split_last()?;
        if !is_name(walk, *name) {
            return None;
        }
        names.push(walk.text(*name).into_owned());
        if behind.is_empty() {
            return Some(reversed(names));
        }
        rest = behind;
    }
    None
}

fn reversed(mut names: Vec<String>) -> String {
    names.reverse();
    names.join(".")
}

/// `fn f`, `struct S` and the like: it becomes a symbol when the walk comes to its name.
fn item(walk: &mut Walk<'_>, all: &[Node<'_>], at: usize) {
    // `static ref NAME: …` of `lazy_static!`.
    let is_reference = all[at - 1].kind() == "identifier" && &*walk.text(all[at - 1]) == "ref";
    let word = if is_reference && at > 1 { at - 2 } else { at - 1 };
    let kind = match all[word].kind() {
        "static" if &*walk.text(all[at]) == "ref" => return,
        "fn" => Sort::Function,
        "struct" | "union" => Sort::Class,
        "enum" => Sort::Enum,
        "trait" => Sort::Interface,
        "mod" => Sort::Namespace,
        "const" | "static" => Sort::Variable,
        "type" => Sort::TypeAlias,
        _ => return,
    };
    let mut first = word;
    while first > 0 && is_before_item(walk, all, first - 1) {
        first -= 1;
    }
    let behind = all[at + 1..].iter();
    let end = behind.clone().position(|it| it.kind() == ";" || is_body(walk, *it));
    let Some(last) = end.map(|end| all[at + 1 + end]) else { return };
    let body = is_body(walk, last).then(|| last.id());
    let to_come = ToCome { kind, start: all[first].start_byte(), end: last.end_byte(), body };
    walk.notes.to_come.insert(all[at].id(), to_come);
}

fn is_body(walk: &Walk<'_>, node: Node<'_>) -> bool {
    Kind::at(walk, node) == Some(Kind::TokenTree) && opens(walk, node, b'{')
}

/// Whether a token belongs to the item behind it: `pub`, `(crate)`, `async`, `unsafe`, `#[…]`, a comment.
fn is_before_item(walk: &Walk<'_>, all: &[Node<'_>], at: usize) -> bool {
    let token = all[at];
    let before = at.checked_sub(1).map_or("", |before| all[before].kind());
    match token.kind() {
        "pub" | "async" | "unsafe" | "const" | "extern" | "#" => true,
        // A comment behind code belongs to that code.
        "line_comment" | "block_comment" => {
            let before = walk.source.get(..token.start_byte()).unwrap_or_default();
            // Only the blanks before it are read, so that a long line costs no more than others.
            let behind = before.iter().rev().find(|it| **it == b'\n' || !it.is_ascii_whitespace());
            behind.is_none_or(|it| *it == b'\n')
        }
        "token_tree" => {
            (opens(walk, token, b'[') && before == "#") || (opens(walk, token, b'(') && before == "pub")
        }
        _ => false,
    }
}

/// A name within a macro that an item begins with.
pub(super) fn named(walk: &mut Walk<'_>, node: Node<'_>) {
    if walk.notes.to_come.is_empty() {
        return;
    }
    let Some(ToCome { kind, start, end, body }) = walk.notes.to_come.remove(&node.id()) else { return };
    let name = walk.text(node).into_owned();
    walk.attributes_end(start);
    let is_kept = !matches!(kind, Sort::Variable) || walk.scope.functions == 0;
    if !is_kept || name == "_" {
        return;
    }
    let symbol = walk.symbol(Found::new(&name, kind, start..end));
    if let Some((symbol, body)) = symbol.zip(body) {
        walk.notes.bodies.insert(body, symbol);
    }
}
