//! Agent Protocol: JSON over loopback HTTP, for agents that coordinate claims on files, tasks and hand-offs.
//!
//! Proof is the peer: a process of this user, which acts as the agent that it names, unless that name is reserved.
//! Promises: the door keeps to the protocol's documents to the letter; every answer but the page for people is
//! JSON; no data of a peer is held beyond its bounds or waited for beyond its time. The shell around the door
//! decides who may connect.
#![forbid(unsafe_code)]

mod body;
mod dashboard;
mod error;
mod events;
mod foreign;
mod ids;
mod map;
mod methods;
mod page;
mod route;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    IF_NONE_MATCH, LOCATION, REFERER,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

use super::loopback::html::CONTENT_POLICY;
use super::loopback::{AdmittedRequest, Answer, Body, LoopbackDoor, closing, empty, stream, whole};
use body::{Members, Query};
use dashboard::Folder;
use error::AgentProtocolError;
use methods::Said;
use provost_auth::caller::Caller;
use provost_base::Digest;
use provost_base::limits::{AGENT_PROTOCOL_BODY_BYTES_MAX, TIMELINE_COMMENT_EVERY_MS};
use provost_domain::Door;
use provost_domain::view::{CrewCounts, CrewCountsOut};
use provost_engine::Fanout;
use provost_service::Provost;
use provost_transport::sse::{KeepAlive, Readers};
pub use route::routes;
use route::{Found, Route};

const JSON: &str = "application/json; charset=utf-8";

/// The part of the configuration that the door shows to people.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The project's name; the name of its folder if absent.
    pub project: Option<String>,
    /// The folder of the published dashboard.
    pub dashboard: Option<PathBuf>,
}

/// The door that serves Agent Protocol. Clones share everything.
#[derive(Clone)]
pub struct AgentProtocol(Arc<Parted>);

struct Parted {
    provost: Provost,
    port: u16,
    project: String,
    /// The folder that is served as the dashboard; the plain page is served without one.
    dashboard: Option<Folder>,
    readers: Readers,
    events: Fanout<events::Rendered>,
    /// Ends the streams.
    stop: CancellationToken,
}

impl AgentProtocol {
    /// Makes the door at a port, until `stop`.
    pub fn new(provost: Provost, port: u16, shown: Shown, stop: CancellationToken) -> Self {
        let folder = provost.root().place().path().file_name();
        let named = || folder.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let project = shown.project.unwrap_or_else(named);
        let dashboard = shown.dashboard.map(Folder::at);
        let (readers, events) = (Readers::default(), Fanout::new(events::Rendered::of));
        Self(Arc::new(Parted { provost, port, project, dashboard, readers, events, stop }))
    }

    fn provost(&self) -> &Provost {
        &self.0.provost
    }

    fn port(&self) -> u16 {
        self.0.port
    }

    fn project(&self) -> &str {
        &self.0.project
    }

    async fn counts(&self) -> Result<CrewCountsOut, AgentProtocolError> {
        Ok(self.provost().view(CrewCounts).await?)
    }

    async fn respond(&self, asked: AdmittedRequest) -> Result<Answer, AgentProtocolError> {
        let AdmittedRequest { head, body, caller, .. } = asked;
        let route = match route::find(&head.method, head.uri.path())? {
            Found::Route(route) => route,
            Found::Methods(words) => {
                let mut answer = whole(StatusCode::OK, "text/html; charset=utf-8", words.clone());
                allow(answer.headers_mut(), &words);
                return Ok(answer);
            }
        };
        let query = Query::read(head.uri.query())?;
        if head.method == Method::GET || head.method == Method::HEAD {
            return self.read(&route, &query, &head, caller).await;
        }
        let members = match members(&head.headers, body).await {
            Ok(members) => members,
            // The rest of the body is not read, so no request can follow it.
            Err(fault) => return Ok(closing(in_json(fault))),
        };
        let (status, text) = self.write(route, &caller, &members, self.is_page(&head)).await?;
        Ok(whole(status, JSON, text))
    }

