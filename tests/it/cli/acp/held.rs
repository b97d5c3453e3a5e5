//! An agent's writes are locked for its session before they are allowed, and a write to a place that another agent holds is refused.

use serde_json::{Value, json};

use super::{CODE, Editor, edit, file, held, text, world};
use crate::support::rules::{allow, ask, policy};
use crate::support::{World, eventually};

const PERMISSION: &str = "when.action = [\"permission\"]";
const OLD: &str = "{ return a }";
const NEW: &str = "{ return a + a }";

/// A world in which every tool may be used.
fn open() -> World {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    world
}

fn allowed(heard: &Value) -> bool {
    heard["result"]["outcome"]["optionId"] == "yes-1"
}

fn asks(call: &str) -> Vec<String> {
    vec![format!("ask 1 {call}"), "await 1".into()]
}

fn prompt(editor: &mut Editor, session: &str, lines: &[String]) -> u64 {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    editor.prompt(session, &lines)
}

#[test]
fn an_edit_is_held_for_its_session_and_two_sessions_keep_each_other_out() {
    let world = open();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    editor.begin(&world);
    let call = edit(&file(&world), OLD, NEW);
    prompt(&mut editor, "s1", &asks(&call));
    assert!(allowed(&editor.heard()));
    let locks = held(&world);
    assert_eq!(locks.len(), 1, "{locks:?}");
    assert!(locks[0].starts_with("src/auth.ts:login acp-"), "{locks:?}");
    let holder = locks[0].rsplit_once(' ').unwrap().1.to_owned();
    // The same place is the other session's no more; the function beside it is.
    prompt(&mut editor, "s2", &asks(&call));
    let heard = editor.heard();
    assert!(!allowed(&heard) && heard.to_string().contains(&holder), "the holder is named: {heard}");
    prompt(&mut editor, "s2", &asks(&edit(&file(&world), "{ return b }", "{ return b + b }")));
    assert!(allowed(&editor.heard()));
    assert_eq!(held(&world).len(), 2);
    // It is the session's own, as often as it writes there.
    prompt(&mut editor, "s1", &asks(&call));
    assert!(allowed(&editor.heard()));
    assert!(editor.call("session/close", &json!({ "sessionId": "s1" }))["result"].is_object());
    eventually("the closed session has given back what it held", || held(&world).len() == 1);
    assert_eq!(editor.close().code(), Some(0));
    assert!(held(&world).is_empty(), "{:?}", held(&world));
}

#[test]
fn what_another_agent_holds_is_refused_before_any_person_is_asked() {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login", "--reason", "new tokens"]);
    let mut editor = Editor::new(&world);
    let path = file(&world);
    let gone = json!({ "toolCallId": "d", "kind": "delete", "title": "rm", "locations": [{ "path": path }] });
    let moved = json!({ "toolCallId": "m", "kind": "move", "title": "mv", "locations": [{ "path": path }] });
    let whole = json!({ "toolCallId": "w", "kind": "edit", "title": "w", "rawInput": { "filePath": path, "content": "x" } });
    let run = json!({ "toolCallId": "r", "kind": "execute", "title": "r", "rawInput": { "command": "rm src/auth.ts" } });
    let patch = "*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-export function login(a: string): string { return a }\n+x\n*** End Patch";
    let patch = json!({ "toolCallId": "p", "kind": "edit", "title": "p", "rawInput": { "input": patch } });
    // Labelled as something else, a difference is one all the same.
    let other = json!({ "toolCallId": "o", "kind": "other", "title": "o",
                        "content": [{ "type": "diff", "path": "src/auth.ts", "oldText": CODE, "newText": "" }] });
    let calls = [edit(&path, OLD, NEW), gone.to_string(), moved.to_string(), whole.to_string()];
    for call in calls.into_iter().chain([run, patch, other].map(|it| it.to_string())) {
        prompt(&mut editor, "s1", &asks(&call));
        let heard = editor.heard();
        assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "{call}: {heard}");
        assert!(heard.to_string().contains("codex-1"), "{heard}");
    }
    assert!(editor.seen.iter().all(|it| it["method"] != "session/request_permission"), "{:#?}", editor.seen);
    assert!(
        editor.seen.iter().filter_map(text).any(|it| it.contains("codex-1") && it.contains("new tokens"))
    );
}

