//! Small things of every day: whose question an answer closes, what a search finds of locks, times with their zone, an edit that is asked
//! about, and a machine without git.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::host_hooks::recorded;
use crate::support::rules::{ask, policy};
use crate::support::waits::until_some;
use crate::support::{World, eventually};

const CODE: &str = "export function login(a: string): string { return a }\n\n\
                    export function logout(b: string): string { return b }\n";

/// Returns the text that a command prints for people, on both of its outputs.
fn printed(world: &World, args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = world.command(args).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn an_answer_and_the_feedback_that_repeats_it_close_one_question() {
    let world = World::new();
    let _daemon = world.start();
    let asks = |text: &str| {
        let message =
            json!({ "type": "agent.question", "agent_id": "feat-a", "payload": { "question": text } });
        world.done("feat-a", &["broker", "publish", &message.to_string()])["seq"].to_string()
    };
    let (first, second, third) = (asks("RS256 or HS256?"), asks("Which port?"), asks("May I push?"));
    let answer = |number: &str| world.command(&["question", "answer", number, "yes"]).output().unwrap();
    assert!(answer(&second).status.success());
    let again = answer(&second);
    assert!(String::from_utf8_lossy(&again.stderr).contains("no question"), "{again:?}");
    // Feedback about a question that was answered closes no other one.
    let late = json!({
        "type": "agent.feedback", "agent_id": "feat-a",
        "payload": { "from": "supervisor", "errors": ["yes"], "re": "Which port?" },
    });
    assert!(world.command(&["broker", "publish", &late.to_string()]).output().unwrap().status.success());
    for number in [first, third] {
        let done = answer(&number);
        assert!(done.status.success(), "{number} is open: {done:?}");
    }
}

#[test]
fn a_lock_is_found_by_the_reason_that_its_agent_gave() {
    let world = World::new();
    world.configure("");
    world.write("src/auth.ts", CODE);
    let _daemon = world.start();
    world.done("ada", &["lock", "src/auth.ts:login", "--reason", "rotating the zebra keys"]);
    let found = || {
        let found = world.done("bob", &["search", "zebra"]);
        found["hits"].as_array().is_some_and(|it| !it.is_empty())
    };
    eventually("it is found", found);
    assert!(printed(&world, &["search", "zebra"], &[]).contains("src/auth.ts"));
}

#[test]
fn times_in_lists_say_their_zone() {
    let world = World::new();
    world.configure("");
    world.write("src/auth.ts", CODE);
    let _daemon = world.start();
    world.done("ada", &["lock", "src/auth.ts:login"]);
    for (zone, offset) in [("<+0530>-5:30", "+05:30"), ("UTC0", "+00:00")] {
        let listed = printed(&world, &["lock", "list"], &[("TZ", zone)]);
        assert!(listed.contains(offset), "{zone}: {listed}");
    }
}

#[test]
fn an_edit_that_a_host_asks_about_is_shown_as_a_difference() {
    let world = World::new();
    world.rule(&policy([ask("\"human\"", &["when.action = [\"permission\"]"])]));
    world.write("src/auth.ts", CODE);
    let _daemon = world.start();
    let mut told = recorded(&world, "claude/permission_request");
    told["tool_name"] = json!("Edit");
    told["tool_input"] = json!({
        "file_path": world.repo().join("src/auth.ts"), "replace_all": false,
        "old_string": "{ return a }\n@@ -1 +1 @@\n--- a/other", "new_string": "{ return \u{202e}a + 1 }",
    });
    let mut hook = world.command(&["hook", "run", "claude", "permission-request", "--wait", "2m"]);
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(told.to_string().as_bytes()).unwrap();
    let shown = until_some("it waits", || {
        let shown = printed(&world, &["approval", "list"], &[]);
        shown.contains("difference").then_some(shown)
    });
    let lines: Vec<&str> = shown.lines().map(|it| it.trim_start_matches([' ', '|'])).collect();
    for line in ["-{ return a }", "-@@ -1 +1 @@", "---- a/other"] {
        assert!(lines.iter().any(|it| it.contains(line)), "{line}: {shown}");
    }
    assert!(shown.contains("+{ return") && !shown.contains('\u{202e}'), "{shown}");
    assert!(shown.contains("replace_all") && !shown.contains("old_string"), "the rest is there: {shown}");
    hook.kill().unwrap();
    hook.wait().unwrap();
}

#[test]
fn without_git_the_start_says_what_will_not_work() {
    let world = World::new();
    let tools = world.path("tools");
    fs::create_dir_all(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    let without = [("PATH", tools.to_str().unwrap())];
    let said = printed(&world, &["up"], &without);
    assert!(said.contains("git is not on the PATH") && said.contains("install git"), "{said}");
    let doctor = printed(&world, &["doctor"], &without);
    assert!(doctor.contains("git is not on the PATH"), "{doctor}");
    printed(&world, &["down"], &[]);
    assert!(!printed(&world, &["up"], &[]).contains("git is not"));
    printed(&world, &["down"], &[]);
}

#[test]
fn the_help_of_acp_has_its_short_form() {
    let help = printed(&World::new(), &["acp", "--help"], &[]);
    assert!(help.contains("`provost acp -- COMMAND` is short for"), "{help}");
}

#[test]
fn a_question_that_is_longer_than_a_door_reads_is_refused_in_words() {
    let world = World::new();
    let _daemon = world.start();
    let (short, long, longest) = ("w".repeat(20_000), "w".repeat(60_000), "w".repeat(120_000));
    for (args, says) in [
        (["search", &short], "300 bytes at the most"),
        (["search", &long], "longer than"),
        (["search", &longest], "longer than"),
    ] {
        let output = world.command(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said:.400}");
        // Not that the daemon were another version's, or gone.
        assert!(said.contains(says) && !said.contains("provost up"), "{said:.400}");
    }
    let callers = ["graph", "callers", &format!("src/{longest}.py:f")];
    let output = world.command(&callers).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && said.contains("ask with less text"), "{said:.400}");
}
