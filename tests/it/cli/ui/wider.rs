//! The real program in a real terminal, beyond answers: a message to all agents, both changes of a meeting, a check of the journal, and
//! other rules.

use serde_json::{Value, json};

use super::real::Terminal;
use crate::support::passkeys::get;
use crate::support::repositories::{well, write};
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World, eventually};

/// Two agents that have each changed the same file, in work trees of their own.
fn two_at_work() -> (World, Daemon) {
    let world = World::new();
    world.rule(ALLOW);
    world.write("src/a.py", "def f():\n    return 1\n");
    let daemon = world.start();
    let repo = world.repo();
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "one"]);
    for agent in ["feat-a", "feat-b"] {
        let tree = world.path(agent);
        well(&repo, &["worktree", "add", "-q", "-b", agent, tree.to_str().unwrap()]);
        write(tree.join("src/a.py"), &format!("def f():\n    return \"{agent}\"\n"));
        world.done(agent, &["intent", "declare", "a new form", "--file", "src/a.py"]);
    }
    (world, daemon)
}

/// How many messages with this text an agent was sent.
fn has(world: &World, agent: &str, text: &str) -> usize {
    let posts = get(world, "/posts?limit=50");
    let posts = posts["posts"].as_array().unwrap().iter();
    posts.filter(|it| it["to"] == agent && it["said"].as_str().unwrap().contains(text)).count()
}

#[test]
fn a_person_writes_to_all_agents_and_to_both_of_a_meeting_whose_changes_stand_below_each_other() {
    let (world, _daemon) = two_at_work();
    world.done("feat-c", &["intent", "declare", "something else", "--file", "src/c.py"]);
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("live");
    terminal.keys(&["7"]);
    terminal.shows("Questions without an answer");
    terminal.keys(&["M"]);
    terminal.shows("to feat-a, feat-b, feat-c:");
    terminal.types("stop for a moment, ünd listen");
    terminal.keys(&["Enter"]);
    terminal.shows("sent to feat-a, feat-b, feat-c");
    for agent in ["feat-a", "feat-b", "feat-c"] {
        eventually(agent, || has(&world, agent, "stop for a moment, ünd listen") == 1);
    }
    terminal.keys(&["8"]);
    terminal.shows("In each other's way, the gravest first (1)");
    terminal.keys(&["Enter"]);
    terminal.shows("feat-a, on branch feat-a");
    terminal.shows("return \"feat-a\"");
    terminal.shows("feat-b, on branch feat-b");
    terminal.shows("return \"feat-b\"");
    terminal.keys(&["m"]);
    terminal.shows("to feat-a, feat-b:");
    terminal.types("one of you first");
    terminal.keys(&["Enter"]);
    terminal.shows("sent to feat-a, feat-b");
    eventually("both have it", || {
        has(&world, "feat-a", "one of you") == 1 && has(&world, "feat-b", "one of you") == 1
    });
    assert_eq!(has(&world, "feat-c", "one of you"), 0);
    // One that is removed meanwhile is told as what git says.
    well(&world.repo(), &["worktree", "remove", "--force", world.path("feat-b").to_str().unwrap()]);
    terminal.keys(&["R"]);
    terminal.shows("has changed there is not known");
}

#[test]
fn the_journal_is_checked_and_a_changed_byte_is_told() {
    let (world, daemon) = two_at_work();
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("live");
    terminal.keys(&["V"]);
    terminal.shows("Nothing is wrong in");
    terminal.shows("provost-anchor:1:");
    terminal.keys(&["Escape"]);
    terminal.shows_no_more("Nothing is wrong in");
    // Behind the daemon's back.
    let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    let changed = "update event set body = replace(body, 'feat-a', 'feat-z') where instr(body, 'feat-a') > 0";
    assert!(db.execute(changed, []).unwrap() > 0);
    terminal.types(":check");
    terminal.keys(&["Enter"]);
    terminal.shows("The journal has been changed: event");
    drop(daemon);
}

#[test]
fn ready_made_rules_are_asked_about_what_was_decided() {
    let (world, daemon) = two_at_work();
    // The second worker starts by itself, which the strict rules deny.
    for worker in ["shell", "absent"] {
        world.client(&daemon, "orch").delegate(worker, "true", json!({})).1.ack();
    }
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("live");
    terminal.types(":replay nowhere");
    terminal.keys(&["Enter"]);
    terminal.shows("there are no ready-made rules nowhere");
    terminal.keys(&["Escape"]);
    terminal.shows_no_more("there are no ready-made rules nowhere");
    terminal.types(":replay strict");
    terminal.keys(&["Enter"]);
    terminal.shows("1 of 2 requests would have been decided otherwise");
    let said = world.command(&["policy", "diff", "builtin:strict", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(said["requests"], json!(2), "{said}");
}
