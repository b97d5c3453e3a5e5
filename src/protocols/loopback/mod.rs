//! The shell of doors over loopback HTTP: it decides who may connect, how often, and for how long.
//!
//! A door implements [`LoopbackDoor`] and is wrapped into a [`Shell`], which serves its connections. Before the
//! door sees a request, the shell checks, in this order: the connection's peer is a process of this user; `Host` is
//! a loopback name with the door's port; `Origin`, if present, is the door's own; the browser's header about the
//! sender names this door, if present; a token is valid, if shown or demanded. [`LoopbackDoor::refuse`] or
//! [`LoopbackDoor::demand`] answers a request that fails, alike for every cause; the log has the cause. If a door
//! is full, the process with the most connections gives way, and [`LoopbackDoor::unavailable`] tells it so.
//!
//! The door then gets an [`AdmittedRequest`]: the head as received, the body, which [`Body::take`] reads within the
//! door's bounds, and the [`Caller`], whose `speaks_as` makes the principal for an agent's name. It answers with an
//! [`Answer`], made by [`whole`], [`empty`] or [`stream`]. The shell adds the headers of every answer: it must not
//! be stored, sniffed or framed. It never sends CORS headers. A whole answer has a `Content-Length`.
//!
//! A request that only reads, and waits for news, ends with the token that it has shown; then
//! [`LoopbackDoor::demand`] answers it.
//!
//! A door may have a second entrance, a Unix socket for a proxy ([`Shell::serve_proxied`]): its peer must be a process of a
//! user who is named for that, the shell checks no token, and ignores what the proxy says about its own client.
//!
//! Connections use HTTP/1.1, are kept alive, and are closed after `Connection: close`. An idle connection may be closed at any
//! time to make room. A door that answers with 101 gets the connection, as [`Upgraded`], and keeps it.
#![forbid(unsafe_code)]

mod answer;
mod checks;
pub mod html;
mod process_limit;
mod upgrade;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OnceCell, Semaphore};

pub(crate) use answer::dressed;
use answer::led_on;
pub use answer::{Answer, Reply, closing, empty, foreign, stream, whole};
pub(crate) use checks::only_host;
pub use checks::{BrowserRules, PagesAt, origin};
use checks::{RequestTarget, Spellings};
use process_limit::ProcessLimit;
use upgrade::Promised;
pub use upgrade::{Upgraded, can_upgrade};

use crate::proven::while_proven;
use provost_auth::caller::Caller;
use provost_auth::line::Line;
use provost_auth::loopback::{KNOWS_PEERS, LoopbackPeer, carriers_are_about, holders};
use provost_auth::names::Names;
#[cfg(unix)]
use provost_auth::peer::PeerId;
use provost_auth::peer::line_of;
use provost_auth::{Rejected, bearer};
use provost_base::Requests;
use provost_base::limits::{
    CARRIERS_LOOK_MS, LOOPBACK_BODIES_BYTES_MAX, LOOPBACK_BODY_MS_MAX, LOOPBACK_HEAD_MS_MAX,
    LOOPBACK_READ_MS_MAX, LOOPBACK_SMALL_BODY_BYTES,
};
use provost_domain::view::GoodToken;
use provost_domain::{Door, Token};
use provost_service::Provost;
use provost_transport::accept::Guard;
use provost_transport::http::{BodyLimits, Room, Taken, Untaken, server};
use provost_transport::loopback::Accepted;
use provost_transport::write_timeout::WriteTimeout;

/// A protocol over loopback HTTP.
pub trait LoopbackDoor: Send + Sync + 'static {
    /// Returns which door it is.
    fn door(&self) -> Door;

    /// Returns the largest body that it accepts, in bytes.
    fn body_bytes_max(&self) -> usize;

    /// Answers an admitted request.
    fn answer(&self, asked: AdmittedRequest) -> impl Future<Output = Answer> + Send;

    /// Returns the answer to a request that is not admitted.
    fn refuse(&self) -> Answer;

    /// Returns the answer to a request that cannot be answered now, for this reason.
    fn unavailable(&self, why: &str) -> Answer;

    /// Returns the answer to a request without a valid token, if it shows one or must show one.
    fn demand(&self) -> Answer {
        self.refuse()
    }

    /// Returns whether a token may also be shown as `?token=`, for clients that cannot set headers.
    fn takes_token_in_query(&self) -> bool {
        false
    }

    /// Returns the names of the door, and what browsers may do there.
    fn browser_rules(&self) -> BrowserRules {
        BrowserRules::of_programs()
    }

    /// Returns whether another site may link to this path. A document there holds no private data.
    fn is_entrance(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Adds the door's own headers to each answer, also to those of the shell.
    fn dress(&self, headers: &mut HeaderMap) {
        let _ = headers;
    }

    /// Returns whether names of headers are sent as `Title-Case`, for clients that compare them letter by letter.
    fn has_title_case(&self) -> bool {
        false
    }

    /// Serves a connection that an answer of 101 has upgraded.
    fn upgraded(&self, connection: Upgraded, guard: Guard) -> impl Future<Output = ()> + Send {
        async {
            drop((connection, guard));
        }
    }
}

