//! An agent of the configuration in its jail, for an editor: this program plays the agent's part to the editor, and
//! each turn of a session is a task of the daemon.
//!
//! ```text
//!   editor --session/prompt--> a task: a new one, or one that continues the session of the earlier one
//!   editor <--session/update-- the agent's own updates, out of the task's output
//!   editor <--session/request_permission-- the changes of the turn in its copy: may they be written?
//!   editor --session/load--> the tasks of a session whose editor had gone; the next turn continues them
//! ```
//! The editor gets no rights of its own: rules judge the task and the agent's requests, and an answer in the editor is no proof. So
//! a request that needs approval is answered where all approvals are answered. Turns of several sessions run side by side.

mod again;
mod changes;
mod output;
mod prompt;
mod session;
mod turn;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::lines::{Lines, Said};
use super::message::{self, Id, Message};
use super::outlet::Outlet;
use super::question::{INTERNAL, NO_MESSAGE, NO_PARAMS};
use crate::CliError;
use crate::cli_error::DONE;
use provost_base::limits::{ACP_JAILED_LEAVE_MS, ACP_PROXY_SESSIONS_MAX, ACP_PROXY_UNREAD_BYTES_MAX};
use provost_base::{AgentId, acp};
use provost_config::env::Environment;

use again::Past;
use session::{Running, Session};

/// The error code for a method that is not offered.
const NO_METHOD: i64 = -32_601;
/// The error code for a session that does not exist. ACP v1, "Error codes".
const NO_SESSION: i64 = -32_002;
/// The version of the protocol that is spoken.
const VERSION: u64 = 1;
/// The most bytes that the editor may have unread; beyond that, nothing more is read from it and from tasks.
const UNREAD_MAX: usize = ACP_PROXY_UNREAD_BYTES_MAX;

/// The agent that serves the editor, and the name under which the sessions speak.
pub(super) struct Served {
    /// The agent's entry in the configuration.
    pub(super) worker: AgentId,
    /// The agent that all sessions speak as; if `None`, each session has a name of its own.
    pub(super) speaks_as: Option<AgentId>,
}

/// A question of a turn to the editor, and the receiver of its answer.
pub(super) struct Dialog {
    params: Value,
    answer: oneshot::Sender<Value>,
}

/// Work that has ended.
enum Done {
    /// A session was prepared for a request: a new session, or a resumed one with its past.
    Begun { asked_by: Box<str>, id: String, made: Result<(Box<Session>, Option<Past>), CliError> },
    /// A turn of a session is over. Has the answer to its request, and the task that the next turn continues, if any.
    Ended { session: String, answer: Vec<u8>, goes_on_with: Option<String> },
}

struct Server {
    served: Arc<Served>,
    /// Whether each session speaks under a name of its own.
    have_own_names: bool,
    to_editor: Arc<Outlet>,
    sessions: HashMap<String, Session>,
    work: JoinSet<Done>,
    dialogs: HashMap<Id, oneshot::Sender<Value>>,
    asked: u64,
    ask: mpsc::UnboundedSender<Dialog>,
}

/// Serves the editor at our standard input and output until it ends.
///
/// # Errors
/// When signals cannot be caught.
pub(super) async fn serve(served: Served) -> Result<u8, CliError> {
    let mut signals = provost_system::Signals::catch()
        .map_err(|err| CliError::of("signals cannot be caught").because(err))?;
    let (ask, mut asked) = mpsc::unbounded_channel();
    let mut server = Server {
        have_own_names: served.speaks_as.is_none() && Environment::current().token.is_none(),
        served: Arc::new(served),
        to_editor: Arc::new(Outlet::new(tokio::io::stdout())),
        sessions: HashMap::new(),
        work: JoinSet::new(),
        dialogs: HashMap::new(),
        asked: 0,
        ask,
    };
    let mut editor = Lines::new(tokio::io::stdin());
    while !server.to_editor.is_shut() {
        let reads = server.to_editor.has_room(UNREAD_MAX);
        tokio::select! {
            said = editor.next(), if reads => match said {
                Ok(Said::Line(line)) => server.editor_says(&line),
                Ok(Said::TooLong(_)) => server.fail("null", NO_MESSAGE, "the line is too long"),
                Ok(Said::End) | Err(_) => break,
            },
            Some(dialog) = asked.recv() => server.show(dialog),
            Some(done) = server.work.join_next() => server.done(done),
            () = server.to_editor.moves() => {}
            _signal = signals.next() => break,
        }
    }
    server.leave().await;
    Ok(DONE)
}

