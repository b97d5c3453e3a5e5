//! Permission requests that a host settles without its person: the hook leaves those to it at once.
//!
//! Claude Code calls the hook after its own rules, its modes and its classifier, at the same time as it shows its
//! dialog. Codex calls the hook before its reviewer, whether that is a model or the person, and does not name the
//! reviewer: the record of the session does, or else its configuration.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::call::HookInput;
use super::host::HookHost;
use super::record::{Record, regular};
use provost_base::limits::HOOK_CONFIG_BYTES_MAX;

/// Tools of Claude Code that are questions to the person. A yes instead of the dialog would answer nothing.
const CLAUDE_QUESTIONS: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

/// Tools of Claude Code that write files, which its mode `acceptEdits` covers.
const CLAUDE_EDITS: &[&str] = &["Edit", "MultiEdit", "Write", "NotebookEdit"];

/// Checks whether a host settles this request itself, or asks its person in a way that no other answer can replace.
pub(super) fn by_host(host: HookHost, told: &HookInput) -> bool {
    match host {
        HookHost::Claude | HookHost::Cursor => {
            let tool = told.tool().unwrap_or_default();
            CLAUDE_QUESTIONS.contains(&tool)
                || match told.text("permission_mode") {
                    Some("auto" | "dontAsk" | "bypassPermissions") => true,
                    Some("acceptEdits") => CLAUDE_EDITS.contains(&tool),
                    _ => false,
                }
        }
        HookHost::Codex => reviewer(told).is_some_and(|it| it != "user"),
    }
}

/// Returns the reviewer of the requests of Codex's session: the person is `user`.
fn reviewer(told: &HookInput) -> Option<String> {
    let said = told.text("approvals_reviewer").map(str::to_owned);
    said.or_else(|| Record::of(told)?.reviewer(told.text("turn_id")))
        .or_else(|| in_configuration(&crate::screens::home()?.join("config.toml")))
}

fn in_configuration(path: &Path) -> Option<String> {
    let mut text = String::new();
    regular(path)?.take(HOOK_CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let of_profile =
        || table.get("profiles")?.get(table.get("profile")?.as_str()?)?.get("approvals_reviewer");
    of_profile().or_else(|| table.get("approvals_reviewer"))?.as_str().map(str::to_owned)
}

/// Returns the folder in which the tool would be used, as far as the host tells it: the daemon reads a folder in the
/// arguments itself. Codex lets a model choose the folder of a command, and does not tell the hook.
pub(super) fn folder(host: HookHost, told: &HookInput, project: &Path) -> Option<PathBuf> {
    let start = told.text("cwd").map_or_else(|| project.to_owned(), |it| project.join(it));
    let command = || told.arguments().get("command")?.as_str().map(str::to_owned);
    match host {
        HookHost::Codex if told.is_command() => Record::of(told)?.folder(&command()?, &start),
        HookHost::Codex | HookHost::Claude | HookHost::Cursor => Some(start),
    }
}
