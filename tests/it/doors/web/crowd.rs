//! The page over a store as a long and busy life leaves it: 10,000 tasks, 256 approvals that wait, 200 agents with 10,000 locks, and
//! many events; and a log of 50 MB. What is sent and drawn is bounded, and what is looked for is found.

use provost_test_equipment::full_store::{RARE, Size, fill, holder};
use serde_json::{Value, json};

use super::{OPEN, at};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::rules::{ALLOW, allow, ask as asks_for, policy};
use crate::support::{Daemon, World, eventually};

/// Beside these a daemon makes one task and one approval by itself. A million events are for `scripts/bench page`.
const SIZE: Size = Size { tasks: 9_700, approvals: 254, events: 40_000, agents: 200, locks: 10_000 };

/// A daemon over a full store, with its page.
fn full() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[limits]\ntasks_per_agent = 10000\n"));
    world.rule(&policy([
        asks_for("\"human\"", &["when.action = [\"delegate\"]", "when.client = [\"asker\"]"]),
        allow("rest", &["when.action = [\"delegate\"]"]),
    ]));
    let daemon = world.start();
    world.client(&daemon, "filler").delegate("absent", "look at the parser", json!({})).1.ack();
    world.client(&daemon, "asker").delegate("shell", "true", json!({})).1.ack();
    daemon.stop();
    fill(&world.state_dir(), SIZE, chrono::Utc::now().timestamp_millis()).unwrap();
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

fn rows(door: Http, path: &str) -> Vec<Value> {
    let answer = door.look(path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert!(answer.body.len() < 2 << 20, "{path}: {} bytes", answer.body.len());
    let view = answer.json();
    let lists = view["blocks"].as_array().unwrap().iter().filter_map(|it| it["rows"].as_array());
    lists.flatten().cloned().collect()
}

#[test]
fn every_view_over_a_full_store_is_bounded_and_what_is_looked_for_in_it_is_found() {
    let (world, daemon, door) = full();
    for path in
        ["tasks", "agents", "locks", "waits", "intents", "messages", "events", "audit", "health", "needs-you"]
    {
        let found = rows(door, &format!("/rows/{path}"));
        assert!(found.len() <= 1_100, "{path}: {} rows", found.len());
    }
    let agents = rows(door, "/rows/agents");
    assert!((200..=210).contains(&agents.len()), "all of them, and those that have asked: {}", agents.len());
    assert_eq!(
        rows(door, "/rows/needs-you")
            .iter()
            .filter(|it| it["key"].as_str().unwrap().starts_with("approval:"))
            .count(),
        255
    );
    // What is looked for is found, wherever it stands.
    let one = rows(door, "/rows/locks?q=src/room3/file100.py:f7");
    assert!(one.len() == 1 && one[0]["key"] == "src/room3/file100.py:f7", "{one:?}");
    let held = rows(door, &format!("/rows/agents?q={}", holder(77)));
    assert!(
        held.len() == 1 && held[0]["cells"][3]["text"].as_str().unwrap().starts_with("50 locks"),
        "{held:?}"
    );
    let way = rows(door, "/rows/locks?q=way:src/room3/file100.py:f7");
    assert!(way[0]["cells"][1]["text"].as_str().is_some_and(|it| it.starts_with("holder-")), "{:?}", way[0]);
    eventually("all words can be searched", || {
        door.look("/rows/search?q=step").json()["blocks"][0]["block"] == "list"
    });
    eventually("the rare ones are found", || rows(door, &format!("/rows/search?q={RARE}")).len() == 4);
    // All pages have each task once.
    let (mut seen, mut path) = (std::collections::BTreeSet::new(), "/rows/tasks".to_owned());
    loop {
        let view = door.look(&path).json();
        for row in view["blocks"].as_array().unwrap().iter().filter_map(|it| it["rows"].as_array()).flatten()
        {
            assert!(seen.insert(row["key"].as_str().unwrap().to_owned()), "{row} is there twice");
        }
        let Some(next) = view["next"].as_str() else { break };
        path = format!("/rows{next}");
    }
    assert_eq!(seen.len(), SIZE.tasks + SIZE.approvals + 2);
    // A person sees it, and what comes new among it.
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.until("all of them", "document.title.startsWith('(255)')");
    world.client(&daemon, "asker").delegate("shell", "the one among many", json!({})).1.ack();
    tab.shows("the one among many");
    for path in ["/locks", "/agents", "/tasks", "/e"] {
        tab.go(&at(door, path));
        tab.until(path, "document.querySelectorAll('tr[data-key]').length >= 50");
        tab.press("j");
        tab.until("the first row has the focus", "document.activeElement?.dataset.key !== undefined");
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_log_of_fifty_megabytes_is_followed_and_the_page_answers_keys_meanwhile() {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ALLOW);
    let daemon = world.start();
    let door = Http::web(&world);
    let goal = "yes 'a line of the log, as long as such lines are: 0123456789 0123456789' | head -c 50000000; echo; echo the-end";
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{task}")));
    tab.until("its first lines", "document.querySelector('pre.log .line')");
    tab.press("?");
    tab.until("the keys", "document.querySelector('#keys').open");
    tab.eval("document.querySelector('#keys').close()");
    tab.until("the end", "document.querySelector('pre.log')?.textContent.includes('the-end')");
    let lines = tab.eval("document.querySelectorAll('pre.log .line').length").as_u64().unwrap();
    assert!(lines <= 20_000, "{lines}");
    tab.shows("completed");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
