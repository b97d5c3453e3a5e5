//! Questions about code whose answers take longer than editors wait: joined, told of late, taken back, asked
//! once.

use serde_json::{Value, json};

use crate::support::a6s_client::{CLOSE, Socket};
use crate::support::a6s_desk::{Desk, begun};
use crate::support::rules::{approvers, ask, policy};

/// Told after the shortest time that there is.
const SOON: &str = "soft_deadline = \"1s\"";

fn question() -> Value {
    json!({ "code": "x = 1", "language": "python", "filePath": "" })
}

/// The task of a question that takes longer.
fn still_running(answer: &Value) -> String {
    let error = answer["error"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let (task, rest) = error.strip_prefix("Still running as ").unwrap().split_once(' ').unwrap();
    let seconds = rest.strip_prefix('(').unwrap().split_once(' ').unwrap();
    assert!(seconds.0.parse::<u64>().unwrap() >= 1, "{error}");
    assert_eq!(seconds.1, "s so far). Repeat the command to get the result.");
    assert!(task.starts_with("task_") && task.len() == 21, "{error}");
    let log = format!("job_{}", &task["task_".len()..]);
    assert_eq!(answer["conversation_log_id"], log.as_str());
    task.to_owned()
}

fn until_it_runs(socket: &mut Socket) {
    while !socket
        .result("background.list", &json!({}))
        .as_array()
        .unwrap()
        .iter()
        .any(|it| it["status"] == "running")
    {}
}

fn complete(socket: &mut Socket) -> Value {
    let mut seen = std::mem::take(&mut socket.aside);
    loop {
        if let Some(it) = seen.iter().find(|it| it["type"] == "execution.complete") {
            return it["data"].clone();
        }
        seen.push(socket.message());
    }
}

#[test]
fn an_editor_is_told_in_time_joins_by_asking_again_and_hears_of_the_end() {
    let desk = Desk::new("text", SOON);
    desk.put("answer", "x = 2\n");
    desk.put("wait", "");
    let (_daemon, mut socket) = desk.start();
    let mut other = desk.socket();
    assert!(other.is_alive());
    let task = still_running(&socket.ask("code.refactor", &question()));
    assert_eq!(still_running(&socket.ask("code.refactor", &question())), task, "the same one");
    let row = &socket.result("background.list", &json!({}))[0];
    assert_eq!((&row["id"], &row["status"]), (&json!(task), &json!("running")));
    desk.remove("wait");
    let told = complete(&mut socket);
    assert_eq!(told["executionId"], task.replace("task_", "exec_"));
    assert_eq!((&told["status"], &told["artifacts"][0]["content"]), (&json!("success"), &json!("x = 2")));
    let made = socket.result("code.refactor", &question());
    assert_eq!(made[0]["content"], "x = 2");
    assert_eq!(begun(&mut socket), 1);
    assert!(other.is_alive());
    assert!(other.aside.iter().all(|it| it["type"] != "execution.complete"), "{:?}", other.aside);
}

#[test]
fn whoever_waits_again_gets_the_answer_and_is_not_told_twice() {
    let desk = Desk::new("text", SOON);
    desk.put("answer", "x = 2\n");
    desk.put("wait", "");
    let (_daemon, mut socket) = desk.start();
    still_running(&socket.ask("code.refactor", &question()));
    let mut late = desk.socket();
    still_running(&late.ask("code.refactor", &question()));
    let again = socket.request("code.refactor", &question());
    // It waits again once it has asked something that comes after it.
    assert!(socket.is_alive());
    desk.remove("wait");
    let mut answer = socket.answer(&again);
    while answer.get("error").is_some() {
        let again = socket.request("code.refactor", &question());
        answer = socket.answer(&again);
    }
    assert_eq!(answer["result"][0]["content"], "x = 2");
    assert_eq!(complete(&mut late)["status"], "success", "the other one still did not know");
}

#[test]
fn whoever_has_the_answer_in_time_is_not_told_of_it_besides() {
    let desk = Desk::new("text", "");
    desk.put("answer", "x = 2\n");
    let (_daemon, mut socket) = desk.start();
    for code in ["a = 1", "b = 1", "c = 1"] {
        let made = socket.result("code.refactor", &json!({ "code": code }));
        assert_eq!(made[0]["content"], "x = 2");
    }
    // The end of the first one was told long before the answer to the last.
    assert!(socket.is_alive());
    assert!(socket.aside.iter().all(|it| it["type"] == "task.update"), "{:?}", socket.aside);
}

#[test]
fn one_question_asked_twice_at_the_same_moment_is_one_job() {
    let desk = Desk::new("text", "");
    desk.put("answer", "an answer");
    desk.put("wait", "");
    let (_daemon, mut first) = desk.start();
    let mut sockets: Vec<Socket> = (0..8).map(|_| desk.socket()).collect();
    let asked: Vec<String> = sockets.iter_mut().map(|it| it.request("code.explain", &question())).collect();
    until_it_runs(&mut first);
    sockets.iter_mut().for_each(|it| assert!(it.is_alive()));
    assert_eq!(begun(&mut first), 1);
    desk.remove("wait");
    let answers: Vec<Value> = sockets.iter_mut().zip(&asked).map(|(socket, id)| socket.answer(id)).collect();
    for answer in &answers {
        assert_eq!(answer["result"], "an answer");
        assert_eq!(answer["conversation_log_id"], answers[0]["conversation_log_id"]);
    }
    assert_eq!(begun(&mut first), 1);
}

#[test]
fn nothing_ends_because_an_editor_has_gone_and_everybody_hears_of_it_then() {
    let desk = Desk::new("text", "");
    desk.put("answer", "x = 2\n");
    desk.put("wait", "");
    let (_daemon, mut socket) = desk.start();
    let mut gone = desk.socket();
    gone.request("code.refactor", &question());
    until_it_runs(&mut socket);
    gone.send(CLOSE, &1000_u16.to_be_bytes());
    gone.rest();
    // Whoever asks now is answered after the other one has left.
    for _ in 0..5 {
        until_it_runs(&mut desk.socket());
    }
    desk.remove("wait");
    assert_eq!(complete(&mut socket)["artifacts"][0]["content"], "x = 2");
    assert_eq!(socket.result("code.refactor", &question())[0]["content"], "x = 2");
    assert_eq!(begun(&mut socket), 1);
}

#[test]
fn one_that_is_taken_back_is_asked_anew() {
    let desk = Desk::new("text", SOON);
    desk.put("answer", "at last");
    desk.put("wait", "");
    let (_daemon, mut socket) = desk.start();
    let task = still_running(&socket.ask("code.explain", &question()));
    assert!(socket.result("background.cancel", &json!({ "taskId": task })).is_null());
    let told = complete(&mut socket);
    assert_eq!((&told["status"], &told["cancelled"]), (&json!("failure"), &json!(true)));
    let second = still_running(&socket.ask("code.explain", &question()));
    assert_ne!(second, task);
    desk.remove("wait");
    assert_eq!(complete(&mut socket)["status"], "success");
    assert_eq!(socket.result("code.explain", &question()), "at last");
}

#[test]
fn an_answer_outlives_the_daemon_and_a_question_that_was_being_answered_is_put_again() {
    let desk = Desk::new("text", SOON);
    desk.put("answer", "before");
    let (mut daemon, mut socket) = desk.start();
    assert_eq!(socket.result("code.explain", &question()), "before");
    desk.put("wait", "");
    let other = json!({ "code": "y = 1" });
    still_running(&socket.ask("code.explain", &other));
    daemon.kill();
    desk.put("answer", "after");
    desk.remove("wait");
    let (_daemon, mut socket) = desk.start();
    assert_eq!(socket.result("code.explain", &question()), "before");
    let answer = socket.ask("code.explain", &other);
    assert_eq!(answer["result"], "after", "{answer}");
}

/// Rules by which a person approves every question about code.
fn rules() -> String {
    let code = ["when.action = [\"delegate\"]", "when.tool = [\"code.*\"]"];
    policy([ask("\"client:approver\", \"human\"", &code), approvers()])
}

#[test]
fn one_that_waits_for_somebodys_word_says_so() {
    let desk = Desk::new("text", SOON);
    desk.put("answer", "allowed");
    desk.world.rule(&rules());
    let daemon = desk.world.start();
    let approver = desk.world.approver(&daemon);
    let mut socket = desk.socket();
    let why = socket.error("code.explain", &question());
    assert!(why.starts_with("Still running as task_"), "{why}");
    assert!(why.contains("waits for approval 1, see `provost approval list`"), "{why}");
    let asked = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let decision = json!({ "status": "granted", "note": "looked at" });
    approver.say_to("APPROVAL_DECISION", asked["msg_id"].as_str().unwrap(), "orchestrator", decision);
    assert_eq!(complete(&mut socket)["status"], "success");
    assert_eq!(socket.result("code.explain", &question()), "allowed");
    let other = json!({ "code": "y = 1" });
    still_waiting(&mut socket, &other);
    let asked = approver.poll_until(|it| it["msg_type"] == "APPROVAL" && it["msg_id"] != asked["msg_id"]);
    let decision = json!({ "status": "denied", "note": "not that" });
    approver.say_to("APPROVAL_DECISION", asked["msg_id"].as_str().unwrap(), "orchestrator", decision);
    let told = complete(&mut socket);
    assert!(told["error"].as_str().unwrap().contains("not that"), "{told}");
}

fn still_waiting(socket: &mut Socket, params: &Value) {
    let why = socket.error("code.explain", params);
    assert!(why.contains("waits for approval"), "{why}");
}
