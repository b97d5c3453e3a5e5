//! Bounds of agents' programs: their entries, their log-ins, and what they say that they have used.

/// Most tokens, or millionths of a US dollar, that one run may claim to have used; more is cut.
pub const USAGE_CLAIM_MAX: u64 = 1_000_000_000_000;

/// Most that a sum of a day, a worker and a model holds, so that sums of sums fit into the store's numbers.
pub const USAGE_SUM_MAX: u64 = 10_000_000_000_000;

/// Models of one worker whose usage is summed apart on one day; names are claims, and further ones share a row.
pub const USAGE_MODELS_MAX: i64 = 32;

/// Days for which sums of usage are kept.
pub const USAGE_DAYS_KEPT: u64 = 400;

/// Rows of sums in one answer; a terminal shows no more with sense.
pub const COST_ROWS_MAX: usize = 500;

/// Largest file of settings, in bytes; the complete sample has a few thousand.
pub const SETTINGS_FILE_BYTES_MAX: u64 = 256 << 10;

/// Largest file with a log-in of an agent's program, in bytes; they have some thousand.
pub const LOGIN_FILE_BYTES_MAX: u64 = 256 << 10;
