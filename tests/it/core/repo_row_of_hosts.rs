//! The repository's row in a shared database, which each login can change: no host goes by a row that no host has sealed, and each works out again
//! what it should say. Against real servers.

use std::fs;

use provost::base::limits::NUMBERS_SKIPPED;
use provost::base::{EventSeq, Timestamp};
use provost::domain::Counters;
use provost::store::{Behind, Database, JOURNAL_KEY, Site, Verdict, accept_loss, join};

use super::store_postgres::{folder, sealed, sentence, started};
use super::texts_of_hosts::Two;
use crate::support::World;
use crate::support::commands::said;
use crate::support::forger::{Forger, seal_row};
use crate::support::machines::Machines;
use crate::support::postgres::{Server, name_of};
use crate::support::storm::{Storm, rage, settings};

/// What a login can write into the row.
const CHANGES: [&str; 19] = [
    "n = n + 1",
    "n = 9223372036854775807",
    "n = -1",
    "mac = sha256('x')",
    "mac = ''",
    "event = event + 1",
    "event = 0",
    "event_mac = sha256('x')",
    "counters = jsonb_set(counters, '{fence}', '18446744073709551615')",
    "counters = jsonb_set(counters, '{approval}', '9223372036854775807')",
    "counters = '[]'",
    "counters = '{\"fence\":-1}'",
    "at = 9223372036854775807",
    "searched_to = 9223372036854775807, finished = 9223372036854775807",
    "pruned_to = event",
    "checkpoint = 9223372036854775807",
    "system = 'another'",
    "timeline = timeline + 1",
    "timeline = -1",
];

/// Whether the row says what a host could have written.
const IS_SOUND: &str = "select at < 4102444800000 and searched_to <= event and finished < 1000000 and pruned_to = 0 and checkpoint <= event
    and timeline < 100 and system <> 'another' and octet_length(seal) = 32 from provost.repo";

/// A login changes the row, and keeps its seal.
fn changes(two: &Two, what: &str) {
    two.sql(&format!(
        "create table public.sealed as select seal from provost.repo; update provost.repo set {what}, seal = null;
         update provost.repo set seal = (select seal from public.sealed); drop table public.sealed"
    ));
}

fn fence(two: &Two) -> u64 {
    two.sql("select counters ->> 'fence' from provost.repo").parse().expect("a number")
}

/// The first one loads what there is, and decides by it from then on.
fn decides_by_the_rows(two: &mut Two, seed: u64) {
    let loaded = two.first.load(settings()).expect("the rows");
    two.storm = Storm::new(seed, loaded.state);
}

/// Checks that numbers go on above those that were given, and not far above them.
fn are_above(now: &Counters, given: &Counters, what: &str) {
    for (now, given) in [
        (now.fence.0, given.fence.0),
        (now.approval.0, given.approval.0),
        (now.mail.0, given.mail.0),
        (now.effect.0, given.effect.0),
    ] {
        assert!((given + 100_000..given + 300_000).contains(&now), "{what}: {now} after {given}");
    }
}

#[test]
fn a_row_that_a_login_has_changed_is_written_again_by_the_next_turn() {
    let mut two = Two::start();
    for change in CHANGES {
        two.writes();
        two.reads();
        let given = two.storm.core.state().counters;
        changes(&two, change);
        two.reads();
        let begun = two.first.begin(two.head).unwrap_or_else(|err| panic!("{change}: {err}"));
        assert!(matches!(begun.behind, Behind::Nothing) && begun.moved, "{change}: {begun:?}");
        // As the engine does.
        let Storm { core, now, out, .. } = &mut two.storm;
        core.skip_numbers(*now, NUMBERS_SKIPPED, out);
        two.writes();
        are_above(&two.storm.core.state().counters, &given, change);
        assert_eq!(two.sql(IS_SOUND), "t", "{change}");
        two.reads();
    }
    let verdict =
        two.second.opens_reader().and_then(|open| open()).expect("a reader").verify(None).expect("a verdict");
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
}

