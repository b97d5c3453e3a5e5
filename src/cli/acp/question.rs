//! A request of the agent that is judged: for permission, or to write a file through the editor.

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

/// The code for a request that its asker has taken back. ACP v1, "Cancellation".
pub(super) const TAKEN_BACK: i64 = -32_800;
/// The code for a message that is none.
pub(super) const NO_MESSAGE: i64 = -32_600;
/// The code for parameters that cannot be read.
pub(super) const NO_PARAMS: i64 = -32_602;
/// The code for what goes wrong otherwise.
pub(super) const INTERNAL: i64 = -32_603;

/// The methods that are judged.
pub(super) const PERMISSION: &str = "session/request_permission";
pub(super) const WRITE: &str = "fs/write_text_file";
pub(super) const TERMINAL: &str = "terminal/create";

/// The options of a dialog of ours.
const YES: &str = "allow";
const NO: &str = "reject";

/// A question, from the agent's request until its answer.
pub(super) struct Question {
    /// The request's id, as it is spelled.
    pub(super) id: Box<str>,
    /// The line as it came.
    pub(super) line: Vec<u8>,
    pub(super) session: Option<String>,
    /// As whom the session speaks, and where.
    pub(super) agent: AgentId,
    pub(super) cwd: PathBuf,
    pub(super) about: About,
    pub(super) stage: Stage,
    /// What is done about it now.
    pub(super) work: Option<AbortHandle>,
    /// Dropped, the queue's question is taken back.
    pub(super) back: Option<oneshot::Sender<()>>,
}

/// The subject of a question.
#[derive(Clone)]
pub(super) enum About {
    /// Whether a tool may be used: the call, and the options by kind.
    Permission { call: Value, options: Vec<(String, String)> },
    /// A file is to be written.
    Write { path: String, content: String },
    /// A command is to be run by the editor: as a call of a tool.
    Command { call: Value },
}

/// How far a question is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Rules are asked, and whether others hold it. The session's later messages wait.
    Judged,
    /// The editor shows it; perhaps the queue does as well.
    Shown,
    /// It was allowed, and what it writes is taken.
    Taking,
}

/// The outcome of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Allowed,
    /// Why it is not allowed.
    Denied(String),
}

impl About {
    /// Reads a request.
    ///
    /// # Errors
    /// Why it cannot be understood.
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
            // ACP v1 has absolute paths here. What an editor makes of another one is not known.
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

    /// Returns the call that a permission would be for.
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

    /// Whether the agent can be told yes for this one use.
    pub(super) fn can_be_allowed(&self) -> bool {
        match self {
            Self::Permission { options, .. } => options.iter().any(|(kind, _)| kind == "allow_once"),
            Self::Write { .. } | Self::Command { .. } => true,
        }
    }

    /// Whether an answer to the agent's dialog chooses an option for later uses as well.
    pub(super) fn is_kept_by(&self, result: &str) -> bool {
        let Self::Permission { options, .. } = self else { return false };
        let chosen = known_object(result).unwrap_or_default();
        let chosen = chosen.pointer("/outcome/optionId").and_then(Value::as_str);
        options.iter().any(|(kind, id)| Some(id.as_str()) == chosen && kind.ends_with("_always"))
    }

    /// Whether an answer to the agent's dialog says yes.
    pub(super) fn is_allowed_by(&self, result: &str) -> bool {
        let Self::Permission { options, .. } = self else { return false };
        let Ok(result) = known_object(result) else { return false };
        let chosen = result.pointer("/outcome/optionId").and_then(Value::as_str);
        let kind = options.iter().find(|(_, id)| Some(id.as_str()) == chosen).map(|(kind, _)| kind.as_str());
        // A chosen option that is none of the offered ones may be a yes.
        chosen.is_some() && !matches!(kind, Some("reject_once" | "reject_always"))
    }
}

impl Question {
    /// As whom it is asked.
    pub(super) fn asker(&self) -> Asker {
        Asker { agent: self.agent.clone(), cwd: self.cwd.clone() }
    }

    /// Takes it back from the queue, if it is there.
    pub(super) fn hang_up(&mut self) {
        self.back = None;
    }

    /// Gives up what is done about it.
    pub(super) fn stop(&self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }

    /// A dialog of ours about a write that a rule asks about, and its id.
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

    /// Whether an answer to such a dialog says yes.
    pub(super) fn is_allowed_in_ours(&self, result: &str) -> bool {
        let result = known_object(result).unwrap_or_default();
        result.pointer("/outcome/optionId").is_some_and(|it| it == YES)
    }

    /// The answer to the agent. An option is chosen by its kind, and never one that the agent keeps for later uses.
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

    /// The answer when its turn was cancelled.
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

    /// The line without the options that the agent keeps for later uses: a rule has asked about this one.
    pub(super) fn for_this_use(&self) -> Vec<u8> {
        without_always(&self.line).unwrap_or_else(|| self.line.clone())
    }

    /// A sentence for the person at the editor; nothing for a request of no session.
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

/// The kind of an option, in any case of letters.
fn kind_of(option: &Value) -> Option<String> {
    Some(option["kind"].as_str()?.trim().to_ascii_lowercase())
}

/// The call that the editor is to run. ACP v1, "Terminals".
fn command(params: &Value) -> Result<Value, String> {
    let program =
        params["command"].as_str().filter(|it| !it.trim().is_empty()).ok_or("command is no text")?;
    let words = match &params["args"] {
        Value::Null => Some(Vec::new()),
        Value::Array(words) => words.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let words: Vec<&str> = words.ok_or("args are no texts")?;
    // A shell's line is read as that, and a program without words may be one.
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
    // The effect of variables on a command is not known.
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
