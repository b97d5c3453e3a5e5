//! Every field of DevIt's messages at the door: what is taken for granted, what is kept, what is filled in.

use serde_json::{Value, json};

use crate::support::{Client, World, fresh};

/// A task that `worker` has in hand.
fn taken(client: &Client, worker: &Client) -> String {
    let (task, reply) = client.delegate(&worker.ident, "take me", json!({}));
    reply.ack();
    worker.poll_until(|it| it["msg_id"] == task.as_str());
    task
}

/// The newest thing said about a task, as STATUS shows it.
fn last_note(client: &Client, task: &str) -> Value {
    let shown = client.task(task).unwrap();
    shown["notifications"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn a_delegation_of_nothing_has_devits_defaults() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let id = fresh("task");
    let ack = client.say_to("DELEGATE", &id, "worker:a", json!({})).ack();
    assert_eq!((&ack["task_id"], &ack["status"]), (&json!(id), &json!("pending")));
    let shown = client.task(&id).unwrap();
    let expected = json!({
        "id": id, "goal": format!("Task {id} delegated"), "delegated_to": "worker:a", "timeout_secs": 1800,
        "status": "pending", "context": null, "watch_patterns": [], "notifications": [], "working_dir": null,
        "response_format": null, "model": null, "model_resolved": null,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[key], value, "{key}");
    }
    for key in ["created_at", "last_activity"] {
        chrono::DateTime::parse_from_rfc3339(shown[key].as_str().unwrap()).unwrap();
    }
}

#[test]
fn everything_in_a_delegation_is_shown_and_relayed_to_the_letter() {
    let world = World::new();
    std::fs::create_dir(world.repo().join("inner")).unwrap();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let payload = json!({
        "task": { "action": "devit_delegate", "goal": "  trimmed  ", "timeout": 90, "context": { "a": [1, null] },
            "watch_patterns": ["*.rs", "Cargo.toml"], "working_dir": "./inner/", "format": "compact",
            "model": " big ", "unheard_of": { "deep": [true] } },
        "return_to": "orch:b", "more": "kept",
    });
    let id = fresh("task");
    client.say_to("DELEGATE", &id, "worker:a", payload.clone()).ack();
    let shown = client.task(&id).unwrap();
    for (key, value) in [
        ("goal", json!("trimmed")),
        ("timeout_secs", json!(90)),
        ("context", json!({ "a": [1, null] })),
        ("watch_patterns", json!(["*.rs", "Cargo.toml"])),
        ("working_dir", json!("inner")),
        ("response_format", json!("compact")),
        ("model", json!("big")),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    let work = worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    assert_eq!((&work["msg_id"], &work["payload"]), (&json!(id), &payload));
    worker.say("NOTIFY", json!({ "task_id": id, "status": "completed" })).ack();
    let other = world.client(&daemon, "orch:b");
    assert_eq!(other.result_of(&id)["status"], "completed", "whom `return_to` names hears of it");
    assert_eq!(client.result_of(&id)["status"], "completed", "and so does whoever asked");
}

#[test]
fn versions_are_trimmed_and_a_blank_one_is_none() {
    let world = World::new();
    world.configure("[daemon]\nexpected_worker_version = [\"mcp-server/0.1.0\", \"devit-cli/0.1.0\"]\n");
    let daemon = world.start();
    let client = world.client(&daemon, "worker:a");
    for (version, code) in [
        (json!("other/1"), None),
        (json!("   "), Some("E_VERSION_MISSING")),
        (json!(null), Some("E_VERSION_MISSING")),
    ] {
        let err = client.say("REGISTER", json!({ "version": version })).message();
        assert_eq!(err["payload"]["code"], "E_VERSION_MISMATCH", "{version}");
        assert_eq!(err["payload"]["detail_code"].as_str(), code, "{version}");
        let received = if code.is_some() { json!(null) } else { version };
        assert_eq!(err["payload"]["received_worker_version"], received);
        assert_eq!(err["payload"]["daemon_version"], "devitd/0.1.0");
    }
    let ack = client
        .say("REGISTER", json!({ "version": " devit-cli/0.1.0 ", "caps": ["delegate"], "pid": 7 }))
        .ack();
    assert_eq!(ack["worker_version"], " devit-cli/0.1.0 ", "as it came");
    let free = World::new();
    let daemon = free.start();
    let ack = free.client(&daemon, "worker:a").say("REGISTER", json!({ "version": "" })).ack();
    assert_eq!((&ack["expected_worker_version"], &ack["worker_version"]), (&json!(null), &json!("")));
}

#[test]
fn each_status_word_means_what_devit_says() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let task = taken(&client, &worker);
    for (word, status) in [
        ("pending", "pending"),
        ("progress", "in_progress"),
        ("blocked", "in_progress"),
        ("IN_PROGRESS", "in_progress"),
        ("tpyo", "in_progress"),
    ] {
        worker.say("NOTIFY", json!({ "task_id": task, "status": word, "artifacts": {} })).ack();
        assert_eq!(client.task(&task).unwrap()["status"], status, "{word}");
        assert_eq!(last_note(&client, &task)["status"], word, "as it was said");
    }
    for (word, status) in [("Completed", "completed"), ("failed", "failed"), ("cancelled", "cancelled")] {
        let task = taken(&client, &worker);
        worker.say("NOTIFY", json!({ "task_id": task, "status": word })).ack();
        assert_eq!(client.task(&task).unwrap()["status"], status, "{word}");
    }
    let unsaid = taken(&client, &worker);
    // Without a task id the message's own names the task, without a status it is completed.
    worker.say_to("NOTIFY", &unsaid, "orchestrator", json!({ "artifacts": "words" })).ack();
    assert_eq!(client.task(&unsaid).unwrap()["status"], "completed");
}

#[test]
fn a_report_becomes_a_note_part_by_part() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let task = taken(&client, &worker);
    let note = |artifacts: Value| {
        let payload = json!({ "task_id": task, "status": "progress", "artifacts": artifacts });
        worker.say("NOTIFY", payload).ack();
        last_note(&client, &task)
    };
    let full =
        note(json!({ "summary": "s", "details": { "a": 1 }, "evidence": [2], "metadata": { "m": 3 } }));
    for (key, value) in [
        ("summary", json!("s")),
        ("details", json!({ "a": 1 })),
        ("evidence", json!([2])),
        ("metadata", json!({ "m": 3 })),
        ("auto_generated", json!(true)),
    ] {
        assert_eq!(full[key], value, "{key}");
    }
    chrono::DateTime::parse_from_rfc3339(full["received_at"].as_str().unwrap()).unwrap();
    let cut = note(json!({ "details": { "a": 1 }, "truncated": true, "original_size": 9 }));
    assert_eq!(cut["details"], json!({ "a": 1, "truncated": true, "original_size": 9 }));
    assert_eq!(cut["summary"], "daemon notification");
    let wrapped = note(json!({ "details": ["x"], "truncated": true }));
    assert_eq!(wrapped["details"], json!({ "payload": ["x"], "truncated": true }));
    assert_eq!(note(json!(["no", "object"]))["summary"], r#"["no","object"]"#);
    assert_eq!(note(json!(null))["summary"], "null");
}

#[test]
fn what_a_worker_says_about_models_is_shown_with_the_task() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let task = taken(&client, &worker);
    let say = |status: &str, metadata: Value| {
        let artifacts = json!({ "summary": "s", "metadata": metadata });
        worker.say("NOTIFY", json!({ "task_id": task, "status": status, "artifacts": artifacts })).ack();
        let shown = client.task(&task).unwrap();
        (shown["model"].clone(), shown["model_resolved"].clone())
    };
    let first = say("progress", json!({ "model_requested": "small", "model_used": "small-1" }));
    assert_eq!(first, (json!("small"), json!("small-1")));
    let silent = say("progress", json!({ "model_used": null }));
    assert_eq!(silent, (json!("small"), json!("small-1")), "silence takes nothing back");
    let last = say("completed", json!({ "model_requested": "other", "model_used": "small-2" }));
    assert_eq!(last, (json!("small"), json!("small-2")), "what was asked for stays");
}

