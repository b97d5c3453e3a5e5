//! What people and agents are told while a daemon's database is away, slow or read-only: by `status`, by `doctor`, on the page, and
//! beside each answer to a question.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::browser::Browser;
use crate::support::histories::{Clients, says};
use crate::support::hub::{Hub, free_port};
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::postgres::{Between, Loses, Server, name_of};
use crate::support::rules::{ALLOW, ASK};
use crate::support::told::{COUNTING, PAGE, Places, metric};
use crate::support::waits::{stays, until_some, within};

/// A write is refused within two seconds, and within five if a commit of the daemon itself was under way; a loaded machine needs some more.
const REFUSED_WITHIN: [Duration; 2] = [Duration::from_millis(3_500), Duration::from_millis(6_500)];

fn world(url: &str, more: &str) -> World {
    let world = World::new();
    world.configure(&format!("store.url = {url:?}\nstore.name = \"shop\"\n{more}"));
    world
}

/// Makes each write take more than a second.
const SLOW: &str = "create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(1.1); return new; end';
    create trigger slow before insert on provost.entry for each row execute function slow()";

/// How long a refusal takes.
fn refused(clients: &Clients<'_>) -> Duration {
    let since = Instant::now();
    assert!(!clients.take(), "there is no database");
    since.elapsed()
}

/// Waits until the daemon has nothing of its own to write.
fn is_quiet(sql: impl Fn(&str) -> String) {
    until_some("it writes nothing", || {
        let entries = || sql("select count(*) from provost.entry");
        let before = entries();
        (!within(Duration::from_secs(1), || entries() != before)).then_some(())
    });
}

#[test]
fn each_place_says_how_the_database_is_and_a_write_is_refused_in_time() {
    let mut server = Server::start();
    let between = Between::at(&server);
    let database = server.database();
    let world = world(&between.database(&database).url, PAGE);
    let daemon = world.start();
    let name = name_of(&database);
    let mut took = Vec::new();
    let (places, page, clients) = (Places::of(&world), Http::web(&world), Clients::of(&world));
    places.say("takes every write");
    assert!(clients.take());

    for lost in [Loses::Both, Loses::Answers, Loses::Questions] {
        is_quiet(|text| server.sql(&name, text));
        between.lose(lost);
        took.extend([refused(&clients), refused(&clients)]);
        places.say("takes nothing since");
        places.say_each(["what is shown may be old", "the daemon shows may be", "what is shown may be"]);
        for view in ["needs-you", "agents", "locks", "waits", "intents", "tasks"] {
            assert_eq!(page.look(&format!("/rows/{view}")).status, 200, "{view}");
        }
        let past = page.look("/rows/audit");
        assert!(
            past.status == 503 && past.json().to_string().contains("the database does not answer"),
            "{past:?}"
        );
        between.lose(Loses::Nothing);
        until_some("writes go on", || clients.take().then_some(()));
        places.say("takes every write");
    }

    for _ in 0..2 {
        is_quiet(|text| server.sql(&name, text));
        server.hang(true);
        took.push(refused(&clients));
        places.say("takes nothing since");
        server.hang(false);
        until_some("writes go on", || clients.take().then_some(()));
    }

    is_quiet(|text| server.sql(&name, text));
    server.kill();
    took.push(refused(&clients));
    places.say("takes nothing since");
    server.resume();
    until_some("writes go on", || clients.take().then_some(()));

    took.sort();
    assert!(took[took.len() - 2] < REFUSED_WITHIN[0] && took[took.len() - 1] < REFUSED_WITHIN[1], "{took:?}");

    server.set("default_transaction_read_only = on");
    until_some("writes are refused", || (!clients.take()).then_some(()));
    places.say("read-only");
    server.sql("postgres", "alter system reset default_transaction_read_only");
    server.sql("postgres", "select pg_reload_conf()");
    until_some("writes go on", || clients.take().then_some(()));

    server.sql(&name, SLOW);
    until_some("a write is slow, and goes on", || clients.take().then_some(()));
    places.say_each(["is slow: a write takes", "is slow", "is slow"]);
    server.sql(&name, "drop trigger slow on provost.entry");
    until_some("writes go on", || clients.take().then_some(()));
    places.say("takes every write");
    clients.check().unwrap();
    daemon.stop();
}

