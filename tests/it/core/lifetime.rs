//! A daemon's life, from outside: where it is found, what ends it, what it writes down, what it takes over after a restart.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::waits::{stays, until_some};
use crate::support::{World, another_second, eventually};

const SECRET: &str = "an-argv-secret-of-some-length";

fn json_of(world: &World, args: &[&str]) -> Value {
    let output = world.command(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{args:?}: {err} in {output:?}"))
}

#[test]
fn a_daemon_without_clients_and_work_ends_by_itself() {
    let world = World::new();
    let at = world.path("devitd.sock");
    let flags = ["--socket", at.to_str().unwrap(), "--secret", SECRET, "--auto-shutdown-after", "1"];
    let mut daemon = world.start_with(&flags);
    let status = until_some("its end", || daemon.child.try_wait().unwrap());
    assert!(status.success(), "{status}: {}", world.log());
    assert!(!at.exists() && !daemon.socket.exists(), "its sockets are gone");
}

#[test]
fn an_unfinished_task_keeps_a_daemon_that_would_end_by_itself() {
    let world = World::new();
    world.configure("[daemon]\nauto_shutdown_after = \"1s\"\n");
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("worker:away", "keep me", json!({}));
    reply.ack();
    // Twice as long as it takes to be noticed.
    stays("a daemon with work", Duration::from_secs(6), || daemon.child.try_wait().unwrap().is_none());
    client.say("NOTIFY", json!({ "task_id": task, "status": "cancelled" })).ack();
    let pid = daemon.pid();
    eventually("the end", || {
        // Dead and not waited for: it has no memory any more.
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        !status.contains("VmRSS")
    });
}

#[test]
fn a_hangup_takes_the_configuration_over_anew_and_a_wrong_one_changes_nothing() {
    let world = World::new();
    let daemon = world.start();
    let pid = Pid::from_child(&daemon.child);
    let workers = || json_of(&world, &["status", "--json"])["workers"].to_string();
    assert!(!workers().contains("late"));
    world.configure("[workers.late]\ntype = \"cli\"\nbinary = \"/bin/echo\"\nparse_mode = \"text\"\n");
    kill_process(pid, Signal::HUP).unwrap();
    eventually("the new worker", || workers().contains("late"));
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("late", "hello", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["artifacts"]["summary"], "hello");

    world.configure("[daemon]\nexpected_worker_version = 7\n");
    kill_process(pid, Signal::HUP).unwrap();
    eventually("a complaint", || world.log().contains("reload refused"));
    assert!(workers().contains("late"), "what was in force stays");
    let refused = world.command(&["daemon", "reload"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("expected_worker_version"), "{said}");
}

#[test]
fn the_log_is_private_goes_where_it_is_told_and_keeps_no_more_files_than_configured() {
    let world = World::new();
    world.configure("[log]\nmax_files = 2\nlevel = \"debug\"\n");
    let daemon = world.start();
    let secret = world.secret();
    let folder = world.state_dir().join("log");
    daemon.stop();
    let text = |folder: &std::path::Path| {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        files.map(|it| std::fs::read_to_string(it.path()).unwrap()).collect::<String>()
    };
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let written = text(&folder);
    assert!(written.contains("door open") && written.contains("stopped"), "{written}");
    assert!(!written.contains(&secret));
    for day in 1..=4 {
        std::fs::write(folder.join(format!("provost.2020-01-0{day}.log")), "old").unwrap();
    }
    world.start().stop();
    assert!(std::fs::read_dir(&folder).unwrap().count() <= 2);

    let elsewhere = world.path("logs");
    world.configure(&format!("[log]\ndir = \"{}\"\nlevel = \"error\"\n", elsewhere.display()));
    world.start().stop();
    assert_eq!(text(&elsewhere), "", "nothing went wrong");
}

#[test]
fn a_stop_takes_running_workers_along_and_the_next_start_says_so() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "(setsid sh -c 'trap \"\" TERM; sleep 8151' &); touch began; sleep 8151";
    let (task, reply) = client.delegate("shell", goal, json!({ "timeout": 600 }));
    reply.ack();
    eventually("the start", || world.repo().join("began").exists());
    let down = world.command(&["down"]).output().unwrap();
    assert!(down.status.success(), "{down:?}");
    let uid = rustix::process::geteuid().as_raw().to_string();
    let left = Command::new("pgrep").args(["-u", &uid, "-f", "sleep 8151"]).output().unwrap();
    assert!(left.stdout.is_empty(), "`down` answers when nothing is left: {left:?}");
    drop(daemon);
    another_second();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    assert_eq!(
        (&result["status"], &result["metadata"]["failure"]["reason"]),
        (&json!("failed"), &json!("lost"))
    );
    assert_eq!(client.task(&task).unwrap()["status"], "failed");
}

#[test]
fn the_daemon_is_found_from_every_folder_and_worktree() {
    let world = World::new();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
        let status = git.current_dir(world.repo()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.unwrap().success(), "git {args:?}");
    };
    git(&["commit", "--allow-empty", "-m", "first"]);
    let tree = world.path("tree");
    git(&["worktree", "add", tree.to_str().unwrap()]);
    std::fs::create_dir_all(world.repo().join("deep/er")).unwrap();
    let daemon = world.start();
    for folder in [world.repo().join("deep/er"), tree] {
        let output = world.command(&["status", "--json"]).current_dir(&folder).output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(status["pid"], daemon.pid(), "{}", folder.display());
        let done = world.command(&["delegate", "exit 7", "--wait"]).current_dir(&folder).output().unwrap();
        assert_eq!(done.status.code(), Some(7), "{done:?}");
    }
}
