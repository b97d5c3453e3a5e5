//! Daemons of several machines on one repository, over one PostgreSQL: what one does the others go by, and what is left when one of them
//! dies, stands still, or the server goes away for all.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::commands::said;
use crate::support::histories::{Clients, says};
use crate::support::machines::{Machines, git, join_with};
use crate::support::postgres::{Between, Loses};
use crate::support::rules::ASK;
use crate::support::terminal::at_the_terminal;
use crate::support::told::{COUNTING, metric};
use crate::support::waits::{Ends, stays, until_some, within};
use crate::support::{Client, Connection, Daemon, Reply, UP, World, fresh, read_line};

/// Waits for something that takes a burial, a restart, or less.
fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

fn symbol(n: usize) -> String {
    format!("src/a.rs:f{n}")
}

/// Starts no daemon by itself.
fn ask(world: &World, agent: &str, args: &[&str]) -> (i32, Value) {
    said(&world.by(agent, args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs"))
}

fn lock(world: &World, agent: &str, n: usize) -> (i32, Value) {
    ask(world, agent, &["lock", "acquire", &symbol(n)])
}

fn release(world: &World, agent: &str, n: usize) -> i32 {
    ask(world, agent, &["lock", "release", &symbol(n)]).0
}

pub(super) fn signal(daemon: &Daemon, name: &str) {
    let done = std::process::Command::new("kill").args([name, &daemon.pid().to_string()]).status();
    assert!(done.expect("kill").success());
}

/// Stops the process of a daemon while no daemon has a turn: the server ends the session of one that stands still in its turn.
fn stands_still(machines: &Machines, daemon: &Daemon) {
    let turns =
        "select count(*) from pg_stat_activity where application_name like 'provost/%' and state <> 'idle'";
    until("it stands still beside its turns", || {
        signal(daemon, "-STOP");
        let has_none = machines.sql(turns) == "0";
        if !has_none {
            signal(daemon, "-CONT");
        }
        has_none
    });
}

/// The hosts as a machine lists them: their states, by machine's own host or not.
fn states(world: &World) -> BTreeMap<bool, Vec<String>> {
    let out = world.command(&["host", "list", "--json"]).output().unwrap();
    let (code, listed) = said(&out);
    assert_eq!(code, 0, "{listed}");
    let mut states: BTreeMap<bool, Vec<String>> = BTreeMap::new();
    for it in listed["hosts"].as_array().unwrap() {
        let own = it["here"].as_bool().unwrap();
        states.entry(own).or_default().push(it["state"].as_str().unwrap().to_owned());
    }
    states
}

#[test]
fn a_lock_of_one_machine_is_refused_on_the_other_and_reaches_who_waits_there_at_once() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(lock(a, "ada", 0).0, 0);
    until("the other machine has it", || b.locked() == [symbol(0)]);
    let (code, answer) = lock(b, "bob", 0);
    assert!(code == 5 && answer.to_string().contains("ada"), "{code}: {answer}");

    let waits = b.begin("bob", &["lock", "acquire", &symbol(0), "--wait", "60s"]);
    until("who waits there is seen here", || a.waiting() == ["bob"]);
    let since = Instant::now();
    assert_eq!(release(a, "ada", 0), 0);
    let got = said(&waits.wait_with_output().unwrap());
    assert_eq!(got.0, 0, "{}", got.1);
    // A beat takes three seconds: the word of the other daemon came before.
    assert!(since.elapsed() < Duration::from_millis(2_500), "after {:?}", since.elapsed());
    assert_eq!(lock(a, "ada", 0).0, 5);
    let events = machines
        .sql("select count(distinct body::json->>'host') from provost.event where kind = 'lock_acquired'");
    assert_eq!(events, "2", "each event says whose daemon decided it");
    machines.check();
}

#[test]
fn mail_is_delivered_once_over_all_machines() {
    let machines = Machines::joined(2);
    let daemons = machines.start();
    let clients = |ident: &str| -> Vec<_> {
        machines.all.iter().zip(&daemons).map(|(world, daemon)| world.client(daemon, ident)).collect()
    };
    let both = machines.all.iter().zip(&daemons).zip(["orch:a", "orch:b"]);
    let askers: Vec<_> = both.map(|((world, daemon), ident)| world.client(daemon, ident)).collect();
    let mut tasks = BTreeSet::new();
    for n in 0..20 {
        let (task, reply) = askers[n % 2].delegate("robot", "do it", json!({}));
        reply.ack();
        tasks.insert(task);
    }
    let got: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for robot in clients("robot") {
            let got = &got;
            scope.spawn(move || {
                let end = Instant::now() + Duration::from_secs(60);
                while Instant::now() < end && got.lock().unwrap().len() < 20 {
                    if let Reply::Message(message) = robot.poll() {
                        let text = message.to_string();
                        let task = text.split('"').find(|it| it.starts_with("task")).map(str::to_owned);
                        got.lock().unwrap().push(
                            message["payload"]["task_id"]
                                .as_str()
                                .map_or_else(|| task.unwrap_or(text), str::to_owned),
                        );
                    }
                }
            });
        }
    });
    let got = got.into_inner().unwrap();
    assert_eq!(got.len(), 20, "{got:?}");
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 20, "none twice: {got:?}");
    machines.check();
}

