//! Follows the output of a running worker, on this host or another one: as written, or as text for people if the worker writes messages.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::Provost;
use provost_base::{HostId, TaskId};
use provost_domain::{HereIs, Task, TaskState};
use provost_engine::Woken;
use provost_jail::{Chunk, Page, Reader, Stream, Transcript};

impl Provost {
    /// Returns the output of a task's worker since `from`, and waits up to `patience` for more. `None` when no more
    /// will come: the task is over and its output has left memory.
    pub async fn output(&self, task: &TaskId, from: u64, patience: Duration) -> Option<Page> {
        let until = Instant::now() + patience;
        let mut events = self.engine().subscribe();
        loop {
            // Only where there are several hosts may the output here be of an earlier attempt.
            let here = self.view(HereIs).await.ok().map(|it| it.host).filter(|it| !it.is_alone());
            if here.is_none()
                && let Some(live) = self.outputs().get(task)
            {
                return Some(follow(&live, from, until).await);
            }
            let found = self.task(task).await;
            let is_elsewhere =
                here.zip(found.as_ref().ok()).is_some_and(|(here, it)| has_begun_away(it, here));
            if let Some(live) = self.outputs().get(task).filter(|_| !is_elsewhere) {
                return Some(follow(&live, from, until).await);
            }
            if let Ok(task) = &found
                && let Some(live) = self.far_output(task).await
            {
                return Some(follow(&live, from, until).await);
            }
            if found.as_ref().map_or(true, |task| task.state.is_finished()) {
                // The output may have begun and the task ended between the two looks.
                let here = self.outputs().read_from(task, from).filter(|_| !is_elsewhere);
                return match found {
                    Ok(over) if here.is_none() => self.output_elsewhere(&over, from).await,
                    _ => here,
                };
            }
            let nothing_yet = Page { chunks: Vec::new(), next: from, finished: false };
            match events.change(until, |_| true).await {
                Woken::Changed => {}
                Woken::Late => return Some(nothing_yet),
                Woken::Stopped => {
                    sleep_until(until).await;
                    return Some(nothing_yet);
                }
            }
        }
    }
}

impl Provost {
    /// Returns the output as text for people if a task's worker writes messages: the lines of each message, once it is whole. A
    /// page has about `limit` bytes at most, but always some of a message; the worker's standard error stays as it is.
    ///
    /// `from` is 0, or the cursor of a page that this has returned: it lies between two messages.
    pub async fn output_in_words(
        &self,
        task: &TaskId,
        from: u64,
        (patience, limit): (Duration, usize),
    ) -> Option<Page> {
        let Some(reader) = self.messages_of(task).await else {
            return self.output(task, from, patience).await.map(|it| it.up_to(limit));
        };
        let until = Instant::now() + patience;
        let mut words = Words::of(reader, from);
        // The wait for the end of a line has a bound.
        for _ in 0..PAGES_AT_ONCE {
            let left = until.saturating_duration_since(Instant::now());
            let page = self.output(task, words.read_to, left).await?;
            let (is_empty, is_over) = (page.chunks.is_empty(), page.finished && page.chunks.is_empty());
            words.take(&page, limit);
            if is_over {
                words.end(limit);
            }
            let is_late = Instant::now() >= until && words.settled > from;
            if is_empty || is_late || !words.told.is_empty() {
                return Some(words.page(is_over));
            }
        }
        Some(words.page(false))
    }

    /// Returns the reader of the messages of a task's worker; `None` if it writes plain text.
    async fn messages_of(&self, task: &TaskId) -> Option<Reader> {
        let task = self.task(task).await.ok()?;
        let profile = self.profiles().get(&task.order.worker).cloned()?;
        profile.agent.map(|it| it.reader).filter(|it| *it != Reader::Lines)
    }

    /// Returns the output of a run on another host: the output that it has left for this host, or that this host has heard of it.
    async fn output_elsewhere(&self, task: &Task, from: u64) -> Option<Page> {
        let left = match task.commit_away() {
            Some(_) => self.output_left(task, from).await,
            None => None,
        };
        left.or_else(|| self.heard_of(task, from))
    }

    /// Returns the output that a run on another host has left for this host.
    async fn output_left(&self, task: &Task, from: u64) -> Option<Page> {
        let (artifacts, id, run) = (self.artifacts(), task.id().clone(), (task.daemon.host, task.attempt()));
        let read = tokio::task::spawn_blocking(move || artifacts.output_of(&id, run)).await.ok()?;
        let read = read
            .inspect_err(|error| tracing::warn!(%error, "the output of a run elsewhere is not to be had"));
        let page = Page::of_bytes(&read.ok()??)?.since(from);
        Some(Page { finished: true, ..page })
    }

    /// Updates a transcript with the output of its agent so far, without waiting. `false` when no more output will
    /// come, or none is in memory.
    pub fn catch_up(&self, task: &TaskId, transcript: &mut Transcript) -> bool {
        let Some(live) = self.outputs().get(task) else { return false };
        for _ in 0..PAGES_AT_ONCE {
            let page = live.read_from(transcript.at());
            if page.chunks.is_empty() {
                return !page.finished;
            }
            transcript.read(&page);
        }
        true
    }
}

