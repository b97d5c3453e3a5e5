//! The writes of a tool call: which files, and their new contents, as far as its arguments tell.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::patch::{self, Change};
use super::shell::{self, Written};
use super::wide::{Wide, bounded};
use crate::{RepoContext, out};
use provost_base::WITH_BACKSLASH;
use provost_base::limits::{HOOK_FILES_MAX, HOOK_LINKS_MAX, SOURCE_BYTES_MAX};

/// A host's message to a hook.
pub(super) struct HookInput(Value);

/// A file that a call would write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Its path.
    pub(super) path: PathBuf,
    /// Its content before and after, where both are known.
    pub(super) change: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the host will refuse the edit itself, since the text that it replaces is not in the file.
    pub(super) fails: bool,
}

impl Target {
    /// Makes a file whose new content is not known.
    pub(super) fn whole(path: PathBuf) -> Self {
        Self { path, change: None, fails: false }
    }
}

/// The writes of a call.
#[derive(Default)]
pub(super) struct Targets {
    /// Single files.
    pub(super) files: Vec<Target>,
    /// Areas in which any file may be written.
    pub(super) wide: Vec<Wide>,
    /// Folders in whose work trees a command writes git's index or stash.
    pub(super) index: Vec<PathBuf>,
    /// The number of the first files that a command writes by one of Codex's patches, which tells their new contents.
    pub(super) patched: usize,
}

impl Targets {
    /// Makes the targets of a call that cannot be analysed: it may write anything.
    pub(super) fn anything() -> Self {
        Self { wide: vec![Wide::Anything], ..Self::default() }
    }

    /// Checks whether the call could not be analysed.
    pub(super) fn is_anything(&self) -> bool {
        self.wide.contains(&Wide::Anything)
    }
}

impl HookInput {
    /// Reads a host's message.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(text).map_err(|err| format!("it is no JSON: {err}"))?;
        // The host may carry out the other one of them.
        if let Some(why) = provost_mcp::repeated_member(text) {
            return Err(format!("the tool call is not understood: {why}"));
        }
        match value.is_object() {
            true => Ok(Self(value)),
            false => Err("it is no object".into()),
        }
    }

    /// Makes the message that a host would send about a tool with these arguments.
    pub(super) fn of(tool: &str, arguments: &Value) -> Self {
        Self(serde_json::json!({ "tool_name": tool, "tool_input": arguments }))
    }

    /// Returns a text among its members; an empty one counts as missing.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|it| !it.is_empty())
    }

    /// Checks whether a member is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the answer of a tool that was used.
    pub(super) fn response(&self) -> Option<&Value> {
        self.0.get("tool_response")
    }

    /// Returns the session that the message is about.
    pub(super) fn session(&self) -> Option<&str> {
        self.text("session_id").or_else(|| self.text("conversation_id"))
    }

    /// Checks whether the session continues one of the same process that has ended.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.text("source"), Some("clear" | "compact" | "resume"))
    }

    /// Returns the tool. Cursor's hook for shell commands names none.
    pub(super) fn tool(&self) -> Result<&str, String> {
        match (self.text("tool_name"), self.text("command")) {
            (Some(tool), _) => Ok(tool),
            (None, Some(_)) => Ok("Shell"),
            (None, None) => Err("it names no tool".into()),
        }
    }

    /// Checks whether the tool runs a command, whose writes cannot be foreseen.
    pub(super) fn is_command(&self) -> bool {
        matches!(self.tool(), Ok("Bash" | "Monitor" | "Shell" | "shell" | "exec_command"))
    }

    /// Returns the tool's arguments.
    pub(super) fn arguments(&self) -> &Value {
        let given = self.0.get("tool_input");
        given.unwrap_or(&self.0)
    }

    /// Returns the folder at which relative paths begin.
    pub(super) fn folder(&self, project: &Path) -> PathBuf {
        let from = self.text("cwd").map_or_else(|| project.to_owned(), |it| project.join(it));
        let inner = ["cwd", "workdir"].into_iter().find_map(|name| self.arguments().get(name)?.as_str());
        inner.filter(|it| !it.is_empty()).map_or_else(|| from.clone(), |it| from.join(it))
    }

    /// Returns everything that the call would write, as far as the analysis gets until then.
    ///
    /// # Errors
    /// The reason why the writes of a writing call cannot be told.
    pub(super) fn targets(&self, folder: &Path, until: Instant) -> Result<Targets, String> {
        let tool = self.tool()?;
        let given = Arguments { given: self.arguments(), folder };
        let (mut wide, mut index, mut patched) = (Vec::new(), Vec::new(), 0);
        let files = match tool {
            "Write" | "TabWrite" | "write_file" | "create_file" => given.whole()?,
            "Edit" | "MultiEdit" | "StrReplace" | "search_replace" | "edit_file" => given.edited()?,
            "NotebookEdit" | "EditNotebook" | "Delete" | "delete_file" => given.named()?,
            "apply_patch" | "ApplyPatch" => given.patched()?,
            // Without a command it watches something other than a process.
            "Monitor" if given.given.get("command").is_none() => Vec::new(),
            "Bash" | "Monitor" | "Shell" | "shell" | "exec_command" => {
                given.commanded((&mut wide, &mut index, &mut patched), until)?
            }
            tool if writes_over_mcp(tool) => given.paths(),
            _ => Vec::new(),
        };
        match files.len() > HOOK_FILES_MAX {
            true => Ok(Targets::anything()),
            false => Ok(Targets { files, wide: bounded(wide), index, patched }),
        }
    }
}

