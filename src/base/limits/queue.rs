//! Bounds of the queue of work.

/// Tasks that one task may wait for. A build waits for its parts, and an asker lists these by hand.
pub const AFTER_MAX: usize = 32;

/// Attempts that may follow the first one; more would hide the problem.
pub const RETRIES_MAX: u32 = 5;

/// The longest wait for the next attempt, in milliseconds: an hour.
pub const RETRY_DELAY_MS_MAX: u64 = 60 * 60 * 1000;

/// Pools of workers. They are written by hand.
pub const POOLS_MAX: usize = 32;

/// Tasks that may wait for a place in one pool; as many as all unfinished tasks.
pub const POOL_WAITING_MAX: u32 = 10_000;

/// The longest label of a host, in bytes.
pub const LABEL_LEN_MAX: usize = 64;

/// Waiting tasks that are searched for a circle; beyond that, a delegation is refused because it could begin one.
pub const CIRCLE_LOOKED_AT_MAX: usize = 20_000;

/// The time limit of a task whose asker names none, in seconds. DevIt 1.5 has half an hour, and the other doors follow it: a task takes
/// as long through each of them.
pub const DELEGATION_TIMEOUT_S: u64 = 30 * 60;
