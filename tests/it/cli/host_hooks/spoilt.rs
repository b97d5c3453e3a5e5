//! Damage by a shell command to other agents' files: removed files, large ones, files of other work trees, and files that are
//! held only since the command runs.

use std::fs;

use serde_json::{Value, json};

use super::{CODE, told, world};
use crate::support::World;
use crate::support::host_hooks::recorded;
use crate::support::repositories::well;

/// A world in which Codex holds what it writes.
fn both() -> World {
    let world = world("claude");
    world.configure("");
    assert!(world.install_hooks("codex", &[]).status.success());
    world.write("src/more.ts", CODE);
    world
}

fn codex_writes(world: &World, path: &str, old: &str, new: &str) {
    let mut told = recorded(world, "codex/apply_patch");
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch");
    told["tool_input"]["command"] = json!(patch);
    world.goes_on("codex", &told);
}

const OLD: &str = "export function login(a: string): string { return a }";
const NEW: &str = "export function login(a: string): string { return a + 1 }";

fn before(world: &World) -> Value {
    told(world, "make")
}

/// Returns the text that the model gets when the command has ended.
fn after(world: &World) -> String {
    let mut after = before(world);
    after["hook_event_name"] = json!("PostToolUse");
    let output = world.call("claude", "PostToolUse", &after);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn kept(said: &str, which: &str) -> String {
    let at = said.split(&format!("{which}: ")).nth(1).unwrap_or_else(|| panic!("{which}: {said}"));
    at.split([';', ')']).next().unwrap().to_owned()
}

#[test]
fn a_file_that_a_command_removes_or_makes_is_told_as_that_and_kept_as_no_empty_one() {
    let world = both();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    world.done("codex-1", &["lock", "src/new.ts"]);
    world.goes_on("claude", &before(&world));
    fs::remove_file(world.repo().join("src/auth.ts")).unwrap();
    let said = after(&world);
    assert_eq!(kept(&said, "after"), "there is no such file");
    assert_eq!(fs::read_to_string(kept(&said, "before")).unwrap(), CODE);
    world.goes_on("claude", &before(&world));
    world.write("src/new.ts", "x\n");
    let said = after(&world);
    assert_eq!(kept(&said, "before"), "there was no such file");
    assert_eq!(fs::read_to_string(kept(&said, "after")).unwrap(), "x\n");
    // An empty file is one.
    world.goes_on("claude", &before(&world));
    world.write("src/new.ts", "");
    assert_eq!(fs::read_to_string(kept(&after(&world), "after")).unwrap(), "");
}

#[test]
fn what_is_held_only_since_the_command_runs_is_told_with_what_its_holder_has_written() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("claude", &before(&world));
    codex_writes(&world, "src/more.ts", OLD, NEW);
    let theirs = CODE.replace(OLD, NEW);
    world.write("src/more.ts", &theirs);
    world.write("src/more.ts", "spoilt\n");
    let said = after(&world);
    assert!(said.contains("codex-9690b4ce6b9e") && said.contains("src/more.ts"), "{said}");
    assert_eq!(fs::read_to_string(kept(&said, "before")).unwrap(), theirs);
    assert_eq!(fs::read_to_string(kept(&said, "after")).unwrap(), "spoilt\n");
    // What the holder writes is no command's.
    world.write("src/more.ts", CODE);
    world.goes_on("claude", &before(&world));
    codex_writes(&world, "src/more.ts", OLD, NEW);
    world.write("src/more.ts", &theirs);
    assert_eq!(after(&world), "");
    // The same before it has written.
    world.write("src/more.ts", CODE);
    world.goes_on("claude", &before(&world));
    codex_writes(&world, "src/more.ts", OLD, NEW);
    assert_eq!(after(&world), "");
}

