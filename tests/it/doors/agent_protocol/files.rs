//! Files: how they are named, what is read of them, who changes them, and what becomes of conflicts.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::agent_protocol::{started, watched};
use crate::support::eventually;
use crate::support::loopback_client::Http;

#[test]
fn a_path_has_one_spelling_and_stays_in_the_workspace() {
    let (world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    symlink("src", world.repo().join("alias")).unwrap();
    symlink("/etc", world.repo().join("out")).unwrap();
    assert_eq!(http.claim("src/a.ts", "a").status, 200);
    let absolute = world.repo().canonicalize().unwrap().join("src/a.ts");
    for alias in
        ["./src/a.ts", "src//a.ts", "src/./a.ts", "src/x/../a.ts", "alias/a.ts", absolute.to_str().unwrap()]
    {
        assert_eq!(http.claim(alias, "b").status, 409, "{alias}");
    }
    assert_eq!(http.get("/resources").json().as_array().unwrap().len(), 1);
    let before = http.count();
    for outside in ["/etc/hostname", "../x", "src/../../x", "/", ".", "out/hostname", "a\u{0}b"] {
        let answer = http.claim(outside, "a");
        assert_eq!((answer.status, answer.json()), (400, json!({ "error": "Invalid path" })), "{outside}");
    }
    assert_eq!(http.get("/resources//etc/hostname").status, 404, "nothing outside is ever looked at");
    assert_eq!(http.count(), before);
}

#[test]
fn what_is_no_file_is_claimed_without_being_read() {
    let (world, _daemon, http) = started();
    http.announce("a");
    let fifo = world.repo().join("pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let large = std::fs::File::create(world.repo().join("large")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    for (path, hash) in
        [("pipe", "hash_error"), ("src", "hash_error"), ("none", "file_not_found"), ("large", "too_large")]
    {
        assert_eq!(http.claim(path, "a").status, 200, "{path}");
        assert_eq!(http.get(&format!("/resources/{path}")).json()["content_hash"], hash, "{path}");
    }
}

fn modified(http: Http, file: &str) -> Value {
    http.get(&format!("/events?action=resource.modified&resource={file}")).json()
}

#[test]
fn changes_of_files_are_seen_whoever_makes_them() {
    let (world, _daemon, http) = started();
    http.announce("a");
    world.write(".gitignore", "*.tmp\n");
    watched(&world);
    http.claim("src/a.ts", "a");
    let before = http.get("/resources/src/a.ts").json()["content_hash"].clone();
    for (file, text) in [
        ("src/a.ts", "changed\n"),
        ("src/deep/new.md", "new\n"),
        ("other.md", "untold"),
        ("src/x.tmp", "ignored"),
    ] {
        world.write(file, text);
    }
    eventually("word of a claimed file", || modified(http, "src/a.ts") != json!([]));
    let event = modified(http, "src/a.ts")[0].clone();
    assert_eq!(
        (&event["agent_id"], &event["metadata"], &event["before_hash"]),
        (&json!("a"), &json!({}), &before)
    );
    assert_eq!(event["after_hash"], http.get("/resources/src/a.ts").json()["content_hash"]);
    eventually("word of a new file", || modified(http, "src/deep/new.md") != json!([]));
    let event = modified(http, "src/deep/new.md")[0].clone();
    assert_eq!(
        (&event["agent_id"], &event["metadata"]),
        (&json!("watcher"), &json!({ "type": "file_created" }))
    );
    http.post("/resources/release", &json!({ "path": "src/a.ts", "agent_id": "a" }));
    world.write("src/a.ts", "changed again\n");
    eventually("word of a file that is free", || modified(http, "src/a.ts").as_array().unwrap().len() == 2);
    let event = modified(http, "src/a.ts")[0].clone();
    let metadata = json!({ "warning": "unclaimed_modification" });
    assert_eq!((&event["agent_id"], &event["metadata"]), (&json!("unknown"), &metadata));
    std::fs::remove_file(world.repo().join("src/deep/new.md")).unwrap();
    eventually("word of a file that is gone", || {
        modified(http, "src/deep/new.md").as_array().unwrap().len() == 2
    });
    let event = modified(http, "src/deep/new.md")[0].clone();
    assert_eq!(
        (&event["metadata"], &event["after_hash"]),
        (&json!({ "type": "file_deleted" }), &Value::Null)
    );
    // All of this was told after these were written.
    for file in ["other.md", "src/x.tmp"] {
        assert_eq!(modified(http, file), json!([]), "{file}");
    }
}

#[test]
fn a_conflict_is_found_and_settled_through_the_door() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    http.claim("src/a.ts", "a");
    http.post(
        "/events",
        &json!({ "agent_id": "b", "action": "resource.modified", "resource": "./src/a.ts" }),
    );
    let noted = |file: &str| http.get(&format!("/events?agent_id=b&resource={file}")).json()[0].clone();
    assert_eq!(
        (&noted("src/a.ts"), &noted("src/a.ts")["resource"]),
        (&noted("src//a.ts"), &json!("./src/a.ts"))
    );
    let found = http.get("/events?limit=1&action=resource.conflict_detected").json()[0].clone();
    assert_eq!(found["agent_id"], "system");
    for (name, value) in
        [("agents_involved", json!(["a", "b"])), ("previous_owner", json!("a")), ("intruder", json!("b"))]
    {
        assert_eq!(found["metadata"][name], value, "{name}");
    }
    assert_eq!(http.get("/resources?filter=conflicted").json().as_array().unwrap().len(), 1);
    let refused = http.claim("src/a.ts", "a");
    let says = "Resource is in conflict state — resolve conflict first";
    assert_eq!((refused.status, refused.json()), (409, json!({ "granted": false, "reason": says })));
    let resolve = json!({ "agent_id": "cli", "action": "resource.conflict_resolved", "resource": "src/a.ts",
                          "metadata": { "resolution": "pick", "picked_agent": "b" } });
    assert_eq!(http.post("/events", &resolve).status, 201);
    let resource = http.get("/resources/src/a.ts").json();
    assert_eq!((&resource["state"], &resource["owner"]), (&json!("claimed"), &json!("b")));
}
