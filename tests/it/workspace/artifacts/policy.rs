//! Policy decides which callers may have files written.

use std::os::unix::fs::PermissionsExt as _;

use provost::base::later::ROWS;
use provost::base::limits::APPROVAL_DIFF_BYTES_MAX;
use serde_json::{Value, json};

use crate::support::desk::{Desk, FREELY, errors, file};
use crate::support::rules::{ask, policy};

fn answer_approval(desk: &Desk, id: &str, status: &str, note: &str) {
    let approver = desk.world.approver(&desk.daemon);
    approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": status, "note": note })).ack();
}

/// The id of the question on the wire, by what the approver is shown.
fn question(desk: &Desk) -> Value {
    desk.world.approver(&desk.daemon).poll_until(|it| it["msg_type"] == "APPROVAL")
}

#[test]
fn by_default_an_apply_waits_for_somebodys_word_and_is_then_carried_out_once() {
    let desk = Desk::with("", "");
    desk.put("a", "old");
    let work = json!([file("a", "new"), file("b", "new"), file("../x", "no")]);
    let asked = desk.apply(&work);
    assert_eq!((&asked["state"], &asked["applied"]), (&json!("awaiting"), &json!(0)), "{asked}");
    assert_eq!(desk.apply(&work)["approval"], asked["approval"], "the same question");
    let other = desk.apply(&json!([file("a", "other")]));
    assert_ne!(other["approval"], asked["approval"], "another content is another question");
    assert_eq!(desk.files(), ["a"]);

    let shown = question(&desk);
    assert_eq!(shown["payload"]["tool"], "ApplyFiles", "{shown}");
    assert_eq!(shown["payload"]["details"]["files"], json!(["write a", "write b"]), "{shown}");
    let (_, waiting) = desk.ask("ed", "GET /approvals", &Value::Null);
    assert_eq!(waiting[0]["request"]["files"], json!(["write a", "write b"]), "{waiting}");
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "granted", "");
    assert_eq!(desk.files(), ["a"], "nothing is written until it is asked for again");
    let stranger = desk.apply_as("somebody-else", &work);
    assert_eq!(stranger["state"], "awaiting", "a grant is for whoever asked: {stranger}");
    let done = desk.apply(&work);
    assert_eq!((&done["applied"], &done["apply"]), (&json!(2), &json!(1)), "{done}");
    assert_eq!((desk.text("a"), desk.text("b")), ("new".into(), "new".into()));
    desk.put("a", "old");
    assert_eq!(desk.apply(&work)["state"], "awaiting", "one grant, one apply");
    let undo = desk.undo(1, true);
    assert_eq!(undo["state"], "awaiting", "an agent's undo is judged too: {undo}");
}

#[test]
fn a_denied_apply_says_so_and_writes_nothing() {
    let desk = Desk::with("", "");
    let work = json!([file("a", "new")]);
    desk.apply(&work);
    let shown = question(&desk);
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "denied", "not on a Friday");
    let (status, answer) = desk.ask("ed", "POST /apply-artifacts", &json!({ "artifacts": work }));
    assert_eq!(status, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("not on a Friday"), "{answer}");
    assert_eq!(desk.files(), [""; 0]);
}

#[test]
fn nobody_is_asked_about_what_changes_nothing() {
    let desk = Desk::with("", "");
    desk.put("a", "same");
    let answer = desk.apply(&json!([file("a", "same"), file(".git/config", "x")]));
    assert_eq!((&answer["state"], &answer["skipped"]), (&json!("applied"), &json!(1)), "{answer}");
    let (_, waiting) = desk.ask("ed", "GET /approvals", &Value::Null);
    assert_eq!(waiting, json!([]));
}

#[test]
fn a_rule_that_denies_is_named() {
    let desk = Desk::with("version = 1\ndefault = \"deny\"\n", "");
    let answer = desk.apply(&json!([file("a", "new")]));
    assert_eq!((&answer["state"], &answer["rule"]), (&json!("denied"), &json!("no-rule")), "{answer}");
    assert_eq!(desk.files(), [""; 0]);
}

