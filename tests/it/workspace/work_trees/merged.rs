//! Merged commits of runs: the task says that it is merged, and no part of it waits for a person any more.

use serde_json::Value;

use super::{git, on, ran, world};
use crate::support::World;
use crate::support::terminal::at_the_terminal;

/// A task as it is listed.
fn listed(world: &World, task: &Value) -> Value {
    let done = world.command(&["task", "list", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let finished = said["finished"].as_array().unwrap_or_else(|| panic!("{said}"));
    finished.iter().find(|it| it["id"] == task["id"]).unwrap_or_else(|| panic!("{said}")).clone()
}

fn changes(world: &World, task: &Value) -> Value {
    listed(world, task)["changes"].clone()
}

fn merged(world: &World, branches: &str) {
    let done = at_the_terminal(world, &format!("merge {branches}"));
    assert!(done.status.success(), "{done:?}\n{}", world.log());
}

#[test]
fn tasks_whose_branch_is_merged_have_nothing_to_take_in() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    let (one, two) = (on(&world, "feat/a", "echo new > a.txt"), on(&world, "feat/b", "echo b > b.txt"));
    let again = on(&world, "feat/b", "echo c > c.txt");
    for task in [&one, &two, &again] {
        assert_eq!(changes(&world, task)["state"], "kept");
    }
    assert!(ran(&world, &[], 0).contains("Changes to take in:"));

    merged(&world, "feat/a feat/b");
    for task in [&one, &two, &again] {
        let it = changes(&world, task);
        assert_eq!((&it["state"], &it["merged_into"]), (&"merged".into(), &"main".into()), "{it}");
    }
    assert!(!ran(&world, &[], 0).contains("Changes to take in:"));
    let shown = ran(&world, &["task", "show", one["id"].as_str().unwrap()], 0);
    assert!(
        shown.contains("its changes: 1 file merged into main") && !shown.contains("merge it:"),
        "{shown}"
    );
    assert!(ran(&world, &["log"], 0).contains("changes_merged"));
    // They can be compared with what is there, and forgotten, as before.
    ran(&world, &["task", "diff", one["id"].as_str().unwrap()], 0);
    ran(&world, &["discard", one["id"].as_str().unwrap(), "--yes"], 0);
    assert_eq!(changes(&world, &one)["state"], "discarded");
}

#[test]
fn a_branch_that_git_has_merged_is_found_so_and_its_tasks_too() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    let task = on(&world, "feat/a", "echo new > a.txt");
    git(&world, &["merge", "-q", "feat/a"]);
    assert_eq!(changes(&world, &task)["state"], "kept", "the daemon does not watch what git merges");
    merged(&world, "feat/a");
    assert_eq!(changes(&world, &task)["state"], "merged");
}

#[test]
fn a_branch_that_was_rebased_since_is_merged_with_its_tasks() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    let task = on(&world, "feat/a", "echo new > a.txt");
    let said = git(&world, &["log", "-1", "--format=%B", "feat/a"]);
    let commit =
        git(&world, &["commit-tree", "feat/a^{tree}", "-p", "main", "-m", &format!("again, {said}")]);
    git(&world, &["update-ref", "refs/heads/feat/a", &commit]);
    merged(&world, "feat/a");
    assert_eq!(changes(&world, &task)["state"], "merged");
}

#[test]
fn a_worker_without_a_run_is_told_nothing_and_the_next_commands_are_named() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    on(&world, "feat/a", "echo new > a.txt");
    world.write("a.txt", "other\n");
    git(&world, &["commit", "-qam", "meanwhile"]);
    let done = at_the_terminal(&world, "merge feat/a");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(7), "{said}");
    assert!(said.contains("no agent is told") && !said.contains("The daemon has told"), "{said}");
    assert!(said.contains("provost delegate GOAL --worker coder --worktree feat/a"), "{said}");
    assert!(said.contains("git -C ") && said.contains(" rebase main`"), "{said}");
    let overview = ran(&world, &[], 0);
    assert!(overview.contains("set aside (1):\n  feat/a: text"), "{overview}");
}

#[test]
fn trailers_that_name_the_task_of_another_commit_change_nothing() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    let task = on(&world, "feat/a", "echo new > a.txt");
    git(&world, &["branch", "forged"]);
    let tree = git(&world, &["rev-parse", "main^{tree}"]);
    let said = format!("forged\n\nProvost-Task: {}\nProvost-Agent: coder", task["id"].as_str().unwrap());
    let commit = git(&world, &["commit-tree", &tree, "-p", "main", "-m", &said]);
    git(&world, &["branch", "-f", "forged", &commit]);
    merged(&world, "forged");
    assert_eq!(changes(&world, &task)["state"], "kept");
}

#[test]
fn what_is_not_in_the_commit_still_waits() {
    let world = world(&[("a.txt", "old\n"), (".gitattributes", "*.bin filter=lfs\n")]);
    let _daemon = world.start();
    let task = on(&world, "feat/a", "echo new > a.txt; echo x > b.bin");
    merged(&world, "feat/a");
    assert_eq!(changes(&world, &task)["state"], "kept", "b.bin is in no commit");
}

#[test]
fn copied_trailers_prove_nothing_and_the_commit_that_the_run_has_left_does() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    on(&world, "feat/a", "echo new > a.txt");
    let said = git(&world, &["log", "-1", "--format=%B", "feat/a"]);
    assert!(said.contains("Provost-Agent: coder") && said.contains("Provost-Task: "), "{said}");
    let tree = git(&world, &["rev-parse", "main^{tree}"]);
    let copy = git(&world, &["commit-tree", &tree, "-p", "main", "-m", &said]);
    git(&world, &["branch", "copied", &copy]);
    let seen = ran(&world, &["merge", "feat/a", "copied", "--preview", "--json"], 0);
    let seen: Value = serde_json::from_str(&seen).unwrap_or_else(|_| panic!("{seen}"));
    let proven = |branch: &str| {
        let all = seen["branches"].as_array().unwrap_or_else(|| panic!("{seen}"));
        let it = all.iter().find(|it| it["branch"] == branch).unwrap_or_else(|| panic!("{seen}"));
        (it["owner"].clone(), it["owner_proven"].clone())
    };
    assert_eq!(proven("feat/a"), ("coder".into(), true.into()), "{seen}");
    assert_eq!(proven("copied"), ("coder".into(), false.into()), "{seen}");
}
