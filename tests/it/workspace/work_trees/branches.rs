//! The branches that a run may have, and the requests that are refused before anything is delegated.

use serde_json::{Value, json};

use super::{folder, git, listed, on, ran, tree_of, world};
use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::waits::until_some;

fn tasks(world: &World) -> usize {
    let done = world.command(&["task", "list", "--json"]).output().unwrap();
    let tasks: Value = serde_json::from_slice(&done.stdout).unwrap();
    let lists = ["active", "finished"].map(|name| tasks[name].as_array().map_or(0, Vec::len));
    assert!(tasks.is_object(), "{tasks}");
    lists.iter().sum()
}

#[test]
fn bad_names_are_refused_and_nothing_is_delegated() {
    let world = world(&[]);
    let _daemon = world.start();
    let long = "x".repeat(201);
    let bad = [
        "--x",
        "..",
        "a..b",
        "a@{1}",
        "@",
        "HEAD",
        "refs/heads/x",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[b",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.lock",
        "a.lock/b",
        "a.",
        "a\nb",
        "a\u{202e}b",
        "a\tb",
        &long,
    ];
    for name in bad {
        let said = ran(&world, &["delegate", "true", &format!("--worktree={name}")], 4);
        assert!(said.contains("no name of a branch"), "{name:?}: {said}");
        assert!(!said.contains('\u{202e}'), "{said}");
    }
    assert_eq!(tasks(&world), 0);
    assert_eq!(git(&world, &["branch", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn the_trunk_and_what_is_checked_out_elsewhere_is_refused() {
    let world = world(&[]);
    let _daemon = world.start();
    git(&world, &["branch", "other"]);
    git(&world, &["branch", "master"]);
    let mine = world.path("mine");
    git(&world, &["worktree", "add", "-q", mine.to_str().unwrap(), "other"]);
    for (name, why) in [("main", "checked out in"), ("other", "checked out in"), ("master", "trunk")] {
        let said = ran(&world, &["delegate", "true", "--worktree", name], 4);
        assert!(said.contains(why) && said.contains("--worktree"), "{name}: {said}");
    }
    git(&world, &["branch", "feat/deep/er"]);
    for name in ["main/x", "feat", "feat/deep", "other/x/y"] {
        let said = ran(&world, &["delegate", "true", "--worktree", name], 4);
        assert!(said.contains("is there, so git keeps no branch"), "{name}: {said}");
    }
    assert_eq!(tasks(&world), 0);
    // A branch that is there and free is used as it is.
    git(&world, &["branch", "free"]);
    let task = on(&world, "free", "echo x > x.txt");
    assert!(tree_of(&task)["commit"].is_string(), "{task:#}");
}

#[test]
fn a_branch_without_a_name_is_named_after_the_worker_and_the_task() {
    let world = world(&[]);
    let _daemon = world.start();
    let args = [
        "delegate",
        "--worker",
        "coder",
        "echo x > x.txt",
        "--task",
        "my task/1",
        "--worktree",
        "--wait",
        "--json",
    ];
    let done = world.command(&args).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap();
    let branch = task["worktree"].as_str().unwrap();
    assert!(branch.starts_with("provost/coder/my-task-1-"), "{branch}");
    assert_eq!(git(&world, &["show", &format!("{branch}:x.txt")]), "x");
    // The same request again is the same task.
    let done = world.command(&args).output().unwrap();
    let again: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&again["worktree"], listed(&world).len()), (&task["worktree"], 1));
    // The word after --worktree is the task where there is no other.
    let said = ran(&world, &["delegate", "--worker", "coder", "--wait", "--worktree", "echo y > y.txt"], 0);
    assert!(said.contains("on branch provost/coder/"), "{said}");
}

#[test]
fn the_api_the_entry_of_an_agent_and_mcp_do_the_same() {
    let world = world(&[]);
    let more = "[[agent]]\nid = \"treed\"\ncommand = [\"/bin/sh\"]\nworktree = true\n\
                [workers.plain]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = \"worktree\"\n";
    world.configure(&format!("{}{more}", super::AGENT));
    let _daemon = world.start();
    let body = json!({ "goal": "echo x > x.txt", "worker": "coder", "worktree": "by/api", "task": "t1" });
    own(&world, ("POST", "/delegate"), &[], &body);
    ran(&world, &["task", "show", "t1", "--wait"], 0);
    assert_eq!(git(&world, &["show", "by/api:x.txt"]), "x");
    for worker in ["treed", "plain"] {
        let said = ran(&world, &["delegate", "--worker", worker, "echo x > x.txt", "--wait"], 0);
        assert!(said.contains(&format!("provost merge provost/{worker}/")), "{said}");
    }
    let mut host = Host::new_era(&world, "model");
    let done =
        host.call("delegate", json!({ "goal": "echo x > x.txt", "worker": "coder", "worktree": "by/mcp" }));
    assert!(done.to_string().contains("task_id"), "{done}");
    until_some("it is committed", || {
        let row = listed(&world).into_iter().find(|it| it["branch"] == "by/mcp")?;
        (row["ahead"] == 1 && row["running"] == false).then_some(())
    });
}

#[test]
fn a_worker_without_the_full_jail_gets_no_work_tree() {
    let world = world(&[]);
    let more = "[workers.weak]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n";
    world.configure(&format!("{}{more}", super::AGENT));
    let _daemon = world.start();
    let said = ran(&world, &["delegate", "true", "--worker", "weak", "--worktree", "feat/x"], 4);
    assert!(said.contains("tier"), "{said}");
    let said = ran(&world, &["delegate", "true", "--worker", "nobody", "--worktree", "feat/x"], 4);
    assert!(said.contains("starts by itself"), "{said}");
    assert!(listed(&world).is_empty());
}

#[test]
fn two_runs_on_one_branch_are_one_after_the_other() {
    let world = world(&[]);
    let _daemon = world.start();
    let script = "[ ! -e busy ] || exit 7; touch busy; sleep 0.3; rm busy; date +%N >> times.txt; echo '*' > /dev/null";
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| on(&world, "feat/x", script))).collect();
        for run in runs {
            let task = run.join().unwrap();
            assert_eq!(task["state"], "completed", "{task:#}");
        }
    });
    assert_eq!(git(&world, &["rev-list", "--count", "main..feat/x"]), "3");
    assert_eq!(git(&world, &["show", "feat/x:times.txt"]).lines().count(), 3);
}

