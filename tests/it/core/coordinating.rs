//! Locks, intents and contracts by script: every rule, with the time turned by hand.

mod contracts;
mod forced;
mod intents;

use provost::base::limits::{LOCKS_PER_AGENT_MAX, WARNINGS_MAX};
use provost::base::{AgentId, Fence, Span, SymbolPath, TaskId, Ticket, Ttl, encloses};
use provost::domain::command::{
    AcquireLock, AnswerContract, Leave, LeaveQueue, Locked, NameAgent, ReapLocks, ReleaseLock,
    SymbolPresence, Warning,
};
use provost::domain::view::{AllWaits, View as _};
use provost::domain::{Answer, Change, Event, EventKind, Outbox, Refusal, Reply};

use crate::support::coordinating::{acquire, at, contract_id, held, intent, propose, release};
use crate::support::script::{Script, client, host, named, person};

fn also_named(symbol: &str, names: &[&str]) -> AcquireLock {
    let mut verb = acquire(symbol);
    verb.seen.names = names.iter().map(|it| (*it).into()).collect();
    verb
}

fn queued(said: Result<Answer<Reply>, Refusal>) -> (Ticket, usize) {
    match said.unwrap() {
        Answer::Done(Reply::Locked(Locked::Queued { ticket, ahead, .. })) => (ticket, ahead),
        other => panic!("{other:?}"),
    }
}

fn conflict_with(said: Result<Answer<Reply>, Refusal>) -> AgentId {
    match said {
        Err(Refusal::LockConflict(rival)) => rival.by.clone(),
        other => panic!("{other:?}"),
    }
}

fn live(s: &Script) -> Vec<String> {
    s.core.state().locks.iter().filter(|it| !it.lapsed).map(|it| format!("{} {}", it.at, it.holder)).collect()
}

#[test]
fn a_symbol_path_has_one_spelling_and_says_what_is_wrong_with_it() {
    for text in ["a.ts:f", "./a.ts:f", "x/../a.ts:f", "a.ts//:f", ".//a.ts:f"] {
        assert_eq!(at(text).to_string(), "a.ts:f", "{text}");
    }
    assert_eq!(at("a.ts:f:g").symbol(), "f:g");
    assert_eq!(at("a.ts:").symbol(), "");
    for (text, why) in [
        ("a.ts", "no colon"),
        (":f", "no file"),
        ("../a.ts:f", "leaves the repository"),
        ("/etc/passwd:x", "relative"),
        ("a\0.ts:f", "control character"),
        ("a.ts:f\n", "control character"),
    ] {
        let err = SymbolPath::parse(text).unwrap_err().to_string();
        assert!(err.contains(why), "{text:?}: {err}");
    }
    let long = format!("a.ts:{}", "f".repeat(2_000));
    assert!(SymbolPath::parse(&long).unwrap_err().to_string().contains("longer"));
    assert!(encloses("A", "A.b") && encloses("", "A") && !encloses("A", "Ab") && !encloses("A.b", "A"));
    assert!(!encloses("", "") && !encloses("A", "A"));
    let (a, b) = (Span { start: 0, end: 5 }, Span { start: 5, end: 9 });
    assert!(!a.meets(b) && !b.meets(a) && a.meets(Span { start: 4, end: 5 }));
}

#[test]
fn a_lock_is_granted_once_refreshed_by_its_holder_and_released() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let (first, warnings) = held(s.say(&ada, acquire("a.ts:f")));
    assert!(warnings.is_empty());
    assert_eq!(conflict_with(s.say(&bob, acquire("./a.ts:f"))).as_str(), "ada");
    s.pass(Ttl::minutes(5));
    let (again, _) = held(s.say(&ada, AcquireLock { ttl: Ttl::minutes(1), ..acquire("a.ts:f") }));
    assert_eq!((again.fence, again.place), (first.fence, first.place), "a refresh is no new grant");
    assert!(again.acquired_at > first.acquired_at && again.expires_at < first.expires_at, "it may shorten");
    assert!(
        matches!(s.say(&bob, release("a.ts:f")), Err(Refusal::LockNotHeld { by, .. }) if by == named("ada"))
    );
    assert!(matches!(s.say(&bob, release("a.ts:g")), Err(Refusal::LockNotFound)));
    s.say(&ada, release("a.ts:f")).unwrap();
    let (next, _) = held(s.say(&bob, acquire("a.ts:f")));
    assert!(next.fence > first.fence, "every grant has a higher number");
}

