//! The page for people: it shows in a browser, over loopback HTTP, what agents do and what they need from the user.
//!
//! Promises: the page has no right of its own, and changes state only by a request that a passkey has signed, which
//! it passes on to the own API (`words.rs`); a document holds no data of the repository, since other sites may link
//! to it, and its script fetches the data; all texts of agents are shown as text; the page loads nothing from
//! another host. Over a proxy, data of the repository is shown only to a browser in which a passkey has signed in,
//! or which was invited (`session.rs`). The shell decides who may connect (`protocols::loopback`), `view` decides
//! what is shown, and the own API knows and decides the rest.
#![forbid(unsafe_code)]

mod assets;
mod beside;
mod document;
mod events;
mod headers;
pub mod hub;
mod query;
mod rows;
mod session;
mod stream;
mod words;

use std::sync::Arc;

use hyper::header::{HOST, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use provost_api::wire;
use provost_auth::caller::Caller;
use provost_auth::role;
use provost_base::limits::{WEB_BODY_BYTES_MAX, WEB_STREAMS_MAX};
use provost_base::{AgentId, Digest};
use provost_client::{Client, ClientError};
use provost_domain::{Door, Principal};
use provost_engine::Engine;
use provost_protocols::event_streams::EventStreams;
use provost_protocols::loopback::{
    AdmittedRequest, Answer, BrowserRules, LoopbackDoor, PagesAt, closing, origin, whole,
};
use provost_protocols::own::{InProcessApi, StatusAndBody};
use query::Query;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The name as which the page reads if no token names another.
const READER: &str = role::PAGE;

/// Makes a client that speaks to the daemon as this principal, for this process, with this token if the browser has shown one.
pub type Clients = Arc<dyn Fn(Principal, Option<Digest>, Option<i32>) -> Client + Send + Sync>;

/// The content type that lets a browser treat an answer only as JSON.
const JSON: &str = "application/json";

/// The place where browsers find the page, with the conditions for reading there.
#[derive(Clone, Debug)]
pub enum PageAddress {
    /// On this machine, by these names at this port.
    Here {
        /// The names; the page calls itself by the first.
        names: Vec<String>,
        /// The door's port.
        port: u16,
        /// Whether a passkey must sign in before anything is read.
        signs_in: bool,
    },
    /// At these origins of a proxy: reading needs a session.
    Elsewhere {
        /// The scheme, host and port of each.
        origins: Vec<String>,
    },
}

impl PageAddress {
    /// Returns the origins of the page.
    fn origins(&self) -> Vec<String> {
        match self {
            Self::Here { names, port, .. } => names.iter().map(|name| origin(name, *port)).collect(),
            Self::Elsewhere { origins } => origins.clone(),
        }
    }

    /// Returns whether reading needs a session.
    fn signs_in(&self) -> bool {
        match self {
            Self::Here { signs_in, .. } => *signs_in,
            Self::Elsewhere { .. } => true,
        }
    }
}

/// The parts of the page apart from its place.
#[derive(Clone)]
pub struct PageParts {
    /// Makes the clients that ask the daemon.
    pub clients: Clients,
    /// The own API, which signs browsers in.
    pub api: InProcessApi,
    /// The engine, whose events the streams follow.
    pub engine: Engine,
    /// The token that ends the streams.
    pub stop: CancellationToken,
}

/// The door for browsers.
pub struct Web {
    clients: Clients,
    api: InProcessApi,
    engine: Engine,
    place: PageAddress,
    streams: EventStreams,
    /// The permits for streams of signed-in browsers.
    signed_in: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The reason why there is no answer: a status, and the text for the page.
struct WebError {
    status: StatusCode,
    body: wire::ErrorBody,
}

impl WebError {
    fn new(status: StatusCode, error: &str, message: impl Into<String>) -> Self {
        let body = wire::ErrorBody { error: error.into(), message: message.into(), hint: None, data: None };
        Self { status, body }
    }

    fn not_there() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_there", "there is nothing at this address")
    }

    fn into_answer(self) -> Answer {
        let text = serde_json::to_string(&self.body).unwrap_or_default();
        whole(self.status, JSON, text)
    }
}

impl From<StatusAndBody> for WebError {
    fn from((status, body): StatusAndBody) -> Self {
        Self { status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), body }
    }
}

impl From<ClientError> for WebError {
    fn from(err: ClientError) -> Self {
        match err {
            ClientError::Refused { status, fault } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
                Self { status, body: fault }
            }
            err => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", err.to_string()),
        }
    }
}

impl Web {
    /// Builds a door at this place from these parts.
    pub fn new(place: PageAddress, parts: PageParts) -> Self {
        let PageParts { clients, api, engine, stop } = parts;
        let signed_in = Arc::new(Semaphore::new(WEB_STREAMS_MAX));
        Self { clients, api, engine, place, streams: stream::streams(), signed_in, stop }
    }

