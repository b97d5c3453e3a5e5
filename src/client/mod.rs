//! Talks to a running daemon: to its own API over its Unix socket or named pipe. It opens a connection for each
//! request, or keeps connections for a caller that sends many.
//!
//! Promises: nothing is sent before the kernel has confirmed that the listener runs as this user; answers are bounded
//! in size and time; every error says in one sentence what happened. Starting a daemon, and texts for people, are
//! left to `cli`.
#![forbid(unsafe_code)]

mod age;
pub mod approvals;
mod connect;
pub mod daemons;
pub mod events;
mod idle_connections;
pub mod keys;
pub mod passkeys;
mod stream;
pub mod views;
#[cfg(unix)]
#[cfg_attr(windows, path = "worker_windows.rs")]
pub mod worker;

use std::fmt::{Debug, Formatter};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;

pub use age::Age;
use idle_connections::{IdleConnections, Sender};
use provost_api::wire::{self, *};
use provost_api::{self as api, Endpoint, Reply, Which, endpoints, for_each_endpoint};
use provost_base::limits::{HTTP_HEAD_BYTES_MAX, OWN_ANSWER_BYTES_MAX, OWN_ANSWER_MS_MAX};
use provost_base::{AgentId, Secret, percent_encoded};

pub use stream::EventReader;

/// The longest address of a request: a door's bound, less room for the headers.
const TARGET_LEN_MAX: usize = HTTP_HEAD_BYTES_MAX - (4 << 10);

/// The reason why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process listens at this address.
    #[error("no daemon listens at {}", .0.display())]
    NotRunning(PathBuf),
    /// The address or its listener is not this user's, so nothing was sent to it.
    #[error("{} {what}", socket.display())]
    Foreign {
        /// The address of the socket or pipe.
        socket: PathBuf,
        /// The fault, as a part of a sentence.
        what: String,
    },
    /// The daemon speaks another version of its API.
    #[error("the daemon speaks version {0} of its API, and this program version {ours}", ours = wire::API_VERSION)]
    Version(String),
    /// The daemon refused the request.
    #[error("{}", fault.message)]
    Refused {
        /// The status of the HTTP answer.
        status: u16,
        /// The daemon's refusal, with the next step where there is one.
        fault: wire::ErrorBody,
    },
    /// The daemon ended a stream of events, for this reason.
    #[error("{}", .0.message)]
    Ended(wire::ErrorBody),
    /// No answer came in time.
    #[error("the daemon did not answer in time")]
    Slow,
    /// The connection broke, or the answer is malformed.
    #[error("talking to the daemon failed: {0}")]
    Broken(String),
}

impl ClientError {
    fn broken(why: impl std::fmt::Display) -> Self {
        Self::Broken(why.to_string())
    }
}

/// Returns the process of the daemon at a socket if a signal or a debugger has stopped it: it then accepts
/// connections and answers none. Blocks.
pub fn stopped_process(socket: &Path) -> Option<u32> {
    connect::stopped_process(socket)
}

/// The reply of a daemon in this process, or the status and the error that a connection would have brought.
pub type Replying = Pin<Box<dyn Future<Output = Result<Reply, (u16, wire::ErrorBody)>> + Send>>;

/// A daemon in this process, on behalf of one caller.
pub trait InProcess: Send + Sync {
    /// Answers a request as the daemon would over a connection; `session` is the host's session that it belongs to, if any.
    fn ask(&self, session: Option<Arc<str>>, request: api::Request) -> Replying;

    /// Checks whether the caller may still use its name.
    fn lets_in(&self) -> bool;

    /// Returns the greatest age of what an answer says, in milliseconds; `None` if it is of this moment.
    fn age_ms(&self) -> Option<u64>;
}

/// The route to a daemon.
#[derive(Clone)]
enum DaemonRoute {
    Socket(PathBuf),
    InProcess(Arc<dyn InProcess>),
}

