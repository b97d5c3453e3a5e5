//! Verbs about the usage of runs: one records the counted tokens of calls, one asks a person whether to go on.

use serde::{Deserialize, Serialize};

use crate::{BudgetPer, Counted, Limit, SpentKey};
use provost_base::TaskId;

/// Record the usage of a run's calls, as the daemon has counted it in the answers of the model's service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteCalls {
    /// The task whose run made the calls.
    pub task: TaskId,
    /// The usage, by the model that the answers name; empty if they name no model.
    pub calls: Vec<(Box<str>, Counted)>,
}

/// The usage is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallsNoted;

/// Go on although a budget is nearly used up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GoOn {
    /// The key under which usage is added up.
    pub key: SpentKey,
    /// The kind of budget.
    pub per: BudgetPer,
    /// The budget.
    pub limit: Limit,
    /// The amount used when the question was asked, in the limit's unit.
    pub used: u64,
    /// The day of a daily budget: days since 1970, in UTC; `None` for other budgets.
    pub day: Option<i64>,
    /// The task whose next call waits.
    pub task: TaskId,
}

/// The task may go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoesOn;
