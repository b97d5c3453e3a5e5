//! A whole state moves between the state folder and PostgreSQL, is interrupted on its way, and goes on after a loss. Against real
//! servers.

use std::path::Path;

use provost::base::{EventSeq, Timestamp};
use provost::store::{
    Database, FinishedFilter, Loaded, Loss, Moved, Options, Reader, Restore, Site, Store, StoreError,
    StoredEvent, UsageBy, UsageQuery, Verdict, accept_loss, loss, migrate, move_into_database,
    move_into_folder, open, open_reader_in, restore,
};
use tempfile::TempDir;

use crate::support::postgres::{Server, name_of};
use crate::support::storm::{Rest, Storm, rage, settings};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn start(dir: &Path, database: Option<&Database>) -> Result<(Box<dyn Store>, Loaded), StoreError> {
    let mut store = open(dir, Options { database: database.cloned(), ..Options::default() })?;
    let loaded = store.load(settings())?;
    Ok((store, loaded))
}

fn started(dir: &Path, database: Option<&Database>) -> (Box<dyn Store>, Loaded) {
    start(dir, database).expect("the store starts")
}

fn site<'a>(dir: &'a Path, database: &'a Database) -> Site<'a> {
    Site { dir, outside: None, database, now: NOW }
}

fn into_it(dir: &Path, database: &Database) -> Result<Moved, StoreError> {
    move_into_database(site(dir, database), &mut |_, _| {})
}

fn out_of_it(dir: &Path, database: &Database) -> Result<Moved, StoreError> {
    move_into_folder(site(dir, database), &mut |_, _| {})
}

fn sentence<T>(done: Result<T, StoreError>) -> String {
    done.map(drop).expect_err("it is refused").to_string()
}

/// Returns the data that readers see: events to the letter, finished tasks, usage, and the end of the whole chain.
fn shown(dir: &Path, database: Option<&Database>) -> (Vec<StoredEvent>, Vec<String>, Vec<String>, Verdict) {
    let mut reader: Box<dyn Reader> = open_reader_in(dir, database).expect("a reader");
    let (mut events, mut from) = (Vec::new(), EventSeq(0));
    loop {
        let page = reader.events_after(from, 500).expect("events");
        let Some(last) = page.last() else { break };
        from = last.seq;
        events.extend(page);
    }
    let (tasks, more) = reader.finished(FinishedFilter::default(), 10_000, usize::MAX).expect("tasks");
    assert!(!more && !tasks.is_empty() && !events.is_empty(), "there is something to compare");
    let tasks = tasks.iter().map(|it| format!("{it:?}")).collect();
    let usage = UsageQuery { by: UsageBy::Day, since: None, limit: 1_000 };
    let usage = reader.usage(&usage).expect("usage").iter().map(|it| format!("{it:?}")).collect();
    (events, tasks, usage, reader.verify(None).expect("a verdict"))
}

/// A store in a folder with a history. A restore has given up a part of it once.
fn with_a_history(dir: &Path, seed: u64) -> Storm {
    let (mut store, loaded) = started(dir, None);
    let mut storm = Storm::new(seed, loaded.state);
    rage(&mut *store, &mut storm, 300);
    store.close().expect("a stop");
    drop(store);
    restore(dir, None, Restore::AsItIs, NOW).expect("a leap");
    let (mut store, loaded) = started(dir, None);
    let mut storm = Storm::new(seed + 1, loaded.state);
    rage(&mut *store, &mut storm, 300);
    store.close().expect("a stop");
    storm
}