impl Debug for DaemonRoute {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => Debug::fmt(path, f),
            Self::InProcess(_) => f.write_str("inside"),
        }
    }
}

/// The address of a daemon, and the agent on whose behalf the client speaks to it.
#[derive(Clone)]
pub struct Client {
    way: DaemonRoute,
    agent: Option<AgentId>,
    /// The token that proves the caller's identity; never logged.
    bearer: Option<HeaderValue>,
    /// A process of this user: when it ends, everything that this client acquires is released.
    process: Option<u32>,
    /// A host's session over HTTP: when it ends, everything that this client acquires is released.
    session: Option<Arc<str>>,
    /// Idle connections for the next request, where the client keeps them.
    kept: Option<Arc<IdleConnections>>,
    /// Notes the age of old answers.
    age: Age,
}

impl Debug for Client {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("way", &self.way).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// A pending answer. The future is boxed here so that it is compiled once, and not in each crate that awaits it.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

macro_rules! methods {
    ($($(#[doc = $sentence:literal])+ $method:ident $path:literal $name:ident $Kind:ident($($Asked:ident)?) -> $Answer:ty,
        tools $tools:tt, commands $commands:tt $(, $flag:ident)*;)+) => {
        impl Client { $(
            $(#[doc = $sentence])+
            ///
            /// # Errors
            /// [`ClientError`].
            pub fn $name<'a>(&'a self $(, asked: &'a $Asked)?) -> Asking<'a, $Answer> {
                Box::pin(self.ask::<endpoints::$Kind>(methods!(@asked $(asked $Asked)?)))
            }
        )+ }
    };
    (@asked) => { &() };
    (@asked $asked:ident $Asked:ident) => { $asked };
}

for_each_endpoint!(methods);

impl Client {
    /// Makes a client of the daemon whose own API is at `socket`. It connects only when it sends a request.
    pub fn at(socket: PathBuf) -> Self {
        Self {
            way: DaemonRoute::Socket(socket),
            agent: None,
            bearer: None,
            process: None,
            session: None,
            kept: None,
            age: Age::default(),
        }
    }

    /// Makes a client of the daemon in this process, for an agent that the daemon has authenticated.
    pub fn inside(daemon: Arc<dyn InProcess>, agent: AgentId) -> Self {
        Self {
            way: DaemonRoute::InProcess(daemon),
            agent: Some(agent),
            bearer: None,
            process: None,
            session: None,
            kept: None,
            age: Age::default(),
        }
    }

    /// The same client, which notes the age of old answers here.
    #[must_use]
    pub fn noting(self, age: Age) -> Self {
        Self { age, ..self }
    }

    /// The same client, which keeps its connections for the next request; so do all clients that are derived from it.
    #[must_use]
    pub fn keeping_connections(self) -> Self {
        Self { kept: Some(Arc::default()), ..self }
    }

    /// The same client, whose locks, claims and intents are released when a process of this user ends.
    #[must_use]
    pub fn bound_to(self, process: u32) -> Self {
        Self { process: Some(process), ..self }
    }

    /// The same for a host's session over HTTP, where this process is the daemon.
    #[must_use]
    pub fn in_session(self, session: Arc<str>) -> Self {
        Self { session: Some(session), ..self }
    }

    /// Checks whether the client knows that the caller may not use its name any more. A daemon in another process
    /// refuses such a caller itself.
    pub fn is_shut_out(&self) -> bool {
        match &self.way {
            DaemonRoute::InProcess(daemon) => !daemon.lets_in(),
            DaemonRoute::Socket(_) => false,
        }
    }

    /// Returns the agent on whose behalf it speaks; `None` is the user.
    pub fn agent(&self) -> Option<&AgentId> {
        self.agent.as_ref()
    }

    /// The same client with a token; a token that does not fit into a header is left out.
    #[must_use]
    pub fn showing(self, token: Option<&Secret>) -> Self {
        let header = |token: &Secret| {
            let text = [b"Bearer ".as_slice(), token.expose().trim_ascii()].concat();
            let mut value = HeaderValue::from_bytes(&text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        Self { bearer: token.and_then(header), ..self }
    }

    /// The same client on behalf of an agent instead of the user.
    #[must_use]
    pub fn speaking_as(self, agent: Option<AgentId>) -> Self {
        Self { agent, ..self }
    }

    /// Sends a request to an endpoint. This is compiled once for each endpoint, so the code that does not depend on
    /// the endpoint is in [`Self::bytes`] and in `reply`.
    async fn ask<E: Endpoint>(&self, asked: &E::Asked) -> Result<E::Answer, ClientError> {
        let patience = Duration::from_millis(OWN_ANSWER_MS_MAX.saturating_add(E::wait_ms(asked)));
        match &self.way {
            DaemonRoute::InProcess(daemon) => {
                let replying = daemon.ask(self.session.clone(), E::request(asked.clone()));
                let reply = reply(replying, patience).await?;
                daemon.age_ms().inspect(|ms| self.age.note(*ms));
                E::answer(reply).ok_or_else(|| ClientError::Broken("it answered something else".into()))
            }
            DaemonRoute::Socket(socket) => {
                let members = E::write(asked).map_err(ClientError::broken)?;
                let again = self.agent.is_some().then(|| members.clone());
                let bytes = match (self.bytes(socket, E::WHICH, members, patience).await, again) {
                    // The name became another host's agent's just now. Nothing was done, and the daemon has a longer name for this one.
                    (Err(ClientError::Refused { fault, .. }), Some(members))
                        if fault.error == wire::NAME_ELSEWHERE =>
                    {
                        self.bytes(socket, E::WHICH, members, patience).await?
                    }
                    (bytes, _) => bytes?,
                };
                E::read(&bytes).map_err(|err| unexpected(&err))
            }
        }
    }

    /// Sends these members as JSON, and reads the answer.
    fn bytes<'a>(
        &'a self,
        socket: &'a Path,
        which: Which,
        members: Vec<u8>,
        patience: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, ClientError>> + Send + 'a>> {
        Box::pin(async move {
            let request = self.request(which, members)?;
            let answer = tokio::time::timeout(patience, self.exchange(socket, request)).await;
            answer.map_err(|_| ClientError::Slow)?
        })
    }

    fn request(&self, which: Which, members: Vec<u8>) -> Result<Request<Full<Bytes>>, ClientError> {
        let (method, path) = (which.method(), which.row().path);
        if members == b"null" {
            return self.message(method, path, Bytes::new());
        }
        if method != Method::GET {
            return self.message(method, path, members.into());
        }
        let members: Value = serde_json::from_slice(&members).map_err(ClientError::broken)?;
        let target = format!("{path}{}", query_text(&members));
        if target.len() > TARGET_LEN_MAX {
            return Err(too_long());
        }
        self.message(method, &target, Bytes::new())
    }

    /// Builds a request with the proof of this client's caller.
    fn message(
        &self,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", "provost")
            .header("content-type", "application/json")
            .header(wire::VERSION_HEADER, wire::API_VERSION);
        if let Some(agent) = &self.agent {
            request = request.header(wire::AGENT_HEADER, agent.as_str());
        }
        if let Some(process) = self.process {
            request = request.header(wire::PROCESS_HEADER, process);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", bearer);
        }
        request.body(Full::new(body)).map_err(ClientError::broken)
    }

    async fn exchange(&self, socket: &Path, mut request: Request<Full<Bytes>>) -> Result<Bytes, ClientError> {
        if let Some(kept) = &self.kept {
            while let Some(mut sender) = kept.take().await {
                match sender.try_send_request(request).await {
                    Ok(response) => return self.answered(sender, response).await,
                    // The connection ended before any byte of the request was sent, so another connection is tried.
                    Err(mut failed) => match failed.take_message() {
                        Some(unsent) => request = unsent,
                        None => return Err(ClientError::broken(failed.into_error())),
                    },
                }
            }
        }
        let mut sender = connect(socket).await?;
        let response = sender.send_request(request).await.map_err(ClientError::broken)?;
        self.answered(sender, response).await
    }

    /// Reads an answer, and keeps the connection if the answer was read to its end.
    async fn answered(&self, sender: Sender, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let age = response.headers().get(wire::AGE_HEADER).and_then(|it| it.to_str().ok()?.parse().ok());
        age.inspect(|ms| self.age.note(*ms));
        let answer = answer(response).await;
        if let Some(kept) = &self.kept
            && matches!(answer, Ok(_) | Err(ClientError::Refused { .. }))
        {
            kept.put(sender);
        }
        answer
    }
}

/// Waits for the reply of a daemon in this process, for a limited time.
async fn reply(replying: Replying, patience: Duration) -> Result<Reply, ClientError> {
    let reply = tokio::time::timeout(patience, replying).await.map_err(|_| ClientError::Slow)?;
    reply.map_err(|(status, fault)| ClientError::Refused { status, fault })
}

/// Refuses a request that no door would read, before it is sent.
fn too_long() -> ClientError {
    let message = format!("this question is longer than {TARGET_LEN_MAX} bytes, which no daemon reads");
    let fault = wire::ErrorBody {
        error: "invalid".into(),
        message,
        hint: Some("ask with less text".into()),
        data: None,
    };
    ClientError::Refused { status: 400, fault }
}

fn unexpected(err: &serde_json::Error) -> ClientError {
    ClientError::Broken(format!("its answer is not what was expected ({err})"))
}

/// Connects to the daemon at a socket.
async fn connect(socket: &Path) -> Result<Sender, ClientError> {
    let stream = connect::connect(socket).await?;
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::broken)?;
    // The task ends by itself: with the answer, or when the sender is dropped, also with its future.
    let _driver = tokio::spawn(connection);
    Ok(sender)
}

/// Checks whether an answer is of this version of the API.
fn is_ours(head: &hyper::http::response::Parts) -> Result<(), ClientError> {
    let theirs = head.headers.get(wire::VERSION_HEADER).map(|it| String::from_utf8_lossy(it.as_bytes()));
    match theirs.as_deref() {
        Some(wire::API_VERSION) => Ok(()),
        theirs => Err(ClientError::Version(theirs.unwrap_or("unknown").into())),
    }
}

async fn whole(body: Incoming) -> Result<Bytes, ClientError> {
    let body = Limited::new(body, OWN_ANSWER_BYTES_MAX).collect().await.map_err(ClientError::broken)?;
    Ok(body.to_bytes())
}

/// Reads the reason why the daemon refused.
async fn failure(status: StatusCode, body: Incoming) -> ClientError {
    let body = match whole(body).await {
        Ok(body) => body,
        Err(why) => return why,
    };
    let fault = serde_json::from_slice(&body).unwrap_or_else(|_| wire::ErrorBody {
        error: "unavailable".into(),
        message: format!("the daemon answered {status}"),
        hint: None,
        data: None,
    });
    ClientError::Refused { status: status.as_u16(), fault }
}

async fn answer(response: Response<Incoming>) -> Result<Bytes, ClientError> {
    let (head, body) = response.into_parts();
    is_ours(&head)?;
    match head.status {
        StatusCode::OK => whole(body).await,
        status => Err(failure(status, body).await),
    }
}

/// Writes the members of an object as a query; absent ones are left out.
fn query_text(query: &Value) -> String {
    let mut text = String::new();
    for (name, value) in query.as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => value.clone(),
            value => value.to_string(),
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        text.push_str(&percent_encoded(&value));
    }
    text
}
