//! Intents by script: where they meet, how they move, and when they end.

use std::sync::Arc;

use provost::base::limits::INTENTS_SETTLED_MAX;
use provost::base::{IntentId, Span, Ttl};
use provost::domain::command::{Conflict, Declared, FreshSpans, Leave, RefreshIntents, UpdateIntent};
use provost::domain::{Answer, Intent, IntentStatus, Refusal, Reply};

use super::also_named;
use crate::support::coordinating::{acquire, at, held, intent, path};
use crate::support::script::{Script, client, host};

fn declared(said: Result<Answer<Reply>, Refusal>) -> (Arc<Intent>, Vec<Conflict>) {
    match said.unwrap() {
        Answer::Done(Reply::Declared(Declared { intent, conflicts, .. })) => (intent, conflicts),
        other => panic!("{other:?}"),
    }
}

fn overlaps(conflicts: &[Conflict]) -> Vec<&str> {
    let overlap = |it: &Conflict| match it {
        Conflict::Overlap(intent) => Some(intent.id.as_str().to_owned().leak() as &str),
        _ => None,
    };
    conflicts.iter().filter_map(overlap).collect()
}

#[test]
fn intents_collide_where_they_meet_and_nowhere_else() {
    let mut s = Script::new();
    let (ada, bob, eve) = (client("ada"), client("bob"), client("eve"));
    declared(s.say(&ada, intent(1, &[("a.ts", &[(0, 10)]), ("b.ts", &[(50, 60)])], &["f"])));
    let apart = intent(2, &[("a.ts", &[(10, 20)]), ("b.ts", &[(60, 70)])], &["g"]);
    assert!(overlaps(&declared(s.say(&bob, apart)).1).is_empty(), "half-open, and file by file");
    let whole = intent(3, &[("b.ts", &[])], &[]);
    assert_eq!(overlaps(&declared(s.say(&eve, whole)).1), ["i-1", "i-2"]);
    assert!(
        overlaps(&declared(s.say(&ada, intent(4, &[("a.ts", &[(0, 10)])], &["f"]))).1).is_empty(),
        "own ones"
    );
    s.say(&bob, UpdateIntent { id: IntentId::parse("i-2").unwrap(), to: IntentStatus::Active }).unwrap();
    let (_, conflicts) = declared(s.say(&client("zoe"), intent(5, &[("a.ts", &[]), ("b.ts", &[])], &[])));
    assert_eq!(overlaps(&conflicts), ["i-2", "i-1", "i-3", "i-4"], "active ones first, then the oldest");
}

#[test]
fn what_has_moved_in_a_file_is_compared_where_it_is_now() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    declared(s.say(&ada, intent(1, &[("a.ts", &[(0, 10)])], &["f"])));
    let moved = FreshSpans {
        intent: IntentId::parse("i-1").unwrap(),
        file: path("a.ts"),
        spans: vec![Span { start: 100, end: 110 }],
    };
    let mut verb = intent(2, &[("a.ts", &[(0, 10)])], &["g"]);
    verb.fresh = vec![moved.clone()];
    assert!(overlaps(&declared(s.say(&bob, verb)).1).is_empty());
    let known = |s: &Script| s.core.state().intents.get(&moved.intent).unwrap().reach().unwrap();
    assert_eq!(known(&s), Span { start: 100, end: 110 });
    let back = FreshSpans { spans: vec![Span { start: 5, end: 9 }], ..moved.clone() };
    s.say(&host(), RefreshIntents { spans: vec![back] }).unwrap();
    assert_eq!(known(&s), Span { start: 5, end: 9 });
    assert!(matches!(s.say(&bob, RefreshIntents { spans: vec![] }), Err(Refusal::OutOfScope { .. })));
}

