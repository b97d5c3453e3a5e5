//! The command that a call of a host's tool would run, and the files that the call names.
//!
//! The tool's arguments come from the host. Nothing is certain about an unknown tool; then every text among the
//! arguments may be a path, which counts for rules that deny or ask, and for no rule that allows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shell_line::{LineWord, WideLine, plain_list, plain_words};
use provost_base::later::row_over;
use provost_base::limits::{PATH_LEN_MAX, TOOL_PATHS_MAX};
use provost_base::{is_all_shortened, is_shortened, percent_decoded};

/// The facts that the service has found about a call of a host's tool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolFacts {
    /// Whether the tool would run in a folder of the caller's work tree.
    pub inside: bool,
    /// The paths that the call names.
    pub paths: Vec<ToolPath>,
    /// Whether these are all files that the tool would touch.
    pub complete: bool,
    /// Words that may be paths once the command runs, with `*` for parts that are not known before.
    #[serde(default)]
    pub open: Vec<Box<str>>,
    /// Whether the call names more than is examined, so that it may touch any file.
    #[serde(default)]
    pub more: bool,
}

/// A path that a call names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolPath {
    /// The places to which it leads, links resolved: the absolute path, and within the work tree the path from its
    /// top. Empty if they cannot be found.
    pub at: Vec<Box<str>>,
    /// The path as the call spells it, normalised.
    pub spelled: Box<str>,
    /// Whether it certainly is a path, and one that a rule may allow.
    pub sure: bool,
    /// Whether it may lead to any file: its target differs for each process, or cannot be found.
    #[serde(default, skip_serializing_if = "is_not")]
    pub anywhere: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_not(it: &bool) -> bool {
    !it
}

/// The command and paths of a call, by its words alone.
#[derive(Clone, Debug, Default)]
pub struct ToolCall {
    /// The command that the call would run.
    pub command: Option<ToolCommand>,
    /// The paths that the call names, as it spells them; those of a command may not be paths.
    pub paths: Vec<String>,
    /// Whether these certainly are paths, and all that the tool would touch.
    pub complete: bool,
    /// Words of its command that may be paths once it runs, with `*` for parts that are not known before.
    pub open: Vec<Box<str>>,
    /// Whether the call names more than is examined.
    pub more: bool,
    /// Whether the tool may change the files.
    pub writes: bool,
}

/// A command, in both readings.
#[derive(Clone, Debug)]
pub struct ToolCommand {
    /// Its words, if it is a single plain command that a known tool runs unchanged.
    pub plain: Option<Vec<String>>,
    /// All commands that it may run.
    pub wide: WideLine,
    /// The text, for people.
    pub text: String,
}

impl ToolCommand {
    /// Reads a line for a shell.
    pub fn line(text: &str) -> Self {
        match is_shortened(text) {
            true => Self::unknown(text),
            false => Self { plain: plain_words(text), wide: WideLine::read(text), text: text.to_owned() },
        }
    }

    /// Returns a command whose beginning alone is known, so that it may run anything.
    fn unknown(text: &str) -> Self {
        Self { plain: None, wide: WideLine::unknown(), text: text.to_owned() }
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

/// Shells that a host starts with a line. A program with the same name in another place is not one of them.
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

/// Arguments that do not change how such a tool runs its command.
const COMMAND_ARGUMENTS: &[&str] = &[
    "command",
    "cmd",
    "description",
    "justification",
    "timeout",
    "timeout_ms",
    "timeout_secs",
    "run_in_background",
    "cwd",
    "workdir",
    "yield_time_ms",
    "max_output_tokens",
    "login",
    "tty",
];

/// Tools that touch the file that they name, and no other.
const FILE_TOOLS: &[&str] = &["Read", "Write", "Edit", "MultiEdit", "NotebookEdit"];

/// Arguments that name such a file.
const FILE_ARGUMENTS: &[&str] = &["file_path", "notebook_path"];

/// Arguments by which other hosts name files. With one of them, it is not certain which file such a tool touches.
const OTHER_FILE_ARGUMENTS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filePath",
    "filename",
    "fileName",
    "notebookPath",
    "target_file",
    "targetFile",
    "absolute_path",
    "relative_path",
    "uri",
    "url",
];

/// Tools that apply a patch.
const PATCH_TOOLS: &[&str] = &["apply_patch", "ApplyPatch"];

/// Folders and files of git and of hosts, which decide what runs here: no rule allows a tool to touch them.
const MACHINERY: &[&str] = &[".git", ".claude", ".codex", ".cursor", ".provost", ".mcp.json"];

/// Checks whether a path is, or lies in, a file or folder of git or of a host.
pub fn is_machinery(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| MACHINERY.iter().any(|it| it.eq_ignore_ascii_case(part)))
}

/// Links below a process' folder in `/proc` whose target differs for each process.
const PLACES_OF_PROCESSES: &[&str] = &["cwd", "root", "exe", "fd", "map_files", "ns", "task"];

