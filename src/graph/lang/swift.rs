//! Modules of Swift: the files of a module see each other, and the imported symbols of other modules. `Package.swift` names the folders
//! of modules; without it, each folder in `Sources` or `Tests` is one. All other files are one module.
//!
//! An extension adds to a type from any file: `Store` is then a symbol of both files, and the type itself is the parent of the
//! extension's symbol.

use std::collections::BTreeSet;

use super::{PLAIN, Rules, swift_library};
use crate::modules::{folder_of, joined};
use crate::outline::Outline;
use crate::resolve::{Resolver, Value};
use provost_syntax::{ELSEWHERE, Kind};

pub(super) const RULES: Rules = Rules {
    ends: &[".swift"],
    keys: Some(keys),
    around: Some(around),
    added: Some(added),
    of_library: Some(of_library),
    by_path: Some(by_path),
    only_one: Some(only_one),
    implied: Some("init"),
    ..PLAIN
};

/// The key of the files that say where modules are.
const TARGETS: &str = "swift:@target";

/// The key of the files that pass modules on.
const PASSED_ON: &str = "swift:@exported";

/// The most files with one key that are examined.
const NAMESAKES_MAX: usize = 64;

/// The most modules that are passed on through others.
const PASSED_ON_MAX: usize = 64;

/// A module: the folder of its package, and its name; both empty for files outside of all modules.
pub(super) type Module = (String, String);

fn is_part(outline: &Outline, node: u32) -> bool {
    outline.nodes[node as usize].bases.iter().any(|base| outline.word(*base).starts_with(ELSEWHERE))
}

fn keys(_: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let mut found: BTreeSet<Box<str>> = BTreeSet::new();
    for (at, node) in (0..).zip(&*outline.nodes) {
        let (path, name) = (outline.word(node.path), outline.word(node.name));
        if node.parent.is_none() && is_part(outline, at) {
            found.insert(format!("swift:+{path}").into());
        } else if node.parent.is_none() && node.exported {
            found.insert(format!("swift:{path}").into());
        }
        // A part of a type that stands in the file of the type around it.
        if node.parent.is_none() && path != name && !is_part(outline, at) {
            found.insert(format!("swift:+{path}").into());
        }
        if node.parent.is_some() && matches!(node.kind, Kind::Method | Kind::Getter) && !node.declared {
            found.insert(format!("swift:.{name}").into());
        }
    }
    for offer in &outline.exports {
        let says = outline.word(offer.name).split(' ').next().unwrap_or_default();
        found.extend(says.starts_with('@').then(|| format!("swift:{says}").into()));
    }
    found
}

// Modules.

/// The module of a file.
fn module_of(resolver: &mut Resolver<'_>, file: u32) -> Module {
    if let Some(known) = resolver.modules.get(&file) {
        return known.clone();
    }
    let found = find_module(resolver, file);
    resolver.modules.insert(file, found.clone());
    found
}

fn find_module(resolver: &mut Resolver<'_>, file: u32) -> Module {
    let files = resolver.files;
    let path = files.path(file).unwrap_or_default();
    let mut nearest: Option<(u32, &str)> = None;
    for manifest in resolver.adding(TARGETS) {
        let folder = files.path(manifest).map_or("", folder_of);
        let is_around = folder.is_empty() || path.strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
        if is_around && nearest.is_none_or(|(_, known)| known.len() < folder.len()) {
            nearest = Some((manifest, folder));
        }
        if manifest == file {
            return (path.to_owned(), String::new());
        }
    }
    let Some((manifest, root)) = nearest else { return by_folder(path) };
    resolver.depends_on(manifest);
    let Some(outline) = files.outline(manifest) else { return by_folder(path) };
    let mut best: Option<(usize, &str)> = None;
    for offer in &outline.exports {
        let Some(said) = outline.word(offer.name).strip_prefix("@target ") else { continue };
        let Some((name, at)) = said.rsplit_once('=') else { continue };
        for folder in folders_of(name, at) {
            let Some(folder) = joined(root, &folder) else { continue };
            let is_in = folder.is_empty() || path.strip_prefix(&folder).is_some_and(|it| it.starts_with('/'));
            if is_in && best.is_none_or(|(length, _)| length < folder.len() + 1) {
                best = Some((folder.len() + 1, name));
            }
        }
    }
    match best {
        Some((_, name)) => (root.to_owned(), name.to_owned()),
        None => (root.to_owned(), String::new()),
    }
}

