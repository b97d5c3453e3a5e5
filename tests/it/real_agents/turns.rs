//! Whole turns over ACP: files are written in the copy, the key stays outside, tokens are counted, and a run that is cancelled is
//! gone.

use serde_json::{Value, json};

use super::{
    CLAIMED, CLAUDE, CODEX, GEMINI, PATIENCE, Program, QWEN, Set, claimed, eventually, last, look, order,
    until_some,
};
use crate::support::waits::within;

/// `agent try`, a turn that writes a file, and a search for the key.
#[track_caller]
fn works(program: Program) {
    let set = Set::up(program, &[], &[]);
    let tried = set.json(&["agent", "try", program.name, "--no-start"]);
    // Codex says before that it does not know the model.
    let answer = tried["answer"].as_str().unwrap_or_default();
    assert!(tried["ok"] == true && answer.ends_with("PROVOST-READY"), "{tried:#}");
    let before = set.model.heard().len();
    let task = set.done(&order(&format!("[[write made.txt hi]] {}", look())));
    assert_eq!(task["state"], "completed", "{task:#}\n{:#?}", set.model.heard());
    assert_eq!(set.paths(&task), ["made.txt", "seen.txt"], "{task:#}\n{}", set.model.results());
    assert!(!set.world.repo().join("made.txt").exists(), "it works in a copy");
    let changed = set.changed(&task);
    assert!(changed.contains("+hi\n") && changed.contains("+key: []\n"), "{changed}");
    assert!(changed.contains("+token: [") && !changed.contains("+token: []"), "the search finds: {changed}");
    set.brought_the_key();
    reported(program, &task, &claimed(&set.model.heard()[before..]));
    counted(&set, &task, before);
    assert!(!set.world.log().contains(&super::key()));
}

/// Checks that the program reports the tokens that its model's service has claimed, as far as it reports them.
#[track_caller]
fn reported(program: Program, task: &Value, claimed: &Value) {
    let used = last(task, "metadata");
    let found = json!([used["tokens_input"], used["tokens_cache_read"], used["tokens_output"]]);
    match program.name {
        // It reports no cache, and adds what came out of it to what was read.
        "gemini" => {
            let sum = claimed[0].as_u64().unwrap() + claimed[1].as_u64().unwrap();
            assert_eq!(found, json!([sum, null, claimed[2]]), "{used:#}");
        }
        // It reports its last call alone, and adds what came out of the cache to what was read.
        "goose" => assert_eq!(found, json!([CLAIMED.0, null, CLAIMED.2]), "{used:#}"),
        _ => assert_eq!(found, *claimed, "{used:#}"),
    }
}

/// Checks that the proxy has counted the tokens that the model's service has claimed, in all calls of the program; it may make one
/// more while it ends. That call can end with the run before its answer has reported its tokens; then they are guessed.
#[track_caller]
fn counted(set: &Set, task: &Value, before: usize) {
    let (read, cached, written) = CLAIMED;
    let mut seen = Value::Null;
    let is_counted = within(PATIENCE, || {
        let heard = set.model.heard();
        let claimed = heard[before..].iter().filter(|it| it["claimed"] == true).count() as u64;
        let found = set.json(&["task", "show", task["id"].as_str().unwrap()])["counted"].clone();
        let tokens = json!([found["tokens_input"], found["tokens_cache_read"], found["tokens_output"]]);
        let told = |calls: u64| tokens == json!([(read - cached) * calls, cached * calls, written * calls]);
        // What is guessed besides is a call that says nothing of tokens: the title of the session, which Codex' adapter asks for when the
        // turn has ended.
        let is_more = found["calls"].as_u64() > Some(claimed);
        let is_guessed = !found["tokens_guessed"].is_null();
        seen = json!({ "claimed": claimed, "found": found });
        claimed > 1 && ((told(claimed) && (is_more || !is_guessed)) || (told(claimed - 1) && is_guessed))
    });
    assert!(is_counted, "what is counted is not what was claimed: {seen:#}");
}

/// A run that waits for its model is cancelled, and no process or file of it is left.
#[track_caller]
fn is_cancelled(program: Program) {
    let set = Set::up(program, &[], &[]);
    let begun = set.run(&[
        "delegate",
        &order("[[write made.txt hi]] [[hang]]"),
        "--worker",
        program.name,
        "--task",
        "t-1",
    ]);
    assert!(begun.status.success(), "{}", super::said(&begun));
    until_some("the model is asked and does not answer", || {
        set.model.heard().iter().any(|it| it["method"] == "hang").then_some(())
    });
    assert!(!set.is_quiet(), "its processes are there");
    let cancelled = set.run(&["task", "cancel", "t-1"]);
    assert!(cancelled.status.success(), "{}", super::said(&cancelled));
    eventually("no process of it is left", || set.is_quiet());
    let task = until_some("its changes are on its record", || {
        let task = set.json(&["task", "show", "t-1"]);
        (task["state"] == "cancelled" && !set.paths(&task).is_empty()).then_some(task)
    });
    assert_eq!(set.paths(&task), ["made.txt"], "what it had written is offered: {task:#}");
}

#[test]
fn claude_writes_a_file_and_never_sees_the_key() {
    works(CLAUDE);
}

#[test]
fn codex_writes_a_file_and_never_sees_the_key() {
    works(CODEX);
}

#[test]
fn gemini_writes_a_file_and_never_sees_the_key() {
    works(GEMINI);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_writes_a_file_and_never_sees_the_key() {
    works(super::GOOSE);
}

#[test]
fn qwen_writes_a_file_and_never_sees_the_key() {
    works(QWEN);
}

#[test]
fn claude_is_cancelled_in_the_middle_of_a_turn() {
    is_cancelled(CLAUDE);
}

#[test]
fn codex_is_cancelled_in_the_middle_of_a_turn() {
    is_cancelled(CODEX);
}

#[test]
fn gemini_is_cancelled_in_the_middle_of_a_turn() {
    is_cancelled(GEMINI);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goose_is_cancelled_in_the_middle_of_a_turn() {
    is_cancelled(super::GOOSE);
}

#[test]
fn qwen_is_cancelled_in_the_middle_of_a_turn() {
    is_cancelled(QWEN);
}
