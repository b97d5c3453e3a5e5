//! The pipe to the process that has started the daemon and waits until it can be used.

use std::fs::File;
use std::io::Write as _;

/// The pipe, until its line was written.
pub(super) struct Ready(Option<File>);

impl Ready {
    pub(super) fn new(pipe: Option<File>) -> Self {
        Self(pipe)
    }

    /// Writes the only line: `ready`, or the reason of a failure.
    pub(super) fn say(&mut self, line: &str) {
        if let Some(mut pipe) = self.0.take() {
            // The process that started the daemon may have stopped waiting.
            let _ = writeln!(pipe, "{}", line.replace('\n', " "));
        }
    }
}
