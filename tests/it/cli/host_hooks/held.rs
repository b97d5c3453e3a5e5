//! What an agent writes is its own for a while: nobody has to remember a lock.

use std::fs;

use serde_json::{Value, json};

use super::{CODE, world};
use crate::support::World;
use crate::support::host_hooks::recorded;

const CLAUDE: &str = "claude-2b64a1f3c001";
const CODEX: &str = "codex-9690b4ce6b9e";

/// A world with the hooks of Claude Code and Codex.
fn both() -> World {
    let world = world("claude");
    assert!(world.install_hooks("codex", &[]).status.success());
    world
}

fn claude(world: &World, name: &str) -> Value {
    recorded(world, &format!("claude/{name}"))
}

fn codex(world: &World, name: &str) -> Value {
    recorded(world, &format!("codex/{name}"))
}

/// The same call in another session.
fn other(mut told: Value) -> Value {
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

/// What is held, and by whom.
fn held(world: &World) -> Vec<String> {
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
