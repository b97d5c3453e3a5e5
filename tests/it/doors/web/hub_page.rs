//! The page over all repositories in a real browser with an authenticator: what needs the user in all of them, an answer to one, and
//! daemons that come and go under it.

use serde_json::json;

use super::{LOOKS, examine};
use crate::support::browser::{Browser, Tab, Virtual};
use crate::support::hub::{Hub, free_port};
use crate::support::passkeys::{answered, asks, code, get, rules_by, waits};
use crate::support::{Daemon, World, eventually};

/// Two repositories of one user whose own pages are shut, and the page over both.
fn both() -> (World, World, [Daemon; 2], Hub) {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let daemons = [one.start(), other.start()];
    let hub = Hub::start(&one, port);
    for world in [&one, &other] {
        let root = folder(world);
        eventually("it is live", || hub.state(&root) == "live");
    }
    (one, other, daemons, hub)
}

/// The folder of a world's repository.
fn folder(world: &World) -> String {
    world.repo().canonicalize().unwrap().display().to_string()
}

fn at(hub: &Hub, path: &str) -> String {
    format!("http://provost.localhost:{}{path}", hub.door.port)
}

/// Enrols a passkey on the page, for the repository of this world.
fn enrol<'a>(hub: &Hub, world: &World, tab: &'a Tab<'a>) -> Virtual<'a> {
    let authenticator = tab.authenticator("internal");
    tab.go(&at(hub, &format!("{}/passkeys", hub.base(world))));
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(&code(world));
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write("phone");
    tab.click("button[data-does=enrol]");
    tab.shows("phone answers from now on");
    authenticator
}

fn is_clean(tab: &Tab<'_>) {
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    assert_eq!(tab.eval("document.cookie"), json!(""));
}

/// The selector of the row of a repository's approval.
fn row(hub: &Hub, world: &World, approval: u64) -> String {
    format!("tr[data-to=\"{}/a/{approval}\"]", hub.base(world))
}

#[test]
fn an_approval_of_another_repository_is_answered_with_a_passkey() {
    let (one, other, _daemons, hub) = both();
    let browser = Browser::start();
    let tab = browser.open(&at(&hub, "/"));
    enrol(&hub, &one, &tab);
    let (first, second) = (asks(&one, "true"), asks(&other, "false"));
    tab.go(&at(&hub, "/"));
    tab.until("both rows", &format!("document.querySelector('{}')", row(&hub, &one, first)));
    tab.until("both rows", &format!("document.querySelector('{}')", row(&hub, &other, second)));
    tab.picture("all-needs-you");
    // Both have the same name, so that the folder says which is which.
    let text = tab.text();
    assert!(text.contains(&folder(&other)), "{text}");
    // By its own address, in the repository that it is of.
    tab.go(&at(&hub, &format!("{}/a/{second}", hub.base(&other))));
    tab.shows("Signs for exactly what is shown here: phone.");
    tab.until(
        "which one",
        &format!("document.querySelector('#repository').textContent === '{}'", folder(&other)),
    );
    tab.picture("all-answer");
    tab.click("button[data-does=approve]");
    tab.shows("It does not wait any more: granted (proof: passkey, phone)");
    assert!(answered(&other, second).to_string().contains("\"proof\":\"passkey\""));
    assert!(waits(&one, first), "the one of the same number elsewhere waits");
    // In the list: the whole of it in its row, and the answer goes to its own daemon.
    let third = asks(&other, "true");
    tab.go(&at(&hub, "/"));
    let here = row(&hub, &other, third);
    tab.until("its row", &format!("document.querySelector('{here}')"));
    tab.eval(&format!("document.querySelector('{here} details').open = true"));
    tab.click(&format!("{here} button[data-does=answer-here]"));
    tab.until("the whole of it", &format!("document.querySelector('{here} button[data-does=approve]')"));
    tab.click(&format!("{here} button[data-does=approve]"));
    tab.until("it has gone", &format!("!document.querySelector('{here}')"));
    assert!(!waits(&other, third) && waits(&one, first));
    assert!(get(&one, "/approvals").as_array().unwrap().len() == 1);
    let asked = browser.requested();
    let own = at(&hub, "/");
    assert!(asked.iter().all(|it| it.starts_with(&own) || it == "about:blank"), "{asked:?}");
    is_clean(&tab);
}

