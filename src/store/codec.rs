//! Conversions between the domain's types and the columns of the database.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;
use provost_base::Timestamp;
use provost_domain::{Change, Counters, Task, TaskState};

/// Returns a value as JSON text. Relayed JSON stays as it was written.
pub fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::damaged)
}

/// Reads a value from the text of a column.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(StoreError::damaged)
}

/// Returns a number for a column. Provost's numbers start at zero and are counted up one by one.
pub(super) fn int(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(StoreError::damaged)
}

/// Reads a number that cannot be negative from a column.
pub(super) fn nat(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(StoreError::damaged)
}

/// Returns the time from which a task's age counts: its end.
pub fn ended_at(task: &Task) -> Timestamp {
    match task.state {
        TaskState::Finished { at, .. } => at,
        _ => task.updated_at,
    }
}

/// Returns the numbers after these changes; only the last count matters.
pub(super) fn counted(changes: &[Change]) -> Option<Counters> {
    changes.iter().rev().find_map(|change| match change {
        Change::Count(counters) => Some(*counters),
        _ => None,
    })
}

/// Returns the moment that lies `age` back.
pub fn before(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
}
