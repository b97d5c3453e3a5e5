//! Recovery after damage: copies of the store, restoring from one, and numbers that were never issued before.
//!
//! The lost history had numbers, and other programs may have seen them: a file server has recorded a fence, a
//! reader has a cursor. A store after a loss therefore begins an *epoch*: all numbers continue beyond every number
//! that is known to have been issued, and the journal seals the gap, so that it verifies and is visible.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::{SqliteStore, connect, end_of_intake, read, rows, search};
use crate::files::{self, Lease};
use crate::intake::FileIntake;
use crate::journal::{Anchor, Gap, Key, RESTORED, Walk};
use crate::marks::{self, As, FoundMarks};
use crate::{Options, StoreError, codec, migrations};
use provost_base::limits::{BACKUP_WAIT_MS_MAX, NUMBERS_SKIPPED};
use provost_base::{ApplyId, EventSeq, HostId, Json, Secret, Ticket, Timestamp};
use provost_domain::{Counters, Effect, Event, EventKind, provost};

/// The interval in which a store that another program holds is tried again.
const BACKUP_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The store with which to continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restore<'a> {
    /// A copy that [`backup`] has made of this journal.
    From(&'a Path),
    /// A copy, possibly of another journal: of another repository, or of this one on another machine.
    FromElsewhere(&'a Path),
    /// The present store, without its newest history.
    AsItIs,
    /// An empty store, without any history.
    Empty,
}

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The end of the journal now.
    pub head: Anchor,
    /// The last event that was kept.
    pub kept: EventSeq,
    /// The path of the damaged files.
    pub aside: Option<PathBuf>,
}

