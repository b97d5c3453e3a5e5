//! Simultaneous applies that each bring one part of a whole that a single apply does not bring.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::support::desk::{Desk, FREELY, errors, file};
use crate::support::eventually;
use crate::support::terminal::at_the_terminal;

/// The parts by which git takes a folder for a repository, and from which it runs programs.
const PARTS: [&str; 4] = ["HEAD", "config", "objects/x", "refs/x"];

const CONFIG: &str = "[core]\n\tfsmonitor = ./it.sh\n";

/// How often it is tried: without the guard nearly every round makes one.
const ROUNDS: usize = 20;

fn is_repository(desk: &Desk, folder: &str) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|it| desk.at(folder).join(it).exists())
}

/// Sends each of these at the same moment.
fn all_at_once(desk: &Desk, calls: &[Value]) -> Vec<Value> {
    let start = Barrier::new(calls.len());
    std::thread::scope(|scope| {
        let one = |call: &Value| {
            let (call, start) = (call.clone(), &start);
            scope.spawn(move || {
                start.wait();
                desk.apply(&call)
            })
        };
        let running: Vec<_> = calls.iter().map(one).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

#[test]
fn parts_of_a_repository_make_none_in_calls_at_the_same_time() {
    let desk = Desk::new();
    for round in 0..ROUNDS {
        let folder = format!("r{round}/rc");
        let part = |it: &&str| json!([file(&format!("{folder}/{it}"), CONFIG)]);
        let answers = all_at_once(&desk, &PARTS.iter().map(part).collect::<Vec<_>>());
        assert!(!is_repository(&desk, &folder), "round {round}: {answers:?}");
        let refused = answers.iter().flat_map(errors).filter(|it| it.contains("becomes one")).count();
        assert!(refused >= 1, "round {round}: {answers:?}");
    }
}

#[test]
fn allowed_parts_of_a_repository_make_none_when_they_are_carried_out_at_the_same_time() {
    let desk = Desk::with("", "");
    for round in 0..3 {
        let folder = format!("r{round}/rc");
        let calls: Vec<Value> =
            PARTS.iter().map(|it| json!([file(&format!("{folder}/{it}"), CONFIG)])).collect();
        for call in &calls {
            let waits = desk.apply(call);
            assert_eq!(waits["state"], "awaiting", "{waits}");
            let approve = format!("approve {}", waits["approval"].as_u64().unwrap());
            let granted = at_the_terminal(&desk.world, &approve);
            assert!(granted.status.success(), "{granted:?}");
        }
        let answers = all_at_once(&desk, &calls);
        assert!(!is_repository(&desk, &folder), "round {round}: {answers:?}");
    }
}

/// The last file of a long apply, for which another apply has written the other half meanwhile.
fn last_of_many(desk: &Desk, last: &str, meanwhile: &Value) -> (Value, Value) {
    let mut work: Vec<Value> = (0..300).map(|n| file(&format!("many/f{n}"), "x")).collect();
    work.push(file(last, "x"));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            eventually("the first file", || desk.at("many/f0").exists());
            desk.apply_as("bob", meanwhile)
        });
        let answer = desk.apply(&json!(work));
        (answer, other.join().unwrap())
    })
}

#[test]
fn what_was_judged_before_another_apply_is_judged_again_before_its_write() {
    let desk = Desk::new();
    let (answer, other) =
        last_of_many(&desk, "rc/HEAD", &json!([file("rc/objects/x", "x"), file("rc/refs/x", "x")]));
    assert_eq!((&answer["applied"], &other["applied"]), (&json!(300), &json!(2)), "{answer} {other}");
    assert!(errors(&answer)[0].contains("rc is a repository, or becomes one"), "{answer}");
    assert_eq!(desk.text("rc/HEAD"), "-");
}

#[test]
fn a_file_that_a_setting_of_another_apply_names_meanwhile_is_not_written_unasked() {
    let desk = Desk::with(FREELY, "[a6s]\napply_settings = true\n");
    let setting = "{\"mcpServers\":{\"a\":{\"command\":\"node\",\"args\":[\"tools/new.js\"]}}}";
    let (answer, other) = last_of_many(&desk, "tools/new.js", &json!([file(".mcp.json", setting)]));
    assert_eq!((&answer["applied"], &other["applied"]), (&json!(300), &json!(1)), "{answer} {other}");
    assert!(errors(&answer)[0].contains("ask again"), "{answer}");
    assert_eq!(desk.text("tools/new.js"), "-");
    // It is asked again, and then it is known what it is.
    assert_eq!(desk.apply(&json!([file("tools/new.js", "x")]))["applied"], 1);
}

#[test]
fn the_workspace_itself_becomes_no_repository() {
    let desk = Desk::new();
    let _gone = std::fs::remove_dir_all(desk.at(".git"));
    let parts: Vec<Value> = PARTS.iter().map(|it| file(it, CONFIG)).collect();
    let answer = desk.apply(&json!(parts));
    assert_eq!(answer["applied"], 0, "{answer}");
    assert!(errors(&answer).iter().all(|it| it.contains("the workspace is a repository")), "{answer}");
    // In spellings that some systems do not tell apart.
    let small = ["d/head", "d/OBJECTS/x", "d/Refs/x", "d/config"];
    let answer = desk.apply(&json!(small.map(|it| file(it, CONFIG))));
    assert_eq!(answer["applied"], 0, "{answer}");
}
