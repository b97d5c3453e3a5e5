//! Streams of events to readers over HTTP: each with a queue of its own, bounded in events and in bytes.
//!
//! A reader that does not keep up is disconnected, and resumes if its protocol permits it; no other reader waits
//! for it. Readers share the frames: an event is in memory once, even for a thousand readers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Sleep, sleep};

use provost_base::limits::{STREAM_BYTES_MAX, STREAM_EVENTS_MAX, STREAM_READERS_MAX, STREAM_TURN_BYTES_MAX};

/// The frame that a reader gets when no event has come for a while.
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    every: Duration,
    frame: &'static [u8],
}

impl KeepAlive {
    /// Makes a pulse of comments, which readers ignore: they keep the connection open, and show whether the reader has gone.
    pub const fn comment(every: Duration) -> Self {
        Self { every, frame: b":\n\n" }
    }

    /// Makes a pulse of the event `beat`, by which a script in a browser, which sees no comments, knows that the sender is alive.
    pub const fn beat(every: Duration) -> Self {
        Self { every, frame: b"event: beat\ndata: {}\n\n" }
    }
}

/// The readers of a door.
#[derive(Clone, Debug)]
pub struct Readers(Arc<Semaphore>);

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(STREAM_READERS_MAX)))
    }
}

impl Readers {
    /// Adds a reader: returns the sender for its events, and the body that carries them. A pulse is sent whenever
    /// its time has passed since the last event, but never before the first one.
    ///
    /// `None` if there are as many readers as allowed.
    pub fn enter(&self, pulse: Option<KeepAlive>) -> Option<(EventSender, EventStream)> {
        let place = Arc::clone(&self.0).try_acquire_owned().ok()?;
        let (sender, queue) = mpsc::channel(STREAM_EVENTS_MAX);
        let waiting = Arc::new(Waiting::default());
        let stream = EventStream { queue, waiting: Arc::clone(&waiting), pulse, timer: None, _place: place };
        Some((EventSender { queue: sender, waiting }, stream))
    }
}

/// The reason why a reader gets no further event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutOff {
    /// Its connection has ended.
    Gone,
    /// Its queue is full. Queued events are still sent, if the reader takes them.
    TooSlow,
}

/// The counts of the events in a reader's queue.
#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    /// Signalled when there are fewer.
    room: Notify,
}

/// Puts events into the queue of a reader. When it is dropped, the stream ends after the queued events.
#[derive(Debug)]
pub struct EventSender {
    queue: mpsc::Sender<Bytes>,
    waiting: Arc<Waiting>,
}

impl EventSender {
    /// Sends a frame, which is a whole encoded event with its empty line. Does not wait.
    ///
    /// # Errors
    /// [`CutOff`]: no event can be sent from now on, and this sender should be dropped.
    pub fn send(&self, frame: Bytes) -> Result<(), CutOff> {
        let len = frame.len();
        let before = self.waiting.bytes.fetch_add(len, Ordering::Relaxed);
        // A single event may have any size.
        if before > 0 && before + len > STREAM_BYTES_MAX {
            return Err(CutOff::TooSlow);
        }
        self.queue.try_send(frame).map_err(|err| match err {
            TrySendError::Full(_) => CutOff::TooSlow,
            TrySendError::Closed(_) => CutOff::Gone,
        })
    }

    /// Sends a frame as soon as there is room for it: for events from the store, at the reader's pace.
    ///
    /// # Errors
    /// [`CutOff::Gone`].
    pub async fn send_in_turn(&self, frame: Bytes) -> Result<(), CutOff> {
        let place = self.queue.reserve().await.map_err(|_| CutOff::Gone)?;
        loop {
            let room = self.waiting.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            let before = self.waiting.bytes.load(Ordering::Relaxed);
            if before == 0 || before + frame.len() <= STREAM_TURN_BYTES_MAX {
                break;
            }
            tokio::select! {
                () = room => {}
                () = self.queue.closed() => return Err(CutOff::Gone),
            }
        }
        self.waiting.bytes.fetch_add(frame.len(), Ordering::Relaxed);
        place.send(frame);
        Ok(())
    }

    /// Returns when the reader has gone.
    pub async fn gone(&self) {
        self.queue.closed().await;
    }
}

/// The events of a reader, as the body of an endless answer.
#[derive(Debug)]
pub struct EventStream {
    queue: mpsc::Receiver<Bytes>,
    waiting: Arc<Waiting>,
    pulse: Option<KeepAlive>,
    /// The time since the last event.
    timer: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_next(cx).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
    }
}

impl EventStream {
    /// Restarts the time of the pulse; returns its frame.
    fn rewind(&mut self) -> &'static [u8] {
        let Some(KeepAlive { every, frame }) = self.pulse else { return b"" };
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(Instant::now() + every),
            None => self.timer = Some(Box::pin(sleep(every))),
        }
        frame
    }

    /// Returns the next frame, or the pulse if none came for long; `None` after the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(next) = self.queue.poll_recv(cx) {
            let Some(frame) = next else { return Poll::Ready(None) };
            self.waiting.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
            self.waiting.room.notify_one();
            self.rewind();
            return Poll::Ready(Some(frame));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Some(Bytes::from_static(self.rewind())))
    }
}
