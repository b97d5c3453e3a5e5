//! Rows that a login of a shared database writes: too large to be read, or unreadable. Against real servers.

use std::fs;
use std::time::Duration;

use provost::base::Json;
use provost::base::limits::POSTGRES_TURN_BYTES_MAX;
use provost::domain::command::Record;
use provost::store::{Behind, Head, Indexed, join};

use super::store_postgres::{folder, sealed, sentence, started};
use super::texts_of_hosts::Two;
use crate::support::postgres::name_of;
use crate::support::storm::settings;
use crate::support::waits::within;

/// The size of a forged value, in MB; the memory that reading it may cost at the most, in KB.
const VALUE_MB: u64 = 100;
const COST_KB_MAX: u64 = 64 << 10;

/// How much more memory this process had at once while it did that, in KB.
fn cost<T>(what: impl FnOnce() -> T) -> (T, u64) {
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").expect("the process's state");
        let line = status.lines().find(|it| it.starts_with("VmHWM:")).expect("its peak");
        line.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok()).expect("a number")
    };
    // Sets the peak to what there is now.
    fs::write("/proc/self/clear_refs", "5").expect("the peak is set back");
    let before = peak();
    let done = what();
    (done, peak() - before)
}

#[test]
fn a_digest_or_signature_as_large_as_the_database_takes_costs_a_host_nothing_and_is_named() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    two.writes();
    let value = format!("repeat('x', {}000000)::bytea", VALUE_MB);
    // The statement that forges, what is forged, the statement that takes it back, and whether a turn or a load meets it.
    let last = two.sql("select max(n) from provost.entry");
    let attacks = [
        (
            format!("update provost.entry set mac = {value} where n = {last}"),
            format!("the row {last} of the table `provost.entry`"),
            true,
        ),
        (
            format!("update provost.entry set sig = {value} where n = {last}"),
            "has not signed it".to_owned(),
            true,
        ),
        (
            format!(
                "update provost.event set mac = {value} where seq = (select max(seq) from provost.event)"
            ),
            "of the table `provost.event`".to_owned(),
            true,
        ),
        (
            format!(
                "update provost.event set hash = {value} where seq = (select max(seq) from provost.event)"
            ),
            "of the table `provost.event`".to_owned(),
            true,
        ),
        (
            format!("update provost.signature set sig = {value} where n = {last}"),
            "has not signed it".to_owned(),
            false,
        ),
        (
            format!("update provost.signature set mac = {value} where n = {last}"),
            "of the table `provost.signature`".to_owned(),
            false,
        ),
    ];
    for table in ["entry", "event", "signature"] {
        two.sql(&format!("create table public.{table} as select * from provost.{table}"));
    }
    for (forge, named, in_turn) in attacks {
        two.sql(&forge);
        let (says, cost) = cost(|| match in_turn {
            true => two.refused(),
            false => sentence(two.second.load(settings())),
        });
        assert!(says.contains(&named), "{forge}: {says}");
        assert!(cost < COST_KB_MAX, "{forge}: {cost} KB");
        two.sql(
            "update provost.entry e set mac = o.mac, sig = o.sig from public.entry o where o.n = e.n;
             update provost.event e set mac = o.mac, hash = o.hash from public.event o where o.seq = e.seq;
             update provost.signature e set mac = o.mac, sig = o.sig from public.signature o where o.event = e.event",
        );
    }
    two.reads();
}

#[test]
fn a_large_row_behind_the_end_of_the_journal_costs_a_turn_nothing() {
    let mut two = Two::start();
    two.writes();
    two.sql(&format!(
        "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
         select id, event + 1, 0, 'recorded', 'x', repeat('x', {VALUE_MB}000000), '', '' from provost.repo"
    ));
    let (_, cost) = cost(|| {
        two.reads();
        two.second.catch_up(two.head).expect("an answer");
    });
    assert!(cost < COST_KB_MAX, "{cost} KB");
}

#[test]
fn a_row_of_a_host_whose_values_the_server_cannot_compute_with_stops_no_turn_or_is_named() {
    let mut two = Two::start();
    two.writes();
    let odd = "insert into provost.host (repo, id, inc, name, version, formats, state, clean, beat, head)
        select id, repeat('a', 32), 1, '', '', int4range(1, 2), 'live', true, 'infinity', -9223372036854775808 from provost.repo";
    two.sql(odd);
    two.reads();
    two.writes();
    for formats in ["int4range(null, -2147483648)", "'empty'", "int4range(1, null)"] {
        two.sql(&format!("update provost.host set formats = {formats} where id = repeat('a', 32)"));
        let says = two.refused();
        assert!(says.contains("of the table `provost.host`"), "{formats}: {says}");
    }
    two.sql("delete from provost.host where id = repeat('a', 32)");
    two.reads();
}

#[test]
fn a_host_that_is_not_told_in_time_whether_it_has_read_all_loads_the_rows_nevertheless() {
    let mut two = Two::start();
    two.writes();
    let name = name_of(&two.database);
    std::thread::scope(|scope| {
        let keeps = "begin; lock table provost.entry in access exclusive mode; select pg_sleep(1.5); commit";
        scope.spawn(|| two.server.sql(&name, keeps));
        let kept = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        assert!(within(Duration::from_secs(20), || two.server.sql(&name, kept) == "1"));
        two.head = two.second.load(settings()).expect("the rows are read").head;
    });
    two.reads();
}

#[test]
fn a_portion_of_the_index_that_another_host_has_made_is_left_to_it() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    while two.first.lacks_index() {
        assert_ne!(two.first.index(1_000).expect("a portion"), Indexed::ByAnother);
    }
    // It does not know that yet.
    assert!(two.second.lacks_index());
    assert_eq!(two.second.index(1_000).expect("a portion"), Indexed::ByAnother);
    assert!(!two.second.lacks_index());
    two.writes();
    two.reads();
    assert_ne!(two.second.index(1_000).expect("a portion"), Indexed::ByAnother);
}