/// Writes a copy of a store into one file, which must not exist, while a daemon may be at work. The copy includes
/// the journal's key: without it, no copy can be continued.
///
/// # Errors
/// If the store cannot be read or the file cannot be written; then there is no file.
pub fn backup(dir: &Path, to: &Path) -> Result<Anchor, StoreError> {
    let to = &files::to_be_made(to)?;
    let dir = files::existing_dir(dir)?;
    let db = connect(&files::existing_database(&dir)?, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let secret = files::journal_key(&dir)?.ok_or_else(|| {
        StoreError::Key("the journal's key is missing; a backup without it is useless".into())
    })?;
    files::new_private(to)?;
    let copied = copy(&db, &secret, to).and_then(|head| {
        must_have_all(&dir, &db, &secret, &head)?;
        Ok(head)
    });
    copied.inspect_err(|_| drop(std::fs::remove_file(to)))
}

/// Checks that a journal that ends at `head` has all acknowledged messages. A running daemon has recorded what it
/// had acknowledged before it was asked for the backup; a killed daemon has left that to the next start.
fn must_have_all(dir: &Path, db: &Connection, secret: &Secret, head: &Anchor) -> Result<(), StoreError> {
    let key = Key::new(secret);
    let messages = FileIntake::open(dir, &key, end_of_intake(db, &key, head)?)?.1.len();
    if messages == 0 || Lease::take(dir).is_err() {
        Ok(())
    } else {
        Err(StoreError::NotOnRecord { messages })
    }
}

fn copy(from: &Connection, secret: &Secret, to: &Path) -> Result<Anchor, StoreError> {
    let mut into = connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let work = Backup::new(from, &mut into)?;
    let until = Instant::now() + Duration::from_millis(BACKUP_WAIT_MS_MAX);
    loop {
        // All pages at once, so that the copy is of one moment; writers continue meanwhile.
        match work.step(-1)? {
            StepResult::Done => break,
            _ if Instant::now() > until => return Err(StoreError::Held),
            _ => std::thread::sleep(BACKUP_AGAIN_AFTER),
        }
    }
    drop(work);
    into.pragma_update(None, "journal_mode", "DELETE")?;
    into.execute_batch("CREATE TABLE backup (journal_key BLOB NOT NULL) STRICT")?;
    into.execute("INSERT INTO backup VALUES (?1)", params![secret.expose()])?;
    read::whole(&into)?;
    let head = read::whole_journal(&into, &Key::new(secret))?;
    drop(into);
    files::sync(to)?;
    Ok(head)
}

/// Continues after damage, with numbers that no program has seen. The present store is put aside, unless it is the
/// one that continues.
///
/// # Errors
/// [`StoreError::InUse`] while a daemon runs; otherwise the reason why that store cannot be continued. The present
/// store still exists then, under its own name or beside it.
pub fn restore(
    dir: &Path,
    outside: Option<&Path>,
    how: Restore<'_>,
    now: Timestamp,
) -> Result<Restored, StoreError> {
    let dir = files::state_dir(dir)?;
    let lease = Lease::take(&dir)?;
    let places = marks::places(&dir, outside);
    // An unreadable key is put aside with the rest.
    let before = files::journal_key(&dir).ok().flatten();
    let mut known = before.as_ref().map(|it| marks::read(&places, &Key::new(it))).unwrap_or_default();
    let from = match how {
        Restore::From(path) => Some(fetched(&dir, path, before.as_ref())?),
        Restore::FromElsewhere(path) => Some(fetched(&dir, path, None)?),
        Restore::AsItIs | Restore::Empty => None,
    };
    let aside = match how {
        Restore::AsItIs => None,
        Restore::From(_) | Restore::FromElsewhere(_) | Restore::Empty => files::set_aside(&dir, now)?,
    };
    if let Some(secret) = from {
        files::rename_into_place(&dir)?;
        if before.as_ref().is_none_or(|it| it.expose() != secret.expose()) {
            files::replace_journal_key(&dir, &secret, now)?;
        }
        let more = marks::read(&places, &Key::new(&secret));
        known = known.and(more);
    } else if how == Restore::Empty && before.is_none() {
        files::set_key_aside(&dir, now)?;
    }
    let options = Options { outside: outside.map(Path::to_owned), ..Options::default() };
    let mut store = SqliteStore::open_with(dir, lease, options, how == Restore::Empty)?;
    let why = match how {
        Restore::From(_) | Restore::FromElsewhere(_) => "from a backup",
        Restore::AsItIs => "as it is",
        Restore::Empty => "empty",
    };
    let (head, kept) = store.begin_epoch(why, &known, now)?;
    Ok(Restored { head, kept, aside })
}

/// Copies a backup beside the store, checks it, and takes its key out of it. It must be of the journal with `key`,
/// if there is one.
fn fetched(dir: &Path, path: &Path, key: Option<&Secret>) -> Result<Secret, StoreError> {
    let half = files::half(dir);
    files::fetch(path, &half)?;
    let taken = (|| -> Result<Secret, StoreError> {
        let db = connect(&half, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        if migrations::check(&db)? == 0 {
            return Err(StoreError::no_backup(path));
        }
        let kept: Vec<u8> = db
            .query_row("SELECT journal_key FROM backup", [], |row| row.get(0))
            .map_err(|_| StoreError::no_backup(path))?;
        let secret = Secret::new(kept);
        if key.is_some_and(|it| it.expose() != secret.expose()) {
            return Err(StoreError::AnotherJournal { path: path.display().to_string().into() });
        }
        read::whole(&db)?;
        read::whole_journal(&db, &Key::new(&secret))?;
        db.execute_batch("DROP TABLE backup")?;
        Ok(secret)
    })();
    if taken.is_err() {
        let _left = std::fs::remove_file(&half);
    } else {
        files::sync(&half)?;
    }
    taken
}

impl SqliteStore {
    /// Moves all numbers beyond those that are known to have been issued, and records that.
    fn begin_epoch(
        &mut self,
        why: &str,
        known: &FoundMarks,
        now: Timestamp,
    ) -> Result<(Anchor, EventSeq), StoreError> {
        let checkpoints = read::checkpoints(&self.db, "ORDER BY seq")?;
        let stored = read::counters(&self.db)?;
        let mut highest = stored;
        for it in checkpoints.iter().filter(|it| self.key.is_sealed(it)) {
            highest = higher(highest, codec::parse(&it.counters)?);
        }
        for mark in known.all() {
            highest = higher(highest, Counters { event: mark.head.seq, ..mark.counters });
        }
        if known.all().next().is_none() {
            // Nothing shows which numbers were issued after this; but no store issues one each millisecond for as
            // long as there have been clocks. A reader that takes numbers as doubles still reads them exactly, up
            // to 2 to the power of 53.
            highest = higher(highest, at_least(u64::try_from(now.0).unwrap_or(0)));
        }
        let mut walk = Walk::whole(&self.key, checkpoints, read::gaps(&self.db)?, None);
        read::walk_after(&self.db, &mut walk)?;
        walk.leap()?;
        let (kept, pruned_to) = (walk.head(), walk.pruned_to());
        let mut next = highest.skipped(NUMBERS_SKIPPED);
        next.apply = ApplyId(next.apply.0.saturating_add(NUMBERS_SKIPPED));
        next.ticket = Ticket(next.ticket.0.saturating_add(NUMBERS_SKIPPED));
        let to = EventSeq(highest.event.0.max(kept.seq.0).saturating_add(NUMBERS_SKIPPED));
        let gap = self.key.gap(kept, to);
        let details = serde_json::json!({
            "kept_to": kept.seq, "numbers_known_to": highest.event, "goes_on_at": to.next(), "fences_above": next.fence,
        });
        let last = read::event_time(&self.db, kept.seq)?;
        let event = Event {
            seq: to.next(),
            at: now.max(last),
            actor: provost(),
            host: HostId::default(),
            kind: EventKind::Recorded {
                what: RESTORED.into(),
                subject: why.into(),
                details: Json::from_value(&details),
            },
        };
        next.event = event.seq;
        let linked = self.key.extend(&gap.head(), &[event])?;
        let head = linked.last().map_or(gap.head(), |it| Anchor { seq: it.seq, mac: it.mac });
        let checkpoint = self.key.checkpoint(head, pruned_to, &next)?;
        self.write_epoch(&gap, &linked, (&stored, &next), &checkpoint, kept.seq)?;
        self.marks.write(&self.key, &head, &next, As::Durable);
        self.marks.sync();
        Ok((head, kept.seq))
    }

    fn write_epoch(
        &mut self,
        gap: &Gap,
        linked: &[crate::StoredEvent],
        (before, next): (&Counters, &Counters),
        checkpoint: &crate::journal::Checkpoint,
        kept: EventSeq,
    ) -> Result<(), StoreError> {
        self.wait_for(super::Waits::Full)?;
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Rows about events that no longer exist.
        for table in ["checkpoint", "timeline", "post", "inbox", "parked"] {
            tx.execute(&format!("DELETE FROM {table} WHERE seq > ?1"), [codec::int(kept.0)?])?;
        }
        search::forget_after(&tx, kept)?;
        // Effects that were owed then may have been carried out since, and a token that was valid then may have been revoked.
        settle_owed(&tx)?;
        tx.execute("DELETE FROM token", [])?;
        rows::put_gap(&tx, gap)?;
        rows::put_events(&tx, linked)?;
        rows::put_counters(&tx, before, next)?;
        rows::put_checkpoint(&tx, checkpoint)?;
        Ok(tx.commit()?)
    }
}

/// Settles what may have been done already: workers, pictures and jobs count as begun, so that the next start
/// reports them lost; hooks with their releases, and notices, are settled.
fn settle_owed(tx: &Connection) -> Result<(), StoreError> {
    let mut select = tx.prepare("SELECT id, body FROM effect")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        let (id, effect) = (row.0, codec::parse::<Effect>(&row.1)?);
        match settled(&effect) {
            Settled::Begun => drop(tx.execute("UPDATE effect SET started = 1 WHERE id = ?1", [id])?),
            Settled::Gone => drop(tx.execute("DELETE FROM effect WHERE id = ?1", [id])?),
            Settled::Owed => {}
        }
    }
    Ok(())
}

/// The fate of an owed effect that may have been carried out in a lost history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settled {
    /// It counts as begun, and is reported as lost.
    Begun,
    /// It counts as done.
    Gone,
    /// It is still owed.
    Owed,
}

