//! Hooks of hosts over HTTP: `POST /hook/HOST/EVENT`, with what the host says as the body.
//!
//! Promises: the caller is the process that has connected, as the kernel says; it speaks as at the daemon's own socket, where
//! the same hook as a command would be; so many calls are worked out at once and no more, also those that were given up. Leaves
//! to the daemon what a hook means, and whether its token is good.

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

/// Where hooks are, before the host and the event.
pub const HOOK_PATH: &str = "/hook/";

/// Header with the token of a hook's settings.
pub const HOOK_TOKEN_HEADER: &str = "x-provost-hook";

/// Headers in which a host says as whom it speaks, the one that counts first.
const SPEAKERS: [&str; 3] = ["x-provost-agent", "x-wit-session", "x-claude-session-id"];

/// Calls that are worked out at once. Each has a thread or two, and a host makes a few at a time.
const CALLS_AT_ONCE: usize = 64;

/// What a hook says that is called over HTTP.
pub struct HookCall {
    /// The host and the event, as in `claude/pre-tool-use`.
    pub path: String,
    /// The agent that its address names (`?as=`).
    pub speak_as: Option<String>,
    /// The agent that the host's environment names.
    pub named: Option<String>,
    /// The token that it shows.
    pub token: String,
    /// The process that asks.
    pub process: u32,
    /// What the host says.
    pub body: Vec<u8>,
    /// Makes clients of the daemon for the caller, by the name as which it speaks; else says why it may not.
    pub clients: Arc<dyn Fn(AgentId) -> Result<Client, String> + Send + Sync>,
    /// What counts as a call that is being worked out, until the last of these goes.
    pub place: Arc<dyn Any + Send + Sync>,
}

/// Why a hook is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HookFault {
    /// Its token is none of this repository's.
    Unproven,
    /// There is no such hook.
    Unknown,
}

/// Answers hooks: JSON, or nothing. Blocking.
pub type Hooks = Arc<dyn Fn(HookCall) -> Result<String, HookFault> + Send + Sync>;

/// Hooks, and the room for them.
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

/// A header that has something in it.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}

/// The agent that the address names.
fn speak_as(head: &Parts) -> Result<Option<String>, HttpError> {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&head.uri);
    let axum::extract::Query(members) =
        query.map_err(|err| HttpError::new(StatusCode::BAD_REQUEST, err.body_text()))?;
    Ok(members.into_iter().find(|(name, _)| name == "as").map(|(_, name)| name))
}
