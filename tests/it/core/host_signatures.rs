//! The authors of entries in the shared log: hosts sign, and all others refuse an entry that the named host has not signed, also from a
//! host that has the journal's key and a login to the database.

mod removed;
mod rows;

use std::time::Duration;

use provost::base::HostId;
use serde_json::Value;

use crate::support::commands::said;
use crate::support::forger::{Forger, bytes, own, recorded};
use crate::support::machines::{Machines, join_with, state_dir};
use crate::support::waits::{until_some, within};
use crate::support::{UP, World};

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

fn lock(world: &World, n: usize) -> (i32, Value) {
    let args = ["lock", "acquire", &format!("src/a.rs:f{n}")];
    said(&world.by("ada", &args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs"))
}

/// A machine writes nothing more, and says which entry and which host.
fn refuses(world: &World, n: u64, named: HostId, why: &str) {
    until("it writes nothing more", || lock(world, 50).0 != 0);
    let log = until_some("it says why", || {
        let log = world.log();
        log.contains(&format!("broken at entry {n}")).then_some(log)
    });
    let line = log.lines().rfind(|it| it.contains(&format!("broken at entry {n}"))).unwrap().to_owned();
    assert!(line.contains(&named.to_string()[..8]) && line.contains(why), "{line}");
    let said = world.command(&["status", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains(&format!("broken at entry {n}")), "{text}");
}

#[test]
fn what_a_host_has_not_signed_is_folded_by_no_other_one() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let (of_a, of_b) = (own(a), own(b));
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, n).0 == 0);
    }
    // Its daemon is ended, and what its machine knows is used without it.
    daemons[1].kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let forger = Forger::with_key_of(&machines, b);
    machines.sql("alter table provost.entry drop constraint entry_is_signed");
    let old = machines.sql(&format!(
        "select encode(sig, 'hex') from provost.entry where host = '{}' order by n desc limit 1",
        of_a.host
    ));
    type Sign<'a> = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + 'a>;
    let attacks: [(&str, HostId, Sign<'_>); 5] = [
        ("has not signed it", of_a.host, Box::new(|text| Some(of_b.pair.sign(text).as_ref().to_vec()))),
        ("is missing", of_a.host, Box::new(|_| None)),
        ("has not signed it", of_a.host, Box::new(|_| Some(bytes(&old)))),
        (
            "has not signed it",
            of_a.host,
            Box::new(|text| {
                let mut cut = of_a.pair.sign(text).as_ref().to_vec();
                cut.truncate(63);
                Some(cut)
            }),
        ),
        ("is no member", HostId::of(7), Box::new(|text| Some(of_b.pair.sign(text).as_ref().to_vec()))),
    ];
    for (why, named, sign) in attacks {
        let before = forger.write(named, vec![recorded()], Vec::new(), sign);
        for world in [a, c] {
            refuses(world, before.n + 1, named, why);
        }
        let out = a.command(&["journal", "verify"]).output().unwrap();
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(!out.status.success(), "it is found without a daemon, too: {text}");
        // A start believes no more than a daemon that runs.
        daemons[2].kill();
        let out = c.command(UP).output().unwrap();
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(!out.status.success() && text.contains("broken at entry"), "{text}");
        forger.take_out(&before);
        daemons[2] = c.start();
        for world in [a, c] {
            until("it goes on without it", || lock(world, 60).0 != 1 && lock(world, 60).0 != 3);
        }
    }
    // The one who was named can do it.
    forger
        .write(of_a.host, vec![recorded()], Vec::new(), |text| Some(of_a.pair.sign(text).as_ref().to_vec()));
    until("what is signed is folded", || lock(c, 70).0 == 0);
    machines.check();
}

