//! Readers of one encoder: each event is written once for all of them, and none misses one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use provost::base::EventSeq;
use provost::base::limits::{EVENTS_BUFFERED, STREAM_FRAMES_MAX};
use provost::domain::Event;
use provost::engine::{Encoded, Fanout, Follower, Frame};
use tokio::time::timeout;

use super::{PATIENCE, Ran, memory, record};
use crate::support::script::host;
use crate::support::waits::eventually_so;

/// An event as the encoders here write it: its number.
struct Text(u64);

impl Frame for Text {
    fn bytes(&self) -> usize {
        8
    }
}

async fn submit(ran: &Ran, count: usize) {
    for n in 0..count {
        ran.engine.submit(&host(), record(n as u64)).await.unwrap();
    }
}

/// The next numbers that a reader gets.
async fn numbers(reader: &mut Follower<Encoded<Text>>, count: usize) -> Vec<u64> {
    let mut all = Vec::new();
    while all.len() < count {
        let next = timeout(PATIENCE, reader.next()).await.expect("an event").unwrap();
        assert_eq!(next.frame.0, next.event.seq.0);
        all.push(next.frame.0);
    }
    all
}

#[tokio::test]
async fn an_event_is_written_once_for_a_hundred_readers() {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let (ran, _) = memory();
    let fanout = Fanout::new(|event: &Event| {
        WRITTEN.fetch_add(1, Ordering::SeqCst);
        Some(Text(event.seq.0))
    });
    submit(&ran, 3).await;
    let mut readers: Vec<_> = (0..100).map(|_| fanout.follow(&ran.engine, None)).collect();
    submit(&ran, 10).await;
    for reader in &mut readers {
        assert_eq!(numbers(reader, 10).await, (4..=13).collect::<Vec<_>>(), "those behind the newest");
        assert!(!reader.is_behind());
    }
    assert_eq!(WRITTEN.load(Ordering::SeqCst), 10, "of ten events, for a hundred readers");
    // What one has missed is written for it alone.
    let mut late = fanout.follow(&ran.engine, Some(EventSeq(11)));
    assert_eq!(numbers(&mut late, 2).await, [12, 13]);
    assert!(late.is_behind(), "there may be more in the store");
    assert_eq!(WRITTEN.load(Ordering::SeqCst), 12);
}

#[tokio::test]
async fn a_reader_that_stands_still_delays_no_other_and_reads_what_it_has_missed() {
    const MANY: usize = STREAM_FRAMES_MAX + 500;
    let (ran, _) = memory();
    // Half of the events are nothing for the readers.
    let fanout = Fanout::new(|event: &Event| event.seq.0.is_multiple_of(2).then_some(Text(event.seq.0)));
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = |looks: &Arc<AtomicUsize>| {
        let looks = looks.clone();
        move |store: &mut dyn provost::store::Reader, after| {
            looks.fetch_add(1, Ordering::SeqCst);
            let mut page = store.events_after(after, 500)?;
            page.retain(|it| it.seq.0.is_multiple_of(2));
            Ok(page)
        }
    };
    let mut still = fanout.follow(&ran.engine, None).reading(counted(&looks));
    let others = Arc::new(AtomicUsize::new(0));
    let mut other = fanout.follow(&ran.engine, None).reading(counted(&others));
    for n in 1..=MANY {
        submit(&ran, 2).await;
        assert_eq!(numbers(&mut other, 1).await, [2 * n as u64], "at once");
    }
    assert_eq!(others.load(Ordering::SeqCst), 0, "what an encoder leaves out makes no reader look for it");
    let all = numbers(&mut still, MANY).await;
    assert_eq!(all, (1..=MANY as u64).map(|n| 2 * n).collect::<Vec<_>>());
    assert!(looks.load(Ordering::SeqCst) > 1, "that was more than is kept for readers");
}

#[tokio::test]
async fn who_follows_all_but_messages_misses_nothing_else() {
    let (ran, _) = memory();
    submit(&ran, 1).await;
    let mut follower = ran.engine.follow_beside_posts();
    submit(&ran, EVENTS_BUFFERED + 10).await;
    for seq in 2..=EVENTS_BUFFERED as u64 + 11 {
        let event = timeout(PATIENCE, follower.next()).await.expect("an event").unwrap();
        assert_eq!(event.seq.0, seq);
    }
    assert!(follower.ready().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_on_record_is_found_though_its_commit_was_reported_as_failed() {
    let (ran, control) = memory();
    let fanout = Fanout::new(|event: &Event| Some(Text(event.seq.0)));
    let (mut reader, mut follower) = (fanout.follow(&ran.engine, None), ran.engine.follow_beside_posts());
    submit(&ran, 1).await;
    control.fail_after_commit(1);
    ran.engine.submit(&host(), record(2)).await.unwrap_err();
    let engine = &ran.engine;
    eventually_so("it writes again", async || engine.submit(&host(), record(3)).await.is_ok()).await;
    assert_eq!(numbers(&mut reader, 3).await, [1, 2, 3]);
    for seq in 1..=3 {
        assert_eq!(timeout(PATIENCE, follower.next()).await.expect("an event").unwrap().seq, EventSeq(seq));
    }
}
