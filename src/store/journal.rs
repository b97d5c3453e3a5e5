//! The event log as a journal: a chain that cannot be changed unnoticed without its key.
//!
//! ```text
//!   mac(n) = HMAC(key, label || mac(n-1) || n || SHA-256(time, kind, actor, task) || SHA-256(body))
//! ```
//! It is written in the same commit as the rows and continues over restarts. A body may be pruned: its digest
//! stays, and with it the chain. Checkpoints, sealed with the same key, let a start check the tail alone; they also
//! say up to which event bodies may be missing.
//!
//! Promised: a check finds every change, insertion, move and removal inside, and its [`Verdict`] names the first
//! wrong event. It finds the removal of the newest events back to the last [`Anchor`] that was recorded elsewhere.
//! Not promised: protection against an attacker who can read the key, if no anchors are kept.
#![forbid(unsafe_code)]

mod anchor;

use std::collections::BTreeMap;
use std::io::Write;

use hmac::{Hmac, Mac};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::Sha256;

use super::{Reader, StoreError, StoredEvent, codec};
use provost_base::limits::EVENT_PAGE_MAX;
use provost_base::{Digest, EventSeq, Secret, Timestamp};
use provost_domain::{Counters, Event, EventKind, HOST_REMOVED};

pub use anchor::{Anchor, AnchorSink, BadAnchor, syslog_sink, syslog_sink_at};

/// The end of the journal: the last event and its link. An anchor is a head that was recorded elsewhere.
pub type JournalHead = Anchor;

/// The reason why a check did not complete, if its caller has ended it.
pub const GIVEN_UP: &str = "the check was ended before it came to the last event";

/// The name of the event with which the journal continues after a restore.
pub(super) const RESTORED: &str = "store.restored";

/// The name of the event with which the journal continues without the lost part of a database.
pub(super) const LOSS_ACCEPTED: &str = "store.loss_accepted";

/// The stored kinds of events whose text is never pruned: later signatures are checked with the passkeys, and hosts that were away learn
/// from the removals who is no member any more. There are only as many as people make.
pub(super) const KEPT: [&str; 4] = ["passkey_added", "passkey_revoked", "passkeys_reset", HOST_REMOVED];

/// The result of a check of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The chain is whole.
    Ok {
        /// The number of events that were checked.
        events: u64,
        /// The last event, with its link of the chain.
        head: JournalHead,
        /// Numbers that no event has, since a restore has skipped them; in their order.
        leaps: Vec<Leap>,
    },
    /// Another program has changed the journal.
    Tampered {
        /// The first event that is wrong.
        first_bad_seq: EventSeq,
        /// The difference that was found, in words for people.
        what: Box<str>,
    },
    /// The journal ends before a point that it is known to have reached.
    Truncated {
        /// The point that the journal had reached.
        anchor: Anchor,
        /// The last event that the journal has.
        head: JournalHead,
    },
    /// The journal has reached that point, and a restore has given up the part between the last kept event and that
    /// point.
    GivenUp {
        /// The point that the journal had reached.
        anchor: Anchor,
        /// The numbers that the restore has skipped.
        leap: Leap,
    },
    /// The journal could not be checked, for this reason.
    CannotCheck(Box<str>),
}

/// Numbers that a restore has skipped, so that no event gets one of them a second time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leap {
    /// The last event that was kept.
    pub kept: EventSeq,
    /// The last number that was skipped. The event after it records the restore.
    pub to: EventSeq,
    /// When the restore was; `None` if no event records it.
    pub at: Option<Timestamp>,
    /// The store with which the journal has continued, as its event records.
    pub with: Option<Box<str>>,
    /// Whether an operator has continued without the lost part of a database; otherwise it was a restore.
    pub was_loss: bool,
}

impl Leap {
    /// Returns the event that records it.
    pub fn mark(&self) -> EventSeq {
        self.to.next()
    }

    /// Takes the details from the event.
    fn is_told_by(&mut self, event: &StoredEvent) {
        self.at = Some(event.at);
        if let Ok(Some(Event { kind: EventKind::Recorded { what, subject, .. }, .. })) = event.event()
            && [RESTORED, LOSS_ACCEPTED].contains(&&*what)
        {
            (self.was_loss, self.with) = (*what == *LOSS_ACCEPTED, Some(subject));
        }
    }
}

