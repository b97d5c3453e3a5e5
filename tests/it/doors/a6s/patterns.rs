//! The meaning of each pattern of a workflow, and loops that end on a condition. A shell stands in for the model: it
//! does what the lines of its prompt that begin with DO say.

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::{Daemon, World};

const SHELL: &str = r#"
[[agent]]
id = "shell-ai"
command = ["/bin/sh", "-c", "sed -n 's/^DO //p' > /tmp/do; . /tmp/do"]
"#;

fn started(workflows: &str) -> (World, Daemon, Socket) {
    let world = World::new();
    world.configure(&format!("{OPEN}{SHELL}{workflows}"));
    let daemon = world.start();
    let socket = Socket::open(Http::a6s(&world));
    socket.stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    (world, daemon, socket)
}

/// Runs a workflow to its end.
fn done(socket: &mut Socket, id: &str, inputs: &Value) -> Value {
    let begun = socket.result("workflows.run", &json!({ "workflowId": id, "inputs": inputs }));
    let execution = begun["executionId"].as_str().unwrap().to_owned();
    loop {
        let message = socket.message();
        if message["type"] == "execution.complete" && message["data"]["executionId"] == execution {
            return message["data"].clone();
        }
    }
}

fn artifact<'a>(whole: &'a Value, path: &str) -> &'a str {
    let found = whole["artifacts"].as_array().unwrap().iter().find(|it| it["path"] == path);
    found.unwrap_or_else(|| panic!("{path}: {whole}"))["content"].as_str().unwrap()
}

fn how_steps_stand(whole: &Value) -> Vec<&str> {
    whole["steps"].as_array().unwrap().iter().map(|it| it["status"].as_str().unwrap()).collect()
}

/// How often agents and commands have run.
fn runs(world: &World) -> usize {
    let tasks = world.command(&["task", "list", "--json", "--limit", "100"]).output().unwrap();
    let tasks: Value = serde_json::from_slice(&tasks.stdout).unwrap();
    tasks["finished"].as_array().unwrap().len()
}

#[test]
fn the_built_in_workflows_are_of_use_with_one_agent_of_any_name() {
    let (world, _daemon, mut socket) = started("");
    // The tests pass as soon as there are two lines: an agent is asked twice.
    let inputs = json!({ "input": "DO echo line >> a.txt; cat a.txt", "command": "[ \"$(wc -l < a.txt)\" -ge 2 ] || { echo too short; exit 3; }" });
    let whole = done(&mut socket, "dev:test_until_green", &inputs);
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!(artifact(&whole, "a.txt"), "line\nline\n");
    assert_eq!(runs(&world), 5, "three checks, and two runs of the agent");
    let whole = done(&mut socket, "dev:test_until_green", &json!({ "command": "true" }));
    assert_eq!((&whole["status"], &whole["artifacts"]), (&json!("success"), &json!([])), "{whole}");
    assert_eq!(runs(&world), 6, "where nothing is wrong, nobody is asked");
    // A check that cannot be made is nothing that an agent could put right.
    let whole = done(&mut socket, "dev:test_until_green", &json!({}));
    assert_eq!(whole["status"], "failure");
    assert!(whole["error"].as_str().unwrap().contains("give `inputs.command`"), "{whole}");
    let whole = done(&mut socket, "dev:test_until_green", &json!({ "command": "echo still wrong; false" }));
    let error = whole["error"].as_str().unwrap();
    assert!(
        error.starts_with("fix: the check fails after 5 rounds") && error.contains("still wrong"),
        "{error}"
    );
    let whole = done(&mut socket, "dev:fix_and_review", &json!({ "input": "DO echo x >> b.txt" }));
    assert_eq!((&whole["status"], artifact(&whole, "b.txt")), (&json!("success"), "x\nx\n"), "{whole}");
    assert_eq!(how_steps_stand(&whole), ["completed", "completed"]);
}

const AT_ONCE: &str = r#"
[[workflow]]
id = "dev:apart"
pattern = "parallel"
[[workflow.step]]
name = "one"
prompt = "DO echo one > {inputs.first}; ls"
[[workflow.step]]
name = "two"
prompt = "DO echo two > {inputs.second}; ls"
"#;

