//! Sums of the daemon's own counts from the answers of models' services: a row for each day, worker and model, and one for each
//! task and model. They grow with the commit that notes the calls. In addition, the sums that budgets are compared with.

use rusqlite::{Connection, Row, params};

use super::rows::put;
use crate::StoreError;
use crate::codec::{int, nat, text};
use crate::{CountedRow, UsageBy, UsageQuery};
use provost_base::limits::{COUNTED_ROWS_MAX, USAGE_MODELS_MAX, USAGE_SUM_MAX};
use provost_base::{TaskId, Timestamp};
use provost_domain::{Counted, OTHER_MODELS, SpendChange};

/// A day in milliseconds. Days are those of UTC.
const DAY_MS: i64 = 86_400_000;

/// The numbers of a row, in the order of the tables.
const NUMBERS: [&str; 8] =
    ["calls", "input", "output", "reasoning", "cache_read", "cache_write", "guessed_input", "guessed_output"];

/// Writes a change of the sums.
pub(super) fn apply(db: &Connection, change: &SpendChange) -> Result<(), StoreError> {
    match change {
        SpendChange::Put(it) => {
            let row = params![it.key.to_string(), text(&**it)?];
            put(db, "INSERT OR REPLACE INTO spent VALUES (?1, ?2)", row)
        }
        SpendChange::Drop(key) => put(db, "DELETE FROM spent WHERE key = ?1", params![key.to_string()]),
        SpendChange::Calls { task, worker, at, model, counted } => {
            let [a, b, c, d, e, f, g, h] = numbers(counted)?;
            let (task, worker) = (task.as_str(), worker.as_str());
            let known = task_model(db, task, model)?;
            let sql = format!(
                "INSERT INTO counted_task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT (task, model) DO UPDATE SET at = excluded.at, {}",
                sums()
            );
            put(db, &sql, params![task, known, worker, at.0, a, b, c, d, e, f, g, h])?;
            let day = at.0.div_euclid(DAY_MS);
            let known = day_model(db, day, worker, model)?;
            let sql = format!(
                "INSERT INTO counted_day VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (day, worker, model) DO UPDATE SET {}",
                sums()
            );
            put(db, &sql, params![day, worker, known, a, b, c, d, e, f, g, h])
        }
    }
}

fn numbers(it: &Counted) -> Result<[i64; 8], StoreError> {
    let of = |number: u64| int(number.min(USAGE_SUM_MAX));
    Ok([
        of(it.calls)?,
        of(it.input)?,
        of(it.output)?,
        of(it.reasoning)?,
        of(it.cache_read)?,
        of(it.cache_write)?,
        of(it.guessed_input)?,
        of(it.guessed_output)?,
    ])
}

fn sums() -> String {
    NUMBERS.map(|it| format!("{it} = min({it} + excluded.{it}, {USAGE_SUM_MAX})")).join(", ")
}

/// Returns the name under which a model of a task is summed: its own, unless there are too many already.
fn task_model<'a>(db: &Connection, task: &str, model: &'a str) -> Result<&'a str, StoreError> {
    let known = "SELECT 1 FROM counted_task WHERE task = ?1 AND model = ?2";
    if db.prepare_cached(known)?.exists(params![task, model])? {
        return Ok(model);
    }
    let count = "SELECT count(*) FROM counted_task WHERE task = ?1";
    let models: i64 = db.prepare_cached(count)?.query_row(params![task], |row| row.get(0))?;
    Ok(if models < USAGE_MODELS_MAX { model } else { OTHER_MODELS })
}