/// The checks before a door, with the data that they need.
pub struct Gate {
    /// The door's port.
    pub port: u16,
    /// The user whose processes may connect.
    pub uid: u32,
    /// Tells which names are free.
    pub names: Arc<Names>,
    /// Verifies tokens, and knows which agents have one. `None` at a door of no daemon: there no token is valid, and workers of any
    /// daemon may run.
    pub provost: Option<Provost>,
    /// Whether every request must show a token.
    pub demands_token: bool,
    /// Whether a process of this user may carry connections of another user.
    pub carriers: Carriers,
}

/// The text for a process that has most of the connections of a full door.
const CROWDED: &str =
    "no connection is left here, and this process has most of them, all in use; close some, and try again";

/// The text for a peer that could not be identified.
const UNKNOWN: &str =
    "the daemon cannot identify the caller at the moment, since it has too many files open; try again";

/// The text for a process whose ownership of the connection cannot be seen.
const UNSEEN: &str = "the process that asks cannot be found among those of this user: it has ended, or keeps others from looking \
                      at it (PR_SET_DUMPABLE); have an ordinary process ask";

/// The outcome of the check of a connection's peer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// A process of this user, with its socket if the system tells it.
    Admitted(Option<u32>),
    /// A proxy; the door itself must find out who its client is.
    #[cfg_attr(not(unix), expect(dead_code, reason = "where there are no Unix sockets there are no proxies"))]
    Proxy(Option<i32>),
    /// A peer at the socket for proxies that is no proxy.
    #[cfg(unix)]
    NoProxy,
    /// The process that has most of the connections of a full door.
    Crowd,
    /// The peer was refused; the log has the cause.
    Stranger,
    /// The door could not identify the peer now.
    Unknown,
}

/// The text for a peer at the socket for proxies that is no proxy.
#[cfg(unix)]
const NO_PROXY: &str = "the process that has connected runs as a user that `proxy_uids` in `[web]` does not name; the proxy has to \
                        run as one of these";

/// The most searches among all processes that a door makes at once for its peers.
const LOOKS_AT_ONCE: usize = 2;

/// An admitted request.
pub struct AdmittedRequest {
    /// Method, target, version and headers.
    pub head: Parts,
    /// The body that follows the head, not read yet.
    pub body: Body,
    /// The caller, as far as the connection and the token prove it.
    pub caller: Caller,
    /// The process id of the proxy that has forwarded it, if one has.
    pub proxy: Option<i32>,
}

/// A body that was not read yet. If the door does not take it, the server skips it.
pub struct Body {
    incoming: Incoming,
    room: Room,
}

impl Body {
    /// Reads the whole body.
    ///
    /// # Errors
    /// [`Untaken`], which the door answers in its own words, with [`closing`]: no request can follow on this connection.
    pub async fn take(self) -> Result<Taken, Untaken> {
        self.room.take(self.incoming).await
    }
}

/// A door behind its checks.
pub struct Shell<D>(Arc<Parted<D>>);

struct Parted<D> {
    door: D,
    spellings: Spellings,
    gate: Gate,
    room: Room,
    looking: Semaphore,
    crowd: ProcessLimit,
}

impl<D> Clone for Shell<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: LoopbackDoor> Shell<D> {
    /// Makes a door behind these checks.
    pub fn new(door: D, gate: Gate) -> Self {
        let room = Room::new(BodyLimits {
            most: door.body_bytes_max(),
            total: LOOPBACK_BODIES_BYTES_MAX,
            small: LOOPBACK_SMALL_BODY_BYTES,
            time: Duration::from_millis(LOOPBACK_BODY_MS_MAX),
        });
        let looking = Semaphore::new(LOOKS_AT_ONCE);
        let (spellings, crowd) = (Spellings::of(gate.port, &door.browser_rules()), ProcessLimit::new());
        Self(Arc::new(Parted { door, spellings, gate, room, looking, crowd }))
    }

