//! Work trees are looked at when something happens in them, and only then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::broker_client::{publish, status};
use crate::support::loopback_client::Http;
use crate::support::waits::within;
use crate::support::{Daemon, UP, World, eventually};

/// A repository with one commit, and a work tree for each branch.
fn world(branches: &[&str]) -> (World, Vec<PathBuf>) {
    let world = World::new();
    world.put(&world.repo().join("first.txt"), "one\n");
    world.put(&world.repo().join(".gitignore"), "target/\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = |branch: &&str| {
        let tree = world.path(&branch.replace('/', "-"));
        world.git(&["worktree", "add", "-q", "-b", branch, tree.to_str().unwrap()]);
        tree.canonicalize().unwrap()
    };
    let trees = branches.iter().map(tree).collect();
    (world, trees)
}

/// A daemon whose git counts how often it is started.
fn counting(world: &World) -> Daemon {
    use std::os::unix::fs::PermissionsExt as _;
    let (bin, count) = (world.path("bin"), world.path("asked"));
    let usual = "/usr/local/bin:/usr/bin:/bin";
    let script = format!("#!/bin/sh\necho . >>'{}'\nPATH={usual} exec git \"$@\"\n", count.display());
    world.put(&bin.join("git"), &script);
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut up = world.command(UP);
    up.env("PATH", format!("{}:{usual}", bin.display()));
    world.start_as(up)
}

fn asked(world: &World) -> usize {
    fs::read_to_string(world.path("asked")).unwrap_or_default().lines().count()
}

