//! Branches and refs that are not the run's: no run deletes them, none hides them, none goes through one to another.

use super::{folder, git, git_tried, listed, on, ran, tree_of, world};
use crate::support::World;

/// A repository with a remote, as a clone has it.
fn with_remote(world: &World, branches: &[&str]) {
    git(world, &["config", "remote.up.url", "/nowhere"]);
    git(world, &["config", "remote.up.fetch", "+refs/heads/*:refs/remotes/up/*"]);
    for branch in branches {
        git(world, &["update-ref", &format!("refs/remotes/up/{branch}"), "HEAD"]);
    }
}

#[test]
fn a_run_that_changes_nothing_deletes_no_branch_that_it_has_not_made() {
    let world = world(&[]);
    let _daemon = world.start();
    let made = on(&world, "provost/coder/rel2", "echo work > work.txt");
    let commit = tree_of(&made)["commit"].as_str().unwrap().to_owned();
    // The name that a task without a branch would get: the request says so, and begins nothing.
    let said =
        ran(&world, &["delegate", "true", "--worker", "coder", "--task", "rel2", "--worktree", "--wait"], 4);
    assert!(said.contains("--worktree provost/coder/rel2") && said.contains("is there already"), "{said}");
    assert_eq!(git(&world, &["rev-parse", "provost/coder/rel2"]), commit);
    // Who names it works on it, and leaves it there.
    let args =
        ["delegate", "--worker", "coder", "true", "--task", "rel2", "--worktree", "provost/coder/rel2"];
    ran(&world, &[&args[..], &["--wait"]].concat(), 0);
    assert_eq!(git(&world, &["rev-parse", "provost/coder/rel2"]), commit);
    assert_eq!(listed(&world).len(), 1);
    // Also a branch without a commit of its own that a person has made.
    git(&world, &["branch", "provost/coder/mine"]);
    let args =
        ["delegate", "--worker", "coder", "true", "--task", "mine", "--worktree", "provost/coder/mine"];
    ran(&world, &[&args[..], &["--wait"]].concat(), 0);
    assert_eq!(git(&world, &["rev-parse", "provost/coder/mine"]), git(&world, &["rev-parse", "main"]));
}

#[test]
fn a_branch_that_a_run_has_made_and_a_person_has_moved_stays() {
    let world = world(&[]);
    let _daemon = world.start();
    let script = "touch begun; for n in $(seq 400); do [ -e go ] && break; sleep 0.05; done; rm -f go begun";
    let args = ["delegate", "--worker", "coder", script, "--task", "moves", "--worktree", "--wait"];
    std::thread::scope(|scope| {
        let run = scope.spawn(|| world.command(&args).output().unwrap());
        let tree = crate::support::waits::until_some("it runs", || {
            let row = listed(&world).into_iter().next()?;
            let path = std::path::PathBuf::from(row["path"].as_str()?);
            path.join("begun").exists().then_some(path)
        });
        let tree_id = git(&world, &["rev-parse", "main^{tree}"]);
        let commit = git(&world, &["commit-tree", &tree_id, "-p", "main", "-m", "by hand"]);
        git(&world, &["update-ref", "refs/heads/provost/coder/moves", &commit]);
        std::fs::write(tree.join("go"), "").unwrap();
        run.join().unwrap();
        assert_eq!(git(&world, &["rev-parse", "provost/coder/moves"]), commit);
    });
}

