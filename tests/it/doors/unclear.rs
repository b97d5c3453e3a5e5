//! Input at the edge of what a door takes: ids and texts that no list or program can show as they are, and HTTP that
//! two readers could read in two ways. Each gets an answer in the door's own form, and changes nothing.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World, a6s_client, fresh};

/// Ids that look like `parser`, or in which something cannot be seen.
const UNCLEAR: [&str; 5] =
    ["parser\u{200b}", "\u{202e}resrap", "parse\u{440}", "\u{ff50}arser", "pars\u{ad}er"];

fn world() -> (World, Daemon) {
    let world = World::new();
    world.rule(ALLOW);
    let daemon = world.start();
    (world, daemon)
}

fn delegate(world: &World, body: &Value) -> (u16, Value) {
    own(world, ("POST", "/delegate"), &[("x-provost-agent", "coder")], body)
}

fn tasks(world: &World) -> Value {
    let (status, tasks) = own(world, ("GET", "/tasks"), &[], &json!({}));
    assert_eq!(status, 200, "{tasks}");
    tasks
}

#[test]
fn the_id_of_a_new_task_cannot_pass_for_another_one_at_any_door() {
    let (world, daemon) = world();
    let client = world.client(&daemon, "orch:a");
    let mut host = Host::new_era(&world, "coder");
    let before = tasks(&world);
    for id in UNCLEAR {
        let asked = json!({ "goal": "true", "worker": "shell", "task": id });
        let (status, said) = delegate(&world, &asked);
        assert_eq!((status, &said["error"]), (400, &json!("invalid")), "{id:?}: {said}");
        assert!(said["message"].as_str().unwrap().starts_with("task contains U+"), "{said}");
        let said = client.say_to("DELEGATE", id, "shell", json!({ "task": { "goal": "true" } })).message();
        assert_eq!(said["payload"]["code"], "E_INVALID", "{id:?}: {said}");
        assert!(said["payload"]["message"].as_str().unwrap().contains("task id contains U+"), "{said}");
        let said = host.fails("delegate", json!({ "goal": "true", "worker": "shell", "task_id": id }));
        assert!(said.contains("contains U+"), "{id:?}: {said}");
        let (status, said) = own(&world, ("POST", "/screenshot"), &[], &json!({ "task": id }));
        assert_eq!(status, 400, "{id:?}: {said}");
        // What is named is looked up as it is written: an older task may have such an id.
        let (status, said) = own(&world, ("POST", "/cancel-task"), &[], &json!({ "task": id }));
        assert_eq!((status, &said["error"]), (404, &json!("task_not_found")), "{id:?}: {said}");
    }
    assert_eq!(tasks(&world), before);
    // Another script is no reason to refuse, and what is only odd stays possible.
    for id in ["разбор", "解析-1", "a/b", "../../x"] {
        let (status, said) = delegate(&world, &json!({ "goal": "true", "worker": "shell", "task": id }));
        assert_eq!(status, 200, "{id}: {said}");
    }
}

#[test]
fn a_text_that_no_program_can_be_given_is_refused_before_there_is_a_task() {
    let (world, daemon) = world();
    let client = world.client(&daemon, "orch:a");
    let mut host = Host::new_era(&world, "coder");
    let before = tasks(&world);
    for member in ["goal", "model", "format"] {
        let mut asked = json!({ "goal": "true", "worker": "shell" });
        asked[member] = json!("a\u{0}b");
        let (status, said) = delegate(&world, &asked);
        let why = format!("{member} contains a zero byte, which no program can be given");
        assert_eq!((status, said["message"].as_str().unwrap()), (400, &*why), "{said}");
        let mut task = json!({ "goal": "true" });
        task[member] = json!("a\u{0}b");
        let said = client.say_to("DELEGATE", &fresh("m"), "shell", json!({ "task": task })).message();
        assert_eq!(said["payload"]["code"], "E_INVALID", "{said}");
        assert!(said["payload"]["message"].as_str().unwrap().contains(&why), "{said}");
    }
    let said = host.fails("delegate", json!({ "goal": "a\u{0}b", "worker": "shell" }));
    assert!(said.contains("zero byte"), "{said}");
    assert_eq!(tasks(&world), before);
}

