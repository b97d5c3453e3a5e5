//! Settings that run later: every row of the table is held or reported, wherever it is planted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use provost::base::later::{Held, ROWS, Row, Whose, row_at, row_over};
use serde_json::{Value, json};

use crate::support::{Client, World};

/// So many rows at a time that the report, which lists 64 findings, has room for them at two places.
const AT_A_TIME: usize = 24;

/// Makes, or spoils, every path of the file `list`. What cannot be done is passed over.
const PLANT: &str =
    "while read -r p; do mkdir -p \"$(dirname \"$p\")\"; echo x > \"$p\"; done < list 2>/dev/null; true";
const SPOIL: &str = "while read -r p; do echo x >> \"$p\"; chmod 777 \"$p\"; mv -f \"$p\" moved; rm -rf \"$p\"; \
                     echo x > \"$p\"; done < list 2>/dev/null; mv packages p2 2>/dev/null; true";

/// Every known spelling with its row.
fn examples() -> Vec<(&'static Row, &'static str)> {
    ROWS.iter().flat_map(|row| row.examples().map(move |path| (row, path))).collect()
}

fn put(world: &World, path: &str, text: &str) {
    let path = world.repo().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.repo().join(path)).ok()
}

/// Runs a goal to its end; the path and kind of every finding.
fn found(client: &Client, goal: &str) -> BTreeSet<(String, String)> {
    let (task, reply) = client.delegate("shell", goal, json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let handoff = &result["artifacts"]["metadata"]["handoff"];
    assert_eq!((&handoff["unknown"], handoff["more"].as_u64().unwrap_or(0)), (&Value::Null, 0), "{result}");
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let all = handoff["findings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|it| (word(it, "path"), word(it, "kind"))).collect()
}

fn kind(row: &Row) -> &'static str {
    if row.whose == Whose::Instructions { "instructions" } else { "setting" }
}

#[test]
fn every_row_is_held_or_reported_wherever_a_worker_makes_it() {
    let world = World::new();
    // Without hooks of git's nothing stands for the files of what manages them.
    put(&world, ".git/hooks/pre-push", "#!/bin/sh\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for some in examples().chunks(AT_A_TIME) {
        let both: Vec<String> =
            some.iter().flat_map(|(_, path)| [(*path).to_owned(), format!("sub/deep/{path}")]).collect();
        put(&world, "list", &(both.join("\n") + "\n"));
        let found = found(&client, PLANT);
        for (row, path) in some {
            let reported = |at: &str| found.contains(&(at.to_owned(), kind(row).to_owned()));
            let below = format!("sub/deep/{path}");
            assert!(text(&world, &below).is_some() && reported(&below), "{below} is not reported: {found:?}");
            let there = text(&world, path).is_some();
            assert!(!(there && row.held == Held::Kept), "{path} was made at the top");
            assert_eq!(there, reported(path), "{path}: {found:?}");
        }
    }
    let left: Vec<_> = fs::read_dir(world.repo()).unwrap().flatten().map(|it| it.file_name()).collect();
    assert!(!left.contains(&".vscode".into()) && !left.contains(&".config".into()), "{left:?}");
}

#[test]
fn where_git_runs_no_hooks_nothing_stands_for_what_manages_hooks_and_it_is_reported() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    put(&world, "list", "lefthook.yml\n.husky/pre-commit\n.vscode/tasks.json\n");
    let goal = format!("ls -A > seen; {PLANT}");
    let reported = found(&client, &goal);
    for path in ["lefthook.yml", ".husky/pre-commit"] {
        assert!(reported.contains(&(path.to_owned(), "setting".to_owned())), "{path}: {reported:?}");
    }
    assert!(text(&world, ".vscode/tasks.json").is_none(), "others are held all the same");
    let seen = text(&world, "seen").unwrap();
    assert!(!seen.contains("lefthook") && seen.contains(".vscode"), "{seen}");

    for path in ["lefthook.yml", ".husky/pre-commit"] {
        fs::remove_file(world.repo().join(path)).unwrap();
    }
    fs::remove_dir(world.repo().join(".husky")).unwrap();
    put(&world, "scripts/hooks/pre-commit", "#!/bin/sh\n");
    let set = ["config", "core.hooksPath", "scripts/hooks"];
    let git = std::process::Command::new("git").args(set).current_dir(world.repo()).status();
    assert!(git.unwrap().success());
    found(&client, &goal);
    assert!(text(&world, "lefthook.yml").is_none() && text(&world, ".husky/pre-commit").is_none());
}

