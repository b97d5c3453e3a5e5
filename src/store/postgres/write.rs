//! The statements of a batch: one for each table that has changes, with its rows as arrays.

use super::batch::{EffectRow, Rows, TaskRow, word};
use super::session::Step;
use crate::codec::int;
use crate::journal::Checkpoint;
use crate::{HostState, StoreError, StoredEvent};
use provost_domain::{Event, Gone};

/// Adds the statements for these rows of a daemon.
pub(super) fn rows(repo: i32, rows: Rows, steps: &mut Vec<Step>) {
    let Rows { keyed, numbered, tasks, amended, effects, down, posts, inbox, parked, emptied, runs, calls } =
        rows;
    for (table, rows) in keyed {
        keyed_rows(repo, table, "text", rows, steps);
    }
    for (table, rows) in numbered {
        keyed_rows(repo, table, "bigint", rows, steps);
    }
    put_tasks(repo, tasks, steps);
    if !amended.is_empty() {
        let sql =
            "update provost.task set body = it.body from unnest($2::text[], $3::text[]) as it (id, body)
                   where task.repo = $1 and task.id = it.id and not task.live";
        let (ids, bodies): (Vec<_>, Vec<_>) = amended.into_iter().unzip();
        steps.push(Step::new(sql).with(repo).with(ids).with(bodies));
    }
    put_effects(repo, effects, steps);
    for (daemon, gone) in down {
        let sql = "update provost.host set clean = false, state = $4
                   where repo = $1 and id = $2 and inc = $3 and state in ('live', 'draining', 'removing')";
        let (host, inc) = (daemon.host.to_string(), daemon.incarnation.cast_signed());
        let state = match gone {
            Gone::Removed => HostState::Removed,
            Gone::Silent => HostState::Down,
        };
        steps.push(Step::new(sql).with(repo).with(host).with(inc).with(state.as_str()));
    }
    if !emptied.is_empty() {
        // These come before the inboxes: later rows of this batch are for a new reader.
        let sql = "insert into provost.emptied (repo, slug, n)
                   select $1, slug, n from (
                       select slug, greatest(n, (select max(i.n) from provost.inbox i where i.repo = $1 and i.slug =
                           it.slug)) as n
                       from unnest($2::text[], $3::bigint[]) as it (slug, n)
                   ) as all_of_them where n is not null
                   on conflict (repo, slug) do update set n = excluded.n";
        let (slugs, numbers): (Vec<_>, Vec<_>) = emptied.into_iter().unzip();
        steps.push(Step::new(sql).with(repo).with(slugs).with(numbers));
    }
    if !posts.is_empty() {
        let sql =
            "insert into provost.post (repo, n, seq, at) select $1, * from unnest($2::bigint[], $3::bigint[],
            $4::bigint[])";
        let (n, seq, at) = three(posts);
        steps.push(Step::new(sql).with(repo).with(n).with(seq).with(at));
    }
    if !inbox.is_empty() {
        let sql = "insert into provost.inbox (repo, slug, n, seq) select $1, * from unnest($2::text[], $3::bigint[],
            $4::bigint[])";
        let (slug, n, seq) = three(inbox);
        steps.push(Step::new(sql).with(repo).with(slug).with(n).with(seq));
    }
    put_parked(repo, parked, steps);
    runs.into_iter().for_each(|it| it.steps(repo, steps));
    calls.into_iter().for_each(|it| it.steps(repo, steps));
}

fn three<A, B, C>(rows: Vec<(A, B, C)>) -> (Vec<A>, Vec<B>, Vec<C>) {
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        a.push(row.0);
        b.push(row.1);
        c.push(row.2);
    }
    (a, b, c)
}

