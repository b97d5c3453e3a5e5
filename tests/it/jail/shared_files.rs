//! Files with several names: what a worker does to one stays in its directory.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{Client, World, eventually};

/// A worker of tier `ll`, and a policy that lets it run.
const THIN: &str = "[policy]\nfile = \"builtin:open\"\n[workers.thin]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n";
const SPOIL: &str = "echo x >> f; chmod 777 f; touch -d @0 f";

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A file outside of the workspace with these names in it.
fn shared(world: &World, names: &[&str]) -> PathBuf {
    let outside = world.path("cache/file");
    put(&outside, "theirs\n");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o640)).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(1_600_000_000_123);
    fs::File::options().write(true).open(&outside).unwrap().set_modified(then).unwrap();
    for name in names {
        let name = world.repo().join(name);
        fs::create_dir_all(name.parent().unwrap()).unwrap();
        fs::hard_link(&outside, name).unwrap();
    }
    outside
}

/// Content, rights and time.
fn is(path: &Path) -> (String, u32, (i64, i64)) {
    let meta = fs::metadata(path).unwrap();
    (fs::read_to_string(path).unwrap(), meta.mode() & 0o7777, (meta.mtime(), meta.mtime_nsec()))
}

fn ran(client: &Client, worker: &str, goal: &str) -> Value {
    let (task, reply) = client.delegate(worker, goal, json!({}));
    reply.ack();
    client.result_of(&task)
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = all.map(|it| it.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_a_worker_does_to_a_file_with_names_outside_stays_inside() {
    for worker in ["shell", "thin"] {
        let world = World::new();
        world.configure(THIN);
        let outside = shared(&world, &["f", "sub/g", "node_modules/p/h"]);
        let before = is(&outside);
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let result = ran(&client, worker, SPOIL);
        assert_eq!(result["status"], "completed", "{result}");
        assert_eq!(is(&outside), before, "{worker}");
        assert_eq!(is(&world.repo().join("f")), ("theirs\nx\n".into(), 0o777, (0, 0)), "{worker}");
        // What it did not touch is what it was, and nobody's else.
        for path in ["sub/g", "node_modules/p/h"] {
            assert_eq!(is(&world.repo().join(path)), before, "{worker} {path}");
            assert_eq!(fs::metadata(world.repo().join(path)).unwrap().nlink(), 1, "{worker} {path}");
        }
        assert_eq!(names(&world.repo().join("sub")), ["g"], "{worker}");
        assert_eq!(result["artifacts"]["metadata"]["tainted"], true, "it may be executed now: {result}");
    }
}

#[test]
fn names_of_one_file_that_all_lie_inside_stay_one_file() {
    let world = World::new();
    let outside = shared(&world, &["f", "g"]);
    fs::remove_file(outside).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ran(&client, "shell", "echo x >> f");
    assert_eq!(is(&world.repo().join("g")).0, "theirs\nx\n");
}

#[test]
fn a_second_name_of_a_setting_is_no_way_to_change_it() {
    let world = World::new();
    put(&world.repo().join("packages/a/.vscode/tasks.json"), "mine\n");
    fs::hard_link(world.repo().join("packages/a/.vscode/tasks.json"), world.repo().join("f")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ran(&client, "shell", SPOIL);
    assert_eq!(is(&world.repo().join("packages/a/.vscode/tasks.json")).0, "mine\n");
    assert_eq!(is(&world.repo().join("f")).0, "mine\nx\n");
}

#[test]
fn a_second_name_of_what_git_or_a_setting_runs_is_no_way_to_change_it() {
    let world = World::new();
    let repo = world.repo();
    put(&repo.join("tools/hook"), "#!/bin/sh\nexit 0\n");
    put(&repo.join("conf/included"), "[user]\n");
    put(&repo.join("tools/named.sh"), "exit 0\n");
    put(
        &repo.join(".claude/settings.json"),
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"sh tools/named.sh"}]}]}}"#,
    );
    crate::support::repositories::git(&repo, &["config", "include.path", "../conf/included"]);
    fs::create_dir_all(repo.join(".git/hooks")).unwrap();
    for (first, second) in
        [("tools/hook", ".git/hooks/pre-commit"), ("conf/included", "b"), ("tools/named.sh", "c")]
    {
        fs::hard_link(repo.join(first), repo.join(second)).unwrap();
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    ran(&client, "shell", "echo x >> tools/hook; echo x >> b; echo x >> c");
    for (path, text) in [
        (".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n"),
        ("conf/included", "[user]\n"),
        ("tools/named.sh", "exit 0\n"),
    ] {
        assert_eq!(is(&repo.join(path)).0, text, "{path}");
    }
    for path in ["tools/hook", "b", "c"] {
        assert!(is(&repo.join(path)).0.ends_with("x\n"), "{path} is the worker's to write");
    }
}

