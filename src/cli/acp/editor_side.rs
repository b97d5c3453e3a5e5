//! What the editor says: it begins sessions, answers questions and cancels turns; everything else passes.

use serde_json::Value;

use super::judge;
use super::message::{self, Id, Message};
use super::proxy::{Done, Open, Proxy};
use super::question::{INTERNAL, NO_MESSAGE, Stage};
use super::setup::{METHODS, Setup, with_our_server};
use provost_base::limits::{ACP_PROXY_LINE_BYTES_MAX, ACP_PROXY_OPEN_MAX};
use provost_mcp::Outline;

/// The code for a line that is no JSON.
const NO_JSON: i64 = -32_700;

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
                let refusal = if self.open_count >= ACP_PROXY_OPEN_MAX {
                    Some("too many requests are open")
                } else if setup.is_some() && self.sessions.is_full() {
                    Some("too many sessions are open; close one")
                } else {
                    None
                };
                if let Some(why) = refusal {
                    return self.to_editor.send(message::failure(&id, INTERNAL, why, &Value::Null));
                }
                let begins = setup.map(|it| self.sessions.begun(it.takes_up.as_deref(), it.cwd.as_deref()));
                if let Some(asker) = begins.clone() {
                    // Updates of a session that is taken up come before the answer.
                    if let Some(session) = session.clone().filter(|_| method != "session/fork") {
                        self.sessions.learn(session, asker.clone());
                    }
                    self.prepare(line, asker);
                } else {
                    self.to_agent.send(line);
                }
                let open = Open { id: id.into(), method: method.into(), session, begins };
                self.open.entry(key).or_default().push(open);
                self.open_count += 1;
            }
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

    /// Adds our MCP server to a session that is to begin; the editor's next messages wait so long.
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
            // It was not shown yet, or is answered already.
            Some(Stage::Judged | Stage::Taking) => {}
            None if self.answered.remove(&key) => {}
            None => self.to_agent.send(line),
        }
    }

    /// A line that is no message is answered, under the id of its request where it has one.
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
            // The agent waits for it.
            return self.to_agent.send(message::failure(id, INTERNAL, &why, &Value::Null));
        }
        self.to_editor.send(message::failure(id.as_deref().unwrap_or("null"), code, &why, &Value::Null));
    }
}

/// The id that an outline has, as JSON.
pub(super) fn id_of(outline: Outline) -> Option<String> {
    outline.id().and_then(|it| serde_json::to_string(&it).ok())
}
