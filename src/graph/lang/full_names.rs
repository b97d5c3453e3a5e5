//! Languages whose files name their namespace: other files find their definitions by full names.
//!
//! A file exports its top-level symbols under their full names, and a function that extends a type as `namespace.Type+function`. Its
//! first import is that of everything in its own namespace.

use std::collections::BTreeSet;

use crate::outline::{Offered, Outline};
use crate::resolve::{Resolver, Value};

/// The most files that define the same name and are examined.
const NAMESAKES_MAX: usize = 64;

/// The keys under which a file is found, by the family of its language.
pub(super) fn keys(family: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let mut found: BTreeSet<Box<str>> = BTreeSet::new();
    for name in outline.exports.iter().map(|it| outline.word(it.name)) {
        found.insert(format!("{family}:{}", name.split(' ').next().unwrap_or(name)).into());
        // Whether anything is extended by a function of this name is asked for first.
        found.extend(name.rsplit_once('+').map(|(_, name)| format!("{family}:+{name}").into()));
    }
    found
}

/// All that has a full name, each with its file; that of the asking file alone, if it has one.
pub(super) fn all_of(resolver: &mut Resolver<'_>, family: &str, full: &str) -> Vec<(u32, u32)> {
    let mut found = resolver.adding(&format!("{family}:{full}"));
    let asking = resolver.asking();
    if found.contains(&asking) {
        found = vec![asking];
    }
    found.truncate(NAMESAKES_MAX);
    let files = resolver.files;
    found.sort_by_key(|it| files.path(*it));
    let node = |file: u32| {
        let outline = files.outline(file)?;
        let offer = outline.exports.iter().find(|it| outline.word(it.name) == full)?;
        let Offered::Local(path) = offer.what else { return None };
        Some((file, outline.node(outline.word(path))?))
    };
    found.into_iter().filter_map(node).collect()
}

/// What has a full name; each of several, as a guess.
pub(super) fn defined(resolver: &mut Resolver<'_>, family: &str, full: &str) -> Option<Value> {
    let all = all_of(resolver, family, full);
    resolver.one_of(&all)
}

/// What a path stands for that begins with the name of a namespace, or with none.
pub(super) fn by_path(resolver: &mut Resolver<'_>, family: &str, path: &str, depth: u32) -> Option<Value> {
    let mut end = path.len();
    loop {
        if let Some(first) = defined(resolver, family, &path[..end]) {
            let mut rest = path[end..].split('.').filter(|name| !name.is_empty());
            return rest.try_fold(first, |of, name| resolver.member(of, name, depth));
        }
        end = path[..end].rfind('.')?;
    }
}

/// A member of the types around a place, and of those above them.
pub(super) fn in_types_around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let mut next = around;
    while let Some(node) = next {
        let it = &outline.nodes[node as usize];
        if it.kind.has_members()
            && let Some(found) = resolver.member(Value::Symbol { file, node }, name, depth)
            && !has_its_types_name(resolver, found, name)
        {
            return Some(found);
        }
        next = it.parent;
    }
    None
}

/// Whether a member is called like its own type, so that the type may be meant.
fn has_its_types_name(resolver: &Resolver<'_>, found: Value, name: &str) -> bool {
    let Value::Symbol { file, node } = found else { return false };
    let Some(outline) = resolver.files.outline(file) else { return false };
    let instance = outline.nodes[node as usize].instance.map(|it| outline.word(it));
    instance.is_some_and(|it| it.rsplit('.').next() == Some(name))
}

/// What the namespaces that a file takes in, its own one first, have under a name; the members of a type are taken in as well.
pub(super) fn through_stars(
    resolver: &mut Resolver<'_>,
    family: &str,
    file: u32,
    name: &str,
    depth: u32,
) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    namespaces(outline).find_map(|of| through_star(resolver, family, of, name, depth))
}

/// What one namespace, or type, has under a name.
pub(super) fn through_star(
    resolver: &mut Resolver<'_>,
    family: &str,
    of: &str,
    name: &str,
    depth: u32,
) -> Option<Value> {
    if let Some(path) = of.strip_prefix(STATIC) {
        let of = by_path(resolver, family, path, depth)?;
        return resolver.member(of, name, depth);
    }
    defined(resolver, family, &beside(of, name))
}

/// The prefix of a type's name whose static members are imported.
const STATIC: &str = "static ";

/// A function by which the types of a name are extended, in one of some namespaces; else one for any type.
pub(super) fn extension(
    resolver: &mut Resolver<'_>,
    family: &str,
    seen: &[String],
    of: &str,
    name: &str,
) -> Option<Value> {
    if resolver.adding(&format!("{family}:+{name}")).is_empty() {
        return None;
    }
    let namespaces = || seen.iter().filter(|it| !it.starts_with(STATIC));
    [of, "*"].iter().find_map(|of| {
        let full = format!("{of}+{name}");
        namespaces().find_map(|namespace| defined(resolver, family, &beside(namespace, &full)))
    })
}

/// The full name of what is at the top of a file.
pub(super) fn of<'o>(outline: &'o Outline, path: &str) -> Option<&'o str> {
    let is_it = |what: Offered| matches!(what, Offered::Local(local) if outline.word(local) == path);
    let names = outline.exports.iter().filter(|it| is_it(it.what)).map(|it| outline.word(it.name));
    names.into_iter().find(|it| !it.contains(['+', '`']))
}

/// The namespaces that a file takes in; its own one first.
pub(super) fn namespaces(outline: &Outline) -> impl Iterator<Item = &str> {
    outline.stars.iter().map(|(spec, _)| outline.word(outline.specs[*spec as usize]))
}

pub(super) fn beside(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}
