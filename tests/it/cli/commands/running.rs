//! Commands that talk to a daemon of their own, or that start one.
//!
//! Daemons need an ordinary user and a host that can confine; these tests fail elsewhere.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use super::*;

impl Desk {
    pub(super) fn with_daemon() -> Self {
        assert!(
            !rustix::process::geteuid().is_root(),
            "daemons are tried as an ordinary user: run scripts/test"
        );
        let desk = Self::new();
        desk.run(&["up"]).ends(DONE);
        desk
    }

    /// Something that stays in the foreground; its first lines on standard error up to one that contains `word`.
    fn foreground(&self, mut command: Command, word: &str) -> Child {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(word)), "it ended without saying {word}");
        std::thread::spawn(move || lines.for_each(drop));
        child
    }
}

#[test]
fn up_answers_when_the_doors_are_open_and_down_when_they_are_closed() {
    let desk = Desk::with_daemon();
    let status = desk.run(&["status", "--json"]).ends(DONE).json();
    assert_eq!(status["root"], desk.path("repo").to_str().unwrap());
    let again = desk.run(&["up"]).ends(DONE);
    assert!(again.err.contains("already running"), "{}", again.err);
    assert!(again.out.contains("own.sock") && again.out.contains("devit.sock"), "{}", again.out);
    for _ in 0..3 {
        // A start right after a stop finds no lock left behind.
        desk.run(&["down"]).ends(DONE);
        desk.run(&["status"]).ends(NOT_RUNNING);
        desk.run(&["up"]).ends(DONE);
    }
}

#[test]
fn a_daemon_that_cannot_start_says_why_to_the_one_who_waits() {
    let desk = Desk::new();
    desk.policy("[[rule]]\nid = 7\n");
    let said = desk.run(&["up"]).ends(FAILED);
    assert!(said.err.contains("did not start") && said.err.contains("policy.toml"), "{}", said.err);
    assert!(said.err.contains("try: provost doctor"), "{}", said.err);
    desk.run(&["status"]).ends(NOT_RUNNING);
}

#[test]
fn delegate_starts_a_daemon_and_ends_as_the_worker_does() {
    assert!(!rustix::process::geteuid().is_root(), "daemons are tried as an ordinary user: run scripts/test");
    let desk = Desk::new();
    let worker = "printf 'a\\033[31mb\\n'; echo aside >&2; pwd; exit 7";
    let said = desk.run(&["delegate", worker, "--dir", "inner", "--wait"]).ends(7);
    assert!(said.out.starts_with("ab\n"), "escapes are taken out: {:?}", said.out);
    assert!(said.out.ends_with("repo/inner\n"), "{:?}", said.out);
    assert!(said.err.contains("aside") && said.err.contains("exit code 7"), "{:?}", said.err);
    desk.run(&["delegate", "true", "--wait"]).ends(DONE);
    let raw = desk.run(&["delegate", worker, "--wait", "--raw"]).ends(7);
    assert!(raw.out.starts_with("a\u{1b}[31mb\n"), "{:?}", raw.out);
    let task = desk.run(&["delegate", "exit 3", "--wait", "--json"]).ends(3).json();
    assert_eq!((task["state"].as_str(), task["exit_code"].as_i64()), (Some("failed"), Some(3)));

    let tasks = desk.run(&["task", "list"]).ends(DONE).out;
    let goals: Vec<&str> = tasks.lines().skip(1).filter_map(|line| line.split("  ").last()).collect();
    assert_eq!(goals.last().map(|goal| goal.trim()), Some("exit 3"), "the newest is last:\n{tasks}");
    assert!(desk.run(&[]).ends(DONE).out.contains("Failed last"));
}

#[test]
fn commands_that_start_a_daemon_at_the_same_moment_share_one() {
    assert!(!rustix::process::geteuid().is_root(), "daemons are tried as an ordinary user: run scripts/test");
    let desk = Desk::new();
    let start =
        |number: i32| desk.command(&["delegate", &format!("exit {number}"), "--wait"]).spawn().unwrap();
    let all: Vec<(i32, Child)> = (3..9).map(|number| (number, start(number))).collect();
    for (number, mut child) in all {
        assert_eq!(child.wait().unwrap().code(), Some(number));
    }
}

