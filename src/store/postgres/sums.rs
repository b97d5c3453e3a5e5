//! Sums of the usage of runs, as their workers report it and as the daemon has counted it: written in the commit
//! that they belong to, one statement for each run. The server finds out which rows exist, so that no statement
//! waits for the answer to another one.

use tokio_postgres::Row;

use super::batch::word;
use super::session::{Session, Step};
use super::unreadable;
use crate::codec::{int, nat};
use crate::{CountedRow, StoreError, UsageBy, UsageQuery, UsageRow};
use provost_base::limits::{
    COUNTED_ROWS_MAX, MODEL_LEN_MAX, USAGE_CLAIM_MAX, USAGE_MODELS_MAX, USAGE_SUM_MAX,
};
use provost_base::{TaskId, Timestamp};
use provost_domain::{Counted, OTHER_MODELS, Task, Usage};

/// A day in milliseconds. Days are those of UTC.
const DAY_MS: i64 = 86_400_000;

/// The name under which models are summed when there are too many.
const OTHERS: &str = "(others)";

const USED: [&str; 6] = ["input", "output", "reasoning", "cache_read", "cache_write", "cost"];
const COUNTED: [&str; 8] =
    ["calls", "input", "output", "reasoning", "cache_read", "cache_write", "guessed_input", "guessed_output"];

/// A run whose usage is counted, once.
pub(super) struct Run {
    task: String,
    at: i64,
    worker: String,
    model: String,
    numbers: [Option<i64>; 6],
}

impl Run {
    /// Returns the usage that a task's newest report states for its run; `None` if it states none.
    ///
    /// # Errors
    /// If a number does not fit its column.
    pub(super) fn of(task: &Task) -> Result<Option<Self>, StoreError> {
        let metadata =
            task.notes.iter().rev().find_map(|note| Usage::of_metadata(note.report.metadata.as_ref()));
        // A model's name alone is not usage.
        let has_numbers = |used: &Usage| *used != Usage { model: used.model.clone(), ..Usage::default() };
        let Some(used) = metadata.filter(has_numbers) else { return Ok(None) };
        let claim = |number: Option<u64>| number.map(|it| int(it.min(USAGE_CLAIM_MAX))).transpose();
        let model = used.model.as_deref().unwrap_or_default();
        Ok(Some(Self {
            task: task.id().as_str().to_owned(),
            at: task.updated_at.0,
            worker: task.order.worker.as_str().to_owned(),
            model: word(&model[..model.floor_char_boundary(MODEL_LEN_MAX.min(model.len()))]),
            numbers: [
                claim(used.input)?,
                claim(used.output)?,
                claim(used.reasoning)?,
                claim(used.cache_read)?,
                claim(used.cache_write)?,
                claim(used.cost_microusd)?,
            ],
        }))
    }

    /// Adds the statement for its task's row and for the sum of its day; it changes nothing if that task was counted before.
    pub(super) fn steps(self, repo: i32, steps: &mut Vec<Step>) {
        let sums = USED.map(|it| {
            format!(
                "{it} = case when excluded.{it} is null then usage_day.{it} \
                 else least(coalesce(usage_day.{it}, 0) + excluded.{it}, {USAGE_SUM_MAX}) end"
            )
        });
        let sql = format!(
            "with counted as (
                 insert into provost.usage_task (repo, task, at, worker, model, {names})
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing returning *
             )
             insert into provost.usage_day (repo, day, worker, model, runs, {names})
             select repo, $12, worker, case
                 when exists (select from provost.usage_day d where d.repo = $1 and d.day = $12 and d.worker = $4 and
                     d.model = $5)
                   or (select count(*) from provost.usage_day d where d.repo = $1 and d.day = $12 and d.worker = $4)
                       < {USAGE_MODELS_MAX}
                 then model else '{OTHERS}' end, 1, {names} from counted
             on conflict (repo, day, worker, model) do update set runs = usage_day.runs + 1, {sums}",
            names = USED.join(", "),
            sums = sums.join(", "),
        );
        let day = self.at.div_euclid(DAY_MS);
        let step = Step::new(sql).with(repo).with(self.task).with(self.at).with(self.worker).with(self.model);
        steps.push(self.numbers.into_iter().fold(step, Step::with).with(day));
    }
}

/// Calls of a model that the daemon has counted.
pub(super) struct Calls {
    task: String,
    worker: String,
    model: String,
    at: i64,
    numbers: [i64; 8],
}

