//! The store that Provost ships with: one SQLite file in WAL mode, one connection that writes.
//!
//! ```text
//!   [opened] --load--> [running] --close--> [closed]
//! ```
//! Only a running store can be written; a store that is dropped while running has not stopped cleanly.

mod counted;
mod crew;
mod epoch;
mod foreign;
#[cfg(feature = "postgres")]
mod moving;
mod posts;
mod read;
mod rows;
mod search;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::files::{self, Lease, Stamps};
use super::intake::{End, FileIntake};
use super::journal::{Checkpoint, Key};
use super::marks::{self, As, FoundMarks, Marks};
use super::{
    AnchorSink, CommitError, Head, Indexed, Intake, JournalHead, Loaded, OpensReader, Options, Pruned,
    Retention, Store, StoreError, WAYS_BACK,
};
use super::{codec, migrations};
use provost_base::limits::{
    CHECKPOINT_EVENTS_MAX, CHECKPOINT_EVERY, CHECKPOINT_PAUSE_MS, NUMBERS_SKIPPED, STORE_BUSY_MS,
    USAGE_DAYS_KEPT, WAL_PAGES,
};
use provost_base::{DaemonId, Digest, EventSeq, TaskId, Timestamp};
use provost_domain::{Counters, Durability, EventKind, Outbox, Settings, Task};

pub use epoch::{Restore, Restored, backup, restore};
#[cfg(feature = "postgres")]
pub(super) use epoch::{Settled, highest_of, settled};
pub use foreign::{ForeignEvent, foreign_events};
#[cfg(feature = "postgres")]
pub(super) use moving::{Arriving, Leaving};
pub(super) use read::{look, open_reader};

/// The key of the fact with the end of the intake that the journal includes.
const INTAKE_END: &str = "intake_end";

/// The time for which the sums of usage are kept.
const USAGE_KEPT: Duration = Duration::from_secs(USAGE_DAYS_KEPT * 86_400);

/// The time for which signs of life of the crew can be queried. Older ones are only in the journal.
const BEATS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The store in a state folder.
pub struct SqliteStore {
    db: Connection,
    dir: PathBuf,
    key: Key,
    stage: Stage,
    /// Whether the daemon before this one stopped cleanly.
    clean: bool,
    written: Written,
    /// When this process made its last checkpoint.
    sealed: Option<Instant>,
    always_durable: bool,
    /// The present durability of the connection, if it is known.
    waits: Option<Waits>,
    anchors: Vec<Box<dyn AnchorSink>>,
    /// The marks for the next start, and those that this start has found.
    marks: Marks,
    known: FoundMarks,
    /// The state of the files as this process has left them; no other process writes to them.
    stamps: Option<Stamps>,
    /// Whether the last write has succeeded, so that the state of the files is known.
    settled: bool,
    /// Dropped last, when no other part can write any more.
    _lease: Lease,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Opened,
    Running,
    Closed,
}

/// The durability of a commit, in SQLite's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    Normal,
    Full,
}

/// The state after the last successful commit.
#[derive(Clone, Debug, Default)]
struct Written {
    head: JournalHead,
    counters: Counters,
    /// The place of the last checkpoint.
    checkpoint: EventSeq,
    pruned_to: EventSeq,
    /// The last place given to a finished task.
    finished: i64,
    /// The last event whose words can be searched.
    indexed_to: EventSeq,
}

impl SqliteStore {
    /// Takes the lease, makes or migrates the database, and finds the journal's key.
    ///
    /// # Errors
    /// As for [`super::open`].
    pub fn open(dir: &Path, options: Options) -> Result<Self, StoreError> {
        let dir = files::state_dir(dir)?;
        let lease = Lease::take(&dir)?;
        Self::open_with(dir, lease, options, false)
    }

    /// Opens the store for a caller that has the lease already; `empty` if a new database replaces an earlier one.
    fn open_with(dir: PathBuf, lease: Lease, options: Options, empty: bool) -> Result<Self, StoreError> {
        let places = marks::places(&dir, options.outside.as_deref());
        if !empty {
            files::must_not_be_gone(&dir, marks::exist(&places))?;
        }
        let path = files::database(&dir)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let mut db = connect(&path, flags)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
        if files::is_small(&dir) {
            read::whole(&db)?;
        }
        migrations::migrate(&mut db)?;
        let key = journal_key(&dir, &db)?;
        let (known, marks) = (marks::read(&places, &key), Marks::open(&places));
        Ok(Self {
            db,
            dir,
            key,
            stage: Stage::Opened,
            clean: false,
            written: Written::default(),
            sealed: None,
            always_durable: options.always_durable,
            waits: None,
            anchors: options.anchors,
            marks,
            known,
            stamps: None,
            settled: true,
            _lease: lease,
        })
    }

