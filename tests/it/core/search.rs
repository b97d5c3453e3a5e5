//! The search by words, in a store on a disk: words are found with any signs in them, in steps, and are gone with the pruned events.

use std::path::Path;
use std::time::{Duration, Instant};

use provost::base::{EventSeq, Json, TaskId, Timestamp, Ttl};
use provost::domain::command::{CancelTask, Publish};
use provost::domain::post::{Post, Source};
use provost::store::{
    Found, HitKind, Options, Restore, Retention, SearchError, SearchQuery, SearchWords, Store, open, restore,
};

use crate::support::storm::{Storm, agent, order, settings};

const FOR_EVER: Retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };

/// As many rows as a page has at most.
const PAGE: usize = 50;

fn started(dir: &Path) -> (Box<dyn Store>, Storm) {
    let mut store = open(dir, Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    let mut storm = Storm::new(9, loaded.state);
    storm.now = Timestamp(1_700_000_000_000);
    (store, storm)
}

fn tell(storm: &mut Storm, text: &str) {
    let post =
        Post::Feedback { agent: agent("ada"), from: agent("bob"), errors: vec![text.into()], re: None };
    storm.say("host", Publish { post, source: Source::Client }).expect("it is published");
}

fn write(store: &mut dyn Store, storm: &mut Storm) {
    store.commit(&storm.batch()).expect("a commit");
}

fn all(store: &mut dyn Store) -> u32 {
    let mut bites = 0;
    while store.lacks_index() {
        store.index(100).expect("a bite");
        bites += 1;
    }
    bites
}

fn query(text: &str) -> SearchQuery {
    SearchQuery { words: SearchWords::parse(text).expect("a search"), only: None, before: None, limit: PAGE }
}

fn find(store: &dyn Store, query: &SearchQuery) -> Found {
    store.opens_reader().and_then(|open| open()).expect("a reader").search(query).expect("a search")
}

fn seqs(store: &dyn Store, text: &str) -> Vec<u64> {
    find(store, &query(text)).hits.iter().filter_map(|it| it.seq).map(|it| it.0).collect()
}

#[test]
fn a_text_that_is_no_search_is_refused_in_words() {
    let refused = |text: &str| SearchWords::parse(text).expect_err(text);
    assert_eq!(refused(""), SearchError::Empty);
    assert_eq!(refused("  \n "), SearchError::Empty);
    assert_eq!(refused("\"one"), SearchError::Open);
    assert_eq!(refused("a \"\" b"), SearchError::Empty);
    assert_eq!(refused("a ;-- b"), SearchError::Signs(";--".into()));
    assert_eq!(refused("*"), SearchError::Signs("*".into()));
    assert_eq!(refused("a\u{0}b"), SearchError::Control);
    assert_eq!(refused("\u{1b}[2J"), SearchError::Control);
    assert_eq!(refused(&"a ".repeat(13)), SearchError::TooMany);
    assert_eq!(refused(&"a".repeat(301)), SearchError::TooLong);
    for it in [SearchError::Empty, SearchError::Open, SearchError::TooMany, SearchError::TooLong] {
        assert!(it.to_string().contains("type"), "it says what to do: {it}");
    }
}

#[test]
fn words_are_found_whatever_signs_are_in_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    for text in [
        "the login in src/auth.rs is broken",
        "it's \"quoted\" OR NOT near(x) AND more",
        "Ünïcode für alle: naïve café",
        "token refresh",
        "refresh token",
        "Robert'); DROP TABLE search_event;--",
    ] {
        tell(&mut storm, text);
    }
    write(&mut *store, &mut storm);
    assert!(store.lacks_index() && all(&mut *store) == 1 && !store.lacks_index());
    let found = |text: &str| -> Vec<String> {
        find(&*store, &query(text)).hits.iter().map(|it| it.excerpt.to_string()).collect()
    };
    let has = |text: &str, what: &str| {
        let found = found(text);
        assert!(found.iter().any(|it| it.contains(what)), "{text}: {found:?}");
    };
    has("login", "the login in");
    has("src/auth.rs", "the login in");
    has("LOGIN broken", "the login in");
    has("it's", "quoted");
    has("or not near(x) and", "quoted");
    has("unicode", "Ünïcode");
    has("cafe", "café");
    has("refr*", "refresh");
    has("Robert'); DROP", "Robert");
    has("drop-table", "Robert");
    for none in
        ["\"auth src\"", "logi", "published:x", "said:login", "what:login", "NEAR(login broken)", "refr"]
    {
        assert_eq!(found(none), [""; 0], "{none}");
    }
    assert_eq!((found("\"token refresh\"").len(), found("token refresh").len()), (1, 2));
    // Kinds are words as well, and messages can be looked for alone.
    let only = |text: &str, only| find(&*store, &SearchQuery { only: Some(only), ..query(text) }).hits;
    assert_eq!(only("feedback", HitKind::Event).len(), 0);
    let letters = only("login", HitKind::Message);
    assert_eq!((letters.len(), letters[0].kind, letters[0].post.is_some()), (1, HitKind::Message, true));
    assert!(only("login", HitKind::Event).is_empty() && only("login", HitKind::Task).is_empty());
    // The store itself is whole after all of that.
    store.close().expect("a clean end");
    drop(store);
    started(dir.path());
}

