//! Decides which connections are told of an event, in which order and how often. A6s 4.
//!
//! The hub tells of an execution to the connections that watch it: those that started it or asked about it.
//! If none of them is left, it tells every connection. It tells of a change of status at once, and of
//! progress at most four times a second, and only when the progress has changed. It tells a connection
//! nothing before that connection's first request, and nothing about an execution after its end.
//!
//! A connection that starts an execution watches it before it begins. The hub holds back what happens until
//! the answer to the start is on its way.
//!
//! The time is an argument and the hub waits for nothing: it says when the rest of an event is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde_json::value::RawValue;

use super::{envelope, wire};
use provost_base::limits::{A6S_PROGRESS_EVERY_MS, A6S_WATCHED_MAX};
use provost_transport::websocket::{Code, Outbox, Topic};

/// Something that clients want to know.
#[derive(Clone, Debug)]
pub enum A6sEvent {
    /// How far one phase of an execution is.
    Phase {
        /// Its id, as clients know it.
        execution: Box<str>,
        /// Which of the five.
        phase: &'static str,
        /// `pending`, `running`, `completed` or `failed`.
        status: &'static str,
        /// How far the phase is, in percent.
        progress: u8,
    },
    /// How far a background task is.
    Task {
        /// Its id, as clients know it.
        task: Box<str>,
        /// `queued`, `running`, `completed`, `failed` or `cancelled`.
        status: &'static str,
        /// How far the task is, in percent.
        progress: u8,
    },
    /// An execution is over.
    Complete {
        /// Its id, as clients know it.
        execution: Box<str>,
        /// The answer of `execution.status` from now on.
        result: Box<RawValue>,
    },
}

/// A connection, as far as events are concerned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listener(u64);

/// Says whether a connection may still go by its name.
pub type Holds = Box<dyn Fn() -> bool + Send + Sync>;

/// The outbox of a connection, which counts for as long as the connection may go by its name.
struct Ear {
    outbox: Outbox,
    holds: Option<Holds>,
}

/// The connections that may be told, and what each of them watches. Clones share both.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    next: u64,
    listeners: BTreeMap<Listener, Ear>,
    /// Executions and background tasks, by id.
    subjects: BTreeMap<Box<str>, Subject>,
    /// The same by age.
    by_age: BTreeMap<u64, Box<str>>,
}

/// An execution or a background task, as far as the hub has reported it.
#[derive(Default)]
struct Subject {
    /// What its progress gives way to: a later one in the same state.
    topic: Topic,
    age: u64,
    watchers: BTreeSet<Listener>,
    /// Watchers whose question was not answered yet, and what they are told afterwards.
    held: BTreeMap<Listener, Vec<QueuedMessage>>,
    /// The state of the event that was sent last.
    last: Option<Stand>,
    last_at: Option<Instant>,
    /// Progress that waits until it may be told.
    waiting: Option<A6sEvent>,
    over: bool,
}

/// A message, and what it gives way to.
#[derive(Clone)]
struct QueuedMessage {
    text: Bytes,
    passing: Option<Topic>,
}

/// An event waits until it may be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Later {
    /// What it is about.
    pub about: Box<str>,
    /// When [`Hub::tell_waiting`] has to be called.
    pub at: Instant,
}

/// Holds back the events about a subject for one connection, until it is released or dropped.
pub struct Hold {
    hub: Hub,
    listener: Listener,
    subject: Box<str>,
    /// Whether it was watched before.
    watched: bool,
    released: bool,
}

impl Hub {
    /// Adds a connection, which is told of events from now on.
    pub fn join(&self, outbox: Outbox) -> Listener {
        self.join_while(outbox, None)
    }

    /// Adds a connection for as long as its name is its own. When it is told something afterwards,
    /// it is closed instead.
    pub fn join_while(&self, outbox: Outbox, holds: Option<Holds>) -> Listener {
        let mut book = self.book();
        book.next += 1;
        let listener = Listener(book.next);
        book.listeners.insert(listener, Ear { outbox, holds });
        listener
    }

    /// Removes a connection that has ended, with all that it watches.
    pub fn leave(&self, listener: Listener) {
        let mut book = self.book();
        book.listeners.remove(&listener);
        for subject in book.subjects.values_mut() {
            subject.watchers.remove(&listener);
            subject.held.remove(&listener);
        }
    }

