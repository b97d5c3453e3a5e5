//! Reads: the live state at a start, and history in pages beside the writer.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};
use serde::de::DeserializeOwned;

use super::{connect, counted, crew, no_key, posts, rows, search, usage, wrong_key};
use crate::codec::{int, nat, parse};
use crate::files;
use crate::journal::{ChainDefect, Checkpoint, GIVEN_UP, Gap, Key, Walk};
use crate::marks::{self, FoundMarks, Mark};
use crate::migrations;
use crate::{
    Anchor, CountedRow, FinishedFilter, Found, Letters, Reader, SearchQuery, See, StoreError, StoredEvent,
    StoredPost, TimelineQuery, UsageQuery, UsageRow, Verdict,
};
use provost_base::limits::EVENT_PAGE_BYTES_MAX;
use provost_base::{
    AgentId, ApplyId, ApprovalId, DaemonId, Digest, EffectId, EventSeq, Fence, JobId, Json, MailSeq, PostSeq,
    TaskId, Ticket, Timestamp,
};
use provost_domain::{
    Change, Counters, CrewChange, JobChange, JobResult, Owed, PasskeyChange, PushChange, Settings,
    SpendChange, State, Task, Uses,
};

const EVENT: &str =
    "SELECT seq, at, kind, actor, task, body, hash, mac FROM event WHERE seq >= ?1 ORDER BY seq";

/// Reads the state without history. The order of the tables does not matter: no row needs another one.
pub(super) fn live(
    db: &Connection,
    settings: Settings,
    counters: Counters,
) -> Result<(State, Vec<Owed>), StoreError> {
    let mut state = State::new(settings);
    each(db, "agent", "", |it| state.apply(&Change::PutAgent(Arc::new(it))))?;
    each(db, "task", "INDEXED BY task_live WHERE live = 1", |it| {
        state.apply(&Change::PutTask(Arc::new(it)))
    })?;
    each(db, "mail", "ORDER BY seq", |it| state.apply(&Change::PutMail(Arc::new(it))))?;
    each(db, "approval", "", |it| state.apply(&Change::PutApproval(Arc::new(it))))?;
    each(db, "uses", "", |it: Uses| state.apply(&Change::PutUses(it)))?;
    each(db, "symbol_lock", "", |it| state.apply(&Change::PutLock(Arc::new(it))))?;
    each(db, "intent", "", |it| state.apply(&Change::PutIntent(Arc::new(it))))?;
    each(db, "contract", "", |it| state.apply(&Change::PutContract(Arc::new(it))))?;
    posts::load(db, &mut state)?;
    each(db, "member", "", |it| state.apply(&CrewChange::PutMember(Arc::new(it)).into()))?;
    each(db, "claim", "", |it| state.apply(&CrewChange::PutClaim(Arc::new(it)).into()))?;
    each(db, "assignment", "", |it| state.apply(&CrewChange::PutAssignment(Arc::new(it)).into()))?;
    each(db, "transfer", "", |it| state.apply(&CrewChange::PutHandoff(Arc::new(it)).into()))?;
    each(db, "token", "", |it| state.apply(&Change::PutToken(Arc::new(it))))?;
    each(db, "daemon", "", |it| state.apply(&Change::Passkey(PasskeyChange::Daemon(it))))?;
    each(db, "passkey", "", |it| state.apply(&Change::Passkey(PasskeyChange::Put(Arc::new(it)))))?;
    each(db, "passkey_reset", "", |it| state.apply(&Change::Passkey(PasskeyChange::Standing(it))))?;
    each(db, "push", "", |it| state.apply(&Change::Push(PushChange::Put(Arc::new(it)))))?;
    each(db, "spent", "", |it| state.apply(&Change::Spend(SpendChange::Put(Arc::new(it)))))?;
    each(db, "switched", "", |(worker, to)| state.apply(&Change::Switch(worker, Some(to))))?;
    each(db, "merge_entry", "", |it| state.apply(&Change::PutMerge(Arc::new(it))))?;
    each(db, "job", "", |it| state.apply(&JobChange::Put(Arc::new(it)).into()))?;
    state.apply(&Change::Count(counters));

    let mut owed = Vec::new();
    let mut select = db.prepare("SELECT id, body, started FROM effect ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id = EffectId(nat(row.get(0)?)?);
        let it = Owed {
            id,
            effect: parse(&row.get::<_, String>(1)?)?,
            started: row.get(2)?,
            by: DaemonId::default(),
        };
        it.in_memory().iter().for_each(|change| state.apply(change));
        owed.push(it);
    }
    Ok((state, owed))
}

