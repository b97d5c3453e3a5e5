//! The writes of a tool call that an agent behind `provost acp` reports, and the agents that hold those places: the same as for a hook.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::call::{HookInput, Target, Targets, content, unnamed};
use super::host::HookHost;
use super::links;
use super::refusal::refusal;
use super::run::{NOT_WORKED_OUT, guarded, note};
use super::trees;
use crate::{CliError, RepoContext};
use provost_base::limits::HOOK_FILES_MAX;
use provost_base::{AgentId, acp, shell_word};

/// The writer.
pub(super) struct Writer {
    /// Whether it takes leases: a command takes none, since its real writes show only afterwards.
    pub(super) takes: bool,
    /// The process with which the leases end.
    pub(super) pid: Option<u32>,
    /// The subagent of the session that writes.
    pub(super) part: Option<String>,
}

/// The writes.
#[derive(Default)]
pub(crate) struct Writes {
    targets: Targets,
    /// Whether a command makes them: its real writes show only afterwards.
    by_command: bool,
}

impl Writes {
    /// Finds the writes of a call, as ACP reports it, as far as the analysis gets until then. Reads the files.
    pub(crate) fn of_call(call: &Value, folder: &Path, until: Instant) -> Self {
        let raw = &call["rawInput"];
        let diffs: Vec<&Value> = acp::diffs(call).collect();
        let mut all = match acp::kind(call) {
            "delete" => Self::of_files(places(call, folder).into_iter().map(|path| {
                let change = content(&path).map(|before| (before, Vec::new()));
                Target { path, change, fails: false }
            })),
            "edit" if diffs.is_empty() => {
                let targets = of_arguments(raw, folder, until).unwrap_or_default();
                Self { targets, by_command: false }
            }
            _ => Self::of_files(of_diffs(&diffs, folder).into_iter()),
        };
        if acp::kind(call) == "delete" {
            all.add_files(
                diffs.iter().filter_map(|it| it["path"].as_str()).map(|it| folder.join(it)).collect(),
            );
        }
        // If the reported places contradict each other, all of them count.
        if matches!(acp::kind(call), "edit" | "move" | "delete") {
            all.add_files(places(call, folder));
        }
        all.add_command(call, folder, until);
        all
    }

    /// Finds the writes of a call that has ended: for a file with the result of its differences, the changed parts, else the whole file.
    pub(crate) fn of_done_call(call: &Value, folder: &Path) -> Self {
        let diffs: Vec<&Value> = acp::diffs(call).collect();
        let mut all = Self::of_files(before_diffs(&diffs, folder).into_iter());
        all.add_files(places(call, folder));
        all
    }

    /// Adds files that are not among them yet, as whole files.
    fn add_files(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if !self.targets.files.iter().any(|it| it.path == path) {
                self.targets.files.push(Target::whole(path));
            }
        }
        if self.targets.files.len() > HOOK_FILES_MAX {
            self.targets = Targets::anything();
        }
    }

    /// Adds the writes of a command, in a call of any kind.
    fn add_command(&mut self, call: &Value, folder: &Path, until: Instant) {
        let arguments = acp::arguments(call);
        let Some(command) = ["command", "cmd"].iter().find_map(|it| arguments.get(it)) else { return };
        if command.is_null() {
            return;
        }
        let Some(line) = line_of(command) else { return *self = Self::anything() };
        // A patch belongs to an edit, and was read as one.
        if acp::kind(call) == "edit" && line.contains("*** Begin Patch") {
            return;
        }
        let folder = arguments["cwd"].as_str().map_or_else(|| folder.to_owned(), |it| folder.join(it));
        let told = HookInput::of("Bash", &json!({ "command": line })).targets(&folder, until);
        let told = told.unwrap_or_else(|_| Targets::anything());
        self.by_command = self.targets.files.is_empty();
        self.targets.files.extend(told.files);
        self.targets.wide.extend(told.wide);
        self.targets.index.extend(told.index);
    }

    /// Makes the write of a whole file.
    pub(crate) fn of_file(path: PathBuf, after: &str) -> Self {
        let change = content(&path).map(|before| (before, after.as_bytes().to_vec()));
        Self::of_files([Target { path, change, fails: false }].into_iter())
    }

    fn of_files(files: impl Iterator<Item = Target>) -> Self {
        let files: Vec<Target> = files.take(HOOK_FILES_MAX + 1).collect();
        let targets = match files.len() > HOOK_FILES_MAX {
            true => Targets::anything(),
            false => Targets { files, ..Targets::default() },
        };
        Self { targets, by_command: false }
    }

    /// Makes the writes of a call that cannot be analysed: it may write anything.
    pub(crate) fn anything() -> Self {
        Self { targets: Targets::anything(), by_command: true }
    }

    /// Checks whether no write was found.
    pub(crate) fn is_nothing(&self) -> bool {
        self.targets.files.is_empty() && self.targets.wide.is_empty()
    }
}

