//! Events that end a lock or a lease by themselves: the commit of the file, also after a refusal with the advice to wait, if a
//! filter writes the file, in a repository within the repository, and if git's refs are in tables; and the end of the host in
//! whose shell the lock was taken.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{CODE, world};
use crate::support::host_hooks::recorded;
use crate::support::repositories::well;
use crate::support::{World, eventually};

const CLAUDE: &str = "claude-2b64a1f3c001";
const CODEX: &str = "codex-9690b4ce6b9e";
const SESSION: &str = "5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c001";

fn both() -> World {
    let world = world("claude");
    world.configure("");
    assert!(world.install_hooks("codex", &[]).status.success());
    world
}

fn commit(repo: &Path, text: &str) {
    well(repo, &["add", "-A"]);
    well(repo, &["commit", "-qm", text]);
}

fn write(world: &World, path: &str) -> Value {
    let mut told = recorded(world, "claude/write");
    told["tool_input"]["file_path"] = json!(world.repo().join(path));
    told["tool_input"]["content"] = json!("other\n");
    told
}

fn holders(world: &World) -> Vec<String> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    locks.as_array().unwrap().iter().map(|it| it["holder"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_was_waited_for_after_a_refusal_is_given_back_with_the_commit_and_what_was_asked_for_stays() {
    let world = both();
    let repo = world.repo();
    world.write("kept.ts", CODE);
    commit(&repo, "one");
    let _daemon = world.start();
    world.goes_on("claude", &recorded(&world, "claude/edit"));
    world.is_refused("codex", &recorded(&world, "codex/apply_patch"));
    world.done(CLAUDE, &["unlock", "src/auth.ts:login"]);
    let taken = world.done(CODEX, &["lock", "src/auth.ts:login", "--wait", "2m"]);
    assert_eq!(taken["lock"]["until_commit"], true, "{taken}");
    let taken = world.done(CODEX, &["lock", "kept.ts:login"]);
    assert_eq!(taken["lock"]["until_commit"], Value::Null, "{taken}");
    let told = world.call("codex", "UserPromptSubmit", &recorded(&world, "codex/user_prompt_submit"));
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.contains("src/auth.ts:login (until it is committed)") && told.contains("kept.ts:login."),
        "{told}"
    );
    // Neither another file's commit ends it, nor a commit of what it was before.
    world.write("more.ts", "x\n");
    commit(&repo, "two");
    let mut patch = recorded(&world, "codex/apply_patch");
    patch["tool_input"]["command"] = json!(
        "*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-export function login(a: string): string { return a }\n\
         +export function login(a: string): string { return a + 1 }\n*** End Patch"
    );
    world.goes_on("codex", &patch);
    world.write("src/auth.ts", &CODE.replace("return a", "return a + 1"));
    world.write("kept.ts", &CODE.replace("return a", "return a + 1"));
    assert_eq!(world.locked(), ["src/auth.ts:login", "kept.ts:login"]);
    commit(&repo, "three");
    eventually("what was waited for", || world.locked() == ["kept.ts:login"]);
    // The advice was for that once.
    world.done(CODEX, &["lock", "src/auth.ts:login"]);
    world.write("src/auth.ts", &CODE.replace("return a", "return a + 2"));
    world.goes_on("claude", &write(&world, "seen.ts"));
    world.write("seen.ts", "other\n");
    commit(&repo, "four");
    eventually("the daemon has looked", || holders(&world) == [CODEX, CODEX]);
}

#[test]
fn a_lock_that_is_taken_in_a_hosts_shell_ends_with_the_host_and_a_persons_does_not() {
    let world = world("claude");
    let _daemon = world.start();
    let mut host = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let mut lock = world.command(&["lock", "src/auth.ts:login"]);
    lock.env("CLAUDE_CODE_SESSION_ID", SESSION).env("CLAUDE_PID", host.id().to_string());
    assert!(lock.output().unwrap().status.success());
    let mut named = world.command(&["lock", "src/auth.ts:logout", "--as", "ada"]);
    named.env("CLAUDE_CODE_SESSION_ID", SESSION).env("CLAUDE_PID", host.id().to_string());
    assert!(named.output().unwrap().status.success());
    assert!(world.command(&["lock", "notes.ipynb"]).output().unwrap().status.success());
    assert_eq!(world.locked().len(), 3);
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the model's", || world.locked() == ["src/auth.ts:logout", "notes.ipynb:"]);
    // A process that is gone is no reason to refuse a lock.
    let mut late = world.command(&["lock", "src/auth.ts:login"]);
    late.env("CLAUDE_CODE_SESSION_ID", SESSION).env("CLAUDE_PID", host.id().to_string());
    assert!(late.output().unwrap().status.success());
}

#[test]
fn files_that_a_filter_writes_are_given_back_with_their_commit_and_no_filter_is_run_for_it() {
    let world = both();
    let repo = world.repo();
    let ran = world.path("ran");
    world.write(".gitattributes", "*.txt filter=big\n");
    world.write("a.txt", "one\n");
    // The daemon's git would leave a trace; this one writes nothing unless it is told to.
    let clean = format!("sh -c 'test -z \"$BY_HAND\" && touch {}; tr a-z A-Z'", ran.display());
    well(&repo, &["config", "filter.big.clean", &clean]);
    well(&repo, &["config", "filter.big.smudge", "tr A-Z a-z"]);
    well(&repo, &["config", "user.name", "Pat"]);
    well(&repo, &["config", "user.email", "pat@example.invalid"]);
    let by_hand = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&repo).env("BY_HAND", "1").status().unwrap();
        assert!(done.success());
    };
    by_hand(&["add", "-A"]);
    by_hand(&["commit", "-qm", "one"]);
    let _daemon = world.start();
    world.goes_on("claude", &write(&world, "a.txt"));
    // Written and committed within one tick of the clock, as a script does it.
    world.write("a.txt", "other\n");
    by_hand(&["commit", "-qam", "two"]);
    eventually("it is free", || world.locked().is_empty());
    // What is changed and not committed stays.
    let mut again = write(&world, "a.txt");
    again["tool_input"]["content"] = json!("changed\n");
    world.goes_on("claude", &again);
    world.goes_on("claude", &write(&world, "b.md"));
    world.write("a.txt", "changed\n");
    world.write("b.md", "other\n");
    by_hand(&["add", "b.md"]);
    by_hand(&["commit", "-qm", "three"]);
    eventually("the other one", || world.locked() == ["a.txt:"]);
    assert!(!ran.exists(), "the daemon has run a filter of the repository");
}