/// The words of an answer that may be old.
const OLD: &str = "may be";

#[test]
fn who_asks_while_the_database_is_away_is_told_how_old_the_answer_may_be() {
    let server = Server::start();
    let between = Between::at(&server);
    let world = world(&between.database(&server.database()).url, "");
    world.rule(ALLOW);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("worker:polls", "look", json!({}));
    reply.ack();
    let mut agent = Host::new_era(&world, "ada");
    let listed = |host: &mut Host| host.call("locks_list", json!({}))["content"].to_string();
    let asks = |args: &[&str]| {
        let out = world.command(args).env("DEVIT_NO_AUTO_START", "1").output().unwrap();
        assert!(out.status.success(), "{out:?}");
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    world.write("src/a.rs", "fn run() {}\n");
    world.done("eve", &["lock", "acquire", "src/a.rs:run"]);
    for args in [&["lock", "list"][..], &["lock", "list", "--json"], &["agent", "list"]] {
        assert!(!asks(args).1.contains(OLD));
    }
    assert!(!listed(&mut agent).contains(OLD));

    between.lose(Loses::Both);
    until_some("an answer is old", || asks(&["lock", "list"]).1.contains(OLD).then_some(()));
    assert!(asks(&["agent", "list"]).1.contains(OLD));
    let (answer, beside) = asks(&["lock", "list", "--json"]);
    assert!(answer.contains("src/a.rs:run"), "{answer}");
    let _one_value: Value = serde_json::from_str(&answer).unwrap();
    assert!(beside.contains("the database does not answer the daemon"), "{beside}");
    let told = listed(&mut agent);
    assert!(told.contains("src/a.rs:run") && told.contains(OLD), "{told}");
    // What is past is left out of what is not, and refused by itself.
    for args in [&["task", "list"][..], &["task", "list", "--worker", "polls"]] {
        let (shown, beside) = asks(args);
        assert!(shown.contains(&task), "{args:?}: {shown}");
        assert!(
            beside.contains(OLD) && beside.contains("finished tasks are only there"),
            "{args:?}: {beside}"
        );
    }
    // All that needs a person, of one repository and of all.
    for args in [&["-C", world.path("repo").to_str().unwrap()][..], &[]] {
        let shown = asks(args).0;
        let says = [&*task, OLD, "finished tasks cannot be read now"];
        assert!(says.iter().all(|it| shown.contains(it)), "{args:?}: {shown}");
    }
    let told = agent.call("task_status", json!({}))["content"].to_string();
    assert!(told.contains(&task) && told.contains("Finished tasks cannot be read now"), "{told}");
    let listed_at_devit = client.say("STATUS_REQUEST", json!({})).message().to_string();
    assert!(listed_at_devit.contains(&task), "{listed_at_devit}");
    let (code, refused) = says(&world, &["task", "list", "--filter", "completed"]);
    assert!(code != 0 && refused.contains("finished tasks are only there"), "{code}: {refused}");
    assert!(asks(&["task", "list", "--filter", "active"]).1.contains(OLD));
    // A refusal says why itself.
    let (code, refused) = says(&world, &["lock", "acquire", "src/a.rs:run", "--json"]);
    assert!(code != 0 && refused.contains("shared store"), "{code}: {refused}");
    let _one_value: Value = serde_json::from_str(&refused).unwrap();

    between.lose(Loses::Nothing);
    until_some("answers are fresh", || (!asks(&["lock", "list"]).1.contains(OLD)).then_some(()));
    assert!(!listed(&mut agent).contains(OLD));
    daemon.stop();
}

#[test]
fn the_page_says_of_when_it_is_while_the_database_is_away_and_offers_nothing() {
    let server = Server::start();
    let between = Between::at(&server);
    let port = free_port();
    let pages = format!("{PAGE}all_port = {port}\n");
    let world = world(&between.database(&server.database()).url, &pages);
    world.rule(ASK);
    let daemon = world.start();
    let (_, reply) = world.client(&daemon, "orch:a").delegate("shell", "true", json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&format!("http://provost.localhost:{}/", Http::web(&world).port));
    let offers = "[...document.querySelectorAll('button[data-action]')].some((it) => !it.disabled)";
    let is_live = "document.body.dataset.live === 'live'";
    tab.until("live", is_live);
    let hub = Hub::start(&world, port);
    let of_all = browser.open(&format!("http://provost.localhost:{port}{}/locks", hub.base(&world)));
    of_all.until("live among all", is_live);
    tab.until("an answer is offered", offers);
    for lost in [Loses::Both, Loses::Answers] {
        between.lose(lost);
        tab.until("stale", "document.body.dataset.live === 'stale'");
        tab.shows("as of ");
        tab.shows("the database does not answer the daemon");
        assert!(!tab.is(offers), "{}", tab.text());
        of_all.shows("the database does not answer the daemon");
        // It stays so, and is told again and again.
        stays("it is of that moment", Duration::from_secs(3), || !tab.is(is_live));
        tab.go(&format!("http://provost.localhost:{}/locks", Http::web(&world).port));
        tab.shows("the database does not answer the daemon");
        between.lose(Loses::Nothing);
        tab.until("live again", is_live);
        of_all.until("live again among all", is_live);
        tab.go(&format!("http://provost.localhost:{}/", Http::web(&world).port));
        tab.until("an answer is offered again", offers);
    }
    daemon.stop();
}

#[test]
fn a_run_that_ends_while_the_database_is_away_is_reported_once_it_is_back() {
    let server = Server::start();
    let between = Between::at(&server);
    let database = server.database();
    let world = world(&between.database(&database).url, "");
    world.rule(ALLOW);
    let daemon = world.start();
    let asker = world.client(&daemon, "orch");
    let (task, reply) = asker.delegate("shell", "sleep 5; echo made", json!({}));
    reply.ack();
    let sql = |text: &str| server.sql(&name_of(&database), text);
    let count = |kind: &str| sql(&format!("select count(*) from provost.event where kind = '{kind}'"));
    until_some("it runs", || (count("task_started") == "1").then_some(()));
    between.lose(Loses::Both);
    // Shorter than the time after which a host without its database ends its runs.
    let clients = Clients::of(&world);
    stays("the database is away", Duration::from_secs(7), || !clients.take());
    assert_eq!(count("task_finished"), "0");
    between.lose(Loses::Nothing);
    let result = asker.result_of(&task);
    assert!(result["status"] == "completed" && result.to_string().contains("made"), "{result}");
    assert_eq!((count("task_started"), count("task_finished")), ("1".into(), "1".into()));
    clients.refusals();
    daemon.stop();
}

#[test]
fn a_commit_whose_wait_for_a_standby_is_cancelled_counts_as_unknown_and_is_found() {
    let server = Server::start();
    let database = server.database();
    let world = world(&database.url, COUNTING);
    let daemon = world.start();
    let found = || metric(&world, "provost_store_unknown_commits_total{found=\"stored\"}").unwrap_or(0.0);
    assert!(Clients::of(&world).take());
    assert_eq!(found(), 0.0);
    // On a machine that is very busy, the daemon has given the connection up before the warning comes.
    let mut rounds = 0;
    until_some("the database has warned", || {
        rounds += 1;
        server.set("synchronous_standby_names = 'ANY 1 (away)'");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let body = json!({ "symbol": format!("work/a.rs:run{rounds}"), "ttl_ms": 600_000 });
                own(&world, ("POST", "/lock"), &[("x-provost-agent", "ada")], &body)
            });
            let cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
            until_some("an operator cancels its wait", || {
                server.sql("postgres", cancel).starts_with('t').then_some(())
            });
            server.set("synchronous_standby_names = ''");
            let (status, answer) = asked.join().unwrap();
            assert_eq!(status, 200, "{answer}");
        });
        world.log().contains("the database warns").then_some(())
    });
    assert!(found() >= 1.0);
    let listed = own(&world, ("GET", "/locks"), &[("x-provost-agent", "ada")], &Value::Null).1;
    assert_eq!(listed["locks"].as_array().unwrap().len(), 1 + rounds, "{listed}");
    daemon.stop();
}
