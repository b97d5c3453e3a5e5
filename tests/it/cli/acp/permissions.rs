//! Permission requests: rules first, then the editor's dialog and the queue at once; the first answer counts.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Editor, command, held, text, world};
use crate::support::host_hooks::recorded;
use crate::support::rules::{allow, ask, policy, rule};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

const PERMISSION: &str = "when.action = [\"permission\"]";

fn asking() -> World {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    world
}

fn waiting(world: &World) -> Vec<Value> {
    let listed = world.done("x", &["approval", "list"]);
    listed.as_array().or_else(|| listed["approvals"].as_array()).cloned().unwrap_or_default()
}

fn outcome(heard: &Value) -> &Value {
    &heard["result"]["outcome"]
}

#[test]
fn what_rules_allow_or_deny_never_reaches_the_person_and_is_answered_by_the_kind_of_option() {
    let world = world();
    let yes = allow("make", &[PERMISSION, "when.command = [\"make check\"]"]);
    let no = rule("no", "deny", "nothing is deployed", &[PERMISSION, "when.command = [\"make deploy\"]"]);
    world.rule(&policy([yes, no]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    for (line, option) in [("make check", "yes-1"), ("make deploy", "no-1")] {
        let turn = editor.prompt("s1", &[&format!("ask 0 {}", command(line)), "await 0"]);
        let heard = editor.heard();
        assert_eq!(outcome(&heard)["optionId"], option, "{heard}");
        if option == "no-1" {
            assert!(heard.to_string().contains("nothing is deployed"), "the reason is told: {heard}");
        }
        editor.answer(turn);
    }
    assert!(editor.seen.iter().all(|it| it["method"] != "session/request_permission"), "{:#?}", editor.seen);
    let said = editor.seen.iter().filter_map(text).any(|it| it.contains("nothing is deployed"));
    assert!(said, "the person reads why: {:#?}", editor.seen);
}

/// As codex-acp 2.6.0 has told of a tool of an MCP server's, and asked about it.
#[test]
fn a_tool_of_a_server_that_codex_does_not_name_is_judged_by_its_server_and_is_none_of_the_shells() {
    let told = r#"{"sessionUpdate":"tool_call","toolCallId":"call_1","kind":"execute","title":"mcp.files.peek","status":"in_progress","rawInput":{"server":"files","tool":"peek","arguments":{}},"_meta":{"is_mcp_tool_call":true}}"#;
    let asked = r#"{"toolCallId":"call_1","kind":"execute","status":"pending"}"#;
    let allows = |tool: &str| allow("tool", &[PERMISSION, &format!("when.tool = [\"{tool}\"]")]);
    let world = world();
    world.rule(&policy([allows("mcp__files__*")]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let lines = [&*format!("update {told}"), &*format!("ask 1 {asked}"), "await 1"];
    editor.prompt("s1", &lines);
    assert_eq!(outcome(&editor.heard())["optionId"], "yes-1");
    assert!(editor.seen.iter().all(|it| it["method"] != "session/request_permission"), "{:#?}", editor.seen);

    let world = super::world();
    world.rule(&policy([allows("Shell"), ask("\"human\"", &[PERMISSION, "when.tool = [\"mcp__*\"]"])]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    editor.prompt("s1", &lines);
    let waits = until_some("it waits", || waiting(&world).into_iter().next());
    assert_eq!(waits["request"]["tool"], "mcp__files__peek", "{waits:#}");
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "no-1");
    assert_eq!(outcome(&editor.heard())["optionId"], "no-1");
}

#[test]
fn what_no_rule_speaks_of_is_shown_as_it_came_and_the_answer_passes_as_it_was_given() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let odd = r#"{"method":"session/request_permission","id":1.0,"params":{"toolCall":{"kind":"think","toolCallId":"c"},"sessionId":"s1","options":[{"kind":"allow_always","optionId":"for-good","name":"A"}],"x":1e2},"jsonrpc":"2.0"}"#;
    editor.prompt("s1", &[&format!("raw {odd}"), "forever"]);
    assert_eq!(String::from_utf8(editor.line()).unwrap().trim_end(), odd);
    let answer = r#"{"id":1,"result":{"outcome":{"optionId":"for-good","outcome":"selected"},"_meta":{"a":1.0}},"jsonrpc":"2.0"}"#;
    editor.raw(answer.as_bytes());
    assert_eq!(editor.agent_gets("\"_meta\":{\"a\""), answer);
}

#[test]
fn the_editors_answer_counts_and_the_queue_forgets_the_question() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    for (option, kind) in [("yes-1", "selected"), ("no-1", "selected")] {
        let turn = editor.prompt("s1", &[&format!("ask \"q\" {}", command("make deploy")), "await \"q\""]);
        let dialog = editor.dialog();
        let kinds: Vec<&str> = dialog["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["reject_once", "allow_once"], "nothing that would end the asking: {dialog}");
        let asked = until_some("it is in the queue", || waiting(&world).pop());
        assert!(asked.to_string().contains("make deploy"), "{asked:#}");
        editor.choose(&dialog["id"], option);
        let heard = editor.heard();
        assert_eq!(
            (&outcome(&heard)["optionId"], &outcome(&heard)["outcome"]),
            (&json!(option), &json!(kind))
        );
        eventually("it has left the queue", || waiting(&world).is_empty());
        editor.answer(turn);
    }
}

#[test]
fn the_queues_answer_counts_the_dialog_is_taken_back_and_a_late_answer_is_not_heard() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    for (word, option) in [("approve", "yes-1"), ("deny", "no-1")] {
        editor.prompt("s1", &[&format!("ask 5 {}", command("make deploy")), "await 5"]);
        let dialog = editor.dialog();
        let asked = until_some("it is in the queue", || waiting(&world).pop());
        let flag = if word == "deny" { "--reason" } else { "--note" };
        let done = at_the_terminal(&world, &format!("{word} {} {flag} because", asked["id"]));
        assert!(done.status.success(), "{done:?}");
        let heard = editor.heard();
        assert_eq!(outcome(&heard)["optionId"], option, "{heard}");
        let back = editor.until("it is taken back", |it| it["method"] == "$/cancel_request");
        assert_eq!(back["params"]["requestId"], dialog["id"]);
        editor.choose(&dialog["id"], "for-good");
        let turn = editor.prompt("s1", &["say done"]);
        editor.answer(turn);
        assert!(!editor.agent_got().iter().any(|it| it.contains("for-good")), "{:#?}", editor.agent_got());
    }
}

#[test]
fn a_cancelled_turn_answers_its_questions_even_if_the_editor_does_not() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let turn = editor.prompt("s1", &[&format!("ask 5 {}", command("make deploy")), "await 5"]);
    let dialog = editor.dialog();
    until_some("it is in the queue", || waiting(&world).pop());
    editor.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } }));
    assert_eq!(outcome(&editor.heard())["outcome"], "cancelled");
    editor.answer(turn);
    let cancelled =
        json!({ "jsonrpc": "2.0", "id": dialog["id"], "result": { "outcome": { "outcome": "cancelled" } } });
    editor.send(&cancelled);
    eventually("it has left the queue", || waiting(&world).is_empty());
    editor.prompt("s1", &["say still here"]);
    editor.until("the agent goes on", |it| text(it) == Some("still here"));
    let answers = editor.agent_got().iter().filter(|it| it.contains("cancelled")).count();
    assert_eq!(answers, 1, "an answer counts once: {:#?}", editor.agent_got());
}

