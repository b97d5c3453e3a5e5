//! Tasks over several machines with one PostgreSQL: each goes to a host that can do it, once, and its outcome comes back to the machine
//! where it was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::commands::said;
use crate::support::forger::{bytes, hex, signed};
use crate::support::machines::{Machines, git, state_dir};
use crate::support::own_api::own;
use crate::support::postgres::{Between, Loses, name_of};
use crate::support::rules::{allow, policy, rule};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{stays, within};
use crate::support::{Client, Daemon, World};

/// Waits for something that takes a burial, a restart, or less.
pub(super) fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// A worker that runs its goal as a script, in a copy whose changes are kept.
pub(super) fn builder(more: &str) -> String {
    format!(
        "[workers.builder]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\n\
         copy = \"kept\"\n{more}\n"
    )
}

pub(super) fn rules() -> String {
    policy([allow("work", &["when.action = [\"delegate\"]"]), allow("write", &["when.action = [\"apply\"]"])])
}

/// So many machines, each with what its configuration has beside the store, and their daemons.
pub(super) fn machines<const N: usize>(of: [&str; N]) -> (Machines, Vec<Daemon>) {
    let machines = Machines::joined(N);
    for (world, more) in machines.all.iter().zip(of) {
        machines.configure_with(world, more);
        world.rule(&rules());
    }
    let daemons = machines.start();
    let able = "select count(*) from provost.ability";
    until("each host has said what it can do", || machines.sql(able) == N.to_string());
    if of.iter().any(|it| it.contains("[workers.builder]")) {
        let has_read =
            |it: &World| it.done("ada", &["status"])["workers"].to_string().contains("\"builder\"");
        until("each has read it", || machines.all.iter().all(has_read));
    }
    (machines, daemons)
}

pub(super) fn host_of(world: &World) -> String {
    let (_, listed) = said(&world.command(&["host", "list", "--json"]).output().unwrap());
    let all = listed["hosts"].as_array().unwrap();
    let own = all.iter().find(|it| it["here"] == true).unwrap();
    own["host"].as_str().unwrap()[..8].to_owned()
}

