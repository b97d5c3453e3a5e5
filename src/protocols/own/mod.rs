//! Provost's own API: HTTP with JSON on a Unix socket, for the command line and the tools built on it.
//!
//! Proof is the peer: a process of this user that is not jailed. It acts as the user, or, with a header, as an
//! agent whose name nobody has reserved. Approvals are answered from a terminal that is not below any agent.
#![forbid(unsafe_code)]

mod applies;
mod asked;
mod coordinate;
mod crew;
mod hosts;
mod inbox;
mod inside;
mod jobs;
mod map;
mod permissions;
mod posts;
mod routes;
mod token;
pub mod wire;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Extension;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{mpsc, oneshot};

use super::FrontDoor;
use crate::auth::keys::KeyRing;
use crate::auth::peer::{PeerId, process_of_ours};
use crate::auth::{bearer, role};
use crate::base::AgentId;
use crate::base::limits::HOSTS_NOTED_MAX;
use crate::domain::view::{AgentPids, GoodToken};
use crate::domain::{Door, Principal, ProcessMark, Token};
use crate::service::{Base, Provost};
use crate::transport::Stream;
use crate::transport::accept::Guard;
use crate::transport::http::converse;
pub use inside::Inside;
use map::Fault;

/// How long a request's head may take; also how long a connection may be silent.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// What only the daemon as a whole can do.
pub enum Order {
    /// Read configuration, policy and keys again.
    Reload,
    /// Open the DevIt door at another address, for this run, with a secret of its own if one is given.
    Listen(std::path::PathBuf, Option<crate::base::Secret>),
    /// Stop.
    Stop,
}

/// An [`Order`] and where its outcome goes: one sentence, either way.
pub type Ordered = (Order, oneshot::Sender<Result<String, String>>);

/// The door.
#[derive(Clone)]
pub struct Own(Arc<Parts>);

/// Finds the work tree of the repository that is at a path, if one is. Blocks for as long as the disk does.
pub type Bases = Box<dyn Fn(&std::path::Path) -> Option<Base> + Send + Sync>;

/// Large bodies held at once; further ones wait for their turn.
const LARGE_BODIES_MAX: usize = 4;

struct Parts {
    provost: Provost,
    keys: Arc<KeyRing>,
    user: AgentId,
    uid: u32,
    orders: mpsc::Sender<Ordered>,
    about: Box<dyn Fn() -> wire::About + Send + Sync>,
    bases: Bases,
    large: tokio::sync::Semaphore,
    /// Processes below which agents run: what is started there is started by a model.
    hosts: Mutex<HashMap<u32, ProcessMark>>,
    dialogs: hosts::Dialogs,
}

impl Own {
    /// A door for the processes of `user`, whose `about` tells what the daemon knows of itself, and `bases` where
    /// the files of its work trees are.
    pub fn new(
        provost: Provost,
        keys: Arc<KeyRing>,
        (user, uid): (AgentId, u32),
        orders: mpsc::Sender<Ordered>,
        about: Box<dyn Fn() -> wire::About + Send + Sync>,
        bases: Bases,
    ) -> Self {
        let large = tokio::sync::Semaphore::new(LARGE_BODIES_MAX);
        let (hosts, dialogs) = (Mutex::default(), hosts::Dialogs::default());
        Self(Arc::new(Parts { provost, keys, user, uid, orders, about, bases, large, hosts, dialogs }))
    }

    /// Keeps in mind which host has called a hook. Nobody answers for a model, and what runs below its host it may have
    /// started itself.
    fn note_host(&self, hook: &PeerId) {
        let Some(host) = hook.parent() else { return };
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS_NOTED_MAX {
            hosts.retain(|pid, mark| process_of_ours(*pid) == Some(*mark));
        }
        hosts.insert(host.pid, host);
    }

    /// The processes of hosts that still run.
    fn hosts(&self) -> Vec<i32> {
        let hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let live = hosts.into_iter().filter(|(pid, mark)| process_of_ours(*pid) == Some(*mark));
        live.filter_map(|(pid, _)| i32::try_from(pid).ok()).collect()
    }

    async fn converse(self, stream: Stream, guard: Guard) {
        let peer = match PeerId::of(&stream).and_then(|peer| {
            peer.check_same_user(self.0.uid)?;
            peer.check_not_jailed()?;
            Ok(peer)
        }) {
            Ok(peer) => peer,
            Err(rejected) => {
                tracing::warn!(door = "own", cause = rejected.cause(), "connection refused");
                return;
            }
        };
        let mut stream = stream;
        stream.proven();
        guard.proven();
        let router = routes::router(self.clone()).layer(Extension(Arc::new(peer)));
        converse("own", stream, HEAD_TIME_MAX, &guard, TowerToHyperService::new(router)).await;
    }

    /// Who is asking: the user, a person at a terminal, or an agent of this user.
    async fn caller(&self, headers: &HeaderMap, peer: &PeerId) -> Result<Principal, Fault> {
        if let Some(token) = self.token(headers).await? {
            if headers
                .get(wire::AGENT_HEADER)
                .is_some_and(|name| name.as_bytes() != token.agent.as_str().as_bytes())
            {
                let message = format!("the token is {}'s, and the request is not", token.agent);
                return Err(Fault::new(StatusCode::FORBIDDEN, "reserved", message));
            }
            return Ok(role::bearer(&token, Door::Own));
        }
        if let Some(name) = headers.get(wire::AGENT_HEADER) {
            let name = name.to_str().map_err(|_| Fault::invalid("the agent's name is not plain text"))?;
            let agent = AgentId::parse(name).map_err(|err| Fault::invalid(format!("agent {err}")))?;
            if agent == self.0.user {
                return Ok(role::user(agent, false));
            }
            if role::is_reserved(&agent) || self.0.keys.is_reserved(&agent) {
                let message =
                    format!("{agent} is reserved: it has a key of its own, or belongs to the daemon");
                return Err(Fault::new(StatusCode::FORBIDDEN, "reserved", message));
            }
            return Ok(role::local_agent(agent));
        }
        let agents = self.0.provost.view(AgentPids).await.map_err(map::fault)?;
        let agents = agents.into_iter().filter_map(|pid| i32::try_from(pid).ok());
        let agents: HashSet<i32> = agents.chain(self.hosts()).collect();
        Ok(role::user(self.0.user.clone(), peer.is_at_terminal_outside(&agents)))
    }

    /// The token that a request shows.
    async fn token(&self, headers: &HeaderMap) -> Result<Option<Arc<Token>>, Fault> {
        let bad = || {
            Fault::new(StatusCode::UNAUTHORIZED, "unproven", "the token is not good")
                .hint("unset PROVOST_TOKEN, or have another one made: provost token mint AGENT")
        };
        let shown = bearer::shown(headers.get_all(AUTHORIZATION).iter().map(|it| it.as_bytes()));
        let Some(digest) = shown.map_err(|_| bad())? else { return Ok(None) };
        let token = self.0.provost.view(GoodToken(digest)).await.map_err(map::fault)?;
        token.map(Some).ok_or_else(bad)
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
