//! Traces and metrics over OTLP, as a collector reads them.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use serde_json::{Value, json};

use crate::support::collector::{self, configured, hex, known, metrics, of_task, sample, world};
use crate::support::desk::ask;
use crate::support::loopback_client::Http;
use crate::support::receiver::{Receiver, status};
use crate::support::rules::{ALLOW, ASK};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

#[test]
fn the_life_of_a_task_is_one_trace_and_its_worker_is_told_within_which_span_it_runs() {
    let receiver = Receiver::plain();
    let world = world(ASK, receiver.port, "commands = 0");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "echo $TRACEPARENT; echo unspoken", json!({}));
    reply.ack();
    assert!(at_the_terminal(&world, "approve 1").status.success());
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let spans = of_task(&receiver, &task);
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    assert_eq!(names, ["approve", "ask", "judge", "queue", "run", "task"]);
    let root = &spans["task"];
    assert!(root.parent_span_id.is_empty());
    for (name, span) in &spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert!(name == "task" || span.parent_span_id == root.span_id, "{name} is within the task");
        assert!(span.start_time_unix_nano >= root.start_time_unix_nano, "{name}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{name}");
        assert!(span.end_time_unix_nano <= root.end_time_unix_nano, "{name}");
    }
    assert_eq!(spans["approve"].end_time_unix_nano, spans["ask"].end_time_unix_nano);
    assert_eq!(spans["queue"].end_time_unix_nano, spans["run"].start_time_unix_nano);
    assert_eq!(known(&spans["approve"])["provost.answer"], "granted");
    assert_eq!(known(&spans["judge"])["provost.decision"], "ask");
    assert_eq!(known(root)["provost.outcome"], "completed");
    assert_eq!(known(root)["provost.worker"], "shell");
    assert_eq!(root.status.as_ref().unwrap().code, 1);
    let parent = format!("00-{}-{}-01", hex(&root.trace_id), hex(&spans["run"].span_id));
    let said = result.to_string();
    assert!(said.contains(&parent), "{parent}: {said}");
    for body in receiver.heard() {
        for word in ["unspoken", "TRACEPARENT", "orch:a", world.repo().to_str().unwrap()] {
            assert!(!body.body.contains(word), "{word} was sent");
        }
    }
}

#[test]
fn what_is_denied_and_what_fails_are_traces_that_say_so() {
    let receiver = Receiver::plain();
    let world = world("version = 1\ndefault = \"deny\"\n", receiver.port, "commands = 1");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (denied, _) = client.delegate("shell", "true", json!({}));
    let spans = of_task(&receiver, &denied);
    assert_eq!(known(&spans["judge"])["provost.decision"], "deny");
    assert_eq!(
        (known(&spans["task"])["provost.outcome"].as_str(), spans["task"].status.as_ref().unwrap().code),
        ("failed", 2)
    );
    assert!(!spans.contains_key("run"));
    // Each command is a span here.
    assert_eq!(ask(&world, "agent-a", "POST /lock", &json!({ "symbol": "a.ts:f" })).0, 200);
    let command = until_some("a command's span", || {
        let all = collector::spans(&receiver);
        all.into_iter().find(|it| it.name == "command" && known(it)["provost.verb"] == "AcquireLock")
    });
    let about = known(&command);
    assert_eq!((about["provost.door"].as_str(), about["provost.outcome"].as_str()), ("own", "done"));
    assert!(command.end_time_unix_nano >= command.start_time_unix_nano);
}

