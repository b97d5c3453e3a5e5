//! The tables with a repository's whole state, in the state folder and in a database, so that the state can be
//! moved between them.
//!
//! Three things are not rows of such a table: the last numbers, the store's own few facts, and the skipped numbers.
//! Each side writes them in its own way. The index of the search is not moved: it is made again from the events;
//! nor is the shared log, which only daemons that run at the same time need.

use std::fmt::Write as _;

/// A value of a row, during a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
    Flag(bool),
}

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Int,
    Text,
    Blob,
    Flag,
}

/// A table on both sides.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Its name in the database.
    pub(super) name: &'static str,
    /// Its columns in the database, without the repository's number.
    pub(super) columns: Vec<(&'static str, Kind)>,
    /// Its name in the state folder's file.
    pub(super) here: &'static str,
    /// The statement that reads these columns from that file.
    pub(super) select: String,
    /// The statement that writes them into that file.
    pub(super) insert: String,
}

/// Tables of a database that are not moved. The repository's row and the facts are written separately; hosts, the log, the hosts'
/// signatures and users, and the search's index begin again at the destination; waits for locks, messages on their way, places of
/// agents and abilities of hosts end with the daemons; results of runs for other hosts are in the folder of the host that ran them.
pub(super) const NOT_MOVED: [&str; 16] = [
    "repo",
    "meta",
    "host",
    "entry",
    "search_event",
    "search_task",
    "schema",
    "waiter",
    "carried",
    "present",
    "host_key",
    "host_before",
    "signature",
    "host_user",
    "ability",
    "artifact",
];

/// Tables of the state folder's file that are not moved.
pub(super) const NOT_MOVED_HERE: [&str; 3] = ["counter", "meta", "gap"];

/// Facts of the store that move along; the others belong to the place where the state is.
pub(super) const FACTS: [&str; 2] = ["post_log_from", "post_pruned_to"];

/// The number of rows that move at a time, and roughly their bytes.
pub(super) const ROWS_AT_ONCE: usize = 500;
pub(super) const BYTES_AT_ONCE: usize = 4 << 20;

/// Tables whose rows are a key and a body: the name in the database, the name in the file, and the key in the database.
const KEYED: [(&str, &str, &str, Kind); 24] = [
    ("agent", "agent", "id", Kind::Text),
    ("symbol_lock", "symbol_lock", "at", Kind::Text),
    ("intent", "intent", "id", Kind::Text),
    ("contract", "contract", "id", Kind::Text),
    ("correspondent", "correspondent", "slug", Kind::Text),
    ("footprint", "footprint", "slug", Kind::Text),
    ("standoff", "standoff", "id", Kind::Text),
    ("member", "member", "id", Kind::Text),
    ("claim", "claim", "file", Kind::Text),
    ("assignment", "assignment", "id", Kind::Text),
    ("transfer", "transfer", "id", Kind::Text),
    ("token", "token", "digest", Kind::Text),
    ("job", "job", "id", Kind::Text),
    ("job_order", "job_order", "id", Kind::Text),
    ("job_result", "job_result", "id", Kind::Text),
    ("switched", "switched", "worker", Kind::Text),
    ("passkey", "passkey", "id", Kind::Text),
    ("push", "push", "id", Kind::Text),
    ("spent", "spent", "key", Kind::Text),
    ("approval", "approval", "id", Kind::Int),
    ("question", "question", "n", Kind::Int),
    ("merge_entry", "merge_entry", "number", Kind::Int),
    ("passkey_reset", "passkey_reset", "only", Kind::Text),
    ("daemon", "daemon", "only", Kind::Text),
];

/// Tables with the same columns on both sides.
const ALIKE: [(&str, &str); 14] = [
    ("task", "id live? finished_seq# at# status body"),
    ("effect", "id# body started?"),
    ("event", "seq# at# kind actor task body hash* mac*"),
    ("checkpoint", "seq# mac* pruned_to# counters seal*"),
    ("timeline", "seq# at# agent word file"),
    ("imported", "id"),
    ("post", "n# seq# at#"),
    ("inbox", "slug n# seq#"),
    ("parked", "slug n# seq#"),
    ("emptied", "slug n#"),
    ("usage_day", "day# worker model runs# input# output# reasoning# cache_read# cache_write# cost#"),
    ("usage_task", "task at# worker model input# output# reasoning# cache_read# cache_write# cost#"),
    (
        "counted_day",
        "day# worker model calls# input# output# reasoning# cache_read# cache_write# guessed_input# guessed_output#",
    ),
    (
        "counted_task",
        "task model worker at# calls# input# output# reasoning# cache_read# cache_write# guessed_input# guessed_output#",
    ),
];

/// Returns all tables that are moved.
pub(super) fn tables() -> Vec<Table> {
    let mut all: Vec<Table> = KEYED.iter().map(|it| keyed(*it)).collect();
    // In the file, their keys are composed differently.
    all.push(Table {
        name: "mail",
        columns: vec![("id", Kind::Int), ("body", Kind::Text)],
        here: "mail",
        select: "SELECT seq, body FROM mail".into(),
        insert: "INSERT OR REPLACE INTO mail VALUES (?1, json_extract(?2, '$.to'), ?2)".into(),
    });
    all.push(Table {
        name: "uses",
        columns: vec![("id", Kind::Text), ("body", Kind::Text)],
        here: "uses",
        select: "SELECT json_array(rule, agent), body FROM uses".into(),
        insert: "INSERT OR REPLACE INTO uses VALUES (json_extract(?1, '$[0]'), json_extract(?1, '$[1]'), ?2)"
            .into(),
    });
    all.extend(ALIKE.iter().map(|(name, columns)| alike(name, columns)));
    all
}

fn keyed((name, here, key, kind): (&'static str, &'static str, &'static str, Kind)) -> Table {
    // In the file, the key of a table with one row is a number.
    let (read, written) = match key {
        "only" => ("'1'", "CAST(?1 AS INTEGER)"),
        key => (key, "?1"),
    };
    Table {
        name,
        columns: vec![("id", kind), ("body", Kind::Text)],
        here,
        select: format!("SELECT {read}, body FROM {here}"),
        insert: format!("INSERT OR REPLACE INTO {here} VALUES ({written}, ?2)"),
    }
}

/// Returns a table from a list of columns: `#` follows numbers, `*` follows bytes, and `?` follows truth values.
fn alike(name: &'static str, list: &'static str) -> Table {
    let column = |it: &'static str| match it.split_at(it.len() - 1) {
        (name, "#") => (name, Kind::Int),
        (name, "*") => (name, Kind::Blob),
        (name, "?") => (name, Kind::Flag),
        _ => (it, Kind::Text),
    };
    let columns: Vec<(&'static str, Kind)> = list.split(' ').map(column).collect();
    let names = columns.iter().map(|it| it.0).collect::<Vec<_>>().join(", ");
    let mut places = String::new();
    for n in 1..=columns.len() {
        let _ = write!(places, "{}?{n}", if n > 1 { ", " } else { "" });
    }
    Table {
        name,
        select: format!("SELECT {names} FROM {name}"),
        insert: format!("INSERT INTO {name} ({names}) VALUES ({places})"),
        columns,
        here: name,
    }
}

impl Cell {
    /// Returns its approximate size, in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Cell::Text(it) => it.len(),
            Cell::Blob(it) => it.len(),
            Cell::Null | Cell::Int(_) | Cell::Flag(_) => 8,
        }
    }
}
