//! Finds the file for a file's tests, by the conventions of its language. A6s 6.7.
//!
//! An existing file of tests is preferred, in any place; otherwise the project's folder for tests.

use provost_domain::artifact::{is_test, language_by_name};

/// Questions about the files of a workspace, by paths from it.
pub trait WorkspaceProbe {
    /// Checks whether there is a file with this path.
    fn is_file(&self, path: &str) -> bool;
    /// Checks whether there is a folder with this path.
    fn is_folder(&self, path: &str) -> bool;
}

/// A possible place: the folder that has to exist, and the file's path. An empty folder always counts as existing.
type CandidatePath = (&'static str, &'static str);

/// A folder that never exists: such a place counts only if the file itself exists.
const ONLY_IF_THERE: &str = "\0";

/// The convention for tests in a group of languages.
struct Custom {
    /// The extensions of these languages' files.
    endings: &'static [&'static str],
    /// The possible places, the most usual first.
    places: &'static [CandidatePath],
}

const fn custom(endings: &'static [&'static str], places: &'static [CandidatePath]) -> Custom {
    Custom { endings, places }
}

/// The possible places for some languages. `{dir}` is the folder of the file, `{sub}` its path beneath the folder of the sources,
/// `{mirror}` its path with `main` replaced by `test`, `{crate}` the folder with the nearest `Cargo.toml`, `{module}` the folder beneath
/// the sources.
const CUSTOMS: &[Custom] = &[
    custom(
        &["py", "pyi"],
        &[
            (ONLY_IF_THERE, "{dir}/test_{stem}.py"),
            (ONLY_IF_THERE, "{dir}/{stem}_test.py"),
            (ONLY_IF_THERE, "tests/{stem}_test.py"),
            ("{dir}/tests", "{dir}/tests/test_{stem}.py"),
            ("{dir}/test", "{dir}/test/test_{stem}.py"),
            ("tests/{sub}", "tests/{sub}/test_{stem}.py"),
            ("tests", "tests/test_{stem}.py"),
            ("test", "test/test_{stem}.py"),
            ("", "{dir}/test_{stem}.py"),
        ],
    ),
    custom(&["go"], &[("", "{dir}/{stem}_test.go")]),
    custom(
        &["rs"],
        &[
            (ONLY_IF_THERE, "{crate}/tests/{stem}_test.rs"),
            (ONLY_IF_THERE, "{crate}/tests/test_{stem}.rs"),
            ("", "{crate}/tests/{stem}.rs"),
        ],
    ),
    custom(
        &["ts", "tsx", "js", "jsx", "mjs", "cjs", "mts", "cts"],
        &[
            (ONLY_IF_THERE, "{dir}/{stem}.test.{ext}"),
            (ONLY_IF_THERE, "{dir}/{stem}.spec.{ext}"),
            (ONLY_IF_THERE, "tests/{sub}/{stem}.test.{ext}"),
            (ONLY_IF_THERE, "tests/{stem}.test.{ext}"),
            (ONLY_IF_THERE, "test/{sub}/{stem}.test.{ext}"),
            (ONLY_IF_THERE, "test/{stem}.test.{ext}"),
            (ONLY_IF_THERE, "__tests__/{stem}.test.{ext}"),
            ("{dir}/__tests__", "{dir}/__tests__/{stem}.test.{ext}"),
            ("", "{dir}/{stem}.test.{ext}"),
        ],
    ),
    custom(
        &["vue", "svelte"],
        &[
            (ONLY_IF_THERE, "{dir}/{stem}.spec.ts"),
            (ONLY_IF_THERE, "{dir}/{stem}.test.js"),
            (ONLY_IF_THERE, "{dir}/{stem}.spec.js"),
            ("{dir}/__tests__", "{dir}/__tests__/{stem}.test.ts"),
            ("", "{dir}/{stem}.test.ts"),
        ],
    ),
    custom(
        &["java", "kt", "kts", "groovy"],
        &[
            (ONLY_IF_THERE, "{mirror}/{stem}Tests.{ext}"),
            (ONLY_IF_THERE, "{dir}/{stem}Tests.{ext}"),
            ("", "{mirror}/{stem}Test.{ext}"),
        ],
    ),
    custom(&["scala"], &[(ONLY_IF_THERE, "{mirror}/{stem}Spec.scala"), ("", "{mirror}/{stem}Test.scala")]),
    custom(
        &["rb"],
        &[
            (ONLY_IF_THERE, "test/{sub}/test_{stem}.rb"),
            ("spec", "spec/{sub}/{stem}_spec.rb"),
            ("", "test/{sub}/{stem}_test.rb"),
        ],
    ),
    custom(
        &["php"],
        &[
            (ONLY_IF_THERE, "tests/{sub}/{stem}Test.php"),
            ("tests/Unit", "tests/Unit/{stem}Test.php"),
            ("", "tests/{stem}Test.php"),
        ],
    ),
    custom(
        &["cs", "fs", "vb"],
        &[
            (ONLY_IF_THERE, "{dir}/{stem}Test.{ext}"),
            ("tests", "tests/{stem}Tests.{ext}"),
            ("", "{dir}/{stem}Tests.{ext}"),
        ],
    ),
    custom(
        &["swift"],
        &[
            ("Tests/{module}Tests", "Tests/{module}Tests/{stem}Tests.swift"),
            ("Tests", "Tests/{stem}Tests.swift"),
            ("", "{dir}/{stem}Tests.swift"),
        ],
    ),
    custom(
        &["c", "cc", "cpp", "cxx", "h", "hpp", "hh", "m", "mm"],
        &[
            (ONLY_IF_THERE, "{dir}/{stem}_test.{ext}"),
            (ONLY_IF_THERE, "tests/{stem}_test.{ext}"),
            ("tests", "tests/test_{stem}.{ext}"),
            ("test", "test/test_{stem}.{ext}"),
            ("", "{dir}/test_{stem}.{ext}"),
        ],
    ),
    custom(&["ex", "exs"], &[("", "test/{sub}/{stem}_test.exs")]),
    custom(&["erl"], &[("", "test/{stem}_tests.erl")]),
    custom(&["dart"], &[("", "test/{sub}/{stem}_test.dart")]),
    custom(&["clj", "cljs", "cljc"], &[("", "test/{sub}/{stem}_test.{ext}")]),
    custom(&["hs"], &[("", "test/{sub}/{stem}Spec.hs")]),
    custom(
        &["lua"],
        &[
            ("spec", "spec/{stem}_spec.lua"),
            ("tests", "tests/{stem}_spec.lua"),
            ("", "{dir}/{stem}_spec.lua"),
        ],
    ),
    custom(
        &["el"],
        &[
            (ONLY_IF_THERE, "{dir}/{stem}-test.el"),
            (ONLY_IF_THERE, "{dir}/{stem}-tests.el"),
            ("test", "test/{stem}-test.el"),
            ("tests", "tests/{stem}-tests.el"),
            ("", "{dir}/{stem}-tests.el"),
        ],
    ),
    custom(&["pl", "pm"], &[("", "t/{stem}.t")]),
    custom(&["r", "R"], &[("", "tests/testthat/test-{stem}.R")]),
    custom(&["jl"], &[("", "test/test_{stem}.jl")]),
    custom(&["zig"], &[("", "{dir}/{stem}_test.zig")]),
    custom(&["ml", "mli"], &[("", "test/test_{stem}.ml")]),
    custom(&["vim"], &[("", "test/{stem}.vader")]),
    custom(
        &["sh", "bash"],
        &[("tests", "tests/{stem}.bats"), ("test", "test/{stem}.bats"), ("", "{dir}/test_{stem}.{ext}")],
    ),
];

