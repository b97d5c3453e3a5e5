//! The log that several hosts share: one entry has all that one batch has decided, so that every other daemon can fold it.

use super::{Change, Effect, Event};
use provost_base::{DaemonId, Digest, EffectId, EntryNo, EventSeq, HostId, HostRole, TaskId, Timestamp};

/// The outcome of one batch of one daemon, at its place in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEntry {
    /// Its place.
    pub n: EntryNo,
    /// The daemon that has decided it.
    pub by: DaemonId,
    /// What its host has joined for, as the store knows it from the host's invitation: nothing that the entry says itself.
    pub role: HostRole,
    /// Its place among all entries of that daemon; by it a daemon finds out whether a commit without an answer was taken.
    pub own_n: u64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The format of its changes: one number for the whole set.
    pub format: u32,
    /// The changes that all daemons apply, in order.
    pub changes: Vec<Change>,
    /// The events of the batch.
    pub events: Vec<Event>,
    /// Effects that are owed from now on, each with the host that carries it out.
    pub effects: Vec<(EffectId, HostId, Effect)>,
    /// Its link of the chain.
    pub mac: Digest,
}

/// An event of the journal as it stands there.
#[derive(Clone, PartialEq, Debug)]
pub struct PastEvent {
    /// Its number.
    pub seq: EventSeq,
    /// The kind's name.
    pub kind: Box<str>,
    /// The event to the letter; `None` where it was pruned.
    pub body: Option<Box<str>>,
}

/// What people have answered at other hosts while this daemon did not look, as the journal has it. The rows that a start reads
/// are of after it.
#[derive(Clone, PartialEq, Debug)]
pub struct AnsweredAway {
    /// The host of this daemon.
    pub here: HostId,
    /// The last event that this daemon had seen.
    pub since: EventSeq,
    /// What was said of passkeys and answered, in order: of passkeys from the beginning, and the questions that the answers are about.
    pub events: Vec<PastEvent>,
    /// The tasks that this daemon is to begin.
    pub begins: Vec<TaskId>,
}
