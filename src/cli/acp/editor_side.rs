//! Handles the editor's messages: it begins sessions, answers questions and cancels turns; all other messages pass.

use serde_json::{Value, json};

use super::judge;
use super::message::{self, Id, Message};
use super::proxy::{Done, Open, Proxy, Switch};
use super::question::{INTERNAL, NO_MESSAGE, NO_PARAMS, Stage, Verdict};
use super::setup::{METHODS, Setup, with_our_server};
use provost_base::limits::{ACP_PROXY_LINE_BYTES_MAX, ACP_PROXY_OPEN_MAX, ACP_PROXY_SESSIONS_MAX};
use provost_mcp::Outline;

/// The error code for a line that is not JSON.
const NO_JSON: i64 = -32_700;
/// The most options of one session that set modes.
const MODE_OPTIONS_MAX: usize = 16;

impl Proxy {
    pub(super) fn editor_says(&mut self, line: Vec<u8>) {
        if line.trim_ascii().is_empty() {
            return self.to_agent.send(line);
        }
        let message = match Message::read(&line) {
            Ok(message) => message,
            Err(why) => return self.no_message_of_editor(&line, &why),
        };
        match (message.method.as_deref(), message.key()) {
            (Some(method), Some(key)) => {
                let (method, id) = (method.to_owned(), message.id.map_or("null", |it| it.get()).to_owned());
                let session = message.session();
                let setup = METHODS.contains(&method.as_str()).then(|| Setup::of(&message, &method));
                if let Some(why) = self.is_full(setup.is_some()) {
                    return self.to_editor.send(message::failure(&id, INTERNAL, why, &Value::Null));
                }
                match self.mode_of(&message) {
                    Err(why) => {
                        return self.to_editor.send(message::failure(&id, NO_PARAMS, &why, &Value::Null));
                    }
                    Ok(Some(mode)) => {
                        let asked = Some((key.clone(), id.as_str().into()));
                        self.judge_switch(Switch { line, session: session.clone(), mode, id: asked });
                        return self.note_open(
                            key,
                            Open { id: id.into(), method: method.into(), session, begins: None },
                        );
                    }
                    Ok(None) => {}
                }
                let begins = setup.map(|it| self.sessions.begun(it.takes_up.as_deref(), it.cwd.as_deref()));
                if let Some(asker) = begins.clone() {
                    // The updates of a resumed session arrive before the answer.
                    if let Some(session) = session.clone().filter(|_| method != "session/fork") {
                        self.sessions.learn(session, asker.clone());
                    }
                    self.prepare(line, asker);
                } else {
                    self.to_agent.send(line);
                }
                self.note_open(key, Open { id: id.into(), method: method.into(), session, begins });
            }
            (Some("session/set_mode" | "session/set_config_option"), None) => match self.mode_of(&message) {
                Ok(None) => self.to_agent.send(line),
                Ok(Some(mode)) => {
                    let session = message.session();
                    self.judge_switch(Switch { line, session, mode, id: None });
                }
                Err(why) => self.complain(&format!("not passed on to the agent: {why}")),
            },
            (Some("session/cancel"), None) => {
                let session = message.session();
                self.to_agent.send(line);
                if let Some(session) = session {
                    self.cancel(&session);
                }
            }
            (None, Some(key)) => {
                let yes = message.result.map(|it| it.get().to_owned());
                self.answer_of_editor(key, line, yes.as_deref());
            }
            _ => self.to_agent.send(line),
        }
    }

