//! Hosts over HTTP: both eras at one address, each request as its own sender, and the page for people.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::rules::{ALLOW, ASK};
use crate::support::waits::stays;
use crate::support::{World, eventually};

/// An answer: the status, the session, and the messages.
struct Reply {
    status: u16,
    session: Option<String>,
    messages: Vec<Value>,
    text: String,
}

/// A host over HTTP.
struct Host {
    http: Http,
    target: String,
    headers: Vec<(String, String)>,
    meta: Option<Value>,
    next: u64,
}

impl Host {
    fn new(world: &World, target: &str) -> Self {
        let (http, headers) = (Http::mcp(world), Vec::new());
        Self { http, target: target.into(), headers, meta: None, next: 0 }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Of the newer era, as this agent.
    fn new_era(world: &World, agent: &str) -> Self {
        Self::nameless(world, &format!("/mcp?agent={agent}"))
    }

    /// The same at any address.
    fn nameless(world: &World, target: &str) -> Self {
        let mut host = Self::new(world, target).with("mcp-protocol-version", "2026-07-28");
        host.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        host
    }

    /// Of the older era, with a session.
    fn old(world: &World, agent: &str) -> Self {
        let mut host = Self::new(world, &format!("/mcp?agent={agent}"));
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } });
        let reply = host.send("POST", "initialize", hello);
        assert_eq!(reply.status, 200, "{}", reply.text);
        let tasks = &reply.messages[0]["result"]["capabilities"]["tasks"];
        assert!(tasks["requests"]["tools"]["call"].is_object(), "{}", reply.text);
        let session = reply.session.expect("a session");
        let mut host = host.with("mcp-session-id", &session).with("mcp-protocol-version", "2025-11-25");
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(host.raw("POST", &note.to_string()).status, 202);
        host.next = 1;
        host
    }

    fn open(&self, method: &str, body: &str) -> TcpStream {
        let port = self.http.port.to_string();
        let mut headers = vec![
            ("Host", "127.0.0.1:PORT"),
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
        ];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let request = self.http.bytes(&format!("{method} {}", self.target), &headers, body.as_bytes());
        let mut stream = self.http.connect();
        stream.write_all(&request).unwrap_or_else(|err| panic!("{port}: {err}"));
        stream
    }

    fn raw(&self, method: &str, body: &str) -> Reply {
        let mut bytes = Vec::new();
        self.open(method, body).read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let line = |line: &str| line.strip_prefix("mcp-session-id: ").map(str::to_owned);
        let messages = body.lines().map(|it| it.strip_prefix("data: ").unwrap_or(it));
        let messages = messages.filter_map(|it| serde_json::from_str(it).ok()).filter(Value::is_object);
        Reply {
            status,
            session: head.lines().find_map(line),
            messages: messages.collect(),
            text: text.clone(),
        }
    }

    fn send(&mut self, verb: &str, method: &str, mut params: Value) -> Reply {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        let modern = self.meta.is_some();
        let before = self.headers.len();
        if modern {
            self.headers.push(("mcp-method".into(), method.into()));
            if let Some(name) = params["name"].as_str().or(params["taskId"].as_str()) {
                self.headers.push(("mcp-name".into(), name.into()));
            }
        }
        let reply = self.raw(verb, &request.to_string());
        self.headers.truncate(before);
        reply
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let reply = self.send("POST", method, params);
        let id = self.next;
        let found = reply.messages.into_iter().find(|it| it["id"] == id);
        let answer = found.unwrap_or_else(|| panic!("{method}: {}", reply.text));
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn does(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn world(rules: &str) -> World {
    let world = World::new();
    world.rule(rules);
    world.configure("[mcp]\ntools = [\"all\", \"devit\"]\n");
    world
}

#[test]
fn both_eras_delegate_and_wait_at_one_address() {
    let world = world(ALLOW);
    let _daemon = world.start();
    for (era, mut host) in [("new", Host::new_era(&world, "ada")), ("old", Host::old(&world, "bob"))] {
        let tools = host.ask("tools/list", json!({}));
        assert!(tools["tools"].as_array().unwrap().iter().any(|it| it["name"] == "delegate"), "{tools}");
        let task = host.does("delegate", json!({ "goal": format!("echo {era}"), "worker": "shell" }));
        let mut now = host.does("task_wait", json!({ "task_id": task["task_id"] }));
        for _ in 0..100 {
            if now["is_over"] == true {
                break;
            }
            let wait = json!({ "task_id": task["task_id"], "cursor": now["cursor"], "max_wait_s": 5 });
            now = host.does("task_wait", wait);
        }
        assert_eq!(now["state"], "completed", "{now}");
        let said = host.does("task_output", json!({ "task_id": task["task_id"] }));
        assert_eq!(said["text"], format!("{era}\n"));
    }
}

#[test]
fn tasks_are_followed_in_both_forms() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut old = Host::old(&world, "bob");
    let arguments = json!({ "goal": "echo old", "worker": "shell", "task_id": "t1" });
    let call = json!({ "name": "delegate", "arguments": arguments, "task": {} });
    assert_eq!(old.ask("tools/call", call)["task"]["taskId"], "t1");
    let result = old.ask("tasks/result", json!({ "taskId": "t1" }));
    assert_eq!(result["structuredContent"]["state"], "completed", "{result}");
    assert_eq!(old.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "completed");
    assert_eq!(old.ask("tasks/list", json!({}))["tasks"][0]["taskId"], "t1");
    let mut stranger = Host::old(&world, "ada");
    let lost = stranger.send("POST", "tasks/get", json!({ "taskId": "t1" }));
    assert_eq!(lost.messages[0]["error"]["code"], -32_602, "{}", lost.text);

    let mut new = Host::new_era(&world, "ada");
    new.meta.as_mut().unwrap()["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let wait = "while ! test -e go; do sleep 0.05; done";
    let arguments = json!({ "goal": wait, "worker": "shell", "task_id": "t2" });
    let handle = new.ask("tools/call", json!({ "name": "delegate", "arguments": arguments }));
    assert_eq!((&handle["resultType"], &handle["taskId"]), (&json!("task"), &json!("t2")));
    assert_eq!(new.ask("tasks/get", json!({ "taskId": "t2" }))["status"], "working");

    let mut listen = json!({ "notifications": { "taskIds": ["t1", "t2"] } });
    listen["_meta"] = new.meta.clone().unwrap();
    let listen = json!({ "jsonrpc": "2.0", "id": 99, "method": "subscriptions/listen", "params": listen });
    new.headers.push(("mcp-method".into(), "subscriptions/listen".into()));
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(new.open("POST", &listen.to_string())));
    let mut told = || loop {
        let line = lines.next().expect("the stream goes on").unwrap();
        if let Some(message) =
            line.strip_prefix("data: ").and_then(|it| serde_json::from_str::<Value>(it).ok())
        {
            return message;
        }
    };
    let agreed = told();
    assert_eq!(agreed["method"], "notifications/subscriptions/acknowledged", "{agreed}");
    assert_eq!(agreed["params"]["notifications"]["taskIds"], json!(["t2"]));
    assert_eq!(told()["params"]["status"], "working");
    std::fs::write(world.repo().join("go"), "").unwrap();
    let last = loop {
        let message = told();
        if message["params"]["status"] != "working" {
            break message;
        }
    };
    assert_eq!(
        (&last["method"], &last["params"]["status"]),
        (&json!("notifications/tasks"), &json!("completed"))
    );
}

#[test]
fn each_request_is_the_agent_s_that_it_names_whatever_the_connection() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut ada = Host::new_era(&world, "ada");
    let mut bob = Host::nameless(&world, "/mcp").with("x-provost-agent", "bob");
    let lock = ada.does("lock_acquire", json!({ "symbol": "README.md:" }));
    assert_eq!(lock["lock"]["holder"], "ada");
    assert!(bob.fails("lock_acquire", json!({ "symbol": "README.md:" })).contains("ada"));
    assert!(bob.fails("lock_release", json!({ "symbol": "README.md:" })).contains("ada"));
    ada.does("lock_release", json!({ "symbol": "README.md:" }));
    let lock = bob.does("lock_acquire", json!({ "symbol": "README.md:" }));
    assert_eq!(lock["lock"]["holder"], "bob");
}

