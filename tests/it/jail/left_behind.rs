//! Leftovers of a run, for the next command of its user, and for the workers that come after it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::repositories::{BARE, committed, ended, findings, git, in_copies, well, write};
use crate::support::{UP, World, eventually};

#[test]
fn a_repository_of_a_run_whose_daemon_was_killed_is_put_out_of_force_at_the_next_start() {
    let world = World::new();
    let repo = committed(&world);
    well(&repo, &["init", "-q", "mine"]);
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // All but the names that make repositories of them is there before, so that its supervisor, which ends it at the first one,
    // cannot come between both.
    let goal = format!(
        "mkdir v /tmp/v && git init -q --template= /tmp/v/t && (cd /tmp && {}) && for r in /tmp/v/t/.git /tmp/at; do \
         git --git-dir=$r config core.fsmonitor 'touch {}/ran;:'; mv $r/HEAD $r/no-head; done; cp -r /tmp/v/t/.git v/no-git; \
         cp -r /tmp/at .; touch up; until [ -e go ]; do sleep 0.01; done; \
         perl -e 'rename(\"v/no-git/no-head\", \"v/no-git/HEAD\"); rename(\"v/no-git\", \"v/.git\"); rename(\"at/no-head\", \"at/HEAD\")'; \
         sleep 1000",
        BARE.replace("--bare", "--bare --template="),
        repo.display()
    );
    let (task, reply) = client.delegate("shell", &goal, json!({ "timeout": 600 }));
    reply.ack();
    eventually("the worker", || repo.join("up").exists());
    // A daemon that stands still sees nothing of what its worker does from now on; its supervisor ends the
    // worker.
    let pid = rustix::process::Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    write(repo.join("go"), "");
    let parts = ["HEAD", "config", "objects", "refs"];
    let is_whole = |at: &str| parts.iter().all(|part| repo.join(at).join(part).exists());
    eventually("the repositories", || is_whole("v/.git") && is_whole("at"));
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    for place in ["v", "at"] {
        git(&repo.join(place), &["status", "--short"]);
        assert!(!repo.join("ran").exists(), "{place} is still in force: {result}");
    }
    let found = findings(&result);
    for path in ["v/.git", "v/git.set-aside-by-provost", "at"] {
        assert!(found.contains(&format!("new git {path}")), "{path}: {found:?}");
    }
    let said = result["artifacts"].to_string();
    assert!(said.contains("v/.git, now v/git.set-aside-by-provost"), "{said}");
    assert!(repo.join("mine/.git/HEAD").exists(), "what was there before stays in force");
    // What a person makes when the run is over is theirs, over as many starts as there may be.
    well(&repo, &["init", "-q", "later"]);
    drop(client);
    daemon.stop();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(&client, "shell", "true");
    assert_eq!(result["status"], "completed", "{result}");
    assert!(repo.join("later/.git/HEAD").exists());
}

/// Starts the product where its user has no watches of inotify left.
const DEAF: &str = "echo 0 > /proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";

#[test]
fn a_new_repository_ends_a_run_as_soon_where_inotify_has_no_room() {
    let world = World::new();
    let repo = committed(&world);
    for number in 0..500 {
        write(repo.join(format!("many/{number}/file")), "");
    }
    let like = world.command(UP);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "sh", "-c", DEAF]);
    command.arg(like.get_program()).args(UP).current_dir(&repo).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let daemon = world.start_as(command);
    let client = world.client(&daemon, "orch:a");
    let mut lived = Vec::new();
    for round in 0..3 {
        let goal = format!(
            "sleep 0.4; mkdir -p many/9/v/.git; echo x > many/9/v/.git/HEAD; while :; do echo >> lived{round}; sleep 0.01; done"
        );
        let result = ended(&client, "shell", &goal);
        assert_eq!(result["status"], "failed", "{result}");
        let count = std::fs::read_to_string(repo.join(format!("lived{round}"))).unwrap_or_default().len();
        lived.push(count);
        std::fs::remove_dir_all(repo.join("many/9/v")).unwrap();
    }
    lived.sort_unstable();
    assert!(lived[1] < 25, "{lived:?}");
    assert!(world.log().contains("inotify has no room"), "{}", world.log());
}

/// Has git's index lead to another repository at `zz/v`.
fn led_to(folder: &Path) {
    let head = well(folder, &["rev-parse", "HEAD"]);
    well(folder, &["update-index", "--add", "--cacheinfo", &format!("160000,{},zz/v", head.trim())]);
}

