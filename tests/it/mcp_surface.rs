//! What a model is shown of Provost: which tools, how large they are, and what they do for it in one call.

use std::process::Command;

use serde_json::{Value, json};

use crate::loopback_client::Http;
use crate::mcp_host::{ALLOW, Host};
use crate::support::{World, eventually};

const CODE: &str = "def parse(text):\n    return text\n\n\ndef render(tree):\n    return parse(tree)\n";

/// Bytes of JSON for one token. Of these lists, tokenizers of the large models make about four; this is more careful.
const BYTES_A_TOKEN: f64 = 3.5;

fn tools(host: &mut Host) -> Vec<Value> {
    host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

/// A host whose server is started with this.
fn host_of(world: &World, agent: &str, arguments: &[&str]) -> Host {
    Host::of(world.command(&[&["mcp", "--as", agent], arguments].concat())).greeting(json!({}))
}

#[test]
fn the_default_is_about_fifteen_tools_that_are_three_thousand_tokens_of_a_request() {
    let world = World::new();
    let _daemon = world.start();
    let tools = tools(&mut host_of(&world, "one", &[]));
    let expected = [
        "delegate",
        "task_wait",
        "task_status",
        "task_output",
        "task_cancel",
        "workers_list",
        "work_begin",
        "work_end",
        "lock_acquire",
        "lock_release",
        "locks_list",
        "intents_list",
        "conflicts_check",
        "message_send",
        "inbox_read",
    ];
    let mut shown = names(&tools);
    let mut expected = expected.to_vec();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected);
    // What a host makes of them for its model: the shapes of answers are not in it.
    let request: Vec<Value> = tools
        .iter()
        .map(|it| json!({ "name": it["name"], "description": it["description"], "input_schema": it["inputSchema"] }))
        .collect();
    let tokens = json!(request).to_string().len() as f64 / BYTES_A_TOKEN;
    assert!(tokens <= 3_000.0, "{tokens} tokens: {}", json!(request));
    for tool in &tools {
        let said = tool["description"].as_str().unwrap();
        for word in ["whoever", "somebody", "nobody else"] {
            assert!(!said.contains(word), "{said}");
        }
        let text = tool.to_string();
        assert!(!text.contains(".rs"), "no example is of a language whose symbols are not known: {text}");
    }
}

#[test]
fn sets_of_tools_are_chosen_by_the_configuration_and_for_one_host() {
    let world = World::new();
    world.configure("[mcp]\nenabled = true\ntools = [\"locks\", \"contracts\"]\noutput_schemas = false\n");
    let _daemon = world.start();
    let mut host = host_of(&world, "one", &[]);
    let configured = tools(&mut host);
    let of_sets = [
        "work_begin",
        "work_end",
        "lock_acquire",
        "lock_release",
        "locks_list",
        "contract_propose",
        "contract_respond",
        "contracts_list",
        "contracts_check",
    ];
    assert_eq!(names(&configured), of_sets);
    assert!(configured.iter().all(|it| it.get("outputSchema").is_none()), "they were switched off");
    host.does("locks_list", json!({}));
    let gone = host.answer("tools/call", json!({ "name": "inbox_read", "arguments": {} }));
    let why = gone["error"]["message"].as_str().unwrap();
    assert!(why.contains("not offered") && why.contains("`messages`"), "{why}");
    let chosen = tools(&mut host_of(&world, "one", &["--tools", "messages,approvals"]));
    assert_eq!(names(&chosen), ["approvals_list", "approval_decide", "message_send", "inbox_read"]);
    let all = tools(&mut host_of(&world, "one", &["--tools", "all"]));
    assert!(names(&all).iter().all(|it| !it.starts_with("devit_")) && all.len() > 25, "{:?}", names(&all));
    let devit = tools(&mut host_of(&world, "one", &["--tools", "devit"]));
    assert!(!devit.is_empty() && names(&devit).iter().all(|it| it.starts_with("devit_")));
    let wrong = world.command(&["mcp", "--tools", "lock"]).output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("locks") && said.contains("messages"), "{said}");
    // The door over HTTP offers the same.
    let http = Http::mcp(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string();
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
        ("Connection", "close"),
    ];
    let answer = http.send("POST /mcp", &headers, body.as_bytes());
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(said.contains("contracts_check") && !said.contains("inbox_read"), "{said}");
}

