//! A working daemon whose database is killed, hangs, is cut off, fails over, is full, or takes no more: writes are refused with a
//! sentence while reads go on, and nothing acknowledged is lost. Real servers, and clients whose histories are checked.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::own_api::own;
use crate::support::pgbouncer::Pooler;
use crate::support::postgres::{Between, Loses, Server, name_of};
use crate::support::waits::{until_some, within};
use crate::support::{UP, World};

/// What a write may take where the database does not answer: the commit before it (three seconds) and a handshake, and what a loaded machine
/// adds.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// How many locks one agent takes before the next one does, since each agent may have so many and no more.
const LOCKS_OF_AN_AGENT: usize = 100;

fn world(url: &str) -> World {
    let world = World::new();
    world.configure(&format!("store.url = {url:?}\nstore.name = \"shop\"\n"));
    world
}

fn says(world: &World, args: &[&str]) -> (i32, String) {
    let out = world.command(args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// A grant that was acknowledged: when it was asked for and answered, and its number.
#[derive(Clone, Debug)]
struct Grant {
    symbol: String,
    fence: u64,
    asked: Instant,
    answered: Instant,
}

/// Clients that take one lock after the other, and the answers that they got.
struct Clients<'a> {
    world: &'a World,
    next: AtomicUsize,
    ends: AtomicBool,
    grants: Mutex<Vec<Grant>>,
    /// Refusals: how long each took, and its sentence.
    refused: Mutex<Vec<(Duration, String)>>,
}

impl<'a> Clients<'a> {
    fn of(world: &'a World) -> Self {
        Self {
            world,
            next: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            grants: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Takes one lock; whether it was granted.
    fn take(&self) -> bool {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (symbol, agent) = (format!("@work:n{n}"), format!("ada-{}", n / LOCKS_OF_AN_AGENT));
        let body = json!({ "symbol": symbol, "ttl_ms": 3_600_000, "reason": "room ".repeat(50) });
        let asked = Instant::now();
        let (status, answer) = own(self.world, ("POST", "/lock"), &[("x-provost-agent", &agent)], &body);
        let answered = Instant::now();
        if status == 200 {
            let fence = answer["lock"]["fence"].as_u64().expect("a fence");
            self.grants.lock().unwrap().push(Grant { symbol, fence, asked, answered });
        } else {
            self.refused.lock().unwrap().push((answered - asked, answer.to_string()));
        }
        status == 200
    }

    fn granted(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Waits until more is granted than now.
    fn goes_on(&self) {
        let before = self.granted();
        until_some("writes go on", || (self.granted() > before + 3).then_some(()));
    }

    /// Has three of them at work while `work` is done.
    fn during(&self, work: impl FnOnce()) {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !self.ends.load(Ordering::Relaxed) {
                        if !self.take() {
                            // A refusal comes at once while the database is away.
                            within(Duration::from_millis(50), || self.ends.load(Ordering::Relaxed));
                        }
                    }
                });
            }
            self.goes_on();
            work();
            self.ends.store(true, Ordering::Relaxed);
        });
    }

    /// Nothing acknowledged is lost, no number was given twice, and numbers rise in the order of the answers.
    fn check(&self) -> Result<(), String> {
        let (status, answer) =
            own(self.world, ("GET", "/locks"), &[("x-provost-agent", "ada")], &Value::Null);
        assert_eq!(status, 200, "{answer}");
        let has: BTreeMap<String, u64> = answer["locks"]
            .as_array()
            .expect("locks")
            .iter()
            .map(|it| (it["symbol"].as_str().unwrap().to_owned(), it["fence"].as_u64().unwrap()))
            .collect();
        let mut grants = self.grants.lock().unwrap().clone();
        for it in &grants {
            if has.get(&it.symbol) != Some(&it.fence) {
                return Err(format!("acknowledged and lost: {it:?}, found {:?}", has.get(&it.symbol)));
            }
        }
        grants.sort_by_key(|it| it.fence);
        for pair in grants.windows(2) {
            if pair[0].fence == pair[1].fence || pair[1].answered < pair[0].asked {
                return Err(format!("numbers do not rise: {pair:?}"));
            }
        }
        Ok(())
    }

    /// How many were refused, each within its time and with words.
    fn refusals(&self) -> usize {
        let refused = self.refused.lock().unwrap();
        for (took, says) in refused.iter() {
            assert!(says.contains("shared store"), "{says}");
            let is_unsure = says.contains("not known");
            assert!(is_unsure || *took < REFUSED_WITHIN, "{took:?}: {says}");
        }
        refused.len()
    }
}

fn reads_go_on(world: &World) {
    let began = Instant::now();
    let (status, answer) = own(world, ("GET", "/locks"), &[("x-provost-agent", "ada")], &Value::Null);
    assert_eq!(status, 200, "{answer}");
    assert!(began.elapsed() < Duration::from_secs(12), "a read took {:?}", began.elapsed());
}

