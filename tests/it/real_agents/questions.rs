//! Agents that were added with `--asks`: what the rules allow is done, what they deny is not, and a question of a run that is
//! cancelled leaves the queue.

use serde_json::Value;

use super::{CLAUDE, CODEX, GEMINI, Program, QWEN, Set, eventually, order, until_some};
use crate::support::rules::{allow, rule};

/// Agents that ask about each write.
#[track_caller]
fn asks_about_writes(program: Program) {
    let made = allow("made", &["when.action = [\"permission\"]", "when.path = [\"made.txt\"]"]);
    let set = Set::up(program, &["--asks"], &[made]);
    let task = set.done(&order("[[write made.txt hi]] [[write other.txt no]]"));
    assert_eq!(set.paths(&task), ["made.txt"], "{task:#}\n{}", set.model.results());
    assert_eq!(task["state"], "completed", "{task:#}");
}

/// A question that waits for a person is gone when its run is cancelled, and nothing was written.
#[track_caller]
fn is_cancelled_while_it_asks(program: Program, words: &str) {
    let asks = rule(
        "ask",
        "approve",
        "a person looks",
        &["when.action = [\"permission\"]", "approve.by = [\"human\"]", "approve.expires = \"5m\""],
    );
    let set = Set::up(program, &["--asks"], &[asks]);
    let begun = set.run(&["delegate", &order(words), "--worker", program.name, "--task", "t-1"]);
    assert!(begun.status.success(), "{}", super::said(&begun));
    until_some("it asks", || asked(&set).contains("made.txt").then_some(()));
    let cancelled = set.run(&["task", "cancel", "t-1"]);
    assert!(cancelled.status.success(), "{}", super::said(&cancelled));
    eventually("its question has left the queue", || !asked(&set).contains("made.txt"));
    eventually("no process of it is left", || set.is_quiet());
    let task = set.json(&["task", "show", "t-1"]);
    assert_eq!((&task["state"], set.paths(&task).len()), (&Value::from("cancelled"), 0), "{task:#}");
}

fn asked(set: &Set) -> String {
    set.json(&["approval", "list"]).to_string()
}

#[test]
fn claude_asks_and_does_what_the_rules_allow() {
    asks_about_writes(CLAUDE);
}

#[test]
fn gemini_asks_and_does_what_the_rules_allow() {
    asks_about_writes(GEMINI);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_asks_and_does_what_the_rules_allow() {
    asks_about_writes(super::GOOSE);
}

#[test]
fn qwen_asks_and_does_what_the_rules_allow() {
    asks_about_writes(QWEN);
}

#[test]
fn codex_asks_about_what_would_leave_its_sandbox_and_ends_its_turn_when_it_is_denied() {
    let made = allow("made", &["when.action = [\"permission\"]", "when.command = [\"cp look.py made.txt\"]"]);
    let set = Set::up(CODEX, &["--asks"], &[made]);
    let task = set.done(&order("[[escalate cp look.py made.txt]]"));
    assert_eq!(set.paths(&task), ["made.txt"], "{task:#}\n{}", set.model.results());
    assert_eq!(task["state"], "completed", "{task:#}");
    let task = set.done(&order("[[escalate cp look.py other.txt]]"));
    assert_eq!((&task["state"], set.paths(&task).len()), (&Value::from("failed"), 0), "{task:#}");
    assert!(task.to_string().contains("ended the turn as cancelled"), "{task:#}");
}

#[test]
fn claude_is_cancelled_while_it_asks() {
    is_cancelled_while_it_asks(CLAUDE, "[[write made.txt hi]]");
}

#[test]
fn codex_is_cancelled_while_it_asks() {
    is_cancelled_while_it_asks(CODEX, "[[escalate echo hi > made.txt]]");
}

#[test]
fn gemini_is_cancelled_while_it_asks() {
    is_cancelled_while_it_asks(GEMINI, "[[write made.txt hi]]");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_is_cancelled_while_it_asks() {
    is_cancelled_while_it_asks(super::GOOSE, "[[write made.txt hi]]");
}

#[test]
fn qwen_is_cancelled_while_it_asks() {
    is_cancelled_while_it_asks(QWEN, "[[write made.txt hi]]");
}
