//! Artifacts at the A6s door: from what an agent has changed to the user's files and back, in the way of each
//! editor.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::World;
use crate::support::a6s_artifacts::{
    ALL, APPLY, Editor, PREVIEW, completed, desk, file, made, nothing_written, row, socket,
};
use crate::support::a6s_client::OPEN;
use crate::support::desk::{Desk, errors};

#[test]
fn from_the_question_to_the_files_and_back_in_the_way_of_each_editor() {
    let desk = desk(ALL, "", "");
    for (number, editor) in (1..).step_by(2).zip([Editor::Neovim, Editor::Emacs, Editor::Sublime]) {
        desk.put("there.txt", "one\ntwo\nthree\n");
        desk.put("gone.txt", "x\n");
        let mut socket = socket(&desk);
        let artifacts = made(
            &mut socket,
            "DO write there.txt one\\nTWO\\nthree\\n\nDO remove gone.txt\nDO write a/b/new.py print('\\u00e4')\nDO bytes logo.png",
        );
        assert_eq!(artifacts.len(), 4, "{artifacts:?}");
        let preview = editor.result(&mut socket, PREVIEW, &artifacts);
        assert_eq!(preview["files"].as_array().unwrap().len(), 4);
        let there = row(&preview, "there.txt");
        assert_eq!(there["action"], "modify");
        let diff = "--- a/there.txt\n+++ b/there.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        assert!(there["diff"].as_str().unwrap().ends_with(diff), "{there}");
        let gone = row(&preview, "gone.txt");
        assert_eq!(gone["action"], "modify");
        assert!(gone["diff"].as_str().unwrap().contains("+++ /dev/null\n"), "{gone}");
        let new = row(&preview, "a/b/new.py");
        assert_eq!(new["action"], "create");
        let diff = new["diff"].as_str().unwrap();
        assert!(diff.contains("--- /dev/null\n") && diff.contains("\\ No newline at end of file"), "{new}");
        assert_eq!(row(&preview, "logo.png")["action"], "create");
        assert_eq!(desk.files(), ["gone.txt", "there.txt"], "a preview writes nothing");

        let applied = editor.result(&mut socket, APPLY, &artifacts);
        assert_eq!(
            applied,
            json!({ "applied": 4, "skipped": 0, "errors": [], "apply": number }),
            "{editor:?}"
        );
        assert_eq!(desk.text("there.txt"), "one\nTWO\nthree\n");
        assert_eq!(desk.text("a/b/new.py"), "print('ä')");
        assert_eq!(std::fs::read(desk.at("logo.png")).unwrap(), (0..=255).collect::<Vec<u8>>());
        assert_eq!(desk.files(), ["a/b/new.py", "logo.png", "there.txt"]);
        let again = editor.result(&mut socket, APPLY, &artifacts);
        assert_eq!(again, json!({ "applied": 0, "skipped": 4, "errors": [] }));
        assert_eq!(row(&editor.result(&mut socket, PREVIEW, &artifacts), "there.txt")["action"], "skip");

        let undone = desk.world.command(&["undo", &number.to_string()]).output().unwrap();
        assert!(undone.status.success(), "{undone:?}");
        assert_eq!(desk.files(), ["gone.txt", "there.txt"], "what was made is gone, with its folders");
        assert_eq!(desk.text("there.txt"), "one\ntwo\nthree\n");
        assert_eq!(editor.result(&mut socket, PREVIEW, &[]), json!({ "files": [] }));
        assert_eq!(
            editor.result(&mut socket, APPLY, &[]),
            json!({ "applied": 0, "skipped": 0, "errors": [] })
        );
    }
}

