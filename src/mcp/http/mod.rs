//! MCP over streamable HTTP on loopback: `/mcp`, for hosts that are configured with an address and not a program.
//!
//! Promises: the daemon answers each request as its sender: as the agent of its token; or the agent that it names
//! with `?agent=` or `x-provost-agent`; or, if it names none, the agent of its host's session or process. A session
//! of the older era belongs to the agent that began it, and sessions are bounded. The shell decides who may
//! connect, and the daemon decides the rest.
#![forbid(unsafe_code)]

mod hooks;
mod page;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::deferred::kept;
use super::{Mcp, Settings, session, stdio};
pub use hooks::{HOOK_PATH, HOOK_TOKEN_HEADER, HookCall, HookFault, Hooks};
use provost_api::wire;
use provost_auth::Rejected;
use provost_auth::caller::Caller;
use provost_base::limits::{MCP_BODY_BYTES_MAX, MCP_COMMENT_EVERY_S};
use provost_base::{AgentId, Digest};
use provost_client::Client;
use provost_domain::{Door, Principal};
use provost_protocols::loopback::{AdmittedRequest, Answer, LoopbackDoor, closing, foreign, whole};
use provost_transport::http::Untaken;
use sessions::Sessions;

/// Makes a client that speaks to the daemon as this principal, with this token if the request has shown one.
pub type Clients = Arc<dyn Fn(Principal, Option<Digest>) -> Client + Send + Sync>;

/// Returns the agent of a host's session by the host's process, if its hooks have recorded one.
pub type Called = Arc<dyn Fn(u32) -> Option<AgentId> + Send + Sync>;

/// The door that serves hosts over HTTP.
pub struct McpHttp<S = Mcp> {
    clients: Clients,
    called: Called,
    hooks: Option<hooks::HookPlaces>,
    sessions: Sessions,
    service: StreamableHttpService<S, sessions::Manager>,
}

/// The reason why a request is not passed on.
struct HttpError {
    status: StatusCode,
    message: String,
}

impl HttpError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Encodes the error as the protocol's answer to a request that was not read.
    fn into_answer(self) -> Answer {
        let error = json!({ "code": -32_600, "message": self.message });
        let text = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
        whole(self.status, "application/json", text)
    }
}

impl McpHttp {
    /// Makes a door whose callers reach the daemon through these clients, until `stop`.
    pub fn new(clients: Clients, called: Called, settings: Settings, stop: CancellationToken) -> Self {
        let server = Mcp::for_requests_with_clients(settings);
        Self { called, ..Self::serving(clients, move || server.for_another(), stop) }
    }

    /// Returns the same door, which also answers hooks of hosts.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks: Some(hooks::HookPlaces::new(hooks)), ..self }
    }
}

impl<S: ServerHandler> McpHttp<S> {
    /// Makes the same door with any server; makes one server for each host.
    pub fn serving(
        clients: Clients,
        make: impl Fn() -> S + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        let sessions = Sessions::new();
        let mut config = StreamableHttpServerConfig::default()
            .with_sse_keep_alive(Some(Duration::from_secs(MCP_COMMENT_EVERY_S)))
            .with_cancellation_token(stop)
            .with_max_request_body_bytes(MCP_BODY_BYTES_MAX)
            // The shell has checked them, and more strictly.
            .disable_allowed_hosts();
        config.json_response = true;
        let service = StreamableHttpService::new(move || Ok(make()), sessions.manager(), config);
        Self { clients, called: Arc::new(|_| None), hooks: None, sessions, service }
    }

    async fn respond(&self, asked: AdmittedRequest) -> Result<Answer, HttpError> {
        if let Some(hooks) = self.hooks.as_ref().filter(|_| asked.head.uri.path().starts_with(HOOK_PATH)) {
            return hooks.answer(&self.clients, asked).await;
        }
        let AdmittedRequest { mut head, body, caller, .. } = asked;
        let path = head.uri.path();
        if path == "/approvals" || path.starts_with("/approvals/") {
            let reader = caller.agent().map_or(page::READER, AgentId::as_str).to_owned();
            let client = (self.clients)(named(&caller, &reader)?, shown(&caller));
            return page::answer(&client, &head).await;
        }
        if path != "/mcp" {
            return Err(HttpError::new(StatusCode::NOT_FOUND, "there is nothing here; MCP is at /mcp"));
        }
        let (who, process) = who(&caller, &head).await?;
        let mark = caller.began_at();
        let session = self.sessions.enter(&head.headers, who.agent(), mark)?;
        let agent = who.agent().clone();
        let taken = match body.take().await {
            Ok(taken) => taken,
            // The rest of the body is not read, so no request can follow it.
            Err(untaken) => return Ok(closing(untaken_fault(untaken).into_answer())),
        };
        // The request names no agent. The host's hooks and shells use the name of its session, so this request
        // does, too.
        let called = process.and_then(|pid| session::of_message(&taken.bytes).or_else(|| (self.called)(pid)));
        let who = called.map_or(Ok(who), |called| named(&caller, called.as_str()))?;
        let client = (self.clients)(who, shown(&caller));
        if let Some(session) = &session {
            self.sessions.speaks(session, &client);
        }
        head.extensions.insert(match session {
            Some(session) => client.clone().in_session(session),
            None => client.clone(),
        });
        if head.method == Method::POST
            && let Some(refusal) = stdio::refusal(&taken.bytes)
        {
            return Ok(whole(StatusCode::BAD_REQUEST, "application/json", refusal));
        }
        let ends = head.method == Method::DELETE;
        let text = match kept(&taken.bytes) {
            Some((text, method)) => {
                // The header with the method must match the message.
                if let Some(said) = head.headers.get_mut("mcp-method") {
                    *said = HeaderValue::from_static(method);
                }
                text
            }
            None => taken.bytes,
        };
        let request = Request::from_parts(head, Full::new(Bytes::from(text)));
        let mut answer = self.service.handle(request).await;
        // Hosts take a session for ended only if the status says so now, and not that it will end.
        if ends && answer.status().is_success() {
            *answer.status_mut() = StatusCode::OK;
        }
        if !ends {
            self.sessions.begun(&answer, agent, mark, client).await;
        }
        Ok(foreign(answer))
    }
}

