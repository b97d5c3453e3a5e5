//! Workers that Provost starts on Windows, from a delegation at the pipe to the ACK of their result.
//!
//! Wine restricts no token, so that the daemons here are told to go on without; `jail.rs` tries that others
//! do not.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Client, Daemon, UP, World, eventually};

/// Rules that let tier `job` run.
const ADMITTED: &str = "version = 1\n[[rule]]\nid = \"job\"\ndecision = \"allow\"\nreason = \"tried here\"\n\
                        when.action = [\"delegate\"]\nwhen.tier = [\"job\"]\n";

/// The program of the tests' workers.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("PROVOST_TEST_WORKER").expect("scripts/windows-check says where it is").into()
}

/// The entry of a worker that does one thing.
fn entry(name: &str, args: &[&str], more: &str) -> String {
    let args: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    format!(
        "[workers.{name}]\ntype = \"cli\"\nbinary = '{}'\nargs = [{}]\nparse_mode = \"text\"\ntier = \"job\"\n\
         copy = true\n{more}\n",
        program().display(),
        args.join(", ")
    )
}

/// A daemon that lets workers run although Wine restricts no token.
fn start(world: &World) -> Daemon {
    let mut command = world.command(UP);
    command.env("PROVOST_TEST_UNRESTRICTED_JOBS", "1").env("A_SECRET", "never for a worker");
    world.start_as(command)
}

fn run(client: &Client, worker: &str, goal: &str) -> Value {
    let (task, reply) = client.delegate(worker, goal, json!({}));
    reply.ack();
    client.result_of(&task)
}

fn reason(result: &Value) -> &str {
    result["artifacts"]["metadata"]["exit_reason"].as_str().unwrap_or_default()
}

fn stdout(result: &Value) -> String {
    result["artifacts"]["details"]["stdout"].as_str().unwrap_or_default().replace('\r', "")
}

fn said(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let texts = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&texts).replace('\r', ""))
}

/// Nobody holds the files of a tree of workers, so that all of it has ended. Removes them.
fn gone(held: &std::path::Path) -> bool {
    [1, 2].iter().all(|number| {
        let file = PathBuf::from(format!("{}.{number}", held.display()));
        !file.exists() || std::fs::remove_file(file).is_ok()
    })
}

fn is_there(held: &std::path::Path) -> bool {
    [1, 2].iter().all(|number| PathBuf::from(format!("{}.{number}", held.display())).exists())
}

#[test]
fn a_delegation_to_the_shell_is_done_in_a_copy_and_its_result_acknowledged() {
    let world = World::new();
    world.rule(ADMITTED);
    std::fs::write(world.repo().join("given.txt"), "from the repository").unwrap();
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "type given.txt& echo done> made.txt& cd", json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result:#}");
    let said = stdout(&result);
    let (first, cwd) = said.trim().split_once("from the repository").unwrap();
    assert!(first.is_empty() && cwd.contains("copies"), "{said}");
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!(
        (&metadata["tier"], &metadata["rule"], reason(&result)),
        (&json!("job"), &json!("job"), "success")
    );
    assert!(!world.repo().join("made.txt").exists(), "it has written into the repository");
    assert_eq!(client.task(&task).unwrap()["status"], "completed");
    client.say("NOTIFY", json!({ "task_id": task, "status": "ack" })).ack();
    let copies = PathBuf::from(cwd.trim()).parent().unwrap().to_path_buf();
    eventually("the end of the copy", || std::fs::read_dir(&copies).unwrap().count() == 0);
}

