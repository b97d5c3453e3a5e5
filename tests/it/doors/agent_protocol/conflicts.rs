//! Conflicts: both versions are kept, where people find them, and restored when a caller asks for it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::agent_protocol::{started, watched};
use crate::support::loopback_client::{Answer, Http};
use crate::support::{World, eventually};

const OWN: &str = "export const a = 1\n";
const OTHER: &str = "export const a = 2\n";

impl Http {
    fn modified_by(self, agent: &str, file: &str) {
        let body = json!({ "agent_id": agent, "action": "resource.modified", "resource": file });
        assert_eq!(self.post("/events", &body).status, 201);
    }

    fn resolve(self, file: &str, metadata: &Value) -> Answer {
        let action = "resource.conflict_resolved";
        self.post(
            "/events",
            &json!({ "agent_id": "cli", "action": action, "resource": file, "metadata": metadata }),
        )
    }

    fn state_of(self, file: &str) -> Value {
        self.get(&format!("/resources/{file}")).json()["state"].clone()
    }

    fn conflict(self) -> Value {
        self.get("/events?limit=1&action=resource.conflict_detected").json()[0].clone()
    }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn folder(world: &World) -> PathBuf {
    world.repo().join(".agent-protocol/conflicts")
}

/// The versions that an event names: whose, and where.
fn versions(event: &Value) -> Vec<(String, Option<String>)> {
    let all = event["metadata"]["versions"].as_array().unwrap();
    let one = |it: &Value| {
        (it["agent_id"].as_str().unwrap().to_owned(), it["path"].as_str().map(ToOwned::to_owned))
    };
    all.iter().map(one).collect()
}

/// `a` has claimed the file, and `b` has written to it and says so.
fn in_conflict(world: &World, http: Http) -> Value {
    http.announce("a");
    http.announce("b");
    http.claim("src/a.ts", "a");
    world.write("src/a.ts", OTHER);
    http.modified_by("b", "src/a.ts");
    assert_eq!(http.state_of("src/a.ts"), "conflicted");
    http.conflict()
}

#[test]
fn both_versions_are_kept_and_either_is_brought_back() {
    let (world, _daemon, http) = started();
    let file = world.repo().join("src/a.ts");
    for (wanted, says) in [(json!("a"), OWN), (json!("b"), OTHER), (json!(true), OWN)] {
        world.write("src/a.ts", OWN);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        let found = in_conflict(&world, http);
        let kept = versions(&found);
        assert_eq!(kept.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["a", "b"], "{found}");
        let hashes = [&found["metadata"]["versions"][0]["hash"], &found["metadata"]["versions"][1]["hash"]];
        assert_eq!(hashes, [&found["before_hash"], &found["after_hash"]]);
        let copies: Vec<_> = kept.iter().map(|it| world.repo().join(it.1.as_deref().unwrap())).collect();
        assert_eq!((&*text(&copies[0]), &*text(&copies[1])), (OWN, OTHER));
        for copy in &copies {
            assert!(copy.starts_with(folder(&world)) && copy.extension().unwrap() == "ts", "{copy:?}");
            assert_eq!(fs::metadata(copy).unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::metadata(folder(&world)).unwrap().mode() & 0o777, 0o700);

        let answer = http
            .resolve("src/a.ts", &json!({ "picked_agent": "a", "restore": wanted, "resolution": "pick" }));
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(answer.json()["metadata"]["restore"], wanted);
        assert_eq!(text(&file), says);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o750);
        let resource = http.get("/resources/src/a.ts").json();
        let (hash, hashes) = (&resource["content_hash"], [&found["before_hash"], &found["after_hash"]]);
        assert_eq!((&resource["state"], &resource["owner"]), (&json!("claimed"), &json!("a")));
        assert_eq!(*hash, *hashes[usize::from(says == OTHER)]);
        http.post("/resources/release", &json!({ "path": "src/a.ts", "agent_id": "a" }));
    }
    let left = fs::read_dir(folder(&world)).unwrap().map(|it| it.unwrap().file_name());
    assert!(!left.into_iter().any(|it| it.to_string_lossy().starts_with("half")));
}

#[test]
fn git_does_not_see_what_was_kept() {
    let (world, _daemon, http) = started();
    in_conflict(&world, http);
    assert!(folder(&world).join(".gitignore").exists());
    let git = |args: &[&str]| Command::new("git").current_dir(world.repo()).args(args).output().unwrap();
    assert!(git(&["init", "--quiet"]).status.success());
    let seen = git(&["status", "--porcelain", "--untracked-files=all"]);
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.contains("src/a.ts") && !seen.contains(".agent-protocol"), "{seen}");
}

