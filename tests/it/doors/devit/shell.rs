//! The DevIt door and the built-in worker: tasks that run in the jail, and what only Unix sockets have.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Reply, World, another_second, eventually, fresh, mac, now_s};

#[test]
fn a_shell_task_runs_in_the_jail_and_its_result_comes_back() {
    let world = World::new();
    std::fs::write(world.repo().join("hello.txt"), "from the repository").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "cat hello.txt; echo made > made.txt", json!({}));
    assert_eq!(reply.ack()["task_id"], task.as_str());
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed");
    assert_eq!(result["artifacts"]["summary"], "from the repository");
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!((&metadata["exit_code"], &metadata["exit_reason"]), (&json!(0), &json!("success")));
    for key in [
        "time_queued",
        "time_started",
        "time_completed",
        "duration_total_ms",
        "duration_execution_ms",
        "worker_type",
        "worker_version",
        "model_requested",
        "model_used",
        "tokens_input",
        "tokens_output",
        "tokens_reasoning",
        "cost_estimate_usd",
    ] {
        assert!(metadata.get(key).is_some(), "{key} is missing from {metadata}");
    }
    assert_eq!(std::fs::read_to_string(world.repo().join("made.txt")).unwrap(), "made\n");
    assert_eq!(client.task(&task).unwrap()["status"], "completed");
}

#[test]
fn a_poll_is_held_until_the_result_is_there() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "sleep 0.3; echo done", json!({}));
    reply.ack();
    let before = Instant::now();
    let mut polls = 0;
    let result = loop {
        polls += 1;
        match client.poll() {
            Reply::Message(message) => break message,
            Reply::Nothing => assert!(before.elapsed() < Duration::from_secs(20)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(result["payload"]["task_id"], task.as_str());
    assert!(polls <= 3, "{polls} polls for a task of 0.3 s: they are not held");
}

#[test]
fn the_same_request_again_is_the_same_task_and_another_one_is_refused() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let payload = json!({ "return_to": "orch:a", "task": { "action": "devit_delegate", "goal": "echo x >> count", "timeout": 30 } });
    let id = fresh("task");
    client.say_to("DELEGATE", &id, "shell", payload.clone()).ack();
    client.result_of(&id);
    assert_eq!(client.say_to("DELEGATE", &id, "shell", payload.clone()).ack()["status"], "completed");
    let mut other = payload.clone();
    other["task"]["goal"] = json!("echo y >> count");
    assert_eq!(client.say_to("DELEGATE", &id, "shell", other).code(), "E_TASK_EXISTS");
    let thief = world.client(&daemon, "orch:b");
    assert_eq!(thief.say_to("DELEGATE", &id, "shell", payload).code(), "E_TASK_EXISTS");
    assert_eq!(std::fs::read_to_string(world.repo().join("count")).unwrap(), "x\n", "it ran once");
}

#[test]
fn a_replayed_a_stale_and_a_future_frame_change_nothing() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let payload = json!({ "task": { "goal": "echo x >> count", "timeout": 30 } });
    let id = fresh("task");
    let frame = client.frame("DELEGATE", &id, "shell", &payload);
    let line = format!("{frame}\n");
    client.send(line.as_bytes()).ack();
    client.result_of(&id);
    assert_eq!(client.send(line.as_bytes()).code(), "E_AUTH", "replayed");
    let compact = json!({
        "t": frame["msg_type"], "i": frame["msg_id"], "f": frame["from"], "o": frame["to"], "s": frame["ts"],
        "n": frame["nonce"], "h": frame["hmac"], "p": frame["payload"],
    });
    let Reply::Message(reply) = client.send(format!("{compact}\n").as_bytes()) else { panic!("no answer") };
    assert_eq!(
        (&reply["t"], &reply["p"]["code"]),
        (&json!("ERR"), &json!("E_AUTH")),
        "the same in the other form"
    );
    for ts in [now_s() - 1_000, now_s() + 1_000, 1_700_000_000] {
        let (id, nonce) = (fresh("task"), fresh("nonce"));
        let hmac =
            mac(&client.secret, ["DELEGATE", &id, "orch:a", "shell"], ts, &nonce, &payload.to_string());
        let frame = json!({
            "msg_type": "DELEGATE", "msg_id": id, "from": "orch:a", "to": "shell", "ts": ts, "nonce": nonce,
            "hmac": hmac, "payload": payload,
        });
        assert_eq!(client.send(format!("{frame}\n").as_bytes()).code(), "E_AUTH", "ts {ts}");
    }
    assert_eq!(std::fs::read_to_string(world.repo().join("count")).unwrap(), "x\n");
}

#[test]
fn a_thousand_silent_connections_delay_nobody() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    client.say("HEARTBEAT", json!({}));
    let silent: Vec<UnixStream> =
        (0..1_000).map_while(|_| UnixStream::connect(&client.socket).ok()).collect();
    assert!(silent.len() > 500, "only {} connections", silent.len());
    // While they are all still there: the client gives up on an answer that does not come.
    for _ in 0..20 {
        assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let rss = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    let kib: u64 = rss.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 200 << 10, "{rss} with a thousand silent connections");
}

#[test]
fn sockets_are_ours_alone() {
    let world = World::new();
    let daemon = world.start();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.socket), 0o600);
    assert_eq!(mode(daemon.socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&world.own_socket()), 0o600);
    for file in std::fs::read_dir(world.state_dir()).unwrap().flatten() {
        assert_eq!(mode(&file.path()) & 0o077, 0, "{:?} is open to others", file.path());
    }
}

#[test]
fn a_task_that_ran_when_the_daemon_died_is_reported_lost_and_leaves_no_process() {
    let world = World::new();
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "touch began; sleep 313", json!({ "timeout": 600 }));
    reply.ack();
    eventually("the start", || world.repo().join("began").exists());
    daemon.kill();
    let running = || {
        let found =
            std::process::Command::new("pgrep").args(["-u", &uid(), "-f", "sleep 313"]).output().unwrap();
        !found.stdout.is_empty()
    };
    eventually("the end of the worker", || !running());
    another_second();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed");
    assert_eq!(result["metadata"]["failure"]["reason"], "lost");
}

fn uid() -> String {
    rustix::process::geteuid().as_raw().to_string()
}
