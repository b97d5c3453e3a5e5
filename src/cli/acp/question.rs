//! A request of the agent that the rules judge: for permission, or to have the editor write a file or run a command.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::judge::Asker;
use super::message::{self, Id, Message, known_object};
use super::setup::{place, spliced};
use provost_base::{AgentId, shell_word};

/// The error code for a request that its sender has withdrawn. ACP v1, "Cancellation".
pub(super) const TAKEN_BACK: i64 = -32_800;
/// The error code for a malformed message.
pub(super) const NO_MESSAGE: i64 = -32_600;
/// The error code for parameters that cannot be read.
pub(super) const NO_PARAMS: i64 = -32_602;
/// The error code for all other failures.
pub(super) const INTERNAL: i64 = -32_603;

/// The methods that the rules judge.
pub(super) const PERMISSION: &str = "session/request_permission";
pub(super) const WRITE: &str = "fs/write_text_file";
pub(super) const TERMINAL: &str = "terminal/create";

/// The options of the proxy's own dialogs.
const YES: &str = "allow";
const NO: &str = "reject";

/// A question, from the agent's request until its answer.
pub(super) struct Question {
    /// The request's id, as it is spelled.
    pub(super) id: Box<str>,
    /// The line as the agent has sent it.
    pub(super) line: Vec<u8>,
    pub(super) session: Option<String>,
    /// The agent that the session speaks as, and the session's folder.
    pub(super) agent: AgentId,
    pub(super) cwd: PathBuf,
    pub(super) about: About,
    pub(super) stage: Stage,
    /// The task that works on the question now.
    pub(super) work: Option<AbortHandle>,
    /// Withdraws the question from the queue when it is dropped.
    pub(super) back: Option<oneshot::Sender<()>>,
}

/// The subject of a question.
#[derive(Clone)]
pub(super) enum About {
    /// Whether a tool may be used: the call, and the options by kind.
    Permission { call: Value, options: Vec<(String, String)> },
    /// The editor shall write a file.
    Write { path: String, content: String },
    /// The editor shall run a command; in the form of a tool call.
    Command { call: Value },
}

/// The stage of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The rules, and the places that other agents hold, are being checked. The session's later messages wait.
    Judged,
    /// The editor shows the question; the queue may have it, too.
    Shown,
    /// The question was allowed, and the places that it writes are being locked.
    Taking,
}

/// The outcome of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Allowed,
    /// The reason why the request is not allowed.
    Denied(String),
}

impl About {
    /// Reads a request.
    ///
    /// # Errors
    /// The reason why the request cannot be understood.
    pub(super) fn read(message: &Message<'_>, method: &str, known: Option<&Value>) -> Result<Self, String> {
        let params = known_object(message.params())?;
        if method == TERMINAL {
            return command(&params).map(|call| Self::Command { call });
        }
        if method == WRITE {
            let text = |name: &str| {
                params[name].as_str().map(str::to_owned).ok_or_else(|| format!("{name} is no text"))
            };
            let path = text("path")?;
            // ACP v1 has absolute paths here. It is not known how an editor resolves a relative path.
            if !std::path::Path::new(&path).is_absolute() {
                return Err("path is not absolute".into());
            }
            return Ok(Self::Write { path, content: text("content")? });
        }
        let mut call = known.cloned().unwrap_or_else(|| json!({}));
        provost_base::acp::merge(&mut call, &params["toolCall"]);
        let options = params["options"].as_array().into_iter().flatten();
        let option = |it: &Value| Some((kind_of(it)?, it["optionId"].as_str()?.to_owned()));
        let options: Vec<(String, String)> = options.filter_map(option).collect();
        let mut ids = HashSet::new();
        if !options.iter().all(|(_, id)| ids.insert(id)) {
            return Err("two options have one id".into());
        }
        Ok(Self::Permission { call, options })
    }

