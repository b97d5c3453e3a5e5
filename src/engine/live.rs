//! Events as they are committed, for those who listen now; bounded for those who do not keep up.
//!
//! A listener may be so many events behind, and large ones among them may have so many bytes together. Whoever is further
//! behind has missed something, is told so, and finds it in the store.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::base::limits::{EVENTS_BUFFERED, EVENTS_BUFFERED_BYTES_MAX, LARGE_EVENT_BYTES_MIN};
use crate::domain::{Event, EventKind};

/// An event on its way. A large one can be taken back.
#[derive(Clone)]
enum Passing {
    Small(Arc<Event>),
    Large(Arc<Large>),
}

type Large = Mutex<Option<Arc<Event>>>;

/// Where listeners come from. Cheap to clone.
#[derive(Clone)]
pub(super) struct Live {
    all: broadcast::Sender<Passing>,
    /// The same without messages between agents. These may be thousands a second, and each wakes all who listen to it.
    beside_posts: broadcast::Sender<Passing>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            all: broadcast::channel(EVENTS_BUFFERED).0,
            beside_posts: broadcast::channel(EVENTS_BUFFERED).0,
        }
    }
}

impl Live {
    pub(super) fn listen(&self) -> Listener {
        Listener(self.all.subscribe())
    }

    pub(super) fn listen_beside_posts(&self) -> Listener {
        Listener(self.beside_posts.subscribe())
    }

    /// The one who tells, of whom there is one.
    pub(super) fn teller(&self) -> Teller {
        Teller { to: self.clone(), large: VecDeque::new(), bytes: 0 }
    }

    fn has_listeners(&self, is_post: bool) -> bool {
        self.all.receiver_count() > 0 || (!is_post && self.beside_posts.receiver_count() > 0)
    }

    fn send(&self, passing: Passing, is_post: bool) {
        // The last listener may have gone by now.
        if !is_post {
            let _ = self.beside_posts.send(passing.clone());
        }
        let _ = self.all.send(passing);
    }
}

/// What the engine tells listeners with.
pub(super) struct Teller {
    to: Live,
    /// Large events that somebody may not have heard yet, oldest first.
    large: VecDeque<(Weak<Large>, usize)>,
    bytes: usize,
}

impl Teller {
    /// Tells all listeners, if there are any.
    pub(super) fn tell(&mut self, event: Event) {
        let is_post = matches!(event.kind, EventKind::Published { .. });
        if !self.to.has_listeners(is_post) {
            return;
        }
        let bytes = if event.kind.may_be_large() { size_of(&event) } else { 0 };
        let event = Arc::new(event);
        if bytes < LARGE_EVENT_BYTES_MIN {
            return self.to.send(Passing::Small(event), is_post);
        }
        let large = Arc::new(Large::new(Some(event)));
        self.large.push_back((Arc::downgrade(&large), bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        self.to.send(Passing::Large(large), is_post);
        self.make_room();
    }

    /// Forgets what everybody has heard, and takes back the oldest where that is not enough. The newest stays.
    fn make_room(&mut self) {
        while let Some((oldest, bytes)) = self.large.front() {
            let heard = oldest.strong_count() == 0;
            if !heard && (self.bytes <= EVENTS_BUFFERED_BYTES_MAX || self.large.len() == 1) {
                return;
            }
            if let Some(large) = oldest.upgrade() {
                drop(large.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            self.bytes = self.bytes.saturating_sub(*bytes);
            self.large.pop_front();
        }
    }
}

/// Events after the newest, as they are committed.
pub struct Listener(broadcast::Receiver<Passing>);

impl Listener {
    /// The next event.
    ///
    /// # Errors
    /// When some were missed, or the engine has stopped.
    pub async fn recv(&mut self) -> Result<Arc<Event>, RecvError> {
        heard(self.0.recv().await?).ok_or(RecvError::Lagged(1))
    }

    /// The next event that is there already.
    ///
    /// # Errors
    /// When there is none, some were missed, or the engine has stopped.
    pub fn try_recv(&mut self) -> Result<Arc<Event>, TryRecvError> {
        heard(self.0.try_recv()?).ok_or(TryRecvError::Lagged(1))
    }
}

fn heard(passing: Passing) -> Option<Arc<Event>> {
    match passing {
        Passing::Small(event) => Some(event),
        Passing::Large(large) => large.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// How large an event is as text, which is about what it takes.
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
    // It was stored as text a moment ago.
    let _ = serde_json::to_writer(&mut count, event);
    count.0
}
