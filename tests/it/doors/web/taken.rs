//! Taking work from agents, choosing and holding it on the page, in a real browser with an authenticator.

use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::acting::{enrol, open, write};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::passkeys::get;
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World, eventually};

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(ALLOW);
    world.write("src/a.py", "def f():\n    return 1\n");
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Runs a command as an agent, which has to succeed.
fn as_agent(world: &World, agent: &str, arguments: &[&str]) {
    let output = world.command(arguments).env("PROVOST_AGENT", agent).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn begin(world: &World, goal: &str) -> String {
    let asked = ["delegate", "--worker", "coder", goal, "--json"];
    let output = world.command(&asked).output().unwrap();
    let task: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    task["id"].as_str().or(task["task"].as_str()).unwrap_or_else(|| panic!("{task}")).to_owned()
}

#[test]
fn a_person_takes_a_claim_an_intent_and_all_of_an_agents_with_a_reason() {
    let (world, _daemon, door) = world();
    as_agent(&world, "feat-a", &["claim", "acquire", "src/a.py"]);
    as_agent(&world, "feat-a", &["intent", "declare", "<b>new</b> parser", "--file", "src/a.py"]);
    as_agent(&world, "feat-b", &["lock", "acquire", "@thing:one"]);
    as_agent(&world, "feat-b", &["lock", "acquire", "@thing:two"]);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    for (path, does, list) in
        [("/locks", "release-claim", "/claims"), ("/intents", "update-intent", "/intents")]
    {
        tab.go(&at(door, path));
        open(&tab, does);
        tab.click(&format!("button[data-does={does}]"));
        tab.shows("Say why: it is put on record.");
        assert!(get(&world, list) != json!([]), "nothing without a reason");
        write(&tab, does, "it has gone");
        tab.click(&format!("button[data-does={does}]"));
        eventually(does, || get(&world, list) == json!([]));
        tab.shows("Done.");
    }
    tab.go(&at(door, "/agents"));
    open(&tab, "release-agent");
    write(&tab, "release-agent", "it has gone");
    tab.click("button[data-does=release-agent]");
    tab.shows("Taken from feat-b: 2 locks.");
    assert_eq!(get(&world, "/locks")["locks"], json!([]));
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn tasks_are_chosen_by_key_and_end_together_as_they_are_listed() {
    let (world, _daemon, door) = world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    let ids: Vec<String> = (0..3).map(|n| begin(&world, &format!("sleep 60{n}"))).collect();
    let state = |id: &str| get(&world, &format!("/task?id={id}"))["state"].clone();
    tab.go(&at(door, "/tasks"));
    tab.until("the rows", "document.querySelectorAll('input[data-does=choose]').length === 3");
    tab.press("j");
    tab.press("x");
    tab.shows("1 task is chosen");
    tab.press("j");
    tab.press("x");
    tab.shows("2 tasks are chosen");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/tasks", (width, scheme), "chosen"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.looks(1280, 800, "light");
    // One of them ends by itself: it is not among what is signed any more.
    let chosen = tab.eval("[...document.querySelectorAll('tr[data-key]')].filter((it) => it.querySelector('input:checked')).map((it) => it.dataset.key)");
    let chosen: Vec<String> = serde_json::from_value(chosen).unwrap();
    let left = ids.iter().find(|id| !chosen.contains(id)).unwrap();
    let output = world.command(&["task", "cancel", &chosen[0]]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    tab.shows("1 task is chosen");
    // What is half written stays when others change.
    tab.eval("document.querySelector('#chosen input').focus()");
    tab.write("enough ");
    begin(&world, "true");
    tab.shows("completed");
    tab.eval("document.querySelector('#chosen input').focus()");
    tab.write("of it");
    tab.click("button[data-does=cancel-tasks]");
    tab.shows("1 task is cancelled.");
    assert_eq!(state(&chosen[1]), json!("cancelled"));
    assert_ne!(state(left), json!("cancelled"), "it was not chosen");
    let task = get(&world, &format!("/task?id={}", chosen[1])).to_string();
    assert!(task.contains("enough of it"), "{task}");
    tab.until("nothing is chosen", "document.querySelector('#chosen').hidden");
    // On the board as well.
    tab.click("button[data-does=board]");
    tab.until("a card", "document.querySelector('article input[data-does=choose]')");
    tab.eval("document.querySelector('article input[data-does=choose]').click()");
    tab.shows("1 task is chosen");
    tab.click("button[data-does=choose-none]");
    tab.until("nothing is chosen", "document.querySelector('#chosen').hidden");
    assert!(!tab.is("document.querySelector('input[data-does=choose]:checked')"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn an_event_is_opened_whole_and_the_list_is_held_while_its_reader_reads() {
    let (world, _daemon, door) = world();
    as_agent(&world, "feat-a", &["lock", "acquire", "@thing:one", "--reason", "<i>x</i> \u{202e}"]);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/e"));
    tab.until("the rows", "document.querySelector('tr[data-key]')");
    tab.click("button[data-does=hold]");
    // The daemon's own last event of its start may come behind this.
    tab.until(
        "it is held",
        "/Held, [01] since: go on/.test(document.querySelector('button[data-does=hold]').textContent)",
    );
    let first = "document.querySelector('tr[data-key]').dataset.key";
    let (before, head) = (tab.eval(first), get(&world, "/about")["journal_seq"].as_u64().unwrap());
    as_agent(&world, "feat-b", &["lock", "acquire", "@thing:two"]);
    tab.until(
        "it counts on",
        "/Held, [1-9]/.test(document.querySelector('button[data-does=hold]').textContent)",
    );
    assert_eq!(tab.eval(first), before, "nothing moves");
    tab.press("p");
    tab.until("it goes on", &format!("{first} !== '{}'", before.as_str().unwrap()));
    tab.shows("Hold the list");
    // Its reader opens one: the whole of it, as text.
    let seq = get(&world, &format!("/events?after=0&limit={head}"))["events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["kind"]["lock_acquired"].is_object())
        .map(|it| it["seq"].clone())
        .unwrap();
    tab.eval(&format!("document.querySelector('tr[data-key=\"{seq}\"]').focus()"));
    tab.press_code("Enter", 13);
    tab.until("its own view", &format!("location.pathname === '/e/{seq}'"));
    tab.shows("\"lock_acquired\"");
    tab.until("its number", &format!("document.querySelector('#title').textContent === 'Event {seq}'"));
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/e/", (width, scheme), "event"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.eval("document.querySelectorAll('main i').length"), json!(0));
    for (path, status) in [
        ("/rows/event?id=999999999", 404),
        ("/rows/event?id=x", 400),
        ("/rows/event?id=0", 404),
        ("/rows/event", 400),
    ] {
        assert_eq!(door.look(path).status, status, "{path}");
    }
    tab.go(&at(door, "/e/999999999"));
    tab.shows("the journal has no event 999999999");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_file_of_events_says_where_older_ones_are_and_the_page_saves_those_too() {
    let (world, _daemon, door) = world();
    for n in 0..6 {
        as_agent(&world, "feat-a", &["lock", "acquire", &format!("@thing:{n}")]);
    }
    let lines = |path: &str| -> Vec<Value> {
        let body = String::from_utf8(door.look(path).body.clone()).unwrap();
        body.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    for choice in ["", "kinds=lock_acquired&"] {
        let all = lines(&format!("/rows/export?{choice}"));
        let seqs = |of: &[Value]| of.iter().filter_map(|it| it["seq"].as_u64()).collect::<Vec<_>>();
        let (mut read, mut before) = (Vec::new(), String::new());
        loop {
            let part = lines(&format!("/rows/export?{choice}limit=4{before}"));
            assert!(seqs(&part).len() <= 4, "{part:?}");
            read.splice(0..0, seqs(&part));
            let more = part[0]["more"]["before"].as_u64();
            assert_eq!(part[0].get("seq").is_none(), more.is_some(), "the first line says so: {part:?}");
            match more {
                Some(seq) => before = format!("&before={seq}"),
                None => break,
            }
        }
        assert_eq!(read, seqs(&all), "none is missing, and none twice");
    }
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/e?limit=4"));
    tab.until("the form", "document.querySelector('a[data-does=save-events]')");
    tab.eval("{ globalThis.saved = []; const real = URL.createObjectURL; URL.createObjectURL = (it) => { saved.push(it); return real.call(URL, it); } } true");
    tab.eval("document.querySelector('.event-filter').closest('details').open = true");
    tab.click("a[data-does=save-events]");
    tab.shows("on; save those before");
    tab.click("a[data-does=save-events]");
    tab.until("the second part", "saved.length === 2");
    let two = tab.eval("Promise.all(saved.map((it) => it.text())).then((it) => it.map((one) => one.split('\\n').filter(Boolean).map((line) => JSON.parse(line).seq).filter(Boolean)))");
    let two: Vec<Vec<u64>> = serde_json::from_value(two).unwrap();
    assert_eq!((two[0].len(), two[1].len()), (4, 4));
    assert!(two[1].iter().max() < two[0].iter().min(), "{two:?}");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