    /// Serves one connection until it ends.
    pub async fn serve(self, accepted: Accepted, guard: Guard) {
        let Accepted { stream, peer, us, arriving } = accepted;
        let Some(peer) = self.peer(peer, us, &guard).await else { return };
        drop(arriving);
        self.converse(peer, stream, guard).await;
    }

    /// Serves one connection of a proxy, which runs as one of these users, until it ends.
    #[cfg(unix)]
    pub async fn serve_proxied(self, mut stream: provost_transport::Stream, guard: Guard, uids: Arc<[u32]>) {
        let door = self.0.door.door().name();
        let looked = PeerId::of(&stream).and_then(|peer| {
            if !uids.contains(&peer.uid) {
                return Err(Rejected::OtherUser);
            }
            // A process of this user is a proxy only if it runs outside of a jail.
            if peer.uid == self.0.gate.uid {
                peer.check_not_jailed()?;
            }
            Ok(peer.pid)
        });
        stream.proven();
        let peer = match looked {
            Ok(pid) => {
                guard.is_process(pid);
                Peer::Proxy(Some(pid))
            }
            Err(Rejected::Busy) => Peer::Unknown,
            Err(rejected) => {
                tracing::warn!(door, cause = rejected.cause(), "connection of a proxy refused");
                guard.is_strangers();
                Peer::NoProxy
            }
        };
        let peer = match (self.0.crowd.admits(&guard).await, peer) {
            (true, peer) => peer,
            (false, Peer::Proxy(_)) => Peer::Crowd,
            (false, _) => return,
        };
        self.converse(peer, stream, guard).await;
    }

