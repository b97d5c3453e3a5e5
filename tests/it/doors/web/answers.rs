//! Answers by passkey on the page, in a real browser with an authenticator: enrolled there, answered there, and nothing that was not
//! shown.

use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::browser::{Browser, Tab, Virtual};
use crate::support::loopback_client::Http;
use crate::support::passkeys::{answered, asks, code, get, rules_by, waits};
use crate::support::source::project_root;
use crate::support::terminal::at_the_terminal;
use crate::support::{Daemon, World, eventually};

/// A world whose page is open, and whose rule lets these answer.
fn world_by(by: &str) -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(&rules_by(by));
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Types a code and a name into the page of passkeys, and presses the button.
fn begin(tab: &Tab<'_>, door: Http, code: &str, name: &str) {
    tab.go(&at(door, "/passkeys"));
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(code);
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write(name);
    tab.click("button[data-does=enrol]");
}

/// Enrols the first passkey on the page.
fn enrol<'a>(world: &World, tab: &'a Tab<'a>, door: Http) -> Virtual<'a> {
    let authenticator = tab.authenticator("internal");
    begin(tab, door, &code(world), "phone");
    tab.shows("phone answers from now on");
    authenticator
}

fn is_clean(tab: &Tab<'_>) {
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    assert_eq!(tab.eval("document.cookie"), json!(""));
}

#[test]
fn a_passkey_that_was_enrolled_on_the_page_answers_there_with_a_note() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let first = asks(&world, "true");
    tab.go(&at(door, "/a/1"));
    tab.shows("No passkey is enrolled. Nothing else answers it");
    assert!(tab.text().contains("provost passkey add"));
    assert!(
        !tab.is("document.querySelector('button[data-does=approve]')"),
        "no button that could not answer"
    );
    enrol(&world, &tab, door);
    tab.shows("a code at a terminal");
    tab.picture("passkeys");
    tab.go(&at(door, "/a/1"));
    tab.shows("Signs for exactly what is shown here: phone.");
    tab.picture("answer");
    tab.click("button[data-does=approve]");
    tab.shows("It does not wait any more: granted (proof: passkey, phone), by user:");
    assert!(answered(&world, first).to_string().contains("\"proof\":\"passkey\""));
    // A denial has a reason, which reaches the asker as it was written.
    let second = asks(&world, "false");
    tab.go(&at(door, &format!("/a/{second}")));
    tab.click("button[data-does=deny]");
    tab.shows("Say why: the asker is told");
    let note = "nicht am\u{2028}Freitag \u{1f431} \"quoted\" \\ \n\t ü";
    tab.until("the note has the focus", "document.activeElement.tagName === 'TEXTAREA'");
    tab.write(note);
    tab.click("button[data-does=deny]");
    tab.shows("denied (proof: passkey, phone)");
    assert_eq!(signed_note(&world, second), note);
    let known = get(&world, "/passkeys");
    let counter = &answered(&world, second)["kind"]["approval_answered"]["signed"]["counter"];
    assert_eq!(known["passkeys"][0]["counter"], *counter, "{known}");
    let output = world.command(&["journal", "verify"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    is_clean(&tab);
}

/// The note that was signed with an answer.
fn signed_note(world: &World, approval: u64) -> String {
    let event = answered(world, approval);
    let text = event["kind"]["approval_answered"]["signed"]["transcript"].as_str().unwrap();
    let transcript: Value = serde_json::from_str(text).unwrap();
    transcript[3]["note"].as_str().unwrap().to_owned()
}

#[test]
fn a_touch_without_verification_signs_nothing() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, door);
    let approval = asks(&world, "true");
    authenticator.verifies(false);
    tab.go(&at(door, &format!("/a/{approval}")));
    tab.click("button[data-does=approve]");
    tab.shows("its user was not verified");
    assert!(waits(&world, approval));
    authenticator.verifies(true);
    tab.click("button[data-does=approve]");
    tab.shows("granted (proof: passkey, phone)");
}

