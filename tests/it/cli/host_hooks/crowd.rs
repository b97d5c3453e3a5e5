//! A thousand sessions of Claude Code at one daemon; each writes by its hook: each has its own, is kept from another
//! one's, and gives back what it had, in bounded time.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::served::{Host, served, world};
use crate::support::host_hooks::recorded;
use crate::support::processes::resident;
use crate::support::{World, eventually};

/// Sessions in all, and the hosts' processes that send their hooks.
const SESSIONS: usize = 1_000;
const HOSTS: usize = 10;
const OF_EACH: usize = SESSIONS / HOSTS;

/// Functions of one file.
const IN_A_FILE: usize = 20;

/// How long all of them may take to write once, on a machine that has much else to do.
const ALL_WITHIN: Duration = Duration::from_secs(180);

/// How much the daemon may grow for all of them, in kilobytes.
const GROWTH_KB_MAX: u64 = 128 << 10;

fn file_of(number: usize) -> String {
    format!("src/part{}.ts", number / IN_A_FILE)
}

fn function(number: usize) -> String {
    format!("export function f{number}(a: number): number {{ return a }}")
}

/// Returns the message of a session's host about a write to the function with this number.
fn write(world: &World, session: usize, number: usize) -> Value {
    let mut told = recorded(world, "claude/edit");
    told["session_id"] = json!(session_id(session));
    told["tool_input"]["file_path"] = json!(world.repo().join(file_of(number)));
    told["tool_input"]["old_string"] = json!(function(number));
    told["tool_input"]["new_string"] = json!(function(number).replace("return a", "return a + 1"));
    told
}

fn session_id(session: usize) -> String {
    format!("5f0c9b1e-7a52-4c1d-9d0e-{session:012}")
}

fn agent_of(session: usize) -> String {
    format!("claude-{session:012}")
}

fn with_functions() -> World {
    let world = world("");
    for first in (0..SESSIONS).step_by(IN_A_FILE) {
        let all: Vec<String> = (first..first + IN_A_FILE).map(function).collect();
        world.write(&file_of(first), &(all.join("\n\n") + "\n"));
    }
    world
}

/// The longest of some times, and how long all took.
fn slowest(took: &[Duration]) -> Duration {
    took.iter().copied().max().unwrap_or_default()
}

#[test]
fn a_thousand_sessions_write_by_their_hooks_and_each_has_its_own() {
    let world = with_functions();
    let daemon = world.start();
    served(&world, &[]);
    let before = resident(daemon.pid());
    let (turn, began) = (Barrier::new(HOSTS), Instant::now());
    let of_host = |at: usize| {
        let mut host = Host::start(&world, &[]);
        let mine = at * OF_EACH..(at + 1) * OF_EACH;
        let mut took = Vec::new();
        for number in mine.clone() {
            let began = Instant::now();
            assert_eq!(host.objection(&write(&world, number, number)), None, "{number}");
            took.push(began.elapsed());
        }
        turn.wait();
        let all = began.elapsed();
        for number in mine.clone() {
            // Of another host's session, in another file, and of the neighbour in the same one.
            let next = if number % 2 == 0 { number + 1 } else { (number + OF_EACH) % SESSIONS };
            let began = Instant::now();
            let why = host
                .objection(&write(&world, number, next))
                .unwrap_or_else(|| panic!("{number} wrote {next}"));
            took.push(began.elapsed());
            for words in [&format!("f{next}"), &agent_of(next), &format!("you are {}", agent_of(number))] {
                assert!(why.contains(words.as_str()), "{words}: {why}");
            }
        }
        turn.wait();
        (host, took, all)
    };
    let (of_host, world_of_all) = (&of_host, &world);
    let hosts: Vec<(Host, Vec<Duration>, Duration)> = thread::scope(|scope| {
        let all: Vec<_> = (0..HOSTS).map(|at| scope.spawn(move || of_host(at))).collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let all = hosts.iter().map(|it| it.2).max().unwrap();
    let took: Vec<Duration> = hosts.iter().flat_map(|it| it.1.clone()).collect();
    let grown = resident(daemon.pid()).saturating_sub(before);
    eprintln!("all within {all:?}, the slowest in {:?}, {grown} kB", slowest(&took));
    assert!(all < ALL_WITHIN, "{all:?}");
    assert!(grown < GROWTH_KB_MAX, "{grown} kB");
    let held = || world_of_all.locked().len();
    assert_eq!(held(), SESSIONS);
    // A quarter of them end by themselves, and what the others have ends with their hosts' processes.
    let mut hosts: Vec<Host> = hosts.into_iter().map(|it| it.0).collect();
    let ended = SESSIONS / 4;
    for session in 0..ended {
        let mut over = recorded(&world, "claude/session_end");
        over["session_id"] = json!(session_id(session));
        assert_eq!(hosts[session / OF_EACH].call("SessionEnd", &over), Value::Null);
    }
    assert_eq!(held(), SESSIONS - ended);
    hosts.clear();
    eventually("what the hosts had is free", || held() == 0);
}