#[test]
fn a_change_begins_and_ends_in_one_call_each() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    std::fs::write(world.repo().join("b.py"), CODE).unwrap();
    let _daemon = world.start();
    let (mut one, mut other) = (Host::old(&world, "one"), Host::new_era(&world, "other"));
    other.does("intent_declare", json!({ "description": "a new tree", "files": ["a.py"] }));
    let asked = json!({ "description": "make it fast", "places": ["b.py", "a.py:render"], "ttl_s": 600 });
    let begun = one.call("work_begin", asked);
    let answer = &begun["structuredContent"];
    let locks: Vec<_> =
        answer["locks"].as_array().unwrap().iter().map(|it| it["symbol"].as_str().unwrap()).collect();
    assert_eq!(locks, ["a.py:render", "b.py:"]);
    let text = begun["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("a new tree") && text.contains("other"), "what it collides with is said: {text}");
    assert_eq!(
        other.does("intents_list", json!({ "agent": "one" }))["rows"][0]["intent_id"],
        answer["intent_id"]
    );

    // All places or none: what was free is free again, and what was the caller's before stays.
    other.does("lock_acquire", json!({ "symbol": "c.py" }));
    let why = other.fails(
        "work_begin",
        json!({ "description": "x", "places": ["c.py", "c.py:f", "a.py:render", "d.py"] }),
    );
    assert!(why.contains("one") && why.contains("keeps no lock"), "{why}");
    let mine: Vec<_> = other.does("locks_list", json!({ "mine": true }))["locks"].as_array().unwrap().clone();
    assert_eq!(mine.len(), 1, "{mine:?}");
    assert_eq!(mine[0]["symbol"], "c.py:");

    one.does("lock_acquire", json!({ "symbol": "e.py" }));
    assert!(
        !other.fails("work_end", json!({ "intent_id": answer["intent_id"] })).is_empty(),
        "it is not theirs"
    );
    let ended = one.does("work_end", json!({ "intent_id": answer["intent_id"] }));
    assert_eq!(ended["released"], json!(["a.py:render", "b.py:"]));
    let left = one.does("locks_list", json!({ "mine": true }))["locks"].as_array().unwrap().clone();
    assert_eq!((left.len(), &left[0]["symbol"]), (1, &json!("e.py:")), "other locks stay");
    assert_eq!(one.does("intents_list", json!({ "agent": "one" }))["rows"], json!([]));
    assert!(one.fails("work_begin", json!({ "description": "x", "places": [] })).contains("places"));
}

#[test]
fn work_is_given_to_workers_that_there_are() {
    let world = World::new();
    world.rule(ALLOW);
    world.configure("[workers.slow]\ntype = \"polling\"\n");
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let listed = host.does("workers_list", json!({}));
    let all: Vec<_> =
        listed["workers"].as_array().unwrap().iter().map(|it| it["worker"].as_str().unwrap()).collect();
    assert!(all.contains(&"shell") && all.contains(&"slow"), "{listed}");
    let why = host.fails("delegate", json!({ "goal": "true", "worker": "shel" }));
    assert!(
        why.contains("shel") && why.contains("shell") && why.contains("slow") && why.contains("workers_list"),
        "{why}"
    );
    assert_eq!(host.does("task_status", json!({}))["tasks"], json!([]), "nothing was begun");
    host.does("delegate", json!({ "goal": "wait", "worker": "slow" }));
}

