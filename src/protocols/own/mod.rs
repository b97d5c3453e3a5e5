//! Provost's own API: HTTP with JSON on a Unix socket, for the command line and the tools built on it.
//!
//! Proof is the peer: a process of this user that is not jailed. It acts as the user, or, with a header, as an
//! agent whose name is not reserved. A person answers approvals at a terminal that no agent has started.
#![forbid(unsafe_code)]

mod applies;
mod approvals;
mod checking;
mod coordinate;
mod cost;
mod counted;
mod crew;
mod forced;
mod graph;
mod handle;
mod health;
mod hosts;
mod hub;
mod in_process;
mod inbox;
mod jobs;
mod journal;
mod list_sync;
mod map;
mod merges;
mod metrics;
mod operate;
mod outcome;
mod passkey_ends;
mod passkeys;
mod pending;
mod permissions;
mod posts;
mod push;
mod read;
mod readiness;
mod rules;
mod search;
mod serve;
mod sign_in;
mod speaker;
mod speaking;
mod stream;
mod talk;
mod tasks;
mod ties;
mod token;
mod users;
mod verbs;
mod vouching;
mod waits;
mod words;
mod work_trees;

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap};
use tokio::sync::{mpsc, oneshot};

use super::FrontDoor;
use super::event_streams::EventStreams;
pub use hub::HubPages;
pub use in_process::{InProcessApi, VerifiedCaller};
use map::OwnError;
pub use passkeys::{Page, PasskeySetup};
use provost_agents::AgentService;
use provost_api::wire;
use provost_auth::names::{Names, is_same};
use provost_auth::peer::PeerId;
use provost_auth::web_sessions::WebSessions;
use provost_auth::{Rejected, bearer, role};
use provost_base::AgentId;
use provost_base::limits::{LOOPBACK_SPARE_MAX, OWN_LARGE_BODIES_MAX};
use provost_domain::view::{AgentPids, GoodToken};
use provost_domain::{Door, Principal, Proof, Refusal, Token};
use provost_service::{Base, Provost};
use provost_transport::Stream;
use provost_transport::accept::Guard;
use provost_transport::http::{BusyBody, converse};
pub use push::{PushTold, TellPush};
pub(crate) use readiness::NotReady;
pub use sign_in::{OpenedSession, Reading, StatusAndBody};

/// How long a peer may take to send a request's head; also how long a connection may be silent.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

pub use rules::{AboutRules, AskOtherRules, TellRules};

/// The commands that only the daemon as a whole can carry out.
pub enum DaemonCommand {
    /// Reads configuration, policy and keys again.
    Reload,
    /// Opens the DevIt door at another address, for this run, with a secret of its own if one is given.
    Listen(std::path::PathBuf, Option<provost_base::Secret>),
    /// Opens the page for people, for this run. The outcome is its address.
    OpenPage,
    /// Sends a sample to the address of this name. The outcome is the address's answer.
    TestNotice(String),
    /// Returns the public key with which browsers subscribe to their push services.
    PushKey,
    /// Checks a browser's data about its subscription.
    CheckPush {
        /// The address at which its push service accepts messages for it.
        endpoint: Box<str>,
        /// Its public key, and the authentication secret that it shares.
        keys: (Box<str>, Box<str>),
    },
    /// Ends the daemon in order, as the signal to terminate does.
    Stop,
}

/// A [`DaemonCommand`], and the sender for its outcome: one sentence, either way.
pub type Ordered = (DaemonCommand, oneshot::Sender<Result<String, String>>);

/// The door that serves Provost's own API. Clones share everything.
#[derive(Clone)]
pub struct Own(Arc<OwnInner>);

/// Finds the work tree of the repository at a path, if there is one. Blocks for as long as the disk does.
pub type Bases = Box<dyn Fn(&std::path::Path) -> Option<Base> + Send + Sync>;

/// Returns the agents of sessions whose host's process runs.
pub type SessionsThere = Arc<dyn Fn() -> BTreeSet<AgentId> + Send + Sync>;

struct OwnInner {
    provost: Provost,
    agents: AgentService,
    names: Arc<Names>,
    user: AgentId,
    uid: u32,
    orders: mpsc::Sender<Ordered>,
    about: Box<dyn Fn() -> wire::About + Send + Sync>,
    rules: AboutRules,
    /// The permit to try other rules on recorded decisions.
    replays: tokio::sync::Semaphore,
    push: TellPush,
    bases: Bases,
    large: tokio::sync::Semaphore,
    dialogs: hosts::Dialogs,
    ties: ties::Ties,
    streams: EventStreams,
    passkey_files: provost_auth::passkeys::PasskeyFiles,
    /// The pages that may ask for a passkey.
    pages: Mutex<Vec<Page>>,
    /// The addresses at which the page over all repositories may ask for one.
    hub: HubPages,
    pending: pending::Pending,
    checks: checking::JournalChecks,
    offers: push::Offers,
    /// The permit to change the list of passkeys, or to record a change in it.
    listing: tokio::sync::Semaphore,
    /// The browsers that are signed in to the page.
    sessions: WebSessions,
    /// Returns the sessions of hosts that are present.
    sessions_there: std::sync::OnceLock<SessionsThere>,
    /// The public addresses of the page, while it is open there.
    public: Mutex<Vec<String>>,
    /// The most workers that may run at a time.
    places: std::sync::OnceLock<usize>,
}

