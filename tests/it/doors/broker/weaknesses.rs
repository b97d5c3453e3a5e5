//! Failures that were shown of git-paw's own broker, tried on Provost's. Each test names the failure that it is about:
//! 1 to 19 of the list that the door was built to. These are tried elsewhere:
//!
//! | | |
//! |---|---|
//! | 1, lost beside others; 2, 3, lost at the end | `door.rs`, `log.rs`, `core/crash.rs` |
//! | 5, nobody is asked who they are | `doors/loopback/` (`admission.rs`, `peers.rs`, `browser.rs`), `doors/tokens.rs`, `door.rs` |
//! | 6, a path that runs programs; 16, a watcher in everybody's way | `git.rs`, `watching.rs`, `door.rs` |
//! | 8, no bounds | `doors/loopback/bounds.rs`, `vectors.rs` (names) |
//! | 9, nobody there yet; 10, asked once for ever; 11, 12, claims and conflicts; 15, what sticks | `core/posts.rs`, `git.rs` |
//! | 14, two repositories, one broker | `door.rs`, `doors/loopback/ports.rs` |

use std::fs;

use provost::base::{AgentId, Timestamp};
use provost::domain::Settings;
use provost::domain::command::Publish;
use provost::domain::post::{Post, Source};
use provost::store::{Options, open};
use serde_json::{Value, json};

use crate::support::broker_client::{feedback, poll, publish, status};
use crate::support::loopback_client::Http;
use crate::support::storm::Storm;
use crate::support::{World, eventually, now_s};

fn log_of(world: &World) -> String {
    fs::read_to_string(world.repo().join(".git-paw/broker.log")).unwrap_or_default()
}

fn with_log() -> World {
    let world = World::new();
    world.configure("[broker]\nlog = \"always\"\n");
    world
}

/// 4: one log for all repositories of a user, and a purge of all of them at once.
#[test]
fn w4_each_repository_has_a_log_of_its_own_with_all_that_was_said() {
    let (one, other) = (with_log(), with_log());
    let (_first, _second) = (one.start(), other.start());
    for (world, word) in [(&one, "first"), (&other, "second")] {
        publish(Http::broker(world), &feedback("feat-aa", &format!("{word} \u{e9}\"\n")));
        eventually("a line", || log_of(world).ends_with('\n'));
    }
    let line: Value = serde_json::from_str(log_of(&one).trim()).unwrap();
    assert_eq!((&line["seq"], &line["message"]), (&json!(1), &feedback("feat-aa", "first \u{e9}\"\n")));
    assert!(!log_of(&one).contains("second"));
    let before = log_of(&other);
    assert!(crate::support::terminal::at_the_terminal(&one, "broker purge").status.success());
    eventually("it is begun anew", || log_of(&one).is_empty());
    assert_eq!(log_of(&other), before, "a purge is one repository's");
    assert_eq!(Http::broker(&one).get("/log?since=0").json()["entries"].as_array().unwrap().len(), 1);
}

/// 7: polls that read a whole inbox, however little of it is new.
#[test]
fn w7_a_poll_reads_what_is_new_and_nothing_before_it() {
    let world = World::new();
    let daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    for n in 0..50 {
        publish(broker, &feedback("feat-aa", &n.to_string()));
    }
    assert_eq!(poll(broker, "feat-aa", 41).0.len(), 10);
    daemon.stop();
    let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    for (sql, by) in [
        (
            "SELECT inbox.n, event.body FROM inbox JOIN event ON event.seq = inbox.seq
             WHERE inbox.slug = 'a' AND inbox.n > 7 ORDER BY inbox.n",
            "SEARCH inbox USING PRIMARY KEY (slug=? AND n>?)",
        ),
        (
            "SELECT post.n, event.body FROM post JOIN event ON event.seq = post.seq WHERE post.n > 7 ORDER BY post.n",
            "SEARCH post USING INTEGER PRIMARY KEY (rowid>?)",
        ),
    ] {
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps: Vec<String> = plan.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        assert!(steps.iter().any(|it| it == by), "{steps:?}");
        assert!(steps.iter().all(|it| !it.starts_with("SCAN") && !it.contains("TEMP B-TREE")), "{steps:?}");
    }
}

