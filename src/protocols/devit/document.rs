//! The dialect of the protocol document: `method` and `params`, a session token instead of signatures.
//!
//! The dialect is also spoken as plain JSON-RPC 2.0. It is weaker than signed frames, since the secret itself is
//! sent over the socket; `[devit] dialect_document = false` switches it off.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::map;
use super::wire::{self, Code, DevitError};
use super::{Carried, Next, Talk, unsigned};
use provost_auth::keys::{Keys, Role};
use provost_auth::role::{self, Standing};
use provost_base::{AgentId, Digest, Json, Secret, Ttl};
use provost_domain::Principal;
use provost_transport::lines::{self, write_line};

/// How long a session token is valid.
const TOKEN_TTL: Ttl = Ttl::minutes(8 * 60);

/// The error for a session whose key has ended: at its next request, or when there is a message for it.
const KEY_ENDED: &str = "the key of this session is not valid any more";

/// A request of this dialect. Its parameters stay text until the sender is known: a tree of values would take many
/// times as much memory.
pub(super) struct Request<'a> {
    id: Value,
    method: Cow<'a, str>,
    params: &'a str,
    token: Option<String>,
    rpc: bool,
}

/// A line, parsed only at its top level.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    session_token: Option<&'a RawValue>,
}

/// A text that is borrowed unless it contains escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The only parameter that is read before its sender is known.
#[derive(Deserialize)]
struct Token {
    session_token: Option<String>,
}

impl<'a> Request<'a> {
    /// Reads a line, if it is a request of this dialect.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        // Otherwise an array would count as an object with members by position.
        line.starts_with(b"{").then_some(())?;
        let Line { method, jsonrpc, id, msg_id, params, session_token } =
            serde_json::from_slice(line).ok()?;
        let rpc = jsonrpc.is_some();
        let id = if rpc { id } else { msg_id };
        let id = id.map_or(Some(Value::Null), |id| {
            (!id.get().starts_with(['{', '['])).then(|| serde_json::from_str(id.get()).ok()).flatten()
        })?;
        let params = params.map_or("{}", RawValue::get);
        let inner = params.starts_with('{').then(|| serde_json::from_str::<Token>(params).ok()).flatten();
        let outer = || session_token.and_then(|it| serde_json::from_str(it.get()).ok());
        let token = inner.and_then(|it| it.session_token).or_else(outer);
        Some(Self { id, method: method.0, params, token, rpc })
    }

    fn answer(&self, result: Result<Value, DevitError>) -> String {
        let mut answer = if self.rpc {
            json!({ "jsonrpc": "2.0", "id": self.id })
        } else {
            json!({ "msg_type": "response", "msg_id": self.id, "method": self.method })
        };
        match result {
            Ok(result) => answer["result"] = result,
            Err(fault) => answer["error"] = fault.rpc_error(),
        }
        answer.to_string()
    }
}

/// A caller of this dialect, on the connection on which it has proved itself, or with the token that it got there.
/// At each request it has the rights of the key with which it proved itself.
#[derive(Clone)]
pub(super) struct Session {
    agent: AgentId,
    key: Digest,
}

/// Handles the first line of a connection: it has either the secret, or the token of an earlier connection.
pub(super) async fn first(talk: &mut Talk, request: Request<'_>) -> Next {
    let uid = talk.door.0.options.uid;
    let now = talk.door.0.provost.engine().now();
    if matches!(&*request.method, "authenticate" | "auth") {
        let Some((session, line)) = authenticate(talk, &request, uid) else {
            tracing::warn!(door = "devit", pid = talk.peer.pid, "authentication refused");
            let fault = DevitError::new(Code::Auth, "authentication failed");
            return Next::Reset(request.answer(Err(fault)));
        };
        prove(talk);
        return match talk.write(line.as_bytes()).await {
            Next::Go => Next::Session(Box::new(session)),
            other => other,
        };
    }
    let known = request.token.as_deref().and_then(|token| talk.door.0.tokens.check(token, uid, now).ok());
    let session = known.map(|(agent, key)| Session { agent, key });
    let Some((session, who)) = session.and_then(|it| it.who(talk).map(|who| (it, who))) else {
        let fault = DevitError::new(Code::Auth, "authenticate first, or send the session token");
        return talk.write(request.answer(Err(fault)).as_bytes()).await;
    };
    prove(talk);
    let line = session.handle(talk, &who, &request).await;
    match talk.write(line.as_bytes()).await {
        Next::Go => Next::Session(Box::new(session)),
        other => other,
    }
}

