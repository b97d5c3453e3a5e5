//! Files that a delegation wants watched: told while the task runs, and listed at its end.

use std::collections::BTreeSet;

use provost::base::WatchPatterns;
use provost::base::limits::{WATCH_PATTERN_LEN_MAX, WATCH_PATTERNS_EASY_BYTES, WATCH_PATTERNS_MAX};
use serde_json::{Value, json};

use crate::support::{Client, World, eventually};

fn delegate(client: &Client, worker: &str, goal: &str, patterns: Value) -> String {
    let (task, reply) = client.delegate(worker, goal, json!({ "watch_patterns": patterns, "timeout": 600 }));
    reply.ack();
    task
}

/// `change path` of every file, with its earlier name.
fn files(changed: &Value) -> BTreeSet<String> {
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let line = |it: &Value| {
        let from = it["from"].as_str().map(|from| format!(" from {from}")).unwrap_or_default();
        format!("{} {}{from}", word(it, "change"), word(it, "path"))
    };
    changed["files"].as_array().unwrap_or_else(|| panic!("{changed}")).iter().map(line).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(ToString::to_string).collect()
}

fn progress(client: &Client, task: &str) -> Value {
    let message = client.poll_until(|it| it["payload"]["task_id"] == task);
    assert_eq!(message["payload"]["status"], "progress", "{message}");
    message["payload"]["artifacts"].clone()
}

/// The file appears with its content: a look in between would take an empty file for new and its content for
/// a change.
fn write(world: &World, path: &str, text: &str) {
    let path = world.repo().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let whole = world.path("whole");
    std::fs::write(&whole, text).unwrap();
    std::fs::rename(whole, path).unwrap();
}

#[test]
fn changes_are_told_while_the_worker_runs_and_listed_at_its_end() {
    let world = World::new();
    for path in ["src/a.rs", "src/gone.rs", "src/old.rs", "Cargo.toml", "deep/Cargo.toml", "notes.txt"] {
        write(&world, path, path);
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x >> src/a.rs; until [ -e go ]; do sleep 0.01; done; \
                mkdir -p new/deep; echo x > new/deep/b.rs; rm src/gone.rs; mv src/old.rs src/renamed.rs; \
                echo x >> Cargo.toml; echo x >> deep/Cargo.toml; echo x >> notes.txt; echo x > new/c.py; \
                until [ -e stop ]; do sleep 0.01; done; echo x > last.rs; rm new/deep/b.rs";
    let task =
        delegate(&client, "shell", goal, json!(["*.rs", "./Cargo.toml", "new/**/*.p?", "{x,y}/[ab]/"]));
    let first = progress(&client, &task);
    assert_eq!(files(&first["details"]["files_changed"]), set(&["changed src/a.rs"]), "{first}");
    assert_eq!(first["summary"], "Files changed: src/a.rs");
    assert_eq!(client.task(&task).unwrap()["status"], "in_progress");

    write(&world, "go", "");
    // Told as one burst or as several.
    let expected = set(&[
        "new new/deep/b.rs",
        "removed src/gone.rs",
        "renamed src/renamed.rs from src/old.rs",
        "changed Cargo.toml",
        "changed deep/Cargo.toml",
        "new new/c.py",
    ]);
    let mut told = BTreeSet::new();
    while !expected.is_subset(&told) {
        told.extend(files(&progress(&client, &task)["details"]["files_changed"]));
    }
    assert_eq!(told.iter().filter(|it| it.contains("notes") || it.contains("a.rs")).count(), 0, "{told:?}");

    write(&world, "stop", "");
    let result = client.result_of(&task);
    let mut end = expected;
    end.remove("new new/deep/b.rs");
    end.extend(set(&["changed src/a.rs", "new last.rs"]));
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!(files(&metadata["files_changed"]), end, "{metadata:#}");
    assert_eq!(
        (&metadata["files_changed"]["more"], metadata["files_changed"].get("incomplete")),
        (&json!(0), None)
    );
    assert_eq!(client.task(&task).unwrap()["notifications"][0]["metadata"]["files_changed"]["more"], 0);
    let shown = String::from_utf8(world.command(&["task", "show", &task]).output().unwrap().stdout).unwrap();
    assert!(shown.contains("renamed src/renamed.rs, before: src/old.rs"), "{shown}");
    let log = String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap();
    assert!(log.contains("files_changed"));
}

#[test]
fn patterns_that_are_none_are_refused_by_name_and_nothing_runs() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let long = "x".repeat(2_000);
    let many = vec!["*.rs"; 65];
    for (patterns, why) in [
        (json!([""]), "is empty"),
        (json!(["*.rs", "/etc/*"]), "watch_patterns[1] '/etc/*' must be relative"),
        (json!(["C:\\x"]), "must be relative"),
        (json!(["a/../../b"]), "climb"),
        (json!(["a[b"]), "is not a pattern"),
        (json!(["{a,b"]), "is not a pattern"),
        (json!(["a\nb"]), "control character"),
        (json!([long]), "longer than"),
        (json!(many), "at most 64"),
        (json!("*.rs"), "watch_patterns"),
        (json!([7]), "watch_patterns"),
    ] {
        let (task, reply) = client.delegate("shell", "touch ran", json!({ "watch_patterns": patterns }));
        let message = reply.message();
        assert_eq!(message["payload"]["code"], "E_INVALID", "{patterns}: {message}");
        assert!(message["payload"]["message"].as_str().unwrap().contains(why), "{patterns}: {message}");
        assert_eq!(client.task(&task), None);
    }
    // What is watched changes nothing about who may do what: the task after them runs.
    let (task, _) = client.delegate("shell", "true", json!({ "watch_patterns": ["**", "src\\*.rs"] }));
    assert_eq!(client.result_of(&task)["status"], "completed");
    assert!(!world.repo().join("ran").exists());
}