#[test]
fn locks_of_others_on_what_is_intended_are_told_in_the_documented_order() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&ada, acquire("a.ts:check")));
    held(s.say(&ada, also_named("a.ts:run", &["Base.run"])));
    held(s.say(&bob, acquire("a.ts:own")));
    let mut verb = intent(1, &[("a.ts", &[])], &["check", "login", "Base.run", "own", "Base"]);
    verb.calls = vec![(at("a.ts:login"), at("a.ts:check")), (at("a.ts:login"), at("a.ts:free"))];
    let (_, conflicts) = declared(s.say(&bob, verb));
    match &conflicts[..] {
        [
            Conflict::Locked { symbol: a, .. },
            Conflict::Locked { symbol: b, lock },
            Conflict::Chain { symbol: c, lock: callee, guessed: false },
        ] => {
            assert_eq!((a, b, c), (&at("a.ts:check"), &at("a.ts:Base.run"), &at("a.ts:login")));
            assert_eq!((&lock.at, &callee.at), (&at("a.ts:run"), &at("a.ts:check")));
        }
        other => panic!("{other:?}"),
    }
    let (_, conflicts) = declared(s.say(&bob, intent(2, &[("a.ts", &[])], &["Base"])));
    assert!(matches!(&conflicts[..], [Conflict::Within(lock)] if lock.at == at("a.ts:run")), "{conflicts:?}");
    let (_, conflicts) = declared(s.say(&bob, intent(3, &[("a.ts", &[])], &[])));
    assert_eq!(conflicts.len(), 2, "a whole file sees every lock in it: {conflicts:?}");
}

#[test]
fn an_intent_goes_forward_only_by_its_owner_only_and_lapses() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let to = |number: u64, to| UpdateIntent { id: IntentId::parse(&format!("i-{number}")).unwrap(), to };
    use IntentStatus::{Abandoned, Active, Declared, Resolved};
    for (number, steps) in [(1, [Active, Resolved]), (2, [Active, Abandoned])] {
        declared(s.say(&ada, intent(number, &[("a.ts", &[])], &[])));
        for step in steps {
            assert!(matches!(s.say(&bob, to(number, step)), Err(Refusal::IntentNotOwned { .. })));
            s.say(&ada, to(number, step)).unwrap();
            let again = s.say(&ada, to(number, step));
            assert!(matches!(again, Err(Refusal::IntentCannot { .. })), "{again:?}");
        }
        assert!(matches!(s.say(&ada, to(number, Declared)), Err(Refusal::IntentCannot { .. })));
    }
    assert!(matches!(s.say(&ada, to(99, Active)), Err(Refusal::IntentNotFound)));
    let mut short = intent(3, &[("a.ts", &[])], &[]);
    short.ttl = Some(Ttl::minutes(1));
    declared(s.say(&ada, short));
    declared(s.say(&ada, intent(4, &[("a.ts", &[])], &[])));
    s.pass(Ttl::minutes(1));
    assert_eq!(s.core.state().intents.get(&IntentId::parse("i-3").unwrap()).unwrap().status, Abandoned);
    assert_eq!(s.core.state().intents.live(), 1);
    s.pass(Ttl::seconds_clamped(u64::MAX));
    assert_eq!(s.core.state().intents.live(), 0, "none outlives a week in which nobody touches it");
}

#[test]
fn settled_intents_are_kept_up_to_a_bound() {
    let mut s = Script::new();
    let ada = client("ada");
    for number in 0..2_000 {
        declared(s.say(&ada, intent(number, &[("a.ts", &[])], &[])));
    }
    s.say(&ada, Leave { intents: true, process: None }).unwrap();
    for number in 2_000..2_010 {
        declared(s.say(&ada, intent(number, &[("a.ts", &[])], &[])));
        let id = IntentId::parse(&format!("i-{number}")).unwrap();
        s.say(&ada, UpdateIntent { id, to: IntentStatus::Resolved }).unwrap();
    }
    assert!(s.core.state().intents.iter().count() <= INTENTS_SETTLED_MAX);
    assert!(s.core.state().intents.get(&IntentId::parse("i-2009").unwrap()).is_some(), "the newest stay");
}