#[test]
fn a_state_goes_into_the_database_and_back_and_nothing_of_it_changes() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let storm = with_a_history(dir.path(), 1);
    let before = shown(dir.path(), None);
    let Verdict::Ok { head, leaps, .. } = &before.3 else { panic!("{:?}", before.3) };
    assert_eq!(leaps.len(), 1);

    let mut told = Vec::new();
    let moved = move_into_database(site(dir.path(), &database), &mut |done, all| told.push((done, all)));
    let moved = moved.expect("it is moved");
    assert_eq!((moved.head, told.last().copied()), (*head, Some((moved.rows, moved.rows))));
    assert!(moved.earlier.is_none() && dir.path().join(moved.aside.expect("it is kept")).exists());
    assert_eq!(shown(dir.path(), Some(&database)), before);
    let says = sentence(start(dir.path(), None));
    assert!(says.contains("provost store move --to folder"), "{says}");
    assert!(sentence(into_it(dir.path(), &database)).contains("in the database already"));

    let (mut store, loaded) = started(dir.path(), Some(&database));
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    assert!(sentence(out_of_it(dir.path(), &database)).contains("already uses"), "a daemon runs");
    let mut storm = Storm::new(3, loaded.state);
    rage(&mut *store, &mut storm, 300);
    store.close().expect("a stop");
    drop(store);
    let before = shown(dir.path(), Some(&database));

    let moved = out_of_it(dir.path(), &database).expect("it is moved back");
    assert!(moved.rows > 0 && moved.aside.is_none());
    assert_eq!(shown(dir.path(), None), before);
    let says = sentence(start(dir.path(), Some(&database)));
    assert!(says.contains("take `[store] url` out") || says.contains("provost store move"), "{says}");
    assert!(sentence(out_of_it(dir.path(), &database)).contains("has the state already"));
    let (mut store, loaded) = started(dir.path(), None);
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    assert!(loaded.clean && loaded.received.is_empty());
    let mut storm = Storm::new(4, loaded.state);
    rage(&mut *store, &mut storm, 60);
    store.close().expect("a stop");
    drop(store);

    // And once more: what was left there gives its name up.
    let moved = into_it(dir.path(), &database).expect("it is moved again");
    assert!(moved.earlier.expect("an older copy").contains("shop (until"));
    let (_, loaded) = started(dir.path(), Some(&database));
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
}

#[test]
fn the_role_of_a_daemon_is_enough_to_move_a_state() {
    let (server, dir) = (Server::start(), folder());
    let database = server.empty_database();
    migrate(dir.path(), &database, true).expect("tables and roles");
    server.sql("postgres", "create role laptop login in role provost_host connection limit 10");
    let database = server.named("laptop", &name_of(&database));
    with_a_history(dir.path(), 5);
    let before = shown(dir.path(), None);
    into_it(dir.path(), &database).expect("it is moved");
    out_of_it(dir.path(), &database).expect("it is moved back");
    into_it(dir.path(), &database).expect("it is moved again");
    assert_eq!(shown(dir.path(), Some(&database)), before);
}

