//! Verbs about what runs use: one puts the counted tokens of calls on record, one asks a person whether to go on.

use serde::{Deserialize, Serialize};

use crate::{BudgetPer, Counted, Limit, SpentKey};
use provost_base::TaskId;

/// Put on record what calls of a run have used, as the daemon has counted it in the answers of the model's service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteCalls {
    /// The task whose run made the calls.
    pub task: TaskId,
    /// What they have used, by the model that the answers name; empty where they name none.
    pub calls: Vec<(Box<str>, Counted)>,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallsNoted;

/// Go on with what a budget has nearly used up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GoOn {
    /// What is added up.
    pub key: SpentKey,
    /// The kind of budget.
    pub per: BudgetPer,
    /// The budget.
    pub limit: Limit,
    /// What was used of it when this was asked, in the limit's unit.
    pub used: u64,
    /// The day that it is about, where it is a budget of a day: days since 1970, of UTC.
    pub day: Option<i64>,
    /// The task whose next call waits.
    pub task: TaskId,
}

/// It may go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoesOn;
