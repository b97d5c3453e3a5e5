//! Bounds of messages between agents.

/// Agents that the broker door knows at once; who was silent for longest goes first.
pub const POST_AGENTS_MAX: usize = 1_000;

/// Of these, so many are the names of one tree of processes, so that an agent that invents names keeps
/// no other agent out.
pub const POST_AGENTS_OF_ONE_MAX: usize = POST_AGENTS_MAX / 4;

/// Files that are remembered of what one agent says that it works on; a longer list is delivered whole, and
/// its rest compared with nothing.
pub const POST_FILES_MAX: usize = 1_000;

/// Folders and patterns among these: each is compared with every file that an agent works on.
pub const POST_WIDE_MAX: usize = 32;

/// Regions of one file in an intent; with more, all of the file is meant.
pub const POST_REGIONS_MAX: usize = 100;

/// How much of a word in the roster is kept, in bytes: where an agent stands, what it is busy with, its
/// program.
pub const ROSTER_TEXT_MAX: usize = 1_024;

/// Longest pattern of files in a broker message that is taken for a pattern, in bytes.
pub const POST_PATTERN_LEN_MAX: usize = 256;

/// Questions at the broker door that wait for an answer; the oldest of the agent that has most
/// of them goes first.
pub const QUESTIONS_MAX: usize = 1_000;

/// How much of a question is shown, in bytes. Its message has all of it.
pub const QUESTION_SHOWN_MAX: usize = 2_048;

/// Broker messages that wait for an agent that has not been there yet; the oldest goes first.
pub const PARKED_PER_AGENT_MAX: usize = 100;

/// Agents for which broker messages wait although they have not been there yet.
pub const PARKED_AGENTS_MAX: usize = 1_000;

/// Pairs of agents over one file each that the conflict detector remembers; beyond it the oldest go first.
pub const STANDOFFS_MAX: usize = 10_000;

/// Bytes of messages, as stored, in one answer of the broker door; the next poll goes on behind them.
pub const POLL_BYTES_MAX: usize = 8 << 20;

/// How long a poll of the broker door may wait for something new, in seconds.
pub const POLL_WAIT_S_MAX: u64 = 60;

/// Size of a `CODEOWNERS` that is read, in bytes, and lines of it that count. Large ones have a few thousand.
pub const CODE_OWNERS_BYTES_MAX: u64 = 1 << 20;
/// See [`CODE_OWNERS_BYTES_MAX`].
pub const CODE_OWNERS_MAX: usize = 5_000;

/// Work trees that are looked at beside each other for the broker door, each by a git of its own.
pub const BROKER_LOOKS_MAX: usize = 2;

/// Settings of git's that name filters. Who uses any has one or two, of four settings each.
pub const GIT_FILTERS_MAX: usize = 256;

/// Pairs of agents in each other's way that are told at once: a person looks at the first few.
pub const OVERLAPS_MAX: usize = 64;

/// How many things with a name of a symbol are looked at for callers in the hands of others: each is a look into the index.
pub const RESERVATIONS_LOOKED_AT: usize = 512;

/// How long those callers are looked for, in milliseconds: a list waits for them.
pub const CALLERS_MET_MS: u64 = 200;

/// Repeated statuses of agents that may wait to be put on record; beyond it each is a commit of its own.
pub const REPEATS_MAX: usize = 2048;

/// So many of them are put on record without waiting for more: one commit of them takes two milliseconds.
pub const REPEATS_SOON: usize = 512;

/// How long the first of them waits at most, in milliseconds: less than an agent needs to notice.
pub const REPEATS_TOLD_MS_MAX: u64 = 100;

/// How long an acknowledged message waits for its commit at most, in milliseconds: a commit takes a few at
/// most, and no reader waits for this.
pub const RECEIVED_TOLD_MS_MAX: u64 = 20;

/// How long it waits where no other message comes, in milliseconds.
pub const RECEIVED_PAUSE_MS: u64 = 5;

/// So many messages that wait for their commit are committed at once: one commit of them takes a few
/// milliseconds.
pub const RECEIVED_MAX: usize = 512;

/// So many of them at least are committed while further ones are taken in: for fewer, handing the commit to
/// another thread takes longer than it.
pub const RECEIVED_BESIDE_MIN: usize = 32;

/// Size of each of two files of messages that wait for their commit, in bytes. What finds no room there is
/// committed first.
pub const INTAKE_BYTES_MAX: usize = 4 << 20;

/// The largest status that is kept in mind to be compared with the next one, in bytes. There are as many as
/// inboxes.
pub const REPEATED_BYTES_MAX: usize = 8 << 10;