#[test]
fn what_cannot_be_moved_is_refused_and_nothing_changes() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let name = name_of(&database);
    assert!(sentence(into_it(dir.path(), &database)).contains("nothing to move"));
    assert!(sentence(out_of_it(dir.path(), &database)).contains("never had a daemon"));

    let (mut store, loaded) = started(dir.path(), None);
    assert!(matches!(into_it(dir.path(), &database), Err(StoreError::InUse { .. })));
    rage(&mut *store, &mut Storm::new(6, loaded.state), 120);
    store.close().expect("a stop");
    drop(store);
    let empty = server.empty_database();
    assert!(sentence(into_it(dir.path(), &empty)).contains("provost store migrate"));
    // A table that this release does not know would be left behind.
    server.sql(&name, "create table provost.later (repo int, id text)");
    assert!(sentence(into_it(dir.path(), &database)).contains("`later`"));
    server.sql(&name, "drop table provost.later");

    // Another repository of the same name.
    let other = folder();
    drop(started(other.path(), Some(&database)));
    let says = sentence(into_it(dir.path(), &database));
    assert!(says.contains("another journal") && says.contains("--name"), "{says}");
    let mine = Database { name: "mine".into(), ..database.clone() };
    into_it(dir.path(), &mine).expect("under a name of its own");
    // A daemon has gone on there, and the folder has an older state beside it.
    drop(started(dir.path(), Some(&mine)));
    let old = std::fs::read_dir(dir.path()).expect("the folder").flatten().map(|it| it.path());
    let old = old.into_iter().find(|it| it.to_string_lossy().contains("moved-")).expect("it was kept");
    std::fs::copy(old, dir.path().join("provost.db")).expect("it is put back");
    std::fs::remove_file(dir.path().join("postgres.json")).expect("as if never moved");
    let says = sentence(into_it(dir.path(), &mine));
    assert!(says.contains("a daemon has gone on"), "{says}");
    assert_eq!(server.sql(&name, "select count(*) from provost.repo where name = 'mine'"), "1");

    // A journal that was changed does not go on.
    let changed = folder();
    with_a_history(changed.path(), 7);
    let db = rusqlite::Connection::open(changed.path().join("provost.db")).expect("the file");
    db.execute("UPDATE event SET actor = 'intruder' WHERE seq = 2", []).expect("a change");
    drop(db);
    let third = Database { name: "third".into(), ..database.clone() };
    assert!(matches!(into_it(changed.path(), &third), Err(StoreError::Tampered { seq: EventSeq(2), .. })));
    assert_eq!(server.sql(&name, "select count(*) from provost.repo where name = 'third'"), "0");
}

/// Has a folder remember the database again, as before the last step of a move.
fn remember(dir: &Path, text: &str) {
    let path = dir.join("postgres.json");
    std::fs::write(&path, text).expect("it is remembered");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).expect("it is private");
}

/// As kill -9 leaves it, in the moments that no clock finds.
#[test]
fn a_move_that_was_interrupted_leaves_the_source_and_is_repeated() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    with_a_history(dir.path(), 8);
    let file = dir.path().join("provost.db");
    let kept = dir.path().join("kept");
    std::fs::copy(&file, &kept).expect("the file is kept");

    // Everything is in the database, and the folder does not know it: the folder is gone on with, and moved again.
    let moved = into_it(dir.path(), &database).expect("it is moved");
    std::fs::rename(&kept, &file).expect("the file is back");
    std::fs::remove_file(dir.path().join("postgres.json")).expect("nothing is known of it");
    let (mut store, loaded) = started(dir.path(), None);
    let mut storm = Storm::new(9, loaded.state);
    rage(&mut *store, &mut storm, 60);
    store.close().expect("a stop");
    drop(store);
    let again = into_it(dir.path(), &database).expect("it is moved again");
    assert!(again.earlier.is_some() && again.head.seq > moved.head.seq);

    // The folder knows it, and its file has its name still: no store goes on with that, and the next step ends the move.
    let aside = dir.path().join(again.aside.expect("it is kept"));
    std::fs::rename(&aside, &file).expect("the name from before");
    assert!(sentence(start(dir.path(), None)).contains("is in PostgreSQL"));
    let ended = into_it(dir.path(), &database).expect("it is ended");
    assert_eq!((ended.rows, ended.head, aside.exists(), file.exists()), (0, again.head, true, false));
    std::fs::rename(&aside, &file).expect("the name from before");
    let (store, loaded) = started(dir.path(), Some(&database));
    assert!(aside.exists() && !file.exists(), "a start ends it, too");
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    drop(store);

    // Out of it: the database has noted it, and the folder has no file yet: the database is gone on with.
    let remembered = std::fs::read_to_string(dir.path().join("postgres.json")).expect("it is remembered");
    out_of_it(dir.path(), &database).expect("it is moved back");
    let new = dir.path().join("provost.db.new");
    std::fs::rename(&file, &new).expect("before it got its name");
    remember(dir.path(), &remembered);
    let (mut store, loaded) = started(dir.path(), Some(&database));
    let mut storm = Storm::new(10, loaded.state);
    rage(&mut *store, &mut storm, 60);
    store.close().expect("a stop");
    drop(store);
    let back = out_of_it(dir.path(), &database).expect("it is moved back");

    // The file has its name, and the folder remembers the database: the folder is gone on with.
    let goes = remembered.replacen('{', "{\"goes_here\":true,", 1);
    remember(dir.path(), &goes);
    assert!(sentence(start(dir.path(), Some(&database))).contains("take `[store] url` out"));
    let ended = out_of_it(dir.path(), &database).expect("it is ended");
    assert_eq!((ended.rows, ended.head), (0, back.head));
    remember(dir.path(), &goes);
    let (_, loaded) = started(dir.path(), None);
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    assert!(!dir.path().join("postgres.json").exists());
}

