//! The index of words in PostgreSQL: it is made out of the turn, by any host.

use super::*;

fn words_of(server: &Server, name: &str) -> (String, String) {
    let missing = "select count(*) from provost.event e where body is not null
                   and not exists (select from provost.search_event s where s.repo = e.repo and s.seq = e.seq)";
    let to = "select searched_to = event from provost.repo";
    (server.sql(name, missing), server.sql(name, to))
}

#[test]
fn two_hosts_index_at_the_same_time_and_no_event_is_left_out() {
    let (server, here, there) = (Server::shared(), folder(), folder());
    let database = server.database();
    let name = name_of(&database);
    let (mut one, loaded) = started(here.path(), &database);
    let mut storm = Storm::new(5, loaded.state);
    rage(&mut *one, &mut storm, 300);
    let key = sealed(here.path());
    provost::store::join(there.path(), &database, &key.text, &key.code).expect("a second host");
    let (mut other, _) = started(there.path(), &database);
    std::thread::scope(|scope| {
        for store in [&mut one, &mut other] {
            scope.spawn(|| {
                while store.lacks_index() {
                    store.index(20).expect("a bite");
                }
            });
        }
    });
    assert_eq!(words_of(server, &name), ("0".into(), "t".into()));
    // What a host commits while it is behind the other one's index is indexed, too.
    rage(&mut *other, &mut storm, 20);
    while other.lacks_index() {
        other.index(20).expect("a bite");
    }
    assert_eq!(words_of(server, &name), ("0".into(), "t".into()));
}

#[test]
fn rows_behind_the_end_of_the_journal_stop_neither_commits_nor_the_index() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let name = name_of(&database);
    let (mut store, loaded) = started(dir.path(), &database);
    let mut storm = Storm::new(7, loaded.state);
    rage(&mut *store, &mut storm, 100);
    server.sql(
        &name,
        "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
         select id, 1000000000000000, 0, 'recorded', 'x', 'no json', '', '' from provost.repo;
         insert into provost.checkpoint (repo, seq, mac, pruned_to, counters, seal)
         select id, 1000000000000000, '', 0, '{}', '' from provost.repo",
    );
    rage(&mut *store, &mut storm, 100);
    while store.lacks_index() {
        store.index(100).expect("a bite");
    }
    assert_eq!(server.sql(&name, "select searched_to = event from provost.repo"), "t");
}

#[test]
fn a_new_repository_whose_number_has_rows_already_is_refused() {
    let (server, here, there) = (Server::shared(), folder(), folder());
    let database = server.database();
    let name = name_of(&database);
    drop(started(here.path(), &database));
    server.sql(
        &name,
        "insert into provost.host_key (repo, host, what, n, event, body)
         select id + 1, repeat('a', 32), 'first', 0, 0, '{}' from provost.repo",
    );
    let mut next = database.clone();
    next.name = "next".into();
    let says = sentence(opened(there.path(), &next).and_then(|mut it| it.load(settings())));
    assert!(says.contains("rows with that number already") && says.contains("administrator"), "{says}");
    assert_eq!(server.sql(&name, "select count(*) from provost.repo"), "1", "nothing of it is left");
    drop(started(there.path(), &next));
    assert_eq!(server.sql(&name, "select id > 2 from provost.repo where name = 'next'"), "t");
}

#[test]
fn tables_of_the_release_before_lose_their_checks_of_the_repository_and_nothing_else() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.empty_database();
    let name = name_of(&database);
    for step in [
        include_str!("../../../../src/store/postgres/schema_1.sql"),
        include_str!("../../../../src/store/postgres/schema_2.sql"),
        include_str!("../../../../src/store/postgres/schema_3.sql"),
        "insert into provost.schema values (true, 3, 'the release before')",
    ] {
        server.sql(&name, step);
    }
    let checks = "select count(*) > 0 from pg_constraint where contype = 'f'";
    assert_eq!(server.sql(&name, checks), "t");
    let keys = "select count(*) from pg_constraint where contype in ('p', 'u')";
    let before = server.sql(&name, keys);
    let says = sentence(opened(dir.path(), &database));
    assert!(says.contains("version 3") && says.contains("provost store migrate"), "{says}");
    let done = migrate(dir.path(), &database, false).expect("a migration");
    assert_eq!((done.from, done.to), (3, 5));
    assert_eq!((server.sql(&name, checks), server.sql(&name, keys)), ("f".into(), before));
    let (mut store, loaded) = started(dir.path(), &database);
    rage(&mut *store, &mut Storm::new(6, loaded.state), 50);
    store.close().expect("a clean stop");
}
