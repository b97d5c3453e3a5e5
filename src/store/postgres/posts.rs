//! Messages between agents: their events and their inboxes. Only the event has a message's content.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio_postgres::Row;

use super::bounds::in_row;
use super::load::{Tables, meta};
use super::session::{Session, Step};
use super::unreadable;
use crate::codec::{int, nat, parse};
use crate::{Letters, StoreError, StoredPost};
use provost_base::{EventSeq, PostSeq, Slug};
use provost_domain::post::{Contention, Mailbox};
use provost_domain::{Change, PostChange, State};

/// The key of the number after which the audit log begins.
pub(super) const LOG_FROM: &str = "post_log_from";

/// The key of the number up to which messages were pruned.
pub(super) const PRUNED_TO: &str = "post_pruned_to";

/// The number of messages that are fetched at a time; each may be as large as messages may be.
const PAGE: i64 = 100;

/// The number of lengths of messages that are fetched at a time.
const LENGTHS: i64 = 2_000;

/// Returns the SQL for the number up to which the inbox of `slug`, in repository `$1`, shows no messages.
fn floor(slug: &str) -> String {
    format!(
        "greatest(coalesce((select body::bigint from provost.meta where repo = $1 and id = '{PRUNED_TO}'), 0), \
         coalesce((select e.n from provost.emptied e where e.repo = $1 and e.slug = {slug}), 0))"
    )
}

/// Returns the statements whose rows [`load`] takes.
pub(super) fn to_load(repo: i32) -> [Step; 2] {
    let newest = format!(
        "select c.id, coalesce((select max(i.n) from provost.inbox i
             where i.repo = $1 and i.slug = c.id and i.n > {}), 0) from provost.correspondent c where c.repo = $1",
        floor("c.id")
    );
    [
        Step::new(newest).with(repo),
        Step::new("select slug, n, seq from provost.parked where repo = $1 order by n").with(repo),
    ]
}

/// Loads everything except the messages' content.
///
/// # Errors
/// If a row cannot be read.
pub(super) fn load(
    tables: &Tables,
    newest: &[Row],
    parked: &[Row],
    state: &mut State,
) -> Result<(), StoreError> {
    let mut slugs: Vec<Slug> = Vec::new();
    let mut apply = |change| state.apply(&Change::Post(change));
    tables.each("correspondent", |it: Arc<Mailbox>| {
        slugs.push(it.slug.clone());
        apply(PostChange::PutMailbox(it));
    })?;
    tables.each("footprint", |it| apply(PostChange::PutWorkingSet(it)))?;
    // Cases of agents that were forgotten are useless.
    tables.each("standoff", |it: Arc<Contention>| {
        if slugs.contains(&it.a) && slugs.contains(&it.b) {
            apply(PostChange::PutContention(it));
        }
    })?;
    tables.each("question", |it| apply(PostChange::PutQuestion(it)))?;
    for row in newest {
        let (slug, n) = in_row("correspondent", key(row), || {
            Ok((slug(row)?, PostSeq(nat(row.try_get(1).map_err(unreadable)?)?)))
        })?;
        apply(PostChange::Newest(slug, n));
    }
    for row in parked {
        let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
        let park = || Ok(PostChange::Park(slug(row)?, PostSeq(number(1)?), EventSeq(number(2)?)));
        apply(in_row("parked", key(row), park)?);
    }
    if let Some(from) = tables.meta(LOG_FROM).and_then(|it| it.parse().ok()) {
        apply(PostChange::BeginLog(PostSeq(from)));
    }
    Ok(())
}

/// Returns the key of a row, for an error.
fn key(row: &Row) -> &str {
    row.try_get(0).unwrap_or_default()
}

fn slug(row: &Row) -> Result<Slug, StoreError> {
    Slug::parse(row.try_get(0).map_err(unreadable)?).map_err(StoreError::damaged)
}

/// Removes at most `most` rows of inboxes that no reader can see any more; returns how many. In a transaction of
/// the caller's.
///
/// # Errors
/// An error of the server.
pub(super) fn sweep(session: &mut Session, repo: i32, most: u32) -> Result<u32, StoreError> {
    let pruned_to = meta(session, repo, PRUNED_TO)?.and_then(|it| it.parse::<i64>().ok()).unwrap_or(0);
    let sql = "with due as (
                   select slug, n as upto, true as emptied from provost.emptied where repo = $1
                   union all select id, $2, false from provost.correspondent where repo = $1
               ), gone as (
                   select i.slug, i.n from due join provost.inbox i on i.repo = $1 and i.slug = due.slug and i.n <= due.upto
                   order by due.emptied desc, i.slug, i.n limit $3
               )
               delete from provost.inbox using (select distinct slug, n from gone) as it
               where inbox.repo = $1 and inbox.slug = it.slug and inbox.n = it.n returning 1";
    let gone = session.rows(Step::new(sql).with(repo).with(pruned_to).with(i64::from(most)))?.len();
    let gone = u32::try_from(gone).map_err(StoreError::damaged)?;
    if gone < most {
        let done = "delete from provost.emptied where repo = $1 and not exists
                    (select from provost.inbox i where i.repo = $1 and i.slug = emptied.slug and i.n <= emptied.n)";
        session.rows(Step::new(done).with(repo))?;
    }
    Ok(gone)
}

