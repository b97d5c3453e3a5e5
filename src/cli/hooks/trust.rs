//! Finds out whether Codex trusts Provost's hooks: it runs none before its person has agreed, at the start of its screen or at
//! `/hooks`, and without a screen it does not report that. It reads no hooks of a repository that it does not trust (`[projects]`).
//!
//! In `[hooks.state]` of its own configuration Codex keeps, for each hook by its file, event and place, a digest of
//! the trusted hook. A hook that has changed since is not trusted any more. Tried with the screen of Codex 0.169.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::host::HookHost;
use crate::RepoContext;
use provost_base::limits::HOST_FILE_BYTES_MAX;
use provost_base::{Digest, Json};

/// The time that Codex gives a hook without a time of its own, in seconds.
const TIMEOUT_S: u64 = 600;

/// The reason why Codex runs Provost's hooks or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trust {
    /// Codex runs them.
    Given,
    /// Codex does not trust the repository, so it does not read the hooks.
    NoProject,
    /// One of them was never trusted.
    New,
    /// One of them has changed since it was trusted.
    Changed,
    /// One of them is switched off.
    Off,
}

impl Trust {
    /// Returns the state and the next step, for a person; `None` where no step is needed.
    pub(super) fn advice(self) -> Option<&'static str> {
        match self {
            Self::Given => None,
            Self::NoProject => Some(
                "Codex reads no hooks of a repository that it does not trust; start codex here, and say that you trust it",
            ),
            Self::New => Some(
                "Codex runs no hook before you trust it; start codex here, and say so when it asks, or at /hooks",
            ),
            Self::Changed => Some(
                "they have changed since you trusted them, and Codex runs none that has; start codex here, and say so when \
                 it asks, or at /hooks",
            ),
            Self::Off => {
                Some("they are switched off in Codex; start codex here, and switch them on at /hooks")
            }
        }
    }
}

/// Checks whether Codex runs all of Provost's hooks in its file as they are.
pub(super) fn of(here: &RepoContext, file: &Path, text: &str) -> Trust {
    let (Some(config), Ok(said)) = (config(here), serde_json::from_str::<Value>(text)) else {
        return Trust::New;
    };
    let places = &here.places;
    let trusts = |top: &Path| {
        let project = config.get("projects").and_then(|it| it.get(top.to_str()?));
        project.and_then(|it| it.get("trust_level")).and_then(toml::Value::as_str) == Some("trusted")
    };
    if ![&places.worktree, &places.root].into_iter().any(|it| trusts(it)) {
        return Trust::NoProject;
    }
    let state = config.get("hooks").and_then(|it| it.get("state"));
    let events = said["hooks"].as_object().into_iter().flatten();
    let ours = events.flat_map(|(event, groups)| hooks_of(&snake(event), groups));
    let each = ours.map(|(place, digest)| {
        let known = state.and_then(|it| it.get(format!("{}:{place}", file.display())));
        let trusted = known.as_ref().and_then(|it| it.get("trusted_hash")).and_then(toml::Value::as_str);
        match trusted {
            None => Trust::New,
            Some(known) if known != digest => Trust::Changed,
            Some(_)
                if known.and_then(|it| it.get("enabled")).and_then(toml::Value::as_bool) == Some(false) =>
            {
                Trust::Off
            }
            Some(_) => Trust::Given,
        }
    });
    each.into_iter().find(|it| *it != Trust::Given).unwrap_or(Trust::Given)
}

/// Returns Provost's hooks of an event: place and digest of each.
fn hooks_of(event: &str, groups: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (number, group) in groups.as_array().into_iter().flatten().enumerate() {
        for (place, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
            let command = hook["command"].as_str().unwrap_or_default();
            if !HookHost::Codex.is_ours(command) {
                continue;
            }
            let mut said = json!({ "event_name": event, "hooks": [{
                "type": "command", "command": command,
                "timeout": hook["timeout"].as_u64().unwrap_or(TIMEOUT_S),
                "async": hook["async"].as_bool().unwrap_or(false),
            }] });
            if let Some(matcher) = group["matcher"].as_str() {
                said["matcher"] = matcher.into();
            }
            let digest = Digest::of(Json::from_value(&said).as_str().as_bytes());
            found.push((format!("{event}:{number}:{place}"), format!("sha256:{digest}")));
        }
    }
    found
}

/// Turns `PreToolUse` into `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for (at, c) in event.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Returns the folder of Codex' configuration.
pub(super) fn home(here: &RepoContext) -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    home.or_else(|| Some(here.environment.home.as_ref()?.join(".codex")))
}

/// Reads Codex' configuration.
fn config(here: &RepoContext) -> Option<toml::Table> {
    let mut text = String::new();
    let file = std::fs::File::open(home(here)?.join("config.toml")).ok()?;
    file.take(HOST_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
