//! Applies at the A6s door: whose word they take, several at once, as many as there may be, and editors that
//! do not wait.

use serde_json::{Value, json};

use crate::support::a6s_artifacts::{ALL, APPLY, Editor, PREVIEW, desk, file, made, nothing_written, socket};
use crate::support::a6s_client::Socket;
use crate::support::desk::Desk;
use crate::support::eventually;

fn answer_question(desk: &Desk, status: &str, note: &str) {
    let approver = desk.world.approver(&desk.daemon);
    let question =
        approver.poll_until(|it| it["msg_type"] == "APPROVAL" && it["payload"]["tool"] == "ApplyFiles");
    let decision = json!({ "status": status, "note": note });
    approver
        .say_to("APPROVAL_DECISION", question["msg_id"].as_str().unwrap(), "orchestrator", decision)
        .ack();
}

fn error(answer: &Value) -> String {
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

#[test]
fn an_apply_that_needs_somebodys_word_waits_for_it_and_is_carried_out() {
    let desk = desk("", "", "");
    desk.put("a.txt", "old\n");
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, "DO write a.txt new\\n\nDO write b.txt new\\n");
    let preview = Editor::Emacs.result(&mut socket, PREVIEW, &artifacts);
    assert_eq!(preview["files"][0]["action"], "modify", "nobody is asked about a look");
    socket.text(&Editor::Emacs.text("a", APPLY, &artifacts));
    (0..100).for_each(|_| assert!(socket.is_alive(), "others are answered meanwhile"));
    answer_question(&desk, "granted", "");
    assert_eq!(socket.answer("a")["result"]["applied"], 2);
    assert_eq!((desk.text("a.txt"), desk.text("b.txt")), ("new\n".into(), "new\n".into()));

    desk.put("a.txt", "old\n");
    socket.text(&Editor::Emacs.text("b", APPLY, &artifacts));
    answer_question(&desk, "denied", "not on a Friday");
    let denied = error(&socket.answer("b"));
    assert!(denied.contains("not on a Friday"), "{denied}");
    assert_eq!(desk.text("a.txt"), "old\n");
}

#[test]
fn a_word_is_for_the_bytes_that_a_merge_made() {
    let desk = desk("", "apply_wait = \"1s\"\n", "");
    let base = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
    desk.put("a.txt", base);
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, "DO write a.txt 1\\ntwo\\nthree\\nfour\\nfive\\nsix\\nseven\\n");
    desk.put("a.txt", base.replace("seven", "7"));
    error(&Editor::Neovim.answer(&mut socket, APPLY, &artifacts));
    answer_question(&desk, "granted", "");
    // What would be written now is another merge.
    let later = base.replace("seven", "sieben");
    desk.put("a.txt", &later);
    let asked = error(&Editor::Neovim.answer(&mut socket, APPLY, &artifacts));
    assert!(asked.starts_with("Waits for approval"), "{asked}");
    assert_eq!(desk.text("a.txt"), later);
    desk.put("a.txt", base.replace("seven", "7"));
    assert_eq!(Editor::Neovim.result(&mut socket, APPLY, &artifacts)["applied"], 1);
    assert_eq!(desk.text("a.txt"), base.replace("seven", "7").replace("one", "1"));
}

#[test]
fn an_apply_that_nobody_allows_in_time_says_how_it_goes_on() {
    let desk = desk("", "apply_wait = \"1s\"\n", "");
    let mut socket = socket(&desk);
    let artifacts = [file("a.txt", "new\n")];
    let parked = error(&Editor::Neovim.answer(&mut socket, APPLY, &artifacts));
    let (_, waiting) = desk.ask("ed", "GET /approvals", &Value::Null);
    let id = waiting[0]["id"].as_u64().unwrap();
    assert!(parked.starts_with(&format!("Waits for approval {id}; nothing is written yet.")), "{parked}");
    assert!(parked.contains(&format!("provost approve {id}")), "{parked}");
    assert_eq!(error(&Editor::Sublime.answer(&mut socket, APPLY, &artifacts)), parked, "the same question");
    answer_question(&desk, "granted", "");
    assert!(!desk.at("a.txt").exists(), "nothing is written that nobody waits for");
    assert_eq!(Editor::Neovim.result(&mut socket, APPLY, &artifacts)["applied"], 1);
    assert_eq!(desk.text("a.txt"), "new\n");
}

#[test]
fn a_rule_that_denies_an_apply_is_named() {
    let desk = desk("version = 1\ndefault = \"deny\"\n", "", "");
    let mut socket = socket(&desk);
    let denied = error(&Editor::Neovim.answer(&mut socket, APPLY, &[file("a.txt", "x")]));
    assert!(denied.starts_with("Denied by rule no-rule: "), "{denied}");
    assert!(!desk.at("a.txt").exists());
    // What is refused anyhow is nobody's question.
    let refused = Editor::Neovim.answer(&mut socket, APPLY, &[file("../a.txt", "x")]);
    assert_eq!(nothing_written(&refused).len(), 1);
}

fn many(count: usize, content: &str) -> Vec<Value> {
    (0..count).map(|n| file(&format!("d{}/f{n}.txt", n % 9), content)).collect()
}

/// Everything that is in the workspace says the same.
fn all_say(desk: &Desk, text: &str) -> bool {
    desk.files().iter().all(|it| desk.text(it) == text)
}

