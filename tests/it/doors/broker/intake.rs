//! Messages that are acknowledged before their commit: kept over a kill, on record before any reader asks,
//! and once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use provost::base::{AgentId, EventSeq, Json, Timestamp};
use provost::domain::command::Record;
use provost::domain::post::{Post, Received};
use provost::domain::view::Roster;
use provost::domain::{Door, EventKind, Principal, Proof, Refusal, Scope};
use provost::engine::{Engine, Started, SystemClock, start};
use provost::store::{Intake, Letters, Loaded, Options, Retention, Store, StoreError, open};
use provost_test_equipment::callers::caller;
use provost_test_equipment::{MemoryControl, MemoryStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::broker_client::{Kept, feedback, poll, publish, status};
use crate::support::loopback_client::Http;
use crate::support::script::ByWord;
use crate::support::storm::{Storm, settings};
use crate::support::waits::eventually_so;
use crate::support::{World, eventually};

fn who(name: &str) -> Principal {
    caller(name, Door::Broker, &[Scope::Coordinate, Scope::Read], Proof::PeerUid)
}

fn blocked(n: u64) -> Post {
    let agent = AgentId::parse("feat-aa").unwrap();
    Post::Blocked { agent, needs: format!("step {n}").into(), from: "feat-bb".into() }
}

fn received(n: u64) -> Received {
    Received { at: Timestamp(1_700_000_000_000), who: who("feat-aa"), post: blocked(n) }
}

/// Returns the text of a message of [`blocked`].
fn step(post: &Post) -> Option<&str> {
    if let Post::Blocked { needs, .. } = post { Some(needs) } else { None }
}

fn steps(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|n| format!("step {n}")).collect()
}

fn opened(dir: &Path) -> (Box<dyn Store>, Vec<Received>) {
    let (store, loaded) = loaded(dir);
    (store, loaded.received)
}

fn loaded(dir: &Path) -> (Box<dyn Store>, Loaded) {
    let mut store = open(dir, Options::default()).unwrap();
    let loaded = store.load(settings()).unwrap();
    (store, loaded)
}

/// The place where a store that has just been loaded keeps messages.
fn intake_of(loaded: Loaded) -> Box<dyn Intake> {
    loaded.intake.expect("a store that does not wait for the disk keeps messages")
}

/// A store that has kept these, and is gone.
fn killed_with(messages: &[Received]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (_store, loaded) = loaded(dir.path());
    assert!(loaded.received.is_empty());
    let mut intake = intake_of(loaded);
    for message in messages {
        assert!(intake.keep(std::slice::from_ref(message)).unwrap());
    }
    dir
}

#[test]
fn a_backup_lacks_nothing_that_a_killed_daemon_had_acknowledged() {
    let dir = killed_with(&[received(0), received(1)]);
    let copy = dir.path().join("copy");
    let refused = provost::store::backup(dir.path(), &copy).unwrap_err();
    assert!(matches!(refused, StoreError::NotOnRecord { messages: 2 }), "{refused}");
    assert!(refused.to_string().contains("provost up") && !copy.exists(), "{refused}");
    let (engine, thread) = running(open(dir.path(), Options::default()).unwrap());
    engine.stop();
    thread.join().unwrap();
    provost::store::backup(dir.path(), &copy).unwrap();
    let restored = tempfile::tempdir().unwrap();
    let now = Timestamp(1_700_000_100_000);
    provost::store::restore(restored.path(), None, provost::store::Restore::From(&copy), now).unwrap();
    let (_store, received) = opened(restored.path());
    assert!(received.is_empty());
}

#[test]
fn what_a_store_was_given_is_there_until_its_commit() {
    let all = [received(0), received(1), received(2)];
    let dir = killed_with(&all);
    for _ in 0..2 {
        // A start that is killed before it has put them on record loses none.
        assert_eq!(opened(dir.path()).1, all);
    }
    let (engine, thread) = running(open(dir.path(), Options::default()).unwrap());
    engine.stop();
    thread.join().unwrap();
    let (store, received) = opened(dir.path());
    assert!(received.is_empty());
    let letters =
        store.opens_reader().and_then(|open| open()).unwrap().letters(&Letters::Newest, usize::MAX).unwrap();
    let said: Vec<&str> = letters.iter().filter_map(|it| step(&it.post)).collect();
    assert_eq!(said, steps(0..3));
}

