//! A hook's answers to messages that no host should send, and without a daemon.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::{command_of, finish, recorded, start, world};
use crate::support::{World, eventually};

/// The exit code and the reason of a refusal, for any message to the host.
fn said(world: &World, host: &str, event: &str, input: &[u8]) -> (i32, String) {
    let output = finish(start(world, &command_of(world, host, event), &world.repo()), input);
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_write_that_is_not_understood_is_refused_and_holds_nobody_up() {
    let world = world("claude");
    let _daemon = world.start();
    let told = recorded(&world, "claude/edit");
    let changed = |pointer: &str, to: Value| {
        let mut told = told.clone();
        *told.pointer_mut(pointer).unwrap() = to;
        told.to_string().into_bytes()
    };
    let twice =
        told.to_string().replacen("\"file_path\":", "\"file_path\":\"src/free.ts\",\"file_path\":", 1);
    let huge = changed("/tool_input/new_string", json!("x".repeat(17 << 20)));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [
        Vec::new(),
        b"not JSON".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"\xff\xfe".to_vec(),
        deep.into_bytes(),
        twice.into_bytes(),
        changed("/tool_name", json!(7)),
        changed("/tool_input", json!("text")),
        changed("/tool_input", json!(null)),
        changed("/tool_input/file_path", json!(["a"])),
        changed("/tool_input/file_path", json!("")),
        changed("/tool_input/file_path", json!("src/auth.ts\u{0}.md")),
        changed("/session_id", json!("///")),
        changed("/session_id", json!(12)),
        huge,
    ];
    for input in odd {
        let (code, said) = said(&world, "claude", "PreToolUse", &input);
        assert_eq!(code, 0, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        let said = &said["hookSpecificOutput"];
        assert_eq!(said["permissionDecision"], "deny", "{said}");
        let why = said["permissionDecisionReason"].as_str().unwrap();
        assert!(why.contains("Not written") && why.contains("provost hook remove claude"), "{why}");
    }
    // Of anything else it makes nothing.
    for event in ["SessionStart", "SessionEnd", "PermissionRequest"] {
        for input in [&b""[..], b"{}", b"no", b"{\"session_id\":[]}"] {
            let (code, said) = said(&world, "claude", event, input);
            assert_eq!(code, 0, "{event}: {said}");
            assert!(!said.starts_with('{'), "{said}");
        }
    }
}

#[test]
fn a_file_is_known_by_every_path_that_leads_to_it() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let repo = world.repo();
    symlink("auth.ts", repo.join("src/link.ts")).unwrap();
    symlink("src", repo.join("way")).unwrap();
    symlink(&repo, world.path("door")).unwrap();
    symlink("/etc", repo.join("out")).unwrap();
    std::fs::create_dir_all(repo.join("deep/er")).unwrap();
    symlink("../../src", repo.join("deep/er/s")).unwrap();
    let mut told = recorded(&world, "claude/write");
    let mut to = |path: &Path| {
        told["tool_input"]["file_path"] = json!(path);
        told.clone()
    };
    for path in [
        "src/auth.ts",
        "./src//auth.ts",
        "src/../src/auth.ts",
        "src/link.ts",
        "way/auth.ts",
        "way/../src/auth.ts",
        "deep/er/s/../src/auth.ts",
        "../repo/src/auth.ts",
        "../door/way/link.ts",
    ] {
        let refused = to(Path::new(path));
        world.is_refused("claude", &refused);
        let refused = to(&repo.join(path));
        world.is_refused("claude", &refused);
    }
    for path in ["/etc/hosts", "../else.ts", "out/hosts", "../../../../../../tmp/x", "src/auth.tsx", "/"] {
        let free = to(Path::new(path));
        world.goes_on("claude", &free);
    }
    // What is not there yet is written through a link all the same.
    world.done("codex-1", &["lock", "src/later.ts"]);
    symlink("later.ts", repo.join("src/soon.ts")).unwrap();
    let refused = to(Path::new("src/soon.ts"));
    world.is_refused("claude", &refused);
}

#[test]
fn a_file_of_another_work_tree_is_the_same_file() {
    let world = world("claude");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    world.git(&["worktree", "add", "-q", "../beside"]);
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let mut told = recorded(&world, "claude/edit");
    told["tool_input"]["file_path"] = json!(world.path("beside/src/auth.ts"));
    world.is_refused("claude", &told);
}

#[test]
fn tools_of_other_mcp_servers_are_known_by_their_names() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mut told = recorded(&world, "claude/edit");
    told["tool_input"] = json!({ "path": "src/auth.ts", "content": "x" });
    for (tool, refused) in [
        ("mcp__filesystem__write_file", true),
        ("mcp__files__edit", true),
        ("mcp__filesystem__read_file", false),
        ("mcp__provost__lock_acquire", false),
        ("Read", false),
        ("SomethingNew", false),
    ] {
        told["tool_name"] = json!(tool);
        assert_eq!(world.objection("claude", &told).is_some(), refused, "{tool}");
    }
}

