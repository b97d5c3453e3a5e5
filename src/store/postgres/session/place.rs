//! The part of a database's history that a server has.

/// The database's identity and the branch of its history.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Place {
    /// The identifier that `initdb` has made.
    pub(in super::super) system: String,
    /// A number that grows by one with each promotion of a standby.
    pub(in super::super) timeline: u64,
}

impl Place {
    /// Checks whether this is an earlier part of the same database's history. Of a standby, the part is not known.
    pub(in super::super) fn is_before(&self, seen: &Self) -> bool {
        self.system == seen.system && self.timeline < seen.timeline && self.timeline > 0
    }

    /// Checks whether this is another database than the one that was seen, as a copy that was restored on another server.
    pub(in super::super) fn is_foreign(&self, seen: &Self) -> bool {
        !seen.system.is_empty() && self.system != seen.system
    }
}
