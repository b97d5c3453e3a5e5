//! Limits of agents that speak the Agent Client Protocol.

/// Longest line of an agent that speaks ACP, in bytes: it holds a file before and after a change.
pub const ACP_LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes that an agent that speaks ACP may say during one run. A long session repeats the output of its tools.
pub const ACP_BYTES_MAX: usize = 512 << 20;

/// Lines of an agent that speaks ACP that are no messages, and updates that may come before its session has an id.
pub const ACP_GARBAGE_LINES_MAX: usize = 100;

/// How long an agent that speaks ACP may take to begin a session, in milliseconds.
pub const ACP_HANDSHAKE_MS_MAX: u64 = 60_000;

/// Permission requests of one agent that may wait at once.
pub const ACP_QUESTIONS_MAX: usize = 16;

/// Calls of tools of which an agent's words are kept for a permission request about them.
pub const ACP_CALLS_KNOWN_MAX: usize = 64;

/// How often an agent's mode is set again in one run before the run ends.
pub const ACP_MODE_CHANGES_MAX: usize = 3;

/// Longest text that is said to an agent at once, in bytes: a long message by hand; files are named instead.
pub const SAY_BYTES_MAX: usize = 16 << 10;

/// Sayings that may wait for one agent: each is kept on the disk with its task.
pub const SAYINGS_WAITING_MAX: usize = 16;

/// Sayings that are shown with a task; older ones that were delivered are forgotten.
pub const SAYINGS_KEPT_MAX: usize = 64;

/// How much of a delivered saying is kept with its task, in bytes: its whole text is in the run's output.
pub const SAID_TEXT_KEPT: usize = 1 << 10;

/// How long an agent that speaks ACP may take to end a turn that was cancelled, in milliseconds.
pub const ACP_CANCEL_MS_MAX: u64 = 10_000;

/// Longest id of an agent's session, in bytes; those of real agents are UUIDs.
pub const ACP_SESSION_ID_MAX: usize = 256;

/// How long a question of an agent's waits for its answer, in milliseconds; then it is declined, and the agent goes on.
pub const ACP_ANSWER_MS_MAX: u64 = 600_000;

/// Sessions of agents whose homes are kept for a follow-up; the oldest go first.
pub const SESSIONS_KEPT_MAX: usize = 50;
