//! Two agents whose locks or claims overlap: the earlier grant counts, and advice never becomes a wall for
//! who was first.

use serde_json::{Value, json};

use super::{recorded, world};
use crate::support::World;
use crate::support::loopback_client::Http;

const CLAUDE: &str = "claude-2b64a1f3c001";

fn told(world: &World, name: &str) -> Value {
    recorded(world, &format!("claude/{name}"))
}

/// The same call, of another session.
fn others(mut told: Value) -> Value {
    told["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    told
}

const OTHER: &str = "claude-2b64a1f3c002";

#[test]
fn who_locks_a_file_in_which_somebody_has_a_symbol_has_the_rest_of_it() {
    let world = world("claude");
    let _daemon = world.start();
    world.done(CLAUDE, &["lock", "src/auth.ts:login"]);
    let granted = world.done(OTHER, &["lock", "src/auth.ts"]);
    assert!(granted.to_string().contains("member_locked"), "{granted}");
    // Each writes its own, and nobody the other's.
    world.goes_on("claude", &told(&world, "edit"));
    world.is_refused("claude", &told(&world, "edit_beside"));
    world.goes_on("claude", &others(told(&world, "edit_beside")));
    world.is_refused("claude", &others(told(&world, "edit")));
    // Where it cannot be told what changes, who was first goes on.
    let mut half = told(&world, "edit");
    half["tool_input"]["new_string"] = json!("export function login(a: string): string { return a + ");
    world.goes_on("claude", &half);
    world.is_refused("claude", &others(half));
    let mut shell = told(&world, "bash");
    shell["tool_input"]["command"] = json!("sed -i s/a/b/ auth.ts");
    world.goes_on("claude", &shell);
    world.is_refused("claude", &others(shell));
}

#[test]
fn of_a_file_that_somebody_has_nobody_else_locks_a_symbol_and_who_waits_gets_it() {
    let world = world("claude");
    let _daemon = world.start();
    world.done(CLAUDE, &["lock", "src/auth.ts"]);
    let refused = world.command(&["lock", "src/auth.ts:login", "--as", OTHER]).output().unwrap();
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains(CLAUDE), "{refused:?}");
    world.goes_on("claude", &told(&world, "edit"));
    let mut waiting = world.command(&["lock", "src/auth.ts:login", "--wait", "5m", "--as", OTHER]);
    let mut waiting = waiting.stdout(std::process::Stdio::null()).spawn().unwrap();
    crate::support::eventually("its place in the queue", || {
        world.done("x", &["lock", "list"])["waiting"].as_array().is_some_and(|it| it.len() == 1)
    });
    world.done(CLAUDE, &["unlock", "src/auth.ts"]);
    assert!(waiting.wait().unwrap().success());
    world.is_refused("claude", &told(&world, "edit"));
}

#[test]
fn a_claim_and_a_lock_of_two_agents_keep_only_the_later_one_out() {
    let world = world("claude");
    let _daemon = world.start();
    let announced = json!({ "id": OTHER, "tool": "other" });
    assert_eq!(Http::agent_protocol(&world).post("/agents/announce", &announced).status, 201);
    world.done(CLAUDE, &["lock", "src/auth.ts:login"]);
    world.done(OTHER, &["claim", "acquire", "src/auth.ts"]);
    world.goes_on("claude", &told(&world, "edit"));
    world.is_refused("claude", &told(&world, "edit_beside"));
    world.goes_on("claude", &others(told(&world, "edit_beside")));
    world.is_refused("claude", &others(told(&world, "edit")));
    world.done(CLAUDE, &["unlock", "src/auth.ts:login"]);
    world.done(CLAUDE, &["lock", "src/auth.ts:login"]);
    // Later now, and the file was claimed as a whole.
    world.is_refused("claude", &told(&world, "edit"));
    world.goes_on("claude", &others(told(&world, "edit")));
}

