//! The dialect of the protocol document: `method` and `params`, a session token instead of signatures.
//!
//! Also spoken as plain JSON-RPC 2.0. Weaker than signed frames, since the secret itself travels over the
//! socket; `[devit] dialect_document = false` switches it off.

use serde_json::{Value, json};

use super::map;
use super::wire::{self, Code, Fault};
use super::{Carried, Next, Talk, unsigned};
use crate::auth::keys::{Keys, Role};
use crate::auth::role::{self, Standing};
use crate::base::{AgentId, Digest, Json, Ttl};
use crate::domain::Principal;
use crate::transport::lines::{Line, write_line};

/// How long a session token is good for.
const TOKEN_TTL: Ttl = Ttl::minutes(8 * 60);

/// A request of this dialect.
pub(super) struct Request {
    id: Value,
    method: String,
    params: Value,
    token: Option<String>,
    rpc: bool,
}

impl Request {
    /// Reads a line, if it is a request of this dialect at all.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(line).ok()?;
        let object = value.as_object_mut()?;
        let method = object.get("method")?.as_str()?.to_owned();
        let rpc = object.contains_key("jsonrpc");
        let id = object.remove(if rpc { "id" } else { "msg_id" }).unwrap_or(Value::Null);
        let mut params = object.remove("params").unwrap_or_else(|| json!({}));
        let inner = params.get_mut("session_token").map(Value::take);
        let token = inner.or_else(|| object.remove("session_token"));
        let token = token.and_then(|it| it.as_str().map(str::to_owned));
        Some(Self { id, method, params, token, rpc })
    }

    fn answer(&self, result: Result<Value, Fault>) -> String {
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

/// A caller of this dialect, on the connection it proved itself on or with the token it got there.
#[derive(Clone)]
pub(super) struct Session {
    who: Principal,
}

/// The first line of a connection: either the secret, or the token of an earlier connection.
pub(super) async fn first(talk: &mut Talk, request: Request) -> Next {
    let uid = talk.door.0.options.uid;
    let now = (talk.door.0.now)();
    if matches!(request.method.as_str(), "authenticate" | "auth") {
        let Some((who, line)) = authenticate(talk, &request, uid) else {
            tracing::warn!(door = "devit", pid = talk.peer.pid, "authentication refused");
            let fault = Fault::new(Code::Auth, "authentication failed");
            return Next::Reset(request.answer(Err(fault)));
        };
        prove(talk);
        return match talk.write(line.as_bytes()).await {
            Next::Go => Next::Session(Box::new(Session { who })),
            other => other,
        };
    }
    let known = request.token.as_deref().and_then(|token| talk.door.0.tokens.check(token, uid, now).ok());
    let Some(who) = known.and_then(|agent| standing(talk, &agent, None).map(|it| role::devit(agent, it)))
    else {
        let fault = Fault::new(Code::Auth, "authenticate first, or send the session token");
        return talk.write(request.answer(Err(fault)).as_bytes()).await;
    };
    prove(talk);
    let session = Session { who };
    let line = session.handle(talk, &request).await;
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

fn authenticate(talk: &Talk, request: &Request, uid: u32) -> Option<(Principal, String)> {
    let secret = request.params.get("secret")?.as_str()?;
    let ident = request.params.get("ident").and_then(Value::as_str);
    let fallback = format!("client:{}", talk.peer.pid);
    let agent = AgentId::parse(ident.unwrap_or(&fallback)).ok()?;
    let standing = standing(talk, &agent, Some(secret))?;
    let now = (talk.door.0.now)();
    let token = talk.door.0.tokens.issue(agent.clone(), uid, now, TOKEN_TTL).ok()?;
    let token = String::from_utf8_lossy(token.expose()).into_owned();
    let result = json!({
        "session_token": token,
        "ident": agent.as_str(),
        "expires_in_s": TOKEN_TTL.as_seconds(),
        "daemon_version": talk.door.0.options.advertised_version,
    });
    Some((role::devit(agent, standing), request.answer(Ok(result))))
}

/// What this ident may do, given the right secret; without a secret, what its token stands for at present.
fn standing(talk: &Talk, agent: &AgentId, secret: Option<&str>) -> Option<Standing> {
    // Digests of equal length are compared, so that time tells nothing about the secret.
    let same = |key: &crate::base::Secret| {
        use subtle::ConstantTimeEq as _;
        let given = secret.map(|it| Digest::of(it.as_bytes()));
        given.is_none_or(|it| Digest::of(key.expose()).as_bytes().ct_eq(it.as_bytes()).into())
    };
    match talk.door.0.keys.lookup(agent, (talk.door.0.now)()) {
        Keys::Shared(_) if role::is_reserved(agent) => None,
        Keys::Shared(key) => same(&key).then_some(Standing::Shared),
        Keys::Own { role, secrets } => {
            let standing = if role == Role::Approver { Standing::Approver } else { Standing::Own };
            secrets.iter().any(same).then_some(standing)
        }
        Keys::None => None,
    }
}

impl Session {
    /// Answers requests, and pushes what is queued for this caller as notifications in between.
    pub(super) async fn run(&self, talk: &mut Talk) {
        let door = talk.door.clone();
        let slot = door.0.provost.engine().board().slot(self.who.agent());
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
                Ok(Ok(Line::Frame(b""))) => continue,
                Ok(Ok(Line::Frame(line))) => line.to_vec(),
                Ok(Ok(Line::TooLong)) => {
                    talk.say_unsigned(&Fault::invalid("the request is larger than 1 MiB")).await;
                    return;
                }
                _ => return,
            };
            let answer = match Request::read(&line) {
                Some(request) => self.handle(talk, &request).await,
                None => unsigned(&Fault::invalid("not a request with `method` and `params`")),
            };
            if write_line(talk.reader.get_mut(), answer.as_bytes(), super::LINE_TIME_MAX).await.is_err() {
                return;
            }
        }
    }

    /// `false` when the peer is not there any more. On a connection that is only pushed to, a message counts as
    /// delivered when it was written to a peer that was still there.
    async fn push_all(&self, talk: &mut Talk) -> bool {
        let door = talk.door.clone();
        while let Ok(Some(mail)) = door.0.provost.collect(&self.who, true, std::time::Duration::ZERO).await {
            let message = map::mail(&mail, (door.0.now)(), &door.0.options.salt);
            let at = mail.at;
            let carried =
                Carried { provost: door.0.provost.clone(), who: self.who.clone(), mail: Some(mail) };
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

    async fn handle(&self, talk: &Talk, request: &Request) -> String {
        let door = &talk.door;
        let params = request.params.to_string();
        let result = match request.method.as_str() {
            "delegate" => self.delegate(talk, request).await,
            "notify" => match map::notify("", &params, true) {
                Ok(notified) => door.notified(&self.who, notified).await,
                Err(fault) => Err(fault),
            },
            "status" => door.status(&params).await.map(|it| it.value()),
            "task" => door.task(&params).await.map(|it| it.value()),
            "screenshot" => door.screenshot(&self.who).await.map(|it| it.payload.value()),
            "authenticate" | "auth" => Err(Fault::invalid("this connection is authenticated already")),
            other => Err(Fault::invalid(format!(
                "unknown method '{}'; known are authenticate, delegate, notify, status, task, screenshot",
                other.chars().take(40).collect::<String>()
            ))),
        };
        request.answer(result)
    }

    /// The document's parameters, brought into the shape of a signed DELEGATE's payload.
    async fn delegate(&self, talk: &Talk, request: &Request) -> Result<Value, Fault> {
        let mut task = request.params.clone();
        let object = task.as_object_mut().ok_or_else(|| Fault::invalid("params must be an object"))?;
        let worker = object.remove("delegated_to").and_then(|it| it.as_str().map(str::to_owned));
        let return_to = object.remove("return_to").unwrap_or(Value::Null);
        let id = object.remove("task_id").and_then(|it| it.as_str().map(str::to_owned));
        let goal = object.get("goal").and_then(Value::as_str).unwrap_or_default();
        if goal.trim().is_empty() {
            return Err(Fault::invalid("goal is missing"));
        }
        object.entry("action").or_insert_with(|| json!("devit_delegate"));
        for other in ["timeout_s", "timeout_secs"] {
            if let Some(seconds) = object.remove(other) {
                object.entry("timeout").or_insert(seconds);
            }
        }
        let id = id.unwrap_or_else(|| format!("task_{}", uuid::Uuid::new_v4().simple()));
        let worker = AgentId::parse(worker.as_deref().unwrap_or("claude_code"))
            .map_err(|err| Fault::invalid(format!("delegated_to {err}")))?;
        let payload = json!({ "task": task, "return_to": return_to });
        let parsed: wire::Delegate = wire::payload(&payload.to_string())?;
        let verb = map::order(map::task_id(&id)?, worker, parsed, Json::from_value(&payload))?;
        talk.door.delegated(&self.who, verb).await
    }
}
