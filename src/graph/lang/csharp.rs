//! Namespaces of C#: a file names the namespace of its types, and sees the types of namespaces that it uses, and of those around its own.

use super::{PLAIN, Rules, full_names};
use std::collections::BTreeSet;

use crate::outline::{Outline, Take};
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &[".cs"],
    keys: Some(|_, outline| full_names::keys(FAMILY, outline)),
    around: Some(around),
    added: Some(added),
    by_path: Some(by_path),
    extension: Some(extension),
    implied: Some("constructor"),
    namesakes: Some(namesakes),
    ..PLAIN
};

const FAMILY: &str = "cs";

/// The key of files that use namespaces for the whole project.
const FOR_ALL: &str = "+using";

/// The most files with such uses that are read; usually there is one for each project.
const FOR_ALL_MAX: usize = 64;

/// Members of the types around first, then the namespaces around and those that are used.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    full_names::in_types_around(resolver, (file, around), name, depth)
        .or_else(|| full_names::through_stars(resolver, FAMILY, file, name, depth))
        .or_else(|| {
            let used = used_by_all(resolver);
            used.iter().find_map(|of| full_names::through_star(resolver, FAMILY, of, name, depth))
        })
}

/// The namespaces and types that files use for all others.
fn used_by_all(resolver: &mut Resolver<'_>) -> Vec<String> {
    let files = resolver.adding(&format!("{FAMILY}:{FOR_ALL}"));
    let mut all: Vec<String> = Vec::new();
    for file in files.into_iter().take(FOR_ALL_MAX) {
        let Some(outline) = resolver.files.outline(file) else { continue };
        resolver.depends_on(file);
        let names = outline.exports.iter().map(|it| outline.word(it.name));
        all.extend(names.filter_map(|it| it.strip_prefix(FOR_ALL)).map(|it| it.trim_start().to_owned()));
    }
    all.sort();
    all.dedup();
    all
}

/// A path may begin with an alias, within one of the namespaces around, or at the outermost one.
fn by_path(resolver: &mut Resolver<'_>, file: u32, path: &str, depth: u32) -> Option<Value> {
    if let Some(found) = full_names::by_path(resolver, FAMILY, path, depth) {
        return Some(found);
    }
    let outline = resolver.files.outline(file)?;
    let (first, rest) = path.split_once('.')?;
    let meant = outline.binding_at_top(first).and_then(|it| match it.take {
        Take::Name(name) => {
            Some(full_names::beside(outline.word(outline.specs[it.spec as usize]), outline.word(name)))
        }
        Take::Module => None,
    });
    if let Some(found) =
        meant.and_then(|it| full_names::by_path(resolver, FAMILY, &format!("{it}.{rest}"), depth))
    {
        return Some(found);
    }
    let own: Vec<&str> = full_names::namespaces(outline).take_while(|it| !it.is_empty()).collect();
    own.into_iter().find_map(|of| full_names::by_path(resolver, FAMILY, &full_names::beside(of, path), depth))
}

/// The most files that are read for the parts of one type.
const PARTS_MAX: usize = 64;

/// Another part of the type, in another file, or a method that extends it.
fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, _: u32) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let path = outline.path(node).to_owned();
    let first = path.split('.').next().unwrap_or(&path);
    let full = full_names::of(outline, first)?.to_owned();
    let parts = resolver.adding(&format!("{FAMILY}:{full}"));
    let inner = format!("{path}.{name}");
    let own = numbers_of_parameters(outline, &full);
    for part in parts.into_iter().filter(|it| *it != file).take(PARTS_MAX) {
        let is_part = |it: &&Outline| {
            full_names::of(it, first) == Some(&*full) && numbers_of_parameters(it, &full) == own
        };
        let found = resolver.files.outline(part).filter(is_part);
        if let Some(found) = found.and_then(|it| it.node(&inner)) {
            resolver.depends_on(part);
            return Some(Value::Symbol { file: part, node: found });
        }
    }
    let last = path.rsplit('.').next().unwrap_or(&path).to_owned();
    extension(resolver, &last, name)
}

/// What has the path of a target in a type of the same full name that takes another number of types: `Store<T>` beside `Store`. Which of
/// them a call means is not known here, except within the type itself.
fn namesakes(resolver: &mut Resolver<'_>, caller: u32, (file, node): (u32, u32)) -> Vec<(u32, u32)> {
    let files = resolver.files;
    let (Some(outline), Some(own)) = (files.outline(file), files.outline(resolver.asking())) else {
        return Vec::new();
    };
    let top = |path: &'_ str| path.split('.').next().unwrap_or_default().to_owned();
    let path = outline.path(node);
    let first = top(path);
    let Some(full) = full_names::of(outline, &first) else { return Vec::new() };
    let is_part = top(own.path(caller)) == first
        && full_names::of(own, &first) == Some(full)
        && numbers_of_parameters(own, full) == numbers_of_parameters(outline, full);
    if is_part {
        return Vec::new();
    }
    if resolver.adding(&format!("{FAMILY}:{full}{PARAMETERS}")).is_empty() {
        return Vec::new();
    }
    let known = numbers_of_parameters(outline, full);
    let others = resolver.adding(&format!("{FAMILY}:{full}")).into_iter().take(PARTS_MAX);
    let namesake = |it: u32| {
        let there = files.outline(it)?;
        let is_other =
            full_names::of(there, &first) == Some(full) && numbers_of_parameters(there, full) != known;
        is_other.then(|| there.node(path)).flatten().map(|node| (it, node))
    };
    let found: Vec<(u32, u32)> = others.filter_map(namesake).collect();
    found.iter().for_each(|it| resolver.depends_on(it.0));
    found
}

/// The mark behind a full name under which a file exports how many types the type of this name takes.
const PARAMETERS: char = '`';

/// How many types the types of a full name take that a file defines; none for one that takes no types.
fn numbers_of_parameters<'o>(outline: &'o Outline, full: &str) -> BTreeSet<&'o str> {
    let names = outline.exports.iter().map(|it| outline.word(it.name));
    names.filter_map(|it| it.strip_prefix(full)?.strip_prefix(PARAMETERS)).collect()
}

/// A method with `this` before its first parameter, of a namespace that the asking file sees.
fn extension(resolver: &mut Resolver<'_>, of: &str, name: &str) -> Option<Value> {
    let outline = resolver.files.outline(resolver.asking())?;
    let mut seen: Vec<String> = full_names::namespaces(outline).map(ToOwned::to_owned).collect();
    seen.extend(used_by_all(resolver));
    full_names::extension(resolver, FAMILY, &seen, of, name)
}
