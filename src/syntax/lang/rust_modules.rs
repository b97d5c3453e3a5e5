//! The ties between Rust files: `mod`, `use`, `extern crate`, and paths.
//!
//! An import is stored as its first part, which leads to a file, and the names behind it, by which the graph goes on from module
//! to module: there may be re-exports at any point of the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tree_sitter::Node;

use super::super::notes::{ELSEWHERE, Implementation};
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Import, ImportForm, Imported, ImportedName, Kind as Sort, Receiver};
use super::rust::{Field, Kind, name_of};
use super::rust_types::path_of;
use provost_base::limits::CLASS_BASES_MAX;

/// The deepest nesting of lists of names that is followed.
const NESTED_MAX: usize = 32;

/// The name of this file itself in paths, which is none of a module.
const HERE: &str = "%";

/// The names of the modules around, in this file.
fn modules_around(walk: &Walk<'_>) -> Vec<String> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        let symbol = &walk.facts.symbols[at as usize];
        if symbol.kind == Sort::Namespace {
            return symbol.path.split('.').map(Into::into).collect();
        }
        around = symbol.parent;
    }
    Vec::new()
}

/// A path that begins in this file, as its names from the top; `Err` has one that leads out, `super` as often as it is left.
fn in_file(walk: &Walk<'_>, names: &[&str]) -> Result<Vec<String>, Vec<String>> {
    let mut inside = modules_around(walk);
    let mut rest = names;
    if let Some((&"self", behind)) = rest.split_first() {
        rest = behind;
    } else if rest.first() != Some(&"super") {
        return Err(names.iter().map(|it| (*it).into()).collect());
    }
    while let Some((&"super", behind)) = rest.split_first() {
        if inside.pop().is_none() {
            return Err(rest.iter().map(|it| (*it).into()).collect());
        }
        rest = behind;
    }
    inside.extend(rest.iter().map(|it| (*it).into()));
    Ok(inside)
}

/// The receiver of a call along a path: `a::b` of `a::b::f()`.
pub(super) fn receiver(walk: &mut Walk<'_>, before: &str) -> Receiver {
    let names: Vec<&str> = before.split('.').collect();
    match in_file(walk, &names) {
        Ok(inside) => Receiver::Within(inside.join(".").into()),
        Err(outside) => {
            if let Some(first) = outside.first() {
                walk.notes.heads.insert(first.as_str().into());
            }
            let path = outside.join(".").into();
            // Of a type, what it lacks is from outside the repository; of a module, it may be from a macro.
            let is_type = names.last().is_some_and(|last| last.starts_with(char::is_uppercase));
            match names[0] {
                "std" if is_type => Receiver::BuiltIn,
                _ if is_type => Receiver::Instance(path),
                _ => Receiver::Path(path),
            }
        }
    }
}

/// The path of a type or a value. Its `super` and `self` lead no further than to the top of this file.
pub(super) fn from_here(walk: &mut Walk<'_>, path: String) -> String {
    let names: Vec<&str> = path.split('.').collect();
    if names.len() < 2 || !matches!(names[0], "self" | "super") {
        return path;
    }
    match in_file(walk, &names) {
        Ok(inside) => {
            walk.notes.heads.insert(HERE.into());
            format!("{HERE}.{}", inside.join("."))
        }
        Err(outside) => outside.join("."),
    }
}

/// The text of an import: what leads to a file, and the names behind it.
fn parted(walk: &Walk<'_>, names: &[String]) -> (String, Vec<String>) {
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let (from, rest) = match in_file(walk, &texts) {
        Ok(inside) => return ("self".into(), inside),
        Err(outside) => {
            let ups = outside.iter().take_while(|it| *it == "super").count().max(1);
            let rest = outside.get(ups..).unwrap_or_default().to_vec();
            (outside.get(..ups).unwrap_or_default().join("::"), rest)
        }
    };
    (from, rest)
}

fn import_of(at: Node<'_>, from: &str, names: Vec<ImportedName>) -> Import {
    let at = offset(at.start_byte());
    Import {
        from: from.into(),
        form: ImportForm::Static,
        names,
        types_only: false,
        within: None,
        either: false,
        at,
    }
}

fn named(rest: &[String], local: &str) -> ImportedName {
    let imported = if rest.is_empty() { Imported::Module } else { Imported::Name(rest.join(".").into()) };
    ImportedName { imported, local: Some(local.into()) }
}

/// `mod x;`: the file of a module.
pub(super) fn file_of(walk: &mut Walk<'_>, node: Node<'_>, name: &str) {
    let (mut path, mut either) = (None, false);
    let mut above = node.prev_named_sibling();
    while let Some(it) = above.filter(|it| Kind::at(walk, *it) == Some(Kind::Attribute)) {
        let text = walk.text(it).into_owned();
        either |= text.contains("cfg");
        if text.contains("path") {
            path = text.split('"').nth(1).map(ToOwned::to_owned).or(path);
        }
        above = it.prev_named_sibling();
    }
    let mut names = modules_around(walk);
    names.push(name.to_owned());
    let from = match path {
        Some(path) => format!("path:{path}"),
        None => format!("self::{}", names.join("::")),
    };
    walk.import(Import { either, ..import_of(node, &from, vec![named(&[], name)]) });
}

