//! The page for browsers elsewhere, by raw requests at the proxy's socket: which requests are answered, who reads, and what a stolen,
//! foreign or ended session is worth.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use provost::base::limits::{CHALLENGES_PER_MINUTE_MAX, WEB_SESSIONS_MAX, WEB_STREAMS_MAX};
use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind};
use crate::support::loopback_client::{Answer, Http};
use crate::support::passkeys::{
    answered, asks, assertion, enrol, get, json_at_the_terminal, rules_by, waits,
};
use crate::support::proxied::{Elsewhere, HOST, cookie_of, settings, uid};
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually};

const DOCUMENTS: [&str; 4] = ["/", "/a/1", "/passkeys", "/t/x"];

/// What has something of the repository in it.
const CONTENT: [&str; 8] = [
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
    assert!(String::from_utf8_lossy(&status.stdout).contains("other users can write to it"), "{status:?}");
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
    let cases: [(&str, Vec<(&str, &str)>, u16); 9] = [
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
fn a_passkey_signs_in_and_each_answer_is_signed_anew() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let approval = asks(&page.world, "true");
    let opened = page.try_to_sign_in(&mut key);
    let set = opened.header("set-cookie").unwrap();
    for part in ["__Host-provost=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
        assert!(set.contains(part) && !set.contains("Domain"), "{set}");
    }
    let cookie = cookie_of(&opened);
    assert_eq!(page.get("/session", &cookie).json()["reader"], "passkey");
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 200);
    // A session answers nothing.
    let asked = page.post("/word-challenge", &cookie, &json!({ "approval": approval, "grant": true }));
    assert_eq!(asked.status, 200, "{asked:?}");
    let challenge = asked.json();
    let none = json!({ "credential": "", "client_data": "", "authenticator_data": "", "signature": "" });
    let body = json!({ "nonce": challenge["nonce"], "assertion": none });
    assert_eq!(page.post("/signed-word", &cookie, &body).status, 403);
    assert!(waits(&page.world, approval));
    // A passkey does.
    let challenge =
        page.post("/word-challenge", &cookie, &json!({ "approval": approval, "grant": true })).json();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(page.post("/signed-word", &cookie, &signed).status, 200);
    assert!(answered(&page.world, approval).to_string().contains("\"proof\":\"passkey\""));
    // What has signed in is on record, and its secret is nowhere.
    let events = get(&page.world, "/events?after=0&limit=1000").to_string();
    assert!(events.contains("open-web-session") && !events.contains(&cookie));
    let file = std::fs::read_to_string(page.world.state_dir().join("web-sessions.json")).unwrap();
    assert!(!file.contains(&cookie), "{file}");
    let verified = page.world.command(&["journal", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn what_is_signed_for_something_else_or_twice_signs_nobody_in() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    let begin = || page.post("/begin-session", "", &json!({})).json()["challenge"].clone();
    let open = |body: &Value| page.post("/open-session", "", body);
    // Twice.
    let challenge = begin();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(open(&signed).status, 200);
    assert_eq!(open(&signed).json()["error"], "challenge_gone");
    // A word of another kind.
    let word = json!({ "verb": "cancel-task", "arguments": { "task": "x" } });
    let other = page.post("/word-challenge", &cookie, &word).json();
    let signed = json!({ "nonce": other["nonce"], "assertion": assertion(&mut key, &other) });
    assert_eq!(open(&signed).status, 403);
    // And one that signs in is no other word.
    let challenge = begin();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(page.post("/signed-word", &cookie, &signed).status, 403);
    // Signed at another page, without verification, by a key that nobody has enrolled.
    let challenge = begin();
    key.origin = "https://evil.example".into();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(open(&signed).status, 403);
    (key.origin, key.flags) = (page.origin(), crate::support::authenticator::UP);
    let challenge = begin();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(open(&signed).status, 403);
    let challenge = begin();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut page.key(), &challenge) });
    assert_eq!(open(&signed).status, 403);
}

