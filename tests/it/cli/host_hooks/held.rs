//! An agent holds for a while the symbols that it writes: no model has to remember a lock.

use std::fs;

use serde_json::{Value, json};

use super::{CODE, command_of, finish, start, world};
use crate::support::desk::ask;
use crate::support::host_hooks::recorded;
use crate::support::repositories::well;
use crate::support::{World, eventually};

pub(super) const CLAUDE: &str = "claude-2b64a1f3c001";
const CODEX: &str = "codex-9690b4ce6b9e";

/// A world with the hooks of Claude Code and Codex.
fn both() -> World {
    let world = world("claude");
    world.configure("");
    assert!(world.install_hooks("codex", &[]).status.success());
    world
}

pub(super) fn claude(world: &World, name: &str) -> Value {
    recorded(world, &format!("claude/{name}"))
}

fn codex(world: &World, name: &str) -> Value {
    recorded(world, &format!("codex/{name}"))
}

/// The same call in another session.
pub(super) fn other(mut told: Value) -> Value {
    told["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    told
}

/// An edit of Claude Code's.
fn edit(world: &World, old: &str, new: &str) -> Value {
    let mut told = claude(world, "edit");
    told["tool_input"]["old_string"] = json!(old);
    told["tool_input"]["new_string"] = json!(new);
    told
}

/// Returns the held symbols, each with its holder.
pub(super) fn held(world: &World) -> Vec<String> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let line = |it: &Value| format!("{} {}", it["symbol"].as_str().unwrap(), it["holder"].as_str().unwrap());
    let mut lines: Vec<String> = locks.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn what_claude_writes_codex_cannot_write_and_is_told_by_whom_and_what_to_do() {
    let world = both();
    let _daemon = world.start();
    world.done(CLAUDE, &["intent", "declare", "tokens that expire", "--file", "src/auth.ts"]);
    world.goes_on("claude", &claude(&world, "edit"));
    assert_eq!(held(&world), [format!("src/auth.ts:login {CLAUDE}")]);
    let why = world.is_refused("codex", &codex(&world, "apply_patch"));
    let wait = r#"lock_acquire with {"symbol":"src/auth.ts:login","wait_s":45}"#;
    let write = format!(r#"message_send with {{"text":"...","to":"{CLAUDE}"}}"#);
    for word in [
        &format!("being written: src/auth.ts:login by {CLAUDE} since "),
        "tokens that expire",
        "Work on something else",
        wait,
        &write,
        &format!("you are {CODEX}"),
    ] {
        assert!(why.contains(word), "{word}: {why}");
    }
    // Nothing of a refused patch is taken, not even the file that it would have made.
    assert_eq!(held(&world), [format!("src/auth.ts:login {CLAUDE}")]);
    // The writer goes on.
    world.goes_on("claude", &claude(&world, "edit"));
}

#[test]
fn two_functions_of_one_file_are_written_side_by_side_and_a_new_one_too() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    world.goes_on("codex", &codex(&world, "apply_patch_beside"));
    // A new function with its comment, beside both of them.
    let last = "export function logout(b: string): string { return b }\n";
    let new = format!("{last}\n// Says who is there.\nexport function who(): string {{ return '' }}\n");
    world.goes_on("claude", &other(edit(&world, last, &new)));
    let all = [
        format!("src/auth.ts:login {CLAUDE}"),
        format!("src/auth.ts:logout {CODEX}"),
        "src/auth.ts:who claude-2b64a1f3c002".to_owned(),
    ];
    assert_eq!(held(&world), all);
    // What belongs to a function is held with it.
    let first = "export function login";
    world.is_refused("claude", &other(edit(&world, first, &format!("// Mine.\n{first}"))));
    let import = format!("import x from 'x'\n\n// Mine.\n{first}");
    world.is_refused("claude", &other(edit(&world, first, &import)));
}

#[test]
fn what_is_held_is_not_removed_or_moved() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    let login = "export function login(a: string): string { return a }\n\n";
    world.is_refused("claude", &other(edit(&world, login, "")));
    let mut moved = other(claude(&world, "write"));
    let (first, second) = CODE.split_once("\n\n").unwrap();
    moved["tool_input"]["content"] = json!(format!("{second}\n{first}\n"));
    world.is_refused("claude", &moved);
    let mut patch = codex(&world, "apply_patch");
    for text in [
        "*** Begin Patch\n*** Delete File: src/auth.ts\n*** End Patch",
        "*** Begin Patch\n*** Update File: src/auth.ts\n*** Move to: src/b.ts\n*** End Patch",
    ] {
        patch["tool_input"]["command"] = json!(text);
        world.is_refused("codex", &patch);
    }
    assert_eq!(held(&world), [format!("src/auth.ts:login {CLAUDE}")]);
}