/// `extern crate a as b;`
pub(super) fn extern_crate(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let Some(name) = name_of(walk, node) else { return };
    let alias = walk.field(node, Field::Alias as u8).map(|alias| walk.text(alias).into_owned());
    walk.import(import_of(node, &name, vec![named(&[], alias.as_deref().unwrap_or(&name))]));
}

/// `use …;`, groups, globs and other names included.
pub(super) fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let Some(argument) = walk.field(node, Field::Argument as u8) else { return };
    let mut waiting: Vec<(Node<'_>, Vec<String>)> = vec![(argument, Vec::new())];
    while let Some((it, before)) = waiting.pop() {
        if before.len() > NESTED_MAX {
            continue;
        }
        match Kind::at(walk, it) {
            Some(Kind::ScopedUseList) => {
                let mut names = before;
                names.extend(
                    walk.field(it, Field::Path as u8).map(|path| names_of(walk, path)).unwrap_or_default(),
                );
                waiting.extend(walk.field(it, Field::List as u8).map(|list| (list, names)));
            }
            Some(Kind::UseList) => {
                let mut cursor = it.walk();
                let from = waiting.len();
                waiting.extend(it.named_children(&mut cursor).map(|inner| (inner, before.clone())));
                waiting[from..].reverse();
            }
            Some(Kind::UseWildcard) => {
                let mut names = before;
                names.extend(it.named_child(0).map(|path| names_of(walk, path)).unwrap_or_default());
                star(walk, it, &names);
            }
            Some(Kind::UseAs) => {
                let mut names = before;
                names.extend(
                    walk.field(it, Field::Path as u8).map(|path| names_of(walk, path)).unwrap_or_default(),
                );
                let alias = walk.field(it, Field::Alias as u8).map(|alias| walk.text(alias).into_owned());
                one(walk, it, names, alias);
            }
            Some(Kind::Identifier | Kind::Scoped | Kind::SelfName | Kind::Super | Kind::Crate) => {
                let mut names = before;
                names.extend(names_of(walk, it));
                one(walk, it, names, None);
            }
            _ => {}
        }
    }
}

/// The path of a type or a value that a node writes, [from here](from_here).
pub(super) fn path_here(walk: &mut Walk<'_>, node: Node<'_>) -> Option<String> {
    path_of(walk, node).map(|path| from_here(walk, path))
}

