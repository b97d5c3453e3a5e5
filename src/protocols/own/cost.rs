//! Sums of the usage of runs: as agents report it, and as the daemon has counted it.

use std::collections::BTreeMap;

use super::Own;
use super::counted::CountedSum;
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
        // Reports and counts have tasks in different orders, so the rows are cut only after they were joined.
        let most = if kind == UsageBy::Task { COST_ROWS_MAX } else { limit };
        let asked = UsageQuery { by: kind, since, limit: most + 1 };
        let whole = UsageQuery { by: UsageBy::Nothing, since, limit: 1 };
        let (counted, budgets) = self.counted(asked.clone()).await?;
        let (of_all, _) = self.counted(whole).await?;
        let (rows, total) = self.0.provost.usage(asked).await.map_err(map::fault)?;
        let mut rows = joined(rows.into_iter().map(row).collect(), counted, kind);
        let truncated = rows.len() > limit;
        rows.truncate(limit);
        let counted = of_all.into_iter().next().map(|(_, sum)| sum.counted);
        let total = wire::CostRow { counted, ..row(total) };
        Ok(wire::Costs { by: by.into(), rows, total, truncated, budgets })
    }
}

pub(super) fn row(it: UsageRow) -> wire::CostRow {
    wire::CostRow {
        key: it.key.into(),
        worker: it.worker.map(Into::into),
        runs: it.runs,
        used: map::used(it.used),
        counted: None,
    }
}

/// Joins counts and reports by key. Keys without a report are inserted: days by the calendar, tasks (which still
/// run, or are silent) first, others last.
fn joined(
    reported: Vec<wire::CostRow>,
    counted: Vec<(String, CountedSum)>,
    by: UsageBy,
) -> Vec<wire::CostRow> {
    let mut counted: Vec<_> = counted.into_iter().map(|(key, sum)| (key, Some(sum))).collect();
    let mut places: BTreeMap<String, usize> =
        counted.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
    let beside = |mut it: wire::CostRow| {
        let at = places.remove(&it.key);
        it.counted = at.and_then(|at| counted[at].1.take()).map(|sum| sum.counted);
        it
    };
    let mut rows: Vec<wire::CostRow> = reported.into_iter().map(beside).collect();
    let silent = counted.into_iter().filter_map(|(key, sum)| {
        let CountedSum { worker, counted } = sum?;
        Some(wire::CostRow { key, worker, runs: 0, used: wire::Used::default(), counted: Some(counted) })
    });
    match by {
        UsageBy::Task => rows = silent.chain(rows).collect(),
        _ => rows.extend(silent),
    }
    if by == UsageBy::Day {
        rows.sort_by(|a, b| b.key.cmp(&a.key));
    }
    rows
}