#[test]
fn an_intent_of_thousands_of_symbols_in_each_of_a_thousand_files_is_refused_at_once() {
    let (world, _daemon) = world();
    let files: Vec<String> = (0..1_000).map(|n| format!("src/f{n}.rs")).collect();
    let symbols: Vec<String> = (0..10_000).map(|n| format!("f{n}")).collect();
    for path in ["/declare", "/check-conflicts"] {
        let asked = |files: &[String], symbols: &[String]| {
            let body = json!({ "description": "d", "files": files, "symbols": symbols });
            own(&world, ("POST", path), &[("x-provost-agent", "coder")], &body)
        };
        // Each alone is an intent, and so are a few symbols in many files.
        for (files, symbols) in [(&files[..1], &symbols[..]), (&files[..], &symbols[..20])] {
            let (status, said) = asked(files, symbols);
            assert_eq!(status, 200, "{path} {}: {said}", files.len());
        }
        let (status, said) = asked(&files, &symbols);
        assert_eq!(status, 413, "{path}: {said}");
        assert!(said["message"].as_str().unwrap().contains("symbols in all of its files together"), "{said}");
    }
    let (_, intents) = own(&world, ("GET", "/intents"), &[], &json!({}));
    assert_eq!(intents.as_array().map(Vec::len), Some(2), "the refused one is none");
}

/// Requests that two readers could read in two ways, after their first line; `HOST` stands for the door's address.
const FRAMED_TWICE: [&str; 8] = [
    "Host: HOST\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "Host: HOST\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
    "Host: HOST\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "Host:\r\n HOST\r\nContent-Length: 2\r\n\r\n{}",
    "Host : HOST\r\nContent-Length: 2\r\n\r\n{}",
    "Host: HOST\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "Host: HOST\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    "Host: HOST\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}",
];

/// What is said until the door closes.
fn until_closed(door: Http, request: &str) -> String {
    let mut connection = door.connect();
    // What was refused on the way may be closed already.
    let _sent = connection.write_all(request.as_bytes());
    let mut said = Vec::new();
    let _ended = connection.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read() {
    let world = a6s_client::world();
    let _daemon = world.start();
    let agents = Http::agent_protocol(&world);
    for door in Http::all(&world) {
        let host = format!("127.0.0.1:{}", door.port);
        let path = match door.port {
            port if port == Http::broker(&world).port => "/publish",
            port if port == Http::mcp(&world).port => "/mcp",
            port if port == agents.port => "/agents/announce",
            _ => "/ws",
        };
        for framed in FRAMED_TWICE {
            let first = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n{framed}");
            let body = json!({ "id": "behind", "tool": "x" }).to_string();
            let behind = format!(
                "POST /agents/announce HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let said = until_closed(door, &format!("{first}{behind}").replace("HOST", &host));
            let status = said.split(' ').nth(1).unwrap_or("none");
            assert!(
                matches!(status, "400" | "403" | "404" | "405" | "426" | "none"),
                "{path} {framed:?}: {said}"
            );
            assert_eq!(said.matches("HTTP/1.1 ").count().max(1), 1, "{path} {framed:?}: {said}");
        }
    }
    let (long, many) = ("x".repeat(100_000), "X: y\r\n".repeat(20_000));
    for (size, trailers) in [(format!("2;{long}"), String::new()), ("2".into(), many)] {
        let host = format!("127.0.0.1:{}", agents.port);
        let request = format!(
            "POST /agents/announce HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
             {size}\r\n{{}}\r\n0\r\n{trailers}\r\n"
        );
        let said = until_closed(agents, &request);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    }
    assert_eq!(agents.get("/agents/behind").status, 404, "it was not read");
    assert_eq!(agents.post("/agents/announce", &json!({ "id": "next", "tool": "x" })).status, 201);
}