#[test]
fn what_is_on_record_is_not_carried_out_again() {
    let dir = killed_with(&[received(0)]);
    let bytes = fs::read(dir.path().join("intake.log")).unwrap();
    let (engine, thread) = running(open(dir.path(), Options::default()).unwrap());
    engine.stop();
    thread.join().unwrap();
    // As after a kill between the commit and whatever is written next.
    fs::write(dir.path().join("intake.log"), bytes).unwrap();
    assert!(opened(dir.path()).1.is_empty());
}

#[test]
fn what_was_cut_changed_or_made_by_others_is_not_carried_out() {
    let path = |dir: &TempDir| dir.path().join("intake.log");
    let all = [received(0), received(1)];
    let dir = killed_with(&all);
    let whole = fs::read(path(&dir)).unwrap();
    let first = 36 + usize::try_from(u32::from_le_bytes(whole[..4].try_into().unwrap())).unwrap();
    let with = |bytes: &[u8]| {
        fs::write(path(&dir), bytes).unwrap();
        opened(dir.path()).1
    };
    assert_eq!(with(&whole), all);
    assert_eq!(with(&whole[..whole.len() - 1]), all[..1]);
    assert_eq!(with(&whole[..first - 1]), []);
    // Another order, and another word.
    assert_eq!(with(&[&whole[first..], &whole[..first]].concat()), []);
    let other = String::from_utf8_lossy(&whole[36..first]).replace("step 0", "step 9");
    assert_eq!(with(&[&whole[..36], other.as_bytes(), &whole[first..]].concat()), []);
    // A length that leads anywhere.
    assert_eq!(with(&[&[255; 4][..], &whole[4..]].concat()), []);
    // Another store's, whose key is another.
    let strange = killed_with(&all);
    assert_eq!(with(&fs::read(path(&strange)).unwrap()), []);
}

#[test]
fn a_store_whose_files_were_swapped_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, loaded) = loaded(dir.path());
    let mut intake = intake_of(loaded);
    assert!(intake.keep(&[received(0)]).unwrap());
    let path = dir.path().join("intake.log");
    fs::rename(&path, dir.path().join("away")).unwrap();
    intake.keep(&[received(1)]).expect_err("it would go into a file without a name");
    fs::rename(dir.path().join("away"), &path).unwrap();
    assert!(intake.keep(&[received(1)]).unwrap());
    intake.look().unwrap();
    fs::rename(dir.path().join("provost.db"), dir.path().join("other")).unwrap();
    store.look().expect_err("it could never be committed");
    intake.look().expect_err("nor while a commit is under way");
}

#[test]
fn a_store_that_waits_for_the_disk_keeps_nothing_before_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path(), Options { always_durable: true, ..Options::default() }).unwrap();
    assert!(store.load(settings()).unwrap().intake.is_none());
}

fn running(store: Box<dyn Store>) -> (Engine, std::thread::JoinHandle<()>) {
    let ever = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };
    let rules = Box::new(ByWord::default());
    let Started { engine, thread, .. } =
        start(store, rules, settings(), Box::new(SystemClock), ever).unwrap();
    (engine, std::thread::spawn(move || drop(thread.join().unwrap())))
}

/// The messages on record, in their order.
fn on_record(control: &MemoryControl) -> Vec<String> {
    let events = control.events().into_iter().filter_map(|it| it.event().unwrap());
    let said = events.filter_map(|it| match it.kind {
        EventKind::Published { post, .. } => step(&post).map(str::to_owned),
        _ => None,
    });
    said.collect()
}

fn in_memory() -> (Engine, MemoryControl) {
    let store = MemoryStore::new();
    let control = store.control();
    (running(Box::new(store)).0, control)
}

