//! Listing and removing.

use std::fs;

use super::{folder, git, git_tried, listed, on, ran, world};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

#[test]
fn a_removal_keeps_the_branch_and_spares_what_is_not_committed() {
    let world = world(&[]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "echo x > x.txt");
    let tree = folder(&world, "feat/x");
    fs::write(tree.join("mine.txt"), "by hand\n").unwrap();
    let said = ran(&world, &["worktree", "list"], 0);
    assert!(said.contains("feat/x") && said.contains("1 uncommitted"), "{said}");
    let said = ran(&world, &["worktree", "remove", "feat/x"], 4);
    assert!(said.contains("mine.txt") && said.contains("--force"), "{said}");
    assert!(tree.join("mine.txt").exists());
    let said = ran(&world, &["worktree", "remove", "feat/x", "--force"], 0);
    assert!(said.contains("the branch stays"), "{said}");
    assert!(!tree.exists());
    // What is said of its task names no folder that is gone.
    let asked = at_the_terminal(&world, &format!("discard {}", task["id"].as_str().unwrap()));
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.contains("on branch feat/x") && !said.contains(tree.to_str().unwrap()), "{said}");
    assert_eq!(git(&world, &["show", "feat/x:x.txt"]), "x");
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
    // A run on it later makes the work tree again.
    on(&world, "feat/x", "echo y > y.txt");
    let path = folder(&world, "feat/x");
    let said = ran(&world, &["worktree", "remove", path.to_str().unwrap(), "--branch"], 4);
    assert!(said.contains("provost merge feat/x"), "{said}");
    git(&world, &["merge", "-q", "--ff-only", "feat/x"]);
    let said = ran(&world, &["worktree", "remove", path.to_str().unwrap(), "--branch"], 0);
    assert!(said.contains("the branch is deleted"), "{said}");
    assert!(!git_tried(&world, &world.repo(), &["rev-parse", "--verify", "feat/x"]).status.success());
    let said = ran(&world, &["worktree", "remove", "feat/x"], 4);
    assert!(said.contains("provost worktree list"), "{said}");
    let log = ran(&world, &["log", "--json"], 0);
    assert!(log.contains("work_tree.removed"), "{log}");
}

#[test]
fn a_work_tree_in_use_is_not_removed() {
    let world = world(&[]);
    let _daemon = world.start();
    std::thread::scope(|scope| {
        let run = scope
            .spawn(|| on(&world, "feat/x", "echo x > x.txt; while [ ! -e go ]; do sleep 0.05; done; rm go"));
        let tree = until_some("it runs", || {
            let row = listed(&world).into_iter().next()?;
            let path = std::path::PathBuf::from(row["path"].as_str()?);
            (row["running"] == true && path.join("x.txt").exists()).then_some(path)
        });
        let said = ran(&world, &["worktree", "remove", "feat/x", "--force"], 4);
        assert!(said.contains("a run works in"), "{said}");
        assert!(ran(&world, &["worktree", "list"], 0).contains("running"));
        fs::write(tree.join("go"), "").unwrap();
        run.join().unwrap();
    });
    ran(&world, &["worktree", "remove", "feat/x"], 0);
}

#[test]
fn one_that_was_deleted_by_hand_is_shown_as_stale_and_can_be_removed() {
    let world = world(&[]);
    let _daemon = world.start();
    on(&world, "feat/x", "echo x > x.txt");
    on(&world, "feat/y", "echo y > y.txt");
    fs::remove_dir_all(folder(&world, "feat/x")).unwrap();
    fs::write(folder(&world, "feat/y").join(".git"), "gitdir: /tmp/elsewhere\n").unwrap();
    let said = ran(&world, &["worktree", "list"], 0);
    assert_eq!(said.matches("stale").count(), 2, "{said}");
    ran(&world, &["worktree", "remove", "feat/x"], 0);
    let said = ran(&world, &["worktree", "remove", "feat/y"], 4);
    assert!(said.contains("--force"), "{said}");
    ran(&world, &["worktree", "remove", "feat/y", "--force"], 0);
    assert!(listed(&world).is_empty());
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&world, &["rev-list", "--count", "main..feat/y"]), "1");
}

#[test]
fn an_agent_removes_nothing() {
    let world = world(&[]);
    let _daemon = world.start();
    on(&world, "feat/x", "echo x > x.txt");
    let body = serde_json::json!({ "which": "feat/x", "force": true });
    let (status, answer) = crate::support::desk::ask(&world, "some-agent", "POST /remove-work-tree", &body);
    assert_eq!((status, &answer["error"]), (403, &"out_of_scope".into()), "{answer}");
    assert!(folder(&world, "feat/x").is_dir());
}