#[test]
fn what_cannot_be_brought_back_is_said_and_changes_nothing() {
    let (world, _daemon, http) = started();
    let early = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!(early.status, 409, "{early:?}");
    assert_eq!(http.resolve("src/a.ts", &json!({ "picked_agent": "a" })).status, 201, "logged, no more");
    let found = in_conflict(&world, http);
    let count = http.count();
    for (metadata, says) in [
        (json!({ "restore": "c" }), "restore names no version of this file; there are: a, "),
        (json!({ "restore": "../src/a.ts" }), "restore names no version"),
        (json!({ "restore": "" }), "restore must be true, an agent, or the path of a version"),
        (json!({ "restore": 1, "picked_agent": "a" }), "restore must be true"),
        (json!({ "restore": ["a"] }), "restore must be true"),
        (json!({ "restore": true }), "restore needs picked_agent"),
        (json!({ "restore": true, "picked_agent": "c" }), "restore names no version"),
    ] {
        let answer = http.resolve("src/a.ts", &metadata);
        assert_eq!(answer.status, 400, "{metadata}: {answer:?}");
        let told = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(told.starts_with(says), "{metadata}: {told}");
    }
    assert_eq!((http.count(), http.state_of("src/a.ts")), (count, json!("conflicted")));
    assert_eq!(text(world.repo().join("src/a.ts")), OTHER);

    // By its path; without one, nothing is written.
    let path = versions(&found)[0].1.clone().unwrap();
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": path })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN);
    assert_eq!(http.state_of("src/a.ts"), "free");
    in_conflict(&world, http);
    assert_eq!(http.resolve("src/a.ts", &json!({ "picked_agent": "a", "restore": false })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OTHER);
}

#[test]
fn a_version_that_somebody_else_has_written_is_not_brought_back() {
    let (world, mut daemon, http) = started();
    let found = in_conflict(&world, http);
    let copy = world.repo().join(versions(&found)[0].1.clone().unwrap());
    fs::write(&copy, "evil\n").unwrap();
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a" })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN, "the daemon has one of its own");

    let found = in_conflict(&world, http);
    let copy = world.repo().join(versions(&found)[0].1.clone().unwrap());
    fs::write(&copy, "evil\n").unwrap();
    daemon.kill();
    for own in fs::read_dir(world.state_dir().join("versions")).unwrap() {
        fs::write(own.unwrap().path(), "damaged\n").unwrap();
    }
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(text(world.repo().join("src/a.ts")), OTHER);
    assert_eq!(http.resolve("src/a.ts", &json!({})).status, 201, "without it the conflict ends");
}

#[test]
fn no_link_is_followed_to_keep_a_version_or_to_bring_it_back() {
    let (world, _daemon, http) = started();
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.repo().join(".agent-protocol")).unwrap();
    let found = in_conflict(&world, http);
    assert_eq!(versions(&found), [("a".to_owned(), None), ("b".to_owned(), None)]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!(refused.status, 409, "it was not kept: {refused:?}");
    assert_eq!(http.resolve("src/a.ts", &json!({})).status, 201);

    fs::remove_file(world.repo().join(".agent-protocol")).unwrap();
    world.write("src/a.ts", OWN);
    in_conflict(&world, http);
    let (file, target) = (world.repo().join("src/a.ts"), world.repo().join("target.ts"));
    fs::rename(&file, &target).unwrap();
    symlink(&target, &file).unwrap();
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!((refused.status, refused.json()), (400, json!({ "error": "Invalid path" })));
    fs::remove_file(&file).unwrap();
    symlink("../target.ts", &file).unwrap();
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!((refused.status, &*text(&target)), (409, OTHER), "{refused:?}");
    fs::remove_file(&file).unwrap();
    // Nor is the folder of the file.
    fs::rename(world.repo().join("src"), world.repo().join("real")).unwrap();
    symlink("real", world.repo().join("src")).unwrap();
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert!(refused.status != 201 && !world.repo().join("real/a.ts").exists(), "{refused:?}");
}

#[test]
fn what_would_be_overwritten_is_kept_too() {
    let (world, _daemon, http) = started();
    in_conflict(&world, http);
    let third = "export const a = 3\n";
    world.write("src/a.ts", third);
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a" })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN);
    let all = fs::read_dir(folder(&world)).unwrap().map(|it| it.unwrap().path());
    assert!(all.into_iter().any(|it| text(it) == third));

    world.write("src/a.ts", OWN);
    in_conflict(&world, http);
    fs::write(world.repo().join("src/a.ts"), vec![b'x'; (1 << 20) + 1]).unwrap();
    let refused = http.resolve("src/a.ts", &json!({ "restore": "a" }));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(fs::metadata(world.repo().join("src/a.ts")).unwrap().len(), (1 << 20) + 1);
    // A file that is gone comes back, with its folder.
    fs::remove_dir_all(world.repo().join("src")).unwrap();
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a" })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN);
}

#[test]
fn a_file_that_is_too_large_is_in_conflict_without_its_versions() {
    let (world, _daemon, http) = started();
    let large = "x".repeat((1 << 20) + 1);
    world.write("src/a.ts", &large);
    let found = in_conflict(&world, http);
    let kept = versions(&found);
    assert!(kept[0].1.is_none() && kept[1].1.is_some(), "{found}");
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a" })).status, 409);
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "b" })).status, 201);
}

