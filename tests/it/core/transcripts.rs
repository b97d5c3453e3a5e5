//! The output of agents while they work, read as it comes.

use provost::base::acp;
use provost::base::limits::{ANSWER_BYTES_MAX, STREAM_LINE_BYTES_MAX};
use provost::config;
use provost::jail::{Capture, LiveOutput, Reader, Stream, Transcript};
use serde_json::{Value, json};

const CLAUDE: &str = r#"{"type":"system","subtype":"init","model":"a-model","tools":["Edit"]}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"src/a.rs"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no such file"}]}}
{"type":"assistant","parent_tool_use_id":"x","message":{"content":[{"type":"text","text":"a helper's word"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done.\nAll of it."}]}}
"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":2,"cache_creation_input_tokens":1},"total_cost_usd":0.5}
"#;
const CODEX: &str = r#"{"type":"thread.started","thread_id":"1"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"0","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"0","type":"command_execution","command":"ls","exit_code":2,"status":"failed"}}
{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"a.rs","kind":"update"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"It is done."}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":1,"output_tokens":3}}
"#;

#[test]
fn paths_of_a_runs_copy_are_those_of_the_repository_and_one_line_is_one() {
    let path = "/home/a/x.copies/348/src/a.txt";
    let diff = json!({ "type": "diff", "path": path, "oldText": "one\n", "newText": "two\n" });
    let title = format!("Write {path}");
    let line = json!({ "sessionUpdate": "tool_call", "title": title, "content": [diff] });
    // What a call changes is told once, also where the agent says it again.
    let again = json!({ "sessionUpdate": "tool_call_update", "content": line["content"] });
    let mut read = Transcript::of(Reader::Acp, &format!("{line}\n{again}\n"));
    let told = ["* Write src/a.txt", "  changes src/a.txt: 1 line becomes 1", "    - one", "    + two"];
    assert_eq!(read.take_log(), told);
}

#[test]
fn a_call_is_named_by_what_its_agent_tells_of_it_and_nothing_is_made_up() {
    let edited = json!([{ "type": "diff", "path": "src/a.rs", "oldText": "", "newText": "x" }]);
    let of_server = json!({ "server": "files", "tool": "read", "arguments": { "command": "rm" } });
    for (call, tool, title) in [
        // As codex-acp 2.6.0 tells them.
        (
            json!({ "kind": "execute", "title": "", "rawInput": { "command": "echo hi", "cwd": "/repo" } }),
            "Shell",
            "echo hi",
        ),
        (
            json!({ "kind": "execute", "title": "mcp.files.read", "rawInput": of_server }),
            "mcp__files__read",
            "mcp.files.read",
        ),
        (
            json!({ "kind": "execute", "title": "", "rawInput": of_server }),
            "mcp__files__read",
            "mcp__files__read",
        ),
        (
            json!({ "kind": "execute", "rawInput": { "serverName": "files", "description": "May it?" } }),
            "mcp__files",
            "mcp__files",
        ),
        (
            json!({ "kind": "execute", "title": "https network access to a.b", "rawInput": { "url": "https://a.b" } }),
            "fetch",
            "https network access to a.b",
        ),
        (json!({ "kind": "edit", "title": "", "content": edited }), "Edit", "changes a file (src/a.rs)"),
        (json!({ "kind": "execute", "status": "pending" }), "Shell", "runs a command that it does not tell"),
        (json!({}), "other", "uses a tool that it does not name"),
        // What tells a command is a command, whatever it tells beside it.
        (
            json!({ "kind": "execute", "rawInput": { "server": "files", "tool": "read", "command": ["rm", "-r", "x"] } }),
            "Shell",
            "rm -r x",
        ),
        (
            json!({ "kind": "execute", "rawInput": { "server": "files", "tool": "read", "cmd": {} } }),
            "Shell",
            "runs a command that it does not tell",
        ),
        // The agent's own name comes first.
        (
            json!({ "kind": "execute", "name": "exec_command", "rawInput": { "server": "a", "tool": "b" } }),
            "exec_command",
            "exec_command",
        ),
    ] {
        assert_eq!(acp::tool(&call), tool, "{call}");
        assert_eq!(acp::title(&call), title, "{call}");
        let told = Transcript::of(Reader::Acp, &format!("{}\n", with(&call, "tool_call"))).take_log();
        assert_eq!(told[0], format!("* {title}"), "{call}");
    }
    // Rules are asked about no command where none is told.
    let arguments = acp::arguments(&json!({ "kind": "execute", "status": "pending" }));
    assert_eq!(arguments, json!({ "kind": "execute", "title": "runs a command that it does not tell" }));
}

fn with(call: &Value, update: &str) -> Value {
    let mut call = call.clone();
    call["sessionUpdate"] = update.into();
    call
}

#[test]
fn of_what_a_call_changes_the_lines_that_differ_are_told_and_not_without_a_bound() {
    let told = |old: Value, new: &str| {
        let diff = json!({ "type": "diff", "path": "a.rs", "oldText": old, "newText": new });
        let line = json!({ "sessionUpdate": "tool_call_update", "content": [diff] });
        Transcript::of(Reader::Acp, &format!("{line}\n")).take_log()
    };
    let inner = told(json!("a\nb\nc\nd\n"), "a\nB\nB\nc\nd\n");
    assert_eq!(inner, ["  changes a.rs: 4 lines become 5", "    - b", "    + B", "    + B"]);
    assert_eq!(told(json!("a\na\n"), "a\n"), ["  changes a.rs: 2 lines become 1", "    - a"]);
    assert_eq!(told(json!("a"), "a"), ["  changes a.rs: 1 line becomes 1"]);
    assert_eq!(told(Value::Null, "\u{1b}[2Ja"), ["  writes a.rs: 1 line", "    + a"]);
    let many: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let log = told(Value::Null, &many);
    assert_eq!((log.len(), log.last().unwrap().as_str()), (14, "    + [99988 more]"));
}

#[test]
fn claudes_messages_are_counted_and_its_last_word_is_the_answer() {
    let mut read = Transcript::of(Reader::Claude, CLAUDE);
    assert_eq!((read.answer(), read.steps(), read.failure()), ("Done.\nAll of it.", 4, None));
    let log = read.take_log();
    assert_eq!(log[..4], ["[session of a-model]", "* Read src/a.rs", "I look.", "  failed: no such file"]);
    assert!(read.take_log().is_empty());
    read.push(Stream::Out, RESULT.as_bytes());
    assert_eq!(read.answer(), "Done.");
    let used = read.used();
    assert_eq!((used.input, used.output, used.cost_usd), (Some(5), Some(7), Some(0.5)));
    assert_eq!((used.cache_read, used.cache_write, read.model()), (Some(2), Some(1), Some("a-model")));
    let failed = RESULT.replace("false", "true").replace("Done.", "Credit is used up");
    assert_eq!(Transcript::of(Reader::Claude, &failed).failure(), Some("Credit is used up"));
}

#[test]
fn codexs_items_are_counted_and_a_passing_error_is_taken_back() {
    let mut read = Transcript::of(Reader::Codex, CODEX);
    assert_eq!((read.answer(), read.steps(), read.failure()), ("It is done.", 3, None));
    assert_eq!((read.used().input, read.used().output, read.used().cache_read), (Some(8), Some(3), Some(1)));
    assert_eq!(
        read.take_log(),
        ["$ ls", "  failed with 2: ls", "* update a.rs", "It is done.", "Reconnecting... 1/5"]
    );
    read.push(Stream::Out, b"{\"type\":\"turn.failed\",\"error\":{\"message\":\"no more\"}}\n");
    assert_eq!(read.failure(), Some("no more"));
}

#[test]
fn pieces_of_a_message_are_one_answer_and_a_tool_ends_it() {
    let piece =
        |text: &str| json!({ "type": "message", "role": "assistant", "content": text, "delta": true });
    let tool =
        json!({ "type": "tool_use", "tool_name": "write_file", "parameters": { "file_path": "a.rs" } });
    let lines = [piece("I lo"), piece("ok."), tool, piece("It is "), piece("\u{1b}[2Jdone.")];
    let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
    let mut read = Transcript::of(Reader::Gemini, &text);
    assert_eq!((read.answer(), read.steps(), read.failure()), ("It is done.", 3, None));
    assert_eq!(read.take_log()[2], "* write_file a.rs");
    let error = json!({ "type": "result", "status": "error", "error": { "message": "[API Error: {\"error\":{\"message\":\"no key\"}}]" } });
    read.push(Stream::Out, format!("{error}\n").as_bytes());
    assert_eq!(read.failure(), Some("no key"));
}

#[test]
fn a_service_that_is_asked_again_and_again_is_a_reason_until_it_answers() {
    let retry = "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":2,\"max_retries\":6,\"error_status\":401,\"error\":\"authentication_failed\"}\n";
    let mut read = Transcript::of(Reader::Claude, retry);
    assert_eq!(read.failure(), Some("the model's service answers 401 (authentication_failed), retry 2 of 6"));
    read.push(Stream::Out, RESULT.as_bytes());
    assert_eq!(read.failure(), None);
}

#[test]
fn it_does_not_matter_how_the_bytes_are_cut() {
    let whole = Transcript::of(Reader::Claude, &format!("{CLAUDE}{RESULT}"));
    let mut bytewise = Transcript::new(Reader::Claude);
    let live = LiveOutput::new(1 << 20);
    for byte in format!("{CLAUDE}{RESULT}").bytes() {
        live.push(Stream::Out, &[byte]);
        bytewise.read(&live.read_from(bytewise.at()));
    }
    bytewise.finish();
    assert_eq!(
        (bytewise.answer(), bytewise.steps(), bytewise.used()),
        (whole.answer(), whole.steps(), whole.used())
    );
    bytewise.read(&live.read_from(0));
    assert_eq!(bytewise.steps(), whole.steps(), "what was read is not read again");
}

#[test]
fn garbage_is_a_line_for_people_and_nothing_acts() {
    let garbage = "\u{1b}]0;title\u{7}plain \u{1b}[31mred\u{202e}\n{\"type\":\n[[[{{{\n{\"type\":\"unheard of\"}\n{}\nnull\n\0\n";
    let messages = [Reader::Claude, Reader::Codex, Reader::Gemini, Reader::OpenCode, Reader::Copilot];
    for reader in messages.into_iter().chain([Reader::Lines]) {
        let mut read = Transcript::of(reader, garbage);
        assert!(read.answer().starts_with("plain red\n"), "{reader:?}: {:?}", read.answer());
        assert_eq!(read.understood(), reader == Reader::Lines);
        let log = read.take_log().concat();
        assert!(!log.contains('\u{1b}') && !log.contains('\0') && !log.contains('\u{202e}'), "{log:?}");
    }
    let hostile = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"\\u001b[2Jall\"}]}}\n";
    assert_eq!(Transcript::of(Reader::Claude, hostile).answer(), "all");
    assert_eq!(Transcript::of(Reader::Lines, "").answer(), "");
}

#[test]
fn however_much_comes_memory_stays_bounded_and_later_words_count() {
    let mut read = Transcript::new(Reader::Claude);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..(STREAM_LINE_BYTES_MAX >> 20) + 3 {
        read.push(Stream::Out, &block);
    }
    read.push(Stream::Out, format!("\n{CLAUDE}").as_bytes());
    assert_eq!(read.answer(), "Done.\nAll of it.");
    assert!(read.take_log().iter().any(|line| line.contains("a line of more than")));
    for _ in 0..20_000 {
        read.push(Stream::Err, b"again and again and again and again\n");
    }
    let log = read.take_log();
    assert!(log[0].ends_with("lines left out]") && log.len() < 20_000, "{}", log[0]);
    let text = "line\n".repeat(ANSWER_BYTES_MAX);
    assert_eq!(Transcript::of(Reader::Lines, &text).answer().len(), ANSWER_BYTES_MAX);
}

#[test]
fn what_was_dropped_is_a_gap_and_spoils_no_later_message() {
    let mut capture = Capture::new(4_096);
    capture.push(Stream::Out, CLAUDE.as_bytes());
    capture.push(Stream::Out, &vec![b'x'; 100_000]);
    capture.push(Stream::Out, format!("\n{RESULT}").as_bytes());
    let mut read = Transcript::new(Reader::Claude);
    read.read(&capture.read_from(0));
    assert_eq!(read.answer(), "Done.");
    assert!(read.take_log().iter().any(|line| line.contains("bytes dropped")));
}

#[test]
fn each_form_of_the_settings_has_a_reader() {
    use config::Reader::{Claude, Codex, Copilot, Gemini, Lines, OpenCode};
    let forms = [Lines, Claude, Codex, Gemini, OpenCode, Copilot];
    let readers: Vec<String> =
        forms.iter().map(|it| format!("{:?}", Reader::named(it.as_str()).unwrap())).collect();
    assert_eq!(readers, forms.map(|it| format!("{it:?}")));
    assert_eq!(Reader::named("claude"), None);
}

/// Qwen Code's usage of each request is added up, and what came out of the cache is counted once.
#[test]
fn what_each_request_of_qwen_code_has_used_is_added_up() {
    let piece = |usage: serde_json::Value| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "" }, "_meta": { "usage": usage } });
    let qwen = json!({ "inputTokens": 100, "outputTokens": 25, "totalTokens": 125, "thoughtTokens": 0, "cachedReadTokens": 7 });
    let text = format!("{}\n{}\n", piece(qwen.clone()), piece(qwen));
    let read = Transcript::of(Reader::Acp, &text);
    let used = read.used();
    assert_eq!((used.input, used.output, used.cache_read), (Some(186), Some(50), Some(14)));
    // Where the sum has the cache's beside those that were read, they stay.
    let claude =
        json!({ "inputTokens": 186, "outputTokens": 50, "totalTokens": 250, "cachedReadTokens": 14 });
    let text = format!("{}\n", json!({ "provost": "end", "stopReason": "end_turn", "usage": claude }));
    let used = Transcript::of(Reader::Acp, &text).used();
    assert_eq!((used.input, used.output, used.cache_read), (Some(186), Some(50), Some(14)));
    let huge = json!({ "inputTokens": u64::MAX, "outputTokens": u64::MAX, "totalTokens": 1 });
    let text = format!("{}\n{}\n", piece(huge.clone()), piece(huge));
    assert_eq!(Transcript::of(Reader::Acp, &text).used().input, Some(u64::MAX));
}
