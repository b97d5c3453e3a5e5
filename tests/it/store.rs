//! Where state rests: one suite for every store, and what only files can suffer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost::base::{EventSeq, Json, MailSeq, TaskId, Timestamp};
use provost::domain::command::{Durability, Record, Status};
use provost::domain::{Change, Mail, MailKind, Outbox, State};
use provost::store::{
    FinishedFilter, Loaded, MemoryControl, MemoryStore, Options, Retention, Store, StoreError, Verdict, open,
    open_reader,
};
use tempfile::TempDir;

use crate::storm::{Rest, Storm, agent, settings};

/// A place where a store can be opened again and again.
enum Backend {
    Memory(MemoryControl),
    Sqlite(TempDir),
}

const BACKENDS: [fn() -> Backend; 2] = [
    || Backend::Memory(MemoryStore::new().control()),
    || Backend::Sqlite(tempfile::tempdir().expect("a folder")),
];

impl Backend {
    fn open(&self) -> Box<dyn Store> {
        match self {
            Backend::Memory(control) => Box::new(control.reopen()),
            Backend::Sqlite(dir) => open(dir.path(), Options::default()).expect("the store opens"),
        }
    }

    fn start(&self) -> (Box<dyn Store>, Loaded) {
        let mut store = self.open();
        let loaded = store.load(settings()).expect("the store loads");
        (store, loaded)
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
        }
    }
}

fn each_backend(test: impl Fn(Backend)) {
    BACKENDS.iter().for_each(|make| test(make()));
}

/// A storm of `steps`, committed every few commands.
fn rage(store: &mut dyn Store, storm: &mut Storm, steps: u32) {
    for step in 0..steps {
        storm.step();
        if step % 3 == 2 {
            let batch = storm.batch();
            store.commit(&batch).expect("the commit");
        }
    }
    let batch = storm.batch();
    store.commit(&batch).expect("the last commit");
}

fn new_storm(seed: u64) -> Storm {
    Storm::new(seed, State::new(settings()))
}

fn all_finished(store: &dyn Store) -> Vec<String> {
    let mut reader = store.reader().expect("a reader");
    let (tasks, more) =
        reader.finished(FinishedFilter::default(), usize::MAX, usize::MAX).expect("the finished tasks");
    assert!(!more);
    tasks.iter().map(|task| task.id().to_string()).collect()
}

#[test]
fn a_restart_finds_exactly_what_memory_held() {
    each_backend(|backend| {
        for seed in 0..8 {
            let backend = match &backend {
                Backend::Memory(_) => BACKENDS[0](),
                Backend::Sqlite(_) => BACKENDS[1](),
            };
            let (mut store, loaded) = backend.start();
            let mut storm = Storm::new(seed, loaded.state);
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
            let mut reader = store.reader().expect("a reader");
            assert!(matches!(reader.verify(None).expect("a verdict"), Verdict::Ok { .. }));
        }
    });
}

#[test]
fn a_failed_commit_leaves_nothing() {
    each_backend(|backend| {
        let (mut store, _) = backend.start();
        let mut storm = new_storm(1);
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
        if matches!(backend, Backend::Sqlite(_)) {
            batch.changes.pop();
        }
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
        assert!(matches!(store.commit(&batch), Err(StoreError::OutOfStep { got: EventSeq(1), .. })));
    });
}

