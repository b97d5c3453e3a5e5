//! Codex's patches in a shell: they do what the tool does, so they hold as it does.

use serde_json::{Value, json};

use super::{CODE, told, world};
use crate::support::World;
use crate::support::host_hooks::recorded;

const PATCH: &str = "*** Begin Patch\n*** Update File: auth.ts\n@@\n-export function login(a: string): string { return a }\n\
                     +export function login(a: string): string { return a + 1 }\n*** End Patch";

fn codex(world: &World, command: Value) -> Value {
    let mut told = recorded(world, "codex/bash");
    told["tool_input"]["command"] = command;
    told
}

#[test]
fn a_patch_in_a_shell_holds_what_it_touches_and_nothing_else() {
    let world = world("codex");
    world.configure("");
    world.write("quoted.ts", CODE);
    let _daemon = world.start();
    let lines = [
        json!(format!("cd src && apply_patch <<'EOF'\n{PATCH}\nEOF\n")),
        json!(["bash", "-lc", format!("cd src && apply_patch <<'EOF'\n{PATCH}\nEOF\n")]),
        json!(format!("cd src; bash -lc \"apply_patch '{PATCH}'\"")),
        json!(format!("apply_patch \"{}\"", PATCH.replace(": auth.ts", ": src/auth.ts"))),
        json!(format!("printf '%s' '{PATCH}' | (cd src && true); cd src && echo '{PATCH}' | apply_patch")),
    ];
    for line in lines {
        world.goes_on("codex", &codex(&world, line.clone()));
        assert_eq!(world.locked(), ["src/auth.ts:login"], "{line}");
        world.done("codex-9690b4ce6b9e", &["lock", "release", "--all"]);
    }
    // A patch that is only shown, or put into a file, is none.
    world.goes_on("codex", &codex(&world, json!(format!("cat > x.patch <<'EOF'\n{PATCH}\nEOF\n"))));
    assert!(world.locked().is_empty());
}

#[test]
fn a_patch_in_a_shell_is_refused_what_others_hold_and_takes_nothing_then() {
    let world = world("codex");
    world.configure("");
    world.write("src/more.ts", CODE);
    let _daemon = world.start();
    world.done("claude-1", &["lock", "src/auth.ts:login"]);
    let both = PATCH.replace("*** End Patch", "*** Add File: new.ts\n+x\n*** End Patch");
    let line = json!(["bash", "-lc", format!("cd src && apply_patch <<'EOF'\n{both}\nEOF\n")]);
    let why = world.is_refused("codex", &codex(&world, line));
    assert!(why.contains("claude-1"), "{why}");
    assert_eq!(world.locked(), ["src/auth.ts:login"]);
    // What else the command writes counts as well.
    let beside = PATCH.replace("login(a: string): string { return a", "logout(b: string): string { return b");
    let line = |more: &str| json!(format!("cd src && apply_patch <<'EOF'\n{beside}\nEOF\n{more}"));
    world.is_refused("codex", &codex(&world, line("rm auth.ts")));
    assert_eq!(world.locked(), ["src/auth.ts:login"]);
    world.goes_on("codex", &codex(&world, line("true")));
    assert_eq!(world.locked(), ["src/auth.ts:login", "src/auth.ts:logout"]);
}

#[test]
fn a_command_of_codex_or_cursor_waits_for_gits_index_and_is_refused_while_another_agent_has_it() {
    for (host, name) in [("codex", "codex/bash"), ("cursor", "cursor/shell")] {
        let world = world(host);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "one"]);
        let _daemon = world.start();
        let mut told = recorded(&world, name);
        let command = json!("git add notes.ipynb && git commit -m x");
        match host {
            "codex" => told["tool_input"]["command"] = command,
            _ => told["command"] = command,
        }
        world.done("claude-1", &["lock", "@git:index"]);
        let why = world.is_refused(host, &told);
        assert!(why.contains("claude-1") && why.contains("@git:index"), "{why}");
        world.done("claude-1", &["unlock", "@git:index"]);
        // It holds nothing itself: the host does not say when the command has ended.
        world.goes_on(host, &told);
        assert!(world.locked().is_empty());
    }
}

#[test]
fn the_words_of_sh_c_count_from_the_first_one() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    for line in [
        "sh -c 'rm $0' src/auth.ts",
        "sh -c 'git $0' 'rm src/auth.ts'",
        "bash -c 'git ${0} $1' 'checkout --' src/auth.ts",
        "bash -c 'git $@' x checkout 'HEAD -- src/auth.ts'",
        "bash -c 'git \"$0\" \"$@\"' rm -f src/auth.ts",
    ] {
        world.is_refused("claude", &told(&world, line));
    }
    for line in ["sh -c 'cat $0' src/auth.ts", "sh -c 'rm \"$0\"' 'other src/auth.ts'"] {
        world.goes_on("claude", &told(&world, line));
    }
}
