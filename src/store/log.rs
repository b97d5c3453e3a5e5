//! The shared log's entries as a store keeps them: each is one text with everything that has to be folded, in a chain of its own.
//!
//! ```text
//!   mac(n) = HMAC(key, label || mac(n-1) || n || SHA-256(host, incarnation, own_n, format, at) || SHA-256(body))
//! ```
//! The key is the journal's, and no database has it: an attacker who can write to the database can stop the
//! daemons, but cannot make them fold anything. The texts of the events are the journal's; an entry has their
//! numbers. Before an entry is folded, its link, the links of its events and its format are checked.

use serde::{Deserialize, Serialize};

use super::journal::{JournalHead, Key};
use super::{Anchor, Head, StoreError, StoredEvent, codec};
use provost_base::{DaemonId, Digest, EffectId, EntryNo, EventSeq, HostId, HostRole, Timestamp};
use provost_domain::{Change, Effect, LogEntry, Outbox};

/// The newest format of entries that this Provost reads; it writes the format that the log is in.
pub const ENTRY_FORMAT: u32 = 1;
/// The oldest format that it reads.
pub const ENTRY_FORMAT_OLDEST: u32 = 1;

/// An entry as a store keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedEntry {
    /// Its place in the log.
    pub n: EntryNo,
    /// The daemon that has decided it.
    pub by: DaemonId,
    /// Its place among all entries of that daemon.
    pub own_n: u64,
    /// The time, by the store's clock.
    pub at: Timestamp,
    /// The format of the body.
    pub format: u32,
    /// Changes and effects as JSON text, and the numbers of the events; unchanged, as hashed.
    pub body: Box<str>,
    /// Its link of the chain.
    pub mac: Digest,
}

impl SealedEntry {
    /// Returns the head of the log with this entry.
    pub fn head(&self) -> Head {
        Head { n: self.n, mac: self.mac }
    }
}

/// The body, for writing.
#[derive(Serialize)]
struct BodyOf<'a> {
    changes: Vec<&'a Change>,
    effects: Vec<(EffectId, HostId, &'a Effect)>,
    events: Vec<EventSeq>,
}

/// The body, for reading. A change of an unknown kind is an error: an entry that cannot be folded must not be skipped.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    effects: Vec<(EffectId, HostId, Effect)>,
    #[serde(default)]
    events: Vec<EventSeq>,
}

/// Refuses an entry with a change that this release does not know.
///
/// # Errors
/// [`StoreError::UnknownChange`].
#[cfg(feature = "postgres")]
pub(super) fn must_be_known(sealed: &SealedEntry) -> Result<(), StoreError> {
    body_of(sealed).map(drop)
}

fn body_of(sealed: &SealedEntry) -> Result<Body, StoreError> {
    serde_json::from_str(&sealed.body).map_err(|err| {
        // The list of known kinds is long.
        let says = err.to_string();
        let what = says.split(", expected").next().unwrap_or_default().into();
        StoreError::UnknownChange { n: sealed.n, by: sealed.by, what, version: None }
    })
}

impl Key {
    /// Returns the entry of a batch after `head`: everything that other daemons have to know. Its effects belong to
    /// the deciding host, unless the batch assigns them to another one.
    ///
    /// # Errors
    /// If a change cannot be written as text.
    pub fn entry(
        &self,
        head: &Head,
        (by, own_n): (DaemonId, u64),
        (at, format): (Timestamp, u32),
        batch: &Outbox,
    ) -> Result<SealedEntry, StoreError> {
        let owner = |id| batch.owed_at(id).unwrap_or(by).host;
        let body = codec::text(&BodyOf {
            changes: batch.changes.iter().filter(|it| it.is_shared()).collect(),
            effects: batch.effects.iter().map(|(id, effect)| (*id, owner(*id), effect)).collect(),
            events: batch.events.iter().map(|it| it.seq).collect(),
        })?;
        let (n, body) = (head.n.next(), body.into());
        let mut entry = SealedEntry { n, by, own_n, at, format, body, mac: Digest::default() };
        entry.mac = self.entry_link(&head.mac, &entry);
        Ok(entry)
    }

