//! Checks whether a TCP port of this machine is free, by taking it for a moment.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

/// Every address at which another program can be in the way: those of this machine alone, and those of all its networks.
const ADDRESSES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
];

/// Checks whether a program of this user could listen at a port now. An address that the system lacks is not tried.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if a program has it, [`io::ErrorKind::PermissionDenied`] if this user may not have it.
pub fn port_is_free(port: u16) -> io::Result<()> {
    for address in ADDRESSES {
        match TcpListener::bind((address, port)) {
            Err(err) if matches!(err.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
                return Err(err);
            }
            // The port is free, and was released at once.
            _ => {}
        }
    }
    Ok(())
}
