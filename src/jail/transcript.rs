//! The output of an agent while it works: its answer so far, its progress, its use of tokens, and lines
//! for people.
//!
//! Some agents write messages, one JSON object on each line; others write text. All of it is hostile: a line has a
//! bound, a line that is no message is a line for people, and no sign that could act on a terminal comes through.
//! Bytes are taken as they come; bytes that a [`LiveOutput`](super::LiveOutput) could not keep are a gap, and
//! reported as one.
#![forbid(unsafe_code)]

mod acp;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;

use std::collections::VecDeque;

pub use claude::why_in_words;
use serde_json::Value;

use super::output::{Page, Stream, plain_text};
use provost_base::Digest;
use provost_base::limits::{
    ANSWER_BYTES_MAX, STREAM_LINE_BYTES_MAX, STREAM_LOG_BYTES_MAX, STREAM_LOG_LINE_MAX,
};

/// The format of an agent's standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// Each line is text for people.
    Lines,
    /// As `claude --output-format stream-json` writes it.
    Claude,
    /// As `codex exec --json` writes it.
    Codex,
    /// As `gemini -o stream-json` writes it.
    Gemini,
    /// As `opencode run --format json` writes it.
    OpenCode,
    /// As `copilot --output-format json` writes it.
    Copilot,
    /// The updates of a session in the Agent Client Protocol, as the daemon writes them down.
    Acp,
}

impl Reader {
    /// Returns the reader of a form of output, by its name in the settings (`stream`); `None` for an unknown name.
    pub fn named(form: &str) -> Option<Self> {
        Some(match form {
            "lines" => Reader::Lines,
            "claude-json" => Reader::Claude,
            "codex-jsonl" => Reader::Codex,
            "gemini-json" => Reader::Gemini,
            "opencode-json" => Reader::OpenCode,
            "copilot-json" => Reader::Copilot,
            "acp" => Reader::Acp,
            _ => return None,
        })
    }
}

/// The use that an agent reports. These are claims: they are shown and never relied on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Used {
    /// Tokens that the model has read.
    pub input: Option<u64>,
    /// Tokens that the model has written.
    pub output: Option<u64>,
    /// Tokens that the model has spent on reasoning.
    pub reasoning: Option<u64>,
    /// Tokens that came out of the service's cache.
    pub cache_read: Option<u64>,
    /// Tokens that were written to that cache.
    pub cache_write: Option<u64>,
    /// The price in US dollars.
    pub cost_usd: Option<f64>,
}

/// A reader of one run's output.
#[derive(Debug)]
pub struct Transcript {
    reader: Reader,
    at: u64,
    out: Line,
    err: Line,
    said: Said,
}

/// A line that is not complete yet.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Whether the rest of the line is ignored, since it is too long, or its beginning is missing.
    skipping: bool,
}

/// The parts of the run's output so far.
#[derive(Debug, Default)]
struct Said {
    /// Text outside of messages: the whole output of an agent that writes text.
    text: String,
    /// The last message of the agent.
    answer: Option<String>,
    /// Whether the last message may go on.
    is_open: bool,
    /// Whether the turn is over, so that later words are no part of an answer.
    is_over: bool,
    /// The agent's explicit result, which takes precedence over its last message.
    result: Option<String>,
    failure: Option<Box<str>>,
    messages: u64,
    steps: u64,
    used: Used,
    /// The use before the present turn, for an agent that reports it for each turn.
    used_before: Used,
    model: Option<Box<str>>,
    /// The last difference that was reported.
    difference: Option<Digest>,
    log: VecDeque<String>,
    log_bytes: usize,
    log_lost: u64,
}

impl Transcript {
    /// Makes a transcript of a run that has no output yet.
    pub fn new(reader: Reader) -> Self {
        Self { reader, at: 0, out: Line::default(), err: Line::default(), said: Said::default() }
    }

    /// Reads the whole output of a run that is over.
    pub fn of(reader: Reader, stdout: &str) -> Self {
        let mut transcript = Self::new(reader);
        transcript.push(Stream::Out, stdout.as_bytes());
        transcript.finish();
        transcript
    }

