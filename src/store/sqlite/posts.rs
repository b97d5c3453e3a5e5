//! Messages between agents: their events and their inboxes. Only the event has a message's content.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::read::each;
use super::rows::{meta, put, set_meta};
use crate::codec::{int, nat, parse, text};
use crate::{Letters, StoreError, StoredPost};
use provost_base::{EventSeq, PostSeq, Slug, Timestamp};
use provost_domain::post::{Contention, Mailbox};
use provost_domain::{Change, PostChange, State};

/// The key of the number after which the audit log begins.
const LOG_FROM: &str = "post_log_from";

/// The key of the number up to which messages were pruned.
const PRUNED_TO: &str = "post_pruned_to";

/// The statements that each message needs, looked up once for a batch.
#[derive(Default)]
pub(super) struct Filing<'a>(Option<(CachedStatement<'a>, CachedStatement<'a>)>);

impl<'a> Filing<'a> {
    fn file(
        &mut self,
        db: &'a Connection,
        own: Option<Timestamp>,
        n: i64,
        seq: i64,
        to: &[Slug],
    ) -> Result<(), StoreError> {
        if self.0.is_none() {
            let post = db.prepare_cached("INSERT INTO post VALUES (?1, ?2, ?3)")?;
            self.0 = Some((post, db.prepare_cached("INSERT INTO inbox VALUES (?1, ?2, ?3)")?));
        }
        let Some((post, inbox)) = &mut self.0 else { return Ok(()) };
        if let Some(at) = own {
            post.execute(params![n, seq, at.0])?;
        }
        for to in to {
            inbox.execute(params![to.as_str(), n, seq])?;
        }
        Ok(())
    }
}

pub(super) fn apply<'a>(
    db: &'a Connection,
    change: &PostChange,
    filing: &mut Filing<'a>,
) -> Result<(), StoreError> {
    match change {
        PostChange::File { n, seq, at, to, own } => {
            filing.file(db, own.then_some(*at), int(n.0)?, int(seq.0)?, to)
        }
        PostChange::PutMailbox(it) => {
            let row = params![it.slug.as_str(), text(it)?];
            // The row is updated in place: most messages change this row, and one page less is written.
            let sql = "INSERT INTO correspondent VALUES (?1, ?2)
                       ON CONFLICT (slug) DO UPDATE SET body = excluded.body";
            put(db, sql, row)
        }
        PostChange::DropMailbox(slug) => {
            for sql in [
                "DELETE FROM correspondent WHERE slug = ?1",
                "DELETE FROM footprint WHERE slug = ?1",
                // The inbox may have many rows: they are no longer seen, and are removed in small portions.
                "INSERT OR REPLACE INTO emptied SELECT slug, n FROM inbox WHERE slug = ?1 ORDER BY n DESC LIMIT 1",
            ] {
                put(db, sql, params![slug.as_str()])?;
            }
            Ok(())
        }
        PostChange::PutWorkingSet(it) => {
            let row = params![it.slug.as_str(), text(it)?];
            let sql =
                "INSERT INTO footprint VALUES (?1, ?2) ON CONFLICT (slug) DO UPDATE SET body = excluded.body";
            put(db, sql, row)
        }
        PostChange::PutContention(it) => {
            put(db, "INSERT OR REPLACE INTO standoff VALUES (?1, ?2)", params![it.id(), text(it)?])
        }
        PostChange::DropContention(it) => put(db, "DELETE FROM standoff WHERE id = ?1", params![it.id()]),
        PostChange::PutQuestion(it) => {
            put(db, "INSERT OR REPLACE INTO question VALUES (?1, ?2)", params![int(it.n.0)?, text(it)?])
        }
        PostChange::DropQuestion(n) => put(db, "DELETE FROM question WHERE n = ?1", params![int(n.0)?]),
        PostChange::Park(to, n, seq) => {
            put(db, "INSERT INTO parked VALUES (?1, ?2, ?3)", params![to.as_str(), int(n.0)?, int(seq.0)?])
        }
        PostChange::Unpark(to, n) => {
            put(db, "DELETE FROM parked WHERE slug = ?1 AND n = ?2", params![to.as_str(), int(n.0)?])
        }
        PostChange::BeginLog(n) => set_meta(db, LOG_FROM, &n.0.to_string()),
        PostChange::Newest(..) => Ok(()),
    }
}

