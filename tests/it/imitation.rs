//! A name that has a key or a token, tried at every door by a process of this user that shows neither.

use std::path::Path;

use serde_json::json;

use crate::a6s_client::{OPEN, Socket, handshake};
use crate::loopback_client::Http;
use crate::support::{Daemon, World, eventually};
use crate::wit_client::{self, Wit};

/// What is tried, and whether it was let in.
type Tried = (&'static str, bool);

/// Everything that the doors offer to somebody who says this name.
fn everywhere(world: &World, daemon: &Daemon, name: &str) -> Vec<Tried> {
    let mut all = Vec::new();
    // DevIt, with the secret that all share.
    let client = world.client(daemon, name);
    for (what, payload) in [("REGISTER", json!({ "caps": [], "pid": 1 })), ("HEARTBEAT", json!({}))] {
        all.push((what, client.say(what, payload).message()["msg_type"] == "ACK"));
    }
    // The own API.
    for (what, args) in [
        ("intend", &["intend", "--as", name, "--file", "README.md", "x"][..]),
        ("lock", &["lock", "--as", name, "README.md"]),
    ] {
        all.push((what, world.command(args).output().unwrap().status.success()));
    }
    let wit = Wit::of(world);
    for (what, params) in [
        ("register", json!({ "sessionId": name, "name": "x" })),
        ("lock.acquire", json!({ "sessionId": name, "symbolPath": "README.md:x", "ttlMs": 1_000 })),
        ("intent.declare", json!({ "sessionId": name, "description": "x", "files": ["README.md"] })),
    ] {
        let answer = wit.call(what, Some(&params));
        let refused = answer["error"]["message"] == "SESSION_RESERVED";
        assert!(refused || answer["error"].is_null(), "{what} {name}: {answer}");
        all.push((what, !refused));
    }
    let http = Http::agent_protocol(world);
    for (what, body) in [
        ("/agents/announce", json!({ "id": name, "tool": "x" })),
        ("/resources/claim", json!({ "path": "other.md", "agent_id": name })),
        ("/events", json!({ "agent_id": name, "action": "x" })),
    ] {
        let answer = http.post(what, &body);
        assert!(matches!(answer.status, 200 | 201 | 403), "{what} {name}: {answer:?}");
        all.push((what, answer.status != 403));
    }
    let broker = Http::broker(world);
    for (what, payload) in [
        ("agent.status", json!({ "status": "working", "modified_files": [] })),
        ("agent.intent", json!({ "files": ["third.md"], "summary": "s", "valid_for_seconds": 900 })),
    ] {
        let answer = broker.post("/publish", &json!({ "type": what, "agent_id": name, "payload": payload }));
        assert!(matches!(answer.status, 202 | 403), "{what} {name}: {answer:?}");
        all.push((what, answer.status == 202));
    }
    all
}

/// Whether an editor gets its socket, which speaks as `editor` without a token.
fn editor(world: &World) -> bool {
    let door = Http::a6s(world);
    let (_, head) = Socket::with_head(door, handshake(door.port).as_bytes());
    assert!(head.starts_with("HTTP/1.1 101 ") || head.starts_with("HTTP/1.1 403 "), "{head}");
    head.starts_with("HTTP/1.1 101 ")
}

fn ok(world: &World, args: &[&str]) {
    let output = world.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

fn names(tried: &[Tried], let_in: bool) -> Vec<&'static str> {
    tried.iter().filter(|it| it.1 == let_in).map(|it| it.0).collect()
}

#[test]
fn a_name_with_a_key_or_a_token_is_had_at_no_door_without_it() {
    let world = wit_client::world();
    world.configure(OPEN);
    std::fs::write(Path::new(&world.repo()).join("README.md"), "x\n").unwrap();
    let daemon = world.start();
    eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
    // What is tried is let in where nobody has the name.
    assert_eq!(names(&everywhere(&world, &daemon, "free"), false), [""; 0]);
    ok(&world, &["key", "add", "keyed"]);
    ok(&world, &["token", "mint", "tokened"]);
    let log = || world.command(&["log", "--json"]).output().unwrap().stdout;
    for name in ["keyed", "tokened", "provost", "human", "user:ada"] {
        assert_eq!(names(&everywhere(&world, &daemon, name), true), [""; 0], "{name}");
        // Nor is anything on record in that name.
        let said = String::from_utf8(log()).unwrap();
        let by = format!("\"actor\":\"{name}\"");
        assert!(name == "provost" || !said.lines().any(|it| it.contains(&by)), "{name}: {said}");
    }
    assert!(editor(&world));
    ok(&world, &["token", "mint", "editor"]);
    assert!(!editor(&world));
    ok(&world, &["token", "revoke", "--of", "editor"]);
    ok(&world, &["token", "revoke", "--of", "tokened"]);
    assert!(editor(&world));
    assert_eq!(names(&everywhere(&world, &daemon, "tokened"), false), [""; 0]);
    ok(&world, &["key", "add", "editor"]);
    assert!(!editor(&world));
}
