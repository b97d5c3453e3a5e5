//! Bounds the cost of finding out what lines, scripts and settings name, since a worker can
//! have made some of them.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use provost_base::limits::{NAMED_BYTES_MAX, NAMED_LOOKS_MAX, NAMED_MS_MAX};

/// The bytes of a word that one look covers; a longer word costs more looks.
const LOOK_BYTES: usize = 256;

/// The rest of the budget. Once it is used up, it stays so.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    looks: usize,
    bytes: usize,
    until: Instant,
    is_over: bool,
    is_too_long: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        let until = Instant::now() + Duration::from_millis(NAMED_MS_MAX);
        Self { looks: NAMED_LOOKS_MAX, bytes: NAMED_BYTES_MAX, until, is_over: false, is_too_long: false }
    }

    /// Takes one more question to the file system, about a word of this length. Returns whether the budget allows it.
    pub(super) fn look(&mut self, length: usize) -> bool {
        let left = self.looks.checked_sub(1 + length / LOOK_BYTES);
        self.is_over |= left.is_none() || Instant::now() > self.until;
        self.looks = left.unwrap_or_default();
        !self.is_over
    }

    /// Takes the parsing of this many bytes. Returns whether the budget allows it.
    pub(super) fn read(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.is_over |= left.is_none() || Instant::now() > self.until;
        self.bytes = left.unwrap_or_default();
        !self.is_over
    }

    /// Ends the budget because something has too many parts: the names in the others are not known.
    pub(super) fn is_not_enough(&mut self) {
        (self.is_over, self.is_too_long) = (true, true);
    }

    /// Checks whether too many parts have ended the budget.
    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the used part as one number, for comparing two states of the same budget.
    pub(super) fn used(&self) -> usize {
        (NAMED_LOOKS_MAX - self.looks) * (NAMED_BYTES_MAX / NAMED_LOOKS_MAX) + (NAMED_BYTES_MAX - self.bytes)
    }
}
