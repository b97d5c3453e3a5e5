//! Agents that make themselves known, as scripts over the core.

use provost::base::Ttl;
use provost::base::limits::{AGENTS_MAX, CAPS_MAX};
use provost::domain::command::{CollectMail, Status};
use provost::domain::view::{AgentPids, KnownAgents, View};
use provost::domain::{ALIVE_FOR, EventKind, Refusal, Settings, TaskState};

use crate::support::script::{Script, client, named, person, register};
use crate::support::storm::settings;

fn versions(expected: &[&str]) -> Settings {
    let mut settings = settings();
    settings.expected_versions = expected.iter().map(|it| (*it).into()).collect();
    settings
}

#[test]
fn registering_announces_and_says_what_is_expected() {
    let mut s = Script::with(versions(&["1.0", "1.1"]));
    let said = s.say(&client("wes"), register(Some("1.1"))).unwrap();
    assert!(format!("{said:?}").contains("1.0") && format!("{said:?}").contains("1.1"));
    assert!(matches!(s.events()[..], [EventKind::AgentRegistered { pid: Some(7), .. }]));
    assert_eq!(AgentPids.look(s.now, s.core.state()), [7]);
}

#[test]
fn another_version_or_none_is_refused() {
    let mut s = Script::with(versions(&["1.0"]));
    let said = s.say(&client("wes"), register(Some("0.9")));
    assert!(matches!(said, Err(Refusal::VersionMismatch { .. })));
    assert!(matches!(s.say(&client("wes"), register(None)), Err(Refusal::VersionMissing { .. })));
    assert!(s.core.state().agents.get(&named("wes")).is_none());
    Script::new().say(&client("wes"), register(None)).unwrap();
}

#[test]
fn heartbeat_revives_but_does_not_bypass_the_version() {
    let mut s = Script::with(versions(&["1.0"]));
    let (wes, beat) = (client("wes"), CollectMail { alive: true });
    let first = |said| matches!(said, Err(Refusal::RegisterFirst { .. }));
    assert!(first(s.say(&wes, beat.clone())));
    s.say(&wes, register(Some("1.0"))).unwrap();
    s.pass(ALIVE_FOR);
    assert!(!s.core.state().agents.is_alive(&named("wes"), s.now));
    s.say(&wes, beat.clone()).unwrap();
    assert!(matches!(s.events()[..], [EventKind::AgentRevived]));
    assert!(s.core.state().agents.is_alive(&named("wes"), s.now));
    s.core.set_settings(versions(&["2.0"]));
    assert!(first(s.say(&wes, beat)), "an older version is none");
    let order = s.order("do", "cli");
    assert!(first(s.say(&wes, order)));
    let order = s.order("do", "cli");
    s.say(&person("owner"), order).unwrap();
}

#[test]
fn silence_is_seen_and_forgiven() {
    let mut s = Script::new();
    let wes = client("wes");
    s.register(&wes);
    let row = |s: &Script| KnownAgents.look(s.now, s.core.state()).remove(0);
    assert!(row(&s).alive);
    s.pass(Ttl::seconds_clamped(29));
    assert!(row(&s).alive);
    s.pass(Ttl::seconds_clamped(1));
    assert!(!row(&s).alive && row(&s).last_seen.is_some());
    s.say(&wes, CollectMail { alive: false }).unwrap();
    assert!(!row(&s).alive, "asking for mail is no sign of life unless it says so");
    s.beat(&wes);
    assert!(row(&s).alive);
}

#[test]
fn the_longest_silent_agent_gives_way_to_a_new_one() {
    let mut s = Script::new();
    s.register(&client("first"));
    s.now = s.now.after(ALIVE_FOR);
    for n in 1..AGENTS_MAX {
        s.register(&client(&format!("a{n}")));
    }
    s.register(&client("new"));
    assert!(s.core.state().agents.get(&named("first")).is_none());
    assert_eq!(s.core.state().agents.iter().count(), AGENTS_MAX);
    let said = s.say(&client("one more"), register(None));
    assert!(matches!(said, Err(Refusal::Busy { .. })), "nobody alive is forgotten: {said:?}");
    s.register(&client("new"));
}

#[test]
fn a_crowd_of_strangers_does_not_silence_a_worker() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    s.receive_all(&wes);
    s.report(&wes, &task, Status::InProgress).unwrap();
    for n in 0..2 * AGENTS_MAX + 10 {
        s.beat(&client(&format!("s{n}")));
    }
    for _ in 0..8 {
        s.pass(Ttl::minutes(4));
        s.beat(&wes);
    }
    assert!(matches!(s.state(&task), TaskState::Running { .. }));
}

#[test]
fn more_capabilities_than_anybody_has_are_refused() {
    let mut s = Script::new();
    let mut verb = register(None);
    verb.caps = vec!["x".into(); CAPS_MAX + 1];
    assert!(matches!(s.say(&client("wes"), verb), Err(Refusal::TooLong { .. })));
}
