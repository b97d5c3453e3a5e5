//! The table of endpoints: each row is served, has a client, and is reached by a person and by a model, or
//! says why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use provost::api::wire::EVENT_STREAM;
use provost::api::{ENDPOINTS, Reach};
use serde_json::{Value, json};

use crate::support::desk::ask;
use crate::support::mcp_host::Host;
use crate::support::rules::ALLOW;
use crate::support::{World, provost, source};

/// Commands that ask no daemon for anything, with the reason.
const WITHOUT_ENDPOINTS: [(&str, &str); 40] = [
    ("config init", "writes files"),
    ("daemon env", "prints what the daemon has written down"),
    ("workflow list", "reads files"),
    ("workflow show", "reads files"),
    ("broker skill", "prints a text"),
    ("broker boot-block", "prints a text"),
    ("git uninstall", "removes files"),
    ("git status", "reads files"),
    ("graph languages", "prints a table"),
    ("hook install", "writes files"),
    ("hook remove", "removes lines"),
    ("hook status", "reads files"),
    ("passkey install", "writes root's list, which no daemon may"),
    ("key list", "reads the ring of keys"),
    ("key rotate", "writes the ring of keys, and puts that on record as `key add` does"),
    ("secret add", "writes the vault"),
    ("secret list", "reads the vault"),
    ("secret remove", "writes the vault"),
    ("config allow", "writes a rule"),
    ("policy", "reads rules"),
    ("jail", "shows and tries a jail of its own"),
    ("store backup", "reads the store"),
    ("store restore", "writes the store while no daemon runs"),
    ("store migrate", "makes the tables of a database"),
    ("host export-key", "reads the journal's key, which no daemon gives out"),
    ("host invite", "reads the journal's key, which no daemon gives out"),
    ("host join", "writes the state folder before the first start of its daemon"),
    ("worker join", "writes the state folder before the first start of its daemon"),
    ("host remove", "marks a row that every daemon looks at in its turn, also where none runs here"),
    ("host drain", "marks a row that the host's daemon looks at in its turn"),
    ("host upgrade", "raises a number of the table of hosts, under the row that all daemons wait for"),
    ("store move", "moves the store while no daemon runs"),
    ("store accept-loss", "writes the store while no daemon runs"),
    ("journal verify", "reads the store"),
    ("journal head", "reads the store"),
    ("journal export", "reads the store"),
    ("mcp", "asks for what its tools ask for"),
    ("hook wait", "waits for a file of its own"),
    ("web close", "ends a process that is no daemon"),
    ("ui", "asks for what its screens show, as the commands about it do"),
];

/// Commands of a worker in its jail, and texts.
const ELSEWHERE: [&str; 4] = ["worker report", "worker task", "completions", "man"];

/// The commands that are leaves of the command line, found in its own help.
fn commands(of: &[&str], found: &mut BTreeSet<String>) {
    let said = std::process::Command::new(provost()).args(of).arg("--help").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let list = match said.split_once("\nCommands:\n") {
        Some((_, list)) => list.split_once("\n\n").unwrap().0,
        // The nouns stand in groups.
        None if of.is_empty() => said.split_once("\nOptions:\n").unwrap().0,
        None => "",
    };
    let names = list.lines();
    let names: Vec<&str> = names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    if names.is_empty() {
        found.insert(of.join(" "));
    }
    for name in names {
        commands(&[of, &[name]].concat(), found);
    }
}

fn by(reach: Reach) -> &'static [&'static str] {
    match reach {
        Reach::By(list) => list,
        Reach::Not(why) => {
            assert!(why.len() > 15, "a reason says why: {why}");
            &[]
        }
    }
}

