//! The traces within which live tasks were asked for, at one moment.

use super::View;
use crate::State;
use provost_base::{TaskId, Timestamp, TraceContext};

/// The tasks whose requests have brought a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracesOfTasks;

impl View for TracesOfTasks {
    type Out = Vec<(TaskId, TraceContext)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.tasks.iter().filter_map(|it| Some((it.id().clone(), *it.order.trace.as_deref()?))).collect()
    }
}