#[test]
fn metrics_are_sent_as_prometheus_gets_them() {
    let receiver = Receiver::plain();
    let world = world(ALLOW, receiver.port, "");
    let _daemon = world.start();
    assert_eq!(ask(&world, "agent-a", "POST /lock", &json!({ "symbol": "a.ts:f" })).0, 200);
    let metrics = until_some("the lock among the metrics", || {
        let all = metrics(&receiver);
        let commands = &all.get("provost_commands_total")?.data;
        let Some(Data::Sum(sum)) = commands else { panic!("{commands:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let is_it = |it: &KeyValue| it.key == "verb" && format!("{:?}", it.value).contains("AcquireLock");
        sum.data_points.iter().any(|it| it.attributes.iter().any(is_it)).then_some(all)
    });
    let commits = &metrics["provost_batch_commit_seconds"];
    assert_eq!(commits.unit, "s");
    let Some(Data::Histogram(commits)) = &commits.data else { panic!("{commits:?}") };
    for point in &commits.data_points {
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
        assert!(
            point.count > 0 && point.sum > Some(0.0) && point.start_time_unix_nano < point.time_unix_nano
        );
    }
    assert!(matches!(metrics["provost_locks"].data, Some(Data::Gauge(_))));
}

/// The names of the metrics at `/metrics`.
fn named(http: Http) -> BTreeSet<String> {
    let text = String::from_utf8(http.get("/metrics").body).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn what_waits_and_for_how_long_is_sent_under_the_names_that_prometheus_gets() {
    let receiver = Receiver::plain();
    let more = "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n[workers.robot]\ntype = \"polling\"\n";
    let world = world(ASK, receiver.port, more);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // The first one waits for its worker, which never comes, and the second one for a person.
    client.delegate("robot", "one", json!({})).1.ack();
    client.delegate("robot", "two", json!({})).1.ack();
    assert!(at_the_terminal(&world, "approve 1").status.success());
    let lock = json!({ "symbol": "a.ts:f" });
    assert_eq!(ask(&world, "agent-a", "POST /lock", &lock).0, 200);
    let ages = [
        "provost_queue_age_seconds_max",
        "provost_approval_age_seconds_max",
        "provost_lock_wait_age_seconds_max",
    ];
    let waiting = std::thread::scope(|scope| {
        let body = json!({ "symbol": "a.ts:f", "wait_ms": 60_000 });
        let world = &world;
        scope.spawn(move || ask(world, "agent-b", "POST /lock", &body).0);
        let waiting = until_some("the ages of all that waits", || {
            let all = metrics(&receiver);
            ages.iter().all(|name| sample(&all, name, &[]) > Some(0.0)).then_some(all)
        });
        assert_eq!(ask(world, "agent-a", "POST /unlock", &lock).0, 200);
        waiting
    });
    for name in ages {
        assert!(waiting[name].unit == "s" && matches!(waiting[name].data, Some(Data::Gauge(_))), "{name}");
    }
    for (name, labels) in [
        ("provost_tasks", &[("state", "queued")][..]),
        ("provost_tasks", &[("state", "awaiting")]),
        ("provost_approvals_waiting", &[]),
        ("provost_lock_waiters", &[]),
    ] {
        assert_eq!(sample(&waiting, name, labels), Some(1.0), "{name}");
    }
    let (wait, commits) = ("provost_lock_wait_seconds", "provost_batch_commit_seconds");
    assert_eq!(sample(&waiting, wait, &[]), Some(0.0), "no agent has waited for a lock and got it yet");
    assert!(sample(&waiting, commits, &[]) > Some(0.0));
    let later = until_some("the end of the wait", || {
        Some(metrics(&receiver)).filter(|it| sample(it, wait, &[]) == Some(1.0))
    });
    let Some(Data::Histogram(waits)) = &later[wait].data else { panic!("{:?}", later[wait]) };
    assert!(waits.data_points[0].sum > Some(0.0), "{waits:?}");
    let http = Http::metrics(&world);
    until_some("all names that are at /metrics, and no others", || {
        let sent: BTreeSet<String> = metrics(&receiver).into_keys().collect();
        (sent == named(http)).then_some(())
    });
}

fn counted(world: &World, sample: &str) -> f64 {
    let output = world.command(&["metrics"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map_or(0.0, |it| it.parse().unwrap())
}

#[test]
fn a_collector_that_is_away_or_refuses_costs_a_count_and_nothing_waits_for_it() {
    let receiver = Receiver::plain();
    receiver.be(status("503 Service Unavailable"));
    let world = world(ALLOW, receiver.port, "");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "true", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "completed");
    let failed = "provost_otlp_requests_total{outcome=\"failed\",signal=\"traces\"}";
    eventually("the refusal is counted", || counted(&world, failed) > 0.0);
    assert!(counted(&world, "provost_otlp_spans_dropped_total") >= 5.0);
    receiver.be(status("200 OK"));
    let taken = "provost_otlp_requests_total{outcome=\"taken\",signal=\"metrics\"}";
    eventually("it goes on", || counted(&world, taken) > 0.0);
    daemon.stop();
}

#[test]
fn a_header_is_a_secret_and_an_address_without_tls_is_of_this_machine() {
    let receiver = Receiver::plain();
    let world = World::new();
    let file = world.path("headers");
    std::fs::write(&file, "Authorization: Bearer hushed\n").unwrap();
    let mut command = world.command(&["secret", "add", "collector", "--daemon"]);
    let added = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert!(added.status.success(), "{added:?}");
    world.configure(&configured(receiver.port, "headers = \"collector\""));
    let daemon = world.start();
    let heard = receiver.hears(1).pop().unwrap();
    assert_eq!(heard.header("authorization"), "Bearer hushed");
    daemon.stop();
    assert!(!world.log().contains("hushed"));
    for (address, why) in
        [("http://collector.example:4318", "https"), ("collector:4318", "http"), ("ftp://127.0.0.1", "http")]
    {
        world.configure(&format!("[telemetry]\notlp = \"{address}\"\n"));
        let output = world.command(&["up"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("`otlp` in `[telemetry]`") && said.contains(why),
            "{said}"
        );
    }
}

#[test]
fn a_file_of_the_repository_names_no_collector() {
    let receiver = Receiver::plain();
    let world = World::new();
    world.write(".provost/provost.toml", &configured(receiver.port, ""));
    let allowed = world.command(&["config", "allow", ".provost/provost.toml", "--yes"]).output().unwrap();
    assert!(allowed.status.success(), "{allowed:?}");
    let daemon = world.start();
    let output = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(status.to_string().contains("a repository may not set it"), "{status}");
    daemon.stop();
    assert_eq!(receiver.heard().len(), 0);
}
