//! Types that the doc comments of JavaScript write: `@param {Store} store`, `@type {Store}`, `@typedef {import("./store")} Store`.
//!
//! The compiler of TypeScript and editors go by them in files of JavaScript, and in no others.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Import, ImportForm, Imported, ImportedName, Language};
use super::ecma::Kind;
use super::ecma_locals::type_key;
use provost_base::limits::SYMBOL_LEN_MAX;

/// The deepest nesting of brackets around a type that is followed.
const NESTED_MAX: usize = 8;
/// The most nodes above an item whose comment may be the item's.
const LEVELS_MAX: usize = 6;
/// Types that have the members of what they are made for.
const HELPERS: [&str; 4] = ["Partial", "Readonly", "Required", "NonNullable"];

/// The types that a doc comment writes.
#[derive(Default)]
pub(super) struct Doc<'a> {
    /// The types of parameters by name: `options.shop` for a property of one.
    params: BTreeMap<&'a str, &'a str>,
    /// The names of the parameters themselves, in order.
    places: Vec<&'a str>,
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
            if !name.contains('.') {
                self.places.push(name);
            }
        }
    }

    /// The value of a parameter, by its name.
    pub(super) fn of_param(&self, walk: &Walk<'_>, name: &str, at: Node<'_>) -> Option<Seen> {
        self.seen(walk, self.params.get(name)?, at)
    }

    /// The value of a parameter that is taken apart: it has a name in the comment alone.
    pub(super) fn of_place(&self, walk: &Walk<'_>, place: u8, at: Node<'_>) -> Option<Seen> {
        self.of_param(walk, self.places.get(usize::from(place))?, at)
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
                let of_caller = walk.facts.locals.seen(&type_key(class), offset(at.start_byte()));
                of_caller.cloned().unwrap_or_else(|| Seen::Of(class.into()))
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
                let between = walk.source.get(at as usize..start)?;
                if !matches!(Kind::of(above.kind), Some(Kind::Export)) && between.contains(&b',') {
                    return None;
                }
                begins = Some(at);
            }
            _ => break,
        }
    }
    begins.map(|at| at as usize)
}

/// The doc comment that ends directly before a place.
fn comment_before(source: &[u8], at: usize) -> Option<&str> {
    let before = source.get(..at)?.trim_ascii_end().strip_suffix(b"*/")?;
    // Where a comment or a pattern ends before one begins, what ends here is a pattern: `/b*/ (y)`.
    let start = before.windows(2).rposition(|it| it == b"/*" || it == b"*/")?;
    let text = before[start..].strip_prefix(b"/**")?;
    std::str::from_utf8(text).ok()
}

/// The tags at the beginning of lines, each with the text up to the next one.
fn tags(comment: &str) -> impl Iterator<Item = (&str, &str)> {
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

/// The text between the brackets at the beginning of a text, and what is behind them.
fn typed(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('{')?;
    let mut open = 0_usize;
    for (at, it) in text.bytes().enumerate() {
        match it {
            b'{' => open += 1,
            b'}' if open == 0 => return Some((text[..at].trim(), &text[at + 1..])),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// `T`, `{Bound} T, U`, `[T=Store]`.
fn templates(rest: &str) -> impl Iterator<Item = &str> {
    let rest = typed(rest).map_or(rest, |(_, rest)| rest);
    let line = rest.lines().next().unwrap_or_default();
    let names = line.split(',').map(|it| it.trim_start_matches([' ', '\t', '[']));
    names.map(|it| &it[..it.find(|it: char| !is_in_name(it)).unwrap_or(it.len())]).filter(|it| !it.is_empty())
}

fn is_in_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '$')
}

fn is_in_path(it: char) -> bool {
    is_in_name(it) || it == '.'
}

/// What a type names.
enum Named<'a> {
    Class(&'a str),
    /// `import("./store")`, and `import("./store").Store` with the name.
    Imported {
        from: &'a str,
        name: Option<&'a str>,
    },
    BuiltIn,
    Unknown,
}

fn named(typed: &str) -> Named<'_> {
    let mut typed = typed.trim();
    for _ in 0..NESTED_MAX {
        typed = typed.trim_start_matches(['?', '!']).trim_end_matches(['=', '?', '!']).trim();
        let Some(only) = only_one(typed) else { return Named::Unknown };
        let inner = only.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        match inner.or_else(|| argument_of_helper(only)) {
            Some(inner) => typed = inner.trim(),
            None if only.len() == typed.len() => return bare(only),
            None => typed = only,
        }
    }
    Named::Unknown
}

/// The type that is none of `null` and `undefined`, if it is the only one of several; none if they do not end where they should.
fn only_one(typed: &str) -> Option<&str> {
    let (mut open, mut from, mut found) = (0_usize, 0, None);
    let ends = typed.char_indices().chain([(typed.len(), '|')]);
    for (at, it) in ends {
        match it {
            '(' | '<' | '{' | '[' => open += 1,
            '>' if typed[..at].ends_with('=') => {}
            ')' | '>' | '}' | ']' => open = open.checked_sub(1)?,
            '|' if open == 0 => {
                let part = typed[from..at].trim();
                from = (at + 1).min(typed.len());
                if !matches!(part, "null" | "undefined") && found.replace(part).is_some() {
                    return None;
                }
            }
            _ => {}
        }
    }
    found.filter(|_| open == 0)
}

/// `Store` of `Readonly<Store>`, and of others that have the members of what they are made for.
fn argument_of_helper(typed: &str) -> Option<&str> {
    let (helper, argument) = typed.strip_suffix('>')?.split_once('<')?;
    HELPERS.contains(&helper.trim_end_matches('.')).then_some(argument)
}

fn bare(typed: &str) -> Named<'_> {
    if let Some(rest) = typed.strip_prefix("import(") {
        return imported_by(rest).unwrap_or(Named::Unknown);
    }
    let end = typed.find(|it: char| !is_in_path(it)).unwrap_or(typed.len());
    let (path, rest) = (typed[..end].trim_end_matches('.'), &typed[end..]);
    match path {
        _ if typed.ends_with("[]") => Named::BuiltIn,
        "string" | "number" | "boolean" | "bigint" | "symbol" | "void" | "never" | "Array" => Named::BuiltIn,
        "any" | "unknown" | "object" | "Object" | "function" | "Function" | "typeof" | "keyof" | "" => {
            Named::Unknown
        }
        _ if path.starts_with(|it: char| it.is_numeric() || it == '.') || path.len() > SYMBOL_LEN_MAX => {
            Named::Unknown
        }
        _ if rest.is_empty() || rest.starts_with('<') && rest.ends_with('>') => Named::Class(path),
        _ => Named::Unknown,
    }
}