/// Changes what comes for a path, by this expression over its text; `globalThis.off` in the store of the tab ends that.
fn changing(path: &str, expression: &str) -> String {
    format!(
        "{{ const real = globalThis.fetch; globalThis.fetch = async (path, asked) => {{ \
         const answer = await real(path, asked); \
         if (!String(path).startsWith('{path}') || !sessionStorage.getItem('lie')) return answer; \
         const text = await answer.text(); \
         return new Response({expression}, {{ status: answer.status }}); }}; }}"
    )
}

#[test]
fn what_is_not_what_waits_is_not_signed_and_a_change_turns_the_buttons_off() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, door);
    let counter = || authenticator.passkeys()[0]["signCount"].as_u64().unwrap();
    let before = counter();
    let approval = asks(&world, "remove-the-cache");
    tab.before(&changing("/rows/approval", "text.replaceAll('remove-the-cache', 'look-at-the-cache')"));
    // Another text than the one that waits: its digest is refused, and nothing is signed.
    tab.eval("sessionStorage.setItem('lie', '1')");
    tab.go(&at(door, &format!("/a/{approval}")));
    tab.shows("look-at-the-cache");
    tab.click("button[data-does=approve]");
    tab.until("the refusal", "document.querySelector('.answer .notice.bad')");
    assert!(waits(&world, approval) && counter() == before, "{}", tab.text());
    // The text changes while it is read: the buttons go, and the difference is there.
    // The page has asked again after its refusal, perhaps before this; a change that is real comes with an event.
    tab.eval("sessionStorage.removeItem('lie'); document.dispatchEvent(new Event('provost-again'))");
    tab.shows("changed while it was open");
    tab.shows("What has changed");
    let text = tab.text();
    assert!(text.contains("look-at-the-cache") && text.contains("remove-the-cache"), "{text}");
    assert!(!tab.is("document.querySelector('button[data-does=approve]')"), "{text}");
    tab.picture("changed");
    tab.click("button[data-does=read-again]");
    tab.until("the buttons", "document.querySelector('button[data-does=approve]')");
    assert!(!tab.text().contains("changed while it was open"));
    assert!(waits(&world, approval) && counter() == before);
    is_clean(&tab);
}

#[test]
fn a_daemon_that_asks_for_another_word_gets_no_signature() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, door);
    let before = authenticator.passkeys()[0]["signCount"].clone();
    let approval = asks(&world, "true");
    let lies = [
        "text.replace('\\\\\"grant\\\\\":false', '\\\\\"grant\\\\\":true')",
        "text.replace('\\\\\"approval\\\\\":', '\\\\\"approval\\\\\":1')",
        "text.replace(/\"challenge\":\"..../, '\"challenge\":\"AAAA')",
        "text.replace('provost-word-v1', 'provost-word-v2')",
    ];
    for (n, lie) in lies.iter().enumerate() {
        let tab = if n == 0 { &tab } else { &browser.open(&at(door, "/")) };
        tab.before(&changing("/word-challenge", lie));
        tab.eval("sessionStorage.setItem('lie', '1')");
        tab.go(&at(door, &format!("/a/{approval}")));
        tab.until("the note", "document.querySelector('textarea')");
        tab.eval("document.querySelector('textarea').focus()");
        tab.write("no");
        tab.click("button[data-does=deny]");
        tab.shows("something else than what is shown here. Nothing was signed");
    }
    assert_eq!(authenticator.passkeys()[0]["signCount"], before);
    assert!(waits(&world, approval));
}

