//! Reads the events of the published server of Agent Protocol from its own database.
//!
//! Every program that works in the repository can write that file, so the daemon does not trust it: it opens the
//! file only for reading, without following links, with its triggers and views switched off, and each row has a
//! bound.

use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{OpenFlags, params};

use super::connect;
use crate::StoreError;
use provost_base::Timestamp;
use provost_base::limits::{FOREIGN_DATABASE_BYTES_MAX, FOREIGN_PAGE, FOREIGN_ROW_BYTES_MAX};

/// One row of that server's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignEvent {
    /// Its row id in the table, by which pages continue.
    pub row: i64,
    /// The event's id at that server.
    pub id: String,
    /// When it happened, by that server's clock.
    pub at: Timestamp,
    /// The agent of the event, as that server names it.
    pub agent: String,
    /// The occurrence, in that server's word.
    pub action: String,
    /// The file that the event is about, as that server names it.
    pub resource: Option<String>,
    /// The assignment that the event belongs to.
    pub task: Option<String>,
    /// The digest of the content before.
    pub before: Option<String>,
    /// The digest of the content afterwards.
    pub after: Option<String>,
    /// JSON, if the row is well-formed.
    pub metadata: Option<String>,
}

/// Returns the next rows after a place, oldest first.
///
/// # Errors
/// If it is not such a database, or cannot be read.
pub fn foreign_events(path: &Path, after: i64) -> Result<Vec<ForeignEvent>, StoreError> {
    let meta = std::fs::symlink_metadata(path).map_err(StoreError::io(path))?;
    let unfit = |why: &str| StoreError::Unsafe { path: path.display().to_string().into(), why: why.into() };
    if !meta.is_file() {
        return Err(unfit("is not a file"));
    }
    if meta.len() > FOREIGN_DATABASE_BYTES_MAX {
        return Err(unfit("is larger than a database that is imported"));
    }
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.pragma_update(None, "query_only", true)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, FOREIGN_ROW_BYTES_MAX)?;
    let sql =
        "SELECT rowid, id, timestamp, agent_id, action, resource, task_id, before_hash, after_hash, metadata
               FROM main.events WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
    let mut select = db.prepare(sql)?;
    let mut rows = select.query(params![after, FOREIGN_PAGE])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(ForeignEvent {
            row: row.get(0)?,
            id: row.get(1)?,
            at: Timestamp(row.get(2)?),
            agent: row.get(3)?,
            action: row.get(4)?,
            resource: row.get(5)?,
            task: row.get(6)?,
            before: row.get(7)?,
            after: row.get(8)?,
            metadata: row.get(9)?,
        });
    }
    Ok(found)
}