#[test]
fn the_shipped_rules_refuse_tier_job_and_say_which_ones_would_not() {
    let world = World::new();
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (_, reply) = client.delegate("shell", "echo x", json!({}));
    let said = reply.message().to_string();
    for part in ["reads whatever its user may read", "network is open", "when.tier", "policy.file"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_rule_for_any_worker_does_not_admit_tier_job() {
    let world = World::new();
    world.rule(&ADMITTED.replace("when.tier = [\"job\"]\n", ""));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (_, reply) = client.delegate("shell", "echo x", json!({}));
    let said = reply.message().to_string();
    assert!(said.contains("only a rule that names the tier lets it run"), "{said}");
}

#[test]
fn nothing_runs_outside_of_a_copy_nor_in_another_tier() {
    let world = World::new();
    world.rule(&ADMITTED.replace("[\"job\"]", "[\"job\", \"ns\"]"));
    let plain = entry("plain", &["tell"], "").replace("copy = true", "");
    let strong = entry("strong", &["tell"], "").replace("tier = \"job\"", "tier = \"ns\"");
    let networked = entry("networked", &["tell"], "network = \"ports\"\nports = [80]");
    world.configure(&format!("{plain}{strong}{networked}"));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let refused = |worker: &str| client.delegate(worker, "x", json!({})).1.message().to_string();
    assert!(refused("plain").contains("copy = true"));
    assert!(refused("networked").contains("cannot wall a network in"));
    let result = run(&client, "strong", "x");
    assert_eq!(result["status"], "failed");
    assert!(result.to_string().contains("Windows has no tier ns"), "{result:#}");
}

#[test]
fn a_worker_gets_its_arguments_and_variables_and_nothing_of_ours() {
    let world = World::new();
    world.rule(ADMITTED);
    world.configure(&entry("teller", &["tell", "{goal}"], "env = { Extra = \"more\" }"));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let goal = r#"two "words" and a \ at the end\"#;
    let result = run(&client, "teller", goal);
    assert_eq!(result["artifacts"]["metadata"]["exit_code"], 7, "{result:#}");
    assert_eq!(reason(&result), "exit code 7");
    assert!(result["artifacts"]["details"]["stderr"].as_str().unwrap().contains("an error"), "{result:#}");
    let said = stdout(&result);
    assert!(said.starts_with(&format!("argument {goal}\n")), "{said}");
    let value = |name: &str| {
        let start = format!("variable {name}=");
        said.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    };
    assert_eq!(value("DEVIT_GOAL").as_deref(), Some(goal));
    assert_eq!(value("Extra").as_deref(), Some("more"));
    assert_eq!((value("A_SECRET"), value("DEVIT_SECRET")), (None, None));
    assert!(!said.contains(&world.secret()) && !said.contains("never for a worker"), "{said}");
    let user = value("USERPROFILE").unwrap();
    assert!(user.contains("provost-") && user.ends_with("home"), "{user}");
    assert!(value("TEMP").unwrap().ends_with("tmp") && value("APPDATA") == Some(user.clone()));
    assert!(value("PATH").unwrap().to_lowercase().contains("system32"), "{said}");
    eventually("the end of its folder", || !PathBuf::from(&user).exists());
}

#[test]
fn everything_that_a_worker_has_started_ends_with_a_cancel() {
    let world = World::new();
    world.rule(ADMITTED);
    let held = world.path("held");
    world.configure(&entry("tree", &["tree", &held.display().to_string()], ""));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("tree", "grow", json!({}));
    reply.ack();
    eventually("the tree", || is_there(&held));
    assert!(!gone(&held), "somebody holds them");
    let cancel = json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    assert_eq!(client.result_of(&task)["status"], "cancelled");
    eventually("the end of the tree", || gone(&held));
}

#[test]
fn everything_ends_at_the_time_limit_and_with_the_first_process() {
    let world = World::new();
    world.rule(ADMITTED);
    let (slow, left) = (world.path("slow"), world.path("left"));
    let slow_entry = entry("slow", &["tree", &slow.display().to_string()], "timeout_secs = 2");
    let left_entry = entry("leaver", &["orphan", &left.display().to_string()], "");
    world.configure(&format!("{slow_entry}{left_entry}"));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let result = run(&client, "slow", "x");
    assert_eq!(reason(&result), "worker timed out after 2s", "{result:#}");
    assert_eq!(result["artifacts"]["metadata"]["limits_reached"], json!(["timeout"]));
    assert_eq!(stdout(&result), "two\n");
    assert!(gone(&slow), "something has outlived the time limit");
    let result = run(&client, "leaver", "x");
    assert_eq!((&result["status"], reason(&result)), (&json!("completed"), "success"), "{result:#}");
    assert!(gone(&left), "something has outlived the worker");
}

#[test]
fn everything_ends_with_the_daemon_and_the_next_one_says_so() {
    let world = World::new();
    world.rule(ADMITTED);
    let held = world.path("held");
    world.configure(&entry("tree", &["tree", &held.display().to_string()], ""));
    let mut daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("tree", "grow", json!({}));
    reply.ack();
    eventually("the tree", || is_there(&held));
    daemon.kill();
    eventually("the end of the tree", || gone(&held));
    let daemon = start(&world);
    let result = world.client(&daemon, "orch:a").result_of(&task);
    assert_eq!((&result["status"], reason(&result)), (&json!("failed"), "daemon ended"), "{result:#}");
}

#[test]
fn limits_are_told_by_the_names_that_they_have_everywhere() {
    let world = World::new();
    world.rule(ADMITTED);
    let many = entry("many", &["many", "8"], "processes = 4\ntimeout_secs = 3");
    let grow = entry("grow", &["grow", "large.bin"], "growth = \"1MiB\"");
    let flood = entry("flood", &["flood"], "");
    world.configure(&format!("{many}{grow}{flood}"));
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let result = run(&client, "many", "x");
    let reached = |result: &Value| result["artifacts"]["metadata"]["limits_reached"].clone();
    assert_eq!(reached(&result), json!(["timeout", "processes"]), "{result:#}");
    assert!(reason(&result).ends_with("it was at its limit of 4 processes and threads"), "{result:#}");
    let result = run(&client, "grow", "x");
    assert_eq!(reached(&result), json!(["growth"]), "{result:#}");
    assert!(reason(&result).starts_with("worker took more space than it may"), "{result:#}");
    let result = run(&client, "flood", "x");
    assert_eq!((reached(&result), reason(&result)), (json!(["output"]), "success"), "{result:#}");
}

#[test]
fn the_command_line_says_what_is_kept_and_what_is_not() {
    let world = World::new();
    world.configure(&entry("teller", &["tell"], ""));
    std::fs::create_dir(world.repo().join("src")).unwrap();
    let (code, doctor) = said(world.command(&["doctor"]));
    assert_eq!(code, Some(1), "no worker can be confined under Wine: {doctor}");
    for part in [
        "job objects",
        "write-restricted token",
        "lets a write-restricted token",
        "reaches what this machine",
    ] {
        assert!(doctor.contains(part), "{part}: {doctor}");
    }
    for part in ["Landlock", "namespaces", "control groups", "kernel"] {
        assert!(!doctor.contains(part), "{part} is Linux's: {doctor}");
    }
    let (code, explained) = said(world.command(&["jail", "explain", "teller", "--cwd", "src"]));
    assert_eq!(code, Some(0), "{explained}");
    for part in ["job: writes only", "NOT walled in", "job.read_files", "in a copy", "CANNOT run workers"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let (code, tried) = said(world.command(&["jail", "try", "--", "echo", "ran"]));
    assert_eq!(code, Some(125), "{tried}");
    assert!(tried.contains("write everywhere") && !tried.contains("ran\n"), "{tried}");
    let mut command =
        world.command(&["jail", "try", "--cwd", "src", "--", "cd", "&", "more", "&", "exit", "5"]);
    command.env("PROVOST_TEST_UNRESTRICTED_JOBS", "1").stdin(Stdio::null());
    let (code, tried) = said(command);
    assert_eq!(code, Some(5), "{tried}");
    assert!(tried.contains("copies"), "{tried}");
}

#[test]
fn a_worker_works_in_the_directory_that_was_asked_for() {
    let world = World::new();
    world.rule(ADMITTED);
    std::fs::create_dir_all(world.repo().join(r"src\deep")).unwrap();
    std::fs::write(world.repo().join(r"src\deep\mine.txt"), "here").unwrap();
    std::fs::write(world.repo().join("other.txt"), "elsewhere").unwrap();
    let daemon = start(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "dir /b", json!({ "working_dir": "src/deep" }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(stdout(&result), "mine.txt\n", "{result:#}");
    let (_, reply) = client.delegate("shell", "dir /b", json!({ "working_dir": r"..\home" }));
    assert!(reply.message().to_string().contains("working_dir"));
}
