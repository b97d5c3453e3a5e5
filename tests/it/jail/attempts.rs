//! Further attempts with a real daemon and real runs: at each door, within what rules and entries allow, and over kills of the daemon.

use std::fs;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::rules::{ALLOW, ASK, allow, policy};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

/// A worker whose entry says this of attempts.
fn worker(retries: &str) -> String {
    format!(
        "[workers.flaky]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\n\
         retry_delay = \"1s\"\n{retries}\n"
    )
}

fn world(rules: &str, retries: &str) -> World {
    let world = World::new();
    world.rule(rules);
    world.configure(&worker(retries));
    world
}

fn delegate(world: &World, task: &str, goal: &str, more: &[&str]) -> (i32, Value) {
    world.ask("ada", &[&["delegate", goal, "--worker", "flaky", "--task", task], more].concat())
}

fn is(world: &World, id: &str, state: &str) -> Value {
    until_some(&format!("task {id} is {state}"), || {
        Some(world.done("ada", &["task", "show", id])).filter(|it| it["state"] == state)
    })
}

/// How often a run has begun that writes a line into this file.
fn begun(world: &World, file: &str) -> usize {
    fs::read_to_string(world.repo().join(file)).unwrap_or_default().lines().count()
}

/// How many events of this kind a task has.
fn events(world: &World, task: &str, kind: &str) -> usize {
    let journal = world.command(&["log", "--json"]).output().unwrap();
    let journal = String::from_utf8_lossy(&journal.stdout).into_owned();
    let (task, kind) = (format!("\"task\":\"{task}\""), format!("\"{kind}\""));
    journal.lines().filter(|it| it.contains(&task) && it.contains(&kind)).count()
}

#[test]
fn a_run_that_is_over_its_time_is_tried_again_where_the_entry_says_so() {
    let world = world(ALLOW, "retries = 1\nretry_timeouts = true");
    let _daemon = world.start();
    let (code, done) = delegate(&world, "late", "echo try >>late; sleep 60", &["--timeout", "1s", "--wait"]);
    assert_eq!((code, &done["attempt"]), (124, &json!(2)), "{done}");
    assert_eq!(begun(&world, "late"), 2);
    let of = |kind: &str| events(&world, "late", kind);
    assert_eq!((of("task_started"), of("attempt_failed"), of("attempt_begins")), (2, 1, 1));
}

#[test]
fn each_door_takes_a_number_of_attempts_within_what_is_allowed() {
    let world = world(ALLOW, "retries = 2");
    let _daemon = world.start();
    let goal = |name: &str| format!("echo try >>{name}; exit 3");
    assert_eq!(delegate(&world, "none", &goal("none"), &["--retries", "0", "--wait"]).0, 3);
    assert_eq!(begun(&world, "none"), 1);
    let body = |task: &str, retries: u32| json!({ "task": task, "goal": goal(task), "worker": "flaky", "retries": retries });
    let asked = |task: &str, retries: u32| {
        own(&world, ("POST", "/delegate"), &[("x-provost-agent", "ada")], &body(task, retries))
    };
    assert_eq!(asked("once", 1).0, 200);
    let mut host = Host::new_era(&world, "ada");
    let by_mcp = json!({ "goal": goal("mcp"), "worker": "flaky", "task_id": "mcp", "retries": 1 });
    host.does("delegate", by_mcp);
    for name in ["once", "mcp"] {
        assert_eq!((&is(&world, name, "failed")["attempt"], begun(&world, name)), (&json!(2), 2), "{name}");
    }
    // More than the entry says, where no rule says anything.
    let (code, said) = delegate(&world, "more", &goal("more"), &["--retries", "3"]);
    assert!(code != 0 && said.to_string().contains("`retries` of worker flaky is 2"), "{said}");
    let by_mcp = json!({ "goal": goal("more"), "worker": "flaky", "task_id": "more-mcp", "retries": 3 });
    assert!(host.fails("delegate", by_mcp).contains("`retries` of worker flaky is 2"));
    // More than there ever are.
    let (code, said) = delegate(&world, "six", &goal("six"), &["--retries", "6"]);
    assert!(code != 0 && said.to_string().contains("6 is not in 0..=5"), "{said}");
    let (status, said) = asked("six", 6);
    assert!(status == 400 && said.to_string().contains("5 times at the most"), "{status}: {said}");
    assert_eq!((begun(&world, "more"), begun(&world, "six")), (0, 0));
    // A worker that starts by itself.
    let (code, said) = world.ask("ada", &["delegate", "by hand", "--worker", "bob", "--retries", "1"]);
    assert!(code != 0 && said.to_string().contains("starts by itself"), "{said}");
}

