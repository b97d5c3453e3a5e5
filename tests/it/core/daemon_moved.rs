//! A daemon whose state is moved into PostgreSQL and back by the command, which is killed on its way.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::tasks_of_hosts::{builder, delegate, is, rules};
use crate::support::postgres::Server;
use crate::support::storm::{Storm, rage, settings};
use crate::support::waits::within;
use crate::support::{UP, World};
use provost::store::{Options, open};

fn says(world: &World, args: &[&str]) -> (i32, String) {
    let out = world.command(args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

fn said(world: &World, args: &[&str]) -> Value {
    let out =
        world.command(args).arg("--json").env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    assert!(out.status.success(), "{args:?}: {out:?}");
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn lock(world: &World, symbol: &str) -> (i32, Value) {
    let mut command = world.by("ada", &["lock", symbol]);
    let out = command.env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    crate::support::commands::said(&out)
}

#[test]
fn a_daemon_goes_on_in_the_database_and_again_in_its_folder() {
    let server = Server::start();
    let database = server.database();
    let world = World::new();
    let daemon = world.start();
    assert_eq!(lock(&world, "@work:a").0, 0);
    let fence = lock(&world, "@work:b").1["lock"]["fence"].as_u64().expect("a fence");
    let to = ["store", "move", "--name", "shop", "--to", &database.url];
    let (code, text) = says(&world, &to);
    assert!(code == 4 && text.contains("provost down"), "{code}: {text}");
    daemon.stop();
    let long = "z".repeat(501);
    for (name, why) in [(" ", "blank"), (&long, "more than 500 bytes"), ("a\nb", "control characters")] {
        let (code, text) = says(&world, &["store", "move", "--name", name, "--to", &database.url]);
        assert!(code == 2 && text.contains(why), "{code}: {text}");
        world.configure(&format!("store.url = {:?}\nstore.name = {name:?}\n", database.url));
        let (code, text) = says(&world, UP);
        assert!(code != 0 && text.contains(why), "{code}: {text}");
        world.configure("");
    }

    // The daemon would begin an empty state in the database, and says what to type instead.
    let settings = format!("store.url = {:?}\nstore.name = \"shop\"\n{}", database.url, builder(""));
    world.rule(&rules());
    world.configure(&settings);
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("provost store move --to URL"), "{text}");
    world.configure("");
    let head = said(&world, &["journal", "head"])["anchor"].clone();
    let (code, text) = says(&world, &to);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("store.url") && text.contains("provost up"), "{text}");
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("provost store move --to folder"), "{text}");

    world.configure(&settings);
    assert_eq!(said(&world, &["journal", "head"])["anchor"], head);
    assert_eq!(says(&world, &["journal", "verify"]).0, 0);
    let daemon = world.start();
    assert_eq!(world.locked(), ["@work:a", "@work:b"]);
    assert!(lock(&world, "@work:c").1["lock"]["fence"].as_u64().expect("a fence") > fence);
    assert_eq!(delegate(&world, "made", "echo made >made.txt", &[]).0, 0);
    is(&world, "made", "completed");
    daemon.stop();
    let head = said(&world, &["journal", "head"])["anchor"].clone();
    let moved = said(&world, &["store", "move", "--to", "folder"]);
    assert_eq!(moved["anchor"], head);
    let (code, text) = says(&world, UP);
    assert!(code != 0 && text.contains("[store] url"), "{text}");
    world.configure(&builder(""));
    assert_eq!(said(&world, &["journal", "head"])["anchor"], head);
    let daemon = world.start();
    assert_eq!(world.locked(), ["@work:a", "@work:b", "@work:c"]);
    let (code, text) = says(&world, &["task", "diff", "made"]);
    assert!(code == 0 && text.contains("+made"), "what a run has left of the time in the database: {text}");
    daemon.stop();
}

#[test]
fn a_move_that_is_killed_at_any_point_is_repeated() {
    let server = Server::start();
    let database = server.database();
    let world = World::new();
    world.start().stop();
    let mut store = open(&world.state_dir(), Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("it loads");
    rage(&mut *store, &mut Storm::new(21, loaded.state), 3_000);
    store.close().expect("a stop");
    drop(store);
    let there = format!("store.url = {:?}\nstore.name = \"shop\"\n", database.url);
    move_and_kill(&world, &["store", "move", "--name", "shop", "--to", &database.url], ("", &there));
    world.start().stop();
    move_and_kill(&world, &["store", "move", "--to", "folder"], (&there, ""));
    world.start().stop();
    assert_eq!(says(&world, &["journal", "verify"]).0, 0);
}

/// Has a move killed after longer and longer times, until it has come to its end. Each time there is one store that is gone on with, and its
/// journal is the same.
fn move_and_kill(world: &World, args: &[&str], (from, to): (&str, &str)) {
    world.configure(from);
    let head = said(world, &["journal", "head"])["anchor"].clone();
    for pause in [0, 20, 60, 100, 150, 200, 300, 400, 550, 700, 900, 1_200, 1_600, 2_500, 4_000, 120_000] {
        world.configure(from);
        let mut child =
            world.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        within(Duration::from_millis(pause), || child.try_wait().expect("it is known").is_some());
        let _ = child.kill();
        child.wait().expect("it has ended");
        let has = [from, to].map(|settings| {
            world.configure(settings);
            let out = world.command(&["journal", "head", "--json"]).output().expect("the command runs");
            let told: Option<Value> = serde_json::from_slice(&out.stdout).ok();
            assert!(
                !out.status.success() || told.is_some_and(|it| it["anchor"] == head),
                "{pause} ms: {out:?}"
            );
            out.status.success()
        });
        assert_ne!(has[0], has[1], "after {pause} ms");
        if has[1] {
            assert_eq!(says(world, &["journal", "verify"]).0, 0, "after {pause} ms");
            return;
        }
    }
    panic!("the move has not come to its end");
}
