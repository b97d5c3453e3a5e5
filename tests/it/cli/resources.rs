//! Resources from the command line: locks, commands that run with them, free ports, and git's index, with
//! real processes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::commands::said;
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually};

fn world() -> World {
    let world = World::new();
    world.configure("[coordination]\nresources = { gpu = 2 }\n");
    world
}

/// `provost with`, in the background.
fn with(world: &World, agent: &str, resources: &[&str], line: &str) -> Child {
    let args = [&["with"], resources, &["--", "sh", "-c", line]].concat();
    let mut command = world.command(&args);
    command.env("PROVOST_AGENT", agent).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_wait_says_for_what_and_who_has_it_without_a_terminal_too() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "@db:test"]);
    let mut waits = with(&world, "b", &["@db:test"], "true");
    let mut line = String::new();
    BufReader::new(waits.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for @db:test, which a has\n");
    world.done("a", &["unlock", "@db:test"]);
    assert!(waits.wait().unwrap().success());
}

/// A free port, as the system knows one.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_resource_is_one_agents_in_the_list_with_everything_else_and_the_other_hears_whose() {
    let world = world();
    world.write("@db", "a file\n");
    let _daemon = world.start();
    let taken = world.done("a", &["lock", "acquire", "@DB:test", "--reason", "migration"]);
    assert_eq!((&taken["lock"]["symbol"], &taken["warnings"]), (&json!("@db:test"), &json!([])));
    let (code, no) = world.ask("b", &["lock", "@db:test"]);
    assert_eq!(
        (code, &no["data"]["holder"], &no["data"]["symbol"]),
        (5, &json!("a"), &json!("@db:test")),
        "{no}"
    );
    assert_eq!(no["data"]["reason"], "migration");
    // A file of that name is another thing, and is written as one.
    let file = world.done("b", &["lock", "./@db:test"]);
    assert_eq!(file["lock"]["symbol"], "./@db:test");
    world.done("b", &["lock", "@gpu:2"]);
    assert_eq!(world.locked(), ["@db:test", "./@db:test", "@gpu:2"]);
    let (code, no) = world.ask("c", &["lock", "@gpu", "--wait", "50ms"]);
    assert_eq!((code, &no["data"]["holder"]), (5, &json!("b")), "{no}");
    for name in ["@gpu:3", "@gpu:0", "@gpu:4294967296"] {
        let (code, no) = world.ask("c", &["lock", name]);
        assert_eq!((code, &no["data"]["count"]), (4, &json!(2)), "{name}: {no}");
    }
    // Two in a circle, one with a resource and one with a symbol.
    world.done("c", &["lock", "src/auth.ts:login"]);
    let waits = world.begin("c", &["lock", "@db:test", "--wait", "1m"]);
    eventually("c waits", || world.waiting() == ["c"]);
    let (code, no) = world.ask("a", &["lock", "src/auth.ts:login", "--wait", "1m"]);
    assert_eq!((code, &no["data"]["cycle"]), (5, &json!(["a", "c"])), "{no}");
    world.done("a", &["unlock", "@db:test"]);
    assert_eq!(said(&waits.wait_with_output().unwrap()).0, 0);
    // Published protocols have symbols alone.
    assert_eq!(world.ask("c", &["unlock", "@gpu"]).0, 1);
    assert_eq!(world.done("b", &["unlock", "@gpu"])["symbol"], "@gpu:2");
}

#[test]
fn names_of_the_hostile_are_refused_with_a_next_step_and_lock_nothing() {
    let world = world();
    let _daemon = world.start();
    let long = format!("@db:{}", "x".repeat(10_000));
    for name in [
        "@",
        "@:x",
        "@db:",
        "@db:a\u{202E}b",
        "@db:t\u{0435}st",
        "@db:\u{1b}[2J",
        "@port:0",
        "@port:x",
        &long,
    ] {
        let (code, no) = world.ask("a", &["lock", name]);
        assert_eq!(code, 2, "{name}: {no}");
        let text = no.to_string();
        assert!(
            text.len() < 2_000 && !text.contains(['\u{1b}', '\u{202E}']) && no["try"].is_string(),
            "{text}"
        );
        assert_eq!(world.by("a", &["with", name, "--", "true"]).output().unwrap().status.code(), Some(2));
    }
    // The API itself says no as well, whoever speaks it.
    let deaf = world.done("a", &["lock", "list"]);
    assert_eq!((&deaf["locks"], &deaf["waiting"]), (&json!([]), &json!([])));
}