#[test]
fn a_snapshot_counts_and_names_the_oldest() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let empty = client.say("STATUS_REQUEST", json!({})).message()["payload"].clone();
    let summary =
        json!({ "total_active": 0, "total_completed": 0, "total_failed": 0, "oldest_active_task": null });
    assert_eq!((&empty["summary"], &empty["truncated"]), (&summary, &json!(false)));
    let tasks = [(); 4].map(|()| taken(&client, &worker));
    for (task, status) in tasks.iter().zip(["completed", "failed", "cancelled"]) {
        worker.say("NOTIFY", json!({ "task_id": task, "status": status })).ack();
    }
    let payload = client.say("STATUS_REQUEST", json!({})).message()["payload"].clone();
    assert_eq!(payload["summary"]["total_active"], 1);
    assert_eq!(payload["summary"]["oldest_active_task"], tasks[3]);
    assert_eq!(payload["completed_tasks"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&payload["summary"]["total_completed"], &payload["summary"]["total_failed"]),
        (&json!(2), &json!(1))
    );
    let short =
        client.say("STATUS_REQUEST", json!({ "filter": "all", "limit": 2 })).message()["payload"].clone();
    assert_eq!((&short["truncated"], short["completed_tasks"].as_array().unwrap().len()), (&json!(true), 2));
    let failed = client.say("STATUS_REQUEST", json!({ "filter": "failed" })).message()["payload"].clone();
    assert_eq!(
        (&failed["active_tasks"], &failed["completed_tasks"][0]["id"]),
        (&json!([]), &json!(tasks[1]))
    );
    // Whom a result concerns acknowledges it; its worker does not, and nothing is moved by it.
    let ack = |who: &Client| who.say("NOTIFY", json!({ "task_id": tasks[1], "status": "ACK" }));
    assert_eq!(ack(&client).ack()["ok"], true);
    assert_eq!(ack(&worker).code(), "E_FORBIDDEN");
    let one = client.say("TASK_REQUEST", json!({ "task_id": tasks[1] })).message();
    assert_eq!((&one["msg_type"], &one["payload"]["status"]), (&json!("TASK_RESPONSE"), &json!("failed")));
}

