//! The page for people: who is let in to it, and what a browser shows of it.

mod gate;
mod page;

use serde_json::json;

use crate::support::loopback_client::Http;
use crate::support::rules::ASK;
use crate::support::{Daemon, World};

/// The configuration that opens the door .
const OPEN: &str = "[web]\nenabled = true\n";

/// A world whose page is open, and where who delegates waits for a person.
fn open_world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ASK);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Has an agent delegate something that waits for a person.
fn ask(world: &World, daemon: &Daemon, goal: &str) {
    let (_, reply) = world.client(daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
}
