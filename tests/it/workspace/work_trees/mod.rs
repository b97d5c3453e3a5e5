//! Runs in git work trees: each leaves a commit on a branch of its own, and cannot do anything else to the repository.

mod after_kills;
mod branches;
mod commits;
mod hostile;
mod merged;
mod named;
mod others_refs;
mod removal;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::World;

/// An agent that runs its prompt as a shell script, and may read the programs that it finds.
pub(super) const AGENT: &str = "[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\nmax_parallel = 4\n";

/// A world with that agent, a person who is known to git, and a first commit with these files.
pub(super) fn world(files: &[(&str, &str)]) -> World {
    let world = World::new();
    world.configure(AGENT);
    git(&world, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    git(&world, &["config", "user.name", "Ada Person"]);
    git(&world, &["config", "user.email", "ada@example.org"]);
    world.write("README.md", "first\n");
    for (path, text) in files {
        world.write(path, text);
    }
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-q", "-m", "first"]);
    world
}

/// Returns git's output in the repository.
pub(super) fn git(world: &World, args: &[&str]) -> String {
    git_in(world, &world.repo(), args)
}

/// The same in another folder.
pub(super) fn git_in(world: &World, folder: &Path, args: &[&str]) -> String {
    let done = git_tried(world, folder, args);
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

/// The same where git may fail.
pub(super) fn git_tried(world: &World, folder: &Path, args: &[&str]) -> std::process::Output {
    let mut git = Command::new("git");
    git.args(args).current_dir(folder).env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
    git.output().unwrap()
}

/// Returns the output of a command, which has to end with this exit code.
pub(super) fn ran(world: &World, args: &[&str], code: i32) -> String {
    let done = world.command(args).output().unwrap();
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert_eq!(done.status.code(), Some(code), "{args:?}: {said}\n{}", world.log());
    said
}

/// Has the agent run a script on a branch to its end, however that is; the task.
pub(super) fn on(world: &World, branch: &str, script: &str) -> Value {
    let args = ["delegate", "--worker", "coder", script, "--worktree", branch, "--wait", "--json"];
    let done = world.command(&args).output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}\n{}", world.log()))
}

/// Returns the work tree in the result of a task.
pub(super) fn tree_of(task: &Value) -> Value {
    let notes = task["notes"].as_array().unwrap();
    let found = notes.iter().rev().map(|note| note["details"]["work_tree"].clone()).find(|it| !it.is_null());
    found.unwrap_or_else(|| panic!("no work tree: {task:#}"))
}

/// The list of work trees.
pub(super) fn listed(world: &World) -> Vec<Value> {
    let done = world.command(&["worktree", "list", "--json"]).output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// The folder of a branch's work tree.
pub(super) fn folder(world: &World, branch: &str) -> PathBuf {
    let found = listed(world).into_iter().find(|it| it["branch"] == branch);
    PathBuf::from(found.unwrap_or_else(|| panic!("{branch}: {:?}", listed(world)))["path"].as_str().unwrap())
}
