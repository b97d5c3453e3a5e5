//! The search by words: tasks, messages between agents, and events.
//!
//! ```text
//!   event ---index, a bite at a time---> search_event   (rowid: the event's number)
//!     |  its task as it is then -------> search_task    (rowid: by searched_task)
//!     +--pruned, with its task: leaves both in the same transaction
//! ```
//! The index has words and no texts: the shown part of a hit is read from the rows themselves, so that no hit
//! outlives its row. [`index`] makes it after the commits, so that it costs a commit nothing; if it is missing, it
//! is made again from the events.

use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{meta, put, set_meta};
use crate::StoreError;
use crate::codec::{int, nat, parse};
use crate::said::{said_in, what_of, words_of};
use crate::search::{Found, Hit, HitKind, SearchQuery};
use provost_base::limits::{INDEX_BITE_BYTES_MAX, SEARCH_LOOKED_AT_MAX};
use provost_base::{AgentId, EventSeq, TaskId, Timestamp};
use provost_domain::{Event, EventKind, Task};

/// The key of the last event whose words are in the index.
const SEARCHED_TO: &str = "searched_to";

/// Returns the last event in the index.
pub(super) fn indexed_to(db: &Connection) -> Result<EventSeq, StoreError> {
    Ok(EventSeq(meta(db, SEARCHED_TO)?.and_then(|it| it.parse().ok()).unwrap_or(0)))
}