#[test]
fn nothing_is_written_before_the_store_was_loaded_or_after_it_was_closed() {
    each_backend(|backend| {
        let mut storm = new_storm(3);
        (0..30).for_each(|_| storm.step());
        let batch = storm.batch();
        let mut store = backend.open();
        assert!(matches!(store.commit(&batch), Err(StoreError::NotRunning)));
        store.load(settings()).expect("a start");
        store.close().expect("a stop");
        assert!(matches!(store.commit(&batch), Err(StoreError::NotRunning)));
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
        assert!(now.mail.0 > last.mail.0 + 1_000, "mail {}", now.mail);
        assert!(now.effect.0 > last.effect.0 + 1_000 && now.approval.0 > last.approval.0 + 1_000);
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
        let mut reader = store.reader().expect("a reader");
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
        let mut reader = store.reader().expect("a reader");
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
        let (mut reader, mut got) = (store.reader().expect("a reader"), Vec::new());
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
        let keep = Retention { tasks: Duration::from_secs(120), events: Duration::from_secs(120) };
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

        let mut reader = store.reader().expect("a reader");
        let page = reader.events_after(EventSeq(0), 60_000).expect("a page");
        assert_eq!(page.len() as u64, head.seq.0, "events are never forgotten");
        assert!(page.iter().all(|it| it.body.is_none() == (it.at.0 < cutoff)));
        assert_eq!(reader.verify(None).expect("a verdict"), Verdict::Ok { events: head.seq.0, head });
        store.close().expect("a stop");
        drop(store);
        let (_, loaded) = backend.start();
        assert_eq!(Rest::of(&loaded.state), state, "totals among it");
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

fn sqlite() -> (TempDir, Box<dyn Store>, Storm) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    (dir, store, Storm::new(9, loaded.state))
}

#[test]
fn a_second_daemon_is_refused_and_told_who_has_the_store() {
    let (dir, store, _) = sqlite();
    match open(dir.path(), Options::default()) {
        Err(err @ StoreError::InUse { pid: Some(pid) }) => {
            assert_eq!(pid, std::process::id());
            assert!(err.to_string().contains(&pid.to_string()), "{err}");
        }
        other => panic!("{:?}", other.map(drop)),
    }
    open_reader(dir.path()).expect("reading is open to our other processes");
    drop(store);
    open(dir.path(), Options::default()).expect("the lease ends with its holder");
}

#[test]
fn every_file_is_private_whatever_the_umask() {
    for umask in [0o000, 0o777] {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
        let parent = tempfile::tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o700)).expect("chmod");
        let dir = parent.path().join("state");
        if umask == 0o777 {
            // With such a umask nobody could enter a new folder; files are what this is about.
            fs::create_dir(&dir).expect("a folder");
            fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).expect("chmod");
        }
        let mut store = open(&dir, Options::default()).expect("the store opens");
        store.load(settings()).expect("the store loads");
        assert_eq!(fs::metadata(&dir).expect("a folder").mode() & 0o777, 0o700);
        let mut names = Vec::new();
        for entry in fs::read_dir(&dir).expect("a listing") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            assert_eq!(entry.metadata().expect("metadata").mode() & 0o777, 0o600, "{name}");
            names.push(name);
        }
        names.sort();
        let expected = ["daemon.lock", "journal.key", "provost.db", "provost.db-shm", "provost.db-wal"];
        assert_eq!(names, expected);
    }
}

fn refusal(dir: &Path) -> StoreError {
    let mut store = match open(dir, Options::default()) {
        Ok(store) => store,
        Err(err) => return err,
    };
    store.load(settings()).expect_err("it is refused at last when it is loaded")
}

#[test]
fn files_that_others_could_have_changed_are_refused() {
    for name in ["provost.db", "journal.key"] {
        let (dir, mut store, _) = sqlite();
        store.close().expect("a stop");
        drop(store);
        let path = dir.path().join(name);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("chmod");
        assert!(matches!(refusal(dir.path()), StoreError::Unsafe { .. }), "{name} for the group");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
        fs::hard_link(&path, dir.path().join("other")).expect("a second name");
        assert!(matches!(refusal(dir.path()), StoreError::Unsafe { .. }), "{name} with two names");
        fs::remove_file(dir.path().join("other")).expect("one name");
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("chmod");
        assert!(matches!(refusal(dir.path()), StoreError::Unsafe { .. }), "a folder for everybody");
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).expect("chmod");
        open(dir.path(), Options::default()).expect("all is well again");
    }
}

