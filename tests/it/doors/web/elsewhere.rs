//! The page for browsers elsewhere, by raw requests at the proxy's socket: who is let in there, and which requests are answered.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind};
use crate::support::loopback_client::Http;
use crate::support::passkeys::{asks, assertion, enrol, rules_by};
use crate::support::proxied::{Elsewhere, HOST, settings, uid};
use crate::support::{World, eventually};

const DOCUMENTS: [&str; 4] = ["/", "/a/1", "/passkeys", "/t/x"];

/// The addresses that show a part of the repository.
const CONTENT: [&str; 10] = [
    "/rows/event?id=1",
    "/rows/export",
    "/rows/needs-you",
    "/rows/tasks",
    "/rows/events",
    "/rows/passkeys",
    "/rows/approval?id=1",
    "/rows/output?id=x",
    "/rows/search?q=x",
    "/event-stream",
];

fn host(page: &Elsewhere) -> (&str, &str) {
    ("Host", page.authority.as_str())
}

#[test]
fn the_socket_is_for_the_group_of_its_folder_and_goes_with_the_daemon() {
    let mut page = Elsewhere::new();
    let mode = std::fs::metadata(&page.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    page.daemon.take().unwrap().stop();
    assert!(!page.socket.exists());
}

#[test]
fn a_folder_in_which_others_could_take_the_sockets_place_is_refused() {
    let world = World::new();
    let folder = world.path("open");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let socket = folder.join("web.sock");
    world.configure(&settings(HOST, &socket, &uid().to_string()));
    let _daemon = world.start();
    let door = Http::web(&world);
    assert_eq!(door.look("/").status, 200, "the page is open at this machine");
    assert!(!socket.exists());
    let status = world.command(&["daemon", "status"]).output().unwrap();
    assert!(String::from_utf8_lossy(&status.stderr).contains("other users can write to it"), "{status:?}");
}

#[test]
fn settings_of_a_public_page_say_what_is_wrong_with_them() {
    let world = World::new();
    for (line, says) in [
        ("public = [\"http://host.example\"]", "does not begin with https://"),
        ("public = [\"https://*.example\"]", "wildcard"),
        ("public = [\"https://host.example/\"]", "behind the host"),
        ("public = [\"https://host.example/page\"]", "behind the host"),
        ("public = [\"https://ann@host.example\"]", "has a user in it"),
        ("public = [\"https://Host.example\"]", "lower case"),
        ("public = [\"https://192.0.2.7\"]", "is an address"),
        ("public = [\"https://host\"]", "single word"),
        ("public = [\"https://provost.localhost\"]", "is this machine"),
        ("public = [\"https://host.example:443\"]", "port"),
        ("socket = \"127.0.0.1:4720\"", "never by a port"),
        ("socket = \"4720\"", "never by a port"),
        ("socket = \"tcp://localhost:4720\"", "never by a port"),
        ("socket = \"run/web.sock\"", "neither an absolute path"),
        ("socket = \"own.sock\"", "another door"),
        ("proxy_uids = [\"caddy\"]", "whole number"),
        ("read = \"all\"", "expected one of \"open\", \"passkey\""),
        ("public = [\"https://host.example\"]", "proxy_uids = [0]"),
    ] {
        world.configure(&format!("[web]\nenabled = true\n{line}\n"));
        let output = world.command(&["up"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(says), "{line}: {text}");
    }
}

#[test]
fn a_proxy_of_another_user_is_refused_with_a_sentence() {
    let world = World::new();
    let socket = world.path("web.sock");
    std::fs::set_permissions(world.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
    world.configure(&settings(HOST, &socket, &(uid() + 1).to_string()));
    let daemon = world.start();
    eventually("the socket", || socket.exists());
    let page = Elsewhere { world, daemon: Some(daemon), socket, authority: HOST.into() };
    for path in ["/", "/session", "/rows/needs-you"] {
        let answer = page.get(path, "");
        assert_eq!(answer.status, 403, "{path}");
        assert!(
            String::from_utf8_lossy(&answer.body).contains("`proxy_uids` in `[web]` does not name"),
            "{answer:?}"
        );
    }
    assert!(page.world.log().contains("the peer is another user"));
}

#[test]
fn the_socket_answers_at_its_public_names_and_the_port_at_those_of_this_machine() {
    let page = Elsewhere::new();
    let door = Http::web(&page.world);
    for path in DOCUMENTS {
        assert_eq!(page.bare(&format!("GET {path}"), &[host(&page)], b"").status, 200, "{path}");
    }
    let port = door.port;
    for wrong in [
        format!("provost.localhost:{port}"),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        "evil.example".to_owned(),
        format!("{HOST}:{port}"),
        format!("{HOST}:443"),
        format!("{HOST}."),
        format!("a.{HOST}"),
        format!("{HOST}.evil.example"),
        format!("user@{HOST}"),
    ] {
        for path in ["/", "/session", "/rows/needs-you"] {
            assert_eq!(
                page.bare(&format!("GET {path}"), &[("Host", &wrong)], b"").status,
                403,
                "{wrong} {path}"
            );
        }
    }
    // And not the other way round: a name that was led to this machine.
    for name in [HOST.to_owned(), format!("{HOST}:{port}")] {
        let rebound = [
            ("Host", name.as_str()),
            ("Origin", &format!("https://{HOST}")),
            ("Sec-Fetch-Site", "same-origin"),
        ];
        for path in ["/", "/session", "/rows/needs-you"] {
            assert_eq!(door.bare(&format!("GET {path}"), &rebound, b"").status, 403, "{name} {path}");
        }
    }
    let two = [host(&page), ("Host", "evil.example")];
    assert_eq!(page.bare("GET /", &two, b"").status, 403);
    assert_eq!(page.bare("GET http://evil.example/", &[host(&page)], b"").status, 403);
}

#[test]
fn nothing_of_the_repository_is_read_without_a_session_whatever_a_proxy_says_of_who_asks() {
    let page = Elsewhere::new();
    asks(&page.world, "the secret plan");
    let claims: [&[(&str, &str)]; 7] = [
        &[],
        &[("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1")],
        &[("Forwarded", "for=127.0.0.1;host=provost.localhost;proto=http")],
        &[("X-Forwarded-Host", "provost.localhost"), ("X-Forwarded-Proto", "https")],
        &[("Tailscale-User-Login", "ann@example.com"), ("Tailscale-User-Name", "Ann")],
        &[("X-Provost-Agent", "user:ann"), ("Remote-User", "ann")],
        &[("Authorization", "Basic YW5uOmFubg==")],
    ];
    for claim in claims {
        let headers: Vec<(&str, &str)> = [host(&page)].into_iter().chain(claim.iter().copied()).collect();
        for path in CONTENT {
            let answer = page.bare(&format!("GET {path}"), &headers, b"");
            assert_eq!(answer.status, 401, "{claim:?} {path}");
            assert!(!String::from_utf8_lossy(&answer.body).contains("secret plan"));
        }
        let said = page.bare("GET /session", &headers, b"").json();
        assert_eq!(said["reader"], Value::Null, "{said}");
        let text = said.to_string();
        assert!(!text.contains(&*page.world.repo().to_string_lossy()) && !text.contains("plan"), "{text}");
    }
    // A token of an agent is worth nothing here.
    let minted = page.world.command(&["token", "mint", "reader"]).output().unwrap();
    let bearer = format!("Bearer {}", String::from_utf8_lossy(&minted.stdout).trim());
    let answer = page.bare("GET /rows/needs-you", &[host(&page), ("Authorization", &bearer)], b"");
    assert_eq!(answer.status, 401);
}

#[test]
fn what_is_sent_has_to_come_from_the_public_page_itself_as_json() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = format!("__Host-provost={}", page.sign_in(&mut key));
    let (origin, json_kind) = (page.origin(), ("Content-Type", "application/json"));
    let own = ("Origin", origin.as_str());
    let cookie = ("Cookie", cookie.as_str());
    let cases = [
        ("no Origin", vec![json_kind], 403),
        ("over plain HTTP", vec![("Origin", "http://phone.example.test"), json_kind], 403),
        ("another one", vec![("Origin", "https://evil.example"), json_kind], 403),
        ("null", vec![("Origin", "null"), json_kind], 403),
        ("at a port", vec![("Origin", "https://phone.example.test:8443"), json_kind], 403),
        ("two", vec![own, own, json_kind], 403),
        ("a page of another site", vec![own, ("Sec-Fetch-Site", "cross-site"), json_kind], 403),
        ("a form", vec![own, ("Content-Type", "application/x-www-form-urlencoded")], 415),
        ("text", vec![own, ("Content-Type", "text/plain")], 415),
    ];
    for (what, headers, status) in cases {
        for path in ["/word-challenge", "/begin-session", "/sign-out"] {
            let all: Vec<_> = [host(&page), cookie].into_iter().chain(headers.clone()).collect();
            let answer = page.bare(&format!("POST {path}"), &all, b"{}");
            assert_eq!(answer.status, status, "{what} {path}: {answer:?}");
        }
    }
    // The session is still good: nothing of it was heard.
    let secret = cookie.1.strip_prefix("__Host-provost=").unwrap();
    assert_eq!(page.get("/rows/needs-you", secret).status, 200);
    // A link from elsewhere leads to a document, and to nothing else.
    let link =
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    let all: Vec<_> = [host(&page), cookie].into_iter().chain(link).collect();
    assert_eq!(page.bare("GET /a/1", &all, b"").status, 200);
    for path in CONTENT.iter().chain(&["/session"]) {
        assert_eq!(page.bare(&format!("GET {path}"), &all, b"").status, 403, "{path}");
    }
}

#[test]
fn a_desktop_that_people_share_is_read_after_a_passkey_has_signed_in() {
    let world = World::new();
    world.configure("[web]\nenabled = true\nread = \"passkey\"\n");
    world.rule(&rules_by("\"passkey\""));
    let _daemon = world.start();
    let door = Http::web(&world);
    let mut key = Authenticator::new(Kind::Es256);
    key.origin = format!("http://provost.localhost:{}", door.port);
    let (status, said) = enrol(&world, &mut key, "desk", None);
    assert_eq!(status, 200, "{said}");
    assert_eq!(door.look("/").status, 200);
    for path in CONTENT {
        assert_eq!(door.look(path).status, 401, "{path}");
    }
    let post = |path: &str, body: &Value| {
        let headers = [
            ("Host", "provost.localhost:PORT"),
            ("Origin", "http://provost.localhost:PORT"),
            ("Content-Type", "application/json"),
        ];
        door.bare(&format!("POST {path}"), &headers, body.to_string().as_bytes())
    };
    assert_eq!(post("/word-challenge", &json!({ "revoke": "x" })).status, 401);
    let challenge = post("/begin-session", &json!({})).json()["challenge"].clone();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    let opened = post("/open-session", &signed);
    let set = opened.header("set-cookie").unwrap_or_else(|| panic!("{opened:?}")).to_owned();
    // Cookies go to every port of a name, so that each door has one of its own.
    assert!(set.starts_with(&format!("__Host-provost-{}=", door.port)), "{set}");
    let cookie = set.split(';').next().unwrap();
    let headers = [("Host", "provost.localhost:PORT"), ("Cookie", cookie)];
    assert_eq!(door.bare("GET /rows/needs-you", &headers, b"").status, 200);
    // At the other name it is another page.
    let headers = [("Host", "localhost:PORT"), ("Cookie", cookie)];
    assert_eq!(door.bare("GET /rows/needs-you", &headers, b"").status, 401);
}

#[test]
fn a_person_is_told_what_a_phone_needs_and_gets_the_address_as_a_picture() {
    let world = World::new();
    world.configure("[web]\nenabled = true\n");
    let _daemon = world.start();
    let run = |world: &World, args: &[&str]| world.command(args).output().unwrap();
    let missing = run(&world, &["web", "open", "--qr"]);
    assert!(!missing.status.success(), "{missing:?}");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("provost web setup"), "{missing:?}");
    let steps = |world: &World| -> Vec<(String, bool)> {
        let output = run(world, &["web", "setup", "--json"]);
        let said: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {output:?}"));
        let step = |it: &Value| (it["what"].as_str().unwrap().to_owned(), it["done"] == true);
        said["steps"].as_array().unwrap().iter().map(step).collect()
    };
    assert!(steps(&world).iter().all(|(_, is_done)| !is_done), "{:?}", steps(&world));
    assert!(!String::from_utf8_lossy(&run(&world, &["doctor"]).stdout).contains("page elsewhere"));
    let page = Elsewhere::new();
    let done: Vec<bool> = steps(&page.world).into_iter().map(|(_, is_done)| is_done).collect();
    assert_eq!(done, [true, true, true, false], "the passkey is missing: {:?}", steps(&page.world));
    let _key = page.enrolled();
    assert!(steps(&page.world).iter().all(|(_, is_done)| *is_done), "{:?}", steps(&page.world));
    let text = String::from_utf8_lossy(&run(&page.world, &["web", "setup"]).stdout).into_owned();
    for line in ["sudo tailscale serve --bg unix:", "reverse_proxy unix/", "proxy_pass http://unix:"] {
        assert!(text.contains(&format!("{line}{}", page.socket.display())), "{line}: {text}");
    }
    let drawn = run(&page.world, &["web", "open", "--qr"]);
    let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
    let mut lines = drawn.lines();
    assert_eq!(lines.next(), Some(&*format!("https://{HOST}/")), "{drawn}");
    assert!(lines.clone().count() > 12 && lines.any(|it| it.contains('█')), "{drawn}");
    let doctor = String::from_utf8_lossy(&run(&page.world, &["doctor"]).stdout).into_owned();
    assert!(
        doctor.contains("page elsewhere: public address") && doctor.contains("sudo tailscale serve"),
        "{doctor}"
    );
}
