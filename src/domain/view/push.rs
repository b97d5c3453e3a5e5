//! Browsers that are told, at one moment.

use std::sync::Arc;

use super::View;
use crate::{PushSubscription, State};
use provost_base::Timestamp;

/// All browsers that are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllPush;

impl View for AllPush {
    type Out = Vec<Arc<PushSubscription>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.push.iter().cloned().collect()
    }
}

/// The browser of this id, if it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnePush(pub Box<str>);

impl View for OnePush {
    type Out = Option<Arc<PushSubscription>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.push.get(&self.0).cloned()
    }
}
