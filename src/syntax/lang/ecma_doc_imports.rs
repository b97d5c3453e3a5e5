//! Types that the doc comments of JavaScript name, and those that they import: `@typedef {import("./store").Store} Store`.
//!
//! A type and a value may have the same name and be different things. So the names of these types are told from all others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Import, ImportForm, Imported, ImportedName, Language};
use super::ecma_doc_types::{Named, imported_by, is_in_name, named, typed};
use super::ecma_docs::tags;
use super::ecma_locals::type_key;
use provost_base::limits::SYMBOL_LEN_MAX;

/// A type from another module.
#[derive(PartialEq, Eq)]
pub(in super::super) struct TypeImport {
    from: Box<str>,
    imported: Imported,
}

/// The types that comments name, each by the symbol around the comment, with the position of the comment; none for a type that a comment
/// composes, and for a name that two comments in one symbol give to different types.
pub(in super::super) type Typedefs = BTreeMap<Box<str>, BTreeMap<Option<u32>, (u32, Option<TypeImport>)>>;

/// The name that a file has for a type that it imports where it uses it: none that a program can write.
pub(super) fn name_of(from: &str, name: Option<&str>) -> Box<str> {
    let from = from.replace('.', "\u{b7}");
    match name {
        Some(name) => format!("import {from} {name}").into(),
        None => format!("import {from}").into(),
    }
}

/// The value of a type that has a name in the comments of the file; none if no comment names it, `Some(None)` if nothing follows from that.
pub(super) fn of_named(walk: &Walk<'_>, class: &str) -> Option<Option<Seen>> {
    let known = walk.notes.typedefs.get(class.split('.').next().unwrap_or(class))?;
    let is_imported = known.values().any(|(_, import)| import.is_some());
    Some(is_imported.then(|| Seen::Of(type_key(class).into())))
}

/// Notes the types that a comment names and imports: `@typedef {import("./store").Store} Store`, `@import { Store as S } from
/// "./store"`, `@param {import("./store").Store} store`.
pub(super) fn imports(walk: &mut Walk<'_>, comment: Node<'_>) {
    let text = walk.source.get(comment.byte_range()).unwrap_or_default();
    let Some(text) = text.strip_prefix(b"/**").and_then(|it| it.strip_suffix(b"*/")) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    if walk.language == Language::JavaScript {
        // Where there is no room for one, there is none for the others.
        let _ = tags(text).try_for_each(|(tag, rest)| tagged(walk, comment, tag, rest));
    }
}

/// None if there is no room for more.
fn tagged(walk: &mut Walk<'_>, comment: Node<'_>, tag: &str, rest: &str) -> Option<()> {
    match tag {
        "import" => return imported_names(walk, comment, rest),
        "callback" => {
            let name = first_name(rest);
            return note(walk, comment, (name, walk.scope.owner), None);
        }
        "typedef" => {
            let (typed, rest) = typed(rest).unwrap_or(("", rest));
            let import = match named(typed) {
                Named::Imported { from, name } => Some((from, imported(name))),
                _ => None,
            };
            note(walk, comment, (first_name(rest), walk.scope.owner), import)?;
        }
        _ => {}
    }
    for (place, word) in rest.match_indices("import(") {
        if let Some((Named::Imported { from, name }, _)) = imported_by(&rest[place + word.len()..]) {
            note(walk, comment, (&name_of(from, name), None), Some((from, imported(name))))?;
        }
    }
    Some(())
}

fn first_name(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.find(|it: char| !is_in_name(it)).unwrap_or(text.len())]
}

fn imported(name: Option<&str>) -> Imported {
    name.map_or(Imported::Module, |name| Imported::Name(name.into()))
}

/// `{ Store, Shop as S } from "./store"`, `* as store from "./store"`, `Store from "./store"`.
fn imported_names(walk: &mut Walk<'_>, comment: Node<'_>, rest: &str) -> Option<()> {
    let Some((names, from)) = rest.split_once(" from ") else { return Some(()) };
    let from = from.trim_start();
    let Some(quote) = from.chars().next().filter(|it| matches!(it, '"' | '\'')) else { return Some(()) };
    let Some((from, _)) = from[1..].split_once(quote) else { return Some(()) };
    let (names, owner) = (names.trim(), walk.scope.owner);
    if let Some(names) = names.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        for name in names.split(',').map(|it| it.trim_matches([' ', '\t', '\r', '\n', '*'])) {
            let (name, local) = name.split_once(" as ").map_or((name, name), |(a, b)| (a.trim(), b.trim()));
            if name.chars().chain(local.chars()).all(is_in_name) {
                note(walk, comment, (local, owner), Some((from, Imported::Name(name.into()))))?;
            }
        }
        return Some(());
    }
    let (what, local) = match names.strip_prefix('*').map(|it| it.trim().strip_prefix("as ")) {
        Some(local) => (Imported::Module, local.unwrap_or_default().trim()),
        None => (Imported::Name("default".into()), names),
    };
    if local.chars().all(is_in_name) {
        note(walk, comment, (local, owner), Some((from, what)))
    } else {
        Some(())
    }
}

/// Notes a name of a type; none if there is no room for it.
fn note(
    walk: &mut Walk<'_>,
    comment: Node<'_>,
    (name, within): (&str, Option<u32>),
    import: Option<(&str, Imported)>,
) -> Option<()> {
    let length = name.len() + import.as_ref().map_or(0, |(from, _)| from.len());
    if name.is_empty() || length > SYMBOL_LEN_MAX {
        return Some(());
    }
    if !walk.spend(64 + 2 * length) {
        return None;
    }
    let import = import.map(|(from, imported)| TypeImport { from: from.into(), imported });
    let at = offset(comment.start_byte());
    match walk.notes.typedefs.entry(name.into()).or_default().entry(within) {
        Entry::Vacant(free) => drop(free.insert((at, import))),
        Entry::Occupied(mut known) if known.get().1 != import => known.get_mut().1 = None,
        Entry::Occupied(_) => {}
    }
    Some(())
}

/// Records what the comments of the file import, once all of them are known.
pub(super) fn finish(walk: &mut Walk<'_>) {
    for (name, known) in std::mem::take(&mut walk.notes.typedefs) {
        for (within, (at, import)) in known {
            let Some(TypeImport { from, imported }) = import else { continue };
            let local = if name.contains(' ') { name.clone() } else { type_key(&name).into() };
            let names = vec![ImportedName { imported, local: Some(local) }];
            let form = ImportForm::Require;
            let import = Import { from, form, names, types_only: true, within: None, either: false, at };
            let Some(number) = walk.import(import) else { return };
            walk.facts.imports[number as usize].within = within;
        }
    }
}
