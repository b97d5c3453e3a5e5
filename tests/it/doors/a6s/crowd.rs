//! The A6s door while much goes wrong at once: a thousand that stall beside a job that runs, and workers that
//! print garbage, nothing, or far too much.

use std::io::Write as _;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::support::a6s_artifacts::{ALL, APPLY, Editor, PREVIEW, desk, made, socket};
use crate::support::a6s_client::{Socket, TEXT, frame, handshake};
use crate::support::loopback_client::Http;
use crate::support::processes::resident;

/// Waits for an event, and leaves the others aside.
fn until(socket: &mut Socket, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = match socket.aside.is_empty() {
            true => socket.message(),
            false => socket.aside.remove(0),
        };
        if message["type"] == kind && wanted(&message["data"]) {
            return message["data"].clone();
        }
    }
}

fn invoke(socket: &mut Socket, steps: &str) -> Value {
    let ask = json!({ "agentType": "coder-ai", "task": format!("Please.\n{steps}") });
    socket.result("agents.invoke", &ask)["executionId"].clone()
}

/// This many connections; each one stalls in one of five ways.
fn stalled(door: Http, count: usize) -> Vec<std::net::TcpStream> {
    let shake = handshake(door.port);
    let question = frame(TEXT, br#"{"id":1,"method":"fleet.status"}"#);
    let stall = |n: usize| match n % 5 {
        0 => door.connect(),
        1 => {
            let mut connection = door.connect();
            connection.write_all(&shake.as_bytes()[..shake.len() - 3]).unwrap();
            connection
        }
        2 => Socket::open(door).stream,
        3 => {
            let mut socket = Socket::open(door);
            socket.stream.write_all(&question[..9]).unwrap();
            socket.stream
        }
        // It is told everything from now on, and reads nothing of it.
        _ => {
            let mut socket = Socket::open(door);
            socket.stream.write_all(&question.repeat(20)).unwrap();
            socket.stream
        }
    };
    (0..count).map(stall).collect()
}

#[test]
fn beside_a_thousand_that_stall_jobs_go_on_and_who_follows_them_is_told() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let desk = desk(ALL, "", "max_parallel = 2\n");
    let door = Http::a6s(&desk.world);
    let mut first = socket(&desk);
    let waits = invoke(&mut first, "DO wait");
    until(&mut first, "phase.update", |data| data["phase"] == "generate");
    let before = resident(desk.daemon.pid());
    let held = stalled(door, 1_000);

    // Somebody else does a whole piece of work while the first job runs and a thousand stand around.
    let mut other = socket(&desk);
    let artifacts = made(&mut other, "DO write made.txt x\\n");
    assert_eq!(Editor::Neovim.result(&mut other, PREVIEW, &artifacts)["files"][0]["action"], "create");
    assert_eq!(Editor::Neovim.result(&mut other, APPLY, &artifacts)["applied"], 1);
    assert_eq!(desk.text("made.txt"), "x\n");
    for _ in 0..100 {
        assert!(other.is_alive());
    }
    let status = first.result("execution.status", &json!({ "executionId": waits }));
    assert_eq!(
        (&status["status"], &status["phase"]),
        (&json!("running"), &json!("generate")),
        "it still runs"
    );
    let after = resident(desk.daemon.pid());
    assert!(after < before + 120_000, "{before} kB, then {after} kB");
    assert!(first.result("background.cancel", &json!({ "taskId": waits })).is_null());
    let end = until(&mut first, "execution.complete", |data| data["executionId"] == waits);
    assert_eq!(end["cancelled"], true);
    drop(held);
    assert!(other.is_alive());
}

