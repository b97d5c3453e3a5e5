//! The data that a start reads: the rows of the state, and the tail of the journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::bounds::{self, Page, in_row};
use super::gaps::gaps;
use super::posts;
use super::session::{Session, Step};
use super::unreadable;
use crate::See;
use crate::codec::{int, nat, parse};
use crate::journal::{ChainDefect, Checkpoint, Key, Walk};
use crate::{Anchor, StoreError, StoredEvent};
use provost_base::limits::{CHECKPOINTS_LOOKED_AT, LONG_STATEMENT_MS_MAX, POSTGRES_PAGE_ROWS};
use provost_base::{AgentId, DaemonId, Digest, EffectId, EventSeq, MailSeq, TaskId, Timestamp};
use provost_domain::{
    Change, Counters, CrewChange, JobChange, Owed, PasskeyChange, PushChange, Settings, SpendChange, State,
    Uses,
};

/// Tables whose rows are a key and a body; a start reads all of them.
const TABLES: [&str; 31] = [
    "agent",
    "mail",
    "approval",
    "uses",
    "symbol_lock",
    "intent",
    "contract",
    "correspondent",
    "footprint",
    "standoff",
    "question",
    "member",
    "claim",
    "assignment",
    "transfer",
    "token",
    "daemon",
    "passkey",
    "passkey_reset",
    "push",
    "spent",
    "switched",
    "merge_entry",
    "job",
    "waiter",
    "carried",
    "present",
    "host_user",
    "ability",
    "task",
    "meta",
];

/// The rows as they were read, by table.
pub(super) struct Tables(BTreeMap<&'static str, Vec<Row>>);

impl Tables {
    /// Hands over each body of a table.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for the first one that cannot be read.
    pub(super) fn each<T: DeserializeOwned>(
        &self,
        table: &str,
        mut take: impl FnMut(T),
    ) -> Result<(), StoreError> {
        for row in self.0.get(table).into_iter().flatten() {
            let body: &str = row.try_get(1).map_err(unreadable)?;
            take(in_row(table, key_of(row), || parse(body))?);
        }
        Ok(())
    }

    /// Returns the rows of a table whose keys are numbers.
    fn numbered<'a>(&'a self, table: &str) -> Result<Vec<(u64, &'a str)>, StoreError> {
        let row = |row: &'a Row| {
            let id = in_row(table, key_of(row), || nat(row.try_get(0).map_err(unreadable)?))?;
            Ok((id, row.try_get(1).map_err(unreadable)?))
        };
        self.0.get(table).into_iter().flatten().map(row).collect()
    }

    /// Returns one of the store's own few facts.
    pub(super) fn meta(&self, name: &str) -> Option<String> {
        let rows = self.0.get("meta")?;
        let row = rows.iter().find(|it| it.try_get::<_, &str>(0).is_ok_and(|id| id == name))?;
        row.try_get(1).ok()
    }
}

/// Reads one of the store's own few facts, with a query of its own.
///
/// # Errors
/// If the database does not answer.
pub(super) fn meta(
    session: &mut Session,
    repo: i32,
    name: &'static str,
) -> Result<Option<String>, StoreError> {
    let rows = session
        .rows(Step::new("select body from provost.meta where repo = $1 and id = $2").with(repo).with(name))?;
    rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)
}

/// Reads the state without history, in a transaction that has the repository's row.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn live(
    session: &mut Session,
    repo: i32,
    settings: Settings,
    counters: Counters,
) -> Result<(State, Vec<Owed>), StoreError> {
    let body = |table: &str| match table {
        "task" => "select id, body from provost.task where repo = $1 and live order by id".to_owned(),
        table => format!("select id, body from provost.{table} where repo = $1 order by id"),
    };
    let mut steps: Vec<Step> = TABLES.iter().map(|table| Step::new(body(table)).with(repo)).collect();
    steps.extend(posts::to_load(repo));
    steps.push(Step::new(OWED).with(repo));
    let mut answers = session.ask_within(&steps, Duration::from_millis(LONG_STATEMENT_MS_MAX))?;
    let effects = answers.pop().unwrap_or_default();
    let (parked, newest) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
    let tables = Tables(TABLES.into_iter().zip(answers).collect());

    let mut state = State::new(settings);
    rows(&tables, &mut state)?;
    posts::load(&tables, &newest, &parked, &mut state)?;
    state.apply(&Change::Count(counters));
    let mut owed = Vec::with_capacity(effects.len());
    for row in &effects {
        let it = owed_of(row)?;
        it.in_memory().iter().for_each(|change| state.apply(change));
        owed.push(it);
    }
    Ok((state, owed))
}

