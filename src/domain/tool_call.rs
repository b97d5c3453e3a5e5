//! What a call of a host's tool names: the command that it would run, and the files.
//!
//! The tool's arguments come from the host. Of tools that are not known here nothing is certain; then every text among the
//! arguments may be a path, which counts for rules that refuse or ask, and for no rule that allows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shell_line::{WideLine, plain_list, plain_words};
use provost_base::limits::{PATH_LEN_MAX, TOOL_PATHS_MAX};

/// What the service has found out about a call of a host's tool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolFacts {
    /// Whether the tool would run in a folder of the caller's work tree.
    pub inside: bool,
    /// The paths that the call names.
    pub paths: Vec<ToolPath>,
    /// Whether these are all files that the tool would touch.
    pub complete: bool,
}

/// A path that a call names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolPath {
    /// Where it leads, links resolved: the absolute path, and within the work tree the path from its top. Empty where that
    /// cannot be found out.
    pub at: Vec<Box<str>>,
    /// As the call spells it, normalised.
    pub spelled: Box<str>,
    /// Whether it is a path for certain, and one that a rule may allow.
    pub sure: bool,
}

/// What a call names, by its words alone.
#[derive(Clone, Debug, Default)]
pub struct ToolCall {
    /// The command that it would run.
    pub command: Option<ToolCommand>,
    /// The paths that it names, as it spells them; those of a command may be none.
    pub paths: Vec<String>,
    /// Whether these are paths for certain, and all that the tool would touch.
    pub complete: bool,
}

/// A command, in both readings.
#[derive(Clone, Debug)]
pub struct ToolCommand {
    /// Its words, where it is a single plain command and a tool that is known runs it as it stands.
    pub plain: Option<Vec<String>>,
    /// Everything that it may run.
    pub wide: WideLine,
    /// The text, for people.
    pub text: String,
}

impl ToolCommand {
    /// Reads a line for a shell.
    pub fn line(text: &str) -> Self {
        Self { plain: plain_words(text), wide: WideLine::read(text), text: text.to_owned() }
    }

    fn list(words: &[String]) -> Self {
        if let [shell, option, line] = words
            && SHELLS.contains(&shell.as_str())
            && ["-c", "-lc"].contains(&option.as_str())
        {
            return Self::line(line);
        }
        Self { plain: plain_list(words), wide: WideLine::of_list(words), text: words.join(" ") }
    }
}

/// Shells that a host starts with a line. One of the same name elsewhere is another program.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/usr/bin/sh",
    "/usr/bin/bash",
    "/usr/bin/zsh",
];

/// Tools that run a command, by the names that hosts give them.
const COMMAND_TOOLS: &[&str] = &["Bash", "Monitor", "Shell", "shell", "exec_command"];

/// Arguments beside which such a tool runs its command as it stands.
const COMMAND_ARGUMENTS: &[&str] = &[
    "command",
    "cmd",
    "description",
    "justification",
    "timeout",
    "timeout_ms",
    "run_in_background",
    "cwd",
    "workdir",
    "yield_time_ms",
    "max_output_tokens",
    "login",
    "tty",
];

/// Tools that touch the file that they name, and no other one.
const FILE_TOOLS: &[&str] = &["Read", "Write", "Edit", "MultiEdit", "NotebookEdit"];

/// Arguments that name such a file.
const FILE_ARGUMENTS: &[&str] = &["file_path", "notebook_path"];

/// Tools that change what a patch says.
const PATCH_TOOLS: &[&str] = &["apply_patch", "ApplyPatch"];

/// Folders and files of git and of hosts, which decide what runs here: no rule allows a tool to touch them.
const MACHINERY: &[&str] = &[".git", ".claude", ".codex", ".cursor", ".provost", ".mcp.json"];

/// Whether a path is, or lies in, something of git's or of a host's own.
pub fn is_machinery(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| MACHINERY.iter().any(|it| it.eq_ignore_ascii_case(part)))
}

/// Whether a tool changes what a patch says.
pub fn takes_patch(tool: &str) -> bool {
    PATCH_TOOLS.contains(&tool)
}

/// The folders that the arguments of a call name for its command: more than one only where it is not plain which counts.
pub fn folders_of(arguments: &Value) -> Vec<&str> {
    let named = ["cwd", "workdir"].into_iter().filter_map(|name| arguments.get(name)?.as_str());
    named.filter(|it| !it.is_empty()).collect()
}

