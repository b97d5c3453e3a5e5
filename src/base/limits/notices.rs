//! Bounds of notices that are sent to addresses elsewhere, and of questions that are asked again.

/// Addresses that may be configured: each is a connection and a queue.
pub const NOTICE_TARGETS_MAX: usize = 16;

/// Notices that are owed to one address at once: an address that takes none for days costs no more than this.
pub const NOTICES_OWED_MAX: usize = 256;

/// The part of one text by an agent that a notice has, in bytes. Three of them, with each byte escaped, fit into
/// [`NOTICE_BODY_BYTES_MAX`].
pub const NOTICE_WORDS_BYTES_MAX: usize = 2_000;

/// The part of a name or a reason that a notice has, in bytes.
pub const NOTICE_FACT_BYTES_MAX: usize = 300;

/// The largest body of a request, in bytes; Standard Webhooks asks for less than 20 kB.
pub const NOTICE_BODY_BYTES_MAX: usize = 20_000;

/// The largest text for people, in characters. Discord takes 2,000.
pub const NOTICE_TEXT_CHARS_MAX: usize = 1_900;

/// The part of an answer that is read, in bytes: enough for the sentence of an error.
pub const NOTICE_ANSWER_BYTES_MAX: usize = 2_048;

/// The longest time that one attempt may take, from the name to the answer, in milliseconds.
pub const NOTICE_ATTEMPT_MS_MAX: u64 = 15_000;

/// Waits after consecutive failed attempts, in milliseconds; the last one repeats.
pub const NOTICE_WAITS_MS: [u64; 7] = [2_000, 10_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000];

/// The time for which a notice is owed, in milliseconds: three days.
pub const NOTICE_KEPT_MS: u64 = 3 * 24 * 60 * 60 * 1_000;

/// The shortest wait, in milliseconds, after which a new notice may end a longer wait for an address that has failed.
pub const NOTICE_NEWS_MS_MIN: u64 = 60_000;

/// The longest address of a target, in bytes; those of chats have some 200.
pub const NOTICE_URL_BYTES_MAX: usize = 2_048;

/// Keys of one address: two during a replacement, and one to spare.
pub const NOTICE_KEYS_MAX: usize = 3;

/// The most times that a rule may have a question asked again.
pub const APPROVAL_AGAIN_MAX: u32 = 100;