#[test]
fn a_host_with_more_bytes_to_read_than_a_turn_has_time_for_reads_them_out_of_turn() {
    let mut two = Two::start();
    let text = "x".repeat(1 << 20);
    let writes = |two: &mut Two, times: usize| {
        for _ in 0..times {
            let details = Json::parse(&format!(r#"{{"text":"{text}"}}"#)).expect("JSON");
            two.storm.say("host", Record { what: "note".into(), subject: "1".into(), details });
            two.first.commit(&two.storm.batch()).expect("the commit");
        }
    };
    writes(&mut two, 3);
    two.reads();
    let bytes = i64::try_from(text.len()).expect("a number");
    let times = usize::try_from(POSTGRES_TURN_BYTES_MAX / bytes).expect("a number") + 2;
    writes(&mut two, times);
    let of_entries = two.sql("select sum(octet_length(body)) from provost.entry").parse::<i64>();
    assert!(of_entries.expect("a number") < POSTGRES_TURN_BYTES_MAX, "the events alone are too much");
    two.has_to_load();
    // Out of turn it has the time.
    while let Behind::Entries(entries) = two.second.catch_up(two.head).expect("the entries") {
        let last = entries.last().expect("an entry");
        two.head = Head { n: last.n, mac: last.mac };
    }
    two.reads();
    writes(&mut two, 1);
    two.reads();
}

#[test]
fn many_signatures_are_checked_together_and_one_that_is_wrong_is_found() {
    // So many that several threads check them.
    let mut two = Two::start();
    for _ in 0..600 {
        two.writes();
    }
    assert!(two.sql("select count(*) from provost.signature").parse::<u64>().expect("a number") >= 600);
    two.head = two.second.load(settings()).expect("all of them hold").head;
    let before = two.sql("select max(event) from provost.signature");
    for _ in 0..600 {
        two.writes();
    }
    // One of those that the first thread has, and one of those that the last one has.
    let new = format!("select event from provost.signature where event > {before} order by event");
    for which in [format!("{new} limit 1 offset 3"), format!("{new} desc limit 1 offset 3")] {
        let event = two.sql(&which);
        two.sql(&format!(
            "create table public.kept as select event, sig from provost.signature where event = {event};
             update provost.signature set sig = (select sig from provost.signature where event = {before}) where event = {event}"
        ));
        let says = sentence(two.second.load(settings()));
        assert!(says.contains("has not signed it") && says.contains(&format!("(event {event})")), "{says}");
        two.sql(
            "update provost.signature s set sig = kept.sig from public.kept where s.event = kept.event; drop table public.kept",
        );
    }
    two.head = two.second.load(settings()).expect("all of them hold again").head;
    two.reads();
}

#[test]
fn a_signature_from_before_all_entries_keeps_no_new_host_away() {
    let mut two = Two::start();
    two.writes();
    // Each login can add a row where no event is, for an entry that is far ahead of the next one.
    two.sql(
        "insert into provost.signature select id, 0, 1000000, 'no host', '\\x00', '\\x00' from provost.repo",
    );
    let (third, key) = (folder(), sealed(two.folders[0].path()));
    join(third.path(), &two.database, &key.text, &key.code).expect("it joins");
    drop(started(third.path(), &two.database));
    two.reads();
}

#[test]
fn a_row_that_cannot_be_read_is_named_with_its_table_and_its_key() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    let task = two.sql("select id from provost.task where live order by id limit 1");
    assert!(!task.is_empty(), "the storm has left a task");
    // Where it is met: by a load of the rows, or by a turn.
    let rows = [
        (format!("update provost.task set body = '{{}}' where id = '{task}'"), "task", task.clone(), false),
        ("insert into provost.agent select id, 'odd', 'no JSON' from provost.repo".to_owned(), "agent", "odd".to_owned(), false),
        ("insert into provost.carried select id, 77, '[]' from provost.repo".to_owned(), "carried", "77".to_owned(), false),
        ("insert into provost.effect (repo, id, body, started, host, inc) select id, 99, 'no JSON', false, 'odd', 1 from provost.repo".to_owned(), "effect", "99".to_owned(), false),
        ("insert into provost.parked (repo, slug, n, seq) select id, 'odd', -5, 1 from provost.repo".to_owned(), "parked", "odd".to_owned(), false),
        ("insert into provost.host (repo, id, inc, name, version, formats, state, clean, beat, head)
          select id, E'odd\\x1b[2J', 1, '', '', int4range(1, 2), 'live', true, now(), 0 from provost.repo".to_owned(), "host", "odd".to_owned(), true),
    ];
    for (forge, table, key, in_turn) in rows {
        two.sql(&format!(
            "drop table if exists public.kept; create table public.kept as select * from provost.{table}"
        ));
        two.sql(&forge);
        let says = match in_turn {
            true => two.refused(),
            false => match two.second.load(settings()) {
                Err(err) => err.to_string(),
                Ok(_) => panic!("it is not refused: {forge}"),
            },
        };
        assert!(
            says.contains(&format!("the row {key}"))
                && says.contains(&format!("of the table `provost.{table}`")),
            "{forge}: {says}"
        );
        assert!(says.contains("have the database's administrator put the row back"), "{says}");
        assert!(!says.contains('\x1b'), "{says:?}");
        two.sql(&format!(
            "delete from provost.{table}; insert into provost.{table} select * from public.kept"
        ));
    }
    let loaded = two.second.load(settings()).expect("all rows are as they were");
    two.head = loaded.head;
    two.reads();
}
