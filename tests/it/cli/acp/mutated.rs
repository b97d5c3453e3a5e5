//! Recorded messages, changed at random, at both sides: nothing ends, hangs or grows.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::{Editor, world};
use crate::support::processes::resident;

/// Messages of real agents and clients, as recorded; `$REPO` stands for the repository.
const RECORDED: &str = include_str!("../../vectors/acp/recorded.jsonl");

/// How many at each side; `PROVOST_ACP_MUTATED` says another number.
const MUTATED: usize = 10_000;

fn count() -> usize {
    std::env::var("PROVOST_ACP_MUTATED").ok().and_then(|it| it.parse().ok()).unwrap_or(MUTATED)
}

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

/// A value with something else in the place of one of its parts.
fn changed(value: &mut Value, dice: &mut Dice, others: &[Value]) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() => {
            let at = dice.below(members.len());
            let name = members.keys().nth(at).unwrap().clone();
            match dice.below(8) {
                0 => return drop(members.remove(&name)),
                1 => {
                    let it = members.remove(&name).unwrap();
                    return drop(members.insert(format!("{name}x"), it));
                }
                _ => members.get_mut(&name).unwrap(),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            &mut items[at]
        }
        it => {
            let odd = [
                Value::Null,
                Value::Bool(true),
                serde_json::json!(-1),
                serde_json::json!(1.5e300),
                serde_json::json!("\u{0}\u{202e}../../etc/passwd"),
                serde_json::json!([[[]]]),
                serde_json::json!({}),
            ];
            let at = dice.below(odd.len() + 1);
            *it = odd.get(at).cloned().unwrap_or_else(|| others[dice.below(others.len())].clone());
            return;
        }
    };
    changed(inner, dice, others);
}

/// A line that was changed as a value, or byte by byte.
fn mutated(messages: &[Value], dice: &mut Dice) -> Vec<u8> {
    let mut message = messages[dice.below(messages.len())].clone();
    if dice.below(4) > 0 {
        for _ in 0..=dice.below(3) {
            changed(&mut message, dice, messages);
        }
        return message.to_string().into_bytes();
    }
    let mut line = message.to_string().into_bytes();
    for _ in 0..=dice.below(4) {
        let at = dice.below(line.len());
        match dice.below(4) {
            0 => line[at] = u8::try_from(dice.below(256)).unwrap(),
            1 => line.truncate(at),
            2 => drop(line.remove(at)),
            _ => line.insert(at, b"{}[]\",:\\0-"[dice.below(10)]),
        }
        if line.is_empty() {
            line.push(b'x');
        }
    }
    line.retain(|it| *it != b'\n');
    line
}

fn messages(repo: &str, dir: &str) -> Vec<Value> {
    let lines = RECORDED.lines().map(|it| it.replace("$REPO", repo));
    let all = lines.map(|it| serde_json::from_str::<Value>(&it).unwrap());
    all.filter(|it| it["dir"] == dir).map(|it| it["msg"].clone()).collect()
}

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
