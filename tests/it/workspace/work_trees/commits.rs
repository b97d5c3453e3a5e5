//! The commit that a run leaves, by the agent and for the person, or none.

use super::{folder, git, git_in, listed, on, ran, tree_of, world};
use crate::support::eventually;

#[test]
fn a_run_leaves_a_commit_by_the_agent_for_the_person_and_touches_nothing_else() {
    let world = world(&[("a.txt", "old\n"), ("gone.txt", "x\n"), (".gitignore", "*.log\n")]);
    let _daemon = world.start();
    let script = "echo new > a.txt; mkdir d; echo more > d/b.txt; rm gone.txt; echo noise > x.log; \
                  printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; pwd; git log --oneline | head -1; git status --porcelain";
    let said = ran(&world, &["delegate", "--worker", "coder", script, "--worktree", "feat/x", "--wait"], 0);
    assert!(said.contains("merge it:     provost merge feat/x"), "{said}");
    assert!(said.contains("changed in its work tree: ") && said.contains("on branch feat/x, in "), "{said}");
    assert!(said.contains("first") && said.contains(" M a.txt"), "the run reads history and status: {said}");

    let log = git(&world, &["log", "-1", "--format=%an <%ae>|%cn <%ce>|%P|%B", "feat/x"]);
    let parent = git(&world, &["rev-parse", "main"]);
    assert!(log.starts_with("coder <coder@agents.provost.invalid>|Ada Person <ada@example.org>|"), "{log}");
    assert!(log.contains(&format!("|{parent}|")), "{log}");
    assert!(log.contains("\nProvost-Task: ") && log.ends_with("\nProvost-Agent: coder"), "{log}");
    let trailers = git(&world, &["log", "-1", "--format=%(trailers:key=Provost-Agent,valueonly)", "feat/x"]);
    assert_eq!(trailers.trim(), "coder", "git reads them as trailers");
    let changed = git(&world, &["diff", "--name-status", "main", "feat/x"]);
    assert_eq!(changed, "M\ta.txt\nA\td/b.txt\nD\tgone.txt\nA\trun.sh");
    assert!(git(&world, &["ls-tree", "feat/x", "run.sh"]).starts_with("100755 "));
    assert_eq!(git(&world, &["status", "--porcelain"]), "", "the workspace is as it was");
    assert_eq!(std::fs::read_to_string(world.repo().join("a.txt")).unwrap(), "old\n");

    let tree = folder(&world, "feat/x");
    assert!(!tree.starts_with(world.repo()), "{}", tree.display());
    assert_eq!(git_in(&world, &tree, &["status", "--porcelain"]), "", "all is committed");
    assert_eq!(git_in(&world, &tree, &["branch", "--show-current"]), "feat/x");
    let row = &listed(&world)[0];
    assert_eq!((&row["ahead"], &row["uncommitted"], &row["running"]), (&1.into(), &0.into(), &false.into()));
    assert_eq!((&row["agent"], &row["stale"]), (&"coder".into(), &serde_json::Value::Null));
}

#[test]
fn a_second_run_on_the_branch_goes_on_there() {
    let world = world(&[]);
    let _daemon = world.start();
    let first = on(&world, "feat/x", "echo one > one.txt; echo kept > cache.o; echo '*.o' > .gitignore");
    assert_eq!(first["state"], "completed", "{first:#}");
    let second = on(&world, "feat/x", "cat one.txt cache.o > two.txt");
    assert_eq!(second["state"], "completed", "{second:#}");
    assert_eq!(
        git(&world, &["show", "feat/x:two.txt"]),
        "one\nkept",
        "what git ignores stays in the work tree"
    );
    assert_eq!(git(&world, &["rev-list", "--count", "main..feat/x"]), "2");
    assert_eq!(listed(&world).len(), 1);
}

#[test]
fn a_run_that_changes_nothing_leaves_no_commit() {
    let world = world(&[]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "echo first > README.md; touch README.md; mkdir empty");
    assert_eq!(task["state"], "completed", "{task:#}");
    assert_eq!(tree_of(&task)["commit"], serde_json::Value::Null, "{task:#}");
    assert_eq!(git(&world, &["rev-parse", "feat/x"]), git(&world, &["rev-parse", "main"]));
}

