//! The A6s door: how its socket is opened, what travels on it, and how it ends.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::a6s_client::{
    ACCEPT, BINARY, CLOSE, KEY, PING, PONG, Socket, TEXT, frame, handshake, world,
};
use crate::support::loopback_client::Http;

#[test]
fn the_upgrade_is_as_the_clients_look_for_it() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let recorded = include_str!("../../vectors/a6s/handshakes.txt").replace("\r\n", "\n");
    let mut tried = 0;
    for part in recorded.split("### ").skip(1) {
        let (client, request) = part.split_once('\n').unwrap();
        let port = request.split("Host: 127.0.0.1:").nth(1).unwrap().split('\n').next().unwrap();
        let request = request.trim_end().replace(port, &door.port.to_string()).replace('\n', "\r\n");
        let (mut socket, head) = Socket::with_head(door, format!("{request}\r\n\r\n").as_bytes());
        let lines: Vec<&str> = head.trim_end().split("\r\n").collect();
        assert_eq!(lines[0], "HTTP/1.1 101 Switching Protocols", "{client}");
        for line in ["Upgrade: websocket", "Connection: Upgrade"] {
            assert!(lines.contains(&line), "{client}: {line} alone: {head}");
        }
        assert!(head.len() < 1_000, "{client}: {head}");
        for absent in ["content-length", "transfer-encoding", "sec-websocket-protocol", "sec-websocket-ext"] {
            assert!(!head.to_lowercase().contains(absent), "{client}: {head}");
        }
        let names = lines[1..].iter().map(|it| it.split(':').next().unwrap());
        let title =
            |name: &str| name.split('-').all(|it| it.starts_with(|first: char| first.is_ascii_uppercase()));
        names.for_each(|name| assert!(title(name), "{client}: {name}"));
        // Sublime throws away what comes with the answer: nothing does.
        socket.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut byte = [0];
        assert!(socket.stream.read(&mut byte).is_err(), "{client}: something came before it was asked for");
        socket.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(socket.is_alive(), "{client}");
        tried += 1;
    }
    assert_eq!(tried, 3);
    let (_, head) = Socket::with_head(door, handshake(door.port).as_bytes());
    assert!(head.contains(&format!("\r\nSec-Websocket-Accept: {ACCEPT}\r\n")), "{head}");
}

#[test]
fn what_opens_no_socket_is_told_why() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let own = ("Host", "127.0.0.1:PORT");
    let upgrade = [own, ("Upgrade", "websocket"), ("Connection", "Upgrade")];
    let with = |more: &[(&'static str, &'static str)]| [&upgrade[..], more].concat();
    let (version, key) = (("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", KEY));
    type Headers = Vec<(&'static str, &'static str)>;
    let cases: &[(&str, Headers, u16)] = &[
        ("GET /", with(&[version, key]), 404),
        ("GET /ws/", with(&[version, key]), 404),
        ("GET /wss", with(&[version, key]), 404),
        ("POST /ws", with(&[version, key]), 405),
        ("GET /ws", vec![own], 426),
        ("GET /ws", vec![own, version, key], 426),
        ("GET /ws", vec![own, ("Upgrade", "h2c"), ("Connection", "Upgrade"), version, key], 426),
        ("GET /ws", with(&[("Sec-WebSocket-Version", "8"), key]), 426),
        ("GET /ws", with(&[key]), 426),
        ("GET /ws", with(&[version]), 400),
        ("GET /ws", with(&[version, ("Sec-WebSocket-Key", "c2hvcnQ=")]), 400),
        ("GET /ws", with(&[version, ("Sec-WebSocket-Key", "no key at all, but long")]), 400),
        ("GET /ws", with(&[version, key, key]), 400),
        ("GET /ws", [&with(&[version, key])[..], &[("Origin", "http://evil.example")]].concat(), 403),
        ("GET /ws", [&with(&[version, key])[..], &[("Origin", "null")]].concat(), 403),
        ("GET /ws?token=pvst_wrong", with(&[version, key]), 401),
        ("GET /ws?token=", with(&[version, key]), 401),
    ];
    for (line, headers, status) in cases {
        let answer = door.bare(line, headers, b"");
        assert_eq!(answer.status, *status, "{line} {headers:?}: {answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{line} {headers:?}");
        if *status == 426 {
            assert_eq!(answer.header("sec-websocket-version"), Some("13"));
            assert_eq!(answer.header("upgrade"), Some("websocket"));
        }
    }
    let foreign = handshake(door.port).replace("Host: 127.0.0.1", "Host: evil.example");
    assert_eq!(door.raw(foreign.as_bytes()).status, 403);
}

