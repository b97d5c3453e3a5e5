//! Others' clients of MCP with Provost as their server: the protocol's own inspector, and the official client
//! in Python. `scripts/test` installs both.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::mcp_examiners::{environment, node};
use crate::support::rules::{ALLOW, ASK};
use crate::support::{Daemon, World, provost};

const CLIENT: &str = include_str!("examined/client.py");

/// Runs a line as a person does at a terminal of their own.
pub(crate) fn at_the_terminal(world: &World, line: &str) -> Output {
    let mut person = Command::new("script");
    person.args(["-qec", &format!("{} {line}", provost().display()), "/dev/null"]);
    person.current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    crate::support::apart(&person)
}

/// How the inspector reaches a server.
enum Server {
    Stdio,
    /// At this address.
    Http(String),
}

/// Returns the inspector's exit code and output.
fn inspect(world: &World, server: &Server, era: &str, asked: &[&str]) -> (i32, Value, String) {
    let (node, modules) = node();
    let mut command = Command::new(node);
    command.arg(modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js")).arg("--cli");
    match server {
        Server::Stdio => {
            command.args([provost().to_str().unwrap(), "mcp", "--as", "inspector", "--tools", "all"]);
            for (name, value) in environment(world) {
                command.args(["-e", &format!("{name}={}", value.as_str().unwrap())]);
            }
        }
        Server::Http(url) => {
            command.args(["--transport", "http", "--server-url", url]);
        }
    }
    command.args(["--protocol-era", era, "--format", "json"]).args(asked);
    let home = world.path("inspector");
    std::fs::create_dir_all(&home).unwrap();
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(world.repo());
    let said = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let answer = serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("no JSON: {said:?}"));
    (said.status.code().unwrap(), answer, text(&said.stderr))
}

fn lists_and_calls(world: &World, server: &Server) {
    for era in ["legacy", "modern", "auto"] {
        let (code, listed, said) = inspect(world, server, era, &["--method", "tools/list", "--strict"]);
        assert_eq!(code, 0, "{era}: {said}");
        assert!(said.contains("0 errors"), "schemas that hosts do not take: {said}");
        let tools = listed["result"]["tools"].as_array().unwrap();
        for name in ["delegate", "task_wait", "approval_decide", "lock_acquire"] {
            assert!(tools.iter().any(|it| it["name"] == name), "{era}: {name}");
        }
        let call = |tool: &str, arguments: Value| {
            let arguments = arguments.to_string();
            let asked = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
            inspect(world, server, era, &asked)
        };
        let task = crate::support::fresh(era);
        let asked = json!({ "goal": "echo inspected", "worker": "shell", "task_id": task });
        let (code, begun, said) = call("delegate", asked);
        assert_eq!((code, &begun["result"]["structuredContent"]["task_id"]), (0, &json!(task)), "{said}");
        let over = (0..20).map(|_| call("task_wait", json!({ "task_id": task, "max_wait_s": 20 })).1);
        let mut over = over.map(|it| it["result"]["structuredContent"].clone());
        let over = over.find(|it| it["is_over"] == true).expect("the task ends");
        assert_eq!((&over["state"], &over["summary"]), (&json!("completed"), &json!("inspected")), "{era}");
        let (code, refused, _) = call("task_wait", json!({ "task_id": "no-such-task" }));
        assert_eq!(
            (code, &refused["result"]["isError"]),
            (5, &json!(true)),
            "{era}: it exits as after a refusal"
        );
    }
}

#[test]
fn the_inspector_lists_and_calls_tools_over_standard_input() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    lists_and_calls(&world, &Server::Stdio);
}

#[test]
fn the_inspector_lists_and_calls_tools_over_http() {
    let (world, url) = over_http(ALLOW);
    lists_and_calls(&world.0, &Server::Http(format!("{url}?agent=inspector")));
}

/// A world with the door over HTTP, and its address.
fn over_http(rule: &str) -> ((World, Daemon), String) {
    let world = World::new();
    world.rule(rule);
    world.configure("[mcp]\nenabled = true\ntools = [\"all\"]\n");
    let daemon = world.start();
    let url = format!("http://127.0.0.1:{}/mcp", Http::mcp(&world).port);
    ((world, daemon), url)
}

/// The client in Python, which begins like this.
fn drives(world: &World, mut how: Value, mode: &str, version: &str) {
    let home = PathBuf::from(
        std::env::var("PROVOST_TEST_MCP").expect("scripts/test installs a client and says where"),
    );
    how["mode"] = mode.into();
    let task = crate::support::fresh("py");
    how["task"] = task.as_str().into();
    how["goal"] = "echo from python".into();
    let mut client = Command::new(home.join("bin/python3"));
    client
        .args(["-c", CLIENT, &how.to_string()])
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", "/usr/bin:/bin");
    client.current_dir(world.repo()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let mut said = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut next = || -> Value {
        let line = said.next().expect("the client goes on").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    };
    let hello = next();
    // Who begins without asking has not been told who answers.
    let server = if mode == version { Value::Null } else { "provost".into() };
    assert_eq!((&hello["version"], &hello["server"]), (&json!(version), &server), "{mode}");
    let begun = next()["begun"].clone();
    assert_eq!((&begun["task_id"], &begun["state"]), (&json!(task), &json!("awaiting")));
    let waiting = next()["approvals"].clone();
    let number = begun["approval_id"].as_u64().unwrap();
    assert!(waiting.as_array().unwrap().iter().any(|it| it["approval_id"] == number), "{waiting}");
    let person = at_the_terminal(world, &format!("approve {number} --note fine"));
    assert!(person.status.success(), "{person:?}");
    let end = next();
    assert_eq!(
        (&end["over"]["state"], &end["text"]),
        (&json!("completed"), &json!("from python\n")),
        "{end}"
    );
    assert_eq!(end["seen"][0], "awaiting", "it saw that somebody was asked: {end}");
    let refused = next();
    assert!(
        refused["refused"] == true && refused["why"].as_str().unwrap().contains("no such task"),
        "{refused}"
    );
    assert!(client.wait().unwrap().success());
}

#[test]
fn the_client_in_python_delegates_and_waits_for_a_person_over_standard_input() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")] {
        let how = json!({
            "command": provost(), "args": ["mcp", "--as", format!("python-{mode}"), "--tools", "all"],
            "env": environment(&world), "cwd": world.repo(),
        });
        drives(&world, how, mode, version);
    }
}

#[test]
fn the_client_in_python_delegates_and_waits_for_a_person_over_http() {
    let ((world, _daemon), url) = over_http(ASK);
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let how = json!({ "url": url, "headers": { "x-provost-agent": format!("python-{mode}") } });
        drives(&world, how, mode, version);
    }
}
