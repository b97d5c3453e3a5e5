//! Listeners that do not keep up: what is kept for them is bounded in bytes, and what they miss is in the store.

use std::time::Duration;

use provost::auth::testing::caller;
use provost::base::limits::{EVENT_PAGE_BYTES_MAX, EVENTS_BUFFERED_BYTES_MAX};
use provost::base::{AgentId, EventSeq};
use provost::domain::command::Publish;
use provost::domain::post::{Post, Source};
use provost::domain::{Door, Event, EventKind, Principal, Proof, Scope};
use provost::engine::{Engine, SystemClock, start};
use provost::store::{MemoryStore, Options, Retention, Store, open};
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::timeout;

use crate::script::ByWord;
use crate::storm::settings;

const PATIENCE: Duration = Duration::from_secs(60);
const LARGE: usize = 1 << 20;
const MANY: usize = 60;

fn running(store: Box<dyn Store>) -> Engine {
    let keep = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };
    start(store, Box::new(ByWord::default()), settings(), Box::new(SystemClock), keep).unwrap().engine
}

fn who() -> Principal {
    caller("feat-x", Door::Broker, &[Scope::Join, Scope::Coordinate, Scope::Read], Proof::PeerUid)
}

async fn ask(engine: &Engine, bytes: usize) {
    let (agent, question) = (AgentId::parse("feat-x").unwrap(), "?".repeat(bytes).into());
    let post = Post::Question { agent, question };
    engine.submit(&who(), Publish { post, source: Source::Client }).await.unwrap();
}

fn bytes(event: &Event) -> usize {
    match &event.kind {
        EventKind::Published { post: Post::Question { question, .. }, .. } => question.len(),
        _ => 0,
    }
}

#[tokio::test]
async fn a_listener_that_stands_still_holds_few_large_events_and_all_small_ones() {
    let engine = running(Box::new(MemoryStore::new()));
    let mut still = engine.subscribe();
    for _ in 0..MANY {
        ask(&engine, 10).await;
        ask(&engine, LARGE).await;
    }
    let (mut held, mut small, mut missed) = (0, 0, 0);
    loop {
        match still.try_recv() {
            Ok(event) if bytes(&event) > 10 => held += bytes(&event),
            Ok(event) => small += usize::from(bytes(&event) > 0),
            Err(TryRecvError::Lagged(_)) => missed += 1,
            Err(_) => break,
        }
    }
    assert!((EVENTS_BUFFERED_BYTES_MAX / 2..=EVENTS_BUFFERED_BYTES_MAX).contains(&held), "{held}");
    assert_eq!((small, missed), (MANY, MANY - held / LARGE));
    // Who keeps up misses nothing, however much there is.
    for _ in 0..MANY {
        ask(&engine, LARGE).await;
        let mut heard = 0;
        while heard == 0 {
            heard = bytes(&timeout(PATIENCE, still.recv()).await.unwrap().unwrap());
        }
        assert_eq!(heard, LARGE);
    }
    engine.stop();
}

#[tokio::test]
async fn a_feed_that_stood_still_finds_everything_in_small_pages() {
    let dir = tempfile::tempdir().unwrap();
    let engine = running(open(dir.path(), Options::default()).unwrap());
    let mut feed = engine.feed(EventSeq(0));
    assert!(feed.ready().await.unwrap().is_none());
    for _ in 0..MANY {
        ask(&engine, LARGE).await;
    }
    let (mut large, mut last) = (0, 0);
    while large < MANY {
        let event = timeout(PATIENCE, feed.next()).await.unwrap().unwrap();
        assert_eq!(event.seq.0, last + 1);
        last = event.seq.0;
        large += usize::from(bytes(&event) == LARGE);
    }
    let page = engine.read(|reader| reader.events_after(EventSeq(0), 500)).await.unwrap();
    let size: usize = page.iter().map(|it| it.body.as_ref().map_or(0, |it| it.len())).sum();
    assert!(size <= EVENT_PAGE_BYTES_MAX + 2 * LARGE, "{size}");
    engine.stop();
}
