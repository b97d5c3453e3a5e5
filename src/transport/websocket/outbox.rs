//! The outgoing queue of a peer: bounded, so that a peer that does not read cannot harm others.
//!
//! A message either must arrive, or only reports progress. A progress message is replaced by its successor, and
//! dropped if a full queue needs its room. If a message that must arrive finds no room, the connection ends.

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

/// Messages are joined up to this many bytes before they are written.
const WRITE_BYTES: usize = 32 << 10;

/// The topic of a progress message: the next one with the same topic takes its place.
pub type Topic = u64;

/// The queue of messages for a peer. Clones are the same.
#[derive(Clone, Debug)]
pub struct Outbox(Arc<Shared>);

/// The bytes that wait at a door, over all its connections.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<AtomicUsize>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    news: Notify,
    /// Cancelled when the connection ends at once, even during a write.
    cut: CancellationToken,
    waiting: Waiting,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    /// The number of the first waiting message, counted from the beginning.
    first: u64,
    /// The number of the waiting progress message of each topic.
    passing: BTreeMap<Topic, u64>,
    /// The number of messages that wait or are being written.
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

/// The way in which a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// With a close frame, after the waiting messages.
    Close(Code),
    /// At once, without a close frame and without the waiting messages.
    Cut,
}

/// The reason why a message was not put into the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// The connection has ended, or is about to.
    Gone,
    /// There was no room for it, so that the connection ends now.
    TooSlow,
}

/// The next data to write.
enum Next {
    Write(Vec<Bytes>, Option<Vec<u8>>),
    Last(Code),
    Nothing,
}

impl Outbox {
    /// Makes an empty queue, at a door with these waiting bytes.
    pub fn new(waiting: Waiting) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::default(),
            news: Notify::new(),
            cut: CancellationToken::new(),
            waiting,
        }))
    }

    /// Sends a message that must arrive.
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

    /// Sends a progress message, in place of an earlier waiting one with the same topic. If there is no room, it is
    /// dropped.
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

    /// Answers a ping; if several wait, only the last is answered.
    pub fn pong(&self, payload: Vec<u8>) {
        if let Ok(mut queue) = self.open() {
            queue.pong = Some(payload);
            drop(queue);
            self.0.news.notify_one();
        }
    }

    /// Ends the connection in order, once all waiting messages have been sent.
    pub fn close(&self, code: Code) {
        if let Ok(queue) = self.open() {
            self.end(queue, End::Close(code));
        }
    }

    /// Ends the connection in order, without the waiting messages.
    pub fn close_now(&self, code: Code) {
        if let Ok(mut queue) = self.open() {
            self.0.waiting.sub(queue.clear());
            self.end(queue, End::Close(code));
        }
    }

    /// Ends the connection at once.
    pub fn cut(&self) {
        let mut queue = self.lock();
        self.0.waiting.sub(queue.clear());
        self.end(queue, End::Cut);
    }

    /// Returns when the connection is ended at once.
    pub async fn was_cut(&self) {
        self.0.cut.cancelled().await;
    }

    /// Returns whether no more messages can be sent.
    pub fn is_closed(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Writes the queued messages, until the close frame is written.
    ///
    /// # Errors
    /// The connection has ended, or the peer does not read.
    pub(super) async fn write(&self, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let (mut out, mut written) = (Vec::new(), (0, 0));
        loop {
            let next = self.next(written).ok_or(io::ErrorKind::ConnectionAborted)?;
            written = (0, 0);
            match next {
                Next::Nothing => {
                    // There are many idle connections, so they hold no memory.
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

    /// Subtracts the written messages, and takes the next data; `None` once the connection was ended at once.
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
        // The queue is consistent between any two operations.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the queue, as long as messages can be added.
    fn open(&self) -> Result<MutexGuard<'_, Queue>, Unsent> {
        let queue = self.lock();
        if queue.end.is_some() { Err(Unsent::Gone) } else { Ok(queue) }
    }

    /// Returns whether there is room for a message. A single message may have the size of any answer.
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
    /// Takes the next messages, as many as are written at once.
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

    /// Replaces the text of a progress message; returns the old and the new number of bytes.
    fn replace(&mut self, at: u64, text: Bytes) -> (usize, usize) {
        let index = usize::try_from(at - self.first).unwrap_or(usize::MAX);
        let Some(message) = self.messages.get_mut(index) else { return (0, 0) };
        let change = (message.text.len(), text.len());
        message.text = text;
        self.bytes = self.bytes - change.0 + change.1;
        change
    }

    /// Drops the progress messages; returns the number of freed bytes.
    fn drop_passing(&mut self) -> usize {
        self.passing.clear();
        self.keep(|message| message.topic.is_none())
    }

    /// Drops the waiting messages, except for those being written; returns the number of freed bytes.
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

    /// Returns the bytes that wait and are not being written.
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
