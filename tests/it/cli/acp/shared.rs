//! Sessions and programs of one name, names that agents choose by their ids, and modes that editors set.

use serde_json::json;

use super::{Editor, edit, file, held, world};
use crate::support::rules::{allow, ask, policy, rule};
use crate::support::waits::until_some;
use crate::support::{World, eventually};

const PERMISSION: &str = "when.action = [\"permission\"]";

fn open() -> World {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    world
}

/// Has a session edit one of the two functions.
fn edits(world: &World, editor: &mut Editor, session: &str, name: &str) {
    let call = edit(&file(world), &format!("{{ return {name} }}"), &format!("{{ return {name} + 1 }}"));
    let turn = editor.prompt(session, &[&format!("ask 1 {call}"), "await 1"]);
    assert_eq!(editor.heard()["result"]["outcome"]["optionId"], "yes-1");
    editor.answer(turn);
}

#[test]
fn of_two_programs_of_one_name_each_gives_back_its_own() {
    let world = open();
    let _daemon = world.start();
    let [mut one, mut other] = [(); 2].map(|()| {
        let mut editor = Editor::with(&world, &["--as", "coder"], &[]);
        editor.begin(&world);
        editor
    });
    edits(&world, &mut one, "s1", "a");
    edits(&world, &mut other, "s1", "b");
    assert_eq!(held(&world), ["src/auth.ts:login coder", "src/auth.ts:logout coder"]);
    assert_eq!(one.close().code(), Some(0));
    eventually("its own is given back", || held(&world).len() == 1);
    assert_eq!(held(&world), ["src/auth.ts:logout coder"], "the other one still writes there");
    assert_eq!(other.close().code(), Some(0));
    eventually("nothing is held", || held(&world).is_empty());
}

#[test]
fn of_two_sessions_of_one_name_each_gives_back_its_own() {
    let world = open();
    world.write("src/other.ts", super::CODE);
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &["--as", "coder"], &[]);
    editor.begin(&world);
    editor.begin(&world);
    edits(&world, &mut editor, "s1", "a");
    let other = world.repo().join("src/other.ts").to_str().unwrap().to_owned();
    let call = edit(&other, "{ return a }", "{ return a + 1 }");
    let turn = editor.prompt("s2", &[&format!("ask 1 {call}"), "await 1"]);
    editor.heard();
    editor.answer(turn);
    assert_eq!(held(&world).len(), 2, "{:?}", held(&world));
    assert!(editor.call("session/close", &json!({ "sessionId": "s1" }))["result"].is_object());
    eventually("its own is given back", || held(&world).len() == 1);
    assert!(held(&world)[0].starts_with("src/other.ts"), "{:?}", held(&world));
}

/// Ids that end alike are two sessions all the same.
#[test]
fn a_loaded_sessions_name_is_of_its_whole_id() {
    let world = open();
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &[]);
    for id in ["one-11112222", "two-11112222"] {
        editor.call("session/load", &json!({ "sessionId": id, "cwd": world.repo(), "mcpServers": [] }));
    }
    edits(&world, &mut editor, "one-11112222", "a");
    let call = edit(&file(&world), "{ return a }", "{ return a + a }");
    editor.prompt("two-11112222", &[&format!("ask 1 {call}"), "await 1"]);
    let heard = editor.heard();
    assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "another session holds it: {heard}");
    // The same session has the same name in another program.
    let holder = held(&world)[0].rsplit_once(' ').unwrap().1.to_owned();
    let mut later = Editor::with(&world, &[], &[]);
    let load = json!({ "sessionId": "one-11112222", "cwd": world.repo(), "mcpServers": [] });
    later.call("session/load", &load);
    assert!(later.agent_got().iter().any(|it| it.contains(&holder)), "{:#?}", later.agent_got());
}

#[test]
fn a_mode_that_the_editor_sets_is_put_before_the_rules() {
    let world = world();
    let no = rule("no", "deny", "each write is asked about", &[PERMISSION, "when.tool = [\"switch_mode\"]"]);
    world.rule(&policy([no]));
    let daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["modes"]);
    editor.begin(&world);
    for (method, params) in [
        ("session/set_mode", json!({ "sessionId": "s1", "modeId": "bypassPermissions" })),
        ("session/set_config_option", json!({ "sessionId": "s1", "configId": "how", "value": "yolo" })),
    ] {
        let answer = editor.call(method, &params);
        assert!(
            answer["error"]["message"].as_str().is_some_and(|it| it.contains("each write is asked about")),
            "{answer}"
        );
        // Told without an id, it is no other.
        editor.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
    let twice = br#"{"jsonrpc":"2.0","id":"m","method":"session/set_mode","params":{"sessionId":"s1","modeId":"default","modeId":"yolo"}}"#;
    editor.raw(twice);
    assert_eq!(editor.until("it is answered", |it| it["id"] == "m")["error"]["code"], -32602);
    // What sets no mode passes.
    let model = json!({ "sessionId": "s1", "configId": "model", "value": "large" });
    assert!(editor.call("session/set_config_option", &model)["result"].is_object());
    let turn = editor.prompt("s1", &["say on"]);
    editor.answer(turn);
    let got = editor.agent_got();
    assert!(!got.iter().any(|it| it.contains("yolo") || it.contains("bypass")), "{got:#?}");
    let log = String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap();
    assert!(log.contains("each write is asked about"), "it is on record: {log}");
    drop(daemon);
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["modes"]);
    editor.begin(&world);
    // Its person has answered by choosing; the queue forgets the question.
    let set = editor.call("session/set_mode", &json!({ "sessionId": "s1", "modeId": "auto" }));
    assert!(set["result"].is_object(), "{set}");
    let log = || String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap();
    until_some("it is on record that it was asked, and taken back", || {
        log().lines().find(|it| it.contains("permission_withdrawn") && it.contains("switch_mode")).map(drop)
    });
    let listed = world.done("x", &["approval", "list"]);
    assert!(!listed.to_string().contains("switch_mode"), "{listed}");
    editor.agent_gets("\"modeId\":\"auto\"");
}

#[test]
fn a_mode_that_no_rule_speaks_of_is_its_persons_to_set() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &["modes"]);
    editor.begin(&world);
    let answer = editor.call("session/set_mode", &json!({ "sessionId": "s1", "modeId": "auto" }));
    assert!(answer["result"].is_object(), "{answer}");
}
