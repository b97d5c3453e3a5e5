//! Programs that are spoken to in ACP: what their entry says, in which mode they are, and how each failure is explained.

use serde_json::{Value, json};

use super::{KEY, World, at, command, ok, plant, said, settings, text_of, tried};
use crate::support::rules::ALLOW;
use crate::support::webserver::Server;

const STAND_IN: &str = include_str!("../../fixtures/agents/acp.py");

/// Each program with the name of what speaks ACP for it.
const PROGRAMS: [(&str, &str); 8] = [
    ("claude", "claude-agent-acp"),
    ("codex", "codex-acp"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
    ("copilot", "copilot"),
    ("qwen", "qwen"),
    ("goose", "goose"),
    ("cursor", "cursor-agent"),
];

/// A world with the stand-ins, each of a package of its own.
fn world() -> World {
    let world = World::new();
    for (_, program) in PROGRAMS {
        stand_in(&world, program);
    }
    world.rule(ALLOW);
    world
}

fn stand_in(world: &World, program: &str) {
    let folder = world.path("vendors");
    plant(world, &folder.join(program));
    world.put(&folder.join(program), STAND_IN);
    executable(&folder.join(program));
    let bin: serde_json::Map<String, Value> =
        PROGRAMS.iter().map(|(_, program)| ((*program).to_owned(), json!(""))).collect();
    world.put(&folder.join("package.json"), &json!({ "bin": bin }).to_string());
}

fn executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn add(world: &World, server: &Server, program: &str, more: &[&str]) -> std::process::Output {
    let upstream = at(server);
    let args =
        ["agent", "add", program, "--upstream", &upstream, "--key-from", "MY_KEY", "--model", "a-model"];
    command(world, &[&args[..], more].concat()).env("MY_KEY", KEY).output().unwrap()
}

#[test]
fn each_program_is_spoken_to_in_the_mode_that_was_asked_for() {
    let world = world();
    let server = Server::saying("ok");
    // How it is when it works in a copy, and when it asks.
    let modes = [
        ("claude", "bypassPermissions", Some("default")),
        ("codex", "agent-full-access", Some("read-only")),
        ("gemini", "yolo", Some("default")),
        ("opencode", "build {\"*\":\"allow\"}", Some("\"edit\":\"ask\"")),
        ("copilot", "#agent --allow-all-tools", Some("#agent")),
        ("qwen", "yolo", Some("default")),
        ("goose", "auto auto", Some("approve approve")),
        ("cursor", "PROVOST-READY", None),
    ];
    for (program, _, asks) in modes {
        let secret = format!("key-of-{program}");
        let text = ok(&add(&world, &server, program, &["--secret", &secret]));
        assert!(text.contains("in the Agent Client Protocol"), "{text}");
        let name = format!("{program}-asks");
        let more = ["--asks", "--name", &name, "--secret", &format!("{secret}-2")];
        match asks {
            Some(_) => drop(ok(&add(&world, &server, program, &more))),
            None => assert!(said(&add(&world, &server, program, &more)).contains("cannot be had to ask")),
        }
    }
    assert!(text_of(&world).contains("stream = \"acp\"") && !text_of(&world).contains("-json\""));
    let _daemon = world.start();
    for (program, works, asks) in modes {
        let names = [(program.to_owned(), Some(works)), (format!("{program}-asks"), asks)];
        for (name, mode) in names.iter().filter_map(|(name, mode)| Some((name, (*mode)?))) {
            let (code, answer) = tried(&world, name);
            assert_eq!(code, 0, "{name}: {answer:#}");
            assert!(answer["answer"].as_str().unwrap().contains(mode), "{name}: {answer:#}");
        }
    }
    assert!(server.heard().iter().all(|head| head.contains(KEY)), "{:?}", server.heard());
}

#[test]
fn one_task_where_it_is_asked_for_or_the_adapter_is_not_there() {
    let world = world();
    let server = Server::saying("ok");
    let folder = world.path("vendors");
    plant(&world, &folder.join("claude"));
    let text = ok(&add(
        &world,
        &server,
        "claude",
        &["--dry-run", "--program", &folder.join("claude-agent-acp").display().to_string()],
    ));
    assert!(text.contains("for Claude Code through its adapter claude-agent-acp "), "{text}");
    let text = ok(&add(&world, &server, "claude", &["--dry-run", "--one-shot"]));
    assert!(text.contains("for Claude Code ") && !text.contains("adapter"), "{text}");
    assert!(text.contains("stream = \"claude-json\"") && text.contains("--one-shot says so"), "{text}");
    let named = folder.join("claude").display().to_string();
    let text = ok(&add(&world, &server, "claude", &["--dry-run", "--json", "--program", &named]));
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["protocol"], &told["tried"]), (&Value::Null, &json!("2.1.330")), "{told:#}");
    assert!(told["why"].as_str().unwrap().contains("and not its adapter"), "{told:#}");
    let named = folder.join("claude-agent-acp").display().to_string();
    let text = ok(&add(&world, &server, "claude", &["--dry-run", "--json", "--program", &named]));
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["protocol"], &told["tried"]), (&json!("acp"), &json!("0.101.0")), "{told:#}");

    std::fs::remove_file(folder.join("claude-agent-acp")).unwrap();
    let text = ok(&add(&world, &server, "claude", &["--dry-run"]));
    assert!(text.contains("stream = \"claude-json\""), "{text}");
    let install = "npm install -g @agentclientprotocol/claude-agent-acp";
    assert!(
        text.contains("no folder of PATH has its adapter `claude-agent-acp`") && text.contains(install),
        "{text}"
    );
    let text = said(&add(&world, &server, "claude", &["--asks"]));
    assert!(text.contains("only through its adapter") && text.contains(install), "{text}");
    let text = said(&add(&world, &server, "goose", &["--one-shot"]));
    assert!(text.contains("Goose has no form for one task"), "{text}");
    let text = said(&add(&world, &server, "claude", &["--asks", "--one-shot"]));
    assert!(text.contains("cannot be used with"), "{text}");
    assert!(!settings(&world).exists(), "nothing was written");
}

