//! Paths of modules. The rules of a language ([`Rules::tries`](super::lang::Rules)) list the paths at which an imported
//! module may be, the best first; the graph knows which of them exist.
//!
//! A *key* is a path without the parts that an import may leave out (`src/a` of `src/a.ts` and `src/a/index.ts`): a
//! new or removed file concerns exactly the importers of one of its keys.

use super::lang::rules_at;

/// The paths to try, and the keys whose changes matter.
#[derive(Default)]
pub(super) struct Tries {
    pub(super) paths: Vec<String>,
    pub(super) keys: Vec<String>,
}

/// The keys of a file.
pub(super) fn keys_of(path: &str) -> Vec<String> {
    let Some(rules) = rules_at(path) else { return vec![path.to_owned()] };
    if rules.follows.is_some() {
        return vec![path.to_owned(), name_key(path)];
    }
    if rules.folder_is_module {
        return vec![folder_of(path).to_owned()];
    }
    let stem = rules.stem(path);
    let mut keys = vec![stem.to_owned()];
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    if name == rules.folder_file {
        keys.push(folder.to_owned());
    }
    keys
}

/// Under which the files of a folder that is one module are known to define a name: no path has the colon.
pub(super) fn key_of(folder: &str, name: &str) -> String {
    format!("{folder}:{name}")
}

/// Under which a file is known by its name alone, where an import may leave out the folders before it: no path has the colon.
pub(super) fn name_key(path: &str) -> String {
    format!("*:{}", path.rsplit('/').next().unwrap_or(path))
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `folder/rest`, without `.` and `..`; none if that climbs out of the repository.
pub(super) fn joined(folder: &str, rest: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