#[test]
fn a_removed_host_signs_nothing_any_more_and_joins_with_no_key_of_its_own() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let of_c = own(c);
    let args = ["host", "remove", &of_c.host.to_string()[..8], "--yes"];
    let out = a.command(&args).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert!(!daemons[2].ended().success());
    assert!(c.log().contains("run `provost host join`"), "{}", c.log());
    until("it is out", || {
        machines.sql("select count(*) from provost.event where kind = 'host_removed'") == "1"
    });
    // Its login is good still, and it gives itself its place in the table of hosts back.
    machines.sql(&format!("update provost.host set state = 'live' where id = '{}'", of_c.host));
    let out = c.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("was removed"), "{text}");

    machines.sql(&format!("update provost.host set state = 'removed' where id = '{}'", of_c.host));
    let forger = Forger::with_key_of(&machines, c);
    let before = forger
        .write(of_c.host, vec![recorded()], Vec::new(), |text| Some(of_c.pair.sign(text).as_ref().to_vec()));
    for world in [a, b] {
        refuses(world, before.n + 1, of_c.host, "was removed before");
    }
    forger.take_out(&before);
    until("they go on", || lock(a, 60).0 == 0);

    // With what it knows it invites no host, and its key makes none.
    let file = c.path("more.key").display().to_string();
    let exported = c.command(&["host", "export-key", &file, "--json"]).output().unwrap();
    let code = said(&exported).1["code"].as_str().unwrap().to_owned();
    let d = machines.one_more();
    let (joins, text) = join_with(&d, &file, &code);
    assert!(joins != 0 && text.contains("that has invited was removed"), "{text}");
    let e = machines.one_more();
    let (joins, text) = machines.join(&e);
    assert_eq!(joins, 0, "{text}");
    let folder = state_dir(&e);
    std::fs::remove_file(folder.join("hosts.json")).unwrap();
    let out = e.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("a copied journal key is no invitation"), "{text}");
    machines.check();
}

#[test]
fn hosts_are_shown_with_their_keys_and_a_file_lets_one_in() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let prints = |world: &World| {
        let listed = said(&world.command(&["host", "list", "--json"]).output().unwrap()).1;
        let all = listed["hosts"].as_array().unwrap();
        all.iter().map(|it| it["key"].as_str().expect("a fingerprint").to_owned()).collect::<Vec<_>>()
    };
    let seen = prints(a);
    assert!(seen.len() == 2 && seen[0] != seen[1] && seen == prints(b), "{seen:?}");
    let mode = |name: &str| {
        let about = std::fs::metadata(state_dir(a).join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777
    };
    assert_eq!((mode("host.key"), mode("hosts.json")), (0o600, 0o600));

    let (c, d) = (machines.one_more(), machines.one_more());
    let file = c.path("shop.key").display().to_string();
    let exported = a.command(&["host", "export-key", &file, "--json"]).output().unwrap();
    let code = said(&exported).1["code"].as_str().unwrap().to_owned();
    assert_eq!(join_with(&c, &file, &code).0, 0);
    assert_eq!(join_with(&d, &file, &code).0, 0);
    let _third = c.start();
    assert_eq!(lock(&c, 1).0, 0);
    let out = d.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("has let in as many machines as it may (1)"), "{text}");
    let e = machines.one_more();
    let (joins, text) = join_with(&e, &file, &code);
    assert!(joins != 0 && text.contains("has let in as many machines as it may (1)"), "{text}");
    // A host without its key is none.
    assert_eq!(lock(a, 2).0, 0);
    machines.check();
}

#[test]
fn a_host_without_its_key_does_not_start() {
    let machines = Machines::joined(2);
    let b = &machines.all[1];
    b.start().stop();
    let key = state_dir(b).join("host.key");
    let aside = key.with_extension("aside");
    std::fs::rename(&key, &aside).unwrap();
    let out = b.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("host.key is missing"), "{text}");
    std::fs::copy(state_dir(&machines.all[0]).join("host.key"), &key).unwrap();
    let out = b.command(UP).output().unwrap();
    assert!(!out.status.success(), "the key of another host is none");
    std::fs::rename(&aside, &key).unwrap();
    b.start().stop();
    machines.check();
}