/// The behaviour of the stand-in, the words about it, and the next step.
const FAILURES: [(&str, &str, &str); 7] = [
    ("v2", "it speaks version 2 of ACP", "speaks version 1 of ACP too"),
    ("no-way", "it wants to be signed in", "it found no key that it takes"),
    ("refused", "to authenticate", "it found no key that it takes"),
    ("no-modes", "it has no mode 'yolo'", "set `acp_mode`"),
    ("no-acp", "its standard output is not ACP", "name the adapter"),
    ("old-node", "closed the connection", "install a newer Node.js"),
    ("memory", "closed the connection", "set a larger `memory`"),
];

#[test]
fn each_failure_is_explained_with_the_next_step() {
    let world = world();
    let servers: Vec<Server> = FAILURES.iter().map(|(how, ..)| Server::saying(how)).collect();
    for ((how, ..), server) in FAILURES.iter().zip(&servers) {
        ok(&add(&world, server, "qwen", &["--name", how, "--secret", how]));
    }
    let _daemon = world.start();
    for (how, words, next) in FAILURES {
        let (code, answer) = tried(&world, how);
        let first = &answer["missing"][0];
        assert_eq!(code, 1, "{how}: {answer:#}");
        let what = first["what"].as_str().unwrap();
        let is_end = words == "closed the connection" && what.contains("before it answered");
        assert!(what.contains(words) || is_end, "{how}: {answer:#}");
        assert!(first["next"].as_str().unwrap().contains(next), "{how}: {answer:#}");
    }
}

/// The last words of programs before they end, and the next step: a row of the table each.
const LAST_WORDS: [(&str, &str, &str); 12] = [
    ("expired", "Your access token has expired, please sign in again", "log in again outside of the jail"),
    ("login", "Error: login required: run `program login`", "it found no key that it takes"),
    ("key", "API Error: 401 invalid x-api-key", "put in another key"),
    ("quota", "Your credit balance is too low to access the API", "has nothing left"),
    ("busy", "API Error: 529 overloaded_error", "wait a while"),
    ("sandbox", "bwrap: No permissions to create new namespace", "two do not nest"),
    ("room", "ENOSPC: no space left on device, write", "set a larger `tmp_size`"),
    ("moved", "node:internal: Cannot find module '/opt/x/cli.js'", "the program has moved"),
    ("walled", "EROFS: read-only file system, mkdir '/home/x/.program'", "the jail lets it only read"),
    ("model", "400 The requested model_not_found: gpt-9", "name another model"),
    ("down", "fetch failed: connect ECONNREFUSED 10.0.0.1:443", "cannot be reached from this machine"),
    ("missing", "exec: rg: ENOENT", "shows what it sees"),
];

#[test]
fn last_words_of_programs_are_explained_with_the_next_step() {
    let world = world();
    let servers: Vec<Server> =
        LAST_WORDS.iter().map(|(_, words, _)| Server::saying(&format!("says {words}"))).collect();
    for ((name, ..), server) in LAST_WORDS.iter().zip(&servers) {
        ok(&add(&world, server, "qwen", &["--name", name, "--secret", name]));
    }
    let _daemon = world.start();
    for (name, words, next) in LAST_WORDS {
        let (code, answer) = tried(&world, name);
        assert_eq!(code, 1, "{name}: {answer:#}");
        let told = answer["missing"][0]["next"].as_str().unwrap_or_default();
        assert!(told.contains(next) && !told.contains("{name}"), "{words}: {answer:#}");
    }
}

/// `agent add` reports a Node that is older than the package requires, and `agent try` does after a failure.
#[test]
fn a_node_that_is_too_old_is_told() {
    let world = world();
    let folder = world.path("vendors");
    // Says its version, and runs the stand-in as Python does.
    let node = "#!/bin/sh\n[ \"$1\" = --version ] && echo v20.1.0 && exit\nexec /usr/bin/python3 \"$@\"\n";
    world.put(&folder.join("node"), node);
    executable(&folder.join("node"));
    let script = STAND_IN.replacen("#!/usr/bin/python3", "#!/usr/bin/env node", 1);
    world.put(&folder.join("qwen"), &script);
    executable(&folder.join("qwen"));
    world.put(
        &folder.join("package.json"),
        &json!({ "bin": { "qwen": "qwen" }, "engines": { "node": ">=22.0.0" } }).to_string(),
    );
    let server = Server::saying("v2");
    let text = ok(&add(&world, &server, "qwen", &[]));
    assert!(text.contains("it asks for Node.js 22 and would be started with 20.1.0"), "{text}");
    let _daemon = world.start();
    let (_, answer) = tried(&world, "qwen");
    let missing = answer["missing"].to_string();
    assert!(missing.contains("Node.js 22 or newer"), "{answer:#}");
}
