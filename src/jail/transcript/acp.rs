//! Updates of a session in the Agent Client Protocol, one on each line, as the daemon writes them into a run's output; lines with
//! `provost` are the daemon's own. ACP v1, "Prompt turn".
//!
//! An answer comes in pieces; a tool call ends the answer, and only the words after the last call are the final one.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::{Said, text};
use provost_base::limits::STREAM_DIFF_LINES_MAX;
use provost_base::{Digest, acp};

/// Reads one line; returns `false` if it is not of this form.
pub(super) fn read(said: &mut Said, line: &Value) -> bool {
    if line.get("provost").is_some() {
        own(said, line);
        return true;
    }
    match text(line, "sessionUpdate") {
        "" => return false,
        "agent_message_chunk" => chunk(said, line),
        "agent_thought_chunk" | "user_message_chunk" => {}
        "tool_call" => {
            said.pauses();
            said.steps += 1;
            said.log(&format!("* {}", titled(&acp::title(line))));
            differences(said, line);
        }
        "tool_call_update" => called(said, line),
        "plan" => {
            let entries = line["entries"].as_array().into_iter().flatten();
            entries.for_each(|it| said.log(&format!("- [{}] {}", text(it, "status"), text(it, "content"))));
        }
        "usage_update" => used_so_far(said, line),
        "notice" => said.log(&format!("! {} {}", text(line, "title"), text(line, "description"))),
        "current_mode_update" => said.log(&format!("[mode: {}]", text(line, "currentModeId"))),
        // Commands, options, titles and what later versions add: nothing for people.
        _ => {}
    }
    true
}

fn chunk(said: &mut Said, line: &Value) {
    let words = line.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
    // Qwen Code reports the use of each of its requests in a piece without text.
    if let Some(usage) = line.pointer("/_meta/usage") {
        let before = std::mem::take(&mut said.used);
        used(said, usage);
        let now = &mut said.used;
        now.cost_usd = before.cost_usd;
        for (now, before) in [
            (&mut now.input, before.input),
            (&mut now.output, before.output),
            (&mut now.reasoning, before.reasoning),
            (&mut now.cache_read, before.cache_read),
            (&mut now.cache_write, before.cache_write),
        ] {
            *now = now.zip(before).map(|(now, before)| now.saturating_add(before)).or(*now).or(before);
        }
    }
    match (words.is_empty(), said.is_over) {
        (true, _) => {}
        (false, false) => said.speaks_on(words, true),
        // Words after the end of the turn are for people to see, and no part of an answer.
        (false, true) => said.log_each(words),
    }
}

fn called(said: &mut Said, line: &Value) {
    said.pauses();
    if !text(line, "title").is_empty() {
        said.log(&format!("  {}", titled(text(line, "title"))));
    }
    differences(said, line);
    if text(line, "status") == "failed" {
        let why = line.get("rawOutput").and_then(Value::as_str);
        let content = || line.pointer("/content/0/content/text").and_then(Value::as_str);
        said.log(&format!("  failed: {}", why.or_else(content).unwrap_or("it does not say why")));
    }
}

/// Records what a call changes, file by file, with the first changed lines; the whole texts are in the run's output.
fn differences(said: &mut Said, line: &Value) {
    let content = line["content"].as_array().into_iter().flatten();
    for diff in content.filter(|it| it["type"] == "diff") {
        let (path, new) = (in_its_copy(text(diff, "path")), text(diff, "newText"));
        let old = diff.get("oldText").and_then(Value::as_str);
        // Agents send a difference when a call begins, and again when it goes on and when it is over.
        let told = Some(Digest::of_fields([path, old.unwrap_or_default(), new].map(str::as_bytes)));
        if said.difference == told {
            continue;
        }
        said.difference = told;
        match (old.map(|it| it.lines().count()), new.lines().count()) {
            (Some(1), new) => said.log(&format!("  changes {path}: 1 line becomes {new}")),
            (Some(old), new) => said.log(&format!("  changes {path}: {old} lines become {new}")),
            (None, 1) => said.log(&format!("  writes {path}: 1 line")),
            (None, new) => said.log(&format!("  writes {path}: {new} lines")),
        }
        changed_lines(said, old.unwrap_or_default(), new);
    }
}

/// Shows the lines between the common beginning and the common end of two texts, up to a bound for each text.
fn changed_lines(said: &mut Said, old: &str, new: &str) {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    old.drain(..same);
    new.drain(..same);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len() - same);
    new.truncate(new.len() - same);
    for (sign, lines) in [('-', old), ('+', new)] {
        for line in lines.iter().take(STREAM_DIFF_LINES_MAX) {
            said.log(&format!("    {sign} {line}"));
        }
        let more = lines.len().saturating_sub(STREAM_DIFF_LINES_MAX);
        if more > 0 {
            said.log(&format!("    {sign} [{more} more]"));
        }
    }
}

