//! Rows about hosts that a login of `provost_host` writes, and entries whose events have lost their texts.

use provost::base::HostId;
use serde_json::Value;

use super::{lock, until};
use crate::support::clocks::Clocks;
use crate::support::commands::said;
use crate::support::forger::{Forger, own, recorded};
use crate::support::machines::Machines;
use crate::support::{UP, World};

#[test]
fn rows_about_hosts_that_are_none_keep_no_host_away_and_obey_no_terminal() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let [a, b] = &machines.all[..] else { panic!("two") };
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    daemons.remove(1).stop();
    let forger = Forger::with_login_of(&machines, b);
    for (host, n, body) in [
        ("'no host'", "1", "'{}'"),
        ("repeat('0', 32)", "-1", "'{}'"),
        ("repeat('1', 32)", "1", "'no JSON'"),
        ("repeat('2', 32)", "1", "repeat('x', 50000000)"),
    ] {
        forger.sql(&format!(
            "insert into provost.host_key select id, {host}, 'invited', {n}, {n}, {body} from provost.repo"
        ));
    }
    let evil = "E'\\x1b]0;gone\\x07\\x1b[2J' || repeat('y', 100000)";
    forger.sql(&format!(
        "update provost.host set name = {evil}, version = {evil} where id = '{}'",
        own(b).host
    ));
    for args in [&["host", "list"][..], &["host", "list", "--json"], &["status"]] {
        let out = a.command(args).output().unwrap();
        assert!(out.status.success() && out.stdout.len() < 20_000, "{args:?}: {} bytes", out.stdout.len());
        assert!(!out.stdout.iter().any(|it| [0x1b, 0x07].contains(it)), "{args:?}");
    }
    daemons.push(b.start());
    let c = machines.one_more();
    assert_eq!(machines.join(&c).0, 0);
    daemons.push(c.start());
    for (n, world) in [a, b, &c].into_iter().enumerate() {
        until("it goes on", || lock(world, 10 + n).0 == 0);
    }
    machines.check();
}

#[test]
fn an_entry_whose_events_have_lost_their_texts_is_folded_by_none() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let [a, b] = &machines.all[..] else { panic!("two") };
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    // Signed by a host that takes part: what the events say is what the others check.
    let of_b = own(b);
    daemons.remove(1).kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let forger = Forger::with_key_of(&machines, b);
    let blank = "update provost.event set body = null where seq = (select max(seq) from provost.event);";
    let before = forger.write_and(
        (of_b.host, vec![recorded()], Vec::new()),
        |text| Some(of_b.pair.sign(text).as_ref().to_vec()),
        |_| blank.to_owned(),
    );
    until("it writes nothing more", || lock(a, 50).0 != 0);
    let why = "its text was taken away before all hosts had read it";
    until("it says why", || a.log().contains(why));
    forger.take_out(&before);
    until("it goes on", || lock(a, 51).0 == 0);
    // A login of a host takes no text of a new event away.
    let login = Forger::with_login_of(&machines, b);
    let texts = || machines.sql("select count(*) from provost.event where body is not null");
    let all = texts();
    login.sql("select provost.prune_events(id, -1, 9000000000000000000) from provost.repo");
    assert_eq!(texts(), all);
    let (code, _) = said(&a.command(&["status", "--json"]).output().unwrap());
    assert_eq!(code, 0);
    // What it has signed and left whole is folded.
    let n = forger
        .write(of_b.host, vec![recorded()], Vec::new(), |text| Some(of_b.pair.sign(text).as_ref().to_vec()))
        .n;
    until("it is folded", || lock(a, 52).0 == 0);
    assert!(!a.log().contains(&format!("broken at entry {}", n + 1)), "{}", a.log());
}

