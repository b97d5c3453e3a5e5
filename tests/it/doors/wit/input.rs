//! Bad input at the wit door: every kind gets an answer in the protocol's form, changes nothing and hangs
//! nothing.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::wit_client::{Answer, Wit, request, world};
use crate::support::{Daemon, World, eventually};

fn started(world: &World) -> (Daemon, Wit) {
    let (daemon, wit) = (world.start(), Wit::of(world));
    eventually("an answer", || wit.answers());
    (daemon, wit)
}

fn nothing_changed(wit: &Wit) {
    for method in ["lock.query", "intent.query", "contract.query"] {
        assert_eq!(wit.ask(method, json!({})), json!([]), "{method}");
    }
}

/// Returns the names of the members that an error calls wrong.
fn wrong_fields(error: &Value) -> Vec<&str> {
    error["data"]["fieldErrors"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn what_is_wrong_with_parameters_is_told_of_each_member_at_once() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let long = "x".repeat(5_000);
    let lock = |path: &str| json!({ "symbolPath": path, "sessionId": "A" });
    let ttl = |ttl: Value| json!({ "symbolPath": "a.ts:b", "sessionId": "A", "ttlMs": ttl });
    let declare = |files: Value| json!({ "sessionId": "A", "description": "d", "files": files });
    let symbols =
        |symbols: Value| json!({ "sessionId": "A", "description": "d", "files": ["a"], "symbols": symbols });
    let check = |files: Value| json!({ "files": files });
    let cases: &[(&str, Value, &[&str])] = &[
        ("lock.acquire", lock("../../etc/passwd:x"), &["symbolPath"]),
        ("lock.acquire", lock("a/../../b.ts:x"), &["symbolPath"]),
        ("lock.acquire", lock("/etc/passwd:x"), &["symbolPath"]),
        ("lock.acquire", lock("\\\\server\\a.ts:x"), &["symbolPath"]),
        ("lock.acquire", lock("a\u{0}.ts:x"), &["symbolPath"]),
        ("lock.acquire", lock("a.ts:x\u{1b}[2J"), &["symbolPath"]),
        ("lock.acquire", lock(":x"), &["symbolPath"]),
        ("lock.acquire", lock("./:x"), &["symbolPath"]),
        ("lock.acquire", lock(&format!("{long}:x")), &["symbolPath"]),
        ("lock.acquire", lock(&format!("a.ts:{long}")), &["symbolPath"]),
        ("lock.acquire", json!({ "symbolPath": "a.ts:b", "sessionId": long }), &["sessionId"]),
        ("lock.acquire", json!({ "symbolPath": "a.ts:b", "sessionId": "a\nb" }), &["sessionId"]),
        ("lock.acquire", json!({ "symbolPath": "a.ts:b", "sessionId": "A", "reason": long }), &["reason"]),
        (
            "lock.acquire",
            json!({ "sessionId": 1, "ttlMs": "x", "waitMs": -1 }),
            &["sessionId", "symbolPath", "ttlMs", "waitMs"],
        ),
        ("lock.acquire", ttl(json!(0)), &["ttlMs"]),
        ("lock.acquire", ttl(json!(-5000)), &["ttlMs"]),
        ("lock.acquire", ttl(json!(0.9)), &["ttlMs"]),
        ("lock.acquire", ttl(json!("1000")), &["ttlMs"]),
        ("lock.acquire", ttl(json!(null)), &["ttlMs"]),
        ("lock.acquire", ttl(json!([1000])), &["ttlMs"]),
        ("lock.acquire", ttl(json!(true)), &["ttlMs"]),
        ("lock.release", json!({ "symbolPath": "a:b", "sessionId": "A", "fence": -1 }), &["fence"]),
        ("register", json!({ "name": long, "sessionId": "A" }), &["name"]),
        ("register", json!({ "name": "\u{1b}[31mred", "sessionId": "A" }), &["name"]),
        ("intent.declare", declare(json!([])), &["files"]),
        ("intent.declare", declare(json!(["a", "../b"])), &["files"]),
        ("intent.declare", declare(json!(["/etc/passwd"])), &["files"]),
        ("intent.declare", declare(json!(["a\u{0}b"])), &["files"]),
        ("intent.declare", declare(json!({ "0": "a" })), &["files"]),
        ("intent.declare", declare(json!(vec!["a.ts"; 1_001])), &["files"]),
        ("intent.declare", symbols(json!(vec!["x"; 10_001])), &["symbols"]),
        ("intent.declare", symbols(json!(["x\u{7}"])), &["symbols"]),
        ("intent.declare", symbols(json!([&long])), &["symbols"]),
        (
            "intent.declare",
            json!({ "sessionId": "A", "description": long, "files": ["a"] }),
            &["description"],
        ),
        ("intent.update", json!({ "intentId": "x", "sessionId": "A", "status": 5 }), &["status"]),
        ("contract.propose", lock("../a.ts:x"), &["symbolPath"]),
        ("contract.respond", json!({ "contractId": "x", "sessionId": "A", "accept": 1 }), &["accept"]),
        ("check-contracts", check(json!([{ "path": "../a.ts", "content": "" }])), &["files"]),
        ("check-contracts", check(json!([{ "path": "a.ts", "content": 5 }])), &["files"]),
        ("check-contracts", check(json!(["a.ts"])), &["files"]),
        ("check-contracts", json!({ "files": [], "deleted": ["../a"] }), &["deleted"]),
        ("check-contracts", json!({ "files": [], "renamed": [{ "from": "a" }] }), &["renamed"]),
        ("provost.leave", json!({ "sessionId": "A", "intents": "yes" }), &["intents"]),
        ("provost.contract.withdraw", json!({ "contractId": "", "sessionId": "A" }), &["contractId"]),
    ];
    for (method, params, fields) in cases {
        let error = wit.refused(method, params.clone());
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32600), &json!("INVALID_REQUEST")),
            "{method} {params}"
        );
        assert_eq!(wrong_fields(&error), *fields, "{method} {params}: {error}");
        assert_eq!(error["data"]["formErrors"], json!([]));
        for texts in error["data"]["fieldErrors"].as_object().unwrap().values() {
            assert!(texts.as_array().unwrap().iter().all(|it| it.as_str().is_some_and(|it| !it.is_empty())));
        }
    }
    nothing_changed(&wit);
}