/// A file with two functions, in several languages: its name, the beginning and the end of all, what is before and behind the body of each
/// function, the name of each as locks have it.
const PAIRS: [(&str, [&str; 2], [&str; 2], &str); 13] = [
    ("pair.ts", ["", ""], ["export function NAME(a: number) {\n  return ", ";\n}\n"], ""),
    ("pair.py", ["", ""], ["def NAME(a):\n    return ", "\n"], ""),
    ("pair.rs", ["", ""], ["pub fn NAME(a: u32) -> u32 {\n    return ", ";\n}\n"], ""),
    ("pair.go", ["package pair\n\n", ""], ["func NAME(a int) int {\n\treturn ", "\n}\n"], ""),
    ("Pair.java", ["class Pair {\n", "}\n"], ["  int NAME(int a) {\n    return ", ";\n  }\n"], "Pair."),
    ("Pair.cs", ["class Pair {\n", "}\n"], ["  int NAME(int a) {\n    return ", ";\n  }\n"], "Pair."),
    ("pair.c", ["", ""], ["int NAME(int a) {\n  return ", ";\n}\n"], ""),
    ("pair.php", ["<?php\n", ""], ["function NAME($a) {\n  return ", ";\n}\n"], ""),
    ("pair.kt", ["", ""], ["fun NAME(a: Int): Int {\n  return ", "\n}\n"], ""),
    ("pair.js", ["", ""], ["export function NAME(a) {\n  return ", ";\n}\n"], ""),
    ("pair.cpp", ["namespace pair {\n", "}\n"], ["int NAME(int a) {\n  return ", ";\n}\n"], ""),
    ("pair.rb", ["", ""], ["def NAME(a)\n  ", "\nend\n"], ""),
    ("pair.swift", ["", ""], ["func NAME(_ a: Int) -> Int {\n  return ", "\n}\n"], ""),
];

#[test]
fn an_edit_that_does_not_parse_is_held_against_the_symbol_in_which_it_is() {
    let world = world("claude");
    let _daemon = world.start();
    for (file, [begin, end], [before, behind], around) in PAIRS {
        let function = |name: &str, body: &str| format!("{}{body}{behind}", before.replace("NAME", name));
        let of =
            |one: &str, two: &str| format!("{begin}{}\n{}{end}", function("one", one), function("two", two));
        let path = format!("src/{file}");
        world.write(&path, &of("11", "22"));
        world.done(CLAUDE, &["lock", &format!("{path}:{around}one")]);
        world.done(OTHER, &["lock", &format!("{path}:{around}two")]);
        let edit = |old: &str, new: &str| {
            let mut call = told(&world, "edit");
            call["tool_input"] =
                json!({ "file_path": world.repo().join(&path), "old_string": old, "new_string": new });
            call
        };
        // Who was first has no right to the other one's symbol, and who was second has its own.
        world.goes_on("claude", &edit("11", "((("));
        world.is_refused("claude", &edit("22", "((("));
        world.goes_on("claude", &others(edit("22", "(((")));
        world.is_refused("claude", &others(edit("11", "(((")));
        // The lines of the file end as those of Windows do, and agents write theirs with `\n` alone.
        world.write(&path, &of("11", "22").replace('\n', "\r\n"));
        for body in ["12", "((("] {
            let [first, second] = [("one", "11"), ("two", "22")]
                .map(|(name, was)| edit(&function(name, was), &function(name, body)));
            world.goes_on("claude", &first);
            world.is_refused("claude", &second);
            world.goes_on("claude", &others(second));
            world.is_refused("claude", &others(first));
        }
        // The file parses again.
        world.write(&path, &of("11", "((("));
        world.goes_on("claude", &others(edit("(((", "33")));
        world.is_refused("claude", &edit("(((", "33"));
        // It does not, before and after: the second function is broken.
        world.goes_on("claude", &others(edit("(((", "((33")));
        world.is_refused("claude", &others(edit("11", "12")));
        world.done(OTHER, &["unlock", &format!("{path}:{around}two")]);
        world.done(CLAUDE, &["unlock", &format!("{path}:{around}one")]);
    }
}

#[test]
fn a_text_that_is_opened_before_a_held_function_hides_it_from_no_check() {
    let world = world("claude");
    let _daemon = world.start();
    let path = "src/pair.rs";
    let one = "pub fn one() -> u32 {\n    11\n}\n";
    let file = |two: &str| format!("pub fn two() -> u32 {{\n    {two}\n}}\n\n{one}");
    world.write(path, &file("22"));
    world.done(CLAUDE, &["lock", "src/pair.rs:one"]);
    world.done(OTHER, &["lock", "src/pair.rs:two"]);
    let edit = |old: &str, new: &str| {
        let mut call = others(told(&world, "edit"));
        call["tool_input"] =
            json!({ "file_path": world.repo().join(path), "old_string": old, "new_string": new });
        call
    };
    // Another function of the same name, and a text without an end behind it, which has the real one in it.
    let hidden = "22 }\npub fn one() {}\nconst X: &str = r#\"";
    world.is_refused("claude", &edit("22", hidden));
    world.goes_on("claude", &edit("22", "22 + (1"));
}