#[tokio::test]
async fn many_messages_are_one_commit() {
    let (engine, control) = in_memory();
    for n in 0..100 {
        engine.publish(who("feat-aa"), blocked(n)).await.unwrap();
    }
    engine.view(Roster).await.unwrap();
    assert_eq!(on_record(&control), steps(0..100));
    assert!(control.commits().len() < 50, "{}", control.commits().len());
}

#[tokio::test]
async fn a_message_is_on_record_soon_and_before_any_reader_asks() {
    let (engine, control) = in_memory();
    engine.publish(who("feat-aa"), blocked(0)).await.unwrap();
    eventually_so("the first record", async || on_record(&control) == steps(0..1)).await;
    for n in 1..50 {
        engine.publish(who("feat-aa"), blocked(n)).await.unwrap();
        match n % 4 {
            0 => drop(engine.view(Roster).await.unwrap()),
            1 => drop(engine.read(|it| it.events_after(EventSeq(0), 1)).await.unwrap()),
            2 => drop(engine.journal_head().await.unwrap()),
            _ => {
                let what = Record { what: "x".into(), subject: "y".into(), details: Json::null() };
                engine.submit(&crate::support::script::host(), what).await.unwrap();
            }
        }
        assert_eq!(on_record(&control), steps(0..n + 1));
    }
}

