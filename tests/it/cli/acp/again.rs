//! Editors that come back: a session is taken up after its editor has died, in front of an agent and of one in its jail, and a hundred are
//! open at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::jailed::{begun, hears, open, the_task};
use super::{Editor, edit, file, held, text, world};
use crate::support::rules::{allow, policy};
use crate::support::waits::until_some;
use crate::support::{World, eventually};

fn load(world: &World, session: &str) -> Value {
    json!({ "sessionId": session, "cwd": world.repo(), "mcpServers": [] })
}

/// If an editor dies in the middle of a session, the next editor continues the session.
#[test]
fn an_editor_that_comes_back_writes_on_in_the_session_that_another_one_has_begun() {
    let world = world();
    world.rule(&policy([allow("all", &["when.action = [\"permission\"]"])]));
    let _daemon = world.start();
    let mut first = Editor::new(&world);
    let call = edit(&file(&world), "{ return a }", "{ return a + a }");
    first.prompt("s1", &[&format!("ask 1 {call}"), "await 1", "forever"]);
    assert_eq!(first.heard()["result"]["outcome"]["optionId"], "yes-1");
    assert_eq!(held(&world).len(), 1);
    first.child.kill().unwrap();
    eventually("what it held is given back", || held(&world).is_empty());

    let mut second = Editor::with(&world, &[], &[]);
    let mut asked = load(&world, "s1");
    asked["_tells"] =
        json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "earlier" } });
    assert!(second.call("session/load", &asked)["result"].is_object());
    second.until("what was said earlier", |it| text(it) == Some("earlier"));
    let turn = second.prompt("s1", &[&format!("ask 1 {call}"), "await 1"]);
    assert_eq!(second.heard()["result"]["outcome"]["optionId"], "yes-1");
    assert_eq!(second.answer(turn)["result"]["stopReason"], "end_turn");
    let holder = held(&world)[0].rsplit_once(' ').unwrap().1.to_owned();
    assert_eq!(second.close().code(), Some(0));
    assert!(held(&world).is_empty(), "{:?}", held(&world));
    // Each program that takes it up goes by the same name.
    let mut third = Editor::with(&world, &[], &[]);
    third.call("session/load", &load(&world, "s1"));
    assert!(third.agent_gets("session/load").contains(&holder));
}

/// An editor that uses the agent in its jail.
fn editor(world: &World, args: &[&str]) -> (Editor, Value) {
    let args = [&["acp", "--agent", "coder"], args].concat();
    let mut editor = Editor::start(world, world.command(&args));
    let hello = editor.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    (editor, hello["result"]["agentCapabilities"].clone())
}

#[test]
fn a_session_of_an_agent_in_its_jail_is_taken_up_by_the_editor_that_comes_back() {
    let (world, _daemon, mut first, session) = begun("resumes", "", &open());
    let turn = first.prompt(&session, &["remember blue", "say Done."]);
    assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
    let unused = first.begin(&world);
    first.child.kill().unwrap();

    let (mut second, can) = editor(&world, &[]);
    assert_eq!(can["loadSession"], true, "{can}");
    assert_eq!(second.call("session/load", &load(&world, &session))["result"], json!({}));
    second.until("its person's words", |it| {
        it["params"]["update"]["sessionUpdate"] == "user_message_chunk"
            && it["params"]["sessionId"] == session
            && text(it) == Some("remember blue\nsay Done.")
    });
    hears(&mut second, "Done.");
    let turn = second.prompt(&session, &["recall"]);
    hears(&mut second, "remembers blue");
    assert_eq!(second.answer(turn)["result"]["stopReason"], "end_turn");
    // What is none, what nothing was asked in, and what is open already.
    let mut fails = |session: &str, code: i64, words: &str| {
        let error = second.call("session/load", &load(&world, session))["error"].clone();
        assert!(error["code"] == code && error["message"].as_str().unwrap().contains(words), "{error}");
    };
    fails("none", -32002, "no such session");
    fails(&unused, -32002, "no turn of this session");
    fails(&format!("provost-{}", "0".repeat(32)), -32002, "no turn of this session");
    fails(&session, -32602, "open here");
}

#[test]
fn a_turn_that_goes_on_without_its_editor_is_told_of_when_that_comes_back() {
    let (world, _daemon, mut first, session) = begun("resumes", "editor_gone = \"continue\"", &open());
    first.prompt(&session, &["remember red", "say begun", "until-cancel"]);
    hears(&mut first, "begun");
    assert!(first.close().success());
    let id = the_task(&world)["id"].as_str().unwrap().to_owned();
    let state = || world.done("x", &["task", "show", &id])["state"].as_str().unwrap().to_owned();
    assert_eq!(state(), "running");

    let (mut second, _) = editor(&world, &[]);
    assert_eq!(second.call("session/load", &load(&world, &session))["result"], json!({}));
    let told = hears(&mut second, "still under way");
    assert!(told.contains(&id), "{told}");
    let turn = second.prompt(&session, &["recall"]);
    let why = second.answer(turn)["error"]["message"].as_str().unwrap().to_owned();
    assert!(why.contains("provost say"), "{why}");
    let ended = crate::support::terminal::at_the_terminal(&world, &format!("say {id} --now 'say end'"));
    assert!(ended.status.success(), "{ended:?}");
    until_some("its end", || (state() == "completed").then_some(()));
    let turn = second.prompt(&session, &["recall"]);
    hears(&mut second, "remembers red");
    assert_eq!(second.answer(turn)["result"]["stopReason"], "end_turn");
}

#[test]
fn an_editor_opens_a_hundred_sessions_and_what_is_left_of_it_afterwards_is_nothing() {
    let (world, _daemon, mut editor, first) = begun("", "", &open());
    let asked: Vec<u64> = (0..100)
        .map(|_| editor.ask("session/new", &json!({ "cwd": world.repo(), "mcpServers": [] })))
        .collect();
    let made: BTreeSet<String> = asked
        .into_iter()
        .map(|id| editor.answer(id)["result"]["sessionId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(made.len(), 100);
    // Each is a session of its own, and one of them works while the others are there.
    for session in made.iter().take(3).chain([&first]) {
        let turn = editor.prompt(session, &["say here"]);
        let said = editor.until("its words", |it| text(it).is_some_and(|it| it.contains("here")));
        assert_eq!(said["params"]["sessionId"], *session);
        assert_eq!(editor.answer(turn)["result"]["stopReason"], "end_turn");
    }
    for session in made.iter().take(50) {
        assert_eq!(editor.call("session/close", &json!({ "sessionId": session }))["result"], json!({}));
    }
    let gone = made.first().unwrap();
    let turn = editor.prompt(gone, &["say x"]);
    assert!(editor.answer(turn)["error"]["message"].as_str().unwrap().contains("no such session"));
    assert!(editor.close().success());
    let left = world.done("x", &["task", "list"]);
    assert!(left["active"].as_array().unwrap().is_empty(), "{left:#}");
}