impl Calls {
    /// # Errors
    /// If a number does not fit its column.
    pub(super) fn of(
        task: &TaskId,
        worker: &str,
        at: Timestamp,
        model: &str,
        it: &Counted,
    ) -> Result<Self, StoreError> {
        let of = |number: u64| int(number.min(USAGE_SUM_MAX));
        Ok(Self {
            task: task.as_str().to_owned(),
            worker: worker.to_owned(),
            model: word(model),
            at: at.0,
            numbers: [
                of(it.calls)?,
                of(it.input)?,
                of(it.output)?,
                of(it.reasoning)?,
                of(it.cache_read)?,
                of(it.cache_write)?,
                of(it.guessed_input)?,
                of(it.guessed_output)?,
            ],
        })
    }

    /// Adds the statements for the rows of its task and of its day.
    pub(super) fn steps(self, repo: i32, steps: &mut Vec<Step>) {
        let names = COUNTED.join(", ");
        let sums = |table: &str| {
            COUNTED
                .map(|it| format!("{it} = least({table}.{it} + excluded.{it}, {USAGE_SUM_MAX})"))
                .join(", ")
        };
        let of_task = format!(
            "insert into provost.counted_task (repo, task, worker, at, model, {names})
             select $1, $2, $3, $4, case
                 when exists (select from provost.counted_task t where t.repo = $1 and t.task = $2 and t.model = $5)
                   or (select count(*) from provost.counted_task t where t.repo = $1 and t.task = $2) < {USAGE_MODELS_MAX}
                 then $5 else '{OTHER_MODELS}' end, $6, $7, $8, $9, $10, $11, $12, $13
             on conflict (repo, task, model) do update set at = excluded.at, {}",
            sums("counted_task")
        );
        let step = Step::new(of_task)
            .with(repo)
            .with(self.task)
            .with(self.worker.clone())
            .with(self.at)
            .with(self.model.clone());
        steps.push(self.numbers.into_iter().fold(step, Step::with));
        let of_day = format!(
            "insert into provost.counted_day (repo, day, worker, model, {names})
             select $1, $2, $3, case
                 when exists (select from provost.counted_day d where d.repo = $1 and d.day = $2 and d.worker = $3
                     and d.model = $4)
                   or (select count(*) from provost.counted_day d where d.repo = $1 and d.day = $2 and d.worker = $3)
                      < {USAGE_MODELS_MAX}
                 then $4 else '{OTHER_MODELS}' end, $5, $6, $7, $8, $9, $10, $11, $12
             on conflict (repo, day, worker, model) do update set {}",
            sums("counted_day")
        );
        let step =
            Step::new(of_day).with(repo).with(self.at.div_euclid(DAY_MS)).with(self.worker).with(self.model);
        steps.push(self.numbers.into_iter().fold(step, Step::with));
    }
}

