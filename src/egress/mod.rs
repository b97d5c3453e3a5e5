//! EGRESS: the only way out of a jail's network.
//!
//! A jail has a network of its own that contains only listeners, which were made inside and passed to the daemon.
//! This module answers a worker's connections to them: a granted port leads to the same port of the host's
//! loopback, and a proxy leads only to the granted hosts.
//!
//! Promises:
//! - Exact match. A host is parsed once, into one spelling; the daemon connects to the address that it has checked.
//!   A name leads to public addresses only, unless the grant names the address.
//! - Provost's own doors are never reached, regardless of the grant.
//! - A secret is added here, only to requests for its host. The worker has a token of its run in its place, and
//!   reaches that host in no other way.
//! - Only the run that was given a proxy can use it: the proxy demands the token of that run.
//! - The tokens of model calls with a secret are counted in the services' answers, which are passed on without delay.
//! - Bounded: heads, times, connections. No redirect is followed. The hosts and the amount of data are
//!   recorded at the end.
//!
//! Other modules decide what is granted (`policy`, `effects`), and make the jail (`jail`).
#![forbid(unsafe_code)]

mod auth_proxy;
mod counted;
mod dial;
mod forward;
mod http;
mod ledger;
mod meter;
mod model_call;
mod outward;
mod own_ports;
mod proxy;
mod renew;
mod token;
mod usage_scan;

use std::collections::BTreeMap;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use provost_base::limits::{EGRESS_CONNECTIONS_MAX, EGRESS_MS_MAX};
use provost_base::{Authority, Destination};
use provost_vault::{Credential, Delivery};

use auth_proxy::AuthProxy;
use dial::Dialer;
pub use dial::{Resolver, Resolving, system_resolver};
pub use ledger::{Reached, Used};
use meter::RunMeter;
pub use meter::{CallCount, Doing, Meter};
pub use outward::{Outward, OutwardAnswer, post};
pub use own_ports::is_our_door;
use proxy::Proxy;
pub use renew::renew;
use token::Token;

/// The proxy's port inside the jail, unless the grant has that port.
const PROXY_PORT: u16 = 3128;

/// The most time for connecting to a host, and for the TLS handshake.
const TIME_MAX: Duration = Duration::from_millis(EGRESS_MS_MAX);

/// The pause after the system has failed to accept a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The destinations that a run may reach.
#[derive(Clone, Default)]
pub struct Grants {
    /// Ports of the host's loopback.
    pub ports: Vec<u16>,
    /// The hosts, reached through the proxy.
    pub hosts: Vec<Destination>,
    /// The secrets; the proxy adds each of them to requests for one of the hosts.
    pub keyed: Vec<Credential>,
}

/// The service that answers at a port inside of the jail.
#[derive(Clone)]
enum Role {
    /// The host's own loopback, at the same port.
    Forward,
    /// A proxy, which leads to the granted hosts.
    Proxy(Arc<Proxy>),
    /// A single host, with a secret added.
    Keyed(Arc<AuthProxy>),
}

/// The network outlets of a run, not open yet.
pub struct Outlets {
    roles: BTreeMap<u16, Role>,
    environment: Vec<(Box<str>, String)>,
    dialer: Arc<Dialer>,
    meter: Option<Arc<RunMeter>>,
}

impl Outlets {
    /// Plans the outlets for a grant.
    ///
    /// # Errors
    /// A sentence: a secret is for a host that is not granted, or cannot be used; or the system has no randomness.
    pub fn new(grants: &Grants, resolver: Resolver) -> Result<Self, String> {
        let upstreams = grants.keyed.iter().filter_map(upstream_of).collect();
        let dialer = Arc::new(Dialer::new(&grants.hosts, upstreams, resolver));
        let mut roles: BTreeMap<u16, Role> = grants.ports.iter().map(|port| (*port, Role::Forward)).collect();
        // A program that does not use the proxy for local addresses can still reach a granted one.
        let local = grants.hosts.iter().filter(|it| it.at.is_none() && it.loopback().is_some());
        let local = local.filter(|it| !dialer.is_for_a_key(&it.authority));
        roles.extend(local.map(|it| (it.authority.port, Role::Forward)));
        let mut outlets = Self { roles, environment: Vec::new(), dialer, meter: None };
        if !grants.hosts.is_empty() {
            let token = new_token()?;
            let port = outlets.free_port();
            outlets.environment.extend(proxy_environment(&token, port));
            let proxy = Proxy::new(token, outlets.dialer.clone());
            outlets.roles.insert(port, Role::Proxy(Arc::new(proxy)));
        }
        grants.keyed.iter().try_for_each(|credential| outlets.add_key(credential))?;
        Ok(outlets)
    }

