//! Ports that another process has: named, and never silently replaced if the configuration names them.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::support::World;
use crate::support::loopback_client::Http;
use crate::support::waits::within;

/// A command in a repository of this world, with the ports that a user gets who has written none down.
fn command(world: &World, at: &Path, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.current_dir(at);
    for name in ["PROVOST_AGENT_PROTOCOL_PORT", "PROVOST_BROKER_PORT"] {
        command.env_remove(name);
    }
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn taken() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A world whose broker has this port written down, and whose other door is shut.
fn world_with(port: u16) -> World {
    let world = World::new();
    world.configure(&format!("[agent_protocol]\nenabled = false\n[broker]\nport = {port}\n"));
    world
}

fn status(world: &World) -> Value {
    let output = world.command(&["status", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {output:?}"))
}

#[test]
fn a_port_that_is_taken_is_named_with_the_process_that_has_it_and_what_to_do() {
    let (_listener, port) = taken();
    let world = world_with(port);
    let output = world.command(&["up"]).output().unwrap();
    let said = said(&output);
    assert!(!output.status.success());
    for word in [
        &format!("port {port} is taken by process {}", std::process::id()),
        "--auto-ports",
        "[broker]",
        "`enabled = false`",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!world.command(&["status"]).output().unwrap().status.success(), "nothing runs");
}

#[test]
fn whoever_asks_for_any_port_gets_one_and_is_told_which() {
    let (_listener, port) = taken();
    let world = world_with(port);
    let output = world.command(&["up", "--auto-ports"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let other = Http::broker(&world).port;
    assert_ne!(other, port);
    assert!(said(&output).contains(&format!("listening at port {other} instead")), "{}", said(&output));
    assert!(said(&output).contains(&format!("http://127.0.0.1:{other}")), "{}", said(&output));
    let env = world.command(&["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&env.stdout).unwrap();
    assert_eq!(env["GIT_PAW_BROKER_URL"], format!("http://127.0.0.1:{other}"));
    assert!(env["AGENT_PROTOCOL_URL"].is_null(), "that door is shut");
    let doors = status(&world)["doors"].clone();
    assert!(doors.as_array().unwrap().iter().all(|it| it["door"] != "agent_protocol"), "{doors}");
    assert!(world.command(&["down"]).status().unwrap().success());
}

#[test]
fn a_usual_port_that_is_taken_is_replaced_and_that_is_said_once() {
    let world = World::new();
    // Where it cannot be had, somebody else has it, which is as good, unless that is another test that gives
    // it up.
    let mut listener = TcpListener::bind("127.0.0.1:9119");
    within(Duration::from_secs(20), || {
        if listener.is_err() {
            listener = TcpListener::bind("127.0.0.1:9119");
        }
        listener.is_ok()
    });
    let up = command(&world, &world.repo(), &["up"]).output().unwrap();
    assert!(up.status.success(), "{}", said(&up));
    let other = Http::broker(&world).port;
    assert!(said(&up).contains("port 9119 is taken by"), "{}", said(&up));
    assert!(said(&up).contains(&format!("listening at port {other} instead")), "{}", said(&up));
    for later in [&["up"][..], &["status"], &["daemon", "reload"], &["doctor"]] {
        let later = command(&world, &world.repo(), later).output().unwrap();
        assert!(!said(&later).contains("instead"), "{}", said(&later));
    }
    assert!(command(&world, &world.repo(), &["down"]).status().unwrap().success());
    // A command that starts one itself tells it, too.
    let list = command(&world, &world.repo(), &["token", "list"]).output().unwrap();
    assert!(said(&list).contains("port 9119 is taken by"), "{}", said(&list));
    assert!(command(&world, &world.repo(), &["down"]).status().unwrap().success());
}

#[test]
fn a_daemon_that_a_command_starts_does_without_a_port_that_is_written_down_and_taken() {
    let (listener, port) = taken();
    let world = world_with(port);
    assert!(world.command(&["token", "list"]).status().unwrap().success(), "it starts all the same");
    let before = status(&world);
    assert!(before["notes"].to_string().contains(&format!("port {port} is taken by process")), "{before}");
    assert!(before["doors"].as_array().unwrap().iter().all(|it| it["door"] != "broker"), "{before}");
    assert!(world.command(&["down"]).status().unwrap().success());
    drop(listener);
    assert!(world.command(&["token", "list"]).status().unwrap().success());
    assert_eq!(Http::broker(&world).port, port);
    assert!(world.command(&["down"]).status().unwrap().success());
}

#[test]
fn a_second_repository_gets_other_ports_and_is_told_whose_the_usual_ones_are() {
    let world = World::new();
    let second = world.path("second");
    std::fs::create_dir(&second).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).arg(&second).status().unwrap().success());
    // Elsewhere on this machine, somebody may have the usual ports for a moment.
    let has_both = || {
        assert!(command(&world, &world.repo(), &["up"]).status().unwrap().success());
        let doors = status(&world)["doors"].to_string();
        let both = doors.contains(":4700") && doors.contains(":9119");
        assert!(both || command(&world, &world.repo(), &["down"]).status().unwrap().success());
        both
    };
    assert!(within(Duration::from_secs(60), has_both), "somebody else has the usual ports");
    let up = command(&world, &second, &["up"]).output().unwrap();
    assert!(up.status.success(), "{}", said(&up));
    let holder = world.repo().canonicalize().unwrap();
    for (door, port) in [("agent_protocol", 4700), ("broker", 9119)] {
        let note = format!("{door}: port {port} is taken by the daemon of {}", holder.display());
        assert!(said(&up).contains(&note), "{note}: {}", said(&up));
    }
    let env = command(&world, &second, &["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&env.stdout).unwrap();
    assert_ne!(env["GIT_PAW_BROKER_URL"], "http://127.0.0.1:9119");
    for at in [&world.repo(), &second] {
        assert!(command(&world, at, &["down"]).status().unwrap().success());
    }
}

#[test]
fn a_port_that_agent_protocol_or_git_paw_has_written_down_is_the_doors_once_it_is_allowed() {
    let world = World::new();
    let repo = world.repo();
    // Free a moment ago; somebody else may have them by now.
    let mut tries = std::iter::repeat_with(|| {
        let wanted = [taken(), taken()].map(|(_listener, port)| port);
        let paw = format!("[broker]\nenabled = true\nport = {}\n", wanted[1]);
        world.put(&repo.join(".git-paw/config.toml"), &paw);
        let settings = serde_json::json!({ "version": "0.1", "port": wanted[0] });
        world.put(&repo.join(".agent-protocol/config.json"), &settings.to_string());
        for file in [".git-paw/config.toml", ".agent-protocol/config.json"] {
            assert!(command(&world, &repo, &["config", "allow", file, "--yes"]).status().unwrap().success());
        }
        let up = command(&world, &repo, &["up"]).output().unwrap();
        (up.status.success(), wanted, said(&up))
    });
    let started = tries.by_ref().take(5).find(|(started, ..)| *started);
    let (_, wanted, words) = started.unwrap_or_else(|| panic!("{}", tries.next().unwrap().2));
    assert_eq!([Http::agent_protocol(&world).port, Http::broker(&world).port], wanted, "{words}");
    // Clients that read these files, and those that ask, find the same.
    let env = command(&world, &repo, &["env", "--json"]).output().unwrap();
    let env: Value = serde_json::from_slice(&env.stdout).unwrap();
    assert_eq!(env["GIT_PAW_BROKER_URL"], format!("http://127.0.0.1:{}", wanted[1]));
    assert!(command(&world, &repo, &["down"]).status().unwrap().success());

    // Somebody has it: nobody is led to another port by a file that says this one.
    let _taken = TcpListener::bind(("127.0.0.1", wanted[1])).unwrap();
    let up = command(&world, &repo, &["up"]).output().unwrap();
    assert!(!up.status.success(), "{}", said(&up));
    assert!(said(&up).contains(&format!("port {} is taken", wanted[1])), "{}", said(&up));
}
