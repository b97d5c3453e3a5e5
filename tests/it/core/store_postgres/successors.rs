//! What a daemon goes by once another server has the database: its readers, and the ends of its own work.

use provost::base::EventSeq;
use provost::store::StoreError;

use super::{batch, folder, started};
use crate::support::forger::seal_row;
use crate::support::postgres::{Server, name_of};
use crate::support::storm::{Storm, rage};
use crate::support::waits::until_some;

#[test]
fn a_reader_that_had_to_go_to_a_standby_goes_back_to_the_primary() {
    let (mut server, dir) = (Server::start(), folder());
    let second = server.standby("second");
    let mut database = server.database();
    let name = name_of(&database);
    until_some("the standby has the database", || {
        second
            .says("postgres", &format!("select 1 from pg_database where datname = '{name}'"))
            .filter(|it| it == "1")
    });
    database.url = server.or(&second, &database).into();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(31, loaded.state);
    rage(&mut *store, &mut storm, 60);
    let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
    let mut seen = || reader.events_after(EventSeq(0), 1_000).map(|it| it.len());
    let before = seen().expect("events");
    until_some("the standby has all of it", || {
        let events = second.says(&name, "select count(*) from provost.event")?;
        (events == before.to_string()).then_some(())
    });
    server.kill();
    until_some("the standby is read", || seen().ok().filter(|it| *it == before));
    // The primary comes back, and the standby hears no more.
    second.sql("postgres", "select pg_wal_replay_pause()");
    server.resume();
    until_some("it is written again", || store.probe().ok());
    rage(&mut *store, &mut storm, 60);
    assert!(store.journal_head().seq.0 > before as u64);
    until_some("all of it is read", || seen().ok().filter(|it| *it as u64 == store.journal_head().seq.0));

    // A standby that lacks what the folder has seen is no database that went back.
    server.kill();
    let looked = provost::store::look_in(dir.path(), Some(&database), None, false);
    let says = looked.expect_err("it lacks events").to_string();
    assert!(says.contains("a standby, which has not got event") && !says.contains("went back"), "{says}");
}

#[test]
fn a_reader_goes_to_the_server_on_which_a_copy_goes_on_and_leaves_the_one_that_it_was_made_of() {
    let (mut server, mut second, dir) = (Server::start(), Server::of_another_system(), folder());
    let mut database = server.database();
    let name = name_of(&database);
    assert_eq!(name, name_of(&second.database()));
    database.url = server.or(&second, &database).into();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(33, loaded.state);
    rage(&mut *store, &mut storm, 60);
    let mut reader = store.opens_reader().and_then(|open| open()).expect("a reader");
    let mut seen = || reader.events_after(EventSeq(0), 1_000).map(|it| it.len());
    let before = seen().expect("events");

    server.copy_to(&second, &name);
    server.kill();
    until_some("it is written where the copy is", || store.probe().ok());
    rage(&mut *store, &mut storm, 60);
    assert!(store.journal_head().seq.0 > before as u64);
    server.resume();
    assert_eq!(seen().expect("events") as u64, store.journal_head().seq.0);

    // While that one is away for a moment, nothing is written where the copy was made of, and the writer goes back by itself.
    second.kill();
    let refused = until_some("the other server is asked", || {
        store.probe().err().filter(|it| !matches!(it, StoreError::Away(_)))
    });
    assert!(refused.to_string().contains("went back"), "{refused}");
    second.resume();
    until_some("it is written where it was", || store.probe().ok());
    assert_eq!(seen().expect("events") as u64, store.journal_head().seq.0);

    // The writer stays there, too, although the other server comes first in the address.
    second.end_sessions();
    until_some("it is written again", || store.probe().ok());
    rage(&mut *store, &mut storm, 60);
    let events = second.sql(&name, "select max(seq) from provost.event");
    assert_eq!(events, store.journal_head().seq.0.to_string());
}

#[test]
fn the_words_of_events_whose_index_a_failover_has_lost_are_put_into_it_again() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(32, loaded.state);
    rage(&mut *store, &mut storm, 120);
    while store.lacks_index() {
        store.index(1_000).expect("a bite");
    }
    let head = store.load(crate::support::storm::settings()).expect("the rows").head;
    assert!(!store.lacks_index());
    // The successor has all entries, and not the last steps of the index.
    let sql = |text: &str| server.sql(&name_of(&database), text);
    let key = std::fs::read(dir.path().join(provost::store::JOURNAL_KEY)).expect("the journal's key");
    sql("delete from provost.search_event");
    sql("update provost.repo set searched_to = 0, timeline = 99, seal = null");
    seal_row(&key, sql);
    assert!(store.begin(head).expect("the turn").moved);
    store.commit(&batch(&mut storm)).expect("a commit");
    assert!(store.lacks_index());
    while store.lacks_index() {
        store.index(1_000).expect("a bite");
    }
    let missing = "select count(*) from provost.event e where body is not null
                   and not exists (select from provost.search_event s where s.repo = e.repo and s.seq = e.seq)";
    assert_eq!(sql(missing), "0");
}
