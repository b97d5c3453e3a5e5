//! The DevIt door as today's clients use it: a real daemon, a real socket or pipe, signed frames. Workers
//! collect their tasks here, so that all of it holds where nothing can be confined.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Connection, Reply, UP, World, another_second, eventually, fresh, read_line};

const VECTORS: &str = include_str!("../../vectors/devit/vectors.json");

#[test]
fn register_answers_with_the_advertised_version() {
    let world = World::new();
    let daemon = world.start();
    let payload = json!({ "caps": ["delegate", "notify"], "pid": 4242, "version": "mcp-server/0.1.0" });
    let ack = world.client(&daemon, "worker:a").say("REGISTER", payload).ack();
    assert_eq!(ack["daemon_version"], "devitd/0.1.0");
    assert_eq!(ack["expected_worker_version"], Value::Null);
    assert_eq!(ack["worker_version"], "mcp-server/0.1.0");
}

#[test]
fn an_expected_version_is_demanded_and_survives_a_heartbeat() {
    let world = World::new();
    world.configure("[daemon]\nexpected_worker_version = [\"mcp-server/0.1.0\", \"devit-cli/0.1.0\"]\n");
    let daemon = world.start();
    let client = world.client(&daemon, "worker:a");
    assert_eq!(client.say("HEARTBEAT", json!({})).code(), "E_VERSION_MISMATCH", "not registered yet");

    let wrong = client.say("REGISTER", json!({ "caps": [], "version": "other/2" })).message();
    assert_eq!(wrong["payload"]["code"], "E_VERSION_MISMATCH");
    assert_eq!(wrong["payload"]["received_worker_version"], "other/2");
    let absent = client.say("REGISTER", json!({ "caps": [] })).message();
    assert_eq!(absent["payload"]["code"], "E_VERSION_MISMATCH");
    assert_eq!(absent["payload"]["detail_code"], "E_VERSION_MISSING");
    assert_eq!(
        client.say("HEARTBEAT", json!({})).code(),
        "E_VERSION_MISMATCH",
        "refused registrations do not count"
    );

    client.say("REGISTER", json!({ "caps": [], "version": "devit-cli/0.1.0" })).ack();
    assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
}

#[test]
fn an_empty_poll_or_heartbeat_is_an_empty_line_at_once() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "client:smart");
    for msg_type in ["HEARTBEAT", "POLL", "HEARTBEAT"] {
        let before = Instant::now();
        assert_eq!(client.say(msg_type, json!({})), Reply::Nothing);
        assert!(before.elapsed() < Duration::from_millis(700), "an idle caller was made to wait");
    }
}

#[test]
fn a_polling_worker_gets_every_task_in_order_and_its_words_reach_the_delegator() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    // The worker is away at first; nothing of this may be lost.
    let tasks: Vec<String> =
        (0..3).map(|n| client.delegate("worker:code", &format!("goal {n}"), json!({})).0).collect();
    assert_eq!(client.task(&tasks[0]).unwrap()["status"], "pending");
    worker.say("REGISTER", json!({ "caps": ["delegate"], "version": "mcp-server/0.1.0" })).ack();
    for (n, task) in tasks.iter().enumerate() {
        let work = worker.say("HEARTBEAT", json!({})).message();
        assert_eq!((&work["msg_type"], &work["msg_id"]), (&json!("DELEGATE"), &json!(task)), "message {n}");
        assert_eq!((&work["to"], &work["from"]), (&json!("worker:code"), &json!("orchestrator")));
        assert_eq!(work["payload"]["task"]["goal"], format!("goal {n}"));
    }
    assert_eq!(worker.say("HEARTBEAT", json!({})), Reply::Nothing);
    let report = |task: &str, status: &str, summary: &str| {
        worker
            .say("NOTIFY", json!({ "task_id": task, "status": status, "artifacts": { "summary": summary } }))
            .ack()
    };
    report(&tasks[0], "progress", "half");
    assert_eq!(client.poll().message()["payload"]["status"], "progress");
    report(&tasks[0], "completed", "whole");
    let result = client.result_of(&tasks[0]);
    assert_eq!(result["artifacts"], json!({ "summary": "whole" }), "relayed to the letter");
    let shown = client.task(&tasks[0]).unwrap();
    assert_eq!(shown["status"], "completed");
    assert_eq!(shown["notifications"].as_array().unwrap().len(), 2);
}

