//! Subscribers of events: no gaps, for slow ones and over pruned events.

use std::sync::Arc;
use std::time::Duration;

use provost::base::{EventSeq, Timestamp};
use provost::domain::Event;
use provost::engine::{Clock as _, Engine};
use provost::store::{Options, Retention, open};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{PATIENCE, record, run};
use crate::support::script::host;
use crate::support::storm::settings;

async fn follow(engine: &Engine, after: u64, most: usize) -> Vec<Arc<Event>> {
    let mut follower = engine.follow(EventSeq(after));
    let mut seen = Vec::new();
    while seen.len() < most {
        seen.push(timeout(PATIENCE, follower.next()).await.unwrap().unwrap());
    }
    seen
}

#[tokio::test]
async fn a_slow_subscriber_misses_nothing() {
    const MANY: u64 = 6_000;
    let dir = TempDir::new().unwrap();
    let ran = run(open(dir.path(), Options::default()).unwrap());
    ran.engine.submit(&host(), record(0)).await.unwrap();
    let mut follower = ran.engine.follow(EventSeq(0));
    assert_eq!(follower.next().await.unwrap().seq, EventSeq(1));
    // Live now, and then asleep for longer than the channel remembers.
    ran.engine.submit(&host(), record(1)).await.unwrap();
    assert_eq!(follower.next().await.unwrap().seq, EventSeq(2));
    let mut crowd = tokio::task::JoinSet::new();
    for part in 0..20 {
        let engine = ran.engine.clone();
        crowd.spawn(async move {
            for n in 0..MANY / 20 {
                engine.submit(&host(), record(part * 1_000 + n)).await.unwrap();
            }
        });
    }
    crowd.join_all().await;
    for seq in 3..=MANY + 2 {
        let event = timeout(PATIENCE, follower.next()).await.unwrap().unwrap();
        assert_eq!(event.seq, EventSeq(seq));
    }
    let late = follow(&ran.engine, MANY, 2).await;
    assert_eq!(late.iter().map(|it| it.seq.0).collect::<Vec<_>>(), [MANY + 1, MANY + 2]);
}

#[tokio::test]
async fn pruned_events_are_passed_over() {
    let dir = TempDir::new().unwrap();
    let mut store = open(dir.path(), Options::default()).unwrap();
    store.load(settings()).unwrap();
    store.close().unwrap();
    drop(store);
    let ran = run(open(dir.path(), Options::default()).unwrap());
    for n in 0..1_200 {
        ran.engine.submit(&host(), record(n)).await.unwrap();
    }
    ran.engine.stop();
    ran.thread.join().unwrap();
    let mut store = open(dir.path(), Options::default()).unwrap();
    store.load(settings()).unwrap();
    let soon = Timestamp(ran.clock.now().0 + 60_000);
    let keep = Retention { tasks: Duration::ZERO, tasks_most: u32::MAX, events: Duration::ZERO };
    assert_eq!(store.prune(soon, &keep, 1_100).unwrap().events, 1_100);
    store.close().unwrap();
    drop(store);
    let ran = run(open(dir.path(), Options::default()).unwrap());
    let seen = follow(&ran.engine, 0, 100).await;
    assert_eq!(seen.iter().map(|it| it.seq.0).collect::<Vec<_>>(), (1_101..=1_200).collect::<Vec<_>>());
    let mut follower = ran.engine.follow(EventSeq(1_200));
    ran.engine.submit(&host(), record(0)).await.unwrap();
    assert_eq!(timeout(PATIENCE, follower.next()).await.unwrap().unwrap().seq, EventSeq(1_201));
}
