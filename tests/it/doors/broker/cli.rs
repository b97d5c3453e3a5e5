//! The broker from the command line, and the instructions that agents are given.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::broker_client::{poll, publish, status};
use crate::support::loopback_client::Http;

fn run(world: &World, args: &[&str]) -> String {
    let out = world.command(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn json_of(world: &World, args: &[&str]) -> Value {
    serde_json::from_str(&run(world, args)).unwrap()
}

fn sh(world: &World, script: &str) -> Output {
    let mut sh = Command::new("sh");
    sh.args(["-c", script]).current_dir(world.repo()).stdin(Stdio::null()).output().unwrap()
}

/// The commands in a text of instructions, in their order.
fn commands(text: &str) -> Vec<String> {
    text.split("```sh\n").skip(1).map(|it| it.split("\n```").next().unwrap().to_owned()).collect()
}

#[test]
fn an_agents_first_instructions_work_as_they_stand() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("supervisor", "working", &[]));
    let text = run(&world, &["broker", "boot-block", "feat/auth"]);
    let [register, done, blocked, question, wait] =
        commands(&text).try_into().unwrap_or_else(|it| panic!("{it:?}"));
    let said = |script: &str| {
        let out = sh(&world, script);
        assert!(out.status.success(), "{script}: {out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(said(&register), "");
    assert_eq!(broker.get("/status").json()["agents"][0]["agent_id"], "feat-auth");
    // Samples that were not filled in are told apart from words.
    for sample in [&blocked, &question] {
        assert!(said(sample).contains("substitute the real value"), "{sample}");
    }
    assert_eq!(
        said(&blocked.replace("<describe what you need>", "tokens").replace("<agent-id or resource>", "ci")),
        ""
    );
    assert_eq!(said(&question.replace("<your specific question>", "RS256?")), "");
    run(&world, &["answer", "feat/auth", "RS256, as everywhere"]);
    let answer: Value = serde_json::from_str(&said(&wait)).unwrap();
    let kinds: Vec<&str> =
        answer["messages"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["agent.answer", "agent.feedback"]);
    assert_eq!(
        answer["messages"][0]["payload"],
        json!({
        "from": "supervisor", "answer": "RS256, as everywhere", "re": "RS256?" })
    );
    assert_eq!(said(&done), "");
    assert_eq!(broker.get("/status").json()["agents"][0]["status"], "done");
}

#[test]
fn a_question_needs_somebody_until_it_is_answered() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let ask = |agent: &str, text: &str| {
        publish(
            broker,
            &json!({ "type": "agent.question", "agent_id": agent, "payload": { "question": text } }),
        );
    };
    ask("feat/aa", "which\u{1b}[2J way?");
    ask("feat-bb", "when?");
    let overview = run(&world, &[]);
    assert!(
        overview.contains("Questions of agents (2)") && overview.contains("feat-bb: when?"),
        "{overview}"
    );
    assert!(!overview.contains('\u{1b}'));
    let open = json_of(&world, &["--json"])["questions"].clone();
    let number = open[1]["seq"].to_string();
    run(&world, &["answer", &number, "now"]);
    assert_eq!(json_of(&world, &["--json"])["questions"].as_array().unwrap().len(), 1);
    let out = world.command(&["answer", &number, "again"]).output().unwrap();
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("no question"), "{out:?}");
    run(&world, &["answer", "feat-aa", "left"]);
    assert!(run(&world, &[]).contains("Nothing needs you"));
}

#[test]
fn an_answer_to_no_question_says_so_and_is_told_all_the_same() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    let said = run(&world, &["answer", "feat/aa", "left"]);
    assert!(said.contains("no question of feat/aa is open") && !said.contains("answered"), "{said}");
    assert_eq!(json_of(&world, &["answer", "feat-aa", "right", "--json"])["question"], Value::Null);
    assert_eq!(poll(broker, "feat-aa", 0).0.len(), 4);
    publish(
        broker,
        &json!({ "type": "agent.question", "agent_id": "feat/aa", "payload": { "question": "which way?" } }),
    );
    assert!(run(&world, &["answer", "feat-aa", "left"]).contains("answered feat-aa"));
}