#[test]
fn absolute_paths_in_the_repository_mean_the_same_as_those_from_its_root() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let done = git.current_dir(world.repo()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    let linked = world.path("linked");
    git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let at = |name: &str| world.repo().join(name).to_str().unwrap().to_owned();
    let locked = host.does("lock_acquire", json!({ "symbol": format!("{}:parse", at("a.py")) }));
    assert_eq!(locked["lock"]["symbol"], "a.py:parse");
    let elsewhere = format!("{}:render", linked.join("a.py").display());
    assert_eq!(host.does("lock_acquire", json!({ "symbol": elsewhere }))["lock"]["symbol"], "a.py:render");
    assert_eq!(host.does("locks_list", json!({ "file": at("a.py") }))["locks"].as_array().unwrap().len(), 2);
    assert_eq!(host.does("claim_acquire", json!({ "path": at("src/new.py") }))["file"], "src/new.py");
    let declared = host.does("intent_declare", json!({ "description": "x", "files": [at("a.py")] }));
    assert_eq!(declared["intent"]["files"], json!(["a.py"]));
    let checked = host.does("contracts_check", json!({ "given": [{ "path": at("a.py"), "content": CODE }] }));
    assert_eq!(checked["compared"], 0);
    for outside in
        ["/etc/passwd".to_owned(), world.path("home/x.py").to_str().unwrap().to_owned(), at("../x.py")]
    {
        let why = host.fails("lock_acquire", json!({ "symbol": outside }));
        assert!(why.contains("outside") || why.contains("out of"), "{outside}: {why}");
    }
}

#[test]
fn a_lock_on_what_does_not_exist_says_so() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    for (symbol, kind) in
        [("nowhere.py:parse", "no_file"), ("nowhere.txt", "no_file"), ("a.py:nothing", "unknown_symbol")]
    {
        let locked = host.call("lock_acquire", json!({ "symbol": symbol }));
        assert_eq!(locked["structuredContent"]["warnings"][0]["kind"], kind, "{locked}");
        assert!(locked["content"][0]["text"].as_str().unwrap().contains("warning"), "{locked}");
    }
    assert_eq!(host.does("lock_acquire", json!({ "symbol": "a.py:parse" }))["warnings"], json!([]));
}

#[test]
fn the_holder_of_a_lock_is_told_once_that_an_agent_waits_for_it() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    let _daemon = world.start();
    let (mut holder, mut other) = (Host::old(&world, "holder"), Host::new_era(&world, "other"));
    holder.does("lock_acquire", json!({ "symbol": "a.py:parse" }));
    let asked = json!({ "name": "lock_acquire", "arguments": { "symbol": "a.py:parse", "wait_s": 45 } });
    let waiting = other.begin("tools/call", asked);
    let told = holder.does("inbox_read", json!({ "max_wait_s": 45 }));
    let word = &told["messages"][0];
    assert_eq!((&word["from"], &word["kind"]), (&json!("provost"), &json!("lock_wanted")), "{told}");
    let text = word["text"].as_str().unwrap();
    assert!(text.contains("other") && text.contains("a.py:parse"), "{text}");
    // Who gives up and waits again is no news.
    other.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting } }),
    );
    let waits = |world: &World| {
        let said = world.command(&["locks", "--json"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("\"other\"")
    };
    eventually("it waits no longer", || !waits(&world));
    let asked = json!({ "name": "lock_acquire", "arguments": { "symbol": "a.py:parse", "wait_s": 45 } });
    let again = other.begin("tools/call", asked);
    eventually("it waits again", || waits(&world));
    assert_eq!(holder.does("inbox_read", json!({}))["messages"].as_array().unwrap().len(), 1);
    holder.does("lock_release", json!({ "symbol": "a.py:parse" }));
    let answer = other.answer_to(again);
    assert_eq!(answer["result"]["structuredContent"]["lock"]["holder"], "other", "{answer}");
}
