//! The doors over loopback HTTP: where they are, and whom they let in.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::a6s_client;
use crate::support::loopback_client::{Answer, Http};

fn doors(world: &World) -> [Http; 4] {
    Http::all(world)
}

/// Checks that an answer is the refusal of a door, which is always the same.
fn is_refused(answer: &Answer) -> bool {
    let plain = answer.body.is_empty() || answer.body == br#"{"error":"Forbidden"}"#;
    assert!(plain || answer.status != 403, "{answer:?}");
    answer.status == 403 && answer.header("connection") == Some("close")
}

#[test]
fn the_doors_listen_at_both_addresses_and_nowhere_else() {
    let world = a6s_client::world();
    let _daemon = world.start();
    for door in doors(&world) {
        for address in ["127.0.0.1", "::1"] {
            std::net::TcpStream::connect((address, door.port)).unwrap();
        }
        // Any other address of this machine, the rest of the loopback network included.
        assert!(std::net::TcpStream::connect(("127.0.0.2", door.port)).is_err());
        assert_eq!(door.post("/nowhere", &json!({})).status, 404);
        let answer = door.get("/nowhere");
        assert_eq!(answer.status, 404);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.header("content-length").is_some());
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")));
    }
}

/// A header's value, if it is there.
type Field = Option<&'static str>;

