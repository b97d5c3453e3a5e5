//! Which permission requests a host settles without its person: those are left to it at once.
//!
//! Claude Code calls the hook after its own rules, its modes and its classifier, at the same time as it shows its dialog.
//! Codex calls the hook before its reviewer, whether that is a model or the person, and does not say which of them it is:
//! the record of the session does, and else its configuration.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::call::Told;
use super::host::Host;
use provost_base::limits::{HOOK_CONFIG_BYTES_MAX, HOOK_RECORD_BYTES_MAX};

/// Tools of Claude Code that are questions to the person themselves. A yes in the dialog's place would answer nothing.
const CLAUDE_QUESTIONS: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

/// Tools of Claude Code that write files, which its mode `acceptEdits` is about.
const CLAUDE_EDITS: &[&str] = &["Edit", "MultiEdit", "Write", "NotebookEdit"];

/// Whether a host settles this request itself, or puts it to its person in a way that no other answer can stand in for.
pub(super) fn by_host(host: Host, told: &Told) -> bool {
    match host {
        Host::Claude | Host::Cursor => {
            let tool = told.tool().unwrap_or_default();
            CLAUDE_QUESTIONS.contains(&tool)
                || match told.text("permission_mode") {
                    Some("auto" | "dontAsk" | "bypassPermissions") => true,
                    Some("acceptEdits") => CLAUDE_EDITS.contains(&tool),
                    _ => false,
                }
        }
        Host::Codex => reviewer(told).is_some_and(|it| it != "user"),
    }
}

/// Who reviews the requests of Codex's session: the person is `user`.
fn reviewer(told: &Told) -> Option<String> {
    let said = told.text("approvals_reviewer").map(str::to_owned);
    said.or_else(|| in_record(Path::new(told.text("transcript_path")?), told.text("turn_id")))
        .or_else(|| in_configuration(&codex_home()?.join("config.toml")))
}

fn codex_home() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = || provost_system::HOME.iter().find_map(std::env::var_os).filter(|it| !it.is_empty());
    named.or_else(|| Some(PathBuf::from(home()?).join(".codex")))
}

/// As the record of the session says for this turn; for the newest one, where the record does not number them.
fn in_record(path: &Path, turn: Option<&str>) -> Option<String> {
    let text = end_of(path, HOOK_RECORD_BYTES_MAX)?;
    let contexts = text.lines().rev().filter(|it| it.contains("\"turn_context\""));
    let contexts = contexts.filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let mut contexts = contexts.filter(|it| it["type"] == "turn_context").map(|mut it| it["payload"].take());
    let context = contexts.find(|it| match it["turn_id"].as_str() {
        Some(id) => turn == Some(id),
        None => true,
    })?;
    context["approvals_reviewer"].as_str().map(str::to_owned)
}

/// The end of a file, from a whole line on.
fn end_of(path: &Path, most: u64) -> Option<String> {
    let mut file = regular(path)?;
    let from = file.metadata().ok()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match from {
        0 => Some(text),
        _ => text.split_once('\n').map(|(_, rest)| rest.to_owned()),
    }
}

/// A file that does not keep its reader waiting.
fn regular(path: &Path) -> Option<File> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    File::open(path).ok()
}

fn in_configuration(path: &Path) -> Option<String> {
    let mut text = String::new();
    regular(path)?.take(HOOK_CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let of_profile =
        || table.get("profiles")?.get(table.get("profile")?.as_str()?)?.get("approvals_reviewer");
    of_profile().or_else(|| table.get("approvals_reviewer"))?.as_str().map(str::to_owned)
}
