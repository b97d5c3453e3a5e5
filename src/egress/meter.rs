//! The usage of a run's model calls, from the answers of the models' services, and the check before each call.
//!
//! Each answer has a line in the run's book, which grows as the answer passes by. The daemon gets the new counts
//! when an answer ends, before the next call, and at the run's end; each token once.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// The usage of calls of a model.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallCount {
    /// The model that the answers name; `None` if they name none.
    pub model: Option<Box<str>>,
    /// The number of calls.
    pub calls: u64,
    /// Input tokens, without those from the cache.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
    /// Tokens read from the service's cache.
    pub cache_read: u64,
    /// Tokens written to that cache.
    pub cache_write: u64,
    /// Input tokens, guessed from the request's size if the service has reported none.
    pub guessed_input: u64,
    /// Output tokens, guessed in the same way from the text.
    pub guessed_output: u64,
}

/// A future with some result.
pub type Doing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Records the usage of calls, and decides before each call.
pub trait Meter: Send + Sync {
    /// Records the usage; done once it is recorded.
    fn note(&self, used: Vec<CallCount>) -> Doing<()>;

    /// Checks whether the next call may be made; waits for a person if one must decide. A call that is answered later cannot be counted.
    ///
    /// # Errors
    /// The reason why not, in words for the agent.
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

/// The book of a run.
pub(super) struct RunMeter {
    meter: Arc<dyn Meter>,
    book: Mutex<Book>,
    /// The permit to report: one report at a time, so that the next call knows that all earlier usage is reported.
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

    /// Updates the line of an answer.
    pub(super) fn write(&self, number: u64, now: CallCount, is_over: bool) {
        if let Some(line) = self.book().lines.get_mut(&number) {
            *line = Line { now, told: std::mem::take(&mut line.told), is_over };
        }
    }

    /// Reports new usage; done once it is recorded.
    pub(super) async fn tell(&self) {
        let Ok(_turn) = self.turn.acquire().await else { return };
        let news = self.book().news();
        if !news.is_empty() {
            self.meter.note(news).await;
        }
    }

    /// Checks whether the next call may be made, after all earlier usage was reported.
    ///
    /// # Errors
    /// The reason why not.
    pub(super) async fn may_call(&self, is_deferred: bool) -> Result<(), String> {
        self.tell().await;
        self.meter.may_call(is_deferred).await
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Returns the unreported usage, by model. An answer may name its model last, so its usage is reported only once it has named one, or
    /// has ended.
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
