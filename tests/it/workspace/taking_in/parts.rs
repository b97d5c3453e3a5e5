//! A part of a task's changes: what is shown of it is what is written, and the rest stays to be taken later.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{done, printed, ran, task, text, world};
use crate::support::desk::FREELY;
use crate::support::own_api::own;
use crate::support::rules::ALLOW;
use crate::support::terminal::at_the_terminal;

/// Everything may be delegated and written.
pub(super) fn freely() -> String {
    let delegate = ALLOW.split_once("[[rule]]").unwrap().1;
    format!("{FREELY}\n[[rule]]{delegate}")
}

/// A run that changes, adds, removes and makes all kinds of files.
const SCRIPT: &str = "echo new > a.txt; mkdir -p src/deep; echo one > src/x.rs; echo two > src/deep/y.rs; rm gone.txt; \
     printf '\\0\\377' > image.bin; printf 'no end' > end.txt; echo '#!/bin/sh' > run.sh; chmod +x run.sh; : > empty; \
     ln -s /etc/passwd link; printf 'x\\033[31my\\n' > esc.txt";

const FILES: [(&str, &str); 3] = [("a.txt", "old\n"), ("gone.txt", "bye\n"), ("stays.txt", "same\n")];

#[test]
fn a_diff_is_what_an_apply_writes_and_git_accepts_it() {
    let world = world(&FILES, "");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, SCRIPT);
    let patch = printed(&world, &["task", "diff", &id]);
    assert!(patch.contains("-old\n+new\n") && patch.contains("new file mode 100755"), "{patch}");
    assert!(patch.contains("x\u{1b}[31my"), "a program gets it to the letter: {patch:?}");
    // A copy of the workspace, to which git applies it.
    let there = world.path("there");
    let copied = Command::new("cp").args(["-r"]).arg(world.repo()).arg(&there).status().unwrap();
    assert!(copied.success());
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(&there).stdin(Stdio::piped());
    let mut git = git.env("GIT_CEILING_DIRECTORIES", world.path("")).spawn().unwrap();
    git.stdin.take().unwrap().write_all(patch.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{patch}");
    let said = ran(&world, &["task", "diff", &id], 0);
    assert!(said.contains("binary: image.bin (create)"), "{said}");
    assert!(said.contains("not kept: link: is a symbolic link"), "{said}");
    let shown = at_the_terminal(&world, &format!("task diff {id}"));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\u{1b}[32m+\u{1b}[m\u{1b}[32mnew\u{1b}[m"), "{shown:?}");
    assert!(!shown.contains("\u{1b}[31my") && shown.contains("\\u{1b}[31my"), "{shown:?}");

    let said = ran(&world, &["apply", &id], 0);
    assert!(said.contains("written: 9"), "{said}");
    for file in [
        "a.txt",
        "src/x.rs",
        "src/deep/y.rs",
        "gone.txt",
        "end.txt",
        "run.sh",
        "empty",
        "esc.txt",
        "stays.txt",
    ] {
        let there = std::fs::read_to_string(there.join(file)).unwrap_or_else(|_| "-".into());
        assert_eq!(text(&world, file), there, "{file}");
    }
    assert_eq!(std::fs::read(world.repo().join("image.bin")).unwrap(), [0, 255]);
    // Nothing is left to be written, and that is what the next difference says.
    let said = ran(&world, &["task", "diff", &id], 0);
    assert!(said.contains("an apply would write nothing") && said.contains("skip a.txt"), "{said}");
    assert_eq!(printed(&world, &["task", "diff", &id]), "");
}

#[test]
fn a_diff_says_what_would_not_be_written_and_why_and_counts_lines() {
    let world = world(&[("a.txt", "old\n"), ("b.txt", "1\n2\n3\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, "echo new > a.txt; printf '1\\n2\\nthree\\nfour\\n' > b.txt; echo x > src.txt");
    world.write("a.txt", "mine\n");
    let said = ran(&world, &["task", "diff", &id], 0);
    assert!(said.contains("skip a.txt: changed on disk since it was generated"), "{said}");
    let stat = printed(&world, &["task", "diff", &id, "--stat"]);
    assert!(
        stat.contains(
            " b.txt   |   3 ++-\n src.txt |   1 +\n 2 files changed, 3 insertions(+), 1 deletion(-)"
        ),
        "{stat}"
    );
    let json: Value = serde_json::from_str(&printed(&world, &["task", "diff", &id, "--json"])).unwrap();
    let row = |path: &str| json.as_array().unwrap().iter().find(|it| it["path"] == path).unwrap();
    assert_eq!((&row("a.txt")["action"], &row("b.txt")["added"]), (&"skip".into(), &2.into()), "{json}");
    assert_eq!((&row("b.txt")["removed"], &row("b.txt")["extent"]), (&1.into(), &"whole".into()), "{json}");
    let said = ran(&world, &["apply", &id], 1);
    assert!(said.contains("written: 2") && said.contains("left alone: a.txt: changed on disk"), "{said}");
    assert_eq!(text(&world, "a.txt"), "mine\n");
}

#[test]
fn a_part_is_taken_in_and_the_rest_stays_for_later() {
    let world = world(&FILES, "");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, SCRIPT);
    let listed = |words: &str| {
        let list = ran(&world, &["task", "list"], 0);
        assert!(list.contains(words), "{words}: {list}");
        let shown = ran(&world, &["task", "show", &id], 0);
        assert!(shown.contains(words), "{words}: {shown}");
    };
    listed("9 files to take in");
    // A folder is everything in it, typed from where one is.
    std::fs::create_dir_all(world.repo().join("src")).unwrap();
    let mut below = world.command(&["apply", &id, "deep", "x.rs"]);
    let taken = below.current_dir(world.repo().join("src")).output().unwrap();
    assert!(taken.status.success(), "{taken:?}");
    assert_eq!(
        (text(&world, "src/x.rs").as_str(), text(&world, "src/deep/y.rs").as_str()),
        ("one\n", "two\n")
    );
    assert_eq!(text(&world, "a.txt"), "old\n");
    listed("2 of 9 files taken in");
    assert_eq!(task(&world, &id)["changes"]["state"], "partly_taken_in");
    // A path twice, and once more: it is so already.
    let said = ran(&world, &["apply", &id, "a.txt", "./a.txt"], 0);
    assert!(said.contains("written: 1"), "{said}");
    let said = ran(&world, &["apply", &id, "a.txt"], 0);
    assert!(said.contains("written: 0, 1 unchanged, since the files have this content already"), "{said}");
    let only = printed(&world, &["task", "diff", &id, "gone.txt"]);
    assert!(
        only.starts_with("diff --git a/gone.txt b/gone.txt\ndeleted file") && !only.contains("run.sh"),
        "{only}"
    );
    let said = ran(&world, &["apply", &id], 0);
    assert!(said.contains("written: 6, 3 unchanged, since the files have this content already"), "{said}");
    listed("9 files taken in");
    assert_eq!(task(&world, &id)["changes"]["state"], "taken_in");
    // What is undone can be taken in again.
    ran(&world, &["undo", "1"], 0);
    listed("7 of 9 files taken in");
    ran(&world, &["undo", "4"], 0);
    listed("9 files taken in");
    assert_eq!(text(&world, "src/x.rs"), "one\n");
}

#[test]
fn a_path_that_is_not_among_the_changes_is_an_error_that_names_near_ones() {
    let world = world(&FILES, "");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, SCRIPT);
    let error = |args: &[&str], words: &[&str]| {
        let said = ran(&world, &[&["apply", &*id], args].concat(), 4);
        words.iter().for_each(|it| assert!(said.contains(it), "{args:?}: {said}"));
        assert_eq!(text(&world, "a.txt"), "old\n", "nothing is written where one of them is wrong");
    };
    error(&["a.txt", "x.rs"], &["x.rs is not among the changes of task", "src/x.rs"]);
    error(&["a.txt", "src/deep/z.rs"], &["src/deep/y.rs"]);
    error(&["a.txt", "stays.txt"], &["stays.txt is not among"]);
    error(&["a.txt", "link"], &["it was not kept", "symbolic link"]);
    error(&["a.txt", "src/x.rs/more"], &["is not among"]);
    let said = ran(&world, &["apply", &id, "../../etc/passwd"], 2);
    assert!(said.contains("names no file of the repository"), "{said}");
    // As a client of the API, that asks for what the command would not send.
    for path in [
        "../a.txt",
        "/etc/passwd",
        "",
        "a.txt\u{0}",
        "src/../../x",
        "C:\\a.txt",
        "\u{1b}[31mx",
        &"x/".repeat(3_000),
    ] {
        let body = serde_json::json!({ "task": id, "paths": ["a.txt", path] });
        for endpoint in ["/preview-task", "/apply-task"] {
            let (status, answer) = own(&world, ("POST", endpoint), &[], &body);
            assert_eq!(status, 400, "{path:?}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("not among the changes") && message.len() < 700, "{message}");
            assert!(!message.chars().any(char::is_control), "{message:?}");
        }
    }
    assert_eq!(text(&world, "a.txt"), "old\n");
    // The workspace itself is everything.
    ran(&world, &["apply", &id, "."], 0);
    assert_eq!(text(&world, "src/x.rs"), "one\n");
}

#[test]
fn a_part_of_a_change_of_several_files_is_withheld_from_the_diff_as_from_the_apply() {
    let world = world(&[("f", "file\n"), ("g/in", "x\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, "rm f; mkdir f; echo in > f/in");
    // The file that goes has changed, so what takes its place cannot be written either.
    world.write("f", "mine\n");
    let said = ran(&world, &["task", "diff", &id], 0);
    assert!(
        said.contains("skip f: changed on disk")
            && said.contains("skip f/in: f, which belongs to this change"),
        "{said}"
    );
    assert_eq!(printed(&world, &["task", "diff", &id]), "");
    ran(&world, &["apply", &id], 1);
    assert_eq!(text(&world, "f"), "mine\n");
}

#[test]
fn provost_alone_lists_changes_until_they_are_taken_in_or_discarded() {
    let world = world(&[("a.txt", "old\n"), ("b.txt", "old\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let listed = |id: &str| {
        let said = printed(&world, &[]);
        said.split("Changes to take in:")
            .nth(1)
            .is_some_and(|it| it.contains(id) && it.contains("take in: provost apply ID"))
    };
    let one = done(&world, "echo new > a.txt; echo new > b.txt");
    let other = done(&world, "echo newer > b.txt");
    assert!(listed(&one) && listed(&other));
    ran(&world, &["apply", &one, "a.txt"], 0);
    assert!(listed(&one), "a part is left");
    ran(&world, &["apply", &one], 0);
    assert!(!listed(&one) && listed(&other));
    ran(&world, &["discard", &other, "--yes"], 0);
    assert_eq!(printed(&world, &[]), "Nothing needs you.\n");
}
