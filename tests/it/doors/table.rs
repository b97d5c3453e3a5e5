//! The table of doors: a running daemon does what each row says, and tells its clients the same.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};

use provost::base::{At, Door, LoopbackAt};
use serde_json::Value;

use crate::support::World;

fn json(world: &World, args: &[&str]) -> Value {
    let output = world.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The addresses that `provost status` shows, by door.
fn addresses(world: &World) -> BTreeMap<String, String> {
    let status = json(world, &["status", "--json"]);
    let doors = status["doors"].as_array().unwrap_or_else(|| panic!("{status}"));
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    doors.iter().map(|it| (text(&it["door"]), text(&it["address"]))).collect()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn over_loopback() -> Vec<(Door, &'static LoopbackAt)> {
    Door::over_loopback().collect()
}

/// Settings that open every door over loopback but one.
fn all_open_but(shut: Option<Door>) -> String {
    let section = |door: Door| format!("[{}]\nenabled = {}\n", door.name(), Some(door) != shut);
    over_loopback().iter().map(|(door, _)| section(*door)).collect()
}

#[test]
fn each_row_has_a_name_of_its_own_in_every_place_where_doors_are_told_apart() {
    let mut names: Vec<&str> = Door::ALL.iter().map(|door| door.name()).collect();
    // What is on record and in rules is the name.
    for door in Door::ALL {
        assert_eq!(serde_json::to_value(door).unwrap(), door.name());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Door::ALL.len());
    let ports: BTreeMap<u16, &str> =
        over_loopback().iter().map(|(door, at)| (at.port, door.name())).collect();
    assert_eq!(ports.len(), over_loopback().len(), "two doors have one default port: {ports:?}");
    for door in Door::ALL.iter().filter(|door| door.row().at == At::Nowhere) {
        assert!(Door::ENTRANCES.iter().all(|(_, other)| other != door));
        assert_eq!(door.row().unproved, None, "no caller speaks for the daemon itself");
    }
}

#[test]
fn each_door_over_loopback_is_opened_at_its_port_and_told_to_clients() {
    let world = World::new();
    world.configure(&all_open_but(None));
    let wanted: BTreeMap<Door, u16> = over_loopback().iter().map(|(door, _)| (*door, free_port())).collect();
    let mut up = world.command(&["up", "--foreground"]);
    up.envs(over_loopback().iter().map(|(door, at)| (at.port_variable, wanted[door].to_string())));
    let daemon = world.start_as(up);
    let (shown, told) = (addresses(&world), json(&world, &["env", "--json"]));
    for (door, at) in over_loopback() {
        let port = wanted[&door];
        TcpStream::connect(("127.0.0.1", port)).unwrap_or_else(|err| panic!("{}: {err}", door.name()));
        assert!(shown[door.name()].contains(&format!(":{port}")), "{shown:?}");
        for (variable, _) in door.row().variables {
            assert_eq!(told[variable], at.address(port), "{}", door.name());
        }
    }
    // The doors at sockets have their addresses there, too.
    for (variable, _) in Door::Devit.row().variables {
        assert_eq!(told[variable], shown[Door::Devit.name()].as_str());
    }
    daemon.stop();
}

#[test]
fn each_door_over_loopback_is_shut_by_its_own_section_and_no_other() {
    for (shut, _) in over_loopback() {
        let world = World::new();
        world.configure(&all_open_but(Some(shut)));
        let daemon = world.start();
        let (shown, told) = (addresses(&world), json(&world, &["env", "--json"]));
        for (door, _) in over_loopback() {
            assert_eq!(shown.contains_key(door.name()), door != shut, "{shown:?}");
            for (variable, _) in door.row().variables {
                assert_eq!(told.get(variable).is_some(), door != shut, "{told}");
            }
        }
        daemon.stop();
    }
}
