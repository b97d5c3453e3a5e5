//! The names of metrics: one table, from which the document is printed; alarms that name nothing else, and that Prometheus reads.

use std::collections::BTreeSet;
use std::fs;

use provost::api::metric::{Kind, METRICS, print_metrics};

use crate::support::promtool::promtool;
use crate::support::source::project_root;

const RULES: &str = "docs/examples/prometheus/provost-rules.yml";
const DOCUMENT: &str = "docs/metrics.md";

/// Labels whose values are few. A worker is one of the configuration.
const LABELS: [&str; 11] = [
    "version",
    "format",
    "verb",
    "door",
    "outcome",
    "found",
    "state",
    "kind",
    "worker",
    "direction",
    "signal",
];

/// A document in which what is printed stands between its two marks.
fn with_table(document: &str, printed: &str) -> String {
    let (begin, end) = ("<!-- printed from src/api/metric.rs -->\n", "<!-- end of what is printed -->");
    let (before, rest) = document.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{begin}{printed}{end}{after}")
}

fn read(path: &str) -> String {
    fs::read_to_string(project_root().join(path)).unwrap()
}

#[test]
fn the_document_has_every_name_as_the_code_does() {
    let document = read(DOCUMENT);
    let printed = with_table(&document, &print_metrics());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(project_root().join(DOCUMENT), printed.as_bytes()).unwrap();
    } else {
        assert!(document == printed, "{DOCUMENT} differs from the table; run this once with UPDATE=1");
    }
    for name in words(&document) {
        let is_known = METRICS.iter().any(|it| is_of(it.name, it.kind, &name));
        assert!(is_known, "{DOCUMENT} names {name}, which does not exist");
    }
}

/// Returns the words of a text that look like a metric's name.
fn words(text: &str) -> BTreeSet<String> {
    let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    split.filter(|word| word.starts_with("provost_")).map(str::to_owned).collect()
}

/// Whether a name is that of a metric, or of a part of its histogram.
fn is_of(metric: &str, kind: Kind, name: &str) -> bool {
    let part = name.strip_prefix(metric);
    part == Some("") || (kind == Kind::Histogram && matches!(part, Some("_bucket" | "_sum" | "_count")))
}

#[test]
fn names_say_their_units_and_labels_have_few_values() {
    let mut names = BTreeSet::new();
    for metric in METRICS {
        let name = metric.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(name.starts_with("provost_") && name == name.to_ascii_lowercase(), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        assert!(
            metric.kind != Kind::Histogram || name.ends_with("_seconds") || name.ends_with("_commands"),
            "{name}"
        );
        assert!(metric.says.ends_with('.') && metric.says.len() > 15, "{name}: {}", metric.says);
        for label in metric.labels {
            assert!(LABELS.contains(label), "{name}: is it known how many values {label} has?");
        }
    }
}

#[test]
fn alarms_name_metrics_of_the_table_alone() {
    let rules = read(RULES);
    let named = words(&rules);
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(METRICS.iter().any(|it| is_of(it.name, it.kind, &name)), "{RULES} names {name}");
    }
    let document = read(DOCUMENT);
    for line in rules.lines() {
        if let Some((_, alarm)) = line.split_once("- alert: ") {
            assert!(
                document.contains(&format!("| `{alarm}` |")),
                "{DOCUMENT} does not say what {alarm} is for"
            );
        }
    }
}

#[test]
fn prometheus_reads_the_alarms_and_they_fire_on_what_they_are_for() {
    let at = |name: &str| project_root().join(name).to_str().unwrap().to_owned();
    promtool(&["check", "rules", &at(RULES)], "").unwrap();
    promtool(&["test", "rules", &at("docs/examples/prometheus/provost-rules-test.yml")], "").unwrap();
    assert!(promtool(&["check", "rules", &at("Cargo.toml")], "").is_err(), "it takes everything");
}
