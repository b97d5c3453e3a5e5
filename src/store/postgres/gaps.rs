//! Skipped numbers of the journal: each gap is sealed, and is one of the store's own facts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use super::session::{Session, Step};
use super::{load, unreadable};
use crate::codec::{int, parse, text};
use crate::journal::{Gap, Key};
use crate::{Anchor, StoreError, StoredEvent};
use provost_base::limits::{AWAKE_MS_MAX, GAPS_LOOKED_AT_MAX};
use provost_base::{Digest, EventSeq, Timestamp};

/// The beginning of these facts' keys; the last event before the gap follows.
const GAP: &str = "gap:";

/// The rows of these facts.
const GAPS: &str =
    "select left(id, 64), left(body, 1024) from provost.meta where repo = $1 and id like 'gap:%'";

#[derive(Default, Serialize, Deserialize)]
struct Body {
    after: Anchor,
    to: EventSeq,
    seal: Digest,
}

/// Returns all gaps of a repository's journal. A gap that cannot even be read counts as one with a broken seal.
///
/// # Errors
/// If the database does not answer.
pub(super) fn gaps(session: &mut Session, repo: i32) -> Result<Vec<Gap>, StoreError> {
    read(&session.rows(Step::new(GAPS).with(repo))?)
}

/// Returns the newest gaps, for the engine, which does not wait long for them.
///
/// # Errors
/// If the database does not answer.
pub(super) fn newest(session: &mut Session, repo: i32) -> Result<Vec<Gap>, StoreError> {
    let newest = Step::new(format!("{GAPS} order by length(id) desc, id desc limit $2")).with(repo);
    let newest = newest.with(GAPS_LOOKED_AT_MAX);
    let rows = session.ask_within(&[newest], Duration::from_millis(AWAKE_MS_MAX))?;
    read(rows.first().map_or(&[], |it| it))
}

/// Returns when the journal has last gone on behind skipped numbers; `None` if it never has, or if that event is missing. What a login has
/// written as a gap does not count.
///
/// # Errors
/// If the database does not answer.
pub(super) fn broke_off(
    session: &mut Session,
    repo: i32,
    key: &Key,
) -> Result<Option<Timestamp>, StoreError> {
    let newest = newest(session, repo)?.into_iter().filter(|it| key.has_sealed(it)).max_by_key(|it| it.to);
    let Some(newest) = newest else { return Ok(None) };
    let at = load::event_time(session, repo, newest.to.next())?;
    Ok(Some(at).filter(|it| *it != Timestamp::default()))
}

fn read(rows: &[Row]) -> Result<Vec<Gap>, StoreError> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (id, body): (&str, &str) =
            (row.try_get(0).map_err(unreadable)?, row.try_get(1).map_err(unreadable)?);
        let seq = id.strip_prefix(GAP).and_then(|it| it.parse().ok()).unwrap_or_default();
        let Body { after, to, seal } = parse(body).unwrap_or_default();
        let after = if after.seq == EventSeq(seq) {
            after
        } else {
            Anchor { seq: EventSeq(seq), mac: Digest::default() }
        };
        found.push(Gap { after, to, seal });
    }
    Ok(found)
}

/// Refuses a journal with a row at a number that no event has: in a gap, or before the first event. No link of the chain leads to such a row, and
/// queries by kind would find it.
///
/// # Errors
/// [`StoreError::Damaged`] with the number.
pub(super) fn must_be_empty(session: &mut Session, repo: i32, key: &Key) -> Result<(), StoreError> {
    let sql = "select e.seq from unnest($2::bigint[], $3::bigint[]) as gap (after, upto)
               cross join lateral (select seq from provost.event where repo = $1 and seq > after and seq <= upto order by seq limit 1) e limit 1";
    let (mut after, mut upto) = (vec![i64::MIN], vec![0]);
    for gap in gaps(session, repo)?.iter().filter(|it| key.has_sealed(it)) {
        after.push(int(gap.after.seq.0)?);
        upto.push(int(gap.to.0)?);
    }
    let rows = session.rows(Step::new(sql).with(repo).with(after).with(upto))?;
    let Some(row) = rows.first() else { return Ok(()) };
    Err(added(row.try_get(0).map_err(unreadable)?))
}

fn added(seq: i64) -> StoreError {
    StoreError::damaged(format!(
        "the row {seq} of the table `provost.event` is at a number that no event has, so a login of the database has added it: have the database's \
         administrator take it out"
    ))
}

/// Refuses an event that no link of the chain leads to. The link of the event before it is in column 8 of its row. A load follows the chain only
/// from the last checkpoint on, and a login can add a row while the load is under way.
///
/// # Errors
/// [`StoreError::Damaged`] with the number.
pub(super) fn must_be_of_the_chain(
    key: &Key,
    it: &StoredEvent,
    row: &Row,
    gaps: &[Gap],
) -> Result<(), StoreError> {
    let before = match row.try_get::<_, Option<&[u8]>>(8).map_err(unreadable)? {
        Some(_) => Some(load::digest(row, 8)?),
        None if it.seq == EventSeq(1) => Some(Digest::default()),
        None => gaps.iter().find(|gap| gap.to.next() == it.seq && key.has_sealed(gap)).map(|gap| gap.seal),
    };
    let has_its_text = it.body.as_ref().is_none_or(|body| Digest::of(body.as_bytes()) == it.hash);
    if has_its_text && before.is_some_and(|before| key.link(&before, it) == it.mac) {
        return Ok(());
    }
    Err(added(int(it.seq.0)?))
}

/// Returns the statement that writes a gap.
///
/// # Errors
/// If it cannot be written as text.
pub(super) fn step(repo: i32, it: &Gap) -> Result<Step, StoreError> {
    let body = text(&Body { after: it.after, to: it.to, seal: it.seal })?;
    Ok(Step::new("insert into provost.meta (repo, id, body) values ($1, $2, $3)")
        .with(repo)
        .with(format!("{GAP}{}", it.after.seq.0))
        .with(body))
}
