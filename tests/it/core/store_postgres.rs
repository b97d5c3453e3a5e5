//! The properties that only the store in PostgreSQL has: tables that one command makes, one host a repository, a turn,
//! commits without an answer, and servers that are killed, replaced or taken back. Against real servers.

use std::path::Path;
use std::time::Duration;

use provost::base::{DaemonId, EventSeq, Json, Timestamp};
use provost::domain::command::Record;
use provost::domain::{Change, HOST_DOWN};
use provost::store::{
    Behind, CommitError, Database, Head, Loaded, Options, Retention, SearchQuery, SearchWords, Store,
    StoreError, TimelineOrder, TimelineQuery, Verdict, migrate, open, open_reader_in, protection,
};
use tempfile::TempDir;

use crate::support::forger::seal_row;
use crate::support::postgres::{Between, Server, name_of};
use crate::support::storm::{Rest, Storm, agent, rage, settings};
use crate::support::waits::until_some;

mod ahead;
mod secure;
mod successors;
mod turns;
mod words;

fn opened(dir: &Path, database: &Database) -> Result<Box<dyn Store>, StoreError> {
    open(dir, Options { database: Some(database.clone()), ..Options::default() })
}

pub(super) fn started(dir: &Path, database: &Database) -> (Box<dyn Store>, Loaded) {
    let mut store = opened(dir, database).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    (store, loaded)
}

pub(super) fn sealed(dir: &std::path::Path) -> provost::store::SealedKey {
    let role = provost::base::HostRole::Full;
    provost::store::seal_key(dir, provost::store::Invite { name: "shop", most: 1, role, way: None })
        .expect("a file")
}

pub(super) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

pub(super) fn sentence<T>(done: Result<T, StoreError>) -> String {
    done.map(drop).expect_err("it is refused").to_string()
}

/// A batch of a storm, or more of it until there is something to commit.
pub(super) fn batch(storm: &mut Storm) -> provost::domain::Outbox {
    (0..20).for_each(|_| storm.step());
    storm.batch()
}

#[test]
fn a_database_without_tables_or_with_later_ones_is_refused_with_the_next_step() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.empty_database();
    let says = sentence(opened(dir.path(), &database));
    assert!(says.contains("provost store migrate"), "{says}");

    let done = migrate(dir.path(), &database, false).expect("the tables are made");
    let newest = done.to;
    assert!(done.from == 0 && newest > 2);
    let done = migrate(dir.path(), &database, false).expect("a second run changes nothing");
    assert_eq!((done.from, done.to), (newest, newest));
    drop(started(dir.path(), &database));

    server.sql(&name_of(&database), "update provost.schema set version = 99");
    let is_newer = |it: &StoreError| matches!(it, StoreError::Newer { found: 99, known } if *known == newest);
    assert!(opened(dir.path(), &database).is_err_and(|it| is_newer(&it)));
    assert!(migrate(dir.path(), &database, false).is_err_and(|it| is_newer(&it)));
    server.sql(
        &name_of(&database),
        &format!("update provost.schema set version = {newest}; update provost.repo set format = 7"),
    );
    assert!(sentence(started_or(dir.path(), &database)).contains("format 7"));
}

#[test]
fn a_schema_of_the_same_name_that_is_another_programs_is_left_as_it_is() {
    let (server, dir) = (Server::shared(), folder());
    for table in ["things (a int)", "schema (a int)"] {
        let database = server.empty_database();
        server.sql(&name_of(&database), &format!("create schema provost; create table provost.{table}"));
        let done = migrate(dir.path(), &database, false).expect_err("it is not ours").to_string();
        assert!(done.contains("has not made") && !done.contains("store migrate"), "{done}");
        assert!(sentence(opened(dir.path(), &database)).contains("has not made"));
        let count = "select count(*) from pg_class where relnamespace = 'provost'::regnamespace";
        assert_eq!(server.sql(&name_of(&database), count), "1");
    }
}

fn started_or(dir: &Path, database: &Database) -> Result<Loaded, StoreError> {
    opened(dir, database)?.load(settings())
}