/// The chain's key.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Makes a key from the secret in the state folder.
    pub fn new(secret: &Secret) -> Self {
        Self(secret.mac())
    }

    /// Returns a digest by which the key is recognised without being revealed.
    pub(super) fn fingerprint(&self) -> Digest {
        self.mac(b"provost-journal-key-v1", &[])
    }

    /// Returns a MAC. All fields have a fixed length or are last, so that no two lists of fields look alike.
    pub(super) fn mac(&self, label: &[u8], fields: &[&[u8]]) -> Digest {
        let mut mac = self.0.clone();
        mac.update(label);
        fields.iter().for_each(|field| mac.update(field));
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }

    pub(super) fn link(&self, before: &Digest, event: &StoredEvent) -> Digest {
        let task = event.task.as_ref().map_or("", |task| task.as_str());
        let at = event.at.0.to_le_bytes();
        let header = [&at, event.kind.as_bytes(), event.actor.as_str().as_bytes(), task.as_bytes()];
        let (seq, header) = (event.seq.0.to_le_bytes(), Digest::of_fields(header));
        self.mac(b"provost-journal-v1", &[before.as_bytes(), &seq, header.as_bytes(), event.hash.as_bytes()])
    }

    /// Continues the chain at `head` with the events of a batch.
    pub fn extend(&self, head: &JournalHead, events: &[Event]) -> Result<Vec<StoredEvent>, StoreError> {
        let (mut linked, mut head) = (Vec::with_capacity(events.len()), *head);
        for event in events {
            let expected = head.seq.next();
            if event.seq != expected {
                return Err(StoreError::OutOfStep { expected, got: event.seq });
            }
            let body = codec::text(event)?;
            let mut stored = StoredEvent {
                seq: event.seq,
                at: event.at,
                actor: event.actor.clone(),
                kind: event.kind.name().into(),
                task: event.kind.task().cloned(),
                hash: Digest::of(body.as_bytes()),
                body: Some(body.into()),
                mac: Digest::default(),
            };
            stored.mac = self.link(&head.mac, &stored);
            head = Anchor { seq: stored.seq, mac: stored.mac };
            linked.push(stored);
        }
        Ok(linked)
    }

    /// Seals the state of the journal at `head`.
    pub fn checkpoint(
        &self,
        head: JournalHead,
        pruned_to: EventSeq,
        counters: &Counters,
    ) -> Result<Checkpoint, StoreError> {
        let counters = codec::text(counters)?;
        let mut checkpoint = Checkpoint { head, pruned_to, counters, seal: Digest::default() };
        checkpoint.seal = self.seal(&checkpoint);
        Ok(checkpoint)
    }

    /// Seals a gap: numbers that are skipped.
    pub(super) fn gap(&self, after: JournalHead, to: EventSeq) -> Gap {
        let (from, upto) = (after.seq.0.to_le_bytes(), to.0.to_le_bytes());
        let seal = self.mac(b"provost-gap-v1", &[&from, after.mac.as_bytes(), &upto]);
        Gap { after, to, seal }
    }

    /// Checks whether a gap is unchanged.
    pub(super) fn has_sealed(&self, it: &Gap) -> bool {
        self.gap(it.after, it.to).seal == it.seal
    }

    /// Seals a mark, which is kept outside of the journal.
    pub(super) fn mark(&self, head: &Anchor, counters: &Counters, boot: &str) -> Result<Digest, StoreError> {
        let (seq, counters) = (head.seq.0.to_le_bytes(), Digest::of(codec::text(counters)?.as_bytes()));
        let fields: [&[u8]; 4] = [&seq, head.mac.as_bytes(), counters.as_bytes(), boot.as_bytes()];
        Ok(self.mac(b"provost-mark-v1", &fields))
    }

    /// Seals a frame of the intake, which continues the seal before.
    pub(super) fn intake(&self, before: &Digest, text: &[u8]) -> Digest {
        self.mac(b"provost-intake-v1", &[before.as_bytes(), text])
    }

    /// Seals the end of the intake's frames that a journal with this head includes.
    pub(super) fn intake_end(&self, head: &Anchor, end: &Digest) -> Digest {
        let seq = head.seq.0.to_le_bytes();
        self.mac(b"provost-intake-end-v1", &[&seq, head.mac.as_bytes(), end.as_bytes()])
    }

    /// Checks whether a checkpoint is unchanged.
    pub(super) fn is_sealed(&self, it: &Checkpoint) -> bool {
        self.seal(it) == it.seal
    }

    fn seal(&self, it: &Checkpoint) -> Digest {
        let (seq, pruned_to) = (it.head.seq.0.to_le_bytes(), it.pruned_to.0.to_le_bytes());
        let fields: [&[u8]; 4] = [&seq, it.head.mac.as_bytes(), &pruned_to, it.counters.as_bytes()];
        self.mac(b"provost-checkpoint-v1", &fields)
    }
}

