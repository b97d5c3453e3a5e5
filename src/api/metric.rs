//! The table of metrics: each name with its kind, its labels and what it says.
//!
//! The code that fills a metric names its row, so that no name exists beside the table. `docs/metrics.md` has what is printed from it. The values
//! of a label are few and known: no agent, path, task or text of anybody's is one. `worker` is a worker of the configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::wire::{MetricFamily, MetricHistogram, MetricSample};

/// The kind of a metric's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Rises, and begins again at zero with each start of the daemon.
    Counter,
    /// As it is at the moment.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// The name, with its unit.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Whether it is there only while `[metrics] enabled` is `true`.
    pub counted: bool,
    /// Its meaning, in a sentence.
    pub says: &'static str,
}

macro_rules! metrics {
    ($($(#[doc = $says:literal])+ $Row:ident $name:literal $kind:ident [$($label:literal),*] $($counted:ident)?;)+) => {
        $(
            $(#[doc = $says])+
            pub const $Row: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                counted: metrics!(@counted $($counted)?),
                says: concat!($($says),+).trim_ascii(),
            };
        )+

        /// All metrics, in the order in which they are told.
        pub const METRICS: &[Metric] = &[$($Row,)+];
    };
    (@counted counted) => { true };
    (@counted) => { false };
}

metrics! {
    /// One, with the version of the daemon and the newest format of a shared log that it writes.
    BUILD_INFO "provost_build_info" Gauge ["version", "format"];
    /// When the daemon was started, in seconds since 1970.
    START_TIME "provost_start_time_seconds" Gauge [];
    /// Commands that the engine has answered: the verb, the door by which it came, and what has become of it.
    COMMANDS "provost_commands_total" Counter ["verb", "door", "outcome"] counted;
    /// From a command's call to its answer, which is after its commit.
    COMMAND_SECONDS "provost_command_seconds" Histogram ["door"] counted;
    /// Requests that wait for the engine.
    COMMANDS_WAITING "provost_commands_waiting" Gauge [];
    /// How many requests may wait there; further ones are refused.
    COMMANDS_WAITING_MAX "provost_commands_waiting_max" Gauge [];
    /// How many commands one commit had.
    BATCH_COMMANDS "provost_batch_commands" Histogram [] counted;
    /// How long the turn at a shared store was waited for.
    BATCH_BEGIN_SECONDS "provost_batch_begin_seconds" Histogram [] counted;
    /// How long it took each time to read in entries of other hosts.
    BATCH_FOLD_SECONDS "provost_batch_fold_seconds" Histogram [] counted;
    /// How long commits took.
    BATCH_COMMIT_SECONDS "provost_batch_commit_seconds" Histogram [];
    /// One while the store takes writes, and zero while it does not.
    STORE_UP "provost_store_up" Gauge [];
    /// How often the store has refused or failed.
    STORE_ERRORS "provost_store_errors_total" Counter [] counted;
    /// Commits whose answer was lost, by what was found out of them: stored, not_stored, never.
    STORE_UNKNOWN_COMMITS "provost_store_unknown_commits_total" Counter ["found"] counted;
    /// The size of the store in the state folder.
    STORE_BYTES "provost_store_bytes" Gauge [];
    /// The free space on the disk of the state folder.
    STORE_DISK_FREE_BYTES "provost_store_disk_free_bytes" Gauge [];
    /// How long ago this daemon last heard from a store that it shares.
    STALE_SECONDS "provost_stale_seconds" Gauge [] counted;
    /// The number of the newest event of the journal.
    JOURNAL_HEAD "provost_journal_head" Gauge [];
    /// The newest entry of a shared log that this daemon has.
    LOG_HEAD "provost_log_head" Gauge [] counted;
    /// Entries of a shared log that this daemon did not have yet at its last turn.
    LOG_BEHIND "provost_log_behind" Gauge [] counted;
    /// The timeline of the server that has a shared store. It rises with each failover.
    TIMELINE "provost_timeline" Gauge [] counted;
    /// Hosts that this daemon has found dead, so that what they held was freed.
    HOSTS_BURIED "provost_hosts_buried_total" Counter [] counted;
    /// Hosts that the store knows, by state: waiting, live, draining, down, removed.
    HOSTS "provost_hosts" Gauge ["state"] counted;
    /// Locks, by state: held, lapsed.
    LOCKS "provost_locks" Gauge ["state"];
    /// Agents that wait for a lock or a resource.
    LOCK_WAITERS "provost_lock_waiters" Gauge [];
    /// The longest time that an agent has waited for a lock until now.
    LOCK_WAIT_AGE_MAX "provost_lock_wait_age_seconds_max" Gauge [];
    /// How long agents have waited for locks that they got.
    LOCK_WAIT_SECONDS "provost_lock_wait_seconds" Histogram [];
    /// Commands that wait for approval.
    APPROVALS_WAITING "provost_approvals_waiting" Gauge [];
    /// How long the oldest of them has waited.
    APPROVAL_AGE_MAX "provost_approval_age_seconds_max" Gauge [];
    /// Tasks that are not finished, by state: awaiting, waiting, retrying, queued, assigned, running.
    TASKS "provost_tasks" Gauge ["state"];
    /// The longest time that a queued task has waited for its worker until now.
    QUEUE_AGE_MAX "provost_queue_age_seconds_max" Gauge [];
    /// From a task's acceptance to its end, by that end: completed, failed, cancelled.
    TASK_SECONDS "provost_task_seconds" Histogram ["outcome"] counted;
    /// Workers that could be started now, of those that `limits.workers` allows.
    WORKERS_FREE "provost_workers_free" Gauge [];
    /// The actions outside of the daemon that it still owes, by kind: hook, notice, job, apply.
    EFFECTS_OWED "provost_effects_owed" Gauge ["kind"];
    /// Messages in the queues of agents.
    MAIL_QUEUED "provost_mail_queued" Gauge [];
    /// Calls to models by a worker's runs, as the proxy counts them.
    MODEL_CALLS "provost_model_calls_total" Counter ["worker"] counted;
    /// Their tokens, by kind: input, output, cache_read, cache_write, and guessed where the service does not say how many there were.
    MODEL_TOKENS "provost_model_tokens_total" Counter ["worker", "kind"] counted;
    /// The cost of the calls that have a price, in US dollars.
    MODEL_COST "provost_model_cost_usd_total" Counter ["worker"] counted;
    /// Calls of models without a price.
    MODEL_UNPRICED "provost_model_unpriced_calls_total" Counter ["worker"] counted;
    /// Bytes over the network of a worker's ended runs, by direction: sent, received.
    EGRESS_BYTES "provost_egress_bytes_total" Counter ["worker", "direction"] counted;
    /// Connections of a worker's ended runs that were refused.
    EGRESS_REFUSED "provost_egress_refused_total" Counter ["worker"] counted;
    /// Requests to the collector of `[telemetry] otlp`, by signal (traces, metrics) and outcome (taken, failed).
    OTLP_REQUESTS "provost_otlp_requests_total" Counter ["signal", "outcome"] counted;
    /// Spans that were sent nowhere, since the collector was away or too many waited.
    OTLP_SPANS_DROPPED "provost_otlp_spans_dropped_total" Counter [] counted;
}

impl Metric {
    /// The family of this name, to be filled.
    pub fn family(&self) -> MetricFamily {
        let (name, kind, help) = (self.name.into(), self.kind.as_str().into(), self.says.into());
        MetricFamily { name, kind, help, samples: Vec::new() }
    }

    /// A sample with these values of its labels, in the order of the row.
    pub fn sample(&self, values: &[&str], value: f64) -> MetricSample {
        MetricSample { labels: self.labelled(values), value, histogram: None }
    }

    /// The same of a histogram.
    pub fn spread(&self, values: &[&str], histogram: MetricHistogram) -> MetricSample {
        MetricSample { labels: self.labelled(values), value: 0.0, histogram: Some(histogram) }
    }

    fn labelled(&self, values: &[&str]) -> BTreeMap<String, String> {
        debug_assert_eq!(
            self.labels.len(),
            values.len(),
            "{} has these labels: {:?}",
            self.name,
            self.labels
        );
        self.labels.iter().zip(values).map(|(label, it)| ((*label).into(), (*it).into())).collect()
    }
}

/// The table of `docs/metrics.md`.
pub fn print_metrics() -> String {
    let mut table =
        "| name | kind | labels | with `enabled` alone | what it says |\n|---|---|---|---|---|\n".to_owned();
    for row in METRICS {
        let labels: Vec<String> = row.labels.iter().map(|it| format!("`{it}`")).collect();
        let labels = if labels.is_empty() { "–".into() } else { labels.join(", ") };
        let counted = if row.counted { "yes" } else { "no" };
        let (name, kind, says) = (row.name, row.kind.as_str(), row.says);
        writeln!(table, "| `{name}` | {kind} | {labels} | {counted} | {says} |")
            .expect("a string takes everything");
    }
    table
}
