//! OpenTelemetry: the lives of tasks as spans, and the daemon's metrics, in the messages of OTLP.
//!
//! Promises: values in, bytes out; this module sends and stores nothing, and does not wait. Spans are made from committed
//! events, so a change that was rolled back has none, and they contain no text of any agent or person: only numbers, words from
//! the tables of verbs and states, the names of workers, and ids of tasks. The daemon sends them.
#![forbid(unsafe_code)]

mod ids;
mod messages;
mod numbers;
mod spans;

pub use ids::Traced;
pub use numbers::metrics_request;
pub use spans::{Attribute, Span, Traces, traces_request};
