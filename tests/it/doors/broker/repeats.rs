//! Statuses that say again what is known: taken in at once, on record before anybody can ask, and no commit
//! of their own.

use provost::base::AgentId;
use provost::domain::Settings;
use provost::store::{Letters, Options, open};
use serde_json::{Value, json};

use crate::support::broker_client::{Kept, feedback, poll, publish, status};
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

/// How many statuses are said again.
const AGAIN: usize = 300;

fn said(kept: &mut Kept, message: &Value) {
    assert_eq!(kept.publish(message).unwrap().status, 202);
}

/// The log from a number on: numbers and messages.
fn log(broker: Http, since: u64) -> Vec<(u64, Value)> {
    let entries = broker.get(&format!("/log?since={since}")).json()["entries"].clone();
    let entry = |it: &Value| (it["seq"].as_u64().unwrap(), it["message"].clone());
    entries.as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn what_is_said_again_is_on_record_each_time_and_in_its_order() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let mut kept = Kept::to(broker);
    let working = |n: usize| status(&format!("feat-{}", n % 2), "working", &["src/a.rs"]);
    let told = |text: &str| {
        let mut it = status("feat-0", "working", &["src/a.rs"]);
        it["payload"]["message"] = json!(text);
        it
    };
    let mut wanted = Vec::new();
    for n in 0..AGAIN {
        said(&mut kept, &working(n));
        wanted.push(format!("feat-{}", n % 2));
    }
    // What is new comes after what was acknowledged before, whoever has said it.
    said(&mut kept, &told("halfway"));
    for n in 0..AGAIN {
        said(&mut kept, &working(n));
    }
    said(&mut kept, &told("at the end"));
    let log: Vec<_> = log(broker, 0).into_iter().filter(|(_, it)| it["type"] == "agent.status").collect();
    assert_eq!(log.len(), 2 * AGAIN + 2);
    assert!(log.is_sorted_by(|a, b| a.0 < b.0));
    let who: Vec<&str> = log.iter().map(|(_, it)| it["agent_id"].as_str().unwrap()).collect();
    assert_eq!(who[..AGAIN], wanted[..]);
    assert_eq!(who[AGAIN + 1..2 * AGAIN + 1], wanted[..]);
    assert_eq!(log[AGAIN].1["payload"]["message"], "halfway");
    assert_eq!(log[2 * AGAIN + 1].1["payload"]["message"], "at the end");
}

#[test]
fn what_is_said_again_shows_at_once_that_its_agent_is_there() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    let seen = || broker.get("/status").json()["agents"][0]["last_seen_seconds"].as_u64().unwrap();
    eventually("two silent seconds", || seen() >= 2);
    publish(broker, &status("feat-aa", "working", &[]));
    assert_eq!(seen(), 0);
}

#[test]
fn after_anything_else_the_same_word_is_news() {
    let world = World::new();
    let mut daemon = world.start();
    let broker = Http::broker(&world);
    let at = |agent: &str| {
        let rows = broker.get("/status").json()["agents"].clone();
        let row = rows.as_array().unwrap().iter().find(|it| it["agent_id"] == agent).cloned();
        row.unwrap_or_default()["status"].clone()
    };
    let blocked = json!({ "type": "agent.blocked", "agent_id": "feat-aa",
        "payload": { "needs": "n", "from": "feat-bb" } });
    for _ in 0..3 {
        publish(broker, &status("feat-aa", "working", &[]));
    }
    publish(broker, &blocked);
    publish(broker, &status("feat-aa", "working", &[]));
    publish(broker, &status("feat-aa", "idle", &[]));
    // An answer to this is the daemon's word that it is kept.
    daemon.kill();
    let _daemon = world.start();
    assert_eq!(at("feat-aa"), "idle");
    // Another agent's file has become somebody's meanwhile.
    let broker = Http::broker(&world);
    publish(broker, &status("feat-cc", "working", &["src/a.rs"]));
    publish(broker, &status("feat-dd", "working", &["src/a.rs"]));
    assert_eq!(poll(broker, "feat-cc", 0).0.len(), 1);
}

#[test]
fn a_kill_takes_back_no_more_than_that_something_was_said_again() {
    let world = World::new();
    let broker = || Http::broker(&world);
    let mut numbers = Vec::new();
    for round in 0..5 {
        let mut daemon = world.start();
        let mut kept = Kept::to(broker());
        let mut message = status("feat-aa", "working", &["src/a.rs"]);
        message["payload"]["message"] = json!(format!("round {round}"));
        for _ in 0..100 {
            said(&mut kept, &message);
        }
        daemon.kill();
        let daemon = world.start();
        let kept: Vec<_> = log(broker(), numbers.last().copied().unwrap_or(0));
        assert!(kept.iter().any(|(_, it)| *it == message), "round {round}: {kept:?}");
        let row = broker().get("/status").json()["agents"][0].clone();
        assert_eq!((&row["agent_id"], &row["status"]), (&json!("feat-aa"), &json!("working")));
        publish(broker(), &feedback("feat-aa", "on"));
        let after = poll(broker(), "feat-aa", 0).1;
        assert!(kept.iter().all(|(n, _)| *n < after), "numbers go on");
        numbers.push(after);
        daemon.stop();
    }
}

#[test]
fn a_stop_keeps_what_was_said_again() {
    let world = World::new();
    let daemon = world.start();
    let mut kept = Kept::to(Http::broker(&world));
    for _ in 0..AGAIN {
        said(&mut kept, &status("feat-aa", "working", &[]));
    }
    daemon.stop();
    let mut store = open(&world.state_dir(), Options::default()).unwrap();
    store.load(Settings::new(AgentId::parse("client:approver").unwrap())).unwrap();
    let letters =
        store.opens_reader().and_then(|open| open()).unwrap().letters(&Letters::Newest, usize::MAX).unwrap();
    assert_eq!(letters.len(), AGAIN);
    store.close().unwrap();
}

#[test]
fn with_full_durability_each_is_a_commit_that_waits_for_the_disk() {
    let world = World::new();
    world.configure("[store]\ndurability = \"full\"\n");
    let mut daemon = world.start();
    let mut kept = Kept::to(Http::broker(&world));
    for _ in 0..20 {
        said(&mut kept, &status("feat-aa", "working", &[]));
    }
    daemon.kill();
    let _daemon = world.start();
    assert_eq!(log(Http::broker(&world), 0).len(), 20);
}
