//! The newest changes of all repositories, and the ones among them that a returning reader has missed.
//!
//! A cursor names the last event of each repository: `ID.SEQ`, with `~` between. It outlives connections; for a
//! position that is no longer in the log, or never was, the reader gets a gap and fetches that repository again.
//! Since a change has no content, this loses no data.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use provost_base::limits::{DAEMONS_ASKED_MAX, HUB_CHANGES_MAX};

/// A message to readers.
#[derive(Clone, Debug)]
pub(super) enum HubMessage {
    /// A repository has changed.
    Change(Change),
    /// The reader must fetch a repository again; its journal ends here.
    Gap(Arc<str>, u64),
    /// The state of a repository.
    Standing(Value),
}

/// The notice of a change, with its kind.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The repository.
    pub(super) id: Arc<str>,
    /// The number of the event in its journal.
    pub(super) seq: u64,
    /// The kind, the task and the approval.
    pub(super) data: Value,
}

/// The last event of each repository that a reader has seen.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Cursor(pub(super) BTreeMap<Arc<str>, u64>);

impl Cursor {
    /// Parses a cursor; unreadable parts are left out, as if the reader had not seen those repositories.
    pub(super) fn read(text: &str) -> Self {
        let parts = text.split('~').take(DAEMONS_ASKED_MAX);
        let part = |it: &str| {
            let (id, seq) = it.split_once('.')?;
            Some((Arc::from(id), seq.parse().ok()?))
        };
        Self(parts.filter_map(part).collect())
    }

    pub(super) fn text(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|(id, seq)| format!("{id}.{seq}")).collect();
        parts.join("~")
    }
}

/// The position in the journal of a repository.
#[derive(Clone, Copy, Debug)]
struct JournalPosition {
    /// Each change after this one is kept.
    from: u64,
    head: u64,
}

/// The newest changes, oldest first.
#[derive(Default, Debug)]
pub(super) struct Log {
    places: BTreeMap<Arc<str>, JournalPosition>,
    kept: VecDeque<Change>,
}

impl Log {
    /// Starts to follow a repository from here; earlier changes are dropped.
    pub(super) fn begin(&mut self, id: &Arc<str>, head: u64) {
        self.kept.retain(|it| it.id != *id);
        self.places.insert(Arc::clone(id), JournalPosition { from: head, head });
    }

    /// Returns the last event that has come from a repository, once it is followed.
    pub(super) fn head(&self, id: &str) -> Option<u64> {
        self.places.get(id).map(|it| it.head)
    }

    /// Adds a change; the oldest is dropped if there are too many.
    pub(super) fn push(&mut self, change: Change) {
        if self.kept.len() >= HUB_CHANGES_MAX
            && let Some(gone) = self.kept.pop_front()
            && let Some(place) = self.places.get_mut(&gone.id)
        {
            place.from = gone.seq;
        }
        if let Some(place) = self.places.get_mut(&change.id) {
            place.head = change.seq;
        }
        self.kept.push_back(change);
    }

    /// Returns the messages that a reader with this cursor has missed, and its cursor after them.
    pub(super) fn missed(&self, cursor: &Cursor) -> (Vec<HubMessage>, Cursor) {
        let is_gap = |id: &Arc<str>, place: &JournalPosition| {
            cursor.0.get(id).is_none_or(|seq| *seq < place.from || *seq > place.head)
        };
        let gaps = self.places.iter().filter(|(id, place)| is_gap(id, place));
        let gaps = gaps.map(|(id, place)| HubMessage::Gap(Arc::clone(id), place.head));
        let is_missed = |it: &&Change| {
            let place = self.places.get(&it.id);
            place.is_some_and(|place| !is_gap(&it.id, place))
                && cursor.0.get(&it.id).is_some_and(|seq| it.seq > *seq)
        };
        let told = gaps.chain(self.kept.iter().filter(is_missed).cloned().map(HubMessage::Change)).collect();
        (told, self.now())
    }

    /// Returns the present end of all journals.
    pub(super) fn now(&self) -> Cursor {
        Cursor(self.places.iter().map(|(id, place)| (Arc::clone(id), place.head)).collect())
    }
}
