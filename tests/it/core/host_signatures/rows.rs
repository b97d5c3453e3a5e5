//! Rows about hosts that a login of `provost_host` writes, and entries whose events have lost their texts.

use super::{lock, until};
use crate::support::commands::said;
use crate::support::forger::{Forger, own, recorded};
use crate::support::machines::Machines;

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
        blank,
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
