//! The answers of locks and intents about calls from and to their symbols, the time of a refresh, the changes of a
//! merge, and the agents that are told of a commit.

use std::fmt::Write as _;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::wit_client::{git, world};
use crate::support::wit_world::{kinds, lock, started};
use crate::support::{World, eventually};

const CODE: &str = "export function top() { return middle() }\n\
                    export function middle() { return bottom() }\n\
                    export function bottom() { return 1 }\n";

fn expiry(row: &Value) -> &str {
    row["expiresAt"].as_str().unwrap()
}

#[test]
fn a_refresh_without_a_time_never_shortens_a_lock() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let long = json!({ "symbolPath": "a.ts:f", "sessionId": "A", "ttlMs": 7_200_000 });
    let first = wit.ask("lock.acquire", long);
    let again = wit.ask("lock.acquire", lock("a.ts:f", "A"));
    assert_eq!(expiry(&again), expiry(&first), "two hours are longer than the usual time");
    let named = json!({ "symbolPath": "a.ts:f", "sessionId": "A", "ttlMs": 60_000 });
    let shorter = wit.ask("lock.acquire", named);
    assert!(expiry(&shorter) < expiry(&first), "a time that its holder names counts");
    let usual = wit.ask("lock.acquire", lock("a.ts:f", "A"));
    assert!(expiry(&usual) > expiry(&shorter), "the usual time is longer than a minute");
}

/// Asks until the repository has been read.
fn when_read(ask: impl Fn() -> Value) -> Value {
    eventually("the repository is read", || !kinds(&ask()["warnings"]).contains(&"INCOMPLETE"));
    ask()
}

#[test]
fn a_lock_names_locked_callees_and_an_intent_locked_callers() {
    let world = world();
    world.write("code.ts", CODE);
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("code.ts:bottom", "A"));
    wit.ask("lock.acquire", lock("code.ts:top", "B"));
    let granted = when_read(|| wit.ask("lock.acquire", lock("code.ts:middle", "C")));
    assert_eq!(kinds(&granted["warnings"]), ["CALLER_LOCKED", "CALLEE_LOCKED"], "{granted}");
    let callee = &granted["warnings"][1];
    assert_eq!(callee["lockedSymbol"], "code.ts:bottom");
    assert_eq!(callee["heldBy"], "A");
    assert_eq!(callee["chain"], json!(["code.ts:middle", "code.ts:bottom"]));
    wit.ask("lock.release", lock("code.ts:middle", "C"));
    let intent = json!({
        "sessionId": "D", "description": "x", "files": ["code.ts"], "symbols": ["middle"],
    });
    let report = wit.ask("intent.declare", intent);
    let items = &report["conflicts"]["items"];
    assert!(kinds(items).contains(&"DEP_CHAIN") && kinds(items).contains(&"LOCKED_CALLER"), "{report}");
}

#[test]
fn a_lock_says_when_the_graph_is_not_whole_or_a_list_was_cut() {
    let world = world();
    world.configure("[coordination]\nindex = false\n");
    world.write("code.ts", CODE);
    let mut many = String::from("export function called() {}\n");
    for number in 0..4_200 {
        writeln!(many, "export function f{number}() {{ called() }}").unwrap();
    }
    world.write("many.ts", &many);
    let (_daemon, wit) = started(&world);
    let granted = wit.ask("lock.acquire", lock("code.ts:middle", "C"));
    assert!(kinds(&granted["warnings"]).contains(&"INCOMPLETE"), "{granted}");
    let granted = wit.ask("lock.acquire", lock("many.ts:called", "C"));
    let told = granted["warnings"].to_string();
    assert!(told.contains("only the first 4096 callers"), "{told}");
}

#[track_caller]
fn goes(done: &Output) -> String {
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{words}");
    words
}

fn as_agent(world: &World, agent: &str, args: &[&str]) -> Output {
    world.git_in(&world.repo(), args).env("PROVOST_AGENT", agent).output().unwrap()
}

#[test]
fn what_a_merge_brings_from_its_other_parent_is_not_the_committers_change() {
    let world = world();
    world.configure("[coordination]\nenforce = \"deny\"\n");
    world.write("ours.ts", "export function ours() { return 1 }\n");
    world.write("theirs.ts", "export function theirs() { return 1 }\n");
    git(&world.repo(), &["add", "-A"]);
    git(&world.repo(), &["commit", "-qm", "two"]);
    git(&world.repo(), &["switch", "-qc", "other"]);
    world.write("theirs.ts", "export function theirs() { return 2 }\n");
    git(&world.repo(), &["commit", "-qam", "theirs"]);
    git(&world.repo(), &["switch", "-q", "-"]);
    world.write("ours.ts", "export function ours() { return 2 }\n");
    git(&world.repo(), &["commit", "-qam", "ours"]);
    let (_daemon, wit) = started(&world);
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    wit.ask("lock.acquire", lock("theirs.ts:theirs", "holder"));
    goes(&as_agent(&world, "merger", &["merge", "-q", "--no-ff", "--no-commit", "other"]));
    // What the committer adds to the merge is the committer's.
    world.write("theirs.ts", "export function theirs() { return 3 }\n");
    git(&world.repo(), &["add", "-A"]);
    let refused = as_agent(&world, "merger", &["commit", "-qm", "merged"]);
    assert!(!refused.status.success(), "{refused:?}");
    world.write("theirs.ts", "export function theirs() { return 2 }\n");
    git(&world.repo(), &["add", "-A"]);
    let words = goes(&as_agent(&world, "merger", &["commit", "-qm", "merged"]));
    assert!(!words.contains("locked"), "{words}");
}

#[test]
fn a_commit_on_a_branch_of_one_word_is_told_of() {
    let world = world();
    let (_daemon, _wit) = started(&world);
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    let tree = world.path("feat-tree");
    git(&world.repo(), &["worktree", "add", "-q", "-b", "feat", tree.to_str().unwrap()]);
    std::fs::write(tree.join("new.ts"), "export function f() {}\n").unwrap();
    git(&tree, &["add", "-A"]);
    let done =
        world.git_in(&tree, &["commit", "-qm", "new"]).env("PROVOST_AGENT", "worker").output().unwrap();
    let words = goes(&done);
    assert!(!words.contains("not told"), "{words}");
    let inbox = world.done("worker", &["agent", "list"]).to_string();
    assert!(inbox.contains("\"feat\""), "{inbox}");
}