#[test]
fn a_host_that_names_nobody_is_one_of_its_process() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut host = Host::nameless(&world, "/mcp");
    let lock = host.does("lock_acquire", json!({ "symbol": "README.md:" }));
    assert_eq!(lock["lock"]["holder"], format!("mcp-{}", std::process::id()));
    // The same at another connection.
    host.does("lock_release", json!({ "symbol": "README.md:" }));
}

#[test]
fn names_that_are_not_one_s_own_are_refused() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let list = |mut host: Host| host.send("POST", "tools/list", json!({}));
    for (target, says) in [
        ("/mcp?agent=provost", "reserved"),
        ("/mcp?agent=human", "reserved"),
        ("/mcp?agent=user:tester", "reserved"),
    ] {
        let reply = list(Host::nameless(&world, target));
        assert_eq!(reply.status, 403, "{target}: {}", reply.text);
        assert!(reply.text.contains(says), "{target}: {}", reply.text);
    }
    for target in ["/mcp?agent=a&agent=b", "/mcp?agent=", "/mcp?agent=a%20b%0A"] {
        let reply = list(Host::nameless(&world, target));
        assert_eq!(reply.status, 400, "{target}: {}", reply.text);
    }
    let two = Host::new_era(&world, "ada").with("x-provost-agent", "bob");
    assert_eq!(list(two).status, 400);
    let elsewhere = list(Host::nameless(&world, "/mcp/elsewhere"));
    assert_eq!(elsewhere.status, 404, "{}", elsewhere.text);
}

