//! Messages of real agents, changed at random, as a jailed agent sends them to the daemon: no run hangs, the daemon does not grow, and
//! the next run works.

use std::fs;

use serde_json::{Value, json};

use super::{answer, done, last, started};
use crate::support::World;
use crate::support::mutations::{Dice, changed_somewhere, count, messages, mutated, one_of};
use crate::support::processes::resident;
use crate::support::rules::allow;

/// More than the daemon keeps of the output of ended runs, in kilobytes.
const GROWTH_KB_MAX: u64 = 64 << 10;

/// Returns messages that agents send, with the session of the agent of these tests. An answer has a number that the daemon has
/// not used, and modes and options are left out: an agent that changes its mode again and again is ended.
fn sent(world: &World) -> Vec<Value> {
    let mut all = messages(world.repo().to_str().unwrap(), "a2c");
    all.retain(|it| it["params"]["update"]["sessionUpdate"] != "config_option_update");
    for it in &mut all {
        if it["params"]["sessionId"].is_string() {
            it["params"]["sessionId"] = json!("session-1");
        }
        if it["method"].is_null() {
            it["id"] = json!(it["id"].as_u64().unwrap_or(0) + 1_000_000);
        }
    }
    all
}

/// Whether it is JSON-RPC. An agent may send as much of that as it likes.
fn is_message(it: &Value) -> bool {
    let is_answer = it["id"].is_u64() && (it["result"] != Value::Null || it["error"] != Value::Null);
    it["method"].is_string() || (it["method"].is_null() && is_answer)
}

/// Has the agent send these lines in a turn; the task.
fn poured(world: &World, lines: impl Iterator<Item = Vec<u8>>) -> Value {
    let file = world.path("tools/lines");
    let mut text = Vec::new();
    for line in lines {
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    fs::write(&file, text).unwrap();
    done(world, &format!("pour {}\nsay end", file.display()))
}

#[test]
fn mutated_messages_of_a_jailed_agent_end_no_turn_and_leave_no_memory_behind() {
    let every = allow("every", &["when.action = [\"permission\"]"]);
    let (world, daemon) = started("", "", &[every]);
    let (sent, mut dice) = (sent(&world), Dice(0x1a11));
    let mut some = |many: usize| -> Vec<Vec<u8>> {
        let changed = std::iter::repeat_with(|| {
            let it = one_of(&sent, &mut dice);
            changed_somewhere(it, &mut dice, &sent)
        });
        changed.filter(is_message).take(many).map(|it| it.to_string().into_bytes()).collect()
    };
    let mut before = 0;
    for many in [count() / 4, count() - count() / 4] {
        let task = poured(&world, some(many).into_iter());
        assert_eq!(task["state"], "completed", "{:#}", last(&task, "summary"));
        assert!(answer(&task).contains("poured, and heard "), "{}", answer(&task));
        assert!(answer(&task).ends_with("end"), "{}", answer(&task));
        if before == 0 {
            before = resident(daemon.pid());
        }
    }
    let after = resident(daemon.pid());
    assert!(after < before + GROWTH_KB_MAX, "{before} kB, then {after} kB");
}

#[test]
fn lines_that_are_no_messages_end_the_run_of_a_jailed_agent_with_a_reason() {
    let (world, _daemon) = started("", "", &[]);
    let (sent, mut dice) = (sent(&world), Dice(0x1a12));
    let task = poured(&world, (0..count()).map(|_| mutated(&sent, &mut dice)));
    assert_eq!(task["state"], "failed", "{task:#}");
    let why = last(&task, "summary").as_str().unwrap();
    assert!(why.contains("its standard output is not ACP"), "{why}");
    let next = done(&world, "say still here");
    assert!(next["state"] == "completed" && answer(&next).ends_with("still here"), "{next:#}");
}
