//! Daemons of several machines whose server, network or clocks have faults: disks that are really full, partitions that lose one direction,
//! poolers, and clocks that are minutes apart. After each of them the histories of all clients and the log of
//! all hosts are checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::clocks::Clocks;
use crate::support::commands::said;
use crate::support::histories::{Clients, reads_go_on, says};
use crate::support::machines::Machines;
use crate::support::own_api::own;
use crate::support::pgbouncer::Pooler;
use crate::support::postgres::{Between, Loses, OnDisk, Server};
use crate::support::rules::ASK;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{Ends, stays, until_some, within};
use crate::support::{Daemon, UP, World};

const MINUTE: i64 = 60;

/// Waits for something that takes a burial, a restart, or less.
fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// Clients of each machine.
fn clients(machines: &Machines) -> Vec<Clients<'_>> {
    machines.all.iter().zip(["a", "b", "c"]).map(|(world, name)| Clients::named(world, name)).collect()
}

/// Asks a machine's daemon for a lock on a function; whether it was granted, with its end.
fn lock(world: &World, agent: &str, n: usize, ttl: Duration) -> Option<i64> {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap();
    let body = json!({ "symbol": format!("src/a.rs:f{n}"), "ttl_ms": ttl_ms });
    let (status, answer) = own(world, ("POST", "/lock"), &[("x-provost-agent", agent)], &body);
    (status == 200).then(|| time(&answer["lock"]["until"]))
}

/// A time that a door has told, in milliseconds.
fn time(told: &Value) -> i64 {
    let told = told.as_str().unwrap_or_else(|| panic!("no time: {told}"));
    chrono::DateTime::parse_from_rfc3339(told)
        .unwrap_or_else(|_| panic!("no time: {told}"))
        .timestamp_millis()
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// None was taken for dead.
fn all_live(machines: &Machines) {
    assert_eq!(machines.sql("select count(*) from provost.event where body like '%host.down%'"), "0");
    let live = machines.sql("select count(*) from provost.host where state = 'live'");
    assert_eq!(live, machines.all.len().to_string());
}

/// Times of log and journal never go back.
fn times_rise(machines: &Machines) {
    for sql in [
        "select count(*) from (select at - lag(at) over (order by n) as step from provost.entry) s where step < 0",
        "select count(*) from (select at - lag(at) over (order by seq) as step from provost.event) s where step < 0",
    ] {
        assert_eq!(machines.sql(sql), "0", "{sql}");
    }
}

/// A full disk of the server: what every case has in common.
fn fills_and_gets_room(what: OnDisk, (mib, taken): (u32, u32), told: &str) {
    let mut machines = Machines::joined_at(Server::on_small_disk(what, mib, taken), 2);
    let _daemons = machines.start();
    let worlds: Vec<World> = std::mem::take(&mut machines.all);
    let all: Vec<Clients<'_>> =
        worlds.iter().zip(["a", "b"]).map(|(world, name)| Clients::named(world, name)).collect();
    let server = &mut machines.server;
    Clients::during_all(&all, || {
        server.fill(256);
        for (clients, world) in all.iter().zip(&worlds) {
            until("writes are refused with a sentence", || clients.was_told(told));
            reads_go_on(world);
        }
        assert!(server.log().contains("No space left on device"), "{}", server.log());
        assert!(server.disk().left() < 16 << 10, "{} KiB are left", server.disk().left());
        let shown = match what {
            OnDisk::Tables => "no space is left",
            OnDisk::Wal => "the database does not answer",
        };
        for place in ["status", "doctor"] {
            // A beat needs no more room than it had, after which the daemon tries once more.
            until("it is told", || says(&worlds[0], &[place]).1.contains(shown));
        }
        server.disk().make_room();
        // Without room for its log the server has ended its sessions, and itself where it found none when it began again.
        if what == OnDisk::Wal {
            within(Duration::from_secs(5), || server.has_ended());
            server.kill();
            server.resume();
        }
        all.iter().for_each(Clients::goes_on);
    });
    all.iter().for_each(|it| assert!(it.refusals() > 0));
    Clients::check_all(&all);
    drop(all);
    machines.all = worlds;
    machines.check();
}

#[test]
fn a_full_disk_under_the_servers_tables_refuses_batches_and_loses_nothing() {
    fills_and_gets_room(OnDisk::Tables, (110, 24), "no space is left for the shared store");
}

#[test]
fn a_full_disk_under_the_servers_log_ends_it_and_loses_nothing() {
    fills_and_gets_room(OnDisk::Wal, (96, 40), "the shared store does not answer");
}

/// Starts the daemons of two machines, each with a clock of its own: 37 minutes behind, and 42 ahead.
fn with_clocks_apart(machines: &Machines) -> ([Clocks; 2], Vec<Daemon>) {
    let clocks = [0, 1].map(|it| Clocks::in_folder(&machines.all[it].path("")));
    clocks[0].set(-37 * MINUTE, 0);
    clocks[1].set(42 * MINUTE, 0);
    let start = |(world, clocks): (&World, &Clocks)| {
        let mut command = world.command(UP);
        clocks.give(&mut command);
        world.start_as(command)
    };
    let daemons = machines.all.iter().zip(&clocks).map(start).collect();
    (clocks, daemons)
}

/// The number of a question that a machine shows.
fn question_at(world: &World) -> String {
    until_some("it is seen there", || {
        let out = world.command(&["approval", "list", "--json"]).output().unwrap();
        let listed = said(&out).1;
        let rows = listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned())?;
        rows.first().map(|it| it["id"].to_string().trim_matches('"').to_owned())
    })
}

