//! The record of a run's connections: the hosts, and the bytes in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use provost_base::limits::{EGRESS_NAME_LEN_MAX, EGRESS_REFUSED_MAX};

/// A destination that a run has connected to, with its totals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The destination as granted: `host:port`, or a port of the loopback.
    pub to: Box<str>,
    /// The number of connections.
    pub connections: u64,
    /// Bytes from the worker to the destination.
    pub sent: u64,
    /// Bytes from the destination to the worker.
    pub received: u64,
}

/// The connections of a run, at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// The destinations that were reached, sorted.
    pub reached: Vec<Reached>,
    /// The number of refused attempts.
    pub refused: u64,
    /// The first few destinations of refused attempts, shortened.
    pub refused_names: Vec<Box<str>>,
}

/// The counts of a destination.
#[derive(Default)]
pub(super) struct Traffic {
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// The counts of a run; at most one entry for each grant.
#[derive(Default)]
pub(super) struct Ledger {
    reached: Mutex<BTreeMap<Box<str>, Arc<Traffic>>>,
    refused: AtomicU64,
    refused_names: Mutex<BTreeSet<Box<str>>>,
}

impl Ledger {
    /// Counts a connection to a granted destination.
    pub(super) fn connection(&self, to: &str) -> Arc<Traffic> {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let traffic = reached.entry(to.into()).or_default().clone();
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        traffic
    }

    /// Counts a refused attempt. The worker has chosen the name.
    pub(super) fn refuse(&self, name: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let mut names = self.refused_names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < EGRESS_REFUSED_MAX {
            let plain = name.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' });
            names.insert(plain.take(EGRESS_NAME_LEN_MAX).collect::<String>().into());
        }
    }

    pub(super) fn used(&self) -> Used {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = reached.iter().map(|(to, traffic)| Reached {
            to: to.clone(),
            connections: traffic.connections.load(Ordering::Relaxed),
            sent: traffic.sent.load(Ordering::Relaxed),
            received: traffic.received.load(Ordering::Relaxed),
        });
        let names = self.refused_names.lock().unwrap_or_else(PoisonError::into_inner);
        Used {
            reached: rows.collect(),
            refused: self.refused.load(Ordering::Relaxed),
            refused_names: names.iter().cloned().collect(),
        }
    }
}

/// A connection to the outside whose bytes are counted.
pub(super) struct Counted<S> {
    inner: S,
    traffic: Arc<Traffic>,
}

impl<S> Counted<S> {
    pub(super) fn new(inner: S, traffic: Arc<Traffic>) -> Self {
        Self { inner, traffic }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        let read = into.filled().len() - before;
        self.traffic.received.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, from))?;
        self.traffic.sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
