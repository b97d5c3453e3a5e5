//! Policy and approvals through the DevIt door: which requests are judged, which agents get a message, and which tasks run.

use serde_json::json;

use crate::support::rules::{allow, approvers, ask as asking, policy, rule};
use crate::support::{Client, Reply, World, another_second, eventually, fresh};

/// Delegations to the shell need approval, but for goals under ten bytes; `deploy` is denied.
fn rules() -> String {
    let (action, worker) = ("when.action = [\"delegate\"]", "when.worker = [\"shell\"]");
    policy([
        allow("small", &[action, worker, "when.goal_bytes_max = 9"]),
        asking("\"client:approver\", \"human\"", &[action, worker, "when.goal_bytes_over = 9"]),
        rule("no-deploy", "deny", "nobody deploys from here", &[action, "when.tool = [\"deploy\"]"]),
        approvers(),
    ])
}

/// Asks for something that needs approval; returns the task and the question as the approver gets it.
fn ask(client: &Client, approver: &Client, goal: &str) -> (String, serde_json::Value) {
    let (task, reply) = client.delegate("shell", goal, json!({}));
    let ack = reply.ack();
    assert_eq!((&ack["status"], &ack["approval"]), (&json!("pending"), &json!("required")));
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    assert_eq!(question["payload"]["task_id"], task.as_str());
    assert_eq!(question["msg_id"], ack["approval_id"]);
    (task, question)
}

fn decide(approver: &Client, question: &serde_json::Value, payload: serde_json::Value) -> Reply {
    approver.say_to("APPROVAL_DECISION", question["msg_id"].as_str().unwrap(), "orchestrator", payload)
}

#[test]
fn a_denied_delegation_is_answered_mailed_and_visible() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "touch it", json!({ "action": "deploy" }));
    let err = reply.message();
    assert_eq!(err["payload"]["code"], "E_POLICY_DENIED");
    assert_eq!(err["payload"]["message"], "Task denied by policy (tool: deploy)");
    let details = &err["payload"]["details"];
    assert_eq!(details["reason"], "policy_denied");
    assert_eq!(details["rule"], "test.no-deploy");
    assert_eq!((&details["tool"], &details["worker"]), (&json!("deploy"), &json!("shell")));
    let mail = client.result_of(&task);
    assert_eq!(mail["status"], "failed");
    assert_eq!(mail["artifacts"]["metadata"]["failure"]["reason"], "policy_denied");
    assert_eq!(mail["metadata"]["failure"]["reason"], "policy_denied");
    assert_eq!(client.task(&task).unwrap()["status"], "failed");
    assert!(!world.repo().join("it").exists());
}

#[test]
fn what_no_rule_allows_is_denied() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (_, reply) = client.delegate("worker:unknown", "anything", json!({}));
    assert_eq!(reply.message()["payload"]["details"]["rule"], "no-rule");
}

#[test]
fn an_approved_delegation_to_a_cli_worker_runs() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "echo approved > proof.txt");
    let payload = &question["payload"];
    assert_eq!((&payload["reason"], &payload["tool"]), (&json!("on_request"), &json!("devit_delegate")));
    assert_eq!(payload["details"]["task"]["goal"], "echo approved > proof.txt");
    assert_eq!(payload["risk_level"], "low");
    assert_eq!(client.task(&task).unwrap()["status"], "pending", "it is visible while it waits");
    assert!(!world.repo().join("proof.txt").exists());
    let ack = decide(&approver, &question, json!({ "status": "granted", "note": "ok" })).ack();
    assert_eq!((&ack["ok"], &ack["task_id"]), (&json!(true), &json!(task)));
    assert_eq!(client.result_of(&task)["status"], "completed");
    assert_eq!(std::fs::read_to_string(world.repo().join("proof.txt")).unwrap(), "approved\n");
    assert_eq!(
        decide(&approver, &question, json!({ "status": "granted" })).code(),
        "E_APPROVAL_NOT_FOUND",
        "used once"
    );
}