#[test]
fn what_was_sent_once_counts_once_and_a_counter_that_went_back_is_refused() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, door);
    let copy = authenticator.passkeys()[0].clone();
    let (first, second) = (asks(&world, "true"), asks(&world, "false"));
    tab.before(
        "{ const real = globalThis.fetch; globalThis.fetch = (path, asked) => { \
         if (path === '/signed-word') sessionStorage.setItem('sent', asked.body); return real(path, asked); }; }",
    );
    tab.go(&at(door, &format!("/a/{first}")));
    tab.click("button[data-does=approve]");
    tab.shows("granted (proof: passkey, phone)");
    let again = tab.eval(
        "fetch('/signed-word', { method: 'POST', headers: { 'Content-Type': 'application/json' }, \
         body: sessionStorage.getItem('sent') }).then(async (it) => [it.status, (await it.json()).error])",
    );
    assert_eq!(again, json!([410, "challenge_gone"]));
    // A copy of the key, made before it was used.
    authenticator.replace(&copy);
    tab.go(&at(door, &format!("/a/{second}")));
    tab.click("button[data-does=approve]");
    tab.shows("counter went back: a copy of the key may be in use");
    assert!(waits(&world, second));
    eventually("the record", || {
        get(&world, "/events?after=0&limit=1000").to_string().contains("passkey.counter")
    });
}

#[test]
fn one_that_was_answered_elsewhere_in_between_says_by_whom() {
    let (world, _daemon, door) = world_by("\"human\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let authenticator = enrol(&world, &tab, door);
    let approval = asks(&world, "true");
    authenticator.is_touched(false);
    tab.go(&at(door, &format!("/a/{approval}")));
    tab.click("button[data-does=approve]");
    tab.shows("Your browser asks for your passkey");
    // Another person is faster, at a terminal.
    let person = at_the_terminal(&world, &format!("deny {approval} --reason no"));
    assert!(person.status.success(), "{person:?}");
    tab.shows("It does not wait any more: denied (proof: weak-human), by user:");
    authenticator.is_touched(true);
    // And in another tab, where the answer was asked for before.
    let second = asks(&world, "false");
    let other = browser.open(&at(door, &format!("/a/{second}")));
    other.shows("Signs for exactly what is shown here");
    tab.ask("Page.bringToFront", &json!({}));
    tab.go(&at(door, &format!("/a/{second}")));
    tab.click("button[data-does=approve]");
    tab.shows("granted (proof: passkey, phone)");
    other.ask("Page.bringToFront", &json!({}));
    other.shows("granted (proof: passkey, phone)");
    assert!(!other.is("document.querySelector('button[data-does=approve]')"));
}

#[test]
fn a_note_survives_a_reload_and_a_daemon_that_was_killed_in_between() {
    let port = crate::support::hub::free_port();
    let world = World::new();
    world.configure(&format!("[web]\nenabled = true\nport = {port}\n"));
    world.rule(&rules_by("\"passkey\""));
    let (mut daemon, door) = (world.start(), Http { port });
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    enrol(&world, &tab, door);
    let approval = asks(&world, "true");
    // The owner takes their time.
    tab.before(
        "{ const real = navigator.credentials.get.bind(navigator.credentials); \
         navigator.credentials.get = async (asked) => { globalThis.asking = true; \
         while (!globalThis.touched) await new Promise((go) => setTimeout(go, 20)); return real(asked); }; }",
    );
    tab.go(&at(door, &format!("/a/{approval}")));
    tab.until("the note", "document.querySelector('textarea')");
    tab.eval("document.querySelector('textarea').focus()");
    tab.write("not before noon");
    tab.go(&at(door, &format!("/a/{approval}")));
    tab.until("the note is back", "document.querySelector('textarea')?.value === 'not before noon'");
    // The daemon goes while the browser waits for the owner.
    tab.click("button[data-does=deny]");
    tab.until("a challenge", "globalThis.asking");
    daemon.kill();
    tab.until("stale", "document.body.dataset.live === 'stale'");
    assert!(tab.is("[...document.querySelectorAll('button[data-action]')].every((it) => it.disabled)"));
    tab.eval("globalThis.touched = true");
    tab.shows("The daemon does not answer");
    daemon = world.start();
    tab.until("live again", "document.body.dataset.live === 'live'");
    // The note stays, also through the change of daemons.
    assert!(tab.is("document.querySelector('textarea').value === 'not before noon'"), "{}", tab.text());
    // A challenge of the daemon before is none of the one that comes after it.
    tab.eval("globalThis.touched = globalThis.asking = false");
    tab.click("button[data-does=deny]");
    tab.until("a challenge", "globalThis.asking");
    daemon.kill();
    tab.until("stale", "document.body.dataset.live === 'stale'");
    daemon = world.start();
    tab.until("live again", "document.body.dataset.live === 'live'");
    tab.eval("globalThis.touched = true");
    tab.shows("made before the daemon's start");
    assert!(waits(&world, approval));
    tab.click("button[data-does=deny]");
    tab.shows("denied (proof: passkey, phone)");
    assert_eq!(signed_note(&world, approval), "not before noon");
    daemon.stop();
}

#[test]
fn keys_alone_answer_and_a_row_of_low_risk_shows_the_whole_before_it_does() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, door);
    let (first, second) = (asks(&world, "true"), asks(&world, "false"));
    tab.go(&at(door, &format!("/a/{first}")));
    tab.until("the button", "document.querySelector('button[data-does=approve]')");
    tab.press("d");
    tab.until("the note", "document.activeElement.tagName === 'TEXTAREA'");
    tab.write("a key");
    tab.press_code("Tab", 9);
    tab.until("the button", "document.activeElement.dataset.does === 'deny'");
    tab.press_code("Enter", 13);
    tab.shows("denied (proof: passkey, phone)");
    // In the list: the row, its commands, the whole of it, and the answer.
    tab.go(&at(door, "/"));
    tab.shows(&format!("approval {second}"));
    tab.press("j");
    tab.press(".");
    tab.until("its commands", "document.activeElement.tagName === 'SUMMARY'");
    tab.click("tr[data-key] button[data-does=answer-here]");
    tab.until(
        "the whole of it",
        "document.querySelector('tr[data-key] pre.words')?.textContent.includes('false')",
    );
    let text = tab.text();
    for there in ["What the daemon knows", "test.ask", "An agent has written this", "Signs for exactly"] {
        assert!(text.contains(there), "{there}: {text}");
    }
    tab.click("tr[data-key] button[data-does=approve]");
    tab.shows("All is calm");
    assert!(answered(&world, second).to_string().contains("granted"));
    is_clean(&tab);
}