#[test]
fn an_editor_that_reads_late_delays_no_other_and_finds_each_change_of_what_it_began() {
    const PHASES: [&str; 5] = ["research", "inspect", "generate", "optimize", "review"];
    let desk = desk(ALL, "", "max_parallel = 2\n");
    let (mut late, mut other) = (socket(&desk), socket(&desk));
    let begin = |socket: &mut Socket, n: usize| {
        let ask = json!({ "agentType": "coder-ai", "task": format!("Please.\nDO write late{n}.txt x") });
        socket.request("agents.invoke", &ask)
    };
    let asked: Vec<String> = (0..3).map(|n| begin(&mut late, n)).collect();
    // From here on it reads nothing, and the other one is served meanwhile.
    for _ in 0..3 {
        let execution = invoke(&mut other, "DO write other.txt x");
        let end = until(&mut other, "execution.complete", |data| data["executionId"] == execution);
        assert_eq!(end["status"], "success", "{end}");
        assert!(other.aside.iter().all(|it| it["data"]["executionId"] == execution), "its own alone");
        other.aside.clear();
    }
    let mut stories: Vec<(Value, Vec<String>)> = Vec::new();
    while stories.len() < 3 || stories.iter().any(|(_, story)| story.last().is_none_or(|it| it != "over")) {
        let message = late.message();
        if asked.iter().any(|id| message["id"] == **id) {
            stories.push((message["result"]["executionId"].clone(), Vec::new()));
            continue;
        }
        let data = &message["data"];
        let told = stories.iter_mut().find(|(id, _)| *id == data["executionId"]);
        let (_, story) = told.unwrap_or_else(|| panic!("told before its answer: {message}"));
        let step = match message["type"] == "execution.complete" {
            true => "over".to_owned(),
            false => format!("{} {}", data["phase"].as_str().unwrap(), data["status"].as_str().unwrap()),
        };
        // Progress within a phase may have given way to what came after it.
        if story.last() != Some(&step) {
            story.push(step);
        }
    }
    let phases = PHASES.iter().flat_map(|name| ["running", "completed"].map(|it| format!("{name} {it}")));
    let whole: Vec<String> = phases.chain(["over".to_owned()]).collect();
    for (execution, story) in stories {
        assert_eq!(story, whole, "{execution}");
    }
    assert!(late.is_alive());
}

#[test]
fn whatever_a_worker_prints_its_editor_has_an_end_and_the_memory_one_too() {
    let desk = desk(ALL, "", "max_parallel = 4\n");
    let mut socket = socket(&desk);
    assert!(socket.is_alive());
    let before = resident(desk.daemon.pid());
    for (steps, files) in
        [("DO garbage\nDO write a.txt x", 1), ("", 0), ("DO flood 256\nDO write a.txt x", 1)]
    {
        let execution = invoke(&mut socket, steps);
        let end = until(&mut socket, "execution.complete", |data| data["executionId"] == execution);
        assert_eq!(end["status"], "success", "{steps}: {end}");
        assert_eq!(end["artifacts"].as_array().unwrap().len(), files, "{steps}: {end}");
        let text = end.to_string();
        assert!(!text.contains("\\u001b") && !text.contains(":null"), "{steps}: {text}");
    }
    let task = socket.result(
        "background.launch",
        &json!({ "agentType": "coder-ai", "task": "Please.\nDO flood 512\nDO say the end" }),
    )["taskId"]
        .clone();
    until(&mut socket, "task.update", |data| data["taskId"] == task && data["status"] == "completed");
    let output = socket.result("background.output", &json!({ "taskId": task }));
    let output = output.as_str().unwrap();
    assert!(
        output.starts_with("[... ") && output.contains(" earlier bytes, see provost log job_"),
        "{}",
        &output[..80]
    );
    assert!(output.trim_end().ends_with("the end") && output.len() < 400 << 10, "{}", output.len());
    // What was printed is many times as much as may be held of it.
    let after = resident(desk.daemon.pid());
    assert!(after < before + 150_000, "{before} kB, then {after} kB");
    let failed = invoke(&mut socket, "DO garbage\nDO exit 3");
    let end = until(&mut socket, "execution.complete", |data| data["executionId"] == failed);
    assert_eq!(end["status"], "failure");
    assert!(end["error"].as_str().unwrap().len() <= 4_000, "{end}");
    assert!(socket.is_alive());
}