    /// Returns the position at which the next page has to begin.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Reads a page of output. Skips chunks that begin before [`Transcript::at`], since they have been read already.
    pub fn read(&mut self, page: &Page) {
        for chunk in &page.chunks {
            if chunk.at < self.at {
                continue;
            }
            if chunk.at > self.at {
                self.gap(chunk.at - self.at);
            }
            self.push(chunk.stream, &chunk.bytes);
            self.at = chunk.at + chunk.bytes.len() as u64;
        }
        self.at = self.at.max(page.next);
    }

    /// Reads one chunk, which need not follow the last one.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = self.line(stream);
            if !line.skipping {
                line.bytes.extend_from_slice(part);
            }
            if line.bytes.len() > STREAM_LINE_BYTES_MAX {
                *line = Line { bytes: Vec::new(), skipping: true };
                self.said.log(&format!("[a line of more than {STREAM_LINE_BYTES_MAX} bytes]"));
            }
            if part.ends_with(b"\n") {
                self.line_ended(stream);
            }
        }
    }

    /// Reads the last line of each stream, even without a line break; nothing will follow.
    pub fn finish(&mut self) {
        self.line_ended(Stream::Out);
        self.line_ended(Stream::Err);
    }

    /// Returns the answer so far: the result, or else the last message, or else the text. It is cleaned, and at most
    /// [`ANSWER_BYTES_MAX`] long.
    pub fn answer(&self) -> &str {
        let spoken = self.said.result.as_deref().or(self.said.answer.as_deref());
        spoken.unwrap_or(&self.said.text)
    }

    /// Checks whether any line was a message; for an agent that writes text, whether it has written any.
    pub fn understood(&self) -> bool {
        match self.reader {
            Reader::Lines => !self.said.text.trim().is_empty(),
            _ => self.said.messages > 0,
        }
    }

    /// Returns the number of messages and tool calls so far; of lines, for an agent that writes text.
    pub fn steps(&self) -> u64 {
        self.said.steps
    }

    /// Returns the use that the agent reports.
    pub fn used(&self) -> Used {
        self.said.used
    }

    /// Returns the model that the agent reports.
    pub fn model(&self) -> Option<&str> {
        self.said.model.as_deref()
    }

    /// Returns the failure that the agent reports.
    pub fn failure(&self) -> Option<&str> {
        self.said.failure.as_deref()
    }

    /// Takes the lines for people since the last call, without line breaks.
    pub fn take_log(&mut self) -> Vec<String> {
        let said = &mut self.said;
        said.log_bytes = 0;
        let lost = std::mem::take(&mut said.log_lost);
        let told = (lost > 0).then(|| format!("[{lost} lines left out]"));
        told.into_iter().chain(said.log.drain(..)).collect()
    }

    fn line(&mut self, stream: Stream) -> &mut Line {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn gap(&mut self, bytes: u64) {
        // The end of an incomplete line is missing.
        for stream in [Stream::Out, Stream::Err] {
            *self.line(stream) = Line { bytes: Vec::new(), skipping: true };
        }
        self.said.log(&format!("[... {bytes} bytes dropped ...]"));
    }

    fn line_ended(&mut self, stream: Stream) {
        let line = std::mem::take(self.line(stream));
        if line.skipping || line.bytes.is_empty() {
            return;
        }
        match (stream, self.reader) {
            (Stream::Err, _) => self.said.log_each(&String::from_utf8_lossy(&line.bytes)),
            (Stream::Out, Reader::Lines) => {
                self.said.steps += 1;
                self.said.plain(&line.bytes);
            }
            (Stream::Out, reader) => self.message(reader, &line.bytes),
        }
    }

    fn message(&mut self, reader: Reader, line: &[u8]) {
        let text = line.trim_ascii();
        let value = text.starts_with(b"{").then(|| serde_json::from_slice::<Value>(text).ok()).flatten();
        let known = value.is_some_and(|value| match reader {
            Reader::Claude => claude::read(&mut self.said, &value),
            Reader::Codex => codex::read(&mut self.said, &value),
            Reader::Gemini => gemini::read(&mut self.said, &value),
            Reader::OpenCode => opencode::read(&mut self.said, &value),
            Reader::Copilot => copilot::read(&mut self.said, &value),
            Reader::Acp => acp::read(&mut self.said, &value),
            Reader::Lines => false,
        });
        match known {
            true => self.said.messages += 1,
            false => self.said.plain(line),
        }
    }
}

