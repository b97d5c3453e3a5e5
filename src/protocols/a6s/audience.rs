//! Decides which connections are told of an event, and in which order after an answer. A6s 4.
//!
//! Those that watch an execution are told of it: those that started it or asked about it. If none of them is left, every
//! connection is. A connection is told nothing before its first request.
//!
//! A connection that starts an execution watches it before it begins. What happens is held back for it until the answer
//! to the start is on its way.
//!
//! An event is written before the connections that are told are picked. The list of connections is locked while they
//! are, and for nothing else: the name of each is looked up, and its queue filled, without that lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use lru::LruCache;

use super::events::A6sEvent;
use super::pace::SUBJECTS_MAX;
use provost_transport::websocket::{Code, Outbox, Topic};

/// A connection, as far as events are concerned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listener(u64);

/// Says whether a connection may still go by its name.
pub type Holds = Box<dyn Fn() -> bool + Send + Sync>;

/// The connections that may be told, and what each of them watches. Clones share both.
#[derive(Clone, Default)]
pub struct Audience(Arc<Mutex<Book>>);

struct Book {
    joined: u64,
    ears: BTreeMap<Listener, Arc<Ear>>,
    /// Who watches executions and background tasks, by their ids.
    watchers: LruCache<String, BTreeSet<Listener>>,
}

impl Default for Book {
    fn default() -> Self {
        Self { joined: 0, ears: BTreeMap::new(), watchers: LruCache::new(SUBJECTS_MAX) }
    }
}

/// The outbox of a connection, which counts for as long as the connection may go by its name.
struct Ear {
    outbox: Outbox,
    holds: Option<Holds>,
    /// What the connection is told once its question was answered, by what it is about.
    held: Mutex<BTreeMap<String, Vec<QueuedMessage>>>,
}

/// An event as it travels: written once for all connections that are told.
#[derive(Debug)]
pub struct Written {
    about: String,
    message: QueuedMessage,
    is_for_all: bool,
    is_last: bool,
}

/// A text, and what it gives way to.
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
    /// `None` where the connection has ended, or was told.
    ear: Option<Arc<Ear>>,
    /// Whether it was watched before.
    watched: bool,
}

impl Written {
    /// An event, and the topic of progress messages that it replaces, if it is one itself.
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
    /// Adds a connection, which is told of events from now on, for as long as its name is its own. When it is told
    /// something afterwards, it is closed instead.
    pub fn join(&self, outbox: Outbox, holds: Option<Holds>) -> Listener {
        let mut book = self.book();
        book.joined += 1;
        let listener = Listener(book.joined);
        book.ears.insert(listener, Arc::new(Ear { outbox, holds, held: Mutex::default() }));
        listener
    }

    /// Removes a connection that has ended, with all that it watches.
    pub fn leave(&self, listener: Listener) {
        let mut book = self.book();
        book.ears.remove(&listener);
        for (_, watchers) in &mut book.watchers {
            watchers.remove(&listener);
        }
    }

    /// Has a connection told about an execution from now on.
    pub fn watch(&self, listener: Listener, subject: &str) {
        self.book().watch(listener, subject);
    }

    /// Ends a connection's watch of an execution.
    pub fn unwatch(&self, listener: Listener, subject: &str) {
        if let Some(watchers) = self.book().watchers.get_mut(subject) {
            watchers.remove(&listener);
        }
    }

    /// Whether any connection watches it.
    pub fn is_watched(&self, subject: &str) -> bool {
        self.book().watchers.peek(subject).is_some_and(|it| !it.is_empty())
    }

    /// The same for an execution that is about to begin: told once the result is released, which is when the answer is
    /// on its way. Where it is dropped instead, nothing has begun.
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

    /// Tells those whom it concerns. There is one caller, so that each connection is told in order.
    pub fn tell(&self, written: &Written) {
        let told = self.book().told(written);
        for ear in told {
            ear.tell(written);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Whole between any two of its operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Whether this connection watches it from now on, and did not before.
    fn watch(&mut self, listener: Listener, subject: &str) -> bool {
        self.ears.contains_key(&listener)
            && self.watchers.get_or_insert_mut_ref(subject, BTreeSet::new).insert(listener)
    }

    /// The connections that are told. Nothing follows a last event, so none has to watch any longer.
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

    /// The answer is on its way: what was held back follows it.
    fn release(&self, subject: &str) {
        let may_hear = self.may_hear();
        // Locked until all of it is in the outbox, so that what is told from now on comes after it.
        let mut held = self.held();
        for message in held.remove(subject).into_iter().flatten().filter(|_| may_hear) {
            message.put(&self.outbox);
        }
    }

    /// Closes a connection whose name is not its own any more.
    fn may_hear(&self) -> bool {
        let may_hear = self.holds.as_ref().is_none_or(|holds| holds());
        if !may_hear {
            self.outbox.close(Code::NOT_ALLOWED);
        }
        may_hear
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Vec<QueuedMessage>>> {
        // Whole between any two of its operations.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// The answer is on its way: what was held back follows it.
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
        // Who does not keep up, or is gone, has heard enough.
        let _sent = match self.passing {
            Some(topic) => outbox.send_passing(topic, self.text),
            None => outbox.send(self.text),
        };
    }

    /// Puts it behind what is held back already; progress takes the place of progress.
    fn hold_back(self, held: &mut Vec<QueuedMessage>) {
        match held.last_mut() {
            Some(last) if last.passing.is_some() && last.passing == self.passing => *last = self,
            _ => held.push(self),
        }
    }
}
