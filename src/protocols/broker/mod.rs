//! The git-paw broker's protocol: JSON over loopback HTTP, for agents that tell each other about their work.
//!
//! Proof is the peer: a process of this user, which speaks as the agent that it names, unless that name is
//! reserved. Promises: the answers are those of git-paw's own broker, to the letter where clients look;
//! `docs/protocols/broker.md` lists the differences. The shell around the door decides who may connect.
#![forbid(unsafe_code)]

mod line;
mod map;
mod names;
mod query;
pub mod wire;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::json;

pub use line::{log_line, sentence};
pub use map::{entry, message, read};

use super::loopback::{AdmittedRequest, Answer, Body, LoopbackDoor, closing, empty, whole};
use super::proven::while_proven;
use map::BrokerError;
use provost_auth::caller::Caller;
use provost_base::limits::{BROKER_BODY_BYTES_MAX, POLL_BYTES_MAX, POLL_WAIT_S_MAX};
use provost_base::{AgentId, PostSeq, Slug, Timestamp};
use provost_domain::command::AddressAgent;
use provost_domain::post::{slug, slug_of_branch};
use provost_domain::view::Roster;
use provost_domain::{Door, Principal};
use provost_service::{Checkouts, Letters, Provost, StoredPost};
use provost_transport::http::Untaken;
use query::Query;
use wire::{BrokerMessage, Identity, Status, WatchRequest};

/// The version of git-paw whose protocol this is. Clients look for the marker beside it.
const WIRE: &str = "0.13.0";

/// The methods and paths of all requests; `:id` stands for a name.
pub const ROUTES: [(&str, &str); 5] = [
    ("POST", "/publish"),
    ("POST", "/watch"),
    ("GET,HEAD", "/status"),
    ("GET,HEAD", "/log"),
    ("GET,HEAD", "/messages/:id"),
];

/// A work tree of the repository, with the branch that is checked out in it.
pub type Tree = (PathBuf, Option<String>);

/// Lists the present work trees of the repository. May block.
pub type Trees = Arc<dyn Fn() -> Vec<Tree> + Send + Sync>;

/// Receives the work trees that callers want watched, with their agents.
pub type Watch = Box<dyn Fn(AgentId, &Path) + Send + Sync>;

/// The door that serves git-paw's clients. Clones share everything.
#[derive(Clone)]
pub struct Broker(Arc<BrokerInner>);

struct BrokerInner {
    provost: Provost,
    identity: Identity,
    now: fn() -> Timestamp,
    started: Instant,
    trees: Trees,
    watch: Watch,
}

impl Broker {
    /// Makes a door of a repository, which clients recognise by its folder and its id.
    pub fn new(
        provost: Provost,
        (repository, repository_id): (String, String),
        now: fn() -> Timestamp,
        (trees, watch): (Trees, Watch),
    ) -> Self {
        let identity = Identity { repository, repository_id, version: env!("CARGO_PKG_VERSION") };
        Self(Arc::new(BrokerInner { provost, identity, now, started: Instant::now(), trees, watch }))
    }
}

impl LoopbackDoor for Broker {
    fn door(&self) -> Door {
        Door::Broker
    }

    fn body_bytes_max(&self) -> usize {
        BROKER_BODY_BYTES_MAX
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        let AdmittedRequest { head, body, caller, .. } = asked;
        let path = head.uri.path();
        let one = path.strip_prefix("/messages/").filter(|it| !it.is_empty() && !it.contains('/'));
        let known = if one.is_some() { "/messages/:id" } else { path };
        let Some((allowed, route)) = ROUTES.iter().find(|(_, it)| *it == known) else {
            return empty(StatusCode::NOT_FOUND);
        };
        if !allowed.split(',').any(|it| it == head.method.as_str()) {
            let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            return answer;
        }
        let query = head.uri.query().unwrap_or_default();
        let answered = match (*route, one) {
            ("/publish", _) => self.publish(&head.headers, body, &caller).await,
            ("/watch", _) => self.watch(&head.headers, body, &caller).await,
            ("/status", _) => self.status().await,
            (_, Some(name)) => self.messages(name, query, &caller).await,
            _ => self.log(query).await,
        };
        answered.unwrap_or_else(|no| no.answer())
    }

    fn refuse(&self) -> Answer {
        in_json(StatusCode::FORBIDDEN, &json!({ "error": "Forbidden" }))
    }

    fn unavailable(&self, why: &str) -> Answer {
        in_json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": why }))
    }
}

/// The reason why there is no other answer.
enum No {
    /// The request is wrong; the error has the broker's form.
    Fault(BrokerError),
    /// The request cannot be read.
    Text(StatusCode, String),
    /// The body was not received.
    Untaken(Untaken),
}