    /// Returns the call for which the agent requests permission.
    pub(super) fn call(&self) -> Option<&Value> {
        match self {
            Self::Permission { call, .. } | Self::Command { call } => Some(call),
            Self::Write { .. } => None,
        }
    }

    /// Checks whether the agent asks the person, and does not ask the editor to do something.
    pub(super) fn is_permission(&self) -> bool {
        matches!(self, Self::Permission { .. })
    }

    /// Checks whether the agent offers an option that allows this one use.
    pub(super) fn can_be_allowed(&self) -> bool {
        match self {
            Self::Permission { options, .. } => options.iter().any(|(kind, _)| kind == "allow_once"),
            Self::Write { .. } | Self::Command { .. } => true,
        }
    }

    /// Checks whether an answer to the agent's dialog chooses an option that also counts for later uses.
    pub(super) fn is_kept_by(&self, result: &str) -> bool {
        let Self::Permission { options, .. } = self else { return false };
        let chosen = known_object(result).unwrap_or_default();
        let chosen = chosen.pointer("/outcome/optionId").and_then(Value::as_str);
        options.iter().any(|(kind, id)| Some(id.as_str()) == chosen && kind.ends_with("_always"))
    }

    /// Checks whether an answer to the agent's dialog allows the request.
    pub(super) fn is_allowed_by(&self, result: &str) -> bool {
        let Self::Permission { options, .. } = self else { return false };
        let Ok(result) = known_object(result) else { return false };
        let chosen = result.pointer("/outcome/optionId").and_then(Value::as_str);
        let kind = options.iter().find(|(_, id)| Some(id.as_str()) == chosen).map(|(kind, _)| kind.as_str());
        // A chosen option that was not offered may be a yes.
        chosen.is_some() && !matches!(kind, Some("reject_once" | "reject_always"))
    }
}

impl Question {
    /// Returns the agent that asks, and its folder.
    pub(super) fn asker(&self) -> Asker {
        Asker { agent: self.agent.clone(), cwd: self.cwd.clone() }
    }

    /// Withdraws the question from the queue, if it is there.
    pub(super) fn hang_up(&mut self) {
        self.back = None;
    }

    /// Aborts the work on the question.
    pub(super) fn stop(&self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }

    /// Returns a dialog of the proxy about a write for which a rule wants approval, and its id.
    pub(super) fn dialog(&self) -> (Id, Vec<u8>) {
        let id = format!("provost-{}", uuid::Uuid::new_v4());
        let mut call = match &self.about {
            About::Write { path, content } => json!({
                "title": format!("Write {path}"),
                "kind": "edit",
                "locations": [{ "path": path }],
                "content": [{ "type": "diff", "path": path, "oldText": null, "newText": content }],
            }),
            About::Permission { call, .. } | About::Command { call } => call.clone(),
        };
        (call["toolCallId"], call["status"]) = (json!(id), json!("pending"));
        let options = json!([
            { "optionId": YES, "name": "Allow", "kind": "allow_once" },
            { "optionId": NO, "name": "Reject", "kind": "reject_once" },
        ]);
        let params = json!({ "sessionId": self.session, "toolCall": call, "options": options });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": PERMISSION, "params": params });
        (Id::Text(id.into()), message::line(&request))
    }

    /// Checks whether an answer to such a dialog allows the request.
    pub(super) fn is_allowed_in_ours(&self, result: &str) -> bool {
        let result = known_object(result).unwrap_or_default();
        result.pointer("/outcome/optionId").is_some_and(|it| it == YES)
    }

