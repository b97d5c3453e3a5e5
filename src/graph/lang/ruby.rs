//! Modules of Ruby: constants are known to every file, by the modules around and the ancestors; a class may be opened again in any
//! file. If several files define a name, `require` decides, and so does the convention by which autoloaders name files.

use std::collections::BTreeSet;

use super::{PLAIN, Rules, Settings};
use crate::Files;
use crate::modules::{Tries, folder_of, joined};
use crate::outline::Outline;
use crate::resolve::{Resolver, Value};
use provost_syntax::Kind;

pub(super) const RULES: Rules = Rules {
    ends: &[END],
    tries,
    names_itself: true,
    added: Some(added),
    keys: Some(keys),
    around: Some(around),
    only_one: Some(only_one),
    ..PLAIN
};

const END: &str = ".rb";

/// The most parts of one class whose superclasses and mixins are examined; a module that is only a namespace has thousands.
const PARTS_MAX: usize = 64;

/// Where a file may be: beside the requiring one, or in the folders that are usually looked through.
fn tries(spec: &str, path: &str, _: &Files, _: &Settings) -> Tries {
    let mut tries = Tries::default();
    let mut add = |at: Option<String>| {
        if let Some(at) = at {
            tries.keys.push(RULES.stem(&at).to_owned());
            if !at.ends_with(END) {
                tries.paths.push(format!("{at}{END}"));
            }
            tries.paths.push(at);
        }
    };
    if spec.starts_with("./") {
        add(joined(folder_of(path), spec));
        return tries;
    }
    if let Some(rest) = spec.strip_prefix('/') {
        add(joined("", rest));
        return tries;
    }
    let mut folder = folder_of(path);
    loop {
        for below in ["lib/", "", "app/", "test/", "spec/"] {
            add(joined(folder, &format!("{below}{spec}")));
        }
        if folder.is_empty() {
            return tries;
        }
        folder = folder_of(folder);
    }
}

fn key_of(path: &str) -> String {
    format!("rb:{path}")
}

/// Methods by their own name alone.
fn name_key_of(name: &str) -> String {
    format!("rb#{name}")
}

/// Everything that is not within a method, by its path, and methods by their names.
fn keys(_: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let mut found = BTreeSet::new();
    for node in &*outline.nodes {
        let parent = node.parent.map(|it| outline.nodes[it as usize].kind);
        if parent.is_some_and(|it| it.is_callable()) {
            continue;
        }
        found.insert(key_of(outline.word(node.path)).into());
        if node.kind.is_callable() && node.kind != Kind::Function {
            found.insert(name_key_of(outline.word(node.name)).into());
        }
    }
    found
}

/// A constant or a method that a file itself does not have.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    if let Some(whole) = name.strip_prefix("::") {
        return anywhere(resolver, file, whole);
    }
    let outline = resolver.files.outline(file)?;
    let is_constant = name.starts_with(char::is_uppercase);
    let mut at = around;
    let mut is_first = true;
    while let Some(node) = at {
        let it = &outline.nodes[node as usize];
        if it.kind.has_members() {
            let path = outline.path(node);
            if is_constant && let Some(found) = anywhere(resolver, file, &format!("{path}.{name}")) {
                return Some(found);
            }
            // Only of the innermost module are the ancestors searched.
            if is_first && let Some(found) = resolver.member(Value::Symbol { file, node }, name, depth) {
                return Some(found);
            }
            is_first = false;
        }
        at = it.parent;
    }
    if is_constant { anywhere(resolver, file, name) } else { function(resolver, file, name) }
}

/// What any file defines under a path. A class is where its name says by convention, else where it is required, else where its
/// superclass is said, else in the nearest file.
fn anywhere(resolver: &mut Resolver<'_>, from: u32, path: &str) -> Option<Value> {
    let files = resolver.files;
    if let Some(node) = files.outline(from)?.node(path) {
        return Some(Value::Symbol { file: from, node });
    }
    let key = (from, path.to_owned());
    let chosen = match resolver.chosen.get(&key) {
        Some(chosen) => *chosen,
        None => {
            let chosen = chosen(resolver, from, path);
            resolver.chosen.insert(key, chosen);
            chosen
        }
    };
    let (file, node) = chosen?;
    resolver.depends_on(file);
    Some(Value::Symbol { file, node })
}

