//! The texts about passkeys at the command line.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::authenticator::Kind;
use crate::support::passkeys::{enrolled, world_by};
use crate::support::terminal::at_the_terminal;

fn said(world: &World, args: &[&str]) -> String {
    let output = world.command(args).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn rules_that_only_a_passkey_can_answer_are_pointed_out_while_there_is_none() {
    let (world, daemon) = world_by("\"passkey\"");
    let missing = "lets only a passkey answer, and none is enrolled";
    for args in [&["policy", "check"][..], &["policy", "explain"], &["doctor"]] {
        let text = said(&world, args);
        assert!(text.contains(missing) && text.contains("provost passkey add"), "{args:?}: {text}");
    }
    let _key = enrolled(&world, Kind::Es256);
    for args in [&["policy", "check"][..], &["policy", "explain"], &["doctor"]] {
        let text = said(&world, args);
        assert!(!text.contains(missing), "{args:?}: {text}");
    }
    assert!(said(&world, &["doctor"]).contains("provost passkey install"));
    daemon.stop();
}

#[test]
fn passkeys_are_listed_for_people_and_for_programs() {
    let (world, daemon) = world_by("\"passkey\"");
    assert!(said(&world, &["passkey", "list"]).contains("there are no passkeys"));
    let _key = enrolled(&world, Kind::Ed25519);
    let text = said(&world, &["passkey", "list"]);
    assert!(
        text.contains("phone") && text.contains("Ed25519") && text.contains("stays on its device"),
        "{text}"
    );
    let listed: Value = serde_json::from_str(&said(&world, &["passkey", "list", "--json"])).unwrap();
    assert_eq!(
        (&listed["passkeys"][0]["name"], &listed["problem"]),
        (&json!("phone"), &Value::Null),
        "{listed}"
    );
    assert_eq!(listed["passkeys"][0]["key"]["kty"], "OKP");
    let added =
        String::from_utf8_lossy(&at_the_terminal(&world, "passkey add --even-so").stdout).into_owned();
    assert!(added.contains("has to sign for the new one"), "{added}");
    assert!(added.contains("http://provost.localhost:4720/passkeys"), "{added}");
    daemon.stop();
}

#[test]
fn a_command_about_passkeys_that_cannot_be_carried_out_says_what_to_do() {
    let (world, daemon) = world_by("\"passkey\"");
    for (args, expected) in [
        (&["passkey", "add"][..], "a terminal of your own"),
        (&["passkey", "revoke", "phone"], "a terminal of your own"),
        (&["passkey", "reset", "--yes"], "a terminal of your own"),
        (&["passkey", "reset"], "--yes"),
        (&["passkey", "install", "--from", "nothing.toml", "phone"], "nothing.toml"),
    ] {
        let output = world.command(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "{args:?}: {text}");
    }
    let unknown = at_the_terminal(&world, "passkey revoke nobody");
    assert!(String::from_utf8_lossy(&unknown.stdout).contains("there is no such passkey"), "{unknown:?}");
    daemon.stop();
}
