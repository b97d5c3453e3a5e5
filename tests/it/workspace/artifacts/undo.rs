//! The undo of an apply: the earlier files come back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::desk::{Desk, errors, file, gone};

impl Desk {
    pub(crate) fn undo(&self, apply: u64, force: bool) -> Value {
        let (status, answer) = self.ask("ed", "POST /undo", &json!({ "apply": apply, "force": force }));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub(crate) fn applies(&self) -> Vec<Value> {
        let (status, answer) = self.ask("ed", "GET /applies", &Value::Null);
        assert_eq!(status, 200, "{answer}");
        answer.as_array().unwrap().clone()
    }
}

#[test]
fn an_apply_is_undone_and_so_is_the_undoing() {
    let desk = Desk::new();
    desk.put("changed", "old\r\nno end");
    desk.put("gone", [0, 255, 10]);
    fs::set_permissions(desk.at("gone"), fs::Permissions::from_mode(0o750)).unwrap();
    desk.put("kept/here", "x");
    let work =
        json!([file("changed", "new"), gone("gone"), file("made/for/it", "new"), file("kept/new", "new")]);
    assert_eq!(desk.apply(&work)["applied"], 4);
    let after = desk.files();
    assert_eq!(after, ["changed", "kept/here", "kept/new", "made/for/it"]);

    let answer = desk.undo(1, false);
    assert_eq!((&answer["applied"], &answer["apply"]), (&json!(4), &json!(2)), "{answer}");
    assert_eq!(desk.files(), ["changed", "gone", "kept/here"]);
    assert_eq!(desk.text("changed"), "old\r\nno end");
    assert_eq!(fs::read(desk.at("gone")).unwrap(), [0, 255, 10]);
    assert_eq!(fs::metadata(desk.at("gone")).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(
        !desk.at("made").exists() && desk.at("kept").exists(),
        "folders that it has made go, others stay"
    );
    let again = desk.undo(1, false);
    assert_eq!((&again["applied"], &again["skipped"]), (&json!(0), &json!(4)), "{again}");

    let answer = desk.undo(2, false);
    assert_eq!(answer["applied"], 4, "{answer}");
    assert_eq!((desk.files(), desk.text("made/for/it")), (after, "new".into()));
    let applies = desk.applies();
    let row = |n: usize| (&applies[n]["apply"], &applies[n]["undoes"], &applies[n]["undone_by"]);
    assert_eq!(row(0), (&json!(3), &json!(2), &json!(null)));
    assert_eq!(row(1), (&json!(2), &json!(1), &json!(3)));
    assert_eq!(row(2), (&json!(1), &json!(null), &json!(2)));
    assert_eq!(applies[2]["files"][1], json!({ "path": "gone", "how": "deleted" }));
    assert!(applies.iter().all(|it| it["state"] == "done" && it["by"] == "ed"));
}

#[test]
fn a_file_that_has_changed_since_is_left_alone_unless_that_is_wanted() {
    let desk = Desk::new();
    for name in ["a", "b", "c"] {
        desk.put(name, "old");
    }
    desk.apply(&json!([file("a", "new"), file("b", "new"), file("c", "new")]));
    desk.put("b", "by hand");
    fs::remove_file(desk.at("c")).unwrap();
    let answer = desk.undo(1, false);
    assert_eq!(answer["applied"], 1, "{answer}");
    assert_eq!(errors(&answer), ["c: changed since it was applied", "b: changed since it was applied"]);
    assert_eq!(
        (desk.text("a"), desk.text("b"), desk.text("c")),
        ("old".into(), "by hand".into(), "-".into())
    );
    let forced = desk.undo(1, true);
    assert_eq!(forced["applied"], 2, "{forced}");
    assert_eq!((desk.text("b"), desk.text("c")), ("old".into(), "old".into()));
    desk.undo(forced["apply"].as_u64().unwrap(), false);
    assert_eq!(
        (desk.text("b"), desk.text("c")),
        ("by hand".into(), "-".into()),
        "what was there is never lost"
    );
}

#[test]
fn the_commands_say_what_was_done() {
    let desk = Desk::new();
    desk.put("a", "old");
    let run = |args: &[&str]| {
        let output = desk.world.command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run(&["apply", "list"]).2.trim(), "no apply has been made");
    desk.apply(&json!([file("a", "new"), file("b", "new")]));
    let (code, out, _) = run(&["apply", "list"]);
    assert!(code == 0 && out.contains("~a +b") && out.contains("ed"), "{out}");
    desk.put("b", "by hand");
    let (code, out, err) = run(&["undo", "1"]);
    assert!(code == 1 && out.contains("brought back: 1; this was apply 2"), "{code} {out} {err}");
    assert!(err.contains("left alone: b: changed since") && err.contains("--force"), "{err}");
    let (code, out, _) = run(&["undo", "1", "--force", "--json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["applied"], &answer["skipped"]), (0, &json!(1), &json!(1)), "{answer}");
    let (code, _, err) = run(&["undo", "77"]);
    assert!(code != 0 && err.contains("there is no apply 77"), "{code} {err}");
    let (_, out, _) = run(&["apply", "list", "--json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&out).unwrap().len(), 3);
    assert_eq!(desk.files(), ["a"]);
}

#[test]
fn old_contents_are_the_users_alone() {
    let desk = Desk::new();
    desk.put("a", "old");
    desk.apply(&json!([file("a", "new")]));
    let folder = desk.world.state_dir().join("applies");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let records: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(records.len(), 1);
    assert_eq!(mode(&records[0]), 0o600);
    // One that was damaged is not brought back.
    let bytes = fs::read(&records[0]).unwrap();
    let at = bytes.windows(4).position(|it| it == b"old\n").unwrap();
    fs::write(&records[0], [&bytes[..at], b"bad", &bytes[at + 3..]].concat()).unwrap();
    let answer = desk.undo(1, false);
    assert!(errors(&answer)[0].contains("cannot be read back"), "{answer}");
    assert_eq!(desk.text("a"), "new");
}
