//! Modes that an agent sets by itself: the rules judge them as those that its editor sets.

use serde_json::{Value, json};

use super::{Editor, world};
use crate::support::World;
use crate::support::rules::{ask, policy, rule};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

const PERMISSION: &str = "when.action = [\"permission\"]";

/// Returns the update of an agent that has set its mode.
fn told(how: &str, mode: &str) -> String {
    let update = match how {
        "own-options" => json!({
            "sessionUpdate": "config_option_update",
            "configOptions": [{ "id": "how", "category": "mode", "name": "How", "currentValue": mode, "options": [] }],
        }),
        _ => json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }),
    };
    format!("update {update}")
}

/// The requests of ours by which a mode was set at the agent.
fn set_by_us(editor: &Editor) -> Vec<String> {
    let is_ours = |it: &Value| it["id"].as_str().is_some_and(|it| it.starts_with("provost-mode-"));
    let got = editor.agent_got();
    let messages = got.iter().filter_map(|it| serde_json::from_str::<Value>(it).ok()).filter(is_ours);
    messages
        .map(|it| it["params"]["modeId"].as_str().or(it["params"]["value"].as_str()).unwrap().to_owned())
        .collect()
}

fn denying() -> World {
    let world = world();
    let no = rule("no", "deny", "each write is asked about", &[PERMISSION, "when.tool = [\"switch_mode\"]"]);
    world.rule(&policy([no]));
    world
}

#[test]
fn a_mode_that_an_agent_sets_itself_is_set_back_where_a_rule_denies_it() {
    let world = denying();
    let _daemon = world.start();
    for how in ["own-modes", "own-options"] {
        let mut editor = Editor::with(&world, &[], &[how]);
        editor.begin(&world);
        for times in 1..=4 {
            let turn = editor.prompt("s1", &[&told(how, "yolo"), "say on"]);
            editor.answer(turn);
            until_some("it is set back", || (set_by_us(&editor).len() == times).then_some(()));
        }
        assert_eq!(set_by_us(&editor), ["ask"; 4], "{how}");
        assert!(editor.complaints().contains("each write is asked about"), "{}", editor.complaints());
        // The editor has heard of the mode, and of no answer to what it has not asked.
        let is_update = |it: &&Value| it.to_string().contains("yolo");
        assert_eq!(editor.seen.iter().filter(is_update).count(), 4, "{:#?}", editor.seen);
        assert!(!editor.seen.iter().any(|it| it.to_string().contains("provost-mode-")), "{:#?}", editor.seen);
        // Again and again ends the turn.
        editor.agent_gets("session/cancel");
    }
}

#[test]
fn an_agent_that_does_not_take_its_mode_back_has_its_turn_cancelled() {
    let world = denying();
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["stubborn-modes"]);
    editor.begin(&world);
    editor.prompt("s1", &[&told("", "yolo"), "say on"]);
    editor.agent_gets("session/cancel");
    assert!(editor.complaints().contains("does not take its mode back"), "{}", editor.complaints());
    // Where an agent has told no mode at the beginning, there is none to go back to.
    let mut editor = Editor::with(&world, &[], &[]);
    editor.begin(&world);
    editor.prompt("s1", &[&told("", "yolo"), "say on"]);
    editor.agent_gets("session/cancel");
    assert!(set_by_us(&editor).is_empty());
}

#[test]
fn a_mode_that_an_agent_sets_itself_and_that_no_rule_speaks_of_goes_on_record() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &["--as", "ada"], &["own-modes"]);
    editor.begin(&world);
    // What the editor has set is the editor's, also where the agent tells it; what the agent refused was not set.
    assert!(
        editor.call("session/set_mode", &json!({ "sessionId": "s1", "modeId": "auto" }))["result"]
            .is_object()
    );
    let turn = editor.prompt("s1", &[&told("", "auto"), &told("", "auto"), "say on"]);
    editor.answer(turn);
    assert!(!editor.complaints().contains("by itself"), "{}", editor.complaints());
    let turn = editor.prompt("s1", &[&told("", "yolo\u{1b}[2J"), &told("", "yolo\u{1b}[2J"), "say on"]);
    editor.answer(turn);
    let line = until_some("it is on record", || {
        let log = String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap();
        log.lines().find(|it| it.contains("by itself; no rule speaks of it")).map(str::to_owned)
    });
    assert!(line.contains("yolo") && line.contains("ada") && !line.contains("\\u001b"), "{line}");
    assert_eq!(editor.complaints().matches("by itself").count(), 1, "{}", editor.complaints());
    assert!(set_by_us(&editor).is_empty());
}

#[test]
fn a_mode_that_a_rule_asks_about_is_set_once_a_person_has_said_yes() {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["own-modes"]);
    editor.begin(&world);
    let turn = editor.prompt("s1", &[&told("", "yolo"), "say on"]);
    editor.answer(turn);
    until_some("it is set back", || (set_by_us(&editor) == ["ask"]).then_some(()));
    let asked = until_some("it is in the queue", || {
        let listed = world.done("x", &["approval", "list"]);
        listed.as_array().or_else(|| listed["approvals"].as_array())?.first().cloned()
    });
    assert!(asked.to_string().contains("yolo"), "{asked:#}");
    let done = at_the_terminal(&world, &format!("approve {} --note because", asked["id"]));
    assert!(done.status.success(), "{done:?}");
    until_some("it is set", || (set_by_us(&editor) == ["ask", "yolo"]).then_some(()));
}

#[test]
fn a_mode_that_its_person_chose_in_the_agents_question_stays() {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["own-modes"]);
    editor.begin(&world);
    // As Claude Code asks whether it may leave its plan: the options are named by modes.
    let call = json!({ "toolCallId": "p", "kind": "switch_mode", "title": "Ready to code?" });
    let turn = editor.prompt("s1", &[&format!("ask 1 {call}"), "await 1", &told("", "yes-1"), "say on"]);
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "yes-1");
    editor.answer(turn);
    // Another mode than the one that was chosen is its own, and so is the same one later.
    let turn = editor.prompt("s1", &[&told("", "yolo"), "say on"]);
    editor.answer(turn);
    until_some("it is set back", || (set_by_us(&editor) == ["yes-1"]).then_some(()));
    assert!(!editor.complaints().contains("'yes-1'"), "{}", editor.complaints());
}