#[test]
fn a_misspelt_worker_is_pointed_out() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["delegate", "true", "--worker", "shel"]).ends(DONE);
    assert!(said.err.contains("no worker shel is configured") && said.err.contains("shell"), "{}", said.err);
    let said = desk.run(&["delegate", "true"]).ends(DONE);
    assert!(!said.err.contains("no worker"), "{}", said.err);
}

#[test]
fn the_beginning_of_an_id_must_mean_one_task() {
    let desk = Desk::with_daemon();
    for id in ["task-one", "task-two"] {
        desk.run(&["delegate", "true", "--task", id, "--wait"]).ends(DONE);
    }
    let said = desk.run(&["task", "show", "task-"]).ends(USAGE);
    assert!(said.err.contains("task-one") && said.err.contains("task-two"), "{}", said.err);
    assert!(desk.run(&["task", "show", "task-o"]).ends(DONE).out.contains("task-one"));
}

#[test]
fn a_task_is_cancelled_by_its_id() {
    let desk = Desk::with_daemon();
    let id = desk.run(&["delegate", "sleep 60"]).ends(DONE).out.trim().to_owned();
    desk.run(&["task", "cancel", &id[..3]]).ends(FAILED);
    // The beginning of an id stands for it.
    desk.run(&["task", "cancel", &id[..8], "--reason", "enough"]).ends(DONE);
    let said = desk.run(&["task", "show", &id, "--wait"]).ends(FAILED);
    assert!(said.err.contains("cancelled"), "{}", said.err);
    assert!(desk.run(&["task", "show", &id]).ends(DONE).out.contains("enough"));
    let said = desk.run(&["task", "cancel", "never-was"]).ends(FAILED);
    assert!(said.err.contains("no such task") && said.err.contains("try:"), "{}", said.err);
}

#[test]
fn a_person_at_a_terminal_answers_and_no_one_else() {
    let desk = Desk::new();
    desk.policy(ASK);
    desk.run(&["up"]).ends(DONE);
    let mut waiting =
        desk.command(&["delegate", "printf '\\033]0;x\\007approve me'; exit 5", "--wait", "--as", "agent:b"]);
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    let id = line
        .strip_prefix("waiting for approval ")
        .and_then(|rest| rest.split(':').next())
        .unwrap()
        .to_owned();

    let list = desk.run(&["approval", "list"]).ends(DONE).out;
    let (fact, words) = (list.find("a person looks first").unwrap(), list.find("| printf").unwrap());
    assert!(fact < words, "facts come first:\n{list}");
    let needs = desk.run(&[]).ends(DONE).out;
    assert!(needs.starts_with("Waiting for your word (1):"), "{needs}");

    let refused = desk.run(&["approve", &id]).ends(REFUSED);
    assert!(refused.err.contains("error:"), "{}", refused.err);
    let granted = desk.type_in(&format!("approve {id}")).ends(DONE);
    assert!(granted.out.contains("rule") && granted.out.contains("approved"), "{}", granted.out);
    std::thread::spawn(move || said.for_each(drop));
    assert_eq!(waiting.wait().unwrap().code(), Some(5));

    desk.run(&["delegate", "true", "--as", "agent:b"]).ends(DONE);
    let next = desk.run(&["approval", "list", "--json"]).json()[0]["id"].to_string();
    desk.type_in(&format!("deny {next} --reason 'not today'")).ends(DONE);
    assert!(desk.run(&["approval", "list"]).ends(DONE).err.contains("nothing waits"));
    let said = desk.type_in(&format!("approve {next}")).ends(FAILED);
    assert!(said.out.contains("was answered"), "{}", said.out);
}

