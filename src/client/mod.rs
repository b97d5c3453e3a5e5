//! Talking to a running daemon: its own API over its Unix socket or named pipe, one connection for each question, or kept
//! ones for whoever asks many.
//!
//! Promises: nothing is sent before the kernel has said that the listener runs as this user, answers are bounded
//! in size and time, and every error says what happened in one sentence. Leaves starting a daemon and what to
//! say to a person to `cli`.
#![forbid(unsafe_code)]

pub mod approvals;
mod kept;
pub mod keys;
mod meet;
#[cfg(unix)]
#[cfg_attr(windows, path = "worker_windows.rs")]
pub mod worker;

use std::fmt::{Debug, Formatter, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::limits::{OWN_ANSWER_BYTES_MAX, OWN_ANSWER_MS_MAX};
use crate::base::{AgentId, Secret};
use kept::{Kept, Sender};

pub use crate::protocols::own::wire;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no daemon listens at {}", .0.display())]
    NotRunning(PathBuf),
    /// Whatever is there is not ours, so nothing was sent to it.
    #[error("{} {what}", socket.display())]
    Foreign {
        /// Where.
        socket: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The daemon speaks another version of its API.
    #[error("the daemon speaks version {0} of its API, and this program version {ours}", ours = wire::API_VERSION)]
    Version(String),
    /// The daemon said no.
    #[error("{}", fault.message)]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        fault: wire::Fault,
    },
    /// Nothing came in time.
    #[error("the daemon did not answer in time")]
    Slow,
    /// The connection broke, or the answer makes no sense.
    #[error("talking to the daemon failed: {0}")]
    Broken(String),
}

impl ClientError {
    fn broken(why: impl std::fmt::Display) -> Self {
        Self::Broken(why.to_string())
    }
}

/// A daemon in this process, and who asks it.
pub trait Inside: Send + Sync {
    /// Answers a request as it would be answered over a connection.
    fn ask(&self, request: Request<Full<Bytes>>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

    /// Whether whoever asks may still go by their name.
    fn lets_in(&self) -> bool;
}

/// Where a daemon is.
#[derive(Clone)]
enum Way {
    Socket(PathBuf),
    Inside(Arc<dyn Inside>),
}

impl Debug for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => Debug::fmt(path, f),
            Self::Inside(_) => f.write_str("inside"),
        }
    }
}

/// A daemon's address, and as whom to speak to it.
#[derive(Clone)]
pub struct Client {
    way: Way,
    agent: Option<AgentId>,
    /// What it proves itself by; not shown in logs.
    bearer: Option<HeaderValue>,
    /// The process with which ends what it takes.
    process: Option<u32>,
    /// The session of a host over HTTP with which ends what it takes.
    session: Option<Arc<str>>,
    /// Connections for the next question, where there will be one.
    kept: Option<Arc<Kept>>,
}

impl Debug for Client {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("way", &self.way).field("agent", &self.agent).finish_non_exhaustive()
    }
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident $path:literal ($($query:ty)?) -> $Answer:ty;)+) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`ClientError`].
        pub async fn $name(&self $(, query: &$query)?) -> Result<$Answer, ClientError> {
            let query: Option<Value> = None$(.or(Some(to_value::<$query>(query)?)))?;
            let wait_ms = query.as_ref().map_or(0, waiting_for);
            self.ask((Method::GET, $path, wait_ms), query, Bytes::new()).await
        }
    )+};
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident $path:literal ($($body:ty)?) -> $Answer:ty;)+) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`ClientError`].
        pub async fn $name(&self $(, body: &$body)?) -> Result<$Answer, ClientError> {
            let body: Option<Value> = None$(.or(Some(to_value::<$body>(body)?)))?;
            let wait_ms = body.as_ref().map_or(0, waiting_for);
            let body = body.map_or(Bytes::new(), |body| Bytes::from(body.to_string()));
            self.ask((Method::POST, $path, wait_ms), None, body).await
        }
    )+};
}

impl Client {
    /// A client of the daemon whose own API is at `socket`. Connects only when something is asked.
    pub fn at(socket: PathBuf) -> Self {
        Self { way: Way::Socket(socket), agent: None, bearer: None, process: None, session: None, kept: None }
    }

    /// A client of the daemon that this process is, for an agent whom it has recognised.
    pub fn inside(daemon: Arc<dyn Inside>, agent: AgentId) -> Self {
        Self {
            way: Way::Inside(daemon),
            agent: Some(agent),
            bearer: None,
            process: None,
            session: None,
            kept: None,
        }
    }