#[test]
fn patterns_that_pass_can_be_watched() {
    // What each costs most of: states of the matcher, for one byte of the pattern.
    for part in ["?", "*", "**/", "[!a-c]", "[!acegikmoqsuwy]", "{a,b*}", "é", "a[0-9]"] {
        for many in [1, 8, WATCH_PATTERNS_MAX] {
            // As expressions they are longer, so these are all that pass without being tried, and some more.
            let bytes = WATCH_PATTERN_LEN_MAX.min(WATCH_PATTERNS_EASY_BYTES / many);
            let patterns = vec![part.repeat(bytes / part.len()); many];
            assert_eq!(WatchPatterns::check(&patterns), Ok(()), "{part} in {many}");
            assert!(WatchPatterns::parse(&patterns).is_ok(), "{part} in {many}");
        }
    }
}

#[test]
fn a_worker_in_a_copy_is_watched_in_its_copy() {
    let world = World::new();
    let entry = "type = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = true\n";
    world.configure(&format!("[workers.apart]\n{entry}"));
    write(&world, "a.rs", "x");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let task = delegate(
        &client,
        "apart",
        "echo y >> a.rs; until [ -e b.rs ]; do [ -e a.rs ] && echo z > b.rs; done",
        json!(["*.rs"]),
    );
    let result = client.result_of(&task);
    let expected = set(&["changed a.rs", "new b.rs"]);
    assert_eq!(files(&result["artifacts"]["metadata"]["files_changed"]), expected, "{result}");
    assert!(!world.repo().join("b.rs").exists());
}