#[test]
fn of_two_editors_that_apply_the_same_files_at_once_each_file_is_one_ones_whole() {
    let desk = desk(ALL, "", "");
    let (ada, bob) = ("ada\n".repeat(2_000), "bob\n".repeat(3_000));
    let apply = |content: &str| {
        let mut socket = socket(&desk);
        let content = content.to_owned();
        move || Editor::Neovim.result(&mut socket, APPLY, &many(60, &content))
    };
    let (mut first, mut second) = (apply(&ada), apply(&bob));
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(&mut first);
        (second(), first.join().unwrap())
    });
    assert_eq!((&first["applied"], &second["applied"]), (&json!(60), &json!(60)), "{first} {second}");
    assert_eq!(desk.files().len(), 60, "nothing is left beside them");
    for path in desk.files() {
        let text = desk.text(&path);
        assert!(text == ada || text == bob, "{path} is half of each");
    }
    // Two that were made for the same file: one of them counts, the other one is told.
    desk.files().iter().for_each(|it| desk.put(it, "base\n"));
    let race = |content: &str| {
        let mut socket = socket(&desk);
        let mut artifacts = many(60, content);
        artifacts.iter_mut().for_each(|it| it["baseHash"] = json!(crate::support::desk::sha("base\n")));
        move || Editor::Neovim.answer(&mut socket, APPLY, &artifacts)
    };
    let (mut first, mut second) = (race("first\n"), race("second\n"));
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(&mut first);
        (second(), first.join().unwrap())
    });
    // Who has written nothing at all is told so by an error.
    let applied = |it: &Value| it["result"]["applied"].as_u64().unwrap_or(0);
    assert_eq!(applied(&first) + applied(&second), 60, "{first} {second}");
}

#[test]
fn an_apply_is_whole_although_its_work_is_taken_back_or_its_editor_leaves() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    let mut artifacts = made(&mut socket, "DO write d0/made.txt first");
    let id = artifacts[0]["id"].clone();
    artifacts.extend(many(300, "first"));
    let begun = socket.result("agents.invoke", &json!({ "agentType": "coder-ai", "task": "DO wait" }));
    let apply = Editor::Neovim.text("a", APPLY, &artifacts);
    socket.text(&apply);
    let cancel = socket.request("background.cancel", &json!({ "taskId": begun["executionId"] }));
    assert!(socket.answer(&cancel)["result"].is_null());
    let answer = match socket.aside.iter().position(|it| it["id"] == "a") {
        Some(at) => socket.aside.remove(at),
        None => socket.answer("a"),
    };
    assert_eq!((&answer["result"]["applied"], &answer["result"]["errors"]), (&json!(301), &json!([])));
    assert!(all_say(&desk, "first") && desk.files().len() == 301, "{id}");

    // One that has gone before it is answered has what it asked for.
    let mut gone = self::socket(&desk);
    gone.text(&Editor::Neovim.text("a", APPLY, &many(300, "second")));
    eventually("the first file", || desk.files().iter().any(|it| desk.text(it) == "second"));
    drop(gone);
    let newest = || desk.applies()[0].clone();
    eventually("its end", || newest()["apply"] == 2 && newest()["state"] == "done");
    assert_eq!(newest()["files"].as_array().unwrap().len(), 300);
    assert_eq!(desk.text("d0/f0.txt"), "second");
    assert!(socket.is_alive());
}

#[test]
fn as_many_as_may_be_and_as_large_as_may_be() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    let most = many(500, "x\n");
    let preview = Editor::Emacs.result(&mut socket, PREVIEW, &most);
    assert_eq!(preview["files"].as_array().unwrap().len(), 500);
    assert_eq!(Editor::Emacs.result(&mut socket, APPLY, &most)["applied"], 500);
    assert_eq!(desk.files().len(), 500);
    for method in [PREVIEW, APPLY] {
        for editor in [Editor::Neovim, Editor::Emacs] {
            let refused = error(&editor.answer(&mut socket, method, &many(501, "y\n")));
            assert!(refused.contains("more than 500"), "{refused}");
        }
    }
    assert!(all_say(&desk, "x\n"), "a call that is refused writes nothing");

    let large = "0123456\n".repeat(1 << 20);
    let preview = Editor::Neovim.result(&mut socket, PREVIEW, &[file("large.txt", &large)]);
    let row = &preview["files"][0];
    assert_eq!(row["action"], "create");
    let diff = row["diff"].as_str().unwrap();
    assert!(diff.ends_with("0 lines are removed, 1048576 added.\n") && diff.len() < 300, "{diff}");
    assert_eq!(Editor::Neovim.result(&mut socket, APPLY, &[file("large.txt", &large)])["applied"], 1);
    assert_eq!(desk.text("large.txt").len(), 8 << 20);
}

#[test]
fn the_differences_of_one_preview_are_bounded_together() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    let content = "a line of some length\n".repeat(41_000);
    let preview = Editor::Neovim.result(&mut socket, PREVIEW, &many(12, &content));
    let diffs = preview["files"].as_array().unwrap();
    let sizes: Vec<usize> = diffs.iter().map(|it| it["diff"].as_str().unwrap().len()).collect();
    assert!(sizes[0] > 900_000 && sizes[11] < 300, "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() < 9 << 20, "{sizes:?}");
}

#[test]
fn what_is_no_list_of_artifacts_changes_nothing_and_says_so() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    for wrong in
        [json!(7), json!("text"), json!([7]), json!([null]), json!({ "id": 7 }), json!([{ "path": 7 }])]
    {
        for method in [PREVIEW, APPLY] {
            let why = socket.error(method, &json!({ "artifacts": wrong }));
            assert!(why.starts_with(method), "{wrong}: {why}");
        }
    }
    for nothing in [json!({}), json!([]), json!(null), json!({ "artifacts": null })] {
        assert_eq!(socket.result(PREVIEW, &nothing), json!({ "files": [] }));
    }
    assert_eq!(desk.files(), [""; 0]);
    assert!(Socket::is_alive(&mut socket));
}