/// The possible places for any other language.
const OTHERS: &[CandidatePath] = &[
    (ONLY_IF_THERE, "{dir}/{stem}_test.{ext}"),
    ("tests", "tests/test_{stem}.{ext}"),
    ("test", "test/test_{stem}.{ext}"),
    ("", "{dir}/test_{stem}.{ext}"),
];

/// Names of folders that contain only sources.
const SOURCES: [&str; 6] = ["src", "lib", "app", "source", "sources", "Sources"];

/// The parts of a file's path.
#[derive(Clone, Copy)]
struct FileNameParts<'a> {
    dir: &'a str,
    stem: &'a str,
    ext: &'a str,
}

impl<'a> FileNameParts<'a> {
    fn of(path: &'a str) -> Self {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (stem, ext) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
        // A module that is a folder has the folder's name.
        let folder = dir.rsplit('/').next().filter(|it| !it.is_empty());
        let stem = folder.filter(|_| matches!(name, "mod.rs" | "__init__.py")).unwrap_or(stem);
        Self { dir, stem, ext }
    }

    fn places(&self) -> &'static [CandidatePath] {
        let known = CUSTOMS.iter().find(|custom| custom.endings.contains(&self.ext));
        known.map_or(OTHERS, |custom| custom.places)
    }

    /// Returns a possible place of this file, with the placeholders replaced.
    fn filled(&self, pattern: &str, stem: &str, look: &impl WorkspaceProbe) -> String {
        let (first, below) = self.dir.split_once('/').unwrap_or((self.dir, ""));
        let is_of_sources = SOURCES.contains(&first);
        let module = below.split('/').next().filter(|_| is_of_sources).unwrap_or_default();
        let path = pattern
            .replace("{mirror}", &mirrored(self.dir))
            .replace("{crate}", &crate_of(self.dir, look))
            .replace("{sub}", if is_of_sources { below } else { self.dir })
            .replace("{dir}", self.dir)
            .replace("{module}", module)
            .replace("{stem}", stem)
            .replace("{ext}", self.ext);
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        names.join("/").trim_end_matches('.').to_owned()
    }
}