#[tokio::test]
async fn what_was_acknowledged_before_a_commit_fails_is_on_record_when_the_store_answers_again() {
    let (engine, control) = in_memory();
    engine.publish(who("feat-aa"), blocked(0)).await.unwrap();
    control.fail_commits(true);
    let (mut acknowledged, mut refused, mut n) = (vec!["step 0".to_owned()], 0, 0);
    eventually_so("the engine's notice", async || {
        n += 1;
        match engine.publish(who("feat-aa"), blocked(n)).await {
            Ok(()) => acknowledged.push(format!("step {n}")),
            Err(Refusal::Unavailable { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        refused == 20
    })
    .await;
    control.fail_commits(false);
    eventually_so("the record", async || on_record(&control).len() >= acknowledged.len()).await;
    assert_eq!(on_record(&control), acknowledged);
    n += 1;
    engine.publish(who("feat-aa"), blocked(n)).await.unwrap();
    engine.view(Roster).await.unwrap();
    assert_eq!(on_record(&control).last().unwrap(), &format!("step {n}"));
}

#[tokio::test]
async fn what_was_acknowledged_is_on_record_once_though_its_commit_is_said_to_have_failed() {
    let (engine, control) = in_memory();
    control.fail_after_commit(1);
    engine.publish(who("feat-aa"), blocked(0)).await.unwrap();
    eventually_so("the commit", async || on_record(&control) == steps(0..1)).await;
    eventually_so("the next message", async || engine.publish(who("feat-aa"), blocked(1)).await.is_ok())
        .await;
    engine.view(Roster).await.unwrap();
    assert_eq!(on_record(&control), steps(0..2));
}

/// A store whose journal lacks what is kept up to a seal, with a batch that has it, and messages behind that.
fn amid_a_commit(dir: &Path, commits: bool) -> Vec<Received> {
    let (mut store, loaded) = loaded(dir);
    let mut storm = Storm::new(9, loaded.state.clone());
    let mut intake = intake_of(loaded);
    let mut wanted = Vec::new();
    for round in 0..3 {
        let (before, meanwhile) = (received(2 * round), received(2 * round + 1));
        assert!(intake.keep(std::slice::from_ref(&before)).unwrap());
        let seal = intake.turn();
        // The commit is under way.
        assert!(intake.keep(std::slice::from_ref(&meanwhile)).unwrap());
        storm.say("host", Record { what: "x".into(), subject: "y".into(), details: Json::null() });
        if round < 2 || commits {
            store.commit_kept(&storm.batch(), &seal).unwrap();
            wanted = vec![meanwhile];
        } else {
            wanted.extend([before, meanwhile]);
        }
    }
    wanted
}

#[test]
fn what_is_kept_while_a_commit_is_under_way_is_there_whether_or_not_it_comes_to_its_end() {
    for commits in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let wanted = amid_a_commit(dir.path(), commits);
        assert_eq!(wanted.len(), if commits { 1 } else { 3 });
        for _ in 0..2 {
            assert_eq!(opened(dir.path()).1, wanted, "{commits}");
        }
        let (engine, thread) = running(open(dir.path(), Options::default()).unwrap());
        engine.stop();
        thread.join().unwrap();
        assert!(opened(dir.path()).1.is_empty());
    }
}

#[test]
fn a_note_of_the_intake_s_end_that_others_have_made_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = amid_a_commit(dir.path(), true);
    let database = || rusqlite::Connection::open(dir.path().join("provost.db")).unwrap();
    let noted = |db: &rusqlite::Connection| -> String {
        db.query_row("SELECT value FROM meta WHERE name = 'intake_end'", [], |row| row.get(0)).unwrap()
    };
    let note = noted(&database());
    // An earlier seal, after which the messages would be carried out a second time.
    let mut other: Value = serde_json::from_str(&note).unwrap();
    other["end"] = json!(provost::base::Digest::of(b"another").to_string());
    for text in [other.to_string(), "{}".to_owned(), String::new()] {
        database().execute("UPDATE meta SET value = ?1 WHERE name = 'intake_end'", [&text]).unwrap();
        assert!(opened(dir.path()).1.is_empty(), "{text}");
    }
    database().execute("UPDATE meta SET value = ?1 WHERE name = 'intake_end'", [&note]).unwrap();
    assert_eq!(opened(dir.path()).1, wanted);
}

/// Publishes so many messages, one after another.
async fn publish_all(engine: &Engine, numbers: std::ops::Range<u64>) {
    for n in numbers {
        engine.publish(who("feat-aa"), blocked(n)).await.unwrap();
    }
}

/// Publishes until a commit of many is under way beside the engine and held up there. Answers how many
/// messages there are.
async fn until_held(engine: &Engine, control: &MemoryControl) -> u64 {
    control.hold_commits_beside(true);
    let mut n = 0;
    eventually_so("a commit beside the engine", async || {
        publish_all(engine, n..n + 16).await;
        n += 16;
        control.is_held_up()
    })
    .await;
    n
}

#[tokio::test]
async fn messages_are_acknowledged_while_earlier_ones_are_committed() {
    let (engine, control) = in_memory();
    let n = until_held(&engine, &control).await;
    let before = on_record(&control);
    publish_all(&engine, n..n + 100).await;
    assert_eq!(on_record(&control).len(), before.len(), "the commit is under way");
    let mut asked = std::pin::pin!(engine.view(Roster));
    let early = tokio::time::timeout(Duration::from_millis(50), asked.as_mut()).await;
    early.expect_err("a reader waits for what was acknowledged before it asked");
    control.hold_commits_beside(false);
    asked.await.unwrap();
    assert_eq!(on_record(&control), steps(0..n + 100));
}

#[tokio::test]
async fn what_was_acknowledged_before_and_during_a_commit_that_fails_is_on_record_once() {
    for is_there in [false, true] {
        let (engine, control) = in_memory();
        let n = until_held(&engine, &control).await;
        publish_all(&engine, n..n + 50).await;
        match is_there {
            true => control.fail_after_commit(1),
            false => control.fail_commits(true),
        }
        control.hold_commits_beside(false);
        eventually_so("the failure", async || engine.trouble().is_some()).await;
        control.fail_commits(false);
        eventually_so("the store", async || engine.publish(who("feat-aa"), blocked(n + 50)).await.is_ok())
            .await;
        engine.view(Roster).await.unwrap();
        assert_eq!(on_record(&control), steps(0..n + 51), "{is_there}");
    }
}

#[tokio::test]
async fn a_stop_waits_for_a_commit_beside_the_engine() {
    let store = MemoryStore::new();
    let control = store.control();
    let (engine, thread) = running(Box::new(store));
    let n = until_held(&engine, &control).await;
    publish_all(&engine, n..n + 10).await;
    engine.stop();
    control.hold_commits_beside(false);
    thread.join().unwrap();
    assert_eq!(on_record(&control), steps(0..n + 10));
}

#[tokio::test]
async fn a_message_that_cannot_be_kept_is_committed_before_it_is_acknowledged() {
    let (engine, control) = in_memory();
    control.fail_receiving(true);
    for n in 0..10 {
        engine.publish(who("feat-aa"), blocked(n)).await.unwrap();
        assert_eq!(on_record(&control), steps(0..n + 1));
    }
    control.fail_commits(true);
    engine.publish(who("feat-aa"), blocked(10)).await.unwrap_err();
}

/// Several publishers at once, so that the engine takes more than one message in a step.
async fn crowd(engine: &Engine) {
    let publishers = (0..16).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.publish(who("feat-aa"), blocked(n)).await.unwrap() })
    });
    for publisher in publishers.collect::<Vec<_>>() {
        publisher.await.unwrap();
    }
}