#[test]
fn a_loss_is_told_with_both_ends_and_gone_on_with_above_all_numbers() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), Some(&database));
    rage(&mut *store, &mut Storm::new(11, loaded.state), 60);
    store.close().expect("a clean stop");
    drop(store);
    assert!(sentence(loss(site(dir.path(), &database))).contains("nothing is lost"));
    let (name, copy) = (name_of(&database), format!("{}_copy", name_of(&database)));
    server.sql("postgres", &format!("create database {copy} template {name}"));
    let (mut store, loaded) = started(dir.path(), Some(&database));
    let kept = store.journal_head().seq;
    let mut storm = Storm::new(12, loaded.state);
    rage(&mut *store, &mut storm, 300);
    let (was, given) = (store.journal_head().seq, storm.core.state().counters);
    assert!(matches!(loss(site(dir.path(), &database)), Err(StoreError::InUse { .. })));
    drop(store);
    server.sql("postgres", &format!("drop database {name} with (force)"));
    server.sql("postgres", &format!("alter database {copy} rename to {name}"));

    let says = sentence(start(dir.path(), Some(&database)));
    assert!(says.contains("provost store accept-loss") && says.contains(&was.to_string()), "{says}");
    let told: Loss = loss(site(dir.path(), &database)).expect("it is told");
    assert_eq!((told.was, told.is), (was, kept));
    assert!(start(dir.path(), Some(&database)).is_err(), "telling changes nothing");
    assert_eq!(accept_loss(site(dir.path(), &database)).expect("it is accepted"), told);
    assert!(sentence(accept_loss(site(dir.path(), &database))).contains("nothing is lost"));

    let (mut store, loaded) = started(dir.path(), Some(&database));
    let now = loaded.state.counters;
    assert!(now.fence.0 > given.fence.0 && now.mail.0 > given.mail.0 && now.approval.0 > given.approval.0);
    assert!(now.event.0 > was.0 && now.effect.0 > given.effect.0 && now.post.0 >= given.post.0, "{now:?}");
    assert!(loaded.daemon.incarnation > 100_000, "starts may be lost, too: {:?}", loaded.daemon);
    rage(&mut *store, &mut Storm::new(13, loaded.state), 60);
    store.close().expect("a stop");
    drop(store);
    let (.., verdict) = shown(dir.path(), Some(&database));
    let Verdict::Ok { leaps, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!((leaps.len(), leaps[0].kept, leaps[0].was_loss), (1, kept, true));
    assert!(leaps[0].to > was);

    // What was passed over goes with the state, and the seal is looked at.
    out_of_it(dir.path(), &database).expect("it is moved");
    let (.., verdict) = shown(dir.path(), None);
    assert!(matches!(&verdict, Verdict::Ok { leaps: it, .. } if *it == leaps), "{verdict:?}");
    into_it(dir.path(), &database).expect("and back");
    server.sql(
        &name,
        "update provost.meta set body = replace(body, '\"to\":', '\"to\":1') where id like 'gap:%'",
    );
    let (.., verdict) = shown(dir.path(), Some(&database));
    assert!(matches!(verdict, Verdict::Tampered { .. }), "{verdict:?}");
}