#[test]
fn an_address_that_is_unsafe_or_none_is_refused_in_words() {
    let dir = folder();
    for (url, word) in [
        ("postgres://me:secret@db.example/provost", "provost secret add"),
        ("postgres://me@db.example/provost?sslmode=disable", "in the clear"),
        ("postgres://db.example/provost", "no user"),
        ("postgres://me@db.example", "no database"),
        ("postgres://me@db.example/provost?target_session_attrs=read-write", "target_session_attrs"),
        ("postgres://me@db.example/provost?hostaddr=127.0.0.1", "hostaddr"),
        ("mysql://me@db.example/provost", "url"),
        ("host=/tmp user=me dbname=x sslmode=verify-ca", "url"),
    ] {
        let database = Database::at(url, None, Some("shop"), dir.path());
        let says = sentence(opened(dir.path(), &database));
        assert!(says.contains(word) && says.contains("[store]"), "{url}: {says}");
        assert!(!says.contains("secret@"), "no password is shown: {says}");
    }
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, "no certificate").expect("a file");
    let database = Database::at("postgres://me@db.example/provost", Some(&ca), Some("shop"), dir.path());
    assert!(sentence(opened(dir.path(), &database)).contains("no certificate"));
}

#[test]
fn a_server_that_is_not_there_or_says_nothing_is_told_within_its_time() {
    let dir = folder();
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = mute.local_addr().expect("its number").port();
    let database =
        Database::at(&format!("postgres://me@127.0.0.1:{port}/provost"), None, Some("shop"), dir.path());
    let says = sentence(opened(dir.path(), &database));
    assert!(says.contains("5000 ms"), "{says}");
    drop(mute);
    assert!(matches!(opened(dir.path(), &database), Err(StoreError::Away(_))));
}

#[test]
fn a_second_host_has_the_key_and_a_copied_folder_is_no_second_host() {
    let (server, first, second) = (Server::shared(), folder(), folder());
    let database = server.database();
    let (mut store, loaded) = started(first.path(), &database);
    assert_ne!(loaded.daemon, DaemonId::default());
    assert_eq!(loaded.daemon.incarnation, 1);

    // Another folder has another key.
    let says = sentence(opened(second.path(), &database));
    assert!(says.contains("journal.key is missing") && says.contains("[store] name"), "{says}");
    std::fs::copy(first.path().join("journal.key"), second.path().join("journal.key"))
        .expect("the key is copied");
    let third = folder();
    std::fs::copy(first.path().join("journal.key"), third.path().join("journal.key"))
        .expect("the key is copied");
    // A key that was copied is no invitation, and a file of the first host is one.
    let says = sentence(opened(third.path(), &database).and_then(|mut it| it.load(settings())));
    assert!(says.contains("a copied journal key is no invitation"), "{says}");
    let (third, sealed) = (folder(), sealed(first.path()));
    provost::store::join(third.path(), &database, &sealed.text, &sealed.code).expect("it joins");
    let (joined, beside) = started(third.path(), &database);
    assert_ne!(beside.daemon.host, loaded.daemon.host);
    drop(joined);

    // A copy of the whole folder has the host's id: the later one goes on, and the earlier one writes nothing more.
    for file in ["postgres.json", "host.key", "hosts.json"] {
        std::fs::copy(first.path().join(file), second.path().join(file)).expect("it is copied");
    }
    let (mut other, loaded) = started(second.path(), &database);
    assert_eq!(loaded.daemon.incarnation, 2);
    let mut storm = Storm::new(1, loaded.state);
    other.commit(&batch(&mut storm)).expect("it has taken over");
    let mut late = Storm::new(2, provost::domain::State::new(settings()));
    let says = sentence(store.commit(&batch(&mut late)).map_err(StoreError::from));
    assert!(says.contains("another daemon has started"), "{says}");
    assert!(sentence(store.probe()).contains("another daemon has started"));
    assert!(sentence(store.load(settings())).contains("another daemon has started"));
    other.commit(&batch(&mut storm)).expect("and goes on");
}

#[test]
fn a_folder_has_its_state_in_one_place() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    drop(started(dir.path(), &database));
    let says = sentence(open(dir.path(), Options::default()));
    assert!(says.contains("is in PostgreSQL"), "{says}");
    let other = Database { name: "another".into(), ..database.clone() };
    assert!(sentence(opened(dir.path(), &other)).contains("belongs to the repository"));

    let here = folder();
    let mut store = open(here.path(), Options::default()).expect("a store in the folder");
    store.load(settings()).expect("it loads");
    drop(store);
    let says = sentence(opened(here.path(), &server.database()));
    assert!(says.contains("provost store move --to URL"), "{says}");
}

