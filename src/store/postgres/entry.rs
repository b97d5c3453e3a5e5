//! Entries of the log, between their columns and their sealed form.

use serde::Deserialize;
use tokio_postgres::Row;

use super::bounds::in_row;
use super::session::Step;
use super::start::mac_of;
use super::unreadable;
use crate::codec::{int, nat, parse};
use crate::host_keys::Signature;
use crate::{SealedEntry, StoreError};
use provost_base::{DaemonId, EntryNo, EventSeq, Timestamp};

/// Returns the statement that writes an entry, with its host's signature.
///
/// # Errors
/// If a number does not fit its column.
pub(super) fn step(repo: i32, it: &SealedEntry, signature: Signature) -> Result<Step, StoreError> {
    let sql =
        "insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig) values ($1, $2, $3, $4,
        $5, $6, $7, $8, $9, $10)";
    Ok(Step::new(sql)
        .with(repo)
        .with(int(it.n.0)?)
        .with(it.by.host.to_string())
        .with(int(it.by.incarnation)?)
        .with(int(it.own_n)?)
        .with(it.at.0)
        .with(i32::try_from(it.format).map_err(StoreError::damaged)?)
        .with(it.body.to_string())
        .with(it.mac.as_bytes().to_vec())
        .with(signature.into_bytes()))
}

/// Returns the signature of an entry, if it has one.
///
/// # Errors
/// [`StoreError::Damaged`] if the column cannot be read.
pub(super) fn signature(row: &Row) -> Result<Option<&[u8]>, StoreError> {
    row.try_get(8).map_err(unreadable)
}

/// Reads an entry from its columns.
///
/// # Errors
/// [`StoreError::Damaged`] if it cannot be read, with its number.
pub(super) fn read(row: &Row) -> Result<SealedEntry, StoreError> {
    let n: i64 = row.try_get(0).map_err(unreadable)?;
    in_row("entry", n, || columns(row))
}

fn columns(row: &Row) -> Result<SealedEntry, StoreError> {
    let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
    let host: &str = row.try_get(1).map_err(unreadable)?;
    let format: i32 = row.try_get(5).map_err(unreadable)?;
    Ok(SealedEntry {
        n: EntryNo(number(0)?),
        by: DaemonId { host: host.parse().map_err(StoreError::damaged)?, incarnation: number(2)? },
        own_n: number(3)?,
        at: Timestamp(row.try_get(4).map_err(unreadable)?),
        format: u32::try_from(format).map_err(StoreError::damaged)?,
        body: row.try_get::<_, String>(6).map_err(unreadable)?.into(),
        mac: mac_of(row.try_get(7).map_err(unreadable)?)?,
    })
}

/// Returns the numbers of an entry's events. The code that folds the entry checks its link.
///
/// # Errors
/// [`StoreError::Damaged`] if the body cannot be read.
pub(super) fn events_of(it: &SealedEntry) -> Result<Vec<EventSeq>, StoreError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        events: Vec<EventSeq>,
    }
    in_row("entry", it.n, || Ok(parse::<Body>(&it.body)?.events))
}
