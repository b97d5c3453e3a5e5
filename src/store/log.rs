//! The shared log's entries as a store keeps them: one text with all that has to be folded, under a chain of its own.
//!
//! ```text
//!   mac(n) = HMAC(key, label || mac(n-1) || n || SHA-256(host, incarnation, own_n, format, at) || SHA-256(body))
//! ```
//! The key is the journal's, and no database has it: who can write the database can stop the daemons, but have them fold
//! nothing. The texts of the events are the journal's; an entry has their numbers. Before an entry is folded, its link and the
//! links of its events are checked, and its format.

use serde::{Deserialize, Serialize};

use super::journal::{JournalHead, Key};
use super::{Anchor, Head, StoreError, StoredEvent, codec};
use provost_base::{DaemonId, Digest, EffectId, EntryNo, EventSeq, HostId, HostRole, Timestamp};
use provost_domain::{Change, Effect, LogEntry, Outbox};

/// The newest format of entries that this Provost reads; it writes the one that the log is in.
pub const ENTRY_FORMAT: u32 = 1;
/// The oldest that it reads.
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
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The format of the body.
    pub format: u32,
    /// Changes and effects as JSON text, and the numbers of the events; to the letter, as hashed.
    pub body: Box<str>,
    /// Its link of the chain.
    pub mac: Digest,
}

impl SealedEntry {
    /// The log's head once this is in it.
    pub fn head(&self) -> Head {
        Head { n: self.n, mac: self.mac }
    }
}

/// The body to be written.
#[derive(Serialize)]
struct BodyOf<'a> {
    changes: Vec<&'a Change>,
    effects: Vec<(EffectId, HostId, &'a Effect)>,
    events: Vec<EventSeq>,
}

/// The body as it is read. A change of an unknown kind is an error: what cannot be folded must not be skipped.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    effects: Vec<(EffectId, HostId, Effect)>,
    #[serde(default)]
    events: Vec<EventSeq>,
}

/// Refuses an entry that has what this release does not know.
///
/// # Errors
/// [`StoreError::UnknownChange`].
#[cfg(feature = "postgres")]
pub(super) fn must_be_known(sealed: &SealedEntry) -> Result<(), StoreError> {
    body_of(sealed).map(drop)
}

fn body_of(sealed: &SealedEntry) -> Result<Body, StoreError> {
    serde_json::from_str(&sealed.body).map_err(|err| {
        // What is known is a long list.
        let says = err.to_string();
        let what = says.split(", expected").next().unwrap_or_default().into();
        StoreError::UnknownChange { n: sealed.n, by: sealed.by, what, version: None }
    })
}

impl Key {
    /// The entry of a batch behind `head`: all of it that other daemons have to know. Its effects are the deciding host's, unless the
    /// batch says that they are another one's.
    ///
    /// # Errors
    /// When a change cannot be written as text.
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

    /// Opens the entry behind `head`, with its events behind `journal`, and moves both on.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] and [`StoreError::Tampered`] where a link does not hold; [`StoreError::NewerFormat`] and
    /// [`StoreError::UnknownChange`] where this Provost cannot read it.
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
        // Who knows the hosts says more of it.
        Ok(LogEntry { n, by, role: HostRole::Full, own_n, at, format, changes, events, effects, mac })
    }

    /// Where the journal ends with these events behind `head`.
    fn follow(&self, head: &JournalHead, events: &[StoredEvent]) -> Result<JournalHead, StoreError> {
        let mut head = *head;
        for event in events {
            let what = match &event.body {
                _ if event.seq != head.seq.next() => Some("an event before it is missing"),
                Some(body) if Digest::of(body.as_bytes()) != event.hash => Some("its text was changed"),
                _ if self.link(&head.mac, event) != event.mac => Some("it is not the event that was written"),
                _ => None,
            };
            if let Some(what) = what {
                return Err(StoreError::Tampered { seq: event.seq, what: what.into() });
            }
            head = Anchor { seq: event.seq, mac: event.mac };
        }
        Ok(head)
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