#[test]
fn a_turn_is_taken_once_and_says_the_time_of_the_database() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    assert!(store.is_shared() && store.waits_for_disk());
    let begun = store.begin(loaded.head).expect("the turn");
    let by_server: i64 = server
        .sql("postgres", "select (extract(epoch from clock_timestamp()) * 1000)::bigint")
        .parse()
        .expect("a time");
    let now = begun.now.expect("the database's time");
    assert!((by_server - now.0).abs() < 60_000);
    assert!(matches!(begun.behind, Behind::Nothing) && !begun.moved);
    assert_eq!(begun.hosts.len(), 1);
    assert_eq!(begun.hosts[0].daemon, loaded.daemon);

    // The row is ours until we let go.
    let holds = "select count(*) > 0 from pg_locks l join pg_stat_activity a using (pid)
                 where a.application_name like 'provost/%' and a.datname = current_database() and l.mode = 'RowShareLock'";
    assert_eq!(server.sql(&name_of(&database), holds), "t");
    store.let_go().expect("it lets go");
    assert_eq!(server.sql(&name_of(&database), holds), "f");

    let mut storm = Storm::new(3, loaded.state);
    let begun = store.begin(loaded.head).expect("the turn");
    let head = store.commit(&batch(&mut storm)).expect("the commit");
    assert_eq!(head.n.0, 1);
    let at: i64 = server.sql(&name_of(&database), "select at from provost.entry").parse().expect("a time");
    assert_eq!(Timestamp(at), begun.now.expect("a time"));
    assert!(matches!(store.begin(head).expect("the turn").behind, Behind::Nothing));
    // Who comes with the head from before gets the entry, as it was decided.
    let Behind::Entries(entries) = store.begin(loaded.head).expect("the turn").behind else {
        panic!("an entry")
    };
    assert_eq!((entries.len(), entries[0].n, entries[0].mac), (1, head.n, head.mac));
    assert_eq!(entries[0].by, loaded.daemon);
    assert!(
        !entries[0].events.is_empty() && entries[0].changes.iter().any(|it| matches!(it, Change::Count(_)))
    );
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let mut server = Server::start();
    let (database, dir) = (server.database(), folder());
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(5, loaded.state);
    for _ in 0..3 {
        rage(&mut *store, &mut storm, 60);
        server.kill();
        let lost = store.commit(&batch(&mut Storm::new(9, provost::domain::State::new(settings()))));
        assert!(matches!(StoreError::from(lost.expect_err("nothing is there")), StoreError::Away(_)));
        assert!(matches!(store.probe(), Err(StoreError::Away(_))));
        server.resume();
        until_some("it answers again", || store.probe().ok());
        let loaded = store.load(settings()).expect("the rows are read");
        assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    }
    rage(&mut *store, &mut storm, 60);
    let head = store.journal_head();
    drop(store);
    server.kill();
    server.resume();
    let (store, loaded) = started(dir.path(), &database);
    assert_eq!(store.journal_head(), head);
    assert_eq!(Rest::of(&loaded.state), Rest::of(storm.core.state()));
    let verdict =
        store.opens_reader().and_then(|open| open()).expect("a reader").verify(None).expect("a verdict");
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
}

#[test]
fn a_commit_without_an_answer_is_found_out_whether_it_was_done_or_not() {
    let server = Server::start();
    let (direct, dir) = (server.database(), folder());
    let between = Between::at(&server);
    let database = between.database(&direct);
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(6, loaded.state);
    rage(&mut *store, &mut storm, 60);
    let before = store.load(settings()).expect("the rows").head;

    // The server gets everything, and none of its answers comes back.
    store.begin(before).expect("the turn");
    let first = batch(&mut storm);
    between.swallow(true);
    let unsure = store.commit(&first).expect_err("no answer");
    assert!(matches!(unsure, CommitError::Unknown(StoreError::Away(_))), "{unsure}");
    between.swallow(false);
    let begun = until_some("the next turn", || store.begin(before).ok());
    let Behind::Entries(entries) = begun.behind else { panic!("the batch was done: {:?}", begun.behind) };
    assert_eq!((entries.len(), entries[0].by), (1, loaded.daemon));
    let head = Head { n: entries[0].n, mac: entries[0].mac };
    store.let_go().expect("it lets go");
    let is = store.load(settings()).expect("the rows");
    assert_eq!((is.head, Rest::of(&is.state)), (head, Rest::of(storm.core.state())));

    // The session is ended before it hears of COMMIT: nothing is done.
    store.begin(head).expect("the turn");
    let second = batch(&mut storm);
    server.sql(
        "postgres",
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'provost/%'",
    );
    let failed = store.commit(&second).expect_err("its session is gone");
    assert!(matches!(StoreError::from(failed), StoreError::Away(_)));
    let begun = store.begin(head).expect("the next turn");
    assert!(matches!(begun.behind, Behind::Nothing), "{:?}", begun.behind);
    store.commit(&second).expect("once more");
    let is = store.load(settings()).expect("the rows");
    assert_eq!(Rest::of(&is.state), Rest::of(storm.core.state()));
}

