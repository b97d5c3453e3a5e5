//! The reasons why a file cannot be read completely, and the time limit for reading.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The reason why a reading is incomplete. Offsets are in bytes, as on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The file is longer than [`SOURCE_BYTES_MAX`](provost_base::limits::SOURCE_BYTES_MAX); it was not read.
    TooLarge {
        /// The length of the file, in bytes.
        bytes: u64,
    },
    /// The file says that a program has written it; it was not read.
    Generated,
    /// The reading took longer than [`SOURCE_READ_MS_MAX`](provost_base::limits::SOURCE_READ_MS_MAX); the facts found
    /// until then are kept.
    TooHard,
    /// The caller's time was up, or the caller was cancelled; the facts found until then are kept.
    TooSlow,
    /// The code is nested deeper than [`SOURCE_DEPTH_MAX`](provost_base::limits::SOURCE_DEPTH_MAX); the nodes below
    /// were not visited.
    TooDeep {
        /// The byte at which the nesting was too deep.
        at: u32,
    },
    /// The file has more symbols, calls, imports or text of signatures than are kept of one file; the rest was left
    /// out.
    TooMany {
        /// The byte from which symbols, calls and imports were left out.
        at: u32,
    },
    /// The file does not parse here. The text beside the errors is sound.
    ParseErrors {
        /// The beginning of the first error.
        first: u32,
        /// The number of errors.
        count: u32,
    },
    /// The file is not UTF-8; the bytes in question are no part of any name.
    NotUtf8 {
        /// The position of the first such byte.
        first: u32,
    },
}

impl Trouble {
    /// The reason in a few words, without positions, which move with each edit.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too long",
            Self::Generated => "generated",
            Self::TooHard => "time limit",
            Self::TooSlow => "stopped by its reader",
            Self::TooDeep { .. } => "deep nesting",
            Self::TooMany { .. } => "too many symbols, calls or imports",
            Self::ParseErrors { .. } => "does not parse",
            Self::NotUtf8 { .. } => "not UTF-8",
        }
    }
}

/// How long a reader is prepared to wait, in addition to the limits for all readers.
#[derive(Clone, Copy, Default, Debug)]
pub struct ParseDeadline<'a> {
    /// The moment after which the result is of no use.
    pub until: Option<Instant>,
    /// Becomes true when no caller waits for the answer any more.
    pub cancelled: Option<&'a AtomicBool>,
}

impl ParseDeadline<'_> {
    /// Waits as long as the limits allow.
    pub fn endless() -> Self {
        Self::default()
    }

    pub(super) fn is_over(&self) -> bool {
        self.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
