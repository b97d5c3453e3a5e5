//! Bounds of doors over loopback HTTP.

/// The largest body of a request to Agent Protocol, in bytes. Its own server takes a tenth, which a hand-off with
/// many files outgrows.
pub const AGENT_PROTOCOL_BODY_BYTES_MAX: usize = 1 << 20;

/// The largest body of a request to the broker, in bytes, as its own server has it.
pub const BROKER_BODY_BYTES_MAX: usize = 2 << 20;

/// Bytes held for bodies at one door over loopback HTTP, over all its connections; further ones wait for their turn.
pub const LOOPBACK_BODIES_BYTES_MAX: usize = 32 << 20;

/// A body up to this size is not counted: the highest number of connections takes as much as the counted bodies.
pub const LOOPBACK_SMALL_BODY_BYTES: usize = 16 << 10;

/// The time for one whole body, in milliseconds, waiting for its turn included.
pub const LOOPBACK_BODY_MS_MAX: u64 = 30_000;

/// The largest head of a request over HTTP, on loopback or a Unix socket, in bytes; those of today's clients have a few hundred.
pub const HTTP_HEAD_BYTES_MAX: usize = 32 << 10;

/// The longest time that a request's head may take, and that a connection may be silent, in milliseconds.
pub const LOOPBACK_HEAD_MS_MAX: u64 = 12_000;

/// The longest time that a client may leave an answer unread, in milliseconds.
pub const LOOPBACK_READ_MS_MAX: u64 = 10_000;

/// Connections to one door over loopback HTTP. When there is one more, the process with most of them gives way. No
/// client reaches the accept loop's own bound: there is as much room again for arriving connections, and for
/// refused ones.
pub const LOOPBACK_CONNECTIONS_MAX: usize = super::CONNECTIONS_MAX - 2 * LOOPBACK_ARRIVING_MAX;

/// Idle connections of one process that are closed at once, in addition to the one that has to be, when a door is
/// full: each time, all processes are searched, which takes milliseconds.
pub const LOOPBACK_SPARE_MAX: usize = 256;

/// Connections that wait to be accepted at one address of a door over loopback HTTP; the system may have a bound of its
/// own that is smaller.
pub const LOOPBACK_WAITING_MAX: u32 = 1_024;

/// Connections to one door over loopback HTTP whose owner the daemon is looking up; further ones wait to be
/// accepted. Otherwise, many simultaneous connections of one process would be let in, and others closed for them,
/// before the daemon knows that they belong to one process.
pub const LOOPBACK_ARRIVING_MAX: usize = 64;

/// Readers of one door's stream of events: as many as there may be connections, so that the process with most of
/// those gives way. Events that wait are held once for all readers.
pub const STREAM_READERS_MAX: usize = super::CONNECTIONS_MAX;

/// The longest wait of a request to the own API that waits for news, in milliseconds; the caller asks again.
pub const OWN_WAIT_MS_MAX: u64 = 30_000;

/// The longest time that the body of a request to the own API may take, in milliseconds.
pub const OWN_BODY_MS_MAX: u64 = 10_000;

/// Large bodies that the own API holds at once; further ones wait for their turn.
pub const OWN_LARGE_BODIES_MAX: usize = 4;

/// Seconds after which a reader of the own API's stream gets a comment, so that both ends know that the other is alive.
pub const OWN_COMMENT_EVERY_S: u64 = 15;

/// Events of one page that a reader which is behind reads from the store; each such reader holds one page.
pub const FOLLOWER_PAGE_MAX: u16 = 64;
/// Bytes of one such page, beyond the first event.
pub const FOLLOWER_PAGE_BYTES_MAX: usize = 128 << 10;

/// Bytes that wait for one reader that gets events at its own pace, except for a single event.
pub const STREAM_TURN_BYTES_MAX: usize = 256 << 10;

/// Encoded events that are kept for readers of one encoder; a reader that is further behind finds them in the
/// store. Those of `LARGE_EVENT_BYTES_MIN` and more are bounded by their bytes as well.
pub const STREAM_FRAMES_MAX: usize = 2_048;

/// Events that wait for one reader of a stream; one that is further behind is cut off.
pub const STREAM_EVENTS_MAX: usize = 1_000;

/// Bytes that wait for one reader of a stream, except for a single event.
pub const STREAM_BYTES_MAX: usize = 4 << 20;

/// Tokens at once; each is a hundred bytes or two, and an agent needs one.
pub const MINTED_TOKENS_MAX: usize = 4_096;

/// Tokens of one agent; one more ends the one that would expire first.
pub const AGENT_TOKENS_MAX: usize = 8;

/// The longest token that is checked, in bytes; Provost's own have 69.
pub const TOKEN_LEN_MAX: usize = 256;

/// The time for which the daemon relies on its finding that no program here carries connections of containers, in milliseconds: less than
/// such a program takes from its start to its first connection, and long enough that a look of a millisecond or two does not matter.
pub const CARRIERS_LOOK_MS: u64 = 200;

/// The largest file of a dashboard's folder that is served, in bytes: far more than the pages that are published.
pub const DASHBOARD_FILE_BYTES_MAX: usize = 4 << 20;