#[test]
fn times_are_floored_and_never_longer_than_a_week() {
    let world = world();
    let (_daemon, wit) = started(&world);
    for (at, ttl, lasts) in [
        ("a:default", None, 1_800_000),
        ("a:fraction", Some(json!(60_000.9)), 60_000),
        ("a:huge", Some(json!(1e16)), 604_800_000),
        ("a:year", Some(json!(31_536_000_000_u64)), 604_800_000),
        ("a:exponent", Some(json!(1e3)), 1_000),
    ] {
        let mut params = json!({ "symbolPath": at, "sessionId": "A" });
        if let Some(ttl) = ttl {
            params["ttlMs"] = ttl;
        }
        let lock = wit.ask("lock.acquire", params);
        let ms = |it: &Value| {
            chrono::DateTime::parse_from_rfc3339(it.as_str().unwrap()).unwrap().timestamp_millis()
        };
        assert_eq!(ms(&lock["expiresAt"]) - ms(&lock["acquiredAt"]), lasts, "{at}");
    }
    // JavaScript reads this as infinity; no JSON library of ours can write it.
    let body = br#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"lock.acquire","params":{"symbolPath":"a:b","sessionId":"A","ttlMs":1e999}}"#;
    let answer = wit.http("POST /rpc", &[], body).json();
    assert_eq!(wrong_fields(&answer["error"]), ["ttlMs"]);
}

#[test]
fn ten_thousand_symbols_are_one_intent() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let symbols: Vec<String> = (0..10_000).map(|it| format!("symbol{it}")).collect();
    let params = json!({ "sessionId": "A", "description": "all", "files": ["src/a.ts"], "symbols": symbols });
    let id = wit.ask("intent.declare", params)["intentId"].clone();
    let row = wit.ask("intent.query", json!({ "sessionId": "A" }))[0].clone();
    assert_eq!(row["intentId"], id);
    let kept: Vec<String> = serde_json::from_str(row["symbols"].as_str().unwrap()).unwrap();
    assert_eq!(kept, symbols);
}

