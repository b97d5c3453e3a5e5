//! The event log as a journal: what is done to it shows, and where.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use provost::base::limits::{CHECKPOINT_EVENTS_MAX, CHECKPOINT_EVERY};
use provost::base::{Digest, EventSeq, Json};
use provost::domain::command::{AnswerApproval, Record};
use provost::domain::{HOST_DOWN, State, Verdict as Word};
use provost::store::journal::{syslog_sink, syslog_sink_at};
use provost::store::{
    Anchor, AnchorSink, Options, Retention, Store, StoreError, Verdict, export, open, open_reader,
};
use provost_test_equipment::MemoryStore;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::storm::{Storm, agent, order, rage, settings};

const EVENTS: u64 = 200;

/// A state folder with a journal of [`EVENTS`] events, at rest in a single file.
fn journal() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let mut storm = Storm::new(11, store.load(settings()).expect("a start").state);
    rage(&mut *store, &mut storm, 60);
    let missing = EVENTS - store.journal_head().seq.0;
    record(&mut *store, &mut storm, missing);
    store.close().expect("a stop");
    drop(store);
    let db = database(dir.path());
    db.pragma_update(None, "journal_mode", "DELETE").expect("one file");
    dir
}

fn record(store: &mut dyn Store, storm: &mut Storm, count: u64) {
    for n in 0..count {
        let details = Json::parse(&format!(r#"{{"n":{n}}}"#)).expect("JSON");
        storm.say("host", Record { what: "note".into(), subject: "test".into(), details });
    }
    store.commit(&storm.batch()).expect("the commit");
}

fn database(dir: &Path) -> Connection {
    let db = Connection::open(dir.join("provost.db")).expect("SQLite");
    db.pragma_update(None, "synchronous", "OFF").expect("it need not last");
    db
}

fn copy(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["provost.db", "journal.key"] {
        fs::copy(dir.join(name), copy.path().join(name)).expect("a copy");
    }
    copy
}

fn verify(dir: &Path, anchor: Option<Anchor>) -> Verdict {
    open_reader(dir).expect("a reader").verify(anchor).expect("a verdict")
}

/// Does something to a copy of the journal, and has it checked.
fn verdict_after(dir: &Path, sql: &str) -> Verdict {
    let copy = copy(dir);
    database(copy.path()).execute_batch(sql).expect(sql);
    verify(copy.path(), None)
}

/// Starts a daemon's store on a copy of the journal to which something was done.
fn start_after(dir: &Path, sql: &str) -> Result<(), StoreError> {
    let copy = copy(dir);
    database(copy.path()).execute_batch(sql).expect(sql);
    open(copy.path(), Options::default())?.load(settings()).map(drop)
}

fn head(dir: &Path) -> Anchor {
    match verify(dir, None) {
        Verdict::Ok { events, head, .. } => {
            assert_eq!(events, head.seq.0);
            head
        }
        other => panic!("{other:?}"),
    }
}

/// Copies all columns of one event to another place.
fn put(from: u64, to: u64) -> String {
    format!(
        "INSERT INTO event SELECT {to}, at, kind, actor, task, body, hash, mac FROM spare WHERE seq = {from};"
    )
}

#[test]
fn whatever_is_done_to_any_event_is_found_and_named() {
    let dir = journal();
    assert_eq!(head(dir.path()).seq.0, EVENTS);
    let db = database(dir.path());
    db.execute_batch("CREATE TABLE spare AS SELECT * FROM event").expect("a copy");
    let mut reader = open_reader(dir.path()).expect("a reader");
    let last = EVENTS;
    for n in 1..=EVENTS {
        let set = |what: &str| format!("UPDATE event SET {what} WHERE seq = {n}");
        let gone = format!("DELETE FROM event WHERE seq = {n};");
        let up =
            "UPDATE event SET seq = -seq - 1 WHERE seq > {n}; UPDATE event SET seq = -seq WHERE seq < 0;";
        let down =
            "UPDATE event SET seq = -seq + 1 WHERE seq > {n}; UPDATE event SET seq = -seq WHERE seq < 0;";
        let (up, down) = (up.replace("{n}", &n.to_string()), down.replace("{n}", &n.to_string()));
        let next = n % last + 1;
        let swap = format!("DELETE FROM event WHERE seq IN ({n}, {next}); {} {}", put(n, next), put(next, n));
        let cases = [
            ("the body edited", set("body = replace(body, '\"seq\"', '\"SEQ\"')"), n),
            ("the body edited, and its digest", set("body = 'x', hash = zeroblob(32)"), n),
            ("the digest edited", set("hash = randomblob(32)"), n),
            ("the link edited", set("mac = randomblob(32)"), n),
            ("the link of wrong length", set("mac = x'00'"), n),
            ("the time edited", set("at = at + 1"), n),
            ("the kind edited", set("kind = 'denied' || kind"), n),
            ("the actor edited", set("actor = 'mallory'"), n),
            ("the actor gone", set("actor = ''"), n),
            ("the task edited", set("task = 'mallory'"), n),
            ("the body gone", set("body = NULL"), n),
            ("one inserted", format!("{up} {}", put(n, n + 1)), n + 1),
            ("two swapped", swap, n.min(next)),
            ("replaced by another", format!("{gone} {}", put(next, n)), n),
            ("deleted", gone.clone(), n),
            ("deleted, and the rest moved up", format!("{gone} {down}"), n),
        ];
        for (what, sql, first) in cases {
            db.execute_batch(&sql).expect(&sql);
            let found = reader.verify(None).expect("a verdict");
            db.execute_batch("DELETE FROM event; INSERT INTO event SELECT * FROM spare").expect("undone");
            let expected = match found {
                // The checkpoint at the end proves that there was one more.
                Verdict::Truncated { anchor, head } => {
                    (anchor.seq.0, head.seq.0) == (last, last - 1) && (n == last || what.ends_with("up"))
                }
                Verdict::Tampered { first_bad_seq, .. } => first_bad_seq.0 == first,
                _ => false,
            };
            assert!(expected, "event {n}, {what}: {found:?}");
        }
    }
    assert_eq!(head(dir.path()).seq.0, EVENTS, "and when all is undone, nothing is");
}

#[test]
fn events_from_nowhere_are_found() {
    let dir = journal();
    database(dir.path()).execute_batch("CREATE TABLE spare AS SELECT * FROM event").expect("a copy");
    for (seq, first) in
        [(0, 0), (-7, 1), (i64::MIN, 1), (EVENTS as i64 + 1, EVENTS + 1), (i64::MAX, EVENTS + 1)]
    {
        let sql = put(5, 5).replace("SELECT 5,", &format!("SELECT {seq},"));
        match verdict_after(dir.path(), &sql) {
            Verdict::Tampered { first_bad_seq, .. } => assert_eq!(first_bad_seq.0, first, "{seq}"),
            other => panic!("{seq}: {other:?}"),
        }
    }
}

/// Takes the newest events away so that nothing inside the file shows it.
fn cut(keep: u64) -> String {
    format!(
        "DELETE FROM event WHERE seq > {keep}; DELETE FROM checkpoint WHERE seq > {keep};
         UPDATE counter SET value = {keep} WHERE name = 'event'"
    )
}

#[test]
fn a_cut_end_is_found_back_to_the_last_anchor_and_no_further() {
    let dir = journal();
    let anchor = head(dir.path());
    for keep in [0, 1, EVENTS / 2, EVENTS - 1] {
        let copy = copy(dir.path());
        database(copy.path()).execute_batch(&cut(keep)).expect("cut");
        let shorter = head(copy.path());
        assert_eq!(shorter.seq.0, keep, "an honest limit: without an anchor nothing shows");
        assert_eq!(verify(copy.path(), Some(anchor)), Verdict::Truncated { anchor, head: shorter });
    }
    assert_eq!(
        verify(dir.path(), Some(anchor)),
        Verdict::Ok { events: EVENTS, head: anchor, leaps: Vec::new() }
    );
    let careless = "DELETE FROM event WHERE seq > 150; DELETE FROM checkpoint";
    let found = verdict_after(dir.path(), careless);
    assert!(matches!(found, Verdict::Tampered { first_bad_seq: EventSeq(151), .. }), "{found:?}");
}

#[test]
fn a_history_that_was_written_anew_does_not_fit_an_anchor() {
    let dir = journal();
    let seq = EventSeq(EVENTS / 2);
    let other = Anchor { seq, mac: Digest::of(b"what was anchored then") };
    match verify(dir.path(), Some(other)) {
        Verdict::Tampered { first_bad_seq, what } => {
            assert_eq!(first_bad_seq, seq);
            assert!(what.contains("anchor"), "{what}");
        }
        found => panic!("{found:?}"),
    }
}

#[test]
fn an_anchor_reads_as_it_is_written() {
    let anchor = Anchor { seq: EventSeq(17), mac: Digest::of(b"x") };
    let text = anchor.to_string();
    assert_eq!(text, format!("provost-anchor:1:17:{}", Digest::of(b"x")));
    assert_eq!(text.parse(), Ok(anchor));
    let wrong =
        ["", "provost-anchor:1:17", "provost-anchor:2:17:00", "17", &text[1..], &text[..text.len() - 1]];
    for wrong in
        wrong.map(str::to_owned).into_iter().chain([text.replace(":17:", ":-1:"), format!("{text}0")])
    {
        assert!(wrong.parse::<Anchor>().is_err(), "{wrong}");
    }
}

#[test]
fn another_key_is_refused_and_told_apart_from_tampering() {
    let dir = journal();
    let other = journal();
    let key = dir.path().join("journal.key");
    fs::copy(other.path().join("journal.key"), &key).expect("another key");
    assert!(matches!(open(dir.path(), Options::default()), Err(StoreError::Key(_))));
    assert!(matches!(verify(dir.path(), None), Verdict::CannotCheck(_)));

    // Whoever also changes the note of which key it was gains nothing.
    let sql = "UPDATE meta SET value = (SELECT value FROM there.meta WHERE name = 'journal_key') WHERE name = 'journal_key'";
    let db = database(dir.path());
    db.execute("ATTACH ?1 AS there", [other.path().join("provost.db").to_str().expect("UTF-8")])
        .expect("attached");
    db.execute(sql, []).expect("changed");
    drop(db);
    assert!(matches!(verify(dir.path(), None), Verdict::Tampered { first_bad_seq: EventSeq(1), .. }));
    let err = open(dir.path(), Options::default())
        .expect("it opens")
        .load(settings())
        .expect_err("it does not load");
    assert!(matches!(err, StoreError::Tampered { .. }), "{err}");
}

#[test]
fn a_missing_key_is_only_made_where_there_is_no_journal() {
    let dir = journal();
    let key = dir.path().join("journal.key");
    fs::remove_file(&key).expect("removed");
    match open(dir.path(), Options::default()).map(drop) {
        Err(err @ StoreError::Key(_)) => assert!(err.to_string().contains("backup"), "{err}"),
        other => panic!("{other:?}"),
    }
    assert!(!key.exists());
    assert!(matches!(verify(dir.path(), None), Verdict::CannotCheck(_)));
    // Not even when the note of the key is gone too.
    database(dir.path()).execute_batch("DELETE FROM meta").expect("changed");
    assert!(matches!(open(dir.path(), Options::default()), Err(StoreError::Key(_))));

    fs::write(&key, "short").expect("half a key");
    fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("chmod");
    assert!(matches!(open(dir.path(), Options::default()), Err(StoreError::Key(_))));
}

#[test]
fn a_start_finds_a_changed_checkpoint_and_a_changed_tail() {
    let dir = journal();
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let mut storm = Storm::new(12, store.load(settings()).expect("a start").state);
    // Dropped without a stop, so that there is a tail after the last checkpoint.
    record(&mut *store, &mut storm, 20);
    drop(store);
    database(dir.path()).pragma_update(None, "journal_mode", "DELETE").expect("one file");
    start_after(dir.path(), "SELECT 1").expect("nothing was changed");

    for what in [
        "mac = randomblob(32)",
        "pruned_to = 150",
        "counters = '{}'",
        "seal = randomblob(32)",
        "seq = seq - 1",
    ] {
        let sql = format!("UPDATE checkpoint SET {what} WHERE seq = (SELECT max(seq) FROM checkpoint)");
        let found = start_after(dir.path(), &sql);
        assert!(matches!(found, Err(StoreError::Tampered { .. })), "{what}: {found:?}");
        let found = verdict_after(dir.path(), &sql);
        assert!(matches!(found, Verdict::Tampered { .. }), "{what}: {found:?}");
    }
    let tail = EVENTS + 7;
    for (sql, first) in [
        (format!("UPDATE event SET body = replace(body, 'note', 'nope') WHERE seq = {tail}"), tail),
        (format!("UPDATE event SET mac = randomblob(32) WHERE seq = {EVENTS}"), EVENTS),
        (format!("DELETE FROM event WHERE seq = {tail}"), tail),
        (format!("DELETE FROM event WHERE seq = {EVENTS}"), EVENTS),
        (format!("DELETE FROM event WHERE seq > {}", EVENTS + 18), EVENTS + 19),
        (format!("UPDATE event SET body = NULL WHERE seq = {tail}"), tail),
    ] {
        match start_after(dir.path(), &sql) {
            Err(StoreError::Tampered { seq, .. }) => assert_eq!(seq.0, first, "{sql}"),
            Err(StoreError::EndMissing { head }) => assert_eq!(head.next().0, first, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let back = start_after(dir.path(), "UPDATE counter SET value = 0 WHERE name = 'effect'");
    assert!(matches!(back, Err(StoreError::Damaged(_))), "numbers that were set back: {back:?}");
    // A checkpoint that was taken away only makes the walk longer.
    start_after(dir.path(), "DELETE FROM checkpoint").expect("the whole chain is right");
    let sql = "DELETE FROM checkpoint; UPDATE event SET at = 0 WHERE seq = 3";
    assert!(matches!(start_after(dir.path(), sql), Err(StoreError::Tampered { seq: EventSeq(3), .. })));
}

#[test]
fn bodies_may_be_missing_where_they_were_pruned_and_nowhere_else() {
    let dir = journal();
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let mut storm = Storm::new(13, store.load(settings()).expect("a start").state);
    storm.now.0 += 1_000_000_000;
    record(&mut *store, &mut storm, 30);
    let keep =
        Retention { tasks: Duration::from_secs(9), tasks_most: u32::MAX, events: Duration::from_secs(9) };
    let pruned = store.prune(storm.now, &keep, 10_000).expect("a bite");
    assert_eq!((u64::from(pruned.events), pruned.more), (EVENTS, false));
    record(&mut *store, &mut storm, 10);
    store.close().expect("a stop");
    drop(store);
    database(dir.path()).pragma_update(None, "journal_mode", "DELETE").expect("one file");
    assert_eq!(head(dir.path()).seq.0, EVENTS + 40);
    for (sql, first) in [
        (format!("UPDATE event SET body = NULL WHERE seq = {}", EVENTS + 1), EVENTS + 1),
        ("UPDATE event SET at = at - 1 WHERE seq = 7".to_owned(), 7),
        ("UPDATE event SET body = 'made up' WHERE seq = 9".to_owned(), 9),
    ] {
        match verdict_after(dir.path(), &sql) {
            Verdict::Tampered { first_bad_seq, .. } => assert_eq!(first_bad_seq.0, first, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn the_text_of_an_event_that_says_who_is_no_member_is_never_pruned() {
    let dir = journal();
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let mut storm = Storm::new(17, store.load(settings()).expect("a start").state);
    let details = Json::parse(r#"{"removed":true}"#).expect("JSON");
    storm.say("host", Record { what: HOST_DOWN.into(), subject: "2a/1".into(), details });
    store.commit(&storm.batch()).expect("the commit");
    let removal = store.journal_head().seq.0;
    storm.now.0 += 1_000_000_000;
    record(&mut *store, &mut storm, 30);
    let keep =
        Retention { tasks: Duration::from_secs(9), tasks_most: u32::MAX, events: Duration::from_secs(9) };
    assert!(u64::from(store.prune(storm.now, &keep, 10_000).expect("a bite").events) >= removal);
    store.close().expect("a stop");
    drop(store);
    let db = database(dir.path());
    db.pragma_update(None, "journal_mode", "DELETE").expect("one file");
    let kept = "SELECT group_concat(seq) FROM event WHERE seq <= ?1 AND body IS NOT NULL";
    let kept: String = db.query_row(kept, [removal.cast_signed()], |row| row.get(0)).expect("texts");
    assert_eq!(kept, removal.to_string());
    drop(db);
    let blanked = verdict_after(dir.path(), "UPDATE event SET body = NULL WHERE kind = 'host_removed'");
    let Verdict::Tampered { first_bad_seq, what } = blanked else { panic!("{blanked:?}") };
    assert!(first_bad_seq.0 == removal && what.contains("always kept"), "{first_bad_seq}: {what}");
}

#[test]
fn the_chain_goes_on_over_restarts() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut last = Anchor::default();
    for restart in 0..6 {
        let mut store = open(dir.path(), Options::default()).expect("the store opens");
        let mut storm = Storm::new(14 + restart, store.load(settings()).expect("a start").state);
        assert_eq!(store.journal_head(), last);
        record(&mut *store, &mut storm, 10);
        last = store.journal_head();
        if restart % 2 == 0 {
            store.close().expect("a stop");
        }
    }
    assert_eq!(head(dir.path()), last);
    assert_eq!(last.seq.0, 60);
}

/// Hands on what is published.
struct Tell(Sender<Anchor>);

impl AnchorSink for Tell {
    fn publish(&mut self, anchor: &Anchor) {
        self.0.send(*anchor).expect("the test listens");
    }
}

fn with_sink(dir: &Path) -> (Box<dyn Store>, Storm, Receiver<Anchor>) {
    let (tell, told) = channel();
    let options = Options { anchors: vec![Box::new(Tell(tell))], ..Options::default() };
    let mut store = open(dir, options).expect("the store opens");
    let state = store.load(settings()).expect("a start").state;
    (store, Storm::new(15, state), told)
}

#[test]
fn anchors_are_written_down_at_start_and_stop_at_checkpoints_and_answers() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm, told) = with_sink(dir.path());
    let all = || told.try_iter().collect::<Vec<_>>();
    assert_eq!(all(), [Anchor::default()], "start");

    record(&mut *store, &mut storm, 10);
    assert_eq!(all(), [], "nothing out of the ordinary");
    storm.say("ada", order(1, "ask first", "zoë", Json::null())).expect("it is parked");
    store.commit(&storm.batch()).expect("the commit");
    assert_eq!(all(), []);
    let parked = storm.core.state().approvals.iter().next().expect("it waits").clone();
    let answer =
        AnswerApproval { approval: parked.id, verdict: Word::Granted, note: None, shown: None, signed: None };
    storm.say("person", answer).expect("an answer");
    store.commit(&storm.batch()).expect("the commit");
    assert_eq!(all(), [store.journal_head()], "an answer");

    record(&mut *store, &mut storm, CHECKPOINT_EVERY);
    assert_eq!(all(), [store.journal_head()], "a checkpoint");
    record(&mut *store, &mut storm, 5);
    store.close().expect("a stop");
    let last = all();
    assert_eq!(last, [store.journal_head()], "stop");
    assert!(matches!(verify(dir.path(), Some(last[0])), Verdict::Ok { .. }));
}

#[test]
fn in_a_storm_checkpoints_pause_and_no_start_has_more_to_verify_than_the_bound() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut store, mut storm, told) = with_sink(dir.path());
    let begun = Instant::now();
    let mut last = store.journal_head().seq;
    let (mut sealed, mut passed) = (0, 0);
    drop(told.try_iter().collect::<Vec<_>>());
    while passed < 2 * CHECKPOINT_EVENTS_MAX {
        record(&mut *store, &mut storm, 100);
        passed += 100;
        for anchor in told.try_iter() {
            (last, sealed) = (anchor.seq, sealed + 1);
        }
        let open = store.journal_head().seq.0 - last.0;
        assert!(open <= CHECKPOINT_EVENTS_MAX, "{open}");
    }
    // The first one, one for each bound that was reached, and one a second.
    let seconds = begun.elapsed().as_secs();
    assert!((2..=4 + seconds).contains(&sealed), "{sealed} in {seconds} s");
}

#[test]
fn the_system_log_gets_anchors_and_never_holds_anybody_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("log");
    let anchor = Anchor { seq: EventSeq(3), mac: Digest::of(b"y") };
    let mut sink = syslog_sink_at(&path);
    sink.publish(&anchor);

    let log = UnixDatagram::bind(&path).expect("a system log");
    log.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    let line = |log: &UnixDatagram| {
        let mut bytes = [0; 512];
        let len = log.recv(&mut bytes).expect("a line");
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    sink.publish(&anchor);
    assert_eq!(line(&log), format!("<86>provost[{}]: {anchor}", std::process::id()));

    drop(log);
    fs::remove_file(&path).expect("the log is restarted");
    let log = UnixDatagram::bind(&path).expect("a system log");
    log.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    sink.publish(&anchor);
    assert!(line(&log).ends_with(&anchor.to_string()));

    // Nobody reads. If this waited, the test would not end.
    (0..50_000).for_each(|_| sink.publish(&anchor));
    syslog_sink().publish(&anchor);
}

#[test]
fn an_export_has_every_event_to_the_letter() {
    let dir = journal();
    let mut store = open(dir.path(), Options::default()).expect("the store opens");
    let mut storm = Storm::new(16, store.load(settings()).expect("a start").state);
    storm.now.0 += 1_000_000_000;
    record(&mut *store, &mut storm, 700);
    let keep =
        Retention { tasks: Duration::from_secs(9), tasks_most: u32::MAX, events: Duration::from_secs(9) };
    store.prune(storm.now, &keep, 10_000).expect("a bite");

    let (mut reader, mut out) = (store.opens_reader().and_then(|open| open()).expect("a reader"), Vec::new());
    let count = export(&mut *reader, &mut out).expect("an export");
    let text = String::from_utf8(out).expect("UTF-8");
    assert_eq!((count, text.lines().count() as u64), (EVENTS + 700, EVENTS + 700));
    for (n, line) in (1..).zip(text.lines()) {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["actor", "at", "body", "hash", "kind", "mac", "seq", "task"]);
        assert_eq!(value["seq"], n);
        assert_eq!(value["body"].is_null(), n <= EVENTS);
        if let Some((_, rest)) = line.split_once(r#","body":{"#) {
            let body = format!("{{{}", rest.split_once(r#","hash":""#).expect("a digest").0);
            assert_eq!(value["hash"], Digest::of(body.as_bytes()).to_string());
        }
    }
}

#[test]
fn the_journal_in_memory_is_a_chain_too() {
    let store = MemoryStore::new();
    let control = store.control();
    let mut store: Box<dyn Store> = Box::new(store);
    store.load(settings()).expect("a start");
    let mut storm = Storm::new(17, State::new(settings()));
    record(&mut *store, &mut storm, CHECKPOINT_EVERY + 5);
    let events = control.events();
    assert_eq!(events.len() as u64, CHECKPOINT_EVERY + 5);
    assert!(
        events.iter().all(|it| it.body.as_ref().is_some_and(|body| Digest::of(body.as_bytes()) == it.hash))
    );
    assert!(events.iter().all(|it| it.actor == agent("host")));
    let (anchor, mut reader) =
        (store.journal_head(), store.opens_reader().and_then(|open| open()).expect("a reader"));
    let verdict = reader.verify(Some(anchor)).expect("a verdict");
    assert_eq!(verdict, Verdict::Ok { events: CHECKPOINT_EVERY + 5, head: anchor, leaps: Vec::new() });
    let ahead = Anchor { seq: anchor.seq.next(), ..anchor };
    assert!(matches!(reader.verify(Some(ahead)).expect("a verdict"), Verdict::Truncated { .. }));
}

#[test]
fn every_kind_of_event_can_be_asked_for_by_its_name() {
    let sources = [
        ("EventKind", include_str!("../../../src/domain/event.rs")),
        ("CrewEvent", include_str!("../../../src/domain/crew/event.rs")),
        ("JobEvent", include_str!("../../../src/domain/job.rs")),
        ("ApplyEvent", include_str!("../../../src/domain/apply.rs")),
        ("MergeEvent", include_str!("../../../src/domain/merge.rs")),
        ("PermissionEvent", include_str!("../../../src/domain/permission.rs")),
        ("TalkEvent", include_str!("../../../src/domain/talk.rs")),
        ("QueueEvent", include_str!("../../../src/domain/queue.rs")),
    ];
    let arms = |(of, source): (&str, &'static str)| -> Vec<&'static str> {
        let begins = format!("{of}::");
        let lines = source.lines().filter(|it| it.trim().starts_with(&begins));
        let named = lines.filter_map(|it| it.split_once("=> \"")?.1.split('"').next());
        named.collect()
    };
    let mut arms: Vec<&str> = sources.into_iter().flat_map(arms).collect();
    let mut kinds: Vec<&str> = provost::domain::event_kinds().collect();
    arms.sort_unstable();
    kinds.sort_unstable();
    assert!(arms.len() > 60, "{arms:?}");
    assert_eq!(arms, kinds);
}