#[test]
fn an_approval_is_answered_on_the_other_machine_and_the_work_is_done_where_it_was_asked() {
    let machines = Machines::joined(2);
    machines.all.iter().for_each(|it| it.rule(ASK));
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let asker = a.client(&daemons[0], "orch:a");
    let (task, reply) = asker.delegate("shell", "pwd > where.txt; cat where.txt", json!({}));
    drop(reply);
    let number = until_some("it is seen there", || {
        let out = b.command(&["approval", "list", "--json"]).output().unwrap();
        let listed = said(&out).1;
        let rows = listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned())?;
        rows.first().map(|it| it["id"].to_string().trim_matches('"').to_owned())
    });
    let answered = at_the_terminal(b, &format!("approve {number} --note because"));
    assert!(answered.status.success(), "{answered:?}");
    let result = asker.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let by = machines
        .sql("select distinct e.body::json->>'host' from provost.event e where e.kind = 'task_started'");
    let first = machines
        .sql("select distinct e.body::json->>'host' from provost.event e where e.kind = 'approval_asked'");
    let second = machines
        .sql("select distinct e.body::json->>'host' from provost.event e where e.kind = 'approval_answered'");
    assert!(by == first && by != second, "asked at {first}, answered at {second}, begun at {by}");
    assert_eq!(machines.sql("select count(*) from provost.effect"), "0");
    machines.check();
}

#[test]
fn a_machine_that_dies_is_buried_and_the_others_go_on() {
    let machines = Machines::joined(3);
    machines.all.iter().for_each(|it| machines.configure_with_url(it, &machines.database.url, COUNTING));
    let mut daemons = machines.start();
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    assert_eq!(lock(b, "bob", 0).0, 0, "a lock without a process stays");
    assert_eq!(lock(a, "ada", 1).0, 0);
    // On the machine that is to die, one waits, and a task runs.
    let mut waits = c.begin("eve", &["lock", "acquire", &symbol(1), "--wait", "120s"]);
    until("it waits", || a.waiting() == ["eve"]);
    let asker = c.client(&daemons[2], "orch:c");
    let (task, reply) = asker.delegate("shell", "sleep 300", json!({ "timeout": 300 }));
    reply.ack();
    let running = "select count(*) from provost.event where kind = 'task_started'";
    until("the task runs", || machines.sql(running) == "1");
    daemons[2].kill();
    let since = Instant::now();
    // Who is left works meanwhile.
    let mut n = 10;
    until("it is buried", || {
        let (code, said) = lock(a, "ada", n);
        assert_eq!(code, 0, "the others go on: {said}");
        n += 1;
        states(a)[&false].contains(&"down".to_owned())
    });
    let took = since.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(60), "after {took:?}");
    assert_eq!(a.waiting(), Vec::<String>::new(), "who waited there has left");
    let finished = machines.sql(&format!("select status from provost.task where id = '{task}' and not live"));
    assert_eq!(finished, "failed", "its task is lost");
    assert_eq!(machines.sql("select count(*) from provost.effect"), "0", "nothing is owed by it");
    assert!(a.locked().contains(&symbol(0)));
    let _ = waits.kill();
    let _ = waits.wait();
    let buried = "select count(*) from provost.event where body like '%host.down%'";
    assert_eq!(machines.sql(buried), "1", "once, by one of them");
    let found = |it| metric(it, "provost_hosts_buried_total").expect("it counts");
    assert_eq!(found(a) + found(b), 1.0);
    assert!(
        metric(a, "provost_batch_fold_seconds_count").is_some_and(|it| it > 0.0),
        "it has read the entries of the others"
    );
    // It comes back as another incarnation, and takes part.
    let _back = c.start();
    assert_eq!(lock(c, "eve", 5).0, 0);
    assert_eq!(lock(c, "eve", 1).0, 5);
    machines.check();
}

