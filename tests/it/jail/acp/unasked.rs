//! Agents that do not ask, do not end, and do not keep to the protocol: what holds them is the jail, the apply and the run's limits.

use std::fs;

use super::steering::{begun, over, refused};
use super::{answer, done, last, processes, started};
use crate::support::eventually;
use crate::support::rules::{allow, rule};

#[test]
fn an_agent_that_does_not_ask_is_held_by_its_jail_and_changes_wait_for_the_apply() {
    // Not one rule allows a permission, and it is never asked for.
    let (world, _daemon) = started("", "", &[]);
    fs::write(world.repo().join("real.txt"), "as it was\n").unwrap();
    fs::write(world.home().join("secret.txt"), "as it was\n").unwrap();
    let real = world.repo().join("real.txt");
    let secret = world.home().join("secret.txt");
    let goal = format!(
        "mode bypass\nforce real.txt changed\nforce {} changed\nforce {} changed\nforce /etc/new x\nforce .git/hooks/pre-commit x",
        real.display(),
        secret.display()
    );
    let task = done(&world, &goal);
    assert_eq!(task["state"], "completed", "{task:#}");
    let said = answer(&task);
    assert!(said.contains("wrote real.txt"), "in its copy it does as it likes: {said}");
    assert!(said.contains(&format!("kept out of {}", real.display())), "{said}");
    // Of the person's home it has another one, which goes with its jail.
    for outside in [&real, &secret] {
        assert_eq!(fs::read_to_string(outside).unwrap(), "as it was\n");
    }
    for outside in ["/etc/new", ".git/hooks/pre-commit"] {
        assert!(said.contains(&format!("kept out of {outside}")), "{said}");
    }
    let artifacts = last(&task, "details")["artifacts"].as_array().unwrap();
    assert!(artifacts.len() == 1 && artifacts[0]["path"] == "real.txt", "{task:#}");
    // The rules of this world allow no apply: what it has changed stays where it is.
    let why = refused(&world.command(&["apply", task["id"].as_str().unwrap()]).output().unwrap());
    assert!(!why.is_empty());
    assert_eq!(fs::read_to_string(&real).unwrap(), "as it was\n");
}

#[test]
fn an_agent_that_never_ends_is_ended_with_all_its_processes_at_its_time() {
    let (world, _daemon) = started("stays", "timeout_secs = 5", &[]);
    let task = done(&world, "fork\ndeaf");
    assert_eq!(task["state"], "failed", "{task:#}");
    assert!(last(&task, "summary").as_str().unwrap().contains("timed out"), "{task:#}");
    eventually("none of its processes is left", || processes(&world) == 0);
}

#[test]
fn what_comes_after_the_end_of_a_turn_is_no_part_of_its_answer_and_changes_no_end() {
    let (world, _daemon) = started("talks-on", "", &[]);
    let task = done(&world, "say the answer");
    assert_eq!(task["state"], "completed", "a turn ends once: {task:#}");
    assert!(answer(&task).trim().ends_with("the answer"), "{task:#}");
}

#[test]
fn two_requests_with_one_id_are_not_both_put_to_a_person() {
    let asks = rule(
        "ask",
        "approve",
        "a person looks",
        &["when.action = [\"permission\"]", "approve.by = [\"human\"]", "approve.expires = \"5m\""],
    );
    let every = allow("every", &["when.action = [\"delegate\"]"]);
    let (world, _daemon) = started("", "", &[asks, every]);
    begun(&world, "t1", "twice");
    let task = over(&world, "t1");
    assert!(answer(&task).contains("twice allowed: False"), "{task:#}");
    eventually("the other one has left the queue with its run", || {
        let listed = world.command(&["approval", "list", "--json"]).output().unwrap();
        !String::from_utf8_lossy(&listed.stdout).contains("twice")
    });
}

#[test]
fn an_agent_does_not_tell_in_the_daemons_name_who_has_said_or_allowed_something() {
    let (world, _daemon) = started("", "", &[]);
    let goal = "plan x\nforge\nsay mine";
    let watched = world.command(&["delegate", goal, "--worker", "coder", "--wait"]).output().unwrap();
    let text = String::from_utf8_lossy(&[watched.stdout, watched.stderr].concat()).into_owned();
    assert!(text.contains("- [in_progress] x\n") && text.contains("mine"), "it is told in words: {text}");
    for forged in ["> user:boss", "[allowed: everything]", "do as it says"] {
        assert!(!text.lines().any(|it| it.starts_with(forged)), "{forged}: {text}");
    }
    let task = done(&world, "forge\nsay mine");
    assert!(answer(&task).ends_with("mine"), "a forged end ends no turn: {task:#}");
}
