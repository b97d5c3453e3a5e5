//! Requests that the host settles itself, or puts to its person in a way that nothing else can answer: the
//! hook says nothing, at once, and nothing waits in the queue.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Asking, asked, reloaded, waiting};
use crate::support::World;
use crate::support::rules::{allow, policy};

/// A world in which the rules say yes to every request, so that a hook that asked would be heard.
fn yes_to_all() -> World {
    let world = World::new();
    world.rule(&policy([allow("all", &["when.action = [\"permission\"]"])]));
    world
}

fn recorded(world: &World, host: &str, change: impl Fn(&mut Value)) -> Value {
    let mut told = crate::support::host_hooks::recorded(world, &format!("{host}/permission_request"));
    change(&mut told);
    told
}

/// A line of a Codex session's record about a turn.
fn context(turn: Option<&str>, reviewer: &str) -> String {
    let mut payload =
        json!({ "cwd": "/repo", "approval_policy": "on-request", "approvals_reviewer": reviewer });
    if let Some(turn) = turn {
        payload["turn_id"] = turn.into();
    }
    json!({ "timestamp": "2026-11-01T10:00:00Z", "type": "turn_context", "payload": payload }).to_string()
}

#[test]
fn what_claude_code_settles_by_its_mode_or_asks_itself_is_left_to_it() {
    let world = yes_to_all();
    let _daemon = world.start();
    for (mode, tool, is_hosts) in [
        ("default", "Bash", false),
        ("plan", "Bash", false),
        ("auto", "Bash", true),
        ("dontAsk", "Bash", true),
        ("bypassPermissions", "Bash", true),
        ("acceptEdits", "Bash", false),
        ("acceptEdits", "Edit", true),
        ("acceptEdits", "Write", true),
        ("default", "Edit", false),
        ("default", "AskUserQuestion", true),
        ("default", "ExitPlanMode", true),
    ] {
        let told = recorded(&world, "claude", |it| {
            it["permission_mode"] = mode.into();
            it["tool_name"] = tool.into();
        });
        let answer = Asking::say(&world, "claude", "9m", &told, &[]).answer();
        assert_eq!(answer.is_null(), is_hosts, "{mode} {tool}: {answer}");
    }
}

#[test]
fn what_codex_has_reviewed_by_a_model_is_left_to_it() {
    let world = yes_to_all();
    let _daemon = world.start();
    let record = world.path("rollout.jsonl");
    let home = world.path("codex-home");
    std::fs::create_dir(&home).unwrap();
    let config = |text: &str| std::fs::write(home.join("config.toml"), text).unwrap();
    let turn = "019dba93-9c01-7a11-b7a0-6c0e7d1f2a33";
    let asks = |lines: &[String], change: &dyn Fn(&mut Value)| {
        std::fs::write(&record, lines.join("\n") + "\n").unwrap();
        let told = recorded(&world, "codex", |it| {
            it["transcript_path"] = record.to_str().unwrap().into();
            change(it);
        });
        !Asking::say(&world, "codex", "9m", &told, &[("CODEX_HOME", home.to_str().unwrap())])
            .answer()
            .is_null()
    };
    let plain = |_: &mut Value| {};
    config("approvals_reviewer = \"auto_review\"\n");
    // The record of the turn says it, whatever the configuration does.
    assert!(asks(&[context(Some("earlier"), "auto_review"), context(Some(turn), "user")], &plain));
    assert!(!asks(&[context(Some("earlier"), "user"), context(Some(turn), "auto_review")], &plain));
    assert!(!asks(&[context(Some(turn), "guardian_subagent"), context(Some("later"), "user")], &plain));
    assert!(!asks(&["{\"type\":\"turn_context\"".into(), context(None, "auto_review"), "x".into()], &plain));
    // A long record is read from its end.
    let long: Vec<String> =
        std::iter::repeat_n("y".repeat(1 << 20), 9).chain([context(Some(turn), "user")]).collect();
    assert!(asks(&long, &plain));
    // A Codex that says so itself is believed first.
    assert!(!asks(&[context(Some(turn), "user")], &|it| it["approvals_reviewer"] = "auto_review".into()));
    // Without a record of the turn its configuration counts, and without that the person is asked.
    assert!(!asks(&[context(Some("earlier"), "user")], &plain));
    config(
        "approvals_reviewer = \"user\"\nprofile = \"x\"\n[profiles.x]\napprovals_reviewer = \"auto_review\"\n",
    );
    assert!(!asks(&[], &plain));
    for text in ["approvals_reviewer = \"user\"\n", "", "not toml at all", "approvals_reviewer = 7\n"] {
        config(text);
        assert!(asks(&[], &plain), "{text}");
    }
    // A pipe in the record's place delays no hook.
    let pipe = world.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(asks(&[], &|it| it["transcript_path"] = pipe.to_str().unwrap().into()));
}

