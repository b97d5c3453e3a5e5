//! Sums of what runs have used, as they travel.

use serde::{Deserialize, Serialize};

use super::{BudgetRow, Counted, Used};

/// Query of `GET /cost`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostQuery {
    /// What is summed: `agent`, `day`, `model` or `task`; by agent when absent.
    pub by: Option<String>,
    /// Only of the last so many milliseconds; sums of days count whole days of UTC.
    pub within_ms: Option<u64>,
    /// How many rows to return at most; bounded.
    pub limit: Option<usize>,
}

/// `GET /cost`: sums of what workers say that they have used, and of what the daemon has counted itself. The claims of workers are shown and
/// never relied on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// What is summed.
    pub by: String,
    /// The rows: of days and tasks the newest first, of others the dearest first.
    pub rows: Vec<CostRow>,
    /// The sum of everything in that time, rows that are left out included.
    pub total: CostRow,
    /// Whether there are more rows than fit.
    pub truncated: bool,
    /// Budgets that are used in part or whole: those of running tasks, of today, and of the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetRow>,
}

/// A sum, or one task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CostRow {
    /// The agent, the day (of UTC), the model or the task; empty for the total, and for runs that named no model.
    pub key: String,
    /// The worker, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How many runs have said what they used.
    pub runs: u64,
    /// What they say that they have used.
    pub used: Used,
    /// What the daemon has counted itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}
