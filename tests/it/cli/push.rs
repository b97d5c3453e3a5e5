//! Messages to browsers by their push services: a real daemon, a push service on this machine, and a browser that
//! opens what comes.

use std::process::Command;
use std::time::Duration;

use provost::base::limits::CHALLENGES_PER_MINUTE_MAX;
use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind};
use crate::support::loopback_client::Http;
use crate::support::passkeys::{assertion, enrol, get, page};
use crate::support::push_browser::{PushBrowser, claims};
use crate::support::receiver::{Mood, Receiver, status};
use crate::support::rules::ASK;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::within;
use crate::support::{Daemon, World, eventually};

/// A world with a page and a passkey, which knows this push service.
struct Setup {
    world: World,
    daemon: Daemon,
    service: Receiver,
    key: Authenticator,
}

fn setup(more: &str) -> Setup {
    let service = Receiver::tls();
    service.be(status("201 Created"));
    let world = World::new();
    std::fs::create_dir_all(world.config_dir()).unwrap();
    std::fs::write(world.config_dir().join("ca.pem"), &service.authority).unwrap();
    let hosts = format!("hosts = [\"hooks.example:{}=127.0.0.1\"]\nauthority = \"ca.pem\"", service.port);
    world.configure(&format!(
        "[web]\nenabled = true\nport = 0\n[push]\nsubject = \"mailto:me@example.org\"\n{hosts}\n{more}"
    ));
    world.rule(ASK);
    let daemon = world.start();
    let mut key = Authenticator::new(Kind::Es256);
    key.origin = format!("http://provost.localhost:{}", Http::web(&world).port);
    let (code, said) = enrol(&world, &mut key, "phone", None);
    assert_eq!(code, 200, "{said}");
    Setup { world, daemon, service, key }
}

impl Setup {
    fn endpoint(&self) -> String {
        format!("https://hooks.example:{}/send/a-secret-of-the-browser", self.service.port)
    }

    fn offer(&self, browser: &PushBrowser, endpoint: &str) -> Value {
        let (code, begun) = page(&self.world, "/begin-push", &json!(null));
        assert_eq!(code, 200, "{begun}");
        json!({
            "endpoint": endpoint, "p256dh": browser.p256dh(), "auth": browser.auth(), "key": begun["key"],
            "origin": self.key.origin,
        })
    }

    /// Has a passkey sign a verb.
    fn sign(&mut self, verb: &str, arguments: &Value) -> (u16, Value) {
        let asked = json!({ "verb": verb, "arguments": arguments });
        let (code, challenge) = page(&self.world, "/word-challenge", &asked);
        if code != 200 {
            return (code, challenge);
        }
        let assertion = assertion(&mut self.key, &challenge);
        page(&self.world, "/signed-word", &json!({ "nonce": challenge["nonce"], "assertion": assertion }))
    }

    /// Has a browser told.
    fn subscribe(&mut self, name: &str) -> PushBrowser {
        let browser = PushBrowser::new();
        let offer = self.offer(&browser, &self.endpoint());
        let (code, offered) = page(&self.world, "/offer-push", &offer);
        assert_eq!(code, 200, "{offered}");
        let (code, said) = self.sign("subscribe-push", &json!({ "name": name, "offer": offered["offer"] }));
        assert_eq!(code, 200, "{said}");
        browser
    }

    fn asks(&self, goal: &str) {
        let (_, reply) = self.world.client(&self.daemon, "orch:a").delegate("shell", goal, json!({}));
        reply.ack();
    }

    fn row(&self) -> Value {
        get(&self.world, "/push")["browsers"][0].clone()
    }

    fn is_told_no_more(&self) -> bool {
        get(&self.world, "/push")["browsers"].as_array().unwrap().is_empty()
    }
}

