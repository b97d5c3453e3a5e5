//! A cache of readings: one for each content, shared by all readers.
//!
//! The first thread that asks for a content parses it itself, without holding the lock; another one that asks
//! for the same content waits for that thread alone. The least recently used reading is dropped first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::reading::Holds;
use super::{Language, ParseDeadline, Reading, read};
use provost_base::Digest;
use provost_base::limits::{READINGS_BYTES_MAX, SOURCE_RETRY_MS};

type Key = (Language, Digest);

/// Readings of recent contents, up to a number of bytes.
#[derive(Debug)]
pub struct Cache {
    bytes_max: usize,
    state: Mutex<State>,
    /// Notified when a reading is complete, or its reader has given up.
    done: Condvar,
}

#[derive(Default, Debug)]
struct State {
    slots: HashMap<Key, Slot>,
    /// The cached readings, by the time of their last use.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    /// The number of readings that were ever made.
    reads: u64,
}

#[derive(Debug)]
enum Slot {
    /// A thread is making this reading, and others wait for it.
    Reading,
    Kept {
        reading: Arc<Reading>,
        /// The moment until which the reading is valid; `None` if it is valid for ever.
        until: Option<Instant>,
        bytes: usize,
        used: u64,
    },
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(READINGS_BYTES_MAX)
    }
}

impl Cache {
    /// Keeps readings of about so many bytes together.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::default(), done: Condvar::new() }
    }

    /// The reading of some content, from the cache or made now. Blocks; asynchronous callers hand it to a
    /// thread.
    ///
    /// A reading that was cut short by one caller's patience is that caller's alone.
    pub fn read(&self, language: Language, bytes: &[u8], patience: &ParseDeadline<'_>) -> Arc<Reading> {
        self.read_known_as(Digest::of(bytes), language, bytes, patience)
    }

    /// The same for a caller that has the content's digest.
    pub fn read_known_as(
        &self,
        content: Digest,
        language: Language,
        bytes: &[u8],
        patience: &ParseDeadline<'_>,
    ) -> Arc<Reading> {
        let key = (language, content);
        let mut state = self.lock();
        loop {
            match state.find(&key) {
                Some(Some(reading)) => return reading,
                Some(None) if patience.is_over() => {
                    drop(state);
                    return Arc::new(read(language, bytes, patience));
                }
                Some(None) => state = self.wait(state, patience),
                None => break,
            }
        }
        state.slots.insert(key, Slot::Reading);
        state.reads += 1;
        drop(state);
        // If reading should panic, those who wait must not wait for ever.
        let turn = Turn { cache: self, key };
        let reading = Arc::new(read(language, bytes, patience));
        let until = match reading.holds() {
            Holds::Always => Some(None),
            Holds::ForAWhile => Some(Some(Instant::now() + Duration::from_millis(SOURCE_RETRY_MS))),
            Holds::ForNobodyElse => None,
        };
        let bytes = reading.weight() + size_of::<Slot>() + 2 * size_of::<Key>();
        // A reading that would push out nearly everything else is not kept.
        if let Some(until) = until.filter(|_| bytes <= self.bytes_max / 2) {
            let forgotten = self.lock().keep(key, &reading, until, bytes, self.bytes_max);
            // Freeing them takes time, in which others may go on.
            drop(forgotten);
        }
        drop(turn);
        reading
    }

    /// The reading of some content, if it is there already.
    pub fn known(&self, language: Language, content: Digest) -> Option<Arc<Reading>> {
        self.lock().find(&(language, content)).flatten()
    }

    /// How many bytes the kept readings take.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// How many contents were read, and not found here.
    pub fn reads(&self) -> u64 {
        self.lock().reads
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything that may panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, patience: &ParseDeadline<'_>) -> MutexGuard<'s, State> {
        // A cancellation wakes no thread, so each looks for it at intervals.
        let pause = patience
            .until
            .map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        self.done.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// How often a caller that waits for another's reading checks whether its own request was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The turn of the thread that reads a content; ends with that thread's work, also by a panic.
struct Turn<'a> {
    cache: &'a Cache,
    key: Key,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if matches!(state.slots.get(&self.key), Some(Slot::Reading)) {
            state.slots.remove(&self.key);
        }
        drop(state);
        self.cache.done.notify_all();
    }
}

impl State {
    /// The kept reading; `Some(None)` if a thread is making it.
    fn find(&mut self, key: &Key) -> Option<Option<Arc<Reading>>> {
        let next = self.uses + 1;
        match self.slots.get_mut(key)? {
            Slot::Reading => Some(None),
            Slot::Kept { until: Some(until), .. } if *until <= Instant::now() => {
                self.forget(key);
                None
            }
            Slot::Kept { reading, used, .. } => {
                self.by_use.remove(used);
                *used = next;
                self.by_use.insert(next, *key);
                self.uses = next;
                Some(Some(Arc::clone(reading)))
            }
        }
    }

    fn forget(&mut self, key: &Key) -> Option<Arc<Reading>> {
        match self.slots.remove(key)? {
            Slot::Kept { reading, bytes, used, .. } => {
                self.by_use.remove(&used);
                self.bytes -= bytes;
                Some(reading)
            }
            Slot::Reading => None,
        }
    }

    /// Keeps a reading; returns those that had to go.
    fn keep(
        &mut self,
        key: Key,
        reading: &Arc<Reading>,
        until: Option<Instant>,
        bytes: usize,
        bytes_max: usize,
    ) -> Vec<Arc<Reading>> {
        let mut forgotten = Vec::new();
        while self.bytes + bytes > bytes_max
            && let Some(oldest) = self.by_use.values().next().copied()
        {
            forgotten.extend(self.forget(&oldest));
        }
        self.uses += 1;
        self.by_use.insert(self.uses, key);
        self.bytes += bytes;
        let kept = Slot::Kept { reading: Arc::clone(reading), until, bytes, used: self.uses };
        self.slots.insert(key, kept);
        forgotten
    }
}