    async fn respond(&self, asked: AdmittedRequest) -> Result<Answer, WebError> {
        let AdmittedRequest { head, body, caller, proxy } = asked;
        let at = self.origin_of(&head)?;
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return match session::is_about(head.uri.path()) {
                true => self.about_session(&head, &at, body, process_of(&caller).or(proxy)).await,
                false => self.hand_on(&head, &caller, body, (&at, proxy)).await,
            };
        }
        let path = head.uri.path();
        if let Some(name) = path.strip_prefix("/assets/") {
            return assets::answer(name).ok_or_else(WebError::not_there);
        }
        if let Some(answer) = assets::app(path) {
            return Ok(answer);
        }
        if path == document::OFFLINE_PATH {
            return Ok(whole(StatusCode::OK, "text/html; charset=utf-8", document::offline()));
        }
        if let Some(page) = document::at(path) {
            return Ok(whole(StatusCode::OK, "text/html; charset=utf-8", page));
        }
        if !is_for_scripts(path) && wants_document(&head.headers) {
            return Ok(whole(StatusCode::NOT_FOUND, "text/html; charset=utf-8", document::nothing_there()));
        }
        if path == session::PATH {
            return self.who_reads(&head, &caller, &at).await;
        }
        let reader = self.reader(&head, &at).await?;
        let query = Query::of(head.uri.query().unwrap_or_default())?;
        let client = self.client(&caller, None)?;
        if path == stream::PATH {
            return self.stream(&head, &query, client, reader).await;
        }
        let name = path.strip_prefix("/rows/").ok_or_else(WebError::not_there)?;
        let work = rows::answer(&client, name, &query, self.engine.now(), reader.sees(), None);
        let said = reader.while_good(work).await??;
        Ok(whole(StatusCode::OK, JSON, said))
    }

    /// Returns the origin of the requested page, in the daemon's spelling.
    fn origin_of(&self, head: &Parts) -> Result<String, WebError> {
        let host = head.headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let is_it = |it: &String| {
            it.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        };
        self.place.origins().into_iter().find(is_it).ok_or_else(WebError::not_there)
    }

    fn client(&self, caller: &Caller, process: Option<i32>) -> Result<Client, WebError> {
        let name = caller.agent().map_or(READER, AgentId::as_str);
        let taken = |_| {
            let message = format!(
                "the name {name}, as which the page reads, is another agent's: it has a key or a token"
            );
            let mut err = WebError::new(StatusCode::FORBIDDEN, "taken", message);
            err.body.hint = Some(format!("provost token revoke --of {name}"));
            err
        };
        let agent = AgentId::parse(name).map_err(|_| WebError::not_there())?;
        let who = caller.speaks_as(agent).map_err(taken)?;
        Ok((self.clients)(who, caller.token().map(|token| token.digest), process))
    }
}

/// Returns whether a path is requested by scripts.
fn is_for_scripts(path: &str) -> bool {
    matches!(path, session::PATH | stream::PATH) || session::is_about(path) || path.starts_with("/rows/")
}

/// Returns whether a browser window asks, which shows a document: JSON would be of no use to its reader.
fn wants_document(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    // The page's service worker also fetches for windows, and then only the accepted types tell.
    text("sec-fetch-dest") == Some("document") || text("accept").is_some_and(|it| it.contains("text/html"))
}

/// Returns the answer to a request that the page does not admit.
fn forbidden() -> Answer {
    whole(StatusCode::FORBIDDEN, JSON, r#"{"error":"Forbidden"}"#)
}

/// Returns the rules for browsers at a page of these names on this machine.
fn browser_rules(names: Vec<String>) -> BrowserRules {
    let led_on = ["127.0.0.1", "[::1]"].map(String::from).into();
    BrowserRules { names, led_on, needs_origin: true, at: PagesAt::Here }
}

/// Returns the answer to a request; `sent` says whether the request had a body.
fn finished(said: Result<Answer, WebError>, sent: bool) -> Answer {
    match said {
        Ok(answer) => answer,
        // The body may be unread in part, so no other request can follow on this connection.
        Err(err) if sent => closing(err.into_answer()),
        Err(err) => err.into_answer(),
    }
}

/// Returns the process that asks, if it was looked for and found. It counts for limits, and proves no name.
fn process_of(caller: &Caller) -> Option<i32> {
    caller.began_at().and_then(|it| i32::try_from(it.pid).ok())
}

impl LoopbackDoor for Web {
    fn door(&self) -> Door {
        Door::Web
    }

    fn body_bytes_max(&self) -> usize {
        WEB_BODY_BYTES_MAX
    }

    fn browser_rules(&self) -> BrowserRules {
        match &self.place {
            PageAddress::Here { names, .. } => browser_rules(names.clone()),
            PageAddress::Elsewhere { origins } => {
                let authority = |it: &String| it.split_once("://").map(|(_, authority)| authority.to_owned());
                let names = origins.iter().filter_map(authority).collect();
                BrowserRules { names, led_on: Vec::new(), needs_origin: true, at: PagesAt::Elsewhere }
            }
        }
    }

    fn is_entrance(&self, path: &str) -> bool {
        document::is_one(path)
    }

    fn dress(&self, headers: &mut HeaderMap) {
        headers::add(headers);
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        let sent = !matches!(asked.head.method, Method::GET | Method::HEAD);
        finished(self.respond(asked).await, sent)
    }

    fn refuse(&self) -> Answer {
        forbidden()
    }

    fn unavailable(&self, why: &str) -> Answer {
        WebError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why).into_answer()
    }
}
