//! The updates of an agent in its jail, read from its task's output and passed to the editor.

use std::path::Path;

use serde_json::{Value, json};

use provost_base::{AgentId, acp, visible, visible_name};

/// The agent's own updates that an editor gets. Modes and options are missing, since the editor cannot change them.
const SHOWN: [&str; 7] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "session_info_update",
];

/// Reads the lines of a task's output.
pub(super) struct Output {
    worker: AgentId,
    /// The beginning of a line whose end has not come yet.
    rest: String,
    /// The folder of the copy in which the agent works, and the session's folder in the editor; `None` until the first is known.
    folders: Option<(String, String)>,
}

impl Output {
    pub(super) fn of(worker: AgentId) -> Self {
        Self { worker, rest: String::new(), folders: None }
    }

    /// Checks whether the folder in which the agent works is known.
    pub(super) fn knows_folder(&self) -> bool {
        self.folders.is_some()
    }

    /// Sets the folders: the agent names files by their paths in its copy, the editor by their paths in its own folder.
    pub(super) fn works_in(&mut self, copy: &str, folder: &Path) {
        self.folders = Some((copy.to_owned(), folder.display().to_string()));
    }

    /// Returns the updates in the next piece of the output.
    pub(super) fn read(&mut self, piece: &str) -> Vec<Value> {
        self.rest.push_str(piece);
        let whole = self.rest.rfind('\n').map_or(0, |it| it + 1);
        let lines: String = self.rest.drain(..whole).collect();
        // A long output is cut, which leaves partial lines.
        let values = lines.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
        values.filter_map(|it| self.update(it)).collect()
    }

    /// Returns the update for the editor in a line of the output; `None` for a line that the editor does not get.
    pub(super) fn update(&self, line: Value) -> Option<Value> {
        if let Some(what) = line["provost"].as_str() {
            return self.of_daemon(what, &line);
        }
        let kind = line["sessionUpdate"].as_str()?;
        if !SHOWN.contains(&kind) {
            return None;
        }
        Some(match &self.folders {
            Some((copy, folder)) if copy != folder => acp::in_place_of(&line, copy, folder),
            _ => line,
        })
    }

    /// Returns an update for a note of the daemon among the agent's updates.
    fn of_daemon(&self, what: &str, line: &Value) -> Option<Value> {
        let text = |name: &str| visible(line[name].as_str().unwrap_or_default());
        match what {
            "permission" if line["verdict"] == "denied" => {
                Some(told(&format!("Provost has denied: {}. {}", text("title"), text("reason"))))
            }
            "question" => {
                let worker = visible_name(self.worker.as_str(), 100);
                Some(told(&format!(
                    "The agent asks: {}\nAnswer it at a terminal: provost question answer {worker} \"…\"",
                    text("text")
                )))
            }
            "said" => Some(told(&format!("{} has said to the agent: {}", text("by"), text("text")))),
            _ => None,
        }
    }
}

/// Makes an update with words of Provost, as if the agent had said them.
pub(super) fn told(text: &str) -> Value {
    let text = format!("\n\n{}\n\n", text.trim());
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}
