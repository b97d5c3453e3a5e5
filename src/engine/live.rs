//! Events as they are committed, for the present listeners.
//!
//! The number of events that a listener may be behind has a bound, and so have the bytes of the large
//! ones among them. A listener that is further behind gets an error, and reads the events that it has
//! missed from the store.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::held::{Held, Large};
use provost_base::EventSeq;
use provost_base::limits::EVENTS_BUFFERED;
use provost_domain::{Event, EventKind};

/// The source of listeners. Cheap to clone.
#[derive(Clone)]
pub(super) struct Live {
    all: broadcast::Sender<Held<Event>>,
    /// The events without messages between agents: thousands of messages may come in a second, and each event wakes all
    /// its listeners.
    beside_posts: broadcast::Sender<Held<Event>>,
    newest: Arc<AtomicU64>,
}

impl Live {
    /// Makes the listeners' source for an engine whose journal ends with this event.
    pub(super) fn behind(newest: EventSeq) -> Self {
        Self {
            all: broadcast::channel(EVENTS_BUFFERED).0,
            beside_posts: broadcast::channel(EVENTS_BUFFERED).0,
            newest: Arc::new(AtomicU64::new(newest.0)),
        }
    }

    pub(super) fn listen(&self) -> Listener {
        Listener(self.all.subscribe())
    }

    pub(super) fn listen_beside_posts(&self) -> Listener {
        Listener(self.beside_posts.subscribe())
    }

    /// Returns the newest event. A listener that exists already gets all later ones.
    pub(super) fn newest(&self) -> EventSeq {
        EventSeq(self.newest.load(Ordering::Acquire))
    }

    /// Returns the sender of the events. Only the engine has one.
    pub(super) fn teller(&self) -> Teller {
        Teller { to: self.clone(), large: Large::default() }
    }

    fn has_listeners(&self, is_post: bool) -> bool {
        self.all.receiver_count() > 0 || (!is_post && self.beside_posts.receiver_count() > 0)
    }

    fn send(&self, passing: Held<Event>, is_post: bool) {
        // The last listener may have gone by now.
        if !is_post {
            let _ = self.beside_posts.send(passing.clone());
        }
        let _ = self.all.send(passing);
    }
}

/// The engine's end, with which it sends events to listeners.
pub(super) struct Teller {
    to: Live,
    large: Large<Event>,
}

impl Teller {
    /// Tells all listeners that they have missed the events up to this one, which the store has: memory was loaded with them.
    pub(super) fn tell_missed(&mut self, upto: EventSeq) {
        if self.to.newest.fetch_max(upto.0, Ordering::AcqRel) < upto.0 {
            self.to.send(Held::Missed, false);
        }
    }

    /// Sends an event to all listeners, if there are any.
    pub(super) fn tell(&mut self, event: Event) {
        // This comes before the event is sent: a listener that does not see this number here gets the event.
        let before = self.to.newest.swap(event.seq.0, Ordering::AcqRel);
        if event.seq.0 != before + 1 {
            // Numbers are dense. The events in between are on record, though their commit was reported as failed.
            self.to.send(Held::Missed, false);
        }
        let is_post = matches!(event.kind, EventKind::Published { .. });
        if !self.to.has_listeners(is_post) {
            return;
        }
        let bytes = if event.kind.may_be_large() { size_of(&event) } else { 0 };
        let passing = self.large.hold(Arc::new(event), bytes);
        self.to.send(passing, is_post);
        self.large.make_room();
    }
}

/// A listener for events after the newest, as they are committed, or for an encoder's form of them.
pub struct Listener<T = Event>(pub(super) broadcast::Receiver<Held<T>>);

impl<T> Listener<T> {
    /// Waits for the next event.
    ///
    /// # Errors
    /// If some events were missed, which the store has; or if the engine has stopped.
    pub async fn recv(&mut self) -> Result<Arc<T>, RecvError> {
        self.0.recv().await?.get().ok_or(RecvError::Lagged(1))
    }

    /// Returns the next event that exists already.
    ///
    /// # Errors
    /// If there is none, if some were missed, or if the engine has stopped.
    pub fn try_recv(&mut self) -> Result<Arc<T>, TryRecvError> {
        self.0.try_recv()?.get().ok_or(TryRecvError::Lagged(1))
    }
}

/// Returns the size of an event as text, which is about the size that it takes.
fn size_of(event: &Event) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // The event was stored as text a moment ago.
    let _ = serde_json::to_writer(&mut count, event);
    count.0
}