#[test]
fn a_change_outside_of_functions_and_what_is_no_code_is_held_as_a_whole() {
    let world = both();
    let _daemon = world.start();
    let first = "export function login";
    world.goes_on("claude", &edit(&world, first, &format!("import {{ x }} from './x'\n\n{first}")));
    world.goes_on("claude", &claude(&world, "notebook_edit"));
    assert_eq!(held(&world), [format!("notes.ipynb: {CLAUDE}"), format!("src/auth.ts: {CLAUDE}")]);
    world.is_refused("codex", &codex(&world, "apply_patch_beside"));
    world.is_refused("claude", &other(claude(&world, "notebook_edit")));
}

#[test]
fn an_edit_that_the_host_will_refuse_itself_takes_nothing() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("claude", &edit(&world, "nothing like it", "x"));
    world.goes_on("claude", &edit(&world, "return", "yield"));
    let mut patch = codex(&world, "apply_patch");
    patch["tool_input"]["command"] =
        json!("*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-nothing like it\n+x\n*** End Patch");
    world.goes_on("codex", &patch);
    assert!(held(&world).is_empty());
    // Codex does not mind blanks.
    patch["tool_input"]["command"] = json!(
        "*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-  export function logout(b: string): string { return b }\n\
         +export function logout(b: string): string { return 'b' }\n*** End Patch"
    );
    world.goes_on("codex", &patch);
    assert_eq!(held(&world), [format!("src/auth.ts:logout {CODEX}")]);
}

#[test]
fn files_with_errors_of_syntax_binary_and_huge_ones_are_held() {
    let world = both();
    let _daemon = world.start();
    // What is being written need not parse: the function around the change is held.
    world.goes_on("claude", &edit(&world, "return a }", "return a + "));
    assert_eq!(held(&world), [format!("src/auth.ts:login {CLAUDE}")]);
    world.done(CLAUDE, &["unlock", "src/auth.ts:login"]);
    world.write("src/auth.ts", "export function login( {{{\n");
    world.goes_on("claude", &edit(&world, "login(", "login(a"));
    assert_eq!(held(&world), [format!("src/auth.ts: {CLAUDE}")]);
    world.done(CLAUDE, &["unlock", "src/auth.ts"]);
    fs::write(world.repo().join("src/auth.ts"), [0xff, 0x00, 0xfe]).unwrap();
    world.goes_on("claude", &claude(&world, "edit"));
    assert_eq!(held(&world), [format!("src/auth.ts: {CLAUDE}")]);
    world.done(CLAUDE, &["unlock", "src/auth.ts"]);
    world.write("src/auth.ts", &"// huge\n".repeat(1 << 20));
    world.goes_on("claude", &edit(&world, "huge", "large"));
    assert_eq!(held(&world), [format!("src/auth.ts: {CLAUDE}")]);
    world.is_refused("codex", &codex(&world, "apply_patch_beside"));
}

#[cfg(unix)]
#[test]
fn a_file_is_held_under_the_name_to_which_links_lead() {
    let world = both();
    let _daemon = world.start();
    std::os::unix::fs::symlink("auth.ts", world.repo().join("src/link.ts")).unwrap();
    let mut told = claude(&world, "edit");
    told["tool_input"]["file_path"] = json!(world.repo().join("src/link.ts"));
    world.goes_on("claude", &told);
    assert_eq!(held(&world), [format!("src/auth.ts:login {CLAUDE}")]);
    world.is_refused("codex", &codex(&world, "apply_patch"));
}

