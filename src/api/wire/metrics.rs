//! The types for metrics of the daemon.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Answer to `GET /metrics`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Whether commands, batches, tasks and calls are counted; without `[metrics] enabled = true`, only the other metrics are returned.
    pub counting: bool,
    /// The metrics, by name.
    pub families: Vec<MetricFamily>,
}

/// All samples of one name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricFamily {
    /// The name, with its unit.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The meaning, as a sentence.
    pub help: String,
    /// The samples, by their labels.
    pub samples: Vec<MetricSample>,
}

/// A value of a name, or its histogram.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricSample {
    /// The labels, each with one of a few values.
    pub labels: BTreeMap<String, String>,
    /// The value of a counter or a gauge.
    pub value: f64,
    /// The histogram, if the name is of that kind.
    pub histogram: Option<MetricHistogram>,
}

/// The distribution of values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricHistogram {
    /// For each bound, in the unit of the name, the number of values up to it.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all values.
    pub sum: f64,
    /// The number of values.
    pub count: u64,
}
