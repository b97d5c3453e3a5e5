//! Repositories within repositories: submodules of submodules, work trees, clones that share their objects.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::repositories::{committed, ended, findings, well, write};
use crate::support::{World, eventually};

/// A worker that may commit where a person works.
const WRITER: &str = "[workers.writer]\ntype = \"cli\"\nbinary = \"/bin/sh\"\n\
    args = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ngit = \"write\"\n";

/// A rule that lets it.
const RULE: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\n\
    when.action = [\"delegate\"]\nwhen.git = [\"read\", \"write\"]\n";

/// A repository with one commit, outside of the workspace.
fn origin(world: &World, name: &str) -> PathBuf {
    let path = world.path(name);
    std::fs::create_dir_all(&path).unwrap();
    well(&path, &["init", "-q"]);
    write(path.join("file"), "x\n");
    well(&path, &["add", "."]);
    well(&path, &["commit", "-qm", name]);
    path
}

/// A workspace with the submodule `a`, which has the submodule `b`, and a work tree `trees/w`.
fn layered(world: &World) -> PathBuf {
    let (a, b) = (origin(world, "a"), origin(world, "b"));
    well(&a, &["submodule", "add", "-q", b.to_str().unwrap(), "b"]);
    well(&a, &["commit", "-qm", "b"]);
    let repo = committed(world);
    well(&repo, &["submodule", "add", "-q", a.to_str().unwrap(), "a"]);
    well(&repo, &["submodule", "update", "-q", "--init", "--recursive"]);
    well(&repo, &["commit", "-qm", "a"]);
    well(&repo, &["worktree", "add", "-q", "trees/w"]);
    assert!(repo.join(".git/modules/a/modules/b/HEAD").is_file() && repo.join("a/b/.git").is_file());
    repo
}

/// The worker's attempts on each repository of the workspace, by its folder and by the file that leads there.
const SPOIL: &str = "for r in .git/modules/a .git/modules/a/modules/b .git/worktrees/w; do \
      printf '[core]\\n\\tfsmonitor = touch \"$PWD/ran\"\\n' >> $r/config; echo x > $r/config.worktree; \
      mkdir -p $r/hooks; printf '#!/bin/sh\\ntouch ran\\n' > $r/hooks/post-index-change; echo x > $r/commondir; \
      rm -rf $r/hooks; mv $r $r.old; done; \
    for l in a/.git a/b/.git trees/w/.git; do \
      echo 'gitdir: /tmp/mine' > $l; rm -f $l; mv $l $l.old; ln -sf /tmp/mine $l; mkdir $l; done; \
    mv a/b a/c; mv a d; mv trees/w trees/v; echo changed >> a/b/file; ";

/// Returns the content that must stay: of every file that leads git somewhere or names programs.
fn state(repo: &Path) -> Vec<Option<String>> {
    let links = ["a/.git", "a/b/.git", "trees/w/.git"].map(String::from);
    let inner = [".git/modules/a", ".git/modules/a/modules/b", ".git/worktrees/w"];
    let names = ["config", "config.worktree", "commondir", "hooks/post-index-change", "HEAD"];
    let files = inner.iter().flat_map(|at| names.iter().map(move |name| format!("{at}/{name}")));
    links.into_iter().chain(files).map(|file| std::fs::read_to_string(repo.join(file)).ok()).collect()
}

#[test]
fn submodules_of_submodules_and_work_trees_are_as_read_only_as_the_outer_one() {
    let world = World::new();
    world.configure(WRITER);
    world.rule(RULE);
    let repo = layered(&world);
    let before = state(&repo);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for worker in ["shell", "writer"] {
        let result = ended(&client, worker, &format!("{{ {SPOIL} }} 2>/dev/null; true"));
        assert_eq!(result["status"], "completed", "{worker}: {result}");
        assert_eq!(state(&repo), before, "{worker}");
        assert_eq!(findings(&result), [""; 0], "{worker}");
        well(&repo, &["status", "--short"]);
        well(&repo.join("a/b"), &["status", "--short"]);
        assert!(!repo.join("ran").exists() && !repo.join("a/b/ran").exists());
    }
    assert!(std::fs::read_to_string(repo.join("a/b/file")).unwrap().contains("changed"));
}

/// Objects of a repository, with their contents and how many names each has.
fn objects(repository: &Path) -> Vec<(PathBuf, Vec<u8>, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![repository.join("objects")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match entry.metadata().unwrap() {
                meta if meta.is_dir() => folders.push(path),
                meta => found.push((path.clone(), std::fs::read(&path).unwrap(), meta.nlink())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn objects_that_a_local_clone_shares_are_changed_in_neither() {
    let world = World::new();
    world.configure(WRITER);
    world.rule(RULE);
    let (outer, inner) = (origin(&world, "outer"), origin(&world, "inner"));
    let repo = world.repo();
    std::fs::remove_dir_all(repo.join(".git")).unwrap();
    let at = world.path("clone");
    well(&world.path(""), &["clone", "-q", "--local", outer.to_str().unwrap(), at.to_str().unwrap()]);
    std::fs::rename(at.join(".git"), repo.join(".git")).unwrap();
    well(&repo, &["reset", "-q", "--hard"]);
    well(&repo, &["clone", "-q", "--local", inner.to_str().unwrap(), "nested"]);
    let all = [outer.join(".git"), inner.join(".git")].map(|it| objects(&it));
    assert!(all.iter().flatten().all(|it| it.2 == 2), "a local clone shares its objects");
    let bytes = |all: &[(PathBuf, Vec<u8>, u64)]| all.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let spoil = "for o in $(find .git/objects nested/.git/objects -type f); do \
        chmod u+w $o; echo x >> $o; touch -d @0 $o; done; ";
    for worker in ["shell", "writer"] {
        let result = ended(&client, worker, &format!("{{ {spoil} }} 2>/dev/null; true"));
        assert_eq!(result["status"], "completed", "{worker}: {result}");
        for (before, repository) in all.iter().zip([&outer, &inner]) {
            let now = objects(&repository.join(".git"));
            assert_eq!(bytes(&now), bytes(before), "{worker}");
            well(repository, &["fsck", "--full"]);
        }
        if worker == "shell" {
            well(&repo, &["fsck", "--full"]);
        }
        well(&repo.join("nested"), &["fsck", "--full"]);
    }
}

#[test]
fn who_takes_a_run_back_hears_of_the_repository_that_it_has_made() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Made when it is told to end, so that no look is faster.
    let goal = "trap 'mkdir -p late/.git && echo x > late/.git/HEAD; exit' TERM; touch up; while :; do sleep 0.05; done";
    let (task, reply) = client.delegate("shell", goal, json!({ "timeout": 60 }));
    reply.ack();
    eventually("its run", || repo.join("up").exists());
    assert!(world.command(&["task", "cancel", &task]).output().unwrap().status.success());
    let shown =
        || String::from_utf8(world.command(&["task", "show", &task]).output().unwrap().stdout).unwrap();
    eventually("the word", || {
        shown().contains("new git: late/.git") && shown().contains("new git: late/git.set-aside-by-provost")
    });
    assert!(!repo.join("late/.git").exists(), "{}", shown());
}
