//! Bounds of WebSocket connections, and of the A6s door, which has them.

/// Messages that wait for one peer. An editor reads them as they come; for an editor that has stopped, they hold
/// some minutes.
pub const SOCKET_QUEUE_MESSAGES_MAX: usize = 1_000;

/// Bytes that wait for one peer, except for a single message.
pub const SOCKET_QUEUE_BYTES_MAX: usize = 8 << 20;

/// Bytes that wait at one door, over all its connections; beyond that, each connection may have [`SOCKET_QUEUE_FAIR_BYTES`].
pub const SOCKET_QUEUES_BYTES_MAX: usize = 128 << 20;

/// Bytes that may wait for one peer in any case.
pub const SOCKET_QUEUE_FAIR_BYTES: usize = 64 << 10;

/// The longest time that a peer may leave sent data unread, in milliseconds: as long as editors wait for an answer.
pub const SOCKET_READ_MS_MAX: u64 = 30_000;

/// The time for which the daemon reads on after its own close frame, in milliseconds.
pub const SOCKET_LINGER_MS_MAX: u64 = 500;

/// The largest message to the A6s door, in bytes: some artifacts with the whole text of their files.
pub const A6S_MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Bytes held for messages to the A6s door, over all its connections; further ones wait for their turn.
pub const A6S_MESSAGES_BYTES_MAX: usize = 64 << 20;

/// Requests of one connection that are being answered; one more is refused.
pub const A6S_REQUESTS_MAX: usize = 64;

/// Requests to the A6s door that are being answered, over all its connections, including connections that have ended.
pub const A6S_REQUESTS_AT_ONCE_MAX: usize = 1_024;

/// The time for which requests may go on when the daemon stops, in milliseconds; then they are answered with an error.
pub const A6S_SETTLE_MS_MAX: u64 = 1_000;

/// The longest id of a request that is echoed, in bytes; editors' own have ten.
pub const A6S_REQUEST_ID_BYTES_MAX: usize = 1_024;

/// Texts that people write, such as tasks and instructions, in characters.
pub const A6S_TEXT_CHARS_MAX: usize = 10_000;

/// Code in a request, in bytes.
pub const A6S_CODE_BYTES_MAX: usize = 1 << 20;

/// Context of a task, in bytes: JSON that an editor adds.
pub const A6S_CONTEXT_BYTES_MAX: usize = 1 << 20;

/// Artifacts in one call.
pub const A6S_ARTIFACTS_MAX: usize = 500;

/// Contents of artifacts that are being compared or written, in bytes, over all connections; one more call is
/// refused.
pub const A6S_ARTIFACTS_BYTES_AT_ONCE_MAX: usize = 64 << 20;

/// The shortest time between two reports about the progress of an execution, in milliseconds.
pub const A6S_PROGRESS_EVERY_MS: u64 = 250;

/// Executions whose readers are remembered at once; those with the oldest last event are forgotten.
pub const A6S_WATCHED_MAX: usize = 4_096;

/// Background tasks that are over and listed; the newest. A6s 6.3.
pub const A6S_LISTED_MAX: usize = 100;

/// The longest list of reasons in the error of an apply that has written nothing, in bytes: as much as a person
/// reads in an editor's message.
pub const A6S_REASONS_BYTES_MAX: usize = 1_500;