/// The statement for owed effects, with the daemons that owe them.
const OWED: &str = "select id, body, started, host, inc from provost.effect where repo = $1 order by id";

/// Returns the key of a row, which is a text or a number, for an error.
fn key_of(row: &Row) -> String {
    let number = || row.try_get::<_, i64>(0).map(|it| it.to_string());
    row.try_get::<_, String>(0).or_else(|_| number()).unwrap_or_default()
}

fn owed_of(row: &Row) -> Result<Owed, StoreError> {
    in_row("effect", key_of(row), || owed_columns(row))
}

fn owed_columns(row: &Row) -> Result<Owed, StoreError> {
    let host: &str = row.try_get(3).map_err(unreadable)?;
    let incarnation = nat(row.try_get(4).map_err(unreadable)?)?;
    Ok(Owed {
        id: EffectId(nat(row.try_get(0).map_err(unreadable)?)?),
        effect: parse(row.try_get(1).map_err(unreadable)?)?,
        started: row.try_get(2).map_err(unreadable)?,
        by: DaemonId { host: host.parse().map_err(StoreError::damaged)?, incarnation },
    })
}

/// Returns the effects that a daemon owes, and earlier daemons on its host.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn owed_by(session: &mut Session, repo: i32, daemon: DaemonId) -> Result<Vec<Owed>, StoreError> {
    let rows = session.rows(Step::new(OWED).with(repo))?;
    let owed = rows.iter().map(owed_of).collect::<Result<Vec<_>, _>>()?;
    let is_its = |it: &Owed| it.by.host == daemon.host && it.by.incarnation <= daemon.incarnation;
    Ok(owed.into_iter().filter(is_its).collect())
}

/// Applies the rows to the state. Only rows of mail that is being handed over need others, and come after the mail.
fn rows(tables: &Tables, state: &mut State) -> Result<(), StoreError> {
    let it = tables;
    it.each("agent", |it| state.apply(&Change::PutAgent(Arc::new(it))))?;
    it.each("task", |it| state.apply(&Change::PutTask(Arc::new(it))))?;
    it.each("mail", |it| state.apply(&Change::PutMail(Arc::new(it))))?;
    it.each("approval", |it| state.apply(&Change::PutApproval(Arc::new(it))))?;
    it.each("uses", |it: Uses| state.apply(&Change::PutUses(it)))?;
    it.each("symbol_lock", |it| state.apply(&Change::PutLock(Arc::new(it))))?;
    it.each("intent", |it| state.apply(&Change::PutIntent(Arc::new(it))))?;
    it.each("contract", |it| state.apply(&Change::PutContract(Arc::new(it))))?;
    it.each("member", |it| state.apply(&CrewChange::PutMember(Arc::new(it)).into()))?;
    it.each("claim", |it| state.apply(&CrewChange::PutClaim(Arc::new(it)).into()))?;
    it.each("assignment", |it| state.apply(&CrewChange::PutAssignment(Arc::new(it)).into()))?;
    it.each("transfer", |it| state.apply(&CrewChange::PutHandoff(Arc::new(it)).into()))?;
    it.each("token", |it| state.apply(&Change::PutToken(Arc::new(it))))?;
    it.each("daemon", |it| state.apply(&Change::Passkey(PasskeyChange::Daemon(it))))?;
    it.each("passkey", |it| state.apply(&Change::Passkey(PasskeyChange::Put(Arc::new(it)))))?;
    it.each("passkey_reset", |it| state.apply(&Change::Passkey(PasskeyChange::Standing(it))))?;
    it.each("push", |it| state.apply(&Change::Push(PushChange::Put(Arc::new(it)))))?;
    it.each("spent", |it| state.apply(&Change::Spend(SpendChange::Put(Arc::new(it)))))?;
    it.each("switched", |(worker, to)| state.apply(&Change::Switch(worker, Some(to))))?;
    it.each("host_user", |it| state.apply(&Change::PutUser(Arc::new(it))))?;
    it.each("merge_entry", |it| state.apply(&Change::PutMerge(Arc::new(it))))?;
    it.each("waiter", |it| state.apply(&Change::PutWaiter(Arc::new(it))))?;
    it.each("present", |(agent, at)| state.apply(&Change::At(agent, Some(at))))?;
    it.each("ability", |it| state.apply(&Change::PutAbility(Arc::new(it))))?;
    it.each("job", |it| state.apply(&JobChange::Put(Arc::new(it)).into()))?;
    // These come after the mail.
    for (id, body) in it.numbered("carried")? {
        let (agent, by): (AgentId, DaemonId) = in_row("carried", id, || parse(body))?;
        state.apply(&Change::CarryMail(agent, MailSeq(id), Some(by)));
    }
    Ok(())
}

