//! An editor that resumes a session gets its words, its calls with their last state, and its plans, in order, also after the daemon was
//! killed; another agent gets none of it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use provost::base::limits::CONVERSATION_PAGE_BYTES;
use serde_json::{Value, json};

use super::jailed::{begun, hears, open, the_task};
use super::{Editor, text};
use crate::support::own_api::own;
use crate::support::rules::allow;
use crate::support::waits::{Ends, until_some};
use crate::support::{World, tokens};

/// An editor that uses the agent in its jail, as one that has this token where it has one.
fn editor(world: &World, args: &[&str], token: Option<&str>) -> Editor {
    let mut command = world.command(&[&["acp", "--agent", "coder"], args].concat());
    command.envs(token.map(|it| ("PROVOST_TOKEN", it)));
    let mut editor = Editor::start(world, command);
    let hello = editor.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    assert_eq!(hello["result"]["agentCapabilities"]["loadSession"], true, "{hello}");
    editor
}

fn load(editor: &mut Editor, world: &World, session: &str) -> Value {
    editor.call("session/load", &json!({ "sessionId": session, "cwd": world.repo(), "mcpServers": [] }))
}

/// Returns the updates of a session that an editor gets before the answer to its request to load it.
#[track_caller]
fn told(editor: &mut Editor, world: &World, session: &str) -> Vec<Value> {
    editor.seen.clear();
    let answer = load(editor, world, session);
    assert_eq!(answer["result"], json!({}), "{answer}");
    let ours = |it: &Value| {
        assert_eq!((&it["method"], &it["params"]["sessionId"]), (&json!("session/update"), &json!(session)));
        it["params"]["update"].clone()
    };
    editor.seen.drain(..).map(|it| ours(&it)).collect()
}

/// The updates in short, in their order: who speaks, the call and its state, the plan.
fn outline(updates: &[Value]) -> Vec<String> {
    let line = |it: &Value| match it["sessionUpdate"].as_str().unwrap() {
        "tool_call" => format!("{} {}", it["toolCallId"].as_str().unwrap(), it["status"].as_str().unwrap()),
        "plan" => format!("plan {}", it["entries"][0]["content"].as_str().unwrap()),
        "usage_update" => "usage".to_owned(),
        who => format!("{who}: {}", text(&json!({ "params": { "update": it } })).unwrap().trim()),
    };
    // Each answer of the fake agent begins with its mode and what it was offered.
    let is_its_own = |it: &String| it.contains("[default ");
    let lines = updates.iter().map(line).map(|it| if is_its_own(&it) { "agent: …".into() } else { it });
    lines.collect()
}