#[test]
fn what_cannot_be_copied_is_read_only_or_no_worker_starts() {
    let world = World::new();
    world.configure(THIN);
    let outside = shared(&world, &["f"]);
    // Not to be read by its owner either, who could say otherwise.
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o200)).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ran(&client, "shell", &format!("{{ {SPOIL}; }} 2>/dev/null; true"));
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(fs::metadata(&outside).unwrap().mode() & 0o7777, 0o200);
    let result = ran(&client, "thin", SPOIL).to_string();
    assert!(result.contains("other names outside") && result.contains("copy = true"), "{result}");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(is(&outside).0, "theirs\n");
}

#[test]
fn of_too_many_those_of_package_managers_are_read_only_and_others_keep_a_worker_from_starting() {
    use provost::base::limits::UNSHARED_FILES_MAX;
    let world = World::new();
    let outside = shared(&world, &["f"]);
    let many = world.repo().join("node_modules/many");
    fs::create_dir_all(&many).unwrap();
    for number in 0..=UNSHARED_FILES_MAX {
        fs::hard_link(&outside, many.join(number.to_string())).unwrap();
    }
    let before = is(&outside);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = format!("{SPOIL}; cat node_modules/many/7; echo x 2>/dev/null >> node_modules/many/7; true");
    let result = ran(&client, "shell", &goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!((is(&outside), is(&world.repo().join("f")).0), (before.clone(), "theirs\nx\n".into()));
    // Where they are what the task works in, nothing of them can be held.
    let (task, reply) =
        client.delegate("shell", "echo x >> many/7", json!({ "working_dir": "node_modules" }));
    reply.ack();
    let refused = client.result_of(&task).to_string();
    assert!(refused.contains("too many to be copied"), "{refused}");
    assert_eq!(is(&outside), before);
    fs::rename(world.repo().join("node_modules"), world.repo().join("modules")).unwrap();
    let refused = ran(&client, "shell", "echo x >> modules/many/7").to_string();
    assert!(refused.contains("too many to be copied"), "{refused}");
    assert_eq!(is(&outside), before);
}

#[test]
fn a_file_that_is_given_a_name_inside_while_a_worker_runs_is_reported() {
    let world = World::new();
    let outside = shared(&world, &[]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo > up; while [ ! -e go ]; do sleep 0.01; done";
    let (task, reply) = client.delegate("shell", goal, json!({}));
    reply.ack();
    eventually("its run", || world.repo().join("up").exists());
    fs::hard_link(&outside, world.repo().join("late")).unwrap();
    put(&world.repo().join("go"), "");
    let result = client.result_of(&task);
    let findings = result["artifacts"]["metadata"]["handoff"]["findings"].to_string();
    assert!(findings.contains("\"late\"") && findings.contains("\"link\""), "{result}");
}

#[test]
fn a_command_that_is_tried_changes_nothing_outside_and_a_plan_that_is_shown_changes_nothing_at_all() {
    let world = World::new();
    let outside = shared(&world, &["f"]);
    let (before, inode) = (is(&outside), fs::metadata(&outside).unwrap().ino());
    let shown = world.command(&["jail", "explain", "shell"]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(fs::metadata(world.repo().join("f")).unwrap().ino(), inode, "it is one file still");
    let tried = world.command(&["jail", "try", "--", "sh", "-c", SPOIL]).output().unwrap();
    assert!(tried.status.success(), "{tried:?}");
    assert_eq!((is(&outside), is(&world.repo().join("f")).0), (before, "theirs\nx\n".into()));
}

#[test]
fn what_a_command_that_is_tried_has_left_is_named() {
    let world = World::new();
    let outside = shared(&world, &[]);
    let script = "echo > up; while [ ! -e go ]; do sleep 0.01; done; echo x > Makefile";
    let tried =
        world.command(&["jail", "try", "--", "sh", "-c", script]).stderr(Stdio::piped()).spawn().unwrap();
    eventually("its run", || world.repo().join("up").exists());
    fs::hard_link(&outside, world.repo().join("late")).unwrap();
    put(&world.repo().join("go"), "");
    let said = tried.wait_with_output().unwrap();
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success(), "{text}");
    assert!(
        text.contains("left behind: new link late") && text.contains("left behind: new build Makefile"),
        "{text}"
    );
    let tried = world.command(&["jail", "try", "--", "git", "init", "-q", "inner"]).output().unwrap();
    let text = String::from_utf8(tried.stderr).unwrap();
    assert!(
        text.contains("a git repository was made in the workspace: inner/.git, now inner/git.set-aside"),
        "{text}"
    );
    assert!(!world.repo().join("inner/.git").exists());
}
