//! When the engine puts words into the index of the search.

use provost::base::limits::{INDEX_LATE_MS, INDEX_QUIET_MS};
use provost::store::{Options, Reader, SearchQuery, SearchWords, open, open_reader};

use super::*;

fn indexed(reader: &mut dyn Reader) -> EventSeq {
    let words = SearchWords::parse("note").expect("a search");
    reader.search(&SearchQuery { words, only: None, before: None, limit: 1 }).expect("an answer").indexed_to
}

fn note(n: u32) -> Record {
    Record { what: "note".into(), subject: n.to_string().into(), details: Json::null() }
}

/// Works without a pause until words are in the index; returns how long that was, or `None` if there was a pause nevertheless.
async fn works_until_indexed(engine: &Engine, reader: &mut dyn Reader) -> Option<Duration> {
    let begun = Instant::now();
    for n in 0.. {
        let last = Instant::now();
        engine.submit(&host(), note(n)).await.expect("a note");
        if last.elapsed() >= Duration::from_millis(INDEX_QUIET_MS) {
            return None;
        }
        if indexed(reader) > EventSeq(0) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the words come into the index while work goes on");
    }
    Some(begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn words_come_into_the_index_in_a_pause_and_late_without_one() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().expect("a folder");
        let store = open(dir.path(), Options::default()).expect("the store opens");
        let started =
            start(store, Box::new(ByWord::default()), settings(), Box::new(SystemClock), FOR_EVER).unwrap();
        let engine = started.engine;
        let mut reader = open_reader(dir.path()).expect("a reader");
        // A machine that makes pauses of its own shows nothing.
        let Some(took) = works_until_indexed(&engine, &mut *reader).await else { continue };
        assert!(took >= Duration::from_millis(INDEX_LATE_MS), "not while there is work, but after {took:?}");
        let head = engine.journal_head().await.expect("the head").seq;
        eventually_so("the rest, in the pause", async || indexed(&mut *reader) == head).await;
        return;
    }
    panic!("this machine cannot work without a pause");
}
