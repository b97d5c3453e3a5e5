//! Heads of the journal, recorded where the owner of its file cannot change them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use provost_base::{Digest, EventSeq};

/// A point that the journal has reached. As text: `provost-anchor:1:<seq>:<mac>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Anchor {
    /// The number of the last event that it covers.
    pub seq: EventSeq,
    /// The event's link of the chain.
    pub mac: Digest,
}

const PREFIX: &str = "provost-anchor:1:";

/// The error for a text that is not an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an anchor looks like `{PREFIX}<number>:<64 hexadecimal digits>`")]
pub struct BadAnchor;

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.seq, self.mac)
    }
}

impl FromStr for Anchor {
    type Err = BadAnchor;
    fn from_str(text: &str) -> Result<Self, BadAnchor> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(BadAnchor)?;
        let (seq, mac) = rest.split_once(':').ok_or(BadAnchor)?;
        let mac = Digest::try_from(mac.to_owned()).map_err(|_| BadAnchor)?;
        Ok(Self { seq: seq.parse().map_err(|_| BadAnchor)?, mac })
    }
}

/// A second place for anchors. It is called on the writer's thread, so it must never wait.
pub trait AnchorSink: Send {
    /// Records an anchor, as well as it can.
    fn publish(&mut self, anchor: &Anchor);
}

/// Returns the system log, if one listens; it outlives the state folder and belongs to another user.
pub fn syslog_sink() -> Box<dyn AnchorSink> {
    syslog_sink_at("/dev/log")
}

/// Returns a system log that listens elsewhere.
pub fn syslog_sink_at(path: impl Into<PathBuf>) -> Box<dyn AnchorSink> {
    Box::new(syslog::Syslog::new(path.into()))
}

#[cfg(unix)]
mod syslog {
    use std::os::unix::net::UnixDatagram;
    use std::path::PathBuf;

    use super::{Anchor, AnchorSink};

    /// Facility `authpriv` (10), severity `info` (6). RFC 5424, 6.2.1.
    const PRIORITY: u8 = 10 * 8 + 6;

    pub(super) struct Syslog {
        path: PathBuf,
        socket: Option<UnixDatagram>,
    }

    impl Syslog {
        pub(super) fn new(path: PathBuf) -> Self {
            Self { path, socket: None }
        }

        /// Sends a line and never waits: a log that is full loses the line, one that is gone costs one attempt.
        fn send(&mut self, line: &str) -> std::io::Result<()> {
            if self.socket.is_none() {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                socket.connect(&self.path)?;
                self.socket = Some(socket);
            }
            let sent = self.socket.as_ref().map_or(Ok(0), |socket| socket.send(line.as_bytes()));
            match sent {
                Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
                sent => sent.map(drop),
            }
        }
    }

    impl AnchorSink for Syslog {
        fn publish(&mut self, anchor: &Anchor) {
            let line = format!("<{PRIORITY}>provost[{}]: {anchor}", std::process::id());
            if self.send(&line).is_err() && self.socket.take().is_some() {
                // The system log was restarted since the last line. This line may still be lost.
                let again = self.send(&line);
                tracing::debug!(?again, "the system log had gone");
            }
        }
    }
}

#[cfg(not(unix))]
mod syslog {
    use std::path::PathBuf;

    use super::{Anchor, AnchorSink};

    pub(super) struct Syslog;

    impl Syslog {
        pub(super) fn new(_: PathBuf) -> Self {
            Self
        }
    }

    impl AnchorSink for Syslog {
        fn publish(&mut self, _: &Anchor) {}
    }
}
