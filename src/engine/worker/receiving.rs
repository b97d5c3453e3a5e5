//! Messages that are answered before their commit.
//!
//! ```text
//!   [new] --the store keeps it--> [acknowledged] --the next commit--> [on record]
//!     |                                  |
//!     |                                  +--the daemon is killed--> carried out once more by the next start
//!     +--anything else in the same step, or the store does not keep it--> [on record] --> answered
//! ```
//! A commit costs several times as much as a message, and an agent that publishes only waits until the message is
//! stored. So the intake first writes messages to a file, and the engine commits many together: before any read,
//! with any other command, when none has come for `RECEIVED_PAUSE_MS`, and `RECEIVED_TOLD_MS_MAX` after the first
//! of them at the latest. If there are many, a second thread commits them while further ones are kept
//! (`beside.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Message, Worker};
use provost_base::limits::{RECEIVED_BESIDE_MIN, RECEIVED_MAX, RECEIVED_PAUSE_MS, RECEIVED_TOLD_MS_MAX};
use provost_domain::command::Publish;
use provost_domain::post::{Post, Received, Source};
use provost_domain::{Call, Change, Core, Event, Facts, Outbox, Principal, Refusal};
use provost_store::{Intake, Store, StoreError};

/// The times for which acknowledged messages wait for more: after the first of them, and after the last.
const RECEIVED_TOLD: Duration = Duration::from_millis(RECEIVED_TOLD_MS_MAX);
const RECEIVED_PAUSE: Duration = Duration::from_millis(RECEIVED_PAUSE_MS);

/// The channel on which a publisher gets the outcome.
pub(crate) type Publisher = oneshot::Sender<Result<(), Refusal>>;

/// Messages that are not on record yet.
#[derive(Default)]
pub(super) struct Receiving {
    /// Acknowledged messages that the second thread commits.
    sent: Vec<Received>,
    /// Acknowledged messages that are not committed yet, in their order.
    kept: Vec<Received>,
    /// Messages of this step.
    new: Vec<Received>,
    asked: Vec<(Publisher, Result<(), Refusal>)>,
    /// When the acknowledged ones have to be committed, and when at the latest if more keep coming.
    due: Option<Instant>,
    due_at_last: Option<Instant>,
    /// The part of the outbox that comes from messages alone, and the part of it that the boards show.
    alone: usize,
    shown: (usize, usize),
    /// Whether there are acknowledged messages.
    any: Arc<AtomicBool>,
}

impl Receiving {
    pub(super) fn new(any: Arc<AtomicBool>) -> Self {
        Self { any, ..Self::default() }
    }

    /// Returns when the next commit is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes that all are on record; if some were sent to be committed, only these.
    pub(super) fn done(&mut self) {
        if self.is_sent() {
            return self.sent_is_done(false);
        }
        self.begin();
        self.kept.clear();
        self.new.clear();
        (self.due, self.due_at_last) = (None, None);
        self.any.store(false, Ordering::Release);
    }

    /// Notes that the outbox is empty from now on. Returns how much of it was shown.
    pub(super) fn begin(&mut self) -> (usize, usize) {
        self.alone = 0;
        std::mem::take(&mut self.shown)
    }

    /// Notes that all kept messages are being committed on the second thread.
    pub(super) fn send(&mut self) {
        std::mem::swap(&mut self.sent, &mut self.kept);
        (self.due, self.due_at_last) = (None, None);
    }

    pub(super) fn is_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Notes that the sent messages are on record. `more` says whether other messages wait for their commit.
    pub(super) fn sent_is_done(&mut self, more: bool) {
        self.sent.clear();
        self.any.store(more || !self.kept.is_empty(), Ordering::Release);
    }

    /// Notes that the sent messages are not on record: they wait for the store with the others.
    pub(super) fn unsent(&mut self) {
        self.sent.append(&mut self.kept);
        std::mem::swap(&mut self.sent, &mut self.kept);
    }

