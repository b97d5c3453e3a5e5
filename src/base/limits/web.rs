//! Bounds of the page for people.

/// Largest body of a request to the page's door, in bytes: a new passkey with its attestation object, in base64url.
pub const WEB_BODY_BYTES_MAX: usize = 64 << 10;

/// Rows of one list; further ones are counted, and found by the filter. A browser draws a thousand within a tenth of a second.
pub const WEB_ROWS_MAX: usize = 1_000;

/// Finished tasks of one page: some screens of them.
pub const WEB_FINISHED_PAGE: usize = 100;

/// Events of one page: some screens of them.
pub const WEB_EVENTS_PAGE: u16 = 100;

/// Among how many of the newest events it is looked for what became of an approval.
pub const WEB_EVENTS_LOOKED_AT: u64 = 2_000;

/// Events that a page which comes back is sent one by one; one that has missed more asks for everything again.
pub const WEB_RESUME_MAX: u64 = 1_000;

/// Seconds after which a page is sent a comment, so that both ends know that the other is there.
pub const WEB_COMMENT_EVERY_S: u64 = 10;

/// Longest text in a cell of a list, in characters: more than a screen is wide.
pub const WEB_CELL_CHARS_MAX: usize = 300;

/// Shown lines of one file of a difference; further ones are counted.
pub const WEB_DIFF_LINES_MAX: usize = 5_000;

/// How long a browser waits before it comes back to the stream, in milliseconds.
pub const WEB_RETRY_MS: u64 = 1_000;

/// Messages of one page: some screens of them.
pub const WEB_MESSAGES_PAGE: usize = 200;

/// Decisions that are shown: some screens of them.
pub const WEB_DECISIONS_SHOWN: usize = 50;

/// Changes that the page over all repositories keeps for readers that come back: those of some minutes at work.
pub const HUB_CHANGES_MAX: usize = 4_096;

/// Events that wait for one reader of the page over all repositories; one that is further behind asks for everything again.
pub const HUB_QUEUE_MAX: usize = 1_024;

/// How long a daemon may take to answer for a view of the page over all repositories, in milliseconds; then it counts as one that does
/// not answer, and nothing waits for it.
pub const HUB_VIEW_MS: u64 = 5_000;
