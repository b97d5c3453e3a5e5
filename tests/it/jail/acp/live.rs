//! The reports of an agent while it works: each door shows its plan and the changes of its calls before its run ends, in words, and
//! a flood of them delays no other agent.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::steering::{at_work, begun, in_place, over, said, shown, sign};
use super::{answer, as_an_agent, entry, started};
use crate::support::a6s_client::Socket;
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::processes::resident;
use crate::support::rules::{allow, policy};
use crate::support::waits::until_some;
use crate::support::{Daemon, World};

/// The most memory that the daemon may take for the output of agents, in kilobytes.
const GROWTH_KB_MAX: u64 = 96 << 10;

/// How long a command may take beside a flood, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(10);

/// The agent's reports, before it waits.
const TOLD: &str = "plan look at it | change it\nchange a.txt two|three";

/// The same as people are to see it, in this order.
const SEEN: [&str; 6] = [
    "- [in_progress] look at it",
    "- [in_progress] change it",
    "* Change a.txt",
    "a.txt: 1 line becomes 2",
    "- one",
    "+ three",
];

/// Whether all of it is there, in order, and in words.
fn is_seen(text: &str) -> bool {
    let mut rest = text;
    let all = SEEN.iter().all(|it| match rest.split_once(it) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    });
    all && !text.contains("sessionUpdate")
}

/// The task is under way: what was seen was seen before its end.
#[track_caller]
fn goes_on(world: &World) {
    assert_eq!(shown(world, "t1")["state"], "running");
}

/// An agent in place, whose run ends by itself where what is waited for does not come.
fn bounded() -> (World, Daemon) {
    started("", "copy = false\ntimeout_secs = 120", &[allow("every", &["when.action = [\"permission\"]"])])
}

/// Watches a task by a command until all of it was seen, and lets the agent go on to its end.
#[track_caller]
fn is_watched(world: &World, mut command: Command) {
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut out, mut text) = (BufReader::new(watching.stdout.take().unwrap()), String::new());
    while !is_seen(&text) && out.read_line(&mut text).unwrap() > 0 {}
    assert!(is_seen(&text), "{text}");
    goes_on(world);
    sign(world);
    assert!(watching.wait().unwrap().success());
    assert!(answer(&over(world, "t1")).contains("end"));
}

#[test]
fn its_plan_and_changes_are_seen_while_it_works_by_who_delegates_and_who_looks_on() {
    let goal = format!("{TOLD}\nuntil-file go\nsay end");
    let (world, _daemon) = bounded();
    is_watched(&world, world.command(&["delegate", &goal, "--worker", "coder", "--task", "t1", "--wait"]));
    let (world, _daemon) = bounded();
    begun(&world, "t1", &goal);
    is_watched(&world, world.command(&["task", "show", "t1", "--wait"]));
}

/// An entry of the other kind, in a copy: what is shown is the same.
#[test]
fn its_plan_and_changes_are_seen_while_it_works_where_its_entry_is_an_agents() {
    let (world, _daemon) = as_an_agent();
    begun(&world, "t1", &format!("{TOLD}\nuntil-cancel"));
    let mut watching = world.command(&["task", "show", "t1", "--wait"]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut text = String::new();
    let mut out = BufReader::new(watching.stdout.take().unwrap());
    while !is_seen(&text) && out.read_line(&mut text).unwrap() > 0 {}
    assert!(is_seen(&text) && text.contains("changes a.txt: "), "{text}");
    goes_on(&world);
    said(&world, "t1", "say end", &["--now"]);
    assert!(watching.wait().unwrap().success());
}

#[test]
fn its_plan_and_changes_are_seen_while_it_works_by_the_hosts_of_other_models() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", &format!("{TOLD}\nuntil-file go\nsay end"));
    let mut host = Host::old(&world, "looker");
    let (mut text, mut cursor) = (String::new(), json!(0));
    until_some("the host is shown it", || {
        let page = host.does("task_output", json!({ "task_id": "t1", "cursor": cursor, "max_wait_s": 5 }));
        text += page["text"].as_str().unwrap();
        cursor = page["cursor"].clone();
        is_seen(&text).then_some(())
    });
    goes_on(&world);
    sign(&world);
    // What comes later is told where it was left, and nothing twice.
    until_some("the end", || {
        let page = host.does("task_output", json!({ "task_id": "t1", "cursor": cursor, "max_wait_s": 5 }));
        text += page["text"].as_str().unwrap();
        cursor = page["cursor"].clone();
        (page["is_over"] == true).then_some(())
    });
    assert!(text.contains("end") && text.matches("* Change a.txt").count() == 1, "{text}");
    assert!(host.fails("task_output", json!({ "task_id": "t1", "cursor": 1_000_000 })).contains("cursor"));
}

/// A page of a task's output by the own API.
fn page(world: &World, from: u64, more: &str) -> (String, u64, bool) {
    let (status, page) = own(world, ("GET", &format!("/output?id=t1&from={from}{more}")), &[], &Value::Null);
    assert_eq!(status, 200, "{page}");
    let chunks = page["chunks"].as_array().unwrap();
    let text = chunks.iter().map(|it| it["text"].as_str().unwrap()).collect();
    (text, page["next"].as_u64().unwrap(), page["done"] == true)
}

