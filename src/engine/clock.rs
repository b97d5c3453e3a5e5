//! The engine's clock.
//!
//! There are two clocks that do not agree. The *system's clock* shows the time of day; a person, a time server or a
//! virtual machine sets it, ahead or back. *Boot time* goes forward at a constant rate, sleep included, and means
//! nothing to people. Durations (leases, approvals, limits) have to use the second, and recorded times should look
//! like the first. [`SteadyClock`] goes by boot time, begins at the time of the system's clock, and follows it so
//! slowly that no duration is off by more than a hundredth. If the system's clock is far ahead and no duration is
//! measured, it adopts that time at once; if the system's clock was set back, it waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use provost_base::Timestamp;
use provost_base::limits::CLOCK_FOLLOWS_PART;
use provost_system as system;

/// A source of time. The real one is a [`SteadyClock`]; tests set theirs by hand.
pub trait Clock: Send + Sync {
    /// Returns the time now. The engine never lets it run backwards.
    fn now(&self) -> Timestamp;

    /// Returns the time of the system's clock, which may differ.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// Keeps the clock from showing an earlier time than this.
    fn at_least(&self, _past: Timestamp) {}

    /// Lets the clock adopt a time of the system's clock that is ahead, since no duration is measured at the moment.
    fn catch_up(&self) {}
}

/// The system's clock, unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(system::wall_time().as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that only goes forward. All clones are the same clock.
#[derive(Clone, Debug)]
pub struct SteadyClock(Arc<Mutex<Steady>>);

#[derive(Debug)]
struct Steady {
    /// Boot time at the last look.
    boot: Duration,
    /// The time that this clock showed at that look, in nanoseconds since the epoch.
    nanos: i128,
}

impl Default for SteadyClock {
    fn default() -> Self {
        let (boot, wall) = (system::boot_time(), system::wall_time());
        Self(Arc::new(Mutex::new(Steady { boot, nanos: nanos(wall) })))
    }
}

impl SteadyClock {
    fn read(&self, change: impl FnOnce(&mut Steady)) -> Timestamp {
        // The two numbers are replaced together, so a panic elsewhere has not harmed them.
        let mut steady = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steady.go_on(system::boot_time(), system::wall_time());
        change(&mut steady);
        Timestamp(i64::try_from(steady.nanos / 1_000_000).unwrap_or(i64::MAX))
    }
}

impl Steady {
    fn go_on(&mut self, boot: Duration, wall: Duration) {
        let passed = nanos(boot.saturating_sub(self.boot));
        let behind = nanos(wall) - (self.nanos + passed);
        let most = passed / CLOCK_FOLLOWS_PART;
        self.nanos += passed + behind.clamp(-most, most);
        self.boot = self.boot.max(boot);
    }
}

fn nanos(it: Duration) -> i128 {
    i128::try_from(it.as_nanos()).unwrap_or(i128::MAX / 4)
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.read(|_| {})
    }

    fn wall(&self) -> Timestamp {
        SystemClock.now()
    }

    fn at_least(&self, past: Timestamp) {
        self.read(|it| it.nanos = it.nanos.max(i128::from(past.0) * 1_000_000));
    }

    fn catch_up(&self) {
        self.read(|it| it.nanos = it.nanos.max(nanos(system::wall_time())));
    }
}

/// The clock of a store that several daemons share, which all of them use: its time at the last turn, and the time passed since.
pub(super) struct StoreClock {
    at: Mutex<(Timestamp, Instant)>,
    wall: Arc<dyn Clock>,
}

impl StoreClock {
    /// Returns a clock that begins at this time. This machine's own clock only counts for the time of day.
    pub(super) fn at(time: Timestamp, wall: Arc<dyn Clock>) -> Self {
        Self { at: Mutex::new((time, Instant::now())), wall }
    }

    /// Takes over the time that the store has given.
    pub(super) fn tell(&self, time: Timestamp) {
        let now = self.now().max(time);
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = (now, Instant::now());
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let (at, since) = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp(at.0.saturating_add(i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)))
    }

    fn wall(&self) -> Timestamp {
        self.wall.wall()
    }
}
