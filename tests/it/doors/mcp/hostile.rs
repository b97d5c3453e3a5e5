//! Hosts that get MCP wrong, on purpose or not, and hosts that vanish.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};

use serde_json::{Map, Value, json};

use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World, eventually};

/// More than a message may have.
const TOO_LONG: usize = 5 << 20;

fn world() -> (World, Daemon) {
    let world = World::new();
    world.rule(ALLOW);
    let daemon = world.start();
    (world, daemon)
}

/// Values of every kind.
fn values() -> Vec<Value> {
    let deep = (0..40).fold(json!([]), |inside, _| json!([inside]));
    let mut values =
        vec![json!(null), json!(true), json!(1), json!(-1), json!(1.5), json!(1e300), json!(u64::MAX)];
    values.extend([
        json!(""),
        json!("x"),
        json!("x\u{0}\u{1b}[2J"),
        json!([]),
        json!([5]),
        json!(["x"]),
        deep,
    ]);
    values.extend([json!({}), json!({ "x": { "y": [] } })]);
    values
}

/// Returns the schema of a tool for one of its arguments alone.
fn of_one(schema: &Value, name: &str) -> jsonschema::Validator {
    let mut one = schema["properties"][name].clone();
    if let (Some(one), Some(defs)) = (one.as_object_mut(), schema.get("$defs")) {
        one.insert("$defs".into(), defs.clone());
    }
    jsonschema::validator_for(&one).unwrap()
}

/// Every word that a schema names.
fn words(schema: &Value) -> Vec<Value> {
    match schema {
        Value::Array(all) => all.iter().flat_map(words).collect(),
        Value::Object(members) => {
            let named = members.get("const").cloned().into_iter();
            let named =
                named.chain(members.get("enum").and_then(Value::as_array).cloned().into_iter().flatten());
            named.chain(members.values().flat_map(words)).collect()
        }
        _ => Vec::new(),
    }
}

/// Arguments that have every shape that a tool asks for.
fn fitting(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let required = required.iter().map(|it| it.as_str().unwrap());
    let fits = |name: &str| {
        let check = of_one(schema, name);
        let found = words(schema).into_iter().chain(values()).find(|it| !it.is_null() && check.is_valid(it));
        (name.to_owned(), found.unwrap_or_else(|| panic!("nothing fits {name}: {schema}")))
    };
    required.map(fits).collect()
}