    /// Returns what a commit waits for at present, according to SQLite: 1 is the kernel, 2 the disk. There is no
    /// other way to see it from outside.
    ///
    /// # Errors
    /// If SQLite does not answer.
    #[doc(hidden)]
    pub fn synchronous(&self) -> Result<u8, StoreError> {
        Ok(self.db.pragma_query_value(None, "synchronous", |row| row.get(0))?)
    }

    /// Sets the durability. It must come before BEGIN; afterwards SQLite ignores it.
    fn wait_for(&mut self, waits: Waits) -> Result<(), StoreError> {
        if self.waits == Some(waits) {
            return Ok(());
        }
        self.waits = None;
        let name = if waits == Waits::Full { "FULL" } else { "NORMAL" };
        self.db.pragma_update(None, "synchronous", name)?;
        self.waits = Some(waits);
        Ok(())
    }

    /// Checks whether a checkpoint is due after so many events since the last one.
    fn seals_after(&self, events: u64) -> bool {
        let paused = self.sealed.is_none_or(|at| at.elapsed() >= Duration::from_millis(CHECKPOINT_PAUSE_MS));
        events >= CHECKPOINT_EVENTS_MAX || (events >= CHECKPOINT_EVERY && paused)
    }

    fn publish(&mut self) {
        for sink in &mut self.anchors {
            sink.publish(&self.written.head);
        }
    }

    fn must_run(&self) -> Result<(), StoreError> {
        if self.stage == Stage::Running { Ok(()) } else { Err(StoreError::NotRunning) }
    }

    /// Checks that the open files are those at their paths, in the state in which this process left them: data in a
    /// file without a name would be lost.
    fn must_be_ours(&self) -> Result<(), StoreError> {
        self.must_run()?;
        self.stamps.as_ref().map_or(Ok(()), |it| it.check(self.settled))
    }

    /// Does the same before a write.
    fn about_to_write(&mut self) -> Result<(), StoreError> {
        self.must_be_ours()?;
        self.settled = false;
        Ok(())
    }

    /// Notes the state of the files after a write.
    fn settle(&mut self) {
        match &mut self.stamps {
            Some(stamps) => stamps.renew(),
            None => self.stamps = Some(Stamps::of(&self.dir)),
        }
        self.settled = true;
    }

    /// Notes this, and how far the journal has come.
    fn wrote(&mut self, safe: As) {
        self.marks.write(&self.key, &self.written.head, &self.written.counters, safe);
        self.settle();
    }

    /// Checks the journal from the last checkpoint on, and continues at its end.
    fn take_up(&mut self) -> Result<Written, StoreError> {
        let read::Tail { last, head, counters } = read::tail(&self.db, &self.key)?;
        if let Some(last) = &last {
            must_have_grown(codec::parse(&last.counters)?, counters)?;
        }
        Ok(Written {
            head,
            counters,
            checkpoint: last.as_ref().map(|it| it.head.seq).unwrap_or_default(),
            pruned_to: last.map(|it| it.pruned_to).unwrap_or_default(),
            finished: read::newest_finished(&self.db)?,
            indexed_to: search::indexed_to(&self.db)?,
        })
    }

    /// Notes that a daemon runs, and leaves a gap in the numbers if the last one did not stop cleanly.
    fn start(&mut self) -> Result<(), StoreError> {
        self.wait_for(Waits::Full)?;
        let mut counters = self.written.counters;
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let epoch = rows::meta(&tx, "epoch")?.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        rows::set_meta(&tx, "epoch", &epoch.saturating_add(1).to_string())?;
        rows::set_meta(&tx, "clean", "0")?;
        if !self.clean {
            let step = rows::meta(&tx, "numbers_skipped")?.and_then(|it| it.parse().ok());
            counters = counters.skipped(step.unwrap_or(NUMBERS_SKIPPED));
            rows::put_counters(&tx, &self.written.counters, &counters)?;
        }
        rows::set_meta(&tx, "numbers_skipped", &NUMBERS_SKIPPED.to_string())?;
        tx.commit()?;
        self.written.counters = counters;
        Ok(())
    }

