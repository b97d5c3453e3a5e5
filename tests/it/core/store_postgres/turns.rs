//! Turns at the repository's row: one that waits for another session, and one whose connection is lost.

use provost::base::TaskId;
use provost::store::{CommitError, StoreError};

use super::{batch, folder, sentence, started};
use crate::support::postgres::{Server, name_of};
use crate::support::storm::Storm;
use crate::support::waits::until_some;

#[test]
fn what_waits_for_the_row_gives_up_with_a_sentence_and_the_next_turn_works() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let sits = std::thread::spawn({
        let name = name_of(&database);
        move || {
            Server::shared()
                .sql(&name, "begin; select 1 from provost.repo for update; select pg_sleep(4); commit")
        }
    });
    until_some("the row is held", || {
        let held =
            "select 1 from pg_stat_activity where query like '%pg_sleep(4)%' and datname = current_database()
            and wait_event = 'PgSleep'";
        (server.sql(&name_of(&database), held) == "1").then_some(())
    });
    let says = sentence(store.begin(loaded.head));
    assert!(says.contains("55P03") && says.contains("try again"), "{says}");
    sits.join().expect("it has ended");
    store.begin(loaded.head).expect("the turn");
    store.let_go().expect("it lets go");
}

#[test]
fn what_comes_in_a_turn_after_its_connection_was_lost_is_stored_nowhere() {
    let (server, dir) = (Server::start(), folder());
    let database = server.database();
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(5, loaded.state);
    let entries = || server.sql(&name_of(&database), "select count(*) from provost.entry");
    let before = entries();
    store.begin(loaded.head).expect("the turn");
    server.end_sessions();
    // The first question finds the connection gone. The second one must not make another, without the turn's transaction.
    for _ in 0..2 {
        let read = until_some("the connection is gone", || store.past_task(&a_task()).err());
        assert!(matches!(read, StoreError::Away(_)), "{read}");
    }
    let lost = store.commit(&batch(&mut storm)).expect_err("its turn is gone");
    assert!(matches!(lost, CommitError::Failed(StoreError::Away(_))), "{lost:?}");
    assert_eq!(entries(), before);
    until_some("it answers again", || store.probe().ok());
    store.begin(loaded.head).expect("the next turn");
    store.let_go().expect("it lets go");
}

fn a_task() -> TaskId {
    TaskId::parse("t-1").expect("an id")
}