    /// The same, keeping its connections for the next question; so do all that are made of it.
    #[must_use]
    pub fn keeping_connections(self) -> Self {
        Self { kept: Some(Arc::default()), ..self }
    }

    /// The same, taking locks, claims and intents only for as long as a process of this user runs.
    #[must_use]
    pub fn bound_to(self, process: u32) -> Self {
        Self { process: Some(process), ..self }
    }

    /// The same for a session of a host over HTTP, where this process is the daemon.
    #[must_use]
    pub fn in_session(self, session: Arc<str>) -> Self {
        Self { session: Some(session), ..self }
    }

    /// Whether it is known here that whoever asks may not go by their name any more. A daemon elsewhere says so itself.
    pub fn is_shut_out(&self) -> bool {
        match &self.way {
            Way::Inside(daemon) => !daemon.lets_in(),
            Way::Socket(_) => false,
        }
    }

    /// As which agent it speaks; `None` is the user.
    pub fn agent(&self) -> Option<&AgentId> {
        self.agent.as_ref()
    }

    /// The same, showing a token; one that no header can carry is not shown.
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

    /// The same, speaking as an agent instead of as the user.
    #[must_use]
    pub fn speaking_as(self, agent: Option<AgentId>) -> Self {
        Self { agent, ..self }
    }

    questions! {
        /// The daemon itself.
        about "/about" () -> wire::About;
        /// Its tasks.
        tasks "/tasks" (wire::TasksQuery) -> wire::Tasks;
        /// One task, at once or when it changes.
        task "/task" (wire::TaskQuery) -> wire::Task;
        /// One task that the caller has asked for, at once or when it changes.
        my_task "/my-task" (wire::MyTaskQuery) -> wire::Task;
        /// All of those.
        my_tasks "/my-tasks" (wire::MyTasksQuery) -> wire::MyTasks;
        /// What a worker has said since a position.
        output "/output" (wire::OutputQuery) -> wire::Output;
        /// What waits for someone's word.
        approvals "/approvals" () -> Vec<wire::Approval>;
        /// What seals dialogs that the caller's host carries along.
        dialog_key "/dialog-key" () -> wire::DialogKey;
        /// The log, from a position.
        events "/events" (wire::EventsQuery) -> wire::Events;
        /// Agents that are known.
        agents "/agents" () -> Vec<wire::Agent>;
        /// How much of the repository's code is known.
        graph "/graph" () -> wire::Graph;
        /// Who calls a symbol.
        callers "/graph/callers" (wire::GraphQuery) -> wire::Calls;
        /// What a symbol calls.
        callees "/graph/callees" (wire::GraphQuery) -> wire::Calls;
        /// Tokens that are good.
        tokens "/tokens" () -> Vec<wire::Token>;
        /// Applies that can be undone.
        applies "/applies" () -> Vec<wire::Apply>;
        /// What a job's workers have said since a position.
        job_log "/job-log" (wire::JobLogQuery) -> wire::JobLog;
        /// Locks, and who waits for one.
        locks "/locks" (wire::Whose) -> wire::Locks;
        /// Intents.
        intents "/intents" (wire::Whose) -> Vec<wire::Intent>;
        /// Contracts.
        contracts "/contracts" (wire::ContractsQuery) -> Vec<wire::Contract>;
        /// Who works at what, as far as it concerns the caller.
        at_work "/at-work" () -> wire::AtWork;
        /// Messages between agents.
        posts "/posts" (wire::PostsQuery) -> wire::Posts;
        /// Where every agent stands.
        roster "/roster" () -> Vec<wire::RosterRow>;
        /// As whom this client speaks.
        who_am_i "/who-am-i" () -> wire::Me;
        /// Files that somebody has claimed.
        claims "/claims" (wire::ClaimsQuery) -> Vec<wire::HeldFile>;
        /// Work that is handed over to the caller, or by it.
        handoffs "/handoffs" (wire::HandoffsQuery) -> Vec<wire::HandedOver>;
        /// A picture of the screen that the caller has had taken.
        picture "/picture" (wire::PictureQuery) -> wire::Picture;
        /// Questions that nobody has answered.
        questions "/questions" () -> Vec<wire::Question>;
        /// Agents that are in each other's way.
        overlaps "/overlaps" () -> Vec<wire::Overlap>;
    }

