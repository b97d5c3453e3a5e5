//! Two engines over one log: what one commits the other one has, and what becomes of a commit whose answer is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use provost::base::{Fence, Json, Timestamp};
use provost::domain::command::{
    CancelTask, FreeCommitted, HoldPlaces, Locked, PlaceToHold, PlacesHeld, Record,
};
use provost::domain::post::Post;
use provost::domain::view::{LiveLocks, LiveTasks, LockWaiters};
use provost::domain::{Change, Effect, Event, EventKind, Facts, Gone, Outbox, Refusal};
use provost::engine::{Engine, Follower, Started, SystemClock, start};
use provost::store::{Retention, Store};
use provost_test_equipment::{LogStore, Lost, SharedLog};
use tokio::time::timeout;

use crate::support::coordinating::{acquire, at, path, release};
use crate::support::script::{ByWord, client, host, person};
use crate::support::storm::{agent, order, settings};
use crate::support::waits::eventually_so;

const PATIENCE: Duration = Duration::from_secs(60);
const FOR_EVER: Retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };
const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn log() -> SharedLog {
    let log = SharedLog::default();
    log.set_time(NOW);
    log
}

fn started(log: &SharedLog, host: u128) -> Started {
    start(Box::new(log.open(host)), Box::new(ByWord::default()), settings(), Box::new(SystemClock), FOR_EVER)
        .unwrap()
}

fn at_host(log: &SharedLog, host: u128) -> Engine {
    started(log, host).engine
}

fn note(what: &str) -> Record {
    Record { what: what.into(), subject: "x".into(), details: Json::null() }
}

fn why(refused: Refusal) -> String {
    match refused {
        Refusal::Unavailable { why } => why.into(),
        other => panic!("{other:?}"),
    }
}

/// How many locks this host has in memory.
async fn locks(engine: &Engine) -> usize {
    engine.view(LiveLocks::default()).await.unwrap().0.len()
}

/// How many events of this kind the journal has.
fn recorded(log: &SharedLog, what: &str) -> usize {
    let is_it = |kind: &EventKind| matches!(kind, EventKind::Recorded { what: it, .. } if **it == *what);
    log.events().iter().filter(|it| it.event().unwrap().is_some_and(|it| is_it(&it.kind))).count()
}

