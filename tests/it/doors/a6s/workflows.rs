//! Workflows: listed, run step by step in one copy, looked at, taken back. Real agents in the real jail; what
//! stands in for a model does what the lines of its prompt that begin with DO say, and so the same each time.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

const STAND_IN: &str = include_str!("../../fixtures/agents/stand_in.py");

/// A world with the stand-in under these names, and these workflows.
fn world(agents: &[&str], workflows: &str) -> World {
    let world = World::new();
    let folder = world.path("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("stand_in.py");
    std::fs::write(&path, STAND_IN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (file, folder) = (path.display(), folder.display());
    let agent = |id: &&str| {
        format!(
            "[[agent]]\nid = \"{id}\"\ncommand = [\"/usr/bin/python3\", \"{file}\", \"lines\"]\nread_only = [\"{folder}\"]\n"
        )
    };
    let agents: String = agents.iter().map(agent).collect();
    world.configure(&format!("{OPEN}{agents}{workflows}"));
    world
}

fn socket(world: &World) -> Socket {
    let socket = Socket::open(Http::a6s(world));
    socket.stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    socket
}

fn run(socket: &mut Socket, id: &str, inputs: &Value) -> String {
    let begun = socket.ask("workflows.run", &json!({ "workflowId": id, "inputs": inputs }));
    let execution = begun["result"]["executionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    assert_eq!(begun["conversation_log_id"], execution.replace("exec_", "job_"));
    execution
}

fn status(socket: &mut Socket, execution: &str) -> Value {
    socket.result("workflows.status", &json!({ "executionId": execution }))
}

/// Everything about an execution up to its end, and that.
fn completed(socket: &mut Socket, execution: &str) -> (Vec<Value>, Value) {
    let about = |it: &Value| it["data"]["executionId"] == execution;
    loop {
        if let Some(at) = socket.aside.iter().position(|it| it["type"] == "execution.complete" && about(it)) {
            let seen = socket.aside.drain(..=at).filter(|it| about(it)).collect::<Vec<_>>();
            let whole = seen.last().unwrap()["data"].clone();
            return (seen, whole);
        }
        let message = socket.message();
        socket.aside.push(message);
    }
}

/// The phases that were told, each with how it stood, without progress.
fn phases(seen: &[Value]) -> Vec<String> {
    let updates = seen.iter().filter(|it| it["type"] == "phase.update");
    let word = |it: &Value, name: &str| it["data"][name].as_str().unwrap().to_owned();
    let mut all: Vec<String> =
        updates.map(|it| format!("{} {}", word(it, "phase"), word(it, "status"))).collect();
    all.dedup();
    all
}

fn steps(whole: &Value) -> Vec<(String, String, u64)> {
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let row = |it: &Value| (word(it, "name"), word(it, "status"), it["progress"].as_u64().unwrap());
    whole["steps"].as_array().unwrap().iter().map(row).collect()
}

fn artifact(whole: &Value, path: &str) -> String {
    let found = whole["artifacts"].as_array().unwrap().iter().find(|it| it["path"] == path);
    found.unwrap_or_else(|| panic!("{path}: {whole}"))["content"].as_str().unwrap().to_owned()
}

const TWO: &str = r#"
[[workflow]]
id = "dev:two"
name = "Two steps"
description = "Writes, and looks at what was written."

[[workflow.step]]
name = "write"
agent = "coder-ai"
prompt = """
The topic is {inputs.topic}; all of it: {input}
DO write a.txt first\\n
DO say the step has written"""

[[workflow.step]]
name = "check"
command = ["/bin/sh", "-c", "grep first a.txt && echo checked \"$1\" >> a.txt", "sh", "{inputs.topic}"]

[[workflow.step]]
name = "look"
agent = "reviewer-ai"
phase = "review"
prompt = """
{previous}
{steps.write}
DO list
DO contents PROVOST_NOTHING"""
"#;

#[test]
fn steps_work_one_after_another_in_one_copy_and_hear_of_each_other() {
    let two = TWO
        .replace("DO contents PROVOST_NOTHING", "DO environment PROVOST_METHOD\nDO write b.txt second\\\\n");
    let world = world(&["coder-ai", "other-ai"], &two);
    world.put(&world.repo().join("kept.txt"), "as it was\n");
    let _daemon = world.start();
    let mut socket = socket(&world);
    let execution = run(&mut socket, "dev:two", &json!({ "topic": "x; rm *" }));
    assert!(socket.aside.is_empty(), "nothing of it comes before the answer");
    let (seen, whole) = completed(&mut socket, &execution);
    assert_eq!(whole["status"], "success", "{whole}");
    let each = ["research", "inspect", "generate", "optimize", "review"];
    let expected: Vec<String> =
        each.iter().flat_map(|it| [format!("{it} running"), format!("{it} completed")]).collect();
    assert_eq!(phases(&seen), expected);
    let done = |name: &str| (name.to_owned(), "completed".to_owned(), 100);
    assert_eq!(steps(&whole), [done("write"), done("check"), done("look")]);
    assert_eq!(whole["steps"][2]["agent"], "reviewer-ai");
    assert_eq!((&whole["workflowId"], &whole["progress"]), (&json!("dev:two"), &json!(100)));
    assert_eq!(artifact(&whole, "a.txt"), "first\nchecked x; rm *\n", "arguments are no shell's words");
    assert_eq!(artifact(&whole, "b.txt"), "second\n");
    assert_eq!(whole["artifacts"].as_array().unwrap().len(), 2, "{whole}");
    assert!(!world.repo().join("a.txt").exists(), "the user's files stay as they are");
    assert_eq!(status(&mut socket, &execution), whole, "what is told is what is answered");
    assert_eq!(socket.result("execution.status", &json!({ "executionId": execution })), whole);
    // Each step is a task on every other door, and its output is a job's.
    let tasks = world.command(&["task", "list", "--json"]).output().unwrap();
    let tasks: Value = serde_json::from_slice(&tasks.stdout).unwrap();
    let goals: Vec<&str> =
        tasks["finished"].as_array().unwrap().iter().map(|it| it["goal"].as_str().unwrap()).collect();
    assert_eq!(goals.len(), 3, "{tasks}");
    let look = goals.iter().find(|it| it.contains("DO list")).unwrap();
    assert!(look.contains("What the step check has answered") && look.contains("\nfirst\n"), "{look}");
    assert!(
        look.contains("What the step write has answered") && look.contains("the step has written"),
        "{look}"
    );
    assert!(look.contains("Review carefully"), "the role's sentence is in front: {look}");
    assert!(goals.iter().any(|it| it.contains("The topic is x; rm *")), "{goals:?}");
}

#[test]
fn the_first_step_that_fails_is_the_last_and_says_which_it_was() {
    let two = TWO.replace("grep first", "grep nowhere").replace("DO contents PROVOST_NOTHING", "");
    let world = world(&["coder-ai"], &two);
    let _daemon = world.start();
    let mut socket = socket(&world);
    let execution = run(&mut socket, "dev:two", &json!([]));
    let (seen, whole) = completed(&mut socket, &execution);
    assert_eq!(whole["status"], "failure");
    assert!(whole["error"].as_str().unwrap().starts_with("check: it has failed"), "{whole}");
    assert_eq!(phases(&seen).last().unwrap(), "generate failed");
    let row = |name: &str, status: &str, progress| (name.to_owned(), status.to_owned(), progress);
    assert_eq!(
        steps(&whole),
        [row("write", "completed", 100), row("check", "failed", 0), row("look", "pending", 0)]
    );
    assert_eq!(artifact(&whole, "a.txt"), "first\n", "what there is by then can be looked at");
}

#[test]
fn workflows_are_listed_for_each_client_and_what_is_unknown_is_said() {
    let bad = r#"
[[workflow]]
id = "dev:bad"
[[workflow.step]]
name = "one"
prompt = "{previus}"
"#;
    let world = world(&["coder-ai"], &format!("{TWO}{bad}"));
    world.put(
        &world.config_dir().join("workflows/ops.toml"),
        "[[workflow]]\nid = \"ops:tidy\"\nname = \"Tidy\"\n[[workflow.step]]\nname = \"tidy\"\nagent = \"nobody-ai\"\nprompt = \"x\"\n",
    );
    let _daemon = world.start();
    let mut socket = socket(&world);
    for params in [json!([]), json!(null), json!({})] {
        let list = socket.result("workflows.list", &params);
        let ids: Vec<&str> = list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["dev:fix_and_review", "dev:test_until_green", "dev:two", "ops:tidy"]);
        assert!(!list.to_string().contains("null"), "{list}");
    }
    let list = socket.result("workflows.list", &json!({ "domain": "dev" }));
    assert_eq!(list.as_array().unwrap().len(), 3);
    let two = json!({
        "id": "dev:two", "name": "Two steps", "domain": "dev",
        "description": "Writes, and looks at what was written.", "pattern": "sequential", "stepCount": 3,
        "agents": ["coder-ai", "reviewer-ai"]
    });
    assert_eq!(list[2], two);
    let mut error = |id: &str| socket.error("workflows.run", &json!({ "workflowId": id, "inputs": {} }));
    assert_eq!(error("no:such"), "Unknown workflow: no:such");
    let refused = error("dev:bad");
    assert!(
        refused.contains("provost.toml: line ") && refused.contains("did you mean `{previous}`?"),
        "{refused}"
    );
    let unknown = error("ops:tidy");
    assert!(
        unknown.starts_with("Unknown agent: nobody-ai, in step tidy of ops:tidy (")
            && unknown.contains("ops.toml:"),
        "{unknown}"
    );
    let wrong = socket.error("workflows.run", &json!({ "workflowId": "dev:two", "inputs": "x" }));
    assert_eq!(wrong, "workflows.run: `inputs`: expected an object");
    let wrong = socket.error("workflows.run", &json!({ "workflowId": "dev:two", "priority": "soon" }));
    assert!(wrong.contains("priority") && wrong.contains("normal"), "{wrong}");
    assert_eq!(
        socket.error("workflows.status", &json!({ "executionId": "exec_none" })),
        "Unknown execution: exec_none"
    );
}

const WAITS: &str = r#"
[[workflow]]
id = "dev:waits"
[[workflow.step]]
name = "first"
prompt = "DO write a.txt x\nDO wait"
[[workflow.step]]
name = "second"
prompt = "DO say never"
"#;

fn running(socket: &mut Socket, execution: &str) {
    loop {
        let running = |it: &Value| {
            it["data"]["executionId"] == execution
                && it["data"]["phase"] == "generate"
                && it["data"]["status"] == "running"
        };
        if socket.aside.iter().any(running) {
            return;
        }
        let message = socket.message();
        socket.aside.push(message);
    }
}

#[test]
fn a_workflow_that_is_cancelled_ends_with_its_steps() {
    let world = world(&["coder-ai"], WAITS);
    let _daemon = world.start();
    let mut socket = socket(&world);
    let begun = socket
        .result("workflows.run", &json!({ "workflowId": "dev:waits", "input": "x", "priority": "high" }));
    let execution = begun["executionId"].as_str().unwrap().to_owned();
    running(&mut socket, &execution);
    let now = status(&mut socket, &execution);
    assert_eq!(
        (&now["status"], &now["phase"], &now["workflowId"]),
        (&json!("running"), &json!("generate"), &json!("dev:waits"))
    );
    assert_eq!(steps(&now)[0].1, "running");
    assert_eq!(steps(&now)[1].1, "pending");
    let params = json!({ "executionId": execution });
    assert!(socket.result("workflows.cancel", &params).is_null());
    assert!(socket.result("workflows.cancel", &params).is_null(), "once more changes nothing");
    let (seen, whole) = completed(&mut socket, &execution);
    assert_eq!(
        (&whole["status"], &whole["cancelled"], &whole["error"]),
        (&json!("failure"), &json!(true), &json!("cancelled"))
    );
    assert_eq!(phases(&seen).last().unwrap(), "generate failed");
    assert_eq!(steps(&whole).iter().map(|it| it.1.as_str()).collect::<Vec<_>>(), ["failed", "pending"]);
    let tasks = world.command(&["task", "list", "--json", "--filter", "active"]).output().unwrap();
    let tasks: Value = serde_json::from_slice(&tasks.stdout).unwrap();
    assert_eq!(tasks["active"], json!([]), "nothing of it goes on");
    // The copy is free again, and so is the agent.
    let again = run(&mut socket, "dev:waits", &json!({}));
    running(&mut socket, &again);
    socket.result("background.cancel", &json!({ "taskId": again }));
    completed(&mut socket, &again);
}

#[test]
fn a_workflow_that_ran_does_not_outlive_its_daemon() {
    let world = world(&["coder-ai"], WAITS);
    let mut daemon = world.start();
    let mut socket = socket(&world);
    let execution = run(&mut socket, "dev:waits", &json!({}));
    running(&mut socket, &execution);
    let program = world.path("tools").join("stand_in.py").display().to_string();
    eventually("the stand-in runs", || {
        let found = std::process::Command::new("pgrep").args(["-f", &program]).output().unwrap();
        !found.stdout.is_empty()
    });
    daemon.kill();
    let _daemon = world.start();
    let mut socket = self::socket(&world);
    let whole = status(&mut socket, &execution);
    assert_eq!(
        (&whole["status"], &whole["error"]),
        (&json!("failure"), &json!("daemon restarted")),
        "{whole}"
    );
    assert_eq!(steps(&whole).iter().map(|it| it.1.as_str()).collect::<Vec<_>>(), ["failed", "pending"]);
}

#[test]
fn a_workflow_that_has_not_begun_begins_under_the_next_daemon() {
    let two = TWO.replace("DO contents PROVOST_NOTHING", "");
    let world = world(&["coder-ai"], &two);
    let mut daemon = world.start();
    let mut socket = socket(&world);
    socket.result("fleet.command", &json!({ "agentId": "coder-ai", "command": "pause" }));
    let execution = run(&mut socket, "dev:two", &json!({ "topic": "x" }));
    let waits = |socket: &mut Socket| {
        let now = status(socket, &execution);
        now["steps"].as_array().is_some_and(|it| it.len() == 3) && now["phase"] == "inspect"
    };
    while !waits(&mut socket) {
        std::thread::yield_now();
    }
    assert_eq!(status(&mut socket, &execution)["status"], "running");
    daemon.kill();
    let _daemon = world.start();
    let mut socket = self::socket(&world);
    // Whoever asks is told from then on.
    let now = status(&mut socket, &execution);
    let whole = if now["status"] == "running" { completed(&mut socket, &execution).1 } else { now };
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!(artifact(&whole, "a.txt"), "first\nchecked x\n");
    assert_eq!(steps(&whole).iter().map(|it| it.1.as_str()).collect::<Vec<_>>(), ["completed"; 3]);
}

#[test]
fn the_command_line_shows_workflows_and_what_is_wrong_with_one() {
    let world = world(&["coder-ai"], "[[workflow]]\nid = \"dev:bad\"\n[[workflow.step]]\nname = \"one\"\n");
    let said = |args: &[&str]| {
        let output = world.command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = said(&["workflow", "list"]);
    assert_eq!(code, 1, "one of them cannot be used");
    assert!(
        out.contains("dev:fix_and_review") && out.contains("built in") && !out.contains("dev:bad"),
        "{out}"
    );
    assert!(err.contains("dev:bad cannot be used: ") && err.contains("provost.toml: line "), "{err}");
    let (code, out, _) = said(&["workflow", "list", "--domain", "ops"]);
    assert_eq!((code, out.lines().count()), (0, 1), "{out}");
    let (code, out, _) = said(&["workflow", "show", "dev:test_until_green"]);
    assert!(code == 0 && out.contains("until: /bin/sh") && out.contains("at most 5 rounds"), "{out}");
    assert!(out.contains("| {check}"), "{out}");
    let (code, _, err) = said(&["workflow", "show", "dev:bad"]);
    assert!(code != 0 && err.contains("`prompt` is missing"), "{err}");
    let (code, _, err) = said(&["workflow", "show", "dev:fix_and_revue"]);
    assert!(code != 0 && err.contains("provost workflow show dev:fix_and_review"), "{err}");
}
