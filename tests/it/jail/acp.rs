//! Agents that speak the Agent Client Protocol, in their jail: what they are told, how their permission requests are judged,
//! what becomes of their words and files, and ones that do everything wrong.

mod heard;
mod kept_sessions;
mod live;
mod mutated;
mod questions;
mod sessions;
mod steering;
mod unasked;

use std::fs;

use serde_json::{Value, json};

use crate::support::acp_agent::{AGENT, entry};
use crate::support::rules::{ALLOW, allow, policy, rule};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, World, eventually};

/// A daemon with such an agent, and rules about its permissions beside the one that lets it be delegated to.
fn started(how: &str, more: &str, rules: &[String]) -> (World, Daemon) {
    let world = World::new();
    world.configure(&entry(&world, "coder", how, more));
    world.rule(&format!("{ALLOW}\n{}", rules.join("\n")));
    let daemon = world.start();
    (world, daemon)
}

/// Delegates, waits, and answers the task.
fn done(world: &World, goal: &str) -> Value {
    let output =
        world.command(&["delegate", goal, "--worker", "coder", "--wait", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}\n{}", world.log()))
}

fn last<'a>(task: &'a Value, member: &str) -> &'a Value {
    &task["notes"].as_array().unwrap().last().unwrap()[member]
}

fn answer(task: &Value) -> &str {
    task["notes"].as_array().unwrap().last().unwrap()["details"]["stdout"]
        .as_str()
        .unwrap_or_else(|| panic!("{task:#}"))
}

fn written() -> String {
    allow("writes", &["when.action = [\"permission\"]", "when.path = [\"src/**\"]"])
}