    /// Returns the answer to the agent. Chooses an option by its kind, and never an option that the agent keeps for later uses.
    pub(super) fn answer(&self, verdict: &Verdict) -> Vec<u8> {
        let (kind, why) = match verdict {
            Verdict::Allowed => ("allow_once", None),
            Verdict::Denied(why) => ("reject_once", Some(why)),
        };
        match &self.about {
            About::Permission { options, .. } => {
                let chosen = options.iter().find(|(it, _)| it == kind);
                let outcome = match chosen {
                    Some((_, id)) => json!({ "outcome": "selected", "optionId": id }),
                    None => json!({ "outcome": "cancelled" }),
                };
                let mut result = json!({ "outcome": outcome });
                if let Some(why) = why {
                    result["_meta"] = json!({ "provost": { "reason": why } });
                }
                message::answer(&self.id, &result)
            }
            About::Write { .. } | About::Command { .. } => {
                let why = why.map_or("it was not allowed", String::as_str);
                let what = if self.about.call().is_some() { "not-run" } else { "not-written" };
                message::failure(&self.id, INTERNAL, why, &json!({ "provost": what }))
            }
        }
    }

    /// Returns the answer for a question whose turn was cancelled.
    pub(super) fn cancelled(&self) -> Vec<u8> {
        match &self.about {
            About::Permission { .. } => {
                message::answer(&self.id, &json!({ "outcome": { "outcome": "cancelled" } }))
            }
            About::Write { .. } | About::Command { .. } => {
                message::failure(&self.id, TAKEN_BACK, "the turn was cancelled", &Value::Null)
            }
        }
    }

    /// Returns the line without the options that the agent keeps for later uses: a rule wants approval for this use.
    pub(super) fn for_this_use(&self) -> Vec<u8> {
        without_always(&self.line).unwrap_or_else(|| self.line.clone())
    }

    /// Returns an update with a sentence for the person at the editor; `None` for a request without a session.
    pub(super) fn told(&self, text: &str) -> Option<Vec<u8>> {
        let session = self.session.as_deref()?;
        Some(message::line(&json!({
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": { "sessionId": session, "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": format!("{text}\n") },
            }},
        })))
    }
}

/// Returns the kind of an option, in lower case.
fn kind_of(option: &Value) -> Option<String> {
    Some(option["kind"].as_str()?.trim().to_ascii_lowercase())
}

/// Returns the command that the editor shall run, as a tool call. ACP v1, "Terminals".
fn command(params: &Value) -> Result<Value, String> {
    let program =
        params["command"].as_str().filter(|it| !it.trim().is_empty()).ok_or("command is no text")?;
    let words = match &params["args"] {
        Value::Null => Some(Vec::new()),
        Value::Array(words) => words.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let words: Vec<&str> = words.ok_or("args are no texts")?;
    // A shell's line is read as a line; a program without arguments may be a line, too.
    let line = match words[..] {
        [] => json!(program),
        [flags, _] if flags.starts_with('-') && flags.ends_with('c') => {
            json!([&[program], &words[..]].concat())
        }
        _ => json!(
            [&[program], &words[..]].concat().iter().map(|it| shell_word(it)).collect::<Vec<_>>().join(" ")
        ),
    };
    let title = [&[program], &words[..]].concat().join(" ");
    let mut raw = json!({ "command": line });
    if let Some(cwd) = params["cwd"].as_str() {
        raw["cwd"] = json!(cwd);
    }
    // It is not known how variables change a command's effect.
    if params["env"].as_array().is_some_and(|it| !it.is_empty()) {
        raw["env"] = params["env"].clone();
    }
    Ok(json!({ "kind": "execute", "title": title, "rawInput": raw }))
}

fn without_always(line: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        options: &'a RawValue,
    }
    let message = Message::read(line).ok()?;
    let params: Params<'_> = serde_json::from_str(message.params()).ok()?;
    let all: Vec<&RawValue> = serde_json::from_str(params.options.get()).ok()?;
    let is_once = |it: &&&RawValue| {
        let option: Value = serde_json::from_str(it.get()).unwrap_or_default();
        !kind_of(&option).is_some_and(|it| it.ends_with("_always"))
    };
    let kept: Vec<&str> = all.iter().filter(is_once).map(|it| it.get()).collect();
    if kept.len() == all.len() || kept.is_empty() {
        return None;
    }
    let at = place(line, params.options.get())?;
    Some(spliced(line, (at, at + params.options.get().len()), &format!("[{}]", kept.join(","))))
}