/// Host, Origin, Sec-Fetch-Site, and whether the request may pass.
const HEADS: &[(Field, Field, Field, bool)] = {
    const OWN: Option<&str> = Some("127.0.0.1:PORT");
    &[
        (OWN, None, None, true),
        (Some("localhost:PORT"), None, None, true),
        (Some("LocalHost:PORT"), None, None, true),
        (Some("[::1]:PORT"), None, None, true),
        (OWN, Some("http://127.0.0.1:PORT"), None, true),
        (OWN, Some("http://localhost:PORT"), None, true),
        (OWN, Some("http://[::1]:PORT"), None, true),
        (OWN, None, Some("none"), true),
        (OWN, None, Some("same-origin"), true),
        (OWN, Some("http://127.0.0.1:PORT"), Some("same-origin"), true),
        (Some("localhost:PORT"), Some("http://localhost:PORT"), Some("none"), true),
        // Hosts.
        (None, None, None, false),
        (Some(""), None, None, false),
        (Some("127.0.0.1"), None, None, false),
        (Some("localhost"), None, None, false),
        (Some("[::1]"), None, None, false),
        (Some("127.0.0.1:"), None, None, false),
        (Some("127.0.0.1:80"), None, None, false),
        (Some("127.0.0.1:1PORT"), None, None, false),
        (Some("127.0.0.1:0PORT"), None, None, false),
        (Some("127.0.0.1:PORT:PORT"), None, None, false),
        (Some("127.0.0.1 :PORT"), None, None, false),
        (Some("127.1:PORT"), None, None, false),
        (Some("127.0.0.2:PORT"), None, None, false),
        (Some("127.0.0.01:PORT"), None, None, false),
        (Some("0x7f.0.0.1:PORT"), None, None, false),
        (Some("2130706433:PORT"), None, None, false),
        (Some("0.0.0.0:PORT"), None, None, false),
        (Some("0:PORT"), None, None, false),
        (Some("::1:PORT"), None, None, false),
        (Some("[::]:PORT"), None, None, false),
        (Some("[::ffff:127.0.0.1]:PORT"), None, None, false),
        (Some("[0:0:0:0:0:0:0:1]:PORT"), None, None, false),
        (Some("[::1%lo]:PORT"), None, None, false),
        (Some("localhost.:PORT"), None, None, false),
        (Some("localhost.localdomain:PORT"), None, None, false),
        (Some("localhost.evil.example:PORT"), None, None, false),
        (Some("evil.example"), None, None, false),
        (Some("evil.example:PORT"), None, None, false),
        (Some("localhost:PORT.evil.example"), None, None, false),
        (Some("localhost:PORT@evil.example"), None, None, false),
        (Some("evil.example@localhost:PORT"), None, None, false),
        (Some("user@127.0.0.1:PORT"), None, None, false),
        (Some("http://127.0.0.1:PORT"), None, None, false),
        (Some("127.0.0.1:PORT/"), None, None, false),
        (Some("127.0.0.1:PORT, 127.0.0.1:PORT"), None, None, false),
        (Some("127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT"), None, None, false),
        (Some("127.0.0.1:PORT\r\nHost: evil.example"), None, None, false),
        (Some("evil.example\r\nHost: 127.0.0.1:PORT"), None, None, false),
        (Some("l\u{f6}calhost:PORT"), None, None, false),
        // Origins.
        (OWN, Some(""), None, false),
        (OWN, Some("null"), None, false),
        (OWN, Some("*"), None, false),
        (OWN, Some("http://evil.example"), None, false),
        (OWN, Some("https://127.0.0.1:PORT"), None, false),
        (OWN, Some("http://127.0.0.1"), None, false),
        (OWN, Some("http://127.0.0.1:1"), None, false),
        (OWN, Some("http://127.0.0.1:PORT/"), None, false),
        (OWN, Some("http://127.0.0.1:PORT.evil.example"), None, false),
        (OWN, Some("http://LOCALHOST:PORT"), None, false),
        (OWN, Some("http://localhost.:PORT"), None, false),
        (OWN, Some("HTTP://127.0.0.1:PORT"), None, false),
        (OWN, Some("ws://127.0.0.1:PORT"), None, false),
        (OWN, Some("file://"), None, false),
        (OWN, Some("chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), None, false),
        (OWN, Some("vscode-webview://x"), None, false),
        (OWN, Some("http://127.0.0.1:PORT http://evil.example"), None, false),
        (OWN, Some("http://127.0.0.1:PORT\r\nOrigin: http://evil.example"), None, false),
        (OWN, Some("http://evil.example\r\nOrigin: http://127.0.0.1:PORT"), None, false),
        // Where a browser says that a request comes from.
        (OWN, None, Some("cross-site"), false),
        (OWN, None, Some("same-site"), false),
        (OWN, None, Some(""), false),
        (OWN, None, Some("None"), false),
        (OWN, None, Some("same-origin, cross-site"), false),
        (OWN, None, Some("same-origin\r\nSec-Fetch-Site: cross-site"), false),
        (OWN, Some("http://127.0.0.1:PORT"), Some("cross-site"), false),
        (OWN, Some("http://evil.example"), Some("same-origin"), false),
        (OWN, Some("http://evil.example"), Some("none"), false),
        (Some("evil.example:PORT"), Some("http://evil.example:PORT"), Some("same-origin"), false),
    ]
};

#[test]
fn a_request_passes_under_the_doors_own_names_alone_and_from_no_other_page() {
    let world = a6s_client::world();
    let _daemon = world.start();
    for door in doors(&world) {
        for (host, origin, site, passes) in HEADS {
            let all = [("Host", host), ("Origin", origin), ("Sec-Fetch-Site", site)];
            let headers: Vec<(&str, &str)> =
                all.iter().filter_map(|(name, it)| Some((*name, (**it)?))).collect();
            for line in ["GET /nowhere", "POST /nowhere", "OPTIONS /nowhere", "DELETE /nowhere"] {
                let answer = door.bare(line, &headers, b"");
                let refused = is_refused(&answer) || answer.status == 400;
                assert_eq!(!refused, *passes, "{line} {headers:?}: {answer:?}");
                assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")));
            }
        }
    }
}

#[test]
fn a_target_that_names_another_place_is_refused_whatever_the_host_says() {
    let world = a6s_client::world();
    let _daemon = world.start();
    for door in doors(&world) {
        let own = [("Host", "127.0.0.1:PORT")];
        let port = door.port;
        for target in ["http://evil.example/nowhere", "http://evil.example:PORT/", "https://0.0.0.0:PORT/x"] {
            let answer = door.bare(&format!("GET {}", target.replace("PORT", &port.to_string())), &own, b"");
            assert!(is_refused(&answer), "{target}: {answer:?}");
        }
        assert!(is_refused(&door.bare("CONNECT evil.example:443", &own, b"")));
        let answer = door.bare(&format!("GET http://localhost:{port}/nowhere"), &own, b"");
        assert_eq!(answer.status, 404);
    }
}

#[test]
fn ports_are_shown_and_printed_for_clients_and_kept_over_a_restart() {
    let world = a6s_client::world();
    let daemon = world.start();
    let before = doors(&world).map(|it| it.port);
    let output = world.command(&["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(env["AGENT_PROTOCOL_URL"], format!("http://127.0.0.1:{}", before[0]));
    assert_eq!(env["GIT_PAW_BROKER_URL"], format!("http://127.0.0.1:{}", before[1]));
    assert_eq!(env["A6S_URL"], format!("ws://127.0.0.1:{}/ws", before[2]));
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(doors(&world).map(|it| it.port), before);
}