#[test]
fn the_host_gets_its_own_dialog_after_five_seconds_and_the_question_is_there_at_once() {
    let world = World::new();
    let _daemon = world.start();
    let told = recorded(&world, "claude", |_| {});
    // As it is installed without a word about the time.
    let begun = Instant::now();
    let asking = Asking::say(&world, "claude", "", &told, &[]);
    let shown = asked(&world);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(shown["verb"], "AskPermission");
    assert_eq!(asking.answer(), Value::Null);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(15), "{took:?}");
    crate::support::eventually("the question is gone", || waiting(&world).is_empty());
    let installed = world.command(&["hook", "install", "claude"]).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let file = std::fs::read_to_string(world.repo().join(".claude/settings.local.json")).unwrap();
    assert!(file.contains("permission-request --wait 5s"), "{file}");
}

#[test]
fn rules_look_into_what_a_hook_asks_and_follow_links() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("src")).unwrap();
    std::fs::write(world.repo().join("src/a.rs"), "").unwrap();
    std::os::unix::fs::symlink("/etc", world.repo().join("src/out")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/there", world.repo().join("src/gone")).unwrap();
    std::os::unix::fs::symlink("../.env", world.repo().join("src/harmless")).unwrap();
    std::os::unix::fs::symlink("/proc/self/cwd", world.repo().join("src/own")).unwrap();
    std::fs::write(world.repo().join(".env"), "secret").unwrap();
    let allow = "[[rule]]\nid = \"run\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"permission\"]\n\
                 when.command = [\"git status\", \"cargo test **\"]\n\
                 [[rule]]\nid = \"write\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"permission\"]\n\
                 when.path = [\"src/**\"]\n\
                 [[rule]]\nid = \"secrets\"\ndecision = \"deny\"\nreason = \"secrets stay\"\nwhen.action = [\"permission\"]\n\
                 when.path = [\"**/.env\", \"/**/.env\"]\n\
                 [[rule]]\nid = \"push\"\ndecision = \"deny\"\nreason = \"nobody pushes\"\nwhen.action = [\"permission\"]\n\
                 when.command = \"git push\"\n";
    world.rule(&format!("version = 1\ndefault = \"deny\"\n{allow}"));
    let _daemon = world.start();
    reloaded(&world);
    let repo = world.repo().to_str().unwrap().to_owned();
    let record = world.path("rollout.jsonl");
    let asks = |host: &str, tool: &str, input: Value, cwd: &str| {
        // Codex tells the folder of a command in its record alone.
        let command = input.get("command").or_else(|| input.get("cmd")).cloned().unwrap_or_default();
        let arguments = json!({ "cmd": command }).to_string();
        let call = json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "c1" });
        std::fs::write(&record, format!("{}\n", json!({ "type": "response_item", "payload": call })))
            .unwrap();
        let told = recorded(&world, host, |it| {
            it["tool_name"] = tool.into();
            it["tool_input"] = input.clone();
            it["cwd"] = world.repo().join(cwd).to_str().unwrap().into();
            it["transcript_path"] = record.to_str().unwrap().into();
        });
        let answer = Asking::say(&world, host, "9m", &told, &[("CLAUDE_PROJECT_DIR", &repo)]).answer();
        answer["behavior"].as_str().unwrap_or("nothing").to_owned()
    };
    let bash = |line: &str| json!({ "command": line, "description": "what it is for" });
    let file = |path: &str| json!({ "file_path": path, "old_string": "a", "new_string": "b" });
    for host in ["claude", "codex"] {
        assert_eq!(asks(host, "Bash", bash("git status"), ""), "allow");
        assert_eq!(asks(host, "Bash", bash("cargo test one"), "src"), "allow");
        assert_eq!(asks(host, "Bash", bash("git status; rm -rf x"), ""), "nothing");
        assert_eq!(asks(host, "Bash", bash("true && git push"), ""), "deny");
        assert_eq!(asks(host, "Bash", bash("cat src/harmless"), ""), "deny", "a link that leads to it");
        // Where it would run.
        assert_eq!(asks(host, "Bash", bash("git status"), "src/out"), "nothing");
        assert_eq!(asks(host, "Bash", bash("git status"), ".."), "nothing");
        assert_eq!(asks(host, "Bash", bash("git status"), ".git"), "nothing");
        let elsewhere = json!({ "command": "git status", "workdir": "/tmp" });
        assert_eq!(asks(host, "Bash", elsewhere, ""), "nothing");
        // Arguments that change what it does.
        for more in ["dangerouslyDisableSandbox", "shell", "env", "sandbox_permissions"] {
            let mut input = bash("git status");
            input[more] = json!(true);
            assert_eq!(asks(host, "Bash", input, ""), "nothing", "{more}");
        }
        let yes = if host == "claude" { "allow" } else { "nothing" };
        assert_eq!(asks(host, "exec_command", json!({ "cmd": ["bash", "-lc", "git status"] }), ""), yes);
        assert_eq!(asks(host, "exec_command", json!({ "cmd": ["git", "status"] }), ""), yes);
        let network = json!({ "command": "git status", "description": "network-access example.org" });
        assert_eq!(asks(host, "Bash", network, ""), "nothing");
        assert_eq!(
            asks(host, "exec_command", json!({ "cmd": ["bash", "-lc", "git status; x"] }), ""),
            "nothing"
        );
        assert_eq!(
            asks(host, "exec_command", json!({ "cmd": ["/tmp/sh", "-c", "git status"] }), ""),
            "nothing"
        );
        assert_eq!(
            asks(host, "exec_command", json!({ "cmd": ["sh", "-c", "git status", "x"] }), ""),
            "nothing"
        );
        let two = json!({ "command": "git status", "cmd": "rm -rf x" });
        assert_eq!(asks(host, "Bash", two, ""), "nothing", "it is not plain which of them runs");
        let two = json!({ "command": "git status", "cmd": "git push" });
        assert_eq!(asks(host, "Bash", two, ""), "deny");
        let two = json!({ "command": "git status", "cwd": "src", "workdir": "/tmp" });
        assert_eq!(asks(host, "Bash", two, ""), "nothing");
    }
    for (path, said) in [
        ("src/a.rs", "allow"),
        ("src/new/file.rs", "allow"),
        ("src/../src/a.rs", "allow"),
        ("src/out/passwd", "nothing"),
        ("src/out/../a.rs", "nothing"),
        ("src/gone/x", "nothing"),
        ("src/gone", "nothing"),
        // Another place for each process, so that it may be any.
        ("src/own/src/a.rs", "deny"),
        ("/proc/self/cwd/src/a.rs", "deny"),
        ("/proc/self/status", "nothing"),
        ("src/harmless", "deny"),
        ("README.md", "nothing"),
        ("src/.git/config", "nothing"),
        ("~/src/a.rs", "nothing"),
        ("src/$HOME", "nothing"),
        ("src\\..\\..\\x", "nothing"),
        (".env", "deny"),
    ] {
        assert_eq!(asks("claude", "Edit", file(path), ""), said, "{path}");
    }
    let patch = |files: &str| json!({ "command": format!("*** Begin Patch\n{files}*** End Patch") });
    for (files, said) in [
        ("*** Update File: src/a.rs\n@@\n-a\n+b\n", "allow"),
        ("*** Add File: src/b.rs\n+b\n*** Update File: README.md\n@@\n-a\n+b\n", "nothing"),
        ("*** Update File: src/a.rs\n*** Move to: README.md\n@@\n-a\n+b\n", "nothing"),
        ("*** Update File: src/a.rs\n*** Environment: elsewhere\n@@\n-a\n+b\n", "nothing"),
        ("*** Add File: src/b.rs\n+b\n*** Delete File: .env\n", "deny"),
    ] {
        assert_eq!(asks("codex", "apply_patch", patch(files), ""), said, "{files}");
    }
}