#[test]
fn no_run_makes_a_branch_that_is_read_as_another_ref() {
    let world = world(&[]);
    with_remote(&world, &["main", "trunk", "theirs", "deep/er"]);
    git(&world, &["symbolic-ref", "refs/remotes/up/HEAD", "refs/remotes/up/trunk"]);
    git(&world, &["tag", "v1"]);
    git(&world, &["checkout", "-q", "-b", "work"]);
    git(&world, &["branch", "-q", "-D", "main"]);
    let _daemon = world.start();
    let id = git(&world, &["rev-parse", "HEAD"]);
    let before = git(&world, &["for-each-ref"]);
    let taken = [
        "up/main",
        "up/new",
        "up",
        "origin/x",
        "UP/main",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "ANY_HEAD",
        "stash",
        "tags/v1",
        "tags/new",
        "heads/main",
        "heads/x",
        "remotes/up/x",
        "v1",
        "main",
        "Main",
        "master",
        "trunk",
        "theirs",
        "deep/er",
        &id,
        &id[..12],
        "0123456789012345678901234567890123456789",
        "worktrees/x/HEAD",
    ];
    for name in taken {
        let said = ran(
            &world,
            &["delegate", "echo x > x.txt", "--worker", "coder", &format!("--worktree={name}")],
            4,
        );
        assert!(said.contains("--worktree"), "{name}: {said}");
    }
    assert_eq!(git(&world, &["for-each-ref"]), before);
    assert!(listed(&world).is_empty());
    // Names that only look like these are branches like others.
    for name in ["upper/main", "stash-it", "feat/main", "head", "feat/v1"] {
        let task = on(&world, name, "echo x > x.txt");
        assert!(tree_of(&task)["commit"].is_string(), "{name}: {task:#}");
    }
}

