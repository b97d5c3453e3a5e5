//! Leases that are taken by writing, by script: granted in one step, renewed, announced, and over in time.

use std::sync::Arc;

use provost::base::{Fence, HostId, Ttl};
use provost::domain::command::{AcquireLock, FreeCommitted, HoldPlaces, PlaceToHold, PlacesHeld};
use provost::domain::{Answer, Auto, Lock, Refusal, Reply, UntilCommit};

use crate::support::coordinating::{acquire, at, held, path};
use crate::support::script::{Script, client, host};
use crate::support::storm::settings;

fn write(symbols: &[&str], seen: &[u64]) -> HoldPlaces {
    let place = |symbol: &&str| PlaceToHold { at: at(symbol), names: Vec::new() };
    let mut files: Vec<_> = symbols.iter().map(|it| at(it).file().clone()).collect();
    files.dedup();
    HoldPlaces {
        places: symbols.iter().map(place).collect(),
        files,
        seen: seen.iter().map(|it| Fence(*it)).collect(),
        tree: "/r".into(),
        commit: Some("one".into()),
        nested: Vec::new(),
        part: None,
        process: None,
    }
}

fn granted(said: Result<Answer<Reply>, Refusal>) -> Vec<Arc<Lock>> {
    match said.unwrap() {
        Answer::Done(Reply::PlacesHeld(PlacesHeld::Held(locks))) => locks,
        other => panic!("{other:?}"),
    }
}

fn is_overtaken(said: Result<Answer<Reply>, Refusal>) -> bool {
    matches!(said, Ok(Answer::Done(Reply::PlacesHeld(PlacesHeld::Overtaken))))
}

#[test]
fn a_write_gets_all_that_it_touches_or_hears_that_its_look_is_too_old() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let (lock, _) = held(s.say(&bob, acquire("a.ts:g")));
    assert!(is_overtaken(s.say(&ada, write(&["a.ts:f", "b.ts:f"], &[]))));
    assert_eq!(s.core.state().locks.len(), 1);
    let leases = granted(s.say(&ada, write(&["a.ts:f", "b.ts:f"], &[lock.fence.0])));
    assert_eq!(leases.len(), 2);
    assert!(leases.iter().all(|it| it.writing.is_some() && it.holder.as_str() == "ada"));
    // In another file nothing has come.
    assert_eq!(granted(s.say(&bob, write(&["c.ts:f"], &[]))).len(), 1);
}

#[test]
fn a_lease_is_renewed_by_writing_becomes_a_lock_by_asking_and_leaves_nothing_when_it_ends() {
    let mut s = Script::new();
    let ada = client("ada");
    let first = granted(s.say(&ada, write(&["a.ts:f"], &[])));
    s.pass(Ttl::minutes(9));
    let again = granted(s.say(&ada, write(&["a.ts:f"], &[])));
    assert_eq!((again[0].fence, again[0].acquired_at), (first[0].fence, first[0].acquired_at));
    assert!(again[0].expires_at > first[0].expires_at);
    // What is inside of it is held already.
    assert_eq!(granted(s.say(&ada, write(&["a.ts:f.inner"], &[])))[0].at, at("a.ts:f"));
    let (lock, _) = held(s.say(&ada, acquire("a.ts:f")));
    assert!(lock.writing.is_none() && lock.fence == first[0].fence);
    assert!(granted(s.say(&ada, write(&["a.ts:f"], &[])))[0].writing.is_none());
    granted(s.say(&ada, write(&["b.ts:f"], &[])));
    s.pass(Ttl::minutes(11));
    assert_eq!(s.core.state().locks.len(), 1, "a lease is not remembered");
}

#[test]
fn who_asks_waits_for_a_lease_and_takes_the_place_of_one_that_is_announced() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    granted(s.say(&ada, write(&["a.ts:f"], &[])));
    assert!(matches!(s.say(&bob, acquire("a.ts:f")), Err(Refusal::LockConflict(_))));
    let mut settings = settings();
    settings.auto.mode = Auto::Announce;
    let mut s = Script::with(settings);
    granted(s.say(&ada, write(&["b.ts:f"], &[])));
    held(s.say(&bob, acquire("b.ts:f")));
    assert_eq!(s.core.state().locks.get(&at("b.ts:f")).unwrap().holder.as_str(), "bob");
}

