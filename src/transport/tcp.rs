//! TCP at one address, which other machines may reach. Only servers for strangers listen here; `loopback` is for doors.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::accept::Listening;

/// How many connections may wait to be accepted.
const WAITING_MAX: u32 = 64;

/// An address that listens.
#[derive(Debug)]
pub struct Tcp {
    listener: TcpListener,
    at: SocketAddr,
}

/// Listens at an address; port 0 means any free one. Must be called within the runtime.
///
/// # Errors
/// The system's error.
pub fn bind(at: SocketAddr) -> io::Result<Tcp> {
    let socket = if at.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    // The port can be used again at once after a restart. On other systems this would share it with others.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(at)?;
    let listener = socket.listen(WAITING_MAX)?;
    let at = listener.local_addr()?;
    Ok(Tcp { listener, at })
}

impl Listening for Tcp {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn address(&self) -> String {
        format!("http://{}", self.at)
    }
}
