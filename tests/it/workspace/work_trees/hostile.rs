//! A worker in a work tree tries to get at the repository, or to have a program of the user's started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::{folder, git, git_in, git_tried, listed, on, ran, tree_of, world};
use crate::support::World;
use crate::support::waits::until_some;

/// A program that leaves a sign when it runs.
fn trap(world: &World, at: &Path) -> String {
    let sign = world.path("sign");
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, format!("#!/bin/sh\ntouch {}\ncat\n", sign.display())).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    at.to_str().unwrap().to_owned()
}

fn not_committed(task: &Value) -> String {
    tree_of(task)["not_committed"].to_string()
}

#[test]
fn a_worker_can_read_the_repository_and_write_nothing_of_it() {
    let world = world(&[]);
    let _daemon = world.start();
    let script = "common=$(git rev-parse --path-format=absolute --git-common-dir); own=$(git rev-parse --absolute-git-dir); \
                  echo x > file.txt; git add file.txt; git commit -m mine; echo a > .git; rm -f .git; mv .git other; \
                  echo a > $common/hooks/post-commit; echo a > $common/config; echo a > $own/HEAD; echo a > $own/commondir; \
                  git config core.fsmonitor /bin/true; git update-ref refs/heads/main HEAD~0; git branch theirs; \
                  git worktree add /tmp/more; rm -rf $own $common; git log --oneline";
    let before = git(&world, &["for-each-ref"]);
    let task = on(&world, "feat/x", script);
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert!(task.to_string().contains("Read-only file system"), "{task:#}");
    let after = git(&world, &["for-each-ref"]);
    let others =
        |all: &str| all.lines().filter(|it| !it.contains("feat/x")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(others(&before), others(&after));
    assert_eq!(git(&world, &["show", "feat/x:file.txt"]), "x");
    let tree = folder(&world, "feat/x");
    assert_eq!(git_in(&world, &tree, &["status", "--porcelain"]), "");
    assert!(git_tried(&world, &tree, &["config", "core.fsmonitor"]).stdout.is_empty());
    assert!(!world.repo().join(".git/hooks/post-commit").exists());
}

#[test]
fn no_hook_and_no_monitor_of_the_repository_runs() {
    let world = world(&[]);
    let hooks = [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "post-rewrite",
    ];
    for hook in hooks {
        trap(&world, &world.repo().join(".git/hooks").join(hook));
    }
    let monitor = trap(&world, &world.path("monitor"));
    git(&world, &["config", "core.fsmonitor", &monitor]);
    git(&world, &["config", "commit.gpgSign", "true"]);
    git(&world, &["config", "gpg.program", &monitor]);
    let _gone = fs::remove_file(world.path("sign"));
    let _daemon = world.start();
    let task = on(&world, "feat/x", "echo x > file.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    ran(&world, &["worktree", "list"], 0);
    ran(&world, &["worktree", "remove", "feat/x", "--branch", "--force"], 0);
    assert!(
        !world.path("sign").exists(),
        "{:?}",
        fs::read_dir(world.repo().join(".git/hooks")).unwrap().count()
    );
    // The trap works: git itself, as the person, springs it.
    git(&world, &["-c", "commit.gpgSign=false", "commit", "-q", "--allow-empty", "-m", "by hand"]);
    assert!(world.path("sign").exists());
}

#[test]
fn a_filter_that_a_worker_selects_is_not_run_and_the_file_stays_uncommitted() {
    let world = world(&[(".gitattributes", "*.bin filter=own\n"), ("was.bin", "pointer\n")]);
    let filter = trap(&world, &world.path("filter"));
    for key in ["clean", "smudge", "process"] {
        git(&world, &["config", &format!("filter.own.{key}"), &filter]);
    }
    git(&world, &["config", "filter.own.required", "true"]);
    let _daemon = world.start();
    let script = "echo '*.txt filter=own' >> .gitattributes; echo a > a.txt; echo b > b.md; echo c >> was.bin; rm -f none";
    let task = on(&world, "feat/x", script);
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert!(not_committed(&task).contains("a.txt") && not_committed(&task).contains("was.bin"), "{task:#}");
    let changed = git(&world, &["diff", "--name-only", "main", "feat/x"]);
    assert_eq!(changed, ".gitattributes\nb.md");
    // A second run is not kept out by what the first one could not commit.
    let again = on(&world, "feat/x", "echo d > d.md");
    assert_eq!(again["state"], "completed", "{again:#}");
    ran(&world, &["worktree", "list"], 0);
    assert_eq!(listed(&world)[0]["uncommitted"], 2);
    assert!(!world.path("sign").exists(), "the filter ran");
}

#[test]
fn repositories_that_a_worker_plants_are_in_no_commit_and_in_no_force() {
    let world = world(&[]);
    let _daemon = world.start();
    let script = "mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/x' > sub/.git/HEAD; \
                  printf '[core]\\n\\tfsmonitor = /bin/true\\n' > sub/.git/config; echo x > sub/file.txt; sleep 30";
    let task = on(&world, "feat/x", script);
    assert_ne!(task["state"], "completed", "{task:#}");
    let tree = folder(&world, "feat/x");
    assert!(!tree.join("sub/.git").exists(), "it is set aside");
    let names = git(&world, &["ls-tree", "-r", "feat/x"]);
    assert!(!names.contains("160000") && !names.contains("fsmonitor") && !names.contains(".git/"), "{names}");
    // A folder that is a repository under another name.
    let script = "mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/x' > bare/HEAD; echo x > bare/config; sleep 30";
    let task = on(&world, "feat/y", script);
    assert_ne!(task["state"], "completed", "{task:#}");
    let names = git(&world, &["ls-tree", "-r", "--name-only", "feat/y"]);
    assert!(!names.contains("bare/HEAD\n") && !names.ends_with("bare/HEAD"), "{names}");
}

#[test]
fn links_odd_names_and_large_files_are_not_committed() {
    let world = world(&[("d/b.txt", "b\n")]);
    let _daemon = world.start();
    let script = "ln -s /etc/passwd out; ln -s ../../.. up; printf x > \"$(printf 'a\\nb')\"; mkfifo pipe; echo ok > ok.txt";
    let task = on(&world, "feat/x", script);
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(git(&world, &["diff", "--name-only", "main", "feat/x"]), "ok.txt");
    let again = on(&world, "feat/x", "echo more > more.txt");
    assert_eq!(again["state"], "completed", "links that were left keep no run out: {again:#}");

    let task = on(&world, "feat/y", "dd if=/dev/zero of=huge bs=1M count=9 2> /dev/null; echo s > small.txt");
    assert_eq!(task["state"], "failed", "{task:#}");
    assert!(tree_of(&task)["failed"].as_str().unwrap().contains("changes.size"), "{task:#}");
    assert_eq!(
        git(&world, &["rev-parse", "feat/y"]),
        git(&world, &["rev-parse", "main"]),
        "half a change is none"
    );
    let again = on(&world, "feat/y", "true");
    let why = again.to_string();
    assert!(why.contains("not committed: huge, small.txt") && why.contains("stash -u"), "{again:#}");
}

#[test]
fn the_entry_of_a_submodule_stays_whatever_lies_in_its_place() {
    let world = world(&[]);
    let link = format!("160000,{},sub", git(&world, &["rev-parse", "HEAD"]));
    git(&world, &["update-index", "--add", "--cacheinfo", &link]);
    git(&world, &["commit", "-q", "-m", "with a submodule"]);
    let _daemon = world.start();
    let task = on(&world, "feat/x", "mkdir -p sub; echo x > sub/file.txt; echo y > beside.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert!(not_committed(&task).contains("sub/file.txt"), "{task:#}");
    assert_eq!(git(&world, &["diff", "--name-only", "main", "feat/x"]), "beside.txt");
    let task = on(&world, "feat/y", "rm -rf sub; echo x > sub; echo y > beside.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(git(&world, &["diff", "--name-only", "main", "feat/y"]), "beside.txt");
}

#[test]
fn the_door_in_a_work_tree_is_not_the_workers() {
    let world = world(&[]);
    fs::create_dir(world.repo().join(".wit")).unwrap();
    let _daemon = world.start();
    on(&world, "feat/x", "true");
    let socket = folder(&world, "feat/x").join(".wit/daemon.sock");
    crate::support::eventually("the door is there", || socket.exists());
    let task =
        on(&world, "feat/x", "ls -A .wit > seen.txt; test ! -S .wit/daemon.sock && echo none >> seen.txt");
    assert_eq!(git(&world, &["show", "feat/x:seen.txt"]), "none", "{task:#}");
    assert_eq!(listed(&world)[0]["uncommitted"], 0);
}

#[test]
fn sockets_and_pipes_in_the_repository_are_not_the_workers() {
    let world = world(&[]);
    let pipe = world.repo().join(".git/asking");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let at = world.repo().join(".git/monitor.ipc");
    let listener = std::os::unix::net::UnixListener::bind(&at).unwrap();
    listener.set_nonblocking(true).unwrap();
    let _daemon = world.start();
    let script = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{0}\")' 2> /dev/null && echo reached > said; \
         test -S {0} && echo seen >> said; test -p {1} && echo pipe >> said; echo end >> said",
        at.display(),
        pipe.display()
    );
    let task = on(&world, "feat/x", &script);
    assert_eq!(git(&world, &["show", "feat/x:said"]), "end", "{task:#}");
    assert!(listener.accept().is_err(), "a worker has connected");
}

#[test]
fn what_an_apply_would_withhold_is_not_committed() {
    let world = world(&[]);
    world.configure(&format!("{}\n[a6s]\ndeny = [\"secret/**\"]\n", super::AGENT));
    let _daemon = world.start();
    let script = "mkdir -p secret deep/.vscode; echo x > secret/a; echo '{}' > deep/.vscode/tasks.json; echo x > 'a:b'; \
                  echo ok > ok.txt";
    let task = on(&world, "feat/x", script);
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(git(&world, &["diff", "--name-only", "main", "feat/x"]), "ok.txt", "{task:#}");
    let held = not_committed(&task);
    assert!(held.contains("a6s.deny") && held.contains("secret/a"), "{held}");
}

#[test]
fn what_a_person_does_to_the_repository_during_a_run_is_not_undone() {
    let world = world(&[]);
    let _daemon = world.start();
    let wait = "echo x > x.txt; touch begun; while [ ! -e go ]; do sleep 0.05; done; rm -f go begun";
    let during = |branch: &str, act: &dyn Fn(&Path)| {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| on(&world, branch, wait));
            let tree = until_some("the run has begun", || {
                let all = listed(&world);
                let found = all.iter().find(|it| it["branch"] == branch)?["path"].as_str()?.to_owned();
                let tree = Path::new(&found).to_path_buf();
                tree.join("begun").exists().then_some(tree)
            });
            act(&tree);
            let _gone = fs::write(tree.join("go"), "");
            run.join().unwrap()
        })
    };
    // The trunk moves, and git prunes: nothing of the run's.
    let task = during("feat/a", &|_| {
        git(&world, &["commit", "-q", "--allow-empty", "-m", "second"]);
        git(&world, &["worktree", "prune", "--expire", "now"]);
        git(&world, &["gc", "-q", "--prune=now"]);
    });
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    // The branch is deleted: it is not made again, and the changes are kept.
    let task = during("feat/b", &|_| {
        git(&world, &["update-ref", "-d", "refs/heads/feat/b"]);
    });
    assert!(tree_of(&task)["failed"].as_str().unwrap().contains("deleted"), "{task:#}");
    assert_eq!(task["state"], "failed");
    assert!(!git_tried(&world, &world.repo(), &["rev-parse", "--verify", "feat/b"]).status.success());
    assert!(ran(&world, &["task", "diff", task["id"].as_str().unwrap()], 0).contains("+x"));
    // The branch is moved: it stays where the person has put it.
    let task = during("feat/c", &|tree| {
        git_in(&world, tree, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    });
    assert!(tree_of(&task)["failed"].as_str().unwrap().contains("moved"), "{task:#}");
    assert_eq!(git(&world, &["log", "-1", "--format=%s", "feat/c"]), "mine");
    // A lock on the branch is git's own: the run says so.
    let task =
        during("feat/d", &|_| fs::write(world.repo().join(".git/refs/heads/feat/d.lock"), "").unwrap());
    assert!(tree_of(&task)["failed"].as_str().unwrap().contains("feat/d.lock"), "{task:#}");
    // The index is locked: the commit is made all the same.
    let task = during("feat/e", &|tree| {
        let entry = git_in(&world, tree, &["rev-parse", "--absolute-git-dir"]);
        fs::write(Path::new(&entry).join("index.lock"), "").unwrap();
    });
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
    assert_eq!(git(&world, &["show", "feat/e:x.txt"]), "x");
}

#[test]
fn a_work_tree_that_is_removed_by_hand_during_a_run_leaves_no_commit_that_deletes_everything() {
    let world = world(&[]);
    let _daemon = world.start();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| on(&world, "feat/x", "touch begun; sleep 3"));
        let tree = until_some("the run has begun", || {
            let found = listed(&world).first()?["path"].as_str()?.to_owned();
            Path::new(&found).join("begun").exists().then_some(found)
        });
        let _partly = git_tried(&world, &world.repo(), &["worktree", "remove", "--force", &tree]);
        let _gone = fs::remove_dir_all(&tree);
        let task = run.join().unwrap();
        assert_eq!(task["state"], "failed", "{task:#}");
    });
    assert_eq!(git(&world, &["rev-parse", "feat/x"]), git(&world, &["rev-parse", "main"]));
    let again = on(&world, "feat/x", "echo x > x.txt");
    assert_eq!(again["state"], "completed", "the next run makes it again: {again:#}");
}