#[tokio::test]
async fn a_publisher_is_told_when_the_engine_ends() {
    let (engine, thread) = running(Box::new(MemoryStore::new()));
    let publishers = (0..64).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move { while engine.publish(who("feat-aa"), blocked(n)).await.is_ok() {} })
    });
    let publishers: Vec<_> = publishers.collect();
    crowd(&engine).await;
    engine.stop();
    for publisher in publishers {
        tokio::time::timeout(Duration::from_secs(20), publisher).await.expect("an answer").unwrap();
    }
    thread.join().unwrap();
    engine.publish(who("feat-aa"), blocked(0)).await.unwrap_err();
}

/// The texts that an agent's inbox has.
fn texts(broker: Http, agent: &str) -> Vec<String> {
    let of = |it: &Value| it["message"]["payload"]["errors"][0].as_str().unwrap().to_owned();
    poll(broker, agent, 0).0.iter().map(of).collect()
}

#[test]
fn a_kill_takes_back_nothing_that_was_acknowledged_and_doubles_nothing() {
    let world = World::new();
    let mut wanted = Vec::new();
    let mut recovered = 0;
    for round in 0..12 {
        let mut daemon = world.start();
        let broker = Http::broker(&world);
        publish(broker, &status("feat-aa", "working", &[]));
        let mut kept = Kept::to(broker);
        for n in 0..=round * 7 {
            let text = format!("{round} {n}");
            assert_eq!(kept.publish(&feedback("feat-aa", &text)).unwrap().status, 202);
            wanted.push(text);
        }
        daemon.kill();
        let daemon = world.start();
        let broker = Http::broker(&world);
        assert_eq!(texts(broker, "feat-aa"), wanted, "round {round}");
        let (_, last) = poll(broker, "feat-aa", 0);
        publish(broker, &feedback("feat-aa", "after"));
        assert_eq!(poll(broker, "feat-aa", last).0.len(), 1, "numbers go on");
        wanted.push("after".into());
        daemon.stop();
        assert!(world.ask("", &["journal", "verify"]).0 == 0);
        recovered = world.log().matches("acknowledged just before").count();
    }
    assert!(recovered > 0, "no kill has come before a commit:\n{}", world.log());
}

