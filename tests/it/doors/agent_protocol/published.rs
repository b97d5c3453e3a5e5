//! The files that the published server has left in a repository: its database and its settings.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::agent_protocol::started;
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

/// A database as the published server keeps it.
fn published(path: &std::path::Path) -> rusqlite::Connection {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE events (id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL, agent_id TEXT NOT NULL, action TEXT NOT NULL,
         resource TEXT, task_id TEXT, before_hash TEXT, after_hash TEXT, metadata TEXT);
         INSERT INTO events VALUES ('evt_old1', 1700000000001, 'a', 'agent.joined', NULL, NULL, NULL, NULL, '{\"tool\":\"x\"}');
         INSERT INTO events VALUES ('evt_old2', 1700000000002, 'a', 'resource.claimed', 'src/a.ts', 't', NULL, 'ff', '{}');
         INSERT INTO events VALUES ('evt_bad', 1700000000003, 'a', 'x', NULL, NULL, NULL, NULL, 'no JSON');
         INSERT INTO events VALUES ('evt_old3', 1700000000004, 'b', 'my.own', NULL, NULL, NULL, NULL, NULL);",
    )
    .unwrap();
    db
}

#[test]
fn what_the_published_server_has_kept_is_imported_once() {
    let (world, _daemon, http) = started();
    let path = world.repo().join(".agent-protocol/protocol.db");
    drop(published(&path));
    let before = std::fs::read(&path).unwrap();
    let import = |args: &[&str]| {
        let mut all = vec!["agent-protocol", "import", "--json"];
        all.extend_from_slice(args);
        let output = world.command(&all).output().unwrap();
        (output.status.success(), serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default())
    };
    let count = http.count();
    assert_eq!(import(&[]), (true, json!({ "taken": 3, "known": 0, "unfit": 1 })));
    assert_eq!(import(&[]), (true, json!({ "taken": 0, "known": 3, "unfit": 1 })));
    assert_eq!(http.count(), count + 3);
    assert_eq!(std::fs::read(&path).unwrap(), before, "it is read and no more");
    let events = http.get("/events?limit=-1").json();
    let events: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["timestamp"].as_i64() < Some(1_700_000_000_010))
        .collect();
    let ids: Vec<_> = events.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["evt_old3", "evt_old2", "evt_old1"], "as they were, where they were");
    let second = json!({ "id": "evt_old2", "timestamp": 1_700_000_000_002_i64, "agent_id": "a", "action": "resource.claimed",
                         "resource": "src/a.ts", "task_id": "t", "before_hash": null, "after_hash": "ff", "metadata": {} });
    assert_eq!(*events[1], second);
    assert_eq!(http.get("/agents").json(), json!([]), "it is told, and changes nothing else");
}

fn about_database(world: &World) -> Vec<String> {
    let status = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let notes = status["notes"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned());
    notes.filter(|it| it.contains("protocol.db")).collect()
}

#[test]
fn a_database_that_lies_there_is_told_of_once_and_not_opened() {
    let world = World::new();
    let path = world.repo().join(".agent-protocol/protocol.db");
    drop(published(&path));
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    let told = about_database(&world);
    assert!(told.len() == 1 && told[0].contains("`provost agent-protocol import`"), "{told:?}");
    assert_eq!(http.get("/events?agent_id=b").json(), json!([]));
    daemon.stop();
    let daemon = world.start();
    assert_eq!(about_database(&world), [""; 0], "once");
    daemon.stop();
    world.configure("[agent_protocol]\nimport = \"never\"\n");
    let _daemon = world.start();
    assert_eq!(about_database(&world), [""; 0]);
}

