//! Inboxes at rest: a forgotten agent leaves a large one behind, and no caller waits until it is gone.

use std::path::Path;
use std::time::Duration;

use provost::base::{PostSeq, Slug, Timestamp, Ttl};
use provost::domain::command::Publish;
use provost::domain::post::{Post, Source, slug};
use provost::store::{Letters, Options, Pruned, Retention, Store, open};

use crate::support::storm::{Storm, agent, settings};

/// As many as a busy agent gets in weeks.
const MANY: u64 = 100_000;

/// The number of messages that are taken away at a time.
const BITE: u32 = 2_000;

const KEEP: Retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };

fn started(dir: &Path, now: Timestamp) -> (Box<dyn Store>, Storm) {
    let mut store = open(dir, Options::default()).expect("the store opens");
    let loaded = store.load(settings()).expect("the store loads");
    let mut storm = Storm::new(9, loaded.state);
    storm.now = now;
    (store, storm)
}

fn publish(storm: &mut Storm, post: Post) {
    storm.say("host", Publish { post, source: Source::Client }).expect("it is published");
}

fn here(storm: &mut Storm, name: &str) {
    let (agent, status) = (agent(name), "working".into());
    let (files, message, cli, phase, detail) = (Vec::new(), None, None, None, None);
    publish(storm, Post::Status { agent, status, files, message, cli, phase, detail });
}

fn tell(storm: &mut Storm, name: &str) {
    let errors = vec!["e".into()];
    publish(storm, Post::Feedback { agent: agent(name), from: agent("supervisor"), errors, re: None });
}

fn write(store: &mut dyn Store, storm: &mut Storm) {
    store.commit(&storm.batch()).expect("a commit");
}

fn letters(store: &dyn Store, to: &str) -> usize {
    let which = Letters::In(slug(to), PostSeq(0));
    store
        .opens_reader()
        .and_then(|open| open())
        .expect("a reader")
        .letters(&which, usize::MAX)
        .expect("letters")
        .len()
}

fn rows(dir: &Path) -> u64 {
    let db = rusqlite::Connection::open(dir.join("provost.db")).expect("SQLite");
    let count: i64 = db.query_row("SELECT count(*) FROM inbox", [], |row| row.get(0)).expect("a number");
    u64::try_from(count).expect("a number of rows")
}

/// Everybody is silent for long enough to be forgotten.
fn forget(storm: &mut Storm) {
    storm.now = storm.now.after(Ttl::minutes(8 * 24 * 60));
    storm.core.tick(storm.now, &mut storm.out);
}

fn bite(store: &mut dyn Store, storm: &Storm) -> Pruned {
    store.prune(storm.now, &KEEP, BITE).expect("a bite")
}

#[test]
fn a_forgotten_inbox_goes_bit_by_bit_and_is_never_seen_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path(), Timestamp(1_700_000_000_000));
    here(&mut storm, "feat-gone");
    for n in 1..=MANY {
        tell(&mut storm, "feat-gone");
        if n % 1_000 == 0 {
            write(&mut *store, &mut storm);
        }
    }
    assert_eq!(letters(&*store, "feat-gone") as u64, MANY);
    forget(&mut storm);
    write(&mut *store, &mut storm);
    assert_eq!(rows(dir.path()), MANY, "the commit that forgets an agent does not carry the inbox away");
    assert_eq!(letters(&*store, "feat-gone"), 0);
    assert!(bite(&mut *store, &storm).more);
    assert_eq!(rows(dir.path()), MANY - u64::from(BITE), "one bite");

    // Back under the same name, before the rest is gone, and after a crash at that.
    let now = storm.now;
    drop(store);
    let (mut store, mut storm) = started(dir.path(), now);
    assert!(storm.core.state().broker.get(&slug("feat-gone")).is_none());
    here(&mut storm, "feat-gone");
    tell(&mut storm, "feat-gone");
    write(&mut *store, &mut storm);
    assert_eq!(letters(&*store, "feat-gone"), 1, "only what is new");
    let mut bites = 1;
    while bite(&mut *store, &storm).more {
        bites += 1;
    }
    assert_eq!((rows(dir.path()), bites), (1, MANY / u64::from(BITE)));
    assert_eq!(letters(&*store, "feat-gone"), 1);

    // Forgotten a second time, and everything is as after the first.
    let newest = |storm: &Storm| {
        let mut all = storm.core.state().broker.newest();
        all.find(|(it, _)| **it == Slug::parse("feat-gone").expect("a name")).map(|(_, n)| n)
    };
    let before = newest(&storm);
    let now = storm.now;
    drop(store);
    let (mut store, mut storm) = started(dir.path(), now);
    assert_eq!(newest(&storm), before, "as memory had it");
    forget(&mut storm);
    here(&mut storm, "feat-gone");
    write(&mut *store, &mut storm);
    drop(store);
    let (mut store, storm) = started(dir.path(), now);
    assert_eq!(newest(&storm), Some(PostSeq(0)), "nothing in it before the rest is gone");
    assert!(!bite(&mut *store, &storm).more);
    assert_eq!(rows(dir.path()), 0);
}

#[test]
fn what_is_pruned_is_swept_from_many_inboxes_bit_by_bit() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm) = started(dir.path(), Timestamp(1_700_000_000_000));
    for n in 0..50 {
        here(&mut storm, &format!("feat-{n}"));
    }
    let done = |storm: &mut Storm| {
        let (agent, status) = (agent("feat-0"), "done".into());
        publish(storm, Post::Artifact { agent, status, exports: Vec::new(), files: Vec::new() });
    };
    (0..100).for_each(|_| done(&mut storm));
    write(&mut *store, &mut storm);
    storm.now = storm.now.after(Ttl::minutes(10));
    done(&mut storm);
    write(&mut *store, &mut storm);
    assert_eq!(rows(dir.path()), 49 * 101);
    let keep = Retention { events: Duration::from_secs(60), ..KEEP };
    let first = store.prune(storm.now, &keep, 1_000).expect("a bite");
    assert!(first.more);
    assert_eq!(rows(dir.path()), 49 * 101 - 1_000);
    assert_eq!(letters(&*store, "feat-1"), 1, "what was pruned is not seen");
    while store.prune(storm.now, &keep, 1_000).expect("a bite").more {}
    assert_eq!((rows(dir.path()), letters(&*store, "feat-49")), (49, 1));
}