/// Returns which changes of a batch leave no trace, since a later one undoes them: agents that publish much change
/// their rows with each message, and posts that wait for an absent agent give way to newer ones.
pub(super) fn undone(changes: &[Change]) -> Vec<bool> {
    let (mut rows, mut prints, mut unparked) = (HashSet::new(), HashSet::new(), HashMap::new());
    let mut undone = vec![false; changes.len()];
    for (at, change) in changes.iter().enumerate().rev() {
        let Change::Post(change) = change else { continue };
        match change {
            PostChange::PutMailbox(it) => undone[at] = !rows.insert(&it.slug),
            PostChange::PutWorkingSet(it) => undone[at] = !prints.insert(&it.slug),
            PostChange::Unpark(to, n) => drop(unparked.insert((to, n), at)),
            PostChange::Park(to, n, _) => {
                if let Some(later) = unparked.remove(&(to, n)) {
                    (undone[at], undone[later]) = (true, true);
                }
            }
            _ => {}
        }
    }
    undone
}

/// Loads everything except the messages' content.
pub(super) fn load(db: &Connection, state: &mut State) -> Result<(), StoreError> {
    let mut slugs: Vec<Slug> = Vec::new();
    let mut apply = |change| state.apply(&Change::Post(change));
    each(db, "correspondent", "", |it: Arc<Mailbox>| {
        slugs.push(it.slug.clone());
        apply(PostChange::PutMailbox(it));
    })?;
    each(db, "footprint", "", |it| apply(PostChange::PutWorkingSet(it)))?;
    // Cases of agents that were forgotten are useless.
    each(db, "standoff", "", |it: Arc<Contention>| {
        if slugs.contains(&it.a) && slugs.contains(&it.b) {
            apply(PostChange::PutContention(it));
        }
    })?;
    each(db, "question", "ORDER BY n", |it| apply(PostChange::PutQuestion(it)))?;
    let mut newest = db.prepare("SELECT max(n) FROM inbox WHERE slug = ?1 AND n > ?2")?;
    for slug in slugs {
        let n: Option<i64> = newest.query_row(params![slug.as_str(), floor(db, &slug)?], |row| row.get(0))?;
        apply(PostChange::Newest(slug, PostSeq(nat(n.unwrap_or(0))?)));
    }
    let mut select = db.prepare("SELECT slug, n, seq FROM parked ORDER BY n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let slug = Slug::parse(row.get_ref(0)?.as_str().map_err(StoreError::damaged)?);
        let slug = slug.map_err(StoreError::damaged)?;
        apply(PostChange::Park(slug, PostSeq(nat(row.get(1)?)?), EventSeq(nat(row.get(2)?)?)));
    }
    if let Some(from) = meta(db, LOG_FROM)?.and_then(|it| it.parse().ok()) {
        apply(PostChange::BeginLog(PostSeq(from)));
    }
    Ok(())
}

/// Returns the number up to which an inbox shows no messages any more.
fn floor(db: &Connection, slug: &Slug) -> Result<i64, StoreError> {
    let sql = "SELECT n FROM emptied WHERE slug = ?1";
    let emptied: Option<i64> =
        db.prepare_cached(sql)?.query_row([slug.as_str()], |row| row.get(0)).optional()?;
    Ok(pruned_to(db)?.max(emptied.unwrap_or(0)))
}

fn pruned_to(db: &Connection) -> Result<i64, StoreError> {
    Ok(meta(db, PRUNED_TO)?.and_then(|it| it.parse().ok()).unwrap_or(0))
}

