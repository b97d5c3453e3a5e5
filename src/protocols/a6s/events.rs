//! The events that editors get unasked, and their text. A6s 4.

use hyper::body::Bytes;
use serde_json::value::RawValue;

use super::{envelope, wire};

/// An event for clients.
#[derive(Clone, Debug)]
pub enum A6sEvent {
    /// The progress of a phase of an execution.
    Phase {
        /// Its id, as clients know it.
        execution: Box<str>,
        /// The phase, one of the five.
        phase: &'static str,
        /// `pending`, `running`, `completed` or `failed`.
        status: &'static str,
        /// The progress of the phase, in percent.
        progress: u8,
    },
    /// The progress of a background task.
    Task {
        /// Its id, as clients know it.
        task: Box<str>,
        /// `queued`, `running`, `completed`, `failed` or `cancelled`.
        status: &'static str,
        /// The progress of the task, in percent.
        progress: u8,
    },
    /// An execution is over.
    Complete {
        /// Its id, as clients know it.
        execution: Box<str>,
        /// The answer of `execution.status` from now on.
        result: Box<RawValue>,
    },
}

/// The state of an execution or task: the present part, and its progress.
pub(super) struct Stand {
    pub(super) part: usize,
    pub(super) status: &'static str,
    pub(super) progress: u8,
}

impl Stand {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status, "completed" | "failed" | "cancelled")
    }
}

impl A6sEvent {
    pub(super) fn about(&self) -> &str {
        match self {
            A6sEvent::Phase { execution, .. } | A6sEvent::Complete { execution, .. } => execution,
            A6sEvent::Task { task, .. } => task,
        }
    }

    /// Returns whether connections that do not watch it get it, too.
    pub(super) fn is_for_all(&self) -> bool {
        matches!(self, A6sEvent::Task { .. })
    }

    /// Returns whether no event may follow it.
    pub(super) fn is_last(&self) -> bool {
        match self {
            A6sEvent::Complete { .. } => true,
            A6sEvent::Task { .. } => self.stand().is_some_and(|it| it.is_over()),
            A6sEvent::Phase { .. } => false,
        }
    }

    /// Returns the state; `None` if it is the end.
    pub(super) fn stand(&self) -> Option<Stand> {
        let (part, status, progress) = match self {
            A6sEvent::Phase { phase, status, progress, .. } => {
                (wire::PHASES.iter().position(|it| it == phase)?, status, progress)
            }
            A6sEvent::Task { status, progress, .. } => (0, status, progress),
            A6sEvent::Complete { .. } => return None,
        };
        Some(Stand { part, status, progress: *progress })
    }

    /// Encodes the event.
    pub(super) fn text(&self) -> Bytes {
        let text = match self {
            A6sEvent::Phase { execution, phase, status, progress } => {
                let progress = (*progress).min(100);
                let data = wire::PhaseUpdate { execution_id: execution, phase, status, progress };
                envelope::event("phase.update", data)
            }
            A6sEvent::Task { task, status, progress } => {
                let progress = (*progress).min(100);
                envelope::event("task.update", wire::TaskUpdate { task_id: task, status, progress })
            }
            A6sEvent::Complete { result, .. } => envelope::event("execution.complete", result),
        };
        text.into()
    }
}
