//! Recipes: for each thing that is often added, `docs/contributing.md` lists the files to touch, and a patch
//! in `tests/recipes/` is an example. The list and the patch name the same files, and the patch fits the
//! sources as they are. `scripts/recipes` compiles it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::support::source::{files, project_root};

const DOCUMENT: &str = "docs/contributing.md";
const EXAMPLES: &str = "tests/recipes/";
/// What has no recipe: a line of a manifest is its own example, and a new one would have to be downloaded; a command is a variant of the
/// enum of its noun, in which the compiler asks for the arm, and the neighbours show how.
const WITHOUT_RECIPE: [&str; 2] = ["a dependency", "a command"];

/// A recipe of the document: its heading, and its files in order, where `<word>` stands for a part of a name.
#[derive(Default)]
struct Recipe {
    heading: String,
    files: Vec<String>,
    /// Of these, the files that the compiler asks for, as the document promises.
    demanded: Vec<String>,
}

/// The recipes of a document, by the names of their examples.
fn recipes(document: &str) -> BTreeMap<String, Recipe> {
    let mut found: BTreeMap<String, Recipe> = BTreeMap::new();
    let (mut heading, mut name) = (String::new(), None);
    for line in document.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_lowercase();
            name = None;
        } else if let Some((_, rest)) = line.split_once(EXAMPLES)
            && let Some((example, _)) = rest.split_once(".patch")
        {
            name = Some(example.to_owned());
            found.insert(example.into(), Recipe { heading: heading.clone(), ..Recipe::default() });
        } else if let Some(recipe) = name.as_ref().and_then(|name| found.get_mut(name))
            && let Some((number, rest)) = line.split_once(". `")
            && number.parse::<u8>().is_ok()
        {
            let file = rest.split('`').next().map(str::to_owned);
            // The sentence is short, and is never broken after "not".
            if line.contains("does not compile") || line.contains("do not compile") {
                recipe.demanded.extend(file.clone());
            }
            recipe.files.extend(file);
        }
    }
    found
}

/// The files that a patch touches.
fn touched(patch: &str) -> Vec<&str> {
    patch.lines().filter_map(|line| line.strip_prefix("diff --git a/")?.split(' ').next()).collect()
}

/// Whether a path is what a recipe lists.
fn fits(listed: &str, path: &str) -> bool {
    let (listed, path): (Vec<&str>, Vec<&str>) = (listed.split('/').collect(), path.split('/').collect());
    let same = |(listed, part): (&&str, &&str)| match (listed.split_once('<'), listed.split_once('>')) {
        (Some((before, _)), Some((_, after))) => {
            part.len() > before.len() + after.len() && part.starts_with(before) && part.ends_with(after)
        }
        _ => listed == part,
    };
    listed.len() == path.len() && listed.iter().zip(&path).all(same)
}

/// Where a recipe and its example differ, each with what to do.
fn differences(name: &str, recipe: &Recipe, patch: &str) -> Vec<String> {
    let mut left = touched(patch);
    let mut found = Vec::new();
    // Whole names first: a placeholder would stand for them, too.
    let (vague, whole): (Vec<&String>, Vec<&String>) = recipe.files.iter().partition(|it| it.contains('<'));
    for listed in whole.into_iter().chain(vague) {
        match left.iter().position(|path| fits(listed, path)) {
            Some(at) => drop(left.remove(at)),
            None => found
                .push(format!("{name}: the example does not touch `{listed}`: {DOCUMENT} lists too much")),
        }
    }
    found.extend(left.iter().map(|path| format!("{name}: {path} is touched: list it in {DOCUMENT}")));
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(project_root().join(path)).unwrap()
}

fn examples() -> BTreeMap<String, String> {
    let root = project_root();
    let names = files(&root, &root.join(EXAMPLES)).into_iter();
    let name = |path: &str| path.strip_prefix(EXAMPLES)?.strip_suffix(".patch").map(str::to_owned);
    names.map(|path| (name(&path).unwrap_or_else(|| panic!("{path} is no patch")), read(&path))).collect()
}