/// A sealed note of how far the journal had come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The end of the chain at that time.
    pub head: JournalHead,
    /// The last event whose body may be missing.
    pub(super) pruned_to: EventSeq,
    /// The counters as JSON text, unchanged.
    pub(super) counters: String,
    pub(super) seal: Digest,
}

/// Numbers that were skipped after newer history was lost, so that no event gets one of them a second time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The end of the journal before the gap.
    pub(super) after: JournalHead,
    /// The last number that has no event.
    pub(super) to: EventSeq,
    pub(super) seal: Digest,
}

impl Gap {
    /// Returns the head from which the chain continues.
    pub(super) fn head(&self) -> JournalHead {
        Anchor { seq: self.to, mac: self.seal }
    }
}

/// The first defect of the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainDefect {
    pub(super) seq: EventSeq,
    pub(super) what: Box<str>,
}

impl ChainDefect {
    pub(super) fn new(seq: EventSeq, what: &str) -> Self {
        Self { seq, what: what.into() }
    }
}

impl From<ChainDefect> for StoreError {
    fn from(fault: ChainDefect) -> Self {
        StoreError::Tampered { seq: fault.seq, what: fault.what }
    }
}

impl From<ChainDefect> for Verdict {
    fn from(fault: ChainDefect) -> Self {
        Verdict::Tampered { first_bad_seq: fault.seq, what: fault.what }
    }
}

/// Walks along the chain, one event at a time.
pub struct Walk<'a> {
    key: &'a Key,
    head: JournalHead,
    pruned_to: EventSeq,
    checkpoints: BTreeMap<EventSeq, Checkpoint>,
    gaps: BTreeMap<EventSeq, Gap>,
    anchor: Option<Anchor>,
    /// The number of events seen.
    seen: u64,
    /// The numbers that were skipped, and whether the anchor is one of them.
    leaps: Vec<(Leap, bool)>,
}

impl<'a> Walk<'a> {
    /// Returns a walk over the whole chain.
    pub fn whole(key: &'a Key, checkpoints: Vec<Checkpoint>, gaps: Vec<Gap>, anchor: Option<Anchor>) -> Self {
        let sealed = checkpoints.iter().filter(|it| key.seal(it) == it.seal);
        let pruned_to = sealed.map(|it| it.pruned_to).max().unwrap_or_default();
        let checkpoints = checkpoints.into_iter().map(|it| (it.head.seq, it)).collect();
        let gaps = gaps.into_iter().map(|it| (it.after.seq, it)).collect();
        Self {
            key,
            head: JournalHead::default(),
            pruned_to,
            checkpoints,
            gaps,
            anchor,
            seen: 0,
            leaps: Vec::new(),
        }
    }

    /// Returns a walk from the last checkpoint on; the link of the event there is `mac`.
    pub(super) fn tail(
        key: &'a Key,
        from: &Checkpoint,
        gaps: Vec<Gap>,
        mac: Option<Digest>,
    ) -> Result<Self, ChainDefect> {
        let walk = Self {
            key,
            head: from.head,
            pruned_to: from.pruned_to,
            checkpoints: BTreeMap::new(),
            gaps: gaps.into_iter().map(|it| (it.after.seq, it)).collect(),
            anchor: None,
            seen: 0,
            leaps: Vec::new(),
        };
        walk.check_seal(from)?;
        if mac != Some(from.head.mac) {
            return Err(ChainDefect::new(
                from.head.seq,
                "the event is not the one its checkpoint was made of",
            ));
        }
        Ok(walk)
    }

    /// Returns the next place, for rows that cannot even be read.
    pub(super) fn next(&self) -> EventSeq {
        self.head.seq.next()
    }

    /// Returns the place that the walk has reached.
    pub(super) fn head(&self) -> JournalHead {
        self.head
    }

    /// Returns the last event whose body may be missing.
    pub(super) fn pruned_to(&self) -> EventSeq {
        self.pruned_to
    }

    /// Skips the numbers that were lost here.
    pub(super) fn leap(&mut self) -> Result<(), ChainDefect> {
        while let Some(gap) = self.gaps.remove(&self.head.seq) {
            let sealed = self.key.gap(self.head, gap.to);
            if sealed != gap || gap.to < gap.after.seq {
                return Err(ChainDefect::new(self.next(), "numbers are passed over that were not lost"));
            }
            let has_anchor = self.anchor.is_some_and(|it| it.seq > gap.after.seq && it.seq <= gap.to);
            let leap = Leap { kept: gap.after.seq, to: gap.to, at: None, with: None, was_loss: false };
            self.leaps.push((leap, has_anchor));
            self.head = gap.head();
        }
        Ok(())
    }

