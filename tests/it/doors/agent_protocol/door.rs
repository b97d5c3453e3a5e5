//! Endpoints, names, habits: what is asked and what is answered.

use std::collections::BTreeMap;
use std::thread;

use serde_json::{Value, json};

use crate::support::agent_protocol::started;
use crate::support::loopback_client::{Answer, Http};
use crate::support::{World, eventually};

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
    assert!(answer.status == 403 && says.contains("provost crew appoint b"), "{answer:?}");
    let by_program = world.command(&["crew", "appoint", "b"]).output().unwrap();
    assert!(!by_program.status.success(), "there is no terminal: {by_program:?}");
    assert!(String::from_utf8_lossy(&by_program.stderr).contains("only a person"), "{by_program:?}");
    assert_eq!(http.get("/status").json()["agents"]["lead"], "a");
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
}

/// The value of each metric, by its name; each has said before what it is.
fn metrics(http: Http) -> BTreeMap<String, u64> {
    let answer = http.get("/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let read = |three: &[&str]| {
        let [help, kind, sample] = three else { panic!("{three:?}") };
        let (name, value) = sample.split_once(' ').unwrap();
        assert!(help.strip_prefix(&format!("# HELP {name} ")).is_some_and(|it| it.ends_with('.')), "{help}");
        let total = if name.ends_with("_total") { "counter" } else { "gauge" };
        assert_eq!(*kind, format!("# TYPE {name} {total}"));
        (name.strip_prefix("agent_protocol_").unwrap().to_owned(), value.parse().unwrap())
    };
    lines.chunks(3).map(read).collect()
}

#[test]
fn metrics_say_what_they_are_and_count_as_the_status_does() {
    let world = World::new();
    world.write("src/a.ts", "export const a = 1\n");
    for foreign in [false, true] {
        world.configure(&format!("[agent_protocol]\nshow_foreign = {foreign}\n"));
        let daemon = world.start();
        let http = Http::agent_protocol(&world);
        http.announce("a");
        http.announce("b");
        http.claim("src/a.ts", "a");
        let changed = json!({ "agent_id": "b", "action": "resource.modified", "resource": "src/a.ts" });
        assert_eq!(http.post("/events", &changed).status, 201);
        let client = world.client(&daemon, "orch:a");
        client.delegate("helper", "tidy up", json!({})).1.ack();
        let (told, status) = (metrics(http), http.get("/status").json());
        let same = [
            ("agents", &status["agents"]["total"]),
            ("agents_active", &status["agents"]["active"]),
            ("resources", &status["resources"]["total"]),
            ("resources_claimed", &status["resources"]["claimed"]),
            ("resources_conflicted", &status["resources"]["conflicted"]),
            ("tasks", &status["tasks"]["total"]),
            ("tasks_in_progress", &status["tasks"]["in_progress"]),
            ("tasks_done", &status["tasks"]["done"]),
            ("events_total", &status["event_count"]),
        ];
        assert_eq!(told.len(), same.len(), "{told:?}");
        for (name, value) in same {
            assert_eq!(json!(told[name]), *value, "{name}");
        }
        assert_eq!(told["tasks"] > 0, foreign, "{told:?}");
        assert_eq!(told["resources_conflicted"], 1);
        daemon.stop();
    }
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
    // That a message has arrived is recorded after it was sent.
    eventually("the delivery", || task()["status"] == "assigned");
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
