//! Items on their way to readers. The bytes of large ones have a bound: beyond it, the oldest are taken back
//! from readers that have not read them yet, and those readers find them in the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use provost_base::limits::{EVENTS_BUFFERED_BYTES_MAX, LARGE_EVENT_BYTES_MIN};

type Slot<T> = Mutex<Option<Arc<T>>>;

/// An item on its way to readers.
pub(super) enum Held<T> {
    Small(Arc<T>),
    Large(Arc<Slot<T>>),
    /// Represents items that the sender itself has missed.
    Missed,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Small(it) => Self::Small(Arc::clone(it)),
            Self::Large(it) => Self::Large(Arc::clone(it)),
            Self::Missed => Self::Missed,
        }
    }
}

impl<T> Held<T> {
    /// Returns the item, if it was not missed or taken back.
    pub(super) fn get(self) -> Option<Arc<T>> {
        match self {
            Self::Small(it) => Some(it),
            Self::Large(it) => it.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Self::Missed => None,
        }
    }
}

/// The large items of one sender.
pub(super) struct Large<T> {
    /// The large items that some reader may not have read yet, oldest first.
    items: VecDeque<(Weak<Slot<T>>, usize)>,
    bytes: usize,
}

impl<T> Default for Large<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Large<T> {
    /// Returns the item in the form that readers get.
    pub(super) fn hold(&mut self, item: Arc<T>, bytes: usize) -> Held<T> {
        if bytes < LARGE_EVENT_BYTES_MIN {
            return Held::Small(item);
        }
        let large = Arc::new(Slot::new(Some(item)));
        self.items.push_back((Arc::downgrade(&large), bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        Held::Large(large)
    }

    /// Forgets items that all readers have read, and takes back the oldest ones if that is not enough. The newest
    /// stays. Call this when the newest is on its way.
    pub(super) fn make_room(&mut self) {
        while let Some((oldest, bytes)) = self.items.front() {
            let is_had = oldest.strong_count() == 0;
            if !is_had && (self.bytes <= EVENTS_BUFFERED_BYTES_MAX || self.items.len() == 1) {
                return;
            }
            if let Some(large) = oldest.upgrade() {
                drop(large.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            self.bytes = self.bytes.saturating_sub(*bytes);
            self.items.pop_front();
        }
    }
}
