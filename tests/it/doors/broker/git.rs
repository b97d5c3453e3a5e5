//! Work of agents in their work trees, which the daemon sees and hooks report.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::broker_client::{poll, publish, status};
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

/// A repository with one commit, and a work tree for `feat/x`.
fn world() -> (World, PathBuf) {
    let world = World::new();
    fs::write(world.repo().join("first.txt"), "one\n").unwrap();
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", "-b", "feat/x", tree.to_str().unwrap()]);
    (world, tree)
}

fn git(world: &World, tree: &Path, args: &[&str]) -> std::process::Output {
    world.git_in(tree, args).output().unwrap()
}

/// All messages of a kind in the log.
fn log(broker: Http, kind: &str) -> Vec<Value> {
    let log = broker.get("/log?since=0").json();
    let all = log["entries"].as_array().unwrap().iter().map(|it| it["message"].clone());
    all.filter(|it| it["type"] == kind).collect()
}

fn files_of(message: &Value) -> Vec<String> {
    message["payload"]["modified_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap().into())
        .collect()
}

const ODD: [&str; 4] = ["a -> b.txt", "na\u{ef}ve.txt", "new/dir/deep.txt", "with \"quotes\" and space.txt"];

#[test]
fn files_are_seen_under_their_own_names_and_nothing_is_touched() {
    let (world, tree) = world();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    // A program that git would run in there.
    let trap = world.path("trap.sh");
    fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", world.path("sprung").display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    for key in ["core.fsmonitor", "filter.trap.clean", "filter.trap.process", "filter.a=b.smudge"] {
        world.git(&["config", key, trap.to_str().unwrap()]);
    }
    world.git(&["config", "filter.trap.required", "true"]);
    world.put(&world.repo().join(".git/info/attributes"), "* filter=trap\n");
    let index = world.repo().join(".git/worktrees/tree/index");
    let before = fs::metadata(&index).unwrap().modified().unwrap();
    publish(broker, &status("feat-x", "working", &[]));
    for name in ODD {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), "x").unwrap();
    }
    // Touched and not changed: git would filter it, and refresh its index.
    fs::write(tree.join("first.txt"), "one\n").unwrap();
    let seen = || log(broker, "agent.status").last().map(files_of).unwrap_or_default();
    eventually("the files are seen", || seen() == ODD);
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), before, "the index was written");
    assert!(!world.path("sprung").exists(), "a program of the repository was run");
    // A heartbeat hides nothing of it.
    publish(broker, &status("feat/x", "working", &[]));
    publish(broker, &status("feat-y", "working", &["na\u{ef}ve.txt"]));
    assert!(poll(broker, "feat-y", 0).0[0].to_string().contains("in-flight conflict"));
    for name in ODD {
        fs::remove_file(tree.join(name)).unwrap();
    }
    eventually("it is clean again", || seen().is_empty() && log(broker, "agent.status").len() == 5);
}

#[test]
fn a_commit_is_told_with_its_own_files_and_stays_committed() {
    let (world, tree) = world();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    publish(broker, &status("supervisor", "working", &[]));
    publish(broker, &status("feat-x", "working", &[]));
    for name in ODD {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), "x").unwrap();
    }
    let seen = || log(broker, "agent.status").last().map(files_of).unwrap_or_default();
    eventually("the files are seen", || seen() == ODD);
    assert!(git(&world, &tree, &["add", "-A"]).status.success());
    let done = git(&world, &tree, &["commit", "-qm", "two"]);
    assert!(done.status.success(), "{done:?}");
    let told = log(broker, "agent.artifact");
    assert_eq!(told.len(), 1, "{done:?}");
    assert_eq!(told[0]["agent_id"], "feat-x");
    assert_eq!(files_of(&told[0]), ODD);
    eventually("it is clean", || seen().is_empty());
    assert_eq!(broker.get("/status").json()["agents"][0]["status"], "committed");
    let calls: Vec<Value> =
        poll(broker, "supervisor", 0).0.into_iter().map(|it| it["message"].clone()).collect();
    assert_eq!(calls[1], json!({ "type": "supervisor.verify-now", "branch_id": "feat-x" }));
    // What is not committed is not told, and a commit by nobody who is known is nobody's business.
    fs::write(tree.join("third.txt"), "x").unwrap();
    fs::write(tree.join("later.txt"), "x").unwrap();
    assert!(git(&world, &tree, &["add", "third.txt"]).status.success());
    assert!(git(&world, &tree, &["commit", "-qm", "three"]).status.success());
    assert_eq!(files_of(&log(broker, "agent.artifact")[1]), ["third.txt"]);
    fs::write(world.repo().join("mine.txt"), "x").unwrap();
    world.git(&["add", "mine.txt"]);
    world.git(&["commit", "-qm", "mine"]);
    assert_eq!(log(broker, "agent.artifact").len(), 2);
}

