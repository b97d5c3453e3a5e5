//! Sums of what runs have used: which are asked for, and what they hold.

use provost_base::Timestamp;
use provost_domain::{Counted, Usage};

/// What usage is summed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageBy {
    /// Each worker.
    Agent,
    /// Each day of UTC.
    Day,
    /// Each model, by the name that workers report.
    Model,
    /// Each finished task that is kept.
    Task,
    /// Everything is one sum.
    Nothing,
}

/// A choice of sums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageQuery {
    /// What is summed.
    pub by: UsageBy,
    /// Only from this moment on; sums of days count the whole day.
    pub since: Option<Timestamp>,
    /// How many rows at most.
    pub limit: usize,
}

/// A sum of usage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsageRow {
    /// The worker, day, model or task; empty for the sum of everything.
    pub key: Box<str>,
    /// The worker, where it is one.
    pub worker: Option<Box<str>>,
    /// How many runs have said what they used.
    pub runs: u64,
    /// The sum; the model where it is one.
    pub used: Usage,
}

/// Tokens of one model, as the daemon has counted them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedRow {
    /// The worker, day, model or task; empty for the sum of everything.
    pub key: Box<str>,
    /// The worker, where it is one.
    pub worker: Option<Box<str>>,
    /// The model; empty where its service has named none.
    pub model: Box<str>,
    /// The sum.
    pub counted: Counted,
}
