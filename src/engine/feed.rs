//! Events since a cursor, then live.
//!
//! A subscriber that is too slow for the live channel goes back to the store; what it sees has no gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::{Engine, Listener};
use provost_base::EventSeq;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_domain::Event;
use provost_store::StoreError;

/// One subscriber's place in the log.
pub struct Feed {
    engine: Engine,
    after: EventSeq,
    live: Listener,
    page: VecDeque<Arc<Event>>,
    caught_up: bool,
}

impl Feed {
    pub(super) fn new(engine: Engine, after: EventSeq) -> Self {
        // Subscribed before the store is read, so that nothing falls between the two.
        let live = engine.subscribe();
        Self { engine, after, live, page: VecDeque::new(), caught_up: false }
    }

    /// The next event. Waits for one when there is none; pruned events are passed over.
    ///
    /// # Errors
    /// When the store cannot be read, or the engine has stopped.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        loop {
            if let Some(event) = self.ready().await? {
                return Ok(event);
            }
            match self.live.recv().await {
                Ok(event) if event.seq <= self.after => {}
                Ok(event) => {
                    self.after = event.seq;
                    return Ok(event);
                }
                Err(RecvError::Lagged(_)) => self.caught_up = false,
                Err(RecvError::Closed) => return Err(stopped()),
            }
        }
    }

    /// The next event that is there already, however long it takes to read it; `None` when there is no more.
    ///
    /// # Errors
    /// As for [`Feed::next`].
    pub async fn ready(&mut self) -> Result<Option<Arc<Event>>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.after = event.seq;
                return Ok(Some(event));
            }
            if !self.caught_up {
                self.caught_up = !self.read_page().await?;
                continue;
            }
            match self.live.try_recv() {
                Ok(event) if event.seq <= self.after => {}
                Ok(event) => {
                    self.after = event.seq;
                    return Ok(Some(event));
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Lagged(_)) => self.caught_up = false,
                Err(TryRecvError::Closed) => return Err(stopped()),
            }
        }
    }

    /// Reads one page from the store; `false` when there was nothing.
    async fn read_page(&mut self) -> Result<bool, StoreError> {
        let after = self.after;
        let page = self.engine.read(move |reader| reader.events_after(after, EVENT_PAGE_MAX)).await?;
        let found = !page.is_empty();
        if let Some(last) = page.last() {
            self.after = last.seq;
        }
        for stored in page {
            // A pruned event has no body any more; its place in the chain is all that is left.
            self.page.extend(stored.event()?.map(Arc::new));
        }
        Ok(found)
    }
}

pub(super) fn stopped() -> StoreError {
    StoreError::Stopped("the engine has stopped".into())
}
