//! The comparison of files after a shell command of Codex and Cursor, and at the next words of a person. Codex'
//! messages were recorded with Codex 0.169; Cursor's follow its documentation.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{CODE, command_of, start, world};
use crate::support::desk::ask;
use crate::support::host_hooks::recorded;
use crate::support::{World, eventually};

const CLAUDE: &str = "claude-2b64a1f3c001";
const CODEX: &str = "codex-9690b4ce6b9e";

/// A world in which Claude Code has written a function, and a host has hooks; and what the file says.
fn written_by_claude(host: &str) -> (World, String) {
    let world = world("claude");
    world.configure("");
    assert!(world.install_hooks(host, &[]).status.success());
    let written = CODE.replace("return a", "return a + 1");
    (world, written)
}

fn claude_writes(world: &World, written: &str) {
    world.goes_on("claude", &recorded(world, "claude/edit"));
    world.write("src/auth.ts", written);
}

fn codex(world: &World, name: &str) -> Value {
    recorded(world, &format!("codex/{name}"))
}

/// Returns the text that Codex passes on to its model; Codex accepts no answer with any other member.
#[track_caller]
fn told_by_codex(world: &World, told: &Value) -> String {
    let event = told["hook_event_name"].as_str().unwrap();
    let output = world.call("codex", event, told);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    if output.stdout.is_empty() {
        return String::new();
    }
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let context = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let all = json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } });
    assert_eq!(said, all);
    context.to_owned()
}

fn inbox(world: &World, agent: &str) -> String {
    ask(world, agent, "POST /read-inbox", &json!({})).1.to_string()
}

/// Folders in which files are put aside for commands that have not ended.
fn put_aside(world: &World) -> Vec<PathBuf> {
    let aside = world.own_socket().parent().unwrap().join("aside");
    let all = fs::read_dir(aside).into_iter().flatten().flatten().map(|it| it.path());
    all.filter(|it| it.file_name().unwrap().to_string_lossy().starts_with("call-")).collect()
}

