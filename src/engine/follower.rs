//! Events after a cursor, then live: a reader sees no gaps.
//!
//! A follower that is too slow for the live events goes back to the store, where it may leave out events that its
//! reader does not want.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::{Engine, Listener};
use provost_base::EventSeq;
use provost_base::limits::{FOLLOWER_PAGE_BYTES_MAX, FOLLOWER_PAGE_MAX};
use provost_domain::Event;
use provost_store::{Reader, StoreError, StoredEvent};

/// An item that a follower hands on: an event, or an encoder's form of it.
pub trait Numbered: Send + Sync + 'static {
    /// Returns the number of the event.
    fn seq(&self) -> EventSeq;
}

impl Numbered for Event {
    fn seq(&self) -> EventSeq {
        self.seq
    }
}

/// Makes the item for an event from the store; returns `None` for an event that no reader wants.
type Make<T> = Box<dyn Fn(Arc<Event>) -> Option<Arc<T>> + Send + Sync>;

/// Reads a page of events after a number from the store.
type ReadPage = Arc<dyn Fn(&mut dyn Reader, EventSeq) -> Result<Vec<StoredEvent>, StoreError> + Send + Sync>;

/// One reader's place in the log.
pub struct Follower<T = Event> {
    engine: Engine,
    after: EventSeq,
    live: Listener<T>,
    make: Make<T>,
    read: ReadPage,
    page: VecDeque<Arc<Event>>,
    is_caught_up: bool,
}

impl<T: Numbered> Follower<T> {
    /// Returns a follower after a cursor, or after the newest event. Its listening has begun before, so that no
    /// event falls between the two. It reads the store, which may not answer just now, only if an event is missing.
    pub(super) fn new(
        engine: &Engine,
        live: Listener<T>,
        after: Option<EventSeq>,
        make: impl Fn(Arc<Event>) -> Option<Arc<T>> + Send + Sync + 'static,
    ) -> Self {
        let newest = engine.events.newest();
        let after = after.unwrap_or(newest);
        Self {
            after,
            engine: engine.clone(),
            live,
            make: Box::new(make),
            read: Arc::new(|store, after| store.events_after(after, FOLLOWER_PAGE_MAX)),
            page: VecDeque::new(),
            is_caught_up: after >= newest,
        }
    }

    /// Leaves out events of the store that its reader does not want: `read` reads the next wanted ones, in order.
    #[must_use]
    pub fn reading(
        self,
        read: impl Fn(&mut dyn Reader, EventSeq) -> Result<Vec<StoredEvent>, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { read: Arc::new(read), ..self }
    }

    /// Checks whether the last event handed on came from the store, and more of them may follow.
    pub fn is_behind(&self) -> bool {
        !self.is_caught_up
    }

    /// Returns the next event. Waits if there is none; pruned events are skipped. The future may be dropped while it waits.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine has stopped.
    pub async fn next(&mut self) -> Result<Arc<T>, StoreError> {
        loop {
            if let Some(event) = self.ready().await? {
                return Ok(event);
            }
            match self.live.recv().await {
                Ok(event) => {
                    if let Some(event) = self.take(event) {
                        return Ok(event);
                    }
                }
                Err(RecvError::Lagged(_)) => self.is_caught_up = false,
                Err(RecvError::Closed) => return Err(stopped()),
            }
        }
    }

    /// Returns the next event that exists already, however long it takes to read it; `None` if there are no more.
    ///
    /// # Errors
    /// As for [`Follower::next`].
    pub async fn ready(&mut self) -> Result<Option<Arc<T>>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                if let Some(made) = (self.make)(event) {
                    return Ok(Some(made));
                }
                continue;
            }
            if !self.is_caught_up {
                self.is_caught_up = !self.read_page().await?;
                continue;
            }
            match self.live.try_recv() {
                Ok(event) => {
                    if let Some(event) = self.take(event) {
                        return Ok(Some(event));
                    }
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Lagged(_)) => self.is_caught_up = false,
                Err(TryRecvError::Closed) => return Err(stopped()),
            }
        }
    }

    /// Returns a live event, if the store has not shown it before.
    fn take(&mut self, event: Arc<T>) -> Option<Arc<T>> {
        (event.seq() > self.after).then(|| {
            self.after = event.seq();
            event
        })
    }

    /// Reads one page from the store; returns `false` if there were no more events. A page has a bound in bytes,
    /// since each reader that is behind holds one.
    async fn read_page(&mut self) -> Result<bool, StoreError> {
        let (read, after) = (Arc::clone(&self.read), self.after);
        let page = self.engine.read(move |store| read(store, after)).await?;
        let (found, mut bytes) = (!page.is_empty(), 0);
        for stored in page {
            bytes += stored.body.as_ref().map_or(0, |body| body.len());
            if bytes > FOLLOWER_PAGE_BYTES_MAX && !self.page.is_empty() {
                break;
            }
            self.after = stored.seq;
            // A pruned event has no body; only its place in the chain is left.
            self.page.extend(stored.event()?.map(Arc::new));
        }
        Ok(found)
    }
}

fn stopped() -> StoreError {
    StoreError::Stopped("the engine has stopped".into())
}
