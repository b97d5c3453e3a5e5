//! Workers of the configuration, from a delegation at the DevIt door to the result in the delegator's queue.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::support::{World, eventually};

/// A program outside the workspace, readable by workers.
fn program(world: &World, name: &str, text: &str) -> String {
    let folder = world.path("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn running(world: &World, what: &str) -> bool {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let _ = world;
    !Command::new("pgrep").args(["-u", &uid, "-f", what]).output().unwrap().stdout.is_empty()
}

#[test]
fn placeholders_model_environment_and_json_output() {
    let world = World::new();
    let tool = program(
        &world,
        "tool",
        "#!/bin/sh\nprintf '{\"result\":\"%s\",\"args\":\"%s\",\"env\":\"%s %s %s\",\"usage\":{\"input_tokens\":7,\"output_tokens\":9}}' \
         done \"$*\" \"$DEVIT_TASK_ID\" \"$DEVIT_MODEL_USED\" \"$EXTRA\"\n",
    );
    world.configure(&format!(
        "[workers.code]\ntype = \"cli\"\nbinary = \"{tool}\"\nargs = [\"--model\", \"{{model}}\", \"--goal\", \"{{goal}}\"]\n\
         default_model = \"small\"\nallowed_models = [\"small\", \"large\"]\nread_only = [\"{}\"]\nenv = {{ EXTRA = \"extra\" }}\n",
        world.path("tools").display()
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("code", "two words; $(id)", json!({ "context": { "model": "large" } }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(result["artifacts"]["summary"], "done");
    let stdout = &result["artifacts"]["details"]["stdout"];
    assert_eq!(stdout["args"], "--model large --goal two words; $(id)", "no shell in between");
    assert_eq!(stdout["env"], format!("{task} large extra"));
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!((&metadata["model_requested"], &metadata["model_used"]), (&json!("large"), &json!("large")));
    assert_eq!((&metadata["tokens_input"], &metadata["tokens_output"]), (&json!(7), &json!(9)));
    assert_eq!(client.task(&task).unwrap()["model_resolved"], "large");
    let (task, _) = client.delegate("code", "x", json!({ "model": "forbidden" }));
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed");
    assert!(result["artifacts"]["summary"].as_str().unwrap().contains("forbidden"), "{result}");
}

#[test]
fn output_beyond_its_limit_is_cut_and_says_so() {
    let world = World::new();
    world.configure(
        "[workers.talk]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\nmax_response_chars = 100\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, _) = client.delegate("talk", "yes 0123456789 | head -n 1000", json!({}));
    let result = client.result_of(&task);
    let artifacts = &result["artifacts"];
    assert_eq!((&artifacts["truncated"], &artifacts["original_size"]), (&json!(true), &json!(11_000)));
    assert!(artifacts["details"]["stdout"].as_str().unwrap().ends_with("… [truncated]"));
    assert_eq!(client.task(&task).unwrap()["notifications"][0]["details"]["truncated"], true);
}

#[test]
fn the_whole_tree_dies_at_the_time_limit_and_at_cancel() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let swarm = |mark: &str| {
        format!(
            "trap '' TERM; for i in 1 2 3 4 5; do (setsid sh -c 'trap \"\" TERM; sleep {mark}' &) ; done; touch up.{mark}; sleep {mark}"
        )
    };
    let (task, _) = client.delegate("shell", &swarm("4711"), json!({ "timeout": 2 }));
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed");
    assert!(result["artifacts"]["summary"].as_str().unwrap().contains("timed out after 2s"), "{result}");
    assert!(!running(&world, "sleep 4711"), "something is left after the time limit");

    let (task, _) = client.delegate("shell", &swarm("4712"), json!({ "timeout": 600 }));
    eventually("the start", || world.repo().join("up.4712").exists());
    let cancel = json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    assert_eq!(client.result_of(&task)["status"], "cancelled");
    eventually("the end of the tree", || !running(&world, "sleep 4712"));
}

#[test]
fn a_worker_in_tier_ll_runs_where_policy_accepts_it() {
    let world = World::new();
    world.configure("[workers.thin]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n");
    let goal = "echo inside > f; cat f; cat $OUTSIDE 2>/dev/null || echo walled";
    let secret = world.home().join("secret");
    std::fs::write(&secret, "private").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("thin", &goal.replace("$OUTSIDE", secret.to_str().unwrap()), json!({}));
    assert_eq!(reply.ack()["approval"], "required", "the default policy asks for anything below ns");
    let approver = world.approver(&daemon);
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    approver
        .say_to(
            "APPROVAL_DECISION",
            question["msg_id"].as_str().unwrap(),
            "orchestrator",
            json!({ "status": "granted" }),
        )
        .ack();
    let result = client.result_of(&task);
    assert_eq!(
        result["artifacts"]["details"]["stdout"].as_str().unwrap().trim(),
        "inside\nwalled",
        "{result}"
    );
    assert_eq!(result["artifacts"]["metadata"]["tier"], "ll");
}

#[test]
fn a_bad_entry_refuses_its_own_worker_and_nothing_else() {
    let world = World::new();
    world.configure(
        "[daemon]\nexpected_worker_version = \"x/1\"\n\
         [workers.gone]\ntype = \"cli\"\nbinary = \"/no/such/program\"\n\
         [workers.odd]\ntype = \"teapot\"\nbinary = \"/bin/sh\"\n\
         [workers.climber]\ntype = \"cli\"\nbinary = \"../sh\"\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    assert_eq!(
        client.delegate("shell", "true", json!({})).1.code(),
        "E_VERSION_MISMATCH",
        "enforcement stands"
    );
    client.say("REGISTER", json!({ "caps": [], "version": "x/1" })).ack();
    for (worker, why) in [("gone", "/no/such/program"), ("odd", "expected one of"), ("climber", "..")] {
        let refused = client.delegate(worker, "x", json!({})).1.message();
        assert_eq!(refused["payload"]["code"], "E_INVALID", "{worker}: {refused}");
        let message = refused["payload"]["message"].as_str().unwrap();
        assert!(message.contains(worker) && message.contains(why), "{worker}: {message}");
    }
    let (task, reply) = client.delegate("shell", "true", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
}

#[test]
fn devits_own_configuration_is_used_once_it_is_allowed() {
    let world = World::new();
    let core = "[workspace]\nsandbox_root = \".\"\n[workers.local]\ntype = \"cli\"\nbinary = \"/bin/echo\"\nargs = [\"said\", \"{goal}\"]\nparse_mode = \"text\"\ntimeout = 60\n";
    std::fs::write(world.repo().join("devit.core.toml"), core).unwrap();
    let allow = |yes: bool| {
        let args: &[&str] = if yes {
            &["config", "allow", "devit.core.toml", "--yes"]
        } else {
            &["config", "allow", "devit.core.toml"]
        };
        world.command(args).output().unwrap()
    };
    {
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let (task, _) = client.delegate("local", "hello", json!({}));
        assert_eq!(
            client.task(&task).unwrap()["status"],
            "pending",
            "without `allow` it is a name like any other"
        );
        daemon.stop();
    }
    let shown = allow(false);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("/bin/echo"),
        "it shows what it is about: {shown:?}"
    );
    let allowed = allow(true);
    assert!(allowed.status.success(), "{allowed:?}");
    {
        let daemon = world.start();
        let client = world.client(&daemon, "orch:b");
        let (task, reply) = client.delegate("local", "hello", json!({}));
        reply.ack();
        assert_eq!(client.result_of(&task)["artifacts"]["summary"], "said hello");
        assert!(world.log().contains("timeout"), "the key that does nothing is named");
        daemon.stop();
    }
    std::fs::write(world.repo().join("devit.core.toml"), core.replace("said", "evil")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:c");
    let (task, _) = client.delegate("local", "hello", json!({}));
    assert_eq!(client.task(&task).unwrap()["status"], "pending", "changed content is not used");
    assert!(world.log().contains("devit.core.toml"), "and that is said");
}

#[test]
fn two_tasks_in_one_directory_run_side_by_side_and_both_are_told() {
    let world = World::new();
    let own = "type = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = true\n";
    world.configure(&format!("[workers.apart]\n{own}"));
    std::fs::create_dir(world.repo().join("inner")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Each waits for the other's file: one after the other, neither would end. The third sees only its copy.
    let meet = |mine: &str, other: &str| format!("touch {mine}; until [ -e {other} ]; do sleep 0.02; done");
    let (one, reply) = client.delegate("shell", &meet("inner/a", "inner/b"), json!({ "timeout": 20 }));
    reply.ack();
    eventually("the first one", || world.repo().join("inner/a").exists());
    let (apart, reply) = client.delegate("apart", "true", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&apart)["artifacts"]["metadata"].get("shared_directory_with"), None);
    let (two, reply) =
        client.delegate("shell", &meet("b", "a"), json!({ "working_dir": "inner", "timeout": 20 }));
    reply.ack();
    for (task, other) in [(&one, &two), (&two, &one)] {
        let shown = || client.task(task).unwrap();
        eventually("the end", || {
            let (mine, others) = (shown(), client.task(other).unwrap());
            assert!(mine["status"] != "failed" && others["status"] != "failed", "{mine}\n{others}");
            mine["status"] == "completed"
        });
        assert_eq!(shown()["shared_directory_with"], json!([other]));
        assert_eq!(shown()["notifications"][0]["metadata"]["shared_directory_with"], json!([other]));
        let told = world.command(&["task", "show", task]).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains("ran beside") && told.contains(other.as_str()), "{told}");
    }
    let log = world.command(&["log", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout).matches("task_beside").count(), 2, "both are on record");
}

#[test]
fn workers_that_share_a_workspace_come_and_go_without_harm() {
    let world = World::new();
    world.configure("[limits]\nworkers = 16\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Each jail stands in for what is missing in the workspace, shares that with its neighbours, and the last
    // one takes it away while the next is being built.
    for round in 0..4 {
        let tasks: Vec<_> = (0..16).map(|_| client.delegate("shell", "true", json!({})).0).collect();
        for task in &tasks {
            eventually("the end", || {
                client.task(task).is_some_and(|it| it["status"] != "pending" && it["status"] != "in_progress")
            });
            let task = client.task(task).unwrap();
            assert_eq!(task["status"], "completed", "round {round}: {task}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(world.repo()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, [".git"], "something was left in the workspace");
}

#[test]
fn a_worker_that_is_configured_otherwise_after_the_approval_does_not_run() {
    let world = World::new();
    let entry = |arg: &str| {
        format!(
            "[workers.thin]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{arg}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n"
        )
    };
    world.configure(&entry("echo looked at # {goal}"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("thin", "x", json!({}));
    assert_eq!(reply.ack()["approval"], "required");
    let approver = world.approver(&daemon);
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    world.configure(&entry("echo something else > f # {goal}"));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let id = question["msg_id"].as_str().unwrap();
    approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "granted" })).message();
    assert_eq!(client.result_of(&task)["status"], "failed");
    assert!(!world.repo().join("f").exists());
}
