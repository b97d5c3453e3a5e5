//! The states of each of the twelve views, in a real browser: empty, while it is asked for, and with a fault; and each by the tab key.

use std::process::Command;

use serde_json::json;

use super::{LOOKS, OPEN, at, examine, open_world};
use crate::support::browser::{Browser, Tab};
use crate::support::loopback_client::Http;
use crate::support::rules::ASK;
use crate::support::{Daemon, World};

/// Each view where nothing is, with the heading of the list that says what would be there, and whether it says how one is made.
const EMPTY: [(&str, &str, &str, bool); 12] = [
    ("/", "needs", "All is calm", false),
    ("/a/99", "approval", "No event of the newest thousands is about it.", true),
    ("/tasks", "tasks", "No task", true),
    ("/t/none-has-this-name", "task", "", false),
    ("/agents", "agents", "No agent has come by.", true),
    ("/locks", "locks", "No", true),
    ("/waits", "waits", "No agent waits.", false),
    ("/intents", "intents", "No two agents are in the same place.", true),
    ("/messages", "messages", "No agent waits for an answer.", false),
    ("/e?q=nothing-has-this-word", "events", "No event", false),
    ("/audit", "audit", "Nothing was decided yet.", false),
    ("/health", "health", "", false),
];

/// A world in which nothing was asked yet.
fn fresh() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ASK);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

fn go(tab: &Tab<'_>, door: Http, path: &str) {
    tab.go(&at(door, path));
    tab.until("its answer", "document.querySelector('#blocks')?.getAttribute('aria-busy') === 'false'");
    tab.until("live", "document.body.dataset.live === 'live'");
}

#[test]
fn a_view_with_nothing_in_it_says_what_would_be_there_and_the_command_that_makes_one() {
    let (_world, _daemon, door) = fresh();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let mut wrong = Vec::new();
    for (path, name, says, makes) in EMPTY {
        go(&tab, door, path);
        let text = tab.text();
        if !text.contains(says) {
            wrong.push(format!("{path}: no {says:?} in {text}"));
        }
        if makes && !tab.is("document.querySelector('.empty code')") {
            wrong.push(format!(
                "{path}: no command in {}",
                tab.eval("document.querySelector('main').innerText")
            ));
        }
        for (width, height, scheme) in LOOKS {
            tab.looks(width, height, scheme);
            wrong.extend(examine(&tab, path, (width, scheme), &format!("{name}-empty")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

/// Stops and continues a process, which answers nothing meanwhile.
fn signal(daemon: &Daemon, name: &str) {
    let done = Command::new("kill").args([&format!("-{name}"), &daemon.pid().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_view_keeps_what_it_shows_while_its_daemon_takes_long_and_a_bar_says_so() {
    let (world, daemon, door) = open_world();
    world.write("src/a.py", "def f():\n    return 1\n");
    super::ask(&world, &daemon, "make the release");
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", "another", json!({}));
    reply.ack();
    let one = format!("/t/{task}");
    let views = [
        "/",
        "/a/1",
        "/tasks",
        &one,
        "/agents",
        "/locks",
        "/waits",
        "/intents",
        "/messages",
        "/e",
        "/audit",
        "/health",
    ];
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    for path in views {
        go(&tab, door, path);
        let shown = tab.eval("document.querySelector('#blocks').innerText.length").as_u64().unwrap();
        assert!(shown > 20, "{path}");
        signal(&daemon, "STOP");
        tab.eval("document.dispatchEvent(new Event('provost-again'))");
        tab.until("a bar, after a moment", "'asks' in document.body.dataset");
        assert!(
            tab.is("document.querySelector('#blocks').innerText.length > 20"),
            "{path}: it has gone blank"
        );
        signal(&daemon, "CONT");
        tab.until("no bar", "!('asks' in document.body.dataset)");
        assert!(tab.is("document.querySelector('#fault').hidden"), "{path}: {}", tab.text());
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_view_that_cannot_be_shown_says_why_with_a_way_on_and_comes_back() {
    let (_world, _daemon, door) = open_world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    for (path, says) in [
        ("/a/seven", "an approval goes by its number"),
        ("/t/none", ""),
        ("/e/seven", "an event goes by its number"),
        ("/e/99999", "the journal has no event 99999"),
        ("/e?kinds=nothing", "no event is of the kind nothing"),
        ("/e?at=yesterday", "is no time"),
        ("/e?before=x", "`before` is no number"),
        ("/messages?before=x", "`before` is no number"),
        ("/search?q=word&before=x", "`before` is no number"),
        ("/both?file=a.py", "`one` is missing"),
        ("/both?file=..%2Fa.py&one=a&other=b", "file"),
        ("/tasks?after=nowhere", ""),
    ] {
        tab.go(&at(door, path));
        tab.until("the fault", "document.querySelector('#fault')?.hidden === false");
        let text = tab.eval("document.querySelector('#fault').innerText");
        let text = text.as_str().unwrap();
        assert!(text.contains(says) && text.len() > 15, "{path}: {text}");
        assert!(
            tab.is("['#retry', '#copy-fault'].every((it) => document.querySelector(it)?.checkVisibility())"),
            "{path}"
        );
        tab.click("#retry");
        tab.until("the same", "document.querySelector('#fault').hidden === false");
        assert_eq!(
            tab.eval("document.querySelectorAll('#blocks > *').length"),
            json!(0),
            "{path}: {}",
            tab.text()
        );
    }
    go(&tab, door, "/tasks");
    assert!(tab.is("document.querySelector('#fault').hidden"));
}

#[test]
fn each_view_is_walked_by_the_tab_key_and_no_focus_is_caught_or_hidden() {
    let (world, daemon, door) = open_world();
    super::ask(&world, &daemon, "make the release");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    for path in [
        "/",
        "/a/1",
        "/tasks",
        "/agents",
        "/locks",
        "/waits",
        "/intents",
        "/messages",
        "/e",
        "/audit",
        "/health",
        "/passkeys",
    ] {
        go(&tab, door, path);
        let mut seen = Vec::new();
        for _ in 0..200 {
            tab.press_code("Tab", 9);
            let at = tab.eval(
                "(() => { const it = document.activeElement; if (!it || it === document.body) return 'outside'; \
                 const all = [...document.querySelectorAll('*')]; const box = it.getBoundingClientRect(); const style = getComputedStyle(it); \
                 const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight \
                 && (style.outlineStyle !== 'none' || style.boxShadow !== 'none'); return `${seen ? '' : 'hidden '}${all.indexOf(it)}`; })()",
            );
            let at = at.as_str().unwrap().to_owned();
            assert!(
                !at.starts_with("hidden"),
                "{path}: {} has the focus and does not show it",
                tab.eval("document.activeElement.outerHTML.slice(0, 200)")
            );
            if at == "outside" || seen.contains(&at) {
                break;
            }
            seen.push(at);
        }
        let count = tab.eval(
            "[...document.querySelectorAll('a[href], button:not([disabled]), input, select, textarea, summary, [tabindex=\"0\"]')]\
             .filter((it) => it.checkVisibility()).length",
        );
        let count = usize::try_from(count.as_u64().unwrap()).unwrap();
        assert!(
            seen.len() + 5 >= count,
            "{path}: {} of {count} were reached: the focus was caught",
            seen.len()
        );
    }
}