    /// Answers the requests of a connection until it ends.
    async fn converse<S>(self, peer: Peer, stream: S, guard: Guard)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let name = self.0.door.door().name();
        let (shell, busy, promised) = (self.clone(), guard.clone(), Arc::new(Mutex::new(None)));
        // Found at most once for a connection: it takes a look at the open files of all processes.
        let line: Arc<OnceCell<Arc<Line>>> = Arc::default();
        let promise = Arc::clone(&promised);
        let service = hyper::service::service_fn(move |request| {
            // The connection of a caller that has proved nothing may be closed to make room.
            let busy = matches!(peer, Peer::Admitted(_) | Peer::Proxy(_)).then(|| busy.busy());
            let (shell, promise, line) = (shell.clone(), Arc::clone(&promise), Arc::clone(&line));
            async move {
                let (answer, promised) = shell.respond(peer, &line, request).await;
                *promise.lock().unwrap_or_else(PoisonError::into_inner) = promised;
                Ok::<_, Infallible>(answer.map(|body| body.keeping(busy)))
            }
        });
        let patient = WriteTimeout::new(stream, Duration::from_millis(LOOPBACK_READ_MS_MAX));
        let connection = server(Duration::from_millis(LOOPBACK_HEAD_MS_MAX))
            .title_case_headers(self.0.door.has_title_case())
            .serve_connection(TokioIo::new(patient), service)
            .with_upgrades();
        {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = guard.stopping() => {
                    connection.as_mut().graceful_shutdown();
                    // Requests from before the stop are still answered; the accept loop bounds how long.
                    connection.await
                }
            };
            if let Err(err) = ended {
                tracing::debug!(door = name, %err, "connection ended");
                return;
            }
        }
        let promised = promised.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = Promised::keep(promised).await {
            self.0.door.upgraded(connection, guard).await;
        }
    }

    /// Returns the process that owns this socket, with its parents; empty if that cannot be determined.
    async fn line_of(&self, socket: u32) -> Arc<Line> {
        let Ok(_turn) = self.0.looking.acquire().await else { return Arc::default() };
        let look = move || holders(BTreeSet::from([socket])).ok()?.get(&socket).map(|pid| line_of(*pid));
        let looked = tokio::task::spawn_blocking(look).await;
        looked.ok().flatten().unwrap_or_default().into()
    }

    /// Determines who has connected from `peer` to `us`; `None` for a stranger for whom there is no room.
    async fn peer(&self, peer: SocketAddr, us: SocketAddr, guard: &Guard) -> Option<Peer> {
        let door = self.0.door.door().name();
        let socket = match self.0.gate.admit(peer, us, &self.0.looking, guard).await {
            Ok(socket) => socket,
            Err(rejected) => {
                tracing::warn!(door, cause = rejected.cause(), "connection refused");
                if rejected == Rejected::Busy {
                    return Some(Peer::Unknown);
                }
                guard.is_strangers();
                return self.0.crowd.admits(guard).await.then_some(Peer::Stranger);
            }
        };
        if self.0.crowd.admits(guard).await {
            return Some(Peer::Admitted(socket));
        }
        tracing::warn!(door, cause = "its process has too many", "connection refused");
        Some(Peer::Crowd)
    }

    /// Returns the answer to a request that cannot be answered now, for this reason.
    fn turned_away(&self, why: &str) -> Response<Reply> {
        let mut answer = self.0.door.unavailable(why);
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        self.dressed(closing(answer))
    }

    /// Adds the headers of every answer, and those of this door.
    fn dressed(&self, answer: Answer) -> Answer {
        let mut answer = dressed(answer);
        self.0.door.dress(answer.headers_mut());
        answer
    }

    /// Redirects to the same target at the door's own name.
    fn led_on(&self, head: &Parts) -> Answer {
        let target = head.uri.path_and_query().map_or("/", |it| it.as_str());
        led_on(&self.0.spellings.at_its_name(target))
    }

    /// Returns the answer to a request that the door must not get.
    fn not_admitted(&self, peer: Peer, head: &Parts) -> Option<Response<Reply>> {
        let door = &self.0.door;
        let admitted = match peer {
            #[cfg(unix)]
            Peer::NoProxy => {
                let mut answer = door.unavailable(NO_PROXY);
                *answer.status_mut() = StatusCode::FORBIDDEN;
                return Some(self.dressed(closing(answer)));
            }
            Peer::Admitted(_) | Peer::Proxy(_) | Peer::Crowd | Peer::Unknown => {
                self.0.spellings.check(head, door.is_entrance(head.uri.path())).inspect_err(|why| {
                    tracing::warn!(door = door.door().name(), cause = why, "request refused");
                })
            }
            Peer::Stranger => Err("the peer was refused"),
        };
        match (admitted, peer) {
            (Err(_), _) => Some(self.dressed(closing(door.refuse()))),
            (Ok(RequestTarget::LedOn), _) => Some(self.dressed(closing(self.led_on(head)))),
            (Ok(RequestTarget::Here), Peer::Crowd) => Some(self.turned_away(CROWDED)),
            (Ok(RequestTarget::Here), Peer::Unknown) => Some(self.turned_away(UNKNOWN)),
            (Ok(RequestTarget::Here), _) => None,
        }
    }

    /// Returns the answer, and the upgrade of the connection if the answer is 101.
    async fn respond(
        &self,
        peer: Peer,
        line: &OnceCell<Arc<Line>>,
        request: Request<Incoming>,
    ) -> (Response<Reply>, Option<Promised>) {
        let door = &self.0.door;
        let (head, incoming) = request.into_parts();
        if let Some(answer) = self.not_admitted(peer, &head) {
            return (answer, None);
        }
        let query = head.uri.query().filter(|_| door.takes_token_in_query());
        let proxy = if let Peer::Proxy(pid) = peer { pid } else { None };
        let shown = match peer {
            // A visitor behind a proxy proves its identity to the door.
            Peer::Proxy(_) => Ok(None),
            _ => self.0.gate.token(&head.headers, query).await,
        };
        let token = match shown {
            Ok(token) => token,
            Err(rejected) => {
                tracing::warn!(door = door.door().name(), cause = rejected.cause(), "request refused");
                return (self.dressed(closing(unproven(door.demand()))), None);
            }
        };
        let socket = if let Peer::Admitted(socket) = peer { socket } else { None };
        let caller = Caller::peer(door.door(), Arc::clone(&self.0.gate.names)).with(token).at(socket);
        let caller = match socket {
            Some(socket) if speaks(door.door(), &head) => {
                let line = line.get_or_init(|| self.line_of(socket)).await;
                // A process that hides its open files would be taken for a person later.
                if line.is_empty() && names_itself(door.door(), &head) {
                    return (self.turned_away(UNSEEN), None);
                }
                caller.from_line(Arc::clone(line))
            }
            _ => caller,
        };
        let promised = Promised::of(&head, &caller);
        let body = Body { incoming, room: self.0.room.clone() };
        let (reads, still) = (matches!(head.method, Method::GET | Method::HEAD), caller.clone());
        let answer = door.answer(AdmittedRequest { head, body, caller, proxy });
        let answer = match reads && still.token().is_some() {
            // A request that only reads may be waiting for news. One that writes has been carried out by then.
            true => while_proven(answer, still.names(), || still.still_proven()).await.unwrap_or_else(
                |rejected| {
                    tracing::warn!(door = door.door().name(), cause = rejected.cause(), "request ended");
                    closing(unproven(door.demand()))
                },
            ),
            false => answer.await,
        };
        let answer = self.dressed(answer);
        let promised = promised.filter(|_| answer.status() == StatusCode::SWITCHING_PROTOCOLS);
        (answer, promised)
    }
}

