//! Artifacts compared with what is there: what would be written, where, and where never.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::desk::{Desk, file, file_for, gone};

fn one(desk: &Desk, artifact: Value) -> Value {
    desk.preview(&json!([artifact])).remove(0)
}

fn diff(desk: &Desk, artifact: Value) -> String {
    let found = one(desk, artifact);
    found["diff"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
}

fn reason(desk: &Desk, artifact: Value) -> String {
    let found = one(desk, artifact);
    assert_eq!(found["action"], "skip", "{found}");
    assert!(found.get("diff").is_none(), "{found}");
    found["reason"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
}

#[test]
fn a_preview_says_what_an_apply_would_do_and_changes_nothing() {
    let desk = Desk::new();
    desk.put("same.txt", "as it is\n");
    desk.put("src/a.ts", "one\ntwo\nthree\n");
    let before = desk.files();
    let found = desk.preview(&json!([
        file("same.txt", "as it is\n"),
        file("src/a.ts", "one\n2\nthree\n"),
        file("new/b.ts", "hello\n"),
        gone("src/a.ts.old"),
    ]));
    let actions: Vec<&str> = found.iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["skip", "modify", "create", "skip"]);
    assert!(found[0].get("diff").is_none() && found[0].get("reason").is_none(), "{:?}", found[0]);
    assert_eq!(
        found[1]["diff"],
        "diff --git a/src/a.ts b/src/a.ts\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    assert_eq!(
        found[2]["diff"],
        "diff --git a/new/b.ts b/new/b.ts\nnew file mode 100644\n--- /dev/null\n+++ b/new/b.ts\n@@ -0,0 +1 @@\n+hello\n"
    );
    assert_eq!(desk.files(), before);
    assert_eq!(desk.text("src/a.ts"), "one\ntwo\nthree\n");
}

#[test]
fn ends_of_lines_are_shown_as_they_are() {
    let desk = Desk::new();
    desk.put("a", "x\nlast");
    assert!(
        diff(&desk, file("a", "x\nlast\n"))
            .ends_with("@@ -1,2 +1,2 @@\n x\n-last\n\\ No newline at end of file\n+last\n")
    );
    desk.put("crlf", "one\r\ntwo\r\n");
    assert!(diff(&desk, file("crlf", "one\r\n2\r\n")).ends_with(" one\r\n-two\r\n+2\r\n"));
    assert!(
        diff(&desk, gone("a"))
            .contains("deleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n")
    );
    assert_eq!(one(&desk, gone("a"))["action"], "modify");
}

#[test]
fn git_takes_the_diffs_as_they_are() {
    let desk = Desk::new();
    let long: String = (0..400).map(|n| format!("line {n}\n")).collect();
    desk.put("with space/a.txt", &long);
    desk.put("gone.txt", "no end");
    desk.put("crlf.txt", "a\r\nb\r\n");
    desk.put("quote\"d.txt", "1\n");
    desk.put("turned\u{202e}txt.exe", "1\n");
    desk.put("nothing\u{200b}\"shown", "1\n");
    let changed =
        long.replace("line 3\n", "line three\n").replace("line 200\n", "").replace("line 399\n", "line 399");
    let artifacts = json!([
        file("with space/a.txt", &changed),
        gone("gone.txt"),
        file("crlf.txt", "a\r\nb"),
        file("new/deep/file.rs", "fn main() {}"),
        file("empty.txt", ""),
        file("quote\"d.txt", "2\n"),
        file("turned\u{202e}txt.exe", "2\n"),
        file("nothing\u{200b}\"shown", "2\n"),
    ]);
    let whole: String =
        desk.preview(&artifacts).iter().map(|it| it["diff"].as_str().unwrap().to_owned()).collect();
    assert!(!whole.contains(['\u{202e}', '\u{200b}']), "what hides in a name is made visible: {whole}");
    let patch = desk.world.path("all.patch");
    fs::write(&patch, &whole).unwrap();
    let mut git = Command::new("git");
    let applied = git.args(["apply", "--whitespace=nowarn"]).arg(&patch).current_dir(desk.world.repo());
    let output = applied.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}\n{whole}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(desk.text("with space/a.txt"), changed);
    assert_eq!(desk.text("gone.txt"), "-");
    assert_eq!(desk.text("new/deep/file.rs"), "fn main() {}");
    assert_eq!(desk.text("empty.txt"), "");
    let again = desk.preview(&artifacts);
    assert!(again.iter().all(|it| it["action"] == "skip"), "{again:?}");
}

