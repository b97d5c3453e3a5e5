//! The A6s door as each editor's plugin uses it: what was recorded from them is sent again, and their ways of
//! reading are reproduced, mistakes included.

use std::io::{Read as _, Write as _};

use provost::protocols::a6s::call::Call;
use provost::protocols::a6s::wire::Artifact;
use serde_json::{Value, json};

use crate::support::a6s_client::{ACCEPT, PONG, Socket, handshake, head, world};
use crate::support::loopback_client::Http;

/// Returns the messages that one of the clients has sent, in order: method, and text.
fn recorded(client: &str) -> Vec<(String, String)> {
    let text = match client {
        "nvim" => include_str!("../../vectors/a6s/nvim.jsonl"),
        "emacs" => include_str!("../../vectors/a6s/emacs.jsonl"),
        _ => include_str!("../../vectors/a6s/sublime.jsonl"),
    };
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter_map(|it| Some((it["method"].as_str()?.to_owned(), it["sent"].as_str()?.to_owned())))
        .collect()
}

/// Returns the call that a request's text makes.
fn call(text: &str) -> Result<Call, String> {
    let parts: provost::protocols::a6s::wire::Request<'_> = serde_json::from_str(text).unwrap();
    let method: String = serde_json::from_str(parts.method.unwrap().get()).unwrap();
    Call::read(&method, parts.params.map(serde_json::value::RawValue::get))
        .map_err(|fault| fault.as_str().to_owned())
}

#[test]
fn every_recorded_request_is_understood() {
    let mut understood = 0;
    for client in ["nvim", "emacs", "sublime"] {
        for (method, text) in recorded(client) {
            match call(&text) {
                Ok(call) => {
                    assert_eq!(call.method(), method, "{client}: {text}");
                    understood += 1;
                }
                // Each of them also tried something wrong.
                Err(why) if method == "no.such" => assert_eq!(why, "Unknown method: no.such"),
                Err(why) => {
                    let expected = [": missing field ", ": is empty"].iter().any(|it| why.contains(it));
                    assert!(expected && why.starts_with(&method), "{text}: {why}");
                }
            }
        }
    }
    assert!(understood > 80, "{understood}");
}

#[test]
fn recorded_requests_are_each_answered_once_with_a_result_or_a_sentence() {
    let world = crate::support::World::new();
    // Nobody allows their applies.
    world.configure("[a6s]\nenabled = true\napply_wait = \"1s\"\n");
    let _daemon = world.start();
    let door = Http::a6s(&world);
    for client in ["nvim", "emacs", "sublime"] {
        let mut socket = Socket::open(door);
        for (method, text) in recorded(client) {
            socket.text(&text);
            let sent: Value = serde_json::from_str(&text).unwrap_or_default();
            let answer = socket.message();
            let members: Vec<&String> = answer.as_object().unwrap().keys().collect();
            assert_eq!(answer["id"], sent["id"], "{client} {method}");
            match &answer["error"] {
                Value::Null => {
                    assert!(members.iter().any(|it| *it == "result"), "{client} {method}: {answer}")
                }
                Value::String(error) => assert!(!error.is_empty() && members.len() == 2, "{answer}"),
                other => panic!("{client} {method}: {other}"),
            }
        }
        assert!(socket.is_alive(), "{client}");
        assert_eq!(socket.aside, Vec::<Value>::new());
    }
}

