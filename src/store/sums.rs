//! Sums of the usage of runs: the queries, and the rows of the answers.

use provost_base::Timestamp;
use provost_domain::{Counted, Usage};

/// The key by which usage is summed.
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
    /// The key of the sums.
    pub by: UsageBy,
    /// Only from this moment on; sums of days count the whole day.
    pub since: Option<Timestamp>,
    /// The highest number of rows.
    pub limit: usize,
}

/// A sum of usage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsageRow {
    /// The worker, day, model or task; empty for the sum of everything.
    pub key: Box<str>,
    /// The worker, if there is exactly one.
    pub worker: Option<Box<str>>,
    /// The number of runs that have reported their usage.
    pub runs: u64,
    /// The sum, with the model if there is exactly one.
    pub used: Usage,
}

/// Tokens of one model, as the daemon has counted them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedRow {
    /// The worker, day, model or task; empty for the sum of everything.
    pub key: Box<str>,
    /// The worker, if there is exactly one.
    pub worker: Option<Box<str>>,
    /// The model; empty if its service has named none.
    pub model: Box<str>,
    /// The sum.
    pub counted: Counted,
}
