//! kill -9 of the daemon while a work tree is made, while a run goes on, and before its commit is on record.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{folder, git, git_in, listed, on, ran, tree_of, world};
use crate::support::waits::until_some;
use crate::support::{UP, World, eventually};

/// Delegates without waiting.
fn begin(world: &World, task: &str, script: &str) {
    ran(world, &["delegate", "--worker", "coder", script, "--worktree", "feat/x", "--task", task], 0);
}

fn ended(world: &World, task: &str) -> Value {
    until_some("the task has ended", || {
        let done = world.command(&["task", "show", task, "--json"]).output().unwrap();
        let task: Value = serde_json::from_slice(&done.stdout).ok()?;
        matches!(task["state"].as_str()?, "completed" | "failed" | "cancelled").then_some(task)
    })
}

fn in_trees(world: &World) -> Vec<PathBuf> {
    let trees = world.state_dir().with_extension("trees");
    fs::read_dir(trees).into_iter().flatten().flatten().map(|it| it.path()).collect()
}

/// A git that waits before it makes a work tree, and after.
fn slow_git(world: &World) -> String {
    git_that(
        world,
        "*'worktree add'*)\n  touch \"$HOME/adding\"\n  /usr/bin/git \"$@\"; code=$?\n  touch \"$HOME/added\"\n  sleep 1\n  \
         exit $code;;",
    )
}

/// A `PATH` on which git does something else where a case of a shell matches its words.
fn git_that(world: &World, case: &str) -> String {
    let bin = world.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\ncase \"$*\" in {case} esac\nexec /usr/bin/git \"$@\"\n");
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", bin.display())
}

#[test]
fn a_kill_while_the_work_tree_is_made_leaves_none_half_made() {
    for moment in ["adding", "added"] {
        let world = world(&[("a.txt", "a\n")]);
        let path = slow_git(&world);
        let mut command = world.command(UP);
        command.env("PATH", &path);
        let mut daemon = world.start_as(command);
        begin(&world, "t1", "echo x > x.txt");
        let until = Instant::now() + Duration::from_secs(20);
        while !world.home().join(moment).exists() {
            assert!(Instant::now() < until, "git is not asked: {}", world.log());
            std::hint::spin_loop();
        }
        daemon.kill();
        drop(daemon);
        // What was to be run had not begun, so the next daemon begins it, in a work tree that is whole.
        let _daemon = world.start();
        let task = ended(&world, "t1");
        assert_eq!(task["state"], "completed", "{moment}: {task:#}\n{}", world.log());
        assert_eq!(git(&world, &["show", "feat/x:x.txt"]), "x");
        assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 2);
        let odd: Vec<PathBuf> = in_trees(&world)
            .into_iter()
            .filter(|it| it.extension().is_some_and(|it| it == "making"))
            .collect();
        assert!(odd.is_empty(), "{odd:?}");
        assert_eq!(git_in(&world, &folder(&world, "feat/x"), &["status", "--porcelain"]), "");
    }
}

