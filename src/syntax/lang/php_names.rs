//! Names in PHP, whose meaning follows from a file's namespace and its `use` alone, and is resolved here. A name from elsewhere is
//! written in full, with a backslash before it; a name of the own namespace is written as it is.

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::{Found, Walk};
use super::super::{Import, ImportForm, Imported, ImportedName, Kind as Sort};
use super::children::{child_of, children_of};
use super::php::{Field, Kind};

/// `namespace A\B;`, whose names are those of the rest of the file, or `namespace A\B { … }`.
pub(super) fn namespace(walk: &mut Walk<'_>, node: Node<'_>) {
    let name = walk.field(node, Field::Name as u8).map_or_else(String::new, |name| plain(&walk.text(name)));
    walk.notes.taken.clear();
    own_namespace(walk, node, &name);
    walk.notes.namespace = name.replace('\\', ".").into();
    if walk.field(node, Field::Body as u8).is_some() && !name.is_empty() {
        let name = name.replace('\\', ".");
        let at = walk.symbol(Found::new(&name, Sort::Namespace, node.byte_range()));
        walk.open(at);
    }
}

/// Without blanks and comments, which may be anywhere in it.
fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// What other files define in the same namespace is known without an import.
fn own_namespace(walk: &mut Walk<'_>, node: Node<'_>, name: &str) {
    let all = ImportedName { imported: Imported::Everything, local: None };
    add(walk, node, &format!("\\{name}"), vec![all]);
}

fn add(walk: &mut Walk<'_>, node: Node<'_>, from: &str, names: Vec<ImportedName>) {
    let (form, from, at) = (ImportForm::Static, from.into(), offset(node.start_byte()));
    walk.import(Import { from, form, names, types_only: false, within: None, either: false, at });
}

/// `use A\B, C as D;`, `use A\{B, C};`, `use function A\f;`.
pub(super) fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    let group = walk.field(node, Field::Body as u8).filter(|it| Kind::at(walk, *it) == Some(Kind::UseGroup));
    let before = child_of(walk, node, &[Kind::NamespaceName]).map(|it| plain(&walk.text(it)));
    let of_all = walk.field(node, Field::Type as u8).map(|it| walk.text(it).into_owned());
    for clause in children_of(walk, group.unwrap_or(node), Kind::UseClause) {
        let mut cursor = clause.walk();
        let alias = walk.field(clause, Field::Alias as u8);
        let is_name = |it: &Node<'_>| {
            matches!(Kind::at(walk, *it), Some(Kind::Name | Kind::QualifiedName | Kind::NamespaceName))
                && Some(*it) != alias
        };
        let Some(name) = clause.named_children(&mut cursor).find(is_name) else { continue };
        let name = plain(&walk.text(name));
        let full = match &before {
            Some(before) => format!("{before}\\{name}"),
            None => name,
        };
        let full = full.trim_start_matches('\\').to_owned();
        let last = full.rsplit('\\').next().unwrap_or(&full).to_owned();
        let local = alias.map_or_else(|| last.clone(), |alias| walk.text(alias).into_owned());
        let kind =
            walk.field(clause, Field::Type as u8).map(|it| walk.text(it).into_owned()).or(of_all.clone());
        let key = key_of(kind.as_deref().unwrap_or_default(), &local);
        walk.notes.taken.insert(key, full.as_str().into());
        let taken = ImportedName { imported: Imported::Name(last.into()), local: Some(local.into()) };
        add(walk, clause, &full, vec![taken]);
    }
}

/// Functions and constants may have the names of classes.
fn key_of(kind: &str, local: &str) -> Box<str> {
    if kind.is_empty() { local.into() } else { format!("{kind} {local}").into() }
}

/// What a name means: one of the own namespace as it is, any other in full. A function or a constant that is not of the own
/// namespace may be one of none.
fn meant(walk: &Walk<'_>, node: Node<'_>, kind: &str) -> Option<String> {
    let text = plain(&walk.text(node));
    let own = walk.notes.namespace.replace('.', "\\");
    let full = match Kind::at(walk, node)? {
        Kind::Name => match walk.notes.taken.get(&key_of(kind, &text)) {
            Some(full) => full.to_string(),
            None => return Some(text),
        },
        Kind::QualifiedName => match text.strip_prefix('\\') {
            Some(full) => full.to_owned(),
            None => {
                let (first, rest) = text.split_once('\\')?;
                match walk.notes.taken.get(first) {
                    Some(full) => format!("{full}\\{rest}"),
                    None if own.is_empty() => text,
                    None => format!("{own}\\{text}"),
                }
            }
        },
        Kind::RelativeName => {
            let rest = text.get("namespace\\".len()..)?;
            if own.is_empty() { rest.to_owned() } else { format!("{own}\\{rest}") }
        }
        _ => return None,
    };
    // A name of the own namespace may be in this file.
    match full.rsplit_once('\\') {
        Some((before, name)) if before == own => Some(name.to_owned()),
        None if own.is_empty() => Some(full),
        _ => Some(format!("\\{full}")),
    }
}

/// The class that a name means; none of `self` and the like.
pub(super) fn class_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    meant(walk, node, "").filter(|it| !matches!(it.as_str(), "self" | "static" | "parent"))
}

/// The function that a name means.
pub(super) fn function_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let name = meant(walk, node, "function")?;
    // Words of the language, which look like functions.
    if matches!(name.as_str(), "isset" | "empty" | "unset" | "exit" | "die" | "eval" | "list" | "array") {
        return None;
    }
    // One of no namespace is looked for after those of the own one.
    Some(name.strip_prefix('\\').filter(|it| !it.contains('\\')).map(ToOwned::to_owned).unwrap_or(name))
}

/// `require __DIR__ . "/a.php"`: a path that is written out, from the folder of the file or from some folder above.
pub(super) fn loaded(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(mut value) = node.named_child(0) else { return };
    while Kind::at(walk, value) == Some(Kind::Parenthesized)
        && let Some(inner) = value.named_child(0)
    {
        value = inner;
    }
    let from = match Kind::at(walk, value) {
        Some(Kind::String | Kind::EncapsedString) => literal(walk, value),
        Some(Kind::Binary) => {
            let [left, right] = [Field::Left, Field::Right].map(|field| walk.field(value, field as u8));
            let rest = right.and_then(|right| literal(walk, right));
            let before = left.map(|left| plain(&walk.text(left)).to_ascii_lowercase());
            let dots = match before.as_deref() {
                Some("__dir__" | "dirname(__file__)") => ".",
                Some("dirname(__dir__)" | "dirname(dirname(__file__))") => "..",
                // A constant, which most likely is a folder above.
                Some(_) => "",
                None => return,
            };
            rest.map(|rest| match dots {
                "" => rest.trim_start_matches('/').to_owned(),
                dots => format!("{dots}/{}", rest.trim_start_matches('/')),
            })
        }
        _ => None,
    };
    if let Some(from) = from.filter(|it| !it.is_empty()) {
        let (form, at) = (ImportForm::Require, offset(node.start_byte()));
        let (names, within) = (Vec::new(), None);
        walk.import(Import { from: from.into(), form, names, types_only: false, within, either: false, at });
    }
}

/// A text without anything put into it.
pub(super) fn literal(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    if !matches!(Kind::at(walk, node)?, Kind::String | Kind::EncapsedString) || node.named_child_count() != 1
    {
        return None;
    }
    let content = node.named_child(0).filter(|it| Kind::at(walk, *it) == Some(Kind::StringContent))?;
    Some(walk.text(content).into_owned())
}
