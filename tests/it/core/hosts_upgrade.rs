//! Hosts of different releases: tables that a newer one has made, a log with what an older one does not know, and the step that lets all
//! write the newest format. A daemon of another release is not there: its rows and entries are written as it would write them.

use std::path::PathBuf;

use hmac::{Hmac, KeyInit as _, Mac as _};
use provost::base::Digest;
use provost::store::upgrade;
use sha2::Sha256;

use crate::support::commands::said;
use crate::support::forger::{self, hex};
use crate::support::histories::{Clients, reads_go_on, says};
use crate::support::machines::Machines;
use crate::support::waits::within;
use crate::support::{Daemon, UP, World};

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(std::time::Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// Asks for a lock: the exit code, and what was said.
fn lock(world: &World, n: usize) -> (i32, String) {
    let symbol = format!("src/a.rs:f{n}");
    let out =
        world.by("ada", &["lock", "acquire", &symbol]).env("DEVIT_NO_AUTO_START", "1").output().unwrap();
    let (code, answer) = said(&out);
    (code, answer.to_string())
}

fn state_of(world: &World) -> PathBuf {
    let below = std::fs::read_dir(world.home().join(".local/state/provost")).unwrap();
    below.flatten().map(|it| it.path()).find(|it| it.join("journal.key").exists()).unwrap()
}

/// Writes an entry with this body, sealed as a stopped host would have sealed it. Returns what the repository's row was.
fn write_entry(machines: &Machines, host: &str, body: &str) -> (String, String) {
    let key = std::fs::read(state_of(&machines.all[0]).join("journal.key")).unwrap();
    let row = machines.sql("select n || ' ' || encode(mac, 'hex') from provost.repo");
    let (n, before) = row.split_once(' ').unwrap();
    let (n, mut own): (u64, u64) = (n.parse::<u64>().unwrap() + 1, 1);
    let count =
        machines.sql(&format!("select coalesce(max(own_n), 0) from provost.entry where host = '{host}'"));
    own += count.parse::<u64>().unwrap();
    let inc: u64 =
        machines.sql(&format!("select inc from provost.host where id = '{host}'")).parse().unwrap();
    let at: i64 = machines.sql("select at from provost.repo").parse().unwrap();
    let (inc_le, own_le) = (inc.to_le_bytes(), own.to_le_bytes());
    let (format, at_le) = (1_u32.to_le_bytes(), at.to_le_bytes());
    let header = Digest::of_fields([host.as_bytes(), &inc_le[..], &own_le, &format, &at_le]);
    let before_bytes: Vec<u8> =
        (0..64).step_by(2).map(|it| u8::from_str_radix(&before[it..it + 2], 16).unwrap()).collect();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    for part in [
        b"provost-entry-v1",
        &before_bytes[..],
        &n.to_le_bytes(),
        header.as_bytes(),
        Digest::of(body.as_bytes()).as_bytes(),
    ] {
        mac.update(part);
    }
    let mac = hex(&mac.finalize().into_bytes());
    let ends =
        machines.sql("select key_print || ' ' || event || ' ' || encode(event_mac, 'hex') from provost.repo");
    let ends: Vec<&str> = ends.split(' ').collect();
    let event = (ends[1].parse().unwrap(), &forger::digest(ends[2]));
    let text = forger::to_sign(&forger::digest(ends[0]), (n, &forger::digest(&mac)), event);
    let keys = machines.all.iter().map(forger::own);
    let own_key = keys.into_iter().find(|it| it.host.to_string() == host).expect("one of these machines");
    let sig = hex(own_key.pair.sign(&text).as_ref());
    machines.sql(&format!(
        "insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
         select id, {n}, '{host}', {inc}, {own}, {at}, 1, '{body}', '\\x{mac}', '\\x{sig}' from provost.repo;
         update provost.repo set n = {n}, mac = '\\x{mac}', seal = null"
    ));
    forger::seal_row(&key, |text| machines.sql(text));
    (n.to_string(), before.to_owned())
}

#[test]
fn a_change_that_a_release_does_not_know_stops_it_and_names_the_release_that_has_written_it() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(lock(a, 0).0, 0);
    assert_eq!(lock(b, 1).0, 0);
    daemons.pop().expect("two").stop();
    let host = machines.sql("select id from provost.host where state = 'down'");
    machines.sql(&format!("update provost.host set version = '9.1.0' where id = '{host}'"));
    let (n, before) = write_entry(
        &machines,
        &host,
        r#"{"changes":[{"put_dream":{"of":"sheep"}}],"effects":[],"events":[]}"#,
    );

    let (code, says_so) = lock(a, 2);
    assert!(code != 0 && says_so.contains("newer Provost"), "{code}: {says_so}");
    let (_, status) = says(a, &["status"]);
    for words in ["9.1.0", "put_dream", &format!("entry {n}"), "install that release"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    reads_go_on(a);
    assert_ne!(lock(a, 2).0, 0, "it was not skipped");
    // Neither does a daemon start over it, whose rows may lack what it does not know.
    daemons.pop().expect("one").asked_to_stop();
    let (code, text) = says(a, UP);
    assert!(code != 0 && text.contains("9.1.0") && text.contains("put_dream"), "{code}: {text}");

    // With a release that knows it (here: without the entry) it goes on.
    machines.sql(&format!(
        "delete from provost.entry where n = {n}; update provost.repo set n = n - 1, mac = '\\x{before}', seal = null"
    ));
    machines.sql(&format!("update provost.host set version = (select version from provost.host where id <> '{host}') where id = '{host}'"));
    let _daemons: Vec<Daemon> = machines.start();
    assert_eq!(lock(a, 2).0, 0);
    assert_eq!(lock(b, 3).0, 0);
    machines.check();
}

#[test]
fn the_logs_format_is_raised_when_all_hosts_can_read_it_and_a_host_that_cannot_writes_nothing() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let (code, text) = says(a, &["host", "upgrade"]);
    assert!(code == 0 && text.contains("nothing to do"), "{code}: {text}");
    // As a release asks that writes one format more.
    let raise = || upgrade(&state_of(a), &machines.database, 2).unwrap();
    let refused = raise();
    assert_eq!((refused.from, refused.to, refused.behind.len()), (1, 1, 2), "{refused:?}");
    machines.sql("update provost.host set formats = '[1,3)', version = '9.1.0' where id = (select min(id) from provost.host)");
    let refused = raise();
    assert_eq!((refused.to, refused.behind.len(), refused.others.len()), (1, 1, 1), "{refused:?}");
    assert_eq!(lock(a, 0).0, 0);
    assert_eq!(lock(b, 1).0, 0, "until then all go on");

    // A host that is gone for good is removed; one that is down counts, since it may come back.
    machines.sql("update provost.host set formats = '[0,1)' where id = (select max(id) from provost.host)");
    let (code, text) = says(a, &["host", "upgrade"]);
    assert!(code != 0 && text.contains("reads format 0") && text.contains("host remove"), "{code}: {text}");

    machines.sql("update provost.host set formats = '[1,3)'");
    let raised = raise();
    assert_eq!((raised.from, raised.to, raised.behind.len()), (1, 2, 0), "{raised:?}");
    for world in [a, b] {
        let (code, says_so) = lock(world, 5);
        assert!(code != 0 && says_so.contains("newer Provost"), "{code}: {says_so}");
        let (_, status) = says(world, &["status"]);
        assert!(status.contains("format 2"), "{status}");
        reads_go_on(world);
    }
    machines.sql("update provost.repo set format = 1");
    for (n, world) in [a, b].into_iter().enumerate() {
        until("writes go on", || lock(world, 6 + n).0 == 0);
    }
    machines.check();
}

