//! Bounds of what agents' hosts are answered over MCP.

/// The longest that one call of a tool waits, in seconds: hosts give up after sixty.
pub const MCP_WAIT_S_MAX: u64 = 45;

/// Output of a worker in one answer, in bytes; hosts cut what is longer than some ten thousand words.
pub const MCP_OUTPUT_BYTES_MAX: usize = 24 << 10;

/// Finished tasks in one answer.
pub const MCP_TASKS_MAX: usize = 100;
