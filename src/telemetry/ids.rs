//! The ids of traces and spans: derived from a task's id, so that they are the same everywhere and need no storage.
//! A task whose request has brought a trace is in that one.

use provost_base::{Digest, TaskId, TraceContext};

/// The trace of a task in a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traced {
    repository: Digest,
    task: Box<str>,
    within: Option<TraceContext>,
}

impl Traced {
    /// Returns the trace of a task in the repository with this digest.
    pub fn of(repository: Digest, task: &TaskId) -> Self {
        Self { repository, task: task.as_str().into(), within: None }
    }

    /// Sets the span within which the task was asked for, if the request has brought one.
    #[must_use]
    pub fn within(self, span: Option<TraceContext>) -> Self {
        Self { within: span, ..self }
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.within.map_or_else(|| self.derived("trace"), |it| it.trace)
    }

    /// Returns the id of a span of the trace, by the span's name.
    pub fn span_id(&self, name: &str) -> [u8; 8] {
        self.derived(name)
    }

    /// Returns the header `traceparent` for work within a span of the trace. W3C Trace Context, version 00.
    pub fn parent(&self, name: &str) -> String {
        let sampled = self.within.is_none_or(|it| it.sampled);
        TraceContext { trace: self.trace_id(), span: self.span_id(name), sampled }.to_string()
    }

    /// Returns the first bytes of a digest. All zeros would be no id; that is as unlikely as a broken digest.
    fn derived<const N: usize>(&self, what: &str) -> [u8; N] {
        let text = format!("provost/{what}\0{}\0{}", self.repository, self.task);
        let digest = Digest::of(text.as_bytes());
        let mut id = [0; N];
        id.copy_from_slice(&digest.as_bytes()[..N]);
        id
    }
}
