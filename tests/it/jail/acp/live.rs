//! What an agent tells while it works: its plan and what its calls change are seen at once, and a flood of it delays no other agent.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::answer;
use super::steering::{at_work, begun, in_place, over, sign};
use crate::support::mcp_host::Host;
use crate::support::processes::resident;
use crate::support::waits::until_some;

/// What the daemon may keep of what agents say, and more, in kilobytes.
const GROWTH_KB_MAX: u64 = 96 << 10;

/// How long a command may take beside a flood, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn its_plan_and_what_its_calls_change_are_shown_while_it_works() {
    let (world, _daemon) = in_place("");
    let goal = "plan look at it | change it\nchange a.txt two|three\nusage 0.25\nuntil-file go\nsay end";
    let mut command = world.command(&["delegate", goal, "--worker", "coder", "--task", "t1", "--wait"]);
    let mut waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stdout.take().unwrap()).lines();
    let wanted = ["- [in_progress] look at it", "- [in_progress] change it", "* Change a.txt", "changes "];
    for wanted in wanted {
        let line = lines.find(|it| it.as_ref().is_ok_and(|it| it.contains(wanted)));
        assert!(line.is_some(), "{wanted}: it works on");
    }
    // Another agent's host is shown the same while the turn goes on.
    let mut host = Host::old(&world, "looker");
    let said = until_some("the host is shown it", || {
        let said = host.call("task_output", json!({ "task_id": "t1" })).to_string();
        said.contains("a.txt").then_some(said)
    });
    for words in ["look at it", "Change a.txt", "1 line becomes 2"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    sign(&world);
    assert!(waiting.wait().unwrap().success());
    assert!(answer(&over(&world, "t1")).contains("end"));
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
