//! At the own API, and at the doors of Agent Protocol and of the broker.

use super::*;

use serde_json::json;

use crate::support::loopback_client::Http;

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_at_the_own_api() {
    let stage = Stage::set();
    let mut answers = Vec::new();
    let token = || ("authorization", stage.bearer());
    let says = |name: &str| ("x-provost-agent", name.to_owned());
    for name in SPELLINGS.into_iter().take(5) {
        let placed: Vec<(&str, Vec<(&str, String)>)> = vec![
            ("its own token alone", vec![token()]),
            ("a token and a name", vec![token(), says(name)]),
            ("no token", vec![says(name)]),
            ("its own name, then the other", vec![token(), says(MALLORY), says(name)]),
            ("the other, then its own", vec![token(), says(name), says(MALLORY)]),
            ("both in one header", vec![token(), says(&format!("{MALLORY}, {name}"))]),
            ("a token twice", vec![token(), token(), says(name)]),
            ("a name in the place of a token", vec![("authorization", format!("Bearer {name}"))]),
            (
                "another header",
                vec![token(), ("x-provost-user", name.to_owned()), ("x-forwarded-user", name.to_owned())],
            ),
        ];
        let post = json!({ "type": "agent.status", "agent_id": name.trim().to_lowercase().replace(['/', '.'], "-"),
            "payload": { "status": "working", "modified_files": [] } });
        let body = json!({
            "agent": name, "as": name, "who": name, "from": name, "holder": name, "inbox": name, "name": name, "asker": name,
            "id": stage.intent, "task": "theirs", "symbol": "src/a.ts:f", "path": "c.ts", "to": "abandoned", "status": "abandoned",
            "accept": true, "message": post, "intents": true, "only_if_idle": false, "reason": "x", "force": true,
        });
        let query = format!(
            "agent={0}&as={0}&inbox={0}&from={0}&name={0}&id=theirs&task=theirs",
            name.replace(' ', "%20")
        );
        for (what, headers) in &placed {
            for (method, path) in routes() {
                let target = if method == "GET" { format!("{path}?{query}") } else { path.to_owned() };
                let answer = own_raw(&stage.world, method, &target, headers, &body.to_string());
                answers.push((format!("{method} {path} as {name:?}, {what}"), answer));
            }
        }
    }
    // Ids of what is the other's.
    for (path, body) in [
        ("/answer-handoff", json!({ "id": stage.offer, "accept": true })),
        ("/answer-contract", json!({ "id": stage.contract, "accept": true })),
        ("/cancel-task", json!({ "task": "theirs", "reason": "x" })),
        ("/release-claim", json!({ "path": "c.ts" })),
        ("/unlock", json!({ "symbol": "src/a.ts:f" })),
        ("/revoke-tokens", json!({ "agent": "feat-victim" })),
        ("/mint-token", json!({ "agent": "feat-victim" })),
    ] {
        let said = own_raw(&stage.world, "POST", path, &[token()], &body.to_string());
        // A contract is anybody's to accept but its proposer's.
        let is_open = path == "/answer-contract" || path == "/release-claim";
        assert!(is_open || !said.starts_with("HTTP/1.1 200 "), "{path}: {said}");
        answers.push((path.to_owned(), said));
    }
    stage.is_untouched(&answers);
}

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_at_the_door_of_agent_protocol() {
    let stage = Stage::set();
    let http = Http::agent_protocol(&stage.world);
    let bearer = stage.bearer();
    let mut answers = Vec::new();
    // As they are written in JSON, and in a path.
    let escaped = [(r"feat-victim\u0000", "feat-victim\0"), (r"\u0066eat-victim", "feat-victim")];
    for (written, name) in SPELLINGS.map(|it| (it, it)).into_iter().chain(escaped) {
        let encoded: String = name.bytes().map(|it| format!("%{it:02X}")).collect();
        let plain = name.replace(['/', ' ', '\0'], "-");
        let whole = json!({ "id": "NAME", "agent_id": "NAME", "from_agent": "NAME", "assigned_by": "NAME", "tool": "x",
            "path": "c.ts", "status": "offline", "title": "t", "description": "d", "task_id": "t", "summary": "s",
            "action": "resource.modified", "resource": "c.ts", "metadata": { "picked_agent": "NAME" } });
        let twice = |first: &str, second: &str| {
            let both = |member: &str| format!("\"{member}\":\"{first}\",\"{member}\":\"{second}\"");
            let names = ["id", "agent_id", "from_agent", "assigned_by"].map(both).join(",");
            let rest = r#""tool":"x","path":"c.ts","status":"offline","task_id":"t","summary":"s","title":"t","action":"a""#;
            format!("{{{names},{rest}}}")
        };
        let bodies =
            [whole.to_string().replace("NAME", written), twice(MALLORY, written), twice(written, MALLORY)];
        let mut targets = vec![
            "POST /agents/announce".to_owned(),
            "POST /resources/claim".into(),
            "POST /resources/release".into(),
            "POST /resources/lock".into(),
            "POST /tasks".into(),
            "POST /handoffs".into(),
            "POST /events".into(),
            format!("PATCH /handoffs/{}/accept", stage.offer),
            format!("PATCH /handoffs/{}/reject", stage.offer),
            format!("PATCH /tasks/{}", stage.task),
        ];
        for id in [encoded, plain] {
            targets.extend([
                format!("DELETE /agents/{id}"),
                format!("POST /agents/{id}/heartbeat"),
                format!("PATCH /agents/{id}/status"),
                format!("POST /agents/{id}/heartbeat?agent_id={MALLORY}"),
                format!("POST /AGENTS/{id}/Heartbeat/"),
            ]);
        }
        for target in &targets {
            for body in &bodies {
                for shows in [true, false] {
                    let mut headers =
                        vec![("Content-Type", "application/json"), ("x-provost-agent", MALLORY)];
                    headers.extend(shows.then_some(("authorization", bearer.as_str())));
                    let said = http.send(target, &headers, body.as_bytes());
                    answers.push((
                        format!("{target} {body}, token: {shows}"),
                        String::from_utf8_lossy(&said.body).into_owned(),
                    ));
                }
            }
        }
    }
    // In its own name, what is meant for another; and as the page that says no name.
    for (target, more) in [
        (format!("PATCH /handoffs/{}/accept", stage.offer), json!({})),
        (format!("PATCH /handoffs/{}/reject", stage.offer), json!({ "reason": "x" })),
        (format!("PATCH /tasks/{}", stage.task), json!({ "status": "done" })),
    ] {
        let mut body = more;
        let referer = format!("http://127.0.0.1:{}/dashboard/", http.port);
        for (headers, name) in [
            (vec![("authorization", bearer.as_str())], Some(MALLORY)),
            (vec![], Some("somebody")),
            (vec![("referer", referer.as_str())], None),
            (vec![("referer", referer.as_str()), ("authorization", bearer.as_str())], None),
        ] {
            body["agent_id"] = json!(name);
            let headers: Vec<(&str, &str)> =
                headers.into_iter().chain([("Content-Type", "application/json")]).collect();
            let said = http.send(&target, &headers, body.to_string().as_bytes());
            assert_eq!(said.status, 403, "{target} as {name:?}: {said:?}");
        }
    }
    stage.is_untouched(&answers);
    // Whose it is may, and so may whoever wants the task done.
    let theirs = format!("Bearer {}", stage.victim);
    let shown = [("Content-Type", "application/json"), ("authorization", theirs.as_str())];
    let said = http.send(
        &format!("PATCH /handoffs/{}/accept", stage.offer),
        &shown,
        br#"{"agent_id":"feat-victim"}"#,
    );
    assert_eq!(said.json(), json!({ "accepted": true }));
    let said = http.send(
        &format!("PATCH /tasks/{}", stage.task),
        &[("Content-Type", "application/json")],
        br#"{"agent_id":"friend","status":"done"}"#,
    );
    assert_eq!(said.json(), json!({ "ok": true }));
}