#[test]
fn a_session_that_is_taken_up_is_told_with_its_calls_and_plans_also_after_the_daemon_was_killed() {
    let (world, mut daemon, mut first, session) = begun("resumes", "", &open());
    let lines = [
        "plan one | two",
        "change src/a.txt x|y",
        "say between",
        "plan three",
        "write src/b.txt new",
        "usage 1",
        "usage 2",
        "say Done.",
    ];
    let turn = first.prompt(&session, &lines);
    let dialog = first.dialog();
    first.choose(&dialog["id"], "apply");
    assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
    let turn = first.prompt(&session, &["say second"]);
    assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
    first.child.kill().unwrap();

    let expected = [
        format!("user_message_chunk: {}", lines.join("\n")),
        "agent: …".into(),
        "change-src/a.txt in_progress".into(),
        "agent_message_chunk: between".into(),
        "plan three".into(),
        "call-src/b.txt completed".into(),
        "usage".into(),
        "agent_message_chunk: Done.".into(),
        "user_message_chunk: say second".into(),
        "agent: …".into(),
    ];
    let mut second = editor(&world, &[], None);
    let before = told(&mut second, &world, &session);
    assert_eq!(outline(&before)[..expected.len() - 1], expected[..expected.len() - 1]);
    assert_eq!(outline(&before).len(), expected.len(), "{before:#?}");
    // Its last state, its contents, and the paths of the editor's folder.
    let change = before.iter().find(|it| it["toolCallId"] == "change-src/a.txt").unwrap();
    let file = world.repo().join("src/a.txt");
    assert_eq!(change["content"][0]["path"], json!(file), "{change:#}");
    assert_eq!(change["content"][0]["newText"], "x\ny\n");
    let usage = before.iter().find(|it| it["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!(usage["cost"]["amount"], 2.0);
    assert!(!json!(before).to_string().contains(".copies/"), "{before:#?}");
    // The same after a kill of the daemon, which has nothing in its memory then.
    daemon.kill();
    let _again = world.start();
    let mut third = editor(&world, &[], None);
    assert_eq!(told(&mut third, &world, &session), before);
}

#[test]
fn a_turn_in_whose_middle_the_daemon_was_killed_is_told_as_far_as_it_had_come() {
    let (world, mut daemon, mut first, session) = begun("", "", &open());
    first.prompt(&session, &["change src/a.txt x", "plan on", "say begun", "until-cancel"]);
    hears(&mut first, "begun");
    let id = the_task(&world)["id"].as_str().unwrap().to_owned();
    daemon.kill();
    let _again = world.start();
    until_some("its end", || (world.done("x", &["task", "show", &id])["state"] == "failed").then_some(()));
    let mut second = editor(&world, &[], None);
    let told = told(&mut second, &world, &session);
    let outline = outline(&told);
    let expected = ["change-src/a.txt in_progress", "plan on", "agent_message_chunk: begun"];
    assert_eq!(outline[2..5], expected, "{outline:#?}");
    assert!(outline[5].contains("This turn has failed"), "{outline:#?}");
}

#[test]
fn a_turn_that_changes_each_time_that_it_is_read_is_told_as_far_as_it_was_read_and_says_so() {
    let (world, _daemon, mut first, session) = begun("resumes", "", &open());
    let turn = first.prompt(&session, &["say second"]);
    assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
    first.child.kill().unwrap();
    let folder = world.state_dir().join("conversations");
    let only = |folder: &Path| fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let file = only(&only(&folder));
    // Several pages, which begin with another call each time.
    let text = "x".repeat(CONVERSATION_PAGE_BYTES / 5);
    let call = |id: &str| {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let it = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": "reads", "kind": "read", "status": "completed", "content": content,
        });
        format!("{it}\n")
    };
    let rest: String = (0..12).map(|it| call(&format!("c{it}"))).collect();
    let rewrite = |number: u64| {
        let beside = file.with_extension("test");
        fs::write(&beside, call(&format!("begins {number}")) + &rest).unwrap();
        fs::rename(&beside, &file).unwrap();
    };
    rewrite(0);
    let stop = AtomicBool::new(false);
    let changing = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (1..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                rewrite(number);
            }
        });
        let _ends = Ends(&stop);
        let tells = || outline(&told(&mut editor(&world, &[], None), &world, &session));
        let is_cut = |told: &Vec<String>| !told.contains(&"c11 completed".to_owned());
        // On a busy machine the pages may be read faster than the file is written once.
        (0..20).map(|_| tells()).find(is_cut).expect("a turn that has changed while it was read")
    });
    assert_eq!(changing[0], "user_message_chunk: say second");
    assert!(
        changing[1].starts_with("begins ") && changing.contains(&"c1 completed".to_owned()),
        "{changing:?}"
    );
    assert!(changing.iter().any(|it| it.contains("its end is missing here")), "{changing:?}");
    let whole = outline(&told(&mut editor(&world, &[], None), &world, &session));
    assert_eq!(whole.last().map(String::as_str), Some("c11 completed"), "{whole:?}");
    assert!(!whole.iter().any(|it| it.contains("its end is missing here")), "{whole:?}");
}