/// The most bytes of one message that are returned even if the caller asks for less: a page never has a part of a message.
const MESSAGE_BYTES: usize = 16 << 10;

/// Turns a worker's messages into text, up to the end of the last whole one.
struct Words {
    transcript: Transcript,
    from: u64,
    /// The position up to which the output was read.
    read_to: u64,
    /// The position up to which the text is complete: between two messages, so that a reader can continue here without any state.
    settled: u64,
    told: Vec<Chunk>,
    bytes: usize,
    /// The output that follows the beginning of an unfinished message.
    waiting: Vec<Chunk>,
    is_within_a_message: bool,
}

impl Words {
    fn of(reader: Reader, from: u64) -> Self {
        let mut transcript = Transcript::new(reader);
        transcript.read(&Page { chunks: Vec::new(), next: from, finished: false });
        Self {
            transcript,
            from,
            read_to: from,
            settled: from,
            told: Vec::new(),
            bytes: 0,
            waiting: Vec::new(),
            is_within_a_message: false,
        }
    }

    fn take(&mut self, page: &Page, limit: usize) {
        // A cursor behind the end was never handed out: the page says where the end is.
        self.read_to = self.read_to.min(page.next);
        self.settled = self.settled.min(page.next);
        for chunk in &page.chunks {
            if chunk.at > self.read_to {
                // The transcript reports the gap, and skips the message whose beginning is missing.
                self.is_within_a_message = true;
                self.hear(chunk.at, &[]);
            }
            if chunk.stream == Stream::Err {
                if self.bytes >= limit {
                    return;
                }
                self.pass_to(chunk.at + chunk.bytes.len() as u64);
                self.waiting.push(chunk.clone());
                if !self.is_within_a_message {
                    self.settle();
                }
                continue;
            }
            let mut at = chunk.at;
            for part in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
                if self.bytes >= limit {
                    return;
                }
                self.hear(at, part);
                at = self.read_to;
                self.is_within_a_message = !part.ends_with(b"\n");
                if !self.is_within_a_message {
                    self.tell(limit);
                }
            }
        }
        self.pass_to(page.next);
    }

    /// Lets the transcript read the worker's standard output.
    fn hear(&mut self, at: u64, bytes: &[u8]) {
        let next = at + bytes.len() as u64;
        let chunks = vec![Chunk { at, stream: Stream::Out, bytes: bytes.to_vec() }];
        self.transcript.read(&Page { chunks, next, finished: false });
        self.read_to = next;
    }

    fn pass_to(&mut self, next: u64) {
        self.read_to = self.read_to.max(next);
        self.transcript.read(&Page { chunks: Vec::new(), next: self.read_to, finished: false });
    }

    /// Adds the lines that the transcript has understood; each message has a bound.
    fn tell(&mut self, limit: usize) {
        let (mut text, mut left_out) = (String::new(), 0_u64);
        for line in self.transcript.take_log() {
            if left_out > 0 || (!text.is_empty() && text.len() + line.len() >= limit.max(MESSAGE_BYTES)) {
                left_out += 1;
                continue;
            }
            text.push_str(&line);
            text.push('\n');
        }
        if left_out > 0 {
            text.push_str(&format!("[{left_out} lines left out]\n"));
        }
        if !text.is_empty() {
            self.waiting.push(Chunk { at: 0, stream: Stream::Out, bytes: text.into_bytes() });
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.settled = self.read_to;
        for chunk in self.waiting.drain(..) {
            self.bytes += chunk.bytes.len();
            match self.told.last_mut() {
                Some(last) if last.stream == chunk.stream => last.bytes.extend_from_slice(&chunk.bytes),
                _ => self.told.push(chunk),
            }
        }
    }

    /// Ends the text: no more output follows, so an unfinished message counts as whole.
    fn end(&mut self, limit: usize) {
        self.transcript.finish();
        self.is_within_a_message = false;
        self.tell(limit);
    }

    /// Returns the page, with positions as if the worker had written this text.
    fn page(self, finished: bool) -> Page {
        let mut at = self.from;
        let place = |chunk: Chunk| {
            let chunk = Chunk { at, ..chunk };
            at += chunk.bytes.len() as u64;
            chunk
        };
        Page { chunks: self.told.into_iter().map(place).collect(), next: self.settled, finished }
    }
}

/// The most pages that are read at once: more than memory holds at any moment, but a worker can go on writing.
const PAGES_AT_ONCE: usize = 32;

/// Checks whether the last attempt of a task has begun at another host than this one.
fn has_begun_away(task: &Task, here: HostId) -> bool {
    let has_begun = matches!(task.state, TaskState::Running { .. }) || task.state.is_finished();
    has_begun && !task.daemon.host.is_alone() && task.daemon.host != here
}

async fn follow(live: &provost_jail::LiveOutput, from: u64, until: Instant) -> Page {
    timeout_at(until, live.follow(from)).await.unwrap_or_else(|_| live.read_from(from))
}
