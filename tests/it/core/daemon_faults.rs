//! A working daemon whose database is killed, hangs, is cut off, fails over, is full, or takes no more: writes are refused with a
//! sentence while reads go on, and nothing acknowledged is lost. Real servers, and clients whose histories are checked.

use std::time::Duration;

use serde_json::Value;

use super::supervised::{LONG, Manager};
use super::tasks_of_hosts::{builder, delegate, is, rules, task};
use crate::support::histories::{Clients, reads_go_on, says};
use crate::support::machines::git;
use crate::support::pgbouncer::Pooler;
use crate::support::postgres::{Between, Loses, Server, name_of};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{until_some, within};
use crate::support::{UP, World};

fn world(url: &str) -> World {
    let world = World::new();
    world.configure(&format!("store.url = {url:?}\nstore.name = \"shop\"\n"));
    world
}

fn ends_in_order(world: &World, daemon: crate::support::Daemon) {
    daemon.stop();
    let (code, text) = says(world, &["journal", "verify"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_server_that_is_killed_hangs_or_is_cut_off_costs_refusals_and_nothing_else() {
    let mut server = Server::start();
    let direct = server.database();
    let between = Between::at(&server);
    let world = world(&between.database(&direct).url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        server.kill();
        until_some("writes are refused", || (clients.refusals() > 0).then_some(()));
        reads_go_on(&world);
        server.resume();
        clients.goes_on();

        for lost in [Loses::Answers, Loses::Questions, Loses::Both] {
            let before = clients.refusals();
            between.lose(lost);
            until_some("writes are refused", || (clients.refusals() > before).then_some(()));
            reads_go_on(&world);
            between.lose(Loses::Nothing);
            clients.goes_on();
        }

        let before = clients.refusals();
        server.hang(true);
        until_some("writes are refused", || (clients.refusals() > before).then_some(()));
        reads_go_on(&world);
        server.hang(false);
        clients.goes_on();
    });
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn with_a_synchronous_standby_a_failover_loses_nothing() {
    let mut first = Server::start();
    let database = first.database();
    let second = first.standby("second");
    first.set("synchronous_standby_names = 'ANY 1 (second)'");
    let world = world(&first.or(&second, &database));
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        clients.goes_on();
        first.kill();
        second.promote();
        clients.goes_on();
    });
    clients.check().unwrap();
    assert_eq!(second.sql(&name_of(&database), "select timeline from provost.repo"), "2");
    // An old primary that comes back is not taken.
    first.resume();
    assert!(clients.take());
    daemon.stop();
    let daemon = world.start();
    assert!(clients.take());
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn with_an_asynchronous_standby_a_loss_is_noticed_told_and_gone_on_with_by_a_person_alone() {
    let mut first = Server::start();
    let database = first.database();
    let second = first.standby("second");
    let url = first.or(&second, &database);
    let world = world(&url);
    let again = builder("retries = 1\nretry_delay = \"30m\"");
    world.configure(&format!("store.url = {url:?}\nstore.name = \"shop\"\n{again}"));
    world.rule(&rules());
    git(&world, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let daemon = world.start();
    let clients = Clients::of(&world);
    for _ in 0..5 {
        assert!(clients.take());
    }
    for open in ["waits", "ended"] {
        let (code, said) = delegate(&world, open, "true", &["--on", "none", "--wait-for-host"]);
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(delegate(&world, "again", "exit 1", &[]).0, 0);
    until_some("its attempt has failed", || (task(&world, "again")["state"] == "retrying").then_some(()));
    until_some("the standby has what was there", || {
        let sql = "select replay_lsn = pg_current_wal_lsn() from pg_stat_replication";
        (first.sql("postgres", sql) == "t").then_some(())
    });
    // What comes behind this is not at the standby.
    second.set("primary_conninfo = ''");
    until_some("the standby hears no more", || second.processes("walreceiver").is_empty().then_some(()));
    for _ in 0..5 {
        assert!(clients.take());
    }
    assert!(at_the_terminal(&world, "task cancel ended").status.success());
    let last = clients.grants.lock().unwrap().last().expect("a grant").fence;
    first.kill();
    second.promote();

    let told = until_some("the loss is told", || {
        assert!(!clients.take(), "nothing is written to a database that went back");
        Some(says(&world, &["status"]).1).filter(|it| it.contains("went back"))
    });
    assert!(told.contains("provost store accept-loss"), "{told}");
    reads_go_on(&world);
    assert_eq!(daemon.asked_to_stop().code(), Some(1), "its stop is not on record");
    let (code, text) = says(&world, UP);
    assert!(code == 8 && text.contains("went back") && text.contains("accept-loss"), "{code}: {text}");
    let (code, text) = says(&world, &["store", "accept-loss"]);
    assert!(code == 4 && text.contains("--yes"), "{code}: {text}");
    let (code, text) = says(&world, &["store", "accept-loss", "--yes", "--json"]);
    assert_eq!(code, 0, "{text}");
    let told: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        told["fences_above"].as_u64().unwrap() > last && told["was"].as_u64() > told["is"].as_u64(),
        "{told}"
    );

    let daemon = world.start();
    assert!(clients.take());
    assert!(clients.grants.lock().unwrap().last().expect("a grant").fence > last + 1_000);
    // What would begin by itself may have run, or may have been cancelled, in the part that is lost.
    for waited in ["waits", "ended", "again"] {
        let lost = is(&world, waited, "failed").to_string();
        assert!(lost.contains("a part of the history was lost while the task waited"), "{lost}");
    }
    assert_eq!(delegate(&world, "since", "true", &["--on", "none", "--wait-for-host"]).0, 0);
    let found = clients.check().expect_err("the checker finds what is lost");
    assert!(found.contains("acknowledged and lost"), "{found}");
    let (_, text) = says(&world, &["journal", "verify"]);
    assert!(text.contains("provost store accept-loss"), "{text}");
    ends_in_order(&world, daemon);
    let daemon = world.start();
    assert_eq!(task(&world, "since")["state"], "queued", "it was asked for since");
    ends_in_order(&world, daemon);
}

#[test]
fn a_server_that_is_read_only_or_has_no_connections_left_refuses_and_comes_back() {
    let server = Server::start();
    let database = server.database();
    let world = world(&database.url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    assert!(clients.take());
    server.set("default_transaction_read_only = on");
    until_some("writes are refused", || (!clients.take()).then_some(()));
    let (_, text) = says(&world, &["status"]);
    assert!(text.contains("read-only"), "{text}");
    reads_go_on(&world);
    server.sql("postgres", "alter system reset default_transaction_read_only");
    server.sql("postgres", "select pg_reload_conf()");
    until_some("writes go on", || clients.take().then_some(()));

    // The server has room for sixty sessions.
    let many = server.crowd(160);
    until_some("writes are refused", || {
        // The daemon may have been quicker than the crowd, and has a session again.
        server.end_sessions();
        (!clients.take()).then_some(())
    });
    until_some("it is said why", || {
        says(&world, &["status"]).1.contains("raise `max_connections`").then_some(())
    });
    reads_go_on(&world);
    drop(many);
    until_some("writes go on", || clients.take().then_some(()));
    clients.refusals();
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn a_server_that_is_far_away_is_reached_once_more() {
    let server = Server::start();
    let between = Between::at(&server);
    let world = world(&between.database(&server.database()).url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    assert!(clients.take());
    // A handshake takes four of these.
    between.far(Duration::from_millis(450));
    server.end_sessions();
    assert!(within(Duration::from_secs(60), || clients.take()), "{}", world.log());
    between.far(Duration::ZERO);
    clients.are_refused_in_words();
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn a_pooler_with_sessions_is_as_good_as_none_and_one_without_is_refused() {
    let server = Server::start();
    let database = server.database();
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::at(&server, mode);
        let world = world(&pooler.database(&database).url);
        let (code, text) = says(&world, UP);
        assert!(code != 0 && text.contains("pool_mode = session"), "{mode}: {text}");
    }
    let pooler = Pooler::at(&server, "session");
    let world = world(&pooler.database(&database).url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        server.end_sessions();
        clients.goes_on();
    });
    clients.refusals();
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn a_daemon_of_a_service_manager_waits_for_its_server_and_one_that_a_person_starts_does_not() {
    let server = Server::start();
    let between = Between::at(&server);
    let world = world(&between.database(&server.database()).url);
    world.start().stop();
    between.lose(Loses::Newcomers);
    for args in [&["up"], UP] {
        // What a daemon has in its environment that begins again does not count for others.
        let out = world.command(args).env("PROVOST_BEGINS_AGAIN", "1").output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains("the database does not answer"), "{args:?}: {text}");
    }
    let manager = Manager::new(&world);
    let mut supervised = world.command(UP);
    supervised.env("NOTIFY_SOCKET", &manager.at);
    let daemon = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                assert_eq!(manager.word(LONG).as_deref(), Some("EXTEND_TIMEOUT_USEC=300000000"));
            }
            between.lose(Loses::Nothing);
        });
        world.start_as(supervised)
    });
    assert!(world.log().contains("does not start yet"), "{}", world.log());
    let said = std::iter::from_fn(|| manager.word(LONG)).find(|it| !it.starts_with("EXTEND_TIMEOUT"));
    assert_eq!(said.as_deref(), Some("READY=1"));
    assert!(Clients::of(&world).take());
    ends_in_order(&world, daemon);
}
