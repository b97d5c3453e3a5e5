//! kill -9 while a part is taken in, and while changes are discarded.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::parts::freely;
use super::{done, kept, printed, ran, task, text, world};
use crate::support::desk::ask;
use crate::support::eventually;
use crate::support::own_api::own;

const FILES: usize = 40;

#[test]
fn after_a_kill_in_the_middle_of_a_part_the_task_says_which_files_were_taken_in() {
    let world = world(&[], "");
    world.rule(&freely());
    let mut daemon = world.start();
    let script = format!("mkdir d e; for n in $(seq {FILES}); do seq 20000 > d/f$n; echo x > e/f$n; done");
    let id = done(&world, &script);
    let body = json!({ "task": id, "paths": ["d"] });
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| std::panic::catch_unwind(|| ask(&world, "ed", "POST /apply-task", &body)));
        let until = Instant::now() + Duration::from_secs(20);
        // In the order of their names: when this one is there, so are those before it.
        while !world.repo().join("d/f2").exists() {
            assert!(Instant::now() < until, "nothing is written");
            std::hint::spin_loop();
        }
        daemon.kill();
        let _ = asked.join().unwrap();
    });
    let _daemon = world.start();
    let written = fs::read_dir(world.repo().join("d")).unwrap().count();
    eventually("it is settled", || task(&world, &id)["changes"]["taken"] == written);
    let told = task(&world, &id);
    assert_eq!(told["changes"]["files"], 2 * FILES, "{told}");
    for entry in fs::read_dir(world.repo().join("d")).unwrap() {
        let says = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(says.starts_with("1\n2\n") && says.ends_with("20000\n"), "each file is whole");
    }
    assert_eq!(text(&world, "e/f1"), "-");
    // The rest is taken in as if nothing had happened, and an undo takes back what came before the end.
    let said = ran(&world, &["apply", &id], 0);
    assert!(said.contains(&format!("written: {}", 2 * FILES - written)), "{said}");
    assert_eq!(task(&world, &id)["changes"]["state"], "taken_in");
    ran(&world, &["undo", "1"], 0);
    assert_eq!(task(&world, &id)["changes"]["taken"], 2 * FILES - written);
}

#[test]
fn after_a_kill_in_the_middle_of_a_discard_changes_are_whole_or_gone() {
    let world = world(&[], "");
    world.rule(&freely());
    let mut daemon = world.start();
    for round in 0..8 {
        let id = done(&world, "for n in $(seq 100); do echo $n > f$n; done");
        let body = json!({ "task": id });
        std::thread::scope(|scope| {
            let asked = scope
                .spawn(|| std::panic::catch_unwind(|| own(&world, ("POST", "/discard-task"), &[], &body)));
            // tidy: sleeps because a moment in the middle of a discard is hit by chance alone
            std::thread::sleep(Duration::from_millis(2 * round));
            daemon.kill();
            let _ = asked.join().unwrap();
        });
        daemon = world.start();
        let now = task(&world, &id);
        match now["changes"]["state"].as_str().unwrap() {
            "kept" => {
                let files: Value =
                    serde_json::from_str(&printed(&world, &["task", "diff", &id, "--json"])).unwrap();
                assert_eq!(files.as_array().unwrap().len(), 100, "round {round}");
                ran(&world, &["discard", &id, "--yes"], 0);
            }
            "discarded" => {}
            other => panic!("round {round}: {other}"),
        }
        eventually("nothing of it is left", || kept(&world) == 0);
    }
}

#[test]
fn a_discard_that_is_on_record_is_finished_by_the_next_start() {
    let world = world(&[], "");
    world.rule(&freely());
    let daemon = world.start();
    let id = done(&world, "echo new > a.txt");
    let folder = fs::read_dir(world.state_dir().join("artifacts")).unwrap().next().unwrap().unwrap().path();
    let saved = world.path("saved");
    let copied = std::process::Command::new("cp").arg("-r").arg(&folder).arg(&saved).status().unwrap();
    assert!(copied.success());
    ran(&world, &["discard", &id, "--yes"], 0);
    daemon.stop();
    // As if the daemon had died between the record and the disk.
    fs::rename(&saved, &folder).unwrap();
    let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    let effect = json!({ "drop_changes": { "task": id } }).to_string();
    db.execute("INSERT INTO effect VALUES (1000000, ?1, 0)", [effect]).unwrap();
    drop(db);
    let _daemon = world.start();
    eventually("its files are gone", || kept(&world) == 0);
    let said = ran(&world, &["apply", &id], 4);
    assert!(said.contains("discarded"), "{said}");
    let owed = || {
        let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
        let count = "SELECT count(*) FROM effect WHERE body LIKE '%drop_changes%'";
        db.query_row(count, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    eventually("nothing is owed", || owed() == 0);
}