/// The folders in which a target may be, by what is said of its place.
fn folders_of(name: &str, at: &str) -> Vec<String> {
    let kinds: &[&str] = match at.strip_prefix('*') {
        None => return vec![at.to_owned()],
        Some("Tests") => &["Tests", "Sources", "Source", "src", "srcs"],
        Some("Plugins") => &["Plugins"],
        Some(_) => &["Sources", "Source", "src", "srcs"],
    };
    kinds.iter().map(|kind| format!("{kind}/{name}")).collect()
}

/// By convention, where no package says it.
fn by_folder(path: &str) -> Module {
    let parts: Vec<&str> = path.split('/').collect();
    let kind = parts.iter().rposition(|it| matches!(*it, "Sources" | "Tests"));
    match kind.filter(|at| at + 2 < parts.len()) {
        Some(at) => (parts[..at].join("/"), parts[at + 1].to_owned()),
        None => (String::new(), String::new()),
    }
}

/// The names of the modules that a file imports, with those that these pass on.
fn imported(resolver: &mut Resolver<'_>, file: u32) -> BTreeSet<String> {
    let files = resolver.files;
    let Some(outline) = files.outline(file) else { return BTreeSet::new() };
    let names = outline.stars.iter().map(|(spec, _)| outline.word(outline.specs[*spec as usize]).to_owned());
    let mut found: BTreeSet<String> = names.collect();
    let passing = resolver.adding(PASSED_ON);
    for _ in 0..PASSED_ON_MAX {
        let before = found.len();
        for other in passing.iter().take(NAMESAKES_MAX) {
            if !found.contains(&module_of(resolver, *other).1) {
                continue;
            }
            resolver.depends_on(*other);
            let Some(outline) = files.outline(*other) else { continue };
            let says =
                outline.exports.iter().filter_map(|it| outline.word(it.name).strip_prefix("@exported "));
            found.extend(says.map(ToOwned::to_owned));
        }
        if found.len() == before {
            break;
        }
    }
    found
}

/// Of files, those that a file sees: of its own module, or else of those that it imports.
fn seen_by(resolver: &mut Resolver<'_>, file: u32, mut all: Vec<u32>) -> Vec<u32> {
    let files = resolver.files;
    all.truncate(NAMESAKES_MAX);
    all.sort_by_key(|it| files.path(*it));
    let own = module_of(resolver, file);
    let of_own: Vec<u32> = all.iter().copied().filter(|it| module_of(resolver, *it) == own).collect();
    if !of_own.is_empty() {
        return of_own;
    }
    let imported = imported(resolver, file);
    all.retain(|it| imported.contains(&module_of(resolver, *it).1));
    all
}

// Names.

/// What is at the top of some file that a file sees.
fn defined(resolver: &mut Resolver<'_>, file: u32, name: &str) -> Option<Value> {
    let files = resolver.files;
    let key = (file, name.to_owned());
    if let Some(Some((file, node))) = resolver.chosen.get(&key).copied() {
        resolver.depends_on(file);
        return Some(Value::Symbol { file, node });
    }
    let found = resolver.adding(&format!("swift:{name}"));
    if found.is_empty() {
        return None;
    }
    let found = seen_by(resolver, file, found);
    let node = |it: u32| Some((it, files.outline(it)?.node(name)?));
    let all: Vec<(u32, u32)> = found.into_iter().filter_map(node).collect();
    if let [only] = all[..] {
        resolver.chosen.insert(key, Some(only));
    }
    resolver.one_of(&all)
}