#[test]
fn sessions_symbols_and_ids_that_nobody_knows_are_no_errors_of_ours() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let long = "x".repeat(5_000);
    for unknown in ["nobody", "", "a\nb", &long] {
        assert_eq!(wit.ask("intent.query", json!({ "sessionId": unknown })), json!([]));
        assert_eq!(wit.ask("intent.query", json!({ "file": unknown })), json!([]));
        assert_eq!(wit.ask("intent.query", json!({ "status": unknown })), json!([]));
        assert_eq!(wit.ask("lock.query", json!({ "sessionId": unknown })), json!([]));
        assert_eq!(wit.ask("contract.query", json!({ "symbolPath": unknown })), json!([]));
        assert_eq!(wit.ask("contract.query", json!({ "status": unknown })), json!([]));
        if unknown.is_empty() {
            continue;
        }
        let update = json!({ "intentId": unknown, "sessionId": "A", "status": "active" });
        assert_eq!(wit.token("intent.update", update), "INTENT_NOT_FOUND");
        let respond = json!({ "contractId": unknown, "sessionId": "A", "accept": true });
        assert_eq!(wit.token("contract.respond", respond), "CONTRACT_NOT_FOUND");
        let withdraw = json!({ "contractId": unknown, "sessionId": "A" });
        assert_eq!(wit.token("provost.contract.withdraw", withdraw), "CONTRACT_NOT_FOUND");
        let release = json!({ "symbolPath": unknown, "sessionId": "A" });
        assert_eq!(wit.token("lock.release", release), "LOCK_NOT_FOUND");
    }
}