/// Why a tool refuses what it is called with. DevIt's clients expect the protocol's errors of its tools.
fn refused(host: &mut Host, tool: &str, arguments: Map<String, Value>) -> String {
    if !tool.starts_with("devit_") {
        return host.fails(tool, arguments.into());
    }
    let answer = host.answer("tools/call", json!({ "name": tool, "arguments": arguments }));
    assert_eq!(answer["error"]["code"], -32_602, "{tool}: {answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

/// How many of everything there is, as far as tools show it.
fn census(host: &mut Host) -> [usize; 3] {
    let mut count = |tool: &str, what: &str| host.does(tool, json!({}))[what].as_array().unwrap().len();
    [count("task_status", "tasks"), count("locks_list", "locks"), count("approvals_list", "approvals")]
}

#[test]
fn arguments_of_every_wrong_shape_are_refused_by_name_and_change_nothing() {
    let (world, _daemon) = world();
    let mut host = Host::new_era(&world, "coder");
    let tools = host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let mut tried = BTreeMap::new();
    for tool in &tools {
        let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
        let good = fitting(schema);
        for missing in good.keys() {
            let mut arguments = good.clone();
            arguments.remove(missing);
            let why = refused(&mut host, name, arguments);
            assert!(why.contains(missing.as_str()), "{name} without {missing}: {why}");
        }
        for argument in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
            let check = of_one(schema, argument);
            // Hosts write `null` for what they leave out.
            let may_be_left_out = |it: &Value| it.is_null() && !good.contains_key(argument);
            for wrong in values().into_iter().filter(|it| !check.is_valid(it) && !may_be_left_out(it)) {
                let mut arguments = good.clone();
                arguments.insert(argument.clone(), wrong.clone());
                let why = refused(&mut host, name, arguments);
                assert!(why.contains(argument.as_str()), "{name} with {argument} {wrong}: {why}");
                assert!(why.len() < 1_000, "{name}: {why}");
                *tried.entry(name.to_owned()).or_insert(0) += 1;
            }
        }
        for wrong in [json!([]), json!("x"), json!(5)] {
            let answer = host.answer("tools/call", json!({ "name": name, "arguments": wrong }));
            assert_eq!(answer["error"]["code"], -32_602, "{name} with {wrong}: {answer}");
        }
    }
    assert!(tried.len() * 10 > tools.len() * 8 && tried.values().sum::<usize>() > 100, "{tried:?}");
    assert_eq!(census(&mut host), [0, 0, 0]);
}

#[test]
fn what_is_no_message_is_answered_where_somebody_waits_and_the_next_one_is_read() {
    let (world, _daemon) = world();
    for mut host in [Host::old(&world, "old"), Host::new_era(&world, "new")] {
        let mut answer = |line: &str| {
            host.write(line);
            host.read()
        };
        for line in [
            "{\"jsonrpc\":\"2.0\",",
            "hello",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}",
            "\u{feff}",
            "[1,2",
        ] {
            let said = answer(line);
            assert_eq!((&said["error"]["code"], said.get("id")), (&json!(-32_700), None), "{line}: {said}");
        }
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, json!(7)),
            (r#"{"jsonrpc":"1.0","id":"a\"}b","method":"ping"}"#, json!("a\"}b")),
            (r#"{"id":9,"method":"ping","params":{"id":8}}"#, json!(9)),
            (r#"{"jsonrpc":"2.0","id":{"x":1},"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null),
            ("5", Value::Null),
        ] {
            let said = answer(line);
            assert_eq!((&said["error"]["code"], &said["id"]), (&json!(-32_600), &id), "{line}: {said}");
        }
        // Of a member that is there twice, the host may have judged the other one.
        for (line, member) in [
            (
                r#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"lock_acquire","arguments":{"symbol":"@a:one","symbol":"@a:two"}}}"#,
                "symbol",
            ),
            (
                r#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"delegate","arguments":{"goal":"true","worker":"shell","task":{"x":[{"y":1,"\u0079":2}]}}}}"#,
                "y",
            ),
        ] {
            let said = answer(line);
            assert_eq!(
                (&said["error"]["code"], &said["id"]),
                (&json!(-32_600), &json!(11)),
                "{line}: {said}"
            );
            let why = said["error"]["message"].as_str().unwrap();
            assert!(why.contains(&format!("`{member}` is there twice")), "{line}: {said}");
        }
        // Nobody waits for an answer to these.
        for line in [
            "",
            "  ",
            r#"{"jsonrpc":"2.0","method":5}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/none"}"#,
        ] {
            host.write(line);
        }
        let unknown = host.answer("no/such/method", json!({}));
        assert_eq!(unknown["error"]["code"], -32_601, "{unknown}");
        let nameless = host.answer("tools/call", json!({ "name": 5 }));
        assert_eq!(nameless["error"]["code"], -32_602, "{nameless}");
        assert_eq!(host.told, [] as [Value; 0], "nothing but answers was said");
        assert_eq!(census(&mut host), [0, 0, 0]);
    }
}

#[test]
fn megabytes_are_refused_under_the_id_of_their_request_and_are_not_kept() {
    let (world, _daemon) = world();
    for mut host in [Host::old(&world, "old"), Host::new_era(&world, "new")] {
        let before = peak_kib(host.pid());
        let long = "x".repeat(TOO_LONG);
        for line in [
            format!(
                r#"{{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{{"id":1,"name":"{long}"}}}}"#
            ),
            format!(
                r#"{{"method":"tools/call","params":{{"name":"{long}","id":[1]}},"jsonrpc":"2.0","id":70}}"#
            ),
            format!(r#"{{"id":70,"method":"tools/call","{long}":1,"x":"{}"}}"#, long.repeat(6)),
        ] {
            host.write(&line);
            let said = host.read();
            assert_eq!((&said["id"], &said["error"]["code"]), (&json!(70), &json!(-32_600)), "{said}");
            assert!(said["error"]["message"].as_str().unwrap().contains("bytes"), "{said}");
        }
        host.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/none","params":{{"x":"{long}"}}}}"#
        ));
        host.write(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":"{long}"}}}}"#));
        host.write(&format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"ping"}}"#));
        assert_eq!(host.read()["error"]["code"], -32_600);
        let grown = peak_kib(host.pid()).saturating_sub(before);
        assert!(grown < 24 << 10, "it grew by {grown} KiB");
        // As much as one message bears is the daemon's to refuse.
        let goal = "x".repeat(3 << 19);
        let why = host.fails("delegate", json!({ "goal": goal, "worker": "shell", "task_id": "long" }));
        assert!(why.len() < 1_000, "{}", why.len());
        assert_eq!(census(&mut host), [0, 0, 0]);
        assert_eq!(host.told, [] as [Value; 0]);
    }
}

