//! Documents keep up with the product: their commands exist, their examples run, their links lead somewhere.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use provost::cli::{definition, read};
use serde_json::json;

use crate::support::rules::{approvers, ask, policy};
use crate::support::source::{files, project_root};
use crate::support::{Client, Daemon, Reply, World, provost, sample};

/// Every document, by its path from the project's root.
fn documents() -> Vec<(String, String)> {
    let root = project_root();
    let found = files(&root, &root).into_iter().filter(|path| path.ends_with(".md"));
    let all: Vec<_> =
        found.map(|path| (path.clone(), fs::read_to_string(root.join(path)).unwrap())).collect();
    assert!(all.iter().any(|(path, _)| path == "README.md"), "there is no README");
    all
}

/// The lines between the fences of a document, without prompts and without what is printed below them.
fn code_lines(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.lines()
        .filter(|line| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            inside && !fence
        })
        .map(|line| line.trim_start().trim_start_matches("$ "))
        .collect()
}

/// The command lines of ours in a line of shell: the words after each `provost`.
fn command_lines(line: &str) -> Vec<Vec<&str>> {
    let code = line.split(" #").next().unwrap_or_default();
    let mut lines = Vec::new();
    for (at, _) in code.match_indices("provost ") {
        let starts = at == 0 || code[..at].ends_with("$(") || code[..at].ends_with("; ");
        if starts {
            let words = code[at + 8..].split_whitespace();
            lines.push(words.map(|word| word.trim_end_matches([')', '"', '.', ','])).collect());
        }
    }
    lines
}

/// Returns the subcommand that the words name, and its flags.
fn subcommand(words: &[&str]) -> Option<(Vec<String>, BTreeSet<String>)> {
    let is_word = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    words.iter().take(1).find(is_word)?;
    let typed = ["provost"].iter().chain(words).map(OsString::from).collect();
    let line = definition();
    let mut meant = read(typed, &line).args.into_iter().skip(1).map(|it| it.into_string().unwrap());
    let noun = meant.next()?;
    let mut within = line.find_subcommand(&noun);
    let mut command = vec![noun];
    for word in meant {
        let Some(verb) = within.and_then(|it| it.find_subcommand(&word)) else { break };
        within = Some(verb);
        command.push(word);
    }
    let flags = words.iter().filter(|word| word.starts_with("--")).map(ToString::to_string).collect();
    Some((command, flags))
}

#[test]
fn every_command_line_in_the_documents_is_one_that_exists() {
    let mut seen = BTreeSet::new();
    for (path, text) in documents() {
        for words in code_lines(&text).into_iter().flat_map(command_lines) {
            let Some((command, flags)) = subcommand(&words) else { continue };
            let help = Command::new(provost()).args(&command).arg("--help").output().unwrap();
            assert!(help.status.success(), "{path}: there is no `provost {}`", command.join(" "));
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            for flag in flags {
                assert!(help.contains(&flag), "{path}: `provost {}` has no {flag}", command.join(" "));
            }
            seen.insert(command.join(" "));
        }
    }
    for command in [
        "daemon start",
        "daemon env",
        "task delegate",
        "approval list",
        "approval approve",
        "policy check",
        "daemon stop",
    ] {
        assert!(seen.contains(command), "no document shows `provost {command}`; found {seen:?}");
    }
}

#[test]
fn a_command_line_that_does_not_exist_would_be_found() {
    let text = "text\n```sh\n$ eval \"$(provost env --shell fish)\"  # provost nothing\nprovost key add x\n```\nprovost x";
    let lines: Vec<_> = code_lines(text).into_iter().flat_map(command_lines).collect();
    let found: Vec<_> = lines.iter().filter_map(|words| subcommand(words)).map(|(words, _)| words).collect();
    assert_eq!(found, [["daemon", "env"], ["key", "add"]]);
}

/// The targets of a document's links, `](target)`.
fn links(text: &str) -> Vec<&str> {
    text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split(')').next()).collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(document: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(document).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = project_root();
    let mut checked = 0;
    for (path, text) in documents() {
        let here = root.join(&path);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { here.clone() } else { here.parent().unwrap().join(file) };
            assert!(target.exists(), "{path}: {link} does not exist");
            assert!(heading.is_empty() || has_anchor(&target, heading), "{path}: {link} has no such heading");
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links were found");
}

#[test]
fn every_test_that_a_document_names_exists() {
    let root = project_root();
    let tests: String = files(&root, &root.join("tests/it"))
        .into_iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| fs::read_to_string(root.join(path)).unwrap())
        .collect();
    let text = fs::read_to_string(root.join("docs/threat-model.md")).unwrap();
    // Names of tests are sentences, so they are the only words with so many joints.
    let is_test = |name: &&str| name.matches('_').count() >= 3 && !name.contains(['/', '.', ' ', '=']);
    let named: Vec<_> = text.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 20, "the threat model names {} tests", named.len());
    for name in named {
        assert!(tests.contains(&format!("fn {name}(")), "docs/threat-model.md: there is no test `{name}`");
    }
}