#[test]
fn a_denied_approval_fails_the_task_with_the_approvers_words() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "rm -rf everything");
    decide(&approver, &question, json!({ "status": "denied", "note": "too much" })).ack();
    let mail = client.result_of(&task);
    assert_eq!(mail["status"], "failed");
    assert_eq!(mail["artifacts"]["summary"], format!("Approval denied for task {task}: too much"));
    let failure = &mail["artifacts"]["metadata"]["failure"];
    assert_eq!(
        (&failure["reason"], &failure["approver"]),
        (&json!("approval_denied"), &json!("client:approver"))
    );
}

#[test]
fn an_answer_that_is_neither_yes_nor_no_leaves_the_request_waiting() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "echo patience > p");
    assert_eq!(decide(&approver, &question, json!({ "status": "perhaps" })).code(), "E_INVALID");
    assert_eq!(
        decide(&approver, &question, json!({ "status": "granted", "digest": "0".repeat(64) })).code(),
        "E_INVALID"
    );
    assert_eq!(client.task(&task).unwrap()["status"], "pending");
    let digest = question["payload"]["digest"].clone();
    decide(&approver, &question, json!({ "status": "granted", "digest": digest })).ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
}

#[test]
fn the_shared_secret_never_approves_and_nobody_answers_for_themselves() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "echo self > self.txt");
    assert_eq!(decide(&client, &question, json!({ "status": "granted" })).code(), "E_FORBIDDEN");
    let other = world.client(&daemon, "orch:b");
    assert_eq!(decide(&other, &question, json!({ "status": "granted" })).code(), "E_FORBIDDEN");
    assert_eq!(client.task(&task).unwrap()["status"], "pending");
    // An approver has no right to delegate, so that it cannot ask and answer.
    assert_eq!(approver.delegate("shell", "echo x", json!({})).1.code(), "E_FORBIDDEN");
    assert!(!world.repo().join("self.txt").exists());
}

#[test]
fn an_approval_survives_kill_nine() {
    let world = World::new();
    world.rule(&rules());
    let mut daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "echo later > later.txt");
    daemon.kill();
    another_second();
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    decide(&approver, &question, json!({ "status": "granted" })).ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
}

#[test]
fn a_stricter_policy_between_question_and_answer_wins() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    let (task, question) = ask(&client, &approver, "echo stale > stale.txt");
    world.rule(
        &rules()
            .replace("decision = \"approve\"", "decision = \"deny\"")
            .replace("approve.by = [\"client:approver\", \"human\"]\napprove.expires = \"5m\"\n", ""),
    );
    let denied = || {
        let answer = client.delegate("shell", "echo something long", json!({})).1.message();
        answer["payload"]["code"] == "E_POLICY_DENIED"
    };
    eventually("the reload", denied);
    let ack = decide(&approver, &question, json!({ "status": "granted" })).ack();
    assert_eq!(ack["ok"], false, "{ack}");
    assert_eq!(client.result_of(&task)["metadata"]["failure"]["reason"], "policy_denied");
    assert!(!world.repo().join("stale.txt").exists());
}

#[test]
fn a_broken_policy_leaves_the_old_one_in_force() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    world.rule("version = 1\n[[rule]]\nid = \"broken\"\n");
    eventually("the notice", || world.log().contains("the old one stays in force"));
    let (task, reply) = client.delegate("shell", "echo ok", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
    let (_, reply) = client.delegate("shell", "x", json!({ "action": "deploy" }));
    assert_eq!(reply.code(), "E_POLICY_DENIED");
}

#[test]
fn a_daemon_without_a_usable_policy_does_not_start() {
    let world = World::new();
    world.rule("version = 1\n[[rule]]\nid = \"broken\"\n");
    let out = world.command(&["up", "--foreground"]).output().unwrap();
    assert!(!out.status.success());
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(text.contains("policy.toml") && text.contains("nothing is allowed"), "{text}");
}

