//! Recorded messages, changed at random, at both sides: nothing ends, hangs or grows.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::{Editor, world};
use crate::support::mutations::{Dice, count, messages, mutated};
use crate::support::processes::resident;

fn lines(world: &crate::support::World, dir: &str, seed: u64) -> Vec<Vec<u8>> {
    let messages = messages(world.repo().to_str().unwrap(), dir);
    let mut dice = Dice(seed);
    (0..count()).map(|_| mutated(&messages, &mut dice)).collect()
}

#[test]
fn mutated_messages_of_an_editor_end_nothing_hang_nothing_and_leave_no_memory_behind() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["sturdy"]);
    editor.begin(&world);
    let all = lines(&world, "c2a", 0x5eed);
    let (warm, rest) = all.split_at(all.len() / 4);
    let mut before = 0;
    for (part, is_warm) in [(warm, true), (rest, false)] {
        for line in part {
            editor.raw(line);
        }
        // A message that the agent answers says that it has read all before.
        let id = if is_warm { "warm-end" } else { "rest-end" };
        editor.raw(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"_x/known\",\"params\":{{}}}}")
                .as_bytes(),
        );
        loop {
            let line = editor.line();
            if serde_json::from_slice::<Value>(&line).is_ok_and(|it| it["id"] == id) {
                break;
            }
        }
        if is_warm {
            before = resident(editor.child.id());
        }
    }
    let after = resident(editor.child.id());
    assert!(after < before + (16 << 10), "{before} kB, then {after} kB");
    assert_eq!(editor.close().code(), Some(0), "{}", editor.complaints());
}

#[test]
fn mutated_messages_of_an_agent_end_nothing_hang_nothing_and_leave_no_memory_behind() {
    let world = world();
    let _daemon = world.start();
    let file = world.path("lines");
    let mut text = Vec::new();
    for line in lines(&world, "a2c", 0xacce) {
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    text.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"_x/last\",\"params\":{}}\n");
    fs::File::create(&file).unwrap().write_all(&text).unwrap();
    let mut editor = Editor::with(&world, &[], &["source", file.to_str().unwrap()]);
    let mut count = 0;
    loop {
        let line = editor.line();
        count += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message: Value = serde_json::from_slice(&line).expect("what passes is a message");
        if message["method"] == "_x/last" {
            break;
        }
        // An editor that answers each dialog, in one way or another.
        if message["method"] == "session/request_permission" && !message["id"].is_null() {
            let mut answer = String::new();
            write!(answer, "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"outcome\":", message["id"])
                .unwrap();
            answer.push_str(if count % 2 == 0 { "{\"outcome\":\"cancelled\"}}}" } else { "7}}" });
            editor.raw(answer.as_bytes());
        }
    }
    let size = resident(editor.child.id());
    assert!(size < 150 << 10, "{size} kB");
    assert!(editor.child.try_wait().unwrap().is_none());
    assert_eq!(editor.close().code(), Some(0), "{}", editor.complaints());
}