fn keyed_rows<K>(
    repo: i32,
    table: &'static str,
    key: &str,
    rows: std::collections::BTreeMap<K, Option<String>>,
    steps: &mut Vec<Step>,
) where
    Vec<K>: tokio_postgres::types::ToSql + Sync + Send + 'static,
{
    let (mut ids, mut bodies, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (id, body) in rows {
        match body {
            Some(body) => {
                ids.push(id);
                bodies.push(body);
            }
            None => gone.push(id),
        }
    }
    if !ids.is_empty() {
        let sql = format!(
            "insert into provost.{table} (repo, id, body) select $1, * from unnest($2::{key}[], $3::text[])
             on conflict (repo, id) do update set body = excluded.body"
        );
        steps.push(Step::new(sql).with(repo).with(ids).with(bodies));
    }
    if !gone.is_empty() {
        let sql = format!("delete from provost.{table} where repo = $1 and id = any($2::{key}[])");
        steps.push(Step::new(sql).with(repo).with(gone));
    }
}

fn put_tasks(repo: i32, tasks: std::collections::BTreeMap<String, TaskRow>, steps: &mut Vec<Step>) {
    if tasks.is_empty() {
        return;
    }
    let (mut ids, mut finished, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let (mut status, mut bodies) = (Vec::new(), Vec::new());
    for (id, row) in tasks {
        ids.push(id);
        finished.push(row.finished);
        at.push(row.at);
        status.push(row.status);
        bodies.push(row.body);
    }
    let sql = "insert into provost.task (repo, id, live, finished_seq, at, status, body)
               select $1, id, finished is null, finished, at, status, body
               from unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]) as it (id, finished, at, \
               status, body)
               on conflict (repo, id) do update set live = excluded.live, finished_seq = excluded.finished_seq,
               at = excluded.at, status = excluded.status, body = excluded.body";
    steps.push(Step::new(sql).with(repo).with(ids).with(finished).with(at).with(status).with(bodies));
}

fn put_effects(repo: i32, effects: std::collections::BTreeMap<i64, EffectRow>, steps: &mut Vec<Step>) {
    let (mut ids, mut bodies, mut began) = (Vec::new(), Vec::new(), Vec::new());
    let (mut started, mut gone) = (Vec::new(), Vec::new());
    let (mut hosts, mut incs) = (Vec::new(), Vec::new());
    for (id, row) in effects {
        match row {
            EffectRow::New { body, started, by } => {
                ids.push(id);
                bodies.push(body);
                began.push(started);
                hosts.push(by.host.to_string());
                incs.push(by.incarnation.cast_signed());
            }
            EffectRow::Started => started.push(id),
            EffectRow::Gone => gone.push(id),
        }
    }
    if !ids.is_empty() {
        // An existing row is taken over from a host that is down.
        let sql = "insert into provost.effect (repo, id, body, started, host, inc)
                   select $1, * from unnest($2::bigint[], $3::text[], $4::boolean[], $5::text[], $6::bigint[])
                   on conflict (repo, id) do update set started = false, host = excluded.host, inc = excluded.inc";
        let step = Step::new(sql).with(repo).with(ids).with(bodies).with(began);
        steps.push(step.with(hosts).with(incs));
    }
    if !started.is_empty() {
        let sql = "update provost.effect set started = true where repo = $1 and id = any($2::bigint[])";
        steps.push(Step::new(sql).with(repo).with(started));
    }
    if !gone.is_empty() {
        steps.push(
            Step::new("delete from provost.effect where repo = $1 and id = any($2::bigint[])")
                .with(repo)
                .with(gone),
        );
    }
}

fn put_parked(
    repo: i32,
    parked: std::collections::BTreeMap<(String, i64), Option<i64>>,
    steps: &mut Vec<Step>,
) {
    let (mut slugs, mut numbers, mut seqs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut gone) = (Vec::new(), Vec::new());
    for ((slug, n), seq) in parked {
        match seq {
            Some(seq) => {
                slugs.push(slug);
                numbers.push(n);
                seqs.push(seq);
            }
            None => {
                from.push(slug);
                gone.push(n);
            }
        }
    }
    if !slugs.is_empty() {
        let sql = "insert into provost.parked (repo, slug, n, seq) select $1, * from unnest($2::text[], $3::bigint[],
            $4::bigint[])
                   on conflict (repo, slug, n) do update set seq = excluded.seq";
        steps.push(Step::new(sql).with(repo).with(slugs).with(numbers).with(seqs));
    }
    if !gone.is_empty() {
        let sql = "delete from provost.parked using unnest($2::text[], $3::bigint[]) as it (slug, n)
                   where parked.repo = $1 and parked.slug = it.slug and parked.n = it.n";
        steps.push(Step::new(sql).with(repo).with(from).with(gone));
    }
}

