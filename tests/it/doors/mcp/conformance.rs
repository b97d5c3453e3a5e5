//! The protocol's own conformance suite, with Provost as the server: what each revision demands, over HTTP.
//!
//! Much of the suite calls tools that only a server made for it has. Those checks are listed, each with what
//! it needs, and the list is exact: nothing else fails, and nothing that is listed has begun to pass.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::loopback_client::Http;
use crate::support::mcp_examiners::node;
use crate::support::mcp_fixtures;
use crate::support::mcp_host::Host;
use crate::support::rules::ALLOW;

const NEED_FIXTURES: &str = include_str!("examined/needs_fixtures.txt");

/// The findings of a run of the suite.
struct Examined {
    /// Scenario and check.
    failed: BTreeSet<String>,
    passed: usize,
    said: String,
}

/// Runs what a revision demands of a server.
fn examine(world: &World, url: &str, revision: &str) -> Examined {
    let (node, modules) = node();
    let results = world.path(&format!("results-{revision}"));
    let mut suite = Command::new(node);
    suite.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js")).args(["server", "--url", url]);
    suite.args(["--requirements", revision, "--output-dir"]).arg(&results);
    suite.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(world.repo());
    let said = suite.stdin(Stdio::null()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    let mut examined = Examined { failed: BTreeSet::new(), passed: 0, said };
    for folder in std::fs::read_dir(&results).unwrap_or_else(|err| panic!("{err}: {}", examined.said)) {
        examined.read(&folder.unwrap().path());
    }
    examined
}

impl Examined {
    /// Takes in a scenario's results.
    fn read(&mut self, folder: &Path) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        // Between these is the scenario's.
        let scenario = &name["server-".len()..name.len() - "-2026-07-28T00-00-00-000Z".len()];
        let checks = std::fs::read_to_string(folder.join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        for check in checks {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => self.passed += 1,
                "FAILURE" | "WARNING" => {
                    self.failed.insert(format!("{scenario} {}", check["id"].as_str().unwrap()));
                }
                "INFO" | "SKIPPED" => {}
                other => panic!("{scenario}: what is {other}? {check}"),
            }
        }
    }
}

/// Returns the rows of a revision: the check, and the fixture that it needs.
fn listed(revision: &str) -> Vec<(String, &'static str, &'static str)> {
    let lines = NEED_FIXTURES.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [of, scenario, check, kind, name] = words[..] else { panic!("{line}") };
        (of == revision).then(|| (format!("{scenario} {check}"), kind, name))
    };
    lines.filter_map(row).collect()
}

#[test]
fn what_each_revision_demands_of_a_server_is_there_unless_it_needs_a_server_made_for_the_suite() {
    let world = World::new();
    world.rule(ALLOW);
    world.configure("[mcp]\nenabled = true\n");
    let _daemon = world.start();
    let url = format!("http://127.0.0.1:{}/mcp", Http::mcp(&world).port);
    let mut host = Host::new_era(&world, "looks");
    let has = ["tools/list", "prompts/list", "resources/list", "server/discover"];
    let has = has.map(|what| host.ask(what, json!({})));
    for (revision, passed) in [("2025-11-25", 40), ("2026-07-28", 90)] {
        let examined = examine(&world, &url, revision);
        let listed = listed(revision);
        let expected = listed.iter().map(|(check, ..)| check.clone()).collect();
        let surprises: Vec<_> = examined.failed.symmetric_difference(&expected).collect();
        assert!(surprises.is_empty(), "{revision}: {surprises:#?}\n{}", examined.said);
        assert!(examined.passed >= passed, "{revision}: {} have passed\n{}", examined.passed, examined.said);
        for (check, kind, name) in listed {
            let there = match kind {
                "tool" => names(&has[0]["tools"], "name").any(|it| it == name),
                "prompt" => names(&has[1]["prompts"], "name").any(|it| it == name),
                "resource" => names(&has[2]["resources"], "uri").any(|it| it == name),
                "capability" => has[3]["capabilities"].get(name).is_some(),
                other => panic!("{check}: what is a {other}?"),
            };
            assert!(!there, "{check} needs no {kind} {name} any more: it is there");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_carries_everything_that_the_suite_asks_of_a_server_made_for_it() {
    let world = World::new();
    let folder = world.path("fixtures");
    std::fs::create_dir(&folder).unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let url = mcp_fixtures::serve(&folder, stop.clone());
    for (revision, passed) in [("2025-11-25", 60), ("2026-07-28", 120)] {
        let (world, url) = (&world, &url);
        let examined = tokio::task::block_in_place(|| examine(world, url, revision));
        // Not demanded: tasks are an extension, and tried with those of Provost; the others fail with the
        // suite's own server, too.
        let others = ["tasks-", "server-sse-polling ", "http-custom-header-server-validation "];
        // The older era's list of tools has more to say of tasks, and only Provost's own server says it: it
        // is tried above.
        let own = ["tools-list tools-list", "json-schema-2020-12 json-schema-2020-12-error"];
        let own = |it: &str| revision == "2025-11-25" && own.contains(&it);
        let not_asked = |it: &&String| own(it) || others.iter().any(|other| it.starts_with(other));
        let failed: Vec<_> = examined.failed.iter().filter(|it| !not_asked(it)).collect();
        assert!(failed.is_empty(), "{revision}: {failed:#?}\n{}", examined.said);
        assert!(examined.passed >= passed, "{revision}: {} have passed\n{}", examined.passed, examined.said);
    }
    stop.cancel();
}

fn names<'a>(list: &'a Value, member: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().into_iter().flatten().filter_map(move |it| it[member].as_str())
}