    /// Has a connection told about an execution from now on.
    pub fn watch(&self, listener: Listener, subject: &str) {
        let mut book = self.book();
        if book.listeners.contains_key(&listener) {
            book.subject(subject).watchers.insert(listener);
        }
    }

    /// Ends a connection's watch of an execution.
    pub fn unwatch(&self, listener: Listener, subject: &str) {
        if let Some(subject) = self.book().subjects.get_mut(subject) {
            subject.watchers.remove(&listener);
        }
    }

    /// Whether any connection watches it.
    pub fn is_watched(&self, subject: &str) -> bool {
        self.book().subjects.get(subject).is_some_and(|it| !it.watchers.is_empty())
    }

    /// The same for an execution that is about to begin: told once the result is released, which is when the answer is
    /// on its way. Where it is dropped instead, nothing has begun.
    #[must_use]
    pub fn hold(&self, listener: Listener, subject: &str) -> Hold {
        let mut book = self.book();
        let mut watched = false;
        if book.listeners.contains_key(&listener) {
            let subject = book.subject(subject);
            watched = !subject.watchers.insert(listener);
            subject.held.entry(listener).or_default();
        }
        Hold { hub: self.clone(), listener, subject: subject.into(), watched, released: false }
    }

    /// Tells those whom it concerns, or keeps it until it may be told and says when that is. Where something waits
    /// already, this takes its place and its time.
    #[must_use]
    pub fn tell(&self, mut told: A6sEvent, now: Instant) -> Option<Later> {
        let mut book = self.book();
        let subject = book.subject(told.about());
        if subject.over {
            return None;
        }
        subject.hold_level(&mut told);
        match subject.judge(&told, now) {
            Due::Now => book.send(&told, now),
            Due::Never => {}
            Due::At(at) => {
                let about = told.about().into();
                return subject.waiting.replace(told).is_none().then_some(Later { about, at });
            }
        }
        None
    }

