//! Sessions of agents: on record, gone on with after the end and after a death, and not where it cannot be or may not.

use std::fs;

use serde_json::{Value, json};

use super::steering::{at_work, begun, over, refused, said, shown};
use super::{answer, last, started};
use crate::support::World;

/// Goes on with the session of a finished task.
fn continued(world: &World, earlier: &str, task: &str, goal: &str) -> Value {
    let words = ["delegate", "--continue", earlier, goal, "--task", task, "--wait", "--json"];
    let output = world.command(&words).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}\n{}", world.log()))
}

fn not_continued(world: &World, earlier: &str, more: &[&str]) -> String {
    let words = [&["delegate", "--continue", earlier, "recall", "--json"], more].concat();
    refused(&world.command(&words).output().unwrap())
}

#[test]
fn a_follow_up_finds_the_session_the_home_and_the_folder_of_the_earlier_task() {
    for (how, method) in [("resumes", "session/resume"), ("loads", "session/load")] {
        let (world, _daemon) = started(how, "", &[]);
        begun(&world, "t1", "remember blue\nsay ok");
        let first = over(&world, "t1");
        assert_eq!(first["state"], "completed", "{first:#}");
        assert_eq!(
            (&first["session"]["id"], &first["session"]["goes_on"]),
            (&json!("session-1"), &json!(true))
        );
        let second = continued(&world, "t1", "t2", "remember green\nrecall");
        assert_eq!(second["state"], "completed", "{second:#}");
        let said = answer(&second);
        assert!(said.contains(&format!("[{method}, same folder: True]")), "{said}");
        assert!(said.contains("remembers blue green") && !said.contains("REPLAYED"), "{said}");
        // And once more, at once. Each run has closed the session before its end, as the agent can.
        let third = continued(&world, "t2", "t3", "recall\nwas-closed");
        assert!(answer(&third).contains("remembers blue green"), "{third:#}");
        assert!(answer(&third).contains("closed before: session-1 session-1"), "{third:#}");
    }
}

#[test]
fn what_cannot_be_gone_on_with_says_why_and_what_to_do() {
    let (world, _daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "seize a.txt x");
    over(&world, "t1");
    let why = not_continued(&world, "t1", &[]);
    assert!(why.contains("provost apply t1, or provost discard t1"), "{why}");
    let discarded = world.command(&["discard", "t1", "--yes"]).output().unwrap();
    assert!(discarded.status.success(), "{discarded:?}");
    let why = not_continued(&world, "t1", &["--worker", "shell"]);
    assert!(why.contains("task t1 was done by coder, and shell has no part in its session"), "{why}");
    let why = not_continued(&world, "none", &[]);
    assert!(why.contains("no such task"), "{why}");
    begun(&world, "t2", "until-cancel");
    at_work(&world, "t2");
    let why = not_continued(&world, "t2", &[]);
    assert!(why.contains("say it to its agent: provost say t2"), "{why}");
    said(&world, "t2", "say end", &["--now"]);
    over(&world, "t2");
    let shell = world.command(&["delegate", "true", "--task", "t3", "--wait"]).output().unwrap();
    assert!(shell.status.success(), "{shell:?}");
    let why = not_continued(&world, "t3", &[]);
    assert!(why.contains("task t3 has no session to go on with"), "{why}");
    let why = not_continued(&world, "t1", &["--as", "stranger"]);
    assert!(why.contains("task t1 belongs to"), "{why}");
}

#[test]
fn an_agent_that_cannot_go_on_and_a_home_that_is_gone_are_told() {
    let (world, _daemon) = started("", "", &[]);
    begun(&world, "t1", "say ok");
    over(&world, "t1");
    let why = not_continued(&world, "t1", &[]);
    assert!(why.contains("it offers neither session/resume nor session/load"), "{why}");
    let (world, _daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "say ok");
    over(&world, "t1");
    fs::remove_dir_all(world.state_dir().with_extension("sessions")).unwrap();
    let task = continued(&world, "t1", "t2", "recall");
    assert_eq!(task["state"], "failed");
    let said = last(&task, "summary").as_str().unwrap();
    assert!(
        said.contains("the home of its session, which began with task t1, is not kept any more"),
        "{said}"
    );
}

