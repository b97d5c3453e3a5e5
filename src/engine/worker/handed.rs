//! The effects of this host that were handed over to be carried out, so that memory that is loaded again hands over the others.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use provost_base::{EffectId, HostId};
use provost_domain::{Change, Effect, Owed};

/// The way to those who carry effects out, and the effects that they have.
pub(in super::super) struct Handed {
    to: mpsc::UnboundedSender<(EffectId, Effect)>,
    /// Those that are still owed.
    ids: BTreeSet<EffectId>,
}

impl Handed {
    /// Begins with the effects that a start hands over.
    pub(in super::super) fn of(to: mpsc::UnboundedSender<(EffectId, Effect)>, owed: &[Owed]) -> Self {
        Self { to, ids: owed.iter().map(|it| it.id).collect() }
    }

    /// Hands an effect over that is on record.
    pub(super) fn hand(&mut self, id: EffectId, effect: Effect) {
        if self.ids.insert(id) {
            // If no receiver is left, the effect stays owed in the store, where a restart finds it.
            let _ = self.to.send((id, effect));
        }
    }

    /// Forgets effects that are settled.
    pub(super) fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::DropEffect(id) = change {
                self.ids.remove(id);
            }
        }
    }

    /// Hands over what this host owes by a state that was loaded, and what was not handed over before: another daemon, or a batch of this one whose
    /// outcome was unknown, has added it in entries that were never folded.
    pub(super) fn catch_up(&mut self, here: HostId, owed: Vec<Owed>) {
        let still: BTreeSet<_> = owed.iter().map(|it| it.id).collect();
        self.ids.retain(|it| still.contains(it));
        for it in owed.into_iter().filter(|it| it.by.host == here) {
            self.hand(it.id, it.effect);
        }
    }
}
