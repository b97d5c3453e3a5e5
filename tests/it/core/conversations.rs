//! Turns of editors' sessions on the disk: in order, without what was said twice, and bounded for each turn, each session and all of them.

use std::fs;
use std::path::Path;

use provost::base::limits::{
    CONVERSATION_BYTES_MAX, CONVERSATIONS_BYTES_MAX, TURN_KEPT_BYTES_MAX, TURN_ROUGH_BYTES_MAX,
};
use provost::jail::{Chunk, Conversations, Page, SessionTurn, Stream, TurnKeeper};
use serde_json::{Value, json};

fn turn(owner: &str, session: &str, task: &str) -> SessionTurn {
    SessionTurn { owner: owner.parse().unwrap(), session: session.into(), task: task.parse().unwrap() }
}

/// A folder for turns, which is not there yet, in one of the test's own.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("c");
    (home, folder)
}

/// Has a keeper take lines from a place in the output on; where they end.
fn take(keeper: &mut TurnKeeper, at: u64, text: &str) -> u64 {
    let chunk = Chunk { at, stream: Stream::Out, bytes: text.as_bytes().to_vec() };
    let next = at + text.len() as u64;
    keeper.take(&Page { chunks: vec![chunk], next, finished: false }, at).unwrap();
    next
}

fn says(text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    format!("{}\n", json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
}

fn calls(id: &str, state: &str, content: &str) -> String {
    let content = json!([{ "type": "content", "content": { "type": "text", "text": content } }]);
    let call = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "read", "status": state, "content": content });
    format!("{call}\n")
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |it: fs::DirEntry| match it.file_type().unwrap().is_dir() {
        true => bytes_below(&it.path()),
        false => it.metadata().unwrap().len(),
    };
    entries.map(size).sum()
}

#[test]
fn pieces_are_one_message_and_a_call_is_told_once_with_its_last_state_where_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Conversations::at(&folder.path().join("c"));
    let it = turn("ada", "s", "t");
    let mut keeper = kept.keep(&it).unwrap();
    let mode = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "x" });
    let plan = |what: &str| {
        let entry = json!({ "content": what, "priority": "high", "status": "pending" });
        format!("{}\n", json!({ "sessionUpdate": "plan", "entries": [entry] }))
    };
    let text = [
        says("on"),
        says("e"),
        calls("a", "pending", "first"),
        format!("{mode}\nno message\n{}\n", json!({ "provost": "turn" })),
        says("two"),
        plan("early"),
        says("after it"),
        calls("a", "completed", "last"),
        plan("late"),
    ]
    .concat();
    // In pieces of any length.
    let mut at = 0;
    for piece in text.as_bytes().chunks(7) {
        at = take(&mut keeper, at, std::str::from_utf8(piece).unwrap());
    }
    // A line whose middle was not kept in the output is none.
    let at = take(&mut keeper, at, "{\"sessionUpdate\":\"agent_message_chunk\",");
    let rest = "\"content\":{\"type\":\"text\",\"text\":\"torn\"}}\n";
    let chunk = Chunk { at: at + 5, stream: Stream::Out, bytes: rest.as_bytes().to_vec() };
    let next = at + 5 + rest.len() as u64;
    keeper.take(&Page { chunks: vec![chunk], next, finished: false }, at).unwrap();
    let at = next;
    take(&mut keeper, at, &says(" three"));
    let live = kept.of(&it).unwrap();
    keeper.end().unwrap();
    let told = kept.of(&it).unwrap();
    assert_eq!(told, live, "it is the same before and after it was rewritten");
    let words = |it: &Value| it["content"]["text"].as_str().map(str::to_owned);
    assert_eq!(words(&told[0]).as_deref(), Some("one"));
    let call = &told[1];
    assert_eq!((&call["sessionUpdate"], &call["status"]), (&json!("tool_call"), &json!("completed")));
    assert_eq!(call["content"][0]["content"]["text"], "last");
    assert_eq!(call["title"], "reads a file", "an editor needs one");
    assert_eq!(
        words(&told[2]).as_deref(),
        Some("two\n\nafter it"),
        "a plan that counts no more was between them"
    );
    assert_eq!(told[3]["entries"][0]["content"], "late");
    assert_eq!(words(&told[4]).as_deref(), Some(" three"));
    assert_eq!(told.len(), 5, "{told:#?}");
    // Another agent's session of the same id is another one.
    assert!(kept.of(&turn("bob", "s", "t")).unwrap().is_empty());
}

#[test]
fn a_line_that_a_kill_has_torn_is_left_out_and_what_comes_after_it_is_not() {
    let (_home, folder) = folder();
    let kept = Conversations::at(&folder);
    let it = turn("ada", "s", "t");
    let mut keeper = kept.keep(&it).unwrap();
    take(&mut keeper, 0, &says("before"));
    // As a kill leaves it: not ended, and the last line cut.
    drop(keeper);
    let session = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(session).unwrap().next().unwrap().unwrap().path();
    let mut text = fs::read(&file).unwrap();
    text.extend_from_slice(b"{\"sessionUpdate\":\"plan\",\"entr");
    fs::write(&file, text).unwrap();
    let mut keeper = kept.keep(&it).unwrap();
    take(&mut keeper, 0, &calls("a", "completed", "after"));
    let told = kept.of(&it).unwrap();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(told[1]["toolCallId"], "a");
}