/// Checks by its name whether a tool of an MCP server writes. Provost's own tools write no files.
fn writes_over_mcp(tool: &str) -> bool {
    const WORDS: [&str; 11] = [
        "write", "edit", "create", "delete", "remove", "move", "rename", "replace", "insert", "patch",
        "apply",
    ];
    let tool = tool.to_ascii_lowercase();
    let tool = tool.strip_prefix("mcp__").or_else(|| tool.strip_prefix("mcp:"));
    tool.is_some_and(|it| !it.starts_with("provost__") && WORDS.iter().any(|word| it.contains(word)))
}

/// The arguments of a tool, and the folder at which their paths begin.
struct Arguments<'a> {
    given: &'a Value,
    folder: &'a Path,
}

impl Arguments<'_> {
    fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.given.get(name)?.as_str())
    }

    /// Returns the one file that the arguments name.
    fn path(&self) -> Result<PathBuf, String> {
        const NAMES: [&str; 6] =
            ["file_path", "notebook_path", "target_file", "path", "filePath", "target_notebook"];
        let path = self.text(&NAMES).filter(|it| !it.is_empty());
        path.map(|it| self.folder.join(it)).ok_or_else(|| "it names no file".into())
    }

    fn named(&self) -> Result<Vec<Target>, String> {
        Ok(vec![Target::whole(self.path()?)])
    }

    fn whole(&self) -> Result<Vec<Target>, String> {
        // Cursor uses the same tool for edits of a part.
        let Some(after) = self.text(&["content", "contents", "code_content"]) else { return self.edited() };
        let path = self.path()?;
        let change = content(&path).map(|before| (before, after.as_bytes().to_vec()));
        Ok(vec![Target { path, change, fails: false }])
    }

    /// Returns a file in which texts are replaced by others.
    fn edited(&self) -> Result<Vec<Target>, String> {
        let path = self.path()?;
        let edits: Vec<&Value> = match self.given.get("edits").and_then(Value::as_array) {
            Some(edits) => edits.iter().collect(),
            None => vec![self.given],
        };
        let Some(before) = content(&path) else { return Ok(vec![Target::whole(path)]) };
        let Ok(text) = String::from_utf8(before.clone()) else { return Ok(vec![Target::whole(path)]) };
        let is_near = edits.iter().any(|edit| is_near(&text, edit));
        let after = edits.into_iter().try_fold(text, |text, edit| replaced(&text, edit));
        if after.is_none() && is_near {
            return Ok(vec![Target::whole(path)]);
        }
        let fails = after.is_none();
        let change = after.map(|after| (before, after.into_bytes()));
        Ok(vec![Target { path, change, fails }])
    }

    fn patched(&self) -> Result<Vec<Target>, String> {
        let text = match self.given {
            Value::String(text) => Some(text.as_str()),
            _ => self.text(&["command", "input", "patch"]),
        };
        let files = patch::read(text.ok_or("it has no patch")?);
        match files.is_empty() {
            true => Err("its patch names no file".into()),
            false => Ok(self.of_patch(&files)),
        }
    }

    fn of_patch(&self, files: &[patch::Patched]) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for file in files {
            let path = self.folder.join(&file.path);
            // The second part of a patch reads what the first one has written.
            let is_again = targets.iter().any(|it| it.path == path);
            let before = content(&path).filter(|_| !is_again);
            let text = before.as_deref().and_then(|it| std::str::from_utf8(it).ok());
            let after = match (&file.change, text) {
                (Change::Whole(text), _) => Some(text.clone()),
                (Change::Gone, _) => Some(String::new()),
                (Change::Parts(parts), Some(before)) => patch::apply(before, parts),
                (Change::Parts(_), None) => None,
            };
            let fails = text.is_some() && after.is_none();
            if let Some(to) = &file.to {
                let gone = before.clone().map(|it| (it, Vec::new()));
                targets.push(Target { path, change: gone, fails });
                let path = self.folder.join(to);
                let change = content(&path).zip(after.map(String::into_bytes));
                targets.push(Target { path, change, fails });
            } else {
                targets.push(Target { path, change: before.zip(after.map(String::into_bytes)), fails });
            }
        }
        targets
    }

    fn commanded(
        &self,
        (wide, index, patched): (&mut Vec<Wide>, &mut Vec<PathBuf>, &mut usize),
        until: Instant,
    ) -> Result<Vec<Target>, String> {
        let command = match self.given.get("command").or_else(|| self.given.get("cmd")) {
            Some(Value::String(command)) => command.clone(),
            // `["bash", "-lc", "..."]`
            Some(Value::Array(words)) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                words.and_then(|it| it.last().map(|it| (*it).to_owned())).ok_or("its command is no text")?
            }
            _ => return Err("it has no command".into()),
        };
        let all = shell::written(&command, self.folder, until);
        let (patches, all): (Vec<Written>, Vec<Written>) =
            all.into_iter().partition(|it| matches!(it, Written::CodexPatch(..)));
        let mut targets = Vec::new();
        for it in &patches {
            let Written::CodexPatch(patch, folder) = it else { continue };
            targets.extend(Arguments { given: self.given, folder }.of_patch(&patch::read(patch)));
        }
        *patched = targets.len();
        if patches.is_empty() {
            // The patch stands behind another program, or in a variable: its files may be written.
            targets = self.of_patch(&patch::read(&command));
        }
        for written in all {
            match written {
                Written::CodexPatch(..) => {}
                Written::Path(path) if path.symlink_metadata().is_ok_and(|it| it.is_dir()) => {
                    wide.push(Wide::Below(path, Vec::new()));
                }
                Written::Path(path) => targets.push(Target::whole(path)),
                Written::Below(folder, patterns) => wide.push(Wide::Below(folder, patterns)),
                Written::Changed(folder, between) => wide.push(Wide::Changed(folder, between)),
                Written::Index(folder) => index.push(folder),
                Written::Anything => wide.push(Wide::Anything),
                Written::Patched(patch, folder, strip) => {
                    let patch = content(&patch).filter(|it| !it.is_empty());
                    match patch {
                        Some(patch) => targets.extend(
                            patch::named(&String::from_utf8_lossy(&patch), strip)
                                .into_iter()
                                .map(|it| Target::whole(folder.join(it))),
                        ),
                        None => wide.push(Wide::Below(folder, Vec::new())),
                    }
                }
            }
        }
        Ok(targets)
    }

    /// Returns every file whose path seems to be among the arguments.
    fn paths(&self) -> Vec<Target> {
        const NAMES: [&str; 9] = [
            "path",
            "file_path",
            "filePath",
            "relative_path",
            "file",
            "source",
            "destination",
            "target_file",
            "paths",
        ];
        let given = NAMES.iter().filter_map(|name| self.given.get(name));
        let texts = given.flat_map(|it| match it {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            it => it.as_str().into_iter().collect::<Vec<_>>(),
        });
        let texts = texts.filter(|it| !it.is_empty() && !it.contains("://"));
        texts.map(|it| Target::whole(self.folder.join(it))).collect()
    }
}