#[test]
fn its_plan_and_changes_are_seen_while_it_works_by_the_own_api_in_words_and_to_the_letter() {
    let (world, _daemon) = in_place("");
    begun(&world, "t1", &format!("{TOLD}\nuntil-file go\nsay end"));
    let (mut text, mut from) = (String::new(), 0);
    until_some("it is told", || {
        let (more, next, _) = page(&world, from, "&wait_ms=5000&in_words=true");
        (text, from) = (format!("{text}{more}"), next);
        is_seen(&text).then_some(())
    });
    goes_on(&world);
    let (letters, ..) = page(&world, 0, "");
    for it in [r#""sessionUpdate":"plan""#, r#""newText":"two\nthree\n""#, r#""oldText":"one\n""#] {
        assert!(letters.contains(it), "{it}: {letters}");
    }
    // However small the pages are, each message is in one, whole and once.
    let (mut small, mut at) = (String::new(), 0);
    while at < from {
        let (more, next, _) = page(&world, at, "&in_words=true&limit=1");
        assert!(next > at, "{small}");
        (small, at) = (format!("{small}{more}"), next);
    }
    assert_eq!(small, text);
    sign(&world);
    over(&world, "t1");
    let (mut rest, mut done) = (String::new(), false);
    while !done {
        let (more, next, is_done) = page(&world, from, "&wait_ms=5000&in_words=true");
        (rest, from, done) = (format!("{rest}{more}"), next, is_done);
    }
    assert_eq!(rest, "end\n", "nothing is told twice");
    assert_eq!(page(&world, from + 1_000, "&in_words=true").1, from, "behind its end there is none of it");
}

/// A daemon whose door is open, with an agent that works in a copy.
fn open(door: &str) -> (World, Daemon) {
    let world = World::new();
    world.configure(&format!("[{door}]\nenabled = true\n{}", entry(&world, "coder", "", "")));
    world.rule(&policy([allow("every", &["when.action = [\"delegate\", \"permission\"]"])]));
    let daemon = world.start();
    (world, daemon)
}

#[test]
fn its_plan_and_changes_are_seen_while_it_works_by_the_editor_that_has_started_it() {
    let (world, _daemon) = open("a6s");
    let mut editor = Socket::open(Http::a6s(&world));
    editor.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let launch = json!({ "agentType": "coder", "task": format!("{TOLD}\nuntil-cancel") });
    let begun = editor.result("background.launch", &launch);
    let id = begun["taskId"].as_str().unwrap().to_owned();
    until_some("the editor is shown it", || {
        let output = editor.result("background.output", &json!({ "taskId": id }));
        is_seen(output.as_str().unwrap()).then_some(())
    });
    let task = format!("job_{}", id.rsplit('_').next().unwrap());
    assert_eq!(shown(&world, &task)["state"], "running");
    editor.result("background.say", &json!({ "taskId": id, "text": "say end", "now": true }));
    assert_eq!(over(&world, &task)["state"], "completed");
}

#[test]
fn its_plan_and_changes_are_seen_while_it_works_on_the_page() {
    let (world, _daemon) = open("web");
    begun(&world, "t1", &format!("{TOLD}\nuntil-cancel"));
    at_work(&world, "t1");
    let browser = Browser::start();
    let door = Http::web(&world);
    let tab = browser.open(&format!("http://provost.localhost:{}/t/t1", door.port));
    let seen = until_some("the page shows it", || Some(tab.text()).filter(|it| is_seen(it)));
    assert!(seen.contains("changes a.txt: "), "{seen}");
    goes_on(&world);
    said(&world, "t1", "say end", &["--now"]);
    assert_eq!(over(&world, "t1")["state"], "completed");
    tab.shows("completed");
}

#[test]
fn an_agent_that_floods_its_updates_delays_no_other_and_leaves_no_memory_behind() {
    let (world, daemon) = in_place("");
    let before = resident(daemon.pid());
    // Sixty megabytes in pieces of a kilobyte.
    begun(&world, "t1", "flood 60000\nuntil-file go\nsay end");
    at_work(&world, "t1");
    let mut slowest = Duration::ZERO;
    for round in 0..10 {
        let began = Instant::now();
        world.done("ada", &["task", "list"]);
        world.done("ada", &["lock", &format!("a{round}.txt")]);
        slowest = slowest.max(began.elapsed());
    }
    let other = world.command(&["delegate", "true", "--worker", "shell", "--wait"]).output().unwrap();
    assert!(other.status.success(), "{other:?}");
    sign(&world);
    let task = over(&world, "t1");
    assert_eq!(task["state"], "completed", "{task:#}");
    let grown = resident(daemon.pid()).saturating_sub(before);
    eprintln!("the slowest command took {slowest:?}, and the daemon grew by {grown} kB");
    assert!(slowest < SOON, "{slowest:?}");
    assert!(grown < GROWTH_KB_MAX, "{grown} kB");
}
