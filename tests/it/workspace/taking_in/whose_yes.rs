//! Applies that are written at once: those of a person at a terminal of their own. All others wait.

use super::{AGENT, done, ran, text, world};
use crate::support::World;
use crate::support::terminal::{at_a_hosts_terminal, at_the_terminal};

#[test]
fn the_apply_of_a_person_at_a_terminal_needs_no_second_yes() {
    let world = world(&[("a.txt", "old\n")], "");
    let _daemon = world.start();
    let id = done(&world, "echo new > a.txt");
    // A script of the user's is no person.
    let waits = ran(&world, &["apply", &id], 4);
    assert!(waits.contains("waits for approval") && waits.contains("then the same command again"), "{waits}");
    assert_eq!(text(&world, "a.txt"), "old\n");
    let person = at_the_terminal(&world, &format!("apply {id}"));
    assert!(person.status.success(), "{person:?}");
    assert!(String::from_utf8_lossy(&person.stdout).contains("written: 1"), "{person:?}");
    assert_eq!(text(&world, "a.txt"), "new\n");
    // What the script has asked for leads to nothing any more.
    let left = ran(&world, &["approval", "list"], 0);
    assert!(left.contains("nothing waits for approval"), "{left}");
    let undone = at_the_terminal(&world, "undo 1");
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(text(&world, "a.txt"), "old\n");
}

#[test]
fn what_an_agent_starts_at_a_terminal_is_no_person() {
    let world = world(&[("a.txt", "old\n")], "");
    let _daemon = world.start();
    let id = done(&world, "echo new > a.txt");
    // The host has spoken as an agent at this terminal; the model below it leaves its name out.
    let lines = format!(
        "provost lock --as m README.md\nprovost apply {id}\necho \"ended: $?\"\nprovost discard {id} --yes\necho \"then: $?\""
    );
    let said = at_a_hosts_terminal(&world, &lines);
    assert!(said.contains("ended: 4") && said.contains("then: 4"), "{said}");
    let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let cause = "m has spoken as an agent in this terminal";
    assert!(
        plain.contains(cause) && plain.contains(&format!("type in this folder: provost discard {id} --yes")),
        "{said}"
    );
    assert!(plain.contains("in another terminal, in which no agent has run"), "{said}");
    let named = at_a_hosts_terminal(
        &world,
        &format!(
            "export PROVOST_AGENT=m\nprovost apply {id}\necho \"ended: $?\"\nprovost approve 1\necho \"answered: $?\""
        ),
    );
    assert!(named.contains("ended: 4") && named.contains("answered: 4"), "{named}");
    assert_eq!(text(&world, "a.txt"), "old\n");
    ran(&world, &["task", "diff", &id], 0);
    // Its person grants it elsewhere, and the same command is carried out.
    let shown = ran(&world, &["approval", "list"], 0);
    assert!(shown.contains("+new"), "the approval shows the difference: {shown}");
}

#[test]
fn a_yes_is_for_the_difference_that_was_shown() {
    let world = World::new();
    world.configure(AGENT);
    world.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n");
    world.write("b.txt", "old\n");
    let _daemon = world.start();
    let id = done(&world, "sed -i s/1/one/ a.txt; echo new > b.txt");
    ran(&world, &["apply", &id, "a.txt"], 4);
    let granted = at_the_terminal(&world, "approve 1");
    assert!(granted.status.success(), "{granted:?}");
    // The yes was for a.txt alone.
    let other = ran(&world, &["apply", &id], 4);
    assert!(other.contains("approval 2"), "{other}");
    // And for what it said at that time, although the edit could be merged.
    world.write("a.txt", "1\n2\n3\n4\n5\n6\nseven\n");
    let changed = ran(&world, &["apply", &id, "a.txt"], 4);
    assert!(changed.contains("approval 3"), "{changed}");
    world.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n");
    let said = ran(&world, &["apply", &id, "a.txt"], 0);
    assert!(said.contains("written: 1"), "{said}");
    assert_eq!(
        (text(&world, "a.txt").as_str(), text(&world, "b.txt").as_str()),
        ("one\n2\n3\n4\n5\n6\n7\n", "old\n")
    );
}

#[test]
fn a_model_that_is_known_in_one_repository_is_no_person_in_another_one() {
    let world = world(&[("a.txt", "old\n")], "");
    let other = world.beside();
    let (_daemon, _other) = (world.start(), other.start());
    let id = done(&world, "echo new > a.txt");
    let speaks = format!("provost -C {} lock --as m README.md", other.repo().display());
    let lines =
        format!("{speaks}\nprovost apply {id}\necho \"ended: $?\"\nprovost approve 1\necho \"answered: $?\"");
    let said = at_a_hosts_terminal(&world, &lines);
    assert!(said.contains("ended: 4") && said.contains("answered: 4"), "{said}");
    assert_eq!(text(&world, "a.txt"), "old\n");
    // In a terminal in which no agent has spoken anywhere, it is a person's.
    let person = at_the_terminal(&world, &format!("apply {id}"));
    assert!(person.status.success(), "{person:?}");
}
