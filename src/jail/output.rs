//! A worker's output: kept in bounded memory, followed from a cursor, cleaned before people see it.
//!
//! Of each stream, the first half and the newest half of the bound are kept; the bytes between them are counted. Both
//! streams share one count of bytes, in the order in which they arrived, so that one number is a cursor.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::conversations::Conversations;
use provost_base::TaskId;
use provost_base::limits::{
    OUTPUT_BYTES_MAX, OUTPUT_OVER_BYTES_MAX, OUTPUT_PAGE_BYTES_MAX, OUTPUT_TASKS_MAX,
};

/// A chunk grows up to this many bytes before the next one begins.
const CHUNK_BYTES: usize = 16 << 10;

/// The cost of keeping a chunk in addition to its bytes. Counted, so that output byte by byte stays bounded, too.
const CHUNK_COST: usize = 64;

/// The name of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stream {
    /// The worker's standard output.
    Out,
    /// The worker's standard error.
    Err,
}

/// Consecutive bytes of one stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// The number of bytes, of both streams, that came before.
    pub at: u64,
    /// The stream to which the worker wrote them.
    pub stream: Stream,
    /// The bytes as they came; not necessarily text, and not safe to show as they are.
    pub bytes: Vec<u8>,
}

impl Chunk {
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    fn cost(&self) -> usize {
        self.bytes.len() + CHUNK_COST
    }

    /// Returns the part from the offset `from` on.
    pub(super) fn since(&self, from: u64) -> Chunk {
        let skipped =
            usize::try_from(from.saturating_sub(self.at)).unwrap_or(usize::MAX).min(self.bytes.len());
        Chunk { at: self.at + skipped as u64, stream: self.stream, bytes: self.bytes[skipped..].to_vec() }
    }
}

/// One stream: the first half and the newest half of its bound.
#[derive(Debug)]
struct BoundedStream {
    half: usize,
    head: Vec<Chunk>,
    head_cost: usize,
    tail: VecDeque<Chunk>,
    tail_cost: usize,
    dropped: u64,
}

impl BoundedStream {
    fn new(bound: usize) -> Self {
        Self { half: bound / 2, head: vec![], head_cost: 0, tail: VecDeque::new(), tail_cost: 0, dropped: 0 }
    }

    fn push(&mut self, chunk: Chunk) {
        let head_open = self.tail.is_empty() && self.head_cost + CHUNK_COST < self.half;
        if head_open {
            let room = self.half - self.head_cost - CHUNK_COST;
            let (first, rest) = split(chunk, room);
            self.head_cost += first.bytes.len();
            if !grow(self.head.last_mut(), &first) {
                self.head_cost += CHUNK_COST;
                self.head.push(first);
            }
            if let Some(rest) = rest {
                self.push_tail(rest);
            }
        } else {
            self.push_tail(chunk);
        }
    }

    fn push_tail(&mut self, chunk: Chunk) {
        self.tail_cost += chunk.bytes.len();
        if !grow(self.tail.back_mut(), &chunk) {
            self.tail_cost += CHUNK_COST;
            self.tail.push_back(chunk);
        }
        while self.tail_cost > self.half.max(CHUNK_COST + 1) {
            // Whole chunks are dropped, except for the last one, which loses its oldest bytes.
            let Some(mut oldest) = self.tail.pop_front() else { return };
            self.tail_cost -= oldest.cost();
            if self.tail.is_empty() {
                let keep = self.half.saturating_sub(CHUNK_COST).max(1).min(oldest.bytes.len());
                let gone = oldest.bytes.len() - keep;
                oldest.bytes.drain(..gone);
                oldest.at += gone as u64;
                self.dropped += gone as u64;
                self.tail_cost = oldest.cost();
                self.tail.push_back(oldest);
                return;
            }
            self.dropped += oldest.bytes.len() as u64;
        }
    }