#[test]
fn an_agent_takes_its_question_back_and_one_that_ends_its_turn_has_none_left() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let back = r#"raw {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}"#;
    editor.prompt("s1", &[&format!("ask 8 {}", command("make deploy")), "say asked"]);
    let first = editor.dialog();
    assert_eq!(first["id"], 8);
    let withdrawn = editor.until("the dialog of an ended turn", |it| it["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], 8);
    eventually("nothing waits", || waiting(&world).is_empty());
    // The editor has not answered the first one, so that its id is not free.
    editor.prompt("s1", &[&format!("ask 9 {}", command("make deploy")), back, "await 9"]);
    // Whether it was shown before it was taken back or not, the agent has an answer.
    let message = editor.until("an end of it", |it| {
        it["method"] == "$/cancel_request" || text(it).is_some_and(|it| it.starts_with("heard"))
    });
    if message["method"] == "$/cancel_request" {
        let error = json!({ "code": -32800, "message": "cancelled" });
        editor.send(&json!({ "jsonrpc": "2.0", "id": 9, "error": error }));
        assert_eq!(editor.heard()["error"]["code"], -32800);
    }
    eventually("nothing waits", || waiting(&world).is_empty());
}

#[test]
fn a_hundred_sessions_ask_at_once_and_each_gets_its_answer() {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    let _daemon = world.start();
    let mut editor = Editor::with(&world, &[], &[]);
    for _ in 0..100 {
        editor.begin(&world);
    }
    let turns: Vec<u64> = (1..=100)
        .map(|at| {
            let session = format!("s{at}");
            editor.prompt(&session, &[&format!("ask {at} {}", command("make")), "say asked"])
        })
        .collect();
    for turn in turns {
        editor.answer(turn);
    }
    let yes = || editor.agent_got().iter().filter(|it| it.contains("yes-1")).count();
    eventually("all are answered", || yes() == 100);
    assert!(held(&world).is_empty());
}

#[test]
fn without_a_daemon_the_editor_asks_as_without_provost() {
    let world = world();
    world.configure("[hooks]\nwhen_down = \"pass\"\n");
    let mut editor = Editor::new(&world);
    editor.prompt("s1", &[&format!("ask 1 {}", command("make")), "await 1"]);
    let dialog = editor.dialog();
    assert_eq!(dialog["params"]["options"].as_array().unwrap().len(), 4, "{dialog}");
    editor.choose(&dialog["id"], "yes-1");
    assert_eq!(outcome(&editor.heard())["optionId"], "yes-1");
}

#[test]
fn a_hook_of_the_agents_host_does_not_ask_a_second_time() {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    let _daemon = world.start();
    let told = recorded(&world, "claude/permission_request").to_string();
    let says = |behind: bool| {
        let mut hook = world.command(&["hook", "run", "claude", "permission-request"]);
        if behind {
            hook.env("PROVOST_ACP", "1");
        }
        let hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = hook.spawn().unwrap();
        // It may end without reading what it is told.
        let _unread = hook.stdin.take().unwrap().write_all(told.as_bytes());
        let output = hook.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        !output.stdout.is_empty()
    };
    assert!(says(false));
    assert!(!says(true));
}
