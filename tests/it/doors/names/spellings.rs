//! Spellings of a name: those that look alike, and those that differ by case alone.

use std::panic::{AssertUnwindSafe, catch_unwind};

use provost::domain::Door;
use serde_json::json;

use super::{ok, open_world, said, tried_at};
use crate::support::loopback_client::Http;
use crate::support::wit_client::Wit;
use crate::support::{Reply, World};

#[test]
fn a_name_that_cannot_be_told_from_another_is_refused_at_every_door() {
    let (world, daemon) = open_world();
    // Zero-width and other characters that show nothing, a letter of another script, one of full width, a
    // mark that changes the letter before it, a space that is none, a text turned round.
    let unclear = [
        "feat-\u{200b}free",
        "feat-free\u{feff}",
        "feat-fr\u{ad}ee",
        "feat-fr\u{435}e",
        "f\u{435}\u{430}t",
        "\u{441}\u{43e}\u{440}\u{435}",
        "feat\u{2010}free",
        "\u{ff46}eat-free",
        "feat-fre\u{301}e",
        "feat\u{a0}free",
        "feat-\u{202e}eerf",
        "\u{1d41a}da",
        "feat-free\u{fe0f}",
        "feat-free\u{e0041}",
        "\u{3164}",
        "\u{fa30}\u{90ce}",
        "\u{1112}\u{1161}\u{11ab}",
        "\u{ff76}\u{ff85}",
        // Letters of scripts that few know: Coptic, Lisu, Cherokee, Hebrew, Devanagari, Latin of dialects.
        "c\u{2c9f}dex",
        "\u{a4d0}ob",
        "\u{abaf}odex",
        "c\u{5e1}dex",
        "c\u{966}dex",
        "c\u{ab3d}dex",
        "\u{441}\u{2c9f}\u{501}\u{435}\u{445}",
        // Greek within Cyrillic.
        "\u{410}\u{43d}\u{3b4}\u{440}\u{435}\u{439}",
    ];
    let mut open = Vec::new();
    for name in unclear {
        for door in [Door::Devit, Door::Wit, Door::AgentProtocol, Door::Broker] {
            let tried = catch_unwind(AssertUnwindSafe(|| tried_at(door, &world, &daemon, name)));
            // A reset is a no as well.
            let Ok(tried) = tried else { continue };
            open.extend(
                tried.iter().filter(|it| it.1).map(|it| format!("{}: {} as {name:?}", door.name(), it.0)),
            );
        }
        let (fine, text) = said(&world, &["intent", "declare", "--as", name, "--file", "README.md", "x"]);
        if fine || !text.contains("U+") {
            open.push(format!("own: {name:?}: {text}"));
        }
        let answer = Http::mcp(&world).get(&format!("/mcp?agent={}", encoded(name)));
        if answer.status != 400 || !String::from_utf8_lossy(&answer.body).contains("U+") {
            open.push(format!("mcp: {name:?}: {answer:?}"));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
    // Nor is anything on record under such a name, and none gets a key or a token.
    let log = ok(&world, &["log", "--json"]);
    assert!(unclear.iter().all(|name| !log.contains(&format!("\"actor\":\"{name}\""))), "{log}");
    for args in [["token", "mint"], ["key", "add"]] {
        assert!(!said(&world, &[args[0], args[1], "\u{430}da"]).0);
    }
    // What is read as a name of the daemon's or of people is theirs.
    for name in ["pr0vost", "0rchestrator", "h0st", "Pr0v0st", "hurnan", "user:me"] {
        assert!(!said(&world, &["intent", "declare", "--as", name, "--file", "README.md", "x"]).0, "{name}");
    }
    // Names of other scripts are names.
    for name in [
        "zo\u{eb}",
        "\u{421}\u{435}\u{440}\u{433}\u{435}\u{439}",
        "\u{30b5}\u{30fc}\u{30d0}\u{30fc}",
        "M\u{fc}ller",
        "k\u{e6}mper",
        "agent-\u{592a}\u{90ce}",
        "\u{645}\u{62d}\u{645}\u{62f}",
        "\u{0391}\u{03b8}\u{03b7}\u{03bd}\u{03ac}",
    ] {
        ok(&world, &["intent", "declare", "--as", name, "--file", "README.md", "x"]);
    }
}

fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn one_name_has_one_spelling_for_as_long_as_it_is_somebodys() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    let token = ok(&world, &["token", "mint", "agent-b"]);
    let (fine, text) = said(&world, &["token", "mint", "Agent-B"]);
    assert!(!fine && text.contains("agent-b"), "{text}");
    let as_b = |name: &str| {
        let mut command = world.command(&["intent", "declare", "--as", name, "--file", "README.md", "x"]);
        command.env("PROVOST_TOKEN", &token).status().unwrap().success()
    };
    assert!(as_b("agent-b") && as_b("Agent-B"), "a token is for all spellings of its name");
    assert!(!as_b("agent-c"));
    let log = ok(&world, &["log", "--json"]);
    assert!(!log.contains("Agent-B"), "{log}");
    ok(&world, &["key", "add", "boss"]);
    let (fine, text) = said(&world, &["key", "add", "Boss"]);
    assert!(!fine && text.contains("`boss` has a key"), "{text}");
    let freed = crate::support::apart(&world.command(&["token", "revoke", "--of", "AGENT-B"]));
    assert!(freed.status.success(), "{freed:?}");
    assert!(said(&world, &["intent", "declare", "--as", "agent-b", "--file", "README.md", "x"]).0);
}

#[test]
fn of_two_spellings_that_differ_by_case_alone_the_one_in_use_is_had_at_every_door() {
    let (world, daemon) = open_world();
    ok(&world, &["intent", "declare", "--as", "feat-used", "--file", "README.md", "x"]);
    let other = "Feat-Used";
    let (fine, text) = said(&world, &["intent", "declare", "--as", other, "--file", "README.md", "x"]);
    assert!(!fine && text.contains("feat-used is in use here"), "{text}");
    let mut told = Vec::new();
    let Reply::Message(it) = world.client(&daemon, other).say("REGISTER", json!({ "caps": [], "pid": 1 }))
    else {
        panic!("no answer")
    };
    told.push(("devit", it.to_string()));
    let called = Wit::of(&world).call("register", Some(&json!({ "sessionId": other, "name": "x" })));
    told.push(("wit", called.to_string()));
    let body =
        |answer: crate::support::wit_client::Answer| String::from_utf8_lossy(&answer.body).into_owned();
    let announced =
        Http::agent_protocol(&world).post("/agents/announce", &json!({ "id": other, "tool": "x" }));
    told.push(("agent_protocol", body(announced)));
    // The broker's protocol has one case, and says so by itself.
    let payload = json!({ "status": "working", "modified_files": [] });
    let status = json!({ "type": "agent.status", "agent_id": other, "payload": payload });
    let published = body(Http::broker(&world).post("/publish", &status));
    assert!(published.contains("lowercase"), "{published}");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "lock_acquire", "arguments": { "symbol": "README.md" }, "_meta": meta } });
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "lock_acquire"),
        ("x-provost-agent", other),
    ];
    told.push(("mcp", body(Http::mcp(&world).send("POST /mcp", &headers, call.to_string().as_bytes()))));
    for (door, text) in &told {
        assert!(text.contains("feat-used is in use here"), "{door}: {text}");
    }
    // The spelling in use is had.
    ok(&world, &["intent", "declare", "--as", "feat-used", "--file", "README.md", "y"]);
    let agents = ok(&world, &["agent", "list", "--json"]);
    assert!(!agents.contains(other), "{agents}");
}

#[test]
fn what_people_are_shown_as_a_name_at_the_wit_door_can_be_told_from_others() {
    let (world, _daemon) = open_world();
    for (nth, name) in
        ["Ad\u{200b}a", "\u{202e}adA", "\u{410}da", "Ada\u{301}", "\u{ff21}da"].iter().enumerate()
    {
        let called =
            Wit::of(&world).call("register", Some(&json!({ "sessionId": format!("s{nth}"), "name": name })));
        assert!(called["error"].to_string().contains("U+"), "{name:?}: {called}");
    }
    for (nth, name) in ["Ada", "José", "Ада Б.", "田中", "Ada 🚀"].iter().enumerate() {
        let called =
            Wit::of(&world).call("register", Some(&json!({ "sessionId": format!("t{nth}"), "name": name })));
        assert!(called["error"].is_null(), "{name:?}: {called}");
    }
}