    fn text(&self) -> String {
        let mut bytes: Vec<u8> = self.head.iter().flat_map(|c| c.bytes.iter().copied()).collect();
        if self.dropped > 0 {
            bytes.extend(format!("\n[... {} bytes dropped ...]\n", self.dropped).bytes());
        }
        bytes.extend(self.tail.iter().flat_map(|c| c.bytes.iter().copied()));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn split(mut chunk: Chunk, room: usize) -> (Chunk, Option<Chunk>) {
    if chunk.bytes.len() <= room {
        return (chunk, None);
    }
    let rest = chunk.bytes.split_off(room);
    let rest = Chunk { at: chunk.end(), stream: chunk.stream, bytes: rest };
    (chunk, Some(rest))
}

/// Appends a chunk to the last one if it follows directly and there is room. False if a new chunk is needed.
fn grow(last: Option<&mut Chunk>, chunk: &Chunk) -> bool {
    match last {
        Some(last) if last.end() == chunk.at && last.bytes.len() + chunk.bytes.len() <= CHUNK_BYTES => {
            last.bytes.extend_from_slice(&chunk.bytes);
            true
        }
        _ => false,
    }
}

/// Both streams of one worker.
#[derive(Debug)]
pub struct Capture {
    out: BoundedStream,
    err: BoundedStream,
    total: u64,
    finished: bool,
}

impl Capture {
    /// Keeps at most about `bound` bytes of each stream, never more than [`OUTPUT_BYTES_MAX`].
    pub fn new(bound: usize) -> Self {
        let bound = bound.min(OUTPUT_BYTES_MAX);
        Self { out: BoundedStream::new(bound), err: BoundedStream::new(bound), total: 0, finished: false }
    }

    /// Takes bytes that were read from one stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        for part in bytes.chunks(CHUNK_BYTES) {
            let chunk = Chunk { at: self.total, stream, bytes: part.to_vec() };
            self.total += part.len() as u64;
            self.kept_mut(stream).push(chunk);
        }
    }

    fn kept(&self, stream: Stream) -> &BoundedStream {
        match stream {
            Stream::Out => &self.out,
            Stream::Err => &self.err,
        }
    }

    fn kept_mut(&mut self, stream: Stream) -> &mut BoundedStream {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    /// Returns the used memory, in bytes.
    fn cost(&self) -> usize {
        [&self.out, &self.err].iter().map(|it| it.head_cost + it.tail_cost).sum()
    }

    /// Returns the number of bytes that both streams have had.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of a stream's bytes that were not kept.
    pub fn dropped(&self, stream: Stream) -> u64 {
        self.kept(stream).dropped
    }

    /// Returns a stream as text; one line reports the size of the part that was not kept. Not yet safe for a terminal: see
    /// [`plain_text`].
    pub fn text(&self, stream: Stream) -> String {
        self.kept(stream).text()
    }

    /// Returns the kept output from `offset` on, at most [`OUTPUT_PAGE_BYTES_MAX`] bytes, in the order of arrival.
    pub fn read_from(&self, offset: u64) -> Page {
        let streams = [&self.out, &self.err];
        let kept = streams.iter().flat_map(|kept| kept.head.iter().chain(&kept.tail));
        let mut later: Vec<&Chunk> = kept.filter(|chunk| chunk.end() > offset).collect();
        later.sort_by_key(|chunk| chunk.at);
        // A cursor behind the end was never given out: the page then names the end.
        let (mut chunks, mut next, mut size) = (Vec::new(), offset.min(self.total), 0);
        for chunk in later {
            if size >= OUTPUT_PAGE_BYTES_MAX {
                return Page { chunks, next, finished: false };
            }
            let part = chunk.since(offset);
            (size, next) = (size + part.bytes.len(), part.end());
            chunks.push(part);
        }
        Page { chunks, next: next.max(self.total), finished: self.finished }
    }
}

/// Output from a cursor on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The chunks in the order of arrival. Bytes in a gap between two chunks were not kept.
    pub chunks: Vec<Chunk>,
    /// The cursor for the next request.
    pub next: u64,
    /// Whether no output will follow.
    pub finished: bool,
}

impl Page {
    /// Returns the beginning of the page, of at most `most` bytes; at least one byte if the page has any.
    #[must_use]
    pub fn up_to(mut self, most: usize) -> Self {
        let mut room = most.max(1);
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            if chunk.bytes.len() > room {
                chunk.bytes.truncate(room);
                self.next = chunk.end();
                self.finished = false;
                self.chunks.truncate(number + usize::from(room > 0));
                return self;
            }
            room -= chunk.bytes.len();
        }
        self
    }
}

/// The output of a worker that runs or has just ended, shared between its reader and its followers.
#[derive(Clone, Debug)]
pub struct LiveOutput {
    capture: Arc<Mutex<Capture>>,
    changed: Arc<Notify>,
    pace: Option<Arc<Pace>>,
}

/// The position of the follower, if the worker waits for it.
#[derive(Debug, Default)]
struct Pace {
    read: AtomicU64,
    moved: Notify,
}

impl LiveOutput {
    /// Makes an empty output; see [`Capture::new`].
    pub fn new(bound: usize) -> Self {
        Self { capture: Arc::new(Mutex::new(Capture::new(bound))), changed: Arc::default(), pace: None }
    }

