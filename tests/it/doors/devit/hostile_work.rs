//! Work that means harm, through the door: directories that are none, and workers that will not end.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;

use crate::support::{Daemon, World, eventually};

fn mkfifo(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Whether any process has `mark` among its arguments.
fn runs(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|it| {
        let line = std::fs::read(it.path().join("cmdline")).unwrap_or_default();
        it.file_name() != *std::process::id().to_string() && String::from_utf8_lossy(&line).contains(mark)
    })
}

fn resident_kib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_working_dir_that_is_no_directory_of_the_workspace_is_refused_at_once() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let repo = world.repo();
    mkfifo(&repo.join("fifo"));
    std::fs::write(repo.join("file"), "").unwrap();
    std::fs::create_dir(world.path("outside")).unwrap();
    symlink(world.path("outside"), repo.join("out")).unwrap();
    symlink("/dev/null", repo.join("null")).unwrap();
    symlink("loop", repo.join("loop")).unwrap();
    symlink("/proc/self/root", repo.join("magic")).unwrap();
    let long = "d/".repeat(3_000);
    let dirs = [
        "fifo",
        "file",
        "out",
        "null",
        "loop",
        "magic/etc",
        "/dev",
        "/dev/zero",
        "/etc",
        "../outside",
        "a/../../outside",
        "missing",
        "file/below",
        "..\\outside",
        "nul\0byte",
        "line\nbreak",
        long.as_str(),
        "/proc/self/cwd",
        "~",
        "$HOME",
    ];
    for dir in dirs {
        let (task, reply) = client.delegate("shell", "touch escaped", json!({ "working_dir": dir }));
        assert_eq!(reply.code(), "E_SANDBOX", "{dir:?}");
        assert_eq!(client.result_of(&task)["status"], "failed");
    }
    assert!(!world.path("outside/escaped").exists() && !repo.join("escaped").exists());
}

#[test]
fn a_directory_that_is_swapped_again_and_again_never_leads_out() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (repo, outside) = (world.repo(), world.path("outside"));
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(repo.join("real")).unwrap();
    let work = repo.join("work");
    std::fs::create_dir(&work).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let aside = repo.join("aside");
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = std::fs::rename(&work, &aside).and_then(|()| symlink(&outside, &work));
                std::thread::yield_now();
                let _ = std::fs::remove_file(&work).and_then(|()| std::fs::rename(&aside, &work));
                std::thread::yield_now();
            }
        });
        for _ in 0..15 {
            let (task, reply) = client.delegate("shell", "echo x > marker", json!({ "working_dir": "work" }));
            if reply.message()["msg_type"] == "ACK" {
                client.result_of(&task);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "a worker wrote outside of the workspace");
}

#[test]
fn a_worker_that_floods_its_output_costs_bounded_memory_and_delays_nobody() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    client.say("HEARTBEAT", json!({}));
    let before = resident_kib(&daemon);
    let (task, reply) = client.delegate(
        "shell",
        "yes flood | head -c 300000000; head -c 300000000 /dev/zero | tr '\\0' x >&2; echo end",
        json!({ "timeout": 40 }),
    );
    reply.ack();
    let other = world.client(&daemon, "orch:b");
    let mut answered = 0;
    while client.task(&task).is_some_and(|it| it["status"] != "completed" && it["status"] != "failed") {
        other.say("HEARTBEAT", json!({}));
        answered += 1;
    }
    assert!(answered > 2, "the others are answered while it floods, not after: {answered}");
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{}", result["artifacts"]["summary"]);
    assert_eq!(result["artifacts"]["truncated"], true);
    assert!(result["artifacts"]["original_size"].as_u64().unwrap() >= 300_000_000);
    let grown = resident_kib(&daemon) - before;
    assert!(grown < 64 << 10, "{grown} KiB more for 600 MB of output");
}

#[test]
fn a_worker_that_forks_hides_and_ignores_signals_is_gone_at_its_limit() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let mark = format!("7{}", std::process::id());
    let goal = format!(
        "trap '' TERM INT HUP; setsid sh -c \"trap '' TERM HUP; exec sleep {mark}\" & \
         (setsid sleep {mark} </dev/null >/dev/null 2>&1 &); \
         for i in 1 2 3 4 5 6 7 8; do nohup sleep {mark} & done; sleep {mark}"
    );
    let (task, reply) = client.delegate("shell", &goal, json!({ "timeout": 2 }));
    reply.ack();
    eventually("its processes", || runs(&format!("sleep\0{mark}")));
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed");
    assert_eq!(result["metadata"]["failure"]["reason"], "timeout", "{}", result["metadata"]);
    eventually("the end of its processes", || !runs(&format!("sleep\0{mark}")));

    // One that ends at once and leaves a daemon behind leaves nothing behind.
    let goal = format!("setsid sleep {mark} </dev/null >/dev/null 2>&1 & sleep 0.1; echo gone");
    let (task, reply) = client.delegate("shell", &goal, json!({ "timeout": 30 }));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
    eventually("the end of what it left", || !runs(&format!("sleep\0{mark}")));
}

#[test]
fn a_worker_reaches_neither_door_nor_key_nor_state() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let paths = [
        daemon.socket.clone(),
        world.own_socket(),
        world.config_dir().join("keys/shared.secret"),
        world.state_dir(),
    ];
    let tries: Vec<String> =
        paths.iter().map(|it| format!("ls -d '{}' && echo FOUND", it.display())).collect();
    // The one secret that it has was made for its own door and is good for nothing else.
    let goal = format!(
        "{}; env | grep -v ^DEVIT_SECRET= | cut -d= -f1 | grep -i secret && echo FOUND; printenv DEVIT_SECRET",
        tries.join("; ")
    );
    let (task, reply) = client.delegate("shell", &goal, json!({}));
    reply.ack();
    let details = client.result_of(&task)["artifacts"]["details"]["stdout"].as_str().unwrap().to_owned();
    let shared = std::fs::read_to_string(world.config_dir().join("keys/shared.secret")).unwrap();
    assert_eq!(details.lines().count(), 1, "{details}");
    assert_ne!(details.trim(), shared.trim());
    let process = format!("/proc/{}/environ", daemon.pid());
    assert!(std::fs::read(process).is_err(), "another process can read the daemon's memory");
}

#[test]
fn a_person_is_shown_the_whole_request_that_the_answer_is_bound_to() {
    let world = World::new();
    world.rule(
        "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"ask\"\ndecision = \"approve\"\nreason = \"looked at\"\n\
         when.action = [\"delegate\"]\napprove.by = [\"human\"]\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let more = json!({
        "context": { "instructions": "push to \u{1b}[2Jproduction\u{202e}" }, "model": "other", "surprise": "rm -rf",
    });
    client.delegate("poller:x", "tidy up", more).1.ack();
    let said = world.command(&["approval", "list"]).output().unwrap();
    let shown = String::from_utf8(said.stdout).unwrap();
    for words in ["tidy up", "production", "other", "rm -rf"] {
        assert!(shown.contains(words), "{words} is not shown:\n{shown}");
    }
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}
