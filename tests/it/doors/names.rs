//! The check of names: one check, before any handler of any door, for reading as for writing, in every spelling.

mod inboxes;
mod spellings;

use std::collections::BTreeSet;

use provost::domain::Door;
use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket, handshake};
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::rules::ASK;
use crate::support::wit_client::{self, Wit};
use crate::support::{Daemon, Reply, World, eventually};

fn said(world: &World, args: &[&str]) -> (bool, String) {
    let output = world.command(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fine = output.status.success();
    (fine, if fine { text(&output.stdout) } else { text(&output.stderr) })
}

fn ok(world: &World, args: &[&str]) -> String {
    let (fine, text) = said(world, args);
    assert!(fine, "{args:?}: {text}");
    text.trim().to_owned()
}

/// Checks whether an answer says that the name belongs to another agent.
fn is_kept_out((status, body): &(u16, Value)) -> bool {
    *status == 403 && body["error"] == "reserved"
}

/// Every route of the own API that answers and is done. Its stream is tried in `event_stream`.
fn routes() -> BTreeSet<(String, String)> {
    let of = |row: &provost::api::Row| (row.which.method().to_string(), row.path.to_owned());
    let found: BTreeSet<_> = provost::api::ENDPOINTS.iter().map(of).collect();
    assert!(found.len() > 60, "{found:?}");
    found
}

#[test]
fn no_route_of_the_own_api_is_had_under_a_name_whose_proof_was_not_shown() {
    let world = World::new();
    let _daemon = world.start();
    ok(&world, &["key", "add", "feat-keyed"]);
    let token = ok(&world, &["token", "mint", "feat-tokened"]);
    let others = [
        "feat-keyed",
        "Feat-Keyed",
        "feat/keyed",
        "feat-tokened",
        "FEAT-tokened",
        "feat.tokened",
        "Human",
        "USER:ada",
    ];
    let mut open = Vec::new();
    for (method, path) in routes() {
        let ask = |headers: &[(&str, &str)]| own(&world, (&method, &path), headers, &json!({}));
        for name in others {
            let answer = ask(&[("x-provost-agent", name)]);
            if !is_kept_out(&answer) {
                open.push(format!("{method} {path} as {name}: {answer:?}"));
            }
        }
        // A name that is nobody's gets as far as the handler; so does an owner, in any spelling.
        let bearer = format!("Bearer {token}");
        for headers in [
            &[("x-provost-agent", "feat-free")][..],
            &[("x-provost-agent", "Feat-Tokened"), ("authorization", &bearer)],
        ] {
            let answer = ask(headers);
            assert!(!is_kept_out(&answer), "{method} {path} {headers:?}: {answer:?}");
        }
    }
    assert!(open.is_empty(), "{} are open:\n{}", open.len(), open.join("\n"));
}

/// Returns the requests of a door for a caller with this name, each with whether the door let it in.
fn tried_at(door: Door, world: &World, daemon: &Daemon, name: &str) -> Vec<(String, bool)> {
    match door {
        // Nobody says a name there: the daemon's own hands, and a worker's own door.
        Door::Internal | Door::Worker => Vec::new(),
        Door::Devit => at_devit(world, daemon, name),
        Door::Own => at_own(world, name),
        Door::Wit => {
            let call = |what: &str, params: Value| {
                let answer = Wit::of(world).call(what, Some(&params));
                (what.to_owned(), answer["error"].is_null())
            };
            let declared = json!({ "sessionId": name, "description": "x", "files": ["README.md"] });
            vec![
                call("register", json!({ "sessionId": name, "name": "x" })),
                call("intent.declare", declared),
            ]
        }
        Door::AgentProtocol => {
            let answer =
                Http::agent_protocol(world).post("/agents/announce", &json!({ "id": name, "tool": "x" }));
            vec![("/agents/announce".into(), answer.status < 300)]
        }
        Door::Broker => {
            let http = Http::broker(world);
            let payload = json!({ "status": "working", "modified_files": [] });
            let body = json!({ "type": "agent.status", "agent_id": name.replace(['/', '.'], "-"), "payload": payload });
            let read = http.get(&format!("/messages/{}", name.replace('/', "%2F")));
            vec![
                ("/publish".into(), http.post("/publish", &body).status == 202),
                ("/messages".into(), read.status == 200),
            ]
        }
        Door::A6s => {
            // Editors say no name: what they go by is `editor`.
            let http = Http::a6s(world);
            let (_, head) = Socket::with_head(http, handshake(http.port).as_bytes());
            vec![("/ws".into(), head.starts_with("HTTP/1.1 101 "))]
        }
        Door::Mcp => at_mcp(world, name),
        // No request says a name there: what the page reads as is the door's own word.
        Door::Web => Vec::new(),
    }
}

fn at_devit(world: &World, daemon: &Daemon, name: &str) -> Vec<(String, bool)> {
    let client = world.client(daemon, name);
    let quiet = |kind: &str| client.say(kind, json!({})) == Reply::Nothing;
    let answered = |kind: &str, payload: Value| matches!(client.say(kind, payload), Reply::Message(it) if it["msg_type"] != "ERR");
    let tried = [
        ("HEARTBEAT", quiet("HEARTBEAT")),
        ("POLL", quiet("POLL")),
        ("STATUS_REQUEST", answered("STATUS_REQUEST", json!({}))),
        ("REGISTER", answered("REGISTER", json!({ "caps": [], "pid": 1 }))),
    ];
    tried.map(|(what, let_in)| (what.to_owned(), let_in)).into()
}

fn at_own(world: &World, name: &str) -> Vec<(String, bool)> {
    let headers = [("x-provost-agent", name)];
    let asked = [
        (("POST", "/read-inbox"), json!({})),
        (("GET", "/my-tasks"), json!({})),
        (("GET", "/my-task?id=t1"), json!({})),
        (("GET", "/my-turn?id=t1"), json!({})),
        (("GET", "/at-work"), json!({})),
        (("GET", "/dialog-key"), json!({})),
        (("GET", "/picture?task=t1&width=10"), json!({})),
        (("GET", "/who-am-i"), json!({})),
    ];
    let ask = |it: &((&str, &str), Value)| !is_kept_out(&own(world, it.0, &headers, &it.1));
    asked.iter().map(|it| (it.0.1.to_owned(), ask(it))).collect()
}

fn at_mcp(world: &World, name: &str) -> Vec<(String, bool)> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let asked = |method: &str, more: Value| {
        let mut params = more;
        params["_meta"] = meta.clone();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("x-provost-agent", name),
        ];
        headers.extend((method == "tools/call").then_some(("mcp-name", "inbox_read")));
        Http::mcp(world).send("POST /mcp", &headers, body.to_string().as_bytes()).status == 200
    };
    vec![
        ("tools/list".into(), asked("tools/list", json!({}))),
        ("inbox_read".into(), asked("tools/call", json!({ "name": "inbox_read", "arguments": {} }))),
    ]
}

