//! The statements of the writer, inside a transaction that the caller ends.

use rusqlite::{Connection, OptionalExtension, params};

use super::crew;
use super::{counted, posts, search, usage};
use crate::codec::{ended_at, int, nat, text};
use crate::journal::{Checkpoint, Gap, KEPT};
use crate::{StoreError, StoredEvent};
use provost_base::{AgentId, EffectId, EventSeq, Timestamp};
use provost_domain::{Change, Counters, Effect, JobChange, PasskeyChange, PushChange, Switched, Task, Uses};

/// Applies the stored part of what memory applied, in the same order.
// tidy: long because it has an arm for every change
pub(super) fn apply(db: &Connection, changes: &[Change], finished: &mut i64) -> Result<(), StoreError> {
    let undone = posts::undone(changes);
    let mut filing = posts::Filing::default();
    for (change, _) in changes.iter().zip(undone).filter(|(_, undone)| !undone) {
        match change {
            Change::PutTask(task) => put_task(db, task, None)?,
            Change::FinishTask(task) => {
                *finished = finished.saturating_add(1);
                put_task(db, task, Some(*finished))?;
                usage::count(db, task)?;
            }
            Change::AmendTask(task) => {
                let row = params![task.id().as_str(), text(task)?];
                put(db, "UPDATE task SET body = ?2 WHERE id = ?1 AND live = 0", row)?;
                // The end of a run whose task was cancelled comes late.
                usage::count(db, task)?;
            }
            Change::PutAgent(it) => {
                put(db, "INSERT OR REPLACE INTO agent VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])?;
            }
            Change::DropAgent(id) => put(db, "DELETE FROM agent WHERE id = ?1", params![id.as_str()])?,
            Change::PutMail(it) => {
                let row = params![int(it.seq.0)?, it.to.as_str(), text(it)?];
                put(db, "INSERT OR REPLACE INTO mail VALUES (?1, ?2, ?3)", row)?;
            }
            Change::DropMail(agent, seq) => {
                put(
                    db,
                    "DELETE FROM mail WHERE seq = ?1 AND agent = ?2",
                    params![int(seq.0)?, agent.as_str()],
                )?;
            }
            Change::PutApproval(it) => {
                put(
                    db,
                    "INSERT OR REPLACE INTO approval VALUES (?1, ?2)",
                    params![int(it.id.0)?, text(it)?],
                )?;
            }
            Change::DropApproval(id) => put(db, "DELETE FROM approval WHERE id = ?1", params![int(id.0)?])?,
            Change::PutUses(it) => put_uses(db, it)?,
            Change::PutLock(_)
            | Change::DropLock(_)
            | Change::PutIntent(_)
            | Change::DropIntent(_)
            | Change::PutContract(_)
            | Change::DropContract(_) => coordinated(db, change)?,
            Change::Post(change) => posts::apply(db, change, &mut filing)?,
            Change::PutToken(it) => {
                let row = params![it.digest.to_string(), text(it)?];
                put(db, "INSERT OR REPLACE INTO token VALUES (?1, ?2)", row)?;
            }
            Change::DropToken(digest) => {
                put(db, "DELETE FROM token WHERE digest = ?1", params![digest.to_string()])?;
            }
            Change::Job(change) => put_job(db, change)?,
            Change::PutMerge(it) => {
                let row = params![int(it.number.0)?, text(it)?];
                put(db, "INSERT OR REPLACE INTO merge_entry VALUES (?1, ?2)", row)?;
            }
            Change::DropMerge(number) => {
                put(db, "DELETE FROM merge_entry WHERE number = ?1", params![int(number.0)?])?;
            }
            Change::Passkey(change) => put_passkey(db, change)?,
            Change::Push(change) => put_push(db, change)?,
            Change::Spend(change) => counted::apply(db, change)?,
            Change::Switch(worker, to) => put_switch(db, worker, to.as_ref())?,
            Change::StartEffect(id) => {
                put(db, "UPDATE effect SET started = 1 WHERE id = ?1", params![int(id.0)?])?;
            }
            Change::DropEffect(id) => put(db, "DELETE FROM effect WHERE id = ?1", params![int(id.0)?])?,
            Change::Crew(change) => crew::apply(db, change)?,
            // All of these but the last are in memory only; the last count of a batch is written once.
            Change::Beat(..)
            | Change::CameBy(..)
            | Change::At(..)
            | Change::CarryMail(..)
            | Change::PutUser(_)
            | Change::DropUser(_)
            | Change::HostDown(..)
            | Change::PutAbility(..)
            | Change::DropAbility(..)
            | Change::Grant(..)
            | Change::Apply(..)
            | Change::OweHook(..)
            | Change::OweNotice(..)
            | Change::OweDeed(..)
            | Change::PutWaiter(..)
            | Change::DropWaiter(..)
            | Change::RefuseCircle(..)
            | Change::Count(_) => {}
        }
    }
    Ok(())
}

/// Writes a change to locks, intents or contracts.
fn coordinated(db: &Connection, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::PutLock(it) => {
            let row = params![String::from(it.at.clone()), text(it)?];
            put(db, "INSERT OR REPLACE INTO symbol_lock VALUES (?1, ?2)", row)?;
        }
        Change::DropLock(at) => {
            put(db, "DELETE FROM symbol_lock WHERE at = ?1", params![String::from(at.clone())])?;
        }
        Change::PutIntent(it) => {
            put(db, "INSERT OR REPLACE INTO intent VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])?;
        }
        Change::DropIntent(id) => put(db, "DELETE FROM intent WHERE id = ?1", params![id.as_str()])?,
        Change::PutContract(it) => {
            put(db, "INSERT OR REPLACE INTO contract VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])?;
        }
        Change::DropContract(id) => put(db, "DELETE FROM contract WHERE id = ?1", params![id.as_str()])?,
        _ => {}
    }
    Ok(())
}

/// Writes a switch, if it is a lasting one.
fn put_switch(db: &Connection, worker: &AgentId, to: Option<&Switched>) -> Result<(), StoreError> {
    match to.filter(|it| it.is_lasting()) {
        Some(to) => {
            let row = params![worker.as_str(), text(&(worker, to))?];
            put(db, "INSERT OR REPLACE INTO switched VALUES (?1, ?2)", row)
        }
        None => put(db, "DELETE FROM switched WHERE worker = ?1", params![worker.as_str()]),
    }
}

/// Writes a change to the passkeys on record.
fn put_passkey(db: &Connection, change: &PasskeyChange) -> Result<(), StoreError> {
    match change {
        PasskeyChange::Put(it) => {
            let row = params![&*it.passkey.id, text(it)?];
            put(db, "INSERT OR REPLACE INTO passkey VALUES (?1, ?2)", row)
        }
        PasskeyChange::Drop(id) => put(db, "DELETE FROM passkey WHERE id = ?1", params![&**id]),
        PasskeyChange::Standing(it) => {
            put(db, "INSERT OR REPLACE INTO passkey_reset VALUES (1, ?1)", params![text(it)?])
        }
        // It is made with the store, and never changes.
        PasskeyChange::Daemon(_) => Ok(()),
    }
}

/// Writes a change to the browsers that get notices.
fn put_push(db: &Connection, change: &PushChange) -> Result<(), StoreError> {
    match change {
        PushChange::Put(it) => {
            put(db, "INSERT OR REPLACE INTO push VALUES (?1, ?2)", params![&*it.id, text(&**it)?])
        }
        PushChange::Drop(id) => put(db, "DELETE FROM push WHERE id = ?1", params![&**id]),
    }
}

/// Writes a change to a job.
fn put_job(db: &Connection, change: &JobChange) -> Result<(), StoreError> {
    match change {
        JobChange::Put(it) => {
            put(db, "INSERT OR REPLACE INTO job VALUES (?1, ?2)", params![it.id.as_str(), text(it)?])
        }
        JobChange::PutOrder(id, it) => {
            put(db, "INSERT OR REPLACE INTO job_order VALUES (?1, ?2)", params![id.as_str(), it.as_str()])
        }
        JobChange::DropOrder(id) => put(db, "DELETE FROM job_order WHERE id = ?1", params![id.as_str()]),
        JobChange::PutResult(id, it) => {
            put(db, "INSERT OR REPLACE INTO job_result VALUES (?1, ?2)", params![id.as_str(), text(it)?])
        }
        JobChange::Drop(id) => {
            put(db, "DELETE FROM job WHERE id = ?1", params![id.as_str()])?;
            put(db, "DELETE FROM job_order WHERE id = ?1", params![id.as_str()])?;
            put(db, "DELETE FROM job_result WHERE id = ?1", params![id.as_str()])
        }
    }
}

pub(super) fn put(db: &Connection, sql: &str, row: impl rusqlite::Params) -> Result<(), StoreError> {
    db.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

fn put_task(db: &Connection, task: &Task, finished: Option<i64>) -> Result<(), StoreError> {
    let sql = "INSERT INTO task (id, live, finished_seq, at, status, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (id) DO UPDATE SET live = excluded.live, finished_seq = excluded.finished_seq,
               at = excluded.at, status = excluded.status, body = excluded.body";
    let (id, live, at) = (task.id().as_str(), finished.is_none(), ended_at(task).0);
    put(db, sql, params![id, live, finished, at, task.state.status().as_str(), text(task)?])
}

fn put_uses(db: &Connection, uses: &Uses) -> Result<(), StoreError> {
    if uses.at.is_empty() {
        let sql = "DELETE FROM uses WHERE rule = ?1 AND agent = ?2";
        return put(db, sql, params![uses.rule.as_str(), uses.who.to_string()]);
    }
    let row = params![uses.rule.as_str(), uses.who.to_string(), text(uses)?];
    put(db, "INSERT OR REPLACE INTO uses VALUES (?1, ?2, ?3)", row)
}

/// Writes owed effects. This comes before the changes: one command may owe an effect that a later one of the same batch settles.
pub(super) fn put_effects(db: &Connection, effects: &[(EffectId, Effect)]) -> Result<(), StoreError> {
    for (id, effect) in effects {
        put(db, "INSERT INTO effect VALUES (?1, ?2, 0)", params![int(id.0)?, text(effect)?])?;
    }
    Ok(())
}

pub(super) fn put_events(db: &Connection, events: &[StoredEvent]) -> Result<(), StoreError> {
    let mut insert = db.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for it in events {
        let row = params![
            int(it.seq.0)?,
            it.at.0,
            &*it.kind,
            it.actor.as_str(),
            it.task.as_ref().map(|task| task.as_str()),
            it.body.as_deref(),
            it.hash.as_bytes(),
            it.mac.as_bytes(),
        ];
        insert.execute(row)?;
    }
    Ok(())
}

/// Writes the counters that have changed; one without a row counts as zero.
pub(super) fn put_counters(db: &Connection, before: &Counters, now: &Counters) -> Result<(), StoreError> {
    for ((name, value), (_, stored)) in named(now).into_iter().zip(named(before)) {
        if value != stored {
            // A row is changed in place, so that only its page is written, and no page of an index.
            let sql =
                "INSERT INTO counter VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            put(db, sql, params![name, int(value)?])?;
        }
    }
    Ok(())
}

fn named(counters: &Counters) -> [(&'static str, u64); 12] {
    [
        ("event", counters.event.0),
        ("effect", counters.effect.0),
        ("approval", counters.approval.0),
        ("apply", counters.apply.0),
        ("mail", counters.mail.0),
        ("fence", counters.fence.0),
        ("ticket", counters.ticket.0),
        ("post", counters.post.0),
        ("named", counters.named),
        ("completed", counters.completed),
        ("failed", counters.failed),
        ("timeline", counters.timeline),
    ]
}

pub(super) fn put_gap(db: &Connection, it: &Gap) -> Result<(), StoreError> {
    let row = params![int(it.after.seq.0)?, it.after.mac.as_bytes(), int(it.to.0)?, it.seal.as_bytes()];
    put(db, "INSERT INTO gap VALUES (?1, ?2, ?3, ?4)", row)
}

pub(super) fn put_checkpoint(db: &Connection, it: &Checkpoint) -> Result<(), StoreError> {
    let row = params![
        int(it.head.seq.0)?,
        it.head.mac.as_bytes(),
        int(it.pruned_to.0)?,
        it.counters,
        it.seal.as_bytes()
    ];
    put(db, "INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2, ?3, ?4, ?5)", row)
}

/// Returns one of the store's own few facts.
pub(super) fn meta(db: &Connection, name: &str) -> Result<Option<String>, StoreError> {
    let mut select = db.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(select.query_row([name], |row| row.get(0)).optional()?)
}

pub(super) fn set_meta(db: &Connection, name: &str, value: &str) -> Result<(), StoreError> {
    put(db, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![name, value])
}

/// Forgets the oldest of the finished tasks that ended before `cutoff`.
pub(super) fn prune_tasks(
    db: &Connection,
    cutoff: Timestamp,
    keep: u32,
    most: u32,
) -> Result<u32, StoreError> {
    let old = "DELETE FROM task WHERE rowid IN
               (SELECT rowid FROM task WHERE live = 0 AND at < ?1 ORDER BY at LIMIT ?2) RETURNING id";
    let gone = forget(db, old, params![cutoff.0, most])?;
    // The newest task beyond the limit, and all before it; none if there are not that many.
    let many = "DELETE FROM task WHERE rowid IN
                (SELECT rowid FROM task WHERE live = 0 AND finished_seq <=
                 (SELECT finished_seq FROM task WHERE live = 0 ORDER BY finished_seq DESC LIMIT 1 OFFSET ?1)
                 ORDER BY finished_seq LIMIT ?2) RETURNING id";
    let rest = most.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
    let gone = gone + forget(db, many, params![keep, rest])?;
    u32::try_from(gone).map_err(StoreError::damaged)
}

/// Deletes tasks with their rows in other tables; their ids are free again.
fn forget(db: &Connection, delete: &str, which: impl rusqlite::Params) -> Result<usize, StoreError> {
    let mut delete = db.prepare_cached(delete)?;
    let gone = delete.query_map(which, |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    for id in &gone {
        put(db, "DELETE FROM usage_task WHERE task = ?1", params![id])?;
        put(db, "DELETE FROM counted_task WHERE task = ?1", params![id])?;
        search::forget_task(db, id)?;
    }
    Ok(gone.len())
}

/// Removes the bodies of events from before `cutoff`, strictly in order, so that one number says how far. Those
/// of [`KEPT`] stay.
pub(super) fn prune_events(
    db: &Connection,
    cutoff: Timestamp,
    most: u32,
    pruned_to: &mut EventSeq,
) -> Result<u32, StoreError> {
    let sql = "SELECT seq, at FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![int(pruned_to.0)?, most])?;
    let from = pruned_to.0;
    while let Some(row) = rows.next()? {
        let (seq, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        if at >= cutoff.0 {
            break;
        }
        *pruned_to = EventSeq(nat(seq)?);
    }
    drop(rows);
    let clear = format!(
        "UPDATE event SET body = NULL WHERE seq > ?1 AND seq <= ?2 AND kind NOT IN ('{}')",
        KEPT.join("', '")
    );
    put(db, &clear, params![int(from)?, int(pruned_to.0)?])?;
    search::forget_events(db, EventSeq(from), *pruned_to)?;
    posts::prune(db, *pruned_to)?;
    u32::try_from(pruned_to.0 - from).map_err(StoreError::damaged)
}
