//! Branches that are merged into the trunk: looked at beforehand, checked, taken in one after the other, or
//! returned.

mod asked;
mod followers;
mod forged;
mod hostile;
mod kills;
mod marks;
mod named;
mod odd_repositories;
mod queue;
mod symbols;
mod taken_out;
mod told;
mod trunk;
mod twenty;

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::World;
use crate::support::repositories::well;
use crate::support::terminal::at_the_terminal;

/// An agent that runs its prompt as a shell script.
pub(super) const AGENT: &str = "[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\nmax_parallel = 4\n";

/// A repository on the branch `main`, with one commit of these files.
pub(super) fn repository(files: &[(&str, &str)], more: &str) -> World {
    let world = World::new();
    world.configure(more);
    let repo = world.repo();
    well(&repo, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    well(&repo, &["config", "user.name", "Pat"]);
    well(&repo, &["config", "user.email", "pat@example.invalid"]);
    for (path, text) in files {
        world.write(path, text);
    }
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-q", "--allow-empty", "-m", "first"]);
    world
}

/// Whether a merge has left anything half-way: git's lock of an index, a file of ours beside it, or a note of the way.
pub(super) fn is_half_way(world: &World, git_dir: &std::path::Path) -> bool {
    let is_ours = |it: &std::fs::DirEntry| it.file_name().to_string_lossy().starts_with("provost");
    let beside = std::fs::read_dir(git_dir).unwrap().flatten().any(|it| is_ours(&it));
    let name = provost::base::Digest::of(git_dir.as_os_str().as_encoded_bytes()).to_string();
    let noted = world.state_dir().join("merge/followers").join(name.replace(':', "-"));
    beside || git_dir.join("index.lock").exists() || noted.exists()
}

/// A work tree of its own in which branches are made, so that the workspace is not touched.
pub(super) fn bench(world: &World) -> PathBuf {
    let bench = world.path("bench");
    if !bench.exists() {
        well(&world.repo(), &["worktree", "add", "-q", "--detach", bench.to_str().unwrap()]);
    }
    bench
}

/// Makes a branch off a commit, with these files written (`None`: removed) and committed.
pub(super) fn branch(
    world: &World,
    name: &str,
    from: &str,
    files: &[(&str, Option<&str>)],
    message: &str,
) -> String {
    let bench = bench(world);
    well(&bench, &["checkout", "-q", "-B", name, from]);
    for (path, text) in files {
        let at = bench.join(path);
        match text {
            Some(text) => {
                std::fs::create_dir_all(at.parent().unwrap()).unwrap();
                std::fs::write(at, text).unwrap();
            }
            None => {
                std::fs::remove_file(&at).unwrap();
                // As git does: a folder without a file is none.
                let _others_are_there = std::fs::remove_dir(at.parent().unwrap());
            }
        }
    }
    well(&bench, &["add", "-A"]);
    well(&bench, &["commit", "-q", "--allow-empty", "-m", message]);
    let commit = well(&bench, &["rev-parse", "HEAD"]).trim().to_owned();
    well(&bench, &["checkout", "-q", "--detach"]);
    commit
}

/// Returns the commit that a branch names.
pub(super) fn tip(world: &World, name: &str) -> String {
    well(&world.repo(), &["rev-parse", &format!("refs/heads/{name}")]).trim().to_owned()
}

/// A command of a person at a terminal, by its exit code.
pub(super) fn person(world: &World, line: &str, code: i32) -> String {
    let done: Output = at_the_terminal(world, line);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert_eq!(done.status.code(), Some(code), "{line}: {said}");
    said
}

/// The queue, as the own API has it.
pub(super) fn queue(world: &World) -> Vec<Value> {
    let done = world.command(&["merge", "queue", "list", "--json"]).output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// The entry of a branch.
pub(super) fn entry(world: &World, branch: &str) -> Value {
    queue(world).into_iter().find(|it| it["branch"] == branch).unwrap_or(Value::Null)
}
