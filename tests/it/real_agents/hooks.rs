//! Two hosts of a person's own at one file, with Provost's hooks and no jail: the real Claude Code writes it first, and the real
//! Codex is stopped at its write.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::{CLAUDE, Model, Set, order, said, until_some, with_programs};
use crate::support::World;

const CODE: &str = "export function add(a: number, b: number): number {\n  return a + b\n}\n\n\
                    export function sub(a: number, b: number): number {\n  return a - b\n}\n";

/// A program as a person starts it in the repository: with Provost on its `PATH`, and its model's service here.
pub(super) fn host(world: &World, program: &str, args: &[&str]) -> Command {
    let environment = with_programs(world, &[]);
    let mut command = Command::new("env");
    command.arg(program).args(args).current_dir(world.repo()).env_clear();
    command.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PROVIDER_KEY", super::key()).stdin(Stdio::null());
    for (name, value) in [
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ] {
        command.env(name, value);
    }
    command
}

/// Codex asks its model and does what that says. Answers what it has written to its output.
fn codex(world: &World, model: &Model, words: &str) -> String {
    let url = format!("model_providers.stub.base_url=\"{}/v1\"", model.url());
    fs::create_dir_all(world.home().join(".codex")).unwrap();
    let args = [
        "exec",
        "--trust",
        "--skip-git-repo-check",
        "--json",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
        "-c",
        "model=\"a-model\"",
        "-c",
        "model_provider=\"stub\"",
        "-c",
        "model_providers.stub.name=\"stub\"",
        "-c",
        &url,
        "-c",
        "model_providers.stub.wire_api=\"responses\"",
        "-c",
        "model_providers.stub.env_key=\"PROVIDER_KEY\"",
        words,
    ];
    said(&host(world, "codex", &args).output().unwrap())
}

/// Ended when dropped.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn the_second_of_two_real_hosts_is_stopped_at_its_write() {
    let world = World::new();
    fs::write(world.repo().join("sums.ts"), CODE).unwrap();
    let _daemon = world.start();
    for name in ["claude", "codex"] {
        let installed = with_programs(&world, &["hook", "install", name]).output().unwrap();
        assert!(installed.status.success(), "{}", said(&installed));
    }
    // This Claude Code asks the daemon itself, and starts no program for a write.
    let settings = fs::read_to_string(world.repo().join(".claude/settings.local.json")).unwrap();
    assert!(
        settings.contains("\"type\": \"http\"") && settings.contains("/hook/claude/pre-tool-use"),
        "{settings}"
    );
    let (first, second) = (Model::start(&world, "first.log"), Model::start(&world, "second.log"));
    let goal = "Do this: [[edit sums.ts|return a + b|return b + a]] [[hang]]";
    let mut claude = host(&world, "claude", &["-p", goal, "--permission-mode", "acceptEdits"]);
    claude.env("ANTHROPIC_BASE_URL", first.url()).env("ANTHROPIC_API_KEY", super::key());
    let _claude = Running(claude.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let file = || fs::read_to_string(world.repo().join("sums.ts")).unwrap();
    until_some("Claude Code writes the file", || file().contains("return b + a").then_some(()));
    let locks = world.command(&["lock", "list", "--json"]).output().unwrap();
    assert!(said(&locks).contains("sums.ts"), "what it has written is held: {}", said(&locks));

    let words = "Do this: [[patch sums.ts|  return b + a|  return a + b + 0]]";
    let output = codex(&world, &second, words);
    assert!(!file().contains("a + b + 0"), "Codex wrote over it: {output}");
    let told = second.results();
    assert!(told.contains("Not written: another agent works on it"), "{told}\n{output}");
    assert!(told.contains("sums.ts:add"), "it is told what is held: {told}");
    // What is beside it is free.
    let words = "Do this: [[patch sums.ts|  return a - b|  return a - b - 0]]";
    let output = codex(&world, &second, words);
    assert!(
        file().contains("a - b - 0") && file().contains("return b + a"),
        "{output}\n{}",
        second.results()
    );
}

#[test]
fn the_real_claude_code_writes_nothing_while_no_daemon_answers_its_hooks() {
    let world = World::new();
    fs::write(world.repo().join("sums.ts"), CODE).unwrap();
    let daemon = world.start();
    let installed = with_programs(&world, &["hook", "install", "claude", "--form", "http"]).output().unwrap();
    assert!(installed.status.success(), "{}", said(&installed));
    let model = Model::start(&world, "model.log");
    let turn = |goal: &str| {
        let mut claude = host(&world, "claude", &["-p", goal, "--permission-mode", "acceptEdits"]);
        claude.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", super::key());
        // Its hooks start no daemon here.
        said(&claude.env("CI", "1").output().unwrap())
    };
    let file = || fs::read_to_string(world.repo().join("sums.ts")).unwrap();
    let output = turn("Do this: [[edit sums.ts|return a + b|return b + a]]");
    assert!(file().contains("return b + a"), "{output}");
    drop(daemon);
    let output = turn("Do this: [[edit sums.ts|return b + a|return 0]]");
    assert!(!file().contains("return 0"), "{output}");
    assert!(model.results().contains("onFailure"), "{}\n{output}", model.results());
}

/// A person's own hooks ask the daemon, which no jail reaches: an agent works there as without them.
#[track_caller]
fn works_beside_hooks(form: &str, more: &[&str]) {
    let set = Set::up(CLAUDE, more, &[]);
    let installed =
        with_programs(&set.world, &["hook", "install", "claude", "--form", form]).output().unwrap();
    assert!(installed.status.success(), "{}", said(&installed));
    let task = set.done(&order("[[write made.txt hi]] [[edit look.py|import sys|import sys  # here]]"));
    assert_eq!(set.paths(&task), ["look.py", "made.txt"], "{form}: {task:#}\n{}", set.model.results());
}

#[test]
fn claude_works_in_its_jail_where_its_persons_hooks_are_requests() {
    works_beside_hooks("http", &[]);
    works_beside_hooks("http", &["--one-shot"]);
}

#[test]
fn claude_works_in_its_jail_where_its_persons_hooks_are_commands() {
    works_beside_hooks("command", &[]);
}

/// A message of another agent reaches the real Claude Code when its turn ends, once, and the turn goes on for it.
#[test]
fn a_message_reaches_the_real_claude_code_at_its_turns_end() {
    let world = World::new();
    let _daemon = world.start();
    let installed = with_programs(&world, &["hook", "install", "claude", "--form", "http"]).output().unwrap();
    assert!(installed.status.success(), "{}", said(&installed));
    let model = Model::start(&world, "model.log");
    let go = world.path("go");
    let goal = format!("Do this: [[wait {}]]", go.display());
    let mut claude = host(&world, "claude", &["-p", &goal, "--permission-mode", "acceptEdits"]);
    claude.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", super::key());
    claude.env("PROVOST_AGENT", "claude-1");
    let claude = claude.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_some("its model is asked", || model.heard().iter().any(|it| it["method"] == "wait").then_some(()));
    let message = json!({ "type": "agent.feedback", "agent_id": "claude-1",
        "payload": { "from": "boss", "errors": ["the tests of login fail"] } });
    world.done("boss", &["broker", "publish", &message.to_string()]);
    fs::write(&go, "").unwrap();
    let output = said(&claude.wait_with_output().unwrap());
    let heard = model.heard();
    let told = heard.iter().filter(|it| it["told"].to_string().contains("the tests of login fail"));
    assert_eq!(told.count(), 1, "{output}\n{heard:#?}");
}
