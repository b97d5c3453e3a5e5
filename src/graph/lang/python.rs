//! Modules of Python: packages, dots, `__init__` files, `__all__` and `import *`.

use super::{PLAIN, Rules, Settings};
use crate::Files;
use crate::modules::{Tries, folder_of, joined};
use crate::outline::Outline;
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &ENDS,
    folder_file: "__init__",
    is_settings: |_| false,
    tries,
    package_of: |key, files| package_at(folder_of(key), files),
    or_module,
    export,
    through_stars,
    is_in_star,
    stars_bind: true,
    folder_is_module: false,
    names_itself: false,
    added: None,
    keys: None,
    around: None,
    by_path: None,
    extension: None,
    of_library: None,
    only_one: None,
    // A module of Python cannot be called, and `__init__` is looked up like any other method.
    whole: None,
    default: None,
    implied: None,
    ..PLAIN
};

const ENDS: [&str; 2] = [".py", ".pyi"];

fn tries(spec: &str, path: &str, files: &Files, _: &Settings) -> Tries {
    let mut tries = Tries::default();
    let folder = folder_of(path);
    let dots = spec.len() - spec.trim_start_matches('.').len();
    let below = spec[dots..].replace('.', "/");
    if dots > 0 {
        let up = "../".repeat(dots - 1);
        if let Some(at) = joined(folder, &format!("{up}{below}")) {
            add(&mut tries, &at);
        }
        return tries;
    }
    // The folders that Python searches depend on how it is started: in the folder of a script, in a package's own
    // folder's parent, in the root, in `src`. Folders that are packages are never among these.
    let mut around = folder;
    loop {
        tries.keys.push(around.to_owned());
        if package_at(around, files).is_none() {
            for base in [around.to_owned(), joined(around, "src").unwrap_or_default()] {
                add(&mut tries, &joined(&base, &below).unwrap_or_default());
            }
        }
        if around.is_empty() {
            return tries;
        }
        around = folder_of(around);
    }
}

/// Adds the file and the package that a path without its end may mean.
fn add(tries: &mut Tries, at: &str) {
    if !at.is_empty() {
        tries.paths.extend(ENDS.iter().map(|end| format!("{at}{end}")));
    }
    let init = init_of(at);
    tries.paths.extend(ENDS.iter().map(|end| format!("{init}{end}")));
    tries.keys.push(at.to_owned());
}

/// The `__init__` of a folder, without its end.
fn init_of(folder: &str) -> String {
    if folder.is_empty() { "__init__".to_owned() } else { format!("{folder}/__init__") }
}

/// The `__init__` file that makes a folder a package.
fn package_at(folder: &str, files: &Files) -> Option<u32> {
    let init = init_of(folder);
    ENDS.iter().find_map(|end| files.at(&format!("{init}{end}")))
}

/// `from . import x` may mean the module `.x`.
#[expect(clippy::unnecessary_wraps, reason = "the rules of other languages have none")]
fn or_module(from: &str, name: &str) -> Option<String> {
    let dot = if from.ends_with('.') { "" } else { "." };
    Some(format!("{from}{dot}{name}"))
}

fn export<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    let known = outline.knows(name);
    let found = resolver.at_top(file, outline, name, depth);
    if known {
        return found;
    }
    through_stars(resolver, file, outline, name, depth).or_else(|| submodule(resolver.files, file, name))
}

/// `b` of a package `a`, once an import of `a.b` has run.
fn submodule(files: &Files, file: u32, name: &str) -> Option<Value> {
    let path = files.path(file)?;
    let (folder, file_name) = (folder_of(path), path.rsplit('/').next()?);
    if !file_name.starts_with("__init__.") {
        return None;
    }
    let below = |rest: &str| format!("{folder}/{name}{rest}").trim_start_matches('/').to_owned();
    let tries = [".py", ".pyi", "/__init__.py", "/__init__.pyi"];
    tries.iter().find_map(|rest| files.at(&below(rest))).map(Value::Module)
}

/// The last one wins. Modules may pass on each other's names in circles; steps are counted.
fn through_stars<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    outline.stars.iter().rev().find_map(|(spec, _)| resolver.through_star(file, *spec, name, depth))
}

/// `__all__` says which names a star takes, where there is one and it is understood.
fn is_in_star(outline: &Outline, name: &str) -> bool {
    let mut named = outline.exports.iter().map(|offer| outline.word(offer.name)).peekable();
    let says_all = named.peek().is_some();
    let mut is_open = !says_all && !name.starts_with('_');
    for it in named {
        is_open |= it == name || (it == "*" && !name.starts_with('_'));
    }
    is_open
}