impl ToolCall {
    /// Reads a call.
    pub fn read(tool: &str, arguments: &Value) -> Self {
        if FILE_TOOLS.contains(&tool) {
            let named = FILE_ARGUMENTS.iter().filter_map(|name| arguments.get(name));
            let named: Vec<Option<&str>> = named.map(Value::as_str).collect();
            let complete = !named.is_empty() && named.iter().all(|it| it.is_some_and(|it| !it.is_empty()));
            return Self {
                command: None,
                paths: named.into_iter().flatten().map(str::to_owned).collect(),
                complete,
            };
        }
        if takes_patch(tool) {
            return patched(arguments);
        }
        let command = command(arguments).map(|it| {
            let is_known = COMMAND_TOOLS.contains(&tool) && has_only(arguments, COMMAND_ARGUMENTS);
            let is_known = is_known && !is_for_network(arguments);
            ToolCommand { plain: it.plain.filter(|_| is_known), ..it }
        });
        let words = command.as_ref().map(paths_of).unwrap_or_default();
        let paths = kept(words.iter().map(String::as_str).chain(texts(arguments)));
        Self { command, paths, complete: false }
    }
}

/// Whether Codex asks about a connection of a command, which it names beside it, and not about the command.
fn is_for_network(arguments: &Value) -> bool {
    arguments.get("description").and_then(Value::as_str).is_some_and(|it| it.starts_with("network-access"))
}

fn has_only(arguments: &Value, known: &[&str]) -> bool {
    arguments.as_object().is_some_and(|it| it.keys().all(|key| known.contains(&key.as_str())))
}

fn command(arguments: &Value) -> Option<ToolCommand> {
    let given = |name: &str| match arguments.get(name)? {
        Value::String(line) => Some(ToolCommand::line(line)),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(|it| it.as_str().map(str::to_owned)).collect();
            words.map(|it| ToolCommand::list(&it))
        }
        _ => None,
    };
    match (given("command"), given("cmd")) {
        // Which of them runs is for the tool to know: two lines are no plain command.
        (Some(one), Some(other)) => Some(ToolCommand::line(&format!("{}\n{}", one.text, other.text))),
        (one, other) => one.or(other),
    }
}

/// The files of a patch. Each line that may name one counts as one.
fn patched(arguments: &Value) -> ToolCall {
    const NAMES: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    const MARKS: [&str; 3] = ["*** Begin Patch", "*** End Patch", "*** End of File"];
    let named = ["command", "input", "patch"].into_iter().find_map(|name| arguments.get(name)?.as_str());
    let text = arguments.as_str().or(named).unwrap_or_default();
    let heads = text.lines().map(str::trim).filter(|it| it.starts_with("***"));
    let (mut paths, mut complete) = (Vec::new(), true);
    for head in heads {
        match NAMES.iter().find_map(|name| head.strip_prefix(name)) {
            Some(path) => paths.push(path.trim().to_owned()),
            None => complete &= MARKS.contains(&head),
        }
    }
    complete &= !paths.is_empty() && paths.len() <= TOOL_PATHS_MAX;
    paths.truncate(TOOL_PATHS_MAX);
    ToolCall { command: None, paths, complete }
}

/// Words of a command that may be paths; of `--file=x` and `@x` also what stands behind the sign.
fn paths_of(command: &ToolCommand) -> Vec<String> {
    let mut all = Vec::new();
    for word in command.wide.words() {
        let text = word.text.as_str();
        let behind = [text.split_once('=').map(|it| it.1), text.strip_prefix('@')];
        all.extend([Some(text)].into_iter().chain(behind).flatten().map(str::to_owned));
    }
    all
}

/// Every text within arguments.
fn texts(arguments: &Value) -> Vec<&str> {
    fn within<'a>(value: &'a Value, all: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => all.push(text),
            Value::Array(items) => items.iter().for_each(|it| within(it, all)),
            Value::Object(members) => members.values().for_each(|it| within(it, all)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut all = Vec::new();
    within(arguments, &mut all);
    all
}

fn kept<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let may_be = |it: &&str| !it.is_empty() && it.len() <= PATH_LEN_MAX && !it.chars().any(char::is_control);
    let mut all: Vec<String> = texts.filter(may_be).map(str::to_owned).collect();
    all.sort_unstable();
    all.dedup();
    all.truncate(TOOL_PATHS_MAX);
    all
}
