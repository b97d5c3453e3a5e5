//! The Autonoma daemon protocol: JSON over WebSockets on loopback, for editors.
//!
//! Proof is the peer: a process of this user, which speaks as `editor` unless it shows a token. Promises: the door
//! meets the needs of the public clients for Neovim, Emacs and Sublime to the letter, down to how they misread
//! frames and headers; every request is answered, or its connection ends; a client gets no message before its first
//! request. The shell around the door decides who may connect, and `transport::websocket` handles frames.
#![forbid(unsafe_code)]

mod artifacts;
pub mod audience;
pub mod call;
mod code;
mod control;
mod envelope;
pub mod events;
mod fleet;
mod job_events;
mod jobs;
mod map;
pub mod pace;
mod pending_waiters;
mod scans;
mod session;
pub mod wire;
mod workflows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{ALLOW, CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::loopback::{AdmittedRequest, Answer, LoopbackDoor, Upgraded, can_upgrade, closing, empty, whole};
use audience::Audience;
use call::Call;
pub use envelope::A6sError;
use pending_waiters::PendingWaiters;
use provost_agents::{AgentService, CodeQuestion, ScanFor};
use provost_auth::Rejected;
use provost_auth::caller::Caller;
use provost_base::AgentId;
use provost_base::limits::{
    A6S_ARTIFACTS_BYTES_AT_ONCE_MAX, A6S_MESSAGE_BYTES_MAX, A6S_MESSAGES_BYTES_MAX, A6S_REQUESTS_AT_ONCE_MAX,
    LOOPBACK_BODY_MS_MAX, LOOPBACK_SMALL_BODY_BYTES,
};
use provost_domain::{Door, Principal};
use provost_service::Provost;
use provost_transport::accept::Guard;
use provost_transport::http::{BodyLimits, Room};
use provost_transport::websocket::{Waiting, accept_key};
use session::{Outcome, Session};

/// The path of the WebSocket.
const PATH: &str = "/ws";

/// The version of the WebSocket protocol. RFC 6455, 4.1.
const VERSION: &str = "13";

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const WS_VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");

/// The name as which an editor speaks without a token: the protocol knows no names.
const EDITOR: &str = "editor";

/// The door that serves editors. Clones share everything.
#[derive(Clone)]
pub struct A6s(Arc<A6sInner>);

/// The configuration of how the door treats editors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientQuirks {
    /// Whether Neovim's plugin gets an object where it would show a string badly.
    pub objects_to_neovim: bool,
    /// How long an apply waits for approval.
    pub apply_wait: Duration,
}

struct A6sInner {
    service: AgentService,
    started: Instant,
    /// The room for received messages and for those that wait to be sent.
    room: Room,
    waiting: Waiting,
    quirks: ClientQuirks,
    /// The permits to answer requests.
    turns: Arc<Semaphore>,
    /// The permits for contents of files that are being compared or written.
    contents: Arc<Semaphore>,
    audience: Audience,
    waiters: PendingWaiters,
    /// Cancelled when editors get no more events.
    told: CancellationToken,
}

impl A6s {
    /// Makes the door of a daemon that has just started.
    pub fn new(service: AgentService, quirks: ClientQuirks) -> Self {
        let room = Room::new(BodyLimits {
            most: A6S_MESSAGE_BYTES_MAX,
            total: A6S_MESSAGES_BYTES_MAX,
            small: LOOPBACK_SMALL_BODY_BYTES,
            time: Duration::from_millis(LOOPBACK_BODY_MS_MAX),
        });
        let turns = Arc::new(Semaphore::new(A6S_REQUESTS_AT_ONCE_MAX));
        let contents = Arc::new(Semaphore::new(A6S_ARTIFACTS_BYTES_AT_ONCE_MAX / artifacts::UNIT));
        Self(Arc::new(A6sInner {
            service,
            started: Instant::now(),
            room,
            waiting: Waiting::default(),
            quirks,
            turns,
            contents,
            audience: Audience::default(),
            waiters: PendingWaiters::default(),
            told: CancellationToken::new(),
        }))
    }