/// Returns the mirrored folder: `src/main/java/a` has its tests in `src/test/java/a`.
fn mirrored(dir: &str) -> String {
    let mut names: Vec<&str> = dir.split('/').collect();
    if let Some(main) = names.iter_mut().find(|name| **name == "main") {
        *main = "test";
    }
    names.join("/")
}

/// Returns the folder of the crate that a folder belongs to.
fn crate_of(dir: &str, look: &impl WorkspaceProbe) -> String {
    let mut at = dir;
    while !at.is_empty() && !look.is_file(&format!("{at}/Cargo.toml")) {
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
    at.to_owned()
}

/// Returns the file for the tests of a file, existing or not. A file of tests is its own.
pub fn tests_of(path: &str, look: &impl WorkspaceProbe) -> String {
    if is_test(path) {
        return path.to_owned();
    }
    let parts = FileNameParts::of(path);
    let places = || parts.places().iter();
    let there =
        places().map(|(_, path)| parts.filled(path, parts.stem, look)).find(|path| look.is_file(path));
    there.unwrap_or_else(|| first_place(parts, parts.stem, look))
}

/// Returns a further file for tests beside that one, by its number: `test_x_2.py`. `None` in languages in which the name
/// of a file has to be that of its contents.
pub fn further_tests_of(path: &str, number: u32, look: &impl WorkspaceProbe) -> Option<String> {
    const ONE_EACH: [&str; 10] = ["java", "kt", "kts", "groovy", "scala", "cs", "fs", "vb", "php", "swift"];
    let parts = FileNameParts::of(path);
    if ONE_EACH.contains(&parts.ext) {
        return None;
    }
    if is_test(path) {
        let dir = if parts.dir.is_empty() { String::new() } else { format!("{}/", parts.dir) };
        // Endings such as `_test` mark a file of tests.
        let (name, end) = ["_test", "_spec", ".test", ".spec", "_tests", "-test", "-tests"]
            .iter()
            .find_map(|end| Some((parts.stem.strip_suffix(end)?, *end)))
            .unwrap_or((parts.stem, ""));
        return Some(format!("{dir}{name}_{number}{end}.{}", parts.ext));
    }
    Some(first_place(parts, &format!("{}_{number}", parts.stem), look))
}

fn first_place(parts: FileNameParts<'_>, stem: &str, look: &impl WorkspaceProbe) -> String {
    let fits = |folder: &str| {
        folder.is_empty()
            || folder != ONLY_IF_THERE && look.is_folder(&parts.filled(folder, parts.stem, look))
    };
    let place = parts.places().iter().find(|(folder, _)| fits(folder));
    place.map_or_else(|| format!("test_{stem}"), |(_, path)| parts.filled(path, stem, look))
}

/// Returns a file name for a buffer without a file: `*scratch*` in Python is `scratch.py`.
pub fn named_after(buffer: &str, language: &str) -> String {
    let base = buffer.rsplit(['/', '\\']).next().unwrap_or_default();
    let fits = |c: &char| c.is_alphanumeric() || "-_.".contains(*c);
    let name: String = base.chars().filter(fits).collect();
    let name = name.trim_matches('.');
    let name = if name.is_empty() { "untitled" } else { name };
    if !language_by_name(name).is_empty() {
        return name.to_owned();
    }
    match ending_of(language) {
        Some(ending) => format!("{name}.{ending}"),
        None => name.to_owned(),
    }
}

/// Returns the extension for a language, as editors name the language.
fn ending_of(language: &str) -> Option<&'static str> {
    Some(match language.trim().to_lowercase().as_str() {
        "python" | "python3" => "py",
        "rust" => "rs",
        "go" => "go",
        "typescript" => "ts",
        "typescriptreact" | "tsx" => "tsx",
        "javascript" | "js" => "js",
        "javascriptreact" | "jsx" => "jsx",
        "java" => "java",
        "kotlin" => "kt",
        "scala" => "scala",
        "ruby" => "rb",
        "php" => "php",
        "csharp" | "cs" | "c#" => "cs",
        "swift" => "swift",
        "c" => "c",
        "cpp" | "c++" => "cpp",
        "elixir" => "ex",
        "erlang" => "erl",
        "dart" => "dart",
        "clojure" => "clj",
        "haskell" => "hs",
        "lua" => "lua",
        "emacs-lisp" | "elisp" | "lisp-interaction" => "el",
        "perl" | "cperl" => "pl",
        "r" | "ess-r" => "R",
        "julia" => "jl",
        "zig" => "zig",
        "ocaml" | "tuareg" => "ml",
        "vim" => "vim",
        "shell" | "sh" | "bash" => "sh",
        _ => return None,
    })
}
