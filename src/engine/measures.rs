//! Measures how long things take, since the start: counted in steps of time, so that memory does not grow and no thread waits to count.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::observed::{Observed, Watch};
use provost_domain::{Door, VerbName};

/// Steps within a doubling of time: a figure is too large by at most a quarter.
const STEPS: u32 = 4;

/// Doublings of a microsecond that are distinguished: up to three days.
const DOUBLINGS: u32 = 38;

/// Durations, counted by steps.
pub struct Durations {
    steps: [AtomicU64; (STEPS * DOUBLINGS) as usize],
    /// The sum of all durations, in microseconds.
    sum_us: AtomicU64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { steps: std::array::from_fn(|_| AtomicU64::new(0)), sum_us: AtomicU64::new(0) }
    }
}

/// The numbers of durations, by doublings of a microsecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// For each requested exponent: the number of durations below two to its power, in microseconds.
    pub below: Vec<(u32, u64)>,
    /// The number of durations.
    pub count: u64,
    /// The sum of all durations, in microseconds.
    pub sum_us: u64,
}

/// A summary of durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The number of durations.
    pub count: u64,
    /// The time that half of them did not exceed.
    pub p50: Duration,
    /// The time that 99 of a hundred did not exceed.
    pub p99: Duration,
}

impl Durations {
    /// Counts a duration.
    pub fn note(&self, took: Duration) {
        self.note_us(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a duration, or a number in another unit.
    pub fn note_us(&self, us: u64) {
        self.steps[step(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Returns how many were below each of these powers of two. The bounds lie between steps, so the counts are exact.
    pub fn histogram(&self, exponents: impl Iterator<Item = u32>) -> Histogram {
        let counts: Vec<u64> = self.steps.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        let below = |exponent: u32| {
            let steps = (exponent * STEPS) as usize;
            (exponent, counts.iter().take(steps).sum())
        };
        Histogram {
            below: exponents.map(below).collect(),
            count: counts.iter().sum(),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }

    /// Returns the summary; `None` if nothing was counted.
    pub fn spread(&self) -> Option<Spread> {
        let counts: Vec<u64> = self.steps.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let within = |hundredths: u64| {
            let wanted = (count * hundredths).div_ceil(100).max(1);
            let mut seen = 0;
            let step = counts.iter().position(|it| {
                seen += it;
                seen >= wanted
            });
            end(step.unwrap_or(0))
        };
        (count > 0).then(|| Spread { count, p50: within(50), p99: within(99) })
    }
}

/// Returns the step of a duration of so many microseconds.
fn step(us: u64) -> usize {
    let us = us.max(1);
    let doubling = us.ilog2();
    // The part beyond the doubling, in steps of the doubling.
    let part = (u128::from(us - (1 << doubling)) * u128::from(STEPS)) >> doubling;
    let all = (STEPS * DOUBLINGS - 1) as usize;
    (doubling as usize * STEPS as usize + usize::try_from(part).unwrap_or(0)).min(all)
}

/// Returns the end of a step.
fn end(step: usize) -> Duration {
    let (doubling, part) = (step as u64 / u64::from(STEPS), step as u64 % u64::from(STEPS));
    Duration::from_micros((1_u64 << doubling) + (((part + 1) << doubling) / u64::from(STEPS)))
}

/// The engine's measures of itself.
#[derive(Clone, Default)]
pub struct Measures {
    /// The durations of commits.
    pub commits: Arc<Durations>,
    /// The times for which agents have waited for locks that they got.
    pub lock_waits: Arc<Durations>,
    /// The number of commands that wait for the engine.
    queued: Arc<AtomicI64>,
    /// Further counts, once they are requested.
    observed: Arc<OnceLock<Observed>>,
}

impl Measures {
    pub(crate) fn came(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn went(&self) {
        // A command may leave the queue before its sender has counted it.
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts more from now on: commands, batches, tasks, calls and the store. Before that, the cost is a look at one pointer.
    pub fn observe(&self) {
        self.observed.get_or_init(Observed::default);
    }

    /// Returns the counts since [`Measures::observe`]; `None` before that.
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.get()
    }

    /// Watches a command on its way, if commands are counted.
    pub(crate) fn watch(&self, door: Door, verb: VerbName) -> Watch<'_> {
        Watch::of(self.observed(), door, verb)
    }

    /// Returns how many commands wait for the engine at this moment.
    pub fn queued(&self) -> u64 {
        u64::try_from(self.queued.load(Ordering::Relaxed)).unwrap_or(0)
    }
}
