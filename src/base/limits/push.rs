//! Bounds of messages to browsers by their push services.

/// Browsers that get notices: each is a connection and a queue.
pub const PUSH_SUBSCRIPTIONS_MAX: usize = 16;

/// Messages are padded to a multiple of this, in bytes, so that a push service learns nothing from their length.
pub const PUSH_PAD_BYTES: usize = 512;

/// The longest text of a message, in bytes. RFC 8291 leaves room for 3,993 in the 4,096 that each push service
/// accepts, and seven whole paddings fit into these.
pub const PUSH_TEXT_BYTES_MAX: usize = 7 * PUSH_PAD_BYTES - 1;

/// The part of an agent's words that a message has, in bytes, if it has any: each byte may need six in JSON.
pub const PUSH_WORDS_BYTES_MAX: usize = 400;

/// The time for which a push service keeps a message that is not a question, in seconds: a day. A question is kept until its time is over.
pub const PUSH_TTL_S: u64 = 24 * 60 * 60;

/// The time for which the daemon's token for a push service is valid, in seconds. Services refuse more than a day, and clocks differ.
pub const PUSH_TOKEN_S: u64 = 12 * 60 * 60;

/// Subscriptions that are offered and not signed yet. The oldest gives way, and costs its owner a second try.
pub const PUSH_OFFERS_MAX: usize = 16;

/// The time for which an offer waits for its signature, in milliseconds: the browser asks the person in between.
pub const PUSH_OFFER_MS_MAX: u64 = 300_000;

/// The time for which a question that was put off stays away from a browser, in seconds: three times in the half
/// hour for which the built-in rules wait.
pub const PUSH_SNOOZE_S: u64 = 10 * 60;