/// 12: conflicts that are reported seconds later, since a detector has to look for them first.
#[test]
fn w12_a_conflict_is_in_the_inbox_before_its_cause_is_answered() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    for name in ["feat-aa", "feat-bb"] {
        publish(broker, &status(name, "working", &[]));
    }
    for n in 0..20 {
        let file = format!("src/{n}.rs");
        publish(broker, &status("feat-aa", "working", &[&file]));
        let (_, before) = poll(broker, "feat-aa", 0);
        publish(broker, &status("feat-bb", "working", &[&format!("./{file}")]));
        let (told, _) = poll(broker, "feat-aa", before);
        assert_eq!(told.len(), 1, "{n}: {told:?}");
        assert!(told[0].to_string().contains("in-flight conflict"));
        for name in ["feat-aa", "feat-bb"] {
            publish(broker, &status(name, "idle", &[]));
        }
    }
}

/// 13: agents that cannot be written to, or cannot speak, because of their branch's name.
#[test]
fn w13_every_branch_is_a_name_that_speaks_and_is_read() {
    let world = World::new();
    world.put(&world.repo().join("a.txt"), "x");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    world.git(&["worktree", "add", "-q", "-b", "hotfix", world.path("tree").to_str().unwrap()]);
    let _daemon = world.start();
    let broker = Http::broker(&world);
    for (name, spellings) in [
        ("feat/my_feature", vec!["feat-my_feature", "feat%2Fmy_feature"]),
        ("users-jane-feat-x", vec!["users-jane-feat-x"]),
        ("feat/x", vec!["feat-x", "feat%2Fx", "feat%2fx"]),
        ("hotfix", vec!["hotfix"]),
    ] {
        publish(broker, &status(name, "working", &[]));
        publish(broker, &feedback(name, "for you"));
        for spelling in spellings {
            let (messages, _) = poll(broker, spelling, 0);
            assert_eq!(messages.len(), 1, "{name} as {spelling}");
            assert_eq!(messages[0]["message"]["agent_id"], name, "as it was written");
        }
    }
}

