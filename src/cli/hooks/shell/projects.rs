//! Commands and writes that a project's own files name: scripts in `package.json`, rules of a `Makefile`, and the
//! manifests that package managers write.

use std::path::{Path, PathBuf};

use super::Written;
use super::found::Found;
use super::programs::{is_option, name, text};
use super::words::{Word, quoted};
use super::wrappers::past_options;
use provost_base::limits::PROJECT_FILE_BYTES_MAX;

/// Options before the name of a script that have a value in the next word.
const VALUED: &[&str] = &["-C", "--prefix", "--dir", "--cwd", "-w", "--workspace", "--filter", "-F"];

/// Returns the script of a project that a command runs, with its folder.
pub(super) fn script(words: &[Word], folder: &Path) -> Option<(PathBuf, String)> {
    let program = name(words)?;
    match program {
        "npm" | "pnpm" | "yarn" | "bun" => package_script(program, &words[1..], folder),
        "make" | "gmake" => rule(&words[1..], folder),
        _ => None,
    }
}

/// Reads a file of a project, if it is small.
pub(super) fn read(path: &Path) -> Option<String> {
    let is_small = path.metadata().is_ok_and(|it| it.is_file() && it.len() <= PROJECT_FILE_BYTES_MAX);
    is_small.then(|| std::fs::read_to_string(path).ok()).flatten()
}

fn package_script(program: &str, rest: &[Word], folder: &Path) -> Option<(PathBuf, String)> {
    let mut to = None;
    let mut at = past_options(program, rest, VALUED, &mut to);
    let folder = to.flatten().map_or_else(|| folder.to_owned(), |it| folder.join(it));
    let word = text(rest.get(at)?)?;
    let own = matches!(word, "test" | "t" | "start" | "stop" | "restart");
    let script = match word {
        "run" | "run-script" => {
            at += 1;
            at += past_options(program, &rest[at..], VALUED, &mut None);
            text(rest.get(at)?)?
        }
        "t" => "test",
        word if own || matches!(program, "yarn" | "pnpm" | "bun") => word,
        _ => return None,
    };
    let (at_top, package) = folder.ancestors().find_map(|it| Some((it, read(&it.join("package.json"))?)))?;
    let package: serde_json::Value = serde_json::from_str(&package).ok()?;
    let of = |name: &str| package["scripts"][name].as_str();
    let said = of(script)?;
    // Only npm needs a mark before the arguments of the script.
    let given = rest[at + 1..].iter().skip_while(|it| program == "npm" && text(it) != Some("--"));
    let given = given.filter(|it| text(it) != Some("--")).filter_map(quoted);
    let said = format!("{said}{}", given.collect::<String>());
    let around = [of(&format!("pre{script}")), Some(said.as_str()), of(&format!("post{script}"))];
    Some((at_top.to_owned(), around.into_iter().flatten().collect::<Vec<_>>().join("\n")))
}

/// Returns the commands of a rule of a `Makefile`, and of the rules that it needs first.
fn rule(rest: &[Word], folder: &Path) -> Option<(PathBuf, String)> {
    let mut folder = folder.to_owned();
    let (mut file, mut targets, mut words) = (None, Vec::new(), rest.iter().filter_map(text));
    while let Some(word) = words.next() {
        match word {
            "-n" | "--dry-run" | "--just-print" | "--version" => return None,
            "-C" | "--directory" => folder = folder.join(words.next()?),
            "-f" | "--file" => file = words.next(),
            word if word.starts_with('-') || word.contains('=') => {}
            word => targets.push(word.to_owned()),
        }
    }
    let names: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
    let text = match file {
        Some(file) => read(&folder.join(file)),
        None => names.iter().find_map(|it| read(&folder.join(it))),
    }?;
    let rules = Rules::read(&text);
    if targets.is_empty() {
        targets.extend(rules.all.first().map(|it| it.name.clone()));
    }
    let mut lines = Vec::new();
    let mut done: Vec<String> = Vec::new();
    while let Some(target) = targets.pop() {
        if done.contains(&target) {
            continue;
        }
        for rule in rules.all.iter().filter(|it| it.name == target) {
            targets.extend(rule.needs.iter().cloned());
            lines.extend(rule.lines.iter().cloned());
        }
        done.push(target);
    }
    // Each command has a shell of its own.
    let lines: Vec<String> = lines.iter().map(|it| format!("({})", rules.filled_in(it))).collect();
    Some((folder, lines.join("\n")))
}

struct Rule {
    name: String,
    needs: Vec<String>,
    lines: Vec<String>,
}

