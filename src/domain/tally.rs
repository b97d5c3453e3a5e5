//! How much of what is everybody's each share has.

use std::collections::BTreeMap;

use super::Share;

/// A count for each share that has something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally(BTreeMap<Share, usize>);

impl Tally {
    /// One more; what was kept before shares were is nobody's.
    pub(super) fn add(&mut self, share: Option<&Share>) {
        if let Some(share) = share {
            *self.0.entry(share.clone()).or_default() += 1;
        }
    }

    /// One less.
    pub(super) fn take(&mut self, share: Option<&Share>) {
        let Some(share) = share else { return };
        if let Some(count) = self.0.get_mut(share) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(share);
            }
        }
    }

    /// How much a share has.
    pub(super) fn of(&self, share: &Share) -> usize {
        self.0.get(share).copied().unwrap_or(0)
    }
}