#[test]
fn a_submodule_is_no_place_for_a_repository_however_its_index_is_kept() {
    for way in ["split", "sha256", "large", "nested", "tree"] {
        let world = World::new();
        let repo = world.repo();
        let mut below = "";
        if way == "sha256" {
            std::fs::remove_dir_all(repo.join(".git")).unwrap();
            well(&repo, &["init", "-q", "--object-format=sha256"]);
        }
        committed(&world);
        match way {
            "split" => {
                well(&repo, &["update-index", "--split-index"]);
                led_to(&repo);
            }
            "large" => {
                let blob = well(&repo, &["rev-parse", "HEAD:src/a.rs"]);
                let lines: String =
                    (0..200_001).map(|at| format!("100644 {}\tmany/{at}\n", blob.trim())).collect();
                write(world.path("list"), &lines);
                let list = std::fs::File::open(world.path("list")).unwrap();
                let mut git = Command::new("git");
                git.args(["update-index", "--index-info"]).current_dir(&repo).stdin(list);
                assert!(git.status().unwrap().success());
                led_to(&repo);
            }
            "nested" => {
                below = "inner/";
                well(&repo, &["init", "-q", "inner"]);
                write(repo.join("inner/file"), "x");
                well(&repo.join("inner"), &["add", "."]);
                well(&repo.join("inner"), &["commit", "-qm", "one"]);
                led_to(&repo.join("inner"));
            }
            "tree" => {
                below = "trees/w/";
                well(&repo, &["worktree", "add", "-q", "trees/w"]);
                led_to(&repo.join("trees/w"));
            }
            _ => led_to(&repo),
        }
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let at = format!("{below}zz/v");
        let result = ended(
            &client,
            "shell",
            &format!("git init -q {at}; mkdir -p {at}/.git; echo x > {at}/.git/HEAD; sleep 1.5; true"),
        );
        // Elsewhere it would end the run, and be in force until then.
        assert_eq!(result["status"], "completed", "{way}: {result}");
        assert!(!repo.join(&at).join(".git").exists(), "{way}");
    }
}

#[test]
fn an_index_that_cannot_be_read_is_refused_with_a_sentence() {
    let world = World::new();
    let repo = committed(&world);
    led_to(&repo);
    std::fs::write(repo.join(".git/index"), "DIRC, and nothing of an index").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(&client, "shell", "touch ran");
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result["artifacts"].to_string().contains("index cannot be read"), "{result}");
    assert!(!repo.join("ran").exists());
}

#[test]
fn a_tree_that_is_too_deep_is_named_with_the_command_that_puts_it_right() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ended(&client, "shell", "mkdir -p src/x/y; cd src/x/y; mkdir -p $(printf 'a/%.0s' $(seq 140))");
    let result = ended(&client, "shell", "touch ran");
    assert_eq!(result["status"], "failed", "{result}");
    let said = result["artifacts"]["summary"].as_str().unwrap().to_owned();
    let command =
        said.split('`').find(|it| it.starts_with("mv ")).unwrap_or_else(|| panic!("{said}")).to_owned();
    assert!(command.contains("src/x") && !command.contains("src/x/y"), "{command}");
    // As a person types it, from anywhere.
    let done = Command::new("sh").args(["-c", &command]).current_dir(world.home()).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
    assert!(repo.join("src/a.rs").exists() && !repo.join("src/x").exists());
    let result = ended(&client, "shell", "touch ran");
    assert_eq!(result["status"], "completed", "{result}");
}

/// Puts three repositories in force, each within another, and stays.
const IN_FORCE: &str = "import os, time; os.rename(\"v/g\", \"v/.git\"); \
    [open(it + \"/HEAD\", \"w\").write(\"ref: refs/heads/main\") for it in (\"v/.git/x/y\", \"v/.git/x\", \"v/.git\")]; \
    time.sleep(1000)";

#[test]
fn what_lay_in_a_repository_that_was_set_aside_is_none_that_is_in_force() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Made where repositories are allowed and brought without the files that put them in force, which follow
    // at once: the run is ended at the first of them.
    let goal = format!(
        "cd /tmp; git init -q --bare v; for r in v/x v/x/y; do git init -q --bare $r; git -C $r config core.bare false; \
         git -C $r config core.worktree /tmp; git -C $r config core.fsmonitor 'touch {}/ran;:'; done; \
         rm v/HEAD v/x/HEAD v/x/y/HEAD; cd $OLDPWD; mkdir v; cp -r /tmp/v v/g; exec python3 -c '{IN_FORCE}'",
        repo.display()
    );
    let one = |folder: PathBuf| ["HEAD", "HEAD.set-aside"].iter().any(|name| folder.join(name).exists());
    let all = |repository: &Path| one(repository.join("x")) && one(repository.join("x/y"));
    let set_aside = repo.join("v/git.set-aside-by-provost");
    for _ in 0..20 {
        let _ = std::fs::remove_dir_all(repo.join("v"));
        let result = ended(&client, "shell", &goal);
        assert_eq!(result["status"], "failed", "{result}");
        if all(&set_aside) {
            break;
        }
    }
    assert!(all(&set_aside), "every run was ended before it had made all three");
    let mut inner = repo.join("v");
    for name in ["git.set-aside-by-provost", "x", "y"] {
        inner.push(name);
        git(&inner, &["status", "--short"]);
        assert!(!repo.join("ran").exists(), "{}", inner.display());
    }
    // Nor is it one of the user's for those who come later.
    let result = ended(&client, "shell", "echo x > v/git.set-aside-by-provost/x/config");
    assert_eq!(result["status"], "completed", "{result}");
}

#[test]
fn a_file_that_a_worker_has_shut_keeps_no_later_one_from_a_copy() {
    let world = World::new();
    world.configure(&in_copies());
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ended(&client, "shell", "echo x > shut; chmod 0 shut");
    // A person may have shut a folder as well.
    std::fs::create_dir(repo.join("closed")).unwrap();
    Command::new("chmod").args(["0", "closed"]).current_dir(&repo).status().unwrap();
    for worker in ["kept", "thrown"] {
        let result = ended(&client, worker, "cat src/a.rs");
        assert_eq!(result["status"], "completed", "{worker}: {result}");
    }
    Command::new("chmod").args(["700", "closed"]).current_dir(&repo).status().unwrap();
}
