//! Claims and locks of other doors, where published clients look for them; the project's name; and the published
//! dashboard's own folder.

use serde_json::{Value, json};

use crate::support::agent_protocol::started;
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

fn resource(http: Http, path: &str) -> Value {
    let state = http.get("/state").json();
    let rows = state["resources"].as_array().unwrap();
    let mut found = rows.iter().filter(|it| it["path"] == path);
    let one = found.next().cloned().unwrap_or_default();
    assert!(found.next().is_none(), "{path} is there once");
    one
}

#[test]
fn what_other_doors_hold_is_where_adapters_look() {
    let (world, _daemon, http) = started();
    http.announce("a");
    let held = |it: &Value| (it["state"].clone(), it["owner"].clone());
    assert_eq!(resource(http, "src/a.ts"), Value::Null);
    world.done("sess", &["lock", "src/a.ts:a"]);
    let locked = resource(http, "src/a.ts");
    assert_eq!(held(&locked), (json!("locked"), json!("sess")));
    assert!(locked["claimed_at"].is_i64() && locked["content_hash"].is_string(), "{locked}");
    assert_eq!(http.get("/resources/src/a.ts").json(), locked);
    assert!(http.get("/resources").json().as_array().unwrap().contains(&locked));
    // What was announced at the broker door is its agent's for the time.
    let broker = Http::broker(&world);
    let intent = json!({ "type": "agent.intent", "agent_id": "feat-x",
        "payload": { "files": ["src/b.ts"], "summary": "s", "valid_for_seconds": 600 } });
    assert_eq!(broker.post("/publish", &intent).status, 202);
    assert_eq!(held(&resource(http, "src/b.ts")), (json!("claimed"), json!("feat-x")));
    let claimed = http.get("/resources?filter=claimed").json();
    assert_eq!(claimed.as_array().unwrap().len(), 1, "{claimed}");
    // A claim beside a lock is granted, and looks like what it is for as long as both last.
    assert_eq!(http.claim("src/a.ts", "a").json()["granted"], true);
    assert_eq!(held(&resource(http, "src/a.ts")), (json!("conflicted"), json!("a")));
    world.done("sess", &["unlock", "src/a.ts:a"]);
    assert_eq!(held(&resource(http, "src/a.ts")), (json!("claimed"), json!("a")));
}

#[test]
fn who_gives_back_what_it_does_not_have_is_no_agent() {
    let (world, _daemon, http) = started();
    world.write("src/a.ts", "export const a = 1\n");
    let release = json!({ "path": "src/a.ts", "agent_id": "ghost-a" });
    assert_eq!(http.post("/resources/release", &release).json(), json!({ "released": false }));
    assert_eq!(http.delete("/agents/ghost-b").status, 200);
    assert_ne!(world.ask("ghost-c", &["unlock", "src/a.ts:a"]).0, 0);
    let known =
        || String::from_utf8(world.command(&["agent", "list", "--json"]).output().unwrap().stdout).unwrap();
    assert!(!known().contains("ghost"), "{}", known());
    // Whoever has had something is somebody.
    http.announce("b");
    http.claim("src/a.ts", "b");
    assert!(known().contains("\"b\""), "{}", known());
}

#[test]
fn the_project_goes_by_the_name_that_is_configured() {
    let world = World::new();
    world.configure("[agent_protocol]\nproject = \"The <Shop>\"\n");
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    assert_eq!(http.get("/status").json()["project"], "The <Shop>");
    let page = String::from_utf8(http.get("/dashboard/").body).unwrap();
    assert!(page.contains("The &lt;Shop&gt;"), "{page}");
}

#[test]
fn the_published_dashboard_is_served_from_its_folder_and_nothing_else_is() {
    let world = World::new();
    let folder = world.path("board");
    world.put(&folder.join("index.html"), "<script type=module src=app.js></script>");
    world.put(&folder.join("app.js"), "fetch('/state')");
    world.put(&folder.join("components/agent-card.js"), "export default 1");
    world.put(&folder.join("styles/board.css"), "a{}");
    world.put(&folder.join(".secret.txt"), "hidden");
    world.put(&folder.join("program.exe"), "MZ");
    world.put(&world.path("outside.txt"), "outside");
    std::os::unix::fs::symlink(world.path("outside.txt"), folder.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(world.path(""), folder.join("up")).unwrap();
    std::os::unix::fs::symlink("app.js", folder.join("inner.js")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("pipe.txt")).status().unwrap();
    assert!(pipe.success());
    std::fs::File::create(folder.join("large.js")).unwrap().set_len((4 << 20) + 1).unwrap();
    world.configure(&format!("[agent_protocol]\ndashboard = {:?}\n", folder.display().to_string()));
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let kinds = [
        ("/dashboard/", "text/html; charset=utf-8"),
        ("/dashboard/index.html", "text/html; charset=utf-8"),
        ("/dashboard/app.js", "text/javascript; charset=utf-8"),
        ("/dashboard/components/agent-card.js", "text/javascript; charset=utf-8"),
        ("/dashboard/styles/board.css", "text/css; charset=utf-8"),
    ];
    for (path, kind) in kinds {
        let answer = http.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("content-security-policy").is_some_and(|it| it.contains("default-src 'self'")));
    }
    assert_eq!(http.get("/dashboard").status, 301);
    for path in [
        ".secret.txt",
        "program.exe",
        "link.txt",
        "inner.js",
        "up/outside.txt",
        "../outside.txt",
        "..%2foutside.txt",
        "%2e%2e/outside.txt",
        "components/../../outside.txt",
        "components",
        "pipe.txt",
        "app.js%00.txt",
        "/app.js",
        "components//agent-card.js",
        "C:/x.txt",
        "..%5coutside.txt",
        "missing.js",
    ] {
        let answer = http.get(&format!("/dashboard/{path}"));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    assert_eq!(http.get("/dashboard/large.js").status, 413);
    assert_eq!(http.post("/dashboard/app.js", &json!({})).status, 405);
    let foreign = http.send("GET /dashboard/app.js", &[("Origin", "http://evil.example")], b"");
    assert_eq!(foreign.status, 403);
    // What changes on the disk is what is served next, and a folder that is gone says so.
    world.put(&folder.join("app.js"), "changed");
    assert_eq!(http.get("/dashboard/app.js").body, b"changed");
    std::fs::remove_dir_all(&folder).unwrap();
    eventually("a word about the folder", || http.get("/dashboard/").status == 503);
}