/// Streams of each process, under each name by which they can be opened.
const STREAMS: &[&str] = &["/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Checks whether a path is one of a process' streams, and not a file.
pub fn is_stream(path: &str) -> bool {
    let numbered = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"));
    STREAMS.contains(&path) || numbered.is_some_and(|it| ["0", "1", "2"].contains(&it))
}

/// Checks whether an absolute path, as it is spelled, goes through such a link.
pub fn is_of_processes(path: &str) -> bool {
    let mut parts = path.split('/').filter(|it| !it.is_empty() && *it != ".");
    let is_process = |it: &str| it.ends_with("self") || it.bytes().all(|it| it.is_ascii_digit());
    let leads = match (parts.next(), parts.next()) {
        (Some("proc"), Some(it)) => is_process(it) && parts.any(|it| PLACES_OF_PROCESSES.contains(&it)),
        (Some("dev"), Some("fd")) => true,
        _ => false,
    };
    leads && !is_stream(path)
}

/// Parts of a repository, by which git recognises a folder as one, and its configuration, in small letters.
const PARTS_OF_REPOSITORIES: &[&str] = &["head", "config", "objects", "refs", "commondir"];

/// Checks whether a path (from the top of the work tree, if it lies below) is a setting that runs later or that
/// instructs agents, or by its name may be a part of a repository within the work tree.
pub fn runs_later(path: &str, is_below: bool) -> bool {
    let (folder, name) = path.rsplit_once(['/', '\\']).unwrap_or(("", path));
    let name = name.to_ascii_lowercase();
    let is_part = PARTS_OF_REPOSITORIES.contains(&name.as_str()) || name.starts_with(".git");
    (is_part && !(is_below && folder.is_empty())) || row_over(path.replace('\\', "/").as_bytes()).is_some()
}

/// Checks whether a tool applies a patch.
pub fn takes_patch(tool: &str) -> bool {
    PATCH_TOOLS.contains(&tool)
}

/// Returns the folders that the arguments of a call name for its command: several only if it is not clear which one counts.
pub fn folders_of(arguments: &Value) -> Vec<&str> {
    let named = ["cwd", "workdir"].into_iter().filter_map(|name| arguments.get(name)?.as_str());
    named.filter(|it| !it.is_empty()).collect()
}

impl ToolCall {
    /// Reads a call of a tool.
    pub fn read(tool: &str, arguments: &Value) -> Self {
        if is_all_shortened(arguments) {
            let command = Some(ToolCommand::unknown(&arguments.to_string()));
            return Self { command, more: true, writes: true, ..Self::default() };
        }
        if FILE_TOOLS.contains(&tool) {
            let named = FILE_ARGUMENTS.iter().filter_map(|name| arguments.get(name));
            let named: Vec<Option<&str>> = named.map(Value::as_str).collect();
            let complete = !named.is_empty() && named.iter().all(|it| it.is_some_and(|it| !it.is_empty()));
            let more = named.iter().flatten().any(|it| is_shortened(it));
            let other = OTHER_FILE_ARGUMENTS.iter().filter_map(|name| arguments.get(name));
            let other: Vec<&str> = other.flat_map(texts).collect();
            let more = more || other.iter().any(|it| is_shortened(it));
            let complete = complete && !more && other.is_empty();
            let paths = named.into_iter().flatten().chain(other).map(str::to_owned).collect();
            return Self { paths, complete, more, writes: tool != "Read", ..Self::default() }
                .with_addresses();
        }
        if takes_patch(tool) {
            return patched(arguments);
        }
        let command = command(arguments).map(|it| {
            let is_known = COMMAND_TOOLS.contains(&tool) && has_only(arguments, COMMAND_ARGUMENTS);
            let is_known = is_known && !is_for_network(arguments);
            ToolCommand { plain: it.plain.filter(|_| is_known), ..it }
        });
        let mut found = Found::default();
        if let Some(command) = &command {
            command.wide.words().for_each(|it| found.word(it));
            found.more |= command.wide.is_too_long();
        }
        // A line is read by its words.
        let lines = ["command", "cmd"].map(|name| arguments.get(name).and_then(Value::as_str));
        let is_line = |it: &&str| it.len() > PATH_LEN_MAX && lines.contains(&Some(it));
        texts(arguments).into_iter().filter(|it| !is_line(it)).for_each(|it| found.text(it));
        let more = found.more || found.paths.len() > TOOL_PATHS_MAX || found.open.len() > TOOL_PATHS_MAX;
        let paths = found.paths.into_iter().take(TOOL_PATHS_MAX).collect();
        let open = found.open.into_iter().take(TOOL_PATHS_MAX).map(Into::into).collect();
        Self { command, paths, complete: false, open, more, writes: true }.with_addresses()
    }

    /// Adds the paths of addresses of files (`file:///etc/passwd`). It is not known whether the tool reads them as such.
    fn with_addresses(mut self) -> Self {
        let found: Vec<String> = self.paths.iter().filter_map(|it| path_of_address(it)).collect();
        self.complete &= found.is_empty();
        self.paths.extend(found);
        self
    }
}

/// Returns the path in an address of a file, with its escapes read.
fn path_of_address(address: &str) -> Option<String> {
    let scheme = address.get(..5).filter(|it| it.eq_ignore_ascii_case("file:"))?;
    let rest = &address[scheme.len()..];
    let path = match rest.strip_prefix("//") {
        // Before the path, an address has a host's name: an empty one, or this host's.
        Some(rest) => rest.find('/').map_or(rest, |at| &rest[at..]),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    percent_decoded(path).filter(|it| !it.is_empty())
}

/// Checks whether Codex asks about a command's connection to the network, and not about the command that it names with it.
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
        // Only the tool knows which of them runs: two lines are not a plain command.
        (Some(one), Some(other)) => Some(ToolCommand::line(&format!("{}\n{}", one.text, other.text))),
        (one, other) => one.or(other),
    }
}