#[test]
fn text_that_is_no_json_is_a_parse_error_and_says_nothing_back() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","witVersion":"1","id":{id},"method":"ping"}}"#);
    let mut bad: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "nul",
        "{'a':1}",
        "[1,]",
        "{} {}",
        "\u{feff}\u{feff}{}",
        // Half of a pair is no text, wherever it stands.
        &with_id(r#""\ud800""#),
        &with_id(r#""\udc00\ud800""#),
        &with_id(r#""\ud800x""#),
        r#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"ping","params":{"deep":["\ud800"]}}"#,
        r#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"ping","\ud800":1}"#,
    ]
    .iter()
    .map(|it| it.as_bytes().to_vec())
    .collect();
    bad.push([with_id("\"x").into_bytes(), vec![0xff, b'"', b'}']].concat());
    bad.push(vec![0; 100]);
    for body in bad {
        let answer = wit.http("POST /rpc", &[], &body);
        let expected = json!({ "jsonrpc": "2.0", "witVersion": "1", "id": null, "error": { "code": -32700, "message": "PARSE_ERROR" } });
        assert_eq!((answer.status, answer.json()), (400, expected), "{}", String::from_utf8_lossy(&body));
    }
    // Escapes that are whole stay what they were, numbers too.
    for (sent, back) in [(r#""\ud83d\ude00 \\ud800 \u0041""#, json!("😀 \\ud800 A")), ("7", json!(7))] {
        assert_eq!(wit.http("POST /rpc", &[], with_id(sent).as_bytes()).json()["id"], back);
    }
}

#[test]
fn nesting_without_end_costs_nobody_anything() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let body = |method: &str| {
        format!(r#"{{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"{method}","params":{deep}}}"#)
            .into_bytes()
    };
    assert_eq!(wit.http("POST /rpc", &[], &body("ping")).json()["result"], "pong");
    assert_eq!(wit.http("POST /rpc", &[], &body("register")).json()["error"]["message"], "INVALID_REQUEST");
    let inside = format!(
        r#"{{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"register","params":{{"name":{deep},"sessionId":"A","more":{deep}}}}}"#
    );
    assert_eq!(wrong_fields(&wit.http("POST /rpc", &[], inside.as_bytes()).json()["error"]), ["name"]);
    let open = wit.http("POST /rpc", &[], "[".repeat(1_000_000).as_bytes());
    assert_eq!(open.json()["error"]["message"], "PARSE_ERROR");
    assert!(wit.answers());
}

/// The most memory that a process ever had, in KiB.
fn peak(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_body_that_is_too_large_is_refused_without_being_held() {
    let world = world();
    let (daemon, wit) = started(&world);
    let before = peak(&daemon);
    // Announced: refused before the first byte.
    let mut connection = wit.connect();
    connection.write_all(b"POST /rpc HTTP/1.1\r\nHost: l\r\nContent-Length: 209715200\r\n\r\n").unwrap();
    let answer = Answer::read(&mut connection, false).unwrap();
    assert_eq!((answer.status, answer.header("connection"), answer.body.len()), (413, Some("close"), 0));
    assert!(peak(&daemon) < before + 8_192, "{before} {}", peak(&daemon));
    // Asked for first: no "go on".
    let mut connection = wit.connect();
    connection
        .write_all(
            b"POST /rpc HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: 209715200\r\n\r\n",
        )
        .unwrap();
    assert_eq!(Answer::read(&mut connection, false).unwrap().status, 413);
    // In pieces, without a length: as much as may be, and no more.
    let mut connection = wit.connect();
    connection.write_all(b"POST /rpc HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let piece = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    let sent = (0..200).take_while(|_| connection.write_all(&piece).is_ok()).count();
    assert!(sent < 80, "{sent} MiB were taken");
    assert_eq!(Answer::read(&mut connection, false).unwrap().status, 413);
    // Twice the largest body, since a vector doubles.
    assert!(peak(&daemon) < before + (160 << 10), "{before} {}", peak(&daemon));
    assert!(wit.answers());
}

#[test]
fn a_crowd_of_large_bodies_waits_for_its_turn_and_all_are_answered() {
    let world = world();
    let (daemon, wit) = started(&world);
    let before = peak(&daemon);
    let body = [
        br#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"ping","params":""#.to_vec(),
        vec![b'x'; 40 << 20],
        b"\"}".to_vec(),
    ]
    .concat();
    let request = request("POST /rpc", &[], &body);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..12).map(|_| scope.spawn(|| wit.raw(&request).json())).collect();
        for one in all {
            assert_eq!(one.join().unwrap()["result"], "pong");
        }
    });
    assert!(peak(&daemon) < before + (200 << 10), "{before} {}", peak(&daemon));
}

#[test]
fn bodies_come_in_any_form_that_http_has() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let ping = br#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"ping"}"#;
    // In pieces of one byte.
    let mut pieces = b"POST /rpc HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    ping.iter().for_each(|byte| pieces.extend_from_slice(&[b'1', b'\r', b'\n', *byte, b'\r', b'\n']));
    pieces.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(wit.raw(&pieces).json()["result"], "pong");
    // After "go on".
    let mut connection = wit.connect();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        ping.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut connection, false).unwrap().status, 100);
    connection.write_all(ping).unwrap();
    assert_eq!(Answer::read(&mut connection, false).unwrap().json()["result"], "pong");
    // Several at once, answered in order; the connection is kept.
    let several: Vec<u8> = (0..20)
        .flat_map(|it| {
            let body =
                json!({ "jsonrpc": "2.0", "witVersion": "1", "id": format!("n{it}"), "method": "ping" });
            request("POST /rpc", &[], body.to_string().as_bytes())
        })
        .collect();
    connection.write_all(&several).unwrap();
    for it in 0..20 {
        assert_eq!(Answer::read(&mut connection, false).unwrap().json()["id"], format!("n{it}"));
    }
}

#[test]
fn what_is_no_http_or_for_nobody_here_is_refused_in_http() {
    let world = world();
    let (_daemon, wit) = started(&world);
    assert_eq!(wit.raw(b"{\"jsonrpc\":\"2.0\"}\n\r\n\r\n").status, 400);
    assert_eq!(wit.raw(b"POST /rpc HTTP/1.1\r\nContent-Length: 0\r\n\r\n").status, 400, "without a host");
    for path in ["/", "/rpc/", "/RPC", "//rpc", "/rpc/x", "/%72pc%2f", "/health", "/events", "/%zz"] {
        let answer = wit.http(&format!("POST {path}"), &[], b"{}");
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (404, Some("text/plain; charset=UTF-8")),
            "{path}"
        );
    }
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = wit.http(&format!("{method} /rpc"), &[], b"{}");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
        assert_eq!(answer.json()["error"]["message"], "INVALID_REQUEST");
    }
    let large = "x".repeat(100_000);
    let answer = wit.http("POST /rpc", &[("X-Large", &large)], b"{}");
    assert_eq!(answer.status, 431);
    assert!(wit.answers());
}

