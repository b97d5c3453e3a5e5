//! The notices that one address is owed, and the time of the next attempt at each.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use provost_base::EffectId;
use provost_base::limits::{NOTICE_NEWS_MS_MIN, NOTICE_WAITS_MS};

/// The notices of one address, in the order in which they became owed.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<EffectId, Waiting>,
    /// Attempts at the address that have failed in a row, over all notices.
    failures: usize,
    /// The wait after the last failure.
    pause: Option<Pause>,
    /// Whether the address has said that it wants no more notices.
    gone: bool,
}

/// A time in which nothing is sent.
struct Pause {
    since: Instant,
    until: Instant,
    /// Whether the address has asked for the wait.
    asked: bool,
}

struct Waiting {
    /// How many times the address refused this notice.
    refused: usize,
    due: Instant,
}

/// Returns the wait after so many failures.
fn wait(failures: usize) -> Duration {
    let at = failures.saturating_sub(1).min(NOTICE_WAITS_MS.len() - 1);
    Duration::from_millis(NOTICE_WAITS_MS[at])
}

impl Queue {
    /// Adds a notice. An address that has failed is tried again sooner for it, unless it has just been tried, or has asked for time.
    pub(super) fn add(&mut self, effect: EffectId, now: Instant) {
        self.waiting.insert(effect, Waiting { refused: 0, due: now });
        if let Some(pause) = self.pause.as_mut().filter(|it| !it.asked) {
            let soon = pause.since + Duration::from_millis(NOTICE_NEWS_MS_MIN);
            pause.until = pause.until.min(soon).max(now);
        }
    }

    pub(super) fn remove(&mut self, effect: EffectId) {
        self.waiting.remove(&effect);
    }

    /// Returns the time of the next attempt; `None` while nothing is owed.
    pub(super) fn due(&self) -> Option<Instant> {
        let first = self.waiting.values().map(|it| it.due).min()?;
        Some(self.pause.as_ref().map_or(first, |pause| first.max(pause.until)))
    }

    /// Returns the oldest notice that is due.
    pub(super) fn next(&self, now: Instant) -> Option<EffectId> {
        self.waiting.iter().find(|(_, it)| it.due <= now).map(|(effect, _)| *effect)
    }

    /// Notes that the address takes requests.
    pub(super) fn answers(&mut self) {
        (self.failures, self.pause) = (0, None);
    }

    /// Notes that the address takes no request at present; it may have said for how long.
    pub(super) fn is_down(&mut self, effect: EffectId, asked: Option<Duration>, now: Instant) {
        self.failures += 1;
        let until = now + asked.unwrap_or_default().max(wait(self.failures));
        self.pause = Some(Pause { since: now, until, asked: asked.is_some() });
        if let Some(it) = self.waiting.get_mut(&effect) {
            it.due = now;
        }
    }

    /// Notes that the address refuses this notice; the others go on.
    pub(super) fn put_off(&mut self, effect: EffectId, now: Instant) {
        if let Some(it) = self.waiting.get_mut(&effect) {
            it.refused += 1;
            it.due = now + wait(it.refused);
        }
    }

    /// Puts off a notice until the given moment.
    pub(super) fn put_off_for(&mut self, effect: EffectId, until: Instant) {
        if let Some(it) = self.waiting.get_mut(&effect) {
            it.due = until;
        }
    }

    /// Notes that the address wants no more notices: all notices become due, to be given up.
    pub(super) fn is_gone_now(&mut self, now: Instant) {
        self.begin_again(now);
        self.gone = true;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Makes every notice due, after the configuration was read again.
    pub(super) fn begin_again(&mut self, now: Instant) {
        self.answers();
        self.gone = false;
        self.waiting.values_mut().for_each(|it| *it = Waiting { refused: 0, due: now });
    }
}
