//! How it ends: an agent that dies, an editor that vanishes, and what is left of either.

use std::time::Duration;

use serde_json::json;

use super::{Editor, edit, file, held, text, world};
use crate::support::eventually;
use crate::support::rules::{allow, policy};

fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| !it.contains(") Z "))
}

#[test]
fn an_agent_that_dies_leaves_no_request_open_and_the_program_ends_with_a_code() {
    let world = world();
    for verb in ["die 3", "leave-open 3"] {
        let mut editor = Editor::new(&world);
        let silent = editor.ask("_x/silent", &json!({}));
        let turn = editor.prompt("s1", &["say so far", verb]);
        editor.until("what it has said before", |it| text(it) == Some("so far"));
        for id in [silent, turn] {
            let answer = editor.answer(id);
            let told = answer["error"]["message"].as_str().unwrap();
            assert!(
                told.contains("the agent has ended") && answer["error"]["data"]["exitCode"] == 3,
                "{answer}"
            );
        }
        assert_eq!(editor.ended().code(), Some(1));
    }
}

#[test]
fn an_editor_that_vanishes_ends_the_turn_the_agent_all_that_it_has_started_and_what_it_held() {
    let world = world();
    world.rule(&policy([allow("all", &["when.action = [\"permission\"]"])]));
    let _daemon = world.start();
    for how in ["", "stays"] {
        let mut editor = Editor::with(&world, &[], &[how]);
        editor.begin(&world);
        let call = edit(&file(&world), "{ return a }", "{ return a + a }");
        editor.prompt("s1", &[&format!("ask 1 {call}"), "await 1", "child", "forever"]);
        editor.heard();
        let child = editor.until("its child", |it| text(it).is_some_and(|it| it.starts_with("child ")));
        let child = text(&child).unwrap().strip_prefix("child ").unwrap().to_owned();
        assert_eq!(held(&world).len(), 1);
        assert_eq!(editor.close().code(), Some(0));
        let got = editor.agent_got();
        assert!(got.iter().any(|it| it.contains("session/cancel")), "{got:#?}");
        assert_eq!(got.last().map(String::as_str), Some("END"));
        eventually("its child has ended", || !runs(&child));
        assert!(held(&world).is_empty(), "{:?}", held(&world));
    }
}

#[test]
fn a_killed_proxy_leaves_no_agent_and_no_lock() {
    let world = world();
    world.rule(&policy([allow("all", &["when.action = [\"permission\"]"])]));
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["stays"]);
    editor.begin(&world);
    let call = edit(&file(&world), "{ return a }", "{ return a + a }");
    let turn = editor.prompt("s1", &[&format!("ask 1 {call}"), "await 1"]);
    editor.answer(turn);
    assert_eq!(held(&world).len(), 1);
    let agent = child_of(editor.child.id());
    editor.child.kill().unwrap();
    eventually("the agent has ended", || !runs(&agent));
    eventually("nothing is held", || held(&world).is_empty());
}

/// The process that another one has started.
fn child_of(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_signal_ends_it_as_the_editor_does() {
    let world = world();
    let mut editor = Editor::new(&world);
    let pid = editor.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(editor.ended().code(), Some(0));
    assert_eq!(editor.agent_got().last().map(String::as_str), Some("END"));
}

#[test]
fn an_editor_that_reads_nothing_stops_an_agent_that_floods_and_both_go_on_afterwards() {
    let world = world();
    let mut editor = Editor::new(&world);
    let lines: Vec<String> = (0..3_000).map(|at| format!("say {at} {}", "x".repeat(2_000))).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let turn = editor.prompt("s1", &lines);
    // It reads late.
    std::thread::yield_now();
    let mut next = 0;
    loop {
        let line = editor.from.recv_timeout(Duration::from_secs(60)).unwrap();
        let message: serde_json::Value = serde_json::from_slice(&line).unwrap();
        if message["id"] == turn {
            break;
        }
        let said = text(&message).unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(said, next.to_string(), "in order");
        next += 1;
    }
    assert_eq!(next, 3_000);
}