/// Returns the name under which a model is summed on a day.
fn day_model<'a>(db: &Connection, day: i64, worker: &str, model: &'a str) -> Result<&'a str, StoreError> {
    let known = "SELECT 1 FROM counted_day WHERE day = ?1 AND worker = ?2 AND model = ?3";
    if db.prepare_cached(known)?.exists(params![day, worker, model])? {
        return Ok(model);
    }
    let count = "SELECT count(*) FROM counted_day WHERE day = ?1 AND worker = ?2";
    let models: i64 = db.prepare_cached(count)?.query_row(params![day, worker], |row| row.get(0))?;
    Ok(if models < USAGE_MODELS_MAX { model } else { OTHER_MODELS })
}

/// Returns the sums that a query asks for, a row for each model: for tasks the newest, for others all, within a bound.
pub(super) fn sums_of(db: &Connection, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError> {
    let since = query.since.map_or(i64::MIN, |it| it.0);
    let first_day = since.div_euclid(DAY_MS);
    let numbers = NUMBERS.map(|it| format!("sum({it})")).join(", ");
    let by = |name: &str| {
        format!(
            "SELECT {name}, min(worker), count(DISTINCT worker), model, {numbers} FROM counted_day \
             WHERE day >= ?1 GROUP BY {name}, model ORDER BY 1 DESC, model LIMIT {COUNTED_ROWS_MAX} + 0 * ?2"
        )
    };
    let (sql, from) = match query.by {
        UsageBy::Agent => (by("worker"), first_day),
        UsageBy::Model => (by("model"), first_day),
        UsageBy::Day => (by("day"), first_day),
        UsageBy::Nothing => (by("''"), first_day),
        UsageBy::Task => (
            format!(
                "SELECT task, worker, 1, model, {} FROM counted_task WHERE task IN \
                 (SELECT task FROM counted_task WHERE at >= ?1 GROUP BY task ORDER BY max(at) DESC LIMIT ?2) \
                 ORDER BY at DESC, task, model",
                NUMBERS.join(", ")
            ),
            since,
        ),
    };
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![from, i64::try_from(query.limit).unwrap_or(i64::MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let key = match query.by {
            UsageBy::Day => {
                let day: i64 = row.get(0)?;
                let at = Timestamp(day.saturating_mul(DAY_MS)).rfc3339();
                at.split('T').next().unwrap_or_default().into()
            }
            _ => row.get::<_, String>(0)?.into(),
        };
        found.push(read(row, key)?);
    }
    Ok(found)
}

/// Returns the counts of a task, a row for each model.
pub(super) fn of_task(db: &Connection, task: &TaskId) -> Result<Vec<CountedRow>, StoreError> {
    let sql = format!(
        "SELECT task, worker, 1, model, {} FROM counted_task WHERE task = ?1 ORDER BY model",
        NUMBERS.join(", ")
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![task.as_str()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row, task.as_str().into())?);
    }
    Ok(found)
}

fn read(row: &Row<'_>, key: Box<str>) -> Result<CountedRow, StoreError> {
    let number = |at: usize| -> Result<u64, StoreError> { nat(row.get(at)?) };
    let is_only = row.get::<_, i64>(2)? == 1;
    Ok(CountedRow {
        key,
        worker: is_only.then_some(row.get::<_, String>(1)?.into()),
        model: row.get::<_, String>(3)?.into(),
        counted: Counted {
            calls: number(4)?,
            input: number(5)?,
            output: number(6)?,
            reasoning: number(7)?,
            cache_read: number(8)?,
            cache_write: number(9)?,
            guessed_input: number(10)?,
            guessed_output: number(11)?,
        },
    })
}

/// Removes the sums of days that are too old for queries, at most `most` rows.
pub(super) fn prune(db: &Connection, before: Timestamp, most: u32) -> Result<u32, StoreError> {
    let sql = "DELETE FROM counted_day WHERE (day, worker, model) IN
               (SELECT day, worker, model FROM counted_day WHERE day < ?1 ORDER BY day LIMIT ?2)";
    let gone = db.prepare_cached(sql)?.execute(params![before.0.div_euclid(DAY_MS), most])?;
    u32::try_from(gone).map_err(StoreError::damaged)
}