/// Returns a text with one replacement; `None` where a host would not make it, or where the place is ambiguous.
fn replaced(text: &str, edit: &Value) -> Option<String> {
    let member = |names: [&str; 2]| names.into_iter().find_map(|name| edit.get(name)?.as_str());
    let (old, new) = (member(["old_string", "oldText"])?, member(["new_string", "newText"])?);
    if old.is_empty() {
        return text.is_empty().then(|| new.to_owned());
    }
    let all = edit.get("replace_all").and_then(Value::as_bool).unwrap_or(false);
    for (old, new) in
        [(old.to_owned(), new.to_owned()), (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"))]
    {
        match text.matches(&old).count() {
            0 => {}
            1 => return Some(text.replacen(&old, &new, 1)),
            _ if all => return Some(text.replace(&old, &new)),
            _ => return None,
        }
    }
    None
}

/// Checks whether a host may carry out an edit although its old text is not literally in the file: Claude Code takes
/// straight quotes for typographic ones, and reads escapes.
fn is_near(text: &str, edit: &Value) -> bool {
    let old =
        ["old_string", "oldText"].into_iter().find_map(|name| edit.get(name)?.as_str()).unwrap_or_default();
    let is_there = text.contains(old) || text.contains(&old.replace('\n', "\r\n"));
    let letters =
        |text: &str| -> String { unescaped(text).chars().filter(|it| it.is_alphanumeric()).collect() };
    let sought = letters(old);
    !is_there && !sought.is_empty() && letters(text).contains(&sought)
}

/// Returns a text in which each `\u` with four digits is replaced by its character.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..4).and_then(|it| u32::from_str_radix(it, 16).ok()).and_then(char::from_u32);
        match code {
            Some(c) => {
                out.push(c);
                out.push_str(&part[4..]);
            }
            None => {
                out.push_str("\\u");
                out.push_str(part);
            }
        }
    }
    out
}