/// Returns the files of a patch. Each line that may name a file counts as one, anywhere in the arguments. A patch
/// without such a line may change any file.
fn patched(arguments: &Value) -> ToolCall {
    const NAMES: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    const MARKS: [&str; 3] = ["*** Begin Patch", "*** End Patch", "*** End of File"];
    let is_head = |line: &&str| line.starts_with("***");
    let all = texts(arguments);
    let (mut paths, mut complete) = (Vec::new(), is_one_patch(arguments));
    for head in all.iter().flat_map(|it| it.lines()).map(str::trim).filter(is_head) {
        match NAMES.iter().find_map(|name| head.strip_prefix(name)) {
            Some(path) => paths.push(path.trim().to_owned()),
            None => complete &= MARKS.contains(&head),
        }
    }
    complete &= all.iter().filter(|it| it.lines().map(str::trim).any(|it| is_head(&it))).count() == 1;
    let more = paths.len() > TOOL_PATHS_MAX || paths.iter().any(|it| it.len() > PATH_LEN_MAX);
    let more = more || paths.is_empty() || all.iter().any(|it| is_shortened(it));
    paths.truncate(TOOL_PATHS_MAX);
    ToolCall { paths, complete: complete && !more, more, writes: true, ..ToolCall::default() }
        .with_addresses()
}

/// Checks whether it is clear which of the arguments is the patch: a text, alone or behind the tool's own name.
fn is_one_patch(arguments: &Value) -> bool {
    let given: Vec<&Value> =
        ["command", "input", "patch"].into_iter().filter_map(|name| arguments.get(name)).collect();
    match &given[..] {
        [] => arguments.is_string(),
        [Value::String(_)] => true,
        [Value::Array(words)] => match &words[..] {
            [Value::String(_)] => true,
            [Value::String(name), Value::String(_)] => takes_patch(name),
            _ => false,
        },
        _ => false,
    }
}

/// Texts of a call that may be paths.
#[derive(Default)]
struct Found {
    paths: BTreeSet<String>,
    open: BTreeSet<String>,
    more: bool,
}

impl Found {
    /// Notes a word of a command, and its parts behind signs that often precede a path.
    fn word(&mut self, word: &LineWord) {
        for word in [Some(word.clone()), word.unescaped()].into_iter().flatten() {
            if word.open {
                self.open.insert(with_stars(&word.text));
            }
            let text = word.text.as_str();
            // `user@host` has no path; `-d@file` has one.
            let at = text.split_once('@').filter(|(before, _)| before.is_empty() || before.starts_with('-'));
            let parts = text.split([':', ',', '=']).flat_map(|it| [Some(it), it.strip_prefix('@')]);
            let all = [Some(text), at.map(|it| it.1)].into_iter().chain(parts);
            all.flatten().for_each(|it| self.text(it));
        }
    }

    fn text(&mut self, text: &str) {
        self.more |= is_shortened(text);
        if text.is_empty() || text.chars().any(char::is_control) {
            return;
        }
        match text.len() <= PATH_LEN_MAX {
            true => {
                self.paths.insert(text.to_owned());
            }
            false => self.more = true,
        }
    }
}

/// Returns a word with a star for each part that is not known before the line runs.
fn with_stars(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut all = String::new();
    while let Some(c) = rest.next() {
        let end = match c {
            '$' => match rest.next_if_eq(&'{') {
                Some(_) => Some('}'),
                None => {
                    while rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '_').is_some() {}
                    None
                }
            },
            '{' => Some('}'),
            '[' => Some(']'),
            '*' | '?' => None,
            c => {
                all.push(c);
                continue;
            }
        };
        if let Some(end) = end {
            while rest.next_if(|it| *it != end).is_some() {}
            rest.next();
        }
        all.push('*');
    }
    // The output of a command leaves no sign.
    if !all.contains('*') {
        all.push('*');
    }
    all
}

/// Returns every text within arguments.
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
