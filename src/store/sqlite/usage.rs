//! Sums of the usage of runs, as their workers report it: a row for each day, worker and model, and one for each
//! finished task that is kept.
//!
//! A sum grows in the commit that ends the task, so that the cost of reading it depends on its size and not on the
//! history. All numbers and names are claims of workers: each has a bound, and a worker that invents models fills
//! one row with the rest of them.

use rusqlite::{Connection, Row, params};

use super::rows::put;
use crate::StoreError;
use crate::codec::{int, nat};
use crate::{UsageBy, UsageQuery, UsageRow};
use provost_base::Timestamp;
use provost_base::limits::{MODEL_LEN_MAX, USAGE_CLAIM_MAX, USAGE_MODELS_MAX, USAGE_SUM_MAX};
use provost_domain::{Task, Usage};

/// A day in milliseconds. Days are those of UTC.
const DAY_MS: i64 = 86_400_000;

/// The name under which models are summed when there are too many.
const OTHERS: &str = "(others)";

/// Counts a finished task, once: its end, or the report that came after it.
pub(super) fn count(db: &Connection, task: &Task) -> Result<(), StoreError> {
    let metadata = task.notes.iter().rev().find_map(|note| Usage::of_metadata(note.report.metadata.as_ref()));
    let Some(used) = metadata.filter(has_numbers) else { return Ok(()) };
    let (at, worker) = (task.updated_at.0, task.order.worker.as_str());
    let claim = |number: Option<u64>| number.map(|it| int(it.min(USAGE_CLAIM_MAX))).transpose();
    let numbers = [
        claim(used.input)?,
        claim(used.output)?,
        claim(used.reasoning)?,
        claim(used.cache_read)?,
        claim(used.cache_write)?,
        claim(used.cost_microusd)?,
    ];
    let [input, output, reasoning, cache_read, cache_write, cost] = numbers;
    let model = used.model.as_deref().unwrap_or_default();
    let model = &model[..model.floor_char_boundary(MODEL_LEN_MAX.min(model.len()))];
    let sql = "INSERT OR IGNORE INTO usage_task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let row = params![
        task.id().as_str(),
        at,
        worker,
        model,
        input,
        output,
        reasoning,
        cache_read,
        cache_write,
        cost
    ];
    if db.prepare_cached(sql)?.execute(row)? == 0 {
        return Ok(());
    }
    let day = at.div_euclid(DAY_MS);
    let model = room_for(db, day, worker, model)?;
    let add = |name: &str| {
        format!(
            "{name} = CASE WHEN excluded.{name} IS NULL THEN {name} \
             ELSE min(coalesce({name}, 0) + excluded.{name}, {USAGE_SUM_MAX}) END"
        )
    };
    let sums = ["input", "output", "reasoning", "cache_read", "cache_write", "cost"].map(add).join(", ");
    let sql = format!(
        "INSERT INTO usage_day VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (day, worker, model) DO UPDATE SET runs = runs + 1, {sums}"
    );
    put(db, &sql, params![day, worker, model, input, output, reasoning, cache_read, cache_write, cost])
}

/// Checks whether there are numbers to sum; a model's name alone is not usage.
fn has_numbers(used: &Usage) -> bool {
    *used != Usage { model: used.model.clone(), ..Usage::default() }
}

/// Returns the name under which a model is summed on a day: its own, unless the worker has named too many already.
fn room_for<'a>(db: &Connection, day: i64, worker: &str, model: &'a str) -> Result<&'a str, StoreError> {
    let known = "SELECT 1 FROM usage_day WHERE day = ?1 AND worker = ?2 AND model = ?3";
    if db.prepare_cached(known)?.exists(params![day, worker, model])? {
        return Ok(model);
    }
    let count = "SELECT count(*) FROM usage_day WHERE day = ?1 AND worker = ?2";
    let models: i64 = db.prepare_cached(count)?.query_row(params![day, worker], |row| row.get(0))?;
    Ok(if models < USAGE_MODELS_MAX { model } else { OTHERS })
}

/// Returns the sums that a query asks for, by cost, highest first.
pub(super) fn sums(db: &Connection, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
    let since = query.since.map_or(i64::MIN, |it| it.0);
    let first_day = since.div_euclid(DAY_MS);
    let numbers = "sum(input), sum(output), sum(reasoning), sum(cache_read), sum(cache_write), sum(cost)";
    let dearest = "ORDER BY coalesce(sum(cost), 0) DESC, coalesce(sum(output), 0) DESC, 1";
    let by = |name: &str, order: &str| {
        format!(
            "SELECT {name}, min(worker), count(DISTINCT worker), min(model), count(DISTINCT model), sum(runs), {numbers} \
             FROM usage_day WHERE day >= ?1 GROUP BY {name} {order} LIMIT ?2"
        )
    };
    let (sql, from) = match query.by {
        UsageBy::Agent => (by("worker", dearest), first_day),
        UsageBy::Model => (by("model", dearest), first_day),
        UsageBy::Day => (by("day", "ORDER BY day DESC"), first_day),
        UsageBy::Task => (
            "SELECT task, worker, 1, model, 1, 1, input, output, reasoning, cache_read, cache_write, cost \
             FROM usage_task WHERE at >= ?1 ORDER BY at DESC, task LIMIT ?2"
                .to_owned(),
            since,
        ),
        UsageBy::Nothing => (
            format!(
                "SELECT '', min(worker), count(DISTINCT worker), min(model), count(DISTINCT model), \
                 coalesce(sum(runs), 0), {numbers} FROM usage_day WHERE day >= ?1 LIMIT ?2"
            ),
            first_day,
        ),
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![from, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row, query.by)?);
    }
    Ok(found)
}

fn read(row: &Row<'_>, by: UsageBy) -> Result<UsageRow, StoreError> {
    let key = match by {
        UsageBy::Day => {
            let day: i64 = row.get(0)?;
            Timestamp(day.saturating_mul(DAY_MS)).rfc3339().split('T').next().unwrap_or_default().into()
        }
        _ => row.get::<_, String>(0)?.into(),
    };
    let number = |at: usize| -> Result<Option<u64>, StoreError> {
        row.get::<_, Option<i64>>(at)?.map(nat).transpose()
    };
    // A single name is returned; several are returned as `None`.
    let only = |at: usize| -> Result<Option<Box<str>>, StoreError> {
        let is_only = row.get::<_, i64>(at + 1)? == 1;
        let name = row.get::<_, Option<String>>(at)?.filter(|it| is_only && !it.is_empty());
        Ok(name.map(Into::into))
    };
    let used = Usage {
        input: number(6)?,
        output: number(7)?,
        reasoning: number(8)?,
        cache_read: number(9)?,
        cache_write: number(10)?,
        cost_microusd: number(11)?,
        model: only(3)?,
    };
    Ok(UsageRow { key, worker: only(1)?, runs: number(5)?.unwrap_or(0), used })
}

/// Removes the sums of days that are too old for queries, at most `most` rows.
pub(super) fn prune(db: &Connection, before: Timestamp, most: u32) -> Result<u32, StoreError> {
    let sql = "DELETE FROM usage_day WHERE (day, worker, model) IN
               (SELECT day, worker, model FROM usage_day WHERE day < ?1 ORDER BY day LIMIT ?2)";
    let gone = db.prepare_cached(sql)?.execute(params![before.0.div_euclid(DAY_MS), most])?;
    u32::try_from(gone).map_err(StoreError::damaged)
}