#[test]
fn what_was_kept_outlives_a_crash() {
    let (world, mut daemon, http) = started();
    in_conflict(&world, http);
    http.claim("src/b.ts", "a");
    daemon.kill();
    fs::remove_dir_all(folder(&world)).unwrap();
    // As if it had ended between the grant of a claim and its version.
    world.write("src/b.ts", OWN);
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a", "picked_agent": "a" })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN);
    daemon.stop();
    fs::remove_dir_all(world.state_dir().join("versions")).unwrap();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let kept = || fs::read_dir(world.state_dir().join("versions")).unwrap();
    eventually("a version of what is claimed", || kept().any(|it| text(it.unwrap().path()) == OWN));
    for own in kept() {
        assert_eq!(own.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    world.write("src/a.ts", OTHER);
    http.modified_by("b", "src/a.ts");
    assert_eq!(versions(&http.conflict()).iter().filter(|it| it.1.is_some()).count(), 2);
}

#[test]
fn the_owners_own_word_about_a_change_counts_as_its_version() {
    let (world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    http.claim("src/a.ts", "a");
    let second = "export const a = 'second'\n";
    world.write("src/a.ts", second);
    http.modified_by("a", "src/a.ts");
    assert_eq!(http.state_of("src/a.ts"), "claimed");
    world.write("src/a.ts", OTHER);
    http.modified_by("b", "src/a.ts");
    let kept = versions(&http.conflict());
    assert_eq!(text(world.repo().join(kept[0].1.as_deref().unwrap())), second);
}

fn seen(http: Http, file: &str, times: usize) {
    let path = format!("/events?action=resource.modified&resource={file}");
    eventually("word of a change", || http.get(&path).json().as_array().unwrap().len() >= times);
}

#[test]
fn a_change_that_was_seen_is_anothers_if_that_one_owns_up_in_time() {
    let world = World::new();
    world.write("src/a.ts", OWN);
    world.configure("[agent_protocol]\ndetection_window = \"10m\"\n");
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    http.announce("a");
    http.announce("b");
    http.claim("src/a.ts", "a");
    let before = http.get("/resources/src/a.ts").json()["content_hash"].clone();
    watched(&world);
    world.write("src/a.ts", OTHER);
    seen(http, "src/a.ts", 1);
    let blamed = http.get("/events?limit=1&action=resource.modified").json()[0].clone();
    assert_eq!(blamed["agent_id"], "a", "nobody has owned up to it yet");
    http.modified_by("b", "src/a.ts");
    let found = http.conflict();
    assert_eq!((&found["before_hash"], &found["metadata"]["intruder"]), (&before, &json!("b")));
    let kept: Vec<_> = versions(&found).into_iter().map(|it| (it.0, it.1.unwrap())).collect();
    let says: Vec<_> = kept.iter().map(|it| (&*it.0, text(world.repo().join(&it.1)))).collect();
    assert_eq!(says, [("a", OWN.to_owned()), ("b", OTHER.to_owned())]);
}

#[test]
fn a_change_while_the_owner_is_away_is_kept_as_nobodys() {
    let (world, _daemon, http) = started();
    http.announce("a");
    http.claim("src/a.ts", "a");
    watched(&world);
    let offline = [("Content-Type", "application/json")];
    assert_eq!(http.send("PATCH /agents/a/status", &offline, br#"{"status":"offline"}"#).status, 200);
    world.write("src/a.ts", OTHER);
    eventually("a conflict", || http.state_of("src/a.ts") == "conflicted");
    let found = http.conflict();
    let kept = versions(&found);
    assert_eq!(kept.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["a", "unknown"]);
    assert_eq!(http.resolve("src/a.ts", &json!({ "restore": "a" })).status, 201);
    assert_eq!(text(world.repo().join("src/a.ts")), OWN);
}

#[test]
fn the_oldest_versions_give_way_and_nothing_else_does() {
    let (world, _daemon, http) = started();
    fs::create_dir_all(folder(&world)).unwrap();
    for n in 0..250 {
        fs::write(folder(&world).join(format!("{n:013}-{n:016x}-old.ts")), "old").unwrap();
    }
    for other in ["notes.md", "0000000000001-short", "half-1-1"] {
        fs::write(folder(&world).join(other), "mine").unwrap();
    }
    in_conflict(&world, http);
    let mut names: Vec<String> = fs::read_dir(folder(&world))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    let versions = names.iter().filter(|it| it.ends_with(".ts")).count();
    assert_eq!((versions, &*names[0]), (200, ".gitignore"), "{names:?}");
    assert!(names.iter().any(|it| it == "notes.md") && names.iter().any(|it| it == "0000000000001-short"));
    assert!(!names.iter().any(|it| it.starts_with("half-")), "what somebody has begun and not ended");
    assert!(!names.iter().any(|it| it.starts_with("0000000000051-")) && names.len() > 200, "{names:?}");
}