#[test]
fn settings_that_run_later_are_written_only_where_a_setting_says_so() {
    let desk = Desk::new();
    let examples = || ROWS.iter().flat_map(|row| row.examples().map(move |path| (row, path)));
    for below in ["", "sub/deep/"] {
        let asked: Vec<Value> = examples().map(|(_, path)| file(&format!("{below}{path}"), "x")).collect();
        desk.apply(&Value::from(asked));
        for (row, path) in examples() {
            // The list of files that are denied by default has some that are reported only.
            let written = !row.is_read_only() && !path.starts_with(".env");
            assert_eq!(desk.at(&format!("{below}{path}")).exists(), written, "{below}{path}");
        }
    }
    let other = [".CLAUDE/x", ".claude./x", "a/.vsc\u{200d}ode/x", "CLAUDE~1/x", "VSCODE~2/x", "mise.X.toml"];
    let asked: Vec<Value> = other.iter().map(|path| file(path, "x")).collect();
    let answer = desk.apply(&Value::from(asked.clone()));
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(0), other.len()), "{answer}");
    assert!(errors(&answer).iter().all(|it| it.contains("a6s.apply_settings")), "{answer}");
    let shown = desk.preview(&Value::from(asked));
    assert!(shown.iter().all(|it| it["action"] == "skip"), "{shown:?}");
    // A row that is reported only does not open what lies in it.
    let inner = [
        ".rules/.claude/settings.json",
        ".github/instructions/.vscode/tasks.json",
        ".github/instructions/VSCODE~1/tasks.json",
    ];
    let asked: Vec<Value> = inner.iter().map(|path| file(path, "x")).collect();
    let answer = desk.apply(&Value::from(asked));
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(0), inner.len()), "{answer}");
    assert!(errors(&answer).iter().all(|it| it.contains("a6s.apply_settings")), "{answer}");

    let desk = Desk::with(FREELY, "[a6s]\napply_settings = true\n");
    let answer = desk.apply(&json!([file(".vscode/tasks.json", "x"), file(".hg/hgrc", "x")]));
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(1), 1), "{answer}");
    assert_eq!(desk.text(".vscode/tasks.json"), "x");
}

#[test]
fn what_runs_outside_of_every_jail_is_written_by_no_apply() {
    let settings = "[hooks.notify]\ncommand = \"./tell/me.sh --now\"\n[workspace]\nprotect = [\"ours\"]\n";
    let desk = Desk::with(FREELY, &format!("[a6s]\napply_settings = true\n{settings}"));
    let git = |args: &[&str]| {
        assert!(
            std::process::Command::new("git").args(args).current_dir(desk.at("")).status().unwrap().success()
        );
    };
    git(&["config", "core.hooksPath", "hooked"]);
    git(&["config", "core.fsmonitor", "./watch/it.sh"]);
    git(&["config", "filter.f.clean", "sh -c 'cd deep && ./in.sh'; $NOWHERE/bin/end.sh"]);
    git(&["init", "-q", "--bare", "store"]);
    let bare = |name: &str| file(&format!("made/{name}"), "x");
    let asked = json!([
        file("tell/me.sh", "x"),
        file("TELL/me.sh", "x"),
        file("tell./me.sh ", "x"),
        file("te\u{200c}ll/ME.sh", "x"),
        file("deep/in.sh", "x"),
        file("any/bin/end.sh", "x"),
        file("ours/a", "x"),
        file("hooked/pre-commit", "x"),
        file("watch/it.sh", "x"),
        file("store/config", "x"),
        file("store/hooks/update", "x"),
        bare("HEAD"),
        bare("objects/x"),
        bare("refs/x"),
        bare("config"),
    ]);
    let answer = desk.apply(&asked);
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(0), 15), "{answer}");
    let shown = desk.preview(&asked);
    assert!(shown.iter().all(|it| it["action"] == "skip"), "{shown:?}");
    // What is in one file of a call, and then in another call, is a repository all the same.
    let answer = desk.apply(&json!([bare("HEAD"), bare("objects/x"), file("free", "x")]));
    assert_eq!(answer["applied"], 3, "{answer}");
    let answer = desk.apply(&json!([bare("refs/x")]));
    assert_eq!(answer["applied"], 0, "{answer}");
}