    async fn read(
        &self,
        route: &Route,
        query: &Query,
        head: &Parts,
        caller: Caller,
    ) -> Result<Answer, AgentProtocolError> {
        let said = match route {
            Route::Stream => return self.stream(query, head, caller),
            Route::Metrics => {
                let text = page::metrics(&self.counts().await?);
                return Ok(whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text));
            }
            Route::DashboardBare => {
                let mut answer = empty(StatusCode::MOVED_PERMANENTLY);
                answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/dashboard/"));
                return Ok(answer);
            }
            Route::Page(path) => {
                let folder =
                    self.0.dashboard.as_ref().ok_or_else(|| AgentProtocolError::not_found("Not found"))?;
                return folder.answer(path).await;
            }
            Route::Dashboard => {
                if let Some(folder) = &self.0.dashboard {
                    return folder.answer("index.html").await;
                }
                let mut answer =
                    whole(StatusCode::OK, "text/html; charset=utf-8", page::dashboard(self.project()));
                let policy = HeaderValue::from_static(CONTENT_POLICY);
                answer.headers_mut().insert("content-security-policy", policy);
                return Ok(answer);
            }
            Route::Status => self.status().await,
            Route::State => self.state().await,
            Route::Agents => self.agents().await,
            Route::Agent(id) => self.agent(id).await,
            Route::Resources => self.resources(query.one("filter").ok().flatten()).await,
            Route::Resource(path) => self.resource(path).await,
            Route::Tasks => self.tasks().await,
            Route::Task(id) => self.task(id).await,
            Route::Handoffs => self.handoffs().await,
            Route::Handoff(id) => self.handoff(id).await,
            Route::Events => events::list(self.provost(), query).await.map(|text| (StatusCode::OK, text)),
            Route::Health => self.counts().await.map(|_| (StatusCode::OK, r#"{"ok":true}"#.to_owned())),
            _ => Err(AgentProtocolError::not_found("Not found")),
        };
        let (status, text) = said?;
        Ok(tagged(&head.headers, status, text))
    }

    async fn write(&self, route: Route, caller: &Caller, body: &Members, by_page: bool) -> Said {
        match route {
            Route::Announce => self.announce(caller, body).await,
            Route::Leave(id) => self.leave(caller, &id).await,
            Route::Heartbeat(id) => self.heartbeat(caller, &id).await,
            Route::AgentStatus(id) => self.agent_status(caller, &id, body).await,
            Route::Claim => self.claim(caller, body).await,
            Route::Release => self.release(caller, body).await,
            Route::Lock => self.lock(caller, body, true).await,
            Route::Unlock => self.lock(caller, body, false).await,
            Route::NewTask => self.new_task(caller, body).await,
            Route::MoveTask(id) => self.move_task(caller, &id, body, by_page).await,
            Route::NewHandoff => self.new_handoff(caller, body).await,
            Route::Accept(id) => self.answer_handoff(caller, &id, body, true, by_page).await,
            Route::Reject(id) => self.answer_handoff(caller, &id, body, false, by_page).await,
            Route::NewEvent => self.new_event(caller, body).await,
            Route::Lead => self.appoint(body).await,
            _ => Err(AgentProtocolError::not_found("Not found")),
        }
    }

    /// Answers `GET /events/stream`. The head is sent at once, and then only events.
    fn stream(&self, query: &Query, head: &Parts, caller: Caller) -> Result<Answer, AgentProtocolError> {
        let with_ids = matches!(query.one("ids").ok().flatten(), Some("1" | "true"));
        let last = match query.one("last_event_id").ok().flatten() {
            Some(id) => Some(id),
            None => head.headers.get("last-event-id").and_then(|it| it.to_str().ok()),
        };
        let last = last.filter(|it| with_ids && !it.is_empty());
        let unknown = || AgentProtocolError::bad("Last-Event-ID is no event's id");
        let after = last.map(|id| ids::event_seq(id).ok_or_else(unknown)).transpose()?;
        let filter = events::Filter::read(query)
            .ok_or_else(|| AgentProtocolError::bad("a parameter was given several times"))?;
        if head.method == Method::HEAD {
            return Ok(whole(StatusCode::OK, "text/event-stream", ""));
        }
        let many =
            || AgentProtocolError::new(StatusCode::SERVICE_UNAVAILABLE, "as many readers as there can be");
        let comments = KeepAlive::comment(Duration::from_millis(TIMELINE_COMMENT_EVERY_MS));
        let (sender, body) = self.0.readers.enter(Some(comments)).ok_or_else(many)?;
        let reader = events::Reader { filter, with_ids, after, caller };
        events::send(self.provost(), &self.0.events, reader, sender, self.0.stop.clone());
        let mut answer = stream(body);
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        Ok(answer)
    }

    /// Returns whether a page of this door sends the request, such as the published dashboard.
    fn is_page(&self, head: &Parts) -> bool {
        let from = head
            .headers
            .get(REFERER)
            .and_then(|it| it.to_str().ok())
            .and_then(|it| it.strip_prefix("http://"));
        let Some((authority, path)) = from.and_then(|it| it.split_once('/')) else { return false };
        let ours = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{}", self.0.port));
        ours.iter().any(|it| it == authority) && (path == "dashboard" || path.starts_with("dashboard/"))
    }
}

impl LoopbackDoor for AgentProtocol {
    fn door(&self) -> Door {
        Door::AgentProtocol
    }

