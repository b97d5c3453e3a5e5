//! Hooks of hosts over HTTP: `POST /hook/HOST/EVENT`, with the host's data as the body.
//!
//! Promises: the caller is the process that has connected, according to the kernel; it speaks as it would at the
//! daemon's own socket, through the same hook as a command; the number of calls in progress has a bound, which also
//! counts calls that the host has given up. The daemon decides what a hook means, and whether its token is valid.

use std::any::Any;
use std::sync::Arc;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio::sync::Semaphore;

use super::{Clients, HttpError, named, shown, untaken_fault};
use provost_base::AgentId;
use provost_client::Client;
use provost_domain::Door;
use provost_protocols::loopback::{AdmittedRequest, Answer, closing, whole};

/// The path of hooks, before the host and the event.
pub const HOOK_PATH: &str = "/hook/";

/// Header with the token of a hook's settings.
pub const HOOK_TOKEN_HEADER: &str = "x-provost-hook";

/// The headers in which a host names the agent as which it speaks, in order of precedence.
const SPEAKERS: [&str; 3] = ["x-provost-agent", "x-wit-session", "x-claude-session-id"];

/// The most calls at once. Each has a thread or two, and a host makes a few at a time.
const CALLS_AT_ONCE: usize = 64;

/// The data of a hook that is called over HTTP.
pub struct HookCall {
    /// The host and the event, as in `claude/pre-tool-use`.
    pub path: String,
    /// The agent that its address names (`?as=`).
    pub speak_as: Option<String>,
    /// The agent that the host's environment names.
    pub named: Option<String>,
    /// The token that it shows.
    pub token: String,
    /// The process that calls.
    pub process: u32,
    /// The data that the host sends.
    pub body: Vec<u8>,
    /// Makes clients of the daemon for the caller, by the name as which it speaks; the error says why it may not.
    pub clients: Arc<dyn Fn(AgentId) -> Result<Client, String> + Send + Sync>,
    /// The permit for a call in progress, until its last clone is dropped.
    pub place: Arc<dyn Any + Send + Sync>,
}

/// The reason why a hook is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HookFault {
    /// Its token is not valid in this repository.
    Unproven,
    /// The hook does not exist.
    Unknown,
}

/// Answers hooks with JSON or an empty text. Blocking.
pub type Hooks = Arc<dyn Fn(HookCall) -> Result<String, HookFault> + Send + Sync>;

/// The hooks, and the permits for their calls.
pub(super) struct HookPlaces {
    hooks: Hooks,
    places: Arc<Semaphore>,
}

impl HookPlaces {
    pub(super) fn new(hooks: Hooks) -> Self {
        Self { hooks, places: Arc::new(Semaphore::new(CALLS_AT_ONCE)) }
    }

    pub(super) async fn answer(
        &self,
        clients: &Clients,
        asked: AdmittedRequest,
    ) -> Result<Answer, HttpError> {
        let AdmittedRequest { head, body, caller, .. } = asked;
        if head.method != Method::POST {
            return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "a hook is a POST"));
        }
        let process = caller.began_at().map(|it| it.pid).ok_or_else(|| {
            HttpError::new(StatusCode::FORBIDDEN, "the process that asks cannot be found out")
        })?;
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "too many hooks are being worked out; try again")
        })?;
        let body = match body.take().await {
            Ok(taken) => taken.bytes,
            Err(untaken) => return Ok(closing(untaken_fault(untaken).into_answer())),
        };
        let (clients, at_own) = (Arc::clone(clients), caller.as_at(Door::Own));
        let call = HookCall {
            path: head.uri.path().trim_start_matches(HOOK_PATH).to_owned(),
            speak_as: speak_as(&head)?,
            named: SPEAKERS.into_iter().find_map(|it| text(&head.headers, it)),
            token: text(&head.headers, HOOK_TOKEN_HEADER).unwrap_or_default(),
            process,
            body,
            clients: Arc::new(move |agent| {
                let who = named(&at_own, agent.as_str()).map_err(|err| err.message)?;
                Ok(clients(who, shown(&at_own)))
            }),
            place: Arc::new(place),
        };
        let hooks = Arc::clone(&self.hooks);
        // A hook reads files, and may parse them.
        let answered = tokio::task::spawn_blocking(move || hooks(call)).await;
        match answered {
            Ok(Ok(said)) => Ok(whole(StatusCode::OK, "application/json", said)),
            Ok(Err(HookFault::Unproven)) => {
                let help = "the hook shows no token of this repository: provost hook install claude";
                Err(HttpError::new(StatusCode::FORBIDDEN, help))
            }
            Ok(Err(HookFault::Unknown)) => {
                Err(HttpError::new(StatusCode::NOT_FOUND, "there is no such hook"))
            }
            Err(_) => {
                Err(HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "the hook could not be worked out"))
            }
        }
    }
}

/// Returns the value of a header, unless it is empty.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}

/// Returns the agent that the address names.
fn speak_as(head: &Parts) -> Result<Option<String>, HttpError> {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&head.uri);
    let axum::extract::Query(members) =
        query.map_err(|err| HttpError::new(StatusCode::BAD_REQUEST, err.body_text()))?;
    Ok(members.into_iter().find(|(name, _)| name == "as").map(|(_, name)| name))
}
