//! Listeners that do not keep up: what is kept for them is bounded in bytes, and what they miss is in the store.

use std::time::Duration;

use provost::base::limits::{EVENT_PAGE_BYTES_MAX, EVENTS_BUFFERED_BYTES_MAX};
use provost::base::{AgentId, EventSeq};
use provost::domain::command::Publish;
use provost::domain::post::{Post, Source};
use provost::domain::{Door, Event, EventKind, Principal, Proof, Refusal, Scope};
use provost::engine::{Engine, SystemClock, start};
use provost::store::{Options, Retention, Store, open};
use provost_test_equipment::MemoryStore;
use provost_test_equipment::callers::caller;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::{Instant, timeout};

use crate::support::script::ByWord;
use crate::support::storm::settings;

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
async fn a_follower_that_stood_still_finds_everything_in_small_pages() {
    let dir = tempfile::tempdir().unwrap();
    let engine = running(open(dir.path(), Options::default()).unwrap());
    let mut follower = engine.follow(EventSeq(0));
    assert!(follower.ready().await.unwrap().is_none());
    for _ in 0..MANY {
        ask(&engine, LARGE).await;
    }
    let (mut large, mut last) = (0, 0);
    while large < MANY {
        let event = timeout(PATIENCE, follower.next()).await.unwrap().unwrap();
        assert_eq!(event.seq.0, last + 1);
        last = event.seq.0;
        large += usize::from(bytes(&event) == LARGE);
    }
    let page = engine.read(|reader| reader.events_after(EventSeq(0), 500)).await.unwrap();
    let size: usize = page.iter().map(|it| it.body.as_ref().map_or(0, |it| it.len())).sum();
    assert!(size <= EVENT_PAGE_BYTES_MAX + 2 * LARGE, "{size}");
    engine.stop();
}

/// Counts the looks, and finds something from the given look on.
struct Looks {
    made: std::cell::Cell<usize>,
    found_at: usize,
}

impl Looks {
    fn found_at(found_at: usize) -> Self {
        Self { made: std::cell::Cell::new(0), found_at }
    }

    async fn look(&self) -> Result<Option<usize>, Refusal> {
        self.made.set(self.made.get() + 1);
        Ok((self.made.get() >= self.found_at).then(|| self.made.get()))
    }
}

#[tokio::test]
async fn a_wait_looks_once_for_each_event_that_concerns_it_and_at_no_other_time() {
    let engine = running(Box::new(MemoryStore::new()));
    let looks = Looks::found_at(3);
    let until = Instant::now() + PATIENCE;
    let wait = engine.wait_for(until, |event| bytes(event) == 7, || looks.look());
    tokio::pin!(wait);
    for (size, seen) in [(1, 1), (7, 2), (2, 2)] {
        ask(&engine, size).await;
        // The engine has committed the event, so the wait reacts to it now or not at all.
        assert!(timeout(Duration::from_millis(50), &mut wait).await.is_err());
        assert_eq!(looks.made.get(), seen, "after a message of {size} bytes");
    }
    ask(&engine, 7).await;
    assert_eq!(wait.await.unwrap(), Some(3));
    engine.stop();
}

#[tokio::test]
async fn a_wait_that_misses_events_looks_again() {
    let engine = running(Box::new(MemoryStore::new()));
    let looks = Looks::found_at(2);
    let until = Instant::now() + PATIENCE;
    let wait = engine.wait_for(until, |_| false, || looks.look());
    tokio::pin!(wait);
    assert!(timeout(Duration::from_millis(10), &mut wait).await.is_err());
    for _ in 0..MANY {
        ask(&engine, LARGE).await;
    }
    assert_eq!(
        wait.await.unwrap(),
        Some(2),
        "the events that it has missed may be the ones that it waits for"
    );
    engine.stop();
}

#[tokio::test]
async fn a_wait_ends_with_its_time_and_with_the_engine() {
    let engine = running(Box::new(MemoryStore::new()));
    let never = Looks::found_at(usize::MAX);
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(engine.wait_for(soon, |_| true, || never.look()).await.unwrap(), None);
    let late = Instant::now() + PATIENCE;
    let (stopped, ()) = tokio::join!(engine.wait_for(late, |_| true, || never.look()), async {
        engine.stop();
    });
    assert!(matches!(stopped, Err(Refusal::Stopping)), "{stopped:?}");
}

#[tokio::test]
async fn what_a_busy_core_does_not_take_is_offered_until_it_does() {
    let engine = running(Box::new(MemoryStore::new()));
    let tries = std::cell::Cell::new(0);
    let taken_at = |number: u32| {
        tries.set(tries.get() + 1);
        let now = tries.get();
        async move { if now < number { Err(Refusal::busy("later")) } else { Ok(now) } }
    };
    assert_eq!(engine.insist(None, || taken_at(3)).await, Ok(3));
    let refused = engine.insist(None, || async { Err::<(), _>(Refusal::TaskNotFound) }).await;
    assert_eq!(refused, Err(Refusal::TaskNotFound), "an answer is an answer");
    engine.stop();
    let last =
        timeout(PATIENCE, engine.insist(None, || async { Err::<(), _>(Refusal::busy("never")) })).await;
    assert_eq!(last.expect("it ends with the engine"), Err(Refusal::busy("never")));
}