#[test]
fn a_database_that_went_back_or_is_another_one_is_noticed_and_nothing_is_written() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(7, loaded.state);
    rage(&mut *store, &mut storm, 60);
    store.close().expect("a clean stop");
    drop(store);
    let (name, copy) = (name_of(&database), format!("{}_copy", name_of(&database)));
    server.sql("postgres", &format!("create database {copy} template {name}"));

    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(8, loaded.state);
    rage(&mut *store, &mut storm, 60);
    let was = store.journal_head().seq;
    // Under its feet, and at the next start.
    server.sql(
        "postgres",
        &format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"),
    );
    server.sql("postgres", &format!("drop database {name} with (force)"));
    server.sql("postgres", &format!("alter database {copy} rename to {name}"));
    let err = StoreError::from(store.commit(&batch(&mut storm)).expect_err("the database went back"));
    assert!(matches!(err, StoreError::WentBack { was: it, .. } if it == was), "{err}");
    assert!(matches!(store.load(settings()), Err(StoreError::WentBack { .. })));
    drop(store);
    let err = started_or(dir.path(), &database).expect_err("it is refused");
    assert!(matches!(err, StoreError::WentBack { was: it, .. } if it == was), "{err}");
    assert!(err.to_string().contains(&was.to_string()), "both ends are told: {err}");
    let there = server.sql(&name, "select event from provost.repo");
    assert!(there.parse::<u64>().expect("a number") < was.0, "nothing was written");
}

#[test]
fn on_another_timeline_numbers_go_on_above_those_that_may_be_lost() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(9, loaded.state);
    rage(&mut *store, &mut storm, 200);
    let head = store.load(settings()).expect("the rows").head;
    let last = storm.core.state().counters;
    // As after a failover: what was written last was of another history.
    let sql = |text: &str| server.sql(&name_of(&database), text);
    let key = std::fs::read(dir.path().join(provost::store::JOURNAL_KEY)).expect("the journal's key");
    sql("update provost.repo set timeline = 99, seal = null");
    seal_row(&key, sql);
    let begun = store.begin(head).expect("the turn");
    assert!(begun.moved);
    store.commit(&batch(&mut storm)).expect("a commit notes where it is");
    assert_ne!(sql("select timeline from provost.repo"), "99");
    let head = store.load(settings()).expect("the rows").head;
    assert!(!store.begin(head).expect("the turn").moved);
    store.let_go().expect("it lets go");

    sql("update provost.repo set system = 'another', seal = null");
    seal_row(&key, sql);
    store.close().expect("a stop passes no numbers over, and leaves that to the next start");
    drop(store);
    let (_, loaded) = started(dir.path(), &database);
    let now = loaded.state.counters;
    assert!(now.fence.0 >= last.fence.0 + 100_000 && now.mail.0 >= last.mail.0 + 100_000, "{now:?}");
}

#[test]
fn what_the_database_is_written_with_behind_the_daemon_is_found() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let name = name_of(&database);
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(10, loaded.state);
    let head = loaded.head;
    store.commit(&batch(&mut storm)).expect("a commit");
    server.sql(&name, "update provost.entry set body = replace(body, 'put_', 'Put_')");
    let err = store.begin(head).expect_err("it is not folded");
    assert!(matches!(err, StoreError::BrokenLog { .. }), "{err}");
    drop(store);

    server.sql(&name, "update provost.event set actor = 'intruder' where seq = 1");
    let err = started_or(dir.path(), &database).expect_err("it is refused");
    assert!(matches!(err, StoreError::Tampered { seq: EventSeq(1), .. }), "{err}");
    let mut reader = open_reader_in(dir.path(), Some(&database)).expect("a reader");
    assert!(matches!(reader.verify(None), Ok(Verdict::Tampered { first_bad_seq: EventSeq(1), .. })));
}

