//! The reasons why a file cannot be read completely, and the time limit for reading.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Why a reading is not the whole truth about a file. Offsets are in bytes, as on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Longer than [`SOURCE_BYTES_MAX`](provost_base::limits::SOURCE_BYTES_MAX); nothing was read.
    TooLarge {
        /// The length of the file, in bytes.
        bytes: u64,
    },
    /// Says of itself that a program has written it; nothing was read.
    Generated,
    /// Took longer than [`SOURCE_READ_MS_MAX`](provost_base::limits::SOURCE_READ_MS_MAX); what was found
    /// until then is kept.
    TooHard,
    /// The caller's time was up, or the caller was cancelled; what was found until then is kept.
    TooSlow,
    /// Nested deeper than [`SOURCE_DEPTH_MAX`](provost_base::limits::SOURCE_DEPTH_MAX); what is below was not
    /// looked at.
    TooDeep {
        /// The byte at which the nesting was too deep.
        at: u32,
    },
    /// More symbols, calls, imports or text of signatures than are kept of one file; what is behind was left
    /// out.
    TooMany {
        /// The byte from which symbols, calls and imports were left out.
        at: u32,
    },
    /// Does not parse here. What lies beside the errors is sound.
    ParseErrors {
        /// Where the first one begins.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// Not UTF-8; the bytes in question are no part of any name.
    NotUtf8 {
        /// Where the first such byte is.
        first: u32,
    },
}

/// How long a reader is prepared to wait, on top of the limits that hold for everyone.
#[derive(Clone, Copy, Default, Debug)]
pub struct ParseDeadline<'a> {
    /// The moment after which the answer is of no use.
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
