//! `provost acp` between the clients of the protocol's own libraries, for TypeScript and Python, and a real agent: as its person would
//! start it, and in its jail.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{CLAUDE, Model, Set, folders, key, order, said, with_programs};
use crate::support::World;
use crate::support::rules::{policy, rule};

/// An editor by one of the libraries, whose program and first arguments these are.
fn editor(world: &World, library: &str) -> Vec<String> {
    let installed = std::env::var("PROVOST_TEST_AGENTS").unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    match library {
        "typescript" => {
            let script = world.path("editor.mjs");
            fs::write(&script, include_str!("editor.mjs")).unwrap();
            let node = folders()[0].join("node");
            let sdk =
                Path::new(&installed).join("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
            vec![text(&node), text(&script), text(&sdk)]
        }
        _ => {
            let script = world.path("editor.py");
            fs::write(&script, include_str!("editor.py")).unwrap();
            let clients =
                std::env::var("PROVOST_TEST_ACP_CLIENT").expect("`scripts/test agents` installs it");
            vec![format!("{clients}/bin/python"), text(&script)]
        }
    }
}

/// Has an editor use `provost acp` for one prompt; what it has seen.
#[track_caller]
fn edits(world: &World, library: &str, words: &str, args: &[&str], more: &[(&str, String)]) -> Vec<Value> {
    let ours = with_programs(world, &[]);
    let program = ours.get_program().to_str().unwrap().to_owned();
    let editor = editor(world, library);
    let mut command = Command::new(&editor[0]);
    command.args(&editor[1..]).arg(world.repo()).arg(words).arg(&program).arg("acp").args(args);
    command.current_dir(world.repo()).env_clear();
    for (name, value) in ours.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let output = command.envs(more.iter().map(|(name, value)| (name, value))).output().unwrap();
    assert!(output.status.success(), "{}\n{}", said(&output), world.log());
    assert!(!said(&output).contains(&key()), "the key was printed");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Returns the questions to the person at the editor, as text.
fn asked(seen: &[Value]) -> Vec<String> {
    seen.iter().filter(|it| it["asked"].is_object()).map(|it| it["asked"].to_string()).collect()
}

fn stop(seen: &[Value]) -> &str {
    seen.last().and_then(|it| it["stop"].as_str()).unwrap_or_else(|| panic!("{seen:#?}"))
}

/// The rules deny one file; of the other one the person at the editor is asked.
#[track_caller]
fn is_between(library: &str) {
    let world = World::new();
    let no = ["when.action = [\"permission\"]", "when.path = [\"denied.txt\"]"];
    world.rule(&policy([rule("no", "deny", "it stays as it is", &no)]));
    let model = Model::start(&world, "model.log");
    let _daemon = world.start();
    let words = order("[[write made.txt hi]] [[write denied.txt no]]");
    let more = [("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", key())];
    let seen = edits(&world, library, &words, &["--", "claude-agent-acp"], &more);
    assert_eq!(stop(&seen), "end_turn", "{seen:#?}");
    let asked = asked(&seen);
    assert!(asked.iter().any(|it| it.contains("made.txt")), "{asked:#?}");
    assert!(!asked.iter().any(|it| it.contains("denied.txt")), "what is denied is not shown: {asked:#?}");
    assert_eq!(fs::read_to_string(world.repo().join("made.txt")).unwrap().trim(), "hi");
    assert!(!world.repo().join("denied.txt").exists());
    let log = said(&world.command(&["log", "--json"]).output().unwrap());
    assert!(log.contains("acp-") && log.contains("made.txt"), "it is on record: {log}");
}

/// In a mode in which Claude Code asks nothing about edits, what it has written is held for its session.
#[test]
fn what_claude_writes_without_a_question_is_held() {
    let world = World::new();
    let code = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n";
    fs::write(world.repo().join("sums.py"), code).unwrap();
    let model = Model::start(&world, "model.log");
    let _daemon = world.start();
    let words = order("[[edit sums.py|return a + b|return b + a]] [[write made.txt hi]]");
    let mode = ("EDITOR_MODE", "acceptEdits".to_owned());
    let more = [("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", key()), mode];
    let seen = edits(&world, "python", &words, &["--", "claude-agent-acp"], &more);
    assert_eq!((stop(&seen), asked(&seen).len()), ("end_turn", 0), "{seen:#?}");
    assert!(fs::read_to_string(world.repo().join("sums.py")).unwrap().contains("return b + a"));
    let log = said(&world.command(&["log", "--json"]).output().unwrap());
    let taken: Vec<&str> =
        log.lines().filter(|it| it.contains("lock_acquired") && it.contains("acp-")).collect();
    for symbol in ["sums.py:add", "made.txt"] {
        assert!(taken.iter().any(|it| it.contains(symbol)), "{symbol}: {log}");
    }
}

/// The agent works in its jail, without the key; what it has changed is written after a yes.
#[track_caller]
fn is_in_front_of_a_jail(library: &str) {
    let apply = crate::support::rules::allow("apply", &["when.action = [\"apply\"]"]);
    let set = Set::up(CLAUDE, &[], &[apply]);
    let words = order("[[write made.txt hi]]");
    let seen = edits(&set.world, library, &words, &["--agent", "claude"], &[]);
    assert_eq!(stop(&seen), "end_turn", "{seen:#?}");
    let asked = asked(&seen);
    assert!(asked.len() == 1 && asked[0].contains("Write 1 changed file"), "{asked:#?}");
    assert_eq!(fs::read_to_string(set.world.repo().join("made.txt")).unwrap().trim(), "hi");
    set.brought_the_key();
}

#[test]
fn an_editor_in_typescript_works_through_it() {
    is_between("typescript");
}

#[test]
fn an_editor_in_python_works_through_it() {
    is_between("python");
}

#[test]
fn an_editor_in_typescript_uses_an_agent_in_its_jail() {
    is_in_front_of_a_jail("typescript");
}

#[test]
fn an_editor_in_python_uses_an_agent_in_its_jail() {
    is_in_front_of_a_jail("python");
}