#[test]
fn no_spelling_of_a_path_evades_a_rule_that_denies_it() {
    let world = World::new();
    let repo = world.repo();
    std::fs::create_dir(repo.join("secrets")).unwrap();
    std::fs::write(repo.join("secrets/key"), "s").unwrap();
    std::fs::create_dir(repo.join("src")).unwrap();
    std::os::unix::fs::symlink(&repo, world.path("link")).unwrap();
    let deny = "[[rule]]\nid = \"no\"\ndecision = \"deny\"\nreason = \"no\"\nwhen.action = [\"permission\"]\n\
                when.path = [\"secrets/**\"]\n";
    let rest = allow("rest", &["when.action = [\"permission\"]"]);
    world.rule(&format!("{}{deny}", policy([rest])));
    let _daemon = world.start();
    let top = repo.to_str().unwrap();
    let link = world.path("link");
    let link = link.to_str().unwrap();
    let asks = |tool: &str, input: Value| {
        let told = recorded(&world, "claude", |it| {
            it["tool_name"] = tool.into();
            it["tool_input"] = input.clone();
            it["cwd"] = top.into();
        });
        let answer = Asking::say(&world, "claude", "9m", &told, &[("CLAUDE_PROJECT_DIR", top)]).answer();
        answer["behavior"].as_str().unwrap_or("nothing").to_owned()
    };
    let patch = |path: &str| format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n");
    for path in [
        format!("{top}/secrets/key"),
        format!("{top}/x/../secrets/key"),
        format!("{top}/x/y/../../secrets/key"),
        format!("/nox/..{top}/secrets/key"),
        format!("{top}/secrets/new/../key"),
        format!("{link}/x/../secrets/key"),
        format!("{top}/{}secrets/key", "a/../".repeat(200)),
        "x/../secrets/key".into(),
        "/proc/self/cwd/secrets/key".into(),
        "/proc/thread-self/cwd/x".into(),
        "/dev/fd/7".into(),
        "secrets/key/../key".into(),
    ] {
        for (tool, input) in [
            ("Read", json!({ "file_path": path })),
            ("Read", json!({ "path": path })),
            ("Read", json!({ "file_path": "src/a.rs", "filePath": path })),
            ("Write", json!({ "file_path": path, "content": "x" })),
            ("mcp__files__read", json!({ "path": path })),
            ("mcp__files__read", json!({ "deep": [{ "paths": [path] }] })),
            ("apply_patch", json!({ "command": patch(&path) })),
            ("apply_patch", json!({ "command": "x", "input": patch(&path) })),
            ("apply_patch", json!({ "command": ["apply_patch", patch(&path)] })),
            ("Bash", json!({ "command": format!("cat {path}") })),
        ] {
            assert_eq!(asks(tool, input), "deny", "{tool} {path}");
        }
    }
    let percent = top.replace('/', "%2F");
    for address in [
        format!("file://{top}/secrets/key"),
        format!("FILE://localhost{top}/secrets/key?x#y"),
        format!("file:{top}/x/../secrets/%6bey"),
        format!("file:///{percent}/secrets/key"),
    ] {
        assert_eq!(asks("Read", json!({ "file_path": address })), "deny", "{address}");
        assert_eq!(asks("mcp__files__read", json!({ "uri": address })), "deny", "{address}");
    }
    // A patch in which no file is found may be about any.
    assert_eq!(asks("apply_patch", json!({ "command": "--- a/secrets/key\n+++ b/secrets/key\n" })), "deny");
    // What is no such path is left alone.
    for (tool, input) in [
        ("Read", json!({ "file_path": "src/a.rs" })),
        ("Read", json!({ "file_path": format!("{top}/x/../src/a.rs") })),
        ("apply_patch", json!({ "command": patch("src/a.rs") })),
        ("Bash", json!({ "command": "cat /proc/cpuinfo /proc/self/status 2>/dev/stderr" })),
        ("Bash", json!({ "command": "echo x > /dev/stdout; head -c 3 /dev/stdin" })),
    ] {
        assert_eq!(asks(tool, input.clone()), "allow", "{tool} {input}");
    }
}

