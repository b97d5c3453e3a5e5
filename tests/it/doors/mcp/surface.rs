//! The surface of Provost for a model: which tools it has, how large they are, and what they do in one call.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::rules::ALLOW;
use crate::support::{World, eventually};

const CODE: &str = "def parse(text):\n    return text\n\n\ndef render(tree):\n    return parse(tree)\n";

/// Bytes of JSON for one token. Of these lists, tokenizers of the large models make about four; this is more
/// careful.
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
        "task_diff",
        "task_apply",
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

/// The caller's own locks, by symbol.
fn mine(host: &mut Host) -> Vec<String> {
    let listed = host.does("locks_list", json!({ "mine": true }));
    listed["locks"].as_array().unwrap().iter().map(|it| it["symbol"].as_str().unwrap().into()).collect()
}

#[test]
fn work_gives_back_what_it_has_taken_and_no_lock_from_before() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    std::fs::write(world.repo().join("b.py"), CODE).unwrap();
    let daemon = world.start();
    let mut one = Host::old(&world, "one");
    one.does("lock_acquire", json!({ "symbol": "a.py:parse", "ttl_s": 7_200 }));
    let begin = |host: &mut Host, places: Value| {
        let begun = host.does("work_begin", json!({ "description": "x", "places": places }));
        begun["intent_id"].clone()
    };
    let end =
        |host: &mut Host, id: &Value| host.does("work_end", json!({ "intent_id": id }))["released"].clone();
    // Beside the places of the work in the same file, and one of them.
    for places in [json!(["a.py:render", "b.py"]), json!(["a.py:parse", "a.py:render", "b.py"])] {
        let work = begin(&mut one, places);
        assert_eq!(end(&mut one, &work), json!(["a.py:render", "b.py:"]));
        assert_eq!(mine(&mut one), ["a.py:parse"]);
    }
    // What two works of one agent have, the last of them gives back.
    let (first, second) = (begin(&mut one, json!(["b.py"])), begin(&mut one, json!(["b.py", "a.py:render"])));
    assert_eq!(end(&mut one, &first), json!([]));
    assert_eq!(end(&mut one, &second), json!(["b.py:", "a.py:render"]));
    // A later grant is not the work's, and the daemon may be another one by its end.
    let work = begin(&mut one, json!(["b.py", "a.py:render"]));
    one.does("lock_release", json!({ "symbol": "b.py" }));
    one.does("lock_acquire", json!({ "symbol": "b.py" }));
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(end(&mut one, &work), json!(["a.py:render"]));
    assert_eq!(mine(&mut one), ["a.py:parse", "b.py:"]);
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
        let said = world.command(&["lock", "list", "--json"]).output().unwrap();
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

#[test]
fn work_shortens_no_lock_from_before_and_lengthens_one_that_ends_earlier() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    let _daemon = world.start();
    let mut one = Host::old(&world, "one");
    let until = |locked: &Value| locked["until"].as_str().unwrap().to_owned();
    let long = one.does("lock_acquire", json!({ "symbol": "a.py:parse", "ttl_s": 7_200 }))["lock"].clone();
    let short = one.does("lock_acquire", json!({ "symbol": "a.py:render", "ttl_s": 60 }))["lock"].clone();
    let asked = json!({ "description": "x", "places": ["a.py:parse", "a.py:render"], "ttl_s": 600 });
    let locks = one.does("work_begin", asked)["locks"].clone();
    assert_eq!(until(&locks[0]), until(&long));
    assert!(until(&locks[1]) > until(&short), "{locks}");
}

/// A repository with a commit and a linked work tree.
fn with_linked(world: &World) -> std::path::PathBuf {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let done = git.current_dir(world.repo()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["add", "."]);
    git(&["commit", "-qm", "one", "--allow-empty"]);
    let linked = world.path("linked");
    git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    linked
}

