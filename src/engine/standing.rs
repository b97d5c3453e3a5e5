//! How the store stands, for people: why it takes nothing and since when, which server has it, and when it was last heard of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_base::Timestamp;
use provost_store::ServerAt;

/// What the engine's thread tells of its store.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<OfTheStore>>);

#[derive(Default)]
struct OfTheStore {
    /// Why it takes nothing, while it does not.
    trouble: Option<Box<str>>,
    /// Since when.
    since: Timestamp,
    /// A problem that a person should know though the store still takes every write.
    note: Option<Box<str>>,
    /// Of a store that others write, too.
    shared: Option<Shared>,
}

struct Shared {
    /// When the last turn was taken.
    looked: Instant,
    server: Option<ServerAt>,
    is_unsure: bool,
}

/// How a database stands with the daemon that has its state there.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The server that the daemon last had.
    pub server: Option<ServerAt>,
    /// Since when the database takes nothing, and why; `None` while it does.
    pub away: Option<(Timestamp, Box<str>)>,
    /// Whether it is not known at present whether the last batch is stored.
    pub is_unsure: bool,
    /// How long ago the daemon last heard of everything that the database has.
    pub looked: Duration,
}

impl Trouble {
    fn of(&self) -> MutexGuard<'_, OfTheStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store takes nothing for this reason, or takes everything again.
    pub(super) fn tell(&self, why: Option<Box<str>>, now: Timestamp) {
        let mut it = self.of();
        if it.trouble.is_none() {
            it.since = now;
        }
        it.trouble = why;
    }

    pub(super) fn tell_note(&self, note: Option<Box<str>>) {
        self.of().note = note;
    }

    /// A turn was taken at a store that others write, too.
    pub(super) fn tell_turn(&self, server: Option<ServerAt>) {
        let mut it = self.of();
        let before = it.shared.take();
        let (is_unsure, known) = before.map_or((false, None), |it| (it.is_unsure, it.server));
        it.shared = Some(Shared { looked: Instant::now(), server: server.or(known), is_unsure });
    }

    /// Whether it is not known whether a batch is stored.
    pub(super) fn tell_unsure(&self, is_unsure: bool) {
        self.of().shared.iter_mut().for_each(|it| it.is_unsure = is_unsure);
    }

    pub(super) fn why(&self) -> Option<Box<str>> {
        self.of().trouble.clone()
    }

    pub(super) fn note(&self) -> Option<Box<str>> {
        self.of().note.clone()
    }

    /// `None` of a store that one daemon writes alone.
    pub(super) fn standing(&self) -> Option<Standing> {
        let it = self.of();
        let shared = it.shared.as_ref()?;
        Some(Standing {
            server: shared.server.clone(),
            away: it.trouble.clone().map(|why| (it.since, why)),
            is_unsure: shared.is_unsure,
            looked: shared.looked.elapsed(),
        })
    }
}