#[test]
fn an_agent_asks_in_its_asking_mode_and_does_what_the_rules_allow() {
    let (world, _daemon) = started("", "", &[written()]);
    fs::create_dir(world.repo().join("src")).unwrap();
    let task = done(&world, "write src/a.txt new\nwrite b.txt other\nusage 0.25\nsay Done.");
    assert_eq!(task["state"], "completed", "{task:#}");
    assert_eq!(answer(&task).trim(), "Done.", "{task:#}");
    let metadata = last(&task, "metadata");
    assert_eq!(metadata["worker_type"], "acp");
    assert_eq!(
        (&metadata["tokens_input"], &metadata["tokens_cache_read"]),
        (&json!(200), &json!(14)),
        "{metadata:#}"
    );
    assert_eq!(metadata["cost_estimate_usd"], 0.25);
    let paths: Vec<&str> = last(&task, "details")["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["src/a.txt"], "only what was allowed is written: {task:#}");
    assert!(!world.repo().join("src/a.txt").exists(), "it works in a copy");
}

#[test]
fn it_is_offered_no_files_and_no_terminals_and_hears_that_from_each_method() {
    let (world, _daemon) = started("", "", &[]);
    let task = done(&world, "call fs/read_text_file\ncall terminal/create\ncall _vendor/thing");
    let said = answer(&task);
    let offered = "[default None None {\"elicitation\": {\"form\": {}}, \"fs\": {\"readTextFile\": false, \"writeTextFile\": false}, \"terminal\": false}]";
    assert!(said.starts_with(offered), "what came before the turn is no answer: {said}");
    for method in ["fs/read_text_file", "terminal/create", "_vendor/thing"] {
        assert!(said.contains(&format!("{method} -32601")), "{said}");
    }
}

#[test]
fn a_person_answers_what_a_rule_asks_about_and_sees_the_call() {
    let asks = rule(
        "ask",
        "approve",
        "a person looks",
        &["when.action = [\"permission\"]", "approve.by = [\"human\"]", "approve.expires = \"5m\""],
    );
    let (world, _daemon) = started("", "", &[asks]);
    for (verdict, expected) in [("approve", "ran"), ("deny", "not run")] {
        let task = format!("t-{verdict}");
        let begun = world
            .command(&["delegate", "run make deploy", "--worker", "coder", "--task", &task])
            .output()
            .unwrap();
        assert!(begun.status.success(), "{begun:?}");
        let waiting = until_some("it asks", || {
            let listed = world.command(&["approval", "list", "--json"]).output().unwrap();
            let listed: Value = serde_json::from_slice(&listed.stdout).ok()?;
            let rows = listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned())?;
            rows.first().cloned()
        });
        assert!(waiting.to_string().contains("make deploy"), "{waiting:#}");
        let number = waiting["id"].to_string().trim_matches('"').to_owned();
        let note = if verdict == "deny" { "--reason" } else { "--note" };
        let answered = at_the_terminal(&world, &format!("{verdict} {number} {note} because"));
        assert!(answered.status.success(), "{answered:?}");
        let task = until_some("the task has ended", || {
            let shown = world.command(&["task", "show", &task, "--json"]).output().unwrap();
            let task: Value = serde_json::from_slice(&shown.stdout).ok()?;
            (task["state"] == "completed").then_some(task)
        });
        assert!(answer(&task).contains(expected), "{task:#}");
    }
}

#[test]
fn paths_of_its_copy_are_judged_as_paths_of_the_workspace() {
    let no =
        rule("no", "deny", "the key stays", &["when.action = [\"permission\"]", "when.path = [\"keys/**\"]"]);
    let all = allow("every", &["when.action = [\"permission\"]"]);
    let (world, _daemon) = started("", "", &[no, all]);
    fs::create_dir(world.repo().join("keys")).unwrap();
    fs::write(world.repo().join("keys/a"), "a").unwrap();
    let task = done(&world, "write keys/a mine\nwrite b.txt mine");
    let paths = last(&task, "details")["artifacts"].to_string();
    assert!(paths.contains("b.txt") && !paths.contains("keys/a"), "{task:#}");
}

#[test]
fn calls_that_name_no_tool_are_judged_by_their_kind() {
    let run = allow("runs", &["when.action = [\"permission\"]", "when.command = [\"make check\"]"]);
    let edit = allow("edits", &["when.action = [\"permission\"]", "when.path = [\"src/**\"]"]);
    let (world, _daemon) = started("nameless", "", &[run, edit]);
    fs::create_dir(world.repo().join("src")).unwrap();
    let task = done(&world, "run make check\nrun make clean\nwrite src/a.txt x\nwrite b.txt x");
    let said = answer(&task);
    assert!(said.contains("ran not run"), "{said}");
    let paths = last(&task, "details")["artifacts"].to_string();
    assert!(paths.contains("src/a.txt") && !paths.contains("b.txt"), "{task:#}");
}

#[test]
fn a_call_without_a_name_or_a_title_goes_by_what_it_tells_and_no_command_is_made_up() {
    let served = allow("served", &["when.action = [\"permission\"]", "when.tool = [\"mcp__files__*\"]"]);
    let shell = allow("shell", &["when.action = [\"permission\"]", "when.command = [\"make check\"]"]);
    let (world, _daemon) = started("", "", &[served, shell]);
    let goal = "mcp files.read\nmcp mail.send\nbare";
    let output = world.command(&["delegate", goal, "--worker", "coder", "--wait"]).output().unwrap();
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for words in ["files.read allowed: True", "mail.send allowed: False", "bare allowed: False"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // What people see while it works, and what was decided.
    for line in ["* mcp__files__read", "[allowed: mcp__files__read]", "[denied: mcp__mail__send"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(told.contains("[denied: runs a command that it does not tell"), "{told}");
}

#[test]
fn what_only_offers_to_be_allowed_for_good_is_not_allowed() {
    let (world, _daemon) = started("only-always", "", &[allow("every", &["when.action = [\"permission\"]"])]);
    let task = done(&world, "run true");
    assert!(answer(&task).contains("not run") && answer(&task).contains("\"optionId\": \"no\""), "{task:#}");
}

#[test]
fn another_session_counts_for_nothing() {
    let (world, _daemon) = started("", "", &[allow("every", &["when.action = [\"permission\"]"])]);
    let task = done(&world, "elsewhere");
    let said = answer(&task);
    assert!(said.contains("elsewhere allowed: False") && !said.contains("NOT OURS"), "{said}");
}

#[test]
fn a_mode_that_it_leaves_is_set_again_and_one_that_it_leaves_for_good_ends_the_run() {
    let (world, _daemon) = started("", "", &[]);
    let task = done(&world, "mode bypass\nwhich-mode");
    assert!(answer(&task).contains("mode default"), "{task:#}");
    let (world, _daemon) = started("stubborn", "", &[]);
    let task = done(&world, "mode bypass\nwhich-mode");
    assert_eq!(task["state"], "failed");
    assert!(
        last(&task, "summary")
            .as_str()
            .unwrap()
            .contains("it has left the mode 'default' for 'bypass' again and again"),
        "{task:#}"
    );
}

#[test]
fn a_mode_of_an_agent_whose_mode_was_not_set_is_in_its_transcript_once() {
    let (world, _daemon) = started("modeless", "", &[]);
    let goal = "mode bypass\nmode bypass\nsay x";
    let output = world.command(&["delegate", goal, "--worker", "coder", "--wait"]).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(text.matches("[it has set its mode to 'bypass' by itself]").count(), 1, "{text}");
}

#[test]
fn modes_and_models_that_are_options_are_set_by_their_category() {
    let (world, _daemon) = started("options", "default_model = \"large\"\nacp_mode = \"bypass\"", &[]);
    let said = done(&world, "say x");
    assert!(answer(&said).contains("[auto bypass large"), "{said:#}");
    let (world, _daemon) = started("", "acp_mode = \"yolo\"", &[]);
    let task = done(&world, "say x");
    assert_eq!(task["state"], "failed");
    assert!(
        last(&task, "summary")
            .as_str()
            .unwrap()
            .contains("it has no mode 'yolo'; it has: auto, default, bypass"),
        "{task:#}"
    );
}

#[test]
fn it_is_signed_in_by_a_key_and_never_by_what_needs_a_person() {
    let (world, _daemon) = started("sign-in", "", &[]);
    assert_eq!(done(&world, "say x")["state"], "completed");
    let (world, _daemon) = started("person", "", &[]);
    let task = done(&world, "say x");
    assert_eq!(task["state"], "failed");
    let said = last(&task, "summary").as_str().unwrap();
    assert!(
        said.contains("it wants to be signed in; its ways are: none that works without a person"),
        "{said}"
    );
}

#[test]
fn a_thousand_requests_wait_in_bounds_and_one_that_is_taken_back_is_gone() {
    let asks = rule(
        "ask",
        "approve",
        "a person looks",
        &["when.action = [\"permission\"]", "approve.by = [\"human\"]", "approve.expires = \"5m\""],
    );
    let (world, _daemon) = started("", "", &[asks]);
    let task = done(&world, "thousand");
    assert!(answer(&task).contains("denied 984, taken back -32800"), "{task:#}");
    eventually("none of its requests waits any more", || {
        let listed = world.command(&["approval", "list", "--json"]).output().unwrap();
        !String::from_utf8_lossy(&listed.stdout).contains("Probe")
    });
}

#[test]
fn bad_agents_fail_their_task_with_a_reason_and_nothing_of_them_is_left() {
    let cases = [
        ("v2", "say x", "it speaks version 2 of ACP; the daemon speaks 1"),
        ("stop-refusal", "say x", "the model has refused to go on"),
        ("stop-max_tokens", "say x", "limit of tokens"),
        ("stop-cancelled", "say x", "ended the turn as cancelled"),
        ("stop-whatever", "say x", "a reason that ACP does not have: 'whatever'"),
        ("", "die 3", "it ended with exit code 3 before it answered"),
        ("", "long", "it wrote a line of more than 16777216 bytes"),
    ];
    for (how, goal, expected) in cases {
        let (world, _daemon) = started(how, "", &[]);
        let task = done(&world, goal);
        assert_eq!(task["state"], "failed", "{how} {goal}: {task:#}");
        let said = last(&task, "summary").as_str().unwrap();
        assert!(said.contains(expected), "{how} {goal}: {said}");
    }
}

#[test]
fn garbage_and_floods_and_processes_that_stay_do_not_keep_a_turn_from_its_end() {
    let (world, _daemon) = started("stays", "", &[]);
    let task = done(&world, "garbage\nflood 2000\nfork\nusage -1\nsay end");
    assert_eq!(task["state"], "completed", "{task:#}");
    assert!(
        last(&task, "metadata")["cost_estimate_usd"].is_null(),
        "less than nothing is no price: {task:#}"
    );
    // One of them has ignored its closed input, and another has left its session.
    eventually("none of its processes is left", || processes(&world) == 0);
}

/// How many processes of the agent run.
fn processes(world: &World) -> usize {
    let script = world.path("tools/agent.py").display().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    lines.filter(|it| String::from_utf8_lossy(it).contains(&script)).count()
}

#[test]
fn a_path_outside_is_none_that_a_rule_allows_inside() {
    let (world, _daemon) = started("", "", &[written()]);
    fs::create_dir(world.repo().join("src")).unwrap();
    let outside = world.path("outside.txt");
    let goal = format!("write src/../../outside.txt x\nwrite {} x\nwrite src/a.txt x", outside.display());
    let task = done(&world, &goal);
    // It would try to write what it was allowed to, which its jail would not bear.
    assert_eq!(task["state"], "completed", "{task:#}");
    let artifacts = last(&task, "details")["artifacts"].as_array().unwrap();
    assert!(artifacts.len() == 1 && artifacts[0]["path"] == "src/a.txt", "{task:#}");
    assert!(!outside.exists() && !world.path("repo/../outside.txt").exists());
}

/// The agent as `[[agent]]` names it, and not as a worker.
fn as_an_agent() -> (World, Daemon) {
    let world = World::new();
    let folder = world.path("tools");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent.py"), AGENT).unwrap();
    let at = folder.display();
    world.configure(&format!(
        "[[agent]]\nid = \"coder\"\ncommand = [\"/usr/bin/python3\", \"{at}/agent.py\"]\nread_only = [\"{at}\"]\nstream = \"acp\"\n"
    ));
    world.rule(&policy([allow("every", &["when.action = [\"delegate\", \"permission\"]"])]));
    let daemon = world.start();
    (world, daemon)
}

#[test]
fn an_agent_of_the_configuration_speaks_it_too_and_its_words_are_shown_as_they_come() {
    let (world, _daemon) = as_an_agent();
    let shown = world
        .command(&["delegate", "write a.txt x\nsay It is done.", "--worker", "coder", "--wait"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&shown.stdout).into_owned() + &String::from_utf8_lossy(&shown.stderr);
    for words in ["* Write a.txt", "[allowed: Write a.txt]", "It is done.", "a.txt"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
