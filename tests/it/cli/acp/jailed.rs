//! An editor that uses an agent of the configuration in its jail: each turn is a task of the daemon's, whose changes the editor's person
//! has written, or leaves in the copy.

use std::fs;

use serde_json::{Value, json};

use super::{Editor, text};
use crate::support::acp_agent::entry;
use crate::support::rules::{ALLOW, ASK, allow, approvers, ask};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, World};

/// A daemon with an agent, an editor that uses it in its jail, and a session.
pub(super) fn begun(how: &str, more: &str, rules: &str) -> (World, Daemon, Editor, String) {
    let world = World::new();
    world.configure(&entry(&world, "coder", how, more));
    world.rule(rules);
    fs::create_dir(world.repo().join("src")).unwrap();
    let daemon = world.start();
    let mut editor = Editor::start(&world, world.command(&["acp", "--agent", "coder"]));
    let hello = editor.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    assert_eq!(hello["result"]["protocolVersion"], 1, "{hello}");
    let session = editor.begin(&world);
    (world, daemon, editor, session)
}

/// Tasks may be delegated, files below `src` written by the agent, and changes written into the workspace.
pub(super) fn open() -> String {
    let writes = allow("writes", &["when.action = [\"permission\"]", "when.path = [\"src/**\"]"]);
    format!("{ALLOW}\n{writes}\n{}", allow("apply", &["when.action = [\"apply\"]"]))
}

/// Words of the agent, or of Provost among them.
#[track_caller]
pub(super) fn hears(editor: &mut Editor, words: &str) -> String {
    let said = editor.until(words, |it| text(it).is_some_and(|it| it.contains(words)));
    text(&said).unwrap().to_owned()
}

pub(super) fn the_task(world: &World) -> Value {
    let tasks = world.done("x", &["task", "list"]);
    let all = ["active", "finished"].into_iter().flat_map(|it| tasks[it].as_array().unwrap().clone());
    all.last().unwrap_or_else(|| panic!("{tasks:#}"))
}

#[test]
fn a_turn_is_done_in_a_copy_and_written_after_a_yes_and_the_next_one_goes_on_in_its_session() {
    let (world, _daemon, mut editor, session) = begun("resumes", "", &open());
    let file = world.repo().join("src/a.txt");
    let turn = editor.prompt(&session, &["remember blue", "write src/a.txt new", "say Done."]);
    let call =
        editor.until("the agent's call", |it| it["params"]["update"]["toolCallId"] == "call-src/a.txt");
    assert_eq!(call["params"]["sessionId"], session);
    hears(&mut editor, "Done.");
    let dialog = editor.dialog();
    let asked = &dialog["params"];
    assert_eq!(
        (&asked["sessionId"], &asked["toolCall"]["title"]),
        (&json!(session), &json!("Write 1 changed file"))
    );
    assert!(asked["toolCall"]["content"].to_string().contains("+new"), "{dialog:#}");
    assert_eq!(asked["toolCall"]["rawInput"]["paths"], json!(["src/a.txt"]));
    assert!(!file.exists(), "nothing is written before the yes");
    editor.choose(&dialog["id"], "apply");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    hears(&mut editor, "provost undo 1");
    let turn = editor.prompt(&session, &["recall"]);
    hears(&mut editor, "remembers blue");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    assert!(editor.close().success());
}

#[test]
fn paths_of_the_copy_are_shown_as_those_of_the_editors_folder() {
    let (world, _daemon, mut editor, session) = begun("", "", &open());
    let turn = editor.prompt(&session, &["write src/a.txt new"]);
    let asked = editor.until("the call", |it| {
        it["params"]["update"]["sessionUpdate"] == "tool_call"
            && it["params"]["update"]["toolCallId"] == "call-src/a.txt"
    });
    assert!(!asked.to_string().contains("/copies/"), "{asked:#}");
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "leave");
    editor.answer(turn);
    let all: String = editor.seen.iter().map(Value::to_string).collect();
    let copy = the_task(&world)["id"].as_str().map(|id| world.done("x", &["task", "show", id])).unwrap();
    let copy = copy["session"]["folder"].as_str().unwrap().to_owned();
    assert_ne!(copy, world.repo().display().to_string());
    assert!(!all.contains(&copy), "{all}");
}

#[test]
fn changes_that_are_left_stay_in_the_copy_and_the_next_turn_says_what_to_do_first() {
    let (world, _daemon, mut editor, session) = begun("resumes", "", &open());
    let turn = editor.prompt(&session, &["write src/a.txt new"]);
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "leave");
    let told = hears(&mut editor, "provost apply");
    assert!(told.contains("provost discard"), "{told}");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    assert!(!world.repo().join("src/a.txt").exists());
    let turn = editor.prompt(&session, &["say more"]);
    let refused = editor.answer(turn);
    let why = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused:#}"));
    assert!(why.contains("take it in or discard it first"), "{why}");
}

#[test]
fn an_answer_in_the_editor_is_no_approval() {
    let asks = ask("\"human\"", &["when.action = [\"apply\"]"]);
    let writes = allow("writes", &["when.action = [\"permission\"]", "when.path = [\"src/**\"]"]);
    let rules = format!("{ALLOW}\n{writes}\n{asks}\n{}", approvers());
    let (world, _daemon, mut editor, session) = begun("", "", &rules);
    let turn = editor.prompt(&session, &["write src/a.txt new"]);
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "apply");
    let told = hears(&mut editor, "want an approval");
    assert!(told.contains("provost approve 1"), "{told}");
    assert!(!world.repo().join("src/a.txt").exists());
    let answered = at_the_terminal(&world, "approve 1");
    assert!(answered.status.success(), "{answered:?}");
    hears(&mut editor, "Written: 1.");
    editor.answer(turn);
    assert!(world.repo().join("src/a.txt").exists());
    // What is denied is not written, and a cancelled wait leaves all as it is.
    for (verdict, words) in [("deny 2 --reason no", "Nothing was written"), ("", "provost apply")] {
        let session = editor.begin(&world);
        let turn = editor.prompt(&session, &["write src/b.txt new"]);
        let dialog = editor.dialog();
        editor.choose(&dialog["id"], "apply");
        hears(&mut editor, "want an approval");
        match verdict {
            "" => editor.send(
                &json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }),
            ),
            verdict => assert!(at_the_terminal(&world, verdict).status.success()),
        }
        hears(&mut editor, words);
        editor.answer(turn);
        assert!(!world.repo().join("src/b.txt").exists());
    }
}