/// 14: a repository whose agents are led to another one's broker, and nothing that tells them.
#[test]
fn w14_every_answer_to_status_says_whose_broker_it_is() {
    let world = World::new();
    let _daemon = world.start();
    let it = Http::broker(&world).get("/status").json()["provost"].clone();
    assert_eq!(it["repository"], world.repo().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(it["repository_id"].as_str().unwrap().len(), 16);
}

/// 17: clients that fail, and say that all is well.
#[test]
fn w17_a_command_whose_message_is_refused_fails_and_says_why() {
    let world = World::new();
    let _daemon = world.start();
    for (message, why) in [
        ("not json", "no JSON"),
        (r#"{"type":"agent.unknown","agent_id":"feat-x","payload":{}}"#, "unknown variant"),
        (r#"{"type":"agent.status","agent_id":"feat-x","payload":{"status":" "}}"#, "status field"),
        (r#"{"type":"agent.status","agent_id":"Feat X","payload":{"status":"s"}}"#, "invalid agent_id"),
        (r#"{"type":"agent.question","agent_id":"feat-x","payload":{"question":"<q>"}}"#, "placeholder"),
    ] {
        let out = world.command(&["broker", "publish", message]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains(why), "{message}: {said}");
    }
    assert_eq!(Http::broker(&world).get("/log").json()["entries"], json!([]));
    // Text that would break out of a JSON string that a shell pastes together.
    let odd = "it's \"quoted\" \\ $(touch x) \u{e9}\n";
    let out = world.command(&["broker", "publish", &feedback("feat-x", odd).to_string()]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let log = Http::broker(&world).get("/log").json();
    assert_eq!(log["entries"][0]["message"]["payload"]["errors"][0], odd);
}

/// 18: types of content that are taken for what they are not, and messages for which no reader can tell when or in
/// which order they came, or wait for one.
#[test]
fn w18_what_is_sent_and_what_is_read_is_exact() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let body = status("feat-aa", "working", &[]).to_string();
    for (kind, code) in [
        ("application/json", 202),
        ("Application/JSON", 202),
        ("application/json;charset=utf-8", 202),
        ("application/json ; charset=utf-8", 202),
        ("application/jsonfoo", 415),
        ("application/json-seq", 415),
        ("text/plain", 415),
        ("text/plain;application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        (";application/json", 415),
    ] {
        let answer = broker.send("POST /publish", &[("Content-Type", kind)], body.as_bytes());
        assert_eq!(answer.status, code, "{kind}");
    }
    publish(broker, &feedback("feat-aa", "one"));
    publish(broker, &feedback("feat-aa", "two"));
    let (messages, last) = poll(broker, "feat-aa", 0);
    let seqs: Vec<u64> = messages.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert!(seqs[0] < seqs[1] && seqs[1] == last);
    let at = messages[0]["timestamp_unix_secs"].as_u64().unwrap();
    let since = |second: u64| {
        let answer = broker.get(&format!("/messages/feat-aa?since_time={second}")).json();
        (answer["messages"].as_array().unwrap().len(), answer["last_seq"].as_u64().unwrap())
    };
    assert_eq!(since(at - 1), (2, last));
    assert_eq!(since(at + 3_600), (0, last), "what is left out is read");
}

/// 19: names of this machine that cannot be bound, and an address for everybody that can.
#[test]
fn w19_both_of_this_machines_addresses_answer_under_its_names() {
    let world = World::new();
    let _daemon = world.start();
    let port = Http::broker(&world).port;
    for address in ["127.0.0.1", "::1"] {
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            use std::io::{Read as _, Write as _};
            let mut stream = std::net::TcpStream::connect((address, port)).unwrap();
            let head = format!("GET /status HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"git_paw\":true"), "{name}: {text}");
        }
    }
    for bind in ["0.0.0.0", "192.168.0.1", "::"] {
        let world = World::new();
        fs::create_dir(world.repo().join(".git-paw")).unwrap();
        let text = format!("[broker]\nenabled = true\nbind = \"{bind}\"\n");
        fs::write(world.repo().join(".git-paw/config.toml"), text).unwrap();
        assert!(
            world
                .command(&["config", "allow", ".git-paw/config.toml", "--yes"])
                .output()
                .unwrap()
                .status
                .success()
        );
        let _daemon = world.start();
        let shown = world.command(&["status", "--json"]).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert!(shown["notes"].to_string().contains("nowhere else"), "{bind}: {shown}");
        let doors = shown["doors"].to_string();
        assert!(!doors.contains(&format!("//{bind}:")) && !doors.contains(&format!("[{bind}]")), "{doors}");
    }
}

/// A large inbox is read to its end from the beginning, a bounded page after the other, and costs little memory.
#[test]
fn a_large_inbox_is_read_to_its_newest_within_bounds() {
    const MANY: u64 = 100_000;
    let world = World::new();
    world.start().stop();
    let mut store = open(&world.state_dir(), Options::default()).unwrap();
    let loaded = store.load(Settings::new(AgentId::parse("client:approver").unwrap())).unwrap();
    let mut storm = Storm::new(9, loaded.state);
    storm.now = Timestamp(i64::try_from(now_s()).unwrap() * 1_000);
    let (agent, from) = (AgentId::parse("feat-reader").unwrap(), AgentId::parse("supervisor").unwrap());
    let status = Post::Status {
        agent: agent.clone(),
        status: "working".into(),
        files: vec![],
        message: None,
        cli: None,
        phase: None,
        detail: None,
    };
    storm.say("host", Publish { post: status, source: Source::Client }).unwrap();
    for n in 0..MANY {
        let errors = vec![format!("fault {n}").into()];
        let post = Post::Feedback { agent: agent.clone(), from: from.clone(), errors, re: None };
        storm.say("host", Publish { post, source: Source::Client }).unwrap();
        if n % 500 == 499 {
            store.commit(&storm.batch()).unwrap();
        }
    }
    store.commit(&storm.batch()).unwrap();
    store.close().unwrap();
    drop(store);
    let daemon = world.start();
    let broker = Http::broker(&world);
    let kib = |what: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let line = text.lines().find(|it| it.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(broker.get("/messages/feat-nobody").status, 200);
    let before = kib("VmRSS:");
    for _ in 0..2 {
        let (mut since, mut read) = (0, 0);
        loop {
            let answer = broker.get(&format!("/messages/feat-reader?since={since}"));
            assert!(answer.body.len() <= 10 << 20, "{} bytes", answer.body.len());
            let answer = answer.json();
            let page = answer["messages"].as_array().unwrap();
            if page.is_empty() {
                break;
            }
            for it in page {
                assert_eq!(it["payload"]["errors"][0], format!("fault {read}"));
                read += 1;
            }
            let last = answer["last_seq"].as_u64().unwrap();
            assert!(last > since);
            since = last;
        }
        assert_eq!(read, MANY);
    }
    let peak = kib("VmHWM:");
    assert!(peak <= before + 60_000, "{before} kB, then {peak} kB");
}