pub(super) fn ask(world: &World, args: &[&str]) -> (i32, Value) {
    said(&world.by("ada", args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs"))
}

pub(super) fn delegate(world: &World, id: &str, goal: &str, more: &[&str]) -> (i32, Value) {
    ask(world, &[&["delegate", goal, "--worker", "builder", "--task", id], more].concat())
}

pub(super) fn task(world: &World, id: &str) -> Value {
    world.done("ada", &["task", "show", id])
}

pub(super) fn is(world: &World, id: &str, state: &str) -> Value {
    let mut found = Value::Null;
    until(&format!("task {id} is {state}"), || {
        found = task(world, id);
        assert!(found["state"] == state || found["ended_at"].is_null(), "{found}");
        found["state"] == state
    });
    found
}

/// How often each task has such an event.
fn counted(machines: &Machines, kind: &str) -> BTreeMap<String, usize> {
    let rows = machines.sql(&format!("select task from provost.event where kind = '{kind}' order by seq"));
    let mut counted = BTreeMap::new();
    rows.lines().for_each(|it| *counted.entry(it.to_owned()).or_default() += 1);
    counted
}

/// Whether a process has this among its arguments.
fn runs(mark: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let is_it = |line: Vec<u8>| line.split(|it| *it == 0).any(|it| it == mark.as_bytes());
    lines.into_iter().any(is_it)
}

#[test]
fn a_task_runs_on_the_machine_that_has_its_worker_and_its_outcome_comes_back() {
    let (machines, _daemons) = machines(["", &builder("")]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    until("the other machine's worker is known", || {
        let status = a.command(&["status"]).output().unwrap();
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        status.contains("worker builder") && status.contains(&host_of(b))
    });
    let goal = "head -1 src/a.rs; echo more >>src/a.rs; echo new >made.txt; echo it is done";
    let (code, said) = delegate(a, "far", goal, &[]);
    assert_eq!(code, 0, "{said}");
    let done = is(a, "far", "completed");
    assert_eq!(done["host"], host_of(b), "{done}");
    assert!(done.to_string().contains("it is done"), "{done}");
    assert!(
        !b.repo().join("made.txt").exists() && !a.repo().join("made.txt").exists(),
        "it worked in a copy"
    );
    let (status, output) = own(a, ("GET", "/output?id=far&from=0"), &[], &Value::Null);
    assert!(status == 200 && output.to_string().contains("pub fn f0"), "{status}: {output}");
    let diff = a.command(&["task", "diff", "far"]).output().unwrap();
    let diff = String::from_utf8_lossy(&[diff.stdout, diff.stderr].concat()).into_owned();
    assert!(diff.contains("+more") && diff.contains("made.txt"), "{diff}");
    // The machine that ran it has them itself, also if it could leave none for the others.
    machines.sql("delete from provost.artifact");
    let diff = b.command(&["task", "diff", "far"]).output().unwrap();
    let diff = String::from_utf8_lossy(&[diff.stdout, diff.stderr].concat()).into_owned();
    assert!(diff.contains("+more") && diff.contains("made.txt"), "{diff}");
    let (code, said) = ask(a, &["apply", "far"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(a.repo().join("made.txt")).unwrap(), "new\n");
    assert!(std::fs::read_to_string(a.repo().join("src/a.rs")).unwrap().ends_with("more\n"));
    assert!(!b.repo().join("made.txt").exists());
    machines.check();
}

#[test]
fn what_another_host_has_left_is_taken_only_with_its_signature() {
    let (machines, _daemons) = machines(["", &builder(""), ""]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    for id in ["one", "two", "three"] {
        assert_eq!(delegate(a, id, &format!("echo {id} >made.txt"), &[]).0, 0);
        is(a, id, "completed");
    }
    let diff = |id: &str| {
        let out = a.command(&["task", "diff", id]).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    machines
        .sql("update provost.artifact set bytes = set_byte(bytes, length(bytes) - 1, 88) where task = 'one'");
    let refused = "is not signed by the host that ran the task";
    let (is_shown, said) = diff("one");
    assert!(!is_shown && said.contains(refused), "{said}");
    // A third host has the journal's key, and signs in its own name alone.
    let secret = std::fs::read(state_dir(c).join("journal.key")).unwrap();
    let column =
        |name: &str| machines.sql(&format!("select {name} from provost.artifact where task = 'three'"));
    let (shelf, left) = (column("shelf"), bytes(&column("encode(bytes, 'hex')")));
    let leave = |by: &World| {
        let signature = signed(by, &secret, &[b"provost-artifacts-v1", shelf.as_bytes(), &left]);
        let sql = format!(
            "update provost.artifact set seal = decode('{}', 'hex') where task = 'three'",
            hex(&signature)
        );
        machines.sql(&sql)
    };
    leave(c);
    let (is_shown, said) = diff("three");
    assert!(!is_shown && said.contains(refused), "{said}");
    // The form is right: the host that ran it could have left that.
    leave(b);
    let (_, said) = diff("three");
    assert!(!said.contains(refused), "{said}");
    // What a host has put there for another task is not this one's.
    machines.sql("delete from provost.artifact where task = 'one'");
    machines.sql(
        "insert into provost.artifact (repo, shelf, n, task, host, seal, bytes)
         select repo, (select substr(encode(sha256('x'), 'hex'), 1, 24)), n, 'one', host, seal, bytes
         from provost.artifact where task = 'two'",
    );
    let (is_shown, said) = diff("one");
    assert!(!is_shown && said.contains("alone"), "{said}");
    let (is_shown, said) = diff("two");
    assert!(is_shown && said.contains("+two"), "{said}");
    // Discarded changes are gone everywhere.
    let (code, said) = ask(a, &["task", "discard", "two", "--yes"]);
    assert_eq!(code, 0, "{said}");
    until("they are gone", || {
        machines.sql("select count(*) from provost.artifact where task = 'two'") == "0"
    });
    machines.check();
}

#[test]
fn a_label_says_which_machine_and_what_none_has_is_refused_or_waited_for() {
    let (machines, mut daemons) =
        machines([&builder(""), &format!("[host]\nlabels = [\"gpu\"]\n{}", builder("")), ""]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    assert_eq!(delegate(a, "at-home", "true", &[]).0, 0);
    assert_eq!(is(a, "at-home", "completed")["host"], host_of(a));
    assert_eq!(delegate(a, "labelled", "true", &["--on", "gpu"]).0, 0);
    assert_eq!(is(a, "labelled", "completed")["host"], host_of(b));
    let listed = a.command(&["task", "list"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("HOST") && [a, b].iter().all(|it| listed.contains(&host_of(it))), "{listed}");
    let shown = a.command(&["task", "show", "labelled"]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains(&host_of(b)), "{shown:?}");
    let (code, said) = delegate(a, "tpu", "true", &["--on", "tpu"]);
    assert!(code != 0 && said.to_string().contains("no host has the label tpu"), "{said}");
    // The machine with the label stops: none has both any more.
    daemons.remove(1).stop();
    until("it has taken its word back", || machines.sql("select count(*) from provost.ability") == "2");
    let (code, said) = delegate(c, "gone", "true", &["--on", "gpu"]);
    assert!(code != 0 && said.to_string().contains("no host has the label gpu"), "{said}");
    let (code, said) = delegate(c, "patient", "true", &["--on", "gpu", "--wait-for-host"]);
    assert_eq!(code, 0, "{said}");
    stays("it waits", Duration::from_secs(2), || task(c, "patient")["state"] == "queued");
    let _back = b.start();
    assert_eq!(is(c, "patient", "completed")["host"], host_of(b));
    machines.check();
}

#[test]
fn a_label_counts_once_the_configuration_is_read_again_and_places_count_after_the_next_start() {
    let (machines, mut daemons) = machines([&builder(""), &builder("")]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let labelled = |id: &str| delegate(a, id, "true", &["--on", "gpu"]);
    let (code, said) = labelled("early");
    assert!(code != 0 && said.to_string().contains("no host has the label gpu"), "{said}");
    let configured = format!("[host]\nlabels = [\"gpu\"]\n[limits]\nworkers = 7\n{}", builder(""));
    machines.configure_with(b, &configured);
    let reload = || {
        let out = at_the_terminal(b, "daemon reload");
        assert!(out.status.success(), "{out:?}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let told = reload();
    assert!(told.contains("limits.workers is read at a start, and has changed from 4 to 7"), "{told}");
    assert!(!told.contains("label"), "{told}");
    until("the label is known to the other host", || labelled("late").0 == 0);
    assert_eq!(is(a, "late", "completed")["host"], host_of(b));
    let places = || machines.sql("select body::json->>'places' from provost.ability order by 1");
    assert_eq!(places(), "4\n4");
    daemons.remove(1).stop();
    daemons.push(b.start());
    until("its places are known", || places() == "4\n7");
    machines.configure_with(b, &builder(""));
    reload();
    let with_label = "select count(*) from provost.ability where body like '%\"gpu\"%'";
    until("the label is gone", || machines.sql(with_label) == "0");
    let (code, said) = labelled("gone");
    assert!(code != 0 && said.to_string().contains("no host has the label gpu"), "{said}");
    machines.check();
}

#[test]
fn a_machine_that_lacks_the_commit_leaves_the_task_and_a_clone_with_changes_gives_none() {
    let (machines, _daemons) = machines(["", &builder("")]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    a.write("src/b.rs", "pub fn b() {}\n");
    let (code, said) = delegate(a, "changed", "true", &[]);
    assert!(code != 0 && said.to_string().contains("changes that are not committed"), "{said}");
    git(a, &["add", "."]);
    git(a, &["commit", "-q", "-m", "second"]);
    assert_eq!(delegate(a, "lacking", "cat src/b.rs", &[]).0, 0);
    let failed = is(a, "lacking", "failed");
    let why = failed["failure"]["no_host"]["why"].as_str().unwrap_or_default();
    assert!(why.contains("has not got the commit") && why.contains(&host_of(b)), "{failed}");
    assert!(counted(&machines, "task_started").is_empty());
    git(b, &["fetch", "-q", &a.repo().display().to_string(), "HEAD"]);
    // It has the commit by now, and another one checked out.
    let goal =
        "cat src/b.rs; git rev-parse HEAD; git status --porcelain -uno; git status --porcelain -uno | wc -l";
    assert_eq!(delegate(a, "fetched", goal, &[]).0, 0);
    let head = std::process::Command::new("git").args(["rev-parse", "HEAD"]).current_dir(a.repo()).output();
    let head = String::from_utf8(head.unwrap().stdout).unwrap();
    let said = is(a, "fetched", "completed").to_string();
    assert!(said.contains("pub fn b()") && said.contains(&format!("{}\\n0", head.trim())), "{said}");
    machines.check();
}

#[test]
fn a_machine_judges_by_its_own_rules_and_leaves_what_they_deny_to_others() {
    let (machines, _daemons) = machines(["", &builder(""), &builder("")]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let deny = rule("not-here", "deny", "not on this machine", &["when.action = [\"delegate\"]"]);
    b.rule(&policy([deny.clone()]));
    assert!(at_the_terminal(b, "daemon reload").status.success());
    for n in 0..4 {
        let id = format!("left-{n}");
        assert_eq!(delegate(a, &id, "true", &[]).0, 0);
        assert_eq!(is(a, &id, "completed")["host"], host_of(c));
    }
    c.rule(&policy([deny]));
    assert!(at_the_terminal(c, "daemon reload").status.success());
    assert_eq!(delegate(a, "nowhere", "true", &[]).0, 0);
    let failed = is(a, "nowhere", "failed");
    let why = failed["failure"]["no_host"]["why"].to_string();
    assert!(why.contains("not on this machine") && why.contains(&host_of(b)), "{failed}");
    assert!(why.contains(&host_of(c)), "{failed}");
    assert_eq!(counted(&machines, "task_started").len(), 4);
    machines.check();
}

#[test]
fn of_two_machines_that_could_one_takes_each_task_and_a_pool_holds_over_both() {
    let pool = "[limits]\nworkers = 3\n[pool.line]\nworkers = [\"builder\"]\nconcurrent = 2\nwaiting = 100\n";
    let both = format!("{pool}{}", builder(""));
    let (machines, _daemons) = machines(["", &both, &both]);
    let a = &machines.all[0];
    let goal = "sleep 0.3; echo done";
    let ids: Vec<String> = (0..24).map(|n| format!("many-{n:02}")).collect();
    std::thread::scope(|scope| {
        for some in ids.chunks(6) {
            scope.spawn(move || {
                some.iter().for_each(|id| assert_eq!(delegate(a, id, goal, &["--pool", "line"]).0, 0))
            });
        }
    });
    for id in &ids {
        is(a, id, "completed");
    }
    for kind in ["task_taken", "task_started", "task_finished"] {
        let found = counted(&machines, kind);
        assert!(found.len() == 24 && found.values().all(|it| *it == 1), "{kind}: {found:?}");
    }
    let sql = "select kind || ' ' || (body::json->>'host') from provost.event
               where kind in ('task_started', 'task_finished') order by seq";
    let (mut running, mut most, mut hosts) = (0_i32, 0_i32, BTreeSet::new());
    for line in machines.sql(sql).lines() {
        let (kind, host) = line.split_once(' ').unwrap();
        hosts.insert(host.to_owned());
        running += if kind == "task_started" { 1 } else { -1 };
        most = most.max(running);
    }
    assert!(most == 2, "{most} ran at once");
    assert_eq!(hosts.len(), 2, "both have worked");
    machines.check();
}

#[test]
fn tasks_that_wait_for_another_machine_begin_by_priority_with_askers_in_turn_and_after_what_they_wait_for() {
    let one = format!("[limits]\nworkers = 1\n{}", builder(""));
    let (machines, daemons) = machines(["", &one, ""]);
    let [a, _, c] = &machines.all[..] else { panic!("three") };
    // Names without proof share a turn.
    assert!(c.command(&["key", "add", "client:bob"]).output().unwrap().status.success());
    let bob = Client {
        socket: daemons[2].socket.clone(),
        ident: "client:bob".into(),
        secret: c.key_of("client:bob"),
    };
    assert_eq!(delegate(a, "first", "sleep 303.5", &["--timeout", "10m"]).0, 0);
    is(a, "first", "running");
    let by_ada = |id: &str, more: &[&str]| assert_eq!(delegate(a, id, "true", more).0, 0, "{id}");
    by_ada("low", &["--priority", "low"]);
    until("it is taken ahead", || counted(&machines, "task_taken").len() == 2);
    by_ada("lower", &["--priority", "low"]);
    by_ada("ada-1", &[]);
    by_ada("after-1", &["--after", "ada-1"]);
    by_ada("ada-2", &[]);
    by_ada("ada-3", &[]);
    let (of_bob, reply) = bob.delegate("builder", "true", json!({}));
    reply.ack();
    assert_eq!(ask(a, &["task", "cancel", "first"]).0, 0);
    for (world, id) in [(a, "after-1"), (a, "lower"), (a, "ada-3"), (c, &of_bob)] {
        is(world, id, "completed");
    }
    let begun = machines.sql("select task from provost.event where kind = 'task_started' order by seq");
    let begun: Vec<&str> = begun.lines().collect();
    let at = |id: &str| begun.iter().position(|it| *it == id).unwrap();
    assert_eq!(begun.len(), 8, "{begun:?}");
    assert!(at("lower") == 7 && at("ada-1") < at("after-1"), "{begun:?}");
    // The machine that is busy had taken one task ahead, when there was no other.
    assert_eq!(begun[..2], ["first", "low"], "{begun:?}");
    assert!(at(&of_bob) <= 3, "an asker with one task waits for one of the other's: {begun:?}");
    assert!(at("ada-1") < at("ada-2") && at("ada-2") < at("ada-3"), "by age: {begun:?}");
    machines.check();
}

#[test]
fn a_task_of_a_machine_that_dies_begins_again_on_another_by_its_rule() {
    let again = builder("retries = 2\nretry_delay = \"1s\"\nretry_lost = true");
    let (machines, mut daemons) = machines(["", &again, &again]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    assert_eq!(delegate(a, "again", "sleep 6", &["--timeout", "5m"]).0, 0);
    let first = is(a, "again", "running");
    let (dies, other) = if first["host"] == host_of(b) { (1, c) } else { (2, b) };
    let since = Instant::now();
    daemons[dies].kill();
    let done = is(a, "again", "completed");
    assert_eq!(done["host"], host_of(other), "{done}");
    assert_eq!(done["attempt"], 2, "{done}");
    assert!(since.elapsed() >= Duration::from_secs(10), "after {:?}", since.elapsed());
    assert_eq!(counted(&machines, "task_started")["again"], 2);
    assert_eq!(counted(&machines, "attempt_failed")["again"], 1);
    assert_eq!(machines.sql("select count(*) from provost.effect"), "0");
    machines.check();
}

#[test]
fn attempts_are_counted_over_machines_and_each_allows_what_its_entry_says() {
    let (machines, _daemons) = machines([
        "",
        &builder("retries = 2\nretry_delay = \"1s\""),
        &builder("retries = 2\nretry_delay = \"1s\""),
    ]);
    let a = &machines.all[0];
    // More attempts than any machine allows.
    assert_eq!(delegate(a, "more", "exit 3", &["--retries", "3"]).0, 0);
    let done = is(a, "more", "failed");
    assert!(done.to_string().contains("`retries` of worker builder is 2"), "{done}");
    assert_eq!(done["left_by"].as_array().map(Vec::len), Some(2), "{done}");
    for (id, asked, begun) in [("all", None, 3), ("one", Some("1"), 2), ("none", Some("0"), 1)] {
        let more: Vec<&str> = asked.iter().flat_map(|it| ["--retries", it]).collect();
        assert_eq!(delegate(a, id, "exit 3", &more).0, 0);
        is(a, id, "failed");
        assert_eq!(counted(&machines, "task_started").get(id), Some(&begun), "{id}");
        assert_eq!(counted(&machines, "attempt_failed").get(id).copied().unwrap_or(0), begun - 1, "{id}");
    }
    machines.check();
}

#[test]
fn attempts_are_held_against_the_entry_of_the_machine_that_can_do_the_work() {
    let with_label = format!("[host]\nlabels = [\"gpu\"]\n{}", builder("retries = 2\nretry_delay = \"1s\""));
    let (machines, _daemons) = machines([&builder(""), &with_label]);
    let a = &machines.all[0];
    // The asker's entry allows none, and its machine lacks the label.
    let (code, said) = delegate(a, "far", "exit 3", &["--on", "gpu", "--retries", "2"]);
    assert_eq!(code, 0, "{said}");
    is(a, "far", "failed");
    assert_eq!(counted(&machines, "task_started").get("far"), Some(&3));
    let (code, said) = delegate(a, "near", "exit 3", &["--retries", "2"]);
    assert!(code != 0 && said.to_string().contains("`retries` of worker builder is 0"), "{said}");
    machines.check();
}

#[test]
fn a_machine_that_is_drained_takes_nothing_more() {
    let (machines, mut daemons) = machines(["", &builder(""), &builder("")]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let (code, said) = ask(a, &["host", "drain", &host_of(b)]);
    assert_eq!(code, 0, "{said}");
    until("it has left", || !daemons[1].ended().success());
    // What a host that has left could do binds no other one.
    assert_eq!(machines.sql("select count(*) from provost.ability"), "2");
    for n in 0..3 {
        let id = format!("rest-{n}");
        assert_eq!(delegate(a, &id, "true", &[]).0, 0);
        assert_eq!(is(a, &id, "completed")["host"], host_of(c));
    }
    machines.check();
}

#[test]
fn a_task_waits_for_a_host_under_the_shipped_rules() {
    let machines = Machines::joined(2);
    for world in &machines.all {
        machines.configure_with(world, &builder(""));
        std::fs::remove_file(world.config_dir().join("policy.toml")).unwrap();
    }
    let _daemons = machines.start();
    let a = &machines.all[0];
    until("its worker is known", || delegate(a, "known", "true", &[]).0 == 0);
    let (code, said) = delegate(a, "later", "true", &["--on", "none", "--wait-for-host"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(task(a, "later")["state"], "queued");
    machines.check();
}

#[test]
fn a_running_task_is_cancelled_from_a_third_machine() {
    let (machines, _daemons) = machines(["", &builder(""), ""]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    assert_eq!(delegate(a, "long", "sleep 301.5", &["--timeout", "10m"]).0, 0);
    assert_eq!(is(a, "long", "running")["host"], host_of(b));
    until("its process is there", || runs("301.5"));
    // An agent of the same name there is another one; a person may do it anywhere.
    assert_ne!(ask(c, &["task", "cancel", "long"]).0, 0);
    let cancelled = at_the_terminal(c, "task cancel long");
    assert!(cancelled.status.success(), "{cancelled:?}");
    is(a, "long", "cancelled");
    until("its process is gone", || !runs("301.5"));
    // One that no machine has taken is cancelled as well.
    assert_eq!(delegate(a, "open", "true", &["--on", "none", "--wait-for-host"]).0, 0);
    assert!(at_the_terminal(c, "task cancel open").status.success());
    is(a, "open", "cancelled");
    until("nothing is owed", || machines.sql("select count(*) from provost.effect") == "0");
    machines.check();
}

#[test]
fn the_runs_of_a_machine_that_is_cut_off_end_before_another_begins_them_again() {
    let machines = Machines::joined(3);
    let again = builder("retries = 1\nretry_delay = \"1s\"\nretry_lost = true");
    let between = Between::at(&machines.server);
    for (n, world) in machines.all.iter().enumerate() {
        machines.configure_with(world, if n == 1 { &again } else { "" });
        world.rule(&rules());
    }
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let text = std::fs::read_to_string(b.config_dir().join("provost.toml")).unwrap();
    let by_the_way = between.database(&machines.database).url;
    b.configure(&text.replace(&*machines.database.url, &by_the_way));
    assert!(by_the_way.contains(&name_of(&machines.database)));
    let _daemons = machines.start();
    until("each has said what it can do", || machines.sql("select count(*) from provost.ability") == "3");
    assert_eq!(delegate(a, "cut", "sleep 302.5", &["--timeout", "10m"]).0, 0);
    assert_eq!(is(a, "cut", "running")["host"], host_of(b));
    until("its process is there", || runs("302.5"));
    let since = Instant::now();
    between.lose(Loses::Both);
    until("its process is gone", || !runs("302.5"));
    let took = since.elapsed();
    // It counts from the last answer, which may be one beat before the cut.
    assert!(took >= Duration::from_secs(6) && took < Duration::from_secs(15), "after {took:?}");
    assert_eq!(task(a, "cut")["state"], "running", "it is not taken for dead yet");
    until("it is to begin again", || counted(&machines, "attempt_failed").contains_key("cut"));
    assert_eq!(counted(&machines, "task_started")["cut"], 1);
    assert!(!c.log().contains("panicked"));
    assert_eq!(ask(a, &["task", "cancel", "cut"]).0, 0);
    // Each machine verifies the journal.
    between.lose(Loses::Nothing);
    machines.check();
}

#[test]
fn the_only_machine_lets_its_runs_go_on_while_the_server_is_away() {
    let (mut machines, _daemons) = machines([&builder("")]);
    assert_eq!(delegate(&machines.all[0], "alone", "sleep 17.25; echo done", &["--timeout", "10m"]).0, 0);
    is(&machines.all[0], "alone", "running");
    until("its process is there", || runs("17.25"));
    machines.server.kill();
    // A machine with others ends its runs after ten seconds.
    stays("it runs", Duration::from_secs(14), || runs("17.25"));
    machines.server.resume();
    let done = is(&machines.all[0], "alone", "completed");
    assert!(done["attempt"].is_null() || done["attempt"] == 1, "{done}");
    assert_eq!(counted(&machines, "task_started")["alone"], 1);
    machines.check();
}