#[test]
fn who_is_asked_sees_the_difference_and_what_runs_later_apart() {
    let desk = Desk::with("", "[a6s]\napply_settings = true\n");
    desk.put("a", "old\n");
    let long = "line\n".repeat(10_000);
    let work = json!([
        file("a", "new\n"),
        file("b", &long),
        file(".vscode/tasks.json", "x"),
        file("sub/AGENTS.md", "y")
    ]);
    assert_eq!(desk.apply(&work)["state"], "awaiting");
    let shown = question(&desk);
    let details = &shown["payload"]["details"];
    assert_eq!(details["settings"], json!([".vscode/tasks.json", "sub/AGENTS.md"]), "{shown}");
    let diff = details["diff"].as_str().unwrap();
    assert!(diff.contains("diff --git a/a b/a\n") && diff.contains("-old\n+new\n"), "{diff}");
    assert!(
        diff.contains("too long to be shown") && diff.len() < APPROVAL_DIFF_BYTES_MAX + 1_000,
        "{}",
        diff.len()
    );
    let said = desk.world.command(&["approval", "list"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("setting") && said.contains("sub/AGENTS.md") && said.contains("+new"), "{said}");
}

#[test]
fn nothing_hides_in_what_a_person_is_shown() {
    let asked = policy([ask("\"human\"", &["when.action = [\"apply\", \"delegate\"]"])]);
    let desk = Desk::with(&asked, "");
    let hides = "echo building \u{1b}]; id > out\necho \u{90}more\n";
    desk.apply(&json!([file("mk.sh", hides), file("src/\u{202e}sr.niam", "x")]));
    let goal = "echo ok \u{1b}]; touch HIDDEN\u{200b}";
    let asked = json!({ "task": "t-1", "worker": "shell", "goal": goal, "watch_patterns": [] });
    let (_, answer) = desk.ask("ed", "POST /delegate", &asked);
    assert_eq!(answer["state"], "awaiting", "{answer}");
    let said = desk.world.command(&["approval", "list"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for whole in [
        "+echo building \\u{1b}]; id > out\n",
        "+echo \\u{90}more\n",
        "src/\\u{202e}sr.niam",
        "echo ok \\u{1b}]; touch HIDDEN\\u{200b}",
    ] {
        assert!(said.contains(whole), "{whole:?} is not in {said}");
    }
    assert!(!said.contains(['\u{1b}', '\u{90}', '\u{202e}', '\u{200b}']), "{said:?}");
}

#[test]
fn a_word_is_for_what_was_shown_and_for_no_file_that_has_changed_since() {
    let desk = Desk::with("", "");
    desk.put("a", "old");
    let work = json!([file("a", "new")]);
    desk.apply(&work);
    let shown = question(&desk);
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "granted", "");
    desk.put("a", "edited since");
    let again = desk.apply(&work);
    assert_eq!((&again["state"], desk.text("a")), (&json!("awaiting"), "edited since".into()), "{again}");
    desk.put("a", "old");
    assert_eq!(desk.apply(&work)["applied"], 1, "it is what was shown");
}

#[test]
fn a_word_for_a_plain_file_makes_no_program_of_it() {
    let desk = Desk::with("", "");
    let of_mode = |mode: u32| {
        let mut tool = file("tool", "#!/bin/sh\n");
        tool["mode"] = json!(mode);
        json!([tool])
    };
    let asked = desk.apply(&of_mode(0o644));
    let shown = question(&desk);
    let diff = shown["payload"]["details"]["diff"].as_str().unwrap();
    assert!(diff.contains("new file mode 100644"), "{diff}");
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "granted", "");
    let other = desk.apply(&of_mode(0o755));
    assert_eq!((&other["state"], desk.text("tool")), (&json!("awaiting"), "-".into()), "{other}");
    assert_ne!(other["approval"], asked["approval"], "a program is another question");
    assert_eq!(desk.apply(&of_mode(0o644))["applied"], 1);
    let mode = std::fs::metadata(desk.at("tool")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}");
}

#[test]
fn a_file_that_has_become_a_program_since_the_word_is_another_question() {
    let desk = Desk::with("", "");
    desk.put("tool", "old\n");
    let work = json!([file("tool", "new\n")]);
    desk.apply(&work);
    let shown = question(&desk);
    answer_approval(&desk, shown["msg_id"].as_str().unwrap(), "granted", "");
    std::fs::set_permissions(desk.at("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let again = desk.apply(&work);
    assert_eq!((&again["state"], desk.text("tool")), (&json!("awaiting"), "old\n".into()), "{again}");
}