#[test]
fn a_collecting_workers_files_are_watched_while_it_has_the_task() {
    let world = World::new();
    std::fs::create_dir(world.repo().join("part")).unwrap();
    write(&world, "part/old.md", "x");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let worker = world.client(&daemon, "worker:w");
    let more = json!({ "watch_patterns": ["*.md"], "working_dir": "part" });
    let (task, _) = client.delegate("worker:w", "write", more);
    worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    // Its next frame shows that it has arrived.
    worker.say("POLL", json!({}));
    // Whether the first look is over shows in what is told; a change before it is no change.
    let mut number = 0;
    let told = loop {
        number += 1;
        write(&world, &format!("part/n{number}.md"), "x");
        write(&world, "elsewhere.md", "x");
        // What git and daemons keep there is nobody's work.
        for own in [".git", ".provost"] {
            std::fs::create_dir_all(world.repo().join("part").join(own)).unwrap();
            write(&world, &format!("part/{own}/n.md"), &number.to_string());
        }
        if let crate::support::Reply::Message(it) = client.poll()
            && it["payload"]["status"] == "progress"
        {
            break it;
        }
        assert!(number < 100, "nothing is told");
    };
    let told = files(&told["payload"]["artifacts"]["details"]["files_changed"]);
    assert!(told.iter().all(|it| it.starts_with("new n")), "{told:?}");
    std::fs::remove_file(world.repo().join("part/old.md")).unwrap();
    let done = json!({ "task_id": task, "status": "completed", "artifacts": { "summary": "done" } });
    worker.say("NOTIFY", done).ack();
    let listed = || client.task(&task).unwrap()["notifications"][0]["metadata"]["files_changed"].clone();
    eventually("the last look", || listed().is_object() && files(&listed()).contains("removed old.md"));
    assert!(files(&listed()).iter().all(|it| !it.contains("elsewhere")));
    // A daemon that ends in order has looked for the last time, and the next one watches nothing of it.
    daemon.stop();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let listed = || client.task(&task).unwrap()["notifications"][0]["metadata"]["files_changed"].clone();
    let before = listed();
    write(&world, "part/late.md", "x");
    let (other, _) = client.delegate("shell", "true", json!({}));
    client.result_of(&other);
    assert_eq!(listed(), before);
    assert!(files(&before).contains("removed old.md") && !files(&before).contains("new late.md"));
}

#[test]
fn a_watch_goes_on_after_a_crash_and_says_what_it_may_have_missed() {
    let world = World::new();
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let worker = world.client(&daemon, "worker:w");
    let (task, _) = client.delegate("worker:w", "write", json!({ "watch_patterns": ["*.md"] }));
    worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    worker.say("POLL", json!({}));
    let listed = || {
        let shown =
            String::from_utf8(world.command(&["task", "show", &task, "--json"]).output().unwrap().stdout)
                .unwrap();
        serde_json::from_str::<Value>(&shown).unwrap()["files_changed"].clone()
    };
    eventually("the first report", || {
        write(&world, &format!("n{}.md", std::fs::read_dir(world.repo()).unwrap().count()), "x");
        listed().is_object()
    });
    let before = files(&listed());
    daemon.kill();
    let daemon = world.start();
    let worker = world.client(&daemon, "worker:w");
    eventually("the first report after the crash", || {
        write(&world, "after.md", &std::fs::read_dir(world.repo()).unwrap().count().to_string());
        let now = files(&listed());
        now.iter().any(|it| it.ends_with(" after.md"))
    });
    let done = json!({ "task_id": task, "status": "completed", "artifacts": { "summary": "done" } });
    worker.say("NOTIFY", done).ack();
    let end = listed();
    assert!(before.is_subset(&files(&end)), "{before:?} is not in {end}");
    assert!(end["incomplete"].as_str().unwrap().contains("not there all the time"), "{end}");
}

#[test]
fn many_files_are_counted_and_a_limited_number_is_listed() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let task = delegate(
        &client,
        "shell",
        "i=0; while [ $i -lt 150 ]; do echo > f$i.rs; i=$((i+1)); done",
        json!(["*.rs"]),
    );
    let changed = client.result_of(&task)["artifacts"]["metadata"]["files_changed"].clone();
    assert_eq!((changed["files"].as_array().unwrap().len(), &changed["more"]), (100, &json!(50)));
}
