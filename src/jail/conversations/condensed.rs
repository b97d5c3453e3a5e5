//! The updates of a turn without repetitions, for an editor that takes its session up.
//!
//! The order is that of the beginnings: words between two calls stay between them, and a call stays where it began.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use serde_json::{Value, json};

use provost_base::acp;
use provost_base::limits::TURN_TEXT_KEPT;

/// Pieces of messages.
const PIECES: [&str; 2] = ["agent_message_chunk", "agent_thought_chunk"];
/// Updates of calls.
const CALLS: [&str; 2] = ["tool_call", "tool_call_update"];
/// Updates that replace each other: the last one counts.
const LAST_ONES: [&str; 3] = ["plan", "usage_update", "session_info_update"];
/// Notes of the daemon among the updates.
const NOTES: [&str; 3] = ["permission", "question", "said"];
/// Members of a call that may be long.
const CONTENTS: [&str; 4] = ["content", "rawInput", "rawOutput", "_meta"];
/// A call that has less than this, in bytes, stays as it is.
const CALL_BYTES: usize = 2 << 10;
/// The text between two messages that have become one.
const PARTED: &str = "\n\n";
/// The end of a text whose rest is not kept.
const CUT: &str = "…";

/// Returns whether a line of a run's output is kept.
pub(super) fn is_kept(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|it| kind(&it).is_some())
}

/// Returns the kind of a line: that of an update, or that of a note of the daemon.
fn kind(line: &Value) -> Option<&str> {
    if let Some(note) = line.get("provost") {
        return note.as_str().filter(|it| NOTES.contains(it));
    }
    let kind = line["sessionUpdate"].as_str()?;
    [&PIECES[..], &CALLS, &LAST_ONES].concat().contains(&kind).then_some(kind)
}

/// Joins the pieces of a message, and all updates of a call; the last plan stays. Updates that were condensed before stay as they are.
pub(super) fn condensed(lines: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut all: Vec<Option<Value>> = Vec::new();
    let (mut calls, mut last_ones) = (HashMap::new(), HashMap::new());
    for mut line in lines {
        let Some(kind) = kind(&line).map(str::to_owned) else { continue };
        if PIECES.contains(&&*kind) {
            clip(&mut line);
            match all.last_mut().and_then(Option::as_mut).filter(|it| is_one_message(it, &line)) {
                Some(before) => append(before, "", &line),
                None => all.push(Some(line)),
            }
            continue;
        }
        if CALLS.contains(&&*kind) {
            let Some(id) = line["toolCallId"].as_str().map(str::to_owned) else { continue };
            let at = *calls.entry(id).or_insert(all.len());
            if at == all.len() {
                all.push(Some(json!({})));
            }
            if let Some(call) = all[at].as_mut() {
                acp::merge(call, &line);
                call["sessionUpdate"] = "tool_call".into();
                if call["title"].as_str().is_none_or(|it| it.trim().is_empty()) {
                    call["title"] = acp::title(call).into();
                }
            }
            continue;
        }
        if LAST_ONES.contains(&&*kind)
            && let Some(before) = last_ones.insert(kind, all.len())
        {
            all[before] = None;
        }
        all.push(Some(line));
    }
    let mut told: Vec<Value> = Vec::new();
    for line in all.into_iter().flatten() {
        match told.last_mut().filter(|it| is_one_message(it, &line)) {
            // An update that counts no more stood between them, such as an earlier plan.
            Some(before) => append(before, PARTED, &line),
            None => told.push(line),
        }
    }
    told
}

fn text(piece: &Value) -> Option<&str> {
    piece.pointer("/content/text")?.as_str()
}

fn is_one_message(before: &Value, piece: &Value) -> bool {
    let same = |name: &str| before.get(name) == piece.get(name);
    text(before).is_some() && text(piece).is_some() && same("sessionUpdate") && same("messageId")
}

/// Adds a piece to its message, as far as there is room.
fn append(message: &mut Value, between: &str, piece: &Value) {
    let Some(Value::String(whole)) = message.pointer_mut("/content/text") else { return };
    if !(whole.len() >= TURN_TEXT_KEPT && whole.ends_with(CUT)) {
        whole.push_str(between);
        whole.push_str(text(piece).unwrap_or_default());
    }
    clip(message);
}

fn clip(message: &mut Value) {
    let Some(Value::String(whole)) = message.pointer_mut("/content/text") else { return };
    let most = TURN_TEXT_KEPT + CUT.len();
    if whole.len() > most {
        whole.truncate(whole.floor_char_boundary(TURN_TEXT_KEPT));
        whole.push_str(CUT);
    }
}

/// Cuts the updates down to `most` bytes: first the oldest calls lose their long members, then the oldest updates go.
pub(super) fn fitted(mut updates: Vec<Value>, most: usize) -> Vec<Value> {
    let size = |it: &Value| it.to_string().len() + 1;
    let mut all: usize = updates.iter().map(size).sum();
    for call in updates.iter_mut().filter(|it| it["sessionUpdate"] == "tool_call") {
        let before = size(call);
        if all <= most {
            return updates;
        }
        if before < CALL_BYTES {
            continue;
        }
        if let Some(members) = call.as_object_mut() {
            CONTENTS.iter().for_each(|it| drop(members.remove(*it)));
            let said = json!({ "type": "text", "text": "[Not kept: this turn was too long.]" });
            members.insert("content".into(), json!([{ "type": "content", "content": said }]));
        }
        all = all + size(call) - before;
    }
    let note = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "provost-left-out",
        "content": { "type": "text", "text": "[The beginning of this turn is not kept.]\n\n" } });
    let mut gone = 0;
    while all + size(&note) > most && gone < updates.len() {
        all -= size(&updates[gone]);
        gone += 1;
    }
    if gone > 0 {
        updates.splice(..gone, [note]);
    }
    updates
}
