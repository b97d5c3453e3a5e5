//! Users and their roles over several machines: given on one, in force on all, and checked by the others where a machine does not keep to them.

use std::time::Duration;

use provost::base::ApprovalId;
use provost::domain::{Change, EventKind, Verdict};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::commands::said;
use crate::support::forger::{Forger, bytes, hex, own, recorded};
use crate::support::machines::Machines;
use crate::support::postgres::{Between, Loses};
use crate::support::rules::ASK;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{stays, until_some, within};

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

fn lock(world: &World, n: usize) -> (i32, String) {
    let args = ["lock", "acquire", &format!("src/a.rs:f{n}")];
    let out = world.by("ada", &args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    let (code, said) = said(&out);
    (code, said.to_string())
}

/// Types a command at a terminal of this machine.
fn typed(world: &World, line: &str) -> (bool, String) {
    let out = at_the_terminal(world, line);
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
}

fn roles(world: &World) -> Vec<(bool, String)> {
    let (code, listed) = said(&world.command(&["user", "list", "--json"]).output().unwrap());
    assert_eq!(code, 0, "{listed}");
    let row = |it: &Value| (it["here"].as_bool().unwrap(), it["role"].as_str().unwrap().to_owned());
    let mut all: Vec<_> = listed["users"].as_array().unwrap().iter().map(row).collect();
    all.sort();
    all
}

fn both(other: &str, own: &str) -> Vec<(bool, String)> {
    vec![(false, other.to_owned()), (true, own.to_owned())]
}

#[test]
fn a_role_that_one_machine_gives_is_in_force_on_the_other() {
    let machines = Machines::joined(2);
    machines.all.iter().for_each(|it| it.rule(ASK));
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(roles(a), both("admin", "admin"), "without a list");
    let other = own(b).host.to_string();
    let (done, text) = typed(b, &format!("user add {} --name me --role admin", &other[..8]));
    assert!(!done && text.contains("changes your role"), "{text}");
    let out = a.command(&["user", "add", &other[..8], "--name", "bob", "--role", "viewer"]).output().unwrap();
    assert!(!out.status.success(), "a process without a terminal gives no roles: {out:?}");
    let (done, text) = typed(a, &format!("user add {} --name bob --role king", &other[..8]));
    assert!(!done && text.contains("viewer, agent, approver or admin"), "{text}");
    let (done, text) = typed(a, &format!("user add {} --name bob --role viewer", &other[..8]));
    assert!(done, "{text}");
    until("it is known there", || roles(b) == both("admin", "viewer"));
    assert_eq!(roles(a), both("viewer", "admin"));

    // A viewer changes nothing.
    let (code, text) = lock(b, 1);
    assert!(code != 0 && text.contains("is a viewer") && text.contains("an agent"), "{text}");
    let here = own(a).host.to_string();
    for (by, of, says) in [(b, &here, "no admin"), (a, &here, "host of the only admin")] {
        let (done, text) = typed(by, &format!("host drain {}", &of[..8]));
        assert!(!done && text.contains(says), "{text}");
    }
    for line in ["host invite", "host invite --role worker", "host export-key new.key"] {
        let (done, text) = typed(b, line);
        assert!(!done && text.contains("no admin, who invites others"), "{line}: {text}");
    }
    assert!(!b.repo().join("new.key").exists());
    let (done, text) = typed(a, "host invite");
    assert!(done, "{text}");
    let asker = a.client(&daemons[0], "orch:a");
    let (task, reply) = asker.delegate("shell", "true", json!({}));
    drop(reply);
    let number = until_some("it is seen there", || {
        let listed = said(&b.command(&["approval", "list", "--json"]).output().unwrap()).1;
        let rows = listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned())?;
        rows.first().map(|it| it["id"].to_string().trim_matches('"').to_owned())
    });
    let (done, text) = typed(b, &format!("approve {number}"));
    assert!(!done && text.contains("is a viewer"), "{text}");

    // An agent works, and answers nothing.
    assert!(typed(a, &format!("user role {} agent", &other[..8])).0);
    until("it works", || lock(b, 1).0 == 0);
    let (done, text) = typed(b, &format!("approve {number}"));
    assert!(!done && text.contains("is an agent") && text.contains("an approver"), "{text}");
    let (done, text) = typed(b, &format!("user role {} admin", &own(a).host.to_string()[..8]));
    assert!(!done && text.contains("an admin"), "{text}");

    // An approver does.
    assert!(typed(a, &format!("user role {} approver", &other[..8])).0);
    until("it is known there", || roles(b) == both("admin", "approver"));
    let (done, text) = typed(b, &format!("approve {number}"));
    assert!(done, "{text}");
    assert_eq!(asker.result_of(&task)["status"], "completed");

    // Off the list is no way to more, also after a restart.
    assert!(typed(a, &format!("user remove {}", &other[..8])).0);
    drop(daemons);
    let daemons = machines.start();
    assert_eq!(roles(b), both("admin", "viewer"));
    assert_ne!(lock(b, 2).0, 0);
    assert_eq!(lock(a, 2).0, 0);
    // The way on where the only admin's machine is lost.
    drop(daemons);
    machines.sql("delete from provost.host_user");
    let _daemons = machines.start();
    assert_eq!(roles(b), both("admin", "admin"));
    assert_eq!(lock(b, 3).0, 0);
    machines.check();
}