#[test]
fn hosts_whose_clocks_are_minutes_apart_go_by_the_servers() {
    let began = now();
    let machines = Machines::joined(2);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    for world in [a, b] {
        world.rule(&format!("{ASK}approve.expires = \"5s\"\n"));
    }
    let (clocks, daemons) = with_clocks_apart(&machines);

    // A lease lasts as long on each: neither the one behind prolongs it, nor the one ahead ends it.
    let since = Instant::now();
    let end = lock(a, "ada", 0, Duration::from_secs(6)).expect("a lock");
    assert!((end - now()).abs() < 10_000, "it ends at {end}, and it is {}", now());
    until("the other machine has it", || b.locked() == ["src/a.rs:f0"]);
    assert_eq!(lock(b, "bob", 0, Duration::from_secs(6)), None, "it is held");
    until("its time is up", || lock(b, "bob", 0, Duration::from_secs(6)).is_some());
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(5_900) && took < Duration::from_secs(30), "after {took:?}");
    let end = lock(b, "bob", 1, Duration::from_secs(1_800)).expect("a lock");
    assert!((end - now() - 1_800_000).abs() < 10_000, "it ends at {end}, and it is {}", now());
    assert_eq!(lock(a, "ada", 1, Duration::from_secs(1_800)), None, "it is held");

    // A question's time is up when it is by the server's clock.
    let delegate = |world: &World| {
        said(
            &world
                .by("ada", &["delegate", "true", "--worker", "shell"])
                .env("DEVIT_NO_AUTO_START", "1")
                .output()
                .unwrap(),
        )
    };
    delegate(a);
    let events = |kind: &str| format!("select count(*) from provost.event where kind = '{kind}'");
    until("it is asked", || machines.sql(&events("approval_asked")) == "1");
    until("its time is up", || machines.sql(&events("approval_expired")) == "1");
    let took = machines.sql(
        "select (select at from provost.event where kind = 'approval_expired') - (select at from provost.event where kind = 'approval_asked')",
    );
    let took: i64 = took.parse().unwrap();
    assert!((5_000..30_000).contains(&took), "after {took} ms");

    // Both clocks are set while the daemons work.
    clocks[0].set(50 * MINUTE, 0);
    clocks[1].set(-50 * MINUTE, 0);
    stays("the lease goes on", Duration::from_secs(6), || {
        lock(a, "ada", 1, Duration::from_secs(1_800)).is_none()
            && lock(a, "ada", 2, Duration::from_secs(60)).is_some()
    });
    for world in [a, b] {
        world.rule(&format!("{ASK}approve.expires = \"10m\"\n"));
        let _ = says(world, &["daemon", "reload"]);
    }
    delegate(a);
    let number = question_at(b);
    let answered = at_the_terminal(b, &format!("approve {number} --note because"));
    assert!(answered.status.success(), "{answered:?}");
    until("it is answered", || machines.sql(&events("approval_answered")) == "1");

    all_live(&machines);
    times_rise(&machines);
    let odd = format!(
        "select coalesce(string_agg(what || ' ' || (at - {began}) || ' ms', ', '), '') from (
            select 'entry ' || n as what, at from provost.entry union all select kind || ' ' || seq, at from provost.event
         ) as it where at < {began} or at > {}",
        // A task may end while the database is asked.
        now() + 10_000
    );
    assert_eq!(machines.sql(&odd), "", "times of log and journal are the server's");
    daemons.into_iter().for_each(Daemon::stop);
    machines.check();
}

