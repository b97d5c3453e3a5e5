//! Whether somebody may have files written is policy's word.

use serde_json::{Value, json};

use crate::applying::{Desk, file};

fn answer_approval(desk: &Desk, id: &str, status: &str, note: &str) {
    let approver = desk.world.approver(&desk.daemon);
    approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": status, "note": note })).ack();
}

/// The id of the question on the wire, by what the approver is shown.
fn question(desk: &Desk) -> Value {
    desk.world.approver(&desk.daemon).poll_until(|it| it["msg_type"] == "APPROVAL")
}

#[test]
fn by_default_an_apply_waits_for_somebodys_word_and_is_then_carried_out_once() {
    let desk = Desk::with("", "");
    desk.put("a", "old");
    let work = json!([file("a", "new"), file("b", "new"), file("../x", "no")]);
    let asked = desk.apply(&work);
    assert_eq!((&asked["state"], &asked["applied"]), (&json!("awaiting"), &json!(0)), "{asked}");
    assert_eq!(desk.apply(&work)["approval"], asked["approval"], "the same question");
    let other = desk.apply(&json!([file("a", "other")]));
    assert_ne!(other["approval"], asked["approval"], "another content is another question");
    assert_eq!(desk.files(), ["a"]);

    let shown = question(&desk);
    assert_eq!(shown["payload"]["tool"], "ApplyFiles", "{shown}");
    assert_eq!(shown["payload"]["details"]["files"], json!(["write a", "write b"]), "{shown}");
    let (_, waiting) = desk.ask("ed", "GET /approvals", &Value::Null);
    assert_eq!(waiting[0]["request"]["files"], json!(["write a", "write b"]), "{waiting}");
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "granted", "");
    assert_eq!(desk.files(), ["a"], "nothing is written until it is asked for again");
    let stranger = desk.apply_as("somebody-else", &work);
    assert_eq!(stranger["state"], "awaiting", "a grant is for whoever asked: {stranger}");
    let done = desk.apply(&work);
    assert_eq!((&done["applied"], &done["apply"]), (&json!(2), &json!(1)), "{done}");
    assert_eq!((desk.text("a"), desk.text("b")), ("new".into(), "new".into()));
    desk.put("a", "old");
    assert_eq!(desk.apply(&work)["state"], "awaiting", "one grant, one apply");
    let undo = desk.undo(1, true);
    assert_eq!(undo["state"], "awaiting", "an agent's undo is judged too: {undo}");
}

#[test]
fn a_denied_apply_says_so_and_writes_nothing() {
    let desk = Desk::with("", "");
    let work = json!([file("a", "new")]);
    desk.apply(&work);
    let shown = question(&desk);
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "denied", "not on a Friday");
    let (status, answer) = desk.ask("ed", "POST /apply-artifacts", &json!({ "artifacts": work }));
    assert_eq!(status, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("not on a Friday"), "{answer}");
    assert_eq!(desk.files(), [""; 0]);
}

#[test]
fn nobody_is_asked_about_what_changes_nothing() {
    let desk = Desk::with("", "");
    desk.put("a", "same");
    let answer = desk.apply(&json!([file("a", "same"), file(".git/config", "x")]));
    assert_eq!((&answer["state"], &answer["skipped"]), (&json!("applied"), &json!(1)), "{answer}");
    let (_, waiting) = desk.ask("ed", "GET /approvals", &Value::Null);
    assert_eq!(waiting, json!([]));
}

#[test]
fn a_rule_that_denies_is_named() {
    let desk = Desk::with("version = 1\ndefault = \"deny\"\n", "");
    let answer = desk.apply(&json!([file("a", "new")]));
    assert_eq!((&answer["state"], &answer["rule"]), (&json!("denied"), &json!("no-rule")), "{answer}");
    assert_eq!(desk.files(), [""; 0]);
}
