//! Started the way DevIt's clients start their daemon: `--socket A --secret S`, in the foreground.

use std::process::Stdio;

use serde_json::json;

use crate::support::{Client, Reply, World, eventually};

const SECRET: &str = "an-argv-secret-of-some-length";

fn client_at(socket: &std::path::Path, secret: &str) -> Client {
    Client { socket: socket.to_owned(), ident: "devit-cli:4242".into(), secret: secret.into() }
}

#[test]
fn the_given_address_takes_the_given_secret_and_no_other_does() {
    let world = World::new();
    let at = world.path("devitd.sock");
    let daemon = world.start_with(&["--socket", at.to_str().unwrap(), "--secret", SECRET]);
    eventually("the second address", || at.exists());
    client_at(&at, SECRET).say("REGISTER", json!({ "caps": [], "version": "devit-cli/0.1.0" })).ack();
    assert!(matches!(client_at(&at, &world.secret()).say("POLL", json!({})), Reply::Reset(_)));
    let default = client_at(&daemon.socket, SECRET);
    assert!(matches!(default.say("POLL", json!({})), Reply::Reset(_)), "it counts for its own door only");
    assert_eq!(world.client(&daemon, "devit-cli:4242").say("POLL", json!({})), Reply::Nothing);
    // An agent with a key of its own has it at every address.
    let approver =
        Client { ident: "client:approver".into(), ..client_at(&at, &world.key_of("client:approver")) };
    assert_eq!(approver.say("POLL", json!({})), Reply::Nothing);
    daemon.stop();
    assert!(!at.exists(), "a daemon that stops takes its sockets along");
}

#[test]
fn a_running_daemon_is_handed_the_address_with_its_secret() {
    let world = World::new();
    let daemon = world.start();
    let at = world.path("second.sock");
    let mut second = world
        .command(&["--socket", at.to_str().unwrap(), "--secret", SECRET])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the second address", || at.exists());
    assert_eq!(client_at(&at, SECRET).say("POLL", json!({})), Reply::Nothing);
    let (task, reply) = client_at(&at, SECRET).delegate("shell", "echo one core behind both", json!({}));
    reply.ack();
    let shown = world.client(&daemon, "anybody").task(&task);
    assert!(shown.is_some(), "both addresses lead to the same tasks");
    assert!(
        second.try_wait().unwrap().is_none(),
        "it stays, since its starter takes an early end for a failure"
    );
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn default_and_empty_secrets_are_refused() {
    let world = World::new();
    let at = world.path("devitd.sock");
    for secret in ["", "change-me", "change-me-in-production"] {
        let out = world.command(&["--socket", at.to_str().unwrap(), "--secret", secret]).output().unwrap();
        assert!(!out.status.success(), "'{secret}' was accepted");
        assert!(!out.stderr.is_empty() && !at.exists());
    }
}

#[test]
fn an_address_longer_than_a_socket_name_works_and_a_file_is_left_alone() {
    let world = World::new();
    let deep = world.path(&"d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let at = deep.join("devitd.sock");
    let daemon = world.start_with(&["--socket", at.to_str().unwrap(), "--secret", SECRET]);
    eventually("the long address", || at.exists());
    daemon.stop();
    let file = world.path("precious.txt");
    std::fs::write(&file, "keep me").unwrap();
    let out = world.command(&["--socket", file.to_str().unwrap(), "--secret", SECRET]).output().unwrap();
    assert!(!out.status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "keep me");
}

#[test]
fn a_log_that_no_person_looks_at_has_no_colours() {
    let world = World::new();
    let daemon = world.start();
    daemon.stop();
    let log = world.log();
    assert!(log.contains("door open") && !log.contains('\u{1b}'), "{log}");
}
