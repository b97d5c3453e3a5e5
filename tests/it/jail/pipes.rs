//! Pipes with names in a workspace: nobody of the host waits at one for a worker, and no worker reads or
//! writes one of the user's.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::repositories::{OPEN, THIN};
use crate::support::repositories::{committed, ended, findings};
use crate::support::{World, eventually};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_fifo())
}

#[test]
fn pipes_of_the_users_programs_are_covered() {
    let world = World::new();
    let repo = committed(&world);
    std::fs::create_dir_all(repo.join("part")).unwrap();
    // One that a program of the user's reads, one that it writes, and one beside the task's folder.
    let paths = ["part/orders", "part/secrets", "top"].map(|it| repo.join(it));
    paths.iter().for_each(|it| pipe(it));
    let open = |path: &Path| {
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
    };
    let mut ends = [open(&paths[0]), open(&paths[1]), open(&paths[2])];
    ends[1].write_all(b"secret").unwrap();
    ends[2].write_all(b"secret").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "timeout 2 sh -c 'echo order > orders'; timeout 2 cat secrets; timeout 2 cat ../top; mv orders o; mkfifo left; true";
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "part" }));
    reply.ack();
    let result = client.result_of(&task);
    assert!(!result.to_string().contains("secret\""), "{result}");
    let mut text = [0; 64];
    assert!(ends[0].read(&mut text).is_err(), "{result}");
    for end in &mut ends[1..] {
        assert_eq!(end.read(&mut text).unwrap(), 6, "{result}");
    }
    assert!(paths.iter().all(|it| is_pipe(it)));
    assert_eq!(findings(&result), ["new socket part/left"], "{result}");
}

#[test]
fn a_pipe_that_a_worker_makes_keeps_no_program_of_the_hosts_waiting() {
    let world = World::new();
    let repo = committed(&world);
    std::fs::write(repo.join("Makefile"), "all:\n").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let places = "AGENTS.md src/AGENTS.md .gitignore src/.gitignore .gitattributes src/.gitattributes .gitmodules CLAUDE.md \
                  .env Makefile package.json .editorconfig src/.envrc src/.vscode src/CODEOWNERS .github";
    let goal = format!(
        "for f in {places} .git/index.lock .git/x free src/.git; do rm -f $f; mkfifo $f; done; mkdir -p src/b; mkfifo src/b/.git; sleep 60"
    );
    let result = ended(&client, "shell", &goal);
    // A repository of any kind ends the run.
    assert_eq!(result["status"], "failed", "{result}");
    let goal = format!("for f in {places} .git/index.lock .git/x free; do rm -f $f; mkfifo $f; done; true");
    let result = ended(&client, "shell", &goal);
    assert_eq!(result["status"], "completed", "{result}");
    let found = findings(&result);
    for place in places.split(' ').filter(|it| !matches!(*it, ".editorconfig" | "src/CODEOWNERS")) {
        assert!(
            found.iter().any(|it| it.contains(" socket ") && it.ends_with(&format!(" {place}"))),
            "{place}: {found:?}"
        );
    }
    for place in places.split(' ') {
        assert!(
            !is_pipe(&repo.join(place)) || matches!(place, ".editorconfig" | "src/CODEOWNERS"),
            "{place} is still there"
        );
    }
    assert!(is_pipe(&repo.join("free")), "what nobody opens by itself stays");
    let done =
        Command::new("timeout").args(["20", "git", "status", "--short"]).current_dir(&repo).status().unwrap();
    assert!(done.success(), "{done}");
    assert!(findings(&ended(&client, "shell", "true")).is_empty());
}