#[test]
fn every_command_asks_for_an_endpoint_or_says_what_it_does_instead() {
    let mut all = BTreeSet::new();
    commands(&[], &mut all);
    assert!(all.len() > 60, "{all:?}");
    let named: BTreeSet<&str> = ENDPOINTS.iter().flat_map(|row| by(row.commands)).copied().collect();
    for name in &named {
        assert!(all.contains(*name), "the table names `provost {name}`, which does not exist");
    }
    let elsewhere = WITHOUT_ENDPOINTS.iter().map(|(name, _)| *name).chain(ELSEWHERE);
    let is_elsewhere =
        |command: &str| elsewhere.clone().any(|it| command == it || command.starts_with(&format!("{it} ")));
    let missing: Vec<&String> =
        all.iter().filter(|it| !named.contains(it.as_str()) && !is_elsewhere(it)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "no row names these commands");
    let gone: Vec<&str> = elsewhere
        .clone()
        .filter(|it| !all.iter().any(|command| command == it || command.starts_with(&format!("{it} "))))
        .collect();
    assert_eq!(gone, Vec::<&str>::new(), "no such commands");
}

#[test]
fn every_tool_asks_for_an_endpoint() {
    let world = World::new();
    world.rule(ALLOW);
    world.configure("[screenshot]\nenabled = true\n");
    let _daemon = world.start();
    let mut host =
        Host::of(world.command(&["mcp", "--as", "looker", "--tools", "all,devit"])).greeting(json!({}));
    let tools = host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let all: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let named: BTreeSet<&str> = ENDPOINTS.iter().flat_map(|row| by(row.tools)).copied().collect();
    assert_eq!(named, all);
}

/// The sources of a folder, or a file.
fn sources(of: &str) -> String {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(of)];
    let mut text = String::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()).collect::<Vec<PathBuf>>());
        } else {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text.split_whitespace().collect()
}

/// Whether these sources call a method of the client.
fn calls(sources: &str, method: &str) -> bool {
    sources.contains(&format!(".{method}(")) || sources.contains(&format!("Client::{method}"))
}

/// The one method that `cli` calls for `devitd`, which is a program of its own and no command of `provost`.
const OF_DEVITD: &str = "listen";

