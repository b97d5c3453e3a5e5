//! The outgoing queue of one peer: bounded, so that a peer that does not read costs no other peer anything.
//!
//! A message either has to arrive, or only reports progress; its successor replaces a progress message, and so does
//! every other message in a full queue. If a message that has to arrive finds no room, the connection ends.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Code;
use super::frame::{Kind, put_head};
use provost_base::limits::{
    SOCKET_QUEUE_BYTES_MAX, SOCKET_QUEUE_FAIR_BYTES, SOCKET_QUEUE_MESSAGES_MAX, SOCKET_QUEUES_BYTES_MAX,
};

/// Messages are put together up to this many bytes before they are written.
const WRITE_BYTES: usize = 32 << 10;

/// What a passing message is about: the next one about the same takes its place.
pub type Topic = u64;

/// Where messages for one peer are put. Clones are the same.
#[derive(Clone, Debug)]
pub struct Outbox(Arc<Shared>);

/// Bytes that wait at one door, over all its connections.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<AtomicUsize>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    news: Notify,
    /// Cancelled when the connection ends as it is, whatever is being written.
    cut: CancellationToken,
    waiting: Waiting,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    /// The number of the first of them, counted from the beginning.
    first: u64,
    /// Where the passing message about something is.
    passing: BTreeMap<Topic, u64>,
    /// Messages and bytes that are in it or being written.
    count: usize,
    bytes: usize,
    /// The payload of the last ping that was not answered.
    pong: Option<Vec<u8>>,
    end: Option<End>,
}

#[derive(Debug)]
struct Message {
    text: Bytes,
    topic: Option<Topic>,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// With a close frame, after what waits.
    Close(Code),
    /// At once, without a close frame and without what waits.
    Cut,
}

/// Why a message was not put into the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// The connection has ended, or is about to.
    Gone,
    /// There was no room for it, so that the connection ends now.
    TooSlow,
}

/// The next thing to be written.
enum Next {
    Write(Vec<Bytes>, Option<Vec<u8>>),
    Last(Code),
    Nothing,
}

