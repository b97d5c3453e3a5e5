//! Workers' needs: tasks that wait for resources, through the daemon and with real runs.

use serde_json::{Value, json};

use crate::support::commands::said;
use crate::support::{Client, World, eventually};

/// A shell that needs the database, and one that needs nothing.
const WORKERS: &str = "[limits]\nworkers = 1\n[coordination]\nresources = { gpu = 2 }\n\
    [workers.tester]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n\
    needs = [\"@db:test\"]\nneeds_wait = \"1m\"\n\
    [workers.hasty]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n\
    needs = [\"@db:test\", \"@gpu:2\"]\nneeds_wait = \"1s\"\n";

const WAITS: &str = "touch up; while [ -e up ]; do sleep 0.05; done";

fn world() -> World {
    let world = World::new();
    world.configure(WORKERS);
    world
}

fn shown(world: &World, task: &str) -> Value {
    said(&world.command(&["task", "show", task, "--json"]).output().unwrap()).1
}

fn is_running(client: &Client, task: &str) -> bool {
    client.task(task).is_some_and(|it| it["status"] == "in_progress")
}

#[test]
fn a_task_waits_for_what_its_worker_needs_says_so_and_keeps_nobody_else_up() {
    let world = world();
    let daemon = world.start();
    world.done("ada", &["lock", "@db:test", "--reason", "by hand"]);
    let client = world.client(&daemon, "orch:a");
    let (task, _) = client.delegate("tester", "echo has it", json!({}));
    eventually("it waits", || shown(&world, &task)["waits_for"][0]["resource"] == "@db:test");
    let task_now = shown(&world, &task);
    assert_eq!((&task_now["state"], &task_now["waits_for"][0]["holder"]), (&json!("queued"), &json!("ada")));
    let text = world.command(&["task", "show", &task]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("waits for @db:test") && text.contains("which ada has"), "{text}");
    let list = world.command(&["task", "list"]).output().unwrap();
    assert!(String::from_utf8(list.stdout).unwrap().contains("waits for @db:test"));
    let waits = world.done("x", &["lock", "list"])["waiting"][0].clone();
    assert_eq!((&waits["agent"], &waits["task"]), (&json!("tester"), &json!(task)));
    // There is one place for workers, and it has not taken it.
    let (other, _) = client.delegate("shell", "echo other", json!({}));
    assert_eq!(client.result_of(&other)["status"], "completed");
    world.done("ada", &["unlock", "@db:test"]);
    assert_eq!(client.result_of(&task)["status"], "completed");
    assert!(world.locked().is_empty(), "it is given back with the run's end");
}

#[test]
fn runs_of_one_worker_have_what_they_need_one_after_the_other_and_hold_it_while_they_run() {
    let world = world();
    world.configure(&WORKERS.replace("workers = 1", "workers = 4"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (first, _) = client.delegate("tester", WAITS, json!({}));
    eventually("the first one runs", || world.repo().join("up").exists());
    let lock = world.done("x", &["lock", "list"])["locks"][0].clone();
    assert_eq!(
        (&lock["symbol"], &lock["holder"], &lock["task"]),
        (&json!("@db:test"), &json!("tester"), &json!(first))
    );
    let (second, _) = client.delegate("tester", "echo second", json!({}));
    eventually("the second one waits", || shown(&world, &second)["waits_for"][0]["holder"] == "tester");
    assert!(is_running(&client, &first));
    assert_eq!(world.ask("ada", &["lock", "@db:test"]).0, 5);
    // The asker takes the first one back: the second one goes on, and an agent behind it waits its turn.
    let waits = world.begin("ada", &["lock", "@db:test", "--wait", "1m"]);
    eventually("ada waits", || world.waiting() == ["tester", "ada"]);
    let cancel = json!({ "task_id": first, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    assert_eq!(client.result_of(&second)["status"], "completed");
    assert_eq!(said(&waits.wait_with_output().unwrap()).0, 0);
}

#[test]
fn a_wait_for_what_is_needed_ends_with_its_own_time_and_says_who_has_it() {
    let world = world();
    let daemon = world.start();
    world.done("ada", &["lock", "@gpu"]);
    let client = world.client(&daemon, "orch:a");
    let (task, _) = client.delegate("hasty", "echo never", json!({}));
    let end = client.result_of(&task);
    assert_eq!(end["status"], "failed", "{end}");
    let text = end.to_string();
    assert!(text.contains("for @gpu:2: ada has @gpu until") && text.contains("1 seconds"), "{text}");
    assert_eq!((world.locked(), world.waiting()), (vec!["@gpu".to_owned()], Vec::new()));
}

#[test]
fn who_holds_what_a_worker_needs_is_refused_its_delegation_at_once() {
    let world = world();
    let _daemon = world.start();
    // A person delegates as themselves.
    let user = |args: &[&str]| said(&world.command(&[args, &["--json"]].concat()).output().unwrap());
    assert_eq!(user(&["lock", "@db:test"]).0, 0);
    let (code, no) = user(&["delegate", "echo x", "--worker", "tester"]);
    assert_eq!((code, &no["data"]["resource"]), (4, &json!("@db:test")), "{no}");
    assert!(no["try"].as_str().unwrap().contains("provost lock release @db:test"), "{no}");
    assert_eq!(user(&["unlock", "@db:test"]).0, 0);
    assert_eq!(user(&["delegate", "echo x", "--worker", "tester", "--wait"]).0, 0);
}

#[test]
fn a_daemon_that_is_killed_frees_what_its_runs_had_and_goes_on_with_what_waits() {
    let world = world();
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (lost, _) = client.delegate("tester", WAITS, json!({}));
    eventually("it runs", || world.repo().join("up").exists());
    let (waits, _) = client.delegate("tester", "echo second", json!({}));
    eventually("the second one waits", || shown(&world, &waits)["waits_for"][0]["holder"] == "tester");
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    assert_eq!(client.result_of(&waits)["status"], "completed");
    assert_eq!(shown(&world, &lost)["state"], "failed");
    eventually("all is free", || world.locked().is_empty());
}

#[test]
fn entries_with_impossible_needs_are_refused_and_said() {
    for (needs, why) in [
        ("[\"db:test\"]", "begins with `@`"),
        ("[\"@db:te\\u202est\"]", "U+202E"),
        ("[\"@db:x\", \"@DB:x\"]", "there twice"),
        ("[\"@git:index\"]", "git"),
        ("\"@db:x\"", "expected a list"),
        ("[\"@gpu\", \"@gpu:2\"]", "one kind"),
        ("[\"@gpu:01\", \"@gpu:1\"]", "one kind"),
        ("[\"@gpu:3\"]", "there are 2"),
        ("[\"@gpu:0\"]", "there are 2"),
        ("[\"@gpu:fast\"]", "there are 2"),
    ] {
        let world = World::new();
        // What is counted may stand behind the worker that needs it.
        world.configure(&format!(
            "[workers.t]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nneeds = {needs}\n[coordination]\nresources = {{ gpu = 2 }}\n"
        ));
        let told = world.command(&["doctor"]).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains(why), "{needs}: {told}");
        let _daemon = world.start();
        let (code, no) = world.ask("ada", &["delegate", "echo x", "--worker", "t"]);
        assert!(code == 4 && no.to_string().contains(why), "{needs}: {no}");
    }
}