/// The next event that is no record, as that of what a host can do is.
async fn next_but_records(news: &mut Follower) -> Arc<Event> {
    loop {
        let event = timeout(PATIENCE, news.next()).await.unwrap().unwrap();
        if !matches!(event.kind, EventKind::Recorded { .. }) {
            return event;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_one_host_is_a_lock_at_the_other_and_reaches_who_waits_there() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    let mut news = b.follow_beside_posts();
    let held = a.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    let Locked::Held { lock, .. } = held else { panic!("{held:?}") };
    // What each of them can do comes first.
    let first = next_but_records(&mut news).await;
    assert!(
        matches!(&first.kind, EventKind::LockAcquired { fence, .. } if *fence == lock.fence),
        "{first:?}"
    );
    assert_eq!(locks(&b).await, 1, "it is in the other host's memory by then");
    let refused = b.submit(&client("bob"), acquire("a.ts:run")).await.unwrap_err();
    assert!(matches!(refused, Refusal::LockConflict(_)), "{refused:?}");

    let mut verb = acquire("a.ts:run");
    verb.wait = provost::base::Ttl::from_millis(500_000);
    let waits = b.submit(&client("bob"), verb.clone()).await.unwrap();
    let Locked::Queued { ticket, .. } = waits else { panic!("{waits:?}") };
    eventually_so("who waits elsewhere", async || a.view(LockWaiters).await.unwrap().len() == 1).await;
    a.submit(&client("ada"), release("a.ts:run")).await.unwrap();
    loop {
        let event = timeout(PATIENCE, news.next()).await.unwrap().unwrap();
        if matches!(event.kind, EventKind::LockFreed { .. }) {
            break;
        }
    }
    verb.ticket = Some(ticket);
    let held = b.submit(&client("bob"), verb).await.unwrap();
    let Locked::Held { lock: next, .. } = held else { panic!("{held:?}") };
    assert!(next.fence > lock.fence, "numbers rise over all hosts");
    assert!(log.entries().windows(2).all(|it| it[1].n == it[0].n.next()));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_at_two_hosts_get_each_number_once() {
    let log = log();
    let hosts = [at_host(&log, 1), at_host(&log, 2)];
    let mut callers = tokio::task::JoinSet::new();
    for n in 0..40 {
        let engine = hosts[n % 2].clone();
        callers.spawn(async move {
            let who = client(&format!("c{n}"));
            let mut fences = Vec::new();
            for _ in 0..5 {
                let symbol = format!("a.ts:f{n}");
                let held = engine.submit(&who, acquire(&symbol)).await.unwrap();
                let Locked::Held { lock, .. } = held else { panic!("{held:?}") };
                fences.push(lock.fence);
                engine.submit(&who, release(&symbol)).await.unwrap();
            }
            fences
        });
    }
    let mut fences: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    fences.sort();
    let given = fences.len();
    fences.dedup();
    assert_eq!((given, fences.len()), (200, 200), "no number is given twice");
    assert!(log.events().iter().zip(1..).all(|(event, n)| event.seq.0 == n), "events are dense");
    assert_eq!(log.asked_in_turn(), 0, "a turn folds all that a notice announces");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found_and_answered() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    a.submit(&host(), note("before")).await.unwrap();
    log.lose(Lost::Answer);
    let held = timeout(PATIENCE, a.submit(&client("ada"), acquire("a.ts:run"))).await.unwrap();
    assert!(matches!(held, Ok(Locked::Held { .. })), "it is stored, and so it is said: {held:?}");
    assert_eq!(locks(&a).await, 1);
    eventually_so("the other host", async || locks(&b).await == 1).await;
    a.submit(&host(), note("after")).await.unwrap();
    assert_eq!((recorded(&log, "before"), recorded(&log, "after")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_arrived_is_refused_and_leaves_nothing() {
    let log = log();
    let a = at_host(&log, 1);
    let mut news = a.subscribe();
    a.submit(&host(), note("before")).await.unwrap();
    while news.try_recv().is_ok() {}
    log.lose(Lost::Batch);
    let refused = timeout(PATIENCE, a.submit(&client("ada"), acquire("a.ts:run"))).await.unwrap();
    assert!(why(refused.unwrap_err()).contains("nothing of this was done"));
    assert_eq!(locks(&a).await, 0, "memory has nothing of it");
    assert!(news.try_recv().is_err(), "no follower is told of it");
    let held = a.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    assert!(matches!(held, Locked::Held { fresh: true, .. }), "{held:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_waits_until_it_is_known_what_is_stored() {
    let log = log();
    let a = at_host(&log, 1);
    a.submit(&host(), note("before")).await.unwrap();
    // The store goes away with the batch: neither the caller nor a reader learns what is not known.
    log.lose(Lost::BatchAndStore);
    let asked = {
        let a = a.clone();
        tokio::spawn(async move { a.submit(&client("ada"), acquire("a.ts:run")).await })
    };
    eventually_so("a store that is away", async || a.trouble().is_some()).await;
    let looked = {
        let a = a.clone();
        tokio::spawn(async move { locks(&a).await })
    };
    let refused = a.submit(&host(), note("meanwhile")).await.unwrap_err();
    assert!(why(refused).contains("does not answer"));
    assert!(!asked.is_finished() && !looked.is_finished(), "they wait");
    log.go_away(false);
    assert!(why(timeout(PATIENCE, asked).await.unwrap().unwrap().unwrap_err()).contains("nothing of this"));
    assert_eq!(timeout(PATIENCE, looked).await.unwrap().unwrap(), 0, "what was rolled back is never seen");
    eventually_so("writing", async || a.submit(&host(), note("later")).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_at_a_store_that_goes_away_ends_no_daemon() {
    let log = log();
    let a = at_host(&log, 1);
    a.submit(&client("ada"), acquire("a.ts:one")).await.unwrap();
    log.lose(Lost::RefusedAndStore);
    let refused = a.submit(&client("ada"), acquire("a.ts:two")).await.unwrap_err();
    assert!(why(refused).contains("does not answer"));
    let looked = {
        let a = a.clone();
        tokio::spawn(async move { locks(&a).await })
    };
    log.go_away(false);
    assert_eq!(timeout(PATIENCE, looked).await.unwrap().unwrap(), 1, "memory is what is stored");
    eventually_so("writing", async || a.submit(&host(), note("later")).await.is_ok()).await;
    assert_eq!((locks(&a).await, recorded(&log, "later")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_refuses_writes_and_lets_readers_read() {
    let log = log();
    let a = at_host(&log, 1);
    a.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    log.go_away(true);
    let refused = a.submit(&host(), note("meanwhile")).await.unwrap_err();
    assert!(why(refused).contains("does not answer"));
    assert_eq!(locks(&a).await, 1);
    log.go_away(false);
    eventually_so("writing", async || a.submit(&host(), note("later")).await.is_ok()).await;
    assert_eq!((recorded(&log, "meanwhile"), recorded(&log, "later")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_at_a_shared_store_is_on_record_before_it_is_acknowledged() {
    let log = log();
    let a = at_host(&log, 1);
    for n in 0..20 {
        let post = Post::Question { agent: agent("ada"), question: format!("{n}?").into() };
        a.publish(client("ada"), post).await.unwrap();
        let told = |it: &EventKind| matches!(it, EventKind::Published { .. });
        let stored =
            log.events().iter().filter(|it| it.event().unwrap().is_some_and(|it| told(&it.kind))).count();
        assert_eq!(stored, n + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_another_program_has_changed_is_not_folded() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    b.submit(&host(), note("before")).await.unwrap();
    log.tamper_with_next(|it| it.body = it.body.replace("\"ada\"", "\"eve\"").into());
    a.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    eventually_so("a refusal", async || {
        let refused = b.submit(&client("bob"), acquire("a.ts:run")).await;
        refused.is_err_and(|it| matches!(it, Refusal::Unavailable { .. }))
    })
    .await;
    eventually_so("the reason", async || {
        b.trouble().is_some_and(|it| it.contains("not the entry that was written"))
    })
    .await;
    let eves = b.view(LiveLocks { holder: Some(agent("eve")), files: Vec::new() }).await.unwrap();
    assert!(eves.0.is_empty(), "a writer of the database gives no agent a lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_cut_off_for_long_loads_and_goes_on() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    b.submit(&host(), note("before")).await.unwrap();
    let mut news = b.follow_beside_posts();
    log.hush(true);
    for n in 0..10 {
        a.submit(&client("ada"), acquire(&format!("a.ts:f{n}"))).await.unwrap();
        log.cut();
    }
    log.hush(false);
    eventually_so("all locks", async || locks(&b).await == 10).await;
    for n in 0..10 {
        let event = next_but_records(&mut news).await;
        assert!(matches!(event.kind, EventKind::LockAcquired { .. }), "{n}: {event:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_told_one_thing_after_the_other_does_what_is_due() {
    let log = log();
    let b = at_host(&log, 2);
    b.submit(&host(), note("before")).await.unwrap();
    log.go_away(true);
    eventually_so("a store that is away", async || b.submit(&host(), note("away")).await.is_err()).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let (told, ends) = (log.clone(), is_over.clone());
    let notices = std::thread::spawn(move || {
        while !ends.load(Ordering::Acquire) {
            told.hush(false);
            std::thread::yield_now();
        }
    });
    log.go_away(false);
    eventually_so("it has looked after its store", async || b.trouble().is_none()).await;
    is_over.store(true, Ordering::Release);
    notices.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_passes_numbers_over_for_all_hosts() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    let fence = async |engine: &Engine, who: &str, symbol: &str| match engine
        .submit(&client(who), acquire(symbol))
        .await
        .unwrap()
    {
        Locked::Held { lock, .. } => lock.fence.0,
        other => panic!("{other:?}"),
    };
    let before = fence(&a, "ada", "a.ts:one").await;
    // A turn of the second host that began before would not see it.
    let before = fence(&b, "bob", "b.ts:one").await.max(before);
    log.fail_over();
    let after = fence(&b, "bob", "a.ts:two").await;
    assert!(after > before + 90_000, "{before}, {after}");
    assert_eq!(fence(&a, "ada", "a.ts:three").await, after + 1, "once for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_taken_for_dead_ends_and_writes_nothing_more() {
    let log = log();
    let dead = started(&log, 1);
    dead.engine.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    bury(&log, 2, 1);
    let ended = timeout(PATIENCE, dead.ended).await;
    assert!(ended.is_ok(), "it learns it from the log");
    let said = dead.thread.join().unwrap().expect("a reason").to_string();
    assert!(said.contains("taken this one for dead"), "{said}");
    let entries = log.entries().len();
    assert!(dead.engine.submit(&host(), note("late")).await.is_err());
    assert_eq!(log.entries().len(), entries);
    let again = at_host(&log, 1);
    again.submit(&host(), note("again")).await.unwrap();
    assert_eq!(recorded(&log, "again"), 1);
    assert_eq!(recorded(&log, provost::domain::HOST_DOWN), 1);
}

/// Does what another host does when this one has been silent for too long.
fn bury(log: &SharedLog, by: u128, host: u128) {
    let mut store: LogStore = log.open(by);
    let loaded = store.load(settings()).unwrap();
    let mut core = provost::domain::Core::new(loaded.state, Box::new(ByWord::default()));
    core.decides_at(loaded.daemon);
    store.begin(loaded.head).unwrap();
    let dead = provost::base::DaemonId { host: provost::base::HostId::of(host), incarnation: 1 };
    let mut out = Outbox::default();
    let owed = store.owed_by(dead).unwrap();
    core.bury(NOW, (dead, provost::domain::Gone::Silent), &owed, &mut out);
    assert!(out.changes.contains(&Change::HostDown(dead, Gone::Silent)));
    store.commit(&out).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_is_carried_out_by_the_host_that_owes_it_alone() {
    let log = log();
    let (mut a, mut b) = (started(&log, 1), started(&log, 2));
    let facts = Facts { worker_kind: Some(provost::domain::WorkerKind::Cli), ..Facts::default() };
    let verb = order(1, "do it", "cli", Json::null());
    a.engine.submit_judged(&client("ada"), verb, facts).await.unwrap();
    timeout(PATIENCE, a.effects.recv()).await.unwrap().unwrap();
    b.engine.submit(&host(), note("later")).await.unwrap();
    assert!(b.effects.try_recv().is_err(), "the other host carries nothing out");
    drop(a.engine);
    let owed = started(&log, 3).owed;
    assert!(owed.is_empty(), "nor does one that comes later: {owed:?}");
}

/// Has a host begin a task, and returns the task once its effect was handed over.
async fn began(host: &mut Started) -> provost::base::TaskId {
    let facts = Facts { worker_kind: Some(provost::domain::WorkerKind::Cli), ..Facts::default() };
    let verb = order(1, "do it", "cli", Json::null());
    host.engine.submit_judged(&client("ada"), verb, facts).await.unwrap();
    match timeout(PATIENCE, host.effects.recv()).await.unwrap().unwrap() {
        (_, Effect::SpawnWorker { task }) => task,
        other => panic!("{other:?}"),
    }
}

fn cancel(task: &provost::base::TaskId) -> CancelTask {
    CancelTask { task: task.clone(), reason: "enough".into() }
}

/// Checks that the next effect of this host stops the task, and that none comes after it.
async fn is_told_to_stop(a: &mut Started, task: &provost::base::TaskId) {
    let (_, effect) = timeout(PATIENCE, a.effects.recv()).await.unwrap().unwrap();
    assert!(matches!(&effect, Effect::StopWorker { task: it, .. } if it == task), "{effect:?}");
    a.engine.submit(&host(), note("afterwards")).await.unwrap();
    assert!(a.effects.try_recv().is_err(), "nothing comes twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_in_entries_that_a_host_loads_and_does_not_fold_is_carried_out_once() {
    let log = log();
    let (mut a, b) = (started(&log, 1), at_host(&log, 2));
    let task = began(&mut a).await;
    b.submit(&host(), note("before")).await.unwrap();
    log.hush(true);
    b.submit(&person("bob"), cancel(&task)).await.unwrap();
    for n in 0..10 {
        b.submit(&host(), note(&format!("more {n}"))).await.unwrap();
        log.cut();
    }
    log.hush(false);
    is_told_to_stop(&mut a, &task).await;
}

async fn tasks(engine: &Engine) -> usize {
    engine.view(LiveTasks).await.unwrap().tasks.len()
}

/// Seconds after the beginning, by the store's clock.
fn after(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_silent_while_others_look_on_is_buried_once() {
    let log = log();
    // It has begun, and gives no sign of life.
    let mut silent = log.open(3);
    silent.load(settings()).unwrap();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    for seconds in [0, 5, 10, 14] {
        log.set_time(after(seconds));
        a.submit(&host(), note("a")).await.unwrap();
        b.submit(&host(), note("b")).await.unwrap();
        assert_eq!(recorded(&log, provost::domain::HOST_DOWN), 0, "after {seconds} s");
    }
    for seconds in [16, 20, 25] {
        log.set_time(after(seconds));
        a.submit(&host(), note("a")).await.unwrap();
        b.submit(&host(), note("b")).await.unwrap();
    }
    assert_eq!(recorded(&log, provost::domain::HOST_DOWN), 1, "by one of them, and the living stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_away_itself_buries_none() {
    let log = log();
    let mut silent = log.open(3);
    silent.load(settings()).unwrap();
    let a = at_host(&log, 1);
    // Each time, the store was away for longer than half of the time after which a host is dead.
    for seconds in [0, 8, 16, 24, 3_600] {
        log.set_time(after(seconds));
        a.submit(&host(), note("a")).await.unwrap();
    }
    assert_eq!(recorded(&log, provost::domain::HOST_DOWN), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_host_owed_is_dropped_and_its_task_is_lost() {
    let log = log();
    let dead = started(&log, 1);
    let facts = Facts { worker_kind: Some(provost::domain::WorkerKind::Cli), ..Facts::default() };
    let verb = order(1, "do it", "cli", Json::null());
    dead.engine.submit_judged(&client("ada"), verb, facts).await.unwrap();
    let b = at_host(&log, 2);
    assert_eq!(tasks(&b).await, 1);
    b.submit(&host(), note("before")).await.unwrap();
    bury(&log, 3, 1);
    b.submit(&host(), note("later")).await.unwrap();
    assert_eq!(tasks(&b).await, 0, "it is lost");
    let again = started(&log, 1);
    assert!(again.owed.is_empty(), "it is not begun any more: {:?}", again.owed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_stops_leaves_no_one_waiting() {
    let log = log();
    let (a, b) = (at_host(&log, 1), started(&log, 2));
    a.submit(&client("ada"), acquire("a.ts:run")).await.unwrap();
    let mut verb = acquire("a.ts:run");
    verb.wait = provost::base::Ttl::from_millis(500_000);
    b.engine.submit(&client("bob"), verb).await.unwrap();
    eventually_so("who waits elsewhere", async || a.view(LockWaiters).await.unwrap().len() == 1).await;
    b.engine.stop();
    eventually_so("none waits", async || a.view(LockWaiters).await.unwrap().is_empty()).await;
}

/// A write in a work tree at this path, which the writer has looked at.
fn write(tree: &str, symbol: &str, seen: Vec<Fence>) -> HoldPlaces {
    let (at, file) = (at(symbol), path("a.ts"));
    HoldPlaces {
        places: vec![PlaceToHold { at, names: Vec::new() }],
        files: vec![file],
        seen,
        tree: tree.into(),
        commit: Some("1".into()),
        nested: Vec::new(),
        part: None,
        process: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_tree_at_the_same_path_on_another_host_is_another_one() {
    let log = log();
    let (a, b) = (at_host(&log, 1), at_host(&log, 2));
    let PlacesHeld::Held(first) =
        a.submit(&client("ada"), write("/repo", "a.ts:run", Vec::new())).await.unwrap()
    else {
        panic!("it is held")
    };
    let seen = vec![first[0].fence];
    let same = a.submit(&client("bob"), write("/repo", "a.ts:run", seen.clone())).await.unwrap();
    assert_eq!(same, PlacesHeld::Held(Vec::new()), "in that work tree it is another agent's");
    let PlacesHeld::Held(second) = b.submit(&client("eve"), write("/repo", "a.ts:run", seen)).await.unwrap()
    else {
        panic!("it is held")
    };
    assert_eq!(second[0].holder.as_str(), "eve", "in the other host's it is free");
    assert!(!first[0].keeps_out(Some(("/repo", second[0].daemon.host))));
    assert!(first[0].keeps_out(Some(("/repo", first[0].daemon.host))));
    // A commit there ends what was written there alone.
    let done = FreeCommitted { tree: "/repo".into(), commit: "2".into(), files: vec![path("a.ts")] };
    let freed = b.submit(&host(), done).await.unwrap();
    assert_eq!(freed.count, 1);
    eventually_so("the other one is held on", async || locks(&a).await == 1).await;
    assert_eq!(a.view(LiveLocks::default()).await.unwrap().0[0].it.holder.as_str(), "ada");
}
