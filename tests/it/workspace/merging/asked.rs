//! A check that waits for a person's approval: the entries behind it go on.

use serde_json::Value;

use super::{branch, entry, person, repository, tip};
use crate::support::repositories::well;
use crate::support::rules::ASK;
use crate::support::{World, eventually};

/// The approval for which an entry waits.
fn approval(world: &World, name: &str) -> Option<String> {
    let what = entry(world, name)["what"].as_str()?.to_owned();
    let number =
        what.split("provost approve ").nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.to_owned();
    Some(number)
}

fn waiting() -> World {
    let world = repository(&[("a.txt", "one\n")], "[merge]\nchecks = [\"true\"]\n");
    world.rule(ASK);
    for name in ["slow", "fast", "last"] {
        branch(&world, name, "main", &[(name, Some("x\n"))], name);
    }
    world
}

#[test]
fn one_check_that_waits_for_an_approval_holds_up_no_entry_behind_it() {
    let world = waiting();
    let _daemon = world.start();
    person(&world, "merge queue add slow", 0);
    person(&world, "merge queue add last", 0);
    person(&world, "merge queue add fast --no-checks", 0);
    person(&world, "merge queue run", 0);
    eventually("the one behind it", || entry(&world, "fast")["state"] == "merged");
    let first = approval(&world, "slow").unwrap();
    // The same check of another branch is asked about when this one is over, and not twice.
    eventually("it says so", || {
        entry(&world, "last")["what"].as_str().is_some_and(|it| it.contains("behind entry"))
    });
    // What was asked about is not what would be merged now: it is asked again.
    person(&world, &format!("approve {first}"), 0);
    eventually("it is asked again", || approval(&world, "slow").is_some_and(|it| it != first));
    assert_ne!(entry(&world, "slow")["state"], "merged");
    let second = approval(&world, "slow").unwrap();
    person(&world, &format!("approve {second}"), 0);
    eventually("it is merged", || entry(&world, "slow")["state"] == "merged");
    eventually("the last one is asked about", || approval(&world, "last").is_some());
    person(&world, &format!("deny {} --reason no", approval(&world, "last").unwrap()), 0);
    eventually("it is over", || entry(&world, "last")["what"] == "check_denied");
    let files = well(&world.repo(), &["ls-tree", "--name-only", &tip(&world, "main")]);
    assert_eq!(files, "a.txt\nfast\nslow\n");
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn another_run_goes_on_while_one_waits_for_an_approval_and_a_kill_loses_neither() {
    let world = waiting();
    let mut daemon = world.start();
    person(&world, "merge queue add slow", 0);
    person(&world, "merge queue run", 0);
    eventually("it is asked about", || approval(&world, "slow").is_some());
    person(&world, "merge fast --no-checks", 0);
    assert_eq!(entry(&world, "fast")["state"], "merged");
    let before = approval(&world, "slow");
    daemon.kill();
    let _daemon = world.start();
    eventually("it is asked about again", || approval(&world, "slow").is_some_and(|it| Some(it) != before));
    person(&world, &format!("approve {}", approval(&world, "slow").unwrap()), 0);
    eventually("it is merged", || entry(&world, "slow")["state"] == "merged");
    assert_eq!(entry(&world, "slow")["told"], Value::Null);
}
