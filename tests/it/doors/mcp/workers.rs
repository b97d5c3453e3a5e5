//! Workers that speak MCP: a real server from a registry, and ones that do everything wrong.

use serde_json::{Value, json};

use crate::support::rules::ALLOW;
use crate::support::{Client, Daemon, World};

const SERVER: &str = include_str!("workers/server.py");

/// Where scripts/test has put the real server.
fn installed() -> String {
    std::env::var("PROVOST_TEST_MCP").expect("scripts/test installs an MCP server and says where")
}

struct Desk {
    world: World,
    _daemon: Daemon,
    client: Client,
}

impl Desk {
    fn new(workers: &str) -> Self {
        let world = World::new();
        let tools = world.path("tools");
        std::fs::create_dir(&tools).unwrap();
        std::fs::write(tools.join("server.py"), SERVER).unwrap();
        world.configure(&workers.replace("$TOOLS", tools.to_str().unwrap()));
        world.rule(ALLOW);
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        Self { world, _daemon: daemon, client }
    }

    fn delegate(&self, worker: &str, more: Value) -> Value {
        let (task, reply) = self.client.delegate(worker, "tell the time", more);
        reply.ack();
        self.client.result_of(&task)
    }
}

/// The entry of a worker that behaves as it is called.
fn own(name: &str, how: &str, more: &str) -> String {
    format!(
        "[workers.{name}]\ntype = \"mcp\"\nbinary = \"/usr/bin/python3\"\nargs = [\"$TOOLS/server.py\", \"{how}\"]\n\
         read_only = [\"$TOOLS\"]\n{more}"
    )
}

fn summary(result: &Value) -> &str {
    result["artifacts"]["summary"].as_str().unwrap()
}

