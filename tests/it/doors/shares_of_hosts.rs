//! Shared resources, requested as a host of agents and as an editor: a tree of processes has one share of them at all
//! doors together, under all of its names and with tokens that it has had made for itself.

use std::process::{Command, Stdio};

use serde_json::Value;

use provost::base::limits::{
    CLAIMS_OF_ONE_MAX, CONTRACTS_OF_ONE_MAX, INTENTS_OF_ONE_MAX, JOBS_OF_ONE_MAX, LOCKS_OF_ONE_MAX,
    PARKED_OF_ONE_MAX, TRANSFERS_OF_ONE_MAX,
};

use crate::support::loopback_client::Http;
use crate::support::{Daemon, World, apart, provost};

const FILL: &str = include_str!("../fixtures/shares/hosts.py");

/// Agents may have tokens made, and delegations wait for a person.
const RULES: &str = "version = 1\ndefault = \"deny\"\n\
    [[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n\
    [[rule]]\nid = \"a\"\ndecision = \"approve\"\nreason = \"a\"\nwhen.action = [\"delegate\", \"apply\"]\napprove.by = [\"human\"]\n";

/// How much one tree of processes gets, in one session or at a terminal of its own; the first no; and the no
/// with a token.
fn run(world: &World, args: &[&str], at_a_terminal: bool) -> (usize, u64, Value, Value) {
    let program = world.path("hosts.py");
    std::fs::write(&program, FILL).unwrap();
    let line = format!("python3 {} {}", program.display(), args.join(" "));
    // With the environment in which commands find the daemon.
    let mut command = world.command(&[]);
    let known: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(Into::into))).collect();
    command = Command::new(if at_a_terminal { "script" } else { "sh" });
    match at_a_terminal {
        true => command.args(["-qec", &line, "/dev/null"]),
        false => command.args(["-c", &line]),
    };
    let known =
        known.into_iter().filter_map(|(name, value): (_, Option<std::ffi::OsString>)| Some((name, value?)));
    command.env_clear().envs(known).current_dir(world.repo()).stdin(Stdio::null());
    let ended = apart(&command);
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let said: Value = serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text} {ended:?}"));
    let taken = usize::try_from(said["taken"].as_u64().unwrap()).unwrap();
    (taken, said["status"].as_u64().unwrap(), said["said"].clone(), said["again"].clone())
}

/// One tree takes its share and no more, and a person at a terminal has a share of their own.
fn has_one_share(world: &World, way: &str, kind: &str, most: usize) {
    let address = match way {
        "http" => Http::mcp(world).port.to_string(),
        "stdio" => provost().display().to_string(),
        _ => Http::a6s(world).port.to_string(),
    };
    let (own, limit) = (world.own_socket().display().to_string(), most.to_string());
    let args = [way, kind, &own, &address, &limit];
    let (taken, status, said, again) = run(world, &args, false);
    assert_eq!((taken, status), (most, 409), "{kind}: {said}");
    let is_told = |said: &Value| {
        let said = said.to_string();
        said.contains("under all their names") || said.contains("under all names of its processes")
    };
    assert!(is_told(&said), "{kind}: {said}");
    // A token that it has had made for itself is no other share.
    assert!(again.is_null() || (again[0] == 409 && is_told(&again[1])), "{kind}: {again}");
    let alone: Vec<&str> = args.into_iter().chain(["alone"]).collect();
    let (taken, status, said, _) = run(world, &alone, true);
    assert_eq!((taken, status), (1, 0), "{kind}: {said}");
}

fn started() -> (World, Daemon) {
    let world = World::new();
    world.rule(RULES);
    world.configure("[mcp]\ntools = [\"all\"]\n");
    let code: String =
        (0..=CONTRACTS_OF_ONE_MAX + 7).map(|n| format!("export function f{n}() {{}}\n")).collect();
    world.write("src/a.ts", &code);
    let daemon = world.start();
    (world, daemon)
}

#[test]
fn hosts_over_http_do_not_fill_the_queue_of_approvals_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "http", "approval", PARKED_OF_ONE_MAX);
}

#[test]
fn hosts_over_standard_input_do_not_fill_the_queue_of_approvals_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "stdio", "approval", PARKED_OF_ONE_MAX);
}

#[test]
fn hosts_over_http_do_not_take_all_locks_and_claims_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "http", "lock", LOCKS_OF_ONE_MAX);
    has_one_share(&world, "http", "claim", CLAIMS_OF_ONE_MAX);
}

#[test]
fn hosts_over_http_do_not_have_all_intents_contracts_and_handoffs_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "http", "intent", INTENTS_OF_ONE_MAX);
    has_one_share(&world, "http", "contract", CONTRACTS_OF_ONE_MAX);
    has_one_share(&world, "http", "handoff", TRANSFERS_OF_ONE_MAX);
}

#[test]
fn hosts_over_standard_input_do_not_take_all_locks_and_claims_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "stdio", "lock", LOCKS_OF_ONE_MAX);
    has_one_share(&world, "stdio", "claim", CLAIMS_OF_ONE_MAX);
}

#[test]
fn hosts_over_standard_input_do_not_have_all_intents_contracts_and_handoffs_under_many_names() {
    let (world, _daemon) = started();
    has_one_share(&world, "stdio", "intent", INTENTS_OF_ONE_MAX);
    has_one_share(&world, "stdio", "contract", CONTRACTS_OF_ONE_MAX);
    has_one_share(&world, "stdio", "handoff", TRANSFERS_OF_ONE_MAX);
}

#[test]
fn editors_on_many_connections_do_not_have_all_jobs() {
    let world = World::new();
    world.configure("[a6s]\nenabled = true\n[limits]\nworkers = 1\n");
    world.rule(
        &RULES
            .replace("[\"delegate\", \"apply\"]", "[\"apply\"]")
            .replace("[\"token\"]", "[\"token\", \"delegate\"]"),
    );
    let _daemon = world.start();
    has_one_share(&world, "a6s", "job", JOBS_OF_ONE_MAX);
}

#[test]
fn editors_on_many_connections_do_not_fill_the_queue_of_applies() {
    let world = World::new();
    world.configure("[a6s]\nenabled = true\napply_wait = \"28s\"\n");
    world.rule(RULES);
    let _daemon = world.start();
    has_one_share(&world, "a6s", "apply", PARKED_OF_ONE_MAX);
}