struct Rules {
    all: Vec<Rule>,
    variables: Vec<(String, String)>,
}

impl Rules {
    fn read(text: &str) -> Self {
        let mut rules = Self { all: Vec::new(), variables: Vec::new() };
        let mut open = 0;
        for line in text.replace("\\\n", " ").lines() {
            if let Some(command) = line.strip_prefix('\t') {
                let command = command.trim_start_matches(['@', '-', '+', ' ']);
                let from = rules.all.len() - open;
                rules.all[from..].iter_mut().for_each(|it| it.lines.push(command.to_owned()));
            } else if let Some((name, value)) = variable(line) {
                rules.variables.push((name.to_owned(), value.to_owned()));
            } else if let Some((names, needs)) =
                line.split_once(':').filter(|_| !line.starts_with(['#', '.', ' ']))
            {
                let needs: Vec<String> =
                    needs.trim_start_matches(':').split_whitespace().map(str::to_owned).collect();
                open = 0;
                for name in names.split_whitespace() {
                    rules.all.push(Rule { name: name.to_owned(), needs: needs.clone(), lines: Vec::new() });
                    open += 1;
                }
            } else if !line.trim().is_empty() && !line.starts_with('#') {
                open = 0;
            }
        }
        rules
    }

    /// Returns a command with the values of variables in it; variables of the shell are written with two signs.
    fn filled_in(&self, command: &str) -> String {
        let mut text = command.to_owned();
        for (name, value) in self.variables.iter().rev() {
            text = text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
        }
        text.replace("$$", "$")
    }
}

/// Reads `NAME = value`, also with `:=`, `?=` and `+=`.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+']).trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| (name, value.trim()))
}

/// Package managers, with their commands that write a project's manifests, and with those files.
const MANAGERS: &[(&str, &[&str], &[&str])] = &[
    (
        "npm",
        &[
            "install",
            "i",
            "add",
            "uninstall",
            "remove",
            "rm",
            "un",
            "update",
            "up",
            "upgrade",
            "version",
            "pkg",
            "dedupe",
            "init",
        ],
        &["package.json", "package-lock.json"],
    ),
    ("pnpm", &["install", "i", "add", "remove", "rm", "update", "up"], &["package.json", "pnpm-lock.yaml"]),
    ("yarn", &["install", "add", "remove", "up", "upgrade"], &["package.json", "yarn.lock"]),
    ("bun", &["install", "i", "add", "remove", "update"], &["package.json", "bun.lock", "bun.lockb"]),
    (
        "cargo",
        &["add", "remove", "rm", "update", "upgrade", "generate-lockfile"],
        &["Cargo.toml", "Cargo.lock"],
    ),
    ("go", &["get", "mod", "work"], &["go.mod", "go.sum", "go.work"]),
    ("poetry", &["add", "remove", "lock", "update"], &["pyproject.toml", "poetry.lock"]),
    ("pdm", &["add", "remove", "lock", "update"], &["pyproject.toml", "pdm.lock"]),
    ("uv", &["add", "remove", "lock", "sync"], &["pyproject.toml", "uv.lock"]),
    ("pipenv", &["install", "uninstall", "lock", "update"], &["Pipfile", "Pipfile.lock"]),
    ("bundle", &["add", "update", "install", "remove", "lock"], &["Gemfile", "Gemfile.lock"]),
    ("composer", &["require", "remove", "update", "install"], &["composer.json", "composer.lock"]),
    ("mix", &["deps.get", "deps.update"], &["mix.lock"]),
];

/// Finds the writes of a package manager about a project: in its folder, or the nearest one above that has such a file.
pub(super) fn manifests(program: &str, rest: &[Word], folder: &Path, found: &mut Found) {
    let Some((_, verbs, files)) = MANAGERS.iter().find(|it| it.0 == program) else { return };
    let mut to = None;
    let at = past_options(program, rest, VALUED, &mut to);
    let folder = to.flatten().map_or_else(|| folder.to_owned(), |it| folder.join(it));
    // `yarn` without a command installs.
    let verb = rest.get(at).and_then(text).unwrap_or(if program == "yarn" { "install" } else { "" });
    if !verbs.contains(&verb)
        || rest.iter().filter(|it| is_option(it)).any(|it| text(it) == Some("--dry-run"))
    {
        return;
    }
    for file in *files {
        let there = folder.ancestors().map(|it| it.join(file)).find(|it| it.symlink_metadata().is_ok());
        found.extend(there.map(Written::Path));
    }
}
