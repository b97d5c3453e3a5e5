//! Absolute paths in the repository mean the same as those from its top, at each door; outside of it they are
//! refused.

use std::path::PathBuf;

use provost::base::Tops;
use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::wit_client::{Wit, git, world};
use crate::support::{Daemon, World, eventually};

const CODE: &str = "export function f() { return 1 }\n";

/// A repository with one file, a linked work tree, and a daemon.
fn with_a_tree() -> (World, PathBuf, PathBuf, Daemon) {
    let world = world();
    world.configure("[broker]\nenabled = true\n[agent_protocol]\nenabled = true\n");
    let top = world.repo().canonicalize().unwrap();
    std::fs::create_dir(top.join("src")).unwrap();
    std::fs::write(top.join("src/a.ts"), CODE).unwrap();
    git(&top, &["add", "src"]);
    git(&top, &["commit", "--quiet", "-m", "first"]);
    let tree = world.path("tree");
    git(&top, &["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    let tree = tree.canonicalize().unwrap();
    let daemon = world.start();
    for at in [&top, &tree] {
        eventually("the wit door", || Wit::in_tree(at).socket.exists() && Wit::in_tree(at).answers());
    }
    (world, top, tree, daemon)
}

#[test]
fn an_absolute_path_at_the_wit_door_is_the_one_from_the_top() {
    let (_world, top, tree, _daemon) = with_a_tree();
    let (here, there) = (Wit::in_tree(&top), Wit::in_tree(&tree));
    let of = |folder: &PathBuf, rest: &str| format!("{}/{rest}", folder.display());
    let lock = |who: &str, at: String| json!({ "symbolPath": at, "sessionId": who, "ttlMs": 60_000 });
    here.ask("lock.acquire", lock("A", of(&top, "src/./a.ts:f")));
    // The other work tree's socket knows its own top, and that of the repository.
    for at in [of(&tree, "src/a.ts:f"), of(&top, "src/a.ts:f"), "src/a.ts:f".into()] {
        assert_eq!(there.token("lock.acquire", lock("B", at.clone())), "LOCK_CONFLICT", "{at}");
    }
    let locks = here.ask("lock.query", json!({}));
    assert_eq!(locks[0]["symbolPath"], "src/a.ts:f", "{locks}");
    here.ask("lock.release", json!({ "symbolPath": of(&top, "src/a.ts:f"), "sessionId": "A" }));
    there.ask(
        "intent.declare",
        json!({ "sessionId": "B", "description": "x", "files": [of(&tree, "src/a.ts")] }),
    );
    let found = here.ask("intent.query", json!({ "file": of(&top, "src/a.ts") }));
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let offered =
        here.ask("contract.propose", json!({ "sessionId": "A", "symbolPath": of(&top, "src/a.ts:f") }));
    assert!(offered.is_object(), "{offered}");
    let found = there.ask("contract.query", json!({ "symbolPath": of(&tree, "src/a.ts:f") }));
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    // Outside of both, with a name that begins alike, and the top itself.
    for outside in
        ["/etc/passwd:f".to_owned(), format!("{}x/src/a.ts:f", top.display()), of(&top, "../a.ts:f")]
    {
        let answer = here.call("lock.acquire", Some(&lock("A", outside.clone())));
        assert!(
            answer["error"].to_string().contains("relative to the repository root"),
            "{outside}: {answer}"
        );
    }
}

#[test]
fn an_absolute_path_at_the_broker_door_is_the_one_from_the_top() {
    let (world, top, tree, _daemon) = with_a_tree();
    let http = Http::broker(&world);
    let publish = |kind: &str, payload: Value| {
        http.post("/publish", &json!({ "type": kind, "agent_id": "feat-aa", "payload": payload }))
    };
    http.post(
        "/publish",
        &json!({ "type": "agent.status", "agent_id": "feat-bb", "payload": { "status": "working", "modified_files": [] } }),
    );
    let (one, other) = (format!("{}/src/a.ts", top.display()), format!("{}/src/b.ts", tree.display()));
    let region = json!([{ "kind": "function", "name": "f" }]);
    let files = json!([one, { "path": other, "regions": region }]);
    let intent = json!({ "files": files, "summary": "s", "valid_for_seconds": 900 });
    assert_eq!(publish("agent.intent", intent).status, 202);
    let done = json!({ "status": "done", "exports": [], "modified_files": [one, "src/c.ts"] });
    assert_eq!(publish("agent.artifact", done).status, 202);
    let got = http.get("/messages/feat-bb").json();
    let payload = |nth: usize| got["messages"][nth]["payload"].clone();
    assert_eq!(payload(0)["files"], json!(["src/a.ts", { "path": "src/b.ts", "regions": region }]), "{got}");
    assert_eq!(payload(1)["modified_files"], json!(["src/a.ts", "src/c.ts"]), "{got}");
    let outside = json!({ "status": "working", "modified_files": ["src/a.ts", "/etc/passwd"] });
    let refused = publish("agent.status", outside);
    assert_eq!(refused.status, 400);
    let said = refused.json();
    assert_eq!(
        (&said["error"], &said["value"]),
        (&json!("path is outside of the repository"), &json!("/etc/passwd"))
    );
}

#[test]
fn claims_at_the_door_of_agent_protocol_are_of_the_path_from_the_top() {
    let (world, top, _tree, _daemon) = with_a_tree();
    let http = Http::agent_protocol(&world);
    for who in ["ada", "bob"] {
        assert!(http.post("/agents/announce", &json!({ "id": who, "tool": "x" })).status < 300);
    }
    let claim =
        |who: &str, path: &str| http.post("/resources/claim", &json!({ "path": path, "agent_id": who }));
    assert!(claim("ada", &format!("{}/src/a.ts", top.display())).status < 300);
    assert_eq!(claim("bob", "src/a.ts").status, 409);
    assert_eq!(claim("bob", "/etc/passwd").status / 100, 4);
}

#[test]
fn a_path_is_written_from_the_innermost_top() {
    let tops = Tops::new(["/r", "/r/trees/x", "/"]);
    for (text, inside) in [
        ("/r/a.ts", "a.ts"),
        ("/r/trees/x/a.ts:f", "a.ts:f"),
        ("/r/trees/xy/a.ts", "trees/xy/a.ts"),
        ("/r/b/../a.ts", "a.ts"),
        ("//r//a.ts", "a.ts"),
        ("a.ts", "a.ts"),
        ("../a.ts", "../a.ts"),
        ("/r", "/r"),
        ("/r/../a.ts", "/r/../a.ts"),
        ("/rr/a.ts", "/rr/a.ts"),
        ("/a.ts", "/a.ts"),
    ] {
        assert_eq!(tops.inside(text), inside, "{text}");
    }
}

#[test]
fn an_absolute_path_at_the_own_api_is_the_one_from_the_top() {
    let (world, top, tree, _daemon) = with_a_tree();
    std::os::unix::fs::symlink("src", top.join("link")).unwrap();
    let own =
        |who: &str, route: (&str, &str), body: Value| own(&world, route, &[("x-provost-agent", who)], &body);
    let below = |top: &PathBuf, rest: &str| format!("{}/{rest}", top.display());
    let lock = |who: &str, at: String, of: Option<&PathBuf>| {
        own(who, ("POST", "/lock"), json!({ "symbol": at, "worktree": of }))
    };
    assert_eq!(lock("ada", below(&top, "src/./a.ts:f"), None).0, 200);
    for (at, of) in [
        ("src/a.ts:f".to_owned(), None),
        (below(&tree, "src/a.ts:f"), Some(&tree)),
        (below(&top, "src/a.ts:f"), Some(&tree)),
        // Through a link within the repository.
        (below(&top, "link/a.ts:f"), None),
        ("link/a.ts:f".to_owned(), None),
    ] {
        assert_eq!(lock("bob", at.clone(), of).0, 409, "{at}");
    }
    let found = own("bob", ("GET", &format!("/locks?file={}", below(&top, "src/a.ts"))), json!({})).1;
    assert_eq!(found["locks"][0]["symbol"], "src/a.ts:f", "{found}");
    let files = json!({ "description": "x", "files": [below(&top, "src/a.ts")] });
    let declared = own("bob", ("POST", "/declare"), files).1;
    assert_eq!(declared["intent"]["files"][0]["path"], "src/a.ts", "{declared}");
    let guarded = own("bob", ("POST", "/guard"), json!({ "edits": [{ "path": below(&top, "src/a.ts") }] })).1;
    assert_eq!(guarded["blocked"].as_array().unwrap().len(), 1, "{guarded}");
    let concerned = own("bob", ("POST", "/concerned"), json!({ "paths": [below(&top, "src/a.ts")] })).1;
    assert_eq!(concerned["locks"], json!(["src/a.ts"]), "{concerned}");
    let at = below(&top, "src/a.ts:f");
    assert_eq!(own("ada", ("POST", "/propose-contract"), json!({ "symbol": at })).1["symbol"], "src/a.ts:f");
    assert_eq!(own("ada", ("POST", "/unlock"), json!({ "symbol": at })).0, 200);
    for outside in
        ["/etc/passwd:f".to_owned(), format!("{}x/src/a.ts:f", top.display()), below(&top, "../a.ts:f")]
    {
        let refused = lock("ada", outside.clone(), None);
        assert_eq!((refused.0 / 100, &refused.1["error"]), (4, &json!("invalid")), "{outside}: {refused:?}");
    }
}
