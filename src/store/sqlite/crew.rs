//! Rows of a crew, and the timeline.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::read;
use super::rows::put;
use crate::codec::{int, text};
use crate::{StoreError, StoredEvent, TimelineOrder, TimelineQuery};
use provost_base::{EventSeq, Timestamp};
use provost_domain::{BEAT, CrewChange, Event};

pub(super) fn apply(db: &Connection, change: &CrewChange) -> Result<(), StoreError> {
    match change {
        CrewChange::PutMember(it) => {
            put(db, "INSERT OR REPLACE INTO member VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])
        }
        CrewChange::DropMember(id) => put(db, "DELETE FROM member WHERE id = ?1", params![id.as_str()]),
        CrewChange::PutClaim(it) => {
            put(db, "INSERT OR REPLACE INTO claim VALUES (?1, ?2)", params![it.file.as_str(), text(it)?])
        }
        CrewChange::DropClaim(file) => put(db, "DELETE FROM claim WHERE file = ?1", params![file.as_str()]),
        CrewChange::PutAssignment(it) => {
            put(db, "INSERT OR REPLACE INTO assignment VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])
        }
        CrewChange::DropAssignment(id) => {
            put(db, "DELETE FROM assignment WHERE id = ?1", params![id.as_str()])
        }
        CrewChange::PutHandoff(it) => {
            put(db, "INSERT OR REPLACE INTO transfer VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])
        }
        CrewChange::DropHandoff(id) => put(db, "DELETE FROM transfer WHERE id = ?1", params![id.as_str()]),
    }
}

/// Puts the events of a batch that belong on the timeline there.
pub(super) fn put_timeline(db: &Connection, events: &[Event]) -> Result<(), StoreError> {
    let mut insert = db.prepare_cached("INSERT INTO timeline VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for event in events {
        if let Some(it) = event.topic() {
            insert.execute(params![int(event.seq.0)?, it.at.0, it.agent, it.word, it.file])?;
            if let Some(id) = event.origin() {
                put(db, "INSERT OR IGNORE INTO imported VALUES (?1)", params![id])?;
            }
        }
    }
    Ok(())
}

/// Returns the ids among these whose events were imported.
pub(super) fn imported(db: &Connection, ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
    let mut select = db.prepare_cached("SELECT 1 FROM imported WHERE id = ?1")?;
    let mut found = BTreeSet::new();
    for id in ids {
        if select.exists([id])? {
            found.insert(id.clone());
        }
    }
    Ok(found)
}

/// Removes events without bodies, and old signs of life, from the timeline.
pub(super) fn prune_timeline(
    db: &Connection,
    pruned_to: EventSeq,
    beats_before: Timestamp,
    most: u32,
) -> Result<u32, StoreError> {
    let gone =
        "DELETE FROM timeline WHERE seq IN (SELECT seq FROM timeline WHERE seq <= ?1 ORDER BY seq LIMIT ?2)";
    put(db, gone, params![int(pruned_to.0)?, most])?;
    let beats = "DELETE FROM timeline WHERE seq IN
                 (SELECT seq FROM timeline WHERE word = ?1 AND at < ?2 ORDER BY at LIMIT ?3)";
    let beats = db.prepare_cached(beats)?.execute(params![BEAT, beats_before.0, most])?;
    u32::try_from(beats).map_err(StoreError::damaged)
}

/// Returns a page of the timeline.
pub(super) fn timeline(db: &Connection, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError> {
    let mut sql = String::from(
        "SELECT e.seq, e.at, e.kind, e.actor, e.task, e.body, e.hash, e.mac
         FROM timeline t CROSS JOIN event e ON e.seq = t.seq WHERE e.body IS NOT NULL",
    );
    // The unary plus keeps a condition from choosing the index, which the order chooses.
    for (given, condition) in [
        (query.agent.is_some(), " AND t.agent = ?1"),
        (query.word.is_some(), " AND t.word = ?2"),
        (query.file.is_some(), " AND t.file = ?3"),
        (query.since.is_some(), " AND t.at >= ?4"),
        (query.after.is_some(), " AND t.seq > ?5"),
        (query.before.is_some(), " AND t.seq < ?6"),
        (!query.beats, " AND +t.word <> ?7"),
    ] {
        if given {
            sql.push_str(condition);
        }
    }
    sql.push_str(match query.order {
        TimelineOrder::NewestFirst => " ORDER BY t.at DESC, t.seq DESC LIMIT ?8",
        TimelineOrder::OldestFirst => " ORDER BY t.seq LIMIT ?8",
    });
    let mut select = db.prepare_cached(&sql)?;
    // The cursor is a caller's number; one that is too large for SQLite finds nothing.
    let cursor = |seq: Option<EventSeq>| seq.map(|it| int(it.0).unwrap_or(i64::MAX));
    let values: [(usize, &dyn rusqlite::ToSql); 8] = [
        (1, &query.agent.as_deref()),
        (2, &query.word.as_deref()),
        (3, &query.file.as_deref()),
        (4, &query.since.map(|it| it.0)),
        (5, &cursor(query.after)),
        (6, &cursor(query.before)),
        (7, &BEAT),
        (8, &i64::try_from(query.limit).unwrap_or(i64::MAX)),
    ];
    for (at, value) in values {
        if at <= select.parameter_count() {
            select.raw_bind_parameter(at, value)?;
        }
    }
    let (mut rows, mut found, mut bytes) = (select.raw_query(), Vec::new(), 0_usize);
    while let Some(row) = rows.next()? {
        let event = read::event(row)?;
        bytes = bytes.saturating_add(event.body.as_deref().map_or(0, str::len));
        if bytes > query.bytes_max && !found.is_empty() {
            break;
        }
        found.push(event);
    }
    Ok(found)
}
