//! Divides a daemon's descriptors, and lists the other resources that it needs.

/// Descriptors that one connection takes: its socket, and a handle of the process at its other end.
pub const CONNECTION_DESCRIPTORS_MAX: u64 = 2;

/// Descriptors that are reserved, at least: for the store and its readers, the log, walks through the workspace
/// (two for each level of folders), and some for each worker. If there are fewer than twice as many, half of them.
pub const DESCRIPTORS_KEPT_MIN: u64 = 256;

/// Descriptors that are reserved, at most: for sixteen workers with all their connections to the outside, and as many again.
pub const DESCRIPTORS_KEPT_MAX: u64 = 2_048;

/// Threads that a daemon has soon after its start, in addition to one for each processor.
pub const THREADS_AT_START: usize = 14;

/// Address space that a daemon needs, in bytes: it takes 300 MiB at its start, most of it reserved for
/// threads and never used, and 800 MiB with some workers.
pub const ADDRESS_SPACE_MIN: u64 = 512 << 20;