    fn body_bytes_max(&self) -> usize {
        AGENT_PROTOCOL_BODY_BYTES_MAX
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        self.respond(asked).await.unwrap_or_else(in_json)
    }

    fn refuse(&self) -> Answer {
        in_json(AgentProtocolError::forbidden("Forbidden"))
    }

    fn demand(&self) -> Answer {
        in_json(AgentProtocolError::unproven())
    }

    fn unavailable(&self, why: &str) -> Answer {
        in_json(AgentProtocolError::new(StatusCode::SERVICE_UNAVAILABLE, why))
    }
}

fn in_json(fault: AgentProtocolError) -> Answer {
    let mut answer = whole(fault.status, JSON, fault.body.to_string());
    if let Some(words) = fault.allow {
        allow(answer.headers_mut(), &words);
    }
    answer
}

fn allow(headers: &mut HeaderMap, words: &str) {
    if let Ok(words) = HeaderValue::from_str(words) {
        headers.insert(ALLOW, words);
    }
}

/// Reads the members of a body. As in the published server, a body whose type is not JSON counts as empty.
async fn members(headers: &HeaderMap, body: Body) -> Result<Members, AgentProtocolError> {
    let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok()).unwrap_or_default();
    let unsupported = |says: &str| AgentProtocolError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, says);
    if !matches!(text(CONTENT_ENCODING).to_ascii_lowercase().as_str(), "" | "identity") {
        return Err(unsupported("Unsupported content encoding"));
    }
    let full = text(CONTENT_TYPE).to_ascii_lowercase();
    let (kind, parameters) = full.split_once(';').unwrap_or((&full, ""));
    let charset = parameters.split(';').find_map(|it| it.trim().strip_prefix("charset="));
    let is_json = kind.trim() == "application/json";
    if is_json && charset.is_some_and(|it| !matches!(it.trim_matches('"'), "utf-8" | "utf8")) {
        return Err(unsupported("Unsupported charset"));
    }
    // The body is read even if its type is wrong, so that the connection can go on.
    let taken = body.take().await.map_err(AgentProtocolError::untaken)?;
    if is_json { Members::read(&taken.bytes) } else { Ok(Members::default()) }
}

/// Returns an answer with a tag of its content; without the content if the caller has it already.
fn tagged(asked: &HeaderMap, status: StatusCode, text: String) -> Answer {
    let digest = STANDARD_NO_PAD.encode(&Digest::of(text.as_bytes()).as_bytes()[..20]);
    let tag = format!("W/\"{:x}-{digest}\"", text.len());
    let header = |name| asked.get(name).and_then(|it: &HeaderValue| it.to_str().ok()).unwrap_or_default();
    let plain = |it: &str| it.trim().trim_start_matches("W/").to_owned();
    let known = header(IF_NONE_MATCH).split(',').any(|it| it.trim() == "*" || plain(it) == plain(&tag));
    let fresh = known && !header(CACHE_CONTROL).contains("no-cache");
    let mut answer = match fresh && status == StatusCode::OK {
        true => empty(StatusCode::NOT_MODIFIED),
        false => whole(status, JSON, text),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}
