//! As whom commands speak: in the shell of a host as its session, so that a model does not speak as its person.

use serde_json::Value;

use crate::support::World;
use crate::support::rules::ASK;

const SESSION: &str = "5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c001";

/// A command with these variables, by its exit code and what it prints.
fn said(world: &World, environment: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    let mut command = world.command(args);
    let done = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    (done.status.code().unwrap(), text)
}

/// Returns the asker of a task.
fn asker(world: &World, task: &str) -> String {
    let (code, text) = said(world, &[], &["task", "show", task, "--json"]);
    assert_eq!(code, 0, "{text}");
    let task: Value = serde_json::from_str(&text).unwrap();
    task["asked_by"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_that_is_delegated_in_a_hosts_shell_is_the_sessions_and_not_the_persons() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let delegate = |environment: &[(&str, &str)], more: &[&str]| {
        let args = [&["delegate", "true", "--worker", "shell"], more].concat();
        let (_, text) = said(&world, environment, &args);
        assert!(text.contains("approv"), "{text}");
    };
    delegate(&[("PROVOST_AGENT", "ada")], &["--task", "t1"]);
    assert_eq!(asker(&world, "t1"), "ada");
    delegate(&[("CLAUDE_CODE_SESSION_ID", SESSION)], &["--task", "t2"]);
    assert_eq!(asker(&world, "t2"), "claude-2b64a1f3c001");
    delegate(&[("PROVOST_AGENT", "ada")], &["--task", "t3", "--as", "bob"]);
    assert_eq!(asker(&world, "t3"), "bob");
    // Only who has asked cancels it, and the person.
    let (code, text) = said(&world, &[("PROVOST_AGENT", "eve")], &["task", "cancel", "t1"]);
    assert_eq!(code, 4, "{text}");
    let (code, text) = said(&world, &[("PROVOST_AGENT", "ada")], &["task", "cancel", "t1"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = said(&world, &[], &["task", "cancel", "t2"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn what_only_a_person_may_do_is_refused_in_a_hosts_shell() {
    let world = World::new();
    let _daemon = world.start();
    world.done("ada", &["lock", "@db:test"]);
    let (code, text) = said(&world, &[("CLAUDE_CODE_SESSION_ID", SESSION)], &["crew", "appoint", "ada"]);
    assert!(code == 4 && text.contains("has spoken as an agent in this terminal"), "{text}");
    let (code, text) = said(&world, &[("PROVOST_AGENT", "ada")], &["worker", "pause", "shell"]);
    assert!(code == 4 && text.contains("ada has spoken as an agent in this terminal"), "{text}");
    for command in [
        &["task", "report", "none", "--status", "completed"][..],
        &["task", "say", "none", "hello"],
        &["task", "diff", "none"],
    ] {
        let (code, text) = said(&world, &[("PROVOST_AGENT", "no\u{1}agent")], command);
        assert!(code == 2 && text.contains("PROVOST_AGENT"), "{command:?}: {text}");
    }
}