impl Own {
    /// Makes a door for the processes of `user`. `about` returns the daemon's data about itself, `rules` the rules in
    /// force, `push` the notices for browsers, and `bases` finds work trees.
    pub fn new(
        agents: AgentService,
        names: Arc<Names>,
        (user, uid): (AgentId, u32),
        orders: mpsc::Sender<Ordered>,
        (about, rules, push): (Box<dyn Fn() -> wire::About + Send + Sync>, AboutRules, TellPush),
        bases: Bases,
        passkey_setup: PasskeySetup,
    ) -> Self {
        let large = tokio::sync::Semaphore::new(OWN_LARGE_BODIES_MAX);
        let (dialogs, ties) = (hosts::Dialogs::default(), ties::Ties::default());
        let (streams, pending) = (stream::streams(), pending::Pending::default());
        let PasskeySetup { files: passkey_files, pages, hub, state } = passkey_setup;
        let sessions = sign_in::sessions(&state, agents.provost());
        Self(Arc::new(OwnInner {
            provost: agents.provost().clone(),
            agents,
            names,
            user,
            uid,
            orders,
            about,
            rules,
            replays: tokio::sync::Semaphore::new(1),
            push,
            bases,
            large,
            dialogs,
            ties,
            streams,
            passkey_files,
            pages: Mutex::new(pages),
            hub,
            pending,
            checks: checking::JournalChecks::default(),
            offers: push::Offers::default(),
            listing: tokio::sync::Semaphore::new(1),
            sessions,
            sessions_there: std::sync::OnceLock::new(),
            public: Mutex::default(),
            places: std::sync::OnceLock::new(),
        }))
    }

    /// Remembers that a host has called a hook. No process can answer for a model, since the model may have started
    /// any process below its host.
    fn note_host(&self, hook: &PeerId) {
        self.0.names.note(hook.line(), None);
    }

    async fn converse(self, stream: Stream, guard: Guard) {
        let peer = match PeerId::of(&stream).and_then(|peer| {
            peer.check_same_user(self.0.uid)?;
            peer.check_not_jailed()?;
            peer.check_seen()?;
            Ok(peer)
        }) {
            Ok(peer) => peer,
            Err(rejected) => {
                tracing::warn!(door = "own", cause = rejected.cause(), "connection refused");
                match rejected {
                    Rejected::Busy => turn_away(stream, &guard, crowded).await,
                    Rejected::Unseen => turn_away(stream, &guard, unseen).await,
                    _ => {}
                }
                return;
            }
        };
        let mut stream = stream;
        stream.proven();
        guard.is_process(peer.pid);
        if !guard.makes_room(LOOPBACK_SPARE_MAX) {
            tracing::warn!(door = "own", cause = "its process has too many", "connection refused");
            return turn_away(stream, &guard, crowded).await;
        }
        let (peer, open) = (Arc::new(peer), guard.clone());
        let service = hyper::service::service_fn(move |request| {
            // A connection with a request in progress is not closed to make room for others; an idle one is.
            let busy = open.busy();
            let answer = serve::answer(self.clone(), Arc::clone(&peer), open.clone(), request);
            async move { Ok::<_, Infallible>(answer.await.map(|body| BusyBody::new(body, busy))) }
        });
        converse("own", stream, HEAD_TIME_MAX, &guard, service).await;
    }

    /// Returns the caller: the user, a person at a terminal, or an agent of this user.
    async fn caller(&self, headers: &HeaderMap, peer: &PeerId) -> Result<VerifiedCaller, OwnError> {
        let token = self.token(headers).await?;
        let who = self.named(headers, peer, token.as_deref()).await?;
        Ok(VerifiedCaller { who: Arc::new(who), token: token.map(|it| it.digest), process: Some(peer.pid) })
    }