#[test]
fn of_two_that_write_the_same_at_once_one_gets_it() {
    let world = both();
    let _daemon = world.start();
    for round in 0..8 {
        let (a, b) = (claude(&world, "edit"), other(claude(&world, "edit")));
        let said: Vec<Option<String>> = std::thread::scope(|scope| {
            let asked = [&a, &b].map(|told| scope.spawn(|| world.objection("claude", told)));
            asked.map(|it| it.join().unwrap()).into_iter().collect()
        });
        assert_eq!(said.iter().filter(|it| it.is_none()).count(), 1, "round {round}: {said:?}");
        let holder = held(&world)[0].split(' ').next_back().unwrap().to_owned();
        assert_eq!(held(&world).len(), 1);
        world.done(&holder, &["unlock", "src/auth.ts:login"]);
    }
}

#[test]
fn a_lease_that_its_holder_asks_for_is_a_lock_and_announcements_and_silence_are_settings() {
    let world = both();
    world.configure("[coordination]\nauto = \"announce\"\n");
    let daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    assert_eq!(held(&world).len(), 1);
    // Told, and not stopped.
    let said = world.call("codex", "PreToolUse", &codex(&world, "apply_patch"));
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("has been writing src/auth.ts:login since") && !said.contains("deny"), "{said}");
    // Who asks gets it from who has only announced.
    world.done("ada", &["lock", "src/auth.ts:login"]);
    world.is_refused("claude", &claude(&world, "edit"));
    world.done("ada", &["unlock", "src/auth.ts:login"]);
    drop(daemon);
    world.configure("[coordination]\nauto = \"off\"\n");
    let _daemon = world.start();
    world.goes_on("claude", &other(claude(&world, "edit_beside")));
    assert!(!held(&world).iter().any(|it| it.contains("logout")), "{:?}", held(&world));
}

/// Returns the text that a hook gives a model without a refusal.
pub(super) fn told_by(world: &World, host: &str, event: &str, told: &Value) -> String {
    let output = world.call(host, event, told);
    assert!(output.status.success(), "{output:?}");
    if output.stdout.is_empty() {
        return String::new();
    }
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], told["hook_event_name"], "{said}");
    said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_that_ends_gives_back_what_it_wrote_and_a_turn_that_ends_does_not() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    let mut prompt = claude(&world, "session_start");
    prompt["hook_event_name"] = json!("UserPromptSubmit");
    let said = told_by(&world, "claude", "UserPromptSubmit", &prompt);
    assert!(said.contains("still hold") && said.contains("src/auth.ts:login"), "{said}");
    assert_eq!(told_by(&world, "claude", "UserPromptSubmit", &other(prompt.clone())), "");
    assert_eq!(held(&world).len(), 1);
    // A lock that it took, as a refusal advises, ends with no commit.
    world.done(CLAUDE, &["lock", "src/auth.ts:logout"]);
    let said = told_by(&world, "claude", "UserPromptSubmit", &prompt);
    assert!(said.contains("locks that you took: src/auth.ts:logout. A commit does not end them"), "{said}");
    world.call("claude", "SessionEnd", &claude(&world, "session_end"));
    assert!(held(&world).is_empty());
    // A hook that is called late takes what ends with its host, or its time.
    world.goes_on("claude", &claude(&world, "edit"));
    world.call("claude", "SessionEnd", &claude(&world, "session_end"));
    world.call("claude", "SessionEnd", &claude(&world, "session_end"));
    assert!(held(&world).is_empty());
}

#[test]
fn what_a_host_wrote_that_was_killed_is_free() {
    let world = both();
    let _daemon = world.start();
    let told = world.path("told.json");
    fs::write(&told, claude(&world, "edit").to_string()).unwrap();
    let line = command_of(&world, "claude", "PreToolUse");
    // A process that starts the hook and goes on.
    let host = format!("({line}) < '{}'; echo; cat", told.display());
    let mut host = start(&world, &host, &world.repo());
    eventually("the lease", || held(&world).len() == 1);
    world.is_refused("codex", &codex(&world, "apply_patch"));
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("its end", || held(&world).is_empty());
    world.goes_on("codex", &codex(&world, "apply_patch"));
}

#[test]
fn a_lease_ends_when_nothing_is_written_for_its_time() {
    let world = both();
    world.configure("[coordination]\nauto_ttl = \"1s\"\n");
    let _daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    eventually("its end", || held(&world).is_empty());
    let log = world.command(&["log", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&log.stdout).contains("its time was up"), "{log:?}");
    world.goes_on("codex", &codex(&world, "apply_patch"));
}