#[test]
fn without_a_daemon_one_is_started_and_what_cannot_be_checked_is_not_written() {
    let world = world("claude");
    let told = recorded(&world, "claude/edit");
    // As a machine for checks alone: none is started, so nobody can be asked.
    let line = format!("export CI=1; {}", command_of(&world, "claude", "PreToolUse"));
    let output = finish(start(&world, &line, &world.repo()), told.to_string().as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("deny") && text.contains("no daemon runs"), "{text}");
    // What is nobody's business needs nobody.
    let mut outside = told.clone();
    outside["tool_input"]["file_path"] = json!("/tmp/x");
    let output = finish(start(&world, &line, &world.repo()), outside.to_string().as_bytes());
    assert!(output.status.success() && output.stdout.is_empty());
    world.goes_on("claude", &told);
    assert!(world.command(&["status"]).output().unwrap().status.success(), "a daemon runs");
    assert!(world.command(&["down"]).output().unwrap().status.success());
    // A configuration that cannot be used says nothing about how writes are to be treated.
    world.configure("[git]\ndeadline = 7\n");
    let (code, said) = said(&world, "claude", "PreToolUse", told.to_string().as_bytes());
    assert!(code == 0 && said.contains("deny"), "{said}");
}

#[test]
fn a_worker_in_its_jail_is_not_asked() {
    let world = world("claude");
    let line = format!(
        "export DEVIT_TASK_ID=t DEVIT_WORKSPACE=/w CI=1; {}",
        command_of(&world, "claude", "PreToolUse")
    );
    let output =
        finish(start(&world, &line, &world.repo()), recorded(&world, "claude/edit").to_string().as_bytes());
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn hooks_that_are_called_twice_out_of_order_and_after_the_end_hold_nothing_for_good() {
    let world = world("claude");
    world.configure("");
    let _daemon = world.start();
    let told = |name: &str| recorded(&world, &format!("claude/{name}"));
    let quietly = |event: &str, told: &Value| {
        let output = world.call("claude", event, told);
        assert!(output.status.success() && output.stdout.is_empty(), "{event}: {output:?}");
    };
    let of = |event: &str, name: &str| {
        let mut it = told(name);
        it["hook_event_name"] = json!(event);
        it
    };
    // Ends of what never began.
    quietly("SessionEnd", &told("session_end"));
    quietly("PostToolUse", &of("PostToolUse", "bash"));
    quietly("Stop", &of("Stop", "session_end"));
    // The same call again is the same call.
    for _ in 0..2 {
        world.goes_on("claude", &told("edit"));
        assert_eq!(world.locked(), ["src/auth.ts:login"]);
    }
    for _ in 0..2 {
        quietly("PostToolUse", &of("PostToolUse", "edit"));
    }
    // A session that begins when it has written already has what it wrote, and so has one that begins twice.
    for _ in 0..2 {
        assert!(!world.call("claude", "SessionStart", &told("session_start")).stdout.is_empty());
        assert_eq!(world.locked(), ["src/auth.ts:login"]);
    }
    for _ in 0..2 {
        quietly("SessionEnd", &told("session_end"));
        assert!(world.locked().is_empty());
    }
    // What comes after its end holds no longer than the process that has called the hook.
    let late = world.path("late.json");
    fs::write(&late, told("edit").to_string()).unwrap();
    let line = format!("({}) < '{}'; echo; cat", command_of(&world, "claude", "PreToolUse"), late.display());
    let mut host = start(&world, &line, &world.repo());
    eventually("the late one", || world.locked() == ["src/auth.ts:login"]);
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("its end", || world.locked().is_empty());
}

#[test]
fn a_hook_that_a_process_outside_of_the_host_calls_is_checked_and_holds_no_longer_than_that_process() {
    let world = world("claude");
    world.configure("");
    let _daemon = world.start();
    let (told, script, go) = (world.path("told.json"), world.path("script"), world.path("go"));
    fs::write(&told, recorded(&world, "claude/edit").to_string()).unwrap();
    // It leaves its parent and the session of its processes, and ends when it is told to.
    let text = format!(
        "(({}) < '{}' > \"$1.part\"; mv \"$1.part\" \"$1\"; while [ ! -e '{}' ]; do sleep 0.05; done) &\n",
        command_of(&world, "claude", "PreToolUse"),
        told.display(),
        go.display()
    );
    fs::write(&script, text).unwrap();
    let called = |name: &str| {
        let answer = world.path(name);
        let line = format!("setsid --fork sh '{}' '{}' > /dev/null 2>&1", script.display(), answer.display());
        finish(start(&world, &line, &world.repo()), b"");
        eventually("its answer", || answer.exists());
        fs::read_to_string(&answer).unwrap()
    };
    assert_eq!(called("first"), "");
    assert_eq!(world.locked(), ["src/auth.ts:login"]);
    fs::write(&go, "").unwrap();
    eventually("it is free", || world.locked().is_empty());
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let said = called("second");
    assert!(said.contains("deny") && said.contains("codex-1"), "{said}");
}
