//! Decides when an event is sent, and how often. A6s 4.
//!
//! A change of status is sent at once, progress at most four times a second, and only if it has changed. The state
//! never goes back, and no event about an execution follows its end.
//!
//! The time is an argument, and this module does not wait: [`Pace::next_due`] returns when the next waiting event is due.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;

use super::audience::Written;
use super::events::{A6sEvent, Stand};
use provost_base::limits::{A6S_PROGRESS_EVERY_MS, A6S_WATCHED_MAX};
use provost_transport::websocket::Topic;

/// The most executions and background tasks that are remembered. Beyond that, the one with the oldest event is
/// forgotten.
pub(super) const SUBJECTS_MAX: NonZeroUsize =
    NonZeroUsize::new(A6S_WATCHED_MAX).expect("the bound is not zero");

/// The sent state of each execution and background task.
pub struct Pace {
    subjects: LruCache<String, Subject>,
    /// The executions that have a waiting event, by the time at which it may be sent.
    waiting: BTreeSet<(Instant, String)>,
    topics: Topic,
}

impl Default for Pace {
    fn default() -> Self {
        Self { subjects: LruCache::new(SUBJECTS_MAX), waiting: BTreeSet::new(), topics: 0 }
    }
}

/// An execution or a background task, with its sent state.
#[derive(Default)]
struct Subject {
    /// The topic of its progress: later progress in the same state replaces it.
    topic: Topic,
    /// The state of the last event that was sent.
    last: Option<Stand>,
    last_at: Option<Instant>,
    /// The progress that waits until it may be sent.
    waiting: Option<A6sEvent>,
    over: bool,
}

/// The moment at which an event is sent.
enum When {
    Now,
    At(Instant),
    Never,
}

impl Pace {
    /// Returns the event if it is to be sent now. Otherwise the event waits until it may be sent, or is dropped. It
    /// takes the place and the time of an event that waits already.
    #[must_use]
    pub fn tell(&mut self, mut event: A6sEvent, now: Instant) -> Option<Written> {
        let subject = self.subjects.get_or_insert_mut_ref(event.about(), Subject::default);
        if subject.over {
            return None;
        }
        subject.hold_level(&mut event);
        self.decide(event, now)
    }

    /// Returns when the next waiting event may be sent.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Returns a waiting event that is due by now.
    #[must_use]
    pub fn due(&mut self, now: Instant) -> Option<Written> {
        while self.next_due().is_some_and(|at| at <= now) {
            let (_, about) = self.waiting.pop_first()?;
            let waited = self.subjects.get_mut(&about).filter(|it| !it.over).and_then(|it| it.waiting.take());
            if let Some(written) = waited.and_then(|event| self.decide(event, now)) {
                return Some(written);
            }
        }
        None
    }

    fn decide(&mut self, event: A6sEvent, now: Instant) -> Option<Written> {
        let subject = self.subjects.get_mut(event.about())?;
        match subject.judge(&event, now) {
            When::Now => {
                self.topics += 1;
                let passing = subject.remember(&event, self.topics, now);
                Some(Written::of(&event, passing))
            }
            When::Never => None,
            When::At(at) => {
                let about = event.about().to_owned();
                if subject.waiting.replace(event).is_none() {
                    self.waiting.insert((at, about));
                }
                None
            }
        }
    }
}

impl Subject {
    /// Keeps the progress of a part that has failed half-way at its last level.
    fn hold_level(&self, event: &mut A6sEvent) {
        let (Some(stand), Some(last)) = (event.stand(), &self.last) else { return };
        if stand.part == last.part
            && stand.is_over()
            && let A6sEvent::Phase { progress, .. } | A6sEvent::Task { progress, .. } = event
        {
            *progress = stand.progress.max(last.progress);
        }
    }

    /// Decides whether and when an event is sent.
    fn judge(&self, event: &A6sEvent, now: Instant) -> When {
        let (Some(stand), Some(last)) = (event.stand(), &self.last) else { return When::Now };
        if stand.part < last.part || (stand.part == last.part && last.is_over()) {
            return When::Never;
        }
        if (stand.part, stand.status) != (last.part, last.status) {
            return When::Now;
        }
        let next = self.last_at.map(|at| at + Duration::from_millis(A6S_PROGRESS_EVERY_MS));
        match next {
            _ if stand.progress <= last.progress => When::Never,
            Some(then) if then > now => When::At(then),
            _ => When::Now,
        }
    }

    /// Remembers the event that is sent now. Returns the topic of progress messages that it replaces, if it is one
    /// itself.
    fn remember(&mut self, event: &A6sEvent, topic: Topic, now: Instant) -> Option<Topic> {
        self.over = event.is_last();
        let stand = event.stand()?;
        let is_progress =
            self.last.as_ref().is_some_and(|last| (last.part, last.status) == (stand.part, stand.status));
        // The waiting event concerns an earlier state.
        self.waiting = None;
        if !is_progress {
            self.topic = topic;
        }
        (self.last, self.last_at) = (Some(stand), Some(now));
        is_progress.then_some(self.topic)
    }
}
