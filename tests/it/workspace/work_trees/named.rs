//! Files in the workspace that git's configuration names stay as they are in a work tree, and in its commit, if they are
//! named by any path; and names that mean other files elsewhere delete nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{AGENT, git, on, tree_of, world};
use crate::support::World;
use crate::support::terminal::at_the_terminal;

const NAMED: [&str; 4] = ["cfg.inc", "scripts/x.sh", "scripts/fsm.sh", "tools/gh/pre-commit"];

/// A repository with files that its configuration is to name.
fn with_named() -> World {
    let world = world(&NAMED.map(|it| (it, "#!/bin/sh\nexit 0\n")));
    world.write("cfg.inc", "");
    for file in &NAMED[1..] {
        fs::set_permissions(world.repo().join(file), fs::Permissions::from_mode(0o755)).unwrap();
    }
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-q", "-m", "more"]);
    world
}

/// A run tries to write all of them; the files of its commit.
fn committed(world: &World, branch: &str) -> String {
    let _daemon = world.start();
    let script = "for f in cfg.inc scripts/x.sh scripts/fsm.sh tools/gh/pre-commit; do echo '# worker' >> $f; done; echo ok > ok";
    let task = on(world, branch, script);
    let tree = tree_of(&task);
    assert!(tree["commit"].is_string(), "{task:#}");
    git(world, &["diff", "--name-only", "main", branch])
}

#[test]
fn what_the_configuration_names_by_absolute_paths_is_held_in_a_work_tree_too() {
    let world = with_named();
    let top = world.repo().display().to_string();
    for (key, value) in [
        ("include.path", format!("{top}/cfg.inc")),
        ("core.hooksPath", format!("{top}/tools/gh")),
        ("alias.x", format!("!{top}/scripts/x.sh")),
        ("core.fsmonitor", format!("{top}/scripts/fsm.sh")),
    ] {
        git(&world, &["config", key, &value]);
    }
    assert_eq!(committed(&world, "feat/w"), "ok");
}

#[test]
fn an_include_that_counts_from_the_repository_is_held_in_a_work_tree_too() {
    let world = with_named();
    git(&world, &["config", "include.path", "../cfg.inc"]);
    let files = committed(&world, "feat/w");
    assert!(!files.lines().any(|it| it == "cfg.inc"), "{files}");
}

#[test]
fn what_is_named_through_a_link_to_the_workspace_is_held() {
    let world = with_named();
    let link = world.path("link");
    symlink(world.repo(), &link).unwrap();
    git(&world, &["config", "core.hooksPath", &format!("{}/tools/gh", link.display())]);
    git(&world, &["config", "alias.x", &format!("!{}/scripts/x.sh", link.display())]);
    let files = committed(&world, "feat/w");
    assert!(!files.contains("pre-commit") && !files.contains("x.sh"), "{files}");
    // In the workspace itself as well.
    let write = ["delegate", "--worker", "shell", "echo x >> tools/gh/pre-commit", "--wait"];
    let done = world.command(&write).output().unwrap();
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert!(said.contains("Read-only file system"), "{said}");
}

#[test]
fn what_another_work_tree_of_the_users_is_named_by_is_held() {
    let world = with_named();
    let other = world.path("other");
    git(&world, &["worktree", "add", "-q", "-b", "theirs", other.to_str().unwrap()]);
    git(&world, &["config", "core.hooksPath", &format!("{}/tools/gh", other.display())]);
    let files = committed(&world, "feat/w");
    assert!(!files.contains("pre-commit"), "{files}");
}

#[test]
fn a_name_with_a_backslash_deletes_no_other_file() {
    let world = world(&[("back/slash", "same\n"), ("back\\slash", "same\n"), ("d:e/x", "y\n")]);
    let kept = "[workers.kept]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = \"kept\"\n";
    world.configure(&[AGENT, kept].concat());
    let _daemon = world.start();
    on(&world, "t1", "echo hi > z");
    assert_eq!(git(&world, &["diff", "--name-status", "main", "t1"]), "A\tz");
    // One run leaves a file that the next one's commit would take for another file.
    on(&world, "t2", "echo same > 'back\\new'; mkdir -p back; echo same > back/new; echo 1 > one");
    on(&world, "t2", "echo 2 > two");
    let changed = git(&world, &["diff", "--name-status", "main", "t2"]);
    assert!(changed.contains("A\tback/new") && !changed.contains('D'), "{changed}");
    // In a private copy.
    let done =
        world.command(&["delegate", "--worker", "kept", "echo hi > y", "--wait", "--json"]).output().unwrap();
    let task: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let said = at_the_terminal(&world, &format!("apply {}", task["id"].as_str().unwrap()));
    let said = format!("{said:?}");
    assert!(world.repo().join("back/slash").exists() && world.repo().join("back\\slash").exists(), "{said}");
    assert!(world.repo().join("y").exists(), "{said}");
}