#[test]
fn a_token_says_who_it_is_and_lets_nobody_else_in() {
    let world = World::new();
    world.configure("[mcp]\nauth = \"token\"\n");
    let _daemon = world.start();
    let reply = Host::new_era(&world, "ada").send("POST", "tools/list", json!({}));
    assert_eq!(reply.status, 401, "{}", reply.text);
    assert!(reply.text.to_lowercase().contains("www-authenticate: bearer"), "{}", reply.text);
    let minted = world.command(&["token", "mint", "ada", "--json"]).output().unwrap();
    let minted: Value =
        serde_json::from_slice(&minted.stdout).unwrap_or_else(|err| panic!("{err}: {minted:?}"));
    let bearer = format!("Bearer {}", minted["secret"].as_str().unwrap());
    let mut ada = Host::nameless(&world, "/mcp").with("authorization", &bearer);
    let lock = ada.does("lock_acquire", json!({ "symbol": "README.md:" }));
    assert_eq!(lock["lock"]["holder"], "ada");
    // A token has the scopes that it was minted with, and delegating is not among them.
    let why = ada.fails("delegate", json!({ "goal": "true", "worker": "shell" }));
    assert!(why.contains("right to delegate"), "{why}");
    let as_bob =
        Host::new_era(&world, "bob").with("authorization", &bearer).send("POST", "tools/list", json!({}));
    assert_eq!(as_bob.status, 403, "{}", as_bob.text);
}

#[test]
fn a_session_is_nobody_s_but_its_agent_s_and_ends() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut ada = Host::old(&world, "ada");
    let session = ada.headers[0].1.clone();
    let mut bob = Host::new(&world, "/mcp?agent=bob")
        .with("mcp-session-id", &session)
        .with("mcp-protocol-version", "2025-11-25");
    for method in ["POST", "GET", "DELETE"] {
        let reply = bob.send(method, "tools/list", json!({}));
        assert_eq!(reply.status, 404, "{method}: {}", reply.text);
    }
    ada.ask("tools/list", json!({}));
    let ended = ada.raw("DELETE", "");
    assert_eq!(ended.status, 200, "{}", ended.text);
    assert_eq!(ada.send("POST", "tools/list", json!({})).status, 404);
}

#[test]
fn sessions_are_bounded_and_the_one_silent_for_longest_gives_way() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut first = Host::old(&world, "first");
    let mut second = Host::old(&world, "second");
    first.ask("ping", json!({}));
    for _ in 0..511 {
        Host::old(&world, "many");
    }
    first.ask("ping", json!({}));
    assert_eq!(second.send("POST", "ping", json!({})).status, 404);
}