/// Returns the line of a command that may be given as words: `["bash", "-lc", "..."]`, `["rm", "a file"]`.
pub(crate) fn line_of(command: &Value) -> Option<String> {
    let words = match command {
        Value::String(line) => return Some(line.clone()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<Vec<&str>>>()?,
        _ => return None,
    };
    match words[..] {
        [_, flags, line] if flags.starts_with('-') && flags.ends_with('c') => Some(line.to_owned()),
        _ => Some(words.iter().map(|it| shell_word(it)).collect::<Vec<_>>().join(" ")),
    }
}

/// Returns the files that a call reports. A folder in its arguments is only the place where it searches.
fn places(call: &Value, folder: &Path) -> Vec<PathBuf> {
    let told = acp::places(call).filter(|it| !it.is_empty()).map(|it| folder.join(it));
    let named = acp::named(call).filter(|it| !it.is_empty()).map(|it| folder.join(it));
    let mut all: Vec<PathBuf> = Vec::new();
    for path in told.chain(named.filter(|it| !it.is_dir())) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Returns the results of differences in each file. If a difference is incomplete, the whole file counts.
fn of_diffs(diffs: &[&Value], folder: &Path) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for diff in diffs {
        let Some(path) = diff["path"].as_str().filter(|it| !it.is_empty()) else { continue };
        let path = folder.join(path);
        let known = targets.iter().position(|it| it.path == path);
        let at = known.unwrap_or_else(|| {
            let change = content(&path).map(|before| (before.clone(), before));
            targets.push(Target { path, change, fails: false });
            targets.len() - 1
        });
        let (old, new) = (diff["oldText"].as_str().unwrap_or_default(), diff["newText"].as_str());
        targets[at].change = targets[at]
            .change
            .take()
            .zip(new)
            .and_then(|((before, now), new)| Some((before, after(&now, old, new)?)));
    }
    targets
}

/// Returns the changes to each file that has the result of differences, the last difference first. If a difference is
/// incomplete, the whole file counts.
fn before_diffs(diffs: &[&Value], folder: &Path) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for diff in diffs.iter().rev() {
        let Some(path) = diff["path"].as_str().filter(|it| !it.is_empty()) else { continue };
        let path = folder.join(path);
        let known = targets.iter().position(|it| it.path == path);
        let at = known.unwrap_or_else(|| {
            let change = content(&path).map(|now| (now.clone(), now));
            targets.push(Target { path, change, fails: false });
            targets.len() - 1
        });
        let text = |name: &str| diff[name].as_str().filter(|it| !it.is_empty());
        targets[at].change = targets[at]
            .change
            .take()
            .zip(text("oldText").zip(text("newText")))
            .and_then(|((before, now), (old, new))| Some((after(&before, new, old)?, now)));
    }
    targets
}

/// Returns a file after one difference: the difference's text is the whole file, or a part that occurs once.
fn after(now: &[u8], old: &str, new: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(now).ok()?;
    if old.is_empty() || old == text {
        return Some(new.as_bytes().to_vec());
    }
    match text.matches(old).count() {
        1 => Some(text.replacen(old, new, 1).into_bytes()),
        _ => None,
    }
}

/// Finds the writes in the arguments of a tool for files, where they have a known form.
fn of_arguments(raw: &Value, folder: &Path, until: Instant) -> Option<Targets> {
    let text = |names: &[&str]| names.iter().find_map(|it| raw[it].as_str()).filter(|it| !it.is_empty());
    let is_patch = |it: &&str| it.contains("*** Begin Patch");
    if let Some(patch) = text(&["patch", "input", "command"]).filter(is_patch) {
        return HookInput::of("apply_patch", &json!({ "input": patch })).targets(folder, until).ok();
    }
    let path = text(&["file_path", "filePath", "filepath", "path"])?;
    let mut given = raw.as_object()?.clone();
    given.insert("file_path".into(), path.into());
    let tool = match () {
        () if raw.get("edits").is_some() || raw.get("old_string").is_some() => "Edit",
        () if raw.get("content").is_some_and(Value::is_string) => "Write",
        () => return None,
    };
    HookInput::of(tool, &Value::Object(given)).targets(folder, until).ok()
}

/// Says to the agent why it may not write; with `takes`, the agent holds the places from then on if nothing is in the
/// way. `None` also where no daemon runs and the settings let writes pass then.
///
/// # Errors
/// When that cannot be found out.
pub(crate) async fn obstacle(
    here: &RepoContext,
    agent: &AgentId,
    writes: &Writes,
    takes: bool,
    until: Instant,
) -> Result<Option<String>, CliError> {
    let targets = &writes.targets;
    if let Some(why) = unnamed(here, &targets.files).filter(|_| !writes.by_command) {
        return Ok(Some(why));
    }
    let edits = trees::by_tree(here, &targets.files)?;
    if edits.is_empty() && targets.wide.is_empty() && !links::are_there(targets) {
        return Ok(None);
    }
    let takes = takes && !writes.by_command;
    let writer = Writer { takes, pid: Some(std::process::id()), part: None };
    let Some(guarded) = guarded(here, (agent.clone(), targets), edits, writer, until).await? else {
        return Ok(None);
    };
    if guarded.blocked.is_empty() {
        if takes {
            note(here, agent, &targets.files);
        }
        return Ok(None);
    }
    let refusal = refusal(HookHost::Claude, &guarded);
    Ok(Some(match targets.is_anything() {
        true => format!("{NOT_WORKED_OUT} {refusal}"),
        false => refusal,
    }))
}
