//! Workers that want too much, as those see it who have delegated to them: the limit is named, and the daemon
//! goes on answering while they are at it.

use serde_json::{Value, json};

use crate::support::rules::{allow, policy};
use crate::support::{World, eventually};

/// Both tiers are allowed, so that each hog can be tried in both.
fn rules() -> String {
    policy([allow("all", &["when.action = [\"delegate\"]", "when.cwd = [\"**\"]"])])
}

const TIERS: [&str; 2] = ["ns", "ll"];

/// A worker `greedy-<tier>` that runs Python programs, with some limits.
fn configuration(limits: &str) -> String {
    let worker = |tier: &str| {
        format!(
            "[workers.greedy-{tier}]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"-c\", \"{{goal}}\"]\n\
             parse_mode = \"text\"\ntier = \"{tier}\"\n{limits}\n"
        )
    };
    TIERS.map(worker).concat()
}

fn world(limits: &str) -> World {
    let world = World::new();
    world.rule(&rules());
    world.configure(&configuration(limits));
    world
}

/// Hogs end by themselves some time, so that a failing test does not fill the disk or the machine.
const SPINS: &str = "
import time
while time.process_time() < 60: pass
";
const WRITES_ONE: &str = "
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open('one', 'wb').write(b'x' * (5 << 20))
";
// In a folder of its own: what another hog has left there already would not be growth.
const WRITES_MANY: &str = "
import os, tempfile, time
os.chdir(tempfile.mkdtemp(dir='.'))
for i in range(200): open(f'{i}', 'wb').write(os.urandom(1 << 20))
time.sleep(60)
";
const LITTERS: &str = "
import os, tempfile, time
os.chdir(tempfile.mkdtemp(dir='.'))
for i in range(9000): open(f'{i}', 'w').close()
time.sleep(60)
";
const SLEEPS: &str = "
import time
time.sleep(60)
";
const EATS: &str = "
import os, time
for _ in range(5):
    if os.fork() == 0:
        eaten = bytearray(os.urandom(1) * (60 << 20))
        time.sleep(60)
time.sleep(60)
";
const OPENS: &str = "
import os
keep = [os.dup(0) for _ in range(90)]
";
const TALKS: &str = "
import sys
for _ in range(500): sys.stdout.write('x' * (10 << 10))
";

/// The program, what it may have, the beginning of the reason for its end, and the limits that are named.
const HOGS: [(&str, &str, &str, &[&str]); 8] = [
    (SPINS, "cpu_secs = 1", "terminated by signal: more processor time than it may, over 1 s", &["cpu_secs"]),
    (
        WRITES_ONE,
        "file_size = \"1MiB\"",
        "terminated by signal: a larger file than it may write, over 1 MiB",
        &["file_size"],
    ),
    (
        WRITES_MANY,
        "growth = \"16MiB\"",
        "worker took more space than it may: what it may change grew by more than 16 MiB",
        &["growth"],
    ),
    (
        LITTERS,
        "growth_files = 500",
        "worker took more space than it may: what it may change grew by more than 500 files",
        &["growth_files"],
    ),
    (SLEEPS, "timeout_secs = 1", "worker timed out after 1s", &["timeout"]),
    (EATS, "memory = \"160MiB\"", "worker had more memory than it may: over 160 MiB", &["memory"]),
    (OPENS, "open_files = 64", "exit code 1", &[]),
    (TALKS, "", "success", &["output"]),
];

#[test]
fn each_limit_is_named_to_the_one_who_delegated() {
    for (program, limits, reason, reached) in HOGS {
        let world = world(limits);
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        for tier in TIERS {
            let (task, reply) = client.delegate(&format!("greedy-{tier}"), program, json!({}));
            reply.ack();
            let result = client.result_of(&task);
            let metadata: &Value = &result["artifacts"]["metadata"];
            let said = metadata["exit_reason"].as_str().unwrap();
            assert!(said.starts_with(reason), "{tier}: {result:#}");
            assert_eq!(metadata["limits_reached"], json!(reached), "{tier}: {result:#}");
            assert_eq!(metadata["tier"], tier);
            assert_eq!(result["status"] == "completed", reason == "success", "{tier}: {result:#}");
        }
    }
}

/// Fills its limit, reports that, and holds it until its input says to let go.
const BOMB: &str = "
import os, signal, sys, time
def full():
    try:
        if os.fork() == 0: signal.pause()
    except BlockingIOError: return True
while not full(): pass
open('full', 'w').close()
while not os.path.exists('release'): full(); time.sleep(0.05)
sys.exit(3)
";

#[test]
fn a_daemon_with_a_fork_bomb_in_its_jail_answers_and_starts_others() {
    let world = world("processes = 50");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for tier in TIERS {
        let (bomb, reply) = client.delegate(&format!("greedy-{tier}"), BOMB, json!({}));
        reply.ack();
        let there = |name: &str| world.repo().join(name).exists();
        eventually("the bomb is full", || there("full"));
        // All of this is answered while the bomb is at its limit: it ends only after `release`.
        for _ in 0..20 {
            assert_eq!(client.task(&bomb).unwrap()["status"], "in_progress");
        }
        let (other, reply) = client.delegate("shell", "echo here I am", json!({}));
        reply.ack();
        let answer = client.result_of(&other);
        assert_eq!(answer["artifacts"]["summary"], "here I am", "{answer:#}");
        assert_eq!(client.task(&bomb).unwrap()["status"], "in_progress");
        std::fs::write(world.repo().join("release"), "").unwrap();
        let result = client.result_of(&bomb);
        assert_eq!(result["artifacts"]["metadata"]["exit_code"], 3, "{tier}: {result:#}");
        for name in ["full", "release"] {
            std::fs::remove_file(world.repo().join(name)).unwrap();
        }
    }
}
