//! A daemon whose state is in PostgreSQL, through its own socket: what it needs, and what is left after it or
//! the server was killed.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use provost::store::JOURNAL_KEY;
use serde_json::{Value, json};

use crate::support::own_api::own;
use crate::support::postgres::{Server, name_of};
use crate::support::rules::{allow, policy, rule};
use crate::support::waits::{Ends, until_some};
use crate::support::{UP, World};

/// A world whose repository has many functions, and whose configuration names this database.
fn world(url: &str) -> World {
    let world = World::new();
    world.configure(&format!("store.url = {url:?}\nstore.name = \"shop\"\n"));
    let functions: String = (0..200).map(|n| format!("pub fn f{n}() {{}}\n")).collect();
    world.write("src/a.rs", &functions);
    world
}

fn says(world: &World, args: &[&str]) -> (i32, String) {
    let out = world.command(args).output().expect("the command runs");
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// Starts no daemon by itself: one that a command had started would keep the test's own out.
fn lock(world: &World, n: usize) -> (i32, Value) {
    let mut command = world.by("ada", &["lock", &format!("src/a.rs:f{n}")]);
    let said = command.env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    crate::support::commands::said(&said)
}

fn locked(world: &World) -> BTreeSet<String> {
    world.locked().into_iter().collect()
}

fn symbol(n: usize) -> String {
    format!("src/a.rs:f{n}")
}

#[test]
fn a_daemon_needs_tables_and_says_so_and_all_commands_find_the_state_there() {
    let server = Server::start();
    let database = server.empty_database();
    let world = world(&database.url);
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("provost store migrate"), "{text}");
    let (code, text) = says(&world, &["store", "migrate"]);
    assert!(code == 0 && text.contains("version 5"), "{text}");

    let daemon = world.start();
    let key = world.state_dir_of_one().join(JOURNAL_KEY);
    assert_eq!(lock(&world, 0).0, 0);
    assert_eq!(server.sql(&name_of(&database), "select count(*) from provost.symbol_lock"), "1");
    let (code, text) = says(&world, &["journal", "verify"]);
    assert_eq!(code, 0, "{text}");
    let (_, text) = says(&world, &["doctor"]);
    assert!(text.contains("PostgreSQL 1") && text.contains("timeline 1"), "{text}");
    daemon.stop();

    let (code, text) = says(&world, &["journal", "verify"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = says(&world, &["store", "backup", "x.db"]);
    assert!(code != 0 && text.contains("is in PostgreSQL"), "{text}");
    let whole = std::fs::read(&key).unwrap();
    std::fs::write(&key, "cut off").unwrap();
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("provost host join") && !text.contains("store restore"), "{text}");
    std::fs::write(&key, whole).unwrap();
    let changes = "set session_replication_role = replica;
        update provost.event set body = replace(body, 'f0', 'f1') where kind = 'lock_acquired'";
    server.sql(&name_of(&database), changes);
    let (code, text) = says(&world, &["journal", "verify"]);
    assert!(code != 0 && text.contains("has been changed") && text.contains("docs/hosts.md"), "{text}");
    assert!(!text.contains("store restore"), "{text}");
    world.configure("");
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("is in PostgreSQL"), "{text}");
}

#[test]
fn advice_after_a_wrong_address_is_about_the_address() {
    let server = Server::start();
    let world = world(&server.named("provost", "none").url);
    for (url, word) in [
        ("postgres://me@127.0.0.1:1/provost", "listens at this address"),
        ("postgres://127.0.0.1:1", "write the address"),
        ("mysql://me@127.0.0.1/provost", "no address of PostgreSQL"),
        (&*server.named("provost", "none").url, "make the database"),
    ] {
        let (code, text) = says(&world, &["store", "migrate", "--url", url]);
        assert!(code != 0 && text.contains(word) && !text.contains("role that owns"), "{url}: {text}");
    }
    // A role that may not make a schema is told of roles.
    server.sql("postgres", "create role laptop login");
    let database = server.empty_database();
    let (_, text) =
        says(&world, &["store", "migrate", "--url", &server.named("laptop", &name_of(&database)).url]);
    assert!(text.contains("role that owns"), "{text}");
}

