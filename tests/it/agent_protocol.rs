//! Agent Protocol through its door: what the recording does not show, and what the published server got wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::loopback_client::{Answer, Http};
use crate::support::{World, eventually};

impl Http {
    fn delete(self, path: &str) -> Answer {
        self.send(&format!("DELETE {path}"), &[], b"")
    }

    fn announce(self, id: &str) -> Value {
        let answer = self.post("/agents/announce", &json!({ "id": id, "tool": "x" }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    fn claim(self, path: &str, agent: &str) -> Answer {
        self.post("/resources/claim", &json!({ "path": path, "agent_id": agent }))
    }

    fn count(self) -> u64 {
        self.get("/status").json()["event_count"].as_u64().unwrap()
    }

    /// A stream of events, from now on.
    fn stream(self, query: &str) -> Stream {
        let mut connection = self.connect();
        let head = format!("GET /events/stream{query} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port);
        connection.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Stream { reader, head: head.to_ascii_lowercase() }
    }
}

struct Stream {
    reader: BufReader<TcpStream>,
    head: String,
}

impl Stream {
    /// The next chunk, which is a whole frame.
    fn frame(&mut self) -> Option<String> {
        let mut size = String::new();
        if self.reader.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|it| *it > 0)?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(String::from_utf8(chunk).unwrap())
    }

    fn event(&mut self) -> Value {
        let frame = self.frame().expect("an event");
        let data =
            frame.lines().find_map(|it| it.strip_prefix("data: ")).unwrap_or_else(|| panic!("{frame}"));
        serde_json::from_str(data).unwrap()
    }
}

fn started() -> (World, crate::support::Daemon, Http) {
    let world = World::new();
    world.write("src/a.ts", "export const a = 1\n");
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    (world, daemon, http)
}

#[test]
fn members_come_in_the_published_order_and_are_all_there() {
    let (_world, _daemon, http) = started();
    let text = |answer: Answer| String::from_utf8(answer.body).unwrap();
    let order = |text: &str, names: &[&str]| {
        let mut from = 0;
        for name in names {
            let at = text[from..].find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} in {text}"));
            from += at;
        }
    };
    let announced = text(http.post("/agents/announce", &json!({ "id": "a", "tool": "x" })));
    let agent =
        ["id", "tool", "role", "status", "current_task", "capabilities", "joined_at", "last_heartbeat"];
    order(&announced, &agent);
    http.claim("src/a.ts", "a");
    order(
        &text(http.get("/resources/src/a.ts")),
        &["path", "state", "owner", "claimed_at", "last_modified_by", "content_hash"],
    );
    let task = text(http.post("/tasks", &json!({ "title": "t", "assigned_by": "a" })));
    order(
        &task,
        &[
            "id",
            "title",
            "description",
            "assigned_to",
            "assigned_by",
            "status",
            "resources",
            "depends_on",
            "created_at",
            "started_at",
            "completed_at",
        ],
    );
    let handoff = text(http.post("/handoffs", &json!({ "from_agent": "a", "task_id": "t", "summary": "s" })));
    order(
        &handoff,
        &[
            "id",
            "from_agent",
            "to_agent",
            "task_id",
            "status",
            "summary",
            "files_modified",
            "files_created",
            "context",
            "blockers",
            "created_at",
        ],
    );
    order(
        &text(http.get("/events?limit=1")),
        &[
            "id",
            "timestamp",
            "agent_id",
            "action",
            "resource",
            "task_id",
            "before_hash",
            "after_hash",
            "metadata",
        ],
    );
    order(&text(http.get("/state")), &["agents", "resources", "tasks", "handoffs", "lead", "event_count"]);
    let id = serde_json::from_str::<Value>(&task).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &id[..5]), (13, "task_"));
    assert_eq!(http.get(&format!("/tasks/{id}")).json()["title"], "t");
    assert_eq!(http.get("/handoffs").json().as_array().unwrap().len(), 1);
}

