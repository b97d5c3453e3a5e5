//! Follows the output of a run, for the job's log and for its progress.

use provost_base::JobId;
use provost_jail::{LiveOutput, Page, Reader, Stream, Transcript, plain_text};
use provost_store::JobLogs;

/// The length at which an unfinished line is written, in bytes.
const LINE_BYTES: usize = 64 << 10;
/// The most pages in one go: more than can be kept at any moment, but a worker can go on writing.
const PAGES_AT_ONCE: usize = 32;

/// The reader of one run's output.
pub(super) struct OutputReader {
    logs: JobLogs,
    job: JobId,
    reader: Reader,
    transcript: Transcript,
    /// The bytes since the last end of a line, of both streams in their order.
    line: Vec<u8>,
    at: u64,
}

impl OutputReader {
    pub(super) fn new(logs: JobLogs, job: JobId, reader: Reader) -> Self {
        Self { logs, job, reader, transcript: Transcript::new(reader), line: Vec::new(), at: 0 }
    }

    /// Returns the number of messages and tool calls so far; of lines for an agent that writes text.
    pub(super) fn steps(&self) -> u64 {
        self.transcript.steps()
    }

    /// Checks whether there are steps to count, and not only lines.
    pub(super) fn counts(&self) -> bool {
        self.reader != Reader::Lines
    }

    /// Returns how much of both streams was read, in bytes.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Checks whether a line was begun that is not written yet.
    pub(super) fn is_within_a_line(&self) -> bool {
        !self.line.is_empty()
    }

    /// Writes the output since the last time, and at the end the rest. Blocking.
    pub(super) fn hear(&mut self, live: &LiveOutput, is_over: bool) {
        let (mut text, before) = (String::new(), self.at);
        for _ in 0..PAGES_AT_ONCE {
            let page = live.read_from(self.at);
            if page.chunks.is_empty() {
                break;
            }
            self.take(&page, &mut text);
        }
        if is_over {
            self.transcript.finish();
        }
        if is_over || self.at == before {
            // This may be a question that waits for its answer.
            self.end_line(&mut text);
        }
        let said = self.transcript.take_log();
        if self.counts() {
            text = said.into_iter().flat_map(|line| [line, "\n".into()]).collect();
        }
        if !text.is_empty()
            && let Err(error) = self.logs.append(&self.job, &text)
        {
            tracing::warn!(%error, job = %self.job, "what a job's worker says is not in its log");
        }
    }

    fn take(&mut self, page: &Page, text: &mut String) {
        self.transcript.read(page);
        for chunk in &page.chunks {
            if chunk.at > self.at {
                self.end_line(text);
                text.push_str(&format!("\n[... {} bytes were not kept ...]\n", chunk.at - self.at));
            }
            self.line.extend_from_slice(&chunk.bytes);
            self.at = self.at.max(chunk.at + chunk.bytes.len() as u64);
        }
        self.at = self.at.max(page.next);
        let whole = match memchr::memrchr(b'\n', &self.line) {
            Some(end) => end + 1,
            None if self.line.len() >= LINE_BYTES => self.line.len(),
            None => return,
        };
        let rest = self.line.split_off(whole);
        let lines = std::mem::replace(&mut self.line, rest);
        text.push_str(&plain_text(&String::from_utf8_lossy(&lines)));
    }

    fn end_line(&mut self, text: &mut String) {
        let line = std::mem::take(&mut self.line);
        text.push_str(&plain_text(&String::from_utf8_lossy(&line)));
    }
}

/// Returns the end of a run's standard error, at most `most` bytes, for people.
pub(super) fn last_words(live: &LiveOutput, most: usize) -> String {
    let said = plain_text(&live.text(Stream::Err));
    let said = said.trim_end();
    said[said.ceil_char_boundary(said.len().saturating_sub(most))..].to_owned()
}
