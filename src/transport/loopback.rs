//! TCP on this machine alone: the same port of both loopback addresses, and of no other.
//!
//! The addresses are literals: no name is resolved, no setting says otherwise, so that a door can never be reached from
//! another machine. Who of this machine has connected is for `auth` to find out.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};

use super::accept::Listening;

/// How often a port that is free at one address is tried at the other. Two in a row that are taken are rare.
const FREE_TRIES: u32 = 16;

/// A port that listens at both addresses, where there are two.
#[derive(Debug)]
pub struct Loopback {
    v4: TcpListener,
    v6: Option<TcpListener>,
    port: u16,
}

/// A connection, and between which addresses.
#[derive(Debug)]
pub struct Accepted {
    /// The connection; what is written goes out at once.
    pub stream: TcpStream,
    /// Whoever has connected.
    pub peer: SocketAddr,
    /// The door.
    pub us: SocketAddr,
}

/// Listens at a port; 0 means any that is free. Must be called within the runtime.
///
/// # Errors
/// What the system says; `AddrInUse` when somebody listens there at one of the addresses.
pub async fn bind(port: u16) -> io::Result<Loopback> {
    let mut tries = if port == 0 { FREE_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_both(port).await {
            Err(e) if e.kind() == ErrorKind::AddrInUse && tries > 0 => {}
            done => return done,
        }
    }
}

async fn bind_both(port: u16) -> io::Result<Loopback> {
    let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = v4.local_addr()?.port();
    let v6 = match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(v6) => Some(v6),
        Err(e) if is_without_ipv6(&e) => None,
        Err(e) => return Err(e),
    };
    Ok(Loopback { v4, v6, port })
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
    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Listening for Loopback {
    type Stream = Accepted;

    async fn accept(&self) -> io::Result<Accepted> {
        let v6 = async {
            match &self.v6 {
                Some(v6) => v6.accept().await,
                None => std::future::pending().await,
            }
        };
        let (stream, peer) = tokio::select! { done = self.v4.accept() => done?, done = v6 => done? };
        stream.set_nodelay(true)?;
        let us = stream.local_addr()?;
        // The kernel brings nobody else here; if it ever did, this is where it ends.
        if [us.ip(), peer.ip()].iter().all(IpAddr::is_loopback) {
            Ok(Accepted { stream, peer, us })
        } else {
            Err(ErrorKind::ConnectionAborted.into())
        }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