fn chosen(resolver: &mut Resolver<'_>, from: u32, path: &str) -> Option<(u32, u32)> {
    let files = resolver.files;
    let found = resolver.adding(&key_of(path));
    let here = files.path(from).unwrap_or_default();
    let score = |file: &u32| {
        let (outline, at) = (files.outline(*file)?, files.path(*file)?);
        let node = outline.node(path)?;
        let is_named = is_named_after(at.strip_suffix(END).unwrap_or(at), path);
        let has_base = !outline.nodes[node as usize].bases.is_empty();
        let common = here.bytes().zip(at.bytes()).take_while(|(a, b)| a == b).count();
        let linked = files.get(from).is_some_and(|it| it.links.contains(&Some(*file)));
        Some(((!is_named, !linked, !has_base, std::cmp::Reverse(common), at), node))
    };
    let best = found.iter().filter_map(|file| Some((score(file)?, *file))).min()?;
    let ((_, node), file) = best;
    Some((file, node))
}

/// Whether a file has the name that autoloaders look for: `a/http_client` for `A.HTTPClient`.
fn is_named_after(stem: &str, path: &str) -> bool {
    let mut written = stem.bytes().rev().filter(|it| *it != b'_').map(|it| it.to_ascii_lowercase());
    let wanted = path.bytes().rev().filter(|it| *it != b'_');
    let mut wanted = wanted.map(|it| if it == b'.' { b'/' } else { it.to_ascii_lowercase() });
    wanted.all(|it| written.next() == Some(it)) && written.next().is_none_or(|it| it == b'/')
}

/// A function at the top of a file is known to all that load the file; where that cannot be told, each is a guess.
fn function(resolver: &mut Resolver<'_>, from: u32, name: &str) -> Option<Value> {
    let files = resolver.files;
    let mut all: Vec<(u32, u32)> = Vec::new();
    for file in resolver.adding(&key_of(name)) {
        let Some(outline) = files.outline(file) else { continue };
        let is_function = |node: &u32| outline.nodes[*node as usize].kind == Kind::Function;
        let Some(node) = outline.node(name).filter(is_function) else { continue };
        if file == from {
            return Some(Value::Symbol { file, node });
        }
        if files.get(from).is_some_and(|it| it.links.contains(&Some(file))) {
            resolver.depends_on(file);
            return Some(Value::Symbol { file, node });
        }
        all.push((file, node));
    }
    all.sort_by_key(|(file, _)| files.path(*file));
    // The same one twice is as unsure as two.
    if let [only] = all[..] {
        all.push(only);
    }
    resolver.one_of(&all)
}

/// A method that another file adds to a class, or that another part of it takes in. What an accessor writes has the name by which it
/// is read.
fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, depth: u32) -> Option<Value> {
    let path = resolver.files.outline(file)?.path(node);
    // Classes and mixins are come to by many ways; what is being looked for is not looked for again within itself.
    let key = (file, format!("{path}+{name}"));
    if let Some(known) = resolver.chosen.get(&key) {
        return known.map(|(file, node)| Value::Symbol { file, node });
    }
    resolver.chosen.insert(key.clone(), None);
    let found = anywhere(resolver, file, &format!("{path}.{name}"));
    let found = found.or_else(|| above_other_parts(resolver, (file, path), name, depth));
    if let Some(Value::Symbol { file, node }) = found {
        resolver.chosen.insert(key, Some((file, node)));
    }
    let read = name.strip_suffix('=').filter(|it| it.ends_with(char::is_alphanumeric));
    found.or_else(|| read.and_then(|read| resolver.member(Value::Symbol { file, node }, read, depth)))
}

fn above_other_parts(
    resolver: &mut Resolver<'_>,
    (file, path): (u32, &str),
    name: &str,
    depth: u32,
) -> Option<Value> {
    let files = resolver.files;
    let parts = resolver.adding(&key_of(path));
    if parts.len() > PARTS_MAX {
        return None;
    }
    let mut others: Vec<u32> = parts.into_iter().filter(|it| *it != file).collect();
    others.sort_by_key(|it| files.path(*it));
    others.into_iter().find_map(|other| {
        let node = files.outline(other)?.node(path)?;
        resolver.depends_on(other);
        resolver.above(other, node, name, depth + 1)
    })
}

/// The only method of its name.
fn only_one(resolver: &mut Resolver<'_>, name: &str) -> Option<Value> {
    let found = resolver.adding(&name_key_of(name));
    match found[..] {
        [only] => resolver.only_member_in(only, name),
        _ => None,
    }
}