    /// Opens the entry after `head`, with its events after `journal`, and moves both on.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] and [`StoreError::Tampered`] if a link does not hold; [`StoreError::NewerFormat`]
    /// and [`StoreError::UnknownChange`] if this Provost cannot read it.
    pub fn open_entry(
        &self,
        (head, journal): (&mut Head, &mut JournalHead),
        sealed: SealedEntry,
        events: Vec<StoredEvent>,
    ) -> Result<LogEntry, StoreError> {
        let broken = |what: &str| StoreError::BrokenLog { n: sealed.n, what: what.into() };
        if sealed.n != head.n.next() {
            return Err(broken("an entry before it is missing"));
        }
        if self.entry_link(&head.mac, &sealed) != sealed.mac {
            return Err(broken("it is not the entry that was written"));
        }
        if !(ENTRY_FORMAT_OLDEST..=ENTRY_FORMAT).contains(&sealed.format) {
            return Err(StoreError::NewerFormat { found: sealed.format, known: ENTRY_FORMAT });
        }
        let body = body_of(&sealed)?;
        if !events.iter().map(|it| it.seq).eq(body.events.iter().copied()) {
            return Err(broken("its events are not the ones that were written"));
        }
        let end = self.follow(journal, &events)?;
        let events = events.iter().filter_map(|it| it.event().transpose()).collect::<Result<_, _>>()?;
        (*head, *journal) = (sealed.head(), end);
        let SealedEntry { n, by, own_n, at, format, mac, .. } = sealed;
        let (changes, effects) = (body.changes, body.effects);
        // The caller that knows the hosts sets the role.
        Ok(LogEntry { n, by, role: HostRole::Full, own_n, at, format, changes, events, effects, mac })
    }

    /// Returns the end of the journal with these events after `head`.
    fn follow(&self, head: &JournalHead, events: &[StoredEvent]) -> Result<JournalHead, StoreError> {
        let mut head = *head;
        for event in events {
            let what = match &event.body {
                _ if event.seq != head.seq.next() => Some("an event before it is missing"),
                Some(body) if Digest::of(body.as_bytes()) != event.hash => Some("its text was changed"),
                _ if self.link(&head.mac, event) != event.mac => Some("it is not the event that was written"),
                // What an entry does is checked by its events. A daemon that was asleep while they were pruned reads the rows instead.
                None => Some("its text was taken away before all hosts had read it"),
                Some(_) => None,
            };
            if let Some(what) = what {
                return Err(StoreError::Tampered { seq: event.seq, what: what.into() });
            }
            head = Anchor { seq: event.seq, mac: event.mac };
        }
        Ok(head)
    }

    /// Checks whether an entry is the one that was written after `before`.
    #[cfg(feature = "postgres")]
    pub(super) fn is_next_entry(&self, before: &Head, it: &SealedEntry) -> bool {
        it.n == before.n.next() && self.entry_link(&before.mac, it) == it.mac
    }

    fn entry_link(&self, before: &Digest, it: &SealedEntry) -> Digest {
        let host = it.by.host.to_string();
        let (incarnation, own_n) = (it.by.incarnation.to_le_bytes(), it.own_n.to_le_bytes());
        let (format, at) = (it.format.to_le_bytes(), it.at.0.to_le_bytes());
        let header = Digest::of_fields([host.as_bytes(), &incarnation[..], &own_n, &format, &at]);
        let (n, body) = (it.n.0.to_le_bytes(), Digest::of(it.body.as_bytes()));
        self.mac(b"provost-entry-v1", &[before.as_bytes(), &n, header.as_bytes(), body.as_bytes()])
    }
}