/// Members of the types around first, then what the files of the module have at their tops, then those of imported modules.
fn around(
    resolver: &mut Resolver<'_>,
    (file, around): (u32, Option<u32>),
    name: &str,
    depth: u32,
) -> Option<Value> {
    if let Some(path) = name.strip_prefix(ELSEWHERE) {
        return itself(resolver, file, path, depth);
    }
    super::full_names::in_types_around(resolver, (file, around), name, depth)
        .or_else(|| defined(resolver, file, name))
        .or_else(|| only_extended(resolver, file, name))
}

/// The type that an extension adds to.
fn itself(resolver: &mut Resolver<'_>, file: u32, path: &str, depth: u32) -> Option<Value> {
    let mut names = path.split('.');
    let first = names.next()?;
    let outline = resolver.files.outline(file)?;
    // The type around may stand in the file itself.
    let here = outline.node(first).filter(|it| !is_part(outline, *it));
    let first = here.map(|node| Value::Symbol { file, node }).or_else(|| defined(resolver, file, first))?;
    names.try_fold(first, |of, name| resolver.member(of, name, depth))
}

/// A type from outside of the repository that some file extends: any of its extensions stands for it.
fn only_extended(resolver: &mut Resolver<'_>, file: u32, name: &str) -> Option<Value> {
    let found = resolver.adding(&format!("swift:+{name}"));
    let seen = if found.is_empty() { found } else { seen_by(resolver, file, found) };
    let first = *seen.first()?;
    let node = resolver.files.outline(first)?.node(name)?;
    resolver.depends_on(first);
    Some(Value::Symbol { file: first, node })
}

/// A path that begins with the name of a module.
fn by_path(resolver: &mut Resolver<'_>, file: u32, path: &str, depth: u32) -> Option<Value> {
    let files = resolver.files;
    let (module, rest) = path.split_once('.')?;
    if module_of(resolver, file).1 != module && !imported(resolver, file).contains(module) {
        return None;
    }
    let mut names = rest.split('.');
    let first = names.next()?;
    let mut found = resolver.adding(&format!("swift:{first}"));
    found.truncate(NAMESAKES_MAX);
    found.sort_by_key(|it| files.path(*it));
    let mut all: Vec<(u32, u32)> = Vec::new();
    for it in found {
        if module_of(resolver, it).1 == module
            && let Some(node) = files.outline(it).and_then(|outline| outline.node(first))
        {
            all.push((it, node));
        }
    }
    let first = resolver.one_of(&all)?;
    names.try_fold(first, |of, name| resolver.member(of, name, depth))
}

// Members that extensions add.

