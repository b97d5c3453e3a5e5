//! Where state rests: one suite for every store.

use std::sync::Arc;
use std::time::Duration;

use provost::base::{EventSeq, Json, MailSeq, TaskId, Timestamp};
use provost::domain::command::Status;
use provost::domain::{Change, Mail, MailKind, Outbox, State};
#[cfg(target_os = "linux")]
use provost::store::Database;
use provost::store::{
    CommitError, FinishedFilter, Loaded, Options, Retention, Store, StoreError, Verdict, open,
};
use provost_test_equipment::{MemoryControl, MemoryStore};
use tempfile::TempDir;

#[cfg(target_os = "linux")]
use crate::support::postgres::{Server, name_of};
use crate::support::storm::{Rest, Storm, agent, rage, settings};

/// A place where a store can be opened again and again.
enum Backend {
    Memory(MemoryControl),
    Sqlite(TempDir),
    #[cfg(target_os = "linux")]
    Postgres(TempDir, Database),
}

const BACKENDS: &[fn() -> Backend] = &[
    || Backend::Memory(MemoryStore::new().control()),
    || Backend::Sqlite(tempfile::tempdir().expect("a folder")),
    #[cfg(target_os = "linux")]
    || Backend::Postgres(tempfile::tempdir().expect("a folder"), Server::shared().database()),
];

impl Backend {
    fn open(&self) -> Box<dyn Store> {
        match self {
            Backend::Memory(control) => Box::new(control.reopen()),
            Backend::Sqlite(dir) => open(dir.path(), Options::default()).expect("the store opens"),
            #[cfg(target_os = "linux")]
            Backend::Postgres(dir, database) => {
                let options = Options { database: Some(database.clone()), ..Options::default() };
                open(dir.path(), options).expect("the store opens")
            }
        }
    }

    fn start(&self) -> (Box<dyn Store>, Loaded) {
        let mut store = self.open();
        let loaded = store.load(settings()).expect("the store loads");
        (store, loaded)
    }

    /// Another one of the same kind.
    fn again(&self) -> Self {
        let at = match self {
            Backend::Memory(_) => 0,
            Backend::Sqlite(_) => 1,
            #[cfg(target_os = "linux")]
            Backend::Postgres(..) => 2,
        };
        BACKENDS[at]()
    }

    /// Makes the next commit, of this batch, fail half-way.
    fn break_next(&self, batch: &mut Outbox) {
        match self {
            Backend::Memory(control) => control.fail_commit(1),
            // No column takes such a number; by then the rows before it are written.
            Backend::Sqlite(_) => batch.changes.push(Change::PutMail(Arc::new(Mail {
                seq: MailSeq(u64::MAX),
                to: agent("nobody"),
                at: Timestamp(0),
                kind: MailKind::Work { task: TaskId::parse("t").expect("an id"), payload: Json::null() },
            }))),
            // The server refuses the events, when it has the rows before them.
            #[cfg(target_os = "linux")]
            Backend::Postgres(_, database) => {
                let sql = "alter table provost.event add constraint broken check (seq < 0) not valid";
                Server::shared().sql(&name_of(database), sql);
            }
        }
    }

    /// Takes that back.
    fn mend(&self, batch: &mut Outbox) {
        match self {
            Backend::Memory(_) => {}
            Backend::Sqlite(_) => drop(batch.changes.pop()),
            #[cfg(target_os = "linux")]
            Backend::Postgres(_, database) => {
                Server::shared().sql(&name_of(database), "alter table provost.event drop constraint broken");
            }
        }
    }

    /// Whether numbers may have been shown that no store has, where a daemon was killed.
    fn loses_numbers(&self) -> bool {
        matches!(self, Backend::Memory(_) | Backend::Sqlite(_))
    }
}

fn each_backend(test: impl Fn(Backend)) {
    BACKENDS.iter().for_each(|make| test(make()));
}