#[test]
fn a_passkey_of_this_machine_does_not_sign_in_elsewhere() {
    let page = Elsewhere::new();
    let mut desk = Authenticator::new(Kind::Es256);
    desk.origin = format!("http://provost.localhost:{}", Http::web(&page.world).port);
    let (status, said) = enrol(&page.world, &mut desk, "desk", None);
    assert_eq!(status, 200, "{said}");
    let refused = page.post("/begin-session", "", &json!({}));
    assert_eq!((refused.status, refused.json()["error"].clone()), (403, json!("no_passkey_here")));
    assert!(refused.json()["hint"].as_str().unwrap().contains("provost passkey add"), "{refused:?}");
    let who = page.get("/session", "").json();
    assert_eq!((&who["has_passkey"], &who["vouch"]), (&json!(false), &json!(true)), "{who}");
}

#[test]
fn a_session_ends_with_its_browser_at_a_terminal_and_with_its_passkey() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let reads = |cookie: &str| page.get("/rows/needs-you", cookie).status;
    // With its browser.
    let cookie = page.sign_in(&mut key);
    assert_eq!(reads(&cookie), 200);
    let out = page.post("/sign-out", &cookie, &json!({}));
    assert!(out.status == 200 && out.header("set-cookie").unwrap().contains("Max-Age=0"), "{out:?}");
    assert_eq!(reads(&cookie), 401);
    // At a terminal, which also ends the stream that is open.
    let cookie = page.sign_in(&mut key);
    let mut stream = page.connect();
    let request =
        format!("GET /event-stream HTTP/1.1\r\nHost: {HOST}\r\nCookie: __Host-provost={cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let listed = json_list(&page.world, &["web", "session", "list", "--json"]);
    assert_eq!(
        (listed.len(), &listed[0]["reader"], &listed[0]["passkey"]),
        (1, &json!("passkey"), &json!("phone"))
    );
    let id = listed[0]["id"].as_str().unwrap();
    let ended = page.world.command(&["web", "session", "end", id]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(reads(&cookie), 401);
    let mut heard = String::new();
    std::io::Read::read_to_string(&mut stream, &mut heard).unwrap();
    assert!(heard.contains("event: hello") && heard.contains("not signed in any more"), "{heard}");
    let none = page.world.command(&["web", "session", "end", id]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("provost web session list"), "{none:?}");
    // With its passkey.
    let cookie = page.sign_in(&mut key);
    assert_eq!(reads(&cookie), 200);
    let revoked = at_the_terminal(&page.world, "passkey revoke phone");
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(reads(&cookie), 401);
    assert!(json_list(&page.world, &["web", "session", "list", "--json"]).is_empty());
    let events = get(&page.world, "/events?after=0&limit=1000").to_string();
    for why in ["its browser has signed out", "a person has ended it", "its passkey counts no more"] {
        assert!(events.contains(why), "{why}: {events}");
    }
}

fn json_list(world: &World, args: &[&str]) -> Vec<Value> {
    let output = world.command(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {output:?}"))
}

#[test]
fn a_signed_word_ends_another_browsers_session() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let (stolen, own) = (page.sign_in(&mut key), page.sign_in(&mut key));
    let listed = json_list(&page.world, &["web", "session", "list", "--json"]);
    let word = json!({ "verb": "end-web-session", "arguments": { "id": listed[0]["id"] } });
    let challenge = page.post("/word-challenge", &own, &word).json();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(page.post("/signed-word", &own, &signed).status, 200);
    assert_eq!(page.get("/rows/needs-you", &stolen).status, 401);
    assert_eq!(page.get("/rows/needs-you", &own).status, 200);
}

#[test]
fn a_session_survives_a_restart_and_not_a_clock_that_was_set_back() {
    let mut page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    page.restart();
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 200);
    // As if it had begun tomorrow: then the clock was wrong, or is now.
    let file = page.world.state_dir().join("web-sessions.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let day = 24 * 60 * 60 * 1_000;
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = kept.clone();
        change(&mut changed["sessions"][0]);
        changed.to_string()
    };
    let began = kept["sessions"][0]["began_at"].as_i64().unwrap();
    let cases: [(&str, String); 4] = [
        ("begun tomorrow", changed(&|it| it["began_at"] = json!(began + day))),
        (
            "idle for a day",
            changed(&|it| {
                it["began_at"] = json!(began - day);
                it["used_at"] = json!(began - day);
            }),
        ),
        ("over", changed(&|it| it["until"] = json!(began))),
        ("broken", "{\"version\":1,\"sessions\":[".into()),
    ];
    for (what, text) in cases {
        page.daemon.take().unwrap().stop();
        std::fs::write(&file, text).unwrap();
        page.daemon = Some(page.world.start());
        eventually("the socket", || page.socket.exists());
        assert_eq!(page.get("/rows/needs-you", &cookie).status, 401, "{what}");
    }
}