/// The same world with everything committed.
fn committed() -> World {
    let world = both();
    let repo = world.repo();
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-qm", "one"]);
    world
}

#[test]
fn what_is_committed_is_given_back_and_what_is_not_stays() {
    let world = committed();
    let _daemon = world.start();
    let repo = world.repo();
    let mut more = other(claude(&world, "write"));
    more["tool_input"]["file_path"] = json!(repo.join("src/more.ts"));
    world.goes_on("claude", &more);
    // Allowed by nobody yet: nothing was written there.
    world.goes_on("codex", &codex(&world, "apply_patch_beside"));
    world.goes_on("claude", &claude(&world, "edit"));
    assert_eq!(held(&world).len(), 3);
    world.write("src/auth.ts", &CODE.replace("return a", "return a + 1"));
    well(&repo, &["add", "src/auth.ts"]);
    well(&repo, &["commit", "-qm", "two"]);
    let mine = format!("src/auth.ts:login {CLAUDE}");
    eventually("what is committed", || !held(&world).contains(&mine));
    assert!(held(&world).contains(&"src/more.ts: claude-2b64a1f3c002".to_owned()), "{:?}", held(&world));
    world.goes_on("codex", &codex(&world, "apply_patch_beside"));
    // Written again, and committed again.
    world.goes_on("claude", &edit(&world, "return a + 1", "return a + 2"));
    assert!(held(&world).contains(&mine), "{:?}", held(&world));
    world.write("src/auth.ts", &CODE.replace("return a", "return a + 2"));
    well(&repo, &["commit", "-qam", "three"]);
    eventually("the second", || !held(&world).contains(&mine));
}

#[test]
fn a_deleted_file_is_given_back_when_its_deletion_is_committed_and_a_file_still_to_be_made_is_not() {
    let world = committed();
    let _daemon = world.start();
    let repo = world.repo();
    let mut more = other(claude(&world, "write"));
    more["tool_input"]["file_path"] = json!(repo.join("src/more.ts"));
    world.goes_on("claude", &more);
    let mut gone = codex(&world, "apply_patch");
    gone["tool_input"]["command"] = json!("*** Begin Patch\n*** Delete File: src/auth.ts\n*** End Patch\n");
    world.goes_on("codex", &gone);
    assert_eq!(held(&world).len(), 2, "{:?}", held(&world));
    well(&repo, &["rm", "-q", "src/auth.ts"]);
    well(&repo, &["commit", "-qm", "without"]);
    eventually("what was deleted", || held(&world).len() == 1);
    assert_eq!(held(&world), ["src/more.ts: claude-2b64a1f3c002"]);
}

#[test]
fn an_edit_that_its_host_carries_out_by_other_quotes_or_escapes_holds_the_file() {
    let world = committed();
    world.write("src/quotes.ts", "export const f = () => “x”;\nexport const g = 1;\n");
    let _daemon = world.start();
    let mut told = edit(&world, "f = () => \"x\"", "f = () => \"y\"");
    told["tool_input"]["file_path"] = json!(world.repo().join("src/quotes.ts"));
    world.goes_on("claude", &told);
    assert_eq!(held(&world), [format!("src/quotes.ts: {CLAUDE}")]);
    let told = other(edit(&world, "return \\u0061", "return b"));
    world.goes_on("claude", &told);
    assert!(held(&world).contains(&"src/auth.ts: claude-2b64a1f3c002".to_owned()), "{:?}", held(&world));
    // What its host refuses, because there is nothing like it, holds nothing.
    world.write("src/third.ts", "export const h = 1;\n");
    let mut told = edit(&world, "nothing like it", "x");
    told["tool_input"]["file_path"] = json!(world.repo().join("src/third.ts"));
    world.goes_on("claude", &told);
    assert_eq!(held(&world).len(), 2, "{:?}", held(&world));
}