/// The most memory that a process has had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_server_whose_host_vanishes_while_it_waits_ends_and_the_task_goes_on() {
    let (world, _daemon) = world();
    let mut first = Host::new_era(&world, "first");
    first.does("delegate", json!({ "goal": "sleep 600", "worker": "shell", "task_id": "long" }));
    let cursor = first.does("task_wait", json!({ "task_id": "long" }))["cursor"].clone();
    let waits = json!({ "task_id": "long", "cursor": cursor, "max_wait_s": 45 });
    for kills in [false, true] {
        let mut host = Host::new_era(&world, "vanishing");
        host.begin("tools/call", json!({ "name": "task_wait", "arguments": waits }));
        // Answered while the other waits, so it does wait.
        host.answer("ping", json!({}));
        if kills {
            host.kill()
        } else {
            host.leave()
        }
        let begun = std::time::Instant::now();
        host.ended();
        assert!(begun.elapsed().as_secs() < 40, "it has waited to the end");
    }
    assert_ne!(first.does("task_status", json!({ "task_id": "long" }))["tasks"][0]["is_over"], true);
    first.does("task_cancel", json!({ "task_id": "long", "reason": "over" }));
    assert_eq!(first.follow("long")["state"], "cancelled");
}

/// Connections that a door has, those included whose peers have gone, as the kernel lists them.
fn connections(http: Http) -> usize {
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let (ours, listening) = (format!("0100007F:{:04X}", http.port), "0A");
    let of_the_door = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1] == ours && words[3] != listening
    };
    all.lines().skip(1).filter(of_the_door).count()
}

