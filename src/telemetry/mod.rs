//! OpenTelemetry: what has happened to tasks as spans, and what is counted, in the messages of OTLP.
//!
//! Promises: values in, bytes out; nothing is sent, stored or waited for here. Spans are made of committed events, so that what was
//! rolled back has none, and say nothing that anybody has written: numbers, words of the table of verbs and of states, the names of
//! workers, and ids of tasks. Leaves sending to the daemon.
#![forbid(unsafe_code)]

mod ids;
mod messages;
mod numbers;
mod spans;

pub use ids::Traced;
pub use numbers::metrics_request;
pub use spans::{Attribute, Span, Traces, traces_request};
