//! A host that was removed, and whose login to the database works still: it has the journal's key, its own key, and the rights of `provost_host`.

use provost::base::HostId;
use ring::signature::Ed25519KeyPair;

use super::{lock, refuses, until};
use crate::support::commands::said;
use crate::support::forger::{Forger, Own, bytes, hex, own, recorded};
use crate::support::machines::{Machines, join_with, state_dir};
use crate::support::{Daemon, UP, World};

fn words(world: &World, args: &[&str]) -> (bool, String) {
    let out = world.command(args).output().expect("the command runs");
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// Has the daemon of `by` remove a host, whose own daemon has to have ended.
fn remove(by: &World, gone: HostId, machines: &Machines) {
    let count = || machines.sql("select count(*) from provost.event where kind = 'host_removed'");
    let before: u64 = count().parse().unwrap();
    let (done, text) = words(by, &["host", "remove", &gone.to_string()[..8], "--yes"]);
    assert!(done, "{text}");
    until("it is out", || count() == (before + 1).to_string());
}

/// Three hosts that have signed: the second one stopped, then the third one was killed and removed.
fn with_one_removed() -> (Machines, Daemon, Own) {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    let of_c = own(&machines.all[2]);
    daemons.remove(1).stop();
    daemons.remove(1).kill();
    let a = daemons.remove(0);
    remove(&machines.all[0], of_c.host, &machines);
    (machines, a, of_c)
}

/// A host that no one has invited, with a key.
fn stranger() -> Own {
    Own { host: HostId::of(0x77), pair: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key") }
}

#[test]
fn rows_of_a_removed_host_take_no_other_host_out_and_put_its_own_removal_nowhere_else() {
    let (machines, _daemon, of_c) = with_one_removed();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let forger = Forger::with_login_of(&machines, c);
    forger.removal(own(a).host, Some(&of_c));
    forger.removal(own(b).host, Some(&of_c));
    forger.removal(of_c.host, Some(&of_c));
    let late = b.start();
    for (n, world) in [a, b, a, b].into_iter().enumerate() {
        until("each goes on with the other one", || lock(world, 10 + n).0 == 0);
    }
    machines.check();
    // What it had signed before holds, and what it signs now is refused, by the one that did not run then as well.
    let before = forger
        .write(of_c.host, vec![recorded()], Vec::new(), |text| Some(of_c.pair.sign(text).as_ref().to_vec()));
    for world in [a, b] {
        refuses(world, before.n + 1, of_c.host, "was removed before");
    }
    Forger::with_key_of(&machines, c).take_out(&before);
    drop(late);
}

#[test]
fn the_text_of_a_removal_stays_and_without_it_no_late_host_goes_on() {
    let (machines, daemon, of_c) = with_one_removed();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let forger = Forger::with_login_of(&machines, c);
    let texts = "select count(*) from provost.event where body is not null";
    let all = machines.sql(texts);
    forger.sql("select provost.prune_events(id, 0, 1000000000) from provost.repo");
    forger.sql("update provost.host set head = 1000000000");
    forger.sql("select provost.cut_log(id, 9000000000000, 1000000000) from provost.repo");
    assert_eq!(machines.sql(texts), all, "a login takes no text of a new event away");
    assert_ne!(machines.sql("select count(*) from provost.entry"), "0", "nor a new entry");

    // Who owns the tables can.
    machines
        .sql("create table public.kept as select seq, body from provost.event where kind = 'host_removed'");
    machines.sql("update provost.event set body = null where kind = 'host_removed'");
    let before = forger
        .write(of_c.host, vec![recorded()], Vec::new(), |text| Some(of_c.pair.sign(text).as_ref().to_vec()));
    refuses(a, before.n + 1, of_c.host, "was removed before");
    let (done, text) = words(b, UP);
    assert!(!done && text.contains("its text, which is always kept, was taken away"), "{text}");
    assert!(text.contains("provost host export-key"), "{text}");
    Forger::with_key_of(&machines, c).take_out(&before);
    let (done, text) = words(b, UP);
    assert!(!done && text.contains("its text, which is always kept, was taken away"), "{text}");
    for world in [a, b] {
        let (done, text) = words(world, &["journal", "verify"]);
        assert!(!done && text.contains("missing, and was not pruned"), "{text}");
    }
    machines.sql("update provost.event e set body = kept.body from public.kept where kept.seq = e.seq");
    let _late = b.start();
    for (n, world) in [a, b].into_iter().enumerate() {
        until("each goes on with the other one", || lock(world, 20 + n).0 == 0);
    }
    drop(daemon);
}

#[test]
fn what_is_signed_for_an_older_entry_than_it_is_behind_is_believed_by_no_start() {
    let (machines, daemon, of_c) = with_one_removed();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let (forger, owner) = (Forger::with_login_of(&machines, c), Forger::with_key_of(&machines, c));
    daemon.stop();
    let before = forger.write_behind(&of_c, 2);
    for (world, args) in [(a, UP), (b, UP), (a, &["journal", "verify"][..]), (b, &["journal", "verify"])] {
        let (done, text) = words(world, args);
        assert!(!done && text.contains("was removed before"), "{args:?}: {text}");
    }
    owner.take_out(&before);
    // Nor what a host has signed so that takes part.
    let before = forger.write_behind(&own(b), 2);
    for (world, args) in [(a, UP), (a, &["journal", "verify"][..])] {
        let (done, text) = words(world, args);
        assert!(!done && text.contains("behind entry"), "{args:?}: {text}");
    }
    owner.take_out(&before);
    let before = forger.write_behind(&own(b), 1_000_000);
    let (done, text) = words(a, UP);
    assert!(!done && text.contains("the log ends before"), "{text}");
    owner.take_out(&before);
    let _daemons = [a.start(), b.start()];
    assert_eq!(lock(a, 30).0, 0);
    machines.check();
}

#[test]
fn what_a_removed_host_lets_in_is_no_member_for_a_host_that_was_away() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    daemons.remove(1).stop();
    // A host that joined meanwhile removes it: the late host has to let the one in, and not the other.
    let y = machines.one_more();
    let (joins, text) = machines.join(&y);
    assert_eq!(joins, 0, "{text}");
    let _joined = y.start();
    until("it has a lock", || lock(&y, 5).0 == 0);
    let of_c = own(c);
    daemons.remove(1).kill();
    daemons.remove(0).stop();
    remove(&y, of_c.host, &machines);

    let (forger, new) = (Forger::with_login_of(&machines, c), stranger());
    forger.enrol(&new, &of_c);
    // A bare signature, at an event within another host's entry, says nothing of when the new host has signed.
    let within = "select coalesce(min(seq), 0) from provost.event where seq not in (select event from provost.signature)";
    let within = machines.sql(within);
    forger.sql(&format!(
        "insert into provost.signature select id, {within}, 1, '{}', '\\x00', '\\x00' from provost.repo",
        new.host
    ));
    let _late = b.start();
    until("it goes on with the new one", || lock(b, 6).0 == 0);
    let before = forger
        .write(new.host, vec![recorded()], Vec::new(), |text| Some(new.pair.sign(text).as_ref().to_vec()));
    for world in [b, &y] {
        refuses(world, before.n + 1, new.host, "is no member");
    }
    let (done, text) = words(a, UP);
    assert!(!done && text.contains("is no member"), "{text}");
    Forger::with_key_of(&machines, c).take_out(&before);
}

#[test]
fn the_file_with_which_a_removed_host_came_lets_it_in_no_more() {
    let machines = Machines::joined(1);
    let a = &machines.all[0];
    let _first = a.start();
    let (c, d) = (machines.one_more(), machines.one_more());
    let file = a.path("many.key").display().to_string();
    let exported = a.command(&["host", "export-key", &file, "--hosts", "4", "--json"]).output().unwrap();
    let code = said(&exported).1["code"].as_str().unwrap().to_owned();
    let mut daemons = Vec::new();
    for (n, world) in [&c, &d].into_iter().enumerate() {
        let (joins, text) = join_with(world, &file, &code);
        assert_eq!(joins, 0, "{text}");
        daemons.push(world.start());
        until("it has a lock", || lock(world, n).0 == 0);
    }
    daemons.remove(0).kill();
    remove(a, own(&c).host, &machines);
    std::fs::remove_dir_all(state_dir(&c)).unwrap();
    let (joins, text) = join_with(&c, &file, &code);
    assert!(joins != 0 && text.contains("a machine that came with this invitation was removed"), "{text}");
    // The one that came with it before stays, and another file lets in.
    daemons.remove(0).stop();
    daemons.push(d.start());
    until("it goes on", || lock(&d, 9).0 == 0);
    let e = machines.one_more();
    assert_eq!(machines.join(&e).0, 0);
    let _another = e.start();
    until("it takes part", || lock(&e, 10).0 == 0);
    machines.check();
}

#[test]
fn what_a_login_writes_into_the_table_of_hosts_takes_no_host_out() {
    let (machines, daemon, of_c) = with_one_removed();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let late = b.start();
    let (forger, of_b) = (Forger::with_login_of(&machines, c), own(b));
    let removals = || machines.sql("select count(*) from provost.event where kind = 'host_removed'");
    assert_eq!(removals(), "1");
    let mut n = 40;
    let mut both_go_on = || {
        for world in [a, b] {
            n += 1;
            until("it goes on", || lock(world, n).0 == 0);
        }
    };
    let print = machines.sql("select key_print from provost.repo");
    for state in ["removing", "draining"] {
        let text = [
            b"provost-host-takes-out-v1",
            &bytes(&print)[..],
            of_b.host.to_string().as_bytes(),
            state.as_bytes(),
        ]
        .concat();
        let signed = hex(of_c.pair.sign(&text).as_ref());
        let by = |host: HostId| format!("{{\"by\":\"{host}\",\"signed\":\"{signed}\"}}");
        for request in ["".to_owned(), "no JSON".to_owned(), by(of_c.host), by(own(a).host), by(of_b.host)] {
            forger.sql(&format!(
                "begin; select 1 from provost.repo for update; delete from provost.meta where id like 'out:%';
                 insert into provost.meta select id, 'out:{host}', '{request}' from provost.repo;
                 update provost.host set state = '{state}' where id = '{host}'; commit",
                host = of_b.host
            ));
            both_go_on();
        }
    }
    let (done, text) = words(b, &["delegate", "true", "--worker", "robot"]);
    assert!(done, "it takes tasks still: {text}");
    late.stop();
    forger.sql(&format!("update provost.host set state = 'removed' where id = '{}'", of_b.host));
    let late = b.start();
    both_go_on();
    assert_eq!(removals(), "1", "no other host was removed");
    machines.check();

    // Nor does it keep people from taking a host out, nor have a removed host removed again.
    late.stop();
    let out = format!("update provost.host set state = 'removed' where id = '{}'", of_b.host);
    forger.sql(&out);
    remove(a, of_b.host, &machines);
    let (done, text) = words(a, &["host", "remove", &of_b.host.to_string()[..8], "--yes"]);
    assert!(!done && text.contains("is removed already"), "{text}");
    for (n, state) in ["removing", "live"].into_iter().enumerate() {
        forger.sql(&format!("update provost.host set state = '{state}' where id = '{}'", of_b.host));
        until("it goes on", || lock(a, 70 + n).0 == 0);
    }
    assert_eq!(removals(), "2");
    drop(daemon);
}

/// Makes a host whose daemon does not run one from before there were keys: no one has enrolled it, and it knows no other host.
fn from_before(machines: &Machines, world: &World) {
    let host = own(world).host;
    machines.sql(&format!(
        "delete from provost.host_key where host = '{host}';
         insert into provost.host_before select id, '{host}' from provost.repo on conflict do nothing"
    ));
    std::fs::remove_file(state_dir(world).join("hosts.json")).unwrap();
}

#[test]
fn a_host_from_before_there_were_keys_is_out_where_the_journal_says_so_and_not_where_a_row_does() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let [a, b] = &machines.all[..] else { panic!("two") };
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    daemons.remove(1).stop();
    let (forger, of_b) = (Forger::with_login_of(&machines, b), own(b).host);
    let calls = |state: &str| {
        forger.sql(&format!("update provost.host set state = '{state}' where id = '{of_b}'"));
    };
    from_before(&machines, b);
    calls("removed");
    let late = b.start();
    until("it takes part", || lock(b, 10).0 == 0);
    until("and the other one reads it", || lock(a, 10).0 != 0);
    late.stop();

    // A person's removal counts. The word in the table before and after it counts for nothing.
    from_before(&machines, b);
    calls("removed");
    remove(a, of_b, &machines);
    for state in ["live", "down"] {
        calls(state);
        let (done, text) = words(b, UP);
        assert!(!done && text.contains("was removed from the repository"), "{state}: {text}");
    }
}