#[test]
fn steps_at_once_have_copies_of_their_own_and_nobody_chooses_between_two_versions() {
    let (world, _daemon, mut socket) = started(AT_ONCE);
    let whole = done(&mut socket, "dev:apart", &json!({ "first": "a.txt", "second": "b.txt" }));
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!((artifact(&whole, "a.txt"), artifact(&whole, "b.txt")), ("one\n", "two\n"));
    let output = world.command(&["task", "list", "--json"]).output().unwrap();
    assert!(output.status.success());
    let whole = done(&mut socket, "dev:apart", &json!({ "first": "a.txt", "second": "a.txt" }));
    assert_eq!(whole["error"], "two steps have changed the same file in different ways: a.txt (one and two)");
    assert_eq!(how_steps_stand(&whole), ["completed", "completed"]);
    let whole = done(&mut socket, "dev:apart", &json!({ "first": "a.txt; exit 3", "second": "b.txt" }));
    assert!(whole["error"].as_str().unwrap().starts_with("one: "), "{whole}");
    assert_eq!(how_steps_stand(&whole), ["failed", "completed"], "the others come to their end");
}

const ROUNDS: &str = r#"
[[workflow]]
id = "dev:checked"
pattern = "maker_checker"
max_rounds = 3
[[workflow.step]]
name = "make"
prompt = "{check}\nDO echo x >> a.txt"
[[workflow.step]]
name = "count"
command = ["/bin/sh", "-c", "[ $(wc -l < a.txt) -ge 2 ] || { echo only one; exit 1; }"]
[[workflow.step]]
name = "look"
agent = "reviewer-ai"
prompt = "DO if [ $(wc -l < a.txt) -ge {inputs.lines} ]; then echo {inputs.yes}; else echo '{\"approved\": false, \"comments\": \"more of it\"}'; fi"

[[workflow]]
id = "dev:led"
pattern = "supervisor"
max_rounds = 4
[[workflow.step]]
name = "lead"
prompt = """
DO if [ -e b.txt ]; then echo 'I say: {"next": "done", "reason": "all of it is there"}'
DO elif [ -e a.txt ]; then echo '{"next": "check"}'; else echo '{inputs.begin}'; fi"""
[[workflow.step]]
name = "write"
prompt = "DO {task}"
[[workflow.step]]
name = "check"
command = ["/bin/sh", "-c", "cp a.txt b.txt"]
"#;

#[test]
fn a_maker_goes_on_until_all_who_check_approve() {
    let (world, _daemon, mut socket) = started(ROUNDS);
    let yes = "'{\"approved\": true}'";
    let whole = done(&mut socket, "dev:checked", &json!({ "lines": 3, "yes": yes }));
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!(artifact(&whole, "a.txt"), "x\nx\nx\n");
    // Three times made, three times counted, and looked at twice.
    assert_eq!(runs(&world), 8);
    let goals = world.command(&["task", "list", "--json", "--limit", "100"]).output().unwrap();
    let goals = String::from_utf8_lossy(&goals.stdout).into_owned();
    assert!(goals.contains("count: only one") && goals.contains("look: more of it"), "{goals}");
    let whole = done(&mut socket, "dev:checked", &json!({ "lines": 9, "yes": yes }));
    assert_eq!(how_steps_stand(&whole).last(), Some(&"failed"));
    let error = whole["error"].as_str().unwrap();
    assert!(
        error.starts_with("look: it does not approve after 3 rounds") && error.contains("more of it"),
        "{error}"
    );
    // A reply that cannot be read is asked for once more, and then approves of nothing.
    let whole = done(&mut socket, "dev:checked", &json!({ "lines": 1, "yes": "fine by me" }));
    assert!(whole["error"].as_str().unwrap().contains("not in the asked form"), "{whole}");
}

#[test]
fn a_supervisor_says_who_is_next_and_when_it_is_done() {
    let (_world, _daemon, mut socket) = started(ROUNDS);
    let begin = r#"{"next": "write", "task": "echo written > a.txt"}"#;
    let whole = done(&mut socket, "dev:led", &json!({ "begin": begin }));
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!((artifact(&whole, "a.txt"), artifact(&whole, "b.txt")), ("written\n", "written\n"));
    assert_eq!(how_steps_stand(&whole), ["completed", "completed", "completed"]);
    let round = r#"{"next": "write", "task": "true"}"#;
    let whole = done(&mut socket, "dev:led", &json!({ "begin": round }));
    assert_eq!(whole["error"], "lead: it has not said `done` in 4 rounds", "{whole}");
    let whole = done(&mut socket, "dev:led", &json!({ "begin": "somebody else" }));
    assert!(
        whole["error"].as_str().unwrap().starts_with("lead: its reply was not in the asked form: "),
        "{whole}"
    );
}
