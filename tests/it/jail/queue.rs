//! The queue of work with a real daemon and real runs: tasks after others, priorities, pools, labels, and attempts.

use std::fs;

use serde_json::{Value, json};

use crate::support::rules::ALLOW;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

/// One place, and a worker that is tried again.
const SETTINGS: &str = "[limits]\nworkers = 1\n[host]\nlabels = [\"linux\"]\n\
    [workers.flaky]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n\
    retries = 2\nretry_delay = \"1s\"\n\
    [workers.piped]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n\
    [pool.line]\nworkers = [\"piped\"]\nconcurrent = 1\nwaiting = 2\n";

fn world() -> World {
    let world = World::new();
    world.rule(ALLOW);
    world.configure(SETTINGS);
    world
}

fn delegate(world: &World, agent: &str, task: &str, goal: &str, more: &[&str]) -> Value {
    world.done(agent, &[&["delegate", goal, "--task", task], more].concat())
}

fn task(world: &World, id: &str) -> Value {
    world.done("ada", &["task", "show", id])
}

fn ends(world: &World, id: &str, state: &str) -> Value {
    until_some(&format!("task {id} is {state}"), || Some(task(world, id)).filter(|it| it["state"] == state))
}

/// Returns the lines that runs have written.
fn lines(world: &World, file: &str) -> Vec<String> {
    let text = fs::read_to_string(world.repo().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn tasks_begin_one_after_the_other_and_a_kill_between_them_loses_and_repeats_none() {
    let world = world();
    let mut daemon = world.start();
    delegate(&world, "ada", "first", "by hand", &["--worker", "bob"]);
    let said = delegate(&world, "ada", "second", "echo second >>order", &["--after", "first"]);
    assert_eq!(said["state"], "waiting");
    delegate(
        &world,
        "ada",
        "third",
        "echo third >>order; exit 3",
        &["--after", "second", "--after", "first"],
    );
    delegate(&world, "ada", "fourth", "echo fourth >>order", &["--after", "third"]);
    let listed = world.command(&["task", "list"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("waits for task first") && listed.contains("waits for task third"), "{listed}");
    assert_eq!(task(&world, "third")["waits_for_tasks"], json!(["second", "first"]));
    daemon.kill();
    let mut daemon = world.start();
    assert_eq!(task(&world, "second")["state"], "waiting");
    assert!(lines(&world, "order").is_empty());
    let report = ["task", "report", "first", "--status", "completed"];
    world.done("bob", &report);
    // Between the end of the first and the start of the second, or just behind it.
    daemon.kill();
    let _daemon = world.start();
    let second = until_some("the second has ended", || {
        let ended = |it: &Value| matches!(it["state"].as_str(), Some("completed" | "failed"));
        Some(task(&world, "second")).filter(ended)
    });
    if second["state"] == "completed" {
        ends(&world, "third", "failed");
        assert_eq!(lines(&world, "order"), ["second", "third"], "each once");
    } else {
        // It ran already when the daemon was killed: it is lost then, and is not begun a second time.
        assert_eq!(second["failure"], "lost");
        assert!(lines(&world, "order").len() <= 1);
    }
    let never = ends(&world, "fourth", "failed");
    assert_eq!(never["failure"]["not_begun"]["task"], "third");
    let shown = world.command(&["task", "show", "fourth"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("It did not begin: task third"), "{shown}");
    // What has ended waits for nothing.
    assert!(!shown.contains("waits for") && never["waits_for_tasks"].is_null(), "{shown}\n{never}");
    let listed = world.command(&["task", "list"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!listed.contains("waits for"), "{listed}");
}

#[test]
fn what_cannot_be_waited_for_is_refused_and_changes_nothing() {
    let world = world();
    let _daemon = world.start();
    for (more, said) in [
        (vec!["--after", "nowhere"], "nowhere"),
        (vec!["--task", "own", "--after", "own"], "own"),
        (vec!["--on", "gpu"], "no host has the label gpu"),
        (vec!["--pool", "none"], "no pool"),
        (vec!["--pool", "line", "--worker", "shell"], "not in the pool line"),
        (vec!["--priority", "high"], "high priority"),
    ] {
        let (code, value) = world.ask("ada", &[vec!["delegate", "true"], more.clone()].concat());
        assert!(code != 0 && value.to_string().contains(said), "{more:?}: {value}");
    }
    assert_eq!(world.done("ada", &["task", "list"])["active"], json!([]));
    let (code, value) = world.ask("ada", &["delegate", "true", "--on", "linux", "--wait"]);
    assert_eq!(code, 0, "{value}");
}

#[test]
fn a_free_place_goes_by_priority_and_then_by_askers_in_turn() {
    let world = world();
    let _daemon = world.start();
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    delegate(&world, "ada", "before", wait, &[]);
    ends(&world, "before", "running");
    let add = |agent: &str, name: &str, more: &[&str]| {
        delegate(&world, agent, name, &format!("echo {name} >>order"), more);
    };
    add("ada", "low", &["--priority", "low"]);
    for name in ["ada-1", "ada-2", "ada-3"] {
        add("ada", name, &[]);
    }
    let high = at_the_terminal(&world, "delegate 'echo high >>order' --task high --priority high");
    assert!(high.status.success(), "{high:?}");
    eventually("all are in line", || task(&world, "high")["place"] == 1);
    assert_eq!(task(&world, "high")["priority"], "high");
    assert_eq!(task(&world, "low")["place"], 5);
    fs::write(world.repo().join("go"), "").unwrap();
    ends(&world, "low", "completed");
    assert_eq!(lines(&world, "order"), ["high", "ada-1", "ada-2", "ada-3", "low"]);
}

#[test]
fn a_full_pool_queues_says_the_place_and_is_bounded() {
    let world = world();
    world.configure(&SETTINGS.replace("workers = 1\n", "workers = 4\n"));
    let _daemon = world.start();
    let wait = "while [ ! -e go ]; do sleep 0.05; done; echo $0 >>order";
    let first = delegate(&world, "ada", "p1", wait, &["--pool", "line"]);
    assert_eq!(first["state"], "queued");
    ends(&world, "p1", "running");
    assert_eq!(task(&world, "p1")["worker"], "piped", "the worker of the pool");
    delegate(&world, "ada", "p2", wait, &["--worker", "piped"]);
    delegate(&world, "ada", "p3", wait, &["--pool", "line"]);
    let again = delegate(&world, "ada", "p3", wait, &["--pool", "line"]);
    assert_eq!(again["state"], "queued", "a repeat is one task");
    let (code, value) = world.ask("ada", &["delegate", wait, "--pool", "line"]);
    assert!(code != 0 && value.to_string().contains("pool line"), "{value}");
    // Others are not held up by a pool that is full.
    let (code, value) = world.ask("ada", &["delegate", "true", "--wait"]);
    assert_eq!(code, 0, "{value}");
    assert_eq!((&task(&world, "p2")["place"], &task(&world, "p3")["place"]), (&json!(1), &json!(2)));
    assert_eq!(task(&world, "p2")["state"], "queued");
    fs::write(world.repo().join("go"), "").unwrap();
    ends(&world, "p3", "completed");
    assert_eq!(lines(&world, "order").len(), 3);
}

#[test]
fn a_failed_run_is_tried_again_with_a_note_of_each_attempt() {
    let world = world();
    let _daemon = world.start();
    let goal = "echo try >>tries; n=$(wc -l <tries); echo attempt $n; [ $n -ge 2 ]";
    let (code, done) = world.ask("ada", &["delegate", goal, "--worker", "flaky", "--task", "f1", "--wait"]);
    assert_eq!(code, 0, "{done}");
    assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(2)));
    let notes = done["notes"].as_array().unwrap();
    let of = |n: usize| (notes[n]["metadata"]["attempt"].clone(), notes[n]["details"]["stdout"].to_string());
    assert_eq!(of(0).0, 1);
    assert!(of(0).1.contains("attempt 1"), "{notes:?}");
    assert_eq!(of(1).0, 2);
    let journal = world.command(&["log", "--json"]).output().unwrap();
    let journal = String::from_utf8_lossy(&journal.stdout).into_owned();
    for kind in ["attempt_failed", "attempt_begins"] {
        let lines = journal.lines().filter(|it| it.contains(kind)).count();
        assert_eq!(lines, 1, "{kind}: {journal}");
    }
}

#[test]
fn a_task_between_two_attempts_is_cancelled_and_survives_a_kill() {
    let world = world();
    world.configure(&SETTINGS.replace("retry_delay = \"1s\"", "retry_delay = \"3s\""));
    let mut daemon = world.start();
    let goal = |name: &str| format!("echo try >>{name}; exit 1");
    for name in ["cut", "kept"] {
        delegate(&world, "ada", name, &goal(name), &["--worker", "flaky"]);
        ends(&world, name, "retrying");
    }
    assert!(task(&world, "cut")["again_at"].is_string());
    world.done("ada", &["task", "cancel", "cut"]);
    daemon.kill();
    let _daemon = world.start();
    let over = ends(&world, "kept", "failed");
    assert_eq!((over["attempt"].as_u64(), lines(&world, "kept").len()), (Some(3), 3));
    assert_eq!(lines(&world, "cut").len(), 1, "a cancel ends all further attempts");
}
