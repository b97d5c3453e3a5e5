//! The troubles that only a store on a disk can have: other daemons, other users, crashes, full disks, long histories.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use provost::base::{EventSeq, Json, TaskId};
use provost::domain::Outbox;
use provost::domain::command::{Durability, Record};
use provost::store::{
    Anchor, Indexed, Options, SearchQuery, SearchWords, SqliteStore, Store, StoreError, Verdict, open,
    open_reader,
};
use tempfile::TempDir;

use crate::support::storm::{Rest, Storm, rage, settings};

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
        let expected = [
            "daemon.lock",
            "intake-2.log",
            "intake.log",
            "journal.anchor",
            "journal.key",
            "provost.db",
            "provost.db-shm",
            "provost.db-wal",
        ];
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

/// The newest version of the tables.
const SCHEMA: u32 = 19;

#[test]
fn a_database_of_the_first_version_is_brought_up_to_date_with_all_that_is_in_it() {
    let (dir, mut store, mut storm) = sqlite();
    rage(&mut *store, &mut storm, 50);
    let head = store.journal_head();
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let undo = "DROP TABLE symbol_lock; DROP TABLE intent; DROP TABLE contract;
                DROP TABLE post; DROP TABLE inbox; DROP TABLE parked; DROP TABLE correspondent;
                DROP TABLE footprint; DROP TABLE standoff; DROP TABLE question;
                DROP TABLE member; DROP TABLE claim; DROP TABLE assignment; DROP TABLE transfer; DROP TABLE timeline;
                DROP TABLE imported; DROP TABLE emptied; DROP TABLE job; DROP TABLE job_result; DROP TABLE job_order;
                DROP TABLE token; DROP TABLE gap; DROP TABLE switched; DROP TABLE usage_day; DROP TABLE usage_task; DROP TABLE spent; DROP TABLE counted_day; DROP TABLE counted_task;
                DROP TABLE merge_entry;
                DROP TABLE passkey; DROP TABLE passkey_reset; DROP TABLE daemon;
                DROP TABLE search_event; DROP TABLE search_task; DROP TABLE searched_task; DROP TABLE push;
                DELETE FROM counter WHERE name IN ('fence', 'ticket', 'named'); PRAGMA user_version = 1";
    db.execute_batch(undo).expect("the tables of version 1");
    fs::remove_file(dir.path().join("journal.anchor")).expect("version 1 had none");
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    store.load(settings()).expect("a start");
    assert_eq!(store.journal_head(), head);
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    assert_eq!(version, SCHEMA);
    // What was there before can be searched, a bite at a time.
    assert!(store.lacks_index());
    while store.index(20).expect("a bite") == Indexed::More {}
    let words = SearchWords::parse("task_delegated").expect("a search");
    let query = SearchQuery { words, only: None, before: None, limit: 10 };
    let found =
        store.opens_reader().and_then(|open| open()).expect("a reader").search(&query).expect("a search");
    assert!(!store.lacks_index() && !found.hits.is_empty());
    rage(&mut *store, &mut storm, 50);
}

#[test]
fn a_database_of_a_later_version_or_of_someone_else_is_left_alone() {
    let (dir, mut store, _) = sqlite();
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    assert_eq!(version, SCHEMA);
    db.pragma_update(None, "user_version", 99).expect("a later version");
    let err = refusal(dir.path());
    assert!(matches!(err, StoreError::Newer { found: 99, known: SCHEMA }));
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
    let events = store
        .opens_reader()
        .and_then(|open| open())
        .expect("a reader")
        .events_after(EventSeq(0), 500)
        .expect("a page");
    assert_eq!(events.len() as u64, store.journal_head().seq.0);
}

#[test]
fn a_commit_waits_for_what_its_batch_asks_and_anchors_for_the_disk() {
    for always_durable in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut store =
            SqliteStore::open(dir.path(), Options { always_durable, ..Options::default() }).expect("open");
        let mut storm = Storm::new(10, store.load(settings()).expect("a start").state);
        let mut waited = |count, durability| {
            let mut batch = records(&mut storm, count);
            batch.durability = durability;
            store.commit(&batch).expect("the commit");
            store.synchronous().expect("an answer")
        };
        let kernel = if always_durable { 2 } else { 1 };
        assert_eq!(waited(3, Durability::Commit), kernel);
        assert_eq!(waited(3, Durability::Durable), 2);
        assert_eq!(waited(3, Durability::Commit), kernel);
        assert_eq!(waited(1_000, Durability::Commit), 2, "a checkpoint is anchored");
        assert_eq!(waited(3, Durability::Commit), kernel);
    }
}