#[test]
fn a_reason_why_nothing_asks_for_an_endpoint_is_true() {
    let (tools, commands) = (sources("mcp/tools"), sources("cli"));
    let mut wrong = Vec::new();
    for row in ENDPOINTS {
        // Words that every type has as a method, too.
        if ["task", "tasks", "record", "questions", "release_claim"].contains(&row.name) {
            continue;
        }
        let is_called = calls(&commands, row.name);
        if matches!(row.commands, Reach::Not(_)) && is_called && row.name != OF_DEVITD {
            wrong.push(format!("commands of {}: `cli` calls `{}`", row.path, row.name));
        }
        if matches!(row.tools, Reach::By(_)) != calls(&tools, row.name) {
            wrong.push(format!("tools of {}", row.path));
        }
        if matches!(row.commands, Reach::By(_)) && !is_called && !calls(&sources("client"), row.name) {
            wrong.push(format!("commands of {}", row.path));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Files whose own paths are called like paths of the table, with what these are.
const OTHER_PATHS: [(&str, &str); 12] = [
    ("src/protocols/agent_protocol/route.rs", "paths of Agent Protocol"),
    ("src/protocols/scrape.rs", "the path that Prometheus asks"),
    ("src/mcp/http/mod.rs", "the page of an approval at the door for hosts"),
    ("src/web/document.rs", "views of the page"),
    ("src/web/stream.rs", "the stream of the page, without content of events"),
    ("src/mcp/http/page.rs", "the page of an approval at the door for hosts"),
    ("src/view/locks.rs", "a link to a view of the page"),
    ("src/view/search.rs", "a link to a view of the page"),
    ("src/view/tasks.rs", "a link to a view of the page"),
    ("src/effects/desktop_elsewhere.rs", "a link to a view of the page"),
    ("src/effects/notices/push/message.rs", "a link to a view of the page"),
    ("src/cli/agents/presets/codex.rs", "a pointer into JSON"),
];

/// The lines of a source outside of its comments that have one of these paths as a text, alone, with a query or behind a method.
fn spelled<'a>(text: &'a str, paths: &[&str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    for (at, line) in lines {
        for before in ["\"", "\"GET ", "\"POST "] {
            for (from, _) in line.match_indices(before) {
                let rest = &line[from + before.len()..];
                let path = rest.split(['"', '?']).next().unwrap_or_default();
                if path.starts_with('/') && paths.contains(&path) {
                    found.push((at + 1, path));
                }
            }
        }
    }
    found
}

#[test]
fn no_path_of_the_table_stands_a_second_time() {
    let paths: Vec<&str> = ENDPOINTS.iter().map(|row| row.path).chain([EVENT_STREAM]).collect();
    let mut others: BTreeSet<&str> = OTHER_PATHS.iter().map(|(file, _)| *file).collect();
    let mut wrong = Vec::new();
    for source in source::sources("src").iter().filter(|it| !it.path.starts_with("src/api/")) {
        let found = spelled(&source.text, &paths);
        // A file that stands in the list and has no such path any more is left over in `others`.
        if !found.is_empty() && !others.remove(source.path.as_str()) {
            let said = |(line, path)| format!("{}:{line}: {path}: ask `Which::at`", source.path);
            wrong.extend(found.into_iter().map(said));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(others, BTreeSet::new(), "these files have no path of their own that is called like ours");
}

#[test]
fn a_path_that_stands_a_second_time_is_caught() {
    let found = |text: &str| spelled(text, &["/lock"]).len();
    assert_eq!(found("match path {\n    \"/lock\" => 1,"), 1);
    assert_eq!(found("let at = format!(\"/lock?agent={agent}\");"), 1);
    assert_eq!(found("line == \"POST /lock\""), 1);
    assert_eq!(found("    // \"/lock\" stands in the table.\nlet path = \"/locks\";"), 0);
}

#[test]
fn every_endpoint_answers_at_its_path_and_to_its_method_alone() {
    let world = World::new();
    let daemon = world.start();
    let mut seen = BTreeSet::new();
    for row in ENDPOINTS {
        assert!(seen.insert(row.path), "{} stands twice", row.path);
        let (right, wrong) = match row.which.method().as_str() {
            "GET" => ("GET", "POST"),
            _ => ("POST", "GET"),
        };
        let (status, fault) = ask(&world, "looker", &format!("{wrong} {}", row.path), &json!({}));
        assert_eq!((status, &fault["error"]), (405, &json!("wrong_method")), "{}", row.path);
        if ["/stop", "/reload", "/purge-posts"].contains(&row.path) {
            continue;
        }
        let (status, answer) = ask(&world, "looker", &format!("{right} {}", row.path), &json!({}));
        assert!(!(status == 404 && answer["error"] == "no_such_path"), "{}: {answer}", row.path);
        assert!(status != 500 && answer != Value::Null, "{}: {status} {answer}", row.path);
    }
    let (status, fault) = ask(&world, "looker", "GET /nowhere", &json!({}));
    assert_eq!((status, &fault["error"]), (404, &json!("no_such_path")));
    drop(daemon);
}

#[test]
fn a_request_that_makes_no_sense_is_refused_in_the_words_of_this_api() {
    let world = World::new();
    let _daemon = world.start();
    let refused = |line: &str, body: Value| ask(&world, "looker", line, &body);
    let (status, fault) = refused("POST /lock", json!({ "symbol": 5 }));
    assert_eq!((status, &fault["error"]), (422, &json!("invalid")), "{fault}");
    assert!(fault["message"].as_str().unwrap().contains("symbol"), "{fault}");
    let (status, fault) = refused("GET /output?from=x", Value::Null);
    assert_eq!((status, &fault["error"]), (400, &json!("invalid")), "{fault}");
    let (status, fault) = refused("PUT /lock", json!({}));
    assert_eq!((status, &fault["error"]), (405, &json!("wrong_method")), "{fault}");
}