impl Outbox {
    /// An empty one, at a door with so much waiting.
    pub fn new(waiting: Waiting) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            news: Notify::new(),
            cut: CancellationToken::new(),
            waiting,
        }))
    }

    /// Sends a message that has to arrive.
    ///
    /// # Errors
    /// [`Unsent`].
    pub fn send(&self, text: impl Into<Bytes>) -> Result<(), Unsent> {
        let text = text.into();
        let mut queue = self.open()?;
        if !self.fits(&queue, text.len()) {
            let given_way = queue.drop_passing();
            self.0.waiting.sub(given_way);
            if !self.fits(&queue, text.len()) {
                self.end(queue, End::Cut);
                return Err(Unsent::TooSlow);
            }
        }
        self.put(queue, Message { text, topic: None });
        Ok(())
    }

    /// Sends a message that only says how something stands, in place of an earlier one about the same that still
    /// waits. Where there is no room, it is dropped.
    ///
    /// # Errors
    /// [`Unsent::Gone`].
    pub fn send_passing(&self, topic: Topic, text: Bytes) -> Result<(), Unsent> {
        let mut queue = self.open()?;
        if let Some(at) = queue.passing.get(&topic).copied() {
            let change = queue.replace(at, text);
            self.0.waiting.change(change);
        } else if self.fits(&queue, text.len()) {
            let at = queue.first + queue.messages.len() as u64;
            queue.passing.insert(topic, at);
            self.put(queue, Message { text, topic: Some(topic) });
        }
        Ok(())
    }

    /// Answers a ping; of several that wait for it, the last.
    pub fn pong(&self, payload: Vec<u8>) {
        if let Ok(mut queue) = self.open() {
            queue.pong = Some(payload);
            drop(queue);
            self.0.news.notify_one();
        }
    }

    /// Ends the connection in order, once everything that waits has been sent.
    pub fn close(&self, code: Code) {
        if let Ok(queue) = self.open() {
            self.end(queue, End::Close(code));
        }
    }

    /// Ends the connection in order, without what waits.
    pub fn close_now(&self, code: Code) {
        if let Ok(mut queue) = self.open() {
            self.0.waiting.sub(queue.clear());
            self.end(queue, End::Close(code));
        }
    }

    /// Ends the connection as it is.
    pub fn cut(&self) {
        let mut queue = self.lock();
        self.0.waiting.sub(queue.clear());
        self.end(queue, End::Cut);
    }

    /// Returns when the connection ends as it is.
    pub async fn was_cut(&self) {
        self.0.cut.cancelled().await;
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Writes what comes, until the close frame is written.
    ///
    /// # Errors
    /// When the connection has ended or does not take what is written.
    pub(super) async fn write(&self, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let (mut out, mut written) = (Vec::new(), (0, 0));
        loop {
            let next = self.next(written).ok_or(io::ErrorKind::ConnectionAborted)?;
            written = (0, 0);
            match next {
                Next::Nothing => {
                    // Idle connections are many, and hold nothing.
                    out = Vec::new();
                    self.0.news.notified().await;
                    continue;
                }
                Next::Last(code) => {
                    put_head(Kind::Close, 2, &mut out);
                    out.extend_from_slice(&code.0.to_be_bytes());
                    to.write_all(&out).await?;
                    return to.flush().await;
                }
                Next::Write(messages, pong) => {
                    if let Some(payload) = pong {
                        put_head(Kind::Pong, payload.len(), &mut out);
                        out.extend_from_slice(&payload);
                    }
                    for text in messages {
                        written = (written.0 + 1, written.1 + text.len());
                        put_head(Kind::Text, text.len(), &mut out);
                        if text.len() <= WRITE_BYTES {
                            out.extend_from_slice(&text);
                        } else {
                            to.write_all(&out).await?;
                            out.clear();
                            to.write_all(&text).await?;
                        }
                    }
                }
            }
            to.write_all(&out).await?;
            to.flush().await?;
            out.clear();
        }
    }

    /// Takes note of what was written, and out what comes next; `None` once the connection was cut.
    fn next(&self, (count, bytes): (usize, usize)) -> Option<Next> {
        let mut queue = self.lock();
        queue.count -= count;
        queue.bytes -= bytes;
        self.0.waiting.sub(bytes);
        let (messages, pong) = (queue.take(), queue.pong.take());
        match queue.end {
            Some(End::Cut) => None,
            _ if !messages.is_empty() || pong.is_some() => Some(Next::Write(messages, pong)),
            Some(End::Close(code)) => Some(Next::Last(code)),
            None => Some(Next::Nothing),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Whole between any two of its operations.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue, as long as something can be put into it.
    fn open(&self) -> Result<MutexGuard<'_, Queue>, Unsent> {
        let queue = self.lock();
        if queue.end.is_some() { Err(Unsent::Gone) } else { Ok(queue) }
    }

    /// Whether there is room for a message. One alone may be of any size that an answer can have.
    fn fits(&self, queue: &Queue, len: usize) -> bool {
        let crowded = self.0.waiting.now() + len > SOCKET_QUEUES_BYTES_MAX;
        let most = if crowded { SOCKET_QUEUE_FAIR_BYTES } else { SOCKET_QUEUE_BYTES_MAX };
        queue.count == 0 || (queue.count < SOCKET_QUEUE_MESSAGES_MAX && queue.bytes + len <= most)
    }

    fn put(&self, mut queue: MutexGuard<'_, Queue>, message: Message) {
        self.0.waiting.add(message.text.len());
        queue.count += 1;
        queue.bytes += message.text.len();
        queue.messages.push_back(message);
        drop(queue);
        self.0.news.notify_one();
    }

    fn end(&self, mut queue: MutexGuard<'_, Queue>, end: End) {
        queue.end = Some(end);
        drop(queue);
        match end {
            End::Close(_) => self.0.news.notify_one(),
            End::Cut => self.0.cut.cancel(),
        }
    }
}

impl Queue {
    /// The next messages, as many as are written at once.
    fn take(&mut self) -> Vec<Bytes> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < WRITE_BYTES
            && let Some(message) = self.messages.pop_front()
        {
            self.first += 1;
            if let Some(topic) = message.topic {
                self.passing.remove(&topic);
            }
            bytes += message.text.len();
            taken.push(message.text);
        }
        taken
    }

    /// Puts another text in the place of a passing one; returns how many bytes were there, and are.
    fn replace(&mut self, at: u64, text: Bytes) -> (usize, usize) {
        let index = usize::try_from(at - self.first).unwrap_or(usize::MAX);
        let Some(message) = self.messages.get_mut(index) else { return (0, 0) };
        let change = (message.text.len(), text.len());
        message.text = text;
        self.bytes = self.bytes - change.0 + change.1;
        change
    }

    /// Makes room by what is passing; returns how many bytes that were.
    fn drop_passing(&mut self) -> usize {
        self.passing.clear();
        self.keep(|message| message.topic.is_none())
    }

    /// Forgets what waits, but for what is being written; returns how many bytes that were.
    fn clear(&mut self) -> usize {
        self.passing.clear();
        self.keep(|_| false)
    }

    fn keep(&mut self, wanted: impl Fn(&Message) -> bool) -> usize {
        let before = (self.messages.len(), self.waiting());
        self.messages.retain(wanted);
        let gone = before.1 - self.waiting();
        self.count -= before.0 - self.messages.len();
        self.bytes -= gone;
        gone
    }

    /// Bytes that wait and are not being written.
    fn waiting(&self) -> usize {
        self.messages.iter().map(|message| message.text.len()).sum()
    }
}

impl Waiting {
    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sub(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn change(&self, (before, after): (usize, usize)) {
        self.add(after);
        self.sub(before);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.waiting.sub(queue.bytes);
    }
}
