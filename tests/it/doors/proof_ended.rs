//! Waits and streams at a door end with the proof that they were begun with, in that door's own words: the proof is
//! revoked, then an event comes, and no part of it arrives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::a6s_client::{CLOSE, OPEN, Socket, TEXT, handshake};
use crate::support::loopback_client::Http;
use crate::support::{Client, Daemon, Reply, World, apart};

/// How soon something has ended that is to end at once.
const AT_ONCE: Duration = Duration::from_secs(3);

fn started() -> (World, Daemon) {
    let world = World::new();
    world.configure(OPEN);
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let daemon = world.start();
    (world, daemon)
}

fn mint(world: &World, agent: &str) -> String {
    let minted = apart(&world.command(&["token", "mint", agent]));
    assert!(minted.status.success(), "{minted:?}");
    String::from_utf8(minted.stdout).unwrap().trim().to_owned()
}

/// Somebody else's word, from where no agent has spoken.
fn revoke(world: &World, agent: &str) {
    let ended = apart(&world.command(&["token", "revoke", "--of", agent]));
    assert!(ended.status.success(), "{ended:?}");
}

/// A request whose answer is not there yet.
fn begun(http: Http, path: &str, token: Option<&str>) -> BufReader<TcpStream> {
    let bearer = token.map(|it| format!("Bearer {it}"));
    let mut headers = vec![("Host", "127.0.0.1:PORT"), ("Connection", "close")];
    headers.extend(bearer.as_deref().map(|it| ("Authorization", it)));
    let mut stream = http.connect();
    stream.write_all(&http.bytes(&format!("GET {path}"), &headers, b"")).unwrap();
    // tidy: sleeps because nobody sees from outside whether a request waits already
    std::thread::sleep(Duration::from_millis(300));
    BufReader::new(stream)
}

/// Reads until the other end has closed, which it does soon.
fn rest(mut stream: BufReader<TcpStream>) -> String {
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(18))).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

/// Lines until one has this.
fn until(stream: &mut BufReader<TcpStream>, what: &str) {
    let mut all = String::new();
    while !all.contains(what) {
        let before = all.len();
        stream.read_line(&mut all).unwrap();
        assert!(all.len() > before, "no {what:?} in {all}");
    }
}

fn announce(http: Http, agent: &str) {
    let said = http.post("/agents/announce", &json!({ "id": agent, "tool": "x" }));
    assert_eq!(said.status, 201, "{said:?}");
}

#[test]
fn a_stream_of_events_ends_with_its_token() {
    let (world, _daemon) = started();
    let http = Http::agent_protocol(&world);
    let token = mint(&world, "ada");
    let mut stream = begun(http, "/events/stream", Some(&token));
    announce(http, "before");
    until(&mut stream, "before");
    let begun = Instant::now();
    revoke(&world, "ada");
    announce(http, "after");
    let rest = rest(stream);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(!rest.contains("after"), "{rest}");
    let last = rest.lines().find_map(|it| it.strip_prefix("data: ")).unwrap_or_else(|| panic!("{rest}"));
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(last["error"].as_str().unwrap().starts_with("Unauthorized: "), "{rest}");
    assert!(rest.contains("event: error\n"), "{rest}");
}

#[test]
fn a_silent_stream_ends_with_the_time_of_its_token() {
    let (world, _daemon) = started();
    let http = Http::agent_protocol(&world);
    let minted = apart(&world.command(&["token", "mint", "ada", "--ttl", "3s"]));
    let token = String::from_utf8(minted.stdout).unwrap().trim().to_owned();
    let begun_at = Instant::now();
    let stream = begun(http, "/events/stream", Some(&token));
    let rest = rest(stream);
    let took = begun_at.elapsed();
    assert!(rest.contains("event: error\n"), "{rest}");
    assert!(Duration::from_secs(2) < took && took < Duration::from_secs(3) + AT_ONCE, "{took:?}");
}