fn prove(talk: &mut Talk) {
    talk.proven = true;
    talk.reader.proven();
    talk.guard.proven();
}

fn authenticate(talk: &Talk, request: &Request<'_>, uid: u32) -> Option<(Session, String)> {
    #[derive(Deserialize)]
    struct Params {
        secret: String,
        ident: Option<String>,
    }
    let params: Params =
        request.params.starts_with('{').then(|| serde_json::from_str(request.params).ok())??;
    let secret = Secret::new(params.secret.into_bytes());
    let key = Digest::of(secret.expose());
    let fallback = format!("client:{}", talk.peer.pid);
    let agent = AgentId::parse(params.ident.as_deref().unwrap_or(&fallback)).ok()?;
    standing(talk, &agent, &key)?;
    let now = talk.door.0.provost.engine().now();
    let token = talk.door.0.tokens.issue(agent.clone(), uid, key, now, TOKEN_TTL).ok()?;
    let token = String::from_utf8_lossy(token.expose()).into_owned();
    let result = json!({
        "session_token": token,
        "ident": agent.as_str(),
        "expires_in_s": TOKEN_TTL.as_seconds(),
        "daemon_version": talk.door.0.options.advertised_version,
    });
    Some((Session { agent, key }, request.answer(Ok(result))))
}

/// Returns the present standing of the holder of a key under this name.
fn standing(talk: &Talk, agent: &AgentId, key: &Digest) -> Option<Standing> {
    // Digests of equal length are compared, so that the duration reveals nothing about the secret.
    let same = |secret: &Secret| {
        use subtle::ConstantTimeEq as _;
        bool::from(Digest::of(secret.expose()).as_bytes().ct_eq(key.as_bytes()))
    };
    match talk.door.lookup(agent, (talk.door.0.now)()) {
        Keys::Shared(_) if role::is_reserved(agent) => None,
        Keys::Shared(secret) => same(&secret).then_some(Standing::Shared),
        Keys::Own { role, secrets } => {
            let standing = if role == Role::Approver { Standing::Approver } else { Standing::Own };
            secrets.iter().any(same).then_some(standing)
        }
        Keys::None => None,
    }
}

impl Session {
    /// Returns the caller's principal, as long as its key is valid.
    fn who(&self, talk: &Talk) -> Option<Principal> {
        let standing = standing(talk, &self.agent, &self.key)?;
        talk.door.0.names.by_frame(self.agent.clone(), standing, talk.peer.line()).ok()
    }

    /// Answers requests, and pushes queued messages to this caller as notifications in between.
    pub(super) async fn run(&self, talk: &mut Talk) {
        let door = talk.door.clone();
        let slot = door.0.provost.engine().empty_queues().slot(&self.agent);
        loop {
            let mut arrived = std::pin::pin!(slot.arrived.notified());
            arrived.as_mut().enable();
            if !self.push_all(talk).await {
                return;
            }
            let came = tokio::select! {
                biased;
                came = tokio::time::timeout(super::SILENT_PROVEN_MAX, talk.reader.next()) => came,
                () = arrived => continue,
                () = talk.guard.stopping() => return,
            };
            let line = match came {
                Ok(Ok(lines::Line::Frame(b""))) => continue,
                Ok(Ok(lines::Line::Frame(line))) => line.to_vec(),
                Ok(Ok(lines::Line::TooLong)) => {
                    talk.say_unsigned(&DevitError::invalid("the request is larger than 1 MiB")).await;
                    return;
                }
                _ => return,
            };
            let answer = match Request::read(&line) {
                Some(request) => {
                    let Some(who) = self.who(talk) else {
                        let fault = DevitError::new(Code::Auth, KEY_ENDED);
                        let _last_words = talk.write(request.answer(Err(fault)).as_bytes()).await;
                        return;
                    };
                    self.handle(talk, &who, &request).await
                }
                None => unsigned(&DevitError::invalid("not a request with `method` and `params`")),
            };
            if write_line(talk.reader.get_mut(), answer.as_bytes(), super::LINE_TIME_MAX).await.is_err() {
                return;
            }
        }
    }