/// `"./store").Store<T>`: the module, and the name behind it.
fn imported_by(rest: &str) -> Option<Named<'_>> {
    let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let (from, rest) = rest[1..].split_once(quote)?;
    let rest = rest.trim_start().strip_prefix(')')?;
    let end = rest.find(|it: char| !is_in_path(it)).unwrap_or(rest.len());
    let name = rest[..end].strip_prefix('.').filter(|it| !it.is_empty() && !it.contains('.'));
    let is_whole = rest[..end].is_empty();
    let is_known =
        from.len() + rest.len() < SYMBOL_LEN_MAX && !from.is_empty() && (is_whole || name.is_some());
    is_known.then_some(Named::Imported { from, name })
}

/// The name that a file has for a type that it imports where it uses it: none that a program can write.
fn name_of(from: &str, name: Option<&str>) -> Box<str> {
    let from = from.replace('.', "\u{b7}");
    match name {
        Some(name) => format!("import {from} {name}").into(),
        None => format!("import {from}").into(),
    }
}

fn imported(name: Option<&str>) -> Imported {
    name.map_or(Imported::Module, |name| Imported::Name(name.into()))
}

/// Records the types that a comment imports: `@typedef {import("./store").Store} Store`, `@import { Store as S } from "./store"`,
/// `@param {import("./store").Store} store`.
pub(super) fn imports(walk: &mut Walk<'_>, comment: Node<'_>) {
    let text = walk.source.get(comment.byte_range()).unwrap_or_default();
    let Some(text) = text.strip_prefix(b"/**").and_then(|it| it.strip_suffix(b"*/")) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    if walk.language != Language::JavaScript || !text.contains("import") {
        return;
    }
    let at = comment.start_byte();
    for (tag, rest) in tags(text) {
        if tag == "import" {
            imported_names(walk, at, rest);
            continue;
        }
        if let ("typedef", Some((typed, rest))) = (tag, typed(rest)) {
            let local = rest.trim_start();
            let local = &local[..local.find(|it: char| !is_in_name(it)).unwrap_or(local.len())];
            if let (Named::Imported { from, name }, false) = (named(typed), local.is_empty()) {
                record(walk, at, from, imported(name), local);
                continue;
            }
        }
        for (place, word) in rest.match_indices("import(") {
            if let Some(Named::Imported { from, name }) = imported_by(&rest[place + word.len()..]) {
                record(walk, at, from, imported(name), &name_of(from, name));
            }
        }
    }
}

/// `{ Store, Shop as S } from "./store"`, `* as store from "./store"`, `Store from "./store"`.
fn imported_names(walk: &mut Walk<'_>, at: usize, rest: &str) {
    let Some((names, from)) = rest.split_once(" from ") else { return };
    let from = from.trim_start();
    let Some(quote) = from.chars().next().filter(|it| matches!(it, '"' | '\'')) else { return };
    let Some((from, _)) = from[1..].split_once(quote) else { return };
    let names = names.trim();
    if let Some(names) = names.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        for name in names.split(',').map(|it| it.trim_matches([' ', '\t', '\r', '\n', '*'])) {
            let (name, local) = name.split_once(" as ").map_or((name, name), |(a, b)| (a.trim(), b.trim()));
            if !name.is_empty() && name.chars().chain(local.chars()).all(is_in_name) {
                record(walk, at, from, Imported::Name(name.into()), local);
            }
        }
        return;
    }
    let (what, local) = match names.strip_prefix('*').map(|it| it.trim().strip_prefix("as ")) {
        Some(local) => (Imported::Module, local.unwrap_or_default().trim()),
        None => (Imported::Name("default".into()), names),
    };
    if !local.is_empty() && local.chars().all(is_in_name) {
        record(walk, at, from, what, local);
    }
}

/// Records a type that is imported, for the whole file.
fn record(walk: &mut Walk<'_>, at: usize, from: &str, imported: Imported, local: &str) {
    if walk.notes.taken.contains_key(local) {
        return;
    }
    let names = vec![ImportedName { imported, local: Some(local.into()) }];
    let (from, form) = (from.into(), ImportForm::Require);
    let import = Import { from, form, names, types_only: true, within: None, either: false, at: offset(at) };
    if let Some(number) = walk.import(import) {
        walk.facts.imports[number as usize].within = None;
        walk.notes.taken.insert(local.into(), Box::default());
    }
}
