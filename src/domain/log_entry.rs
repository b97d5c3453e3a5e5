//! The log that several hosts share. An entry has everything that one batch has decided, so that every other daemon can fold it.

use super::{Change, Effect, Event};
use provost_base::{DaemonId, Digest, EffectId, EntryNo, EventSeq, HostId, HostRole, TaskId, Timestamp};

/// The outcome of one batch of one daemon, at its place in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEntry {
    /// Its place in the log.
    pub n: EntryNo,
    /// The daemon that has decided the batch.
    pub by: DaemonId,
    /// The role of its host, from the host's invitation in the store; the entry itself does not say it.
    pub role: HostRole,
    /// Its place among all entries of that daemon, by which the daemon finds out whether a commit without an answer was taken.
    pub own_n: u64,
    /// The time, by the store's clock.
    pub at: Timestamp,
    /// The format of its changes: one number for the whole set.
    pub format: u32,
    /// The changes that all daemons apply, in order.
    pub changes: Vec<Change>,
    /// The events of the batch.
    pub events: Vec<Event>,
    /// Effects that are owed from now on, each with the host that carries it out.
    pub effects: Vec<(EffectId, HostId, Effect)>,
    /// Its link in the chain.
    pub mac: Digest,
}

/// An event of the journal as it stands there.
#[derive(Clone, PartialEq, Debug)]
pub struct PastEvent {
    /// Its number.
    pub seq: EventSeq,
    /// The name of the event's kind.
    pub kind: Box<str>,
    /// The event, unchanged; `None` if it was pruned.
    pub body: Option<Box<str>>,
}

/// The answers that people gave at other hosts while this daemon was away, as the journal has them. The rows that a
/// start reads already include them.
#[derive(Clone, PartialEq, Debug)]
pub struct AnsweredAway {
    /// The host of this daemon.
    pub here: HostId,
    /// The last event that this daemon has seen.
    pub since: EventSeq,
    /// The events about passkeys (from the beginning) and answers, in order, with the questions that the answers are about.
    pub events: Vec<PastEvent>,
    /// The tasks that this daemon should begin.
    pub begins: Vec<TaskId>,
}
