//! Connections that leave HTTP after an answer of 101, and are passed on to their door.

use std::time::Duration;

use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use provost_auth::caller::Caller;
use provost_base::limits::SOCKET_READ_MS_MAX;
use provost_transport::write_timeout::WriteTimeout;

/// A connection that belongs to the door from now on.
pub struct Upgraded {
    /// The stream; it ends if the peer does not read in time.
    pub stream: WriteTimeout<TcpStream>,
    /// The bytes after the request that were read already.
    pub first: Bytes,
    /// The caller that asked for the upgrade.
    pub caller: Caller,
}

/// Returns whether a request can be answered with 101.
pub fn can_upgrade(head: &Parts) -> bool {
    head.extensions.get::<OnUpgrade>().is_some()
}

/// A connection that the door gets once the answer is written.
pub(super) struct Promised {
    on: OnUpgrade,
    caller: Caller,
}

impl Promised {
    /// Returns the requested upgrade, if the request asks for one.
    pub(super) fn of(head: &Parts, caller: &Caller) -> Option<Self> {
        let on = head.extensions.get::<OnUpgrade>()?.clone();
        Some(Self { on, caller: caller.clone() })
    }

    /// Returns the connection, after its answer.
    pub(super) async fn keep(promised: Option<Self>) -> Option<Upgraded> {
        let Self { on, caller } = promised?;
        let parts = on.await.ok()?.downcast::<TokioIo<WriteTimeout<TcpStream>>>().ok()?;
        let stream = parts.io.into_inner().with(Duration::from_millis(SOCKET_READ_MS_MAX));
        Some(Upgraded { stream, first: parts.read_buf, caller })
    }
}
