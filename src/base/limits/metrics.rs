//! Bounds of what is seen from outside: metrics and health.

/// Workers that are told apart in metrics; what further ones use is counted together. Each is some lines in every answer.
pub const OBSERVED_WORKERS_MAX: usize = 100;

/// Connections to the listener for metrics at a time: a few collectors and probes.
pub const METRICS_CONNECTIONS_MAX: usize = 16;

/// How long a head may take there, and how long a connection may be silent, in milliseconds. A collector asks every few seconds on
/// a new connection or on one that it keeps.
pub const METRICS_HEAD_MS_MAX: u64 = 70_000;

/// How long a reader may leave an answer unread, in milliseconds.
pub const METRICS_WRITE_MS_MAX: u64 = 10_000;

/// For how long an answer is given again, in milliseconds, so that no crowd of readers keeps the engine busy.
pub const METRICS_FRESH_MS: u64 = 250;

/// How long the engine may take to answer a question about its health, in milliseconds. One whose store is slow takes longer.
pub const READY_ASK_MS_MAX: u64 = 2_000;

/// How long the store may have been silent when a daemon counts as ready, in milliseconds.
pub const READY_STORE_MS_MAX: u64 = 10_000;

/// Spans that wait to be sent to a collector; further ones are dropped, and counted. Some seconds of a busy daemon.
pub const TELEMETRY_SPANS_MAX: usize = 4_096;

/// Samples of commands that wait to become spans.
pub const TELEMETRY_SAMPLES_MAX: usize = 1_024;

/// How long a daemon that ends waits for a collector to take the last spans, in milliseconds.
pub const TELEMETRY_LAST_MS_MAX: u64 = 1_500;