    /// Makes an output for a single reader that misses nothing: a worker that is faster has to wait. The reader reports
    /// its position with [`LiveOutput::has_been_read`].
    pub fn paced() -> Self {
        Self { pace: Some(Arc::default()), ..Self::new(OUTPUT_BYTES_MAX) }
    }

    /// Notes that the reader has dealt with everything before the cursor.
    pub fn has_been_read(&self, cursor: u64) {
        if let Some(pace) = &self.pace {
            pace.read.fetch_max(cursor, Ordering::Relaxed);
            pace.moved.notify_waiters();
        }
    }

    /// Lets the worker go on although its reader has stopped reading.
    pub fn let_go(&self) {
        self.has_been_read(u64::MAX);
    }

    /// Checks whether the worker waits for its reader.
    #[cfg(target_os = "linux")]
    pub(super) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Waits until the reader is near enough that nothing has to be dropped.
    pub(super) async fn room(&self) {
        let Some(pace) = &self.pace else { return };
        loop {
            let moved = pace.moved.notified();
            let behind = self.total().saturating_sub(pace.read.load(Ordering::Relaxed));
            if behind <= OUTPUT_PAGE_BYTES_MAX as u64 {
                return;
            }
            moved.await;
        }
    }

    /// Takes bytes that were read from one stream, and wakes the followers.
    pub fn push(&self, stream: Stream, bytes: &[u8]) {
        self.lock().push(stream, bytes);
        self.changed.notify_waiters();
    }

    /// Takes a page of another output, at the same offsets, and wakes the followers.
    pub fn take_over(&self, page: &Page) {
        let mut capture = self.lock();
        for chunk in &page.chunks {
            let new = chunk.since(capture.total);
            // The bytes in between were not kept there.
            capture.total = capture.total.max(new.at);
            capture.push(new.stream, &new.bytes);
        }
        capture.total = capture.total.max(page.next);
        drop(capture);
        self.changed.notify_waiters();
    }

    /// Returns all kept output.
    pub fn whole(&self) -> Page {
        let capture = self.lock();
        let mut page = capture.read_from(0);
        while page.next < capture.total {
            let more = capture.read_from(page.next);
            page.chunks.extend(more.chunks);
            (page.next, page.finished) = (more.next, more.finished);
        }
        page
    }

    /// Marks the output as complete, and wakes the followers.
    pub fn finish(&self) {
        self.lock().finished = true;
        self.changed.notify_waiters();
    }

    /// Checks whether the output is complete.
    pub fn is_finished(&self) -> bool {
        self.lock().finished
    }

    /// Reopens the output, since its run goes on.
    #[must_use]
    pub fn reopened(self) -> Self {
        self.lock().finished = false;
        self
    }

    /// Returns the output that exists from `offset` on, now.
    pub fn read_from(&self, offset: u64) -> Page {
        self.lock().read_from(offset)
    }

    /// Waits until there is output at `offset`, or until none will follow.
    pub async fn follow(&self, offset: u64) -> Page {
        loop {
            // Listening begins before looking, so that nothing slips through in between.
            let changed = self.changed.notified();
            let page = self.read_from(offset);
            if !page.chunks.is_empty() || page.finished || page.next > offset {
                return page;
            }
            changed.await;
        }
    }

    /// Waits until there are more than `heard` bytes. If the output ends before, it waits for ever.
    pub async fn grows_beyond(&self, heard: u64) {
        loop {
            // Listening begins before looking, so that nothing slips through in between.
            let changed = self.changed.notified();
            if self.total() > heard {
                return;
            }
            changed.await;
        }
    }

    /// Returns a stream as text; see [`Capture::text`].
    pub fn text(&self, stream: Stream) -> String {
        self.lock().text(stream)
    }

    /// Returns the number of bytes that both streams have had.
    pub fn total(&self) -> u64 {
        self.lock().total()
    }

    /// Returns the number of a stream's bytes that were not kept.
    pub fn dropped(&self, stream: Stream) -> u64 {
        self.lock().dropped(stream)
    }

    fn lock(&self) -> MutexGuard<'_, Capture> {
        // A capture is valid between any two of its statements.
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outputs of tasks: while they run, and later as long as there is room.
#[derive(Clone, Debug, Default)]
pub struct OutputBoard {
    tasks: Arc<Mutex<VecDeque<OnBoard>>>,
    added: Arc<Notify>,
    conversations: Option<Conversations>,
}

/// A task's output on the board.
#[derive(Debug)]
struct OnBoard {
    task: TaskId,
    /// The number of the task's attempt whose output this is; the first one has 1.
    attempt: u32,
    output: LiveOutput,
    /// Whether the run is over, so that other outputs may replace this one.
    is_over: bool,
}

impl OutputBoard {
    /// Returns this board with a place where turns of editors' sessions are kept.
    #[must_use]
    pub fn keeping(self, conversations: Conversations) -> Self {
        Self { conversations: Some(conversations), ..self }
    }

