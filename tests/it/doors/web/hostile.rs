//! Attacks upon what a person does on the page: an agent whose words, names and paths are shown, two who sign at once, and pages that
//! would have something signed that is not shown.

use std::sync::Barrier;

use serde_json::{Value, json};

use super::{OPEN, at};
use crate::support::acting::{enrol, open, write};
use crate::support::authenticator::{Authenticator, Kind};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::{answered, asks, assertion, enrol as enrolled, get, rules_by, waits};
use crate::support::rules::ALLOW;
use crate::support::signing_desk::SigningDesk;
use crate::support::{Daemon, World};

/// An agent's text that tries to be more than words.
const HOSTILE: &str = "</q><img src=x onerror=\"globalThis.hacked = 1\"><b>bold</b> \u{202e}desrever \u{200b} {{x}} javascript:alert(1)";

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(ALLOW);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Says something at the own API as an agent.
fn says(world: &World, agent: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = own(world, ("POST", path), &[("x-provost-agent", agent)], body);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

#[test]
fn words_and_names_of_agents_are_text_in_all_that_a_person_takes_chooses_and_opens() {
    let (world, _daemon, door) = world();
    let file = "src/<b>x<\u{2215}b>\u{202e}yp.py";
    world.write(file, "x = 1\n");
    world.write("-rf $(touch hacked) 'x.py", "x = 1\n");
    says(&world, "feat-a", "/declare", &json!({ "description": HOSTILE, "files": [file] }));
    says(&world, "feat-a", "/join-crew", &json!({ "tool": HOSTILE }));
    for path in [file, "-rf $(touch hacked) 'x.py"] {
        says(&world, "feat-a", "/claim", &json!({ "path": path }));
        says(&world, "feat-a", "/lock", &json!({ "symbol": path, "reason": HOSTILE }));
    }
    says(
        &world,
        "feat-a",
        "/delegate",
        &json!({ "goal": format!("sleep 600; # {HOSTILE}"), "worker": "coder" }),
    );
    // What is copied into a terminal does what it says and nothing else.
    let claims = door.look("/rows/locks").json().to_string();
    assert!(claims.contains("provost claim release --force -- '-rf $(touch hacked) "), "{claims}");
    let seq = get(&world, "/events?after=0")["events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["kind"]["intent_declared"].is_object())
        .map_or_else(|| panic!("no intent"), |it| it["seq"].clone());
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    for path in ["/locks", "/intents", "/agents", "/e", &format!("/e/{seq}"), "/tasks"] {
        tab.go(&at(door, path));
        tab.until(path, "document.querySelector('tr[data-key], pre.words')");
        tab.eval("document.querySelectorAll('details').forEach((it) => { it.open = true; }); true");
        if path == "/tasks" {
            tab.eval("document.querySelector('input[data-does=choose]').click()");
            tab.shows("1 task is chosen");
        }
        assert_eq!(tab.eval("typeof globalThis.hacked"), json!("undefined"), "{path}");
        let made = tab.eval("document.querySelectorAll('main img, main b, main i, main iframe, main a[href^=javascript]').length");
        assert_eq!(made, json!(0), "{path}");
        let raw = tab.eval("/[\\u001b\\u202e\\u200b]/.test(document.body.textContent)");
        assert_eq!(raw, json!(false), "{path}: what hides is made visible");
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    assert!(!world.repo().join("hacked").exists());
}

#[test]
fn a_page_that_has_another_agent_or_task_signed_than_it_shows_gets_nothing_done() {
    let (world, _daemon, door) = world();
    says(&world, "feat-a", "/lock", &json!({ "symbol": "@thing:a" }));
    says(&world, "feat-b", "/lock", &json!({ "symbol": "@thing:b" }));
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    let before = authenticator.passkeys()[0]["signCount"].clone();
    // Something between the page and the daemon changes whom the challenge is about.
    tab.before(
        "{ const real = globalThis.fetch; globalThis.fetch = (path, asked) => real(path, String(path).endsWith('/word-challenge') \
         ? { ...asked, body: asked.body.replaceAll('feat-a', 'feat-b') } : asked); }",
    );
    tab.go(&at(door, "/agents?q=feat-a"));
    open(&tab, "release-agent");
    write(&tab, "release-agent", "it has gone");
    tab.click("button[data-does=release-agent]");
    tab.until("the refusal", "document.querySelector('.here .notice.bad')");
    assert_eq!(authenticator.passkeys()[0]["signCount"], before, "{}", tab.text());
    assert_eq!(get(&world, "/locks")["locks"].as_array().unwrap().len(), 2);
}

#[test]
fn of_two_people_who_sign_at_once_one_counts_and_the_other_is_told() {
    let mut desk = SigningDesk::new(&rules_by("\"passkey\""));
    let mut other = Authenticator::new(Kind::Ed25519);
    other.origin = desk.key.origin.clone();
    let (status, said) = enrolled(&desk.world, &mut other, "desk", Some(&mut desk.key));
    assert_eq!(status, 200, "{said}");
    // One process has ten signatures looked at in a minute; the two keys took three.
    for round in 0..3 {
        let approval = asks(&desk.world, &format!("round {round}"));
        let challenge = |grant: bool| {
            let asked = json!({ "approval": approval, "grant": grant, "note": "as we said" });
            desk.post("/word-challenge", &asked).json()
        };
        let (yes, no) = (challenge(true), challenge(false));
        let (yes_signed, no_signed) = (assertion(&mut desk.key, &yes), assertion(&mut other, &no));
        let both = Barrier::new(2);
        let (yes, no) = std::thread::scope(|scope| {
            let say = |challenge: Value, signed: Value| {
                let (both, desk) = (&both, &desk);
                scope.spawn(move || {
                    both.wait();
                    desk.hand_in(&challenge, &signed)
                })
            };
            let (yes, no) = (say(yes, yes_signed), say(no, no_signed));
            (yes.join().unwrap(), no.join().unwrap())
        });
        assert!((yes.status == 200) != (no.status == 200), "one of them counts: {yes:?} {no:?}");
        let verdict = if yes.status == 200 { "granted" } else { "denied" };
        assert_eq!(answered(&desk.world, approval)["kind"]["approval_answered"]["verdict"], verdict);
        let late = if yes.status == 200 { no } else { yes };
        assert!((404..=409).contains(&late.status), "{late:?}");
        assert!(!waits(&desk.world, approval));
        let view = desk.door.look(&format!("/rows/approval?id={approval}")).json().to_string();
        assert!(view.contains(&format!("{verdict} (proof: passkey, ")), "{view}");
    }
}