#[test]
fn a_machine_that_stood_still_is_buried_and_takes_part_again_by_itself_with_nothing_of_before() {
    let machines = Machines::joined(2);
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(lock(b, "bob", 0).0, 0);
    let runner = b.client(&daemons[1], "orch:b");
    let (task, reply) = runner.delegate("shell", "sleep 300", json!({ "timeout": 300 }));
    reply.ack();
    let running = "select count(*) from provost.event where kind = 'task_started'";
    until("the task runs", || machines.sql(running) == "1");
    signal(&daemons[1], "-STOP");
    until("it is buried", || states(a)[&false] == ["down"]);
    let host = machines.sql("select id from provost.host where state = 'down'");
    let was =
        "select inc from provost.host where id <> (select host from provost.host_key where what = 'first')";
    let was = machines.sql(was);
    let entries = format!("select count(*) from provost.entry where host = '{host}' and inc = {was}");
    let before = machines.sql(&entries);
    // What it is asked meanwhile is asked of a process that stands still.
    let mut late = b.by("bob", &["lock", "acquire", &symbol(1)]);
    late.env("DEVIT_NO_AUTO_START", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let late = late.spawn().unwrap();
    signal(&daemons[1], "-CONT");
    until("it takes part again by itself", || states(a)[&false] == ["live"]);
    assert!(b.log().contains("taken this one for dead"), "{}", b.log());
    assert!(std::fs::read_dir(format!("/proc/{}", daemons[1].pid())).is_ok(), "in its own process");
    let (code, answer) = said(&late.wait_with_output().unwrap());
    assert!(code != 0, "{answer}");
    assert_eq!(machines.sql(&entries), before, "it has written nothing more");
    assert!(!a.locked().contains(&symbol(1)));
    until("it writes again", || lock(b, "bob", 1).0 == 0);
    let now = machines.sql(&format!("select inc from provost.host where id = '{host}'"));
    assert!(now.parse::<u64>().unwrap() > was.parse::<u64>().unwrap(), "{now} after {was}");
    let finished = machines.sql(&format!("select status from provost.task where id = '{task}' and not live"));
    assert_eq!(finished, "failed", "its task is lost");
    machines.check();
}

#[test]
fn a_machine_that_was_taken_for_dead_waits_for_a_server_that_takes_no_connections_just_then() {
    let machines = Machines::joined(2);
    let between = Between::at(&machines.server);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    machines.configure_at(b, &between.database(&machines.database).url);
    let daemons = machines.start();
    assert_eq!(lock(b, "bob", 0).0, 0);
    stands_still(&machines, &daemons[1]);
    until("it is buried", || states(a)[&false] == ["down"]);
    between.lose(Loses::Newcomers);
    signal(&daemons[1], "-CONT");
    let tries = || b.log().matches("does not start yet").count();
    until("it does not start", || tries() == 1);
    // The log tells of one try a minute; a client that asks meanwhile is told, and does not end it.
    stays("it waits", Duration::from_secs(3), || tries() == 1 && !b.listens());
    let (code, answer) = lock(b, "bob", 1);
    assert!(code != 0, "{answer}");
    assert!(says(b, UP).1.contains("the database does not answer"));
    let (code, told) = says(b, &["status"]);
    assert!(
        code != 0 && told.contains("waits for its database") && told.contains(&daemons[1].pid().to_string()),
        "{told}"
    );
    between.lose(Loses::Nothing);
    until("it writes again", || lock(b, "bob", 1).0 == 0);
    assert!(std::fs::read_dir(format!("/proc/{}", daemons[1].pid())).is_ok(), "in its own process");
    machines.check();

    // A signal ends one that waits.
    stands_still(&machines, &daemons[1]);
    until("it is buried once more", || states(a)[&false] == ["down"]);
    between.lose(Loses::Newcomers);
    let before = tries();
    signal(&daemons[1], "-CONT");
    until("it tries again", || tries() > before);
    signal(&daemons[1], "-TERM");
    // The process itself stays until this test has waited for it.
    let line = format!("/proc/{}/cmdline", daemons[1].pid());
    until("it ends", || std::fs::read(&line).is_ok_and(|it| it.is_empty()));
    let (code, told) = says(b, &["down"]);
    assert!(code != 0 && !told.contains("waiting"), "none waits any more: {told}");

    // So does a person.
    between.lose(Loses::Nothing);
    let again = b.start();
    until("it takes part", || states(a)[&false] == ["live"]);
    stands_still(&machines, &again);
    until("it is buried again", || states(a)[&false] == ["down"]);
    between.lose(Loses::Newcomers);
    let before = tries();
    signal(&again, "-CONT");
    until("it tries again", || tries() > before);
    let (_, told) = says(b, &["down"]);
    assert!(told.contains("stopped; it was waiting for its database"), "{told}");
}

#[test]
fn a_server_that_was_away_for_all_buries_none() {
    let mut machines = Machines::joined(3);
    let _daemons = machines.start();
    for (n, world) in machines.all.iter().enumerate() {
        until("it has a lock", || lock(world, "ada", n).0 == 0);
    }
    machines.server.kill();
    // Longer than after which a silent host is taken for dead.
    stays("no lock is given", Duration::from_secs(17), || lock(&machines.all[0], "bob", 100).0 != 0);
    machines.server.resume();
    for (n, world) in machines.all.iter().enumerate() {
        until("writes go on", || lock(world, "eve", 20 + n).0 == 0);
    }
    // As long as it would take to bury one.
    stays("who lives goes on", Duration::from_secs(20), || lock(&machines.all[0], "eve", 20).0 == 0);
    assert_eq!(machines.sql("select count(*) from provost.event where body like '%host.down%'"), "0");
    assert_eq!(machines.sql("select count(*) from provost.host where state = 'live'"), "3");
    machines.check();
}

#[test]
fn what_is_acknowledged_on_three_machines_is_there_after_kills_of_machines_and_of_the_server() {
    let mut machines = Machines::joined(3);
    let mut daemons = machines.start();
    let worlds = std::mem::take(&mut machines.all);
    let all: Vec<Clients<'_>> =
        worlds.iter().zip(["a", "b", "c"]).map(|(world, name)| Clients::named(world, name)).collect();
    let stop = AtomicBool::new(false);
    let server = &mut machines.server;
    std::thread::scope(|scope| {
        // These want the same locks, one after the other.
        for (at, world) in worlds.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let agent = format!("agent-{at}");
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n = (n + 1) % 5;
                    if lock(world, &agent, n).0 == 0 {
                        release(world, &agent, n);
                    }
                }
            });
        }
        let _ends = Ends(&stop);
        Clients::during_all(&all, || {
            for round in 0..6 {
                all.iter().for_each(Clients::goes_on);
                if round % 2 == 0 {
                    server.kill();
                    server.resume();
                } else {
                    daemons[round / 2].kill();
                    daemons[round / 2] = worlds[round / 2].start();
                }
            }
            all.iter().for_each(Clients::goes_on);
        });
    });
    all.iter().for_each(Clients::are_refused_in_words);
    Clients::check_all(&all);
    drop(all);
    machines.all = worlds;
    machines.check();
}

