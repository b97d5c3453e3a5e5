//! Counts how much of each shared resource each share has.

use std::collections::BTreeMap;

use super::Share;

/// A count for each share that is not zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally(BTreeMap<Share, usize>);

impl Tally {
    /// Counts one more. Records from before there were shares count for none.
    pub(super) fn add(&mut self, share: Option<&Share>) {
        self.add_many(share, 1);
    }

    /// Counts `many` more.
    pub(super) fn add_many(&mut self, share: Option<&Share>, many: usize) {
        if let Some(share) = share.filter(|_| many > 0) {
            *self.0.entry(share.clone()).or_default() += many;
        }
    }

    /// Counts one less; a count does not fall below zero.
    pub(super) fn take(&mut self, share: Option<&Share>) {
        self.take_many(share, 1);
    }

    /// Counts `many` less; a count does not fall below zero.
    pub(super) fn take_many(&mut self, share: Option<&Share>, many: usize) {
        let Some(share) = share else { return };
        if let Some(count) = self.0.get_mut(share) {
            *count = count.saturating_sub(many);
            if *count == 0 {
                self.0.remove(share);
            }
        }
    }

    /// Returns the count of a share.
    pub(super) fn of(&self, share: &Share) -> usize {
        self.0.get(share).copied().unwrap_or(0)
    }
}
