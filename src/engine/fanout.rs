//! Events as one encoder writes them: each is written once and handed to all readers of a door.
//!
//! A fan-out listens to the engine once, from its first reader on. Its readers are followers: what they miss
//! they read from the store, so no reader waits for another, and none misses an event.

use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::follower::Numbered;
use super::held::{Held, Large};
use super::{Engine, Follower, Listener};
use provost_base::EventSeq;
use provost_base::limits::STREAM_FRAMES_MAX;
use provost_domain::Event;

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

impl<F: Frame> Numbered for Encoded<F> {
    fn seq(&self) -> EventSeq {
        self.event.seq
    }
}

/// Writes an event; nothing of one that no reader wants.
type Encode<F> = fn(&Event) -> Option<F>;

fn encoded<F>(encode: Encode<F>, event: Arc<Event>) -> Option<Arc<Encoded<F>>> {
    let frame = encode(&event)?;
    Some(Arc::new(Encoded { event, frame }))
}

/// Where the readers of one encoder come from.
pub struct Fanout<F> {
    encode: Encode<F>,
    readers: OnceLock<broadcast::Sender<Held<Encoded<F>>>>,
}

impl<F: Frame> Fanout<F> {
    /// A fan-out of what this encoder writes.
    pub const fn new(encode: Encode<F>) -> Self {
        Self { encode, readers: OnceLock::new() }
    }

    /// Events behind a cursor, or behind the newest: those of the store, and then each as it is committed, without a
    /// gap. Must be called within the runtime.
    pub fn follow(&self, engine: &Engine, after: Option<EventSeq>) -> Follower<Encoded<F>> {
        let encode = self.encode;
        Follower::new(engine, self.subscribe(engine), after, move |event| encoded(encode, event))
    }

    fn subscribe(&self, engine: &Engine) -> Listener<Encoded<F>> {
        let mut first = None;
        let sender = self.readers.get_or_init(|| {
            let (sender, receiver) = broadcast::channel(STREAM_FRAMES_MAX);
            // The listener is there before this returns, so that no event falls between the two.
            tokio::spawn(drive(engine.subscribe(), self.encode, sender.clone()));
            first = Some(receiver);
            sender
        });
        Listener(first.unwrap_or_else(|| sender.subscribe()))
    }
}

/// Writes what is committed until the engine stops.
async fn drive<F: Frame>(
    mut live: Listener,
    encode: Encode<F>,
    readers: broadcast::Sender<Held<Encoded<F>>>,
) {
    let mut large = Large::default();
    loop {
        let passing = match live.recv().await {
            Ok(event) => {
                let Some(encoded) = encoded(encode, event) else { continue };
                let bytes = encoded.frame.bytes();
                large.hold(encoded, bytes)
            }
            Err(RecvError::Lagged(_)) => Held::Missed,
            Err(RecvError::Closed) => return,
        };
        // There may be no reader at the moment.
        let _ = readers.send(passing);
        large.make_room();
    }
}