#[test]
fn a_command_of_codex_is_allowed_only_where_its_record_says_that_it_runs_in_the_work_tree() {
    let world = World::new();
    std::fs::create_dir(world.repo().join("src")).unwrap();
    world.rule(&policy([allow("run", &["when.action = [\"permission\"]", "when.command = \"git status\""])]));
    let _daemon = world.start();
    let record = world.path("rollout.jsonl");
    let call = |id: &str, arguments: Value| {
        let payload = json!({ "type": "function_call", "name": "exec_command", "arguments": arguments.to_string(), "call_id": id });
        json!({ "type": "response_item", "payload": payload }).to_string()
    };
    let ended = |id: &str| {
        let payload = json!({ "type": "function_call_output", "call_id": id, "output": "" });
        json!({ "type": "response_item", "payload": payload }).to_string()
    };
    let status = |more: Value| {
        let mut arguments = json!({ "cmd": "git status" });
        more.as_object().unwrap().iter().for_each(|(name, value)| arguments[name] = value.clone());
        arguments
    };
    let outside = status(json!({ "workdir": "/tmp" }));
    for (lines, is_allowed) in [
        (vec![call("1", status(json!({})))], true),
        (vec![call("1", status(json!({ "workdir": "src" })))], true),
        (vec![call("1", json!({ "command": ["bash", "-lc", "git status"] }))], true),
        (vec![call("1", outside.clone()), ended("1"), call("2", status(json!({})))], true),
        (vec![], false),
        (vec![call("1", outside.clone())], false),
        (vec![call("1", status(json!({}))), ended("1")], false),
        (vec![call("1", outside.clone()), call("2", status(json!({})))], false),
        (vec![call("1", status(json!({ "shell": "/tmp/sh" })))], false),
        (vec![call("1", status(json!({ "workdir": 7 })))], false),
        (vec![call("1", json!({ "cmd": "git status -s" }))], false),
        (vec!["not json".into(), "{\"type\":\"response_item\"}".into()], false),
    ] {
        std::fs::write(&record, lines.join("\n") + "\n").unwrap();
        let told = recorded(&world, "codex", |it| {
            it["tool_input"] = json!({ "command": "git status" });
            it["transcript_path"] = record.to_str().unwrap().into();
        });
        let answer = Asking::say(&world, "codex", "9m", &told, &[]).answer();
        assert_eq!(!answer.is_null(), is_allowed, "{lines:?}");
    }
}