impl<T: Into<BrokerError>> From<T> for No {
    fn from(fault: T) -> Self {
        No::Fault(fault.into())
    }
}

impl No {
    fn answer(self) -> Answer {
        let text = |status, text| whole(status, "text/plain; charset=utf-8", text);
        match self {
            No::Fault(BrokerError(status, body)) => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                in_json(status, &body)
            }
            No::Text(status, what) => text(status, what),
            No::Untaken(Untaken::TooLarge) => closing(text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "Failed to buffer the request body: length limit exceeded".into(),
            )),
            No::Untaken(Untaken::TooSlow) => closing(empty(StatusCode::REQUEST_TIMEOUT)),
            No::Untaken(Untaken::BrokeOff) => closing(empty(StatusCode::BAD_REQUEST)),
        }
    }
}

type Answered = Result<Answer, No>;

fn in_json(status: StatusCode, body: &impl Serialize) -> Answer {
    // Provost's own types can always be encoded.
    whole(status, "application/json", serde_json::to_string(body).unwrap_or_default())
}

/// Returns whether a content type is JSON, in any case, with any parameters.
fn is_json(kind: &[u8]) -> bool {
    let name = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Reads a whole body of JSON, as text. The checks are made in this order: size, characters, type, emptiness.
async fn taken(headers: &HeaderMap, body: Body) -> Result<String, No> {
    let taken = body.take().await.map_err(No::Untaken)?;
    let text = String::from_utf8(taken.bytes).map_err(|err| {
        let what = format!("Request body didn't contain valid UTF-8: {}", err.utf8_error());
        No::Text(StatusCode::BAD_REQUEST, what)
    })?;
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !is_json(kind) {
        return Err(BrokerError(415, json!({ "error": "Content-Type must be application/json" })).into());
    }
    if text.is_empty() {
        return Err(BrokerError::new("request body must not be empty").into());
    }
    Ok(text)
}

/// Returns the beginning of an object whose first member is a list.
fn list(member: &str) -> Vec<u8> {
    format!("{{\"{member}\":[").into_bytes()
}

/// Completes the object with its other member.
fn listed(mut body: Vec<u8>, last_seq: u64) -> Answer {
    body.extend_from_slice(format!("],\"last_seq\":{last_seq}}}").as_bytes());
    whole(StatusCode::OK, "application/json", body)
}

/// Adds a row.
fn put_row(rows: &mut Vec<u8>, row: &impl Serialize) {
    if rows.last() != Some(&b'[') {
        rows.push(b',');
    }
    // Provost's own types can always be encoded.
    let _ = serde_json::to_writer(rows, row);
}

impl Broker {
    /// Returns the caller's principal under a name. The door refuses a name that belongs to another agent in any
    /// spelling, since all spellings are one agent, on the other doors, too.
    fn speaks_as(caller: &Caller, agent: &AgentId) -> Result<Principal, BrokerError> {
        let name = slug(agent.as_str());
        let plain = AgentId::from(&name);
        caller.speaks_just_as(plain).map_err(|why| BrokerError::reserved(agent, why))
    }

    /// Returns the work trees of the repository; they are read on a blocking thread.
    async fn trees(&self) -> Vec<Tree> {
        let trees = Arc::clone(&self.0.trees);
        tokio::task::spawn_blocking(move || trees()).await.unwrap_or_default()
    }

    /// Selects the names of agents: an agent of that name has an inbox, or its branch is checked out in a work
    /// tree.
    async fn known(&self, ids: Vec<Slug>) -> BTreeSet<Slug> {
        let letterboxes = self.0.provost.engine().inbox_index();
        let (known, strange): (BTreeSet<Slug>, BTreeSet<Slug>) =
            ids.into_iter().partition(|it| letterboxes.has(it));
        if strange.is_empty() {
            return known;
        }
        let here = self.trees().await.into_iter().filter_map(|(_, branch)| slug_of_branch(&branch?));
        known.into_iter().chain(here.filter(|it| strange.contains(it))).collect()
    }

    async fn publish(&self, headers: &HeaderMap, body: Body, caller: &Caller) -> Answered {
        let text = taken(headers, body).await?;
        let mut message = BrokerMessage::read(&text)
            .map_err(|err| BrokerError::new(format!("invalid message JSON: {err}")))?;
        drop(text);
        let known = self.known(names::single(map::ids(&message))).await;
        if map::names_absolute(&mut message) {
            let trees = self.trees().await.into_iter().map(|(top, _)| top);
            let root = self.0.provost.root().place().path().to_owned();
            map::from_the_top(&mut message, &Checkouts::at(trees.chain([root])))?;
        }
        let post = map::post(message, (self.0.now)(), |it| known.contains(it))?;
        let who = Self::speaks_as(caller, post.sender())?;
        if !self.0.provost.engine().repeats(&who, &post) {
            self.0.provost.engine().publish(who, post).await?;
        }
        Ok(empty(StatusCode::ACCEPTED))
    }

    async fn watch(&self, headers: &HeaderMap, body: Body, caller: &Caller) -> Answered {
        let text = taken(headers, body).await?;
        let asked: WatchRequest =
            serde_json::from_str(&text).map_err(|err| BrokerError::new(err.to_string()))?;
        let known = self.known(names::single(vec![&asked.agent_id])).await;
        if !names::is_good(&asked.agent_id, |it| known.contains(it)) {
            return Err(BrokerError::bad_id(&asked.agent_id).into());
        }
        if asked.worktree_path.is_empty() {
            return Err(BrokerError::new("worktree_path must not be empty").into());
        }
        if map::is_placeholder(&asked.worktree_path) {
            return Err(BrokerError::placeholder("worktree_path", &asked.worktree_path).into());
        }
        let agent = AgentId::parse(&asked.agent_id).map_err(|_| BrokerError::bad_id(&asked.agent_id))?;
        let trees = Arc::clone(&self.0.trees);
        let path = PathBuf::from(&asked.worktree_path);
        let look = move || {
            let path = path.canonicalize().ok()?;
            trees().into_iter().find(|(it, _)| *it == path)
        };
        let Some((path, _)) = tokio::task::spawn_blocking(look).await.ok().flatten() else {
            let detail = "`git worktree list` shows those that are";
            let error = "worktree_path is not a work tree of this repository";
            let value = asked.worktree_path;
            return Err(BrokerError(400, json!({ "detail": detail, "error": error, "value": value })).into());
        };
        let who = Self::speaks_as(caller, &agent)?;
        self.0.provost.address(&who, AddressAgent { agent: agent.clone(), cli: asked.cli.into() }).await?;
        (self.0.watch)(agent, &path);
        Ok(empty(StatusCode::ACCEPTED))
    }

    async fn status(&self) -> Answered {
        let (people, now) = self.0.provost.view(Roster).await?;
        let agents = people.iter().filter_map(|it| map::row(it, now)).collect();
        let uptime_seconds = self.0.started.elapsed().as_secs();
        let provost = self.0.identity.clone();
        Ok(in_json(StatusCode::OK, &Status { agents, git_paw: true, provost, uptime_seconds, version: WIRE }))
    }

    async fn messages(&self, name: &str, query: &str, caller: &Caller) -> Answered {
        let Ok(name) = query::decoded(name) else {
            let what = "Invalid URL: Invalid UTF-8 in `agent_id`".into();
            return Err(No::Text(StatusCode::BAD_REQUEST, what));
        };
        let query = Query::read(query)?;
        let to = names::inbox(&name).ok_or_else(|| BrokerError::new("agent_id must match [a-z0-9-_]+"))?;
        let whose = AgentId::from(&to);
        caller.reads(&whose).map_err(|why| BrokerError::reserved(&whose, why))?;
        let since = query.since()?.unwrap_or(0);
        let after = query.since_time()?;
        let numbered = query.numbered();
        let write = move |it: StoredPost, rows: &mut Vec<u8>| match numbered {
            _ if after.is_some_and(|after| it.at.seconds() <= after) => {}
            true => put_row(rows, &map::entry(it)),
            false => put_row(rows, &map::message(it.post)),
        };
        let patience = query.wait()?.map(|it| Duration::from_secs(it.min(POLL_WAIT_S_MAX)));
        let read = async {
            if let Some(patience) = patience {
                self.0.provost.letter_after(&to, PostSeq(since), patience).await;
            }
            let which = Letters::In(to, PostSeq(since));
            self.0.provost.letters_written(which, POLL_BYTES_MAX, list("messages"), write).await
        };
        // The name may become reserved meanwhile.
        let (rows, last) = while_proven(read, caller.names(), || caller.reads(&whose))
            .await
            .map_err(|why| BrokerError::reserved(&whose, why))??;
        Ok(listed(rows, last.map_or(since, |it| it.0.max(since))))
    }

    async fn log(&self, query: &str) -> Answered {
        let query = Query::read(query)?;
        // A caller without a number does not continue an earlier page, and wants the newest messages if not all fit.
        let which = query.since()?.map_or(Letters::Newest, |since| Letters::After(PostSeq(since)));
        let write = |it: StoredPost, rows: &mut Vec<u8>| put_row(rows, &map::entry(it));
        let (rows, last) =
            self.0.provost.letters_written(which, POLL_BYTES_MAX, list("entries"), write).await?;
        Ok(listed(rows, last.map_or(0, |it| it.0)))
    }
}
