//! At the sockets of wit and DevIt, and as an editor.

use super::*;

use serde_json::json;

use crate::support::a6s_client::{KEY, Socket};
use crate::support::loopback_client::Http;
use crate::support::wit_client::Wit;
use crate::support::{Client, Reply, eventually};

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_at_the_wit_door() {
    let stage = Stage::set();
    let wit = Wit::of(&stage.world);
    let bearer = stage.bearer();
    let mut answers = Vec::new();
    for name in SPELLINGS {
        let calls = [
            ("register", json!({ "sessionId": name, "name": "x" })),
            ("lock.acquire", json!({ "sessionId": name, "symbolPath": "src/z.ts:f", "ttlMs": 60_000 })),
            ("lock.release", json!({ "sessionId": name, "symbolPath": "src/a.ts:f" })),
            ("intent.declare", json!({ "sessionId": name, "description": "x", "files": ["z.ts"] })),
            ("intent.update", json!({ "sessionId": name, "intentId": stage.intent, "status": "abandoned" })),
            ("contract.respond", json!({ "sessionId": name, "contractId": stage.contract, "accept": false })),
            ("provost.leave", json!({ "sessionId": name, "intents": true })),
        ];
        for (method, params) in calls {
            for both in [None, Some(true), Some(false)] {
                // Its own name before or behind the other's.
                let text = params.to_string();
                let quoted = json!(name).to_string();
                let text = match both {
                    None => text,
                    Some(before) => {
                        let (a, b) =
                            (format!("\"sessionId\":\"{MALLORY}\""), format!("\"sessionId\":{quoted}"));
                        let two = if before { format!("{a},{b}") } else { format!("{b},{a}") };
                        text.replace(&format!("\"sessionId\":{quoted}"), &two)
                    }
                };
                let body = format!(
                    r#"{{"jsonrpc":"2.0","witVersion":"1","id":"1","sessionId":"{MALLORY}","method":"{method}","params":{text}}}"#
                );
                let headers = [
                    ("Content-Type", "application/json"),
                    ("Authorization", bearer.as_str()),
                    ("x-provost-agent", "feat-victim"),
                ];
                let said = wit.http("POST /rpc", &headers, body.as_bytes());
                answers.push((body, String::from_utf8_lossy(&said.body).into_owned()));
            }
        }
    }
    stage.is_untouched(&answers);
}

