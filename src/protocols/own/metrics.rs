//! The metrics of the daemon: gauges from its present state, and the engine's counts since the start.
//!
//! The state is queried once, for numbers only. No gauge depends on the past, and no metric contains texts of agents or people.

use std::path::PathBuf;
use std::time::Duration;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::metric::*;
use provost_api::{endpoints, wire};
use provost_base::Timestamp;
use provost_base::limits::ENGINE_QUEUE_MAX;
use provost_domain::Door;
use provost_domain::view::{Crowd, Gauges, GaugesOut};
use provost_engine::{Durations, ENTRY_FORMAT, Found, HOST_STATES, Observed, Signal, TaskEnd, WorkerUse};
use provost_service::{Disk, disk};

/// The exponents of two of the bounds, in microseconds: from 128 microseconds to 8.4 seconds, for the work of machines.
const OF_MACHINES: std::ops::RangeInclusive<u32> = 7..=23;
/// The same from an eighth of a second to a day and a half, for the waits of people and agents.
const OF_WAITS: std::ops::RangeInclusive<u32> = 17..=37;
/// The exponents of two of the bounds of batches.
const OF_BATCHES: std::ops::RangeInclusive<u32> = 1..=10;
/// Microseconds in a second, and millionths in a dollar.
const MICRO: f64 = 1_000_000.0;

impl Handles<endpoints::Metrics> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Metrics> {
        self.metrics().await
    }
}

impl Own {
    /// Sets the most workers that may run at a time.
    pub fn has_places_for(&self, workers: usize) {
        // This is called once, before any door is open.
        let _ = self.0.places.set(workers);
    }

    /// Returns all metrics; `None` if the engine does not answer.
    pub async fn told_metrics(&self) -> Option<wire::Metrics> {
        self.metrics().await.ok()
    }

    /// Returns all metrics.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn metrics(&self) -> Answered<wire::Metrics> {
        let (engine, about) = (self.0.provost.engine(), (self.0.about)());
        // This comes before this request's own query waits there.
        let waiting = engine.measures().queued();
        let gauges = self.0.provost.view(Gauges).await.map_err(map::fault)?;
        let state = PathBuf::from(&about.state_dir);
        let disk = tokio::task::spawn_blocking(move || disk(&state)).await.unwrap_or_default();
        let mut all = Families::default();
        let is_up = engine.trouble().is_none() && !engine.is_over();
        all.of_the_daemon(&about, waiting, is_up, &disk);
        all.of_the_state(&gauges, self.0.places.get().copied());
        all.histogram(BATCH_COMMIT_SECONDS, &[], &engine.measures().commits, OF_MACHINES);
        all.histogram(LOCK_WAIT_SECONDS, &[], &engine.measures().lock_waits, OF_WAITS);
        let observed = engine.measures().observed();
        if let Some(observed) = observed {
            all.of_commands(observed);
            all.of_the_store(observed);
            for end in TaskEnd::ALL {
                all.histogram(TASK_SECONDS, &[end.as_str()], observed.tasks(end), OF_WAITS);
            }
            observed.used().iter().for_each(|(worker, used)| all.of_a_worker(worker, used));
            all.of_the_collector(observed);
        }
        Ok(wire::Metrics { counting: observed.is_some(), families: all.in_order() })
    }
}

/// The families of metrics so far.
#[derive(Default)]
struct Families(Vec<wire::MetricFamily>);

impl Families {
    fn put(&mut self, metric: Metric, sample: wire::MetricSample) {
        let known = self.0.iter().position(|it| it.name == metric.name);
        let at = known.unwrap_or_else(|| {
            self.0.push(metric.family());
            self.0.len() - 1
        });
        self.0[at].samples.push(sample);
    }

    fn value(&mut self, metric: Metric, labels: &[&str], value: impl Into<Number>) {
        self.put(metric, metric.sample(labels, value.into().0));
    }

    /// Adds a histogram of microseconds, in seconds.
    fn histogram(
        &mut self,
        metric: Metric,
        labels: &[&str],
        durations: &Durations,
        bounds: std::ops::RangeInclusive<u32>,
    ) {
        let it = durations.histogram(bounds);
        let bucket = |(exponent, count): &(u32, u64)| ((1_u64 << exponent) as f64 / MICRO, *count);
        let (buckets, sum) = (it.below.iter().map(bucket).collect(), it.sum_us as f64 / MICRO);
        self.put(metric, metric.spread(labels, wire::MetricHistogram { buckets, sum, count: it.count }));
    }

    fn of_the_daemon(&mut self, about: &wire::About, waiting: u64, is_up: bool, disk: &Disk) {
        let version = about.version.rsplit('/').next().unwrap_or_default();
        self.value(BUILD_INFO, &[version, &ENTRY_FORMAT.to_string()], 1_u64);
        if let Ok(started) = chrono::DateTime::parse_from_rfc3339(&about.started_at) {
            self.value(START_TIME, &[], Number(started.timestamp_millis() as f64 / 1_000.0));
        }
        self.value(COMMANDS_WAITING, &[], waiting);
        self.value(COMMANDS_WAITING_MAX, &[], ENGINE_QUEUE_MAX as u64);
        self.value(STORE_UP, &[], u64::from(is_up));
        disk.store.into_iter().for_each(|it| self.value(STORE_BYTES, &[], it));
        disk.free.into_iter().for_each(|it| self.value(STORE_DISK_FREE_BYTES, &[], it));
    }