#[test]
#[should_panic(expected = "it is held, and granted")]
fn the_checker_finds_a_lock_that_was_granted_twice() {
    let machines = Machines::joined(1);
    let _daemons = machines.start();
    assert_eq!((lock(&machines.all[0], "ada", 0).0, lock(&machines.all[0], "bob", 1).0), (0, 0));
    let planted = format!(
        "set session_replication_role = replica; update provost.event set body = replace(body, '{}', '{}')
         where kind = 'lock_acquired'",
        symbol(1),
        symbol(0)
    );
    machines.sql(&planted);
    machines.check();
}

#[test]
fn who_has_not_the_key_or_no_clone_does_not_join() {
    let machines = Machines::joined(1);
    let (code, text) = {
        let world = machines.one_more();
        let out = world.command(UP).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    assert!(code != Some(0) && text.contains("journal.key is missing"), "{text}");

    let world = machines.one_more();
    let file = world.path("other.key").display().to_string();
    let out = machines.all[0].command(&["host", "export-key", &file, "--json"]).output().unwrap();
    let code_of = said(&out).1["code"].as_str().unwrap().to_owned();
    let again = machines.all[0].command(&["host", "export-key", &file]).output().unwrap();
    assert!(!again.status.success(), "a file is not written over");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let other: String = code_of.chars().rev().collect();
    let (code, text) = join_with(&world, &file, &other);
    assert!(code != 0 && text.contains("does not open this file"), "{text}");
    let sealed = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, sealed.replace("\"shop\"", "\"shed\"")).unwrap();
    world.configure(&format!("store.url = {:?}\nstore.name = \"shed\"\n", machines.database.url));
    let (code, text) = join_with(&world, &file, &code_of);
    assert!(code != 0 && text.contains("does not open this file"), "a name is bound to the seal: {text}");
    std::fs::write(&file, sealed).unwrap();

    // Another history, whose first commit is another one.
    let stranger = machines.one_more();
    git(&stranger, &["checkout", "-q", "--orphan", "other"]);
    git(&stranger, &["commit", "-q", "-m", "other"]);
    let (code, text) = join_with(&stranger, &file, &code_of);
    assert!(code != 0 && text.contains("is no clone of"), "{text}");
    let (code, text) = join_with(&machines.all[0], &file, &code_of);
    assert!(code != 0 && text.contains("has a store already"), "{text}");
    assert_eq!(machines.sql("select count(*) from provost.host"), "1", "nothing was written");
}

