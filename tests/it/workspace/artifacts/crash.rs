//! kill -9 in the middle of an apply, full disks and folders that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::desk::{Desk, FREELY, ask, errors, file, gone};

const ROUNDS: usize = 6;
const FILES: usize = 60;

fn name(n: usize) -> String {
    format!("d{}/f{n}", n % 3)
}

/// As it is before, or is to be: every third file is new, every third is to go.
fn sides(n: usize) -> (Option<String>, Option<String>) {
    let long = |word: &str| format!("{word} {n}\n").repeat(4_000);
    match n % 3 {
        0 => (Some(long("old")), Some(long("new"))),
        1 => (None, Some(long("new"))),
        _ => (Some(long("old")), None),
    }
}

#[test]
fn after_a_kill_each_file_is_old_or_new_and_the_journal_knows() {
    let mut desk = Desk::new();
    for round in 0..ROUNDS {
        let _ = fs::remove_dir_all(desk.at("d0"));
        for n in 0..FILES {
            match sides(n).0 {
                Some(old) => desk.put(&name(n), old),
                None => drop(fs::remove_file(desk.at(&name(n)))),
            }
        }
        let artifacts: Vec<Value> = (0..FILES)
            .map(|n| sides(n).1.map_or_else(|| gone(&name(n)), |new| file(&name(n), &new)))
            .collect();
        let told = desk.events("files_applied").len();
        let body = json!({ "artifacts": artifacts });
        let (world, wanted) = (&desk.world, FILES * (round + 1) / (ROUNDS + 2));
        let until = Instant::now() + Duration::from_secs(20);
        std::thread::scope(|scope| {
            let asked =
                scope.spawn(|| std::panic::catch_unwind(|| ask(world, "ed", "POST /apply-artifacts", &body)));
            // In order: when this one is new, so are those before it.
            let is_new = || fs::read_to_string(world.repo().join(name(wanted))).ok() == sides(wanted).1;
            while !is_new() {
                assert!(Instant::now() < until, "file {wanted} is not written");
                std::hint::spin_loop();
            }
            desk.daemon.child.kill().unwrap();
            desk.daemon.child.wait().unwrap();
            let _ = asked.join().unwrap();
        });
        desk.daemon = desk.world.start();

        let now = |n: usize| fs::read_to_string(desk.at(&name(n))).ok();
        let is_new: Vec<bool> = (0..FILES).map(|n| now(n) == sides(n).1).collect();
        for (n, new) in is_new.iter().enumerate() {
            assert!(*new || now(n) == sides(n).0, "round {round}: {} is neither old nor new", name(n));
        }
        assert!(is_new[..=wanted].iter().all(|it| *it));
        let left: Vec<String> = desk.files().into_iter().filter(|it| it.contains(".provost-")).collect();
        assert_eq!(left, [""; 0], "round {round}");

        // Those that were told before the end are told once more at most.
        let mut known: Vec<String> = desk.events("files_applied")[told..]
            .iter()
            .flat_map(|it| it["files"].as_array().unwrap().clone())
            .map(|it| it["path"].as_str().unwrap().to_owned())
            .collect();
        known.sort();
        known.dedup();
        let mut written: Vec<String> = (0..FILES).filter(|n| is_new[*n]).map(name).collect();
        written.sort();
        assert_eq!(known, written, "round {round}");
        let newest = desk.applies().remove(0);
        if !is_new.iter().all(|it| *it) {
            assert_eq!(newest["state"], "broken off", "{newest}");
        }
        let undone = desk.undo(newest["apply"].as_u64().unwrap(), false);
        assert_eq!(undone["applied"].as_u64().unwrap() as usize, written.len(), "{undone}");
        for n in 0..FILES {
            assert_eq!(fs::read_to_string(desk.at(&name(n))).ok(), sides(n).0, "round {round}: {}", name(n));
        }
    }
}

/// As if the daemon had died before the end of an apply was on record.
fn owe(desk: &Desk, apply: u32) {
    let db = rusqlite::Connection::open(desk.world.state_dir().join("provost.db")).unwrap();
    let effect = json!({ "write_files": { "apply": apply, "by": "ed" } }).to_string();
    db.execute("INSERT INTO effect VALUES (1000000 + ?1, ?2, 0)", (apply, effect)).unwrap();
}

fn owed(desk: &Desk) -> u32 {
    let db = rusqlite::Connection::open(desk.world.state_dir().join("provost.db")).unwrap();
    let count = "SELECT count(*) FROM effect WHERE body LIKE '%write_files%'";
    db.query_row(count, [], |row| row.get(0)).unwrap()
}

