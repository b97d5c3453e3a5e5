//! The log that several hosts share: one entry has all that one batch has decided, so that every other daemon can fold it.

use super::{Change, Effect, Event};
use provost_base::{DaemonId, Digest, EffectId, EntryNo, HostId, HostRole, Timestamp};

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
