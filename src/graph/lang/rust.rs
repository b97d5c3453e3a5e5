//! Modules of Rust: a crate begins with a file, `mod` leads from file to file, and paths lead from module to module.

use super::{PLAIN, Rules, Settings, rust_settings, through_any_star};
use crate::Files;
use crate::modules::{Tries, folder_of, joined};
use crate::outline::{Node, Outline};
use crate::resolve::{Resolver, Value};
use provost_syntax::{ELSEWHERE, Kind};
use std::collections::BTreeSet;

pub(super) const RULES: Rules = Rules {
    ends: &[END],
    folder_file: "mod",
    is_settings: rust_settings::is_settings,
    tries,
    package_of: |key, files| parents(&format!("{key}{END}")).iter().find_map(|path| files.at(path)),
    or_module: |_, _| None,
    export,
    through_stars: through_any_star,
    is_in_star: |_, _| true,
    stars_bind: true,
    folder_is_module: false,
    names_itself: true,
    added: Some(added),
    keys: Some(keys),
    around: None,
    by_path: None,
    extension: None,
    of_library: None,
    only_one: None,
    guesses_behind_unknown: true,
    declaration_counts: true,
    code_of: Some(code_of),
    whole: None,
    default: None,
    implied: None,
    ..PLAIN
};

const END: &str = ".rs";

/// Folders in which each file is a crate of its own.
const CRATES_IN: [&str; 4] = ["tests", "examples", "benches", "bin"];

fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The name of a file without its end.
fn stem_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(END).unwrap_or(name)
}

/// Whether the modules below a file are beside it, by its name and place.
fn is_of_folder(path: &str) -> bool {
    let folder = folder_of(path).rsplit('/').next().unwrap_or_default();
    matches!(stem_of(path), "mod" | "lib" | "main") || CRATES_IN.contains(&folder)
}

/// The folder of the modules below a file.
fn inner_folder(path: &str) -> String {
    if is_of_folder(path) {
        folder_of(path).to_owned()
    } else {
        path.strip_suffix(END).unwrap_or(path).to_owned()
    }
}

/// The files that may be the module around a file.
fn parents(path: &str) -> Vec<String> {
    let folder = folder_of(path);
    let around = if stem_of(path) == "mod" { folder_of(folder) } else { folder };
    if stem_of(path) == "mod" && folder.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<String> =
        ["mod.rs", "lib.rs", "main.rs"].iter().map(|name| beside(around, name)).collect();
    if !around.is_empty() {
        found.insert(1, format!("{around}{END}"));
    }
    found.retain(|it| it != path);
    found
}

/// Adds the files that a module below a folder may be in.
fn add(tries: &mut Tries, folder: &str, names: &[&str]) {
    let Some(at) = joined(folder, &names.join("/")) else { return };
    tries.paths.extend([format!("{at}{END}"), beside(&at, "mod.rs")]);
    tries.keys.push(at);
}

fn add_file(tries: &mut Tries, path: &str) {
    tries.paths.push(path.to_owned());
    tries.keys.push(RULES.stem(path).to_owned());
    if stem_of(path) == RULES.folder_file {
        tries.keys.push(folder_of(path).to_owned());
    }
}

/// Where a path leads: `crate`, `super`, `self`, a module below this one or a crate, and names of modules behind it.
fn tries(spec: &str, path: &str, files: &Files, settings: &Settings) -> Tries {
    let mut tries = Tries::default();
    if let Some(file) = spec.strip_prefix("path:") {
        if let Some(at) = joined(folder_of(path), file) {
            add_file(&mut tries, &at);
        }
        return tries;
    }
    let names: Vec<&str> = spec.split("::").collect();
    let (first, rest) = names.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    match first {
        "self" if rest.is_empty() => add_file(&mut tries, path),
        "self" => add(&mut tries, &own_folder(path, settings), rest),
        "super" => up(&mut tries, path, rest, files),
        "crate" => {
            for root in roots(path, files, settings, &mut tries) {
                if rest.is_empty() {
                    add_file(&mut tries, &root);
                } else {
                    add(&mut tries, folder_of(&root), rest);
                }
            }
        }
        _ => {
            add(&mut tries, &own_folder(path, settings), &names);
            if let Some(library) = settings.rust.library(first, path) {
                if rest.is_empty() {
                    add_file(&mut tries, library);
                } else {
                    add(&mut tries, folder_of(library), rest);
                }
            }
        }
    }
    tries
}

/// The folder of the modules below a file, which may begin a crate under any name.
fn own_folder(path: &str, settings: &Settings) -> String {
    let is_root = settings.rust.roots(path).contains(&path);
    if is_root { folder_of(path).to_owned() } else { inner_folder(path) }
}

/// `super`, as often as it is said.
fn up(tries: &mut Tries, path: &str, rest: &[&str], files: &Files) {
    let mut rest = rest;
    let mut at = parents(path);
    while let Some((&"super", behind)) = rest.split_first() {
        rest = behind;
        let here = at.iter().find(|path| files.at(path).is_some());
        at = here.map_or(Vec::new(), |path| parents(path));
    }
    for parent in &at {
        if rest.is_empty() {
            add_file(tries, parent);
        } else {
            add(tries, &inner_folder(parent), rest);
        }
    }
}

