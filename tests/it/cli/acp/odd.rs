//! Peers that misbehave: garbage, lines without end, ids twice, answers that were not asked for.

use serde_json::json;

use super::{Editor, command, text, world};
use crate::support::eventually;
use crate::support::processes::resident;
use crate::support::rules::{ask, policy};

#[test]
fn what_is_no_message_is_answered_and_not_passed_on_and_the_next_one_is() {
    let world = world();
    let mut editor = Editor::new(&world);
    for (line, code) in [
        ("this is no message", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", -32600),
        ("{\"jsonrpc\":\"2.0\"}", -32600),
        ("{\"id\":9,\"method\":\"a\",\"method\":\"session/prompt\"}", -32600),
        ("{\"id\":9,\"Method\":\"session/prompt\",\"method\":\"a\"}", -32600),
        ("{\"id\":9,\"method\":\"a\"", -32600),
    ] {
        editor.raw(line.as_bytes());
        let answer = editor.until("it is answered", |it| it.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    editor.raw(b"{\"id\":\"\xff\",\"method\":\"a\"}");
    editor.until("it is answered", |it| it.get("error").is_some());
    let answer = editor.call("_x/known", &json!({}));
    assert_eq!(answer["error"]["code"], -32601);
    assert!(!editor.agent_got().iter().any(|it| it.contains("\"a\"") || it.contains("no message")));
}

#[test]
fn garbage_of_an_agent_is_not_passed_on_and_its_requests_are_answered() {
    let world = world();
    let mut editor = Editor::new(&world);
    let twice = r#"raw {"jsonrpc":"2.0","id":"t","method":"_x/a","method":"fs/write_text_file","params":{}}"#;
    let case = r#"raw {"jsonrpc":"2.0","id":"u","method":"_x/a","Method":"fs/write_text_file","params":{}}"#;
    let inner = r#"raw {"jsonrpc":"2.0","id":"v","method":"fs/write_text_file","params":{"sessionId":"s1","path":"/a","path":"/b","content":""}}"#;
    let turn = editor.prompt(
        "s1",
        &[
            "raw Loading model...",
            "bytes ff00fe",
            twice,
            "await \"t\"",
            case,
            "await \"u\"",
            inner,
            "await \"v\"",
        ],
    );
    for code in [-32600, -32600, -32602] {
        assert_eq!(editor.heard()["error"]["code"], code);
    }
    editor.answer(turn);
    assert!(
        editor.seen.iter().all(|it| it.get("method").is_none_or(|it| it == "session/update")),
        "{:#?}",
        editor.seen
    );
    assert!(editor.complaints().contains("not passed on"), "{}", editor.complaints());
}

#[test]
fn lines_of_a_hundred_megabytes_are_answered_by_their_ids_and_take_no_memory_for_good() {
    let world = world();
    let mut editor = Editor::new(&world);
    let before = resident(editor.child.id());
    let long = format!("{{\"id\":\"big\",\"method\":\"_x/long\",\"params\":\"{}\"}}", "y".repeat(100 << 20));
    editor.raw(long.as_bytes());
    let answer = editor.until("it is answered", |it| it["id"] == "big");
    assert!(answer["error"]["message"].as_str().unwrap().contains("32 MiB"), "{answer}");
    let turn = editor.prompt("s1", &["long 100", "long-request 40", "await \"big\"", "long-answer 40"]);
    assert_eq!(editor.heard()["error"]["code"], -32600);
    let answer = editor.answer(turn);
    assert!(answer["error"]["message"].as_str().unwrap().contains("32 MiB"), "{answer}");
    let turn = editor.prompt("s1", &["say on"]);
    editor.answer(turn);
    let after = resident(editor.child.id());
    assert!(after < before + (100 << 10), "{before} kB, then {after} kB");
}

#[test]
fn two_requests_with_one_id_are_one_question_and_each_side_counts_for_itself() {
    let world = world();
    world.rule(&policy([ask("\"human\"", &["when.action = [\"permission\"]"])]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    // The id of the agent's question is that of the turn.
    let turn = editor.next + 1;
    let (one, two) =
        (format!("ask {turn} {}", command("make one")), format!("ask {turn}.0 {}", command("make two")));
    let sent = editor.prompt("s1", &[&one, &two, &format!("await {turn}"), &format!("await {turn}")]);
    assert_eq!(sent, turn);
    let heard = editor.heard();
    assert_eq!(heard["error"]["code"], -32600, "{heard}");
    let dialog = editor.dialog();
    assert!(dialog.to_string().contains("make one"), "{dialog}");
    editor.choose(&dialog["id"], "yes-1");
    // An answer that comes twice is heard once by the question; the second is the agent's to ignore.
    assert_eq!(editor.heard()["result"]["outcome"]["optionId"], "yes-1");
    assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    // Two requests of the editor's with one id have two answers.
    for _ in 0..2 {
        editor.send(&json!({ "jsonrpc": "2.0", "id": "same", "method": "_x/known", "params": {} }));
    }
    for _ in 0..2 {
        editor.until("an answer", |it| it["id"] == "same");
    }
}

#[test]
fn answers_that_were_not_asked_for_do_no_harm() {
    let world = world();
    let mut editor = Editor::new(&world);
    let unasked =
        r#"{"jsonrpc":"2.0","id":"unasked","result":{"outcome":{"outcome":"selected","optionId":"x"}}}"#;
    editor.raw(unasked.as_bytes());
    assert_eq!(editor.agent_gets("unasked"), unasked, "it is the agent's to ignore");
    let turn = editor.prompt(
        "s1",
        &[&format!("raw {unasked}"), "update {\"sessionUpdate\":\"later_invention\"}", "say on"],
    );
    editor.until("it passes", |it| it["id"] == "unasked");
    editor.until("it passes", |it| it["params"]["update"]["sessionUpdate"] == "later_invention");
    editor.until("it goes on", |it| text(it) == Some("on"));
    editor.answer(turn);
    eventually("it runs", || editor.child.id() > 0);
    editor.hears_nothing();
}
