//! The file in the state folder while a whole state moves into a database, or out of one.

use std::path::{Path, PathBuf};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Row};

use super::{SqliteStore, connect, read, rows};
use crate::files::{self, Lease};
use crate::intake::Intake;
use crate::journal::{Gap, Key};
use crate::moving::{Cell, FACTS, Kind, NOT_MOVED_HERE, Table, tables};
use crate::{Anchor, Options, Store as _, StoreError, codec, migrations};
use provost_base::{EventSeq, Timestamp};
use provost_domain::{Counters, Settings, provost};

/// A state that leaves the folder. It has been closed in order, and no other process writes it.
pub(crate) struct Leaving {
    store: SqliteStore,
    intake: Option<Box<dyn Intake>>,
    /// The time of the newest event.
    pub(crate) until: Timestamp,
}

impl Leaving {
    /// Starts the store and stops it again, which checks it as a start of the daemon does, and then the whole journal.
    ///
    /// # Errors
    /// [`StoreError::InUse`] while a daemon runs, [`StoreError::NotOnRecord`] if there are acknowledged messages
    /// that only a start can record, and any defect of the store.
    pub(crate) fn open(dir: &Path, outside: Option<&Path>) -> Result<Self, StoreError> {
        let options = Options { outside: outside.map(Path::to_owned), ..Options::default() };
        let mut store = SqliteStore::open(dir, options)?;
        let loaded = store.load(Settings::new(provost()))?;
        if !loaded.received.is_empty() {
            return Err(StoreError::NotOnRecord { messages: loaded.received.len() });
        }
        store.close()?;
        read::whole(&store.db)?;
        read::whole_journal(&store.db, &store.key)?;
        must_know_all(&store.db)?;
        Ok(Self { store, intake: loaded.intake, until: loaded.until })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.store.key
    }

    pub(crate) fn head(&self) -> Anchor {
        self.store.written.head
    }

    pub(crate) fn counters(&self) -> Counters {
        self.store.written.counters
    }

    pub(crate) fn pruned_to(&self) -> EventSeq {
        self.store.written.pruned_to
    }

    pub(crate) fn finished(&self) -> i64 {
        self.store.written.finished
    }

    pub(crate) fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        read::gaps(&self.store.db)
    }

    /// Returns the store's own facts that move along.
    pub(crate) fn facts(&self) -> Result<Vec<(&'static str, String)>, StoreError> {
        let mut found = Vec::new();
        for name in FACTS {
            found.extend(rows::meta(&self.store.db, name)?.map(|it| (name, it)));
        }
        Ok(found)
    }

    /// Returns the number of all rows.
    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let mut all = 0;
        for table in tables() {
            let sql = format!("SELECT count(*) FROM {}", table.here);
            all += codec::nat(self.store.db.query_row(&sql, [], |row| row.get(0))?)?;
        }
        Ok(all)
    }

    /// Hands over the rows of a table, one by one.
    pub(crate) fn each(
        &self,
        table: &Table,
        take: &mut dyn FnMut(Vec<Cell>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut select = self.store.db.prepare(&table.select)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let cells = table.columns.iter().enumerate().map(|(at, column)| cell(row, at, column.1));
            take(cells.collect::<Result<_, _>>()?)?;
        }
        Ok(())
    }

    /// Renames the file, since the state is elsewhere now: no store continues with it.
    pub(crate) fn set_aside(self, name: &str) -> Result<(), StoreError> {
        let Self { store, intake, .. } = self;
        intake.into_iter().for_each(|mut it| it.clear());
        let SqliteStore { db, dir, _lease: lease, .. } = store;
        drop(db);
        files::rename_aside(&dir, name)?;
        drop(lease);
        Ok(())
    }
}

/// Refuses a file with a table that would be left behind.
fn must_know_all(db: &Connection) -> Result<(), StoreError> {
    let known = tables();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search%' AND name NOT LIKE 'sqlite%'";
    let mut select = db.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if !NOT_MOVED_HERE.contains(&&*name) && !known.iter().any(|it| it.here == name) {
            return Err(StoreError::damaged(format!(
                "this release does not know how to move the table `{name}`"
            )));
        }
    }
    Ok(())
}

fn cell(row: &Row<'_>, at: usize, kind: Kind) -> Result<Cell, StoreError> {
    let text = |it: &[u8]| String::from_utf8(it.to_vec()).map_err(StoreError::damaged);
    Ok(match (row.get_ref(at)?, kind) {
        (ValueRef::Null, _) => Cell::Null,
        (ValueRef::Integer(it), Kind::Flag) => Cell::Flag(it != 0),
        (ValueRef::Integer(it), Kind::Int) => Cell::Int(it),
        (ValueRef::Text(it), Kind::Text) => Cell::Text(text(it)?),
        (ValueRef::Blob(it), Kind::Blob) => Cell::Blob(it.to_vec()),
        (it, _) => {
            return Err(StoreError::damaged(format!("a column has a value of the kind {}", it.data_type())));
        }
    })
}

/// A state that comes into the folder: a file beside the store's place, which gets the store's name when everything is there.
pub(crate) struct Arriving {
    db: Connection,
    dir: PathBuf,
}

impl Arriving {
    /// Makes a new file; the remains of an interrupted move are removed.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn begin(dir: &Path, _lease: &Lease) -> Result<Self, StoreError> {
        let half = files::half(dir);
        files::remove_half(dir)?;
        files::new_private(&half)?;
        let mut db = connect(&half, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The file is thrown away if anything fails, and is on the disk before it gets its name.
        db.pragma_update(None, "journal_mode", "MEMORY")?;
        db.pragma_update(None, "synchronous", "OFF")?;
        migrations::migrate(&mut db)?;
        db.execute_batch("BEGIN")?;
        Ok(Self { db, dir: dir.to_owned() })
    }

    /// Writes rows of a table.
    ///
    /// # Errors
    /// An error of SQLite.
    pub(crate) fn put(&self, table: &Table, rows: Vec<Vec<Cell>>) -> Result<(), StoreError> {
        let mut insert = self.db.prepare_cached(&table.insert)?;
        for row in rows {
            insert.execute(rusqlite::params_from_iter(row.into_iter().map(value)))?;
        }
        Ok(())
    }

    /// Writes the rest, and checks everything. Then the file is on the disk, and does not have a store's name yet.
    ///
    /// # Errors
    /// If the journal is not whole, or does not end at `head`.
    pub(crate) fn end(
        self,
        key: &Key,
        (head, counters): (Anchor, &Counters),
        facts: &[(&'static str, String)],
        gaps: &[Gap],
    ) -> Result<(), StoreError> {
        let Self { db, dir } = self;
        rows::put_counters(&db, &Counters::default(), counters)?;
        rows::set_meta(&db, "journal_key", &key.fingerprint().to_string())?;
        rows::set_meta(&db, "clean", "1")?;
        for (name, value) in facts {
            rows::set_meta(&db, name, value)?;
        }
        gaps.iter().try_for_each(|it| rows::put_gap(&db, it))?;
        db.execute_batch("COMMIT")?;
        read::whole(&db)?;
        let found = read::whole_journal(&db, key)?;
        if found != head || read::tail(&db, key)?.head != head {
            return Err(StoreError::EndMissing { head: found.seq });
        }
        drop(db);
        files::sync(&files::half(&dir))
    }
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(it) => Value::Integer(it),
        Cell::Text(it) => Value::Text(it),
        Cell::Blob(it) => Value::Blob(it),
        Cell::Flag(it) => Value::Integer(i64::from(it)),
    }
}
