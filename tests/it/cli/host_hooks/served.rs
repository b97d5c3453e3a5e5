//! Claude Code's hooks over HTTP: chosen where the installed version has them, answered by the daemon as the command answers, and
//! by the process that asks.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

use super::{CODE, finish};
use crate::support::host_hooks::recorded;
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

const HOST: &str = include_str!("host.py");
const CLAUDE: &str = "claude-2b64a1f3c001";
const SETTINGS: &str = ".claude/settings.local.json";
const SERVED: [&str; 7] =
    ["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "Notification", "SessionEnd"];
const COMMANDS: [&str; 3] = ["PermissionRequest", "UserPromptSubmit", "SessionStart"];

/// A host that runs in the repository.
pub(super) struct Host {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Host {
    pub(super) fn start(world: &World, environment: &[(&str, &str)]) -> Self {
        let like = world.command(&[]);
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", HOST]).arg(world.repo().join(SETTINGS)).current_dir(world.repo()).env_clear();
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from }
    }

    #[track_caller]
    fn send(&mut self, asked: &Value) -> (u64, String) {
        writeln!(self.to, "{asked}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line}"));
        (said["status"].as_u64().unwrap(), said["body"].as_str().unwrap().to_owned())
    }

    /// Returns the answer of the hook of an event.
    #[track_caller]
    pub(super) fn call(&mut self, event: &str, told: &Value) -> Value {
        let (status, body) = self.send(&json!({ "event": event, "told": told }));
        assert_eq!(status, 200, "{body}");
        if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() }
    }

    /// Why a call is refused; `None` where it goes on.
    #[track_caller]
    pub(super) fn objection(&mut self, told: &Value) -> Option<String> {
        let said = self.call("PreToolUse", told);
        let inner = &said["hookSpecificOutput"];
        (!said.is_null()).then(|| {
            assert_eq!(inner["permissionDecision"], "deny", "{said}");
            inner["permissionDecisionReason"].as_str().unwrap().to_owned()
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Puts a program of this name on the path that says this version.
fn with_claude(world: &World, version: &str) -> String {
    let folder = world.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("claude");
    fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

fn install(world: &World, path: &str, more: &[&str]) -> Output {
    world.command(&[&["hook", "install", "claude"][..], more].concat()).env("PATH", path).output().unwrap()
}

/// Installs them, which has to be over HTTP.
#[track_caller]
pub(super) fn served(world: &World, more: &[&str]) {
    let done = install(world, &with_claude(world, "2.1.330"), &[&["--form", "http"][..], more].concat());
    assert!(done.status.success(), "{done:?}");
}

pub(super) fn world(config: &str) -> World {
    let world = World::new();
    world.configure(config);
    world.write("src/auth.ts", CODE);
    world.write("notes.ipynb", "{}");
    world
}

fn hooks(world: &World) -> Value {
    serde_json::from_str(&fs::read_to_string(world.repo().join(SETTINGS)).unwrap()).unwrap()
}

fn type_of(world: &World, event: &str) -> String {
    hooks(world)["hooks"][event][0]["hooks"][0]["type"].as_str().unwrap_or("none").to_owned()
}

/// Returns the command's answer to the same message, called as Claude Code calls it.
fn by_command(world: &World, event: &str, told: &str) -> Value {
    let mut command = world.command(&["hook", "run", "claude", event]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = finish(child, told.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn publish(world: &World, text: &str) {
    let message = json!({
        "type": "agent.feedback", "agent_id": CLAUDE, "payload": { "from": "boss", "errors": [text] },
    });
    world.done("boss", &["broker", "publish", &message.to_string()]);
}

#[test]
fn hooks_over_http_answer_as_the_command_does() {
    let world = world("[coordination]\nauto = \"off\"\n");
    let _daemon = world.start();
    served(&world, &[]);
    for event in SERVED {
        assert_eq!(type_of(&world, event), "http", "{event}");
    }
    for event in COMMANDS {
        assert_eq!(type_of(&world, event), "command", "{event}");
    }
    assert_eq!(hooks(&world)["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
    let mut host = Host::start(&world, &[]);
    let told = |name: &str| recorded(&world, &format!("claude/{name}"));
    assert_eq!(host.objection(&told("edit")), None);
    world.done("codex-1", &["lock", "src/auth.ts:login", "--reason", "new tokens"]);
    world.done("codex-1", &["lock", "notes.ipynb"]);
    for name in ["edit", "edit_beside", "write", "bash", "monitor", "notebook_edit"] {
        let told = told(name);
        assert_eq!(
            host.call("PreToolUse", &told),
            by_command(&world, "pre-tool-use", &told.to_string()),
            "{name}"
        );
    }
    let why = host.objection(&told("edit")).unwrap();
    for words in ["src/auth.ts:login", "codex-1", "new tokens", &format!("you are {CLAUDE}")] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert_eq!(host.objection(&told("edit_beside")), None);
    // What is no message refuses the write as the command does, and no hook but that for a write stops anything.
    for text in ["", "[]", "{\"a\":", "{\"tool_name\":\"Edit\"}"] {
        let (status, body) = host.send(&json!({ "event": "PreToolUse", "told": text }));
        assert_eq!(status, 200);
        let said: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(said, by_command(&world, "pre-tool-use", text), "{text}");
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
        assert_eq!(host.send(&json!({ "event": "Stop", "told": text })), (200, String::new()));
    }
}

#[test]
fn messages_reach_a_session_over_http_and_a_subagent_whose_turn_ends_once() {
    let world = world("");
    let _daemon = world.start();
    served(&world, &[]);
    let mut host = Host::start(&world, &[]);
    let mut stop = recorded(&world, "claude/session_start");
    stop["hook_event_name"] = json!("Stop");
    let mut inner = stop.clone();
    inner["hook_event_name"] = json!("SubagentStop");
    (inner["agent_id"], inner["stop_hook_active"]) = (json!("a1"), json!(false));
    assert_eq!(host.call("Stop", &stop), Value::Null);
    assert_eq!(host.call("SubagentStop", &inner), Value::Null);
    publish(&world, "the tests of `login` fail");
    let said = host.call("SubagentStop", &inner);
    assert_eq!(said["decision"], "block", "{said}");
    let reason = said["reason"].as_str().unwrap();
    assert!(
        reason.contains("the tests of `login` fail") && reason.contains("the inbox of your session"),
        "{reason}"
    );
    // Neither it nor another one is told that again; the session is.
    assert_eq!(host.call("SubagentStop", &inner), Value::Null);
    let said = host.call("Stop", &stop);
    assert!(said["reason"].as_str().unwrap().contains("the tests of `login` fail"), "{said}");
    assert_eq!(host.call("Stop", &stop), Value::Null);
    // What the session has heard is no news to its subagents, and a turn that was held up ends.
    publish(&world, "and one more");
    let mut used = recorded(&world, "claude/post_tool_use");
    (used["tool_name"], used["tool_input"]) = (json!("Read"), json!({ "file_path": "a" }));
    let said = host.call("PostToolUse", &used);
    assert!(
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("and one more"),
        "{said}"
    );
    assert_eq!(host.call("SubagentStop", &inner), Value::Null);
    publish(&world, "a third");
    inner["stop_hook_active"] = json!(true);
    assert_eq!(host.call("SubagentStop", &inner), Value::Null);
    // The same by the command.
    inner["stop_hook_active"] = json!(false);
    let said = by_command(&world, "subagent-stop", &inner.to_string());
    assert!(said["reason"].as_str().unwrap().contains("a third"), "{said}");
}

/// A session that waits for its person is shown at once, and only as long as it waits.
#[test]
fn a_notification_over_http_says_at_once_who_needs_its_person() {
    let world = world("");
    let _daemon = world.start();
    served(&world, &[]);
    let mut host = Host::start(&world, &[]);
    let mut notice = recorded(&world, "claude/session_start");
    notice["hook_event_name"] = json!("Notification");
    (notice["message"], notice["notification_type"]) =
        (json!("Claude needs you"), json!("permission_prompt"));
    assert_eq!(host.call("Notification", &notice), Value::Null);
    let needs = || String::from_utf8(world.command(&[]).output().unwrap().stdout).unwrap();
    let seen = needs();
    assert!(seen.contains(CLAUDE) && seen.contains("Agents that wait for their person"), "{seen}");
    // The next tool shows that it goes on.
    let mut used = recorded(&world, "claude/post_tool_use");
    (used["tool_name"], used["tool_input"]) = (json!("Read"), json!({ "file_path": "a" }));
    host.call("PostToolUse", &used);
    eventually("it waits no more", || !needs().contains("Agents that wait for their person"));
    // What is no message to a person changes nothing.
    notice["notification_type"] = json!("auth_success");
    assert_eq!(host.call("Notification", &notice), Value::Null);
    assert!(!needs().contains("Agents that wait for their person"));
}

#[test]
fn what_a_host_holds_over_http_is_its_process_and_ends_with_it() {
    let world = world("");
    let _daemon = world.start();
    served(&world, &[]);
    let mut host = Host::start(&world, &[]);
    assert_eq!(host.objection(&recorded(&world, "claude/edit")), None);
    let locks = || world.done("x", &["lock", "list"])["locks"].as_array().unwrap().clone();
    let held = locks();
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((&held[0]["holder"], &held[0]["pid"]), (&json!(CLAUDE), &json!(host.child.id())), "{held:?}");
    // Another session, of another process, is stopped by it.
    let mut other = recorded(&world, "claude/edit");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = Host::start(&world, &[]).objection(&other).unwrap();
    assert!(why.contains(CLAUDE), "{why}");
    drop(host);
    eventually("the lease ends", || locks().is_empty());
}

#[test]
fn the_environment_of_the_host_and_the_installation_name_its_agent() {
    let world = world("[coordination]\nauto = \"off\"\n");
    let _daemon = world.start();
    served(&world, &[]);
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let edit = recorded(&world, "claude/edit");
    let why =
        Host::start(&world, &[("PROVOST_AGENT", "ada"), ("WIT_SESSION", "bob")]).objection(&edit).unwrap();
    assert!(why.contains("you are ada"), "{why}");
    let why = Host::start(&world, &[("WIT_SESSION", "bob")]).objection(&edit).unwrap();
    assert!(why.contains("you are bob"), "{why}");
    // No host takes a person's name.
    let why = Host::start(&world, &[("PROVOST_AGENT", "provost")]).objection(&edit).unwrap();
    assert!(why.contains("could not find out"), "{why}");
    served(&world, &["--agent", "claude-desk"]);
    let why = Host::start(&world, &[("PROVOST_AGENT", "ada")]).objection(&edit).unwrap();
    assert!(why.contains("you are claude-desk"), "{why}");
}

#[test]
fn who_shows_no_token_of_the_repository_is_not_answered() {
    let world = world("[coordination]\nauto = \"off\"\n");
    let _daemon = world.start();
    served(&world, &[]);
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let edit = recorded(&world, "claude/edit");
    let mut host = Host::start(&world, &[]);
    let hook = hooks(&world)["hooks"]["PreToolUse"][0]["hooks"][0].clone();
    let with = |member: &str, value: Value| {
        let mut hook = hook.clone();
        hook[member] = value;
        json!({ "event": "PreToolUse", "told": edit, "instead": hook })
    };
    for headers in [json!({}), json!({ "x-provost-hook": "" }), json!({ "x-provost-hook": "0".repeat(64) })] {
        let (status, body) = host.send(&with("headers", headers));
        assert_eq!(status, 403, "{body}");
        assert!(body.contains("provost hook install claude"), "{body}");
    }
    let url = hook["url"].as_str().unwrap();
    for other in
        ["session-start", "permission-request", "user-prompt-submit", "nothing", "pre-tool-use/x", ""]
    {
        let at = url.replace("pre-tool-use", other);
        assert_eq!(host.send(&with("url", json!(at))).0, 404, "{at}");
    }
    for host_named in ["codex", "cursor", "x"] {
        let at = url.replace("claude", host_named);
        assert_eq!(host.send(&with("url", json!(at))).0, 404, "{at}");
    }
    // A page of a browser, another name of this machine, and another method.
    let (http, token) = (Http::mcp(&world), hook["headers"]["x-provost-hook"].as_str().unwrap().to_owned());
    let (at, body) = ("POST /hook/claude/pre-tool-use", edit.to_string());
    let ours = [("x-provost-hook", token.as_str())];
    let foreign = http.send(at, &[&ours[..], &[("Origin", "https://a.example")]].concat(), body.as_bytes());
    assert_eq!(foreign.status, 403, "{foreign:?}");
    let foreign = http.bare(at, &[&ours[..], &[("Host", "a.example:PORT")]].concat(), body.as_bytes());
    assert_eq!(foreign.status, 403, "{foreign:?}");
    assert_eq!(http.send("GET /hook/claude/pre-tool-use", &ours, b"").status, 405);
    assert_eq!(http.send(at, &ours, body.as_bytes()).status, 200);
    // The token of another repository is none of this one, and a host of another repository is not of this one.
    let second = self::world("");
    let _second_daemon = second.start();
    served(&second, &[]);
    let foreign = hooks(&second)["hooks"]["PreToolUse"][0]["hooks"][0]["headers"].clone();
    assert_eq!(host.send(&with("headers", foreign)).0, 403);
    let mut told = recorded(&second, "claude/edit");
    told["cwd"] = json!(second.repo());
    let mut stranger = Host::start(&second, &[]);
    let (status, body) = stranger.send(&json!({ "event": "PreToolUse", "told": told, "instead": hook }));
    assert!(status == 200 && body.contains("does not work in the repository"), "{status} {body}");
    // All of that has taken nothing from whom it belongs to.
    assert!(host.objection(&edit).is_some());
}

#[test]
fn http_is_chosen_where_the_installed_version_has_it_and_says_why_not() {
    let world = world("");
    let said = |output: &Output| {
        String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
    };
    let good = with_claude(&world, "2.1.330");
    let chosen = |path: &str, words: &str| {
        let done = install(&world, path, &[]);
        assert!(done.status.success() && said(&done).contains(words), "{words}: {}", said(&done));
        type_of(&world, "PreToolUse")
    };
    assert_eq!(chosen(&good, "no daemon has run here yet"), "command");
    let refused = install(&world, &good, &["--form", "http"]);
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    let daemon = world.start();
    assert_eq!(chosen("/usr/bin:/bin", "no `claude`"), "command");
    assert_eq!(chosen(&with_claude(&world, "2.1.329"), "is 2.1.329"), "command");
    let good = with_claude(&world, "2.2.0");
    assert_eq!(chosen(&good, "over HTTP at port"), "http");
    let before = fs::read(world.repo().join(SETTINGS)).unwrap();
    assert_eq!(chosen(&good, "over HTTP"), "http");
    assert_eq!(fs::read(world.repo().join(SETTINGS)).unwrap(), before, "once more changes nothing");
    let status = world.command(&["hook", "status", "claude"]).output().unwrap();
    assert!(
        said(&status).contains("claude: installed: ") && said(&status).contains("(over HTTP)"),
        "{}",
        said(&status)
    );
    let doctor = world.command(&["doctor"]).output().unwrap();
    assert!(said(&doctor).contains("installed, over HTTP"), "{}", said(&doctor));
    // At another port no daemon is.
    let moved = String::from_utf8(before)
        .unwrap()
        .replace("/hook/claude/pre-tool-use", ":1/hook/claude/pre-tool-use");
    let port = Http::mcp(&world).port;
    let moved = moved.replace(&format!("127.0.0.1:{port}:1/"), "127.0.0.1:1/");
    fs::write(world.repo().join(SETTINGS), moved).unwrap();
    let status = world.command(&["hook", "status", "claude"]).output().unwrap();
    assert!(said(&status).contains("outdated"), "{}", said(&status));
    // What would keep a request from the daemon, or let a write pass without it.
    for (member, words) in [
        (json!({ "sandbox": { "enabled": true } }), "sandbox.enabled"),
        (json!({ "allowedHttpHookUrls": [] }), "allowedHttpHookUrls"),
    ] {
        fs::write(world.repo().join(".claude/settings.json"), member.to_string()).unwrap();
        assert_eq!(chosen(&good, words), "command");
    }
    fs::remove_file(world.repo().join(".claude/settings.json")).unwrap();
    let proxied = world
        .command(&["hook", "install", "claude"])
        .env("PATH", &good)
        .env("HTTPS_PROXY", "http://a:1")
        .output();
    assert!(said(&proxied.unwrap()).contains("NO_PROXY does not name 127.0.0.1"));
    for (config, words) in [
        ("[hooks]\nwhen_down = \"pass\"\n", "hooks.when_down"),
        ("[mcp]\nauth = \"token\"\n", "mcp.auth"),
        ("[mcp]\nenabled = false\n", "mcp.enabled"),
    ] {
        world.configure(config);
        assert_eq!(chosen(&good, words), "command");
    }
    world.configure("");
    let shared = install(&world, &good, &["--shared"]);
    assert!(said(&shared).contains("for all users"), "{}", said(&shared));
    assert!(install(&world, &good, &["--form", "command"]).status.success());
    assert_eq!(type_of(&world, "PreToolUse"), "command");
    // Without a daemon it is asked where the last one was.
    drop(daemon);
    assert_eq!(chosen(&good, "over HTTP at port"), "http");
    assert!(world.command(&["hook", "remove", "claude"]).output().unwrap().status.success());
    let left = fs::read_to_string(world.repo().join(SETTINGS)).unwrap_or_default();
    assert!(!left.contains("provost"), "{left}");
}

#[test]
fn the_words_of_a_person_start_the_daemon_that_hooks_over_http_ask() {
    let world = world("");
    let daemon = world.start();
    served(&world, &[]);
    let line = super::command_of(&world, "claude", "UserPromptSubmit");
    assert!(line.contains("--beside"), "{line}");
    drop(daemon);
    let mut told = recorded(&world, "claude/session_start");
    told["hook_event_name"] = json!("UserPromptSubmit");
    let said = world.call("claude", "UserPromptSubmit", &told);
    assert!(said.status.success(), "{said:?}");
    let mut host = Host::start(&world, &[]);
    assert_eq!(host.objection(&recorded(&world, "claude/edit")), None);
    assert!(world.command(&["daemon", "stop"]).output().unwrap().status.success());
}

#[test]
fn a_session_that_says_nothing_for_long_is_there_while_its_host_runs() {
    let world = world("");
    let daemon = world.start();
    served(&world, &[]);
    // Its row stays when signs of life are forgotten.
    let status = json!({
        "type": "agent.status", "agent_id": CLAUDE, "payload": { "status": "working", "modified_files": [] },
    });
    world.done(CLAUDE, &["broker", "publish", &status.to_string()]);
    // A host that has begun its session, and says nothing from then on.
    let told = world.path("told.json");
    fs::write(&told, recorded(&world, "claude/session_start").to_string()).unwrap();
    let line = super::command_of(&world, "claude", "SessionStart");
    let script =
        format!("sh -c {} < '{}' > /dev/null; echo begun; exec sleep 600", quoted(&line), told.display());
    let like = world.command(&[]);
    let mut host = Command::new("sh");
    host.args(["-c", &script]).current_dir(world.repo()).env_clear().stdout(Stdio::piped());
    host.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut host = host.spawn().unwrap();
    let mut begun = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut begun).unwrap();
    assert_eq!(begun.trim(), "begun");
    // A daemon that begins has heard no sign of life.
    drop(daemon);
    let _daemon = world.start();
    let there = || {
        let agents = world.done("x", &["agent", "list"]);
        let found = agents.as_array().into_iter().flatten().find(|it| it["id"] == CLAUDE).cloned();
        found.unwrap_or_else(|| panic!("{agents}"))["alive"] == true
    };
    assert!(there());
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(!there());
}