#[test]
fn no_daemon_takes_a_host_out_because_a_viewers_machine_asks_for_it() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let (of_b, of_c) = (own(b), own(c).host.to_string());
    assert!(typed(a, &format!("user add {} --name cho --role agent", &of_c[..8])).0);
    until("it is known there", || roles(b).contains(&(true, "viewer".into())));
    let print = machines.sql("select key_print from provost.repo");
    for (n, state) in ["draining", "removing"].into_iter().enumerate() {
        let text =
            [b"provost-host-takes-out-v1", &bytes(&print)[..], of_c.as_bytes(), state.as_bytes()].concat();
        let request = json!({ "by": of_b.host, "signed": hex(of_b.pair.sign(&text).as_ref()) });
        machines.sql(&format!(
            "insert into provost.meta select id, 'out:{of_c}', '{request}' from provost.repo
                on conflict (repo, id) do update set body = excluded.body;
             update provost.host set state = '{state}' where id = '{of_c}'"
        ));
        until("a turn has seen it", || lock(a, 3 * n).0 == 0 && lock(c, 3 * n + 1).0 == 0);
        // A beat of each daemon later, too.
        stays("it takes part", Duration::from_secs(4), || lock(c, 3 * n + 2).0 == 0);
    }
    assert_eq!(machines.sql("select count(*) from provost.event where kind = 'host_removed'"), "0");

    // Nor does the request keep the host from its next start, or the admin from a request.
    let listed = said(&a.command(&["host", "list", "--json"]).output().unwrap()).1;
    let row = listed["hosts"].as_array().unwrap().iter().find(|it| it["host"] == *of_c).unwrap().clone();
    assert!(row["state"] == "live" && row["claimed"] == "removing", "{row}");
    daemons.pop().unwrap().stop();
    daemons.push(c.start());
    assert_eq!(lock(c, 6).0, 0);
    assert_eq!(machines.sql(&format!("select state from provost.host where id = '{of_c}'")), "live");
    // A row of users that cannot be read is no obstacle.
    machines.sql("insert into provost.host_user select id, 'x', 'x' from provost.repo");
    let (done, text) = typed(a, &format!("host drain {}", &of_c[..8]));
    assert!(done, "{text}");
    until("it has left", || {
        machines.sql("select count(*) from provost.event where kind = 'host_removed'") == "1"
    });
    machines.sql("delete from provost.host_user where id = 'x'");
    machines.check();
}

#[test]
fn what_a_viewers_machine_answers_nevertheless_is_refused_by_the_others() {
    let machines = Machines::joined(2);
    machines.all.iter().for_each(|it| it.rule(ASK));
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let of_b = own(b);
    assert!(typed(a, &format!("user add {} --name bob --role viewer", &of_b.host.to_string()[..8])).0);
    let asker = a.client(&daemons[0], "orch:a");
    let (_task, reply) = asker.delegate("shell", "touch done.txt", json!({}));
    drop(reply);
    let number: u64 =
        until_some("it waits", || machines.sql("select min(id) from provost.approval").parse().ok());
    daemons[1].kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let forger = Forger::with_key_of(&machines, b);
    let answered = EventKind::ApprovalAnswered {
        approval: ApprovalId(number),
        verdict: Verdict::Granted,
        proof: "weak-human".into(),
        signed: None,
    };
    let itself = Change::PutUser(std::sync::Arc::new(provost::domain::User {
        host: of_b.host,
        name: "bob".into(),
        role: provost::domain::UserRole::Admin,
    }));
    for (why, events, changes) in [
        ("needs the role approver", vec![answered], vec![Change::DropApproval(ApprovalId(number))]),
        ("users are changed", vec![recorded()], vec![itself]),
    ] {
        let before =
            forger.write(of_b.host, events, changes, |text| Some(of_b.pair.sign(text).as_ref().to_vec()));
        let n = before.n + 1;
        let line = until_some("it is refused", || {
            a.log().lines().find(|it| it.contains(&format!("broken at entry {n}"))).map(str::to_owned)
        });
        assert!(line.contains(why), "{line}");
        assert!(!a.repo().join("done.txt").exists());
        daemons[0].kill();
        forger.take_out(&before);
        crate::support::forger::forget(a);
        daemons[0] = a.start();
    }
}

