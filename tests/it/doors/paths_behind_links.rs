//! Absolute paths that reach the repository through symbolic links outside of it mean the files that they
//! lead to, at every door and on the command line. Links that lead out of the repository are not followed for
//! it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::a6s_client::Socket;
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::rules::ALLOW;
use crate::support::wit_client::{Wit, git, world};
use crate::support::{Daemon, World, eventually};

const CODE: &str = "export function f() { return 1 }\n";

const DOORS: &str = "[broker]\nenabled = true\n[agent_protocol]\nenabled = true\n[a6s]\nenabled = true\n";

/// A repository with links to it, to a folder in it, to a folder above it, and out of it.
fn linked() -> (World, Daemon) {
    let world = world();
    world.configure(DOORS);
    world.rule(&ALLOW.replace("[\"delegate\"]", "[\"delegate\", \"apply\"]"));
    let top = world.repo().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("src/deep")).unwrap();
    std::fs::write(top.join("src/a.ts"), CODE).unwrap();
    git(&top, &["add", "src"]);
    git(&top, &["commit", "--quiet", "-m", "first"]);
    std::fs::create_dir_all(world.path("away/src")).unwrap();
    std::fs::write(world.path("away/src/a.ts"), CODE).unwrap();
    symlink(&top, world.path("link")).unwrap();
    symlink("link", world.path("again")).unwrap();
    symlink(top.join("src"), world.path("inner")).unwrap();
    symlink(top.parent().unwrap(), world.path("above")).unwrap();
    symlink(world.path("away"), world.path("elsewhere")).unwrap();
    symlink(world.path("away"), top.join("out")).unwrap();
    let daemon = world.start();
    eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
    (world, daemon)
}

/// Ways to `src/a.ts`.
const WAYS: [&str; 6] = [
    "link/src/a.ts",
    "again/./src/deep/../a.ts",
    "inner/a.ts",
    "above/repo/src/a.ts",
    "above/link/src/a.ts",
    "again//src/a.ts",
];

/// Ways to something else.
const ASTRAY: [&str; 5] = [
    "elsewhere/src/a.ts",
    "away/src/a.ts",
    "link/../src/a.ts",
    "nowhere/src/a.ts",
    "link/../elsewhere/src/a.ts",
];

fn at(world: &World, way: &str) -> String {
    format!("{}/{way}", world.path("").display().to_string().trim_end_matches('/'))
}

#[test]
fn a_path_through_a_link_to_the_repository_is_understood_by_the_own_api() {
    let (world, _daemon) = linked();
    let own =
        |who: &str, route: (&str, &str), body: Value| own(&world, route, &[("x-provost-agent", who)], &body);
    assert_eq!(own("ada", ("POST", "/lock"), json!({ "symbol": "src/a.ts:f" })).0, 200);
    for way in WAYS {
        let path = at(&world, way);
        let refused = own("bob", ("POST", "/lock"), json!({ "symbol": format!("{path}:f") }));
        assert_eq!(refused.0, 409, "{way}: {refused:?}");
        let guarded = own("bob", ("POST", "/guard"), json!({ "edits": [{ "path": path }] })).1;
        assert_eq!(guarded["blocked"].as_array().unwrap().len(), 1, "{way}: {guarded}");
        let concerned = own("bob", ("POST", "/concerned"), json!({ "paths": [path] })).1;
        assert_eq!(concerned["locks"], json!(["src/a.ts"]), "{way}: {concerned}");
        let found = own("bob", ("GET", &format!("/locks?file={path}")), json!({})).1;
        assert_eq!(found["locks"][0]["symbol"], "src/a.ts:f", "{way}: {found}");
    }
    // What is not there yet.
    let new = own("bob", ("POST", "/lock"), json!({ "symbol": at(&world, "link/new/folder/b.ts:g") })).1;
    assert_eq!(new["lock"]["symbol"], "new/folder/b.ts:g", "{new}");
    let files =
        json!({ "description": "x", "files": [at(&world, "link/src/a.ts"), at(&world, "inner/c.ts")] });
    let declared = own("ada", ("POST", "/declare"), files).1;
    let paths: Vec<_> =
        declared["intent"]["files"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["src/a.ts", "src/c.ts"], "{declared}");
    let offered =
        own("ada", ("POST", "/propose-contract"), json!({ "symbol": at(&world, "link/src/a.ts:f") })).1;
    assert_eq!(offered["symbol"], "src/a.ts:f", "{offered}");
    own("ada", ("POST", "/join-crew"), json!({ "tool": "x", "capabilities": [] }));
    let claimed = own("ada", ("POST", "/claim"), json!({ "path": at(&world, "link/src/a.ts") }));
    assert_eq!((claimed.0, &claimed.1["file"]), (200, &json!("src/a.ts")), "{claimed:?}");
    for way in ASTRAY {
        let refused = own("ada", ("POST", "/lock"), json!({ "symbol": format!("{}:f", at(&world, way)) }));
        assert_eq!((refused.0 / 100, &refused.1["error"]), (4, &json!("invalid")), "{way}: {refused:?}");
    }
    // A link that leaves the repository is dealt with as ever, whichever way it was come to.
    let [plain, linked] = ["repo/out/src/a.ts", "link/out/src/a.ts"].map(|way| {
        let said = own("eve", ("POST", "/lock"), json!({ "symbol": format!("{}:f", at(&world, way)) }));
        (said.0, said.1["lock"]["symbol"].clone(), said.1["error"].clone())
    });
    assert_eq!(plain, linked);
    assert_ne!(linked.1, json!("src/a.ts:f"));
}