#[test]
fn an_edit_that_its_person_allows_is_held_then_and_one_that_was_taken_meanwhile_is_refused() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let call = edit(&file(&world), OLD, NEW);
    prompt(&mut editor, "s1", &asks(&call));
    let dialog = editor.dialog();
    assert!(held(&world).is_empty(), "nothing is taken before it is allowed");
    editor.choose(&dialog["id"], "no-1");
    assert!(!allowed(&editor.heard()));
    assert!(held(&world).is_empty());
    prompt(&mut editor, "s1", &asks(&call));
    let dialog = editor.dialog();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    editor.choose(&dialog["id"], "yes-1");
    let heard = editor.heard();
    assert!(!allowed(&heard) && heard.to_string().contains("codex-1"), "{heard}");
    world.done("codex-1", &["lock", "release", "--all"]);
    prompt(&mut editor, "s1", &asks(&call));
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "yes-1");
    assert!(allowed(&editor.heard()));
    assert_eq!(held(&world).len(), 1);
}

#[test]
fn a_file_that_the_editor_is_to_write_is_held_before_it_passes_or_refused_with_the_holders_name() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let path = file(&world);
    let write = |text: &str| vec![format!("fs {path} {text}")];
    prompt(&mut editor, "s1", &write("all of it"));
    let request = editor.until("it passes", |it| it["method"] == "fs/write_text_file");
    assert_eq!(request["params"]["content"], "all of it");
    assert!(!held(&world).is_empty(), "it is held before the editor has it");
    assert!(
        !editor.seen.iter().filter_map(text).any(|it| it == "after the write"),
        "what the agent has said later comes later: {:#?}",
        editor.seen
    );
    editor.send(&json!({ "jsonrpc": "2.0", "id": "fs", "result": {} }));
    assert!(editor.heard()["result"].is_object());
    editor.close();
    world.done("codex-1", &["lock", "src/auth.ts:logout"]);
    let mut editor = Editor::new(&world);
    prompt(&mut editor, "s1", &write("all of it"));
    let heard = editor.heard();
    assert!(heard["error"]["message"].as_str().unwrap().contains("codex-1"), "{heard}");
    assert!(editor.seen.iter().all(|it| it["method"] != "fs/write_text_file"), "{:#?}", editor.seen);
}

#[test]
fn a_write_through_the_editor_is_judged_by_rules_unless_its_call_was_allowed() {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let path = file(&world);
    prompt(&mut editor, "s1", &[format!("fs {path} text")]);
    let dialog = editor.dialog();
    assert!(dialog["id"].as_str().unwrap().starts_with("provost-"), "{dialog}");
    editor.choose(&dialog["id"], "reject");
    assert!(editor.heard()["error"].is_object());
    prompt(&mut editor, "s1", &[format!("fs {path} text")]);
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "allow");
    editor.until("it passes", |it| it["method"] == "fs/write_text_file");
    editor.send(&json!({ "jsonrpc": "2.0", "id": "fs", "result": {} }));
    editor.heard();
    // Asked about as a call, it is not asked about once more.
    let lines = [asks(&edit(&path, OLD, NEW)), vec![format!("fs {path} text")]].concat();
    prompt(&mut editor, "s1", &lines);
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "yes-1");
    editor.until("it passes", |it| it["method"] == "fs/write_text_file");
    assert!(
        !editor.agent_got().iter().any(|it| it.contains("\"id\":\"provost-")),
        "the dialog was ours alone"
    );
}