#[test]
fn a_command_runs_with_its_resource_and_its_end_is_the_ends() {
    let world = world();
    let _daemon = world.start();
    let ended = |line: &str| with(&world, "a", &["@db:test"], line).wait_with_output().unwrap();
    let done = ended("echo in; echo out >&2; exit 7");
    assert_eq!((done.status.code(), &*done.stdout), (Some(7), b"in\n".as_slice()), "{done:?}");
    assert!(world.locked().is_empty(), "it is free as soon as the command has ended");
    assert_eq!(ended("kill -9 $$").status.code(), Some(137));
    assert_eq!(ended("kill -TERM $$").status.code(), Some(143));
    let missing = world.by("a", &["with", "@db:test", "--", "no-such-program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
    let folder = world.by("a", &["with", "@db:test", "--", "/"]).output().unwrap();
    assert_eq!(folder.status.code(), Some(126), "{folder:?}");
    assert!(world.locked().is_empty());
    assert_eq!(world.by("a", &["with", "@db:test"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn signals_reach_the_command_and_it_has_its_resource_until_it_ends() {
    let world = world();
    let _daemon = world.start();
    let line =
        "trap 'echo told > told; rm -f up' TERM; touch up; while [ -e up ]; do sleep 0.05; done; exit 3";
    let running = with(&world, "a", &["@db:test"], line);
    eventually("it is up", || world.repo().join("up").exists());
    assert_eq!(world.locked(), ["@db:test"]);
    signal(&running, Signal::TERM);
    let done = running.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    assert!(world.repo().join("told").exists());
    assert!(world.locked().is_empty());
}

#[test]
fn a_lease_is_renewed_while_the_command_runs_and_no_longer() {
    let world = world();
    let _daemon = world.start();
    let running =
        with(&world, "a", &["@db:test", "--ttl", "1s"], "touch up; while [ -e up ]; do sleep 0.05; done");
    eventually("it is up", || world.repo().join("up").exists());
    let lock = || world.done("x", &["lock", "list"])["locks"][0].clone();
    let first = lock();
    // Renewed twice, it has outlived the lease that it was given.
    let is_later = |than: &Value| {
        let now = lock();
        now["fence"] == first["fence"] && now["until"].as_str() > than["until"].as_str()
    };
    eventually("it is renewed", || is_later(&first));
    let second = lock();
    eventually("it is renewed again", || is_later(&second));
    fs::remove_file(world.repo().join("up")).unwrap();
    assert_eq!(running.wait_with_output().unwrap().status.code(), Some(0));
    assert!(world.locked().is_empty());
}

#[test]
fn who_is_killed_leaves_neither_the_resource_nor_the_command_behind() {
    let world = world();
    let _daemon = world.start();
    let mut running = with(&world, "a", &["@db:test"], "echo $$ > pid; exec sleep 1000");
    let pid = world.repo().join("pid");
    eventually("it runs", || fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n')));
    let number: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    signal(&running, Signal::KILL);
    assert_eq!(running.wait().unwrap().signal(), Some(9));
    eventually("the resource is free", || world.locked().is_empty());
    if cfg!(target_os = "linux") {
        eventually("the command has ended", || !fs::exists(format!("/proc/{number}")).unwrap());
    }
}

#[test]
fn two_commands_of_one_agent_take_turns_and_one_within_the_other_goes_on() {
    let world = world();
    let _daemon = world.start();
    let first = with(&world, "a", &["@db:test"], "touch up; while [ -e up ]; do sleep 0.05; done");
    eventually("it is up", || world.repo().join("up").exists());
    let now = |agent: &str, names: &[&str]| {
        let args = [&["--json", "with", "--now"], names, &["--", "true"]].concat();
        said(&world.command(&args).env("PROVOST_AGENT", agent).output().unwrap())
    };
    let (code, no) = now("a", &["@db:test"]);
    assert_eq!((code, &no["data"]["holder"]), (5, &json!("a")), "{no}");
    let second = with(&world, "a", &["@db:test"], "echo second");
    eventually("the second one waits", || world.waiting() == ["a"]);
    fs::remove_file(world.repo().join("up")).unwrap();
    assert_eq!(second.wait_with_output().unwrap().stdout, b"second\n");
    assert!(first.wait_with_output().unwrap().status.success());
    // Several are taken in one order, however they are named, and nothing is kept by who does not get all.
    let both = |names: [&str; 2]| with(&world, "b", &names, "true");
    let all: Vec<_> =
        [["@x", "@y"], ["@y", "@x"], ["@x", "@y"], ["@y", "@x"]].map(both).into_iter().collect();
    for it in all {
        assert!(it.wait_with_output().unwrap().status.success());
    }
    world.done("c", &["lock", "@y"]);
    assert_eq!(now("b", &["@x", "@y"]).0, 5);
    assert_eq!(world.locked(), ["@y"]);
    // What a command above has by the same name is not waited for; the rest is.
    let within = format!("{} with @x @z -- echo within", crate::support::provost().display());
    let done = with(&world, "d", &["@x"], &format!("{within} && {within}")).wait_with_output().unwrap();
    assert_eq!(done.stdout, b"within\nwithin\n", "{done:?}");
    assert_eq!(world.locked(), ["@y"]);
}

#[test]
fn a_port_of_a_range_is_free_held_and_printed_and_each_caller_gets_another_one() {
    let world = world();
    let _daemon = world.start();
    let first = free_port().min(60_000);
    let range = format!("{first}-{}", first + 40);
    let port = |agent: &str| -> u16 {
        let done = world.command(&["port", &range]).env("PROVOST_AGENT", agent).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().parse().unwrap()
    };
    let (one, two, three) = (port("a"), port("a"), port("b"));
    assert!(one < two && two < three, "{one} {two} {three}");
    let mut held: Vec<String> = [one, two, three].map(|it| format!("@port:{it}")).into();
    assert_eq!(world.locked(), held);
    // Where a program listens, nobody is sent.
    let listens = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let used = listens.local_addr().unwrap().port();
    let (code, no) = world.ask("a", &["port", &format!("{used}-{used}")]);
    assert_eq!(code, 5, "{no}");
    // By its name it can be had all the same, and what is there is said.
    let taken = world.done("a", &["lock", &format!("@port:{used}")]);
    assert_eq!(taken["warnings"][0]["kind"], "port_in_use", "{taken}");
    drop(listens);
    held.push(format!("@port:{used}"));
    assert_eq!(world.locked(), held);
    for range in ["0-10", "10-5", "x", "1-65536", "", "3000-", "-1"] {
        assert_eq!(
            world.by("a", &["lock", "port", "--", range]).output().unwrap().status.code(),
            Some(2),
            "{range}"
        );
    }
}

#[test]
fn many_at_once_get_a_port_each() {
    let world = world();
    let _daemon = world.start();
    let first = free_port().min(60_000);
    let range = format!("{first}-{}", first + 200);
    let asked: Vec<Child> =
        (0..6).map(|it| world.begin(&format!("n{}", it % 2), &["port", &range])).collect();
    let mut ports: Vec<String> = asked
        .into_iter()
        .map(|it| said(&it.wait_with_output().unwrap()).1["lock"]["symbol"].as_str().unwrap().to_owned())
        .collect();
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 6);
}

/// `git commit`, by an agent.
fn commit(world: &World, agent: &str, at: &std::path::Path) -> Command {
    let like = world.by(agent, &[]);
    let mut git = Command::new("git");
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    git.args(who).args(["commit", "-q", "--allow-empty", "-m", "one"]).current_dir(at).env_clear();
    git.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    git
}

#[test]
fn git_s_index_is_held_for_a_commit_and_each_work_tree_has_its_own() {
    let world = world();
    world.write("a.txt", "a\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    world.done("a", &["git", "install"]);
    // An editor that waits: a commit under way holds the index, and what it waits for sees that.
    let repo = world.repo();
    let mut slow = commit(&world, "a", &repo);
    slow.args(["-e"]).env("GIT_EDITOR", "sh -c 'touch up; while [ -e up ]; do sleep 0.05; done; true'");
    let slow = slow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a commit is under way", || world.repo().join("up").exists());
    assert_eq!(world.locked(), ["@git:index"]);
    let refused = commit(&world, "b", &repo).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("index of this work tree is a's"), "{why}");
    // The index of another work tree is another one.
    let there = commit(&world, "b", &tree).output().unwrap();
    assert!(there.status.success(), "{there:?}");
    fs::remove_file(world.repo().join("up")).unwrap();
    let slow = slow.wait_with_output().unwrap();
    assert!(slow.status.success(), "{slow:?}");
    assert!(world.locked().is_empty(), "{:?}", world.locked());
    assert!(commit(&world, "b", &repo).output().unwrap().status.success());
    // Within what holds it already, a commit waits for nobody: its own agent, and below its process.
    world.done("b", &["lock", "@git:index"]);
    assert!(commit(&world, "b", &repo).output().unwrap().status.success());
    assert_eq!(world.locked(), ["@git:index"], "what an agent has asked for itself stays");
    world.done("b", &["unlock", "@git:index"]);
    let line = "git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m x";
    let within =
        with(&world, "a", &["@git:index"], &format!("PROVOST_AGENT=c {line}")).wait_with_output().unwrap();
    assert!(within.status.success(), "{within:?}");
    assert!(world.locked().is_empty());
    // A commit that is given up gives the index back with its process.
    let mut given_up = commit(&world, "a", &repo);
    given_up.args(["-e"]).env("GIT_EDITOR", "false");
    assert!(!given_up.output().unwrap().status.success());
    eventually("it is free", || world.locked().is_empty());
}

/// A line that runs `provost with` below another one, and waits a second at most.
fn within(before: &str, names: &str) -> String {
    format!("{before} {} with {names} --wait 1s -- echo within", crate::support::provost().display())
}

#[test]
fn a_command_within_another_one_takes_nothing_again_that_is_held_above_it() {
    let world = world();
    world.write("a.txt", "a\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    let ran = |agent: &str, resources: &[&str], line: &str, at: &std::path::Path| {
        let args = [&["with"], resources, &["--", "sh", "-c", line]].concat();
        let mut command = world.command(&args);
        let done = command.env("PROVOST_AGENT", agent).current_dir(at).output().unwrap();
        assert_eq!(
            (done.status.code(), &*done.stdout),
            (Some(0), b"within\n".as_slice()),
            "{line}: {done:?}"
        );
        assert!(world.locked().is_empty());
    };
    let repo = world.repo();
    ran("a", &["@git:index"], &within("", "@git:index"), &repo);
    // In a linked work tree its name has the tree's behind it.
    ran("a", &["@git:index"], &within("", "@git:index"), &tree);
    // Fewer of a counted kind than are held above, and as many under another number.
    ran("a", &["@gpu:2"], &within("", "@gpu"), &repo);
    ran("a", &["@gpu:2"], &within("", "@gpu:02"), &repo);
    // More: what is lacking is taken beside it.
    ran("a", &["@gpu"], &within("", "@gpu:2"), &repo);
    // Another name below.
    ran("bob", &["@y"], &within("PROVOST_AGENT=eve", "@y"), &repo);
}

#[test]
fn a_wait_that_nobody_limits_is_ten_minutes_and_the_help_says_so() {
    let world = world();
    let _daemon = world.start();
    let help = world.command(&["with", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("by default ten minutes"), "{help:?}");
    world.done("a", &["lock", "@db:test"]);
    let mut waits = with(&world, "b", &["@db:test"], "true");
    eventually("b waits", || world.waiting() == ["b"]);
    let wait = world.done("x", &["lock", "list"])["waiting"][0].clone();
    let minute = |name: &str| -> i64 {
        let text = wait[name].as_str().unwrap();
        let part = |from: usize| text[from..from + 2].parse::<i64>().unwrap();
        part(11) * 60 + part(14)
    };
    let waited = (minute("until") - minute("since")).rem_euclid(24 * 60);
    // A week later it would be the same time of day.
    assert!((9..=11).contains(&waited), "{wait}");
    world.done("a", &["unlock", "@db:test"]);
    assert!(waits.wait().unwrap().success());
}

#[test]
fn what_was_locked_before_its_kind_was_counted_is_released_by_its_name() {
    let world = World::new();
    let mut daemon = world.start();
    world.done("a", &["lock", "@gpu:0"]);
    daemon.kill();
    world.configure("[coordination]\nresources = { gpu = 2 }\n");
    let _daemon = world.start();
    world.done("b", &["lock", "@gpu"]);
    assert_eq!(world.done("a", &["unlock", "@gpu:0"])["symbol"], "@gpu:0");
    assert_eq!(world.locked(), ["@gpu"]);
}

#[test]
fn a_refused_commit_names_the_way_out_that_frees_the_index() {
    let world = World::new();
    world.write("a.txt", "a\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    world.done("a", &["git", "install"]);
    for at in [world.repo(), tree] {
        let mut lock = world.by("a", &["lock", "@git:index"]);
        let lock = said(&lock.current_dir(&at).output().unwrap()).1;
        let name = lock["lock"]["symbol"].as_str().unwrap().to_owned();
        let refused = commit(&world, "b", &at).output().unwrap();
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        let way_out = format!("provost lock release {name} --force");
        assert!(!refused.status.success() && why.contains(&way_out), "{why}");
        assert!(why.find(&way_out) < why.find("--no-verify"), "{why}");
        // It is a person's to do.
        let freed = at_the_terminal(&world, &format!("lock release {name} --force"));
        assert!(freed.status.success(), "{freed:?}");
        assert!(commit(&world, "b", &at).output().unwrap().status.success());
    }
}