    async fn named(
        &self,
        headers: &HeaderMap,
        peer: &PeerId,
        token: Option<&Token>,
    ) -> Result<Principal, OwnError> {
        let mut names = headers.get_all(wire::AGENT_HEADER).iter();
        let named = match (names.next(), names.next()) {
            (_, Some(_)) => {
                return Err(OwnError::invalid("the request names several agents; it speaks as one"));
            }
            (Some(name), None) => {
                let name = std::str::from_utf8(name.as_bytes())
                    .map_err(|_| OwnError::invalid("the agent's name is not UTF-8"))?;
                Some(
                    AgentId::parse(name)
                        .map_err(|err| OwnError::invalid(format!("the agent's name {err}")))?,
                )
            }
            (None, None) => token.map(|token| token.agent.clone()),
        };
        if let Some(agent) = named {
            if token.is_none() && agent.as_str() == role::PAGE {
                return self.0.names.page(peer.line()).map_err(|why| not_ones_own(why, &agent, token));
            }
            if token.is_none() && agent == self.0.user {
                let who = role::user(agent, false);
                return Ok(who.coming_from(self.0.names.origin(peer.line())));
            }
            let who = self.0.names.local(agent.clone(), Door::Own, token, peer.line());
            return who.map_err(|why| not_ones_own(why, &agent, token));
        }
        let agents = self.0.provost.view(AgentPids).await.map_err(map::fault)?;
        let agents = agents.into_iter().filter_map(|pid| i32::try_from(pid).ok());
        let agents: HashSet<i32> = agents.chain(self.0.names.speakers()).collect();
        let is_person = peer.is_at_terminal_outside(&agents) && !self.speaks_elsewhere(peer).await;
        let who = role::user(self.0.user.clone(), is_person);
        Ok(who.coming_from(self.0.names.origin(peer.line())))
    }

    /// Checks whether a caller may read or write in a name that the request gives: the user in any, an agent in its
    /// own and in free ones. A caller without a name counts as an agent if agents have spoken.
    fn check_other(&self, who: &Principal, agent: &AgentId) -> Result<(), OwnError> {
        let is_users = who.operates();
        if is_users || is_same(who.agent(), agent) {
            return Ok(());
        }
        self.0.names.is_free(agent, Proof::PeerUid).map_err(|why| not_ones_own(why, agent, None))
    }

    /// Returns the token that a request shows.
    async fn token(&self, headers: &HeaderMap) -> Result<Option<Arc<Token>>, OwnError> {
        let shown = bearer::shown(headers.get_all(AUTHORIZATION).iter().map(|it| it.as_bytes()));
        let Some(digest) = shown.map_err(|_| bad_token())? else { return Ok(None) };
        let token = self.0.provost.view(GoodToken(digest)).await.map_err(map::fault)?;
        token.map(Some).ok_or_else(bad_token)
    }
}

fn bad_token() -> OwnError {
    OwnError::new(StatusCode::UNAUTHORIZED, "unproven", "the token is not good")
        .hint("unset PROVOST_TOKEN, or have another one made: provost token mint AGENT")
}

/// Returns the error for a peer that could not be identified, or has too many connections.
fn crowded() -> OwnError {
    let why = "too much is open at the moment to take one more connection";
    OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", why).hint("try again in a moment")
}

/// Returns the error for a peer that an agent may have started.
fn unseen() -> OwnError {
    OwnError::new(StatusCode::FORBIDDEN, "unproven", provost_auth::UNSEEN)
}

/// Answers each request of such a peer with the same error.
async fn turn_away(stream: Stream, guard: &Guard, fault: fn() -> OwnError) {
    let service = hyper::service::service_fn(move |_: hyper::Request<Incoming>| {
        ready(Ok::<_, Infallible>(serve::versioned(serve::faulty(&fault()))))
    });
    converse("own", stream, HEAD_TIME_MAX, guard, service).await;
}

/// Returns the error for a caller that may not use a name, in this door's words.
fn not_ones_own(why: Rejected, agent: &AgentId, token: Option<&Token>) -> OwnError {
    tracing::warn!(door = "own", %agent, cause = why.cause(), "request refused");
    match (why, token) {
        (Rejected::BadToken, _) => bad_token(),
        (Rejected::Taken, _) => map::fault(Refusal::NameTaken { agent: agent.clone() }),
        (Rejected::OtherHost, _) => map::fault(Refusal::NameElsewhere { agent: agent.clone() }),
        (_, Some(token)) => {
            let message = format!("the token is {}'s, and the request is not", token.agent);
            OwnError::new(StatusCode::FORBIDDEN, "reserved", message)
        }
        (_, None) => {
            let message = format!(
                "{agent} is reserved: it has a key of its own in this spelling or another one, or belongs to the daemon"
            );
            OwnError::new(StatusCode::FORBIDDEN, "reserved", message)
        }
    }
}

impl FrontDoor for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn serve(&self, stream: Stream, guard: Guard) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(self.clone().converse(stream, guard))
    }
}