#[test]
fn a_further_passkey_needs_a_known_one_and_a_signature_revokes() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let phone = enrol(&world, &tab, door);
    let other = tab.authenticator("usb");
    phone.is_touched(false);
    // Each signature waits until it is let.
    tab.before(
        "{ const real = navigator.credentials.get.bind(navigator.credentials); let asked = 0; \
         navigator.credentials.get = async (it) => { const mine = ++asked; \
         while ((globalThis.let ?? 0) < mine) await new Promise((go) => setTimeout(go, 20)); return real(it); }; }",
    );
    let good = code(&world);
    begin(&tab, door, "WRONGCODE222", "key");
    tab.shows("this is not the code");
    begin(&tab, door, &good, "key");
    tab.shows("The new passkey signs once");
    // A signature that does not come is asked for again, and nothing has to be typed again.
    other.verifies(false);
    tab.eval("globalThis.let = 1");
    tab.until("once more", "document.querySelector('button[data-does=sign-again]')?.checkVisibility()");
    other.verifies(true);
    tab.eval("globalThis.let = 2");
    tab.click("button[data-does=sign-again]");
    tab.shows("Now a passkey that you have already signs for the new one.");
    assert_eq!(known(&world), ["phone"]);
    other.is_touched(false);
    phone.is_touched(true);
    tab.eval("globalThis.let = 3");
    tab.shows("key answers from now on");
    assert_eq!(known(&world), ["phone", "key"]);
    tab.shows("the signature of another one");
    // One revokes the other; what is revoked signs nothing.
    tab.eval("globalThis.let = 9");
    tab.until("the rows", "document.querySelectorAll('button[data-does=revoke]').length === 2");
    tab.eval(
        "[...document.querySelectorAll('button[data-does=revoke]')].find((it) => it.textContent.includes('key by')).click()",
    );
    tab.shows("key, revoked");
    assert_eq!(known(&world), ["phone"]);
    is_clean(&tab);
}