#[test]
fn a_page_that_is_told_of_another_repository_signs_nothing_for_it() {
    let (one, other, _daemons, hub) = both();
    let browser = Browser::start();
    let tab = browser.open(&at(&hub, "/"));
    let authenticator = enrol(&hub, &one, &tab);
    let before = authenticator.passkeys()[0]["signCount"].clone();
    let (first, second) = (asks(&one, "true"), asks(&other, "true"));
    // What is asked for one of them is asked of the other one, whose number and text are the same.
    let (here, there) = (hub.base(&one), hub.base(&other));
    tab.before(&format!(
        "{{ const real = globalThis.fetch; globalThis.fetch = (path, asked) => \
         real(String(path).replace('{here}/word-challenge', '{there}/word-challenge'), asked); }}"
    ));
    tab.go(&at(&hub, &format!("{here}/a/{first}")));
    tab.click("button[data-does=approve]");
    tab.until("the refusal", "document.querySelector('.answer .notice.bad')");
    assert_eq!(authenticator.passkeys()[0]["signCount"], before, "{}", tab.text());
    assert!(waits(&one, first) && waits(&other, second));
}

#[test]
fn keys_and_the_palette_lead_from_one_repository_to_the_other() {
    let (one, other, _daemons, hub) = both();
    let (here, there) = (hub.base(&one), hub.base(&other));
    let browser = Browser::start();
    let tab = browser.open(&at(&hub, &format!("{here}/tasks")));
    let path = |wanted: &str| format!("location.pathname === '{wanted}'");
    tab.until("its rows", "document.querySelector('#blocks').getAttribute('aria-busy') === 'false'");
    tab.press("r");
    tab.until("both", "document.querySelectorAll('#palette-ways li').length === 2");
    tab.write(&folder(&other));
    tab.until("the other one", "document.querySelectorAll('#palette-ways li').length === 1");
    tab.press_code("Enter", 13);
    // The same view of the other repository.
    tab.until("the other one's tasks", &path(&format!("{there}/tasks")));
    for (key, wanted) in [("l", format!("{there}/locks")), ("o", "/".into()), ("r", "/repositories".into())] {
        tab.until("its script", "document.querySelector('#blocks')?.getAttribute('aria-busy') === 'false'");
        tab.press("g");
        tab.press(key);
        tab.until(key, &path(&wanted));
    }
    tab.until("both rows", "document.querySelectorAll('tr[data-key]').length === 2");
    tab.picture("all-repositories");
    tab.press("j");
    tab.press_code("Enter", 13);
    tab.until("a repository", "location.pathname.startsWith('/r/') && location.pathname.endsWith('/')");
    is_clean(&tab);
}

#[test]
fn each_repository_is_live_or_not_by_itself_and_the_page_comes_back_after_a_kill() {
    let (one, other, daemons, mut hub) = both();
    let [_first, mut second] = daemons;
    let there = hub.base(&other);
    let browser = Browser::start();
    let all = browser.open(&at(&hub, "/"));
    let tab = browser.open(&at(&hub, &format!("{there}/")));
    let state = |wanted: &str| format!("document.body.dataset.live === '{wanted}'");
    tab.until("live", &state("live"));
    all.until("live", "document.querySelector('#live').textContent === 'live'");
    second.kill();
    tab.until("stale", &state("stale"));
    tab.shows("no daemon runs");
    all.until("one of two", "document.querySelector('#live').textContent === 'live: 1 of 2'");
    // A tab that is not seen asks for nothing.
    all.ask("Page.bringToFront", &json!({}));
    all.shows("no daemon runs");
    // What needs the user in the other one appears meanwhile.
    let first = asks(&one, "true");
    all.until("its row", &format!("document.querySelector('{}')", row(&hub, &one, first)));
    let _second = other.start();
    tab.until("live again", &state("live"));
    all.until("both", "document.querySelector('#live').textContent === 'live'");
    // The page itself is killed, and opened again: nothing is lost, and what has happened meanwhile is there.
    let port = hub.door.port;
    hub.kill();
    all.until("stale", &state("stale"));
    let second = asks(&other, "false");
    let hub = Hub::start(&one, port);
    all.until("live again", &state("live"));
    all.until("the new row", &format!("document.querySelector('{}')", row(&hub, &other, second)));
    is_clean(&all);
}

#[test]
fn its_views_are_of_use_at_each_size_and_to_those_who_see_or_move_otherwise() {
    let (one, other, _daemons, hub) = both();
    asks(&one, "a/very/long/path/".repeat(20).as_str());
    asks(&other, "<img src=x onerror=alert(1)>\u{202e}");
    let there = hub.base(&other);
    let browser = Browser::start();
    let mut wrong = Vec::new();
    let tab = browser.open(&at(&hub, "/"));
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        for (name, path) in
            [("all", "/"), ("repositories", "/repositories"), ("one-of-all", &*format!("{there}/"))]
        {
            tab.go(&at(&hub, path));
            tab.until("rows", "document.querySelector('tr[data-key]')");
            wrong.extend(examine(&tab, path, (width, scheme), name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    is_clean(&tab);
}
