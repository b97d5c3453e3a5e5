//! Watches the system's clock. If the clock is set ahead or back, that is logged, put on record, and shown for as
//! long as the daemon runs.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Daemon, Shared, notice_addresses, now};
use provost_api::wire;
use provost_base::Timestamp;
use provost_base::limits::CLOCK_JUMP_MS_MIN;
use provost_effects::Notices;
use provost_engine::Engine;
use provost_system as system;

/// Compares the clocks, and remembers when the system's clock was set.
pub(super) struct Watch {
    engine: Engine,
    seen: Mutex<Seen>,
}

struct Seen {
    /// The system's clock minus boot time: constant until the clock is set.
    offset: i128,
    /// Boot time minus the time of timers: constant until the machine sleeps.
    slept: Duration,
    began: Instant,
    last: Option<Jump>,
}

/// A change of the clock by setting it.
#[derive(Clone, Copy)]
struct Jump {
    /// The change in milliseconds; negative if it was set back.
    by_ms: i64,
    /// The time that the clock showed when this was noticed.
    to: Timestamp,
}

/// Returns the function for the answer to `GET /about`, with the notes about the clock and the store at that moment.
pub(super) fn told_with(
    shared: Arc<Mutex<Shared>>,
    watch: Arc<Watch>,
    notices: Arc<OnceLock<Notices>>,
) -> Box<dyn Fn() -> wire::About + Send + Sync> {
    Box::new(move || {
        let mut about = shared.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        if let Some(notices) = notices.get() {
            notice_addresses::with_attempts(&mut about.notices, notices);
        }
        about.notes.extend(watch.note());
        about.notes.extend(watch.engine.note().map(String::from));
        about.broken = watch.engine.trouble().map(|why| format!("the store takes nothing: {why}"));
        about
    })
}

impl Watch {
    pub(super) fn new(engine: Engine) -> Self {
        let began = Instant::now();
        let seen = Seen { offset: offset(), slept: slept(began), began, last: None };
        Self { engine, seen: Mutex::new(seen) }
    }

    /// Returns how far the log's time is ahead of the system's clock, in milliseconds.
    fn ahead_ms(&self) -> i64 {
        self.engine.now().0.saturating_sub(now().0)
    }

    /// Checks whether the clock was set, and whether the machine has slept, since the last check.
    fn look(&self) -> (Option<Jump>, bool) {
        // Each member is replaced as a whole.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, slept) = (offset(), slept(seen.began));
        let by_ms = i64::try_from((offset - seen.offset) / 1_000_000).unwrap_or(i64::MAX);
        let woke = slept > seen.slept + Duration::from_millis(CLOCK_JUMP_MS_MIN);
        (seen.offset, seen.slept) = (offset, slept);
        let jump = (by_ms.unsigned_abs() >= CLOCK_JUMP_MS_MIN).then(|| Jump { by_ms, to: now() });
        seen.last = jump.or(seen.last);
        (jump, woke)
    }

    /// Returns the note for people, if there is one.
    fn note(&self) -> Option<String> {
        let last = self.seen.lock().unwrap_or_else(PoisonError::into_inner).last;
        let ahead = self.ahead_ms();
        let was = last.map(|it| {
            let way = if it.by_ms < 0 { "back" } else { "ahead" };
            format!("the system's clock was set {way} by {}, to {}", in_words(it.by_ms), it.to)
        });
        let differs = (ahead.unsigned_abs() >= CLOCK_JUMP_MS_MIN).then(|| {
            let (by, than) = (in_words(ahead), if ahead > 0 { "ahead of" } else { "behind" });
            let until = match ahead > 0 {
                true => "it never goes back, and comes closer to it by a hundredth of the time that passes",
                false => "it takes the rest up when nothing is leased, waiting or running",
            };
            format!(
                "the log's time is {by} {than} the system's clock; {until}; leases, limits and approvals last as long \
                 as they should"
            )
        });
        match (was, differs) {
            (None, None) => None,
            (was, differs) => {
                let frames = last.filter(|it| it.by_ms < 0).map(|_| {
                    "DevIt's frames that are dated before what was believed already are refused as possible repeats \
                     until the clock has passed that, or the daemon is started again"
                        .to_owned()
                });
                Some([was, differs, frames].into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
        }
    }
}

impl Daemon {
    /// Checks for a clock that was set, and for a machine that has slept.
    pub(super) async fn look_at_the_clock(&self) {
        let (jump, woke) = self.clock.look();
        if woke {
            tracing::info!("the machine has slept");
        }
        // Timers do not count sleep, and a due time may have passed; the store's files are checked, too.
        self.engine().wake();
        let Some(Jump { by_ms, to }) = jump else { return };
        let ahead_ms = self.clock.ahead_ms();
        tracing::warn!(by_ms, %to, log_ahead_ms = ahead_ms, "the system's clock was set; durations go on as they were");
        let details = json!({ "by_ms": by_ms, "to": to.rfc3339(), "log_ahead_ms": ahead_ms });
        if let Err(err) = self.record("clock.set", "the system's clock", details).await {
            tracing::warn!("that the clock was set is not on record: {err:#}");
        }
    }
}

fn offset() -> i128 {
    let nanos = |it: Duration| i128::try_from(it.as_nanos()).unwrap_or(i128::MAX / 4);
    nanos(system::wall_time()) - nanos(system::boot_time())
}

fn slept(began: Instant) -> Duration {
    system::boot_time().saturating_sub(began.elapsed())
}

/// Writes a time as `1 h 0 min 3 s`; below a minute, the seconds alone.
fn in_words(ms: i64) -> String {
    let s = ms.unsigned_abs() / 1000;
    match (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, min, s) => format!("{min} min {s} s"),
        (0, h, min, _) => format!("{h} h {min} min"),
        (d, h, _, _) => format!("{d} d {h} h"),
    }
}
