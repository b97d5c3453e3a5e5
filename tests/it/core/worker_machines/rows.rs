//! The rows that a machine that only works writes with its login to the database, without an entry.

use provost::store::migrate;

use super::super::tasks_of_hosts::{ask, is, until};
use super::{delegate, rules, short, with_work_machine, words};
use crate::support::forger::{Forger, own, recorded};
use crate::support::machines::Machines;
use crate::support::postgres::name_of;
use crate::support::{Daemon, UP};

#[test]
fn a_removal_is_believed_with_the_signature_of_a_host_that_may_say_so() {
    let (machines, works, mut daemons) = with_work_machine(3);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let (of_a, of_b, of_w) = (own(a).host, own(b), own(&works));
    daemons.remove(3).kill();
    daemons.remove(2).stop();
    // It has the journal's key, and a login that can add such rows.
    let forger = Forger::with_key_of(&machines, &works);
    forger.removal(of_a, Some(&of_w));
    forger.removal(of_b.host, None);
    daemons.drain(..).for_each(Daemon::stop);
    daemons.extend([a.start(), b.start()]);
    for (n, world) in [a, b, a, b].into_iter().enumerate() {
        until("each goes on with the other one", || {
            ask(world, &["lock", "acquire", &format!("src/a.rs:f{n}")]).0 == 0
        });
    }
    for world in [a, b, c] {
        let (done, text) = words(world, &["journal", "verify"]);
        assert!(done, "{text}");
    }

    // A true removal is known still to a daemon that did not run then, though the row's place is taken.
    let (code, text) = ask(a, &["host", "remove", &short(b), "--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(!daemons[1].ended().success());
    until("it is out", || machines.sql("select count(*) from provost.host where state = 'removed'") == "1");
    daemons.remove(0).stop();
    let before = forger
        .write(of_b.host, vec![recorded()], Vec::new(), |text| Some(of_b.pair.sign(text).as_ref().to_vec()));
    for world in [a, c] {
        let (done, text) = words(world, UP);
        assert!(!done && text.contains("was removed before"), "{text}");
    }
    forger.take_out(&before);
    let _daemons = [a.start(), c.start()];
    assert_eq!(ask(c, &["lock", "acquire", "src/a.rs:f20"]).0, 0);
}

#[test]
fn a_login_of_a_work_machine_writes_no_rows_of_what_such_a_machine_never_changes() {
    let machines = Machines::joined(1);
    let a = &machines.all[0];
    a.rule(&rules());
    let (name, server) = (name_of(&machines.database), &machines.server);
    assert!(
        migrate(machines.server.dir(), &machines.database, true).expect("roles").missing_roles.is_empty()
    );
    server.sql("postgres", "create role ci login in role provost_worker connection limit 10");
    let works = machines.work_machine(&["--label", "bench"]);
    let file = works.config_dir().join("provost.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&*machines.database.url), "{text}");
    works.configure(&text.replace(&*machines.database.url, &server.named("ci", &name).url));
    let mut daemons = machines.start();
    daemons.push(works.start());
    assert_eq!(
        server.sql("postgres", "select count(*) > 0 from pg_stat_activity where usename = 'ci'"),
        "t",
        "it has that login"
    );
    until("each has said what it can do", || machines.sql("select count(*) from provost.ability") == "2");
    // It does its work with it, and begins again with it.
    let on = ["--on", "bench"];
    assert_eq!(delegate(a, "far", "echo it is done; echo new >made.txt", &on).0, 0);
    assert_eq!(is(a, "far", "completed")["host"], short(&works));
    let (code, text) = ask(a, &["apply", "far"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = ask(&works, &["lock", "acquire", "src/a.rs:f1"]);
    assert_eq!(code, 0, "{text}");
    daemons.remove(1).stop();
    daemons.push(works.start());
    std::fs::remove_file(a.repo().join("made.txt")).unwrap();
    let (code, text) = delegate(a, "again", "true", &["--on", "bench", "--wait-for-host"]);
    assert_eq!(code, 0, "{text}");
    is(a, "again", "completed");
    assert!(!works.log().contains("permission denied"), "{}", works.log());

    let row = |table: &str| {
        format!("insert into provost.{table} (repo, id, body) select id, '1', '{{}}' from provost.repo")
    };
    let mut all: Vec<String> = [
        "token",
        "passkey",
        "passkey_reset",
        "daemon",
        "host_user",
        "push",
        "job",
        "job_order",
        "job_result",
        "switched",
    ]
    .map(|it| format!("{} on conflict do nothing", row(it)))
    .into();
    all.push("insert into provost.merge_entry (repo, id, body) select id, 1, '{}' from provost.repo".into());
    all.extend(["token", "passkey", "host_user", "job"].map(|it| format!("delete from provost.{it}")));
    all.extend(
        ["token", "passkey", "host_user", "job"].map(|it| format!("update provost.{it} set body = '{{}}'")),
    );
    all.push("update provost.event set body = 'x' where false".into());
    all.push("update provost.host_key set body = 'x' where false".into());
    all.push("delete from provost.repo where false".into());
    for sql in all {
        let tried = |role: &str| server.says(&name, &format!("begin; {role} {sql}; rollback"));
        assert!(tried("").is_some(), "a statement that the owner may do: {sql}");
        assert!(tried("set local role ci;").is_none(), "{sql}");
    }
    machines.check();
}