    /// Decides which connections get which events.
    fn audience(&self) -> &Audience {
        &self.0.audience
    }

    /// Returns the token that is cancelled when editors get no more events, since the daemon stops.
    fn told(&self) -> &CancellationToken {
        &self.0.told
    }

    fn waiters(&self) -> &PendingWaiters {
        &self.0.waiters
    }

    fn service(&self) -> &AgentService {
        &self.0.service
    }

    fn provost(&self) -> &Provost {
        self.0.service.provost()
    }

    fn room(&self) -> &Room {
        &self.0.room
    }

    fn waiting(&self) -> &Waiting {
        &self.0.waiting
    }

    fn quirks(&self) -> ClientQuirks {
        self.0.quirks
    }

    fn runs_for(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Takes a permit to answer one more request.
    fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.turns).try_acquire_owned().ok()
    }

    /// Takes permits for this number of units of contents.
    fn artifact_room(&self, units: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.contents).try_acquire_many_owned(u32::try_from(units).ok()?).ok()
    }

    /// Returns the agent as which a connection speaks: that of its token, or `editor`.
    fn speaks_as(caller: &Caller) -> Result<Principal, Rejected> {
        let name = match caller.agent() {
            Some(agent) => agent.clone(),
            None => AgentId::parse(EDITOR).map_err(|_| Rejected::Reserved)?,
        };
        let spoken = caller.speaks_as(name);
        spoken.inspect_err(|why| tracing::warn!(door = "a6s", cause = why.cause(), "request refused"))
    }

    /// Answers a request, in the name of its connection.
    async fn carry_out(&self, session: &Session, call: Call) -> Outcome {
        let call = match call {
            Call::ArtifactsPreview(asked) => return Ok((self.preview(session, asked).await?, None)),
            Call::ArtifactsApply(asked) => return Ok((self.apply(session, asked).await?, None)),
            call => call,
        };
        let said = match &call {
            Call::AgentsInvoke(asked) => return self.invoke(session, asked).await,
            Call::FleetCommand(asked) => return self.fleet_command(session, asked).await,
            Call::BackgroundLaunch(asked) => return self.launch(session, asked).await,
            Call::CodeExplain(asked) => return self.code(session, CodeQuestion::Explain, asked).await,
            Call::CodeRefactor(asked) => return self.code(session, CodeQuestion::Refactor, asked).await,
            Call::CodeGenerateTests(asked) => {
                return self.code(session, CodeQuestion::GenerateTests, asked).await;
            }
            Call::CodeReview(asked) => return self.code(session, CodeQuestion::Review, asked).await,
            Call::WorkflowsRun(asked) => return self.run_workflow(session, asked).await,
            Call::ScanTechDebt(asked) => self.scan(session, ScanFor::TechDebt, asked).await,
            Call::ScanModernize(asked) => self.scan(session, ScanFor::Modernize, asked).await,
            Call::ScanStatus(asked) => self.scan_status(asked.job_id.as_str()).await,
            Call::WorkflowsList(asked) => self.workflows(asked),
            Call::WorkflowsStatus(asked) => self.execution_status(session, asked.execution_id.as_str()).await,
            Call::ExecutionStatus(asked) => self.execution_status(session, asked.execution_id.as_str()).await,
            Call::BackgroundList(_) => self.background().await,
            Call::BackgroundCancel(asked) => self.cancel(session, asked.task_id.as_str(), "task").await,
            Call::WorkflowsCancel(asked) => {
                self.cancel(session, asked.execution_id.as_str(), "execution").await
            }
            Call::BackgroundOutput(asked) => self.output(session, asked.task_id.as_str()).await,
            Call::BackgroundSay(asked) => self.say(session, asked).await,
            Call::FeedbackSubmit(asked) => self.feedback(session, asked).await,
            Call::AgentsList(_) => self.agents().await,
            Call::FleetList(asked) => self.fleet(asked.capability.as_ref()).await,
            Call::FleetStatus(asked) => self.fleet_status(asked.agent_id.as_ref()).await,
            other => Err(A6sError::unknown_method(other.method())),
        };
        said.map(|said| (said, None))
    }
}