#[test]
fn a_fast_worker_is_no_warning_in_the_log() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    for status in ["progress", "completed"] {
        let (task, reply) = client.delegate("worker:code", "quick", json!({}));
        reply.ack();
        // It has its task, and is done with it, before it says anything more on the connection that brought it.
        let mut first = Connection::to(&worker.socket).unwrap();
        let frame = worker.frame("HEARTBEAT", &fresh("msg"), "orchestrator", &json!({}));
        first.write_all(format!("{frame}\n").as_bytes()).unwrap();
        assert_eq!(read_line(&mut first).message()["msg_id"], task);
        let done = json!({ "task_id": task, "status": status, "artifacts": { "summary": "done" } });
        worker.say("NOTIFY", done).ack();
        drop(first);
        // The end of that connection is noticed before the next task is brought.
        eventually("an empty queue", || worker.say("HEARTBEAT", json!({})) == Reply::Nothing);
    }
    // Everything is in the log by its end, which a system without signals is asked for.
    assert!(world.command(&["down"]).status().unwrap().success());
    drop(daemon);
    let log = world.log();
    assert!(!log.contains("delivery not recorded"), "{log}");
}

#[test]
fn only_the_assigned_worker_moves_a_task() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let (task, reply) = client.delegate("worker:a", "careful", json!({}));
    reply.ack();
    worker.say("HEARTBEAT", json!({})).message();
    let mallory = world.client(&daemon, "worker:mallory");
    let done = json!({ "task_id": task, "status": "completed", "artifacts": { "summary": "mine" } });
    assert_eq!(mallory.say("NOTIFY", done.clone()).code(), "E_FORBIDDEN");
    assert_eq!(client.task(&task).unwrap()["status"], "pending");
    worker.say("NOTIFY", done.clone()).ack();
    assert_eq!(worker.say("NOTIFY", done).code(), "E_TASK_FINISHED", "a finished task is not opened again");
    let unknown = json!({ "task_id": "never-heard-of", "status": "completed", "artifacts": {} });
    assert_eq!(worker.say("NOTIFY", unknown).code(), "E_TASK_NOT_FOUND", "and none is made out of thin air");
}

#[test]
fn the_delegator_takes_a_task_back_and_its_worker_is_told() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let (task, _) = client.delegate("worker:a", "long", json!({}));
    worker.say("HEARTBEAT", json!({})).message();
    // Going on is what tells the daemon that the task has arrived.
    assert_eq!(worker.say("HEARTBEAT", json!({})), Reply::Nothing);
    let cancel =
        json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "changed my mind" } });
    client.say("NOTIFY", cancel).ack();
    let told = worker.say("HEARTBEAT", json!({})).message();
    assert_eq!((&told["msg_type"], &told["payload"]["status"]), (&json!("NOTIFY"), &json!("cancelled")));
    assert_eq!(client.result_of(&task)["status"], "cancelled");
}

#[test]
fn status_names_every_unfinished_task_and_stays_small_enough_for_a_clients_second() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let large = "x".repeat(900 << 10);
    let delegate =
        |it| client.delegate(&format!("worker:{it}"), "carry", json!({ "context": { "t": large } }));
    let tasks: Vec<String> = (0..8).map(|it| delegate(it).0).collect();

    let status = client.say("STATUS_REQUEST", json!({})).message();
    assert!(status.to_string().len() < 5 << 18);
    let listed = status["payload"]["active_tasks"].as_array().unwrap();
    let ids: Vec<&str> = listed.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(tasks.iter().all(|it| ids.contains(&it.as_str())), "a task that is left out counts as unknown");
    let brief: Vec<_> = listed.iter().filter(|it| it["context"].is_null()).collect();
    assert_eq!(brief.len(), 7, "one of 8 has room");
    assert!(brief.iter().all(|it| it["goal"] == "carry" && it["status"] == "pending"));
    assert_eq!(status["payload"]["truncated"], true);
    // Whoever asks for the one task gets all of it.
    let one = client.say("STATUS_REQUEST", json!({ "task_id": brief[0]["id"] })).message();
    assert_eq!(one["payload"]["context"]["t"], large);
}

