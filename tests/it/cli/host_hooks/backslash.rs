//! A backslash is an ordinary character of a name on Unix: a file that has one is never taken for another file.

use serde_json::json;

use super::world;
use crate::support::host_hooks::recorded;
use crate::support::mcp_host::Host;
use crate::support::repositories::well;

/// The name of a file, and what it would mean if its backslash were a slash.
const ODD: &str = "src\\auth.ts";
const OTHER: &str = "src/auth.ts";

#[test]
fn a_write_to_a_file_with_a_backslash_in_its_name_is_refused_with_a_sentence_and_holds_no_other_file() {
    let world = world("claude");
    world.configure("");
    assert!(world.install_hooks("codex", &[]).status.success());
    world.write(ODD, "x\n");
    let _daemon = world.start();
    let mut told = recorded(&world, "claude/write");
    told["tool_input"]["content"] = json!("y\n");
    // One that is there, one that is to be made, and a link that leads to one.
    std::os::unix::fs::symlink(ODD, world.repo().join("link.ts")).unwrap();
    for name in [ODD, "new\\file.md", "link.ts"] {
        told["tool_input"]["file_path"] = json!(world.repo().join(name));
        let why = world.is_refused("claude", &told);
        assert!(why.contains("a backslash in a name counts as a slash"), "{name}: {why}");
        assert!(world.locked().is_empty(), "{name}");
    }
    let mut patch = recorded(&world, "codex/apply_patch");
    let text = format!("*** Begin Patch\n*** Update File: {ODD}\n@@\n-x\n+y\n*** End Patch");
    patch["tool_input"]["command"] = json!(text);
    assert!(world.is_refused("codex", &patch).contains("src\\auth.ts"));
    // What a command does to it is nothing to who has the other file.
    world.done("codex-1", &["lock", OTHER]);
    let mut command = recorded(&world, "claude/bash");
    (command["cwd"], command["tool_input"]["command"]) = (json!(world.repo()), json!("rm 'src\\auth.ts'"));
    world.goes_on("claude", &command);
    command["tool_input"]["command"] = json!("rm src/auth.ts");
    world.is_refused("claude", &command);
}

#[test]
fn a_lock_on_a_file_with_a_backslash_in_its_name_is_refused_and_none_is_taken_of_another_file() {
    let world = world("claude");
    world.write(ODD, "x\n");
    let _daemon = world.start();
    for typed in [ODD, "src\\auth.ts:login"] {
        let (code, said) = world.ask("ada", &["lock", typed]);
        assert_eq!(code, 2, "{said}");
        assert!(said.to_string().contains("a backslash in a name counts as a slash"), "{said}");
    }
    let mut host = Host::old(&world, "claude-1");
    for symbol in [ODD.to_owned(), format!("{ODD}:login"), world.repo().join(ODD).display().to_string()] {
        let said = host.fails("lock_acquire", json!({ "symbol": symbol, "reason": "it changes" }));
        assert!(said.contains("a backslash in a name counts as a slash"), "{symbol}: {said}");
    }
    assert!(world.locked().is_empty());
    // Where no file is called so, it is a path as clients on Windows write it.
    host.does("lock_acquire", json!({ "symbol": "src\\more.ts", "reason": "it changes" }));
    assert_eq!(world.locked(), ["src/more.ts:"]);
}

#[test]
fn a_commit_of_a_file_with_a_backslash_in_its_name_passes_beside_what_others_hold() {
    let world = world("claude");
    let repo = world.repo();
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    let _daemon = world.start();
    world.done("codex-1", &["lock", OTHER]);
    world.write(ODD, "x\n");
    well(&repo, &["add", ODD]);
    well(&repo, &["-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-qm", "one"]);
    assert_eq!(world.locked(), ["src/auth.ts:"]);
}
