//! Agents of the configuration, through the daemon: what they are told, what of their work is kept, and what
//! the user's own files have to do with it: nothing.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use provost::base::{Digest, TaskId};
use provost::domain::{Artifact, StoredChangeset};
use provost::store::Artifacts;
use serde_json::{Value, json};

use crate::support::{World, eventually};

/// Stands in for a language model, and says so.
const STAND_IN: &str = include_str!("../fixtures/agents/stand_in.py");

/// An entry for the stand-in; it is in a folder outside of the workspace.
fn entry(world: &World, id: &str, mode: &str, more: &str) -> String {
    let folder = world.path("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("stand_in.py");
    std::fs::write(&path, STAND_IN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "[[agent]]\nid = \"{id}\"\ncommand = [\"/usr/bin/python3\", \"{}\", \"{mode}\"]\nread_only = [\"{}\"]\n{more}\n",
        path.display(),
        folder.display()
    )
}

fn git(world: &World, args: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let done = Command::new("git").current_dir(world.repo()).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn kept(world: &World, task: &str) -> StoredChangeset {
    Artifacts::at(&world.state_dir()).of(&TaskId::parse(task).unwrap()).unwrap().expect("something is kept")
}

fn artifact<'a>(kept: &'a StoredChangeset, path: &str) -> &'a Artifact {
    kept.artifacts.iter().find(|it| &*it.path == path).unwrap_or_else(|| panic!("{path}: {kept:#?}"))
}

