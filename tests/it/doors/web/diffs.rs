//! Differences on the page: two sides beside each other, and files that the reader has viewed.

use serde_json::{Value, json};

use super::{OPEN, at, examine};
use crate::support::browser::{Browser, Tab};
use crate::support::loopback_client::Http;
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World};

const CODE: &str = "# why \u{1f431}\ndef login(name):\n    return check(name)\n\n\nkept = 1\n";

/// A world with a task that has changed two files, and its id.
fn world() -> (World, Daemon, Http, String) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(ALLOW);
    world.write("src/auth.py", CODE);
    let daemon = world.start();
    let door = Http::web(&world);
    let id = done(
        &world,
        "sed -i 's/check(name)/check(name, other)/; s/^def/async def/; /^kept/i added = 2' src/auth.py; echo '<b>x</b>' > x.py",
    );
    (world, daemon, door, id)
}

fn done(world: &World, script: &str) -> String {
    let done =
        world.command(&["delegate", "--worker", "coder", script, "--wait", "--json"]).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    task["id"].as_str().unwrap().to_owned()
}

fn open(tab: &Tab<'_>, door: Http, id: &str) {
    tab.go(&at(door, &format!("/t/{id}")));
    tab.until("the differences", "document.querySelectorAll('details.file pre .line').length > 4");
}

/// The text of each side of each row that has two.
const ROWS: &str = "[...document.querySelectorAll('pre.sides .row:not(.whole)')].map((row) => \
                    [...row.children].map((it) => it.textContent))";

#[test]
fn two_sides_stand_beside_each_other_where_there_is_room_and_the_text_is_the_same() {
    let (_world, _daemon, door, id) = world();
    let browser = Browser::start();
    let tab = browser.open("about:blank");
    tab.looks(1280, 800, "light");
    open(&tab, door, &id);
    let lines = "[...document.querySelectorAll('pre.diff .line')].map((it) => it.textContent).sort()";
    let unified = tab.eval(lines);
    assert_eq!(tab.eval("document.querySelectorAll('pre.sides').length"), json!(0));
    tab.click("button.sides");
    tab.until("two sides", "document.querySelectorAll('pre.sides').length === 2");
    assert!(tab.is("document.querySelector('button.sides').getAttribute('aria-pressed') === 'true'"));
    let rows = tab.eval(ROWS);
    let has = |left: &str, right: &str| rows.as_array().unwrap().contains(&json!([left, right]));
    assert!(has("-def login(name):\n", "+async def login(name):\n"), "{rows}");
    assert!(has("-    return check(name)\n", "+    return check(name, other)\n"), "{rows}");
    assert!(has("", "+added = 2\n"), "what only comes has nothing beside it: {rows}");
    assert!(has(" kept = 1\n", " kept = 1\n"), "{rows}");
    // Each line of the one is there in the other: what stays stands on both sides.
    let once = "[...document.querySelectorAll('pre.sides .row > .line:not(.absent)')].filter((it) => \
                !(it.classList.contains('same') && it.previousElementSibling)).map((it) => it.textContent).sort()";
    assert_eq!(tab.eval(once), unified);
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0));
    // It stays after a reload, gives way where there is no room, and comes back.
    open(&tab, door, &id);
    tab.until("two sides", "document.querySelectorAll('pre.sides').length === 2");
    let mut wrong = examine(&tab, "sides", (1280, "light"), "sides");
    tab.looks(360, 740, "dark");
    tab.until("one side", "document.querySelectorAll('pre.sides').length === 0");
    assert_eq!(tab.eval(lines), unified);
    assert!(tab.is("getComputedStyle(document.querySelector('button.sides')).display === 'none'"));
    wrong.extend(examine(&tab, "sides", (360, "dark"), "sides"));
    tab.looks(1280, 800, "dark");
    tab.until("two sides", "document.querySelectorAll('pre.sides').length === 2");
    wrong.extend(examine(&tab, "sides", (1280, "dark"), "sides"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.click("button.sides");
    tab.until("one side", "document.querySelectorAll('pre.sides').length === 0");
    assert_eq!(tab.eval(lines), unified);
}

#[test]
fn a_file_that_was_viewed_stays_closed_until_it_changes() {
    let (world, _daemon, door, id) = world();
    let browser = Browser::start();
    let tab = browser.open("about:blank");
    tab.looks(1280, 800, "light");
    open(&tab, door, &id);
    let file = |name: &str| {
        format!(
            "[...document.querySelectorAll('.of-file')].find((it) => it.textContent.startsWith('{name}'))"
        )
    };
    let is_open = |name: &str| tab.is(&format!("{}.querySelector('details').open", file(name)));
    let boxes = "document.querySelectorAll('.viewed input').length === 2";
    tab.until("both marks", boxes);
    tab.eval(&format!("{}.querySelector('.viewed input').click()", file("src/auth.py")));
    tab.shows("1 of 2 viewed");
    assert!(!is_open("src/auth.py") && is_open("x.py"));
    // What was marked is kept by its digest alone, and goes nowhere.
    let kept = tab.eval("localStorage.getItem('provost-viewed')");
    let kept: Vec<String> = serde_json::from_str(kept.as_str().unwrap()).unwrap();
    assert!(kept.len() == 1 && !kept[0].contains("auth"), "{kept:?}");
    assert!(!browser.requested().iter().any(|it| it.contains("viewed") && !it.contains("/assets/")));
    open(&tab, door, &id);
    tab.until("both marks", boxes);
    tab.shows("1 of 2 viewed");
    assert!(!is_open("src/auth.py") && is_open("x.py"));
    // It can be read again, and the mark taken back.
    tab.eval(&format!("{}.querySelector('summary').click()", file("src/auth.py")));
    tab.until("its lines", &format!("{}.querySelectorAll('.line').length > 4", file("src/auth.py")));
    tab.eval(&format!("{}.querySelector('.viewed input').click()", file("src/auth.py")));
    tab.until("no count", "!document.body.textContent.includes('of 2 viewed')");
    tab.eval(&format!("{}.querySelector('.viewed input').click()", file("src/auth.py")));
    tab.shows("1 of 2 viewed");
    // Another change of the same file was not viewed.
    let other =
        done(&world, "sed -i 's/check(name)/check(name, nobody)/' src/auth.py; echo '<b>x</b>' > x.py");
    open(&tab, door, &other);
    tab.until("both marks", boxes);
    assert!(is_open("src/auth.py") && tab.is("!document.body.textContent.includes('of 2 viewed')"));
    // What another script of this origin could have written there breaks nothing.
    for odd in ["{", "7", "null", "[7, {}]", "\\\"x\\\""] {
        tab.eval(&format!("localStorage.setItem('provost-viewed', \"{odd}\")"));
        open(&tab, door, &other);
        tab.until("both marks", boxes);
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