#[test]
fn links_are_not_followed() {
    for name in ["provost.db", "journal.key", "daemon.lock"] {
        let (dir, mut store, _) = sqlite();
        store.close().expect("a stop");
        drop(store);
        let (path, elsewhere) = (dir.path().join(name), dir.path().join("elsewhere"));
        fs::rename(&path, &elsewhere).expect("moved away");
        symlink(&elsewhere, &path).expect("a link");
        let before = fs::read(&elsewhere).expect("a file");
        refusal(dir.path());
        assert_eq!(fs::read(&elsewhere).expect("a file"), before, "{name}");
    }
    let (dir, mut store, _) = sqlite();
    store.close().expect("a stop");
    drop(store);
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "precious").expect("a file");
    symlink(&elsewhere, dir.path().join("provost.db-wal")).expect("a link");
    refusal(dir.path());
    assert_eq!(fs::read(&elsewhere).expect("a file"), b"precious");
}

#[test]
fn a_database_of_a_later_version_or_of_someone_else_is_left_alone() {
    let (dir, mut store, _) = sqlite();
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    assert_eq!(version, 1);
    db.pragma_update(None, "user_version", 99).expect("a later version");
    let err = refusal(dir.path());
    assert!(matches!(err, StoreError::Newer { found: 99, known: 1 }));
    assert!(err.to_string().contains("newer Provost"), "{err}");
    drop(db);

    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("provost.db");
    let db = rusqlite::Connection::open(&path).expect("SQLite");
    db.execute_batch("CREATE TABLE recipes (name TEXT)").expect("a table");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
    assert!(matches!(refusal(dir.path()), StoreError::Damaged(_)));
    let tables: u32 =
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("a count");
    assert_eq!(tables, 1);
}

#[test]
fn triggers_that_somebody_planted_do_not_fire() {
    let (dir, mut store, mut storm) = sqlite();
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let plant = "CREATE TRIGGER quiet AFTER INSERT ON event BEGIN DELETE FROM event; END";
    db.execute_batch(plant).expect("a trigger");
    drop(db);
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    store.load(settings()).expect("a start");
    rage(&mut *store, &mut storm, 50);
    let events = store.reader().expect("a reader").events_after(EventSeq(0), 500).expect("a page");
    assert_eq!(events.len() as u64, store.journal_head().seq.0);
}

/// What the disk holds at this very moment.
fn copy_of(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["provost.db", "provost.db-wal", "journal.key"] {
        fs::copy(dir.join(name), copy.path().join(name)).expect("a copy");
    }
    copy
}

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let (dir, mut store, mut storm) = sqlite();
    for _ in 0..5 {
        rage(&mut *store, &mut storm, 60);
        let copy = copy_of(dir.path());
        let mut store = open(copy.path(), Options::default()).expect("the copy opens");
        let loaded = store.load(settings()).expect("the copy loads");
        let (mut found, expected) = (Rest::of(&loaded.state), Rest::of(storm.core.state()));
        assert!(!loaded.clean);
        found.counters = expected.counters;
        assert_eq!(found, expected);
        assert_eq!(loaded.owed, storm.owed.values().cloned().collect::<Vec<_>>());
    }
}

#[test]
fn a_torn_log_ends_with_the_last_whole_commit() {
    let (dir, mut store, mut storm) = sqlite();
    let mut states = vec![Rest::of(storm.core.state())];
    for _ in 0..25 {
        rage(&mut *store, &mut storm, 1);
        (0..4).for_each(|_| storm.step());
        let batch = storm.batch();
        store.commit(&batch).expect("the commit");
        states.push(Rest::of(storm.core.state()));
    }
    let whole = fs::metadata(dir.path().join("provost.db-wal")).expect("a log").len();
    let mut reached = std::collections::BTreeSet::new();
    for cut in 0..30 {
        let copy = copy_of(dir.path());
        let log = copy.path().join("provost.db-wal");
        // The tables are made in the same log, before the first commit of ours.
        let left = whole / 2 + whole / 2 * cut / 30 + 13 * (cut % 5);
        let file = fs::OpenOptions::new().append(true).open(&log).expect("the log");
        file.set_len(left.min(whole)).expect("torn");
        if cut % 2 == 0 {
            (&file).write_all(&[0xA5; 5_000]).expect("garbage");
        }
        let mut store = open(copy.path(), Options::default()).expect("the copy opens");
        let loaded = store.load(settings()).expect("the copy loads");
        let mut found = Rest::of(&loaded.state);
        let seq = found.counters.event;
        reached.insert(seq);
        let commit = states.iter().find(|it| {
            found.counters = it.counters;
            it.counters.event == seq && **it == found
        });
        assert!(commit.is_some(), "event {seq} ends no commit, or the rows are not its");
        let verdict = store.reader().expect("a reader").verify(None).expect("a verdict");
        assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    }
    assert!(reached.len() > 5, "the cuts hit too few commits: {reached:?}");
}