#[test]
fn a_rule_gives_attempts_to_some_and_takes_them_from_others() {
    let of = |agent: &str| format!("when.client = [\"{agent}\"]");
    let delegates = "when.action = [\"delegate\"]";
    let rules = policy([
        allow("some", &[delegates, &of("ada"), "limit.retries = 1"]),
        allow("others", &[delegates, &of("bob"), "limit.retries = 0"]),
    ]);
    let world = world(&rules, "retries = 2");
    let _daemon = world.start();
    for (agent, asked, attempts) in
        [("ada", None, 2), ("ada", Some("1"), 2), ("ada", Some("0"), 1), ("bob", None, 1)]
    {
        let name = format!("{agent}-{}", asked.unwrap_or("unsaid"));
        let goal = format!("echo try >>{name}; exit 3");
        let mut args = vec!["delegate", &goal, "--worker", "flaky", "--task", &name, "--wait"];
        args.extend(asked.iter().flat_map(|it| ["--retries", it]));
        assert_eq!(world.ask(agent, &args).0, 3);
        assert_eq!(begun(&world, &name), attempts, "{name}");
    }
    let (code, said) = world.ask("bob", &["delegate", "true", "--worker", "flaky", "--retries", "1"]);
    assert!(code != 0 && said.to_string().contains("`limit.retries` of rule test.others is 0"), "{said}");
}

#[test]
fn attempts_are_bounded_over_kills_of_the_daemon_and_none_runs_twice_at_once() {
    let world = world(ALLOW, "retries = 2\nretry_lost = true");
    let goal = "echo try >>tries; sleep 300.25";
    let mut daemon = world.start();
    assert_eq!(delegate(&world, "hard", goal, &["--retries", "1", "--timeout", "20m"]).0, 0);
    for attempt in 1..=2 {
        until_some("the attempt runs", || (begun(&world, "tries") == attempt).then_some(()));
        daemon.kill();
        daemon = world.start();
    }
    let over = is(&world, "hard", "failed");
    assert_eq!((over["attempt"].as_u64(), begun(&world, "tries")), (Some(2), 2), "{over}");
    let of = |kind: &str| events(&world, "hard", kind);
    assert_eq!((of("task_started"), of("attempt_failed"), of("task_finished")), (2, 1, 1));
    daemon.stop();
}

#[test]
fn an_approver_is_shown_the_number_and_what_is_denied_has_no_attempt() {
    let world = world(ASK, "retries = 2");
    let _daemon = world.start();
    assert_eq!(delegate(&world, "asked", "echo try >>asked; exit 3", &["--retries", "1"]).0, 0);
    let shown = world.command(&["approval", "list", "--json"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\"retries\":1") || shown.contains("\"retries\": 1"), "{shown}");
    assert!(at_the_terminal(&world, "approve 1").status.success());
    assert_eq!(is(&world, "asked", "failed")["attempt"], 2);
    assert_eq!(delegate(&world, "no", "echo try >>no", &["--retries", "2"]).0, 0);
    assert!(at_the_terminal(&world, "deny 2 --reason no").status.success());
    is(&world, "no", "failed");
    assert_eq!((begun(&world, "asked"), begun(&world, "no")), (2, 0));
}
