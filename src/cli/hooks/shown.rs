//! A question that is shown in two places: by the host, which asks its person, and in Provost's queue.
//!
//! A host that has its answer does not end the hook that still waits for Provost's. So a waiting hook leaves a file,
//! and the hook for a tool that was used, or for a session that ends, removes it.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use provost_base::limits::HOOK_SHOWN_FILES_MAX;
use provost_base::{AgentId, Digest};
use provost_config::Places;
use provost_system as system;

/// The interval between two checks whether the file still exists.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The file of a waiting question.
pub(super) struct Shown(Option<PathBuf>);

/// Returns the agent's part of the name: a digest, since an agent's name may have any characters.
fn of_agent(agent: &AgentId) -> String {
    Digest::of(agent.as_str().as_bytes()).to_string().chars().take(16).collect()
}

fn path(places: &Places, agent: &AgentId, tool: &str, arguments: &Value) -> PathBuf {
    let asked = Digest::of(format!("{tool} {arguments}").as_bytes()).to_string();
    places.runtime.join("asked").join(format!("{}-{}", of_agent(agent), &asked[..16]))
}

impl Shown {
    /// Leaves the file. If that fails, the question waits as long as the host does.
    pub(super) fn keep(places: &Places, agent: &AgentId, tool: &str, arguments: &Value) -> Self {
        let path = path(places, agent, tool, arguments);
        let made = path.parent().map(system::make_private_folders).and_then(Result::ok).and_then(|()| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            system::private_file(&mut options).open(&path).ok()
        });
        Self(made.map(|_| path))
    }

    /// Waits until another hook has removed the file.
    pub(super) async fn is_taken_away(&self) {
        let Some(path) = &self.0 else { return std::future::pending().await };
        while path.symlink_metadata().is_ok() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Removes the file of a question, if it exists.
    pub(super) fn take_away(places: &Places, agent: &AgentId, tool: &str, arguments: &Value) {
        let _not_there = std::fs::remove_file(path(places, agent, tool, arguments));
    }

    /// Removes all files of an agent.
    pub(super) fn take_all_away(places: &Places, agent: &AgentId) {
        let ours = format!("{}-", of_agent(agent));
        let entries = std::fs::read_dir(places.runtime.join("asked")).into_iter().flatten().flatten();
        for entry in entries.take(HOOK_SHOWN_FILES_MAX) {
            if entry.file_name().as_encoded_bytes().starts_with(ours.as_bytes()) {
                let _not_there = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _not_there = std::fs::remove_file(path);
        }
    }
}