#[test]
fn what_waits_is_shown_to_people_and_no_page_takes_an_answer() {
    let world = world(ASK);
    let _daemon = world.start();
    let mut host = Host::new_era(&world, "ada");
    let asked = json!({ "goal": "echo '<script>alert(1)</script>'", "worker": "shell" });
    let answer = host.ask("tools/call", json!({ "name": "delegate", "arguments": asked }));
    let id = answer["structuredContent"]["approval_id"].as_u64().unwrap();
    let door = Http::mcp(&world);
    let at = format!("http://127.0.0.1:{}/approvals/{id}", door.port);
    assert_eq!(answer["structuredContent"]["page"], at);
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("approval_pending: ") && text.contains(&at), "{text}");
    assert!(text.contains(&format!("provost approve {id}")), "{text}");
    let list = door.get("/approvals");
    assert_eq!(list.status, 200);
    assert!(String::from_utf8_lossy(&list.body).contains(&format!("/approvals/{id}")));
    let page = door.get(&format!("/approvals/{id}"));
    let text = String::from_utf8_lossy(&page.body).into_owned();
    assert_eq!(page.status, 200, "{text}");
    assert!(text.contains("ada") && text.contains(&format!("provost approve {id}")), "{text}");
    assert!(text.contains("&lt;script&gt;") && !text.contains("<script>"), "{text}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'none'"), "{policy}");
    for verb in ["POST", "PUT", "DELETE"] {
        let line = format!("{verb} /approvals/{id}");
        assert_eq!(door.send(&line, &[], b"grant=true").status, 405, "{verb}");
    }
    assert_eq!(door.get("/approvals/999").status, 404);
    assert_eq!(door.get("/approvals/x").status, 404);
    assert_eq!(host.does("approvals_list", json!({}))["approvals"][0]["approval_id"], id);
}

#[test]
fn nobody_says_yes_to_their_own_request_under_any_name() {
    let world = world(ASK);
    let _daemon = world.start();
    let mut ada = Host::new_era(&world, "ada");
    let begun = ada.does("delegate", json!({ "goal": "true", "worker": "shell" }));
    let waiting = ada.does("approvals_list", json!({}))["approvals"][0].clone();
    assert_eq!(waiting["approval_id"], begun["approval_id"]);
    let yes = json!({ "approval_id": waiting["approval_id"], "grant": true, "digest": waiting["digest"] });
    for mut host in [
        Host::new_era(&world, "ada"),
        Host::new_era(&world, "bob"),
        Host::nameless(&world, "/mcp"),
        Host::nameless(&world, "/mcp").with("x-provost-agent", "carol"),
        Host::old(&world, "dora"),
    ] {
        let why = host.fails("approval_decide", yes.clone());
        assert!(!why.is_empty());
    }
    assert_eq!(ada.does("approvals_list", json!({}))["approvals"][0]["approval_id"], begun["approval_id"]);
    assert_eq!(
        ada.does("task_status", json!({ "task_id": begun["task_id"] }))["tasks"][0]["state"],
        "awaiting"
    );
}

#[test]
fn what_changed_is_told_of_the_files_that_were_to_be_watched() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut host = Host::old(&world, "ada");
    let asked =
        json!({ "goal": "echo 1 > new.txt; echo 2 > other", "worker": "shell", "watch_patterns": ["*.txt"] });
    let task = host.does("delegate", asked)["task_id"].clone();
    let mut now = host.does("task_wait", json!({ "task_id": task }));
    for _ in 0..100 {
        if now["is_over"] == true {
            break;
        }
        now = host.does("task_wait", json!({ "task_id": task, "cursor": now["cursor"], "max_wait_s": 5 }));
    }
    let found = host.does("task_status", json!({ "task_id": task }))["tasks"][0]["result"].clone();
    let files = found["files_changed"]["files"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert_eq!((files.len(), &files[0]["path"]), (1, &json!("new.txt")), "{found}");
}

#[test]
fn the_door_shuts_while_a_host_waits() {
    let world = world(ALLOW);
    let daemon = world.start();
    let mut host = Host::new_era(&world, "ada");
    let task = host.does("delegate", json!({ "goal": "sleep 600", "worker": "shell" }));
    let now = host.does("task_wait", json!({ "task_id": task["task_id"] }));
    let wait = json!({ "task_id": task["task_id"], "cursor": now["cursor"], "max_wait_s": 45 });
    std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| host.send("POST", "tools/call", json!({ "name": "task_wait", "arguments": wait })));
        daemon.stop();
        // Answered or cut off, but not left alone.
        drop(waiting.join());
    });
}

#[test]
fn an_address_that_is_another_s_leads_nowhere() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let door = Http::mcp(&world);
    for path in ["/", "/mcp/", "/MCP", "/mcp//", "/approvals.html", "//mcp"] {
        assert_eq!(door.get(path).status, 404, "{path}");
    }
}

/// How many locks, claims and announced changes of others there are, as another agent sees them.
fn held(world: &World) -> usize {
    let mut other = Host::new_era(world, "onlooker");
    let lists = ["locks_list", "claims", "intents_list"].map(|tool| other.does(tool, json!({})));
    let rows = |list: &Value| list["locks"].as_array().or(list["rows"].as_array()).unwrap().len();
    lists.iter().map(rows).sum()
}

