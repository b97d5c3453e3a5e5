//! Bounds of the engine's clock, for a system's clock that is set ahead or back.

/// The fraction (one part in so many) of the passed time by which the log's time may go faster or slower, to come
/// back to the system's clock. A lease of an hour is then off by 36 s at most; a clock that was set back by an hour
/// is caught up in four days.
pub const CLOCK_FOLLOWS_PART: i128 = 100;

/// The smallest step of the system's clock that is reported, in milliseconds. Time servers step by less than half a
/// second and otherwise adjust the clock slowly; a frame's time stamp is in whole seconds.
pub const CLOCK_JUMP_MS_MIN: u64 = 2_000;
