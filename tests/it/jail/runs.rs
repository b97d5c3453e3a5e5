//! A run between "allowed" and "done": real workers in real jails, driven by the real core.
//!
//! These tests need an ordinary user and a host that can confine; they fail elsewhere, they are never skipped.

mod ends;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::support::runs::{World, details, metadata, status, summary};
use crate::support::waits::eventually_so;
use provost::base::{Json, Timestamp, Ttl};
use provost::domain::command::{BeginRun, Record};
use provost::domain::view::LiveTask;
use provost::domain::{Door, EventKind, Failure, Proof, Refusal, Scope, Status, Terms};
use provost::effects::shell_profile;
use provost::jail::{Copies, Profile};
use provost_test_equipment::callers::caller;
use serde_json::Value;

/// Processes of the host whose command line contains a word.
fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

#[tokio::test]
async fn an_allowed_task_runs_and_its_result_is_kept() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo made > made.txt; echo all good; echo a note >&2").await;
    let done = world.finished(&task).await;
    assert_eq!((status(&done), summary(&done).as_str()), (Status::Completed, "all good"));
    assert_eq!(fs::read_to_string(world.path("repo/made.txt")).unwrap(), "made\n");
    assert_eq!(details(&done)["stderr"], "a note");
    let metadata = metadata(&done);
    assert_eq!((&metadata["exit_code"], &metadata["tier"]), (&0.into(), &"ns".into()));
    assert!(metadata["time_started"].is_string());
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_failing_command_reports_its_exit_code() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo bad luck >&2; exit 7").await;
    let done = world.finished(&task).await;
    assert_eq!(
        (status(&done), summary(&done).as_str()),
        (Status::Failed, "Worker '/bin/sh' failed: bad luck")
    );
    assert_eq!(done.failure, Some(Failure::WorkerFailed { why: "exit code 7".into() }));
    assert_eq!(metadata(&done)["exit_code"], 7);
    hands.stop().await;
}

#[tokio::test]
async fn a_worker_finds_its_task_and_no_secret_in_its_environment() {
    let mut world = World::new();
    world.profile.env = BTreeMap::from([("CODER_HOME".into(), "/opt/coder".into())]);
    let hands = world.hands();
    let task = world.delegate("t-1", "env").await;
    let said = details(&world.finished(&task).await)["stdout"].as_str().unwrap().to_owned();
    for expected in [
        "DEVIT_TASK_ID=t-1".to_owned(),
        "DEVIT_GOAL=env".to_owned(),
        format!("DEVIT_WORKSPACE={}", world.path("repo").display()),
        "CODER_HOME=/opt/coder".to_owned(),
    ] {
        assert!(said.lines().any(|line| line == expected), "{expected} in {said}");
    }
    assert!(!said.contains("SECRET") && !said.contains("NEXTEST") && !said.contains("PROVOST_"), "{said}");

    let mut world = World::new();
    for name in ["DEVIT_SECRET", "PROVOST_TOKEN"] {
        world.profile.env = BTreeMap::from([(name.into(), "x".into())]);
        let task = world.delegate(name, "env").await;
        let hands = world.hands();
        let failed = world.finished(&task).await;
        assert!(matches!(failed.failure, Some(Failure::JailRefused { .. })), "{failed:?}");
        assert!(summary(&failed).contains(name));
        hands.stop().await;
        world.restart();
    }
    hands.stop().await;
}

#[tokio::test]
async fn a_task_changes_its_own_directory_and_sees_the_rest() {
    let mut world = World::new();
    fs::write(world.path("repo/top.txt"), "readable").unwrap();
    fs::create_dir(world.path("repo/.provost")).unwrap();
    fs::write(world.path("repo/.provost/private"), "x").unwrap();
    let hands = world.hands();
    let goal = "cat ../top.txt; touch here; touch ../there 2>/dev/null || echo ' kept out'; ls ../.provost";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    assert_eq!(summary(&done), "readable kept out");
    assert!(world.path("repo/sub/here").exists() && !world.path("repo/there").exists());
    hands.stop().await;
}

#[tokio::test]
async fn a_worker_in_a_folder_reads_the_history_of_its_repository() {
    let mut world = World::new();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@localhost"]).args(args);
        assert!(git.current_dir(world.path("repo")).output().unwrap().status.success(), "{args:?}");
    };
    fs::write(world.path("repo/sub/file"), "old\n").unwrap();
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first words"]);
    let hands = world.hands();
    let goal = "git log --format=%s; echo new > file; git diff --stat -- file | head -1; git gc 2>/dev/null || echo kept";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    assert_eq!(summary(&done), "first words\n sub/file | 2 +-\nkept", "{done:?}");
    hands.stop().await;
    let left: Vec<_> =
        fs::read_dir(world.path("repo/sub")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "nothing is left behind");
}

