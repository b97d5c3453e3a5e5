//! Bounds of a crew: members, claims, assignments, transfers and the timeline.

use super::AGENTS_MAX;

/// Agents of one crew; the longest gone gives way to a new one.
pub const MEMBERS_MAX: usize = AGENTS_MAX;

/// The number of these that may be names of one tree of processes.
pub const MEMBERS_OF_ONE_MAX: usize = MEMBERS_MAX / 4;

/// Files that are remembered because an agent has claimed them once; the one that has been free for longest gives
/// way.
pub const CLAIMS_MAX: usize = 20_000;

/// Files that one agent may have claimed at once.
pub const CLAIMS_PER_AGENT_MAX: usize = 4_000;

/// Files that may be claimed at once under all names of one tree of processes.
pub const CLAIMS_OF_ONE_MAX: usize = CLAIMS_MAX / 4;

/// Assignments that are remembered; the oldest that is done gives way.
pub const ASSIGNMENTS_MAX: usize = 10_000;

/// The number of these that are not done and may come from one tree of processes.
pub const ASSIGNMENTS_OF_ONE_MAX: usize = ASSIGNMENTS_MAX / 4;

/// Transfers that are remembered; the oldest that was answered gives way.
pub const TRANSFERS_MAX: usize = 10_000;

/// The number of these that wait for an answer and may come from one tree of processes.
pub const TRANSFERS_OF_ONE_MAX: usize = TRANSFERS_MAX / 4;

/// The size of one assignment or transfer, in bytes: some pages of text. Larger content belongs in a file.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// The size of all assignments, and of all transfers, in bytes: they are held in memory, and shown together.
pub const RECORDS_BYTES_MAX: usize = 32 << 20;

/// Bytes of assignments that are not done, or of transfers that wait, which may come from one tree of processes.
pub const RECORDS_OF_ONE_BYTES_MAX: usize = RECORDS_BYTES_MAX / 4;

/// The size of the members of a note on the timeline, without its few words, in bytes.
pub const NOTE_BYTES_MAX: usize = 256 << 10;

/// Rows of a kind in one answer about the work of agents. A longer answer is not read, and the rest is counted.
pub const AT_WORK_ROWS_MAX: usize = 200;

/// Entries of the timeline in one answer.
pub const TIMELINE_PAGE_MAX: usize = 10_000;

/// The size of one answer about the timeline, in bytes as stored; the first entry always comes.
pub const TIMELINE_BYTES_MAX: usize = 16 << 20;

/// The size of a claimed file that is read for its digest, in bytes. Larger ones are data, and reading them takes
/// longer than a claim may.
pub const CLAIMED_BYTES_MAX: u64 = 64 << 20;

/// The longest time that the reading of claimed files for one request may take, in milliseconds. 64 MiB from a disk
/// take some hundred.
pub const CLAIMED_READ_MS_MAX: u64 = 2_000;

/// Claimed files that are read at once.
pub const CLAIMED_READERS_MAX: usize = 4;

/// Changed files that are put on the timeline in one step.
pub const SEEN_AT_ONCE_MAX: usize = 100;

/// Rows of another daemon's database that are imported in one step.
pub const FOREIGN_PAGE: u32 = 500;

/// The size of one row of such a database, in bytes.
pub const FOREIGN_ROW_BYTES_MAX: i32 = 1 << 20;

/// The size of such a database, in bytes. A million events have some 300 MB.
pub const FOREIGN_DATABASE_BYTES_MAX: u64 = 1 << 30;

/// The longest time that a request may wait for the next entry of the timeline, in seconds: less than the usual
/// timeout of a proxy or a client.
pub const TIMELINE_WAIT_S_MAX: u64 = 25;

/// The interval at which readers of the stream get a comment while there is no event, in milliseconds: before any
/// program on the way takes the connection for dead.
pub const TIMELINE_COMMENT_EVERY_MS: u64 = 20_000;

/// The largest claimed file whose versions are kept, in bytes. Larger ones are generated, or data.
pub const VERSION_BYTES_MAX: usize = 1 << 20;

/// Versions of claimed files that are kept; the one with the oldest last request gives way.
pub const VERSIONS_MAX: usize = 8_192;

/// The size of all of them, in bytes.
pub const VERSIONS_BYTES_MAX: u64 = 128 << 20;

/// Versions of files in conflict that lie in the workspace; the oldest gives way.
pub const CONFLICT_FILES_MAX: usize = 200;

/// The size of all of them, in bytes.
pub const CONFLICT_BYTES_MAX: u64 = 64 << 20;

/// Entries of their folder that are examined to find the oldest: others can write there.
pub const CONFLICT_ENTRIES_MAX: usize = 10_000;

/// The size of a file in which a host looks for instructions for its agent, in bytes. Agents read it whole; such
/// files are pages, not books.
pub const HOST_FILE_BYTES_MAX: u64 = 4 << 20;