/// Returns a file's content; empty if the file does not exist, and `None` if it cannot be compared.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    match path.metadata() {
        Ok(meta) if !meta.is_file() || meta.len() > SOURCE_BYTES_MAX as u64 => None,
        Ok(_) => {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
            (bytes.len() <= SOURCE_BYTES_MAX).then_some(bytes)
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        Err(_) => None,
    }
}

/// Returns the names that the repository has for a file, each with the top of its work tree: by its path in words,
/// and by the target of its links. Empty for a file outside of it, and for one whose name would mean another file.
pub(crate) fn names_in(here: &RepoContext, path: &Path) -> Vec<(PathBuf, String)> {
    let mut names = names_as_is(here, path);
    names.retain(|it| !it.1.contains('\\'));
    names
}

/// Says why a write to one of these files is refused: it cannot be held, since its name would mean another file.
pub(super) fn unnamed(here: &RepoContext, files: &[Target]) -> Option<String> {
    let mut names = files.iter().flat_map(|it| names_as_is(here, &it.path));
    let name = names.find_map(|it| it.1.contains('\\').then_some(it.1))?;
    Some(format!(
        "Not written: Provost cannot hold `{}` for you: {WITH_BACKSLASH}. Give the file a name without one.",
        out::one_line(&name, 200)
    ))
}

fn names_as_is(here: &RepoContext, path: &Path) -> Vec<(PathBuf, String)> {
    let mut names: Vec<(PathBuf, String)> = Vec::new();
    for path in [Some(path.to_owned()), real(path)].into_iter().flatten() {
        if let Ok(name) = here.place_as_is(&path)
            && !name.1.is_empty()
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Returns the target of a path, with its existing links followed.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    let mut there = path.to_owned();
    // A write through a link to a missing file creates that file.
    for _ in 0..HOOK_LINKS_MAX {
        let Ok(to) = std::fs::read_link(&there) else { break };
        there = there.parent()?.join(to);
    }
    let mut rest: Vec<std::ffi::OsString> = Vec::new();
    loop {
        if let Ok(real) = provost_system::real_path(&there) {
            return Some(rest.iter().rev().fold(real, |path, name| path.join(name)));
        }
        rest.push(there.file_name()?.to_owned());
        there = there.parent()?.to_owned();
    }
}
