//! The texts of the real Claude Code's hooks for its model, its subagents and its person: after a tool, at the end of a subagent's turn,
//! and where it waits at its terminal. `hooks` has its writes and the end of its own turns.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::hooks::{Running, host};
use super::{Model, key, said, until_some, with_programs};
use crate::support::{Daemon, World};

/// A repository in which the hooks of Claude Code are installed as requests, and what its model is.
fn hooked() -> (World, Daemon, Model) {
    let world = World::new();
    let daemon = world.start();
    let installed = with_programs(&world, &["hook", "install", "claude", "--form", "http"]).output().unwrap();
    assert!(installed.status.success(), "{}", said(&installed));
    let model = Model::start(&world, "model.log");
    (world, daemon, model)
}

fn with_model(mut claude: Command, model: &Model) -> Command {
    claude.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", key());
    claude.env("PROVOST_AGENT", "claude-1");
    claude
}

/// Claude Code does what its model says, and ends.
fn claude(world: &World, model: &Model, goal: &str) -> Child {
    let claude = host(world, "claude", &["-p", goal, "--permission-mode", "bypassPermissions"]);
    with_model(claude, model).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Another agent writes to it.
fn writes_to_it(world: &World) {
    let message = json!({ "type": "agent.feedback", "agent_id": "claude-1",
        "payload": { "from": "boss", "errors": ["the tests of login fail"] } });
    world.done("boss", &["broker", "publish", &message.to_string()]);
}

/// How often each request to the model had the news of its inbox: those of subagents, which cannot list agents, and those of the session.
fn news(model: &Model) -> (Vec<u64>, Vec<u64>) {
    let heard = model.heard();
    let asked = heard.iter().filter(|it| it["claimed"] == true);
    let is_session = |it: &&Value| it["names"].as_array().unwrap().contains(&json!("ListAgents"));
    let (session, subagents): (Vec<&Value>, Vec<&Value>) = asked.partition(is_session);
    let count = |all: Vec<&Value>| all.iter().map(|it| it["news"].as_u64().unwrap()).collect();
    (count(subagents), count(session))
}

#[test]
fn a_message_reaches_a_subagent_of_the_real_claude_code_whose_turn_ends_and_its_session_once() {
    let (world, _daemon, model) = hooked();
    let go = world.path("go");
    let goal = format!(
        "Do this: [[write held.rs fn held() {{}}]] [[subagent Look around. ((wait {}))]]",
        go.display()
    );
    let claude = claude(&world, &model, &goal);
    until_some("its subagent asks", || model.heard().iter().any(|it| it["method"] == "wait").then_some(()));
    // A message that came before would be told to the session at the end of its own turn, and to no subagent.
    let marks = || {
        let here = fs::read_dir(world.path("run/provost")).ok()?.next()?.ok()?;
        fs::read_dir(here.path().join("ended")).ok()?.next().map(drop)
    };
    until_some("its own turn has ended", marks);
    // By this name Claude Code 2.1.330 has its subagents; earlier ones had another one.
    let called = |name: &str| model.heard().iter().any(|it| it["called"] == name);
    assert!(called("Agent") || called("Task"), "{:#?}", model.heard());
    writes_to_it(&world);
    fs::write(&go, "").unwrap();
    let output = said(&claude.wait_with_output().unwrap());
    let (subagent, session) = news(&model);
    // The subagent ends, is told, and ends again.
    let (last, before) = subagent.split_last().expect("it asks");
    assert!(*last > 0 && before.iter().all(|it| *it == 0), "{output}\n{:#?}", model.heard());
    let told =
        model.heard().iter().any(|it| it["told"].to_string().contains("This is the inbox of your session"));
    assert!(told, "{:#?}", model.heard());
    // Its session is told as well, and once: all that follows has it among what was said.
    assert_eq!(session.iter().max(), Some(&1), "{output}\n{:#?}", model.heard());
}

#[test]
fn a_message_reaches_the_real_claude_code_after_a_tool_and_not_again_when_its_turn_ends() {
    let (world, _daemon, model) = hooked();
    let (begun, go) = (world.path("begun"), world.path("go"));
    let run = format!("touch {}; while [ ! -e {} ]; do sleep 0.1; done", begun.display(), go.display());
    let claude =
        claude(&world, &model, &format!("Do this: [[run {run}]] [[run false]] [[wait {}]]", go.display()));
    until_some("its command runs", || begun.exists().then_some(()));
    writes_to_it(&world);
    fs::write(&go, "").unwrap();
    until_some("its next words", || model.heard().iter().any(|it| it["method"] == "wait").then_some(()));
    let output = said(&claude.wait_with_output().unwrap());
    let (_, session) = news(&model);
    // The request before the tool has none, and all after it have the one.
    assert_eq!((session[0], session.iter().max()), (0, Some(&1)), "{output}\n{:#?}", model.heard());
    assert_eq!(session[1], 1, "{output}\n{:#?}", model.heard());
    // A tool that has failed is told by another event.
    assert!(model.results().contains("Exit code 1"), "{}", model.results());
}

/// A person at a terminal who has worked with Claude Code before: it asks for no theme, and trusts the repository.
fn at_its_terminal(world: &World, model: &Model, goal: &str) -> Running {
    let (repo, key) = (fs::canonicalize(world.repo()).unwrap(), key());
    let known = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": { "approved": [key[key.len() - 20..]], "rejected": [] },
        "projects": { repo.to_str().unwrap(): { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
    });
    fs::write(world.home().join(".claude.json"), known.to_string()).unwrap();
    let line = format!("stty cols 120 rows 40; exec claude --permission-mode default '{goal}'");
    let mut screen = with_model(host(world, "script", &["-qec", &line, "/dev/null"]), model);
    let screen = fs::File::create(world.path("screen")).map(|it| screen.env("TERM", "xterm").stdout(it));
    Running(screen.unwrap().stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn who_waits_for_the_real_claude_code_sees_that_it_waits_for_its_person_and_that_it_goes_on() {
    let (world, _daemon, model) = hooked();
    let made = world.repo().join("made.txt");
    let mut claude = at_its_terminal(&world, &model, "Do this: [[run touch made.txt]]");
    let screen = || String::from_utf8_lossy(&fs::read(world.path("screen")).unwrap()).into_owned();
    let status = || {
        let all = world.done("boss", &["broker", "status"]);
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["agent"] == "claude-1")
    };
    let waits = until_some(&format!("it waits for its person: {}", screen()), || {
        status().filter(|it| it["status"] == "waiting")
    });
    assert_eq!(waits["phase"], "stuck-on-prompt", "{waits}");
    assert!(!made.exists());
    // Its person says yes, and it is no longer said to wait.
    claude.0.stdin.as_mut().unwrap().write_all(b"\r").unwrap();
    until_some("the tool has run", || made.exists().then_some(()));
    until_some("it goes on", || status().filter(|it| it["status"] == "working"));
}
