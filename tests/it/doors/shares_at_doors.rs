//! Shared resources, requested through real sockets by one process under three hundred names: the door refuses it in
//! its own form, and another process still gets through.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use provost::base::limits::{
    AGENTS_OF_ONE_MAX, ASSIGNMENTS_OF_ONE_MAX, CLAIMS_OF_ONE_MAX, CONTRACTS_OF_ONE_MAX, INTENTS_OF_ONE_MAX,
    LOCKS_OF_ONE_MAX, MEMBERS_OF_ONE_MAX, POST_AGENTS_OF_ONE_MAX, TRANSFERS_OF_ONE_MAX,
};

use crate::support::loopback_client::Http;
use crate::support::wit_client::{Wit, world};
use crate::support::{World, apart};

const FILL: &str = include_str!("../fixtures/shares/fill.py");

/// Runs the program in a tree of processes of its own, or at a terminal of its own; what it got, and what it
/// was told then.
fn run(world: &World, args: &[&str], at_a_terminal: bool) -> (usize, u64, Value) {
    let program = world.path("fill.py");
    std::fs::write(&program, FILL).unwrap();
    let line = format!("python3 {} {}", program.display(), args.join(" "));
    let mut command = Command::new(if at_a_terminal { "script" } else { "sh" });
    match at_a_terminal {
        true => command.args(["-qec", &line, "/dev/null"]),
        false => command.args(["-c", &line]),
    };
    command.current_dir(world.repo()).stdin(Stdio::null()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let ended = apart(&command);
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let said: Value = serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text} {ended:?}"));
    let taken = usize::try_from(said["taken"].as_u64().unwrap()).unwrap();
    (taken, said["status"].as_u64().unwrap(), said["said"].clone())
}

fn fill(world: &World, kind: &str, address: &str) -> (usize, u64, Value) {
    run(world, &[kind, address], false)
}

fn of(socket: &Path) -> String {
    socket.to_str().unwrap().to_owned()
}

/// Somebody at a terminal has a share of their own.
fn others_get_through(world: &World, kind: &str, address: &str) {
    let (taken, status, said) = run(world, &[kind, address, "1"], true);
    assert_eq!((taken, status), (1, 0), "{kind}: {said}");
}

#[test]
fn one_process_under_many_names_does_not_take_all_locks_and_intents_at_the_own_api() {
    let world = world();
    let _daemon = world.start();
    let address = of(&world.own_socket());
    for (kind, most) in [("own-lock", LOCKS_OF_ONE_MAX), ("own-intent", INTENTS_OF_ONE_MAX)] {
        let (taken, status, said) = fill(&world, kind, &address);
        assert!(taken <= most && taken > most - 300, "{kind}: {taken}");
        assert_eq!((status, &said["error"]), (429, &json!("quota")), "{kind}: {said}");
        assert!(said["message"].as_str().unwrap().contains("under all their names"), "{said}");
        others_get_through(&world, kind, &address);
    }
}

#[test]
fn one_process_under_many_names_does_not_take_all_locks_at_the_wit_door() {
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    crate::support::eventually("the wit door", || wit.socket.exists() && wit.answers());
    let (taken, _, said) = fill(&world, "wit-lock", &of(&wit.socket));
    assert!(taken <= LOCKS_OF_ONE_MAX && taken > LOCKS_OF_ONE_MAX - 300, "{taken}: {said}");
    assert!(said["error"].to_string().contains("under all their names"), "{said}");
    others_get_through(&world, "wit-lock", &of(&wit.socket));
}

#[test]
fn one_process_under_many_names_does_not_claim_all_files_at_the_door_of_agent_protocol() {
    let world = World::new();
    let _daemon = world.start();
    let port = Http::agent_protocol(&world).port.to_string();
    let (taken, status, said) = fill(&world, "claim", &port);
    assert_eq!((taken, status), (CLAIMS_OF_ONE_MAX, 503), "{said}");
    assert!(said["error"].as_str().unwrap().contains("under all their names"), "{said}");
    others_get_through(&world, "claim", &port);
}

#[test]
fn one_process_under_many_names_does_not_make_all_tasks_and_handoffs() {
    let world = World::new();
    let _daemon = world.start();
    let port = Http::agent_protocol(&world).port.to_string();
    for (kind, most) in [("task", ASSIGNMENTS_OF_ONE_MAX), ("handoff", TRANSFERS_OF_ONE_MAX)] {
        let (taken, status, said) = fill(&world, kind, &port);
        assert_eq!((taken, status), (most, 503), "{kind}: {said}");
        assert!(said["error"].as_str().unwrap().contains("under all their names"), "{said}");
        others_get_through(&world, kind, &port);
    }
}

#[test]
fn one_process_under_many_names_does_not_register_all_sessions_at_the_wit_door() {
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    crate::support::eventually("the wit door", || wit.socket.exists() && wit.answers());
    let (taken, _, said) = fill(&world, "wit-name", &of(&wit.socket));
    assert_eq!(taken, AGENTS_OF_ONE_MAX, "{said}");
    assert!(said["error"].to_string().contains("under all their names"), "{said}");
    others_get_through(&world, "wit-name", &of(&wit.socket));
}

#[test]
fn one_process_under_many_names_does_not_fill_the_crew_with_them() {
    let world = World::new();
    let _daemon = world.start();
    let port = Http::agent_protocol(&world).port.to_string();
    let (taken, status, said) = fill(&world, "member", &port);
    assert_eq!((taken, status), (MEMBERS_OF_ONE_MAX, 503), "{said}");
    assert!(said["error"].as_str().unwrap().contains("under all their names"), "{said}");
    others_get_through(&world, "member", &port);
}

#[test]
fn one_process_under_many_names_does_not_have_all_contracts() {
    let world = world();
    let code: String = (0..=CONTRACTS_OF_ONE_MAX).map(|n| format!("export function f{n}() {{}}\n")).collect();
    std::fs::create_dir(world.repo().join("src")).unwrap();
    std::fs::write(world.repo().join("src/a.ts"), code).unwrap();
    let _daemon = world.start();
    let address = of(&world.own_socket());
    let (taken, status, said) = fill(&world, "own-contract", &address);
    assert_eq!((taken, status), (CONTRACTS_OF_ONE_MAX, 429), "{said}");
    assert!(said["message"].as_str().unwrap().contains("under all their names"), "{said}");
    others_get_through(&world, "own-contract", &address);
}

#[test]
fn one_process_under_many_names_does_not_fill_the_broker_door_with_them() {
    let world = World::new();
    let _daemon = world.start();
    let port = Http::broker(&world).port.to_string();
    let (taken, status, said) = fill(&world, "name", &port);
    assert_eq!((taken, status), (POST_AGENTS_OF_ONE_MAX, 503), "{said}");
    assert!(said["error"].as_str().unwrap().contains("under all their names"), "{said}");
    others_get_through(&world, "name", &port);
}