#[test]
fn a_path_through_a_link_to_the_repository_is_understood_at_the_wit_door() {
    let (world, _daemon) = linked();
    let wit = Wit::of(&world);
    let lock = |who: &str, path: &str| json!({ "symbolPath": format!("{path}:f"), "sessionId": who, "ttlMs": 60_000 });
    wit.ask("lock.acquire", lock("A", "src/a.ts"));
    for way in WAYS {
        assert_eq!(wit.token("lock.acquire", lock("B", &at(&world, way))), "LOCK_CONFLICT", "{way}");
    }
    wit.ask(
        "intent.declare",
        json!({ "sessionId": "B", "description": "x", "files": [at(&world, "link/src/a.ts")] }),
    );
    let found = wit.ask("intent.query", json!({ "file": at(&world, "inner/a.ts") }));
    assert_eq!(found[0]["files"], ",src/a.ts,", "{found}");
    for way in ASTRAY {
        let answer = wit.call("lock.acquire", Some(&lock("A", &at(&world, way))));
        assert!(answer["error"].to_string().contains("relative to the repository root"), "{way}: {answer}");
    }
}

#[test]
fn a_path_through_a_link_to_the_repository_is_understood_by_agent_protocol_and_the_broker() {
    let (world, _daemon) = linked();
    let http = Http::agent_protocol(&world);
    for who in ["ada", "bob"] {
        assert!(http.post("/agents/announce", &json!({ "id": who, "tool": "x" })).status < 300);
    }
    let claim = |who: &str, path: &str| {
        http.post("/resources/claim", &json!({ "path": path, "agent_id": who })).status
    };
    assert!(claim("ada", "src/a.ts") < 300);
    for way in WAYS {
        assert_eq!(claim("bob", &at(&world, way)), 409, "{way}");
    }
    for way in ASTRAY {
        assert_eq!(claim("bob", &at(&world, way)), 400, "{way}");
    }
    let broker = Http::broker(&world);
    let publish = |files: Vec<String>| {
        let payload = json!({ "status": "working", "modified_files": files });
        broker.post("/publish", &json!({ "type": "agent.status", "agent_id": "feat-aa", "payload": payload }))
    };
    for way in WAYS {
        assert_eq!(publish(vec![at(&world, way)]).status, 202, "{way}");
    }
    for way in ASTRAY {
        let refused = publish(vec![at(&world, way)]);
        assert_eq!(refused.status, 400, "{way}");
        assert_eq!(refused.json()["error"], "path is outside of the repository", "{way}");
    }
    let files = own(&world, ("GET", "/posts?since=0"), &[], &json!({})).1;
    for post in files["posts"].as_array().unwrap() {
        assert_eq!(post["message"]["payload"]["modified_files"], json!(["src/a.ts"]), "{post}");
    }
}