#[test]
fn a_server_in_a_linked_work_tree_looks_at_that_and_an_absolute_path_at_its_own() {
    let world = World::new();
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    let linked = with_linked(&world);
    std::fs::write(linked.join("only.py"), CODE).unwrap();
    let _daemon = world.start();
    let mut command = world.command(&["mcp", "--as", "there", "--tools", "all"]);
    command.current_dir(&linked);
    let there = Host::of(command).greeting(json!({}));
    let main = Host::old(&world, "main");
    let absolute = linked.join("only.py").display().to_string();
    let mut hosts = [there, main];
    for (host, file) in [(0, "only.py"), (0, &*absolute), (1, &*absolute)] {
        let host = &mut hosts[host];
        let symbol = format!("{file}:parse");
        assert_eq!(host.does("lock_acquire", json!({ "symbol": symbol }))["warnings"], json!([]), "{file}");
        assert_eq!(host.does("lock_release", json!({ "symbol": symbol }))["symbol"], "only.py:parse");
        let offered = host.does("contract_propose", json!({ "symbol": symbol }));
        assert_eq!(offered["symbol"], "only.py:parse");
        host.does("contract_respond", json!({ "contract_id": offered["contract_id"], "answer": "withdraw" }));
        let begun = host.does("work_begin", json!({ "description": "x", "places": [symbol] }));
        assert_eq!(begun["conflicts"], json!([]), "{file}");
        host.does("work_end", json!({ "intent_id": begun["intent_id"] }));
    }
    let [mut there, mut main] = hosts;
    // The file of another work tree is not there for a server in the main one, nor where a call says so.
    let kind = |locked: Value| locked["warnings"][0]["kind"].clone();
    assert_eq!(kind(main.does("lock_acquire", json!({ "symbol": "only.py:parse" }))), "no_file");
    let declared = there
        .does("intent_declare", json!({ "description": "x", "files": ["only.py"], "symbols": ["render"] }));
    assert_eq!(declared["conflicts"][0]["kind"], "callee_locked", "{declared}");
    let top = world.repo().display().to_string();
    let asked = json!({ "files": ["only.py"], "symbols": ["render"], "worktree": top });
    assert_eq!(
        there.does("conflicts_check", asked)["conflicts"],
        json!([]),
        "there is no such file in that one"
    );
}

#[test]
fn absolute_patterns_and_paths_with_dots_are_understood_or_refused_at_the_call() {
    let world = World::new();
    world.rule(ALLOW);
    for folder in ["src/deep", "docs"] {
        std::fs::create_dir_all(world.repo().join(folder)).unwrap();
    }
    std::fs::write(world.repo().join("src/a.py"), CODE).unwrap();
    let linked = with_linked(&world);
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let at = |name: &str| format!("{}/{name}", world.repo().display());
    let goal = "for it in a.txt src/a.txt src/deep/a.txt docs/a.txt; do date +%s%N > $it; done";
    let mut watched = |folder: &str, goal: &str, pattern: String| {
        let asked =
            json!({ "goal": goal, "worker": "shell", "working_dir": folder, "watch_patterns": [pattern] });
        let task = host.does("delegate", asked)["task_id"].as_str().unwrap().to_owned();
        host.follow(&task);
        let rows = host.does("task_status", json!({ "task_id": task }));
        let text = rows.to_string();
        (["a.txt", "src/a.txt", "src/deep/a.txt", "docs/a.txt"].into_iter())
            .filter(|it| text.contains(&format!("\"{it}\"")))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(watched(".", goal, at("src/*.txt")), ["src/a.txt"]);
    assert_eq!(watched(".", goal, at("docs/../src/**/*.txt")), ["src/a.txt", "src/deep/a.txt"]);
    assert_eq!(watched(".", goal, at("*.txt")), ["a.txt"], "not of the folders below");
    assert_eq!(
        watched(&at("src"), "date +%s%N > a.txt; date +%s%N > deep/a.txt", at("src/*.txt")),
        ["a.txt"]
    );
    let locked = host.does("lock_acquire", json!({ "symbol": at("docs/../src/./a.py:parse") }));
    assert_eq!(locked["lock"]["symbol"], "src/a.py:parse");
    let delegate = |folder: &str, pattern: &str| json!({ "goal": "true", "worker": "shell", "working_dir": folder, "watch_patterns": [pattern] });
    let top = linked.display().to_string();
    for (folder, pattern, says) in [
        (".", "/etc/*.conf", "outside of the repository"),
        (".", "../*.txt", "climb"),
        ("src", &*at("docs/*.txt"), "working_dir"),
        (&*top, "*.txt", "a linked work tree"),
        (&*format!("{top}/src"), "*.txt", "a linked work tree"),
        (".", &*format!("{top}/src/*.txt"), "a linked work tree"),
    ] {
        let why = host.fails("delegate", delegate(folder, pattern));
        assert!(why.contains(says), "{folder} {pattern}: {why}");
    }
    let why = host.fails("lock_acquire", json!({ "symbol": top }));
    assert!(why.contains("a linked work tree"), "{why}");
}