    /// Refuses the messages of this step. Those acknowledged before wait for the store.
    pub(super) fn refuse(&mut self, why: &str) {
        self.begin();
        self.new.clear();
        (self.due, self.due_at_last) = (None, None);
        for (_, told) in &mut self.asked {
            *told = Err(Refusal::Unavailable { why: why.into() });
        }
    }

    /// Returns how many publishers wait for the end of this step.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Sends the publishers of this step their outcomes.
    pub(super) fn answer(&mut self) {
        for (publisher, told) in self.asked.drain(..) {
            // The peer may have hung up. Its message counts nevertheless.
            let _ = publisher.send(told);
        }
    }

    /// Takes the publishers that wait for the end of this step, since they wait for something else now.
    pub(super) fn take_asked(&mut self) -> Vec<(Publisher, Result<(), Refusal>)> {
        std::mem::take(&mut self.asked)
    }

    /// Sends these publishers their outcomes.
    pub(super) fn tell(&mut self, asked: Vec<(Publisher, Result<(), Refusal>)>) {
        for (publisher, told) in asked {
            let _ = publisher.send(told);
        }
    }
}

/// Whether a step may wait for a store that the second thread has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreWait {
    /// It may not: it runs on the thread of a door.
    None,
    /// It may: it runs on the engine's own thread.
    ForStore,
}

/// Returns how many items an outbox has.
fn filled(out: &Outbox) -> usize {
    out.changes.len() + out.events.len() + out.effects.len()
}

impl Worker {
    /// Takes the messages that wait.
    pub(super) fn take_messages(&mut self) {
        let mut taken = self.messages.take(std::mem::take(&mut self.taken));
        if !taken.is_empty() {
            // Statuses acknowledged before these messages came are recorded before them.
            self.put_on_record();
        }
        for Message { who, post, reply } in taken.drain(..) {
            self.take_message(who, post, reply);
        }
        self.taken = taken;
    }

    /// Applies a message. If that succeeds, `receive` may store and acknowledge it before its commit.
    fn take_message(&mut self, who: Principal, post: Post, publisher: Publisher) {
        // If the publisher has gone before its message was applied, the message is dropped.
        if publisher.is_closed() {
            return;
        }
        let message = Received { at: self.now, who, post };
        let told = self.of_messages(|it| {
            let publish = Publish { post: message.post.clone(), source: Source::Client };
            it.apply(&message.who, publish.into(), Facts::default()).map(drop)
        });
        if told.is_ok() {
            self.receiving.new.push(message);
        }
        self.receiving.asked.push((publisher, told));
    }

