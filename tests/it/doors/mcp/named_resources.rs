//! Resources at the tools for locks: a model takes, waits for and gives back what is no file.

use serde_json::json;

use crate::support::mcp_host::Host;
use crate::support::{World, eventually};

#[test]
fn a_resource_is_taken_listed_waited_for_and_given_back_by_the_tools_for_locks() {
    let world = World::new();
    world.configure("[coordination]\nresources = { gpu = 2 }\n");
    let _daemon = world.start();
    let (mut one, mut two) = (Host::old(&world, "one"), Host::old(&world, "two"));
    let taken = one.does("lock_acquire", json!({ "symbol": "@DB:test", "reason": "migration" }));
    assert_eq!(taken["lock"]["symbol"], "@db:test");
    let why = two.fails("lock_acquire", json!({ "symbol": "@db:test" }));
    assert!(why.contains("@db:test is locked by one"), "{why}");
    let asked = json!({ "name": "lock_acquire", "arguments": { "symbol": "@db:test", "wait_s": 45 } });
    let waiting = two.begin("tools/call", asked);
    eventually("it waits", || world.waiting() == ["two"]);
    one.does("lock_release", json!({ "symbol": "@db:test" }));
    let answer = two.answer_to(waiting);
    assert_eq!(answer["result"]["structuredContent"]["lock"]["holder"], "two", "{answer}");
    // Several agents have some of a counted kind; each page of a list goes on behind the last one.
    one.does("lock_acquire", json!({ "symbol": "@gpu" }));
    two.does("lock_acquire", json!({ "symbol": "@gpu" }));
    let mut seen = Vec::new();
    let mut page = one.does("locks_list", json!({ "limit": 1 }));
    loop {
        seen.push(page["locks"][0]["holder"].as_str().unwrap().to_owned());
        let Some(cursor) = page["cursor"].as_str() else { break };
        page = one.does("locks_list", json!({ "limit": 1, "cursor": cursor }));
    }
    assert_eq!(seen, ["two", "one", "two"]);
    assert!(one.fails("lock_acquire", json!({ "symbol": "@gpu:3" })).contains("there are 2 of @gpu"));
    let long = format!("@db:{}", "x".repeat(10_000));
    for name in ["@", "@db:", "@db:t\u{0435}st", "@db:a\u{202E}b", "@db:x\ny", "@port:0", &long] {
        let why = one.fails("lock_acquire", json!({ "symbol": name }));
        assert!(why.len() < 1_000 && !why.contains('\u{202E}'), "{why}");
    }
    assert_eq!(world.locked().len(), 3);
}

#[test]
fn work_takes_resources_with_its_places_and_announces_its_files_alone() {
    let world = World::new();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let begun =
        host.does("work_begin", json!({ "description": "new table", "places": ["@db:test", "a.py:f"] }));
    assert_eq!(world.locked(), ["@db:test", "a.py:f"]);
    let intents = world.done("x", &["intent", "list"]).to_string();
    assert!(intents.contains("a.py") && !intents.contains("@db"), "{intents}");
    host.does("work_end", json!({ "intent_id": begun["intent_id"] }));
    assert!(world.locked().is_empty());
    let why = host.fails("work_begin", json!({ "description": "x", "places": ["@db:test"] }));
    assert!(why.contains("lock_acquire"), "{why}");
    assert!(world.locked().is_empty());
}

#[test]
fn what_a_host_has_of_resources_ends_with_it() {
    let world = World::new();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    host.does("lock_acquire", json!({ "symbol": "@deploy:staging" }));
    assert_eq!(world.locked(), ["@deploy:staging"]);
    host.kill();
    eventually("it is free", || world.locked().is_empty());
}