#[test]
fn each_recipe_lists_the_files_that_its_example_touches() {
    let (recipes, examples) = (recipes(&read(DOCUMENT)), examples());
    assert!(examples.len() >= 8, "only {} examples", examples.len());
    let names = |all: BTreeSet<&String>| all.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(recipes.keys().collect()), names(examples.keys().collect()), "recipes and examples");
    let found: Vec<String> =
        recipes.iter().flat_map(|(name, recipe)| differences(name, recipe, &examples[name])).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn each_thing_to_add_that_the_architecture_names_has_a_recipe() {
    let architecture = read("docs/architecture.md");
    let (_, table) = architecture.split_once("| to add | change | checked by |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let things: BTreeSet<String> = rows
        .map(|line| line.split('|').nth(1).unwrap().trim().to_lowercase())
        .filter(|it| !WITHOUT_RECIPE.contains(&it.as_str()))
        .collect();
    let headings: BTreeSet<String> = recipes(&read(DOCUMENT)).into_values().map(|it| it.heading).collect();
    assert_eq!(things, headings);
}

/// The steps that `scripts/recipes` leaves out: recipe and file.
fn left_out(script: &str) -> Vec<(&str, &str)> {
    let (_, steps) = script.split_once("steps='\n").unwrap();
    let lines = steps.lines().take_while(|line| *line != "'");
    lines
        .map(|line| {
            let mut parts = line.split('|').skip(1);
            (parts.next().unwrap(), parts.next().unwrap())
        })
        .collect()
}

/// Where the promises of recipes and the steps that are left out differ.
fn untried(recipes: &BTreeMap<String, Recipe>, script: &str) -> Vec<String> {
    let mut tried = left_out(script);
    let mut found = Vec::new();
    for (name, file) in recipes.iter().flat_map(|(name, it)| it.demanded.iter().map(move |file| (name, file)))
    {
        match tried.iter().position(|(of, path)| of == name && fits(file, path)) {
            Some(at) => drop(tried.remove(at)),
            None => found.push(format!("{name}: scripts/recipes never leaves out `{file}`")),
        }
    }
    found.extend(tried.iter().map(|(name, file)| format!("{name}: {DOCUMENT} does not promise {file}")));
    found
}

#[test]
fn each_step_that_the_compiler_asks_for_is_left_out_once() {
    let (recipes, script) = (recipes(&read(DOCUMENT)), read("scripts/recipes"));
    assert!(left_out(&script).len() >= 8);
    let found = untried(&recipes, &script);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    let without = script.replace("|verb|src/domain/session.rs", "|verb|src/domain/token.rs");
    assert_eq!(untried(&recipes, &without).len(), 0, "any subject's file will do");
    let without = script.replace("|verb|src/domain/session.rs", "|verb|src/policy/file.rs");
    assert_eq!(untried(&recipes, &without).len(), 2);
}

/// Returns git's objections to a patch on the sources as they are.
fn misfit(patch: &str) -> Option<String> {
    let root = project_root();
    // The sources may lie without their repository in a folder of another one.
    let above = root.parent().unwrap().to_owned();
    let mut git = Command::new("git");
    let git = git.args(["apply", "--check", patch]).current_dir(&root).env("GIT_CEILING_DIRECTORIES", above);
    let output = git.output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn each_example_fits_the_sources_as_they_are() {
    for name in examples().keys() {
        let path = format!("{EXAMPLES}{name}.patch");
        if let Some(why) = misfit(&path) {
            panic!(
                "{why}{path} does not fit any more. In a clean work tree: git apply --3way {path}, mend what is left, \
                 scripts/recipes write {name}"
            );
        }
    }
}

#[test]
fn a_recipe_and_an_example_that_differ_are_caught() {
    let document = "### A verb\n\nFor example [one](../tests/recipes/verb.patch):\n\n1. `src/domain/<subject>.rs`: a rule.\n\
                    2. `src/domain/mod.rs`: a line.\n\n## After\n\n1. `src/no.rs`: nothing.\n";
    let found = recipes(document);
    let recipe = &found["verb"];
    assert_eq!((recipe.heading.as_str(), recipe.files.len()), ("a verb", 2));
    let patch = |paths: &[&str]| -> String {
        paths
            .iter()
            .map(|path| format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"))
            .collect()
    };
    let count = |paths: &[&str]| differences("verb", recipe, &patch(paths)).len();
    assert_eq!(count(&["src/domain/mod.rs", "src/domain/rules.rs"]), 0);
    assert_eq!(count(&["src/domain/lock.rs"]), 1, "one file is missing");
    assert_eq!(count(&["src/domain/lock.rs", "src/domain/mod.rs", "src/main.rs"]), 1, "one is not listed");
    assert_eq!(count(&["src/domain/lock/a.rs", "src/domain/mod.rs"]), 2, "a placeholder is no folder");
}

#[test]
fn an_example_that_does_not_fit_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let patch = folder.path().join("x.patch");
    let manifest = read("Cargo.toml");
    let lines: Vec<&str> = manifest.lines().take(3).collect();
    let fits = |from: &str| {
        let hunk = format!("@@ -1,3 +1,3 @@\n {}\n-{from}\n+other\n {}\n", lines[0], lines[2]);
        fs::write(&patch, format!("--- a/Cargo.toml\n+++ b/Cargo.toml\n{hunk}")).unwrap();
        misfit(patch.to_str().unwrap()).is_none()
    };
    assert!(fits(lines[1]));
    assert!(!fits("what the line was before"));
}