#[test]
fn a_branch_that_is_another_name_of_one_is_no_runs() {
    let world = world(&[]);
    git(&world, &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    git(&world, &["symbolic-ref", "refs/heads/nothing", "refs/heads/missing"]);
    git(&world, &["checkout", "-q", "--detach"]);
    let _daemon = world.start();
    let before = git(&world, &["rev-parse", "main"]);
    for name in ["alias", "nothing"] {
        let said = ran(&world, &["delegate", "echo x > x.txt", "--worker", "coder", "--worktree", name], 4);
        assert!(said.contains("another name of") && said.contains("--worktree"), "{name}: {said}");
    }
    // One that becomes such a name later takes nothing with it, and no run goes on through it.
    let task = on(&world, "feat/x", "echo x > x.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    git(&world, &["update-ref", "refs/heads/main", "feat/x"]);
    git(&world, &["symbolic-ref", "refs/heads/feat/x", "refs/heads/main"]);
    let moved = git(&world, &["rev-parse", "main"]);
    let said = ran(&world, &["delegate", "echo y > y.txt", "--worker", "coder", "--worktree", "feat/x"], 4);
    assert!(said.contains("another name of"), "{said}");
    assert_eq!(git(&world, &["rev-parse", "main"]), moved);
    ran(&world, &["worktree", "remove", "feat/x", "--branch", "--force"], 0);
    assert_eq!(git(&world, &["rev-parse", "main"]), moved);
    assert!(!git_tried(&world, &world.repo(), &["symbolic-ref", "refs/heads/feat/x"]).status.success());
    assert_ne!(before, moved);
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_not_deleted_with_its_work_tree() {
    let world = world(&[]);
    let _daemon = world.start();
    on(&world, "feat/x", "true");
    git(&world, &["checkout", "-q", "--ignore-other-worktrees", "feat/x"]);
    let said = ran(&world, &["worktree", "remove", "feat/x", "--branch", "--force"], 4);
    assert!(said.contains("is checked out in"), "{said}");
    assert_eq!(git(&world, &["symbolic-ref", "HEAD"]), "refs/heads/feat/x");
    git(&world, &["rev-parse", "HEAD"]);
    assert!(folder(&world, "feat/x").exists());
    ran(&world, &["worktree", "remove", "feat/x"], 0);
}

#[test]
fn a_repository_whose_refs_are_a_table_has_work_trees_too() {
    let world = World::new();
    world.configure(super::AGENT);
    std::fs::remove_dir_all(world.repo().join(".git")).unwrap();
    git(&world, &["init", "-q", "-b", "main", "--ref-format=reftable", "."]);
    git(&world, &["config", "user.name", "Ada Person"]);
    git(&world, &["config", "user.email", "ada@example.org"]);
    world.write("README.md", "first\n");
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-q", "-m", "first"]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "echo x > x.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    let task = on(&world, "feat/x", "echo y > y.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(listed(&world)[0]["stale"], serde_json::Value::Null);
    ran(&world, &["worktree", "remove", "feat/x", "--branch", "--force"], 0);
}

#[test]
fn what_a_new_rule_hides_from_git_is_named_and_spared() {
    let world = world(&[(".gitignore", "*.o\n")]);
    let _daemon = world.start();
    let task = on(
        &world,
        "feat/x",
        "echo 'hid*' >> .gitignore; echo a > hidden.ts; echo b > built.o; echo c > README.md",
    );
    let ignored = tree_of(&task)["ignored"].to_string();
    assert!(ignored.contains("hidden.ts") && !ignored.contains("built.o"), "{task:#}");
    let id = task["id"].as_str().unwrap();
    let said = ran(&world, &["task", "show", id], 0);
    assert!(said.contains("hidden.ts") && said.contains(".gitignore"), "{said}");
    let said = ran(&world, &["worktree", "remove", "feat/x"], 4);
    assert!(said.contains("hidden.ts") && said.contains("--force") && !said.contains("built.o"), "{said}");
    assert!(said.starts_with("error: the work tree is not removed"), "{said}");
    assert!(folder(&world, "feat/x").join("hidden.ts").exists());
    ran(&world, &["worktree", "remove", "feat/x", "--force"], 0);
    // A rule that hides itself, too, is one.
    let task = on(&world, "feat/z", "mkdir w; echo '*' > w/.gitignore; echo a > w/secret.ts");
    assert!(tree_of(&task)["ignored"].to_string().contains("w/"), "{task:#}");
    assert!(ran(&world, &["worktree", "remove", "feat/z"], 4).contains("w/"));
    // What the rules of the trunk ignore keeps no work tree.
    on(&world, "feat/y", "echo b > built.o");
    ran(&world, &["worktree", "remove", "feat/y"], 0);
}

#[test]
fn what_an_exception_that_is_gone_hides_from_git_is_named_and_spared() {
    let rules = "*.log\n!kept.log\n*.o\n";
    let world = world(&[(".gitignore", rules), ("sub/.gitignore", "!seen.o\n")]);
    let _daemon = world.start();
    let lines = [
        ("one", "printf '*.log\n*.o\n' > .gitignore; echo a > kept.log", "kept.log"),
        ("two", "printf '!kept.log\n*.log\n*.o\n' > .gitignore; echo a > kept.log", "kept.log"),
        ("three", "rm sub/.gitignore; echo a > sub/seen.o", "sub/seen.o"),
    ];
    for (name, line, hidden) in lines {
        let task = on(&world, name, line);
        assert!(tree_of(&task)["ignored"].to_string().contains(hidden), "{name}: {task:#}");
        assert!(ran(&world, &["worktree", "remove", name], 4).contains(hidden), "{name}");
    }
    // Exceptions that stay hide nothing.
    let task = on(&world, "four", "echo '*.tmp' >> .gitignore; echo a > kept.log; echo b > other.log");
    assert_eq!(tree_of(&task)["ignored"], serde_json::json!([]), "{task:#}");
}

#[test]
fn what_the_users_own_list_ignores_is_in_no_commit() {
    let world = world(&[]);
    std::fs::write(world.repo().join(".git/info/exclude"), "mine-*\n").unwrap();
    let _daemon = world.start();
    let task =
        on(&world, "feat/x", "echo a > mine-a.txt; echo b > b.txt; echo c > ':(top)c'; echo d > 'd[1].txt'");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(tree_of(&task)["ignored"], serde_json::json!([]), "{task:#}");
    let changed = git(&world, &["diff", "--name-only", "main", "feat/x"]);
    assert!(
        changed.contains("b.txt") && changed.contains("d[1].txt") && !changed.contains("mine-a"),
        "{changed}"
    );
    ran(&world, &["worktree", "remove", "feat/x", "--force"], 0);
}
