//! Lists, keys and checks on the page for a reader, in a real browser: a tree that opens and closes, a search for keys, a place to
//! which the reader comes back, and the text about rows that have gone.

use serde_json::json;

use super::{LOOKS, OPEN, ask, at, examine, open_world};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::repositories::{well, write};
use crate::support::rules::ALLOW;
use crate::support::terminal::at_the_terminal;
use crate::support::{Daemon, World};

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(ALLOW);
    for file in ["src/a.py", "src/b.py", "top.py"] {
        world.write(file, "def f():\n    return 1\n\n\ndef g():\n    return 2\n");
    }
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Runs a command as an agent, which has to succeed.
fn as_agent(world: &World, agent: &str, arguments: &[&str]) {
    let output = world.command(arguments).env("PROVOST_AGENT", agent).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// The headings of a tree that can be seen, and how many rows.
const SEEN: &str =
    "[...document.querySelectorAll('tr.group')].filter((it) => !it.hidden).map((it) => it.textContent)";
const ROWS: &str =
    "[...document.querySelectorAll('tr[data-key]')].filter((it) => !it.hidden).map((it) => it.dataset.key)";

#[test]
fn what_is_held_is_a_tree_whose_folders_close_and_whose_keys_pass_over_what_is_closed() {
    let (world, _daemon, door) = world();
    for symbol in ["src/a.py:f", "src/b.py:g", "top.py:f"] {
        as_agent(&world, "feat-a", &["lock", "acquire", symbol]);
    }
    as_agent(&world, "feat-b", &["claim", "acquire", "src/c.py"]);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/locks"));
    tab.until("the rows", "document.querySelectorAll('tr[data-key]').length >= 4");
    assert_eq!(tab.eval(SEEN), json!(["./", "top.py", "src/", "a.py", "b.py", "c.py"]));
    assert_eq!(tab.eval(ROWS), json!(["top.py:f", "src/a.py:f", "src/b.py:g", "claim:src/c.py"]));
    tab.eval(
        "[...document.querySelectorAll('tr.group button')].find((it) => it.textContent === 'src/').click()",
    );
    assert_eq!(tab.eval(SEEN), json!(["./", "top.py", "src/"]));
    assert_eq!(tab.eval(ROWS), json!(["top.py:f"]));
    // What comes into a folder that is closed stays closed with it, and a key passes over it.
    as_agent(&world, "feat-b", &["lock", "acquire", "src/a.py:g"]);
    tab.until("five", "document.querySelector('h2').textContent.endsWith('(5)')");
    assert_eq!(tab.eval(ROWS), json!(["top.py:f"]));
    tab.press("j");
    tab.press("j");
    tab.until("the one row", "document.activeElement.dataset.key === 'top.py:f'");
    tab.eval(
        "[...document.querySelectorAll('tr.group button')].find((it) => it.textContent === 'src/').click()",
    );
    assert_eq!(tab.eval(&format!("{ROWS}.length")), json!(5));
    tab.press("/");
    tab.write("b.py");
    tab.until("one row", &format!("{ROWS}.length === 1"));
    assert_eq!(tab.eval(SEEN), json!(["src/", "b.py"]));
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        tab.go(&at(door, "/locks"));
        tab.until("the rows", "document.querySelectorAll('tr[data-key]').length >= 5");
        wrong.extend(examine(&tab, "/locks", (width, scheme), "locks-tree"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_key_is_found_by_what_it_does() {
    let (_world, _daemon, door) = world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/tasks"));
    tab.until("live", "document.body.dataset.live === 'live'");
    tab.press("?");
    tab.until(
        "the field",
        "document.querySelector('#keys').open && document.activeElement.id === 'keys-find'",
    );
    let left = "[...document.querySelectorAll('#keys dl > div')].filter((it) => !it.hidden).map((it) => it.textContent)";
    tab.write("CHOOSE");
    assert_eq!(tab.eval(left), json!(["xChoose the task, to cancel several together"]));
    tab.eval("document.querySelector('#keys-find').value = ''");
    tab.write("no key does this");
    tab.shows("No key does that.");
    tab.eval("document.querySelector('#keys').close()");
    tab.until("no field has the focus", "!document.activeElement.matches('input')");
    // The next time all are there.
    tab.press("?");
    tab.until("all of them", &format!("document.querySelector('#keys').open && {left}.length > 20"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn who_comes_back_finds_the_row_and_a_task_says_how_long_it_takes() {
    let (world, daemon, door) = world();
    let client = world.client(&daemon, "orch");
    for n in 0..60 {
        client.delegate("absent", &format!("task number {n}"), json!({})).1.ack();
    }
    let goal = "echo one > one.txt; echo two > two.txt; while [ ! -e over ]; do sleep 0.05; done";
    let (task, reply) = client.delegate("shell", goal, json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/tasks"));
    let row = format!("document.querySelector('tr[data-key=\"{task}\"]')");
    tab.until("it runs", &format!("{row}?.querySelector('time.took')"));
    let took = format!("{row}.querySelector('time.took').textContent");
    let first = tab.eval(&took);
    tab.until("it goes on by itself", &format!("{took} !== {first}"));
    // A row far below: its place comes back.
    tab.eval("[...document.querySelectorAll('tr[data-key]')].at(40).focus()");
    let key = tab.eval("document.activeElement.dataset.key");
    tab.press("o");
    tab.until("the task", "location.pathname.startsWith('/t/')");
    tab.shows("task number");
    tab.eval("history.back()");
    tab.until(
        "the same row",
        &format!("location.pathname === '/tasks' && document.activeElement?.dataset?.key === {key}"),
    );
    let seen =
        "(it => it.top >= 0 && it.bottom <= innerHeight)(document.activeElement.getBoundingClientRect())";
    tab.until("in sight", seen);
    world.write("over", "");
    tab.until("it has ended", &format!("{row}?.querySelector('time.took')?.dataset.to"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn what_was_answered_elsewhere_leaves_with_a_word_and_calm_says_when() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "make the release");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("make the release");
    assert!(at_the_terminal(&world, "deny 1 --reason no").status.success());
    tab.shows("Approval 1: It does not wait any more: denied (proof: weak-human)");
    tab.until("calm", "document.querySelector('p.empty time')");
    tab.shows("Last decision");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn the_journal_is_checked_on_the_page_and_both_changes_of_a_meeting_stand_beside_each_other() {
    let (world, _daemon, door) = world();
    let repo = world.repo();
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "one"]);
    for agent in ["feat-a", "feat-b"] {
        let tree = world.path(agent);
        well(&repo, &["worktree", "add", "-q", "-b", agent, tree.to_str().unwrap()]);
        write(tree.join("src/a.py"), &format!("def f():\n    return \"{agent} <b>\"\n"));
        as_agent(&world, agent, &["intent", "declare", "a new form", "--file", "src/a.py"]);
    }
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/audit"));
    tab.click("button[data-does=check-journal]");
    tab.shows("Nothing is wrong in");
    tab.shows("provost-anchor:1:");
    // What was found stays while the view changes.
    as_agent(&world, "feat-a", &["lock", "acquire", "@thing:one"]);
    tab.until("it is asked again", "document.body.dataset.live === 'live'");
    assert!(tab.text().contains("Nothing is wrong in"));
    tab.go(&at(door, "/intents"));
    tab.until("the meeting", "document.querySelector('tr[data-to^=\"/both\"]')");
    tab.press("j");
    tab.press("o");
    tab.until("both", "document.querySelectorAll('details.file').length === 2");
    tab.shows("feat-a, on branch feat-a");
    tab.shows("feat-b <b>");
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0));
    let mut wrong = Vec::new();
    for path in
        [tab.eval("location.pathname + location.search").as_str().unwrap().to_owned(), "/audit".into()]
    {
        for (width, height, scheme) in LOOKS {
            tab.looks(width, height, scheme);
            tab.go(&at(door, &path));
            tab.until(
                "its blocks",
                "document.querySelector('#blocks')?.getAttribute('aria-busy') === 'false'",
            );
            tab.until("live", "document.body.dataset.live === 'live'");
            wrong.extend(examine(
                &tab,
                &path,
                (width, scheme),
                if path == "/audit" { "audit-check" } else { "both" },
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