impl LoopbackDoor for A6s {
    fn door(&self) -> Door {
        Door::A6s
    }

    /// Returns zero: this door accepts no bodies.
    fn body_bytes_max(&self) -> usize {
        0
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        let AdmittedRequest { head, caller, .. } = asked;
        if head.uri.path() != PATH {
            return says(StatusCode::NOT_FOUND, "This is the A6s door of Provost; its WebSocket is at /ws\n");
        }
        if head.method != Method::GET {
            let mut answer = says(StatusCode::METHOD_NOT_ALLOWED, "A WebSocket is opened with GET\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return answer;
        }
        if !can_upgrade(&head) || !has_word(&head.headers, UPGRADE, "websocket") {
            return upgrade_required("This is a WebSocket: it is opened with `Upgrade: websocket`\n");
        }
        if !has_word(&head.headers, WS_VERSION, VERSION) {
            return upgrade_required("Only version 13 of the WebSocket protocol is spoken here\n");
        }
        let mut keys = head.headers.get_all(KEY).iter();
        let accept = match (keys.next(), keys.next()) {
            (Some(key), None) => accept_key(key.as_bytes()).and_then(|it| HeaderValue::from_str(&it).ok()),
            _ => None,
        };
        let Some(accept) = accept else {
            return says(StatusCode::BAD_REQUEST, "`Sec-WebSocket-Key` must be 16 bytes in Base64\n");
        };
        match Self::speaks_as(&caller) {
            Ok(_) => {}
            Err(Rejected::Taken) => return unproven(),
            Err(_) => return closing(self.refuse()),
        }
        let mut answer = empty(StatusCode::SWITCHING_PROTOCOLS);
        let headers = answer.headers_mut();
        // Emacs looks for exactly these two headers, each alone in its line.
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(ACCEPT, accept);
        answer
    }

    fn refuse(&self) -> Answer {
        whole(StatusCode::FORBIDDEN, "application/json", r#"{"error":"Forbidden"}"#)
    }

    fn unavailable(&self, why: &str) -> Answer {
        let body = serde_json::json!({ "error": why }).to_string();
        whole(StatusCode::SERVICE_UNAVAILABLE, "application/json", body)
    }

    fn demand(&self) -> Answer {
        let text = "This token is not good, or one is needed: connect to /ws?token=..., `provost token mint` makes one\n";
        whole(StatusCode::UNAUTHORIZED, "text/plain; charset=utf-8", text)
    }

    fn takes_token_in_query(&self) -> bool {
        true
    }

    fn has_title_case(&self) -> bool {
        true
    }

    async fn upgraded(&self, connection: Upgraded, guard: Guard) {
        // This was checked before the connection was upgraded.
        if let Ok(who) = Self::speaks_as(&connection.caller) {
            session::run(self.clone(), connection, who, guard).await;
        }
    }
}

/// Returns whether a header contains this word.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let texts = headers.get_all(name);
    let mut words = texts.iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    words.any(|it| it.trim().eq_ignore_ascii_case(word))
}

/// Returns the last answer on its connection: a client that wants a WebSocket makes a new one.
fn says(status: StatusCode, text: &'static str) -> Answer {
    closing(whole(status, "text/plain; charset=utf-8", text))
}

/// Returns the answer if the name has a token, and the request has not shown it.
fn unproven() -> Answer {
    let text = format!(
        "The name {EDITOR} has a token: connect to /ws?token=..., or end that token with `provost token revoke`\n"
    );
    let mut answer = closing(whole(StatusCode::UNAUTHORIZED, "text/plain; charset=utf-8", text));
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn upgrade_required(text: &'static str) -> Answer {
    let mut answer = says(StatusCode::UPGRADE_REQUIRED, text);
    let headers = answer.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(WS_VERSION, HeaderValue::from_static(VERSION));
    answer
}