#[test]
fn devits_own_rules_hold_for_normalised_paths() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "client:smart");
    let say = |action: &str, more: serde_json::Value| {
        let mut task = json!({ "action": action });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client
            .say_to(
                "DELEGATE",
                &fresh("t"),
                "worker:code",
                json!({ "task": task, "return_to": "client:smart" }),
            )
            .message()
    };
    let code = |reply: &serde_json::Value| reply["payload"]["code"].as_str().unwrap_or("ACK").to_owned();
    assert_eq!(code(&say("devit_patch_apply", json!({ "path": "/etc/hosts" }))), "E_POLICY_DENIED");
    assert_eq!(
        code(&say("devit_patch_apply", json!({ "path": "/workdir/src/../../etc/x" }))),
        "E_POLICY_DENIED"
    );
    assert_eq!(
        say("devit_patch_apply", json!({ "path": "/unknown/a.rs" }))["payload"]["approval"],
        "required"
    );
    assert_eq!(code(&say("devit_file_read", json!({ "path": "src/keyboard.rs" }))), "ACK");
    assert_eq!(code(&say("devit_file_read", json!({ "path": ".ssh/id_rsa" }))), "E_POLICY_DENIED");
}

#[test]
fn a_working_dir_outside_the_workspace_is_refused_told_and_logged() {
    let world = World::new();
    std::fs::create_dir(world.repo().join("inside")).unwrap();
    std::os::unix::fs::symlink("/etc", world.repo().join("link")).unwrap();
    let fifo = world.repo().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for dir in ["/etc", "../../../../etc", "link", "fifo", "nowhere", "inside/../../.."] {
        let (task, reply) = client.delegate("shell", "pwd", json!({ "working_dir": dir }));
        assert_eq!(reply.code(), "E_SANDBOX", "{dir}");
        assert_eq!(client.result_of(&task)["metadata"]["failure"]["reason"], "sandbox", "{dir}");
    }
    assert!(world.log().contains("working directory refused"));
    let root = world.repo().canonicalize().unwrap();
    let absolute = root.join("inside");
    for dir in ["inside", "inside\\", "./inside//", absolute.to_str().unwrap()] {
        let (task, reply) = client.delegate("shell", "pwd", json!({ "working_dir": dir }));
        reply.ack();
        assert_eq!(client.result_of(&task)["artifacts"]["summary"], absolute.to_str().unwrap(), "{dir}");
        assert_eq!(client.task(&task).unwrap()["working_dir"], "inside");
    }
}

#[test]
fn a_rate_limit_travels_with_the_permission() {
    let world = World::new();
    let limited = rules()
        .replace("when.goal_bytes_max = 9", "when.goal_bytes_max = 9\nlimit.rate = \"2/1h per client\"");
    world.rule(&limited);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    client.delegate("shell", "true", json!({})).1.ack();
    client.delegate("shell", "true", json!({})).1.ack();
    let refused = client.delegate("shell", "true", json!({})).1.message();
    assert_eq!(refused["payload"]["code"], "E_POLICY_DENIED", "{refused}");
    // Another name of the same processes is the same client; one that is proved by a key is another one.
    let other = world.client(&daemon, "orch:b");
    assert_eq!(other.delegate("shell", "true", json!({})).1.message()["payload"]["code"], "E_POLICY_DENIED");
    assert!(world.command(&["key", "add", "orch:c"]).output().unwrap().status.success());
    let keyed = crate::support::Client { ident: "orch:c".into(), secret: world.key_of("orch:c"), ..other };
    keyed.delegate("shell", "true", json!({})).1.ack();
}

#[test]
fn a_terminal_below_a_registered_agent_is_not_a_persons() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "echo somebody said yes", json!({}));
    reply.ack();
    let list = world.command(&["approval", "list", "--json"]).output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let typed = || {
        let line = format!("{} approve {}", crate::support::provost().display(), list[0]["id"]);
        let plain = world.command(&[]);
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(world.repo()).env_clear();
        script.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = script.stdin(std::process::Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // This process makes itself an agent; whatever it starts on a terminal is that agent's.
    client.say("REGISTER", json!({ "caps": [] })).ack();
    let (code, said) = typed();
    assert_eq!(code, Some(4), "{said}");
    assert_eq!(client.task(&task).unwrap()["status"], "pending");
    assert!(said.contains("has spoken as an agent in this terminal"), "{said}");
}