#[test]
fn a_message_that_was_not_read_is_delivered_again() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let (task, _) = client.delegate("worker:a", "once", json!({}));
    // Asks, and goes without reading the answer.
    let frame = worker.frame("HEARTBEAT", &fresh("m"), "orchestrator", &json!({}));
    let mut stream = Connection::to(&worker.socket).unwrap();
    std::io::Write::write_all(&mut stream, format!("{frame}\n").as_bytes()).unwrap();
    eventually("the answer", || stream.has_something());
    drop(stream);
    let again =
        || matches!(worker.say("HEARTBEAT", json!({})), Reply::Message(it) if it["msg_id"] == task.as_str());
    eventually("the second delivery", again);
    assert_eq!(worker.say("HEARTBEAT", json!({})), Reply::Nothing, "and not a third time");
}

#[test]
fn a_wrong_secret_fails_loudly_for_a_client_that_takes_silence_for_success() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client(&daemon, "orch:a");
    client.secret = "not-the-secret-at-all".into();
    let Reply::Reset(words) = client.say("REGISTER", json!({ "caps": [] })) else { panic!("not reset") };
    let words: Value = serde_json::from_slice(&words).unwrap();
    assert_eq!(words["payload"]["code"], "E_AUTH");
    assert_eq!(words["hmac"], "", "nothing is signed for a stranger");
    // The approver's name is not had with the secret that everybody shares.
    let mut impostor = world.client(&daemon, "client:approver");
    assert!(matches!(impostor.say("POLL", json!({})), Reply::Reset(_)));
    impostor.secret = world.key_of("client:approver");
    assert_eq!(impostor.say("POLL", json!({})), Reply::Nothing);
    for reserved in ["provost", "orchestrator", "user:tester"] {
        let reply = world.client(&daemon, reserved).say("POLL", json!({}));
        assert!(matches!(reply, Reply::Reset(_)), "{reserved} was let in: {reply:?}");
    }
    assert!(!world.log().contains(&world.secret()), "the secret is in the log");
}

#[test]
fn recorded_vectors_are_stale_or_malformed_at_the_door_of_today() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "x");
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for vector in vectors["signed"].as_array().unwrap() {
        for form in ["wire", "wire_compact"] {
            let line = format!("{}\n", vector[form].as_str().unwrap());
            match client.send(line.as_bytes()) {
                // Signed with another secret than this daemon's.
                Reply::Reset(words) => assert!(String::from_utf8_lossy(&words).contains("E_AUTH")),
                Reply::Message(reply) => assert_eq!(reply["payload"]["code"], "E_INVALID", "{vector}"),
                other => panic!("{other:?} for {vector}"),
            }
        }
    }
}

#[test]
fn malformed_lines_are_answered_and_the_next_one_is_served() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let good = client.frame("HEARTBEAT", &fresh("m"), "orchestrator", &json!({}));
    let deep = format!("{{\"payload\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let separator = client.frame("POLL", "a|b", "orchestrator", &json!({}));
    let float_ts = format!("{good}").replacen("\"ts\":", "\"ts\":1.5e3,\"x\":", 1);
    let lines: Vec<Vec<u8>> = vec![
        b"junk".to_vec(),
        b"{}".to_vec(),
        b"[1,2]".to_vec(),
        b"\xff\xfe\xfd".to_vec(),
        b"null".to_vec(),
        deep.into_bytes(),
        separator.to_string().into_bytes(),
        float_ts.into_bytes(),
        br#"{"msg_type":"POLL"}"#.to_vec(),
    ];
    for line in lines {
        let mut stream = Connection::to(&client.socket).unwrap();
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        std::io::Write::write_all(&mut stream, &[line, b"\n".to_vec()].concat()).unwrap();
        let reply = read_line(&mut stream).message();
        assert_eq!(reply["payload"]["code"], "E_INVALID", "{shown}");
        // The same connection goes on.
        let good = client.frame("HEARTBEAT", &fresh("m"), "orchestrator", &json!({}));
        std::io::Write::write_all(&mut stream, format!("{good}\n").as_bytes()).unwrap();
        assert_eq!(read_line(&mut stream), Reply::Nothing, "after {shown}");
    }
}