#[test]
fn tasks_are_found_by_their_goals_and_by_what_was_reported_as_they_are_now() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    storm.say("orch", order(1, "any paint the shed", "poller", Json::null())).expect("it is taken");
    write(&mut *store, &mut storm);
    all(&mut *store);
    let tasks = |store: &dyn Store, text: &str| -> Vec<(String, TaskId)> {
        let hits = find(store, &query(text)).hits.into_iter().filter(|it| it.kind == HitKind::Task);
        hits.map(|it| (it.what.into(), it.task.expect("a task"))).collect()
    };
    let found = tasks(&*store, "shed");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(tasks(&*store, "cancelled"), []);
    let task = found[0].1.clone();
    storm.say("orch", CancelTask { task: task.clone(), reason: "rain tomorrow".into() }).expect("it ends");
    write(&mut *store, &mut storm);
    all(&mut *store);
    assert_eq!(tasks(&*store, "shed"), [("cancelled".to_owned(), task.clone())], "once, as it is now");
    assert_eq!(tasks(&*store, task.as_str()).len(), 1);
    // With the task its words are gone.
    let later = storm.now.after(Ttl::minutes(60));
    let keep = Retention { tasks: Duration::from_secs(60), ..FOR_EVER };
    assert_eq!(store.prune(later, &keep, 10).expect("a bite").tasks, 1);
    assert_eq!(tasks(&*store, "shed"), []);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let rows = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
    assert_eq!(rows("SELECT count(*) FROM searched_task"), 0);
    assert_eq!(
        rows("SELECT count(*) FROM search_task WHERE search_task MATCH 'shed'"),
        0,
        "the index itself"
    );
}

#[test]
fn what_is_pruned_leaves_the_index_and_the_rest_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    for n in 0..300 {
        tell(&mut storm, &format!("early bird {n}"));
    }
    write(&mut *store, &mut storm);
    let first = all(&mut *store);
    assert!(first >= 3, "bit by bit: {first}");
    storm.now = storm.now.after(Ttl::minutes(60));
    for n in 0..50 {
        tell(&mut storm, &format!("late bird {n}"));
    }
    write(&mut *store, &mut storm);
    // Half of what is pruned is not in the index yet.
    let keep = Retention { events: Duration::from_secs(60), ..FOR_EVER };
    while store.prune(storm.now, &keep, 100).expect("a bite").more {}
    all(&mut *store);
    assert_eq!(seqs(&*store, "early"), [0; 0]);
    let late = seqs(&*store, "bird");
    assert_eq!(late.len(), 50);
    assert!(late.is_sorted_by(|a, b| a > b), "newest first");
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let left = "SELECT count(*) FROM search_event WHERE search_event MATCH 'early'";
    assert_eq!(db.query_row(left, [], |row| row.get::<_, i64>(0)).expect("a number"), 0, "the index itself");
}

