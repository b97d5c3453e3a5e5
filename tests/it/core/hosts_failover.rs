//! Daemons of three machines at a primary and its standby: when the primary dies, when it comes back, and when its successor lacks what was
//! acknowledged. After each case the histories of all clients and the log of all hosts are checked.

use std::time::Duration;

use serde_json::Value;

use crate::support::histories::{Clients, reads_go_on, says};
use crate::support::machines::Machines;
use crate::support::own_api::own;
use crate::support::postgres::{Server, name_of};
use crate::support::told::{COUNTING, PAGE, Places, metric};
use crate::support::waits::{stays, until_some, within};
use crate::support::{Daemon, UP, World};

/// Waits for something that takes a burial, a restart, or less.
fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// Three machines that find the database at either of two servers, their worlds, and the standby.
fn at_a_pair() -> (Machines, Vec<World>, Server) {
    let mut machines = Machines::joined(3);
    let second = machines.server.standby("second");
    let url = machines.server.or(&second, &machines.database);
    machines.all.iter().for_each(|it| machines.configure_with_url(it, &url, &format!("{PAGE}{COUNTING}")));
    let worlds = std::mem::take(&mut machines.all);
    (machines, worlds, second)
}

fn clients(worlds: &[World]) -> Vec<Clients<'_>> {
    worlds.iter().zip(["a", "b", "c"]).map(|(world, name)| Clients::named(world, name)).collect()
}

fn entries(server: &Server, machines: &Machines) -> String {
    server.sql(&name_of(&machines.database), "select count(*) from provost.entry")
}

/// How many sessions of daemons listen at a server, and have done so for longer than a look takes.
fn listeners(server: &Server) -> usize {
    let sql = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and state_change < now() - interval '500 ms'
        and (query ilike 'listen %' or query ilike '%pg_notify%')";
    server.sql("postgres", sql).parse().expect("a number")
}

#[test]
fn a_failover_to_a_synchronous_standby_loses_nothing_and_an_old_primary_is_taken_by_none() {
    let (mut machines, worlds, mut second) = at_a_pair();
    machines.server.set("synchronous_standby_names = 'ANY 1 (second)'");
    let mut daemons: Vec<Daemon> = worlds.iter().map(World::start).collect();
    let all = clients(&worlds);
    Clients::during_all(&all, || {
        machines.server.kill();
        all.iter().for_each(|it| until("writes are refused", || it.refusals() > 0));
        // The standby has the past, and can be read before it takes over.
        for world in &worlds {
            let past = || own(world, ("GET", "/tasks?filter=finished"), &[], &Value::Null).0;
            until("the past is read", || past() == 200);
        }
        second.promote();
        all.iter().for_each(Clients::goes_on);
        // It claims that it can be written.
        machines.server.resume();
        second.end_sessions();
        all.iter().for_each(Clients::goes_on);
    });
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    assert_eq!(second.sql(&name_of(&machines.database), "select timeline from provost.repo"), "2");
    for world in &worlds {
        Places::of(world).say_each(["timeline 2", "takes every write", "timeline 2"]);
        assert_eq!(metric(world, "provost_timeline"), Some(2.0));
        until("it has all entries", || metric(world, "provost_log_behind") == Some(0.0));
    }

    // While the new one is away, the old one is not taken by a daemon that runs, either.
    second.kill();
    for (clients, world) in all.iter().zip(&worlds) {
        until("the old one is told", || {
            !clients.take() && says(world, &["status"]).1.contains("an old primary")
        });
    }
    second.resume();
    for clients in &all {
        until("writes go on", || clients.take());
    }

    // Who finds the old primary alone writes nothing there.
    let old = entries(&machines.server, &machines);
    daemons.pop().expect("three").stop();
    let third = &worlds[2];
    machines.configure_at(third, &machines.database.url);
    let (code, text) = says(third, UP);
    assert!(code != 0 && text.contains("an old primary, at timeline 1, and 2 was seen"), "{code}: {text}");
    assert_eq!(entries(&machines.server, &machines), old);
    machines.configure_at(third, &machines.server.or(&second, &machines.database));
    let _back = third.start();
    assert!(all[2].take());
    Clients::check_all(&all);
    drop(all);
    std::mem::swap(&mut machines.server, &mut second);
    machines.all = worlds;
    machines.check();
}

