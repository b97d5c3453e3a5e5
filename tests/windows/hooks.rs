//! Notification hooks and their ACK pipe.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Client, Daemon, UP, World, eventually};

/// A daemon whose hook writes to this file, and a task whose end has made it run. The hook waits at its pipe.
fn waiting(world: &World) -> (Daemon, Client, String, PathBuf) {
    let out = world.path("hook.txt");
    world.configure(&format!("[hooks.notify]\ncommand = '{}'\n", out.display()));
    let hook = std::env::var_os("PROVOST_TEST_HOOK").expect("scripts/windows-check says where the hook is");
    let mut command = world.command(UP);
    command.env("DEVIT_POWERSHELL", hook).env("A_SECRET", "never for a hook");
    let daemon = world.start_as(command);
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    worker.say("REGISTER", json!({ "caps": ["delegate"], "pid": 1, "version": "code/1" })).ack();
    let (task, reply) = client.delegate("worker:code", "look around", json!({}));
    reply.ack();
    assert_eq!(worker.poll_until(|it| it["msg_type"] == "DELEGATE")["msg_id"], task.as_str());
    let done = json!({ "task_id": task, "status": "completed", "artifacts": { "summary": "seen it all" } });
    worker.say("NOTIFY", done).ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
    eventually("the hook", || said(&out).contains("waiting\n"));
    (daemon, client, task, out)
}

fn said(out: &PathBuf) -> String {
    std::fs::read_to_string(out).unwrap_or_default().replace('\r', "")
}

fn variable(said: &str, name: &str) -> Option<String> {
    let start = format!("variable {name}=");
    said.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}

#[test]
fn an_ack_releases_the_hook_at_its_pipe() {
    let world = World::new();
    let (daemon, client, task, out) = waiting(&world);
    let told = said(&out);
    let arguments: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("argument ")).collect();
    let options = ["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-STA", "-Command"];
    assert_eq!(arguments[..6], options);
    assert_eq!(variable(&told, "DEVIT_NOTIFY_TASK_ID").as_deref(), Some(task.as_str()));
    assert_eq!(variable(&told, "DEVIT_NOTIFY_STATUS").as_deref(), Some("completed"));
    assert_eq!(variable(&told, "DEVIT_NOTIFY_SUMMARY").as_deref(), Some("seen it all"));
    assert_eq!(variable(&told, "A_SECRET"), None, "a hook gets what is on the list and nothing else");
    assert!(!told.contains(&world.secret()), "the secret is in a hook's environment");
    let pipe = variable(&told, "DEVIT_ACK_PIPE").unwrap();
    assert!(pipe.starts_with(r"\\.\pipe\devit-ack-"), "{pipe}");
    assert!(!pipe.contains(&task) && pipe.len() > 40, "{pipe} can be guessed");
    let marker = PathBuf::from(variable(&told, "DEVIT_ACK_MARKER").unwrap());
    assert!(!marker.exists() && marker.parent().unwrap().is_dir());

    // Only whoever was notified may say so.
    let worker = world.client(&daemon, "worker:code");
    let ack = json!({ "task_id": task, "status": "ack" });
    worker.say("NOTIFY", ack.clone()).code();
    assert!(!said(&out).contains("byte"), "the worker released its own hook");
    client.say("NOTIFY", ack).ack();
    eventually("the release", || said(&out).ends_with("byte 1\nover\n"));
    eventually("the end of its folder", || !marker.parent().unwrap().exists());
    eventually("the end of its pipe", || std::fs::File::open(&pipe).is_err());
}

#[test]
fn hook_wait_waits_at_the_pipe() {
    let world = World::new();
    let (_daemon, client, task, out) = waiting(&world);
    let pipe = variable(&said(&out), "DEVIT_ACK_PIPE").unwrap();
    let wait = |timeout: &str| {
        let mut command = world.command(&["hook", "wait", "--timeout", timeout]);
        command.env("DEVIT_ACK_PIPE", &pipe).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let early = wait("200ms").output().unwrap();
    assert_eq!(early.status.code(), Some(1), "{}", String::from_utf8_lossy(&early.stderr));
    let patient = wait("20s").spawn().unwrap();
    client.say("NOTIFY", json!({ "task_id": task, "status": "ack" })).ack();
    let done = patient.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    // Too late for the pipe, it is told that there is none any more.
    assert!(matches!(done.status.code(), Some(0 | 3)), "{text}{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn nothing_of_a_hook_outlives_the_daemon() {
    let world = World::new();
    let (mut daemon, _client, _task, out) = waiting(&world);
    let pipe = variable(&said(&out), "DEVIT_ACK_PIPE").unwrap();
    daemon.kill();
    eventually("the end of its pipe", || std::fs::File::open(&pipe).is_err());
    // The hook holds its file open for as long as it lives.
    let gone = || std::fs::remove_file(&out).is_ok();
    eventually("the end of the hook", gone);
    // It is still owed, and runs again.
    let mut command = world.command(UP);
    command.env("DEVIT_POWERSHELL", std::env::var_os("PROVOST_TEST_HOOK").unwrap());
    let _daemon = world.start_as(command);
    eventually("the second run", || said(&out).contains("waiting\n"));
    assert_ne!(variable(&said(&out), "DEVIT_ACK_PIPE").as_deref(), Some(pipe.as_str()));
}