#[test]
fn members_come_in_the_order_of_the_document() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let text = |method: &str, params: &Value| {
        let body =
            json!({ "jsonrpc": "2.0", "witVersion": "1", "id": "i", "method": method, "params": params });
        String::from_utf8(wit.http("POST /rpc", &[], body.to_string().as_bytes()).body).unwrap()
    };
    let in_order = |text: &str, members: &[&str]| {
        let at: Vec<_> = members
            .iter()
            .map(|it| text.find(&format!("\"{it}\":")).unwrap_or_else(|| panic!("{it}: {text}")))
            .collect();
        assert!(at.is_sorted(), "{members:?}: {text}");
    };
    let envelope = ["jsonrpc", "witVersion", "id"];
    let lock = json!({ "symbolPath": "a.ts:b", "sessionId": "A" });
    let members = ["symbolPath", "sessionId", "acquiredAt", "expiresAt", "warnings"];
    in_order(&text("lock.acquire", &lock), &[&envelope[..], &["result"], &members].concat());
    let conflict = text("lock.acquire", &json!({ "symbolPath": "a.ts:b", "sessionId": "B" }));
    in_order(
        &conflict,
        &[&envelope[..], &["error", "code", "message", "data", "heldBy", "expiresAt"]].concat(),
    );
    in_order(
        &text("lock.query", &json!({})),
        &["symbolPath", "sessionId", "acquiredAt", "expiresAt", "ttlRemainingMs"],
    );
    let intent = json!({ "sessionId": "A", "description": "d", "files": ["a.ts"] });
    in_order(&text("intent.declare", &intent), &["intentId", "conflicts", "hasConflicts", "items"]);
    let members = [
        "intentId",
        "sessionId",
        "description",
        "files",
        "symbols",
        "startByte",
        "endByte",
        "status",
        "declaredAt",
        "updatedAt",
    ];
    in_order(&text("intent.query", &json!({})), &members);
}

#[test]
fn requests_that_stop_half_way_end_by_themselves_and_keep_nobody_waiting() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let ping = br#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"ping"}"#;
    let whole = request("POST /rpc", &[], ping);
    let halves: [&[u8]; 4] = [
        b"",
        b"POST /rpc HT",
        &whole[..whole.len() - 5],
        b"POST /rpc HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ];
    let mut open: Vec<_> = halves
        .iter()
        .flat_map(|half| std::iter::repeat_n(half, 50))
        .map(|half| {
            let mut connection = wit.connect();
            connection.write_all(half).unwrap();
            connection
        })
        .collect();
    // One that asks for much and reads nothing of it.
    let symbols: Vec<String> = (0..10_000).map(|it| format!("symbol{it}")).collect();
    wit.ask(
        "intent.declare",
        json!({ "sessionId": "S", "description": "much", "files": ["a"], "symbols": symbols }),
    );
    let query = br#"{"jsonrpc":"2.0","witVersion":"1","id":"i","method":"intent.query"}"#;
    let mut deaf = wit.connect();
    deaf.write_all(&request("POST /rpc", &[], query).repeat(100)).unwrap();
    // One that was served, and then is silent.
    let mut silent = wit.connect();
    silent.write_all(&whole).unwrap();
    assert_eq!(Answer::read(&mut silent, false).unwrap().status, 200);
    open.push(silent);
    // Those at work wait for nobody.
    (0..20).for_each(|_| assert!(wit.answers()));
    for mut connection in open {
        let mut rest = Vec::new();
        // A connection of the test's waits for twenty seconds at most.
        connection.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
    let answered = std::iter::from_fn(|| Answer::read(&mut deaf, false).ok()).count();
    assert!(answered < 100, "nobody waited until somebody read");
    assert_eq!(wit.ask("lock.query", json!({})), json!([]));
}
