//! Words for an agent at work that come over other doors than the command's: from a model's host, and from a person at the page.

use serde_json::{Value, json};

use super::steering::{at_work, over, shown};
use super::{answer, entry, started};
use crate::support::authenticator::{Authenticator, Kind};
use crate::support::mcp_host::Host;
use crate::support::passkeys::assertion;
use crate::support::rules::{ALLOW, allow};
use crate::support::signing_desk::SigningDesk;

#[test]
fn a_models_host_says_something_to_the_agent_of_its_task_and_no_other_host_does() {
    let (world, _daemon) = started("", "", &[allow("every", &["when.action = [\"permission\"]"])]);
    let mut host = Host::old(&world, "orch");
    host.does("delegate", json!({ "goal": "until-cancel", "worker": "coder", "task_id": "t1" }));
    at_work(&world, "t1");
    let mut other = Host::old(&world, "stranger");
    let why = other.fails("task_say", json!({ "task_id": "t1", "text": "say no" }));
    assert!(why.contains("orch"), "{why}");
    host.does("task_say", json!({ "task_id": "t1", "text": "say first" }));
    host.does("task_say", json!({ "task_id": "t1", "text": "say second", "now": true }));
    let task = over(&world, "t1");
    assert!(answer(&task).ends_with("firstsecond"), "{task:#}");
    let by: Vec<&Value> = task["said"].as_array().unwrap().iter().map(|it| &it["by"]).collect();
    assert_eq!(by, ["orch", "orch"], "{task:#}");
    assert!(!host.fails("task_say", json!({ "task_id": "t1", "text": "say late" })).is_empty());
}

#[test]
fn a_person_says_something_on_the_page_by_a_signature_over_exactly_that_and_once() {
    let mut desk = SigningDesk::with(ALLOW, |world| entry(world, "talker", "", ""));
    let begun = desk
        .world
        .command(&["delegate", "until-cancel", "--worker", "talker", "--task", "t1", "--as", "orch"])
        .output()
        .unwrap();
    assert!(begun.status.success(), "{begun:?}");
    at_work(&desk.world, "t1");
    let words = json!({ "task": "t1", "text": "say by a person", "now": true });
    assert_eq!(
        desk.post("/say-to-task", &words).status,
        405,
        "no address of the page's takes the verb itself"
    );
    let asked = desk.challenge("say-to-task", &words);
    let mut stranger = Authenticator::new(Kind::Es256);
    stranger.origin.clone_from(&desk.key.origin);
    let signed = assertion(&mut stranger, &asked);
    assert_eq!(desk.hand_in(&asked, &signed).status, 403, "a key that is not this person's");
    let asked = desk.challenge("say-to-task", &words);
    let signed = assertion(&mut desk.key, &asked);
    let done = desk.hand_in(&asked, &signed);
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(desk.hand_in(&asked, &signed).status, 410, "a replay");
    let task = over(&desk.world, "t1");
    assert!(answer(&task).contains("by a person"), "{task:#}");
    let said = shown(&desk.world, "t1")["said"].clone();
    assert_eq!(said.as_array().unwrap().len(), 1, "{said}");
    assert!(
        said[0]["by"].as_str().unwrap().starts_with("user:") && said[0]["state"] == "delivered",
        "{said}"
    );
}
