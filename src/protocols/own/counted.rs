//! The usage that the daemon itself has counted, beside agents' reports.

use std::collections::BTreeMap;

use super::Own;
use super::map::{self, OwnError};
use provost_api::wire;
use provost_domain::{BudgetStanding, Counted, SpendingNow, SpendingSettings, Task};
use provost_service::{CountedRow, UsageQuery};

/// Millionths in one US dollar.
const MICRO: f64 = 1e6;

/// The counts of a key.
pub(super) struct CountedSum {
    /// The worker, if the key is a task of one.
    pub(super) worker: Option<String>,
    /// The sum.
    pub(super) counted: wire::Counted,
}

impl Own {
    /// Returns the counts by key, and the budgets.
    ///
    /// # Errors
    /// The store or the core does not answer.
    pub(super) async fn counted(
        &self,
        query: UsageQuery,
    ) -> Result<(Vec<(String, CountedSum)>, Vec<wire::BudgetRow>), OwnError> {
        let (settings, standings) = self.0.provost.view(SpendingNow).await.map_err(map::fault)?;
        let rows = self.0.provost.counted(query).await.map_err(map::fault)?;
        Ok((sums(rows, &settings), standings.into_iter().map(budget).collect()))
    }

    /// Adds its counts to a task. If the store does not answer, the task is returned without them.
    pub(super) async fn with_counted(&self, told: wire::Task, task: &Task) -> wire::Task {
        let Ok(rows) = self.0.provost.counted_of(task.id()).await else { return told };
        let Ok((settings, _)) = self.0.provost.view(SpendingNow).await else { return told };
        let counted = sums(rows, &settings).pop().map(|(_, sum)| sum.counted);
        wire::Task { counted, ..told }
    }
}

/// Sums the rows of each key, in the order of the keys.
fn sums(rows: Vec<CountedRow>, settings: &SpendingSettings) -> Vec<(String, CountedSum)> {
    let mut places = BTreeMap::<String, usize>::new();
    let mut found: Vec<(String, CountedSum)> = Vec::new();
    for row in rows {
        let key = String::from(row.key);
        let at = *places.entry(key.clone()).or_insert_with(|| {
            let worker = row.worker.clone().map(Into::into);
            found.push((key, CountedSum { worker, counted: wire::Counted::default() }));
            found.len() - 1
        });
        let sum = &mut found[at].1;
        if sum.worker.as_deref() != row.worker.as_deref() {
            sum.worker = None;
        }
        add(&mut sum.counted, &row.model, &row.counted, settings.cost(&row.model, &row.counted));
    }
    found
}

fn add(to: &mut wire::Counted, model: &str, it: &Counted, microusd: Option<u64>) {
    let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
    sum(&mut to.calls, it.calls);
    sum(&mut to.tokens_input, it.input);
    sum(&mut to.tokens_output, it.output);
    sum(&mut to.tokens_reasoning, it.reasoning);
    sum(&mut to.tokens_cache_read, it.cache_read);
    sum(&mut to.tokens_cache_write, it.cache_write);
    sum(&mut to.tokens_guessed, it.guessed_input.saturating_add(it.guessed_output));
    to.models.push(model.to_owned());
    match microusd {
        // The last digits do not matter in sums for people.
        Some(cost) => to.cost_usd = Some(to.cost_usd.unwrap_or(0.0) + cost as f64 / MICRO),
        None => to.unpriced.push(model.to_owned()),
    }
}

fn budget(it: BudgetStanding) -> wire::BudgetRow {
    let most = it.limit.most();
    let percent = u128::from(it.used) * 100 / u128::from(most.max(1));
    wire::BudgetRow {
        key: it.key.to_string(),
        used: it.limit.text(it.used),
        of: it.limit.text(most),
        percent: u64::try_from(percent).unwrap_or(u64::MAX),
        state: it.state.into(),
    }
}
