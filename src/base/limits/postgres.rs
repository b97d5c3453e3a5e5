//! Bounds of the store in PostgreSQL.

/// The longest time that a whole handshake with a server may take if callers of the engine wait for it, or if another server has answered, in
/// milliseconds; a stopped server accepts connections and stays silent.
pub const CONNECT_MS_MAX: u64 = 1_500;

/// The longest time of any other handshake, in milliseconds: with TLS and a password it takes some nine round trips to the server.
pub const HANDSHAKE_MS_MAX: u64 = 5_000;

/// The longest time that a flush and its answers may take, in milliseconds, COMMIT included: COMMIT waits for a
/// standby without any limit of the server.
pub const COMMIT_MS_MAX: u64 = 3_000;

/// The time for which a session waits for the repository's row, in milliseconds.
pub const LOCK_TIMEOUT_MS: u64 = 1_700;

/// The time for which the server tolerates a silent session in a transaction, in milliseconds; then it takes the row back.
pub const IDLE_IN_TRANSACTION_MS: u64 = 2_000;

/// The longest time that the beginning of a turn may take, in milliseconds: longer than the wait for the row, and
/// short enough that a write is refused within two seconds.
pub const TURN_MS_MAX: u64 = 1_850;

/// The time for which a host without others keeps a turn that it has begun ahead, in milliseconds.
pub const TURN_AHEAD_MS_MAX: u64 = 50;

/// The time for which history is read at a standby before the primary is looked for again, in milliseconds.
pub const STANDBY_READ_MS_MAX: u64 = 3_000;

/// The time for which a turn that is begun ahead waits for a lock, in milliseconds: no command waits for that turn yet.
pub const AHEAD_LOCK_TIMEOUT_MS: u64 = 20;

/// The time after which a host without others lets one commit begin no turn, in milliseconds: a host that starts meanwhile gets the row then.
pub const TURNS_AHEAD_MS_MAX: u64 = 200;

/// The time of a turn, of its beginning and its commit, from which on people are told that the database is slow, in milliseconds.
pub const TURN_SLOW_MS_MIN: u64 = 1_000;

/// The longest time that a connection may take to end in order, in milliseconds; then it is cut off. A silent server lets a write wait so much longer.
pub const LINK_ENDS_MS_MAX: u64 = 50;

/// The newest gaps of a journal among which a daemon looks for a loss that a person has accepted.
pub const GAPS_LOOKED_AT_MAX: i64 = 100;

/// The time for which the engine waits for a connection that another thread makes, in milliseconds: a server that is there answers sooner.
pub const REACHED_AT_ONCE_MS_MAX: u64 = 50;

/// The longest time for which a daemon asks whether it has read the whole log, before a turn if the one before has failed, in milliseconds.
pub const AWAKE_MS_MAX: u64 = 500;

/// The time that is allowed for a turn of another daemon, and for a small step of the server's clock, where ages of events are compared, in milliseconds.
pub const CLOCK_SLACK_MS: u64 = 60_000;

/// The fewest signatures that a thread of its own checks: fewer are checked in less time than a thread takes to start.
pub const SIGNATURES_PER_THREAD_MIN: usize = 128;

/// The most threads that check signatures: a host that starts has other work, too.
pub const SIGNATURE_THREADS_MAX: usize = 4;

/// The time within which a connection must have failed for a turn to be tried once more over a new one, in
/// milliseconds: a closed one fails at once.
pub const TURN_AGAIN_MS_MAX: u64 = 300;

/// The longest time that one statement may take, in milliseconds.
pub const STATEMENT_MS_MAX: u64 = 5_000;

/// The longest time that one statement of a start, of a check of the whole journal and of a migration may take, in milliseconds.
pub const LONG_STATEMENT_MS_MAX: u64 = 60_000;

/// Silence of a connection after which the system probes the other side, in seconds.
pub const HOST_KEEPALIVE_IDLE_S: u64 = 5;

/// The interval of these probes, in seconds.
pub const HOST_KEEPALIVE_INTERVAL_S: u64 = 2;

/// The number of probes before the connection is given up.
pub const HOST_KEEPALIVE_TRIES: u32 = 3;

/// The longest time that sent data may stay without an acknowledgement, in seconds.
pub const HOST_TCP_WAIT_S: u64 = 3;

/// The number of rows that are read at a time.
pub const POSTGRES_PAGE_ROWS: i64 = 2_000;

/// The most bytes of log entries, and of events, that a host reads at a time. An entry has no more: a batch that would have is refused.
pub const POSTGRES_PAGE_BYTES_MAX: i64 = 256 << 20;

/// The bytes of log entries, and of events, after which a turn reads no further ones: it has to end soon. A host with more to read loads the rows.
pub const POSTGRES_TURN_BYTES_MAX: i64 = 8 << 20;

/// How long a daemon that begins again by itself tries to reach its database, in seconds. One that a service manager has
/// started tries until the manager ends it.
pub const STORE_AWAITED_S_MAX: u64 = 600;

/// The pause between two of these tries, in milliseconds.
pub const STORE_TRIED_EVERY_MS: u64 = 1_000;

/// The further tries of a daemon that a person starts, if the server takes connections and says nothing: it may only be slow.
pub const STORE_SLOW_TRIES: u64 = 1;

/// The number of these tries of which the log tells one.
pub const STORE_TOLD_EVERY_TRIES: u64 = 60;

/// The time for which each of these tries asks the service manager, in microseconds: as long as the units in `deploy` give to the first one.
pub const STORE_OPENS_US_MAX: u32 = 300_000_000;