fn open_world() -> (World, Daemon) {
    let world = wit_client::world();
    world.configure(OPEN);
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let daemon = world.start();
    eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
    (world, daemon)
}

#[test]
fn names_fold_alike_at_every_door_for_reading_as_for_writing() {
    let (world, daemon) = open_world();
    for door in Door::ALL.iter().copied() {
        for (what, let_in) in tried_at(door, &world, &daemon, "feat-free") {
            assert!(let_in, "{}: {what} is shut for a name that is nobody's", door.name());
        }
    }
    ok(&world, &["token", "mint", "feat-b"]);
    ok(&world, &["token", "mint", "editor"]);
    ok(&world, &["key", "add", "feat-k"]);
    let mut open = Vec::new();
    for door in Door::ALL.iter().copied() {
        for name in ["feat-b", "Feat-B", "FEAT/b", "feat-k", "Feat-K", "feat/k"] {
            let tried = tried_at(door, &world, &daemon, name);
            open.extend(
                tried.iter().filter(|it| it.1).map(|it| format!("{}: {} as {name}", door.name(), it.0)),
            );
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

#[test]
fn another_spelling_of_a_name_reads_no_letters_of_its_owner() {
    let world = World::new();
    let _daemon = world.start();
    let token = ok(&world, &["token", "mint", "victim2"]);
    let letter = json!({ "to": "victim2", "kind": "message", "text": "for your eyes" });
    let sent = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter);
    assert_eq!(sent.0, 200, "{sent:?}");
    let read = |headers: &[(&str, &str)]| own(&world, ("POST", "/read-inbox"), headers, &json!({}));
    let bearer = format!("Bearer {token}");
    let mine = read(&[("authorization", &bearer)]);
    assert!(mine.1.to_string().contains("for your eyes"), "{mine:?}");
    for name in ["victim2", "Victim2", "VICTIM2", "victim2!", "-victim2"] {
        let theirs = read(&[("x-provost-agent", name)]);
        assert!(is_kept_out(&theirs), "{name}: {theirs:?}");
    }
    let posts = own(&world, ("GET", "/posts?inbox=victim2"), &[("x-provost-agent", "Mallory")], &json!({}));
    assert!(is_kept_out(&posts), "{posts:?}");
}

#[test]
fn who_leaves_its_name_out_where_agents_speak_gets_no_name_of_another() {
    let world = World::new();
    let _daemon = world.start();
    ok(&world, &["token", "mint", "victim2"]);
    ok(&world, &["key", "add", "keyed2"]);
    let letter = json!({ "to": "victim2", "kind": "message", "text": "for your eyes" });
    // From now on an agent has spoken in the session of these tests.
    assert_eq!(own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter).0, 200);
    let status = json!({ "status": "working", "modified_files": [] });
    for name in ["victim2", "Victim2", "keyed2"] {
        let inbox = format!("/posts?inbox={name}");
        let sender = name.to_lowercase();
        let message = json!({ "type": "agent.status", "agent_id": sender, "payload": status });
        for (route, body) in [
            (("POST", "/mint-token"), json!({ "agent": name })),
            (("GET", inbox.as_str()), json!({})),
            (("POST", "/publish-post"), json!({ "message": message })),
        ] {
            let answer = own(&world, route, &[], &body);
            assert!(is_kept_out(&answer), "{route:?} as {name}: {answer:?}");
        }
    }
    let freed = own(&world, ("POST", "/revoke-tokens"), &[], &json!({ "agent": "victim2" }));
    assert_ne!(freed.0, 200, "{freed:?}");
    // It shuts no agent out that has no proof of its name yet.
    let (status, answer) = own(&world, ("POST", "/mint-token"), &[], &json!({ "agent": "friend" }));
    assert_eq!((status, &answer["data"]["needs"]), (403, &json!("operate")), "{answer}");
    assert!(answer["hint"].as_str().unwrap().contains("open another terminal"), "{answer}");
    let given = crate::support::apart(&world.command(&["token", "mint", "friend"]));
    assert!(given.status.success(), "{given:?}");
    // A name that is free is given as before, and the user may do all of it from elsewhere.
    assert_eq!(own(&world, ("POST", "/mint-token"), &[], &json!({ "agent": "unheard-of" })).0, 200);
    let again = crate::support::apart(&world.command(&["token", "mint", "victim2"]));
    assert!(again.status.success(), "{again:?}");
}

#[test]
fn a_task_that_is_ended_from_where_agents_speak_says_so() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let order = |task: &str| json!({ "task": task, "worker": "shell", "goal": "true", "watch_patterns": [] });
    for task in ["one", "two"] {
        let asked = own(&world, ("POST", "/delegate"), &[("x-provost-agent", "ada")], &order(task));
        assert_eq!(asked.0, 200, "{asked:?}");
    }
    // Any process of the user's stops what runs, also a model's that leaves its name out.
    assert_eq!(own(&world, ("POST", "/cancel-task"), &[], &json!({ "task": "one", "reason": "no" })).0, 200);
    let person = crate::support::apart(&world.command(&["task", "cancel", "two"]));
    assert!(person.status.success(), "{person:?}");
    for (task, is_told) in [("one", true), ("two", false)] {
        let shown = ok(&world, &["task", "show", task]);
        assert!(shown.contains("Cancelled by user:"), "{shown}");
        assert_eq!(shown.contains(", where an agent has spoken: "), is_told, "{shown}");
    }
}