#[test]
fn an_index_goes_on_over_starts_and_is_cut_where_a_store_goes_on_from_a_backup() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    (0..150).for_each(|n| tell(&mut storm, &format!("first part {n}")));
    write(&mut *store, &mut storm);
    store.index(100).expect("a bite");
    assert!(store.lacks_index());
    let behind = find(&*store, &query("first"));
    assert_eq!(behind.indexed_to, EventSeq(100), "it says how far it is");
    drop(store);
    let (mut store, mut storm) = started(dir.path());
    assert!(store.lacks_index());
    all(&mut *store);
    assert_eq!(seqs(&*store, "first").len(), PAGE);
    // Page by page, none twice.
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = find(&*store, &SearchQuery { before, ..query("first") });
        seen.extend(page.hits.iter().filter_map(|it| it.seq));
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 150);
    assert!(seen.is_sorted_by(|a, b| a > b));
    let copy = dir.path().join("copy.db");
    provost::store::backup(dir.path(), &copy).expect("a backup");
    (0..50).for_each(|n| tell(&mut storm, &format!("second part {n}")));
    write(&mut *store, &mut storm);
    all(&mut *store);
    assert_eq!(seqs(&*store, "second").len(), 50);
    drop(store);
    restore(dir.path(), None, Restore::From(&copy), storm.now).expect("a restore");
    let (mut store, _) = started(dir.path());
    all(&mut *store);
    assert_eq!((seqs(&*store, "second").len(), seqs(&*store, "first").len()), (0, PAGE));
}

#[test]
fn a_store_that_goes_on_without_its_end_forgets_the_words_of_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    (0..20).for_each(|n| tell(&mut storm, &format!("kept part {n}")));
    write(&mut *store, &mut storm);
    let kept = store.journal_head().seq;
    (0..20).for_each(|n| tell(&mut storm, &format!("lost part {n}")));
    write(&mut *store, &mut storm);
    all(&mut *store);
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).expect("SQLite");
    let gone = db.execute("DELETE FROM event WHERE seq > ?1", [i64::try_from(kept.0).expect("a number")]);
    assert_eq!(gone.expect("the end is lost"), 20);
    restore(dir.path(), None, Restore::AsItIs, storm.now).expect("a restore");
    let left = "SELECT count(*) FROM search_event WHERE search_event MATCH 'lost'";
    assert_eq!(db.query_row(left, [], |row| row.get::<_, i64>(0)).expect("a number"), 0, "the index itself");
    let (mut store, _) = started(dir.path());
    all(&mut *store);
    assert_eq!((seqs(&*store, "lost").len(), seqs(&*store, "kept").len()), (0, 20));
}

#[test]
fn a_bite_takes_as_long_among_many_events_as_among_few() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path());
    let mut bites = Vec::new();
    for round in 0..40 {
        (0..500).for_each(|n| tell(&mut storm, &format!("round {round} message {n} about src/file_{n}.rs")));
        write(&mut *store, &mut storm);
        while store.lacks_index() {
            let from = Instant::now();
            store.index(100).expect("a bite");
            bites.push(from.elapsed());
        }
    }
    let median = |some: &[Duration]| {
        let mut some = some.to_vec();
        some.sort();
        some[some.len() / 2]
    };
    let (early, late) = (median(&bites[..40]), median(&bites[bites.len() - 40..]));
    eprintln!("a bite of 100 took {early:?} among 2,000 events, {late:?} among 20,000");
    assert!(late < early * 4, "{early:?}, {late:?}");
}