fn new_storm(seed: u64) -> Storm {
    Storm::new(seed, State::new(settings()))
}

fn all_finished(store: &dyn Store) -> Vec<String> {
    let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
    let (tasks, more) =
        reader.finished(FinishedFilter::default(), usize::MAX, usize::MAX).expect("the finished tasks");
    assert!(!more);
    tasks.iter().map(|task| task.id().to_string()).collect()
}

#[test]
fn a_restart_finds_exactly_what_memory_held() {
    each_backend(|backend| {
        for seed in 0..8 {
            let backend = backend.again();
            let (mut store, loaded) = backend.start();
            let mut storm = Storm::new(seed, loaded.state);
            storm.core.decides_at(loaded.daemon);
            rage(&mut *store, &mut storm, 600);
            let (head, state) = (store.journal_head(), storm.core.state());
            assert!(
                state.tasks.iter().next().is_some() && !storm.owed.is_empty(),
                "a storm that says nothing"
            );
            store.close().expect("a clean stop");
            drop(store);

            let (mut store, loaded) = backend.start();
            assert!(loaded.clean);
            assert_eq!(Rest::of(&loaded.state), Rest::of(state), "seed {seed}");
            assert_eq!(loaded.owed, storm.owed.values().cloned().collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(store.journal_head(), head);
            let newest_first: Vec<_> = storm.finished.iter().rev().map(|it| it.id().to_string()).collect();
            assert_eq!(all_finished(&*store), newest_first);
            for task in &storm.finished {
                assert_eq!(store.past_task(task.id()).expect("a read").as_ref(), Some(task));
            }
            let live = loaded.state.tasks.iter().next().expect("one is left").id().clone();
            assert_eq!(store.past_task(&live).expect("a read"), None);
            let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
            assert!(matches!(reader.verify(None).expect("a verdict"), Verdict::Ok { .. }));
        }
    });
}

#[test]
fn a_failed_commit_leaves_nothing() {
    each_backend(|backend| {
        let (mut store, loaded) = backend.start();
        let mut storm = new_storm(1);
        storm.core.decides_at(loaded.daemon);
        rage(&mut *store, &mut storm, 200);
        let (before, owed, head) = (Rest::of(storm.core.state()), storm.owed.clone(), store.journal_head());
        let finished = all_finished(&*store);

        (0..40).for_each(|_| storm.step());
        let mut batch = storm.batch();
        assert!(!batch.events.is_empty());
        backend.break_next(&mut batch);
        store.commit(&batch).expect_err("it was broken");
        assert_eq!(store.journal_head(), head);
        let loaded = store.load(settings()).expect("memory is rebuilt");
        assert_eq!(Rest::of(&loaded.state), before, "and no number was skipped");
        assert_eq!(loaded.owed, owed.into_values().collect::<Vec<_>>());
        assert_eq!(all_finished(&*store), finished);

        store.probe().expect("writing works again");
        backend.mend(&mut batch);
        store.commit(&batch).expect("the same batch, unbroken");
        let loaded = store.load(settings()).expect("memory is rebuilt");
        assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    });
}

#[test]
fn a_batch_that_does_not_follow_the_last_one_is_refused() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(2);
        (0..30).for_each(|_| storm.step());
        let batch = storm.batch();
        store.commit(&batch).expect("the first time");
        assert!(matches!(
            store.commit(&batch),
            Err(CommitError::Failed(StoreError::OutOfStep { got: EventSeq(1), .. }))
        ));
    });
}

#[test]
fn nothing_is_written_before_the_store_was_loaded_or_after_it_was_closed() {
    each_backend(|backend| {
        let mut storm = new_storm(3);
        (0..30).for_each(|_| storm.step());
        let batch = storm.batch();
        let mut store = backend.open();
        assert!(matches!(store.commit(&batch), Err(CommitError::Failed(StoreError::NotRunning))));
        store.load(settings()).expect("a start");
        store.close().expect("a stop");
        assert!(matches!(store.commit(&batch), Err(CommitError::Failed(StoreError::NotRunning))));
    });
}

