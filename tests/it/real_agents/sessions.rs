//! Sessions of the real programs over ACP: a run goes on after the daemon was killed in the middle of a turn, and a follow-up goes on with
//! the session of the task before.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{CLAUDE, CODEX, GEMINI, Program, QWEN, Set, eventually, order, said, until_some};

/// Gemini CLI 0.61 names a session's file after the minute in which it began, and begins that file again when it loads the session
/// within the same minute; what was said is lost then. So another minute has to have begun.
#[track_caller]
fn another_minute(program: Program, begun: SystemTime) {
    let minute = |it: SystemTime| it.duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    if program.name == "gemini" {
        eventually("another minute", || minute(SystemTime::now()) > minute(begun));
    }
}

/// A run in whose middle the model is asked, and does not answer.
fn hanging(program: Program) -> Set {
    let set = Set::up(program, &[], &[]);
    let words = order("[[write made.txt hi]] [[hang]] [[write more.txt too]]");
    let begun = set.run(&["delegate", &words, "--worker", program.name, "--task", "t-1"]);
    assert!(begun.status.success(), "{}", said(&begun));
    until_some("the model is asked and does not answer", || {
        set.model.heard().iter().any(|it| it["method"] == "hang").then_some(())
    });
    set
}

/// The daemon is killed while the model is asked; the next one goes on with the run, in its copy.
#[track_caller]
fn goes_on_after_a_kill(program: Program) {
    let mut set = hanging(program);
    let hung = SystemTime::now();
    set.daemon.kill();
    another_minute(program, hung);
    eventually("its processes are gone with it", || set.is_quiet());
    set.daemon = set.world.start();
    has_gone_on(&set);
}

/// The program itself is killed while the model is asked; the daemon begins the run again, in its session.
#[track_caller]
fn goes_on_after_its_own_death(program: Program) {
    let set = hanging(program);
    let all: Vec<String> = set.processes().iter().map(u32::to_string).collect();
    assert!(!all.is_empty());
    // Some end with others of them.
    let _killed = std::process::Command::new("kill").arg("-9").args(&all).output().unwrap();
    has_gone_on(&set);
}

/// The run goes on in its session and its copy, to its end.
#[track_caller]
fn has_gone_on(set: &Set) {
    let task = until_some("it is over", || {
        let task = set.json(&["task", "show", "t-1"]);
        matches!(task["state"].as_str(), Some("completed" | "failed")).then_some(task)
    });
    assert_eq!(task["state"], "completed", "{task:#}\n{:#?}", set.model.heard());
    assert_eq!(task["session"]["resumed"], 1, "{task:#}");
    let paths = set.paths(&task);
    assert!(paths.iter().any(|it| it == "made.txt"), "what it had written before is there: {task:#}");
    // What it is asked in the session that goes on comes after what was said before.
    assert!(set.model.heard().iter().any(|it| it["prompts"].as_u64() > Some(1)), "{:#?}", set.model.heard());
    set.brought_the_key();
}

/// A second task goes on with the session of the first one, whose changes were written.
#[track_caller]
fn is_followed_up(program: Program) {
    let set = Set::up(program, &[], &[]);
    let words = order("[[write first.txt one]]");
    let first = set.json(&["delegate", &words, "--worker", program.name, "--task", "t-1", "--wait"]);
    assert_eq!(first["state"], "completed", "{first:#}");
    another_minute(program, SystemTime::now());
    let discarded = set.run(&["discard", "t-1", "--yes"]);
    assert!(discarded.status.success(), "{}", said(&discarded));
    let words = order("[[write second.txt two]]");
    let second = set.json(&["delegate", "--continue", "t-1", &words, "--task", "t-2", "--wait"]);
    assert_eq!(second["state"], "completed", "{second:#}");
    assert_eq!(set.paths(&second), ["second.txt"], "{second:#}");
    let heard = set.model.heard();
    let last: Vec<&Value> = heard.iter().filter(|it| it["claimed"] == true).collect();
    assert!(
        last.iter().any(|it| it["prompts"].as_u64() > Some(1)),
        "it knows what was said before: {heard:#?}"
    );
}

#[test]
fn claude_goes_on_after_a_kill() {
    goes_on_after_a_kill(CLAUDE);
}

#[test]
fn codex_goes_on_after_a_kill() {
    goes_on_after_a_kill(CODEX);
}

#[test]
fn gemini_goes_on_after_a_kill() {
    goes_on_after_a_kill(GEMINI);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_goes_on_after_a_kill() {
    goes_on_after_a_kill(super::GOOSE);
}

#[test]
fn qwen_goes_on_after_a_kill() {
    goes_on_after_a_kill(QWEN);
}

#[test]
fn claude_goes_on_after_its_own_death() {
    goes_on_after_its_own_death(CLAUDE);
}

#[test]
fn codex_goes_on_after_its_own_death() {
    goes_on_after_its_own_death(CODEX);
}

#[test]
fn qwen_goes_on_after_its_own_death() {
    goes_on_after_its_own_death(QWEN);
}

#[test]
fn claude_is_followed_up_in_its_session() {
    is_followed_up(CLAUDE);
}

#[test]
fn codex_is_followed_up_in_its_session() {
    is_followed_up(CODEX);
}

#[test]
fn gemini_is_followed_up_in_its_session() {
    is_followed_up(GEMINI);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_is_followed_up_in_its_session() {
    is_followed_up(super::GOOSE);
}

#[test]
fn qwen_is_followed_up_in_its_session() {
    is_followed_up(QWEN);
}