    /// Checks one more event.
    pub fn step(&mut self, event: &StoredEvent) -> Result<(), ChainDefect> {
        self.leap()?;
        let expected = self.next();
        if event.seq != expected {
            let first = event.seq.min(expected);
            return Err(ChainDefect::new(first, "an event is missing, or one is there that does not belong"));
        }
        match &event.body {
            Some(body) if Digest::of(body.as_bytes()) != event.hash => {
                return Err(ChainDefect::new(event.seq, "the body is not the one that was hashed"));
            }
            None if event.seq > self.pruned_to => {
                return Err(ChainDefect::new(event.seq, "the body is missing, and was not pruned"));
            }
            None if KEPT.contains(&&*event.kind) => {
                return Err(ChainDefect::new(
                    event.seq,
                    "the body was taken away, and that of such an event is always kept",
                ));
            }
            _ => {}
        }
        if self.key.link(&self.head.mac, event) != event.mac {
            return Err(ChainDefect::new(event.seq, "the chain breaks here"));
        }
        self.head = Anchor { seq: event.seq, mac: event.mac };
        self.seen += 1;
        if let Some((leap, _)) = self.leaps.last_mut().filter(|it| it.0.mark() == event.seq) {
            leap.is_told_by(event);
        }
        self.pass_checkpoint()?;
        match self.anchor.filter(|anchor| anchor.seq == event.seq) {
            Some(anchor) if anchor.mac != event.mac => {
                Err(ChainDefect::new(event.seq, "the event is not the one the anchor was made of"))
            }
            _ => Ok(()),
        }
    }

    fn pass_checkpoint(&mut self) -> Result<(), ChainDefect> {
        let Some(checkpoint) = self.checkpoints.remove(&self.head.seq) else { return Ok(()) };
        self.check_seal(&checkpoint)?;
        if checkpoint.head.mac != self.head.mac {
            return Err(ChainDefect::new(
                self.head.seq,
                "the event is not the one its checkpoint was made of",
            ));
        }
        Ok(())
    }

    fn check_seal(&self, checkpoint: &Checkpoint) -> Result<(), ChainDefect> {
        if self.key.seal(checkpoint) != checkpoint.seal {
            return Err(ChainDefect::new(checkpoint.head.seq, "the checkpoint was changed"));
        }
        Ok(())
    }

    /// Returns the verdict when no event is left and `counted` have been counted.
    pub fn finish(mut self, counted: EventSeq) -> Verdict {
        if let Err(fault) = self.leap() {
            return fault.into();
        }
        let head = self.head;
        let given_up = self.leaps.iter().find(|it| it.1).map(|it| it.0.clone());
        if let (Some(anchor), Some(leap)) = (self.anchor, given_up) {
            return Verdict::GivenUp { anchor, leap };
        }
        if let Some(checkpoint) = self.checkpoints.values().find(|it| self.check_seal(it).is_err()) {
            return ChainDefect::new(checkpoint.head.seq, "the checkpoint was changed").into();
        }
        let ahead = self.checkpoints.values().map(|it| it.head).chain(self.anchor);
        if let Some(anchor) = ahead.filter(|anchor| anchor.seq > head.seq).max_by_key(|anchor| anchor.seq) {
            return Verdict::Truncated { anchor, head };
        }
        if counted != head.seq {
            return ChainDefect::new(head.seq.next(), "the newest events do not agree with their number")
                .into();
        }
        let leaps = self.leaps.into_iter().map(|it| it.0).collect();
        Verdict::Ok { events: self.seen, head, leaps }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    seq: EventSeq,
    at: String,
    actor: &'a str,
    kind: &'a str,
    task: Option<&'a str>,
    body: Option<&'a RawValue>,
    hash: Digest,
    mac: Digest,
}

/// Writes the journal as JSON lines, one event each, bodies unchanged; returns their number.
///
/// # Errors
/// If the store or `out` does not answer.
pub fn export(reader: &mut dyn Reader, out: &mut dyn Write) -> Result<u64, StoreError> {
    let mut last = EventSeq::default();
    let mut count = 0;
    loop {
        let page = reader.events_after(last, EVENT_PAGE_MAX)?;
        let Some(newest) = page.last() else { return Ok(count) };
        last = newest.seq;
        for event in &page {
            let body = event.body.as_deref().map(serde_json::from_str).transpose();
            let line = codec::text(&Line {
                seq: event.seq,
                at: event.at.rfc3339(),
                actor: event.actor.as_str(),
                kind: &event.kind,
                task: event.task.as_ref().map(|task| task.as_str()),
                body: body.map_err(StoreError::damaged)?,
                hash: event.hash,
                mac: event.mac,
            })?;
            writeln!(out, "{line}").map_err(|source| StoreError::Io { path: "export".into(), source })?;
            count += 1;
        }
    }
}
