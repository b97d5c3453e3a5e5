//! Applies of files that run outside of every jail because a file in the workspace names them: from a worker in a
//! private copy as from one in place.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::desk::{FREELY, ask, errors, file};
use crate::support::repositories::{committed, ended, well, write};
use crate::support::ways_outside::{By, SH, Way, editor_ways, file_ways, put, server_ways};

const DELEGATE: &str =
    "[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"delegate\"]\n";

/// A world with a worker in a private copy; with the rules that are shipped where none are given.
fn world(rules: &str, config: &str) -> World {
    let world = World::new();
    if !rules.is_empty() {
        world.rule(&format!("{rules}{DELEGATE}"));
    }
    world.configure(&format!(
        "{config}[workers.kept]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \
         \"text\"\ncopy = \"kept\"\n"
    ));
    world
}

fn of_task(world: &World, what: &str, task: &str) -> Value {
    let (status, answer) = ask(world, "ed", &format!("POST /{what}-task"), &json!({ "task": task }));
    assert_eq!(status, 200, "{answer}");
    answer
}

/// The one of a preview.
fn of<'a>(previews: &'a Value, path: &str) -> &'a Value {
    previews
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["path"] == path)
        .unwrap_or_else(|| panic!("{path}: {previews}"))
}

/// Has a worker in a private copy change each of these files, and applies what it has made; answers the
/// preview and the answer.
fn brought(world: &World, client: &crate::support::Client, paths: &[&str]) -> (Value, Value) {
    let change = |path: &&str| {
        let folder = Path::new(path).parent().unwrap().display().to_string();
        format!("mkdir -p './{folder}'; rm -f '{path}'; echo bad > '{path}'; ")
    };
    let goal: String = paths.iter().map(change).collect();
    let result = ended(client, "kept", &goal);
    assert_eq!(result["status"], "completed", "{result}");
    let task = result["task_id"].as_str().unwrap_or_default().to_owned();
    (of_task(world, "preview", &task), of_task(world, "apply", &task))
}

fn failures(ways: Vec<Way>) -> Vec<String> {
    let mut failed = Vec::new();
    for way in ways {
        let world = world(FREELY, "");
        let repo = committed(&world);
        way.there.iter().for_each(|(path, text)| put(&repo, path, text));
        let By::File(setting, text) = way.by else { panic!("a file is meant") };
        if setting.starts_with(".git/") {
            continue;
        }
        put(&repo, setting, text);
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let was: Vec<_> = way.held.iter().map(|path| std::fs::read(repo.join(path)).ok()).collect();
        let all: Vec<&str> = way.held.iter().copied().chain(["src/free.rs"]).collect();
        let (preview, answer) = brought(&world, &client, &all);
        for (path, was) in way.held.iter().zip(was) {
            if std::fs::read(repo.join(path)).ok() != was || of(&preview, path)["action"] != "skip" {
                failed.push(format!("{setting}: {path} {preview} {answer}"));
            }
        }
        if !repo.join("src/free.rs").exists()
            || !errors(&answer).iter().all(|it| it.contains("a6s.apply_settings"))
        {
            failed.push(format!("{setting}: {answer}"));
        }
        daemon.stop();
    }
    failed
}

