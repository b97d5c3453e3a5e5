//! Types that the doc comments of JavaScript write: `@param {Store} store`, `@type {Store}`, `@typedef {import("./store")} Store`.
//!
//! The compiler of TypeScript and editors go by them in files of JavaScript, and in no others.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::super::Language;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::ecma::Kind;
use super::ecma_doc_imports::{self as imports, name_of};
use super::ecma_doc_types::{Named, is_in_path, named, templates, typed};
use super::ecma_locals::type_key;

/// The most nodes above an item whose comment may be the item's.
const LEVELS_MAX: usize = 6;
/// The most bytes of words and names between the beginning of a declaration and a function in it.
const WORDS_MAX: usize = 1_024;

/// The types that a doc comment writes.
#[derive(Default)]
pub(super) struct Doc<'a> {
    /// The types of parameters by name.
    params: BTreeMap<&'a str, &'a str>,
    /// The type behind `@type`.
    of_value: Option<&'a str>,
    /// The type behind `@returns`.
    of_result: Option<&'a str>,
    /// The parameters of types that it declares: their names stand for no class.
    templates: BTreeSet<&'a str>,
}

impl<'a> Doc<'a> {
    /// Reads the comment directly before a node, or before the statement that begins with it.
    pub(super) fn before(walk: &Walk<'a>, node: Node<'_>) -> Option<Self> {
        if walk.language != Language::JavaScript {
            return None;
        }
        let start = node.start_byte();
        comment_before(walk.source, start)
            .or_else(|| comment_before(walk.source, statement_around(walk, start)?))
            .map(Self::read)
    }

    fn read(comment: &'a str) -> Self {
        let mut doc = Self::default();
        for (tag, rest) in tags(comment) {
            match tag {
                // What follows belongs to another thing than the code below.
                "callback" | "typedef" | "overload" => break,
                "param" | "arg" | "argument" => doc.param(rest),
                "type" => doc.of_value = typed(rest).map(|(it, _)| it),
                "return" | "returns" => doc.of_result = typed(rest).map(|(it, _)| it),
                "template" => doc.templates.extend(templates(rest)),
                _ => {}
            }
        }
        doc
    }

    /// `{Store} store`, `{Store} [store]`, `{Store} [store=null]`.
    fn param(&mut self, rest: &'a str) {
        let Some((typed, rest)) = typed(rest) else { return };
        let rest = rest.trim_start_matches([' ', '\t', '[']);
        let name = &rest[..rest.find(|it: char| !is_in_path(it)).unwrap_or(rest.len())];
        if !name.is_empty() {
            self.params.entry(name).or_insert(typed);
        }
    }

    /// The value of a parameter, by its name.
    pub(super) fn of_param(&self, walk: &Walk<'_>, name: &str, at: Node<'_>) -> Option<Seen> {
        self.seen(walk, self.params.get(name)?, at)
    }

    /// The value that follows the comment.
    pub(super) fn of_value(&self, walk: &Walk<'_>, at: Node<'_>) -> Option<Seen> {
        self.seen(walk, self.of_value?, at)
    }

    /// What the property gives back whose function follows the comment.
    pub(super) fn of_result(&self, walk: &Walk<'_>, at: Node<'_>) -> Option<Seen> {
        self.seen(walk, self.of_result.or(self.of_value)?, at)
    }

    /// The names of the parameters of types.
    pub(super) fn templates(&self) -> &BTreeSet<&'a str> {
        &self.templates
    }

    /// A value of a type; none if the type says nothing, so that the code may say it.
    fn seen(&self, walk: &Walk<'_>, typed: &str, at: Node<'_>) -> Option<Seen> {
        Some(match named(typed) {
            Named::Class(class) if self.templates.contains(class) => Seen::Several,
            Named::Class(class) => {
                let of_caller = walk.facts.locals.seen(&type_key(class), offset(at.start_byte())).cloned();
                match of_caller {
                    Some(of_caller) => of_caller,
                    None => imports::of_named(walk, class).unwrap_or_else(|| Some(Seen::Of(class.into())))?,
                }
            }
            Named::Imported { from, name } => Seen::Of(name_of(from, name)),
            Named::BuiltIn => Seen::BuiltIn,
            Named::Unknown => return None,
        })
    }
}

/// The value within brackets, if the comment before them writes its type: `/** @type {Store} */ (value)`.
pub(super) fn cast(walk: &Walk<'_>, brackets: Node<'_>) -> Option<Seen> {
    if walk.language != Language::JavaScript {
        return None;
    }
    let doc = Doc::read(comment_before(walk.source, brackets.start_byte())?);
    doc.of_value(walk, brackets)
}

/// Where the statement, the field or the member begins whose value or name begins at a place, if nothing but its words stands before it.
fn statement_around(walk: &Walk<'_>, start: usize) -> Option<usize> {
    let mut begins = None;
    for above in walk.above.iter().rev().take(LEVELS_MAX) {
        match Kind::of(above.kind) {
            Some(
                Kind::Declarator | Kind::Pair | Kind::FieldDefinition | Kind::Assignment | Kind::Statement,
            ) => begins = Some(above.range().start),
            Some(Kind::Export | Kind::Lexical | Kind::Variable) => {
                let at = above.range().start;
                // A comment before several variables is the first one's.
                let between = walk.source.get(at as usize..start).filter(|it| it.len() <= WORDS_MAX)?;
                if between.contains(&b',') {
                    return None;
                }
                begins = Some(at);
            }
            _ => break,
        }
    }
    begins.map(|at| at as usize)
}

/// The doc comment that ends directly before a place. One that stands behind code, at the end of a line, belongs to that code.
fn comment_before(source: &[u8], at: usize) -> Option<&str> {
    let before = source.get(..at)?;
    let ends = before.trim_ascii_end().len();
    let text = before[..ends].strip_suffix(b"*/")?;
    // If the search meets `*/` before `/*`, the `*/` here ends a regular expression.
    let begins = text.windows(2).rposition(|it| it == b"/*" || it == b"*/")?;
    let comment = text[begins..].strip_prefix(b"/**")?;
    let code = before[..begins].iter().rfind(|it| !matches!(it, b' ' | b'\t' | b'\r'));
    if code.is_some_and(|it| *it != b'\n') && before[ends..].contains(&b'\n') {
        return None;
    }
    std::str::from_utf8(comment).ok()
}

/// The tags at the beginning of lines, each with the text up to the next one.
pub(super) fn tags(comment: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut at = 0;
    let mut places = comment.split_inclusive('\n').filter_map(move |line| {
        let rest = line.trim_start_matches(|it: char| it.is_whitespace() || it == '*');
        let place = at + line.len() - rest.len();
        at += line.len();
        rest.starts_with('@').then_some(place)
    });
    let mut next = places.next();
    std::iter::from_fn(move || {
        let begins = next? + 1;
        next = places.next();
        let rest = &comment[begins..next.unwrap_or(comment.len())];
        Some(rest.split_at(rest.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(rest.len())))
    })
}
