//! The types for sums of usage.

use serde::{Deserialize, Serialize};

use super::{BudgetRow, Counted, Used};

/// Query of `GET /cost`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostQuery {
    /// The grouping: `agent`, `day`, `model` or `task`; by agent when absent.
    pub by: Option<String>,
    /// Only the last so many milliseconds; sums of days count whole UTC days.
    pub within_ms: Option<u64>,
    /// How many rows to return at most; bounded.
    pub limit: Option<usize>,
}

/// `GET /cost`: sums of the usage that workers report, and of the usage that the daemon itself has counted. The
/// daemon shows the workers' reports, and never relies on them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// The grouping.
    pub by: String,
    /// The rows: newest first for days and tasks, most expensive first for the others.
    pub rows: Vec<CostRow>,
    /// The sum over that time, including rows that do not fit.
    pub total: CostRow,
    /// Whether there are more rows than fit.
    pub truncated: bool,
    /// Budgets that are used at least in part: those of running tasks, of today, and of the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetRow>,
}

/// A sum, or the usage of a single task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CostRow {
    /// The agent, the day (of UTC), the model or the task; empty for the total, and for runs that named no model.
    pub key: String,
    /// The worker, for a row of a single task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The number of runs that have reported their usage.
    pub runs: u64,
    /// The usage that they report.
    pub used: Used,
    /// The usage that the daemon has counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}