    /// Sends the waiting progress if it is time. Returns when it will be, if something
    /// else was sent meanwhile.
    pub fn tell_waiting(&self, about: &str, now: Instant) -> Option<Instant> {
        let mut book = self.book();
        let subject = book.subjects.get_mut(about)?;
        let told = subject.waiting.take().filter(|_| !subject.over)?;
        match subject.judge(&told, now) {
            Due::Now => book.send(&told, now),
            Due::Never => {}
            Due::At(then) => {
                subject.waiting = Some(told);
                return Some(then);
            }
        }
        None
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Whole between any two of its operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// The answer is on its way: what was held back follows it.
    pub fn release(mut self) {
        self.released = true;
        let mut book = self.hub.book();
        let held = book.subjects.get_mut(&self.subject).and_then(|it| it.held.remove(&self.listener));
        if let Some(ear) = book.listeners.get(&self.listener) {
            held.into_iter().flatten().for_each(|news| news.put(ear));
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let mut book = self.hub.book();
        let Some(subject) = book.subjects.get_mut(&self.subject) else { return };
        subject.held.remove(&self.listener);
        if !self.watched {
            subject.watchers.remove(&self.listener);
        }
    }
}

/// When an event is sent.
enum Due {
    Now,
    At(Instant),
    Never,
}

impl Book {
    /// What is known of a subject. Where there are too many, one that is over is forgotten, or else the oldest.
    fn subject(&mut self, id: &str) -> &mut Subject {
        if !self.subjects.contains_key(id) {
            if self.subjects.len() >= A6S_WATCHED_MAX {
                let is_over = |id: &str| self.subjects.get(id).is_some_and(|it| it.over);
                let mut all = self.by_age.values();
                let gone = all.clone().find(|id| is_over(id)).or_else(|| all.next()).cloned();
                gone.inspect(|gone| self.forget(gone));
            }
            let age = self.number();
            self.by_age.insert(age, id.into());
            self.subjects.insert(id.into(), Subject { age, ..Subject::default() });
        }
        self.subjects.get_mut(id).expect("it was there, or was put there")
    }

    fn forget(&mut self, id: &str) {
        if let Some(subject) = self.subjects.remove(id) {
            self.by_age.remove(&subject.age);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send(&mut self, told: &A6sEvent, now: Instant) {
        let topic = self.number();
        let Some(subject) = self.subjects.get_mut(told.about()) else { return };
        let passing = subject.remember(told, topic, now);
        let news = QueuedMessage { text: told.text().into(), passing };
        let is_for_all = told.is_for_all() || subject.watchers.is_empty();
        for (listener, ear) in &self.listeners {
            if !is_for_all && !subject.watchers.contains(listener) {
                continue;
            }
            match subject.held.get_mut(listener) {
                Some(held) => news.clone().hold_back(held),
                None => news.clone().put(ear),
            }
        }
    }
}

impl Subject {
    /// What has failed half-way has come as far as it had.
    fn hold_level(&self, told: &mut A6sEvent) {
        let (Some(stand), Some(last)) = (told.stand(), &self.last) else { return };
        if stand.part == last.part
            && stand.is_over()
            && let A6sEvent::Phase { progress, .. } | A6sEvent::Task { progress, .. } = told
        {
            *progress = stand.progress.max(last.progress);
        }
    }

    /// Decides whether and when an event is sent.
    fn judge(&self, told: &A6sEvent, now: Instant) -> Due {
        let (Some(stand), Some(last)) = (told.stand(), &self.last) else { return Due::Now };
        if stand.part < last.part || (stand.part == last.part && last.is_over()) {
            return Due::Never;
        }
        if (stand.part, stand.status) != (last.part, last.status) {
            return Due::Now;
        }
        let next = self.last_at.map(|at| at + Duration::from_millis(A6S_PROGRESS_EVERY_MS));
        match next {
            _ if stand.progress <= last.progress => Due::Never,
            Some(then) if then > now => Due::At(then),
            _ => Due::Now,
        }
    }

    /// Remembers the event that is sent now. Returns the topic of progress messages that it
    /// replaces, if it is one itself.
    fn remember(&mut self, told: &A6sEvent, topic: Topic, now: Instant) -> Option<Topic> {
        self.over = told.is_last();
        let stand = told.stand()?;
        let is_progress =
            self.last.as_ref().is_some_and(|last| (last.part, last.status) == (stand.part, stand.status));
        // What waits is about what was before.
        self.waiting = None;
        if !is_progress {
            self.topic = topic;
        }
        (self.last, self.last_at) = (Some(stand), Some(now));
        is_progress.then_some(self.topic)
    }
}

/// How something stands: which of its parts, and how far that is.
struct Stand {
    part: usize,
    status: &'static str,
    progress: u8,
}

impl Stand {
    fn is_over(&self) -> bool {
        matches!(self.status, "completed" | "failed" | "cancelled")
    }
}

impl QueuedMessage {
    fn put(self, Ear { outbox, holds }: &Ear) {
        if holds.as_ref().is_some_and(|holds| !holds()) {
            outbox.close(Code::NOT_ALLOWED);
            return;
        }
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

impl A6sEvent {
    fn about(&self) -> &str {
        match self {
            A6sEvent::Phase { execution, .. } | A6sEvent::Complete { execution, .. } => execution,
            A6sEvent::Task { task, .. } => task,
        }
    }

    fn is_for_all(&self) -> bool {
        matches!(self, A6sEvent::Task { .. })
    }

    /// Whether nothing is to follow it.
    fn is_last(&self) -> bool {
        match self {
            A6sEvent::Complete { .. } => true,
            A6sEvent::Task { .. } => self.stand().is_some_and(|it| it.is_over()),
            A6sEvent::Phase { .. } => false,
        }
    }

    /// How it stands; nothing, where it is over.
    fn stand(&self) -> Option<Stand> {
        let (part, status, progress) = match self {
            A6sEvent::Phase { phase, status, progress, .. } => {
                (wire::PHASES.iter().position(|it| it == phase)?, status, progress)
            }
            A6sEvent::Task { status, progress, .. } => (0, status, progress),
            A6sEvent::Complete { .. } => return None,
        };
        Some(Stand { part, status, progress: *progress })
    }

    fn text(&self) -> String {
        match self {
            A6sEvent::Phase { execution, phase, status, progress } => {
                let progress = (*progress).min(100);
                let data = wire::PhaseUpdate { execution_id: execution, phase, status, progress };
                envelope::event("phase.update", data)
            }
            A6sEvent::Task { task, status, progress } => {
                let progress = (*progress).min(100);
                envelope::event("task.update", wire::TaskUpdate { task_id: task, status, progress })
            }
            A6sEvent::Complete { result, .. } => envelope::event("execution.complete", result),
        }
    }
}
