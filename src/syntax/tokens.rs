//! Tokens: the comments, texts, numbers, keywords, types and names in a text, for people who read it.
//!
//! The text need not be complete: a part of a file is read as far as the grammar understands it, and the rest has no tokens. The
//! kinds are common to all grammars, by the names of their leaves, so that no query has to be compiled for a language.

use std::ops::Range;

use tree_sitter::{Node, Tree, TreeCursor};

use super::reading::{Limit, parse};
use super::{Language, ParseDeadline};
use provost_base::limits::{COLOURED_BYTES_MAX, COLOURED_TOKENS_MAX};

/// The kind of a part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A comment.
    Comment,
    /// A text with its quotation marks, or a pattern.
    Text,
    /// A number.
    Number,
    /// A keyword of the language.
    Word,
    /// The name of a type.
    Type,
    /// The name of a function or class where it is defined, or of a function where it is called.
    Name,
}

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Its bytes.
    pub range: Range<usize>,
    /// Its kind.
    pub kind: TokenKind,
}

/// The tokens of a text, in order, none within another. None at all of a text beyond [`COLOURED_BYTES_MAX`], or where time is up.
pub fn tokens(language: Language, text: &str, patience: &ParseDeadline<'_>) -> Vec<Token> {
    if text.len() > COLOURED_BYTES_MAX {
        return Vec::new();
    }
    let limit = Limit::new(patience);
    match language.with_parser(|parser| parse(parser, text.as_bytes(), &limit)) {
        Ok(tree) => walk(&tree, text),
        Err(_) => Vec::new(),
    }
}

fn walk(tree: &Tree, text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut cursor = tree.walk();
    // The kinds of the nodes above: to ask a node for its parent walks down from the top.
    let mut above: Vec<&str> = Vec::new();
    loop {
        let node = cursor.node();
        let kind = kind_of(&cursor, node, above.last().copied().unwrap_or_default(), text);
        let range = node.byte_range();
        match (kind, found.last_mut()) {
            (Some(kind), Some(last)) if last.kind == kind && last.range.end == range.start => {
                last.range.end = range.end;
            }
            (Some(kind), _) if !range.is_empty() => found.push(Token { range, kind }),
            _ => {}
        }
        if found.len() >= COLOURED_TOKENS_MAX {
            return found;
        }
        if kind.is_none() && cursor.goto_first_child() {
            above.push(node.kind());
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
            above.pop();
        }
    }
}

/// What a node is, with all that is in it; `None` where its parts have to be looked at, or it is nothing of these.
fn kind_of(cursor: &TreeCursor<'_>, node: Node<'_>, parent: &str, text: &str) -> Option<TokenKind> {
    let kind = node.kind();
    if kind.contains("comment") || kind == "hash_bang_line" {
        return Some(TokenKind::Comment);
    }
    // In these, parts have names of their own: a type `number` has a leaf of that kind.
    match kind {
        "regex" | "string_content" | "char_literal" | "rune_literal" => return Some(TokenKind::Text),
        "interpreted_string_literal_content" | "raw_string_literal_content" => return Some(TokenKind::Text),
        "type_identifier" | "predefined_type" | "primitive_type" => return Some(TokenKind::Type),
        _ => {}
    }
    if node.child_count() > 0 {
        return None;
    }
    match kind {
        "string_start" | "string_end" | "string_fragment" | "escape_sequence" => Some(TokenKind::Text),
        "`" | "\"" | "'" => Some(TokenKind::Text),
        "number" | "integer" | "float" => Some(TokenKind::Number),
        "integer_literal" | "float_literal" | "int_literal" | "imaginary_literal" => Some(TokenKind::Number),
        "this" | "self" | "crate" | "nil" | "super" | "true" | "false" | "null" | "undefined" | "none" => {
            Some(TokenKind::Word)
        }
        _ if node.is_named() => is_a_name(cursor, parent).then_some(TokenKind::Name),
        _ => {
            let written = text.get(node.byte_range()).unwrap_or_default();
            let is_word = !written.is_empty() && written.bytes().all(|it| it.is_ascii_alphabetic());
            is_word.then_some(TokenKind::Word)
        }
    }
}

/// Whether a name is the one of a function or class that is defined, or of a function that is called.
fn is_a_name(cursor: &TreeCursor<'_>, parent: &str) -> bool {
    match cursor.field_name() {
        Some("name") => ["function", "method", "class"].iter().any(|it| parent.contains(it)),
        Some("function") => matches!(parent, "call" | "call_expression"),
        _ => false,
    }
}