#[test]
fn a_servers_clock_that_is_set_takes_no_host_for_dead_and_no_time_back() {
    let machines = Machines::joined_at(Server::with_clocks(), 2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert!(lock(a, "ada", 0, Duration::from_secs(7_200)).is_some());
    assert!(lock(a, "ada", 1, Duration::from_secs(600)).is_some());

    // Set back: time goes on from where it was, at the daemons' own pace.
    machines.server.set_clock(-30 * MINUTE);
    let since = Instant::now();
    assert!(lock(a, "ada", 2, Duration::from_secs(6)).is_some());
    assert_eq!(lock(b, "bob", 2, Duration::from_secs(6)), None, "it is held");
    until("its time is up", || lock(b, "bob", 2, Duration::from_secs(6)).is_some());
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(5_900) && took < Duration::from_secs(30), "after {took:?}");
    // A daemon that starts now knows no earlier time.
    daemons.pop().expect("two").stop();
    let _back = b.start();
    assert!(lock(b, "bob", 3, Duration::from_secs(60)).is_some());
    assert_eq!(lock(b, "bob", 1, Duration::from_secs(60)), None, "it is held");
    times_rise(&machines);

    // Set ahead: what has ended by that clock has ended, and nothing more.
    machines.server.set_clock(30 * MINUTE);
    until("its time is up", || lock(b, "bob", 1, Duration::from_secs(60)).is_some());
    assert_eq!(lock(b, "bob", 0, Duration::from_secs(60)), None, "it is held");
    stays("both go on", Duration::from_secs(20), || {
        lock(a, "ada", 4, Duration::from_secs(60)).is_some()
            && lock(b, "bob", 5, Duration::from_secs(60)).is_some()
    });
    assert_eq!(machines.sql("select count(*) from provost.event where body like '%host.down%'"), "0");
    times_rise(&machines);
    machines.check();
}

#[test]
fn a_machine_whose_way_to_the_server_loses_one_direction_stops_no_other() {
    let machines = Machines::joined(3);
    let between = Between::at(&machines.server);
    let third = &machines.all[2];
    machines.configure_at(third, &between.database(&machines.database).url);
    let _daemons = machines.start();
    let all = clients(&machines);
    Clients::during_all(&all, || {
        for lost in [Loses::Answers, Loses::Questions, Loses::Both] {
            let before = all[2].refusals();
            between.lose(lost);
            until("its writes are refused", || all[2].refusals() > before);
            reads_go_on(third);
            all[..2].iter().for_each(Clients::goes_on);
            between.lose(Loses::Nothing);
            all.iter().for_each(Clients::goes_on);
        }
    });
    // A session that was cut off may have had the row, until the server ends it.
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    all_live(&machines);

    // For longer than a host may be silent, in one direction alone.
    between.lose(Loses::Answers);
    let down = "select count(*) from provost.host where state = 'down'";
    until("it is taken for dead", || machines.sql(down) == "1");
    let host = machines.sql("select id from provost.host where state = 'down'");
    let inc = machines.sql("select inc from provost.host where state = 'down'");
    let entries = format!("select count(*) from provost.entry where host = '{host}' and inc = {inc}");
    let before = machines.sql(&entries);
    assert!(all[0].take() && all[1].take());
    between.lose(Loses::Nothing);
    until("it takes part again", || all[2].take());
    assert!(third.log().contains("taken this one for dead"), "{}", third.log());
    assert_eq!(machines.sql(&entries), before, "as what it was, it has written nothing more");
    Clients::check_all(&all);
    machines.check();
}