#[test]
fn what_an_agent_changes_is_kept_and_the_users_files_stay_as_they_are() {
    let world = World::new();
    world.put(&world.repo().join("src/a.rs"), "committed\n");
    world.put(&world.repo().join("gone.txt"), "to be removed\n");
    world.put(&world.repo().join("touched.txt"), "the same\n");
    world.put(&world.repo().join(".gitignore"), "target/\n*.secret\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "first"]);
    world.put(&world.repo().join("src/a.rs"), "not committed yet\n");
    world.put(&world.repo().join("key.secret"), "never shown\n");
    world.put(&world.repo().join("target/built"), "large\n");
    std::os::unix::fs::symlink("/etc/passwd", world.repo().join("out")).unwrap();
    world.configure(&entry(&world, "coder-ai", "lines", ""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let prompt = "Please.\nDO list\nDO git status --short\nDO write src/a.rs changed\\n\nDO write tests/new_test.py print()\\n\n\
                  DO remove gone.txt\nDO touch touched.txt\nDO bytes logo.png\nDO write target/more x\nDO write b.secret x\n\
                  DO link evil /etc/shadow\nDO pipe queue\nDO write run.sh x\nDO program run.sh";
    let (task, reply) = client.delegate("coder-ai", prompt, json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let stdout = result["artifacts"]["details"]["stdout"].as_str().unwrap();
    let there: Vec<&str> = stdout.lines().next().unwrap().split(' ').collect();
    assert!([".git", ".gitignore", "out", "src"].iter().all(|it| there.contains(it)), "{stdout}");
    assert!(!there.contains(&"target") && !there.contains(&"key.secret"), "{stdout}");
    assert!(stdout.contains("M src/a.rs"), "git works in the copy, on what is not committed: {stdout}");

    let listed = &result["artifacts"]["details"]["artifacts"];
    let paths: Vec<&str> = listed.as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["gone.txt", "logo.png", "run.sh", "src/a.rs", "tests/new_test.py"]);
    let kept = kept(&world, &task);
    assert!(kept.answer.contains("M src/a.rs"));
    let store = Artifacts::at(&world.state_dir());
    let changed = artifact(&kept, "src/a.rs");
    assert_eq!((&*changed.kind, &*changed.content, &*changed.language), ("file", "changed\n", "rust"));
    assert_eq!(changed.base_hash, Some(Digest::of(b"not committed yet\n")));
    assert_eq!(store.base_of(&changed.id).unwrap().as_deref(), Some(b"not committed yet\n".as_slice()));
    assert_eq!(store.get(&changed.id).unwrap().as_ref(), Some(changed));
    let new = artifact(&kept, "tests/new_test.py");
    assert_eq!((&*new.kind, new.base_hash, store.base_of(&new.id).unwrap()), ("test", None, None));
    assert_eq!((&*artifact(&kept, "gone.txt").kind, &*artifact(&kept, "gone.txt").content), ("delete", ""));
    let image = artifact(&kept, "logo.png");
    assert_eq!((&*image.kind, store.bytes_of(&image.id).unwrap().unwrap().len()), ("binary", 256));
    assert_eq!((artifact(&kept, "run.sh").mode, new.mode), (Some(0o755), Some(0o644)));
    let left_out = kept.left_out().unwrap();
    assert!(
        left_out.contains("evil: is a symbolic link") && left_out.contains("queue: is neither"),
        "{left_out}"
    );

    for (path, text) in [("src/a.rs", "not committed yet\n"), ("gone.txt", "to be removed\n")] {
        assert_eq!(std::fs::read_to_string(world.repo().join(path)).unwrap(), text);
    }
    for path in ["logo.png", "evil", "queue", "tests"] {
        assert!(!world.repo().join(path).exists(), "{path} is in the user's workspace");
    }
}

#[test]
fn a_prompt_arrives_whole_on_standard_input_or_as_an_argument() {
    let world = World::new();
    let argument =
        entry(&world, "by-argument", "argument", "").replace("\"argument\"]", "\"argument\", \"{prompt}\"]");
    world.configure(&format!(
        "{}{}{argument}",
        entry(&world, "coder-ai", "lines", "output = \"text\""),
        entry(&world, "deaf-ai", "deaf", "output = \"text\"")
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let long = format!("DO length\n{}", "x".repeat(600_000));
    let answer = |worker: &str, prompt: &str| {
        let (task, reply) = client.delegate(worker, prompt, json!({}));
        reply.ack();
        client.result_of(&task)
    };
    let result = answer("coder-ai", &long);
    assert_eq!(result["artifacts"]["summary"], "the prompt has 600010 letters", "{result}");
    let result = answer("by-argument", "DO length\n$(id) {model}");
    assert_eq!(result["artifacts"]["summary"], "the prompt has 23 letters", "{result}");
    let result = answer("deaf-ai", &long);
    assert_eq!(result["artifacts"]["summary"], "not listening", "{result}");
    assert_eq!(result["artifacts"]["details"]["artifacts"], json!([]));
}

#[test]
fn streams_of_messages_are_read_for_their_answer() {
    let world = World::new();
    world.configure(&format!(
        "{}{}",
        entry(&world, "claude", "claude", "stream = \"claude-json\"\noutput = \"text\""),
        entry(&world, "codex", "codex", "stream = \"codex-jsonl\"\noutput = \"text\"")
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (worker, answer, tokens, cost) in
        [("claude", "the end", 11, json!(0.25)), ("codex", "the last word", 28, Value::Null)]
    {
        let (task, reply) =
            client.delegate(worker, "DO say first\nDO garbage\nDO say the last word", json!({}));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["artifacts"]["summary"], answer, "{result}");
        let metadata = &result["artifacts"]["metadata"];
        assert_eq!((&metadata["tokens_input"], &metadata["cost_estimate_usd"]), (&json!(tokens), &cost));
        assert_eq!(&*kept(&world, &task).answer, answer);
    }
}

#[test]
fn whatever_an_agent_prints_its_task_ends_and_the_daemon_goes_on() {
    let world = World::new();
    world.configure(&format!(
        "{}{}",
        entry(&world, "coder-ai", "lines", "max_parallel = 4"),
        entry(&world, "claude", "claude", "stream = \"claude-json\"\nmax_parallel = 4")
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let cases = [
        ("coder-ai", "DO garbage", "completed"),
        ("coder-ai", "", "completed"),
        ("coder-ai", "DO flood 1024\nDO write made.txt x", "completed"),
        ("claude", "DO garbage\nDO flood 64", "completed"),
        ("coder-ai", "DO fork 20\nDO write made.txt x", "completed"),
        ("coder-ai", "DO write made.txt x\nDO exit 3", "failed"),
    ];
    let tasks: Vec<_> = cases
        .iter()
        .map(|(worker, prompt, status)| {
            let (task, reply) = client.delegate(worker, &format!("Go.\n{prompt}"), json!({}));
            reply.ack();
            (task, prompt, status)
        })
        .collect();
    for (task, prompt, status) in tasks {
        eventually("the end", || {
            client.task(&task).is_some_and(|it| it["status"] != "pending" && it["status"] != "in_progress")
        });
        let found = client.task(&task).unwrap();
        assert_eq!(found["status"], **status, "{prompt}: {found}");
        let kept = kept(&world, &task);
        assert_eq!(kept.artifacts.len(), usize::from(prompt.contains("made.txt")), "{prompt}");
        assert!(!kept.answer.contains('\u{1b}'), "{prompt}");
    }
    assert!(std::fs::read_dir(world.state_dir().with_extension("copies")).unwrap().next().is_none());
}

#[test]
fn more_than_a_person_would_look_through_is_left_out_and_said_to_be() {
    let world = World::new();
    world.configure(&entry(&world, "coder-ai", "lines", ""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("coder-ai", "DO bytes huge 40000\nDO many folder 250", json!({}));
    reply.ack();
    // A part of a change is no success.
    assert_eq!(client.result_of(&task)["status"], "failed");
    let kept = kept(&world, &task);
    assert_eq!(kept.artifacts.len(), 200);
    let left_out = kept.left_out().unwrap();
    assert!(left_out.contains("huge: has 10240000 bytes, too many"), "{left_out}");
    assert!(left_out.contains("50 more changed files"), "{left_out}");
}

#[test]
fn an_agent_does_as_much_at_once_as_it_may_and_holds_nobody_else_up() {
    let world = World::new();
    world.configure(&format!(
        "[limits]\nworkers = 2\n{}",
        entry(&world, "coder-ai", "lines", "max_parallel = 1")
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (first, _) = client.delegate("coder-ai", "DO wait", json!({}));
    eventually("the first one", || client.task(&first).is_some_and(|it| it["status"] == "in_progress"));
    let (second, _) = client.delegate("coder-ai", "DO say second", json!({}));
    let (third, _) = client.delegate("coder-ai", "DO say third", json!({}));
    let (other, _) = client.delegate("shell", "echo other", json!({}));
    assert_eq!(client.result_of(&other)["status"], "completed", "it had to wait behind an agent's tasks");
    assert_eq!(client.task(&second).unwrap()["status"], "pending");
    let cancel = json!({ "task_id": first, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    for task in [&second, &third] {
        eventually("its turn", || client.task(task).is_some_and(|it| it["status"] == "completed"));
    }
}

#[test]
fn what_is_kept_outlives_the_daemon_and_what_was_half_kept_does_not() {
    let world = World::new();
    world.configure(&entry(&world, "coder-ai", "lines", ""));
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, _) = client.delegate("coder-ai", "DO write a.txt new\\n", json!({}));
    assert_eq!(client.result_of(&task)["status"], "completed");
    let (cut_off, _) = client.delegate("coder-ai", "DO write b.txt new\\n\nDO wait", json!({}));
    eventually("the second one", || client.task(&cut_off).is_some_and(|it| it["status"] == "in_progress"));
    daemon.kill();
    let folder = world.state_dir().join("artifacts");
    std::fs::create_dir(folder.join(".new-half")).unwrap();
    std::fs::write(folder.join(".new-half/1.base"), "x").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:b");
    let (third, _) = client.delegate("coder-ai", "DO say here again", json!({}));
    assert_eq!(client.result_of(&third)["status"], "completed");
    assert_eq!(&*artifact(&kept(&world, &task), "a.txt").content, "new\n");
    assert_eq!(Artifacts::at(&world.state_dir()).of(&TaskId::parse(&cut_off).unwrap()).unwrap(), None);
    assert!(!folder.join(".new-half").exists());
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_git_tracks_is_there_although_it_is_ignored() {
    let world = World::new();
    world.put(&world.repo().join(".gitignore"), "generated/\n*.env\n");
    world.put(&world.repo().join("generated/tracked.rs"), "old\n");
    world.put(&world.repo().join("generated/other.rs"), "not tracked\n");
    world.put(&world.repo().join("a-rather-long-name-of-a-file.txt"), "x\n");
    world.put(&world.repo().join("app.env"), "tracked\n");
    git(
        &world,
        &["add", "-f", ".gitignore", "generated/tracked.rs", "app.env", "a-rather-long-name-of-a-file.txt"],
    );
    world.configure(&entry(&world, "coder-ai", "lines", ""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for version in ["2", "4"] {
        git(&world, &["update-index", "--index-version", version]);
        let prompt = "DO list generated\nDO write generated/tracked.rs new\\n\nDO write generated/new.rs x";
        let (task, reply) = client.delegate("coder-ai", prompt, json!({}));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["artifacts"]["details"]["stdout"], "tracked.rs\n", "version {version}: {result}");
        let kept = kept(&world, &task);
        assert_eq!(kept.artifacts.len(), 1, "{kept:#?}");
        assert_eq!(&*artifact(&kept, "generated/tracked.rs").content, "new\n");
    }
}

#[test]
fn a_secret_is_given_to_the_agent_that_names_it_alone() {
    let world = World::new();
    let value = world.path("value");
    std::fs::write(&value, "open sesame\n").unwrap();
    let mut add = world.command(&["secret", "add", "KEY", "--env", "KEY"]);
    assert!(add.stdin(std::fs::File::open(value).unwrap()).status().unwrap().success());
    world.rule(
        "version = 1\n[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"a test\"\nwhen.action = [\"delegate\"]\n\
         limit.credentials = \"env\"\n",
    );
    world.configure(&format!(
        "{}{}",
        entry(&world, "with-ai", "lines", "env = [\"KEY\"]\noutput = \"text\""),
        entry(&world, "without-ai", "lines", "output = \"text\"")
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (agent, found) in [("with-ai", "KEY=open sesame"), ("without-ai", "KEY=None")] {
        let (task, reply) = client.delegate(agent, "DO environment KEY", json!({}));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["artifacts"]["summary"], found, "{result}");
    }
}

#[test]
fn a_repositorys_agents_count_once_they_are_allowed_and_only_as_they_were() {
    let world = World::new();
    let file = world.repo().join(".provost/provost.toml");
    let text = entry(&world, "theirs-ai", "lines", "output = \"text\"");
    world.put(&file, &text);
    let known = |daemon: crate::support::Daemon| {
        let said = world.command(&["jail", "explain", "theirs-ai"]).output().unwrap();
        daemon.stop();
        said.status.success()
    };
    assert!(!known(world.start()), "nobody has allowed it");
    assert!(
        world.command(&["config", "allow", ".provost/provost.toml", "--yes"]).status().unwrap().success()
    );
    assert!(known(world.start()));
    world.put(&file, &text.replace("lines", "deaf"));
    assert!(!known(world.start()), "it is another one now");
}
