//! What the calls of one run have used, from the answers of the models' services, and whether the next call may be made.
//!
//! Each answer has a line in the run's book, which grows as the answer passes by. What is new in the book is told to the daemon when an
//! answer ends, before the next call, and at the run's end; each token once.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// What calls of one model have used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallCount {
    /// The model that the answers name; `None` where they name none.
    pub model: Option<Box<str>>,
    /// How many calls were made.
    pub calls: u64,
    /// Tokens read, without those from the cache.
    pub input: u64,
    /// Tokens written, with those of thinking.
    pub output: u64,
    /// Tokens of thinking.
    pub reasoning: u64,
    /// Tokens from the service's cache.
    pub cache_read: u64,
    /// Tokens put into it.
    pub cache_write: u64,
    /// Tokens read, guessed from the request's size, where the service has not said how many there were.
    pub guessed_input: u64,
    /// Tokens written, guessed in the same way from the text.
    pub guessed_output: u64,
}

/// Something that takes a while.
pub type Doing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Is told what calls have used, and is asked before each.
pub trait Meter: Send + Sync {
    /// Puts it on record; done once it is there.
    fn note(&self, used: Vec<CallCount>) -> Doing<()>;

    /// Whether the next call may be made; waits for a person where one is asked. A call that is answered later cannot be counted.
    ///
    /// # Errors
    /// Why not, in words for the agent.
    fn may_call(&self, is_deferred: bool) -> Doing<Result<(), String>>;
}

/// A line of the book.
#[derive(Default)]
struct Line {
    now: CallCount,
    told: CallCount,
    is_over: bool,
}

#[derive(Default)]
struct Book {
    next: u64,
    lines: BTreeMap<u64, Line>,
}

/// The book of one run.
pub(super) struct RunMeter {
    meter: Arc<dyn Meter>,
    book: Mutex<Book>,
    /// One tells at a time, so that who asks next knows that all before is told.
    turn: Semaphore,
}

impl RunMeter {
    pub(super) fn new(meter: Arc<dyn Meter>) -> Self {
        Self { meter, book: Mutex::default(), turn: Semaphore::new(1) }
    }

    /// Begins a line.
    pub(super) fn open(&self) -> u64 {
        let mut book = self.book();
        book.next += 1;
        let number = book.next;
        book.lines.insert(number, Line::default());
        number
    }

    /// How far an answer has come.
    pub(super) fn write(&self, number: u64, now: CallCount, is_over: bool) {
        if let Some(line) = self.book().lines.get_mut(&number) {
            *line = Line { now, told: std::mem::take(&mut line.told), is_over };
        }
    }

    /// Tells what is new; done once that is on record.
    pub(super) async fn tell(&self) {
        let Ok(_turn) = self.turn.acquire().await else { return };
        let news = self.book().news();
        if !news.is_empty() {
            self.meter.note(news).await;
        }
    }

    /// Whether the next call may be made, after all that was used before.
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn may_call(&self, is_deferred: bool) -> Result<(), String> {
        self.tell().await;
        self.meter.may_call(is_deferred).await
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// What was not told yet, by model. The model may be named last: of an answer that has named none, nothing is told before its end.
    fn news(&mut self) -> Vec<CallCount> {
        let mut by_model = BTreeMap::<Option<Box<str>>, CallCount>::new();
        for line in self.lines.values_mut().filter(|it| it.is_over || it.now.model.is_some()) {
            if line.now != line.told {
                let sum = by_model.entry(line.now.model.clone()).or_default();
                sum.add_since(&line.now, &line.told);
                sum.model.clone_from(&line.now.model);
                line.told = line.now.clone();
            }
        }
        self.lines.retain(|_, line| !line.is_over);
        by_model.into_values().collect()
    }
}

impl CallCount {
    fn add_since(&mut self, now: &Self, then: &Self) {
        let add = |to: &mut u64, now: u64, then: u64| *to = to.saturating_add(now.saturating_sub(then));
        add(&mut self.calls, now.calls, then.calls);
        add(&mut self.input, now.input, then.input);
        add(&mut self.output, now.output, then.output);
        add(&mut self.reasoning, now.reasoning, then.reasoning);
        add(&mut self.cache_read, now.cache_read, then.cache_read);
        add(&mut self.cache_write, now.cache_write, then.cache_write);
        add(&mut self.guessed_input, now.guessed_input, then.guessed_input);
        add(&mut self.guessed_output, now.guessed_output, then.guessed_output);
    }
}