#[test]
fn what_was_answered_is_there_after_the_daemon_and_the_server_were_killed() {
    let mut server = Server::start();
    let database = server.database();
    let world = world(&database.url);
    let mut daemon = world.start();
    assert_eq!(lock(&world, 0).0, 0);
    daemon.kill();
    let mut daemon = world.start();
    assert_eq!(locked(&world), BTreeSet::from([symbol(0)]));

    // Without its database it answers reads, and refuses writes with a sentence.
    server.kill();
    let (code, answer) = lock(&world, 1);
    assert!(code != 0 && answer.to_string().contains("shared store"), "{answer}");
    assert_eq!(locked(&world), BTreeSet::from([symbol(0)]));
    server.resume();
    until_some("writes go on", || (lock(&world, 1).0 == 0).then_some(()));

    // Killed in the middle of things, again and again.
    let (next, stop) = (AtomicUsize::new(2), AtomicBool::new(false));
    let acknowledged = Mutex::new(BTreeSet::from([symbol(0), symbol(1)]));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed) % 190;
                    if lock(&world, n).0 == 0 {
                        acknowledged.lock().unwrap().insert(symbol(n));
                    }
                }
            });
        }
        let _ends = Ends(&stop);
        for round in 0..4 {
            let before = acknowledged.lock().unwrap().len();
            until_some("something is acknowledged", || {
                (acknowledged.lock().unwrap().len() > before).then_some(())
            });
            if round % 2 == 0 {
                server.kill();
                server.resume();
            } else {
                daemon.kill();
                daemon = world.start();
            }
        }
    });
    let has = until_some("the daemon answers", || Some(locked(&world)));
    let lost: Vec<_> = acknowledged.lock().unwrap().difference(&has).cloned().collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    until_some("writes go on", || (lock(&world, 199).0 == 0).then_some(()));
    let pid = daemon.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = daemon.ended();
    assert!(ended.success(), "the daemon ended with {ended}: {}", world.log());
    let (code, text) = says(&world, &["journal", "verify"]);
    assert_eq!(code, 0, "{text}");
    let rows = server.sql(&name_of(&database), "select id from provost.symbol_lock");
    let lost: Vec<_> =
        acknowledged.lock().unwrap().iter().filter(|it| !rows.contains(&***it)).cloned().collect();
    assert!(lost.is_empty(), "not in the database: {lost:?}");
}

#[test]
fn other_rules_are_asked_about_decisions_on_record_in_the_database_with_and_without_a_daemon() {
    let server = Server::start();
    let database = server.database();
    let world = world(&database.url);
    let delegate = "when.action = [\"delegate\"]";
    world.rule(&policy([
        allow("free", &[delegate]),
        rule("private", "deny", "not there", &[delegate, "when.cwd = [\"private\"]"]),
    ]));
    world.write("private/key", "x");
    let daemon = world.start();
    for dir in ["src", "private", "src", "src"] {
        let _decided = world.client(&daemon, "orch").delegate("shell", "true", json!({ "working_dir": dir }));
    }
    let file = world.path("none.toml");
    let none = policy([rule("none", "deny", "closed", &[delegate])]);
    std::fs::write(&file, &none).unwrap();
    let (status, said) = own(&world, ("POST", "/replay-rules"), &[], &json!({ "text": none }));
    assert_eq!((status, &said["asked"]), (200, &json!(4)), "{said}");
    assert_eq!(said["changed"].as_array().unwrap().len(), 3, "{said}");
    let diff = |last: &str| {
        let args = ["policy", "diff", file.to_str().unwrap(), "--last", last, "--json"];
        let output = world.command(&args).env("DEVIT_NO_AUTO_START", "1").output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let changed: Vec<String> =
            said["changed"].as_array().unwrap().iter().map(|it| it["before"]["rule"].to_string()).collect();
        (said["requests"].as_u64().unwrap(), changed)
    };
    // Of the newest ones alone, where that is asked for: the denial is the third from the end.
    let (all, two, three) = ((4, 3), (2, 2), (3, 2));
    let counted = || ["100", "2", "3"].map(&diff).map(|(asked, changed)| (asked, changed.len()));
    assert_eq!(counted(), [all, two, three]);
    daemon.stop();
    assert_eq!(counted(), [all, two, three], "without a daemon");
    // The rows are in the database and nowhere else.
    let judged = "select count(*) from provost.event where body::text like '%judged%'";
    assert_ne!(server.sql(&name_of(&database), judged).trim(), "0");
    drop(server);
    let args = ["policy", "diff", file.to_str().unwrap(), "--last", "2"];
    let output = world.command(&args).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !told.contains("nothing to replay"), "{told}");
}