    /// Returns why no further request is accepted, if none is.
    fn is_full(&self, begins: bool) -> Option<&'static str> {
        if self.open_count >= ACP_PROXY_OPEN_MAX {
            return Some("too many requests are open");
        }
        (begins && self.sessions.is_full()).then_some("too many sessions are open; close one")
    }

    fn note_open(&mut self, key: Id, open: Open) {
        self.open.entry(key).or_default().push(open);
        self.open_count += 1;
    }

    /// Returns the mode that a request of the editor sets.
    ///
    /// # Errors
    /// The reason why the mode cannot be read.
    fn mode_of(&self, message: &Message<'_>) -> Result<Option<String>, String> {
        let text = |params: &Value, name: &str| {
            params[name].as_str().map(str::to_owned).ok_or_else(|| format!("{name} is no text"))
        };
        match message.method.as_deref() {
            Some("session/set_mode") => text(&message::known_object(message.params())?, "modeId").map(Some),
            Some("session/set_config_option") => {
                let params = message::known_object(message.params())?;
                let is_mode = self.mode_options.contains(&text(&params, "configId")?);
                if is_mode { text(&params, "value").map(Some) } else { Ok(None) }
            }
            _ => Ok(None),
        }
    }

    /// Reads from the answer that begins a session which options set modes. ACP v1, "Session config options".
    pub(super) fn learn_modes(&mut self, result: &str) {
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let options = result["configOptions"].as_array().into_iter().flatten();
        let of_modes = options.filter(|it| it["category"] == "mode").filter_map(|it| it["id"].as_str());
        for id in of_modes.take(MODE_OPTIONS_MAX) {
            if self.mode_options.len() < ACP_PROXY_SESSIONS_MAX {
                self.mode_options.insert(id.to_owned());
            }
        }
    }

    /// Has the rules judge a mode before the agent gets the request; the editor's next messages wait until then.
    fn judge_switch(&mut self, switch: Switch) {
        let (asker, mode) = (self.sessions.asker(switch.session.as_deref()), switch.mode.clone());
        self.preparing = true;
        self.work.spawn(async move { Done::MayBeSwitched(switch, judge::may_switch(asker, mode).await) });
    }

    pub(super) fn switched(&mut self, Switch { line, session, mode, id }: Switch, verdict: &Verdict) {
        let Verdict::Denied(why) = verdict else {
            if let Some(known) = session.and_then(|it| self.sessions.get(&it)) {
                known.mode.is_set(mode);
            }
            return self.to_agent.send(line);
        };
        match id {
            Some((key, id)) => {
                self.forget_open(&key, &id);
                self.to_editor.send(message::failure(&id, INTERNAL, why, &json!({ "provost": "not-set" })));
            }
            None => self.complain(&format!("a mode is not set: {why}")),
        }
    }

    /// Removes an answered request; of several requests with the same id, the request whose id has this spelling.
    pub(super) fn forget_open(&mut self, key: &Id, id: &str) -> Option<Open> {
        let all = self.open.get_mut(key)?;
        let at = all.iter().position(|it| &*it.id == id).unwrap_or(0);
        let open = all.remove(at);
        if all.is_empty() {
            self.open.remove(key);
        }
        self.open_count -= 1;
        Some(open)
    }

    /// Adds Provost's MCP server to a session that begins; the editor's next messages wait until then.
    fn prepare(&mut self, line: Vec<u8>, asker: judge::Asker) {
        let program = self.program.clone();
        self.preparing = true;
        self.work.spawn(async move {
            let with = match judge::has_repository(asker.cwd).await {
                true => with_our_server(&line, &program, &asker.agent),
                false => None,
            };
            Done::Prepared(with.unwrap_or(line))
        });
    }

    fn answer_of_editor(&mut self, key: Id, line: Vec<u8>, result: Option<&str>) {
        if let Some(question) = self.dialogs.remove(&key) {
            return self.shown_answer(question, None, result);
        }
        match self.questions.get(&key).map(|it| it.stage) {
            Some(Stage::Shown) => self.shown_answer(key, Some(line), result),
            // The question has not been shown yet, or is answered already.
            Some(Stage::Judged | Stage::Taking) => {}
            None if self.answered.remove(&key) => {}
            None => {
                if let Some(open) = self.passed.get_mut(&key) {
                    self.passed_count -= 1;
                    *open -= 1;
                    if *open == 0 {
                        self.passed.remove(&key);
                    }
                }
                self.to_agent.send(line);
            }
        }
    }

    /// Answers a malformed line, under the id of its request if it has one.
    fn no_message_of_editor(&mut self, line: &[u8], why: &str) {
        let outline = Outline::of(line);
        let is_json = line.trim_ascii_start().first().is_some_and(|it| b"{[".contains(it));
        let code = if is_json { NO_MESSAGE } else { NO_JSON };
        self.refuse_to_editor(outline, code, why);
    }

    pub(super) fn too_long_of_editor(&mut self, outline: Outline) {
        let why = format!("the message has more than {} MiB", ACP_PROXY_LINE_BYTES_MAX >> 20);
        self.refuse_to_editor(outline, NO_MESSAGE, &why);
    }

    fn refuse_to_editor(&mut self, outline: Outline, code: i64, why: &str) {
        let is_answer = outline.is_answer();
        let id = id_of(outline);
        self.complain(&format!("not passed on to the agent: {why}"));
        let why = format!("Provost does not pass this on: {why}");
        if is_answer && let Some(id) = &id {
            // The agent waits for this answer.
            return self.to_agent.send(message::failure(id, INTERNAL, &why, &Value::Null));
        }
        self.to_editor.send(message::failure(id.as_deref().unwrap_or("null"), code, &why, &Value::Null));
    }
}

/// Returns the id of an outline, as JSON.
pub(super) fn id_of(outline: Outline) -> Option<String> {
    outline.id().and_then(|it| serde_json::to_string(&it).ok())
}