#[test]
fn settings_that_are_there_stay_as_they_are_and_instructions_are_reported() {
    let world = World::new();
    let mut places = Vec::new();
    for (row, path) in examples() {
        for path in [path.to_owned(), format!("packages/a/{path}")] {
            put(&world, &path, "mine\n");
            places.push((row, path));
        }
    }
    // As folders.
    for path in
        ["packages/b/.claude/settings.json", "packages/b/.config/mise/conf.d/x.toml", "packages/b/.hg/hgrc"]
    {
        put(&world, path, "mine\n");
        places.push((row_over(path.as_bytes()).unwrap(), path.to_owned()));
    }
    let list: Vec<&str> = places.iter().map(|(_, path)| path.as_str()).collect();
    put(&world, "list", &(list.join("\n") + "\n"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let found = found(&client, SPOIL);
    for (row, path) in &places {
        let is = text(&world, path);
        if row.is_read_only() {
            assert_eq!(is.as_deref(), Some("mine\n"), "{path}");
            let mode = fs::metadata(world.repo().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "{path}");
        } else {
            assert_eq!(is.as_deref(), Some("x\n"), "{path} is the user's to have changed");
            assert!(
                found.contains(&(path.clone(), kind(row).to_owned())),
                "{path} is not reported: {found:?}"
            );
        }
    }
}

#[test]
fn what_was_fetched_can_be_replaced_and_is_reported() {
    let world = World::new();
    put(&world, "node_modules/x/.vscode/tasks.json", "mine\n");
    put(&world, "node_modules/y/.envrc", "mine\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let found = found(&client, "rm -r node_modules/y && echo x > node_modules/x/.vscode/tasks.json");
    let expected = ["node_modules/x/.vscode/tasks.json", "node_modules/y/.envrc"];
    assert_eq!(found, expected.map(|path| (path.to_owned(), "setting".to_owned())).into());
}

#[test]
fn what_a_link_among_settings_leads_to_is_held_too() {
    let world = World::new();
    put(&world, "shared/editor/tasks.json", "mine\n");
    fs::create_dir_all(world.repo().join("packages/a")).unwrap();
    symlink("../../shared/editor", world.repo().join("packages/a/.vscode")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let none =
        found(&client, "echo x > packages/a/.vscode/tasks.json; echo x > shared/editor/tasks.json; true");
    assert_eq!(
        (text(&world, "shared/editor/tasks.json").as_deref(), none.len()),
        (Some("mine\n"), 0),
        "{none:?}"
    );
    let turned = found(&client, "mkdir e; echo x > e/tasks.json; ln -sfn ../../e packages/a/.vscode");
    assert!(turned.contains(&("packages/a/.vscode".into(), "setting".into())), "{turned:?}");
}

#[test]
fn no_worker_is_started_in_a_directory_of_settings() {
    let world = World::new();
    put(&world, "packages/a/.vscode/tasks.json", "mine\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x > tasks.json";
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "packages/a/.vscode" }));
    reply.ack();
    let result = client.result_of(&task);
    assert!(result.to_string().contains("settings that run later"), "{result}");
    assert_eq!(text(&world, "packages/a/.vscode/tasks.json").as_deref(), Some("mine\n"));
}

#[test]
fn rows_fit_in_any_folder_and_any_size_of_letters_and_nothing_else() {
    for path in [
        "AGENTS.md",
        "docs/agents.MD",
        "a/.VSCode",
        "mise.prod.local.toml",
        "x/.config/mise",
        "all.code-workspace",
    ] {
        assert!(row_at(path.as_bytes()).is_some(), "{path}");
    }
    for path in
        ["", "/", "agents.md.txt", "src/vscode", "config/mise", "mise", "code-workspace", "lefthook", "hg"]
    {
        assert!(row_at(path.as_bytes()).is_none(), "{path}");
    }
    assert_eq!(row_over(b"a/.claude/x/AGENTS.md").map(|row| row.pattern), Some(".claude"));
    assert!(row_over(b"src/main.rs").is_none() && row_at(b"\xff/.vscode\xff").is_none());
    let all: BTreeSet<&str> = ROWS.iter().map(|row| row.pattern).collect();
    assert_eq!(all.len(), ROWS.len(), "a pattern has one row");
    for row in ROWS {
        assert!(row.source.starts_with("https://"), "{}", row.pattern);
        assert!(row.examples().all(|path| row_at(path.as_bytes()) == Some(row)), "{}", row.pattern);
        assert!(
            row.examples().all(|path| !path.contains('*') && Path::new(path).is_relative()),
            "{}",
            row.pattern
        );
    }
}

#[test]
fn what_is_read_only_is_so_also_in_what_is_only_reported() {
    let inner = [".env/.vscode/tasks.json", ".rules/.claude/settings.json", ".github/instructions/.envrc"];
    for path in inner {
        let row = row_over(path.as_bytes()).unwrap();
        assert!(row.is_read_only(), "{path}: {row:?}");
    }
    // Where nothing on the way is read-only, the outermost row counts.
    let row = row_over(b".rules/x/AGENTS.md").unwrap();
    assert_eq!((row.pattern, row.held), (".rules", Held::Reported));
}

#[test]
fn whatever_links_among_settings_lead_over_is_held_or_told() {
    let world = World::new();
    for path in ["two/tasks.json", "real.json", "attributes", "scripts/check.sh"] {
        put(&world, path, "mine\n");
    }
    let links = [
        // Over another link, to what is not there, and a link in a folder of settings.
        ("packages/a/.vscode", "../../one"),
        ("one", "two"),
        ("packages/b/.vscode", "../../gone"),
        ("packages/c/.vscode/tasks.json", "../../../real.json"),
        (".git/hooks/pre-commit", "../../scripts/check.sh"),
        (".git/info/attributes", "../../attributes"),
    ];
    for (link, to) in links {
        let at = world.repo().join(link);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for f in two/tasks.json one/tasks.json real.json attributes packages/c/.vscode/tasks.json scripts/check.sh; do \
                echo x > $f; mv $f moved; done; mkdir gone; echo x > gone/tasks.json; true";
    let nothing = found(&client, goal);
    for path in ["two/tasks.json", "real.json", "attributes", "scripts/check.sh"] {
        assert_eq!(text(&world, path).as_deref(), Some("mine\n"), "{path}");
    }
    assert!(!world.repo().join("gone").exists() && nothing.is_empty(), "{nothing:?}");
    let turned = found(&client, "mkdir e; echo x > e/tasks.json; ln -sfn e one");
    assert!(turned.contains(&("one".into(), "protected".into())), "{turned:?}");
}

#[test]
fn what_links_from_outside_of_the_tasks_folder_lead_to_is_held() {
    let world = World::new();
    put(&world, "sub/conf/settings.json", "mine\n");
    put(&world, "sub/more", "");
    symlink("sub/conf", world.repo().join(".claude")).unwrap();
    symlink("sub/fresh.json", world.repo().join(".mcp.json")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x > conf/settings.json; mv conf c2; echo x > fresh.json; true";
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "sub" }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(text(&world, "sub/conf/settings.json").as_deref(), Some("mine\n"));
    assert!(!world.repo().join("sub/fresh.json").exists());
    // One that leads to the folder itself leaves nothing to work in.
    symlink("sub", world.repo().join(".vscode")).unwrap();
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "sub" }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result.to_string().contains(".vscode leads"), "{result}");
}
