//! Bounds of editors' requests. A6s.

/// Jobs that are not over.
pub const JOBS_LIVE_MAX: usize = 1_000;

/// The number of these that may come from one tree of processes.
pub const JOBS_OF_ONE_MAX: usize = JOBS_LIVE_MAX / 4;

/// Jobs that are over and remembered; the oldest are forgotten first.
pub const JOBS_KEPT_MAX: usize = 500;

/// Changes of progress that a listener may be behind before it misses some.
pub const PROGRESS_BUFFERED: usize = 1_024;

/// Bytes of a job's log; further output of its workers is not kept.
pub const JOB_LOG_BYTES_MAX: u64 = 64 << 20;

/// Bytes of the logs of all jobs; the oldest go first.
pub const JOB_LOGS_BYTES_MAX: u64 = 1 << 30;

/// The part of the output of a job's workers that editors are shown, in bytes. A6s 6.3.
pub const JOB_OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The longest answer in words, in bytes. A6s 6.5.
pub const JOB_ANSWER_BYTES_MAX: usize = 200 << 10;

/// The part of a worker's last output that the reason of its job's failure has, in bytes. A6s 6.2.
pub const JOB_ERROR_BYTES_MAX: usize = 2 << 10;