/// Returns whether a request may speak in an agent's name; most requests only read.
fn speaks(door: Door, head: &Parts) -> bool {
    is_among(door.loopback().map(|at| at.speaks), head)
}

/// Returns whether a request names its sender.
fn names_itself(door: Door, head: &Parts) -> bool {
    is_among(door.loopback().map(|at| at.names_sender), head)
}

/// Returns whether a request is among these. At a door without a row of its own for loopback, each is: more is checked then, not less.
fn is_among(requests: Option<Requests>, head: &Parts) -> bool {
    match requests.unwrap_or(Requests::All) {
        Requests::All => true,
        Requests::Writing => !matches!(head.method, Method::GET | Method::HEAD),
        Requests::None => false,
    }
}

/// Turns an answer into one that asks the client for a token.
fn unproven(mut answer: Answer) -> Answer {
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

/// Whether programs run that carry connections of containers here, and when that was checked.
#[derive(Default)]
pub struct Carriers(Mutex<Option<(Instant, bool)>>);

impl Carriers {
    async fn are_about(&self, looking: &Semaphore) -> Result<bool, Rejected> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        // Of several simultaneous calls, only one checks.
        let _turn = looking.acquire().await.map_err(|_| Rejected::Gone)?;
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let seen = tokio::task::spawn_blocking(carriers_are_about).await.unwrap_or(true);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), seen));
        Ok(seen)
    }

    fn known(&self) -> Option<bool> {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.filter(|(at, _)| at.elapsed() < Duration::from_millis(CARRIERS_LOOK_MS)).map(|(_, seen)| seen)
    }
}

impl Gate {
    /// Checks whether the peer may use the door at all, and returns the number of its socket. If the system does
    /// not say who the peer is, tokens decide.
    ///
    /// Workers have no way to this door: their jails have no network, or one of their own. Should one find a way all the same,
    /// it is noticed: while a worker runs, or has just run, the shell looks up the owner of the socket. It does the same while
    /// a program runs that carries connections of containers here: those belong to this user only by name.
    async fn admit(
        &self,
        peer: SocketAddr,
        us: SocketAddr,
        looking: &Semaphore,
        guard: &Guard,
    ) -> Result<Option<u32>, Rejected> {
        if !KNOWS_PEERS {
            return if self.demands_token { Ok(None) } else { Err(Rejected::Gone) };
        }
        let peer = LoopbackPeer::of(peer, us)?.check_same_user(self.uid)?;
        guard.has_socket(peer.inode);
        let carried = self.carriers.are_about(looking).await?;
        let works = self.provost.as_ref().is_none_or(|it| !it.outputs().is_empty());
        if !works && !carried {
            return Ok(Some(peer.inode));
        }
        let _turn = looking.acquire().await.map_err(|_| Rejected::Gone)?;
        let check = move || {
            let peer = if carried { peer.check_not_carried()? } else { peer };
            if works { peer.check_not_jailed() } else { Ok(peer) }
        };
        let looked = tokio::task::spawn_blocking(check).await;
        looked.unwrap_or(Err(Rejected::Gone)).map(|peer| Some(peer.inode))
    }

    /// Returns the token that a request shows, in its headers or, if the door accepts it there, in its query.
    async fn token(&self, headers: &HeaderMap, query: Option<&str>) -> Result<Option<Arc<Token>>, Rejected> {
        let in_headers = bearer::shown(headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes))?;
        let shown = match bearer::shown_in_query(query.unwrap_or_default())? {
            Some(_) if in_headers.is_some() => return Err(Rejected::BadToken),
            in_query => in_query.or(in_headers),
        };
        match shown {
            None if self.demands_token => Err(Rejected::BadToken),
            None => Ok(None),
            Some(digest) => {
                let provost = self.provost.as_ref().ok_or(Rejected::BadToken)?;
                match provost.view(GoodToken(digest)).await {
                    Ok(Some(token)) => Ok(Some(token)),
                    Ok(None) | Err(_) => Err(Rejected::BadToken),
                }
            }
        }
    }
}
