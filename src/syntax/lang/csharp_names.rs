//! Namespaces of C#: the namespace of a file's top-level symbols, the namespaces that it uses, and its additions to other types.

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Import, ImportForm, Imported, ImportedName, Kind as Sort};
use super::children::{child_of, children_of};
use super::csharp::{Field, Kind, start};
use super::csharp_types as types;

/// The deepest nesting of namespaces that is followed.
const NESTED_MAX: usize = 8;

/// The prefix of the name under which a file exports its uses for the whole project.
const FOR_ALL: &str = "+using";

/// What the namespaces of the file, and those around them, define is known without `using`.
pub(super) fn unit(walk: &mut Walk<'_>, unit: Node<'_>) {
    let mut own: Vec<String> = Vec::new();
    let mut waiting = vec![(unit, String::new(), 0)];
    while let Some((node, around, depth)) = waiting.pop() {
        let mut cursor = node.walk();
        for inner in node.named_children(&mut cursor) {
            match Kind::at(walk, inner) {
                Some(Kind::Namespace | Kind::FileNamespace) => {}
                Some(Kind::If | Kind::Elif | Kind::Else) if depth < NESTED_MAX => {
                    waiting.push((inner, around.clone(), depth + 1));
                    continue;
                }
                _ => continue,
            }
            let name = beside(&around, &name_of(walk, inner));
            if let Some(body) = walk.field(inner, Field::Body as u8).filter(|_| depth < NESTED_MAX) {
                waiting.push((body, name.clone(), depth + 1));
            }
            own.push(name);
        }
    }
    let mut all: Vec<&str> = Vec::new();
    for mut name in own.iter().map(String::as_str) {
        all.push(name);
        while let Some((around, _)) = name.rsplit_once('.') {
            name = around;
            all.push(name);
        }
    }
    all.sort_by_key(|name| std::cmp::Reverse(name.len()));
    all.dedup();
    // Names outside of any namespace are known everywhere.
    for name in all.into_iter().chain([""]) {
        add_import(walk, 0, name.to_owned(), everything());
    }
}

fn everything() -> ImportedName {
    ImportedName { imported: Imported::Everything, local: None }
}

fn add_import(walk: &mut Walk<'_>, at: u32, from: String, name: ImportedName) {
    let (form, from) = (ImportForm::Static, from.into());
    walk.import(Import { from, form, names: vec![name], types_only: false, within: None, either: false, at });
}

fn name_of(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.field(node, Field::Name as u8).and_then(|name| types::path_of(walk, name)).unwrap_or_default()
}

fn beside(around: &str, name: &str) -> String {
    if around.is_empty() { name.to_owned() } else { format!("{around}.{name}") }
}

/// The namespace at a place.
fn at(walk: &Walk<'_>, place: u32) -> String {
    let around = walk.notes.namespaces.iter().rev().find(|(range, _)| range.contains(&place));
    around.map_or(String::new(), |(_, name)| name.to_string())
}

pub(super) fn namespace(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let name = beside(&at(walk, start(node)), &name_of(walk, node));
    let end = if kind == Kind::FileNamespace { u32::MAX } else { offset(node.end_byte()) };
    walk.notes.namespaces.push((start(node)..end, name.into()));
}

/// `using A.B;`, `using static A.B.C;`, `using X = A.B.C;`, each also with `global` before it.
pub(super) fn using(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    let parts: Vec<Node<'_>> = node.children(&mut cursor).collect();
    let [is_static, is_global] =
        ["static", "global"].map(|word| parts.iter().any(|it| walk.is_token(*it, word)));
    let alias = walk.field(node, Field::Name as u8);
    let used = parts.into_iter().rev().find(|it| it.is_named() && Some(*it) != alias);
    let Some(path) = used.and_then(|used| types::path_of(walk, used)) else { return };
    let place = start(node);
    if let Some(alias) = alias {
        let (from, name) = path.rsplit_once('.').unwrap_or(("", &path));
        let local = Some(walk.text(alias)[..].into());
        let taken = ImportedName { imported: Imported::Name(name.into()), local };
        return add_import(walk, place, from.to_owned(), taken);
    }
    let used = if is_static { format!("static {path}") } else { path.clone() };
    if is_global {
        walk.export_as(format!("{FOR_ALL} {used}"), "".into());
    }
    add_import(walk, place, used, everything());
    // Within a namespace it may be one of those within that.
    let around = at(walk, place);
    if !around.is_empty() && !is_static {
        add_import(walk, place, beside(&around, &path), everything());
    }
}

/// A method with `this` before its first parameter is one more of that parameter's type, where its namespace is used.
pub(super) fn extended(walk: &mut Walk<'_>, method: Option<u32>, parameters: Node<'_>) {
    let Some(method) = method else { return };
    let Some(first) = child_of(walk, parameters, &[Kind::Parameter]) else { return };
    let is_this = children_of(walk, first, Kind::Modifier).iter().any(|it| &*walk.text(*it) == "this");
    let Some(typed) = walk.field(first, Field::Type as u8).filter(|_| is_this) else { return };
    let of = match types::path_of(walk, typed) {
        Some(path) if walk.facts.locals.seen(&path, start(typed)).is_none() => path,
        // Of any type.
        _ => "*".to_owned(),
    };
    let of = of.rsplit('.').next().unwrap_or(&of).to_owned();
    let symbol = &walk.facts.symbols[method as usize];
    let (name, path) = (symbol.name().to_owned(), symbol.path.clone());
    let full = beside(&at(walk, start(first)), &format!("{of}+{name}"));
    walk.export_as(full, path);
}

/// A namespace may have both `Store` and `Store<T>`: others tell them apart by the number of parameters.
pub(super) fn with_parameters(walk: &mut Walk<'_>, class: Option<u32>, parameters: Option<Node<'_>>) {
    let (Some(class), Some(parameters)) = (class, parameters) else { return };
    let symbol = &walk.facts.symbols[class as usize];
    if symbol.parent.is_some() {
        return;
    }
    let (name, path) = (symbol.name().to_owned(), symbol.path.clone());
    let count = children_of(walk, parameters, Kind::TypeParameter).len();
    let full = beside(&at(walk, start(parameters)), &name);
    walk.export_as(format!("{full}` {count}"), path);
}

/// Others know the types at the top by their namespaces and their names.
pub(super) fn finish(walk: &mut Walk<'_>) {
    walk.mark_exported(|_| true);
    for symbol in 0..walk.facts.symbols.len() {
        let it = &walk.facts.symbols[symbol];
        let is_type = matches!(it.kind, Sort::Class | Sort::Interface | Sort::Enum | Sort::TypeAlias);
        if it.parent.is_none() && is_type {
            let namespace = at(walk, it.range.end.saturating_sub(1));
            walk.export_one(&namespace, symbol);
        }
    }
}
