//! Artifacts written into the workspace.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use crate::support::desk::{Desk, errors, file, file_for, gone};

fn mode(desk: &Desk, path: &str) -> u32 {
    fs::metadata(desk.at(path)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn files_are_written_changed_and_removed() {
    let desk = Desk::new();
    desk.put("change.txt", "old\n");
    desk.put("gone.txt", "old\n");
    desk.put("same.txt", "same\n");
    let answer = desk.apply(&json!([
        file_for("old\n", "change.txt", "new\n"),
        gone("gone.txt"),
        file("same.txt", "same\n"),
        file("deep/er/new.txt", "no end"),
        file("../out.txt", "x"),
        gone("never.txt"),
    ]));
    assert_eq!((&answer["applied"], &answer["skipped"]), (&json!(3), &json!(2)), "{answer}");
    assert_eq!(errors(&answer), ["../out.txt: the path leads out of the workspace"]);
    assert_eq!(answer["apply"], 1);
    assert_eq!(desk.files(), ["change.txt", "deep/er/new.txt", "same.txt"]);
    assert_eq!((desk.text("change.txt"), desk.text("deep/er/new.txt")), ("new\n".into(), "no end".into()));
    let ended = desk.events("apply_ended");
    assert_eq!((&ended[0]["applied"], &ended[0]["errors"]), (&json!(3), &json!(1)), "{ended:?}");
    assert_eq!(desk.events("files_applied")[0]["files"].as_array().unwrap().len(), 3);
}

#[test]
fn rights_of_a_file_stay_as_they_are() {
    let desk = Desk::new();
    for (path, bits) in [("run.sh", 0o755), ("secret", 0o600), ("read-only", 0o444)] {
        desk.put(path, "old");
        fs::set_permissions(desk.at(path), fs::Permissions::from_mode(bits)).unwrap();
        let answer = desk.apply(&json!([file(path, "new")]));
        assert_eq!(answer["applied"], 1, "{answer}");
        assert_eq!((mode(&desk, path), desk.text(path)), (bits, "new".into()), "{path}");
    }
    desk.apply(&json!([file("new", "x")]));
    assert_eq!(mode(&desk, "new"), 0o644);
}

#[test]
fn an_edit_that_nobody_has_seen_is_not_overwritten() {
    let desk = Desk::new();
    desk.put("a.txt", "edited by hand\n");
    let answer = desk.apply(&json!([file_for("as it was\n", "a.txt", "by the worker\n")]));
    assert_eq!(errors(&answer), ["a.txt: changed on disk since it was generated"]);
    assert_eq!(answer["apply"], json!(null), "nothing was to be written");
    let answer = desk.apply(&json!([file_for("as it was\n", "removed.txt", "by the worker\n")]));
    assert_eq!(errors(&answer), ["removed.txt: changed on disk since it was generated"]);
    assert_eq!(desk.files(), ["a.txt"]);
    assert_eq!(desk.text("a.txt"), "edited by hand\n");
}

#[test]
fn what_is_no_file_is_an_error_and_the_others_are_written() {
    let desk = Desk::new();
    let outside = desk.world.path("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, desk.at("away")).unwrap();
    let answer = desk.apply(&json!([
        file("a.txt", "1"),
        file("a.txt", "2"),
        file("away/x", "3"),
        json!({ "type": "snippet", "path": "untitled", "content": "x" }),
        json!({ "type": "log", "path": ".provost/x.md", "content": "x" }),
        file("b.txt", "4"),
    ]));
    assert_eq!((&answer["applied"], &answer["skipped"]), (&json!(2), &json!(1)), "{answer}");
    assert_eq!(errors(&answer).len(), 3);
    assert_eq!((desk.text("a.txt"), desk.text("b.txt")), ("1".into(), "4".into()));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn five_hundred_files_in_one_call() {
    let desk = Desk::new();
    let many: Vec<_> = (0..500).map(|n| file(&format!("d{}/f{n}.txt", n % 7), &format!("{n}\n"))).collect();
    let answer = desk.apply(&json!(many));
    assert_eq!((&answer["applied"], &answer["errors"]), (&json!(500), &json!([])), "{answer}");
    assert_eq!(desk.files().len(), 500);
    assert_eq!(desk.text("d0/f497.txt"), "497\n");
    let again = desk.apply(&json!(many));
    assert_eq!((&again["skipped"], &again["apply"]), (&json!(500), &json!(null)));
}

#[test]
fn what_is_sent_for_a_file_with_a_backslash_in_its_name_is_written_to_no_other_file() {
    let desk = Desk::new();
    desk.put("a\\b.txt", "old\n");
    desk.put("a/b.txt", "old\n");
    let answer = desk.apply(&json!([file_for("old\n", "a\\b.txt", "new\n")]));
    let why = "a backslash in a name counts as a slash, so that it would mean another file";
    assert_eq!(errors(&answer), [format!("a\\b.txt: {why}")]);
    assert_eq!((desk.text("a\\b.txt"), desk.text("a/b.txt")), ("old\n".into(), "old\n".into()));
    // Where there is no such file, it is a path as editors on Windows write it.
    let answer = desk.apply(&json!([file("c\\d.txt", "new\n")]));
    assert_eq!((&answer["applied"], desk.text("c/d.txt")), (&json!(1), "new\n".into()), "{answer}");
}
