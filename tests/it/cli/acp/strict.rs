//! Messages that can be read in two ways: if members, ids, options and places contradict each other, the strictest reading counts, or none.

use serde_json::{Value, json};

use super::{CODE, Editor, command, edit, file, held, text, world};
use crate::support::World;
use crate::support::rules::{allow, ask, policy, rule};

const PERMISSION: &str = "when.action = [\"permission\"]";
const OPTIONS: &str = r#"[{"optionId":"yes-1","name":"y","kind":"allow_once"},{"optionId":"no-1","name":"n","kind":"reject_once"}]"#;

fn asking() -> World {
    let world = world();
    world.rule(&policy([ask("\"human\"", &[PERMISSION])]));
    world
}

/// A permission request, as a line of the agent's.
fn request(id: &str, call: &str, options: &str) -> String {
    format!(
        r#"raw {{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"s1","toolCall":{call},"options":{options}}}}}"#
    )
}

/// Whether the agent has got a line with these words, other than its own prompt.
fn was_told(editor: &Editor, words: &str) -> bool {
    editor.agent_got().iter().any(|it| it.contains(words) && !it.contains("session/prompt"))
}

fn no_dialog(editor: &Editor) {
    let shown = |it: &&Value| {
        matches!(
            it["method"].as_str(),
            Some("session/request_permission" | "fs/write_text_file" | "terminal/create")
        )
    };
    assert_eq!(editor.seen.iter().find(shown), None);
}

#[test]
fn requests_that_two_editors_read_in_two_ways_are_none() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let call = command("make");
    let path = file(&world);
    let case = r#"{"toolCallId":"c","kind":"read","Kind":"edit","content":[],"title":"t"}"#;
    let twice = r#"{"toolCallId":"c","kind":"read","kind":"edit","title":"t"}"#;
    let same = r#"[{"optionId":"x","name":"n","kind":"reject_once"},{"optionId":"x","name":"y","kind":"allow_once"}]"#;
    for (id, line, code) in [
        ("\"a\"", request("\"a\"", case, OPTIONS), -32602),
        ("\"b\"", request("\"b\"", twice, OPTIONS), -32602),
        ("\"c\"", request("\"c\"", &call, same), -32602),
        ("9007199254740993", request("9007199254740993", &call, OPTIONS), -32600),
        (
            "\"d\"",
            format!(
                r#"raw {{"id":"d","method":"fs/write_text_file","params":{{"sessionId":"s1","path":"{path}","Path":"/x","content":""}}}}"#
            ),
            -32602,
        ),
    ] {
        let turn = editor.prompt("s1", &[&line, &format!("await {id}")]);
        assert_eq!(editor.heard()["error"]["code"], code, "{line}");
        editor.answer(turn);
    }
    // Without an id there is no one to be told, and nothing passes.
    let write = format!(
        r#"raw {{"method":"fs/write_text_file","params":{{"sessionId":"s1","path":"{path}","content":"x"}}}}"#
    );
    let permission = format!(
        r#"raw {{"method":"session/request_permission","params":{{"sessionId":"s1","toolCall":{call},"options":{OPTIONS}}}}}"#
    );
    // An update that an editor may take for another one.
    let update = r#"raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan"},"update":{"sessionUpdate":"tool_call","toolCallId":"h"}}}"#;
    let inner = r#"raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"h","kind":"read","kind":"edit"}}}"#;
    let turn = editor.prompt("s1", &[&write, &permission, update, inner, "say done"]);
    editor.answer(turn);
    no_dialog(&editor);
    assert!(!editor.seen.iter().any(|it| it.to_string().contains("\"h\"")), "{:#?}", editor.seen);
    assert!(editor.complaints().contains("has no id"), "{}", editor.complaints());
}