#[test]
fn in_another_work_tree_what_is_written_is_told_and_stops_nobody() {
    let world = committed();
    let tree = world.path("side");
    well(&world.repo(), &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let _daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    let mut there = other(claude(&world, "edit"));
    there["cwd"] = json!(tree);
    there["tool_input"]["file_path"] = json!(tree.join("src/auth.ts"));
    let said = told_by(&world, "claude", "PreToolUse", &there);
    assert!(said.contains(&format!("{CLAUDE} has been writing src/auth.ts:login since")), "{said}");
    let mut beside = other(claude(&world, "edit_beside"));
    beside["cwd"] = json!(tree);
    beside["tool_input"]["file_path"] = json!(tree.join("src/auth.ts"));
    world.goes_on("claude", &beside);
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let of_logout =
        locks.as_array().unwrap().iter().find(|it| it["symbol"] == "src/auth.ts:logout").unwrap().clone();
    assert_eq!(of_logout["written_in"], json!(fs::canonicalize(&tree).unwrap()));
    // And the other way round.
    assert!(told_by(&world, "codex", "PreToolUse", &codex(&world, "apply_patch_beside")).contains("writing"));
}

#[test]
fn a_file_is_held_in_the_work_tree_in_which_it_lies_and_not_where_its_writer_runs() {
    let world = committed();
    let tree = world.path("side");
    well(&world.repo(), &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let _daemon = world.start();
    let mut there = claude(&world, "edit");
    there["tool_input"]["file_path"] = json!(tree.join("src/auth.ts"));
    world.goes_on("claude", &there);
    let mut same = other(there.clone());
    same["cwd"] = json!(tree);
    world.is_refused("claude", &same);
    // The file of the main work tree is another one: its writer is told, and goes on.
    let said = told_by(&world, "claude", "PreToolUse", &other(claude(&world, "edit")));
    assert!(said.contains("side") && said.contains("has been writing"), "{said}");
}

#[test]
fn two_agents_of_one_work_tree_are_held_apart_also_where_a_third_one_writes_in_another() {
    let world = committed();
    let tree = world.path("side");
    well(&world.repo(), &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let daemon = world.start();
    world.goes_on("claude", &claude(&world, "edit"));
    let in_tree = |mut told: Value| {
        told["cwd"] = json!(tree);
        told["tool_input"]["file_path"] = json!(tree.join("src/auth.ts"));
        told
    };
    let there = in_tree(other(claude(&world, "edit")));
    assert!(told_by(&world, "claude", "PreToolUse", &there).contains(CLAUDE), "told, and let through");
    let mut third = in_tree(claude(&world, "edit"));
    third["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c003");
    world.is_refused("claude", &third);
    let both = [CLAUDE, "claude-2b64a1f3c002"].map(|it| format!("src/auth.ts:login {it}"));
    assert_eq!(held(&world), both);
    // Kept over a restart, each one's own.
    drop(daemon);
    let _daemon = world.start();
    assert_eq!(held(&world), both);
    world.is_refused("claude", &third);
    // Each goes on writing in its own tree, and gives back its own.
    assert!(told_by(&world, "claude", "PreToolUse", &claude(&world, "edit")).contains("claude-2b64a1f3c002"));
    world.done("claude-2b64a1f3c002", &["unlock", "src/auth.ts:login"]);
    assert_eq!(held(&world), both[..1]);
    assert!(told_by(&world, "claude", "PreToolUse", &third).contains(CLAUDE), "told, and let through");
    world.is_refused("claude", &there);
    // Committed in its tree, it is given back there alone.
    fs::write(tree.join("src/auth.ts"), CODE.replace("return a", "return a + 1")).unwrap();
    well(&tree, &["commit", "-qam", "one"]);
    eventually("the third's", || held(&world) == both[..1]);
}

#[test]
fn subagents_of_a_session_stop_each_other_only_if_the_settings_say_so() {
    let world = both();
    let daemon = world.start();
    let of = |part: &str| {
        let mut told = claude(&world, "edit");
        told["agent_id"] = json!(part);
        told
    };
    world.goes_on("claude", &of("one"));
    world.goes_on("claude", &of("two"));
    world.goes_on("claude", &claude(&world, "edit"));
    drop(daemon);
    world.configure("[coordination]\nauto_subagents = true\n");
    let _daemon = world.start();
    world.done(CLAUDE, &["unlock", "src/auth.ts:login"]);
    world.goes_on("claude", &of("one"));
    world.goes_on("claude", &of("one"));
    let why = world.is_refused("claude", &of("two"));
    assert!(
        why.contains("another subagent of your session") && why.contains("do not take it with lock_acquire"),
        "{why}"
    );
    assert!(!why.contains("message_send"), "{why}");
    world.is_refused("claude", &claude(&world, "edit"));
    world.is_refused("codex", &codex(&world, "apply_patch"));
}

#[test]
fn without_a_daemon_writes_pass_or_not_as_the_settings_say() {
    let world = both();
    let line = command_of(&world, "claude", "PreToolUse");
    let told = claude(&world, "edit").to_string();
    for (when_down, passes) in [("pass", true), ("block", false)] {
        world.configure(&format!("[hooks]\nwhen_down = \"{when_down}\"\n"));
        let output = finish(start(&world, &line, &world.repo()), told.as_bytes());
        assert_eq!(output.stdout.is_empty(), passes, "{output:?}");
        assert!(passes || String::from_utf8_lossy(&output.stdout).contains("when_down"), "{output:?}");
        assert_eq!(world.command(&["status"]).output().unwrap().status.code(), Some(3), "none was started");
    }
}

#[test]
fn what_a_shell_command_overwrites_is_told_on_both_sides_and_kept() {
    let world = both();
    let _daemon = world.start();
    world.goes_on("codex", &codex(&world, "apply_patch_beside"));
    let written = CODE.replace("return b", "return b + 1");
    world.write("src/auth.ts", &written);
    let mut before = claude(&world, "bash");
    before["cwd"] = json!(world.repo());
    before["tool_input"]["command"] = json!("make");
    let mut after = before.clone();
    after["hook_event_name"] = json!("PostToolUse");
    world.goes_on("claude", &before);
    let spoilt = written.replace("return b + 1", "return 0");
    world.write("src/auth.ts", &spoilt);
    let said = told_by(&world, "claude", "PostToolUse", &after);
    assert!(
        said.contains(CODEX) && said.contains("src/auth.ts:logout") && said.contains("it was told"),
        "{said}"
    );
    let at =
        |which: &str| said.split(&format!("{which}: ")).nth(1).unwrap().split([';', ')']).next().unwrap();
    assert_eq!(fs::read_to_string(at("before")).unwrap(), written);
    assert_eq!(fs::read_to_string(at("after")).unwrap(), spoilt);
    let inbox = ask(&world, CODEX, "POST /read-inbox", &json!({})).1.to_string();
    assert!(inbox.contains("has changed what you hold") && inbox.contains("src/auth.ts:logout"), "{inbox}");
    // Told once; and not of what nobody holds, or what the holder writes itself meanwhile.
    assert_eq!(told_by(&world, "claude", "PostToolUse", &after), "");
    before["tool_use_id"] = json!("another");
    after["tool_use_id"] = json!("another");
    world.goes_on("claude", &before);
    world.write("src/auth.ts", &spoilt.replace("return a", "return 1"));
    assert_eq!(told_by(&world, "claude", "PostToolUse", &after), "");
    let mut own = codex(&world, "apply_patch_beside");
    own["tool_input"]["command"] = json!(
        "*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-export function logout(b: string): string { return 0 }\n\
         +export function logout(b: string): string { return 7 }\n*** End Patch"
    );
    world.goes_on("claude", &before);
    world.goes_on("codex", &own);
    let text = fs::read_to_string(world.repo().join("src/auth.ts")).unwrap();
    world.write("src/auth.ts", &text.replace("return 0", "return 7"));
    assert_eq!(told_by(&world, "claude", "PostToolUse", &after), "");
}

#[test]
fn what_others_hold_is_put_aside_without_waiting_for_a_pipe_and_without_following_a_link_out() {
    let world = both();
    let _daemon = world.start();
    let made = std::process::Command::new("mkfifo").arg(world.repo().join("pipe")).status().unwrap();
    assert!(made.success());
    world.write("of_the_user", "secret");
    let outside = world.path("outside");
    fs::rename(world.repo().join("of_the_user"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.repo().join("link")).unwrap();
    for held in ["pipe", "link"] {
        world.done("hostile", &["lock", "acquire", held]);
    }
    let mut before = claude(&world, "bash");
    before["cwd"] = json!(world.repo());
    before["tool_input"]["command"] = json!("make");
    let mut after = before.clone();
    after["hook_event_name"] = json!("PostToolUse");
    world.goes_on("claude", &before);
    fs::write(&outside, "another secret").unwrap();
    assert_eq!(told_by(&world, "claude", "PostToolUse", &after), "");
}