#[test]
fn hosts_over_http_that_vanish_while_they_wait_leave_no_connection_behind() {
    let world = World::new();
    world.rule(ALLOW);
    world.configure("[mcp]\nenabled = true\n");
    let _daemon = world.start();
    let http = Http::mcp(&world);
    let mut first = Host::new_era(&world, "first");
    first.does("delegate", json!({ "goal": "sleep 600", "worker": "shell", "task_id": "long" }));
    eventually("the run", || {
        let said = world.command(&["task", "list", "--json"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("running")
    });
    let cursor = first.does("task_wait", json!({ "task_id": "long" }))["cursor"].clone();
    let meta = first.meta.clone();
    let waits = json!({ "task_id": "long", "cursor": cursor, "max_wait_s": 45 });
    let params = json!({ "name": "task_wait", "arguments": waits, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers = [
        ("Host", "127.0.0.1:PORT"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "task_wait"),
        ("x-provost-agent", "vanishing"),
    ];
    let request = http.bytes("POST /mcp", &headers, body.as_bytes());
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = http.connect();
            stream.write_all(&request).unwrap();
            stream
        })
        .collect();
    assert_eq!(connections(http), 8);
    // Nothing is said to them: they do wait.
    for stream in &waiting {
        stream.set_nonblocking(true).unwrap();
    }
    first.does("task_status", json!({}));
    let mut byte = [0];
    assert!(
        waiting.iter().all(|mut it| it.read(&mut byte).is_err_and(|err| err.kind() == ErrorKind::WouldBlock))
    );
    drop(waiting);
    // Long before any of them would have been answered.
    eventually("the end of their connections", || connections(http) == 0);
    first.does("task_cancel", json!({ "task_id": "long", "reason": "over" }));
}

#[test]
fn megabytes_over_http_are_refused_in_words_and_the_next_request_is_answered() {
    let world = World::new();
    world.rule(ALLOW);
    world.configure("[mcp]\nenabled = true\n");
    let _daemon = world.start();
    let http = Http::mcp(&world);
    let headers = [
        ("Host", "127.0.0.1:PORT"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("x-provost-agent", "coder"),
        ("Connection", "close"),
    ];
    let say = |body: &[u8]| {
        let mut stream = http.connect();
        // It may be refused before all of it was taken.
        let _ = stream.write_all(&http.bytes("POST /mcp", &headers, body));
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        String::from_utf8(said).unwrap()
    };
    let said = say("x".repeat(TOO_LONG).as_bytes());
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("MiB"), "{said}");
    for (body, status) in [("hello", 400), ("[1,2", 400), ("5", 400), ("", 400)] {
        let said = say(body.as_bytes());
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{body}: {said}");
    }
    let twice = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"lock_acquire","arguments":{"symbol":"@a:b","symbol":"@c:d"}}}"#;
    let said = say(twice.as_bytes());
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("`symbol` is there twice"), "{said}");
    let unknown = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": { "name": 5 } });
    let said = say(unknown.to_string().as_bytes());
    assert!(said.contains("-32602") && said.contains("\"id\":4"), "{said}");
}

#[test]
fn two_hosts_with_one_identity_are_one_agent_and_both_are_told() {
    let (world, _daemon) = world();
    let (mut one, mut two) = (Host::old(&world, "coder"), Host::new_era(&world, "coder"));
    let mut other = Host::new_era(&world, "other");
    one.does("lock_acquire", json!({ "symbol": "a.py:f", "reason": "ours" }));
    two.does("lock_acquire", json!({ "symbol": "a.py:f", "reason": "ours, too" }));
    assert!(other.fails("lock_acquire", json!({ "symbol": "a.py:f" })).contains("coder"));
    two.does("lock_release", json!({ "symbol": "a.py:f" }));
    other.does("lock_acquire", json!({ "symbol": "a.py:f" }));
    let asked =
        json!({ "goal": "until test -e go; do sleep 0.05; done", "worker": "shell", "task_id": "t1" });
    one.does("delegate", asked.clone());
    assert_eq!(two.does("delegate", asked)["task_id"], "t1", "the same id is the same task");
    eventually("the run", || {
        let said = world.command(&["task", "list", "--json"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("running")
    });
    let waits = |host: &mut Host| {
        let cursor = host.does("task_wait", json!({ "task_id": "t1", "max_wait_s": 0 }))["cursor"].clone();
        host.begin("tools/call", json!({ "name": "task_wait", "arguments": { "task_id": "t1", "cursor": cursor, "max_wait_s": 45 } }))
    };
    let (first, second) = (waits(&mut one), waits(&mut two));
    std::fs::write(world.repo().join("go"), "").unwrap();
    for (host, id) in [(&mut one, first), (&mut two, second)] {
        let answer = host.answer_to(id);
        assert!(answer["result"]["structuredContent"]["state"].is_string(), "{answer}");
        assert_eq!(host.follow("t1")["state"], "completed");
    }
}