#[test]
fn tables_of_a_newer_release_are_gone_on_over_with_a_word_until_a_daemon_starts_again() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let known = machines.sql("select version from provost.schema");
    machines.sql("update provost.schema set version = 99");
    assert_eq!(lock(a, 0).0, 0);
    assert_eq!(lock(b, 1).0, 0);
    let (_, status) = says(a, &["status"]);
    assert!(
        status.contains("tables are of version 99") && status.contains("install that release"),
        "{status}"
    );
    daemons.pop().expect("two").stop();
    let (code, text) = says(b, UP);
    assert!(code != 0 && text.contains("99") && text.contains("newer Provost"), "{code}: {text}");
    let (code, text) = says(b, &["host", "upgrade"]);
    assert!(code != 0 && text.contains("newer"), "{code}: {text}");
    // The tables of the release before are not enough either.
    machines.sql("update provost.schema set version = 1");
    assert_eq!(lock(a, 2).0, 0, "a daemon that runs goes on");
    for args in [UP, &["host", "upgrade"]] {
        let (code, text) = says(b, args);
        assert!(code != 0 && text.contains("provost store migrate"), "{code}: {text}");
    }
    machines.sql(&format!("update provost.schema set version = {known}"));
    let _back = b.start();
    assert_eq!(lock(b, 3).0, 0);
    machines.check();
}

#[test]
fn a_migration_while_daemons_work_costs_them_nothing() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let all: Vec<Clients<'_>> =
        machines.all.iter().zip(["a", "b"]).map(|(world, name)| Clients::named(world, name)).collect();
    Clients::during_all(&all, || {
        let (code, text) = says(&machines.all[0], &["store", "migrate", "--url", &machines.database.url]);
        assert_eq!(code, 0, "{text}");
        all.iter().for_each(Clients::goes_on);
        // Tables that have other columns than when statements were prepared.
        machines.sql("alter table provost.event add column later text");
        machines.sql("alter table provost.symbol_lock add column later text");
        all.iter().for_each(Clients::goes_on);
    });
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    machines.check();
}