/// Removes at most `most` rows of inboxes that no reader can see any more; returns how many.
pub(super) fn sweep(db: &Connection, most: u32) -> Result<u32, StoreError> {
    let pruned_to = pruned_to(db)?;
    let mut select = db.prepare_cached(
        "SELECT slug, n, 1 FROM emptied UNION ALL SELECT slug, ?1, 0 FROM correspondent ORDER BY 3 DESC, 1",
    )?;
    let mut rows = select.query([pruned_to])?;
    let mut left = most;
    while let Some(row) = rows.next()?.filter(|_| left > 0) {
        let (slug, to, is_emptied): (String, i64, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let sql = "DELETE FROM inbox WHERE slug = ?1 AND n IN
                   (SELECT n FROM inbox WHERE slug = ?1 AND n <= ?2 ORDER BY n LIMIT ?3)";
        let gone = db.prepare_cached(sql)?.execute(params![slug, to, left])?;
        left = left.saturating_sub(u32::try_from(gone).map_err(StoreError::damaged)?);
        if is_emptied && left > 0 {
            put(db, "DELETE FROM emptied WHERE slug = ?1", params![slug])?;
        }
    }
    Ok(most - left)
}

/// Forgets the places of pruned messages. Their rows in inboxes are removed later.
pub(super) fn prune(db: &Connection, to: EventSeq) -> Result<(), StoreError> {
    let sql = "SELECT max(n) FROM (SELECT n FROM post WHERE seq <= ?1 ORDER BY n DESC LIMIT 1)";
    let last: Option<i64> = db.prepare_cached(sql)?.query_row([int(to.0)?], |row| row.get(0))?;
    let Some(last) = last else { return Ok(()) };
    set_meta(db, PRUNED_TO, &last.to_string())?;
    put(db, "DELETE FROM parked WHERE n <= ?1", params![last])?;
    put(db, "DELETE FROM post WHERE n <= ?1", params![last])
}

/// Passes messages on, oldest first, one by one: at most `bytes_max` bytes as stored, but always one.
pub(super) fn each_letter(
    db: &Connection,
    which: &Letters,
    bytes_max: usize,
    each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    match which {
        Letters::In(slug, after) => {
            let sql = "SELECT inbox.n, event.body FROM inbox JOIN event ON event.seq = inbox.seq
                       WHERE inbox.slug = ?1 AND inbox.n > ?2 ORDER BY inbox.n";
            page(db, sql, params![slug.as_str(), cursor(*after).max(floor(db, slug)?)], bytes_max, each)
        }
        Letters::After(after) => {
            let sql = "SELECT post.n, event.body FROM post JOIN event ON event.seq = post.seq
                       WHERE post.n > ?1 ORDER BY post.n";
            page(db, sql, params![cursor(*after)], bytes_max, each)
        }
        Letters::Before(before) => {
            let sql = "SELECT post.n, event.body FROM post JOIN event ON event.seq = post.seq
                       WHERE post.n < ?1 ORDER BY post.n DESC";
            page(db, sql, params![cursor(*before)], bytes_max, each)
        }
        Letters::Newest => each_letter(db, &Letters::After(newest(db, bytes_max)?), bytes_max, each),
    }
}

/// Returns a cursor for a caller's number; a number too large for SQLite finds nothing.
fn cursor(after: PostSeq) -> i64 {
    int(after.0).unwrap_or(i64::MAX)
}

fn page(
    db: &Connection,
    sql: &str,
    from: impl rusqlite::Params,
    bytes_max: usize,
    each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(from)?;
    let (mut any, mut bytes) = (false, 0_usize);
    while let Some(row) = rows.next()? {
        // A pruned message has no body.
        let Some(body) = row.get_ref(1)?.as_str_or_null().map_err(StoreError::damaged)? else { continue };
        bytes = bytes.saturating_add(body.len());
        if bytes > bytes_max && any {
            break;
        }
        let Some(letter) = StoredPost::of(PostSeq(nat(row.get(0)?)?), parse(body)?) else { continue };
        any = true;
        if each(letter).is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the number after which the newest messages begin that have at most `bytes_max` bytes together.
fn newest(db: &Connection, bytes_max: usize) -> Result<PostSeq, StoreError> {
    let sql = "SELECT post.n, octet_length(event.body) FROM post JOIN event ON event.seq = post.seq
               ORDER BY post.n DESC";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    let (mut bytes, mut before) = (0_usize, None);
    while let Some(row) = rows.next()? {
        let n = PostSeq(nat(row.get(0)?)?);
        let len: Option<i64> = row.get(1)?;
        bytes = bytes.saturating_add(usize::try_from(len.unwrap_or(0)).unwrap_or(usize::MAX));
        if bytes > bytes_max {
            return Ok(before.map_or(PostSeq(n.0.saturating_sub(1)), |_| n));
        }
        before = Some(n);
    }
    Ok(PostSeq(0))
}