#[test]
fn a_host_that_dates_its_events_back_and_seals_their_pruning_is_believed_by_none_that_is_awake() {
    let machines = Machines::joined(2);
    let [a, b] = &machines.all[..] else { panic!("two") };
    // Its own clock says nothing of whether it was asleep.
    let clocks = Clocks::in_folder(&a.path(""));
    let mut command = a.command(UP);
    clocks.give(&mut command);
    let _first = a.start_as(command);
    let mut second = b.start();
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    let of_b = own(b);
    second.kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    clocks.set(2 * 60 * 60, 2 * 60 * 60);
    // With the journal's key and a login, no more. The database lets it prune an event that it has dated back itself.
    let forger = Forger::with_login_of(&machines, b);
    let before = forger.write_and(
        (of_b.host, vec![recorded()], Vec::new()),
        |text| Some(of_b.pair.sign(text).as_ref().to_vec()),
        |end| {
            let seq = end.seq.0;
            format!(
                "select provost.prune_events(id, {seq} - 1, {seq}) from provost.repo; {}",
                forger.pruned(end)
            )
        },
    );
    let bare = "select count(*) from provost.event where body is null and seq = (select max(seq) from provost.event)";
    assert_eq!(machines.sql(bare), "1");
    until("it writes nothing more", || lock(a, 50).0 != 0);
    let why = "its text was taken away before all hosts had read it";
    until("it says why", || a.log().contains(why));
    machines.sql("delete from provost.checkpoint where seq = (select max(seq) from provost.event)");
    Forger::with_key_of(&machines, b).take_out(&before);
    until("it goes on", || lock(a, 51).0 == 0);
}

/// What a command says to a person, and whether it has done it.
fn words(world: &World, args: &[&str]) -> (bool, String) {
    let out = world.command(args).output().expect("the command runs");
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// The state of a host in a machine's list, and the state that the table of hosts claims.
fn listed(world: &World, host: HostId) -> (String, Value) {
    let (code, listed) = said(&world.command(&["host", "list", "--json"]).output().unwrap());
    assert_eq!(code, 0, "{listed}");
    let all = listed["hosts"].as_array().unwrap();
    let it = all.iter().find(|it| it["host"] == host.to_string()).expect("it is in the list");
    (it["state"].as_str().unwrap().to_owned(), it["claimed"].clone())
}

#[test]
fn lists_say_what_the_journal_says_of_a_removal_and_name_rows_that_say_something_else() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    let (forger, of_b) = (Forger::with_login_of(&machines, c), own(b).host);
    let id = of_b.to_string()[..8].to_owned();
    daemons.remove(2).stop();
    daemons.remove(1).stop();
    assert_eq!(listed(a, of_b), ("stopped".to_owned(), Value::Null));
    let calls = |state: &str| {
        forger.sql(&format!("update provost.host set state = '{state}' where id = '{of_b}'"));
    };
    for (claimed, counts) in [("removed", "down"), ("removing", "live"), ("draining", "live")] {
        calls(claimed);
        assert_eq!(listed(a, of_b), (counts.to_owned(), Value::from(claimed)));
        for args in [&["host", "list"][..], &["user", "list"], &["host", "upgrade"]] {
            // A host that counts as live, and is silent, is taken for dead meanwhile.
            calls(claimed);
            let (done, text) = words(a, args);
            assert!(done && text.contains("no host that may say so has signed that"), "{args:?}: {text}");
            assert!(text.contains(&format!("provost host remove {id}")), "{args:?}: {text}");
        }
        let (_, text) = words(a, &["user", "list"]);
        assert!(text.lines().any(|it| it.starts_with(&id)), "its user is on the list: {text}");
    }
    // An older release on that host keeps the log in its format, also where the table says that the host was removed.
    calls("removed");
    forger.sql(&format!("update provost.host set formats = int4range(0, 1) where id = '{of_b}'"));
    let (done, text) = words(a, &["host", "upgrade"]);
    assert!(!done && text.contains("nothing has changed") && text.contains(&id), "{text}");

    let (done, text) = words(a, &["host", "remove", &id, "--yes"]);
    assert!(done, "{text}");
    let removals = "select count(*) from provost.event where kind = 'host_removed'";
    until("it is out", || machines.sql(removals) == "1");
    assert_eq!(listed(a, of_b), ("removed".to_owned(), Value::Null));
    calls("live");
    assert_eq!(listed(a, of_b), ("removed".to_owned(), Value::from("live")));
    let (done, text) = words(a, &["host", "list"]);
    assert!(done && text.contains("so it stays removed"), "{text}");
    let (done, text) = words(a, &["host", "upgrade"]);
    assert!(done, "it counts no more: {text}");
    // A machine that was away, and cannot learn of the removal, has a list nevertheless.
    machines.sql("update provost.event set body = null where kind = 'host_removed'");
    let (done, text) = words(c, &["host", "list"]);
    assert!(done && text.contains(&id), "{text}");
    assert!(text.contains("the journal does not say which hosts were removed"), "{text}");
    let (done, text) = words(c, &["host", "upgrade"]);
    assert!(!done && text.contains("which is always kept"), "{text}");
}
