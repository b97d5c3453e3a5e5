//! How much of a row is read, and the name of a row that cannot be read.
//!
//! Each login of the database can write most tables, and a value there may have a gigabyte. So a daemon reads no more of a digest, a signature, a
//! name, an entry and an event than Provost writes: of digests and signatures one byte more than they have, which makes a longer one invalid. Bodies of
//! other tables are read whole.

use std::fmt::Display;

use super::session::Step;
use crate::StoreError;
use provost_base::limits::{POSTGRES_PAGE_BYTES_MAX, POSTGRES_TURN_BYTES_MAX};
use provost_base::visible_name;

/// The most characters of a row's key that an error shows.
const KEY_SHOWN_MAX: usize = 80;

/// The columns of entries after a number, at most so many, and no further ones once they have so many bytes; a longer body is read as an empty
/// one. The first entry is always among them.
const ENTRIES: &str = "select n, host, inc, own_n, at, format, body, mac, sig from (
        select n, left(host, 64) as host, inc, own_n, at, format, case when octet_length(body) <= $4::bigint then body else '' end as body,
            substr(mac, 1, 33) as mac, substr(sig, 1, 65) as sig,
            sum(octet_length(body)) over (order by n) - octet_length(body) as bytes_before
        from (select * from provost.entry where repo = $1 and n > $2 order by n limit $3::bigint) as page
    ) as it where bytes_before < $5::bigint order by n";

/// The same of events, from behind a number up to another one, and where `$7` says so up to the end that the repository's row has.
const EVENTS: &str = "select seq, at, kind, actor, task, body, hash, mac from (
        select seq, at, left(kind, 1024) as kind, left(actor, 1024) as actor, left(task, 1024) as task,
            case when octet_length(body) <= $5::bigint then body when body is not null then '' end as body,
            substr(hash, 1, 33) as hash, substr(mac, 1, 33) as mac,
            sum(coalesce(octet_length(body), 0)) over (order by seq) - coalesce(octet_length(body), 0) as bytes_before
        from (select * from provost.event where repo = $1 and seq > $2
                and seq <= least($3, case when $7::boolean then (select event from provost.repo where id = $1) end)
            order by seq limit $4::bigint) as page
    ) as it where bytes_before < $6::bigint order by seq";

/// How many rows are read, and the bytes after which no further ones are.
pub(super) struct Page {
    rows: i64,
    bytes: i64,
}

impl Page {
    /// Of a check or a load, which has time.
    pub(super) fn of(rows: i64) -> Self {
        Self { rows, bytes: POSTGRES_PAGE_BYTES_MAX }
    }

    /// Of a turn.
    pub(super) fn of_turn(rows: i64) -> Self {
        Self { rows, bytes: POSTGRES_TURN_BYTES_MAX }
    }
}

/// Returns the statement for entries after a number. Fewer than the page has may be there although the log has more: it ends where there are none.
pub(super) fn entries(repo: i32, after: i64, page: Page) -> Step {
    Step::new(ENTRIES).with(repo).with(after).with(page.rows).with(POSTGRES_PAGE_BYTES_MAX).with(page.bytes)
}

/// Returns the statement for events behind a number, up to another one, in the same way.
pub(super) fn events(repo: i32, span: (i64, i64), page: Page) -> Step {
    events_within(repo, span, page, false)
}

/// Returns the statement for the events of the journal behind a number. Each login can write rows behind its end, which are not read.
pub(super) fn events_to_end(repo: i32, after: i64, page: Page) -> Step {
    events_within(repo, (after, i64::MAX), page, true)
}

fn events_within(repo: i32, (after, upto): (i64, i64), page: Page, to_end: bool) -> Step {
    let step = Step::new(EVENTS).with(repo).with(after).with(upto).with(page.rows);
    step.with(POSTGRES_PAGE_BYTES_MAX).with(page.bytes).with(to_end)
}

/// Gives the error about a value that cannot be read the name of its row, and the next step.
///
/// # Errors
/// The error that `read` has returned.
pub(super) fn in_row<T>(
    table: &str,
    key: impl Display,
    read: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    read().map_err(|err| match err {
        StoreError::Damaged(what) => StoreError::damaged(format!(
            "the row {} of the table `provost.{table}` cannot be read ({what}): have the database's administrator put the row back from a copy of \
             the database, or take the row out if no host has written it",
            visible_name(&key.to_string(), KEY_SHOWN_MAX)
        )),
        err => err,
    })
}