#[test]
fn an_agent_is_shown_with_its_machine() {
    let machines = Machines::joined(2);
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let robot = b.client(&daemons[1], "robot");
    robot.say("REGISTER", json!({ "caps": [], "version": "x/1" })).ack();
    robot.poll();
    let host = |world: &World| {
        let listed = world.done("anyone", &["agent", "list"]);
        let all = listed.as_array().cloned().or_else(|| listed["agents"].as_array().cloned()).unwrap();
        let robot = all.iter().find(|it| it["id"] == "robot")?.clone();
        (robot["alive"] == true).then(|| robot["host"].as_str().map(str::to_owned)).flatten()
    };
    let there = until_some("it is seen there", || host(b));
    assert_eq!(until_some("it is seen here", || host(a)), there);
}

/// The id of the host that is not the asking machine's own, as it is shown.
fn other_host(world: &World) -> String {
    let (_, listed) = said(&world.command(&["host", "list", "--json"]).output().unwrap());
    let all = listed["hosts"].as_array().unwrap();
    let other = all.iter().find(|it| it["here"] == false).unwrap();
    other["host"].as_str().unwrap()[..8].to_owned()
}

#[test]
fn a_machine_that_is_removed_ends_and_never_takes_part_again() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(lock(a, "ada", 0).0, 0);
    let mut waits = b.begin("bob", &["lock", "acquire", &symbol(0), "--wait", "120s"]);
    until("it waits", || a.waiting() == ["bob"]);
    let other = other_host(a);
    let (code, said) = ask(a, "ada", &["host", "remove", &other]);
    assert!(code != 0, "without a person it asks for --yes: {said}");
    let (code, said) = ask(a, "ada", &["host", "remove", &other, "--yes"]);
    assert_eq!(code, 0, "{said}");
    until("it is removed", || states(a)[&false] == ["removed"]);
    until("its waiters have left", || a.waiting().is_empty());
    assert!(!daemons[1].ended().success());
    assert!(b.log().contains("was removed from the repository"), "{}", b.log());
    let _ = waits.kill();
    let _ = waits.wait();
    let out = b.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("was removed"), "{text}");
    let own = machines.sql("select id from provost.host where state = 'live'");
    let (code, said) = ask(a, "ada", &["host", "remove", &own[..8], "--yes"]);
    assert!(code != 0 && said.to_string().contains("only host"), "{said}");
    let (code, said) = ask(a, "ada", &["host", "drain", &own[..8]]);
    assert!(code != 0 && said.to_string().contains("store move --to folder"), "{said}");
    for how in [&["host", "drain", &own[..8]][..], &["host", "remove", &own[..8], "--yes"]] {
        let (code, said) = ask(b, "ada", how);
        assert!(code != 0 && said.to_string().contains("was removed itself"), "{said}");
    }
    assert_eq!(lock(a, "ada", 1).0, 0);
    machines.check();
}

