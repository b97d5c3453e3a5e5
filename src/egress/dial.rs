//! Connects to a destination: checks the grant, resolves the name once, checks the address, and connects to that address.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ledger::{Counted, Ledger};
use super::own_ports::is_our_door;
use provost_base::limits::EGRESS_MS_MAX;
use provost_base::{Authority, Destination, Hostname, is_public};

/// The future answer to a query for a name.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Finds the addresses of a name.
pub type Resolver = Arc<dyn Fn(&str, u16) -> Resolving + Send + Sync>;

/// Returns the resolver that this machine's programs use.
pub fn system_resolver() -> Resolver {
    Arc::new(|name, port| {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    })
}

/// The reason why there is no connection. The worker may read it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "{0} is not among the hosts that this worker may reach: its configuration and the rule that allowed its run name them"
    )]
    NotGranted(String),
    #[error(
        "{0} leads to an address of this machine or its network; a grant that means it says \"{0}=ADDRESS\""
    )]
    NotPublic(Authority),
    #[error("{0} is reached through the base URL in this worker's environment only, where its key is added")]
    WithKeyOnly(Authority),
    #[error("{0} is a door of provost itself, which is never reached from a jail")]
    OwnDoor(Authority),
    #[error("{0} has no address: {1}")]
    Unresolved(Authority, io::Error),
    #[error("{0} cannot be connected to: {1}")]
    Unreachable(Authority, io::Error),
    #[error("{0} did not answer within {EGRESS_MS_MAX} ms")]
    TooLate(Authority),
}

impl Refused {
    /// Returns whether the answer would be the same at any other time.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Refused::NotGranted(_) | Refused::NotPublic(_) | Refused::OwnDoor(_) | Refused::WithKeyOnly(_)
        )
    }
}

/// Connects a run to its destinations.
pub(super) struct Dialer {
    granted: BTreeMap<Authority, Option<IpAddr>>,
    /// The hosts for which secrets are added. A worker cannot reach them in another way: with a key of its own, it
    /// could use the host in another user's account.
    for_keys: BTreeSet<Authority>,
    resolver: Resolver,
    ledger: Ledger,
}

impl Dialer {
    pub(super) fn new(hosts: &[Destination], for_keys: BTreeSet<Authority>, resolver: Resolver) -> Self {
        let granted = hosts.iter().map(|it| (it.authority.clone(), it.at)).collect();
        Self { granted, for_keys, resolver, ledger: Ledger::default() }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn is_granted(&self, to: &Authority) -> bool {
        self.granted.contains_key(to)
    }

    pub(super) fn is_for_a_key(&self, to: &Authority) -> bool {
        self.for_keys.contains(to)
    }

    /// Connects to a host that the worker names, if it is granted.
    pub(super) async fn host(&self, to: &Authority) -> Result<Counted<TcpStream>, Refused> {
        if self.is_for_a_key(to) {
            self.ledger.refuse(&to.to_string());
            return Err(Refused::WithKeyOnly(to.clone()));
        }
        self.with_key(to).await
    }

    /// Connects to a host for a request with an added secret.
    pub(super) async fn with_key(&self, to: &Authority) -> Result<Counted<TcpStream>, Refused> {
        let whole = async {
            let addresses = self.addresses(to).await?;
            self.connect(to, &to.to_string(), &addresses).await
        };
        let limit = Duration::from_millis(EGRESS_MS_MAX);
        let done = timeout(limit, whole).await.unwrap_or_else(|_| Err(Refused::TooLate(to.clone())));
        if done.as_ref().is_err_and(Refused::is_final) {
            self.ledger.refuse(&to.to_string());
        }
        done
    }

    /// Connects to a port of the loopback, in either family; the given one comes first.
    pub(super) async fn loopback(&self, first: IpAddr, port: u16) -> Result<Counted<TcpStream>, Refused> {
        let other: IpAddr = match first {
            IpAddr::V4(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            IpAddr::V6(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let to = Authority { host: Hostname::Address(first), port };
        let addresses = [first, other].map(|it| SocketAddr::new(it, port));
        self.connect(&to, &format!("loopback:{port}"), &addresses).await
    }

    /// Returns the addresses for a name. Names are resolved only here, so that the checked address is the one used.
    async fn addresses(&self, to: &Authority) -> Result<Vec<SocketAddr>, Refused> {
        let Some(pinned) = self.granted.get(to) else { return Err(Refused::NotGranted(to.to_string())) };
        let name = match (&to.host, pinned) {
            (_, Some(address)) | (Hostname::Address(address), None) => {
                return Ok(vec![SocketAddr::new(*address, to.port)]);
            }
            (Hostname::Name(name), None) => name,
        };
        let found = (self.resolver)(name, to.port).await.map_err(|e| Refused::Unresolved(to.clone(), e))?;
        let public = found.into_iter().filter(|it| is_public(it.ip()));
        // The port is the granted one, even if the resolver returns another.
        let public: Vec<SocketAddr> = public.map(|it| SocketAddr::new(it.ip(), to.port)).collect();
        if public.is_empty() { Err(Refused::NotPublic(to.clone())) } else { Ok(public) }
    }

    async fn connect(
        &self,
        to: &Authority,
        name: &str,
        addresses: &[SocketAddr],
    ) -> Result<Counted<TcpStream>, Refused> {
        let local = |it: &SocketAddr| it.ip().is_loopback() || it.ip().is_unspecified();
        if addresses.iter().any(local) && !is_of_somebody_else(to.port).await {
            return Err(Refused::OwnDoor(to.clone()));
        }
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Small requests must not wait for further data.
                    let _slower = stream.set_nodelay(true);
                    return Ok(Counted::new(stream, self.ledger.connection(name)));
                }
                Err(e) => last = e,
            }
        }
        Err(Refused::Unreachable(to.clone(), last))
    }
}

/// Returns whether a port is certainly none of the daemon's own.
async fn is_of_somebody_else(port: u16) -> bool {
    matches!(tokio::task::spawn_blocking(move || is_our_door(port)).await, Ok(Ok(false)))
}
