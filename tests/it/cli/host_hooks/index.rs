//! Git's index around shell commands of a host: one session at a time writes it in a work tree.

use serde_json::{Value, json};

use super::world;
use crate::support::World;
use crate::support::host_hooks::recorded;

const CLAUDE: &str = "claude-2b64a1f3c001";

/// A shell command of Claude Code's, before or after it has run.
fn bash(world: &World, session: &str, event: &str, line: &str) -> Value {
    let mut told = recorded(world, "claude/bash");
    told["tool_input"]["command"] = json!(line);
    told["hook_event_name"] = json!(event);
    told["cwd"] = json!(world.repo());
    told["session_id"] = json!(format!("5f0c9b1e-7a52-4c1d-9d0e-{session}"));
    told
}

fn before(world: &World, session: &str, line: &str) -> Value {
    bash(world, session, "PreToolUse", line)
}

#[test]
fn who_stages_is_alone_at_the_index_until_the_command_has_ended() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let _daemon = world.start();
    let (ours, theirs) = ("2b64a1f3c001", "2b64a1f3c002");
    world.goes_on("claude", &before(&world, ours, "git add notes.ipynb && git commit -m x"));
    assert_eq!(world.locked(), ["@git:index"]);
    let why = world.is_refused("claude", &before(&world, theirs, "cd src && git stash"));
    for word in [CLAUDE, "index of this work tree", "lock_acquire", "@git:index"] {
        assert!(why.contains(word), "{word}: {why}");
    }
    // Reading it, and other work, is nobody's business.
    for line in ["git status", "git diff --cached", "git stash list", "git log", "ls", "git add --dry-run x"]
    {
        world.goes_on("claude", &before(&world, theirs, line));
    }
    // Its own session goes on, and its end gives it back.
    world.goes_on("claude", &before(&world, ours, "git status && git add src/auth.ts"));
    assert!(
        world.call("claude", "PostToolUse", &bash(&world, ours, "PostToolUse", "git add x")).status.success()
    );
    assert!(world.locked().is_empty());
    world.goes_on("claude", &before(&world, theirs, "git stash"));
    assert_eq!(world.locked(), ["@git:index"]);
    let failed = bash(&world, theirs, "PostToolUseFailure", "git stash");
    assert!(world.call("claude", "PostToolUseFailure", &failed).status.success());
    assert!(world.locked().is_empty());
}

#[test]
fn what_an_agent_has_of_the_index_by_itself_is_not_given_back_by_a_command() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    let ours = "2b64a1f3c001";
    world.done(CLAUDE, &["lock", "@git:index"]);
    world.goes_on("claude", &before(&world, ours, "git add -A"));
    assert!(
        world
            .call("claude", "PostToolUse", &bash(&world, ours, "PostToolUse", "git add -A"))
            .status
            .success()
    );
    assert_eq!(world.locked(), ["@git:index"]);
    // Commands in other work trees, and in other repositories, write another index.
    let there = format!("git -C {} add -A", tree.display());
    world.goes_on("claude", &before(&world, "2b64a1f3c002", &there));
    world.goes_on("claude", &before(&world, "2b64a1f3c002", "cd /tmp && git add -A"));
    assert_eq!(world.locked(), ["@git:index"]);
}

#[test]
fn the_end_of_a_command_of_codex_gives_back_nothing_that_claude_has_under_the_same_name() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    for host in ["claude", "codex"] {
        assert!(world.install_hooks(host, &["--agent", "pair"]).status.success());
    }
    let _daemon = world.start();
    world.goes_on("claude", &before(&world, "2b64a1f3c001", "git add -A"));
    world.goes_on("codex", &recorded(&world, "codex/make"));
    let ended = world.call("codex", "PostToolUse", &recorded(&world, "codex/make_after"));
    assert!(ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(world.locked(), ["@git:index"]);
}

#[test]
fn a_session_with_two_work_trees_gives_back_the_one_whose_command_has_ended() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    let ours = "2b64a1f3c001";
    let there = |event: &str| {
        let mut told = bash(&world, ours, event, "git add -A");
        told["cwd"] = json!(tree);
        told
    };
    world.goes_on("claude", &before(&world, ours, "git add -A"));
    world.goes_on("claude", &there("PreToolUse"));
    assert_eq!(world.locked().len(), 2);
    assert!(world.call("claude", "PostToolUse", &there("PostToolUse")).status.success());
    assert_eq!(world.locked(), ["@git:index"]);
    let ended = bash(&world, ours, "PostToolUse", "git add -A");
    assert!(world.call("claude", "PostToolUse", &ended).status.success());
    assert!(world.locked().is_empty());
}

#[test]
fn of_two_commands_of_one_session_the_last_one_gives_the_index_back() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let _daemon = world.start();
    let ours = "2b64a1f3c001";
    let call = |event: &str, id: &str, line: &str| {
        let mut told = bash(&world, ours, event, line);
        told["tool_use_id"] = json!(id);
        told
    };
    let ended = |id: &str, line: &str| {
        let told = call("PostToolUse", id, line);
        assert!(world.call("claude", "PostToolUse", &told).status.success());
    };
    world.goes_on("claude", &call("PreToolUse", "toolu_1", "git add -A"));
    world.goes_on("claude", &call("PreToolUse", "toolu_2", "git commit -m x"));
    // A command that writes no index ends meanwhile, and then the first one.
    ended("toolu_3", "ls");
    assert_eq!(world.locked(), ["@git:index"]);
    ended("toolu_1", "git add -A");
    assert_eq!(world.locked(), ["@git:index"]);
    ended("toolu_2", "git commit -m x");
    assert!(world.locked().is_empty());
}
