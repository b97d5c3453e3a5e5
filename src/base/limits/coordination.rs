//! Bounds of locks, intents and contracts. One tree of processes may have a quarter of them, under all its
//! names.

/// Locks held at once. A lock is for a symbol that an agent edits at this moment; there are never many.
pub const LOCKS_MAX: usize = 20_000;

/// Locks that one agent may hold: so many that no honest one notices.
pub const LOCKS_PER_AGENT_MAX: usize = 4_000;

/// Symbols of one file that a write takes leases on; a write that touches more takes the file.
pub const HELD_IN_A_FILE_MAX: usize = 64;

/// The number of times that a write looks again at others' grants, because another agent got a grant meanwhile.
/// Each time, one agent has got what it wanted.
pub const HOLD_LOOKS_MAX: usize = 64;

/// Bytes that are read of a file in which git names commits.
pub const GIT_REFS_BYTES_MAX: u64 = 16 << 20;

/// Locks that may be held under all names of one tree of processes, so that one agent cannot take all.
pub const LOCKS_OF_ONE_MAX: usize = LOCKS_MAX / 4;

/// Resources that may be held under all names of one tree of processes. An agent works with a few at a time, and a
/// range of ports must be left to others.
pub const RESOURCES_OF_ONE_MAX: usize = 256;

/// Resources that one worker may need.
pub const NEEDS_MAX: usize = 16;

/// The highest number of units of a counted kind of resource.
pub const COUNTED_MAX: u32 = 10_000;

/// Agents that wait for a lock at once.
pub const WAITERS_MAX: usize = 1_000;

/// The number of these that may share a tree of processes.
pub const WAITERS_OF_ONE_MAX: usize = WAITERS_MAX / 4;

/// Rows of each kind of wait in one answer: more than a person reads, and few enough that the engine is not held up.
pub const WAITS_OF_A_KIND_MAX: usize = 256;

/// Circles of waiting that were refused and are remembered: more than a person looks at.
pub const CIRCLES_KEPT_MAX: usize = 64;

/// The time for which they are remembered, in milliseconds: an hour.
pub const CIRCLES_KEPT_MS: u64 = 3_600_000;

/// Agents of such a circle that are named: more than a sentence holds.
pub const CIRCLE_MEMBERS_MAX: usize = 32;

/// The shortest interval at which the same circle is recorded, in milliseconds, so that an agent that tries again
/// and again does not fill the journal.
pub const CIRCLE_TOLD_MS: u64 = 60_000;

/// Intents that are declared or active at once.
pub const INTENTS_MAX: usize = 20_000;

/// Intents that one agent may have declared at once.
pub const INTENTS_PER_AGENT_MAX: usize = 4_000;

/// Intents that may be declared at once under all names of one tree of processes.
pub const INTENTS_OF_ONE_MAX: usize = INTENTS_MAX / 4;

/// Settled intents that can still be queried; the oldest goes first.
pub const INTENTS_SETTLED_MAX: usize = 1_000;

/// Files of one intent.
pub const INTENT_FILES_MAX: usize = 1_000;

/// Symbols of one intent.
pub const INTENT_SYMBOLS_MAX: usize = 10_000;

/// Symbols of one intent, times its files: each file has names for each symbol.
pub const INTENT_PLACES_MAX: usize = 20_000;

/// Contracts kept, in any state; the oldest that binds no agent goes first.
pub const CONTRACTS_MAX: usize = 10_000;

/// Contracts that are open at once under all names of one tree of processes.
pub const CONTRACTS_OF_ONE_MAX: usize = CONTRACTS_MAX / 4;

/// The longest kind of a resource, in bytes.
pub const RESOURCE_KIND_LEN_MAX: usize = 32;

/// The longest value of a resource, in bytes.
pub const RESOURCE_VALUE_LEN_MAX: usize = 128;

/// How long a lock lasts whose holder names no time, in seconds: longer than an edit takes, and soon enough over where its holder has
/// died without a word.
pub const LOCK_TTL_S: u64 = 30 * 60;