fn ends_in_order(world: &World, daemon: crate::support::Daemon) {
    daemon.stop();
    let (code, text) = says(world, &["journal", "verify"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_server_that_is_killed_hangs_or_is_cut_off_costs_refusals_and_nothing_else() {
    let mut server = Server::start();
    let direct = server.database();
    let between = Between::at(&server);
    let world = world(&between.database(&direct).url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        server.kill();
        until_some("writes are refused", || (clients.refusals() > 0).then_some(()));
        reads_go_on(&world);
        server.resume();
        clients.goes_on();

        for lost in [Loses::Answers, Loses::Questions, Loses::Both] {
            let before = clients.refusals();
            between.lose(lost);
            until_some("writes are refused", || (clients.refusals() > before).then_some(()));
            reads_go_on(&world);
            between.lose(Loses::Nothing);
            clients.goes_on();
        }

        let before = clients.refusals();
        server.hang(true);
        until_some("writes are refused", || (clients.refusals() > before).then_some(()));
        reads_go_on(&world);
        server.hang(false);
        clients.goes_on();
    });
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn with_a_synchronous_standby_a_failover_loses_nothing() {
    let mut first = Server::start();
    let database = first.database();
    let second = first.standby("second");
    first.set("synchronous_standby_names = 'ANY 1 (second)'");
    let world = world(&first.or(&second, &database));
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        clients.goes_on();
        first.kill();
        second.promote();
        clients.goes_on();
    });
    clients.check().unwrap();
    assert_eq!(second.sql(&name_of(&database), "select timeline from provost.repo"), "2");
    // An old primary that comes back is not taken.
    first.resume();
    assert!(clients.take());
    daemon.stop();
    let daemon = world.start();
    assert!(clients.take());
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn with_an_asynchronous_standby_a_loss_is_noticed_told_and_gone_on_with_by_a_person_alone() {
    let mut first = Server::start();
    let database = first.database();
    let second = first.standby("second");
    let world = world(&first.or(&second, &database));
    let daemon = world.start();
    let clients = Clients::of(&world);
    for _ in 0..5 {
        assert!(clients.take());
    }
    until_some("the standby has what was there", || {
        let sql = "select replay_lsn = pg_current_wal_lsn() from pg_stat_replication";
        (first.sql("postgres", sql) == "t").then_some(())
    });
    // What comes behind this is not at the standby.
    second.set("primary_conninfo = ''");
    until_some("the standby hears no more", || second.processes("walreceiver").is_empty().then_some(()));
    for _ in 0..5 {
        assert!(clients.take());
    }
    let last = clients.grants.lock().unwrap().last().expect("a grant").fence;
    first.kill();
    second.promote();

    let told = until_some("the loss is told", || {
        assert!(!clients.take(), "nothing is written to a database that went back");
        Some(says(&world, &["status"]).1).filter(|it| it.contains("went back"))
    });
    assert!(told.contains("provost store accept-loss"), "{told}");
    reads_go_on(&world);
    assert_eq!(daemon.asked_to_stop().code(), Some(1), "its stop is not on record");
    let (code, text) = says(&world, UP);
    assert!(code == 8 && text.contains("went back") && text.contains("accept-loss"), "{code}: {text}");
    let (code, text) = says(&world, &["store", "accept-loss"]);
    assert!(code == 4 && text.contains("--yes"), "{code}: {text}");
    let (code, text) = says(&world, &["store", "accept-loss", "--yes", "--json"]);
    assert_eq!(code, 0, "{text}");
    let told: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        told["fences_above"].as_u64().unwrap() > last && told["was"].as_u64() > told["is"].as_u64(),
        "{told}"
    );

    let daemon = world.start();
    assert!(clients.take());
    assert!(clients.grants.lock().unwrap().last().expect("a grant").fence > last + 1_000);
    let found = clients.check().expect_err("the checker finds what is lost");
    assert!(found.contains("acknowledged and lost"), "{found}");
    let (_, text) = says(&world, &["journal", "verify"]);
    assert!(text.contains("provost store accept-loss"), "{text}");
    ends_in_order(&world, daemon);
}

#[test]
fn a_server_that_is_read_only_or_has_no_connections_left_refuses_and_comes_back() {
    let server = Server::start();
    let database = server.database();
    let world = world(&database.url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    assert!(clients.take());
    server.set("default_transaction_read_only = on");
    until_some("writes are refused", || (!clients.take()).then_some(()));
    let (_, text) = says(&world, &["status"]);
    assert!(text.contains("read-only"), "{text}");
    reads_go_on(&world);
    server.sql("postgres", "alter system reset default_transaction_read_only");
    server.sql("postgres", "select pg_reload_conf()");
    until_some("writes go on", || clients.take().then_some(()));

    // More than there may be: those that have not even said who they are count.
    let many = server.crowd(200);
    server.end_sessions();
    until_some("writes are refused", || (!clients.take()).then_some(()));
    reads_go_on(&world);
    drop(many);
    until_some("writes go on", || clients.take().then_some(()));
    clients.refusals();
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}

#[test]
fn a_pooler_with_sessions_is_as_good_as_none_and_one_without_is_refused() {
    let server = Server::start();
    let database = server.database();
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::at(&server, mode);
        let world = world(&pooler.database(&database).url);
        let (code, text) = says(&world, UP);
        assert!(code != 0 && text.contains("pool_mode = session"), "{mode}: {text}");
    }
    let pooler = Pooler::at(&server, "session");
    let world = world(&pooler.database(&database).url);
    let daemon = world.start();
    let clients = Clients::of(&world);
    clients.during(|| {
        server.end_sessions();
        clients.goes_on();
    });
    clients.refusals();
    clients.check().unwrap();
    ends_in_order(&world, daemon);
}
