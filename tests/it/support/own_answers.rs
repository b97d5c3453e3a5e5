//! An agent that has asked, and would answer for itself.

use serde_json::{Value, json};

use crate::support::rules::{approvers, ask as asking, policy};
use crate::support::{Client, Daemon, World};

/// An approver with a key, or a person, has the last word.
pub(crate) fn asked() -> String {
    policy([
        asking("\"human\", \"client:approver\"", &["when.action = [\"delegate\", \"permission\"]"]),
        approvers(),
    ])
}

pub(crate) fn world() -> (World, Daemon) {
    let world = World::new();
    world.rule(&asked());
    let daemon = world.start();
    (world, daemon)
}

/// Asks, and says which approval waits.
pub(crate) fn ask(client: &Client) -> String {
    let (_, reply) = client.delegate("shell", "true", json!({}));
    reply.ack()["approval_id"].as_str().unwrap().to_owned()
}

/// The same of an answer's text.
pub(crate) fn is_refused_for_its_place(text: &str) -> bool {
    text.contains("the session that the answer comes from") && text.contains("another terminal")
}

pub(crate) fn waiting(world: &World) -> usize {
    let output = world.command(&["approval", "list", "--json"]).output().unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    all.len()
}