/// The names of the passkeys that count.
fn known(world: &World) -> Vec<String> {
    let all = get(world, "/passkeys");
    let good = all["passkeys"].as_array().unwrap().iter().filter(|it| it["revoked_at"] == Value::Null);
    good.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

/// The words other than answers that a passkey has signed, by verb, with their arguments.
fn words(world: &World) -> Vec<(String, Value)> {
    let events = get(world, "/events?after=0&limit=1000");
    let said = events["events"].as_array().unwrap().iter().filter_map(|it| it["kind"].get("word_said"));
    said.map(|it| (it["verb"].as_str().unwrap().to_owned(), it["arguments"].clone())).collect()
}

#[test]
fn what_a_person_does_on_the_page_is_signed_and_on_record() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    world.put(&world.repo().join("src/auth.py"), "def login():\n    return 1\n");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, door);
    let lock = ["lock", "acquire", "src/auth.py:login", "--reason", "a new form"];
    let output = world.command(&lock).env("PROVOST_AGENT", "agent-a").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let approval = asks(&world, "true");
    let task = get(&world, "/approvals")[0]["task"].as_str().unwrap().to_owned();
    // A task that waits ends, and with it the question about it.
    tab.go(&at(door, &format!("/t/{task}")));
    tab.click("button[data-does=cancel-task]");
    tab.shows("cancelled");
    assert!(!waits(&world, approval));
    // A lock of an agent, for a reason.
    tab.go(&at(door, "/locks"));
    tab.until("its row", "document.querySelector('tr[data-key] details')");
    tab.eval("document.querySelector('tr[data-key] details').open = true");
    tab.click("button[data-does=unlock]");
    tab.shows("Say why: it is put on record");
    tab.until("the reason", "document.activeElement.tagName === 'INPUT'");
    tab.write("it has been silent for an hour");
    tab.click("button[data-does=unlock]");
    tab.shows("No agent holds anything");
    // A worker is switched off, and on again.
    for (state, other) in [("off", "true"), ("ready", "false")] {
        tab.go(&at(door, "/health"));
        tab.until("its row", "document.querySelector('button[data-does=switch-worker]')");
        tab.eval("document.querySelector('button[data-does=switch-worker]').closest('details').open = true");
        tab.click("button[data-does=switch-worker]");
        let off = format!(
            "document.querySelector('button[data-does=switch-worker]').closest('tr').textContent.includes('Resume') === {other}"
        );
        tab.until(state, &off);
    }
    // An agent's tokens end.
    crate::support::tokens::mint(&world, "agent-a");
    let tokens =
        || String::from_utf8(world.command(&["token", "list", "--json"]).output().unwrap().stdout).unwrap();
    assert!(tokens().contains("agent-a"));
    tab.go(&at(door, "/agents"));
    tab.until("its row", "document.querySelector('button[data-does=revoke-tokens]')");
    tab.eval("document.querySelector('button[data-does=revoke-tokens]').closest('details').open = true");
    tab.click("button[data-does=revoke-tokens]");
    tab.shows("Done.");
    assert!(!tokens().contains("agent-a"), "{}", tokens());
    let said = words(&world);
    let verbs: Vec<&str> = said.iter().map(|(verb, _)| verb.as_str()).collect();
    assert_eq!(verbs, ["cancel-task", "unlock", "switch-worker", "switch-worker", "revoke-tokens"]);
    assert_eq!(said[1].1["reason"], "it has been silent for an hour");
    let output = world.command(&["journal", "verify"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let file = world.path("journal.jsonl");
    let export = ["journal", "export", "--output", file.to_str().unwrap()];
    assert!(world.command(&export).output().unwrap().status.success());
    let script = project_root().join("scripts/verify-signed-answers");
    let checked = std::process::Command::new("python3").arg(script).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(text.contains(" 5 of other verbs"), "{checked:?}");
    is_clean(&tab);
}

/// The part of a document's section that is in a fence of this kind.
fn fence<'a>(section: &'a str, kind: &str) -> &'a str {
    let begin = format!("```{kind}\n");
    let rest = section.split_once(&begin).unwrap_or_else(|| panic!("no {kind}: {section}")).1;
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_minute_of_the_page_goes_as_it_is_written() {
    let document = std::fs::read_to_string(project_root().join("docs/web.md")).unwrap();
    let section = document.split_once("## A first minute\n").unwrap().1.split_once("\n## ").unwrap().0;
    let world = World::new();
    world.rule(fence(section, "toml"));
    std::fs::create_dir(world.repo().join("release")).unwrap();
    let lines: Vec<&str> =
        fence(section, "sh").lines().map(|it| it.split(" #").next().unwrap().trim()).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let said: Vec<String> = lines
        .iter()
        .map(|line| {
            let output = at_the_terminal(&world, line.strip_prefix("provost ").unwrap());
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    let address = said[1].split_whitespace().find(|it| it.starts_with("http://provost.localhost:")).unwrap();
    let is_code = |it: &&str| it.len() == 14 && it.matches('-').count() == 2;
    let code = said[2].split_whitespace().find(is_code).unwrap_or_else(|| panic!("{said:?}"));
    assert!(said[2].contains(&format!("{address}passkeys")), "{said:?}");
    let browser = Browser::start();
    let tab = browser.open(address);
    let _authenticator = tab.authenticator("internal");
    tab.shows("approval 1");
    tab.press("g");
    tab.press("p");
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(code);
    tab.press_code("Tab", 9);
    tab.write("phone");
    tab.press_code("Tab", 9);
    tab.press_code("Enter", 13);
    tab.shows("phone answers from now on");
    tab.eval("document.activeElement.blur()");
    tab.press("g");
    tab.press("n");
    tab.shows("approval 1");
    tab.press("j");
    tab.press("o");
    tab.until("the button", "document.querySelector('button[data-does=approve]')");
    tab.press("a");
    tab.shows("granted (proof: passkey, phone)");
    eventually("the work is done", || {
        let output = world.command(&["task", "list"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("completed")
    });
    let _stopped = world.command(&["down"]).output().unwrap();
}

#[test]
fn what_answers_and_enrols_is_whole_narrow_and_wide_dark_and_light_and_accessible() {
    let (world, _daemon, door) = world_by("\"passkey\"");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, door);
    asks(&world, "make the release\nwith all that belongs to it");
    asks(&world, "remove-the-cache");
    tab.before(&changing("/rows/approval?id=2", "text.replaceAll('remove-the-cache', 'look-at-the-cache')"));
    let mut wrong = Vec::new();
    for (path, state, name) in [
        ("/passkeys", "document.querySelector('button[data-does=revoke]')", "passkeys-known"),
        ("/a/1", "document.querySelector('button[data-does=approve]')", "answer"),
        ("/a/2", "document.querySelector('button[data-does=read-again]')", "answer-changed"),
        ("/", "document.querySelector('tr[data-key] button[data-does=approve]')", "answer-in-its-row"),
    ] {
        for (width, height, scheme) in LOOKS {
            tab.looks(width, height, scheme);
            tab.go(&at(door, path));
            match path {
                "/a/2" => {
                    tab.until("its text", "document.querySelector('pre.words')");
                    tab.eval("sessionStorage.setItem('lie', '1'); document.dispatchEvent(new Event('provost-again')); 0");
                }
                "/" => {
                    tab.until("its row", "document.querySelector('tr[data-key] details')");
                    tab.eval("document.querySelector('tr[data-key] details').open = true");
                    tab.click("tr[data-key] button[data-does=answer-here]");
                }
                "/passkeys" => {
                    tab.until("its row", "document.querySelector('tr[data-key] details')");
                    tab.eval("document.querySelector('tr[data-key] details').open = true");
                }
                _ => {}
            }
            tab.until(name, state);
            wrong.extend(examine(&tab, path, (width, scheme), name));
            tab.eval("sessionStorage.removeItem('lie')");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    is_clean(&tab);
}
