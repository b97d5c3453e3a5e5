//! Questions that an agent asks in a form: whose answer counts at each door, what other answers change, and when they are gone.

use std::process::Output;

use serde_json::{Value, json};

use super::steering::{at_work, over, refused, said, shown};
use super::{answer, entry};
use crate::support::loopback_client::Http;
use crate::support::rules::ALLOW;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, World, eventually};

const COLOUR: &str = r#"{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}}}"#;
const BLUE: &str = r#"heard {"action": "accept", "content": {"colour": "blue"}}"#;

fn in_place() -> (World, Daemon) {
    let world = World::new();
    // git-paw's clients know agents by names of two words.
    world.configure(&entry(&world, "feat-coder", "", "copy = false"));
    world.rule(ALLOW);
    let daemon = world.start();
    (world, daemon)
}

/// The questions that are open.
fn open(world: &World) -> Vec<Value> {
    let output = world.command(&["--json"]).output().unwrap();
    let needs: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    needs["questions"].as_array().unwrap().clone()
}

pub(super) fn until_open(world: &World, count: usize) -> Vec<Value> {
    until_some("as many questions are open", || Some(open(world)).filter(|it| it.len() == count))
}

fn begun(world: &World, task: &str, goal: &str) {
    let output =
        world.command(&["delegate", goal, "--worker", "feat-coder", "--task", task]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Answers a question under the name of an agent.
fn answered_as(world: &World, agent: &str, who: &str, text: &str) -> Output {
    world.command(&["question", "answer", who, text]).env("PROVOST_AGENT", agent).output().unwrap()
}

/// An agent has delegated a task whose agent asks.
fn asked_for_orch() -> (World, Daemon) {
    let (world, daemon) = in_place();
    let goal = format!("elicit {COLOUR} | Which colour?");
    let begun = world
        .command(&["delegate", &goal, "--worker", "feat-coder", "--task", "t1", "--as", "orch"])
        .output()
        .unwrap();
    assert!(begun.status.success(), "{begun:?}");
    until_open(&world, 1);
    (world, daemon)
}

#[test]
fn another_agents_answer_is_refused_at_each_door_and_a_persons_arrives() {
    let (world, _daemon) = asked_for_orch();
    let question = open(&world)[0].clone();
    let why = refused(&answered_as(&world, "stranger", "feat-coder", "red"));
    assert!(
        why.contains("feat-coder waits for the answer of people and orch, who has asked for task t1"),
        "{why}"
    );
    assert!(why.contains("provost question answer"), "{why}");
    let why = refused(&answered_as(&world, "feat-coder", "feat-coder", "red"));
    assert!(why.contains("feat-coder waits for the answer of people and orch"), "{why}");
    // A model that has left its name out, where agents have spoken.
    let unnamed = world.command(&["question", "answer", "feat-coder", "red"]).output().unwrap();
    assert!(refused(&unnamed).contains("a model that has left its name out"), "{unnamed:?}");
    // The name of git-paw's supervisor is one that any program may say.
    for re in [json!(question["text"]), Value::Null] {
        let mut payload = json!({ "from": "supervisor", "answer": "red" });
        if !re.is_null() {
            payload["re"] = re;
        }
        let said = json!({ "type": "agent.answer", "agent_id": "feat-coder", "payload": payload });
        let answer = Http::broker(&world).post("/publish", &said);
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(
            answer.json()["error"].as_str().unwrap().contains("waits for the answer of people"),
            "{answer:?}"
        );
    }
    // Words that are no answer close no form.
    let said = json!({ "type": "agent.feedback", "agent_id": "feat-coder",
        "payload": { "from": "supervisor", "errors": ["red"] } });
    assert_eq!(Http::broker(&world).post("/publish", &said).status, 202);
    assert_eq!(open(&world), std::slice::from_ref(&question), "nothing has changed");
    let number = question["seq"].to_string();
    let person = at_the_terminal(&world, &format!("question answer {number} blue"));
    assert!(String::from_utf8_lossy(&person.stdout).contains("answered feat-coder"), "{person:?}");
    let task = over(&world, "t1");
    assert!(answer(&task).contains(BLUE), "{task:#}");
    assert!(open(&world).is_empty());
}

#[test]
fn the_answer_of_the_tasks_asker_arrives() {
    let (world, _daemon) = asked_for_orch();
    let given = answered_as(&world, "orch", "feat-coder", "blue");
    assert!(given.status.success(), "{given:?}");
    let task = over(&world, "t1");
    assert!(answer(&task).contains(BLUE), "{task:#}");
}

#[test]
fn of_two_forms_one_answer_closes_one() {
    let (world, _daemon) = in_place();
    begun(
        &world,
        "t1",
        &format!("elicit-both {COLOUR} | Which colour of the door? | Which colour of the roof?"),
    );
    let asked = until_open(&world, 2);
    let roof = asked.iter().find(|it| it["text"].as_str().unwrap().contains("roof")).unwrap();
    // Without a name for either, the answer is for none.
    let said = json!({ "type": "agent.answer", "agent_id": "feat-coder",
        "payload": { "from": "supervisor", "answer": "blue" } });
    let published = at_the_terminal(&world, &format!("broker publish '{said}'"));
    let why = String::from_utf8_lossy(&published.stdout).into_owned();
    assert!(why.contains("2 questions of feat-coder fit this answer"), "{why}");
    assert_eq!(open(&world).len(), 2);
    let given = at_the_terminal(&world, &format!("question answer {} blue", roof["seq"]));
    assert!(given.status.success(), "{given:?}");
    let left = until_open(&world, 1);
    assert!(left[0]["text"].as_str().unwrap().contains("door"), "{left:?}");
    assert_eq!(shown(&world, "t1")["state"], "running");
    let given = at_the_terminal(&world, "question answer feat-coder red");
    assert!(given.status.success(), "{given:?}");
    let task = over(&world, "t1");
    let heard = answer(&task);
    assert!(heard.contains(r#"first {"action": "accept", "content": {"colour": "red"}}"#), "{heard}");
    assert!(heard.contains(r#"second {"action": "accept", "content": {"colour": "blue"}}"#), "{heard}");
}

#[test]
fn a_question_that_nothing_waits_for_is_gone() {
    let (world, _daemon) = in_place();
    // Its task was cancelled.
    begun(&world, "t1", &format!("elicit {COLOUR} | Which colour?"));
    until_open(&world, 1);
    let cancelled = world.command(&["cancel", "t1"]).output().unwrap();
    assert!(cancelled.status.success(), "{cancelled:?}");
    over(&world, "t1");
    until_open(&world, 0);
    // Its turn was.
    begun(&world, "t2", &format!("elicit {COLOUR} | Which colour?"));
    at_work(&world, "t2");
    until_open(&world, 1);
    said(&world, "t2", "until-cancel", &["--now"]);
    eventually("it hears of it", || shown(&world, "t2")["said"][0]["state"] == "delivered");
    until_open(&world, 0);
    said(&world, "t2", "say end", &["--now"]);
    over(&world, "t2");
    // Its agent takes it back.
    begun(&world, "t3", &format!("elicit-back {COLOUR} | Which colour?\nuntil-file go"));
    until_open(&world, 1);
    std::fs::write(world.repo().join("asked"), "").unwrap();
    until_open(&world, 0);
    assert_eq!(shown(&world, "t3")["state"], "running");
    std::fs::write(world.repo().join("go"), "").unwrap();
    let task = over(&world, "t3");
    assert!(answer(&task).contains("taken back -32800"), "{task:#}");
}

/// A form of several fields, and one whose answer is any of some choices.
const DOOR: &str = r#"{"type":"object","required":["colour","count"],"properties":{
    "colour":{"type":"string","enum":["red","blue"],"title":"The colour"},"count":{"type":"integer","minimum":1,"maximum":9},
    "parts":{"type":"array","items":{"type":"string","enum":["hinge","bolt"]}},"note":{"type":"string","maxLength":20}}}"#;

#[test]
fn a_form_of_several_fields_is_asked_and_answered_by_their_names() {
    let (world, _daemon) = in_place();
    let door = DOOR.replace('\n', " ");
    let forms = [
        (
            "t1",
            "colour=blue; count=2; parts=hinge, bolt; note=a; b",
            r#"{"colour": "blue", "count": 2, "note": "a; b", "parts": ["hinge", "bolt"]}"#,
        ),
        ("t2", "{\"Colour\": \"red\", \"count\": 3}", r#"{"colour": "red", "count": 3}"#),
        // One is missing, is too large, is none of the choices, is there twice, or is none of the form's.
        ("t3", "colour=blue", "decline"),
        ("t4", "colour=blue; count=10", "decline"),
        ("t5", "colour=blue; count=1; parts=lock", "decline"),
        ("t6", "colour=blue; count=1; colour=red", "decline"),
        ("t7", "colour=blue; count=1; price=2", "decline"),
    ];
    for (task, text, heard) in forms {
        begun(&world, task, &format!("elicit {door} | How is the door?"));
        let asked = until_open(&world, 1);
        let question = asked[0]["text"].as_str().unwrap();
        assert!(question.contains("colour: [The colour] (one of: red, blue)"), "{question}");
        assert!(question.contains("note: (may be left out)"), "{question}");
        let given = at_the_terminal(&world, &format!("question answer feat-coder '{text}'"));
        assert!(given.status.success(), "{given:?}");
        let over = over(&world, task);
        let told = answer(&over);
        assert!(told.contains(heard), "{text}: {told}");
    }
}
