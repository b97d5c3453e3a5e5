//! An agent that has a good token of its own, and says another's name beside it: in headers, queries, paths and bodies that
//! disagree, in every spelling. It reads nothing that is the other's, and nothing happens in the other's name.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::a6s_client::{KEY, Socket};
use crate::support::loopback_client::Http;
use crate::support::mcp_host::{EVERY, Host};
use crate::support::own_api::own;
use crate::support::wit_client::{self, Wit};
use crate::support::{Client, Daemon, Reply, World, eventually};

const RULES: &str = "version = 1\ndefault = \"deny\"\n\
    [[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n\
    [[rule]]\nid = \"a\"\ndecision = \"approve\"\nreason = \"a\"\nwhen.action = [\"delegate\"]\napprove.by = [\"human\"]\n";

const DOORS: &str = "[broker]\nenabled = true\n[agent_protocol]\nenabled = true\n[a6s]\nenabled = true\n[mcp]\ntools = [\"all\"]\n";

/// What only the other one may read.
const LETTER: &str = "for the eyes of one alone";

/// The other one's name, as it may be written.
const SPELLINGS: [&str; 9] = [
    "feat-victim",
    "Feat-Victim",
    "FEAT/VICTIM",
    "feat--victim",
    "feat.victim",
    "-feat-victim-",
    " feat-victim",
    "feat-victim ",
    "feat/victim",
];

const MALLORY: &str = "feat-mallory";

/// A daemon, two agents with tokens, and what one of them has.
struct Stage {
    world: World,
    daemon: Daemon,
    victim: String,
    mallory: String,
    /// Ids of the victim's intent, contract, of an offer made to it, and of a task that it is to do.
    intent: String,
    contract: String,
    offer: String,
    task: String,
    /// Events by the victim so far.
    by_victim: usize,
}

fn told(world: &World, args: &[&str]) -> String {
    let output = world.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Stage {
    fn set() -> Self {
        let world = wit_client::world();
        world.configure(DOORS);
        world.rule(RULES);
        world.write("src/a.ts", "export function f() {}\nexport function g() {}\n");
        let daemon = world.start();
        eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
        let scopes = ["--scopes", "read,join,coordinate,delegate,work"];
        let [victim, mallory] =
            ["feat-victim", MALLORY].map(|name| told(&world, &["token", "mint", name, scopes[0], scopes[1]]));
        told(&world, &["key", "add", "keyed-victim"]);
        told(&world, &["key", "add", "keyed-mallory"]);
        let bearer = format!("Bearer {victim}");
        let does = |path: &str, body: Value| {
            let said = own(&world, ("POST", path), &[("authorization", &bearer)], &body);
            assert_eq!(said.0, 200, "{path}: {said:?}");
            said.1
        };
        does("/lock", json!({ "symbol": "src/a.ts:f" }));
        let intent = does("/declare", json!({ "description": "x", "files": ["src/b.ts"] }));
        does("/join-crew", json!({ "tool": "x", "capabilities": [] }));
        does("/claim", json!({ "path": "c.ts" }));
        let by =
            |body: Value| own(&world, ("POST", "/propose-contract"), &[("x-provost-agent", "friend")], &body);
        let contract = by(json!({ "symbol": "src/a.ts:g" })).1;
        does(
            "/delegate",
            json!({ "task": "theirs", "worker": "shell", "goal": "true", "watch_patterns": [] }),
        );
        let letter = json!({ "to": "feat-victim", "kind": "message", "text": LETTER });
        assert_eq!(own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter).0, 200);
        let http = Http::agent_protocol(&world);
        http.post("/agents/announce", &json!({ "id": "friend", "tool": "x" }));
        let offered =
            json!({ "from_agent": "friend", "to_agent": "feat-victim", "task_id": "t", "summary": "s" });
        let offer = http.post("/handoffs", &offered).json();
        let order = json!({ "title": "t", "description": "d", "assigned_by": "friend", "assigned_to": "feat-victim" });
        let task = http.post("/tasks", &order).json();
        let id = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let mut stage = Self {
            intent: id(&intent["intent"]["id"]),
            contract: id(&contract["id"]),
            offer: id(&offer["id"]),
            task: id(&task["id"]),
            world,
            daemon,
            victim,
            mallory,
            by_victim: 0,
        };
        stage.by_victim = stage.events_by_victim().len();
        stage
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.mallory)
    }

    fn events_by_victim(&self) -> Vec<String> {
        let all = told(&self.world, &["journal", "export"]);
        let is_theirs = |it: &&str| {
            let event: Value = serde_json::from_str(it).unwrap();
            let actor = event["actor"].as_str().unwrap().to_lowercase().replace(['/', '.', ' '], "-");
            actor.replace("--", "-").trim_matches('-').ends_with("victim")
        };
        all.lines().filter(is_theirs).map(str::to_owned).collect()
    }

    /// All is as it was, and nobody was told what is another's.
    fn is_untouched(&self, answers: &[(String, String)]) {
        for (what, answer) in answers {
            assert!(!answer.contains(LETTER), "{what} reads the letter: {answer}");
        }
        let events = self.events_by_victim();
        let by_others: Vec<_> = answers.iter().map(|it| &it.0).collect();
        assert_eq!(
            events.len(),
            self.by_victim,
            "{:#?} after {by_others:?}",
            &events[self.by_victim.min(events.len())..]
        );
        let bearer = format!("Bearer {}", self.victim);
        let get = |path: &str| own(&self.world, ("GET", path), &[("authorization", &bearer)], &json!({})).1;
        let locks = get("/locks?mine=true");
        assert_eq!(locks["locks"][0]["symbol"], "src/a.ts:f", "{locks}");
        let intents = get("/intents?mine=true");
        assert_eq!(intents[0]["status"], "declared", "{intents}");
        let claims = get("/claims?mine=true");
        assert_eq!(claims[0]["file"], "c.ts", "{claims}");
        let tasks = get("/tasks").to_string();
        assert!(tasks.contains("theirs") && !tasks.contains("cancelled"), "{tasks}");
        let http = Http::agent_protocol(&self.world);
        assert_eq!(http.get(&format!("/handoffs/{}", self.offer)).json()["status"], "pending");
        assert_ne!(http.get(&format!("/tasks/{}", self.task)).json()["status"], "done");
        assert_eq!(http.get("/agents/feat-victim").json()["id"], "feat-victim");
        // The token is good still, and so is the letter there.
        let read = own(&self.world, ("POST", "/read-inbox"), &[("authorization", &bearer)], &json!({}));
        assert!(read.1.to_string().contains(LETTER), "{read:?}");
    }
}

/// A request to the own API, byte for byte.
fn own_raw(world: &World, method: &str, target: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A door that refuses a head may have closed by then.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _until_closed = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Every path of the own API, by either method.
fn routes() -> Vec<(&'static str, &'static str)> {
    let found: Vec<_> =
        provost::api::ENDPOINTS.iter().flat_map(|it| [("GET", it.path), ("POST", it.path)]).collect();
    assert!(found.len() > 120, "{found:?}");
    found
}

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