#[test]
fn a_key_of_ones_own_opens_nothing_of_anothers_at_the_devit_door() {
    let stage = Stage::set();
    let secret = stage.world.key_of("keyed-mallory");
    let client = |ident: &str| Client {
        socket: stage.daemon.socket.clone(),
        ident: ident.into(),
        secret: secret.clone(),
    };
    let keyed = client("keyed-mallory");
    let mut answers = Vec::new();
    let kinds = [
        "POLL",
        "HEARTBEAT",
        "STATUS_REQUEST",
        "REGISTER",
        "TASK_RESULT",
        "ACK",
        "CANCEL",
        "DELEGATE",
        "NOTIFY",
    ];
    for name in SPELLINGS.into_iter().chain(["keyed-victim", "Keyed-Victim", "keyed/victim"]) {
        let payload = json!({ "agent": name, "from": name, "ident": name, "client_id": name, "return_to": name, "task_id": "theirs",
            "status": "completed", "caps": [], "pid": 1, "msg_id": "1", "task": { "action": "devit_delegate", "goal": "true" } });
        for kind in kinds {
            // Signed as another; signed as itself with the other's name put in its place; and sent to the other.
            let as_other = client(name).frame(kind, "m1", "orchestrator", &payload);
            let mut swapped = keyed.frame(kind, "m2", "orchestrator", &payload);
            swapped["from"] = json!(name);
            let own = keyed.frame(kind, "m3", name, &payload).to_string();
            let twice = own.replacen(
                "\"from\":\"keyed-mallory\"",
                &format!("\"from\":\"keyed-mallory\",\"from\":{}", json!(name)),
                1,
            );
            let behind = own.replacen(
                "\"from\":\"keyed-mallory\"",
                &format!("\"from\":{},\"from\":\"keyed-mallory\"", json!(name)),
                1,
            );
            for frame in [as_other.to_string(), swapped.to_string(), own, twice, behind] {
                let reply = match keyed.send(format!("{frame}\n").as_bytes()) {
                    Reply::Message(it) => it.to_string(),
                    other => format!("{other:?}"),
                };
                answers.push((frame, reply));
            }
        }
    }
    stage.is_untouched(&answers);
    let all = told(&stage.world, &["journal", "export"]);
    assert!(!all.contains("\"actor\":\"keyed-victim\""), "{all}");
}

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_to_editors() {
    let stage = Stage::set();
    let http = Http::a6s(&stage.world);
    let open = |target: &str, headers: &str| {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{headers}\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n",
            http.port
        );
        Socket::with_head(http, request.as_bytes())
    };
    // The other one's job, which waits for somebody's word.
    let (mut theirs, head) = open(&format!("/ws?token={}", stage.victim), "");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let job = theirs.result("background.launch", &json!({ "agentType": "shell", "task": "true" }));
    let id = job["taskId"].as_str().unwrap().to_owned();
    // What the job does by itself is on record before the other agent begins.
    let waits = |events: &[String]| events.iter().any(|it| it.contains("\"kind\":\"approval_asked\""));
    eventually("the job waits for an approval", || waits(&stage.events_by_victim()));
    let before = stage.events_by_victim().len();
    let stage = Stage { by_victim: before, ..stage };
    let mut answers = Vec::new();
    let mine = &stage.mallory;
    let named = "x-provost-agent: feat-victim\r\n";
    for (target, headers, is_let_in) in [
        (format!("/ws?token={mine}&agent=feat-victim"), named.to_owned(), true),
        (format!("/ws?agent=feat-victim&token={mine}"), String::new(), true),
        ("/ws?agent=feat-victim".to_owned(), format!("Authorization: Bearer {mine}\r\n{named}"), true),
        // Two tokens are none.
        (format!("/ws?token={mine}"), format!("Authorization: Bearer {mine}\r\n"), false),
        (format!("/ws?token={mine}&token={mine}"), String::new(), false),
        (
            "/ws".to_owned(),
            format!("Authorization: Bearer {mine}\r\nAuthorization: Bearer {mine}\r\n"),
            false,
        ),
        ("/ws?token=feat-victim".to_owned(), String::new(), false),
        ("/ws?agent=feat-victim".to_owned(), named.to_owned(), true),
    ] {
        let (mut socket, head) = open(&target, &headers);
        assert_eq!(head.starts_with("HTTP/1.1 101 "), is_let_in, "{target}: {head}");
        if !is_let_in {
            continue;
        }
        let asked = [
            ("background.cancel", json!({ "taskId": id, "agentId": "feat-victim", "agent": "feat-victim" })),
            ("workflows.cancel", json!({ "executionId": id, "agentId": "feat-victim" })),
            (
                "background.launch",
                json!({ "agentType": "shell", "task": "true", "agentId": "feat-victim", "agent": "feat-victim" }),
            ),
            ("fleet.status", json!({ "agentId": "feat-victim" })),
            (
                "artifacts.apply",
                json!({ "agent": "feat-victim", "artifacts": [
                { "id": "1", "type": "file", "path": "c.ts", "content": "x", "language": "typescript" }] }),
            ),
        ];
        for (method, params) in asked {
            let said = socket.ask(method, &params);
            if method.ends_with(".cancel") {
                assert!(
                    said["error"].as_str().is_some_and(|it| it.contains("feat-victim")),
                    "{method}: {said}"
                );
            }
            answers.push((format!("{method} {target}"), said.to_string()));
        }
    }
    assert!(!stage.world.repo().join("c.ts").exists(), "a claimed file is its owner's");
    stage.is_untouched(&answers);
    let jobs = theirs.result("background.list", &json!({}));
    let job = jobs.as_array().unwrap().iter().find(|it| it.to_string().contains(&id)).unwrap();
    assert!(!job.to_string().contains("cancelled"), "{job}");
}
