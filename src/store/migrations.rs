//! The tables, and the migrations of earlier versions.

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;

/// One step for each schema version, in order. A released step is never changed.
const STEPS: &[&str] = &[
    "
    CREATE TABLE task (
        id           TEXT PRIMARY KEY NOT NULL,
        live         INTEGER NOT NULL,          -- 1: not finished, in memory
        finished_seq INTEGER,                   -- order in which tasks finished
        at           INTEGER NOT NULL,          -- last change, or end; milliseconds
        status       TEXT NOT NULL,
        body         TEXT NOT NULL
    ) STRICT;
    CREATE INDEX task_live ON task (id) WHERE live = 1;
    CREATE INDEX task_finished ON task (finished_seq) WHERE live = 0;
    CREATE INDEX task_ended_as ON task (status, finished_seq) WHERE live = 0;
    CREATE INDEX task_old ON task (at) WHERE live = 0;
    CREATE TABLE agent    (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE mail     (seq INTEGER PRIMARY KEY, agent TEXT NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE approval (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
    CREATE TABLE uses     (rule TEXT NOT NULL, agent TEXT NOT NULL, body TEXT NOT NULL,
                           PRIMARY KEY (rule, agent)) STRICT;
    CREATE TABLE effect   (id INTEGER PRIMARY KEY, body TEXT NOT NULL, started INTEGER NOT NULL) STRICT;
    CREATE TABLE event (
        seq   INTEGER PRIMARY KEY,
        at    INTEGER NOT NULL,
        kind  TEXT NOT NULL,
        actor TEXT NOT NULL,
        task  TEXT,
        body  TEXT,                             -- NULL where pruned
        hash  BLOB NOT NULL,                    -- SHA-256 of the body
        mac   BLOB NOT NULL                     -- the chain
    ) STRICT;
    CREATE TABLE checkpoint (
        seq       INTEGER PRIMARY KEY,
        mac       BLOB NOT NULL,                -- the chain there
        pruned_to INTEGER NOT NULL,             -- the last event that may be without a body
        counters  TEXT NOT NULL,
        seal      BLOB NOT NULL                 -- MAC over all of these
    ) STRICT;
    CREATE TABLE counter (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT;
    CREATE TABLE meta    (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE symbol_lock (at TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE intent      (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE contract    (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE post          (n INTEGER PRIMARY KEY, seq INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;
    CREATE TABLE inbox         (slug TEXT NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL,
                                PRIMARY KEY (slug, n)) STRICT, WITHOUT ROWID;
    CREATE TABLE parked        (slug TEXT NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL,
                                PRIMARY KEY (slug, n)) STRICT, WITHOUT ROWID;
    CREATE TABLE correspondent (slug TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE footprint     (slug TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE standoff      (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE question      (n INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE member     (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE claim      (file TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE assignment (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE transfer   (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE timeline (
        seq   INTEGER PRIMARY KEY,              -- of the event
        at    INTEGER NOT NULL,
        agent TEXT NOT NULL,
        word  TEXT NOT NULL,
        file  TEXT
    ) STRICT;
    CREATE INDEX timeline_at ON timeline (at);
    CREATE INDEX timeline_agent ON timeline (agent, at);
    CREATE INDEX timeline_word ON timeline (word, at);
    CREATE INDEX timeline_file ON timeline (file, at) WHERE file IS NOT NULL;
",
    "
    CREATE TABLE token (digest TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE imported (id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID; -- events of another daemon
",
    "
    CREATE TABLE job        (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE job_result (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE emptied (slug TEXT PRIMARY KEY NOT NULL, n INTEGER NOT NULL) STRICT; -- inboxes, up to a number
",
    "
    CREATE TABLE job_order (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT; -- of jobs that are not over
",
    "
    CREATE TABLE gap (
        seq  INTEGER PRIMARY KEY,               -- the last event before it
        mac  BLOB NOT NULL,                     -- the chain there
        upto INTEGER NOT NULL,                  -- the last number that is passed over
        seal BLOB NOT NULL                      -- MAC over all of these; the chain goes on from it
    ) STRICT;
",
    // Uses are counted by the caller's place, no longer by its name; they only count for a short time.
    "
    DELETE FROM uses;
",
    "
    CREATE TABLE switched (worker TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT; -- held back by a person
",
    // Jobs that are not over are owed, as effects; before, each start searched for them.
    "
    INSERT OR IGNORE INTO counter VALUES ('effect', 0);
    INSERT INTO effect
        SELECT (SELECT value FROM counter WHERE name = 'effect') + row_number() OVER (ORDER BY id),
               json_object('run_job', json_object('job', id)),
               json_extract(body, '$.state') = 'running'
        FROM job
        WHERE json_extract(body, '$.state') IN ('queued', 'running') AND json_extract(body, '$.step') IS NULL;
    UPDATE counter SET value = max(value, (SELECT coalesce(max(id), 0) FROM effect)) WHERE name = 'effect';
",
    // The usage that runs report; the sum of a day outlives the tasks.
    "
    CREATE TABLE usage_day (
        day         INTEGER NOT NULL,           -- since 1970, of UTC
        worker      TEXT NOT NULL,
        model       TEXT NOT NULL,
        runs        INTEGER NOT NULL,
        input       INTEGER,                    -- tokens; NULL where no run has said it
        output      INTEGER,
        reasoning   INTEGER,
        cache_read  INTEGER,
        cache_write INTEGER,
        cost        INTEGER,                    -- millionths of a US dollar
        PRIMARY KEY (day, worker, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage_task (
        task        TEXT PRIMARY KEY NOT NULL,
        at          INTEGER NOT NULL,
        worker      TEXT NOT NULL,
        model       TEXT NOT NULL,
        input       INTEGER,
        output      INTEGER,
        reasoning   INTEGER,
        cache_read  INTEGER,
        cache_write INTEGER,
        cost        INTEGER
    ) STRICT;
    CREATE INDEX usage_task_at ON usage_task (at);
",
    "
    CREATE TABLE merge_entry (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT; -- branches to be merged
",
    // Passkeys on record, and the daemon's id that their signatures contain.
    "
    CREATE TABLE passkey (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE passkey_reset (only INTEGER PRIMARY KEY CHECK (only = 1), body TEXT NOT NULL) STRICT;
    CREATE TABLE daemon (only INTEGER PRIMARY KEY CHECK (only = 1), body TEXT NOT NULL) STRICT;
    INSERT INTO daemon VALUES (1, json_quote(lower(hex(randomblob(16)))));
",
    // Rows that can be searched by words. The indexes have no texts, and are made after the commits: see `sqlite/search.rs`.
    "
    CREATE VIRTUAL TABLE search_event USING fts5(
        what, said, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
    );
    CREATE VIRTUAL TABLE search_task USING fts5(
        what, said, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
    );
    CREATE TABLE searched_task (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT; -- rows of search_task
",
    "
    CREATE TABLE push (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT; -- browsers that are told
",
    // Tokens that the daemon has counted itself, and the sums that budgets are compared with.
    "
    CREATE TABLE spent (key TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE counted_day (
        day            INTEGER NOT NULL,        -- since 1970, of UTC
        worker         TEXT NOT NULL,
        model          TEXT NOT NULL,
        calls          INTEGER NOT NULL,
        input          INTEGER NOT NULL,        -- tokens
        output         INTEGER NOT NULL,
        reasoning      INTEGER NOT NULL,
        cache_read     INTEGER NOT NULL,
        cache_write    INTEGER NOT NULL,
        guessed_input  INTEGER NOT NULL,
        guessed_output INTEGER NOT NULL,
        PRIMARY KEY (day, worker, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE counted_task (
        task           TEXT NOT NULL,
        model          TEXT NOT NULL,
        worker         TEXT NOT NULL,
        at             INTEGER NOT NULL,        -- of the last call
        calls          INTEGER NOT NULL,
        input          INTEGER NOT NULL,
        output         INTEGER NOT NULL,
        reasoning      INTEGER NOT NULL,
        cache_read     INTEGER NOT NULL,
        cache_write    INTEGER NOT NULL,
        guessed_input  INTEGER NOT NULL,
        guessed_output INTEGER NOT NULL,
        PRIMARY KEY (task, model)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX counted_task_at ON counted_task (at);
",
];

/// Marks a database file as Provost's: `prvs`.
const APPLICATION: i32 = 0x7072_7673;

/// Brings the tables to the newest version.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let found = check(db)?;
    let missing = STEPS.get(found as usize..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in missing {
        tx.execute_batch(step)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION)?;
    tx.pragma_update(None, "user_version", known())?;
    Ok(tx.commit()?)
}

/// Returns the version of a database; refuses one that is not Provost's.
pub(super) fn check(db: &Connection) -> Result<u32, StoreError> {
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: u32 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION {
        return Err(StoreError::damaged("the database is not one of Provost's; move it out of the way"));
    }
    if found > known() {
        return Err(StoreError::Newer { found, known: known() });
    }
    Ok(found)
}

fn known() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}