impl Said {
    /// Reads a line that is no message.
    fn plain(&mut self, line: &[u8]) {
        let text = plain_text(&String::from_utf8_lossy(line));
        append(&mut self.text, &text);
        self.log_each(&text);
    }

    /// Records a whole message of the agent.
    fn speaks(&mut self, text: &str) {
        self.steps += 1;
        let text = plain_text(text);
        self.log_each(&text);
        self.answer = Some(clip(&text, ANSWER_BYTES_MAX).to_owned());
    }

    /// Records a piece of a message of the agent, or a whole message.
    fn speaks_on(&mut self, text: &str, is_piece: bool) {
        match self.answer.take().filter(|_| self.is_open && is_piece) {
            Some(before) => {
                let mut whole = before;
                append(&mut whole, &plain_text(text));
                self.log_each(&plain_text(text));
                self.answer = Some(whole);
            }
            None => self.speaks(text),
        }
        self.is_open = is_piece;
    }

    /// Ends the message: the next piece begins another one.
    fn pauses(&mut self) {
        self.is_open = false;
    }

    fn ends_with(&mut self, result: &str) {
        self.result = Some(clip(&plain_text(result), ANSWER_BYTES_MAX).to_owned());
    }

    fn fails(&mut self, why: &str) {
        let why = plain_text(why);
        let why = clip(why.trim(), STREAM_LOG_LINE_MAX);
        self.failure = Some(if why.is_empty() { "it says that it has failed" } else { why }.into());
        self.log(why);
    }

    fn names_model(&mut self, model: &str) {
        let model = plain_text(model);
        let model = clip(model.trim(), STREAM_LOG_LINE_MAX);
        // `<synthetic>` marks a message of the program itself, not of a model.
        if !model.is_empty() && model != "<synthetic>" {
            self.model = Some(model.into());
        }
    }

    fn log_each(&mut self, text: &str) {
        text.lines().filter(|line| !line.trim().is_empty()).for_each(|line| self.log(line));
    }

    fn log(&mut self, line: &str) {
        let plain = plain_text(line).replace('\n', " ");
        let plain = plain.trim_end();
        let clipped = clip(plain, STREAM_LOG_LINE_MAX);
        let more = if clipped.len() < plain.len() { "…" } else { "" };
        self.log_bytes += clipped.len() + more.len();
        self.log.push_back(format!("{clipped}{more}"));
        while self.log_bytes > STREAM_LOG_BYTES_MAX {
            let Some(oldest) = self.log.pop_front() else { break };
            self.log_bytes -= oldest.len().min(self.log_bytes);
            self.log_lost += 1;
        }
    }
}

/// Appends as much of the text as there is room for.
fn append(to: &mut String, text: &str) {
    to.push_str(clip(text, ANSWER_BYTES_MAX.saturating_sub(to.len())));
}

fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most.min(text.len()))]
}

/// Returns the message of a model's service, if the agent passes the service's error on as JSON.
fn in_words(why: &str) -> String {
    let said = why.find('{').and_then(|at| {
        // Text may follow it, such as the bracket into which the agent has put it.
        let mut values = serde_json::Deserializer::from_str(&why[at..]).into_iter::<Value>();
        values.next()?.ok()
    });
    let said = said.as_ref().and_then(|it| it.pointer("/error/message").or_else(|| it.get("message")));
    said.and_then(Value::as_str).filter(|it| !it.trim().is_empty()).unwrap_or(why).to_owned()
}

/// Returns a member that is text, or an empty text.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
