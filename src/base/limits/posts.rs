//! Bounds of messages between agents.

/// Agents that the broker door knows at once; the one that has been silent for longest goes first.
pub const POST_AGENTS_MAX: usize = 1_000;

/// The number of these that may be names of one tree of processes, so that an agent that invents names keeps no
/// other agent out.
pub const POST_AGENTS_OF_ONE_MAX: usize = POST_AGENTS_MAX / 4;

/// Files that are remembered from one agent's reports about its work; a longer list is delivered whole, but its
/// rest is not compared.
pub const POST_FILES_MAX: usize = 1_000;

/// Folders and patterns among these: each is compared with every file that an agent works on.
pub const POST_WIDE_MAX: usize = 32;

/// Those of all names of one tree of processes together, so that an agent which invents names does not make each report of
/// the others slow.
pub const POST_WIDE_OF_ONE_MAX: usize = 256;

/// The most wildcards of a pattern; a text with more is no pattern. Each wildcard costs a pass over every compared path.
pub const POST_WILDCARDS_MAX: usize = 8;

/// What the conflict detector tells of one report, or at one look at lasting cases; agents are told the rest of it with
/// the next report. A thousand files that many agents have are as many messages to each of them.
pub const POST_FINDINGS_MAX: usize = 200;

/// Regions of one file in an intent; with more, the whole file is meant.
pub const POST_REGIONS_MAX: usize = 100;

/// The part of a word in the roster that is kept, in bytes: an agent's status, its activity, its program.
pub const ROSTER_TEXT_MAX: usize = 1_024;

/// The longest pattern of files in a broker message that counts as a pattern, in bytes.
pub const POST_PATTERN_LEN_MAX: usize = 256;

/// Questions at the broker door that wait for an answer; the oldest of the agent with most of them goes first.
pub const QUESTIONS_MAX: usize = 1_000;

/// The part of a question that is shown, in bytes. Its message has all of it.
pub const QUESTION_SHOWN_MAX: usize = 2_048;

/// Broker messages that wait for an agent that has no inbox yet; the oldest goes first.
pub const PARKED_PER_AGENT_MAX: usize = 100;

/// Agents for which broker messages wait although they have no inbox yet.
pub const PARKED_AGENTS_MAX: usize = 1_000;

/// Pairs of agents over one file each that the conflict detector remembers; beyond that, the oldest go first.
pub const STANDOFFS_MAX: usize = 10_000;

/// Bytes of messages, as stored, in one answer of the broker door; the next poll continues after them.
pub const POLL_BYTES_MAX: usize = 8 << 20;

/// The longest time that a poll of the broker door may wait for a new message, in seconds.
pub const POLL_WAIT_S_MAX: u64 = 60;

/// The size of a `CODEOWNERS` that is read, in bytes, and lines of it that count. Large ones have a few thousand.
pub const CODE_OWNERS_BYTES_MAX: u64 = 1 << 20;
/// The lines of it that count; see [`CODE_OWNERS_BYTES_MAX`].
pub const CODE_OWNERS_MAX: usize = 5_000;

/// Work trees that are examined at the same time for the broker door, each by a git of its own.
pub const BROKER_LOOKS_MAX: usize = 2;

/// Settings of git that name filters. A user of filters has one or two, of four settings each.
pub const GIT_FILTERS_MAX: usize = 256;

/// Pairs of conflicting agents that are reported at once: a person looks at the first few.
pub const OVERLAPS_MAX: usize = 64;

/// The number of reservations with a name of a symbol that are examined for callers that others hold: each takes a look into the index.
pub const RESERVATIONS_LOOKED_AT: usize = 512;

/// The time for which those callers are searched, in milliseconds: a list waits for them.
pub const CALLERS_MET_MS: u64 = 200;

/// Repeated statuses of agents that may wait to be recorded; beyond that, each is a commit of its own.
pub const REPEATS_MAX: usize = 2048;

/// The number of these that are recorded without waiting for more: one commit of them takes two milliseconds.
pub const REPEATS_SOON: usize = 512;

/// The longest wait of the first of them, in milliseconds: less than an agent needs to notice.
pub const REPEATS_TOLD_MS_MAX: u64 = 100;

/// The longest wait of an acknowledged message for its commit, in milliseconds: a commit takes a few at most, and
/// no reader waits for this.
pub const RECEIVED_TOLD_MS_MAX: u64 = 20;

/// The wait of such a message if no other one comes, in milliseconds.
pub const RECEIVED_PAUSE_MS: u64 = 5;

/// The number of waiting messages that are committed at once: one commit of them takes a few milliseconds.
pub const RECEIVED_MAX: usize = 512;

/// The lowest number of messages whose commit a second thread does while further ones are taken in: for fewer,
/// handing the commit over takes longer than the commit.
pub const RECEIVED_BESIDE_MIN: usize = 32;

/// The size of each of two files of messages that wait for their commit, in bytes. If a message does not fit, the
/// others are committed first.
pub const INTAKE_BYTES_MAX: usize = 4 << 20;

/// The largest status that is remembered for comparison with the next one, in bytes. There are as many as inboxes.
pub const REPEATED_BYTES_MAX: usize = 8 << 10;
