//! A collector's side of OTLP: reads what a daemon has sent with the decoder that the project OpenTelemetry has made of its own
//! definitions.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::World;
use super::receiver::{Heard, Receiver};
use super::waits::until_some;

/// A configuration with a collector at this port.
pub(crate) fn configured(port: u16, more: &str) -> String {
    format!("[telemetry]\notlp = \"http://127.0.0.1:{port}\"\nevery = \"1s\"\n{more}\n")
}

pub(crate) fn world(rules: &str, port: u16, more: &str) -> World {
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

pub(crate) fn spans(receiver: &Receiver) -> Vec<Span> {
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

fn known_of(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let said = |it: &KeyValue| match it.value.clone() {
        Some(AnyValue { value: Some(Said::StringValue(text)), .. }) => text,
        Some(AnyValue { value: Some(Said::IntValue(number)), .. }) => number.to_string(),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|it| (it.key.clone(), said(it))).collect()
}

pub(crate) fn known(span: &Span) -> BTreeMap<String, String> {
    known_of(&span.attributes)
}

/// The metrics of the newest request, by name; none before the first one.
pub(crate) fn metrics(receiver: &Receiver) -> BTreeMap<String, Metric> {
    let Some(body) = bodies(&receiver.heard(), "/v1/metrics").pop() else { return BTreeMap::new() };
    let decoded = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
    let all = decoded.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
    all.flat_map(|it| it.metrics).map(|it| (it.name.clone(), it)).collect()
}

/// The value of the sample with exactly these labels; of a histogram, how many values it has.
pub(crate) fn sample(all: &BTreeMap<String, Metric>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let points = match all.get(name)?.data.as_ref().unwrap() {
        Data::Sum(sum) => &sum.data_points,
        Data::Gauge(gauge) => &gauge.data_points,
        Data::Histogram(it) => {
            let point = it.data_points.iter().find(|it| known_of(&it.attributes) == labels)?;
            return Some(point.count as f64);
        }
        other => panic!("{other:?}"),
    };
    match points.iter().find(|it| known_of(&it.attributes) == labels)?.value {
        Some(Number::AsDouble(value)) => Some(value),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

/// The spans of a task, by name, once its run is among them.
pub(crate) fn of_task(receiver: &Receiver, task: &str) -> BTreeMap<String, Span> {
    until_some("the spans of a task", || {
        let all = spans(receiver);
        let root = all
            .iter()
            .find(|it| it.name == "task" && known(it).get("provost.task.id").is_some_and(|it| it == task))?;
        let its = all.iter().filter(|it| it.trace_id == root.trace_id);
        Some(its.map(|it| (it.name.clone(), it.clone())).collect())
    })
}