#[test]
fn what_is_half_made_and_not_wanted_any_more_is_taken_back_with_its_branch() {
    let world = world(&[]);
    let path = slow_git(&world);
    let mut command = world.command(UP);
    command.env("PATH", &path);
    let mut daemon = world.start_as(command);
    begin(&world, "t1", "echo x > x.txt");
    eventually("git has made it", || world.home().join("added").exists());
    ran(&world, &["task", "cancel", "t1"], 0);
    daemon.kill();
    drop(daemon);
    let _daemon = world.start();
    eventually("it is taken back", || git(&world, &["worktree", "list"]).lines().count() == 1);
    assert!(listed(&world).is_empty());
    assert_eq!(git(&world, &["branch", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn what_a_lost_run_has_changed_is_committed_by_the_next_daemon() {
    let world = world(&[("a.txt", "old\n"), ("gone.txt", "x\n"), ("same.txt", "same\n")]);
    let mut daemon = world.start();
    on(&world, "feat/x", "ln -s a.txt link");
    begin(&world, "t1", "echo new > a.txt; rm gone.txt; mkdir d; echo b > d/b.txt; touch done; sleep 60");
    let tree = folder(&world, "feat/x");
    eventually("it has changed them", || tree.join("done").exists());
    daemon.kill();
    drop(daemon);
    let _daemon = world.start();
    let task = ended(&world, "t1");
    assert_eq!(task["state"], "failed", "{task:#}");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}\n{}", world.log());
    let changed = git(&world, &["diff", "--name-status", "main", "feat/x"]);
    assert_eq!(changed, "M\ta.txt\nA\td/b.txt\nA\tdone\nD\tgone.txt");
    let said = git(&world, &["log", "-1", "--format=%B", "feat/x"]);
    assert!(said.starts_with("Unfinished: ") && said.contains("Provost-Task: t1"), "{said}");
    let diff = ran(&world, &["task", "diff", "t1"], 0);
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    let next = on(&world, "feat/x", "echo n > next.txt");
    assert_eq!(next["state"], "completed", "{next:#}");
}

#[test]
fn a_kill_at_any_moment_around_the_commit_leaves_one_commit() {
    let world = world(&[]);
    let mut daemon = world.start();
    on(&world, "feat/x", "true");
    let tree = folder(&world, "feat/x");
    let (kept, branch) = (world.state_dir().join("artifacts"), world.repo().join(".git/refs/heads/feat/x"));
    let index = tree.with_extension("index");
    for round in 0..10 {
        let (task, before) = (format!("round{round}"), git(&world, &["rev-parse", "feat/x"]));
        let runs = fs::read_dir(&kept).map_or(0, Iterator::count);
        begin(&world, &task, &format!("echo {round} > {round}.txt"));
        // The moments of a run's end, in their order.
        let has_come = || match round % 5 {
            // A shell makes the file before it writes it.
            0 => fs::read_to_string(tree.join(format!("{round}.txt"))).is_ok_and(|it| !it.is_empty()),
            1 => fs::read_dir(&kept).map_or(0, Iterator::count) > runs,
            2 => index.exists(),
            3 => {
                branch.with_extension("lock").exists()
                    || fs::read_to_string(&branch).unwrap().trim() != before
            }
            _ => fs::read_to_string(&branch).unwrap().trim() != before,
        };
        let until = Instant::now() + Duration::from_secs(20);
        while !has_come() && fs::read_to_string(&branch).unwrap().trim() == before {
            assert!(Instant::now() < until, "it does not run: {}", world.log());
            std::hint::spin_loop();
        }
        daemon.kill();
        drop(daemon);
        daemon = world.start();
        let ended = ended(&world, &task);
        assert!(tree_of(&ended)["commit"].is_string(), "{round}: {ended:#}\n{}", world.log());
        let count = git(&world, &["rev-list", "--count", &format!("{before}..feat/x")]);
        assert_eq!(count, "1", "{round}: {ended:#}");
        assert_eq!(git(&world, &["show", &format!("feat/x:{round}.txt")]), round.to_string());
        assert_eq!(git_in(&world, &tree, &["status", "--porcelain"]), "");
    }
}

/// The store is held by another program from before the branch moves, so that the daemon cannot put the end on record.
#[test]
fn a_kill_between_the_commit_and_the_record_of_the_end_loses_no_commit() {
    let world = world(&[]);
    let path = git_that(
        &world,
        "*update-ref*'provost: task t2'*)\n  touch \"$HOME/moving\"\n  until test -e \"$HOME/go\"; do sleep 0.01; done;;",
    );
    let mut command = world.command(UP);
    command.env("PATH", &path);
    let mut daemon = world.start_as(command);
    on(&world, "feat/x", "true");
    let tree = folder(&world, "feat/x");
    let record = tree.with_extension("json");
    begin(&world, "t2", "echo y > y.txt");
    eventually("the branch is about to move", || world.home().join("moving").exists());
    let of_run = fs::metadata(&record).unwrap().ino();
    let held = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    fs::write(world.home().join("go"), "").unwrap();
    eventually("the run is finished in its work tree", || fs::metadata(&record).unwrap().ino() != of_run);
    daemon.kill();
    drop(daemon);
    drop(held);
    let _daemon = world.start();
    let task = ended(&world, "t2");
    let commit = tree_of(&task)["commit"].as_str().map(str::to_owned);
    assert_eq!(commit, Some(git(&world, &["rev-parse", "feat/x"])), "{task:#}\n{}", world.log());
    assert_eq!(git(&world, &["show", "feat/x:y.txt"]), "y");
    assert_eq!(git(&world, &["rev-list", "--count", "main..feat/x"]), "1");
    assert_eq!(git_in(&world, &tree, &["status", "--porcelain"]), "");
}
