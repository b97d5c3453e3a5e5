//! The ids of traces and spans: made from a task's id, so that they are the same wherever they are needed, and are kept nowhere.

use std::fmt::Write as _;

use provost_base::{Digest, TaskId};

/// The trace of one task in one repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traced {
    repository: Digest,
    task: Box<str>,
}

impl Traced {
    /// That of a task in the repository of this digest.
    pub fn of(repository: Digest, task: &TaskId) -> Self {
        Self { repository, task: task.as_str().into() }
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.derived("trace")
    }

    /// The id of a span of it, by the span's name.
    pub fn span_id(&self, name: &str) -> [u8; 8] {
        self.derived(name)
    }

    /// The header `traceparent` for what happens within a span of it. W3C Trace Context, version 00.
    pub fn parent(&self, name: &str) -> String {
        format!("00-{}-{}-01", hex(&self.trace_id()), hex(&self.span_id(name)))
    }

    /// The first bytes of a digest. One that is all zeros would be no id; that is as likely as a broken digest.
    fn derived<const N: usize>(&self, what: &str) -> [u8; N] {
        let text = format!("provost/{what}\0{}\0{}", self.repository, self.task);
        let digest = Digest::of(text.as_bytes());
        let mut id = [0; N];
        id.copy_from_slice(&digest.as_bytes()[..N]);
        id
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
