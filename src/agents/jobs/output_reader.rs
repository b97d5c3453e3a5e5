//! Follows the output of a run, for the job's log and for its progress.

use provost_base::JobId;
use provost_jail::{LiveOutput, Page, Reader, Stream, Transcript, plain_text};
use provost_store::JobLogs;

/// A line that does not end is written down when it has become so long, in bytes.
const LINE_BYTES: usize = 64 << 10;
/// Pages after which the rest has to wait: more than is kept at any moment, but a worker can go on writing.
const PAGES_AT_ONCE: usize = 32;

/// Hears one run out.
pub(super) struct OutputReader {
    logs: JobLogs,
    job: JobId,
    reader: Reader,
    transcript: Transcript,
    /// What has come since the last end of a line, of both streams as they came.
    line: Vec<u8>,
    at: u64,
}

impl OutputReader {
    pub(super) fn new(logs: JobLogs, job: JobId, reader: Reader) -> Self {
        Self { logs, job, reader, transcript: Transcript::new(reader), line: Vec::new(), at: 0 }
    }

    /// Messages and calls of tools so far; lines, of an agent that writes text.
    pub(super) fn steps(&self) -> u64 {
        self.transcript.steps()
    }

    /// Whether there are more than lines to count.
    pub(super) fn counts(&self) -> bool {
        self.reader != Reader::Lines
    }

    /// How much of both streams it has heard, in bytes.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether a line was begun that is not written down.
    pub(super) fn is_within_a_line(&self) -> bool {
        !self.line.is_empty()
    }

    /// Writes down what was said since the last time, and at the end what is left. Blocking.
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
            // A question, say, that waits for its answer.
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

/// The end of what a run has said on its standard error, of at most so many bytes, for people.
pub(super) fn last_words(live: &LiveOutput, most: usize) -> String {
    let said = plain_text(&live.text(Stream::Err));
    let said = said.trim_end();
    said[said.ceil_char_boundary(said.len().saturating_sub(most))..].to_owned()
}