pub(crate) fn settled(effect: &Effect) -> Settled {
    match effect {
        Effect::SpawnWorker { .. } | Effect::Capture { .. } | Effect::RunJob { .. } => Settled::Begun,
        Effect::RunHook { .. } | Effect::SignalAck { .. } | Effect::SendNotice { .. } => Settled::Gone,
        // A requested end stays in force, files are watched as long as their task goes on, and the files show how
        // far an apply came. Discarded files are removed even after a restore from an older backup.
        Effect::StopWorker { .. }
        | Effect::WatchFiles { .. }
        | Effect::WriteFiles { .. }
        | Effect::DropChanges { .. }
        // Each entry has its progress on record, and the trunk shows the rest.
        | Effect::RunMerges { .. } => Settled::Owed,
    }
}

/// Returns the largest number of each kind.
#[cfg(feature = "postgres")]
pub(crate) fn highest_of(all: &[Counters]) -> Counters {
    all.iter().fold(Counters::default(), |a, b| higher(a, *b))
}

/// Returns the larger number of each kind.
fn higher(a: Counters, b: Counters) -> Counters {
    Counters {
        event: a.event.max(b.event),
        effect: a.effect.max(b.effect),
        approval: a.approval.max(b.approval),
        apply: a.apply.max(b.apply),
        mail: a.mail.max(b.mail),
        fence: a.fence.max(b.fence),
        ticket: a.ticket.max(b.ticket),
        post: a.post.max(b.post),
        named: a.named.max(b.named),
        completed: a.completed.max(b.completed),
        failed: a.failed.max(b.failed),
        timeline: a.timeline.max(b.timeline),
    }
}

/// Returns counters in which every issued number is this one.
fn at_least(n: u64) -> Counters {
    use provost_base::{ApprovalId, EffectId, Fence, MailSeq, PostSeq};
    Counters {
        event: EventSeq(n),
        effect: EffectId(n),
        approval: ApprovalId(n),
        apply: ApplyId(n),
        mail: MailSeq(n),
        fence: Fence(n),
        ticket: Ticket(n),
        post: PostSeq(n),
        ..Counters::default()
    }
}