#[test]
fn what_rules_deny_or_ask_about_is_told_where_it_is_answered() {
    let (_world, _daemon, mut editor, session) = begun("", "", "version = 1\ndefault = \"deny\"\n");
    let turn = editor.prompt(&session, &["say hello"]);
    hears(&mut editor, "Provost has denied this");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "refusal");

    let (world, _daemon, mut editor, session) = begun("", "", ASK);
    let turn = editor.prompt(&session, &["say hello"]);
    hears(&mut editor, "provost approve 1");
    assert!(at_the_terminal(&world, "approve 1").status.success());
    hears(&mut editor, "hello");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");

    let asks = ask("\"human\"", &["when.action = [\"permission\"]"]);
    let (world, _daemon, mut editor, session) = begun("", "", &format!("{ALLOW}\n{asks}"));
    let turn = editor.prompt(&session, &["run make deploy"]);
    let told = hears(&mut editor, "provost approve 1");
    assert!(told.contains("Bash"), "{told}");
    assert!(at_the_terminal(&world, "deny 1 --reason no").status.success());
    hears(&mut editor, "Provost has denied: make deploy");
    hears(&mut editor, "not run");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_turn_is_cancelled_and_others_go_on_beside_it() {
    let (world, _daemon, mut editor, session) = begun("", "", &open());
    let turn = editor.prompt(&session, &["say begun", "until-cancel"]);
    hears(&mut editor, "begun");
    let other = editor.begin(&world);
    let beside = editor.prompt(&other, &["say beside"]);
    assert_eq!(editor.answer(beside)["result"]["stopReason"], "end_turn");
    let again = editor.prompt(&session, &["say again"]);
    assert!(editor.answer(again)["error"]["message"].as_str().unwrap().contains("under way"));
    editor.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
    let third = editor.begin(&world);
    let turn = editor.prompt(&third, &["say begun", "until-cancel"]);
    hears(&mut editor, "begun");
    editor.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": turn } }));
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "cancelled");
}

/// A turn whose editor goes while it is under way: the states of its task from then on.
fn after_the_editor(more: &str, states: &[&str]) {
    let (world, _daemon, mut editor, session) = begun("", more, &open());
    editor.prompt(&session, &["say begun", "until-cancel"]);
    hears(&mut editor, "begun");
    assert!(editor.close().success());
    let id = the_task(&world)["id"].as_str().unwrap().to_owned();
    let state = || world.done("x", &["task", "show", &id])["state"].as_str().unwrap().to_owned();
    for expected in states {
        until_some(expected, || (state() == *expected).then_some(()));
        let _over = at_the_terminal(&world, &format!("task cancel {id}"));
    }
}

#[test]
fn when_the_editor_goes_its_turns_end_unless_the_entry_says_otherwise() {
    after_the_editor("", &["cancelled"]);
    after_the_editor("editor_gone = \"continue\"", &["running", "cancelled"]);
}

#[test]
fn what_makes_no_sense_is_an_error_and_changes_nothing() {
    let (world, _daemon, mut editor, session) = begun("", "", &open());
    let mut fails = |method: &str, params: Value, words: &str| {
        let said = editor.call(method, &params);
        let why = said["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {said}"));
        assert!(why.contains(words), "{method}: {why}");
    };
    let text = json!([{ "type": "text", "text": "say x" }]);
    fails("session/prompt", json!({ "sessionId": "none", "prompt": text }), "no such session");
    fails("session/prompt", json!({ "sessionId": session, "prompt": [] }), "no words");
    let picture = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    fails(
        "session/prompt",
        json!({ "sessionId": session, "prompt": picture }),
        "text, links and attached text",
    );
    fails("session/new", json!({ "cwd": "src", "mcpServers": [] }), "absolute");
    fails("session/new", json!({ "cwd": "/", "mcpServers": [] }), "in no repository");
    fails("session/set_mode", json!({ "sessionId": session, "modeId": "bypass" }), "does not offer");
    fails("session/close", json!({ "sessionId": "none" }), "no such session");
    editor.raw(b"this is no message");
    editor.until("its error", |it| it["error"]["code"] == -32600);
    editor.raw(br#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/a","cwd":"/b"}}"#);
    assert!(editor.answer(7)["error"]["message"].as_str().unwrap().contains("twice"));
    editor.raw(br#"{"jsonrpc":"2.0","id":"provost-1","result":{"outcome":{"outcome":"selected","optionId":"apply"}}}"#);
    assert_eq!(world.done("x", &["task", "list"]).to_string().matches("\"id\"").count(), 0);
    let attached = json!([
        { "type": "text", "text": "say a" },
        { "type": "resource", "resource": { "uri": "file:///n.txt", "text": "say b" } },
    ]);
    let turn = editor.ask("session/prompt", &json!({ "sessionId": session, "prompt": attached }));
    hears(&mut editor, "a");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.call("session/close", &json!({ "sessionId": session }))["result"], json!({}));
}
