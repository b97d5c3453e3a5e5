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