#[test]
fn a_work_tree_that_was_made_for_a_run_that_changes_nothing_goes_with_its_branch() {
    let world = world(&[]);
    let _daemon = world.start();
    let said = ran(&world, &["delegate", "--worker", "coder", "true", "--wait", "--worktree"], 0);
    assert!(said.contains("its work tree are removed"), "{said}");
    assert!(listed(&world).is_empty());
    assert_eq!(git(&world, &["branch", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
    // A link is a change that no commit has.
    ran(&world, &["delegate", "--worker", "coder", "ln -s a b", "--wait", "--worktree"], 0);
    assert_eq!(listed(&world).len(), 1);
}

#[test]
fn what_a_failed_run_has_changed_is_a_commit_that_says_so() {
    let world = world(&[]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "# fix the parser\necho half > half.txt; exit 3");
    assert_eq!((&task["state"], &task["exit_code"]), (&"failed".into(), &3.into()), "{task:#}");
    let said = git(&world, &["log", "-1", "--format=%B", "feat/x"]);
    assert!(said.starts_with("Unfinished: # fix the parser\n\nThe run has not ended well: "), "{said}");
    assert_eq!(git(&world, &["show", "feat/x:half.txt"]), "half");
    // The timed-out one as well.
    let args = [
        "delegate",
        "--worker",
        "coder",
        "echo slow > slow.txt; sleep 60",
        "--worktree",
        "feat/y",
        "--timeout",
        "2s",
    ];
    let done = world.command(&[&args[..], &["--wait"]].concat()).output().unwrap();
    assert!(!done.status.success(), "{done:?}");
    assert!(git(&world, &["log", "-1", "--format=%s", "feat/y"]).starts_with("Unfinished: "));
    assert_eq!(git(&world, &["show", "feat/y:slow.txt"]), "slow");
}

#[test]
fn what_a_cancelled_run_has_changed_is_a_commit_that_says_so() {
    let world = world(&[]);
    let _daemon = world.start();
    let args =
        ["delegate", "--worker", "coder", "echo x > x.txt; sleep 60", "--worktree", "feat/x", "--task", "t1"];
    ran(&world, &args, 0);
    eventually("it runs", || listed(&world).iter().any(|it| it["uncommitted"] == 1));
    ran(&world, &["task", "cancel", "t1", "--reason", "enough"], 0);
    eventually("it is committed", || git(&world, &["rev-list", "--count", "main..feat/x"]) == "1");
    let said = git(&world, &["log", "-1", "--format=%B", "feat/x"]);
    assert!(said.starts_with("Unfinished: ") && said.contains("cancelled"), "{said}");
}

#[test]
fn the_changes_can_be_shown_applied_and_discarded_like_those_of_a_copy() {
    let world = world(&[("a.txt", "old\n")]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "echo new > a.txt");
    let id = task["id"].as_str().unwrap();
    let diff = ran(&world, &["task", "diff", id], 0);
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    ran(&world, &["discard", id, "--yes"], 0);
    assert_eq!(git(&world, &["show", "feat/x:a.txt"]), "new", "what is committed stays");
    let task = on(&world, "feat/x", "echo newer > a.txt");
    let id = task["id"].as_str().unwrap();
    let shown = ran(&world, &["task", "show", id], 0);
    assert!(shown.contains("feat/x") && shown.contains("provost merge feat/x"), "{shown}");
}

#[test]
fn an_unknown_person_and_no_commit_yet_are_refused_before_anything_is_delegated() {
    let world = world(&[]);
    let _daemon = world.start();
    git(&world, &["config", "--unset", "user.email"]);
    let said = ran(&world, &["delegate", "true", "--worktree", "feat/x"], 4);
    assert!(said.contains("git config user.email"), "{said}");
    let tasks = world.command(&["task", "list", "--json"]).output().unwrap();
    let tasks: serde_json::Value = serde_json::from_slice(&tasks.stdout).unwrap();
    assert!(!tasks.to_string().contains("feat/x"), "{tasks}");
    assert!(listed(&world).is_empty());
    let empty = crate::support::World::new();
    let _other = empty.start();
    let said = ran(&empty, &["delegate", "true", "--worktree", "feat/x"], 4);
    assert!(said.contains("no commit yet"), "{said}");
}
