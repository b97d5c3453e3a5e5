//! Queries about the queue of merges.

use std::sync::Arc;

use super::View;
use crate::{MergeEntry, State};
use provost_base::Timestamp;

/// The query for all entries of the queue, oldest first, with those that have lately left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllMerges;

impl View for AllMerges {
    type Out = Vec<Arc<MergeEntry>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.merges.iter().cloned().collect()
    }
}