#[test]
fn a_session_is_good_for_its_own_origin_and_nothing_that_was_there_before_becomes_one() {
    let world = World::new();
    let socket = world.path("web.sock");
    std::fs::set_permissions(world.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
    let text = settings(HOST, &socket, &uid().to_string());
    let two = format!("public = [\"https://{HOST}\", \"https://{HOST}:8443\"]");
    world.configure(&text.replace(&format!("public = [\"https://{HOST}\"]"), &two));
    world.rule(&rules_by("\"passkey\""));
    let daemon = world.start();
    eventually("the socket", || socket.exists());
    let mut page = Elsewhere { world, daemon: Some(daemon), socket, authority: HOST.into() };
    let mut key = page.enrolled();
    // A value that another page has put there is no session, before and after somebody signs in with it in place.
    let planted = "A".repeat(43);
    assert_eq!(page.get("/rows/needs-you", &planted).status, 401);
    let challenge = page.post("/begin-session", &planted, &json!({})).json()["challenge"].clone();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    let cookie = cookie_of(&page.post("/open-session", &planted, &signed));
    assert_ne!(cookie, planted);
    assert_eq!(page.get("/rows/needs-you", &planted).status, 401);
    // Two of one name: one of them is not ours.
    let both = format!("__Host-provost={cookie}; __Host-provost={planted}");
    assert_eq!(page.bare("GET /rows/needs-you", &[host(&page), ("Cookie", &both)], b"").status, 401);
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 200);
    // At another origin of the same host.
    page.authority = format!("{HOST}:8443");
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 401);
    // A signature that was made at one of them does not sign in at the other.
    let challenge = page.post("/begin-session", "", &json!({})).json()["challenge"].clone();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(page.post("/open-session", "", &signed).status, 403);
    // Nor at this machine, where reading needs none and a cookie gives nothing.
    let door = Http::web(&page.world);
    let posted = door.bare(
        "POST /begin-session",
        &[
            ("Host", "provost.localhost:PORT"),
            ("Origin", "http://provost.localhost:PORT"),
            ("Content-Type", "application/json"),
        ],
        b"{}",
    );
    assert_eq!(posted.status, 405, "{posted:?}");
}

