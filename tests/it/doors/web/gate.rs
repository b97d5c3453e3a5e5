//! The requests that the page's door admits, by raw requests: names, pages from elsewhere, the headers of every answer,
//! and addresses that do not exist.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{OPEN, ask, open_world};
use crate::support::loopback_client::{Answer, Http};
use crate::support::own_api::own;
use crate::support::terminal::at_a_hosts_terminal;
use crate::support::{World, eventually};

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");

/// Every kind of view, and what its script asks for.
const DOCUMENTS: [&str; 16] = [
    "/",
    "/tasks",
    "/agents",
    "/locks",
    "/waits",
    "/intents",
    "/messages",
    "/search",
    "/audit",
    "/e",
    "/health",
    "/passkeys",
    "/a/1",
    "/t/x",
    "/e/7",
    "/both",
];
const ROWS: [&str; 19] = [
    "/rows/needs-you",
    "/rows/tasks",
    "/rows/agents",
    "/rows/locks",
    "/rows/waits",
    "/rows/intents",
    "/rows/messages",
    "/rows/search?q=x",
    "/rows/audit",
    "/rows/audit?q=worker:shell",
    "/rows/events",
    "/rows/health",
    "/rows/passkeys",
    "/rows/approval?id=1",
    "/rows/event?id=1",
    "/rows/export",
    "/rows/locks?q=way:src/a.py",
    "/rows/journal-check",
    "/rows/both?file=src/a.py&one=a&other=b",
];

fn get(door: Http, path: &str, headers: &[(&str, &str)]) -> Answer {
    door.bare(&format!("GET {path}"), headers, b"")
}

#[test]
fn the_page_answers_at_its_own_two_names_and_no_other() {
    let (world, _daemon, door) = open_world();
    for host in ["provost.localhost:PORT", "localhost:PORT", "Provost.LocalHost:PORT"] {
        for path in DOCUMENTS.iter().chain(&ROWS) {
            assert_eq!(get(door, path, &[("Host", host)]).status, 200, "{host} {path}");
        }
    }
    let foreign = [
        "evil.example:PORT",
        "evil.example",
        "provost.localhost",
        "provost.localhost:80",
        "provost.localhost:1PORT",
        "a.provost.localhost:PORT",
        "provost.localhost.evil.example:PORT",
        "localhost:PORT.evil.example",
        "user@localhost:PORT",
        "provost.localhost.:PORT",
        "127.0.0.2:PORT",
        "provost.localhost:PORT\r\nHost: evil.example",
    ];
    for host in foreign {
        for path in ["/", "/rows/needs-you", "/event-stream"] {
            let answer = get(door, path, &[("Host", host)]);
            assert_eq!(answer.status, 403, "{host} {path}");
            assert_eq!(answer.body, br#"{"error":"Forbidden"}"#);
        }
    }
    // As after a name of somebody else was led here, whatever the page says of itself.
    let rebound = [
        ("Host", "evil.example:PORT"),
        ("Origin", "http://evil.example:PORT"),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    assert_eq!(get(door, "/rows/needs-you", &rebound).status, 403);
    assert!(world.log().contains("the Host is not this door"));
}

#[test]
fn an_address_leads_on_to_the_name_and_answers_nothing_itself() {
    let (_world, _daemon, door) = open_world();
    for host in ["127.0.0.1:PORT", "[::1]:PORT"] {
        for path in ["/", "/a/7?d=1f9ac2", "/e?before=12"] {
            let answer = get(door, path, &[("Host", host)]);
            assert_eq!(answer.status, 307, "{host} {path}");
            let to = format!("http://provost.localhost:{}{path}", door.port);
            assert_eq!(answer.header("location"), Some(to.as_str()));
        }
        for path in ["/rows/needs-you", "/event-stream", "/assets/page.css", "/nowhere", "//evil.example/"] {
            assert_eq!(get(door, path, &[("Host", host)]).status, 403, "{host} {path}");
        }
        let origin = format!("http://{}", host.replace("PORT", &door.port.to_string()));
        let posted = door.bare("POST /", &[("Host", host), ("Origin", &origin)], b"{}");
        assert_eq!(posted.status, 403, "{host}");
    }
}

#[test]
fn a_page_from_elsewhere_leads_to_documents_and_takes_nothing() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "the secret plan of this repository");
    for site in ["cross-site", "same-site"] {
        let link =
            [OWN, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
        for path in DOCUMENTS {
            let answer = get(door, path, &link);
            assert_eq!(answer.status, 200, "{site} {path}");
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(
                !text.contains("secret plan"),
                "a document has something of the repository in it: {path}"
            );
            assert!(!text.contains(&*world.repo().to_string_lossy()), "{path}");
        }
        for path in ROWS.iter().chain(&["/event-stream", "/rows/output?id=x", "/nowhere"]) {
            assert_eq!(get(door, path, &link).status, 403, "{site} {path}");
        }
        // What is taken into a page: by its script, a frame, a picture, a style, an object.
        let kinds = [
            ("cors", "empty"),
            ("no-cors", "empty"),
            ("navigate", "iframe"),
            ("navigate", "frame"),
            ("navigate", "embed"),
            ("navigate", "object"),
            ("no-cors", "image"),
            ("no-cors", "script"),
            ("no-cors", "style"),
            ("websocket", "empty"),
            ("navigate", "document\r\nSec-Fetch-Dest: iframe"),
        ];
        for (mode, dest) in kinds {
            let taken = [OWN, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)];
            for path in DOCUMENTS.iter().chain(&ROWS) {
                assert_eq!(get(door, path, &taken).status, 403, "{site} {mode} {dest} {path}");
            }
        }
        let form = [OWN, ("Origin", "http://evil.example"), link[1], link[2], link[3]];
        assert_eq!(door.bare("POST /a/1", &form, b"{}").status, 403, "a form");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(get(door, "/rows/needs-you", &[OWN, ("Sec-Fetch-Site", site)]).status, 200);
    }
}

