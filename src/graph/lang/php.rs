//! Modules of PHP: a file's definitions are known by their full names, with the namespace, to every file that has loaded it.
//! `composer.json` maps namespaces to files, and so does `require` of a path that is written out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{PLAIN, Rules, Settings as All};
use crate::Files;
use crate::modules::{Tries, folder_of, joined};
use crate::outline::{Offered, Outline};
use crate::resolve::{Resolver, Value};
use provost_base::limits::SETTINGS_ROWS_MAX;
use provost_syntax::Kind;

pub(super) const RULES: Rules = Rules {
    ends: &[END],
    is_settings,
    tries,
    names_itself: true,
    keys: Some(keys),
    around: Some(around),
    only_one: Some(only_one),
    ..PLAIN
};

const END: &str = ".php";

/// The folders of namespaces, by the folders of their `composer.json`.
#[derive(Default, Debug)]
pub(super) struct Settings {
    packages: BTreeMap<Box<str>, Prefixes>,
}

/// The prefixes of full names, each with the folder in which the rest of the name is looked for.
type Prefixes = Vec<(Box<str>, Box<str>)>;

pub(super) fn is_settings(path: &str) -> bool {
    path.rsplit('/').next() == Some("composer.json")
}

impl Settings {
    /// Takes a `composer.json` in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        let folder = folder_of(path);
        let said = text.and_then(|text| serde_json::from_str::<Json>(text).ok());
        let prefixes = said.map(|said| prefixes(folder, &said));
        let differs = self.packages.get(folder) != prefixes.as_ref();
        match prefixes {
            Some(prefixes) => self.packages.insert(folder.into(), prefixes),
            None => self.packages.remove(folder),
        };
        differs
    }
}

fn prefixes(folder: &str, said: &Json) -> Prefixes {
    let mut found = Prefixes::new();
    for part in ["autoload", "autoload-dev"] {
        for (kind, keeps_prefix) in [("psr-4", false), ("psr-0", true)] {
            let rows = said.get(part).and_then(|it| it.get(kind)).and_then(Json::as_object);
            for (prefix, folders) in rows.into_iter().flatten().take(SETTINGS_ROWS_MAX) {
                let several = folders.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(folders));
                for below in several.iter().take(SETTINGS_ROWS_MAX).filter_map(Json::as_str) {
                    let below = if keeps_prefix {
                        format!("{below}/{}", prefix.replace('\\', "/"))
                    } else {
                        below.to_owned()
                    };
                    found.extend(joined(folder, &below).map(|at| (prefix.as_str().into(), at.into())));
                }
            }
        }
    }
    // The longest beginning counts.
    found.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    found
}

/// Where a class or a file that is written out may be.
fn tries(spec: &str, path: &str, _: &Files, settings: &All) -> Tries {
    let mut tries = Tries::default();
    let mut add = |at: Option<String>| {
        if let Some(at) = at.filter(|at| !at.is_empty()) {
            tries.keys.push(RULES.stem(&at).to_owned());
            tries.paths.push(at);
        }
    };
    if spec.contains(['/', '.']) {
        let mut folder = folder_of(path);
        add(joined(folder, spec));
        while !spec.starts_with('.') && !folder.is_empty() {
            folder = folder_of(folder);
            add(joined(folder, spec));
        }
    } else if !spec.starts_with('\\') {
        for (prefix, folder) in settings.php.packages.values().flatten() {
            if let Some(rest) = spec.strip_prefix(&**prefix) {
                add(joined(folder, &format!("{}{END}", rest.trim_start_matches('\\').replace('\\', "/"))));
            }
        }
    }
    tries
}

/// Upper and lower case are the same in names of classes and functions.
fn key_of(name: &str) -> String {
    format!("php:{}", name.to_ascii_lowercase())
}

fn name_key_of(name: &str) -> String {
    format!("php#{name}")
}

/// What is exported, by its full name, and methods by their names.
fn keys(_: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let exported = outline.exports.iter().map(|offer| key_of(outline.word(offer.name)).into());
    let methods = outline.nodes.iter().filter(|node| node.kind == Kind::Method && !node.declared);
    exported.chain(methods.map(|node| name_key_of(outline.word(node.name)).into())).collect()
}

/// A name in full, or one of the namespace around; a function that is not there is one of no namespace.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    _: u32,
) -> Option<Value> {
    if let Some(full) = name.strip_prefix('\\') {
        return named(resolver, file, &full.replace('\\', "."));
    }
    let outline = resolver.files.outline(file)?;
    let mut namespaces: BTreeSet<String> = BTreeSet::new();
    let mut at = around;
    while let Some(node) = at {
        let it = &outline.nodes[node as usize];
        if it.kind == Kind::Namespace {
            namespaces.insert(outline.path(node).to_owned());
        }
        at = it.parent;
    }
    if namespaces.is_empty() {
        let own = outline.stars.iter().map(|(spec, _)| outline.word(outline.specs[*spec as usize]));
        namespaces.extend(own.map(|it| it.trim_start_matches('\\').replace('\\', ".")));
    }
    let within = namespaces.iter().filter(|it| !it.is_empty());
    let mut full: Vec<String> = within.map(|before| format!("{before}.{name}")).collect();
    if full.is_empty() || name.starts_with(|it: char| it.is_lowercase() || it == '_') {
        full.push(name.to_owned());
    }
    full.iter().find_map(|full| named(resolver, file, full))
}

/// What any file defines under a full name: where it is loaded from, else the only one; each of several counts, as a guess.
fn named(resolver: &mut Resolver<'_>, from: u32, full: &str) -> Option<Value> {
    let files = resolver.files;
    let mut all: Vec<(u32, u32)> = Vec::new();
    for file in resolver.adding(&key_of(full)) {
        let Some(node) = files.outline(file).and_then(|outline| offered(outline, full)) else { continue };
        let is_loaded = file == from || files.get(from).is_some_and(|it| it.links.contains(&Some(file)));
        if is_loaded {
            resolver.depends_on(file);
            return Some(Value::Symbol { file, node });
        }
        all.push((file, node));
    }
    all.sort_by_key(|(file, _)| files.path(*file));
    resolver.one_of(&all)
}

/// The symbol that a file exports under a full name.
fn offered(outline: &Outline, full: &str) -> Option<u32> {
    let same = outline.exports.iter().filter(|it| outline.word(it.name).eq_ignore_ascii_case(full));
    let found: Vec<(bool, u32)> = same
        .filter_map(|offer| match offer.what {
            Offered::Local(path) => {
                Some((outline.word(offer.name) == full, outline.node(outline.word(path))?))
            }
            Offered::Passed { .. } => None,
        })
        .collect();
    let exact = found.iter().find(|(is_exact, _)| *is_exact);
    // Of constants the case counts.
    let other = found.iter().find(|(_, node)| outline.nodes[*node as usize].kind != Kind::Variable);
    exact.or(other).map(|(_, node)| *node)
}

/// The only method of its name.
fn only_one(resolver: &mut Resolver<'_>, name: &str) -> Option<Value> {
    let found = resolver.adding(&name_key_of(name));
    match found[..] {
        [only] => resolver.only_member_in(only, name),
        _ => None,
    }
}