#[test]
fn numbers_jump_after_a_crash_and_only_then() {
    each_backend(|backend| {
        let (mut store, loaded) = backend.start();
        assert!(loaded.clean, "a new store");
        let mut storm = Storm::new(4, loaded.state);
        rage(&mut *store, &mut storm, 300);
        let last = storm.core.state().counters;
        assert!(last.mail.0 > 0 && last.effect.0 > 0 && last.approval.0 > 0);
        drop(store);

        let (mut store, loaded) = backend.start();
        let now = loaded.state.counters;
        assert!(!loaded.clean);
        if backend.loses_numbers() {
            assert!(now.mail.0 > last.mail.0 + 1_000, "mail {}", now.mail);
            assert!(now.effect.0 > last.effect.0 + 1_000 && now.approval.0 > last.approval.0 + 1_000);
        } else {
            assert_eq!(now, last, "each number was stored before it was shown");
        }
        assert_eq!(now.event, last.event, "the event log has no gaps");
        store.close().expect("a stop");
        drop(store);
        let (_, loaded) = backend.start();
        assert!(loaded.clean);
        assert_eq!(loaded.state.counters, now);
    });
}

#[test]
fn finished_tasks_come_in_pages_newest_first() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(5);
        rage(&mut *store, &mut storm, 600);
        let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
        for status in [None, Some(Status::Completed), Some(Status::Failed), Some(Status::Cancelled)] {
            let wanted =
                storm.finished.iter().rev().filter(|it| status.is_none_or(|is| is == it.state.status()));
            let wanted: Vec<_> = wanted.map(|it| it.id().clone()).collect();
            assert!(wanted.len() > 3, "too few to tell pages by: {status:?}");
            let (mut got, mut before) = (Vec::new(), None);
            loop {
                let filter = FinishedFilter { status, before };
                let (page, more) = reader.finished(filter, 3, usize::MAX).expect("a page");
                assert!(page.len() <= 3);
                before = page.last().map(|it| it.id().clone());
                got.extend(page.iter().map(|it| it.id().clone()));
                if !more {
                    break;
                }
            }
            assert_eq!(got, wanted);
        }
        let gone = FinishedFilter { status: None, before: Some(TaskId::parse("never was").expect("an id")) };
        assert_eq!(reader.finished(gone, 3, usize::MAX).expect("a page"), (Vec::new(), false));
    });
}

#[test]
fn a_page_of_finished_tasks_keeps_to_its_bytes() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(6);
        rage(&mut *store, &mut storm, 400);
        let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
        let all = FinishedFilter::default;
        let size = |count: usize| -> usize {
            let newest = storm.finished.iter().rev().take(count);
            newest.map(|task| serde_json::to_string(&**task).expect("JSON").len()).sum()
        };
        for (bytes, count) in [(size(4), 4), (size(4) - 1, 3), (size(2) + 1, 2), (1, 1), (0, 1)] {
            let (page, more) = reader.finished(all(), usize::MAX, bytes).expect("a page");
            assert_eq!((page.len(), more), (count, true), "{bytes} bytes");
        }
    });
}

#[test]
fn events_come_in_pages_oldest_first() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(7);
        (0..300).for_each(|_| storm.step());
        let batch = storm.batch();
        store.commit(&batch).expect("the commit");
        let (mut reader, mut got) =
            (store.opens_reader().and_then(|open| open()).expect("a reader"), Vec::new());
        loop {
            let page = reader.events_after(EventSeq(got.len() as u64), 7).expect("a page");
            assert!(page.len() <= 7);
            if page.is_empty() {
                break;
            }
            got.extend(page);
        }
        let events: Vec<_> =
            got.iter().map(|it| it.event().expect("an event").expect("not pruned")).collect();
        assert_eq!(events, batch.events);
        let follows = |task: &TaskId| events.iter().filter(|it| it.kind.task() == Some(task)).count();
        let task = storm.finished[0].id();
        assert_eq!(got.iter().filter(|it| it.task.as_ref() == Some(task)).count(), follows(task));
    });
}