    /// Returns `false` if the peer has gone, or its key has ended. On this connection a message counts as delivered
    /// when it was written to a peer that was still connected.
    async fn push_all(&self, talk: &mut Talk) -> bool {
        let door = talk.door.clone();
        let Some(who) = self.who(talk) else {
            let _last_words = talk.say_unsigned(&DevitError::new(Code::Auth, KEY_ENDED)).await;
            return false;
        };
        while let Ok(Some(mail)) = door.0.provost.collect(&who, true, std::time::Duration::ZERO).await {
            let message = map::mail(&mail, door.0.provost.engine().now(), &door.0.options.salt);
            let at = mail.at;
            let carried = Carried { provost: door.0.provost.clone(), who: who.clone(), mail: Some(mail) };
            let params = message.payload.value();
            let line = json!({
                "msg_type": "notification",
                "msg_id": message.msg_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
                "method": message.msg_type.to_ascii_lowercase(),
                "params": params,
                "timestamp": at.rfc3339(),
            })
            .to_string();
            let wrote =
                write_line(talk.reader.get_mut(), line.as_bytes(), super::LINE_TIME_MAX).await.is_ok();
            carried.settle(wrote).await;
            if !wrote {
                return false;
            }
        }
        true
    }

    async fn handle(&self, talk: &Talk, who: &Principal, request: &Request<'_>) -> String {
        let (door, params) = (&talk.door, request.params);
        let result = match &*request.method {
            "delegate" => delegate(talk, who, params).await,
            "notify" => match super::apart(params.len(), || map::notify("", params, true)) {
                Ok(notified) => door.notified(who, notified).await,
                Err(fault) => Err(fault),
            },
            "status" => door.status(params).await.map(|it| it.value()),
            "task" => door.task(params).await.map(|it| it.value()),
            // Its notification follows: on this connection the daemon cannot see whether an answer has arrived.
            "screenshot" => door.screenshot_of_the_document(who).await.map(|(picture, _)| picture),
            "authenticate" | "auth" => Err(DevitError::invalid("this connection is authenticated already")),
            other => Err(DevitError::invalid(format!(
                "unknown method '{}'; known are authenticate, delegate, notify, status, task, screenshot",
                other.chars().take(40).collect::<String>()
            ))),
        };
        request.answer(result)
    }
}

/// Converts the document's parameters to the payload of a signed DELEGATE, and delegates.
async fn delegate(talk: &Talk, who: &Principal, params: &str) -> Result<Value, DevitError> {
    let mut task: Value =
        serde_json::from_str(params).map_err(|_| DevitError::invalid("params cannot be read"))?;
    let object = task.as_object_mut().ok_or_else(|| DevitError::invalid("params must be an object"))?;
    let worker = object.remove("delegated_to").and_then(|it| it.as_str().map(str::to_owned));
    let return_to = object.remove("return_to").unwrap_or(Value::Null);
    let id = object.remove("task_id").and_then(|it| it.as_str().map(str::to_owned));
    let goal = object.get("goal").and_then(Value::as_str).unwrap_or_default();
    if goal.trim().is_empty() {
        return Err(DevitError::invalid("goal is missing"));
    }
    object.entry("action").or_insert_with(|| json!("devit_delegate"));
    for other in ["timeout_s", "timeout_secs"] {
        if let Some(seconds) = object.remove(other) {
            object.entry("timeout").or_insert(seconds);
        }
    }
    let id = id.unwrap_or_else(|| format!("task_{}", uuid::Uuid::new_v4().simple()));
    let worker = AgentId::parse(worker.as_deref().unwrap_or("claude_code"))
        .map_err(|err| DevitError::invalid(format!("delegated_to {err}")))?;
    let payload = json!({ "task": task, "return_to": return_to }).to_string();
    let parsed: wire::Delegate = wire::payload(&payload)?;
    let payload = Json::parse(&payload).map_err(|err| DevitError::invalid(format!("params: {err}")))?;
    let verb = map::order(map::new_task_id(&id)?, worker, parsed, payload)?;
    talk.door.delegated(who, verb).await
}