#[test]
fn a_yes_to_reading_a_file_is_none_to_writing_it_and_a_relative_path_does_not_pass() {
    let world = world();
    let write = ask("\"human\"", &[PERMISSION, "when.tool = [\"Write\"]"]);
    world.rule(&policy([write, allow("all", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let path = file(&world);
    let read = json!({ "toolCallId": "r", "kind": "read", "title": "r", "locations": [{ "path": path }] })
        .to_string();
    prompt(&mut editor, "s1", &asks(&read));
    assert!(allowed(&editor.heard()));
    prompt(&mut editor, "s1", &[format!("fs {path} text")]);
    let dialog = editor.dialog();
    assert!(dialog["id"].as_str().unwrap().starts_with("provost-"), "{dialog}");
    editor.choose(&dialog["id"], "reject");
    assert!(editor.heard()["error"].is_object());
    prompt(&mut editor, "s1", &["fs src/auth.ts text".into()]);
    let heard = editor.heard();
    assert!(heard["error"]["message"].as_str().unwrap().contains("not absolute"), "{heard}");
    assert!(editor.seen.iter().all(|it| it["method"] != "fs/write_text_file"), "{:#?}", editor.seen);
}

#[test]
fn a_write_that_cannot_be_checked_is_refused_and_one_without_a_daemon_goes_by_the_settings() {
    let world = world();
    let path = file(&world);
    for (when, passes) in [("block", false), ("pass", true)] {
        world.configure(&format!("[hooks]\nwhen_down = \"{when}\"\n"));
        let mut editor = Editor::new(&world);
        prompt(&mut editor, "s1", &[format!("fs {path} text")]);
        if passes {
            editor.until("it passes", |it| it["method"] == "fs/write_text_file");
            continue;
        }
        let heard = editor.heard();
        assert!(heard["error"]["message"].as_str().unwrap().contains("no daemon runs"), "{heard}");
        prompt(&mut editor, "s1", &asks(&edit(&path, OLD, NEW)));
        assert!(!allowed(&editor.heard()));
    }
}

#[test]
fn what_is_written_without_having_been_asked_about_is_held_all_the_same() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let mut call: Value = serde_json::from_str(&edit(&file(&world), OLD, NEW)).unwrap();
    call["sessionUpdate"] = json!("tool_call");
    call["status"] = json!("in_progress");
    let turn = editor.prompt("s1", &[&format!("update {call}")]);
    editor.answer(turn);
    eventually("it is held", || held(&world).len() == 1);
}

/// An update about a call of an agent.
fn update(call: &Value) -> String {
    format!("update {call}")
}

/// As Claude Code tells of an edit about which it does not ask: it never says that it begins.
fn unasked(world: &World, old: &str, new: &str) -> Vec<String> {
    let path = file(world);
    let begun = json!({ "sessionUpdate": "tool_call", "toolCallId": "u", "name": "Edit", "kind": "edit", "status": "pending",
                        "title": "Edit", "rawInput": {}, "content": [], "locations": [] });
    let told = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "u", "title": "Edit src/auth.ts",
                       "rawInput": { "file_path": path, "old_string": old, "new_string": new },
                       "content": [{ "type": "diff", "path": path, "oldText": old, "newText": new }],
                       "locations": [{ "path": path }] });
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "u", "status": "completed" });
    vec![update(&begun), update(&told), format!("swap {path} {} {}", json!(old), json!(new)), update(&done)]
}

#[test]
fn what_was_written_by_a_call_that_never_began_is_held_when_it_is_over() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let turn = prompt(&mut editor, "s1", &unasked(&world, OLD, NEW));
    editor.answer(turn);
    eventually("what has changed is held", || held(&world).len() == 1);
    assert!(held(&world)[0].starts_with("src/auth.ts:login acp-"), "{:?}", held(&world));
    // Gemini CLI says of a call only that it is over.
    world.write("made.txt", "hi\n");
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "g", "status": "completed", "kind": "edit",
                       "title": "made.txt", "locations": [{ "path": "made.txt" }],
                       "content": [{ "type": "diff", "path": "made.txt", "oldText": "", "newText": "hi\n" }] });
    let turn = prompt(&mut editor, "s1", &[update(&done)]);
    editor.answer(turn);
    eventually("the file is held", || held(&world).iter().any(|it| it.starts_with("made.txt: acp-")));
    // What failed has written nothing, and what a session that is taken up tells was written earlier.
    let mut failed = done.clone();
    (failed["status"], failed["locations"][0]["path"]) = (json!("failed"), json!("src/other.ts"));
    failed["content"] = json!([]);
    let turn = prompt(&mut editor, "s1", &[update(&failed)]);
    editor.answer(turn);
    let load = json!({ "sessionId": "earlier", "cwd": world.repo(), "mcpServers": [], "_tells": done });
    assert!(editor.call("session/load", &load)["result"].is_object());
    assert_eq!(held(&world).len(), 2, "{:?}", held(&world));
}

#[test]
fn what_another_agent_holds_and_was_written_without_a_question_is_told_to_the_person() {
    let world = world();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let mut editor = Editor::new(&world);
    let turn = prompt(&mut editor, "s1", &unasked(&world, OLD, NEW));
    editor.answer(turn);
    eventually("it is told", || editor.complaints().contains("an agent writes without having asked: "));
    let told = editor.complaints();
    assert!(told.contains("codex-1") && !told.contains("Not written"), "{told}");
}
