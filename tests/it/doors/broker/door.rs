//! The broker door as agents use it: nothing is lost, nobody is imitated, and it stays small.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::broker_client::{Kept, feedback, poll, publish, status};
use crate::support::loopback_client::Http;

#[test]
fn a_cursor_never_skips_a_message_whoever_publishes_beside_it() {
    const WRITERS: usize = 16;
    const EACH: usize = 150;
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-reader", "working", &[]));
    let seen = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut kept = Kept::to(broker);
                for n in 0..EACH {
                    let answer = kept.publish(&feedback("feat-reader", &format!("{writer} {n}"))).unwrap();
                    assert_eq!(answer.status, 202);
                }
            });
        }
        let (mut seen, mut since, mut last) = (BTreeSet::new(), 0, 0);
        let until = Instant::now() + Duration::from_secs(60);
        while seen.len() < WRITERS * EACH && Instant::now() < until {
            let (messages, next) = poll(broker, "feat-reader", since);
            for it in messages {
                let seq = it["seq"].as_u64().unwrap();
                assert!(seq > last, "in order, each once");
                last = seq;
                seen.insert(it["message"]["payload"]["errors"][0].as_str().unwrap().to_owned());
            }
            assert!(next >= since);
            since = next;
        }
        seen
    });
    assert_eq!(seen.len(), WRITERS * EACH);
}

#[test]
fn what_was_answered_is_there_after_a_crash_and_cursors_go_on() {
    let world = World::new();
    let mut daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &["src/a.rs"]));
    publish(broker, &feedback("feat-late", "before it was there"));
    let intent = json!({ "type": "agent.intent", "agent_id": "feat-aa",
        "payload": { "files": ["src/b.rs"], "summary": "s", "valid_for_seconds": 600 } });
    publish(broker, &intent);
    let (accepted, crashed) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut kept = Kept::to(broker);
            let mut accepted = 0;
            while kept.publish(&feedback("feat-aa", &accepted.to_string())).is_ok_and(|it| it.status == 202) {
                accepted += 1;
            }
            accepted
        });
        while poll(broker, "feat-aa", 0).1 < 40 {}
        let (_, crashed) = poll(broker, "feat-aa", 0);
        daemon.kill();
        (writer.join().unwrap(), crashed)
    });
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let (messages, last) = poll(broker, "feat-aa", 0);
    let texts: Vec<&str> =
        messages.iter().map(|it| it["message"]["payload"]["errors"][0].as_str().unwrap()).collect();
    for n in 0..accepted {
        assert!(texts.contains(&n.to_string().as_str()), "{n} of {accepted} was answered and is gone");
    }
    assert!(last >= crashed);
    // Numbers go on, so that a cursor from before the crash gets what comes after it.
    publish(broker, &feedback("feat-aa", "after"));
    let (after, _) = poll(broker, "feat-aa", last);
    assert_eq!(after.len(), 1, "{after:?}");
    // The roster, claims and intents are as they were, and what waits for somebody still does.
    let rows = broker.get("/status").json();
    assert_eq!(rows["agents"][0]["status"], "intent");
    publish(broker, &status("feat-bb", "working", &["src/a.rs", "src/b.rs"]));
    let told: Vec<String> = poll(broker, "feat-bb", 0).0.iter().map(Value::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("in-flight conflict") && told[1].contains("ownership violation"));
    publish(broker, &status("feat-late", "working", &[]));
    assert_eq!(poll(broker, "feat-late", 0).0.len(), 1);
}

#[test]
fn a_poll_can_wait_for_what_comes() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || broker.get("/messages/feat-aa?since=0&wait=15").json());
        // A second reader proves that the door answers others meanwhile.
        assert_eq!(broker.get("/status").status, 200);
        publish(broker, &feedback("feat/aa", "here"));
        waiting.join().unwrap()
    });
    assert_eq!(answer["messages"][0]["payload"]["errors"][0], "here");
    let since = answer["last_seq"].as_u64().unwrap();
    let empty = broker.get(&format!("/messages/feat-aa?since={since}&wait=1")).json();
    assert_eq!(empty, json!({ "messages": [], "last_seq": since }));
    assert_eq!(broker.get("/messages/feat-aa?wait=soon").status, 400);
}

