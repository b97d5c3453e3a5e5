//! Settings do what they say, or the daemon says that it cannot.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{Client, Reply, World};

fn status(world: &World) -> Value {
    let output = world.command(&["status", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err} in {output:?}"))
}

#[test]
fn a_picture_is_refused_in_devits_words_while_the_capability_is_off() {
    let world = World::new();
    let daemon = world.start();
    let picture = world.client(&daemon, "mcp-screenshot-1").say("SCREENSHOT", json!({})).message();
    assert_eq!(
        (&picture["msg_type"], &picture["payload"]["code"], &picture["payload"]["message"]),
        (
            &json!("ERR"),
            &json!("E_SCREENSHOT_DENIED"),
            &json!("Screenshot capability is disabled by configuration")
        )
    );
}

#[test]
fn a_reload_names_what_it_could_not_take_over() {
    let world = World::new();
    let daemon = world.start();
    let reload = || {
        let output = world.command(&["daemon", "reload"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    world.configure("[hooks.notify]\ncommand = 7\n[screenshot]\nbackend = \"rm -rf\"\n");
    let said = reload();
    assert!(said.contains("`hooks.notify.command` expected text"), "{said}");
    assert!(said.contains("`screenshot.backend` expected one of"), "{said}");
    world.configure("");
    assert_eq!(reload(), "");
    // The daemon opens no other store while it runs.
    world.configure("[store]\nurl = \"postgresql:///none?host=/nonexistent&user=none\"\n");
    let said = reload();
    assert!(
        said.contains("[store] is read at a start, and has changed") && said.contains("store move"),
        "{said}"
    );
    world.configure("[store]\ntasks_keep_days = 3\n[limits]\nworkers = 7\n");
    let said = reload();
    assert!(said.contains("[store] is read at a start") && !said.contains("store move"), "{said}");
    assert_eq!(world.client(&daemon, "orch:a").say("HEARTBEAT", json!({})), Reply::Nothing);
    for limit in ["workers = 7", "hooks = 7"] {
        world.configure(&format!("[limits]\n{limit}\n"));
        let (name, said) = (limit.split(' ').next().unwrap(), reload());
        assert!(said.contains(&format!("limits.{name} is read at a start, and has changed from")), "{said}");
        assert!(said.contains("provost down") && said.lines().count() == 1, "{said}");
    }
    world.configure("");
    assert_eq!(reload(), "");
}

#[test]
fn the_rules_that_the_configuration_names_decide() {
    let world = World::new();
    world.configure("[policy]\nfile = \"builtin:strict\"\n");
    let daemon = world.start();
    assert_eq!(status(&world)["policy_source"], "builtin:strict");
    let err = world.client(&daemon, "orch:a").delegate("worker:away", "anything", json!({})).1;
    assert_eq!(err.code(), "E_POLICY_DENIED", "no jail binds a polling worker");
    daemon.stop();

    let none = "version = 1\ndefault = \"deny\"\n";
    world.put(&world.config_dir().join("rules/none.toml"), none);
    world.configure("[policy]\nfile = \"rules/none.toml\"\n");
    let daemon = world.start();
    let err = world.client(&daemon, "orch:a").delegate("shell", "true", json!({})).1;
    assert_eq!(err.message()["payload"]["details"]["rule"], "no-rule");
}

#[test]
fn no_worker_leaves_the_configured_root() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("inner/most")).unwrap();
    world.configure(&format!("[workspace]\nsandbox_root = \"{}\"\n", world.repo().join("inner").display()));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (dir, end) in [(json!(null), "repo/inner"), (json!("most"), "repo/inner/most")] {
        let (task, reply) = client.delegate("shell", "pwd; touch ../above", json!({ "working_dir": dir }));
        reply.ack();
        let summary = client.result_of(&task)["artifacts"]["details"]["stdout"].to_string();
        assert!(summary.contains(end), "{summary}");
    }
    assert!(!world.repo().join("above").exists(), "what lies above cannot be written");
    for outside in ["..", "/etc", "../../repo"] {
        let reply = client.delegate("shell", "pwd", json!({ "working_dir": outside })).1;
        assert_eq!(reply.code(), "E_SANDBOX", "{outside}");
    }
}

#[test]
fn a_fixed_address_is_listened_at_too() {
    let world = World::new();
    let at = world.path("fixed.sock");
    world.configure(&format!("[devit]\nsocket = \"{}\"\n", at.display()));
    let daemon = world.start();
    crate::support::eventually("the address", || at.exists());
    let client = Client { socket: at.clone(), ..world.client(&daemon, "orch:a") };
    assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
    assert_eq!(std::fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_clients_are_told_about_the_daemon_can_be_set() {
    let world = World::new();
    world.configure(
        "[daemon]\nadvertised_version = \"0.1.0\"\n[daemon.approvals]\ndefault_target = \"agent:judge\"\n\
         [devit]\nwindow = \"30s\"\npoll_hold = \"off\"\n[limits]\ntasks_per_agent = 1\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    assert_eq!(client.say("REGISTER", json!({})).ack()["daemon_version"], "0.1.0");
    assert!(!world.key_of("agent:judge").is_empty(), "the approver has a key of its own");
    client.delegate("worker:away", "first", json!({})).1.ack();
    assert_eq!(client.delegate("worker:away", "second", json!({})).1.code(), "E_BUSY");
    let before = std::time::Instant::now();
    assert_eq!(client.poll(), Reply::Nothing);
    assert!(before.elapsed() < std::time::Duration::from_millis(700), "polls are not held");
    let payload = json!({});
    let (ts, nonce) = (crate::support::now_s() + 40, "ahead");
    let head = ["HEARTBEAT", "m", "orch:a", "orchestrator"];
    let hmac = crate::support::mac(&client.secret, head, ts, nonce, "{}");
    let frame = json!({ "msg_type": "HEARTBEAT", "msg_id": "m", "from": "orch:a", "to": "orchestrator",
        "ts": ts, "nonce": nonce, "hmac": hmac, "payload": payload });
    match client.send(format!("{frame}\n").as_bytes()) {
        Reply::Message(message) => assert_eq!(message["payload"]["code"], "E_AUTH", "{message}"),
        other => panic!("a frame from forty seconds ahead was answered with {other:?}"),
    }
}

#[test]
fn no_more_workers_run_at_once_than_configured() {
    let world = World::new();
    world.configure("[limits]\nworkers = 1\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "mkdir alone || exit 9; sleep 0.2; rmdir alone";
    let tasks: Vec<String> = (0..3).map(|_| client.delegate("shell", goal, json!({})).0).collect();
    let mut done = 0;
    while done < tasks.len() {
        let word = client.poll_until(|it| it["msg_type"] == "NOTIFY");
        assert_eq!(word["payload"]["status"], "completed", "{word}");
        done += 1;
    }
}
