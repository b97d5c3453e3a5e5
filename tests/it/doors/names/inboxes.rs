//! Inboxes by name: different names have different inboxes at every door.

use serde_json::{Value, json};

use super::{is_kept_out, ok, open_world, own, said};
use crate::support::World;
use crate::support::a6s_client::OPEN;
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::tokens::mint;

/// Names that have no ASCII letters, or the same ones.
const FOREIGN: [&str; 9] = [
    "\u{592a}\u{90ce}",
    "\u{82b1}\u{5b50}",
    "---",
    "!!",
    "\u{2026}",
    "\u{1f916}",
    "feat-\u{1f47e}",
    "feat/\u{65e5}\u{672c}",
    "feat",
];

#[test]
fn names_without_letters_of_ascii_have_each_an_inbox_and_tokens_of_their_own() {
    let world = World::new();
    let _daemon = world.start();
    let as_name = |name: &str, route: (&str, &str), body: Value| {
        own(&world, route, &[("x-provost-agent", name)], &body)
    };
    for name in FOREIGN.into_iter().chain(["agent"]) {
        let letter = json!({ "to": name, "kind": "message", "text": format!("for {name} alone") });
        assert_eq!(as_name("friend", ("POST", "/send-message"), letter).0, 200, "{name}");
    }
    let texts = |name: &str| {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert_eq!(read.0, 200, "{name}: {read:?}");
        let entries = read.1["entries"].as_array().unwrap().clone();
        entries.iter().filter_map(|it| Some(it["text"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    for name in FOREIGN.into_iter().chain(["agent"]) {
        assert_eq!(texts(name), [format!("for {name} alone")], "{name}");
    }
    // A token keeps its own name alone, in all its spellings.
    mint(&world, "\u{c9}lan");
    mint(&world, "\u{592a}\u{90ce}");
    for name in ["\u{c9}lan", "\u{e9}LAN", "\u{592a}\u{90ce}", "\u{592a}\u{90ce}!", "-\u{592a}\u{90ce}"] {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert!(is_kept_out(&read), "{name}: {read:?}");
    }
    for name in ["\u{82b1}\u{5b50}", "---", "agent", "lan", "\u{592a}"] {
        let read = as_name(name, ("POST", "/read-inbox"), json!({}));
        assert_eq!(read.0, 200, "{name}: {read:?}");
    }
    // Each has a key of its own, too.
    ok(&world, &["key", "add", "\u{6b21}\u{90ce}"]);
    ok(&world, &["key", "add", "\u{4e09}\u{90ce}"]);
}

#[test]
fn an_inbox_at_the_broker_door_is_nobodys_because_its_name_has_dashes_alone() {
    let world = World::new();
    world.configure(OPEN);
    let _daemon = world.start();
    ok(&world, &["token", "mint", "agent"]);
    let http = Http::broker(&world);
    assert_eq!(http.get("/messages/agent").status, 403);
    assert_eq!(http.get("/messages/---").status, 200);
    // What git-paw's clients would call `agent` gets no instructions in that name.
    let (fine, text) = said(&world, &["broker", "boot-block", "\u{592a}\u{90ce}"]);
    assert!(!fine && text.contains("neither a letter"), "{text}");
    assert!(ok(&world, &["broker", "boot-block", "feat/\u{592a}\u{90ce}-1"]).contains("You are feat-1"));
}

/// Names that differ in ASCII punctuation; an agent may have each of them; git-paw's clients would make one of them.
const ALIKE: [&str; 4] = ["fix-1.2", "fix-1-2", "fix-1:2", "fix-1+2"];

#[test]
fn names_that_differ_in_more_than_case_slashes_and_dashes_read_no_letters_of_each_other() {
    let (world, _daemon) = open_world();
    let broker = Http::broker(&world);
    // At the broker door a letter is for the name that git-paw's clients have.
    let feedback = json!({ "from": "supervisor", "errors": ["by the broker to fix-1-2"] });
    let letter = json!({ "type": "agent.feedback", "agent_id": "fix/1-2", "payload": feedback });
    assert_eq!(broker.post("/publish", &letter).status, 202);
    for to in ALIKE {
        let letter = json!({ "to": to, "kind": "message", "text": format!("by the own API to {to}") });
        let sent = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter);
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    let others = |read: &str, mine: &str| -> Vec<&str> {
        ALIKE.into_iter().filter(|it| *it != mine && read.contains(&format!("to {it}\""))).collect()
    };
    for mine in ALIKE {
        let read =
            own(&world, ("POST", "/read-inbox"), &[("x-provost-agent", mine)], &json!({})).1.to_string();
        assert!(read.contains(&format!("by the own API to {mine}\"")), "{mine}: {read}");
        assert_eq!(others(&read, mine), [""; 0], "{mine} at the own API: {read}");
        let posts = format!("/posts?inbox={}", mine.replace(':', "%3A").replace('+', "%2B"));
        let read = own(&world, ("GET", &posts), &[("x-provost-agent", mine)], &json!({})).1.to_string();
        assert_eq!(others(&read, mine), [""; 0], "{mine} among the posts: {read}");
    }
    for mine in ALIKE {
        let read = Host::old(&world, mine).does("inbox_read", json!({})).to_string();
        assert_eq!(others(&read, mine), [""; 0], "{mine} by MCP: {read}");
    }
    // Both spellings that clients of the broker have are one agent, and no other has its letters.
    for name in ["fix-1-2", "fix/1-2", "fix--1-2"] {
        let path = format!("/messages/{}", name.replace('/', "%2F"));
        let read = broker.get(&path);
        let text = String::from_utf8_lossy(&read.body).into_owned();
        assert!(read.status == 200 && text.contains("by the broker to fix-1-2"), "{name}: {read:?}");
        assert_eq!(others(&text, "fix-1-2"), [""; 0], "{name}: {text}");
    }
    for name in ["fix-1.2", "fix-1%2B2", "fix-1%3A2"] {
        assert_eq!(broker.get(&format!("/messages/{name}")).status, 400, "{name}");
    }
    // Of a name that is an owner's, the others are free for nobody, and are not the owner's either.
    let bearer = format!("Bearer {}", mint(&world, "fix-1.2"));
    let as_other = own(
        &world,
        ("POST", "/read-inbox"),
        &[("x-provost-agent", "fix-1-2"), ("authorization", &bearer)],
        &json!({}),
    );
    assert_eq!(as_other.0, 403, "{as_other:?}");
    assert!(is_kept_out(&own(
        &world,
        ("POST", "/read-inbox"),
        &[("x-provost-agent", "fix-1-2")],
        &json!({})
    )));
    assert_eq!(broker.get("/messages/fix-1-2").status, 403);
}
