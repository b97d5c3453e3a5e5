//! Turns that a host without others begins together with the commit of the one before.

use provost::store::{Behind, CommitError, Database, StoreError};

use super::{batch, folder, sealed, started};
use crate::support::postgres::{Server, name_of};
use crate::support::storm::Storm;
use crate::support::waits::until_some;

/// Returns how many sessions of daemons are in a transaction, and wait for nothing.
fn begun(server: &Server, database: &Database) -> String {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'
               and application_name like 'provost/%'";
    server.sql(&name_of(database), sql)
}

fn entries(server: &Server, database: &Database) -> String {
    server.sql(&name_of(database), "select count(*) from provost.entry")
}

#[test]
fn a_lone_host_has_its_next_turn_with_its_commit_and_ends_it_if_nothing_comes() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(3, loaded.state);
    // A caller that does not ask when to end it gets none.
    store.begin(loaded.head).expect("the turn");
    let head = store.commit(&batch(&mut storm)).expect("a commit");
    assert_eq!(begun(server, &database), "0");
    assert!(store.stays_begun().expect("it answers").is_none());

    store.begin(head).expect("the turn");
    let head = store.commit(&batch(&mut storm)).expect("a commit");
    until_some("the next turn is begun", || (begun(server, &database) == "1").then_some(()));
    let turn = store.begin(head).expect("the turn");
    assert!(matches!(turn.behind, Behind::Nothing) && !turn.moved && turn.hosts.len() == 1, "{turn:?}");
    let head = store.commit(&batch(&mut storm)).expect("a commit in it");
    assert_eq!((head.n.0, entries(server, &database).as_str()), (3, "3"));

    // Nothing comes.
    until_some("its time is over", || store.stays_begun().expect("it answers").is_none().then_some(()));
    assert_eq!(begun(server, &database), "0");
    let free = "select 1 from provost.repo for update nowait";
    assert_eq!(server.sql(&name_of(&database), free), "1");
    store.begin(head).expect("the turn");
    store.let_go().expect("it lets go");
}

#[test]
fn what_is_asked_in_between_ends_the_turn_that_was_begun_ahead() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(4, loaded.state);
    store.stays_begun().expect("it answers");
    store.begin(loaded.head).expect("the turn");
    let head = store.commit(&batch(&mut storm)).expect("a commit");
    store.past_task(&provost::base::TaskId::parse("t-1").expect("an id")).expect("an answer");
    assert_eq!(begun(server, &database), "0", "a read is in no transaction");
    // The engine may come with an older head: it asks what became of a commit.
    store.begin(head).expect("the turn");
    let later = store.commit(&batch(&mut storm)).expect("a commit");
    let Behind::Entries(found) = store.begin(head).expect("the turn").behind else { panic!("an entry") };
    assert_eq!((found.len(), found[0].n), (1, later.n));
    store.let_go().expect("it lets go");
    assert_eq!(begun(server, &database), "0");
}

#[test]
fn a_turn_that_was_begun_ahead_and_lost_is_begun_once_more_and_sees_what_came_between() {
    let (server, first, second) = (Server::start(), folder(), folder());
    let database = server.database();
    let (mut store, loaded) = started(first.path(), &database);
    let file = sealed(first.path());
    let mut storm = Storm::new(5, loaded.state);
    store.stays_begun().expect("it answers");
    store.begin(loaded.head).expect("the turn");
    let mut head = store.commit(&batch(&mut storm)).expect("a commit");
    // As after a stop of the machine: the server has ended the session, and another host has gone on.
    server.end_sessions();
    provost::store::join(second.path(), &database, &file.text, &file.code).expect("it joins");
    let (mut other, joined) = started(second.path(), &database);
    other.begin(joined.head).expect("its turn");
    let theirs = other.commit(&batch(&mut Storm::new(6, joined.state))).expect("its commit");
    let begun_now = until_some("it connects again", || store.begin(head).ok());
    let Behind::Entries(found) = begun_now.behind else { panic!("{begun_now:?}") };
    assert_eq!((found.len(), found[0].n, begun_now.log_end), (1, theirs.n, theirs.n));
    store.let_go().expect("it lets go");
    head = theirs;
    // Two hosts take turns, and neither keeps the row.
    for _ in 0..2 {
        store.begin(head).expect("the turn");
        store.let_go().expect("it lets go");
        assert_eq!(begun(&server, &database), "0");
    }
}

#[test]
fn another_session_that_waits_for_the_row_gets_it_from_a_host_that_is_never_idle() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let (mut storm, mut head) = (Storm::new(7, loaded.state), loaded.head);
    store.stays_begun().expect("it answers");
    store.begin(head).expect("the turn");
    let name = name_of(&database);
    for _ in 0..5 {
        let waits = std::thread::spawn({
            let name = name.clone();
            let sql = "begin; set lock_timeout = '1700ms'; select 1 from provost.repo for update; commit";
            move || Server::shared().says(&name, sql)
        });
        until_some("it waits for the row", || {
            let waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
            (server.sql(&name, waits) == "1").then_some(())
        });
        while !waits.is_finished() {
            head = store.commit(&batch(&mut storm)).expect("a commit");
            store.begin(head).expect("the turn");
        }
        assert!(waits.join().expect("it has ended").is_some(), "it has waited in vain");
    }
}

#[test]
fn a_turn_that_was_refused_ahead_is_begun_once_more() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(9, loaded.state);
    store.stays_begun().expect("it answers");
    store.begin(loaded.head).expect("the turn");
    let name = name_of(&database);
    // A lock of the table is given in the order of the queue: the turn ahead waits for it, and in vain.
    let sits = std::thread::spawn({
        let name = name.clone();
        move || {
            let sql = "begin; lock table provost.repo in access exclusive mode; select pg_sleep(1); commit";
            Server::shared().sql(&name, sql)
        }
    });
    until_some("it waits for the table", || {
        let waits =
            "select 1 from pg_stat_activity where query like '%pg_sleep(1)%' and datname = current_database()
            and wait_event_type = 'Lock' and pid <> pg_backend_pid()";
        (server.sql(&name, waits) == "1").then_some(())
    });
    let head = store.commit(&batch(&mut storm)).expect("a commit");
    until_some("the turn ahead has waited too long", || {
        let gave_up = "select 1 from pg_stat_activity where datname = current_database()
            and state = 'idle in transaction (aborted)'";
        (server.sql(&name, gave_up) == "1").then_some(())
    });
    let turn = store.begin(head).expect("the turn");
    assert!(matches!(turn.behind, Behind::Nothing), "{turn:?}");
    let next = store.commit(&batch(&mut storm)).expect("a commit");
    assert_eq!(next.n.0, head.n.0 + 1);
    sits.join().expect("it has ended");
}

#[test]
fn a_commit_that_fails_begins_nothing_ahead() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(8, loaded.state);
    store.stays_begun().expect("it answers");
    server.sql(
        &name_of(&database),
        "alter table provost.entry add constraint none_more check (n < 1) not valid",
    );
    store.begin(loaded.head).expect("the turn");
    let lost = store.commit(&batch(&mut storm)).expect_err("it is refused");
    assert!(matches!(lost, CommitError::Failed(StoreError::Database(_))), "{lost:?}");
    until_some("nothing is left", || (begun(server, &database) == "0").then_some(()));
    assert_eq!(entries(server, &database), "0");
}