#[cfg(unix)] // with a worker that needs a jail
#[test]
fn a_question_has_devits_members_and_its_risk() {
    let world = World::new();
    world.rule(
        "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"ask\"\ndecision = \"approve\"\nreason = \"first look\"\n\
         when.action = [\"delegate\"]\napprove.by = [\"client:approver\"]\n\
         [[rule]]\nid = \"keys\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"approve\"]\n",
    );
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    for (more, tool, risk) in [
        (json!({}), "devit_delegate", "low"),
        (json!({ "action": "devit_patch_apply", "path": "src/main.rs" }), "devit_patch_apply", "medium"),
        (json!({ "action": "devit_patch_apply", "path": "src/a.rs" }), "devit_patch_apply", "low"),
        (json!({ "action": "devit_test_run", "timeout_secs": 61 }), "devit_test_run", "medium"),
        (json!({ "action": "devit_test_run", "timeout_secs": 60 }), "devit_test_run", "low"),
    ] {
        let (task, reply) = client.delegate("shell", "true", more.clone());
        let ack = reply.ack();
        let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
        let payload = &question["payload"];
        assert_eq!((&question["from"], &question["to"]), (&json!("orchestrator"), &json!("client:approver")));
        assert_eq!(payload["reason"], "on_request");
        assert_eq!((&payload["tool"], &payload["risk_level"]), (&json!(tool), &json!(risk)), "{more}");
        assert_eq!((&payload["task_id"], &payload["original_msg_id"]), (&json!(task), &json!(task)));
        assert!(payload["timestamp"].as_str().unwrap().ends_with("+00:00"), "{payload}");
        assert_eq!(payload["details"]["task"]["goal"], "true", "the whole request");
        let id = question["msg_id"].as_str().unwrap();
        approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "denied" })).ack();
        let mail = client.result_of(&task);
        assert_eq!(mail["artifacts"]["summary"], format!("Approval denied for task {task} (tool: {tool})"));
        let failure = &mail["artifacts"]["metadata"]["failure"];
        let expected = json!({ "reason": "approval_denied", "tool": tool, "task_id": task,
            "approver": "client:approver", "approval_id": ack["approval_id"] });
        assert_eq!(failure, &expected);
    }
}

#[test]
fn a_lease_that_runs_out_is_told_both_sides_in_devits_words() {
    let world = World::new();
    world.configure("[devit]\nlease_min = \"1s\"\n");
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:a"));
    let (task, reply) = client.delegate("worker:a", "take me", json!({ "timeout": 1 }));
    reply.ack();
    worker.poll_until(|it| it["msg_id"] == task.as_str());
    let mail = client.poll_until(|it| it["payload"]["task_id"] == task.as_str());
    let payload = &mail["payload"];
    assert_eq!((&mail["from"], &payload["status"]), (&json!("worker:a"), &json!("failed")), "{mail}");
    assert_eq!(payload["artifacts"]["summary"], "Task lease expired after 1s without completion");
    let failure = &payload["metadata"]["failure"];
    for block in [&payload["artifacts"]["details"], &payload["artifacts"]["metadata"]["failure"], failure] {
        assert_eq!(
            (&block["reason"], &block["timeout_secs"]),
            (&json!("lease_timeout"), &json!(1)),
            "{block}"
        );
        assert_eq!(block["worker"], "worker:a");
        assert!(block["expired_at"].as_str().unwrap().ends_with('Z'), "{block}");
    }
    let told = worker.poll_until(|it| it["msg_type"] == "NOTIFY");
    assert_eq!((&told["payload"]["task_id"], &told["payload"]["status"]), (&json!(task), &json!("timeout")));
    assert_eq!(worker.say("NOTIFY", json!({ "task_id": task })).code(), "E_TASK_FINISHED");
}