#[test]
fn a_path_has_one_spelling_and_stays_in_the_workspace() {
    let (world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    symlink("src", world.repo().join("alias")).unwrap();
    symlink("/etc", world.repo().join("out")).unwrap();
    assert_eq!(http.claim("src/a.ts", "a").status, 200);
    let absolute = world.repo().canonicalize().unwrap().join("src/a.ts");
    for alias in
        ["./src/a.ts", "src//a.ts", "src/./a.ts", "src/x/../a.ts", "alias/a.ts", absolute.to_str().unwrap()]
    {
        assert_eq!(http.claim(alias, "b").status, 409, "{alias}");
    }
    assert_eq!(http.get("/resources").json().as_array().unwrap().len(), 1);
    let before = http.count();
    for outside in ["/etc/hostname", "../x", "src/../../x", "/", ".", "out/hostname", "a\u{0}b"] {
        let answer = http.claim(outside, "a");
        assert_eq!((answer.status, answer.json()), (400, json!({ "error": "Invalid path" })), "{outside}");
    }
    assert_eq!(http.get("/resources//etc/hostname").status, 404, "nothing outside is ever looked at");
    assert_eq!(http.count(), before);
}

#[test]
fn what_is_no_file_is_claimed_without_being_read() {
    let (world, _daemon, http) = started();
    http.announce("a");
    let fifo = world.repo().join("pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let large = std::fs::File::create(world.repo().join("large")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    for (path, hash) in
        [("pipe", "hash_error"), ("src", "hash_error"), ("none", "file_not_found"), ("large", "too_large")]
    {
        assert_eq!(http.claim(path, "a").status, 200, "{path}");
        assert_eq!(http.get(&format!("/resources/{path}")).json()["content_hash"], hash, "{path}");
    }
}

#[test]
fn one_of_twenty_who_ask_at_once_is_granted_a_file() {
    let (_world, _daemon, http) = started();
    for n in 0..20 {
        http.announce(&format!("a{n}"));
    }
    let asking: Vec<_> =
        (0..20).map(|n| thread::spawn(move || http.claim("src/a.ts", &format!("a{n}")).status)).collect();
    let statuses: Vec<u16> = asking.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|it| **it == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|it| **it == 409).count(), 19, "{statuses:?}");
}

#[test]
fn a_crash_loses_nothing_that_was_answered() {
    let (world, mut daemon, http) = started();
    http.announce("a");
    http.claim("src/a.ts", "a");
    let task = http.post("/tasks", &json!({ "title": "t", "assigned_by": "a" })).json();
    http.post("/handoffs", &json!({ "from_agent": "a", "task_id": task["id"], "summary": "s" }));
    http.post("/events", &json!({ "agent_id": "a", "action": "my.own", "metadata": { "b": 1 } }));
    let (state, events) = (http.get("/state").json(), http.get("/events?limit=-1").json());
    daemon.kill();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let after = http.get("/state").json();
    for part in ["agents", "resources", "tasks", "handoffs", "lead"] {
        assert_eq!(state[part], after[part], "{part}");
    }
    let again = http.get("/events?limit=-1").json();
    let (again, events) = (again.as_array().unwrap(), events.as_array().unwrap());
    assert_eq!(again.len(), events.len() + 1, "and one for the start");
    assert_eq!(&again[1..], &events[..], "with the same names");
    assert_eq!(after["event_count"], again.len());
    assert_eq!(
        http.post("/agents/a/heartbeat", &json!({})).status,
        200,
        "nobody has to announce itself again"
    );
}