    /// Returns the place where turns of editors' sessions are kept; `None` if there is none.
    pub fn conversations(&self) -> Option<&Conversations> {
        self.conversations.as_ref()
    }

    /// Puts the output of a task's attempt on the board, in place of an earlier one of the same task. Beyond
    /// [`OUTPUT_TASKS_MAX`] one is removed: first the oldest of those whose runs are over, then the oldest of the others.
    pub fn add(&self, (task, attempt): (TaskId, u32), output: LiveOutput) {
        let mut tasks = self.lock();
        tasks.retain(|it| it.task != task);
        if tasks.len() >= OUTPUT_TASKS_MAX {
            let over = tasks.iter().position(|it| it.is_over);
            tasks.remove(over.unwrap_or(0));
        }
        tasks.push_back(OnBoard { task, attempt, output, is_over: false });
        drop(tasks);
        self.added.notify_waiters();
    }

    /// Checks whether all runs on the board are over.
    pub fn is_empty(&self) -> bool {
        self.lock().iter().all(|it| it.is_over)
    }

    /// Notes that the run of an output is over for good. The output stays on the board as long as those like it take no more than
    /// [`OUTPUT_OVER_BYTES_MAX`] together; the oldest are removed first.
    pub fn retire(&self, task: &TaskId, output: &LiveOutput) {
        let mut tasks = self.lock();
        let is_it = |it: &&mut OnBoard| it.task == *task && Arc::ptr_eq(&it.output.capture, &output.capture);
        let Some(it) = tasks.iter_mut().find(is_it) else { return };
        it.is_over = true;
        let cost = |it: &OnBoard| if it.is_over { it.output.lock().cost() } else { 0 };
        let mut all: usize = tasks.iter().map(cost).sum();
        tasks.retain(|it| {
            let goes = it.is_over && all > OUTPUT_OVER_BYTES_MAX;
            all -= if goes { cost(it) } else { 0 };
            !goes
        });
    }

    /// Returns the output of a task, to follow it. `None` if it is not on the board.
    pub fn get(&self, task: &TaskId) -> Option<LiveOutput> {
        self.lock().iter().find(|it| it.task == *task).map(|it| it.output.clone())
    }

    /// Returns the output of this attempt of a task. `None` if it is not on the board, as when it has written nothing yet.
    pub fn get_attempt(&self, task: &TaskId, attempt: u32) -> Option<LiveOutput> {
        self.lock().iter().find(|it| it.task == *task && it.attempt == attempt).map(|it| it.output.clone())
    }

    /// Waits until the output of a task is on the board. For a task that never runs, it waits for ever.
    pub async fn appears(&self, task: &TaskId) -> LiveOutput {
        loop {
            let added = self.added.notified();
            if let Some(output) = self.get(task) {
                return output;
            }
            added.await;
        }
    }

    /// Returns the output of a task from `offset` on. `None` if it is not on the board.
    pub fn read_from(&self, task: &TaskId, offset: u64) -> Option<Page> {
        self.get(task).map(|output| output.read_from(offset))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<OnBoard>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns text that cannot affect a terminal or mislead a reader: without escape sequences (colours, titles, clipboard
/// writes), control characters and marks that change the direction of text; a carriage return
/// becomes a line break.
pub fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_until(&mut rest, |c| ('@'..='~').contains(&c)),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain.push('\n'),
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => {}
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => plain.push(c),
        }
    }
    plain
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(rest: &mut Rest<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_until(rest, |c| ('@'..='~').contains(&c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        Some(' '..='/') => skip_until(rest, |c| ('0'..='~').contains(&c)),
        Some(c) if !c.is_control() => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips up to and including the character that ends the sequence. A line break also ends it and stays: an unfinished
/// sequence must not swallow the text that follows.
fn skip_until(rest: &mut Rest<'_>, ends: impl Fn(char) -> bool) {
    while let Some(c) = rest.peek().copied() {
        if c == '\n' {
            return;
        }
        rest.next();
        if ends(c) {
            return;
        }
    }
}

/// Skips the body of a title, a clipboard write or a device command, up to its terminator or the end of the line.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.peek().copied() {
        match c {
            '\n' => return,
            '\u{7}' | '\u{9c}' => {
                rest.next();
                return;
            }
            '\u{1b}' => {
                rest.next();
                if rest.peek() == Some(&'\\') {
                    rest.next();
                }
                return;
            }
            _ => {
                rest.next();
            }
        }
    }
}