#[test]
fn a_row_that_cannot_be_read_refuses_the_start_and_is_named() {
    let (dir, mut store, mut storm) = sqlite();
    rage(&mut *store, &mut storm, 200);
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    db.execute_batch("UPDATE approval SET body = '{}'").expect("changed");
    match refusal(dir.path()) {
        StoreError::Damaged(what) => assert!(what.contains("`approval`"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_that_was_changed_long_before_the_last_checkpoint_refuses_the_start() {
    let (dir, mut store, mut storm) = sqlite();
    for _ in 0..3 {
        store.commit(&records(&mut storm, 1_000)).expect("the commit");
    }
    store.close().expect("a stop");
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let changed =
        db.execute("UPDATE event SET body = replace(body, 'main.rs', 'mail.rs') WHERE seq = 500", []);
    assert_eq!(changed.expect("changed"), 1);
    drop(db);
    match refusal(dir.path()) {
        StoreError::Tampered { seq: EventSeq(500), .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_see_whole_commits_while_the_writer_writes() {
    let (dir, mut store, mut storm) = sqlite();
    let (done, seen) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut reader = open_reader(dir.path()).expect("a reader");
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                match reader.verify(None).expect("a verdict") {
                    Verdict::Ok { events, .. } => {
                        assert!(events >= last && events % 7 == 0, "{last}, then {events}");
                        seen.fetch_add(u32::from(events > last), Ordering::Relaxed);
                        last = events;
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        // Until the reader has been seen to keep up, however busy the machine is.
        for _ in 0..5_000 {
            store.commit(&records(&mut storm, 7)).expect("the commit");
            if seen.load(Ordering::Relaxed) > 5 || reading.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Release);
        reading.join().expect("a reader that is content");
        assert!(seen.load(Ordering::Relaxed) > 5);
    });
}

#[test]
fn scribbled_pages_are_errors_and_nothing_worse() {
    let (dir, mut store, mut storm) = sqlite();
    rage(&mut *store, &mut storm, 300);
    store.close().expect("a stop");
    drop(store);
    let path = dir.path().join("provost.db");
    let whole = fs::read(&path).expect("the database");
    let (mut refused, mut unchecked) = (0, 0);
    for page in whole.chunks(4096).enumerate().map(|(page, _)| page * 4096) {
        let mut bytes = whole.clone();
        bytes[page + 1..page + 4095].fill(0xEE);
        fs::write(&path, &bytes).expect("scribbled");
        if let Ok(mut reader) = open_reader(dir.path()) {
            let verdict = reader.verify(None).expect("a verdict, whatever it is");
            unchecked += u32::from(!matches!(verdict, Verdict::Ok { .. }));
        }
        let started = open(dir.path(), Options::default()).and_then(|mut store| store.load(settings()));
        refused += u32::from(started.is_err());
    }
    assert!(refused > 3 && unchecked > 3, "{refused} starts refused, {unchecked} journals not vouched for");
}

/// Copies the files that the disk holds at this very moment.
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
    for _ in 0..40 {
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
        let verdict =
            store.opens_reader().and_then(|open| open()).expect("a reader").verify(None).expect("a verdict");
        assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    }
    assert!(reached.len() > 5, "the cuts hit too few commits: {reached:?}");
}

/// Names the folder in which a test, started once more as its own child, does the child's part.
const CHILD_DIR: &str = "PROVOST_TEST_STATE";

/// Starts a test once more, in a process of its own.
fn child(test: &str, dir: &Path) -> Child {
    let exe = std::env::current_exe().expect("this program");
    let script = r#"trap "" XFSZ; exec "$0" --exact "$1" --nocapture --test-threads 1"#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(exe).arg(test).env(CHILD_DIR, dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a child")
}

fn write_until_killed(dir: &Path) {
    let mut store = open(dir, Options::default()).expect("the store opens");
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
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        return write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut last_numbers = 0;
    for round in 0..4 {
        let mut writer =
            child("core::store_sqlite::nothing_that_was_acknowledged_is_lost_to_kill_9", dir.path());
        let mut lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
        let mut acknowledged: Option<Anchor> = None;
        for line in lines.by_ref() {
            let line = line.expect("a line");
            let Some((_, anchor)) = line.split_once("acknowledged ") else { continue };
            let anchor: Anchor = anchor.parse().expect("an anchor");
            if acknowledged.replace(anchor).is_none() {
                let refused = open(dir.path(), Options::default()).map(drop);
                assert!(matches!(refused, Err(StoreError::InUse { pid }) if pid == Some(writer.id())));
            }
            if anchor.seq.0 > 200 * (round + 1) {
                break;
            }
        }
        writer.kill().expect("kill -9");
        writer.wait().expect("its end");
        let verdict = open_reader(dir.path()).expect("a reader needs no daemon").verify(acknowledged);
        assert!(matches!(verdict, Ok(Verdict::Ok { .. })), "{verdict:?}");
        let anchor = acknowledged.expect("it acknowledged something");

        let mut store = open(dir.path(), Options::default()).expect("the lease went with its holder");
        let loaded = store.load(settings()).expect("the store loads");
        assert!(!loaded.clean);
        assert!(store.journal_head().seq >= anchor.seq);
        assert!(loaded.state.counters.mail.0 > last_numbers, "numbers are not used twice");
        last_numbers = loaded.state.counters.mail.0;
        let verdict = store
            .opens_reader()
            .and_then(|open| open())
            .expect("a reader")
            .verify(Some(anchor))
            .expect("a verdict");
        assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
    }
}

fn fill_the_disk(dir: &Path) {
    let mut store = open(dir, Options::default()).expect("the store opens");
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
    let mut reader = store.opens_reader().and_then(|open| open()).expect("reading goes on");
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
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        return fill_the_disk(Path::new(&dir));
    }
    let dir = tempfile::tempdir().expect("a folder");
    let output = child("core::store_sqlite::a_full_disk_refuses_writes_and_nothing_else", dir.path())
        .wait_with_output()
        .expect("its end");
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
