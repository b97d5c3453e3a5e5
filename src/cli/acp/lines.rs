//! Reads a side's lines, within a bound: of a line that is too long only the outline is kept, so that its request gets an answer.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use provost_base::limits::ACP_PROXY_LINE_BYTES_MAX;
use provost_mcp::Outline;

/// The most bytes that are read from a side at once.
const BUFFER: usize = 64 << 10;

pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    outline: Option<Outline>,
}

/// The next input of a side.
pub(super) enum Said {
    /// A line, with its end.
    Line(Vec<u8>),
    TooLong(Outline),
    /// The side has closed its output.
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(BUFFER, from), line: Vec::new(), outline: None }
    }

    /// Returns the next line. If the future is dropped before the line's end, the part that was read stays for the next call.
    ///
    /// # Errors
    /// When the side cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Said> {
        loop {
            let there = self.from.fill_buf().await?;
            if there.is_empty() {
                return Ok(match std::mem::take(&mut self.line) {
                    rest if rest.is_empty() => Said::End,
                    mut rest => {
                        rest.push(b'\n');
                        Said::Line(rest)
                    }
                });
            }
            let end = memchr::memchr(b'\n', there);
            let part = end.map_or(there, |at| &there[..=at]);
            match &mut self.outline {
                Some(outline) => outline.read(part),
                None if self.line.len() + part.len() > ACP_PROXY_LINE_BYTES_MAX => {
                    let mut outline = Outline::of(&self.line);
                    outline.read(part);
                    self.outline = Some(outline);
                    self.line = Vec::new();
                }
                None => self.line.extend_from_slice(part),
            }
            let used = part.len();
            self.from.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(self.outline.take().map_or(Said::Line(line), Said::TooLong));
            }
        }
    }
}
