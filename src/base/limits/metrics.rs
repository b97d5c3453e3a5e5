//! Bounds of the daemon's view from outside: metrics and health.

/// Workers that metrics distinguish; the usage of further ones is counted together. Each takes some lines in every answer.
pub const OBSERVED_WORKERS_MAX: usize = 100;

/// Connections to the listener for metrics at a time: a few collectors and probes.
pub const METRICS_CONNECTIONS_MAX: usize = 16;

/// The longest time that a head may take there, and that a connection may be silent, in milliseconds. A collector
/// asks every few seconds on a new connection or on one that it keeps.
pub const METRICS_HEAD_MS_MAX: u64 = 70_000;

/// The longest time that a reader may leave an answer unread, in milliseconds.
pub const METRICS_WRITE_MS_MAX: u64 = 10_000;

/// The time for which an answer is reused, in milliseconds, so that a crowd of readers does not keep the engine busy.
pub const METRICS_FRESH_MS: u64 = 250;

/// The longest time that the engine may take to answer a question about its health, in milliseconds. An engine with
/// a slow store takes longer.
pub const READY_ASK_MS_MAX: u64 = 2_000;

/// The longest time that the store of a daemon that counts as ready may have been silent, in milliseconds.
pub const READY_STORE_MS_MAX: u64 = 10_000;

/// Spans that wait to be sent to a collector; further ones are dropped, and counted. Some seconds of a busy daemon.
pub const TELEMETRY_SPANS_MAX: usize = 4_096;

/// Samples of commands that wait to become spans.
pub const TELEMETRY_SAMPLES_MAX: usize = 1_024;

/// The time for which a daemon that ends waits for a collector to take the last spans, in milliseconds.
pub const TELEMETRY_LAST_MS_MAX: u64 = 1_500;
