//! Reports of many files, and patterns made to be slow. The engine carries out one command at a time, so what one report
//! costs, every other agent waits for.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::broker_client::{poll, publish, status};
use crate::support::loopback_client::Http;
use crate::support::own_api::own;

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

#[test]
fn thousands_of_names_in_one_file_are_compared_across_doors_at_once() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let names: Vec<String> = (0..10_000).map(|n| format!("Outer.f{n}")).collect();
    let declared = json!({ "description": "d", "files": ["src/a.rs"], "symbols": names });
    let (status, said) = own(&world, ("POST", "/declare"), &[("x-provost-agent", "feat-x")], &declared);
    assert_eq!(status, 200, "{said}");
    let regions = |n: usize| -> Vec<Value> {
        (0..100).map(|m| json!({ "kind": "function", "name": format!("g{n}x{m}") })).collect()
    };
    // As many as there is room for in a message.
    let parts: Vec<Value> = (0..300).map(|n| json!({ "path": "src/a.rs", "regions": regions(n) })).collect();
    let post = json!({ "type": "agent.intent", "agent_id": "feat-b",
        "payload": { "files": parts, "summary": "s", "valid_for_seconds": 900 } });
    let since = Instant::now();
    publish(broker, &post);
    let took = since.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    // Overlaps are found as before, in each spelling.
    for (name, meets) in
        [("f7()", true), ("outer", true), ("Outer.f9.inner", true), ("f10000", false), ("f", false)]
    {
        let one = json!({ "type": "agent.intent", "agent_id": format!("feat-{}", name.len()),
            "payload": { "files": [{ "path": "src/a.rs", "regions": [{ "kind": "function", "name": name }] }],
                "summary": "s", "valid_for_seconds": 900 } });
        publish(broker, &one);
        let (messages, _) = poll(broker, &format!("feat-{}", name.len()), 0);
        let told = messages.iter().any(|it| it.to_string().contains("feat-x"));
        assert_eq!(told, meets, "{name}: {messages:?}");
        publish(broker, &intent(&format!("feat-{}", name.len()), &["nowhere".to_owned()]));
    }
}