#[test]
fn pruning_takes_bounded_bites_and_keeps_counts_and_chain() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(8);
        rage(&mut *store, &mut storm, 600);
        let (state, head) = (Rest::of(storm.core.state()), store.journal_head());
        let keep = Retention {
            tasks: Duration::from_secs(120),
            tasks_most: u32::MAX,
            events: Duration::from_secs(120),
        };
        let cutoff = storm.now.0 - 120_000;
        let (mut bites, mut tasks, mut events) = (0, 0, 0);
        loop {
            let pruned = store.prune(storm.now, &keep, 10).expect("a bite");
            assert!(pruned.tasks <= 10 && pruned.events <= 10);
            (bites, tasks, events) = (bites + 1, tasks + pruned.tasks, events + pruned.events);
            if !pruned.more {
                break;
            }
        }
        assert!(bites > 3 && tasks > 10 && events > 30, "{bites} bites, {tasks} tasks, {events} events");
        let young: Vec<_> = storm.finished.iter().rev().filter(|it| it.updated_at.0 >= cutoff).collect();
        assert!(!young.is_empty());
        let young: Vec<_> = young.iter().map(|it| it.id().to_string()).collect();
        assert_eq!(all_finished(&*store), young);
        let old = storm.finished[0].id();
        assert_eq!(store.past_task(old).expect("a read"), None);

        let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
        let page = reader.events_after(EventSeq(0), 60_000).expect("a page");
        assert_eq!(page.len() as u64, head.seq.0, "events are never forgotten");
        assert!(page.iter().all(|it| it.body.is_none() == (it.at.0 < cutoff)));
        assert_eq!(
            reader.verify(None).expect("a verdict"),
            Verdict::Ok { events: head.seq.0, head, leaps: Vec::new() }
        );
        store.close().expect("a stop");
        drop(store);
        let (_, loaded) = backend.start();
        assert_eq!(Rest::of(&loaded.state), state, "totals among it");
    });
}

#[test]
fn no_more_finished_tasks_are_kept_than_configured_and_the_newest_stay() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(9);
        rage(&mut *store, &mut storm, 400);
        let keep = Retention { tasks: Duration::MAX, tasks_most: 7, events: Duration::MAX };
        let finished = storm.finished.len();
        assert!(finished > 30, "{finished}");
        let mut gone = 0;
        loop {
            let pruned = store.prune(storm.now, &keep, 10).expect("a bite");
            assert!(pruned.tasks <= 10 && pruned.events == 0);
            gone += pruned.tasks as usize;
            if !pruned.more {
                break;
            }
        }
        assert_eq!(gone, finished - 7);
        let newest: Vec<_> = storm.finished.iter().rev().take(7).map(|it| it.id().to_string()).collect();
        assert_eq!(all_finished(&*store), newest);
        let bounded = Retention { tasks_most: 1_000, ..keep };
        assert_eq!(store.prune(storm.now, &bounded, 10).expect("a bite").tasks, 0, "there is room");
    });
}

#[test]
fn a_batch_for_memory_alone_writes_nothing() {
    let store = MemoryStore::new();
    let control = store.control();
    let mut store: Box<dyn Store> = Box::new(store);
    store.load(settings()).expect("a start");
    let mut batch = Outbox::default();
    batch.changes.push(Change::Beat(agent("ada"), Timestamp(1)));
    store.commit(&batch).expect("nothing to do");
    assert!(control.commits().is_empty());
    control.fail_commits(true);
    store.probe().expect_err("writing fails");
    control.fail_commits(false);
    store.probe().expect("writing works");
    control.fail_reads(true);
    store.load(settings()).expect_err("reading fails");
}
