//! Workers that speak with a model: they work in a private copy, and what they change comes in by an apply.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use provost::base::RepoPath;
use provost::workspace::copy::Copied;
use provost::workspace::snapshot;
use serde_json::{Value, json};

use crate::support::desk::FREELY;
use crate::support::mcp_host::Host;
use crate::support::{Client, World, eventually};

/// An entry as the README has it, without the network that a test cannot have.
fn entry(name: &str, more: &str) -> String {
    format!(
        "[workers.{name}]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\n{more}\n"
    )
}

const DELEGATE: &str =
    "[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"delegate\"]\n";

const MODEL: &str = "default_model = \"small\"";

fn ended(client: &Client, worker: &str, goal: &str) -> Value {
    let (task, reply) = client.delegate(worker, goal, json!({ "timeout": 60 }));
    reply.ack();
    client.result_of(&task)
}

fn ran(world: &World, args: &[&str], code: i32) -> String {
    let done = world.command(args).output().unwrap();
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// A file in a private copy.
fn in_copies(world: &World, name: &str) -> Option<PathBuf> {
    let copies = world.state_dir().with_extension("copies");
    let folders = std::fs::read_dir(copies).into_iter().flatten().flatten();
    folders.map(|it| it.path().join(name)).find(|it| it.exists())
}

#[test]
fn who_speaks_with_a_model_works_in_a_private_copy_and_a_person_applies_what_it_changed() {
    let world = World::new();
    world.rule(&format!("{FREELY}{DELEGATE}"));
    world.configure(&entry("agent", MODEL));
    let repo = world.repo();
    std::fs::write(repo.join("a.txt"), "old\n").unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("agent", "echo new > a.txt; echo more > b.txt; rm -f c", json!({ "timeout": 60 }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "old\n");
    assert!(!repo.join("b.txt").exists());
    let details = &result["artifacts"]["details"];
    assert_eq!(details["apply"], format!("provost apply {task}"), "{result}");
    assert_eq!(details["artifacts"].as_array().map(Vec::len), Some(2), "{result}");

    let shown = ran(&world, &["apply", &task, "--preview"], 0);
    assert!(
        shown.contains("modify a.txt") && shown.contains("+new") && shown.contains("create b.txt"),
        "{shown}"
    );
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "old\n");
    let said = ran(&world, &["apply", &task], 0);
    assert!(said.contains("written: 2; this was apply 1"), "{said}");
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(repo.join("b.txt")).unwrap(), "more\n");
    ran(&world, &["undo", "1"], 0);
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "old\n");

    let (other, reply) = client.delegate("shell", "true", json!({ "timeout": 60 }));
    reply.ack();
    client.result_of(&other);
    let said = ran(&world, &["apply", &other], 1);
    assert!(said.contains("nothing is kept") && said.contains("provost jail explain"), "{said}");
}

#[test]
fn an_apply_of_a_task_waits_for_a_word_as_any_other_does() {
    let world = World::new();
    world.configure(&entry("agent", MODEL));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("agent", "echo new > a.txt", json!({ "timeout": 60 }));
    reply.ack();
    client.result_of(&task);
    let said = ran(&world, &["apply", &task], 4);
    assert!(said.contains("provost approve 1, in another terminal"), "{said}");
    assert!(!world.repo().join("a.txt").exists());
}