/// Forgets the places of pruned messages. Their rows in inboxes are removed later.
///
/// # Errors
/// An error of the server.
pub(super) fn prune(session: &mut Session, repo: i32, to: EventSeq) -> Result<(), StoreError> {
    let sql = "select n from provost.post where repo = $1 and seq <= $2 order by seq desc, n desc limit 1";
    let rows = session.rows(Step::new(sql).with(repo).with(int(to.0)?))?;
    let Some(last) = rows.first().map(|it| it.try_get::<_, i64>(0)).transpose().map_err(unreadable)? else {
        return Ok(());
    };
    let note =
        "insert into provost.meta (repo, id, body) values ($1, $2, $3) on conflict (repo, id) do update set
        body = excluded.body";
    session.ask(&[
        Step::new(note).with(repo).with(PRUNED_TO).with(last.to_string()),
        Step::new("delete from provost.parked where repo = $1 and n <= $2").with(repo).with(last),
        Step::new("delete from provost.post where repo = $1 and n <= $2").with(repo).with(last),
    ])?;
    Ok(())
}

/// Passes messages on, oldest first, one by one: at most `bytes_max` bytes as stored, but always one.
///
/// # Errors
/// If the database does not answer, or a row cannot be read.
pub(super) fn each_letter(
    session: &mut Session,
    repo: i32,
    which: &Letters,
    bytes_max: usize,
    each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    match which {
        Letters::In(slug, after) => {
            let sql = format!(
                "select i.n, e.body from provost.inbox i join provost.event e on e.repo = i.repo and e.seq = i.seq
                 where i.repo = $1 and i.slug = $4 and i.n > greatest($2, {}) order by i.n limit $3",
                floor("$4")
            );
            let step =
                |from| Step::new(sql.clone()).with(repo).with(from).with(PAGE).with(slug.as_str().to_owned());
            pages(session, step, cursor(*after), bytes_max, each)
        }
        Letters::After(after) => {
            let sql = "select p.n, e.body from provost.post p join provost.event e on e.repo = p.repo and e.seq = p.seq
                       where p.repo = $1 and p.n > $2 order by p.n limit $3";
            let step = |from| Step::new(sql).with(repo).with(from).with(PAGE);
            pages(session, step, cursor(*after), bytes_max, each)
        }
        Letters::Before(before) => {
            let sql = "select p.n, e.body from provost.post p join provost.event e on e.repo = p.repo and e.seq = p.seq
                       where p.repo = $1 and p.n < $2 order by p.n desc limit $3";
            let step = |from| Step::new(sql).with(repo).with(from).with(PAGE);
            pages(session, step, cursor(*before), bytes_max, each)
        }
        Letters::Newest => {
            let after = newest(session, repo, bytes_max)?;
            each_letter(session, repo, &Letters::After(after), bytes_max, each)
        }
    }
}

/// Returns a cursor for a caller's number; a number too large for the column finds nothing.
fn cursor(after: PostSeq) -> i64 {
    int(after.0).unwrap_or(i64::MAX)
}

fn pages(
    session: &mut Session,
    step: impl Fn(i64) -> Step,
    mut from: i64,
    bytes_max: usize,
    each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let (mut any, mut bytes) = (false, 0_usize);
    loop {
        let rows = session.rows(step(from))?;
        for row in &rows {
            from = row.try_get(0).map_err(unreadable)?;
            // A pruned message has no body.
            let Some(body) = row.try_get::<_, Option<&str>>(1).map_err(unreadable)? else { continue };
            bytes = bytes.saturating_add(body.len());
            if bytes > bytes_max && any {
                return Ok(());
            }
            let Some(letter) = StoredPost::of(PostSeq(nat(from)?), parse(body)?) else { continue };
            any = true;
            if each(letter).is_break() {
                return Ok(());
            }
        }
        if (rows.len() as i64) < PAGE {
            return Ok(());
        }
    }
}

/// Returns the number after which the newest messages begin that have at most `bytes_max` bytes together.
fn newest(session: &mut Session, repo: i32, bytes_max: usize) -> Result<PostSeq, StoreError> {
    let sql =
        "select p.n, octet_length(e.body)::bigint from provost.post p join provost.event e on e.repo = p.repo
        and e.seq = p.seq
               where p.repo = $1 and p.n < $2 order by p.n desc limit $3";
    let (mut from, mut bytes, mut before) = (i64::MAX, 0_usize, None);
    loop {
        let rows = session.rows(Step::new(sql).with(repo).with(from).with(LENGTHS))?;
        for row in &rows {
            from = row.try_get(0).map_err(unreadable)?;
            let n = PostSeq(nat(from)?);
            let len: Option<i64> = row.try_get(1).map_err(unreadable)?;
            bytes = bytes.saturating_add(usize::try_from(len.unwrap_or(0)).unwrap_or(usize::MAX));
            if bytes > bytes_max {
                return Ok(before.map_or(PostSeq(n.0.saturating_sub(1)), |_| n));
            }
            before = Some(n);
        }
        if (rows.len() as i64) < LENGTHS {
            return Ok(PostSeq(0));
        }
    }
}