#[test]
fn a_host_speaks_for_nobody_whose_token_it_does_not_show() {
    let world = World::new();
    let asks = ASK.replace("[\"human\"]", "[\"host\"]");
    world.rule(&format!(
        "{asks}[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n"
    ));
    let _daemon = world.start();
    let scopes = "read,join,coordinate,delegate";
    let token = ok(&world, &["token", "mint", "ada", "--scopes", scopes]);
    let order = json!({ "task": "t1", "worker": "shell", "goal": "true", "watch_patterns": [] });
    let bearer = format!("Bearer {token}");
    let asked = own(&world, ("POST", "/delegate"), &[("authorization", &bearer)], &order);
    let waiting = own(&world, ("GET", "/approvals"), &[], &json!({})).1[0].clone();
    assert!(waiting["id"].is_u64(), "{asked:?} {waiting}");
    let yes = json!({ "approval": waiting["id"], "grant": true, "digest": waiting["digest"] });
    for name in ["ada", "Ada"] {
        let answer = own(&world, ("POST", "/host-answer"), &[("x-provost-agent", name)], &yes);
        assert!(is_kept_out(&answer), "{name}: {answer:?}");
    }
    let answer = own(&world, ("POST", "/host-answer"), &[("authorization", &bearer)], &yes);
    assert_eq!(answer.0, 200, "{answer:?}");
}

#[test]
fn a_request_that_names_two_agents_speaks_as_neither() {
    let (world, _daemon) = open_world();
    let both = [("x-provost-agent", "ada"), ("x-provost-agent", "bob")];
    let refused = own(&world, ("POST", "/lock"), &both, &json!({ "symbol": "a.ts:f" }));
    assert_eq!((refused.0, &refused.1["error"]), (400, &json!("invalid")), "{refused:?}");
}
