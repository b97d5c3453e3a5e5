//! Whether a TCP port of this machine is free, tried by taking it for a moment.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

/// Every address at which another program can be in the way: of this machine alone, and of all of its networks.
const ADDRESSES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
];

/// Whether a program of this user could listen at a port now. A system without one of the addresses is not asked there.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] where a program has it, [`io::ErrorKind::PermissionDenied`] where this user may not have it.
pub fn port_is_free(port: u16) -> io::Result<()> {
    for address in ADDRESSES {
        match TcpListener::bind((address, port)) {
            Err(err) if matches!(err.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
                return Err(err);
            }
            // Taken for no longer than this.
            _ => {}
        }
    }
    Ok(())
}