#[test]
fn a_name_with_a_key_is_nobody_elses_in_any_spelling() {
    let world = World::new();
    let out = world.command(&["key", "add", "feat/secret"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let out = world.command(&["key", "add", "the-boss"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let verified =
        json!({ "type": "agent.verified", "agent_id": "feat-aa", "payload": { "verified_by": "the-boss" } });
    let answered = json!({ "type": "agent.answer", "agent_id": "feat-aa",
        "payload": { "from": "The Boss", "answer": "yes" } });
    let from_human = json!({ "type": "agent.feedback", "agent_id": "feat-aa",
        "payload": { "from": "human", "errors": ["e"] } });
    for message in [
        status("feat/secret", "done", &[]),
        status("feat-secret", "done", &[]),
        status("the-boss", "done", &[]),
        status("the/boss", "done", &[]),
        verified,
        answered,
        from_human,
    ] {
        let answer = broker.post("/publish", &message);
        assert_eq!(answer.status, 403, "{message}: {answer:?}");
        assert_eq!(answer.json()["error"], "agent_id is reserved");
    }
    assert_eq!(broker.get("/log").json()["entries"], json!([]), "nothing of it was kept");
    // Writing to somebody is no imitation.
    publish(broker, &feedback("feat-secret", "for you"));
}

#[test]
fn long_answers_come_in_parts_and_nothing_is_between_them() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    let text = "x".repeat(1 << 20);
    for n in 0..20 {
        publish(broker, &feedback("feat-aa", &format!("{n} {text}")));
    }
    let (mut seen, mut since, mut parts) = (Vec::new(), 0, 0);
    loop {
        let (messages, next) = poll(broker, "feat-aa", since);
        if messages.is_empty() {
            break;
        }
        for it in messages {
            let text = it["message"]["payload"]["errors"][0].as_str().unwrap();
            seen.push(text.split(' ').next().unwrap().parse::<usize>().unwrap());
        }
        (since, parts) = (next, parts + 1);
    }
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
    assert!(parts > 1, "an answer of 20 MiB");
    // Who does not go on sees the newest.
    let newest = broker.get("/log").json();
    let entries = newest["entries"].as_array().unwrap();
    assert!(entries.len() < 21 && entries.len() > 2);
    assert_eq!(newest["last_seq"], since);
}

/// Resident memory of a process, in kilobytes.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_what_was_said() {
    let world = World::new();
    let daemon = world.start();
    let broker = Http::broker(&world);
    for n in 0..10 {
        publish(broker, &status(&format!("feat-{n}"), "working", &[]));
    }
    let text = "x".repeat(10_000);
    let say = |rounds: usize| {
        let mut kept = Kept::to(broker);
        for n in 0..rounds {
            let message = json!({ "type": "agent.intent", "agent_id": "feat-0", "payload": {
                "files": [format!("src/{}.rs", n % 5)], "summary": text, "valid_for_seconds": 60 } });
            assert_eq!(kept.publish(&message).unwrap().status, 202);
        }
    };
    say(500);
    let before = resident(daemon.pid());
    // Thirty megabytes, each message in nine inboxes.
    say(3_000);
    let after = resident(daemon.pid());
    assert!(after < before + 15_000, "{before} kB, then {after} kB");
}

#[test]
fn only_work_trees_of_the_repository_are_watched() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let foreign = world.path("foreign");
    std::fs::create_dir_all(foreign.join(".git")).unwrap();
    let watch = |path: &std::path::Path| {
        broker.post("/watch", &json!({ "agent_id": "feat-aa", "worktree_path": path, "cli": "claude" }))
    };
    for path in [foreign, world.path("nothing"), world.home(), "/".into()] {
        let answer = watch(&path);
        assert_eq!(answer.status, 400, "{}: {answer:?}", path.display());
    }
    assert_eq!(watch(&world.repo()).status, 202);
    assert_eq!(watch(&world.repo()).status, 202, "twice is once");
    assert_eq!(broker.get("/status").json()["agents"], json!([]), "no row before it has said something");
    publish(broker, &status("feat-aa", "working", &[]));
    assert_eq!(broker.get("/status").json()["agents"][0]["cli"], "claude");
}

#[test]
fn a_single_word_is_a_name_where_its_branch_is_checked_out() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let head = std::fs::read_to_string(world.repo().join(".git/HEAD")).unwrap();
    let branch = head.trim().strip_prefix("ref: refs/heads/").unwrap();
    publish(broker, &status(branch, "working", &[]));
    for stranger in ["agent", "foo", "a"] {
        assert_eq!(broker.post("/publish", &status(stranger, "working", &[])).status, 400, "{stranger}");
    }
    publish(broker, &feedback(branch, "and can be written to"));
    assert_eq!(poll(broker, branch, 0).0.len(), 1);
}

#[test]
fn each_repository_has_a_broker_of_its_own_and_says_which() {
    let (one, other) = (World::new(), World::new());
    let (_first, _second) = (one.start(), other.start());
    let (one, other) = (Http::broker(&one), Http::broker(&other));
    assert_ne!(one.port, other.port);
    let identity = |it: Http| it.get("/status").json()["provost"].clone();
    assert_ne!(identity(one)["repository_id"], identity(other)["repository_id"]);
    publish(one, &status("feat-aa", "working", &[]));
    assert_eq!(other.get("/status").json()["agents"], json!([]));
}

#[test]
fn git_paws_own_clients_get_what_they_look_for() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let mut stream = broker.connect();
    let body = status("feat-aa", "working", &[]).to_string();
    let head = format!(
        "POST /publish HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        broker.port,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 202"), "{text}");
    assert!(text.to_lowercase().contains("content-length: 0"), "{text}");
    let answer = broker.get("/status");
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.contains(r#""git_paw":true"#), "{text}");
}