    /// Adds a port at which the daemon adds a secret to requests.
    fn add_key(&mut self, credential: &Credential) -> Result<(), String> {
        let Delivery::Proxy(by) = &credential.delivery else {
            return Err(format!("the secret `{}` is not for the proxy", credential.name));
        };
        let to = by.upstream.authority();
        if !self.dialer.is_granted(to) {
            return Err(format!(
                "the secret `{}` is for {to}, which the worker may not reach",
                credential.name
            ));
        }
        let (token, port) = (new_token()?, self.free_port());
        let url = format!("http://127.0.0.1:{port}");
        self.environment.extend(by.base_url.iter().map(|name| (name.as_str().into(), url.clone())));
        self.environment.extend(by.token.iter().map(|name| (name.as_str().into(), token.text())));
        let keyed = AuthProxy::new(credential, by, token, self.dialer.clone())?;
        self.roles.insert(port, Role::Keyed(Arc::new(keyed)));
        Ok(())
    }

    /// Counts the model calls to which a secret is added.
    pub fn metered(mut self, meter: Arc<dyn Meter>) -> Self {
        self.meter = Some(Arc::new(RunMeter::new(meter)));
        self
    }

    /// Returns the ports inside the jail, for its plan.
    pub fn ports(&self) -> Vec<u16> {
        self.roles.keys().copied().collect()
    }

    /// Returns the variables that tell a worker's programs the proxies. They hold tokens of the run, and no secret.
    pub fn environment(&self) -> &[(Box<str>, String)] {
        &self.environment
    }

    /// Answers at the jail's listeners from now on. Must be called within a runtime.
    pub fn open(self, listeners: Vec<StdListener>) -> Open {
        let way = Arc::new(RunProxy {
            dialer: self.dialer,
            meter: self.meter,
            places: Arc::new(Semaphore::new(EGRESS_CONNECTIONS_MAX)),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        for listener in listeners {
            let served = listener.local_addr().ok().and_then(|at| self.roles.get(&at.port()).cloned());
            // A listener without a role is closed.
            if let Some(role) = served {
                way.tasks.spawn(serve(way.clone(), listener, role));
            }
        }
        Open { way }
    }

    fn free_port(&self) -> u16 {
        (PROXY_PORT..u16::MAX).find(|port| !self.roles.contains_key(port)).unwrap_or(PROXY_PORT)
    }
}

fn new_token() -> Result<Token, String> {
    Token::new().map_err(|err| format!("no randomness: {err}"))
}

/// Returns the host of a secret, if it is one for the proxy.
fn upstream_of(credential: &Credential) -> Option<Authority> {
    match &credential.delivery {
        Delivery::Proxy(by) => Some(by.upstream.authority().clone()),
        Delivery::File { .. } | Delivery::Env { .. } | Delivery::Daemon => None,
    }
}

/// Returns the variables in both spellings, since programs differ in which they read. Local addresses inside need no proxy.
fn proxy_environment(token: &Token, port: u16) -> Vec<(Box<str>, String)> {
    let url = format!("http://{}:{}@127.0.0.1:{port}", token::USER, token.text());
    let names = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "https_proxy", "http_proxy"];
    let local = ["NO_PROXY", "no_proxy"].map(|name| (name.into(), "localhost,127.0.0.1,::1".to_owned()));
    names.map(|name| (name.into(), url.clone())).into_iter().chain(local).collect()
}

/// The open outlets of a run. Closed when dropped.
pub struct Open {
    way: Arc<RunProxy>,
}

impl Open {
    /// Ends every connection and returns what was reached.
    pub async fn close(self) -> Used {
        self.way.stop.cancel();
        self.way.tasks.close();
        self.way.tasks.wait().await;
        if let Some(meter) = &self.way.meter {
            meter.tell().await;
        }
        self.way.dialer.ledger().used()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.way.stop.cancel();
    }
}

/// The parts that all connections of a run share.
struct RunProxy {
    dialer: Arc<Dialer>,
    meter: Option<Arc<RunMeter>>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// A connection of a worker, with the permit that counts it.
struct Caller {
    stream: TcpStream,
    place: Arc<OwnedSemaphorePermit>,
    way: Arc<RunProxy>,
}

impl RunProxy {
    /// Runs work for a connection until it is done or the run has ended.
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            // If it is cut off, the worker that would have read the rest has gone, too.
            let _done = stop.run_until_cancelled(work).await;
        });
    }
}

async fn serve(way: Arc<RunProxy>, listener: StdListener, role: Role) {
    let ready = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    let listener = match ready {
        Ok(listener) => listener,
        Err(err) => return tracing::error!("an outlet of a jail cannot be served: {err}"),
    };
    let port = listener.local_addr().map_or(0, |at| at.port());
    let accept = async {
        loop {
            // The permit comes first, so that a crowd of connections waits in the kernel's queue, at no cost to the daemon.
            let Ok(place) = way.places.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let caller = Caller { stream, place: Arc::new(place), way: way.clone() };
                    match role.clone() {
                        Role::Forward => way.spawn(forward::forward(caller, port)),
                        Role::Proxy(proxy) => way.spawn(proxy::serve(caller, proxy)),
                        Role::Keyed(keyed) => way.spawn(auth_proxy::serve(caller, keyed)),
                    }
                }
                // There are no descriptors left, or the connection ended before it was accepted.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    let _stopped = way.stop.run_until_cancelled(accept).await;
}