#[test]
fn an_entry_says_itself_where_its_worker_works() {
    let world = World::new();
    let entries = [
        entry("named", MODEL),
        entry("filled", "env = { A = \"b\" }").replace("\"{goal}\"]", "\"{goal}\", \"{model}\"]"),
        entry("here", &format!("{MODEL}\ncopy = false")),
        entry("committer", &format!("{MODEL}\ngit = \"write\"")),
        entry("plain", ""),
        entry("kept", "copy = \"kept\""),
        entry("thrown", &format!("{MODEL}\ncopy = true")),
    ];
    world.configure(&entries.concat());
    world.repo();
    let explained = |worker: &str| {
        let said = ran(&world, &["jail", "explain", worker], 0);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (worker, way, reason) in [
        ("named", "in a private copy", true),
        ("filled", "in a private copy", true),
        ("here", "in the directory itself", false),
        ("committer", "in the directory itself", false),
        ("plain", "in the directory itself", false),
        ("kept", "in a private copy", false),
        ("thrown", "in a copy, which is deleted", false),
        ("shell", "in the directory itself", false),
    ] {
        let said = explained(worker);
        assert!(said.contains(way), "{worker}: {said}");
        assert_eq!(
            said.contains("`copy = false` has it work in the directory itself"),
            reason,
            "{worker}: {said}"
        );
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (worker, is_there) in
        [("named", false), ("here", true), ("plain", true), ("kept", false), ("thrown", false)]
    {
        let result = ended(&client, worker, &format!("echo x > {worker}.txt"));
        assert_eq!(result["status"], "completed", "{result}");
        assert_eq!(world.repo().join(format!("{worker}.txt")).exists(), is_there, "{worker}");
        let is_kept = result["artifacts"]["details"]["apply"].is_string();
        assert_eq!(is_kept, ["named", "kept"].contains(&worker), "{worker}: {result}");
    }
}

#[test]
fn a_part_of_a_change_is_no_success_and_is_told_with_what_can_be_applied() {
    let world = World::new();
    world.configure(&entry("kept", "copy = \"kept\""));
    world.repo();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let many = ended(&client, "kept", "for n in $(seq 500); do echo $n > f$n; done");
    assert_eq!(many["status"], "failed", "300 of 500 files are not kept: {many}");
    let id = many["task_id"].as_str().unwrap();
    let said = ran(&world, &["task", "show", id], 0);
    assert!(said.contains("write them:   provost apply") && said.contains("not kept: "), "{said}");
    let mut host = Host::old(&world, "coder");
    let asked = json!({ "name": "task_status", "arguments": { "task_id": id } });
    let told = host.ask("tools/call", asked);
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Not kept of what it has changed: ") && text.contains("provost apply"), "{text}");
}

#[test]
fn after_a_kill_the_report_says_where_the_changes_of_the_lost_run_are() {
    let world = World::new();
    world.configure(&entry("agent", MODEL));
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo hours-of-work > done.txt; echo up; sleep 1000";
    let (task, reply) = client.delegate("agent", goal, json!({ "timeout": 600 }));
    reply.ack();
    let written =
        |it: std::path::PathBuf| std::fs::read_to_string(it).is_ok_and(|it| it == "hours-of-work\n");
    eventually("its work", || in_copies(&world, "done.txt").is_some_and(written));
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed", "{result}");
    let said = result["artifacts"]["details"]["left_out"].to_string();
    let kept = in_copies(&world, "done.txt").expect("the copy is kept");
    assert!(said.contains(kept.parent().unwrap().to_str().unwrap()), "{said}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "hours-of-work\n");
    let shown = ran(&world, &["task", "show", &task], 0);
    assert!(shown.contains("the private copy in which it worked is at"), "{shown}");
    let refused = world.command(&["task", "diff", &task]).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.contains("was lost, so no daemon has recorded") && refused.contains("task show"),
        "{refused}"
    );
    // What is not needed goes at the next start, and this stays.
    let leftover = world.state_dir().with_extension("copies").join("leftover");
    std::fs::create_dir(&leftover).unwrap();
    daemon.stop();
    let _daemon = world.start();
    eventually("the sweep", || !leftover.exists());
    assert!(in_copies(&world, "done.txt").is_some());
}

#[test]
fn after_a_kill_the_copy_is_kept_without_the_repositories_that_were_made_in_it() {
    let world = World::new();
    world.configure(&entry("agent", MODEL));
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "git init -q nest; git -C nest config core.fsmonitor ../m.sh; echo up > up; sleep 1000";
    let (task, reply) = client.delegate("agent", goal, json!({ "timeout": 600 }));
    reply.ack();
    eventually("its work", || in_copies(&world, "up").is_some());
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    client.result_of(&task);
    let kept = in_copies(&world, "up").expect("the copy is kept");
    let kept = kept.parent().unwrap();
    assert!(!kept.join("nest/.git").exists() && kept.join("nest").is_dir(), "{kept:?}");
    let shown = ran(&world, &["task", "show", &task], 0);
    assert!(shown.contains("nest/.git, now nest/git.set-aside-by-provost"), "{shown}");
    let task: Value = serde_json::from_str(&ran(&world, &["task", "show", &task, "--json"], 0)).unwrap();
    assert_eq!(task["tainted"], true, "{task:#}");
}

/// Every end of a run says which files it had changed by then, and how they are written into the work tree:
/// in text, as data and to a model.
fn tells_its_changes(world: &World, task: &str) {
    let said = ran(world, &["task", "show", task], 0);
    let apply = format!("provost apply {task}");
    assert!(said.contains("changed in its private copy: a.txt, b.txt") && said.contains(&apply), "{said}");
    let data: Value = serde_json::from_str(&ran(world, &["task", "show", task, "--json"], 0)).unwrap();
    let notes = data["notes"].as_array().unwrap();
    let details = notes.iter().map(|it| &it["details"]).find(|it| it["apply"] == apply.as_str());
    let details = details.unwrap_or_else(|| panic!("{data}"));
    let paths: Vec<&Value> = details["artifacts"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["a.txt", "b.txt"], "{data}");
    let mut host = Host::old(world, "coder");
    let told = host.ask("tools/call", json!({ "name": "task_status", "arguments": { "task_id": task } }));
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("a.txt, b.txt") && text.contains(&apply), "{text}");
}

#[test]
fn every_end_of_a_run_names_what_it_had_changed_and_the_command_that_writes_it() {
    let world = World::new();
    world.rule(&format!("{FREELY}{DELEGATE}"));
    world.configure(&entry("agent", MODEL));
    world.repo();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let begin = |then: &str, timeout: u64| {
        let goal = format!("echo new > b.txt; echo new > a.txt; {then}");
        let (task, reply) = client.delegate("agent", &goal, json!({ "timeout": timeout }));
        reply.ack();
        task
    };
    for (then, timeout) in [("exit 3", 60), ("sleep 1000", 2)] {
        let task = begin(then, timeout);
        assert_eq!(client.result_of(&task)["status"], "failed", "{then}");
        tells_its_changes(&world, &task);
    }
    // One that is taken back is over at once, and says so later on.
    let task = begin("echo up; sleep 1000", 600);
    eventually("its work", || in_copies(&world, "a.txt").is_some());
    let mut watching = world.command(&["task", "show", &task, "--wait"]);
    watching.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let watching = watching.spawn().unwrap();
    eventually("it is watched", || ran(&world, &["task", "show", &task, "--json"], 0).contains("running"));
    // tidy: sleeps because nobody sees from outside whether the command follows the task already
    std::thread::sleep(std::time::Duration::from_millis(500));
    ran(&world, &["task", "cancel", &task], 0);
    let told = watching.wait_with_output().unwrap();
    let told = String::from_utf8([told.stdout, told.stderr].concat()).unwrap();
    let apply = format!("provost apply {task}");
    assert!(told.contains("a.txt, b.txt") && told.contains(&apply), "{told}");
    tells_its_changes(&world, &task);
    ran(&world, &["apply", &task], 0);
    assert_eq!(std::fs::read_to_string(world.repo().join("a.txt")).unwrap(), "new\n");
}

/// Makes and removes a file, a folder and a link in a folder, again and again until it is dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    hands: Vec<JoinHandle<()>>,
}

