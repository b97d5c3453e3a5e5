//! TCP on this machine alone: the same port of both loopback addresses, and of no other.
//!
//! The addresses are literals: no name is resolved and no setting changes them, so that a door can never be
//! reached from another machine. `auth` finds out which process of this machine has connected.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::accept::Listening;
use provost_base::limits::{LOOPBACK_ARRIVING_MAX, LOOPBACK_WAITING_MAX};

/// How often a port that is free at one address is tried at the other. Two in a row that are taken are rare.
const FREE_TRIES: u32 = 16;

/// A port that listens at both addresses, where there are two.
#[derive(Debug)]
pub struct Loopback {
    v4: TcpListener,
    v6: Option<TcpListener>,
    port: u16,
    arriving: Arc<Semaphore>,
}

/// A connection, and between which addresses.
#[derive(Debug)]
pub struct Accepted {
    /// The connection; what is written goes out at once.
    pub stream: TcpStream,
    /// A peer that has connected.
    pub peer: SocketAddr,
    /// The address of the door to which the peer has connected.
    pub us: SocketAddr,
    /// To be dropped when it has been found out whose it is: of further ones so many are waited for.
    pub arriving: OwnedSemaphorePermit,
}

/// Listens at a port; 0 means any that is free. Must be called within the runtime.
///
/// # Errors
/// What the system says; `AddrInUse` when another process listens there at one of the addresses.
pub fn bind(port: u16) -> io::Result<Loopback> {
    let mut tries = if port == 0 { FREE_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_both(port) {
            Err(e) if e.kind() == ErrorKind::AddrInUse && tries > 0 => {}
            done => return done,
        }
    }
}

fn bind_both(port: u16) -> io::Result<Loopback> {
    let v4 = listen((Ipv4Addr::LOCALHOST, port).into())?;
    let port = v4.local_addr()?.port();
    let v6 = match listen((Ipv6Addr::LOCALHOST, port).into()) {
        Ok(v6) => Some(v6),
        Err(e) if is_without_ipv6(&e) => None,
        Err(e) => return Err(e),
    };
    Ok(Loopback { v4, v6, port, arriving: Arc::new(Semaphore::new(LOOPBACK_ARRIVING_MAX)) })
}

/// Listens at one address. A crowd may come faster than it is let in, and who finds the queue full tries again a whole
/// second later; what listens by default has a short one.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port is had again at once after a restart. Elsewhere this would share it with others.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(LOOPBACK_WAITING_MAX)
}

/// Whether an error means that this machine has no such address.
fn is_without_ipv6(error: &io::Error) -> bool {
    // `EAFNOSUPPORT` has no kind of its own.
    let unknown_family = if cfg!(windows) {
        10047
    } else if cfg!(target_os = "linux") {
        97
    } else {
        47
    };
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported)
        || error.raw_os_error() == Some(unknown_family)
}

impl Loopback {
    /// The port of both addresses.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Listening for Loopback {
    type Stream = Accepted;

    async fn accept(&mut self) -> io::Result<Accepted> {
        // The semaphore is never closed.
        let arriving = Arc::clone(&self.arriving).acquire_owned().await.map_err(io::Error::other)?;
        let v6 = async {
            match &self.v6 {
                Some(v6) => v6.accept().await,
                None => std::future::pending().await,
            }
        };
        let (stream, peer) = tokio::select! { done = self.v4.accept() => done?, done = v6 => done? };
        stream.set_nodelay(true)?;
        let us = stream.local_addr()?;
        // The kernel brings no connection from elsewhere here; if it ever did, this refuses it.
        if [us.ip(), peer.ip()].iter().all(IpAddr::is_loopback) {
            Ok(Accepted { stream, peer, us, arriving })
        } else {
            Err(ErrorKind::ConnectionAborted.into())
        }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
