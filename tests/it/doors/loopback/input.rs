//! Bad input at both doors over loopback HTTP: each thing answered in one sentence, in the door's form, and
//! nothing done.

use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::loopback_client::{Answer, Http};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A door, where it takes things, the member that is an agent's name, and what it takes from one.
struct Taking {
    door: Http,
    path: &'static str,
    member: &'static str,
    made: fn(Value) -> Value,
}

fn doors(world: &World) -> [Taking; 2] {
    let announced = |id| json!({ "id": id, "tool": "x" });
    let status = |id| json!({ "type": "agent.status", "agent_id": id, "payload": { "status": "working", "modified_files": [] } });
    [
        Taking { door: Http::agent_protocol(world), path: "/agents/announce", member: "id", made: announced },
        Taking { door: Http::broker(world), path: "/publish", member: "agent_id", made: status },
    ]
}

/// Returns the journal as text.
fn record(world: &World) -> String {
    let output = world.command(&["log", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that an answer is one sentence of the door, without details of its inside.
fn is_a_sentence(answer: &Answer) -> bool {
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let inside = ["panicked", "src/", ".rs:", "stack", "    at ", "backtrace", "sqlite"];
    let said = match answer.header("content-type") {
        Some(kind) if kind.starts_with("application/json") => {
            answer.json()["error"].as_str().map(str::to_owned)
        }
        // The broker's, as git-paw's has it, where a body is no JSON.
        Some("text/plain; charset=utf-8") => Some(text.clone()),
        _ => None,
    };
    (400..500).contains(&answer.status)
        && answer.header("x-content-type-options") == Some("nosniff")
        && said.is_some_and(|it| !it.is_empty() && !it.contains('\n'))
        && !inside.iter().any(|it| text.contains(it))
}

#[test]
fn bad_input_gets_one_sentence_at_both_doors_and_leaves_nothing() {
    let world = World::new();
    let _daemon = world.start();
    for Taking { door, path, member, made } in doors(&world) {
        let line = format!("POST {path}");
        let before = record(&world);
        let ids = [
            json!(7),
            json!(0.5),
            json!(true),
            json!(null),
            json!([]),
            json!({ "a": 1 }),
            json!(["feat-a"]),
            json!(""),
            json!("a\u{0}b"),
            json!("a\nb"),
            json!("x".repeat(10_000)),
        ];
        for id in ids {
            let answer = door.post(path, &made(id.clone()));
            assert!(is_a_sentence(&answer), "{path} {id}: {answer:?}");
        }
        let whole = made(json!("feat-a")).to_string();
        let half = &whole.as_bytes()[..whole.len() / 2];
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let twice = whole.replacen('{', &format!("{{\"{member}\":\"feat-b\","), 1);
        let bodies: [&[u8]; 8] =
            [b"", b"null", b"[]", b"{}", half, b"\xff\xfe{}", deep.as_bytes(), b"{\"agent_id\":\"\\ud800\"}"];
        for body in bodies {
            let answer = door.send(&line, &[JSON], body);
            assert!(is_a_sentence(&answer), "{path} {:?}: {answer:?}", String::from_utf8_lossy(body));
        }
        assert_eq!(record(&world), before, "{path}");
        // Of a member that is there twice nobody takes one for the other.
        let answer = door.send(&line, &[JSON], twice.as_bytes());
        assert!(answer.status < 500, "{answer:?}");
        if answer.status < 300 {
            assert!(record(&world).contains("feat-a") && !record(&world).contains("feat-b"));
        } else {
            assert_eq!(record(&world), before, "{path}");
        }
    }
    let broker = Http::broker(&world);
    for kind in ["agent.unknown", "", "AGENT.STATUS", "agent.status "] {
        let message = json!({ "type": kind, "agent_id": "feat-a", "payload": { "status": "working" } });
        assert!(is_a_sentence(&broker.post("/publish", &message)), "{kind}");
    }
}

#[test]
fn a_body_in_pieces_is_the_same_body_at_both_doors() {
    let world = World::new();
    let _daemon = world.start();
    for Taking { door, path, made, .. } in doors(&world) {
        let body = made(json!("feat-a")).to_string();
        let host = format!("127.0.0.1:{}", door.port);
        let mut request =
            format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n")
                .into_bytes();
        request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        let mut connection = door.connect();
        connection.write_all(&request).unwrap();
        for piece in body.as_bytes().chunks(7) {
            connection.write_all(format!("{:x};x=y\r\n", piece.len()).as_bytes()).unwrap();
            connection.write_all(piece).unwrap();
            connection.write_all(b"\r\n").unwrap();
        }
        connection.write_all(b"0\r\nX: trailer\r\n\r\n").unwrap();
        let status = Answer::read(&mut connection, false).unwrap().status;
        assert!(matches!(status, 200..=202), "{path}: {status}");
        // The next one on the same connection begins where this one ended.
        connection.write_all(&door.bytes("GET /nowhere", &[("Host", "127.0.0.1:PORT")], b"")).unwrap();
        assert_eq!(Answer::read(&mut connection, false).unwrap().status, 404);
    }
}

#[test]
fn a_place_is_one_place_at_both_doors_and_what_is_no_file_holds_nobody_up() {
    let world = World::new();
    world.configure("[coordination]\nacross_doors = \"deny\"\n");
    let repo = world.repo();
    std::fs::create_dir(repo.join("src")).unwrap();
    std::fs::write(repo.join("src/a.rs"), "fn a() {}\n").unwrap();
    assert!(Command::new("mkfifo").arg(repo.join("pipe")).status().unwrap().success());
    let _daemon = world.start();
    let (agents, broker) = (Http::agent_protocol(&world), Http::broker(&world));
    let intend = |file: &str| {
        let message = json!({ "type": "agent.intent", "agent_id": "feat-b",
            "payload": { "files": [file], "summary": "s", "valid_for_seconds": 900 } });
        broker.post("/publish", &message).status
    };
    assert_eq!(agents.post("/agents/announce", &json!({ "id": "a", "tool": "x" })).status, 201);
    for path in ["src/a.rs", "pipe"] {
        let answer = agents.post("/resources/claim", &json!({ "agent_id": "a", "path": path }));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    for file in ["src/a.rs", "./src/a.rs", "src//a.rs", "src/x/../a.rs", "src", "src/", "pipe"] {
        assert_eq!(intend(file), 409, "{file}");
    }
    assert_eq!(intend("src/b.rs"), 202, "nobody has that one");
}

#[test]
fn markup_in_a_name_is_text_at_both_doors() {
    let world = World::new();
    let _daemon = world.start();
    let evil = "<img src=x onerror=alert(1)>";
    for Taking { door, path, made, .. } in doors(&world) {
        let answer = door.post(path, &made(json!(evil)));
        assert!(answer.status < 500, "{answer:?}");
        // Whoever asks like a browser is told nothing but JSON, or a page in which it is not.
        for target in
            ["/status", "/agents", "/dashboard/", "/messages/%3Cimg%20src=x%3E", "/%3Cimg%20src=x%3E"]
        {
            let answer = door.send(&format!("GET {target}"), &[("Accept", "text/html")], b"");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}: {answer:?}");
            let kind = answer.header("content-type").unwrap_or("application/json");
            let text = String::from_utf8(answer.body.clone()).unwrap();
            assert!(kind.starts_with("application/json") || !text.contains("<img"), "{target}: {answer:?}");
        }
    }
}