impl Busy {
    fn in_folder(folder: &Path) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let hands = (0..3).map(|kind| {
            let (ends, at) = (ends.clone(), folder.join(format!("passing-{kind}")));
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    match kind {
                        0 => std::fs::write(&at, "here and gone\n").unwrap(),
                        1 => std::os::unix::fs::symlink("passing-0", &at).unwrap(),
                        _ => std::fs::create_dir(&at).unwrap(),
                    }
                    if kind == 2 { std::fs::remove_dir(&at) } else { std::fs::remove_file(&at) }.unwrap();
                }
            })
        });
        Self { hands: hands.collect(), ends }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.hands.drain(..).for_each(|it| it.join().unwrap());
    }
}

/// The time between the look at an entry and its opening is some microseconds: each kind of copy is made often enough to meet it.
#[test]
fn what_is_removed_while_a_copy_is_made_does_not_fail_it() {
    const COPIES: usize = 4_000;
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("from");
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("stays.txt"), "old\n").unwrap();
    let folder = || Dir::open_ambient_dir(&from, ambient_authority()).unwrap();
    let into = place.path().join("copies");
    let _busy = Busy::in_folder(&from);
    for n in 0..COPIES {
        let (kept, thrown) = match n % 2 {
            0 => (Some(snapshot::copy(&folder(), &folder(), &RepoPath::default(), &into)), None),
            _ => (None, Some(Copied::of(folder(), &into))),
        };
        let copied = kept.map(|it| it.map(|it| it.copied)).or(thrown).unwrap();
        let copied = copied.unwrap_or_else(|why| panic!("copy {n}: {why}"));
        assert_eq!(std::fs::read_to_string(copied.path().join("stays.txt")).unwrap(), "old\n");
    }
}