#[test]
fn agents_in_each_others_way_need_somebody() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let intent = |agent: &str, file: &str| {
        json!({ "type": "agent.intent", "agent_id": agent,
            "payload": { "files": [file], "summary": "s", "valid_for_seconds": 600 } })
    };
    publish(broker, &intent("feat-aa", "src/"));
    assert!(run(&world, &[]).contains("Nothing needs you"));
    publish(broker, &intent("feat-bb", "src/b.rs"));
    let overview = run(&world, &[]);
    assert!(overview.contains("src/b.rs: feat-aa and feat-bb"), "{overview}");
    assert!(!overview.contains("Nothing needs you"), "{overview}");
    let overlaps = json_of(&world, &["--json"])["overlaps"].clone();
    assert_eq!(overlaps, json!([{ "file": "src/b.rs", "agents": ["feat-aa", "feat-bb"] }]));
    // Two who change one file, whatever they have announced.
    for name in ["feat-cc", "feat-dd"] {
        publish(broker, &status(name, "working", &["lib/c.rs"]));
    }
    let overview = run(&world, &[]);
    assert!(overview.contains("lib/c.rs: feat-cc and feat-dd"), "{overview}");
    // Through two doors.
    world.write("one.ts", "export const one = 1\n");
    let http = Http::agent_protocol(&world);
    assert_eq!(http.post("/resources/claim", &json!({ "path": "one.ts", "agent_id": "x" })).status, 409);
    assert_eq!(http.post("/agents/announce", &json!({ "id": "x", "tool": "t" })).status, 201);
    assert_eq!(http.post("/resources/claim", &json!({ "path": "one.ts", "agent_id": "x" })).status, 200);
    world.done("sess", &["lock", "one.ts:one"]);
    let overview = run(&world, &[]);
    assert!(overview.contains("one.ts: sess and x"), "{overview}");
    world.done("sess", &["unlock", "one.ts:one"]);
    assert!(!run(&world, &[]).contains("one.ts"));
}