/// The first files of the crate that a file is of, the most likely first.
fn roots(path: &str, files: &Files, settings: &Settings, tries: &mut Tries) -> Vec<String> {
    let known = settings.rust.roots(path);
    if known.contains(&path) {
        return vec![path.to_owned()];
    }
    let mut found: Vec<String> = Vec::new();
    let mut folder = folder_of(path);
    // By their names, where nothing says it: a file in `tests` begins a crate, and a folder there has a `main.rs`.
    loop {
        for name in ["lib.rs", "main.rs"] {
            let root = beside(folder, name);
            tries.keys.push(RULES.stem(&root).to_owned());
            found.extend(files.at(&root).map(|_| root));
        }
        let in_crates = CRATES_IN.contains(&folder.rsplit('/').next().unwrap_or_default());
        if in_crates && found.is_empty() && folder == folder_of(path) {
            found.push(path.to_owned());
        }
        if folder.is_empty() {
            break;
        }
        folder = folder_of(folder);
    }
    let depth = |root: &String| folder_of(root).len();
    found.extend(known.into_iter().map(ToOwned::to_owned));
    found.sort_by_key(|root| std::cmp::Reverse(depth(root)));
    let nearest = found.first().map(depth);
    found.retain(|root| Some(depth(root)) == nearest);
    found.dedup();
    found
}

/// What a module offers under a name, or along several: items, what it takes in, and the modules below it.
fn export<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    let (first, rest) = name.split_once('.').map_or((name, ""), |(first, rest)| (first, rest));
    let found = match first {
        "self" => Some(Value::Module(file)),
        "super" => {
            let path = resolver.files.path(file)?;
            parents(path).iter().find_map(|path| resolver.files.at(path)).map(Value::Module)
        }
        // A module goes before a function of its name where something is behind it.
        _ if !rest.is_empty() => {
            let module =
                if outline.node(first).is_none() { below(resolver.files, file, first) } else { None };
            module.or_else(|| item(resolver, file, outline, first, depth))
        }
        _ => item(resolver, file, outline, first, depth).or_else(|| below(resolver.files, file, first)),
    };
    let mut value = found?;
    for name in rest.split('.').filter(|name| !name.is_empty()) {
        value = inner(resolver, value, name, depth)?;
    }
    Some(value)
}

fn item<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    if outline.knows(name) {
        return resolver.at_top(file, outline, name, depth);
    }
    through_any_star(resolver, file, outline, name, depth)
}

/// What a module within a file takes in, it has as well.
fn inner<'g>(resolver: &mut Resolver<'g>, of: Value, name: &str, depth: u32) -> Option<Value> {
    if let Some(found) = resolver.member(of, name, depth) {
        return Some(found);
    }
    let Value::Symbol { file, node } = of else { return None };
    let outline = resolver.files.outline(file)?;
    let binding = outline.binding_within(node, name)?;
    resolver.bound(file, binding, depth + 1)
}

/// The file of a module below another one.
fn below(files: &Files, file: u32, name: &str) -> Option<Value> {
    let folder = inner_folder(files.path(file)?);
    let at = beside(&folder, name);
    [format!("{at}{END}"), beside(&at, "mod.rs")].iter().find_map(|path| files.at(path)).map(Value::Module)
}

/// The types of other files to which a file adds, and the traits that it implements.
fn keys(_: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let mut found = outline.adds();
    let traits = outline.nodes.iter().filter_map(|it| implemented(outline, it));
    found.extend(traits.map(|of| implementation_key(of).into()));
    found
}

/// The key of the files that implement a trait of a name.
fn implementation_key(of: &str) -> String {
    format!("impl {of}")
}

/// The last name of the trait that an `impl` is of, whose path is that of its type and the trait's name.
fn implemented<'g>(outline: &'g Outline, node: &Node) -> Option<&'g str> {
    let path = outline.word(node.path);
    let [base] = node.bases[..] else { return None };
    let base = outline.word(base);
    // A type in a module has its own `impl`s as bases.
    let is_own = base.strip_prefix(path).is_some_and(|it| it.starts_with('.')) || base.starts_with(ELSEWHERE);
    let is_one = node.kind == Kind::Class && path.contains('.') && !is_own;
    is_one.then(|| base.rsplit('.').next().unwrap_or(base))
}

/// The code of what a trait declares, if all repository's files together have only one `impl` of a trait of that name.
fn code_of(resolver: &mut Resolver<'_>, (file, node): (u32, u32)) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let declared = &outline.nodes[node as usize];
    let around = &outline.nodes[declared.parent? as usize];
    let (of, name) = (outline.word(around.name), outline.word(declared.name));
    let [only] = resolver.adding_at_most(&implementation_key(of), 1)[..] else { return None };
    let there = resolver.outline_of(only)?;
    let is_of = |it: &Node| implemented(there, it) == Some(of);
    let mut all = (0..).zip(&*there.nodes).filter(|(_, it)| is_of(it)).map(|(at, _)| at);
    let (implementation, None) = (all.next()?, all.next()) else { return None };
    let node = there.node(&format!("{}.{name}", there.path(implementation)))?;
    Some(Value::Symbol { file: only, node })
}

/// The most files that are examined for additions to types of one name; there are thousands of types called `Error`.
const ADDING_MAX: usize = 256;

/// An `impl` in another file adds to the type that this file has under its name.
fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, depth: u32) -> Option<Value> {
    let files = resolver.files;
    let outline = files.outline(file)?;
    let it = &outline.nodes[node as usize];
    if it.parent.is_some() {
        return None;
    }
    let own = outline.word(it.name);
    let local = format!("{ELSEWHERE}{own}");
    let others = resolver.adding(own).into_iter().filter(|other| *other != file);
    for other in others.take(ADDING_MAX) {
        let Some(adding) = files.outline(other) else { continue };
        let Some(found) = adding.member_of_type(own, name) else { continue };
        let mut bindings = adding.bindings_named(&local);
        if bindings.any(|it| resolver.bound(other, it, depth + 1) == Some(Value::Symbol { file, node })) {
            resolver.depends_on(other);
            return Some(Value::Symbol { file: other, node: found });
        }
    }
    None
}