#[test]
fn a_session_that_its_agent_does_not_list_any_more_is_said_to_be_gone() {
    let (world, _daemon) = started("forgets", "", &[]);
    begun(&world, "t1", "say ok");
    over(&world, "t1");
    let offered = shown(&world, "t1")["session"]["offers"].to_string();
    assert!(offered.contains("list"), "{offered}");
    let task = continued(&world, "t1", "t2", "recall");
    assert_eq!(task["state"], "failed");
    let said = last(&task, "summary").as_str().unwrap();
    assert!(said.contains("it does not have the session any more, by its own list"), "{said}");
}

/// A home that its agent has shut is its agent's to use again.
#[test]
#[cfg(unix)]
fn a_home_that_its_agent_has_shut_is_opened_for_the_next_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let (world, _daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "remember blue");
    over(&world, "t1");
    let sessions = fs::read_dir(world.state_dir().with_extension("sessions")).unwrap();
    for session in sessions {
        let home = session.unwrap().path().join("home");
        fs::set_permissions(home, fs::Permissions::from_mode(0o0)).unwrap();
    }
    let task = continued(&world, "t1", "t2", "recall");
    assert!(answer(&task).contains("remembers blue"), "{task:#}");
}

/// A model that has left its name out goes by the user's name, as a person's delegation does.
#[test]
fn a_model_without_a_name_goes_on_with_no_session() {
    let (world, _daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "say ok");
    over(&world, "t1");
    // Agents speak here from now on.
    let spoken = world.command(&["delegate", "true", "--as", "orch", "--wait"]).output().unwrap();
    assert!(spoken.status.success(), "{spoken:?}");
    let why = not_continued(&world, "t1", &[]);
    assert!(why.contains("task t1 belongs to"), "{why}");
}

#[test]
fn an_agent_that_dies_in_its_turn_goes_on_once() {
    let (world, _daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "seize early.txt x\ndie-once\nsay done");
    let task = over(&world, "t1");
    assert_eq!(task["state"], "completed", "{task:#}\n{}", world.log());
    assert!(answer(&task).contains("went on done"), "{task:#}");
    assert_eq!(task["session"]["resumed"], 1);
    assert!(last(&task, "details")["artifacts"].to_string().contains("early.txt"), "{task:#}");
    begun(&world, "t2", "die 3");
    let task = over(&world, "t2");
    assert_eq!((&task["state"], &task["session"]["resumed"]), (&json!("failed"), &json!(1)), "{task:#}");
    assert!(last(&task, "summary").as_str().unwrap().contains("it ended with exit code 3"), "{task:#}");
}

#[test]
fn after_the_daemon_was_killed_the_run_goes_on_in_its_copy_and_hears_what_was_said() {
    let (world, mut daemon) = started("resumes", "", &[]);
    begun(&world, "t1", "seize early.txt x\nuntil-cancel");
    at_work(&world, "t1");
    said(&world, "t1", "say kept", &[]);
    daemon.kill();
    let _daemon = world.start();
    crate::support::eventually("it goes on", || shown(&world, "t1")["session"]["resumed"] == 1);
    said(&world, "t1", "say after", &["--now"]);
    let task = over(&world, "t1");
    assert_eq!(task["state"], "completed", "{task:#}\n{}", world.log());
    assert!(answer(&task).contains("keptafter"), "{task:#}");
    assert!(task["said"].as_array().unwrap().iter().all(|it| it["state"] == "delivered"), "{task:#}");
    let details = last(&task, "details");
    assert!(details["artifacts"].to_string().contains("early.txt"), "{task:#}");
}

#[test]
fn the_status_names_the_kind_of_a_worker_as_its_entry_does() {
    let (world, _daemon) = started("", "", &[]);
    let output = world.command(&["status"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().find(|it| it.contains("worker coder")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("acp") && !line.contains("cli"), "{line}");
}