#[test]
fn what_a_command_of_codex_overwrites_is_told_to_its_model_and_to_the_holder_and_kept() {
    let (world, written) = written_by_claude("codex");
    let _daemon = world.start();
    claude_writes(&world, &written);
    // A command that fails has written, too.
    for (number, before, after) in [(1, "make", "make_after"), (2, "make_check", "make_check_after")] {
        world.write("src/auth.ts", &written);
        world.goes_on("codex", &codex(&world, before));
        let spoilt = written.replace("return a + 1", &format!("return {number}"));
        world.write("src/auth.ts", &spoilt);
        let said = told_by_codex(&world, &codex(&world, after));
        for word in [CLAUDE, "src/auth.ts:login", "it was told", "copy the version before"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        let at = |which: &str| {
            said.split(&format!("{which}: ")).nth(1).unwrap().split([';', ')']).next().unwrap().to_owned()
        };
        assert_eq!(fs::read_to_string(at("before")).unwrap(), written);
        assert_eq!(fs::read_to_string(at("after")).unwrap(), spoilt);
        let mail = inbox(&world, CLAUDE);
        let by = format!("A shell command of {CODEX} has changed what you hold");
        assert!(mail.contains(&by) && mail.contains(&at("before")), "{mail}");
        // Told once.
        assert_eq!(told_by_codex(&world, &codex(&world, after)), "");
    }
    assert!(put_aside(&world).is_empty());
}

#[test]
fn codex_is_told_nothing_where_nothing_is_to_be_told() {
    let (world, written) = written_by_claude("codex");
    let _daemon = world.start();
    // Nothing is held; the end of a command of which no beginning was told.
    assert_eq!(told_by_codex(&world, &codex(&world, "make_after")), "");
    world.goes_on("codex", &codex(&world, "make"));
    world.write("src/auth.ts", "spoilt\n");
    assert_eq!(told_by_codex(&world, &codex(&world, "make_after")), "");
    world.write("src/auth.ts", CODE);
    claude_writes(&world, &written);
    // What nobody holds, and what the holder writes meanwhile.
    world.goes_on("codex", &codex(&world, "make"));
    world.write("src/auth.ts", &written.replace("return b", "return 0"));
    assert_eq!(told_by_codex(&world, &codex(&world, "make_after")), "");
    world.write("src/auth.ts", &written);
    world.goes_on("codex", &codex(&world, "make"));
    let mut more = recorded(&world, "claude/edit");
    more["tool_input"]["old_string"] = json!("return a + 1");
    more["tool_input"]["new_string"] = json!("return a + 2");
    world.goes_on("claude", &more);
    world.write("src/auth.ts", &written.replace("return a + 1", "return a + 2"));
    assert_eq!(told_by_codex(&world, &codex(&world, "make_after")), "");
}

#[test]
fn commands_of_codex_that_run_at_once_and_ones_that_are_left_behind_are_told_apart() {
    let (world, written) = written_by_claude("codex");
    let _daemon = world.start();
    claude_writes(&world, &written);
    world.goes_on("codex", &codex(&world, "make"));
    world.write("src/auth.ts", &written.replace("return a + 1", "return 1"));
    // The second one begins with what the first one has left, and ends before it.
    world.goes_on("codex", &codex(&world, "make_check"));
    assert_eq!(told_by_codex(&world, &codex(&world, "make_check_after")), "");
    assert!(told_by_codex(&world, &codex(&world, "make_after")).contains("src/auth.ts:login"));
    // Of a command that goes on by itself Codex never says that it has ended. The oldest are forgotten, and
    // all with the session.
    let mut left = codex(&world, "make_watch");
    for number in 0..20 {
        left["tool_use_id"] = json!(format!("call_{number}"));
        world.goes_on("codex", &left);
    }
    assert_eq!(put_aside(&world).len(), 16);
    world.goes_on("codex", &codex(&world, "make"));
    assert_eq!(put_aside(&world).len(), 16);
    world.write("src/auth.ts", &written.replace("return a + 1", "return 2"));
    assert!(told_by_codex(&world, &codex(&world, "make_after")).contains("src/auth.ts:login"), "the newest");
    world.call("codex", "SessionEnd", &codex(&world, "session_end"));
    assert!(put_aside(&world).is_empty());
}

#[test]
fn codex_is_told_at_the_next_words_of_its_person_what_it_still_holds() {
    let (world, _) = written_by_claude("codex");
    let prompt = codex(&world, "user_prompt_submit");
    // Without a daemon it holds nothing, and no words wait for one.
    assert_eq!(told_by_codex(&world, &prompt), "");
    let _daemon = world.start();
    assert_eq!(told_by_codex(&world, &prompt), "");
    world.goes_on("codex", &codex(&world, "apply_patch_beside"));
    let said = told_by_codex(&world, &prompt);
    assert!(said.contains("still hold") && said.contains("src/auth.ts:logout"), "{said}");
    world.call("codex", "SessionEnd", &codex(&world, "session_end"));
    assert_eq!(told_by_codex(&world, &prompt), "");
}

#[test]
fn a_question_of_codex_stays_when_another_command_ends_or_its_person_says_more() {
    let (world, _) = written_by_claude("codex");
    let _daemon = world.start();
    let asked = world.own_socket().parent().unwrap().join("asked");
    let questions = || fs::read_dir(&asked).into_iter().flatten().count();
    let mut question = codex(&world, "permission_request");
    question["tool_input"] = json!({ "command": "make" });
    let file = world.path("told.json");
    fs::write(&file, question.to_string()).unwrap();
    let line = command_of(&world, "codex", "PermissionRequest").replace("--wait 5s", "--wait 9m");
    let mut host = start(&world, &format!("{line} < '{}'", file.display()), &world.repo());
    eventually("the question", || questions() == 1);
    // Codex shows no dialog of its own meanwhile: nothing of this is an answer.
    assert_eq!(told_by_codex(&world, &codex(&world, "make_after")), "");
    assert_eq!(told_by_codex(&world, &codex(&world, "user_prompt_submit")), "");
    assert_eq!(questions(), 1);
    host.kill().unwrap();
    host.wait().unwrap();
}

#[test]
fn what_a_command_of_cursor_overwrites_is_told_to_the_holder_and_kept() {
    let (world, written) = written_by_claude("cursor");
    let _daemon = world.start();
    claude_writes(&world, &written);
    let (before, after) = (recorded(&world, "cursor/make"), recorded(&world, "cursor/make_after"));
    let ends = |told: &Value| {
        let output = world.call("cursor", "afterShellExecution", told);
        // It takes no words then.
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    };
    world.goes_on("cursor", &before);
    let spoilt = written.replace("return a + 1", "return 0");
    world.write("src/auth.ts", &spoilt);
    // The end of another command is none of this one.
    let mut other = after.clone();
    other["command"] = json!("make check");
    ends(&other);
    assert!(!inbox(&world, CLAUDE).contains("has changed"));
    ends(&after);
    let mail = inbox(&world, CLAUDE);
    assert!(mail.contains("A shell command of cursor-2a466fec86e7 has changed what you hold"), "{mail}");
    let at =
        |which: &str| mail.split(&format!("{which}: ")).nth(1).unwrap().split([';', ')']).next().unwrap();
    assert_eq!(fs::read_to_string(at("before")).unwrap(), written);
    assert_eq!(fs::read_to_string(at("after")).unwrap(), spoilt);
    ends(&after);
    assert_eq!(inbox(&world, CLAUDE).matches("has changed what you hold").count(), 1, "told once");
}
