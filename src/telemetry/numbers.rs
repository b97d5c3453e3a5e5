//! The daemon's metrics in OTLP: the same names and values as for Prometheus.

use prost::Message as _;

use crate::messages::{
    CUMULATIVE, Data, Gauge, Histogram, HistogramPoint, KeyValue, MetricMessage, MetricsRequest, NumberPoint,
    ResourceMetrics, ScopeMetrics, Sum, resource, scope, text,
};
use provost_api::wire::{MetricFamily, MetricHistogram, MetricSample, Metrics};

/// Returns the body of a request to `/v1/metrics`. Times are nanoseconds since 1970: the start of counting, and now.
pub fn metrics_request(
    metrics: &Metrics,
    (version, instance): (&str, &str),
    (began, now): (u64, u64),
) -> Vec<u8> {
    let families = metrics.families.iter().filter(|it| !it.samples.is_empty());
    let metrics = families.map(|it| metric(it, began, now)).collect();
    let scope_metrics = vec![ScopeMetrics { scope: scope(version), metrics }];
    let resource_metrics = vec![ResourceMetrics { resource: resource(version, instance), scope_metrics }];
    MetricsRequest { resource_metrics }.encode_to_vec()
}

fn metric(family: &MetricFamily, began: u64, now: u64) -> MetricMessage {
    let number = |it: &MetricSample| NumberPoint {
        start_time_unix_nano: began,
        time_unix_nano: now,
        as_double: Some(it.value),
        attributes: attributes(it),
    };
    let numbers = || family.samples.iter().map(number).collect();
    let data = match family.kind.as_str() {
        "counter" => {
            Data::Sum(Sum { data_points: numbers(), aggregation_temporality: CUMULATIVE, is_monotonic: true })
        }
        "histogram" => {
            let point = |it: &MetricSample| Some(spread(it, it.histogram.as_ref()?, began, now));
            let data_points = family.samples.iter().filter_map(point).collect();
            Data::Histogram(Histogram { data_points, aggregation_temporality: CUMULATIVE })
        }
        _ => Data::Gauge(Gauge { data_points: numbers() }),
    };
    let unit = unit(&family.name).into();
    MetricMessage { name: family.name.clone(), description: family.help.clone(), unit, data: Some(data) }
}

/// Converts cumulative buckets to counts between two bounds.
fn spread(sample: &MetricSample, it: &MetricHistogram, began: u64, now: u64) -> HistogramPoint {
    let mut below = 0;
    let mut between = |count: u64| count.saturating_sub(std::mem::replace(&mut below, count));
    let mut bucket_counts: Vec<u64> = it.buckets.iter().map(|(_, count)| between(*count)).collect();
    bucket_counts.push(between(it.count));
    HistogramPoint {
        start_time_unix_nano: began,
        time_unix_nano: now,
        count: it.count,
        sum: Some(it.sum),
        bucket_counts,
        explicit_bounds: it.buckets.iter().map(|(bound, _)| *bound).collect(),
        attributes: attributes(sample),
    }
}

fn attributes(sample: &MetricSample) -> Vec<KeyValue> {
    sample.labels.iter().map(|(name, value)| text(name, value)).collect()
}

/// Returns the unit in UCUM's notation.
fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_max").trim_end_matches("_total");
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    }
}
