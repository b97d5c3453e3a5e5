//! Decides which connections get an event, and its order after an answer. A6s 4.
//!
//! The connections that watch an execution get its events: those that started it or asked about it. If none of them
//! is left, every connection does. A connection gets no event before its first request.
//!
//! A connection that starts an execution watches it before it begins. The events are held back for it until the
//! answer to the start is on its way.
//!
//! An event is encoded before its connections are selected. The list of connections is locked only for that
//! selection: their names are checked, and their queues filled, without that lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use lru::LruCache;

use super::events::A6sEvent;
use super::pace::SUBJECTS_MAX;
use provost_transport::websocket::{Code, Outbox, Topic};

/// The id of a connection that gets events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listener(u64);

/// Returns whether a connection may still use its name.
pub type Holds = Box<dyn Fn() -> bool + Send + Sync>;

/// The connections that may get events, and the subjects that each watches. Clones share both.
#[derive(Clone, Default)]
pub struct Audience(Arc<Mutex<Book>>);

struct Book {
    joined: u64,
    ears: BTreeMap<Listener, Arc<Ear>>,
    /// The connections that watch executions and background tasks, by the ids of these.
    watchers: LruCache<String, BTreeSet<Listener>>,
}

impl Default for Book {
    fn default() -> Self {
        Self { joined: 0, ears: BTreeMap::new(), watchers: LruCache::new(SUBJECTS_MAX) }
    }
}

/// The outbox of a connection, which is valid for as long as the connection may use its name.
struct Ear {
    outbox: Outbox,
    holds: Option<Holds>,
    /// The events that the connection gets once its request was answered, by subject.
    held: Mutex<BTreeMap<String, Vec<QueuedMessage>>>,
}

/// An encoded event: encoded once for all connections.
#[derive(Debug)]
pub struct Written {
    about: String,
    message: QueuedMessage,
    is_for_all: bool,
    is_last: bool,
}

/// A text, and the topic whose newer text replaces it.
#[derive(Clone, Debug)]
struct QueuedMessage {
    text: Bytes,
    passing: Option<Topic>,
}

/// Holds back the events about a subject for one connection, until it is released or dropped.
pub struct Hold {
    audience: Audience,
    listener: Listener,
    subject: String,
    /// `None` if the connection has ended, or has got the events.
    ear: Option<Arc<Ear>>,
    /// Whether the connection watched the subject before.
    watched: bool,
}

impl Written {
    /// Encodes an event, with the topic of progress messages that it replaces, if it is one itself.
    pub(super) fn of(event: &A6sEvent, passing: Option<Topic>) -> Self {
        Self {
            about: event.about().to_owned(),
            message: QueuedMessage { text: event.text(), passing },
            is_for_all: event.is_for_all(),
            is_last: event.is_last(),
        }
    }
}

impl Audience {
    /// Adds a connection, which gets events from now on, for as long as its name is its own. If it would get one
    /// afterwards, it is closed.
    pub fn join(&self, outbox: Outbox, holds: Option<Holds>) -> Listener {
        let mut book = self.book();
        book.joined += 1;
        let listener = Listener(book.joined);
        book.ears.insert(listener, Arc::new(Ear { outbox, holds, held: Mutex::default() }));
        listener
    }

    /// Removes a connection that has ended, and all its watches.
    pub fn leave(&self, listener: Listener) {
        let mut book = self.book();
        book.ears.remove(&listener);
        for (_, watchers) in &mut book.watchers {
            watchers.remove(&listener);
        }
    }

    /// Lets a connection get the events of an execution from now on.
    pub fn watch(&self, listener: Listener, subject: &str) {
        self.book().watch(listener, subject);
    }

    /// Ends a connection's watch of an execution.
    pub fn unwatch(&self, listener: Listener, subject: &str) {
        if let Some(watchers) = self.book().watchers.get_mut(subject) {
            watchers.remove(&listener);
        }
    }

    /// Returns whether any connection watches this subject.
    pub fn is_watched(&self, subject: &str) -> bool {
        self.book().watchers.peek(subject).is_some_and(|it| !it.is_empty())
    }

    /// Watches an execution that is about to begin: its events are sent once the returned hold is released, when
    /// the answer is on its way. If the hold is dropped, no execution has begun.
    #[must_use]
    pub fn hold(&self, listener: Listener, subject: &str) -> Hold {
        let mut book = self.book();
        let ear = book.ears.get(&listener).cloned();
        if let Some(ear) = &ear {
            ear.held().entry(subject.to_owned()).or_default();
        }
        let watched = !book.watch(listener, subject);
        Hold { audience: self.clone(), listener, subject: subject.to_owned(), ear, watched }
    }

    /// Sends an event to its connections. There is only one caller, so that each connection gets events in order.
    pub fn tell(&self, written: &Written) {
        let told = self.book().told(written);
        for ear in told {
            ear.tell(written);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // The book is consistent between any two of its operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Adds a watch; returns whether it is new.
    fn watch(&mut self, listener: Listener, subject: &str) -> bool {
        self.ears.contains_key(&listener)
            && self.watchers.get_or_insert_mut_ref(subject, BTreeSet::new).insert(listener)
    }

    /// Returns the connections that get an event. No event follows a last one, so the watches end with it.
    fn told(&mut self, written: &Written) -> Vec<Arc<Ear>> {
        let watchers = match written.is_last {
            true => self.watchers.pop(&written.about),
            false => self.watchers.get(&written.about).cloned(),
        };
        match watchers.filter(|it| !written.is_for_all && !it.is_empty()) {
            Some(watchers) => watchers.iter().filter_map(|it| self.ears.get(it).cloned()).collect(),
            None => self.ears.values().cloned().collect(),
        }
    }
}

impl Ear {
    fn tell(&self, written: &Written) {
        if let Some(held) = self.held().get_mut(&written.about) {
            written.message.clone().hold_back(held);
            return;
        }
        if self.may_hear() {
            written.message.clone().put(&self.outbox);
        }
    }

    /// Sends the events that were held back: the answer is on its way.
    fn release(&self, subject: &str) {
        let may_hear = self.may_hear();
        // The lock is held until all of them are in the outbox, so that later events follow them.
        let mut held = self.held();
        for message in held.remove(subject).into_iter().flatten().filter(|_| may_hear) {
            message.put(&self.outbox);
        }
    }

    /// Returns whether a connection may get events; closes one whose name is no longer its own.
    fn may_hear(&self) -> bool {
        let may_hear = self.holds.as_ref().is_none_or(|holds| holds());
        if !may_hear {
            self.outbox.close(Code::NOT_ALLOWED);
        }
        may_hear
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Vec<QueuedMessage>>> {
        // The map is consistent between any two of its operations.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// Sends the events that were held back: the answer is on its way.
    pub fn release(mut self) {
        if let Some(ear) = self.ear.take() {
            ear.release(&self.subject);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(ear) = self.ear.take() else { return };
        if !self.watched {
            self.audience.unwatch(self.listener, &self.subject);
        }
        ear.held().remove(&self.subject);
    }
}

impl QueuedMessage {
    fn put(self, outbox: &Outbox) {
        // A connection that does not keep up is closed by its outbox, and one that is gone needs no event.
        let _sent = match self.passing {
            Some(topic) => outbox.send_passing(topic, self.text),
            None => outbox.send(self.text),
        };
    }

    /// Adds the message to those that are held back; progress replaces progress.
    fn hold_back(self, held: &mut Vec<QueuedMessage>) {
        match held.last_mut() {
            Some(last) if last.passing.is_some() && last.passing == self.passing => *last = self,
            _ => held.push(self),
        }
    }
}