#[test]
fn a_row_that_a_login_has_changed_is_worked_out_again_and_numbers_go_on_above_those_given() {
    let mut two = Two::start();
    for change in CHANGES {
        two.writes();
        two.reads();
        let given = two.storm.core.state().counters;
        changes(&two, change);
        let loaded = two.second.load(settings()).unwrap_or_else(|err| panic!("{change}: {err}"));
        assert_eq!(loaded.head, two.head, "{change}");
        assert_eq!(loaded.state.counters, given, "{change}");
        let row = two.sql("select counters::text from provost.repo");
        let row: Counters = serde_json::from_str(&row).expect("counters");
        are_above(&row, &given, change);
        assert_eq!(two.sql(IS_SOUND), "t", "{change}");
        // Both go on above the numbers of the row, with an entry that tells it.
        let begun = two.second.begin(two.head).expect("the turn");
        assert_eq!(begun.skipped, Some(row), "{change}");
        two.second.let_go().expect("it lets go");
        let begun = two.first.begin(two.head).expect("the turn");
        assert!(matches!(begun.behind, Behind::Nothing) && !begun.moved, "{change}: {begun:?}");
        let skipped = begun.skipped.expect("it is told");
        let Storm { core, now: at, out, .. } = &mut two.storm;
        core.raise_numbers(*at, &skipped, out);
        two.writes();
        assert!(two.storm.core.state().counters.fence >= row.fence, "{change}");
        let begun = two.second.begin(two.head).expect("the turn");
        assert!(begun.skipped.is_none(), "{change}: {begun:?}");
        two.second.let_go().expect("it lets go");
        two.reads();
    }
    let verdict =
        two.second.opens_reader().and_then(|open| open()).expect("a reader").verify(None).expect("a verdict");
    assert!(matches!(verdict, Verdict::Ok { .. }), "{verdict:?}");
}

#[test]
fn numbers_further_ahead_than_hosts_skip_are_refused_from_a_host_that_has_turned() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    let key = fs::read(two.folders[0].path().join(JOURNAL_KEY)).expect("the journal's key");
    two.sql("create table public.kept as select counters, seal from provost.repo");
    two.sql("update provost.repo set counters = jsonb_set(counters, '{fence}', '18446744073709551615'), seal = null");
    seal_row(&key, |text| two.sql(text));
    let says = two.refused();
    assert!(says.contains("has numbers that no host has given"), "{says}");
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("has numbers that no host has given"), "{says}");
    two.sql("update provost.repo set (counters, seal) = (select counters, seal from public.kept)");
    two.reads();
}

#[test]
fn daemons_go_on_while_a_login_changes_the_row_again_and_again() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let login = Forger::with_login_of(&machines, &machines.all[1]);
    let lock = |world: &World, n: usize| {
        let args = ["lock", "acquire", &format!("src/a.rs:f{n}")];
        let done = world.by("ada", &args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
        assert_eq!(said(&done).0, 0, "{n}: {done:?}");
    };
    lock(&machines.all[0], 100);
    for (n, change) in CHANGES.into_iter().enumerate() {
        login.sql(&format!("update provost.repo set {change}, seal = sha256('{n}')"));
        lock(&machines.all[n % 2], n);
        assert_eq!(machines.sql(IS_SOUND), "t", "{change}");
    }
    assert!(machines.all.iter().any(|it| it.log().contains("has changed the repository's row")));
    machines.check();
}

#[test]
fn an_earlier_row_with_its_seal_leads_no_host_back() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    two.sql("create table public.kept as select * from provost.repo");
    two.writes();
    two.reads();
    let (end, given) = (two.sql("select n || ' ' || event from provost.repo"), fence(&two));
    let columns = "n, mac, event, event_mac, pruned_to, counters, finished, searched_to, checkpoint, at, system, timeline, seal";
    two.sql(&format!("update provost.repo set ({columns}) = (select {columns} from public.kept)"));
    // A turn judges what is new, and does not load the rows.
    let begun = two.second.begin(two.head).expect("the turn");
    assert!(matches!(begun.behind, Behind::Nothing) && begun.moved, "{begun:?}");
    two.second.let_go().expect("it lets go");
    let loaded = two.second.load(settings()).expect("the rows");
    assert_eq!(loaded.head, two.head);
    assert_eq!(two.sql("select n || ' ' || event from provost.repo"), end);
    assert!(fence(&two) >= given + 100_000);
    decides_by_the_rows(&mut two, 6);
    two.writes();
    two.reads();
}