/// Every delegation to the shell is looked at.
fn rules() -> String {
    let shell = ["when.action = [\"delegate\"]", "when.worker = [\"shell\"]"];
    policy([ask("\"client:approver\"", &shell), approvers()])
}

/// Runs the example with a secret until it has answered once.
fn approve_with(world: &World, daemon: &Daemon, secret: &str, pattern: &str) -> Output {
    let mut approver = Command::new("python3");
    approver
        .arg(project_root().join("docs/examples/approver.py"))
        .args(["--once", "--seconds", "20", "--grant", pattern])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.home())
        .env("DEVIT_SOCK", &daemon.socket)
        .env("DEVIT_SECRET", secret);
    // It answers these tests, which have asked: from elsewhere.
    crate::support::apart(&approver)
}

fn asked(client: &Client, goal: &str) -> String {
    let (task, reply) = client.delegate("shell", goal, json!({ "note": "ä \"quoted\" ☃ 1e3" }));
    assert_eq!(reply.ack()["approval"], "required");
    task
}

#[test]
fn the_example_approver_lets_a_delegation_run_and_turns_another_down() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let key = world.key_of("client:approver");

    let task = asked(&client, "echo yes > granted.txt");
    let done = approve_with(&world, &daemon, &key, "echo *");
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("approver: granted"), "{done:?}");
    assert_eq!(client.result_of(&task)["status"], "completed");
    assert_eq!(fs::read_to_string(world.repo().join("granted.txt")).unwrap(), "yes\n");

    let task = asked(&client, "touch denied.txt");
    let done = approve_with(&world, &daemon, &key, "echo *");
    assert!(String::from_utf8_lossy(&done.stdout).contains("approver: denied"), "{done:?}");
    let result = client.result_of(&task);
    assert_eq!(
        (&result["status"], &result["artifacts"]["metadata"]["failure"]["reason"]),
        (&json!("failed"), &json!("approval_denied"))
    );
    assert!(!world.repo().join("denied.txt").exists());
    daemon.stop();
}

#[test]
fn the_example_approver_gets_nowhere_with_the_shared_secret() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let task = asked(&client, "echo no > granted.txt");
    let done = approve_with(&world, &daemon, &world.secret(), "echo *");
    assert!(!done.status.success(), "{done:?}");
    assert_eq!(client.task(&task).unwrap()["status"], "pending");
    assert_eq!(client.poll(), Reply::Nothing);
    daemon.stop();
}

#[test]
fn the_extensions_on_the_page_about_devit_are_there() {
    let world = World::new();
    world.rule(&rules());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let task = asked(&client, "echo later");
    let shown = client.say("TASK_REQUEST", json!({ "task_id": task })).message();
    assert_eq!((&shown["msg_type"], &shown["payload"]["id"]), (&json!("TASK_RESPONSE"), &json!(task)));
    assert!(shown["payload"]["approval_id"].is_string(), "{shown}");
    let status = |payload| client.say("STATUS_REQUEST", payload).message()["payload"].clone();
    assert_eq!(status(json!({ "task_id": task }))["id"], json!(task));
    assert_eq!(status(json!({ "filter": "active" }))["active_tasks"][0]["id"], json!(task));
    assert_eq!(status(json!({ "filter": "failed" }))["active_tasks"], json!([]));
    assert_eq!(status(json!({ "limit": 0 }))["truncated"], json!(false));
    let asked = world.approver(&daemon).poll_until(|it| it["msg_type"] == "APPROVAL")["payload"].clone();
    for member in
        ["explanation", "digest", "expires_at", "risk_level", "tool", "task_id", "details", "timestamp"]
    {
        assert!(!asked[member].is_null(), "{member} is missing from {asked}");
    }
    daemon.stop();
}

/// A text whose words with digits, such as times and ids, are all the same.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = word.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let is_number = word.contains(|c: char| c.is_ascii_digit());
        masked.push_str(if is_number { "#" } else { &word[..word.len() - end.len()] });
        masked.push_str(end);
    }
    masked
}

#[test]
fn the_demo_shows_what_the_readme_says_and_leaves_nothing_behind() {
    let world = World::new();
    let (place, root) = (sample::prepared(&world), project_root());
    let done = sample::demo(&place, &[]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n{out}\n{err}", done.status);
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let shown = readme.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let both = masked(&format!("{out}{err}"));
    for line in shown.lines().filter(|line| !line.contains("task ")) {
        assert!(
            both.contains(masked(line).trim_end()),
            "the README shows what the demo does not say: {line}\n{both}"
        );
    }
    assert!(!place.exists(), "something was left behind");
}