#[test]
fn a_commit_goes_on_where_nobody_can_be_told() {
    let (world, tree) = world();
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    fs::write(tree.join("a.txt"), "x").unwrap();
    assert!(git(&world, &tree, &["add", "-A"]).status.success());
    let done = git(&world, &tree, &["commit", "-qm", "two"]);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_marker_keeps_an_agent_on_its_branch_and_is_never_run() {
    let (world, tree) = world();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
    let marker = world.repo().join(".git/worktrees/tree/paw-agent-id");
    let sprung = world.path("sprung");
    let mark = |strict: bool| {
        let text = format!(
            "PAW_AGENT_ID=feat-marked\nPAW_EXPECTED_BRANCH=feat/$(touch {})\nPAW_STRICT_BRANCH_GUARD={strict}\n",
            sprung.display()
        );
        fs::write(&marker, text).unwrap();
    };
    mark(true);
    fs::write(tree.join("a.txt"), "x").unwrap();
    assert!(git(&world, &tree, &["add", "-A"]).status.success());
    let refused = git(&world, &tree, &["commit", "-qm", "two"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("'feat/x' is checked out"), "{words}");
    mark(false);
    assert!(git(&world, &tree, &["commit", "-qm", "two"]).status.success());
    let told = log(broker, "agent.artifact");
    assert_eq!((told.len(), &told[0]["agent_id"]), (1, &json!("feat-marked")));
    let strayed = log(broker, "agent.feedback");
    assert_eq!(strayed[0]["payload"]["from"], "branch-guard");
    assert!(strayed[0].to_string().contains("advanced 'feat/x'"), "{strayed:?}");
    let remote = world.path("remote.git");
    world.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    let pushed = git(&world, &tree, &["push", "-q", remote.to_str().unwrap(), "HEAD:refs/heads/main"]);
    let words = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(!pushed.status.success() && words.contains("agents must not push"), "{words}");
    assert!(!sprung.exists(), "the marker was run");
}

#[test]
fn files_of_owners_are_theirs_whatever_they_announce() {
    let world = World::new();
    fs::write(
        world.repo().join("CODEOWNERS"),
        "# who\n*.md @feat/docs.v2\n/src/auth/ @feat-auth @nobody-here\n",
    )
    .unwrap();
    world.configure("[coordination.owners]\n\"src/auth/open*\" = \"feat-bb\"\n");
    let _daemon = world.start();
    let broker = Http::broker(&world);
    for name in ["feat-docs-v2", "feat-auth", "feat-bb"] {
        publish(broker, &status(name, "working", &[]));
    }
    publish(
        broker,
        &status("feat-bb", "working", &["src/auth/a.rs", "deep/README.md", "src/auth/open.rs", "src/b.rs"]),
    );
    let told: Vec<String> = poll(broker, "feat-bb", 0).0.iter().map(Value::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("you edited deep/README.md but it is agent feat-docs-v2's by CODEOWNERS"),
        "{told:?}"
    );
    assert!(
        told[1].contains("you edited src/auth/a.rs but it is agent feat-auth's by CODEOWNERS"),
        "{told:?}"
    );
    publish(broker, &status("feat-auth", "working", &["src/auth/open2.rs"]));
    assert!(poll(broker, "feat-auth", 0).0.last().unwrap().to_string().contains("[coordination.owners]"));
}
