//! `provost cost`: the sums of what agents report.

use serde_json::{Value, json};

use super::{add, command, ok, tried, vendors};
use crate::support::rules::ALLOW;
use crate::support::webserver::Server;
use crate::support::{World, eventually};

#[test]
fn claims_have_a_bound_and_invented_models_share_a_row() {
    let world = World::new();
    world.configure(
        "[limits]\nworkers = 8\n[workers.liar]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"json\"\n",
    );
    world.rule(ALLOW);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    const MODELS: usize = 36;
    let ran: Vec<String> = (0..MODELS)
        .map(|n| {
            let claim = format!(
                r#"{{"model":"m-{n}","usage":{{"input_tokens":18446744073709551615,"cost_usd":1e300}}}}"#
            );
            let (task, reply) = client.delegate("liar", &format!("echo '{claim}'"), json!({}));
            reply.ack();
            task
        })
        .collect();
    for task in ran {
        eventually("the end", || client.task(&task).is_some_and(|it| it["status"] == "completed"));
    }
    let output = command(&world, &["cost", "--json", "--by", "model"]).output().unwrap();
    let cost: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (cost["rows"].as_array().unwrap().len(), &cost["total"]["runs"]),
        (33, &json!(MODELS)),
        "{cost}"
    );
    let most = 1_000_000_000_000_u64 * MODELS as u64;
    assert_eq!(cost["total"]["used"]["tokens_input"], most, "{cost}");
    let others = cost["rows"].as_array().unwrap().iter().find(|it| it["key"] == "(others)").unwrap();
    assert_eq!(others["runs"], MODELS - 32, "{cost}");
}

#[test]
fn cost_is_summed_by_agent_day_model_and_task() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    ok(&add(&world, &server, "claude", &[]));
    ok(&add(&world, &server, "codex", &["--secret", "openai-2"]));
    let daemon = world.start();
    let cost = |args: &[&str]| -> Value {
        let output = command(&world, &[&["cost", "--json"], args].concat()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    assert_eq!(cost(&[])["rows"], json!([]));
    for _ in 0..2 {
        assert_eq!(tried(&world, "claude").0, 0);
    }
    let (_, last) = tried(&world, "codex");
    let by_agent = cost(&["--by", "agent"]);
    let row = |of: &Value, key: &str| {
        of["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["key"] == key)
            .cloned()
            .unwrap_or_else(|| panic!("{of}"))
    };
    let claude = row(&by_agent, "claude");
    assert_eq!(
        (&claude["runs"], &claude["used"]["tokens_cache_read"]),
        (&json!(2), &json!(28)),
        "{by_agent}"
    );
    assert!(claude["used"]["cost_usd"].as_f64().unwrap() > 0.0, "{by_agent}");
    assert_eq!(row(&by_agent, "codex")["used"]["cost_usd"], Value::Null, "nothing is made up: {by_agent}");
    assert_eq!((&by_agent["total"]["runs"], by_agent["rows"].as_array().unwrap().len()), (&json!(3), 2));
    let by_day = cost(&["--by", "day", "--since", "7d"]);
    assert_eq!(by_day["rows"][0]["runs"], 3, "{by_day}");
    assert_eq!(row(&cost(&["--by", "model"]), "claude-opus-5-5")["runs"], 2);
    let by_task = cost(&["--by", "task", "--limit", "1"]);
    assert_eq!(
        (&by_task["rows"][0]["key"], &by_task["truncated"]),
        (&last["task"], &json!(true)),
        "{by_task}"
    );
    // After another start, the sums are there.
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(cost(&[])["total"]["runs"], 3);
    let table = ok(&command(&world, &["cost"]).output().unwrap());
    assert!(table.contains("AGENT") && table.contains("as the agents report it"), "{table}");
    let wrong = command(&world, &["cost", "--since", "yesterday"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}
