//! Whose name is whose: one check, before any handler of any door, for reading as for writing, in every spelling.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use provost::domain::Door;
use serde_json::{Value, json};

use crate::a6s_client::{OPEN, Socket, handshake};
use crate::loopback_client::Http;
use crate::mcp_host::{ASK, Host};
use crate::support::{Daemon, Reply, World, eventually};
use crate::wit_client::{self, Wit};

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

/// One request to the own API as an agent: the status and the error's code.
pub(crate) fn own(
    world: &World,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, Value) {
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _until_closed = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {answer}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Whether an answer says that the name is somebody's.
fn is_kept_out((status, body): &(u16, Value)) -> bool {
    *status == 403 && body["error"] == "reserved"
}

/// Every route of the own API, as the source has them.
fn routes() -> BTreeSet<(&'static str, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocols/own");
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for part in text.split(".route(\"").skip(1) {
            let (route, rest) = part.split_once("\",").unwrap();
            let made = rest.trim_start();
            let made = &made[..made.find(['\n', ';']).unwrap_or(made.len())];
            let methods = [("GET", "get("), ("POST", "post(")];
            let of: Vec<_> = methods.iter().filter(|(_, word)| made.contains(word)).collect();
            assert!(!of.is_empty(), "{}: {route} is made with {made}", path.display());
            found.extend(of.iter().map(|(method, _)| (*method, route.to_owned())));
        }
    }
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
        let ask = |headers: &[(&str, &str)]| own(&world, (method, &path), headers, &json!({}));
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

/// What a door offers to somebody who says this name, and whether it was let in.
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
    for door in Door::ALL {
        for (what, let_in) in tried_at(door, &world, &daemon, "feat-free") {
            assert!(let_in, "{}: {what} is shut for a name that is nobody's", door.name());
        }
    }
    ok(&world, &["token", "mint", "feat-b"]);
    ok(&world, &["token", "mint", "editor"]);
    ok(&world, &["key", "add", "feat-k"]);
    let mut open = Vec::new();
    for door in Door::ALL {
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
    // A name that is free is given as before, and the user may do all of it from elsewhere.
    assert_eq!(own(&world, ("POST", "/mint-token"), &[], &json!({ "agent": "unheard-of" })).0, 200);
    let again = crate::support::apart(&world.command(&["token", "mint", "victim2"]));
    assert!(again.status.success(), "{again:?}");
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
fn a_name_that_cannot_be_told_from_another_is_refused_at_every_door() {
    let (world, daemon) = open_world();
    // Zero-width and other characters that show nothing, a letter of another script, one of full width, a mark that
    // changes the letter before it, a space that is none, a text turned round.
    let unclear = [
        "feat-\u{200b}free",
        "feat-free\u{feff}",
        "feat-fr\u{ad}ee",
        "feat-fr\u{435}e",
        "f\u{435}\u{430}t",
        "\u{441}\u{43e}\u{440}\u{435}",
        "feat\u{2010}free",
        "\u{ff46}eat-free",
        "feat-fre\u{301}e",
        "feat\u{a0}free",
        "feat-\u{202e}eerf",
        "\u{1d41a}da",
        "feat-free\u{fe0f}",
        "feat-free\u{e0041}",
        "\u{3164}",
        "\u{fa30}\u{90ce}",
        "\u{1112}\u{1161}\u{11ab}",
        "\u{ff76}\u{ff85}",
        // Letters of scripts that few know: Coptic, Lisu, Cherokee, Hebrew, Devanagari, Latin of dialects.
        "c\u{2c9f}dex",
        "\u{a4d0}ob",
        "\u{abaf}odex",
        "c\u{5e1}dex",
        "c\u{966}dex",
        "c\u{ab3d}dex",
        "\u{441}\u{2c9f}\u{501}\u{435}\u{445}",
        // Greek within Cyrillic.
        "\u{410}\u{43d}\u{3b4}\u{440}\u{435}\u{439}",
    ];
    let mut open = Vec::new();
    for name in unclear {
        for door in [Door::Devit, Door::Wit, Door::AgentProtocol, Door::Broker] {
            let tried = catch_unwind(AssertUnwindSafe(|| tried_at(door, &world, &daemon, name)));
            // A reset is a no as well.
            let Ok(tried) = tried else { continue };
            open.extend(
                tried.iter().filter(|it| it.1).map(|it| format!("{}: {} as {name:?}", door.name(), it.0)),
            );
        }
        let (fine, text) = said(&world, &["intend", "--as", name, "--file", "README.md", "x"]);
        if fine || !text.contains("U+") {
            open.push(format!("own: {name:?}: {text}"));
        }
        let answer = Http::mcp(&world).get(&format!("/mcp?agent={}", encoded(name)));
        if answer.status != 400 || !String::from_utf8_lossy(&answer.body).contains("U+") {
            open.push(format!("mcp: {name:?}: {answer:?}"));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
    // Nor is anything on record under such a name, and none gets a key or a token.
    let log = ok(&world, &["log", "--json"]);
    assert!(unclear.iter().all(|name| !log.contains(&format!("\"actor\":\"{name}\""))), "{log}");
    for args in [["token", "mint"], ["key", "add"]] {
        assert!(!said(&world, &[args[0], args[1], "\u{430}da"]).0);
    }
    // What is read as a name of the daemon's or of people is theirs.
    for name in ["pr0vost", "0rchestrator", "h0st", "Pr0v0st", "hurnan", "user:me"] {
        assert!(!said(&world, &["intend", "--as", name, "--file", "README.md", "x"]).0, "{name}");
    }
    // Names of other scripts are names.
    for name in [
        "zo\u{eb}",
        "\u{421}\u{435}\u{440}\u{433}\u{435}\u{439}",
        "\u{30b5}\u{30fc}\u{30d0}\u{30fc}",
        "M\u{fc}ller",
        "k\u{e6}mper",
        "agent-\u{592a}\u{90ce}",
        "\u{645}\u{62d}\u{645}\u{62f}",
        "\u{0391}\u{03b8}\u{03b7}\u{03bd}\u{03ac}",
    ] {
        ok(&world, &["intend", "--as", name, "--file", "README.md", "x"]);
    }
}

fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn one_name_has_one_spelling_for_as_long_as_it_is_somebodys() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    let token = ok(&world, &["token", "mint", "agent-b"]);
    let (fine, text) = said(&world, &["token", "mint", "Agent-B"]);
    assert!(!fine && text.contains("agent-b"), "{text}");
    let as_b = |name: &str| {
        let mut command = world.command(&["intend", "--as", name, "--file", "README.md", "x"]);
        command.env("PROVOST_TOKEN", &token).status().unwrap().success()
    };
    assert!(as_b("agent-b") && as_b("Agent-B"), "a token is for all spellings of its name");
    assert!(!as_b("agent-c"));
    let log = ok(&world, &["log", "--json"]);
    assert!(!log.contains("Agent-B"), "{log}");
    ok(&world, &["key", "add", "boss"]);
    let (fine, text) = said(&world, &["key", "add", "Boss"]);
    assert!(!fine && text.contains("`boss` has a key"), "{text}");
    let freed = crate::support::apart(&world.command(&["token", "revoke", "--of", "AGENT-B"]));
    assert!(freed.status.success(), "{freed:?}");
    assert!(said(&world, &["intend", "--as", "agent-b", "--file", "README.md", "x"]).0);
}

#[test]
fn of_two_spellings_that_differ_by_case_alone_the_one_in_use_is_had_at_every_door() {
    let (world, daemon) = open_world();
    ok(&world, &["intend", "--as", "feat-used", "--file", "README.md", "x"]);
    let other = "Feat-Used";
    let (fine, text) = said(&world, &["intend", "--as", other, "--file", "README.md", "x"]);
    assert!(!fine && text.contains("feat-used is in use here"), "{text}");
    let mut told = Vec::new();
    let Reply::Message(it) = world.client(&daemon, other).say("REGISTER", json!({ "caps": [], "pid": 1 }))
    else {
        panic!("no answer")
    };
    told.push(("devit", it.to_string()));
    let called = Wit::of(&world).call("register", Some(&json!({ "sessionId": other, "name": "x" })));
    told.push(("wit", called.to_string()));
    let body = |answer: crate::wit_client::Answer| String::from_utf8_lossy(&answer.body).into_owned();
    let announced =
        Http::agent_protocol(&world).post("/agents/announce", &json!({ "id": other, "tool": "x" }));
    told.push(("agent_protocol", body(announced)));
    // The broker's protocol has one case, and says so by itself.
    let payload = json!({ "status": "working", "modified_files": [] });
    let status = json!({ "type": "agent.status", "agent_id": other, "payload": payload });
    let published = body(Http::broker(&world).post("/publish", &status));
    assert!(published.contains("lowercase"), "{published}");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "lock_acquire", "arguments": { "symbol": "README.md" }, "_meta": meta } });
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "lock_acquire"),
        ("x-provost-agent", other),
    ];
    told.push(("mcp", body(Http::mcp(&world).send("POST /mcp", &headers, call.to_string().as_bytes()))));
    for (door, text) in &told {
        assert!(text.contains("feat-used is in use here"), "{door}: {text}");
    }
    // The spelling in use is had.
    ok(&world, &["intend", "--as", "feat-used", "--file", "README.md", "y"]);
    let agents = ok(&world, &["agents", "--json"]);
    assert!(!agents.contains(other), "{agents}");
}