#[test]
fn no_pipe_keeps_a_run_a_copy_or_an_apply_waiting() {
    let world = World::new();
    world.rule(&format!(
        "{}{}",
        crate::support::desk::FREELY,
        "[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"delegate\"]\n"
    ));
    let entry = |name: &str, copy: &str| {
        format!(
            "[workers.{name}]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\ncopy = {copy}\n"
        )
    };
    world.configure(&[entry("kept", "\"kept\""), entry("thrown", "true")].concat());
    let repo = committed(&world);
    for path in [
        "src/x.rs",
        "src/.gitignore",
        ".gitattributes",
        "CODEOWNERS",
        "src/CLAUDE.md",
        ".mcp.json",
        "build.py",
        "src/b.ts",
    ] {
        pipe(&repo.join(path));
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for worker in ["kept", "thrown", "shell"] {
        let began = Instant::now();
        // It becomes a file, and a file becomes a pipe, in the copy or in place.
        let result = ended(&client, worker, "rm -f src/a.rs; mkfifo src/a.rs src/new.rs; true");
        assert_eq!(result["status"], "completed", "{worker}: {result}");
        assert!(began.elapsed() < Duration::from_secs(20), "{worker}: {:?}", began.elapsed());
    }
    let body = json!({ "artifacts": [{ "type": "file", "path": "src/x.rs", "content": "x" }] });
    let began = Instant::now();
    let (_, answer) = crate::support::desk::ask(&world, "ed", "POST /apply-artifacts", &body);
    assert!(answer.to_string().contains("error") && began.elapsed() < Duration::from_secs(10), "{answer}");
    assert!(is_pipe(&repo.join("src/x.rs")));
    eventually("the end", || world.command(&["status"]).output().unwrap().status.success());
}

/// A path that the user's git, editor or agent opens is no pipe for longer than a moment, in either tier, and the
/// report names it.
#[test]
fn a_pipe_that_a_worker_makes_is_put_aside_while_it_runs() {
    for worker in ["shell", "thin"] {
        let world = World::new();
        world.configure(&format!("{OPEN}{THIN}"));
        let repo = committed(&world);
        std::fs::write(repo.join(".gitignore"), "*.o\n").unwrap();
        pipe(&repo.join("mine"));
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let mut places =
            vec![".gitignore", "src/.gitattributes", "AGENTS.md", "new/deep/Makefile", "sub/.envrc"];
        if worker == "thin" {
            places.push(".git/packed-refs");
        }
        let all = places.join(" ");
        let goal = format!(
            "mkdir -p new/deep sub; for f in {all} free; do rm -f $f; mkfifo $f; done; touch made; \
             until [ -e again ]; do sleep 0.1; done; mkfifo .gitignore CLAUDE.md; touch made-again; \
             until [ -e end ]; do sleep 0.1; done"
        );
        let (task, reply) = client.delegate(worker, &goal, json!({ "timeout": 60 }));
        reply.ack();
        // The worker waits for this test before it goes on, so that it runs at each of these looks.
        eventually("the pipes", || repo.join("made").exists());
        eventually("they are aside", || places.iter().all(|it| !is_pipe(&repo.join(it))));
        let done = Command::new("timeout")
            .args(["5", "git", "status", "--short"])
            .current_dir(&repo)
            .status()
            .unwrap();
        assert!(done.success(), "{worker}: {done}");
        assert!(is_pipe(&repo.join("free")) && is_pipe(&repo.join("mine")), "{worker}");
        std::fs::write(repo.join("again"), "").unwrap();
        eventually("the other pipes", || repo.join("made-again").exists());
        eventually("they are aside, too", || {
            [".gitignore", "CLAUDE.md"].iter().all(|it| !is_pipe(&repo.join(it)))
        });
        std::fs::write(repo.join("end"), "").unwrap();
        let result = client.result_of(&task);
        assert_eq!(result["status"], "completed", "{worker}: {result}");
        let found = findings(&result);
        for place in places.iter().chain(&["CLAUDE.md"]) {
            let named = found.iter().filter(|it| it.ends_with(&format!(" socket {place}"))).count();
            assert_eq!(named, 1, "{worker}: {place}: {found:?}");
        }
        let left =
            Command::new("find").args([".", "-name", "*set-aside*"]).current_dir(&repo).output().unwrap();
        assert_eq!(String::from_utf8(left.stdout).unwrap(), "", "{worker}");
        assert!(is_pipe(&repo.join("mine")), "{worker}");
    }
}

/// A program that already waits at a pipe goes on when the pipe is put aside.
#[test]
fn who_waits_at_a_workers_pipe_goes_on() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate(
        "shell",
        "touch ready; sleep 2; mkfifo AGENTS.md; sleep 20",
        json!({ "timeout": 60 }),
    );
    reply.ack();
    eventually("the worker", || repo.join("ready").exists());
    // Tries from before it is there, so that it waits at the pipe itself.
    let reads = "while ! [ -p AGENTS.md ]; do :; done; exec cat AGENTS.md";
    let read = Command::new("timeout").args(["10", "sh", "-c", reads]).current_dir(&repo).status().unwrap();
    assert_ne!(read.code(), Some(124), "it waits");
    client.say("CANCEL_TASK", json!({ "task_id": task, "reason": "done" }));
    client.result_of(&task);
}
