//! The ties between Python files: `import`, `from … import`, `__all__`.

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Export, Exported, Import, ImportForm, Imported, ImportedName};
use super::python::{Field, Kind};

fn import_of(node: Node<'_>, from: &str, names: Vec<ImportedName>) -> Import {
    let (at, either) = (offset(node.start_byte()), is_in_branch(node));
    Import { from: from.into(), form: ImportForm::Static, names, types_only: false, within: None, either, at }
}

/// Whether it depends on something if it runs, within what it stands in.
fn is_in_branch(node: Node<'_>) -> bool {
    let around = std::iter::successors(node.parent(), Node::parent);
    let mut kinds = around
        .map(|it| it.kind())
        .take_while(|it| !matches!(*it, "function_definition" | "class_definition"));
    kinds.any(|it| matches!(it, "try_statement" | "if_statement"))
}

/// A dotted name without the blanks that may be in it.
fn path(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.text(node).split_whitespace().collect()
}

/// Any import; there is nothing more to find in it.
pub(super) fn import(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) -> bool {
    let mut cursor = node.walk();
    let mut names = Vec::new();
    let module = walk.field(node, Field::ModuleName as u8);
    for child in node.named_children(&mut cursor).filter(|child| Some(*child) != module) {
        let (name, alias) = match Kind::at(walk, child) {
            Some(Kind::AliasedImport) => {
                let alias = walk.field(child, Field::Alias as u8).map(|alias| walk.text(alias).into());
                (walk.field(child, Field::Name as u8).map(|name| path(walk, name)), alias)
            }
            Some(Kind::DottedName) => (Some(path(walk, child)), None),
            Some(Kind::Wildcard) => {
                names.push(ImportedName { imported: Imported::Everything, local: None });
                continue;
            }
            _ => continue,
        };
        let Some(name) = name else { continue };
        if kind == Kind::Import {
            // Each is a module of its own; without another name, its first part gets known.
            let root: Box<str> = name.split('.').next().unwrap_or_default().into();
            let imported = if alias.is_some() || *root == *name { Imported::Module } else { Imported::Root };
            let local = Some(alias.unwrap_or(root));
            walk.import(import_of(child, &name, vec![ImportedName { imported, local }]));
        } else {
            let name: Box<str> = name.into();
            names.push(ImportedName {
                local: Some(alias.unwrap_or_else(|| name.clone())),
                imported: Imported::Name(name),
            });
        }
    }
    let from = match kind {
        Kind::FutureImport => Some("__future__".into()),
        _ => module.map(|module| path(walk, module)),
    };
    if let Some(from) = from {
        walk.import(import_of(node, &from, names));
    }
    false
}

/// `__all__ = […]`.
pub(super) fn all_is(walk: &mut Walk<'_>, left: Node<'_>, right: Option<Node<'_>>) {
    let Some(right) = right.filter(|_| walk.scope.owner.is_none()) else { return };
    if Kind::at(walk, left) != Some(Kind::Identifier) || walk.text(left) != "__all__" {
        return;
    }
    if !matches!(Kind::at(walk, right), Some(Kind::List | Kind::Tuple)) {
        more_than_is_said(walk, left);
        return;
    }
    let mut cursor = right.walk();
    for string in right.named_children(&mut cursor) {
        let content = (Kind::at(walk, string) == Some(Kind::String)).then(|| content(walk, string)).flatten();
        if let Some(name) = content {
            walk.export(string, Export { name: name.clone(), what: Exported::Local(name) });
        }
    }
}

/// `__all__` has names that are not understood here, so that any may be among them.
pub(super) fn more_than_is_said(walk: &mut Walk<'_>, node: Node<'_>) {
    if walk.scope.owner.is_none() {
        walk.export(node, Export { name: "*".into(), what: Exported::Local("*".into()) });
    }
}

/// The text between the quotes of a string.
fn content(walk: &Walk<'_>, string: Node<'_>) -> Option<Box<str>> {
    let mut cursor = string.walk();
    let mut parts = string.named_children(&mut cursor);
    let content = parts.find(|part| Kind::at(walk, *part) == Some(Kind::StringContent));
    content.map(|content| walk.text(content).into())
}

/// `__all__ += […]`.
pub(super) fn more_of_all(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(left) = walk.field(node, Field::Left as u8) {
        all_is(walk, left, walk.field(node, Field::Right as u8));
    }
}

/// Marks what others can import: what `__all__` says, or else what has no underscore before it.
pub(super) fn finish(walk: &mut Walk<'_>) {
    let all = walk.exported_names();
    walk.mark_exported(|symbol| {
        let is_open = all.is_empty() || all.contains("*");
        (is_open && !symbol.path.starts_with('_')) || all.contains(&symbol.path)
    });
}
