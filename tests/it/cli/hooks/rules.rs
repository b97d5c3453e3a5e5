//! The rules by which hooks are owed, as scripts.

use std::sync::Arc;

use provost::base::limits::{HOOKS_OWED_BYTES_MAX, HOOKS_OWED_MAX};
use provost::base::{Digest, Json, Ttl};
use provost::domain::command::{AckTask, ReportTask, SettleEffect, Status};
use provost::domain::{Change, Effect, EventKind, Notice, Settings, Verdict};
use provost::protocols::devit::hook_words;
use serde_json::{Value, json};

use crate::support::script::{Script, client, host, person, report};
use crate::support::storm::settings;

/// A core with a hook, and every effect since its start.
fn scripted() -> Script {
    Script::with(Settings { hooks: true, ..settings() })
}

fn notices(s: &Script) -> Vec<Arc<Notice>> {
    let hook = |effect: &Effect| match effect {
        Effect::RunHook { notice } => Some(notice.clone()),
        _ => None,
    };
    s.out.effects.iter().filter_map(|(_, effect)| hook(effect)).collect()
}

#[test]
fn a_lease_that_runs_out_is_told_in_devits_words() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    s.receive(&client("wes")).unwrap();
    s.pass(Ttl::minutes(60));
    let notices = notices(&s);
    assert_eq!(notices.len(), 1, "{notices:?}");
    let (variables, payload) = hook_words(&notices[0], &Digest::of(b"salt"));
    let details = variables.iter().find(|(name, _)| *name == "DEVIT_NOTIFY_DETAILS").unwrap();
    let details: Value = serde_json::from_str(&details.1).unwrap();
    assert_eq!((&details["reason"], &details["worker"]), (&json!("lease_timeout"), &json!("wes")));
    assert!(details["expired_at"].as_str().unwrap().ends_with('Z') && details["timeout_secs"].is_u64());
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!((&payload["task_id"], &payload["status"]), (&json!(task.as_str()), &json!("failed")));
    assert_eq!(payload["metadata"]["failure"]["reason"], "lease_timeout");
    assert!(payload["summary"].as_str().unwrap().starts_with("Task lease expired after"), "{payload}");
}

#[test]
fn no_denial_is_news_for_a_hook_and_what_was_granted_is() {
    let mut s = scripted();
    let never = s.order("never", "wes");
    s.say(&client("ada"), never).unwrap();
    assert_eq!(notices(&s).len(), 0);
    let (_, refused) = s.ask(&client("ada"), "ask once", "wes");
    s.answer(&person("owner"), refused, Verdict::Denied).unwrap();
    assert_eq!(notices(&s).len(), 0);
    s.ask(&client("ada"), "ask twice", "wes");
    s.pass(Ttl::minutes(30));
    assert_eq!(notices(&s).len(), 0, "nobody answered in time");
    let (task, granted) = s.ask(&client("ada"), "ask again", "wes");
    s.answer(&person("owner"), granted, Verdict::Granted).unwrap();
    s.report(&client("wes"), &task, Status::Completed).unwrap();
    assert_eq!(notices(&s).len(), 1);
}

#[test]
fn a_repeated_report_runs_no_second_hook() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    let verb = ReportTask { message: Some("m-1".into()), ..report(&task, Status::InProgress) };
    s.say(&client("wes"), verb.clone()).unwrap();
    assert_eq!(notices(&s).len(), 1);
    s.say(&client("wes"), verb).unwrap();
    assert_eq!(notices(&s).len(), 0);
}

#[test]
fn when_too_many_hooks_are_owed_the_oldest_progress_gives_way() {
    let mut s = scripted();
    let (done, task) =
        (s.delegate(&client("ada"), "do it", "wes"), s.delegate(&client("ada"), "do it", "wes"));
    s.report(&client("wes"), &done, Status::Completed).unwrap();
    let last = s.out.effects.iter().find(|(_, it)| matches!(it, Effect::RunHook { .. })).unwrap().0;
    let mut first = None;
    for _ in 1..HOOKS_OWED_MAX {
        s.report(&client("wes"), &task, Status::InProgress).unwrap();
        first = first.or(s.out.effects.first().map(|(id, _)| *id));
    }
    assert_eq!(s.core.state().hooks.len(), HOOKS_OWED_MAX);
    s.report(&client("wes"), &task, Status::InProgress).unwrap();
    let hooks = &s.core.state().hooks;
    assert_eq!(hooks.len(), HOOKS_OWED_MAX, "one for one");
    assert!(hooks.get(first.unwrap()).is_none() && hooks.get(last).is_some(), "the last word stays");
    let dropped = s
        .events()
        .iter()
        .any(|it| matches!(it, EventKind::HookDropped { effect, .. } if Some(*effect) == first));
    assert!(dropped, "and the log says so");
    assert!(s.out.changes.contains(&Change::DropEffect(first.unwrap())), "the store forgets it too");

    let large = Json::from_value(&json!("x".repeat(900_000)));
    let mut verb = report(&task, Status::InProgress);
    verb.report.details = Some(large);
    for _ in 0..200 {
        s.say(&client("wes"), verb.clone()).unwrap();
    }
    let owed = s.core.state().hooks.len();
    assert!(owed * 900_000 <= HOOKS_OWED_BYTES_MAX + 900_000, "{owed} large ones");
}

#[test]
fn an_ack_is_owed_only_where_a_hook_waits() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    s.say(&client("ada"), AckTask { task: task.clone() }).unwrap();
    assert!(s.out.effects.is_empty());
    s.report(&client("wes"), &task, Status::Completed).unwrap();
    let hook = s.out.effects[0].0;
    s.say(&client("ada"), AckTask { task: task.clone() }).unwrap();
    assert!(matches!(s.out.effects[..], [(_, Effect::SignalAck { .. })]));
    s.say(&host(), SettleEffect { effect: hook }).unwrap();
    s.say(&client("ada"), AckTask { task }).unwrap();
    assert!(s.out.effects.is_empty(), "it has ended");
}