#[test]
fn what_would_change_something_has_to_come_from_the_page_and_to_be_signed() {
    let (_world, _daemon, door) = open_world();
    let origins = [
        None,
        Some("null"),
        Some(""),
        Some("http://evil.example"),
        Some("http://provost.localhost"),
        Some("http://provost.localhost:1PORT"),
        Some("https://provost.localhost:PORT"),
        Some("http://PROVOST.localhost:PORT"),
        Some("http://127.0.0.1:PORT"),
        // The other name is another origin, whose page may be another program's.
        Some("http://localhost:PORT"),
        Some("http://provost.localhost:PORT\r\nOrigin: http://evil.example"),
    ];
    for origin in origins {
        let mut headers = vec![OWN, ("Content-Type", "application/json")];
        headers.extend(origin.map(|it| ("Origin", it)));
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let answer = door.bare(&format!("{method} /a/1"), &headers, b"{}");
            assert_eq!(answer.status, 403, "{method} {origin:?}");
        }
    }
    let own = [OWN, ("Origin", "http://provost.localhost:PORT"), ("Content-Type", "application/json")];
    let nowhere =
        ["/", "/a/1", "/rows/approval?id=1", "/answer-approval", "/passkey-code", "/reset-passkeys", "/stop"];
    for path in nowhere {
        let answer = door.bare(&format!("POST {path}"), &own, br#"{"approval":1,"grant":true}"#);
        assert_eq!(answer.status, 405, "{path}");
        assert!(answer.json()["hint"].as_str().unwrap().contains("provost approve"), "{answer:?}");
    }
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let (_world, _daemon, door) = open_world();
    let page = door.look("/");
    let text = String::from_utf8(page.body.clone()).unwrap();
    let style = text.split('"').find(|it| it.starts_with("/assets/page-")).unwrap();
    let style = get(door, style, &[OWN]);
    assert_eq!(style.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let refused = get(door, "/", &[("Host", "evil.example")]);
    let led_on = get(door, "/", &[("Host", "127.0.0.1:PORT")]);
    for answer in [
        page,
        style,
        refused,
        led_on,
        door.look("/nowhere"),
        door.look("/rows/health"),
        door.look("/rows/nothing"),
    ] {
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types provost-worker",
        ] {
            assert!(policy.contains(part), "{part}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        assert!(answer.header("permissions-policy").is_some());
        assert!(
            !answer
                .headers
                .iter()
                .any(|(name, _)| name.starts_with("access-control") || name == "set-cookie")
        );
    }
    for inline in ["<style", "<script>", " style=", "onclick", "onload", "javascript:"] {
        assert!(!text.contains(inline), "{inline}: {text}");
    }
}

#[test]
fn no_name_of_a_file_leads_out_of_the_table() {
    let (_world, _daemon, door) = open_world();
    for name in [
        "",
        "page.css",
        "main.js",
        "page-0000000000000000.css",
        "../page.css",
        "..%2fpage.css",
        "%2e%2e/Cargo.toml",
        "....//page.css",
        "/etc/passwd",
        "%00",
        "page.css%00.js",
        "..\\page.css",
        "main-",
    ] {
        let answer = door.look(&format!("/assets/{name}"));
        assert_eq!(answer.status, 404, "{name}: {answer:?}");
    }
    for path in
        ["/a/", "/a/1/2", "/t/", "/t/a/b", "/rows/", "/rows/../rows/health", "/index.html", "/.", "/tasks/"]
    {
        assert_eq!(door.look(path).status, 404, "{path}");
    }
}

#[test]
fn a_query_that_makes_no_sense_is_answered_with_its_fault() {
    let (_world, _daemon, door) = open_world();
    for (path, status, says) in [
        ("/rows/approval", 400, "`id` is missing"),
        ("/rows/approval?id=x", 400, "no number"),
        ("/rows/approval?id=-1", 400, "no number"),
        ("/rows/approval?id=1&id=2", 400, "twice"),
        ("/rows/approval?id=%ff", 400, "UTF-8"),
        ("/rows/events?before=99999999999999999999999", 400, "no number"),
        ("/rows/task?id=there-is-none", 404, ""),
    ] {
        let answer = door.look(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.json()["message"].as_str().unwrap().contains(says), "{path}: {answer:?}");
    }
    for path in [
        "/rows/events?before=0",
        "/rows/events?before=18446744073709551615",
        "/rows/tasks?q=%00%1b%5b",
        "/rows/tasks?before=none",
    ] {
        assert_eq!(door.look(path).status, 200, "{path}");
    }
}

#[test]
fn the_port_is_had_at_both_addresses_or_the_page_stays_shut() {
    for taken in ["[::1]:0", "127.0.0.1:0"] {
        let squatter = TcpListener::bind(taken).unwrap();
        let port = squatter.local_addr().unwrap().port();
        let world = World::new();
        world.configure(&format!("[web]\nenabled = true\nport = {port}\n"));
        let output = world.command(&["up", "--foreground"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{taken}");
        assert!(said.contains(&format!("web: port {port} is taken")), "{said}");
    }
}

#[test]
fn a_jailed_worker_and_another_user_are_refused() {
    let world = World::new();
    world.configure(&format!("[policy]\nfile = \"builtin:open\"\n{OPEN}"));
    let daemon = world.start();
    let door = Http::web(&world);
    let client = world.client(&daemon, "orch");
    let (_, reply) =
        client.delegate("shell", "touch began; while [ ! -e over ]; do sleep 0.05; done", json!({}));
    reply.ack();
    eventually("its start", || world.repo().join("began").exists());
    let jail = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    for path in ["/", "/rows/needs-you", "/event-stream"] {
        let request = format!(
            "GET {path} HTTP/1.1\\r\\nHost: provost.localhost:{}\\r\\nConnection: close\\r\\n\\r\\n",
            door.port
        );
        let script = format!("(printf '{request}'; sleep 2) | nc 127.0.0.1 {}", door.port);
        let output = Command::new(jail[0])
            .args(&jail[1..])
            .args(["sh", "-c", &script])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("HTTP/1.1 403 "), "{path}: {said}");
    }
    assert_eq!(door.look("/rows/needs-you").status, 200, "who is not jailed is let in beside it");
    let other =
        std::env::var("PROVOST_TEST_OTHER").expect("a program of another user: run scripts/test as root");
    let request =
        format!("GET /rows/needs-you HTTP/1.1\\r\\nHost: provost.localhost:{}\\r\\n\\r\\n", door.port);
    let script = format!("(printf '{request}'; sleep 2) | {other} ::1 {}", door.port);
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    assert!(
        world.log().contains("another pid namespace") && world.log().contains("the peer is another user")
    );
    std::fs::write(world.repo().join("over"), "").unwrap();
}

#[test]
fn the_command_opens_the_page_and_names_its_address() {
    let world = World::new();
    let daemon = world.start();
    let status = world.command(&["status", "--json"]).output().unwrap();
    assert!(
        !String::from_utf8_lossy(&status.stdout).contains("\"web\""),
        "it is shut until somebody wants it"
    );
    let said = |args: &[&str]| {
        let output = world.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let address = said(&["web"]);
    let door = Http::web(&world);
    assert_eq!(address.trim(), format!("http://provost.localhost:{}/", door.port));
    assert_eq!(door.look("/rows/health").status, 200);
    // Clients are told of it, and of the doors that were open before as well.
    let told: serde_json::Value = serde_json::from_str(&said(&["env", "--json"])).unwrap();
    assert_eq!(told["PROVOST_WEB_URL"], address.trim());
    assert!(told["GIT_PAW_BROKER_URL"].is_string() && told["PROVOST_MCP_URL"].is_string(), "{told}");
    // Once more is no other page.
    let again: serde_json::Value = serde_json::from_str(&said(&["web", "open", "--json"])).unwrap();
    assert_eq!(again["address"], address.trim());
    // It is an order to the daemon, which agents do not give.
    let (status, refused) = own(&world, ("POST", "/open-page"), &[("x-provost-agent", "feat-a")], &json!({}));
    assert_eq!(status, 403, "{refused}");
    daemon.stop();
    let output = world.command(&["web"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said_how_to_start(&output.stderr), "{output:?}");
}

fn said_how_to_start(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("provost up")
}

#[test]
fn a_browser_shows_no_token_so_the_page_cannot_ask_for_one() {
    let world = World::new();
    world.configure("[web]\nenabled = true\nauth = \"token\"\n");
    let output = world.command(&["up", "--foreground"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("shows no token") && said.contains("leave `auth` out"), "{said}");
}

/// Reads a stream until this text has come, or the stream ends.
fn streamed(door: Http, headers: &[(&str, &str)], until: &str) -> String {
    let mut connection = door.connect();
    let request = door.bytes("GET /event-stream", &[&[OWN], headers].concat(), b"");
    connection.write_all(&request).unwrap();
    let (mut said, mut piece) = (String::new(), [0; 4096]);
    while !said.contains(until) {
        let n =
            connection.read(&mut piece).unwrap_or_else(|err| panic!("{until} did not come: {err}: {said}"));
        assert_ne!(n, 0, "the stream has ended: {said}");
        said.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    said
}

#[test]
fn a_stream_goes_on_where_its_reader_was_and_says_where_it_cannot() {
    let (world, daemon, door) = open_world();
    let hello = streamed(door, &[], "\"head\":");
    assert!(hello.contains("event: hello") && hello.contains("retry: 1000"), "{hello}");
    assert!(!hello.contains("event: gap"), "{hello}");
    ask(&world, &daemon, "the secret plan of this repository");
    // From the beginning: each event once, in order, and nothing of what it says.
    let all = streamed(door, &[("Last-Event-ID", "0")], "approval_asked");
    let ids: Vec<u64> = all.lines().filter_map(|it| it.strip_prefix("id: ")?.trim().parse().ok()).collect();
    assert!(ids.len() > 2 && ids.windows(2).all(|it| it[0] + 1 == it[1]), "{ids:?}");
    assert!(!all.contains("secret plan") && all.contains("\"approval\":1"), "{all}");
    let last = ids.last().unwrap().to_string();
    // Behind the last one nothing comes but what is new.
    let rest = streamed(door, &[("Last-Event-ID", &last)], "event: hello");
    assert!(!rest.contains("event: change") && !rest.contains("event: gap"), "{rest}");
    // A number of another journal, or none: everything has to be asked for again.
    for odd in ["18446744073709551615", "999999", "-1", "x", ""] {
        let said = streamed(door, &[("Last-Event-ID", odd)], "event: gap");
        assert!(said.contains("event: hello"), "{odd}: {said}");
    }
}

#[test]
fn who_reads_the_page_is_still_a_person_at_their_terminal() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "make the release");
    // As a browser that was started from the terminal does, and what it does when it is told to write.
    let at = format!("http://127.0.0.1:{0} -H 'Host: provost.localhost:{0}'", door.port);
    let (base, host) = at.split_once(' ').unwrap();
    let origin = format!("-H 'Origin: http://provost.localhost:{}'", door.port);
    let word = r#"{"nonce":"AAAA","assertion":{"credential":"","client_data":"","authenticator_data":"","signature":""}}"#;
    let lines = format!(
        "curl -s {host} {base}/rows/needs-you\ncurl -s {host} {origin} -d '{{}}' {base}/a/1\n\
         curl -s {host} {origin} -H 'Content-Type: application/json' -d '{word}' {base}/signed-word\nprovost approve 1\n"
    );
    let said = at_a_hosts_terminal(&world, &lines);
    assert!(
        said.contains("approval 1:") && said.contains("only_signed") && said.contains("challenge_gone"),
        "{said}"
    );
    let waiting = world.command(&["approval", "list", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&waiting.stdout).trim(), "[]", "{said}");
}

#[test]
fn the_page_goes_by_the_names_of_its_setting_which_are_of_this_machine() {
    let world = World::new();
    world.configure("[web]\nenabled = true\nnames = [\"ann.localhost\"]\n");
    let daemon = world.start();
    let door = Http::web(&world);
    assert_eq!(get(door, "/rows/health", &[("Host", "ann.localhost:PORT")]).status, 200);
    for other in ["provost.localhost:PORT", "localhost:PORT"] {
        assert_eq!(get(door, "/rows/health", &[("Host", other)]).status, 403, "{other}");
    }
    let address = format!("http://ann.localhost:{}", door.port);
    let led_on = get(door, "/a/7", &[("Host", "127.0.0.1:PORT")]);
    assert_eq!(led_on.header("location"), Some(format!("{address}/a/7").as_str()));
    let (_, known) = own(&world, ("GET", "/passkeys"), &[], &json!({}));
    assert_eq!(known["origins"], json!([address]));
    let said = |args: &[&str]| String::from_utf8(world.command(args).output().unwrap().stdout).unwrap();
    assert_eq!(said(&["web"]).trim(), format!("{address}/"));
    let told: serde_json::Value = serde_json::from_str(&said(&["env", "--json"])).unwrap();
    assert_eq!(told["PROVOST_WEB_URL"], format!("{address}/"));
    daemon.stop();
    for (names, says) in [
        ("[]", "`names` is empty"),
        ("[\"example.com\"]", "neither"),
        ("[\"127.0.0.1\"]", "neither"),
        ("[\"Provost.localhost\"]", "neither"),
        ("[\"provost.localhost:80\"]", "neither"),
    ] {
        world.configure(&format!("[web]\nenabled = true\nnames = {names}\n"));
        let output = world.command(&["up", "--foreground"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(says), "{names}: {said}");
    }
}
