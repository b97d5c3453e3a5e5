//! TCP on this machine only: the same port at both loopback addresses, and at no other.
//!
//! The addresses are literals: no name is resolved and no setting changes them, so that a door can never be reached
//! from another machine. `auth` finds the process of this machine that has connected.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::accept::Listening;
use provost_base::limits::{LOOPBACK_ARRIVING_MAX, LOOPBACK_WAITING_MAX};

/// How often a port that is free at one address is tried at the other. It is rare that the other is taken twice in a row.
const FREE_TRIES: u32 = 16;

/// A port that listens at both addresses, if there are two.
#[derive(Debug)]
pub struct Loopback {
    v4: TcpListener,
    v6: Option<TcpListener>,
    port: u16,
    arriving: Arc<Semaphore>,
}

/// A connection with its two addresses.
#[derive(Debug)]
pub struct Accepted {
    /// The connection, which sends written data at once.
    pub stream: TcpStream,
    /// The address of the peer that has connected.
    pub peer: SocketAddr,
    /// The address of the door to which the peer has connected.
    pub us: SocketAddr,
    /// A permit that is dropped once the peer is identified: only a few connections may wait for that.
    pub arriving: OwnedSemaphorePermit,
}

/// Listens at a port; 0 means any free one. Must be called within the runtime.
///
/// # Errors
/// The system's error; `AddrInUse` when another process listens there at one of the addresses.
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

/// Listens at one address, with a long queue: a crowd may arrive faster than it is accepted, and a peer that finds
/// the queue full tries again only a second later. The default queue is short.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // The port can be used again at once after a restart. On other systems this would share it with others.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(LOOPBACK_WAITING_MAX)
}

/// Returns whether an error means that this machine has no such address.
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
    /// Returns the port, which is the same at both addresses.
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
        // The kernel delivers no connection from elsewhere here; if it ever did, this refuses it.
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