/// Returns a path as it is in the repository: without the folder of the run's private copy, which is `….copies/NAME`.
fn in_its_copy(path: &str) -> &str {
    let inside = path.split_once(".copies/").and_then(|(_, it)| it.split_once('/'));
    inside.map_or(path, |(_, inside)| inside)
}

/// Does the same for each word of a title; a word may begin with a quotation mark.
fn titled(title: &str) -> String {
    let words = title.split(' ').map(|word| {
        let bare = word.trim_start_matches(['`', '\'', '"', '(']);
        let inside = in_its_copy(bare);
        if inside == bare { word.to_owned() } else { format!("{}{inside}", &word[..word.len() - bare.len()]) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Reads a line of the daemon: the beginning of a turn, words to the agent, a permission, a mode that was set again, the end of the turn.
fn own(said: &mut Said, line: &Value) {
    match text(line, "provost") {
        "turn" => {
            said.is_over = false;
            said.pauses();
            said.used_before = said.used;
        }
        "said" => said.log_each(&format!("> {}: {}", text(line, "by"), text(line, "text"))),
        "question" => said.log(&format!("? {}", text(line, "text"))),
        "cancel" => said.log("[its turn is ended for what was said]"),
        "resumed" => said.log(&format!("[it goes on in its session: {}]", text(line, "why"))),
        "permission" => {
            let why = text(line, "reason");
            let because = if why.is_empty() { String::new() } else { format!(": {why}") };
            said.log(&format!("[{}: {}{because}]", text(line, "verdict"), titled(text(line, "title"))));
        }
        "mode" if line.get("now").is_some() => {
            said.log(&format!("[it has set its mode to '{}' by itself]", text(line, "now")));
        }
        "mode" => said.log(&format!(
            "[it left its mode for '{}'; '{}' is set again]",
            text(line, "left"),
            text(line, "set")
        )),
        "end" => {
            said.is_over = true;
            said.pauses();
            for usage in [line.pointer("/_meta/quota/token_count"), line.get("usage")].into_iter().flatten() {
                used(said, usage);
            }
            let models = line.pointer("/_meta/quota/model_usage").and_then(Value::as_array);
            if let Some(model) = models.into_iter().flatten().next().map(|it| text(it, "model")) {
                said.names_model(model);
            }
        }
        _ => {}
    }
}

/// Reads the tokens of the turn, under the names that agents give them.
fn used(said: &mut Said, usage: &Value) {
    let before = said.used_before;
    let told = |names: &[&str]| names.iter().find_map(|name| usage.get(name).and_then(Value::as_u64));
    let with =
        |told: Option<u64>, before: Option<u64>| told.map(|it| it.saturating_add(before.unwrap_or_default()));
    let (read, written) = (told(&["inputTokens", "input_tokens"]), told(&["outputTokens", "output_tokens"]));
    let cached = told(&["cachedReadTokens", "cachedInputTokens"]);
    // The total shows whether the agent counts the cache's tokens among the tokens that were read.
    let all = read.zip(written).and_then(|(read, written)| read.checked_add(written));
    let among = cached.filter(|_| all == told(&["totalTokens"])).unwrap_or_default();
    let used = &mut said.used;
    used.input = with(read.map(|it| it.saturating_sub(among)), before.input).or(used.input);
    used.output = with(written, before.output).or(used.output);
    let reasoning = told(&["thoughtTokens", "reasoningOutputTokens"]);
    used.reasoning = with(reasoning, before.reasoning).or(used.reasoning);
    used.cache_read = with(cached, before.cache_read).or(used.cache_read);
    used.cache_write = with(told(&["cachedWriteTokens"]), before.cache_write).or(used.cache_write);
}

/// Reads the cost so far, which is a running total; ignores a claim that is no sum of money.
fn used_so_far(said: &mut Said, line: &Value) {
    let amount = line.pointer("/cost/amount").and_then(Value::as_f64);
    let is_dollars = line.pointer("/cost/currency").and_then(Value::as_str) == Some("USD");
    if let Some(amount) = amount.filter(|it| is_dollars && it.is_finite() && *it >= 0.0) {
        said.used.cost_usd = Some(amount);
    }
    if let Some(model) = line.pointer("/_meta/_claude~1model").and_then(Value::as_str) {
        said.names_model(model);
    }
}