pub(super) fn digest(row: &Row, column: usize) -> Result<Digest, StoreError> {
    let bytes: &[u8] = row.try_get(column).map_err(unreadable)?;
    Ok(Digest::from_bytes(bytes.try_into().map_err(StoreError::damaged)?))
}

/// Reads an event from its columns.
///
/// # Errors
/// [`StoreError::Damaged`] if it cannot be read, with its number.
pub(super) fn event(row: &Row) -> Result<StoredEvent, StoreError> {
    let seq: i64 = row.try_get(0).map_err(unreadable)?;
    in_row("event", seq, || event_columns(row))
}

fn event_columns(row: &Row) -> Result<StoredEvent, StoreError> {
    let task: Option<&str> = row.try_get(4).map_err(unreadable)?;
    Ok(StoredEvent {
        seq: EventSeq(nat(row.try_get(0).map_err(unreadable)?)?),
        at: Timestamp(row.try_get(1).map_err(unreadable)?),
        kind: row.try_get::<_, String>(2).map_err(unreadable)?.into(),
        actor: AgentId::parse(row.try_get(3).map_err(unreadable)?).map_err(StoreError::damaged)?,
        task: task.map(|id| TaskId::parse(id).map_err(StoreError::damaged)).transpose()?,
        body: row.try_get::<_, Option<String>>(5).map_err(unreadable)?.map(Into::into),
        hash: digest(row, 6)?,
        mac: digest(row, 7)?,
    })
}

const CHECKPOINTS: &str = "select seq, substr(mac, 1, 33), pruned_to, left(counters, 8192), substr(seal, 1, 33) from provost.checkpoint";

/// Reads a checkpoint from its columns. One that cannot even be read counts as one with a broken seal.
fn checkpoint(row: &Row) -> Checkpoint {
    let number = |at: usize| row.try_get::<_, i64>(at).ok().and_then(|it| u64::try_from(it).ok());
    Checkpoint {
        head: Anchor { seq: EventSeq(number(0).unwrap_or(0)), mac: digest(row, 1).unwrap_or_default() },
        pruned_to: EventSeq(number(2).unwrap_or(0)),
        counters: row.try_get(3).unwrap_or_default(),
        seal: digest(row, 4).unwrap_or_default(),
    }
}

/// Returns all checkpoints.
///
/// # Errors
/// If the database does not answer.
pub(super) fn checkpoints(session: &mut Session, repo: i32) -> Result<Vec<Checkpoint>, StoreError> {
    let sql = format!("{CHECKPOINTS} where repo = $1 order by seq");
    Ok(session.rows(Step::new(sql).with(repo))?.iter().map(checkpoint).collect())
}

/// Returns the last checkpoint with a seal of the journal's key; if none has one, the last one. Each login can write others.
///
/// # Errors
/// If the database does not answer.
pub(super) fn last_checkpoint(
    session: &mut Session,
    repo: i32,
    key: &Key,
) -> Result<Option<Checkpoint>, StoreError> {
    let sql = format!("{CHECKPOINTS} where repo = $1 and seq < $2 order by seq desc limit $3");
    let (mut before, mut newest, mut page) = (i64::MAX, None, 1);
    loop {
        let rows = session.rows(Step::new(sql.clone()).with(repo).with(before).with(page))?;
        for row in &rows {
            before = row.try_get(0).map_err(unreadable)?;
            let it = checkpoint(row);
            if key.is_sealed(&it) {
                return Ok(Some(it));
            }
            newest = newest.or(Some(it));
        }
        if (rows.len() as i64) < page {
            return Ok(newest);
        }
        if page == 1 {
            tracing::warn!(event = before, "a checkpoint there has no seal of a host, and does not count");
            page = CHECKPOINTS_LOOKED_AT;
        }
    }
}