#[test]
fn a_turn_that_floods_has_a_bound_and_keeps_what_came_last() {
    let (_home, folder) = folder();
    let kept = Conversations::at(&folder);
    let it = turn("ada", "s", "t");
    let mut keeper = kept.keep(&it).unwrap();
    let (mut at, long) = (0, "x".repeat(50_000));
    for number in 0..400 {
        at =
            take(&mut keeper, at, &[calls(&format!("c{number}"), "completed", &long), says("word")].concat());
        assert!(bytes_below(&folder) < 2 * TURN_ROUGH_BYTES_MAX as u64);
    }
    keeper.end().unwrap();
    assert!(bytes_below(&folder) <= TURN_KEPT_BYTES_MAX as u64);
    let told = kept.of(&it).unwrap();
    let last = told.iter().rfind(|it| it["toolCallId"].is_string()).unwrap();
    assert_eq!((last["toolCallId"].as_str(), last["status"].as_str()), (Some("c399"), Some("completed")));
    // The oldest have lost what they said, before any has lost its place.
    assert!(last.to_string().contains(&long));
    let first = told.iter().find(|it| it["toolCallId"].is_string()).unwrap();
    assert!(first["toolCallId"] == "c0" && first.to_string().contains("Not kept"), "{first:#}");
}

#[test]
fn messages_without_end_have_a_bound_and_the_beginning_goes_first() {
    let (_home, folder) = folder();
    let kept = Conversations::at(&folder);
    let it = turn("ada", "s", "t");
    let mut keeper = kept.keep(&it).unwrap();
    let mut at = 0;
    for number in 0..300 {
        let text = [
            says(&"y".repeat(40_000)),
            says(&"y".repeat(40_000)),
            calls(&format!("c{number}"), "completed", ""),
        ];
        at = take(&mut keeper, at, &text.concat());
    }
    keeper.end().unwrap();
    assert!(bytes_below(&folder) <= TURN_KEPT_BYTES_MAX as u64);
    let told = kept.of(&it).unwrap();
    assert!(told[0].to_string().contains("The beginning of this turn is not kept"), "{:.200}", told[0]);
    assert_eq!(told.last().unwrap()["toolCallId"], "c299");
}

#[test]
fn the_oldest_turns_of_a_session_and_of_all_sessions_go_first() {
    let (_home, folder) = folder();
    let kept = Conversations::at(&folder);
    let keep = |session: &str, task: &str| {
        let mut keeper = kept.keep(&turn("ada", session, task)).unwrap();
        let mut at = 0;
        for number in 0..19 {
            at = take(&mut keeper, at, &calls(&format!("c{number}"), "completed", &"z".repeat(50_000)));
        }
        keeper.end().unwrap();
    };
    let has = |session: &str, task: &str| !kept.of(&turn("ada", session, task)).unwrap().is_empty();
    for number in 0..12 {
        keep("one", &format!("t{number}"));
    }
    assert!(bytes_below(&folder) <= CONVERSATION_BYTES_MAX);
    assert!(!has("one", "t0") && has("one", "t11") && has("one", "t5"));
    for number in 0..80 {
        keep(&format!("s{number}"), "t");
    }
    assert!(bytes_below(&folder) <= CONVERSATIONS_BYTES_MAX);
    assert!(!has("one", "t11") && has("s79", "t") && has("s30", "t"));
    // The folders of sessions that have nothing left go as well.
    let left = fs::read_dir(&folder).unwrap().count();
    assert!(left < 80, "{left}");
}

#[test]
fn a_clock_that_was_set_removes_no_turn() {
    let (home, folder) = folder();
    let kept = Conversations::at(&folder);
    let (old, other) = (turn("ada", "s", "old"), turn("ada", "s", "other"));
    let mut keeper = kept.keep(&old).unwrap();
    take(&mut keeper, 0, &says("before"));
    keeper.end().unwrap();
    // As if the clock had been set ahead by decades since it was written.
    let session = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(session).unwrap().next().unwrap().unwrap().path();
    let file = fs::File::options().append(true).open(file).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    for _ in 0..2 {
        kept.keep(&other).unwrap().end().unwrap();
        assert!(!kept.of(&old).unwrap().is_empty());
    }
    // The time that the daemon has seen pass counts.
    let ages = home.path().join("c.ages");
    let mut seen: Value = serde_json::from_slice(&fs::read(&ages).unwrap()).unwrap();
    seen["passed"] = json!(seen["passed"].as_u64().unwrap() + 400 * 24 * 60 * 60);
    fs::write(&ages, seen.to_string()).unwrap();
    kept.keep(&other).unwrap().end().unwrap();
    assert!(kept.of(&old).unwrap().is_empty());
}

#[test]
fn the_pages_of_one_reading_are_of_one_moment() {
    let (_home, folder) = folder();
    let kept = Conversations::at(&folder);
    let it = turn("ada", "s", "t");
    assert_eq!(kept.of_moment(&it, None).unwrap().unwrap().0, Vec::<Value>::new());
    let mut keeper = kept.keep(&it).unwrap();
    let at = take(&mut keeper, 0, &[says("one"), calls("a", "pending", "first"), says("two")].concat());
    let (first, moment) = kept.of_moment(&it, None).unwrap().unwrap();
    assert_eq!(first.len(), 3);
    // What comes now continues the last message, and gives the call its end.
    take(&mut keeper, at, &[says(" and more"), calls("a", "completed", "last")].concat());
    let (again, same) = kept.of_moment(&it, Some(&moment)).unwrap().unwrap();
    assert_eq!((again, same), (first, moment.clone()));
    assert!(json!(kept.of_moment(&it, None).unwrap().unwrap().0).to_string().contains("two and more"));
    for none in ["", "7", "9999999-x", "-", "1-0"] {
        assert!(kept.of_moment(&it, Some(none)).unwrap().is_none(), "{none}");
    }
    // A rewritten turn is another moment.
    keeper.end().unwrap();
    assert!(kept.of_moment(&it, Some(&moment)).unwrap().is_none());
}