#[test]
fn what_people_are_shown_as_a_name_at_the_wit_door_can_be_told_from_others() {
    let (world, _daemon) = open_world();
    for (nth, name) in
        ["Ad\u{200b}a", "\u{202e}adA", "\u{410}da", "Ada\u{301}", "\u{ff21}da"].iter().enumerate()
    {
        let called =
            Wit::of(&world).call("register", Some(&json!({ "sessionId": format!("s{nth}"), "name": name })));
        assert!(called["error"].to_string().contains("U+"), "{name:?}: {called}");
    }
    for (nth, name) in ["Ada", "José", "Ада Б.", "田中", "Ada 🚀"].iter().enumerate() {
        let called =
            Wit::of(&world).call("register", Some(&json!({ "sessionId": format!("t{nth}"), "name": name })));
        assert!(called["error"].is_null(), "{name:?}: {called}");
    }
}

/// Names of which a spelling in letters of ASCII would leave nothing, or the same.
const FOREIGN: [&str; 9] = [
    "\u{592a}\u{90ce}",
    "\u{82b1}\u{5b50}",
    "---",
    "!!",
    "\u{2026}",
    "\u{1f916}",
    "feat-\u{1f47e}",
    "feat/\u{65e5}\u{672c}",
    "feat",
];

#[test]
fn names_without_letters_of_ascii_have_each_an_inbox_and_tokens_of_their_own() {
    let world = World::new();
    let _daemon = world.start();
    let as_name = |name: &str, route: (&str, &str), body: Value| {
        own(&world, route, &[("x-provost-agent", name)], &body)
    };
    for name in FOREIGN.into_iter().chain(["agent"]) {
        let letter = json!({ "to": name, "kind": "message", "text": format!("for {name} alone") });
        assert_eq!(as_name("friend", ("POST", "/send-message"), letter).0, 200, "{name}");
    }
    let texts = |name: &str| {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert_eq!(read.0, 200, "{name}: {read:?}");
        let entries = read.1["entries"].as_array().unwrap().clone();
        entries.iter().filter_map(|it| Some(it["text"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    for name in FOREIGN.into_iter().chain(["agent"]) {
        assert_eq!(texts(name), [format!("for {name} alone")], "{name}");
    }
    // A token keeps its own name alone, in all its spellings.
    ok(&world, &["token", "mint", "\u{c9}lan"]);
    ok(&world, &["token", "mint", "\u{592a}\u{90ce}"]);
    for name in ["\u{c9}lan", "\u{e9}LAN", "\u{592a}\u{90ce}", "\u{592a}\u{90ce}!", "-\u{592a}\u{90ce}"] {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert!(is_kept_out(&read), "{name}: {read:?}");
    }
    for name in ["\u{82b1}\u{5b50}", "---", "agent", "lan", "\u{592a}"] {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert_eq!(read.0, 200, "{name}: {read:?}");
    }
    // Each has a key of its own, too.
    ok(&world, &["key", "add", "\u{6b21}\u{90ce}"]);
    ok(&world, &["key", "add", "\u{4e09}\u{90ce}"]);
}

#[test]
fn an_inbox_at_the_broker_door_is_nobodys_because_its_name_has_dashes_alone() {
    let world = World::new();
    world.configure(OPEN);
    let _daemon = world.start();
    ok(&world, &["token", "mint", "agent"]);
    let http = Http::broker(&world);
    assert_eq!(http.get("/messages/agent").status, 403);
    assert_eq!(http.get("/messages/---").status, 200);
    // What git-paw's clients would call `agent` gets no instructions in that name.
    let (fine, text) = said(&world, &["broker", "boot-block", "\u{592a}\u{90ce}"]);
    assert!(!fine && text.contains("neither a letter"), "{text}");
    assert!(ok(&world, &["broker", "boot-block", "feat/\u{592a}\u{90ce}-1"]).contains("You are feat-1"));
}

/// Names that differ in signs of ASCII, each of which an agent may have; git-paw's clients would make one of them.
const ALIKE: [&str; 4] = ["fix-1.2", "fix-1-2", "fix-1:2", "fix-1+2"];

#[test]
fn names_that_differ_in_more_than_case_slashes_and_dashes_read_no_letters_of_each_other() {
    let (world, _daemon) = open_world();
    let broker = Http::broker(&world);
    // At the broker door a letter is for the name that git-paw's clients have.
    let feedback = json!({ "from": "supervisor", "errors": ["by the broker to fix-1-2"] });
    let letter = json!({ "type": "agent.feedback", "agent_id": "fix/1-2", "payload": feedback });
    assert_eq!(broker.post("/publish", &letter).status, 202);
    for to in ALIKE {
        let letter = json!({ "to": to, "kind": "message", "text": format!("by the own API to {to}") });
        let sent = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter);
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    let others = |read: &str, mine: &str| -> Vec<&str> {
        ALIKE.into_iter().filter(|it| *it != mine && read.contains(&format!("to {it}\""))).collect()
    };
    for mine in ALIKE {
        let read =
            own(&world, ("POST", "/read-inbox"), &[("x-provost-agent", mine)], &json!({})).1.to_string();
        assert!(read.contains(&format!("by the own API to {mine}\"")), "{mine}: {read}");
        assert_eq!(others(&read, mine), [""; 0], "{mine} at the own API: {read}");
        let posts = format!("/posts?inbox={}", mine.replace(':', "%3A").replace('+', "%2B"));
        let read = own(&world, ("GET", &posts), &[("x-provost-agent", mine)], &json!({})).1.to_string();
        assert_eq!(others(&read, mine), [""; 0], "{mine} among the posts: {read}");
    }
    for mine in ALIKE {
        let read = Host::old(&world, mine).does("inbox_read", json!({})).to_string();
        assert_eq!(others(&read, mine), [""; 0], "{mine} by MCP: {read}");
    }
    // Both spellings that clients of the broker have are one agent, and no other has its letters.
    for name in ["fix-1-2", "fix/1-2", "fix--1-2"] {
        let path = format!("/messages/{}", name.replace('/', "%2F"));
        let read = broker.get(&path);
        let text = String::from_utf8_lossy(&read.body).into_owned();
        assert!(read.status == 200 && text.contains("by the broker to fix-1-2"), "{name}: {read:?}");
        assert_eq!(others(&text, "fix-1-2"), [""; 0], "{name}: {text}");
    }
    for name in ["fix-1.2", "fix-1%2B2", "fix-1%3A2"] {
        assert_eq!(broker.get(&format!("/messages/{name}")).status, 400, "{name}");
    }
    // Of a name that is an owner's, the others are free for nobody, and are not the owner's either.
    let bearer = format!("Bearer {}", ok(&world, &["token", "mint", "fix-1.2"]));
    let as_other = own(
        &world,
        ("POST", "/read-inbox"),
        &[("x-provost-agent", "fix-1-2"), ("authorization", &bearer)],
        &json!({}),
    );
    assert_eq!(as_other.0, 403, "{as_other:?}");
    assert!(is_kept_out(&own(
        &world,
        ("POST", "/read-inbox"),
        &[("x-provost-agent", "fix-1-2")],
        &json!({})
    )));
    assert_eq!(broker.get("/messages/fix-1-2").status, 403);
}

#[test]
fn a_request_that_names_two_agents_speaks_as_neither() {
    let (world, _daemon) = open_world();
    let both = [("x-provost-agent", "ada"), ("x-provost-agent", "bob")];
    let refused = own(&world, ("POST", "/lock"), &both, &json!({ "symbol": "a.ts:f" }));
    assert_eq!((refused.0, &refused.1["error"]), (400, &json!("invalid")), "{refused:?}");
}