#[test]
fn bad_payloads_name_the_member_that_is_wrong() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let cases = [
        ("DELEGATE", json!({ "task": { "timeout": -5 } }), "timeout"),
        ("DELEGATE", json!({ "task": { "timeout": 1e300 } }), "timeout"),
        ("DELEGATE", json!({ "task": { "goal": 7 } }), "goal"),
        ("DELEGATE", json!({ "task": [] }), "task"),
        ("NOTIFY", json!({ "task_id": 9 }), "task_id"),
        ("REGISTER", json!({ "caps": "all" }), "caps"),
        ("STATUS_REQUEST", json!({ "filter": "nonsense" }), "filter"),
        ("NO_SUCH_VERB", json!({}), "msg_type"),
    ];
    for (msg_type, payload, member) in cases {
        let reply = client.say_to(msg_type, &fresh("m"), "shell", payload.clone()).message();
        assert_eq!(reply["payload"]["code"], "E_INVALID", "{msg_type} {payload}");
        assert_eq!(reply["payload"]["data"]["code"], 1003);
        let message = reply["payload"]["message"].as_str().unwrap();
        assert!(message.contains(member) || member == "task", "'{message}' does not name {member}");
    }
    assert_eq!(client.say("STATUS_REQUEST", json!({})).message()["payload"]["active_tasks"], json!([]));
}

#[test]
fn a_frame_beyond_the_limit_ends_its_connection_and_nobody_else_notices() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let mut stream = Connection::to(&client.socket).unwrap();
    let chunk = vec![b'x'; 1 << 16];
    // The daemon closes in between; the writer then gets an error, which is the point.
    let wrote = (0..64).take_while(|_| std::io::Write::write_all(&mut stream, &chunk).is_ok()).count();
    assert!(wrote < 64, "four megabytes without a line break were taken");
    assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
}

#[test]
fn a_second_daemon_is_refused_with_the_pid_of_the_first() {
    let world = World::new();
    let daemon = world.start();
    let second = world.command(UP).output().unwrap();
    assert!(!second.status.success());
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(text.contains(&daemon.pid().to_string()), "{text}");
    assert_eq!(
        world.client(&daemon, "a").say("HEARTBEAT", json!({})),
        Reply::Nothing,
        "the first one goes on"
    );
}

#[test]
fn what_was_answered_is_there_after_kill_nine() {
    let world = World::new();
    let mut daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    client.say("REGISTER", json!({ "caps": [], "version": "x/1" })).ack();
    let (first, reply) = client.delegate("worker:a", "first", json!({}));
    reply.ack();
    let (second, reply) = client.delegate("worker:a", "second", json!({}));
    reply.ack();
    let done =
        |task: &str| json!({ "task_id": task, "status": "completed", "artifacts": { "summary": "kept" } });
    worker.say("HEARTBEAT", json!({})).message();
    worker.say("NOTIFY", done(&first)).ack();
    daemon.kill();

    another_second();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    assert_eq!(client.task(&first).unwrap()["status"], "completed");
    assert_eq!(client.task(&second).unwrap()["status"], "pending");
    assert_eq!(client.result_of(&first)["artifacts"]["summary"], "kept");
    let work = worker.poll_until(|it| it["msg_id"] == second.as_str());
    assert_eq!(work["payload"]["task"]["goal"], "second");
}
