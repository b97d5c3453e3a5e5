//! Modules of Go: a folder is a package, whose files see each other; `go.mod` has the path by which others import it.

use std::collections::{BTreeMap, BTreeSet};

use super::{PLAIN, Rules, Settings as All};
use crate::Files;
use crate::modules::{Tries, folder_of, joined, key_of};
use crate::outline::Outline;
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &[END],
    folder_file: "",
    is_settings,
    tries,
    package_of: |_, _| None,
    or_module: |_, _| None,
    export,
    through_stars,
    is_in_star: |_, _| true,
    stars_bind: true,
    folder_is_module: true,
    names_itself: true,
    added: Some(added),
    keys: Some(keys),
    around: None,
    by_path: None,
    extension: None,
    of_library: None,
    only_one: None,
    whole: None,
    default: None,
    implied: None,
    ..PLAIN
};

const END: &str = ".go";

/// The end of the names of test files, whose definitions other files of the package do not see.
const TEST_END: &str = "_test.go";

/// The paths of modules, by the folders of their `go.mod`.
#[derive(Default, Debug)]
pub(super) struct Settings {
    modules: BTreeMap<Box<str>, Box<str>>,
}

pub(super) fn is_settings(path: &str) -> bool {
    path.rsplit('/').next() == Some("go.mod")
}

impl Settings {
    /// Takes a `go.mod` in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        let named = text.and_then(|text| {
            let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
            lines
                .find_map(|line| line.strip_prefix("module"))
                .map(|name| name.trim().trim_matches('"').into())
        });
        let folder = folder_of(path);
        let differs = self.modules.get(folder) != named.as_ref();
        match named {
            Some(named) => self.modules.insert(folder.into(), named),
            None => self.modules.remove(folder),
        };
        differs
    }
}

/// What a file has at its top, under its folder.
fn keys(path: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    outline.tops().map(|name| key_of(folder_of(path), name).into()).collect()
}

fn tries(spec: &str, path: &str, files: &Files, settings: &All) -> Tries {
    let mut tries = Tries::default();
    let mut add = |folder: &str| {
        tries.keys.push(folder.to_owned());
        let all = files.in_folder(folder);
        let paths = || all.iter().filter_map(|file| files.path(*file));
        tries.paths.extend(paths().find(|path| !path.ends_with(TEST_END)).map(ToOwned::to_owned));
        tries.paths.extend(paths().next().map(ToOwned::to_owned));
    };
    if spec == "." {
        add(folder_of(path));
        return tries;
    }
    for (folder, module) in &settings.go.modules {
        let rest = spec.strip_prefix(&**module).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(at) = rest.and_then(|rest| joined(folder, rest)) {
            add(&at);
        }
        if let Some(at) = joined(folder, &format!("vendor/{spec}")) {
            add(&at);
        }
    }
    // As it was before there were modules.
    if settings.go.modules.is_empty() {
        add(spec);
    }
    tries
}

/// What any file of the package defines under a name; files for other systems may define it as well.
fn export<'g>(resolver: &mut Resolver<'g>, file: u32, _: &'g Outline, name: &str, _: u32) -> Option<Value> {
    defined(resolver, file, name)
}

fn defined(resolver: &mut Resolver<'_>, file: u32, name: &str) -> Option<Value> {
    let files = resolver.files;
    let folder = folder_of(files.path(file)?);
    let found = resolver.adding(&key_of(folder, name));
    let asking = resolver.asking();
    let is_of_tests = |file: u32| files.path(file).is_some_and(|path| path.ends_with(TEST_END));
    let sees_tests = is_of_tests(asking) && files.path(asking).map(folder_of) == Some(folder);
    // A definition in the asking file takes precedence over all others.
    let mut all: Vec<u32> = found.iter().filter(|it| **it == asking).copied().collect();
    if all.is_empty() {
        all.extend(found.into_iter().filter(|it| sees_tests || !is_of_tests(*it)));
    }
    all.sort_by_key(|it| files.path(*it));
    let node = |it: u32| Some((it, files.outline(it)?.node(name)?));
    let all: Vec<(u32, u32)> = all.into_iter().filter_map(node).collect();
    resolver.one_of(&all)
}

/// Of the own package first, then of what is imported with a dot.
fn through_stars<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    outline.stars.iter().find_map(|(spec, _)| resolver.through_star(file, *spec, name, depth))
}

/// A method may be in any file of its type's package.
fn added(resolver: &mut Resolver<'_>, (file, node): (u32, u32), name: &str, _: u32) -> Option<Value> {
    let outline = resolver.files.outline(file)?;
    let it = &outline.nodes[node as usize];
    let own = outline.word(it.name);
    if it.parent.is_some() {
        return None;
    }
    defined(resolver, file, &format!("{own}.{name}"))
}