/// A member that an extension in another file adds to a type, or that a protocol brings which it says that the type keeps to.
fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, depth: u32) -> Option<Value> {
    let files = resolver.files;
    let outline = files.outline(file)?;
    let path = outline.path(node);
    // A look-up does not repeat itself within itself.
    let key = (file, format!("{path}+{name}"));
    if let Some(known) = resolver.chosen.get(&key) {
        return known.map(|(file, node)| Value::Symbol { file, node });
    }
    resolver.chosen.insert(key.clone(), None);
    let parts = resolver.adding(&format!("swift:+{path}"));
    let asking = resolver.asking();
    let mut parts: Vec<u32> = parts.into_iter().filter(|it| *it != file).take(NAMESAKES_MAX).collect();
    parts.sort_by_key(|it| files.path(*it));
    let (own, from) = (module_of(resolver, file), module_of(resolver, asking));
    let imports = if parts.is_empty() { BTreeSet::new() } else { imported(resolver, asking) };
    parts.retain(|it| {
        let of = module_of(resolver, *it);
        of == own || of == from || imports.contains(&of.1)
    });
    let whole = format!("{path}.{name}");
    let mut all = parts.iter().filter_map(|it| Some((*it, files.outline(*it)?.node(&whole)?)));
    // A type is where it is defined, and not where another extension adds to it.
    let is_defined = |(file, node): &(u32, u32)| files.outline(*file).is_some_and(|it| !is_part(it, *node));
    let added_to = all.clone().next();
    let found = match all.find(is_defined).or(added_to) {
        Some((file, node)) => {
            resolver.depends_on(file);
            Some(Value::Symbol { file, node })
        }
        None => parts.iter().find_map(|it| {
            let part = files.outline(*it)?.node(path)?;
            resolver.depends_on(*it);
            let own = Value::Symbol { file, node };
            let bases: Vec<Value> = resolver.bases(*it, part, depth + 1);
            bases
                .into_iter()
                .filter(|base| *base != own)
                .find_map(|base| resolver.member(base, name, depth + 1))
        }),
    };
    let found = found.or_else(|| {
        let bases = outline.nodes[node as usize].bases.iter().map(|it| outline.word(*it));
        bases.map(|it| it.trim_start_matches(ELSEWHERE)).find_map(|of| {
            // A protocol of one's own may have the name of one of the library's.
            let is_own = !swift_library::kept_to_by(of).is_empty() && is_own(resolver, file, of);
            if is_own { None } else { of_library(resolver, of, name) }
        })
    });
    if let Some(Value::Symbol { file, node }) = found {
        resolver.chosen.insert(key, Some((file, node)));
    } else {
        resolver.chosen.remove(&key);
    }
    found
}

/// Whether what a file calls by this name is defined in it or in a module that it sees, and so is not the library's.
fn is_own(resolver: &mut Resolver<'_>, file: u32, name: &str) -> bool {
    let outline = resolver.files.outline(file);
    let is_here = outline.is_some_and(|it| it.node(name).is_some_and(|node| !is_part(it, node)));
    is_here || defined(resolver, file, name).is_some()
}

/// A method that an extension adds to a protocol of Swift's own library, for a type of that library that keeps to it. The narrowest
/// protocol counts. A name that the library has itself may be meant as such.
fn of_library(resolver: &mut Resolver<'_>, of: &str, name: &str) -> Option<Value> {
    if resolver.outline.language.has_built_in(name) {
        return None;
    }
    let (files, asking) = (resolver.files, resolver.asking());
    for protocol in swift_library::kept_to_by(of) {
        let parts = resolver.adding(&format!("swift:+{protocol}"));
        let seen = if parts.is_empty() { parts } else { seen_by(resolver, asking, parts) };
        let whole = format!("{protocol}.{name}");
        let found: Vec<(u32, u32)> =
            seen.into_iter().filter_map(|it| Some((it, files.outline(it)?.node(&whole)?))).collect();
        // What such an extension adds to is resolved where it stands.
        let mut all = found.into_iter().filter(|(file, _)| !is_own(resolver, *file, protocol));
        let Some((file, node)) = all.next() else { continue };
        // Several files add the name to one protocol.
        if all.next().is_some() {
            return None;
        }
        resolver.depends_on(file);
        return Some(Value::Symbol { file, node });
    }
    None
}

/// The only method of its name in what the asking file sees.
fn only_one(resolver: &mut Resolver<'_>, name: &str) -> Option<Value> {
    let found = resolver.adding(&format!("swift:.{name}"));
    if found.len() > NAMESAKES_MAX {
        return None;
    }
    let (asking, mut seen) = (resolver.asking(), Vec::new());
    let own = module_of(resolver, asking);
    let imports = if found.is_empty() { BTreeSet::new() } else { imported(resolver, asking) };
    for it in found {
        let of = module_of(resolver, it);
        if of == own || imports.contains(&of.1) {
            seen.push(it);
        }
    }
    match seen[..] {
        [only] => resolver.only_member_in(only, name),
        _ => None,
    }
}