#[test]
fn nothing_is_written_outside_or_into_what_runs_the_repository() {
    let desk = Desk::new();
    let root = desk.world.repo().canonicalize().unwrap();
    let inside = format!("{}/src/in.ts", root.display());
    assert_eq!(one(&desk, file(&inside, "x"))["path"], "src/in.ts");
    assert_eq!(one(&desk, file("src\\win\\a.ts", "x"))["path"], "src/win/a.ts");
    assert_eq!(one(&desk, file("a/../b/./c", "x"))["path"], "b/c");
    for path in [
        ".github/workflows/x.yml",
        ".gitignore",
        "a.git",
        "git",
        "auxiliary.rs",
        "com10",
        ".envy",
        "x/.gitattributes",
    ] {
        assert_eq!(one(&desk, file(path, "x"))["action"], "create", "{path}");
    }
    let outside = format!("{}x/y", root.display());
    let long = "a/".repeat(2_100);
    for (path, why) in [
        ("", "empty"),
        ("a\0b", "zero byte"),
        ("a\nb", "control"),
        (&*long, "longer than"),
        ("..", "leads out"),
        ("../x", "leads out"),
        ("a/../../x", "leads out"),
        ("..\\x", "leads out"),
        ("/etc/passwd", "leads out"),
        ("\\\\server\\share", "leads out"),
        ("C:\\x", "leads out"),
        (&*outside, "leads out"),
        (&*root.display().to_string(), "folder"),
        (".", "folder"),
        ("src/", "folder"),
        (".git/config", ".git"),
        (".GIT/hooks/pre-commit", ".git"),
        ("vendor/x/.gIt/config", ".git"),
        (".git", ".git"),
        (".git./config", ".git"),
        (".git /config", ".git"),
        ("git~1/config", ".git"),
        (".g\u{200c}it/config", ".git"),
        (".git::$INDEX_ALLOCATION/config", ".git"),
        ("a/.hg/x", ".hg"),
        (".svn/x", ".svn"),
        (".\u{17f}vn/x", ".svn"),
        (".provost/provost.toml", ".provost"),
        ("x/.Wit/daemon.sock", ".wit"),
        (".devit/x", ".devit"),
        (".git-paw/config.toml", ".git-paw"),
        (".agent-protocol/config.json", ".agent-protocol"),
        ("nul", "device"),
        ("src/AUX.rs", "device"),
        ("COM1", "device"),
        ("lpt9.txt", "device"),
        ("ab:c", "colon"),
        (".env", "a6s.deny"),
        ("deep/.ENV", "a6s.deny"),
        (".env.local", "a6s.deny"),
    ] {
        let found = reason(&desk, file(path, "x"));
        assert!(found.contains(why), "{path:?}: {found}");
    }
    assert_eq!(desk.files(), [""; 0]);
}

#[test]
fn links_folders_and_what_is_no_file_are_left_alone() {
    let desk = Desk::new();
    let outside = desk.world.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "theirs").unwrap();
    desk.put("src/real.ts", "x");
    symlink(&outside, desk.at("away")).unwrap();
    symlink(outside.join("secret"), desk.at("link")).unwrap();
    symlink("src", desk.at("inner")).unwrap();
    symlink("nowhere", desk.at("dangling")).unwrap();
    let fifo = Command::new("mkfifo").arg(desk.at("pipe")).status().unwrap();
    assert!(fifo.success());
    for (path, why) in [
        ("away/secret", "symbolic link"),
        ("away/new/file", "symbolic link"),
        ("link", "symbolic link"),
        ("inner/real.ts", "symbolic link"),
        ("dangling", "symbolic link"),
        ("src", "folder"),
        ("src/real.ts/below", "no folder"),
        ("pipe", "no regular file"),
    ] {
        for artifact in [file(path, "mine"), gone(path)] {
            let found = reason(&desk, artifact);
            assert!(found.contains(why), "{path}: {found}");
            assert!(!found.contains("theirs"), "{found}");
        }
    }
}

#[test]
fn what_is_no_file_of_the_workspace_says_so() {
    let desk = Desk::new();
    let kind = |kind: &str, path: &str| json!({ "type": kind, "path": path, "content": "x" });
    assert!(reason(&desk, kind("snippet", "untitled")).contains("snippet"));
    assert!(reason(&desk, kind("binary", "logo.png")).contains("no text"));
    assert!(reason(&desk, kind("log", ".provost/exec_1.md")).contains("log"));
    assert_eq!(one(&desk, kind("log", "notes/exec_1.md"))["action"], "create");
    assert_eq!(one(&desk, kind("test", "a_test.go"))["action"], "create");
    let twice = desk.preview(&json!([file("a", "1"), file("./a", "2")]));
    assert_eq!((&twice[0]["action"], &twice[1]["action"]), (&json!("create"), &json!("skip")));
    assert!(twice[1]["reason"].as_str().unwrap().contains("twice"));
    let (status, answer) =
        desk.ask("ed", "POST /preview-artifacts", &json!({ "artifacts": vec![file("a", "x"); 501] }));
    assert_eq!(status, 400, "{answer}");
}

#[test]
fn large_and_binary_contents_are_told_in_words() {
    let desk = Desk::new();
    desk.put("bytes", [0, 159, 146, 150]);
    assert!(diff(&desk, file("bytes", "text now\n")).ends_with("Binary files a/bytes and b/bytes differ\n"));
    let old: String = (0..200_000).map(|n| format!("old {n}\n")).collect();
    desk.put("large", &old);
    let found = diff(&desk, file("large", &old.replace("old", "new")));
    assert!(found.len() < 2_000, "{} bytes", found.len());
    assert!(found.ends_with("200000 lines are removed, 200000 added.\n"), "{found}");
    fs::File::create(desk.at("huge")).unwrap().set_len(9 << 20).unwrap();
    assert!(reason(&desk, file("huge", "x")).contains("8 MiB"));
}

#[test]
fn a_file_that_has_changed_since_is_not_shown_as_if_it_had_not() {
    let desk = Desk::new();
    desk.put("a.ts", "theirs\n");
    assert_eq!(one(&desk, file_for("theirs\n", "a.ts", "new\n"))["action"], "modify");
    let found = reason(&desk, file_for("before\n", "a.ts", "new\n"));
    assert_eq!(found, "changed on disk since it was generated");
    assert_eq!(reason(&desk, file_for("before\n", "gone.ts", "new\n")), found);
    assert!(one(&desk, file_for("before\n", "a.ts", "theirs\n")).get("reason").is_none(), "it is so already");
}
