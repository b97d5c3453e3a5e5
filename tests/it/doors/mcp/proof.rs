//! Everything that a host has begun under a name ends with its proof of that name: subscriptions, sessions, and
//! questions that wait.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::mcp_host::{EVERY, Host};
use crate::support::{World, apart, eventually};

/// How soon something has ended that is to end at once.
const AT_ONCE: Duration = Duration::from_secs(3);

fn mint(world: &World) -> String {
    let minted = world.command(&["token", "mint", "ada"]).output().unwrap();
    assert!(minted.status.success(), "{minted:?}");
    String::from_utf8(minted.stdout).unwrap().trim().to_owned()
}

/// Somebody else's word, from where no agent has spoken.
fn revoke(world: &World) {
    let ended = apart(&world.command(&["token", "revoke", "--of", "ada"]));
    assert!(ended.status.success(), "{ended:?}");
}

/// An event that every subscriber gets.
fn change(world: &World) {
    assert!(apart(&world.command(&["lock", "--as", "bob", "README.md", "--ttl", "60s"])).status.success());
}

fn server(world: &World, token: &str) -> Command {
    let mut command = world.command(&["mcp", "--as", "ada", "--tools", EVERY]);
    command.env("PROVOST_TOKEN", token);
    command
}

const HEARD: &str = "notifications/resources/updated";

#[test]
fn a_subscription_over_standard_input_ends_with_the_token_that_it_was_made_with() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    let token = mint(&world);
    let locks = ["provost://locks"];
    // The newer era has a word for the end.
    let mut new = Host::of(server(&world, &token)).declaring(json!({}));
    let id =
        new.begin("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": locks } }));
    assert_eq!(new.read()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(new.read()["method"], HEARD);
    let mut old = Host::of(server(&world, &token)).greeting(json!({}));
    old.ask("resources/subscribe", json!({ "uri": locks[0] }));
    let begun = Instant::now();
    revoke(&world);
    change(&world);
    let ended = new.answer_to(id);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let why = ended["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("ended") && why.contains("token"), "{ended}");
    assert!(new.told.iter().all(|it| it["method"] != HEARD), "{:?}", new.told);
    // The older one has none; nothing is told, and what is asked next is refused with the reason.
    // tidy: sleeps because what a host is not told can be shown by time alone
    std::thread::sleep(Duration::from_millis(500));
    let read = old.answer("resources/read", json!({ "uri": locks[0] }));
    assert!(read["error"]["message"].as_str().unwrap_or_default().contains("token"), "{read}");
    assert!(old.told.iter().all(|it| it["method"] != HEARD), "{:?}", old.told);
}

/// One request over HTTP, whose connection is still open.
fn open(world: &World, verb: &str, headers: &[(&str, &str)], body: &Value) -> BufReader<TcpStream> {
    let http = Http::mcp(world);
    let mut all = vec![
        ("Host", "127.0.0.1:PORT"),
        ("Accept", "application/json, text/event-stream"),
        ("Connection", "close"),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    all.extend((!body.is_empty()).then_some(("Content-Type", "application/json")));
    all.extend(headers);
    let request = http.bytes(&format!("{verb} /mcp"), &all, body.as_bytes());
    let mut stream = http.connect();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(&request).unwrap();
    BufReader::new(stream)
}

/// Lines until one has this.
fn until(stream: &mut BufReader<TcpStream>, what: &str) -> String {
    let mut all = String::new();
    while !all.contains(what) {
        let before = all.len();
        stream.read_line(&mut all).unwrap();
        assert!(all.len() > before, "no {what:?} in {all}");
    }
    all
}

/// Reads until the other end has closed.
fn rest(mut stream: BufReader<TcpStream>) -> String {
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

#[test]
fn a_subscription_over_http_ends_with_the_token_that_it_was_made_with() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    let bearer = format!("Bearer {}", mint(&world));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let newer = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
        ("authorization", &*bearer),
    ];
    let wanted = json!({ "resourceSubscriptions": ["provost://locks"] });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
        "params": { "notifications": wanted, "_meta": meta } });
    let mut new = open(&world, "POST", &newer, &body);
    until(&mut new, HEARD);
    // A session of the older era, with the stream on which it is told.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } } });
    let begun = rest(open(&world, "POST", &[("authorization", &bearer)], &hello));
    let session = begun.lines().find_map(|it| it.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let older =
        [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", &*session), ("authorization", &*bearer)];
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    rest(open(&world, "POST", &older, &note));
    let mut old = open(&world, "GET", &older, &Value::Null);
    let subscribe = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": "provost://locks" } });
    assert!(rest(open(&world, "POST", &older, &subscribe)).contains("\"result\""));
    let lock = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "lock_acquire", "arguments": { "symbol": "other.md" } } });
    assert!(rest(open(&world, "POST", &older, &lock)).contains("\"ada\""));
    until(&mut old, HEARD);
    until(&mut new, HEARD);
    let begun = Instant::now();
    revoke(&world);
    change(&world);
    let (new, old) = (rest(new), rest(old));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(!new.contains(HEARD) && !old.contains(HEARD), "{new}\n{old}");
    assert!(new.contains("\"error\"") && new.contains("token"), "{new}");
    // What was taken in the session is given back as with any other end.
    eventually("ada's lock to be given back", || {
        let locks = apart(&world.command(&["lock", "list", "--json"])).stdout;
        !String::from_utf8_lossy(&locks).contains("\"ada\"")
    });
}

#[test]
fn who_waits_is_not_answered_once_the_token_has_ended() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    let token = mint(&world);
    let mut stream = std::os::unix::net::UnixStream::connect(world.own_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(
        stream,
        "GET /events?after=1000000&wait_ms=15000 HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\n\
         connection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    // tidy: sleeps because nobody sees from outside whether a request waits already
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    revoke(&world);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("token is not good"), "{answer}");
}
