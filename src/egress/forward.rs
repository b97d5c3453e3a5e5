//! A granted port: forwards a connection from inside the jail to the same port of the host's loopback.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::copy_bidirectional;

use super::Caller;

/// Copies bytes both ways until both sides are done.
pub(super) async fn forward(caller: Caller, port: u16) {
    let Caller { mut stream, place: _held, way } = caller;
    let family = stream.local_addr().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |at| at.ip());
    match way.dialer.loopback(family, port).await {
        Ok(mut outside) => {
            // A premature end concerns only the two programs.
            let _ended = copy_bidirectional(&mut stream, &mut outside).await;
        }
        Err(refused) => {
            tracing::debug!(%refused, "a granted port was not reached");
            if refused.is_final() {
                way.dialer.ledger().refuse(&format!("loopback:{port}"));
            }
            // The worker's program should see that no process listens, as it would without a jail.
            let _plain_end = stream.set_zero_linger();
        }
    }
}
