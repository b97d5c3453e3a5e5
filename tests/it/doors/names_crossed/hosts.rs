//! As a host of agents, over HTTP and over standard input.

use super::*;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::loopback_client::Http;
use crate::support::mcp_host::{EVERY, Host};

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_to_hosts_over_http() {
    let stage = Stage::set();
    let http = Http::mcp(&stage.world);
    let mut answers = Vec::new();
    let era = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "feat-victim", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
        "x-codex-turn-metadata": { "session_id": "feat-victim" }, "agent": "feat-victim",
    });
    let calls = [
        ("inbox_read", json!({})),
        ("inbox_read", json!({ "agent": "feat-victim" })),
        ("lock_release", json!({ "symbol": "src/a.ts:f" })),
        ("claim_release", json!({ "path": "c.ts" })),
        ("intent_update", json!({ "intent_id": stage.intent, "to": "abandoned" })),
        ("handoff_accept", json!({ "handoff_id": stage.offer })),
        ("handoff_reject", json!({ "handoff_id": stage.offer })),
        ("task_cancel", json!({ "task_id": "theirs" })),
        ("work_end", json!({})),
        ("message_send", json!({ "to": "friend", "text": "x", "from": "feat-victim" })),
    ];
    let bearer = stage.bearer();
    for name in SPELLINGS {
        let encoded: String = name.bytes().map(|it| format!("%{it:02x}")).collect();
        let plain = name.replace(' ', "%20");
        for (target, named) in [
            (format!("/mcp?agent={plain}"), vec![]),
            (format!("/mcp?agent={encoded}"), vec![]),
            (format!("/mcp?agent={MALLORY}&agent={plain}"), vec![]),
            (format!("/mcp?agent={plain}&agent={MALLORY}"), vec![]),
            (format!("/mcp?%61gent={encoded}"), vec![]),
            (format!("/mcp?Agent={plain}&as={plain}&token=x"), vec![]),
            (format!("/mcp?agent={MALLORY}"), vec![name]),
            ("/mcp".to_owned(), vec![name]),
            ("/mcp".to_owned(), vec![MALLORY, name]),
            ("/mcp".to_owned(), vec![name, MALLORY]),
        ] {
            for (tool, arguments) in &calls {
                let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": { "name": tool, "arguments": arguments, "_meta": era } });
                for shows in [true, false] {
                    let mut headers = vec![
                        ("Accept", "application/json, text/event-stream"),
                        ("Content-Type", "application/json"),
                        ("mcp-protocol-version", "2026-07-28"),
                        ("mcp-method", "tools/call"),
                        ("mcp-name", *tool),
                    ];
                    headers.extend(named.iter().map(|it| ("x-provost-agent", *it)));
                    headers.extend(shows.then_some(("authorization", bearer.as_str())));
                    let said = http.send(&format!("POST {target}"), &headers, message.to_string().as_bytes());
                    let text = String::from_utf8_lossy(&said.body).into_owned();
                    answers.push((format!("{tool} at {target} {named:?}, token: {shows}"), text));
                }
            }
        }
    }
    // The session of another.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } } });
    let theirs = format!("Bearer {}", stage.victim);
    let plain = [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    let with = |more: &[(&str, &str)], verb: &str, body: &str| {
        let host = [("Host", "127.0.0.1:PORT"), ("Connection", "close")];
        let headers: Vec<(&str, &str)> = host.iter().chain(&plain).chain(more).copied().collect();
        let mut stream = http.connect();
        stream.write_all(&http.bytes(verb, &headers, body.as_bytes())).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    };
    let session_of = |answer: &str| {
        let line = answer.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
        line.unwrap_or_else(|| panic!("{answer}")).trim().to_owned()
    };
    let begun = with(&[("authorization", &theirs)], "POST /mcp", &hello.to_string());
    let session = session_of(&begun);
    let mine = with(&[("authorization", &bearer)], "POST /mcp", &hello.to_string());
    let my_session = session_of(&mine);
    let version = ("mcp-protocol-version", "2025-11-25");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    with(&[("authorization", &theirs), version, ("mcp-session-id", &session)], "POST /mcp", &ready);
    with(&[("authorization", &bearer), version, ("mcp-session-id", &my_session)], "POST /mcp", &ready);
    let read = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "inbox_read", "arguments": {} } }).to_string();
    for (verb, body) in [
        ("POST /mcp", read.as_str()),
        ("GET /mcp", ""),
        ("DELETE /mcp", ""),
        ("POST /mcp?agent=feat-victim", read.as_str()),
    ] {
        for shown in [Some(bearer.as_str()), None] {
            let mut headers = vec![version, ("mcp-session-id", session.as_str())];
            headers.extend(shown.map(|it| ("authorization", it)));
            let said = with(&headers, verb, body);
            assert!(said.starts_with("HTTP/1.1 4"), "{verb} with {shown:?} in another's session: {said}");
        }
    }
    // Of two sessions, the second is not had by the first.
    let ids = [my_session.as_str(), session.as_str()];
    for ids in [ids, [ids[1], ids[0]]] {
        for shown in [Some(bearer.as_str()), None] {
            let mut headers = vec![version];
            headers.extend(ids.map(|it| ("mcp-session-id", it)));
            headers.extend(shown.map(|it| ("authorization", it)));
            answers.push((format!("two sessions with {shown:?}"), with(&headers, "POST /mcp", &read)));
        }
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }).to_string();
    let still =
        with(&[("authorization", &theirs), version, ("mcp-session-id", &session)], "POST /mcp", &ping);
    assert!(still.contains("\"result\""), "the session is there still: {still}");
    stage.is_untouched(&answers);
}

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_to_hosts_over_standard_input() {
    let stage = Stage::set();
    let mut answers = Vec::new();
    for name in SPELLINGS {
        // The flag, the environment, and what the host says of itself.
        for (flag, variable) in [(Some(name), None), (None, Some(name)), (Some(MALLORY), Some(name))] {
            for token in [Some(stage.mallory.as_str()), None] {
                let mut args = vec!["mcp", "--tools", EVERY];
                args.extend(flag.into_iter().flat_map(|it| ["--as", it]));
                let mut command: Command = stage.world.command(&args);
                command.envs(token.map(|it| ("PROVOST_TOKEN", it)));
                command.envs(variable.map(|it| ("PROVOST_AGENT", it)));
                command.envs(variable.map(|it| ("WIT_SESSION", it)));
                let mut lines = String::new();
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": name, "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "x-codex-turn-metadata": { "session_id": name },
                });
                for (id, (tool, arguments)) in [
                    ("inbox_read", json!({})),
                    ("lock_release", json!({ "symbol": "src/a.ts:f" })),
                    ("handoff_accept", json!({ "handoff_id": stage.offer })),
                    ("message_send", json!({ "to": "friend", "text": "x" })),
                ]
                .iter()
                .enumerate()
                {
                    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                        "params": { "name": tool, "arguments": arguments, "_meta": meta } });
                    lines.push_str(&format!("{call}\n"));
                }
                let mut child = command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                // It may have refused to start.
                let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
                let output = child.wait_with_output().unwrap();
                let said = [output.stdout, output.stderr].concat();
                answers.push((
                    format!("{flag:?} {variable:?} {}", token.is_some()),
                    String::from_utf8_lossy(&said).into_owned(),
                ));
            }
        }
    }
    // Its own token is good for its own name.
    let mut command = stage.world.command(&["mcp", "--as", MALLORY, "--tools", EVERY]);
    command.env("PROVOST_TOKEN", &stage.mallory);
    let mut host = Host::of(command).greeting(json!({}));
    host.does("inbox_read", json!({}));
    assert!(host.fails("handoff_accept", json!({ "handoff_id": stage.offer })).contains("feat-victim"));
    stage.is_untouched(&answers);
}