#[test]
fn a_database_that_lies_there_is_taken_over_where_its_owner_wants_it() {
    let world = World::new();
    let path = world.repo().join(".agent-protocol/protocol.db");
    let db = published(&path);
    world.configure("[agent_protocol]\nimport = \"auto\"\n");
    let ids = |http: Http| -> Vec<String> {
        let all = http.get("/events?limit=-1").json();
        let ids = all.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned());
        ids.filter(|it| it.starts_with("evt_old")).collect()
    };
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    eventually("its events", || ids(http) == ["evt_old3", "evt_old2", "evt_old1"]);
    assert_eq!(about_database(&world), [""; 0]);
    let seen = world.state_dir().join("protocol.db.seen");
    eventually("that it is remembered", || seen.exists());
    let before = std::fs::read_to_string(&seen).unwrap();
    daemon.stop();
    db.execute(
        "INSERT INTO events VALUES ('evt_old4', 1700000000005, 'b', 'x', NULL, NULL, NULL, NULL, NULL)",
        [],
    )
    .unwrap();
    drop(db);
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    eventually("what has come since", || ids(http).len() == 4);
    eventually("that it is remembered", || std::fs::read_to_string(&seen).unwrap() != before);
    daemon.stop();
    // What is no database is told of in the log, and keeps nobody from starting.
    std::fs::write(&path, "no database").unwrap();
    let _daemon = world.start();
    eventually("word of it", || world.log().contains("cannot be imported"));
    assert_eq!(ids(Http::agent_protocol(&world)).len(), 4);
}

#[test]
fn what_a_repository_brings_does_not_say_what_is_imported() {
    let world = World::new();
    drop(published(&world.repo().join(".agent-protocol/protocol.db")));
    world.write(".agent-protocol/config.json", r#"{ "version": "0.1", "import": "auto" }"#);
    world.write(".provost/provost.toml", "[agent_protocol]\nimport = \"auto\"\n");
    for file in [".agent-protocol/config.json", ".provost/provost.toml"] {
        let allowed = world.command(&["config", "allow", file, "--yes"]).output().unwrap();
        assert!(allowed.status.success(), "{allowed:?}");
    }
    let _daemon = world.start();
    assert_eq!(about_database(&world).len(), 1, "it is asked about");
    assert_eq!(Http::agent_protocol(&world).get("/events?agent_id=b").json(), json!([]));
}

#[test]
fn what_is_no_database_of_the_published_server_is_refused() {
    let (world, _daemon, http) = started();
    let at = |name: &str| world.repo().join(name);
    std::fs::write(at("text.db"), "no database at all").unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.db")).status().unwrap().success());
    let db = published(&at("other.db"));
    db.execute_batch("ALTER TABLE events RENAME TO elsewhere; CREATE VIEW events AS SELECT * FROM elsewhere")
        .unwrap();
    drop(db);
    symlink(at("other.db"), at("link.db")).unwrap();
    let count = http.count();
    for name in ["none.db", "text.db", "pipe.db", "other.db", "link.db", "src"] {
        let path = at(name);
        let output = world.command(&["agent-protocol", "import", path.to_str().unwrap()]).output().unwrap();
        assert!(!output.status.success(), "{name}: {output:?}");
    }
    assert_eq!(http.count(), count);
}

#[test]
fn the_published_servers_settings_count_once_they_are_allowed() {
    let world = World::new();
    let settings = json!({ "version": "0.1", "project": "x", "port": 4700, "lead_agent": "boss", "detection_window_ms": 7000,
                           "heartbeat_interval_ms": 20000,
                           "dead_agent_timeout_ms": 45000, "tracked_paths": ["docs/**"], "storage": { "type": "sqlite" } });
    world.write(".agent-protocol/config.json", &settings.to_string());
    let lead = |world: &World| {
        let _daemon = world.start();
        let http = Http::agent_protocol(world);
        http.announce("first");
        http.announce("boss");
        let lead = http.get("/status").json()["agents"]["lead"].clone();
        http.delete("/agents/boss");
        http.delete("/agents/first");
        lead
    };
    assert_eq!(lead(&world), "first", "nobody has allowed it");
    let allowed =
        world.command(&["config", "allow", ".agent-protocol/config.json", "--yes"]).output().unwrap();
    assert!(allowed.status.success(), "{allowed:?}");
    assert_eq!(lead(&world), "boss");
    world.write(".agent-protocol/config.json", &settings.to_string().replace("boss", "evil"));
    assert_eq!(lead(&world), "first", "changed since");
}