/// Returns the sums of runs that a query asks for, by cost, highest first.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn used(
    session: &mut Session,
    repo: i32,
    query: &UsageQuery,
) -> Result<Vec<UsageRow>, StoreError> {
    let since = query.since.map_or(i64::MIN, |it| it.0);
    let first_day = since.div_euclid(DAY_MS);
    let numbers = USED.map(|it| format!("sum({it})::bigint")).join(", ");
    let dearest = "order by coalesce(sum(cost), 0) desc, coalesce(sum(output), 0) desc, 1";
    let names = "min(worker), count(distinct worker), min(model), count(distinct model)";
    let by = |name: &str, order: &str| {
        format!(
            "select {name}, {names}, sum(runs)::bigint, {numbers} from provost.usage_day \
             where repo = $1 and day >= $2 group by {name} {order} limit $3"
        )
    };
    let (sql, from) = match query.by {
        UsageBy::Agent => (by("worker", dearest), first_day),
        UsageBy::Model => (by("model", dearest), first_day),
        UsageBy::Day => (by("day", "order by day desc"), first_day),
        UsageBy::Task => (
            format!(
                "select task, worker, 1::bigint, model, 1::bigint, 1::bigint, {} from provost.usage_task \
                 where repo = $1 and at >= $2 order by at desc, task limit $3",
                USED.join(", ")
            ),
            since,
        ),
        UsageBy::Nothing => (
            format!(
                "select '', {names}, coalesce(sum(runs), 0)::bigint, {numbers} from provost.usage_day \
                 where repo = $1 and day >= $2 limit $3"
            ),
            first_day,
        ),
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let rows = session.rows(Step::new(sql).with(repo).with(from).with(limit))?;
    rows.iter().map(|row| read_used(row, query.by)).collect()
}

fn key(row: &Row, by: UsageBy) -> Result<Box<str>, StoreError> {
    if by == UsageBy::Day {
        let day: i64 = row.try_get(0).map_err(unreadable)?;
        let at = Timestamp(day.saturating_mul(DAY_MS)).rfc3339();
        return Ok(at.split('T').next().unwrap_or_default().into());
    }
    Ok(row.try_get::<_, String>(0).map_err(unreadable)?.into())
}

fn read_used(row: &Row, by: UsageBy) -> Result<UsageRow, StoreError> {
    let number = |at: usize| -> Result<Option<u64>, StoreError> {
        row.try_get::<_, Option<i64>>(at).map_err(unreadable)?.map(nat).transpose()
    };
    // A single name is returned; several are returned as `None`.
    let only = |at: usize| -> Result<Option<Box<str>>, StoreError> {
        let is_only = row.try_get::<_, i64>(at + 1).map_err(unreadable)? == 1;
        let name = row.try_get::<_, Option<String>>(at).map_err(unreadable)?;
        Ok(name.filter(|it| is_only && !it.is_empty()).map(Into::into))
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
    Ok(UsageRow { key: key(row, by)?, worker: only(1)?, runs: number(5)?.unwrap_or(0), used })
}

/// Returns the sums of counted tokens, a row for each model: for tasks the newest, for others all, within a bound.
///
/// # Errors
/// As for [`used`].
pub(super) fn counted(
    session: &mut Session,
    repo: i32,
    query: &UsageQuery,
) -> Result<Vec<CountedRow>, StoreError> {
    let since = query.since.map_or(i64::MIN, |it| it.0);
    let first_day = since.div_euclid(DAY_MS);
    let numbers = COUNTED.map(|it| format!("sum({it})::bigint")).join(", ");
    let by = |name: &str| {
        format!(
            "select {name}, min(worker), count(distinct worker), model, {numbers} from provost.counted_day \
             where repo = $1 and day >= $2 group by 1, model order by 1 desc, model limit {COUNTED_ROWS_MAX} + 0 * $3::bigint"
        )
    };
    let (sql, from) = match query.by {
        UsageBy::Agent => (by("worker"), first_day),
        UsageBy::Model => (by("model"), first_day),
        UsageBy::Day => (by("day"), first_day),
        UsageBy::Nothing => (by("''::text"), first_day),
        UsageBy::Task => (
            format!(
                "select task, worker, 1::bigint, model, {} from provost.counted_task where repo = $1 and task in \
                 (select task from provost.counted_task where repo = $1 and at >= $2 group by task order by max(at) \
                 desc limit $3) \
                 order by at desc, task, model",
                COUNTED.join(", ")
            ),
            since,
        ),
    };
    // A limit above the column's range means no more rows than there can be.
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let rows = session.rows(Step::new(sql).with(repo).with(from).with(limit))?;
    rows.iter().map(|row| read_counted(row, key(row, query.by)?)).collect()
}

/// Returns the counts of a task, a row for each model.
///
/// # Errors
/// As for [`used`].
pub(super) fn counted_of(
    session: &mut Session,
    repo: i32,
    task: &TaskId,
) -> Result<Vec<CountedRow>, StoreError> {
    let sql = format!(
        "select task, worker, 1::bigint, model, {} from provost.counted_task where repo = $1 and task = $2 order by model",
        COUNTED.join(", ")
    );
    let rows = session.rows(Step::new(sql).with(repo).with(task.as_str().to_owned()))?;
    rows.iter().map(|row| read_counted(row, task.as_str().into())).collect()
}

fn read_counted(row: &Row, key: Box<str>) -> Result<CountedRow, StoreError> {
    let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
    let is_only = row.try_get::<_, i64>(2).map_err(unreadable)? == 1;
    let worker = row.try_get::<_, String>(1).map_err(unreadable)?;
    Ok(CountedRow {
        key,
        worker: is_only.then_some(worker.into()),
        model: row.try_get::<_, String>(3).map_err(unreadable)?.into(),
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

/// Removes the sums of days that are too old for queries, at most `most` rows of each table.
pub(super) fn prune(repo: i32, before: Timestamp, most: i64) -> [Step; 2] {
    ["usage_day", "counted_day"].map(|table| {
        let sql = format!(
            "delete from provost.{table} where (repo, day, worker, model) in (select repo, day, worker, model from
                provost.{table}
                 where repo = $1 and day < $2 order by day limit $3) returning 1"
        );
        Step::new(sql).with(repo).with(before.0.div_euclid(DAY_MS)).with(most)
    })
}