#[test]
fn a_lease_ends_exactly_when_it_says_and_its_late_holder_hears_the_same_however_late() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&ada, AcquireLock { ttl: Ttl::from_millis(1_000).unwrap(), ..acquire("a.ts:f") }));
    s.pass(Ttl::from_millis(999).unwrap());
    assert_eq!(conflict_with(s.say(&bob, acquire("a.ts:f"))).as_str(), "ada");
    s.pass(Ttl::from_millis(1).unwrap());
    assert!(
        s.events().iter().any(|it| matches!(it, EventKind::LockFreed { why, .. } if why.contains("time")))
    );
    assert!(live(&s).is_empty());
    assert!(matches!(s.say(&bob, release("a.ts:f")), Err(Refusal::LockNotFound)), "to others it is gone");
    s.pass(Ttl::minutes(9));
    s.say(&ada, release("a.ts:f")).expect("its late holder may let go");
    held(s.say(&ada, AcquireLock { ttl: Ttl::from_millis(1).unwrap(), ..acquire("a.ts:f") }));
    s.pass(Ttl::from_millis(1).unwrap());
    let (taken, _) = held(s.say(&bob, acquire("a.ts:f")));
    assert_eq!(taken.holder, named("bob"), "a lapsed lock is taken over");
    assert!(matches!(s.say(&ada, release("a.ts:f")), Err(Refusal::LockNotHeld { .. })));
    held(s.say(&ada, AcquireLock { ttl: Ttl::from_millis(1).unwrap(), ..acquire("b.ts:g") }));
    s.pass(Ttl::minutes(11));
    assert_eq!(s.core.state().locks.len(), 1, "forgotten after a while");
}

#[test]
fn two_names_of_one_symbol_are_one_lock_and_of_what_is_had_as_a_whole_nobody_gets_a_part() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&ada, also_named("a.ts:run", &["Base.run"])));
    assert_eq!(conflict_with(s.say(&bob, acquire("a.ts:Base.run"))).as_str(), "ada");
    assert_eq!(conflict_with(s.say(&bob, also_named("a.ts:x", &["Base.run"]))).as_str(), "ada");
    let (_, warnings) = held(s.say(&bob, acquire("a.ts:Base")));
    assert!(matches!(&warnings[..], [Warning::Around(lock)] if lock.at == at("a.ts:run")), "{warnings:?}");
    assert_eq!(conflict_with(s.say(&client("eve"), acquire("a.ts:Base.stop"))).as_str(), "bob");
    let (_, warnings) = held(s.say(&client("zoe"), acquire("a.ts:")));
    assert_eq!(warnings.len(), 2, "a whole file holds everything in it: {warnings:?}");
    let (_, warnings) = held(s.say(&client("kim"), acquire("b.ts:Base.run")));
    assert!(warnings.is_empty(), "another file is another matter: {warnings:?}");
    assert_eq!(conflict_with(s.say(&ada, acquire("a.ts:Based.run"))).as_str(), "zoe");
    // What was there before stays, and is refreshed.
    let (_, warnings) = held(s.say(&ada, also_named("a.ts:run", &["Base.run"])));
    assert!(
        warnings.iter().all(|it| matches!(it, Warning::Inside(_))) && warnings.len() == 2,
        "{warnings:?}"
    );
}

#[test]
fn callers_that_others_have_locked_are_told_one_hop_and_never_ones_own() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&ada, acquire("routes.ts:Api.login")));
    held(s.say(&bob, acquire("routes.ts:own")));
    let mut verb = acquire("auth.ts:check");
    verb.seen.callers = ["routes.ts:Api.login", "routes.ts:own", "routes.ts:free"].map(at).to_vec();
    let (_, warnings) = held(s.say(&bob, verb.clone()));
    let [Warning::CallerLocked { caller, lock, guessed: false }] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert_eq!((caller, &lock.holder), (&at("routes.ts:Api.login"), &named("ada")));
    s.say(&ada, release("routes.ts:Api.login")).unwrap();
    held(s.say(&ada, acquire("routes.ts:Api")));
    let (_, warnings) = held(s.say(&bob, verb));
    assert!(
        matches!(&warnings[..], [Warning::CallerLocked { .. }]),
        "a caller's class is as good: {warnings:?}"
    );
}