/// Indexes up to `most` further events; returns the last one, and whether there are more.
pub(super) fn index(db: &Connection, most: u32) -> Result<(EventSeq, bool), StoreError> {
    let from = indexed_to(db)?;
    let mut select = db.prepare_cached(
        "SELECT seq, kind, actor, task, body FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = select.query(params![int(from.0)?, most])?;
    let (mut last, mut count, mut bytes) = (from, 0, 0_usize);
    let mut tasks: Vec<String> = Vec::new();
    while let Some(row) = rows.next()?.filter(|_| bytes < INDEX_BITE_BYTES_MAX) {
        last = EventSeq(nat(row.get(0)?)?);
        count += 1;
        let (kind, actor): (String, String) = (row.get(1)?, row.get(2)?);
        // A pruned event has no body, and its task is gone or has later events.
        let Some(body) = row.get_ref(4)?.as_str_or_null().map_err(StoreError::damaged)? else { continue };
        bytes = bytes.saturating_add(body.len());
        let said = words_of(&serde_json::from_str(body).map_err(StoreError::damaged)?);
        let sql = "INSERT INTO search_event (rowid, what, said) VALUES (?1, ?2, ?3)";
        put(db, sql, params![int(last.0)?, format!("{kind} {actor}"), said])?;
        if let Some(task) = row.get::<_, Option<String>>(3)?.filter(|it| !tasks.contains(it)) {
            tasks.push(task);
        }
    }
    drop(rows);
    for task in &tasks {
        index_task(db, task)?;
    }
    if last != from {
        set_meta(db, SEARCHED_TO, &last.0.to_string())?;
    }
    Ok((last, count > 0 && (count == most || bytes >= INDEX_BITE_BYTES_MAX)))
}

/// Indexes a task in its present form, instead of its earlier one.
fn index_task(db: &Connection, id: &str) -> Result<(), StoreError> {
    let body: Option<String> = db
        .prepare_cached("SELECT body FROM task WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let Some(body) = body else { return Ok(()) };
    let task: Task = parse(&body)?;
    put(db, "INSERT OR IGNORE INTO searched_task (id) VALUES (?1)", params![id])?;
    let n: i64 =
        db.prepare_cached("SELECT n FROM searched_task WHERE id = ?1")?.query_row([id], |row| row.get(0))?;
    put(db, "DELETE FROM search_task WHERE rowid = ?1", params![n])?;
    let what = what_of(&task);
    let sql = "INSERT INTO search_task (rowid, what, said) VALUES (?1, ?2, ?3)";
    put(db, sql, params![n, what, said_in(&task)])
}

/// Forgets events whose bodies are pruned.
pub(super) fn forget_events(db: &Connection, from: EventSeq, to: EventSeq) -> Result<(), StoreError> {
    for seq in from.0 + 1..=to.0 {
        put(db, "DELETE FROM search_event WHERE rowid = ?1", params![int(seq)?])?;
    }
    Ok(())
}

/// Forgets a task.
pub(super) fn forget_task(db: &Connection, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM search_task WHERE rowid = (SELECT n FROM searched_task WHERE id = ?1)";
    put(db, sql, params![id])?;
    put(db, "DELETE FROM searched_task WHERE id = ?1", params![id])
}

/// Forgets the events after `kept`, for a store that continues from there.
pub(super) fn forget_after(db: &Connection, kept: EventSeq) -> Result<(), StoreError> {
    if indexed_to(db)? > kept {
        put(db, "DELETE FROM search_event WHERE rowid > ?1", params![int(kept.0)?])?;
        set_meta(db, SEARCHED_TO, &kept.0.to_string())?;
    }
    Ok(())
}

/// Returns the rows with all words of a query, newest first.
pub(super) fn search(db: &Connection, query: &SearchQuery) -> Result<Found, StoreError> {
    let mut found = Found { indexed_to: indexed_to(db)?, ..Found::default() };
    if query.takes(HitKind::Task) && query.before.is_none() {
        tasks(db, query, &mut found)?;
    }
    if query.takes(HitKind::Message) || query.takes(HitKind::Event) {
        events(db, query, &mut found)?;
    }
    Ok(found)
}

fn tasks(db: &Connection, query: &SearchQuery, found: &mut Found) -> Result<(), StoreError> {
    let sql = "SELECT task.body FROM search_task
               JOIN searched_task ON searched_task.n = search_task.rowid JOIN task ON task.id = searched_task.id
               WHERE search_task MATCH ?1 ORDER BY search_task.rowid DESC LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![query.words.expression(), int(query.limit as u64 + 1)?])?;
    while let Some(row) = rows.next()? {
        if found.hits.len() == query.limit {
            found.more_tasks = true;
            break;
        }
        let task: Task = parse(row.get_ref(0)?.as_str().map_err(StoreError::damaged)?)?;
        found.hits.push(Hit {
            kind: HitKind::Task,
            seq: None,
            post: None,
            at: task.updated_at,
            what: task.state.as_str().into(),
            actor: task.asked_by.clone(),
            excerpt: query.words.excerpt(&said_in(&task)).into(),
            task: Some(task.id().clone()),
        });
    }
    Ok(())
}

fn events(db: &Connection, query: &SearchQuery, found: &mut Found) -> Result<(), StoreError> {
    let sql = "SELECT event.seq, event.at, event.kind, event.actor, event.task, event.body
               FROM search_event JOIN event ON event.seq = search_event.rowid
               WHERE search_event MATCH ?1 AND search_event.rowid < ?2 ORDER BY search_event.rowid DESC";
    let before = query.before.and_then(|it| int(it.0).ok()).unwrap_or(i64::MAX);
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![query.expression(), before])?;
    let (mut count, mut looked_at) = (0, 0);
    while let Some(row) = rows.next()? {
        let seq = EventSeq(nat(row.get(0)?)?);
        looked_at += 1;
        if count == query.limit || looked_at > SEARCH_LOOKED_AT_MAX {
            found.next = Some(EventSeq(seq.0 + 1));
            break;
        }
        let Some(body) = row.get_ref(5)?.as_str_or_null().map_err(StoreError::damaged)? else { continue };
        let event = Event::from_json(body).map_err(StoreError::damaged)?;
        let (kind, post) = match &event.kind {
            EventKind::Published { n, .. } => (HitKind::Message, Some(*n)),
            _ => (HitKind::Event, None),
        };
        if !query.takes(kind) {
            continue;
        }
        count += 1;
        let actor: String = row.get(3)?;
        let task: Option<String> = row.get(4)?;
        found.hits.push(Hit {
            kind,
            seq: Some(seq),
            post,
            at: Timestamp(row.get(1)?),
            what: row.get::<_, String>(2)?.into(),
            actor: AgentId::parse(&actor).map_err(StoreError::damaged)?,
            excerpt: query
                .words
                .excerpt(&words_of(&serde_json::from_str(body).map_err(StoreError::damaged)?))
                .into(),
            task: task.map(|it| TaskId::parse(&it)).transpose().map_err(StoreError::damaged)?,
        });
    }
    Ok(())
}