#[test]
fn a_host_starts_over_a_changed_row_and_over_tables_that_have_no_seal_yet() {
    let mut two = Two::start();
    two.writes();
    for change in
        ["counters = jsonb_set(counters, '{fence}', '18446744073709551615'), seal = ''", "seal = null"]
    {
        two.sql(&format!("update provost.repo set {change}"));
        let (third, key) = (folder(), sealed(two.folders[0].path()));
        join(third.path(), &two.database, &key.text, &key.code).expect("it joins");
        let (_third, loaded) = started(third.path(), &two.database);
        assert!(loaded.state.counters.fence.0 < 1_000_000, "{change}");
        assert_eq!(two.sql(IS_SOUND), "t", "{change}");
    }
    // A daemon of an earlier release, which runs on, knows no seal.
    let name = name_of(&two.database);
    for column in ["n", "pruned_to", "searched_to", "timeline"] {
        let moves = |seal: &str| format!("update provost.repo set {column} = {column} + 1{seal}");
        assert_eq!(two.server.says(&name, &moves("")), None, "{column}");
        let other = format!(", seal = sha256('{column}')");
        assert!(two.server.says(&name, &moves(&other)).is_some(), "{column}");
    }
}

#[test]
fn checkpoints_that_no_host_has_sealed_stop_no_start_and_keep_no_host_from_sealing() {
    let mut two = Two::start();
    two.writes();
    two.first.close().expect("a stop, which seals");
    let seals = "select count(*) from provost.checkpoint";
    let before = two.sql(seals);
    assert_ne!(before, "0");
    // More than are read at a time, and behind the end, too.
    two.sql(
        "insert into provost.checkpoint select id, it, event_mac, event, '{}', event_mac from provost.repo, generate_series(event - 30, event + 30) it
         where not exists (select from provost.checkpoint where seq = it)",
    );
    two.head = two.second.load(settings()).expect("the row says which one counts").head;
    changes(&two, "at = 1");
    two.head = two.second.load(settings()).expect("the last one with a seal counts").head;
    two.sql("update provost.checkpoint set seal = '' where seq > 0");
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("tampered"), "without any, the last one is named: {says}");
}

#[test]
fn a_row_at_a_number_that_no_event_has_is_named_and_removes_no_host() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    let name = name_of(&database);
    lost(server, dir.path(), &database);
    let site =
        Site { dir: dir.path(), database: &database, outside: None, now: Timestamp(1_800_000_000_000) };
    // The row is none that a host has sealed, either.
    server.sql(&name, "update provost.repo set counters = '{\"fence\":7}', seal = null");
    accept_loss(site).expect("it is accepted");
    let gap = server.sql(&name, "select max(seq) - 5 from provost.event");
    let says = |seq: &str| {
        server.sql(
            &name,
            &format!(
                "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
                 select id, {seq}, 0, 'host_removed', 'x', 'no JSON', '', '' from provost.repo"
            ),
        );
        let mut store = provost::store::open(
            dir.path(),
            provost::store::Options {
                database: Some(database.clone()),
                ..provost::store::Options::default()
            },
        )
        .expect("the store opens");
        let says = sentence(store.load(settings()));
        server.sql(&name, &format!("delete from provost.event where seq = {seq}"));
        says
    };
    for seq in [&*gap, "0", "-3"] {
        let says = says(seq);
        assert!(says.contains(&format!("the row {seq} of the table `provost.event`")), "{says}");
    }
    let (_store, loaded) = started(dir.path(), &database);
    assert!(loaded.state.counters.fence.0 > 100_000);
}

/// Has the database of a folder go back by some commits.
fn lost(server: &Server, dir: &std::path::Path, database: &Database) {
    let (mut store, loaded) = started(dir, database);
    rage(&mut *store, &mut Storm::new(21, loaded.state), 60);
    store.close().expect("a clean stop");
    drop(store);
    let (name, copy) = (name_of(database), format!("{}_copy", name_of(database)));
    server.sql("postgres", &format!("create database {copy} template {name}"));
    let (mut store, loaded) = started(dir, database);
    rage(&mut *store, &mut Storm::new(22, loaded.state), 60);
    drop(store);
    server.sql("postgres", &format!("drop database {name} with (force)"));
    server.sql("postgres", &format!("alter database {copy} rename to {name}"));
}

