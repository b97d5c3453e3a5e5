//! Workers that a command has switched off, at one moment.

use super::View;
use crate::{State, Switch, Switches};
use provost_base::{AgentId, Timestamp};

/// The query for the switches of all workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllSwitches;

impl View for AllSwitches {
    type Out = Switches;

    fn look(self, _now: Timestamp, state: &State) -> Switches {
        state.switches.clone()
    }
}

/// The query for the switch of one worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OneSwitch(pub AgentId);

impl View for OneSwitch {
    type Out = Switch;

    fn look(self, _now: Timestamp, state: &State) -> Switch {
        state.switches.of(&self.0)
    }
}
