//! The page for people: what needs them and what agents do, in a browser, over loopback HTTP.
//!
//! Promises: it has no right of its own, and changes nothing but by a word that a passkey has signed, which it hands on to the
//! own API (`words.rs`); a document has nothing of the repository in it, since pages from elsewhere may lead to it, and its
//! script asks for the rest; all words of agents are shown as text; nothing is loaded from another host. Leaves to the shell
//! who may ask at all (`protocols::loopback`), to `view` what is shown, and to the own API what is known and what counts.
#![forbid(unsafe_code)]

mod assets;
mod document;
mod headers;
pub mod hub;
mod query;
mod rows;
mod stream;
mod words;

use std::sync::Arc;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use provost_api::wire;
use provost_auth::caller::Caller;
use provost_auth::role;
use provost_base::limits::WEB_BODY_BYTES_MAX;
use provost_base::{AgentId, Digest};
use provost_client::{Client, ClientError};
use provost_domain::{Door, Principal};
use provost_engine::Engine;
use provost_protocols::event_streams::EventStreams;
use provost_protocols::loopback::{AdmittedRequest, Answer, Body, LoopbackDoor, Manners, closing, whole};
use query::Query;
use tokio_util::sync::CancellationToken;

/// As whom the page reads, where no token says it.
const READER: &str = role::PAGE;

/// Makes a client that asks the daemon as this principal, with this token if it has shown one, for this process.
pub type Clients = Arc<dyn Fn(Principal, Option<Digest>, Option<i32>) -> Client + Send + Sync>;

/// Makes a browser take what it gets for nothing but JSON.
const JSON: &str = "application/json";

/// The door for browsers.
pub struct Web {
    clients: Clients,
    engine: Engine,
    names: Vec<String>,
    streams: EventStreams,
    stop: CancellationToken,
}

/// Why there is no answer: a status, and what the page says.
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
    /// A door whose page goes by the first of these names, asks the daemon through these clients, and hears of this engine's
    /// events until `stop`.
    pub fn new(names: Vec<String>, clients: Clients, engine: Engine, stop: CancellationToken) -> Self {
        Self { clients, engine, names, streams: stream::streams(), stop }
    }

    async fn respond(&self, head: &Parts, caller: &Caller, body: Body) -> Result<Answer, WebError> {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return self.hand_on(head, caller, body).await;
        }
        let path = head.uri.path();
        if let Some(name) = path.strip_prefix("/assets/") {
            return assets::answer(name).ok_or_else(WebError::not_there);
        }
        if let Some(page) = document::at(path) {
            return Ok(whole(StatusCode::OK, "text/html; charset=utf-8", page));
        }
        let query = Query::of(head.uri.query().unwrap_or_default())?;
        let client = self.client(caller, None)?;
        if path == stream::PATH {
            return self.stream(head, &query, client).await;
        }
        let name = path.strip_prefix("/rows/").ok_or_else(WebError::not_there)?;
        let said = rows::answer(&client, name, &query, self.engine.now(), None).await?;
        Ok(whole(StatusCode::OK, JSON, said))
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

/// What is said to a request that is not let in.
fn forbidden() -> Answer {
    whole(StatusCode::FORBIDDEN, JSON, r#"{"error":"Forbidden"}"#)
}

/// What browsers may do at a page of these names.
fn manners(names: Vec<String>) -> Manners {
    let led_on = ["127.0.0.1", "[::1]"].map(String::from).into();
    Manners { names, led_on, needs_origin: true }
}

impl LoopbackDoor for Web {
    fn door(&self) -> Door {
        Door::Web
    }

    fn body_bytes_max(&self) -> usize {
        WEB_BODY_BYTES_MAX
    }

    fn manners(&self) -> Manners {
        manners(self.names.clone())
    }

    fn is_entrance(&self, path: &str) -> bool {
        document::is_one(path)
    }

    fn dress(&self, headers: &mut HeaderMap) {
        headers::add(headers);
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        let AdmittedRequest { head, body, caller } = asked;
        let sent = !matches!(head.method, Method::GET | Method::HEAD);
        match self.respond(&head, &caller, body).await {
            Ok(answer) => answer,
            // What was sent may not have been read to its end, so nothing can follow it.
            Err(err) if sent => closing(err.into_answer()),
            Err(err) => err.into_answer(),
        }
    }

    fn refuse(&self) -> Answer {
        forbidden()
    }

    fn unavailable(&self, why: &str) -> Answer {
        WebError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why).into_answer()
    }
}