#[test]
fn what_is_written_in_a_submodule_is_given_back_with_the_submodules_commit_and_with_no_other() {
    let world = both();
    let (repo, origin) = (world.repo(), world.path("origin"));
    fs::create_dir(&origin).unwrap();
    well(&origin, &["init", "-q", "-b", "main"]);
    fs::write(origin.join("in.md"), "one\n").unwrap();
    commit(&origin, "one");
    let url = origin.to_str().unwrap();
    well(&repo, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", url, "part"]);
    well(&repo, &["init", "-q", "plain"]);
    world.write("plain/in.md", "one\n");
    commit(&repo.join("plain"), "one");
    well(&repo, &["add", "part", "src"]);
    well(&repo, &["commit", "-qm", "one"]);
    let _daemon = world.start();
    for path in ["part/in.md", "plain/in.md"] {
        world.goes_on("claude", &write(&world, path));
        world.write(path, "other\n");
    }
    assert_eq!(world.locked(), ["part/in.md:", "plain/in.md:"]);
    // A commit of the repository around them is none of theirs.
    world.goes_on("claude", &write(&world, "seen.md"));
    world.write("seen.md", "other\n");
    well(&repo, &["add", "seen.md"]);
    well(&repo, &["commit", "-qm", "two"]);
    eventually("the one outside", || world.locked() == ["part/in.md:", "plain/in.md:"]);
    commit(&repo.join("part"), "two");
    eventually("the submodule's", || world.locked() == ["plain/in.md:"]);
    commit(&repo.join("plain"), "two");
    eventually("the other one's", || world.locked().is_empty());
}

#[test]
fn where_git_keeps_its_refs_in_tables_a_commit_gives_back_as_well() {
    let world = both();
    let repo = world.repo();
    well(&repo, &["refs", "migrate", "--ref-format=reftable"]);
    commit(&repo, "one");
    let _daemon = world.start();
    world.goes_on("claude", &recorded(&world, "claude/edit"));
    world.write("src/auth.ts", &CODE.replace("return a", "return a + 1"));
    well(&repo, &["commit", "-qam", "two"]);
    eventually("it is free", || world.locked().is_empty());
}