/// Has the standby hear no more, takes more locks on all machines, and has the standby take over. Returns the newest number that was given.
fn loses_the_end(all: &[Clients<'_>], first: &mut Server, second: &Server) -> u64 {
    until_some("the standby has what was there", || {
        let sql = "select replay_lsn = pg_current_wal_lsn() from pg_stat_replication";
        (first.sql("postgres", sql) == "t").then_some(())
    });
    second.set("primary_conninfo = ''");
    until_some("the standby hears no more", || second.processes("walreceiver").is_empty().then_some(()));
    for _ in 0..5 {
        all.iter().for_each(|it| assert!(it.take()));
    }
    let last = |it: &Clients<'_>| it.grants.lock().unwrap().iter().map(|it| it.fence).max();
    let last = all.iter().filter_map(last).max().expect("a grant");
    first.kill();
    second.promote();
    last
}

#[test]
fn a_loss_at_a_failover_stops_three_machines_until_a_person_accepts_it_on_one_of_them() {
    let (mut machines, worlds, mut second) = at_a_pair();
    let mut daemons: Vec<Daemon> = worlds.iter().map(World::start).collect();
    let all = clients(&worlds);
    all.iter().for_each(|it| assert!(it.take()));
    let last = loses_the_end(&all, &mut machines.server, &second);
    let before = entries(&second, &machines);
    for (clients, world) in all.iter().zip(&worlds) {
        until("the loss is told", || !clients.take() && says(world, &["status"]).1.contains("went back"));
        Places::of(world).say("went back");
        assert!(says(world, &["status"]).1.contains("provost store accept-loss"));
        reads_go_on(world);
    }
    stays("none writes", Duration::from_secs(2), || !all.iter().any(Clients::take));
    assert_eq!(entries(&second, &machines), before);

    // One machine's daemon still runs when a person accepts the loss on another one, and one starts afterwards.
    let (third, first) = (daemons.pop().expect("three"), daemons.swap_remove(0));
    for (daemon, world) in [(third, &worlds[2]), (first, &worlds[0])] {
        assert_eq!(daemon.asked_to_stop().code(), Some(1), "its stop is not on record");
        let (code, text) = says(world, UP);
        assert!(code == 8 && text.contains("went back") && text.contains("accept-loss"), "{code}: {text}");
    }
    let (code, text) = says(&worlds[0], &["store", "accept-loss", "--yes", "--json"]);
    assert_eq!(code, 0, "{text}");
    let told: Value = serde_json::from_str(&text).expect("JSON");
    assert!(told["fences_above"].as_u64().unwrap() > last, "{told}");
    let _first = worlds[0].start();
    assert!(all[0].take());
    until("the one that was not stopped goes on", || all[1].take());
    let _third = worlds[2].start();
    assert!(all[2].take());

    for clients in &all {
        assert!(clients.grants.lock().unwrap().last().expect("a grant").fence > last + 1_000);
        let found = clients.check().expect_err("the checker finds what is lost");
        assert!(found.contains("acknowledged and lost"), "{found}");
    }
    for world in &worlds {
        let (code, text) = says(world, &["journal", "verify"]);
        assert!(code == 0 && text.contains("provost store accept-loss"), "{code}: {text}");
    }
    drop(all);
    std::mem::swap(&mut machines.server, &mut second);
    machines.all = worlds;
}

#[test]
fn an_old_primary_that_alone_is_left_is_gone_on_with_once_it_has_a_timeline_of_its_own() {
    let (mut machines, worlds, mut second) = at_a_pair();
    let mut daemons: Vec<Daemon> = worlds.iter().map(World::start).collect();
    let all = clients(&worlds);
    all.iter().for_each(|it| assert!(it.take()));
    until_some("the standby has what was there", || {
        let sql = "select replay_lsn = pg_current_wal_lsn() from pg_stat_replication";
        (machines.server.sql("postgres", sql) == "t").then_some(())
    });
    machines.server.kill();
    second.promote();
    all.iter().for_each(|it| until("it goes on at the new one", || it.take()));
    let before = entries(&second, &machines);
    second.kill();
    machines.server.resume();
    let old = entries(&machines.server, &machines);
    assert!(old < before, "{old} and {before}");
    for world in &worlds {
        until("the old one is told", || says(world, &["status"]).1.contains("an old primary"));
    }
    // Nor does one wait there for what others commit.
    stays("none listens", Duration::from_secs(3), || listeners(&machines.server) == 0);
    // No command takes it, either.
    let commands: [&[&str]; 4] =
        [&["store", "accept-loss", "--yes"], &["host", "list"], &["journal", "verify"], &["log"]];
    let first = daemons.swap_remove(0);
    assert_eq!(first.asked_to_stop().code(), Some(1), "its stop is not on record");
    for command in commands {
        let (code, text) = says(&worlds[0], command);
        assert!(code != 0 && text.contains("at timeline 1, and 2 was seen"), "{command:?}: {code}: {text}");
        assert!(text.contains("Go on after a loss"), "{text}");
    }
    assert_eq!(entries(&machines.server, &machines), old);

    machines.server.promote_once_more();
    machines.server.promote_once_more();
    assert!(
        machines
            .server
            .sql("postgres", "select pg_walfile_name(pg_current_wal_lsn())")
            .starts_with("00000003")
    );
    let (code, text) = says(&worlds[0], &["store", "accept-loss", "--yes"]);
    assert_eq!(code, 0, "{text}");
    let _first = worlds[0].start();
    for (it, world) in all.iter().zip(&worlds) {
        until("it goes on", || it.take());
        let (code, text) = says(world, &["journal", "verify"]);
        assert_eq!(code, 0, "{text}");
    }
    machines.all = worlds;
}

#[test]
fn no_daemon_listens_at_an_older_copy_of_its_database_and_each_listens_again_where_it_was() {
    let mut machines = Machines::joined(2);
    let copy = Server::of_another_system();
    let name = name_of(&machines.database);
    assert_eq!(name, name_of(&copy.database()));
    // Each has seen its own database before there is another one.
    machines.start().into_iter().for_each(Daemon::stop);
    machines.server.copy_to(&copy, &name);
    let url = machines.server.or(&copy, &machines.database);
    machines.all.iter().for_each(|it| machines.configure_at(it, &url));
    let worlds = std::mem::take(&mut machines.all);
    let _daemons: Vec<Daemon> = worlds.iter().map(World::start).collect();
    let all = clients(&worlds);
    all.iter().for_each(|it| assert!(it.take()));
    until("both listen", || listeners(&machines.server) == 2);
    machines.server.kill();
    for (clients, world) in all.iter().zip(&worlds) {
        until("the copy is told", || !clients.take() && says(world, &["status"]).1.contains("went back"));
    }
    stays("none listens there", Duration::from_secs(4), || listeners(&copy) == 0);
    machines.server.resume();
    all.iter().for_each(|it| until("it goes on where it was", || it.take()));
    until("both listen again", || listeners(&machines.server) == 2);
    assert_eq!(listeners(&copy), 0);
    Clients::check_all(&all);
    drop(all);
    machines.all = worlds;
    machines.check();
}

#[test]
fn a_machine_that_went_on_at_an_old_primary_is_told_at_the_new_one() {
    let (machines, worlds, second) = at_a_pair();
    let old_alone = machines.database.url.clone();
    machines.configure_with_url(&worlds[2], &old_alone, PAGE);
    let mut daemons: Vec<Daemon> = worlds.iter().map(World::start).collect();
    let all = clients(&worlds);
    all.iter().for_each(|it| assert!(it.take()));
    until_some("the standby has what was there", || {
        let sql = "select replay_lsn = pg_current_wal_lsn() from pg_stat_replication";
        (machines.server.sql("postgres", sql) == "t").then_some(())
    });
    // Both can be written: without a standby that is waited for, none of them knows.
    second.promote();
    machines.server.end_sessions();
    until("one that knows both goes to the new one", || all[0].take() && all[1].take());
    until("one that knows the old one alone stays there", || all[2].take());

    machines.configure_with_url(&worlds[2], &machines.server.or(&second, &machines.database), PAGE);
    daemons.pop().expect("three").stop();
    let (code, text) = says(&worlds[2], UP);
    assert!(code == 8 && text.contains("went back") && text.contains("accept-loss"), "{code}: {text}");
    assert!(all[0].take() && all[1].take(), "the others go on");
    Clients::check_all(&all[..2]);
}
