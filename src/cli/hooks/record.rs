//! The record of a Codex session, read for two facts that Codex's messages to hooks lack: the reviewer of a turn's
//! requests, and the folder in which a command would run.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::call::HookInput;
use provost_base::limits::HOOK_RECORD_BYTES_MAX;

/// The end of a record, line by line.
pub(super) struct Record(String);

impl Record {
    /// Reads the record that a hook's message names.
    pub(super) fn of(told: &HookInput) -> Option<Self> {
        let mut file = regular(Path::new(told.text("transcript_path")?))?;
        let from = file.metadata().ok()?.len().saturating_sub(HOOK_RECORD_BYTES_MAX);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(HOOK_RECORD_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match from {
            0 => Some(Self(text)),
            _ => text.split_once('\n').map(|(_, rest)| Self(rest.to_owned())),
        }
    }

    /// Returns the contents of entries of a kind, the newest first.
    fn payloads<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = Value> + 'a {
        let lines = self.0.lines().rev().filter(move |it| it.contains(kind));
        let entries = lines.filter_map(|it| serde_json::from_str::<Value>(it).ok());
        entries.filter(move |it| it["type"] == kind).map(|mut it| it["payload"].take())
    }

    /// Returns the reviewer of a turn's requests; of the newest turn, where the record does not number them.
    pub(super) fn reviewer(&self, turn: Option<&str>) -> Option<String> {
        let context = self.payloads("turn_context").find(|it| match it["turn_id"].as_str() {
            Some(id) => turn == Some(id),
            None => true,
        })?;
        context["approvals_reviewer"].as_str().map(str::to_owned)
    }

    /// Returns the folder in which a command would run. `None` if no call of it is under way, if several are in
    /// different folders, or if its shell is not the usual one.
    pub(super) fn folder(&self, command: &str, start: &Path) -> Option<PathBuf> {
        let (mut ended, mut found) = (Vec::new(), Vec::new());
        for entry in self.payloads("response_item") {
            let id = entry["call_id"].as_str().unwrap_or_default().to_owned();
            match entry["type"].as_str() {
                Some("function_call_output") => ended.push(id),
                Some("function_call") if !ended.contains(&id) => {
                    let given =
                        entry["arguments"].as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
                    found.extend(given.filter(|it| runs(it, command)));
                }
                _ => {}
            }
        }
        let folders = found.iter().map(|it| match (it.get("shell"), &it["workdir"]) {
            (None | Some(Value::Null), Value::Null) => Some(start.to_owned()),
            (None | Some(Value::Null), Value::String(folder)) => Some(start.join(folder)),
            _ => None,
        });
        let folders: Vec<PathBuf> = folders.collect::<Option<_>>()?;
        let (first, rest) = folders.split_first()?;
        rest.iter().all(|it| it == first).then(|| first.clone())
    }
}

/// Checks whether a call with these arguments runs a command.
fn runs(arguments: &Value, command: &str) -> bool {
    ["cmd", "command"].into_iter().any(|name| match &arguments[name] {
        Value::String(line) => line == command,
        Value::Array(words) => words.last().and_then(Value::as_str) == Some(command),
        _ => false,
    })
}

/// Opens a regular file; any other kind could make its reader wait.
pub(super) fn regular(path: &Path) -> Option<File> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    File::open(path).ok()
}