#[test]
fn a_task_for_a_folder_works_in_that_folder_of_the_branch() {
    let world = world(&[("sub/a.txt", "a\n")]);
    let _daemon = world.start();
    let args = [
        "delegate",
        "--worker",
        "coder",
        "pwd; echo b > b.txt; echo no > ../no.txt",
        "--dir",
        "sub",
        "--worktree",
        "feat/x",
    ];
    let said = ran(&world, &[&args[..], &["--wait"]].concat(), 2);
    assert!(said.contains("/sub\n"), "{said}");
    assert_eq!(git(&world, &["diff", "--name-only", "main", "feat/x"]), "sub/b.txt");
    git(&world, &["checkout", "-q", "--orphan", "bare"]);
    git(&world, &["rm", "-rfq", "sub"]);
    std::fs::create_dir_all(world.repo().join("only/here")).unwrap();
    let args =
        ["delegate", "--worker", "coder", "true", "--dir", "only/here", "--worktree", "feat/x", "--wait"];
    let done = world.command(&args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("has no folder 'only/here'"), "{done:?}");
    assert!(folder(&world, "feat/x").is_dir());
}

#[test]
fn a_bare_repository_and_none_are_named() {
    let world = World::new();
    world.configure(super::AGENT);
    std::fs::remove_dir_all(world.repo().join(".git")).unwrap();
    let _daemon = world.start();
    let said = ran(&world, &["delegate", "true", "--worktree", "feat/x"], 4);
    assert!(said.contains("no git repository"), "{said}");
}