#[test]
fn a_real_server_is_asked_and_its_answer_is_the_result() {
    let server = installed();
    let entry = |name: &str, more: &str| {
        format!(
            "[workers.{name}]\ntype = \"mcp\"\nbinary = \"{server}/bin/python3\"\nargs = [\"-m\", \"mcp_server_time\"]\n\
             read_only = [\"{server}\"]\n{more}"
        )
    };
    let noon = "mcp_tool = \"convert_time\"\n\
                mcp_arguments = { source_timezone = \"UTC\", time = \"12:00\", target_timezone = \"Asia/Tokyo\" }\n";
    let nowhere = "mcp_tool = \"get_current_time\"\nmcp_arguments = { timezone = \"Mars/Base\" }\n";
    let workers = [entry("noon", noon), entry("thin", &format!("{noon}tier = \"ll\"\n"))];
    let desk = Desk::new(&(workers.concat() + &entry("nowhere", nowhere) + &entry("wrong", "")));
    for (worker, tier) in [("noon", "ns"), ("thin", "ll")] {
        let result = desk.delegate(worker, json!({}));
        assert_eq!(result["status"], "completed", "{result}");
        assert!(summary(&result).contains("21:00"), "{result}");
        let text = result["artifacts"]["details"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Asia/Tokyo"), "{result}");
        let metadata = &result["artifacts"]["metadata"];
        assert_eq!((&metadata["worker_type"], &metadata["tier"]), (&json!("mcp"), &json!(tier)));
        assert_eq!((&metadata["exit_code"], &metadata["exit_reason"]), (&json!(0), &json!("success")));
    }
    let result = desk.delegate("nowhere", json!({}));
    assert_eq!(result["status"], "failed", "{result}");
    assert!(summary(&result).contains("Mars/Base"), "{result}");
    let result = desk.delegate("wrong", json!({}));
    let said = summary(&result);
    assert!(
        said.contains("no tool 'devit_delegate'") && said.contains("get_current_time, convert_time"),
        "{said}"
    );
}

#[test]
fn the_task_becomes_the_call_and_what_was_used_becomes_metadata() {
    let workers = own(
        "devit",
        "devit",
        "mcp_arguments = { timeout = 5, style = \"terse\" }\ndefault_model = \"small\"\ntimeout_secs = 90\n",
    );
    let desk = Desk::new(&workers);
    std::fs::create_dir(desk.world.repo().join("sub")).unwrap();
    let result = desk.delegate("devit", json!({ "format": "compact", "working_dir": "sub" }));
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(summary(&result), "all done", "harmless, and without blanks around");
    let details = &result["artifacts"]["details"]["details"];
    let asked = json!({
        "goal": "tell the time", "prompt": "tell the time", "timeout": 5, "style": "terse",
        "format": "compact", "model": "small", "working_dir": "sub",
    });
    assert_eq!(details["asked"], asked);
    assert!(details["cwd"].as_str().unwrap().ends_with("/repo/sub"), "{result}");
    assert_eq!(details.get("stderr"), None, "its own log is not part of the result");
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!((&metadata["tokens_input"], &metadata["tokens_output"]), (&json!(11), &json!(22)));
    assert_eq!((&metadata["cost_estimate_usd"], &metadata["model_used"]), (&json!(0.5), &json!("small")));
    // Whoever waits for it at a terminal is shown the answer: it has nothing else to say.
    let waited =
        desk.world.command(&["delegate", "tell the time", "--worker", "devit", "--wait"]).output().unwrap();
    assert!(String::from_utf8_lossy(&waited.stdout).contains("all done"), "{waited:?}");
}

#[test]
fn bad_servers_fail_their_task_with_a_reason_and_nothing_is_left() {
    let cases = [
        ("says no", "MCP worker error -32099: not today"),
        ("refuses", "MCP worker error -32050: out of ink"),
        ("toolless", "it has no tool 'devit_delegate'; it has: paint, sing"),
        ("failing", "no such zone"),
        ("garbage", "its standard output is not MCP; it says 'this is not MCP'"),
        ("one line", "it wrote a line of more than 4194304 bytes"),
        ("floods", "it wrote more than 67108864 bytes"),
        ("no handshake", "what it answers to the handshake is not MCP"),
        ("dies", "it ended with exit code 3 before it answered"),
        ("falls", "it was terminated by signal 9 before it answered"),
        ("silent", "timed out after 2s"),
        ("deaf", "timed out after 2s"),
    ];
    let entry = |(index, (how, _)): (usize, &(&str, &str))| {
        let limit = if ["silent", "deaf"].contains(how) { "timeout_secs = 2\n" } else { "" };
        own(&format!("w{index}"), how, limit)
    };
    let desk = Desk::new(&cases.iter().enumerate().map(entry).collect::<String>());
    for (index, (how, why)) in cases.iter().enumerate() {
        let result = desk.delegate(&format!("w{index}"), json!({}));
        assert_eq!(result["status"], "failed", "{how}: {result}");
        assert!(summary(&result).contains(why), "{how}: {result}");
        assert_eq!(result["artifacts"]["metadata"]["worker_type"], "mcp");
    }
    // Those that sleep for a minute were ended with their tasks.
    let mut left = std::process::Command::new("pgrep");
    left.args(["-f", desk.world.path("tools").to_str().unwrap()]);
    assert!(left.output().unwrap().stdout.is_empty(), "a server is left");
}

#[test]
fn servers_that_go_at_once_or_never_have_answered_all_the_same() {
    let workers = ["greets", "leaves", "stays", "long", "deep"].map(|how| own(how, how, ""));
    let desk = Desk::new(&workers.concat());
    for how in ["greets", "leaves", "stays"] {
        let result = desk.delegate(how, json!({}));
        assert_eq!((&result["status"], summary(&result)), (&json!("completed"), "plain"), "{how}: {result}");
        assert_eq!(result["artifacts"]["metadata"]["tokens_output"], 7, "{result}");
    }
    let long = desk.delegate("long", json!({}));
    let artifacts = &long["artifacts"];
    assert_eq!((&long["status"], &artifacts["truncated"]), (&json!("completed"), &json!(true)));
    assert!(artifacts["details"]["stdout"].as_str().unwrap().len() < 300_000);
    let deep = desk.delegate("deep", json!({}));
    assert_eq!(deep["status"], "completed", "{deep}");
    let mut left = std::process::Command::new("pgrep");
    left.args(["-f", desk.world.path("tools").to_str().unwrap()]);
    assert!(left.output().unwrap().stdout.is_empty(), "a server is left");
}

#[test]
fn a_conversation_ends_when_its_task_is_taken_back() {
    let desk = Desk::new(&own("silent", "silent", ""));
    let (task, reply) = desk.client.delegate("silent", "x", json!({}));
    reply.ack();
    crate::support::eventually("the run", || desk.client.task(&task).unwrap()["status"] == "in_progress");
    let cancel = json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "enough" } });
    desk.client.say("NOTIFY", cancel).ack();
    assert_eq!(desk.client.result_of(&task)["status"], "cancelled");
}