/// Returns the token that a request has shown.
fn shown(caller: &Caller) -> Option<Digest> {
    caller.token().map(|token| token.digest)
}

/// Returns the principal as which a request speaks, and its process if it names no agent.
async fn who(caller: &Caller, head: &Parts) -> Result<(Principal, Option<u32>), HttpError> {
    let given = name_given(head)?.or_else(|| caller.agent().map(ToString::to_string));
    if let Some(agent) = given {
        return Ok((named(caller, &agent)?, None));
    }
    let looking = caller.clone();
    let process = tokio::task::spawn_blocking(move || looking.process()).await.ok().flatten();
    let process = process.ok_or_else(|| {
        let help = "say as whom you speak: add ?agent=NAME to the address, or the header x-provost-agent";
        HttpError::new(StatusCode::FORBIDDEN, help)
    })?;
    let process = u32::try_from(process).unwrap_or_default();
    Ok((named(caller, &super::of_process(process))?, Some(process)))
}

/// Returns the agent that a request names, in its address or in a header.
fn name_given(head: &Parts) -> Result<Option<String>, HttpError> {
    let wrong = |why: &str| HttpError::new(StatusCode::BAD_REQUEST, why);
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&head.uri);
    let axum::extract::Query(members) = query.map_err(|err| wrong(&err.body_text()))?;
    let named = members.into_iter().filter(|(name, _)| name == "agent");
    let mut names: Vec<String> = named.map(|(_, name)| name).collect();
    for name in head.headers.get_all(wire::AGENT_HEADER) {
        names.push(name.to_str().map_err(|_| wrong("the agent's name is not plain text"))?.to_owned());
    }
    names.dedup();
    match names.len() {
        0 | 1 => Ok(names.pop()),
        _ => Err(wrong("several agents are named; name one")),
    }
}

fn named(caller: &Caller, name: &str) -> Result<Principal, HttpError> {
    let wrong = |why: String| HttpError::new(StatusCode::BAD_REQUEST, why);
    let agent = AgentId::parse(name).map_err(|err| wrong(format!("the agent's name {err}")))?;
    caller.speaks_as(agent.clone()).map_err(|rejected| match rejected {
        Rejected::OtherName => {
            HttpError::new(StatusCode::FORBIDDEN, format!("the token is not {agent}'s; leave the name out"))
        }
        _ => HttpError::new(StatusCode::FORBIDDEN, format!("{agent} is reserved; take another name")),
    })
}

fn untaken_fault(untaken: Untaken) -> HttpError {
    match untaken {
        Untaken::TooLarge => {
            let most = format!("the request is larger than {} MiB", MCP_BODY_BYTES_MAX >> 20);
            HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, most)
        }
        Untaken::TooSlow => HttpError::new(StatusCode::REQUEST_TIMEOUT, "the request did not come in time"),
        Untaken::BrokeOff => HttpError::new(StatusCode::BAD_REQUEST, "the request broke off"),
    }
}

impl<S: ServerHandler> LoopbackDoor for McpHttp<S> {
    fn door(&self) -> Door {
        Door::Mcp
    }

    fn body_bytes_max(&self) -> usize {
        MCP_BODY_BYTES_MAX
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        self.respond(asked).await.unwrap_or_else(HttpError::into_answer)
    }

    fn refuse(&self) -> Answer {
        whole(StatusCode::FORBIDDEN, "application/json", r#"{"error":"Forbidden"}"#)
    }

    fn unavailable(&self, why: &str) -> Answer {
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, why).into_answer()
    }

    fn demand(&self) -> Answer {
        HttpError::new(StatusCode::UNAUTHORIZED, "a token is needed: provost token mint AGENT").into_answer()
    }
}