/// The names of a path in an import.
fn names_of(walk: &Walk<'_>, path: Node<'_>) -> Vec<String> {
    let text = walk.text(path);
    let names = text.split("::").map(|name| name.trim().trim_start_matches("r#").to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// One name that is taken in; `self` at the end of a group is the module itself.
fn one(walk: &mut Walk<'_>, at: Node<'_>, mut names: Vec<String>, alias: Option<String>) {
    if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
        names.pop();
    }
    let Some(last) = names.last().cloned() else { return };
    let local = alias.unwrap_or(last);
    // A trait whose methods alone are taken in.
    if local == "_" {
        return;
    }
    let (from, rest) = parted(walk, &names);
    walk.import(import_of(at, &from, vec![named(&rest, &local)]));
}

/// `use a::*`: of a module, or of an enumeration.
fn star(walk: &mut Walk<'_>, at: Node<'_>, names: &[String]) {
    let (from, rest) = parted(walk, names);
    // Names around in the same file are known anyway.
    if from == "self" && rest.is_empty() {
        return;
    }
    let spec = std::iter::once(from).chain(rest).collect::<Vec<_>>().join("::");
    let all = ImportedName { imported: Imported::Everything, local: None };
    walk.import(import_of(at, &spec, vec![all]));
}

/// Ties together what stands apart: paths and the modules that they begin with, types and what is implemented for them.
pub(super) fn finish(walk: &mut Walk<'_>) {
    let symbols = walk.facts.symbols.iter();
    let tops: BTreeSet<Box<str>> =
        symbols.filter(|it| it.parent.is_none()).map(|it| it.path.clone()).collect();
    let locals: BTreeSet<Box<str>> = imported(walk).into_keys().collect();
    for import in &mut walk.facts.imports {
        let from = import.from.clone();
        let leads_on = |name: &ImportedName| {
            matches!(name.imported, Imported::Name(_)) && name.local.as_ref() != Some(&from)
        };
        let is_here = tops.contains(&from) || locals.contains(&from);
        if !is_here || import.names.is_empty() || !import.names.iter().all(leads_on) {
            continue;
        }
        // A path that begins with something of this file goes on from there.
        for name in &mut import.names {
            if let Imported::Name(rest) = &name.imported {
                name.imported = Imported::Name(format!("{from}.{rest}").into());
            }
        }
        import.from = "self".into();
    }
    add_heads(walk, &tops, &locals);
    implement(walk);
    walk.mark_exported(|_| true);
}

/// Imported names at the top, with the numbers of their imports.
fn imported(walk: &Walk<'_>) -> BTreeMap<Box<str>, usize> {
    let at_top = walk.facts.imports.iter().enumerate().filter(|(_, import)| import.within.is_none());
    let names = at_top
        .flat_map(|(at, import)| import.names.iter().filter_map(move |it| Some((it.local.clone()?, at))));
    names.collect()
}

/// Paths in the code may begin with a crate, or with `crate` and `super`, which nothing has imported.
fn add_heads(walk: &mut Walk<'_>, tops: &BTreeSet<Box<str>>, locals: &BTreeSet<Box<str>>) {
    for head in std::mem::take(&mut walk.notes.heads) {
        let is_known = tops.contains(&head) || locals.contains(&head);
        let is_module =
            head.starts_with(|first: char| first.is_lowercase() || first == '_') || &*head == HERE;
        if is_known || !is_module || &*head == "self" {
            continue;
        }
        let names = vec![named(&[], &head)];
        let (form, at) = (ImportForm::Static, 0);
        let from = if &*head == HERE { "self".into() } else { head };
        let import = Import { from, form, names, types_only: false, within: None, either: false, at };
        let owner = walk.scope.owner.take();
        walk.import(import);
        walk.scope.owner = owner;
    }
}

/// Gives each type what its traits bring, and each `impl` of a type from elsewhere that type.
fn implement(walk: &mut Walk<'_>) {
    let implementations = std::mem::take(&mut walk.notes.implementations);
    let numbers: BTreeSet<u32> = implementations.iter().map(|it| it.at).collect();
    let mut firsts: HashMap<Box<str>, u32> = HashMap::new();
    let mut defined: BTreeSet<Box<str>> = BTreeSet::new();
    for (at, symbol) in (0..).zip(&walk.facts.symbols) {
        firsts.entry(symbol.path.clone()).or_insert(at);
        if !numbers.contains(&at) {
            defined.insert(symbol.path.clone());
        }
    }
    let mut elsewhere: BTreeSet<Box<str>> = BTreeSet::new();
    for Implementation { at, of_type, path } in implementations {
        let first = firsts.get(&of_type).copied();
        let own = walk.facts.symbols[at as usize].path.clone();
        if let Some(first) = first.filter(|_| own != of_type) {
            // The trait brings its own methods.
            add_base(walk, first, own);
        }
        if defined.contains(&of_type) {
            continue;
        }
        let name = path.unwrap_or_else(|| of_type.clone());
        if let Some(first) = first {
            let base = if name.contains('.') { name } else { format!("{ELSEWHERE}{name}").into() };
            add_base(walk, first, base);
        }
        elsewhere.insert(of_type);
    }
    bind_elsewhere(walk, &elsewhere);
}

fn add_base(walk: &mut Walk<'_>, at: u32, base: Box<str>) {
    let symbol = &mut walk.facts.symbols[at as usize];
    if symbol.bases.len() < CLASS_BASES_MAX && !symbol.bases.contains(&base) {
        let mut bases = std::mem::take(&mut symbol.bases).into_vec();
        bases.push(base);
        symbol.bases = bases.into();
    }
}

/// Makes types known under a name that the `impl` in this file has not taken.
fn bind_elsewhere(walk: &mut Walk<'_>, types: &BTreeSet<Box<str>>) {
    if types.is_empty() {
        return;
    }
    let known = imported(walk);
    let stars: Vec<Box<str>> = walk
        .facts
        .imports
        .iter()
        .filter(|import| {
            import.within.is_none() && import.names.iter().any(|it| it.imported == Imported::Everything)
        })
        .map(|import| import.from.clone())
        .collect();
    for name in types {
        let local: Box<str> = format!("{ELSEWHERE}{name}").into();
        if let Some(at) = known.get(name) {
            let import = &mut walk.facts.imports[*at];
            let taken =
                import.names.iter().find(|it| it.local.as_ref() == Some(name)).map(|it| it.imported.clone());
            import.names.extend(taken.map(|imported| ImportedName { imported, local: Some(local) }));
            continue;
        }
        for star in &stars {
            let names =
                vec![ImportedName { imported: Imported::Name(name.clone()), local: Some(local.clone()) }];
            let (form, at) = (ImportForm::Static, 0);
            let import =
                Import { from: star.clone(), form, names, types_only: true, within: None, either: false, at };
            walk.import(import);
        }
    }
}
