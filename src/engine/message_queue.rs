//! Messages between agents that wait to be carried out.
//!
//! Any thread that works with the core takes all of them at once. The order is that of [`MessageQueue::put`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::worker::receiving::Publisher;
use provost_base::limits::ENGINE_QUEUE_MAX;
use provost_domain::post::Post;
use provost_domain::{Principal, Refusal};

/// A message whose sender does not need its number.
pub(super) struct Message {
    pub(super) who: Principal,
    pub(super) post: Post,
    pub(super) reply: Publisher,
}

/// Messages that wait to be carried out.
#[derive(Default)]
pub(super) struct MessageQueue {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: Vec<Message>,
    /// Whether the thread has ended.
    closed: bool,
}

impl MessageQueue {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each member is consistent at every moment.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if too many wait; [`Refusal::Unavailable`] if the thread has ended.
    pub(super) fn put(&self, message: Message) -> Result<(), Refusal> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(super::gone());
        }
        if inner.waiting.len() >= ENGINE_QUEUE_MAX {
            return Err(Refusal::busy("too many requests at once"));
        }
        inner.waiting.push(message);
        Ok(())
    }

    /// Checks whether a message waits.
    pub(super) fn any(&self) -> bool {
        !self.inner().waiting.is_empty()
    }

    /// Takes all waiting messages, and leaves the given empty vector for further ones.
    pub(super) fn take(&self, empty: Vec<Message>) -> Vec<Message> {
        let mut inner = self.inner();
        if inner.waiting.is_empty() {
            return empty;
        }
        std::mem::replace(&mut inner.waiting, empty)
    }

    /// Closes the queue to further messages. The senders of waiting ones learn that the engine has ended.
    fn close(&self) {
        let mut inner = self.inner();
        inner.closed = true;
        let left = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(left);
    }
}

/// Closes a queue when it is dropped.
pub(super) struct Closing(pub(super) Arc<MessageQueue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
