//! An agent that floods its updates: no other agent is delayed, and the daemon does not grow.

use std::time::{Duration, Instant};

use super::steering::{at_work, begun, in_place, over, sign};
use crate::support::processes::resident;

/// What the daemon may keep of what agents say, and more, in kilobytes.
const GROWTH_KB_MAX: u64 = 96 << 10;

/// How long a command may take beside a flood, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(10);

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
