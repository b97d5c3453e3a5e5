//! The form for one task: `claude -p`, `codex exec`, and a failure that is explained.

use serde_json::json;

use super::{CLAUDE, CODEX, Program, Set, claimed, last, look, order, said, with_programs};
use crate::support::World;

#[track_caller]
fn works(program: Program) {
    let set = Set::up(program, &["--one-shot"], &[]);
    let before = set.model.heard().len();
    let task = set.done(&order(&format!("[[write made.txt hi]] {}", look())));
    assert_eq!(task["state"], "completed", "{task:#}");
    assert_eq!(set.paths(&task), ["made.txt", "seen.txt"], "{task:#}\n{}", set.model.results());
    let changed = set.changed(&task);
    assert!(changed.contains("+hi\n") && changed.contains("+key: []\n"), "{changed}");
    set.brought_the_key();
    let used = last(&task, "metadata");
    let found = json!([used["tokens_input"], used["tokens_cache_read"], used["tokens_output"]]);
    assert_eq!(found, claimed(&set.model.heard()[before..]), "{used:#}");
}

#[test]
fn claude_does_one_task_and_ends() {
    works(CLAUDE);
}

#[test]
fn codex_does_one_task_and_ends() {
    works(CODEX);
}

/// A program whose adapter is not there is added for one task, and the command says so.
#[test]
fn without_its_adapter_a_program_is_added_for_one_task() {
    let world = World::new();
    let bare = world.path("bare");
    std::fs::create_dir(&bare).unwrap();
    let claude = super::folders()[1].join("claude");
    std::os::unix::fs::symlink(claude, bare.join("claude")).unwrap();
    let mut add = with_programs(&world, &["agent", "add", "claude", "--key-from", "MY_KEY", "--dry-run"]);
    add.env("PATH", format!("{}:/usr/bin:/bin", bare.display())).env("MY_KEY", super::key());
    let text = said(&add.output().unwrap());
    assert!(text.contains("stream = \"claude-json\""), "{text}");
    assert!(text.contains("no folder of PATH has its adapter `claude-agent-acp`"), "{text}");
    let text = said(&add.args(["--asks"]).output().unwrap());
    assert!(text.contains("can be had to ask only through its adapter"), "{text}");
}