#[test]
fn what_a_file_says_of_a_symbol_is_told_and_never_refused() {
    let mut s = Script::new();
    let mut verb = acquire("a.ts:typo");
    verb.seen.known = SymbolPresence::Missing;
    assert!(matches!(&held(s.say(&client("ada"), verb)).1[..], [Warning::Unknown]));
    let mut verb = acquire("a.ts:g");
    verb.seen.known = SymbolPresence::Unreadable("it is larger than 4 MiB".into());
    assert!(matches!(&held(s.say(&client("ada"), verb)).1[..], [Warning::Unreadable(_)]));
}

#[test]
fn those_who_wait_are_served_in_order_and_nobody_slips_in() {
    let mut s = Script::new();
    let (ada, bob, eve, zoe) = (client("ada"), client("bob"), client("eve"), client("zoe"));
    let wait = |symbol: &str| AcquireLock { wait: Some(Ttl::minutes(2)), ..acquire(symbol) };
    held(s.say(&ada, acquire("a.ts:f")));
    let (first, ahead) = queued(s.say(&bob, wait("a.ts:f")));
    assert_eq!(ahead, 0);
    let (second, ahead) = queued(s.say(&eve, wait("a.ts:f")));
    assert_eq!((ahead, second > first), (1, true));
    let again = AcquireLock { ticket: Some(second), ..wait("a.ts:f") };
    assert_eq!(queued(s.say(&eve, again.clone())), (second, 1), "asking again keeps the place");
    s.say(&ada, release("a.ts:f")).unwrap();
    assert_eq!(queued(s.say(&eve, again.clone())).0, second, "not before the one who waits longer");
    assert_eq!(conflict_with(s.say(&zoe, acquire("a.ts:f"))).as_str(), "bob", "the next grant is bob's");
    assert_eq!(conflict_with(s.say(&ada, acquire("a.ts:f"))).as_str(), "bob");
    let stolen = AcquireLock { ticket: Some(first), ..acquire("a.ts:f") };
    assert_eq!(conflict_with(s.say(&zoe, stolen)).as_str(), "bob", "a place is its owner's alone");
    held(s.say(&bob, AcquireLock { ticket: Some(first), ..wait("a.ts:f") }));
    s.say(&bob, LeaveQueue { ticket: first }).unwrap();
    s.say(&bob, release("a.ts:f")).unwrap();
    s.say(&zoe, LeaveQueue { ticket: second }).unwrap();
    held(s.say(&eve, again));
    assert_eq!(s.core.state().locks.waiters().count(), 0);
}

#[test]
fn a_place_in_the_queue_ends_with_its_time_or_by_leaving_and_the_next_one_moves_up() {
    let mut s = Script::new();
    let (ada, bob, eve) = (client("ada"), client("bob"), client("eve"));
    let wait = |ttl| AcquireLock { wait: Some(ttl), ..acquire("a.ts:f") };
    held(s.say(&ada, acquire("a.ts:f")));
    queued(s.say(&bob, wait(Ttl::minutes(1))));
    let (ticket, _) = queued(s.say(&eve, wait(Ttl::minutes(10))));
    s.pass(Ttl::minutes(1));
    assert!(
        s.events()
            .iter()
            .any(|it| matches!(it, EventKind::LockWaitEnded { agent, .. } if *agent == named("bob")))
    );
    s.say(&ada, release("a.ts:f")).unwrap();
    held(s.say(&eve, AcquireLock { ticket: Some(ticket), ..wait(Ttl::minutes(1)) }));
}

#[test]
fn a_ticket_whose_time_is_up_begins_no_other_wait() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let wait = AcquireLock { wait: Some(Ttl::minutes(1)), ..acquire("a.ts:f") };
    held(s.say(&ada, acquire("a.ts:f")));
    let (ticket, _) = queued(s.say(&bob, wait.clone()));
    s.pass(Ttl::minutes(1));
    let again = AcquireLock { ticket: Some(ticket), ..wait };
    assert_eq!(conflict_with(s.say(&bob, again.clone())).as_str(), "ada");
    s.say(&ada, release("a.ts:f")).unwrap();
    held(s.say(&bob, again));
}