#[test]
fn machines_behind_a_pooler_with_sessions_share_one_repository_and_behind_another_are_refused() {
    let machines = Machines::joined(2);
    let pooler = Pooler::at(&machines.server, "session");
    let (a, b) = (&machines.all[0], &machines.all[1]);
    for mode in ["transaction", "statement"] {
        let other = Pooler::at(&machines.server, mode);
        machines.configure_at(b, &other.database(&machines.database).url);
        let (code, text) = says(b, UP);
        assert!(code != 0 && text.contains("pool_mode = session"), "{mode}: {text}");
    }
    for world in [a, b] {
        machines.configure_at(world, &pooler.database(&machines.database).url);
    }
    let _daemons = machines.start();
    assert!(lock(a, "ada", 0, Duration::from_secs(600)).is_some());
    let waits = b.begin("bob", &["lock", "acquire", "src/a.rs:f0", "--wait", "60s"]);
    until("who waits there is seen here", || a.waiting() == ["bob"]);
    let since = Instant::now();
    assert_eq!(said(&a.by("ada", &["lock", "release", "src/a.rs:f0"]).output().unwrap()).0, 0);
    let (code, got) = said(&waits.wait_with_output().unwrap());
    assert_eq!(code, 0, "{got}");
    // A beat takes three seconds: words go through the pooler, too.
    assert!(since.elapsed() < Duration::from_millis(2_500), "after {:?}", since.elapsed());
    let all = clients(&machines);
    Clients::during_all(&all, || {
        machines.server.end_sessions();
        all.iter().for_each(Clients::goes_on);
    });
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    all_live(&machines);
    machines.check();
}

#[test]
fn a_hundred_connections_too_many_at_the_server_are_said_and_lose_nothing() {
    let machines = Machines::joined(3);
    let _daemons = machines.start();
    let all = clients(&machines);
    let entries = || machines.sql("select count(*) from provost.entry").parse::<u64>().unwrap();
    Clients::during_all(&all, || {
        for round in 1..=2 {
            // The server has room for sixty sessions.
            let many = machines.server.crowd(160);
            machines.server.end_sessions();
            for (clients, world) in all.iter().zip(&machines.all) {
                let before = clients.refusals();
                let mut ended = Instant::now();
                until("its writes are refused with a sentence", || {
                    // A host may have been quicker than the crowd, and has a session again.
                    if ended.elapsed() > Duration::from_secs(3) {
                        machines.server.end_sessions();
                        ended = Instant::now();
                    }
                    clients.refusals() > before
                });
                reads_go_on(world);
            }
            // A server as busy as that is too late for a host at times, which is what the host says then.
            let told = || all.iter().map(|it| it.told("no connection left for this host")).sum::<usize>();
            let before = told();
            within(Duration::from_secs(20), || told() > before);
            if told() > before {
                let says_so = || {
                    machines.all.iter().any(|it| says(it, &["status"]).1.contains("raise `max_connections`"))
                };
                assert!(within(Duration::from_secs(20), says_so), "round {round}");
            }
            drop(many);
            all.iter().for_each(Clients::goes_on);
            let before = entries();
            until("all write again", || entries() > before + 20);
            let is_over =
                || machines.all.iter().all(|it| !says(it, &["status"]).1.contains("max_connections"));
            until("none says so any more", is_over);
        }
    });
    // A host that got no session while another one had one may have been taken for dead; it takes part again all the same.
    assert!(all.iter().all(|it| it.refusals() > 0));
    Clients::check_all(&all);
    machines.check();
}

#[test]
fn machines_and_a_server_that_stand_still_for_a_moment_cost_refusals_and_nothing_else() {
    let machines = Machines::joined(3);
    let daemons = machines.start();
    let all = clients(&machines);
    let (slow, ends) = (daemons[2].pid(), AtomicBool::new(false));
    Clients::during_all(&all, || {
        for (stopped, daemon) in daemons.iter().enumerate() {
            signal(daemon.pid(), "-STOP");
            // It may have had the row, which the server takes back after two seconds.
            let others = all.iter().enumerate().filter(|(it, _)| *it != stopped);
            others.for_each(|(_, it)| it.goes_on());
            signal(daemon.pid(), "-CONT");
            all.iter().for_each(Clients::goes_on);
        }
        let before: Vec<usize> = all.iter().map(Clients::refusals).collect();
        machines.server.hang(true);
        for ((clients, before), world) in all.iter().zip(before).zip(&machines.all) {
            until("its writes are refused", || clients.refusals() > before);
            reads_go_on(world);
        }
        machines.server.hang(false);
        all.iter().for_each(Clients::goes_on);
        // One runs for half of the time, in pieces.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let is_over = || within(Duration::from_millis(50), || ends.load(Ordering::Relaxed));
                while !is_over() {
                    signal(slow, "-STOP");
                    within(Duration::from_millis(50), || false);
                    signal(slow, "-CONT");
                }
            });
            let _ends = Ends(&ends);
            (0..5).for_each(|_| all.iter().for_each(Clients::goes_on));
        });
    });
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    all_live(&machines);
    machines.check();
}

fn signal(pid: u32, name: &str) {
    let done = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(done.expect("kill").success());
}