    verbs! {
        /// Has something done.
        delegate "/delegate" (wire::Delegate) -> wire::Delegated;
        /// Has a picture of the screen taken.
        screenshot "/screenshot" (wire::Screenshot) -> wire::Delegated;
        /// Asks whether a tool of the caller's host may be used.
        ask_permission "/ask-permission" (wire::AskPermission) -> wire::Permission;
        /// Ends a task.
        cancel "/cancel-task" (wire::Cancel) -> wire::TaskState;
        /// Reports on a task, or acknowledges it.
        report "/report-task" (wire::Report) -> wire::TaskState;
        /// Answers an approval.
        answer "/answer-approval" (wire::Answer) -> wire::Answered;
        /// Answers an approval for whoever sits at the caller's host.
        host_answer "/host-answer" (wire::HostAnswer) -> wire::Answered;
        /// Takes a lock, or refreshes it.
        lock "/lock" (wire::TakeLock) -> wire::Locked;
        /// Gives a lock up.
        unlock "/unlock" (wire::Unlock) -> wire::Lock;
        /// Ends the caller's session.
        leave "/leave" (wire::Leave) -> wire::Left;
        /// Declares an intent.
        declare "/declare" (wire::Declare) -> wire::Declared;
        /// What a change would collide with.
        check_conflicts "/check-conflicts" (wire::CheckConflicts) -> wire::Conflicts;
        /// Says how an intent goes on.
        update_intent "/update-intent" (wire::UpdateIntent) -> wire::Intent;
        /// Offers a contract.
        propose "/propose-contract" (wire::Propose) -> wire::Contract;
        /// Accepts or rejects one.
        answer_contract "/answer-contract" (wire::AnswerContract) -> wire::Contract;
        /// Takes one back.
        withdraw_contract "/withdraw-contract" (wire::WithdrawContract) -> wire::Contract;
        /// Joins the crew.
        join_crew "/join-crew" (wire::JoinCrew) -> wire::Member;
        /// Says that the caller is still there.
        beat_crew "/beat-crew" () -> wire::Done;
        /// Leaves the crew.
        leave_crew "/leave-crew" (wire::LeaveCrew) -> wire::LeftCrew;
        /// Claims a file.
        claim "/claim" (wire::ClaimFile) -> wire::Claimed;
        /// Gives one back.
        release_claim "/release-claim" (wire::ReleaseClaim) -> wire::Released;
        /// Hands work over.
        offer_handoff "/offer-handoff" (wire::OfferHandoff) -> wire::HandedOver;
        /// Goes on with work that was handed over, or does not.
        answer_handoff "/answer-handoff" (wire::AnswerHandoff) -> wire::HandedOver;
        /// Writes to another agent.
        send_message "/send-message" (wire::SendMessage) -> wire::Sent;
        /// Reads the caller's inbox.
        read_inbox "/read-inbox" (wire::ReadInbox) -> wire::Inbox;
        /// Takes the next task for the caller as a worker.
        take_work "/take-work" (wire::TakeWork) -> wire::Work;
        /// Names the lead of the crew.
        appoint_lead "/appoint-lead" (wire::AppointLead) -> wire::Done;
        /// Imports events of the published server of Agent Protocol.
        import_events "/import-events" (wire::ImportEvents) -> wire::Imported;
        /// Which files have contracts or locks on them.
        concerned "/concerned" (wire::Paths) -> wire::Concerned;
        /// Compares files with the contracts in force.
        check_contracts "/check-contracts" (wire::CheckContracts) -> wire::Checked;
        /// Whether the caller may write somewhere.
        guard "/guard" (wire::Guard) -> wire::Guarded;
        /// What applying a task's changes would do.
        preview_task "/preview-task" (wire::OfTask) -> Vec<wire::Previewed>;
        /// Writes a task's changes into the workspace.
        apply_task "/apply-task" (wire::OfTask) -> wire::Applied;
        /// Brings back what was there before an apply.
        undo "/undo" (wire::Undo) -> wire::Applied;
        /// Has a token made.
        mint_token "/mint-token" (wire::MintToken) -> wire::Minted;
        /// Ends tokens.
        revoke_tokens "/revoke-tokens" (wire::RevokeTokens) -> Vec<wire::Token>;
        /// Puts something on record.
        record "/record" (wire::Record) -> wire::Done;
        /// Publishes a message to other agents.
        publish_post "/publish-post" (wire::PublishPost) -> wire::PostPublished;
        /// Begins the audit log of messages anew.
        purge_posts "/purge-posts" () -> wire::LogBegun;
        /// Gives back what was taken in the session that this client is for.
        end_session "/end-session" () -> wire::SessionEnded;
        /// Has a worker begin nothing, or begin again.
        switch_worker "/switch-worker" (wire::SwitchWorker) -> wire::WorkerSwitched;
        /// Opens the DevIt door at another address, for this run.
        listen "/listen" (wire::Listen) -> wire::Done;
        /// Takes configuration, policy and keys over anew.
        reload "/reload" () -> wire::Done;
        /// Ends the daemon.
        stop "/stop" () -> wire::Done;
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        (method, path, wait_ms): (Method, &str, u64),
        query: Option<Value>,
        body: Bytes,
    ) -> Result<A, ClientError> {
        let patience = Duration::from_millis(OWN_ANSWER_MS_MAX.saturating_add(wait_ms));
        let target = format!("{path}{}", query.map(|query| query_text(&query)).unwrap_or_default());
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
        if let Some(session) = &self.session {
            request = request.header(wire::SESSION_HEADER, &**session);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", bearer);
        }
        let request = request.body(Full::new(body)).map_err(ClientError::broken)?;
        let exchange = self.exchange(request);
        tokio::time::timeout(patience, exchange).await.map_err(|_| ClientError::Slow)?
    }