impl Server {
    fn editor_says(&mut self, line: &[u8]) {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(why) => return self.fail("null", NO_MESSAGE, &why),
        };
        let Some(method) = message.method.clone() else { return self.answered(&message) };
        let Some(id) = message.id.map(|it| it.get().to_owned()) else {
            return self.told(&method, &message);
        };
        let params: Value = match message::plain_object(message.params()) {
            Ok(params) => params,
            Err(why) => return self.fail(&id, NO_PARAMS, &why),
        };
        match &*method {
            "initialize" => self.answer(&id, &hello()),
            "authenticate" => self.answer(&id, &json!({})),
            "session/new" => self.begin(&id, &params, None),
            "session/load" => self.load(&id, &params),
            "session/prompt" => self.prompt(&id, &params),
            "session/close" => self.close(&id, &params),
            _ => {
                let why = "an agent in its jail does not offer this to an editor; `provost acp --no-jail` starts it without one";
                self.fail(&id, NO_METHOD, why);
            }
        }
    }

    /// Handles a notification of the editor, which needs no answer.
    fn told(&mut self, method: &str, message: &Message<'_>) {
        match method {
            "session/cancel" => {
                let session = message.session().and_then(|it| self.sessions.get_mut(&it));
                if let Some(session) = session {
                    session.stop();
                }
            }
            "$/cancel_request" => {
                #[derive(Deserialize)]
                struct TakenBack<'a> {
                    #[serde(borrow, rename = "requestId")]
                    id: &'a serde_json::value::RawValue,
                }
                let Ok(taken) = serde_json::from_str::<TakenBack<'_>>(message.params()) else { return };
                let id = Id::of(taken.id);
                self.sessions.values_mut().filter(|it| it.is_asked_by(&id)).for_each(Session::stop);
            }
            _ => {}
        }
    }

    /// Passes the editor's answer to the turn whose dialog it answers.
    fn answered(&mut self, message: &Message<'_>) {
        let Some(answer) = message.key().and_then(|id| self.dialogs.remove(&id)) else { return };
        let result = message.result.and_then(|it| message::plain_object(it.get()).ok());
        let _over = answer.send(result.unwrap_or_default());
    }

    /// Resumes a session that another process of this program has begun.
    fn load(&mut self, id: &str, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if self.sessions.contains_key(&session) {
            return self.fail(id, NO_PARAMS, "this session is open here");
        }
        match acp::is_editor_session(&session) {
            true => self.begin(id, params, Some(session)),
            false => self.fail(id, NO_SESSION, "there is no such session"),
        }
    }

    /// Begins a session, or resumes an earlier one.
    fn begin(&mut self, id: &str, params: &Value, earlier: Option<String>) {
        if self.sessions.len() >= ACP_PROXY_SESSIONS_MAX {
            let why = format!("{ACP_PROXY_SESSIONS_MAX} sessions are open; close one first");
            return self.fail(id, INTERNAL, &why);
        }
        let Some(folder) = params["cwd"].as_str().map(PathBuf::from).filter(|it| it.is_absolute()) else {
            return self.fail(id, NO_PARAMS, "cwd is the absolute path of a folder");
        };
        let servers = params["mcpServers"].as_array().into_iter().flatten();
        let servers: Vec<String> = servers.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect();
        let (served, asked_by, has_own_name) = (Arc::clone(&self.served), id.into(), self.have_own_names);
        let is_earlier = earlier.is_some();
        let id = earlier.unwrap_or_else(|| acp::editor_session_id(uuid::Uuid::new_v4().as_u128()));
        self.work.spawn(async move {
            let worker = served.worker.clone();
            let made = async {
                let mut session = Session::begin(served, (id.clone(), folder), servers).await?;
                let taken = again::Taken { id: &id, worker: &worker, has_own_name };
                let past = if is_earlier { Some(again::past(&mut session, &taken).await?) } else { None };
                Ok::<_, CliError>((session, past))
            };
            let made = made.await;
            Done::Begun { asked_by, id, made }
        });
    }

    fn prompt(&mut self, id: &str, params: &Value) {
        let name = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(session) = self.sessions.get_mut(&name) else {
            return self.fail(id, NO_PARAMS, "there is no such session");
        };
        if session.is_busy() {
            return self.fail(id, NO_MESSAGE, "a turn of this session is under way");
        }
        let words = match prompt::words(&params["prompt"]) {
            Ok(words) => words,
            Err(why) => return self.fail(id, NO_PARAMS, why),
        };
        let (stop, stopped) = oneshot::channel();
        let turn = turn::Turn {
            served: Arc::clone(&self.served),
            editor: turn::ToEditor {
                session: name.clone(),
                outlet: Arc::clone(&self.to_editor),
                ask: self.ask.clone(),
            },
            place: session.place(),
            notice: session.take_notice(),
            continues: session.goes_on_with.clone(),
            words,
            stopped,
        };
        let key = serde_json::from_str::<&serde_json::value::RawValue>(id).ok().map(Id::of);
        session.running = Some(Running { asked_by: key, stop: Some(stop) });
        let id = id.to_owned();
        self.work.spawn(async move {
            let (ended, goes_on_with) = turn.carry_out().await;
            let answer = match ended {
                Ok(stop) => message::answer(&id, &json!({ "stopReason": stop })),
                Err(error) => failure(&id, &error),
            };
            Done::Ended { session: name, answer, goes_on_with }
        });
    }

    /// Ends a session, and cancels its turn.
    fn close(&mut self, id: &str, params: &Value) {
        match params["sessionId"].as_str().and_then(|it| self.sessions.remove(it)) {
            Some(mut session) => {
                session.stop();
                self.answer(id, &json!({}));
            }
            None => self.fail(id, NO_PARAMS, "there is no such session"),
        }
    }

    fn show(&mut self, dialog: Dialog) {
        self.asked += 1;
        let id = format!("provost-{}", self.asked);
        let request = json!({
            "jsonrpc": "2.0", "id": id, "method": super::question::PERMISSION, "params": dialog.params,
        });
        self.dialogs.insert(Id::Text(id.into()), dialog.answer);
        // Removes the dialogs whose turn no longer waits for them.
        self.dialogs.retain(|_, it| !it.is_closed());
        self.to_editor.send(message::line(&request));
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Begun { asked_by, id, made: Ok((session, past)) }) => {
                self.begun(&asked_by, id, *session, past)
            }
            Ok(Done::Begun { asked_by, made: Err(error), .. }) => {
                self.to_editor.send(failure(&asked_by, &error))
            }
            Ok(Done::Ended { session, answer, goes_on_with }) => {
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.running = None;
                    session.goes_on_with = goes_on_with.or(session.goes_on_with.take());
                }
                // The answer goes last, since the editor may ask for the next turn at once.
                self.to_editor.send(answer);
            }
            Err(error) => crate::out::note(format!("provost: a turn was given up: {error}")),
        }
    }

    /// Answers the request when its session is ready. If the session is resumed, the editor first gets the earlier conversation.
    fn begun(&mut self, asked_by: &str, id: String, session: Session, past: Option<Past>) {
        let result = match past {
            None => json!({ "sessionId": id }),
            Some(past) if past.is_empty() => {
                return self.fail(asked_by, NO_SESSION, "no turn of this session is on record here");
            }
            Some(_) if self.sessions.contains_key(&id) => {
                return self.fail(asked_by, NO_PARAMS, "this session is open here");
            }
            Some(past) => {
                for update in past {
                    let params = json!({ "sessionId": id, "update": update });
                    let told = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
                    self.to_editor.send(message::line(&told));
                }
                json!({})
            }
        };
        self.sessions.insert(id, session);
        self.answer(asked_by, &result);
    }

    /// Ends the sessions when the editor has gone: cancels their turns, or lets them go on, as the agent's entry says.
    async fn leave(mut self) {
        self.dialogs.clear();
        for session in self.sessions.values_mut() {
            match session.ends_with_editor() {
                true => session.stop(),
                false => session.leave_alone(),
            }
        }
        let most = Duration::from_millis(ACP_JAILED_LEAVE_MS);
        let all = async {
            while let Some(done) = self.work.join_next().await {
                self.done(done);
            }
        };
        let _some_left = tokio::time::timeout(most, all).await;
    }

    fn answer(&self, id: &str, result: &Value) {
        self.to_editor.send(message::answer(id, result));
    }

    fn fail(&self, id: &str, code: i64, why: &str) {
        self.to_editor.send(message::failure(id, code, why, &Value::Null));
    }
}

/// Returns an error of Provost as an answer: what happened, why, and the next step.
fn failure(id: &str, error: &CliError) -> Vec<u8> {
    let text = error.text();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    message::failure(id, INTERNAL, text, &Value::Null)
}

fn hello() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": { "close": {} },
        },
        "agentInfo": { "name": "provost", "title": "Provost", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}