    fn of_the_state(&mut self, it: &GaugesOut, places: Option<usize>) {
        self.value(JOURNAL_HEAD, &[], it.event.0);
        for (state, count) in [("held", it.locks_held), ("lapsed", it.locks_lapsed)] {
            self.value(LOCKS, &[state], count);
        }
        self.value(LOCK_WAITERS, &[], it.lock_waiters.count);
        self.value(LOCK_WAIT_AGE_MAX, &[], age(it.now, it.lock_waiters));
        self.value(APPROVALS_WAITING, &[], it.approvals.count);
        self.value(APPROVAL_AGE_MAX, &[], age(it.now, it.approvals));
        let tasks = [
            ("awaiting", it.awaiting),
            ("waiting", it.waiting),
            ("retrying", it.retrying),
            ("queued", it.queued.count),
            ("assigned", it.assigned),
            ("running", it.running),
        ];
        tasks.into_iter().for_each(|(state, count)| self.value(TASKS, &[state], count));
        self.value(QUEUE_AGE_MAX, &[], age(it.now, it.queued));
        places.into_iter().for_each(|most| self.value(WORKERS_FREE, &[], most.saturating_sub(it.started)));
        let owed = [("hook", it.hooks), ("notice", it.notices), ("job", it.jobs), ("apply", it.applies)];
        owed.into_iter().for_each(|(kind, count)| self.value(EFFECTS_OWED, &[kind], count));
        self.value(MAIL_QUEUED, &[], it.mail);
    }

    fn of_commands(&mut self, observed: &Observed) {
        for (verb, door, outcome, count) in observed.commands() {
            self.value(COMMANDS, &[verb.as_str(), door.name(), outcome.as_str()], count);
        }
        for door in Door::ALL {
            let times = observed.command_times(*door);
            if times.spread().is_some() {
                self.histogram(COMMAND_SECONDS, &[door.name()], times, OF_MACHINES);
            }
        }
        let it = observed.batches.histogram(OF_BATCHES);
        // A whole number below a power of two is at most one less.
        let bucket = |(exponent, count): &(u32, u64)| (((1_u64 << exponent) - 1) as f64, *count);
        let (buckets, sum) = (it.below.iter().map(bucket).collect(), it.sum_us as f64);
        let spread = wire::MetricHistogram { buckets, sum, count: it.count };
        self.put(BATCH_COMMANDS, BATCH_COMMANDS.spread(&[], spread));
    }

    fn of_the_store(&mut self, observed: &Observed) {
        self.value(STORE_ERRORS, &[], observed.store_errors());
        for found in Found::ALL {
            self.value(STORE_UNKNOWN_COMMITS, &[found.as_str()], observed.unknown(found));
        }
        for ((_, state), count) in HOST_STATES.iter().zip(observed.hosts()) {
            self.value(HOSTS, &[*state], count);
        }
        // A store with a single writer is never behind itself.
        let head = observed.log_head();
        let stale = head.map_or(Duration::ZERO, |_| observed.store_silent_for());
        self.value(STALE_SECONDS, &[], Number(stale.as_secs_f64()));
        if let Some(head) = head {
            self.value(LOG_HEAD, &[], head);
            self.value(LOG_BEHIND, &[], observed.log_behind());
            observed.timeline().into_iter().for_each(|it| self.value(TIMELINE, &[], it));
            self.value(HOSTS_BURIED, &[], observed.buried());
            self.histogram(BATCH_BEGIN_SECONDS, &[], &observed.turns, OF_MACHINES);
            self.histogram(BATCH_FOLD_SECONDS, &[], &observed.folds, OF_MACHINES);
        }
    }

    fn of_a_worker(&mut self, worker: &str, used: &WorkerUse) {
        let it = &used.counted;
        self.value(MODEL_CALLS, &[worker], it.calls);
        let tokens = [
            ("input", it.input),
            ("output", it.output),
            ("cache_read", it.cache_read),
            ("cache_write", it.cache_write),
            ("guessed", it.guessed_input.saturating_add(it.guessed_output)),
        ];
        tokens.into_iter().for_each(|(kind, count)| self.value(MODEL_TOKENS, &[worker, kind], count));
        self.value(MODEL_COST, &[worker], Number(used.microusd as f64 / MICRO));
        self.value(MODEL_UNPRICED, &[worker], used.unpriced_calls);
        for (direction, bytes) in [("sent", used.sent), ("received", used.received)] {
            self.value(EGRESS_BYTES, &[worker, direction], bytes);
        }
        self.value(EGRESS_REFUSED, &[worker], used.refused);
    }

    fn of_the_collector(&mut self, observed: &Observed) {
        let all = Signal::ALL.map(|signal| (signal, observed.exports(signal)));
        // If nothing was sent, there is no collector.
        if all.iter().all(|(_, counts)| *counts == (0, 0)) {
            return;
        }
        for (signal, (taken, failed)) in all {
            self.value(OTLP_REQUESTS, &[signal.as_str(), "taken"], taken);
            self.value(OTLP_REQUESTS, &[signal.as_str(), "failed"], failed);
        }
        self.value(OTLP_SPANS_DROPPED, &[], observed.spans_dropped());
    }

    /// Returns the families in the order of the table.
    fn in_order(self) -> Vec<wire::MetricFamily> {
        let place = |it: &wire::MetricFamily| METRICS.iter().position(|row| row.name == it.name);
        let mut families = self.0;
        families.sort_by_key(place);
        families
    }
}

/// A number in the form of a metric.
struct Number(f64);

impl From<u64> for Number {
    fn from(it: u64) -> Self {
        Self(it as f64)
    }
}

impl From<usize> for Number {
    fn from(it: usize) -> Self {
        Self(it as f64)
    }
}

/// Returns how long the oldest has waited, in seconds; zero if none waits.
fn age(now: Timestamp, crowd: Crowd) -> Number {
    Number(crowd.since.map_or(0, |since| now.since_ms(since)) as f64 / 1_000.0)
}