#[test]
fn a_long_poll_for_events_ends_with_its_token() {
    let (world, _daemon) = started();
    let http = Http::agent_protocol(&world);
    announce(http, "bob");
    let newest = http.get("/events?limit=1").json()[0]["id"].as_str().unwrap().to_owned();
    let token = mint(&world, "ada");
    let waiting = begun(http, &format!("/events?since_id={newest}&agent_id=bob&wait=15"), Some(&token));
    let begun = Instant::now();
    revoke(&world, "ada");
    http.post("/agents/bob/heartbeat", &json!({}));
    let answer = rest(waiting);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains(r#"{"error":"Unauthorized: "#) && !answer.contains("bob"), "{answer}");
}

fn publish(http: Http, to: &str, text: &str) {
    let payload = json!({ "from": "supervisor", "errors": [text] });
    let said =
        http.post("/publish", &json!({ "type": "agent.feedback", "agent_id": to, "payload": payload }));
    assert_eq!(said.status, 202, "{said:?}");
}

#[test]
fn a_long_poll_of_an_inbox_ends_with_its_token() {
    let (world, _daemon) = started();
    let http = Http::broker(&world);
    let token = mint(&world, "feat-a");
    let waiting = begun(http, "/messages/feat-a?wait=15", Some(&token));
    let begun = Instant::now();
    revoke(&world, "feat-a");
    publish(http, "feat-a", "secret words");
    let answer = rest(waiting);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains(r#"{"error":"#), "{answer}");
    assert!(!answer.contains("secret words"), "{answer}");
}

#[test]
fn a_long_poll_of_an_inbox_ends_when_its_name_becomes_somebodys() {
    let (world, _daemon) = started();
    let http = Http::broker(&world);
    let waiting = begun(http, "/messages/feat-a?wait=15", None);
    let begun = Instant::now();
    mint(&world, "feat-a");
    publish(http, "feat-a", "secret words");
    let answer = rest(waiting);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("agent_id is reserved"), "{answer}");
    assert!(!answer.contains("secret words"), "{answer}");
}

/// A connection of an editor that has sent a request, and so gets news of background tasks.
fn editor(world: &World, token: Option<&str>) -> Socket {
    let http = Http::a6s(world);
    let request = handshake(http.port);
    let shown = token.map(|it| request.replace("GET /ws ", &format!("GET /ws?token={it} ")));
    let (mut socket, head) = Socket::with_head(http, shown.unwrap_or(request).as_bytes());
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    socket.result("background.list", &json!({}));
    socket
}

/// Returns the messages that an editor gets until its connection is closed, and the code of the close.
fn told(mut socket: Socket) -> (Vec<Value>, u16) {
    let mut told = std::mem::take(&mut socket.aside);
    loop {
        let frame = socket.frame();
        match frame.first {
            TEXT => told.push(frame.json()),
            CLOSE => return (told, frame.code()),
            _ => {}
        }
    }
}

#[test]
fn what_an_editor_is_told_ends_with_its_token() {
    let (world, _daemon) = started();
    let token = mint(&world, "vim");
    let shown = editor(&world, Some(&token));
    let mut other = editor(&world, None);
    let begun = Instant::now();
    revoke(&world, "vim");
    other.result("background.launch", &json!({ "agentType": "shell", "task": "echo secret words" }));
    let (told, code) = told(shown);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(code, 1008);
    assert!(told.iter().all(|it| it["type"] != "task.update"), "{told:?}");
}

#[test]
fn what_an_editor_without_a_token_is_told_ends_when_its_name_becomes_somebodys() {
    let (world, _daemon) = started();
    let minted =
        apart(&world.command(&["token", "mint", "vim", "--scopes", "read,join,coordinate,delegate"]));
    let token = String::from_utf8(minted.stdout).unwrap();
    let mut other = editor(&world, Some(token.trim()));
    let nameless = editor(&world, None);
    let begun = Instant::now();
    mint(&world, "editor");
    other.result("background.launch", &json!({ "agentType": "shell", "task": "echo secret words" }));
    let (told, code) = told(nameless);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(code, 1008);
    assert!(told.iter().all(|it| it["type"] != "task.update"), "{told:?}");
}

#[test]
fn a_poll_that_waits_carries_nothing_once_its_key_has_ended() {
    let (world, daemon) = started();
    assert!(apart(&world.command(&["key", "add", "ada"])).status.success());
    assert!(apart(&world.command(&["daemon", "reload"])).status.success());
    let ada = Client { secret: world.key_of("ada"), ..world.client(&daemon, "ada") };
    let (_, delegated) = ada.delegate("shell", "while [ ! -e go ]; do sleep 0.02; done", json!({}));
    assert_eq!(delegated.message()["msg_type"], "ACK");
    // What there is to be told of its beginning comes first.
    while ada.poll() != Reply::Nothing {}
    let polling = std::thread::spawn(move || ada.poll());
    // tidy: sleeps because nobody sees from outside whether a poll waits already
    std::thread::sleep(Duration::from_millis(50));
    assert!(apart(&world.command(&["key", "revoke", "ada"])).status.success());
    std::fs::write(world.repo().join("go"), "").unwrap();
    match polling.join().unwrap() {
        // On a slow machine the poll was over before there was anything.
        Reply::Nothing | Reply::Closed(_) | Reply::Reset(_) => {}
        Reply::Message(message) => assert_eq!(message["msg_type"], "ERR", "{message}"),
    }
}