    /// Writes a batch. With `kept`, messages that are kept after that seal continue it.
    fn write(&mut self, batch: &Outbox, kept: Option<&Digest>) -> Result<(), StoreError> {
        if batch.is_empty() {
            return self.must_run();
        }
        self.about_to_write()?;
        let events = self.key.extend(&self.written.head, &batch.events)?;
        let mut next = self.written.clone();
        next.head = events.last().map_or(next.head, |it| JournalHead { seq: it.seq, mac: it.mac });
        next.counters = codec::counted(&batch.changes).unwrap_or(next.counters);
        next.counters.event = next.head.seq;
        let checkpoint = self
            .seals_after(next.head.seq.0 - next.checkpoint.0)
            .then(|| self.key.checkpoint(next.head, next.pruned_to, &next.counters))
            .transpose()?;
        let answered = batch.events.iter().any(|it| matches!(it.kind, EventKind::ApprovalAnswered { .. }));
        let anchored = checkpoint.is_some() || answered;
        // An anchored head has to survive a loss of power, or an honest journal would look truncated.
        let full = self.always_durable || anchored || batch.durability == Durability::Durable;
        self.wait_for(if full { Waits::Full } else { Waits::Normal })?;

        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rows::put_effects(&tx, &batch.effects)?;
        rows::apply(&tx, &batch.changes, &mut next.finished)?;
        rows::put_events(&tx, &events)?;
        crew::put_timeline(&tx, &batch.events)?;
        if next.counters != self.written.counters {
            rows::put_counters(&tx, &self.written.counters, &next.counters)?;
        }
        if let Some(checkpoint) = &checkpoint {
            rows::put_checkpoint(&tx, checkpoint)?;
            next.checkpoint = checkpoint.head.seq;
        }
        if let Some(end) = kept {
            rows::set_meta(&tx, INTAKE_END, &codec::text(&End::new(&self.key, &next.head, *end))?)?;
        }
        tx.commit()?;
        self.written = next;
        self.wrote(if full { As::Durable } else { As::Written });
        if checkpoint.is_some() {
            self.sealed = Some(Instant::now());
        }
        if anchored {
            self.publish();
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError> {
        if self.stage == Stage::Closed {
            return Err(StoreError::NotRunning);
        }
        self.written = self.take_up()?;
        let (mut received, mut intake) = (Vec::new(), None::<Box<dyn Intake>>);
        if self.stage == Stage::Opened {
            if files::is_small(&self.dir) {
                read::whole_journal(&self.db, &self.key)?;
            }
            read::reached(&self.db, &self.known, self.written.head)?;
            // No daemon has written a store that never had this fact, so none can have crashed.
            self.clean = rows::meta(&self.db, "clean")?.is_none_or(|it| it == "1");
            self.start()?;
            let before = end_of_intake(&self.db, &self.key, &self.written.head)?;
            let (opened, found) = FileIntake::open(&self.dir, &self.key, before)?;
            received = found;
            intake = (!self.always_durable).then(|| Box::new(opened) as Box<dyn Intake>);
            self.stage = Stage::Running;
            self.wrote(As::Durable);
            self.publish();
        }
        let (state, owed) = read::live(&self.db, settings, self.written.counters)?;
        let until = read::event_time(&self.db, self.written.head.seq)?;
        let broke_off = read::broke_off(&self.db)?;
        let (head, daemon, clean) = (Head::default(), DaemonId::default(), self.clean);
        Ok(Loaded { state, owed, head, daemon, clean, until, broke_off, received, intake })
    }

    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError> {
        Ok(self.write(batch, None).map(|()| Head::default())?)
    }

    fn commit_kept(&mut self, batch: &Outbox, seal: &Digest) -> Result<Head, CommitError> {
        Ok(self.write(batch, Some(seal)).map(|()| Head::default())?)
    }

    fn waits_for_disk(&self) -> bool {
        self.always_durable
    }

    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        read::past_task(&self.db, id).map(|task| task.map(Arc::new))
    }

    fn journal_head(&self) -> JournalHead {
        self.written.head
    }

    fn prune(&mut self, now: Timestamp, keep: &Retention, most: u32) -> Result<Pruned, StoreError> {
        self.about_to_write()?;
        let most = most.max(1);
        self.wait_for(if self.always_durable { Waits::Full } else { Waits::Normal })?;
        let mut next = self.written.clone();
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let tasks = rows::prune_tasks(&tx, codec::before(now, keep.tasks), keep.tasks_most, most)?;
        let events = rows::prune_events(&tx, codec::before(now, keep.events), most, &mut next.pruned_to)?;
        let beats = codec::before(now, BEATS_KEPT);
        let beats = crew::prune_timeline(&tx, next.pruned_to, beats, most)?;
        let swept = posts::sweep(&tx, most)?;
        let summed = usage::prune(&tx, codec::before(now, USAGE_KEPT), most)?;
        let counted = counted::prune(&tx, codec::before(now, USAGE_KEPT), most)?;
        if next.pruned_to != self.written.pruned_to {
            let checkpoint: Checkpoint = self.key.checkpoint(next.head, next.pruned_to, &next.counters)?;
            rows::put_checkpoint(&tx, &checkpoint)?;
            next.checkpoint = checkpoint.head.seq;
        }
        tx.commit()?;
        self.written = next;
        self.settle();
        Ok(Pruned { tasks, events, more: [tasks, events, beats, swept, summed, counted].contains(&most) })
    }

    fn index(&mut self, most: u32) -> Result<Indexed, StoreError> {
        self.about_to_write()?;
        self.wait_for(if self.always_durable { Waits::Full } else { Waits::Normal })?;
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (indexed_to, more) = search::index(&tx, most.max(1))?;
        tx.commit()?;
        self.written.indexed_to = indexed_to;
        self.settle();
        Ok(Indexed::left(more))
    }

    fn lacks_index(&self) -> bool {
        self.written.indexed_to < self.written.head.seq
    }

    fn opens_reader(&self) -> Result<OpensReader, StoreError> {
        self.must_be_ours()?;
        let dir = self.dir.clone();
        Ok(Box::new(move || open_reader(&dir)))
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.about_to_write()?;
        self.wait_for(Waits::Full)?;
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let probes = rows::meta(&tx, "probes")?.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        rows::set_meta(&tx, "probes", &probes.saturating_add(1).to_string())?;
        tx.commit()?;
        self.settle();
        Ok(())
    }

    fn look(&self) -> Result<(), StoreError> {
        self.must_be_ours()
    }

    fn note(&self) -> Option<Box<str>> {
        self.marks.note()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.about_to_write()?;
        self.wait_for(Waits::Full)?;
        let mut next = self.written.clone();
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if next.head.seq > next.checkpoint {
            let checkpoint = self.key.checkpoint(next.head, next.pruned_to, &next.counters)?;
            rows::put_checkpoint(&tx, &checkpoint)?;
            next.checkpoint = checkpoint.head.seq;
        }
        rows::set_meta(&tx, "clean", "1")?;
        tx.commit()?;
        self.written = next;
        self.stage = Stage::Closed;
        self.wrote(As::Durable);
        self.marks.sync();
        self.publish();
        Ok(())
    }
}

/// Returns the seal that the first kept message continues which a journal with this head does not include.
fn end_of_intake(db: &Connection, key: &Key, head: &JournalHead) -> Result<Digest, StoreError> {
    Ok(End::before(rows::meta(db, INTAKE_END)?.as_deref(), key, head))
}

/// Opens a connection that trusts only rows of the file: no triggers, views or functions in the schema.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::from_millis(STORE_BUSY_MS))?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// Returns the key. It is made with the journal and never again: a new one would make every earlier link look forged.
fn journal_key(dir: &Path, db: &Connection) -> Result<Key, StoreError> {
    let known = rows::meta(db, "journal_key")?;
    let begun: Option<i64> =
        db.query_row("SELECT seq FROM event LIMIT 1", [], |row| row.get(0)).optional()?;
    let secret = match files::journal_key(dir)? {
        Some(secret) => secret,
        None if known.is_none() && begun.is_none() => files::make_journal_key(dir)?,
        None => {
            return Err(StoreError::Key(no_key(dir)));
        }
    };
    let key = Key::new(&secret);
    let fingerprint = key.fingerprint().to_string();
    match known {
        Some(known) if known != fingerprint => Err(StoreError::Key(wrong_key(dir))),
        Some(_) => Ok(key),
        None => rows::set_meta(db, "journal_key", &fingerprint).map(|()| key),
    }
}

fn no_key(dir: &Path) -> Box<str> {
    let path = dir.join(super::JOURNAL_KEY);
    format!(
        "{} is missing, and the journal cannot be continued without it: bring it back{WAYS_BACK}",
        path.display()
    )
    .into()
}

fn wrong_key(dir: &Path) -> Box<str> {
    let path = dir.join(super::JOURNAL_KEY);
    format!(
        "{} is not the key that this journal was begun with: bring that one back{WAYS_BACK}",
        path.display()
    )
    .into()
}

/// Checks that numbers have only grown; a program that set them back could have one used twice.
pub(super) fn must_have_grown(then: Counters, now: Counters) -> Result<(), StoreError> {
    let grown = then.effect <= now.effect
        && then.approval <= now.approval
        && then.apply <= now.apply
        && then.mail <= now.mail
        && then.fence <= now.fence
        && then.ticket <= now.ticket
        && then.post <= now.post
        && then.named <= now.named
        && then.completed <= now.completed
        && then.failed <= now.failed
        && then.timeline <= now.timeline;
    if grown {
        Ok(())
    } else {
        Err(StoreError::damaged("its numbers were set back since the last checkpoint"))
    }
}