#[test]
fn a_plain_stream_is_events_and_nothing_else() {
    let (_world, _daemon, http) = started();
    let mut stream = http.stream("");
    for header in ["content-type: text/event-stream", "cache-control: no-cache", "connection: keep-alive"] {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    http.announce("a");
    let frame = stream.frame().unwrap();
    assert!(frame.starts_with("data: {\"id\":\"evt_") && frame.ends_with("}\n\n"), "{frame}");
    assert_eq!(frame.matches('\n').count(), 2, "{frame}");
    http.post("/agents/a/heartbeat", &json!({}));
    assert_eq!(stream.event()["action"], "agent.heartbeat");
    http.claim("src/a.ts", "a");
    assert_eq!(stream.event(), http.get("/events?limit=1").json()[0], "the same as when asked for");
}

#[test]
fn a_stream_with_ids_goes_on_where_it_was_broken_off() {
    let (world, mut daemon, http) = started();
    let mut stream = http.stream("?ids=1&heartbeats=0&agent_id=a");
    http.announce("b");
    http.announce("a");
    let frame = stream.frame().unwrap();
    let id = frame.lines().next().unwrap().strip_prefix("id: ").unwrap().to_owned();
    assert_eq!(frame.lines().nth(1).unwrap(), format!("data: {}", first_event(http, "agent_id=a")));
    drop(stream);
    http.post("/agents/a/heartbeat", &json!({}));
    http.claim("src/a.ts", "a");
    daemon.kill();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    http.claim("src/b.ts", "a");
    let mut stream = http.stream(&format!("?ids=1&heartbeats=0&agent_id=a&last_event_id={id}"));
    http.claim("src/c.ts", "a");
    let files: Vec<Value> = (0..3).map(|_| stream.event()["resource"].clone()).collect();
    assert_eq!(files, ["src/a.ts", "src/b.ts", "src/c.ts"]);
    let unknown = http.get("/events/stream?ids=1&last_event_id=evt_AAAAAAAAAAAA");
    assert_eq!((unknown.status, unknown.json()), (400, json!({ "error": "Last-Event-ID is no event's id" })));
}

fn first_event(http: Http, query: &str) -> String {
    let text = String::from_utf8(http.get(&format!("/events?limit=1&{query}")).body).unwrap();
    text.trim_start_matches('[').trim_end_matches(']').to_owned()
}

#[test]
fn everybody_sees_every_event_once_and_in_order() {
    let (_world, _daemon, http) = started();
    let mut streams: Vec<_> = (0..8).map(|_| http.stream("")).collect();
    let writers: Vec<_> = (0..4)
        .map(|w| {
            thread::spawn(move || {
                for n in 0..50 {
                    let body = json!({ "agent_id": "a", "action": "my.own", "metadata": { "w": w, "n": n } });
                    assert_eq!(http.post("/events", &body).status, 201);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|it| it.join().unwrap());
    let all = http.get("/events?limit=200&action=my.own").json();
    let mut wanted: Vec<Value> = all.as_array().unwrap().clone();
    wanted.reverse();
    for stream in &mut streams {
        let got: Vec<Value> = (0..200).map(|_| stream.event()).collect();
        assert!(got == wanted);
    }
}

#[test]
fn a_long_poll_ends_with_the_next_event() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let last = http.get("/events?limit=1").json()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(http.get(&format!("/events?since_id={last}")).json(), json!([]));
    let waiting = thread::spawn({
        let path = format!("/events?since_id={last}&wait=25&action=resource.claimed");
        move || http.get(&path).json()
    });
    http.post("/agents/a/heartbeat", &json!({}));
    http.claim("src/a.ts", "a");
    let found = waiting.join().unwrap();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["resource"]), (1, &json!("src/a.ts")));
    assert_eq!(http.get("/events?since_id=evt_x").status, 400);
    assert_eq!(http.get("/events?since_id=evt_x&wait=x").status, 400);
}

/// Method and path, body, status and error.
const BAD: &[(&str, &str, u16, &str)] = &[
    ("POST /agents/announce", r#"{"id":7,"tool":"x"}"#, 400, "id must be a string"),
    ("POST /agents/announce", r#"{"id":"a","tool":[]}"#, 400, "tool must be a string"),
    (
        "POST /agents/announce",
        r#"{"id":"a","tool":"x","role":"boss"}"#,
        400,
        "role must be one of lead, specialist, worker",
    ),
    (
        "POST /agents/announce",
        r#"{"id":"a","tool":"x","capabilities":"code"}"#,
        400,
        "capabilities must be an array of strings",
    ),
    (
        "POST /agents/announce",
        r#"{"id":"a","tool":"x","capabilities":[1]}"#,
        400,
        "capabilities must be an array of strings",
    ),
    ("POST /agents/announce", "{\"id\":\"a\\u0007\",\"tool\":\"x\"}", 400, "id contains a control character"),
    ("POST /agents/announce", "{\"id\":\"\\ud800\",\"tool\":\"x\"}", 400, "Invalid JSON"),
    ("POST /agents/announce", "{\"id\":\"a\",}", 400, "Invalid JSON"),
    ("POST /agents/announce", "7", 400, "Invalid JSON"),
    (
        "PATCH /agents/a/status",
        r#"{"status":"dancing"}"#,
        400,
        "status must be one of idle, working, blocked, waiting_review, offline",
    ),
    ("PATCH /agents/nobody/status", r#"{"status":"idle"}"#, 404, "Agent not found"),
    ("POST /resources/claim", r#"{"path":{},"agent_id":"a"}"#, 400, "path must be a string"),
    ("POST /resources/claim", r#"{"path":"x","agent_id":"a","task_id":5}"#, 400, "task_id must be a string"),
    (
        "PATCH /tasks/t",
        r#"{"status":"bogus","agent_id":"a"}"#,
        400,
        "status must be one of queued, assigned, in_progress, review, done, blocked",
    ),
    ("PATCH /tasks/t", r#"{"status":"done","agent_id":"a"}"#, 404, "Task not found"),
    (
        "POST /tasks",
        r#"{"title":"t","assigned_by":"a","resources":"x"}"#,
        400,
        "resources must be an array of strings",
    ),
    (
        "POST /handoffs",
        r#"{"from_agent":"a","task_id":"t","summary":"s","blockers":[null]}"#,
        400,
        "blockers must be an array of strings",
    ),
    ("POST /events", r#"{"agent_id":"a"}"#, 400, "agent_id and action are required"),
    ("POST /events", r#"{"agent_id":"a","action":"x","resource":{"a":1}}"#, 400, "resource must be a string"),
    ("POST /events", r#"{"agent_id":"a","action":["x"]}"#, 400, "action must be a string"),
    ("GET /events?limit=abc", "", 400, "limit must be a number"),
    ("GET /agents/%zz", "", 400, "Invalid path"),
    ("GET /agents/%ff", "", 400, "Invalid path"),
    ("GET /nope", "", 404, "Not found"),
    ("GET /", "", 404, "Not found"),
    ("PUT /agents", "{}", 405, "Method not allowed"),
    ("DELETE /resources/src/a.ts", "", 405, "Method not allowed"),
];

#[test]
fn bad_input_gets_one_sentence_and_changes_nothing() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let before = (http.get("/state").json(), http.count());
    for (line, body, status, says) in BAD {
        let answer = http.send(line, &[("Content-Type", "application/json")], body.as_bytes());
        assert_eq!((answer.status, answer.json()), (*status, json!({ "error": says })), "{line} {body}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"), "{line}");
    }
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(
        http.send("POST /events", &[("Content-Type", "application/json")], deep.as_bytes()).status,
        400
    );
    let long = "x".repeat(70_000);
    let large = [
        http.post("/tasks", &json!({ "title": "t", "assigned_by": "a", "description": long })),
        http.post("/handoffs", &json!({ "from_agent": "a", "task_id": "t", "summary": long })),
        http.post("/events", &json!({ "agent_id": "a", "action": "x", "metadata": "y".repeat(300_000) })),
        http.post("/tasks", &json!({ "title": "z".repeat(1 << 20), "assigned_by": "a" })),
    ];
    assert_eq!(large.map(|it| it.status), [413; 4]);
    let gzip = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    assert_eq!(http.send("POST /events", &gzip, b"{}").status, 415);
    assert_eq!((http.get("/state").json(), http.count()), before);
}

#[test]
fn nobody_speaks_under_a_reserved_name() {
    let (world, _daemon, http) = started();
    assert!(world.command(&["key", "add", "boss"]).output().unwrap().status.success());
    for name in ["boss", "provost", "human", "user:ann", "system", "watcher"] {
        let tries = [
            http.post("/agents/announce", &json!({ "id": name, "tool": "x" })),
            http.claim("src/a.ts", name),
            http.post("/events", &json!({ "agent_id": name, "action": "x" })),
            http.post("/tasks", &json!({ "title": "t", "assigned_by": name })),
            http.post("/handoffs", &json!({ "from_agent": name, "task_id": "t", "summary": "s" })),
            http.delete(&format!("/agents/{name}")),
        ];
        for answer in tries {
            let says = answer.json()["error"].as_str().unwrap_or_default().to_owned();
            assert!(answer.status == 403 && says.contains("is reserved"), "{name}: {answer:?}");
        }
    }
    assert_eq!(http.count(), 1);
}

#[test]
fn only_a_person_names_the_lead() {
    let (world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    assert_eq!(http.post("/lead", &json!({ "agent_id": "nobody" })).status, 404);
    let answer = http.post("/lead", &json!({ "agent_id": "b" }));
    let says = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(answer.status == 403 && says.contains("provost lead b"), "{answer:?}");
    let by_program = world.command(&["lead", "b"]).output().unwrap();
    assert!(!by_program.status.success(), "there is no terminal: {by_program:?}");
    assert!(String::from_utf8_lossy(&by_program.stderr).contains("only a person"), "{by_program:?}");
    assert_eq!(http.get("/status").json()["agents"]["lead"], "a");
}

fn modified(http: Http, file: &str) -> Value {
    http.get(&format!("/events?action=resource.modified&resource={file}")).json()
}

#[test]
fn changes_of_files_are_seen_whoever_makes_them() {
    let (world, _daemon, http) = started();
    http.announce("a");
    world.write(".gitignore", "*.tmp\n");
    eventually("the first look", || {
        world
            .command(&["graph", "status", "--json"])
            .output()
            .unwrap()
            .stdout
            .windows(10)
            .any(|it| it == b"\"complete\"")
    });
    http.claim("src/a.ts", "a");
    let before = http.get("/resources/src/a.ts").json()["content_hash"].clone();
    for (file, text) in [
        ("src/a.ts", "changed\n"),
        ("src/deep/new.md", "new\n"),
        ("other.md", "untold"),
        ("src/x.tmp", "ignored"),
    ] {
        world.write(file, text);
    }
    eventually("word of a claimed file", || modified(http, "src/a.ts") != json!([]));
    let event = modified(http, "src/a.ts")[0].clone();
    assert_eq!(
        (&event["agent_id"], &event["metadata"], &event["before_hash"]),
        (&json!("a"), &json!({}), &before)
    );
    assert_eq!(event["after_hash"], http.get("/resources/src/a.ts").json()["content_hash"]);
    eventually("word of a new file", || modified(http, "src/deep/new.md") != json!([]));
    let event = modified(http, "src/deep/new.md")[0].clone();
    assert_eq!(
        (&event["agent_id"], &event["metadata"]),
        (&json!("watcher"), &json!({ "type": "file_created" }))
    );
    http.post("/resources/release", &json!({ "path": "src/a.ts", "agent_id": "a" }));
    world.write("src/a.ts", "changed again\n");
    eventually("word of a file that is free", || modified(http, "src/a.ts").as_array().unwrap().len() == 2);
    let event = modified(http, "src/a.ts")[0].clone();
    let metadata = json!({ "warning": "unclaimed_modification" });
    assert_eq!((&event["agent_id"], &event["metadata"]), (&json!("unknown"), &metadata));
    std::fs::remove_file(world.repo().join("src/deep/new.md")).unwrap();
    eventually("word of a file that is gone", || {
        modified(http, "src/deep/new.md").as_array().unwrap().len() == 2
    });
    let event = modified(http, "src/deep/new.md")[0].clone();
    assert_eq!(
        (&event["metadata"], &event["after_hash"]),
        (&json!({ "type": "file_deleted" }), &Value::Null)
    );
    // All of this was told after these were written.
    for file in ["other.md", "src/x.tmp"] {
        assert_eq!(modified(http, file), json!([]), "{file}");
    }
}

#[test]
fn the_published_dashboard_is_spoken_for() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let id = http.post("/tasks", &json!({ "title": "t", "assigned_by": "a" })).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let by_page = |line: &str, referer: &str| {
        let headers = [("Content-Type", "application/json"), ("Referer", referer)];
        http.send(line, &headers, br#"{"status":"done"}"#).status
    };
    let line = format!("PATCH /tasks/{id}");
    assert_eq!(by_page(&line, "http://127.0.0.1:PORT/other"), 400);
    assert_eq!(by_page(&line, "http://evil.example/dashboard/"), 400);
    assert_eq!(by_page(&line, "http://127.0.0.1:PORT/dashboard/"), 200);
    let event = http.get("/events?limit=1").json()[0].clone();
    assert_eq!((&event["agent_id"], &event["action"]), (&json!("dashboard"), &json!("task.completed")));
}

#[test]
fn pages_cannot_be_written_into() {
    let (_world, _daemon, http) = started();
    let evil = "\"><img src=x onerror=alert(1)>";
    http.post("/agents/announce", &json!({ "id": evil, "tool": evil }));
    http.claim(evil, evil);
    let page = http.get("/dashboard/");
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(page.status == 200 && !text.contains("onerror"), "{text}");
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let bare = http.get("/dashboard");
    assert_eq!((bare.status, bare.header("location")), (301, Some("/dashboard/")));
    let json = http.get("/agents");
    assert_eq!(json.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(json.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn answers_have_the_habits_of_the_published_server() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let first = http.get("/agents");
    let tag = first.header("etag").unwrap().to_owned();
    assert!(tag.starts_with("W/\""));
    let again = http.send("GET /AGENTS/", &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    http.announce("b");
    assert_eq!(http.send("GET /agents", &[("If-None-Match", &tag)], b"").status, 200);
    let head = http.raw(format!("HEAD /status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", http.port).as_bytes());
    assert!(head.status == 200 && head.header("content-length") != Some("0"), "{head:?}");
    let options = http.send("OPTIONS /agents/announce", &[], b"");
    assert_eq!((options.status, options.body.as_slice()), (200, b"POST,DELETE,GET,HEAD".as_slice()));
    assert_eq!(options.header("allow"), Some("POST,DELETE,GET,HEAD"));
    let put = http.send("PUT /tasks", &[], b"");
    assert_eq!((put.status, put.header("allow")), (405, Some("POST,GET,HEAD")));
    for answer in [first, again, head, options, put] {
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{answer:?}");
    }
    assert_eq!(http.get("/healthz").json(), json!({ "ok": true }));
    let metrics = String::from_utf8(http.get("/metrics").body).unwrap();
    assert!(metrics.contains("\nagent_protocol_agents 2\n"), "{metrics}");
    assert!(metrics.contains(&format!("\nagent_protocol_events_total {}\n", http.count())), "{metrics}");
}

#[test]
fn a_stop_ends_streams_and_takes_no_time() {
    let (_world, daemon, http) = started();
    let mut stream = http.stream("");
    http.announce("a");
    stream.event();
    daemon.stop();
    assert_eq!(stream.frame(), None);
}

#[test]
fn what_other_doors_do_is_on_the_timeline_and_in_the_way() {
    let (world, _daemon, http) = started();
    http.announce("a");
    let mut stream = http.stream("?heartbeats=0");
    world.done("sess", &["lock", "src/a.ts:a"]);
    let event = stream.event();
    assert_eq!((&event["agent_id"], &event["action"]), (&json!("sess"), &json!("resource.claimed")));
    assert_eq!((&event["resource"], &event["metadata"]["door"]), (&json!("src/a.ts"), &json!("wit")));
    let claimed = http.claim("src/a.ts", "a");
    let warning = claimed.json()["warnings"][0].as_str().unwrap_or_default().to_owned();
    assert!(claimed.status == 200 && warning.contains("is locked by sess"), "{claimed:?}");
    assert_eq!(stream.event()["action"], "resource.conflict_detected");
}

#[test]
fn a_member_that_falls_silent_is_told_once() {
    let world = World::new();
    world.configure("[agent_protocol]\ndead_after = \"1s\"\n");
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    http.announce("a");
    http.claim("x", "a");
    let silent = "/events?action=agent.status_changed";
    eventually("a word about the silence", || http.get(silent).json() != json!([]));
    let events = http.get("/events?limit=2").json();
    assert_eq!(events[0]["metadata"], json!({ "reason": "heartbeat_timeout" }));
    let metadata = json!({ "agent": "a", "from": "idle", "to": "offline", "reason": "heartbeat_timeout" });
    assert_eq!((&events[1]["agent_id"], &events[1]["metadata"]), (&json!("system"), &metadata));
    let status = http.get("/status").json();
    assert_eq!((&status["agents"]["lead"], &status["resources"]["claimed"]), (&Value::Null, &json!(0)));
    // Two more times as long, by the clock of somebody else's silence.
    for name in ["b", "c"] {
        http.announce(name);
        eventually("its silence", || http.get(&format!("/agents/{name}")).json()["status"] == "offline");
    }
    let told = http.get(silent).json();
    let of_a = told.as_array().unwrap().iter().filter(|it| it["metadata"]["agent"] == "a").count();
    assert_eq!(of_a, 1);
    http.post("/agents/a/heartbeat", &json!({}));
    assert_eq!(http.get("/agents/a").json()["status"], "idle");
}

#[test]
fn a_conflict_is_found_and_settled_through_the_door() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    http.claim("src/a.ts", "a");
    http.post(
        "/events",
        &json!({ "agent_id": "b", "action": "resource.modified", "resource": "./src/a.ts" }),
    );
    let noted = |file: &str| http.get(&format!("/events?agent_id=b&resource={file}")).json()[0].clone();
    assert_eq!(
        (&noted("src/a.ts"), &noted("src/a.ts")["resource"]),
        (&noted("src//a.ts"), &json!("./src/a.ts"))
    );
    let found = http.get("/events?limit=1&action=resource.conflict_detected").json()[0].clone();
    let metadata = json!({ "agents_involved": ["a", "b"], "previous_owner": "a", "intruder": "b" });
    assert_eq!((&found["agent_id"], &found["metadata"]), (&json!("system"), &metadata));
    assert_eq!(http.get("/resources?filter=conflicted").json().as_array().unwrap().len(), 1);
    let refused = http.claim("src/a.ts", "a");
    let says = "Resource is in conflict state — resolve conflict first";
    assert_eq!((refused.status, refused.json()), (409, json!({ "granted": false, "reason": says })));
    let resolve = json!({ "agent_id": "cli", "action": "resource.conflict_resolved", "resource": "src/a.ts",
                          "metadata": { "resolution": "pick", "picked_agent": "b" } });
    assert_eq!(http.post("/events", &resolve).status, 201);
    let resource = http.get("/resources/src/a.ts").json();
    assert_eq!((&resource["state"], &resource["owner"]), (&json!("claimed"), &json!("b")));
}

#[test]
fn others_are_shown_only_where_it_is_wanted() {
    let world = World::new();
    let shown = |world: &World| {
        let daemon = world.start();
        let http = Http::agent_protocol(world);
        http.announce("a");
        let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "helper"));
        worker.say("REGISTER", json!({})).ack();
        let (id, reply) = client.delegate("helper", "tidy up\nslowly", json!({}));
        reply.ack();
        let task = |id: &str| http.get(&format!("/tasks/{id}"));
        (daemon, http, worker, task(&id), id)
    };
    let (daemon, http, _, hidden, _) = shown(&world);
    assert_eq!(hidden.status, 404, "{hidden:?}");
    let status = http.get("/status").json();
    assert_eq!((&status["agents"]["total"], &status["tasks"]["total"]), (&json!(1), &json!(0)));
    assert_eq!((http.get("/tasks").json(), &http.get("/state").json()["tasks"]), (json!([]), &json!([])));
    assert_eq!(http.get("/agents/helper").status, 404);
    daemon.stop();

    world.configure("[agent_protocol]\nshow_foreign = true\n");
    let (_daemon, http, worker, queued, id) = shown(&world);
    let task = || http.get(&format!("/tasks/{id}")).json();
    let words =
        ["title", "description", "assigned_to", "assigned_by", "status"].map(|it| queued.json()[it].clone());
    assert_eq!(json!(words), json!(["tidy up", "tidy up\nslowly", "helper", "orch:a", "queued"]));
    let state = http.get("/state").json();
    assert_eq!(state["lead"], "a");
    for (list, word) in [("agents", "helper"), ("tasks", &*id)] {
        let one = |value: &Value| value.as_array().unwrap().iter().filter(|it| it["id"] == word).count();
        assert_eq!((one(&http.get(&format!("/{list}")).json()), one(&state[list])), (1, 1), "{list}");
        let total = http.get("/status").json()[list]["total"].clone();
        assert_eq!(total, state[list].as_array().unwrap().len());
    }
    // What the first daemon was given is still there, and comes first.
    worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    assert_eq!(task()["status"], "assigned");
    worker.say("NOTIFY", json!({ "task_id": id, "status": "in_progress" })).ack();
    assert_eq!(task()["status"], "in_progress");
    let helper = http.get("/agents/helper").json();
    assert_eq!(
        json!([helper["tool"], helper["status"], helper["current_task"]]),
        json!(["devit", "working", id])
    );
    worker
        .say("NOTIFY", json!({ "task_id": id, "status": "failed", "artifacts": { "summary": "no" } }))
        .ack();
    assert_eq!((&task()["status"], &task()["completed_at"]), (&json!("blocked"), &Value::Null));
    assert!(!http.get("/tasks").json().as_array().unwrap().iter().any(|it| it["id"] == *id));
    let moved = json!({ "status": "done", "agent_id": "a" }).to_string();
    let head = [("Content-Type", "application/json")];
    assert_eq!(http.send(&format!("PATCH /tasks/{id}"), &head, moved.as_bytes()).status, 404);
}

/// A database as the published server keeps it.
fn published(path: &std::path::Path) -> rusqlite::Connection {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE events (id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL, agent_id TEXT NOT NULL, action TEXT NOT NULL,
         resource TEXT, task_id TEXT, before_hash TEXT, after_hash TEXT, metadata TEXT);
         INSERT INTO events VALUES ('evt_old1', 1700000000001, 'a', 'agent.joined', NULL, NULL, NULL, NULL, '{\"tool\":\"x\"}');
         INSERT INTO events VALUES ('evt_old2', 1700000000002, 'a', 'resource.claimed', 'src/a.ts', 't', NULL, 'ff', '{}');
         INSERT INTO events VALUES ('evt_bad', 1700000000003, 'a', 'x', NULL, NULL, NULL, NULL, 'no JSON');
         INSERT INTO events VALUES ('evt_old3', 1700000000004, 'b', 'my.own', NULL, NULL, NULL, NULL, NULL);",
    )
    .unwrap();
    db
}

#[test]
fn what_the_published_server_has_kept_is_imported_once() {
    let (world, _daemon, http) = started();
    let path = world.repo().join(".agent-protocol/protocol.db");
    drop(published(&path));
    let before = std::fs::read(&path).unwrap();
    let import = |args: &[&str]| {
        let mut all = vec!["agent-protocol", "import", "--json"];
        all.extend_from_slice(args);
        let output = world.command(&all).output().unwrap();
        (output.status.success(), serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default())
    };
    let count = http.count();
    assert_eq!(import(&[]), (true, json!({ "taken": 3, "known": 0, "unfit": 1 })));
    assert_eq!(import(&[]), (true, json!({ "taken": 0, "known": 3, "unfit": 1 })));
    assert_eq!(http.count(), count + 3);
    assert_eq!(std::fs::read(&path).unwrap(), before, "it is read and no more");
    let events = http.get("/events?limit=-1").json();
    let events: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["timestamp"].as_i64() < Some(1_700_000_000_010))
        .collect();
    let ids: Vec<_> = events.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["evt_old3", "evt_old2", "evt_old1"], "as they were, where they were");
    let second = json!({ "id": "evt_old2", "timestamp": 1_700_000_000_002_i64, "agent_id": "a", "action": "resource.claimed",
                         "resource": "src/a.ts", "task_id": "t", "before_hash": null, "after_hash": "ff", "metadata": {} });
    assert_eq!(*events[1], second);
    assert_eq!(http.get("/agents").json(), json!([]), "it is told, and changes nothing else");
}

#[test]
fn what_is_no_database_of_the_published_server_is_refused() {
    let (world, _daemon, http) = started();
    let at = |name: &str| world.repo().join(name);
    std::fs::write(at("text.db"), "no database at all").unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.db")).status().unwrap().success());
    let db = published(&at("other.db"));
    db.execute_batch("ALTER TABLE events RENAME TO elsewhere; CREATE VIEW events AS SELECT * FROM elsewhere")
        .unwrap();
    drop(db);
    symlink(at("other.db"), at("link.db")).unwrap();
    let count = http.count();
    for name in ["none.db", "text.db", "pipe.db", "other.db", "link.db", "src"] {
        let path = at(name);
        let output = world.command(&["agent-protocol", "import", path.to_str().unwrap()]).output().unwrap();
        assert!(!output.status.success(), "{name}: {output:?}");
    }
    assert_eq!(http.count(), count);
}

#[test]
fn the_published_servers_settings_count_once_they_are_allowed() {
    let world = World::new();
    let settings = json!({ "version": "0.1", "project": "x", "port": 4700, "lead_agent": "boss", "detection_window_ms": 5000,
                           "dead_agent_timeout_ms": 45000, "tracked_paths": ["docs/**"], "storage": { "type": "sqlite" } });
    world.write(".agent-protocol/config.json", &settings.to_string());
    let lead = |world: &World| {
        let _daemon = world.start();
        let http = Http::agent_protocol(world);
        http.announce("first");
        http.announce("boss");
        let lead = http.get("/status").json()["agents"]["lead"].clone();
        http.delete("/agents/boss");
        http.delete("/agents/first");
        lead
    };
    assert_eq!(lead(&world), "first", "nobody has allowed it");
    let allowed = world.command(&["allow", ".agent-protocol/config.json", "--yes"]).output().unwrap();
    assert!(allowed.status.success(), "{allowed:?}");
    assert_eq!(lead(&world), "boss");
    world.write(".agent-protocol/config.json", &settings.to_string().replace("boss", "evil"));
    assert_eq!(lead(&world), "first", "changed since");
}
