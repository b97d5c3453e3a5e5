//! Scans: off unless they are allowed, of this repository alone, and with a report that can be read. What
//! stands in for a model is a shell that prints what the test has written down for it.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::{Daemon, World};

/// Prints a reply that is kept beside it; another one where it is asked to put a reply right. It changes a
/// file, too.
const STAND_IN: &str = "#!/bin/sh\ntouch changed-by-the-scan\nprompt=$(cat)\ncase $prompt in *'The reply:'*) cat \"$1/again\";; *) cat \"$1/reply\";; esac\n";

fn world(more: &str) -> World {
    let world = World::new();
    let tools = world.path("tools");
    world.put(&tools.join("stand_in.sh"), STAND_IN);
    let program = tools.join("stand_in.sh");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, tools) = (program.display(), tools.display());
    world.configure(&format!(
        "{OPEN}{more}[[agent]]\nid = \"look-ai\"\noutput = \"json\"\ncommand = [\"/bin/sh\", \"{program}\", \"{tools}\"]\n\
         read_only = [\"{tools}\"]\n"
    ));
    world
}

fn started(world: &World, reply: &str, again: &str) -> (Daemon, Socket) {
    world.put(&world.path("tools").join("reply"), reply);
    world.put(&world.path("tools").join("again"), again);
    let daemon = world.start();
    let socket = Socket::open(Http::a6s(world));
    socket.stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    (daemon, socket)
}

/// Begins one, and waits until it is over; how it stands then.
fn scanned(socket: &mut Socket, url: &str) -> Value {
    let begun = socket.result("scan.techDebt", &json!({ "repository_url": url }));
    let job = begun["job_id"].as_str().unwrap().to_owned();
    assert!(job.starts_with("job_") && begun.get("report").is_none(), "{begun}");
    let task = job.replace("job_", "task_");
    loop {
        let told = socket.message();
        let over = ["completed", "failed", "cancelled"]
            .contains(&told["data"]["status"].as_str().unwrap_or_default());
        if told["data"]["taskId"] == task.as_str() && over {
            break;
        }
    }
    let now = socket.result("scan.status", &json!({ "jobId": job }));
    assert_eq!(now, socket.result("scan.status", &json!({ "job_id": job })), "either spelling");
    assert!(!now.to_string().contains("null"), "{now}");
    now
}

#[test]
fn scans_are_off_unless_the_owner_of_the_daemon_allows_them() {
    let world = world("");
    let (_daemon, mut socket) = started(&world, "", "");
    let root = world.repo().display().to_string();
    let error = socket.error("scan.techDebt", &json!({ "repository_url": root }));
    assert!(error.contains("`scans = true`") && error.contains("[a6s]"), "{error}");
    assert_eq!(socket.error("scan.modernize", &json!({ "repositoryUrl": root })), error);
    assert_eq!(socket.error("scan.status", &json!({ "job_id": "job_nope" })), "Unknown scan job: job_nope");
}

#[test]
fn only_this_repository_is_scanned() {
    let world = world("scans = true\n");
    world.put(&world.repo().join("src/a b.rs"), "fn main() {}\n");
    world.put(
        &world.repo().join(".git/config"),
        "[core]\n\tbare = false\n[remote \"other\"]\n\turl = https://example.org/other.git\n[remote \"origin\"]\n\
         \turl = https://me:token@Example.org/team/repo.git\n\tfetch = x\n[branch \"main\"]\n\turl = https://example.org/no\n",
    );
    std::os::unix::fs::symlink("/etc", world.repo().join("out")).unwrap();
    let (_daemon, mut socket) = started(&world, "{\"summary\": \"fine\", \"findings\": []}", "");
    let root = world.repo().canonicalize().unwrap().display().to_string();
    for url in [
        root.clone(),
        format!("{root}/"),
        format!("file://{root}"),
        format!("file://localhost{root}/%73rc"),
        "https://example.org/team/repo".to_owned(),
        "https://example.org/team/repo.git/".to_owned(),
    ] {
        let now = scanned(&mut socket, &url);
        assert_eq!(
            (&now["status"], &now["report"]["summary"]),
            (&json!("completed"), &json!("fine")),
            "{url}: {now}"
        );
    }
    let parent = world.repo().parent().unwrap().display().to_string();
    for url in [
        "https://example.org/other.git".to_owned(),
        "https://example.org/no".to_owned(),
        "https://example.org/team".to_owned(),
        "git@example.org:team/repo.git".to_owned(),
        "http://example.org/team/repo".to_owned(),
        "relative".to_owned(),
        "/".to_owned(),
        "file:///etc".to_owned(),
        format!("file://{parent}"),
        format!("{root}/../"),
        format!("{root}/out"),
        format!("{root}/src/a b.rs"),
        format!("file://{root}/%zz"),
        format!("file://elsewhere{root}"),
    ] {
        let error = socket.error("scan.techDebt", &json!({ "repository_url": url }));
        assert!(error.contains("is not this repository") && !error.contains("token"), "{url}: {error}");
    }
    assert!(!world.repo().join("changed-by-the-scan").exists());
}

#[test]
fn a_report_is_brought_into_form_and_one_that_cannot_be_read_shows_it() {
    let world = world("scans = true\n");
    let findings = json!([
        { "title": " Old parser ", "severity": "critical", "path": "./src/a.rs", "line": "12", "detail": "d", "more": 1 },
        { "title": "Out", "severity": "medium", "path": "../etc", "line": 0, "detail": null },
    ]);
    let report = json!({ "summary": "two", "findings": findings, "note": null }).to_string();
    let (_daemon, mut socket) = started(&world, &format!("Here it is:\n```json\n{report}\n```\n"), "");
    let root = world.repo().display().to_string();
    let now = scanned(&mut socket, &root);
    assert_eq!(
        now["report"],
        json!({ "summary": "two", "findings": [
            { "title": "Old parser", "severity": "error", "path": "src/a.rs", "line": 12, "detail": "d" },
            { "title": "Out", "severity": "warning", "detail": "" },
        ] })
    );
    // One that is none is asked for once more.
    let write = |name: &str, text: &str| world.put(&world.path("tools").join(name), text);
    write("reply", "all is well");
    write("again", "{\"summary\": \"on second thought\", \"findings\": []}");
    assert_eq!(scanned(&mut socket, &root)["report"]["summary"], "on second thought");
    write("again", "still no JSON");
    let now = scanned(&mut socket, &root);
    assert_eq!((&now["status"], &now["report"]["summary"]), (&json!("completed"), &json!("all is well")));
    assert_eq!(now["report"]["findings"][0]["title"], "The scan's reply was not in the asked form");
    // Whoever fails has no report at all.
    write("stand_in.sh", "echo broken >&2; exit 4\n");
    let now = scanned(&mut socket, &root);
    assert_eq!(now["status"], "failed");
    assert!(now["error"].as_str().unwrap().contains("broken") && now.get("report").is_none(), "{now}");
}