#[test]
fn an_id_is_one_requests_until_the_editor_has_answered_it() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let call = command("make");
    // A request that passes, and a question under its id: in either order, and by its text.
    let other = |id: &str| format!(r#"raw {{"jsonrpc":"2.0","id":{id},"method":"_x/ask","params":{{}}}}"#);
    editor.prompt("s1", &[&other("7"), &request("\"7\"", &call, OPTIONS), "await \"7\"", "await 7"]);
    editor.until("it passes", |it| it["method"] == "_x/ask");
    assert_eq!(editor.heard()["error"]["code"], -32600, "an answer would be one to both");
    editor.send(&json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    assert!(editor.heard()["result"].is_object());
    let turn =
        editor.prompt("s1", &[&request("8", &call, OPTIONS), &other("\"8\""), "await \"8\"", "await 8"]);
    let dialog = editor.dialog();
    assert_eq!(editor.heard()["error"]["code"], -32600);
    // An editor that keeps ids under their text.
    editor.choose(&json!("8"), "yes-1");
    assert_eq!(dialog["id"], 8);
    let heard = editor.agent_gets("\"optionId\":\"yes-1\"");
    assert!(heard.contains('8'), "{heard}");
    // The agent waits for a number.
    editor.send(&json!({ "jsonrpc": "2.0", "id": 8, "result": {} }));
    editor.answer(turn);
    no_dialog(&editor);
}

#[test]
fn an_answer_to_what_was_taken_back_is_none_to_anything() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let call = edit(&file(&world), "{ return a }", "{ return a + a }");
    let back = r#"raw {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}"#;
    let turn = editor.prompt("s1", &[&request("8", &call, OPTIONS), "say asked"]);
    let dialog = editor.dialog();
    editor.until("it goes on", |it| text(it) == Some("asked"));
    // The turn has ended, and with it the dialog.
    editor.answer(turn);
    editor.choose(&dialog["id"], "yes-1");
    let lines = [
        &request("9", &call, OPTIONS),
        "await \"shown\"",
        back,
        "await 9",
        &request("9", &command("rm -r ."), OPTIONS),
        "await 9",
    ];
    let turn = editor.prompt("s1", &lines);
    editor.dialog();
    editor.send(&json!({ "jsonrpc": "2.0", "id": "shown", "result": {} }));
    assert_eq!(editor.heard()["id"], "shown");
    assert_eq!(editor.heard()["error"]["code"], -32800, "the agent hears at once");
    assert_eq!(editor.heard()["error"]["code"], -32600, "its id is free when the editor has answered");
    editor.answer(turn);
    editor.choose(&json!(9), "yes-1");
    let turn = editor.prompt("s1", &["say still here"]);
    editor.answer(turn);
    assert!(!was_told(&editor, "yes-1"), "{:#?}", editor.agent_got());
    assert!(held(&world).is_empty());
}

#[test]
fn an_answer_of_the_editors_that_is_a_yes_and_a_no_is_none() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let call = command("make");
    for answer in [
        r#"{"outcome":"selected","optionId":"no-1","optionId":"yes-1"}"#,
        r#"{"outcome":"selected","optionId":"no-1","OptionId":"yes-1"}"#,
    ] {
        let turn = editor.prompt("s1", &[&request("5", &call, OPTIONS), "await 5"]);
        editor.dialog();
        editor.raw(format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"outcome":{answer}}}}}"#).as_bytes());
        assert_eq!(editor.heard()["result"]["outcome"], json!({ "outcome": "cancelled" }));
        editor.answer(turn);
    }
    assert!(!was_told(&editor, "yes-1"), "{:#?}", editor.agent_got());
}

#[test]
fn where_a_rule_asks_no_answer_for_later_is_given_even_if_the_agent_offers_nothing_else() {
    let world = asking();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let always = r#"[{"optionId":"for-good","name":"y","kind":"Allow_Always"},{"optionId":"never","name":"n","kind":"reject_always"}]"#;
    let both = r#"[{"optionId":"for-good","name":"y","kind":"ALLOW_ALWAYS "},{"optionId":"never","name":"n","kind":"reject_always"},{"optionId":"yes-1","name":"y","kind":"allow_once"},{"optionId":"no-1","name":"n","kind":"reject_once"}]"#;
    for (options, choice, expected) in [
        (always, "for-good", json!({ "outcome": "cancelled" })),
        (always, "never", json!({ "outcome": "cancelled" })),
        // What was not shown, and is chosen all the same.
        (both, "for-good", json!({ "outcome": "selected", "optionId": "yes-1" })),
        (both, "never", json!({ "outcome": "selected", "optionId": "no-1" })),
    ] {
        let turn = editor.prompt("s1", &[&request("5", &command("make"), options), "await 5"]);
        let dialog = editor.dialog();
        assert!(options == always || !dialog.to_string().to_lowercase().contains("_always"), "{dialog}");
        editor.choose(&dialog["id"], choice);
        assert_eq!(editor.heard()["result"]["outcome"], expected, "{options}: {choice}");
        editor.answer(turn);
    }
    let later = ["for-good", "never"].into_iter().find(|it| was_told(&editor, it));
    assert_eq!(later, None, "{:#?}", editor.agent_got());
}

