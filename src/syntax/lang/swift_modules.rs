//! The imports of a Swift file, its exports, and the modules that `Package.swift` names.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Import, ImportForm, Imported, ImportedName};
use super::children::{child_of, children_of};
use super::swift::{Field, Kind, elsewhere};
use super::swift_types as types;

/// The prefix of the names under which a file passes a module on.
const PASSED_ON: &str = "@exported ";

/// The prefix of the names under which `Package.swift` says where a module is.
const TARGET: &str = "@target ";

/// `import Module`, `@testable import Module`, `import struct Module.Type`: either way, all of the module is known.
pub(super) fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(path) = child_of(walk, node, &[Kind::Identifier]) else { return };
    let from = walk.text(path).split('.').next().unwrap_or_default().trim().to_owned();
    let everything = ImportedName { imported: Imported::Everything, local: None };
    let passes_on = child_of(walk, node, &[Kind::Modifiers])
        .is_some_and(|it| walk.text(it).contains("@_exported") || walk.text(it).contains("public"));
    if passes_on {
        walk.export_as(format!("{PASSED_ON}{from}"), "".into());
    }
    walk.import(Import {
        from: from.into(),
        form: ImportForm::Static,
        names: vec![everything],
        types_only: false,
        within: None,
        either: false,
        at: offset(node.start_byte()),
    });
}

/// `.target(name: "Shop", path: "Code")` of a package: the folder of a module, or the kind of folder that it is in by its name.
pub(super) fn target(walk: &mut Walk<'_>, call: Node<'_>, called: Node<'_>) {
    if !types::is_implicit(walk, called)
        || !walk.facts.imports.iter().any(|it| &*it.from == "PackageDescription")
    {
        return;
    }
    let Some(named) = walk.field(called, Field::Target as u8) else { return };
    let kind = match &*walk.text(named) {
        "target" | "executableTarget" | "macro" | "systemLibrary" => "Sources",
        "testTarget" => "Tests",
        "plugin" => "Plugins",
        _ => return,
    };
    let (Some(name), path) = (argument(walk, call, "name"), argument(walk, call, "path")) else { return };
    let at = path.map_or_else(|| format!("*{kind}"), |path| path.trim_start_matches("./").to_owned());
    walk.export_as(format!("{TARGET}{name}={at}"), "".into());
}

/// The text that a call gives under a label, where it is written out.
fn argument(walk: &Walk<'_>, call: Node<'_>, label: &str) -> Option<String> {
    let suffix = child_of(walk, call, &[Kind::CallSuffix])?;
    let list = child_of(walk, suffix, &[Kind::ValueArguments])?;
    let all = children_of(walk, list, Kind::ValueArgument);
    let labelled = |it: &Node<'_>| {
        child_of(walk, *it, &[Kind::ArgumentLabel]).is_some_and(|it| &*walk.text(it) == label)
    };
    let value = walk.field(all.into_iter().find(labelled)?, Field::Value as u8)?;
    let text = (Kind::at(walk, value) == Some(Kind::LineString)).then(|| walk.text(value))?;
    let plain = text.trim_matches('"');
    (!plain.contains('\\')).then(|| plain.to_owned())
}

/// What is private at the top no other file knows. The parts of a type that stand apart in one file are one: what they are said to
/// be counts for all, and a part without its type here is one of a type from elsewhere.
pub(super) fn finish(walk: &mut Walk<'_>) {
    let hidden = std::mem::take(&mut walk.notes.hidden);
    let hidden: Vec<Box<str>> =
        hidden.into_iter().map(|at| walk.facts.symbols[at as usize].path.clone()).collect();
    walk.mark_exported(|symbol| !hidden.contains(&symbol.path));
    gather_parts(walk);
    give_calls(walk);
}

fn gather_parts(walk: &mut Walk<'_>) {
    let parts = std::mem::take(&mut walk.notes.implementations);
    let mut types: BTreeMap<Box<str>, Vec<u32>> = BTreeMap::new();
    for part in parts {
        types.entry(part.of_type).or_default().push(part.at);
    }
    for (at, symbol) in (0..).zip(&walk.facts.symbols) {
        if symbol.kind.has_members()
            && let Some(all) = types.get_mut(&symbol.path)
            && !all.contains(&at)
        {
            all.push(at);
        }
    }
    for (path, mut all) in types {
        all.sort_unstable();
        let symbols = &mut walk.facts.symbols;
        let own = all.iter().copied().find(|at| !walk.notes.for_members.contains_key(at));
        let mut bases: Vec<Box<str>> =
            all.iter().flat_map(|at| symbols[*at as usize].bases.iter().cloned()).collect();
        match own {
            // All parts are of one kind, and the first one speaks for them.
            Some(own) => {
                let kind = symbols[own as usize].kind;
                all.iter().for_each(|at| symbols[*at as usize].kind = kind);
            }
            None => bases.insert(0, elsewhere(&path)),
        }
        walk.bases(all.first().copied(), bases);
    }
}

/// Gives calls in the values of what is declared together to the one whose value they are in.
fn give_calls(walk: &mut Walk<'_>) {
    let mut places: BTreeMap<u32, u32> = BTreeMap::new();
    let mut firsts: BTreeSet<u32> = BTreeSet::new();
    for group in &walk.facts.together {
        firsts.extend(group.symbols.first());
        places.extend(group.symbols.iter().map(|at| (walk.facts.symbols[*at as usize].range.start, *at)));
    }
    if firsts.is_empty() {
        return;
    }
    let symbols = &walk.facts.symbols;
    for call in &mut walk.facts.calls {
        if call.caller.is_some_and(|it| firsts.contains(&it))
            && let Some((_, at)) = places.range(..=call.at).next_back()
            && symbols[*at as usize].range.contains(&call.at)
        {
            call.caller = Some(*at);
        }
    }
}