/// Returns the newest report about an agent's files, from any sender.
fn told(broker: Http, agent: &str) -> Vec<String> {
    let log = broker.get("/log?since=0").json();
    let entries = log["entries"].as_array().unwrap().clone();
    let is_of = |it: &&Value| it["message"]["type"] == "agent.status" && it["message"]["agent_id"] == agent;
    let last = entries.iter().rfind(is_of).map(|it| it["message"]["payload"]["modified_files"].clone());
    let files = last.and_then(|it| it.as_array().cloned()).unwrap_or_default();
    files.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Whether git is started by nothing that is done now, nor for a while after it.
fn quiet(world: &World, act: impl Fn()) -> bool {
    let before = asked(world);
    act();
    !within(Duration::from_secs(3), || asked(world) != before)
}

/// Of several tries, one has to be quiet: what came before may take its time on a busy machine.
fn becomes_quiet(world: &World, what: &str, act: impl Fn()) {
    let until = Instant::now() + Duration::from_secs(40);
    while !quiet(world, &act) {
        assert!(Instant::now() < until, "git is asked again and again: {what}");
    }
}

#[test]
fn a_work_tree_is_looked_at_when_something_happens_there_and_not_otherwise() {
    let (world, trees) = world(&["feat/x"]);
    let tree = &trees[0];
    let _daemon = counting(&world);
    let broker = Http::broker(&world);
    publish(broker, &status("feat-x", "working", &[]));
    let write = |name: &str| {
        world.put(&tree.join(name), "x");
        eventually(name, || told(broker, "feat-x").iter().any(|it| it == name));
    };
    write("a.txt");
    becomes_quiet(&world, "nothing happens", || {});
    becomes_quiet(&world, "agents talk", || publish(broker, &status("feat-y", "working", &["b.txt"])));
    world.put(&tree.join("target/built"), "x");
    becomes_quiet(&world, "ignored files change", || world.put(&tree.join("target/built"), "y"));
    becomes_quiet(&world, "another work tree changes", || world.put(&world.repo().join("main.txt"), "y"));
    // Folders that come, are renamed, and come again under the same name.
    write("new/deep/b.txt");
    write("new/deep/c.txt");
    fs::rename(tree.join("new"), tree.join("renamed")).unwrap();
    write("renamed/deep/d.txt");
    fs::remove_dir_all(tree.join("renamed")).unwrap();
    eventually("they are gone", || told(broker, "feat-x") == ["a.txt"]);
    write("renamed/deep/e.txt");
    write("renamed/deep/f.txt");
    // A hidden folder is one like others; a commit makes the tree clean without writing to a file in it.
    write(".config/g.toml");
    assert!(world.git_in(tree, &["add", "-A"]).status().unwrap().success());
    assert!(world.git_in(tree, &["commit", "-qm", "two"]).status().unwrap().success());
    eventually("it is clean", || told(broker, "feat-x").is_empty());
}

#[test]
fn work_trees_agents_and_branches_may_come_later() {
    let (world, _) = world(&[]);
    let _daemon = counting(&world);
    let broker = Http::broker(&world);
    let tree = world.path("later");
    world.git(&["worktree", "add", "-q", "-b", "feat/x", tree.to_str().unwrap()]);
    world.put(&tree.join("a.txt"), "x");
    becomes_quiet(&world, "nobody is known who works there", || world.put(&tree.join("a.txt"), "y"));
    publish(broker, &status("feat-x", "working", &[]));
    eventually("the agent came", || told(broker, "feat-x") == ["a.txt"]);
    publish(broker, &status("feat-other", "working", &[]));
    assert!(world.git_in(&tree, &["checkout", "-qb", "feat/other"]).status().unwrap().success());
    eventually("the branch is another one's", || told(broker, "feat-other") == ["a.txt"]);
    let second = world.path("second");
    publish(broker, &status("feat-y", "working", &[]));
    world.git(&["worktree", "add", "-q", "-b", "feat/y", second.to_str().unwrap()]);
    world.put(&second.join("b.txt"), "x");
    eventually("the work tree came", || told(broker, "feat-y") == ["b.txt"]);
    world.git(&["worktree", "remove", "--force", second.to_str().unwrap()]);
    world.put(&tree.join("c.txt"), "x");
    eventually("the others are still seen", || told(broker, "feat-other").len() == 2);
}

/// A pointer that an agent has changed to a folder of its own, which names another branch and other programs.
fn bend(world: &World, tree: &Path, to: &str) {
    let fake = world.path("fake");
    fs::create_dir(&fake).unwrap();
    let common = world.repo().join(".git").canonicalize().unwrap();
    world.put(&fake.join("commondir"), common.to_str().unwrap());
    world.put(&fake.join("gitdir"), tree.join(".git").to_str().unwrap());
    world.put(&fake.join("HEAD"), &format!("ref: refs/heads/{to}\n"));
    let pointer = fs::read_to_string(tree.join(".git")).unwrap();
    let real = pointer.strip_prefix("gitdir: ").unwrap().trim();
    fs::copy(Path::new(real).join("index"), fake.join("index")).unwrap();
    world.put(&tree.join(".git"), &format!("gitdir: {}\n", fake.display()));
}

#[test]
fn a_bent_pointer_makes_no_work_tree_another_agents() {
    let (world, trees) = world(&["feat/x", "feat/y"]);
    world.git(&["branch", "feat/victim"]);
    let _daemon = world.start();
    let broker = Http::broker(&world);
    for name in ["feat-x", "feat-y", "feat-victim"] {
        publish(broker, &status(name, "working", &[]));
    }
    bend(&world, &trees[0], "feat/victim");
    world.put(&trees[0].join("evil.txt"), "x");
    // What is asked for by name, and what is heard of: neither leads there.
    let watch = serde_json::json!({ "agent_id": "feat-victim", "worktree_path": trees[0] });
    assert_eq!(broker.post("/watch", &watch).status, 400);
    world.git(&["worktree", "add", "-q", "-b", "feat/z", world.path("z").to_str().unwrap()]);
    world.put(&trees[1].join("good.txt"), "x");
    eventually("the other one is seen", || told(broker, "feat-y") == ["good.txt"]);
    assert_eq!(told(broker, "feat-victim"), [""; 0]);
}

#[test]
fn owners_are_read_again_when_their_file_changes() {
    let (world, _) = world(&[]);
    let _daemon = world.start();
    let broker = Http::broker(&world);
    for name in ["feat-docs", "feat-auth", "feat-bb"] {
        publish(broker, &status(name, "working", &[]));
    }
    let feedback = |file: &str| {
        publish(broker, &status("feat-bb", "working", &[file]));
        let inbox = broker.get("/messages/feat-bb").json().to_string();
        // Told anew with the next try.
        publish(broker, &status("feat-bb", "idle", &[]));
        inbox.contains(&format!("you edited {file} but it is agent"))
    };
    assert!(!feedback("a.md"));
    world.put(&world.repo().join(".github/CODEOWNERS"), "*.md @feat-docs\n");
    eventually("the file came", || feedback("b.md"));
    // Written beside it and renamed, as editors do.
    world.put(&world.repo().join(".github/new"), "*.rs @feat-auth\n");
    fs::rename(world.repo().join(".github/new"), world.repo().join(".github/CODEOWNERS")).unwrap();
    eventually("it changed", || feedback("c.rs"));
    assert!(!feedback("d.md"), "the old lines are in force no more");
    world.put(&world.repo().join("CODEOWNERS"), "*.py @feat-auth\n");
    eventually("one came that counts more", || feedback("e.py"));
    // What cannot be read says nothing, and holds nobody up.
    fs::remove_file(world.repo().join("CODEOWNERS")).unwrap();
    fs::remove_file(world.repo().join(".github/CODEOWNERS")).unwrap();
    let pipe = world.repo().join("CODEOWNERS");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    world.put(&world.repo().join("docs/CODEOWNERS"), "*.c @feat-docs\n");
    eventually("a pipe is passed over", || feedback("f.c"));
}