/// Adds the statements of a batch's events: the journal, and the timeline with those that belong on it.
///
/// # Errors
/// If a number does not fit its column.
pub(super) fn events(
    repo: i32,
    linked: &[StoredEvent],
    events: &[Event],
    steps: &mut Vec<Step>,
) -> Result<(), StoreError> {
    if linked.is_empty() {
        return Ok(());
    }
    let seqs = linked.iter().map(|it| int(it.seq.0)).collect::<Result<Vec<_>, _>>()?;
    let step = Step::new(
        "insert into provost.event (repo, seq, at, kind, actor, task, body, hash, mac) select $1, * from unnest(
            $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[])",
    );
    let text = |of: &dyn Fn(&StoredEvent) -> Option<String>| linked.iter().map(of).collect::<Vec<_>>();
    steps.push(
        step.with(repo)
            .with(seqs)
            .with(linked.iter().map(|it| it.at.0).collect::<Vec<_>>())
            .with(text(&|it| Some(it.kind.to_string())))
            .with(text(&|it| Some(it.actor.as_str().to_owned())))
            .with(text(&|it| it.task.as_ref().map(|task| task.as_str().to_owned())))
            .with(text(&|it| it.body.as_deref().map(str::to_owned)))
            .with(linked.iter().map(|it| it.hash.as_bytes().to_vec()).collect::<Vec<_>>())
            .with(linked.iter().map(|it| it.mac.as_bytes().to_vec()).collect::<Vec<_>>()),
    );
    timeline(repo, events, steps)
}

fn timeline(repo: i32, events: &[Event], steps: &mut Vec<Step>) -> Result<(), StoreError> {
    let (mut seqs, mut at, mut imported) = (Vec::new(), Vec::new(), Vec::new());
    let (mut agents, mut words, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        let Some(it) = event.topic() else { continue };
        seqs.push(int(event.seq.0)?);
        at.push(it.at.0);
        agents.push(word(it.agent));
        words.push(word(it.word));
        files.push(it.file.map(word));
        imported.extend(event.origin().map(word));
    }
    if !seqs.is_empty() {
        let sql = "insert into provost.timeline (repo, seq, at, agent, word, file)
                   select $1, * from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])";
        steps.push(Step::new(sql).with(repo).with(seqs).with(at).with(agents).with(words).with(files));
    }
    if !imported.is_empty() {
        let sql = "insert into provost.imported (repo, id) select $1, * from unnest($2::text[]) on conflict do nothing";
        steps.push(Step::new(sql).with(repo).with(imported));
    }
    Ok(())
}

/// Returns the statement that writes a checkpoint.
///
/// # Errors
/// If a number does not fit its column.
pub(super) fn checkpoint(repo: i32, it: &Checkpoint) -> Result<Step, StoreError> {
    let sql = "insert into provost.checkpoint (repo, seq, mac, pruned_to, counters, seal) values ($1, $2, $3, $4, $5, $6)
               on conflict (repo, seq) do update set mac = excluded.mac, pruned_to = excluded.pruned_to,
               counters = excluded.counters, seal = excluded.seal";
    Ok(Step::new(sql)
        .with(repo)
        .with(int(it.head.seq.0)?)
        .with(it.head.mac.as_bytes().to_vec())
        .with(int(it.pruned_to.0)?)
        .with(it.counters.clone())
        .with(it.seal.as_bytes().to_vec()))
}
