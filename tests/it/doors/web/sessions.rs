//! Sessions of browsers that read the page elsewhere, by raw requests: how one begins and ends, and what one that is stolen, foreign or
//! only invited is worth.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use provost::base::limits::{CHALLENGES_PER_MINUTE_MAX, WEB_SESSIONS_MAX, WEB_STREAMS_MAX};
use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind, UP};
use crate::support::loopback_client::{Answer, Http};
use crate::support::passkeys::{
    answered, asks, assertion, enrol, get, json_at_the_terminal, rules_by, waits,
};
use crate::support::proxied::{Elsewhere, HOST, cookie_of, settings, uid};
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually};

fn host(page: &Elsewhere) -> (&str, &str) {
    ("Host", page.authority.as_str())
}

#[test]
fn a_passkey_signs_in_and_each_answer_is_signed_for_itself() {
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
fn what_is_signed_for_something_else_or_twice_signs_no_browser_in() {
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
    // Signed at another page, without verification, by a key that is not enrolled.
    let challenge = begin();
    key.origin = "https://evil.example".into();
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut key, &challenge) });
    assert_eq!(open(&signed).status, 403);
    (key.origin, key.flags) = (page.origin(), UP);
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
    let revoked = at_the_terminal(&page.world, "passkey revoke phone --yes");
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
    // A value that another page has put there is no session, before and after a person signs in with it in place.
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
    assert!(!outside.status.success(), "an agent invites no reader: {outside:?}");
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
        "/rows/both?file=a.py&one=a&other=b",
        "/rows/journal-check",
        "/rows/output?id=x",
        "/rows/events",
        "/rows/event?id=1",
        "/rows/export",
        "/rows/would-delegate?worker=shell",
        "/rows/would-write?apply=1",
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
    for path in ["/word-challenge", "/signed-word", "/replay-rules"] {
        let answer = page.post(path, &cookie, &json!({ "approval": approval, "grant": true }));
        assert_eq!((answer.status, answer.json()["error"].clone()), (403, json!("invited")), "{path}");
    }
    assert!(waits(&page.world, approval));
    // A person who is signed in loses nothing by a link.
    let signed_in = page.sign_in(&mut key);
    let third = invite(&page.world);
    let kept =
        page.post("/open-invitation", &signed_in, &json!({ "invitation": third.split_once('=').unwrap().1 }));
    assert_eq!((kept.status, kept.json()["error"].clone()), (409, json!("signed_in")));
    assert_eq!(page.get("/session", &signed_in).json()["reader"], "passkey");
    // One that was not opened is no session, and ends as one.
    let second = invite(&page.world);
    let unopened = second.split_once("#invite=").unwrap().1.to_owned();
    assert_eq!(page.get("/rows/needs-you", &unopened).status, 401);
    let ended = page.world.command(&["web", "session", "end", "--all"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(open_invitation(&page, &second).status, 410);
    assert_eq!(page.get("/rows/needs-you", &cookie).status, 401);
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