/// Returns the checkpoint at an event if it has a seal of the journal's key.
fn sealed_checkpoint(
    session: &mut Session,
    repo: i32,
    key: &Key,
    at: EventSeq,
) -> Result<Option<Checkpoint>, StoreError> {
    let sql = format!("{CHECKPOINTS} where repo = $1 and seq = $2");
    let rows = session.rows(Step::new(sql).with(repo).with(int(at.0)?))?;
    Ok(rows.first().map(checkpoint).filter(|it| key.is_sealed(it)))
}

/// Returns the link of an event; `None` if the event is missing.
///
/// # Errors
/// If the database does not answer.
pub(super) fn event_mac(
    session: &mut Session,
    repo: i32,
    seq: EventSeq,
) -> Result<Option<Digest>, StoreError> {
    let step = Step::new("select substr(mac, 1, 33) from provost.event where repo = $1 and seq = $2")
        .with(repo)
        .with(int(seq.0)?);
    Ok(session.rows(step)?.first().and_then(|it| digest(it, 0).ok()))
}

/// Returns the time of an event; the epoch if the event is missing.
///
/// # Errors
/// If the database does not answer.
pub(super) fn event_time(session: &mut Session, repo: i32, seq: EventSeq) -> Result<Timestamp, StoreError> {
    let step =
        Step::new("select at from provost.event where repo = $1 and seq = $2").with(repo).with(int(seq.0)?);
    let at = session.rows(step)?.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
    Ok(Timestamp(at.unwrap_or(0)))
}

/// Walks over all events after the head of `walk`, some at a time; stops at the first defect.
///
/// # Errors
/// The first defect, or an error of the database.
pub(super) fn walk_after(session: &mut Session, repo: i32, walk: &mut Walk<'_>) -> Result<(), StoreError> {
    walk_seeing(session, repo, walk, &mut |_| true).map(drop)
}

/// Walks in the same way, and shows each intact event; returns whether the walk came to the end.
///
/// # Errors
/// As [`walk_after`].
pub(super) fn walk_seeing(
    session: &mut Session,
    repo: i32,
    walk: &mut Walk<'_>,
    see: &mut See<'_>,
) -> Result<bool, StoreError> {
    // A walk over the whole journal must also see rows with impossible numbers.
    let mut after = if walk.head().seq.0 == 0 { i64::MIN } else { int(walk.head().seq.0)? };
    loop {
        let rows = session.ask_within(
            &[bounds::events(repo, (after, i64::MAX), Page::of(POSTGRES_PAGE_ROWS))],
            Duration::from_millis(LONG_STATEMENT_MS_MAX),
        )?;
        let rows = rows.into_iter().next().unwrap_or_default();
        for row in &rows {
            let event = event(row)
                .map_err(|_| ChainDefect::new(walk.next(), "the row is not in the journal's form"))?;
            walk.step(&event)?;
            after = row.try_get(0).map_err(unreadable)?;
            if !see(&event) {
                return Ok(false);
            }
        }
        if rows.is_empty() {
            return Ok(true);
        }
    }
}

/// Returns the end of the journal, checked from the last checkpoint on, and that checkpoint, which is at `sealed_at` if that is known.
///
/// # Errors
/// The first defect, or an error of the database.
pub(super) fn tail(
    session: &mut Session,
    repo: i32,
    key: &Key,
    sealed_at: Option<EventSeq>,
) -> Result<(Anchor, Option<Checkpoint>), StoreError> {
    let at = sealed_at.map(|at| sealed_checkpoint(session, repo, key, at)).transpose()?.flatten();
    let last = at.map_or_else(|| last_checkpoint(session, repo, key), |it| Ok(Some(it)))?;
    let mut walk = match &last {
        None => Walk::whole(key, Vec::new(), gaps(session, repo)?, None),
        Some(it) => Walk::tail(key, it, gaps(session, repo)?, event_mac(session, repo, it.head.seq)?)?,
    };
    walk_after(session, repo, &mut walk)?;
    walk.leap()?;
    Ok((walk.head(), last))
}