#[test]
fn ids_come_back_as_they_were_and_no_parameters_are_none_in_any_way_of_saying_so() {
    let world = world();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    for id in [r#""req_1""#, r#""""#, "7", "-1", "1.0", "1e3", "12345678901234567890123", r#""\u00e4\ud83d""#]
    {
        for params in [r#","params":{}"#, r#","params":[]"#, r#","params":null"#, "", r#","params": [ ] "#] {
            socket.text(&format!(r#"{{"method":"agents.list"{params},"id":{id}}}"#));
            let frame = socket.frame();
            let text = String::from_utf8(frame.payload).unwrap();
            assert!(text.starts_with(&format!(r#"{{"id":{id},"result":["#)), "{id} {params}: {text}");
            assert!(!text.contains("null") && !text.contains("error"), "{text}");
        }
    }
    socket.text(r#"{"id":"x","method":"agents.list","params":[1]}"#);
    assert_eq!(socket.message(), json!({ "id": "x", "error": "agents.list: params must be an object" }));
    socket.text(r#"{"id":"x","method":"agents.list","params":"{}"}"#);
    assert_eq!(socket.message()["error"], "agents.list: params must be an object");
    assert_eq!(socket.error("no.such", &json!({})), "Unknown method: no.such");
    let long = "x".repeat(1 << 20);
    let error = socket.error(&long, &json!({}));
    assert!(error.starts_with("Unknown method: xxx") && error.len() < 3_000);
}

#[test]
fn what_is_no_request_is_passed_over_and_the_next_one_is_answered() {
    let world = world();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    for text in [
        "",
        " ",
        "x",
        "{",
        "[]",
        "1",
        "\"text\"",
        "null",
        "{}",
        "{\"id\":1",
        "\u{feff}{}",
        r#"{"id":null,"method":"agents.list"}"#,
        r#"{"id":{},"method":"agents.list"}"#,
        r#"{"id":[1],"method":"agents.list"}"#,
        r#"{"id":true,"method":"agents.list"}"#,
        r#"{"method":"agents.list"}"#,
        r#"{"id":1,"id":2,"method":"agents.list"}"#,
        r#"{"id":1,"method":"agents.list"} {"id":2}"#,
        r#"{"id":"a","result":[]}x"#,
    ] {
        socket.text(text);
    }
    assert!(socket.is_alive());
    assert_eq!(socket.aside, Vec::<Value>::new(), "nothing of it is answered");
    for text in [r#"{"id":"a"}"#, r#"{"id":"a","result":[]}"#, r#"{"id":"a","method":7}"#] {
        socket.text(text);
        let answer = socket.message();
        assert_eq!(answer["id"], "a", "{text}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains("`method`"), "{text}: {answer}");
    }
}

#[test]
fn a_message_may_come_in_pieces_with_pings_between_and_as_bytes() {
    let world = world();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    let text = br#"{"id":"r","method":"agents.list"}"#;
    socket.send(0x01, &text[..5]);
    socket.send(PING, b"between");
    assert_eq!(socket.frame().payload, b"between");
    socket.send(0x00, b"");
    socket.send(0x00, &text[5..20]);
    socket.send(PONG, b"nobody asked");
    socket.send(0x80, &text[20..]);
    assert_eq!(socket.message()["id"], "r");
    socket.send(BINARY, text);
    assert_eq!(socket.message()["id"], "r");
    // A character that is cut in two by frames is whole in the message.
    let text = r#"{"id":"ä世","method":"agents.list"}"#.as_bytes();
    socket.send(0x01, &text[..8]);
    socket.send(0x80, &text[8..]);
    assert_eq!(socket.message()["id"], "ä世");
    // Byte by byte, and many at once.
    for byte in frame(TEXT, text) {
        socket.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(socket.message()["id"], "ä世");
    socket.stream.write_all(&frame(TEXT, text).repeat(30)).unwrap();
    (0..30).for_each(|_| assert_eq!(socket.message()["id"], "ä世"));
    // All three lengths of a frame, there and back.
    for len in [100, 125, 126, 127, 65_535, 65_536, 1_000_000] {
        let method = "x".repeat(len);
        socket.text(&json!({ "id": 1, "method": method }).to_string());
        assert!(socket.message()["error"].as_str().unwrap().starts_with("Unknown method: x"));
        socket.send(PING, &vec![7; len.min(125)]);
        assert_eq!(socket.frame().payload, vec![7; len.min(125)]);
    }
}

#[test]
fn a_socket_is_closed_with_a_code_alone() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    for (sent, expected) in [
        (&b""[..], 1000),
        (&[0x03, 0xe8][..], 1000),
        (&[0x03, 0xe9][..], 1001),
        (&b"\x0f\xa0going home"[..], 4000),
        (&[0x03][..], 1002),
        (&[0x03, 0xed][..], 1002),
        (&[0x00, 0x00][..], 1002),
        (&[0x03, 0xe8, 0xff][..], 1007),
    ] {
        let mut socket = Socket::open(door);
        assert!(socket.is_alive());
        socket.send(CLOSE, sent);
        assert_eq!(socket.frame().code(), expected, "{sent:?}");
        assert_eq!(socket.rest(), b"", "and nothing after it");
    }
    // As Emacs says it: without a mask.
    let mut socket = Socket::open(door);
    socket.stream.write_all(&[0x88, 0x00]).unwrap();
    assert_eq!(socket.frame().code(), 1000);
}

#[test]
fn frames_that_must_not_be_end_the_socket_with_the_reason() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let wrong: &[(&str, Vec<u8>, u16)] = &[
        ("no mask", [&[TEXT, 2][..], b"{}"].concat(), 1002),
        ("no mask on a ping", vec![PING, 0], 1002),
        ("no mask on a close with a code", vec![CLOSE, 2, 3, 0xe8], 1002),
        ("reserved bits", frame(0xc1, b"{}"), 1002),
        ("an unknown kind", frame(0x83, b"{}"), 1002),
        ("an unknown control frame", frame(0x8b, b""), 1002),
        ("a ping in pieces", frame(0x09, b""), 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("more of nothing", frame(0x80, b"{}"), 1002),
        ("a message within a message", [frame(0x01, b"{"), frame(TEXT, b"{}")].concat(), 1002),
        ("no UTF-8", frame(TEXT, b"{\"id\":\"\xff\"}"), 1007),
        ("half a character", [frame(0x01, b"\xe4\xb8"), frame(0x80, b"")].concat(), 1007),
    ];
    for (what, bytes, code) in wrong {
        let mut socket = Socket::open(door);
        socket.stream.write_all(bytes).unwrap();
        assert_eq!(socket.frame().code(), *code, "{what}");
        assert_eq!(socket.rest(), b"", "{what}");
    }
    assert!(Socket::open(door).is_alive());
}

#[test]
fn a_stop_says_goodbye_and_clients_can_come_again() {
    let world = world();
    let daemon = world.start();
    let door = Http::a6s(&world);
    let (mut asked, mut silent) = (Socket::open(door), Socket::open(door));
    assert!(asked.is_alive());
    daemon.stop();
    for socket in [&mut asked, &mut silent] {
        assert_eq!(socket.frame().code(), 1001);
        assert_eq!(socket.rest(), b"");
    }
    let _daemon = world.start();
    assert_eq!(Http::a6s(&world).port, door.port, "where it was");
    assert!(Socket::open(door).is_alive());
}

#[test]
fn the_door_is_open_and_shown_where_it_is_unless_it_is_shut() {
    let shut = World::new();
    shut.configure("[a6s]\nenabled = false\n");
    let _daemon = shut.start();
    let env = shut.command(&["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&env.stdout).unwrap();
    assert!(env["A6S_URL"].is_null());
    let world = World::new();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let env = world.command(&["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&env.stdout).unwrap();
    assert_eq!(env["A6S_URL"], format!("ws://127.0.0.1:{}/ws", door.port));
}

#[test]
fn a_link_by_the_name_of_the_clients_own_program_starts_the_daemon() {
    let world = world();
    let link = world.path("a6s");
    std::os::unix::fs::symlink(crate::support::provost(), &link).unwrap();
    let called = |args: &[&str]| {
        let like = world.command(args);
        let mut command = std::process::Command::new(&link);
        command.args(like.get_args()).current_dir(world.repo()).env_clear();
        like.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
            command.env(name, value);
        });
        command
    };
    let daemon = world.start_as(called(&["daemon"]));
    let mut socket = Socket::open(Http::a6s(&world));
    assert!(socket.is_alive());
    for form in [&["daemon", "--debug"][..], &["code", "--daemon"]] {
        let second = called(form).output().unwrap();
        assert!(!second.status.success(), "there is one already: {second:?}");
        assert!(!String::from_utf8_lossy(&second.stderr).contains("unrecognized"), "{second:?}");
    }
    assert!(called(&["status"]).status().unwrap().success(), "its other commands are our own");
    daemon.stop();
    assert_eq!(socket.frame().code(), 1001);
    let wrong = called(&["daemon", "--no-such-flag"]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--no-such-flag"), "{wrong:?}");
}