#[test]
fn an_option_for_later_uses_passes_where_no_rule_speaks_and_what_is_written_is_held() {
    let world = world();
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let turn =
        editor.prompt("s1", &[&format!("ask 1 {}", edit(&file(&world), "{ return a }", "x")), "await 1"]);
    let dialog = editor.dialog();
    assert_eq!(dialog["params"]["options"].as_array().unwrap().len(), 4, "as it came: {dialog}");
    editor.choose(&dialog["id"], "for-good");
    assert_eq!(editor.heard()["result"]["outcome"]["optionId"], "for-good", "the person's own answer");
    assert_eq!(held(&world).len(), 1, "held as for one use");
    editor.answer(turn);
}

#[test]
fn of_what_a_call_says_of_files_in_several_places_all_is_held_and_nothing_is_unsaid() {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    world.write("src/free.ts", CODE);
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mut editor = Editor::new(&world);
    let (path, free) = (file(&world), world.repo().join("src/free.ts").to_str().unwrap().to_owned());
    let diff = |path: &str| json!([{ "type": "diff", "path": path, "oldText": CODE, "newText": "x" }]);
    let calls = [
        json!({ "toolCallId": "a", "kind": "edit", "content": diff(&free), "locations": [{ "path": path }] }),
        json!({ "toolCallId": "b", "kind": "edit", "content": diff(&free), "rawInput": { "file_path": path } }),
        json!({ "toolCallId": "c", "kind": "edit", "locations": [{ "path": free }], "rawInput": { "filepath": path, "content": "x" } }),
        json!({ "toolCallId": "d", "kind": "execute", "content": diff(&path), "rawInput": { "command": "true" } }),
        json!({ "toolCallId": "e", "kind": "EDIT", "locations": [{ "path": path }] }),
        json!({ "toolCallId": "f", "kind": "Execute ", "rawInput": { "command": "rm src/auth.ts" } }),
        json!({ "toolCallId": "g", "kind": "read", "rawInput": { "command": ["rm", "src/auth.ts"] } }),
        json!({ "toolCallId": "h", "kind": "delete", "locations": [{ "path": free }], "content": diff(&path) }),
    ];
    for call in calls {
        let turn = editor.prompt("s1", &[&format!("ask 1 {call}"), "await 1"]);
        let heard = editor.heard();
        assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "{call}: {heard}");
        editor.answer(turn);
    }
    // Said before, and not said any more.
    for (at, (before, after)) in [
        (json!({ "content": diff(&path) }), json!({ "content": [] })),
        (json!({ "content": diff(&path) }), json!({ "content": diff(&free) })),
        (json!({ "locations": [{ "path": path }] }), json!({ "locations": [{ "path": free }] })),
        (json!({ "rawInput": { "file_path": path } }), json!({ "rawInput": { "file_path": free } })),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("u{at}");
        let mut first =
            json!({ "sessionUpdate": "tool_call", "toolCallId": id, "kind": "edit", "status": "pending" });
        let mut ask = json!({ "toolCallId": id });
        for (into, from) in [(&mut first, &before), (&mut ask, &after)] {
            from.as_object().unwrap().iter().for_each(|(name, it)| into[name] = it.clone());
        }
        let turn = editor.prompt("s1", &[&format!("update {first}"), &format!("ask 1 {ask}"), "await 1"]);
        let heard = editor.heard();
        assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "{before} {after}: {heard}");
        editor.answer(turn);
    }
    no_dialog(&editor);
}