#[test]
fn a_circle_of_waiters_is_refused_to_the_newest_with_the_circle() {
    let mut s = Script::new();
    let names = ["ada", "bob", "eve"];
    for (who, symbol) in names.iter().zip(["a.ts:a", "a.ts:b", "a.ts:c"]) {
        held(s.say(&client(who), acquire(symbol)));
    }
    let wait = |symbol: &str| AcquireLock { wait: Some(Ttl::minutes(5)), ..acquire(symbol) };
    queued(s.say(&client("ada"), wait("a.ts:b")));
    queued(s.say(&client("bob"), wait("a.ts:c")));
    match s.say(&client("eve"), wait("a.ts:a")) {
        Err(refusal @ Refusal::WouldDeadlock { .. }) => {
            let text = refusal.to_string();
            assert!(text.contains("eve waits for ada waits for bob waits for eve"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    queued(s.say(&client("zoe"), wait("a.ts:a")));
    // Behind zoe in the queue counts as waiting for her: she holds what ada would have to wait for.
    held(s.say(&client("zoe"), acquire("a.ts:z")));
    let said = s.say(&client("ada"), wait("a.ts:z"));
    assert!(matches!(said, Err(Refusal::WouldDeadlock { .. })), "{said:?}");
}

#[test]
fn a_circle_that_is_refused_is_on_record_once_and_remembered_for_an_hour() {
    let mut s = Script::new();
    let wait = |symbol: &str| AcquireLock { wait: Some(Ttl::minutes(90)), ..acquire(symbol) };
    let long = |symbol: &str| AcquireLock { ttl: Ttl::minutes(180), ..acquire(symbol) };
    held(s.say(&client("ada"), long("a.ts:a")));
    held(s.say(&client("bob"), long("a.ts:b")));
    queued(s.say(&client("ada"), wait("a.ts:b")));
    // As the engine does it: the refusal leaves nothing, and the note is a step of its own.
    let refused = |s: &mut Script| {
        let refusal = s.say(&client("bob"), wait("a.ts:a")).unwrap_err();
        let mut out = Outbox::default();
        s.core.note_circle(s.now, &named("bob"), &at("a.ts:a"), &refusal, &mut out);
        out.events
    };
    let before = s.core.state().clone();
    let first = refused(&mut s);
    let [Event { actor, kind: EventKind::LockWaitRefused { symbol, circle }, .. }] = first.as_slice() else {
        panic!("{first:?}")
    };
    assert_eq!((actor.as_str(), symbol.to_string().as_str()), ("bob", "a.ts:a"));
    assert_eq!(circle.iter().map(AgentId::as_str).collect::<Vec<_>>(), ["bob", "ada"]);
    for _ in 0..3 {
        assert_eq!(refused(&mut s), [], "one that tries again and again fills no journal");
    }
    let seen = AllWaits.look(s.now, s.core.state());
    assert_eq!(seen.circles.iter().map(|it| it.times).collect::<Vec<_>>(), [4]);
    assert_eq!(seen.locks.len(), 1, "who was refused does not wait");
    assert_eq!((seen.locks[0].ahead, seen.locks[0].holders.len()), (0, 1));
    assert_eq!((&before.locks, &before.agents), (&s.core.state().locks, &s.core.state().agents));
    s.pass(Ttl::minutes(2));
    assert_eq!(refused(&mut s).len(), 1, "it is told once in a while");
    s.pass(Ttl::minutes(61));
    assert_eq!(AllWaits.look(s.now, s.core.state()).circles.len(), 0);
    // Any other refusal is not noted.
    let refusal = s.say(&client("bob"), acquire("a.ts:a")).unwrap_err();
    let mut out = Outbox::default();
    s.core.note_circle(s.now, &named("bob"), &at("a.ts:a"), &refusal, &mut out);
    assert!(out.is_empty() && matches!(refusal, Refusal::LockConflict(_)));
}

#[test]
fn a_session_that_leaves_and_holders_that_are_gone_let_go_of_everything() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let (first, _) = held(s.say(&ada, acquire("a.ts:f")));
    held(s.say(&ada, acquire("a.ts:g")));
    held(s.say(&bob, acquire("a.ts:h")));
    queued(s.say(&ada, AcquireLock { wait: Some(Ttl::minutes(1)), ..acquire("a.ts:h") }));
    let stale = ReapLocks { locks: vec![(first.at.clone(), Fence(first.fence.0 + 7))], why: "gone".into() };
    s.say(&host(), stale).unwrap();
    assert_eq!(live(&s).len(), 3, "another grant is not reaped");
    s.say(&host(), ReapLocks { locks: vec![(first.at.clone(), first.fence)], why: "gone".into() }).unwrap();
    assert!(matches!(
        s.say(&ada, ReapLocks { locks: vec![], why: "x".into() }),
        Err(Refusal::OutOfScope { .. })
    ));
    s.say(&ada, Leave { intents: false, process: None }).unwrap();
    assert_eq!(live(&s), ["a.ts:h bob"]);
    assert_eq!(s.core.state().locks.waiters().count(), 0);
    let forced = ReleaseLock { force: true, ..release("a.ts:h") };
    assert!(matches!(s.say(&ada, forced.clone()), Err(Refusal::OutOfScope { .. })));
    s.say(&person("owner"), forced).unwrap();
    assert!(live(&s).is_empty());
}

#[test]
fn a_late_release_with_the_number_of_an_earlier_grant_touches_nothing() {
    let mut s = Script::new();
    let ada = client("ada");
    let (first, _) = held(s.say(&ada, acquire("a.ts:f")));
    s.say(&ada, release("a.ts:f")).unwrap();
    held(s.say(&ada, acquire("a.ts:f")));
    let late = ReleaseLock { fence: Some(first.fence), ..release("a.ts:f") };
    assert!(matches!(s.say(&ada, late), Err(Refusal::LockNotHeld { .. })));
    assert_eq!(live(&s).len(), 1);
}

#[test]
fn nobody_takes_more_locks_than_one_agent_can_have() {
    let mut s = Script::new();
    let ada = client("ada");
    for number in 0..LOCKS_PER_AGENT_MAX {
        held(s.say(&ada, acquire(&format!("a.ts:f{number}"))));
    }
    assert!(matches!(s.say(&ada, acquire("a.ts:one_more")), Err(Refusal::Quota { .. })));
    held(s.say(&ada, acquire("a.ts:f7")));
    let (_, warnings) = held(s.say(&client("bob"), acquire("a.ts:")));
    assert_eq!(warnings.len(), WARNINGS_MAX);
}

#[test]
fn a_name_is_given_once_and_numbered() {
    let mut s = Script::new();
    let name = |name: &str| NameAgent { name: name.into() };
    let number = |said: Result<Answer<Reply>, Refusal>| match said.unwrap() {
        Answer::Done(Reply::AgentNamed(it)) => it.number,
        other => panic!("{other:?}"),
    };
    assert_eq!(number(s.say(&client("ada"), name("one"))), 1);
    match s.say(&client("ada"), name("two")) {
        Err(Refusal::AlreadyNamed { nick }) => assert_eq!((nick.number, &*nick.name), (1, "one")),
        other => panic!("{other:?}"),
    }
    assert_eq!(number(s.say(&client("bob"), name("one"))), 2, "a refusal uses up no number");
    s.register(&client("ada"));
    let nick = s.core.state().agents.get(&named("ada")).unwrap().nick.clone();
    assert_eq!(nick.map(|it| it.number), Some(1), "registering elsewhere keeps the name");
}

#[test]
fn locks_of_a_jailed_worker_end_with_its_task() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do it", "cli");
    let worker = provost::auth::role::worker(named("cli"), &task);
    held(s.say(&worker, acquire("a.ts:f")));
    let other = provost::auth::role::worker(named("cli"), &TaskId::parse("another").unwrap());
    held(s.say(&other, acquire("a.ts:g")));
    s.cancel(&client("ada"), &task).unwrap();
    s.pass(Ttl::minutes(1));
    let ended = s.finished.iter().any(|it| *it.id() == task);
    assert_eq!((ended, live(&s)), (true, vec!["a.ts:g cli".to_owned()]));
}

#[test]
fn memory_after_a_restart_is_what_was_before_but_for_those_who_waited() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let mut changes: Vec<Change> = Vec::new();
    let mut say = |s: &mut Script, who: &_, command: provost::domain::Command| {
        s.say(who, command).unwrap();
        changes.extend(s.out.changes.iter().cloned());
    };
    say(&mut s, &ada, also_named("a.ts:run", &["Base.run"]).into());
    say(&mut s, &ada, acquire("a.ts:g").into());
    say(&mut s, &bob, AcquireLock { wait: Some(Ttl::minutes(1)), ..acquire("a.ts:g") }.into());
    say(&mut s, &ada, release("a.ts:g").into());
    say(&mut s, &ada, intent(1, &[("a.ts", &[(1, 2)])], &["f"]).into());
    say(&mut s, &ada, propose(1, "a.ts:f", "(a)").into());
    say(&mut s, &bob, AnswerContract { id: contract_id(1), accept: true }.into());
    let before = s.core.state().clone();
    s.restart_after(Ttl::minutes(1), &changes);
    let after = s.core.state();
    assert!(after.locks.iter().eq(before.locks.iter()) && after.locks.waiters().count() == 0);
    assert!(after.intents == before.intents && after.contracts == before.contracts);
    assert_eq!(conflict_with(s.say(&bob, acquire("a.ts:Base.run"))).as_str(), "ada");
}