    /// Does something whose commit may wait for a while.
    pub(super) fn of_messages<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = filled(&self.out);
        let done = act(self);
        self.receiving.alone += filled(&self.out) - before;
        done
    }

    /// Checks whether the messages of this step can be answered before their commit: there was no other work, and
    /// they are kept.
    pub(super) fn receive(&mut self, wait: StoreWait) -> bool {
        if self.receiving.alone != filled(&self.out) || self.broken.is_some() {
            return false;
        }
        if !self.receiving.new.is_empty() {
            // The intake is full, and the messages before these are not on record yet.
            if self.receiving.kept.len() >= RECEIVED_MAX && self.store.is_away() {
                match wait {
                    StoreWait::None => return false,
                    StoreWait::ForStore if self.have_store(&mut []) => {}
                    StoreWait::ForStore => return true,
                }
            }
            match self.keep() {
                Ok(true) => {}
                Ok(false) => return false,
                Err(err) => {
                    tracing::debug!(%err, "messages are committed before they are answered");
                    return false;
                }
            }
            let is_late = self.receiving.due_at_last.is_some_and(|at| at <= Instant::now());
            if self.receiving.kept.len() < RECEIVED_MAX && !is_late {
                return true;
            }
        }
        self.commit_beside()
    }

    /// Checks whether the last step is complete; otherwise its rest is left to the engine's own thread.
    pub(super) fn is_through(&self) -> bool {
        let (it, filled) = (&self.receiving, filled(&self.out));
        it.asked.is_empty() && it.alone == filled && (filled == 0 || it.due.is_some())
    }

    /// Keeps the messages of this step, and answers them.
    fn keep(&mut self) -> Result<bool, StoreError> {
        let Some(intake) = &mut self.intake else { return Ok(false) };
        if self.store.is_away() {
            intake.look()?
        } else {
            self.store.look()?
        };
        let it = &mut self.receiving;
        if !intake.keep(&it.new)? {
            return Ok(false);
        }
        it.kept.append(&mut it.new);
        let now = Instant::now();
        let at_last = *it.due_at_last.get_or_insert(now + RECEIVED_TOLD);
        it.due = Some(at_last.min(now + RECEIVED_PAUSE));
        it.any.store(true, Ordering::Release);
        self.show_rest(&self.out, self.receiving.shown);
        self.receiving.shown = (self.out.changes.len(), self.out.events.len());
        self.receiving.answer();
        Ok(true)
    }

    /// Checks whether the second thread commits the kept messages, or will do so as soon as the batch before them
    /// is on record.
    fn commit_beside(&mut self) -> bool {
        if self.store.is_away() {
            self.receiving.due.get_or_insert_with(Instant::now);
            return true;
        }
        let pays = self.receiving.kept.len() >= RECEIVED_BESIDE_MIN && !self.out.is_empty();
        if pays {
            self.hand_over();
        }
        pays
    }

    /// Shows the changes and events of an outbox on the boards that are not shown yet.
    pub(super) fn show_rest(&self, out: &Outbox, (changes, events): (usize, usize)) {
        self.show(out.changes.get(changes..).unwrap_or(&[]), out.events.get(events..).unwrap_or(&[]));
    }

    /// Shows changes and events on the boards.
    pub(super) fn show(&self, changes: &[Change], events: &[Event]) {
        for change in changes {
            if let Change::Post(change) = change {
                self.inbox_index.follow(change);
            }
        }
        events.iter().for_each(|event| self.repeats.follow(event));
    }

    /// Carries acknowledged messages out again, since the store takes writes again.
    pub(super) fn catch_up(&mut self) {
        let kept = self.receiving.kept.clone();
        carry_out(&mut self.core, &kept, &mut self.out);
        if self.out.is_empty() {
            self.receiving.done();
        }
        self.commit(&mut Vec::new());
    }
}

/// Carries out acknowledged messages that are not on record.
fn carry_out(core: &mut Core, received: &[Received], out: &mut Outbox) {
    for Received { at, who, post } in received {
        let call =
            Call { now: *at, wall: *at, who, facts: Facts::default(), past: None, earlier: Vec::new() };
        let publish = Publish { post: post.clone(), source: Source::Client };
        if let Err(refusal) = core.apply(call, publish.into(), out) {
            // Only a change of settings between the two runs can cause this.
            tracing::warn!(agent = %who, %refusal, "a message that was acknowledged is not on record");
        }
    }
}

/// Carries them out at a start, and records them. Further ones are kept after them.
///
/// # Errors
/// If they cannot be recorded; they are still kept then.
pub(crate) fn recover(
    core: &mut Core,
    received: &[Received],
    store: &mut dyn Store,
    intake: Option<Box<dyn Intake>>,
) -> Result<Option<Box<dyn Intake>>, StoreError> {
    let (mut out, head) = (Outbox::default(), store.journal_head());
    carry_out(core, received, &mut out);
    if out.is_empty() {
        return Ok(intake);
    }
    tracing::info!(
        messages = received.len(),
        "messages that were acknowledged just before the last end are on record"
    );
    store.commit(&out)?;
    let begun = intake.map(|mut it| {
        if store.journal_head() != head {
            it.begin_at(&store.journal_head());
        }
        it
    });
    Ok(begun)
}