    async fn exchange<A: DeserializeOwned>(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<A, ClientError> {
        let socket = match &self.way {
            Way::Socket(socket) => socket,
            Way::Inside(daemon) => return answer(daemon.ask(request).await).await,
        };
        if let Some(kept) = &self.kept {
            while let Some(mut sender) = kept.take().await {
                match sender.try_send_request(request).await {
                    Ok(response) => return self.answered(sender, response).await,
                    // It ended before any of the question was sent: another one is asked.
                    Err(mut failed) => match failed.take_message() {
                        Some(unsent) => request = unsent,
                        None => return Err(ClientError::broken(failed.into_error())),
                    },
                }
            }
        }
        let stream = meet::connect(socket).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::broken)?;
        // Ends by itself: with the answer, or when the sender is dropped, be it with this future.
        let _driver = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(ClientError::broken)?;
        self.answered(sender, response).await
    }

    /// Reads an answer, and keeps the connection if nothing of it is left there.
    async fn answered<A: DeserializeOwned>(
        &self,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Result<A, ClientError> {
        let answer = answer(response).await;
        if let Some(kept) = &self.kept
            && matches!(answer, Ok(_) | Err(ClientError::Refused { .. }))
        {
            kept.put(sender);
        }
        answer
    }
}

async fn answer<A: DeserializeOwned, B>(response: Response<B>) -> Result<A, ClientError>
where
    B: hyper::body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = response.into_parts();
    let theirs = head.headers.get(wire::VERSION_HEADER).map(|it| String::from_utf8_lossy(it.as_bytes()));
    match theirs.as_deref() {
        Some(wire::API_VERSION) => {}
        theirs => return Err(ClientError::Version(theirs.unwrap_or("unknown").into())),
    }
    let body = Limited::new(body, OWN_ANSWER_BYTES_MAX).collect().await.map_err(ClientError::broken)?;
    let body = body.to_bytes();
    if head.status == StatusCode::OK {
        return serde_json::from_slice(&body)
            .map_err(|e| ClientError::Broken(format!("its answer is not what was expected ({e})")));
    }
    let fault = serde_json::from_slice(&body).unwrap_or_else(|_| wire::Fault {
        error: "unavailable".into(),
        message: format!("the daemon answered {}", head.status),
        hint: None,
        data: None,
    });
    Err(ClientError::Refused { status: head.status.as_u16(), fault })
}

/// How long a request asks the daemon to wait, in milliseconds.
fn waiting_for(request: &Value) -> u64 {
    request["wait_ms"].as_u64().unwrap_or(0)
}

fn to_value<T: Serialize>(it: &T) -> Result<Value, ClientError> {
    serde_json::to_value(it).map_err(ClientError::broken)
}

/// The members of an object as a query; absent ones are left out.
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
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(char::from(byte))
                }
                byte => write!(text, "%{byte:02X}").expect("a string takes everything"),
            }
        }
    }
    text
}
