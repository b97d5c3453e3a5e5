//! Files of C and C++: the target of an `#include`. [`super::c_calls`] follows calls from there.

use std::collections::BTreeSet;

use super::{Follows, PLAIN, Rules, Settings, c_calls, c_settings};
use crate::Files;
use crate::modules::{Tries, folder_of, joined, name_key};
use crate::outline::Outline;

pub(super) const RULES: Rules = Rules {
    is_settings: c_settings::is_settings,
    tries,
    keys: Some(keys),
    names_itself: true,
    follows: Some(&Follows { targets: c_calls::targets, declared: c_calls::declared }),
    ..PLAIN
};

/// Folders, in addition to those around a file, in which headers usually lie.
const FOLDERS: [&str; 4] = ["", "include", "src", "inc"];

/// Under which a file that has a name is listed.
pub(super) fn key_of(name: &str) -> String {
    format!("c:{name}")
}

/// A file is listed by its own name, and by each name in it that is no function's own.
fn keys(path: &str, outline: &Outline) -> BTreeSet<Box<str>> {
    let named = outline.nodes.iter().filter(|node| {
        let around = node.parent.map(|it| outline.nodes[it as usize].kind);
        !around.is_some_and(provost_syntax::Kind::is_callable)
    });
    let mut found: BTreeSet<Box<str>> = named.map(|node| key_of(outline.word(node.name)).into()).collect();
    found.insert(name_key(path).into());
    found
}

/// Beside the file, in the folders that its compiler is told, in those above it and the usual ones there; else where one file
/// alone ends with these names.
fn tries(spec: &str, path: &str, files: &Files, settings: &Settings) -> Tries {
    let mut tries = Tries::default();
    let (quoted, named) = match (spec.strip_prefix('"'), spec.strip_prefix('<')) {
        (Some(named), _) => (true, named),
        (_, Some(named)) => (false, named),
        _ => return tries,
    };
    let named = named.replace('\\', "/");
    let own = folder_of(path);
    let mut add = |folder: &str| {
        if let Some(at) = joined(folder, &named).filter(|at| !tries.paths.contains(at)) {
            tries.paths.push(at);
        }
    };
    if quoted {
        add(own);
    }
    settings.c.folders(path, files).iter().for_each(|folder| add(folder));
    let mut above = own;
    loop {
        for folder in FOLDERS {
            add(&joined(above, folder).unwrap_or_default());
        }
        if above.is_empty() {
            break;
        }
        above = folder_of(above);
    }
    tries.keys.extend(tries.paths.iter().cloned());
    if !tries.paths.iter().any(|path| files.at(path).is_some()) {
        tries.keys.push(name_key(&named));
        tries.paths.extend(only_one(&named, files));
    }
    tries
}

/// The one file whose path ends with these names.
fn only_one(named: &str, files: &Files) -> Option<String> {
    let ends: Vec<&str> = named.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let end = format!("/{}", ends.join("/"));
    let listed = files.adding.under(files.keys.of(&name_key(named)));
    let mut found = listed.filter_map(|file| files.path(file)).filter(|path| path.ends_with(&end));
    let first = found.next()?;
    found.next().is_none().then(|| first.to_owned())
}