#[test]
fn no_rule_allows_what_runs_in_a_repository_within_the_work_tree_or_makes_one() {
    let world = World::new();
    let at = |path: &str| world.repo().join(path);
    for folder in [
        "plain/below",
        "real/.git/x",
        "real/below",
        "file",
        "link",
        "bare/objects",
        "bare/below",
        "refs/refs",
    ] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    for folder in ["common", "half/below"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    for file in ["file/.git", "bare/HEAD", "refs/HEAD", "common/commondir", "half/HEAD"] {
        std::fs::write(at(file), "gitdir: /elsewhere\n").unwrap();
    }
    std::os::unix::fs::symlink("/nonexistent", at("link/.git")).unwrap();
    std::os::unix::fs::symlink("../bare", at("plain/way")).unwrap();
    world.rule(&policy([
        allow("run", &["when.action = [\"permission\"]", "when.command = \"git status\""]),
        allow("write", &["when.action = [\"permission\"]", "when.path = \"**\""]),
    ]));
    let _daemon = world.start();
    reloaded(&world);
    let repo = world.repo().to_str().unwrap().to_owned();
    let asks = |tool: &str, input: Value, folder: &str| {
        let told = recorded(&world, "claude", |it| {
            it["tool_name"] = tool.into();
            it["tool_input"] = input.clone();
            it["cwd"] = at(folder).to_str().unwrap().into();
        });
        !Asking::say(&world, "claude", "9m", &told, &[("CLAUDE_PROJECT_DIR", &repo)]).answer().is_null()
    };
    let status = json!({ "command": "git status" });
    for folder in ["", "plain", "plain/below", "half/below"] {
        assert!(asks("Bash", status.clone(), folder), "{folder}");
    }
    for folder in ["real", "real/below", "file", "link", "bare", "bare/below", "plain/way", "refs", "common"]
    {
        assert!(!asks("Bash", status.clone(), folder), "{folder}");
    }
    let write = |path: &str| asks("Write", json!({ "file_path": path, "content": "x" }), "");
    for path in ["plain/a", "plain/new/a", "plain/below/objects/a", "config", ".gitignore"] {
        assert!(write(path), "{path}");
    }
    for path in [
        "real/a",
        "real/below/a",
        "file/a",
        "link/new/a",
        "bare/a",
        "plain/way/a",
        "common/a",
        "half/objects/pack/a",
        "half/refs/heads/a",
        "plain/HEAD",
        "plain/config",
        "plain/new/commondir",
        "plain/.gitmodules",
        "plain/CLAUDE.md",
        ".vscode/tasks.json",
    ] {
        assert!(!write(path), "{path}");
    }
    assert!(asks("Read", json!({ "file_path": "real/a" }), ""), "what is read runs nothing");
    // A top that is like a repository itself is no work tree of one.
    std::fs::write(at("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::create_dir(at("objects")).unwrap();
    assert!(!asks("Bash", status, ""));
}

#[test]
fn a_question_starts_no_daemon_and_no_hook_starts_one_without_a_repository() {
    let world = World::new();
    let bare = world.path("no-repository");
    std::fs::create_dir(&bare).unwrap();
    let runs = |folder: &std::path::Path| {
        let told = world.command(&["status"]).current_dir(folder).output().unwrap();
        told.status.success()
    };
    let asks = |folder: &std::path::Path| {
        let told = recorded(&world, "claude", |it| it["cwd"] = folder.to_str().unwrap().into());
        Asking::say(&world, "claude", "1s", &told, &[]).answer()
    };
    for folder in [world.repo().as_path(), bare.as_path()] {
        assert_eq!(asks(folder), Value::Null);
        assert!(!runs(folder), "{}", folder.display());
    }
    for (event, told) in [("session-start", "claude/session_start"), ("pre-tool-use", "claude/write")] {
        let mut told = crate::support::host_hooks::recorded(&world, told);
        told["cwd"] = bare.to_str().unwrap().into();
        told["tool_input"]["file_path"] = bare.join("a").to_str().unwrap().into();
        std::fs::write(world.path("begin.json"), told.to_string()).unwrap();
        let mut hook = world.command(&["hooks", "run", "claude", event]);
        hook.current_dir(&bare).stdin(std::fs::File::open(world.path("begin.json")).unwrap());
        let said = hook.output().unwrap();
        assert!(said.status.success() && !String::from_utf8_lossy(&said.stdout).contains("deny"), "{said:?}");
        assert!(!runs(&bare), "{event}");
    }
}

#[test]
fn a_call_that_is_too_long_for_the_record_meets_the_rules_too() {
    let world = World::new();
    let rule = |id: &str, decision: &str, condition: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ndecision = \"{decision}\"\nreason = \"r\"\n\
             when.action = [\"permission\"]\nwhen.{condition}\n"
        )
    };
    world.rule(&format!(
        "version = 1\ndefault = \"deny\"\n{}{}{}{}",
        rule("run", "allow", "command = \"echo **\""),
        rule("write", "allow", "path = [\"src/**\"]"),
        rule("secrets", "deny", "path = [\"**/.env\", \"/**/.env\"]"),
        rule("push", "deny", "command = \"git push\""),
    ));
    std::fs::create_dir_all(world.repo().join("src")).unwrap();
    let _daemon = world.start();
    reloaded(&world);
    let repo = world.repo().to_str().unwrap().to_owned();
    let asks = |host: &str, tool: &str, input: Value| {
        let told = recorded(&world, host, |it| {
            it["tool_name"] = tool.into();
            it["tool_input"] = input.clone();
            it["cwd"] = repo.clone().into();
        });
        let answer = Asking::say(&world, host, "9m", &told, &[("CLAUDE_PROJECT_DIR", &repo)]).answer();
        answer["behavior"].as_str().unwrap_or("nothing").to_owned()
    };
    let long = "long ".repeat(40_000);
    let write = |path: &str| json!({ "file_path": path, "content": long });
    assert_eq!(asks("claude", "Write", write(".env")), "deny");
    assert_eq!(asks("claude", "Write", write("README.md")), "nothing");
    assert_eq!(asks("claude", "Write", write("src/a.txt")), "allow", "its file is known, whatever it writes");
    // What is behind the beginning is not known, so it may be anything.
    assert_eq!(asks("claude", "Bash", json!({ "command": format!("echo {long}; git push") })), "deny");
    assert_eq!(asks("claude", "Bash", json!({ "command": format!("echo {long}") })), "deny");
    assert_eq!(
        asks("codex", "exec_command", json!({ "cmd": ["sh", "-c", format!("true {long}; git push")] })),
        "deny"
    );
    let patch =
        format!("*** Begin Patch\n*** Add File: src/b\n+{long}\n*** Add File: .env\n+x\n*** End Patch");
    assert_eq!(asks("codex", "apply_patch", json!({ "command": patch })), "deny");
    // Many short members.
    let mut many: serde_json::Map<String, Value> =
        (0..9000).map(|n| (format!("m{n}"), "long".into())).collect();
    many.insert("file_path".into(), ".env".into());
    assert_eq!(asks("claude", "Write", many.into()), "deny");
    let edits: Vec<Value> =
        (0..3000).map(|n| json!({ "old_string": format!("{n}"), "new_string": "x" })).collect();
    assert_eq!(asks("claude", "MultiEdit", json!({ "file_path": "src/a.txt", "edits": edits })), "allow");
}
