//! Sums of what runs have used.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::Timestamp;
use provost_base::limits::COST_ROWS_MAX;
use provost_service::{UsageBy, UsageQuery, UsageRow};

impl Handles<endpoints::Cost> for Own {
    async fn handle(&self, _call: &Call, query: wire::CostQuery) -> Answered<wire::Costs> {
        let by = query.by.as_deref().unwrap_or("agent");
        let kind = match by {
            "agent" => UsageBy::Agent,
            "day" => UsageBy::Day,
            "model" => UsageBy::Model,
            "task" => UsageBy::Task,
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(OwnError::invalid(format!("by '{other}' is not one of agent, day, model, task")));
            }
        };
        let limit = query.limit.unwrap_or(COST_ROWS_MAX).min(COST_ROWS_MAX);
        let now = self.0.provost.engine().now();
        let since = query.within_ms.map(|ms| Timestamp(now.0.saturating_sub_unsigned(ms)));
        let asked = UsageQuery { by: kind, since, limit: limit + 1 };
        let (mut rows, total) = self.0.provost.usage(asked).await.map_err(map::fault)?;
        let truncated = rows.len() > limit;
        rows.truncate(limit);
        Ok(wire::Costs {
            by: by.into(),
            rows: rows.into_iter().map(row).collect(),
            total: row(total),
            truncated,
        })
    }
}

pub(super) fn row(it: UsageRow) -> wire::CostRow {
    wire::CostRow {
        key: it.key.into(),
        worker: it.worker.map(Into::into),
        runs: it.runs,
        used: map::used(it.used),
    }
}
