//! A name that has a key or a token, tried at every door by a process of this user that shows neither.

use serde_json::json;

use crate::support::a6s_client::{OPEN, Socket, handshake};
use crate::support::loopback_client::Http;
use crate::support::wit_client::{self, Wit};
use crate::support::{Daemon, Reply, World, eventually};

/// An attempt, and whether the door let it in.
type Tried = (&'static str, bool);

/// Everything that the doors offer to a caller that says this name.
fn everywhere(world: &World, daemon: &Daemon, name: &str) -> Vec<Tried> {
    let mut all = Vec::new();
    // A file of its own, so that nobody else is in the way.
    let file = format!("{}.md", name.replace(':', "-"));
    std::fs::write(world.repo().join(&file), "x\n").unwrap();
    // DevIt, with the secret that all share.
    let client = world.client(daemon, name);
    let registered = client.say("REGISTER", json!({ "caps": [], "pid": 1 }));
    all.push(("REGISTER", matches!(registered, Reply::Message(it) if it["msg_type"] == "ACK")));
    // With nothing to say to it, an empty line.
    all.push(("HEARTBEAT", client.say("HEARTBEAT", json!({})) == Reply::Nothing));
    // The own API.
    for (what, args) in [
        ("intend", &["intent", "declare", "--as", name, "--file", &file, "x"][..]),
        ("lock", &["lock", "--as", name, &file]),
    ] {
        all.push((what, world.command(args).output().unwrap().status.success()));
    }
    let wit = Wit::of(world);
    for (what, params) in [
        ("register", json!({ "sessionId": name, "name": "x" })),
        ("lock.acquire", json!({ "sessionId": name, "symbolPath": format!("{file}:x"), "ttlMs": 1_000 })),
        ("intent.declare", json!({ "sessionId": name, "description": "x", "files": [file] })),
    ] {
        let answer = wit.call(what, Some(&params));
        let refused = answer["error"]["message"] == "SESSION_RESERVED";
        assert!(refused || answer["error"].is_null(), "{what} {name}: {answer}");
        all.push((what, !refused));
    }
    let http = Http::agent_protocol(world);
    for (what, body) in [
        ("/agents/announce", json!({ "id": name, "tool": "x" })),
        ("/resources/claim", json!({ "path": file, "agent_id": name })),
        ("/events", json!({ "agent_id": name, "action": "x" })),
    ] {
        let answer = http.post(what, &body);
        assert!(matches!(answer.status, 200 | 201 | 403), "{what} {name}: {answer:?}");
        all.push((what, answer.status != 403));
    }
    let broker = Http::broker(world);
    for (what, payload) in [
        ("agent.status", json!({ "status": "working", "modified_files": [] })),
        ("agent.intent", json!({ "files": [file], "summary": "s", "valid_for_seconds": 900 })),
    ] {
        let answer = broker.post("/publish", &json!({ "type": what, "agent_id": name, "payload": payload }));
        // Some are no names there at all.
        assert!(matches!(answer.status, 202 | 400 | 403), "{what} {name}: {answer:?}");
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
    let daemon = world.start();
    eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
    // What is tried is let in where nobody has the name.
    assert_eq!(names(&everywhere(&world, &daemon, "feat-free"), false), [""; 0]);
    ok(&world, &["key", "add", "feat-keyed"]);
    ok(&world, &["token", "mint", "feat-tokened"]);
    let log = || world.command(&["log", "--json"]).output().unwrap().stdout;
    for name in ["feat-keyed", "feat-tokened", "provost", "human", "user:ada"] {
        assert_eq!(names(&everywhere(&world, &daemon, name), true), [""; 0], "{name}");
        // Nor is anything on record in that name.
        let said = String::from_utf8(log()).unwrap();
        let by = format!("\"actor\":\"{name}\"");
        assert!(name == "provost" || !said.lines().any(|it| it.contains(&by)), "{name}: {said}");
    }
    crate::support::tokens::revoke_of(&world, "feat-tokened");
    assert_eq!(names(&everywhere(&world, &daemon, "feat-tokened"), false), [""; 0]);
    // Editors all have one name, under which they only look; whose it is by a token is asked when something
    // is done.
    assert!(editor(&world));
    ok(&world, &["key", "add", "editor"]);
    assert!(!editor(&world));
}