fn invite(world: &World) -> String {
    let made = json_at_the_terminal(world, "web invite --read --ttl 1d --json");
    made["link"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

fn open_invitation(page: &Elsewhere, link: &str) -> Answer {
    let (origin, invitation) = link.split_once("/#invite=").unwrap();
    assert_eq!(origin, page.origin());
    page.post("/open-invitation", "", &json!({ "invitation": invitation }))
}

#[test]
fn who_was_invited_sees_states_and_no_words_and_signs_nothing() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let approval = asks(&page.world, "the secret plan");
    let outside = page.world.command(&["web", "invite", "--read"]).output().unwrap();
    assert!(!outside.status.success(), "an agent invites nobody: {outside:?}");
    let link = invite(&page.world);
    let opened = open_invitation(&page, &link);
    assert_eq!(opened.status, 200, "{opened:?}");
    let cookie = cookie_of(&opened);
    let again = open_invitation(&page, &link);
    assert_eq!((again.status, again.json()["error"].clone()), (410, json!("invitation_gone")));
    assert_eq!(page.get("/session", &cookie).json()["reader"], "invited");
    let needs = page.get("/rows/needs-you", &cookie);
    let text = String::from_utf8_lossy(&needs.body).into_owned();
    assert!(
        needs.status == 200 && text.contains(&format!("approval {approval}")) && text.contains("asker"),
        "{text}"
    );
    let root = page.world.repo();
    let root = root.to_string_lossy();
    for path in ["/rows/needs-you", "/rows/tasks", "/rows/agents", "/rows/locks"] {
        let answer = page.get(path, &cookie);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{path}: {text}");
        for hidden in ["secret plan", "provost approve", "\"said\"", "\"commands\":[{", &*root] {
            assert!(!text.contains(hidden), "{path} shows {hidden}: {text}");
        }
    }
    for path in [
        "/rows/approval?id=1",
        "/rows/task?id=x",
        "/rows/changes?id=x",
        "/rows/output?id=x",
        "/rows/events",
        "/rows/messages",
        "/rows/search?q=plan",
        "/rows/audit",
        "/rows/health",
        "/rows/intents",
        "/rows/waits",
        "/rows/passkeys",
        "/rows/nothing",
        // A filter would say what the words are.
        "/rows/tasks?q=secret",
        "/rows/agents?q=plan",
    ] {
        assert_eq!(page.get(path, &cookie).json()["error"], "invited", "{path}");
    }
    for path in ["/word-challenge", "/signed-word"] {
        let answer = page.post(path, &cookie, &json!({ "approval": approval, "grant": true }));
        assert_eq!((answer.status, answer.json()["error"].clone()), (403, json!("invited")), "{path}");
    }
    assert!(waits(&page.world, approval));
    // One that was not opened is no session, and ends as one.
    let second = invite(&page.world);
    let unopened = second.split_once("#invite=").unwrap().1.to_owned();
    assert_eq!(page.get("/rows/needs-you", &unopened).status, 401);
    let ended = page.world.command(&["web", "session", "end", "--all"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(open_invitation(&page, &second).status, 410);
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 401);
    let _signed_in = page.sign_in(&mut key);
}

#[test]
fn the_seventeenth_session_and_the_sixty_fifth_stream_are_refused() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    for _ in 1..WEB_SESSIONS_MAX {
        invite(&page.world);
    }
    let refused = page.try_to_sign_in(&mut key);
    assert_eq!(
        (refused.status, refused.json()["error"].clone()),
        (409, json!("sessions_full")),
        "{refused:?}"
    );
    let more = at_the_terminal(&page.world, "web invite --read");
    assert!(String::from_utf8_lossy(&more.stdout).contains("as many as may be"), "{more:?}");
    let request =
        format!("GET /event-stream HTTP/1.1\r\nHost: {HOST}\r\nCookie: __Host-provost={cookie}\r\n\r\n");
    let open = || {
        let mut stream = page.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let answer = Answer::read(&mut stream, true).unwrap();
        (answer.status, stream)
    };
    let streams: Vec<_> = (0..WEB_STREAMS_MAX).map(|_| open()).collect();
    assert!(streams.iter().all(|(status, _)| *status == 200));
    assert_eq!(open().0, 503);
    drop(streams);
    eventually("a place", || open().0 == 200);
}

#[test]
fn those_who_are_not_signed_in_do_not_use_up_the_challenges_of_those_who_are() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    let approval = asks(&page.world, "true");
    let begin = |n: usize| {
        let from = format!("203.0.113.{n}");
        let headers = [
            host(&page),
            ("Origin", "https://phone.example.test"),
            ("Content-Type", "application/json"),
            // Another visitor each time, as they say.
            ("X-Forwarded-For", &from),
        ];
        page.bare("POST /begin-session", &headers, b"{}").status
    };
    let all: Vec<u16> = (0..CHALLENGES_PER_MINUTE_MAX + 5).map(begin).collect();
    assert!(all.ends_with(&[429, 429, 429, 429, 429]), "{all:?}");
    let asked = page.post("/word-challenge", &cookie, &json!({ "approval": approval, "grant": true }));
    assert_eq!(asked.status, 200, "{asked:?}");
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
