//! Browsers that get notices, at one moment.

use std::sync::Arc;

use super::View;
use crate::{PushSubscription, State};
use provost_base::Timestamp;

/// The query for all browsers that get notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllPush;

impl View for AllPush {
    type Out = Vec<Arc<PushSubscription>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.push.iter().cloned().collect()
    }
}

/// The query for the browser with this id, if it gets notices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnePush(pub Box<str>);

impl View for OnePush {
    type Out = Option<Arc<PushSubscription>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.push.get(&self.0).cloned()
    }
}