fn takes(host: &mut Host, file: &str) {
    host.does("lock_acquire", json!({ "symbol": format!("{file}:f") }));
    host.does("claim_acquire", json!({ "path": format!("claimed-{file}") }));
    let files = [format!("meant-{file}")];
    host.does("intent_declare", json!({ "description": "x", "files": files }));
}

/// Longer than from one look for sessions that have ended to the next.
const SWEPT: Duration = Duration::from_millis(1_500);

#[test]
fn a_session_that_is_closed_gives_back_what_was_taken_in_it_within_two_seconds() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let (mut ada, mut bob) = (Host::old(&world, "ada"), Host::old(&world, "bob"));
    let mut again = Host::old(&world, "ada");
    takes(&mut ada, "a.rs");
    takes(&mut bob, "b.rs");
    again.does("claim_acquire", json!({ "path": "kept.rs" }));
    // Taken in one session and refreshed in another one of the same agent: it is that one's.
    ada.does("lock_acquire", json!({ "symbol": "c.rs:f" }));
    again.does("lock_acquire", json!({ "symbol": "c.rs:f" }));
    assert_eq!(held(&world), 8);
    assert_eq!(ada.raw("DELETE", "").status, 200);
    let began = std::time::Instant::now();
    eventually("all of it is given back", || held(&world) == 5);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    stays("what others have taken, or in another session", SWEPT, || held(&world) == 5);
    // A process that says the name of a session from elsewhere ends nothing.
    let session = bob.headers[0].1.clone();
    let mut curl = std::process::Command::new("curl");
    curl.args(["--silent", "--unix-socket"]).arg(world.own_socket());
    curl.args(["-X", "POST", "-H", "x-provost-api: 1", "-H", "x-provost-agent: bob"]);
    curl.args(["-H", &format!("x-provost-session: {session}"), "-d", "", "http://provost/end-session"]);
    let said = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    assert!(said.contains("\"given_back\":0"), "{said}");
    assert_eq!(held(&world), 5);
}

#[test]
fn what_is_refreshed_in_another_session_or_by_a_process_is_that_ones() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let mut ada = Host::old(&world, "ada");
    let mut process = crate::support::mcp_host::Host::old(&world, "ada");
    let lock = |file: &str| json!({ "symbol": format!("{file}:f") });
    for file in ["a.rs", "b.rs"] {
        ada.does("lock_acquire", lock(file));
        process.does("lock_acquire", lock(file));
    }
    // The session has it from the process, and the process from the session.
    ada.does("lock_acquire", lock("b.rs"));
    process.kill();
    eventually("what the process had last is given back", || held(&world) == 1);
    stays("what the session has refreshed", SWEPT, || held(&world) == 1);
    let mut process = crate::support::mcp_host::Host::old(&world, "ada");
    process.does("lock_acquire", lock("b.rs"));
    assert_eq!(ada.raw("DELETE", "").status, 200);
    stays("what the process has refreshed", SWEPT, || held(&world) == 1);
}

/// A host in a process of its own, which begins a session, takes a file, and stays until it is ended.
const HOST: &str = r#"
import http.client, json, sys, time
port, agent, until = sys.argv[1:4]
it = http.client.HTTPConnection("127.0.0.1", int(port))
def say(body, **more):
    heads = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **more}
    it.request("POST", "/mcp?agent=" + agent, json.dumps(body), heads)
    answer = it.getresponse()
    answer.read()
    return answer.getheader("mcp-session-id")
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
session = say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
more = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
say({"jsonrpc": "2.0", "method": "notifications/initialized"}, **more)
for tool, arguments in (("lock_acquire", {"symbol": "a.rs:f"}), ("claim_acquire", {"path": "b.rs"})):
    say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}, **more)
time.sleep(float(until))
"#;

#[test]
fn a_host_that_is_killed_gives_back_what_was_taken_in_its_session_within_two_seconds() {
    let world = world(ALLOW);
    let _daemon = world.start();
    let port = Http::mcp(&world).port.to_string();
    let mut host =
        std::process::Command::new("python3").args(["-c", HOST, &port, "ada", "60"]).spawn().unwrap();
    eventually("it has taken two things", || held(&world) == 2);
    stays("what it holds as long as it runs", SWEPT, || held(&world) == 2);
    host.kill().unwrap();
    host.wait().unwrap();
    let began = std::time::Instant::now();
    eventually("all of it is given back", || held(&world) == 0);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}