#[test]
fn committed_work_is_free_and_what_was_taken_at_that_commit_is_not() {
    let mut s = Script::new();
    let ada = client("ada");
    granted(s.say(&ada, write(&["a.ts:f", "b.ts:f"], &[])));
    held(s.say(&ada, acquire("a.ts:g")));
    let committed = |tree: &str, commit: &str| FreeCommitted {
        tree: tree.into(),
        commit: commit.into(),
        files: vec![path("a.ts")],
    };
    let live = |s: &Script| s.core.state().locks.iter().map(|it| it.at.to_string()).collect::<Vec<_>>();
    for (tree, commit) in [("/r", "one"), ("/s", "two")] {
        s.say(&host(), committed(tree, commit)).unwrap();
        assert_eq!(live(&s).len(), 3);
    }
    s.say(&host(), committed("/r", "two")).unwrap();
    assert_eq!(live(&s), ["b.ts:f", "a.ts:g"]);
    assert!(matches!(s.say(&ada, committed("/r", "two")), Err(Refusal::OutOfScope { .. })));
}

#[test]
fn a_lock_that_ends_with_a_commit_is_one_like_any_other_until_then() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let until = |commit: &str| UntilCommit { tree: "/r".into(), commit: Some(commit.into()) };
    held(s.say(&ada, AcquireLock { until_commit: Some(until("one")), ..acquire("a.ts:f") }));
    // A refresh keeps it; it holds in each work tree, and is no lease.
    let (lock, _) = held(s.say(&ada, acquire("a.ts:f")));
    assert!(
        lock.until_commit.is_some()
            && lock.writing.is_none()
            && lock.keeps_out(Some(("/s", HostId::default())))
    );
    assert!(matches!(s.say(&bob, acquire("a.ts:f")), Err(Refusal::LockConflict(_))));
    let committed = |tree: &str, commit: &str| FreeCommitted {
        tree: tree.into(),
        commit: commit.into(),
        files: vec![path("a.ts")],
    };
    for (tree, commit) in [("/r", "one"), ("/s", "two")] {
        s.say(&host(), committed(tree, commit)).unwrap();
        assert_eq!(s.core.state().locks.len(), 1);
    }
    s.say(&host(), committed("/r", "two")).unwrap();
    assert!(s.core.state().locks.is_empty());
}

#[test]
fn in_a_repository_within_the_repository_its_own_commit_counts() {
    let mut s = Script::new();
    let ada = client("ada");
    let nested = vec![(path("part"), Some("in".into())), (path("part/deep"), None)];
    let write =
        HoldPlaces { nested, ..write(&["a.ts:f", "part/a.ts:f", "part/deep/a.ts:f", "parts.ts:f"], &[]) };
    let commits: Vec<_> =
        granted(s.say(&ada, write)).iter().map(|it| it.writing.clone().unwrap().commit).collect();
    assert_eq!(commits, [Some("one".into()), Some("in".into()), None, Some("one".into())]);
}

#[test]
fn a_thousand_sessions_write_side_by_side_and_each_has_its_own() {
    let mut s = Script::new();
    for number in 0..1_000 {
        let file = path(&format!("{}.ts", number % 100));
        let seen: Vec<u64> = s.core.state().locks.live_in(&file).map(|it| it.fence.0).collect();
        let (own, others) = (format!("{file}:f{number}"), format!("{file}:f{}", number % 100));
        let who = client(&format!("claude-{number}"));
        assert_eq!(granted(s.say(&who, write(&[&own], &seen))).len(), 1);
        if number >= 100 {
            assert!(is_overtaken(s.say(&who, write(&[&others], &seen[1..]))));
        }
    }
    assert_eq!(s.core.state().locks.len(), 1_000);
    s.pass(Ttl::minutes(10));
    assert!(s.core.state().locks.is_empty());
}