#[test]
fn a_large_file_is_compared_and_kept_too() {
    let world = both();
    let large = |letter: &str| letter.repeat(5 << 20);
    world.write("large.bin", &large("a"));
    let _daemon = world.start();
    world.done("codex-1", &["lock", "large.bin"]);
    world.goes_on("claude", &before(&world));
    assert_eq!(after(&world), "");
    world.goes_on("claude", &before(&world));
    world.write("large.bin", &large("b"));
    let said = after(&world);
    assert!(said.contains("large.bin"), "{said}");
    assert_eq!(fs::read_to_string(kept(&said, "before")).unwrap(), large("a"));
    assert_eq!(fs::read_to_string(kept(&said, "after")).unwrap(), large("b"));
}

#[test]
fn what_another_agent_writes_in_another_work_tree_is_watched_there() {
    let world = both();
    let repo = world.repo();
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-qm", "one"]);
    let tree = world.path("side");
    well(&repo, &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let tree = fs::canonicalize(tree).unwrap();
    let _daemon = world.start();
    let mut there = recorded(&world, "claude/edit");
    there["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    there["cwd"] = json!(tree);
    there["tool_input"]["file_path"] = json!(tree.join("src/auth.ts"));
    world.goes_on("claude", &there);
    let theirs = CODE.replace(OLD, NEW);
    fs::write(tree.join("src/auth.ts"), &theirs).unwrap();
    world.goes_on("claude", &before(&world));
    // No agent has the same file of this work tree.
    world.write("src/auth.ts", "mine\n");
    fs::write(tree.join("src/auth.ts"), "spoilt\n").unwrap();
    let said = after(&world);
    let place = format!("src/auth.ts:login in {}", tree.display());
    assert!(said.contains("claude-2b64a1f3c002") && said.contains(&place), "{said}");
    assert_eq!(fs::read_to_string(kept(&said, "before")).unwrap(), theirs);
    assert_eq!(fs::read_to_string(kept(&said, "after")).unwrap(), "spoilt\n");
}

#[test]
fn a_link_into_another_work_tree_is_the_file_there_and_not_one_of_its_own_name() {
    let world = both();
    let repo = world.repo();
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-qm", "one"]);
    let tree = world.path("side");
    well(&repo, &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let tree = fs::canonicalize(tree).unwrap();
    std::os::unix::fs::symlink(tree.join("src/auth.ts"), repo.join("link.ts")).unwrap();
    let _daemon = world.start();
    let mut edit = recorded(&world, "claude/edit");
    edit["tool_input"]["file_path"] = json!(repo.join("link.ts"));
    world.goes_on("claude", &edit);
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let place =
        |it: &Value| format!("{} {}", it["symbol"].as_str().unwrap(), it["written_in"].as_str().unwrap());
    let mut places: Vec<String> = locks.as_array().unwrap().iter().map(place).collect();
    places.sort();
    let top = fs::canonicalize(&repo).unwrap();
    let wanted =
        [format!("link.ts:login {}", top.display()), format!("src/auth.ts:login {}", tree.display())];
    assert_eq!(places, wanted);
}

#[cfg(unix)]
#[test]
fn a_write_through_a_hard_link_is_refused_as_one_of_the_file() {
    let world = both();
    fs::hard_link(world.repo().join("src/auth.ts"), world.repo().join("twin.ts")).unwrap();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let mut edit = recorded(&world, "claude/edit");
    edit["tool_input"]["file_path"] = json!(world.repo().join("twin.ts"));
    let why = world.is_refused("claude", &edit);
    assert!(why.contains("src/auth.ts:login"), "{why}");
    world.is_refused("claude", &told(&world, "echo > twin.ts"));
    let mut beside = recorded(&world, "claude/edit_beside");
    beside["tool_input"]["file_path"] = json!(world.repo().join("twin.ts"));
    world.goes_on("claude", &beside);
}

#[test]
fn a_grant_is_named_once_where_a_folder_is_a_link() {
    let world = both();
    std::os::unix::fs::symlink(world.repo().join("src"), world.repo().join("lib")).unwrap();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let mut edit = recorded(&world, "claude/edit");
    edit["tool_input"]["file_path"] = json!(world.repo().join("lib/auth.ts"));
    let why = world.is_refused("claude", &edit);
    assert_eq!(why.matches("by codex-1").count(), 1, "{why}");
}
