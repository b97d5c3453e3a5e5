//! The text format of Prometheus, made from the answer to `GET /metrics`. Version 0.0.4 of the format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::wire::{MetricHistogram, Metrics};

/// The content type of the text.
pub const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the text; it ends with a line break.
pub fn exposition(metrics: &Metrics) -> String {
    let mut text = Text::default();
    for family in &metrics.families {
        // A name without samples carries no data.
        if family.samples.is_empty() {
            continue;
        }
        let name = &family.name;
        text.line(format_args!("# HELP {name} {}", escaped(&family.help, false)));
        text.line(format_args!("# TYPE {name} {}", family.kind));
        for sample in &family.samples {
            match &sample.histogram {
                Some(it) => text.histogram(name, &sample.labels, it),
                None => text.sample(name, &sample.labels, None, number(sample.value)),
            }
        }
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes everything");
    }

    fn sample(&mut self, name: &str, labels: &BTreeMap<String, String>, le: Option<&str>, value: String) {
        let own = labels.iter().map(|(label, it)| (label.as_str(), escaped(it, true)));
        let all: Vec<String> = own
            .chain(le.map(|it| ("le", it.to_owned())))
            .map(|(label, it)| format!("{label}=\"{it}\""))
            .collect();
        match all.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", all.join(","))),
        }
    }

    fn histogram(&mut self, name: &str, labels: &BTreeMap<String, String>, it: &MetricHistogram) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in &it.buckets {
            self.sample(&bucket, labels, Some(&number(*bound)), count.to_string());
        }
        self.sample(&bucket, labels, Some("+Inf"), it.count.to_string());
        self.sample(&format!("{name}_sum"), labels, None, number(it.sum));
        self.sample(&format!("{name}_count"), labels, None, it.count.to_string());
    }
}

/// Writes a number as the format wants it: as Rust does, except for infinities.
fn number(it: f64) -> String {
    if it == f64::INFINITY {
        "+Inf".into()
    } else if it == f64::NEG_INFINITY {
        "-Inf".into()
    } else {
        it.to_string()
    }
}

/// Escapes a text so that it ends neither its line nor, as the value of a label, its quotes.
fn escaped(text: &str, is_label: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if is_label { text.replace('"', "\\\"") } else { text }
}
