//! Reports of many files, and patterns made to be slow. The engine carries out one command at a time, so what one report
//! costs, every other agent waits for.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::broker_client::{publish, status};
use crate::support::loopback_client::Http;

/// As many files as are compared of one report.
const MANY: usize = 1_000;

fn files(folder: &str) -> Vec<String> {
    (0..MANY).map(|n| format!("{folder}/{}{n}/x", "a".repeat(60))).collect()
}

fn intent(agent: &str, files: &[String]) -> Value {
    json!({ "type": "agent.intent", "agent_id": agent,
        "payload": { "files": files, "summary": "s", "valid_for_seconds": 900 } })
}

fn report(agent: &str, files: &[String]) -> Value {
    status(agent, "working", &files.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The shortest of three times that these messages take; the last of them undoes the others.
fn took(broker: Http, messages: &[Value]) -> Duration {
    let once = || {
        let since = Instant::now();
        messages.iter().for_each(|it| publish(broker, it));
        since.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

#[test]
fn a_report_takes_no_longer_for_files_that_are_announced_or_for_patterns_made_to_be_slow() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let (plain, announced) = (files("plain"), files("src"));
    let rest = |agent| status(agent, "idle", &[]);
    let alone = took(broker, &[intent("feat-a", &plain), report("feat-b", &plain[..1]), rest("feat-b")]);
    // Each of these compares a thousand files with a thousand others, or with each other's announcements.
    let bound = 6 * alone + Duration::from_millis(300);
    let own = took(broker, &[intent("feat-a", &announced), report("feat-a", &announced), rest("feat-a")]);
    assert!(own < bound, "its own announcement: {own:?}, and {alone:?} without");
    publish(broker, &intent("feat-b", &announced[..MANY - 1]));
    let other = took(broker, &[intent("feat-a", &announced), intent("feat-a", &plain)]);
    assert!(other < bound, "another agent's announcement: {other:?}, and {alone:?} without");

    let slow: Vec<String> = (0..32).map(|n| format!("src/{}{n}?*x", "*a".repeat(110))).collect();
    let some: Vec<String> = (0..32).map(|n| format!("src/{}{n}x", "*a".repeat(8))).collect();
    for patterns in [slow, some] {
        publish(broker, &intent("feat-e", &patterns));
        let compared = took(broker, &[report("feat-c", &announced), rest("feat-c")]);
        publish(broker, &intent("feat-e", &plain[..1]));
        assert!(
            compared < bound + Duration::from_secs(1),
            "{}: {compared:?}, and {alone:?} without",
            patterns[0]
        );
    }
}
