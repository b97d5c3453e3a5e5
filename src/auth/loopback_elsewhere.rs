//! The peer of a TCP connection within this machine, on systems that do not name it. Every check but that of the user refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::Rejected;

/// Whether this system can tell the peers.
pub const KNOWS_PEERS: bool = false;

/// A peer's end of a connection; none is ever known here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopbackPeer {
    /// The user that owns the socket.
    pub uid: u32,
    /// The socket's number.
    pub inode: u32,
}

impl LoopbackPeer {
    /// Refuses, since this system does not say which process has connected.
    ///
    /// # Errors
    /// Always [`Rejected::Gone`].
    pub fn of(_peer: SocketAddr, _us: SocketAddr) -> Result<Self, Rejected> {
        Err(Rejected::Gone)
    }

    /// Checks that the peer runs as this user.
    ///
    /// # Errors
    /// [`Rejected::OtherUser`].
    pub fn check_same_user(self, our_uid: u32) -> Result<Self, Rejected> {
        if self.uid == our_uid { Ok(self) } else { Err(Rejected::OtherUser) }
    }

    /// Refuses, since this system does not say whether the peer is a worker of the daemon's.
    ///
    /// # Errors
    /// Always [`Rejected::Gone`]: this system does not say which process has the socket.
    pub fn check_not_jailed(self) -> Result<Self, Rejected> {
        Err(Rejected::Gone)
    }
}

impl LoopbackPeer {
    /// Refuses, since this system does not say whether the peer speaks for itself.
    ///
    /// # Errors
    /// Always [`Rejected::Gone`]: this system does not say which process has the socket.
    pub fn check_not_carried(self) -> Result<Self, Rejected> {
        Err(Rejected::Gone)
    }
}

/// Returns `false`: this system does not say which programs carry connections.
pub fn carriers_are_about() -> bool {
    false
}

/// Returns no process, since this system does not say which one has a socket.
///
/// # Errors
/// None on this system, since it looks at nothing.
pub fn holders(_sockets: BTreeSet<u32>) -> std::io::Result<BTreeMap<u32, i32>> {
    Ok(BTreeMap::new())
}