#[test]
fn a_rule_about_a_path_sees_each_place_of_a_call_and_the_name_of_a_reader_is_no_cover() {
    let world = world();
    let secret = rule("no", "deny", "not there", &[PERMISSION, "when.path = [\"secret/**\"]"]);
    let reading = allow("reads", &[PERMISSION, "when.tool = [\"Read\"]"]);
    let sources = allow("src", &[PERMISSION, "when.path = [\"src/**\"]"]);
    world.rule(&policy([secret, reading, sources]));
    let _daemon = world.start();
    let mut editor = Editor::new(&world);
    let [ok, no] =
        ["src/auth.ts", "secret/a.ts"].map(|it| world.repo().join(it).to_str().unwrap().to_owned());
    let diff = json!([{ "type": "diff", "path": no, "oldText": null, "newText": "x" }]);
    for call in [
        json!({ "toolCallId": "a", "name": "Edit", "kind": "edit", "rawInput": { "file_path": ok }, "content": diff }),
        json!({ "toolCallId": "b", "name": "Edit", "kind": "edit", "locations": [{ "path": ok }, { "path": no }] }),
        json!({ "toolCallId": "c", "name": "Read", "kind": "read", "rawInput": { "file_path": ok }, "content": diff }),
        json!({ "toolCallId": "d", "kind": "execute", "rawInput": { "command": "true" }, "content": diff }),
    ] {
        let turn = editor.prompt("s1", &[&format!("ask 1 {call}"), "await 1"]);
        let heard = editor.heard();
        assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "{call}: {heard}");
        assert!(heard.to_string().contains("not there"), "{call}: {heard}");
        editor.answer(turn);
    }
}

#[test]
fn a_command_that_the_editor_is_to_run_is_put_before_the_rules() {
    let world = world();
    let no = rule("no", "deny", "nothing is deployed", &[PERMISSION, "when.command = [\"make deploy\"]"]);
    let asked = ask("\"human\"", &[PERMISSION, "when.command = [\"make ask\"]"]);
    let yes = allow("yes", &[PERMISSION]);
    world.rule(&policy([no, asked, yes]));
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mut editor = Editor::new(&world);
    let terminal = |words: &[&str]| {
        let params =
            json!({ "sessionId": "s1", "command": words[0], "args": &words[1..], "cwd": world.repo() });
        let request = json!({ "jsonrpc": "2.0", "id": "t", "method": "terminal/create", "params": params });
        format!("raw {request}")
    };
    for (words, why) in [
        (&["make", "deploy"][..], "nothing is deployed"),
        (&["bash", "-lc", "make deploy"], "nothing is deployed"),
        (&["rm", "src/auth.ts"], "codex-1"),
    ] {
        editor.prompt("s1", &[&terminal(words), "await \"t\""]);
        let heard = editor.heard();
        assert!(heard["error"]["message"].as_str().is_some_and(|it| it.contains(why)), "{words:?}: {heard}");
    }
    no_dialog(&editor);
    let answered = |editor: &mut Editor| {
        let request = editor.until("it passes", |it| it["method"] == "terminal/create");
        editor.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "terminalId": "x" } }));
        assert_eq!(editor.heard()["result"]["terminalId"], "x");
    };
    editor.prompt("s1", &[&terminal(&["make", "check"]), "await \"t\""]);
    answered(&mut editor);
    editor.prompt("s1", &[&terminal(&["make", "ask"]), "await \"t\""]);
    let dialog = editor.dialog();
    assert!(dialog["params"]["toolCall"]["title"] == "make ask", "{dialog}");
    editor.choose(&dialog["id"], "allow");
    answered(&mut editor);
    // Asked about as a call, it is not asked about once more.
    editor.prompt(
        "s1",
        &[&format!("ask 1 {}", command("make ask")), "await 1", &terminal(&["make", "ask"]), "await \"t\""],
    );
    let dialog = editor.dialog();
    editor.choose(&dialog["id"], "yes-1");
    editor.heard();
    answered(&mut editor);
    no_dialog(&editor);
}

#[test]
#[cfg(unix)]
fn a_held_file_is_found_under_its_other_names() {
    let world = world();
    world.rule(&policy([allow("all", &[PERMISSION])]));
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let path = file(&world);
    let (inside, outside) = (world.repo().join("src/copy.ts"), world.path("copy.ts"));
    for link in [&inside, &outside] {
        std::fs::hard_link(&path, link).unwrap();
    }
    let mut editor = Editor::new(&world);
    for link in [&inside, &outside] {
        let link = link.to_str().unwrap();
        editor.prompt("s1", &[&format!("ask 1 {}", edit(link, "{ return a }", "x")), "await 1"]);
        let heard = editor.heard();
        assert_eq!(heard["result"]["outcome"]["optionId"], "no-1", "{link}: {heard}");
        assert!(heard.to_string().contains("codex-1"), "{heard}");
        // What no agent has is free, in the same file.
        editor.prompt("s1", &[&format!("ask 1 {}", edit(link, "{ return b }", "x")), "await 1"]);
        assert_eq!(editor.heard()["result"]["outcome"]["optionId"], "yes-1", "{link}");
    }
}