#[test]
fn sessions_of_one_name_are_told_apart_and_another_agent_takes_up_none_of_them() {
    let tokens_may_be = allow("tokens", &["when.action = [\"token\"]"]);
    let (world, _daemon, mut first, _) = begun("resumes", "", &format!("{}\n{tokens_may_be}", open()));
    let scopes = ["--scopes", "read,join,coordinate,delegate"];
    let mint = |name: &str| {
        let (code, token, why) = tokens::run(&world, &[&["token", "mint", name][..], &scopes].concat());
        assert_eq!(code, 0, "{why}");
        token
    };
    let (ada, bob) = (mint("ada"), mint("bob"));
    assert!(first.close().success());
    let mut first = editor(&world, &[], Some(&ada));
    let sessions = ["blue", "red"].map(|colour| {
        let session = first.begin(&world);
        let turn =
            first.prompt(&session, &[&format!("remember {colour}"), &format!("plan {colour}"), "say Done."]);
        assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
        session
    });
    first.child.kill().unwrap();

    let mut second = editor(&world, &[], Some(&ada));
    for (session, colour) in sessions.iter().zip(["blue", "red"]) {
        let told = outline(&told(&mut second, &world, session));
        assert!(told[0].contains(colour) && told.contains(&format!("plan {colour}")), "{told:?}");
        assert_eq!(told.iter().filter(|it| it.starts_with("user_message_chunk")).count(), 1, "{told:?}");
        let turn = second.prompt(session, &["recall"]);
        hears(&mut second, &format!("remembers {colour} "));
        assert_eq!(second.answer(turn)["result"]["stopReason"], "end_turn");
    }
    // Neither another token, nor another name, nor none.
    for (args, token) in [(&[][..], Some(&*bob)), (&["--as", "carol"], None), (&[], None)] {
        let mut other = editor(&world, args, token);
        let refused = load(&mut other, &world, &sessions[0]);
        assert_eq!(refused["error"]["code"], -32002, "{args:?}: {refused}");
        assert!(!json!(other.seen).to_string().contains("blue"), "{:#?}", other.seen);
        // What it could not take up is no session of its own.
        let turn = other.prompt(&sessions[0], &["recall"]);
        assert!(other.answer(turn)["error"]["message"].as_str().unwrap().contains("no such session"));
    }
    // The daemon itself tells a turn to no other agent.
    let tasks = world.done("x", &["task", "list"]);
    let finished = tasks["finished"].as_array().unwrap();
    let task = finished.iter().find(|it| it["goal"].to_string().contains("remember blue")).unwrap();
    let path = format!("/my-turn?id={}", task["id"].as_str().unwrap());
    let ask = |token: &str| {
        let bearer = format!("Bearer {token}");
        own(&world, ("GET", &path), &[("authorization", &bearer)], &Value::Null)
    };
    let (status, turn) = ask(&ada);
    assert!(status == 200 && turn["updates"].to_string().contains("blue"), "{status} {turn}");
    let (status, turn) = ask(&bob);
    assert!(status == 404 && !turn.to_string().contains("blue"), "{status} {turn}");
}

#[test]
fn what_is_kept_of_sessions_is_readable_for_the_daemon_alone() {
    let (world, _daemon, mut first, session) = begun("", "", &open());
    let turn = first.prompt(&session, &["plan one"]);
    assert_eq!(first.answer(turn)["result"]["stopReason"], "end_turn");
    let folder = world.state_dir().join("conversations");
    let sessions: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    let [only] = &sessions[..] else { panic!("{sessions:?}") };
    let turns: Vec<_> = fs::read_dir(only).unwrap().map(|it| it.unwrap().path()).collect();
    let [file] = &turns[..] else { panic!("{turns:?}") };
    use std::os::unix::fs::PermissionsExt as _;
    for (path, mode) in [(&folder, 0o700), (only, 0o700), (file, 0o600)] {
        let found = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
    // A task that no editor has asked for is not kept.
    let done = world.command(&["delegate", "plan two", "--worker", "coder", "--wait"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
