//! What is counted of the daemon, as it travels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Answer to `GET /metrics`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Whether commands, batches, tasks and calls are counted; without `[metrics] enabled = true` the others are told alone.
    pub counting: bool,
    /// One for each name.
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
    /// What it says, in a sentence.
    pub help: String,
    /// The samples, by their labels.
    pub samples: Vec<MetricSample>,
}

/// One value of a name, or its histogram.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricSample {
    /// Labels, each with one of few values.
    pub labels: BTreeMap<String, String>,
    /// The value of a counter or a gauge.
    pub value: f64,
    /// The histogram, of one.
    pub histogram: Option<MetricHistogram>,
}

/// How values are spread.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricHistogram {
    /// For each bound, in the unit of the name, how many values do not lie above it.
    pub buckets: Vec<(f64, u64)>,
    /// All values together.
    pub sum: f64,
    /// How many there are.
    pub count: u64,
}