#[test]
fn a_reader_writes_nothing_and_survives_its_connection() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(11, loaded.state);
    rage(&mut *store, &mut storm, 90);
    let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
    let all = reader.events_after(EventSeq(0), 1_000).expect("events");
    server.sql(
        "postgres",
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like
        'provost-reader/%'",
    );
    assert_eq!(reader.events_after(EventSeq(0), 1_000).expect("the same"), all);
    let query = TimelineQuery {
        agent: Some("no\0body' or 1=1 --".into()),
        word: None,
        file: None,
        since: None,
        after: Some(EventSeq(u64::MAX)),
        before: None,
        beats: false,
        order: TimelineOrder::NewestFirst,
        limit: usize::MAX,
        bytes_max: usize::MAX,
    };
    assert_eq!(reader.timeline(&query).expect("an answer"), Vec::new());
    let words = SearchWords::parse("'; drop table provost.event; -- %").map(|words| SearchQuery {
        words,
        only: None,
        before: None,
        limit: 10,
    });
    assert!(words.is_err() || reader.search(&words.expect("words")).expect("an answer").hits.is_empty());
    assert_eq!(reader.events_after(EventSeq(0), 1_000).expect("the same"), all);
}

#[test]
fn a_role_of_daemons_can_neither_change_events_nor_tables() {
    let server = Server::start();
    let (database, dir) = (server.empty_database(), folder());
    let name = name_of(&database);
    assert!(migrate(dir.path(), &database, true).expect("tables and roles").missing_roles.is_empty());
    server.sql("postgres", "create role laptop login in role provost_host connection limit 10");
    server.sql("postgres", "create role looks login in role provost_reader");
    let as_host = server.named("laptop", &name);
    let (mut store, loaded) = started(dir.path(), &as_host);
    let mut storm = Storm::new(12, loaded.state);
    rage(&mut *store, &mut storm, 200);
    let details = Json::parse(r#"{"removed":true}"#).expect("JSON");
    storm.say("host", Record { what: HOST_DOWN.into(), subject: "2a/1".into(), details });
    store.commit(&storm.batch()).expect("the commit");
    storm.now.0 += 1_000;
    while store.lacks_index() {
        store.index(100).expect("a bite of the index");
    }
    let keep = Retention { tasks: Duration::ZERO, tasks_most: 1, events: Duration::ZERO };
    while store.prune(storm.now, &keep, 50).expect("the prune works").more {}
    let kept = "select kind from provost.event where body is not null and seq <= (select pruned_to from provost.repo)";
    assert_eq!(server.sql(&name, kept), "host_removed", "its text stays");
    store.close().expect("a clean stop");
    drop(store);
    let (store, _) = started(dir.path(), &as_host);
    let verdict =
        store.opens_reader().and_then(|open| open()).expect("a reader").verify(None).expect("a verdict");
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");

    for sql in [
        "update provost.event set body = 'x'",
        "delete from provost.event",
        "truncate provost.event",
        "update provost.entry set body = 'x'",
        "update provost.host_key set body = '{}'",
        "delete from provost.signature",
        "insert into provost.host_before select repo, '0' from provost.host",
        "delete from provost.repo",
        "update provost.repo set id = default",
        "update provost.schema set version = 1",
        "drop table provost.task",
        "create table provost.other (id int)",
    ] {
        let as_laptop = format!("set role laptop; {sql}");
        let refused = std::panic::catch_unwind(|| server.sql(&name, &as_laptop));
        assert!(refused.is_err(), "{sql}");
    }
    assert!(protection(dir.path(), &database).expect("an answer").owns_tables);
    assert!(!protection(dir.path(), &as_host).expect("an answer").owns_tables);
    let says = sentence(opened(folder().path(), &server.named("looks", &name)));
    assert!(says.contains("journal.key is missing"), "{says}");
}

#[test]
fn an_agent_named_with_a_zero_byte_stops_no_commit() {
    // Bodies are JSON, which has none; names in the columns beside them are cleaned.
    let (server, dir) = (Server::shared(), folder());
    let (mut store, loaded) = started(dir.path(), &server.database());
    let mut storm = Storm::new(13, loaded.state);
    let mut out = batch(&mut storm);
    out.changes.push(Change::Spend(provost::domain::SpendChange::Calls {
        task: provost::base::TaskId::parse("t").expect("an id"),
        worker: agent("w"),
        at: Timestamp(1),
        model: "mo\0del".into(),
        counted: provost::domain::Counted { calls: 1, ..Default::default() },
    }));
    store.commit(&out).expect("a commit");
    let task = provost::base::TaskId::parse("t").expect("an id");
    let rows =
        store.opens_reader().and_then(|open| open()).expect("a reader").counted_of(&task).expect("rows");
    assert_eq!(&*rows[0].model, "mo\u{fffd}del");
}