#[test]
fn a_token_of_ones_own_opens_nothing_of_anothers_at_the_broker_door() {
    let stage = Stage::set();
    let http = Http::broker(&stage.world);
    let bearer = stage.bearer();
    let mut answers = Vec::new();
    let mut tried = |line: &str, body: &str| {
        for (shown, named) in
            [(Some(&bearer), None), (None, None), (Some(&bearer), Some("feat-victim")), (None, Some(MALLORY))]
        {
            let mut headers = vec![("Content-Type", "application/json")];
            headers.extend(shown.map(|it| ("authorization", it.as_str())));
            headers.extend(named.map(|it| ("x-provost-agent", it)));
            let said = http.send(line, &headers, body.as_bytes());
            let text = String::from_utf8_lossy(&said.body).into_owned();
            answers.push((format!("{line} {body} {}", said.status), text));
        }
    };
    for name in SPELLINGS {
        let slug = name.trim().to_lowercase().replace(['/', '.'], "-");
        let encoded: String = name.bytes().map(|it| format!("%{it:02X}")).collect();
        for path in [
            name.replace(' ', "%20"),
            encoded,
            name.replace('/', "%2F").replace(' ', "+"),
            format!("{MALLORY}/../{slug}"),
        ] {
            tried(&format!("GET /messages/{path}"), "");
            tried(&format!("GET /messages/{path}?since=0&agent_id={MALLORY}"), "");
        }
        tried(&format!("GET /messages/{MALLORY}?agent_id={slug}&agent={slug}"), "");
        for name in [name, slug.as_str()] {
            for body in [
                json!({ "type": "agent.status", "agent_id": name, "payload": { "status": "working", "modified_files": [], "agent_id": MALLORY } }),
                json!({ "type": "agent.feedback", "agent_id": MALLORY, "payload": { "from": name, "errors": ["x"] } }),
                json!({ "type": "agent.answer", "agent_id": MALLORY, "payload": { "from": name, "answer": "x" } }),
                json!({ "type": "agent.verified", "agent_id": MALLORY, "payload": { "verified_by": name } }),
                json!({ "type": "agent.learning", "agent_id": MALLORY, "payload": { "agent_id": name, "category": "c", "body": "b",
                    "id": "1", "title": "t", "timestamp": "2026-01-01T00:00:00Z" } }),
                json!({ "type": "agent.learning", "agent_id": name, "payload": { "category": "c", "body": "b" } }),
                json!({ "type": "supervisor.verify-now", "agent_id": MALLORY, "branch_id": name }),
                json!({ "type": "agent.question", "agent_id": name, "from": MALLORY, "payload": { "question": "x?" } }),
            ] {
                tried("POST /publish", &body.to_string());
            }
            tried(
                "POST /publish",
                &format!(
                    r#"{{"type":"agent.status","agent_id":"{MALLORY}","agent_id":"{name}","payload":{{"status":"working","modified_files":[]}}}}"#
                ),
            );
            let watch = json!({ "agent_id": name, "cli": "x", "worktree_path": stage.world.repo() });
            tried("POST /watch", &watch.to_string());
        }
    }
    stage.is_untouched(&answers);
}