#[test]
fn a_machine_that_is_drained_takes_no_new_tasks_and_leaves_after_its_last_run() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let asker = b.client(&daemons[1], "orch:b");
    let (task, reply) =
        asker.delegate("shell", "while [ ! -e go ]; do sleep 0.2; done; echo done", json!({}));
    reply.ack();
    let running = "select count(*) from provost.event where kind = 'task_started'";
    until("the task runs", || machines.sql(running) == "1");
    let (code, said) = ask(a, "ada", &["host", "drain", &other_host(a)]);
    assert_eq!(code, 0, "{said}");
    until("it takes no new tasks", || {
        let (_, reply) = asker.delegate("shell", "true", json!({}));
        matches!(reply, Reply::Message(it) if it.to_string().contains("being drained"))
    });
    assert_eq!(states(a)[&false], ["draining"]);
    std::fs::write(b.repo().join("go"), "").unwrap();
    let ended = format!("select status from provost.task where id = '{task}' and not live");
    until("its run is over", || machines.sql(&ended) == "completed");
    until("it has left", || states(a)[&false] == ["removed"]);
    assert!(!daemons[1].ended().success(), "{said}");
    machines.check();
}

/// Delegates to a mailbox over connections of their own until the daemon is gone; returns how often it was acknowledged.
fn delegates_until_it_is_gone(asker: &Client) -> usize {
    let mut acknowledged = 0;
    while let Ok(mut connection) = Connection::to(&asker.socket) {
        let task = json!({ "action": "devit_delegate", "goal": "do it", "timeout": 60 });
        let payload = json!({ "return_to": asker.ident, "task": task });
        let frame = asker.frame("DELEGATE", &fresh("task"), "robot", &payload);
        if connection.write_all(format!("{frame}\n").as_bytes()).is_ok()
            && let Reply::Message(answer) = read_line(&mut connection)
            && answer["msg_type"] == "ACK"
        {
            acknowledged += 1;
        }
    }
    acknowledged
}

#[test]
fn a_machine_that_was_drained_begins_nothing_behind_its_removal() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let asker = b.client(&daemons[1], "orch:b");
    let acknowledged = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..8).map(|_| scope.spawn(|| delegates_until_it_is_gone(&asker))).collect();
        until("it is asked", || machines.sql("select count(*) > 20 from provost.task") == "t");
        let (code, said) = ask(a, "ada", &["host", "drain", &other_host(a)]);
        assert_eq!(code, 0, "{said}");
        askers.into_iter().map(|it| it.join().unwrap()).sum::<usize>()
    });
    assert!(!daemons[1].ended().success());
    let left = "select seq from provost.event where body like '%host.down%'";
    let begun = "select count(*) from provost.event where kind = 'task_delegated'";
    assert_eq!(machines.sql(&format!("{begun} and seq > ({left})")), "0");
    let on_record: usize = machines.sql(begun).parse().unwrap();
    assert!(
        on_record >= acknowledged && acknowledged > 20,
        "{on_record} on record, {acknowledged} acknowledged"
    );
    machines.check();
}