#[test]
fn the_first_instructions_say_what_a_commit_tells() {
    let world = World::new();
    world.put(&world.repo().join("a"), "a\n");
    assert!(sh(&world, "git init -q .").status.success());
    let _daemon = world.start();
    let block = |world: &World| {
        let out = world.command(&["broker", "boot-block", "feat/auth"]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (text, note) = block(&world);
    assert!(text.contains("A commit is not reported to other agents here"), "{text}");
    assert!(note.contains("provost git install"), "{note}");
    run(&world, &["git", "install"]);
    let (text, note) = block(&world);
    assert!(text.contains("tells the others by itself of your commit"), "{text}");
    assert!(!note.contains("provost git install"), "{note}");
    // Done is what only the agent knows.
    assert_eq!(commands(&text).len(), 5);
}

#[test]
fn the_first_instructions_say_as_whose_a_commit_is_told() {
    let world = World::new();
    world.git(&["init", "-q", "-b", "main", "."]);
    world.write("a", "a\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    for (branch, folder) in [("feat/auth", "../auth"), ("feat/db", "../db")] {
        world.git(&["worktree", "add", "-q", "-b", branch, folder]);
    }
    let _daemon = world.start();
    let broker = Http::broker(&world);
    run(&world, &["git", "install"]);
    let block = |folder: &str, agent: &str| {
        let mut asked = world.command(&["broker", "boot-block", agent]);
        let out = asked.current_dir(world.path(folder)).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap().replace('\n', " ")
    };
    let commit = |folder: &str| {
        let folder = world.path(folder);
        std::fs::write(folder.join("new.txt"), "x\n").unwrap();
        for args in [&["add", "-A"][..], &["commit", "-qm", "new"]] {
            assert!(world.git_in(&folder, args).status().unwrap().success());
        }
    };
    let told_as = || {
        let rows = broker.get("/status").json();
        let rows = rows["agents"].as_array().unwrap().clone();
        let committed = rows.iter().filter(|it| it["status"] == "committed");
        committed.map(|it| it["agent_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // From wherever it is asked for, it speaks of the agent's own work tree,
    for folder in ["repo", "auth", "db"] {
        let text = block(folder, "feat/auth");
        assert!(text.contains("the work tree of the branch `feat/auth`, which is yours, tells"), "{text}");
    }
    commit("auth");
    assert_eq!(told_as(), ["feat-auth"]);
    // and where it has none, of the one whose work a commit here would be taken for.
    let text = block("db", "feat/new");
    assert!(text.contains("with your name, feat-new, tells"), "{text}");
    assert!(text.contains("in this work tree is reported as feat-db's, and not as yours"), "{text}");
    commit("db");
    assert!(told_as().contains(&"feat-db".to_owned()) && !told_as().contains(&"feat-new".to_owned()));
    let text = block("repo", "feat/new");
    assert!(text.contains("in this work tree is not reported to other agents at present"), "{text}");
    commit("repo");
    assert_eq!(told_as().len(), 2, "nobody is called main");
    // A marker goes before the branch.
    std::fs::write(world.repo().join(".git/worktrees/db/paw-agent-id"), "PAW_AGENT_ID=feat-new\n").unwrap();
    let text = block("repo", "feat/new");
    assert!(text.contains("the work tree of the branch `feat/db`, which is yours"), "{text}");
}

#[test]
fn messages_are_published_read_and_waited_for() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let mut said = world.command(&["broker", "publish", "-"]);
    let mut child = said.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(status("feat-aa", "working", &["src/a.rs"]).to_string().as_bytes())
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let feedback = json!({ "type": "agent.feedback", "agent_id": "feat/aa", "payload": { "from": "feat-bb", "errors": ["e"] } });
    let seq =
        json_of(&world, &["broker", "publish", &feedback.to_string(), "--json"])["seq"].as_u64().unwrap();
    let inbox = json_of(&world, &["broker", "inbox", "feat/aa", "--json"]);
    assert_eq!((&inbox["posts"][0]["message"], &inbox["last_seq"]), (&feedback, &json!(seq)));
    let since = seq.to_string();
    let waiting = world
        .command(&["broker", "inbox", "feat-aa", "--since", &since, "--wait", "15s", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    publish(broker, &feedback);
    let waited: Value = serde_json::from_slice(&waiting.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(waited["posts"].as_array().unwrap().len(), 1);
    assert_eq!(poll(broker, "feat-aa", 0).0.len(), 2);
    assert!(run(&world, &["broker", "status"]).contains("feat-aa"));
    let word = feedback["payload"]["errors"][0].as_str().unwrap();
    for shown in [run(&world, &["broker", "log"]), run(&world, &["broker", "inbox", "feat-aa"])] {
        assert!(shown.contains(&format!("feedback from feat-bb: 1 errors: {word}")), "{shown}");
    }
    for wrong in ["{", "{}", r#"{"type":"agent.status","agent_id":"Feat-X","payload":{"status":"x"}}"#] {
        let out = world.command(&["broker", "publish", wrong]).output().unwrap();
        assert!(!out.status.success(), "{wrong}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("error:"), "{out:?}");
    }
}

#[test]
fn what_agents_are_told_names_no_kind_that_there_is_not() {
    let world = World::new();
    let text = run(&world, &["broker", "skill"]);
    let kinds = [
        "status",
        "artifact",
        "blocked",
        "verified",
        "feedback",
        "answer",
        "question",
        "intent",
        "advanced-main",
    ];
    for kind in kinds {
        assert!(text.contains(&format!("agent.{kind}")), "{kind}");
    }
    // Each sample is a message that is taken.
    let _daemon = world.start();
    let broker = Http::broker(&world);
    let samples: Vec<Value> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("-d '")?.strip_suffix('\''))
        .map(|it| serde_json::from_str(it).unwrap_or_else(|err| panic!("{err}: {it}")))
        .collect();
    assert!(samples.len() >= 5);
    samples.iter().for_each(|it| publish(broker, it));
}

#[test]
fn an_answer_is_typed_into_a_pane_to_the_letter_if_asked() {
    let world = World::new();
    let _daemon = world.start();
    // Stands in for tmux: it writes down what it was asked, one word a line.
    let tools = world.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let said = world.path("said");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{}'\n", said.display());
    std::fs::write(tools.join("tmux"), script).unwrap();
    std::fs::set_permissions(tools.join("tmux"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let answer = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", tools.display())).output().unwrap()
    };
    let done = answer(&["answer", "feat-aa", "yes; $(rm -rf x)\nEnter", "--tmux", "paw:0.2"]);
    assert!(done.status.success(), "{done:?}");
    let typed = std::fs::read_to_string(&said).unwrap();
    let expected = "send-keys\n-t\npaw:0.2\n-l\n--\nyes; $(rm -rf x) Enter\nsend-keys\n-t\npaw:0.2\nEnter\n";
    assert_eq!(typed, expected, "as text, and one line of it");
    let refused = answer(&["answer", "feat-aa", "yes", "--tmux=-X"]);
    assert!(!refused.status.success());
    assert_eq!(std::fs::read_to_string(&said).unwrap(), expected);
}

#[test]
fn git_paws_configuration_counts_once_it_is_allowed() {
    let world = World::new();
    let text = "default_cli = \"claude\"\n[broker]\nenabled = true\nbind = \"0.0.0.0\"\n\
                [supervisor]\nenabled = false\nlearnings = true\n[supervisor.conflict]\nwindow_seconds = 7\n\
                [opsx]\nrole_gating = \"off\"\n";
    std::fs::create_dir(world.repo().join(".git-paw")).unwrap();
    std::fs::write(world.repo().join(".git-paw/config.toml"), text).unwrap();
    let told = |world: &World| {
        let daemon = world.start();
        let broker = Http::broker(world);
        for name in ["feat-aa", "feat-bb"] {
            publish(broker, &status(name, "working", &["src/a.rs"]));
        }
        let told = poll(broker, "feat-aa", 0).0.len();
        let notes = json_of(world, &["status", "--json"])["notes"].to_string();
        daemon.stop();
        (told, notes)
    };
    let (before, notes) = told(&world);
    assert!(before == 1 && notes.contains("it has not been allowed"), "{before} {notes}");
    run(&world, &["config", "allow", ".git-paw/config.toml", "--yes"]);
    let daemon = world.start();
    let broker = Http::broker(&world);
    for name in ["feat-cc", "feat-dd"] {
        publish(broker, &status(name, "working", &["src/b.rs"]));
    }
    assert!(poll(broker, "feat-cc", 0).0.is_empty(), "the detector is off");
    let notes = json_of(&world, &["status", "--json"])["notes"].to_string();
    assert!(notes.contains("nowhere else"), "{notes}");
    assert!(notes.contains("supervisor.learnings") && !notes.contains("role_gating"), "{notes}");
    daemon.stop();
}
