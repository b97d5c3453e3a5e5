//! Time as data. `domain` never reads a clock; it gets a [`Timestamp`].

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::limits::TTL_MAX_MS;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the moment `ttl` later; it saturates, so that no clock can make it wrap.
    #[must_use]
    pub fn after(self, ttl: Ttl) -> Self {
        Self(self.0.saturating_add(i64::from(ttl.as_millis())))
    }

    /// Returns the moment `ttl` earlier; it saturates, too.
    #[must_use]
    pub fn before(self, ttl: Ttl) -> Self {
        Self(self.0.saturating_sub(i64::from(ttl.as_millis())))
    }

    /// Returns the milliseconds from `earlier` to this moment; zero if `earlier` is later.
    pub fn since_ms(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0).try_into().unwrap_or(0)
    }

    /// Returns whole seconds since the epoch, as DevIt's `ts`.
    pub fn seconds(self) -> u64 {
        u64::try_from(self.0 / 1000).unwrap_or(0)
    }

    /// Returns RFC 3339 in UTC with milliseconds and `Z`, the form in which every door prints time.
    pub fn rfc3339(self) -> String {
        DateTime::<Utc>::from_timestamp_millis(self.0)
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

/// A duration, in milliseconds. It is never zero, and never longer than [`TTL_MAX_MS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Ttl(u32);

impl Ttl {
    /// Returns `None` for zero and for more than [`TTL_MAX_MS`].
    pub const fn from_millis(ms: u64) -> Option<Self> {
        if ms == 0 || ms > TTL_MAX_MS as u64 { None } else { Some(Self(ms as u32)) }
    }

    /// Returns seconds, clamped to the allowed range at both ends.
    pub const fn seconds_clamped(seconds: u64) -> Self {
        let most = TTL_MAX_MS as u64;
        let ms = seconds.saturating_mul(1000);
        Self(if ms == 0 {
            1
        } else if ms > most {
            TTL_MAX_MS
        } else {
            ms as u32
        })
    }

    /// Returns minutes, for constants.
    pub const fn minutes(minutes: u32) -> Self {
        Self::seconds_clamped(minutes as u64 * 60)
    }

    /// Returns the length in milliseconds, without rounding.
    pub const fn as_millis(self) -> u32 {
        self.0
    }

    /// Returns the length in whole seconds, rounded down.
    pub const fn as_seconds(self) -> u64 {
        (self.0 / 1000) as u64
    }

    /// Returns the same length as a `Duration`, for timers.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl TryFrom<u64> for Ttl {
    type Error = &'static str;
    fn try_from(ms: u64) -> Result<Self, Self::Error> {
        Self::from_millis(ms).ok_or("a duration is between one millisecond and a week")
    }
}

impl From<Ttl> for u64 {
    fn from(ttl: Ttl) -> u64 {
        u64::from(ttl.0)
    }
}
