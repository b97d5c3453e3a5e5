//! Events in an encoder's form: each is encoded once and handed to all readers of a door.
//!
//! A fan-out listens to the engine once, from its first reader on. Its readers are followers: they read missed
//! events from the store, so no reader waits for another, and none misses an event.

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
    /// Returns its size in bytes.
    fn bytes(&self) -> usize;
}

/// An event, with an encoder's form of it.
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

/// Encodes an event; returns `None` for an event that no reader wants.
type Encode<F> = fn(&Event) -> Option<F>;

fn encoded<F>(encode: Encode<F>, event: Arc<Event>) -> Option<Arc<Encoded<F>>> {
    let frame = encode(&event)?;
    Some(Arc::new(Encoded { event, frame }))
}

/// The source of the readers of one encoder.
pub struct Fanout<F> {
    encode: Encode<F>,
    readers: OnceLock<broadcast::Sender<Held<Encoded<F>>>>,
}

impl<F: Frame> Fanout<F> {
    /// Returns a fan-out with this encoder.
    pub const fn new(encode: Encode<F>) -> Self {
        Self { encode, readers: OnceLock::new() }
    }

    /// Returns a follower of the events after a cursor, or after the newest: those of the store, and then each as
    /// it is committed, without a gap. It must be called within the runtime.
    pub fn follow(&self, engine: &Engine, after: Option<EventSeq>) -> Follower<Encoded<F>> {
        let encode = self.encode;
        Follower::new(engine, self.subscribe(engine), after, move |event| encoded(encode, event))
    }

    fn subscribe(&self, engine: &Engine) -> Listener<Encoded<F>> {
        let mut first = None;
        let sender = self.readers.get_or_init(|| {
            let (sender, receiver) = broadcast::channel(STREAM_FRAMES_MAX);
            // The listener exists before this returns, so that no event falls between the two.
            tokio::spawn(drive(engine.subscribe(), self.encode, sender.clone()));
            first = Some(receiver);
            sender
        });
        Listener(first.unwrap_or_else(|| sender.subscribe()))
    }
}

/// Encodes committed events until the engine stops.
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