#[test]
fn another_repository_under_the_name_of_this_one_is_not_gone_on_with() {
    let (machines, daemon, _) = with_one_removed();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let forger = Forger::with_login_of(&machines, c);
    // A copy of all that was before the removal, under the name; the true one has another name.
    let columns = machines.sql(
        "select string_agg(column_name, ',') from information_schema.columns
         where table_schema = 'provost' and table_name = 'repo' and column_name not in ('id', 'name')",
    );
    forger.sql("update provost.repo set name = 'aside'");
    forger.sql(&format!(
        "insert into provost.repo (name, {columns}) select 'shop', {columns} from provost.repo"
    ));
    let removal = "(select min(seq) from provost.event where kind = 'host_removed' and repo = 1)";
    for (table, which) in [
        ("event", format!("seq < {removal}")),
        ("signature", format!("event < {removal}")),
        ("host_key", "true".to_owned()),
        ("host", "true".to_owned()),
        ("meta", "true".to_owned()),
        ("daemon", "true".to_owned()),
    ] {
        forger.sql(&format!(
            "create temp table t as select * from provost.{table} where {which};
             update t set repo = (select id from provost.repo where name = 'shop');
             insert into provost.{table} select * from t"
        ));
    }
    let (done, text) = words(b, UP);
    assert!(!done && text.contains("is not the one of this state folder"), "{text}");
    // Nor by a host that joins with a file from before.
    daemon.stop();
    let (done, text) = words(a, UP);
    assert!(!done && text.contains("is not the one of this state folder"), "{text}");
    let e = machines.one_more();
    let (joins, text) = machines.join(&e);
    assert!(joins != 0 && text.contains("is not the one of this state folder"), "{text}");
    machines.sql("update provost.repo set name = 'forged' where name = 'shop'");
    machines.sql("update provost.repo set name = 'shop' where name = 'aside'");
    std::fs::remove_file(e.path("shop.key")).unwrap();
    let (joins, text) = machines.join(&e);
    assert_eq!(joins, 0, "{text}");
    let _daemons = [a.start(), b.start(), e.start()];
    until("it goes on", || lock(&e, 60).0 == 0);
}
