//! Words for an agent while it works: kept, delivered when its turn ends or at once, shown with their speaker, and reported
//! if they were not delivered. Who may say them, how much, and agents that do everything wrong.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use super::questions::until_open;
use super::{answer, last, started};
use crate::support::rules::{allow, rule};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, World, eventually};

/// Delegates a goal, and returns at once.
pub(super) fn begun(world: &World, task: &str, goal: &str) {
    let output = world.command(&["delegate", goal, "--worker", "coder", "--task", task]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(super) fn shown(world: &World, task: &str) -> Value {
    let output = world.command(&["task", "show", task, "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn until(world: &World, task: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until_some(what, || Some(shown(world, task)).filter(&is_so))
}

/// Waits until the agent has its session, and so its first turn.
pub(super) fn at_work(world: &World, task: &str) -> Value {
    until(world, task, "its session has begun", |it| it["session"].is_object())
}

pub(super) fn over(world: &World, task: &str) -> Value {
    until(world, task, "the task is over", |it| {
        matches!(it["state"].as_str(), Some("completed" | "failed" | "cancelled"))
    })
}

fn say(world: &World, task: &str, text: &str, flags: &[&str]) -> Output {
    let words = [&["say", task, "--json"], flags, &["--", text]].concat();
    world.command(&words).output().unwrap()
}

pub(super) fn said(world: &World, task: &str, text: &str, flags: &[&str]) -> Value {
    let output = say(world, task, text, flags);
    assert!(output.status.success(), "{output:?}\n{}", world.log());
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(super) fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// An agent that works in the workspace itself, so that a test can give it a sign.
pub(super) fn in_place(how: &str) -> (World, Daemon) {
    started(how, "copy = false", &[allow("every", &["when.action = [\"permission\"]"])])
}

pub(super) fn sign(world: &World) {
    fs::write(world.repo().join("go"), "").unwrap();
}

#[test]
fn what_is_said_waits_for_the_end_of_the_turn_and_is_the_next_one() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", "until-file go\nrun a\nsay first");
    at_work(&world, "t1");
    assert_eq!(
        said(&world, "t1", "run b\nsay second", &[]),
        json!({ "task": "t1", "number": 1, "waiting": 1 })
    );
    assert_eq!(said(&world, "t1", "run c\nsay \u{1b}[31mred", &[])["waiting"], 2);
    let waits = shown(&world, "t1");
    assert_eq!(waits["said"][0]["state"], "waiting");
    assert_eq!(waits["said"][0]["text"], "run b\nsay second");
    sign(&world);
    let task = over(&world, "t1");
    assert_eq!(task["state"], "completed", "{task:#}");
    assert!(answer(&task).ends_with("red"), "the last turn has the answer: {task:#}");
    assert!(task["said"].as_array().unwrap().iter().all(|it| it["state"] == "delivered"), "{task:#}");
    assert!(task["said"][0]["delivered_at"].is_string());
    // The tokens of both turns.
    assert_eq!(last(&task, "metadata")["tokens_input"], 400);
    let output = world.command(&["log", "--json"]).output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    for kind in ["session_begun", "task_said", "sayings_delivered"] {
        assert!(log.contains(kind), "{kind}: {log}");
    }
    assert!(!log.contains("second"), "the journal has no words");
}

#[test]
fn the_transcript_says_who_said_it_and_what_acts_on_a_terminal_is_taken_out() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", "until-file go");
    at_work(&world, "t1");
    said(&world, "t1", "say \u{1b}[2J\u{1b}]0;title\u{7}cleared", &[]);
    let mut follow = world.command(&["task", "show", "t1", "--wait"]);
    let follow =
        follow.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    sign(&world);
    let followed = follow.wait_with_output().unwrap();
    let text =
        String::from_utf8_lossy(&followed.stdout).into_owned() + &String::from_utf8_lossy(&followed.stderr);
    assert!(text.lines().any(|it| it.starts_with("> user:") && it.contains(": say ")), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    let plain = world.command(&["task", "show", "t1"]).output().unwrap();
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(plain.contains("said (delivered)") && plain.contains("session session-1"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
}

#[test]
fn what_is_said_now_ends_the_turn_first_and_its_questions_leave_the_queue() {
    let asks = rule(
        "ask",
        "approve",
        "a person looks",
        &["when.action = [\"permission\"]", "approve.by = [\"human\"]", "approve.expires = \"5m\""],
    );
    let (world, _daemon) = started("", "", &[asks]);
    begun(&world, "t1", "ask-until-cancel\nuntil-cancel");
    let waiting = || {
        let listed = world.command(&["approval", "list", "--json"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).contains("late")
    };
    eventually("it asks", waiting);
    said(&world, "t1", "say gently", &[]);
    said(&world, "t1", "say changed", &["--now"]);
    let task = over(&world, "t1");
    assert_eq!(task["state"], "completed", "{task:#}");
    assert!(answer(&task).contains("gentlychanged"), "in the order in which they were said: {task:#}");
    assert!(!waiting(), "a cancelled turn asks nothing any more");
}

#[test]
fn an_agent_that_does_not_end_its_turn_is_ended_and_what_was_said_is_told_as_not_delivered() {
    let (world, _daemon) = started("never-cancels", "", &[]);
    begun(&world, "t1", "until-cancel");
    at_work(&world, "t1");
    said(&world, "t1", "say now", &["--now"]);
    // During the cancel.
    said(&world, "t1", "say too", &["--now"]);
    let task = over(&world, "t1");
    assert_eq!(task["state"], "failed");
    let summary = last(&task, "summary").as_str().unwrap();
    assert!(summary.starts_with("These messages to its agent were not delivered: 1, 2. "), "{summary}");
    assert!(summary.contains("it has not ended its turn within 10s after that was cancelled"), "{summary}");
    let states: Vec<&Value> = task["said"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["not_delivered", "not_delivered"]);
}

#[test]
fn a_turn_that_fails_is_not_the_end_where_something_waits() {
    let (world, _daemon) = started("stop-refusal", "copy = false", &[]);
    begun(&world, "t1", "until-file go");
    at_work(&world, "t1");
    said(&world, "t1", "say another way", &[]);
    sign(&world);
    let task = over(&world, "t1");
    assert_eq!(task["said"][0]["state"], "delivered", "{task:#}");
    assert_eq!(task["state"], "failed", "the last turn was refused, too");
}

const COLOUR: &str = r#"{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}}}"#;

#[test]
fn a_question_of_an_agents_reaches_a_person_and_its_answer_goes_back() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", &format!("elicit {COLOUR} | Which colour?"));
    until_open(&world, 1);
    let answered = at_the_terminal(&world, "question answer coder blue");
    assert!(String::from_utf8_lossy(&answered.stdout).contains("answered coder"), "{answered:?}");
    let task = over(&world, "t1");
    let expected = r#"heard {"action": "accept", "content": {"colour": "blue"}}"#;
    assert!(answer(&task).contains(expected), "{task:#}");
}

#[test]
fn forms_that_cannot_be_asked_are_declined_at_once() {
    let fields: Vec<String> = (0..9).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
    let many = format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(","));
    for (how, schema) in [("", many.as_str()), ("url", COLOUR)] {
        let (world, _daemon) = in_place(how);
        begun(&world, "t1", &format!("elicit {schema} | Which?"));
        let task = over(&world, "t1");
        assert!(answer(&task).contains(r#"heard {"action": "decline"}"#), "{task:#}");
    }
}

#[test]
fn its_asker_and_people_may_say_something_and_no_other_agent() {
    let (world, _daemon) = in_place("");
    let begun = world
        .command(&["delegate", "until-file go", "--worker", "coder", "--task", "t1", "--as", "orch"])
        .output()
        .unwrap();
    assert!(begun.status.success(), "{begun:?}");
    at_work(&world, "t1");
    assert_eq!(said(&world, "t1", "say by its asker", &["--as", "orch"])["number"], 1);
    let why = refused(&say(&world, "t1", "say by another", &["--as", "stranger"]));
    assert!(why.contains("this task belongs to orch"), "{why}");
    let why = refused(&say(&world, "t1", "say by its worker", &["--as", "coder"]));
    assert!(why.contains("this task belongs to orch"), "{why}");
    let unnamed = refused(&say(&world, "t1", "say by a model without a name", &[]));
    assert!(unnamed.contains("the right to operate"), "{unnamed}");
    let person = at_the_terminal(&world, "say t1 --json 'say by a person'");
    assert!(person.status.success(), "{person:?}");
    sign(&world);
    let task = over(&world, "t1");
    let by: Vec<&str> =
        task["said"].as_array().unwrap().iter().map(|it| it["by"].as_str().unwrap()).collect();
    assert_eq!(by[0], "orch");
    assert_eq!(by.len(), 2, "{task:#}");
}

#[test]
fn nothing_is_said_to_what_does_not_hear_it() {
    let (world, _daemon) = in_place("");
    let why = refused(&say(&world, "none", "x", &[]));
    assert!(why.contains("no such task") || why.contains("no task"), "{why}");
    begun(&world, "t1", "say done");
    over(&world, "t1");
    let why = refused(&say(&world, "t1", "x", &[]));
    assert!(why.contains("this task has already ended"), "{why}");
    let shell = world.command(&["delegate", "sleep 60", "--task", "t2"]).output().unwrap();
    assert!(shell.status.success(), "{shell:?}");
    let why = refused(&say(&world, "t2", "x", &[]));
    assert!(why.contains("only agents that speak ACP hear more than their task"), "{why}");
    let why = refused(&say(&world, "t2", "  ", &[]));
    assert!(why.contains("text is empty"), "{why}");
    // It is the same reason for each caller.
    for name in ["stranger", "coder"] {
        let why = refused(&say(&world, "t1", "x", &["--as", name]));
        assert!(why.contains("this task has already ended"), "{name}: {why}");
    }
    let why = refused(&say(&world, "t1", "x", &[]));
    assert!(why.contains("this task has already ended"), "of a model without a name: {why}");
}

#[test]
fn how_much_is_said_has_bounds() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", "until-file go");
    at_work(&world, "t1");
    let file = world.path("long");
    fs::write(&file, "x".repeat(200_000)).unwrap();
    let long = world.command(&["say", "t1", "-"]).stdin(fs::File::open(&file).unwrap()).output().unwrap();
    let why = refused(&long);
    assert!(why.contains("16384 bytes"), "{why}");
    for number in 1..=16 {
        assert_eq!(said(&world, "t1", "say .", &[])["number"], number);
    }
    let why = refused(&say(&world, "t1", "say .", &[]));
    assert!(why.contains("as many sayings as may wait for one agent"), "{why}");
    sign(&world);
    let task = over(&world, "t1");
    assert!(answer(&task).ends_with(&".".repeat(16)), "{task:#}");
}

#[test]
fn an_agent_that_answers_for_another_session_or_request_counts_for_nothing() {
    let (world, _daemon) = in_place("two-sessions");
    begun(&world, "t1", "until-file go\nsay own");
    at_work(&world, "t1");
    said(&world, "t1", "elsewhere\nsay mine", &[]);
    sign(&world);
    let task = over(&world, "t1");
    let said = answer(&task);
    assert!(said.contains("elsewhere allowed: False") && !said.contains("NOT OURS"), "{said}");
}

#[test]
fn what_a_killed_daemon_has_acknowledged_is_told_by_the_next_one() {
    let (world, mut daemon) = in_place("");
    begun(&world, "t1", "until-file go");
    at_work(&world, "t1");
    said(&world, "t1", "say lost", &[]);
    daemon.kill();
    let _daemon = world.start();
    let task = over(&world, "t1");
    assert_eq!(task["state"], "failed", "{task:#}");
    assert_eq!(task["said"][0]["state"], "not_delivered", "{task:#}");
    let summary = last(&task, "summary").as_str().unwrap();
    assert!(summary.starts_with("These messages to its agent were not delivered: 1. "), "{summary}");
}
