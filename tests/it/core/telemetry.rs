//! Traces and metrics over OTLP, as a collector reads them: with the decoder that the project OpenTelemetry has made of its own
//! definitions.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use crate::support::desk::ask;
use crate::support::receiver::{Heard, Receiver, status};
use crate::support::rules::{ALLOW, ASK};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

pub(super) fn configured(port: u16, more: &str) -> String {
    format!("[telemetry]\notlp = \"http://127.0.0.1:{port}\"\nevery = \"1s\"\n{more}\n")
}

pub(super) fn world(rules: &str, port: u16, more: &str) -> World {
    let world = World::new();
    world.rule(rules);
    world.configure(&configured(port, more));
    world
}

/// Bodies of requests to a path.
fn bodies(heard: &[Heard], path: &str) -> Vec<Vec<u8>> {
    let line = format!("POST {path} HTTP/1.1");
    let asked = heard.iter().filter(|it| it.line == line);
    asked
        .inspect(|it| assert_eq!(it.header("content-type"), "application/x-protobuf"))
        .map(|it| it.raw.clone())
        .collect()
}

pub(super) fn spans(receiver: &Receiver) -> Vec<Span> {
    let requests = bodies(&receiver.heard(), "/v1/traces");
    let decoded = requests.iter().map(|it| ExportTraceServiceRequest::decode(it.as_slice()).unwrap());
    let of_resources = decoded.flat_map(|it| it.resource_spans);
    of_resources
        .flat_map(|it| {
            let names: Vec<String> =
                it.resource.unwrap().attributes.iter().map(|it| it.key.clone()).collect();
            assert_eq!(names, ["service.name", "service.version", "service.instance.id"]);
            it.scope_spans
        })
        .flat_map(|it| it.spans)
        .collect()
}

pub(super) fn known(span: &Span) -> BTreeMap<String, String> {
    let said = |it: &KeyValue| match it.value.clone() {
        Some(AnyValue { value: Some(Said::StringValue(text)), .. }) => text,
        Some(AnyValue { value: Some(Said::IntValue(number)), .. }) => number.to_string(),
        other => panic!("{other:?}"),
    };
    span.attributes.iter().map(|it| (it.key.clone(), said(it))).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

/// The spans of a task, by name, once its run is among them.
pub(super) fn of_task(receiver: &Receiver, task: &str) -> BTreeMap<String, Span> {
    until_some("the spans of a task", || {
        let all = spans(receiver);
        let root = all
            .iter()
            .find(|it| it.name == "task" && known(it).get("provost.task.id").is_some_and(|it| it == task))?;
        let its = all.iter().filter(|it| it.trace_id == root.trace_id);
        Some(its.map(|it| (it.name.clone(), it.clone())).collect())
    })
}

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
        let all = self::spans(&receiver);
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
        let body = bodies(&receiver.heard(), "/v1/metrics").pop()?;
        let decoded = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
        let all =
            decoded.resource_metrics.into_iter().flat_map(|it| it.scope_metrics).flat_map(|it| it.metrics);
        let all: BTreeMap<String, _> = all.map(|it| (it.name.clone(), it)).collect();
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
