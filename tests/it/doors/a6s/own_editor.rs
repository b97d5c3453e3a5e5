//! An editor that its person has given a token for applies: what it has written needs no second yes. Without
//! one, a connection is a process of the user's, and waits.

use std::time::Duration;

use serde_json::json;

use crate::support::World;
use crate::support::a6s_artifacts::{APPLY, Editor, desk, file, made};
use crate::support::a6s_client::{Socket, handshake};
use crate::support::desk::Desk;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::terminal::{at_a_hosts_terminal, at_the_terminal};

/// An editor that shows this token.
fn editor(desk: &Desk, token: &str) -> Socket {
    let door = Http::a6s(&desk.world);
    let request = handshake(door.port).replace("GET /ws", &format!("GET /ws?token={token}"));
    let (socket, head) = Socket::with_head(door, request.as_bytes());
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn token_in(said: &str) -> Option<String> {
    said.split_whitespace().find(|it| it.starts_with("pvst_")).map(str::to_owned)
}

fn minted(world: &World, scopes: &str) -> String {
    let minted = at_the_terminal(world, &format!("token mint editor --scopes {scopes}"));
    token_in(&String::from_utf8(minted.stdout).unwrap()).expect("a token")
}

const USUAL: &str = "read,join,coordinate,delegate";

#[test]
fn an_editor_with_a_persons_token_for_applies_writes_at_once_and_every_other_waits() {
    let desk = desk("", "apply_wait = \"1s\"\n", "");
    desk.put("a.txt", "old\n");
    let own_token = minted(&desk.world, &format!("{USUAL},apply"));
    let mut mine = editor(&desk, &own_token);
    let artifacts = made(&mut mine, "DO write a.txt new\\n");
    let mut usual = editor(&desk, &minted(&desk.world, USUAL));
    let waits = Editor::Neovim.answer(&mut usual, APPLY, &artifacts)["error"].to_string();
    assert!(waits.contains("Waits for approval"), "{waits}");
    assert_eq!(desk.text("a.txt"), "old\n");
    assert_eq!(Editor::Neovim.result(&mut mine, APPLY, &artifacts)["applied"], 1);
    assert_eq!(desk.text("a.txt"), "new\n");
    // What a rule denies, and what is never written, stays so.
    let refused = Editor::Neovim.answer(&mut mine, APPLY, &[file(".git/hooks/pre-commit", "x")]);
    assert!(refused["error"].is_string(), "{refused}");
    // The yes ends with the token.
    let revoked = at_the_terminal(&desk.world, "token revoke --of editor");
    assert!(revoked.status.success(), "{revoked:?}");
    let mut bare = Socket::open(Http::a6s(&desk.world));
    bare.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let waits = Editor::Neovim.answer(&mut bare, APPLY, &[file("b.txt", "x")])["error"].to_string();
    assert!(waits.contains("Waits for approval"), "{waits}");
}

#[test]
fn a_rule_that_denies_applies_denies_them_to_the_bearer_too() {
    let desk = desk("version = 1\ndefault = \"deny\"\n", "", "");
    let mut mine = editor(&desk, &minted(&desk.world, &format!("{USUAL},apply")));
    let denied = Editor::Neovim.answer(&mut mine, APPLY, &[file("a.txt", "x")])["error"].to_string();
    assert!(denied.contains("Denied by rule"), "{denied}");
    assert!(!desk.at("a.txt").exists());
}

#[test]
fn no_agent_makes_itself_such_a_token() {
    let tokens = "version = 1\n[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n";
    let desk = desk(tokens, "", "");
    let world = &desk.world;
    let wanted = json!({ "agent": "evil", "scopes": ["read", "apply"] });
    // Under its own name, and without one, as which a process is the user's.
    for headers in [&[("x-provost-agent", "evil")][..], &[]] {
        let (status, answer) = own(world, ("POST", "/mint-token"), headers, &wanted);
        assert_eq!(status, 403, "{answer}");
        assert_eq!(answer["data"]["needs"], "apply", "{answer}");
    }
    let lines =
        "provost lock --as m README.md\nprovost token mint evil --scopes read,apply\necho \"ended: $?\"";
    let said = at_a_hosts_terminal(world, lines);
    assert!(said.contains("ended: 4") && token_in(&said).is_none(), "{said}");
    // The bearer hands it on to nobody.
    let token = minted(world, &format!("{USUAL},apply"));
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let (status, answer) =
        own(world, ("POST", "/mint-token"), &headers, &json!({ "agent": "editor", "scopes": ["apply"] }));
    assert_eq!(status, 403, "{answer}");
}
