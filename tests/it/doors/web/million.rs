//! The page over a million events: each page of them is one page, a time and a number lead to their event, and other rules are asked
//! within their bounds.

use std::time::{Duration, Instant};

use provost::base::limits::{REPLAY_EVENTS_MAX, REPLAY_MS, WEB_EVENTS_PAGE};
use provost_test_equipment::full_store::{Size, fill};
use serde_json::{Value, json};

use super::{OPEN, at};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::rules::{allow, ask, policy};
use crate::support::{Daemon, World};

const EVENTS: usize = 1_000_000;

/// How long an answer may take beside other tests, in a build that is not made for speed.
const ANSWERED_IN: Duration = Duration::from_secs(3);

fn old() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[limits]\ntasks_per_agent = 10000\n"));
    world.rule(&policy([
        ask("\"human\"", &["when.action = [\"delegate\"]", "when.client = [\"asker\"]"]),
        allow("rest", &["when.action = [\"delegate\"]"]),
    ]));
    let daemon = world.start();
    world.client(&daemon, "filler").delegate("absent", "look at the parser", json!({})).1.ack();
    world.client(&daemon, "asker").delegate("shell", "true", json!({})).1.ack();
    daemon.stop();
    let size = Size { events: EVENTS, ..Size::default() };
    let begun = Instant::now();
    fill(&world.state_dir(), size, chrono::Utc::now().timestamp_millis()).unwrap();
    eprintln!("{EVENTS} events were written in {:.1} s", begun.elapsed().as_secs_f64());
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// The numbers of the events of a page, as it takes no longer than it may.
fn numbers(door: Http, path: &str) -> Vec<u64> {
    let begun = Instant::now();
    let answer = door.look(path);
    let took = begun.elapsed();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert!(took < ANSWERED_IN, "{path}: {took:?}");
    assert!(answer.body.len() < 1 << 20, "{path}: {} bytes", answer.body.len());
    let view = answer.json();
    let lists = view["blocks"].as_array().unwrap().iter().filter_map(|it| it["rows"].as_array());
    lists.flatten().map(|it| it["key"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_million_events_are_read_page_by_page_by_time_and_by_number() {
    let (world, daemon, door) = old();
    let newest = numbers(door, "/rows/events");
    assert_eq!(newest.len(), usize::from(WEB_EVENTS_PAGE));
    assert!(newest[0] > EVENTS as u64, "{newest:?}");
    for before in [2, 101, 500_000, 999_999] {
        let page = numbers(door, &format!("/rows/events?before={before}"));
        let first = before - 1;
        let expected: Vec<u64> = (1..=first).rev().take(usize::from(WEB_EVENTS_PAGE)).collect();
        assert_eq!(page, expected, "{before}");
    }
    let time = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ");
    assert!(!numbers(door, &format!("/rows/events?at={time}")).is_empty());
    for path in ["/rows/event?id=500000", "/rows/audit", "/rows/health", "/rows/needs-you", "/rows/waits"] {
        let begun = Instant::now();
        assert_eq!(door.look(path).status, 200, "{path}");
        assert!(begun.elapsed() < ANSWERED_IN, "{path}: {:?}", begun.elapsed());
    }
    // Other rules: as far as their bounds go, and they say so.
    let begun = Instant::now();
    let (status, told) = own(&world, ("POST", "/replay-rules"), &[], &json!({ "builtin": "strict" }));
    assert_eq!(status, 200, "{told}");
    assert!(begun.elapsed() < Duration::from_millis(REPLAY_MS) + ANSWERED_IN, "{:?}", begun.elapsed());
    let seen = told["to"].as_u64().unwrap() - told["from"].as_u64().unwrap();
    assert!(seen <= REPLAY_EVENTS_MAX + 1_000, "{told}");
    assert!(told["late"] == json!(true) || seen + 1_000 >= REPLAY_EVENTS_MAX, "{told}");
    // A person sees the newest, and what comes new.
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/e"));
    tab.until("a page", &format!("document.querySelectorAll('tr[data-key]').length >= {WEB_EVENTS_PAGE}"));
    world.client(&daemon, "asker").delegate("shell", "the one after a million", json!({})).1.ack();
    let new = "[...document.querySelectorAll('tr[data-key]')].some((it) => it.textContent.includes('approval_asked')) \
               || !document.querySelector('#news').hidden";
    tab.until("the new one", new);
    let found: Value = door.look("/rows/events").json();
    assert!(found["blocks"].to_string().contains("approval_asked"), "{found}");
}
