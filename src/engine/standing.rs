//! The state of the store, for people: why and since when it takes no writes, which server has it, and when it was last reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_base::Timestamp;
use provost_store::ServerAt;

/// The facts that the engine's thread reports about its store.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<OfTheStore>>);

#[derive(Default)]
struct OfTheStore {
    /// The reason why the store takes no writes; `None` while it does.
    trouble: Option<Box<str>>,
    /// When that began.
    since: Timestamp,
    /// A problem that a person should know though the store still takes every write.
    note: Option<Box<str>>,
    /// Facts about a store that others write, too.
    shared: Option<Shared>,
}

struct Shared {
    /// When the last turn was taken.
    looked: Instant,
    server: Option<ServerAt>,
    is_unsure: bool,
}

/// The state of a database from the view of the daemon that has its state there.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The server to which the daemon was last connected.
    pub server: Option<ServerAt>,
    /// Since when the database takes no writes, and the reason; `None` while it does.
    pub away: Option<(Timestamp, Box<str>)>,
    /// Whether it is unknown at present whether the last batch is stored.
    pub is_unsure: bool,
    /// The time since the daemon last had everything that the database has.
    pub looked: Duration,
}

impl Trouble {
    fn of(&self) -> MutexGuard<'_, OfTheStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the store takes no writes for this reason, or takes them again.
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

    /// Notes a turn at a store that others write, too.
    pub(super) fn tell_turn(&self, server: Option<ServerAt>) {
        let mut it = self.of();
        let before = it.shared.take();
        let (is_unsure, known) = before.map_or((false, None), |it| (it.is_unsure, it.server));
        it.shared = Some(Shared { looked: Instant::now(), server: server.or(known), is_unsure });
    }

    /// Notes whether it is unknown if a batch is stored.
    pub(super) fn tell_unsure(&self, is_unsure: bool) {
        self.of().shared.iter_mut().for_each(|it| it.is_unsure = is_unsure);
    }

    pub(super) fn why(&self) -> Option<Box<str>> {
        self.of().trouble.clone()
    }

    pub(super) fn note(&self) -> Option<Box<str>> {
        self.of().note.clone()
    }

    /// Returns the state of the database; `None` for a store that one daemon writes alone.
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
