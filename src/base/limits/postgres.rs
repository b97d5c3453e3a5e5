//! Bounds of the store in PostgreSQL.

/// How long a whole handshake with a server may take, in milliseconds; a stopped server accepts connections and says nothing.
pub const CONNECT_MS_MAX: u64 = 1_500;

/// How long a flush and its answers may take, in milliseconds, COMMIT included: that waits for a standby without any limit of the server's.
pub const COMMIT_MS_MAX: u64 = 3_000;

/// How long a session waits for the repository's row, in milliseconds.
pub const LOCK_TIMEOUT_MS: u64 = 1_700;

/// How long the server leaves a session in a transaction that says nothing, in milliseconds; then it takes the row back.
pub const IDLE_IN_TRANSACTION_MS: u64 = 2_000;

/// How long the beginning of a turn may take, in milliseconds: longer than the wait for the row, and so short that a write is refused within
/// two seconds.
pub const TURN_MS_MAX: u64 = 1_900;

/// How soon a connection has to have failed for a turn to be tried once more over a new one, in milliseconds: one that was closed fails at once.
pub const TURN_AGAIN_MS_MAX: u64 = 300;

/// How long one statement may take, in milliseconds.
pub const STATEMENT_MS_MAX: u64 = 5_000;

/// How long a start, a check of the whole journal and a migration may take for one statement, in milliseconds.
pub const LONG_STATEMENT_MS_MAX: u64 = 60_000;

/// Silence of a connection after which the system asks the other side, in seconds.
pub const HOST_KEEPALIVE_IDLE_S: u64 = 5;

/// How often the system asks then, in seconds.
pub const HOST_KEEPALIVE_INTERVAL_S: u64 = 2;

/// How often it asks before the connection is given up.
pub const HOST_KEEPALIVE_TRIES: u32 = 3;

/// How long what was sent may be without an acknowledgement, in seconds.
pub const HOST_TCP_WAIT_S: u64 = 3;

/// How many rows are read at a time.
pub const POSTGRES_PAGE_ROWS: i64 = 2_000;