#[test]
fn the_log_and_the_journal_are_there_with_and_without_the_daemon() {
    let desk = Desk::with_daemon();
    desk.run(&["key", "add", "worker:gpu"]).ends(DONE);
    let log = desk.run(&["log", "--json"]).ends(DONE).out;
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        log.contains("key.added") && log.contains("worker:gpu"),
        "a running daemon puts keys on record: {log}"
    );
    assert_eq!(events[0]["seq"], 1);
    let anchor = desk.run(&["journal", "head"]).ends(DONE).out.trim().to_owned();
    desk.run(&["down"]).ends(DONE);
    let later = desk.run(&["log", "--json"]).ends(DONE).out;
    assert!(later.starts_with(&log), "the same words from the files:\n{log}\n{later}");
    desk.run(&["journal", "verify", "--anchor", &anchor]).ends(DONE);
    assert_eq!(desk.run(&["journal", "export"]).ends(DONE).out.lines().count(), later.lines().count());
    let wrong = anchor.replace("anchor:1:", "anchor:1:9");
    let said = desk.run(&["journal", "verify", "--anchor", &wrong]).ends(FAILED);
    assert!(said.err.contains("the end of the journal is missing"), "{}", said.err);
}

#[test]
fn what_happens_is_followed_and_a_closed_pipe_ends_it_quietly() {
    let desk = Desk::with_daemon();
    let mut follow = desk.command(&["log", "--follow", "--json"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let goal = "exit 9";
    // The doors over TCP open before.
    assert!(lines.by_ref().take(3).any(|line| line.unwrap().contains("daemon.started")));
    desk.run(&["delegate", goal, "--wait"]).ends(9);
    assert!(lines.any(|line| line.unwrap().contains("task_finished")));
    drop(lines);
    desk.run(&["delegate", goal, "--wait"]).ends(9);
    assert_eq!(follow.wait().unwrap().code(), Some(141));
    let mut said = String::new();
    follow.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "", "no panic and no complaint");
}

#[test]
fn ctrl_c_leaves_the_task_running_and_says_how_to_end_it() {
    let desk = Desk::with_daemon();
    let mut waiting = desk.command(&["delegate", "echo begun; sleep 60", "--wait"]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    let pid = rustix::process::Pid::from_child(&waiting);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    waiting.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let id = said.split("provost task cancel ").nth(1).unwrap().trim();
    assert_eq!(desk.run(&["task", "show", id, "--json"]).ends(DONE).json()["state"], "running");
}

#[test]
fn the_form_of_devit_stays_and_a_second_one_hands_its_address_over() {
    assert!(!rustix::process::geteuid().is_root(), "daemons are tried as an ordinary user: run scripts/test");
    let desk = Desk::new();
    let form = |socket: &Path| {
        desk.command(&["--socket", socket.to_str().unwrap(), "--secret", "a secret of enough length"])
    };
    let (first, second) = (desk.path("run/first.sock"), desk.path("run/second.sock"));
    let mut daemon = desk.foreground(form(&first), first.to_str().unwrap());
    let mut guest = desk.foreground(form(&second), "listens at");
    let doors = desk.run(&["status", "--json"]).ends(DONE).json()["doors"].to_string();
    assert!(doors.contains("first.sock") && doors.contains("second.sock"), "{doors}");
    assert!(guest.try_wait().unwrap().is_none() && daemon.try_wait().unwrap().is_none());
    desk.run(&["down"]).ends(DONE);
    assert_eq!(daemon.wait().unwrap().code(), Some(DONE));
    assert_eq!(guest.wait().unwrap().code(), Some(DONE));
}

#[test]
fn a_daemon_of_another_version_than_expected_is_refused() {
    let desk = Desk::with_daemon();
    let with = |version: &str| -> Said {
        desk.command(&["task", "list"]).env("DEVIT_EXPECTED_DAEMON_VERSION", version).output().unwrap().into()
    };
    with("devitd/0.1.0").ends(DONE);
    let said = with("devitd/9.9.9").ends(REFUSED);
    assert!(said.err.contains("another version") && said.err.contains("try:"), "{}", said.err);
}
