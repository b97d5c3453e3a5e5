//! `background.say`: words for the agent that an editor has started, while it works.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::a6s_client::{OPEN, Socket};
use crate::support::acp_agent::entry;
use crate::support::loopback_client::Http;
use crate::support::rules::ALLOW;
use crate::support::waits::until_some;

fn shown(world: &World, task: &str) -> Option<Value> {
    let output = world.command(&["task", "show", task, "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).ok()
}

#[test]
fn words_reach_the_agent_that_an_editor_has_started() {
    let world = World::new();
    world.configure(&format!("{OPEN}{}", entry(&world, "coder", "", "")));
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut editor = Socket::open(Http::a6s(&world));
    editor.stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let begun = editor.result("background.launch", &json!({ "agentType": "coder", "task": "until-cancel" }));
    let id = begun["taskId"].as_str().unwrap().to_owned();
    let task = format!("job_{}", id.rsplit('_').next().unwrap());
    until_some("its session has begun", || shown(&world, &task).filter(|it| it["session"].is_object()));
    for (wrong, why) in [
        (json!({ "taskId": id, "text": " " }), "is empty"),
        (json!({ "taskId": "bg_0123456789abcdef", "text": "x" }), "Unknown task"),
        (json!({ "taskId": id }), "text"),
    ] {
        let fault = editor.error("background.say", &wrong);
        assert!(fault.contains(why), "{why}: {fault}");
    }
    let said = editor.result("background.say", &json!({ "taskId": id, "text": "say one" }));
    assert_eq!(
        (&said["ok"], &said["number"], &said["waiting"]),
        (&json!(true), &json!(1), &json!(1)),
        "{said}"
    );
    let said = editor.result("background.say", &json!({ "taskId": id, "text": "say two", "now": true }));
    assert_eq!(said["number"], 2, "{said}");
    let over = until_some("it is over", || shown(&world, &task).filter(|it| it["state"] == "completed"));
    let states: Vec<&Value> = over["said"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["delivered", "delivered"], "{over:#}");
    let late = editor.error("background.say", &json!({ "taskId": id, "text": "say three" }));
    assert!(!late.is_empty(), "its task has ended");
}