/// Publishes until the connection breaks; returns the acknowledged texts, and the text that got no answer.
fn until_killed(broker: Http, name: &str, count: &AtomicUsize) -> (Vec<String>, String) {
    let (mut kept, mut acknowledged) = (Kept::to(broker), Vec::new());
    loop {
        let text = format!("{name} {}", acknowledged.len());
        match kept.publish(&feedback("feat-aa", &text)) {
            Ok(answer) if answer.status == 202 => acknowledged.push(text),
            _ => return (acknowledged, text),
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_kill_in_a_storm_takes_back_nothing_and_doubles_nothing() {
    let world = World::new();
    let mut wanted = BTreeMap::new();
    for round in 0..4 {
        let mut daemon = world.start();
        let broker = Http::broker(&world);
        publish(broker, &status("feat-aa", "working", &[]));
        let count = AtomicUsize::new(0);
        let said = std::thread::scope(|scope| {
            let senders = (0..8).map(|n| {
                let count = &count;
                scope.spawn(move || until_killed(broker, &format!("{round} {n}"), count))
            });
            let senders: Vec<_> = senders.collect();
            eventually("a storm", || count.load(Ordering::Relaxed) > 500 * (round + 1));
            daemon.kill();
            senders.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        for (acknowledged, last) in said {
            wanted.extend(acknowledged.into_iter().map(|it| (it, true)));
            // It may have been kept, with nobody left to say so.
            wanted.insert(last, false);
        }
        let daemon = world.start();
        let there = texts(Http::broker(&world), "feat-aa");
        let once: BTreeSet<&String> = there.iter().collect();
        assert_eq!(once.len(), there.len(), "nothing is doubled in round {round}");
        assert!(there.iter().all(|it| wanted.contains_key(it)), "round {round}");
        let lost: Vec<_> = wanted.iter().filter(|(it, must)| **must && !once.contains(it)).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        daemon.stop();
        assert!(world.ask("", &["journal", "verify"]).0 == 0);
    }
}

#[test]
fn a_poll_sees_what_was_acknowledged_before_it_and_a_waiting_one_is_told() {
    let world = World::new();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    let mut kept = Kept::to(broker);
    let mut since = 0;
    for n in 0..100 {
        assert_eq!(kept.publish(&feedback("feat-aa", &n.to_string())).unwrap().status, 202);
        let (found, last) = poll(broker, "feat-aa", since);
        assert_eq!(found.len(), 1, "{n}");
        since = last;
    }
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(move || broker.get(&format!("/messages/feat-aa?since={since}&wait=30")).json());
        // tidy: sleeps because nobody sees from outside whether a poll waits already
        std::thread::sleep(Duration::from_millis(100));
        publish(broker, &feedback("feat-aa", "at last"));
        assert_eq!(waiting.join().unwrap()["messages"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn of_what_changes_with_each_message_a_commit_leaves_the_last() {
    let world = World::new();
    let daemon = world.start();
    let mut kept = Kept::to(Http::broker(&world));
    for n in 0..300 {
        let word = status("feat-aa", &format!("word {n}"), &[&format!("src/{n}.rs")]);
        assert_eq!(kept.publish(&word).unwrap().status, 202);
        assert_eq!(kept.publish(&feedback("feat-bb", &n.to_string())).unwrap().status, 202);
    }
    daemon.stop();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    assert_eq!(broker.get("/status").json()["agents"][0]["status"], "word 299");
    // Only the newest wait for an agent that is not there.
    publish(broker, &status("feat-bb", "working", &["src/299.rs"]));
    let waited: Vec<String> = (200..300).map(|n| n.to_string()).collect();
    let inbox = texts(broker, "feat-bb");
    assert_eq!(inbox[..waited.len()], waited);
    assert!(inbox[waited.len()..].iter().all(|it| it.contains("src/299.rs")), "{inbox:?}");
    assert!(texts(broker, "feat-aa").iter().any(|it| it.contains("src/299.rs")));
}

#[test]
fn without_its_file_a_message_is_committed_first() {
    let world = World::new();
    let mut daemon = world.start();
    let broker = Http::broker(&world);
    publish(broker, &status("feat-aa", "working", &[]));
    fs::remove_file(world.state_dir().join("intake.log")).unwrap();
    for n in 0..20 {
        publish(broker, &feedback("feat-aa", &n.to_string()));
    }
    daemon.kill();
    let _daemon = world.start();
    let broker = Http::broker(&world);
    eventually("all are there", || texts(broker, "feat-aa").len() == 20);
    let row = broker.get("/status").json()["agents"][0].clone();
    assert_eq!((&row["agent_id"], &row["status"]), (&json!("feat-aa"), &json!("working")));
}