#[tokio::test]
async fn a_swapped_directory_is_refused() {
    let mut world = World::new();
    let task = world.delegate_in("sub", "t-1", "touch ran").await;
    fs::rename(world.path("repo/sub"), world.path("repo/was")).unwrap();
    fs::create_dir(world.path("repo/sub")).unwrap();
    let link = world.delegate_in("was", "t-2", "touch ran").await;
    fs::rename(world.path("repo/was"), world.path("repo/moved")).unwrap();
    std::os::unix::fs::symlink(world.path("home"), world.path("repo/was")).unwrap();
    let hands = world.hands();
    for task in [&task, &link] {
        let refused = world.finished(task).await;
        assert!(matches!(refused.failure, Some(Failure::Sandbox { .. })), "{refused:?}");
        assert_eq!(metadata(&refused)["time_started"], Value::Null);
    }
    for place in ["repo/sub", "repo/moved", "home"] {
        assert!(!world.path(place).join("ran").exists());
    }
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_swapped_program_is_refused() {
    let mut world = World::new();
    let tool = world.path("tools/tool");
    let write = |script: &str| {
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("#!/bin/sh\necho honest\n");
    world.profile = Profile { program: tool.clone(), args: vec![], ..shell_profile() };
    let first = world.delegate("t-1", "x").await;
    write("#!/bin/sh\necho evil\n");
    let hands = world.hands();
    let refused = world.finished(&first).await;
    assert!(
        matches!(&refused.failure, Some(Failure::JailRefused { why }) if why.contains("delegate it again"))
    );
    let second = world.delegate("t-2", "x").await;
    assert_eq!(summary(&world.finished(&second).await), "evil", "allowed as it is now");
    hands.stop().await;
}

#[tokio::test]
async fn terms_that_cannot_be_kept_are_refused() {
    let mut world = World::under(Terms { processes: Some(1), ..Terms::default() });
    let hands = world.hands();
    let task = world.delegate("t-1", "sleep 0 & wait; echo forked").await;
    assert_eq!(status(&world.finished(&task).await), Status::Failed, "one process is one process");
    let long = world.delegate("t-2", &format!("true {}", "x".repeat(200_000))).await;
    let refused = world.finished(&long).await;
    assert!(summary(&refused).contains("put it into a file"), "{}", summary(&refused));
    hands.stop().await;
}

#[tokio::test]
async fn a_copy_is_changed_and_thrown_away() {
    let mut world = World::new();
    world.profile.copies = Copies::Thrown;
    fs::write(world.path("repo/sub/file"), "original").unwrap();
    std::os::unix::fs::symlink("file", world.path("repo/sub/link")).unwrap();
    let hands = world.hands();
    let goal = "cat link; echo changed > file; mkdir -m 0 locked; pwd; echo $DEVIT_WORKSPACE";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    let said = summary(&done);
    let copies = world.path("copies");
    let mut lines = said.strip_prefix("original").expect(&said).lines();
    let (cwd, workspace) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(Path::new(cwd).starts_with(&copies) && cwd == workspace, "{said}");
    assert_eq!(fs::read_to_string(world.path("repo/sub/file")).unwrap(), "original");
    hands.stop().await;
    eventually_so("the end of the copies", async || fs::read_dir(&copies).unwrap().count() == 0).await;
}

#[tokio::test]
async fn results_wait_for_a_store_that_fails() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo done").await;
    world.heard(&task).await;
    world.store.fail_commits(true);
    let record = Record { what: "test".into(), subject: "x".into(), details: Json::null() };
    let operator = caller("operator", Door::Own, &[Scope::Operate], Proof::PeerUid);
    let refused = world.engine.submit(&operator, record).await;
    assert!(matches!(refused, Err(Refusal::Unavailable { .. })), "{refused:?}");
    let output = world.outputs.get(&task).unwrap();
    fs::write(world.path("repo/go"), "").unwrap();
    let mut read = 0;
    loop {
        let page = output.follow(read).await;
        read = page.next;
        if page.finished {
            break;
        }
    }
    // tidy: sleeps because nobody sees a refused result; in this time it is refused several times
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(world.engine.view(LiveTask(task.clone())).await.unwrap().is_some());
    world.store.fail_commits(false);
    let done = world.finished(&task).await;
    assert_eq!(details(&done)["stdout"], "begun\ndone\n");
    hands.stop().await;
    let events = world.store.events().into_iter().filter_map(|it| it.event().ok().flatten());
    let starts = events.filter(|event| matches!(event.kind, EventKind::TaskStarted { .. })).count();
    assert_eq!(starts, 1);
}
