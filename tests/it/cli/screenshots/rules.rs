//! When a picture may be taken: the rules, by script.

use provost::base::limits::CAPTURES_MAX;
use provost::base::{EffectId, TaskId, Ttl};
use provost::domain::command::{Answered, BeginCapture, EndCapture, Shot, TakeScreenshot};
use provost::domain::{
    Answer, Door, Effect, Failure, Principal, Proof, Rate, Refusal, Reply, Scope, Settings, Verdict,
};
use provost_test_equipment::callers::caller;

use crate::support::script::{Said, Script, client, host, person, task_id};
use crate::support::storm::settings;

fn scripted(rate: Option<u32>) -> Script {
    let screenshot_rate = rate.map(|count| Rate { count, per: Ttl::minutes(1) });
    Script::with(Settings { screenshots: true, screenshot_rate, ..settings() })
}

fn switch(s: &mut Script, on: bool) {
    let settings = Settings { screenshots: on, ..s.core.state().settings.clone() };
    s.core.set_settings(settings);
}

/// Asks for a picture whose rule is its name's first word.
fn ask(s: &mut Script, who: &str, name: &str) -> Said {
    s.say(&client(who), TakeScreenshot { task: task_id(name) })
}

type Owed = (EffectId, TaskId, Principal);

/// The picture that is owed since the last word.
fn owed(s: &Script) -> Option<Owed> {
    s.out.effects.iter().find_map(|(effect, it)| match it {
        Effect::Capture { task, asker } => Some((*effect, task.clone(), asker.clone())),
        _ => None,
    })
}

fn begin(s: &mut Script, (effect, task, asker): Owed) -> Said {
    s.say(&host(), BeginCapture { effect, task, asker })
}

fn fail(s: &mut Script, (effect, task, _): Owed) {
    s.say(&host(), EndCapture { effect, task, end: Shot::Failed(Failure::Lost) }).unwrap();
}

fn is_off(said: &Said) -> bool {
    matches!(said, Err(Refusal::SwitchedOff { .. }))
}

#[test]
fn the_switch_counts_at_every_step() {
    let mut s = scripted(None);
    switch(&mut s, false);
    assert!(is_off(&ask(&mut s, "ada", "any-1")), "when it is asked for");

    switch(&mut s, true);
    ask(&mut s, "ada", "any-2").unwrap();
    let picture = owed(&s).unwrap();
    switch(&mut s, false);
    assert!(is_off(&begin(&mut s, picture.clone())), "when it is about to be taken");
    switch(&mut s, true);
    begin(&mut s, picture).unwrap();

    let Ok(Answer::Parked(approval)) = ask(&mut s, "eve", "ask-3") else { panic!("it was not asked about") };
    switch(&mut s, false);
    match s.answer(&person("owner"), approval, Verdict::Granted) {
        Ok(Answer::Done(Reply::Answered(Answered { failed: Some(_), .. }))) => {}
        other => panic!("when it is granted: {other:?}"),
    }
    assert!(owed(&s).is_none());
}

#[test]
fn pictures_that_are_under_way_count_and_those_that_failed_do_not() {
    let mut s = scripted(Some(2));
    ask(&mut s, "ada", "any-1").unwrap();
    let first = owed(&s).unwrap();
    ask(&mut s, "bob", "any-2").unwrap();
    assert!(matches!(ask(&mut s, "cy", "any-3"), Err(Refusal::TooOften { most: 2, .. })));
    begin(&mut s, first.clone()).unwrap();
    assert!(ask(&mut s, "cy", "any-3").is_err(), "it is being taken");
    fail(&mut s, first);
    ask(&mut s, "cy", "any-3").unwrap();
    assert!(ask(&mut s, "dan", "any-4").is_err());
}

#[test]
fn only_so_many_wait_to_be_taken() {
    let mut s = scripted(None);
    let mut first = None;
    for number in 0..CAPTURES_MAX {
        ask(&mut s, &format!("agent-{number}"), &format!("any-{number}")).unwrap();
        first = first.or(owed(&s));
    }
    assert!(matches!(ask(&mut s, "late", "any-late"), Err(Refusal::Busy { .. })));
    begin(&mut s, first.clone().unwrap()).unwrap();
    fail(&mut s, first.unwrap());
    ask(&mut s, "late", "any-late").unwrap();
}

#[test]
fn what_was_approved_for_a_key_is_not_for_names_that_look_like_its_own() {
    let shared =
        |name: &str| caller(name, Door::Devit, &[Scope::Delegate, Scope::Coordinate], Proof::SharedKey);
    let proven = caller("cam", Door::Devit, &[Scope::Delegate, Scope::Coordinate], Proof::OwnKey);
    let uuids = ["a6cfe0d4-0000-4000-8000-00000000000a", "a6cfe0d4-0000-4000-8000-00000000000b"];
    let mut s = scripted(None);
    let asks = |s: &mut Script, who: &Principal, name: &str| {
        s.say(who, TakeScreenshot { task: task_id(name) }).unwrap()
    };
    let Answer::Parked(approval) = asks(&mut s, &proven, "ask-1") else { panic!("it was not asked about") };
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    let stranger = shared(&format!("cam-{}", uuids[0]));
    let Answer::Parked(other) = asks(&mut s, &stranger, "ask-2") else { panic!("it was handed over") };
    assert!(matches!(asks(&mut s, &proven, "ask-3"), Answer::Done(_)), "it is still there for who asked");
    // Clients that make themselves a new name for every picture come back under another one.
    s.answer(&person("owner"), other, Verdict::Granted).unwrap();
    assert!(matches!(asks(&mut s, &shared(&format!("cam-{}", uuids[1])), "ask-4"), Answer::Done(_)));
}