/// Runs one of the tests that are a child's body, in a process of its own.
fn child(body: &str, dir: &Path) -> Child {
    let exe = std::env::current_exe().expect("this program");
    let script = r#"trap "" XFSZ; exec "$0" --exact "$1" --ignored --nocapture --test-threads 1"#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(exe).arg(body).env("PROVOST_TEST_STATE", dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a child")
}

fn child_dir() -> std::path::PathBuf {
    std::env::var_os("PROVOST_TEST_STATE").expect("a test starts this, in a folder of its own").into()
}

#[test]
#[ignore = "the body of a child process, started by the test after it"]
fn child_that_writes_until_it_is_killed() {
    let mut store = open(&child_dir(), Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    let seed = loaded.state.counters.event.0;
    let mut storm = Storm::new(seed, loaded.state);
    for _ in 0..100_000 {
        (0..3).for_each(|_| storm.step());
        let batch = storm.batch();
        store.commit(&batch).expect("the commit");
        writeln!(std::io::stdout(), "acknowledged {}", store.journal_head()).expect("a parent");
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_to_kill_9() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut last_numbers = 0;
    for round in 0..4_usize {
        let mut writer = child("store::child_that_writes_until_it_is_killed", dir.path());
        let mut lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
        let mut acknowledged = None;
        for line in lines.by_ref() {
            let line = line.expect("a line");
            let Some(anchor) = line.strip_prefix("acknowledged ") else { continue };
            let was_first = acknowledged.replace((anchor.parse().expect("an anchor"), 0)).is_none();
            if was_first {
                let pid = Some(writer.id());
                assert!(
                    matches!(open(dir.path(), Options::default()), Err(StoreError::InUse { pid: it }) if it == pid)
                );
            }
            let anchor: provost::store::Anchor = acknowledged.expect("just put").0;
            if anchor.seq.0 % 50 >= 45 && anchor.seq.0 > 150 * (round as u64 + 1) {
                break;
            }
        }
        writer.kill().expect("kill -9");
        writer.wait().expect("its end");
        let (anchor, _) = acknowledged.expect("it acknowledged something");

        let mut store = open(dir.path(), Options::default()).expect("the lease went with its holder");
        let loaded = store.load(settings()).expect("the store loads");
        assert!(!loaded.clean);
        assert!(store.journal_head().seq >= anchor.seq);
        assert!(loaded.state.counters.mail.0 > last_numbers, "numbers are not used twice");
        last_numbers = loaded.state.counters.mail.0;
        let verdict = store.reader().expect("a reader").verify(Some(anchor)).expect("a verdict");
        assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    }
}

#[test]
#[ignore = "the body of a child process, started by the test after it"]
fn child_whose_disk_is_full() {
    let dir = child_dir();
    let mut store = open(&dir, Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    let mut storm = Storm::new(3, loaded.state);
    rage(&mut *store, &mut storm, 60);
    let (before, head) = (Rest::of(storm.core.state()), store.journal_head());

    let full = fs::metadata(dir.join("provost.db-wal")).expect("a log").len();
    let limit = |bytes| rustix::process::Rlimit { current: bytes, maximum: None };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit(Some(full))).expect("a limit");
    (0..30).for_each(|_| storm.step());
    let batch = storm.batch();
    store.commit(&batch).expect_err("there is no room");
    store.probe().expect_err("there still is none");
    let loaded = store.load(settings()).expect("reading goes on");
    assert_eq!(Rest::of(&loaded.state), before);
    assert_eq!(store.journal_head(), head);
    store.past_task(&TaskId::parse("t-1").expect("an id")).expect("reading goes on");
    let mut reader = store.reader().expect("reading goes on");
    assert_eq!(reader.events_after(EventSeq(0), 500).expect("a page").len() as u64, head.seq.0);

    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit(None)).expect("no limit");
    store.probe().expect("there is room again");
    store.commit(&batch).expect("there is room again");
    assert_eq!(Rest::of(&store.load(settings()).expect("a load").state), Rest::of(storm.core.state()));
    let verdict = reader.verify(None).expect("a verdict");
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    store.close().expect("a stop");
}

#[test]
fn a_full_disk_refuses_writes_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = child("store::child_whose_disk_is_full", dir.path()).wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A batch of as many events, each of the size of a usual one.
fn records(storm: &mut Storm, count: u32) -> Outbox {
    for _ in 0..count {
        let details = Json::parse(r#"{"path":"src/main.rs","lines":120}"#).expect("JSON");
        storm.say("host", Record { what: "file.touched".into(), subject: "ada".into(), details });
    }
    storm.batch()
}

/// The time of a start, the shortest of a few.
fn start_time(dir: &Path) -> Duration {
    let start = || {
        let begun = Instant::now();
        let mut store = open(dir, Options::default()).expect("the store opens");
        store.load(settings()).expect("the store loads");
        let took = begun.elapsed();
        store.close().expect("a stop");
        took
    };
    (0..5).map(|_| start()).min().expect("five of them")
}

#[test]
#[ignore = "slow: writes a hundred thousand tasks; prints what it measured"]
fn a_start_takes_as_long_whatever_the_history() {
    let (dir, mut store, mut storm) = sqlite();
    rage(&mut *store, &mut storm, 300);
    let template = storm.finished[0].clone();
    let grow = |store: &mut dyn Store, storm: &mut Storm, from: u32, to: u32| {
        for batch in from / 500..to / 500 {
            let mut out = records(storm, 500);
            for i in 0..500 {
                let mut task = (*template).clone();
                task.order.task = TaskId::parse(&format!("old-{}", batch * 500 + i)).expect("an id");
                out.changes.push(Change::FinishTask(Arc::new(task)));
            }
            store.commit(&out).expect("the commit");
        }
    };
    grow(&mut *store, &mut storm, 0, 1_000);
    store.close().expect("a stop");
    drop(store);
    let short = start_time(dir.path());
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    store.load(settings()).expect("a start");
    let begun = Instant::now();
    grow(&mut *store, &mut storm, 1_000, 100_000);
    let grown = begun.elapsed();
    store.close().expect("a stop");
    drop(store);
    let long = start_time(dir.path());

    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    store.load(settings()).expect("a start");
    let begun = Instant::now();
    let verdict = store.reader().expect("a reader").verify(None).expect("a verdict");
    let verified = begun.elapsed();
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    let mut said = format!(
        "start: {short:?} after 1,000 tasks and events, {long:?} after 100,000; 99,000 of each written in {grown:?}; \
         all verified in {verified:?}\n"
    );
    for (size, durability) in
        [1, 16, 512].into_iter().flat_map(|n| [(n, Durability::Commit), (n, Durability::Durable)])
    {
        let rounds = if size == 512 { 40 } else { 400 };
        let batches: Vec<_> = (0..rounds).map(|_| records(&mut storm, size)).collect();
        let begun = Instant::now();
        for mut batch in batches {
            batch.durability = durability;
            store.commit(&batch).expect("the commit");
        }
        let rate = f64::from(rounds * size) / begun.elapsed().as_secs_f64();
        said += &format!("{durability:?}, {size} events a commit: {rate:.0} events/s\n");
    }
    std::io::stderr().write_all(said.as_bytes()).expect("a terminal");
    assert!(long < short * 3 + Duration::from_millis(20), "{said}");
}