#[test]
fn an_apply_is_owed_until_its_end_whatever_of_it_was_written_down() {
    let mut desk = Desk::new();
    desk.put("a", "old");
    desk.apply(&json!([file("a", "new"), file("b", "new")]));
    let record =
        fs::read_dir(desk.world.state_dir().join("applies")).unwrap().next().unwrap().unwrap().path();
    let ended = |desk: &Desk| desk.events("apply_ended").pop().unwrap();
    let before = desk.events("apply_ended").len();
    desk.daemon.kill();
    assert_eq!(owed(&desk), 0, "it is settled with its end");

    // Its record was complete, and its end was not on record.
    owe(&desk, 1);
    desk.daemon = desk.world.start();
    assert_eq!(desk.events("apply_ended").len(), before + 1);
    assert_eq!((&ended(&desk)["applied"], &ended(&desk)["broken_off"]), (&json!(2), &json!(false)));
    assert_eq!(desk.applies()[0]["state"], "done");
    desk.daemon.kill();
    assert_eq!(owed(&desk), 0);

    // The record was complete but for its last line.
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, &text[..text.find("{\"end\"").unwrap()]).unwrap();
    owe(&desk, 1);
    desk.daemon = desk.world.start();
    assert_eq!((&ended(&desk)["applied"], &ended(&desk)["broken_off"]), (&json!(2), &json!(true)));
    assert_eq!(desk.undo(1, false)["applied"], 2);
    assert_eq!((desk.text("a"), desk.at("b").exists()), ("old".into(), false));
    desk.daemon.kill();

    // It had not come to a record.
    owe(&desk, 77);
    desk.daemon = desk.world.start();
    assert_eq!((&ended(&desk)["apply"], &ended(&desk)["applied"]), (&json!(77), &json!(0)));
    assert_eq!((desk.text("a"), desk.files()), ("old".into(), vec!["a".into()]));
    desk.daemon.kill();
    assert_eq!(owed(&desk), 0);
}

#[test]
fn what_a_crash_has_left_beside_a_file_is_settled_at_the_next_start() {
    let mut desk = Desk::new();
    desk.put("a", "old");
    desk.apply(&json!([file("a", "new")]));
    let record =
        fs::read_dir(desk.world.state_dir().join("applies")).unwrap().next().unwrap().unwrap().path();
    desk.daemon.kill();
    // As if it had died before the two changed places: the new content is half written, and nothing was told.
    let text = fs::read_to_string(&record).unwrap();
    let step = text.find("{\"done\"").unwrap();
    let name = text.split("\"beside\":\"").nth(1).and_then(|it| it.split('"').next()).unwrap().to_owned();
    let whole = |keep: usize, more: &str| fs::write(&record, format!("{}{more}", &text[..keep])).unwrap();
    for (beside, says, after) in [
        ("ne", "old", "old"),
        ("new", "old", "old"),
        ("old", "new", "new"),
        ("newer edit", "new", "newer edit"),
    ] {
        whole(step, "{\"step\":{\"n\":2,\"path\":\"torn");
        desk.put("a", says);
        desk.put(&name, beside);
        owe(&desk, 1);
        desk.daemon = desk.world.start();
        assert_eq!((desk.files(), desk.text("a")), (vec!["a".into()], after.into()), "{beside}");
        assert_eq!(desk.applies()[0]["state"], "broken off");
        let files = desk.applies()[0]["files"].as_array().unwrap().len();
        assert_eq!(files, usize::from(after == "new"), "{beside}");
        desk.daemon.kill();
    }
}

#[test]
fn a_full_disk_leaves_every_file_as_it_was() {
    let world = World::new();
    world.rule(FREELY);
    // Files that cannot grow beyond two megabytes are what a full disk looks like to a program.
    let line =
        format!("trap '' XFSZ; ulimit -f 4000; exec {} up --foreground", crate::support::provost().display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).current_dir(world.repo()).env_clear().stdin(Stdio::null());
    world.command(&[]).get_envs().for_each(|(name, value)| {
        shell.env(name, value.unwrap_or_default());
    });
    let daemon = world.start_as(shell);
    let desk = Desk { world, daemon };
    let large = "old line\n".repeat(300_000);
    desk.put("large", &large);
    desk.put("small", "old");
    let answer = desk.apply(&json!([
        file("large", "new"),
        file("new", &"x".repeat(3 << 20)),
        file("small", "new"),
        file("deep/new", &"x".repeat(3 << 20)),
    ]));
    assert_eq!(answer["applied"], 1, "{answer}");
    let said = errors(&answer);
    assert!(said[0].starts_with("large: what is there cannot be kept"), "{said:?}");
    assert!(said[1].starts_with("new: it cannot be written"), "{said:?}");
    assert_eq!(desk.files(), ["large", "small"]);
    assert!(desk.text("large") == large && desk.text("small") == "new" && !desk.at("deep").exists());
    assert_eq!(desk.undo(1, false)["applied"], 1);
    assert_eq!(desk.text("small"), "old");
}

#[test]
fn a_folder_that_cannot_be_written_is_said_and_left() {
    let desk = Desk::new();
    desk.put("closed/a", "old");
    desk.put("open/b", "old");
    fs::set_permissions(desk.at("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    let answer = desk.apply(&json!([
        file("closed/a", "new"),
        gone("closed/a/"),
        file("closed/new/c", "new"),
        file("open/b", "new"),
    ]));
    fs::set_permissions(desk.at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(answer["applied"], 1, "{answer}");
    let denied = errors(&answer).iter().filter(|it| it.contains("Permission denied")).count();
    assert_eq!(denied, 2, "{answer}");
    assert_eq!(desk.files(), ["closed/a", "open/b"]);
    assert_eq!((desk.text("closed/a"), desk.text("open/b")), ("old".into(), "new".into()));
}