pub(super) fn each<T: DeserializeOwned>(
    db: &Connection,
    table: &str,
    which: &str,
    mut take: impl FnMut(T),
) -> Result<(), StoreError> {
    let mut select = db.prepare(&format!("SELECT body FROM {table} {which}"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_str().map_err(StoreError::damaged)?;
        let unreadable = |err| StoreError::damaged(format!("a row of table `{table}` cannot be read: {err}"));
        take(serde_json::from_str(body).map_err(unreadable)?);
    }
    Ok(())
}

pub(super) fn counters(db: &Connection) -> Result<Counters, StoreError> {
    let mut counters = Counters::default();
    let mut select = db.prepare("SELECT name, value FROM counter")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (name, value) = (row.get::<_, String>(0)?, nat(row.get(1)?)?);
        match name.as_str() {
            "event" => counters.event = EventSeq(value),
            "effect" => counters.effect = EffectId(value),
            "approval" => counters.approval = ApprovalId(value),
            "apply" => counters.apply = ApplyId(value),
            "mail" => counters.mail = MailSeq(value),
            "fence" => counters.fence = Fence(value),
            "ticket" => counters.ticket = Ticket(value),
            "post" => counters.post = PostSeq(value),
            "named" => counters.named = value,
            "completed" => counters.completed = value,
            "failed" => counters.failed = value,
            "timeline" => counters.timeline = value,
            other => return Err(StoreError::damaged(format!("an unknown counter `{other}`"))),
        }
    }
    Ok(counters)
}

pub(super) fn newest_finished(db: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT max(finished_seq) FROM task INDEXED BY task_finished WHERE live = 0";
    Ok(db.query_row(sql, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(0))
}

pub(super) fn past_task(db: &Connection, id: &TaskId) -> Result<Option<Task>, StoreError> {
    let mut select = db.prepare_cached("SELECT body FROM task WHERE id = ?1 AND live = 0")?;
    let body: Option<String> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    body.as_deref().map(parse).transpose()
}

pub(super) fn event_mac(db: &Connection, seq: EventSeq) -> Result<Option<Digest>, StoreError> {
    let mut select = db.prepare("SELECT mac FROM event WHERE seq = ?1")?;
    let mac = select.query_row([int(seq.0)?], |row| Ok(digest(row, 0).ok())).optional()?;
    Ok(mac.flatten())
}

/// Returns the time of an event; the epoch if the event is missing.
pub(super) fn event_time(db: &Connection, seq: EventSeq) -> Result<Timestamp, StoreError> {
    let mut select = db.prepare("SELECT at FROM event WHERE seq = ?1")?;
    let at = select.query_row([int(seq.0)?], |row| row.get(0)).optional()?;
    Ok(Timestamp(at.unwrap_or(0)))
}

/// Returns when the journal has last gone on behind skipped numbers; `None` if it never has, or if that event is missing.
pub(super) fn broke_off(db: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let Some(last) = gaps(db)?.pop() else { return Ok(None) };
    Ok(Some(event_time(db, last.to.next())?).filter(|it| *it != Timestamp::default()))
}

pub(super) fn last_checkpoint(db: &Connection) -> Result<Option<Checkpoint>, StoreError> {
    Ok(checkpoints(db, "ORDER BY seq DESC LIMIT 1")?.pop())
}

/// Returns checkpoints. One that cannot even be read counts as one with a broken seal.
pub(super) fn checkpoints(db: &Connection, which: &str) -> Result<Vec<Checkpoint>, StoreError> {
    let sql = format!("SELECT seq, mac, pruned_to, counters, seal FROM checkpoint {which}");
    let mut select = db.prepare(&sql)?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let number = |i: usize| row.get::<_, i64>(i).ok().and_then(|it| u64::try_from(it).ok());
        let seq = EventSeq(number(0).unwrap_or(0));
        found.push(Checkpoint {
            head: Anchor { seq, mac: digest(row, 1).unwrap_or_default() },
            pruned_to: EventSeq(number(2).unwrap_or(0)),
            counters: row.get(3).unwrap_or_default(),
            seal: digest(row, 4).unwrap_or_default(),
        });
    }
    Ok(found)
}