#[test]
fn hosts_and_users_are_listed_as_the_daemon_has_seen_them_while_the_database_is_away() {
    let machines = Machines::joined(2);
    let between = Between::at(&machines.server);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    machines.configure_at(b, &between.database(&machines.database).url);
    let mut daemons = machines.start();
    let of_a = own(a).host.to_string();
    let (done, text) = typed(b, &format!("user add {} --name ann --role approver", &of_a[..8]));
    assert!(done, "{text}");
    let listed = |args: &[&str]| {
        let out = b.command(args).env("DEVIT_NO_AUTO_START", "1").output().unwrap();
        let text = |it: Vec<u8>| String::from_utf8(it).unwrap();
        (out.status.success(), text(out.stdout), text(out.stderr))
    };
    let json = |what: &str| -> (Value, String) {
        let (done, answer, beside) = listed(&[what, "list", "--json"]);
        assert!(done, "{beside}");
        (serde_json::from_str(&answer).expect("JSON"), beside)
    };
    let known = |list: &Value| -> Vec<[Value; 5]> {
        let rows = list["hosts"].as_array().unwrap().iter();
        rows.map(|it| ["host", "machine", "role", "state", "here"].map(|name| it[name].clone())).collect()
    };
    let (before, beside) = json("host");
    assert!(before["stale_ms"].is_null() && beside.is_empty(), "{before}: {beside}");
    let (users, _) = json("user");
    assert!(users["stale_ms"].is_null(), "{users}");
    until("the daemon has seen both", || {
        let (status, seen) = crate::support::own_api::own(b, ("GET", "/hosts"), &[], &Value::Null);
        status == 200 && known(&seen) == known(&before)
    });

    between.lose(Loses::Both);
    let (now, beside) = json("host");
    assert!(now["stale_ms"].is_u64() && beside.contains("s old"), "{now}: {beside}");
    assert_eq!(known(&now), known(&before));
    assert!(
        now["hosts"].as_array().unwrap().iter().all(|it| it["version"].is_null() && it["behind"].is_null())
    );
    let (now, beside) = json("user");
    assert!(now["stale_ms"].is_u64() && beside.contains("s old"), "{now}: {beside}");
    assert_eq!(now["users"], users["users"]);
    let (done, table, beside) = listed(&["host", "list"]);
    assert!(done && table.contains(&of_a[..8]) && !table.contains("VERSION"), "{table}: {beside}");
    assert!(beside.contains("the hosts that the daemon has seen") && beside.contains("s old"), "{beside}");
    let (done, table, beside) = listed(&["user", "list"]);
    assert!(done && table.contains("ann") && beside.contains("s old"), "{table}: {beside}");

    // Without a daemon, nothing is known.
    daemons.remove(1).kill();
    for what in ["host", "user"] {
        let (done, _, beside) = listed(&[what, "list"]);
        assert!(!done && beside.contains("no daemon here has seen them"), "{beside}");
        assert!(beside.contains("provost doctor"), "{beside}");
    }
    between.lose(Loses::Nothing);
    machines.check();
}

#[test]
fn the_users_of_removed_machines_take_no_place_in_the_list() {
    let machines = Machines::joined(2);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    // As many as there may be, with the admin's own.
    let fill = "insert into provost.host_user (repo, id, body) select r.id, h.id, json_build_object('host', h.id, 'name', 'u', 'role', h.role)::text
        from provost.repo r, (select lpad(to_hex(n), 32, 'e') as id, 'agent' as role from generate_series(1, 63) n
            union all select 'OWN', 'admin') h";
    let of_a = own(a).host.to_string();
    machines.sql(&fill.replace("OWN", &of_a));
    let _daemons = machines.start();
    let add = format!("user add {} --name bob --role agent", &own(b).host.to_string()[..8]);
    let (done, text) = typed(a, &add);
    assert!(!done && text.contains("as many users as there may be hosts"), "{text}");
    machines.sql(
        "insert into provost.host (repo, id, inc, name, version, formats, state, clean, beat, head)
            select h.repo, u.id, 1, 'gone', h.version, h.formats, 'removed', false, clock_timestamp(), 0
            from provost.host_user u, provost.host h where u.id like '%eee1' and h.id = (select min(id) from provost.host)",
    );
    until("a turn has seen that one is removed", || typed(a, &add).0);
    // The one that is out gets no role any more, and is taken off the list as before.
    let gone = machines.sql("select id from provost.host where name = 'gone'");
    let (done, text) = typed(a, &format!("user role {gone} viewer"));
    assert!(!done && text.contains("that host was removed"), "{text}");
    let (done, text) = typed(a, &format!("user remove {gone}"));
    assert!(done, "{text}");
    machines.check();
}