#[test]
fn a_path_through_a_link_to_the_repository_is_understood_on_the_command_line() {
    let (world, _daemon) = linked();
    let said = |args: &[&str]| {
        let output = world.command(args).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&both).into_owned())
    };
    for (number, way) in WAYS.into_iter().chain(["link/new/folder/b.ts", "inner/new/b.ts"]).enumerate() {
        let symbol = format!("{}:f{number}", at(&world, way));
        let (fine, text) = said(&["lock", "--as", "ada", &symbol]);
        let inside = way.split_once("new/").map_or("src/a.ts".to_owned(), |(from, rest)| {
            format!("{}new/{rest}", if from == "inner/" { "src/" } else { "" })
        });
        assert!(fine && text.contains(&format!("locked: {inside}:f{number}")), "{way}: {text}");
    }
    let (fine, text) = said(&["claim", "acquire", "--as", "ada", &at(&world, "link/new/c.ts")]);
    assert!(fine && text.contains("claimed: new/c.ts"), "{text}");
    let (_, text) = said(&["guard", "--as", "bob", &at(&world, "inner/a.ts")]);
    assert!(text.contains("ada"), "{text}");
    for way in ASTRAY {
        let (fine, text) = said(&["lock", "--as", "ada", &format!("{}:f", at(&world, way))]);
        assert!(!fine && text.contains("names no file of the repository"), "{way}: {text}");
    }
}

#[test]
fn a_folder_to_work_in_may_be_named_through_a_link_to_the_repository() {
    let (world, daemon) = linked();
    let client = world.client(&daemon, "orch:a");
    for (way, inside) in
        [("link/src", "src"), ("inner/deep", "src/deep"), ("inner", "src"), ("link", ""), ("above/repo", "")]
    {
        let (task, reply) =
            client.delegate("shell", "pwd > pwd.txt", json!({ "working_dir": at(&world, way) }));
        reply.ack();
        assert_eq!(client.result_of(&task)["status"], "completed", "{way}");
        let ran: PathBuf = world.repo().join(inside).join("pwd.txt");
        assert!(std::fs::remove_file(&ran).is_ok(), "{way}");
    }
    for way in ["elsewhere/src", "away", "link/out", "nowhere"] {
        let order = json!({ "task": format!("astray-{way}").replace('/', "-"), "worker": "shell", "goal": "true",
            "watch_patterns": [], "working_dir": at(&world, way) });
        let said = own(&world, ("POST", "/delegate"), &[("x-provost-agent", "ada")], &order);
        assert!(said.1.to_string().contains("working_dir"), "{way}: {said:?}");
    }
}

#[test]
fn artifacts_named_through_a_link_to_the_repository_are_those_of_its_files() {
    let (world, _daemon) = linked();
    let mut socket = Socket::open(Http::a6s(&world));
    let artifact = |path: String| json!([{ "id": "1", "type": "file", "path": path, "content": "new\n", "language": "typescript" }]);
    for way in WAYS {
        let shown = socket.result("artifacts.preview", &json!({ "artifacts": artifact(at(&world, way)) }));
        assert_eq!(shown["files"][0]["action"], "modify", "{way}: {shown}");
    }
    for way in ASTRAY.into_iter().chain(["link/out/src/a.ts"]) {
        let shown = socket.result("artifacts.preview", &json!({ "artifacts": artifact(at(&world, way)) }));
        assert_eq!(shown["files"][0]["action"], "skip", "{way}: {shown}");
    }
    let done =
        socket.result("artifacts.apply", &json!({ "artifacts": artifact(at(&world, "link/src/n.ts")) }));
    assert_eq!(done["applied"], 1, "{done}");
    assert_eq!(std::fs::read_to_string(world.repo().join("src/n.ts")).unwrap(), "new\n");
}

#[test]
fn a_path_through_a_link_to_the_repository_is_understood_by_tools_of_hosts() {
    let (world, _daemon) = linked();
    let mut ada = Host::old(&world, "ada");
    let mut bob = Host::new_era(&world, "bob");
    ada.does("lock_acquire", json!({ "symbol": "src/a.ts:f" }));
    for way in WAYS {
        let refused = bob.fails("lock_acquire", json!({ "symbol": format!("{}:f", at(&world, way)) }));
        assert!(refused.contains("ada"), "{way}: {refused}");
    }
    for way in ASTRAY {
        let refused = bob.fails("lock_acquire", json!({ "symbol": format!("{}:f", at(&world, way)) }));
        assert!(refused.contains("outside of the repository"), "{way}: {refused}");
    }
}
