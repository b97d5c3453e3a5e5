//! The A6s door against those who mean it no good, or know no better: it holds what it allowed, and answers
//! the others.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use provost::base::limits::{A6S_MESSAGE_BYTES_MAX, A6S_REQUESTS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::a6s_client::{BINARY, CLOSE, KEY, OPEN, Socket, TEXT, frame, handshake, head, world};
use crate::support::loopback_client::Http;
use crate::support::processes::resident;
use crate::support::{World, eventually};

/// Sends until the other side has had enough.
fn pour(stream: &mut TcpStream, piece: &[u8], times: usize) {
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..times {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

#[test]
fn a_length_beyond_all_bounds_is_refused_before_anything_is_held_for_it() {
    let world = world();
    let daemon = world.start();
    let door = Http::a6s(&world);
    assert!(Socket::open(door).is_alive());
    let before = resident(daemon.pid());
    for len in [A6S_MESSAGE_BYTES_MAX as u64 + 1, 1 << 40, 1 << 63, u64::MAX] {
        for first in [TEXT, BINARY, 0x01] {
            let mut socket = Socket::open(door);
            let mut bytes = head(first, 0x80, len);
            bytes.extend_from_slice(b"mask and some payload");
            socket.stream.write_all(&bytes).unwrap();
            assert_eq!(socket.frame().code(), 1009, "{len}");
            assert_eq!(socket.rest(), b"", "{len}");
        }
    }
    // What was promised and does not come takes no room either.
    let promised: Vec<Socket> = (0..50)
        .map(|_| {
            let mut socket = Socket::open(door);
            let mut bytes = head(TEXT, 0x80, A6S_MESSAGE_BYTES_MAX as u64);
            bytes.extend_from_slice(b"maskhere");
            socket.stream.write_all(&bytes).unwrap();
            socket
        })
        .collect();
    assert!(Socket::open(door).is_alive());
    let after = resident(daemon.pid());
    assert!(after < before + 50_000, "{before} kB, then {after} kB");
    drop(promised);
}

#[test]
fn fragments_without_end_come_to_an_end() {
    let world = world();
    let daemon = world.start();
    let door = Http::a6s(&world);
    let mut socket = Socket::open(door);
    socket.send(0x01, b"{");
    let piece = frame(0x00, &[b' '; 1 << 16]);
    pour(&mut socket.stream, &piece, 1_000);
    assert!(matches!(socket.try_frame().map(|it| it.code()), Ok(1009) | Err(_)));
    // As large as may be is taken in, and nothing more.
    let mut socket = Socket::open(door);
    let request = br#"{"id":1,"method":"agents.list"}"#;
    let mut text = vec![b' '; A6S_MESSAGE_BYTES_MAX - request.len()];
    text.extend_from_slice(request);
    socket.send(TEXT, &text);
    assert_eq!(socket.message()["id"], 1);
    socket.send(0x01, &text);
    socket.send(0x80, b" ");
    assert_eq!(socket.frame().code(), 1009);
    assert!(resident(daemon.pid()) < 400_000);
    assert!(Socket::open(door).is_alive());
}

#[test]
fn json_as_deep_as_a_well_is_passed_over() {
    let world = world();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let objects = r#"{"a":"#.repeat(10_000) + "1" + &"}".repeat(10_000);
    let wide = format!("{}{}", deep(10_000), " ".repeat(1 << 20));
    let only_open = "[".repeat(1 << 20);
    for nested in [&wide, &objects, &only_open, &deep(65)] {
        for text in [
            nested.clone(),
            format!(r#"{{"id":1,"method":"agents.list","params":{nested}}}"#),
            format!(r#"{{"id":1,"method":"agents.list","params":{{"x":{nested}}}}}"#),
            format!(r#"{{"id":{nested},"method":"agents.list"}}"#),
            format!(r#"{{"id":1,"method":{nested}}}"#),
        ] {
            socket.text(&text);
        }
    }
    assert!(socket.is_alive());
    assert_eq!(socket.aside, Vec::<Value>::new());
    // As deep as may be, and brackets that are words, are no reason.
    for params in
        [json!({ "x": serde_json::from_str::<Value>(&deep(60)).unwrap() }), json!({ "x": deep(10_000) })]
    {
        assert!(socket.result("agents.list", &params).is_array());
    }
    let escaped = json!({ "x": "\\\"[[[".repeat(1_000) });
    assert!(socket.result("agents.list", &escaped).is_array());
}

#[test]
fn a_thousand_that_stall_keep_nobody_from_an_answer() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let world = world();
    let daemon = world.start();
    let door = Http::a6s(&world);
    let mut first = Socket::open(door);
    assert!(first.is_alive());
    let before = resident(daemon.pid());
    let shake = handshake(door.port);
    let half = &shake.as_bytes()[..shake.len() - 3];
    let half_frame = &frame(TEXT, br#"{"id":1,"method":"agents.list"}"#)[..9];
    let mut stalled = Vec::new();
    for n in 0..1_000 {
        match n % 4 {
            0 => stalled.push(door.connect()),
            1 => {
                let mut connection = door.connect();
                connection.write_all(half).unwrap();
                stalled.push(connection);
            }
            2 => stalled.push(Socket::open(door).stream),
            _ => {
                let mut socket = Socket::open(door);
                socket.stream.write_all(half_frame).unwrap();
                stalled.push(socket.stream);
            }
        }
    }
    assert!(first.is_alive(), "who was there before");
    assert!(Socket::open(door).is_alive(), "and who comes after");
    let after = resident(daemon.pid());
    assert!(after < before + 60_000, "{before} kB, then {after} kB");
    drop(stalled);
    assert!(first.is_alive());
}

#[test]
fn who_asks_and_never_reads_is_cut_off_and_delays_nobody() {
    let world = world();
    let daemon = world.start();
    let door = Http::a6s(&world);
    let mut other = Socket::open(door);
    assert!(other.is_alive());
    let before = resident(daemon.pid());
    // Each is answered with a long sentence, and none of the answers is read.
    let ask = frame(TEXT, json!({ "id": 1, "method": "x".repeat(5_000) }).to_string().as_bytes()).repeat(20);
    let mut deaf: Vec<Socket> = (0..10).map(|_| Socket::open(door)).collect();
    for socket in &mut deaf {
        pour(&mut socket.stream, &ask, 2_000);
        let ended = socket.stream.write_all(&ask).and_then(|()| socket.stream.write_all(&ask));
        assert!(ended.is_err(), "40,000 questions without a look at an answer");
        assert!(other.is_alive());
    }
    let after = resident(daemon.pid());
    assert!(after < before + 150_000, "{before} kB, then {after} kB");
}

/// A worker whose program takes long to look at: much of nothing, which has to be read all the same.
fn with_a_slow_question(world: &World) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let program = world.path("vast");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&program).unwrap();
    file.set_len(1 << 36).unwrap();
    world.configure(&format!(
        "{OPEN}[workers.vast]\ntype = \"cli\"\nbinary = {:?}\nargs = [\"{{goal}}\"]\n",
        program.display().to_string()
    ));
}

#[test]
fn as_many_requests_as_may_be_and_a_stop_answers_those_that_are_left() {
    let world = World::new();
    with_a_slow_question(&world);
    let daemon = world.start();
    let door = Http::a6s(&world);
    let (mut busy, mut other) = (Socket::open(door), Socket::open(door));
    let slow = json!({ "agentId": "vast" });
    let mut open: Vec<String> = (0..A6S_REQUESTS_MAX).map(|_| busy.request("fleet.status", &slow)).collect();
    let error = busy.error("agents.list", &json!({}));
    assert!(error.starts_with("Too many requests at once: 64"), "{error}");
    assert!(other.is_alive(), "others have their own");
    let last = other.request("fleet.status", &slow);
    assert!(other.is_alive(), "what was sent before was heard");
    daemon.stop();
    while !open.is_empty() {
        let answer = busy.message();
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(error.starts_with("Provost is stopping"), "{error}");
        let at = open.iter().position(|id| answer["id"] == **id).expect("each once");
        open.remove(at);
    }
    assert_eq!(busy.frame().code(), 1001);
    assert_eq!(other.answer(&last)["error"].as_str().map(|it| &it[..7]), Some("Provost"));
    assert_eq!(other.frame().code(), 1001);
    assert_eq!(other.rest(), b"");
}

fn mint(world: &World, agent: &str) -> String {
    let output = crate::support::apart(&world.command(&["token", "mint", agent]));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn with_token(door: Http, query: &str, header: &str) -> Vec<u8> {
    let shake = handshake(door.port).replace("GET /ws", &format!("GET /ws{query}"));
    shake.replace("Upgrade: websocket", &format!("{header}Upgrade: websocket")).into_bytes()
}

#[test]
fn a_token_is_shown_in_a_header_or_in_the_address_and_is_good_as_long_as_it_is() {
    let world = World::new();
    world.configure("[a6s]\nenabled = true\nauth = \"token\"\n[log]\nlevel = \"debug\"\n");
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let token = mint(&world, "ada");
    let header = format!("Authorization: Bearer {token}\r\n");
    for (query, header, status) in [
        ("", "", "401"),
        ("?token=", "", "401"),
        ("?token=pvst_0000", "", "401"),
        (&*format!("?token={token}&token={token}"), "", "401"),
        (&*format!("?token={token}"), &*header, "401"),
        (&*format!("?x=1&token={token}"), "", "101"),
        ("", &*header, "101"),
    ] {
        let (mut socket, head) = Socket::with_head(door, &with_token(door, query, header));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{query} {header}: {head}");
        assert!(status == "401" || socket.is_alive());
    }
    let (mut socket, _) = Socket::with_head(door, &with_token(door, &format!("?token={token}"), ""));
    assert!(socket.is_alive());
    ended_while(&mut socket, "not good any more", || crate::support::tokens::revoke_of(&world, "ada"));
    // It is written by a thread of its own.
    eventually("the log", || logs(&world).contains("not good any more"));
    for place in [world.log(), logs(&world)] {
        assert!(!place.contains(&token), "a token is in a log");
    }
}

/// Everything that the daemon has written down.
fn logs(world: &World) -> String {
    let folder = world.state_dir().join("log");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    files.map(|it| std::fs::read_to_string(it.path()).unwrap()).collect()
}

/// Asks all the time while something is done that ends the connection: the door closes it, and what was asked at that moment
/// is told why.
fn ended_while(socket: &mut Socket, says: &str, act: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let acting = scope.spawn(act);
        for _ in 0..1_000_000 {
            socket.request("agents.list", &json!({}));
            let frame = socket.frame();
            // Between two questions nothing is open that could be answered.
            if frame.first == CLOSE {
                assert_eq!(frame.code(), 1008);
                return acting.join().unwrap();
            }
            if let Some(error) = frame.json()["error"].as_str() {
                assert!(error.contains(says), "{error}");
                assert_eq!(socket.frame().code(), 1008);
                return acting.join().unwrap();
            }
        }
        panic!("what was done has ended nothing");
    })
}

#[test]
fn the_name_of_those_without_a_name_can_be_taken_and_is_nobody_elses_then() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let mut before = Socket::open(door);
    assert!(before.is_alive());
    ended_while(&mut before, "editor is reserved", || {
        assert!(world.command(&["key", "add", "editor"]).status().unwrap().success());
        assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    });
    let refused = || {
        let (_, head) = Socket::with_head(door, handshake(door.port).as_bytes());
        head.starts_with("HTTP/1.1 403 ")
    };
    eventually("the key to count", refused);
}

#[test]
fn who_has_a_token_for_the_name_of_those_without_a_name_has_it_alone() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let mut before = Socket::open(door);
    assert!(before.is_alive());
    let mut token = String::new();
    ended_while(&mut before, "editor is reserved", || token = mint(&world, "editor"));
    let refused = door.raw(handshake(door.port).as_bytes());
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    let text = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(text.contains("editor has a token") && text.contains("/ws?token="), "{text}");
    let (mut socket, head) = Socket::with_head(door, &with_token(door, &format!("?token={token}"), ""));
    assert!(head.starts_with("HTTP/1.1 101 ") && socket.is_alive(), "{head}");
    // Another token is good for its own name, and one that has ended for none, at the handshake already.
    let other = mint(&world, "ada");
    let (mut socket, _) = Socket::with_head(door, &with_token(door, &format!("?token={other}"), ""));
    assert!(socket.is_alive());
    crate::support::tokens::revoke_of(&world, "editor");
    for (query, status) in [(&*format!("?token={token}"), "401"), ("?token=pvst_unknown", "401"), ("", "101")]
    {
        let (_, head) = Socket::with_head(door, &with_token(door, query, ""));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{query}: {head}");
    }
}

#[test]
fn a_page_in_a_browser_opens_no_socket() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let from = |origin: &str| {
        let headers = [
            ("Host", "127.0.0.1:PORT"),
            ("Upgrade", "websocket"),
            ("Connection", "keep-alive, Upgrade"),
            ("Sec-WebSocket-Key", KEY),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
            ("Sec-WebSocket-Protocol", "chat"),
            ("Origin", origin),
        ];
        Socket::with_head(door, &door.bytes("GET /ws", &headers, b"")).1
    };
    for origin in ["http://evil.example", "null", "file://", "http://127.0.0.1", "https://127.0.0.1:PORT"] {
        assert!(from(origin).starts_with("HTTP/1.1 403 "), "{origin}");
    }
    // Our own pages may; what they offer besides is not taken up.
    let head = from("http://127.0.0.1:PORT");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(!head.to_lowercase().contains("sec-websocket-extensions") && !head.contains("chat"), "{head}");
}