fn said(mut command: Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

fn journal(world: &World) -> String {
    let output = world.command(&["journal", "show", "--json"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_browser_that_a_passkey_has_signed_for_is_told_of_a_question_and_of_its_end() {
    let mut s = setup("");
    let browser = s.subscribe("my phone");
    s.asks("echo the words of an agent");
    let heard = s.service.hears(1).remove(0);
    assert_eq!(heard.line, "POST /send/a-secret-of-the-browser HTTP/1.1");
    let header = |name: &str| heard.header(name).to_owned();
    assert_eq!(
        (header("content-encoding"), header("content-type")),
        ("aes128gcm".into(), "application/octet-stream".into())
    );
    assert_eq!((header("topic"), header("urgency")), ("approval-1".into(), "high".into()));
    let ttl: u64 = header("ttl").parse().unwrap();
    assert!(ttl > 60 && ttl <= 24 * 60 * 60, "until its time is over: {ttl}");
    let (claims, key) = claims(&header("authorization"));
    assert_eq!(claims["aud"], format!("https://hooks.example:{}", s.service.port));
    assert_eq!(claims["sub"], "mailto:me@example.org");
    let left = claims["exp"].as_u64().unwrap().saturating_sub(heard.at);
    assert!(left > 3_600 && left < 24 * 60 * 60, "{left}");
    assert_eq!(page(&s.world, "/begin-push", &json!(null)).1["key"], key, "one key");
    assert_eq!(heard.raw.len(), 86 + 512 + 16);
    let message = browser.reads(&heard.raw);
    let shown = get(&s.world, "/approvals")[0].clone();
    let digest = &shown["digest"].as_str().unwrap_or_else(|| panic!("{shown}"))[..6];
    let to = format!("{}/a/1?d={digest}", s.key.origin);
    assert_eq!((&message["web_push"], &message["app_badge"]), (&json!(8030), &json!(1)));
    let notification = &message["notification"];
    assert_eq!(notification["navigate"], to);
    assert_eq!((&notification["tag"], &notification["silent"]), (&json!("approval-1"), &json!(false)));
    let title = notification["title"].as_str().unwrap();
    assert!(title.starts_with("Approval 1 waits (risk "), "{title}");
    assert_eq!(notification["body"], format!("asked by orch:a · {digest}"));
    assert!(!message.to_string().contains("words of an agent") && notification.get("actions").is_none());
    // Its end takes its place.
    assert!(at_the_terminal(&s.world, "approve 1").status.success());
    let heard = s.service.hears(2).remove(1);
    let message = browser.reads(&heard.raw);
    let notification = &message["notification"];
    assert_eq!(notification["title"], "Approval 1: approved at the desk");
    assert_eq!((&notification["tag"], &notification["silent"]), (&json!("approval-1"), &json!(true)));
    assert_eq!((heard.header("topic"), &message["app_badge"]), ("approval-1", &json!(0)));
    assert!(notification["body"].as_str().unwrap().starts_with("by user:"), "{notification}");
    eventually("it is owed nothing", || s.row()["owed"] == 0);
    assert_eq!(s.row()["last"]["delivered"], true);
    // The browser's address is its secret: no list, and no journal has it.
    let lists =
        [get(&s.world, "/push").to_string(), said(s.world.command(&["push", "list"])).1, journal(&s.world)];
    assert!(lists.iter().all(|it| !it.contains("a-secret-of-the-browser")), "{lists:?}");
    assert!(
        lists[0].contains("my phone") && lists[1].contains("my phone") && lists[2].contains("push_added")
    );
    let (code, text) = said(s.world.command(&["journal", "verify"]));
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_browser_that_its_service_knows_no_more_is_forgotten() {
    for answer in ["404 Not Found", "410 Gone"] {
        let mut s = setup("");
        s.subscribe("phone");
        s.service.be(status(answer));
        s.asks("echo");
        eventually("it is forgotten", || s.is_told_no_more());
        let count = s.service.heard().len();
        assert_eq!(count, 1, "{answer}");
        assert!(journal(&s.world).contains("push_removed"), "{answer}");
        // What comes later goes nowhere.
        s.asks("echo again");
        let about = get(&s.world, "/about");
        assert_eq!((about["approvals"].as_u64(), s.service.heard().len()), (Some(2), 1));
    }
}

#[test]
fn a_service_that_wants_less_or_is_out_of_order_is_asked_later_and_a_redirect_is_not_followed() {
    let mut s = setup("");
    let browser = s.subscribe("phone");
    let elsewhere = Receiver::plain();
    let wait =
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    s.service.be(Mood::Says(wait.into()));
    s.asks("echo");
    s.service.hears(1);
    eventually("it says so", || {
        s.row()["last"]["says"].as_str().is_some_and(|it| it.contains("wants fewer"))
    });
    assert_eq!(s.row()["owed"], 1);
    let first = s.service.heard()[0].at;
    s.service.be(status("500 Internal Server Error"));
    let again = s.service.hears(2)[1].at;
    assert!(again >= first + 2, "as long as it has asked for: {first} {again}");
    let led = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        elsewhere.url()
    );
    s.service.be(Mood::Says(led));
    let (code, text) = said(s.world.command(&["push", "test", "phone"]));
    assert!(code != 0 && text.contains("follows no redirect"), "{text}");
    assert!(elsewhere.heard().is_empty());
    s.service.be(status("403 Forbidden"));
    let (code, text) = said(s.world.command(&["push", "test", "phone"]));
    assert!(code != 0 && text.contains("`subject` in [push]"), "{text}");
    s.service.be(status("201 Created"));
    let (code, text) = said(s.world.command(&["push", "test", "phone", "--json"]));
    assert!(code == 0 && text.contains("status 201"), "{text}");
    let sample = s.service.heard().pop().unwrap();
    assert_eq!(browser.reads(&sample.raw)["notification"]["title"], "This is a sample");
    assert_eq!(s.row()["owed"], 1, "a sample settles nothing");
}

#[test]
fn a_browser_puts_a_question_off_by_its_own_address_and_takes_nothing_away_by_it() {
    let mut s = setup("");
    s.subscribe("phone");
    s.asks("echo");
    s.service.hears(1);
    eventually("it was told", || s.row()["owed"] == 0);
    let later = |endpoint: &str, approval: u64| {
        page(&s.world, "/snooze-push", &json!({ "endpoint": endpoint, "approval": approval }))
    };
    assert_eq!(later("https://hooks.example/other", 1).0, 404);
    assert_eq!(later(&s.endpoint(), 2).0, 404);
    for _ in 0..3 {
        let (code, said) = later(&s.endpoint(), 1);
        assert!(code == 200 && said["until"].is_string(), "{said}");
    }
    assert_eq!((s.row()["owed"].clone(), s.service.heard().len()), (json!(1), 1), "later, and once");
    // The question waits, and its end is told at once.
    assert!(at_the_terminal(&s.world, "deny 1 --reason no").status.success());
    assert_eq!(s.service.hears(2)[1].header("topic"), "approval-1");
}

#[test]
fn a_service_that_hangs_holds_nothing_up_and_what_is_owed_is_sent_after_a_kill() {
    let mut s = setup("");
    let browser = s.subscribe("phone");
    s.service.be(Mood::Silent);
    s.asks("echo");
    s.service.hears(1);
    assert_eq!(get(&s.world, "/about")["approvals"], 1);
    s.daemon.kill();
    s.service.be(status("201 Created"));
    s.daemon = s.world.start();
    let heard = s.service.hears(2);
    assert_eq!(browser.reads(&heard[1].raw)["notification"]["tag"], "approval-1");
    eventually("it is owed nothing", || s.row()["owed"] == 0);
}

#[test]
fn an_offer_is_checked_before_anything_is_signed_and_sends_nothing() {
    let s = setup("");
    let browser = PushBrowser::new();
    let right = s.offer(&browser, &s.endpoint());
    let with = |name: &str, value: &str| {
        let mut offer = right.clone();
        offer[name] = json!(value);
        offer
    };
    let short = &browser.p256dh()[..86];
    // A point that is not on the curve.
    let other = format!("{short}{}", if browser.p256dh().ends_with('A') { 'E' } else { 'A' });
    for (offer, word) in [
        (with("endpoint", "https://evil.example/x"), "is no push service that is known"),
        (with("endpoint", &format!("https://127.0.0.1:{}/x", s.service.port)), "has no name of a host"),
        (with("endpoint", &format!("http://hooks.example:{}/x", s.service.port)), "https://"),
        (with("p256dh", short), "p256dh is not 65 bytes"),
        (with("p256dh", &other), "p256dh"),
        (with("auth", "AAAA"), "auth is not 16 bytes"),
        (with("key", &browser.p256dh()), "another key"),
        (with("origin", "https://evil.example"), "no page of this daemon"),
    ] {
        let (code, said) = page(&s.world, "/offer-push", &offer);
        assert!(code >= 400 && said["message"].as_str().unwrap().contains(word), "{offer}: {code} {said}");
    }
    assert_eq!(page(&s.world, "/offer-push", &json!({ "endpoint": "x" })).0, 422);
    assert!(s.service.heard().is_empty() && s.is_told_no_more());
}

#[test]
fn without_the_signature_of_a_known_passkey_no_browser_is_told_however_often_one_is_offered() {
    let mut s = setup("");
    let browser = PushBrowser::new();
    let offer = s.offer(&browser, &s.endpoint());
    let (_, offered) = page(&s.world, "/offer-push", &offer);
    let arguments = json!({ "name": "spy", "offer": offered["offer"] });
    // As any process of the user can: with a key of its own, under the id of a known one, too.
    let asked = json!({ "verb": "subscribe-push", "arguments": arguments });
    let mut own = Authenticator::new(Kind::Es256);
    own.origin.clone_from(&s.key.origin);
    for id in [own.id.clone(), s.key.id.clone()] {
        own.id = id;
        let (_, challenge) = page(&s.world, "/word-challenge", &asked);
        let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut own, &challenge) });
        assert_eq!(page(&s.world, "/signed-word", &signed).0, 403);
    }
    // A signature for another offer, or none that there is.
    let (code, said) = s.sign("subscribe-push", &json!({ "name": "spy", "offer": "0".repeat(64) }));
    assert_eq!((code, &said["error"]), (410, &json!("offer_gone")));
    for wrong in [
        json!({ "name": "", "offer": "x" }),
        json!({ "name": "a\u{202e}b", "offer": "x" }),
        json!({ "name": "x" }),
    ] {
        assert_eq!(s.sign("subscribe-push", &wrong).0, 400, "{wrong}");
    }
    // No path of the own API does it without one.
    assert_eq!(page(&s.world, "/subscribe-push", &arguments).0, 404);
    let mut taken = 0;
    for n in 0..10_000 {
        let (code, said) = page(&s.world, "/offer-push", &{
            let mut offer = offer.clone();
            offer["endpoint"] = json!(format!("{}/{n}", s.endpoint()));
            offer
        });
        taken += usize::from(code == 200);
        assert!(code == 200 || (code, &said["error"]) == (429, &json!("too_often")), "{code} {said}");
    }
    assert!(taken <= CHALLENGES_PER_MINUTE_MAX, "{taken}");
    s.asks("echo");
    let about = get(&s.world, "/about");
    assert_eq!((about["approvals"].as_u64(), s.is_told_no_more()), (Some(1), true));
    assert!(s.service.heard().is_empty());
}

#[test]
fn a_person_removes_a_browser_at_a_terminal_or_by_signature_and_an_agent_neither_does_nor_has_samples_sent() {
    let mut s = setup("");
    s.subscribe("phone");
    let id = s.row()["id"].clone();
    for (path, expected) in [("/remove-push", 403), ("/test-push", 403)] {
        let headers = [("x-provost-agent", "coder")];
        let (code, said) =
            crate::support::own_api::own(&s.world, ("POST", path), &headers, &json!({ "id": id }));
        assert_eq!(code, expected, "{path}: {said}");
    }
    // A process that is not at a terminal.
    let (code, text) = said(s.world.command(&["push", "remove", "phone"]));
    assert!(code != 0 && text.contains("only a person ends it"), "{text}");
    let output = at_the_terminal(&s.world, "push remove phone");
    assert!(String::from_utf8_lossy(&output.stdout).contains("gets no more notices"), "{output:?}");
    assert!(s.is_told_no_more() && s.service.heard().is_empty());
    let (code, text) = said(s.world.command(&["push", "list"]));
    assert!(code == 0 && text.contains("no browser is told"), "{text}");
    s.subscribe("desk");
    let id = s.row()["id"].clone();
    let (code, said) = s.sign("remove-push", &json!({ "id": id }));
    assert_eq!(code, 200, "{said}");
    assert!(s.is_told_no_more());
}

#[test]
fn without_a_subject_the_error_says_what_to_do_and_with_another_key_a_browser_is_forgotten() {
    let world = World::new();
    world.configure("");
    let _daemon = world.start();
    let (code, said_) = page(&world, "/begin-push", &json!(null));
    assert_eq!(code, 422, "{said_}");
    assert!(said_["message"].as_str().unwrap().contains("set `subject` in [push]"), "{said_}");
    assert!(said(world.command(&["push", "list"])).1.contains("set `subject` in [push]"));
    for wrong in [
        "mailto:me@localhost",
        "https://localhost",
        "https://provost.localhost",
        "me@example.org",
        "https://10.0.0.1",
    ] {
        world.configure(&format!("[push]\nsubject = \"{wrong}\"\n"));
        let (code, text) = said(world.command(&["daemon", "reload"]));
        assert!(code != 0 || text.contains("subject"), "{wrong}: {text}");
        assert_eq!(page(&world, "/begin-push", &json!(null)).0, 422, "{wrong}");
    }
    let mut s = setup("");
    s.subscribe("phone");
    assert_eq!(said(s.world.command(&["secret", "remove", "push-key"])).0, 0);
    assert_eq!(page(&s.world, "/begin-push", &json!(null)).0, 200, "another one is made");
    s.asks("echo");
    eventually("it is forgotten", || s.is_told_no_more());
    assert!(s.service.heard().is_empty() && journal(&s.world).contains("another key"));
}

#[test]
fn words_of_an_agent_go_along_where_the_settings_say_so_marked_and_cut_as_text() {
    let mut s = setup("detail = \"full\"\nkinds = [\"approval\"]\n");
    let browser = s.subscribe("phone");
    let many = "\u{1f431}\u{7}".repeat(3_000);
    let hostile =
        format!("echo </pre><script>alert(1)</script> \u{1b}[2J\u{202e} \"}},{{\"web_push\":1 {many}");
    s.asks(&hostile);
    let heard = s.service.hears(1).remove(0);
    assert!(heard.raw.len() <= 4096 && (heard.raw.len() - 86 - 16).is_multiple_of(512));
    let message = browser.reads(&heard.raw);
    let body = message["notification"]["body"].as_str().unwrap();
    assert!(body.contains("unchecked") && body.contains("<script>alert(1)</script>"), "{body}");
    assert!(!body.contains('\u{1b}') && !body.contains('\u{202e}') && body.contains("\\u{202e}"), "{body}");
    assert_eq!(message["web_push"], 8030);
    assert!(within(Duration::from_secs(10), || s.row()["owed"] == 0));
    // Of an end it is told nothing.
    assert!(at_the_terminal(&s.world, "deny 1 --reason no").status.success());
    assert_eq!(s.row()["owed"], 0);
    assert_eq!(s.service.heard().len(), 1);
}