/// Returns the gaps of skipped numbers; one that cannot even be read has a broken seal.
pub(super) fn gaps(db: &Connection) -> Result<Vec<Gap>, StoreError> {
    let mut found = Vec::new();
    // A copy, or a store that only a reader has opened, may be older than gaps.
    let there: bool = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'gap'")?.exists([])?;
    if !there {
        return Ok(found);
    }
    let mut select = db.prepare("SELECT seq, mac, upto, seal FROM gap ORDER BY seq")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let number = |i: usize| row.get::<_, i64>(i).ok().and_then(|it| u64::try_from(it).ok());
        let after = Anchor { seq: EventSeq(number(0).unwrap_or(0)), mac: digest(row, 1).unwrap_or_default() };
        let (to, seal) = (EventSeq(number(2).unwrap_or(0)), digest(row, 3).unwrap_or_default());
        found.push(Gap { after, to, seal });
    }
    Ok(found)
}

/// Checks that the file's pages are well-formed.
pub(super) fn whole(db: &Connection) -> Result<(), StoreError> {
    let says: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if says == "ok" { Ok(()) } else { Err(StoreError::Malformed(says.into())) }
}

/// Returns the end of an intact journal, checked from its beginning.
pub(super) fn whole_journal(db: &Connection, key: &Key) -> Result<Anchor, StoreError> {
    let mut walk = Walk::whole(key, checkpoints(db, "ORDER BY seq")?, gaps(db)?, None);
    walk_after(db, &mut walk)?;
    walk.leap()?;
    Ok(walk.head())
}

/// Walks over all events after the head of `walk`; stops at the first defect.
pub(super) fn walk_after(db: &Connection, walk: &mut Walk<'_>) -> Result<(), StoreError> {
    walk_seeing(db, walk, &mut |_| true).map(drop)
}

/// Walks in the same way, and shows each intact event; returns whether the walk came to the end.
fn walk_seeing(db: &Connection, walk: &mut Walk<'_>, see: &mut See<'_>) -> Result<bool, StoreError> {
    // A walk over the whole journal must also see rows with impossible numbers.
    let from = if walk.head().seq.0 == 0 { i64::MIN } else { int(walk.next().0)? };
    let mut select = db.prepare(EVENT)?;
    let mut rows = select.query([from])?;
    while let Some(row) = rows.next()? {
        let event =
            event(row).map_err(|_| ChainDefect::new(walk.next(), "the row is not in the journal's form"))?;
        walk.step(&event)?;
        if !see(&event) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn event(row: &Row<'_>) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        seq: EventSeq(nat(row.get(0)?)?),
        at: Timestamp(row.get(1)?),
        kind: row.get(2)?,
        actor: AgentId::parse(row.get_ref(3)?.as_str().map_err(StoreError::damaged)?)
            .map_err(StoreError::damaged)?,
        task: row
            .get::<_, Option<String>>(4)?
            .map(|id| TaskId::parse(&id).map_err(StoreError::damaged))
            .transpose()?,
        body: row.get(5)?,
        hash: digest(row, 6)?,
        mac: digest(row, 7)?,
    })
}

fn digest(row: &Row<'_>, column: usize) -> Result<Digest, StoreError> {
    let bytes = <[u8; 32]>::column_result(row.get_ref(column)?).map_err(StoreError::damaged)?;
    Ok(Digest::from_bytes(bytes))
}