fn artifacts(artifacts: &str) -> Result<Vec<Artifact>, String> {
    let text = format!(r#"{{"method":"artifacts.preview","params":{{"artifacts":{artifacts}}}}}"#);
    call(&text).map(|call| match call {
        Call::ArtifactsPreview(asked) => asked.artifacts.0,
        other => panic!("{other:?}"),
    })
}

fn artifact(id: &str, path: &str, content: &str) -> Artifact {
    Artifact {
        id: id.into(),
        kind: "file".into(),
        path: path.into(),
        content: content.into(),
        language: "text".into(),
        base_hash: None,
    }
}

#[test]
fn what_emacs_makes_of_artifacts_is_what_they_were() {
    let both = [artifact("e1", "a.txt", "hi 世\n"), artifact("e2", "b.txt", "")];
    let plain = serde_json::to_string(&both).unwrap();
    assert!(!plain.contains("null"));
    let mangled = r#"{"id":["e1","type","file","path","a.txt","content","hi 世\n","language","text"],
        "id":["e2","type","file","path","b.txt","content","","language","text"]}"#;
    // Whatever member the answer began with becomes the key of all.
    let by_type = r#"{"type":["file","path","a.txt","content","hi 世\n","language","text","id","e1"],
        "type":["file","path","b.txt","content","","id","e2","language","text"]}"#;
    let with_more = r#"{"id":["e1","type","file","path","a.txt","content","hi 世\n","language","text","baseHash",null],
        "id":["e2","type","file","path","b.txt","content","","language","text","odd",{"a":[1]},"flag",false]}"#;
    for text in [&plain, mangled, by_type, with_more] {
        assert_eq!(artifacts(text).unwrap(), both, "{text}");
    }
    let one = r#"{"id":"e1","type":"file","path":"a.txt","content":"hi 世\n","language":"text","x":1}"#;
    assert_eq!(artifacts(one).unwrap(), both[..1]);
    for nothing in ["null", "[]", "{}"] {
        assert_eq!(artifacts(nothing).unwrap(), [], "{nothing}");
    }
    assert_eq!(
        call(r#"{"method":"artifacts.apply","params":null}"#).map(|it| it.method()),
        Ok("artifacts.apply")
    );
    let hash = "ab".repeat(32);
    let hashed = format!(r#"{{"path":["a","baseHash","{hash}"]}}"#);
    assert_eq!(artifacts(&hashed).unwrap()[0].base_hash, Some(hash));
}

#[test]
fn what_is_no_list_of_artifacts_is_an_error_that_says_so() {
    let many = format!("[{}]", vec![r#"{"path":"a"}"#; 501].join(","));
    let many_mangled = format!("{{{}}}", vec![r#""path":["a"]"#; 501].join(","));
    let endless = format!(r#"{{"path":["a"{}]}}"#, r#","x",1"#.repeat(100_000));
    for (text, expected) in [
        ("7", "list of artifacts"),
        (r#""text""#, "list of artifacts"),
        ("[7]", "artifacts"),
        ("[null]", "artifacts"),
        (r#"{"id":7}"#, "must be a list"),
        (r#"{"id":["a","path"]}"#, "must be a list"),
        (r#"{"id":[]}"#, "must be a list"),
        (r#"{"id":["a",7,"b"]}"#, "must be a list"),
        (r#"{"id":["a","path",7]}"#, "path must be a string"),
        (r#"[{"path":7}]"#, "path"),
        (&many, "more than 500"),
        (&many_mangled, "more than 500"),
        (&endless, "must be a list"),
    ] {
        let shown: String = text.chars().take(60).collect();
        let error = artifacts(text).expect_err(&shown);
        assert!(error.contains(expected) && error.len() < 300, "{shown}: {error}");
    }
}

#[test]
fn members_have_their_bounds_and_a_null_is_none() {
    let ok = |text: &str| call(text).map(drop);
    let invoke = |agent: &str, task: &str, more: &str| {
        ok(&json!({ "method": "agents.invoke", "params": { "agentType": agent, "task": task } })
            .to_string()
            .replace("}}", &format!("{more}}}}}")))
    };
    let long = "ä".repeat(10_000);
    assert_eq!(invoke("a", &long, ""), Ok(()), "as many characters, whatever they take");
    assert_eq!(invoke("a", &format!("  {long}\n"), ""), Ok(()), "blanks around it are not counted");
    assert_eq!(invoke("a", "t", r#","context":null"#), Ok(()));
    assert_eq!(invoke("a", "t", r#","context":{"a":[1]}"#), Ok(()));
    assert_eq!(invoke("a", "t", r#","context":"words""#), Ok(()));
    let too_long = format!("{long}b");
    for (agent, task, more, expected) in [
        ("", "t", "", "`agentType`: is empty"),
        (" \n", "t", "", "`agentType`: is empty"),
        ("a", "", "", "`task`: is empty"),
        ("a", too_long.as_str(), "", "`task`: is longer than 10000 characters"),
        ("a", "t", r#","task":"u""#, "duplicate field"),
    ] {
        let error = invoke(agent, task, more).unwrap_err();
        assert!(error.starts_with("agents.invoke: ") && error.contains(expected), "{error}");
    }
    let code = |code: &str, more: &str| {
        ok(&format!(r#"{{"method":"code.review","params":{{"code":{}{more}}}}}"#, json!(code)))
    };
    assert_eq!(code(&"x".repeat(1 << 20), ""), Ok(()));
    assert!(code(&"x".repeat((1 << 20) + 1), "").unwrap_err().contains("longer than"));
    assert_eq!(code("x", r#","language":"","filePath":"","reviewType":null"#), Ok(()));
    let error = code("x", r#","reviewType":"everything""#).unwrap_err();
    for word in ["security", "performance", "quality", "all"] {
        assert!(error.contains(word), "{error}");
    }
    for (text, expected) in [
        (r#"{"method":"background.cancel","params":{}}"#, "missing field `taskId`"),
        (r#"{"method":"background.cancel","params":{"taskId":null}}"#, "`taskId`"),
        (r#"{"method":"background.cancel","params":{"taskId":7}}"#, "`taskId`"),
        (r#"{"method":"background.cancel","params":[{"taskId":"a"}]}"#, "must be an object"),
        (r#"{"method":"feedback.submit","params":{"conversation_log_id":"a","signal":"maybe"}}"#, "accept"),
    ] {
        let error = ok(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let either =
        |name: &str, value: &str| format!(r#"{{"method":"scan.status","params":{{"{name}":"{value}"}}}}"#);
    assert_eq!(ok(&either("job_id", "job_1")), Ok(()));
    assert_eq!(ok(&either("jobId", "job_1")), Ok(()));
    assert!(ok(&either("jobId", &"x".repeat(201))).is_err());
}

#[test]
fn emacs_finds_what_it_looks_for_letter_by_letter() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let (mut socket, head) = Socket::with_head(door, handshake(door.port).as_bytes());
    // websocket.el compares these lines as they are when case-fold-search is off, but for the S of `Socket`.
    let finds = |wanted: &str| head.split("\r\n").any(|line| line == wanted);
    assert!(finds("Upgrade: websocket") && finds("Connection: Upgrade"), "{head}");
    assert!(finds(&format!("Sec-Websocket-Accept: {ACCEPT}")), "{head}");
    socket.text(r#"{"id":"req_1","method":"agents.list","params":null}"#);
    assert!(socket.message()["result"].is_array());
    // It reads each frame as a whole message, so each has to be one; and of a close frame one byte.
    socket.stream.write_all(&[0x88, 0x00]).unwrap();
    assert_eq!(socket.frame().code(), 1000);
    assert_eq!(socket.rest(), b"");
}

#[test]
fn neovim_takes_any_error_member_for_an_error_and_its_pong_is_garbage() {
    let world = world();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    // It echoes a ping's payload unmasked behind a random mask: what arrives is anything.
    for payload in [&b""[..], b"xyz", &[0xff; 125]] {
        let mut pong = head(PONG, 0x80, payload.len() as u64);
        pong.extend_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
        pong.extend_from_slice(payload);
        socket.stream.write_all(&pong).unwrap();
    }
    for text in [
        r#"{"method":"agents.list","params":[],"id":"req_1"}"#,
        r#"{"params":[],"id":"req_2","method":"fleet.list"}"#,
        r#"{"id":"req_3","params":{"agentId":"shell"},"method":"fleet.status"}"#,
    ] {
        socket.text(text);
        let answer = socket.message();
        // `if msg.error then`: a null would be true there.
        assert!(answer.get("error").is_none(), "{answer}");
        assert!(!answer.to_string().contains("null"), "{answer}");
    }
}

#[test]
fn sublime_loses_nothing_although_it_throws_away_what_comes_with_the_head() {
    let world = world();
    let _daemon = world.start();
    let door = Http::a6s(&world);
    let mut stream = door.connect();
    // It asks behind its handshake without having seen the answer; and forgets whatever is behind the head
    // that it reads in one piece of eight kilobytes.
    stream.write_all(handshake(door.port).as_bytes()).unwrap();
    let mut piece = vec![0; 8_192];
    let read = stream.read(&mut piece).unwrap();
    assert!(piece[..read].ends_with(b"\r\n\r\n"), "nothing is behind the head");
    let mut socket = Socket::open(door);
    for n in 0..20 {
        let answer = socket.ask("fleet.status", &json!({}));
        assert!(answer["result"]["total"].is_u64(), "{n}: {answer}");
    }
    // Every message is whole in its frame: there is no more to it.
    let id = socket.request("agents.list", &json!({}));
    let frame = socket.frame();
    assert_eq!(frame.json()["id"], *id);
}

#[test]
fn agents_and_the_fleet_have_what_each_client_reads() {
    let world = world();
    world.configure(
        "[a6s]\nenabled = true\n\
         [workers.coder]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\n",
    );
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    let agents = socket.result("agents.list", &json!({}));
    let coder = agents.as_array().unwrap().iter().find(|it| it["id"] == "coder").unwrap();
    assert_eq!(
        *coder,
        json!({ "id": "coder", "name": "coder", "status": "available",
        "description": "A worker that is no agent; it is given the task as it stands, and a private copy" })
    );
    let fleet = socket.result("fleet.list", &json!(null));
    let row = fleet.as_array().unwrap().iter().find(|it| it["agentId"] == "coder").unwrap();
    for (member, value) in [("id", "coder"), ("group", "BUILD"), ("capability", "BUILD"), ("region", "local")]
    {
        assert_eq!(row[member], value, "{row}");
    }
    assert_eq!(row["activeTasks"], 0);
    let all = fleet.as_array().unwrap().len();
    assert_eq!(socket.result("fleet.list", &json!({ "capability": "build" })).as_array().unwrap().len(), all);
    assert_eq!(socket.result("fleet.list", &json!({ "capability": "SECURE" })), json!([]));
    let one = socket.result("fleet.status", &json!({ "agentId": "Coder" }));
    assert_eq!(
        (&one["agentId"], &one["status"], &one["activeTasks"]),
        (&json!("coder"), &json!("available"), &json!(0))
    );
    assert!(one["uptime"].is_string() && one["version"].as_str().unwrap().starts_with("sha256:"), "{one}");
    let together = socket.result("fleet.status", &json!([]));
    assert_eq!(together["total"], all);
    assert_eq!(together["byCapability"]["BUILD"]["total"], all);
    let sum = ["available", "busy", "offline"].map(|it| together[it].as_u64().unwrap()).iter().sum::<u64>();
    assert_eq!(sum, all as u64);
    let error = socket.error("fleet.status", &json!({ "agentId": "nobody" }));
    assert!(error.starts_with("Unknown agent: nobody. Configured: ") && error.contains("coder"), "{error}");
}

#[test]
fn roles_are_listed_where_that_is_wanted_and_a_name_means_the_same_everywhere() {
    let agents = "[[agent]]\nid = \"off-ai\"\ncommand = [\"/no/such\"]\n\
        [[agent]]\nid = \"coder-ai\"\nname = \"Claude\"\ncapability = \"SECURE\"\ncommand = [\"/bin/sh\", \"-c\", \"cat\"]\n\
        [role.strict]\nagent = \"coder-ai\"\npreamble = \"Be strict.\"\n[role.reviewer-ai]\nagent = \"off-ai\"\n";
    let listed = |more: &str| {
        let world = crate::support::World::new();
        world.configure(&format!("[a6s]\nenabled = true\n{more}{agents}"));
        let daemon = world.start();
        let mut socket = Socket::open(Http::a6s(&world));
        for name in ["coder-ai", "CODER-AI", " claude ", "strict", "debug-ai"] {
            let one = socket.result("fleet.status", &json!({ "agentId": name }));
            assert_eq!((&one["agentId"], &one["maxParallel"]), (&json!("coder-ai"), &json!(1)), "{name}");
        }
        assert_eq!(socket.result("fleet.status", &json!({ "agentId": "Reviewer-AI" }))["status"], "offline");
        assert_eq!(
            socket.result("fleet.list", &json!({})).as_array().unwrap().len(),
            2,
            "roles are no agents"
        );
        let unknown = socket.error("fleet.status", &json!({ "agentId": "shell" }));
        assert_eq!(unknown, "Unknown agent: shell. Configured: off-ai, coder-ai");
        assert_eq!(socket.error("agents.invoke", &json!({ "agentType": "shell", "task": "x" })), unknown);
        let list = socket.result("agents.list", &json!({}));
        drop(daemon);
        list
    };
    let agents_alone = listed("");
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&agents_alone), ["off-ai", "coder-ai"], "in their order");
    assert_eq!(agents_alone[0]["status"], "offline");
    let with_roles = listed("list_roles = true\n");
    assert_eq!(ids(&with_roles), ["off-ai", "coder-ai", "reviewer-ai", "strict"]);
    let strict =
        json!({ "id": "strict", "name": "strict", "description": "Be strict.", "status": "available" });
    assert_eq!(with_roles[3], strict);
    assert_eq!(with_roles[2]["status"], "offline", "as the agent behind it");
    assert!(with_roles[2]["description"].as_str().unwrap().starts_with("Review carefully"));
}

#[test]
fn neovim_is_answered_with_an_object_where_somebody_has_asked_for_that() {
    for (more, expected) in [("", false), ("[a6s.compat]\nnvim_output_object = true\n", true)] {
        let world = crate::support::World::new();
        world.configure(&format!("[a6s]\nenabled = true\n{more}"));
        let _daemon = world.start();
        let mut neovim = Socket::open(Http::a6s(&world));
        let task = neovim.result("background.launch", &json!({ "agentType": "shell", "task": "echo said" }));
        let params = json!({ "taskId": task["taskId"] });
        loop {
            let list = neovim.result("background.list", &json!({}));
            match list[0]["status"].as_str() {
                Some("completed") => break,
                _ => while neovim.message()["type"] != "task.update" {},
            }
        }
        assert_eq!(neovim.result("background.output", &params), json!("said\n"), "not known yet");
        neovim.result("background.list", &json!([]));
        let output = neovim.result("background.output", &params);
        let object = json!({ "output": "said\n" });
        assert_eq!(output, if expected { object } else { json!("said\n") });
        let mut other = Socket::open(Http::a6s(&world));
        other.result("background.list", &json!({}));
        other.result("background.list", &json!(null));
        assert_eq!(
            other.result("background.output", &params),
            json!("said\n"),
            "others have what is in the document"
        );
    }
}

#[test]
fn an_agent_whose_entry_is_wrong_says_so_and_nobody_takes_its_place() {
    let world = crate::support::World::new();
    world.configure(
        "[a6s]\nenabled = true\n[[agent]]\nid = \"coder-ai\"\ncommand = [\"/bin/cat\"]\nstream = \"odd\"\n",
    );
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    assert_eq!(socket.result("agents.list", &json!({})), json!([]), "not even the shell");
    for (method, params) in [
        ("agents.invoke", json!({ "agentType": "Coder-AI", "task": "x" })),
        ("fleet.status", json!({ "agentId": "coder-ai" })),
    ] {
        let why = socket.error(method, &params);
        assert!(
            why.to_lowercase().starts_with("coder-ai cannot be used: ") && why.contains("`stream`"),
            "{why}"
        );
    }
    let unknown = socket.error("agents.invoke", &json!({ "agentType": "shell", "task": "x" }));
    assert!(unknown.starts_with("Unknown agent: shell."), "{unknown}");
}