#[test]
fn what_is_refused_is_listed_with_its_reason_and_the_others_are_written() {
    let desk = desk(ALL, "", "");
    let outside = desk.world.path("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, desk.at("away")).unwrap();
    let (long, large) = ("x".repeat(4_097), "x".repeat((8 << 20) + 1));
    let inside = desk.at("by-its-whole-path.txt").display().to_string();
    let typed = |kind: &str, path: &str| json!({ "id": "x", "type": kind, "path": path, "content": "x" });
    let refused = [
        (file("../out.txt", "x"), "leads out of the workspace"),
        (file("/etc/passwd", "x"), "leads out of the workspace"),
        (file(".git/hooks/pre-commit", "x"), "nothing is written into .git"),
        (file("deep/.GIT/config", "x"), "nothing is written into .git"),
        (file(".provost/provost.toml", "x"), "nothing is written into .provost"),
        (file("away/x", "x"), "link"),
        (file(".env", "x"), "a6s.deny"),
        (file("", "x"), "the path is empty"),
        (json!({ "id": "x", "type": "file", "content": "x" }), "the path is empty"),
        (file("nul", "x"), "device"),
        (file("a\u{0}b", "x"), "zero byte"),
        (file("folder/", "x"), "folder"),
        (file(&long, "x"), "longer than 4096"),
        (file("large.txt", &large), "larger than an artifact may be"),
        (file("good.txt", "again"), "names this file twice"),
        (typed("snippet", "untitled"), "a snippet belongs to no file"),
        (typed("binary", "unknown.png"), "not kept here"),
    ];
    let log = typed("log", ".provost/exec_x.md");
    let mut artifacts = vec![file("good.txt", "x"), file(&inside, "x"), file("back\\slash.txt", "x"), log];
    artifacts.extend(refused.iter().map(|(artifact, _)| artifact.clone()));
    for editor in [Editor::Neovim, Editor::Sublime] {
        let mut socket = socket(&desk);
        let preview = editor.result(&mut socket, PREVIEW, &artifacts);
        let rows = preview["files"].as_array().unwrap();
        assert_eq!(rows.len(), artifacts.len());
        for row in &rows[3..] {
            assert_eq!(row["action"], "skip", "{row}");
            let (shown, why) = (row["diff"].as_str().unwrap(), row["reason"].as_str().unwrap());
            assert!(shown.ends_with(&format!(" is not written: {why}\n")), "{row}");
        }
        for (row, (_, why)) in rows[4..].iter().zip(&refused) {
            assert!(row["reason"].as_str().unwrap().contains(why), "{why}: {row}");
        }
        assert!(rows[3]["reason"].as_str().unwrap().contains("log"), "{}", rows[3]);
        for path in ["good.txt", "by-its-whole-path.txt", "back/slash.txt"] {
            assert_eq!(row(&preview, path)["action"], "create");
        }
        let applied = editor.result(&mut socket, APPLY, &artifacts);
        assert_eq!((&applied["applied"], &applied["skipped"]), (&json!(3), &json!(1)), "{applied}");
        let errors = errors(&applied);
        for (error, (_, why)) in errors.iter().zip(&refused) {
            assert!(error.contains(why) && error.len() < 500, "{why}: {error}");
        }
        for path in ["good.txt", "by-its-whole-path.txt", "back/slash.txt"] {
            std::fs::remove_file(desk.at(path)).unwrap();
        }
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!desk.at(".git/hooks/pre-commit").exists());
}

#[test]
fn an_artifact_is_known_by_its_id_whatever_else_was_dropped() {
    let desk = desk(ALL, "", "");
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n{last}\n");
    desk.put("both.txt", lines("1", "7"));
    desk.put("same.txt", "1\n");
    let mut socket = socket(&desk);
    let steps = "DO write both.txt ONE\\n2\\n3\\n4\\n5\\n6\\n7\\n\nDO write same.txt theirs\\n\nDO write new.txt theirs\\n";
    let artifacts = made(&mut socket, steps);
    // Edited by hand meanwhile: elsewhere, in the same line, and where nothing was.
    desk.put("both.txt", lines("1", "SEVEN"));
    desk.put("same.txt", "mine\n");
    desk.put("new.txt", "mine\n");
    let preview = Editor::Sublime.result(&mut socket, PREVIEW, &artifacts);
    assert_eq!(row(&preview, "both.txt")["action"], "modify");
    let changed = "changed on disk since it was generated";
    assert_eq!(row(&preview, "same.txt")["reason"], changed);
    let applied = Editor::Sublime.result(&mut socket, APPLY, &artifacts);
    assert_eq!(applied["applied"], 1, "{applied}");
    assert_eq!(errors(&applied), [format!("new.txt: {changed}"), format!("same.txt: {changed}")]);
    assert_eq!(desk.text("both.txt"), lines("ONE", "SEVEN"), "both changes are there");
    assert_eq!((desk.text("same.txt"), desk.text("new.txt")), ("mine\n".into(), "mine\n".into()));

    // What the user has edited in the editor is what is written; an id that nobody knows says nothing.
    let mut edited = artifacts.iter().find(|it| it["path"] == "both.txt").unwrap().clone();
    desk.put("both.txt", lines("1", "7"));
    edited["content"] = json!(lines("by hand", "7"));
    let unknown = file("same.txt", "whatever\n");
    let mut wrong = file("new.txt", "x");
    wrong["baseHash"] = json!("0".repeat(64));
    let applied = Editor::Sublime.result(&mut socket, APPLY, &[edited.clone(), unknown]);
    assert_eq!(applied["applied"], 2, "{applied}");
    assert_eq!((desk.text("both.txt"), desk.text("same.txt")), (lines("by hand", "7"), "whatever\n".into()));
    let refused = Editor::Neovim.answer(&mut socket, APPLY, &[wrong.clone()]);
    assert_eq!(nothing_written(&refused), [format!("new.txt: {changed}")]);
    wrong["baseHash"] = json!("short");
    let answer = Editor::Neovim.answer(&mut socket, APPLY, &[file("fine.txt", "x"), wrong]);
    let error = answer["error"].as_str().unwrap();
    assert_eq!(error, "artifacts: the baseHash of new.txt: a digest is 64 hexadecimal digits");
    assert!(!desk.at("fine.txt").exists(), "what is malformed is an error of the whole call");
}

#[test]
fn where_the_configuration_says_so_only_what_was_made_here_is_written() {
    let desk = desk(ALL, "apply_unknown = false\n", "");
    desk.put("a.txt", "old\n");
    desk.put("gone.txt", "old\n");
    let mut socket = socket(&desk);
    let artifacts =
        made(&mut socket, "DO write a.txt new\\n\nDO bytes logo.png\nDO remove gone.txt\nDO write b.txt b");
    let by_path = |path: &str| artifacts.iter().find(|it| it["path"] == path).unwrap().clone();
    let but = |path: &str, member: &str, value: &str| {
        let mut artifact = by_path(path);
        artifact[member] = json!(value);
        artifact
    };
    let wrong = [
        file("c.txt", "x"),
        but("a.txt", "content", "edited\n"),
        but("a.txt", "path", "d.txt"),
        but("a.txt", "type", "delete"),
        but("gone.txt", "type", "file"),
        but("b.txt", "id", artifacts[0]["id"].as_str().unwrap()),
    ];
    for artifact in &wrong {
        let why = "no run here has left it exactly so, and a6s.apply_unknown is false";
        let preview = Editor::Neovim.result(&mut socket, PREVIEW, std::slice::from_ref(artifact));
        assert_eq!(preview["files"][0]["reason"], why, "{artifact}");
        let refused = Editor::Neovim.answer(&mut socket, APPLY, std::slice::from_ref(artifact));
        assert!(nothing_written(&refused)[0].ends_with(why), "{refused}");
    }
    assert_eq!(desk.files(), ["a.txt", "gone.txt"]);
    // Whoever says that it was made for what is there now is not believed.
    desk.put("a.txt", "edited since\n");
    let lied = but("a.txt", "baseHash", &crate::support::desk::sha("edited since\n"));
    let refused = Editor::Neovim.answer(&mut socket, APPLY, &[lied]);
    assert_eq!(nothing_written(&refused), ["a.txt: changed on disk since it was generated"]);
    desk.put("a.txt", "old\n");
    for editor in [Editor::Sublime, Editor::Emacs] {
        let applied = editor.result(&mut socket, APPLY, &artifacts);
        assert_eq!(errors(&applied), [""; 0], "{editor:?}");
    }
    assert_eq!(desk.files(), ["a.txt", "b.txt", "logo.png"]);
    let undone = desk.world.command(&["undo", "1"]).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(desk.files(), ["a.txt", "gone.txt"], "an undo writes what no run has made");
}

#[test]
fn a_worker_that_is_no_agent_touches_no_file_of_the_users_either() {
    let world = World::new();
    world.rule(ALL);
    world.configure(OPEN);
    let daemon = world.start();
    let desk = Desk { world, daemon };
    desk.put("there.txt", "old\n");
    let mut socket = socket(&desk);
    let command = "cat there.txt; echo new > there.txt; echo $PROVOST_METHOD > method.txt";
    let listed = socket.result("agents.list", &json!({}));
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert!(listed[0]["description"].as_str().unwrap().contains("a shell command, in a private copy"));
    let begun = socket.result("agents.invoke", &json!({ "agentType": "Shell", "task": command }));
    let artifacts = completed(&mut socket, &begun["executionId"]);
    assert_eq!((desk.text("there.txt"), desk.files()), ("old\n".into(), vec!["there.txt".to_owned()]));
    let applied = Editor::Emacs.result(&mut socket, APPLY, &artifacts);
    assert_eq!(applied["applied"], 2, "{applied}");
    assert_eq!((desk.text("there.txt"), desk.text("method.txt")), ("new\n".into(), "agents.invoke\n".into()));

    let task = socket.result("background.launch", &json!({ "agentType": "shell", "task": "rm there.txt" }));
    let execution = json!(task["taskId"].as_str().unwrap().replace("task_", "exec_"));
    let artifacts = completed(&mut socket, &execution);
    assert!(desk.at("there.txt").exists(), "nor in the background");
    assert_eq!((&artifacts[0]["type"], &artifacts[0]["path"]), (&json!("delete"), &json!("there.txt")));
    let unknown = socket.error("agents.invoke", &json!({ "agentType": "coder-ai", "task": "x" }));
    assert_eq!(unknown, "Unknown agent: coder-ai. Configured: shell", "no role without an agent");
}
