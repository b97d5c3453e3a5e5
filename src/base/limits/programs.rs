//! Bounds of agents' programs: their entries, their log-ins, and their reports of usage.

/// The most tokens, or millionths of a US dollar, that one run may claim to have used; a higher claim is cut.
pub const USAGE_CLAIM_MAX: u64 = 1_000_000_000_000;

/// The highest value of a sum for a day, a worker and a model, so that sums of sums fit into the store's numbers.
pub const USAGE_SUM_MAX: u64 = 10_000_000_000_000;

/// Models of one worker whose usage is summed separately on one day; names are claims, and further ones share a row.
pub const USAGE_MODELS_MAX: i64 = 32;

/// Models whose tokens one sum of a budget keeps separately; further ones share a row, which has no price.
pub const BUDGET_MODELS_MAX: usize = 32;

/// The longest time for which a call of a model waits for a person's answer about a budget; clients give up after ten minutes.
pub const BUDGET_HOLD_MS_MAX: u64 = 5 * 60 * 1000;

/// Prices, and budgets, of a configuration.
pub const PRICES_MAX: usize = 256;

/// Rows of counted tokens that are read for one answer: each model of each agent, day or task.
pub const COUNTED_ROWS_MAX: usize = 20_000;

/// Days for which sums of usage are kept.
pub const USAGE_DAYS_KEPT: u64 = 400;

/// Rows of sums in one answer; a terminal cannot usefully show more.
pub const COST_ROWS_MAX: usize = 500;

/// The largest file of settings, in bytes; the complete sample has a few thousand.
pub const SETTINGS_FILE_BYTES_MAX: u64 = 256 << 10;

/// The largest file with a log-in of an agent's program, in bytes; they have some thousand.
pub const LOGIN_FILE_BYTES_MAX: u64 = 256 << 10;
