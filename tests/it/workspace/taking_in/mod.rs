//! Taking work in: what a run has changed in its private copy is shown, written in parts or as a whole, and
//! discarded.

mod after_kills;
mod backslash;
mod bounds;
mod discards;
mod jobs;
mod names;
mod parts;
mod personal;
mod whose_yes;

use serde_json::Value;

use crate::support::World;

/// An agent that runs its prompt as a shell script, in a private copy.
pub(super) const AGENT: &str = "[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n";

/// A world with that agent, and with these files in its repository.
pub(super) fn world(files: &[(&str, &str)], more: &str) -> World {
    let world = World::new();
    world.configure(&format!("{AGENT}{more}"));
    for (path, text) in files {
        world.write(path, text);
    }
    world
}

/// Returns the output of a command, which has to end with this exit code.
pub(super) fn ran(world: &World, args: &[&str], code: i32) -> String {
    let done = world.command(args).output().unwrap();
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// Returns the command's standard output alone.
pub(super) fn printed(world: &World, args: &[&str]) -> String {
    let done = world.command(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Has the agent run a script to its end, however that is; the task's id.
pub(super) fn done(world: &World, script: &str) -> String {
    let done =
        world.command(&["delegate", "--worker", "coder", script, "--wait", "--json"]).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    task["id"].as_str().unwrap().to_owned()
}

/// The task as the own API has it.
pub(super) fn task(world: &World, id: &str) -> Value {
    serde_json::from_str(&printed(world, &["task", "show", id, "--json"])).unwrap()
}

/// A file of the workspace; `-` where there is none.
pub(super) fn text(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.repo().join(file)).unwrap_or_else(|_| "-".into())
}

/// How many runs have changes on the disk.
pub(super) fn kept(world: &World) -> usize {
    std::fs::read_dir(world.state_dir().join("artifacts")).map_or(0, Iterator::count)
}
