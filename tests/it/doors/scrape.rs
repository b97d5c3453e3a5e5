//! Metrics and health over HTTP: the facts that a reader without any proof gets, and how few they are.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use provost::api::metric::METRICS;
use serde_json::{Value, json};

use crate::support::desk::ask;
use crate::support::loopback_client::Http;
use crate::support::promtool::promtool;
use crate::support::rules::{ALLOW, ASK};
use crate::support::waits::{until_some, within};
use crate::support::{Connection, World, eventually};

const COUNTING: &str = "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n";

fn world(rules: &str, more: &str) -> World {
    let world = World::new();
    world.rule(rules);
    world.configure(&format!("{COUNTING}{more}"));
    world
}

fn text(http: Http) -> String {
    let answer = http.get("/metrics");
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

/// The value of the sample that is written so.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == sample))?;
    Some(line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

/// Returns the metrics as text as soon as the condition holds; the daemon keeps answers for a quarter of a second.
fn told(http: Http, what: &str, is_so: impl Fn(&str) -> bool) -> String {
    until_some(what, || Some(text(http)).filter(|it| is_so(it)))
}

fn locked(world: &World, agent: &str, body: &Value) -> u16 {
    ask(world, agent, "POST /lock", body).0
}

#[test]
fn what_happens_is_counted_where_it_is_answered_and_prometheus_reads_it() {
    let world = world(ALLOW, "");
    let daemon = world.start();
    let http = Http::metrics(&world);
    assert_eq!(locked(&world, "agent-a", &json!({ "symbol": "a.ts:f" })), 200);
    assert_eq!(locked(&world, "agent-b", &json!({ "symbol": "a.ts:f" })), 409);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "true", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
    let ended = "provost_task_seconds_count{outcome=\"completed\"}";
    let now = told(http, "the task's end is counted", |it| value(it, ended) == Some(1.0));
    let command = |verb: &str, door: &str, outcome: &str| {
        format!("provost_commands_total{{door=\"{door}\",outcome=\"{outcome}\",verb=\"{verb}\"}}")
    };
    assert_eq!(value(&now, &command("AcquireLock", "own", "done")), Some(1.0), "{now}");
    assert_eq!(value(&now, &command("AcquireLock", "own", "refused")), Some(1.0), "{now}");
    assert_eq!(value(&now, &command("Delegate", "devit", "done")), Some(1.0), "{now}");
    assert_eq!(value(&now, &command("EndRun", "internal", "done")), Some(1.0), "{now}");
    assert_eq!(value(&now, "provost_locks{state=\"held\"}"), Some(1.0));
    assert_eq!(value(&now, "provost_store_up"), Some(1.0));
    assert_eq!(value(&now, "provost_hosts{state=\"live\"}"), Some(1.0));
    assert_eq!(value(&now, "provost_stale_seconds"), Some(0.0));
    assert!(value(&now, "provost_workers_free") > Some(0.0), "{now}");
    assert!(value(&now, "provost_journal_head") > Some(4.0), "{now}");
    let (batches, commands) =
        (value(&now, "provost_batch_commands_count"), value(&now, "provost_batch_commands_sum"));
    assert!(batches > Some(2.0) && commands >= batches, "{batches:?} {commands:?}");
    assert!(value(&now, "provost_batch_commit_seconds_count") >= batches);
    assert!(value(&now, "provost_command_seconds_count{door=\"own\"}") >= Some(2.0));
    promtool(&["check", "metrics"], &now).unwrap();
    assert!(
        promtool(&["check", "metrics"], &now.replace("# TYPE", "# TIPE")).is_err(),
        "it takes everything"
    );
    let known: BTreeSet<&str> = METRICS.iter().map(|it| it.name).collect();
    let named = now.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let named: BTreeSet<&str> = named.collect();
    assert!(named.is_subset(&known) && named.len() > 25, "{named:?}");
    // The command makes the same text of the same answer.
    let output = world.command(&["metrics"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let names = |text: &str| {
        text.lines().filter(|it| it.starts_with("# HELP")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&printed), names(&now));
    let output = world.command(&["metrics", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["counting"], true);
}

#[test]
fn what_waits_is_told_with_the_age_of_the_oldest() {
    let world = world(ASK, "");
    let daemon = world.start();
    let http = Http::metrics(&world);
    let client = world.client(&daemon, "orch:a");
    client.delegate("shell", "true", json!({})).1.ack();
    assert_eq!(locked(&world, "agent-a", &json!({ "symbol": "a.ts:f" })), 200);
    let waiting = std::thread::scope(|scope| {
        scope.spawn(|| locked(&world, "agent-b", &json!({ "symbol": "a.ts:f", "wait_ms": 60_000 })));
        let waiting =
            told(http, "an agent waits", |it| value(it, "provost_lock_wait_age_seconds_max") > Some(0.0));
        assert_eq!(ask(&world, "agent-a", "POST /unlock", &json!({ "symbol": "a.ts:f" })).0, 200);
        waiting
    });
    assert_eq!(value(&waiting, "provost_lock_waiters"), Some(1.0));
    assert_eq!(value(&waiting, "provost_approvals_waiting"), Some(1.0));
    assert_eq!(value(&waiting, "provost_tasks{state=\"awaiting\"}"), Some(1.0));
    assert!(value(&waiting, "provost_approval_age_seconds_max") > Some(0.0), "{waiting}");
    let parked = "provost_commands_total{door=\"devit\",outcome=\"parked\",verb=\"Delegate\"}";
    assert_eq!(value(&waiting, parked), Some(1.0), "{waiting}");
    let later =
        told(http, "the wait is over", |it| value(it, "provost_lock_wait_seconds_count") == Some(1.0));
    assert!(value(&later, "provost_lock_wait_seconds_sum") > Some(0.0));
    assert_eq!(value(&later, "provost_lock_waiters"), Some(0.0));
}

#[test]
fn a_task_that_waits_for_its_workers_only_place_is_told_with_its_age() {
    let agent = "[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\nmax_parallel = 1\n";
    let world = world(ALLOW, agent);
    let daemon = world.start();
    let http = Http::metrics(&world);
    let (age, queued) = ("provost_queue_age_seconds_max", "provost_tasks{state=\"queued\"}");
    assert_eq!(value(&text(http), age), Some(0.0), "nothing waits");
    let client = world.client(&daemon, "orch:a");
    let (first, reply) = client.delegate("coder", "exec tail -f /dev/null", json!({}));
    reply.ack();
    told(http, "the first one runs", |it| value(it, "provost_tasks{state=\"running\"}") == Some(1.0));
    client.delegate("coder", "echo done", json!({})).1.ack();
    let waiting = told(http, "the second one waits", |it| value(it, age) > Some(0.0));
    assert_eq!(value(&waiting, queued), Some(1.0), "{waiting}");
    let longer = value(&waiting, age).map(|it| it + 0.5);
    told(http, "its wait grows longer", |it| value(it, age) > longer);
    let cancel = json!({ "task_id": first, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    let later = told(http, "it has begun", |it| value(it, queued) == Some(0.0));
    assert_eq!(value(&later, age), Some(0.0), "{later}");
}

#[test]
fn nothing_that_anybody_has_written_is_told() {
    let world = world(ALLOW, "");
    let daemon = world.start();
    let http = Http::metrics(&world);
    let client = world.client(&daemon, "orch:secretive");
    let (task, reply) = client.delegate("shell", "echo whispered-goal", json!({}));
    reply.ack();
    client.result_of(&task);
    assert_eq!(
        locked(&world, "agent-hidden", &json!({ "symbol": "private/path.ts:f", "reason": "hush" })),
        200
    );
    let ended = "provost_task_seconds_count{outcome=\"completed\"}";
    let now = told(http, "the task's end is counted", |it| value(it, ended) == Some(1.0));
    let repository = world.repo();
    for word in
        ["secretive", "whispered", "hidden", "private", "hush", &task, repository.to_str().unwrap(), "/"]
    {
        let told = now.lines().filter(|line| !line.starts_with("# HELP")).find(|line| line.contains(word));
        assert_eq!(told, None, "{word}");
    }
}

#[test]
fn only_numbers_are_there_and_only_for_who_asks_by_a_name_of_this_machine() {
    let world = world(ALLOW, "names = [\"build7.example\"]\n");
    let _daemon = world.start();
    let http = Http::metrics(&world);
    let by = |host: &str| http.bare("GET /metrics", &[("Host", host)], b"").status;
    for host in [
        "127.0.0.1:PORT",
        "localhost:PORT",
        "[::1]:PORT",
        "10.1.2.3",
        "build7.example",
        "BUILD7.example:9090",
    ] {
        assert_eq!(by(host), 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "build7.example.evil",
    ] {
        assert_eq!(by(host), 403, "{host}");
    }
    assert_eq!(http.bare("GET /metrics", &[], b"").status, 403, "there is no Host");
    let twice = [("Host", "127.0.0.1"), ("Host", "127.0.0.1")];
    assert!(http.bare("GET /metrics", &twice, b"").status >= 400, "there are two");
    assert_eq!(http.bare("GET http://evil.example/metrics", &[("Host", "127.0.0.1:PORT")], b"").status, 403);
    for (name, page) in
        [("Origin", "http://127.0.0.1:PORT"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]
    {
        assert_eq!(http.send("GET /metrics", &[(name, page)], b"").status, 403, "{name}: {page}");
    }
    for path in ["/", "/metrics/", "/Metrics", "/about", "/tasks", "/event-stream", "/%6detrics", "//metrics"]
    {
        assert_eq!(http.get(path).status, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let answer = http.send(&format!("{method} /metrics"), &[], b"");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let answer = http.send("HEAD /metrics", &[], b"");
    assert!(answer.status == 200 && answer.body.is_empty());
    let answer = http.get("/metrics?name[]=provost_tasks");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn connections_that_stay_keep_nobody_from_an_answer() {
    let world = world(ALLOW, "");
    let _daemon = world.start();
    let http = Http::metrics(&world);
    let mut silent: Vec<_> = (0..40).map(|_| http.connect()).collect();
    for connection in silent.iter_mut().step_by(2) {
        // One that has asked half of a question; the listener may have closed it.
        let _ = connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127");
    }
    assert_eq!(http.get("/livez").status, 200);
    let one = http.connect();
    drop(one);
    assert_eq!(http.get("/metrics").status, 200);
}

#[test]
fn without_the_setting_there_is_no_listener_and_the_command_tells_what_is_there_anyway() {
    let world = World::new();
    let _daemon = world.start();
    let output = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(status["doors"].as_array().unwrap().iter().all(|it| it["door"] != "metrics"), "{status}");
    assert!(!world.log().contains("metrics and health are answered"), "{}", world.log());
    assert_eq!(locked(&world, "agent-a", &json!({ "symbol": "a.ts:f" })), 200);
    let output = world.command(&["metrics"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("`enabled = true` in `[metrics]`"), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(value(&printed, "provost_locks{state=\"held\"}"), Some(1.0));
    for metric in METRICS.iter().filter(|it| it.counted) {
        assert!(!printed.contains(&format!("# TYPE {} ", metric.name)), "{} is counted", metric.name);
    }
}

#[test]
fn an_address_that_others_reach_has_to_be_wanted_twice_and_is_warned_of() {
    let world = World::new();
    world.configure("[metrics]\nenabled = true\nlisten = \"0.0.0.0:0\"\n");
    let output = world.command(&["up"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("`elsewhere = true`"), "{said}");
    world.configure("[metrics]\nenabled = true\nlisten = \"0.0.0.0:0\"\nelsewhere = true\n");
    let _daemon = world.start();
    assert_eq!(Http::metrics(&world).get("/livez").status, 200);
    let output = world.command(&["status"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("can be read without proof by everybody who reaches 0.0.0.0:0"), "{said}");
    world.configure("[metrics]\nenabled = true\nlisten = \"localhost\"\n");
    let output = world.command(&["reload"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is not an address with a port"), "{said}");
}

#[test]
fn a_file_of_the_repository_opens_no_listener() {
    let world = World::new();
    world.write(".provost/provost.toml", COUNTING);
    let allowed = world.command(&["config", "allow", ".provost/provost.toml", "--yes"]).output().unwrap();
    assert!(allowed.status.success(), "{allowed:?}");
    let _daemon = world.start();
    let output = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(status["doors"].as_array().unwrap().iter().all(|it| it["door"] != "metrics"), "{status}");
    assert!(status.to_string().contains("a repository may not set it"), "{status}");
}

#[test]
fn a_daemon_whose_store_takes_nothing_is_alive_and_not_ready() {
    let world = world(ALLOW, "");
    let daemon = world.start();
    let http = Http::metrics(&world);
    let ready = http.get("/readyz");
    assert_eq!((ready.status, ready.json()), (200, json!({ "alive": true, "ready": true })));
    assert_eq!(http.get("/healthz").status, 200);
    let database = world.state_dir().join("provost.db");
    std::fs::rename(&database, database.with_extension("away")).unwrap();
    eventually("it is seen that the store's file is gone", || http.get("/readyz").status == 503);
    let answer = http.get("/healthz");
    let json = answer.json();
    assert_eq!(
        (answer.status, &json["reason"], &json["alive"]),
        (503, &json!("store"), &json!(true)),
        "{json}"
    );
    assert!(!json.to_string().contains('/'), "no path is told: {json}");
    assert_eq!(http.get("/livez").status, 200);
    let now = told(http, "it is told", |it| value(it, "provost_store_up") == Some(0.0));
    assert!(value(&now, "provost_store_errors_total") >= Some(1.0), "{now}");
    assert_eq!(locked(&world, "agent-a", &json!({ "symbol": "a.ts:f" })), 503);
    let unavailable = "provost_commands_total{door=\"own\",outcome=\"unavailable\",verb=\"AcquireLock\"}";
    told(http, "the refusal is counted", |it| value(it, unavailable) == Some(1.0));
    drop(daemon);
}

#[test]
fn a_daemon_that_ends_says_so_as_long_as_it_is_there() {
    let world = world(ALLOW, "");
    let mut daemon = world.start();
    let http = Http::metrics(&world);
    eventually("it is ready", || http.get("/readyz").status == 200);
    // A client in the middle of a request is given its time, and the daemon with it.
    let mut half = Connection::to(&world.own_socket()).unwrap();
    let head = "POST /lock HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\ncontent-length: 100\r\n\r\n{";
    half.write_all(head.as_bytes()).unwrap();
    let mut down = world.command(&["down"]).spawn().unwrap();
    let draining = until_some("it is draining", || {
        let answer = http.get("/readyz");
        (answer.status == 503).then(|| answer.json())
    });
    assert_eq!(draining["reason"], "draining", "{draining}");
    drop(half);
    assert!(daemon.ended().success());
    assert!(down.wait().unwrap().success());
    assert!(
        within(Duration::from_secs(5), || std::net::TcpStream::connect(("127.0.0.1", http.port)).is_err())
    );
}
