//! Resolves an import: from its text to the paths at which the module may be, the best first.
//!
//! The graph knows which of them exist. A *key* is a path without the parts that an import may leave out
//! (`src/a` of `src/a.ts`, `src/a/index.ts` and `src/a/__init__.py`): a new or removed file concerns exactly the
//! importers of one of its keys.

use super::settings::Settings;

/// In the order in which they are tried, as TypeScript has it, and behind that what only bundlers try.
const ECMA_ENDS: [&str; 9] = [".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs"];

/// What `.js` and the like in an import may stand for: the file before it was compiled.
const COMPILED: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".js", ".jsx"]),
    (".jsx", &[".tsx", ".d.ts", ".jsx"]),
    (".mjs", &[".mts", ".d.mts", ".mjs"]),
    (".cjs", &[".cts", ".d.cts", ".cjs"]),
];

const PYTHON_ENDS: [&str; 2] = [".py", ".pyi"];

/// Paths to try, and keys under which to hear of changes.
#[derive(Default)]
pub(super) struct Tries {
    /// Without extension where `open` is set.
    pub(super) paths: Vec<String>,
    pub(super) keys: Vec<String>,
}

/// The keys of a file.
pub(super) fn keys_of(path: &str) -> Vec<String> {
    let stem = stem(path);
    let mut keys = vec![stem.to_owned()];
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    if matches!(name, "index" | "__init__") {
        keys.push(folder.to_owned());
    }
    keys
}

fn stem(path: &str) -> &str {
    let ends = [".d.ts", ".d.mts", ".d.cts"].into_iter().chain(ECMA_ENDS).chain(PYTHON_ENDS);
    ends.into_iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Where the `__init__` of the package is that a module with this key belongs to.
pub(super) fn package_of(key: &str) -> [String; 2] {
    let folder = folder_of(key);
    PYTHON_ENDS.map(|end| joined(folder, &format!("__init__{end}")).unwrap_or_default())
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

/// Where a module that is imported in `path` may be.
pub(super) fn ecma(spec: &str, path: &str, settings: &Settings) -> Tries {
    let mut tries = Tries::default();
    let folder = folder_of(path);
    if spec == "." || spec == ".." || spec.starts_with("./") || spec.starts_with("../") {
        if let Some(at) = joined(folder, spec) {
            tries.ecma_at(&at);
        }
        return tries;
    }
    for at in settings.places(spec, folder) {
        tries.ecma_at(&at);
    }
    tries
}

impl Tries {
    fn ecma_at(&mut self, at: &str) {
        let compiled = COMPILED.iter().find_map(|(end, sources)| Some((at.strip_suffix(end)?, sources)));
        if let Some((stem, sources)) = compiled {
            self.paths.extend(sources.iter().map(|source| format!("{stem}{source}")));
        }
        self.paths.push(at.to_owned());
        self.paths.extend(ECMA_ENDS.iter().map(|end| format!("{at}{end}")));
        let index = if at.is_empty() { "index".to_owned() } else { format!("{at}/index") };
        self.paths.extend(ECMA_ENDS.iter().map(|end| format!("{index}{end}")));
        self.keys.push(at.to_owned());
        self.keys.push(stem(at).to_owned());
    }

    fn python_at(&mut self, at: &str) {
        if !at.is_empty() {
            self.paths.extend(PYTHON_ENDS.iter().map(|end| format!("{at}{end}")));
        }
        let init = if at.is_empty() { "__init__".to_owned() } else { format!("{at}/__init__") };
        self.paths.extend(PYTHON_ENDS.iter().map(|end| format!("{init}{end}")));
        self.keys.push(at.to_owned());
    }
}

/// Where a Python module that is imported in `path` may be. `is_package` says whether a folder has an `__init__`.
pub(super) fn python(spec: &str, path: &str, is_package: impl Fn(&str) -> bool) -> Tries {
    let mut tries = Tries::default();
    let folder = folder_of(path);
    let dots = spec.len() - spec.trim_start_matches('.').len();
    let below = spec[dots..].replace('.', "/");
    if dots > 0 {
        let up = "../".repeat(dots - 1);
        if let Some(at) = joined(folder, &format!("{up}{below}")) {
            tries.python_at(&at);
        }
        return tries;
    }
    // What Python looks through depends on how it is started: in the folder of a script, in a package's own folder's
    // parent, in the root, in `src`. Folders that are packages are never among these.
    let mut around = folder;
    loop {
        tries.keys.push(around.to_owned());
        if !is_package(around) {
            for base in [around.to_owned(), joined(around, "src").unwrap_or_default()] {
                tries.python_at(&joined(&base, &below).unwrap_or_default());
            }
        }
        if around.is_empty() {
            return tries;
        }
        around = folder_of(around);
    }
}