#[test]
fn a_number_of_starts_that_no_host_reaches_is_named_and_put_back_the_host_starts() {
    let (server, dir) = (Server::shared(), folder());
    let database = server.database();
    drop(started(dir.path(), &database));
    let name = name_of(&database);
    server.sql(&name, "update provost.host set inc = 9223372036854775807");
    let open = || {
        let options = provost::store::Options { database: Some(database.clone()), ..Default::default() };
        provost::store::open(dir.path(), options).expect("the store opens")
    };
    let says = sentence(open().load(settings()));
    assert!(says.contains("of the table `provost.host`") && says.contains("number of starts"), "{says}");
    server.sql(&name, "update provost.host set inc = 7");
    assert_eq!(open().load(settings()).expect("it starts").daemon.incarnation, 8);
}

#[test]
fn an_entry_that_a_login_adds_where_the_log_was_cut_stops_no_start_of_a_host() {
    let mut two = Two::start();
    for _ in 0..4 {
        two.writes();
    }
    two.reads();
    two.head = two.second.load(settings()).expect("the rows").head;
    two.sql(
        "update provost.host set version = '9.1.0'; create table public.kept as select * from provost.entry where n <= 3;
         delete from provost.entry where n <= 3;
         insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
             select repo, n, host, inc, own_n, at, format, '{\"changes\":[{\"put_dream\":1}]}', mac, sig from public.kept",
    );
    two.head = two.second.load(settings()).expect("no chain leads to them").head;
    two.reads();
}

#[test]
fn an_entry_behind_the_end_of_the_log_is_not_read_out_of_turn() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    two.sql(
        "insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
             select repo, n + 1, host, inc, own_n + 1000, at, format, body, mac, sig from provost.entry order by n desc limit 1",
    );
    let behind = two.second.catch_up(two.head).expect("an answer");
    assert!(matches!(behind, Behind::Nothing), "{behind:?}");
    let says = two.refused();
    assert!(says.contains(&format!("entry {}", two.head.n.next())), "the turn names it: {says}");
}

#[test]
fn numbers_that_a_load_after_a_failover_has_skipped_are_skipped_by_all_hosts() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    let key = fs::read(two.folders[0].path().join(JOURNAL_KEY)).expect("the journal's key");
    two.sql("update provost.repo set timeline = 99, seal = null");
    seal_row(&key, |text| two.sql(text));
    let loaded = two.second.load(settings()).expect("the rows");
    let now: Counters = loaded.state.counters;
    assert!(now.event > EventSeq::default() && now.fence.0 >= 100_000, "{now:?}");
    // It has noted the history, and has written no entry yet.
    let begun = two.first.begin(two.head).expect("the turn");
    assert_eq!(begun.skipped, Some(now));
    two.first.let_go().expect("it lets go");
    // Without a commit it is told again.
    let begun = two.first.begin(two.head).expect("the turn");
    assert_eq!(begun.skipped, Some(now));
    two.first.let_go().expect("it lets go");
}

#[test]
fn a_row_with_an_earlier_end_hides_no_event_and_the_newest_entries_are_not_cut() {
    let mut two = Two::start();
    two.writes();
    two.reads();
    two.sql(
        "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
         select id, event + 1, 0, 'host_removed', 'x', '{}', '', '' from provost.repo",
    );
    changes(&two, "event = 0");
    let says = sentence(two.second.load(settings()));
    assert!(says.contains("tampered") || says.contains("of the table `provost.event`"), "{says}");
    two.sql("delete from provost.event where kind = 'host_removed' and body = '{}'");
    two.head = two.second.load(settings()).expect("the rows").head;

    two.sql("update provost.entry set at = 0; update provost.host set head = 9000000000000000000");
    let entries = two.sql("select count(*) from provost.entry");
    assert_eq!(two.sql("select provost.cut_log(id, 9000000000000, 1000) from provost.repo"), "0");
    assert_eq!(two.sql("select count(*) from provost.entry"), entries);
}
