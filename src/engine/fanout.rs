//! Events as one encoder writes them: each is written once and handed to all readers of a door.
//!
//! A fan-out listens to the engine once, from its first reader on. Readers that fall behind read the events
//! that they have missed from the store, so no reader waits for another, and none misses an event.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::feed::stopped;
use super::held::{Held, Large};
use super::{Engine, Listener};
use provost_base::EventSeq;
use provost_base::limits::{FOLLOWER_PAGE_BYTES_MAX, FOLLOWER_PAGE_MAX, STREAM_FRAMES_MAX};
use provost_domain::Event;
use provost_store::StoreError;

/// An encoder's form of an event.
pub trait Frame: Send + Sync + 'static {
    /// How many bytes it takes.
    fn bytes(&self) -> usize;
}

/// An event, and what an encoder has made of it.
pub struct Encoded<F> {
    /// The event as it was committed.
    pub event: Arc<Event>,
    /// The encoder's form of it, shared by all readers.
    pub frame: F,
}

/// An event for readers as it was encoded; `None` where some were missed.
type Passing<F> = Option<Held<Encoded<F>>>;

/// Events from now on, for one reader.
pub struct Frames<F>(broadcast::Receiver<Passing<F>>);

impl<F> Frames<F> {
    /// Waits for the next event.
    ///
    /// # Errors
    /// When some were missed, which the reader finds in the store; or when the engine has stopped.
    pub async fn recv(&mut self) -> Result<Arc<Encoded<F>>, RecvError> {
        self.0.recv().await?.and_then(Held::get).ok_or(RecvError::Lagged(1))
    }
}

/// Writes an event; nothing of one that no reader wants.
type Encode<F> = fn(&Event) -> Option<F>;

/// Where the readers of one encoder come from.
pub struct Fanout<F> {
    encode: Encode<F>,
    readers: OnceLock<broadcast::Sender<Passing<F>>>,
}

impl<F: Frame> Fanout<F> {
    /// A fan-out of what this encoder writes.
    pub const fn new(encode: Encode<F>) -> Self {
        Self { encode, readers: OnceLock::new() }
    }

    /// Events from now on. Must be called within the runtime.
    pub fn subscribe(&self, engine: &Engine) -> Frames<F> {
        let mut first = None;
        let sender = self.readers.get_or_init(|| {
            let (sender, receiver) = broadcast::channel(STREAM_FRAMES_MAX);
            // The listener is there before this returns, so that no event falls between the two.
            tokio::spawn(drive(engine.subscribe(), self.encode, sender.clone()));
            first = Some(receiver);
            sender
        });
        Frames(first.unwrap_or_else(|| sender.subscribe()))
    }

    /// Events behind a cursor: those of the store, and then each as it is committed, without a gap.
    pub fn follow(&self, engine: &Engine, after: EventSeq) -> Follower<F> {
        Follower {
            live: self.subscribe(engine),
            engine: engine.clone(),
            encode: self.encode,
            after,
            page: VecDeque::new(),
            is_caught_up: false,
        }
    }
}

/// Writes what is committed until the engine stops.
async fn drive<F: Frame>(mut live: Listener, encode: Encode<F>, readers: broadcast::Sender<Passing<F>>) {
    let mut large = Large::default();
    loop {
        let passing = match live.recv().await {
            Ok(event) => {
                let Some(frame) = encode(&event) else { continue };
                let bytes = frame.bytes();
                Some(large.hold(Arc::new(Encoded { event, frame }), bytes))
            }
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        // There may be no reader at the moment.
        let _ = readers.send(passing);
        large.make_room();
    }
}

/// One reader's place in the log.
pub struct Follower<F> {
    engine: Engine,
    encode: Encode<F>,
    after: EventSeq,
    live: Frames<F>,
    page: VecDeque<Arc<Event>>,
    is_caught_up: bool,
}

impl<F: Frame> Follower<F> {
    /// The next event. Waits for one where there is none; events that were pruned are passed over.
    ///
    /// # Errors
    /// When the store cannot be read, or the engine has stopped.
    pub async fn next(&mut self) -> Result<Arc<Encoded<F>>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                if let Some(frame) = (self.encode)(&event) {
                    return Ok(Arc::new(Encoded { event, frame }));
                }
                continue;
            }
            if !self.is_caught_up {
                self.is_caught_up = !self.read_page().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(it) if it.event.seq <= self.after => {}
                // Numbers are dense: this one is the next, and no other one lies between.
                Ok(it) if it.event.seq.0 == self.after.0 + 1 => {
                    self.after = it.event.seq;
                    return Ok(it);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => self.is_caught_up = false,
                Err(RecvError::Closed) => return Err(stopped()),
            }
        }
    }

    /// Reads one page from the store; `false` where there was nothing more. A page has so many bytes, since each reader that is behind
    /// holds one.
    async fn read_page(&mut self) -> Result<bool, StoreError> {
        let after = self.after;
        let page = self.engine.read(move |reader| reader.events_after(after, FOLLOWER_PAGE_MAX)).await?;
        let (found, mut bytes) = (!page.is_empty(), 0);
        for stored in page {
            bytes += stored.body.as_ref().map_or(0, |body| body.len());
            if bytes > FOLLOWER_PAGE_BYTES_MAX && !self.page.is_empty() {
                break;
            }
            self.after = stored.seq;
            // A pruned event has no body any more; its place in the chain is all that is left.
            self.page.extend(stored.event()?.map(Arc::new));
        }
        Ok(found)
    }
}