/// Opens the store of a state folder for reading.
pub(crate) fn open_reader(dir: &Path) -> Result<Box<dyn Reader>, StoreError> {
    let dir = files::existing_dir(dir)?;
    let db = connect(&files::existing_database(&dir)?, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.pragma_update(None, "query_only", true)?;
    if migrations::check(&db)? == 0 {
        return Err(StoreError::damaged("there are no tables in the database yet"));
    }
    Ok(Box::new(SqliteReader { db, dir }))
}

struct SqliteReader {
    db: Connection,
    dir: PathBuf,
}

/// The end of a journal, checked from the last checkpoint on.
pub(super) struct Tail {
    pub(super) last: Option<Checkpoint>,
    pub(super) head: Anchor,
    pub(super) counters: Counters,
}

pub(super) fn tail(db: &Connection, key: &Key) -> Result<Tail, StoreError> {
    let last = last_checkpoint(db)?;
    let mut walk = match &last {
        None => Walk::whole(key, Vec::new(), gaps(db)?, None),
        Some(it) => Walk::tail(key, it, gaps(db)?, event_mac(db, it.head.seq)?)?,
    };
    walk_after(db, &mut walk)?;
    walk.leap()?;
    let (head, counters) = (walk.head(), counters(db)?);
    if counters.event != head.seq {
        return Err(StoreError::EndMissing { head: head.seq });
    }
    Ok(Tail { last, head, counters })
}

/// Checks whether a store can be used, without changing anything; the pages of a large one only if `all` says so.
pub(crate) fn look(dir: &Path, outside: Option<&Path>, all: bool) -> Result<(), StoreError> {
    let dir = files::existing_dir(dir)?;
    let places = marks::places(&dir, outside);
    files::must_not_be_gone(&dir, marks::exist(&places))?;
    if !files::has_database(&dir) {
        return Ok(());
    }
    // The marks come first: the journal of a running daemon only grows.
    let secret = files::journal_key(&dir)?;
    let key = secret.as_ref().map(Key::new);
    let known = key.as_ref().map(|it| marks::read(&places, it)).unwrap_or_default();
    let db = connect(&files::existing_database(&dir)?, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if migrations::check(&db)? == 0 {
        // All of its content was in the log beside it, which is gone.
        let behind = |it: &Mark| Err(known.behind(it.head, EventSeq(0)));
        return known.least().map_or(Ok(()), behind);
    }
    if all || files::is_small(&dir) {
        whole(&db)?;
    }
    // In one snapshot, a concurrent commit is not half seen.
    let tx = db.unchecked_transaction()?;
    let print = rows::meta(&tx, "journal_key")?;
    let Some(key) = key else { return print.map_or(Ok(()), |_| Err(StoreError::Key(no_key(&dir)))) };
    if print.is_some_and(|it| it != key.fingerprint().to_string()) {
        return Err(StoreError::Key(wrong_key(&dir)));
    }
    if all || files::is_small(&dir) {
        whole_journal(&tx, &key)?;
    }
    reached(&tx, &known, tail(&tx, &key)?.head)
}

/// Refuses a store that ends before its mark, or has another past.
pub(super) fn reached(db: &Connection, known: &FoundMarks, head: Anchor) -> Result<(), StoreError> {
    let Some(least) = known.least() else { return Ok(()) };
    let numbers = counters(db)?;
    if least.head.seq > head.seq || least.counters.fence > numbers.fence || least.counters.mail > numbers.mail
    {
        return Err(known.behind(least.head, head.seq));
    }
    // The mark of an empty journal, and one within skipped numbers, have no event.
    match event_mac(db, least.head.seq)? {
        Some(mac) if mac != least.head.mac => Err(StoreError::Tampered {
            seq: least.head.seq,
            what: "the event is not the one that was noted outside of the store".into(),
        }),
        _ => Ok(()),
    }
}

impl Reader for SqliteReader {
    fn finished(
        &mut self,
        filter: FinishedFilter,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Task>, bool), StoreError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let before = match &filter.before {
            None => i64::MAX,
            Some(id) => {
                let mut select =
                    tx.prepare_cached("SELECT finished_seq FROM task WHERE id = ?1 AND live = 0")?;
                let Some(seq) = select.query_row([id.as_str()], |row| row.get(0)).optional()? else {
                    return Ok((Vec::new(), false));
                };
                seq
            }
        };
        let sql = match filter.status {
            None => {
                "SELECT body FROM task WHERE live = 0 AND finished_seq < ?1 AND ?2 IS NULL
                     ORDER BY finished_seq DESC"
            }
            Some(_) => {
                "SELECT body FROM task WHERE live = 0 AND finished_seq < ?1 AND status = ?2
                        ORDER BY finished_seq DESC"
            }
        };
        let mut select = tx.prepare_cached(sql)?;
        let mut rows = select.query(params![before, filter.status.map(|it| it.as_str())])?;
        let (mut tasks, mut bytes) = (Vec::new(), 0_usize);
        while let Some(row) = rows.next()? {
            let body = row.get_ref(0)?.as_str().map_err(StoreError::damaged)?;
            bytes = bytes.saturating_add(body.len());
            if tasks.len() >= limit || (bytes > bytes_max && !tasks.is_empty()) {
                return Ok((tasks, true));
            }
            tasks.push(parse(body)?);
        }
        Ok((tasks, false))
    }

    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        past_task(&self.db, id)
    }

    fn events_after(&mut self, seq: EventSeq, limit: u16) -> Result<Vec<StoredEvent>, StoreError> {
        let mut select = self.db.prepare_cached(&format!("{EVENT} LIMIT ?2"))?;
        // The cursor is a caller's number; one that is too large for SQLite finds nothing.
        let from = int(seq.0.saturating_add(1)).unwrap_or(i64::MAX);
        let mut rows = select.query(params![from, limit])?;
        let (mut events, mut bytes) = (Vec::new(), 0_usize);
        while let Some(row) = rows.next()?.filter(|_| bytes < EVENT_PAGE_BYTES_MAX) {
            let event = event(row)?;
            bytes = bytes.saturating_add(event.body.as_ref().map_or(0, |body| body.len()));
            events.push(event);
        }
        Ok(events)
    }

    fn each_letter(
        &mut self,
        which: &Letters,
        bytes_max: usize,
        each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        posts::each_letter(&self.db, which, bytes_max, each)
    }

    fn imported(&mut self, ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
        crew::imported(&self.db, ids)
    }

    fn job_order(&mut self, id: &JobId) -> Result<Option<Json>, StoreError> {
        let mut select = self.db.prepare_cached("SELECT body FROM job_order WHERE id = ?1")?;
        let body: Option<String> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
        body.map(|body| Json::parse(&body).map_err(StoreError::damaged)).transpose()
    }

    fn job_result(&mut self, id: &JobId) -> Result<Option<JobResult>, StoreError> {
        let mut select = self.db.prepare_cached("SELECT body FROM job_result WHERE id = ?1")?;
        let body: Option<String> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
        body.as_deref().map(parse).transpose()
    }

    fn usage(&mut self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        usage::sums(&self.db, query)
    }

    fn counted(&mut self, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError> {
        counted::sums_of(&self.db, query)
    }

    fn counted_of(&mut self, task: &TaskId) -> Result<Vec<CountedRow>, StoreError> {
        counted::of_task(&self.db, task)
    }

    fn search(&mut self, query: &SearchQuery) -> Result<Found, StoreError> {
        // In one snapshot, a concurrent pruning is seen either completely or not at all.
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Deferred)?;
        search::search(&tx, query)
    }

    fn timeline(&mut self, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError> {
        crew::timeline(&self.db, query)
    }

    fn verify_with(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError> {
        match self.walk(anchor, see) {
            Err(StoreError::Tampered { seq, what }) => Ok(ChainDefect { seq, what }.into()),
            Err(
                err @ (StoreError::Sqlite(_)
                | StoreError::Malformed(_)
                | StoreError::Damaged(_)
                | StoreError::Key(_)),
            ) => Ok(Verdict::CannotCheck(err.to_string().into())),
            verdict => verdict,
        }
    }
}

impl SqliteReader {
    fn walk(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError> {
        let Some(secret) = files::journal_key(&self.dir)? else {
            return Ok(Verdict::CannotCheck("the journal's key is missing".into()));
        };
        let key = Key::new(&secret);
        // In one transaction, a concurrent commit is not half seen.
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Deferred)?;
        if rows::meta(&tx, "journal_key")?.is_some_and(|it| it != key.fingerprint().to_string()) {
            return Ok(Verdict::CannotCheck(wrong_key(&self.dir)));
        }
        let mut walk = Walk::whole(&key, checkpoints(&tx, "ORDER BY seq")?, gaps(&tx)?, anchor);
        if !walk_seeing(&tx, &mut walk, see)? {
            return Ok(Verdict::CannotCheck(GIVEN_UP.into()));
        }
        Ok(walk.finish(counters(&tx)?.event))
    }
}