#[test]
fn what_settings_name_is_brought_by_no_apply() {
    let failed = failures(file_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_editors_and_hosts_start_in_a_folder_of_its_own_is_brought_by_no_apply() {
    let failed = failures(editor_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_servers_of_hosts_are_started_by_is_brought_by_no_apply() {
    let failed = failures(server_ways());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Files around `.mcp.json` and the like.
fn usual(repo: &Path) {
    put(
        repo,
        ".mcp.json",
        "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"tools/server.py\"]},\"b\":{\"command\":\"npm\",\
         \"args\":[\"run\",\"mcp\"]},\"c\":{\"command\":\"./tools/missing.sh\"}}}",
    );
    put(repo, ".husky/pre-push", "for f in parts/*; do sh \"$f\"; done\n");
    put(repo, "parts/a.sh", "");
    put(repo, "tools/server.py", "import json\n");
    put(repo, "tools/helper.py", "");
    put(repo, "package.json", "{}\n");
}

#[test]
fn where_a_setting_allows_it_what_settings_name_is_shown_apart() {
    let world = world("", "[a6s]\napply_settings = true\n");
    let repo = committed(&world);
    usual(&repo);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let later = [
        "tools/server.py",
        "package.json",
        "tools/missing.sh",
        "tools/json.py",
        "sub/AGENTS.md",
        "parts/a.sh",
        "parts/new.sh",
    ];
    let free = ["src/a.rs", "tools/helper.py", "tools/notes.md"];
    let all: Vec<&str> = later.into_iter().chain(free).collect();
    let (preview, answer) = brought(&world, &client, &all);
    assert_eq!(answer["state"], "awaiting", "{answer}");
    for path in all {
        assert_eq!(of(&preview, path)["runs_later"], later.contains(&path), "{path}: {preview}");
    }
    let shown = world.approver(&daemon).poll_until(|it| it["msg_type"] == "APPROVAL");
    let mut apart: Vec<&str> = shown["payload"]["details"]["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    apart.sort_unstable();
    let mut expected = later.to_vec();
    expected.sort_unstable();
    assert_eq!(apart, expected, "{shown}");
}

#[test]
fn without_that_setting_what_is_not_held_is_marked_and_written() {
    let world = world(FREELY, "");
    let repo = committed(&world);
    usual(&repo);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Those are told, and free to change, where a worker works in place.
    let (preview, answer) =
        brought(&world, &client, &["package.json", "tools/missing.sh", "tools/json.py", "tools/server.py"]);
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(3), 1), "{answer}");
    for path in ["package.json", "tools/missing.sh", "tools/json.py"] {
        assert_eq!(of(&preview, path)["runs_later"], true, "{preview}");
    }
    assert!(
        of(&preview, "tools/server.py")["reason"].as_str().unwrap().contains("tools/server.py"),
        "{preview}"
    );
    // An undo brings back what was there, and is shown apart all the same.
    let (_, undone) = ask(&world, "ed", "POST /undo", &json!({ "apply": answer["apply"], "force": false }));
    assert_eq!(undone["applied"], 3, "{undone}");
}

#[test]
fn what_nested_repositories_and_links_among_settings_lead_to_is_brought_by_no_apply() {
    let world = world(FREELY, "");
    let repo = committed(&world);
    for path in ["tools/m.sh", "tools/hooked/pre-commit", "tools/inc.cfg", "shared/settings.json"] {
        put(&repo, path, SH);
    }
    well(&repo, &["init", "-q", "nested"]);
    for (key, value) in [
        ("core.fsmonitor", "../tools/m.sh"),
        ("core.hooksPath", "../tools/hooked"),
        ("include.path", "../../tools/inc.cfg"),
    ] {
        well(&repo.join("nested"), &["config", key, value]);
    }
    // A setting names its server by way of a link.
    put(&repo, "tools/real/serve.py", "");
    std::os::unix::fs::symlink("tools/real", repo.join("bin")).unwrap();
    put(
        &repo,
        "sub/.mcp.json",
        "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"bin/serve.py\"]}}}",
    );
    std::fs::create_dir_all(repo.join("sub/.vscode")).unwrap();
    std::os::unix::fs::symlink("../../shared/settings.json", repo.join("sub/.vscode/settings.json")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let held = [
        "tools/m.sh",
        "tools/hooked/pre-commit",
        "tools/inc.cfg",
        "shared/settings.json",
        "tools/real/serve.py",
    ];
    let (_, answer) = brought(&world, &client, &held);
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(0), 5), "{answer}");
    // By other spellings, by removing it, and with a folder or a file in another's place.
    let spelled = json!([
        file("TOOLS/M.sh", "x"),
        file("tools/m.sh.", "x"),
        file("./tools//hooked/post-checkout", "x"),
        { "id": "g", "type": "delete", "path": "tools/m.sh", "content": "" },
        file("tools/m.sh/inner", "x"),
    ]);
    let (_, answer) = ask(&world, "ed", "POST /apply-artifacts", &json!({ "artifacts": spelled }));
    assert_eq!((&answer["applied"], errors(&answer).len()), (&json!(0), 5), "{answer}");
}

#[test]
fn what_a_setting_of_the_same_call_names_is_shown_apart() {
    let world = world("", "[a6s]\napply_settings = true\n");
    committed(&world);
    let daemon = world.start();
    let work = json!([
        file(".mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"node\",\"args\":[\"tools/new.js\"]}}}"),
        file("tools/new.js", "x"),
        file("tools/other.md", "x"),
    ]);
    let (_, answer) = ask(&world, "ed", "POST /apply-artifacts", &json!({ "artifacts": work }));
    assert_eq!(answer["state"], "awaiting", "{answer}");
    let shown = world.approver(&daemon).poll_until(|it| it["msg_type"] == "APPROVAL");
    assert_eq!(shown["payload"]["details"]["settings"], json!([".mcp.json", "tools/new.js"]), "{shown}");
}

#[test]
fn a_word_for_a_plain_file_is_none_for_one_that_has_come_to_run_later() {
    let world = world("", "[a6s]\napply_settings = true\n");
    let repo = committed(&world);
    put(&repo, "tools/server.py", "");
    let daemon = world.start();
    let work = json!({ "artifacts": [file("tools/server.py", "new")] });
    let (_, answer) = ask(&world, "ed", "POST /apply-artifacts", &work);
    let approver = world.approver(&daemon);
    let shown = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let granted = json!({ "status": "granted", "note": "" });
    approver.say_to("APPROVAL_DECISION", shown["msg_id"].as_str().unwrap(), "orchestrator", granted).ack();
    write(
        repo.join(".mcp.json"),
        "{\"mcpServers\":{\"a\":{\"command\":\"python3\",\"args\":[\"tools/server.py\"]}}}",
    );
    let (_, again) = ask(&world, "ed", "POST /apply-artifacts", &work);
    assert_eq!(again["state"], "awaiting", "{again}");
    assert_ne!(again["approval"], answer["approval"], "{again}");
}

#[test]
fn the_preview_says_at_a_terminal_what_runs_later() {
    let world = world(FREELY, "");
    let repo = committed(&world);
    usual(&repo);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(&client, "kept", "echo x >> package.json; echo x > src/b.rs");
    let task = result["task_id"].as_str().unwrap();
    let said = world.command(&["apply", task, "--preview"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("modify package.json (runs later)") && said.contains("create src/b.rs\n"),
        "{said}"
    );
}

/// If the daemon cannot examine the workspace as a whole, it does not know which files run later.
#[test]
fn where_it_is_not_known_what_runs_later_nothing_is_written() {
    let world = world(FREELY, "");
    let repo = committed(&world);
    let folders: String = (0..300).map(|number| format!("ls more/m{number}; ")).collect();
    (0..300).for_each(|number| write(repo.join(format!("more/m{number}/x")), ""));
    write(repo.join(".husky/pre-push"), &folders);
    let _daemon = world.start();
    let work = json!({ "artifacts": [file("src/b.rs", "new")] });
    let (_, answer) = ask(&world, "ed", "POST /apply-artifacts", &work);
    assert!(errors(&answer).iter().all(|it| it.contains(".husky/pre-push")), "{answer}");
    assert!(!repo.join("src/b.rs").exists(), "{answer}");
}
